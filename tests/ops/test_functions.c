/* Functions against PyTorch: values and gradients of both orders; edge cases of elementwise
 * functions, reductions, sorting, losses, pooling and draws. */
#include "support/fixture.h"
#include "support/golden.h"
#include "support/support.h"
#include <math.h>

/* ---- Against PyTorch ----------------------------------------------------------------------- */

#define TOLERANCE 1e-11

typedef struct row row;
struct row {
    const char *name;
    ng_tensor *(*call)(ng_tensor *const *in, const row *self);
    int inputs; /* that have gradients */
    ng_reduction reduction;
};

static ng_tensor *as_labels(ng_tensor *x) { return ng_cast(tape, x, NG_I64); }

static ng_tensor *labels(void)
{
    return ng_from(tape, NG_I64, NG_SHAPE(6), NG_VALUES(0, 2, 4, 1, 2, 3));
}
static ng_tensor *weights(void)
{
    return ng_from(tape, NG_F64, NG_SHAPE(5), NG_VALUES(0.5, 2, 1, 0, 3));
}

/* X(name of the figures, operands with gradients, a call), at each of the three reductions */
#define LOSSES(X)                                                                                  \
    X(soft, 2, ng_cross_entropy(tape, in[0], in[1], .reduction = how))                             \
    X(soft_all, 2,                                                                                 \
      ng_cross_entropy(tape, in[0], in[1], .reduction = how, .smoothing = 0.2,                     \
                       .channels_first = true, .weights = in[2]))                                  \
    X(first, 1,                                                                                    \
      ng_cross_entropy(tape, in[0], as_labels(in[1]), .reduction = how, .ignore = true,            \
                       .ignored = 3, .channels_first = true))                                      \
    X(first_all, 1,                                                                                \
      ng_cross_entropy(tape, in[0], as_labels(in[1]), .reduction = how, .smoothing = 0.1,          \
                       .ignore = true, .ignored = 1, .channels_first = true, .weights = in[2]))    \
    X(nll_first, 1,                                                                                \
      ng_nll(tape, in[0], as_labels(in[1]), .reduction = how, .ignore = true,                      \
             .channels_first = true, .weights = in[2]))                                            \
    X(hinge, 1, ng_hinge(tape, in[0], in[1], .reduction = how))                                    \
    X(hinge_classes, 1, ng_hinge(tape, in[0], as_labels(in[1]), .reduction = how, .margin = 0.7))  \
    X(hinge_embedding, 1, ng_hinge_embedding(tape, in[0], in[1], .reduction = how, .margin = 1.5)) \
    X(cosine_embedding, 2,                                                                         \
      ng_cosine_embedding(tape, in[0], in[1], in[2], .reduction = how, .margin = -0.3))            \
    X(triplet, 3, ng_triplet(tape, in[0], in[1], in[2], .reduction = how, .margin = 1.2))          \
    X(triplet_swap, 3,                                                                             \
      ng_triplet(tape, in[0], in[1], in[2], .reduction = how, .margin = 2, .order = 3,             \
                 .swap = true))                                                                    \
    X(gaussian, 3, ng_gaussian_nll(tape, in[0], in[1], in[2], .reduction = how))                   \
    X(gaussian_full, 3,                                                                            \
      ng_gaussian_nll(tape, in[0], in[1], in[2], .reduction = how, .full = true, .eps = 0.1))      \
    X(bce, 2,                                                                                      \
      ng_binary_cross_entropy(tape, in[0], in[1], .reduction = how, .weights = in[2],              \
                              .positive_weights = in[3]))                                          \
    X(kl, 2, ng_kl_divergence(tape, ng_log_softmax(tape, in[0]), in[1], .reduction = how))         \
    X(nll, 1,                                                                                      \
      ng_nll(tape, in[0], labels(), .reduction = how, .weights = weights(), .ignore = true,        \
             .ignored = 1))                                                                        \
    X(weighted, 1,                                                                                 \
      ng_cross_entropy(tape, in[0], labels(), .reduction = how, .weights = weights()))             \
    X(weighted_smooth, 1,                                                                          \
      ng_cross_entropy(tape, in[0], labels(), .reduction = how, .weights = weights(),              \
                       .smoothing = 0.15, .ignore = true, .ignored = 2))

/* Self-attention between two Linears; y and the weights in one list. */
static ng_tensor *attended(ng_tensor *const *in, int64_t heads, ng_tensor *mask)
{
    ng_tensor *weights = NULL, *qkv = ng_linear(tape, in[0], in[1], in[2]);
    ng_tensor *y = ng_self_attention(tape, qkv, mask, .heads = heads, .weights = &weights);
    y = ng_linear(tape, y, in[3], in[4]);
    return ng_concat(
        tape,
        NG_TENSORS(ng_reshape(tape, y, NG_SHAPE(-1)), ng_reshape(tape, weights, NG_SHAPE(-1))), 0);
}

/* A module's output for ids, with these tensors for its parameters; the module is freed. */
static ng_tensor *embedded(ng_module *module, ng_tensor *const *parameters, int count)
{
    ng_tensor *ids = ng_from(tape, NG_I64, NG_SHAPE(2, 3), NG_VALUES(1, 0, 3, 2, 2, 1));
    assert_ok(ng_module_to(own(module), NG_F64));
    return ng_forward_using(module, tape, parameters, count, ids);
}

static ng_module *tied(void)
{
    ng_module *net = ng_sequential_new(ng_embedding_new(5, 3), ng_tanh_new(), ng_linear_new(3, 5));
    assert_ok(ng_module_tie(net, "2.weight", "0.weight"));
    return net;
}

