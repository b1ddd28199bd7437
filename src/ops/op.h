/* What most ops need: checks of operands, parts of them. */
#ifndef NG_OPS_OP_H
#define NG_OPS_OP_H

#include "core/error.h"
#include "kernels/kernels.h"
#include "tape/tape.h"
#include <normgrad/ops.h>

/* Whether a gradient rule must compute the gradient of input i. */
static inline bool ng_wants(ng_tensor *const *dx, int i) { return dx[i] != NG_NONE; }

/* ng_accepts for ops that only move elements: operands of one dtype, which may be int64. */
bool ng_accepts_any(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs);

/* Whether `index` is not NULL, belongs to this tape or to none, and is int64; `what` is its name in
 * the error, "index" or "labels". */
bool ng_accepts_index(const char *function, ng_tape *tape, const char *what, ng_tensor *index);

/* ng_given for an operand that NG_NONE may leave out. */
bool ng_given_or_none(const char *function, const char *name, const ng_tensor *operand);

/* Whether all elements of an int64 index are from 0 to bound - 1; else an error. */
bool ng_index_within(const char *function, const ng_tensor *index, int64_t bound);

/* `fits`; if that is false, with the error "ng_tril: x is (3,), expected (..., rows, columns)". */
bool ng_expect_shape(bool fits, const char *function, const char *name, const ng_tensor *x,
                     const char *expected);

/* Whether x has a last axis of at least 1 element; there may be no rows. */
bool ng_has_rows(const char *function, const ng_tensor *x);

/* Whether the last dimension of x is even; else an error. */
bool ng_has_halves(const char *function, const ng_tensor *x);

/* Features i n .. (i + 1) n - 1 of x (..., features). */
ng_tensor *ng_features(ng_tape *tape, ng_tensor *x, int64_t i, int64_t n);

/* The largest number of a floating dtype; x, and these for the infinities. */
double ng_largest(ng_dtype dtype);
ng_tensor *ng_finite(ng_tape *tape, ng_tensor *x);

/* x minus a constant near its mean over some axes, so that the rest has a mean near 0: x far from 0
 * then keeps its digits where its mean is subtracted. */
ng_tensor *ng_near_zero(ng_tape *tape, ng_tensor *x, ng_axes axes);

/* x - max x along an axis; x itself if it has no element. The maximum has no gradient, which is
 * right in functions of x that a shift does not change. */
ng_tensor *ng_shifted(ng_tape *tape, ng_tensor *x, int axis);

#endif
