/* BatchRenorm: y = gamma (xhat r + d) + beta; r and d correct the batch's statistics to the running
 * ones. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(warms_up_as_batch_norm)
{
    ng_module *renorm = drawn(ng_batch_renorm_new(3, .warmup = 1, .no_affine = true));
    ng_module *batch = drawn(ng_batch_norm_new(3, .no_affine = true));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5, 3), 1);
    assert_tensors_close(ng_forward(renorm, tape, x), ng_forward(batch, tape, x), 1e-5);
}
END_TEST

/* In training r and d are constants in the gradient. */
START_TEST(the_checker_holds_r_and_d_fixed)
{
    expect_checked(CALL(drawn(ng_batch_renorm_new(3)), normal(NG_F64, NG_SHAPE(5, 3), 1)));
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 1 };

static norm_call make(int mode)
{
    switch (mode) {
    default:
        return *CALL(evaluating(drawn(ng_batch_renorm_new(3))), normal(NG_F64, NG_SHAPE(5, 3), 1));
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
    for (int i = 0; i < 3; i++) {
        static const char *const kinds[] = {"features", "1d", "2d"};
        char row[64];
        snprintf(row, sizeof row, "batch_renorm_tight_%s", kinds[i]);
        expect_pytorch(ng_batch_renorm_new(6, .r_max = 1.1, .d_max = 0.2), "norms.txt", row, NULL);
        snprintf(row, sizeof row, "batch_renorm_wide_%s", kinds[i]);
        expect_pytorch(ng_batch_renorm_new(6), "norms.txt", row, NULL);
        snprintf(row, sizeof row, "batch_renorm_none_%s", kinds[i]);
        expect_pytorch(ng_batch_renorm_new(6, .r_max = 1, .d_max = NG_ZERO), "norms.txt", row,
                       NULL);
        snprintf(row, sizeof row, "batch_renorm_eval_%s", kinds[i]);
        expect_pytorch(evaluating(ng_batch_renorm_new(6)), "norms.txt", row, NULL);
    }
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_batch_renorm_new(0), NG_EVALUE, "ng_batch_renorm_new");
    assert_fails(ng_batch_renorm_new(3, .r_max = 0.5), NG_EVALUE, "ng_batch_renorm_new");
    assert_fails(ng_batch_renorm_new(3, .eps = -1), NG_EVALUE, "ng_batch_renorm_new");
}
END_TEST

Suite *batch_renorm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("batch_renorm", &tests);
    tcase_add_test(tests, warms_up_as_batch_norm);
    tcase_add_test(tests, the_checker_holds_r_and_d_fixed);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
