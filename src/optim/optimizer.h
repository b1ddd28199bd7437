/* What all optimizers share, and what one of them has to say. */
#ifndef NG_OPTIM_OPTIMIZER_H
#define NG_OPTIM_OPTIMIZER_H

#include "core/tensor.h"
#include "kernels/kernels.h"
#include "nn/module.h"
#include <normgrad/optim.h>

enum { NG_OPTIMIZER_STATES = 3 };

/* A parameter, and what an optimizer remembers of it: arrays of its size and dtype. */
typedef struct {
    ng_tensor *weight;
    const char *name;
    ng_dtype dtype;
    int64_t steps;                 /* taken by this parameter, the present one included */
    double lr_scale, weight_decay; /* of its group; NaN: the optimizer's own */
    uint32_t grad_epoch;           /* of `weight` at the last step (core/tensor.h) */
    void *state[NG_OPTIMIZER_STATES];
} ng_moved;

/* Settings for the parameters that a pattern matches. */
typedef struct {
    char *pattern;
    double lr_scale, weight_decay; /* NaN: the optimizer's own */
} ng_parameter_group;

/* The weight decay of a parameter, `own` where its group says nothing. */
static inline double ng_decay_of(const ng_moved *moved, double own)
{
    return moved->weight_decay >= 0 ? moved->weight_decay : own;
}

/* A number that an optimizer was made with. */
typedef struct {
    const char *name;
    double value;
    bool has_state; /* above 0 it needs a state array of its own */
} ng_setting;
enum { NG_SETTINGS = 16 }; /* at most */

typedef struct {
    const char *name; /* "Adam" */
    size_t size;      /* of the struct that embeds ng_optimizer */

    /* Moves one parameter along its gradient by the rate lr. */
    void (*move)(const ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                 double lr);

    /* Lists its own settings and tells how many they are. */
    int (*settings)(const ng_optimizer *self, ng_setting *settings);
} ng_optimizer_class;

struct ng_optimizer {
    const ng_optimizer_class *type;
    ng_module *module;
    int64_t parameters;  /* of the module's tree when they were collected */
    double lr, first_lr; /* the base rate; that it was made with */
    ng_schedule schedule;
    int64_t steps;
    int states;  /* per parameter */
    void *state; /* one slab for all, zeroed at first */
    ng_moved *moved;
    int count;
    ng_parameter_group *groups; /* in the order they were given */
    int n_groups;
};

/* An optimizer of type->size with its parameters collected and its state made. */
ng_optimizer *ng_optimizer_make(const ng_optimizer_class *type, const char *function,
                                ng_module *module, double lr, ng_schedule schedule, int states);

/* The numbers that an optimizer was made with, the schedule's too, not its groups'; how many. */
int ng_optimizer_settings(const ng_optimizer *self, ng_setting settings[NG_SETTINGS]);

/* Takes up parameters that the module has got since, and a dtype that it has changed to before the
 * first step; false with an error in the name of `function`. */
bool ng_optimizer_current(const char *function, ng_optimizer *self);

/* Whether a gradient has arrived since the last step, so that the next one will use it. */
bool ng_has_new_gradient(const ng_moved *moved);

/* Whether a schedule makes sense; else an error naming `function`. */
bool ng_schedule_accepted(const char *function, const ng_schedule *schedule);

#endif
