/* Numbers near the ends of the range and far from zero: norms, attention, softmax, losses and
 * activations. */
#include "support/fixture.h"
#include "support/support.h"
#include "tape/tape.h"
#include <float.h>

/* ---- Norms ----------------------------------------------------------------------------------
 *
 * Of x (N, C, L). In float they are compared with themselves in double. In double they are the same
 * at another place on the line of numbers and in another unit. */

typedef ng_tensor *norm_call(ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, double eps);

static ng_tensor *as_rows(ng_tensor *x) { return ng_reshape(tape, x, NG_SHAPE(-1, ng_dim(x, 2))); }
static ng_tensor *as_matrix(ng_tensor *x, ng_tensor *like)
{
    return ng_reshape(tape, x, NG_SHAPE(ng_dim(like, 1), ng_dim(like, 2)));
}
static ng_tensor *length_of_row(ng_tensor *x, int64_t count)
{
    return own(ng_full_new(ng_dtype_of(x), NG_SHAPE(count), sqrt((double)ng_dim(x, 2))));
}
#define BATCH(x) ng_batch_norm(tape, x, gamma, beta, NG_NONE, NG_NONE, .eps = eps, .training = true)

/* X(name, the axes of gamma and beta or "" without, whether a shift changes nothing, a call) */
#define NORMS(X)                                                                                   \
    X(layer_norm, "l", true, ng_layer_norm(tape, x, gamma, beta, .eps = eps))                      \
    X(rms_norm, "l", false, ng_row_norm(tape, x, gamma, beta, .eps = eps, .rms = true))            \
    X(batch_norm_of_rows, "l", true, ng_reshape(tape, BATCH(as_rows(x)), ng_shape_of(x)))          \
    X(layer_norm_of_matrices, "cl", true,                                                          \
      ng_layer_norm(tape, x, as_matrix(gamma, x), as_matrix(beta, x), .eps = eps))                 \
    X(batch_norm, "c", true, BATCH(x))                                                             \
    X(group_norm, "c", true, ng_group_norm(tape, x, gamma, beta, .groups = 2, .eps = eps))         \
    X(instance_norm, "c", true, ng_instance_norm(tape, x, gamma, beta, .eps = eps))                \
    X(channel_norm, "c", true, ng_channel_norm(tape, x, gamma, beta, .eps = eps))                  \
    X(weight_norm, "", false,                                                                      \
      ng_reshape(tape,                                                                             \
                 ng_weight_norm(tape, as_rows(x), length_of_row(x, ng_dim(x, 0) * ng_dim(x, 1))),  \
                 ng_shape_of(x)))                                                                  \
    X(scale_norm, "", false,                                                                       \
      ng_scale_norm(tape, x, length_of_row(x, 1), .eps = eps * (double)ng_dim(x, 2)))              \
    X(layer_norm_simple, "", true,                                                                 \
      ng_detach_norm(tape, x, .eps = eps, .mean_flows = true, .deviation_flows = true))            \
    X(detach_norm, "", true, ng_detach_norm(tape, x, .eps = eps))                                  \
    X(mean_flows, "", true, ng_detach_norm(tape, x, .eps = eps, .mean_flows = true))               \
    X(deviation_flows, "", true, ng_detach_norm(tape, x, .eps = eps, .deviation_flows = true))

#define X(name, axes, shifts, ...)                                                                 \
    static ng_tensor *name(ng_tensor *x, ng_tensor *gamma, ng_tensor *beta, double eps)            \
    {                                                                                              \
        return (void)gamma, (void)beta, (void)eps, __VA_ARGS__;                                    \
    }
NORMS(X)
#undef X

static const struct {
    const char *name, *axes;
    norm_call *call;
    bool shifts;
} norms[] = {
#define X(name, axes, shifts, ...) {#name, axes, name, shifts},
    NORMS(X)
#undef X
};
enum { N_NORMS = sizeof norms / sizeof *norms, NOT_DETACHED = N_NORMS - 3 };

