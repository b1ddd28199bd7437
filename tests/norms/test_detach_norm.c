/* DetachNorm: y = (x - mean) / sqrt(var + eps), with mean and deviation constants in the gradient.
 * Its gradient is therefore not that of finite differences of y, unless the checker holds the two
 * fixed. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* dx = dy / sqrt(var + eps): not centred, and with its part along xhat. Mean 3, variance 3.5. */
START_TEST(only_scales_the_gradient)
{
    ng_tensor *x = ng_require_grad(DOUBLES(NG_SHAPE(1, 4), 1, 2, 3, 6));
    ng_tensor *y = ng_forward(drawn(ng_detach_norm_new(4, .eps = 0.5)), tape, x);
    assert_values(y, 1e-14, -1, -0.5, 0, 1.5);
    assert_ok(ng_backward_from(tape, y, DOUBLES(NG_SHAPE(1, 4), 1, -2, 5, 3)));
    assert_values(ng_grad(x), 1e-14, 0.5, -1, 2.5, 1.5);
}

/* The op has the gradient of the layer with the same flags; with both it is that of LayerNorm. */
START_TEST(the_op_has_the_gradient_of_the_layer)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1), *dy = normal(NG_F64, NG_SHAPE(3, 5), 2);
    for (int flags = 0; flags < 4; flags++) {
        const bool mean = flags & 1, deviation = flags & 2;
        ng_module *layer =
            drawn(ng_detach_norm_new(5, .mean_flows = mean, .deviation_flows = deviation));
        ng_tensor *y = ng_detach_norm(tape, x, .mean_flows = mean, .deviation_flows = deviation);
        ng_tensor *dx = ng_gradient(tape, y, x, .cotangent = dy);
        assert_same_bits(ng_gradient(tape, ng_forward(layer, tape, x), x, .cotangent = dy), dx);
        ng_tensor *whole =
            ng_gradient(tape, ng_layer_norm(tape, x, NG_NONE, NG_NONE), x, .cotangent = dy);
        ck_assert(flags == 3 || fabs(ng_get(whole, 0) - ng_get(dx, 0)) > 1e-3);
        if (flags == 3) assert_tensors_close(whole, dx, 1e-13);
    }
    ng_tensor *row = ng_require_grad(DOUBLES(NG_SHAPE(1, 4), 1, 2, 3, 6));
    ng_tensor *slopes = DOUBLES(NG_SHAPE(1, 4), 1, -2, 5, 3);
    assert_values(
        ng_gradient(tape, ng_detach_norm(tape, row, .eps = 0.5), row, .cotangent = slopes), 1e-14,
        0.5, -1, 2.5, 1.5);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_detach_norm_new(5), "norms", "detach_norm");
    assert_pytorch(ng_detach_norm_new(5, .deviation_flows = true), "norms", "detach_norm_mean");
    assert_pytorch(ng_detach_norm_new(5, .mean_flows = true), "norms", "detach_norm_deviation");
    assert_pytorch(ng_layer_norm_new(5, .no_affine = true), "norms", "layer_norm_simple");
}

/* ---- Invariances ----------------------------------------------------------------------------- */

START_TEST(the_value_is_layer_norms)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    ng_tensor *y = ng_forward(drawn(ng_detach_norm_new(5)), tape, x);
    assert_tensors_close(y, ng_forward(drawn(ng_layer_norm_new(5, .no_affine = true)), tape, x),
                         1e-14);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_detach_norm_new(0));
    assert_refused(ng_detach_norm_new(5, .eps = -1));
}

Suite *detach_norm_suite(void)
{
    return suite_of("detach_norm", set_up, tear_down, only_scales_the_gradient,
                    the_op_has_the_gradient_of_the_layer, value_and_gradients_are_pytorchs,
                    the_value_is_layer_norms, bad_settings_are_refused);
}
