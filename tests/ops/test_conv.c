/* Convolution, pooling and interpolation: PyTorch's values, worked values, threads, errors,
 * layers. */
#include "support/fixture.h"
#include "support/golden.h"

#include "tape/tape.h"

/* ---- Against PyTorch in double --------------------------------------------------------------- */

/* Sums of up to some hundred products of order 1, rounded in another order. */
#define TOLERANCE 1e-12

typedef struct {
    const char *name;
    ng_tensor *(*call)(ng_tensor *const *in);
    const char *inputs[GOLDEN_INPUTS];
} golden_row;

#define CONV(...) ng_conv2d(tape, in[0], in[1], in[2], __VA_ARGS__)
#define TRANSPOSED(...) ng_conv_transpose2d(tape, in[0], in[1], in[2], __VA_ARGS__)
#define WINDOW 3, .kernel_w = 2, .stride_h = 2, .padding_h = 2, .padding_w = 1, .dilation_w = 2
#define WITH_BIAS .inputs = {"x", "weight", "bias"}
#define NO_BIAS .inputs = {"x", "weight"}
#define ALONE .inputs = {"x"}

/* X(name of the figures, operands, a call) */
#define CASES(X)                                                                                   \
    X(conv_plain, WITH_BIAS, CONV(.groups = 1))                                                    \
    X(conv_same, WITH_BIAS, CONV(.padding = 1))                                                    \
    X(conv_pointwise, WITH_BIAS, CONV(.groups = 1))                                                \
    X(conv_pointwise_stride, WITH_BIAS, CONV(.stride = 2))                                         \
    X(conv_stride, WITH_BIAS, CONV(.stride = 2, .padding = 1))                                     \
    X(conv_dilation, WITH_BIAS, CONV(.dilation = 2, .padding = 2))                                 \
    X(conv_groups, WITH_BIAS, CONV(.groups = 3, .padding = 1))                                     \
    X(conv_depthwise, WITH_BIAS, CONV(.groups = 4, .padding = 1))                                  \
    X(conv_all, WITH_BIAS,                                                                         \
      CONV(.stride = 1, .stride_w = 2, .padding = 1, .padding_h = 2, .dilation_h = 3,              \
           .dilation_w = 2, .groups = 2))                                                          \
    X(conv_no_bias, NO_BIAS, ng_conv2d(tape, in[0], in[1], NG_NONE))                               \
    X(max_pool, ALONE, ng_max_pool2d(tape, in[0], 2))                                              \
    X(max_pool_all, ALONE,                                                                         \
      ng_max_pool2d(tape, in[0], 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .padding_h = 1,   \
                    .dilation_w = 2))                                                              \
    X(avg_pool, ALONE, ng_avg_pool2d(tape, in[0], 2))                                              \
    X(avg_pool_all, ALONE,                                                                         \
      ng_avg_pool2d(tape, in[0], 3, .kernel_w = 2, .stride_h = 2, .stride_w = 1, .padding_h = 1))  \
    X(global_avg_pool, ALONE, ng_global_avg_pool(tape, in[0]))                                     \
    X(unfold, ALONE, ng_unfold(tape, in[0], WINDOW))                                               \
    X(fold, ALONE, ng_fold(tape, in[0], 7, 8, WINDOW))                                             \
    X(line_plain, WITH_BIAS, ng_conv1d(tape, in[0], in[1], in[2]))                                 \
    X(line_all, WITH_BIAS,                                                                         \
      ng_conv1d(tape, in[0], in[1], in[2], .stride = 2, .padding = 3, .dilation = 2, .groups = 2)) \
    X(transposed_plain, WITH_BIAS, TRANSPOSED(.groups = 1))                                        \
    X(transposed_pointwise, WITH_BIAS, TRANSPOSED(.groups = 1))                                    \
    X(transposed_twice, WITH_BIAS, TRANSPOSED(.stride = 2, .padding = 1))                          \
    X(transposed_groups, WITH_BIAS, TRANSPOSED(.groups = 3, .padding = 1))                         \
    X(transposed_all, WITH_BIAS,                                                                   \
      TRANSPOSED(.stride = 2, .stride_w = 3, .padding_h = 1, .padding_w = 2, .output_padding = 1,  \
                 .output_padding_w = 2, .dilation_h = 3, .dilation_w = 2, .groups = 2))            \
    X(transposed_no_bias, NO_BIAS, ng_conv_transpose2d(tape, in[0], in[1], NG_NONE, .stride = 2))  \
    X(transposed_line, WITH_BIAS,                                                                  \
      ng_conv_transpose1d(tape, in[0], in[1], in[2], .stride = 3, .padding = 2,                    \
                          .output_padding = 1, .dilation = 2, .groups = 2))                        \
    X(size_nearest, ALONE, ng_upsample(tape, in[0], 2))                                            \
    X(size_nearest_size, ALONE, ng_interpolate(tape, in[0], NG_SHAPE(8, 3)))                       \
    X(size_nearest_line, ALONE, ng_upsample(tape, in[0], 3))                                       \
    X(size_linear, ALONE, ng_upsample(tape, in[0], 2, .mode = NG_LINEAR))                          \
    X(size_linear_size, ALONE, ng_interpolate(tape, in[0], NG_SHAPE(9, 4), .mode = NG_LINEAR))     \
    X(size_linear_line, ALONE, ng_upsample(tape, in[0], 3, .mode = NG_LINEAR))                     \
    X(size_corners, ALONE, ng_upsample(tape, in[0], 3, .mode = NG_LINEAR, .align_corners = true))  \
    X(size_corners_size, ALONE,                                                                    \
      ng_interpolate(tape, in[0], NG_SHAPE(1, 10), .mode = NG_LINEAR, .align_corners = true))

