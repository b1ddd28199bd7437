/* Differentiable operations. Each takes the tape that will own its result, returns NULL with an
 * error on wrong input, and works in float and in double (all operands of one dtype).
 *
 * (...) in a shape means any leading dimensions. Settings are named and optional:
 * ng_sum(tape, x, .axes = NG_AXES(0), .keepdim = true).
 *
 * Axes: where a function has a default axis, axes are the setting .axes. Reductions take any number
 * and default to every axis; others take one and default to the last. Where there is no default
 * (ng_transpose, ng_slice, ng_concat, ng_squeeze...) the axis is an argument. Negative ones count
 * from the last.
 */
#ifndef NORMGRAD_OPS_H
#define NORMGRAD_OPS_H

#include <normgrad/group.h>

NG_BEGIN_C

/* ---- Constants on the tape ---------------------------------------------------------------- */

/* Every element is `value`; 0 or 1, in the shape and dtype of x. */
NG_API ng_tensor *ng_full(ng_tape *tape, ng_dtype dtype, ng_shape shape, double value);
NG_API ng_tensor *ng_zeros_like(ng_tape *tape, const ng_tensor *x);
NG_API ng_tensor *ng_ones_like(ng_tape *tape, const ng_tensor *x);

/* `count` numbers, row by row, as in ng_tensor_from:
 *     ng_from(tape, NG_F32, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4)) */
NG_API ng_tensor *ng_from(ng_tape *tape, ng_dtype dtype, ng_shape shape, const double *values,
                          int64_t count);

/* Random numbers of the tape's stream (ng_tape_seed), which dropout uses too: normal with mean and
 * deviation; uniform in [low, high). The checker gets the same numbers in each of its runs. */
NG_API ng_tensor *ng_normal(ng_tape *tape, ng_dtype dtype, ng_shape shape, double mean,
                            double deviation);
NG_API ng_tensor *ng_uniform(ng_tape *tape, ng_dtype dtype, ng_shape shape, double low,
                             double high);

/* Draws an index (int64) for each row of probabilities (..., classes) -> (...), from that stream.
 * An index is as likely as its share of the row's sum, which need not be 1. A row of zeros, or with
 * a number below 0, Inf or NaN, is NG_EVALUE. No gradient. For several draws, with replacement,
 * repeat the rows (ng_repeat). PyTorch's multinomial.
 *     next = ng_sample(tape, ng_softmax(tape, logits)) */
NG_API ng_tensor *ng_sample(ng_tape *tape, ng_tensor *probabilities);

/* from, from + step, from + 2 step... before `to`; the identity matrix (n, n). A step away from
 * `to` gives no element; a step of 0 is NG_EVALUE. */
NG_API ng_tensor *ng_arange(ng_tape *tape, ng_dtype dtype, double from, double to, double step);
NG_API ng_tensor *ng_eye(ng_tape *tape, ng_dtype dtype, int64_t n);

/* int64 labels (...) -> (..., classes): 1 at the label, else 0. A label outside
 * 0 .. classes - 1 is NG_EVALUE. */
NG_API ng_tensor *ng_one_hot(ng_tape *tape, ng_dtype dtype, ng_tensor *labels, int64_t classes);

/* y = x in another dtype; its gradient has x's dtype. NG_I64 gives a constant, rounded as in
 * ng_tensor_from. */
NG_API ng_tensor *ng_cast(ng_tape *tape, ng_tensor *x, ng_dtype dtype);

/* ---- Arithmetic, broadcasting as NumPy does -----------------------------------------------
 *
 * Axes are aligned at the last one, and an axis of length 1 is repeated: (8, 1) - (8) is (8, 8),
 * each of one with each of the other. The losses below refuse operands of different shapes.
 *
 * If the operands of a maximum or minimum are equal, or one is NaN, each gets half the gradient. */

