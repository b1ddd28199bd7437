/* The norms: worked numbers, closed forms, hard numbers, running statistics, errors. Fused
 * against composed and finite differences are the op table's and the checker's. */
#include "fixture.h"
#include "support.h"
#include "tape/tape.h"

/* ---- What every test has ------------------------------------------------------------------ */

#define VALUES(dtype, shape, ...) own(ng_tensor_from(dtype, shape, NG_VALUES(__VA_ARGS__)))

static ng_tensor *leaf(ng_tensor *x) { return ng_require_grad(x); }

static ng_tensor *normal(ng_dtype dtype, ng_shape shape, double mean, double deviation,
                         uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    return leaf(own(ng_normal_new(dtype, shape, mean, deviation, &rng)));
}

static ng_tensor *in_dtype(const ng_tensor *x, ng_dtype dtype)
{
    return leaf(own(ng_copy_new(x, dtype)));
}

static void backward(ng_tensor *y, ng_tensor *dy) { assert_ok(ng_backward_from(tape, y, dy)); }

/* ---- A reference in long double ----------------------------------------------------------- */

/* A number, and the size of the terms it is made of: where these cancel, an error is relative to
 * them and not to what is left. */
typedef struct {
    long double value, terms;
} figure;

enum { MOST = 8192 };

/* Values v (count) that are normalized together, with element i's gamma, beta and cotangent;
 * y and dx come back, and what dgamma and dbeta of element i take from here. */
typedef struct {
    int64_t count;
    long double v[MOST], gamma[MOST], beta[MOST], dy[MOST];
    figure y[MOST], dx[MOST], dgamma[MOST], dbeta[MOST];
} group;

static void normalize_group(group *g, bool center, double eps)
{
    const long double n = (long double)g->count;
    long double mean = 0, var = 0;
    figure mean_g = {0, 0}, mean_gx = {0, 0};
    for (int64_t i = 0; i < g->count; i++) mean += center ? g->v[i] / n : 0;
    for (int64_t i = 0; i < g->count; i++) var += (g->v[i] - mean) * (g->v[i] - mean) / n;
    const long double rstd = 1 / sqrtl(var + (long double)eps);
    for (int64_t i = 0; i < g->count; i++) {
        const long double xhat = (g->v[i] - mean) * rstd, each = g->dy[i] * g->gamma[i];
        if (center) mean_g.value += each / n, mean_g.terms += fabsl(each) / n;
        mean_gx.value += each * xhat / n, mean_gx.terms += fabsl(each * xhat) / n;
        g->y[i] = (figure){xhat * g->gamma[i] + g->beta[i],
                           fabsl(xhat * g->gamma[i]) + fabsl(g->beta[i])};
        g->dgamma[i] = (figure){g->dy[i] * xhat, fabsl(g->dy[i] * xhat)};
        g->dbeta[i] = (figure){g->dy[i], fabsl(g->dy[i])};
    }
    for (int64_t i = 0; i < g->count; i++) {
        const long double xhat = (g->v[i] - mean) * rstd, each = g->dy[i] * g->gamma[i];
        g->dx[i] = (figure){rstd * (each - mean_g.value - xhat * mean_gx.value),
                            rstd * (fabsl(each) + mean_g.terms + fabsl(xhat) * mean_gx.terms)};
    }
}

/* One layer's operands and the reference's results, rounded to double. */
typedef struct {
    ng_tensor *value, *terms;
} figures;
typedef struct {
    ng_tensor *x, *gamma, *beta, *dy;
    figures y, dx, dgamma, dbeta;
} expectation;

static long double element(const ng_tensor *x, int64_t i) { return (long double)ng_get(x, i); }

static figures figures_of(ng_shape shape)
{
    return (figures){own(ng_zeros_new(NG_F64, shape)), own(ng_zeros_new(NG_F64, shape))};
}

static void add(figures to, int64_t i, figure f)
{
    ng_set(to.value, i, (double)(element(to.value, i) + f.value));
    ng_set(to.terms, i, (double)(element(to.terms, i) + f.terms));
}

static void assert_figures(const ng_tensor *actual, figures expected, double tolerance)
{
    assert_ok(actual);
    ck_assert_int_eq(ng_size(actual), ng_size(expected.value));
    for (int64_t i = 0; i < ng_size(actual); i++)
        assert_near(ng_get(actual, i), ng_get(expected.value, i),
                    tolerance * ng_get(expected.terms, i));
}

/* x (rows, columns), normalized along each row, or down each column; gamma and beta stand for the
 * columns in both. */
static void expect_norm(expectation *e, bool by_column, bool center, double eps)
{
    static group g;
    const int64_t rows = ng_dim(e->x, 0), columns = ng_dim(e->x, 1);
    e->y = figures_of(ng_shape_of(e->x));
    e->dx = figures_of(ng_shape_of(e->x));
    e->dgamma = figures_of(NG_SHAPE(columns));
    e->dbeta = figures_of(NG_SHAPE(columns));
    const int64_t groups = by_column ? columns : rows;
    g.count = by_column ? rows : columns;
    ck_assert_int_le(g.count, MOST);
    for (int64_t j = 0; j < groups; j++) {
        for (int64_t i = 0; i < g.count; i++) {
            const int64_t at = by_column ? i * columns + j : j * columns + i, c = at % columns;
            g.v[i] = element(e->x, at);
            g.gamma[i] = element(e->gamma, c);
            g.beta[i] = element(e->beta, c);
            g.dy[i] = element(e->dy, at);
        }
        normalize_group(&g, center, eps);
        for (int64_t i = 0; i < g.count; i++) {
            const int64_t at = by_column ? i * columns + j : j * columns + i, c = at % columns;
            add(e->y, at, g.y[i]);
            add(e->dx, at, g.dx[i]);
            add(e->dgamma, c, g.dgamma[i]);
            add(e->dbeta, c, g.dbeta[i]);
        }
    }
}

typedef enum { LAYER, RMS, BATCH } norm_kind;

static ng_tensor *apply(norm_kind kind, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, double eps)
{
    if (kind == LAYER) return ng_layer_norm(tape, x, gamma, beta, eps);
    if (kind == RMS) return ng_row_norm(tape, x, gamma, beta, .eps = ng_exactly(eps), .rms = true);
    return ng_batch_norm(tape, x, gamma, beta, NG_NONE, NG_NONE, .eps = ng_exactly(eps),
                         .training = true);
}

/* The largest error against the largest figure. */
static void assert_close_as_a_whole(const ng_tensor *actual, figures expected, double tolerance)
{
    double error = 0, largest = 0;
    for (int64_t i = 0; i < ng_size(actual); i++) {
        const double value = ng_get(expected.value, i);
        error = fmax(error, fabs(ng_get(actual, i) - value));
        largest = fmax(largest, fabs(value));
    }
    assert_near(error, 0, tolerance * largest);
}

/* Forward and backward in x's dtype against the reference. */
static void check_against_reference(norm_kind kind, ng_tensor *x, double eps, double tolerance)
{
    const ng_shape columns = NG_SHAPE(ng_dim(x, 1));
    const ng_dtype dtype = ng_dtype_of(x);
    expectation e = {.x = leaf(x),
                     .gamma = normal(dtype, columns, 1, 0.3, 11),
                     .beta = normal(dtype, columns, 0, 0.3, 12),
                     .dy = normal(dtype, ng_shape_of(x), 0, 1, 13)};
    expect_norm(&e, kind == BATCH, kind != RMS, eps);
    ng_tensor *y = apply(kind, x, e.gamma, e.beta, eps);
    assert_figures(y, e.y, tolerance);
    backward(y, e.dy);
    assert_figures(ng_grad(x), e.dx, tolerance);
    assert_figures(ng_grad(e.gamma), e.dgamma, tolerance);
    assert_figures(ng_grad(e.beta), e.dbeta, tolerance);

    /* and, more strictly where terms cancel, to the result itself; of dgamma and dbeta, where a few
     * rows' parts may be added in float, to the largest */
    assert_tensors_close(ng_grad(x), e.dx.value, 30 * tolerance);
    assert_close_as_a_whole(ng_grad(x), e.dx, tolerance);
    assert_close_as_a_whole(ng_grad(e.gamma), e.dgamma, tolerance);
    assert_close_as_a_whole(ng_grad(e.beta), e.dbeta, tolerance);
}

/* ---- The documents' numbers --------------------------------------------------------------- */

FIXTURE(set_up, tear_down)

/* Document 003: four steps on [1, 2, 3, 4]. Its xhat is printed with four digits (and taken
 * without eps), so half a unit of the last digit is allowed. */
