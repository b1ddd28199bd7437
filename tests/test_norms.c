/* The family of norms: against PyTorch and the papers' formulas (tests/golden/norms.txt), what each
 * is invariant to, what training leaves behind, and errors. Derivatives are the op table's and the
 * checker's. */
#include "core/tensor.h"
#include "fixture.h"
#include "golden.h"
#include "kernels/kernels.h"
#include "support.h"
#include <pthread.h>
#include <unistd.h>

/* ---- What every test has -------------------------------------------------------------------- */

static ng_tensor *normal(ng_dtype dtype, ng_shape shape, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    return ng_require_grad(own(ng_normal_new(dtype, shape, 0.5, 1.5, &rng)));
}

static ng_tensor *copy(const ng_tensor *x)
{
    return ng_require_grad(own(ng_copy_new(x, ng_dtype_of(x))));
}

static ng_module *in_double(ng_module *module)
{
    assert_ok(module);
    assert_ok(ng_module_to(module, NG_F64));
    return module;
}

/* ---- Against PyTorch and the papers --------------------------------------------------------- */

#define TOLERANCE 1e-11
#define MAX_INPUTS 6

typedef struct golden_row golden_row;
struct golden_row {
    const char *name;
    ng_tensor *(*call)(ng_tensor *const *in, const golden_row *row);
    const char *inputs[MAX_INPUTS]; /* those with a figure d<name> have a gradient */
    int64_t count;                  /* of groups; of samples in a sub-batch */
    bool flag;
};

#define CALL(name) static ng_tensor *call_##name(ng_tensor *const *in, const golden_row *row)

CALL(group) { return ng_group_norm(tape, in[0], in[1], in[2], .groups = row->count, .eps = 1e-5); }

CALL(instance) { return (void)row, ng_instance_norm(tape, in[0], in[1], in[2], 1e-5); }

CALL(instance_plain) { return (void)row, ng_instance_norm(tape, in[0], NG_NONE, NG_NONE, 1e-5); }

/* A layer whose tensors are set by name to those given, and dropped at the end of the test. */
static ng_module *layers[4];
static int n_layers;

static ng_module *keep(ng_module *layer) { return layers[n_layers++] = in_double(layer); }

static void drop_layers(void)
{
    while (n_layers > 0) ng_module_free(layers[--n_layers]);
}

CALL(linear_weight)
{
    (void)row;
    return ng_linear(tape, in[0], ng_weight_norm(tape, in[1], in[2]), in[3]);
}

CALL(conv_weight)
{
    ng_tensor *weight = ng_weight_norm(tape, in[1], in[2]);
    const int64_t padding = row->flag ? 1 : 0, groups = row->count > 0 ? row->count : 1;
    return ng_conv2d(tape, in[0], weight, in[3], .stride = groups, .padding = padding,
                     .groups = groups);
}

CALL(scale) { return (void)row, ng_scale_norm(tape, in[0], in[1], 0); }

CALL(dynamic_tanh) { return (void)row, ng_dynamic_tanh(tape, in[0], in[1], in[2], in[3]); }

CALL(detach) { return (void)row, ng_forward(keep(ng_detach_norm_new(5)), tape, in[0]); }

CALL(detach_mean)
{
    (void)row;
    return ng_forward(keep(ng_detach_norm_new(5, .deviation_flows = true)), tape, in[0]);
}

CALL(detach_deviation)
{
    (void)row;
    return ng_forward(keep(ng_detach_norm_new(5, .mean_flows = true)), tape, in[0]);
}

CALL(simple)
{
    (void)row;
    return ng_forward(keep(ng_layer_norm_new(5, .no_affine = true)), tape, in[0]);
}

CALL(adanorm)
{
    ng_module *layer = keep(
        ng_adaptive_layer_norm_new(5, .form = NG_ADAPTIVE_ADANORM, .differentiate = row->flag));
    return ng_forward(layer, tape, in[0]);
}

CALL(renorm)
{
    const ng_tensor *limits = golden("%s/limits", row->name);
    return ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .momentum = 0.1,
                           .r_max = ng_get(limits, 0), .d_max = ng_exactly(ng_get(limits, 1)),
                           .training = true);
}

CALL(renorm_eval) { return (void)row, ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4]); }

CALL(ghost)
{
    return ng_ghost_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .size = row->count,
                               .eps = 1e-5, .training = true);
}

/* DiT's block with the parts of its Linears as given. */
CALL(adaptive_residual)
{
    (void)row;
    ng_tensor *modulation = ng_linear(tape, ng_silu(tape, in[1]), in[2], in[3]);
    ng_tensor *xhat = ng_layer_norm(tape, in[0], NG_NONE, NG_NONE, 1e-6);
    ng_tensor *scale = ng_add_scalar(tape, ng_slice(tape, modulation, -1, 4, 8), 1);
    ng_tensor *h = ng_add(tape, ng_mul(tape, xhat, scale), ng_slice(tape, modulation, -1, 0, 4));
    ng_tensor *branch = ng_linear(tape, h, in[4], in[5]);
    return ng_add(tape, in[0], ng_mul(tape, ng_slice(tape, modulation, -1, 8, 12), branch));
}

CALL(channels) { return (void)row, ng_channel_norm(tape, in[0], in[1], in[2], 1e-5); }

#define AFFINE .inputs = {"x", "gamma", "beta"}
#define RUNNING .inputs = {"x", "gamma", "beta", "mean", "deviation"}
#define OF_GROUPS(groups, shape)                                                                   \
    {                                                                                              \
        "group_norm_" #groups "_" shape, call_group, AFFINE, .count = groups                       \
    }