NG_API ng_tensor *ng_add(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a + b */
NG_API ng_tensor *ng_sub(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a - b */
NG_API ng_tensor *ng_mul(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a * b */
NG_API ng_tensor *ng_div(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a / b */
NG_API ng_tensor *ng_pow(ng_tape *tape, ng_tensor *a, ng_tensor *b);     /* y = a^b, a >= 0 */
NG_API ng_tensor *ng_maximum(ng_tape *tape, ng_tensor *a, ng_tensor *b); /* y = max(a, b) */
NG_API ng_tensor *ng_minimum(ng_tape *tape, ng_tensor *a, ng_tensor *b); /* y = min(a, b) */

NG_API ng_tensor *ng_add_scalar(ng_tape *tape, ng_tensor *x, double c);  /* y = x + c */
NG_API ng_tensor *ng_mul_scalar(ng_tape *tape, ng_tensor *x, double c);  /* y = c x */
NG_API ng_tensor *ng_pow_scalar(ng_tape *tape, ng_tensor *x, double p);  /* y = x^p */
NG_API ng_tensor *ng_scalar_sub(ng_tape *tape, double c, ng_tensor *x);  /* y = c - x */
NG_API ng_tensor *ng_scalar_div(ng_tape *tape, double c, ng_tensor *x);  /* y = c / x */

/* y = sum_i weights[i] tensors[i] in one pass over `count` tensors of one shape, at least one:
 *     ng_combine(tape, (ng_tensor *[]){x, k1, k2}, (double[]){1, h / 2, h / 2}, 3) */
NG_API ng_tensor *ng_combine(ng_tape *tape, ng_tensor *const *tensors, const double *weights,
                             int count);

/* ---- Functions of each element ------------------------------------------------------------
 *
 * They are the library's own: an element has the same bits in any place of a tensor, and for every
 * processor with fused multiply-add, compiler and C library; in double on any processor. `make
 * accuracy` measures their errors in ulp (units in the last place). Of all floats the largest is
 *     pow 0.7    exp, log 1.1    erf 1.2    expm1, tanh 1.5    log1p, sin, cos 1.6    atan, erfc 2
 * (up to 3 without fused multiply-add), of 10^8 random numbers in double
 *     log, pow 1    exp 1.1    log1p 1.5    sin, cos 1.6    expm1, atan 2.4    tanh, erf 2.8
 *     erfc 6.5
 * Activations made of them have errors up to 6 ulp in float and 8 in double, and more where e^x is
 * below the smallest normal number: there silu, mish and gelu_tanh keep only the digits of e^x. */

NG_API ng_tensor *ng_neg(ng_tape *tape, ng_tensor *x);        /* y = -x */
NG_API ng_tensor *ng_abs(ng_tape *tape, ng_tensor *x);        /* y = |x|, slope 0 at 0 */
NG_API ng_tensor *ng_square(ng_tape *tape, ng_tensor *x);     /* y = x^2 */
NG_API ng_tensor *ng_reciprocal(ng_tape *tape, ng_tensor *x); /* y = 1 / x */
NG_API ng_tensor *ng_exp(ng_tape *tape, ng_tensor *x);        /* y = e^x */
NG_API ng_tensor *ng_log(ng_tape *tape, ng_tensor *x);        /* y = ln x */
NG_API ng_tensor *ng_sqrt(ng_tape *tape, ng_tensor *x);       /* y = x^(1/2) */
NG_API ng_tensor *ng_rsqrt(ng_tape *tape, ng_tensor *x);      /* y = x^(-1/2) */
NG_API ng_tensor *ng_sin(ng_tape *tape, ng_tensor *x);        /* y = sin x */
NG_API ng_tensor *ng_cos(ng_tape *tape, ng_tensor *x);        /* y = cos x */
NG_API ng_tensor *ng_erf(ng_tape *tape, ng_tensor *x);        /* y = 2/sqrt(pi) int_0^x e^-t^2 dt */
NG_API ng_tensor *ng_erfc(ng_tape *tape, ng_tensor *x);       /* y = 1 - erf x, also of large x */
NG_API ng_tensor *ng_atan(ng_tape *tape, ng_tensor *x);       /* y = arctan x */
NG_API ng_tensor *ng_log1p(ng_tape *tape, ng_tensor *x);      /* y = ln(1 + x), also of small x */
NG_API ng_tensor *ng_expm1(ng_tape *tape, ng_tensor *x);      /* y = e^x - 1, also of small x */
NG_API ng_tensor *ng_sign(ng_tape *tape, ng_tensor *x);       /* y = -1, 0 or 1; slope 0 */
NG_API ng_tensor *ng_floor(ng_tape *tape, ng_tensor *x);      /* y = integer <= x; slope 0 */
NG_API ng_tensor *ng_clamp(ng_tape *tape, ng_tensor *x, double low, double high);
                         /* y = min(max(x, low), high); slope 1 at low, at high, and at a NaN */

/* ---- Activations --------------------------------------------------------------------------
 *
 * GELU, with its approximation by tanh: Hendrycks & Gimpel 2016. At a kink at 0 all derivatives are
 * those from the left. */

NG_API ng_tensor *ng_tanh(ng_tape *tape, ng_tensor *x);       /* y = (e^x - e^-x) / (e^x + e^-x) */
NG_API ng_tensor *ng_sigmoid(ng_tape *tape, ng_tensor *x);    /* y = 1 / (1 + e^-x) */
NG_API ng_tensor *ng_relu(ng_tape *tape, ng_tensor *x);       /* y = max(x, 0), slope 0 at 0 */
NG_API ng_tensor *ng_leaky_relu(ng_tape *tape, ng_tensor *x, double slope);
                                                              /* y = x > 0 ? x : slope x */
NG_API ng_tensor *ng_gelu(ng_tape *tape, ng_tensor *x);       /* y = x/2 (1 + erf(x / sqrt 2)) */
NG_API ng_tensor *ng_gelu_tanh(ng_tape *tape, ng_tensor *x);
                                            /* y = x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
NG_API ng_tensor *ng_silu(ng_tape *tape, ng_tensor *x);       /* y = x sigmoid(x) */
NG_API ng_tensor *ng_softplus(ng_tape *tape, ng_tensor *x);   /* y = ln(1 + e^x) */
NG_API ng_tensor *ng_softsign(ng_tape *tape, ng_tensor *x);   /* y = x / (1 + |x|) */
NG_API ng_tensor *ng_elu(ng_tape *tape, ng_tensor *x, double alpha);
                                                              /* y = x > 0 ? x : alpha (e^x - 1) */
NG_API ng_tensor *ng_celu(ng_tape *tape, ng_tensor *x, double alpha);
                                                   /* y = x > 0 ? x : alpha (e^(x / alpha) - 1) */
NG_API ng_tensor *ng_prelu(ng_tape *tape, ng_tensor *x, ng_tensor *slope);
       /* y = x > 0 ? x : slope x; slope (1), or (C) for the channels of x (N, C, ...).
        * He et al. 2015 */
NG_API ng_tensor *ng_selu(ng_tape *tape, ng_tensor *x);
                /* y = 1.0507 elu(x, 1.6733), which keeps mean 0 and variance 1;
                 * Klambauer et al. 2017 */
NG_API ng_tensor *ng_mish(ng_tape *tape, ng_tensor *x);       /* y = x tanh(softplus(x)) */

/* Piecewise linear; the slope at a corner of the clamp is that inside. */
NG_API ng_tensor *ng_hardtanh(ng_tape *tape, ng_tensor *x);   /* y = min(max(x, -1), 1) */
NG_API ng_tensor *ng_hardsigmoid(ng_tape *tape, ng_tensor *x);
                                                          /* y = min(max(x, -3), 3) / 6 + 1/2 */
NG_API ng_tensor *ng_hardswish(ng_tape *tape, ng_tensor *x);  /* y = x hardsigmoid(x) */

/* y = a sigmoid(b) of the halves a and b of the last dimension: x (..., 2 n) -> (..., n).
 * Dauphin et al. 2017. */
NG_API ng_tensor *ng_glu(ng_tape *tape, ng_tensor *x);

/* y = silu(a) b of the halves a and b of the last dimension: x (..., 2 n) -> (..., n).
 * Shazeer 2020. */
NG_API ng_tensor *ng_swiglu(ng_tape *tape, ng_tensor *x);

/* ---- Reductions ---------------------------------------------------------------------------
 *
 * Reductions of x over .axes (default: every axis). .keepdim keeps each reduced axis with length
 * 1. */
typedef struct {
    ng_axes axes;
    bool keepdim;
    bool unbiased; /* ng_variance: divide by n - 1, not n */
    double correction; /* ng_variance: divide by n - correction, or 0 if that is negative */
    double order; /* ng_norm: default 2 */
    ng_tensor *x;
} ng_reduce_options;
#define ng_sum(tape, ...) ng_sum_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_sum_squares(tape, ...) \
    ng_sum_squares_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_mean(tape, ...) ng_mean_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_variance(tape, ...) ng_variance_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_max(tape, ...) ng_max_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_min(tape, ...) ng_min_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_prod(tape, ...) ng_prod_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_norm(tape, ...) ng_norm_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
#define ng_logsumexp(tape, ...) ng_logsumexp_with(tape, NG_NAMED(ng_reduce_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_sum_with(ng_tape *tape, ng_reduce_options options);  /* y = sum x */
NG_API ng_tensor *ng_sum_squares_with(ng_tape *tape, ng_reduce_options options);
                                                /* y = sum x^2, in one pass */
NG_API ng_tensor *ng_mean_with(ng_tape *tape, ng_reduce_options options); /* y = (sum x) / n */
NG_API ng_tensor *ng_variance_with(ng_tape *tape, ng_reduce_options options);
                                                /* y = (sum (x - mean)^2) / n, in two passes */
NG_API ng_tensor *ng_max_with(ng_tape *tape, ng_reduce_options options);
                                                /* y = max x; equal elements share the gradient */
NG_API ng_tensor *ng_min_with(ng_tape *tape, ng_reduce_options options);
                                                /* y = min x; equal elements share the gradient */
NG_API ng_tensor *ng_prod_with(ng_tape *tape, ng_reduce_options options);
                /* y = product of x; gradients of any order are right for zeros too */
NG_API ng_tensor *ng_norm_with(ng_tape *tape, ng_reduce_options options);
                /* y = (sum |x|^p)^(1/p), p = .order, without overflow of the powers; gradients of
                 * any order are 0 at y = 0. p = HUGE_VAL: max |x|, equal elements share the
                 * gradient; p = NG_ZERO: the number of elements that are not 0, without slope. For
                 * p below 2 the gradient to an element of 0 is 0 */
NG_API ng_tensor *ng_logsumexp_with(ng_tape *tape, ng_reduce_options options);
                /* y = ln sum e^x, shifted by max x; -Inf with gradient 0 if there is no element or
                 * all are -Inf */

/* Sums x over the axes along which `shape` was broadcast to x's shape: the gradient of
 * broadcasting. */
NG_API ng_tensor *ng_sum_to(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* One axis of x, or of ng_flip any number. */
typedef struct {
    ng_axes axes; /* default: the last */
    ng_tensor *x;
} ng_axis_options;

/* Index (int64) of the largest or smallest element along an axis, which is removed; the first of
 * equal ones, or the first NaN. No gradient. */
#define ng_argmax(tape, ...) ng_argmax_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
#define ng_argmin(tape, ...) ng_argmin_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_argmax_with(ng_tape *tape, ng_axis_options options);
NG_API ng_tensor *ng_argmin_with(ng_tape *tape, ng_axis_options options);

/* y[j] = x[0] + ... + x[j] along an axis; the product x[0] ... x[j], whose gradients of any order
 * are right for zeros too. */
#define ng_cumsum(tape, ...) ng_cumsum_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
#define ng_cumprod(tape, ...) ng_cumprod_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_cumsum_with(ng_tape *tape, ng_axis_options options);
NG_API ng_tensor *ng_cumprod_with(ng_tape *tape, ng_axis_options options);

/* y = a . b / (max(|a|, eps) max(|b|, eps)) along an axis, which is removed; a and b of one shape.
 * With an infinite element y has no meaning.
 *
 * eps  default 1e-8 */
typedef struct {
    double eps;
    ng_axes axes; /* default: the last */
    ng_tensor *b;
} ng_cosine_similarity_options;
#define ng_cosine_similarity(tape, a, ...)                                                        \
    ng_cosine_similarity_with(tape, a, NG_NAMED(ng_cosine_similarity_options, b, __VA_ARGS__))
NG_API ng_tensor *ng_cosine_similarity_with(ng_tape *tape, ng_tensor *a,
                                            ng_cosine_similarity_options options);

/* ---- Matrix products ---------------------------------------------------------------------- */

/* y = a b: (..., n, k) x (..., k, m) -> (..., n, m), leading dimensions broadcasting.
 * .transpose_a and .transpose_b swap the last two dimensions of that operand. A vector a (k) is a
 * row, a vector b (k) a column, without that axis in y: (..., n, k) x (k) -> (..., n). */
typedef struct {
    bool transpose_a, transpose_b;
    ng_tensor *b;
} ng_matmul_options;
#define ng_matmul(tape, a, ...) ng_matmul_with(tape, a, NG_NAMED(ng_matmul_options, b, __VA_ARGS__))
NG_API ng_tensor *ng_matmul_with(ng_tape *tape, ng_tensor *a, ng_matmul_options options);

/* y = x weight^T + bias: x (..., in), weight (out, in), bias (out) or NG_NONE -> (..., out). */
NG_API ng_tensor *ng_linear(ng_tape *tape, ng_tensor *x, ng_tensor *weight, ng_tensor *bias);

/* y = sum a b over all elements, a and b of one shape: the inner product, one element. */
NG_API ng_tensor *ng_dot(ng_tape *tape, ng_tensor *a, ng_tensor *b);

/* ---- Shape --------------------------------------------------------------------------------
 *
 * An op that changes nothing returns x itself, as a reshape to x's own shape does. Its gradient is
 * then that of x, through all uses of x. */

/* The same elements in another shape, in shared memory; one dimension may be -1: it is computed. */
NG_API ng_tensor *ng_reshape(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* y's axis i is x's axis axes.axis[i]: ng_permute(tape, x, NG_AXES(0, 2, 1)). Copies. */
NG_API ng_tensor *ng_permute(ng_tape *tape, ng_tensor *x, ng_axes axes);

/* The elements along one or more axes in reverse: ng_flip(tape, x, .axes = NG_AXES(0, 1)). */
#define ng_flip(tape, ...) ng_flip_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_flip_with(ng_tape *tape, ng_axis_options options);

/* Moves the elements along an axis of length n; `by` may be negative. What ng_roll moves out at one
 * end comes in at the other: y[(i + by) mod n] = x[i]. ng_shift moves in zeros: y[i] = x[i - by],
 * 0 where there is no such element. */
typedef struct {
    ng_axes axes; /* default: the last */
    int64_t by;
} ng_shift_options;
#define ng_roll(tape, x, ...) ng_roll_with(tape, x, NG_NAMED(ng_shift_options, by, __VA_ARGS__))
#define ng_shift(tape, x, ...) ng_shift_with(tape, x, NG_NAMED(ng_shift_options, by, __VA_ARGS__))
NG_API ng_tensor *ng_roll_with(ng_tape *tape, ng_tensor *x, ng_shift_options options);
NG_API ng_tensor *ng_shift_with(ng_tape *tape, ng_tensor *x, ng_shift_options options);

/* x side by side, so many times along each dimension: (3, 2) with NG_SHAPE(2, 1, 3) -> (2, 3, 6).
 * Dimensions of x that are missing count as leading ones of length 1. NumPy's tile. */
NG_API ng_tensor *ng_repeat(ng_tape *tape, ng_tensor *x, ng_shape counts);

/* Swaps two axes; repeats x along axes of length 1. */
NG_API ng_tensor *ng_transpose(ng_tape *tape, ng_tensor *x, int axis, int other);
NG_API ng_tensor *ng_broadcast_to(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* y = x[..., from:to, ...] along an axis; negative bounds count from the end, to = NG_END is the
 * end. */
#define NG_END INT64_MAX
NG_API ng_tensor *ng_slice(ng_tape *tape, ng_tensor *x, int axis, int64_t from, int64_t to);

/* Zeros before and after x along an axis: the gradient of slice. */
NG_API ng_tensor *ng_pad(ng_tape *tape, ng_tensor *x, int axis, int64_t before, int64_t after);

/* Joins tensors along an axis: ng_concat(tape, (ng_tensor *[]){a, b}, 2, 0). */
NG_API ng_tensor *ng_concat(ng_tape *tape, ng_tensor *const *parts, int count, int axis);

/* Joins tensors of one shape along a new axis: ng_stack(tape, NG_TENSORS(a, b), 0). */
NG_API ng_tensor *ng_stack(ng_tape *tape, ng_tensor *const *parts, int count, int axis);

/* Splits x along an axis into `count` equal parts; chunks[i] is the i-th. `count` must divide the
 * length of the axis. After an error chunks is unchanged. */
NG_API ng_status ng_chunk(ng_tape *tape, ng_tensor *x, int count, int axis, ng_tensor **chunks);

/* Removes an axis of length 1; adds one at `axis` of the result. */
NG_API ng_tensor *ng_squeeze(ng_tape *tape, ng_tensor *x, int axis);
NG_API ng_tensor *ng_unsqueeze(ng_tape *tape, ng_tensor *x, int axis);

/* x (..., rows, columns) where column - row <= diagonal (tril) or >= diagonal (triu), else 0. */
NG_API ng_tensor *ng_tril(ng_tape *tape, ng_tensor *x, int64_t diagonal);
NG_API ng_tensor *ng_triu(ng_tape *tape, ng_tensor *x, int64_t diagonal);

/* ---- Selection ---------------------------------------------------------------------------- */

/* y[i, :] = table[index[i], :]: table (rows, ...), int64 index of any shape -> (index..., ...).
 * The gradient is summed in double. */
NG_API ng_tensor *ng_gather_rows(ng_tape *tape, ng_tensor *table, ng_tensor *index);

/* y[index[i], :] += x[i, :], y of `rows` rows, summed in double: the gradient of gather_rows. */
NG_API ng_tensor *ng_scatter_add_rows(ng_tape *tape, ng_tensor *x, ng_tensor *index, int64_t rows);

/* y[.., j, ..] = x[.., index[.., j, ..], ..] along an axis; int64 index of x's shape except
 * for the length of that axis, which the result gets. It applies the result of ng_argsort. */
typedef struct {
    ng_axes axes; /* default: the last */
    ng_tensor *index;
} ng_take_along_axis_options;
#define ng_take_along_axis(tape, x, ...)                                                          \
    ng_take_along_axis_with(tape, x, NG_NAMED(ng_take_along_axis_options, index, __VA_ARGS__))
NG_API ng_tensor *ng_take_along_axis_with(ng_tape *tape, ng_tensor *x,
                                          ng_take_along_axis_options options);

/* y[.., index[.., j, ..], ..] += x[.., j, ..], y of `length` along the axis; x and index of one
 * shape: the gradient of take_along_axis. */
typedef struct {
    ng_axes axes; /* default: the last */
    int64_t length;
} ng_scatter_add_along_axis_options;
#define ng_scatter_add_along_axis(tape, x, index, ...)                                            \
    ng_scatter_add_along_axis_with(                                                               \
        tape, x, index, NG_NAMED(ng_scatter_add_along_axis_options, length, __VA_ARGS__))
NG_API ng_tensor *ng_scatter_add_along_axis_with(ng_tape *tape, ng_tensor *x, ng_tensor *index,
                                                 ng_scatter_add_along_axis_options options);

/* ng_sort sorts x along an axis; ng_argsort returns the int64 indices of the sorted elements. In
 * ascending order; equal elements keep their order, also with .descending; NaN is above every
 * number. The gradient of an element goes to its place in x.
 *
 * descending  the largest first
 * index       ng_sort only: gets the indices */
typedef struct {
    ng_axes axes; /* default: the last */
    bool descending;
    ng_tensor **index;
    ng_tensor *x;
} ng_sort_options;
#define ng_sort(tape, ...) ng_sort_with(tape, NG_NAMED(ng_sort_options, x, __VA_ARGS__))
#define ng_argsort(tape, ...) ng_argsort_with(tape, NG_NAMED(ng_sort_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_sort_with(ng_tape *tape, ng_sort_options options);
NG_API ng_tensor *ng_argsort_with(ng_tape *tape, ng_sort_options options);

/* The k largest elements along an axis, the largest first; order, NaN and gradient as in ng_sort.
 *
 * smallest  the k smallest, the smallest first
 * index     gets their indices in x */
typedef struct {
    ng_axes axes; /* default: the last */
    bool smallest;
    ng_tensor **index;
    int64_t k;
} ng_top_k_options;
#define ng_top_k(tape, x, ...) ng_top_k_with(tape, x, NG_NAMED(ng_top_k_options, k, __VA_ARGS__))
NG_API ng_tensor *ng_top_k_with(ng_tape *tape, ng_tensor *x, ng_top_k_options options);

/* y = condition != 0 ? a : b, all three broadcasting. No gradient flows to the condition. */
NG_API ng_tensor *ng_where(ng_tape *tape, ng_tensor *condition, ng_tensor *a, ng_tensor *b);

/* 1 where the relation holds, else 0, in the operands' dtype; broadcasting. They have no gradient:
 * if x requires one, apply them to ng_detach(tape, x). */
NG_API ng_tensor *ng_greater(ng_tape *tape, ng_tensor *a, ng_tensor *b);       /* a > b */
NG_API ng_tensor *ng_greater_equal(ng_tape *tape, ng_tensor *a, ng_tensor *b); /* a >= b */
NG_API ng_tensor *ng_less(ng_tape *tape, ng_tensor *a, ng_tensor *b);          /* a < b */
NG_API ng_tensor *ng_equal(ng_tape *tape, ng_tensor *a, ng_tensor *b);         /* a == b */

/* ---- Softmax and losses ------------------------------------------------------------------- */

/* A distribution along an axis, y = e^x / sum e^x, and its logarithm, y = x - ln sum e^x. */
#define ng_softmax(tape, ...) ng_softmax_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
#define ng_log_softmax(tape, ...)                                                                 \
    ng_log_softmax_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_softmax_with(ng_tape *tape, ng_axis_options options);
NG_API ng_tensor *ng_log_softmax_with(ng_tape *tape, ng_axis_options options);

/* How the losses of elements or rows are reduced. */
typedef enum {
    NG_MEAN = 0, /* their mean */
    NG_SUM,      /* their sum */
    NG_EACH      /* all of them */
} ng_reduction;

/* Losses of a prediction against a target of the same shape. */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double delta; /* ng_huber: the square becomes linear here; default 1 */
    ng_tensor *target;
} ng_loss_options;
#define ng_mse(tape, x, ...) ng_mse_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
#define ng_l1(tape, x, ...) ng_l1_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
#define ng_huber(tape, x, ...)                                                                    \
    ng_huber_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_mse_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);
                                                /* (x - t)^2 */
NG_API ng_tensor *ng_l1_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);
                                                /* |x - t| */
NG_API ng_tensor *ng_huber_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);
                                /* d = |x - t|: d <= delta ? d^2/2 : delta (d - delta/2) */

/* Binary cross-entropy of logits x (PyTorch's ..._with_logits) and targets t of one shape:
 *     weights (positive_weights t softplus(-x) + (1 - t) softplus(x)), by default
 *     softplus(x) - t x
 * t is in [0, 1]: a target outside (by more than 1e-5) is NG_EVALUE, unless it requires a gradient.
 *
 * weights, positive_weights  factors that broadcast to the shape of x, such as (classes) for x
 *                            (N, classes); a mean is still over all elements. No gradient flows to
 *                            them. PyTorch's weight and pos_weight. Default: 1 */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    ng_tensor *weights, *positive_weights;
    ng_tensor *target;
} ng_binary_cross_entropy_options;
#define ng_binary_cross_entropy(tape, logits, ...)                                                \
    ng_binary_cross_entropy_with(tape, logits,                                                    \
                                 NG_NAMED(ng_binary_cross_entropy_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_binary_cross_entropy_with(ng_tape *tape, ng_tensor *logits,
                                               ng_binary_cross_entropy_options options);

/* Cross-entropy of logits (..., classes) against int64 labels (...):
 *     loss = -sum_c q_c log_softmax(logits)_c
 *     q = (1 - smoothing) onehot(label) + smoothing / classes
 * With .ignore, rows whose label is .ignored have loss 0 and do not count in the mean. The mean of
 * no row is NaN, with gradient 0. Any other label outside 0 .. classes - 1 is an error.
 *
 * Labels may also be probabilities p, of the logits' shape and dtype, to which gradients flow:
 *     q = (1 - smoothing) p + smoothing / classes
 * A mean is then over the number of rows, also with weights. .ignore is for int64 labels only. A p
 * outside [0, 1] (by more than 1e-5) is NG_EVALUE, unless it requires a gradient.
 *
 * weights  (classes): a factor for the term of each class; a mean is divided by the sum of the
 *          labels' weights (NaN if that is 0). A term whose weight or q is 0 is 0, whatever its
 *          logit, without a gradient to p. No gradient flows to weights. Default: 1
 * channels_first  logits are (N, classes, ...) and labels (N, ...), as in PyTorch; probabilities
 *          are (N, classes, ...) */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double smoothing;
    bool ignore;
    int64_t ignored;
    bool channels_first;
    ng_tensor *weights;
    ng_tensor *labels;
} ng_cross_entropy_options;
#define ng_cross_entropy(tape, logits, ...)                                                       \
    ng_cross_entropy_with(tape, logits, NG_NAMED(ng_cross_entropy_options, labels, __VA_ARGS__))
NG_API ng_tensor *ng_cross_entropy_with(ng_tape *tape, ng_tensor *logits,
                                        ng_cross_entropy_options options);

/* Negative log-likelihood of log-probabilities (..., classes), as ng_log_softmax gives, for int64
 * labels (...): loss = -weights[label] x[label]; settings as in ng_cross_entropy. */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    bool ignore; /* rows whose label is */
    int64_t ignored; /* this */
    bool channels_first; /* x is (N, classes, ...) */
    ng_tensor *weights; /* of the classes */
    ng_tensor *labels;
} ng_nll_options;
#define ng_nll(tape, x, ...) ng_nll_with(tape, x, NG_NAMED(ng_nll_options, labels, __VA_ARGS__))
NG_API ng_tensor *ng_nll_with(ng_tape *tape, ng_tensor *x, ng_nll_options options);

/* Kullback-Leibler divergence of probabilities t from log-probabilities x, of one shape: the loss
 * of an element is t (ln t - x). At t = 0 it is 0, with no gradient to t. NG_MEAN is the mean over
 * all elements; for the mean over a batch of distributions divide NG_SUM by the number of rows. A t
 * below 0 (by more than 1e-5) is NG_EVALUE, unless it requires a gradient. */
#define ng_kl_divergence(tape, x, ...)                                                            \
    ng_kl_divergence_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_kl_divergence_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);

/* Losses with a margin. Targets t are 1 or -1; no gradient flows to them.
 *
 * ng_hinge            max(0, margin - t x), x and t of one shape; Cortes & Vapnik 1995. Of scores x
 *                     (..., classes) and int64 labels (...): the sum of max(0, margin - x[label] +
 *                     x[c]) over the other classes c, divided by the number of classes; PyTorch's
 *                     multi_margin_loss
 * ng_hinge_embedding  t = 1: x;  t = -1: max(0, margin - x); of distances x
 * ng_cosine_embedding t = 1: 1 - cos(a, b);  t = -1: max(0, cos(a, b) - margin); a and b (..., n),
 *                     t (...); cos as in ng_cosine_similarity
 *
 * margin  default 1; of ng_cosine_embedding 0 */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double margin;
    ng_tensor *target;
} ng_margin_options;
#define ng_hinge(tape, x, ...)                                                                    \
    ng_hinge_with(tape, x, NG_NAMED(ng_margin_options, target, __VA_ARGS__))