#define FUNCTIONS(X)                                                                               \
    X(padded, 1,                                                                                   \
      ng_square(tape, embedded(ng_embedding_new(5, 3, .padded = true, .padding = 2), in, 1)))      \
    X(tied, 2, embedded(tied(), in, 2))                                                            \
    X(max_pool_ceil, 1, ng_max_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .ceil = true))    \
    X(max_pool_ceil_dilated, 1,                                                                    \
      ng_max_pool2d(tape, in[0], 2, .stride = 3, .dilation_h = 2, .ceil = true))                   \
    X(avg_pool_ceil, 1, ng_avg_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .ceil = true))    \
    X(avg_pool_ceil_late, 1,                                                                       \
      ng_avg_pool2d(tape, in[0], 2, .stride = 3, .padding = 1, .ceil = true))                      \
    X(avg_pool_exclude, 1,                                                                         \
      ng_avg_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .exclude_padding = true))           \
    X(avg_pool_both, 1,                                                                            \
      ng_avg_pool2d(tape, in[0], 2, .kernel_w = 3, .stride = 2, .padding = 1, .ceil = true,        \
                    .exclude_padding = true))                                                      \
    X(max_pool1d, 1, ng_max_pool1d(tape, in[0], 3, .stride = 2, .padding = 1))                     \
    X(max_pool1d_ceil, 1, ng_max_pool1d(tape, in[0], 2, .dilation = 2, .ceil = true))              \
    X(avg_pool1d, 1, ng_avg_pool1d(tape, in[0], 4))                                                \
    X(avg_pool1d_all, 1,                                                                           \
      ng_avg_pool1d(tape, in[0], 3, .stride = 2, .padding = 1, .ceil = true,                       \
                    .exclude_padding = true))                                                      \
    X(adaptive_avg_smaller, 1, ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(3, 2)))                  \
    X(adaptive_max_smaller, 1, ng_adaptive_max_pool(tape, in[0], NG_SHAPE(3, 2)))                  \
    X(adaptive_avg_global, 1, ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(1, 1)))                   \
    X(adaptive_max_global, 1, ng_adaptive_max_pool(tape, in[0], NG_SHAPE(1, 1)))                   \
    X(adaptive_avg_larger, 1, ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(7, 9)))                   \
    X(adaptive_max_larger, 1, ng_adaptive_max_pool(tape, in[0], NG_SHAPE(7, 9)))                   \
    X(adaptive_avg_same, 1, ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(6, 7)))                     \
    X(adaptive_max_same, 1, ng_adaptive_max_pool(tape, in[0], NG_SHAPE(6, 7)))                     \
    X(adaptive_avg_line, 1, ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(5)))                        \
    X(adaptive_max_line, 1, ng_adaptive_max_pool(tape, in[0], NG_SHAPE(5)))                        \
    X(flip, 1, ng_flip(tape, in[0], .axes = NG_AXES(0, 2)))                                        \
    X(roll, 1, ng_roll(tape, in[0], -8, .axes = NG_AXES(1)))                                       \
    X(roll_right, 1, ng_roll(tape, in[0], 2))                                                      \
    X(repeat, 1, ng_repeat(tape, in[0], NG_SHAPE(2, 3, 1, 2)))                                     \
    X(cumprod, 1, ng_cumprod(tape, in[0], .axes = NG_AXES(1)))                                     \
    X(cumprod_zeros, 1, ng_cumprod(tape, in[0], .axes = NG_AXES(1)))                               \
    X(variance_two, 1, ng_variance(tape, in[0], .axes = NG_AXES(0, 2), .correction = 2))           \
    X(variance_none, 1, ng_variance(tape, in[0], .axes = NG_AXES(0, 2), .correction = NG_ZERO))    \
    X(matmul_dot, 2, ng_matmul(tape, in[0], in[1]))                                                \
    X(matmul_row, 2, ng_matmul(tape, in[0], in[1]))                                                \
    X(matmul_column, 2, ng_matmul(tape, in[0], in[1]))                                             \
    X(norm_zero, 1,                                                                                \
      ng_mul(tape, ng_sum(tape, in[0], .axes = NG_AXES(1)),                                        \
             ng_norm(tape, in[0], .axes = NG_AXES(1), .order = NG_ZERO)))                          \
    X(norm_half, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = 0.5))                     \
    X(norm_zeros_half, 1, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 0.5))                  \
    X(norm_one, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = 1))                        \
    X(norm_zeros_one, 1, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 1))                     \
    X(norm_low, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = 1.5))                      \
    X(norm_zeros_low, 1, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 1.5))                   \
    X(norm_three, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = 3))                      \
    X(norm_zeros_three, 1, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 3))                   \
    X(norm_four, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = 4))                       \
    X(norm_zeros_four, 1, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 4))                    \
    X(norm_seven, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = 6.5))                    \
    X(norm_zeros_seven, 1, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = 6.5))                 \
    X(norm_infinite, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2), .order = HUGE_VAL))            \
    X(norm_zeros_infinite, 1, ng_norm(tape, in[0], .axes = NG_AXES(1), .order = HUGE_VAL))         \
    X(attention_pairs, 5, attended(in, 2, ng_unsqueeze(tape, in[5], 0)))                           \
    X(attention_heads, 5, attended(in, 2, ng_reshape(tape, in[5], NG_SHAPE(2, 2, 3, 3))))          \
    X(prelu_one, 2, ng_prelu(tape, in[0], in[1]))                                                  \
    X(elu, 1, ng_elu(tape, in[0], 0.7))                                                            \
    X(selu, 1, ng_selu(tape, in[0]))                                                               \
    X(celu, 1, ng_celu(tape, in[0], 0.5))                                                          \
    X(prelu, 2, ng_prelu(tape, in[0], in[1]))                                                      \
    X(glu, 1, ng_glu(tape, in[0]))                                                                 \
    X(local_response, 1, ng_local_response_norm(tape, in[0], 5, .alpha = 0.5, .k = 2))             \
    X(local_response_even, 1, ng_local_response_norm(tape, in[0], 4, .alpha = 2, .beta = 0.5))     \
    X(local_response_wide, 1, ng_local_response_norm(tape, in[0], 9))                              \
    X(mish, 1, ng_mish(tape, in[0]))                                                               \
    X(softsign, 1, ng_softsign(tape, in[0]))                                                       \
    X(hardtanh, 1, ng_hardtanh(tape, in[0]))                                                       \
    X(hardsigmoid, 1, ng_hardsigmoid(tape, in[0]))                                                 \
    X(hardswish, 1, ng_hardswish(tape, in[0]))                                                     \
    X(atan, 1, ng_atan(tape, in[0]))                                                               \
    X(expm1, 1, ng_expm1(tape, in[0]))                                                             \
    X(sign, 1, ng_mul(tape, in[0], ng_sign(tape, in[0])))                                          \
    X(floor, 1, ng_mul(tape, in[0], ng_floor(tape, in[0])))                                        \
    X(log1p, 1, ng_log1p(tape, in[0]))                                                             \
    X(cumsum, 1, ng_cumsum(tape, in[0], .axes = NG_AXES(1)))                                       \
    X(prod, 1, ng_prod(tape, in[0], .axes = NG_AXES(1)))                                           \
    X(min, 1, ng_min(tape, in[0], .axes = NG_AXES(0, 2)))                                          \
    X(norm, 1, ng_norm(tape, in[0], .axes = NG_AXES(0, 2)))                                        \
    X(cosine, 2, ng_cosine_similarity(tape, in[0], in[1], .axes = NG_AXES(1)))                     \
    X(sort, 1, ng_sort(tape, in[0], .axes = NG_AXES(1)))                                           \
    X(sort_descending, 1, ng_sort(tape, in[0], .axes = NG_AXES(0), .descending = true))            \
    X(top_k, 1, ng_top_k(tape, in[0], 3))                                                          \
    X(smallest, 1, ng_top_k(tape, in[0], 2, .axes = NG_AXES(0), .smallest = true))                 \
    X(take, 1, ng_take_along_axis(tape, in[0], ng_cast(tape, in[1], NG_I64), .axes = NG_AXES(1)))  \
    X(stack, 2, ng_stack(tape, NG_TENSORS(in[0], in[1], in[0]), 1))                                \
    X(tril, 1, ng_tril(tape, in[0], 1))                                                            \
    X(triu, 1, ng_triu(tape, in[0], -1))

