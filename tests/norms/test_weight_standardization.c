/* WeightStandardization: weight = (v - mean) / sqrt(var + eps) over the row of each output. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* The row (1, 3) becomes (-1, 1). */
START_TEST(one_and_three)
{
    ng_module *norm =
        drawn(ng_weight_standardization_new(ng_linear_new(2, 1, .no_bias = true), .eps = NG_ZERO));
    ng_copy_values(ng_module_find(norm, "inner.weight"), DOUBLES(NG_SHAPE(1, 2), 1, 3));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 1)), 1e-14, -1, 1);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 1 };

static norm_call make(int mode)
{
    switch (mode) {
    default:
        return *CALL(drawn(ng_weight_standardization_new(ng_linear_new(3, 4))),
                     normal(NG_F64, NG_SHAPE(5, 3), 1));
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
    expect_pytorch(ng_weight_standardization_new(ng_linear_new(3, 4)), "catalogue.txt",
                   "weight_standardization", NULL);
    expect_pytorch(ng_weight_standardization_new(ng_conv2d_new(3, 4, 2)), "catalogue.txt",
                   "weight_standardization_conv", NULL);
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_weight_standardization_new(ng_relu_new()), NG_EVALUE,
                 "ng_weight_standardization_new");
    assert_fails(ng_weight_standardization_new(ng_linear_new(2, 2), .eps = -1), NG_EVALUE,
                 "ng_weight_standardization_new");
}
END_TEST

Suite *weight_standardization_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("weight_standardization", &tests);
    tcase_add_test(tests, one_and_three);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
