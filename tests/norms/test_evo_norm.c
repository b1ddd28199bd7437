/* EvoNorm: B0 divides by the larger of two deviations, S0 is x sigmoid(v x) over the deviation of a
 * group. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Values 1 and 3: the batch's deviation is 1, v x + the sample's is x, so y = x / max(1, x). */
START_TEST(b0_of_one_channel)
{
    ng_module *norm = in_double(ng_evo_norm_new(1, .eps = NG_ZERO));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 1, 1), 0.5, 2.5)), 1e-14, 0.5, 1);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_evo_norm_new(4), "catalogue", "evo_b0_train");
    assert_pytorch(evaluating(ng_evo_norm_new(4)), "catalogue", "evo_b0_eval");
    assert_pytorch(ng_evo_norm_new(4, .groups = 1), "catalogue", "evo_s0_1");
    assert_pytorch(ng_evo_norm_new(4, .groups = 2), "catalogue", "evo_s0_2");
    assert_pytorch(ng_evo_norm_new(4, .kind = NG_EVO_1), "catalogue", "evo_b1");
    assert_pytorch(ng_evo_norm_new(4, .kind = NG_EVO_2), "catalogue", "evo_b2");
    assert_pytorch(evaluating(ng_evo_norm_new(4, .kind = NG_EVO_2)), "catalogue", "evo_b2_eval");
    assert_pytorch(ng_evo_norm_new(4, .groups = 2, .kind = NG_EVO_1), "catalogue", "evo_s1");
    assert_pytorch(ng_evo_norm_new(4, .groups = 2, .kind = NG_EVO_2), "catalogue", "evo_s2");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(one_value_per_channel_is_for_evaluation)
{
    ng_module *norm = drawn(ng_evo_norm_new(4));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(1, 4, 1), 1);
    assert_fails(ng_forward(norm, tape, x), NG_ESHAPE, "EvoNorm");
    assert_ok(ng_forward(evaluating(norm), tape, x));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_evo_norm_new(0));
    assert_refused(ng_evo_norm_new(4, .groups = 3));
    assert_refused(ng_evo_norm_new(4, .kind = (ng_evo_norm_kind)3));
    assert_refused(ng_evo_norm_new(4, .groups = 2, .momentum = 0.2));
}

Suite *evo_norm_suite(void)
{
    return suite_of("evo_norm", set_up, tear_down, b0_of_one_channel,
                    value_and_gradients_are_pytorchs, one_value_per_channel_is_for_evaluation,
                    bad_settings_are_refused);
}
