/* Memory of training: nothing is allocated once warm, a refused allocation is an error without a
 * leak. */
#include "support/folder.h"
#include "support/optimizers.h"
#include "support/support.h"

/* ---- A network, its loss and its data ------------------------------------------------------- */

#define FEATURES 6
#define CONDITION 3
#define CLASSES 3

/* With norms of rows and columns, a conditioned norm, and dropout. */
static ng_module *network(int64_t width)
{
    return ng_sequential_new(
        ng_linear_new(FEATURES, width), ng_layer_norm_new(width), ng_gelu_new(),
        ng_residual_new(ng_sequential_new(ng_linear_new(width, width), ng_batch_norm_new(width),
                                          ng_relu_new(), ng_dropout_new(0.1))),
        ng_adaptive_layer_norm_new(width, .condition = CONDITION, .gate = true),
        ng_linear_new(width, CLASSES));
}

/* One batch's loss. */
static ng_tensor *loss_of(ng_module *net, ng_tape *on, ng_tensor *x, ng_tensor *labels)
{
    if (!x) return NULL;
    ng_tensor *condition = ng_full(on, ng_dtype_of(x), NG_SHAPE(ng_dim(x, 0), CONDITION), 0.25);
    return ng_cross_entropy(on, ng_forward(net, on, x, .condition = condition), labels);
}

/* `count` random samples with random labels. */
static ng_dataset *samples(int64_t count)
{
    ng_rng rng = ng_rng_seeded(7);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(count, FEATURES), 0, 1, &rng);
    ng_tensor *y = ng_zeros_new(NG_I64, NG_SHAPE(count));
    for (int64_t i = 0; i < count; i++) ng_set(y, i, (double)ng_rng_below(&rng, CLASSES));
    ng_dataset *dataset = ng_dataset_from(x, y);
    ng_tensor_free(x);
    ng_tensor_free(y);
    return dataset;
}

/* ---- Steady state --------------------------------------------------------------------------- */

static ng_status epoch(ng_module *net, ng_optimizer *optimizer, ng_tape *on, ng_dataset *data,
                       uint64_t seed)
{
    ng_batch batch;
    ng_status status = ng_dataset_shuffle(data, seed);
    for (int i = 0; ng_dataset_batch(data, on, i, 16, &batch); i++) {
        ng_status step = ng_backward(on, loss_of(net, on, batch.x, batch.y));
        if (!step) step = ng_clip_grad_norm(net, 1) >= 0 ? NG_OK : ng_error_status();
        if (!step) step = ng_optimizer_step(optimizer);
        if (step) status = step;
        ng_tape_reset(on);
    }
    bool was = ng_tape_set_recording(on, false);
    ng_eval(net);
    for (int i = 0; ng_dataset_batch(data, on, i, 16, &batch); i++) {
        if (!loss_of(net, on, batch.x, batch.y)) status = ng_error_status();
        ng_tape_reset(on);
    }
    ng_train(net);
    ng_tape_set_recording(on, was);
    return status;
}

START_TEST(training_with_each_optimizer_allocates_nothing_once_warm)
{
    ng_module *net = own(network(12));
    ng_optimizer *optimizer = own(optimizers[_i].make(net));
    ng_tape *on = own(ng_tape_new());
    ng_dataset *data = own(samples(40)); /* 16 + 16 + 8: the last batch is short */
    int64_t at_first = allocations_made();
    for (uint64_t i = 0; i < 2; i++) assert_ok(epoch(net, optimizer, on, data, i));
    int64_t warm = allocations_made();
    ck_assert_msg(warm > at_first, "allocations are not being counted");

    ng_status status = NG_OK;
    for (uint64_t i = 2; i < 10 && !status; i++) status = epoch(net, optimizer, on, data, i);
    assert_ok(status);
    assert_none_allocated_since(warm);
}

/* ---- Every allocation refused --------------------------------------------------------------- */

#define MAX_WEIGHTS 512

/* The result of a run: the loss of its last step, the weights and buffers after it. */
typedef struct {
    double loss;
    int count;
    double weights[MAX_WEIGHTS];
} outcome;

static void keep(outcome *result, const ng_tensor *x)
{
    for (int64_t i = 0; i < ng_size(x) && result->count < MAX_WEIGHTS; i++)
        result->weights[result->count++] = ng_get(x, i);
}

static void keep_all(outcome *result, ng_module *net)
{
    ng_named_tensor named;
    for (int i = 0; ng_module_parameter(net, i, &named); i++) keep(result, named.tensor);
    for (int i = 0; ng_module_buffer(net, i, &named); i++) keep(result, named.tensor);
}

