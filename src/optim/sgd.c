/* SGD: g += weight_decay w;  v = momentum v + (1 - dampening) g, v = g at first;
 *      w -= lr (nesterov ? g + momentum v : v) */
#include "optim/optimizer.h"
#include <math.h>

typedef struct {
    ng_optimizer base;
    double momentum, dampening, weight_decay;
    bool nesterov;
} sgd;

static void sgd_move(const ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                     double lr)
{
    const sgd *own = (const sgd *)self;
    const bool first = moved->steps == 1;
    const ng_sgd_step step = {.lr = lr,
                              .weight_decay = ng_decay_of(moved, own->weight_decay),
                              .momentum = own->momentum,
                              .keep = first ? 0 : own->momentum,
                              .fresh = first ? 1 : 1 - own->dampening,
                              .nesterov = own->nesterov};
    const ng_tensor *weight = moved->weight;
    kernels->sgd(weight->data, weight->grad->data, moved->state[0], weight->size, &step);
}

static int sgd_settings(const ng_optimizer *self, ng_setting *settings)
{
    const sgd *own = (const sgd *)self;
    settings[0] = (ng_setting){.name = "momentum", .value = own->momentum, .has_state = true};
    settings[1] = (ng_setting){.name = "dampening", .value = own->dampening};
    settings[2] = (ng_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[3] = (ng_setting){.name = "nesterov", .value = own->nesterov};
    return 4;
}

static const ng_optimizer_class sgd_class = {"SGD", sizeof(sgd), sgd_move, sgd_settings, NULL};

static bool options_accepted(const ng_sgd_new_options *options)
{
    static const char name[] = "ng_sgd_new";
    const bool plain = options->momentum == 0 && !options->nesterov;
    if (!ng_option_idle(name, "dampening", plain && ng_option_given(options->dampening),
                        "with a momentum"))
        return false;
    if (options->nesterov && (options->momentum == 0 || options->dampening != 0)) {
        ng_fail(NG_EVALUE,
                "%s: .nesterov with momentum %g and dampening %g, expected a momentum and no "
                "dampening",
                name, options->momentum, options->dampening);
        return false;
    }
    return ng_option_range(name, "momentum", options->momentum, 0, HUGE_VAL) &&
           ng_option_range(name, "dampening", options->dampening, 0, HUGE_VAL) &&
           ng_option_range(name, "weight_decay", options->weight_decay, 0, HUGE_VAL);
}

ng_optimizer *ng_sgd_new_with(ng_sgd_new_options options)
{
    if (!options_accepted(&options)) return NULL;
    sgd *self = (sgd *)ng_optimizer_make(&sgd_class, "ng_sgd_new", options.module,
                                         ng_option(options.lr, 0.01), options.schedule,
                                         options.momentum > 0 ? 1 : 0);
    if (!self) return NULL;
    self->momentum = options.momentum;
    self->dampening = options.dampening;
    self->weight_decay = options.weight_decay;
    self->nesterov = options.nesterov;
    return &self->base;
}
