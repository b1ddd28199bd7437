/* WeightNorm: weight = g v / |v| for each row of another layer's weight. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* g starts as |v|, so that nothing changes at first. */
START_TEST(starts_as_its_inner_layer)
{
    ng_module *norm = own(ng_weight_norm_new(ng_linear_new(3, 4))),
              *plain = own(ng_linear_new(3, 4));
    assert_ok(
        ng_copy_values(ng_module_find(plain, "weight"), ng_module_find(norm, "inner.weight")));
    assert_ok(ng_copy_values(ng_module_find(plain, "bias"), ng_module_find(norm, "inner.bias")));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(5, 3), 1);
    assert_tensors_close(ng_forward(norm, tape, x), ng_forward(plain, tape, x), 1e-5);
}

/* v = (3, 4) and g = 10 give the weight (6, 8). */
START_TEST(length_and_direction)
{
    ng_module *norm = drawn(ng_weight_norm_new(ng_linear_new(2, 1, .no_bias = true)));
    ng_copy_values(ng_module_find(norm, "inner.weight"), DOUBLES(NG_SHAPE(1, 2), 3, 4));
    ng_fill(ng_module_find(norm, "g"), 10);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 1)), 1e-14, 6, 8);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_weight_norm_new(ng_linear_new(3, 4)), "norms", "weight_norm");
    assert_pytorch(ng_weight_norm_new(ng_linear_new(3, 4), .whole = true), "norms",
                   "weight_norm_whole");
    assert_pytorch(ng_weight_norm_new(ng_conv2d_new(3, 4, 3, .kernel_w = 2, .padding = 1)), "norms",
                   "weight_norm_conv");
    assert_pytorch(
        ng_weight_norm_new(ng_conv2d_new(4, 6, 2, .kernel_w = 3, .stride = 2, .groups = 2)),
        "norms", "weight_norm_conv_groups");
    assert_pytorch(ng_weight_norm_new(ng_conv2d_new(3, 4, 2), .whole = true), "norms",
                   "weight_norm_conv_whole");
    assert_pytorch(ng_weight_norm_new(ng_linear_new(3, 4), .centered = true), "catalogue",
                   "weight_centred");
    assert_pytorch(ng_weight_norm_new(ng_linear_new(3, 4), .centered = true, .whole = true),
                   "catalogue", "weight_centred_whole");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_v_changes_nothing)
{
    ng_module *norm = drawn(ng_weight_norm_new(ng_linear_new(3, 4)));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5, 3), 1), *before = ng_forward(norm, tape, x),
              *v = ng_module_find(norm, "inner.weight");
    for (int64_t i = 0; i < ng_size(v); i++) ng_set(v, i, 3 * ng_get(v, i));
    assert_tensors_close(ng_forward(norm, tape, x), before, 1e-13);
}

/* A step along v changes its length only. */
START_TEST(gradient_is_orthogonal_to_v)
{
    ng_module *norm = drawn(ng_weight_norm_new(ng_linear_new(3, 1)));
    ng_tensor *v = ng_module_find(norm, "inner.weight");
    assert_ok(
        ng_backward(tape, ng_sum(tape, ng_forward(norm, tape, normal(NG_F64, NG_SHAPE(5, 3), 1)))));
    expect_orthogonal(v, ng_grad(v));
}

/* Rows of zeros stay 0, and the others are those of the inner layer. */
START_TEST(a_row_of_zeros_is_zero)
{
    ng_tensor *eye = DOUBLES(NG_SHAPE(3, 3), 1, 0, 0, 0, 1, 0, 0, 0, 1);
    for (int k = 0; k < 3; k++) {
        ng_module *inner = ng_linear_new(3, 4, .no_bias = true);
        ng_tensor *v = ng_module_find(inner, "weight");
        for (int i = 0; i < 12; i++) ng_set(v, i, k == 2 || i / 3 == 1 ? 0 : 1 + i);
        ng_module *norm = in_double(ng_weight_norm_new(inner, .whole = k > 0));
        ng_tensor *y = ng_forward(norm, tape, eye), *g = ng_module_find(norm, "g");
        assert_tensors_close(y, ng_transpose(tape, v, 0, 1), 1e-6);
        assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, y))));
        for (int i = 0; i < 12; i++) ck_assert(isfinite(ng_get(ng_grad(v), i)));
        for (int i = 0; i < ng_size(g); i++) ck_assert(isfinite(ng_get(ng_grad(g), i)));
        ng_tape_reset(tape);
    }
}

START_TEST(g_starts_from_a_weight_of_any_size)
{
    const double scales[] = {1e150, 1e-150};
    for (int k = 0; k < 2; k++) {
        ng_module *norm = in_double(ng_weight_norm_new(
            ng_linear_new(3, 1, .init = NG_INIT_CONSTANT, .init_value = scales[k])));
        assert_ok(ng_module_init(norm, 1));
        assert_values(ng_module_find(norm, "g"), 1e-14, scales[k] * sqrt(3));
    }
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_weight_norm_new(ng_relu_new()));
    assert_refused(ng_weight_norm_new(ng_sequential_new(ng_linear_new(2, 2))));
}

Suite *weight_norm_suite(void)
{
    return suite_of(
        "weight_norm", set_up, tear_down, starts_as_its_inner_layer, length_and_direction,
        value_and_gradients_are_pytorchs, scaling_v_changes_nothing, gradient_is_orthogonal_to_v,
        g_starts_from_a_weight_of_any_size, a_row_of_zeros_is_zero, bad_settings_are_refused);
}
