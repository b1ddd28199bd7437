/* LARS: r = trust |w| / (|g| + weight_decay |w|);
 *      v = momentum v + lr r (g + weight_decay w);  w -= v */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    ng_lars_new_options own;
} lars;

static void lars_move(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const ng_lars_new_options *own = &((const lars *)self)->own;
    const ng_tensor *weight = moved->weight;
    const double decay = ng_decay_of(moved, own->weight_decay);
    double ratio = 1;
    if (!own->matrices_only || weight->shape.rank >= 2) {
        const double w = ng_norm_of(kernels, weight->data, weight->size);
        const double g = ng_norm_of(kernels, weight->leaf->grad->data, weight->size);
        ratio = ng_trust_ratio(own->trust, w, g + decay * w);
    }
    const ng_sgd_step step = {
        .lr = 1, .weight_decay = decay, .keep = own->momentum, .fresh = lr * ratio};
    kernels->sgd(weight->data, weight->leaf->grad->data, moved->state[0], weight->size, &step);
}

static int lars_settings(const ng_optimizer *self, ng_optimizer_setting *settings)
{
    const ng_lars_new_options *own = &((const lars *)self)->own;
    settings[0] = (ng_optimizer_setting){.name = "momentum", .value = own->momentum};
    settings[1] = (ng_optimizer_setting){.name = "trust", .value = own->trust};
    settings[2] = (ng_optimizer_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[3] = (ng_optimizer_setting){.name = "matrices_only", .value = own->matrices_only};
    return 4;
}

static const ng_optimizer_class lars_class = {
    .name = "LARS", .size = sizeof(lars), .move = lars_move, .settings = lars_settings};

ng_optimizer *ng_lars_new_with(ng_lars_new_options options)
{
    static const char name[] = "ng_lars_new";
    options.momentum = ng_option(options.momentum, 0.9);
    options.trust = ng_option(options.trust, 1e-3);
    lars *self = (lars *)ng_optimizer_make(&lars_class, name, options.module,
                                           ng_option(options.lr, 1), options.schedule, 1);
    if (self) self->own = options;
    return ng_optimizer_checked(name, (ng_optimizer *)self);
}
