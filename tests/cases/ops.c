/* The cases of primitive ops, and of derivatives as ops. */
#include "table.h"
#include <math.h>

/* ---- elementwise ---------------------------------------------------------------------------- */

CALL(case_neg, ng_neg(tape, in[0]))
CALL(case_abs, ng_abs(tape, in[0]))
CALL(case_square, ng_square(tape, in[0]))
CALL(case_reciprocal, ng_reciprocal(tape, in[0]))
CALL(case_exp, ng_exp(tape, in[0]))
CALL(case_log, ng_log(tape, in[0]))
CALL(case_sqrt, ng_sqrt(tape, in[0]))
CALL(case_rsqrt, ng_rsqrt(tape, in[0]))
CALL(case_sin, ng_sin(tape, in[0]))
CALL(case_cos, ng_cos(tape, in[0]))
CALL(case_erf, ng_erf(tape, in[0]))
CALL(case_erfc, ng_erfc(tape, in[0]))
CALL(case_sign, ng_mul(tape, in[0], ng_sign(tape, in[0])))
CALL(case_floor, ng_mul(tape, in[0], ng_floor(tape, in[0])))
CALL(case_log1p, ng_log1p(tape, in[0]))
CALL(case_expm1, ng_expm1(tape, in[0]))
CALL(case_atan, ng_atan(tape, in[0]))
CALL(case_clamp_inside, ng_clamp(tape, in[0], -4, 4))
CALL(case_clamp_below, ng_clamp(tape, in[0], 0, (double)INFINITY))
CALL(case_clamp_above, ng_clamp(tape, in[0], -(double)INFINITY, 0.1))

static const gradient_case elementwise_cases[] = {
    OP("neg", case_neg, ANY("x", 3, 4)),
    OP("abs", case_abs, NOT_ZERO("x", 3, 4)),
    OP("square", case_square, ANY("x", 3, 4)),
    OP("reciprocal", case_reciprocal, NOT_ZERO("x", 3, 4)),
    OP("exp", case_exp, ANY("x", 3, 4)),
    OP("log", case_log, POSITIVE("x", 3, 4)),
    OP("sqrt", case_sqrt, POSITIVE("x", 3, 4)),
    OP("rsqrt", case_rsqrt, POSITIVE("x", 3, 4)),
    OP("sin", case_sin, ANY("x", 3, 4)),
    OP("cos", case_cos, ANY("x", 3, 4)),
    OP("erf", case_erf, ANY("x", 3, 4)),
    OP("erfc", case_erfc, ANY("x", 3, 4)),
    OP("sign", case_sign, NOT_ZERO("x", 3, 4)),
    OP("floor", case_floor, BETWEEN("x", 2.2, 2.8, 3, 4)),
    OP("log1p", case_log1p, POSITIVE("x", 3, 4)),
    OP("expm1", case_expm1, ANY("x", 3, 4)),
    OP("atan", case_atan, ANY("x", 3, 4)),
    OP("clamp (nothing clamped)", case_clamp_inside, BETWEEN("x", -3, 3, 3, 4)),
    OP("clamp (from below)", case_clamp_below, NOT_ZERO("x", 3, 4)),
    OP("clamp (from above)", case_clamp_above, NOT_ZERO("x", 3, 4)),
};

/* ---- arithmetic ----------------------------------------------------------------------------- */

CALL(case_add, ng_add(tape, in[0], in[1]))
CALL(case_sub, ng_sub(tape, in[0], in[1]))
CALL(case_mul, ng_mul(tape, in[0], in[1]))
CALL(case_div, ng_div(tape, in[0], in[1]))
CALL(case_pow, ng_pow(tape, in[0], in[1]))
CALL(case_maximum, ng_maximum(tape, in[0], in[1]))
CALL(case_minimum, ng_minimum(tape, in[0], in[1]))
CALL(case_add_scalar, ng_add_scalar(tape, in[0], 1.5))
CALL(case_mul_scalar, ng_mul_scalar(tape, in[0], -2.5))
CALL(case_scalar_sub, ng_scalar_sub(tape, 1.5, in[0]))
CALL(case_scalar_div, ng_scalar_div(tape, 1.5, in[0]))
CALL(case_pow_scalar_2, ng_pow_scalar(tape, in[0], 2))
CALL(case_pow_scalar_3, ng_pow_scalar(tape, in[0], 3))
CALL(case_pow_scalar_root, ng_pow_scalar(tape, in[0], -0.75))

