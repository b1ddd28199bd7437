/* FilterResponseNorm: y = max(weight x / sqrt(mean(x^2) + eps) + bias, tau) for a channel of a
 * sample. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(of_three_and_four)
{
    ng_module *norm = own(ng_filter_response_norm_new(1, .eps = NG_ZERO, .no_threshold = true));
    assert_ok(ng_module_to(norm, NG_F64));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 1, 2), 3, 4)), 1e-14, 3 / sqrt(12.5),
                  4 / sqrt(12.5));
}
END_TEST

START_TEST(tau_is_the_least_value)
{
    ng_module *norm = own(ng_filter_response_norm_new(1));
    assert_ok(ng_module_to(norm, NG_F64));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 1, 2), -3, -4)), 0, 0, 0);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 3 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0:
        return *CALL(drawn(ng_filter_response_norm_new(4)), normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    case 1:
        return *CALL(drawn(ng_filter_response_norm_new(4, .no_threshold = true)),
                     normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    default:
        return *CALL(drawn(ng_filter_response_norm_new(4, .learned_eps = true)),
                     normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    }
}

/* dL/dx and dL/d(each parameter) for L = sum(c . y). */
START_TEST(gradient_is_that_of_finite_differences)
{
    const norm_call call = make(_i);
    expect_slopes(loss_of, &call);
}
END_TEST

/* The gradient of G = sum(u . dL/dx): the second order. */
START_TEST(gradient_of_the_gradient_is_that_of_finite_differences)
{
    const norm_call call = make(_i);
    expect_slopes(slope_of, &call);
}
END_TEST

START_TEST(the_checker_agrees)
{
    const norm_call call = make(_i);
    expect_checked(&call);
}
END_TEST

/* ---- PyTorch --------------------------------------------------------------------------------- */

/* To a relative error of 1e-11. */
START_TEST(value_and_gradients_are_pytorchs)
{
    expect_pytorch(ng_filter_response_norm_new(4), "catalogue.txt", "frn", NULL);
    expect_pytorch(ng_filter_response_norm_new(4, .learned_eps = true), "catalogue.txt",
                   "frn_learned", NULL);
    expect_pytorch(ng_filter_response_norm_new(4, .no_threshold = true), "catalogue.txt",
                   "frn_plain", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_channel_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    expect_invariant(drawn(ng_filter_response_norm_new(4, .eps = NG_ZERO)), x,
                     ng_mul_scalar(tape, x, 3));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_filter_response_norm_new(0), NG_EVALUE, "ng_filter_response_norm_new");
    assert_fails(ng_filter_response_norm_new(4, .eps = -1), NG_EVALUE,
                 "ng_filter_response_norm_new");
}
END_TEST

Suite *filter_response_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("filter_response_norm", &tests);
    tcase_add_test(tests, of_three_and_four);
    tcase_add_test(tests, tau_is_the_least_value);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, scaling_a_channel_changes_nothing);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
