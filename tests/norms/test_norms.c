/* The family of norms and its layers: PyTorch's and the papers' values, invariances, relations
 * between norms, running statistics, errors. */
#include "core/tensor.h"
#include "fixture.h"
#include "golden.h"
#include "kernels/kernels.h"
#include "support.h"
#include <pthread.h>
#include <unistd.h>

/* ---- What every test has -------------------------------------------------------------------- */

static ng_tensor *copy(const ng_tensor *x)
{
    return ng_require_grad(own(ng_copy_new(x, ng_dtype_of(x))));
}

static ng_module *in_double(ng_module *module)
{
    assert_ok(ng_module_to(own(module), NG_F64));
    return module;
}

static ng_tensor *output_of(ng_module *layer, ng_tensor *x)
{
    return ng_forward(in_double(layer), tape, x);
}

/* ---- Against PyTorch ------------------------------------------------------------------------- */

#define TOLERANCE 1e-11

GOLDEN_FIXTURE("tests/golden/norms.txt")

TEST(adaptive_residual_is_dits_block)
{
    static const golden_pair pairs[] = {{"modulation.weight", "modulation_weight"},
                                        {"modulation.bias", "modulation_bias"},
                                        {"inner.weight", "inner_weight"},
                                        {"inner.bias", "inner_bias"}};
    static const char *const inputs[] = {"x", "condition", NULL};
    const char *row = "adaptive_residual";
    ng_module *block =
        in_double(ng_adaptive_residual_new(ng_linear_new(4, 4), .dim = 4, .condition = 5));
    ng_tensor *in[2];
    golden_inputs(row, inputs, in);
    assert_same_bits(ng_forward(block, tape, in[0], .condition = in[1]), in[0]); /* at its start */
    golden_set(block, row, pairs, 4);
    ng_tensor *y = ng_forward(block, tape, in[0], .condition = in[1]);
    assert_golden_gradients(row, y, TOLERANCE, inputs, in);
    assert_golden_pairs(row, block, TOLERANCE, pairs, 4);
}

/* ---- What each is invariant to --------------------------------------------------------------
 *
 * The published tables (Ba, Kiros & Hinton 2016, table 1; Zhang & Sennrich 2019, table 1) are of
 * y = norm(x w^T) for x (cases, in), w (out, in), with eps = 0. */

enum { CASES = 6, IN = 5, OUT = 8 };

typedef struct {
    ng_tensor *x, *w;
} model;

static ng_tensor *none_of(const model *m)
{
    return ng_matmul(tape, m->x, m->w, .transpose_b = true);
}

static ng_tensor *full(int64_t count, double value)
{
    return own(ng_full_new(NG_F64, NG_SHAPE(count), value));
}

/* X(function, name, whether it is invariant to each of the changes below, a call): those of
 * BatchNorm, WeightNorm and LayerNorm are Ba et al.'s, those of RMSNorm and pRMSNorm are Zhang and
 * Sennrich's. */
#define MODELS(X)                                                                                  \
    X(batch, "BatchNorm", "101110",                                                                \
      ng_batch_norm(tape, none_of(m), NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = NG_ZERO,          \
                    .training = true))                                                             \
    X(weight, "WeightNorm", "101000",                                                              \
      ng_matmul(tape, m->x, ng_weight_norm(tape, m->w, full(OUT, 1.5)), .transpose_b = true))      \
    X(layer, "LayerNorm", "110101", ng_layer_norm(tape, none_of(m), NG_NONE, NG_NONE, NG_ZERO))    \
    X(rms, "RMSNorm", "100101", ng_rms_norm(tape, none_of(m), NG_NONE, NG_ZERO))                   \
    X(partial, "pRMSNorm", "100101",                                                               \
      ng_row_norm(tape, none_of(m), NG_NONE, NG_NONE, .eps = NG_ZERO, .rms = true,                 \
                  .partial = 0.5))                                                                 \
    X(scale, "ScaleNorm", "100101", ng_scale_norm(tape, none_of(m), full(1, 2), NG_ZERO))          \
    X(detach, "DetachNorm", "110101", ng_detach_norm(tape, none_of(m), .eps = NG_ZERO))            \
    X(group, "GroupNorm", "110101",                                                                \
      ng_group_norm(tape, none_of(m), NG_NONE, NG_NONE, .groups = 2, .eps = NG_ZERO))              \
    X(ghost, "BatchNorm (ghost)", "101110",                                                        \
      ng_ghost_batch_norm(tape, none_of(m), NG_NONE, NG_NONE, NG_NONE, NG_NONE, .size = 3,         \
                          .eps = NG_ZERO, .training = true))                                       \
    X(renorm, "BatchRenorm (r = 1, d = 0)", "101110",                                              \
      ng_batch_renorm(tape, none_of(m), NG_NONE, NG_NONE, full(OUT, 0), full(OUT, 1), .r_max = 1,  \
                      .d_max = NG_ZERO, .eps = NG_ZERO, .training = true))                         \
    X(dynamic_tanh, "DynamicTanh", "000000",                                                       \
      ng_dynamic_tanh(tape, none_of(m), full(1, 0.5), NG_NONE, NG_NONE))                           \
    X(derf, "Derf", "000000", output_of(ng_derf_new(OUT), none_of(m)))                             \
    X(l2, "L2Norm", "100101", output_of(ng_l2_norm_new(OUT, .eps = NG_ZERO), none_of(m)))          \
    X(nothing, "nothing", "000000", none_of(m))

