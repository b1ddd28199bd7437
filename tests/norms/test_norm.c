/* LayerNorm, RMSNorm and BatchNorm as ops: worked numbers, closed forms, running statistics,
 * threads, masks, errors. */
#include "fixture.h"
#include "support.h"
#include "tape/tape.h"

/* ---- What every test has ------------------------------------------------------------------ */

#define VALUES(dtype, shape, ...) own(ng_tensor_from(dtype, shape, NG_VALUES(__VA_ARGS__)))

static void backward(ng_tensor *y, ng_tensor *dy) { assert_ok(ng_backward_from(tape, y, dy)); }

typedef enum { LAYER, RMS, BATCH, GROUP } norm_kind;

static ng_tensor *apply(norm_kind kind, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, double eps)
{
    if (kind == LAYER) return ng_layer_norm(tape, x, gamma, beta, eps);
    if (kind == RMS) return ng_row_norm(tape, x, gamma, beta, .eps = ng_exactly(eps), .rms = true);
    if (kind == GROUP)
        return ng_group_norm(tape, x, gamma, beta, .groups = ng_dim(x, 1) % 8 ? 1 : 8,
                             .eps = ng_exactly(eps));
    return ng_batch_norm(tape, x, gamma, beta, NG_NONE, NG_NONE, .eps = ng_exactly(eps),
                         .training = true);
}

static const norm_kind kinds[] = {LAYER, RMS, BATCH, GROUP};

/* ---- The documents' numbers --------------------------------------------------------------- */

FIXTURE(set_up, tear_down)

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
    assert_same_bits(whole, ng_rms_norm(tape, x, NG_NONE, NG_ZERO));
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
    ng_tensor *x = normal_with(NG_F64, NG_SHAPE(3, 2, 4), 0, 1, 1);
    ng_tensor *gamma = normal_with(NG_F64, NG_SHAPE(2, 4), 1, 1, 2);
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
    ng_tensor *gamma = normal_with(dtype, NG_SHAPE(7), 1, 1, 1),
              *beta = normal_with(dtype, NG_SHAPE(7), 0, 1, 2);
    ng_tensor *y = ng_layer_norm(tape, x, gamma, beta, 1e-5);
    assert_same_bits(y, ng_broadcast_to(tape, beta, NG_SHAPE(3, 7)));
}

/* Where eps is 0, rstd is infinite. */
LOOP_TEST(one_feature_gives_beta_and_no_gradient, 6)
{
    static const double eps[] = {1e-5, 0, 1e-300};
    const ng_dtype dtype = _i % 2 == 0 ? NG_F32 : NG_F64;
    ng_tensor *x = normal_with(dtype, NG_SHAPE(3, 1), 1e6, 1e6, 1);
    ng_tensor *gamma = ng_require_grad(VALUES(dtype, NG_SHAPE(1), 3));
    ng_tensor *beta = ng_require_grad(VALUES(dtype, NG_SHAPE(1), 0.7));
    ng_tensor *y = ng_layer_norm(tape, x, gamma, beta, eps[_i / 2]);
    assert_same_bits(y, ng_broadcast_to(tape, beta, NG_SHAPE(3, 1)));
    backward(y, VALUES(dtype, NG_SHAPE(3, 1), 1.5, -0.3, 7));
    assert_values(ng_grad(x), 0, 0, 0, 0);
    assert_values(ng_grad(gamma), 0, 0);
    assert_close(ng_item(ng_grad(beta)), 1.5 - 0.3 + 7, 1e-6);
}

