/* Against PyTorch in double: the figures in tests/golden, which make_golden.py has written. */
#include "golden.h"
#include "support.h"

static void load_ops(void) { golden_load("tests/golden/ops.txt"); }
static void load_training(void) { golden_load("tests/golden/training.txt"); }

/* ---- Ops ------------------------------------------------------------------------------------ */

/* Both sides round differently in a few dozen operations on values of order 1: 1e-12 leaves them
 * some thousand units in the last place. */
#define OP_TOLERANCE 1e-12

#define MAX_INPUTS 5

/* One case: an op of the inputs named, or an elementwise function of x. */
typedef struct golden_row golden_row;
struct golden_row {
    const char *name;
    ng_tensor *(*call)(ng_tape *tape, ng_tensor *const *in, const golden_row *row);
    const char *inputs[MAX_INPUTS]; /* those with a figure d<name> have a gradient */
    ng_tensor *(*unary)(ng_tape *tape, ng_tensor *x);
    ng_reduction reduction;
    int axis;
    double smoothing;
    bool ignore;
};

#define CALL(name)                                                                                 \
    static ng_tensor *call_##name(ng_tape *tape, ng_tensor *const *in, const golden_row *row)

CALL(unary) { return row->unary(tape, in[0]); }
CALL(softmax) { return ng_softmax(tape, in[0], row->axis); }
CALL(log_softmax) { return ng_log_softmax(tape, in[0], row->axis); }
CALL(mse) { return ng_mse(tape, in[0], in[1], .reduction = row->reduction); }
CALL(l1) { return ng_l1(tape, in[0], in[1], .reduction = row->reduction); }
CALL(huber) { return ng_huber(tape, in[0], in[1], .reduction = row->reduction, .delta = 0.7); }
CALL(binary) { return ng_binary_cross_entropy(tape, in[0], in[1], .reduction = row->reduction); }

CALL(cross_entropy)
{
    return ng_cross_entropy(tape, in[0], in[1], .reduction = row->reduction,
                            .smoothing = row->smoothing, .ignore = row->ignore,
                            .ignored = row->ignore ? 2 : 0);
}

static ng_tensor *leaky_relu(ng_tape *tape, ng_tensor *x) { return ng_leaky_relu(tape, x, 0.01); }

static ng_tensor *plain_layer_norm(ng_tape *tape, ng_tensor *x)
{
    return ng_layer_norm(tape, x, NG_NONE, NG_NONE, 1e-5);
}

static ng_tensor *adanorm(ng_tape *tape, ng_tensor *x, bool differentiate)
{
    ng_module *norm = ng_adaptive_layer_norm_new(ng_dim(x, -1), .form = NG_ADAPTIVE_ADANORM,
                                                 .scale = 1.3, .differentiate = differentiate);
    ng_module_to(norm, NG_F64);
    ng_tensor *y = ng_forward(norm, tape, x);
    ng_module_free(norm);
    return y;
}

static ng_tensor *adanorm_published(ng_tape *tape, ng_tensor *x) { return adanorm(tape, x, false); }
static ng_tensor *adanorm_whole(ng_tape *tape, ng_tensor *x) { return adanorm(tape, x, true); }

CALL(layer_norm) { return (void)row, ng_layer_norm(tape, in[0], in[1], in[2], 1e-5); }
CALL(no_bias) { return (void)row, ng_layer_norm(tape, in[0], in[1], NG_NONE, 1e-3); }
CALL(rms_norm) { return (void)row, ng_rms_norm(tape, in[0], in[1], 1e-6); }

CALL(unbiased)
{
    (void)row;
    return ng_row_norm(tape, in[0], in[1], in[2], .eps = 1e-5, .unbiased = true);
}

CALL(partial)
{
    (void)row;
    return ng_row_norm(tape, in[0], in[1], NG_NONE, .eps = 1e-6, .rms = true, .partial = 0.5);
}

/* AdaptiveLayerNorm's projected form, from x, W_g, b_g, W_b, b_b. */
CALL(projected)
{
    (void)row;
    ng_tensor *gamma = ng_linear(tape, in[0], in[1], in[2]);
    ng_tensor *beta = ng_linear(tape, in[0], in[3], in[4]);
    return ng_add(tape, ng_mul(tape, gamma, plain_layer_norm(tape, in[0])), beta);
}

CALL(batch_norm)
{
    (void)row;
    return ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5,
                         .training = true);
}