/* An op that broadcasts two operands. */
#define BROADCASTING(label, function, ...)                                                         \
    {                                                                                              \
        .name = label, .call = function, .broadcasts = true, .inputs = { __VA_ARGS__ }             \
    }

static const gradient_case arithmetic_cases[] = {
    BROADCASTING("add", case_add, ANY("a", 3, 4), ANY("b", 3, 4)),
    BROADCASTING("sub", case_sub, ANY("a", 3, 4), ANY("b", 3, 4)),
    BROADCASTING("mul", case_mul, ANY("a", 3, 4), ANY("b", 3, 4)),
    BROADCASTING("div", case_div, ANY("a", 3, 4), NOT_ZERO("b", 3, 4)),
    BROADCASTING("pow", case_pow, POSITIVE("a", 3, 4), ANY("b", 3, 4)),
    BROADCASTING("maximum", case_maximum, ANY("a", 3, 4), ANY("b", 3, 4)),
    BROADCASTING("minimum", case_minimum, ANY("a", 3, 4), ANY("b", 3, 4)),
    OP("add_scalar", case_add_scalar, ANY("x", 3, 4)),
    OP("mul_scalar", case_mul_scalar, ANY("x", 3, 4)),
    OP("scalar_sub", case_scalar_sub, ANY("x", 3, 4)),
    OP("scalar_div", case_scalar_div, NOT_ZERO("x", 3, 4)),
    OP("pow_scalar (p = 2)", case_pow_scalar_2, ANY("x", 3, 4)),
    OP("pow_scalar (p = 3)", case_pow_scalar_3, ANY("x", 3, 4)),
    OP("pow_scalar (p = -0.75)", case_pow_scalar_root, POSITIVE("x", 3, 4)),
};

/* ---- combine -------------------------------------------------------------------------------- */

CALL(case_combine, ng_combine(tape, in, (const double[]){2, -0.5, 3}, 3))
CALL(case_combine_one, ng_combine(tape, in, (const double[]){-2}, 1))
CALL(case_combine_twice,
     ng_combine(tape, ((ng_tensor *[]){in[0], in[1], in[0]}), (const double[]){2, 1, -4}, 3))
CALL(case_shift, ng_shift(tape, in[0], 1, .axes = NG_AXES(1)))
CALL(case_shift_back, ng_shift(tape, in[0], -2))

static const gradient_case combine_cases[] = {
    OP("combine", case_combine, ANY("a", 3, 4), ANY("b", 3, 4), ANY("c", 3, 4)),
    OP("combine (one)", case_combine_one, ANY("x", 3, 4)),
    OP("combine (one tensor twice)", case_combine_twice, ANY("a", 5), ANY("b", 5)),
    OP("shift", case_shift, ANY("x", 2, 3, 2)),
    OP("shift (back, last axis)", case_shift_back, ANY("x", 2, 5)),
};

/* ---- reduce --------------------------------------------------------------------------------- */