#define ng_hinge_embedding(tape, x, ...)                                                          \
    ng_hinge_embedding_with(tape, x, NG_NAMED(ng_margin_options, target, __VA_ARGS__))
#define ng_cosine_embedding(tape, a, b, ...)                                                      \
    ng_cosine_embedding_with(tape, a, b, NG_NAMED(ng_margin_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_hinge_with(ng_tape *tape, ng_tensor *x, ng_margin_options options);
NG_API ng_tensor *ng_hinge_embedding_with(ng_tape *tape, ng_tensor *x, ng_margin_options options);
NG_API ng_tensor *ng_cosine_embedding_with(ng_tape *tape, ng_tensor *a, ng_tensor *b,
                                           ng_margin_options options);

/* Triplet loss max(0, d(anchor, positive) - d(anchor, negative) + margin) of rows (..., n), with
 * d(a, b) = |a - b + 1e-6|. Schroff et al. 2015.
 *
 * margin  default 1
 * order   of the norm; default 2
 * swap    d(positive, negative) in place of d(anchor, negative) where it is smaller; Balntas et al.
 *         2016 */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double margin, order;
    bool swap;
    ng_tensor *negative;
} ng_triplet_options;
#define ng_triplet(tape, anchor, positive, ...)                                                   \
    ng_triplet_with(tape, anchor, positive, NG_NAMED(ng_triplet_options, negative, __VA_ARGS__))
NG_API ng_tensor *ng_triplet_with(ng_tape *tape, ng_tensor *anchor, ng_tensor *positive,
                                  ng_triplet_options options);

/* Negative log-likelihood of targets t under normal distributions with predicted means x and
 * variances: (ln v + (x - t)^2 / v) / 2, v = max(var, eps). x and t have one shape, to which var
 * broadcasts; a var below 0 (by more than 1e-5) is NG_EVALUE, unless it requires a gradient. The
 * slope of v is 1 below eps too. Nix & Weigend 1994.
 *
 * eps   default 1e-6
 * full  adds ln(2 pi) / 2 */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double eps;
    bool full;
    ng_tensor *var;
} ng_gaussian_nll_options;
#define ng_gaussian_nll(tape, x, target, ...)                                                     \
    ng_gaussian_nll_with(tape, x, target, NG_NAMED(ng_gaussian_nll_options, var, __VA_ARGS__))
