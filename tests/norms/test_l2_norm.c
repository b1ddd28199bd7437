/* L2Norm: y = weight x / sqrt(sum x^2 + eps), over a row or over the channels of a position. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(three_and_four)
{
    ng_module *norm = drawn(ng_l2_norm_new(2, .no_affine = true));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4)), 1e-9, 0.6, 0.8);
}
END_TEST

START_TEST(scale_is_where_weight_starts)
{
    ng_module *norm = own(ng_l2_norm_new(2, .scale = 10));
    assert_ok(ng_module_to(norm, NG_F64));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4)), 1e-9, 6, 8);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 3 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0: return *CALL(drawn(ng_l2_norm_new(5)), normal(NG_F64, NG_SHAPE(3, 5), 1));
    case 1:
        return *CALL(drawn(ng_l2_norm_new(5, .no_affine = true)),
                     normal(NG_F64, NG_SHAPE(3, 5), 1));
    default:
        return *CALL(drawn(ng_l2_norm_new(4, .channels_first = true)),
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
    expect_pytorch(ng_l2_norm_new(5, .eps = NG_ZERO), "catalogue.txt", "l2", NULL);
    expect_pytorch(ng_l2_norm_new(5, .eps = NG_ZERO, .channels_first = true), "catalogue.txt",
                   "l2_channels", NULL);
    expect_pytorch(ng_l2_norm_new(5, .eps = NG_ZERO, .no_affine = true), "catalogue.txt",
                   "l2_plain", NULL);
    expect_pytorch(ng_multi_head_attention_new(6, 2, .qk_temperature = 4), "catalogue.txt",
                   "qk_temperature", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_row_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(drawn(ng_l2_norm_new(5, .eps = NG_ZERO)), x, ng_mul_scalar(tape, x, 3));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_l2_norm_new(0), NG_EVALUE, "ng_l2_norm_new");
    assert_fails(ng_l2_norm_new(5, .eps = -1), NG_EVALUE, "ng_l2_norm_new");
    assert_fails(ng_forward(drawn(ng_l2_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "L2Norm");
}
END_TEST

Suite *l2_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("l2_norm", &tests);
    tcase_add_test(tests, three_and_four);
    tcase_add_test(tests, scale_is_where_weight_starts);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, scaling_a_row_changes_nothing);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
