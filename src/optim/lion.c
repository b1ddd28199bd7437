/* Lion: c = b1 m + (1 - b1) g;  w -= lr (sign(c) + weight_decay w);  m = b2 m + (1 - b2) g */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    double beta1, beta2, weight_decay;
} lion;

static void lion_move(const ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const lion *own = (const lion *)self;
    const ng_tensor *weight = moved->weight;
    kernels->lion(weight->data, weight->grad->data, moved->state[0], weight->size, lr, own->beta1,
                  own->beta2, ng_decay_of(moved, own->weight_decay));
}

static int lion_settings(const ng_optimizer *self, ng_setting *settings)
{
    const lion *own = (const lion *)self;
    settings[0] = (ng_setting){.name = "beta1", .value = own->beta1};
    settings[1] = (ng_setting){.name = "beta2", .value = own->beta2};
    settings[2] = (ng_setting){.name = "weight_decay", .value = own->weight_decay};
    return 3;
}

static const ng_optimizer_class lion_class = {
    .name = "Lion", .size = sizeof(lion), .move = lion_move, .settings = lion_settings};

ng_optimizer *ng_lion_new_with(ng_lion_new_options options)
{
    static const char name[] = "ng_lion_new";
    options.beta1 = ng_option(options.beta1, 0.9);
    options.beta2 = ng_option(options.beta2, 0.99);
    if (!ng_option_range(name, "beta1", options.beta1, 0, 1) ||
        !ng_option_range(name, "beta2", options.beta2, 0, 1) ||
        !ng_option_range(name, "weight_decay", options.weight_decay, 0, HUGE_VAL))
        return NULL;
    lion *self = (lion *)ng_optimizer_make(&lion_class, name, options.module,
                                           ng_option(options.lr, 1e-4), options.schedule, 1);
    if (!self) return NULL;
    self->beta1 = options.beta1;
    self->beta2 = options.beta2;
    self->weight_decay = options.weight_decay;
    return &self->base;
}
