/* What the ops of the norms share: third derivatives, digits at the ends of the range, NaN,
 * threads, gradients that only some operands want, running statistics, residuals. */
#include "norms/norm.h"
#include "tape/tape.h"

enum { LAYER, RMS, BATCH, GROUP, KINDS };

static ng_tensor *apply(int kind, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta)
{
    if (kind == LAYER) return ng_layer_norm(tape, x, gamma, beta, .eps = 1e-5);
    if (kind == RMS) return ng_row_norm(tape, x, gamma, beta, .eps = 1e-5, .rms = true);
    if (kind == GROUP)
        return ng_group_norm(tape, x, gamma, beta, .groups = ng_dim(x, 1) % 8 ? 1 : 8);
    return ng_batch_norm(tape, x, gamma, beta, NG_NONE, NG_NONE, .training = true);
}

static void backward(ng_tensor *y, ng_tensor *dy) { assert_ok(ng_backward_from(tape, y, dy)); }

/* ---- Values ---------------------------------------------------------------------------------- */

/* LayerNorm of (t, 0) with eps = 1/4, weighted with 1 and 2, is -t / sqrt(1 + t^2). */
START_TEST(layer_norm_and_batch_norm_have_a_third_derivative)
{
    const double at = 0.7, u = 1 + at * at;
    const double expected[] = {-at / sqrt(u), -pow(u, -1.5), 3 * at * pow(u, -2.5),
                               3 * pow(u, -2.5) - 15 * at * at * pow(u, -3.5)};
    ng_tensor *t = ng_require_grad(DOUBLES(NG_SHAPE(1, 1), at));
    ng_tensor *xhat =
        _i == 0 ? ng_layer_norm(tape, ng_pad(tape, t, 1, 0, 1), NG_NONE, NG_NONE, .eps = 0.25)
                : ng_reshape(tape,
                             ng_batch_norm(tape, ng_pad(tape, t, 0, 0, 1), NG_NONE, NG_NONE,
                                           NG_NONE, NG_NONE, .eps = 0.25, .training = true),
                             NG_SHAPE(1, 2));
    ng_tensor *y = ng_sum(tape, ng_mul(tape, xhat, DOUBLES(NG_SHAPE(2), 1, 2)));
    for (int order = 0; order < 4; order++) {
        assert_close(ng_item(y), expected[order], 1e-14);
        y = ng_sum(tape, ng_gradient(tape, y, t, .record = true));
    }
}

/* As rows of one dimension. */
START_TEST(rows_span_the_dimensions_of_gamma)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 2, 4), 1), *gamma = normal(NG_F64, NG_SHAPE(2, 4), 2);
    ng_tensor *flat = apply(LAYER, ng_reshape(tape, x, NG_SHAPE(3, 8)),
                            ng_reshape(tape, gamma, NG_SHAPE(8)), NG_NONE);
    assert_same_bits(apply(LAYER, x, gamma, NG_NONE), ng_reshape(tape, flat, NG_SHAPE(3, 2, 4)));
}

/* The deviations are exact, although the mean is rounded by more. */
START_TEST(rows_of_double_keep_the_digits_that_their_elements_have)
{
    const double far = 0x1p50;
    assert_tensors_close(
        apply(LAYER, DOUBLES(NG_SHAPE(3), far, far + 1, far + 3), NG_NONE, NG_NONE),
        apply(LAYER, DOUBLES(NG_SHAPE(3), 0, 1, 3), NG_NONE, NG_NONE), 1e-14);
}

START_TEST(nan_stays_in_its_channel)
{
    const int64_t rows = _i ? 300 : 8, channels = 21; /* long columns, and short ones */
    ng_tensor *x = normal(NG_F32, NG_SHAPE(rows, channels), 1);
    ng_set(x, 3 * channels + 2, (double)NAN);
    ng_set(x, 5 * channels + 3, (double)INFINITY);
    ng_tensor *y = apply(BATCH, x, NG_NONE, NG_NONE);
    for (int64_t i = 0; i < rows * channels; i++)
        ck_assert(isnan(ng_get(y, i)) == (i % channels == 2 || i % channels == 3));
}

