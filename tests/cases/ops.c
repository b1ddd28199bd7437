/* The cases of primitive ops, and of derivatives as ops. */
#include "table.h"
#include <math.h>

#define ELEMENTWISE(X)                                                                             \
    X(neg, (ANY("x", 3, 4)), ng_neg(tape, in[0]))                                                  \
    X(abs, (NOT_ZERO("x", 3, 4)), ng_abs(tape, in[0]))                                             \
    X(square, (ANY("x", 3, 4)), ng_square(tape, in[0]))                                            \
    X(reciprocal, (NOT_ZERO("x", 3, 4)), ng_reciprocal(tape, in[0]))                               \
    X(exp, (ANY("x", 3, 4)), ng_exp(tape, in[0]))                                                  \
    X(log, (POSITIVE("x", 3, 4)), ng_log(tape, in[0]))                                             \
    X(sqrt, (POSITIVE("x", 3, 4)), ng_sqrt(tape, in[0]))                                           \
    X(rsqrt, (POSITIVE("x", 3, 4)), ng_rsqrt(tape, in[0]))                                         \
    X(sin, (ANY("x", 3, 4)), ng_sin(tape, in[0]))                                                  \
    X(cos, (ANY("x", 3, 4)), ng_cos(tape, in[0]))                                                  \
    X(erf, (ANY("x", 3, 4)), ng_erf(tape, in[0]))                                                  \
    X(erfc, (ANY("x", 3, 4)), ng_erfc(tape, in[0]))                                                \
    X(sign, (NOT_ZERO("x", 3, 4)), ng_mul(tape, in[0], ng_sign(tape, in[0])))                      \
    X(floor, (BETWEEN("x", 2.2, 2.8, 3, 4)), ng_mul(tape, in[0], ng_floor(tape, in[0])))           \
    X(log1p, (POSITIVE("x", 3, 4)), ng_log1p(tape, in[0]))                                         \
    X(expm1, (ANY("x", 3, 4)), ng_expm1(tape, in[0]))                                              \
    X(atan, (ANY("x", 3, 4)), ng_atan(tape, in[0]))                                                \
    X(clamp_nothing_clamped, (BETWEEN("x", -3, 3, 3, 4)), ng_clamp(tape, in[0], -4, 4))            \
    X(clamp_from_below, (NOT_ZERO("x", 3, 4)), ng_clamp(tape, in[0], 0, (double)INFINITY))         \
    X(clamp_from_above, (NOT_ZERO("x", 3, 4)), ng_clamp(tape, in[0], -(double)INFINITY, 0.1))

#define ARITHMETIC(X)                                                                              \
    X(add_scalar, (ANY("x", 3, 4)), ng_add_scalar(tape, in[0], 1.5))                               \
    X(mul_scalar, (ANY("x", 3, 4)), ng_mul_scalar(tape, in[0], -2.5))                              \
    X(scalar_sub, (ANY("x", 3, 4)), ng_scalar_sub(tape, 1.5, in[0]))                               \
    X(scalar_div, (NOT_ZERO("x", 3, 4)), ng_scalar_div(tape, 1.5, in[0]))                          \
    X(pow_scalar_p_2, (ANY("x", 3, 4)), ng_pow_scalar(tape, in[0], 2))                             \
    X(pow_scalar_p_3, (ANY("x", 3, 4)), ng_pow_scalar(tape, in[0], 3))                             \
    X(pow_scalar_p_0_75, (POSITIVE("x", 3, 4)), ng_pow_scalar(tape, in[0], -0.75))
