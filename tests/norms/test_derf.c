/* Derf: y = weight erf(alpha x + shift) + bias, in place of a norm. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(of_one_feature)
{
    ng_module *layer = in_double(ng_derf_new(1));
    assert_values(ng_forward(layer, tape, DOUBLES(NG_SHAPE(1), 2)), 1e-14, erf(1));
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_derf_new(5), "catalogue", "derf");
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_derf_new(0));
    assert_refused(ng_derf_new(5, .alpha = (double)INFINITY));
    assert_fails(ng_forward(drawn(ng_derf_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "Derf");
}

Suite *derf_suite(void)
{
    return suite_of("derf", set_up, tear_down, of_one_feature, value_and_gradients_are_pytorchs,
                    bad_settings_are_refused);
}
