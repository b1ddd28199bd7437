/* BatchNorm: y = gamma xhat + beta, with the statistics of a channel over the batch. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Columns 1, 3 and 2, 6. */
START_TEST(two_channels)
{
    ng_module *norm = drawn(ng_batch_norm_new(2, .eps = NG_ZERO, .no_affine = true));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 2, 3, 6)), 1e-14, -1, -1, 1, 1);
}

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

START_TEST(evaluation_uses_running_statistics_and_leaves_them)
{
    ng_module *norm = evaluating(drawn(ng_batch_norm_new(1, .eps = NG_ZERO, .no_affine = true)));
    ng_fill(ng_module_find(norm, "running_mean"), 2);
    ng_fill(ng_module_find(norm, "running_var"), 4);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 1), 4, 8)), 1e-14, 1, 3);
    assert_close(ng_item(ng_module_find(norm, "running_mean")), 2, 0);
}

/* Document 000: gamma and beta can undo the norm. */
START_TEST(gamma_and_beta_undo_it)
{
    ng_module *norm = drawn(ng_batch_norm_new(2, .eps = NG_ZERO));
    ng_copy_values(ng_module_find(norm, "weight"), DOUBLES(NG_SHAPE(2), 1, 2));
    ng_copy_values(ng_module_find(norm, "bias"), DOUBLES(NG_SHAPE(2), 2, 4));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 2, 3, 6)), 1e-14, 1, 2, 3, 6);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_batch_norm_new(4), "ops", "batch_norm_features");
    assert_pytorch(ng_batch_norm_new(4), "ops", "batch_norm_1d");
    assert_pytorch(ng_batch_norm_new(3), "ops", "batch_norm_2d");
    assert_pytorch(evaluating(ng_batch_norm_new(4)), "ops", "batch_norm_eval_features");
    assert_pytorch(evaluating(ng_batch_norm_new(4)), "ops", "batch_norm_eval_1d");
    assert_pytorch(evaluating(ng_batch_norm_new(3)), "ops", "batch_norm_eval_2d");
    assert_pytorch(ng_batch_norm_new(6, .ghost = 4), "norms", "ghost_features");
    assert_pytorch(ng_batch_norm_new(6, .ghost = 2), "norms", "ghost_2d");
    assert_pytorch(ng_batch_norm_new(3, .condition = 2), "catalogue", "conditional_batch_features",
                   "condition");
    assert_pytorch(ng_batch_norm_new(3, .condition = 2), "catalogue", "conditional_batch_maps",
                   "condition");
    assert_pytorch(evaluating(ng_batch_norm_new(3, .condition = 2)), "catalogue",
                   "conditional_batch_2d_eval", "condition");
    assert_pytorch(ng_batch_norm_new(4), "catalogue", "running_batch_train");
    assert_pytorch(evaluating(ng_batch_norm_new(4)), "catalogue", "running_batch_eval");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(shifting_and_scaling_the_data_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5, 3), 1);
    expect_invariant(drawn(ng_batch_norm_new(3, .eps = NG_ZERO)), x,
                     ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}

/* 9 = 4 + 5, 10 = 4 + 4 + 2; with two positions 9 = 4 + 4 + 1. */
START_TEST(a_last_sample_of_one_value_joins_the_sub_batch_before)
{
    static const int64_t plans[][3] = {{9, 1, 4}, {10, 1, 8}, {9, 2, 8}};
    for (int i = 0; i < 3; i++) {
        const int64_t samples = plans[i][0], last = plans[i][2];
        ng_tensor *x = normal(NG_F64, NG_SHAPE(samples, 3, plans[i][1]), 1);
        ng_tensor *y = ng_forward(in_double(ng_batch_norm_new(3, .ghost = 4)), tape, x);
        ng_tensor *end = ng_slice(tape, x, 0, last, samples);
        assert_same_bits(ng_slice(tape, y, 0, last, samples),
                         ng_forward(in_double(ng_batch_norm_new(3)), tape, end));
    }
}

START_TEST(a_sub_batch_that_fails_moves_no_running_statistics)
{
    ng_module *layer = in_double(ng_batch_norm_new(3, .ghost = 1));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(9, 3), 1);
    assert_fails(ng_forward(layer, tape, x), NG_ESHAPE, "ng_ghost_batch_norm");
    assert_values(ng_module_find(layer, "running_mean"), 0, 0, 0, 0);
    ck_assert(ng_item(ng_module_find(layer, "num_batches_tracked")) == 0);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_batch_norm_new(0));
    assert_refused(ng_batch_norm_new(3, .eps = -1));
    assert_refused(ng_batch_norm_new(3, .momentum = 2));
    assert_fails(ng_forward(drawn(ng_batch_norm_new(3)), tape, normal(NG_F64, NG_SHAPE(1, 3), 1)),
                 NG_ESHAPE, "BatchNorm");
    assert_fails(ng_forward(drawn(ng_batch_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(5, 3), 1)),
                 NG_ESHAPE, "BatchNorm");
}

Suite *batch_norm_suite(void)
{
    return suite_of("batch_norm", set_up, tear_down, two_channels, gamma_and_beta_undo_it,
                    running_averages, evaluation_uses_running_statistics_and_leaves_them,
                    value_and_gradients_are_pytorchs, shifting_and_scaling_the_data_changes_nothing,
                    a_last_sample_of_one_value_joins_the_sub_batch_before,
                    a_sub_batch_that_fails_moves_no_running_statistics, bad_settings_are_refused);
}
