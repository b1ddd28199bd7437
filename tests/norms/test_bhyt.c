/* BHyT: y = weight tanh(lambda x / (kappa sqrt(mean(x^2) + eps))). */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* The root of the mean square of 1 and 7 is 5. */
START_TEST(of_one_and_seven)
{
    ng_module *layer = in_double(ng_bhyt_new(2, .lambda = 3, .kappa = 2, .eps = NG_ZERO));
    assert_values(ng_forward(layer, tape, DOUBLES(NG_SHAPE(2), 1, 7)), 1e-14, tanh(0.3), tanh(2.1));
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_bhyt_new(5), "catalogue", "bhyt");
    assert_pytorch(ng_bhyt_new(5, .kappa = 3), "catalogue", "bhyt_kappa");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

/* So it is: |lambda x / (kappa rms)| is at most lambda sqrt(n) / kappa. */
START_TEST(outputs_are_bounded)
{
    ng_module *layer = in_double(ng_bhyt_new(4));
    ng_tensor *y = ng_forward(layer, tape, DOUBLES(NG_SHAPE(4), 0, 0, -1e100, 0));
    assert_values(y, 1e-14, 0, 0, -tanh(0.4), 0);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_bhyt_new(0));
    assert_refused(ng_bhyt_new(5, .kappa = -1));
    assert_refused(ng_bhyt_new(5, .lambda = (double)INFINITY));
    assert_fails(ng_forward(drawn(ng_bhyt_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "BHyT");
}

Suite *bhyt_suite(void)
{
    return suite_of("bhyt", set_up, tear_down, of_one_and_seven, value_and_gradients_are_pytorchs,
                    outputs_are_bounded, bad_settings_are_refused);
}
