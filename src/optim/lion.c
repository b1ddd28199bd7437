/* Lion: c = b1 m + (1 - b1) g;  w -= lr (sign(c) + weight_decay w);  m = b2 m + (1 - b2) g */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    ng_lion_new_options own;
} lion;

static void lion_move(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const ng_lion_new_options *own = &((const lion *)self)->own;
    const ng_tensor *weight = moved->weight;
    kernels->lion(weight->data, weight->leaf->grad->data, moved->state[0], weight->size, lr,
                  own->beta1, own->beta2, ng_decay_of(moved, own->weight_decay));
}

static int lion_settings(const ng_optimizer *self, ng_optimizer_setting *settings)
{
    const ng_lion_new_options *own = &((const lion *)self)->own;
    settings[0] = (ng_optimizer_setting){.name = "beta1", .value = own->beta1, .below = 1};
    settings[1] = (ng_optimizer_setting){.name = "beta2", .value = own->beta2, .below = 1};
    settings[2] = (ng_optimizer_setting){.name = "weight_decay", .value = own->weight_decay};
    return 3;
}

static const ng_optimizer_class lion_class = {
    .name = "Lion", .size = sizeof(lion), .move = lion_move, .settings = lion_settings};

ng_optimizer *ng_lion_new_with(ng_lion_new_options options)
{
    static const char name[] = "ng_lion_new";
    options.beta1 = ng_option(options.beta1, 0.9);
    options.beta2 = ng_option(options.beta2, 0.99);
    lion *self = (lion *)ng_optimizer_make(&lion_class, name, options.module,
                                           ng_option(options.lr, 1e-4), options.schedule, 1);
    if (self) self->own = options;
    return ng_optimizer_checked(name, (ng_optimizer *)self);
}
