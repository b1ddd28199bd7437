/* LocalResponseNorm: y = x / (k + alpha / size sum x_j^2)^beta over `size` neighbouring channels.
 */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Channels 1, 2 and 3, alpha = size: y = x / (1 + sum x_j^2) where beta is 1. */
START_TEST(three_neighbours)
{
    ng_module *norm = own(ng_local_response_norm_new(3, .alpha = 3, .beta = 1));
    assert_ok(ng_module_to(norm, NG_F64));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 3, 1), 1, 2, 3)), 1e-14, 1 / 6.0,
                  2 / 15.0, 3 / 14.0);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 2 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0:
        return *CALL(drawn(ng_local_response_norm_new(3, .alpha = 2)),
                     normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    default:
        return *CALL(drawn(ng_local_response_norm_new(2, .alpha = 1, .beta = 0.5, .k = 2)),
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

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_local_response_norm_new(0), NG_EVALUE, "ng_local_response_norm_new");
    assert_fails(ng_local_response_norm_new(3, .k = -1), NG_EVALUE, "ng_local_response_norm_new");
}
END_TEST

Suite *local_response_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("local_response_norm", &tests);
    tcase_add_test(tests, three_neighbours);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