/* Where eps is 0, rstd is infinite. */
START_TEST(one_feature_gives_beta_and_no_gradient)
{
    static const double eps[] = {1e-5, NG_ZERO, 1e-300};
    for (int i = 0; i < 3; i++) {
        ng_module *norm = drawn(ng_layer_norm_new(1, .eps = eps[i]));
        ng_tensor *x = normal_with(NG_F64, NG_SHAPE(3, 1), 1e6, 1e6, 1);
        ng_tensor *y = ng_forward(norm, tape, x), *beta = ng_module_find(norm, "bias");
        assert_same_bits(y, ng_broadcast_to(tape, beta, NG_SHAPE(3, 1)));
        assert_ok(ng_backward_from(tape, y, DOUBLES(NG_SHAPE(3, 1), 1.5, -0.3, 7)));
        assert_values(ng_grad(x), 0, 0, 0, 0);
        assert_values(ng_grad(ng_module_find(norm, "weight")), 0, 0);
        assert_values(ng_grad(beta), 1e-14, 8.2);
    }
}

/* ---- Gradients that overflow on the way ------------------------------------------------------ */

START_TEST(gradients_of_fixed_statistics_are_finite)
{
    const ng_shape shape = _i ? NG_SHAPE(1, 1, 512) : NG_SHAPE(300, 21);
    ng_tensor *x = ng_require_grad(own(ng_full_new(NG_F32, shape, 1e33)));
    ng_tensor *zero = own(ng_zeros_new(NG_F32, NG_SHAPE(shape.dim[1])));
    backward(ng_batch_norm(tape, x, NG_NONE, NG_NONE, zero, zero, .eps = 1e-12),
             own(ng_ones_new(NG_F32, shape)));
    for (int64_t i = 0; i < ng_size(x); i++) assert_near(ng_get(ng_grad(x), i), 1e6, 1);
}

/* RMSNorm needs no sum of g, which would overflow float here. */
START_TEST(large_gradients_of_rms_norm_are_finite)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 16384), 1);
    backward(apply(RMS, x, NG_NONE, NG_NONE), own(ng_full_new(NG_F32, ng_shape_of(x), 4e36)));
    for (int64_t i = 0; i < ng_size(x); i++) ck_assert(isfinite(ng_get(ng_grad(x), i)));
}

/* ---- The same bits --------------------------------------------------------------------------- */

/* Large enough to be shared by threads; the last three store y or dx past the caches. */
static const struct {
    int64_t rows, n;
    int threads;
} shared[] = {{512, 768, 2},  {523, 264, 3},  {129, 1001, 2}, {67, 2500, 3},
              {300, 2500, 2}, {4096, 768, 2}, {2900, 768, 2}, {779, 4096, 3}};
enum { SHARED = sizeof shared / sizeof *shared };

/* y, dx, dgamma and dbeta; one row in 50 is near an end of the range and is computed in double. */
static void run_with_threads(int kind, int which, int threads, bool twice, ng_tensor *of[4])
{
    const int64_t rows = shared[which].rows, n = shared[which].n;
    ng_set_threads(threads);
    ng_tensor *x = normal_with(NG_F32, NG_SHAPE(rows, n), 1, 2, 1),
              *gamma = normal_with(NG_F32, NG_SHAPE(n), 1, 1, 2);
    ng_tensor *beta = normal(NG_F32, NG_SHAPE(n), 3), *dy = normal(NG_F32, NG_SHAPE(rows, n), 4);
    for (int64_t i = 17; kind != BATCH && i < rows; i += 50)
        for (int64_t j = 0; j < n; j++)
            ng_set(x, i * n + j, ng_get(x, i * n + j) * (i % 100 < 50 ? 1e25 : 1e-25));
    ng_tensor *y = apply(kind, x, gamma, beta);
    if (twice) y = ng_sub(tape, y, ng_mul_scalar(tape, apply(kind, x, gamma, beta), 0.3));
    backward(y, dy);
    of[0] = y, of[1] = ng_grad(x), of[2] = ng_grad(gamma), of[3] = ng_grad(beta);
}