typedef struct {
    int64_t n, c, l;
} place;
static const place sizes[] = {{4, 6, 5},   {2, 4, 300},  {300, 20, 8}, {3, 300, 8},
                              {1, 6, 768}, {2, 4, 2049}, {7, 4, 65},   {2, 4, 1037}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static ng_tensor *affine_of(int norm, place size, double mean, uint64_t seed)
{
    const char *axes = norms[norm].axes;
    const int64_t c = strchr(axes, 'c') ? size.c : 1, l = strchr(axes, 'l') ? size.l : 1;
    return normal_with(NG_F64, NG_SHAPE(c * l), mean, 0.3, seed);
}

/* y and the gradients to x, gamma and beta, by kernels or recorded. */
typedef struct {
    ng_tensor *of[4];
    int count;
} results;

static results run(int norm, ng_dtype dtype, ng_tensor *const *in, double eps, bool record)
{
    ng_tensor *x[4];
    results r = {.count = norms[norm].axes[0] ? 4 : 2};
    for (int i = 0; i < 4; i++) x[i] = ng_require_grad(own(ng_copy_new(in[i], dtype)));
    ng_tensor *y = r.of[0] = norms[norm].call(x[0], x[1], x[2], eps);
    assert_ok(y);
    assert_ok(
        ng_gradients(tape, &y, 1, x, r.count - 1, r.of + 1, .cotangents = &x[3], .record = record));
    return r;
}

/* What is compared with what is expected of dy in units of `of_dy` and x in units of `unit`: each
 * element of y within the tolerance of itself and 1; of dx, of the largest; of the others, of the
 * sum of |dy|. */
static void expect_digits(int norm, const results *actual, const results *expected, double unit,
                          double of_dy, double tolerance)
{
    static const char *const names[] = {"y", "dx", "dgamma", "dbeta"};
    for (int k = 0; k < actual->count; k++) {
        const ng_tensor *x = actual->of[k];
        const double units = k == 0 ? 1 : k == 1 ? of_dy / unit : of_dy;
        const double terms = (double)(ng_size(actual->of[0]) / ng_size(x));
        const double least = ng_dtype_of(x) == NG_F32 ? 0x1p-147 : 0x1p-1072;
        double largest = k == 1 ? 0 : 0.08 * terms;
        for (int64_t i = 0; i < ng_size(x) && k == 1; i++)
            largest = fmax(largest, fabs(ng_get(expected->of[k], i)));
        for (int64_t i = 0; i < ng_size(x); i++) {
            const double e = ng_get(expected->of[k], i) * units, a = ng_get(x, i);
            const double most = k == 0 ? 1 + fabs(e) : largest * units;
            if (isinf(a) && fabs(e) > (double)FLT_MAX) continue;
            ck_assert_msg(fabs(a - e) <= tolerance * most + least,
                          "%s of %s %s %s: element %lld is %.17g, expected %.17g", names[k],
                          ng_dtype_name(ng_dtype_of(x)), norms[norm].name,
                          ng_shape_print(ng_shape_of(x)).text, (long long)i, a, e);
        }
    }
}

typedef struct {
    double mean, deviation, eps;
} range;

static const range ranges[] = {
    {0.5, 2, 1e-5},       {1e6, 1, 1e-5},          {1e30, 1e30, 1e-5},      {3e37, 5e37, 1e-5},
    {1e-30, 1e-30, 1e-5}, {1e-30, 1e-30, NG_ZERO}, {2e-38, 1e-37, NG_ZERO}, {100, 1e-4, 1e-12},
};
enum { RANGES = sizeof ranges / sizeof *ranges };

/* Whether the norm takes numbers of this size: recorded gradients square x and cube 1 / deviation,
 * and so do the norms that detach. */
static bool takes(int norm, bool record, double deviation, double most)
{
    return (norm < NOT_DETACHED && !record) || (deviation < most && deviation > 1 / most);
}

START_TEST(norms_of_floats_keep_their_digits_at_any_size)
{
    const int norm = _i % N_NORMS;
    const range of = ranges[_i / N_NORMS];
    for (int k = 0; k < SIZES; k++) {
        const ng_shape shape = NG_SHAPE(sizes[k].n, sizes[k].c, sizes[k].l);
        ng_tensor *in[] = {normal_with(NG_F32, shape, of.mean, of.deviation, 7),
                           affine_of(norm, sizes[k], 1, 11), affine_of(norm, sizes[k], 0, 12),
                           normal_with(NG_F32, shape, 0, 0.1, 13)};
        for (int i = 1; i < 3; i++) in[i] = own(ng_copy_new(in[i], NG_F32));
        const results expected = run(norm, NG_F64, in, of.eps, false);
        for (int record = 0; record < 2; record++) {
            if (!takes(norm, record, of.deviation, 1e12)) continue;
            const results r = run(norm, NG_F32, in, of.eps, record);
            expect_digits(norm, &r, &expected, 1, 1, 1e-6);
        }
        ng_tape_reset(tape);
    }
}

/* By powers of two, as is eps. x and dy have few digits: none is lost. */
START_TEST(norms_of_doubles_are_the_same_elsewhere_and_in_other_units)
{
    static const struct {
        double shift, unit, of_dy;
    } moves[] = {{0x1p20, 1, 1},   {0x1p30, 1, 1},        {0x1p40, 1, 1},
                 {0, 0x1p100, 1},  {0, 0x1p-100, 1},      {0, 0x1p495, 1},
                 {0, 0x1p-495, 1}, {0, 0x1p495, 0x1p330}, {0, 0x1p-495, 0x1p-330}};
    for (int k = 0; k < SIZES; k++) {
        const ng_shape shape = NG_SHAPE(sizes[k].n, sizes[k].c, sizes[k].l);
        ng_tensor *in[] = {normal_with(NG_F64, shape, 0.5, 2, 7), affine_of(_i, sizes[k], 1, 11),
                           affine_of(_i, sizes[k], 0, 12), normal_with(NG_F64, shape, 0, 0.1, 13)};
        for (int64_t i = 0; i < ng_size(in[0]); i++)
            ng_set(in[0], i, rint(ng_get(in[0], i) * 1024) / 1024);
        const results expected = run(_i, NG_F64, in, 1e-5, false);
        ng_tensor *x = own(ng_copy_new(in[0], NG_F64)), *dy = own(ng_copy_new(in[3], NG_F64));
        for (size_t m = 0; m < sizeof moves / sizeof *moves; m++) {
            const double unit = moves[m].unit, of_dy = moves[m].of_dy;
            if (moves[m].shift != 0 && !norms[_i].shifts) continue;
            for (int64_t i = 0; i < ng_size(x); i++) {
                ng_set(in[0], i, ng_get(x, i) * unit + moves[m].shift);
                ng_set(in[3], i, ng_get(dy, i) * of_dy);
            }
            for (int record = 0; record < 2; record++) {
                if (!takes(_i, record, unit, 1e100)) continue;
                const results r = run(_i, NG_F64, in, 1e-5 * unit * unit, record);
                expect_digits(_i, &r, &expected, unit, of_dy, 3e-15);
            }
        }
        ng_tape_reset(tape);
    }
}

/* For rows of mean 1e6. */
START_TEST(second_order_of_norms_in_float_agrees_with_double)
{
    const place size = {4, 6, 8};
    ng_tensor *in = normal_with(NG_F32, NG_SHAPE(4, 6, 8), 1e6, 1, 7), *second[2];
    for (int k = 0; k < 2; k++) {
        const ng_dtype dtype = k ? NG_F64 : NG_F32;
        ng_tensor *x = ng_require_grad(own(ng_copy_new(in, dtype)));
        ng_tensor *gamma = own(ng_ones_new(dtype, ng_shape_of(affine_of(_i, size, 0, 1))));
        ng_tensor *y = norms[_i].call(x, gamma, ng_zeros_like(tape, gamma), 1e-5);
        ng_tensor *dy = ng_cast(tape, normal(NG_F32, ng_shape_of(y), 13), dtype);
        ng_tensor *dx = ng_gradient(tape, y, x, .cotangent = dy, .record = true);
        second[k] = ng_gradient(tape, ng_square(tape, dx), x);
        assert_ok(second[k]);
    }
    double largest = 0;
    for (int64_t i = 0; i < ng_size(in); i++) largest = fmax(largest, fabs(ng_get(second[1], i)));
    for (int64_t i = 0; i < ng_size(in); i++)
        assert_near(ng_get(second[0], i), ng_get(second[1], i), 2e-6 * largest);
}

/* Float would lose five digits of a sum of a million products. */
START_TEST(spectral_norm_takes_sigma_in_double)
{
    const int64_t n = 1000;
    ng_tensor *w = normal_with(NG_F32, NG_SHAPE(n, n), 1, 1, 7);
    ng_tensor *u = own(ng_full_new(NG_F32, NG_SHAPE(n), 1)), *v = u;
    double sigma = 0;
    for (int64_t i = 0; i < n * n; i++) sigma += ng_get(w, i);
    ng_tensor *y = ng_spectral_norm(tape, w, u, v);
    for (int64_t i = 0; i < n * n; i += 997)
        assert_near(ng_get(y, i), ng_get(w, i) / sigma, 7e-8 * fabs(ng_get(w, i)) / sigma);
    ng_tensor *dw =
        ng_gradient(tape, ng_sum(tape, y), w); /* n^2 entries: 1/sigma - sum w/sigma^2 */
    assert_near(ng_get(dw, 5), 0, 1e-12 / sigma * (double)n);
    ng_tensor *large = own(ng_full_new(NG_F32, NG_SHAPE(4, 4), 1e38)); /* sigma is 1.6e39 */
    ng_tensor *one = own(ng_full_new(NG_F32, NG_SHAPE(4), 1));
    assert_close(ng_get(ng_spectral_norm(tape, large, one, one), 3), 1.0 / 16, 1e-7);
}

/* ---- Softmax, losses, activations ------------------------------------------------------------ */

/* The gradient is the softmax, however much the value was rounded. */
START_TEST(logsumexp_of_large_numbers_has_the_gradient_of_small_ones)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double shift[] = {0, -1e4, 1e5, -1e6}; /* by which x moves without rounding */
    ng_tensor *x = own(ng_tensor_from(dtype, NG_SHAPE(3), NG_VALUES(0, 1, 0.5)));
    x = ng_require_grad(own(ng_copy_new(ng_add_scalar(tape, x, shift[_i / 2]), dtype)));
    ng_tensor *y = ng_logsumexp(tape, x);
    ng_tensor *dx = ng_gradient(tape, y, x, .record = true);
    const double sum = 1 + exp(1) + exp(0.5), tolerance = _i % 2 ? 1e-15 : 3e-7;
    assert_values(dx, tolerance, 1 / sum, exp(1) / sum, exp(0.5) / sum);
    ng_tensor *first = ng_slice(tape, dx, 0, 0, 1); /* p0 (1 - p0), -p0 p1, -p0 p2 */
    assert_values(ng_gradient(tape, first, x), 2 * tolerance, (1 - 1 / sum) / sum,
                  -exp(1) / sum / sum, -exp(0.5) / sum / sum);
}

