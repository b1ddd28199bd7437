/* Batch normalization, for the ops and layers that change it. */
#ifndef NG_OPS_BATCH_NORM_H
#define NG_OPS_BATCH_NORM_H

#include "ops/norm.h"

/* What running statistics move toward, per channel: the batch's mean, and `factor` times its
 * spread, which is its variance. */
typedef struct {
    double *mean, *spread; /* the tape's; NULL: nothing moves */
    double factor;
} ng_batch_moments;

/* A call of a norm over the batch. */
typedef struct ng_batch_call {
    const char *function;
    ng_tensor *x;                             /* (N, C, ...) */
    ng_tensor *gamma, *beta;                  /* (C), or NG_NONE, as are the next two */
    ng_tensor *running_mean, *running_spread; /* a variance, or a deviation: */
    const char *spread;                       /* its name, "running_var" */
    double eps, momentum;
    bool training;
    ng_group *group; /* or NULL */
    ng_tensor *mask; /* 0 at padding; NG_NONE or NULL: there is none */

    /* Or NULL: when the statistics are known, changes the call's gamma and beta, and what running
     * statistics move toward. False with an error. */
    bool (*adapt)(ng_tape *tape, struct ng_batch_call *call, ng_batch_moments *batch);
    const void *settings; /* what adapt needs */
} ng_batch_call;

/* A call of ng_NAME with operands of these names and its options; without a group or a mask. */
#define NG_BATCH_CALL(label, options, running)                                                     \
    {                                                                                              \
        .function = label, .x = x, .gamma = gamma, .beta = beta, .running_mean = running_mean,     \
        .running_spread = (options).running, .spread = #running,                                   \
        .eps = ng_option((options).eps, 1e-5), .momentum = ng_option((options).momentum, 0.1),     \
        .training = (options).training                                                             \
    }

/* Whether operands and settings are in order, but for the mask. */
bool ng_batch_accepts(ng_tape *tape, const ng_batch_call *call);

/* The output, and what ng_batch_move is to move the running statistics toward. */
ng_tensor *ng_batch_norm_run(ng_tape *tape, const ng_batch_call *call, ng_batch_moments *batch);
void ng_batch_move(const ng_batch_call *call, const ng_batch_moments *batch);

/* Both. */
ng_tensor *ng_batch_norm_called(ng_tape *tape, const ng_batch_call *call);

/* Statistics of n numbers: their mean, as the sum of two doubles, and the sum of their squared
 * distances from it. */
typedef struct {
    double n, mean, low, squares;
} ng_moments;

/* Adds those of other numbers: sums[i] becomes that of both. */
void ng_moments_add(const ng_moments *others, ng_moments *sums, int64_t count);

/* Replaces each by that of all ranks' numbers, in a call of the group. `rows` has room for those of
 * all ranks. */
bool ng_moments_combine(ng_group *group, const char *function, ng_moments *moments,
                        ng_moments *rows, int64_t count);

#endif