CALL(case_sum, ng_sum(tape, in[0]))
CALL(case_sum_first, ng_sum(tape, in[0], .axes = NG_AXES(0)))
CALL(case_sum_middle, ng_sum(tape, in[0], .axes = NG_AXES(1), .keepdim = true))
CALL(case_sum_last, ng_sum(tape, in[0], .axes = NG_AXES(-1)))
CALL(case_sum_outer, ng_sum(tape, in[0], .axes = NG_AXES(0, 2)))
CALL(case_mean, ng_mean(tape, in[0]))
CALL(case_mean_middle, ng_mean(tape, in[0], .axes = NG_AXES(1)))
CALL(case_mean_outer, ng_mean(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))
CALL(case_variance, ng_variance(tape, in[0]))
CALL(case_variance_last, ng_variance(tape, in[0], .axes = NG_AXES(-1), .keepdim = true))
CALL(case_variance_unbiased, ng_variance(tape, in[0], .axes = NG_AXES(0, 2), .unbiased = true))
CALL(case_variance_correction, ng_variance(tape, in[0], .axes = NG_AXES(1), .correction = 1.5))
CALL(case_max, ng_max(tape, in[0]))
CALL(case_max_middle, ng_max(tape, in[0], .axes = NG_AXES(1)))
CALL(case_max_outer, ng_max(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))
CALL(case_min, ng_min(tape, in[0]))
CALL(case_min_middle, ng_min(tape, in[0], .axes = NG_AXES(1), .keepdim = true))
CALL(case_logsumexp, ng_logsumexp(tape, in[0]))
CALL(case_logsumexp_last, ng_logsumexp(tape, in[0], .axes = NG_AXES(-1)))
CALL(case_logsumexp_outer, ng_logsumexp(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))
CALL(case_sum_squares, ng_sum_squares(tape, in[0]))
CALL(case_sum_squares_last, ng_sum_squares(tape, in[0], .axes = NG_AXES(-1)))
CALL(case_sum_squares_outer, ng_sum_squares(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))
CALL(case_dot, ng_dot(tape, in[0], in[1]))
CALL(case_dot_itself, ng_dot(tape, in[0], in[0]))
CALL(case_sum_to, ng_sum_to(tape, in[0], NG_SHAPE(3, 1)))
CALL(case_sum_to_scalar, ng_sum_to(tape, in[0], NG_SCALAR))

static const gradient_case reduce_cases[] = {
    OP("sum", case_sum, ANY("x", 2, 3, 4)),
    OP("sum (first axis)", case_sum_first, ANY("x", 2, 3, 4)),
    OP("sum (middle axis, keepdim)", case_sum_middle, ANY("x", 2, 3, 4)),
    OP("sum (last axis)", case_sum_last, ANY("x", 2, 3, 4)),
    OP("sum (outer axes)", case_sum_outer, ANY("x", 2, 3, 4)),
    OP("mean", case_mean, ANY("x", 2, 3, 4)),
    OP("mean (middle axis)", case_mean_middle, ANY("x", 2, 3, 4)),
    OP("mean (outer axes, keepdim)", case_mean_outer, ANY("x", 2, 3, 4)),
    OP("variance", case_variance, ANY("x", 2, 3, 4)),
    OP("variance (last axis, keepdim)", case_variance_last, ANY("x", 2, 3, 4)),
    OP("variance (unbiased)", case_variance_unbiased, ANY("x", 2, 3, 4)),
    OP("variance (correction)", case_variance_correction, ANY("x", 2, 3, 4)),
    OP("max", case_max, ANY("x", 2, 3, 4)),
    OP("max (middle axis)", case_max_middle, ANY("x", 2, 3, 4)),
    OP("max (outer axes, keepdim)", case_max_outer, ANY("x", 2, 3, 4)),
    OP("min", case_min, ANY("x", 2, 3, 4)),
    OP("min (middle axis, keepdim)", case_min_middle, ANY("x", 2, 3, 4)),
    OP("logsumexp", case_logsumexp, ANY("x", 2, 3, 4)),
    OP("logsumexp (last axis)", case_logsumexp_last, ANY("x", 2, 3, 4)),
    OP("logsumexp (outer axes, keepdim)", case_logsumexp_outer, ANY("x", 2, 3, 4)),
    OP("logsumexp (last axis, several)", case_logsumexp_last, ANY("x", 4, 4, 3)),
    OP("logsumexp (outer axes, several)", case_logsumexp_outer, ANY("x", 2, 16, 2)),
    OP("sum_squares", case_sum_squares, ANY("x", 2, 3, 4)),
    OP("sum_squares (last axis)", case_sum_squares_last, ANY("x", 2, 3, 4)),
    OP("sum_squares (outer axes, keepdim)", case_sum_squares_outer, ANY("x", 2, 3, 4)),
    OP("dot", case_dot, ANY("a", 3, 4), ANY("b", 3, 4)),
    OP("dot (with itself)", case_dot_itself, ANY("x", 3, 4)),
    OP("sum_to", case_sum_to, ANY("x", 2, 3, 4)),
    OP("sum_to (scalar)", case_sum_to_scalar, ANY("x", 2, 3, 4)),
};

