/* RMSProp: s = alpha s + (1 - alpha) g^2 (minus the square of the running mean of g if centered);
 *      v = momentum v + g / (sqrt(s) + eps);  w -= lr v */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    ng_rmsprop_new_options own;
} rmsprop;

/* The state holds s, then the mean if centered, then v if there is a momentum. */
static void rmsprop_move(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                         double lr)
{
    const ng_rmsprop_new_options *own = &((const rmsprop *)self)->own;
    const ng_rmsprop_step step = {.lr = lr,
                                  .alpha = own->alpha,
                                  .eps = own->eps,
                                  .weight_decay = ng_decay_of(moved, own->weight_decay),
                                  .momentum = own->momentum,
                                  .centered = own->centered};
    const ng_tensor *weight = moved->weight;
    void *mean = own->centered ? moved->state[1] : NULL;
    void *velocity = own->momentum > 0 ? moved->state[own->centered ? 2 : 1] : NULL;
    kernels->rmsprop(weight->data, weight->leaf->grad->data, moved->state[0], mean, velocity,
                     weight->size, &step);
}

static int rmsprop_settings(const ng_optimizer *self, ng_optimizer_setting *settings)
{
    const ng_rmsprop_new_options *own = &((const rmsprop *)self)->own;
    settings[0] = (ng_optimizer_setting){.name = "alpha", .value = own->alpha, .below = 1};
    settings[1] = (ng_optimizer_setting){.name = "eps", .value = own->eps};
    settings[2] =
        (ng_optimizer_setting){.name = "momentum", .value = own->momentum, .has_state = true};
    settings[3] = (ng_optimizer_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[4] =
        (ng_optimizer_setting){.name = "centered", .value = own->centered, .has_state = true};
    return 5;
}

static const ng_optimizer_class rmsprop_class = {
    .name = "RMSProp", .size = sizeof(rmsprop), .move = rmsprop_move, .settings = rmsprop_settings};

ng_optimizer *ng_rmsprop_new_with(ng_rmsprop_new_options options)
{
    static const char name[] = "ng_rmsprop_new";
    options.alpha = ng_option(options.alpha, 0.99);
    options.eps = ng_option(options.eps, 1e-8);
    const int states = 1 + (options.centered ? 1 : 0) + (options.momentum > 0 ? 1 : 0);
    rmsprop *self =
        (rmsprop *)ng_optimizer_make(&rmsprop_class, name, options.module,
                                     ng_option(options.lr, 0.01), options.schedule, states);
    if (self) self->own = options;
    return ng_optimizer_checked(name, (ng_optimizer *)self);
}