/* Once, and with gradients that are added. */
START_TEST(any_number_of_threads_gives_the_same_bits)
{
    const int which = _i % SHARED, ways = shared[which].rows * shared[which].n < 1000000 ? 2 : 1;
    for (int twice = 0; twice < ways; twice++) {
        ng_tensor *one[4], *more[4];
        run_with_threads(_i / SHARED, which, 1, twice, one);
        run_with_threads(_i / SHARED, which, shared[which].threads, twice, more);
        for (int k = 0; k < 4; k++) assert_same_bits(one[k], more[k]);
    }
}

/* dx of BatchNorm without the first `left_out` columns. */
static ng_tensor *dx_of_columns(ng_tensor *const given[3], int64_t left_out)
{
    ng_tensor *part[3];
    for (int i = 0; i < 3; i++) part[i] = ng_slice(tape, given[i], -1, left_out, 37);
    ng_tensor *x = ng_variable(tape, part[0]);
    return ng_gradient(tape, apply(BATCH, x, part[2], NG_NONE), x, .cotangent = part[1]);
}

/* Any column may be in a vector or left over, depending on the number of threads and on columns out
 * of range beside it. */
START_TEST(a_column_has_the_same_bits_wherever_it_stands)
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

/* ---- What gets a gradient -------------------------------------------------------------------- */

START_TEST(gradients_reach_only_what_requires_them)
{
    ng_tensor *x = ng_detach(tape, normal_with(NG_F64, NG_SHAPE(6, 3), 1, 2, 1)),
              *gamma = normal(NG_F64, NG_SHAPE(3), 2), *beta = DOUBLES(NG_SHAPE(3), 0, 0, 0);
    ng_tensor *dy = normal(NG_F64, NG_SHAPE(6, 3), 3), *xhat = apply(_i, x, NG_NONE, NG_NONE);
    backward(apply(_i, x, gamma, beta), dy);
    assert_tensors_close(ng_grad(gamma), ng_sum(tape, ng_mul(tape, dy, xhat), .axes = NG_AXES(0)),
                         1e-13);
    ck_assert(!ng_has_grad(x) && !ng_has_grad(beta) && !ng_requires_grad(xhat));
}

START_TEST(an_empty_batch_gives_gradients_of_zero)
{
    ng_module *const layers[] = {
        ng_layer_norm_new(40),   ng_rms_norm_new(40),
        ng_group_norm_new(2, 4), ng_layer_norm_new(4, .channels_first = true),
        ng_batch_norm_new(4),    ng_instance_norm_new(4)};
    for (int i = 0; i < 6; i++) {
        ng_tensor *x = ng_require_grad(own(ng_zeros_new(NG_F64, NG_SHAPE(0, 4, 40))));
        ng_tensor *y = ng_forward(evaluating(in_double(layers[i])), tape, x);
        ck_assert(ng_rank(y) == 3 && ng_size(y) == 0);
        backward(y, own(ng_zeros_new(NG_F64, ng_shape_of(x))));
        ng_named_tensor p;
        for (int k = 0; ng_module_parameter(layers[i], k, &p); k++)
            ck_assert(ng_item(ng_norm(tape, ng_grad(p.tensor))) == 0);
    }
}

/* ---- Running statistics ---------------------------------------------------------------------- */

static ng_tensor *train_on(ng_tensor *x, ng_tensor *mean, ng_tensor *var, double momentum)
{
    return ng_batch_norm(tape, x, NG_NONE, NG_NONE, mean, var, .momentum = ng_exactly(momentum),
                         .training = true);
}