#define X(function, name, invariant, ...)                                                          \
    static ng_tensor *function##_of(const model *m) { return __VA_ARGS__; }
MODELS(X)
#undef X

static const struct {
    const char *name, *invariant;
    ng_tensor *(*output)(const model *m);
} models[] = {
#define X(function, name, invariant, ...) {name, invariant, function##_of},
    MODELS(X)
#undef X
};
enum { N_MODELS = sizeof models / sizeof models[0] };

/* Scale and shift: of the whole matrix, of one of its rows, of all cases, of one case. */
typedef enum {
    MATRIX_SCALED,
    MATRIX_CENTRED,
    VECTOR_SCALED,
    DATASET_SCALED,
    DATASET_CENTRED,
    CASE_SCALED,
    CHANGES
} change;

static const char *const changes[] = {
    "re-scaling of the weight matrix", "re-centring of the weight matrix",
    "re-scaling of a weight vector",   "re-scaling of the dataset",
    "re-centring of the dataset",      "re-scaling of a single case"};

/* x (rows, IN) with rows scaled, or all shifted by one vector: w' = w + 1 shift^T. */
static void scale_rows(ng_tensor *x, int64_t first, int64_t last, double scale)
{
    for (int64_t i = first * IN; i < last * IN; i++) ng_set(x, i, scale * ng_get(x, i));
}

static void shift_rows(ng_tensor *x)
{
    for (int64_t i = 0; i < ng_size(x); i++)
        ng_set(x, i, ng_get(x, i) + 0.7 * cos(1.0 + (double)(i % IN)));
}

static model changed(const model *m, change how)
{
    const model other = {copy(m->x), copy(m->w)};
    if (how == MATRIX_SCALED) scale_rows(other.w, 0, OUT, 1.7);
    if (how == MATRIX_CENTRED) shift_rows(other.w);
    if (how == VECTOR_SCALED) scale_rows(other.w, 2, 3, 1.7);
    if (how == DATASET_SCALED) scale_rows(other.x, 0, CASES, 1.7);
    if (how == DATASET_CENTRED) shift_rows(other.x);
    if (how == CASE_SCALED) scale_rows(other.x, 2, 3, 1.7);
    return other;
}

/* The largest difference of two outputs of order 1. */
static double difference(const ng_tensor *a, const ng_tensor *b)
{
    double most = 0;
    for (int64_t i = 0; i < ng_size(a); i++) most = fmax(most, fabs(ng_get(a, i) - ng_get(b, i)));
    return most;
}

static double largest_of(const ng_tensor *x)
{
    double most = 0;
    for (int64_t i = 0; i < ng_size(x); i++) most = fmax(most, fabs(ng_get(x, i)));
    return most;
}

FIXTURE(set_up, tear_down)

LOOP_TEST(invariances_are_as_published, N_MODELS)
{
    const model m = {normal(NG_F64, NG_SHAPE(CASES, IN), 1), normal(NG_F64, NG_SHAPE(OUT, IN), 2)};
    ng_tensor *y = models[_i].output(&m);
    assert_ok(y);
    for (change how = 0; how < CHANGES; how++) {
        const model other = changed(&m, how);
        const double off = difference(y, models[_i].output(&other));
        const bool invariant = models[_i].invariant[how] == '1';
        ck_assert_msg(invariant ? off < 1e-10 : off > 1e-3,
                      "%s under %s: outputs differ by %g, expected %s", models[_i].name,
                      changes[how], off, invariant ? "0" : "a difference");
    }
}

/* ---- GroupNorm ------------------------------------------------------------------------------ */

/* The deviations are exact, although the mean is rounded by more. */
TEST(rows_of_double_keep_the_digits_that_their_elements_have)
{
    const double far = 0x1p50;
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(far, far + 1, far + 3)));
    ng_tensor *near = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(0, 1, 3)));
    assert_tensors_close(ng_layer_norm(tape, x, NG_NONE, NG_NONE, 1e-5),
                         ng_layer_norm(tape, near, NG_NONE, NG_NONE, 1e-5), 1e-14);
}

/* The promise of norm_ops.h for norms in float: 1e-5 of the result, or 1e-6 of terms that cancel,
 * which are taken to be of the size of the largest result. */
static void assert_as_promised(const ng_tensor *x, const ng_tensor *exact)
{
    const double terms = largest_of(exact);
    for (int64_t i = 0; i < ng_size(exact); i++)
        assert_near(ng_get(x, i), ng_get(exact, i),
                    fmax(1e-5 * fabs(ng_get(exact, i)), 1e-6 * terms));
}

typedef struct {
    ng_tensor *y, *dx, *dgamma, *dbeta;
} outcome;