/* For x from -10 to 10. */
START_TEST(second_order_of_activations_in_float_agrees_with_double)
{
    static ng_tensor *(*const calls[])(ng_tape *, ng_tensor *) = {ng_gelu_tanh, ng_silu, ng_sigmoid,
                                                                  ng_softplus, ng_gelu};
    ng_tensor *x = own(ng_zeros_new(NG_F32, NG_SHAPE(2001))), *second[2];
    for (int64_t i = 0; i < 2001; i++) ng_set(x, i, (double)(i - 1000) / 100 + 1e-3);
    for (int k = 0; k < 2; k++) {
        ng_tensor *at_x = ng_require_grad(own(ng_copy_new(x, k ? NG_F64 : NG_F32)));
        ng_tensor *y = ng_sum(tape, calls[_i](tape, at_x));
        ng_tensor *dx = ng_gradient(tape, y, at_x, .record = true);
        second[k] = ng_gradient(tape, ng_sum(tape, dx), at_x);
    }
    for (int64_t i = 0; i < 2001; i++)
        assert_near(ng_get(second[0], i), ng_get(second[1], i), 5 * (double)FLT_EPSILON);
}

/* The gradient is softmax - onehot, however much the value was rounded. */
START_TEST(cross_entropy_of_large_logits_has_the_gradient_of_small_ones)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double shifts[] = {0, -1e5, 1e6, 1e9},
                 shift = dtype == NG_F32 && _i / 2 == 3 ? 1e7 : shifts[_i / 2];
    ng_tensor *x =
        ng_require_grad(own(ng_tensor_from(dtype, NG_SHAPE(1, 2), NG_VALUES(shift, shift + 1))));
    ng_tensor *label = own(ng_tensor_from(NG_I64, NG_SHAPE(1), NG_VALUES(0)));
    const double p = 1 / (1 + exp(-1)), tolerance = _i % 2 ? 4e-16 : 3e-7;
    ng_tensor *loss = ng_cross_entropy(tape, x, label);
    assert_values(ng_gradient(tape, loss, x), tolerance, -p, p);
    assert_values(ng_gradient(tape, loss, x, .record = true), tolerance, -p, p);
}