START_TEST(running_statistics_are_optional_and_stay_while_the_checker_moves_inputs)
{
    ng_tensor *x = DOUBLES(NG_SHAPE(2, 2, 2), 1, 2, 10, 20, 3, 4, 30, 40);
    ng_tensor *mean = DOUBLES(NG_SHAPE(2), 0, 0), *var = DOUBLES(NG_SHAPE(2), 0, 0);
    assert_ok(train_on(x, mean, NG_NONE, 1));
    assert_values(mean, 0, 2.5, 25);
    assert_ok(train_on(x, NG_NONE, var, 1));
    assert_values(var, 1e-14, 5.0 / 3, 500.0 / 3);
    assert_ok(train_on(ng_neg(tape, x), mean, var, 0));
    ng_tape_set_mode(tape, NG_TAPE_REMEMBER);
    assert_ok(train_on(ng_neg(tape, x), mean, var, 0.5));
    assert_values(mean, 0, 2.5, 25);
    assert_values(var, 1e-14, 5.0 / 3, 500.0 / 3);
}

START_TEST(statistics_changed_before_backward_are_noticed)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 1), 1), *dy = normal(NG_F64, NG_SHAPE(8, 1), 2);
    ng_tensor *mean = DOUBLES(NG_SHAPE(1), 0), *var = DOUBLES(NG_SHAPE(1), 1);
    ng_tensor *training = train_on(x, mean, var, 0.1);
    ng_tensor *stale = ng_batch_norm(tape, x, NG_NONE, NG_NONE, mean, var);
    assert_ok(train_on(x, mean, var, 0.1));
    assert_fails(ng_backward_from(tape, stale, dy), NG_ESTATE, "batch_norm");
    backward(training, dy); /* its own statistics are its own */
}

/* After three batches, with momentum 0.1 and 0.3, and cumulative. */
START_TEST(running_statistics_are_pytorchs)
{
    static const char *const averages[] = {"momentum", "fast", "cumulative"};
    static const char *const kinds[] = {"features", "1d", "2d"};
    char row[64];
    golden_load("tests/golden/ops.txt");
    for (int i = 0; i < 9; i++) {
        snprintf(row, sizeof row, "running_%s_%s", averages[i / 3], kinds[i % 3]);
        ng_module *norm = in_double(ng_batch_norm_new(ng_dim(golden("%s/x0", row), 1),
                                                      .momentum = i / 3 == 1 ? 0.3 : 0,
                                                      .cumulative = i / 3 == 2));
        for (int batch = 0; batch < 3; batch++)
            assert_ok(ng_forward(norm, tape, golden("%s/x%d", row, batch)));
        assert_golden(ng_module_find(norm, "running_mean"), 1e-12, "%s/mean", row);
        assert_golden(ng_module_find(norm, "running_var"), 1e-12, "%s/var", row);
    }
    golden_unload();
}

Suite *norm_ops_suite(void)
{
    Suite *suite = suite_create("norm_ops");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, rows_span_the_dimensions_of_gamma,
              rows_of_double_keep_the_digits_that_their_elements_have,
              one_feature_gives_beta_and_no_gradient, large_gradients_of_rms_norm_are_finite,
              a_column_has_the_same_bits_wherever_it_stands, an_empty_batch_gives_gradients_of_zero,
              running_statistics_are_optional_and_stay_while_the_checker_moves_inputs,
              statistics_changed_before_backward_are_noticed, running_statistics_are_pytorchs);
    add_loops(tests, 2, layer_norm_and_batch_norm_have_a_third_derivative, nan_stays_in_its_channel,
              gradients_of_fixed_statistics_are_finite);
    add_loops(tests, KINDS * SHARED, any_number_of_threads_gives_the_same_bits);
    add_loops(tests, GROUP, gradients_reach_only_what_requires_them);
    return suite;
}