#define X(name, inputs, ...)                                                                       \
    static ng_tensor *call_##name(ng_tensor *const *in) { return __VA_ARGS__; }
CASES(X)
#undef X

/* Convolution, BatchNorm and a skip, as in make_conv.py. */
static ng_tensor *call_residual(ng_tensor *const *in)
{
    ng_tensor *y = ng_conv2d(tape, in[0], in[1], NG_NONE, .padding = 1);
    y = ng_relu(tape, ng_batch_norm(tape, y, in[2], in[3], NG_NONE, NG_NONE, .eps = 1e-5,
                                    .training = true));
    y = ng_max_pool2d(tape, ng_add(tape, in[0], y), 2);
    y = ng_silu(tape, ng_conv2d(tape, y, in[4], NG_NONE, .stride = 2, .padding = 1));
    return ng_linear(tape, ng_global_avg_pool(tape, y), in[5], NG_NONE);
}

static const golden_row rows[] = {
#define X(name, inputs, ...) {#name, call_##name, inputs},
    CASES(X)
#undef X
        {"residual", call_residual, .inputs = {"x", "first", "gamma", "beta", "second", "weight"}},
};
#define N_ROWS ((int)(sizeof rows / sizeof rows[0]))

#define expect_golden(row, prefix, name, x, tolerance)                                             \
    assert_golden(x, tolerance, "%s/%s%s", row, prefix, name)

/* The gradient of the sum of the squares of all gradients. */
static void expect_second_order(const golden_row *row, ng_tensor *y, ng_tensor *const *in, int n)
{
    ng_tensor *first[GOLDEN_INPUTS], *second[GOLDEN_INPUTS], *dy = golden("%s/dy", row->name);
    assert_ok(ng_gradients(tape, &y, 1, in, n, first, .cotangents = &dy, .record = true));
    ng_tensor *g = ng_full(tape, NG_F64, NG_SCALAR, 0);
    for (int i = 0; i < n; i++) g = ng_add(tape, g, ng_sum(tape, ng_square(tape, first[i])));
    assert_ok(ng_gradients(tape, &g, 1, in, n, second, .allow_unused = true));
    for (int i = 0; i < n; i++)
        expect_golden(row->name, "gg", row->inputs[i], second[i], 10 * TOLERANCE);
}

static void load_conv(void) { set_up(), golden_load("tests/golden/conv.txt"); }

START_TEST(values_and_gradients_are_pytorchs)
{
    const golden_row *row = &rows[_i];
    ng_tensor *in[GOLDEN_INPUTS];
    int n = 0;
    golden_inputs(row->name, row->inputs, in);
    while (n < GOLDEN_INPUTS && row->inputs[n]) ng_require_grad(in[n++]);
    ng_tensor *y = row->call(in);
    assert_golden_gradients(row->name, y, TOLERANCE, row->inputs, in);
    char squares[64];
    snprintf(squares, sizeof squares, "%s/g", row->name);
    if (golden_find(squares)) expect_second_order(row, y, in, n);
}

static ng_tensor *image(ng_shape shape) { return own(ng_zeros_new(NG_F32, shape)); }

/* ---- Worked values --------------------------------------------------------------------------- */