static ng_tensor *swiglu_of(ng_tape *t, ng_tensor *a)
{
    return ng_swiglu(t, ng_stack(t, NG_TENSORS(a, ng_ones_like(t, a)), -1));
}

static ng_tensor *celu_of(ng_tape *t, ng_tensor *x) { return ng_celu(t, x, 0.1); }

static ng_tensor *huber_of(ng_tape *t, ng_tensor *x)
{
    return ng_huber(t, x, ng_zeros_like(t, x), .reduction = NG_EACH);
}

/* Functions whose ends are a line through 0 or a constant. */
static const struct {
    const char *name;
    ng_tensor *(*call)(ng_tape *, ng_tensor *);
    double left_slope, left, right_slope, right; /* y = slope x, or the constant */
} ends[] = {
    {"silu", ng_silu, 0, 0, 1, 0},
    {"swiglu", swiglu_of, 0, 0, 1, 0},
    {"gelu", ng_gelu, 0, 0, 1, 0},
    {"gelu_tanh", ng_gelu_tanh, 0, 0, 1, 0},
    {"softplus", ng_softplus, 0, 0, 1, 0},
    {"relu", ng_relu, 0, 0, 1, 0},
    {"hardswish", ng_hardswish, 0, 0, 1, 0},
    {"huber", huber_of, -1, 0, 1, 0},
    {"sigmoid", ng_sigmoid, 0, 0, 0, 1},
    {"tanh", ng_tanh, 0, -1, 0, 1},
    {"erf", ng_erf, 0, -1, 0, 1},
    {"erfc", ng_erfc, 0, 2, 0, 0},
    {"softsign", ng_softsign, 0, -1, 0, 1},
    {"mish", ng_mish, 0, 0, 1, 0},
    {"celu", celu_of, 0, -0.1, 1, 0},
    {"atan", ng_atan, 0, -1.5707963267948966, 0, 1.5707963267948966},
};
enum { ENDS = sizeof ends / sizeof *ends };