#define CALL(name, inputs, ...)                                                                    \
    static ng_tensor *call_##name(ng_tensor *const *in, const row *self)                           \
    {                                                                                              \
        const ng_reduction how = self->reduction;                                                  \
        return (void)how, __VA_ARGS__;                                                             \
    }
LOSSES(CALL)
FUNCTIONS(CALL)

#define LOSS(name, inputs, ...)                                                                    \
    {#name "_mean", call_##name, inputs, NG_MEAN}, {#name "_sum", call_##name, inputs, NG_SUM},    \
        {#name "_none", call_##name, inputs, NG_EACH},
#define FUNCTION(name, inputs, ...) {#name, call_##name, inputs, NG_MEAN},
static const row rows[] = {LOSSES(LOSS) FUNCTIONS(FUNCTION)};
enum { N_ROWS = sizeof rows / sizeof rows[0], MOST_INPUTS = 6 };

static void begin(void)
{
    set_up();
    golden_load("tests/golden/functions.txt");
    golden_load("tests/golden/torch.txt");
}
static void end(void) { golden_unload(), tear_down(); }

static ng_tensor *figure(const row *r, char what, int i)
{
    char name[80];
    snprintf(name, sizeof name, "%s/%c%d", r->name, what, i);
    return golden_find(name);
}

#define expect_figure(r, what, i, x) assert_golden(x, TOLERANCE, "%s/%c%d", (r)->name, what, i)

/* A row without directions v0... has gradients of the first order only. */
START_TEST(values_and_gradients_are_pytorchs)
{
    const row *r = &rows[_i];
    const bool twice = figure(r, 'v', 0);
    ng_tensor *in[MOST_INPUTS], *g[MOST_INPUTS], *h[MOST_INPUTS];
    for (int i = 0; i < MOST_INPUTS; i++) {
        in[i] = figure(r, 'x', i);
        if (i < r->inputs) in[i] = ng_require_grad(own(ng_copy_new(in[i], NG_F64)));
    }
    ng_tensor *y = r->call(in, r), *dy = golden("%s/dy", r->name);
    assert_ok(y);
    assert_golden(y, TOLERANCE, "%s/y", r->name);
    assert_ok(ng_gradients(tape, &y, 1, in, r->inputs, g, .cotangents = &dy, .record = twice));
    ng_tensor *along = ng_full(tape, NG_F64, NG_SCALAR, 0);
    for (int i = 0; i < r->inputs; i++) {
        expect_figure(r, 'g', i, g[i]);
        if (twice) along = ng_add(tape, along, ng_dot(tape, g[i], figure(r, 'v', i)));
    }
    if (!twice) return;
    assert_ok(ng_gradients(tape, &along, 1, in, r->inputs, h, .allow_unused = true));
    for (int i = 0; i < r->inputs; i++) expect_figure(r, 'h', i, h[i]);
}

START_TEST(every_figure_has_a_row) { golden_expect_rows(rows, N_ROWS, sizeof *rows, NULL); }

static ng_tensor *zeros(ng_dtype dtype, ng_shape shape) { return ng_full(tape, dtype, shape, 0); }

/* ---- Order --------------------------------------------------------------------------------- */

static ng_tensor *values(ng_shape shape, const double *list, int64_t count)
{
    return ng_require_grad(own(ng_tensor_from(NG_F64, shape, list, count)));
}

START_TEST(sorting_is_stable_and_a_nan_is_above_every_number)
{
    const double inf = (double)INFINITY, none = (double)NAN;
    ng_tensor *x = values(NG_SHAPE(7), NG_VALUES(2, none, 1, inf, 2, -inf, 1)), *index;
    ng_tensor *up = ng_sort(tape, x, .axes = NG_AXES(0), .index = &index);
    assert_values(index, 0, 5, 2, 6, 0, 4, 3, 1);
    ck_assert(isnan(ng_get(up, 6)));
    ng_tensor *down = ng_sort(tape, x, .axes = NG_AXES(0), .descending = true, .index = &index);
    assert_values(index, 0, 1, 3, 0, 4, 2, 6, 5);
    ck_assert(isnan(ng_get(down, 0)));
    assert_same_bits(ng_argsort(tape, x, .axes = NG_AXES(0), .descending = true), index);
    ng_tensor *top = ng_top_k(tape, x, 2, .axes = NG_AXES(0), .smallest = true, .index = &index);
    assert_values(top, 0, -inf, 1);
    assert_values(index, 0, 5, 2);
}

/* An element's place is the number of smaller elements, and of equal ones before it. */
START_TEST(every_length_is_sorted)
{
    ng_rng rng = ng_rng_seeded(3);
    for (int64_t n = 0; n < 70; n++) {
        ng_tensor *x = own(ng_zeros_new(n % 2 ? NG_F32 : NG_F64, NG_SHAPE(n)));
        for (int64_t i = 0; i < n; i++) ng_set(x, i, (double)ng_rng_below(&rng, 12));
        ng_tensor *index = ng_argsort(tape, x, .axes = NG_AXES(0));
        for (int64_t i = 0; i < n; i++) {
            int64_t place = 0;
            for (int64_t k = 0; k < n; k++)
                place += ng_get(x, k) < ng_get(x, i) || (ng_get(x, k) == ng_get(x, i) && k < i);
            ck_assert_double_eq(ng_get(index, place), (double)i);
        }
        ng_tape_reset(tape);
    }
}

/* For any k, along either axis, with equal elements and NaNs. */
START_TEST(the_first_of_many_are_those_that_sorting_puts_first)
{
    static const int64_t counts[] = {0, 1, 2, 31, 32, 33, 49, 50};
    ng_rng rng = ng_rng_seeded(5);
    for (size_t c = 0; c < 4 * sizeof counts / sizeof counts[0]; c++) {
        const int64_t k = counts[c / 4];
        const int axis = c % 2;
        const bool least = c / 2 % 2;
        ng_tensor *x = own(ng_zeros_new(NG_F32, axis ? NG_SHAPE(3, 50) : NG_SHAPE(50, 3)));
        for (int64_t i = 0; i < ng_size(x); i++) {
            const double value = (double)ng_rng_below(&rng, 20);
            ng_set(x, i, value == 0 ? (double)NAN : value);
        }
        ng_tensor *order, *first;
        ng_tensor *sorted =
            ng_sort(tape, x, .axes = NG_AXES(axis), .descending = !least, .index = &order);
        ng_tensor *top =
            ng_top_k(tape, x, k, .axes = NG_AXES(axis), .smallest = least, .index = &first);
        assert_same_bits(top, ng_slice(tape, sorted, axis, 0, k));
        assert_same_bits(first, ng_slice(tape, order, axis, 0, k));
        ng_tape_reset(tape);
    }
}

START_TEST(the_largest_are_where_argmax_and_argmin_say)
{
    ng_tensor *x = values(NG_SHAPE(2, 3), NG_VALUES(3, 1, 1, -2, 5, -2));
    assert_values(ng_argmin(tape, x, .axes = NG_AXES(1)), 0, 1, 0);
    assert_values(ng_argmin(tape, x, .axes = NG_AXES(0)), 0, 1, 0, 1);
    assert_values(ng_min(tape, x, .axes = NG_AXES(1)), 0, 1, -2);
    ng_tensor *dx = ng_gradient(tape, ng_sum(tape, ng_min(tape, x, .axes = NG_AXES(1))), x);
    assert_values(dx, 0, 0, 0.5, 0.5, 0.5, 0, 0.5); /* equals share */
    ng_tensor *at = ng_unsqueeze(tape, ng_argmax(tape, x, .axes = NG_AXES(1)), 1);
    assert_values(ng_take_along_axis(tape, x, at, .axes = NG_AXES(1)), 0, 3, 5);
}

/* ---- Edges --------------------------------------------------------------------------------- */

START_TEST(a_product_with_zeros_has_its_gradients)
{
    ng_tensor *x = values(NG_SHAPE(3), NG_VALUES(0, 2, 0));
    ng_tensor *y = ng_prod(tape, x);
    assert_values(ng_gradient(tape, y, x), 0, 0, 0, 0);
    assert_values(ng_hessian(tape, y, x), 0, 0, 0, 2, 0, 0, 0, 2, 0, 0);
    ng_tensor *one = values(NG_SHAPE(3), NG_VALUES(3, 0, 5));
    assert_values(ng_gradient(tape, ng_prod(tape, one), one), 0, 0, 15, 0);
    ck_assert_double_eq(ng_item(ng_prod(tape, ng_full(tape, NG_F64, NG_SHAPE(0), 7))), 1);
}

START_TEST(a_shift_leaves_zeros_behind)
{
    ng_tensor *x = values(NG_SHAPE(2, 3), NG_VALUES(1, 2, 3, 4, 5, 6));
    assert_values(ng_shift(tape, x, 1, .axes = NG_AXES(1)), 0, 0, 1, 2, 0, 4, 5);
    assert_values(ng_shift(tape, x, -2), 0, 3, 0, 0, 6, 0, 0);
    assert_values(ng_shift(tape, x, -1, .axes = NG_AXES(0)), 0, 4, 5, 6, 0, 0, 0);
    assert_values(ng_shift(tape, x, 7, .axes = NG_AXES(0)), 0, 0, 0, 0, 0, 0, 0);
    assert_values(ng_shift(tape, x, INT64_MIN, .axes = NG_AXES(1)), 0, 0, 0, 0, 0, 0, 0);
    assert_values(ng_shift(tape, x, 0, .axes = NG_AXES(1)), 0, 1, 2, 3, 4, 5, 6);
    assert_values(ng_gradient(tape, ng_shift(tape, x, 2, .axes = NG_AXES(1)), x), 0, 1, 0, 0, 1, 0,
                  0);
}

START_TEST(an_axis_is_the_last_unless_one_is_named)
{
    ng_tensor *x = ng_from(tape, NG_F64, NG_SHAPE(2, 3), NG_VALUES(3, 1, 2, 6, 5, 4));
    ng_tensor *index = ng_argsort(tape, x);
    assert_values(index, 0, 1, 2, 0, 2, 1, 0);
#define ALONG_THE_LAST(call, ...)                                                                  \
    assert_same_bits(call(tape, __VA_ARGS__), call(tape, __VA_ARGS__, .axes = NG_AXES(-1)))
    ALONG_THE_LAST(ng_softmax, x);
    ALONG_THE_LAST(ng_log_softmax, x);
    ALONG_THE_LAST(ng_argmax, x);
    ALONG_THE_LAST(ng_argmin, x);
    ALONG_THE_LAST(ng_cumsum, x);
    ALONG_THE_LAST(ng_cumprod, x);
    ALONG_THE_LAST(ng_flip, x);
    ALONG_THE_LAST(ng_roll, x, 1);
    ALONG_THE_LAST(ng_shift, x, 1);
    ALONG_THE_LAST(ng_sort, x);
    ALONG_THE_LAST(ng_argsort, x);
    ALONG_THE_LAST(ng_top_k, x, 2);
    ALONG_THE_LAST(ng_take_along_axis, x, index);
    ALONG_THE_LAST(ng_scatter_add_along_axis, x, index, 3);
    ALONG_THE_LAST(ng_cosine_similarity, x, x);
#undef ALONG_THE_LAST
}

START_TEST(what_a_triangle_leaves_out_is_zero_whatever_it_held)
{
    ng_tensor *x = ng_full(tape, NG_F64, NG_SHAPE(2, 2), (double)INFINITY);
    const double inf = (double)INFINITY;
    assert_values(ng_tril(tape, x, 0), 0, inf, 0, inf, inf);
    assert_values(ng_triu(tape, x, 1), 0, 0, inf, 0, 0);
    ng_tensor *wide = ng_full(tape, NG_F32, NG_SHAPE(2, 3), 1);
    assert_values(ng_tril(tape, wide, 0), 0, 1, 0, 0, 1, 1, 0);
    assert_values(ng_tril(tape, wide, -1), 0, 0, 0, 0, 1, 0, 0);
    assert_values(ng_triu(tape, wide, -1), 0, 1, 1, 1, 1, 1, 1);
    assert_values(ng_triu(tape, wide, 2), 0, 0, 0, 1, 0, 0, 0);
    assert_values(ng_tril(tape, wide, INT64_MAX), 0, 1, 1, 1, 1, 1, 1);
    assert_values(ng_tril(tape, wide, INT64_MIN), 0, 0, 0, 0, 0, 0, 0);
    assert_values(ng_triu(tape, wide, INT64_MAX), 0, 0, 0, 0, 0, 0, 0);
    assert_values(ng_triu(tape, wide, INT64_MIN), 0, 1, 1, 1, 1, 1, 1);
}

START_TEST(chunks_and_stacks_reverse_each_other)
{
    ng_tensor *x = values(NG_SHAPE(2, 4), NG_VALUES(1, 2, 3, 4, 5, 6, 7, 8)), *half[2] = {x, x};
    assert_ok(ng_chunk(tape, x, 2, 1, half));
    assert_values(half[1], 0, 3, 4, 7, 8);
    assert_same_bits(ng_concat(tape, half, 2, 1), x);
    ng_tensor *kept[3] = {x, x, x};
    assert_fails(ng_chunk(tape, x, 3, 1, kept), NG_ESHAPE);
    ck_assert_ptr_eq(kept[0], x);
    ng_tensor *ids = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(4, 5));
    assert_values(ng_stack(tape, NG_TENSORS(ids, ids), 1), 0, 4, 4, 5, 5);
}

/* ---- Likelihoods --------------------------------------------------------------------------- */

START_TEST(accuracy_is_the_share_of_rows_that_are_right)
{
    ng_tensor *x = values(NG_SHAPE(4, 2), NG_VALUES(1, 2, 2, 1, 3, 3, 0, -1));
    ng_tensor *y = ng_from(tape, NG_I64, NG_SHAPE(4), NG_VALUES(1, 1, 0, 0));
    ck_assert_double_eq(ng_accuracy(x, y), 0.75); /* of equals the first */
    ng_tensor *lost = values(NG_SHAPE(4, 2), NG_VALUES((double)NAN, 1, 1, (double)NAN, 0, 1, 2, 1));
    ng_tensor *of_lost = ng_from(tape, NG_I64, NG_SHAPE(4), NG_VALUES(0, 1, 1, 0));
    ck_assert_double_eq(ng_accuracy(lost, of_lost), 0.5); /* with a NaN no label is right */
    ck_assert(isnan(ng_accuracy(x, ng_from(tape, NG_I64, NG_SHAPE(3), NG_VALUES(1, 1, 0)))));
    assert_error(NG_ESHAPE, "ng_accuracy: ");
    ck_assert(isnan(ng_accuracy(x, ng_full(tape, NG_F32, NG_SHAPE(4), 0))));
    assert_error(NG_EDTYPE, "ng_accuracy: ");
}

START_TEST(a_distribution_has_no_divergence_from_itself)
{
    static const double of_none[] = {-1000, (double)-INFINITY, (double)NAN};
    ng_tensor *p = values(NG_SHAPE(3), NG_VALUES(0.25, 0.75, 0));
    for (size_t i = 0; i < sizeof of_none / sizeof *of_none; i++) {
        ng_tensor *x = values(NG_SHAPE(3), NG_VALUES(log(0.25), log(0.75), of_none[i]));
        ng_tensor *loss = ng_kl_divergence(tape, x, p, .reduction = NG_SUM);
        ck_assert_double_eq(ng_item(loss), 0);
        assert_values(ng_gradient(tape, loss, p), 1e-15, 1, 1, 0); /* ln t - x + 1; at 0 none */
        assert_values(ng_gradient(tape, loss, x), 1e-15, -0.25, -0.75, 0);
    }
}

/* ---- Attention ----------------------------------------------------------------------------- */

/* The module gives the weights of the op, with a mask that is causal. */
START_TEST(a_module_attends_by_a_mask_and_gives_its_weights)
{
    ng_rng rng = ng_rng_seeded(3);
    ng_tensor *x = own(ng_normal_new(NG_F32, NG_SHAPE(2, 4, 6), 0, 1, &rng)), *weights = NULL;
    ng_module *free_form = own(ng_multi_head_attention_new(6, 2)),
              *causal = own(ng_multi_head_attention_new(6, 2, .causal = true));
    assert_ok(ng_module_copy(causal, free_form));
    ng_tensor *mask =
        ng_unsqueeze(tape, ng_tril(tape, ng_full(tape, NG_F32, NG_SHAPE(4, 4), 1), 0), 0);
    ng_tensor *y = ng_forward(causal, tape, x);
    assert_tensors_close(ng_forward(free_form, tape, x, .mask = mask), y, 1e-5);
    assert_tensors_close(ng_forward_attention(free_form, tape, x, x, x, mask, .weights = &weights),
                         y, 1e-5);
    assert_values(ng_slice(tape, ng_reshape(tape, weights, NG_SHAPE(64)), 0, 0, 4), 0, 1, 0, 0, 0);
    assert_tensors_close(ng_sum(tape, weights, .axes = NG_AXES(-1)),
                         ng_full(tape, NG_F32, NG_SHAPE(2, 2, 4), 1), 1e-6);
    ng_module *normed = own(ng_multi_head_attention_new(6, 2, .qk_norm = ng_norm_rms));
    assert_ok(ng_forward_attention(normed, tape, x, x, x, mask, .weights = &weights));
    assert_fails(ng_forward(free_form, tape, x, .mask = ng_slice(tape, mask, 1, 0, 3)), NG_ESHAPE,
                 "MultiHeadAttention");
}

/* ---- Parameters ---------------------------------------------------------------------------- */

START_TEST(a_tied_weight_is_one_parameter)
{
    ng_module *net = own(tied()), *twin;
    ng_named_tensor found;
    ck_assert_int_eq(ng_parameter_count(net), 5 * 3 + 5);
    ng_tensor *weight = ng_module_find(net, "0.weight");
    ck_assert_ptr_eq(ng_module_find(net, "2.weight"), weight);
    ck_assert(ng_module_parameter(net, 1, &found) && strcmp(found.name, "2.bias") == 0);
    ck_assert(!ng_module_parameter(net, 2, &found));
    char summary[2048] = "";
    FILE *stream = fmemopen(summary, sizeof summary, "w");
    ng_fprint_summary(stream, net);
    fclose(stream);
    ck_assert_msg(strstr(summary, "weight tied, bias (5,)"), "%s", summary);
    assert_ok(ng_module_init(net, 3));
    ng_module *alone = own(ng_sequential_new(ng_embedding_new(5, 3)));
    assert_ok(ng_module_init(alone, 3));
    assert_same_bits(weight, ng_module_find(alone, "0.weight"));

    ng_tensor *ids = ng_from(tape, NG_I64, NG_SHAPE(3), NG_VALUES(4, 0, 4));
    twin = own(tied());
    assert_ok(ng_module_copy(twin, net));
    ng_optimizer *sgd = ng_sgd_new(twin, .lr = 0.5);
    assert_same_bits(ng_forward(twin, tape, ids), ng_forward(net, tape, ids));
    assert_ok(ng_backward(tape, ng_cross_entropy(tape, ng_forward(twin, tape, ids), ids)));
    assert_ok(ng_optimizer_step(sgd));
    ng_tensor *moved = ng_module_find(twin, "0.weight");
    ck_assert_double_ne(ng_get(moved, 3), ng_get(weight, 3)); /* of an id that is only a class */
    ck_assert_ptr_eq(ng_module_find(twin, "2.weight"), moved);
    assert_ok(ng_module_copy(net, twin));
    assert_same_bits(weight, moved);
    ng_optimizer_free(sgd);
}

static ng_module *square_net(int layers)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < layers; i++) assert_ok(ng_sequential_add(net, ng_linear_new(3, 3)));
    return net;
}