#define ARITHMETIC_BROADCASTING(X)                                                                 \
    X(add, (ANY("a", 3, 4), ANY("b", 3, 4)), ng_add(tape, in[0], in[1]))                           \
    X(sub, (ANY("a", 3, 4), ANY("b", 3, 4)), ng_sub(tape, in[0], in[1]))                           \
    X(mul, (ANY("a", 3, 4), ANY("b", 3, 4)), ng_mul(tape, in[0], in[1]))                           \
    X(div, (ANY("a", 3, 4), NOT_ZERO("b", 3, 4)), ng_div(tape, in[0], in[1]))                      \
    X(pow, (POSITIVE("a", 3, 4), ANY("b", 3, 4)), ng_pow(tape, in[0], in[1]))                      \
    X(maximum, (ANY("a", 3, 4), ANY("b", 3, 4)), ng_maximum(tape, in[0], in[1]))                   \
    X(minimum, (ANY("a", 3, 4), ANY("b", 3, 4)), ng_minimum(tape, in[0], in[1]))

#define COMBINE(X)                                                                                 \
    X(combine, (ANY("a", 3, 4), ANY("b", 3, 4), ANY("c", 3, 4)),                                   \
      ng_combine(tape, in, (const double[]){2, -0.5, 3}, 3))                                       \
    X(combine_one, (ANY("x", 3, 4)), ng_combine(tape, in, (const double[]){-2}, 1))                \
    X(combine_one_tensor_twice, (ANY("a", 5), ANY("b", 5)),                                        \
      ng_combine(tape, ((ng_tensor *[]){in[0], in[1], in[0]}), (const double[]){2, 1, -4}, 3))     \
    X(shift, (ANY("x", 2, 3, 2)), ng_shift(tape, in[0], 1, .axes = NG_AXES(1)))                    \
    X(shift_back_last_axis, (ANY("x", 2, 5)), ng_shift(tape, in[0], -2))

#define REDUCE(X)                                                                                  \
    X(sum, (ANY("x", 2, 3, 4)), ng_sum(tape, in[0]))                                               \
    X(sum_first_axis, (ANY("x", 2, 3, 4)), ng_sum(tape, in[0], .axes = NG_AXES(0)))                \
    X(sum_middle_axis_keepdim, (ANY("x", 2, 3, 4)),                                                \
      ng_sum(tape, in[0], .axes = NG_AXES(1), .keepdim = true))                                    \
    X(sum_last_axis, (ANY("x", 2, 3, 4)), ng_sum(tape, in[0], .axes = NG_AXES(-1)))                \
    X(sum_outer_axes, (ANY("x", 2, 3, 4)), ng_sum(tape, in[0], .axes = NG_AXES(0, 2)))             \
    X(mean, (ANY("x", 2, 3, 4)), ng_mean(tape, in[0]))                                             \
    X(mean_middle_axis, (ANY("x", 2, 3, 4)), ng_mean(tape, in[0], .axes = NG_AXES(1)))             \
    X(mean_outer_axes_keepdim, (ANY("x", 2, 3, 4)),                                                \
      ng_mean(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))                                \
    X(variance, (ANY("x", 2, 3, 4)), ng_variance(tape, in[0]))                                     \
    X(variance_last_axis_keepdim, (ANY("x", 2, 3, 4)),                                             \
      ng_variance(tape, in[0], .axes = NG_AXES(-1), .keepdim = true))                              \
    X(variance_unbiased, (ANY("x", 2, 3, 4)),                                                      \
      ng_variance(tape, in[0], .axes = NG_AXES(0, 2), .unbiased = true))                           \
    X(variance_correction, (ANY("x", 2, 3, 4)),                                                    \
      ng_variance(tape, in[0], .axes = NG_AXES(1), .correction = 1.5))                             \
    X(max, (ANY("x", 2, 3, 4)), ng_max(tape, in[0]))                                               \
    X(max_middle_axis, (ANY("x", 2, 3, 4)), ng_max(tape, in[0], .axes = NG_AXES(1)))               \
    X(max_outer_axes_keepdim, (ANY("x", 2, 3, 4)),                                                 \
      ng_max(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))                                 \
    X(min, (ANY("x", 2, 3, 4)), ng_min(tape, in[0]))                                               \
    X(min_middle_axis_keepdim, (ANY("x", 2, 3, 4)),                                                \
      ng_min(tape, in[0], .axes = NG_AXES(1), .keepdim = true))                                    \
    X(logsumexp, (ANY("x", 2, 3, 4)), ng_logsumexp(tape, in[0]))                                   \
    X(logsumexp_last_axis, (ANY("x", 2, 3, 4)), ng_logsumexp(tape, in[0], .axes = NG_AXES(-1)))    \
    X(logsumexp_outer_axes_keepdim, (ANY("x", 2, 3, 4)),                                           \
      ng_logsumexp(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))                           \
    X(logsumexp_last_axis_several, (ANY("x", 4, 4, 3)),                                            \
      ng_logsumexp(tape, in[0], .axes = NG_AXES(-1)))                                              \
    X(logsumexp_outer_axes_several, (ANY("x", 2, 16, 2)),                                          \
      ng_logsumexp(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))                           \
    X(sum_squares, (ANY("x", 2, 3, 4)), ng_sum_squares(tape, in[0]))                               \
    X(sum_squares_last_axis, (ANY("x", 2, 3, 4)),                                                  \
      ng_sum_squares(tape, in[0], .axes = NG_AXES(-1)))                                            \
    X(sum_squares_outer_axes_keepdim, (ANY("x", 2, 3, 4)),                                         \
      ng_sum_squares(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))                         \
    X(dot, (ANY("a", 3, 4), ANY("b", 3, 4)), ng_dot(tape, in[0], in[1]))                           \
    X(dot_with_itself, (ANY("x", 3, 4)), ng_dot(tape, in[0], in[0]))                               \
    X(sum_to, (ANY("x", 2, 3, 4)), ng_sum_to(tape, in[0], NG_SHAPE(3, 1)))                         \
    X(sum_to_scalar, (ANY("x", 2, 3, 4)), ng_sum_to(tape, in[0], NG_SCALAR))