/* In float, against LayerNorm of x with its channels last. */
TEST(channel_norm_is_layer_norm_of_channels_last)
{
    const ng_shape image = NG_SHAPE(3, 16, 9, 7), channels = NG_SHAPE(16);
    ng_tensor *x = normal(NG_F32, image, 1), *gamma = normal(NG_F32, channels, 2),
              *beta = normal(NG_F32, channels, 3), *dy = normal(NG_F32, image, 4);
    ng_tensor *x2 = copy(x), *gamma2 = copy(gamma), *beta2 = copy(beta);
    ng_tensor *y = ng_channel_norm(tape, x, gamma, beta, 1e-5);
    ng_tensor *last = ng_permute(tape, x2, NG_AXES(0, 2, 3, 1));
    ng_tensor *rows_y = ng_layer_norm(tape, last, gamma2, beta2, 1e-5);
    ng_tensor *expected = ng_permute(tape, rows_y, NG_AXES(0, 3, 1, 2));
    assert_as_promised(y, expected);
    assert_ok(ng_backward_from(tape, y, dy));
    assert_ok(ng_backward_from(tape, expected, dy));
    assert_as_promised(ng_grad(x), ng_grad(x2));
    assert_as_promised(ng_grad(gamma), ng_grad(gamma2));
    assert_as_promised(ng_grad(beta), ng_grad(beta2));
}

/* ---- Constants in the gradient -------------------------------------------------------------- */

static outcome tanh_outcome(ng_dtype dtype)
{
    const ng_shape image = NG_SHAPE(512, 700), row = NG_SHAPE(700);
    ng_tensor *x = ng_require_grad(own(ng_copy_new(normal(NG_F32, image, 1), dtype)));
    ng_tensor *alpha = ng_require_grad(own(ng_full_new(dtype, NG_SHAPE(1), 0.5)));
    ng_tensor *gamma = ng_require_grad(own(ng_copy_new(normal(NG_F32, row, 2), dtype)));
    ng_tensor *beta = own(ng_copy_new(normal(NG_F32, row, 3), dtype));
    ng_tensor *dy = own(ng_copy_new(normal(NG_F32, image, 4), dtype));
    ng_tensor *y = ng_dynamic_tanh(tape, x, alpha, gamma, beta);
    assert_ok(ng_backward_from(tape, y, dy));
    return (outcome){y, ng_grad(x), ng_grad(gamma), .dbeta = ng_grad(alpha)}; /* beta is constant */
}

TEST(dynamic_tanh_at_full_size)
{
    ng_set_threads(1);
    const outcome one = tanh_outcome(NG_F32), exact = tanh_outcome(NG_F64);
    ng_set_threads(2);
    const outcome two = tanh_outcome(NG_F32);
    ng_set_threads(0);
    assert_same_bits(one.y, two.y);
    assert_same_bits(one.dx, two.dx);
    assert_same_bits(one.dgamma, two.dgamma);
    assert_same_bits(one.dbeta, two.dbeta);
    assert_as_promised(one.y, exact.y);
    assert_as_promised(one.dx, exact.dx);
    assert_as_promised(one.dgamma, exact.dgamma);
    assert_as_promised(one.dbeta, exact.dbeta);
}

/* ---- BatchRenorm ---------------------------------------------------------------------------- */

/* During its warm-up it is BatchNorm; then its limits open, and the output depends on the running
 * statistics. */
TEST(batch_renorm_warms_up_as_batch_norm)
{
    ng_module *renorm = in_double(ng_batch_renorm_new(4, .warmup = 2, .ramp = 2, .d_max = 1));
    ng_module *batch = in_double(ng_batch_norm_new(4));
    for (int step = 0; step < 4; step++) {
        ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 4), (uint64_t)step);
        ng_tensor *y = ng_forward(renorm, tape, x), *expected = ng_forward(batch, tape, x);
        const double off = difference(y, expected);
        if (step <= 2)
            ck_assert_double_eq(off, 0);
        else
            ck_assert_double_gt(off, 1e-3);
        assert_tensors_close(ng_module_find(renorm, "running_mean"),
                             ng_module_find(batch, "running_mean"), 1e-14);
    }
    assert_close(ng_item(ng_module_find(renorm, "num_batches_tracked")), 4, 0);
}

/* Within its limits r and d turn the batch's statistics into the running ones: training gives the
 * output of evaluation. */
TEST(batch_renorm_trains_as_it_evaluates)
{
    ng_module *renorm = in_double(ng_batch_renorm_new(4, .r_max = 1e3, .d_max = 1e3));
    for (int step = 0; step < 3; step++) {
        ng_tensor *x = normal(NG_F64, NG_SHAPE(8, 4), (uint64_t)step);
        ng_eval(renorm);
        ng_tensor *evaluated = ng_forward(renorm, tape, x);
        ng_train(renorm);
        assert_tensors_close(ng_forward(renorm, tape, x), evaluated, 1e-12);
    }
    ng_freeze(renorm);
    ng_tensor *mean = copy(ng_module_find(renorm, "running_mean"));
    assert_ok(ng_forward(renorm, tape, normal(NG_F64, NG_SHAPE(8, 4), 9)));
    assert_tensors_close(ng_module_find(renorm, "running_mean"), mean, 0);
}

/* ---- Sub-batches ---------------------------------------------------------------------------- */