/* gamma of 0, and at the ends of the range in which rstd gamma is a float. */
TEST(long_columns_of_unusual_scales)
{
    static const double scales[] = {0, -1, 1e-36, 1e30};
    for (int extreme = 0; extreme < 2; extreme++) {
        ng_tensor *x = normal_with(NG_F32, NG_SHAPE(260, 19), 3, 2, 7), *gamma, *beta;
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

/* ---- NaN and Inf -------------------------------------------------------------------------- */

LOOP_TEST(nan_stays_in_its_channel, 2)
{
    const int64_t rows = _i ? 300 : 8, channels = 21; /* long columns, and short ones */
    ng_tensor *x = normal_with(NG_F32, NG_SHAPE(rows, channels), 0, 1, 1);
    ng_set(x, 3 * channels + 2, (double)NAN);
    ng_set(x, 5 * channels + 3, (double)INFINITY);
    ng_tensor *y = apply(BATCH, x, NG_NONE, NG_NONE, 1e-5);
    for (int64_t i = 0; i < rows * channels; i++) {
        const int64_t channel = i % channels;
        ck_assert(isnan(ng_get(y, i)) == (channel == 2 || channel == 3));
    }
}

/* ---- What overflows on the way to a finite gradient --------------------------------------- */

/* Elements outside the share have no part in the statistics: their xhat may be Inf, and dx is rstd
 * g. */
TEST(gradients_beyond_the_share_are_finite)
{
    const int64_t n = 1024;
    ng_tensor *x = normal_with(NG_F32, NG_SHAPE(4, n), 0, 1e-3, 1);
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
    ng_tensor *x = normal_with(NG_F32, NG_SHAPE(4, 16384), 0, 1, 1),
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

TEST(running_statistics_stay_while_the_checker_moves_inputs)
{
    ng_tensor *x = normal_with(NG_F64, NG_SHAPE(8, 3), 1, 2, 1);
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(3))),
              *var = own(ng_ones_new(NG_F64, NG_SHAPE(3)));
    ng_tape_set_mode(tape, NG_TAPE_REMEMBER);
    assert_ok(train_on(x, mean, var, 0.1));
    assert_values(mean, 0, 0, 0, 0);
    assert_values(var, 0, 1, 1, 1);
}

TEST(statistics_changed_before_backward_are_noticed)
{
    ng_tensor *x = normal_with(NG_F64, NG_SHAPE(8, 1), 1, 2, 1),
              *dy = normal_with(NG_F64, NG_SHAPE(8, 1), 0, 1, 2);
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(1))),
              *var = own(ng_ones_new(NG_F64, NG_SHAPE(1)));
    ng_tensor *training = train_on(x, mean, var, 0.1), *stale = evaluate(x, mean, var);
    assert_ok(train_on(x, mean, var, 0.1));
    assert_fails(ng_backward_from(tape, stale, dy), NG_ESTATE, "batch_norm");
    backward(training, dy); /* its own statistics are its own */
}

/* ---- Second order ------------------------------------------------------------------------- */

