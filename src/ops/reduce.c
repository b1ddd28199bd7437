/* Reductions over any axes: sum, mean, variance, max, logsumexp; the inner product; argmax. */
#include "ops/reduce.h"
#include <math.h>
#include <string.h>

/* The reduced axes, and the factor of the sum over them. */
typedef struct {
    bool reduced[NG_MAX_RANK];
    double scale;
} reduction;

bool ng_accepts_reduction(const char *function, ng_tape *tape, const ng_reduce_options *options,
                          bool *reduced)
{
    return ng_accepts(function, tape, 1, &options->x) &&
           ng_axes_mark(function, options->axes, options->x->shape.rank, reduced) &&
           ng_option_idle(function, "unbiased", options->unbiased, "in ng_variance") &&
           ng_option_idle(function, "correction", ng_option_given(options->correction),
                          "in ng_variance") &&
           ng_option_idle(function, "order", ng_option_given(options->order), "in ng_norm");
}

ng_shape ng_reduced_shape(ng_shape shape, const bool *reduced, bool keepdim)
{
    ng_shape left = NG_SCALAR;
    for (int i = 0; i < shape.rank; i++)
        if (!reduced[i] || keepdim) left.dim[left.rank++] = reduced[i] ? 1 : shape.dim[i];
    return left;
}

/* x's shape with length 1 for every reduced axis, which broadcasts to x. */
static ng_shape kept_shape(ng_shape shape, const reduction *r)
{
    return ng_reduced_shape(shape, r->reduced, true);
}

static ng_shape result_shape(const ng_reduce_options *options, const reduction *r)
{
    return ng_reduced_shape(options->x->shape, r->reduced, options->keepdim);
}

/* The number of elements per result. */
static int64_t reduced_count(ng_shape shape, const reduction *r)
{
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        if (r->reduced[i]) count *= shape.dim[i];
    return count;
}

static bool has_elements(const char *function, const ng_tensor *x, const reduction *r)
{
    if (reduced_count(x->shape, r) > 0) return true;
    ng_fail(NG_ESHAPE, "%s: %s has no elements along the reduced axes, expected at least one",
            function, ng_shape_print(x->shape).text);
    return false;
}

/* ---- Passes: neighbouring axes are reduced together, the last first ------------------------ */

/* x (outer, n, inner) -> y (outer, inner). `first` is whether no axis has been reduced before. */
typedef void axis_pass(ng_dtype x_dtype, const void *x, ng_dtype y_dtype, void *y, int64_t outer,
                       int64_t n, int64_t inner, double scale, bool first);

/* Sums between two passes are in double, and are scaled in the last pass only. */
static void sum_pass(ng_dtype x_dtype, const void *x, ng_dtype y_dtype, void *y, int64_t outer,
                     int64_t n, int64_t inner, double scale, bool first)
{
    (void)first;
    if (x_dtype == y_dtype)
        ng_kernels_for(x_dtype)->sum(x, y, outer, n, inner, scale, false);
    else
        ng_kernels_for(x_dtype)->sum_to_f64(x, y, outer, n, inner, false);
}

/* Squares in the first pass; later passes only add. */
static void square_pass(ng_dtype x_dtype, const void *x, ng_dtype y_dtype, void *y, int64_t outer,
                        int64_t n, int64_t inner, double scale, bool first)
{
    (void)y_dtype, (void)scale;
    ng_kernels_for(x_dtype)->sum_to_f64(x, y, outer, n, inner, first);
}

static void max_pass(ng_dtype x_dtype, const void *x, ng_dtype y_dtype, void *y, int64_t outer,
                     int64_t n, int64_t inner, double scale, bool first)
{
    (void)y_dtype, (void)scale, (void)first;
    ng_kernels_for(x_dtype)->max(x, y, outer, n, inner);
}

