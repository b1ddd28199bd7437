/* SpectralNorm: weight = W / sigma, sigma = u^T W v the largest singular value, u and v constants. */
#include "norms/norm.h"

/* ---- Worked numbers ------------------------------------------------------------------------------ */

/* Of the diagonal (3, 2). */
START_TEST(divides_by_the_largest_singular_value)
{
    ng_module *norm = drawn(ng_spectral_norm_new(ng_linear_new(2, 2, .no_bias = true)));
    ng_copy_values(ng_module_find(norm, "inner.weight"), DOUBLES(NG_SHAPE(2, 2), 3, 0, 0, 2));
    ng_tensor *one = DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 1);
    for (int i = 0; i < 100; i++) assert_ok(ng_forward(norm, tape, one));
    assert_tensors_close(ng_forward(norm, tape, one), DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 2 / 3.0),
                         1e-9);
}
END_TEST

/* ---- The gradient against finite differences ----------------------------------------------------- */

enum { MODES = 1 };

static norm_call make(int mode)
{
    switch (mode) {
    default:
        return *CALL(evaluating(drawn(ng_spectral_norm_new(ng_linear_new(3, 4)))),
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

/* ---- Invariances and relations ------------------------------------------------------------------- */

START_TEST(a_frozen_layer_leaves_its_vectors)
{
    ng_module *norm = drawn(ng_spectral_norm_new(ng_linear_new(3, 4)));
    ng_tensor *u = own(ng_copy_new(ng_module_find(norm, "u"), NG_F64));
    ng_freeze(norm);
    assert_ok(ng_forward(norm, tape, normal(NG_F64, NG_SHAPE(5, 3), 1)));
    assert_same_bits(ng_module_find(norm, "u"), u);
}
END_TEST

/* ---- Bad settings -------------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_spectral_norm_new(ng_sequential_new(ng_linear_new(2, 2))), NG_EVALUE,
                 "ng_spectral_norm_new");
    assert_fails(ng_spectral_norm_new(ng_linear_new(2, 2), .iterations = -1), NG_EVALUE,
                 "ng_spectral_norm_new");
}
END_TEST

Suite *spectral_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("spectral_norm", &tests);
    tcase_add_test(tests, divides_by_the_largest_singular_value);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, a_frozen_layer_leaves_its_vectors);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
