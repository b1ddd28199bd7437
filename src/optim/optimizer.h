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
    int64_t steps; /* taken by this parameter, the present one included */
    uint32_t seen; /* the passes that had reached its gradient at the last step */
    void *state[NG_OPTIMIZER_STATES];
} ng_moved;

typedef struct {
    const char *name; /* "Adam" */
    size_t size;      /* of the struct that embeds ng_optimizer */

    /* Moves one parameter along its gradient by the rate lr. */
    void (*move)(const ng_optimizer *self, const ng_kernels *kernels, const ng_moved *moved,
                 double lr);
} ng_optimizer_class;

struct ng_optimizer {
    const ng_optimizer_class *type;
    ng_module *module;
    int64_t parameters; /* of the module's tree when they were collected */
    double lr; /* the base rate */
    ng_schedule schedule;
    int64_t steps;
    int states;  /* per parameter */
    void *state; /* one slab for all, zeroed at first */
    ng_moved *moved;
    int count;
};

/* An optimizer of type->size with its parameters collected and its state made. */
ng_optimizer *ng_optimizer_make(const ng_optimizer_class *type, const char *function,
                                ng_module *module, double lr, ng_schedule schedule, int states);

/* Whether a schedule makes sense; else an error naming `function`. */
bool ng_schedule_accepted(const char *function, const ng_schedule *schedule);

#endif