#define RENORM(shape)                                                                              \
    {"batch_renorm_tight_" shape, call_renorm, RUNNING},                                           \
        {"batch_renorm_wide_" shape, call_renorm, RUNNING},                                        \
        {"batch_renorm_none_" shape, call_renorm, RUNNING},                                        \
    {                                                                                              \
        "batch_renorm_eval_" shape, call_renorm_eval, RUNNING                                      \
    }

static const golden_row rows[] = {
    OF_GROUPS(1, "features"),
    OF_GROUPS(2, "features"),
    OF_GROUPS(3, "features"),
    OF_GROUPS(1, "1d"),
    OF_GROUPS(2, "1d"),
    OF_GROUPS(3, "1d"),
    OF_GROUPS(1, "2d"),
    OF_GROUPS(2, "2d"),
    OF_GROUPS(3, "2d"),
    {"instance_norm_1d", call_instance, AFFINE},
    {"instance_norm_2d", call_instance, AFFINE},
    {"instance_norm_plain_1d", call_instance_plain, .inputs = {"x"}},
    {"instance_norm_plain_2d", call_instance_plain, .inputs = {"x"}},
    {"channel_norm_1d", call_channels, AFFINE},
    {"channel_norm_2d", call_channels, AFFINE},
    {"weight_norm", call_linear_weight, .inputs = {"x", "v", "g", "bias"}},
    {"weight_norm_whole", call_linear_weight, .inputs = {"x", "v", "g", "bias"}},
    {"weight_norm_conv", call_conv_weight, .inputs = {"x", "v", "g", "bias"}, .flag = true},
    {"weight_norm_conv_groups", call_conv_weight, .inputs = {"x", "v", "g", "bias"}, .count = 2},
    {"weight_norm_conv_whole", call_conv_weight, .inputs = {"x", "v", "g", "bias"}},
    {"scale_norm", call_scale, .inputs = {"x", "g"}},
    {"dynamic_tanh", call_dynamic_tanh, .inputs = {"x", "alpha", "gamma", "beta"}},
    {"detach_norm", call_detach, .inputs = {"x"}},
    {"detach_norm_mean", call_detach_mean, .inputs = {"x"}},
    {"detach_norm_deviation", call_detach_deviation, .inputs = {"x"}},
    {"layer_norm_simple", call_simple, .inputs = {"x"}},
    {"adanorm", call_adanorm, .inputs = {"x"}},
    {"adanorm_differentiated", call_adanorm, .inputs = {"x"}, .flag = true},
    RENORM("features"),
    RENORM("1d"),
    RENORM("2d"),
    {"ghost_features", call_ghost, AFFINE, .count = 4},
    {"ghost_2d", call_ghost, AFFINE, .count = 2},
    {"adaptive_residual", call_adaptive_residual,
     .inputs = {"x", "condition", "modulation_weight", "modulation_bias", "inner_weight",
                "inner_bias"}},
};
#define N_ROWS ((int)(sizeof rows / sizeof rows[0]))

#define expect_golden(row, figure, x) assert_golden(x, TOLERANCE, "%s/%s", row, figure)

GOLDEN_FIXTURE("tests/golden/norms.txt")

