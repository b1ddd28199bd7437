/* ScaleNorm: y = g x / sqrt(sum x^2 + eps): every row gets the length g. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* g starts at sqrt(dim). */
START_TEST(length_is_g)
{
    ng_module *norm = in_double(ng_scale_norm_new(2));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4)), 1e-7, 0.6 * sqrt(2),
                  0.8 * sqrt(2));
}

/* And its gradient is finite. */
START_TEST(a_row_of_zeros_is_zero)
{
    ng_tensor *x = ng_require_grad(DOUBLES(NG_SHAPE(3), 0, 0, 0));
    ng_tensor *y = ng_forward(drawn(ng_scale_norm_new(3)), tape, x);
    assert_values(y, 0, 0, 0, 0);
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
    for (int i = 0; i < 3; i++) ck_assert(isfinite(ng_get(ng_grad(x), i)));
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_scale_norm_new(5, .eps = NG_ZERO), "norms", "scale_norm");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_row_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(drawn(ng_scale_norm_new(5, .eps = NG_ZERO)), x, ng_mul_scalar(tape, x, 3));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_scale_norm_new(0));
    assert_refused(ng_scale_norm_new(5, .eps = -1));
    assert_fails(ng_forward(drawn(ng_scale_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "ScaleNorm");
}

Suite *scale_norm_suite(void)
{
    return suite_of("scale_norm", set_up, tear_down, length_is_g, a_row_of_zeros_is_zero,
                    value_and_gradients_are_pytorchs, scaling_a_row_changes_nothing,
                    bad_settings_are_refused);
}
