/* Adam and AdamW: m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
 *      w -= lr (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
 * Adam adds weight_decay w to g; AdamW first does w -= lr weight_decay w.
 * With .amsgrad the largest v so far takes v's place. */
#include "optim/optimizer.h"

typedef struct {
    ng_optimizer base;
    ng_adam_new_options own; /* AdamW's too */
    bool decoupled;
} adam;

static void adam_move(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                      double lr)
{
    const ng_adam_new_options *own = &((const adam *)self)->own;
    ng_adam_step step = ng_adam_step_of(self, moved, lr, own->beta1, own->beta2, own->eps);
    step.weight_decay = ng_decay_of(moved, own->weight_decay);
    step.decoupled = ((const adam *)self)->decoupled;
    const ng_tensor *weight = moved->weight;
    kernels->adam(weight->data, weight->leaf->grad->data, moved->state[0], moved->state[1],
                  own->amsgrad ? moved->state[2] : NULL, weight->size, &step);
}

static int adam_settings(const ng_optimizer *self, ng_optimizer_setting *settings)
{
    const ng_adam_new_options *own = &((const adam *)self)->own;
    settings[0] = (ng_optimizer_setting){.name = "beta1", .value = own->beta1, .below = 1};
    settings[1] = (ng_optimizer_setting){.name = "beta2", .value = own->beta2, .below = 1};
    settings[2] = (ng_optimizer_setting){.name = "eps", .value = own->eps};
    settings[3] = (ng_optimizer_setting){.name = "weight_decay", .value = own->weight_decay};
    settings[4] =
        (ng_optimizer_setting){.name = "amsgrad", .value = own->amsgrad, .has_state = true};
    return 5;
}

static const ng_optimizer_class adam_class = {
    .name = "Adam", .size = sizeof(adam), .move = adam_move, .settings = adam_settings};
static const ng_optimizer_class adamw_class = {
    .name = "AdamW", .size = sizeof(adam), .move = adam_move, .settings = adam_settings};

static ng_optimizer *make(const ng_optimizer_class *type, const char *name,
                          ng_adam_new_options options, bool decoupled)
{
    options.beta1 = ng_option(options.beta1, 0.9);
    options.beta2 = ng_option(options.beta2, 0.999);
    options.eps = ng_option(options.eps, 1e-8);
    adam *self = (adam *)ng_optimizer_make(type, name, options.module, ng_option(options.lr, 1e-3),
                                           options.schedule, options.amsgrad ? 3 : 2);
    if (!self) return NULL;
    self->own = options;
    self->decoupled = decoupled;
    return ng_optimizer_checked(name, &self->base);
}

ng_optimizer *ng_adam_new_with(ng_adam_new_options options)
{
    return make(&adam_class, "ng_adam_new", options, false);
}

ng_optimizer *ng_adamw_new_with(ng_module *module, ng_adamw_new_options options)
{
    const ng_adam_new_options same = {.lr = options.lr,
                                      .beta1 = options.beta1,
                                      .beta2 = options.beta2,
                                      .eps = options.eps,
                                      .weight_decay = options.weight_decay,
                                      .amsgrad = options.amsgrad,
                                      .schedule = options.schedule,
                                      .module = module};
    return make(&adamw_class, "ng_adamw_new", same, true);
}
