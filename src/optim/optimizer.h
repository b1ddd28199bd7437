/* What all optimizers share, and what each of them defines. */
#ifndef NG_OPTIM_OPTIMIZER_H
#define NG_OPTIM_OPTIMIZER_H

#include "core/functions.h"
#include "core/tensor.h"
#include "kernels/kernels.h"
#include "nn/module.h"
#include <math.h>
#include <normgrad/optim.h>

enum { NG_OPTIMIZER_STATES = 3 };

/* A parameter and its state in an optimizer: arrays of its size and dtype. */
typedef struct {
    ng_tensor *weight;
    const char *name;
    ng_dtype dtype;
    int64_t steps;                 /* of this parameter, the present one included */
    double lr_scale, weight_decay; /* of its groups; a decay of NaN is the optimizer's */
    uint32_t arrived;              /* at the last step: how many gradients (core/tensor.h) */
    void *state[NG_OPTIMIZER_STATES];
    void *scratch; /* type->scratch(weight) elements, which all parameters share */
} ng_moved;

/* A setting for the parameters that a pattern matches. */
typedef struct {
    char *pattern;
    bool decays;  /* it is their weight decay, else the factor of their rate */
    double value; /* from 0 */
} ng_parameter_group;

/* The weight decay of a parameter: that of its group, or else `own`. */
static inline double ng_decay_of(const ng_moved *moved, double own)
{
    return moved->weight_decay >= 0 ? moved->weight_decay : own;
}

static inline double ng_norm_of(const ng_kernels *kernels, const void *x, int64_t n)
{
    return sqrt(kernels->dot(x, x, n));
}

/* The trust ratio scale |w| / norm; 1 if either norm is 0 or NaN. */
static inline double ng_trust_ratio(double scale, double w, double norm)
{
    return w > 0 && norm > 0 ? scale * w / norm : 1;
}

/* A setting of an optimizer, as a number. */
typedef struct {
    const char *name;
    double value;
    double below;   /* it is from 0 to below this; 0: any finite number from 0 */
    bool has_state; /* above 0 it needs a state array */
} ng_optimizer_setting;
enum { NG_SETTINGS = 16 }; /* at most */

typedef struct {
    const char *name; /* "Adam" */
    size_t size;      /* of the struct that embeds ng_optimizer */

    /* Moves one parameter along its gradient by the rate lr. */
    void (*move)(ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved, double lr);

    /* Lists its own settings, with their ranges, and returns their number. */
    int (*settings)(const ng_optimizer *self, ng_optimizer_setting *settings);

    /* The elements of memory that a move of this parameter needs; NULL: none. */
    int64_t (*scratch)(const ng_tensor *weight);
} ng_optimizer_class;

struct ng_optimizer {
    const ng_optimizer_class *type;
    ng_module *module;
    uint64_t structure;  /* the version of the module's tree when its parameters were collected */
    double lr, first_lr; /* the base rate; that it was made with */
    ng_schedule schedule;
    int64_t steps;
    int states;  /* per parameter */
    void *state; /* one slab for all, zeroed at first, and the scratch behind it */
    ng_moved *moved;
    int count;
    ng_parameter_group *groups; /* in the order they were given */
    int n_groups;
    ng_projection *projection; /* or NULL */
    void *context;             /* of the projection */
    int64_t corrected;         /* the step of Adam's corrections, which parameters share */
    double correction1, correction2;
};

/* Adam's step number moved->steps, without decay. */
static inline ng_adam_step ng_adam_step_of(ng_optimizer *self, const ng_moved *moved, double lr,
                                           double beta1, double beta2, double eps)
{
    if (self->corrected != moved->steps) {
        self->corrected = moved->steps;
        self->correction1 = 1 - ng_power(beta1, (double)moved->steps);
        self->correction2 = 1 - ng_power(beta2, (double)moved->steps);
    }
    return (ng_adam_step){.lr = lr,
                          .beta1 = beta1,
                          .beta2 = beta2,
                          .eps = eps,
                          .correction1 = self->correction1,
                          .correction2 = self->correction2};
}

/* An optimizer of type->size with its parameters collected and its state made. */
ng_optimizer *ng_optimizer_make(const ng_optimizer_class *type, const char *function,
                                ng_module *module, double lr, ng_schedule schedule, int states);

/* The optimizer, if its own settings are in their ranges; else frees it and returns NULL with an
 * error. */
ng_optimizer *ng_optimizer_checked(const char *function, ng_optimizer *self);

/* Lists all settings, with those of the schedule and without those of groups; returns their
 * number. */
int ng_optimizer_settings(const ng_optimizer *self, ng_optimizer_setting settings[NG_SETTINGS]);

/* Collects the parameters again if the module's tree has changed, and follows a change of dtype
 * before the first step; false with an error in the name of `function`. */
bool ng_optimizer_current(const char *function, ng_optimizer *self);

/* Whether a gradient has arrived since the last step, so that the next one will use it. */
bool ng_has_new_gradient(const ng_moved *moved);

/* Whether the settings of a schedule are valid; else an error naming `function`. */
bool ng_schedule_accepted(const char *function, const ng_schedule *schedule);

#endif
