/* GlobalResponseNorm: y = x + weight x G_c / (mean of G + eps) + bias, G_c the length of channel c.
 */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(starts_as_the_identity)
{
    ng_module *norm = in_double(ng_global_response_norm_new(4));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 4, 3), 1);
    assert_tensors_close(ng_forward(norm, tape, x), x, 0);
}

/* Their mean is 7.5. */
START_TEST(lengths_five_and_ten)
{
    ng_module *norm = in_double(ng_global_response_norm_new(2, .eps = NG_ZERO));
    ng_fill(ng_module_find(norm, "weight"), 1);
    ng_tensor *y = ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 2, 2), 3, 4, 6, 8));
    const double a = 1 + 5 / 7.5, b = 1 + 10 / 7.5;
    assert_values(y, 1e-14, 3 * a, 4 * a, 6 * b, 8 * b);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_global_response_norm_new(4), "catalogue", "grn");
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_global_response_norm_new(0));
    assert_refused(ng_global_response_norm_new(4, .eps = -1));
}

Suite *global_response_norm_suite(void)
{
    return suite_of("global_response_norm", set_up, tear_down, starts_as_the_identity,
                    lengths_five_and_ten, value_and_gradients_are_pytorchs,
                    bad_settings_are_refused);
}