TEST(four_steps_of_document_003)
{
    ng_tensor *x = VALUES(NG_F32, NG_SHAPE(4), 1, 2, 3, 4);
    assert_close(ng_item(ng_mean(tape, x)), 2.5, 0);
    assert_close(ng_item(ng_variance(tape, x)), 1.25, 0);
    ng_tensor *xhat = ng_layer_norm(tape, x, NG_NONE, NG_NONE, 0);
    assert_near(ng_get(xhat, 0), -1.3416, 0.5e-4);
    assert_near(ng_get(xhat, 1), -0.4472, 0.5e-4);
    assert_near(ng_get(xhat, 2), 0.4472, 0.5e-4);
    assert_near(ng_get(xhat, 3), 1.3416, 0.5e-4);
    ng_tensor *gamma = VALUES(NG_F32, NG_SHAPE(4), 1, 1, 1, 1);
    ng_tensor *beta = VALUES(NG_F32, NG_SHAPE(4), 0, 0, 0, 0);
    assert_same_bits(ng_layer_norm(tape, x, gamma, beta, 0), xhat);
}

TEST(layer_norm_of_document_000_has_unbiased_variance)
{
    ng_tensor *x = VALUES(NG_F64, NG_SHAPE(2, 4), 1, 2, 3, 4, 0, 0, 2, 2);
    ng_tensor *y = ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = 1e-6, .unbiased = true);
    const double s = 1 / sqrt(5.0 / 3 + 1e-6), t = 1 / sqrt(4.0 / 3 + 1e-6);
    assert_values(y, 1e-14, -1.5 * s, -0.5 * s, 0.5 * s, 1.5 * s, -t, -t, t, t);
}

TEST(layer_norm_of_document_001_has_biased_variance_and_affine)
{
    ng_tensor *x = VALUES(NG_F64, NG_SHAPE(4), 1, 2, 3, 4);
    ng_tensor *gamma = VALUES(NG_F64, NG_SHAPE(4), 1, 2, 3, 4);
    ng_tensor *beta = VALUES(NG_F64, NG_SHAPE(4), 10, 20, 30, 40);
    const double s = 1 / sqrt(1.25 + 1e-5);
    assert_values(ng_layer_norm(tape, x, gamma, beta, 1e-5), 1e-14, 10 - 1.5 * s, 20 - s,
                  30 + 1.5 * s, 40 + 6 * s);
}

TEST(rms_norm_of_document_004)
{
    ng_tensor *x = VALUES(NG_F32, NG_SHAPE(2), 3, 4);
    ng_tensor *y = ng_rms_norm(tape, x, NG_NONE, 1e-6);
    assert_near(ng_get(y, 0), 0.8485, 0.5e-4);
    assert_near(ng_get(y, 1), 1.1314, 0.5e-4);
}

TEST(partial_rms_norm_reads_the_first_share)
{
    ng_tensor *x = VALUES(NG_F64, NG_SHAPE(5), 3, 4, 100, -100, 7);
    const double s = 1 / sqrt(12.5);
    ng_tensor *half = ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = NG_ZERO, .rms = true,
                                  .partial = 0.5); /* 2.5 elements, rounded down */
    assert_values(half, 1e-14, 3 * s, 4 * s, 100 * s, -100 * s, 7 * s);
    ng_tensor *least = ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = NG_ZERO, .rms = true,
                                   .partial = 0.01); /* at least one element */
    assert_values(least, 1e-14, 1, 4.0 / 3, 100.0 / 3, -100.0 / 3, 7.0 / 3);
    ng_tensor *whole =
        ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = NG_ZERO, .rms = true, .partial = 1);
    assert_same_bits(whole, ng_rms_norm(tape, x, NG_NONE, 0));
}

/* 0.29 * 100 is a little less than 29 in binary. */
TEST(partial_share_is_not_lost_to_rounding)
{
    ng_tensor *x = own(ng_zeros_new(NG_F64, NG_SHAPE(100)));
    ng_set(x, 28, 1);
    ng_tensor *y =
        ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = NG_ZERO, .rms = true, .partial = 0.29);
    assert_close(ng_get(y, 28), sqrt(29), 1e-14);
}

TEST(rows_may_span_several_dimensions)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 2, 4), 0, 1, 1);
    ng_tensor *gamma = normal(NG_F64, NG_SHAPE(2, 4), 1, 1, 2);
    ng_tensor *y = ng_layer_norm(tape, x, gamma, NG_NONE, 1e-5);
    ng_tensor *flat = ng_layer_norm(tape, ng_reshape(tape, x, NG_SHAPE(3, 8)),
                                    ng_reshape(tape, gamma, NG_SHAPE(8)), NG_NONE, 1e-5);
    assert_same_bits(ng_reshape(tape, y, NG_SHAPE(3, 8)), flat);
    ng_tensor *plain = ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = 1e-5, .dims = 3);
    assert_near(ng_item(ng_mean(tape, plain)), 0, 1e-15);
}

/* ---- Closed forms ------------------------------------------------------------------------- */

LOOP_TEST(layer_norm_of_constant_row_is_beta, 2)
{
    const ng_dtype dtype = _i == 0 ? NG_F32 : NG_F64;
    ng_tensor *x = own(ng_full_new(dtype, NG_SHAPE(3, 7), 0.1));
    ng_tensor *gamma = normal(dtype, NG_SHAPE(7), 1, 1, 1),
              *beta = normal(dtype, NG_SHAPE(7), 0, 1, 2);
    ng_tensor *y = ng_layer_norm(tape, x, gamma, beta, 1e-5);
    assert_same_bits(y, ng_broadcast_to(tape, beta, NG_SHAPE(3, 7)));
}

LOOP_TEST(one_feature_gives_beta_and_no_gradient, 2)
{
    const ng_dtype dtype = _i == 0 ? NG_F32 : NG_F64;
    ng_tensor *x = normal(dtype, NG_SHAPE(3, 1), 1e6, 1e6, 1);
    ng_tensor *gamma = leaf(VALUES(dtype, NG_SHAPE(1), 3)),
              *beta = leaf(VALUES(dtype, NG_SHAPE(1), 0.7));
    ng_tensor *y = ng_layer_norm(tape, x, gamma, beta, 1e-5);
    assert_same_bits(y, ng_broadcast_to(tape, beta, NG_SHAPE(3, 1)));
    backward(y, VALUES(dtype, NG_SHAPE(3, 1), 1.5, -0.3, 7));
    assert_values(ng_grad(x), 0, 0, 0, 0);
    assert_values(ng_grad(gamma), 0, 0);
    assert_close(ng_item(ng_grad(beta)), 1.5 - 0.3 + 7, 1e-6);
}

/* Shifting by a small integer keeps every digit of these x, scaling by 4 as well. */
TEST(without_eps_layer_norm_ignores_shift_and_scale)
{
    ng_tensor *x = VALUES(NG_F64, NG_SHAPE(2, 4), 1, -2, 0.5, 4, 0, 8, -0.25, 3);
    ng_tensor *y = ng_layer_norm(tape, x, NG_NONE, NG_NONE, 0);
    ng_tensor *shifted = ng_layer_norm(tape, ng_add_scalar(tape, x, 16), NG_NONE, NG_NONE, 0);
    ng_tensor *scaled = ng_layer_norm(tape, ng_mul_scalar(tape, x, 4), NG_NONE, NG_NONE, 0);
    assert_tensors_close(shifted, y, 1e-14);
    assert_tensors_close(scaled, y, 1e-14);
}

TEST(without_eps_rms_norm_ignores_scale_but_not_shift)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 0, 1, 1);
    ng_tensor *y = ng_rms_norm(tape, x, NG_NONE, 0);
    assert_tensors_close(ng_rms_norm(tape, ng_mul_scalar(tape, x, 100), NG_NONE, 0), y, 1e-14);
    ng_tensor *shifted = ng_rms_norm(tape, ng_add_scalar(tape, x, 1), NG_NONE, 0);
    ck_assert_double_gt(fabs(ng_get(shifted, 0) - ng_get(y, 0)), 0.01);
}

/* As y stays where x moves along 1 or along xhat, dx is orthogonal to both. 1e-14: rounding of a
 * sum of 16 numbers near 1. */
TEST(layer_norm_gradient_is_orthogonal_to_shift_and_scale)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(4, 16), 3, 2, 1),
              *gamma = normal(NG_F64, NG_SHAPE(16), 1, 1, 2);
    ng_tensor *xhat = ng_layer_norm(tape, x, NG_NONE, NG_NONE, 0);
    backward(ng_layer_norm(tape, x, gamma, NG_NONE, 0), normal(NG_F64, NG_SHAPE(4, 16), 0, 1, 3));
    ng_tensor *dx = ng_grad(x);
    ng_tensor *along_one = ng_sum(tape, dx, .axes = NG_AXES(1));
    ng_tensor *along_xhat = ng_sum(tape, ng_mul(tape, dx, xhat), .axes = NG_AXES(1));
    for (int64_t r = 0; r < 4; r++) {
        assert_near(ng_get(along_one, r), 0, 1e-14);
        assert_near(ng_get(along_xhat, r), 0, 1e-14);
    }
    ck_assert_double_gt(fabs(ng_get(dx, 0)), 1e-3);
}

