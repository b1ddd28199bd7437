/* WeightStandardization: weight = (v - mean) / sqrt(var + eps) over the row of each output. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* The row (1, 3) becomes (-1, 1). */
START_TEST(one_and_three)
{
    ng_module *norm =
        drawn(ng_weight_standardization_new(ng_linear_new(2, 1, .no_bias = true), .eps = NG_ZERO));
    ng_copy_values(ng_module_find(norm, "inner.weight"), DOUBLES(NG_SHAPE(1, 2), 1, 3));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 1)), 1e-14, -1, 1);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_weight_standardization_new(ng_linear_new(3, 4)), "catalogue",
                   "weight_standardization");
    assert_pytorch(ng_weight_standardization_new(ng_conv2d_new(3, 4, 2)), "catalogue",
                   "weight_standardization_conv");
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_weight_standardization_new(ng_relu_new()));
    assert_refused(ng_weight_standardization_new(ng_linear_new(2, 2), .eps = -1));
}

Suite *weight_standardization_suite(void)
{
    return suite_of("weight_standardization", set_up, tear_down, one_and_three,
                    value_and_gradients_are_pytorchs, bad_settings_are_refused);
}
