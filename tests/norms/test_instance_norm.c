/* InstanceNorm: y = xhat, with the statistics of one channel of one sample. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Positions 1, 3 and 2, 6. */
START_TEST(two_channels)
{
    ng_module *norm = drawn(ng_instance_norm_new(2, .eps = NG_ZERO, .no_affine = true));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 2, 2), 1, 3, 2, 6)), 1e-14, -1, 1, -1,
                  1);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_instance_norm_new(6), "norms", "instance_norm_1d");
    assert_pytorch(ng_instance_norm_new(6), "norms", "instance_norm_2d");
    assert_pytorch(ng_instance_norm_new(6, .no_affine = true), "norms", "instance_norm_plain_1d");
    assert_pytorch(ng_instance_norm_new(6, .no_affine = true), "norms", "instance_norm_plain_2d");
    assert_pytorch(ng_instance_norm_new(4, .condition = 3), "catalogue", "conditional_instance",
                   "condition");
    assert_pytorch(ng_instance_norm_new(4, .condition = 3), "catalogue",
                   "conditional_instance_maps", "condition");
    assert_pytorch(ng_instance_norm_new(3, .style = true), "catalogue", "adain", "style");
    assert_pytorch(ng_instance_norm_new(4, .running_stats = true), "catalogue",
                   "running_instance_train");
    assert_pytorch(evaluating(ng_instance_norm_new(4, .running_stats = true)), "catalogue",
                   "running_instance_eval");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(shifting_and_scaling_a_channel_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    expect_invariant(drawn(ng_instance_norm_new(4, .eps = NG_ZERO, .no_affine = true)), x,
                     ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_instance_norm_new(0));
    assert_refused(ng_instance_norm_new(4, .style = true, .no_affine = true));
    assert_fails(ng_forward(drawn(ng_instance_norm_new(4, .no_affine = true)), tape,
                            normal(NG_F64, NG_SHAPE(2, 4), 1)),
                 NG_ESHAPE, "InstanceNorm");
}

Suite *instance_norm_suite(void)
{
    return suite_of("instance_norm", set_up, tear_down, two_channels,
                    value_and_gradients_are_pytorchs,
                    shifting_and_scaling_a_channel_changes_nothing, bad_settings_are_refused);
}