/* ---- layout --------------------------------------------------------------------------------- */

CALL(case_reshape, ng_reshape(tape, in[0], NG_SHAPE(4, -1)))
CALL(case_permute, ng_permute(tape, in[0], NG_AXES(2, 0, 1)))
CALL(case_flip, ng_flip(tape, in[0], .axes = NG_AXES(-1, 0)))
CALL(case_transpose, ng_transpose(tape, in[0], 1, -1))
CALL(case_broadcast_to, ng_broadcast_to(tape, in[0], NG_SHAPE(2, 3, 4)))
CALL(case_slice, ng_slice(tape, in[0], 1, 1, 3))
CALL(case_slice_negative, ng_slice(tape, in[0], -1, -3, -1))
CALL(case_slice_end, ng_slice(tape, in[0], 0, 1, NG_END))
CALL(case_pad, ng_pad(tape, in[0], 1, 1, 2))
CALL(case_concat, ng_concat(tape, in, 2, 0))
CALL(case_concat_three, ng_concat(tape, in, 3, 1))
CALL(case_concat_twice, ng_concat(tape, ((ng_tensor *[]){in[0], in[1], in[0]}), 3, -1))

static const gradient_case layout_cases[] = {
    OP("reshape", case_reshape, ANY("x", 3, 2, 4)),
    OP("permute", case_permute, ANY("x", 2, 3, 4)),
    OP("transpose", case_transpose, ANY("x", 2, 3, 4)),
    OP("flip", case_flip, ANY("x", 2, 3, 4)),
    OP("broadcast_to", case_broadcast_to, ANY("x", 3, 1)),
    OP("slice", case_slice, ANY("x", 2, 4, 3)),
    OP("slice (negative bounds)", case_slice_negative, ANY("x", 2, 2, 4)),
    OP("slice (to the end)", case_slice_end, ANY("x", 3, 4)),
    OP("pad", case_pad, ANY("x", 2, 3, 2)),
    OP("concat", case_concat, ANY("a", 1, 3), ANY("b", 2, 3)),
    OP("concat (three, middle axis)", case_concat_three, ANY("a", 2, 1, 3), ANY("b", 2, 2, 3),
       ANY("c", 2, 3, 3)),
    OP("concat (one part twice)", case_concat_twice, ANY("a", 2, 2), ANY("b", 2, 3)),
};

/* ---- parts ---------------------------------------------------------------------------------- */

CALL(case_squeeze, ng_squeeze(tape, in[0], 1))
CALL(case_unsqueeze, ng_unsqueeze(tape, in[0], -1))
CALL(case_stack, ng_stack(tape, in, 3, 1))
CALL(case_roll, ng_roll(tape, in[0], -2, .axes = NG_AXES(1)))
CALL(case_repeat, ng_repeat(tape, in[0], NG_SHAPE(2, 1, 3)))
CALL(case_tril, ng_tril(tape, in[0], 0))
CALL(case_triu, ng_triu(tape, in[0], 1))

/* Product of two chunks. */
static ng_tensor *case_chunk(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_tensor *chunks[3];
    if (ng_chunk(tape, in[0], 3, 1, chunks) != NG_OK) return NULL;
    return ng_concat(tape, NG_TENSORS(ng_mul(tape, chunks[1], chunks[0]), chunks[2]), 1);
}