LOOP_TEST(value_and_gradients_are_those_of_pytorch_and_the_papers, N_ROWS)
{
    const golden_row *row = &rows[_i];
    ng_tensor *in[MAX_INPUTS] = {NULL};
    char figure[128];
    for (int i = 0; i < MAX_INPUTS && row->inputs[i]; i++) {
        in[i] = own(ng_copy_new(golden("%s/%s", row->name, row->inputs[i]), NG_F64));
        snprintf(figure, sizeof figure, "%s/d%s", row->name, row->inputs[i]);
        if (golden_find(figure)) ng_require_grad(in[i]);
    }
    ng_tensor *y = row->call(in, row);
    expect_golden(row->name, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", row->name)));
    for (int i = 0; i < MAX_INPUTS && row->inputs[i]; i++) {
        if (!ng_requires_grad(in[i])) continue;
        snprintf(figure, sizeof figure, "d%s", row->inputs[i]);
        expect_golden(row->name, figure, ng_grad(in[i]));
    }
    if (row->call == call_renorm) {
        expect_golden(row->name, "mean_after", in[3]);
        expect_golden(row->name, "deviation_after", in[4]);
    }
    drop_layers();
}

TEST(every_figure_is_compared)
{
    const char *name;
    for (int i = 0; (name = golden_name(i)); i++) {
        bool known = strncmp(name, "spectral_norm_", strlen("spectral_norm_")) == 0;
        for (int row = 0; row < N_ROWS && !known; row++)
            known = strlen(rows[row].name) == strcspn(name, "/") &&
                    strncmp(rows[row].name, name, strcspn(name, "/")) == 0;
        ck_assert_msg(known, "%s is compared with nothing", name);
    }
}

/* Sets parameters and buffers of a layer, given as pairs of name and figure. */
static void set_tensors(ng_module *layer, const char *row, const char *const pairs[][2], int count)
{
    for (int i = 0; i < count; i++)
        assert_ok(
            ng_copy_values(ng_module_find(layer, pairs[i][0]), golden("%s/%s", row, pairs[i][1])));
}

TEST(layers_are_pytorchs)
{
    static const struct {
        const char *row;
        const char *names[2][2];
        int count;
    } cases[] = {
        {"group_norm_2_2d", {{"weight", "gamma"}, {"bias", "beta"}}, 2},
        {"instance_norm_1d", {{"weight", "gamma"}, {"bias", "beta"}}, 2},
        {"channel_norm_2d", {{"weight", "gamma"}, {"bias", "beta"}}, 2},
        {"weight_norm", {{"inner.weight", "v"}, {"g", "g"}}, 2},
        {"weight_norm_whole", {{"inner.weight", "v"}, {"g", "g"}}, 2},
        {"weight_norm_conv", {{"inner.weight", "v"}, {"g", "g"}}, 2},
        {"weight_norm_conv_groups", {{"inner.weight", "v"}, {"g", "g"}}, 2},
        {"weight_norm_conv_whole", {{"inner.weight", "v"}, {"g", "g"}}, 2},
        {"ghost_features", {{"weight", "gamma"}, {"bias", "beta"}}, 2},
        {"dynamic_tanh", {{"weight", "gamma"}, {"bias", "beta"}}, 2},
    };
    ng_module *made[] = {
        ng_group_norm_new(2, 6),
        ng_instance_norm_new(6, .affine = true),
        ng_layer_norm_new(6, .channels_first = true),
        ng_weight_norm_new(ng_linear_new(3, 4)),
        ng_weight_norm_new(ng_linear_new(3, 4), .whole = true),
        ng_weight_norm_new(ng_conv2d_new(3, 4, 3, .kernel_w = 2, .padding = 1)),
        ng_weight_norm_new(ng_conv2d_new(4, 6, 2, .kernel_w = 3, .stride = 2, .groups = 2)),
        ng_weight_norm_new(ng_conv2d_new(3, 4, 2), .whole = true),
        ng_batch_norm_new(6, .ghost = 4),
        ng_dynamic_tanh_new(5)};
    for (int i = 0; i < (int)(sizeof made / sizeof made[0]); i++) {
        const char *row = cases[i].row;
        ng_module *layer = in_double(made[i]);
        set_tensors(layer, row, cases[i].names, cases[i].count);
        if (strncmp(row, "weight", 6) == 0)
            ng_copy_values(ng_module_find(layer, "inner.bias"), golden("%s/bias", row));
        ng_tensor *x = copy(golden("%s/x", row)), *y = ng_forward(layer, tape, x);
        expect_golden(row, "y", y);
        assert_ok(ng_backward_from(tape, y, golden("%s/dy", row)));
        expect_golden(row, "dx", ng_grad(x));
        for (int k = 0; k < cases[i].count; k++) {
            char figure[64];
            snprintf(figure, sizeof figure, "d%s", cases[i].names[k][1]);
            expect_golden(row, figure, ng_grad(ng_module_find(layer, cases[i].names[k][0])));
        }
        ng_module_free(layer);
    }
}

TEST(running_statistics_of_ghost_batches_move_one_after_the_other)
{
    static const char *const cases[] = {"ghost_features", "ghost_2d"};
    for (int i = 0; i < 2; i++) {
        ng_module *layer = in_double(ng_batch_norm_new(6, .ghost = i ? 2 : 4));
        assert_ok(ng_forward(layer, tape, golden("%s/x", cases[i])));
        expect_golden(cases[i], "mean_after", ng_module_find(layer, "running_mean"));
        expect_golden(cases[i], "var_after", ng_module_find(layer, "running_var"));
        ng_module_free(layer);
    }
}

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
LOOP_TEST(spectral_norm_iterates_as_pytorch, SPECTRAL_ROWS)
{
    static const char *const tensors[][2] = {
        {"inner.weight", "weight"}, {"inner.bias", "bias"}, {"u", "u"}, {"v", "v"}};
    const char *row = spectral_rows[_i].name;
    ng_module *layer = in_double(spectral_rows[_i].make(spectral_rows[_i].iterations));
    set_tensors(layer, row, tensors, 4);
    for (int step = 0; step < 4; step++) {
        char figure[6][16];
        static const char *const kinds[] = {"y", "dx", "dweight", "dbias", "u", "v"};
        for (int i = 0; i < 6; i++) snprintf(figure[i], sizeof figure[i], "%s%d", kinds[i], step);
        if (step == 3) ng_eval(layer);
        ng_zero_grads(layer);
        ng_tensor *x = copy(golden("%s/x%d", row, step)), *y = ng_forward(layer, tape, x);
        expect_golden(row, figure[0], y);
        assert_ok(ng_backward_from(tape, y, golden("%s/dy%d", row, step)));
        expect_golden(row, figure[1], ng_grad(x));
        expect_golden(row, figure[2], ng_grad(ng_module_find(layer, "inner.weight")));
        expect_golden(row, figure[3], ng_grad(ng_module_find(layer, "inner.bias")));
        expect_golden(row, figure[4], ng_module_find(layer, "u"));
        expect_golden(row, figure[5], ng_module_find(layer, "v"));
    }
    ng_module_free(layer);
}

TEST(adaptive_residual_is_dits_block)
{
    static const char *const tensors[][2] = {{"modulation.weight", "modulation_weight"},
                                             {"modulation.bias", "modulation_bias"},
                                             {"inner.weight", "inner_weight"},
                                             {"inner.bias", "inner_bias"}};
    const char *row = "adaptive_residual";
    ng_module *block =
        in_double(ng_adaptive_residual_new(ng_linear_new(4, 4), .dim = 4, .condition = 5));
    ng_tensor *x = copy(golden("%s/x", row)), *c = copy(golden("%s/condition", row));
    assert_same_bits(ng_forward_conditioned(block, tape, x, c), x); /* at its start */
    set_tensors(block, row, tensors, 4);
    ng_tensor *y = ng_forward_conditioned(block, tape, x, c);
    expect_golden(row, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", row)));
    expect_golden(row, "dx", ng_grad(x));
    expect_golden(row, "dcondition", ng_grad(c));
    for (int i = 0; i < 4; i++) {
        char figure[64];
        snprintf(figure, sizeof figure, "d%s", tensors[i][1]);
        expect_golden(row, figure, ng_grad(ng_module_find(block, tensors[i][0])));
    }
    ng_module_free(block);
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

static ng_tensor *batch_of(const model *m)
{
    return ng_batch_norm(tape, none_of(m), NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = NG_ZERO,
                         .training = true);
}

static ng_tensor *weight_of(const model *m)
{
    ng_tensor *g = ng_full(tape, NG_F64, NG_SHAPE(OUT), 1.5);
    return ng_matmul(tape, m->x, ng_weight_norm(tape, m->w, g), .transpose_b = true);
}

static ng_tensor *layer_of(const model *m)
{
    return ng_layer_norm(tape, none_of(m), NG_NONE, NG_NONE, 0);
}

static ng_tensor *rms_of(const model *m) { return ng_rms_norm(tape, none_of(m), NG_NONE, 0); }

static ng_tensor *partial_of(const model *m)
{
    return ng_row_norm(tape, none_of(m), NG_NONE, NG_NONE, .eps = NG_ZERO, .rms = true,
                       .partial = 0.5);
}

static ng_tensor *scale_of(const model *m)
{
    return ng_scale_norm(tape, none_of(m), ng_full(tape, NG_F64, NG_SHAPE(1), 2), 0);
}

static ng_tensor *detach_of(const model *m)
{
    return ng_detach_norm(tape, none_of(m), .eps = NG_ZERO);
}

static ng_tensor *group_of(const model *m)
{
    return ng_group_norm(tape, none_of(m), NG_NONE, NG_NONE, .groups = 2, .eps = NG_ZERO);
}

static ng_tensor *tanh_of(const model *m)
{
    ng_tensor *alpha = ng_full(tape, NG_F64, NG_SHAPE(1), 0.5);
    return ng_dynamic_tanh(tape, none_of(m), alpha, NG_NONE, NG_NONE);
}

static ng_tensor *ghost_of(const model *m)
{
    return ng_ghost_batch_norm(tape, none_of(m), NG_NONE, NG_NONE, NG_NONE, NG_NONE, .size = 3,
                               .eps = NG_ZERO, .training = true);
}

static ng_tensor *renorm_of(const model *m)
{
    ng_tensor *mean = own(ng_zeros_new(NG_F64, NG_SHAPE(OUT))),
              *deviation = own(ng_ones_new(NG_F64, NG_SHAPE(OUT)));
    return ng_batch_renorm(tape, none_of(m), NG_NONE, NG_NONE, mean, deviation, .r_max = 1,
                           .d_max = NG_ZERO, .eps = NG_ZERO, .training = true);
}

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

static const struct {
    const char *name;
    ng_tensor *(*output)(const model *m);
    bool invariant[CHANGES];
} invariances[] = {
    /*                       matrix scale, centre; vector; dataset scale, centre; case */
    {"BatchNorm", batch_of, {true, false, true, true, true, false}},     /* Ba et al. */
    {"WeightNorm", weight_of, {true, false, true, false, false, false}}, /* Ba et al. */
    {"LayerNorm", layer_of, {true, true, false, true, false, true}},     /* Ba et al. */
    {"RMSNorm", rms_of, {true, false, false, true, false, true}},        /* Zhang & Sennrich */
    {"pRMSNorm", partial_of, {true, false, false, true, false, true}},   /* Zhang & Sennrich */
    {"ScaleNorm", scale_of, {true, false, false, true, false, true}},
    {"DetachNorm", detach_of, {true, true, false, true, false, true}},
    {"GroupNorm", group_of, {true, true, false, true, false, true}},
    {"BatchNorm (ghost)", ghost_of, {true, false, true, true, true, false}},
    {"BatchRenorm (r = 1, d = 0)", renorm_of, {true, false, true, true, true, false}},
    {"DynamicTanh", tanh_of, {false, false, false, false, false, false}},
    {"nothing", none_of, {false, false, false, false, false, false}},
};

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

LOOP_TEST(invariances_are_as_published, (int)(sizeof invariances / sizeof invariances[0]))
{
    const model m = {normal(NG_F64, NG_SHAPE(CASES, IN), 1), normal(NG_F64, NG_SHAPE(OUT, IN), 2)};
    ng_tensor *y = invariances[_i].output(&m);
    assert_ok(y);
    for (change how = 0; how < CHANGES; how++) {
        const model other = changed(&m, how);
        const double off = difference(y, invariances[_i].output(&other));
        ck_assert_msg(invariances[_i].invariant[how] ? off < 1e-10 : off > 1e-3,
                      "%s under %s: outputs differ by %g, expected %s", invariances[_i].name,
                      changes[how], off, invariances[_i].invariant[how] ? "0" : "a difference");
    }
}

/* ---- GroupNorm ------------------------------------------------------------------------------ */

TEST(one_group_is_layer_norm_of_the_sample)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 4, 5), 1), *other = copy(x);
    ng_tensor *dy = normal(NG_F64, NG_SHAPE(3, 4, 5), 2);
    ng_tensor *y = ng_group_norm(tape, x, NG_NONE, NG_NONE, .groups = 1, .eps = 1e-5);
    ng_tensor *expected = ng_row_norm(tape, other, NG_NONE, NG_NONE, .eps = 1e-5, .dims = 2);
    assert_same_bits(y, expected);
    assert_ok(ng_backward_from(tape, y, dy));
    assert_ok(ng_backward_from(tape, expected, dy));
    assert_tensors_close(ng_grad(x), ng_grad(other), 1e-14);
}

