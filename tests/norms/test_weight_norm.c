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
END_TEST

/* v = (3, 4) and g = 10 give the weight (6, 8). */
START_TEST(length_and_direction)
{
    ng_module *norm = drawn(ng_weight_norm_new(ng_linear_new(2, 1, .no_bias = true)));
    ng_copy_values(ng_module_find(norm, "inner.weight"), DOUBLES(NG_SHAPE(1, 2), 3, 4));
    ng_fill(ng_module_find(norm, "g"), 10);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 1)), 1e-14, 6, 8);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 3 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0:
        return *CALL(drawn(ng_weight_norm_new(ng_linear_new(3, 4))),
                     normal(NG_F64, NG_SHAPE(5, 3), 1));
    case 1:
        return *CALL(drawn(ng_weight_norm_new(ng_linear_new(3, 4), .whole = true)),
                     normal(NG_F64, NG_SHAPE(5, 3), 1));
    default:
        return *CALL(drawn(ng_weight_norm_new(ng_linear_new(3, 4), .centred = true)),
                     normal(NG_F64, NG_SHAPE(5, 3), 1));
    }
}

/* dL/dx and dL/d(each parameter) for L = sum(c . y). */
START_TEST(gradient_is_that_of_finite_differences)
{
    const norm_call call = make(_i);
    expect_slopes(loss_of, &call);
}
END_TEST

/* The gradient of G = sum(u . dL/dx): the second order. */
START_TEST(gradient_of_the_gradient_is_that_of_finite_differences)
{
    const norm_call call = make(_i);
    expect_slopes(slope_of, &call);
}
END_TEST

START_TEST(the_checker_agrees)
{
    const norm_call call = make(_i);
    expect_checked(&call);
}
END_TEST

/* ---- PyTorch --------------------------------------------------------------------------------- */

/* To a relative error of 1e-11. */
START_TEST(value_and_gradients_are_pytorchs)
{
    expect_pytorch(ng_weight_norm_new(ng_linear_new(3, 4)), "norms.txt", "weight_norm", NULL);
    expect_pytorch(ng_weight_norm_new(ng_linear_new(3, 4), .whole = true), "norms.txt",
                   "weight_norm_whole", NULL);
    expect_pytorch(ng_weight_norm_new(ng_conv2d_new(3, 4, 3, .kernel_w = 2, .padding = 1)),
                   "norms.txt", "weight_norm_conv", NULL);
    expect_pytorch(
        ng_weight_norm_new(ng_conv2d_new(4, 6, 2, .kernel_w = 3, .stride = 2, .groups = 2)),
        "norms.txt", "weight_norm_conv_groups", NULL);
    expect_pytorch(ng_weight_norm_new(ng_conv2d_new(3, 4, 2), .whole = true), "norms.txt",
                   "weight_norm_conv_whole", NULL);
    expect_pytorch(ng_weight_norm_new(ng_linear_new(3, 4), .centred = true), "catalogue.txt",
                   "weight_centred", NULL);
    expect_pytorch(ng_weight_norm_new(ng_linear_new(3, 4), .centred = true, .whole = true),
                   "catalogue.txt", "weight_centred_whole", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_v_changes_nothing)
{
    ng_module *norm = drawn(ng_weight_norm_new(ng_linear_new(3, 4)));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5, 3), 1), *before = ng_forward(norm, tape, x),
              *v = ng_module_find(norm, "inner.weight");
    for (int64_t i = 0; i < ng_size(v); i++) ng_set(v, i, 3 * ng_get(v, i));
    assert_tensors_close(ng_forward(norm, tape, x), before, 1e-13);
}
END_TEST

START_TEST(a_row_of_zeros_stays_zero)
{
    ng_module *norm = drawn(ng_weight_norm_new(ng_linear_new(2, 1, .no_bias = true)));
    ng_fill(ng_module_find(norm, "inner.weight"), 0);
    ng_tensor *y = ng_forward(norm, tape, DOUBLES(NG_SHAPE(1, 2), 1, 2));
    assert_values(y, 0, 0);
    assert_ok(ng_backward(tape, y));
    assert_values(ng_grad(ng_module_find(norm, "inner.weight")), 0, 0, 0);
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_weight_norm_new(ng_relu_new()), NG_EVALUE, "ng_weight_norm_new");
    assert_fails(ng_weight_norm_new(ng_sequential_new(ng_linear_new(2, 2))), NG_EVALUE,
                 "ng_weight_norm_new");
}
END_TEST

Suite *weight_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("weight_norm", &tests);
    tcase_add_test(tests, starts_as_its_inner_layer);
    tcase_add_test(tests, length_and_direction);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, scaling_v_changes_nothing);
    tcase_add_test(tests, a_row_of_zeros_stays_zero);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
