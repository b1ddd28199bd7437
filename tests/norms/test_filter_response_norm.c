/* FilterResponseNorm: y = max(weight x / sqrt(mean(x^2) + eps) + bias, tau) for a channel of a
 * sample. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(of_three_and_four)
{
    ng_module *norm =
        in_double(ng_filter_response_norm_new(1, .eps = NG_ZERO, .no_threshold = true));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 1, 2), 3, 4)), 1e-14, 3 / sqrt(12.5),
                  4 / sqrt(12.5));
}

START_TEST(tau_is_the_least_value)
{
    ng_module *norm = in_double(ng_filter_response_norm_new(1));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 1, 2), -3, -4)), 0, 0, 0);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_filter_response_norm_new(4), "catalogue", "frn");
    assert_pytorch(ng_filter_response_norm_new(4, .learned_eps = true), "catalogue", "frn_learned");
    assert_pytorch(ng_filter_response_norm_new(4, .no_threshold = true), "catalogue", "frn_plain");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_channel_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    expect_invariant(drawn(ng_filter_response_norm_new(4, .eps = NG_ZERO)), x,
                     ng_mul_scalar(tape, x, 3));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_filter_response_norm_new(0));
    assert_refused(ng_filter_response_norm_new(4, .eps = -1));
}

Suite *filter_response_norm_suite(void)
{
    return suite_of("filter_response_norm", set_up, tear_down, of_three_and_four,
                    tau_is_the_least_value, value_and_gradients_are_pytorchs,
                    scaling_a_channel_changes_nothing, bad_settings_are_refused);
}