TEST(one_value_a_group_gives_beta)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 2), 1), *gamma = normal(NG_F64, NG_SHAPE(2), 2);
    ng_tensor *beta = own(ng_tensor_from(NG_F64, NG_SHAPE(2), NG_VALUES(7, -3)));
    ng_tensor *y = ng_group_norm(tape, x, gamma, beta, .groups = 2, .eps = 1e-5);
    assert_values(y, 0, 7, -3, 7, -3, 7, -3);
    assert_ok(ng_backward_from(tape, y, x));
    assert_values(ng_grad(x), 0, 0, 0, 0, 0, 0, 0);
    assert_values(ng_grad(gamma), 0, 0, 0);
}

/* Whose rstd is beyond any number where eps is 0. */
TEST(one_value_a_row_gives_beta_for_any_eps)
{
    const double eps[] = {0, 1e-300, 1};
    ng_tensor *gamma = normal(NG_F64, NG_SHAPE(1), 2);
    ng_tensor *beta = own(ng_tensor_from(NG_F64, NG_SHAPE(1), NG_VALUES(7)));
    for (int i = 0; i < 3; i++) {
        ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 1), 1);
        ng_tensor *y = ng_layer_norm(tape, x, gamma, beta, eps[i]);
        assert_values(y, 0, 7, 7, 7);
        assert_ok(ng_backward_from(tape, y, x));
        assert_values(ng_grad(x), 0, 0, 0, 0);
        assert_values(ng_grad(gamma), 0, 0);
        ng_zero_grad(gamma);
    }
}