/* sum = sum + weight x, from nothing at first */
static ng_tensor *add_weighted(ng_tensor *sum, ng_tensor *x, double weight)
{
    ng_tensor *weighted = ng_mul_scalar(tape, x, weight);
    return sum ? ng_add(tape, sum, weighted) : weighted;
}

/* (x - mean) / sqrt(var + 1e-5) with the statistics of sub-batches of `size` samples combined: mean
 * = sum w_i mean_i, var = sum w_i (var_i + (mean_i - mean)^2), w_i = n_i / n. */
static ng_tensor *put_together(ng_tensor *x, int64_t size)
{
    const ng_axes axes = {.count = ng_rank(x) - 1, .axis = {0, 2, 3}};
    const int64_t count = ng_dim(x, 0);
    ng_tensor *mean = NULL, *var = NULL, *means[12], *vars[12];
    double weights[12];
    int parts = 0;
    for (int64_t i = 0; i < count; i += size, parts++) {
        const int64_t end = i + size < count ? i + size : count;
        ng_tensor *part = ng_slice(tape, x, 0, i, end);
        weights[parts] = (double)(end - i) / (double)count;
        means[parts] = ng_mean(tape, part, .axes = axes, .keepdim = true);
        vars[parts] = ng_variance(tape, part, .axes = axes, .keepdim = true);
        mean = add_weighted(mean, means[parts], weights[parts]);
    }
    for (int i = 0; i < parts; i++) {
        ng_tensor *between = ng_square(tape, ng_sub(tape, means[i], mean));
        var = add_weighted(var, ng_add(tape, vars[i], between), weights[i]);
    }
    ng_tensor *deviation = ng_sqrt(tape, ng_add_scalar(tape, var, 1e-5));
    return ng_div(tape, ng_sub(tape, x, mean), deviation);
}

LOOP_TEST(statistics_of_the_batch_are_those_of_its_parts_put_together, 4)
{
    const ng_shape shapes[] = {NG_SHAPE(12, 3), NG_SHAPE(7, 3, 4), NG_SHAPE(5, 3, 2, 2)};
    for (int i = 0; i < 3; i++) {
        const int64_t size = 1 + _i;
        ng_module *whole = in_double(ng_batch_norm_new(3));
        ng_tensor *x = normal(NG_F64, shapes[i], 1), *dy = normal(NG_F64, shapes[i], 2);
        ng_tensor *expected = put_together(x, size), *y = ng_forward(whole, tape, x);
        assert_tensors_close(y, expected, 1e-12);
        assert_tensors_close(ng_gradient(tape, y, x, .cotangent = dy),
                             ng_gradient(tape, expected, x, .cotangent = dy), 1e-11);
        ng_tape_reset(tape); /* before the layers it reads are gone */
    }
}

TEST(a_sub_batch_that_fails_moves_no_running_statistics)
{
    ng_module *layer = in_double(ng_batch_norm_new(3, .ghost = 1));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(9, 3), 1);
    assert_fails(ng_forward(layer, tape, x), NG_ESHAPE,
                 "training needs more than one value per channel");
    assert_values(ng_module_find(layer, "running_mean"), 0, 0, 0, 0);
    assert_values(ng_module_find(layer, "running_var"), 0, 1, 1, 1);
    assert_values(ng_module_find(layer, "num_batches_tracked"), 0, 0);
    ng_eval(layer);
    assert_ok(ng_forward(layer, tape, x));
}

/* 9 = 4 + 5, 10 = 4 + 4 + 2; with two positions 9 = 4 + 4 + 1. */
TEST(a_last_sample_of_one_value_joins_the_sub_batch_before)
{
    static const struct {
        int64_t samples, positions, last;
    } plans[] = {{9, 1, 4}, {10, 1, 8}, {9, 2, 8}};
    for (int i = 0; i < 3; i++) {
        const int64_t samples = plans[i].samples, last = plans[i].last;
        ng_tensor *x = normal(NG_F64, NG_SHAPE(samples, 3, plans[i].positions), 1);
        ng_tensor *y = ng_forward(in_double(ng_batch_norm_new(3, .ghost = 4)), tape, x);
        ng_tensor *end = ng_slice(tape, x, 0, last, samples);
        assert_same_bits(ng_slice(tape, y, 0, last, samples),
                         ng_forward(in_double(ng_batch_norm_new(3)), tape, end));
    }
}

/* ---- WeightNorm and SpectralNorm ------------------------------------------------------------ */

static ng_tensor *weight_row_lengths(ng_tensor *w)
{
    return ng_sqrt(tape, ng_sum(tape, ng_square(tape, w), .axes = NG_AXES(1)));
}

/* The largest singular value of a matrix (out, n), by power iteration in double. */
static double spectral_norm_of(const ng_tensor *w)
{
    enum { MOST = 64 };
    const int64_t out = ng_dim(w, 0), n = ng_size(w) / out;
    double v[MOST], u[MOST], length = 0;
    for (int64_t j = 0; j < n; j++) v[j] = cos(1.0 + (double)j);
    for (int step = 0; step < 2000; step++) {
        double squares = 0;
        for (int64_t i = 0; i < out; i++) u[i] = 0;
        for (int64_t i = 0; i < out * n; i++) u[i / n] += ng_get(w, i) * v[i % n];
        for (int64_t j = 0; j < n; j++) v[j] = 0;
        for (int64_t i = 0; i < out * n; i++) v[i % n] += ng_get(w, i) * u[i / n];
        for (int64_t j = 0; j < n; j++) squares += v[j] * v[j];
        length = sqrt(squares);
        for (int64_t j = 0; j < n; j++) v[j] /= length;
    }
    return sqrt(length);
}

