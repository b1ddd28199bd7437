/* Elementwise functions, reductions, sorting and likelihoods: PyTorch's values and gradients of
 * both orders; edge cases. */
#include "core/shape.h"
#include "fixture.h"
#include "golden.h"
#include "support.h"

/* ---- Against PyTorch ----------------------------------------------------------------------- */

#define TOLERANCE 1e-11

typedef struct row row;
struct row {
    const char *name;
    ng_tensor *(*call)(ng_tensor *const *in, const row *self);
    int inputs;
    ng_reduction reduction;
};

#define CALL(name, ...)                                                                            \
    static ng_tensor *call_##name(ng_tensor *const *in, const row *self)                           \
    {                                                                                              \
        return (void)self, (void)in, __VA_ARGS__;                                                  \
    }

static ng_tensor *labels(void)
{
    return ng_from(tape, NG_I64, NG_SHAPE(6), NG_VALUES(0, 2, 4, 1, 2, 3));
}
static ng_tensor *weights(void)
{
    return ng_from(tape, NG_F64, NG_SHAPE(5), NG_VALUES(0.5, 2, 1, 0, 3));
}

/* X(name of the figures, operands with gradients, a call) */
#define FUNCTIONS(X)                                                                               \
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

#define X(name, inputs, ...) CALL(name, __VA_ARGS__)
FUNCTIONS(X)
#undef X

CALL(kl, ng_kl_divergence(tape, ng_log_softmax(tape, in[0]), in[1], .reduction = self->reduction))
CALL(nll, ng_nll(tape, in[0], labels(), .reduction = self->reduction, .weights = weights(),
                 .ignore = true, .ignored = 1))
CALL(weighted,
     ng_cross_entropy(tape, in[0], labels(), .reduction = self->reduction, .weights = weights()))
CALL(smooth,
     ng_cross_entropy(tape, in[0], labels(), .reduction = self->reduction, .weights = weights(),
                      .smoothing = 0.15, .ignore = true, .ignored = 2))

#define EACH_REDUCTION(name, call, inputs)                                                         \
    {name "_mean", call, inputs, NG_MEAN}, {name "_sum", call, inputs, NG_SUM},                    \
    {                                                                                              \
        name "_none", call, inputs, NG_EACH                                                        \
    }