START_TEST(what_cannot_be_tied_is_refused)
{
    ng_module *net =
        own(ng_sequential_new(ng_linear_new(3, 3), ng_linear_new(3, 3), ng_linear_new(3, 4)));
    assert_fails(ng_module_tie(net, "2.weight", "0.weight"), NG_ESHAPE);
    assert_fails(ng_module_tie(net, "weight", "0.weight"), NG_EVALUE);
    assert_fails(ng_module_tie(net, "0.weight", "0.weight"), NG_ESTATE);
    assert_ok(ng_module_tie(net, "1.weight", "0.weight"));
    assert_fails(ng_module_tie(net, "1.weight", "0.weight"), NG_ESTATE);
    assert_fails(ng_module_tie(net, "0.weight", "1.weight"), NG_ESTATE);
    ng_module *free_one = own(square_net(2)), *bound = own(square_net(2));
    assert_ok(ng_module_tie(bound, "1.weight", "0.weight"));
    assert_fails(ng_module_copy(bound, free_one), NG_EVALUE);
    ng_module *three = own(square_net(3)), *same = own(square_net(3));
    assert_ok(ng_module_tie(three, "2.weight", "0.weight"));
    assert_ok(ng_module_tie(same, "2.weight", "1.weight"));
    assert_fails(ng_module_copy(three, same), NG_EVALUE);
}