static const gradient_case parts_cases[] = {
    OP("squeeze", case_squeeze, ANY("x", 3, 1, 2)),
    OP("unsqueeze", case_unsqueeze, ANY("x", 3, 2)),
    OP("stack", case_stack, ANY("a", 2, 3), ANY("b", 2, 3), ANY("c", 2, 3)),
    OP("chunk", case_chunk, ANY("x", 2, 6)),
    OP("roll", case_roll, ANY("x", 2, 5)),
    OP("repeat", case_repeat, ANY("x", 3, 2)),
    OP("tril", case_tril, ANY("x", 2, 3, 4)),
    OP("triu", case_triu, ANY("x", 4, 3)),
};

/* ---- select --------------------------------------------------------------------------------- */

static ng_tensor *case_where(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_tensor *zero = ng_full(tape, ng_dtype_of(in[0]), NG_SCALAR, 0);
    return ng_where(tape, ng_greater(tape, in[0], zero), in[1], in[2]);
}

CALL(case_gather, ng_gather_rows(tape, in[0], in[1]))
CALL(case_scatter_rows, ng_scatter_add_rows(tape, in[0], in[1], 5))

static const gradient_case select_cases[] = {
    OP("gather_rows", case_gather, ANY("table", 5, 3), INDEX("index", 5, 4)),
    OP("gather_rows (two-dimensional index)", case_gather, ANY("table", 5, 2, 2),
       INDEX("index", 5, 2, 3)),
    OP("scatter_add_rows", case_scatter_rows, ANY("x", 7, 3), INDEX("index", 5, 7)),
    OP("where", case_where, CONSTANT("condition", 3, 4), ANY("a", 3, 4), ANY("b", 3, 4)),
    OP("where (broadcasting)", case_where, CONSTANT("condition", 3, 1), ANY("a", 4),
       ANY("b", 2, 1, 1)),
};

/* ---- order ---------------------------------------------------------------------------------- */

CALL(case_take, ng_take_along_axis(tape, in[0], in[1], .axes = NG_AXES(1)))
CALL(case_scatter, ng_scatter_add_along_axis(tape, in[0], in[1], 4, .axes = NG_AXES(1)))
CALL(case_sort, ng_sort(tape, in[0], .axes = NG_AXES(1)))
CALL(case_sort_descending, ng_sort(tape, in[0], .axes = NG_AXES(0), .descending = true))
CALL(case_top_k, ng_top_k(tape, in[0], 2))
CALL(case_smallest, ng_top_k(tape, in[0], 3, .axes = NG_AXES(0), .smallest = true))

static const gradient_case order_cases[] = {
    OP("take_along_axis", case_take, ANY("x", 2, 4, 3), INDEX("index", 4, 2, 5, 3)),
    OP("scatter_add_along_axis", case_scatter, ANY("x", 2, 5, 3), INDEX("index", 4, 2, 5, 3)),
    OP("sort", case_sort, ANY("x", 2, 5, 3)),
    OP("sort (descending, first axis)", case_sort_descending, ANY("x", 6, 2)),
    OP("top_k", case_top_k, ANY("x", 3, 5)),
    OP("top_k (smallest)", case_smallest, ANY("x", 5, 2)),
};

/* ---- products ------------------------------------------------------------------------------- */

CALL(case_cumsum, ng_cumsum(tape, in[0], .axes = NG_AXES(1)))
CALL(case_cumsum_last, ng_cumsum(tape, in[0]))
CALL(case_prod, ng_prod(tape, in[0]))
CALL(case_prod_axis, ng_prod(tape, in[0], .axes = NG_AXES(1), .keepdim = true))
CALL(case_prod_axes, ng_prod(tape, in[0], .axes = NG_AXES(0, 2)))
CALL(case_norm, ng_norm(tape, in[0]))
CALL(case_norm_axes, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))
CALL(case_norm_one, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 1))
CALL(case_norm_three, ng_norm(tape, in[0], .axes = NG_AXES(-1), .order = 3))
CALL(case_norm_low, ng_norm(tape, in[0], .order = 1.5))
CALL(case_norm_infinite,
     ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = HUGE_VAL, .keepdim = true))
