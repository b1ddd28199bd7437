/* Reductions, cumulative sums, matrix products.
 *
 *     ng_tensor *mean = ng_mean(tape, x, .axes = NG_AXES(-1), .keepdim = true);
 *     ng_tensor *off = ng_sub(tape, x, mean);
 *     ng_tensor *gram = ng_matmul(tape, off, off, .transpose_b = true);
 *     ng_tensor *total = ng_sum(tape, gram);
 *
 *     ng_sum(tape, x)                    sum x
 *     ng_sum_squares(tape, x)            sum x^2
 *     ng_mean(tape, x)                   (sum x) / n
 *     ng_variance(tape, x)               (sum (x - mean)^2) / n
 *     ng_max(tape, x)                    max x
 *     ng_min(tape, x)                    min x
 *     ng_prod(tape, x)                   product of x
 *     ng_norm(tape, x)                   (sum |x|^p)^(1/p), p = .order
 *     ng_logsumexp(tape, x)              ln sum e^x
 *     ng_sum_to(tape, x, shape)          sums x to `shape`: the gradient of broadcasting
 *     ng_argmax(tape, x)                 index of the largest element
 *     ng_argmin(tape, x)                 index of the smallest element
 *     ng_cumsum(tape, x)                 x[0] + ... + x[j]
 *     ng_cumprod(tape, x)                x[0] ... x[j]
 *     ng_cosine_similarity(tape, a, b)   a . b / (|a| |b|)
 *     ng_matmul(tape, a, b)              a b
 *     ng_linear(tape, x, weight, bias)   x weight^T + bias
 *     ng_dot(tape, a, b)                 sum a b
 */
#ifndef NORMGRAD_REDUCTIONS_H
#define NORMGRAD_REDUCTIONS_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* Reductions of x over .axes, by default over all axes. A row has the same bits alone and among
 * others; so have columns, but for a single column, which is summed as a row.
 *
 * For .order = HUGE_VAL ng_norm is the largest |x|; for .order = NG_ZERO it is the number of
 * elements that are not 0, without a gradient. Its powers do not overflow.
 *
 * Equal elements of ng_max and ng_min, and of ng_norm with HUGE_VAL, share the gradient. The
 * gradients of ng_prod are right for zeros too. The gradients of ng_norm are 0 at y = 0, and for p
 * below 2 at an element of 0. ng_logsumexp of no element, or of elements that are all -Inf, is -Inf
 * with gradient 0. */
typedef struct {
    ng_axes axes;      /* default: all */
    bool keepdim;      /* keep each reduced axis, with length 1 */
    bool unbiased;     /* ng_variance: divide by n - 1 */
    double correction; /* ng_variance: divide by n - correction, or by 0 if that is negative */
    double order;      /* ng_norm: p, default 2 */
    ng_tensor *x;
} ng_reduce_options;
#define ng_sum(tape, ...) ng_sum_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_sum_squares(tape, ...)                                                                  \
    ng_sum_squares_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_mean(tape, ...) ng_mean_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_variance(tape, ...) ng_variance_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_max(tape, ...) ng_max_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_min(tape, ...) ng_min_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_prod(tape, ...) ng_prod_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_norm(tape, ...) ng_norm_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_logsumexp(tape, ...) ng_logsumexp_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_sum_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_sum_squares_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_mean_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_variance_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_max_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_min_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_prod_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_norm_with(ng_tape *tape, ng_reduce_options options);
NG_API ng_tensor *ng_logsumexp_with(ng_tape *tape, ng_reduce_options options);

/* Sums x over the axes along which `shape` was broadcast to x's shape: the gradient of
 * broadcasting. */
NG_API ng_tensor *ng_sum_to(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* The axis of an operation along one axis; ng_flip (shapes.h) takes several. */
typedef struct {
    ng_axes axes; /* default: the last */
    ng_tensor *x;
} ng_axis_options;

/* The int64 index of the largest, or smallest, element along an axis, which is removed. It is
 * the first of equal elements; if there are NaN, the first NaN. No gradient. */
#define ng_argmax(tape, ...) ng_argmax_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
#define ng_argmin(tape, ...) ng_argmin_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_argmax_with(ng_tape *tape, ng_axis_options options);
NG_API ng_tensor *ng_argmin_with(ng_tape *tape, ng_axis_options options);

/* Cumulative sum, y[j] = x[0] + ... + x[j], and product along an axis. The gradients of the product
 * are right for zeros too. */
#define ng_cumsum(tape, ...) ng_cumsum_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
#define ng_cumprod(tape, ...) ng_cumprod_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_cumsum_with(ng_tape *tape, ng_axis_options options);
NG_API ng_tensor *ng_cumprod_with(ng_tape *tape, ng_axis_options options);

/* y = a . b / (max(|a|, eps) max(|b|, eps)) along an axis, which is removed; a and b have one
 * shape. Infinite elements give no meaningful y. */
typedef struct {
    double eps;   /* default 1e-8 */
    ng_axes axes; /* default: the last */
    ng_tensor *b;
} ng_cosine_similarity_options;
#define ng_cosine_similarity(tape, a, ...)                                                         \
    ng_cosine_similarity_with(tape, a, NG_NAMED(ng_cosine_similarity_options, b, __VA_ARGS__))
NG_API ng_tensor *ng_cosine_similarity_with(ng_tape *tape, ng_tensor *a,
                                            ng_cosine_similarity_options options);

/* ---- Matrix products ---------------------------------------------------------------------- */

/* y = a b: (..., n, k) x (..., k, m) -> (..., n, m); leading dimensions broadcast. A vector a (k)
 * is a row and a vector b (k) a column; y does not have that axis: (..., n, k) x (k) -> (..., n).
 * */
typedef struct {
    bool transpose_a, transpose_b; /* swap the operand's last two dimensions first */
    ng_tensor *b;
} ng_matmul_options;
#define ng_matmul(tape, a, ...) ng_matmul_with(tape, a, NG_NAMED(ng_matmul_options, b, __VA_ARGS__))
NG_API ng_tensor *ng_matmul_with(ng_tape *tape, ng_tensor *a, ng_matmul_options options);

/* y = x weight^T + bias: x (..., in), weight (out, in), bias (out) or NG_NONE -> (..., out). */
NG_API ng_tensor *ng_linear(ng_tape *tape, ng_tensor *x, ng_tensor *weight, ng_tensor *bias);

/* y = sum a b over all elements of a and b, which have one shape: the inner product, one element.
 * */
NG_API ng_tensor *ng_dot(ng_tape *tape, ng_tensor *a, ng_tensor *b);

NG_END_C

#endif