START_TEST(the_row_of_padding_is_zero_and_stays_so)
{
    ng_module *layer = own(ng_embedding_new(4, 2, .padded = true));
    ng_tensor *weight = ng_module_find(layer, "weight");
    ng_tensor *ids = ng_from(tape, NG_I64, NG_SHAPE(3), NG_VALUES(0, 3, 0));
    assert_values(ng_slice(tape, weight, 0, 0, 1), 0, 0, 0);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_forward(layer, tape, ids))));
    assert_values(ng_grad(weight), 0, 0, 0, 0, 0, 0, 0, 1, 1);
    assert_fails(ng_embedding_new(4, 2, .padded = true, .padding = 4), NG_EVALUE);
    assert_fails(ng_embedding_new(4, 2, .padding = 1), NG_EVALUE);
    assert_fails(ng_learned_positions_new(4, 2, .padded = true), NG_EVALUE);
}

START_TEST(the_norm_of_the_parameters_is_that_of_all_elements)
{
    ng_module *layer = own(ng_linear_new(2, 1));
    assert_ok(ng_copy_values(ng_module_find(layer, "weight"),
                             ng_from(tape, NG_F32, NG_SHAPE(1, 2), NG_VALUES(2, -4))));
    assert_ok(ng_fill(ng_module_find(layer, "bias"), 4));
    assert_close(ng_parameter_norm(layer), 6, 1e-15);
    assert_ok(ng_module_to(layer, NG_F64));
    assert_ok(ng_fill(ng_module_find(layer, "weight"), 1e200));
    assert_close(ng_parameter_norm(layer), sqrt(2) * 1e200, 1e-15);
    ng_freeze(layer);
    assert_close(ng_parameter_norm(layer), sqrt(2) * 1e200, 1e-15);
}

