/* LocalResponseNorm: y = x / (k + alpha / size sum x_j^2)^beta over `size` neighbouring channels.
 */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Channels 1, 2 and 3, alpha = size: y = x / (1 + sum x_j^2) where beta is 1. */
START_TEST(three_neighbours)
{
    ng_module *norm = in_double(ng_local_response_norm_new(3, .alpha = 3, .beta = 1));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 3, 1), 1, 2, 3)), 1e-14, 1 / 6.0,
                  2 / 15.0, 3 / 14.0);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_local_response_norm_new(0));
    assert_refused(ng_local_response_norm_new(3, .k = -1));
}

Suite *local_response_norm_suite(void)
{
    return suite_of("local_response_norm", set_up, tear_down, three_neighbours,
                    bad_settings_are_refused);
}