TEST(rms_norm_gradient_is_orthogonal_to_scale)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(4, 16), 3, 2, 1),
              *gamma = normal(NG_F64, NG_SHAPE(16), 1, 1, 2);
    backward(ng_rms_norm(tape, x, gamma, 0), normal(NG_F64, NG_SHAPE(4, 16), 0, 1, 3));
    ng_tensor *along_x = ng_sum(tape, ng_mul(tape, ng_grad(x), x), .axes = NG_AXES(1));
    for (int64_t r = 0; r < 4; r++) assert_near(ng_get(along_x, r), 0, 1e-14);
    ck_assert_double_gt(fabs(ng_get(ng_grad(x), 0)), 1e-3);
}

TEST(batch_norm_of_training_has_mean_beta_and_deviation_gamma)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(6, 3, 5), 4, 2, 1);
    ng_tensor *gamma = VALUES(NG_F64, NG_SHAPE(3), 1, -2, 3),
              *beta = VALUES(NG_F64, NG_SHAPE(3), 5, 6, 7);
    ng_tensor *y = apply(BATCH, x, gamma, beta, 0);
    assert_values(ng_mean(tape, y, .axes = NG_AXES(0, 2)), 1e-14, 5, 6, 7);
    assert_values(ng_variance(tape, y, .axes = NG_AXES(0, 2)), 1e-13, 1, 4, 9);
}

/* ---- Against the reference ---------------------------------------------------------------- */

static ng_tensor *rows_of(ng_dtype dtype, double mean, double deviation)
{
    return normal(dtype, NG_SHAPE(16, 64), mean, deviation, 7);
}

static const norm_kind kinds[] = {LAYER, RMS, BATCH};

/* A float has 2^-24 = 6e-8 of relative rounding; some ten of them, seen against the terms of a
 * figure, stay under 1e-6. */
static const double float_tolerance = 1e-6;

LOOP_TEST(double_agrees_with_long_double, 3)
{
    check_against_reference(kinds[_i], rows_of(NG_F64, 0.5, 2), 1e-5, 1e-12);
}

LOOP_TEST(float_agrees_with_long_double, 3)
{
    check_against_reference(kinds[_i], rows_of(NG_F32, 0.5, 2), 1e-5, float_tolerance);
}

LOOP_TEST(rows_of_mean_1e6_and_deviation_1, 3)
{
    check_against_reference(kinds[_i], rows_of(NG_F32, 1e6, 1), 1e-5, float_tolerance);
}

/* The squares of these overflow float. */
LOOP_TEST(rows_near_1e30, 3)
{
    check_against_reference(kinds[_i], rows_of(NG_F32, 1e30, 1e30), 1e-5, float_tolerance);
}

/* Against eps these vanish, and the squares underflow. */
LOOP_TEST(rows_near_1e_minus_30, 3)
{
    check_against_reference(kinds[_i], rows_of(NG_F32, 1e-30, 1e-30), 1e-5, float_tolerance);
}

LOOP_TEST(rows_near_1e_minus_30_without_eps, 3)
{
    check_against_reference(kinds[_i], rows_of(NG_F32, 1e-30, 1e-30), 0, float_tolerance);
}

/* Long rows are treated in float, in part. */
static const struct {
    double mean, deviation;
} long_rows[] = {{0.5, 2}, {1e6, 1}, {1e30, 1e30}, {1e-30, 1e-30}};

LOOP_TEST(long_rows_keep_their_digits, 8)
{
    const norm_kind kind = kinds[_i % 2];
    ng_tensor *x =
        normal(NG_F32, NG_SHAPE(5, 768), long_rows[_i / 2].mean, long_rows[_i / 2].deviation, 7);
    check_against_reference(kind, x, 1e-5, float_tolerance);
}

/* Sums in float that begin at such an element cancel. */
TEST(a_few_elements_far_from_the_rest_cost_a_long_row_no_digits)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 1024), 0.5, 1, 7);
    for (int64_t i = 0; i < 4 * 1024; i += 256) ng_set(x, i, 1e4 + ng_get(x, i));
    check_against_reference(LAYER, x, 1e-5, float_tolerance);
}

/* Sums are taken run by run there, a few runs side by side: whole groups, less, parts of a run. Of
 * so many elements some are so near the mean that x - mean cancels, which the reference's terms
 * leave out. */
LOOP_TEST(rows_of_any_length_keep_their_digits, 2)
{
    static const int64_t lengths[] = {2049, 2100, 2560, 3072, 3585, 3840, 4095, 4096, 6000, 8191};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        ng_tensor *x = normal(NG_F32, NG_SHAPE(3, lengths[i]), 3, 1, 7);
        check_against_reference(kinds[_i], x, 1e-5, 10 * float_tolerance);
    }
}

LOOP_TEST(long_constant_rows, 2)
{
    check_against_reference(kinds[_i], own(ng_full_new(NG_F32, NG_SHAPE(5, 1024), 0.1)), 1e-5,
                            float_tolerance);
}

/* So are long columns in backward, but for the last few of a row. */
LOOP_TEST(long_columns_keep_their_digits, 4)
{
    ng_tensor *x =
        normal(NG_F32, NG_SHAPE(773, 37), long_rows[_i].mean, long_rows[_i].deviation, 7);
    check_against_reference(BATCH, x, 1e-5, float_tolerance);
}

TEST(long_constant_columns)
{
    check_against_reference(BATCH, own(ng_full_new(NG_F32, NG_SHAPE(1024, 37), 0.125)), 1e-5,
                            float_tolerance);
}

/* One column near the end of float's range does not cost the others their digits. */
TEST(long_columns_of_different_sizes)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(773, 37), 0, 1, 7);
    for (int64_t i = 0; i < ng_size(x); i++) {
        const int64_t row = i / 37, column = i % 37;
        const double value = ng_get(x, i);
        if (column == 3) ng_set(x, i, row % 48 == 0 ? 1000 : value);
        if (column == 20) ng_set(x, i, 1e30 * value);
        if (column == 21) ng_set(x, i, 1e6 + value);
        if (column == 30) ng_set(x, i, 0);
    }
    check_against_reference(BATCH, x, 1e-5, float_tolerance);
}

/* Squares of these are 0 in float, and so is the sum of those of the first column. */
TEST(long_columns_near_1e_minus_30_without_eps)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(300, 37), 0, 1e-30, 7);
    for (int64_t row = 0; row < 300; row++) ng_set(x, row * 37, row % 2 ? 1e-30 : -1e-30);
    check_against_reference(BATCH, x, 0, float_tolerance);
}

/* Scales of 0, and at the ends of what rstd gamma may be in float. */
TEST(long_columns_of_unusual_scales)
{
    static const double scales[] = {0, -1, 1e-36, 1e30};
    for (int extreme = 0; extreme < 2; extreme++) {
        ng_tensor *x = normal(NG_F32, NG_SHAPE(260, 19), 3, 2, 7), *gamma, *beta;
        gamma = own(ng_full_new(NG_F32, NG_SHAPE(19), 1));
        beta = own(ng_zeros_new(NG_F32, NG_SHAPE(19)));
        for (int64_t c = 0; c < 19; c++) ng_set(gamma, c, scales[c % (extreme ? 4 : 2)]);
        ng_tensor *scaled = apply(BATCH, x, gamma, beta, 1e-5);
        ng_tensor *plain = apply(BATCH, x, NG_NONE, NG_NONE, 1e-5);
        for (int64_t i = 0; i < ng_size(x); i++) {
            const double expected = ng_get(plain, i) * ng_get(gamma, i % 19);
            assert_near(ng_get(scaled, i), expected, 1e-6 * fabs(expected) + 1e-44);
        }
    }
}

LOOP_TEST(constant_rows_and_columns, 3)
{
    check_against_reference(kinds[_i], own(ng_full_new(NG_F32, NG_SHAPE(16, 64), 0.1)), 1e-5,
                            float_tolerance);
}

LOOP_TEST(one_column, 3)
{
    check_against_reference(kinds[_i], normal(NG_F32, NG_SHAPE(16, 1), 5, 1, 7), 1e-5,
                            float_tolerance);
}

/* Lengths around the widths of vector registers. */
LOOP_TEST(every_short_length, 3)
{
    for (int64_t n = 2; n <= 20; n++) {
        check_against_reference(kinds[_i], normal(NG_F32, NG_SHAPE(3, n), 1, 2, (uint64_t)n), 1e-5,
                                float_tolerance);
        tear_down();
        set_up();
    }
}

