/* Running sums and products, products, norms and the angle between vectors. */
#include "ops/reduce.h"
#include <float.h>
#include <math.h>

/* ---- cumsum: y[j] = x[0] + ... + x[j] along an axis ---------------------------------------- */

typedef struct {
    int axis;
    bool reverse;
} running;

static ng_tensor *cumulate(ng_tape *tape, ng_tensor *x, running way);

/* dx[j] = dy[j] + ... + dy[last] */
static void cumsum_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    running way = *(const running *)node->attributes;
    way.reverse = !way.reverse;
    dx[0] = cumulate(tape, dy, way);
}

static const ng_op cumsum_op = {.name = "cumsum", .gradient = cumsum_gradient};

static ng_tensor *cumulate(ng_tape *tape, ng_tensor *x, running way)
{
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y) return NULL;
    if (x->size > 0)
        ng_kernels_for(x->dtype)->cumsum(
            x->data, y->data, ng_shape_span(x->shape, 0, way.axis), x->shape.dim[way.axis],
            ng_shape_span(x->shape, way.axis + 1, x->shape.rank), way.reverse);
    return ng_record_own(tape, &cumsum_op, y, &x, 1, &way, sizeof way);
}

ng_tensor *ng_cumsum_with(ng_tape *tape, ng_axis_options options)
{
    ng_tensor *x = options.x;
    if (!ng_accepts("ng_cumsum", tape, 1, &x)) return NULL;
    const int along = ng_axis_named("ng_cumsum", options.axes, x->shape.rank);
    return along < 0 ? NULL : cumulate(tape, x, (running){.axis = along});
}

/* ---- cumprod: y[j] = x[0] ... x[j] along an axis --------------------------------------------- */

/* Products of 2, 4, 8... elements up to each place. Made of multiplications, as prod is. */
ng_tensor *ng_cumprod_with(ng_tape *tape, ng_axis_options options)
{
    ng_tensor *x = options.x;
    if (!ng_accepts("ng_cumprod", tape, 1, &x)) return NULL;
    const int along = ng_axis_named("ng_cumprod", options.axes, x->shape.rank);
    if (along < 0) return NULL;
    const int64_t n = x->shape.dim[along];
    for (int64_t step = 1; x && step < n; step *= 2) {
        ng_tensor *before = ng_slice(tape, x, along, 0, n - step);
        ng_tensor *longer = ng_mul(tape, ng_slice(tape, x, along, step, n), before);
        x = ng_concat(tape, NG_TENSORS(ng_slice(tape, x, along, 0, step), longer), along);
    }
    return x;
}

/* ---- prod: halves are multiplied until one element is left --------------------------------- */

/* The product along an axis, which keeps length 1. It is made of multiplications on the tape, so
 * that gradients are right where a factor is 0, and those of second order where two are. */
static ng_tensor *product_along(ng_tape *tape, ng_tensor *x, int axis)
{
    for (int64_t n; x && (n = x->shape.dim[axis]) > 1;) {
        const int64_t half = n / 2;
        ng_tensor *left = ng_slice(tape, x, axis, 0, half);
        ng_tensor *right = ng_slice(tape, x, axis, half, 2 * half);
        ng_tensor *both = ng_mul(tape, left, right);
        if (n % 2 == 1)
            both = ng_concat(tape, NG_TENSORS(both, ng_slice(tape, x, axis, n - 1, n)), axis);
        x = both;
    }
    return x;
}

ng_tensor *ng_prod_with(ng_tape *tape, ng_reduce_options options)
{
    bool reduced[NG_MAX_RANK];
    if (!ng_accepts_reduction("ng_prod", tape, &options, reduced)) return NULL;
    ng_tensor *y = options.x;
    const ng_shape shape = ng_reduced_shape(y->shape, reduced, options.keepdim);
    for (int i = 0; y && i < options.x->shape.rank; i++) {
        if (!reduced[i]) continue;
        if (y->shape.dim[i] == 0) /* of nothing: 1 */
            return ng_add_scalar(tape, ng_sum_with(tape, options), 1);
        y = product_along(tape, y, i);
    }
    return y ? ng_reshape(tape, y, shape) : NULL;
}