static const row rows[] = {
#define X(name, inputs, ...) {#name, call_##name, inputs, 0},
    FUNCTIONS(X)
#undef X
        {"prelu_one", call_prelu, 2, 0},
    EACH_REDUCTION("kl", call_kl, 2),
    EACH_REDUCTION("nll", call_nll, 1),
    EACH_REDUCTION("weighted", call_weighted, 1),
    EACH_REDUCTION("weighted_smooth", call_smooth, 1),
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static ng_tensor *figure(const row *r, char what, int i)
{
    return golden("%s/%c%d", r->name, what, i);
}

#define expect_figure(r, what, i, x) assert_golden(x, TOLERANCE, "%s/%c%d", (r)->name, what, i)

GOLDEN_FIXTURE("tests/golden/functions.txt")

LOOP_TEST(values_and_gradients_of_both_orders_are_pytorchs, N_ROWS)
{
    const row *r = &rows[_i];
    ng_tensor *in[2] = {figure(r, 'x', 0), NULL}, *g[2], *v[2], *h[2];
    char second[80];
    snprintf(second, sizeof second, "%s/x1", r->name);
    in[1] = golden_find(second);
    for (int i = 0; i < r->inputs; i++) {
        in[i] = ng_require_grad(own(ng_copy_new(in[i], NG_F64)));
        v[i] = figure(r, 'v', i);
    }
    ng_tensor *y = r->call(in, r), *dy = golden("%s/dy", r->name);
    assert_ok(y);
    assert_golden(y, TOLERANCE, "%s/y", r->name);
    assert_ok(ng_gradients(tape, &y, 1, in, r->inputs, g, .cotangents = &dy, .record = true));
    ng_tensor *along = ng_dot(tape, g[0], v[0]);
    for (int i = 0; i < r->inputs; i++) {
        expect_figure(r, 'g', i, g[i]);
        if (i > 0) along = ng_add(tape, along, ng_dot(tape, g[i], v[i]));
    }
    assert_ok(ng_gradients(tape, &along, 1, in, r->inputs, h, .allow_unused = true));
    for (int i = 0; i < r->inputs; i++) expect_figure(r, 'h', i, h[i]);
}

TEST(every_figure_has_a_row) { golden_expect_rows(rows, N_ROWS, sizeof *rows, NULL); }

/* ---- Order --------------------------------------------------------------------------------- */

static ng_tensor *values(ng_shape shape, const double *list, int64_t count)
{
    return ng_require_grad(own(ng_tensor_from(NG_F64, shape, list, count)));
}

FIXTURE(set_up, tear_down)

TEST(sorting_is_stable_and_a_nan_is_above_every_number)
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
TEST(every_length_is_sorted)
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
TEST(the_first_of_many_are_those_that_sorting_puts_first)
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

TEST(sorting_reports_what_does_not_fit)
{
    ng_tensor *x = values(NG_SHAPE(3), NG_VALUES(1, 2, 3));
    assert_refused(ng_top_k(tape, x, 4, .axes = NG_AXES(0)),
                   "ng_top_k: k is 4, expected 0 .. 3 along axis 0 of (3,)");
    assert_fails(ng_sort(tape, x, .axes = NG_AXES(1)), NG_ESHAPE, "ng_sort");
    ng_tensor *places = NULL;
    assert_refused(ng_argsort(tape, x, .axes = NG_AXES(0), .index = &places),
                   "ng_argsort: .index is set, which has an effect only in ng_sort");
    ng_tensor *index = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(0, 3));
    assert_fails(ng_take_along_axis(tape, x, index, .axes = NG_AXES(0)), NG_ESHAPE,
                 "ng_take_along_axis: index[1] is 3, expected 0 .. 2");
    ng_tensor *flat = ng_from(tape, NG_I64, NG_SHAPE(1, 2), NG_VALUES(0, 1));
    assert_fails(ng_take_along_axis(tape, x, flat, .axes = NG_AXES(0)), NG_ESHAPE,
                 "index is (1, 2) for (3,)");
}

TEST(the_largest_are_where_argmax_and_argmin_say)
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

TEST(a_product_with_zeros_has_its_gradients)
{
    ng_tensor *x = values(NG_SHAPE(3), NG_VALUES(0, 2, 0));
    ng_tensor *y = ng_prod(tape, x);
    assert_values(ng_gradient(tape, y, x), 0, 0, 0, 0);
    assert_values(ng_hessian(tape, y, x), 0, 0, 0, 2, 0, 0, 0, 2, 0, 0);
    ng_tensor *one = values(NG_SHAPE(3), NG_VALUES(3, 0, 5));
    assert_values(ng_gradient(tape, ng_prod(tape, one), one), 0, 0, 15, 0);
    ck_assert_double_eq(ng_item(ng_prod(tape, ng_full(tape, NG_F64, NG_SHAPE(0), 7))), 1);
}

TEST(a_norm_has_gradients_of_zero_at_zero_and_no_overflow)
{
    ng_tensor *x = values(NG_SHAPE(2, 2), NG_VALUES(0, 0, 3, -4));
    ng_tensor *y = ng_norm(tape, x, .axes = NG_AXES(1));
    assert_values(y, 1e-15, 0, 5);
    ng_tensor *dx = ng_gradient(tape, ng_sum(tape, y), x, .record = true);
    assert_values(dx, 1e-15, 0, 0, 0.6, -0.8);
    ng_tensor *h = ng_gradient(tape, ng_sum(tape, ng_square(tape, dx)), x);
    for (int i = 0; i < 4; i++) assert_near(ng_get(h, i), 0, 1e-15);
    ng_tensor *big = ng_full(tape, NG_F32, NG_SHAPE(4), 1e30);
    assert_close(ng_item(ng_norm(tape, big)), 2e30, 1e-6);
    ng_tensor *small = ng_full(tape, NG_F32, NG_SHAPE(4), 1e-30);
    assert_close(ng_item(ng_norm(tape, small)), 2e-30, 1e-6);
    ck_assert(isinf(ng_item(ng_norm(tape, ng_full(tape, NG_F32, NG_SHAPE(2), (double)INFINITY)))));
    ck_assert(isnan(ng_item(ng_norm(tape, ng_full(tape, NG_F32, NG_SHAPE(2), (double)NAN)))));
}