/* x's axes joined to groups that are reduced or kept as one; an axis of length 1 joins any. */
static ng_shape joined_axes(ng_shape shape, const reduction *r, bool reduced[NG_MAX_RANK])
{
    ng_shape groups = NG_SCALAR;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] == 1) continue;
        if (groups.rank > 0 && reduced[groups.rank - 1] == r->reduced[i]) {
            groups.dim[groups.rank - 1] *= shape.dim[i];
        } else {
            reduced[groups.rank] = r->reduced[i];
            groups.dim[groups.rank++] = shape.dim[i];
        }
    }
    return groups;
}

static bool run(ng_tape *tape, axis_pass *pass, const ng_tensor *x, const reduction *r,
                ng_tensor *y)
{
    if (x->size == 0) { /* sums of nothing; of an axis without elements there is no maximum */
        ng_kernels_for(y->dtype)->fill(y->data, y->size, 0 * r->scale);
        return true;
    }
    bool reduced[NG_MAX_RANK];
    const ng_shape groups = joined_axes(x->shape, r, reduced);
    int left = 0;
    for (int i = 0; i < groups.rank; i++) left += reduced[i];
    if (left == 0) {
        pass(x->dtype, x->data, y->dtype, y->data, x->size, 1, 1, r->scale, true);
        return true;
    }

    const ng_dtype between = pass == sum_pass && left > 1 ? NG_F64 : y->dtype;
    ng_dtype dtype = x->dtype;
    const void *input = x->data;
    int64_t inner = 1;
    for (int i = groups.rank - 1; left > 0; i--) {
        if (!reduced[i]) {
            inner *= groups.dim[i];
            continue;
        }
        const bool last = --left == 0;
        const int64_t outer = ng_shape_span(groups, 0, i);
        const size_t bytes = (size_t)(outer * inner) * ng_dtype_bytes(between);
        void *output = last && between == y->dtype ? y->data : ng_tape_memory(tape, bytes);
        if (!output) return false;
        pass(dtype, input, between, output, outer, groups.dim[i], inner, last ? r->scale : 1,
             input == x->data);
        input = output, dtype = between;
    }
    if (dtype != y->dtype)
        for (int64_t i = 0; i < y->size; i++) ng_tensor_store(y, i, ((const double *)input)[i]);
    return true;
}

static ng_tensor *reduce(ng_tape *tape, const ng_op *op, axis_pass *pass, ng_tensor *x, reduction r,
                         ng_shape shape)
{
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y || !run(tape, pass, x, &r, y)) return NULL;
    return ng_record_own(tape, op, y, &x, 1, &r, sizeof r);
}

ng_tensor *ng_sum_of_squares(ng_tape *tape, const ng_tensor *x, const bool *reduced)
{
    reduction r = {.scale = 1};
    memcpy(r.reduced, reduced, sizeof r.reduced);
    ng_tensor *y = ng_result(tape, NG_F64, kept_shape(x->shape, &r));
    return y && run(tape, square_pass, x, &r, y) ? y : NULL;
}

/* ---- Sum and mean: y = scale sum x -------------------------------------------------------- */

/* dx = scale dy, repeated along the reduced axes. The scale of a mean of no elements is infinite;
 * dx has no elements then. */
static void sum_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const reduction *r = node->attributes;
    const ng_shape shape = node->inputs[0]->shape;
    if (r->scale != 1 && node->inputs[0]->size > 0) dy = ng_mul_scalar(tape, dy, r->scale);
    dx[0] = ng_broadcast_to(tape, ng_reshape(tape, dy, kept_shape(shape, r)), shape);
}

static const ng_op sum_op = {.name = "sum", .gradient = sum_gradient};
static const ng_op mean_op = {.name = "mean", .gradient = sum_gradient};
static const ng_op sum_to_op = {.name = "sum_to", .gradient = sum_gradient};

ng_tensor *ng_sum_with(ng_tape *tape, ng_reduce_options options)
{
    reduction r = {.scale = 1};
    if (!ng_accepts_reduction("ng_sum", tape, &options, r.reduced)) return NULL;
    return reduce(tape, &sum_op, sum_pass, options.x, r, result_shape(&options, &r));
}