/* Of rows and of columns, up to those whose sums are float. */
LOOP_TEST(lengths_up_to_the_long_ones, 3)
{
    static const int64_t lengths[] = {63, 64, 65, 79, 127, 128, 129, 131, 200, 255};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        for (int mean = 0; mean < 20; mean += 9) {
            const int64_t n = lengths[i];
            const ng_shape shape = kinds[_i] == BATCH ? NG_SHAPE(n, 21) : NG_SHAPE(21, n);
            check_against_reference(kinds[_i], normal(NG_F32, shape, mean, 2, (uint64_t)n + 31),
                                    1e-5, float_tolerance);
            tear_down();
            set_up();
        }
    }
}

/* ---- NaN and Inf -------------------------------------------------------------------------- */

static void check_nan_stays_in_its_row(ng_tensor *x, ng_tensor *y)
{
    backward(y, normal(NG_F32, NG_SHAPE(4, 16), 0, 1, 3));
    for (int64_t i = 0; i < 4 * 16; i++) {
        const bool poisoned = i / 16 == 2;
        ck_assert(isnan(ng_get(y, i)) == poisoned);
        ck_assert(isnan(ng_get(ng_grad(x), i)) == poisoned);
    }
}

LOOP_TEST(nan_stays_in_its_row, 2)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 16), 0, 1, 1);
    ng_set(x, 2 * 16 + 5, (double)NAN);
    check_nan_stays_in_its_row(x, apply(_i == 0 ? LAYER : RMS, x, NG_NONE, NG_NONE, 1e-5));
}

LOOP_TEST(infinity_gives_nan_in_its_row, 2)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 16), 0, 1, 1);
    for (int64_t i = 0; i < 16; i++) ng_set(x, 2 * 16 + i, (double)INFINITY);
    check_nan_stays_in_its_row(x, apply(_i == 0 ? LAYER : RMS, x, NG_NONE, NG_NONE, 1e-5));
}

LOOP_TEST(nan_stays_in_its_channel, 2)
{
    const int64_t rows = _i ? 300 : 8, channels = 21; /* long columns, and short ones */
    ng_tensor *x = normal(NG_F32, NG_SHAPE(rows, channels), 0, 1, 1);
    ng_set(x, 3 * channels + 2, (double)NAN);
    ng_set(x, 5 * channels + 3, (double)INFINITY);
    ng_tensor *y = apply(BATCH, x, NG_NONE, NG_NONE, 1e-5);
    for (int64_t i = 0; i < rows * channels; i++) {
        const int64_t channel = i % channels;
        ck_assert(isnan(ng_get(y, i)) == (channel == 2 || channel == 3));
    }
}

/* ---- What overflows on the way to a finite gradient --------------------------------------- */

/* xhat is Inf where statistics are those of others, and dx is rstd g. */
TEST(gradients_beyond_the_share_are_finite)
{
    const int64_t n = 1024;
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, n), 0, 1e-3, 1);
    for (int64_t i = 0; i < 4 * n; i++)
        if (i % n >= n / 2) ng_set(x, i, 1e37);
    ng_tensor *y = ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = 1e-5, .rms = true, .partial = 0.5);
    backward(y, own(ng_ones_new(NG_F32, NG_SHAPE(4, n))));
    for (int64_t row = 0; row < 4; row++) {
        double square = 0;
        for (int64_t i = 0; i < n / 2; i++) square += pow(ng_get(x, row * n + i), 2);
        const double rstd = 1 / sqrt(square / (double)(n / 2) + 1e-5);
        for (int64_t i = n / 2; i < n; i++)
            assert_near(ng_get(ng_grad(x), row * n + i), rstd, 1e-6 * rstd);
    }
}

LOOP_TEST(gradients_of_fixed_statistics_are_finite, 2)
{
    const ng_shape shape = _i ? NG_SHAPE(1, 1, 512) : NG_SHAPE(300, 21);
    ng_tensor *x = ng_require_grad(own(ng_full_new(NG_F32, shape, 1e33)));
    ng_tensor *zero = own(ng_zeros_new(NG_F32, NG_SHAPE(shape.dim[1])));
    ng_tensor *y = ng_batch_norm(tape, x, NG_NONE, NG_NONE, zero, zero, .eps = 1e-12);
    backward(y, own(ng_ones_new(NG_F32, shape)));
    for (int64_t i = 0; i < ng_size(x); i++) assert_near(ng_get(ng_grad(x), i), 1e6, 1);
}

/* RMSNorm needs no sum of g, which would overflow float here. */
TEST(large_gradients_of_rms_norm_are_finite)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 16384), 0, 1, 1),
              *dy = own(ng_full_new(NG_F32, NG_SHAPE(4, 16384), 4e36));
    backward(apply(RMS, x, NG_NONE, NG_NONE, 1e-5), dy);
    for (int64_t i = 0; i < ng_size(x); i++) ck_assert(isfinite(ng_get(ng_grad(x), i)));
}

/* ---- Running statistics ------------------------------------------------------------------- */

static ng_tensor *train_on(ng_tensor *x, ng_tensor *mean, ng_tensor *var, double momentum)
{
    return ng_batch_norm(tape, x, NG_NONE, NG_NONE, mean, var, .eps = 1e-5,
                         .momentum = ng_exactly(momentum), .training = true);
}

static ng_tensor *evaluate(ng_tensor *x, ng_tensor *mean, ng_tensor *var)
{
    return ng_batch_norm(tape, x, NG_NONE, NG_NONE, mean, var, .eps = 1e-5);
}

/* By hand, momentum 0.1, from mean 0 and variance 1; a batch of two has unbiased variance
 * (b - a)^2 / 2.
 *     1, 3: mean 2, variance 2     0 + 0.2 = 0.2         0.9 + 0.2 = 1.1
 *     5, 9: mean 7, variance 8     0.18 + 0.7 = 0.88     0.99 + 0.8 = 1.79
 *     4, 4: mean 4, variance 0     0.792 + 0.4 = 1.192   1.611 */
TEST(running_averages_over_three_batches)
{
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(1)));
    ng_tensor *var = own(ng_ones_new(NG_F64, NG_SHAPE(1)));
    assert_ok(train_on(VALUES(NG_F64, NG_SHAPE(2, 1), 1, 3), mean, var, 0.1));
    assert_values(mean, 1e-15, 0.2);
    assert_values(var, 1e-15, 1.1);
    assert_ok(train_on(VALUES(NG_F64, NG_SHAPE(2, 1), 5, 9), mean, var, 0.1));
    assert_values(mean, 1e-15, 0.88);
    assert_values(var, 1e-15, 1.79);
    assert_ok(train_on(VALUES(NG_F64, NG_SHAPE(1, 1, 2), 4, 4), mean, var, 0.1));
    assert_values(mean, 1e-15, 1.192);
    assert_values(var, 1e-15, 1.611);
}

TEST(running_statistics_are_per_channel_and_optional)
{
    ng_tensor *x = VALUES(NG_F32, NG_SHAPE(2, 2, 2), 1, 2, 10, 20, 3, 4, 30, 40);
    ng_tensor *mean = own(ng_zeros_new(NG_F32, NG_SHAPE(2)));
    ng_tensor *var = own(ng_zeros_new(NG_F32, NG_SHAPE(2)));
    assert_ok(train_on(x, mean, NG_NONE, 1));
    assert_values(mean, 0, 2.5, 25);
    assert_ok(train_on(x, NG_NONE, var, 1));
    assert_values(var, 1e-7, 5.0 / 3, 500.0 / 3);
    assert_ok(train_on(ng_neg(tape, x), mean, var, 0)); /* momentum 0: as they were */
    assert_values(mean, 0, 2.5, 25);
}

TEST(evaluation_uses_running_statistics_and_leaves_them)
{
    ng_tensor *x = leaf(VALUES(NG_F64, NG_SHAPE(1, 2), 5, 6));
    ng_tensor *mean = VALUES(NG_F64, NG_SHAPE(2), 1, 2), *var = VALUES(NG_F64, NG_SHAPE(2), 4, 16);
    ng_tensor *gamma = leaf(VALUES(NG_F64, NG_SHAPE(2), 3, 5)),
              *beta = leaf(VALUES(NG_F64, NG_SHAPE(2), 7, 8));
    ng_tensor *y = ng_batch_norm(tape, x, gamma, beta, mean, var, .eps = NG_ZERO);
    assert_values(y, 1e-15, 3 * 4 / 2.0 + 7, 5 * 4 / 4.0 + 8);
    backward(y, VALUES(NG_F64, NG_SHAPE(1, 2), 10, 100));
    assert_values(ng_grad(x), 1e-15, 10 * 3 / 2.0, 100 * 5 / 4.0);
    assert_values(ng_grad(gamma), 1e-15, 10 * 2.0, 100 * 1.0);
    assert_values(ng_grad(beta), 0, 10, 100);
    assert_values(mean, 0, 1, 2);
    assert_values(var, 0, 4, 16);
}