/* ---- Places, products, norms --------------------------------------------------------------- */

START_TEST(places_are_counted_from_both_ends)
{
    ng_tensor *x = ng_from(tape, NG_I64, NG_SHAPE(2, 3), NG_VALUES(1, 2, 3, 4, 5, 6));
    assert_values(ng_flip(tape, x), 0, 3, 2, 1, 6, 5, 4);
    assert_values(ng_flip(tape, x, .axes = NG_AXES(0, 1)), 0, 6, 5, 4, 3, 2, 1);
    assert_values(ng_roll(tape, x, 1, .axes = NG_AXES(1)), 0, 3, 1, 2, 6, 4, 5);
    assert_values(ng_roll(tape, x, -1), 0, 2, 3, 1, 5, 6, 4);
    assert_same_bits(ng_roll(tape, x, INT64_MIN, .axes = NG_AXES(0)), x);
    ck_assert_ptr_eq(ng_roll(tape, x, 6, .axes = NG_AXES(1)), x);
    ng_tensor *first = ng_slice(tape, x, 0, 0, 1);
    assert_values(ng_repeat(tape, first, NG_SHAPE(2, 2)), 0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3);
    ck_assert_int_eq(ng_size(ng_repeat(tape, x, NG_SHAPE(3, 0, 2, 1))), 0);
}

START_TEST(norms_of_any_order_do_not_overflow)
{
    ng_tensor *big = ng_full(tape, NG_F32, NG_SHAPE(8), 1e30),
              *small = ng_full(tape, NG_F32, NG_SHAPE(8), -1e-30);
    assert_close(ng_item(ng_norm(tape, big, .order = 3)), 2e30, 1e-6);
    assert_close(ng_item(ng_norm(tape, small, .order = 3)), 2e-30, 1e-6);
    const double inf = HUGE_VAL, none = (double)NAN;
    ng_tensor *x = ng_from(tape, NG_F64, NG_SHAPE(3, 2), NG_VALUES(inf, 1, none, 1, 0, 0));
    const double orders[] = {NG_ZERO, 0.5, 1, 1.5, 3, 4, inf};
    for (int i = 0; i < 7; i++) {
        ng_tensor *y = ng_norm(tape, x, .axes = NG_AXES(1), .order = orders[i]);
        ck_assert(i == 0 ? ng_get(y, 0) == 2 : isinf(ng_get(y, 0)));
        ck_assert(isnan(ng_get(y, 1)) && ng_get(y, 2) == 0);
    }
    ck_assert(isinf(ng_item(ng_variance(tape, big, .correction = 9))) ||
              isnan(ng_item(ng_variance(tape, big, .correction = 9))));
}

