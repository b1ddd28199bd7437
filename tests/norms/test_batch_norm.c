/* BatchNorm: y = gamma xhat + beta, with the statistics of a channel over the batch. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Columns 1, 3 and 2, 6. */
START_TEST(two_channels)
{
    ng_module *norm = drawn(ng_batch_norm_new(2, .eps = NG_ZERO, .no_affine = true));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 2, 3, 6)), 1e-14, -1, -1, 1, 1);
}
END_TEST

/* Document 000: running = 0.9 running + 0.1 batch, the variance unbiased. */
START_TEST(running_averages)
{
    ng_module *norm = drawn(ng_batch_norm_new(1));
    ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 1), 1, 3));
    assert_close(ng_item(ng_module_find(norm, "running_mean")), 0.2, 1e-14);
    assert_close(ng_item(ng_module_find(norm, "running_var")), 0.9 + 0.1 * 2, 1e-14);
    ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 1), 5, 9));
    assert_close(ng_item(ng_module_find(norm, "running_mean")), 0.9 * 0.2 + 0.7, 1e-14);
    assert_close(ng_item(ng_module_find(norm, "running_var")), 0.9 * 1.1 + 0.1 * 8, 1e-14);
}
END_TEST

START_TEST(evaluation_uses_running_statistics_and_leaves_them)
{
    ng_module *norm = evaluating(drawn(ng_batch_norm_new(1, .eps = NG_ZERO, .no_affine = true)));
    ng_fill(ng_module_find(norm, "running_mean"), 2);
    ng_fill(ng_module_find(norm, "running_var"), 4);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 1), 4, 8)), 1e-14, 1, 3);
    assert_close(ng_item(ng_module_find(norm, "running_mean")), 2, 0);
}
END_TEST

/* Document 000: gamma and beta can undo the norm. */
START_TEST(gamma_and_beta_undo_it)
{
    ng_module *norm = drawn(ng_batch_norm_new(2, .eps = NG_ZERO));
    ng_copy_values(ng_module_find(norm, "weight"), DOUBLES(NG_SHAPE(2), 1, 2));
    ng_copy_values(ng_module_find(norm, "bias"), DOUBLES(NG_SHAPE(2), 2, 4));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 2, 3, 6)), 1e-14, 1, 2, 3, 6);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 5 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0: return *CALL(drawn(ng_batch_norm_new(3)), normal(NG_F64, NG_SHAPE(5, 3), 1));
    case 1:
        return *CALL(drawn(ng_batch_norm_new(3, .no_affine = true)),
                     normal(NG_F64, NG_SHAPE(2, 3, 4), 1));
    case 2:
        return *CALL(evaluating(drawn(ng_batch_norm_new(3))), normal(NG_F64, NG_SHAPE(5, 3), 1));
    case 3:
        return *CALL(drawn(ng_batch_norm_new(3, .ghost = 3)), normal(NG_F64, NG_SHAPE(6, 3), 1));
    default:
        return *CALL(drawn(ng_batch_norm_new(3, .condition = 2)), normal(NG_F64, NG_SHAPE(5, 3), 1),
                     .condition = normal(NG_F64, NG_SHAPE(5, 2), 2));
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
    expect_pytorch(ng_batch_norm_new(4), "ops.txt", "batch_norm_features", NULL);
    expect_pytorch(ng_batch_norm_new(4), "ops.txt", "batch_norm_1d", NULL);
    expect_pytorch(ng_batch_norm_new(3), "ops.txt", "batch_norm_2d", NULL);
    expect_pytorch(evaluating(ng_batch_norm_new(4)), "ops.txt", "batch_norm_eval_features", NULL);
    expect_pytorch(evaluating(ng_batch_norm_new(4)), "ops.txt", "batch_norm_eval_1d", NULL);
    expect_pytorch(evaluating(ng_batch_norm_new(3)), "ops.txt", "batch_norm_eval_2d", NULL);
    expect_pytorch(ng_batch_norm_new(6, .ghost = 4), "norms.txt", "ghost_features", NULL);
    expect_pytorch(ng_batch_norm_new(6, .ghost = 2), "norms.txt", "ghost_2d", NULL);
    expect_pytorch(ng_batch_norm_new(3, .condition = 2), "catalogue.txt",
                   "conditional_batch_features", "condition");
    expect_pytorch(ng_batch_norm_new(3, .condition = 2), "catalogue.txt", "conditional_batch_maps",
                   "condition");
    expect_pytorch(evaluating(ng_batch_norm_new(3, .condition = 2)), "catalogue.txt",
                   "conditional_batch_2d_eval", "condition");
    expect_pytorch(ng_batch_norm_new(4), "catalogue.txt", "running_batch_train", NULL);
    expect_pytorch(evaluating(ng_batch_norm_new(4)), "catalogue.txt", "running_batch_eval", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(shifting_and_scaling_the_data_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5, 3), 1);
    expect_invariant(drawn(ng_batch_norm_new(3, .eps = NG_ZERO)), x,
                     ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_batch_norm_new(0), NG_EVALUE, "ng_batch_norm_new");
    assert_fails(ng_batch_norm_new(3, .eps = -1), NG_EVALUE, "ng_batch_norm_new");
    assert_fails(ng_batch_norm_new(3, .momentum = 2), NG_EVALUE, "ng_batch_norm_new");
    assert_fails(ng_forward(drawn(ng_batch_norm_new(3)), tape, normal(NG_F64, NG_SHAPE(1, 3), 1)),
                 NG_ESHAPE, "BatchNorm");
    assert_fails(ng_forward(drawn(ng_batch_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(5, 3), 1)),
                 NG_ESHAPE, "BatchNorm");
}
END_TEST

Suite *batch_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("batch_norm", &tests);
    tcase_add_test(tests, two_channels);
    tcase_add_test(tests, gamma_and_beta_undo_it);
    tcase_add_test(tests, running_averages);
    tcase_add_test(tests, evaluation_uses_running_statistics_and_leaves_them);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, shifting_and_scaling_the_data_changes_nothing);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