#define LAYOUT(X)                                                                                  \
    X(reshape, (ANY("x", 3, 2, 4)), ng_reshape(tape, in[0], NG_SHAPE(4, -1)))                      \
    X(permute, (ANY("x", 2, 3, 4)), ng_permute(tape, in[0], NG_AXES(2, 0, 1)))                     \
    X(transpose, (ANY("x", 2, 3, 4)), ng_transpose(tape, in[0], 1, -1))                            \
    X(flip, (ANY("x", 2, 3, 4)), ng_flip(tape, in[0], .axes = NG_AXES(-1, 0)))                     \
    X(broadcast_to, (ANY("x", 3, 1)), ng_broadcast_to(tape, in[0], NG_SHAPE(2, 3, 4)))             \
    X(slice, (ANY("x", 2, 4, 3)), ng_slice(tape, in[0], 1, 1, 3))                                  \
    X(slice_negative_bounds, (ANY("x", 2, 2, 4)), ng_slice(tape, in[0], -1, -3, -1))               \
    X(slice_to_the_end, (ANY("x", 3, 4)), ng_slice(tape, in[0], 0, 1, NG_END))                     \
    X(pad, (ANY("x", 2, 3, 2)), ng_pad(tape, in[0], 1, 1, 2))                                      \
    X(concat, (ANY("a", 1, 3), ANY("b", 2, 3)), ng_concat(tape, in, 2, 0))                         \
    X(concat_three_middle_axis, (ANY("a", 2, 1, 3), ANY("b", 2, 2, 3), ANY("c", 2, 3, 3)),         \
      ng_concat(tape, in, 3, 1))                                                                   \
    X(concat_one_part_twice, (ANY("a", 2, 2), ANY("b", 2, 3)),                                     \
      ng_concat(tape, ((ng_tensor *[]){in[0], in[1], in[0]}), 3, -1))

/* Product of two chunks. */
static ng_tensor *chunk_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *chunks[3];
    if (ng_chunk(tape, in[0], 3, 1, chunks) != NG_OK) return NULL;
    return ng_concat(tape, NG_TENSORS(ng_mul(tape, chunks[1], chunks[0]), chunks[2]), 1);
}