START_TEST(nan_stays_in_the_windows_that_see_it)
{
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(1, 1, 4, 4)));
    ng_set(x, 5, (double)NAN);
    const ng_tensor *y[] = {ng_max_pool2d(tape, x, 2), ng_avg_pool2d(tape, x, 2)};
    for (int i = 0; i < 2; i++) {
        ck_assert(isnan(ng_get(y[i], 0)));
        for (int64_t k = 1; k < 4; k++) ck_assert(ng_get(y[i], k) == 0);
    }
}

START_TEST(windows_are_a_kernel_apart_along_each_axis)
{
    ng_tensor *x = image(NG_SHAPE(1, 1, 4, 6));
    const ng_tensor *y[] = {ng_max_pool2d(tape, x, 3, .kernel_h = 2),
                            ng_avg_pool2d(tape, x, 2, .kernel_w = 3)};
    for (int i = 0; i < 2; i++) ck_assert(ng_shape_equal(ng_shape_of(y[i]), NG_SHAPE(1, 1, 2, 2)));
}

START_TEST(flatten_keeps_the_samples_apart)
{
    ng_tensor *x = image(NG_SHAPE(2, 3, 4, 5));
    ck_assert(ng_dim(ng_flatten(tape, x), 0) == 2 && ng_dim(ng_flatten(tape, x), 1) == 60);
    ck_assert_int_eq(ng_dim(ng_flatten(tape, image(NG_SHAPE(7))), 1), 1);
    ck_assert_int_eq(ng_dim(ng_flatten(tape, image(NG_SHAPE(0, 3, 2))), 1), 6);
    assert_fails(ng_flatten(tape, image(NG_SCALAR)), NG_ESHAPE);
}

/* ---- Large images, many images --------------------------------------------------------------- */

/* Convolution, pooling, unfold and fold, forward and backward, with this many threads and
 * groups. */
static void run_network(ng_dtype dtype, int64_t groups, int threads, ng_tensor **kept)
{
    ng_set_threads(threads);
    ng_tensor *x = normal(dtype, NG_SHAPE(groups == 1 ? 41 : 131, 4, 12, 10), 1);
    ng_tensor *weight = normal(dtype, NG_SHAPE(8, 4 / groups, 3, 3), 2);
    ng_tensor *bias = normal(dtype, NG_SHAPE(8), 3);
    ng_tensor *y = ng_conv2d(tape, x, weight, bias, .padding = 1, .groups = groups);
    y = ng_max_pool2d(tape, y, 3, .stride = 1, .padding = 1);
    y = ng_avg_pool2d(tape, y, 2, .stride = 1);
    y = ng_fold(tape, ng_unfold(tape, y, 3), 11, 9, 3);
    assert_ok(ng_backward_from(tape, y, y));
    kept[0] = y, kept[1] = ng_grad(x), kept[2] = ng_grad(weight), kept[3] = ng_grad(bias);
}

START_TEST(same_bits_for_any_number_of_threads)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const int64_t groups = _i < 2 ? 1 : 4;
    ng_tensor *one[4], *more[4];
    run_network(dtype, groups, 1, one);
    for (int threads = 2; threads <= 5; threads += threads - 1) {
        run_network(dtype, groups, threads, more);
        for (int i = 0; i < 4; i++) assert_same_bits(one[i], more[i]);
    }
}

/* An interpolated element depends on its two neighbours only, or on one where it falls on it. */
START_TEST(infinity_reaches_only_its_neighbours)
{
    ng_tensor *x = ng_from(tape, NG_F64, NG_SHAPE(1, 1, 4), NG_VALUES(1, 2, HUGE_VAL, 4));
    ng_tensor *y = ng_interpolate(tape, x, NG_SHAPE(7), .mode = NG_LINEAR, .align_corners = true);
    static const double expected[] = {1, 1.5, 2, HUGE_VAL, HUGE_VAL, HUGE_VAL, 4};
    for (int i = 0; i < 7; i++) ck_assert_double_eq(ng_get(y, i), expected[i]);
}

/* ---- Errors ---------------------------------------------------------------------------------- */