TEST(a_norm_of_floats_is_that_of_doubles_over_any_axes)
{
    ng_rng rng = ng_rng_seeded(5);
    const ng_axes axes[] = {NG_AXES(0),    NG_AXES(1),    NG_AXES(2),    NG_AXES(3),
                            NG_AXES(0, 2), NG_AXES(1, 3), NG_AXES(2, 3), NG_AXES(0, 1, 2, 3)};
    ng_tensor *x = own(ng_normal_new(NG_F64, NG_SHAPE(5, 1, 21, 70), 0, 1, &rng));
    ng_tensor *in_float = ng_cast(tape, x, NG_F32);
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++) {
        ng_tensor *y = ng_norm(tape, in_float, .axes = axes[i]);
        ck_assert_int_eq(ng_dtype_of(y), NG_F32);
        assert_tensors_close(ng_cast(tape, y, NG_F64), ng_norm(tape, x, .axes = axes[i]), 1e-6);
    }
    assert_values(ng_norm(tape, ng_full(tape, NG_F32, NG_SCALAR, -3)), 0, 3);
}

TEST(a_combination_is_the_weighted_sum_of_its_tensors)
{
    ng_tensor *a = values(NG_SHAPE(3), NG_VALUES(1, 2, -4)),
              *b = values(NG_SHAPE(3), NG_VALUES(0.5, 0, 8));
    ng_tensor *y = ng_combine(tape, (ng_tensor *[]){a, b, a}, (const double[]){2, -3, 1}, 3);
    assert_values(y, 0, 1.5, 6, -36);
    assert_values(ng_gradient(tape, y, a), 0, 3, 3, 3);
    assert_values(ng_gradient(tape, y, b), 0, -3, -3, -3);
    const double one = 1;
    assert_refused(ng_combine(tape, &a, &one, 0), "ng_combine: 0 tensors, expected at least one");
    assert_fails(ng_combine(tape, (ng_tensor *[]){a, values(NG_SHAPE(1), NG_VALUES(1))},
                            (const double[]){1, 1}, 2),
                 NG_ESHAPE, "ng_combine: tensor 1 is (3,) and tensor 2 (1,), expected one shape");
    ng_tensor *floats = ng_full(tape, NG_F32, NG_SHAPE(3), 1);
    assert_fails(ng_combine(tape, (ng_tensor *[]){a, floats}, (const double[]){1, 1}, 2), NG_EDTYPE,
                 "float32");
}

TEST(a_shift_leaves_zeros_behind)
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