#define PARTS(X)                                                                                   \
    X(squeeze, (ANY("x", 3, 1, 2)), ng_squeeze(tape, in[0], 1))                                    \
    X(unsqueeze, (ANY("x", 3, 2)), ng_unsqueeze(tape, in[0], -1))                                  \
    X(stack, (ANY("a", 2, 3), ANY("b", 2, 3), ANY("c", 2, 3)), ng_stack(tape, in, 3, 1))           \
    X(chunk, (ANY("x", 2, 6)), chunk_result(tape, in))                                             \
    X(roll, (ANY("x", 2, 5)), ng_roll(tape, in[0], -2, .axes = NG_AXES(1)))                        \
    X(repeat, (ANY("x", 3, 2)), ng_repeat(tape, in[0], NG_SHAPE(2, 1, 3)))                         \
    X(tril, (ANY("x", 2, 3, 4)), ng_tril(tape, in[0], 0))                                          \
    X(triu, (ANY("x", 4, 3)), ng_triu(tape, in[0], 1))

static ng_tensor *where_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *zero = ng_full(tape, ng_dtype_of(in[0]), NG_SCALAR, 0);
    return ng_where(tape, ng_greater(tape, in[0], zero), in[1], in[2]);
}

#define SELECT(X)                                                                                  \
    X(gather_rows, (ANY("table", 5, 3), INDEX("index", 5, 4)), ng_gather_rows(tape, in[0], in[1])) \
    X(gather_rows_two_dimensional_index, (ANY("table", 5, 2, 2), INDEX("index", 5, 2, 3)),         \
      ng_gather_rows(tape, in[0], in[1]))                                                          \
    X(scatter_add_rows, (ANY("x", 7, 3), INDEX("index", 5, 7)),                                    \
      ng_scatter_add_rows(tape, in[0], in[1], 5))                                                  \
    X(where, (CONSTANT("condition", 3, 4), ANY("a", 3, 4), ANY("b", 3, 4)),                        \
      where_result(tape, in))                                                                      \
    X(where_broadcasting, (CONSTANT("condition", 3, 1), ANY("a", 4), ANY("b", 2, 1, 1)),           \
      where_result(tape, in))

#define ORDER(X)                                                                                   \
    X(take_along_axis, (ANY("x", 2, 4, 3), INDEX("index", 4, 2, 5, 3)),                            \
      ng_take_along_axis(tape, in[0], in[1], .axes = NG_AXES(1)))                                  \
    X(scatter_add_along_axis, (ANY("x", 2, 5, 3), INDEX("index", 4, 2, 5, 3)),                     \
      ng_scatter_add_along_axis(tape, in[0], in[1], 4, .axes = NG_AXES(1)))                        \
    X(sort, (ANY("x", 2, 5, 3)), ng_sort(tape, in[0], .axes = NG_AXES(1)))                         \
    X(sort_descending_first_axis, (ANY("x", 6, 2)),                                                \
      ng_sort(tape, in[0], .axes = NG_AXES(0), .descending = true))                                \
    X(top_k, (ANY("x", 3, 5)), ng_top_k(tape, in[0], 2))                                           \
    X(top_k_smallest, (ANY("x", 5, 2)),                                                            \
      ng_top_k(tape, in[0], 3, .axes = NG_AXES(0), .smallest = true))

/* x with one element replaced by 0, whose slope stays 1. */
static ng_tensor *prod_of_a_zero_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *keep = ng_from(tape, ng_dtype_of(in[0]), NG_SHAPE(4), NG_VALUES(1, 0, 1, 1));
    ng_tensor *twice = ng_add(tape, in[0], ng_mul(tape, in[0], keep));
    return ng_prod(tape, ng_sub(tape, twice, ng_detach(tape, in[0], .by_definition = true)),
                   .axes = NG_AXES(1));
}