/* At a large x, with a dy; the gradient of the gradient is 0. */
static void check_end(int i, ng_dtype dtype, double at, double dy)
{
    const double slope = at < 0 ? ends[i].left_slope : ends[i].right_slope;
    const double y = at < 0 ? ends[i].left : ends[i].right;
    const double tolerance = dtype == NG_F32 ? 1e-7 : 1e-15;
    ng_tensor *x = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1), at)));
    ng_tensor *value = ends[i].call(tape, x), *dx;
    ng_tensor *cotangent = own(ng_full_new(dtype, ng_shape_of(value), dy));
    assert_close(ng_item(value), slope != 0 ? slope * ng_item(x) : y, tolerance);
    for (int record = 0; record < 2; record++) {
        assert_ok(
            ng_gradients(tape, &value, 1, &x, 1, &dx, .cotangents = &cotangent, .record = record));
        ck_assert_msg(fabs(ng_item(dx) - slope * dy) <= tolerance,
                      "%s slope of %s %s at %g times %g is %g, expected %g",
                      record ? "recorded" : "fused", ng_dtype_name(dtype), ends[i].name, at, dy,
                      ng_item(dx), slope * dy);
    }
    ck_assert(
        isnan(ng_item(ends[i].call(tape, own(ng_full_new(dtype, NG_SHAPE(1), (double)NAN))))));
    if (!ng_requires_grad(dx)) return; /* straight lines */
    ck_assert_msg(fabs(ng_item(ng_gradient(tape, dx, x))) <= tolerance,
                  "second slope of %s %s at %g", ng_dtype_name(dtype), ends[i].name, at);
}