ng_tensor *ng_mean_with(ng_tape *tape, ng_reduce_options options)
{
    reduction r = {.scale = 1};
    if (!ng_accepts_reduction("ng_mean", tape, &options, r.reduced)) return NULL;
    r.scale = 1 / (double)reduced_count(options.x->shape, &r);
    return reduce(tape, &mean_op, sum_pass, options.x, r, result_shape(&options, &r));
}

/* x -> shape: sums over leading axes, and over axes that were repeated. */
ng_tensor *ng_sum_to(ng_tape *tape, ng_tensor *x, ng_shape shape)
{
    if (!ng_accepts("ng_sum_to", tape, 1, &x)) return NULL;
    if (ng_shape_equal(x->shape, shape)) return x;
    if (ng_shape_size("ng_sum_to", shape) < 0) return NULL;
    const int leading = x->shape.rank - shape.rank;
    reduction r = {.scale = 1};
    bool fits = leading >= 0;
    for (int i = 0; fits && i < x->shape.rank; i++) {
        const int64_t dim = i < leading ? 1 : shape.dim[i - leading];
        r.reduced[i] = i < leading || dim != x->shape.dim[i];
        fits = !r.reduced[i] || dim == 1;
    }
    if (!fits) {
        ng_fail(NG_ESHAPE, "ng_sum_to: %s does not broadcast to %s", ng_shape_print(shape).text,
                ng_shape_print(x->shape).text);
        return NULL;
    }
    return reduce(tape, &sum_to_op, sum_pass, x, r, shape);
}

/* ---- Sum of squares: y = sum x^2 ------------------------------------------------------------ */

/* dx = 2 x dy */
static void sum_squares_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0];
    dy = ng_reshape(tape, ng_mul_scalar(tape, dy, 2), kept_shape(x->shape, node->attributes));
    dx[0] = ng_mul(tape, x, dy);
}

static const ng_op sum_squares_op = {.name = "sum_squares", .gradient = sum_squares_gradient};

ng_tensor *ng_sum_squares_with(ng_tape *tape, ng_reduce_options options)
{
    reduction r = {.scale = 1};
    if (!ng_accepts_reduction("ng_sum_squares", tape, &options, r.reduced)) return NULL;
    const ng_tensor *sums = ng_sum_of_squares(tape, options.x, r.reduced);
    ng_tensor *y = sums ? ng_result(tape, options.x->dtype, result_shape(&options, &r)) : NULL;
    if (!y) return NULL;
    for (int64_t i = 0; i < y->size; i++) ng_tensor_store(y, i, ((const double *)sums->data)[i]);
    return ng_record_own(tape, &sum_squares_op, y, &options.x, 1, &r, sizeof r);
}

/* ---- Variance: the mean of squared deviations from the mean -------------------------------- */

ng_tensor *ng_near_zero(ng_tape *tape, ng_tensor *x, ng_axes axes)
{
    ng_tensor *constant = ng_detach(tape, x, .by_definition = true);
    return ng_sub(tape, x, ng_mean(tape, constant, .axes = axes, .keepdim = true));
}

ng_tensor *ng_variance_with(ng_tape *tape, ng_reduce_options options)
{
    static const char function[] = "ng_variance";
    reduction r;
    ng_reduce_options biased = options;
    biased.unbiased = false, biased.correction = 0;
    if (!ng_option_apart(function, "unbiased", options.unbiased, "correction",
                         ng_option_given(options.correction)) ||
        !ng_option_range(function, "correction", options.correction, -HUGE_VAL, HUGE_VAL) ||
        !ng_accepts_reduction(function, tape, &biased, r.reduced))
        return NULL;
    const double correction = options.unbiased ? 1 : options.correction;
    const double n = fmax(0, (double)reduced_count(options.x->shape, &r) - correction);
    ng_tensor *x = ng_near_zero(tape, options.x, options.axes);
    ng_tensor *mean = ng_mean(tape, x, .axes = options.axes, .keepdim = true);
    ng_tensor *squares = ng_square(tape, ng_sub(tape, x, mean));
    ng_tensor *sum = ng_sum(tape, squares, .axes = options.axes, .keepdim = options.keepdim);
    return ng_mul_scalar(tape, sum, 1 / n);
}