#define PRODUCTS(X)                                                                                \
    X(cumsum, (ANY("x", 2, 3, 4)), ng_cumsum(tape, in[0], .axes = NG_AXES(1)))                     \
    X(cumsum_last_axis, (ANY("x", 3, 5)), ng_cumsum(tape, in[0]))                                  \
    X(prod, (ANY("x", 2, 3)), ng_prod(tape, in[0]))                                                \
    X(prod_middle_axis_keepdim, (ANY("x", 2, 5, 3)),                                               \
      ng_prod(tape, in[0], .axes = NG_AXES(1), .keepdim = true))                                   \
    X(prod_outer_axes, (ANY("x", 2, 3, 3)), ng_prod(tape, in[0], .axes = NG_AXES(0, 2)))           \
    X(prod_with_a_zero, (ANY("x", 3, 4)), prod_of_a_zero_result(tape, in))                         \
    X(norm, (ANY("x", 3, 4)), ng_norm(tape, in[0]))                                                \
    X(norm_outer_axes_keepdim, (ANY("x", 2, 3, 4)),                                                \
      ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .keepdim = true))                                \
    X(norm_order_1, (NOT_ZERO("x", 2, 3)), ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 1))   \
    X(norm_order_3, (NOT_ZERO("x", 2, 3)), ng_norm(tape, in[0], .axes = NG_AXES(-1), .order = 3))  \
    X(norm_order_1_5, (NOT_ZERO("x", 2, 3)), ng_norm(tape, in[0], .order = 1.5))                   \
    X(norm_infinite_order_outer_axes_keepdim, (NOT_ZERO("x", 2, 3, 4)),                            \
      ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = HUGE_VAL, .keepdim = true))             \
    X(norm_order_0, (NOT_ZERO("x", 2, 3)),                                                         \
      ng_mul(tape, ng_sum(tape, in[0]), ng_norm(tape, in[0], .order = NG_ZERO)))                   \
    X(cumprod, (ANY("x", 2, 5, 2)), ng_cumprod(tape, in[0], .axes = NG_AXES(1)))                   \
    X(cosine_similarity, (ANY("a", 3, 4), ANY("b", 3, 4)),                                         \
      ng_cosine_similarity(tape, in[0], in[1]))                                                    \
    X(cosine_similarity_first_axis, (ANY("a", 4, 3), ANY("b", 4, 3)),                              \
      ng_cosine_similarity(tape, in[0], in[1], .axes = NG_AXES(0), .eps = 1e-3))