TEST(an_axis_is_the_last_unless_one_is_named)
{
    ng_tensor *x = ng_from(tape, NG_F64, NG_SHAPE(2, 3), NG_VALUES(3, 1, 2, 6, 5, 4));
    ng_tensor *index = ng_argsort(tape, x);
    assert_values(index, 0, 1, 2, 0, 2, 1, 0);
    const ng_axes last = NG_AXES(-1), both = NG_AXES(0, 1);
    ng_tensor *standard[] = {ng_softmax(tape, x),
                             ng_log_softmax(tape, x),
                             ng_argmax(tape, x),
                             ng_argmin(tape, x),
                             ng_cumsum(tape, x),
                             ng_cumprod(tape, x),
                             ng_flip(tape, x),
                             ng_roll(tape, x, 1),
                             ng_shift(tape, x, 1),
                             ng_sort(tape, x),
                             ng_argsort(tape, x),
                             ng_top_k(tape, x, 2),
                             ng_take_along_axis(tape, x, index),
                             ng_scatter_add_along_axis(tape, x, index, 3),
                             ng_cosine_similarity(tape, x, x)};
    ng_tensor *named[] = {ng_softmax(tape, x, .axes = last),
                          ng_log_softmax(tape, x, .axes = last),
                          ng_argmax(tape, x, .axes = last),
                          ng_argmin(tape, x, .axes = last),
                          ng_cumsum(tape, x, .axes = last),
                          ng_cumprod(tape, x, .axes = last),
                          ng_flip(tape, x, .axes = last),
                          ng_roll(tape, x, 1, .axes = last),
                          ng_shift(tape, x, 1, .axes = last),
                          ng_sort(tape, x, .axes = last),
                          ng_argsort(tape, x, .axes = last),
                          ng_top_k(tape, x, 2, .axes = last),
                          ng_take_along_axis(tape, x, index, .axes = last),
                          ng_scatter_add_along_axis(tape, x, index, 3, .axes = last),
                          ng_cosine_similarity(tape, x, x, .axes = last)};
    const int count = sizeof named / sizeof *named;
    ck_assert_int_eq(count, sizeof standard / sizeof *standard);
    for (int i = 0; i < count; i++) assert_same_bits(standard[i], named[i]);
    assert_fails(ng_softmax(tape, x, .axes = both), NG_ESHAPE, "ng_softmax");
    assert_fails(ng_argmax(tape, x, .axes = both), NG_ESHAPE, "ng_argmax");
    assert_fails(ng_sort(tape, x, .axes = both), NG_ESHAPE, "ng_sort");
    assert_fails(ng_roll(tape, x, 1, .axes = both), NG_ESHAPE, "ng_roll");
}

TEST(a_sum_of_squares_of_floats_is_that_of_doubles_over_any_axes)
{
    ng_rng rng = ng_rng_seeded(6);
    ng_tensor *x = own(ng_normal_new(NG_F64, NG_SHAPE(7, 5, 300), 0, 1, &rng));
    ng_tensor *in_float = ng_cast(tape, x, NG_F32);
    const ng_axes axes[] = {NG_AXES(0), NG_AXES(1), NG_AXES(2), NG_AXES(0, 2), {0}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        ng_tensor *expected = ng_sum(tape, ng_square(tape, x), .axes = axes[i]);
        assert_tensors_close(ng_sum_squares(tape, x, .axes = axes[i]), expected, 1e-14);
        ng_tensor *of_floats = ng_sum_squares(tape, in_float, .axes = axes[i]);
        assert_tensors_close(ng_cast(tape, of_floats, NG_F64), expected, 1e-6);
    }
}

TEST(what_a_triangle_leaves_out_is_zero_whatever_it_held)
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
    assert_fails(ng_tril(tape, ng_full(tape, NG_F64, NG_SHAPE(2), 1), 0), NG_ESHAPE,
                 "ng_tril: x is (2,), expected (..., rows, columns)");
}

TEST(chunks_and_stacks_reverse_each_other_and_report_what_does_not_fit)
{
    ng_tensor *x = values(NG_SHAPE(2, 4), NG_VALUES(1, 2, 3, 4, 5, 6, 7, 8)), *half[2] = {x, x};
    assert_ok(ng_chunk(tape, x, 2, 1, half));
    assert_values(half[1], 0, 3, 4, 7, 8);
    assert_same_bits(ng_concat(tape, half, 2, 1), x);
    ng_tensor *kept[3] = {x, x, x};
    assert_fails(ng_chunk(tape, x, 3, 1, kept), NG_ESHAPE,
                 "ng_chunk: 3 parts of axis 1 of (2, 4), expected a number that divides");
    ck_assert_ptr_eq(kept[0], x);
    assert_fails(ng_stack(tape, NG_TENSORS(x, half[0]), 0), NG_ESHAPE,
                 "ng_stack: part 1 is (2, 4) and part 2 (2, 2), expected one shape");
    assert_fails(ng_squeeze(tape, x, 0), NG_ESHAPE,
                 "ng_squeeze: axis 0 of (2, 4), expected one of length 1");
    ng_tensor *ids = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(4, 5));
    assert_values(ng_stack(tape, NG_TENSORS(ids, ids), 1), 0, 4, 4, 5, 5);
}

