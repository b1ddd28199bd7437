/* Scale and shift made of a condition. A condition c (N, k) belongs to samples: it holds at all
 * positions of x (N, ..., n) or, with channels, x (N, C, ...). One with the positions of x in the
 * place of its features, (N, ..., k) or (N, k, ...), holds for each. A dimension of 1 broadcasts,
 * and (k) is a condition of all samples. */
#ifndef NG_NORMS_FILM_H
#define NG_NORMS_FILM_H

#include "nn/module.h"

/* Whether c is a condition of k features for x, whose features are along this axis, 1 or -1. */
bool ng_condition_fits(const ng_module *self, const ng_tensor *c, int64_t k, const ng_tensor *x,
                       int axis);

/* Scale and shift that a Linear made of such a condition, in a shape that broadcasts against x. */
ng_tensor *ng_condition_expand(ng_tape *tape, ng_tensor *modulation, const ng_tensor *x, int axis);

/* (1 + scale) x + shift, where `modulation` has shift and scale, of n each, side by side along the
 * axis; without a shift only scale. */
ng_tensor *ng_scale_and_shift(ng_tape *tape, ng_tensor *x, ng_tensor *modulation, int64_t n,
                              int axis, bool no_shift);

/* Registers a FiLM as the child modulation, so that self needs a condition; NULL, and nothing is
 * registered, if options.condition is 0. */
ng_module *ng_add_modulation(ng_module *self, ng_film_new_options options);

/* y scaled and shifted by it; y itself if it is NULL. */
ng_tensor *ng_modulate(ng_module *modulation, ng_tape *tape, ng_tensor *y, const ng_inputs *in);

#endif
