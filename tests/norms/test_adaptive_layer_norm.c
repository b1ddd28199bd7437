/* AdaptiveLayerNorm: scale and shift of LayerNorm's xhat are computed, from x or from a condition.
 */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Document 001: y = C (1 - k xhat) xhat with k = 0.1 and C = 1, on [1, 2, 3, 4]. */
START_TEST(original_form)
{
    ng_module *norm =
        drawn(ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_ADANORM, .eps = NG_ZERO));
    const double a = 1.5 / sqrt(1.25), b = 0.5 / sqrt(1.25);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(4), 1, 2, 3, 4)), 1e-14,
                  -a * (1 + 0.1 * a), -b * (1 + 0.1 * b), b * (1 - 0.1 * b), a * (1 - 0.1 * a));
}
END_TEST

/* Document 001's popular form: two Linear layers make scale and shift of x itself. */
START_TEST(projected_form)
{
    ng_module *norm = drawn(ng_adaptive_layer_norm_new(4));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 4), 1);
    ng_tensor *xhat = ng_forward(drawn(ng_layer_norm_new(4, .no_affine = true)), tape, x);
    ng_tensor *gamma = ng_forward(ng_module_child(norm, 0), tape, x);
    ng_tensor *beta = ng_forward(ng_module_child(norm, 1), tape, x);
    ng_tensor *y = ng_add(tape, ng_mul(tape, gamma, xhat), beta);
    assert_tensors_close(ng_forward(norm, tape, x), y, 1e-13);
}
END_TEST

/* adaLN-Zero: the Linear of the condition starts at zero. */
START_TEST(conditioned_form_starts_as_xhat)
{
    ng_module *norm =
        own(ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_CONDITIONED, .condition = 2));
    assert_ok(ng_module_to(norm, NG_F64));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 4), 1), *c = normal(NG_F64, NG_SHAPE(3, 2), 2);
    ng_module *plain = drawn(ng_layer_norm_new(4, .no_affine = true, .eps = 1e-6));
    assert_tensors_close(ng_forward(norm, tape, x, .condition = c), ng_forward(plain, tape, x),
                         1e-14);
}
END_TEST

/* ---- The gradient against finite differences ------------------------------------------------- */

enum { MODES = 5 };

static norm_call make(int mode)
{
    switch (mode) {
    case 0: return *CALL(drawn(ng_adaptive_layer_norm_new(5)), normal(NG_F64, NG_SHAPE(3, 5), 1));
    case 1:
        return *CALL(
            drawn(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_CONDITIONED, .condition = 2)),
            normal(NG_F64, NG_SHAPE(3, 5), 1), .condition = normal(NG_F64, NG_SHAPE(3, 2), 2));
    case 2:
        return *CALL(drawn(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_CONDITIONED,
                                                      .condition = 2, .gate = true)),
                     normal(NG_F64, NG_SHAPE(3, 5), 1),
                     .condition = normal(NG_F64, NG_SHAPE(3, 2), 2));
    case 3:
        return *CALL(drawn(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_ADANORM,
                                                      .differentiate = true)),
                     normal(NG_F64, NG_SHAPE(3, 5), 1));
    default:
        return *CALL(drawn(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_ADANORM,
                                                      .differentiate = true, .raw = true)),
                     normal(NG_F64, NG_SHAPE(3, 5), 1));
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
    expect_pytorch(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_ADANORM), "norms.txt",
                   "adanorm", NULL);
    expect_pytorch(
        ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_ADANORM, .differentiate = true),
        "norms.txt", "adanorm_differentiated", NULL);
    expect_pytorch(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_ADANORM, .scale = 1.3),
                   "ops.txt", "adanorm", NULL);
    expect_pytorch(ng_adaptive_layer_norm_new(5), "ops.txt", "adaptive_projected", NULL);
}
END_TEST

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(without_eps_adanorm_ignores_shift_and_scale)
{
    ng_module *norm =
        drawn(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_ADANORM, .eps = NG_ZERO));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(norm, x, ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}
END_TEST

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_fails(ng_adaptive_layer_norm_new(0), NG_EVALUE, "ng_adaptive_layer_norm_new");
    assert_fails(ng_adaptive_layer_norm_new(5, .eps = -1), NG_EVALUE, "ng_adaptive_layer_norm_new");
    assert_fails(ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_CONDITIONED), NG_EVALUE,
                 "ng_adaptive_layer_norm_new");
    assert_fails(ng_adaptive_layer_norm_new(5, .condition = 3), NG_EVALUE,
                 "ng_adaptive_layer_norm_new");
    assert_fails(ng_adaptive_layer_norm_new(5, .k = 0.2), NG_EVALUE, "ng_adaptive_layer_norm_new");
}
END_TEST

Suite *adaptive_layer_norm_suite(void)
{
    TCase *tests;
    Suite *suite = norm_suite("adaptive_layer_norm", &tests);
    tcase_add_test(tests, original_form);
    tcase_add_test(tests, projected_form);
    tcase_add_test(tests, conditioned_form_starts_as_xhat);
    tcase_add_loop_test(tests, gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, gradient_of_the_gradient_is_that_of_finite_differences, 0, MODES);
    tcase_add_loop_test(tests, the_checker_agrees, 0, MODES);
    tcase_add_test(tests, value_and_gradients_are_pytorchs);
    tcase_add_test(tests, without_eps_adanorm_ignores_shift_and_scale);
    tcase_add_test(tests, bad_settings_are_refused);
    return suite;
}
