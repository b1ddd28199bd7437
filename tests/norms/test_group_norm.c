/* GroupNorm: y = gamma xhat + beta, with the statistics of a group of a sample's channels. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Channels 1, 3 and 2, 6: means 2 and 4, deviations 1 and 2. */
START_TEST(two_groups_of_two)
{
    ng_module *norm = drawn(ng_group_norm_new(2, 4, .eps = NG_ZERO, .no_affine = true));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 4), 1, 3, 2, 6)), 1e-14, -1, 1, -1, 1);
}

START_TEST(one_value_a_group_gives_beta)
{
    ng_module *norm = drawn(ng_group_norm_new(2, 2));
    ng_tensor *y = ng_forward(norm, tape, normal(NG_F64, NG_SHAPE(3, 2), 1));
    assert_same_bits(y, ng_broadcast_to(tape, ng_module_find(norm, "bias"), NG_SHAPE(3, 2)));
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_group_norm_new(1, 6), "norms", "group_norm_1_features");
    assert_pytorch(ng_group_norm_new(1, 6), "norms", "group_norm_1_1d");
    assert_pytorch(ng_group_norm_new(1, 6), "norms", "group_norm_1_2d");
    assert_pytorch(ng_group_norm_new(2, 6), "norms", "group_norm_2_features");
    assert_pytorch(ng_group_norm_new(2, 6), "norms", "group_norm_2_1d");
    assert_pytorch(ng_group_norm_new(2, 6), "norms", "group_norm_2_2d");
    assert_pytorch(ng_group_norm_new(3, 6), "norms", "group_norm_3_features");
    assert_pytorch(ng_group_norm_new(3, 6), "norms", "group_norm_3_1d");
    assert_pytorch(ng_group_norm_new(3, 6), "norms", "group_norm_3_2d");
    assert_pytorch(ng_group_norm_new(2, 4, .condition = 3), "catalogue", "conditional_group",
                   "condition");
    assert_pytorch(ng_group_norm_new(2, 4, .condition = 3), "catalogue", "conditional_group_maps",
                   "condition");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(one_group_is_layer_norm_of_the_sample)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    ng_module *group = drawn(ng_group_norm_new(1, 4, .no_affine = true));
    ng_module *layer = drawn(ng_layer_norm_over_new(NG_SHAPE(4, 3), .no_affine = true));
    assert_tensors_close(ng_forward(group, tape, x), ng_forward(layer, tape, x), 1e-13);
}

START_TEST(shifting_and_scaling_a_sample_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    expect_invariant(drawn(ng_group_norm_new(2, 4, .eps = NG_ZERO)), x,
                     ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_group_norm_new(3, 4));
    assert_refused(ng_group_norm_new(0, 4));
    assert_refused(ng_group_norm_new(2, 4, .eps = -1));
    assert_fails(
        ng_forward(drawn(ng_group_norm_new(2, 6)), tape, normal(NG_F64, NG_SHAPE(2, 4, 3), 1)),
        NG_ESHAPE, "GroupNorm");
}

Suite *group_norm_suite(void)
{
    return suite_of("group_norm", set_up, tear_down, two_groups_of_two,
                    one_value_a_group_gives_beta, value_and_gradients_are_pytorchs,
                    one_group_is_layer_norm_of_the_sample,
                    shifting_and_scaling_a_sample_changes_nothing, bad_settings_are_refused);
}