START_TEST(functions_keep_their_limits_in_gradients_of_any_kind)
{
    static const double far[] = {1e17, 1e20, 1e38, 3.4e38, 1e160, 1e308, 1.7e308, (double)INFINITY};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            const ng_dtype dtype = k & 1 ? NG_F64 : NG_F32;
            check_end(_i, dtype, k & 2 ? far[i] : -far[i], k & 4 ? -10 : 1);
        }
}

/* Positive elements have no part in the gradient to the slope. */
START_TEST(prelu_of_infinity_has_no_gradient_to_the_slope)
{
    ng_tensor *slope = ng_require_grad(own(ng_full_new(NG_F32, NG_SHAPE(1), 0.25)));
    ng_tensor *x = own(ng_tensor_from(NG_F32, NG_SHAPE(3), NG_VALUES((double)INFINITY, -2, 0)));
    for (int record = 0; record < 2; record++)
        assert_values(
            ng_gradient(tape, ng_sum(tape, ng_prelu(tape, x, slope)), slope, .record = record), 0,
            -2);
}

static const struct {
    double x, t, loss, slope;
} logistic[] = {
    {(double)INFINITY, 0, (double)INFINITY, 1},
    {(double)INFINITY, 1, 0, 0},
    {-(double)INFINITY, 0, 0, 0},
    {-(double)INFINITY, 1, (double)INFINITY, -1},
    {(double)INFINITY, 0.25, (double)INFINITY, .75},
    {-(double)INFINITY, 0.25, (double)INFINITY, -.25},
    {1e30, 0, 1e30, 1},
    {1e30, 1, 0, 0},
    {-1e30, 1, 1e30, -1},
    {30, 1, 9.3576229688397e-14, -9.3576229688393e-14},
    {-30, 0, 9.3576229688397e-14, 9.3576229688393e-14},
    {0, 0.5, 0.69314718055994531, 0},
    {1e-9, 0, 0.69314718105994531, 0.50000000025},
    {-1e-30, 1, 0.69314718055994531, -0.5},
    {2, 0, 2.1269280110429727, 0.88079707797788243},
    {2, 1, 0.12692801104297250, -0.11920292202211756},
};
enum { LOGISTIC = sizeof logistic / sizeof *logistic };