/* LayerNorm of (t, 0) with eps = 1/4, weighted with 1 and 2, is -t / sqrt(1 + t^2). */
LOOP_TEST(layer_norm_and_batch_norm_have_a_third_derivative, 2)
{
    const double at = 0.7, u = 1 + at * at;
    const double expected[] = {-at / sqrt(u), -pow(u, -1.5), 3 * at * pow(u, -2.5),
                               3 * pow(u, -2.5) - 15 * at * at * pow(u, -3.5)};
    ng_tensor *t = ng_require_grad(VALUES(NG_F64, NG_SHAPE(1, 1), at));
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

/* Two elements, eps 0: xhat is (-1, 1) whatever x, so all derivatives are 0; with RMSNorm of
 * (a, b), y1 = a / r with r^2 = (a^2 + b^2) / 2: dy1/da = b^2 / (2 r^3), and again
 * d2y1/da2 = -3 a b^2 / (4 r^5). */
TEST(second_derivative_of_rms_norm)
{
    ng_tensor *x = ng_require_grad(VALUES(NG_F64, NG_SHAPE(2), 3, 4));
    ng_tensor *first = ng_slice(tape, ng_rms_norm(tape, x, NG_NONE, NG_ZERO), 0, 0, 1);
    ng_tensor *dx = ng_gradient(tape, first, x, .record = true);
    const double r = sqrt(12.5);
    assert_close(ng_get(dx, 0), 16 / (2 * r * r * r), 1e-13);
    ng_tensor *ddx = ng_gradient(tape, ng_slice(tape, dx, 0, 0, 1), x);
    assert_close(ng_get(ddx, 0), -3 * 3 * 16 / (4 * pow(r, 5)), 1e-13);
}

/* ---- Dtypes and threads ------------------------------------------------------------------- */

/* Large enough to be shared by threads; the last three store y or dx past the caches. */
static const struct {
    int64_t rows, n;
    int threads;
} shared[] = {{512, 768, 2},  {523, 264, 3},  {129, 1001, 2}, {67, 2500, 3},
              {300, 2500, 2}, {4096, 768, 2}, {2900, 768, 2}, {779, 4096, 3}};
enum { SHARED = sizeof shared / sizeof *shared };

typedef struct {
    ng_tensor *y, *dx, *dgamma, *dbeta;
} outcome;

/* One row in 50 is near an end of the range and is computed in double. */
static outcome run_with_threads(norm_kind kind, int64_t rows, int64_t n, int threads, bool twice)
{
    ng_set_threads(threads);
    ng_tensor *x = normal_with(NG_F32, NG_SHAPE(rows, n), 1, 2, 1),
              *gamma = normal_with(NG_F32, NG_SHAPE(n), 1, 1, 2);
    ng_tensor *beta = normal_with(NG_F32, NG_SHAPE(n), 0, 1, 3),
              *dy = normal_with(NG_F32, NG_SHAPE(rows, n), 0, 1, 4);
    for (int64_t i = 17; kind != BATCH && i < rows; i += 50)
        for (int64_t j = 0; j < n; j++)
            ng_set(x, i * n + j, ng_get(x, i * n + j) * (i % 100 < 50 ? 1e25 : 1e-25));
    ng_tensor *y = apply(kind, x, gamma, beta, 1e-5);
    if (twice) y = ng_sub(tape, y, ng_mul_scalar(tape, apply(kind, x, gamma, beta, 1e-5), 0.3));
    backward(y, dy);
    return (outcome){y, ng_grad(x), ng_grad(gamma), ng_grad(beta)};
}

LOOP_TEST(same_bits_with_any_number_of_threads, 4 * SHARED)
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

/* dx of BatchNorm in double without the first `left_out` columns. */
static ng_tensor *dx_of_columns(ng_tensor *const given[3], int64_t left_out)
{
    enum { WIDTH = 37 };
    ng_tensor *part[3];
    for (int i = 0; i < 3; i++) part[i] = ng_slice(tape, given[i], -1, left_out, WIDTH);
    ng_tensor *x = ng_variable(tape, part[0]);
    ng_tensor *y = ng_batch_norm(tape, x, part[2], NG_NONE, NG_NONE, NG_NONE, .training = true);
    return ng_gradient(tape, y, x, .cotangent = part[1]);
}

/* Any column may be in a vector or left over, depending on the number of threads and on columns out
 * of range beside it. */
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

/* With a gradient to gamma only. */
LOOP_TEST(gradients_reach_only_what_requires_them, 3)
{
    ng_tensor *x = own(ng_copy_new(normal_with(NG_F64, NG_SHAPE(6, 3), 1, 2, 1), NG_F64));
    ng_tensor *gamma = normal_with(NG_F64, NG_SHAPE(3), 1, 1, 2),
              *beta = VALUES(NG_F64, NG_SHAPE(3), 0, 0, 0);
    ng_tensor *dy = normal_with(NG_F64, NG_SHAPE(6, 3), 0, 1, 3);
    ng_tensor *xhat = apply(kinds[_i], x, NG_NONE, NG_NONE, 1e-5);
    backward(apply(kinds[_i], x, gamma, beta, 1e-5), dy);
    assert_tensors_close(ng_grad(gamma), ng_sum(tape, ng_mul(tape, dy, xhat), .axes = NG_AXES(0)),
                         1e-13);
    ck_assert(!ng_has_grad(x) && !ng_has_grad(beta));
}

LOOP_TEST(an_empty_batch_gives_an_empty_result_and_gradients_of_zero, 4)
{
    static const int64_t lengths[] = {1, 3, 40, 1023};
    const int64_t n = lengths[_i];
    ng_module *const layers[] = {own(ng_layer_norm_new(n)),
                                 own(ng_layer_norm_new(n, .no_affine = true)),
                                 own(ng_rms_norm_new(n)),
                                 own(ng_group_norm_new(2, 4)),
                                 own(ng_layer_norm_new(4, .channels_first = true)),
                                 own(ng_batch_norm_new(4)),
                                 own(ng_instance_norm_new(4, .affine = true))};
    for (int i = 0; i < (n > 1 ? 7 : 6); i++) { /* InstanceNorm needs more than one position */
        ng_tensor *x = ng_require_grad(own(ng_zeros_new(NG_F32, NG_SHAPE(0, 4, n))));
        ng_eval(layers[i]);
        ng_tensor *y = ng_forward(layers[i], tape, x);
        assert_ok(y);
        ck_assert(ng_shape_equal(ng_shape_of(y), ng_shape_of(x)));
        backward(y, own(ng_zeros_new(NG_F32, ng_shape_of(x))));
        ng_named_tensor p;
        for (int k = 0; ng_module_parameter(layers[i], k, &p); k++)
            for (int64_t c = 0; c < ng_size(p.tensor); c++)
                ck_assert(ng_get(ng_grad(p.tensor), c) == 0);
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
    assert_refused(ng_layer_norm(tape, NG_NONE, NG_NONE, NG_NONE, 1e-5), "ng_layer_norm");
    assert_refused(ng_layer_norm(tape, x, NG_NONE, NG_NONE, -1), "ng_layer_norm: eps is -1");
    assert_refused(ng_rms_norm(tape, x, NG_NONE, (double)NAN), "ng_rms_norm: eps is ");
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
    assert_refused(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .partial = 1.5),
                   "ng_row_norm: partial is 1.5, expected 0 < partial <= 1");
    assert_refused(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .partial = -0.5),
                   "ng_row_norm: partial is -0.5");
    assert_refused(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .partial = NG_ZERO),
                   "ng_row_norm: partial is 0");
    assert_refused(ng_row_norm(tape, x, NG_NONE, NG_NONE, .partial = 0.5),
                   "ng_row_norm: partial statistics are for .rms");
    assert_refused(ng_row_norm(tape, x, NG_NONE, NG_NONE, .rms = true, .unbiased = true),
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

/* Rows of `whole` that the mask keeps are those of `gathered`; the others are exactly 0. */
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

TEST(a_batch_renorm_layer_hands_its_mask_on)
{
    ng_rng rng = ng_rng_seeded(3);
    ng_tensor *x = own(ng_normal_new(NG_F64, NG_SHAPE(6, 3), 1, 2, &rng));
    ng_tensor *mask = ng_from(tape, NG_F64, NG_SHAPE(6), NG_VALUES(1, 0, 1, 1, 0, 1));
    ng_module *layer = own(ng_batch_renorm_new(3));
    assert_ok(ng_module_to(layer, NG_F64));
    ng_tensor *y = ng_forward(layer, tape, x, .mask = mask);
    ng_tensor *kept =
        ng_gather_rows(tape, x, ng_from(tape, NG_I64, NG_SHAPE(4), NG_VALUES(0, 2, 3, 5)));
    ng_module *other = own(ng_batch_renorm_new(3));
    assert_ok(ng_module_to(other, NG_F64));
    ng_tensor *z = ng_forward(other, tape, kept);
    for (int c = 0; c < 3; c++) {
        ck_assert(ng_at(y, 1, c) == 0 && ng_at(y, 4, c) == 0);
        assert_near(ng_at(y, 5, c), ng_at(z, 3, c), 1e-14);
    }
}

TEST(evo_norm_evaluates_one_value_per_channel)
{
    ng_module *layer = own(ng_evo_norm_new(2));
    ng_tensor *x = ng_from(tape, NG_F32, NG_SHAPE(1, 2, 1, 1), NG_VALUES(1, -2));
    assert_fails(ng_forward(layer, tape, x), NG_ESHAPE, "EvoNormB0");
    ng_eval(layer);
    assert_ok(ng_forward(layer, tape, x));
}

LOOP_TEST(masked_batch_norm_is_that_of_the_gathered_positions, 2 * N_MASKED)
{
    const masked_case *m = &masked_cases[_i % N_MASKED];
    const bool renorm = _i >= N_MASKED;
    ng_tensor *mask = own(ng_ones_new(NG_I64, m->mask));
    for (int64_t i = 1; i < ng_size(mask); i += 3) ng_set(mask, i, 0);
    ng_tensor *x = normal_with(NG_F64, m->x, 1, 2, 1), *dy = normal_with(NG_F64, m->x, 0, 1, 2);
    ng_tensor *xg = ng_require_grad(gathered_rows(x, mask)), *dyg = gathered_rows(dy, mask);
    ng_tensor *state[2][4];
    for (int i = 0; i < 2; i++) {
        state[i][0] = normal_with(NG_F64, NG_SHAPE(3), 1, 1, 5);
        state[i][1] = normal_with(NG_F64, NG_SHAPE(3), 0, 1, 6);
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

/* Each allocation on a new tape is refused in turn. */
LOOP_TEST(batch_norm_without_memory_leaves_running_statistics_alone, 3)
{
    ng_tensor *x = normal_with(NG_F64, NG_SHAPE(64, 512, 9), 1, 2, 1);
    ng_tensor *mask = own(ng_ones_new(NG_F64, NG_SHAPE(64)));
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(512)));
    ng_tensor *var = own(ng_ones_new(NG_F64, NG_SHAPE(512)));
    ng_set(mask, 3, 0);
    if (_i == 2) mask = NG_NONE;
    int refused = 0;
    for (ng_tensor *y = NULL; !y; refused++) {
        ng_tape *own_tape = ng_tape_new();
        allocations_fail_after(refused);
        y = _i == 1 ? ng_batch_renorm(own_tape, x, NG_NONE, NG_NONE, mean, var, .training = true,
                                      .mask = mask)
                    : ng_batch_norm(own_tape, x, NG_NONE, NG_NONE, mean, var, .training = true,
                                    .mask = mask);
        allocations_succeed();
        if (!y) assert_error(NG_ENOMEM, "out of memory");
        ck_assert_int_eq(ng_get(mean, 0) == 0 && ng_get(var, 0) == 1, !y);
        ng_tape_free(own_tape);
    }
    ck_assert_int_gt(refused, _i == 2 ? 1 : 4);
}

/* One rule for all norms: 0 is the default, NG_ZERO is zero. */
TEST(an_eps_of_zero_is_the_default)
{
    ng_tensor *x = own(ng_zeros_new(NG_F64, NG_SHAPE(2, 3, 4))),
              *g = own(ng_ones_new(NG_F64, NG_SHAPE(1)));
    for (int i = 0; i < 24; i++) ng_set(x, i, 1e-3 * sin(i));
#define FIVE(op, ...)                                                                              \
    assert_same_bits(op(tape, x, __VA_ARGS__, 0), op(tape, x, __VA_ARGS__, STANDARD));             \
    ck_assert(ng_get(op(tape, x, __VA_ARGS__, NG_ZERO), 1) !=                                      \
              ng_get(op(tape, x, __VA_ARGS__, 0), 1))
#define STANDARD 1e-5
    FIVE(ng_layer_norm, NG_NONE, NG_NONE);
    FIVE(ng_channel_norm, NG_NONE, NG_NONE);
    FIVE(ng_instance_norm, NG_NONE, NG_NONE);
#undef STANDARD
#define STANDARD 1e-6
    FIVE(ng_rms_norm, NG_NONE);
#undef STANDARD
#define STANDARD 1e-10
    FIVE(ng_scale_norm, g);
#undef STANDARD
#undef FIVE
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
                 "ng_batch_norm: training needs more than one value per channel");
    ng_set(one, 8, 1);
    assert_ok(MASKED(one));
#undef MASKED
    ng_module *ghost = own(ng_batch_norm_new(3, .ghost = 2));
    assert_refused(ng_forward(ghost, tape, x, .mask = one), "BatchNorm: both .ghost and .mask");
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

/* The output of a sequence does not depend on the padding of others. */
TEST(norms_of_a_transformer_pass_over_what_its_mask_hides)
{
    ng_tensor *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(3, 4)));
    ng_tensor *mask = own(ng_ones_new(NG_F32, NG_SHAPE(3, 4)));
    for (int i = 0; i < 12; i++) ng_set(ids, i, i % 5);
    ng_set(mask, 7, 0), ng_set(mask, 10, 0), ng_set(mask, 11, 0);
    ng_module *net = own(ng_transformer_new(7, .dim = 8, .heads = 2, .layers = 2,
                                            .norm = ng_norm_batch, .bidirectional = true));
    ng_tensor *y = ng_forward(net, tape, ids, .mask = mask);
    ng_set(ids, 7, 6), ng_set(ids, 10, 6), ng_set(ids, 11, 5);
    ng_tensor *other = ng_forward(net, tape, ids, .mask = mask);
    assert_ok(y), assert_ok(other);
    for (int i = 0; i < 12; i++)
        for (int64_t c = 0; c < 7 && ng_get(mask, i) != 0; c++)
            ck_assert_double_eq(ng_get(y, i * 7 + c), ng_get(other, i * 7 + c));
}

