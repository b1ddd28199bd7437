/* GatedRMSNorm: y = norm(x silu(z)) weight, or norm(x) weight silu(z), for a gate z. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* silu(z) is z for a large z, and the norm takes the scale away. */
START_TEST(a_gate_that_is_wide_open)
{
    ng_module *norm = in_double(ng_gated_rms_norm_new(2, .eps = NG_ZERO));
    ng_tensor *y =
        ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4), .gate = DOUBLES(NG_SHAPE(2), 100, 100));
    assert_values(y, 1e-14, 3 / sqrt(12.5), 4 / sqrt(12.5));
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_gated_rms_norm_new(6), "catalogue", "gated", "gate");
    assert_pytorch(ng_gated_rms_norm_new(6, .groups = 3), "catalogue", "gated_groups", "gate");
    assert_pytorch(ng_gated_rms_norm_new(6, .norm_first = true), "catalogue", "gated_first",
                   "gate");
    assert_pytorch(ng_gated_rms_norm_new(6, .norm_first = true, .groups = 2), "catalogue",
                   "gated_first_groups", "gate");
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_gated_rms_norm_new(0));
    assert_refused(ng_gated_rms_norm_new(5, .groups = 2));
    assert_fails(
        ng_forward(drawn(ng_gated_rms_norm_new(5)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
        NG_EVALUE, "GatedRMSNorm");
}

Suite *gated_rms_norm_suite(void)
{
    return suite_of("gated_rms_norm", set_up, tear_down, a_gate_that_is_wide_open,
                    value_and_gradients_are_pytorchs, bad_settings_are_refused);
}