START_TEST(binary_cross_entropy_of_any_logit)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double tolerance = _i % 2 ? 1e-13 : 1e-6, x = logistic[_i / 2].x;
    ng_tensor *logit = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1), x)));
    ng_tensor *target = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1), logistic[_i / 2].t)));
    ng_tensor *loss = ng_binary_cross_entropy(tape, logit, target);
    if (isinf(logistic[_i / 2].loss))
        ck_assert(isinf(ng_item(loss)) && ng_item(loss) > 0);
    else
        assert_close(ng_item(loss), logistic[_i / 2].loss, tolerance);
    for (int record = 0; record < 2; record++) {
        ng_tensor *dx = ng_gradient(tape, loss, logit, .record = record);
        assert_close(ng_item(dx), logistic[_i / 2].slope, tolerance);
        ng_tensor *dt = ng_gradient(tape, loss, target, .record = record);
        ck_assert(ng_item(dt) == -(dtype == NG_F32 ? (double)(float)x : x) ||
                  fabs(ng_item(dt) + x) <= tolerance * fabs(x));
    }
}

/* ---- Attention ---------------------------------------------------------------------------- */

/* Around the smallest x whose e^x is normal, its multiples, and up to the ends of the range. */
static const double scores[] = {
    0,    1,    -1,    88.5,    -88.375,  -88.5, -89,     -90,   -265.875, -266, -443.25,
    300,  -300, -708,  -709.75, -709.875, -710,  -745.25, -1490, 1e4,      -1e4, 1e8,
    -1e8, 1e10, -1e10, -1e11,   1e20,     -1e20, 1e30,    -1e30, 3e38,     -3e38};
enum { SCORES = sizeof scores / sizeof *scores };

/* With equal scores all keys have the same share. */
START_TEST(equal_scores_share_alike)
{
    enum { KEYS = 130, QUERIES = 35 };
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double score = scores[_i / 2], tolerance = _i % 2 ? 1e-13 : 2e-6;
    ng_tensor *q = ng_require_grad(own(ng_ones_new(dtype, NG_SHAPE(1, 1, QUERIES, 1))));
    ng_tensor *k = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1, 1, KEYS, 1), score)));
    ng_tensor *v = ng_require_grad(own(ng_ones_new(dtype, NG_SHAPE(1, 1, KEYS, 1))));
    for (int64_t i = 0; i < KEYS; i += 2) ng_set(v, i, 3);
    ng_tensor *y = ng_attention(tape, q, k, v, NG_NONE, .scale = 1);
    ng_tensor *inputs[] = {q, k, v}, *dy = own(ng_ones_new(dtype, ng_shape_of(y)));
    for (int64_t i = 0; i < QUERIES; i++) assert_close(ng_get(y, i), 2, tolerance);
    for (int record = 0; record < 2; record++) {
        ng_tensor *gradients[3];
        assert_ok(
            ng_gradients(tape, &y, 1, inputs, 3, gradients, .cotangents = &dy, .record = record));
        for (int64_t i = 0; i < QUERIES; i++)
            assert_near(ng_get(gradients[0], i), 0, tolerance * fabs(score));
        for (int64_t i = 0; i < KEYS; i++) {
            const double of_key = (double)QUERIES / (double)KEYS;
            assert_close(ng_get(gradients[1], i), i % 2 ? -of_key : of_key, tolerance);
            assert_close(ng_get(gradients[2], i), of_key, tolerance);
        }
    }
}

typedef struct {
    ng_tensor *y, *dq, *dk, *dv;
} attended;