/* ---- norm: y = (sum x^2)^(1/2) ------------------------------------------------------------- */

typedef struct {
    bool reduced[NG_MAX_RANK];
} norm_axes;

/* dx = (x / y) dy, and 0 where y is 0; x / y is finite where 1 / y may not be. */
static void norm_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const norm_axes *axes = node->attributes;
    ng_tensor *x = node->inputs[0];
    const ng_shape kept = ng_reduced_shape(x->shape, axes->reduced, true);
    ng_tensor *y = ng_reshape(tape, node->output, kept);
    ng_tensor *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    ng_tensor *one = ng_full(tape, x->dtype, NG_SCALAR, 1);
    ng_tensor *none = ng_equal(tape, ng_detach(tape, y), zero);
    ng_tensor *direction = ng_div(tape, x, ng_where(tape, none, one, y));
    dx[0] = ng_mul(tape, direction, ng_where(tape, none, zero, ng_reshape(tape, dy, kept)));
}

static const ng_op norm_op = {.name = "norm", .gradient = norm_gradient};

/* m (sum (x / m)^2)^(1/2) with m = max |x|, or 1 if that is 0; reduced axes have length 1.
 * So squares of doubles neither overflow nor vanish. */
static ng_tensor *scaled_norm(ng_tape *tape, ng_tensor *x, ng_axes axes, ng_shape kept)
{
    ng_tensor *m = ng_max(tape, ng_abs(tape, x), .axes = axes, .keepdim = true);
    ng_tensor *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    m = ng_clamp(tape, m, 0, DBL_MAX);
    if (!m) return NULL;
    m = ng_add(tape, m, ng_equal(tape, m, zero));
    ng_tensor *sum = ng_sum_to(tape, ng_square(tape, ng_div(tape, x, m)), kept);
    return ng_mul(tape, m, ng_sqrt(tape, sum));
}

/* (sum x^2)^(1/2) without a scale; reduced axes have length 1. */
static ng_tensor *norm_of_floats(ng_tape *tape, ng_tensor *x, const bool *reduced)
{
    const ng_tensor *sum = ng_sum_of_squares(tape, x, reduced);
    ng_tensor *y = sum ? ng_result(tape, NG_F32, sum->shape) : NULL;
    if (!y) return NULL;
    const double *squares = sum->data;
    float *norms = y->data;
    for (int64_t i = 0; i < y->size; i++) norms[i] = (float)sqrt(squares[i]);
    return y;
}

/* ---- norms of another order: y = (sum |x|^p)^(1/p) ------------------------------------------- */

/* |x|^p; for p below 2 without a slope at 0, where a derivative is infinite. */
static ng_tensor *power_of(ng_tape *tape, ng_tensor *x, double p)
{
    if (fmod(p, 2) == 0) return ng_pow_scalar(tape, x, p);
    ng_tensor *size = ng_abs(tape, x);
    if (p > 2 || !size) return ng_pow_scalar(tape, size, p);
    ng_tensor *some = ng_sign(tape, ng_detach(tape, size));
    ng_tensor *one = ng_full(tape, size->dtype, NG_SCALAR, 1);
    return ng_mul(tape, some, ng_pow_scalar(tape, ng_where(tape, some, size, one), p));
}

/* m (sum |x / m|^p)^(1/p) with m = max |x|, a constant, or 1 if that is 0: powers neither overflow
 * nor vanish. */