#define MATMUL(X)                                                                                  \
    X(matmul, (ANY("a", 2, 3), ANY("b", 3, 4)), ng_matmul(tape, in[0], in[1]))                     \
    X(matmul_transposed_a, (ANY("a", 3, 2), ANY("b", 3, 4)),                                       \
      ng_matmul(tape, in[0], in[1], .transpose_a = true))                                          \
    X(matmul_transposed_b, (ANY("a", 2, 3), ANY("b", 4, 3)),                                       \
      ng_matmul(tape, in[0], in[1], .transpose_b = true))                                          \
    X(matmul_both_transposed, (ANY("a", 3, 2), ANY("b", 4, 3)),                                    \
      ng_matmul(tape, in[0], in[1], .transpose_a = true, .transpose_b = true))                     \
    X(matmul_batch, (ANY("a", 2, 2, 3), ANY("b", 2, 3, 2)), ng_matmul(tape, in[0], in[1]))         \
    X(matmul_batch_both_transposed, (ANY("a", 2, 3, 2), ANY("b", 2, 2, 3)),                        \
      ng_matmul(tape, in[0], in[1], .transpose_a = true, .transpose_b = true))                     \
    X(matmul_batch_x_one, (ANY("a", 2, 2, 3), ANY("b", 3, 2)), ng_matmul(tape, in[0], in[1]))      \
    X(matmul_batch_x_one_transposed_b, (ANY("a", 2, 2, 3), ANY("b", 2, 3)),                        \
      ng_matmul(tape, in[0], in[1], .transpose_b = true))                                          \
    X(matmul_one_x_batch, (ANY("a", 2, 3), ANY("b", 2, 3, 2)), ng_matmul(tape, in[0], in[1]))      \
    X(matmul_broadcast_batches, (ANY("a", 2, 1, 2, 3), ANY("b", 3, 3, 2)),                         \
      ng_matmul(tape, in[0], in[1]))                                                               \
    X(matmul_broadcast_batches_transposed_a, (ANY("a", 3, 3, 2), ANY("b", 2, 1, 3, 2)),            \
      ng_matmul(tape, in[0], in[1], .transpose_a = true))                                          \
    X(matmul_two_vectors, (ANY("a", 3), ANY("b", 3)), ng_matmul(tape, in[0], in[1]))               \
    X(matmul_vector_x_batch, (ANY("a", 3), ANY("b", 2, 3, 2)), ng_matmul(tape, in[0], in[1]))      \
    X(matmul_batch_x_vector_transposed_a, (ANY("a", 2, 3, 2), ANY("b", 3)),                        \
      ng_matmul(tape, in[0], in[1], .transpose_a = true))                                          \
    X(linear, (ANY("x", 4, 3), ANY("weight", 2, 3), ANY("bias", 2)),                               \
      ng_linear(tape, in[0], in[1], in[2]))                                                        \
    X(linear_leading_dimensions, (ANY("x", 2, 2, 3), ANY("weight", 2, 3), ANY("bias", 2)),         \
      ng_linear(tape, in[0], in[1], in[2]))                                                        \
    X(linear_one_row, (ANY("x", 3), ANY("weight", 2, 3), ANY("bias", 2)),                          \
      ng_linear(tape, in[0], in[1], in[2]))                                                        \
    X(linear_no_bias, (ANY("x", 4, 3), ANY("weight", 2, 3)), ng_linear(tape, in[0], in[1], NG_NONE))

/* sum tanh(x w)^2: a function that is nonlinear in both operands. */
static ng_tensor *curved(ng_tape *tape, ng_tensor *const *in)
{
    return ng_tanh(tape, ng_matmul(tape, in[0], in[1]));
}

static ng_tensor *hvp_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *products[2], *y = ng_sum(tape, ng_square(tape, curved(tape, in)));
    if (!y || ng_hvp(tape, y, in, 2, in + 2, products, .record = true) != NG_OK) return NULL;
    return ng_concat(tape, products, 2, 0);
}

#define DERIVATIVES(X)                                                                             \
    X(jacobian, (ANY("x", 2, 2), ANY("w", 2, 2)),                                                  \
      ng_jacobian(tape, curved(tape, in), in[0], .record = true))                                  \
    X(hessian, (ANY("x", 3, 2), ANY("w", 2, 2)),                                                   \
      ng_hessian(tape, ng_sum(tape, curved(tape, in)), in[1], .record = true))                     \
    X(hvp, (ANY("x", 3, 2), ANY("w", 2, 2), ANY("vx", 3, 2), ANY("vw", 2, 2)),                     \
      hvp_result(tape, in))                                                                        \
    X(jvp, (ANY("x", 3, 2), ANY("w", 2, 2), ANY("vx", 3, 2), ANY("vw", 2, 2)),                     \
      ng_jvp(tape, curved(tape, in), in, 2, in + 2, .record = true))

/* clang-format off */
#define ALL(X)                                                                                     \
    ELEMENTWISE(X) ARITHMETIC(X) COMBINE(X) REDUCE(X) LAYOUT(X) PARTS(X) SELECT(X) ORDER(X)        \
    PRODUCTS(X) MATMUL(X) DERIVATIVES(X)
/* clang-format on */
#define ALL_BROADCASTING(X) ARITHMETIC_BROADCASTING(X)

ALL(OP_CALL)
ALL_BROADCASTING(OP_CALL)

static const gradient_case cases[] = {ALL(OP_ROW) ALL_BROADCASTING(BROADCAST_ROW)};
const case_list op_cases = LIST(cases);
