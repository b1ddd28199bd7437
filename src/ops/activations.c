/* Activations: y = f(x) of each element. */
#include "ops/elementwise.h"
#include "ops/norm.h"
#include <math.h>

#define ACTIVATION(op, map, rule, composed)                                                        \
    static const ng_op op##_op = {                                                                 \
        .name = #op, .gradient = rule, .backward = ng_map_backward, .definition = composed};       \
    ng_tensor *ng_##op(ng_tape *tape, ng_tensor *x)                                                \
    {                                                                                              \
        return ng_map_record("ng_" #op, tape, &op##_op, x, map, 0, 0);                             \
    }

/* y = tanh x: 1 - y^2 */
NG_UNARY_RULE(tanh, ng_mul(tape, dy, ng_scalar_sub(tape, 1, ng_square(tape, y))))
ACTIVATION(tanh, NG_MAP_TANH, tanh_gradient, NULL)

/* y = 1 / (1 + e^-x): y (1 - y), where 1 - y = sigmoid(-x), which keeps its digits */
NG_UNARY_RULE(sigmoid, ng_mul(tape, dy, ng_mul(tape, y, ng_sigmoid(tape, ng_neg(tape, x)))))
ACTIVATION(sigmoid, NG_MAP_SIGMOID, sigmoid_gradient, NULL)

/* y = ln(1 + e^x): sigmoid(x) */
NG_UNARY_RULE(softplus, ng_mul(tape, dy, ng_sigmoid(tape, x)))
ACTIVATION(softplus, NG_MAP_SOFTPLUS, softplus_gradient, NULL)

/* y = x f(u), f from 0 to 1, u = u(x clamped to `bound`). Where |x| is larger, f is 0 or 1 and has
 * no slope: so neither value nor gradient multiplies 0 by something infinite. */
static ng_tensor *gated(ng_tape *tape, ng_tensor *x, double bound, ng_tensor *f)
{
    return ng_mul(tape, ng_clamp(tape, x, -bound, (double)INFINITY), f);
}

/* The fused activations, at 256x128 with their backward pass: gelu takes 0.4 of its definition's
 * time with AVX-512 and 0.6 with AVX2; mish 0.5 and 0.4; gelu_tanh 0.6 and 0.9, and an eighth of
 * the memory; silu 0.9 and 1.1, and a quarter of the memory.
 *
 * A step of an MLP with a gradient penalty takes 0.7 of what it takes by the gradients of the
 * definitions, with AVX2 0.8; by silu's 0.75 and 0.9. Therefore the rules. */

/* y = x sigmoid(x) */
static ng_tensor *silu_definition(ng_tape *tape, const ng_node *node)
{
    ng_tensor *const x = node->inputs[0];
    return gated(tape, x, 800, ng_sigmoid(tape, ng_clamp(tape, x, -800, 800)));
}

/* s + x s', s' = s sigmoid(-x), s = sigmoid(x) */
static void silu_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *const x = ng_clamp(tape, node->inputs[0], -800, 800), *s = ng_sigmoid(tape, x);
    ng_tensor *ds = ng_mul(tape, s, ng_sigmoid(tape, ng_neg(tape, x)));
    dx[0] = ng_add(tape, ng_mul(tape, dy, s), ng_mul(tape, ng_mul(tape, dy, x), ds));
}
ACTIVATION(silu, NG_MAP_SILU, silu_gradient, silu_definition)

/* Phi(x) = 1/2 erfc(-x / sqrt 2), of which 1/2 (1 + erf(x / sqrt 2)) would lose the left tail */
static ng_tensor *normal_below(ng_tape *tape, ng_tensor *x)
{
    ng_tensor *twice = ng_erfc(tape, ng_mul_scalar(tape, x, -0.70710678118654752440));
    return ng_mul_scalar(tape, twice, 0.5);
}

/* y = x Phi(x) */
static ng_tensor *gelu_definition(ng_tape *tape, const ng_node *node)
{
    ng_tensor *const x = node->inputs[0];
    return gated(tape, x, 40, normal_below(tape, ng_clamp(tape, x, -40, 40)));
}

/* Phi(x) + x phi(x); x is clamped to where phi is 0 */
static void gelu_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *const x = ng_clamp(tape, node->inputs[0], -40, 40);
    ng_tensor *bell = ng_exp(tape, ng_mul_scalar(tape, ng_square(tape, x), -0.5));
    ng_tensor *x_phi = ng_mul_scalar(tape, ng_mul(tape, x, bell), 0.39894228040143267794);
    dx[0] = ng_mul(tape, dy, ng_add(tape, normal_below(tape, x), x_phi));
}
ACTIVATION(gelu, NG_MAP_GELU, gelu_gradient, gelu_definition)

