/* Adam and AdamW: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 *      w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 * Adam adds weight_decay w to g; AdamW first does w -= lr weight_decay w.
 * With .amsgrad the largest v so far takes v's place. */
#include "optim/optimizer.h"
#include <math.h>

typedef struct {
    ng_optimizer base;
    double beta1, beta2, eps, weight_decay;
    bool decoupled, amsgrad;
} adam;

static void adam_move(const ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const adam *own = (const adam *)self;
    const double t = (double)moved->steps;
    const ng_adam_step step = {.lr = lr,
                               .beta1 = own->beta1,
                               .beta2 = own->beta2,
                               .eps = own->eps,
                               .weight_decay = ng_decay_of(moved, own->weight_decay),
                               .correction1 = 1 - pow(own->beta1, t),
                               .correction2 = 1 - pow(own->beta2, t),
                               .decoupled = own->decoupled};
    const ng_tensor *weight = moved->weight;
    kernels->adam(weight->data, weight->grad->data, moved->state[0], moved->state[1],
                  own->amsgrad ? moved->state[2] : NULL, weight->size, &step);
}

static int adam_settings(const ng_optimizer *self, ng_setting *settings)
{
    const adam *own = (const adam *)self;
    settings[0] = (ng_setting){.name = "beta1", .value = own->beta1};
    settings[1] = (ng_setting){.name = "beta2", .value = own->beta2};
    settings[2] = (ng_setting){.name = "eps", .value = own->eps};
    settings[3] = (ng_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[4] = (ng_setting){.name = "amsgrad", .value = own->amsgrad, .has_state = true};
    return 5;
}

static const ng_optimizer_class adam_class = {"Adam", sizeof(adam), adam_move, adam_settings, NULL};
static const ng_optimizer_class adamw_class = {"AdamW", sizeof(adam), adam_move, adam_settings,
                                               NULL};

static ng_optimizer *make(const ng_optimizer_class *type, const char *name,
                          ng_adam_new_options options, bool decoupled)
{
    options.lr = ng_option(options.lr, 1e-3);
    options.beta1 = ng_option(options.beta1, 0.9);
    options.beta2 = ng_option(options.beta2, 0.999);
    options.eps = ng_option(options.eps, 1e-8);
    if (!ng_option_range(name, "beta1", options.beta1, 0, 1) ||
        !ng_option_range(name, "beta2", options.beta2, 0, 1) ||
        !ng_option_range(name, "eps", options.eps, 0, HUGE_VAL) ||
        !ng_option_range(name, "weight_decay", options.weight_decay, 0, HUGE_VAL))
        return NULL;
    adam *self = (adam *)ng_optimizer_make(type, name, options.module, options.lr, options.schedule,
                                           options.amsgrad ? 3 : 2);
    if (!self) return NULL;
    self->beta1 = options.beta1;
    self->beta2 = options.beta2;
    self->eps = options.eps;
    self->weight_decay = options.weight_decay;
    self->decoupled = decoupled;
    self->amsgrad = options.amsgrad;
    return &self->base;
}

ng_optimizer *ng_adam_new_with(ng_adam_new_options options)
{
    return make(&adam_class, "ng_adam_new", options, false);
}

ng_optimizer *ng_adamw_new_with(ng_adam_new_options options)
{
    options.weight_decay = ng_option(options.weight_decay, 0.01);
    return make(&adamw_class, "ng_adamw_new", options, true);
}
