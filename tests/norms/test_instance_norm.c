/* InstanceNorm: y = xhat, with the statistics of one channel of one sample. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Positions 1, 3 and 2, 6. */
START_TEST(two_channels)
{
    ng_module *norm = drawn(ng_instance_norm_new(2, .eps = NG_ZERO));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 2, 2), 1, 3, 2, 6)), 1e-14, -1, 1, -1,
                  1);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 4 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0: return *CALL(drawn(ng_instance_norm_new(4)), normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    case 1:
        return *CALL(drawn(ng_instance_norm_new(4, .affine = true)),
                     normal(NG_F64, NG_SHAPE(2, 4, 3), 1));
    case 2:
        return *CALL(drawn(ng_instance_norm_new(4, .condition = 2)),
                     normal(NG_F64, NG_SHAPE(2, 4, 3), 1),
                     .condition = normal(NG_F64, NG_SHAPE(2, 2), 2));
    default:
        return *CALL(drawn(ng_instance_norm_new(4, .style = true)),
                     normal(NG_F64, NG_SHAPE(2, 4, 3), 1),
                     .style = normal(NG_F64, NG_SHAPE(2, 4, 5), 2));
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
    expect_pytorch(ng_instance_norm_new(6, .affine = true), "norms.txt", "instance_norm_1d", NULL);
    expect_pytorch(ng_instance_norm_new(6, .affine = true), "norms.txt", "instance_norm_2d", NULL);
    expect_pytorch(ng_instance_norm_new(6), "norms.txt", "instance_norm_plain_1d", NULL);
    expect_pytorch(ng_instance_norm_new(6), "norms.txt", "instance_norm_plain_2d", NULL);
    expect_pytorch(ng_instance_norm_new(4, .condition = 3), "catalogue.txt", "conditional_instance",
                   "condition");
    expect_pytorch(ng_instance_norm_new(4, .condition = 3), "catalogue.txt",
                   "conditional_instance_maps", "condition");
    expect_pytorch(ng_instance_norm_new(3, .style = true), "catalogue.txt", "adain", "style");
    expect_pytorch(ng_instance_norm_new(4, .affine = true, .running_stats = true), "catalogue.txt",
                   "running_instance_train", NULL);
    expect_pytorch(evaluating(ng_instance_norm_new(4, .affine = true, .running_stats = true)),
                   "catalogue.txt", "running_instance_eval", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(shifting_and_scaling_a_channel_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    expect_invariant(drawn(ng_instance_norm_new(4, .eps = NG_ZERO)), x,
                     ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_instance_norm_new(0), NG_EVALUE, "ng_instance_norm_new");
    assert_fails(ng_instance_norm_new(4, .style = true, .affine = true), NG_EVALUE,
                 "ng_instance_norm_new");
    assert_fails(
        ng_forward(drawn(ng_instance_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(2, 4), 1)),
        NG_ESHAPE, "InstanceNorm");
}
END_TEST

Suite *instance_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("instance_norm", &tests);
    tcase_add_test(tests, two_channels);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, shifting_and_scaling_a_channel_changes_nothing);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