/* u = 2 z = 2 sqrt(2/pi) (x + 0.044715 x^3), and unless it is NULL du = u' */
static ng_tensor *gelu_tanh_u(ng_tape *tape, ng_tensor *x, ng_tensor **du)
{
    const double scale = 2 * 0.79788456080286535588, cubic = 0.044715 * scale;
    ng_tensor *square = ng_square(tape, x);
    if (du) *du = ng_add_scalar(tape, ng_mul_scalar(tape, square, 3 * cubic), scale);
    return ng_mul(tape, x, ng_add_scalar(tape, ng_mul_scalar(tape, square, cubic), scale));
}

/* y = x/2 (1 + tanh z) = x sigmoid(u) */
static ng_tensor *gelu_tanh_definition(ng_tape *tape, const ng_node *node)
{
    ng_tensor *const x = node->inputs[0];
    ng_tensor *u = gelu_tanh_u(tape, ng_clamp(tape, x, -40, 40), NULL);
    return gated(tape, x, 40, ng_sigmoid(tape, u));
}

/* s + x s sigmoid(-u) u', s = sigmoid(u) */
static void gelu_tanh_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *const x = ng_clamp(tape, node->inputs[0], -40, 40), *du;
    ng_tensor *u = gelu_tanh_u(tape, x, &du);
    ng_tensor *s = ng_sigmoid(tape, u), *rest = ng_sigmoid(tape, ng_neg(tape, u));
    ng_tensor *ds = ng_mul(tape, ng_mul(tape, s, rest), du);
    dx[0] = ng_mul(tape, dy, ng_add(tape, s, ng_mul(tape, x, ds)));
}
ACTIVATION(gelu_tanh, NG_MAP_GELU_TANH, gelu_tanh_gradient, gelu_tanh_definition)

/* y = x tanh(softplus(x)), which is 0 below -800, and x above 800 */
static ng_tensor *mish_definition(ng_tape *tape, const ng_node *node)
{
    ng_tensor *const x = node->inputs[0], *near = ng_clamp(tape, x, -800, 800);
    ng_tensor *beyond =
        ng_greater(tape, ng_detach(tape, x), ng_full(tape, x->dtype, NG_SCALAR, 800));
    ng_tensor *y = ng_mul(tape, near, ng_tanh(tape, ng_softplus(tape, near)));
    return ng_where(tape, beyond, x, y);
}
ACTIVATION(mish, NG_MAP_MISH, NULL, mish_definition)

/* ---- With a kink at 0, where the slope is that of the left ---------------------------------- */

/* y = max(x, 0): 0 where x <= 0, else 1, so that a NaN is not cut off */
static void relu_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *const x = node->inputs[0], *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    dx[0] = ng_where(tape, ng_greater_equal(tape, zero, ng_detach(tape, x)), zero, dy);
}
ACTIVATION(relu, NG_MAP_RELU, relu_gradient, NULL)

/* y = x > 0 ? x : slope x: slope + (1 - slope) [x > 0] */
static void leaky_relu_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const double slope = ((const ng_mapping *)node->attributes)->a;
    ng_tensor *const x = node->inputs[0], *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    ng_tensor *right = ng_greater(tape, ng_detach(tape, x), zero);
    dx[0] = ng_mul(tape, dy, ng_add_scalar(tape, ng_mul_scalar(tape, right, 1 - slope), slope));
}

static const ng_op leaky_relu_op = {
    .name = "leaky_relu", .gradient = leaky_relu_gradient, .backward = ng_map_backward};

ng_tensor *ng_leaky_relu(ng_tape *tape, ng_tensor *x, double slope)
{
    return ng_map_record("ng_leaky_relu", tape, &leaky_relu_op, x, NG_MAP_LEAKY_RELU, slope, 0);
}

/* y = x > 0 ? x : a (e^bx - 1): the slope is 1, or a b e^bx, which has more digits than b (y + a).
 * For x > 0 the exponent is 0, so that no infinity arises in the branch that is not used. */
static void elu_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const ng_mapping *const f = node->attributes;
    ng_tensor *const x = node->inputs[0], *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    ng_tensor *right = ng_greater(tape, ng_detach(tape, x), zero);
    ng_tensor *one = ng_full(tape, x->dtype, NG_SCALAR, 1);
    ng_tensor *exponent = ng_mul_scalar(tape, ng_where(tape, right, zero, x), f->b);
    ng_tensor *left = ng_mul_scalar(tape, ng_exp(tape, exponent), f->a * f->b);
    dx[0] = ng_mul(tape, dy, ng_where(tape, right, one, left));
}

static const ng_op elu_op = {.name = "elu", .gradient = elu_gradient, .backward = ng_map_backward};

ng_tensor *ng_elu(ng_tape *tape, ng_tensor *x, double alpha)
{
    return ng_map_record("ng_elu", tape, &elu_op, x, NG_MAP_ELU, alpha, 1);
}

