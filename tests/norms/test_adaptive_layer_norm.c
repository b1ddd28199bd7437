/* AdaptiveLayerNorm: scale and shift of xhat are computed, from x or from a condition. */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Document 001: y = C (1 - k xhat) xhat with k = 0.1 and C = 1, on [1, 2, 3, 4]. */
START_TEST(original_form)
{
    ng_module *norm = drawn(ng_ada_norm_new(4, .eps = NG_ZERO));
    const double a = 1.5 / sqrt(1.25), b = 0.5 / sqrt(1.25);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(4), 1, 2, 3, 4)), 1e-14,
                  -a * (1 + 0.1 * a), -b * (1 + 0.1 * b), b * (1 - 0.1 * b), a * (1 - 0.1 * a));
}

/* Document 001 writes k x in the place of k xhat. */
START_TEST(raw_form)
{
    ng_module *norm = drawn(ng_ada_norm_new(4, .raw = true, .eps = NG_ZERO));
    const double s = 1 / sqrt(1.25);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(4), 1, 2, 3, 4)), 1e-14, -1.5 * 0.9 * s,
                  -0.5 * 0.8 * s, 0.5 * 0.7 * s, 1.5 * 0.6 * s);
}

/* Document 001's popular form: two Linear layers make scale and shift of x itself. */
START_TEST(projected_form)
{
    ng_module *norm = drawn(ng_adaptive_layer_norm_new(4));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 4), 1);
    ng_tensor *xhat = ng_forward(drawn(ng_layer_norm_new(4, .no_affine = true)), tape, x);
    ng_tensor *gamma = ng_forward(ng_module_child(norm, 0), tape, x);
    ng_tensor *beta = ng_forward(ng_module_child(norm, 1), tape, x);
    assert_tensors_close(ng_forward(norm, tape, x), ng_add(tape, ng_mul(tape, gamma, xhat), beta),
                         1e-13);
}

/* adaLN-Zero: the Linear of the condition starts at zero. */
START_TEST(conditioned_form_starts_as_xhat)
{
    ng_module *norm = in_double(ng_adaptive_layer_norm_new(4, .condition = 2));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 4), 1), *c = normal(NG_F64, NG_SHAPE(3, 2), 2);
    ng_module *plain = drawn(ng_layer_norm_new(4, .no_affine = true, .eps = 1e-6));
    assert_tensors_close(ng_forward(norm, tape, x, .condition = c), ng_forward(plain, tape, x),
                         1e-14);
}

/* shift (0.2, 0.4), scale (0.6, 0.8) and gate (1, 1.2) of xhat (-1, 1), for the condition 2 */
START_TEST(conditioned_form_shifts_scales_and_gates)
{
    ng_module *norm =
        in_double(ng_adaptive_layer_norm_new(2, .condition = 1, .gate = true, .eps = NG_ZERO));
    ng_tensor *x = DOUBLES(NG_SHAPE(2), 4, 6), *c = DOUBLES(NG_SHAPE(1), 2);
    assert_values(ng_forward(norm, tape, x, .condition = c), 0, 0, 0); /* the gate starts shut */
    ng_tensor *linear = DOUBLES(NG_SHAPE(6, 1), 0.1, 0.2, 0.3, 0.4, 0.5, 0.6);
    ng_copy_values(ng_module_find(norm, "modulation.weight"), linear);
    assert_values(ng_forward(norm, tape, x, .condition = c), 1e-14, -1.6 + 0.2, 1.2 * (1.8 + 0.4));
    assert_refused(ng_forward(norm, tape, x));
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_ada_norm_new(5), "norms", "adanorm");
    assert_pytorch(ng_ada_norm_new(5, .differentiate = true), "norms", "adanorm_differentiated");
    assert_pytorch(ng_ada_norm_new(5, .scale = 1.3), "ops", "adanorm");
    assert_pytorch(ng_adaptive_layer_norm_new(5), "ops", "adaptive_projected");
    assert_pytorch(ng_adaptive_residual_new(ng_linear_new(4, 4), .dim = 4, .condition = 5), "norms",
                   "adaptive_residual", "condition");
}

/* DiT's block. */
START_TEST(adaptive_residual_starts_as_the_identity)
{
    ng_module *block = ng_adaptive_residual_new(ng_linear_new(4, 4), .dim = 4, .condition = 5);
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 4), 1), *c = normal(NG_F64, NG_SHAPE(3, 5), 2);
    assert_same_bits(ng_forward(in_double(block), tape, x, .condition = c), x);
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(without_eps_adanorm_ignores_shift_and_scale)
{
    ng_module *norm = drawn(ng_ada_norm_new(5, .eps = NG_ZERO));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(norm, x, ng_add_scalar(tape, ng_mul_scalar(tape, x, 3), 7));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_adaptive_layer_norm_new(0));
    assert_refused(ng_adaptive_layer_norm_new(5, .eps = -1));
    assert_refused(ng_adaptive_layer_norm_new(5, .condition = -1));
    assert_refused(ng_adaptive_layer_norm_new(5, .gate = true));
    assert_refused(ng_ada_norm_new(0));
    assert_refused(ng_ada_norm_new(5, .eps = -1));
}

Suite *adaptive_layer_norm_suite(void)
{
    return suite_of("adaptive_layer_norm", set_up, tear_down, original_form, raw_form,
                    projected_form, conditioned_form_starts_as_xhat,
                    conditioned_form_shifts_scales_and_gates, value_and_gradients_are_pytorchs,
                    adaptive_residual_starts_as_the_identity,
                    without_eps_adanorm_ignores_shift_and_scale, bad_settings_are_refused);
}
