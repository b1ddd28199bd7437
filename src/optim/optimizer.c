/* Collects parameters, keeps their state, and walks over them at each step. */
#include "optim/optimizer.h"
#include <math.h>

/* ---- State --------------------------------------------------------------------------------- */

/* Bytes of one state array of a parameter, in whole cache lines. */
static int64_t state_bytes(const ng_tensor *weight)
{
    const int64_t bytes = weight->size * (int64_t)ng_dtype_bytes(weight->dtype);
    return (bytes + 63) / 64 * 64;
}

/* Makes zeroed state in the weights' present dtypes; on failure the old one stays. */
static bool make_state(const char *function, ng_optimizer *self)
{
    int64_t bytes = 0;
    for (int i = 0; i < self->count; i++) bytes += state_bytes(self->moved[i].weight);
    char *slab = ng_calloc(function, bytes, (size_t)self->states);
    if (!slab) return false;
    ng_free(self->state);
    self->state = slab;
    for (int i = 0; i < self->count; i++) {
        ng_moved *moved = &self->moved[i];
        moved->dtype = moved->weight->dtype;
        for (int k = 0; k < self->states; k++) {
            moved->state[k] = slab;
            slab += state_bytes(moved->weight);
        }
    }
    return true;
}

/* ---- Make and free ------------------------------------------------------------------------- */

static bool collect(const char *function, ng_optimizer *self, ng_module *module)
{
    ng_named_tensor parameter;
    while (ng_module_parameter(module, self->count, &parameter)) self->count++;
    self->moved = ng_calloc(function, self->count, sizeof *self->moved);
    for (int i = 0; self->moved && i < self->count; i++) {
        ng_module_parameter(module, i, &parameter);
        self->moved[i].weight = parameter.tensor;
        self->moved[i].name = parameter.name;
    }
    return self->moved != NULL;
}

ng_optimizer *ng_optimizer_make(const ng_optimizer_class *class, const char *function,
                                ng_module *module, double lr, ng_schedule schedule, int states)
{
    if (!ng_given(function, "module", module)) return NULL;
    if (!ng_option_range(function, "lr", lr, 0, HUGE_VAL)) return NULL;
    if (!ng_schedule_accepted(function, &schedule)) return NULL;
    ng_optimizer *self = ng_calloc(function, 1, class->size);
    if (!self) return NULL;
    self->class = class;
    self->lr = lr;
    self->schedule = schedule;
    self->states = states;
    if (collect(function, self, module) && make_state(function, self)) return self;
    ng_optimizer_free(self);
    return NULL;
}

void ng_optimizer_free(ng_optimizer *optimizer)
{
    if (!optimizer) return;
    ng_free(optimizer->state);
    ng_free(optimizer->moved);
    ng_free(optimizer);
}

/* ---- Step ---------------------------------------------------------------------------------- */

/* The first parameter whose dtype is not that of its state. */
static const ng_moved *first_converted(const ng_optimizer *self)
{
    for (int i = 0; i < self->count; i++)
        if (self->moved[i].weight->dtype != self->moved[i].dtype) return &self->moved[i];
    return NULL;
}

static ng_status follow_dtype(ng_optimizer *self)
{
    const ng_moved *converted = first_converted(self);
    if (!converted) return NG_OK;
    if (self->steps == 0) return make_state("ng_optimizer_step", self) ? NG_OK : ng_newest_status();
    return ng_fail(NG_ESTATE,
                   "ng_optimizer_step: \"%s\" is %s now and was %s at the first step, expected "
                   "no change after it",
                   converted->name, ng_dtype_name(converted->weight->dtype),
                   ng_dtype_name(converted->dtype));
}

/* Moves a parameter that a backward pass has reached since the last step. The gradient of a frozen
 * one is spent too: it is too old for the day it thaws. */
static void move(const ng_optimizer *self, ng_moved *moved, double lr)
{
    ng_tensor *weight = moved->weight;
    if (!weight->grad || weight->grad_spent) return;
    weight->grad_spent = true;
    if (!weight->requires_grad) return;
    moved->steps++;
    self->class->move(self, ng_kernels_for(moved->dtype), moved, lr);
    ng_touch(weight);
}

ng_status ng_optimizer_step(ng_optimizer *optimizer)
{
    if (!ng_given("ng_optimizer_step", "optimizer", optimizer)) return ng_newest_status();
    const ng_status status = follow_dtype(optimizer);
    if (status != NG_OK) return status;

    const double lr = ng_optimizer_lr(optimizer);
    for (int i = 0; i < optimizer->count; i++) move(optimizer, &optimizer->moved[i], lr);
    optimizer->steps++;
    return NG_OK;
}

/* ---- Look and set -------------------------------------------------------------------------- */

double ng_optimizer_lr(const ng_optimizer *optimizer)
{
    if (!ng_given("ng_optimizer_lr", "optimizer", optimizer)) return (double)NAN;
    return optimizer->lr * ng_schedule_factor(&optimizer->schedule, optimizer->steps);
}

ng_status ng_optimizer_set_lr(ng_optimizer *optimizer, double lr)
{
    if (!ng_given("ng_optimizer_set_lr", "optimizer", optimizer)) return ng_newest_status();
    if (!ng_option_range("ng_optimizer_set_lr", "lr", lr, 0, HUGE_VAL)) return ng_newest_status();
    optimizer->lr = lr;
    return NG_OK;
}

int64_t ng_optimizer_steps(const ng_optimizer *optimizer)
{
    return ng_given("ng_optimizer_steps", "optimizer", optimizer) ? optimizer->steps : -1;
}
