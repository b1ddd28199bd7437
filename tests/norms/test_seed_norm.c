/* SeeDNorm: y = (weight + alpha tanh(x . beta)) x / sqrt(mean(x^2) + eps). */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* The root of the mean square of 1 and 7 is 5, x . beta is 0.1 (1 + 7). */
START_TEST(of_one_and_seven)
{
    ng_module *norm = in_double(ng_seed_norm_new(2, .eps = NG_ZERO));
    assert_ok(ng_fill(ng_module_find(norm, "beta"), 0.1));
    const double scale = 1 + tanh(0.8);
    assert_values(ng_forward(norm, tape, DOUBLES(NG_SHAPE(2), 1, 7)), 1e-14, 0.2 * scale,
                  1.4 * scale);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

START_TEST(value_and_gradients_are_pytorchs)
{
    assert_pytorch(ng_seed_norm_new(5), "catalogue", "seed_norm");
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(it_begins_as_rms_norm)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 5), 1);
    assert_tensors_close(ng_forward(in_double(ng_seed_norm_new(5)), tape, x),
                         ng_forward(in_double(ng_rms_norm_new(5)), tape, x), 1e-15);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_seed_norm_new(0));
    assert_refused(ng_seed_norm_new(5, .eps = -1));
    assert_fails(ng_forward(drawn(ng_seed_norm_new(4)), tape, normal(NG_F64, NG_SHAPE(3, 5), 1)),
                 NG_ESHAPE, "SeeDNorm");
}

Suite *seed_norm_suite(void)
{
    return suite_of("seed_norm", set_up, tear_down, of_one_and_seven,
                    value_and_gradients_are_pytorchs, it_begins_as_rms_norm,
                    bad_settings_are_refused);
}