TEST(batch_norm_says_what_is_wrong)
{
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(8, 4))),
              *single = own(ng_ones_new(NG_F32, NG_SHAPE(1, 64)));
    ng_tensor *vector = own(ng_ones_new(NG_F32, NG_SHAPE(8))),
              *four = own(ng_ones_new(NG_F32, NG_SHAPE(4)));
    ng_tensor *doubles = own(ng_ones_new(NG_F64, NG_SHAPE(4))),
              *moving = ng_require_grad(own(ng_ones_new(NG_F32, NG_SHAPE(4))));

    assert_fails(
        ng_batch_norm(tape, single, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
        NG_ESHAPE,
        "ng_batch_norm: training needs more than one value per channel, got shape (1, 64)");
    assert_fails(ng_batch_norm(tape, vector, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
                 NG_ESHAPE, "ng_batch_norm: x of shape (8,), expected (N, C, ...)");
    assert_fails(ng_batch_norm(tape, x, vector, NG_NONE, NG_NONE, NG_NONE, .training = true),
                 NG_ESHAPE,
                 "ng_batch_norm: gamma of shape (8,), expected (4,) for a tensor of shape (8, 4)");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, vector, .training = true),
                 NG_ESHAPE, "ng_batch_norm: running_var of shape (8,)");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, doubles, NG_NONE, .training = true),
                 NG_EDTYPE, "operand 1 is float32, operand 4 is float64");
    assert_refused(ng_batch_norm(tape, x, NG_NONE, NG_NONE, four, NG_NONE),
                   "ng_batch_norm: running_mean and running_var are needed outside training");
    assert_refused(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
                   "ng_batch_renorm: running_mean and running_deviation are needed");
    assert_refused(
        ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = -1, .training = true),
        "ng_batch_norm: eps is -1");
    assert_refused(
        ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .momentum = 2, .training = true),
        "ng_batch_norm: momentum is 2");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, moving, four), NG_EGRAD,
                 "ng_batch_norm: running_mean requires a gradient, expected a buffer");
    ng_tensor *one = ng_ones_new(NG_F32, NG_SHAPE(4));
    assert_refused(ng_batch_norm(tape, x, NG_NONE, NG_NONE, one, one, .training = true),
                   "ng_batch_norm: running_mean and running_var are one tensor");
    ng_tensor_free(one);
    ng_tensor *on_tape = ng_full(tape, NG_F32, NG_SHAPE(4), 1);
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NG_NONE, on_tape, NG_NONE, .training = true),
                 NG_ESTATE, "read-only");
    assert_fails(ng_batch_norm(tape, x, NG_NONE, NULL, NG_NONE, NG_NONE, .training = true),
                 NG_ENULL, "ng_batch_norm: beta is NULL");
}