CALL(case_norm_zero, ng_mul(tape, ng_sum(tape, in[0]), ng_norm(tape, in[0], .order = NG_ZERO)))
CALL(case_cumprod, ng_cumprod(tape, in[0], .axes = NG_AXES(1)))
CALL(case_cosine, ng_cosine_similarity(tape, in[0], in[1]))
CALL(case_cosine_first, ng_cosine_similarity(tape, in[0], in[1], .axes = NG_AXES(0), .eps = 1e-3))

/* x with one element replaced by 0, whose slope stays 1. */
static ng_tensor *case_prod_of_a_zero(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_tensor *keep = ng_from(tape, ng_dtype_of(in[0]), NG_SHAPE(4), NG_VALUES(1, 0, 1, 1));
    ng_tensor *twice = ng_add(tape, in[0], ng_mul(tape, in[0], keep));
    return ng_prod(tape, ng_sub(tape, twice, ng_detach(tape, in[0], .by_definition = true)),
                   .axes = NG_AXES(1));
}

static const gradient_case products_cases[] = {
    OP("cumsum", case_cumsum, ANY("x", 2, 3, 4)),
    OP("cumsum (last axis)", case_cumsum_last, ANY("x", 3, 5)),
    OP("prod", case_prod, ANY("x", 2, 3)),
    OP("prod (middle axis, keepdim)", case_prod_axis, ANY("x", 2, 5, 3)),
    OP("prod (outer axes)", case_prod_axes, ANY("x", 2, 3, 3)),
    OP("prod (with a zero)", case_prod_of_a_zero, ANY("x", 3, 4)),
    OP("norm", case_norm, ANY("x", 3, 4)),
    OP("norm (outer axes, keepdim)", case_norm_axes, ANY("x", 2, 3, 4)),
    OP("norm (order 1)", case_norm_one, NOT_ZERO("x", 2, 3)),
    OP("norm (order 3)", case_norm_three, NOT_ZERO("x", 2, 3)),
    OP("norm (order 1.5)", case_norm_low, NOT_ZERO("x", 2, 3)),
    OP("norm (infinite order, outer axes, keepdim)", case_norm_infinite, NOT_ZERO("x", 2, 3, 4)),
    OP("norm (order 0)", case_norm_zero, NOT_ZERO("x", 2, 3)),
    OP("cumprod", case_cumprod, ANY("x", 2, 5, 2)),
    OP("cosine_similarity", case_cosine, ANY("a", 3, 4), ANY("b", 3, 4)),
    OP("cosine_similarity (first axis)", case_cosine_first, ANY("a", 4, 3), ANY("b", 4, 3)),
};

/* ---- matmul --------------------------------------------------------------------------------- */

CALL(case_matmul, ng_matmul(tape, in[0], in[1]))
CALL(case_matmul_ta, ng_matmul(tape, in[0], in[1], .transpose_a = true))
CALL(case_matmul_tb, ng_matmul(tape, in[0], in[1], .transpose_b = true))
CALL(case_matmul_tab, ng_matmul(tape, in[0], in[1], .transpose_a = true, .transpose_b = true))
CALL(case_matmul_vector, ng_matmul(tape, in[0], in[1], .transpose_a = true))
CALL(case_linear, ng_linear(tape, in[0], in[1], in[2]))
CALL(case_linear_no_bias, ng_linear(tape, in[0], in[1], NG_NONE))