/* ---- Max ---------------------------------------------------------------------------------- */

/* dx = dy [x = y] / (number of elements equal to y) */
static void max_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const reduction *r = node->attributes;
    ng_tensor *x = node->inputs[0];
    const ng_shape kept = kept_shape(x->shape, r);
    ng_tensor *y = ng_reshape(tape, ng_detach(tape, node->output), kept);
    ng_tensor *ties = ng_equal(tape, ng_detach(tape, x), y);
    ng_tensor *weight = ng_div(tape, ties, ng_sum_to(tape, ties, kept));
    dx[0] = ng_mul(tape, weight, ng_reshape(tape, dy, kept));
}

static const ng_op max_op = {.name = "max", .gradient = max_gradient};

ng_tensor *ng_max_with(ng_tape *tape, ng_reduce_options options)
{
    reduction r = {.scale = 1};
    if (!ng_accepts_reduction("ng_max", tape, &options, r.reduced) ||
        !has_elements("ng_max", options.x, &r))
        return NULL;
    return reduce(tape, &max_op, max_pass, options.x, r, result_shape(&options, &r));
}

/* min x = -max -x, also for NaN and equal elements. */
ng_tensor *ng_min_with(ng_tape *tape, ng_reduce_options options)
{
    reduction r = {.scale = 1};
    if (!ng_accepts_reduction("ng_min", tape, &options, r.reduced) ||
        !has_elements("ng_min", options.x, &r))
        return NULL;
    options.x = ng_neg(tape, options.x);
    return ng_neg(tape, ng_max_with(tape, options));
}

/* ---- Logsumexp ---------------------------------------------------------------------------- */

/* max x as a finite constant, so that x - max is no NaN for infinite x. */
static ng_tensor *largest_of(ng_tape *tape, ng_tensor *x, const reduction *r)
{
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *largest = reduce(tape, &max_op, max_pass, x, *r, kept_shape(x->shape, r));
    ng_tensor *shift = ng_finite(tape, largest);
    ng_tape_set_recording(tape, was);
    return shift;
}

/* What the op keeps: e = e^(x - max x), and its sum in kept_shape. */
typedef struct {
    reduction reduction;
    ng_tensor *e, *sum;
} logsumexp_attributes;

/* e and its sum; with largest_of as the shift. */
static logsumexp_attributes shifted_exponentials(ng_tape *tape, ng_tensor *x, const reduction *r,
                                                 ng_tensor *shift)
{
    ng_tensor *e = ng_exp(tape, ng_sub(tape, x, shift));
    return (logsumexp_attributes){*r, e, ng_sum_to(tape, e, kept_shape(x->shape, r))};
}

/* dx = dy e / sum e, divided before it is repeated. e^(x - y) is less exact for large x, where y
 * has lost the digits of ln sum e. The sum is at least 1, but 0 where all x are -Inf; there dx is
 * 0. A gradient that is recorded needs e as a function of x. */
static void logsumexp_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0];
    logsumexp_attributes kept = *(const logsumexp_attributes *)node->attributes;
    if (ng_tape_recording(tape))
        kept = shifted_exponentials(tape, x, &kept.reduction, largest_of(tape, x, &kept.reduction));
    ng_tensor *sum = ng_clamp(tape, kept.sum, 1, (double)INFINITY);
    dy = ng_reshape(tape, dy, kept_shape(x->shape, &kept.reduction));
    dx[0] = ng_mul(tape, kept.e, ng_div(tape, dy, sum));
}