/* In training the statistics move with x, so the gradient of a channel sums to zero; in
 * evaluation it is dy rstd. */
TEST(training_and_evaluation_have_their_own_gradients)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 3), 1, 2, 1),
              *dy = normal(NG_F64, NG_SHAPE(8, 3), 0, 1, 2);
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(3))),
              *var = own(ng_ones_new(NG_F64, NG_SHAPE(3)));
    backward(train_on(x, mean, var, 0.1), dy);
    ng_tensor *sums = ng_sum(tape, ng_grad(x), .axes = NG_AXES(0));
    for (int64_t c = 0; c < 3; c++) assert_near(ng_get(sums, c), 0, 1e-14);
    ng_zero_grad(x);
    backward(evaluate(x, mean, var), dy);
    for (int64_t i = 0; i < 24; i++)
        assert_close(ng_get(ng_grad(x), i), ng_get(dy, i) / sqrt(ng_get(var, i % 3) + 1e-5), 1e-14);
}

TEST(running_statistics_stay_while_the_checker_moves_inputs)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 3), 1, 2, 1);
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(3))),
              *var = own(ng_ones_new(NG_F64, NG_SHAPE(3)));
    ng_tape_set_mode(tape, NG_TAPE_REMEMBER);
    assert_ok(train_on(x, mean, var, 0.1));
    assert_values(mean, 0, 0, 0, 0);
    assert_values(var, 0, 1, 1, 1);
}

TEST(statistics_changed_before_backward_are_noticed)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 1), 1, 2, 1),
              *dy = normal(NG_F64, NG_SHAPE(8, 1), 0, 1, 2);
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(1))),
              *var = own(ng_ones_new(NG_F64, NG_SHAPE(1)));
    ng_tensor *training = train_on(x, mean, var, 0.1), *stale = evaluate(x, mean, var);
    assert_ok(train_on(x, mean, var, 0.1));
    assert_fails(ng_backward_from(tape, stale, dy), NG_ESTATE, "batch_norm");
    backward(training, dy); /* its own statistics are its own */
}

/* ---- Second order ------------------------------------------------------------------------- */

/* Of t beside 0, normalized with eps = 1/4 and weighed with 1 and 2, is left -t / sqrt(1 + t^2). */
LOOP_TEST(layer_norm_and_batch_norm_have_a_third_derivative, 2)
{
    const double at = 0.7, u = 1 + at * at;
    const double expected[] = {-at / sqrt(u), -pow(u, -1.5), 3 * at * pow(u, -2.5),
                               3 * pow(u, -2.5) - 15 * at * at * pow(u, -3.5)};
    ng_tensor *t = leaf(VALUES(NG_F64, NG_SHAPE(1, 1), at));
    ng_tensor *one = VALUES(NG_F64, NG_SHAPE(1), 1), *zero = VALUES(NG_F64, NG_SHAPE(1), 0);
    ng_tensor *weights = VALUES(NG_F64, NG_SHAPE(2), 1, 2);
    ng_tensor *xhat =
        _i == 0 ? ng_layer_norm(tape, ng_pad(tape, t, 1, 0, 1), NG_NONE, NG_NONE, 0.25)
                : ng_reshape(tape,
                             ng_batch_norm(tape, ng_pad(tape, t, 0, 0, 1), one, zero, NG_NONE,
                                           NG_NONE, .eps = 0.25, .training = true),
                             NG_SHAPE(2));
    ng_tensor *y = ng_sum(tape, ng_mul(tape, xhat, weights));
    for (int order = 0; order < 4; order++) {
        assert_close(ng_item(y), expected[order], 1e-14);
        y = ng_sum(tape, ng_gradient(tape, y, t, .record = true));
    }
}

/* The kernel of the gradient's gradient against its definition, which a recorded one
 * differentiates; in float near that of double, also far from zero. */
LOOP_TEST(a_gradients_gradient_is_that_of_its_definition, 8)
{
    const bool rms = _i % 2, bare = _i / 2 % 2;
    const double mean = _i / 4 ? 1e3 : 0;
    ng_tensor *float_x = normal(NG_F32, NG_SHAPE(5, 19), mean, 2, 1);
    ng_tensor *fast[2][3];
    for (int d = 0; d < 2; d++) {
        const ng_dtype dtype = d ? NG_F32 : NG_F64;
        ng_tensor *x = leaf(in_dtype(float_x, dtype)),
                  *gamma = leaf(in_dtype(normal(NG_F32, NG_SHAPE(19), 1, 0.3, 2), dtype)),
                  *dy = leaf(in_dtype(normal(NG_F32, NG_SHAPE(5, 19), 0, 1, 3), dtype)),
                  *u = in_dtype(normal(NG_F32, NG_SHAPE(5, 19), 0, 1, 4), dtype);
        ng_tensor *y = rms ? ng_rms_norm(tape, x, bare ? NG_NONE : gamma, 1e-6)
                           : ng_layer_norm(tape, x, bare ? NG_NONE : gamma, NG_NONE, 1e-5);
        ng_tensor *dx[1], *in[] = {x, dy, gamma}, *recorded[3];
        const int count = bare ? 2 : 3;
        assert_ok(ng_gradients(tape, &y, 1, &x, 1, dx, .cotangents = &dy, .record = true));
        assert_ok(ng_gradients(tape, dx, 1, in, count, fast[d], .cotangents = &u));
        assert_ok(ng_gradients(tape, dx, 1, in, count, recorded, .cotangents = &u, .record = true));
        for (int i = 0; i < count && !d; i++) /* the definition subtracts means one after another */
            assert_tensors_close(fast[d][i], recorded[i], mean > 0 ? 1e-10 : 1e-12);
        for (int i = 0; i < count && d; i++) assert_tensors_close(fast[1][i], fast[0][i], 1e-5);
    }
}

/* Two elements, eps 0: xhat is (-1, 1) whatever x, so all derivatives are 0; with RMSNorm of
 * (a, b), y1 = a / r with r^2 = (a^2 + b^2) / 2: dy1/da = b^2 / (2 r^3), and again
 * d2y1/da2 = -3 a b^2 / (4 r^5). */
TEST(second_derivative_of_rms_norm)
{
    ng_tensor *x = leaf(VALUES(NG_F64, NG_SHAPE(2), 3, 4));
    ng_tensor *first = ng_slice(tape, ng_rms_norm(tape, x, NG_NONE, 0), 0, 0, 1);
    ng_tensor *dx = ng_gradient(tape, first, x, .record = true);
    const double r = sqrt(12.5);
    assert_close(ng_get(dx, 0), 16 / (2 * r * r * r), 1e-13);
    ng_tensor *ddx = ng_gradient(tape, ng_slice(tape, dx, 0, 0, 1), x);
    assert_close(ng_get(ddx, 0), -3 * 3 * 16 / (4 * pow(r, 5)), 1e-13);
}

/* ---- Dtypes and threads ------------------------------------------------------------------- */

LOOP_TEST(float_agrees_with_double, 3)
{
    const norm_kind kind = kinds[_i];
    ng_tensor *x = normal(NG_F32, NG_SHAPE(16, 48), 1, 2, 1),
              *dy = normal(NG_F32, NG_SHAPE(16, 48), 0, 1, 2);
    ng_tensor *x2 = in_dtype(x, NG_F64), *dy2 = in_dtype(dy, NG_F64);
    ng_tensor *y = apply(kind, x, NG_NONE, NG_NONE, 1e-5),
              *y2 = apply(kind, x2, NG_NONE, NG_NONE, 1e-5);
    assert_tensors_close(y, y2, float_tolerance);
    backward(y, dy);
    backward(y2, dy2);
    assert_tensors_close(ng_grad(x), ng_grad(x2), 30 * float_tolerance);
}

/* Enough for the kernels to share; the last three store y or dx past the caches. */
static const struct {
    int64_t rows, n;
    int threads;
} shared[] = {{512, 768, 2},  {523, 264, 3},  {129, 1001, 2}, {67, 2500, 3},
              {300, 2500, 2}, {4096, 768, 2}, {2900, 768, 2}, {779, 4096, 3}};
enum { SHARED = sizeof shared / sizeof *shared };

typedef struct {
    ng_tensor *y, *dx, *dgamma, *dbeta;
} outcome;