NG_API ng_tensor *ng_gaussian_nll_with(ng_tape *tape, ng_tensor *x, ng_tensor *target,
                                       ng_gaussian_nll_options options);

/* The fraction of rows of logits (..., classes) whose largest element is at the int64 label (...);
 * the first of equal ones counts. A row with a NaN, or whose label is no class, counts as wrong.
 * NaN on error and for no rows. */
NG_API double ng_accuracy(const ng_tensor *logits, const ng_tensor *labels);

/* ---- Dropout ------------------------------------------------------------------------------ */

/* y = x mask / (1 - p), mask 0 with probability p, drawn from the tape's stream; 0 <= p < 1. */
NG_API ng_tensor *ng_dropout(ng_tape *tape, ng_tensor *x, double p);

/* ---- Normalization ------------------------------------------------------------------------
 *
 * Statistics are computed in double, relative to one of the values or to their mean, and never as
 * the difference of two large sums: so rows far from zero keep their digits. gamma and beta may be
 * NG_NONE. An eps of 0 is the default, as in the layers: 1e-5; of RMSNorm 1e-6, of ScaleNorm 1e-10.
 * NG_ZERO is zero.
 *
 * Accuracy of results and gradients: in float within 1e-5 of the result if its terms do not cancel,
 * else within 1e-6 of the terms; in double within 3e-15 of the terms, a dozen roundings. This holds
 * for any ratio of mean to deviation and for rows and columns of any length; for floats over their
 * whole range, and for doubles whose size is 0 or between 1e-150 and 1e150. Compositions of other
 * ops are for deviations from 1e-12 to 1e12 in float, 1e-100 to 1e100 in double: DetachNorm, and
 * recorded gradients of norms other than LayerNorm, RMSNorm and BatchNorm. */