static const ng_op logsumexp_op = {.name = "logsumexp", .gradient = logsumexp_gradient};

/* y = m + ln sum e^(x - m), m = max x */
ng_tensor *ng_logsumexp_with(ng_tape *tape, ng_reduce_options options)
{
    reduction r = {.scale = 1};
    if (!ng_accepts_reduction("ng_logsumexp", tape, &options, r.reduced)) return NULL;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *shift = largest_of(tape, options.x, &r);
    const logsumexp_attributes kept = shifted_exponentials(tape, options.x, &r, shift);
    ng_tensor *y = ng_add(tape, shift, ng_log(tape, kept.sum));
    y = ng_reshape(tape, y, result_shape(&options, &r));
    ng_tape_set_recording(tape, was);
    return ng_record_own(tape, &logsumexp_op, y, &options.x, 1, &kept, sizeof kept);
}

/* ---- Dot: y = sum a b ---------------------------------------------------------------------- */

/* da = b dy, db = a dy */
static void dot_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    for (int i = 0; i < 2; i++)
        if (ng_wants(dx, i)) dx[i] = ng_mul(tape, node->inputs[1 - i], dy);
}

static ng_status dot_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    (void)tape;
    const double scale = ng_tensor_load(dy, 0);
    for (int i = 0; i < 2; i++) {
        const ng_tensor *other = node->inputs[1 - i];
        if (dx[i].data)
            ng_kernels_for(other->dtype)
                ->axpy(scale, other->data, dx[i].data, other->size, dx[i].accumulate);
    }
    return NG_OK;
}

static const ng_op dot_op = {.name = "dot", .gradient = dot_gradient, .backward = dot_backward};

ng_tensor *ng_dot(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *const inputs[] = {a, b};
    if (!ng_accepts("ng_dot", tape, 2, inputs)) return NULL;
    if (!ng_shape_equal(a->shape, b->shape)) {
        ng_fail(NG_ESHAPE, "ng_dot: a is %s and b %s, expected one shape",
                ng_shape_print(a->shape).text, ng_shape_print(b->shape).text);
        return NULL;
    }
    ng_tensor *y = ng_result(tape, a->dtype, NG_SCALAR);
    if (!y) return NULL;
    ng_tensor_store(y, 0, ng_kernels_for(a->dtype)->dot(a->data, b->data, a->size));
    return ng_record_own(tape, &dot_op, y, inputs, 2, NULL, 0);
}

/* ---- Argmax, argmin: an int64 constant ---------------------------------------------------- */

/* x (outer, n, inner) -> y (outer, inner) */
static ng_tensor *reduce_argmax(const char *function, ng_tape *tape, ng_tensor *x, ng_axes axes)
{
    const int along = ng_axis_named(function, axes, x->shape.rank);
    if (along < 0) return NULL;
    reduction r = {.reduced = {false}};
    r.reduced[along] = true;
    if (!has_elements(function, x, &r)) return NULL;
    ng_tensor *y = ng_result(tape, NG_I64, ng_reduced_shape(x->shape, r.reduced, false));
    if (!y || y->size == 0) return y;
    ng_kernels_for(x->dtype)->argmax(x->data, y->data, ng_shape_span(x->shape, 0, along),
                                     x->shape.dim[along],
                                     ng_shape_span(x->shape, along + 1, x->shape.rank));
    return y;
}

ng_tensor *ng_argmax_with(ng_tape *tape, ng_axis_options options)
{
    if (!ng_accepts("ng_argmax", tape, 1, &options.x)) return NULL;
    return reduce_argmax("ng_argmax", tape, options.x, options.axes);
}

ng_tensor *ng_argmin_with(ng_tape *tape, ng_axis_options options)
{
    if (!ng_accepts("ng_argmin", tape, 1, &options.x)) return NULL;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *negative = ng_neg(tape, options.x);
    ng_tape_set_recording(tape, was);
    return negative ? reduce_argmax("ng_argmin", tape, negative, options.axes) : NULL;
}
