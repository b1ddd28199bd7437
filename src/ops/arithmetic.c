/* Arithmetic of two tensors, broadcasting, and of a tensor and a number. */
#include "ops/elementwise.h"

/* ---- Gradient rules: da and db are in the shape of y, and are summed back to a's and b's --- */

/* 1 where a > b, 0 where a < b, 1/2 where they are equal: (1 + [a > b] - [a < b]) / 2. */
static ng_tensor *share(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *a0 = ng_detach(tape, a), *b0 = ng_detach(tape, b);
    ng_tensor *sign = ng_sub(tape, ng_greater(tape, a0, b0), ng_less(tape, a0, b0));
    return ng_add_scalar(tape, ng_mul_scalar(tape, sign, 0.5), 0.5);
}

/* `instead` where the condition holds, else x. */
static ng_tensor *replace_where(ng_tape *tape, ng_tensor *condition, double instead, ng_tensor *x)
{
    return ng_where(tape, condition, ng_full(tape, ng_dtype_of(x), NG_SCALAR, instead), x);
}

/* b - 1, but 0 where a and b are 0, so that b a^(b-1) is 0 there. */
static ng_tensor *exponent_less_one(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *zero = ng_full(tape, ng_dtype_of(a), NG_SCALAR, 0);
    ng_tensor *both = ng_mul(tape, ng_equal(tape, ng_detach(tape, a), zero),
                             ng_equal(tape, ng_detach(tape, b), zero));
    return replace_where(tape, both, 0, ng_add_scalar(tape, b, -1));
}

/* a, but 1 where a is 0 and b at least 0, so that ln(a) a^b is 0 there, its limit for b > 0. */
static ng_tensor *base_of_log(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *zero = ng_full(tape, ng_dtype_of(a), NG_SCALAR, 0);
    ng_tensor *power = ng_mul(tape, ng_equal(tape, ng_detach(tape, a), zero),
                              ng_greater_equal(tape, ng_detach(tape, b), zero));
    return replace_where(tape, power, 1, a);
}

static ng_tensor *summed_to(ng_tape *tape, ng_tensor *d, const ng_tensor *x)
{
    return d && ng_same_shape(d, x) ? d : ng_sum_to(tape, d, x->shape);
}

#define RULE(op, da, db)                                                                           \
    static void op##_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)   \
    {                                                                                              \
        ng_tensor *const a = node->inputs[0], *const b = node->inputs[1], *const y = node->output; \
        (void)y;                                                                                   \
        if (ng_wants(dx, 0)) dx[0] = summed_to(tape, da, a);                                       \
        if (ng_wants(dx, 1)) dx[1] = summed_to(tape, db, b);                                       \
    }

RULE(add, dy, dy)
RULE(sub, dy, ng_neg(tape, dy))
RULE(mul, ng_mul(tape, dy, b), ng_mul(tape, dy, a))
RULE(div, ng_div(tape, dy, b), ng_neg(tape, ng_div(tape, ng_mul(tape, dy, y), b)))
RULE(pow, /* b a^(b-1) and ln(a) a^b */
     ng_mul(tape, dy, ng_mul(tape, b, ng_pow(tape, a, exponent_less_one(tape, a, b)))),
     ng_mul(tape, dy, ng_mul(tape, ng_log(tape, base_of_log(tape, a, b)), y)))
RULE(maximum, ng_mul(tape, dy, share(tape, a, b)), ng_mul(tape, dy, share(tape, b, a)))
RULE(minimum, ng_mul(tape, dy, share(tape, b, a)), ng_mul(tape, dy, share(tape, a, b)))

/* dx (+)= dy times the other operand; the kernel that multiplies is that of exp, whose slope is
 * its value: binary and axpy in its place take 1.1 to 1.35 times the time. Where anything is
 * broadcast, the product is summed to x's shape. */