/* y = (x - mean) / sqrt(var + eps) * gamma + beta over the last dimensions of x, those of gamma
 * (or beta); with neither, over the last dimension. Ba, Kiros & Hinton 2016. With one feature y
 * is beta, and the gradients to x and gamma are 0. */
NG_API ng_tensor *ng_layer_norm(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                double eps);

/* y = x / sqrt(mean(x^2) + eps) * gamma over the last dimensions of x, those of gamma (or the
 * last). Zhang & Sennrich 2019. */
NG_API ng_tensor *ng_rms_norm(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, double eps);

/* All norms of rows; the two above are short forms of it.
 *
 * eps       default 1e-5; with .rms 1e-6
 * dims      number of trailing dimensions of a row; default: the rank of gamma or beta, or 1
 * rms       do not centre
 * unbiased  variance over n - 1
 * partial   with .rms: the statistic uses the first floor(partial n) of a row's n elements, at
 *           least one; 0 < partial <= 1, default 1 (pRMSNorm, Zhang & Sennrich 2019) */
typedef struct {
    double eps;
    int dims;
    bool rms, unbiased;
    double partial;
    ng_tensor *beta;
} ng_row_norm_options;
#define ng_row_norm(tape, x, gamma, ...)                                                          \
    ng_row_norm_with(tape, x, gamma, NG_NAMED(ng_row_norm_options, beta, __VA_ARGS__))
NG_API ng_tensor *ng_row_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                   ng_row_norm_options options);

/* y = ng_row_norm of x + residual, which have one shape; *sum = x + residual. The backward pass
 * takes the gradients of both results in one pass over memory.
 *     y = ng_add_row_norm(tape, x, residual, gamma, beta, &sum, .rms = true)
 * gamma and beta may be NG_NONE, and &sum NULL. After an error *sum is NULL. */
typedef struct {
    double eps;         /* as in ng_row_norm, like the next four */
    int dims;           /* trailing dimensions of a row */
    bool rms, unbiased; /* do not centre; variance over n - 1 */
    double partial;     /* with .rms: the share of a row that the statistic uses */
    ng_tensor *beta;
    ng_tensor **sum;
} ng_add_row_norm_options;
#define ng_add_row_norm(tape, x, residual, gamma, shift, ...)                                      \
    ng_add_row_norm_with(tape, x, residual, gamma,                                                 \
                         NG_NAMED_TWO(ng_add_row_norm_options, beta, shift, sum, __VA_ARGS__))
NG_API ng_tensor *ng_add_row_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *residual,
                                       ng_tensor *gamma, ng_add_row_norm_options options);

/* Batch normalization of x (N, C), (N, C, L), (N, C, H, W), (N, C, D, H, W)... over all but the
 * channel axis.
 * Ioffe & Szegedy 2015. In training: statistics of the batch, and
 *     running_mean += momentum (mean - running_mean)
 *     running_var  += momentum (unbiased var - running_var)
 * else: the running statistics. running_mean and running_var (C) may be NG_NONE in training; they
 * are constants to a gradient.
 *     ng_batch_norm(tape, x, gamma, beta, running_mean, running_var, .training = true)
 *
 * A mask of samples (N), or of positions (N, L), (N, H, W)..., is 0 at padding. Padding has no part
 * in the statistics; there y is 0, without a gradient to x. */
typedef struct {
    double eps;      /* default 1e-5 */
    double momentum; /* default 0.1; NG_ZERO: no update */
    bool training;
    ng_group *group; /* in training, the batch is that of all ranks together (group.h), which
                        may have any number of samples each, or none */
    ng_tensor *mask; /* of any dtype, gets no gradient; default: no padding */
    ng_tensor *running_var;
} ng_batch_norm_options;
#define ng_batch_norm(tape, x, gamma, beta, running_mean, ...)                                    \
    ng_batch_norm_with(tape, x, gamma, beta, running_mean,                                        \
                       NG_NAMED(ng_batch_norm_options, running_var, __VA_ARGS__))
NG_API ng_tensor *ng_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                     ng_tensor *beta, ng_tensor *running_mean,
                                     ng_batch_norm_options options);