/* One row in 50 is so large or so small that it is treated in another way. */
static outcome run_with_threads(norm_kind kind, int64_t rows, int64_t n, int threads, bool twice)
{
    ng_set_threads(threads);
    ng_tensor *x = normal(NG_F32, NG_SHAPE(rows, n), 1, 2, 1),
              *gamma = normal(NG_F32, NG_SHAPE(n), 1, 1, 2);
    ng_tensor *beta = normal(NG_F32, NG_SHAPE(n), 0, 1, 3),
              *dy = normal(NG_F32, NG_SHAPE(rows, n), 0, 1, 4);
    for (int64_t i = 17; kind != BATCH && i < rows; i += 50)
        for (int64_t j = 0; j < n; j++)
            ng_set(x, i * n + j, ng_get(x, i * n + j) * (i % 100 < 50 ? 1e25 : 1e-25));
    ng_tensor *y = apply(kind, x, gamma, beta, 1e-5);
    if (twice) y = ng_sub(tape, y, ng_mul_scalar(tape, apply(kind, x, gamma, beta, 1e-5), 0.3));
    backward(y, dy);
    return (outcome){y, ng_grad(x), ng_grad(gamma), ng_grad(beta)};
}

LOOP_TEST(same_bits_with_any_number_of_threads, 3 * SHARED)
{
    const norm_kind kind = kinds[_i / SHARED];
    const int64_t rows = shared[_i % SHARED].rows, n = shared[_i % SHARED].n;
    const int ways = rows * n < 1000000 ? 2 : 1; /* once, and with gradients that are added */
    for (int twice = 0; twice < ways; twice++) {
        const outcome one = run_with_threads(kind, rows, n, 1, twice),
                      two = run_with_threads(kind, rows, n, shared[_i % SHARED].threads, twice);
        assert_same_bits(one.y, two.y);
        assert_same_bits(one.dx, two.dx);
        assert_same_bits(one.dgamma, two.dgamma);
        assert_same_bits(one.dbeta, two.dbeta);
    }
}

/* dx of BatchNorm in double, the first `left_out` columns of x, dy and gamma left out. */
static ng_tensor *dx_of_columns(ng_tensor *const given[3], int64_t left_out)
{
    enum { WIDTH = 37 };
    ng_tensor *part[3];
    for (int i = 0; i < 3; i++) part[i] = ng_slice(tape, given[i], -1, left_out, WIDTH);
    ng_tensor *x = ng_variable(tape, part[0]);
    ng_tensor *y = ng_batch_norm(tape, x, part[2], NG_NONE, NG_NONE, NG_NONE, .training = true);
    return ng_gradient(tape, y, x, .cotangent = part[1]);
}

/* Threads cut the columns anywhere, and one that is out of range parts those beside it, so that any
 * column may be one of a vector or one that is left over. */
TEST(a_column_has_the_same_bits_wherever_it_stands)
{
    ng_rng rng = ng_rng_seeded(5);
    ng_tensor *given[] = {own(ng_normal_new(NG_F64, NG_SHAPE(7, 37), 1, 1, &rng)),
                          own(ng_normal_new(NG_F64, NG_SHAPE(7, 37), 0, 1, &rng)),
                          own(ng_uniform_new(NG_F64, NG_SHAPE(37), 0.5, 2, &rng))};
    ng_set(given[2], 20, 1e125);
    ng_tensor *whole = dx_of_columns(given, 0);
    for (int64_t left_out = 1; left_out < 20; left_out++)
        assert_same_bits(dx_of_columns(given, left_out), ng_slice(tape, whole, 1, left_out, 37));
}

/* dx of a batch so large that it is stored past the caches, in vectors, which want their memory
 * aligned: a column that is no number goes by itself and leaves those behind it elsewhere. */
LOOP_TEST(columns_of_a_large_batch_beside_one_of_nan_have_their_gradients, 2)
{
    enum { ROWS = 8192, COLUMNS = 256, BROKEN = 5 };
    const ng_dtype dtype = _i == 0 ? NG_F32 : NG_F64;
    ng_tensor *x = in_dtype(normal(NG_F32, NG_SHAPE(ROWS, COLUMNS), 1, 2, 1), dtype);
    ng_tensor *dy = in_dtype(normal(NG_F32, NG_SHAPE(ROWS, COLUMNS), 0, 1, 2), dtype);
    ng_tensor *dx[2];
    for (int broken = 0; broken < 2; broken++) {
        if (broken) ng_set(x, BROKEN, (double)NAN);
        ng_tensor *y = apply(BATCH, x, NG_NONE, NG_NONE, 1e-5);
        dx[broken] = ng_gradient(tape, y, x, .cotangent = dy);
    }
    for (int64_t i = 0; i < ng_size(x); i++) {
        const double expected = ng_get(dx[0], i), actual = ng_get(dx[1], i);
        if (i % COLUMNS == BROKEN)
            ck_assert(isnan(actual));
        else
            assert_near(actual, expected, dtype == NG_F32 ? 1e-5 * (fabs(expected) + 0.1) : 0);
    }
}

/* ---- Recording ---------------------------------------------------------------------------- */

TEST(nothing_is_recorded_for_constants)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(4, 3)));
    for (int i = 0; i < 3; i++) {
        ng_tensor *y = apply(kinds[i], x, NG_NONE, NG_NONE, 1e-5);
        assert_ok(y);
        ck_assert_ptr_null(ng_node_of(y));
    }
    ck_assert_int_eq(ng_tape_used(tape).ops, 0);
}

/* gamma alone may be trained. */
LOOP_TEST(gradients_reach_only_what_requires_them, 3)
{
    ng_tensor *x = own(ng_copy_new(normal(NG_F64, NG_SHAPE(6, 3), 1, 2, 1), NG_F64));
    ng_tensor *gamma = normal(NG_F64, NG_SHAPE(3), 1, 1, 2),
              *beta = VALUES(NG_F64, NG_SHAPE(3), 0, 0, 0);
    ng_tensor *dy = normal(NG_F64, NG_SHAPE(6, 3), 0, 1, 3);
    ng_tensor *xhat = apply(kinds[_i], x, NG_NONE, NG_NONE, 1e-5);
    backward(apply(kinds[_i], x, gamma, beta, 1e-5), dy);
    assert_tensors_close(ng_grad(gamma), ng_sum(tape, ng_mul(tape, dy, xhat), .axes = NG_AXES(0)),
                         1e-13);
    ck_assert(!ng_has_grad(x) && !ng_has_grad(beta));
}

TEST(an_empty_batch_of_rows_is_an_empty_result)
{
    for (int64_t n = 1; n < 10000; n = 2 * n + 1) {
        ng_tensor *x = leaf(own(ng_zeros_new(NG_F32, NG_SHAPE(0, n))));
        for (int i = 0; i < 2; i++) {
            ng_tensor *y = apply(i == 0 ? LAYER : RMS, x, NG_NONE, NG_NONE, 1e-5);
            ck_assert_int_eq(ng_size(y), 0);
            backward(y, own(ng_zeros_new(NG_F32, NG_SHAPE(0, n))));
        }
    }
}

typedef enum { BY_GROUP, BY_INSTANCE, BY_CHANNEL, BY_BATCH, EMPTY_KINDS } empty_kind;

static ng_tensor *apply_to_channels(int kind, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta)
{
    ng_tensor *zeros = own(ng_zeros_new(NG_F32, NG_SHAPE(4)));
    ng_tensor *ones = own(ng_ones_new(NG_F32, NG_SHAPE(4)));
    if (kind == BY_GROUP) return ng_group_norm(tape, x, gamma, beta, .groups = 2);
    if (kind == BY_INSTANCE) return ng_instance_norm(tape, x, gamma, beta, 1e-5);
    if (kind == BY_CHANNEL) return ng_channel_norm(tape, x, gamma, beta, 1e-5);
    return ng_batch_norm(tape, x, gamma, beta, zeros, ones);
}

TEST(an_empty_batch_of_channels_is_an_empty_result_with_zero_gradients)
{
    static const int64_t positions[] = {1, 3, 40};
    for (int kind = 0; kind < EMPTY_KINDS; kind++)
        for (int p = 0; p < 3; p++) {
            const ng_shape shape = NG_SHAPE(0, 4, positions[p]);
            ng_tensor *x = leaf(own(ng_zeros_new(NG_F32, shape)));
            ng_tensor *gamma = normal(NG_F32, NG_SHAPE(4), 1, 1, 1);
            ng_tensor *beta = normal(NG_F32, NG_SHAPE(4), 0, 1, 2);
            ng_tensor *y = apply_to_channels(kind, x, gamma, beta);
            assert_ok(y);
            ck_assert(ng_shape_equal(ng_shape_of(y), shape));
            backward(y, own(ng_zeros_new(NG_F32, shape)));
            for (int64_t c = 0; c < 4; c++)
                ck_assert(ng_get(ng_grad(gamma), c) == 0 && ng_get(ng_grad(beta), c) == 0);
            ck_assert_ptr_nonnull(apply_to_channels(kind, x, NG_NONE, NG_NONE));
        }
}

