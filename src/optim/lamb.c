/* LAMB: u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + weight_decay w, with Adam's m and v;
 *      w -= lr (|w| / |u|) u */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    ng_lamb_new_options own;
} lamb;

static int64_t lamb_scratch(const ng_tensor *weight) { return weight->size; }

/* Updates m and v, and writes the direction of Adam: its step from 0 by the rate -1. */
static void adam_direction(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                           void *u)
{
    const ng_lamb_new_options *own = &((const lamb *)self)->own;
    const ng_tensor *weight = moved->weight;
    const ng_adam_step step = ng_adam_step_of(self, moved, -1, own->beta1, own->beta2, own->eps);
    kernels->fill(u, weight->size, 0);
    kernels->adam(u, weight->leaf->grad->data, moved->state[0], moved->state[1], NULL, weight->size,
                  &step);
}

static void lamb_move(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const ng_lamb_new_options *own = &((const lamb *)self)->own;
    const ng_tensor *weight = moved->weight;
    const int64_t n = weight->size;
    void *u = moved->scratch;
    adam_direction(self, kernels, moved, u);
    kernels->axpy(ng_decay_of(moved, own->weight_decay), weight->data, u, n, true);
    double ratio = 1;
    if (!own->matrices_only || weight->shape.rank >= 2)
        ratio = ng_trust_ratio(1, ng_norm_of(kernels, weight->data, n), ng_norm_of(kernels, u, n));
    kernels->axpy(-lr * ratio, u, weight->data, n, true);
}

static int lamb_settings(const ng_optimizer *self, ng_optimizer_setting *settings)
{
    const ng_lamb_new_options *own = &((const lamb *)self)->own;
    settings[0] = (ng_optimizer_setting){.name = "beta1", .value = own->beta1, .below = 1};
    settings[1] = (ng_optimizer_setting){.name = "beta2", .value = own->beta2, .below = 1};
    settings[2] = (ng_optimizer_setting){.name = "eps", .value = own->eps};
    settings[3] = (ng_optimizer_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[4] = (ng_optimizer_setting){.name = "matrices_only", .value = own->matrices_only};
    return 5;
}

static const ng_optimizer_class lamb_class = {.name = "LAMB",
                                              .size = sizeof(lamb),
                                              .move = lamb_move,
                                              .settings = lamb_settings,
                                              .scratch = lamb_scratch};

ng_optimizer *ng_lamb_new_with(ng_module *module, ng_lamb_new_options options)
{
    static const char name[] = "ng_lamb_new";
    options.beta1 = ng_option(options.beta1, 0.9);
    options.beta2 = ng_option(options.beta2, 0.999);
    options.eps = ng_option(options.eps, 1e-6);
    lamb *self = (lamb *)ng_optimizer_make(&lamb_class, name, module, ng_option(options.lr, 1e-3),
                                           options.schedule, 2);
    if (self) self->own = options;
    return ng_optimizer_checked(name, (ng_optimizer *)self);
}