CALL(batch_norm_eval)
{
    (void)row;
    return ng_batch_norm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5);
}

#define X_GAMMA_BETA .inputs = {"x", "gamma", "beta"}
#define FIXED .inputs = {"x", "gamma", "beta", "mean", "var"}
#define UNARY(name, function)                                                                      \
    {                                                                                              \
        name, call_unary, .inputs = {"x"}, .unary = function                                       \
    }
#define EACH_REDUCTION(name, ...)                                                                  \
    {name "_mean", __VA_ARGS__, .reduction = NG_MEAN},                                             \
        {name "_sum", __VA_ARGS__, .reduction = NG_SUM},                                           \
    {                                                                                              \
        name "_none", __VA_ARGS__, .reduction = NG_EACH                                            \
    }

static const golden_row rows[] = {
    {"layer_norm_row", call_layer_norm, X_GAMMA_BETA},
    {"layer_norm_rows", call_layer_norm, X_GAMMA_BETA},
    {"layer_norm_matrix", call_layer_norm, X_GAMMA_BETA},
    {"layer_norm_image", call_layer_norm, X_GAMMA_BETA},
    UNARY("layer_norm_plain", plain_layer_norm),
    {"layer_norm_no_bias", call_no_bias, .inputs = {"x", "gamma"}},
    {"layer_norm_unbiased", call_unbiased, X_GAMMA_BETA},
    {"rms_norm", call_rms_norm, .inputs = {"x", "gamma"}},
    {"rms_norm_partial", call_partial, .inputs = {"x", "gamma"}},
    {"adaptive_projected", call_projected,
     .inputs = {"x", "gamma_weight", "gamma_bias", "beta_weight", "beta_bias"}},
    UNARY("adanorm", adanorm_published),
    UNARY("adanorm_differentiated", adanorm_whole),

    {"batch_norm_features", call_batch_norm, X_GAMMA_BETA},
    {"batch_norm_1d", call_batch_norm, X_GAMMA_BETA},
    {"batch_norm_2d", call_batch_norm, X_GAMMA_BETA},
    {"batch_norm_eval_features", call_batch_norm_eval, FIXED},
    {"batch_norm_eval_1d", call_batch_norm_eval, FIXED},
    {"batch_norm_eval_2d", call_batch_norm_eval, FIXED},

    UNARY("gelu", ng_gelu),
    UNARY("gelu_tanh", ng_gelu_tanh),
    UNARY("silu", ng_silu),
    UNARY("softplus", ng_softplus),
    UNARY("sigmoid", ng_sigmoid),
    UNARY("tanh", ng_tanh),
    UNARY("relu", ng_relu),
    UNARY("leaky_relu", leaky_relu),
    {"softmax_0", call_softmax, .inputs = {"x"}, .axis = 0},
    {"softmax_1", call_softmax, .inputs = {"x"}, .axis = 1},
    {"softmax_2", call_softmax, .inputs = {"x"}, .axis = 2},
    {"log_softmax_0", call_log_softmax, .inputs = {"x"}, .axis = 0},
    {"log_softmax_1", call_log_softmax, .inputs = {"x"}, .axis = 1},
    {"log_softmax_2", call_log_softmax, .inputs = {"x"}, .axis = 2},

    EACH_REDUCTION("mse", call_mse, .inputs = {"x", "target"}),
    EACH_REDUCTION("l1", call_l1, .inputs = {"x", "target"}),
    EACH_REDUCTION("huber", call_huber, .inputs = {"x", "target"}),
    EACH_REDUCTION("binary_cross_entropy", call_binary, .inputs = {"x", "target"}),
    EACH_REDUCTION("cross_entropy_plain", call_cross_entropy, .inputs = {"x", "labels"}),
    EACH_REDUCTION("cross_entropy_smooth", call_cross_entropy, .inputs = {"x", "labels"},
                   .smoothing = 0.15),
    EACH_REDUCTION("cross_entropy_ignore", call_cross_entropy, .inputs = {"x", "labels"},
                   .ignore = true),
    EACH_REDUCTION("cross_entropy_smooth_ignore", call_cross_entropy, .inputs = {"x", "labels"},
                   .smoothing = 0.15, .ignore = true),
};
#define N_ROWS ((int)(sizeof rows / sizeof rows[0]))

#define expect_golden(row, figure, x) assert_golden(x, OP_TOLERANCE, "%s/%s", row, figure)

FIXTURE(load_ops, golden_unload)