/* Deviations that the mean's own rounding would drown: they are exact, and so is the result. */
TEST(rows_of_double_keep_the_digits_that_their_elements_have)
{
    const double far = 0x1p50;
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(far, far + 1, far + 3)));
    ng_tensor *near = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(0, 1, 3)));
    assert_tensors_close(ng_layer_norm(tape, x, NG_NONE, NG_NONE, 1e-5),
                         ng_layer_norm(tape, near, NG_NONE, NG_NONE, 1e-5), 1e-14);
}

/* A long row of float whose first element, from which deviations are taken, is far from all. */
TEST(a_row_that_begins_far_off_keeps_its_digits)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(1, 5000), 3);
    ng_set(x, 0, 1e5);
    ng_tensor *exact = own(ng_copy_new(x, NG_F64));
    ng_tensor *y = ng_layer_norm(tape, x, NG_NONE, NG_NONE, 1e-5);
    ng_tensor *expected = ng_layer_norm(tape, exact, NG_NONE, NG_NONE, 1e-5);
    for (int i = 0; i < 5000; i++)
        assert_near(ng_get(y, i), ng_get(expected, i), 1e-6 * fmax(1, fabs(ng_get(expected, i))));
}

TEST(frozen_spectral_norm_leaves_its_vectors)
{
    ng_module *layer = ng_spectral_norm_new(ng_linear_new(5, 4));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(3, 5), 1), *u = copy(ng_module_find(layer, "u"));
    ng_freeze(layer);
    assert_ok(ng_forward(layer, tape, x));
    assert_same_bits(ng_module_find(layer, "u"), u);
    ng_unfreeze(layer);
    for (int i = 0; i < 20; i++) ng_set(ng_module_find(layer, "inner.weight"), i, cos(i * i));
    assert_ok(ng_forward(layer, tape, x));
    ck_assert_double_gt(difference(ng_module_find(layer, "u"), u), 1e-3);
    ng_module_free(layer);
}

/* What ops.h promises of a norm in float: 1e-5 of the result, or 1e-6 of terms that cancel, which
 * are taken to be of the size of the largest result. */
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

static outcome group_outcome(ng_dtype dtype, ng_shape shape, int64_t groups)
{
    const ng_shape channels = NG_SHAPE(shape.dim[1]);
    ng_tensor *x = ng_require_grad(own(ng_copy_new(normal(NG_F32, shape, 1), dtype)));
    ng_tensor *gamma = ng_require_grad(own(ng_copy_new(normal(NG_F32, channels, 2), dtype)));
    ng_tensor *beta = ng_require_grad(own(ng_copy_new(normal(NG_F32, channels, 3), dtype)));
    ng_tensor *dy = own(ng_copy_new(normal(NG_F32, shape, 4), dtype));
    ng_tensor *y = ng_group_norm(tape, x, gamma, beta, .groups = groups, .eps = 1e-5);
    assert_ok(ng_backward_from(tape, y, dy));
    return (outcome){y, ng_grad(x), ng_grad(gamma), ng_grad(beta)};
}

TEST(group_norm_in_float_agrees_with_double)
{
    const ng_shape shapes[] = {NG_SHAPE(40, 24), NG_SHAPE(8, 12, 17), NG_SHAPE(4, 6, 9, 11)};
    for (int i = 0; i < 3; i++) {
        const outcome single = group_outcome(NG_F32, shapes[i], 3),
                      exact = group_outcome(NG_F64, shapes[i], 3);
        assert_as_promised(single.y, exact.y);
        assert_as_promised(single.dx, exact.dx);
        assert_as_promised(single.dgamma, exact.dgamma);
        assert_as_promised(single.dbeta, exact.dbeta);
    }
}

