/* Functions of each element: y = f(x), any shape. */
#include "ops/op.h"
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
    ng_tensor *below = ng_less(tape, x, ng_full(tape, dy->dtype, NG_SCALAR, f->a));
    ng_tensor *above = ng_greater(tape, x, ng_full(tape, dy->dtype, NG_SCALAR, f->b));
    ng_tensor *zero = ng_full(tape, dy->dtype, NG_SCALAR, 0);
    dx[0] = ng_where(tape, ng_add(tape, below, above), zero, dy);
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

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_CALL(case_neg, ng_neg(tape, in[0]))
NG_CASE_CALL(case_abs, ng_abs(tape, in[0]))
NG_CASE_CALL(case_square, ng_square(tape, in[0]))
NG_CASE_CALL(case_reciprocal, ng_reciprocal(tape, in[0]))
NG_CASE_CALL(case_exp, ng_exp(tape, in[0]))
NG_CASE_CALL(case_log, ng_log(tape, in[0]))
NG_CASE_CALL(case_sqrt, ng_sqrt(tape, in[0]))
NG_CASE_CALL(case_rsqrt, ng_rsqrt(tape, in[0]))
NG_CASE_CALL(case_sin, ng_sin(tape, in[0]))
NG_CASE_CALL(case_cos, ng_cos(tape, in[0]))
NG_CASE_CALL(case_erf, ng_erf(tape, in[0]))
NG_CASE_CALL(case_erfc, ng_erfc(tape, in[0]))
NG_CASE_CALL(case_sign, ng_mul(tape, in[0], ng_sign(tape, in[0])))
NG_CASE_CALL(case_floor, ng_mul(tape, in[0], ng_floor(tape, in[0])))
NG_CASE_CALL(case_log1p, ng_log1p(tape, in[0]))
NG_CASE_CALL(case_expm1, ng_expm1(tape, in[0]))
NG_CASE_CALL(case_atan, ng_atan(tape, in[0]))
NG_CASE_CALL(case_clamp_inside, ng_clamp(tape, in[0], -4, 4))
NG_CASE_CALL(case_clamp_below, ng_clamp(tape, in[0], 0, (double)INFINITY))
NG_CASE_CALL(case_clamp_above, ng_clamp(tape, in[0], -(double)INFINITY, 0.1))

/* Values between two steps of floor. */
#define BETWEEN                                                                                    \
    {                                                                                              \
        .name = "x", .shape = NG_CASE_SHAPE(3, 4), .low = 2.2, .high = 2.8                         \
    }
#define WITHIN(bound)                                                                              \
    {                                                                                              \
        .name = "x", .shape = NG_CASE_SHAPE(3, 4), .low = -(bound), .high = bound                  \
    }

const ng_case ng_op_cases_elementwise[] = {
    {.name = "neg", .call = case_neg, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "abs", .call = case_abs, .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "square", .call = case_square, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "reciprocal", .call = case_reciprocal, .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "exp", .call = case_exp, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "log", .call = case_log, .inputs = {NG_CASE_POSITIVE("x", 3, 4)}},
    {.name = "sqrt", .call = case_sqrt, .inputs = {NG_CASE_POSITIVE("x", 3, 4)}},
    {.name = "rsqrt", .call = case_rsqrt, .inputs = {NG_CASE_POSITIVE("x", 3, 4)}},
    {.name = "sin", .call = case_sin, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "cos", .call = case_cos, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "erf", .call = case_erf, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "erfc", .call = case_erfc, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "sign", .call = case_sign, .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "floor", .call = case_floor, .inputs = {BETWEEN}},
    {.name = "log1p", .call = case_log1p, .inputs = {NG_CASE_POSITIVE("x", 3, 4)}},
    {.name = "expm1", .call = case_expm1, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "atan", .call = case_atan, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "clamp (nothing clamped)", .call = case_clamp_inside, .inputs = {WITHIN(3)}},
    {.name = "clamp (from below)",
     .call = case_clamp_below,
     .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "clamp (from above)",
     .call = case_clamp_above,
     .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
};
const int ng_op_cases_elementwise_count = NG_CASE_COUNT(ng_op_cases_elementwise);