/* ---- Residuals ---------------------------------------------------------------------------- */

/* z and norm(z) have cotangents of their own: the gradient is the sum of that of the norm alone and
 * dz, which does not change. */
static void check_residual(norm_kind kind, ng_dtype dtype, ng_shape shape, double scale)
{
    ng_tensor *x = normal_with(dtype, shape, 0, scale, 1), *dy = normal_with(dtype, shape, 0, 1, 2);
    ng_tensor *dz = normal_with(dtype, shape, 0, 1 / scale, 3),
              *before = own(ng_copy_new(dz, dtype));
    ng_tensor *z = ng_mul_scalar(tape, x, 2), *y = apply(kind, z, NG_NONE, NG_NONE, 1e-5);
    ng_tensor *outputs[] = {y, z}, *cotangents[] = {dy, dz}, *both, *alone;
    assert_ok(ng_gradients(tape, outputs, 2, &z, 1, &both, .cotangents = cotangents));
    assert_ok(ng_gradients(tape, &y, 1, &z, 1, &alone, .cotangents = &dy));
    assert_tensors_close(both, ng_add(tape, alone, dz), dtype == NG_F64 ? 1e-12 : 2e-5);
    assert_same_bits(dz, before);
    ng_tape_reset(tape);
}

TEST(gradient_of_a_norm_is_added_to_that_of_its_residual)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int i = 0; i < 4; i++) {
            const ng_dtype dtype = i % 2 ? NG_F64 : NG_F32;
            const double scale = i / 2 ? 1e30 : 1;
            check_residual(kinds[k], dtype, NG_SHAPE(3, 5), scale);
            check_residual(kinds[k], dtype, NG_SHAPE(70, 48), scale);
            if (kinds[k] > RMS) check_residual(kinds[k], dtype, NG_SHAPE(3, 8, 37), scale);
        }
}

