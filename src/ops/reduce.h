/* Reductions along axes. */
#ifndef NG_OPS_REDUCE_H
#define NG_OPS_REDUCE_H

#include "ops/op.h"

/* Whether x and the options are in order, without .unbiased; then marks the reduced axes. */
bool ng_accepts_reduction(const char *function, ng_tape *tape, const ng_reduce_options *options,
                          bool *reduced);

/* A shape without its reduced axes, or with length 1 for each. */
ng_shape ng_reduced_shape(ng_shape shape, const bool *reduced, bool keepdim);

/* sum x^2 in double, in which squares of floats neither overflow nor vanish; reduced axes have
 * length 1. */
ng_tensor *ng_sum_of_squares(ng_tape *tape, const ng_tensor *x, const bool *reduced);

#endif