TEST(group_norm_has_the_same_bits_with_one_and_two_threads)
{
    const ng_shape shapes[] = {NG_SHAPE(512, 768), NG_SHAPE(16, 32, 24, 24)};
    for (int i = 0; i < 2; i++) {
        ng_set_threads(1);
        const outcome one = group_outcome(NG_F32, shapes[i], 8);
        ng_set_threads(2);
        const outcome two = group_outcome(NG_F32, shapes[i], 8);
        assert_same_bits(one.y, two.y);
        assert_same_bits(one.dx, two.dx);
        assert_same_bits(one.dgamma, two.dgamma);
        assert_same_bits(one.dbeta, two.dbeta);
    }
    ng_set_threads(0);
}

/* In float at full size, against the rows of x with its channels last. */
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

/* dx = dy / sqrt(var + eps): neither is centred, nor is what lies along xhat taken out. */
TEST(detach_norm_only_scales_the_gradient)
{
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(1, 4), NG_VALUES(1, 2, 3, 6)));
    ng_tensor *dy = own(ng_tensor_from(NG_F64, NG_SHAPE(1, 4), NG_VALUES(1, -2, 5, 3)));
    ng_module *norm = in_double(ng_detach_norm_new(4, .eps = 0.5));
    ng_tensor *y = ng_forward(norm, tape, ng_require_grad(x));
    const double rstd = 0.5; /* mean 3, var 3.5 */
    assert_values(y, 1e-14, -2 * rstd, -rstd, 0, 3 * rstd);
    assert_ok(ng_backward_from(tape, y, dy));
    assert_values(ng_grad(x), 1e-14, rstd, -2 * rstd, 5 * rstd, 3 * rstd);
    ng_module_free(norm);
}

TEST(scale_norm_of_zeros_is_zero)
{
    ng_tensor *x = ng_require_grad(own(ng_zeros_new(NG_F32, NG_SHAPE(2, 3))));
    ng_module *norm = ng_scale_norm_new(3);
    ng_tensor *y = ng_forward(norm, tape, x);
    assert_values(y, 0, 0, 0, 0, 0, 0, 0);
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
    for (int i = 0; i < 6; i++) ck_assert(isfinite(ng_get(ng_grad(x), i)));
    assert_close(ng_get(ng_module_find(norm, "g"), 0), sqrt(3.0), 1e-6);
    ng_module_free(norm);
}

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

/* While it warms up it is BatchNorm; then the limits open, evenly; by then the output leans on the
 * running statistics. */
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
    ng_module_free(renorm), ng_module_free(batch);
}

/* Far from its limits r and d turn the batch's statistics into the running ones: training gives
 * what evaluation would have given. */
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
    ng_module_free(renorm);
}

/* ---- Sub-batches ---------------------------------------------------------------------------- */

/* sum = sum + weight x, from nothing at first */
static ng_tensor *add_weighted(ng_tensor *sum, ng_tensor *x, double weight)
{
    ng_tensor *weighted = ng_mul_scalar(tape, x, weight);
    return sum ? ng_add(tape, sum, weighted) : weighted;
}

/* (x - mean) / sqrt(var + 1e-5), both put together from those of sub-batches of `size` samples:
 * mean = sum w_i mean_i, var = sum w_i (var_i + (mean_i - mean)^2), w_i = n_i / n. */
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

LOOP_TEST(combined_sub_batches_have_their_statistics_put_together, 4)
{
    const ng_shape shapes[] = {NG_SHAPE(12, 3), NG_SHAPE(7, 3, 4), NG_SHAPE(5, 3, 2, 2)};
    for (int i = 0; i < 3; i++) {
        const int64_t size = 1 + _i;
        ng_module *whole = in_double(ng_batch_norm_new(3)),
                  *parts = in_double(ng_batch_norm_new(3, .ghost = size, .combined = true));
        ng_tensor *x = normal(NG_F64, shapes[i], 1), *dy = normal(NG_F64, shapes[i], 2);
        ng_tensor *expected = put_together(x, size), *y = ng_forward(parts, tape, x);
        assert_tensors_close(y, expected, 1e-12);
        assert_tensors_close(ng_gradient(tape, y, x, .cotangent = dy),
                             ng_gradient(tape, expected, x, .cotangent = dy), 1e-11);
        assert_ok(ng_forward(whole, tape, x));
        static const char *const buffers[] = {"running_mean", "running_var", "num_batches_tracked"};
        for (int k = 0; k < 3; k++)
            assert_same_bits(ng_module_find(parts, buffers[k]), ng_module_find(whole, buffers[k]));
        ng_tape_reset(tape); /* before the layers it reads are gone */
        ng_module_free(whole), ng_module_free(parts);
    }
}

TEST(a_sub_batch_that_fails_moves_no_running_statistics)
{
    ng_module *layer = in_double(ng_batch_norm_new(3, .ghost = 4));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(9, 3), 1); /* 4 + 4 + 1 */
    assert_fails(ng_forward(layer, tape, x), NG_ESHAPE,
                 "training needs more than one value per channel, got shape (1, 3)");
    assert_values(ng_module_find(layer, "running_mean"), 0, 0, 0, 0);
    assert_values(ng_module_find(layer, "running_var"), 0, 1, 1, 1);
    assert_values(ng_module_find(layer, "num_batches_tracked"), 0, 0);
    ng_eval(layer);
    assert_ok(ng_forward(layer, tape, x));
    ng_module_free(layer);
}

/* ---- WeightNorm and SpectralNorm ------------------------------------------------------------ */