static bool mul_into(ng_tape *tape, const ng_tensor *dy, const ng_tensor *other, const ng_tensor *x,
                     const ng_slot *dx)
{
    const ng_kernels *const kernels = ng_kernels_for(x->dtype);
    if (ng_same_shape(x, other)) {
        kernels->map_backward((ng_mapping){.kind = NG_MAP_EXP}, x->data, other->data, dy->data,
                              dx->data, x->size, dx->accumulate);
        return true;
    }
    const ng_walk walk = ng_walk_broadcast(dy->shape, dy->shape, other->shape);
    if (x->size == dy->size && !dx->accumulate) {
        kernels->binary(NG_BINARY_MUL, &walk, dy->data, other->data, dx->data);
        return true;
    }
    ng_tensor *const product = ng_result(tape, dy->dtype, dy->shape);
    if (!product) return false;
    kernels->binary(NG_BINARY_MUL, &walk, dy->data, other->data, product->data);
    const ng_tensor *const sum = ng_sum_to(tape, product, x->shape);
    if (sum) kernels->axpy(1, sum->data, dx->data, x->size, dx->accumulate);
    return sum;
}

static ng_status mul_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    for (int i = 0; i < 2; i++)
        if (dx[i].data && !mul_into(tape, dy, node->inputs[1 - i], node->inputs[i], &dx[i]))
            return ng_newest_status();
    return NG_OK;
}

#define BINARY(op, kernel, fast)                                                                   \
    static const ng_op op##_op = {.name = #op, .gradient = op##_gradient, .backward = fast};       \
    ng_tensor *ng_##op(ng_tape *tape, ng_tensor *a, ng_tensor *b)                                  \
    {                                                                                              \
        return ng_binary_record("ng_" #op, tape, &op##_op, a, b, kernel);                          \
    }

BINARY(add, NG_BINARY_ADD, NULL)
BINARY(sub, NG_BINARY_SUB, NULL)
BINARY(mul, NG_BINARY_MUL, mul_backward)
BINARY(div, NG_BINARY_DIV, NULL)
BINARY(pow, NG_BINARY_POW, NULL)
BINARY(maximum, NG_BINARY_MAXIMUM, NULL)
BINARY(minimum, NG_BINARY_MINIMUM, NULL)

/* ---- A tensor and a number: y = a x + b -------------------------------------------------- */

static void affine_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const double a = ((const ng_mapping *)node->attributes)->a;
    dx[0] = a == 1 ? dy : ng_mul_scalar(tape, dy, a);
}

static const ng_op add_scalar_op = {.name = "add_scalar", .gradient = affine_gradient};
static const ng_op mul_scalar_op = {.name = "mul_scalar", .gradient = affine_gradient};
static const ng_op scalar_sub_op = {.name = "scalar_sub", .gradient = affine_gradient};

ng_tensor *ng_add_scalar(ng_tape *tape, ng_tensor *x, double c)
{
    return ng_map_record("ng_add_scalar", tape, &add_scalar_op, x, NG_MAP_AFFINE, 1, c);
}

ng_tensor *ng_mul_scalar(ng_tape *tape, ng_tensor *x, double c)
{
    return ng_map_record("ng_mul_scalar", tape, &mul_scalar_op, x, NG_MAP_AFFINE, c, 0);
}

ng_tensor *ng_scalar_sub(ng_tape *tape, double c, ng_tensor *x)
{
    return ng_map_record("ng_scalar_sub", tape, &scalar_sub_op, x, NG_MAP_AFFINE, -1, c);
}

ng_tensor *ng_scalar_div(ng_tape *tape, double c, ng_tensor *x)
{
    if (!ng_accepts("ng_scalar_div", tape, 1, &x)) return NULL;
    return ng_div(tape, ng_full(tape, x->dtype, NG_SCALAR, c), x);
}

/* y = x^p: p x^(p-1), and 0 for p = 0 also where x^-1 is infinite. */
static void pow_scalar_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const double p = ((const ng_mapping *)node->attributes)->a;
    ng_tensor *x = node->inputs[0];
    dx[0] = p == 0 ? ng_zeros_like(tape, x)
                   : ng_mul(tape, dy, ng_mul_scalar(tape, ng_pow_scalar(tape, x, p - 1), p));
}

static const ng_op pow_scalar_op = {.name = "pow_scalar", .gradient = pow_scalar_gradient};

ng_tensor *ng_pow_scalar(ng_tape *tape, ng_tensor *x, double p)
{
    const ng_map map = p == 2 ? NG_MAP_SQUARE : NG_MAP_POW; /* the same bits, many times faster */
    return ng_map_record("ng_pow_scalar", tape, &pow_scalar_op, x, map, p, 0);
}
