/* LayerNorm: y = gamma (x - mean) / sqrt(var + eps) + beta, with mean and variance of each row. */
#include "norms/norm.h"

/* ---- Worked numbers of the documents --------------------------------------------------------- */

/* Document 003: the four steps on [1, 2, 3, 4], printed with four digits and taken without eps. */
START_TEST(four_steps_on_1_2_3_4)
{
    ng_tensor *x = DOUBLES(NG_SHAPE(4), 1, 2, 3, 4);
    assert_close(ng_item(ng_mean(tape, x)), 2.5, 0);
    assert_close(ng_item(ng_variance(tape, x)), 1.25, 0);
    ng_tensor *xhat =
        ng_forward(drawn(ng_layer_norm_new(4, .eps = NG_ZERO, .no_affine = true)), tape, x);
    static const double printed[] = {-1.3416, -0.4472, 0.4472, 1.3416};
    for (int i = 0; i < 4; i++) assert_near(ng_get(xhat, i), printed[i], 0.5e-4);
}

/* Document 000: the variance divides by n - 1, and eps is 1e-6. */
START_TEST(unbiased_variance)
{
    ng_tensor *x = DOUBLES(NG_SHAPE(2, 4), 1, 2, 3, 4, 0, 0, 2, 2);
    ng_module *norm = drawn(ng_layer_norm_new(4, .eps = 1e-6, .unbiased = true, .no_affine = true));
    const double s = 1 / sqrt(5.0 / 3 + 1e-6), t = 1 / sqrt(4.0 / 3 + 1e-6);
    assert_values(ng_forward(norm, tape, x), 1e-14, -1.5 * s, -0.5 * s, 0.5 * s, 1.5 * s, -t, -t, t,
                  t);
}

/* Document 001: gamma and beta, and eps of 1e-5. */
START_TEST(gamma_and_beta)
{
    ng_module *norm = drawn(ng_layer_norm_new(4));
    ng_copy_values(ng_module_find(norm, "weight"), DOUBLES(NG_SHAPE(4), 1, 2, 3, 4));
    ng_copy_values(ng_module_find(norm, "bias"), DOUBLES(NG_SHAPE(4), 10, 20, 30, 40));
    const double s = 1 / sqrt(1.25 + 1e-5);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(4), 1, 2, 3, 4)), 1e-14, 10 - 1.5 * s,
                  20 - s, 30 + 1.5 * s, 40 + 6 * s);
}

/* Documents 001, 003 and 004. */
START_TEST(a_row_gets_mean_0_and_variance_1)
{
    ng_module *norm = drawn(ng_layer_norm_new(64, .eps = NG_ZERO, .no_affine = true));
    ng_tensor *y = ng_forward(norm, tape, ng_add_scalar(tape, normal(NG_F64, NG_SHAPE(64), 1), 5));
    assert_near(ng_item(ng_mean(tape, y)), 0, 1e-14);
    assert_near(ng_item(ng_variance(tape, y)), 1, 1e-14);
}

