/* LAMB: u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay w, with Adam's m and v;
 *      w -= lr (|w| / |u|) u */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    double beta1, beta2, eps, weight_decay;
    bool matrices_only;
} lamb;

static int64_t lamb_scratch(const ng_tensor *weight) { return weight->size; }

static void lamb_move(const ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const lamb *own = (const lamb *)self;
    const ng_tensor *weight = moved->weight;
    const int64_t n = weight->size;
    const double t = (double)moved->steps;
    const ng_adam_step step = {.lr = -1, /* from 0, Adam's step then ends at +u */
                               .beta1 = own->beta1,
                               .beta2 = own->beta2,
                               .eps = own->eps,
                               .correction1 = 1 - pow(own->beta1, t),
                               .correction2 = 1 - pow(own->beta2, t)};
    void *u = moved->scratch;
    kernels->fill(u, n, 0);
    kernels->adam(u, weight->grad->data, moved->state[0], moved->state[1], NULL, n, &step);
    kernels->axpy(ng_decay_of(moved, own->weight_decay), weight->data, u, n, true);
    double ratio = 1;
    if (!own->matrices_only || weight->shape.rank >= 2)
        ratio = ng_trust_ratio(1, ng_norm_of(kernels, weight->data, n), ng_norm_of(kernels, u, n));
    kernels->axpy(-lr * ratio, u, weight->data, n, true);
}

static int lamb_settings(const ng_optimizer *self, ng_setting *settings)
{
    const lamb *own = (const lamb *)self;
    settings[0] = (ng_setting){.name = "beta1", .value = own->beta1};
    settings[1] = (ng_setting){.name = "beta2", .value = own->beta2};
    settings[2] = (ng_setting){.name = "eps", .value = own->eps};
    settings[3] = (ng_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[4] = (ng_setting){.name = "matrices_only", .value = own->matrices_only};
    return 5;
}

static const ng_optimizer_class lamb_class = {.name = "LAMB",
                                              .size = sizeof(lamb),
                                              .move = lamb_move,
                                              .settings = lamb_settings,
                                              .scratch = lamb_scratch};

ng_optimizer *ng_lamb_new_with(ng_lamb_new_options options)
{
    static const char name[] = "ng_lamb_new";
    options.beta1 = ng_option(options.beta1, 0.9);
    options.beta2 = ng_option(options.beta2, 0.999);
    options.eps = ng_option(options.eps, 1e-6);
    options.weight_decay = ng_option(options.weight_decay, 0.01);
    if (!ng_option_range(name, "beta1", options.beta1, 0, 1) ||
        !ng_option_range(name, "beta2", options.beta2, 0, 1) ||
        !ng_option_range(name, "eps", options.eps, 0, HUGE_VAL) ||
        !ng_option_range(name, "weight_decay", options.weight_decay, 0, HUGE_VAL))
        return NULL;
    lamb *self = (lamb *)ng_optimizer_make(&lamb_class, name, options.module,
                                           ng_option(options.lr, 1e-3), options.schedule, 2);
    if (!self) return NULL;
    self->beta1 = options.beta1;
    self->beta2 = options.beta2;
    self->eps = options.eps;
    self->weight_decay = options.weight_decay;
    self->matrices_only = options.matrices_only;
    return &self->base;
}