/* Group normalization of x (N, C), (N, C, L), (N, C, H, W)...: the channels of a sample form
 * `groups` groups of C / groups neighbours, each normalized over its channels and positions; gamma
 * and beta (C):  y = (x - mean) / sqrt(var + eps) * gamma + beta.  Wu & He 2018. With one value in
 * a group y is beta.   ng_group_norm(tape, x, gamma, beta, .groups = 4) */
typedef struct {
    int64_t groups; /* has no default */
    double eps;     /* default 1e-5 */
    ng_tensor *beta;
} ng_group_norm_options;
#define ng_group_norm(tape, x, gamma, ...)                                                        \
    ng_group_norm_with(tape, x, gamma, NG_NAMED(ng_group_norm_options, beta, __VA_ARGS__))
NG_API ng_tensor *ng_group_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                     ng_group_norm_options options);

/* Instance normalization: group normalization with every channel a group of its own. Ulyanov,
 * Vedaldi & Lempitsky 2016. */
NG_API ng_tensor *ng_instance_norm(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                   double eps);

/* Layer normalization over the channels of x (N, C, ...), at each position of each sample; gamma
 * and beta (C): ng_layer_norm over the channel axis. */
NG_API ng_tensor *ng_channel_norm(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                  double eps);

/* y = g x / sqrt(sum x^2 + eps) over the last dimension, g one number (1). Nguyen & Salazar 2019,
 * whose formula has an eps of zero. */
NG_API ng_tensor *ng_scale_norm(ng_tape *tape, ng_tensor *x, ng_tensor *g, double eps);

/* y = (x - mean) / sqrt(var + eps) over the last dimension, mean and deviation (the root) are each
 * constant in the gradient if its flag is set. With both, dx = dy / sqrt(var + eps): DetachNorm,
 * Xu et al. 2019. With neither it is LayerNorm without gamma and beta, their LayerNorm-simple. */
typedef struct {
    double eps; /* default 1e-5 */
    bool detach_mean, detach_deviation; /* hold it constant in the gradient */
    ng_tensor *x;
} ng_detach_norm_options;
#define ng_detach_norm(tape, ...)                                                                 \
    ng_detach_norm_with(tape, NG_NAMED(ng_detach_norm_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_detach_norm_with(ng_tape *tape, ng_detach_norm_options options);

/* Local response normalization of x (N, C, ...) over neighbouring channels at each position:
 *     y = x / (k + alpha / size sum_j x_j^2)^beta
 * over the `size` channels j from c - size / 2 on that exist. Krizhevsky, Sutskever & Hinton 2012,
 * section 3.3, whose alpha is not divided by size. Unlike in the other norms, a sum of squares that
 * overflows x's dtype is Inf, and y is 0.
 *     ng_local_response_norm(tape, x, 5, .alpha = 5e-4, .k = 2) */
typedef struct {
    double alpha; /* default 1e-4; alpha, beta and k are at least 0 */
    double beta;  /* default 0.75 */
    double k;     /* default 1 */
    int64_t size; /* channels */
} ng_local_response_norm_options;
#define ng_local_response_norm(tape, x, ...)                                                      \
    ng_local_response_norm_with(tape, x,                                                          \
                                NG_NAMED(ng_local_response_norm_options, size, __VA_ARGS__))
NG_API ng_tensor *ng_local_response_norm_with(ng_tape *tape, ng_tensor *x,
                                              ng_local_response_norm_options options);

/* y = gamma tanh(alpha x) + beta: alpha one number (1), gamma and beta (n), or NG_NONE, for the
 * last dimension of x. Zhu, Chen, He, LeCun & Liu 2025. */
NG_API ng_tensor *ng_dynamic_tanh(ng_tape *tape, ng_tensor *x, ng_tensor *alpha, ng_tensor *gamma,
                                  ng_tensor *beta);

/* Batch renormalization of x as in ng_batch_norm, Ioffe 2017. In training, with the batch's mean
 * and deviation sigma_b = sqrt(var + eps), and the running mean and deviation before this batch,
 *     r = clip(sigma_b / sigma, 1 / r_max, r_max)
 *     d = clip((mean_b - mean) / sigma, -d_max, d_max)
 *     y = ((x - mean_b) / sigma_b * r + d) * gamma + beta
 *     running_mean += momentum (mean_b - mean)    running_deviation += momentum (sigma_b - sigma)
 * where r and d are constants in the gradient; else y = (x - mean) / sigma * gamma + beta. With
 * r_max = 1 and d_max = NG_ZERO training is batch normalization. */
typedef struct {
    double eps;      /* default 1e-5 */
    double momentum; /* default 0.1; NG_ZERO: no update */
    double r_max;    /* at least 1; default 3 */
    double d_max;    /* at least 0; default 5 */
    bool training;
    ng_group *group; /* as in ng_batch_norm */
    ng_tensor *mask; /* as in ng_batch_norm */
    ng_tensor *running_deviation;
} ng_batch_renorm_options;
#define ng_batch_renorm(tape, x, gamma, beta, running_mean, ...)                                  \
    ng_batch_renorm_with(tape, x, gamma, beta, running_mean,                                      \
                         NG_NAMED(ng_batch_renorm_options, running_deviation, __VA_ARGS__))
NG_API ng_tensor *ng_batch_renorm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                       ng_tensor *beta, ng_tensor *running_mean,
                                       ng_batch_renorm_options options);

/* Batch normalization in sub-batches of `size` samples, like the workers of a data-parallel job;
 * gamma, beta and running statistics as in ng_batch_norm. In training each sub-batch is normalized
 * by its own mean and variance, and the running statistics are updated once for each, in order:
 * ghost batch normalization, Hoffer, Hubara & Soudry 2017. The last sub-batch may be smaller; one
 * of a single value per channel joins the sub-batch before. Outside training it is ng_batch_norm.
 */
typedef struct {
    int64_t size;    /* has no default */
    double eps;      /* default 1e-5 */
    double momentum; /* default 0.1; NG_ZERO: no update */
    bool training;
    ng_tensor *running_var;
} ng_ghost_batch_norm_options;
#define ng_ghost_batch_norm(tape, x, gamma, beta, running_mean, ...)                              \
    ng_ghost_batch_norm_with(tape, x, gamma, beta, running_mean,                                  \
                             NG_NAMED(ng_ghost_batch_norm_options, running_var, __VA_ARGS__))
NG_API ng_tensor *ng_ghost_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                           ng_tensor *beta, ng_tensor *running_mean,
                                           ng_ghost_batch_norm_options options);

/* w = g v / ||v||, with the Euclidean norm of each v[i]: v (out, ...), g (out) -> (out, ...); if g
 * has one element, with the norm of all of v. Salimans & Kingma 2016. A row of zeros stays 0, and
 * the gradients to it and to its g are 0. */
NG_API ng_tensor *ng_weight_norm(ng_tape *tape, ng_tensor *v, ng_tensor *g);

/* y = w / sigma, sigma = u^T W v, with w (out, ...) read as a matrix W (out, n): u (out) and v (n)
 * estimate its first singular vectors and are constants in the gradient. A sigma of 0 counts as 1:
 * a weight of zeros stays 0. Miyato et al. 2018. */
NG_API ng_tensor *ng_spectral_norm(ng_tape *tape, ng_tensor *w, ng_tensor *u, ng_tensor *v);

/* ---- Images -------------------------------------------------------------------------------
 *
 * x is (N, C, H, W): images, channels, rows, columns. A window moves over each channel. An axis of
 * length n gets length (n + 2 padding - dilation (kernel - 1) - 1) / stride + 1, rounded down: OH
 * and OW below. Each setting holds for both directions, unless the one ending in _h (rows) or _w
 * (columns) is given: ng_unfold(tape, x, 2, .kernel_w = 3) has windows of 2 x 3.
 * A window larger than the padded image is an error.
 *
 * stride    default 1; in pooling the kernel
 * padding   zeros (-Inf in max pooling) on both sides; default 0
 * dilation  distance between neighbours in the window; default 1
 * ceil      lengths are rounded up: a last window that begins in the image, or in the padding
 *           before it, may reach beyond the padding behind it (PyTorch's ceil_mode)
 * exclude_padding  average pooling divides by the number of elements that are no padding
 *           (count_include_pad=False) */