/* Scores are shift + a b, with a and b multiples of 1/4, and exact. */
static attended attend(ng_dtype dtype, double shift, int variant, bool define)
{
    enum { QUERIES = 40, KEYS = 70 };
    ng_rng rng = ng_rng_seeded(5);
    ng_tensor *q = ng_require_grad(own(ng_ones_new(dtype, NG_SHAPE(1, 1, QUERIES, 2))));
    ng_tensor *k = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1, 1, KEYS, 2), shift)));
    ng_tensor *v = ng_require_grad(own(ng_normal_new(dtype, NG_SHAPE(1, 1, KEYS, 2), 0, 1, &rng)));
    ng_tensor *dy = own(ng_normal_new(dtype, NG_SHAPE(1, 1, QUERIES, 2), 0, 1, &rng));
    ng_tensor *mask = own(ng_ones_new(dtype, NG_SHAPE(1, KEYS)));
    for (int64_t i = 0; i < QUERIES; i++) ng_set(q, 2 * i + 1, (double)(i * 7 % 13 - 6) / 4);
    for (int64_t i = 0; i < KEYS; i++) ng_set(k, 2 * i + 1, (double)(i * 5 % 17 - 8) / 4);
    for (int64_t i = 0; i < KEYS; i += 3) ng_set(mask, i, 0);
    ng_tensor *inputs[] = {q, k, v}, *gradients[3] = {NULL};
    ng_tensor *y = ng_attention(tape, q, k, v, variant & 2 ? mask : NG_NONE, .scale = 1,
                                .causal = variant & 1, .dropout = variant & 4 ? 0.4 : 0);
    assert_ok(ng_gradients(tape, &y, 1, inputs, 3, gradients, .cotangents = &dy, .record = define));
    const ng_node *node = ng_node_of(y);
    if (define) y = node->op->definition(tape, node);
    assert_ok(y);
    return (attended){y, gradients[0], gradients[1], gradients[2]};
}

static void assert_within(const ng_tensor *actual, const ng_tensor *expected, double tolerance)
{
    for (int64_t i = 0; i < ng_size(expected); i++)
        assert_near(ng_get(actual, i), ng_get(expected, i), tolerance);
}

START_TEST(scores_far_from_zero_keep_their_digits)
{
    static const double shifts[] = {0, -88.5, -89, -265.875, 300, -300, -709.875, 1e4, -1e4, 1e5};
    const double shift = shifts[_i / 8];
    for (int k = 0; k < 2; k++) {
        const double tolerance = k ? 2e-14 : 4e-6;
        const attended expected = attend(NG_F64, shift, _i % 8, true);
        ng_tape *rest = tape;
        tape = ng_tape_new(); /* the same masks of dropout */
        const attended actual = attend(k ? NG_F64 : NG_F32, shift, _i % 8, false);
        assert_within(actual.y, expected.y, tolerance);
        assert_within(actual.dq, expected.dq, tolerance * (2 + fabs(shift)));
        assert_within(actual.dk, expected.dk, tolerance * 5);
        assert_within(actual.dv, expected.dv, tolerance * 5);
        ng_tape_free(tape);
        tape = rest;
        tear_down();
        set_up();
    }
}

Suite *numbers_suite(void)
{
    Suite *suite = suite_create("numbers");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, spectral_norm_takes_sigma_in_double,
              prelu_of_infinity_has_no_gradient_to_the_slope);
    add_loops(tests, RANGES * N_NORMS, norms_of_floats_keep_their_digits_at_any_size);
    add_loops(tests, N_NORMS, norms_of_doubles_are_the_same_elsewhere_and_in_other_units);
    add_loops(tests, NOT_DETACHED, second_order_of_norms_in_float_agrees_with_double);
    add_loops(tests, 8, logsumexp_of_large_numbers_has_the_gradient_of_small_ones,
              cross_entropy_of_large_logits_has_the_gradient_of_small_ones);
    add_loops(tests, 5, second_order_of_activations_in_float_agrees_with_double);
    add_loops(tests, ENDS, functions_keep_their_limits_in_gradients_of_any_kind);
    add_loops(tests, 2 * LOGISTIC, binary_cross_entropy_of_any_logit);
    add_loops(tests, 2 * SCORES, equal_scores_share_alike);
    add_loops(tests, 80, scores_far_from_zero_keep_their_digits);
    return suite;
}