TEST(layers_take_an_empty_batch_of_channels)
{
    ng_module *layers[] = {ng_group_norm_new(2, 4), ng_instance_norm_new(4),
                           ng_layer_norm_new(4, .channels_first = true), ng_batch_norm_new(4)};
    for (int i = 0; i < 4; i++) {
        ng_eval(layers[i]);
        ng_tensor *y = ng_forward(layers[i], tape, own(ng_zeros_new(NG_F32, NG_SHAPE(0, 4, 5))));
        assert_ok(y);
        ck_assert_int_eq(ng_size(y), 0);
        ng_module_free(layers[i]);
    }
}

/* ---- Errors ------------------------------------------------------------------------------- */

TEST(row_norm_says_what_is_wrong)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(2, 4))),
              *three = own(ng_ones_new(NG_F32, NG_SHAPE(3)));
    ng_tensor *doubles = own(ng_ones_new(NG_F64, NG_SHAPE(4))),
              *scalar = own(ng_ones_new(NG_F32, NG_SCALAR));

    assert_fails(ng_layer_norm(tape, x, three, NG_NONE, 1e-5), NG_ESHAPE,
                 "ng_layer_norm: gamma of shape (3,), expected (4,) for a tensor of shape (2, 4)");
    assert_fails(ng_layer_norm(tape, x, NG_NONE, three, 1e-5), NG_ESHAPE,
                 "ng_layer_norm: beta of shape (3,), expected (4,) for a tensor of shape (2, 4)");
    assert_fails(ng_rms_norm(tape, x, three, 1e-5), NG_ESHAPE, "ng_rms_norm: gamma of shape (3,)");
    assert_fails(ng_layer_norm(tape, x, doubles, NG_NONE, 1e-5), NG_EDTYPE,
                 "ng_layer_norm: dtypes differ: operand 1 is float32, operand 2 is float64");
    assert_fails(ng_layer_norm(tape, scalar, NG_NONE, NG_NONE, 1e-5), NG_ESHAPE,
                 "ng_layer_norm: rows of 1 dimension,");
    assert_fails(ng_layer_norm(tape, NG_NONE, NG_NONE, NG_NONE, 1e-5), NG_EVALUE, "ng_layer_norm");
    assert_fails(ng_layer_norm(tape, x, NG_NONE, NG_NONE, -1), NG_EVALUE,
                 "ng_layer_norm: eps is -1");
    assert_fails(ng_rms_norm(tape, x, NG_NONE, (double)NAN), NG_EVALUE, "ng_rms_norm: eps is ");
}

TEST(row_norm_options_say_what_is_wrong)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(2, 4))),
              *one = own(ng_ones_new(NG_F32, NG_SHAPE(5, 1)));
    assert_fails(
        ng_row_norm(tape, x, NG_NONE, NG_NONE, .dims = 3), NG_ESHAPE,
        "ng_row_norm: rows of 3 dimensions, expected at least 1 and at most those of x (2, 4)");
    assert_fails(ng_row_norm(tape, x, NG_NONE, NG_NONE, .dims = -1), NG_ESHAPE,
                 "ng_row_norm: rows of -1 dimensions");
    assert_fails(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .partial = 1.5), NG_EVALUE,
                 "ng_row_norm: partial is 1.5, expected 0 < partial <= 1");
    assert_fails(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .partial = -0.5), NG_EVALUE,
                 "ng_row_norm: partial is -0.5");
    assert_fails(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .partial = NG_ZERO), NG_EVALUE,
                 "ng_row_norm: partial is 0");
    assert_fails(ng_row_norm(tape, x, NG_NONE, NG_NONE, .partial = 0.5), NG_EVALUE,
                 "ng_row_norm: partial statistics are for .rms");
    assert_fails(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .unbiased = true), NG_EVALUE,
                 "ng_row_norm: an unbiased variance needs centred rows");
    assert_fails(ng_row_norm(tape, one, NG_NONE, NG_NONE, .unbiased = true), NG_ESHAPE,
                 "at least 2 elements, got shape (5, 1)");
    assert_fails(
        ng_row_norm(tape, own(ng_zeros_new(NG_F32, NG_SHAPE(3, 0))), NG_NONE, NG_NONE, .rms = true),
        NG_ESHAPE, "a norm needs rows of at least 1 element, got shape (3, 0)");
    assert_fails(ng_row_norm(tape, x, NULL, NG_NONE), NG_ENULL,
                 "ng_row_norm: gamma is NULL; NG_NONE leaves it out");
}

TEST(null_that_an_earlier_failure_explains_is_passed_on)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(2, 4))),
              *wrong = own(ng_ones_new(NG_F32, NG_SHAPE(3)));
    assert_fails(ng_layer_norm(tape, x, ng_add(tape, x, wrong), NG_NONE, 1e-5), NG_ESHAPE,
                 "ng_add"); /* the first failure stays on record */
}

/* ---- Padding ------------------------------------------------------------------------------- */

typedef struct {
    ng_shape x, mask;
    bool eval;
} masked_case;

static const masked_case masked_cases[] = {
    {{2, {9, 3}}, {1, {9}}, false},    {{3, {4, 3, 5}}, {2, {4, 5}}, false},
    {{3, {6, 3, 5}}, {1, {6}}, false}, {{4, {3, 3, 4, 2}}, {3, {3, 4, 2}}, false},
    {{2, {9, 3}}, {1, {9}}, true},     {{3, {4, 3, 5}}, {2, {4, 5}}, true},
};
#define N_MASKED ((int)(sizeof masked_cases / sizeof masked_cases[0]))

/* Row (position) `row` of channels-second x, channel c. */
static int64_t masked_place(ng_shape x, int64_t row, int64_t c)
{
    int64_t inner = 1;
    for (int i = 2; i < x.rank; i++) inner *= x.dim[i];
    return (row / inner * x.dim[1] + c) * inner + row % inner;
}

/* y, dx and the gradient of their squares, each (rows, C), with mask or of gathered rows. */
typedef struct {
    ng_tensor *y, *dx, *again, *dgamma, *dbeta;
} masked_results;

static masked_results masked_run(bool renorm, ng_tensor *x, ng_tensor *const state[4],
                                 ng_tensor *dy, ng_tensor *mask, bool eval)
{
    ng_tensor *to[] = {x, state[0], state[1]}, *g[3];
    ng_tensor *y = renorm ? ng_batch_renorm(tape, x, state[0], state[1], state[2], state[3],
                                            .mask = mask, .training = !eval)
                          : ng_batch_norm(tape, x, state[0], state[1], state[2], state[3],
                                          .mask = mask, .training = !eval);
    assert_ok(ng_gradients(tape, &y, 1, to, 3, g, .cotangents = &dy, .record = true));
    ng_tensor *all =
        ng_add(tape, ng_sum(tape, ng_square(tape, g[0])), ng_sum(tape, ng_square(tape, g[1])));
    return (masked_results){y, g[0], ng_gradient(tape, all, x), g[1], g[2]};
}

/* Rows of `whole` that the mask leaves are those of `gathered`, the others exactly 0. */
static void expect_gathered(const ng_tensor *whole, const ng_tensor *gathered,
                            const ng_tensor *mask, double tolerance)
{
    const ng_shape s = ng_shape_of(whole);
    const int64_t rows = ng_size(whole) / 3, each = rows / ng_size(mask);
    int64_t next = 0;
    for (int64_t row = 0; row < rows; row++) {
        const bool real = ng_get(mask, row / each) != 0;
        for (int64_t c = 0; c < 3; c++) {
            const double value = ng_get(whole, masked_place(s, row, c));
            if (real)
                assert_near(value, ng_get(gathered, next * 3 + c), tolerance);
            else
                ck_assert_double_eq(value, 0);
        }
        next += real;
    }
    ck_assert_int_eq(next * 3, ng_size(gathered));
}

static ng_tensor *gathered_rows(const ng_tensor *whole, const ng_tensor *mask)
{
    const ng_shape s = ng_shape_of(whole);
    const int64_t rows = ng_size(whole) / 3, each = rows / ng_size(mask);
    int64_t next = 0, count = 0;
    for (int64_t i = 0; i < ng_size(mask); i++) count += ng_get(mask, i) != 0;
    ng_tensor *gathered = own(ng_zeros_new(NG_F64, NG_SHAPE(count * each, 3)));
    for (int64_t row = 0; row < rows; row++)
        for (int64_t c = 0; c < 3 && ng_get(mask, row / each) != 0; c++)
            ng_set(gathered, next++, ng_get(whole, masked_place(s, row, c)));
    return gathered;
}

