/* ScaleNorm: y = g x / sqrt(sum x^2 + eps): every row gets the length g. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* g starts at sqrt(dim). */
START_TEST(length_is_g)
{
    ng_module *norm = own(ng_scale_norm_new(2));
    assert_ok(ng_module_to(norm, NG_F64));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4)), 1e-7, 0.6 * sqrt(2),
                  0.8 * sqrt(2));
}
END_TEST

/* And its gradient is finite. */
START_TEST(a_row_of_zeros_is_zero)
{
    ng_tensor *x = ng_require_grad(DOUBLES(NG_SHAPE(3), 0, 0, 0));
    ng_tensor *y = ng_forward(drawn(ng_scale_norm_new(3)), tape, x);
    assert_values(y, 0, 0, 0, 0);
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
    for (int i = 0; i < 3; i++) ck_assert(isfinite(ng_get(ng_grad(x), i)));
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 2 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0: return *CALL(drawn(ng_scale_norm_new(5)), normal(NG_F64, NG_SHAPE(3, 5), 1));
    default:
        return *CALL(drawn(ng_scale_norm_new(5, .length = 2, .eps = 0.1)),
                     normal(NG_F64, NG_SHAPE(3, 5), 1));
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
    expect_pytorch(ng_scale_norm_new(5, .eps = NG_ZERO), "norms.txt", "scale_norm", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_row_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(drawn(ng_scale_norm_new(5, .eps = NG_ZERO)), x, ng_mul_scalar(tape, x, 3));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_scale_norm_new(0), NG_EVALUE, "ng_scale_norm_new");
    assert_fails(ng_scale_norm_new(5, .eps = -1), NG_EVALUE, "ng_scale_norm_new");
    assert_fails(ng_forward(drawn(ng_scale_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "ScaleNorm");
}
END_TEST

Suite *scale_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("scale_norm", &tests);
    tcase_add_test(tests, length_is_g);
    tcase_add_test(tests, a_row_of_zeros_is_zero);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, scaling_a_row_changes_nothing);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
