/* GlobalResponseNorm: y = x + weight x G_c / (mean of G + eps) + bias, G_c the length of channel c.
 */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(starts_as_the_identity)
{
    ng_module *norm = own(ng_global_response_norm_new(4));
    assert_ok(ng_module_to(norm, NG_F64));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    assert_tensors_close(ng_forward(norm, tape, x), x, 0);
}
END_TEST

/* Their mean is 7.5. */
START_TEST(lengths_five_and_ten)
{
    ng_module *norm = own(ng_global_response_norm_new(2, .eps = NG_ZERO));
    assert_ok(ng_module_to(norm, NG_F64));
    ng_fill(ng_module_find(norm, "weight"), 1);
    ng_tensor *y = ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 2, 2), 3, 4, 6, 8));
    const double a = 1 + 5 / 7.5, b = 1 + 10 / 7.5;
    assert_values(y, 1e-14, 3 * a, 4 * a, 6 * b, 8 * b);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 1 };

static norm_call make(int mode)
{
    switch (mode) {
    default:
        return *CALL(drawn(ng_global_response_norm_new(4)), normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
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
    expect_pytorch(ng_global_response_norm_new(4), "catalogue.txt", "grn", NULL);
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_global_response_norm_new(0), NG_EVALUE, "ng_global_response_norm_new");
    assert_fails(ng_global_response_norm_new(4, .eps = -1), NG_EVALUE,
                 "ng_global_response_norm_new");
}
END_TEST

Suite *global_response_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("global_response_norm", &tests);
    tcase_add_test(tests, starts_as_the_identity);
    tcase_add_test(tests, lengths_five_and_ten);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