TEST(add_row_norm_is_a_sum_and_its_norm)
{
    ng_tensor *x = normal_with(NG_F32, NG_SHAPE(4, 9), 0, 1, 1), *sum = x;
    ng_tensor *residual = normal_with(NG_F32, NG_SHAPE(4, 9), 0, 1, 2);
    ng_tensor *gamma = normal_with(NG_F32, NG_SHAPE(9), 1, 0.1, 3);
    ng_tensor *beta = normal_with(NG_F32, NG_SHAPE(9), 1, 0.1, 4);
    ng_tensor *y = ng_add_row_norm(tape, x, residual, gamma, beta, &sum, .eps = 1e-3);
    assert_same_bits(sum, ng_add(tape, x, residual));
    assert_same_bits(y, ng_layer_norm(tape, sum, gamma, beta, 1e-3));
    y = ng_add_row_norm(tape, x, residual, gamma, NG_NONE, NULL, .rms = true);
    assert_same_bits(y, ng_rms_norm(tape, sum, gamma, 1e-6));

    assert_fails(ng_add_row_norm(tape, x, beta, gamma, NG_NONE, &sum), NG_ESHAPE,
                 "ng_add_row_norm: residual is float32 (9,), expected float32 (4, 9)");
    ck_assert_ptr_null(sum);
    assert_fails(ng_add_row_norm(tape, x, residual, x, NG_NONE, &sum, .dims = 1), NG_ESHAPE,
                 "ng_add_row_norm: gamma of shape (4, 9)");
    assert_fails(ng_add_row_norm(tape, x, NULL, gamma, NG_NONE, &sum), NG_ENULL,
                 "operand 2 is NULL");
}