/* The weight that a layer around a Linear without bias uses: its output for the unit matrix. */
static ng_tensor *weight_in_use(ng_module *layer, ng_dtype dtype, int64_t in)
{
    ng_tensor *eye = own(ng_zeros_new(dtype, NG_SHAPE(in, in)));
    for (int64_t i = 0; i < in; i++) ng_set(eye, i * in + i, 1);
    return ng_forward(layer, tape, eye);
}

/* Also where the weight that is read in the place of a tied one is drawn after it. */
TEST(reparameterizations_start_from_a_tied_weight)
{
    for (int round = 0; round < 2; round++) {
        ng_module *net = own(ng_sequential_new(
            ng_weight_norm_new(ng_linear_new(16, 16)), ng_spectral_norm_new(ng_linear_new(16, 16)),
            ng_linear_new(16, 16, .init = NG_INIT_XAVIER_NORMAL)));
        assert_ok(ng_module_tie(net, "0.inner.weight", "2.weight"));
        assert_ok(ng_module_tie(net, "1.inner.weight", "2.weight"));
        if (round) assert_ok(ng_module_init(net, 5));
        ng_tensor *w = ng_module_find(net, "2.weight");
        assert_tensors_close(ng_module_find(net, "0.g"), weight_row_lengths(w), 1e-6);
        ng_tensor *wv = ng_matmul(tape, w, ng_unsqueeze(tape, ng_module_find(net, "1.v"), 1));
        ng_tensor *sigma = ng_dot(tape, ng_module_find(net, "1.u"), ng_squeeze(tape, wv, 1));
        assert_close(ng_item(sigma), spectral_norm_of(w), 0.03);
    }
}

TEST(an_initialization_that_fails_says_so)
{
    ng_module *net = own(ng_spectral_norm_new(ng_linear_new(5, 4)));
    allocations_fail_after(0);
    ck_assert_int_eq(ng_module_init(net, 3), NG_ENOMEM);
    ck_assert_ptr_null(ng_module_find(net, "u"));
    allocations_succeed();
    assert_error(NG_ENOMEM, "out of memory");
    assert_ok(ng_module_find(net, "u"));
}

/* A step along v changes its length only: the gradient is orthogonal to v. */
TEST(weight_norm_separates_direction_from_length)
{
    ng_module *layer = in_double(ng_weight_norm_new(ng_linear_new(6, 4)));
    ng_tensor *y = ng_forward(layer, tape, normal(NG_F64, NG_SHAPE(3, 6), 1));
    assert_ok(ng_backward_from(tape, y, normal(NG_F64, NG_SHAPE(3, 4), 2)));
    ng_tensor *v = ng_module_find(layer, "inner.weight");
    ng_tensor *along = ng_sum(tape, ng_mul(tape, v, ng_grad(v)), .axes = NG_AXES(1));
    for (int i = 0; i < 4; i++) assert_near(ng_get(along, i), 0, 1e-13);
    ck_assert_double_gt(difference(ng_grad(v), ng_zeros_like(tape, v)), 1e-3);
}

TEST(spectral_norm_is_saved_and_keeps_its_vectors_when_adopted)
{
    char path[] = "/tmp/normgrad_spectral_XXXXXX";
    close(mkstemp(path));
    ng_module *layer = own(ng_spectral_norm_new(ng_linear_new(5, 4)));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(3, 5), 1);
    for (int i = 0; i < 5; i++) assert_ok(ng_forward(layer, tape, x));
    ng_tensor *u = copy(ng_module_find(layer, "u"));
    assert_ok(ng_module_save(layer, path));
    ng_module *again = ng_spectral_norm_new(ng_linear_new(5, 4));
    assert_ok(ng_module_load(again, path));
    ng_module *net = own(ng_sequential_new(again, ng_relu_new()));
    assert_same_bits(ng_module_find(net, "0.u"), ng_module_find(layer, "u"));
    ng_eval(net), ng_eval(layer);
    assert_same_bits(ng_forward(net, tape, x), ng_relu(tape, ng_forward(layer, tape, x)));
    assert_ok(ng_module_init(net, 3)); /* drawn anew */
    ck_assert_double_gt(difference(ng_module_find(net, "0.u"), u), 1e-3);
    remove(path);
}

/* A user's layer. */
typedef struct {
    ng_module base;
    double scale;
    ng_tensor *weight;
} scaled;

static ng_tensor *scaled_forward(ng_module *self, ng_tape *on, ng_tensor *x)
{
    const scaled *layer = (const scaled *)self;
    return ng_matmul(on, ng_mul_scalar(on, x, layer->scale), ng_parameter_value(on, layer->weight));
}

static void scaled_init(ng_module *self, ng_rng *rng)
{
    ng_fill_normal(((scaled *)self)->weight, 0, 1, rng);
}