static ng_status write_history(double loss)
{
    ng_history *history = ng_history_new("one step");
    ng_status status = ng_history_block(history, "LayerNorm");
    for (int64_t step = 0; step < 40 && !status; step++)
        status = ng_history_log(history, step % 2 ? "loss" : "accuracy", step, loss);
    if (!status) status = ng_history_write(history, in_folder("history"));
    ng_history_free(history);
    return status;
}

static ng_status save_and_load(ng_module *net)
{
    ng_status status = ng_module_save(net, in_folder("weights"));
    return status ? status : ng_module_load(net, in_folder("weights"));
}

static ng_status check_gradients(ng_module *net)
{
    ng_rng rng = ng_rng_seeded(3);
    ng_tensor *inputs[2] = {
        ng_normal_new(NG_F64, NG_SHAPE(4, FEATURES), 0, 1, &rng),
        ng_normal_new(NG_F64, NG_SHAPE(4, CONDITION), 0, 1, &rng),
    };
    static const char *const names[] = {"x", "condition"};
    ng_check_report report =
        ng_check_module(net, inputs, 2, .names = names, .mode = NG_CHECK_FAST, .directions = 1);
    ng_tensor_free(inputs[0]);
    ng_tensor_free(inputs[1]);
    return report.passed ? NG_OK : ng_failed() ? ng_error_status() : NG_EGRAD;
}

/* Builds a network, trains it for two steps, checks its gradients, converts it, writes a history,
 * saves and loads it. The first failure ends the run. */
static ng_status run(outcome *result)
{
    *result = (outcome){.loss = 0};
    ng_clear_error();
    ng_dataset *data = samples(8);
    ng_module *net = network(4);
    ng_tape *on = ng_tape_new();
    ng_optimizer *adam = ng_adam_new(net);
    ng_status status = data && net && on && adam ? ng_module_init(net, 11) : ng_error_status();
    for (int step = 0; step < 2 && !status; step++) {
        ng_batch batch = {NULL, NULL, 0};
        if (!ng_dataset_batch(data, on, 0, 8, &batch)) status = ng_error_status();
        ng_tensor *loss = status ? NULL : loss_of(net, on, batch.x, batch.y);
        if (!status) status = ng_backward(on, loss);
        if (!status) status = ng_optimizer_step(adam);
        if (!status) result->loss = ng_item(loss);
        ng_tape_reset(on);
    }
    if (!status) status = check_gradients(net);
    if (!status) status = ng_module_to(net, NG_F64);
    if (!status) status = write_history(result->loss);
    if (!status) status = save_and_load(net);
    if (!status) keep_all(result, net);
    ng_optimizer_free(adam), ng_tape_free(on);
    ng_module_free(net), ng_dataset_free(data);
    return status;
}

static void expect_same_outcome(const outcome *a, const outcome *b)
{
    ck_assert_int_gt(a->count, 0);
    ck_assert_msg(memcmp(a, b, sizeof *a) == 0, "other bits: loss %.17g and %.17g", a->loss,
                  b->loss);
}

/* Refuses the n-th allocation, n = 0, 1, ... until a run is refused none: that and all later ones;
 * or that one. */
START_TEST(a_run_that_is_refused_memory_leaks_nothing_and_can_go_on)
{
    static outcome first, result;
    ck_assert_msg(run(&first) == NG_OK, "without refusals: %s", ng_error_text());
    bool refused = true;
    for (int64_t n = 0; refused; n = next_to_refuse(n)) {
        int64_t live = allocations_live();
        (_i == 0 ? allocations_fail_after : allocations_fail_once_after)(n);
        const ng_status status = run(&result);
        refused = allocations_refused();
        allocations_succeed();
        int64_t leaked = allocations_live() - live;
        ck_assert_msg(leaked == 0, "refused %lld: leaked %lld", (long long)n, (long long)leaked);
        ck_assert_msg(status == NG_OK || status == NG_ENOMEM, "refused %lld: %s: %s", (long long)n,
                      ng_status_name(status), ng_error_text());
        if (status == NG_OK) expect_same_outcome(&first, &result);
        if (n == 0) ck_assert_msg(status != NG_OK, "no allocation is refused");
    }
    ck_assert_int_eq(run(&result), NG_OK);
    expect_same_outcome(&first, &result);
}

/* ---- Every layer ---------------------------------------------------------------------------- */

