/* Activations, losses, optimizers and 50 steps of training against PyTorch in double
 * (tests/golden). Norms are in tests/norms. */
#include "support/fixture.h"
#include "support/golden.h"
#include "support/support.h"

/* ---- Ops ------------------------------------------------------------------------------------ */

/* The two systems round a few dozen operations on values of order 1 in different order: some
 * 1e-15. */
#define OP_TOLERANCE 1e-12

/* One case: an op of the inputs named, or an elementwise function of x. */
typedef struct golden_row golden_row;
struct golden_row {
    const char *name;
    ng_tensor *(*call)(ng_tensor *const *in, const golden_row *row);
    const char *inputs[GOLDEN_INPUTS];
    ng_tensor *(*unary)(ng_tape *tape, ng_tensor *x);
    ng_reduction reduction;
    int axis;
    double smoothing;
    bool ignore;
};

#define CALL(name, ...)                                                                            \
    static ng_tensor *call_##name(ng_tensor *const *in, const golden_row *row)                     \
    {                                                                                              \
        return (void)row, __VA_ARGS__;                                                             \
    }

static ng_tensor *leaky_relu(ng_tape *on, ng_tensor *x) { return ng_leaky_relu(on, x, 0.01); }

CALL(unary, row->unary(tape, in[0]))
CALL(softmax, ng_softmax(tape, in[0], .axes = NG_AXES(row->axis)))
CALL(log_softmax, ng_log_softmax(tape, in[0], .axes = NG_AXES(row->axis)))
CALL(mse, ng_mse(tape, in[0], in[1], .reduction = row->reduction))
CALL(l1, ng_l1(tape, in[0], in[1], .reduction = row->reduction))
CALL(huber, ng_huber(tape, in[0], in[1], .reduction = row->reduction, .delta = 0.7))
CALL(binary, ng_binary_cross_entropy(tape, in[0], in[1], .reduction = row->reduction))
CALL(cross_entropy,
     ng_cross_entropy(tape, in[0], in[1], .reduction = row->reduction, .smoothing = row->smoothing,
                      .ignore = row->ignore, .ignored = row->ignore ? 2 : 0))

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

static void load_ops(void) { set_up(), golden_load("tests/golden/ops.txt"); }

START_TEST(value_and_gradients_are_pytorchs)
{
    const golden_row *row = &rows[_i];
    ng_tensor *in[GOLDEN_INPUTS];
    golden_inputs(row->name, row->inputs, in);
    assert_golden_gradients(row->name, row->call(in, row), OP_TOLERANCE, row->inputs, in);
}

START_TEST(every_figure_has_a_row)
{
    golden_expect_rows(rows, N_ROWS, sizeof *rows, "running_,layer_norm_,rms_norm,ada,batch_norm_");
}

/* ---- Fifty steps of training ---------------------------------------------------------------- */

#define STEPS 50
#define BATCHES 4

/* A step multiplies earlier roundings by about 1 + lr times the curvature: far below 1e-10 after
 * 50. */
#define TRAINING_TOLERANCE 1e-10

typedef struct {
    const char *name;
    ng_optimizer *(*make)(ng_module *net);
} maker;

#define MADE(name, ...)                                                                            \
    static ng_optimizer *name##_of(ng_module *net) { return __VA_ARGS__; }
#define ROW(name, ...) {#name, name##_of},

#define OPTIMIZERS(X)                                                                              \
    X(momentum, ng_sgd_new(net, .lr = 0.05, .momentum = 0.9, .weight_decay = 1e-3))                \
    X(nesterov, ng_sgd_new(net, .lr = 0.05, .momentum = 0.9, .nesterov = true))                    \
    X(adam, ng_adam_new(net, .lr = 0.01, .weight_decay = 1e-3))                                    \
    X(adamw, ng_adamw_new(net, 0.05, .lr = 0.01))                                                  \
    X(rmsprop, ng_rmsprop_new(net, .lr = 0.005, .momentum = 0.5))                                  \
    X(rmsprop_centered, ng_rmsprop_new(net, .lr = 0.005, .centered = true))
OPTIMIZERS(MADE)
static const maker optimizers[] = {OPTIMIZERS(ROW)};
#define N_OPTIMIZERS ((int)(sizeof optimizers / sizeof optimizers[0]))

/* Without biases before BatchNorm: their gradient is rounding only, which Adam and RMSprop would
 * scale up. */
static ng_module *network(const char *norm)
{
    bool batch = strcmp(norm, "batch_norm") == 0;
    ng_module *net = own(ng_sequential_new(ng_linear_new(8, 12, .no_bias = batch),
                                           batch ? ng_batch_norm_new(12) : ng_layer_norm_new(12),
                                           ng_relu_new(), ng_linear_new(12, 12, .no_bias = batch),
                                           batch ? ng_batch_norm_new(12) : ng_layer_norm_new(12),
                                           ng_gelu_new(), ng_linear_new(12, 5)));
    assert_ok(ng_module_to(net, NG_F64));
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(net, i, &parameter); i++)
        assert_ok(ng_copy_values(parameter.tensor, golden("%s/%s", norm, parameter.name)));
    return net;
}

static void load_training(void) { set_up(), golden_load("tests/golden/training.txt"); }