static const ng_module_class scaled_class = {
    .name = "Scaled", .size = sizeof(scaled), .forward = scaled_forward, .init = scaled_init};

static ng_module *scaled_new(ng_shape shape)
{
    scaled *layer = (scaled *)ng_module_new(&scaled_class);
    layer->weight = ng_module_add_parameter(&layer->base, "weight", shape);
    return ng_module_built(&layer->base);
}

TEST(a_weight_without_rows_is_refused)
{
    const ng_shape shapes[] = {NG_SCALAR, NG_SHAPE(0, 3), NG_SHAPE(3, 0)};
    for (int i = 0; i < 3; i++) {
        assert_fails(ng_weight_norm_new(scaled_new(shapes[i])), NG_ESHAPE,
                     "ng_weight_norm_new: the weight of a Scaled is (");
        assert_fails(ng_spectral_norm_new(scaled_new(shapes[i])), NG_ESHAPE, "expected rows");
    }
}

/* Alone, in a network, and initialized again: u and v belong to the current weight. */
TEST(spectral_norm_works_in_evaluation_before_any_training)
{
    for (int i = 0; i < 50; i++) {
        ng_module *layer = ng_spectral_norm_new(ng_linear_new(16, 24, .no_bias = true));
        ng_module *net = own(i % 2 ? ng_sequential_new(layer) : layer);
        if (i > 1) assert_ok(ng_module_init(net, (uint64_t)i));
        ng_eval(net);
        assert_close(spectral_norm_of(weight_in_use(net, NG_F32, 16)), 1, 0.03);
    }
}

/* With a weight of zeros or at the ends of the dtype's range the weight in use is finite. With an
 * ordinary weight the layer works again. */
LOOP_TEST(spectral_norm_recovers_from_any_weight, 9)
{
    static const double scales[] = {0, 1e-30, 1e-44, 1e30, 3e37, 1e200, 1e300, 1e-300, 5e-324};
    const double scale = scales[_i];
    const ng_dtype dtype = fabs(log10(scale)) < 50 || scale == 0 ? NG_F32 : NG_F64;
    ng_module *layer = own(ng_spectral_norm_new(ng_linear_new(6, 4, .no_bias = true)));
    assert_ok(ng_module_to(layer, dtype));
    ng_tensor *weight = ng_module_find(layer, "inner.weight");
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 24; i++) ng_set(weight, i, (round ? 1 : scale) * cos(i * i));
        ng_tensor *used = NULL;
        for (int i = 0; i < 40; i++) {
            ng_tape_reset(tape);
            used = weight_in_use(layer, dtype, 6);
            ng_zero_grads(layer);
            assert_ok(ng_backward(tape, ng_sum(tape, used)));
        }
        for (int i = 0; i < 24; i++) ck_assert(isfinite(ng_get(used, i)));
        if (round || (scale > 1e-40 && scale < 1e250))
            assert_close(spectral_norm_of(used), 1, 1e-5);
        if (scale == 0 && !round) ck_assert_double_eq(largest_of(used), 0);
        for (int i = 0; i < 24; i++)
            ck_assert(isfinite(ng_get(ng_grad(weight), i)) || (scale < 1e-40 && !round));
    }
}

/* Rows of zeros stay 0, and the others are those of the inner layer. */
TEST(weight_norm_of_a_row_of_zeros_is_zero)
{
    for (int k = 0; k < 3; k++) {
        scaled *inner = (scaled *)ng_module_new(&scaled_class);
        inner->scale = 1;
        inner->weight = ng_module_add_parameter(&inner->base, "weight", NG_SHAPE(3, 4));
        ng_module *layer = ng_module_built(&inner->base);
        for (int i = 0; i < 12; i++) ng_set(inner->weight, i, k == 2 || i / 4 == 1 ? 0 : 1 + i);
        layer = ng_weight_norm_new(layer, .whole = k > 0);
        ng_tensor *y = weight_in_use(layer, NG_F32, 3), *v = ng_module_find(layer, "inner.weight");
        assert_tensors_close(y, v, 1e-6);
        assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, y))));
        for (int i = 0; i < 12; i++) ck_assert(isfinite(ng_get(ng_grad(v), i)));
        for (int i = 0; i < (k ? 1 : 3); i++)
            ck_assert(isfinite(ng_get(ng_grad(ng_module_find(layer, "g")), i)));
        ng_module_free(layer);
    }
}

TEST(weight_norm_starts_from_a_weight_of_any_size)
{
    const double scales[] = {1e150, 1e-150};
    for (int k = 0; k < 2; k++) {
        ng_module *layer = own(ng_weight_norm_new(
            ng_linear_new(3, 1, .init = NG_INIT_CONSTANT, .init_value = scales[k])));
        assert_ok(ng_module_to(layer, NG_F64));
        assert_ok(ng_module_init(layer, 1));
        assert_values(ng_module_find(layer, "g"), 1e-14, scales[k] * sqrt(3));
    }
}