/* ---- Drawn --------------------------------------------------------------------------------- */

START_TEST(indices_are_drawn_as_often_as_their_share)
{
    enum { DRAWS = 20000 };
    ng_tensor *p = ng_from(tape, NG_F32, NG_SHAPE(1, 4), NG_VALUES(0, 3, 1, 0));
    ng_tensor *index = ng_sample(tape, ng_repeat(tape, p, NG_SHAPE(DRAWS, 1)));
    int64_t counts[4] = {0};
    for (int64_t i = 0; i < DRAWS; i++) counts[ng_data_i64(index)[i]]++;
    ck_assert_int_eq(counts[0] + counts[3], 0);
    assert_close((double)counts[1] / (double)DRAWS, 0.75, 0.02);
    ng_tape_seed(tape, 5);
    ng_tensor *first = ng_sample(tape, ng_repeat(tape, p, NG_SHAPE(100, 1)));
    ng_tape_seed(tape, 5);
    assert_refused(ng_sample(tape, ng_neg(tape, p)));
    assert_same_bits(ng_sample(tape, ng_repeat(tape, p, NG_SHAPE(100, 1))), first);
    assert_refused(ng_sample(tape, zeros(NG_F32, NG_SHAPE(2, 3))));
    ng_tensor *large = ng_from(tape, NG_F64, NG_SHAPE(1, 3), NG_VALUES(1e308, 0, 1e308));
    ng_tensor *drawn = ng_sample(tape, ng_repeat(tape, large, NG_SHAPE(1000, 1)));
    const double share = ng_item(ng_mean(tape, ng_cast(tape, drawn, NG_F64))) / 2;
    assert_near(share, 0.5, 0.08);
    for (int i = 0; i < 1000; i++) ck_assert(ng_get(drawn, i) != 1);
    assert_refused(ng_sample(tape, ng_full(tape, NG_F32, NG_SHAPE(2), HUGE_VAL)));
    assert_fails(ng_sample(tape, zeros(NG_F32, NG_SHAPE(2, 0))), NG_ESHAPE);
    ck_assert_int_eq(ng_rank(ng_sample(tape, ng_full(tape, NG_F64, NG_SHAPE(2), 1))), 0);
}

/* ---- Wrong use ----------------------------------------------------------------------------- */

START_TEST(functions_refuse_what_does_not_fit)
{
    ng_tensor *x = zeros(NG_F32, NG_SHAPE(2, 3)), *v = zeros(NG_F32, NG_SHAPE(3));
    ng_tensor *wide = zeros(NG_F64, NG_SHAPE(2, 3)), *scalar = zeros(NG_F32, NG_SCALAR);
    ng_tensor *index = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(0, 3)), *places = NULL;
    const ng_axes first = NG_AXES(0), both = NG_AXES(0, 1);
    assert_refused(ng_top_k(tape, v, 4, .axes = first));
    assert_fails(ng_sort(tape, v, .axes = NG_AXES(1)), NG_ESHAPE);
    assert_refused(ng_argsort(tape, v, .axes = first, .index = &places));
    assert_fails(ng_take_along_axis(tape, v, index, .axes = first), NG_ESHAPE);
    assert_fails(ng_take_along_axis(tape, v, ng_full(tape, NG_I64, NG_SHAPE(1, 2), 0)), NG_ESHAPE);
    assert_fails(ng_softmax(tape, x, .axes = both), NG_ESHAPE);
    assert_fails(ng_argmax(tape, x, .axes = both), NG_ESHAPE);
    assert_fails(ng_sort(tape, x, .axes = both), NG_ESHAPE);
    assert_fails(ng_roll(tape, x, 1, .axes = both), NG_ESHAPE);
    assert_fails(ng_roll(tape, x, 1, .axes = NG_AXES(2)), NG_ESHAPE);
    assert_fails(ng_flip(tape, x, .axes = NG_AXES(0, 0)), NG_ESHAPE);
    assert_fails(ng_repeat(tape, x, NG_SHAPE(2)), NG_ESHAPE);
    assert_fails(ng_repeat(tape, x, NG_SHAPE(2, -1)), NG_ESHAPE);
    assert_fails(ng_tril(tape, v, 0), NG_ESHAPE);
    assert_fails(ng_stack(tape, NG_TENSORS(x, v), 0), NG_ESHAPE);
    assert_fails(ng_squeeze(tape, x, 0), NG_ESHAPE);
    assert_refused(ng_combine(tape, &x, (const double[]){1}, 0));
    assert_fails(ng_combine(tape, (ng_tensor *[]){x, v}, (const double[]){1, 1}, 2), NG_ESHAPE);
    assert_fails(ng_combine(tape, (ng_tensor *[]){x, wide}, (const double[]){1, 1}, 2), NG_EDTYPE);
    assert_fails(ng_norm(tape, x, .order = -1), NG_EVALUE);
    assert_fails(ng_sum(tape, x, .order = 1), NG_EVALUE);
    assert_fails(ng_max(tape, x, .correction = 1), NG_EVALUE);
    assert_fails(ng_variance(tape, x, .unbiased = true, .correction = 1), NG_EVALUE);
    assert_fails(ng_matmul(tape, v, x, .transpose_a = true), NG_EVALUE);
    assert_fails(ng_matmul(tape, x, v, .transpose_b = true), NG_EVALUE);
    assert_fails(ng_matmul(tape, v, x), NG_ESHAPE);
    assert_fails(ng_matmul(tape, v, scalar), NG_ESHAPE);
    assert_ok(ng_matmul(tape, v, x, .transpose_b = true));
    assert_fails(ng_glu(tape, x), NG_ESHAPE);
    assert_refused(ng_celu(tape, x, 0));
    assert_fails(ng_prelu(tape, x, zeros(NG_F32, NG_SHAPE(2))), NG_ESHAPE);
    assert_refused(ng_local_response_norm(tape, x, 0));
    assert_fails(ng_local_response_norm(tape, v, 3), NG_ESHAPE);
    assert_refused(ng_local_response_norm(tape, x, 3, .alpha = (double)NAN));
    assert_refused(ng_local_response_norm(tape, x, 3, .beta = HUGE_VAL));
    assert_refused(ng_local_response_norm(tape, x, 3, .k = -1));
    ng_tensor *empty = zeros(NG_F64, NG_SHAPE(2, 3, 0));
    ck_assert_int_eq(ng_size(ng_local_response_norm(tape, empty, 3)), 0);
}