static ng_tensor *weight_row_lengths(ng_tensor *w)
{
    return ng_sqrt(tape, ng_sum(tape, ng_square(tape, w), .axes = NG_AXES(1)));
}

/* Also after it was given to another module, and drawn anew: g follows the weight. */
TEST(weight_norm_starts_as_its_inner_layer)
{
    ng_module *net = ng_sequential_new(ng_relu_new(),
                                       ng_sequential_new(ng_weight_norm_new(ng_linear_new(6, 4))));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(3, 6), 1);
    for (int seed = 0; seed < 3; seed++) {
        if (seed > 0) assert_ok(ng_module_init(net, (uint64_t)seed));
        ng_tensor *v = ng_module_find(net, "1.0.inner.weight"),
                  *b = ng_module_find(net, "1.0.inner.bias");
        assert_tensors_close(ng_module_find(net, "1.0.g"), weight_row_lengths(v), 1e-6);
        assert_tensors_close(ng_forward(net, tape, x), ng_linear(tape, ng_relu(tape, x), v, b),
                             1e-5);
    }
    ng_module_free(net);
}

/* A step along v changes its direction alone: the gradient is orthogonal to v. */
TEST(weight_norm_separates_direction_from_length)
{
    ng_module *layer = in_double(ng_weight_norm_new(ng_linear_new(6, 4)));
    ng_tensor *y = ng_forward(layer, tape, normal(NG_F64, NG_SHAPE(3, 6), 1));
    assert_ok(ng_backward_from(tape, y, normal(NG_F64, NG_SHAPE(3, 4), 2)));
    ng_tensor *v = ng_module_find(layer, "inner.weight");
    ng_tensor *along = ng_sum(tape, ng_mul(tape, v, ng_grad(v)), .axes = NG_AXES(1));
    for (int i = 0; i < 4; i++) assert_near(ng_get(along, i), 0, 1e-13);
    ck_assert_double_gt(difference(ng_grad(v), ng_zeros_like(tape, v)), 1e-3);
    ng_module_free(layer);
}

/* W = diag(3, 2): after some passes sigma is 3, and stays in evaluation. */
TEST(spectral_norm_divides_by_the_largest_singular_value)
{
    ng_module *layer = in_double(ng_spectral_norm_new(ng_linear_new(2, 2, .no_bias = true)));
    ng_tensor *weight = ng_module_find(layer, "inner.weight");
    const double diagonal[] = {3, 0, 0, 2};
    for (int i = 0; i < 4; i++) ng_set(weight, i, diagonal[i]);
    ng_tensor *x = own(ng_tensor_from(NG_F64, NG_SHAPE(1, 2), NG_VALUES(1, 1)));
    for (int i = 0; i < 100; i++) assert_ok(ng_forward(layer, tape, x));
    ng_eval(layer);
    ng_tensor *u = copy(ng_module_find(layer, "u"));
    assert_values(ng_forward(layer, tape, x), 1e-12, 1, 2.0 / 3);
    assert_tensors_close(ng_module_find(layer, "u"), u, 0);
    ng_module_free(layer);
}

TEST(spectral_norm_is_saved_and_keeps_its_vectors_when_adopted)
{
    char path[] = "/tmp/normgrad_spectral_XXXXXX";
    close(mkstemp(path));
    ng_module *layer = ng_spectral_norm_new(ng_linear_new(5, 4));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(3, 5), 1);
    for (int i = 0; i < 5; i++) assert_ok(ng_forward(layer, tape, x));
    ng_tensor *u = copy(ng_module_find(layer, "u"));
    assert_ok(ng_module_save(layer, path));
    ng_module *again = ng_spectral_norm_new(ng_linear_new(5, 4));
    assert_ok(ng_module_load(again, path));
    ng_module *net = ng_sequential_new(again, ng_relu_new());
    assert_same_bits(ng_module_find(net, "0.u"), ng_module_find(layer, "u"));
    ng_eval(net), ng_eval(layer);
    assert_same_bits(ng_forward(net, tape, x), ng_relu(tape, ng_forward(layer, tape, x)));
    assert_ok(ng_module_init(net, 3)); /* drawn anew */
    ck_assert_double_gt(difference(ng_module_find(net, "0.u"), u), 1e-3);
    remove(path);
    ng_module_free(net), ng_module_free(layer);
}

/* A layer of one's own. */
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

/* The largest singular value of a matrix (out, n), by a power iteration of the test's own. */
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

/* Alone, in a network, and drawn anew: u and v belong to the weight that was drawn. */
TEST(spectral_norm_works_in_evaluation_before_any_training)
{
    for (int i = 0; i < 50; i++) {
        ng_module *layer = ng_spectral_norm_new(ng_linear_new(16, 24, .no_bias = true));
        ng_module *net = i % 2 ? ng_sequential_new(layer) : layer;
        if (i > 1) assert_ok(ng_module_init(net, (uint64_t)i));
        ng_eval(net);
        assert_close(spectral_norm_of(weight_in_use(net, NG_F32, 16)), 1, 0.03);
        ng_module_free(net);
    }
}

/* A weight of zeros, and the ends of the dtype's range: the weight in use is finite, and the layer
 * is as good as new once the weight is ordinary again. */