typedef struct {
    int64_t stride, padding, dilation;
    int64_t kernel_h, kernel_w, stride_h, stride_w; /* for rows and for columns */
    int64_t padding_h, padding_w, dilation_h, dilation_w; /* the same */
    bool ceil, exclude_padding;
    int64_t kernel;
} ng_window_options;

/* y[n, o, r, c] = bias[o] + sum over i, j, k of weight[o, i, j, k] x[n, i, r stride - padding + j
 * dilation, c stride - padding + k dilation]: x (N, C, H, W), weight (O, C / groups, kernel_h,
 * kernel_w), bias (O) or NG_NONE -> (N, O, OH, OW). Outputs and channels are divided into
 * `groups` groups, and each group of outputs reads its group of channels (default 1; groups = C is
 * a depthwise convolution).
 * Groups of at most 8 channels: an infinite weight can make NaN in dx near the border, and an
 * infinite x in dweight.
 *     ng_conv2d(tape, x, weight, bias, .padding = 1) */
typedef struct {
    int64_t stride, padding, dilation, groups;
    int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w; /* rows; columns */
    ng_tensor *bias;
} ng_conv2d_options;
#define ng_conv2d(tape, x, weight, ...)                                                           \
    ng_conv2d_with(tape, x, weight, NG_NAMED(ng_conv2d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv2d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                 ng_conv2d_options options);

/* Convolution of lines: x (N, C, L), weight (O, C / groups, kernel), bias (O) or NG_NONE ->
 * (N, O, OL).
 *     ng_conv1d(tape, x, weight, bias, .stride = 2, .padding = 1) */
typedef struct {
    int64_t stride, padding, dilation, groups;
    ng_tensor *bias;
} ng_conv1d_options;
#define ng_conv1d(tape, x, weight, ...)                                                           \
    ng_conv1d_with(tape, x, weight, NG_NAMED(ng_conv1d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv1d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                 ng_conv1d_options options);

/* Transposed convolution, the gradient of a convolution to its input, with x as dy:
 *     y[n, o, r stride - padding + j dilation, c stride - padding + k dilation]
 *         += weight[i, o, j, k] x[n, i, r, c],    + bias[o]
 * x (N, C, H, W), weight (C, O / groups, kernel_h, kernel_w), bias (O) or NG_NONE ->
 * (N, O, OH, OW); for lines x (N, C, L), weight (C, O / groups, kernel) -> (N, O, OL). An axis of
 * length n gets length (n - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1,
 * which must be at least 1. Dumoulin & Visin 2016.
 *
 * stride, padding, dilation, groups  of the convolution whose gradient it is, as in ng_conv2d
 * output_padding  additional rows and columns at the end, fewer than the stride: it selects one of
 *                 the lengths that the convolution maps to x's length
 *     ng_conv_transpose2d(tape, x, weight, bias, .stride = 2, .padding = 1, .output_padding = 1) */
typedef struct {
    int64_t stride, padding, output_padding, dilation, groups;
    int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w; /* rows; columns */
    int64_t output_padding_h, output_padding_w; /* the same */
    ng_tensor *bias;
} ng_conv_transpose2d_options;
#define ng_conv_transpose2d(tape, x, weight, ...)                                                 \
    ng_conv_transpose2d_with(tape, x, weight,                                                     \
                             NG_NAMED(ng_conv_transpose2d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv_transpose2d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                           ng_conv_transpose2d_options options);
typedef struct {
    int64_t stride, padding, output_padding, dilation, groups;
    ng_tensor *bias;
} ng_conv_transpose1d_options;
#define ng_conv_transpose1d(tape, x, weight, ...)                                                 \
    ng_conv_transpose1d_with(tape, x, weight,                                                     \
                             NG_NAMED(ng_conv_transpose1d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv_transpose1d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                           ng_conv_transpose1d_options options);

/* Resizes lines (N, C, L) or images (N, C, H, W): ng_upsample to `scale` times their size,
 * ng_interpolate to a given size (L) or (H, W). An axis of length n gets length m.
 *
 * NG_NEAREST  y[i] = x[floor(i n / m)], PyTorch's "nearest"
 * NG_LINEAR   y[i] = (1 - f) x[j] + f x[j + 1], j = floor(t), f = t - j, t = (i + 1/2) n / m - 1/2,
 *             clamped at the ends, so that the edges of x and y coincide; for images along rows
 *             and columns: PyTorch's "linear" and "bilinear" with align_corners=False
 *
 * align_corners  with NG_LINEAR: t = i (n - 1) / (m - 1), the outermost elements coincide
 *     ng_upsample(tape, x, 2)   ng_interpolate(tape, x, NG_SHAPE(28, 28), .mode = NG_LINEAR) */
typedef enum {
    NG_NEAREST = 0,
    NG_LINEAR
} ng_interpolation;
typedef struct {
    ng_interpolation mode; /* default NG_NEAREST */
    bool align_corners;
    int64_t scale; /* at least 1 */
} ng_upsample_options;
typedef struct {
    ng_interpolation mode; /* default NG_NEAREST */
    bool align_corners;
    ng_shape size;
} ng_interpolate_options;
#define ng_upsample(tape, x, ...)                                                                 \
    ng_upsample_with(tape, x, NG_NAMED(ng_upsample_options, scale, __VA_ARGS__))
#define ng_interpolate(tape, x, ...)                                                              \
    ng_interpolate_with(tape, x, NG_NAMED(ng_interpolate_options, size, __VA_ARGS__))
NG_API ng_tensor *ng_upsample_with(ng_tape *tape, ng_tensor *x, ng_upsample_options options);
NG_API ng_tensor *ng_interpolate_with(ng_tape *tape, ng_tensor *x, ng_interpolate_options options);

/* Largest and mean value of each window: (N, C, H, W) -> (N, C, OH, OW); padding is at most half
 * of the kernel. Equal elements share the gradient of max pooling; the mean includes the zeros of
 * the padding, unless .exclude_padding is set, but not what lies beyond it.
 *     ng_max_pool2d(tape, x, 2)   ng_avg_pool2d(tape, x, 3, .stride = 2, .padding = 1) */
#define ng_max_pool2d(tape, x, ...)                                                               \
    ng_max_pool2d_with(tape, x, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
#define ng_avg_pool2d(tape, x, ...)                                                               \
    ng_avg_pool2d_with(tape, x, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
NG_API ng_tensor *ng_max_pool2d_with(ng_tape *tape, ng_tensor *x, ng_window_options window);
NG_API ng_tensor *ng_avg_pool2d_with(ng_tape *tape, ng_tensor *x, ng_window_options window);

/* The same of lines: (N, C, L) -> (N, C, OL); stride, padding, dilation, ceil and exclude_padding
 * are those of ng_window_options.
 *     ng_max_pool1d(tape, x, 2)   ng_avg_pool1d(tape, x, 3, .stride = 2, .padding = 1) */
typedef struct {
    int64_t stride, padding, dilation;
    bool ceil, exclude_padding;
    int64_t kernel;
} ng_pool1d_options;
#define ng_max_pool1d(tape, x, ...)                                                               \
    ng_max_pool1d_with(tape, x, NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
#define ng_avg_pool1d(tape, x, ...)                                                               \
    ng_avg_pool1d_with(tape, x, NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
NG_API ng_tensor *ng_max_pool1d_with(ng_tape *tape, ng_tensor *x, ng_pool1d_options options);
NG_API ng_tensor *ng_avg_pool1d_with(ng_tape *tape, ng_tensor *x, ng_pool1d_options options);

/* Pooling to a given size: of lines (N, C, L) to (N, C, length), of images (N, C, H, W) to
 * (N, C, rows, columns). Of an axis of length n that becomes m, y[i] is the mean, or the largest,
 * of x[floor(i n / m)] .. x[ceil((i + 1) n / m) - 1]. m may be larger than n. Equal elements share
 * the gradient of the largest, along columns and then rows.
 *     ng_adaptive_avg_pool(tape, x, NG_SHAPE(7, 7)) */
NG_API ng_tensor *ng_adaptive_avg_pool(ng_tape *tape, ng_tensor *x, ng_shape size);
NG_API ng_tensor *ng_adaptive_max_pool(ng_tape *tape, ng_tensor *x, ng_shape size);

/* y[n, c] = mean over rows and columns of x[n, c]: (N, C, H, W) -> (N, C). Lin et al. 2014. */
NG_API ng_tensor *ng_global_avg_pool(ng_tape *tape, ng_tensor *x);

NG_API ng_tensor *ng_flatten(ng_tape *tape, ng_tensor *x); /* (N, ...) -> (N, all the others) */

/* Every window as a column: (N, C, H, W) -> (N, C kernel_h kernel_w, OH OW); and back, where
 * overlapping windows add up. Each is the gradient of the other.
 *     ng_unfold(tape, x, 3, .padding = 1)   ng_fold(tape, columns, 8, 8, 3, .padding = 1) */
#define ng_unfold(tape, x, ...)                                                                   \
    ng_unfold_with(tape, x, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
#define ng_fold(tape, columns, height, width, ...)                                                \
    ng_fold_with(tape, columns, height, width, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
NG_API ng_tensor *ng_unfold_with(ng_tape *tape, ng_tensor *x, ng_window_options window);
NG_API ng_tensor *ng_fold_with(ng_tape *tape, ng_tensor *columns, int64_t height, int64_t width,
                               ng_window_options window);

/* ---- Attention ---------------------------------------------------------------------------- */

/* y = dropout(softmax(scale q k^T)) v for each head. Vaswani et al. 2017. The backward pass
 * computes the T x S weights again (Dao et al. 2022), and the mask of dropout from one number of
 * the tape's stream.
 *
 * q       (N, H, T, D), k and v (N, H, S, D) -> (N, H, T, D); or, with .heads = H,
 *         (N, T, H D) and (N, S, H D) -> (N, T, H D), heads side by side
 * mask    (N, S) or NG_NONE: 0 hides the key from all queries. (1 or N, T, S), or (1 or N, 1 or H,
 *         T, S): 0 hides the key from that query; of a (T, S) make ng_unsqueeze(tape, mask, 0). No
 *         gradient flows to it. A hidden key has weight 0; it and its value must be finite
 * kv_heads  G, a divisor of H: k and v have G heads, (N, G, S, D) or (N, S, G D), each shared by
 *         H / G neighbouring heads of q; default H. Shazeer 2019, Ainslie et al. 2023
 * scale   default 1 / sqrt(D)
 * causal  query t sees only the keys 0 .. t + S - T: the last query sees every key. If T > S, the
 *         first T - S queries see none
 * dropout probability, below 1, that a weight becomes 0; the others are divided by 1 - dropout
 * weights gets the weights (N, H, T, S), after dropout; gradients flow through them too. Their mean
 *         over axis 1 is what PyTorch's MultiheadAttention returns
 * A query that sees no key has output 0. With .weights, or a mask of three or four dimensions, the
 * op is composed of others, which takes several times as long and keeps T x S numbers. */
typedef struct {
    int64_t heads, kv_heads;
    double scale;
    bool causal;
    double dropout;
    ng_tensor **weights;
    ng_tensor *mask;
} ng_attention_options;
#define ng_attention(tape, q, k, v, ...)                                                          \
    ng_attention_with(tape, q, k, v, NG_NAMED(ng_attention_options, mask, __VA_ARGS__))
NG_API ng_tensor *ng_attention_with(ng_tape *tape, ng_tensor *q, ng_tensor *k, ng_tensor *v,
                                    ng_attention_options options);

/* Attention with q, k and v as thirds of the features of one tensor: qkv (N, T, 3 H D), mask (N,
 * T) or NG_NONE -> (N, T, H D); mask, heads, scale, causal, dropout and weights are as above. With
 * .kv_heads = G qkv is (N, T, (H + 2 G) D). */
typedef struct {
    int64_t heads, kv_heads;
    double scale;
    bool causal;
    double dropout;
    ng_tensor **weights;
    ng_tensor *mask;
} ng_self_attention_options;
#define ng_self_attention(tape, qkv, ...)                                                         \
    ng_self_attention_with(tape, qkv, NG_NAMED(ng_self_attention_options, mask, __VA_ARGS__))
NG_API ng_tensor *ng_self_attention_with(ng_tape *tape, ng_tensor *qkv,
                                         ng_self_attention_options options);

/* Rotary positions of x (..., T, features): rotates the pair (2i, 2i + 1) of each head of .dim
 * features by the angle (start + t) base^(-2i / dim). Su et al. 2021.
 *
 * dim    features of a head, even; default: all that are rotated
 * over   number of leading features that are rotated; default: all
 * base   default 10000
 * start  the position of the first row */
typedef struct {
    int64_t dim, over, start;
    double base;
    ng_tensor *x;
} ng_rotary_options;
#define ng_rotary(tape, ...) ng_rotary_with(tape, NG_NAMED(ng_rotary_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_rotary_with(ng_tape *tape, ng_rotary_options options);

/* ---- Recurrence ---------------------------------------------------------------------------
 *
 * One layer of a recurrent network in one direction: x (N, T, F) -> y (N, T, H), the state h after
 * each step. With s = sigmoid, * element by element, and PyTorch's order of gates in the weights:
 *
 * ng_rnn   h' = tanh(W_ih x + b_ih + W_hh h + b_hh), with .relu max(0, ...); Elman 1990
 * ng_gru   r, z = s(W_ih x + b_ih + W_hh h + b_hh)    h' = (1 - z) * n + z * h;  Cho et al. 2014,
 *          n = tanh(W_in x + b_in + r * (W_hn h + b_hn)), the reset gate after the product
 * ng_lstm  i, f, g, o = W_ih x + b_ih + W_hh h + b_hh    c' = s(f) * c + s(i) * tanh(g)
 *          h' = s(o) * tanh(c');  Hochreiter & Schmidhuber 1997, Gers et al. 2000
 *
 * All steps are one fused op; threads share its rows.
 *
 *     y = ng_lstm(tape, x, weights, NG_NO_STATE, NG_NONE)
 *     y = ng_gru(tape, x, weights, state, lengths, .reverse = true, .last = &state) */
typedef struct {
    ng_tensor *weight_ih, *weight_hh; /* (G H, F) and (G H, H), G gates: 1, 3 (GRU), 4 (LSTM) */
    ng_tensor *bias_ih, *bias_hh;     /* (G H), or NG_NONE */
} ng_recurrent_weights;

/* The state between steps: h (N, H), and c (N, H) of an LSTM; NG_NONE is zeros. */
typedef struct {
    ng_tensor *h, *c;
} ng_recurrent_state;
#define NG_NO_STATE NG_NAMED(ng_recurrent_state, c, NG_NONE, .h = NG_NONE)

/* lengths  int64 (N), from 0 to T, or NG_NONE: steps at and after a row's length do not change its
 *          state and give y = 0. So padding has no effect, whatever it holds (as with
 *          pack_padded_sequence in PyTorch)
 * reverse  steps in reverse, each row from its last step before its length
 * last     gets the state after the last step: h, and c of an LSTM, else NG_NONE
 * relu     in ng_rnn only */
typedef struct {
    bool reverse, relu;
    ng_recurrent_state *last;
    ng_tensor *lengths;
} ng_recurrent_options;
#define ng_rnn(tape, x, weights, state, ...)                                                      \
    ng_rnn_with(tape, x, weights, state, NG_NAMED(ng_recurrent_options, lengths, __VA_ARGS__))
#define ng_gru(tape, x, weights, state, ...)                                                      \
    ng_gru_with(tape, x, weights, state, NG_NAMED(ng_recurrent_options, lengths, __VA_ARGS__))
#define ng_lstm(tape, x, weights, state, ...)                                                     \
    ng_lstm_with(tape, x, weights, state, NG_NAMED(ng_recurrent_options, lengths, __VA_ARGS__))
NG_API ng_tensor *ng_rnn_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                              ng_recurrent_state state, ng_recurrent_options options);
NG_API ng_tensor *ng_gru_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                              ng_recurrent_state state, ng_recurrent_options options);
NG_API ng_tensor *ng_lstm_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                               ng_recurrent_state state, ng_recurrent_options options);

NG_END_C

#endif
