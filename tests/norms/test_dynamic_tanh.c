/* DynamicTanh: y = weight tanh(alpha x) + bias, in place of a norm. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

START_TEST(of_one_feature)
{
    ng_module *layer = in_double(ng_dynamic_tanh_new(1));
    assert_values(ng_forward(layer, tape, DOUBLES(NG_SHAPE(1), 2)), 1e-15, tanh(1));
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_dynamic_tanh_new(5), "norms", "dynamic_tanh");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(an_odd_function_without_bias)
{
    ng_module *layer = drawn(ng_dynamic_tanh_new(5, .no_affine = true));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    assert_same_bits(ng_forward(layer, tape, ng_neg(tape, x)),
                     ng_neg(tape, ng_forward(layer, tape, x)));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_dynamic_tanh_new(0));
    assert_refused(ng_dynamic_tanh_new(5, .alpha = (double)INFINITY));
    assert_fails(ng_forward(drawn(ng_dynamic_tanh_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "DynamicTanh");
}

Suite *dynamic_tanh_suite(void)
{
    return suite_of("dynamic_tanh", set_up, tear_down, of_one_feature,
                    value_and_gradients_are_pytorchs, an_odd_function_without_bias,
                    bad_settings_are_refused);
}
