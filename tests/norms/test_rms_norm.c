/* RMSNorm: y = gamma x / sqrt(mean(x^2) + eps), with the mean of each row. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Document 004: [3, 4], printed with four digits. */
START_TEST(three_and_four)
{
    ng_tensor *y =
        ng_forward(drawn(ng_rms_norm_new(2, .no_affine = true)), tape, DOUBLES(NG_SHAPE(2), 3, 4));
    assert_near(ng_get(y, 0), 0.8485, 0.5e-4);
    assert_near(ng_get(y, 1), 1.1314, 0.5e-4);
}

/* The mean square is that of the first share of the features, rounded down, at least one. */
START_TEST(partial_statistics)
{
    ng_tensor *x = DOUBLES(NG_SHAPE(5), 3, 4, 100, -100, 7);
    ng_module *half = drawn(ng_rms_norm_new(5, .eps = NG_ZERO, .no_affine = true, .partial = 0.5));
    ng_module *least = drawn(ng_rms_norm_new(5, .eps = NG_ZERO, .no_affine = true, .partial = 0.1));
    const double s = 1 / sqrt(12.5), t = 1 / 3.0;
    assert_values(ng_forward(half, tape, x), 1e-14, 3 * s, 4 * s, 100 * s, -100 * s, 7 * s);
    assert_values(ng_forward(least, tape, x), 1e-14, 1, 4 * t, 100 * t, -100 * t, 7 * t);
}

/* 0.29 * 100 is a little less than 29 in binary. */
START_TEST(partial_share_is_not_lost_to_rounding)
{
    ng_module *norm =
        drawn(ng_rms_norm_new(100, .eps = NG_ZERO, .no_affine = true, .partial = 0.29));
    ng_tensor *x = own(ng_zeros_new(NG_F64, NG_SHAPE(100)));
    ng_set(x, 28, 1);
    assert_close(ng_get(ng_forward(norm, tape, x), 28), sqrt(29), 1e-14);
}

/* Normalized keys lie on a sphere: none is in the hull of the others, so each has a query, itself,
 * that selects it. Without the norm some have none. Brody, Alon & Yahav 2023. */
START_TEST(every_normalized_key_can_be_selected)
{
    enum { KEYS = 64 };
    ng_module *norm = drawn(ng_rms_norm_new(4, .no_affine = true));
    ng_tensor *keys = ng_forward(norm, tape, normal(NG_F64, NG_SHAPE(KEYS, 4), 1));
    ng_tensor *chosen = ng_argmax(tape, ng_matmul(tape, keys, keys, .transpose_b = true));
    for (int i = 0; i < KEYS; i++) assert_near(ng_get(chosen, i), i, 0);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_rms_norm_new(6), "ops", "rms_norm");
    assert_pytorch(ng_rms_norm_new(8, .partial = 0.5), "ops", "rms_norm_partial");
    assert_pytorch(ng_rms_norm_new(6, .unit_offset = true), "catalogue", "rms_norm_offset");
    assert_pytorch(ng_rms_norm_new(6, .condition = 3), "catalogue", "rms_norm_conditional",
                   "condition");
    assert_pytorch(ng_rms_norm_new(6, .groups = 3), "catalogue", "rms_norm_heads");
    assert_pytorch(ng_rms_norm_new(6, .by_deviation = true), "catalogue", "simple_norm");
    assert_pytorch(ng_rms_norm_new(4, .by_deviation = true, .channels_first = true), "catalogue",
                   "simple_norm_2d");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_row_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(drawn(ng_rms_norm_new(5, .eps = NG_ZERO)), x, ng_mul_scalar(tape, x, 3));
}

/* RMSNorm is not centred. */
START_TEST(shifting_a_row_changes_it)
{
    ng_module *norm = drawn(ng_rms_norm_new(5));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    ng_tensor *moved = ng_forward(norm, tape, ng_add_scalar(tape, x, 1));
    const double off =
        ng_item(ng_max(tape, ng_abs(tape, ng_sub(tape, moved, ng_forward(norm, tape, x)))));
    ck_assert_double_gt(off, 0.1);
}

START_TEST(gradient_is_orthogonal_to_scale)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5), 1);
    ng_tensor *y = ng_forward(drawn(ng_rms_norm_new(5, .eps = NG_ZERO)), tape, x);
    expect_orthogonal(ng_gradient(tape, y, x, .cotangent = normal(NG_F64, NG_SHAPE(5), 2)), x);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_rms_norm_new(0));
    assert_refused(ng_rms_norm_new(5, .eps = -1));
    assert_refused(ng_rms_norm_new(6, .groups = 4));
    assert_refused(ng_rms_norm_new(6, .groups = 2, .by_deviation = true));
    assert_refused(ng_rms_norm_new(6, .partial = 0.5, .by_deviation = true));
    assert_refused(ng_rms_norm_new(6, .condition = 2, .channels_first = true));
    assert_refused(ng_rms_norm_new(5, .partial = 2));
    assert_fails(ng_forward(drawn(ng_rms_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "RMSNorm");
    assert_fails(ng_forward(drawn(ng_rms_norm_new(5, .condition = 2)), tape,
                            normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_EVALUE, "RMSNorm");
}

Suite *rms_norm_suite(void)
{
    return suite_of("rms_norm", set_up, tear_down, three_and_four, partial_statistics,
                    every_normalized_key_can_be_selected, partial_share_is_not_lost_to_rounding,
                    value_and_gradients_are_pytorchs, scaling_a_row_changes_nothing,
                    shifting_a_row_changes_it, gradient_is_orthogonal_to_scale,
                    bad_settings_are_refused);
}