static const gradient_case matmul_cases[] = {
    OP("matmul", case_matmul, ANY("a", 2, 3), ANY("b", 3, 4)),
    OP("matmul (transposed a)", case_matmul_ta, ANY("a", 3, 2), ANY("b", 3, 4)),
    OP("matmul (transposed b)", case_matmul_tb, ANY("a", 2, 3), ANY("b", 4, 3)),
    OP("matmul (both transposed)", case_matmul_tab, ANY("a", 3, 2), ANY("b", 4, 3)),
    OP("matmul (batch)", case_matmul, ANY("a", 2, 2, 3), ANY("b", 2, 3, 2)),
    OP("matmul (batch, both transposed)", case_matmul_tab, ANY("a", 2, 3, 2), ANY("b", 2, 2, 3)),
    OP("matmul (batch x one)", case_matmul, ANY("a", 2, 2, 3), ANY("b", 3, 2)),
    OP("matmul (batch x one, transposed b)", case_matmul_tb, ANY("a", 2, 2, 3), ANY("b", 2, 3)),
    OP("matmul (one x batch)", case_matmul, ANY("a", 2, 3), ANY("b", 2, 3, 2)),
    OP("matmul (broadcast batches)", case_matmul, ANY("a", 2, 1, 2, 3), ANY("b", 3, 3, 2)),
    OP("matmul (broadcast batches, transposed a)", case_matmul_ta, ANY("a", 3, 3, 2),
       ANY("b", 2, 1, 3, 2)),
    OP("matmul (two vectors)", case_matmul, ANY("a", 3), ANY("b", 3)),
    OP("matmul (vector x batch)", case_matmul, ANY("a", 3), ANY("b", 2, 3, 2)),
    OP("matmul (batch x vector, transposed a)", case_matmul_vector, ANY("a", 2, 3, 2), ANY("b", 3)),
    OP("linear", case_linear, ANY("x", 4, 3), ANY("weight", 2, 3), ANY("bias", 2)),
    OP("linear (leading dimensions)", case_linear, ANY("x", 2, 2, 3), ANY("weight", 2, 3),
       ANY("bias", 2)),
    OP("linear (one row)", case_linear, ANY("x", 3), ANY("weight", 2, 3), ANY("bias", 2)),
    OP("linear (no bias)", case_linear_no_bias, ANY("x", 4, 3), ANY("weight", 2, 3)),
};

/* ---- derivatives ---------------------------------------------------------------------------- */

/* sum tanh(x w)^2: a function that is nonlinear in both operands. */
static ng_tensor *curved(ng_tape *tape, ng_tensor *const *in)
{
    return ng_tanh(tape, ng_matmul(tape, in[0], in[1]));
}

static ng_tensor *case_hvp(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_tensor *products[2], *y = ng_sum(tape, ng_square(tape, curved(tape, in)));
    if (!y || ng_hvp(tape, y, in, 2, in + 2, products, .record = true) != NG_OK) return NULL;
    return ng_concat(tape, products, 2, 0);
}

CALL(case_jacobian, ng_jacobian(tape, curved(tape, in), in[0], .record = true))
CALL(case_hessian, ng_hessian(tape, ng_sum(tape, curved(tape, in)), in[1], .record = true))
CALL(case_jvp, ng_jvp(tape, curved(tape, in), in, 2, in + 2, .record = true))

static const gradient_case derivatives_cases[] = {
    OP("jacobian", case_jacobian, ANY("x", 2, 2), ANY("w", 2, 2)),
    OP("hessian", case_hessian, ANY("x", 3, 2), ANY("w", 2, 2)),
    OP("hvp", case_hvp, ANY("x", 3, 2), ANY("w", 2, 2), ANY("vx", 3, 2), ANY("vw", 2, 2)),
    OP("jvp", case_jvp, ANY("x", 3, 2), ANY("w", 2, 2), ANY("vx", 3, 2), ANY("vw", 2, 2)),
};

const case_list ops_lists[] = {
    LIST(elementwise_cases), LIST(arithmetic_cases), LIST(combine_cases),     LIST(reduce_cases),
    LIST(layout_cases),      LIST(parts_cases),      LIST(select_cases),      LIST(order_cases),
    LIST(products_cases),    LIST(matmul_cases),     LIST(derivatives_cases), {0},
};