ng_tensor *ng_celu(ng_tape *tape, ng_tensor *x, double alpha)
{
    if (!ng_accepts("ng_celu", tape, 1, &x)) return NULL;
    if (!ng_above_zero("ng_celu", "alpha", alpha)) return NULL;
    return ng_map_record("ng_celu", tape, &elu_op, x, NG_MAP_ELU, alpha, 1 / alpha);
}

/* y = scale elu(x, alpha), with which mean 0 and variance 1 are a fixed point */
ng_tensor *ng_selu(ng_tape *tape, ng_tensor *x)
{
    if (!ng_accepts("ng_selu", tape, 1, &x)) return NULL;
    return ng_mul_scalar(tape, ng_elu(tape, x, 1.6732632423543772848), 1.0507009873554804934);
}

/* ---- Composed ------------------------------------------------------------------------------ */

/* y = x > 0 ? x : slope x */
ng_tensor *ng_prelu(ng_tape *tape, ng_tensor *x, ng_tensor *slope)
{
    if (!ng_accepts("ng_prelu", tape, 2, (ng_tensor *[]){x, slope})) return NULL;
    const ng_shape s = slope->shape;
    const bool one = s.rank == 1 && s.dim[0] == 1;
    if (!one && (s.rank != 1 || x->shape.rank < 2 || x->shape.dim[1] != s.dim[0])) {
        ng_fail(NG_ESHAPE,
                "ng_prelu: slope is %s and x %s, expected slope (1,), or (C,) for (N, C, ...)",
                ng_shape_print(s).text, ng_shape_print(x->shape).text);
        return NULL;
    }
    if (x->shape.rank == 0) slope = ng_reshape(tape, slope, NG_SCALAR);
    ng_tensor *low = ng_clamp(tape, x, -(double)INFINITY, 0); /* no infinity that does not count */
    ng_tensor *left = ng_mul(tape, low, one ? slope : ng_per_channel(tape, slope, x));
    ng_tensor *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    return ng_where(tape, ng_greater(tape, ng_detach(tape, x), zero), x, left);
}

/* y = a sigmoid(b) */
ng_tensor *ng_glu(ng_tape *tape, ng_tensor *x)
{
    if (!ng_accepts("ng_glu", tape, 1, &x) || !ng_has_halves("ng_glu", x)) return NULL;
    const int64_t n = ng_dim(x, -1) / 2;
    return ng_mul(tape, ng_features(tape, x, 0, n), ng_sigmoid(tape, ng_features(tape, x, 1, n)));
}

/* y = x / (1 + |x|), for |x| > 1 as sign(x) (1 - 1 / (1 + |x|)): so its slope 1 / (1 + |x|)^2 keeps
 * its digits, and is 0 for infinite x. */
ng_tensor *ng_softsign(ng_tape *tape, ng_tensor *x)
{
    if (!ng_accepts("ng_softsign", tape, 1, &x)) return NULL;
    ng_tensor *size = ng_abs(tape, x), *near = ng_clamp(tape, x, -1, 1);
    ng_tensor *one = ng_full(tape, x->dtype, NG_SCALAR, 1);
    ng_tensor *rest = ng_reciprocal(tape, ng_add_scalar(tape, size, 1));
    ng_tensor *far = ng_mul(tape, ng_sign(tape, x), ng_sub(tape, one, rest));
    ng_tensor *y = ng_div(tape, near, ng_add_scalar(tape, ng_abs(tape, near), 1));
    return ng_where(tape, ng_greater(tape, ng_detach(tape, size), one), far, y);
}

ng_tensor *ng_hardtanh(ng_tape *tape, ng_tensor *x)
{
    return ng_accepts("ng_hardtanh", tape, 1, &x) ? ng_clamp(tape, x, -1, 1) : NULL;
}

/* y = min(max(x, -3), 3) / 6 + 1/2 */
static ng_tensor *hard_step(ng_tape *tape, ng_tensor *x)
{
    return ng_add_scalar(tape, ng_mul_scalar(tape, ng_clamp(tape, x, -3, 3), 1.0 / 6), 0.5);
}

ng_tensor *ng_hardsigmoid(ng_tape *tape, ng_tensor *x)
{
    return ng_accepts("ng_hardsigmoid", tape, 1, &x) ? hard_step(tape, x) : NULL;
}

/* y = x hard_step(x): hard_step(x), and x/6 more where that rises */
static void hardswish_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *const x = node->inputs[0], *near = ng_clamp(tape, x, -3, 3);
    ng_tensor *rises = ng_equal(tape, ng_detach(tape, x), ng_detach(tape, near));
    ng_tensor *more = ng_mul_scalar(tape, ng_mul(tape, rises, near), 1.0 / 6);
    dx[0] = ng_mul(tape, dy, ng_add(tape, hard_step(tape, x), more));
}
ACTIVATION(hardswish, NG_MAP_HARDSWISH, hardswish_gradient, NULL)