TEST(small_arguments_keep_their_digits)
{
    ng_tensor *x = values(NG_SHAPE(2), NG_VALUES(1e-20, -1e-20));
    assert_values(ng_log1p(tape, x), 1e-15, 1e-20, -1e-20);
    assert_values(ng_expm1(tape, x), 1e-15, 1e-20, -1e-20);
    ng_tensor *steps = values(NG_SHAPE(5), NG_VALUES(-1.5, -0.0, 0, 2, 2.5));
    assert_values(ng_floor(tape, steps), 0, -2, 0, 0, 2, 2);
    assert_values(ng_sign(tape, steps), 0, -1, 0, 0, 1, 1);
    assert_values(ng_gradient(tape, ng_floor(tape, steps), steps), 0, 0, 0, 0, 0, 0);
}

/* ---- Likelihoods --------------------------------------------------------------------------- */

TEST(accuracy_is_the_share_of_rows_that_are_right)
{
    ng_tensor *x = values(NG_SHAPE(4, 2), NG_VALUES(1, 2, 2, 1, 3, 3, 0, -1));
    ng_tensor *y = ng_from(tape, NG_I64, NG_SHAPE(4), NG_VALUES(1, 1, 0, 0));
    ck_assert_double_eq(ng_accuracy(x, y), 0.75); /* of equals the first */
    ng_tensor *lost = values(NG_SHAPE(4, 2), NG_VALUES((double)NAN, 1, 1, (double)NAN, 0, 1, 2, 1));
    ng_tensor *of_lost = ng_from(tape, NG_I64, NG_SHAPE(4), NG_VALUES(0, 1, 1, 0));
    ck_assert_double_eq(ng_accuracy(lost, of_lost), 0.5); /* with a NaN no label is right */
    ck_assert(isnan(ng_accuracy(x, ng_from(tape, NG_I64, NG_SHAPE(3), NG_VALUES(1, 1, 0)))));
    assert_error(NG_ESHAPE, "ng_accuracy: labels is (3,) and x (4, 2)");
    ck_assert(isnan(ng_accuracy(x, ng_full(tape, NG_F32, NG_SHAPE(4), 0))));
    assert_error(NG_EDTYPE, "ng_accuracy: logits float64 and labels float32");
}

TEST(a_distribution_has_no_divergence_from_itself)
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

/* y and its first two derivatives at x, in double and in float. */
static void expect_slopes(ng_tensor *(*function)(ng_tape *, ng_tensor *), double at, double y,
                          double slope, double second)
{
    for (int i = 0; i < 2; i++) {
        const double bound = i ? 1e-14 : 1e-6;
        ng_tensor *x = ng_require_grad(own(ng_full_new(i ? NG_F64 : NG_F32, NG_SHAPE(1), at)));
        ng_tensor *value = function(tape, x);
        ng_tensor *first = ng_gradient(tape, ng_sum(tape, value), x, .record = true);
        assert_close(ng_item(value), y, bound);
        assert_close(ng_item(first), slope, bound);
        assert_close(ng_item(ng_gradient(tape, ng_sum(tape, first), x)), second, bound);
    }
}

static ng_tensor *celu_of_a_tenth(ng_tape *on, ng_tensor *x) { return ng_celu(on, x, 0.1); }