START_TEST(convolution_says_what_is_wrong)
{
    ng_tensor *x = image(NG_SHAPE(2, 4, 5, 5)), *flat = image(NG_SHAPE(2, 4));
    ng_tensor *weight = image(NG_SHAPE(6, 4, 3, 3)), *large = image(NG_SHAPE(6, 4, 3, 8));
    ng_tensor *bias = image(NG_SHAPE(6)), *none = NG_NONE, *line = image(NG_SHAPE(2, 4, 5));
    ng_tensor *doubles = own(ng_zeros_new(NG_F64, NG_SHAPE(6, 4, 3, 3)));
    assert_fails(ng_conv2d(tape, flat, weight, bias), NG_ESHAPE);
    assert_fails(ng_conv2d(tape, x, flat, bias), NG_ESHAPE);
    assert_fails(ng_conv2d(tape, x, image(NG_SHAPE(6, 4, 0, 3)), bias), NG_ESHAPE);
    assert_fails(ng_conv2d(tape, x, weight, flat), NG_ESHAPE);
    assert_fails(ng_conv2d(tape, x, large, bias, .padding = 1), NG_ESHAPE);
    assert_fails(ng_conv2d(tape, x, weight, bias, .dilation_h = 3), NG_ESHAPE);
    assert_fails(ng_conv2d(tape, x, weight, bias, .groups = 2), NG_ESHAPE);
    assert_fails(ng_conv2d(tape, x, weight, bias, .padding = INT32_MAX), NG_ESHAPE);
    assert_refused(ng_conv2d(tape, x, weight, bias, .groups = 3));
    assert_refused(ng_conv2d(tape, x, weight, bias, .groups = -1));
    assert_refused(ng_conv2d(tape, x, image(NG_SHAPE(3, 2, 3, 3)), none, .groups = 2));
    assert_refused(ng_conv2d(tape, x, weight, bias, .stride = -1));
    assert_refused(ng_conv2d(tape, x, weight, bias, .padding_w = -2));
    assert_refused(ng_conv2d(tape, x, weight, bias, .dilation = INT64_MAX));
    assert_fails(ng_conv2d(tape, x, doubles, bias), NG_EDTYPE);
    assert_fails(ng_conv2d(tape, x, weight, NULL), NG_ENULL);

    ng_tensor *kernel = image(NG_SHAPE(6, 4, 3));
    assert_fails(ng_conv1d(tape, flat, kernel, none), NG_ESHAPE);
    assert_fails(ng_conv1d(tape, line, flat, none), NG_ESHAPE);
    assert_fails(ng_conv1d(tape, line, image(NG_SHAPE(6, 4, 8)), none, .padding = 1), NG_ESHAPE);
    assert_fails(ng_conv1d(tape, line, kernel, image(NG_SHAPE(4))), NG_ESHAPE);
    assert_refused(ng_conv1d(tape, line, kernel, none, .stride = -1));
}

#define TRANSPOSED_BY(...) ng_conv_transpose2d(tape, x, weight, __VA_ARGS__)

START_TEST(transposed_convolution_says_what_is_wrong)
{
    ng_tensor *x = image(NG_SHAPE(2, 4, 5, 5)), *line = image(NG_SHAPE(2, 4, 5)), *none = NG_NONE;
    ng_tensor *weight = image(NG_SHAPE(4, 3, 2, 2)), *bias = image(NG_SHAPE(6));
    assert_fails(ng_conv_transpose2d(tape, line, weight, none), NG_ESHAPE);
    assert_fails(ng_conv_transpose1d(tape, x, weight, none), NG_ESHAPE);
    assert_fails(ng_conv_transpose2d(tape, x, line, none), NG_ESHAPE);
    assert_fails(ng_conv_transpose2d(tape, x, image(NG_SHAPE(8, 3, 2, 2)), none), NG_ESHAPE);
    assert_fails(ng_conv_transpose2d(tape, image(NG_SHAPE(2, 4, 0, 5)), weight, none), NG_ESHAPE);
    const ng_status shape = NG_ESHAPE, value = NG_EVALUE;
    static const char name[] = "ng_conv_transpose2d";
    assert_fails(TRANSPOSED_BY(bias), shape, name);
    assert_fails(TRANSPOSED_BY(none, .padding_w = 3), shape, name);
    assert_fails(TRANSPOSED_BY(none, .stride = INT32_MAX), shape, "elements");
    assert_ok(TRANSPOSED_BY(bias, .groups = 2));
    assert_fails(TRANSPOSED_BY(bias, .groups = 3), value, name);
    assert_fails(TRANSPOSED_BY(bias, .groups = INT64_MIN), value, name);
    assert_fails(TRANSPOSED_BY(none, .stride = 2, .output_padding = 2), value, name);
    assert_fails(TRANSPOSED_BY(none, .output_padding = 1), value, name);
    assert_fails(TRANSPOSED_BY(none, .output_padding_w = -1), value, name);
    assert_fails(TRANSPOSED_BY(none, .dilation = -1), value, name);
}

