/* DynamicTanh: y = weight tanh(alpha x) + bias, in place of a norm. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(of_one_feature)
{
    ng_module *layer = own(ng_dynamic_tanh_new(1));
    assert_ok(ng_module_to(layer, NG_F64));
    assert_values(ng_forward(layer, tape, DOUBLES(NG_SHAPE(1), 2)), 1e-15, tanh(1));
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 2 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0: return *CALL(drawn(ng_dynamic_tanh_new(5)), normal(NG_F64, NG_SHAPE(3, 5), 1));
    default:
        return *CALL(drawn(ng_dynamic_tanh_new(5, .no_affine = true)),
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
    expect_pytorch(ng_dynamic_tanh_new(5), "norms.txt", "dynamic_tanh", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(an_odd_function_without_bias)
{
    ng_module *layer = drawn(ng_dynamic_tanh_new(5, .no_affine = true));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    assert_same_bits(ng_forward(layer, tape, ng_neg(tape, x)),
                     ng_neg(tape, ng_forward(layer, tape, x)));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_dynamic_tanh_new(0), NG_EVALUE, "ng_dynamic_tanh_new");
    assert_fails(ng_dynamic_tanh_new(5, .alpha = (double)INFINITY), NG_EVALUE,
                 "ng_dynamic_tanh_new");
    assert_fails(ng_forward(drawn(ng_dynamic_tanh_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "DynamicTanh");
}
END_TEST

Suite *dynamic_tanh_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("dynamic_tanh", &tests);
    tcase_add_test(tests, of_one_feature);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, an_odd_function_without_bias);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