LOOP_TEST(masked_batch_norm_is_that_of_the_gathered_positions, 2 * N_MASKED)
{
    const masked_case *m = &masked_cases[_i % N_MASKED];
    const bool renorm = _i >= N_MASKED;
    ng_tensor *mask = own(ng_ones_new(NG_I64, m->mask));
    for (int64_t i = 1; i < ng_size(mask); i += 3) ng_set(mask, i, 0);
    ng_tensor *x = normal(NG_F64, m->x, 1, 2, 1), *dy = normal(NG_F64, m->x, 0, 1, 2);
    ng_tensor *xg = leaf(gathered_rows(x, mask)), *dyg = gathered_rows(dy, mask);
    ng_tensor *state[2][4];
    for (int i = 0; i < 2; i++) {
        state[i][0] = normal(NG_F64, NG_SHAPE(3), 1, 1, 5);
        state[i][1] = normal(NG_F64, NG_SHAPE(3), 0, 1, 6);
        state[i][2] = own(ng_ones_new(NG_F64, NG_SHAPE(3)));
        state[i][3] = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(0.5, 2, 3)));
    }
    const masked_results a = masked_run(renorm, x, state[0], dy, mask, m->eval);
    const masked_results b = masked_run(renorm, xg, state[1], dyg, NG_NONE, m->eval);
    expect_gathered(a.y, b.y, mask, 1e-12);
    expect_gathered(a.dx, b.dx, mask, 1e-12);
    expect_gathered(a.again, b.again, mask, 1e-12);
    assert_tensors_close(a.dgamma, b.dgamma, 1e-12);
    assert_tensors_close(a.dbeta, b.dbeta, 1e-12);
    assert_same_bits(state[0][2], state[1][2]);
    assert_same_bits(state[0][3], state[1][3]);
}

/* Refused at each allocation in turn, on a tape that has none yet. */
LOOP_TEST(masked_batch_norm_without_memory_leaves_running_statistics_alone, 2)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(64, 512, 9), 1, 2, 1);
    ng_tensor *mask = own(ng_ones_new(NG_F64, NG_SHAPE(64)));
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(512)));
    ng_tensor *var = own(ng_ones_new(NG_F64, NG_SHAPE(512)));
    ng_set(mask, 3, 0);
    int refused = 0;
    for (ng_tensor *y = NULL; !y; refused++) {
        ng_tape *own_tape = ng_tape_new();
        allocations_fail_after(refused);
        y = _i ? ng_batch_renorm(own_tape, x, NG_NONE, NG_NONE, mean, var, .training = true,
                                 .mask = mask)
               : ng_batch_norm(own_tape, x, NG_NONE, NG_NONE, mean, var, .training = true,
                               .mask = mask);
        allocations_succeed();
        if (!y) assert_error(NG_ENOMEM, "out of memory");
        ck_assert_int_eq(ng_get(mean, 0) == 0 && ng_get(var, 0) == 1, !y);
        ng_tape_free(own_tape);
    }
    ck_assert_int_gt(refused, 4);
}

TEST(masked_batch_norm_says_what_is_wrong)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(4, 3, 5)));
    ng_tensor *one = own(ng_zeros_new(NG_F32, NG_SHAPE(4, 5)));
    ng_tensor *wrong = own(ng_ones_new(NG_F32, NG_SHAPE(5)));
    ng_set(one, 7, 1);
#define MASKED(mask_)                                                                              \
    ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true, .mask = mask_)
    ck_assert_ptr_null(MASKED(wrong));
    assert_error(NG_ESHAPE,
                 "ng_batch_norm: mask is (5,) and x (4, 3, 5), expected mask (4,) or (4, 5)");
    assert_fails(MASKED(one), NG_ESHAPE,
                 "ng_batch_norm: training needs more than one value per channel, the mask "
                 "leaves 1 of 20");
    ng_set(one, 8, 1);
    assert_ok(MASKED(one));
#undef MASKED
    assert_fails(ng_batch_norm_new(3, .masked = true, .ghost = 2), NG_EVALUE,
                 "ng_batch_norm_new: both .ghost and .masked, expected one of them");
    ng_tensor *mean = own(ng_zeros_new(NG_F32, NG_SHAPE(3)));
    ng_tensor *deviation = own(ng_ones_new(NG_F32, NG_SHAPE(3)));
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, mean, deviation, .mask = wrong),
                 NG_ESHAPE,
                 "ng_batch_renorm: mask is (5,) and x (4, 3, 5), expected mask (4,) or (4, 5)");
    ng_set(one, 8, 0);
    assert_fails(
        ng_batch_renorm(tape, x, NG_NONE, NG_NONE, mean, deviation, .mask = one, .training = true),
        NG_ESHAPE, "ng_batch_renorm: training needs more than one value per channel");
}

/* What a sequence of a batch gives does not depend on what pads it. */
TEST(norms_of_a_transformer_pass_over_what_its_mask_hides)
{
    ng_tensor *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(3, 4)));
    ng_tensor *mask = own(ng_ones_new(NG_F32, NG_SHAPE(3, 4)));
    for (int i = 0; i < 12; i++) ng_set(ids, i, i % 5);
    ng_set(mask, 7, 0), ng_set(mask, 10, 0), ng_set(mask, 11, 0);
    ng_module *net = ng_transformer_new(7, .dim = 8, .heads = 2, .layers = 2, .norm = ng_norm_batch,
                                        .bidirectional = true);
    ng_tensor *y = ng_forward_conditioned(net, tape, ids, mask);
    ng_set(ids, 7, 6), ng_set(ids, 10, 6), ng_set(ids, 11, 5);
    ng_tensor *other = ng_forward_conditioned(net, tape, ids, mask);
    assert_ok(y), assert_ok(other);
    for (int i = 0; i < 12; i++)
        for (int64_t c = 0; c < 7 && ng_get(mask, i) != 0; c++)
            ck_assert_double_eq(ng_get(y, i * 7 + c), ng_get(other, i * 7 + c));
    ng_module_free(net);
}

TEST(batch_norm_says_what_is_wrong)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(8, 4))),
              *single = own(ng_ones_new(NG_F32, NG_SHAPE(1, 64)));
    ng_tensor *vector = own(ng_ones_new(NG_F32, NG_SHAPE(8))),
              *four = own(ng_ones_new(NG_F32, NG_SHAPE(4)));
    ng_tensor *doubles = own(ng_ones_new(NG_F64, NG_SHAPE(4))),
              *moving = leaf(own(ng_ones_new(NG_F32, NG_SHAPE(4))));

    assert_fails(
        ng_batch_norm(tape, single, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
        NG_ESHAPE,
        "ng_batch_norm: training needs more than one value per channel, got shape (1, 64)");
    assert_fails(ng_batch_norm(tape, vector, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
                 NG_ESHAPE,
                 "ng_batch_norm: x of shape (8,), expected (N, C), (N, C, L) or (N, C, H, W)");
    assert_fails(ng_batch_norm(tape, x, vector, NG_NONE, NG_NONE, NG_NONE, .training = true),
                 NG_ESHAPE,
                 "ng_batch_norm: gamma of shape (8,), expected (4,) for a tensor of shape (8, 4)");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, vector, .training = true),
                 NG_ESHAPE, "ng_batch_norm: running_var of shape (8,)");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, doubles, NG_NONE, .training = true),
                 NG_EDTYPE, "operand 1 is float32, operand 4 is float64");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, four, NG_NONE), NG_EVALUE,
                 "ng_batch_norm: running_mean and running_var are needed outside training");
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
                 NG_EVALUE, "ng_batch_renorm: running_mean and running_deviation are needed");
    assert_fails(
        ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = -1, .training = true),
        NG_EVALUE, "ng_batch_norm: eps is -1");
    assert_fails(
        ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .momentum = 2, .training = true),
        NG_EVALUE, "ng_batch_norm: momentum is 2");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, moving, four), NG_EGRAD,
                 "ng_batch_norm: running_mean requires a gradient, expected a buffer");
    ng_tensor *one = ng_ones_new(NG_F32, NG_SHAPE(4));
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, one, one, .training = true), NG_EVALUE,
                 "ng_batch_norm: running_mean and running_var are one tensor");
    ng_tensor_free(one);
    ng_tensor *on_tape = ng_full(tape, NG_F32, NG_SHAPE(4), 1);
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, on_tape, NG_NONE, .training = true),
                 NG_ESTATE, "read-only");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NULL, NG_NONE, NG_NONE, .training = true),
                 NG_ENULL, "ng_batch_norm: beta is NULL");
}

/* Memory runs out wherever it may: the statistics are as before, and a second try succeeds. */
TEST(out_of_memory_leaves_running_statistics_alone)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(64, 512), 1, 2, 1);
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(512))),
              *var = own(ng_ones_new(NG_F64, NG_SHAPE(512)));
    allocations_fail_after(0);
    ng_tensor *y = train_on(x, mean, var, 0.1);
    allocations_succeed();
    assert_fails(y, NG_ENOMEM, "out of memory");
    assert_close(ng_get(mean, 0), 0, 0);
    assert_close(ng_get(var, 0), 1, 0);
    assert_ok(train_on(x, mean, var, 0.1));
    ck_assert_double_gt(fabs(ng_get(mean, 0)), 0.01);
}
