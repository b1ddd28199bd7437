/* What batch normalization and batch renormalization keep: scale, shift and running statistics. */
#ifndef NG_NORMS_BATCH_STATE_H
#define NG_NORMS_BATCH_STATE_H

#include "nn/module.h"
#include "ops/batch_norm.h"

typedef struct {
    ng_tensor *gamma, *beta; /* (channels), or NG_NONE */
    ng_tensor *mean;         /* (channels): running, or NG_NONE */
    ng_tensor *spread;       /* likewise: a variance, or a deviation */
    ng_tensor *batches;      /* (): how many the running statistics have seen, or NULL */
    ng_group *group;         /* whose ranks share the statistics, or NULL */
    ng_moments *moments;     /* (channels): of the inputs, where they are collected; else NULL */
} ng_batch_state;

/* Registers weight, bias, running_mean, `spread` and num_batches_tracked, unless left out. */
ng_batch_state ng_batch_state_add(ng_module *base, int64_t channels, const char *spread,
                                  bool no_affine, bool no_running_stats);

/* Adds x (N, channels, ...) to state->moments; false with an error. */
bool ng_batch_state_collect(const ng_batch_state *state, ng_tape *tape, const ng_tensor *x);

/* The state of a BatchNorm whose running statistics move in training; NULL of other modules. */
ng_batch_state *ng_batch_norm_state(const ng_module *module);

/* Counts a batch that training has seen. */
void ng_batch_state_count(const ng_batch_state *state, const ng_tape *tape);

/* running += momentum (factor mean over samples - running), for a statistic (channels) or
 * (N, channels). */
void ng_running_move(ng_tensor *running, const ng_tensor *statistic, double factor,
                     double momentum);

/* Moves the running mean and variance toward the means, over the samples of x (N, C, ...), of each
 * sample's mean and unbiased variance, and counts the batch. False if memory runs out. */
bool ng_batch_state_move(const ng_batch_state *state, ng_tape *tape, ng_tensor *x, double momentum);

#endif
