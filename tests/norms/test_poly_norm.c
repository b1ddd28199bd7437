/* PolyNorm: y = w_0 n(x^3) + w_1 n(x^2) + w_2 n(x) + b with n(x) = x / sqrt(mean(x^2) + eps). */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Of 1 and -1 each power is its own norm: (x^3 + x^2 + x) / 3, with the weights of a float. */
START_TEST(of_one_and_minus_one)
{
    ng_module *norm = in_double(ng_poly_norm_new(2, .eps = NG_ZERO));
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 1, -1)), 1e-7, 1, -1 / 3.0);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_poly_norm_new(5), "catalogue", "poly_norm");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(scaling_a_row_changes_nothing)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    expect_invariant(drawn(ng_poly_norm_new(5, .eps = NG_ZERO)), x, ng_mul_scalar(tape, x, 3));
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_poly_norm_new(0));
    assert_refused(ng_poly_norm_new(5, .eps = -1));
    assert_fails(ng_forward(drawn(ng_poly_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "PolyNorm");
}

Suite *poly_norm_suite(void)
{
    return suite_of("poly_norm", set_up, tear_down, of_one_and_minus_one,
                    value_and_gradients_are_pytorchs, scaling_a_row_changes_nothing,
                    bad_settings_are_refused);
}