START_TEST(losses_refuse_what_does_not_fit)
{
    ng_tensor *x = zeros(NG_F32, NG_SHAPE(2, 3)), *rows_of = zeros(NG_F32, NG_SHAPE(2));
    ng_tensor *wide = zeros(NG_F64, NG_SHAPE(2, 3)), *deep = zeros(NG_F32, NG_SHAPE(2, 3, 4));
    ng_tensor *one = ng_full(tape, NG_F32, NG_SHAPE(2, 3), 1), *none = zeros(NG_I64, NG_SHAPE(2));
    ng_tensor *two = ng_add(tape, one, one), *high = ng_full(tape, NG_I64, NG_SHAPE(2), 3);
    assert_fails(ng_cross_entropy(tape, x, rows_of), NG_EDTYPE);
    assert_fails(ng_cross_entropy(tape, x, wide), NG_EDTYPE);
    assert_refused(ng_cross_entropy(tape, x, x, .ignore = true));
    assert_refused(ng_cross_entropy(tape, x, two));
    assert_fails(ng_cross_entropy(tape, deep, none, .channels_first = true), NG_ESHAPE);
    assert_fails(ng_cross_entropy(tape, x, none, .weights = rows_of), NG_ESHAPE);
    assert_fails(ng_cross_entropy(tape, x, none, .weights = zeros(NG_F64, NG_SHAPE(3))), NG_EDTYPE);
    assert_refused(ng_nll(tape, x, high));
    assert_fails(ng_binary_cross_entropy(tape, x, x, .weights = rows_of), NG_ESHAPE);
    assert_fails(ng_binary_cross_entropy(tape, x, x, .positive_weights = wide), NG_EDTYPE);
    assert_fails(ng_hinge(tape, x, x), NG_EVALUE);
    assert_fails(ng_hinge(tape, x, rows_of), NG_ESHAPE);
    assert_fails(ng_hinge(tape, x, one, .margin = HUGE_VAL), NG_EVALUE);
    assert_fails(ng_hinge(tape, x, high), NG_EVALUE);
    assert_fails(ng_hinge_embedding(tape, x, x), NG_EVALUE);
    assert_fails(ng_cosine_embedding(tape, x, x, one), NG_ESHAPE);
    assert_fails(ng_cosine_embedding(tape, x, rows_of, rows_of), NG_ESHAPE);
    assert_fails(ng_triplet(tape, x, x, rows_of), NG_ESHAPE);
    assert_fails(ng_gaussian_nll(tape, x, x, rows_of), NG_ESHAPE);
    assert_fails(ng_gaussian_nll(tape, x, x, ng_neg(tape, one)), NG_EVALUE);
    ng_tensor *sure = ng_from(tape, NG_F32, NG_SHAPE(1, 7), NG_VALUES(5e3, 0, 0, 0, 0, 0, 0));
    ng_tensor *first = zeros(NG_I64, NG_SHAPE(1));
    ck_assert_double_eq(ng_item(ng_hinge(tape, sure, first, .margin = 1.9)), 0);
    ng_tensor *weightless = zeros(NG_F32, NG_SHAPE(3));
    ck_assert(
        isnan(ng_item(ng_nll(tape, x, none, .weights = weightless, .ignore = true, .ignored = 2))));
}

START_TEST(pooling_refuses_what_does_not_fit)
{
    ng_tensor *line = zeros(NG_F32, NG_SHAPE(1, 1, 4)), *none = zeros(NG_F32, NG_SHAPE(1, 1, 0));
    ng_tensor *image = zeros(NG_F32, NG_SHAPE(1, 1, 4, 4));
    assert_fails(ng_max_pool2d(tape, image, 2, .exclude_padding = true), NG_EVALUE);
    assert_fails(ng_max_pool1d_new(2, .exclude_padding = true), NG_EVALUE);
    assert_fails(ng_unfold(tape, image, 2, .exclude_padding = true), NG_EVALUE);
    assert_fails(ng_fold(tape, line, 2, 2, 1, .exclude_padding = true), NG_EVALUE);
    assert_fails(ng_max_pool1d(tape, image, 2), NG_ESHAPE);
    assert_fails(ng_avg_pool1d(tape, line, 2, .padding = 2), NG_EVALUE);
    assert_fails(ng_avg_pool1d_new(0), NG_EVALUE);
    assert_fails(ng_avg_pool1d(tape, line, 5), NG_ESHAPE);
    assert_fails(ng_max_pool1d(tape, none, 2, .ceil = true), NG_ESHAPE);
    assert_fails(ng_adaptive_avg_pool(tape, line, NG_SHAPE(2, 2)), NG_ESHAPE);
    assert_fails(ng_adaptive_max_pool(tape, none, NG_SHAPE(2)), NG_ESHAPE);
    assert_fails(ng_adaptive_max_pool_new(NG_SHAPE(0, 2)), NG_ESHAPE);
}

Suite *functions_suite(void)
{
    Suite *suite = suite_create("functions");
    TCase *tests = add_case(suite, begin, end);
    add_tests(tests, every_figure_has_a_row);
    add_loops(tests, N_ROWS, values_and_gradients_are_pytorchs);
    tests = add_case(suite, set_up, tear_down);
    add_tests(tests, sorting_is_stable_and_a_nan_is_above_every_number, every_length_is_sorted,
              the_first_of_many_are_those_that_sorting_puts_first,
              the_largest_are_where_argmax_and_argmin_say, a_product_with_zeros_has_its_gradients,
              a_shift_leaves_zeros_behind, an_axis_is_the_last_unless_one_is_named,
              what_a_triangle_leaves_out_is_zero_whatever_it_held,
              chunks_and_stacks_reverse_each_other, accuracy_is_the_share_of_rows_that_are_right,
              a_distribution_has_no_divergence_from_itself,
              a_module_attends_by_a_mask_and_gives_its_weights, a_tied_weight_is_one_parameter,
              what_cannot_be_tied_is_refused, the_row_of_padding_is_zero_and_stays_so,
              the_norm_of_the_parameters_is_that_of_all_elements, places_are_counted_from_both_ends,
              norms_of_any_order_do_not_overflow, indices_are_drawn_as_often_as_their_share,
              functions_refuse_what_does_not_fit, losses_refuse_what_does_not_fit,
              pooling_refuses_what_does_not_fit);
    return suite;
}