START_TEST(another_size_says_what_is_wrong)
{
    ng_tensor *x = image(NG_SHAPE(2, 4, 5, 5)), *line = image(NG_SHAPE(2, 4, 5));
    assert_fails(ng_upsample(tape, image(NG_SHAPE(2, 4)), 2), NG_ESHAPE);
    assert_fails(ng_upsample(tape, image(NG_SHAPE(2, 4, 0)), 2), NG_ESHAPE);
    assert_refused(ng_upsample(tape, x, 0));
    assert_fails(ng_upsample(tape, x, INT64_MAX), NG_ESHAPE);
    assert_refused(ng_upsample(tape, x, 2, .align_corners = true));
    assert_refused(ng_upsample(tape, x, 2, .mode = (ng_interpolation)7));
    assert_fails(ng_interpolate(tape, x, NG_SHAPE(4)), NG_ESHAPE);
    assert_fails(ng_interpolate(tape, line, NG_SHAPE(0)), NG_ESHAPE);
    assert_refused(ng_upsample_new(0));
    assert_refused(ng_upsample_new(2, .align_corners = true));
}

START_TEST(pooling_and_folding_say_what_is_wrong)
{
    ng_tensor *x = image(NG_SHAPE(2, 4, 5, 5)), *flat = image(NG_SHAPE(2, 4));
    assert_fails(ng_max_pool2d(tape, flat, 2), NG_ESHAPE);
    assert_fails(ng_max_pool2d(tape, x, 6), NG_ESHAPE);
    assert_refused(ng_max_pool2d(tape, x, 0));
    assert_refused(ng_avg_pool2d(tape, x, 3, .padding = 2));
    assert_refused(ng_avg_pool2d(tape, x, 3, .stride = -3));
    assert_fails(ng_global_avg_pool(tape, flat), NG_ESHAPE);
    assert_fails(ng_global_avg_pool(tape, image(NG_SHAPE(2, 3, 0, 1))), NG_ESHAPE);
    assert_fails(ng_global_avg_pool(tape, image(NG_SHAPE(2, 3, 1, 0))), NG_ESHAPE);
    assert_fails(ng_unfold(tape, x, 9), NG_ESHAPE);
    assert_fails(ng_fold(tape, flat, 5, 5, 2), NG_ESHAPE);
    assert_fails(ng_fold(tape, image(NG_SHAPE(1, 4, 16)), -5, 5, 2), NG_ESHAPE);
    assert_fails(ng_fold(tape, image(NG_SHAPE(1, 1, 16)), 1, 1, 1, .padding = INT32_MAX),
                 NG_ESHAPE);
}

/* ---- Layers ---------------------------------------------------------------------------------- */

START_TEST(a_layer_describes_its_window)
{
    ng_module *net = own(ng_sequential_new(
        ng_conv2d_new(4, 6, 3, .kernel_w = 5, .stride = 2, .padding_w = 2, .groups = 2),
        ng_max_pool2d_new(2), ng_avg_pool2d_new(3, .stride = 1, .padding = 1),
        ng_global_avg_pool_new(), ng_flatten_new(), ng_upsample_new(2, .mode = NG_LINEAR),
        ng_conv_transpose2d_new(4, 6, 3, .stride = 2, .output_padding_w = 1, .no_bias = true)));
    char *text = summary_of(net);
    ck_assert_ptr_nonnull(
        strstr(text, "Conv2d(4, 6, kernel=3 x 5, stride=2, padding=0 x 2, groups=2)"));
    ck_assert_ptr_nonnull(strstr(text, "MaxPool2d(kernel=2)"));
    ck_assert_ptr_nonnull(strstr(text, "AvgPool2d(kernel=3, stride=1, padding=1)"));
    ck_assert_ptr_nonnull(strstr(text, "Upsample(2, linear)"));
    ck_assert_ptr_nonnull(
        strstr(text, "ConvTranspose2d(4, 6, kernel=3, stride=2, output_padding=0 x 1, no bias)"));
    ck_assert_int_eq(ng_parameter_count(net), 6 * 2 * 3 * 5 + 6 + 4 * 6 * 9);
    free(text);
}