LOOP_TEST(value_and_gradients_are_pytorchs, N_ROWS)
{
    const golden_row *row = &rows[_i];
    ng_tensor *in[MAX_INPUTS] = {NULL};
    for (int i = 0; i < MAX_INPUTS && row->inputs[i]; i++) {
        bool labels = strcmp(row->inputs[i], "labels") == 0;
        in[i] = ng_copy_new(golden("%s/%s", row->name, row->inputs[i]), labels ? NG_I64 : NG_F64);
        char gradient[128];
        snprintf(gradient, sizeof gradient, "%s/d%s", row->name, row->inputs[i]);
        if (golden_find(gradient)) ng_require_grad(in[i]);
    }

    ng_tape *tape = ng_tape_new();
    ng_tensor *y = row->call(tape, in, row);
    expect_golden(row->name, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", row->name)));
    for (int i = 0; i < MAX_INPUTS && row->inputs[i]; i++) {
        if (!ng_requires_grad(in[i])) continue;
        char figure[64];
        snprintf(figure, sizeof figure, "d%s", row->inputs[i]);
        expect_golden(row->name, figure, ng_grad(in[i]));
    }

    ng_tape_free(tape);
    for (int i = 0; i < MAX_INPUTS; i++) ng_tensor_free(in[i]);
}

TEST(every_figure_has_a_row)
{
    const char *name;
    for (int i = 0; (name = golden_name(i)); i++) {
        if (strncmp(name, "running_", strlen("running_")) == 0) continue;
        size_t length = strcspn(name, "/");
        bool known = false;
        for (int row = 0; row < N_ROWS && !known; row++)
            known = strlen(rows[row].name) == length && strncmp(rows[row].name, name, length) == 0;
        ck_assert_msg(known, "%s is compared with nothing", name);
    }
}

/* ---- Running statistics --------------------------------------------------------------------- */

static const struct {
    const char *name;
    double momentum;
    bool cumulative;
} averages[] = {{"momentum", 0.1, false}, {"fast", 0.3, false}, {"cumulative", 0, true}};

LOOP_TEST(running_statistics_after_three_batches_are_pytorchs, 3)
{
    static const char *const kinds[] = {"features", "1d", "2d"};
    for (int kind = 0; kind < 3; kind++) {
        char row[64];
        snprintf(row, sizeof row, "running_%s_%s", averages[_i].name, kinds[kind]);
        ng_tape *tape = ng_tape_new();
        ng_module *norm =
            ng_batch_norm_new(ng_dim(golden("%s/x0", row), 1), .momentum = averages[_i].momentum,
                              .cumulative = averages[_i].cumulative);
        assert_ok(ng_module_to(norm, NG_F64));
        for (int batch = 0; batch < 3; batch++)
            assert_ok(ng_forward(norm, tape, golden("%s/x%d", row, batch)));
        expect_golden(row, "mean", ng_module_find(norm, "running_mean"));
        expect_golden(row, "var", ng_module_find(norm, "running_var"));
        ng_module_free(norm);
        ng_tape_free(tape);
    }
}

/* ---- AdaptiveLayerNorm as a layer ----------------------------------------------------------- */

TEST(projected_layer_is_pytorchs)
{
    static const char *const names[][2] = {{"gamma.weight", "gamma_weight"},
                                           {"gamma.bias", "gamma_bias"},
                                           {"beta.weight", "beta_weight"},
                                           {"beta.bias", "beta_bias"}};
    const char *row = "adaptive_projected";
    ng_tensor *x = golden("%s/x", row);
    ng_module *layer = ng_adaptive_layer_norm_new(ng_dim(x, -1));
    assert_ok(ng_module_to(layer, NG_F64));
    for (int i = 0; i < 4; i++)
        assert_ok(
            ng_copy_values(ng_module_find(layer, names[i][0]), golden("%s/%s", row, names[i][1])));

    ng_tape *tape = ng_tape_new();
    ng_tensor *y = ng_forward(layer, tape, ng_require_grad(x));
    expect_golden(row, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", row)));
    expect_golden(row, "dx", ng_grad(x));
    for (int i = 0; i < 4; i++) {
        char figure[64];
        snprintf(figure, sizeof figure, "d%s", names[i][1]);
        expect_golden(row, figure, ng_grad(ng_module_find(layer, names[i][0])));
    }
    ng_tape_free(tape);
    ng_module_free(layer);
}

/* ---- Fifty steps of training ---------------------------------------------------------------- */

#define STEPS 50
#define BATCHES 4

/* Each step carries the rounding of the ones before and multiplies it by about 1 + lr times the
 * curvature; over fifty steps that stays far below 1e-10. */
#define TRAINING_TOLERANCE 1e-10

static ng_optimizer *momentum(ng_module *net)
{
    return ng_sgd_new(net, .lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3);
}
static ng_optimizer *nesterov(ng_module *net)
{
    return ng_sgd_new(net, .lr = 0.05, .momentum = 0.9, .nesterov = true);
}
static ng_optimizer *adam(ng_module *net)
{
    return ng_adam_new(net, .lr = 0.01, .weight_decay = 1e-3);
}
static ng_optimizer *adamw(ng_module *net)
{
    return ng_adamw_new(net, .lr = 0.01, .weight_decay = 0.05);
}
static ng_optimizer *rmsprop(ng_module *net)
{
    return ng_rmsprop_new(net, .lr = 0.005, .momentum = 0.5);
}
static ng_optimizer *rmsprop_centered(ng_module *net)
{
    return ng_rmsprop_new(net, .lr = 0.005, .centered = true);
}

static const struct {
    const char *name;
    ng_optimizer *(*make)(ng_module *net);
} optimizers[] = {{"momentum", momentum}, {"nesterov", nesterov},
                  {"adam", adam},         {"adamw", adamw},
                  {"rmsprop", rmsprop},   {"rmsprop_centered", rmsprop_centered}};
#define N_OPTIMIZERS ((int)(sizeof optimizers / sizeof optimizers[0]))

/* A bias before BatchNorm would have a gradient of pure rounding, which Adam and RMSprop would
 * scale up to a step. */
static ng_module *network(const char *norm)
{
    bool batch = strcmp(norm, "batch_norm") == 0;
    ng_module *net = ng_sequential_new(ng_linear_new(8, 12, .no_bias = batch),
                                       batch ? ng_batch_norm_new(12) : ng_layer_norm_new(12),
                                       ng_relu_new(), ng_linear_new(12, 12, .no_bias = batch),
                                       batch ? ng_batch_norm_new(12) : ng_layer_norm_new(12),
                                       ng_gelu_new(), ng_linear_new(12, 5));
    assert_ok(ng_module_to(net, NG_F64));
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(net, i, &parameter); i++)
        assert_ok(ng_copy_values(parameter.tensor, golden("%s/%s", norm, parameter.name)));
    return net;
}

static void expect_same_training(const char *norm, int optimizer)
{
    ng_tape *tape = ng_tape_new();
    ng_module *net = network(norm);
    ng_optimizer *mover = optimizers[optimizer].make(net);
    ng_tensor *losses = golden("%s/%s/losses", norm, optimizers[optimizer].name);
    ng_tensor *labels[BATCHES];
    for (int i = 0; i < BATCHES; i++) labels[i] = ng_copy_new(golden("labels%d", i), NG_I64);

    for (int step = 0; step < STEPS; step++) {
        int batch = step % BATCHES;
        ng_tensor *logits = ng_forward(net, tape, golden("x%d", batch));
        ng_tensor *loss = ng_cross_entropy(tape, logits, labels[batch]);
        assert_ok(ng_backward(tape, loss));
        assert_ok(ng_optimizer_step(mover));
        char what[128];
        snprintf(what, sizeof what, "%s with %s: loss at step %d", norm, optimizers[optimizer].name,
                 step);
        expect_close(__FILE__, __LINE__, what, ng_item(loss), ng_get(losses, step),
                     TRAINING_TOLERANCE);
        ng_tape_reset(tape);
    }

    ng_eval(net);
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, golden("x0")), labels[0]);
    assert_close(ng_item(loss), ng_item(golden("%s/%s/eval", norm, optimizers[optimizer].name)),
                 TRAINING_TOLERANCE);

    for (int i = 0; i < BATCHES; i++) ng_tensor_free(labels[i]);
    ng_optimizer_free(mover);
    ng_module_free(net);
    ng_tape_free(tape);
}

FIXTURE(load_training, golden_unload)

LOOP_TEST(fifty_layer_norm_losses_are_pytorchs, N_OPTIMIZERS)
{
    expect_same_training("layer_norm", _i);
}

LOOP_TEST(fifty_batch_norm_losses_are_pytorchs, N_OPTIMIZERS)
{
    expect_same_training("batch_norm", _i);
}
