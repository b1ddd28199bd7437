/* GatedRMSNorm: y = norm(x silu(z)) weight, or norm(x) weight silu(z), for a gate z. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* silu(z) is z for a large z, and the norm takes the scale away. */
START_TEST(a_gate_that_is_wide_open)
{
    ng_module *norm = own(ng_gated_rms_norm_new(2, .eps = NG_ZERO));
    assert_ok(ng_module_to(norm, NG_F64));
    ng_tensor *y =
        ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 3, 4), .gate = DOUBLES(NG_SHAPE(2), 100, 100));
    assert_values(y, 1e-14, 3 / sqrt(12.5), 4 / sqrt(12.5));
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 3 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0:
        return *CALL(drawn(ng_gated_rms_norm_new(4)), normal(NG_F64, NG_SHAPE(3, 4), 1),
                     .gate = normal(NG_F64, NG_SHAPE(3, 4), 2));
    case 1:
        return *CALL(drawn(ng_gated_rms_norm_new(4, .groups = 2)),
                     normal(NG_F64, NG_SHAPE(3, 4), 1), .gate = normal(NG_F64, NG_SHAPE(3, 4), 2));
    default:
        return *CALL(drawn(ng_gated_rms_norm_new(4, .norm_first = true)),
                     normal(NG_F64, NG_SHAPE(3, 4), 1), .gate = normal(NG_F64, NG_SHAPE(3, 4), 2));
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
    expect_pytorch(ng_gated_rms_norm_new(6), "catalogue.txt", "gated", "gate");
    expect_pytorch(ng_gated_rms_norm_new(6, .groups = 3), "catalogue.txt", "gated_groups", "gate");
    expect_pytorch(ng_gated_rms_norm_new(6, .norm_first = true), "catalogue.txt", "gated_first",
                   "gate");
    expect_pytorch(ng_gated_rms_norm_new(6, .norm_first = true, .groups = 2), "catalogue.txt",
                   "gated_first_groups", "gate");
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_gated_rms_norm_new(0), NG_EVALUE, "ng_gated_rms_norm_new");
    assert_fails(ng_gated_rms_norm_new(5, .groups = 2), NG_EVALUE, "ng_gated_rms_norm_new");
    assert_fails(
        ng_forward(drawn(ng_gated_rms_norm_new(5)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
        NG_EVALUE, "GatedRMSNorm");
}
END_TEST

Suite *gated_rms_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("gated_rms_norm", &tests);
    tcase_add_test(tests, a_gate_that_is_wide_open);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
