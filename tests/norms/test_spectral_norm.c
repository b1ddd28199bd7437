/* SpectralNorm: weight = W / sigma, sigma = u^T W v the largest singular value, u and v constants.
 */
#include "norms/norm.h"

/* ---- Worked numbers -------------------------------------------------------------------------- */

/* Of the diagonal (3, 2). */
START_TEST(divides_by_the_largest_singular_value)
{
    ng_module *norm = drawn(ng_spectral_norm_new(ng_linear_new(2, 2, .no_bias = true)));
    ng_copy_values(ng_module_find(norm, "inner.weight"), DOUBLES(NG_SHAPE(2, 2), 3, 0, 0, 2));
    ng_tensor *one = DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 1);
    for (int i = 0; i < 100; i++) assert_ok(ng_forward(norm, tape, one));
    assert_tensors_close(ng_forward(norm, tape, one), DOUBLES(NG_SHAPE(2, 2), 1, 0, 0, 2 / 3.0),
                         1e-9);
}

/* ---- PyTorch --------------------------------------------------------------------------------- */

static ng_module *spectral_linear(int iterations)
{
    return ng_spectral_norm_new(ng_linear_new(3, 4), .iterations = iterations);
}

static ng_module *spectral_conv(int iterations)
{
    ng_module *conv = iterations == 1
                          ? ng_conv2d_new(3, 4, 3, .kernel_w = 2, .padding = 1)
                          : ng_conv2d_new(4, 6, 2, .kernel_w = 3, .stride = 2, .groups = 2);
    return ng_spectral_norm_new(conv, .iterations = iterations);
}

static const struct {
    const char *name;
    ng_module *(*make)(int iterations);
    int iterations;
} spectral_rows[] = {
    {"spectral_norm_once", spectral_linear, 1},
    {"spectral_norm_thrice", spectral_linear, 3},
    {"spectral_norm_conv_once", spectral_conv, 1},
    {"spectral_norm_conv_thrice", spectral_conv, 3},
};
#define SPECTRAL_ROWS ((int)(sizeof spectral_rows / sizeof spectral_rows[0]))

/* Three passes in training and one in evaluation: outputs, gradients, u and v after each. */
START_TEST(passes_in_training_and_evaluation_are_pytorchs)
{
    golden_load("tests/golden/norms.txt");
    static const golden_pair pairs[] = {
        {"inner.weight", "weight"}, {"inner.bias", "bias"}, {"u", "u"}, {"v", "v"}};
    const char *row = spectral_rows[_i].name;
    ng_module *layer = drawn(spectral_rows[_i].make(spectral_rows[_i].iterations));
    golden_set(layer, row, pairs, 4);
    for (int step = 0; step < 4; step++) {
        char figure[6][16];
        static const char *const kinds[] = {"y", "dx", "dweight", "dbias", "u", "v"};
        for (int i = 0; i < 6; i++) snprintf(figure[i], sizeof figure[i], "%s%d", kinds[i], step);
        if (step == 3) ng_eval(layer);
        ng_zero_grads(layer);
        ng_tensor *x = ng_require_grad(own(ng_copy_new(golden("%s/x%d", row, step), NG_F64))),
                  *y = ng_forward(layer, tape, x);
        assert_golden(y, 1e-11, "%s/%s", row, figure[0]);
        assert_ok(ng_backward_from(tape, y, golden("%s/dy%d", row, step)));
        assert_golden(ng_grad(x), 1e-11, "%s/%s", row, figure[1]);
        assert_golden(ng_grad(ng_module_find(layer, "inner.weight")), 1e-11, "%s/%s", row,
                      figure[2]);
        assert_golden(ng_grad(ng_module_find(layer, "inner.bias")), 1e-11, "%s/%s", row, figure[3]);
        assert_golden(ng_module_find(layer, "u"), 1e-11, "%s/%s", row, figure[4]);
        assert_golden(ng_module_find(layer, "v"), 1e-11, "%s/%s", row, figure[5]);
    }
    golden_unload();
}

/* ---- Invariances and relations --------------------------------------------------------------- */

START_TEST(a_frozen_layer_leaves_its_vectors)
{
    ng_module *norm = drawn(ng_spectral_norm_new(ng_linear_new(3, 4)));
    ng_tensor *u = own(ng_copy_new(ng_module_find(norm, "u"), NG_F64));
    ng_freeze(norm);
    assert_ok(ng_forward(norm, tape, normal(NG_F64, NG_SHAPE(5, 3), 1)));
    assert_same_bits(ng_module_find(norm, "u"), u);
}

/* ---- Bad settings ---------------------------------------------------------------------------- */

START_TEST(bad_settings_are_refused)
{
    assert_refused(ng_spectral_norm_new(ng_sequential_new(ng_linear_new(2, 2))));
    assert_refused(ng_spectral_norm_new(ng_linear_new(2, 2), .iterations = -1));
}

Suite *spectral_norm_suite(void)
{
    Suite *suite = suite_create("spectral_norm");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, divides_by_the_largest_singular_value, a_frozen_layer_leaves_its_vectors,
              bad_settings_are_refused);
    add_loops(tests, SPECTRAL_ROWS, passes_in_training_and_evaluation_are_pytorchs);
    return suite;
}
