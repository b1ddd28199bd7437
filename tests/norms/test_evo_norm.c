/* EvoNorm: B0 divides by the larger of two deviations, S0 is x sigmoid(v x) over the deviation of a
 * group. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Values 1 and 3: the batch's deviation is 1, v x + the sample's is x, so y = x / max(1, x). */
START_TEST(b0_of_one_channel)
{
    ng_module *norm = own(ng_evo_norm_new(1, .eps = NG_ZERO));
    assert_ok(ng_module_to(norm, NG_F64));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 1, 1), 0.5, 2.5)), 1e-14, 0.5, 1);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 3 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0: return *CALL(drawn(ng_evo_norm_new(4)), normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    case 1:
        return *CALL(evaluating(drawn(ng_evo_norm_new(4))), normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    default:
        return *CALL(drawn(ng_evo_norm_new(4, .groups = 2)), normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
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
    expect_pytorch(ng_evo_norm_new(4), "catalogue.txt", "evo_b0_train", NULL);
    expect_pytorch(evaluating(ng_evo_norm_new(4)), "catalogue.txt", "evo_b0_eval", NULL);
    expect_pytorch(ng_evo_norm_new(4, .groups = 1), "catalogue.txt", "evo_s0_1", NULL);
    expect_pytorch(ng_evo_norm_new(4, .groups = 2), "catalogue.txt", "evo_s0_2", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(one_value_per_channel_is_for_evaluation)
{
    ng_module *norm = drawn(ng_evo_norm_new(4));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(1, 4, 1), 1);
    assert_fails(ng_forward(norm, tape, x), NG_ESHAPE, "EvoNorm");
    assert_ok(ng_forward(evaluating(norm), tape, x));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_evo_norm_new(0), NG_EVALUE, "ng_evo_norm_new");
    assert_fails(ng_evo_norm_new(4, .groups = 3), NG_EVALUE, "ng_evo_norm_new");
    assert_fails(ng_evo_norm_new(4, .groups = 2, .momentum = 0.2), NG_EVALUE, "ng_evo_norm_new");
}
END_TEST

Suite *evo_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("evo_norm", &tests);
    tcase_add_test(tests, b0_of_one_channel);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, one_value_per_channel_is_for_evaluation);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