TEST(activations_hold_to_the_ends_of_the_range)
{
    const double inf = (double)INFINITY, large = 16384, one = large / (1 + large);
    const double rest = 1 / (1 + large);
    expect_slopes(ng_softsign, inf, 1, 0, 0);
    expect_slopes(ng_softsign, -inf, -1, 0, 0);
    expect_slopes(ng_softsign, large, one, rest * rest, -2 * rest * rest * rest);
    expect_slopes(ng_softsign, -large, -one, rest * rest, 2 * rest * rest * rest);
    expect_slopes(ng_softsign, 0.5, 1.0 / 3, 4.0 / 9, -2 * 8.0 / 27);
    expect_slopes(ng_softsign, 0, 0, 1, 0);
    expect_slopes(ng_mish, inf, inf, 1, 0);
    expect_slopes(ng_mish, -inf, 0, 0, 0);
    expect_slopes(ng_mish, 3e38, 3e38, 1, 0);
    expect_slopes(celu_of_a_tenth, 3e38, 3e38, 1, 0);
    expect_slopes(celu_of_a_tenth, inf, inf, 1, 0);
    expect_slopes(celu_of_a_tenth, -3e38, -0.1, 0, 0);
    expect_slopes(celu_of_a_tenth, -inf, -0.1, 0, 0);
    ck_assert(isnan(ng_item(ng_softsign(tape, ng_full(tape, NG_F32, NG_SCALAR, (double)NAN)))));
    ck_assert(isnan(ng_item(ng_mish(tape, ng_full(tape, NG_F32, NG_SCALAR, (double)NAN)))));
    ck_assert(isnan(ng_item(ng_celu(tape, ng_full(tape, NG_F32, NG_SCALAR, (double)NAN), 0.1))));
}

TEST(functions_report_wrong_operands)
{
    ng_tensor *x = values(NG_SHAPE(1, 3), NG_VALUES(1, 2, 3));
    assert_fails(ng_glu(tape, x), NG_ESHAPE,
                 "ng_glu: x is (1, 3), expected an even last dimension");
    assert_refused(ng_celu(tape, x, 0), "ng_celu: alpha is 0, expected a positive number");
    assert_fails(ng_prelu(tape, x, values(NG_SHAPE(2), NG_VALUES(1, 2))), NG_ESHAPE,
                 "ng_prelu: slope is (2,) and x (1, 3), expected slope (1,), or (C,)");
    assert_refused(ng_local_response_norm(tape, x, 0),
                   "ng_local_response_norm: size is 0, expected a positive number");
    assert_fails(ng_local_response_norm(tape, values(NG_SHAPE(2), NG_VALUES(1, 2)), 3), NG_ESHAPE,
                 "ng_local_response_norm: x is (2,), expected (N, C, ...)");
    assert_refused(ng_local_response_norm(tape, x, 3, .alpha = (double)NAN),
                   "ng_local_response_norm: alpha is nan, expected a finite number of at "
                   "least 0");
    assert_refused(ng_local_response_norm(tape, x, 3, .beta = HUGE_VAL),
                   "ng_local_response_norm: beta is inf, expected a finite number");
    assert_refused(ng_local_response_norm(tape, x, 3, .k = -1),
                   "ng_local_response_norm: k is -1, expected a finite number");
    ng_tensor *empty = ng_full(tape, NG_F64, NG_SHAPE(2, 3, 0), 1);
    ck_assert_int_eq(ng_size(ng_local_response_norm(tape, empty, 3)), 0);
}

TEST(weights_and_labels_that_do_not_fit_are_errors)
{
    ng_tensor *x = values(NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4));
    ng_tensor *y = ng_from(tape, NG_I64, NG_SHAPE(2), NG_VALUES(0, 2));
    assert_refused(ng_nll(tape, x, y), "ng_nll: label 2 in row 1, expected 0 .. 1");
    ng_tensor *three = ng_full(tape, NG_F64, NG_SHAPE(3), 1);
    assert_fails(ng_cross_entropy(tape, x, y, .weights = three), NG_ESHAPE,
                 "ng_cross_entropy: weights is float64 (3,), expected float64 (2,)");
    ng_tensor *floats = ng_full(tape, NG_F32, NG_SHAPE(2), 1);
    assert_fails(ng_cross_entropy(tape, x, y, .weights = floats), NG_EDTYPE,
                 "ng_cross_entropy: weights is float32 (2,), expected float64 (2,)");
    ck_assert(isnan(ng_item(ng_nll(tape, x, y, .weights = ng_full(tape, NG_F64, NG_SHAPE(2), 0),
                                   .ignore = true, .ignored = 2))));
}