LOOP_TEST(spectral_norm_recovers_from_any_weight, 9)
{
    static const double scales[] = {0, 1e-30, 1e-44, 1e30, 3e37, 1e200, 1e300, 1e-300, 5e-324};
    const double scale = scales[_i];
    const ng_dtype dtype = fabs(log10(scale)) < 50 || scale == 0 ? NG_F32 : NG_F64;
    ng_module *layer = ng_spectral_norm_new(ng_linear_new(6, 4, .no_bias = true));
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
            assert_close(spectral_norm_of(used), 1, 1e-3);
        if (scale == 0 && !round) ck_assert_double_eq(largest_of(used), 0);
        for (int i = 0; i < 24; i++)
            ck_assert(isfinite(ng_get(ng_grad(weight), i)) || (scale < 1e-40 && !round));
    }
    ng_module_free(layer);
}

/* Rows of zeros, one or all: they stay 0, and the others are those of the inner layer. */
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

/* When it is given to a network its length follows the weight that was set. */
TEST(weight_norm_starts_from_a_weight_of_any_size)
{
    const double scales[] = {1e200, 1e-200};
    for (int k = 0; k < 2; k++) {
        ng_module *layer = in_double(ng_weight_norm_new(ng_linear_new(3, 1)));
        for (int i = 0; i < 3; i++)
            ng_set(ng_module_find(layer, "inner.weight"), i, scales[k] * (i + 1));
        ng_module *net = ng_sequential_new(layer);
        assert_values(ng_module_find(net, "0.g"), 1e-14, scales[k] * sqrt(14));
        ng_module_free(net);
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
    ng_module_free(layer);
}

/* ---- One module, several threads ------------------------------------------------------------ */

typedef struct {
    ng_module *net;
    const ng_tensor *x, *expected;
    int wrong;
} reader;

/* Forward passes on a tape of the thread's own; counts those that differ. */
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
    ng_module *net = ng_sequential_new(
        ng_weight_norm_new(ng_linear_new(6, 8)), ng_batch_norm_new(8), ng_gelu_new(),
        ng_spectral_norm_new(ng_linear_new(8, 8)), ng_layer_norm_new(8),
        ng_weight_norm_new(ng_linear_new(8, 5), .whole = true));
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
    ng_module_free(net);
}

/* ---- Errors --------------------------------------------------------------------------------- */

TEST(ops_say_what_is_wrong)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 6, 3), 1), *two = normal(NG_F32, NG_SHAPE(2), 2);
    ng_tensor *six = normal(NG_F32, NG_SHAPE(6), 3), *one = normal(NG_F32, NG_SHAPE(1), 4);
    ng_tensor *buffer = own(ng_ones_new(NG_F32, NG_SHAPE(6)));
    ng_tensor *other = own(ng_ones_new(NG_F32, NG_SHAPE(6)));
    assert_fails(ng_group_norm(tape, x, NG_NONE, NG_NONE, .groups = 4), NG_EVALUE,
                 "ng_group_norm: groups is 4, expected a divisor of 6 channels");
    assert_fails(ng_group_norm(tape, x, NG_NONE, NG_NONE), NG_EVALUE, "groups is 0");
    assert_fails(ng_group_norm(tape, x, two, NG_NONE, .groups = 2), NG_ESHAPE,
                 "ng_group_norm: gamma of shape (2,), expected (6,)");
    assert_fails(ng_group_norm(tape, x, NG_NONE, NULL, .groups = 2), NG_ENULL, "beta is NULL");
    assert_fails(ng_group_norm(tape, x, NG_NONE, NG_NONE, .groups = 2, .eps = -1), NG_EVALUE,
                 "eps is -1");
    assert_fails(ng_instance_norm(tape, six, NG_NONE, NG_NONE, 1e-5), NG_ESHAPE,
                 "ng_instance_norm: x of shape (6,), expected (N, C, ...)");
    assert_fails(ng_channel_norm(tape, x, NG_NONE, two, 1e-5), NG_ESHAPE,
                 "ng_channel_norm: beta of shape (2,), expected (6,)");
    assert_fails(ng_scale_norm(tape, x, two, 0), NG_ESHAPE,
                 "ng_scale_norm: g of shape (2,), expected (1,)");
    assert_fails(ng_dynamic_tanh(tape, x, one, two, NG_NONE), NG_ESHAPE,
                 "ng_dynamic_tanh: gamma of shape (2,), expected (3,)");
    assert_fails(ng_detach_norm(tape, x, .eps = (double)NAN), NG_EVALUE, "ng_detach_norm: eps is ");
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, buffer, buffer, .training = true),
                 NG_EVALUE, "ng_batch_renorm: running_mean and running_deviation are one tensor");
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, buffer, other, .r_max = 0.5,
                                 .d_max = NG_ZERO, .training = true),
                 NG_EVALUE, "ng_batch_renorm: r_max = 0.5 and d_max = 0, expected r_max >= 1");
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, buffer, NULL), NG_ENULL,
                 "running_deviation is NULL");
    assert_fails(ng_batch_renorm(tape, x, NG_NONE, NG_NONE, six, buffer), NG_EGRAD,
                 "running_mean requires a gradient, expected a buffer");
    assert_fails(ng_batch_renorm(tape, six, NG_NONE, NG_NONE, buffer, buffer), NG_ESHAPE,
                 "expected (N, C), (N, C, L) or (N, C, H, W)");
    assert_fails(ng_ghost_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true),
                 NG_EVALUE,
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
    assert_fails(ng_batch_norm_new(3, .combined = true), value, "ghost is 0 with .combined");
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
    ng_module *block = ng_adaptive_residual_new(ng_linear_new(3, 2), .dim = 3, .condition = 4);
    assert_fails(ng_forward_conditioned(block, tape, flat, wide), NG_ESHAPE,
                 "AdaptiveResidual: inner turned (2, 3) into (2, 2), expected the same shape");
    ng_module_free(block);
}
