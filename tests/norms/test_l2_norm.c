/* L2Norm: y = weight x / sqrt(sum x^2 + eps), over a row or over the channels of a position. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(three_and_four)
{
    ng_module *norm = drawn(ng_l2_norm_new(2, .no_affine = true));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4)), 1e-9, 0.6, 0.8);
}

START_TEST(scale_is_where_weight_starts)
{
    ng_module *norm = in_double(ng_l2_norm_new(2, .scale = 10));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4)), 1e-9, 6, 8);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_l2_norm_new(5, .eps = NG_ZERO), "catalogue", "l2");
    assert_pytorch(ng_l2_norm_new(5, .eps = NG_ZERO, .channels_first = true), "catalogue",
                   "l2_channels");
    assert_pytorch(ng_l2_norm_new(5, .eps = NG_ZERO, .no_affine = true), "catalogue", "l2_plain");
    assert_pytorch(ng_multi_head_attention_new(6, 2, .qk_temperature = 4), "catalogue",
                   "qk_temperature");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_row_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(drawn(ng_l2_norm_new(5, .eps = NG_ZERO)), x, ng_mul_scalar(tape, x, 3));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_l2_norm_new(0));
    assert_refused(ng_l2_norm_new(5, .eps = -1));
    assert_fails(ng_forward(drawn(ng_l2_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "L2Norm");
}

Suite *l2_norm_suite(void)
{
    return suite_of("l2_norm", set_up, tear_down, three_and_four, scale_is_where_weight_starts,
                    value_and_gradients_are_pytorchs, scaling_a_row_changes_nothing,
                    bad_settings_are_refused);
}