static ng_tensor *norm_of_order(ng_tape *tape, ng_reduce_options o, double p, ng_shape shape)
{
    if (isinf(p) || p == 0 || p == 1) {
        o.x = p == 0 ? ng_square(tape, ng_sign(tape, o.x)) : ng_abs(tape, o.x);
        return isinf(p) ? ng_max_with(tape, o) : ng_sum_with(tape, o);
    }
    ng_tensor *zero = ng_full(tape, o.x->dtype, NG_SCALAR, 0);
    ng_tensor *one = ng_full(tape, o.x->dtype, NG_SCALAR, 1);
    ng_tensor *size = ng_abs(tape, ng_detach(tape, o.x, .by_definition = true));
    ng_tensor *m = ng_finite(tape, ng_max(tape, size, .axes = o.axes, .keepdim = true));
    m = ng_add(tape, m, ng_equal(tape, m, zero));
    ng_tensor *powers = power_of(tape, ng_div(tape, o.x, m), p);
    ng_tensor *sum = ng_sum(tape, powers, .axes = o.axes, .keepdim = true);
    ng_tensor *none = sum ? ng_equal(tape, ng_detach(tape, sum), zero) : NULL;
    ng_tensor *root = ng_pow_scalar(tape, ng_where(tape, none, one, sum), 1 / p);
    return ng_reshape(tape, ng_mul(tape, m, ng_where(tape, none, zero, root)), shape);
}

ng_tensor *ng_norm_with(ng_tape *tape, ng_reduce_options options)
{
    norm_axes axes;
    ng_tensor *x = options.x;
    const double order = ng_option(options.order, 2);
    options.order = 0;
    if (!ng_accepts_reduction("ng_norm", tape, &options, axes.reduced)) return NULL;
    if (!(order >= 0)) {
        ng_fail(NG_EVALUE, "ng_norm: order is %g, expected 0 or more", order);
        return NULL;
    }
    const ng_shape shape = ng_reduced_shape(x->shape, axes.reduced, options.keepdim);
    if (x->size == 0) return ng_sum_with(tape, options);
    if (order != 2) return norm_of_order(tape, options, order, shape);
    const bool was = ng_tape_set_recording(tape, false);
    const ng_shape ones = ng_reduced_shape(x->shape, axes.reduced, true);
    ng_tensor *kept = x->dtype == NG_F32 ? norm_of_floats(tape, x, axes.reduced)
                                         : scaled_norm(tape, x, options.axes, ones);
    ng_tensor *y = kept ? ng_result_view(tape, kept, shape) : NULL;
    ng_tape_set_recording(tape, was);
    return y ? ng_record_own(tape, &norm_op, y, &x, 1, &axes, sizeof axes) : NULL;
}

/* ---- cosine_similarity: a . b / (|a| |b|) -------------------------------------------------- */

ng_tensor *ng_cosine_similarity_with(ng_tape *tape, ng_tensor *a,
                                     ng_cosine_similarity_options options)
{
    ng_tensor *b = options.b;
    static const char function[] = "ng_cosine_similarity";
    ng_tensor *const operands[] = {a, b};
    if (!ng_accepts(function, tape, 2, operands)) return NULL;
    if (!ng_shape_equal(a->shape, b->shape)) {
        ng_fail(NG_ESHAPE, "%s: a is %s and b %s, expected one shape", function,
                ng_shape_print(a->shape).text, ng_shape_print(b->shape).text);
        return NULL;
    }
    const int axis = ng_axis_named(function, options.axes, a->shape.rank);
    const double eps = ng_option(options.eps, 1e-8);
    if (axis < 0) return NULL;
    if (!ng_option_range(function, "eps", eps, 0, HUGE_VAL)) return NULL;
    const double most = ng_largest(a->dtype);
    const ng_axes along = {.count = 1, .axis = {axis}};
    ng_tensor *units[2];
    for (int i = 0; i < 2; i++) {
        ng_tensor *length = ng_norm(tape, operands[i], .axes = along, .keepdim = true);
        units[i] = ng_div(tape, operands[i], ng_clamp(tape, length, eps, most));
    }
    return ng_sum(tape, ng_mul(tape, units[0], units[1]), .axes = along);
}