START_TEST(fifty_losses_of_training_are_pytorchs)
{
    const char *norm = _i % 2 ? "batch_norm" : "layer_norm", *by = optimizers[_i / 2].name;
    ng_module *net = network(norm);
    ng_optimizer *optimizer = own(optimizers[_i / 2].make(net));
    ng_tensor *losses = golden("%s/%s/losses", norm, by), *labels[BATCHES];
    for (int i = 0; i < BATCHES; i++) labels[i] = own(ng_copy_new(golden("labels%d", i), NG_I64));
    for (int step = 0; step < STEPS; step++) {
        ng_tensor *logits = ng_forward(net, tape, golden("x%d", step % BATCHES));
        ng_tensor *loss = ng_cross_entropy(tape, logits, labels[step % BATCHES]);
        assert_ok(ng_backward(tape, loss));
        assert_ok(ng_optimizer_step(optimizer));
        char what[128];
        snprintf(what, sizeof what, "%s with %s: loss at step %d", norm, by, step);
        expect_close(__FILE__, __LINE__, what, ng_item(loss), ng_get(losses, step),
                     TRAINING_TOLERANCE);
        ng_tape_reset(tape);
    }
    ng_eval(net);
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, golden("x0")), labels[0]);
    assert_close(ng_item(loss), ng_item(golden("%s/%s/eval", norm, by)), TRAINING_TOLERANCE);
}

/* ---- Twenty steps of the optimizers that normalize ------------------------------------------- */

#define COSINE NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = 3, .steps = 12, .floor = 0.1)
/* The decay of all parameters comes from a group. */
static ng_optimizer *grouped(ng_optimizer *made)
{
    assert_ok(ng_optimizer_set_decay(made, "*", 0.1));
    return made;
}

#define NORMALIZERS(X)                                                                             \
    X(amsgrad, ng_adam_new(net, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.7, .weight_decay = 1e-3,      \
                           .amsgrad = true))                                                       \
    X(amsgrad_decoupled,                                                                           \
      ng_adamw_new(net, 0.05, .lr = 0.02, .beta1 = 0.8, .beta2 = 0.7, .amsgrad = true))            \
    X(lion, ng_lion_new(net, .lr = 0.003))                                                         \
    X(lion_decay, ng_lion_new(net, .lr = 0.003, .beta1 = 0.8, .beta2 = 0.95, .weight_decay = 0.3,  \
                              .schedule = COSINE))                                                 \
    X(lars, ng_lars_new(net, .lr = 0.5, .trust = 0.02, .weight_decay = 0.05))                      \
    X(lars_matrices, ng_lars_new(net, .lr = 0.2, .momentum = 0.8, .trust = 0.05,                   \
                                 .matrices_only = true, .schedule = COSINE))                       \
    X(lamb, ng_lamb_new(net, 0.01, .lr = 0.02))                                                    \
    X(lamb_matrices, ng_lamb_new(net, 0.1, .lr = 0.02, .matrices_only = true, .schedule = COSINE)) \
    X(muon, ng_muon_new(net, .adam_scale = 0.5))                                                   \
    X(muon_plain, grouped(ng_muon_new(net, .momentum = 0.8, .heavy_ball = true, .adam_scale = 0.5, \
                                      .schedule = COSINE)))
NORMALIZERS(MADE)
static const maker normalizers[] = {NORMALIZERS(ROW)};

static void load_optimizers(void) { set_up(), golden_load("tests/golden/optimizers.txt"); }

START_TEST(weights_after_twenty_steps_are_pytorchs)
{
    ng_module *net = own(ng_sequential_new(ng_linear_new(8, 6), ng_layer_norm_new(6), ng_gelu_new(),
                                           ng_linear_new(6, 9), ng_gelu_new(), ng_linear_new(9, 9),
                                           ng_tanh_new(), ng_linear_new(9, 3)));
    assert_ok(ng_module_to(net, NG_F64));
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(net, i, &parameter); i++)
        assert_ok(ng_copy_values(parameter.tensor, golden("start/%s", parameter.name)));
    ng_optimizer *optimizer = own(normalizers[_i].make(net));
    for (int step = 0; step < 20; step++) {
        ng_tensor *labels = ng_cast(tape, golden("labels%d", step % BATCHES), NG_I64);
        ng_tensor *logits = ng_forward(net, tape, golden("x%d", step % BATCHES));
        assert_ok(ng_backward(tape, ng_cross_entropy(tape, logits, labels)));
        assert_ok(ng_optimizer_step(optimizer));
        ng_tape_reset(tape);
    }
    /* Muon's products amplify roundings. */
    for (int i = 0; ng_module_parameter(net, i, &parameter); i++)
        assert_golden(parameter.tensor, 10 * OP_TOLERANCE, "%s/%s", normalizers[_i].name,
                      parameter.name);
}

Suite *golden_suite(void)
{
    Suite *suite = suite_create("golden");
    TCase *tests = add_case(suite, load_ops, golden_tear_down);
    add_tests(tests, every_figure_has_a_row);
    add_loops(tests, N_ROWS, value_and_gradients_are_pytorchs);
    tests = add_case(suite, load_training, golden_tear_down);
    add_loops(tests, 2 * N_OPTIMIZERS, fifty_losses_of_training_are_pytorchs);
    tests = add_case(suite, load_optimizers, golden_tear_down);
    add_loops(tests, sizeof normalizers / sizeof normalizers[0],
              weights_after_twenty_steps_are_pytorchs);
    return suite;
}