TEST(weight_norm_takes_any_module_with_a_weight)
{
    scaled *own_layer = (scaled *)ng_module_new(&scaled_class);
    own_layer->scale = 2;
    own_layer->weight = ng_module_add_parameter(&own_layer->base, "weight", NG_SHAPE(3, 5));
    ng_module *layer = in_double(ng_weight_norm_new(ng_module_built(&own_layer->base)));
    for (int i = 0; i < 3; i++) ng_set(ng_module_find(layer, "g"), i, i + 1);
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 3), 1);
    ng_tensor *w =
        ng_weight_norm(tape, ng_module_find(layer, "inner.weight"), ng_module_find(layer, "g"));
    assert_tensors_close(ng_forward(layer, tape, x), ng_matmul(tape, ng_mul_scalar(tape, x, 2), w),
                         1e-14);
    ck_assert(ng_check_module(layer, &x, 1, .order = 2).passed);
}

/* ---- One module, several threads ------------------------------------------------------------ */

typedef struct {
    ng_module *net;
    const ng_tensor *x, *expected;
    int wrong;
} reader;

/* Runs forward passes on a tape of its own; counts results that differ. */
static void *read_often(void *argument)
{
    reader *r = argument;
    ng_tape *own_tape = ng_tape_new();
    ng_tensor *x = ng_copy_new(r->x, NG_F32);
    if (own_tape) ng_tape_set_recording(own_tape, false);
    for (int i = 0; i < 500; i++) {
        const ng_tensor *y = ng_forward(r->net, own_tape, x);
        const size_t bytes = (size_t)r->expected->size * sizeof(float);
        r->wrong += !y || memcmp(y->data, r->expected->data, bytes) != 0;
        ng_tape_reset(own_tape);
    }
    ng_tensor_free(x), ng_tape_free(own_tape);
    return NULL;
}

TEST(a_network_in_evaluation_serves_several_threads)
{
    enum { READERS = 4 };
    ng_module *net = own(ng_sequential_new(
        ng_weight_norm_new(ng_linear_new(6, 8)), ng_batch_norm_new(8), ng_gelu_new(),
        ng_spectral_norm_new(ng_linear_new(8, 8)), ng_layer_norm_new(8),
        ng_weight_norm_new(ng_linear_new(8, 5), .whole = true)));
    ng_eval(net);
    ng_tensor *x = normal(NG_F32, NG_SHAPE(3, 6), 1);
    const ng_tensor *expected = ng_forward(net, tape, x);
    assert_ok(expected);
    reader readers[READERS];
    pthread_t threads[READERS];
    for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){net, x, expected, 0};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_often, &readers[i]), 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(readers[i].wrong, 0);
    }
}

/* ---- Errors --------------------------------------------------------------------------------- */

TEST(ops_say_what_is_wrong)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 6, 3), 1), *two = normal(NG_F32, NG_SHAPE(2), 2);
    ng_tensor *six = normal(NG_F32, NG_SHAPE(6), 3), *one = normal(NG_F32, NG_SHAPE(1), 4);
    ng_tensor *buffer = own(ng_ones_new(NG_F32, NG_SHAPE(6)));
    ng_tensor *other = own(ng_ones_new(NG_F32, NG_SHAPE(6)));
    assert_refused(ng_group_norm(tape, x, NG_NONE, NG_NONE, .groups = 4),
                   "ng_group_norm: groups is 4, expected a divisor of 6 channels");
    assert_refused(ng_group_norm(tape, x, NG_NONE, NG_NONE), "groups is 0");
    assert_fails(ng_group_norm(tape, x, two, NG_NONE, .groups = 2), NG_ESHAPE,
                 "ng_group_norm: gamma of shape (2,), expected (6,)");
    assert_fails(ng_group_norm(tape, x, NG_NONE, NULL, .groups = 2), NG_ENULL, "beta is NULL");
    assert_refused(ng_group_norm(tape, x, NG_NONE, NG_NONE, .groups = 2, .eps = -1), "eps is -1");
    assert_fails(ng_instance_norm(tape, six, NG_NONE, NG_NONE, 1e-5), NG_ESHAPE,
                 "ng_instance_norm: x of shape (6,), expected (N, C, ...)");
    assert_fails(ng_channel_norm(tape, x, NG_NONE, two, 1e-5), NG_ESHAPE,
                 "ng_channel_norm: beta of shape (2,), expected (6,)");
    assert_fails(ng_scale_norm(tape, x, two, NG_ZERO), NG_ESHAPE,
                 "ng_scale_norm: g of shape (2,), expected (1,)");
    assert_fails(ng_dynamic_tanh(tape, x, one, two, NG_NONE), NG_ESHAPE,
                 "ng_dynamic_tanh: gamma of shape (2,), expected (3,)");
    assert_refused(ng_detach_norm(tape, x, .eps = (double)NAN), "ng_detach_norm: eps is ");
    assert_refused(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, buffer, buffer, .training = true),
                   "ng_batch_renorm: running_mean and running_deviation are one tensor");
    assert_refused(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, buffer, other, .r_max = 0.5,
                                   .d_max = NG_ZERO, .training = true),
                   "ng_batch_renorm: r_max is 0.5");
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, buffer, NULL), NG_ENULL,
                 "running_deviation is NULL");
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, six, buffer), NG_EGRAD,
                 "running_mean requires a gradient, expected a buffer");
    assert_fails(ng_batch_renorm(tape, six, NG_NONE, NG_NONE, buffer, buffer), NG_ESHAPE,
                 "expected (N, C, ...)");
    assert_refused(
        ng_ghost_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
        "ng_ghost_batch_norm: size is 0, expected a positive number of samples");
    assert_fails(ng_weight_norm(tape, x, six), NG_ESHAPE,
                 "ng_weight_norm: g of shape (6,), expected (2,) for a tensor of shape (2, 6, 3)");
    assert_fails(ng_spectral_norm(tape, x, six, two), NG_ESHAPE,
                 "ng_spectral_norm: u of shape (6,)");
}