START_TEST(a_layer_is_built_whole_or_not_at_all)
{
    static void (*const refuse_after[])(int64_t) = {allocations_fail_after,
                                                    allocations_fail_twice_after};
    for (int way = 0; way < 2; way++) {
        for (int64_t n = 0, refused = 1; refused; n++) {
            refuse_after[way](n);
            ng_module *net = layer_case(_i)->module();
            refused = out_of_memory(!net);
            ng_module_free(net);
            ck_assert_int_eq(allocations_live(), 0);
        }
    }
}

/* A layer of the table and its inputs, ready for training. */
typedef struct {
    ng_module *net;
    ng_optimizer *adam; /* NULL if the layer has no parameters */
    ng_inputs in;
    ng_tensor *second; /* the input besides x, or NULL */
} trainee;

static trainee trainee_new(const gradient_case *spec)
{
    ng_rng rng = ng_rng_seeded(5);
    trainee t = {.net = spec->module()};
    assert_ok(ng_module_to(t.net, NG_F64));
    if (spec->eval) ng_eval(t.net);
    if (ng_parameter_count(t.net) > 0) assert_ok(t.adam = ng_adam_new(t.net));
    ng_tensor *inputs[CASE_INPUTS] = {NULL};
    for (int i = 0; i < 2 && spec->inputs[i].name; i++)
        assert_ok(inputs[i] = case_input_new(&spec->inputs[i], &rng));
    if (!spec->inputs[0].index) ng_require_grad(inputs[0]);
    t.in = case_inputs(spec, inputs), t.second = inputs[1];
    return t;
}

static void trainee_free(trainee t)
{
    ng_tensor_free(t.in.x), ng_tensor_free(t.second);
    ng_optimizer_free(t.adam), ng_module_free(t.net);
}

static ng_tensor *sum_of_squares(trainee t, ng_tape *on)
{
    return ng_sum(on, ng_square(on, ng_forward_with(t.net, on, t.in)));
}

/* A training step, in which a call that is refused memory is made again at most twice. Returns the
 * loss. */
static double step_with_retries(trainee t, ng_tape *on)
{
    ng_tensor *loss = NULL;
    for (int i = 0; i < 3 && !loss; i++) loss = sum_of_squares(t, on);
    ng_status status = NG_ENOMEM;
    for (int i = 0; i < 3 && status == NG_ENOMEM; i++) status = ng_backward(on, loss);
    assert_ok(status);
    if (t.adam) status = NG_ENOMEM;
    for (int i = 0; i < 3 && status == NG_ENOMEM; i++) status = ng_optimizer_step(t.adam);
    assert_ok(status);
    const double value = ng_item(loss);
    ng_tape_reset(on);
    return value;
}

START_TEST(training_a_layer_allocates_nothing_once_warm)
{
    ng_tape *on = ng_tape_new();
    trainee t = trainee_new(layer_case(_i));
    int64_t warm = 0;
    for (int step = 0; step < 8; step++) {
        if (step == 2) warm = allocations_made();
        step_with_retries(t, on);
    }
    assert_none_allocated_since(warm);
    trainee_free(t), ng_tape_free(on);
}

/* In evaluation mode: in training, BatchNorm and dropout change state in a forward pass that may
 * fail later. */
START_TEST(a_layers_step_that_was_refused_memory_has_the_same_bits)
{
    static outcome first, result;
    bool refused = true;
    for (int64_t n = -1; refused; n = next_to_refuse(n)) { /* -1: refused nothing */
        ng_tape *on = ng_tape_new();
        trainee t = trainee_new(layer_case(_i));
        ng_eval(t.net);
        if (n >= 0) allocations_fail_twice_after(n);
        result = (outcome){.loss = step_with_retries(t, on)};
        refused = n < 0 || allocations_refused();
        allocations_succeed();
        ng_clear_error();
        if (ng_requires_grad(t.in.x)) keep(&result, ng_grad(t.in.x));
        keep_all(&result, t.net);
        if (n < 0) first = result;
        expect_same_outcome(&first, &result);
        trainee_free(t), ng_tape_free(on);
        ck_assert_int_eq(allocations_live(), 0);
    }
}

Suite *memory_suite(void)
{
    Suite *suite = suite_create("memory");
    TCase *tests = add_case(suite, NULL, NULL);
    add_loops(tests, OPTIMIZERS, training_with_each_optimizer_allocates_nothing_once_warm);
    tests = add_case(suite, make_test_folder, remove_test_folder);
    add_loops(tests, 2, a_run_that_is_refused_memory_leaks_nothing_and_can_go_on);
    add_loops(tests, case_count(layer_case), a_layer_is_built_whole_or_not_at_all,
              training_a_layer_allocates_nothing_once_warm,
              a_layers_step_that_was_refused_memory_has_the_same_bits);
    return suite;
}
