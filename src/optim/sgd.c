/* SGD: g += weight_decay w;  v = momentum v + (1 - dampening) g, v = g at first;
 *      w -= lr (nesterov ? g + momentum v : v) */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    ng_sgd_new_options own;
} sgd;

static void sgd_move(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                     double lr)
{
    const ng_sgd_new_options *own = &((const sgd *)self)->own;
    const bool first = moved->steps == 1;
    const ng_sgd_step step = {.lr = lr,
                              .weight_decay = ng_decay_of(moved, own->weight_decay),
                              .momentum = own->momentum,
                              .keep = first ? 0 : own->momentum,
                              .fresh = first ? 1 : 1 - own->dampening,
                              .nesterov = own->nesterov};
    const ng_tensor *weight = moved->weight;
    kernels->sgd(weight->data, weight->leaf->grad->data, moved->state[0], weight->size, &step);
}

static int sgd_settings(const ng_optimizer *self, ng_optimizer_setting *settings)
{
    const ng_sgd_new_options *own = &((const sgd *)self)->own;
    settings[0] =
        (ng_optimizer_setting){.name = "momentum", .value = own->momentum, .has_state = true};
    settings[1] = (ng_optimizer_setting){.name = "dampening", .value = own->dampening};
    settings[2] = (ng_optimizer_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[3] = (ng_optimizer_setting){.name = "nesterov", .value = own->nesterov};
    return 4;
}

static const ng_optimizer_class sgd_class = {
    .name = "SGD", .size = sizeof(sgd), .move = sgd_move, .settings = sgd_settings};

static bool options_accepted(const char *name, const ng_sgd_new_options *options)
{
    const bool plain = options->momentum == 0 && !options->nesterov;
    if (!ng_option_idle(name, "dampening", plain && ng_option_given(options->dampening),
                        "with a momentum"))
        return false;
    if (!options->nesterov || (options->momentum != 0 && options->dampening == 0)) return true;
    ng_fail(NG_EVALUE,
            "%s: .nesterov with momentum %g and dampening %g, expected a momentum and no "
            "dampening",
            name, options->momentum + 0, options->dampening + 0);
    return false;
}

ng_optimizer *ng_sgd_new_with(ng_sgd_new_options options)
{
    static const char name[] = "ng_sgd_new";
    if (!options_accepted(name, &options)) return NULL;
    sgd *self =
        (sgd *)ng_optimizer_make(&sgd_class, name, options.module, ng_option(options.lr, 0.01),
                                 options.schedule, options.momentum > 0 ? 1 : 0);
    if (self) self->own = options;
    return ng_optimizer_checked(name, (ng_optimizer *)self);
}