TEST(layers_say_what_is_wrong)
{
    const ng_status value = NG_EVALUE;
    assert_fails(ng_group_norm_new(4, 6), value, "groups is 4, expected a divisor of 6 channels");
    assert_fails(ng_group_norm_new(0, 6), value, "groups is 0");
    assert_fails(ng_instance_norm_new(0), value, "ng_instance_norm_new: channels is 0");
    assert_fails(ng_scale_norm_new(-1), value, "ng_scale_norm_new: dim is -1");
    assert_fails(ng_detach_norm_new(3, .eps = -1), value, "ng_detach_norm_new: eps is -1");
    assert_fails(ng_dynamic_tanh_new(3, .alpha = HUGE_VAL), value, "alpha is inf");
    assert_fails(ng_local_response_norm_new(0), value, "ng_local_response_norm_new: size is 0");
    assert_fails(ng_local_response_norm_new(3, .k = -1), value,
                 "ng_local_response_norm_new: k is -1");
    assert_fails(ng_local_response_norm_new(3, .alpha = -0.5), value, "alpha is -0.5");
    assert_fails(ng_local_response_norm_new(3, .beta = -0.5), value, "beta is -0.5");
    assert_fails(ng_batch_renorm_new(3, .r_max = 0.5), value, "r_max is 0.5");
    assert_fails(ng_batch_renorm_new(3, .warmup = -1), value, "warmup is -1");
    assert_fails(ng_batch_norm_new(3, .ghost = -1), value, "ghost is -1");
    assert_fails(ng_batch_norm_new(3, .ghost = 2, .cumulative = true), value,
                 "both .ghost and .cumulative");
    assert_fails(ng_layer_norm_new(3, .channels_first = true, .unbiased = true), value,
                 "both .channels_first and .unbiased");
    assert_fails(ng_adaptive_residual_new(ng_relu_new(), .dim = 3), value, "condition is 0");
    assert_fails(ng_weight_norm_new(ng_relu_new()), value,
                 "ng_weight_norm_new: a ReLU has no parameter \"weight\" of its own");
    assert_fails(ng_weight_norm_new(ng_lstm_new(2, 2)), value,
                 "ng_weight_norm_new: a LSTM has no parameter \"weight\" of its own");
    assert_fails(ng_spectral_norm_new(ng_sequential_new(ng_linear_new(2, 2))), value,
                 "a Sequential has no parameter \"weight\" of its own");
    assert_fails(ng_spectral_norm_new(ng_linear_new(2, 2), .iterations = -1), value,
                 "iterations is -1");
    assert_fails(ng_weight_norm_new(NULL), NG_ENULL, "ng_weight_norm_new: inner is NULL");

    ng_tensor *flat = normal(NG_F32, NG_SHAPE(2, 3), 1), *wide = normal(NG_F32, NG_SHAPE(2, 4), 2);
    ng_tensor *row = normal(NG_F32, NG_SHAPE(3), 3);
    const struct {
        ng_module *layer;
        ng_tensor *x;
        const char *message;
    } uses[] = {
        {ng_instance_norm_new(3), flat, "InstanceNorm: x is (2, 3), expected more than one pos"},
        {ng_group_norm_new(3, 3), wide, "GroupNorm: x is (2, 4), expected (N, 3, ...)"},
        {ng_scale_norm_new(3), wide, "ScaleNorm: x is (2, 4), expected its last dimension"},
        {ng_detach_norm_new(3), wide, "DetachNorm: x is (2, 4)"},
        {ng_dynamic_tanh_new(3), wide, "DynamicTanh: x is (2, 4)"},
        {ng_local_response_norm_new(3), row, "ng_local_response_norm: x is (3,), expected (N, C"},
        {ng_batch_renorm_new(3), wide, "BatchRenorm: x is (2, 4), expected (N, 3, ...)"},
        {ng_layer_norm_new(3, .channels_first = true), wide, "LayerNorm: x is (2, 4), expected (N"},
        {ng_weight_norm_new(ng_linear_new(3, 2)), wide, "ng_linear"},
    };
    for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
        assert_fails(ng_forward(uses[i].layer, tape, uses[i].x), NG_ESHAPE, uses[i].message);
        ng_module_free(uses[i].layer);
    }
    ng_module *block = own(ng_adaptive_residual_new(ng_linear_new(3, 2), .dim = 3, .condition = 4));
    assert_fails(ng_forward(block, tape, flat, .condition = wide), NG_ESHAPE,
                 "AdaptiveResidual: inner turned (2, 3) into (2, 2), expected the same shape");
}
