/* Functions of each element: y = f(x), any shape. */
#include "ops/elementwise.h"
#include <math.h>

/* ---- Gradient rules ---------------------------------------------------------------------- */

static const double two_over_sqrt_pi = 1.12837916709551257390;

/* The gradient of step functions: 0, also at the steps. */
#define NO_SLOPE ((void)dy, ng_zeros_like(tape, x))

/* e^-x^2; an infinite x is clamped to where that is 0 */
static ng_tensor *bell(ng_tape *tape, ng_tensor *x)
{
    return ng_exp(tape, ng_neg(tape, ng_square(tape, ng_clamp(tape, x, -40, 40))));
}

NG_UNARY_RULE(neg, ng_neg(tape, dy))
NG_UNARY_RULE(abs, ng_mul(tape, dy, ng_sign(tape, ng_detach(tape, x))))
NG_UNARY_RULE(square, ng_mul(tape, dy, ng_mul_scalar(tape, x, 2)))
NG_UNARY_RULE(reciprocal, ng_neg(tape, ng_mul(tape, dy, ng_square(tape, y)))) /* -1 / x^2 */
NG_UNARY_RULE(exp, ng_mul(tape, dy, y))
NG_UNARY_RULE(log, ng_div(tape, dy, x))
NG_UNARY_RULE(sqrt, ng_div(tape, ng_mul_scalar(tape, dy, 0.5), y))
NG_UNARY_RULE(rsqrt,
              ng_mul(tape, ng_mul_scalar(tape, dy, -0.5), ng_mul(tape, y, ng_square(tape, y))))
NG_UNARY_RULE(sin, ng_mul(tape, dy, ng_cos(tape, x)))
NG_UNARY_RULE(cos, ng_neg(tape, ng_mul(tape, dy, ng_sin(tape, x))))
NG_UNARY_RULE(erf, ng_mul(tape, dy, ng_mul_scalar(tape, bell(tape, x), two_over_sqrt_pi)))
NG_UNARY_RULE(erfc, ng_mul(tape, dy, ng_mul_scalar(tape, bell(tape, x), -two_over_sqrt_pi)))
NG_UNARY_RULE(sign, NO_SLOPE)
NG_UNARY_RULE(floor, NO_SLOPE)
NG_UNARY_RULE(log1p, ng_div(tape, dy, ng_add_scalar(tape, x, 1)))
NG_UNARY_RULE(expm1, ng_mul(tape, dy, ng_exp(tape, x))) /* y + 1 has lost digits of a small e^x */

/* dy / (1 + x^2), with an infinite x clamped to the largest number */
static void atan_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *const x = ng_finite(tape, node->inputs[0]);
    dx[0] = ng_div(tape, dy, ng_add_scalar(tape, ng_mul(tape, x, x), 1));
}

#define UNARY(op, map, fast)                                                                       \
    static const ng_op op##_op = {.name = #op, .gradient = op##_gradient, .backward = fast};       \
    ng_tensor *ng_##op(ng_tape *tape, ng_tensor *x)                                                \
    {                                                                                              \
        return ng_map_record("ng_" #op, tape, &op##_op, x, map, 0, 0);                             \
    }

UNARY(neg, NG_MAP_NEG, NULL)
UNARY(abs, NG_MAP_ABS, ng_map_backward)
UNARY(square, NG_MAP_SQUARE, ng_map_backward)
UNARY(reciprocal, NG_MAP_RECIPROCAL, NULL)
UNARY(exp, NG_MAP_EXP, ng_map_backward)
UNARY(log, NG_MAP_LOG, ng_map_backward)
UNARY(sqrt, NG_MAP_SQRT, ng_map_backward)
UNARY(rsqrt, NG_MAP_RSQRT, NULL)
UNARY(sin, NG_MAP_SIN, NULL)
UNARY(cos, NG_MAP_COS, NULL)
UNARY(erf, NG_MAP_ERF, NULL)
UNARY(erfc, NG_MAP_ERFC, NULL)
UNARY(sign, NG_MAP_SIGN, NULL)
UNARY(floor, NG_MAP_FLOOR, NULL)
UNARY(log1p, NG_MAP_LOG1P, ng_map_backward)
UNARY(expm1, NG_MAP_EXPM1, ng_map_backward)
UNARY(atan, NG_MAP_ATAN, NULL)

/* y = min(max(x, low), high): the slope is 0 below low and above high, else 1, at a NaN too. */
static void clamp_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const ng_mapping *const f = node->attributes;
    ng_tensor *const x = ng_detach(tape, node->inputs[0]);
    ng_tensor *zero = ng_full(tape, dy->dtype, NG_SCALAR, 0);
    dx[0] = dy;
    if (f->a > -(double)INFINITY) {
        ng_tensor *low = ng_full(tape, dy->dtype, NG_SCALAR, f->a);
        dx[0] = ng_where(tape, ng_less(tape, x, low), zero, dx[0]);
    }
    if (f->b < (double)INFINITY) {
        ng_tensor *high = ng_full(tape, dy->dtype, NG_SCALAR, f->b);
        dx[0] = ng_where(tape, ng_greater(tape, x, high), zero, dx[0]);
    }
}

static const ng_op clamp_op = {
    .name = "clamp", .gradient = clamp_gradient, .backward = ng_map_backward};

ng_tensor *ng_clamp(ng_tape *tape, ng_tensor *x, double low, double high)
{
    if (tape && x && !(low <= high)) {
        ng_fail(NG_EVALUE, "ng_clamp: bounds %g .. %g, expected low <= high", low, high);
        return NULL;
    }
    return ng_map_record("ng_clamp", tape, &clamp_op, x, NG_MAP_CLAMP, low, high);
}