/* PyTorch's: U(-b, b), b = 1 / sqrt(fan_in), for weight and bias. All have a fan_in of 36. */
START_TEST(weights_are_drawn_within_their_bound)
{
    ng_module *layers[] = {own(ng_conv2d_new(8, 64, 3, .groups = 2)),
                           own(ng_conv1d_new(16, 128, 9, .groups = 4)),
                           own(ng_conv_transpose2d_new(64, 128, 3, .groups = 32))};
    const double bound = 1 / sqrt(4 * 9);
    for (int i = 0; i < 6; i++) {
        const ng_tensor *x = ng_module_find(layers[i / 2], i % 2 ? "weight" : "bias");
        double most = 0;
        for (int64_t k = 0; k < ng_size(x); k++) most = fmax(most, fabs(ng_get(x, k)));
        ck_assert(most <= bound * 1.000001 && most > 0.9 * bound);
    }
}

/* With every setting. */
START_TEST(a_layer_is_its_op)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 4, 3, 4), 3),
              *line = normal(NG_F32, NG_SHAPE(2, 4, 6), 3);
#define IS_ITS_OP(op, x, ...)                                                                      \
    do {                                                                                           \
        ng_module *layer = own(op##_new(4, 6, 3, __VA_ARGS__));                                    \
        ng_tensor *w = ng_module_find(layer, "weight"), *b = ng_module_find(layer, "bias");        \
        assert_same_bits(ng_forward(layer, tape, x), op(tape, x, w, b, __VA_ARGS__));              \
    } while (0)
    IS_ITS_OP(ng_conv_transpose2d, x, .stride_h = 2, .stride_w = 3, .padding_h = 1, .dilation_w = 2,
              .groups = 2, .output_padding_w = 2);
    IS_ITS_OP(ng_conv1d, line, .stride = 2, .padding = 1, .dilation = 2, .groups = 2);
    IS_ITS_OP(ng_conv_transpose1d, line, .stride = 3, .padding = 1, .dilation = 2, .groups = 2,
              .output_padding = 2);
#undef IS_ITS_OP
}

START_TEST(layers_refuse_options_without_sense)
{
    assert_refused(ng_conv1d_new(2, 2, 0));
    assert_refused(ng_conv_transpose2d_new(4, 6, 3, .groups = 4));
    assert_refused(ng_conv_transpose2d_new(4, 6, 3, .stride = 2, .output_padding_h = 2));
    assert_refused(ng_conv_transpose1d_new(4, 6, 3, .output_padding = 1));
    assert_refused(ng_conv2d_new(0, 2, 3));
    assert_refused(ng_conv2d_new(2, -1, 3));
    assert_refused(ng_conv2d_new(2, 2, 0));
    assert_refused(ng_conv2d_new(2, 2, 0, .kernel_h = 3));
    assert_refused(ng_conv2d_new(2, 2, 3, .stride = -1));
    assert_refused(ng_conv2d_new(4, 6, 3, .groups = 3));
    assert_refused(ng_conv2d_new(4, 6, 3, .groups = -2));
    assert_refused(ng_conv2d_new(INT64_MAX, 6, 3));
    assert_fails(ng_conv2d_new(1 << 30, 4, 1 << 15), NG_ESHAPE, "ng_module_add_parameter");
    assert_refused(ng_max_pool2d_new(0));
    assert_refused(ng_avg_pool2d_new(2, .padding_h = -1));
    assert_refused(ng_max_pool2d_new(3, .padding = 2));
    assert_refused(ng_avg_pool2d_new(4, .padding = 2, .kernel_w = 2));
    ng_module *layer = own(ng_conv2d_new(3, 2, 1));
    assert_fails(ng_forward(layer, tape, image(NG_SHAPE(2, 4, 5, 5))), NG_ESHAPE, "Conv2d");
    assert_fails(ng_forward(layer, tape, image(NG_SHAPE(3))), NG_ESHAPE, "Conv2d");
}

Suite *conv_suite(void)
{
    Suite *suite = suite_create("conv");
    TCase *tests = add_case(suite, load_conv, golden_tear_down);
    add_loops(tests, N_ROWS, values_and_gradients_are_pytorchs);
    tests = add_case(suite, set_up, tear_down);
    add_tests(tests, nan_stays_in_the_windows_that_see_it,
              windows_are_a_kernel_apart_along_each_axis, flatten_keeps_the_samples_apart,
              infinity_reaches_only_its_neighbours, convolution_says_what_is_wrong,
              transposed_convolution_says_what_is_wrong, another_size_says_what_is_wrong,
              pooling_and_folding_say_what_is_wrong, a_layer_describes_its_window,
              weights_are_drawn_within_their_bound, a_layer_is_its_op,
              layers_refuse_options_without_sense);
    add_loops(tests, 4, same_bits_for_any_number_of_threads);
    return suite;
}