/* The header's bound for elements near the mean, whose xhat is much smaller than it. */
START_TEST(near_the_mean_the_error_is_that_of_the_deviation)
{
    static const double means[] = {0, 1e-3, 1, 1e6};
    static const int64_t lengths[] = {3, 5, 8, 33, 768};
    for (int i = 0; i < 20; i++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            const int64_t n = lengths[i / 4];
            ng_tensor *x = normal_with(NG_F64, NG_SHAPE(1, n), means[i % 4], 1, seed);
            long double sum = 0, off = 0, squares = 0; /* of distances from x[0] */
            for (int64_t k = 1; k < n; k++) sum += (long double)ng_get(x, k);
            ng_set(x, 0, (double)(sum / (n - 1)));
            const long double first = (long double)ng_get(x, 0);
            for (int64_t k = 1; k < n; k++) off += ((long double)ng_get(x, k) - first) / n;
            for (int64_t k = 0; k < n; k++) {
                const long double d = (long double)ng_get(x, k) - first - off;
                squares += d * d;
            }
            const long double right = -off / sqrtl(squares / n);
            const ng_tensor *y = ng_layer_norm(tape, x, NG_NONE, NG_NONE, .eps = NG_ZERO);
            ck_assert_double_lt(fabs((double)((long double)ng_get(y, 0) - right)), 5e-16);
        }
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    const char *ops = "ops", *norms = "norms", *more = "catalogue";
    assert_pytorch(ng_layer_norm_new(6), ops, "layer_norm_row");
    assert_pytorch(ng_layer_norm_new(5), ops, "layer_norm_rows");
    assert_pytorch(ng_layer_norm_over_new(NG_SHAPE(4, 5)), ops, "layer_norm_matrix");
    assert_pytorch(ng_layer_norm_over_new(NG_SHAPE(3, 4, 2)), ops, "layer_norm_image");
    assert_pytorch(ng_layer_norm_new(6, .no_affine = true), ops, "layer_norm_plain");
    assert_pytorch(ng_layer_norm_new(6, .unbiased = true), ops, "layer_norm_unbiased");
    assert_pytorch(ng_layer_norm_new(6, .no_bias = true, .eps = 1e-3), ops, "layer_norm_no_bias");
    assert_pytorch(ng_layer_norm_new(6, .unit_offset = true), more, "layer_norm_offset");
    assert_pytorch(ng_layer_norm_new(6, .channels_first = true), norms, "channel_norm_1d");
    assert_pytorch(ng_layer_norm_new(6, .channels_first = true), norms, "channel_norm_2d");
    ng_module *offset = ng_layer_norm_new(6, .channels_first = true, .unit_offset = true);
    assert_pytorch(offset, more, "channel_norm_offset");
}

/* ---- Invariances ----------------------------------------------------------------------------- */

START_TEST(shifting_and_scaling_a_row_changes_nothing)
{
    ng_module *norm = drawn(ng_layer_norm_new(5, .eps = NG_ZERO));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(norm, x, ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}

/* So dx is orthogonal to 1 and to xhat. */
START_TEST(gradient_is_orthogonal_to_shift_and_scale)
{
    ng_module *norm = drawn(ng_layer_norm_new(5, .eps = NG_ZERO, .no_affine = true));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5), 1), *xhat = ng_forward(norm, tape, x);
    ng_tensor *dx = ng_gradient(tape, xhat, x, .cotangent = normal(NG_F64, NG_SHAPE(5), 2));
    assert_near(ng_item(ng_sum(tape, dx)), 0, 1e-14);
    expect_orthogonal(dx, xhat);
}

START_TEST(a_constant_row_gives_beta)
{
    ng_module *norm = drawn(ng_layer_norm_new(5));
    ng_tensor *y = ng_forward(norm, tape, own(ng_full_new(NG_F64, NG_SHAPE(3, 5), 0.1)));
    assert_same_bits(y, ng_broadcast_to(tape, ng_module_find(norm, "bias"), NG_SHAPE(3, 5)));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_layer_norm_new(0));
    assert_refused(ng_layer_norm_new(5, .eps = -1));
    ng_module *norm = drawn(ng_layer_norm_new(5));
    assert_fails(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1), 1)), NG_ESHAPE, "LayerNorm");
}

Suite *layer_norm_suite(void)
{
    return suite_of("layer_norm", set_up, tear_down, four_steps_on_1_2_3_4, unbiased_variance,
                    gamma_and_beta, near_the_mean_the_error_is_that_of_the_deviation,
                    a_row_gets_mean_0_and_variance_1, value_and_gradients_are_pytorchs,
                    shifting_and_scaling_a_row_changes_nothing,
                    gradient_is_orthogonal_to_shift_and_scale, a_constant_row_gives_beta,
                    bad_settings_are_refused);
}
