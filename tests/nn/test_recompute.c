/* ng_recompute: the same bits as ng_forward, with the memory of one pass given back. */
#include "support/fixture.h"
#include "support/support.h"
#include <math.h>
#include <pthread.h>

/* ---- Networks ------------------------------------------------------------------------------- */

enum { DIM = 8 };

/* A layer that runs its child by ng_recompute, or by ng_forward. */
typedef struct {
    ng_module base;
    ng_module *inner;
    bool again;
} wrapper;

static ng_tensor *wrapper_forward(ng_module *self, ng_tape *on, const ng_inputs *in)
{
    const wrapper *layer = (const wrapper *)self;
    return layer->again ? ng_recompute_with(layer->inner, on, *in)
                        : ng_forward_child(layer->inner, on, in->x, in);
}

static const ng_module_class wrapper_class = {
    .name = "Wrapper", .size = sizeof(wrapper), .forward_with = wrapper_forward};

static ng_module *wrapped(ng_module *inner, bool again)
{
    wrapper *self = (wrapper *)ng_module_new(&wrapper_class);
    self->inner = ng_module_add_child(&self->base, "inner", inner);
    self->again = again;
    return ng_module_built(&self->base);
}

/* Layers with random numbers, running statistics and counters, power iteration. */
static ng_module *mixed(void)
{
    return ng_sequential_new(
        ng_linear_new(DIM, DIM), ng_batch_norm_new(DIM), ng_gelu_new(), ng_dropout_new(0.3),
        ng_residual_new(ng_sequential_new(ng_layer_norm_new(DIM),
                                          ng_spectral_norm_new(ng_linear_new(DIM, DIM)),
                                          ng_dropout_new(0.2))),
        ng_weight_norm_new(ng_linear_new(DIM, DIM)), ng_tanh_new());
}

static ng_module *two_mixed(bool again)
{
    return ng_sequential_new(wrapped(mixed(), again), wrapped(mixed(), again));
}

static ng_module *transformer_blocks(bool again)
{
    ng_module *net = ng_sequential_new(ng_tanh_new());
    for (int i = 0; i < 2; i++)
        ng_sequential_add(net, wrapped(ng_transformer_block_new(DIM, 2, .dropout = 0.1), again));
    return net;
}

static ng_module *nested(bool again) { return wrapped(two_mixed(again), again); }

static const struct {
    ng_module *(*make)(bool again);
    ng_shape shape;
} networks[] = {
    {two_mixed, {2, {6, DIM}}}, {transformer_blocks, {3, {2, 5, DIM}}}, {nested, {2, {6, DIM}}}};

/* The same network twice, on a tape each, with the same input: [1] recomputes. */
typedef struct {
    ng_module *net[2];
    ng_tape *on[2];
    ng_tensor *x[2];
} twins;

static twins twins_of(int which, ng_dtype dtype)
{
    twins t;
    for (int i = 0; i < 2; i++) {
        t.net[i] = networks[which].make(i);
        t.on[i] = ng_tape_new();
        t.x[i] = normal(dtype, networks[which].shape, 1);
        assert_ok(ng_module_init(t.net[i], 3));
        assert_ok(ng_module_to(t.net[i], dtype));
    }
    return t;
}

static void twins_free(twins *t)
{
    for (int i = 0; i < 2; i++) ng_tape_free(t->on[i]), ng_module_free(t->net[i]);
}

/* Equal bits, or a difference of at most `allowed`. */
static void assert_alike(ng_tensor *a, ng_tensor *b, double allowed)
{
    if (allowed == 0) assert_same_bits(a, b);
    for (int64_t i = 0; i < ng_size(a) && allowed > 0; i++)
        ck_assert_double_le(fabs(ng_get(a, i) - ng_get(b, i)), allowed);
}

/* Gradients, and then buffers and random numbers, which have the same bits. */
static void assert_twins(const twins *t, double allowed)
{
    ng_named_tensor p[2];
    for (int k = 0; ng_module_parameter(t->net[0], k, &p[0]); k++) {
        ck_assert(ng_module_parameter(t->net[1], k, &p[1]));
        ck_assert_int_eq(ng_has_grad(p[0].tensor), ng_has_grad(p[1].tensor));
        if (ng_has_grad(p[0].tensor))
            assert_alike(ng_grad(p[0].tensor), ng_grad(p[1].tensor), allowed);
    }
    if (ng_has_grad(t->x[0])) assert_alike(ng_grad(t->x[0]), ng_grad(t->x[1]), allowed);
    assert_same_module(t->net[0], t->net[1]);
    ng_tensor *next[2];
    for (int i = 0; i < 2; i++) next[i] = ng_normal(t->on[i], NG_F32, NG_SHAPE(4), 0, 1);
    assert_same_bits(next[0], next[1]);
}

START_TEST(a_gradient_may_be_taken_twice)
{
    twins t = twins_of(0, NG_F32);
    ng_tensor *loss[2];
    for (int i = 0; i < 2; i++) loss[i] = ng_sum(t.on[i], ng_forward(t.net[i], t.on[i], t.x[i]));
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < 2; i++) assert_ok(ng_backward(t.on[i], loss[i]));
        assert_twins(&t, 0);
    }
    for (int i = 0; i < 2; i++) {
        ng_named_tensor weight;
        ck_assert(ng_module_parameter(t.net[i], 0, &weight));
        assert_ok(ng_gradient(t.on[i], loss[i], weight.tensor));
    }
    twins_free(&t);
}

/* ---- Uses ----------------------------------------------------------------------------------- */

START_TEST(frozen_parameters_get_no_gradient)
{
    twins t = twins_of(0, NG_F32);
    for (int i = 0; i < 2; i++) {
        ng_module *linear = ng_module_child(ng_module_child(ng_module_child(t.net[i], 1), 0), 0);
        ng_freeze(linear);
        ng_tensor *y = ng_forward(t.net[i], t.on[i], t.x[i]);
        ng_unfreeze(linear); /* too late for this pass */
        assert_ok(ng_backward(t.on[i], ng_sum(t.on[i], y)));
        ck_assert(!ng_has_grad(ng_module_find(linear, "weight")));
    }
    assert_twins(&t, 0);
    twins_free(&t);
}

START_TEST(inputs_may_be_named)
{
    ng_tensor *mask =
        own(ng_tensor_from(NG_F32, NG_SHAPE(2, 5), NG_VALUES(1, 1, 1, 0, 0, 1, 1, 1, 1, 0)));
    twins t = twins_of(1, NG_F32);
    ng_tensor *y[2];
    for (int i = 0; i < 2; i++) {
        ng_module *block = ng_module_child(ng_module_child(t.net[i], 1), 0);
        y[i] = i ? ng_recompute(block, t.on[i], t.x[i], .mask = mask)
                 : ng_forward(block, t.on[i], t.x[i], .mask = mask);
        assert_ok(ng_backward(t.on[i], ng_sum(t.on[i], y[i])));
    }
    assert_same_bits(y[0], y[1]);
    assert_twins(&t, 0);
    twins_free(&t);
}

START_TEST(other_tensors_may_replace_the_parameters)
{
    twins t = twins_of(2, NG_F64);
    ng_tensor *found[2][64];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        ng_tensor *w[64];
        ng_named_tensor p;
        for (n = 0; ng_module_parameter(t.net[i], n, &p); n++)
            w[n] = ng_mul_scalar(t.on[i], p.tensor, 1.1);
        ng_tensor *y = ng_forward_using(t.net[i], t.on[i], w, n, t.x[i]);
        assert_ok(ng_gradients(t.on[i], &y, 1, w, n, found[i]));
        assert_ok(ng_backward(t.on[i], ng_sum(t.on[i], y)));
    }
    for (int k = 0; k < n; k++) assert_same_bits(found[0][k], found[1][k]);
    assert_twins(&t, 0);
    twins_free(&t);
}

START_TEST(it_is_ng_forward_where_nothing_is_recorded)
{
    ng_module *net = own(mixed());
    ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(4, DIM)));
    ng_eval(net);
    ng_tape_set_recording(tape, false);
    assert_same_bits(ng_recompute(net, tape, x), ng_forward(net, tape, x));
    ck_assert_int_eq(ng_tape_used(tape).ops, 0);
    ng_tape_set_recording(tape, true);
    ng_freeze(net);
    assert_same_bits(ng_recompute(net, tape, x), ng_forward(net, tape, x));
    ck_assert_int_eq(ng_tape_used(tape).ops, 0);
    ng_unfreeze(net);
    ck_assert_ptr_nonnull(ng_recompute(net, tape, x));
    ck_assert_int_eq(ng_tape_used(tape).ops, 1);
}

/* ---- Failures ------------------------------------------------------------------------------- */

/* A layer that fails from its n-th call on, and takes a gradient itself. */
static int calls_left;
static ng_tensor *fragile_forward(ng_module *self, ng_tape *on, ng_tensor *x)
{
    (void)self;
    if (calls_left-- <= 0) return ng_reshape(on, x, NG_SHAPE(7));
    ng_tensor *v = ng_variable(on, x);
    ng_tensor *slope = ng_gradient(on, ng_sum(on, ng_tanh(on, v)), v, .record = true);
    return ng_mul(on, x, ng_detach(on, slope));
}

static const ng_module_class fragile_class = {
    .name = "Fragile", .size = sizeof(ng_module), .forward = fragile_forward};

START_TEST(a_failure_in_either_run_is_an_error)
{
    for (int calls = 0; calls < 3; calls++) {
        ng_module *net =
            ng_sequential_new(ng_linear_new(DIM, DIM), ng_batch_norm_new(DIM), ng_dropout_new(0.5),
                              ng_module_built(ng_module_new(&fragile_class)));
        ng_tensor *x = normal(NG_F32, NG_SHAPE(4, DIM), 1);
        calls_left = calls;
        ng_tensor *y = ng_recompute(net, tape, x);
        if (calls == 0) assert_fails(y, NG_ESHAPE, "3 (Fragile): ng_reshape");
        ng_tensor *running = ng_module_find(net, "1.running_mean");
        ng_tensor *moved = own(ng_copy_new(running, NG_F32)), *next = NULL;
        if (calls == 1)
            assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_ESHAPE, "3 (Fragile): ng_reshape");
        if (calls == 2) assert_ok(ng_backward(tape, ng_sum(tape, y)));
        ck_assert_int_eq(ng_has_grad(x), calls == 2);
        assert_same_bits(running, moved);
        assert_ok(next = ng_recompute(ng_module_child(net, 0), tape, x)); /* the tape goes on */
        assert_ok(ng_backward(tape, ng_sum(tape, next)));
        ng_tape_reset(tape);
        ng_module_free(net);
    }
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, DIM), 1);
    ng_module *net = own(ng_linear_new(DIM, DIM));
    assert_fails(ng_recompute(net, tape, NULL), NG_ENULL);
    assert_fails(ng_recompute(NULL, tape, x), NG_ENULL);
    assert_fails(ng_recompute(net, NULL, x), NG_ENULL);
    ng_tensor *y = ng_recompute(net, tape, x);
    assert_ok(ng_fill(ng_module_find(net, "bias"), 2));
    assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_ESTATE);
}

static ng_tensor *taking_a_pass(ng_tape *on, ng_tensor *x)
{
    ng_tensor *y = ng_square(on, ng_variable(on, x));
    return ng_backward(on, ng_sum(on, y)) == NG_OK ? y : NULL;
}

/* It would add to the gradients of leaves in both runs. */
START_TEST(a_backward_pass_inside_is_an_error)
{
    ng_module *net = own(ng_function_new("taking_a_pass", taking_a_pass));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(3), 1);
    assert_ok(ng_forward(net, tape, x));
    assert_fails(ng_recompute(net, tape, x), NG_ESTATE, "ng_backward");
}

/* Wherever memory ends, buffers are those of one pass, or of none. */
START_TEST(without_memory_nothing_is_lost)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(6, DIM), 1);
    ng_status status = NG_ENOMEM;
    for (int64_t count = 0; status != NG_OK; count++) {
        ng_module *net = two_mixed(true), *same = two_mixed(false);
        ng_tape *on = ng_tape_new();
        assert_ok(ng_module_init(net, 1)), assert_ok(ng_module_init(same, 1));
        allocations_fail_after(count);
        ng_tensor *y = ng_forward(net, on, x), *loss = ng_sum(on, y);
        status = loss ? ng_backward(on, loss) : ng_error_status();
        allocations_succeed();
        ng_clear_error();
        if (y) assert_ok(ng_forward(same, tape, x)), assert_same_module(net, same);
        if (status != NG_OK) ck_assert_int_eq(status, NG_ENOMEM);
        ng_tape_free(on), ng_module_free(net), ng_module_free(same);
        ng_tape_reset(tape);
        ng_tape_seed(tape, 0);
    }
}

/* ---- Changes that the output does not show -------------------------------------------------- */

static ng_tensor *factor;
static ng_tensor *by_detached(ng_tape *on, ng_tensor *x)
{
    return ng_mul(on, x, ng_detach(on, factor));
}

/* A branch of output 0 at first, as residual networks begin with. */
static ng_module *zero_branch(void)
{
    return own(ng_sequential_new(ng_dropout_new(0.5), ng_linear_new(DIM, DIM),
                                 ng_function_new("by_detached", by_detached),
                                 ng_linear_new(DIM, DIM, .init = NG_INIT_CONSTANT)));
}

/* The gradient of the last weight is that of ng_forward, or NG_ESTATE: `expected`. */
static void expect_after(void (*change)(ng_module *net, ng_tensor *x), ng_status expected)
{
    ng_tensor *slope[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++) {
        ng_module *net = zero_branch();
        ng_tensor *x = own(ng_ones_new(NG_F32, NG_SHAPE(4, DIM)));
        factor = own(ng_ones_new(NG_F32, NG_SHAPE(DIM)));
        ng_tape_seed(tape, 1);
        ng_tensor *y = i ? ng_recompute(net, tape, x) : ng_forward(net, tape, x);
        if (i) change(net, x);
        slope[i] = ng_gradient(tape, y, ng_module_find(net, "3.weight"));
    }
    if (expected == NG_OK) assert_same_bits(slope[0], slope[1]);
    if (expected != NG_OK) assert_fails(slope[1], expected, "recompute");
}

static void into_evaluation(ng_module *net, ng_tensor *x) { (void)x, ng_eval(net); }
static void one_layer_more(ng_module *net, ng_tensor *x)
{
    (void)x;
    assert_ok(ng_sequential_add(net, ng_dropout_new(0.5)));
}
static void another_x(ng_module *net, ng_tensor *x) { (void)net, assert_ok(ng_fill(x, 2)); }
static void another_factor(ng_module *net, ng_tensor *x)
{
    (void)net, (void)x;
    assert_ok(ng_fill(factor, 2));
}

START_TEST(a_change_is_undone_or_noticed_even_if_the_output_is_the_same)
{
    expect_after(into_evaluation, NG_OK);
    expect_after(one_layer_more, NG_ESTATE);
    expect_after(another_x, NG_ESTATE);
    expect_after(another_factor, NG_ESTATE);
}

/* Buffers of another size would be written past their end. */
START_TEST(a_module_that_was_converted_is_an_error)
{
    ng_module *net = own(ng_batch_norm_new(1000, .no_affine = true));
    ng_tensor *y = ng_recompute(net, tape, normal(NG_F32, NG_SHAPE(5, 1000), 1));
    assert_ok(ng_module_to(net, NG_F64));
    assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_ESTATE, "BatchNorm");
}

/* ---- The checker ----------------------------------------------------------------------------- */

static ng_tensor *two_layers(ng_tape *on, ng_tensor *const *in, void *net)
{
    ng_tensor *x = ng_forward(ng_module_child(net, 0), on, in[0]);
    return ng_recompute(ng_module_child(net, 1), on, x);
}

/* The second layer runs again with its own detached values, not with those of the first. */
START_TEST(the_checker_passes_detached_values_before_a_recomputation)
{
    ng_module *net = own(ng_sequential_new(ng_spectral_norm_new(ng_linear_new(DIM, DIM)),
                                           ng_spectral_norm_new(ng_linear_new(DIM, DIM))));
    assert_ok(ng_module_to(net, NG_F64));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(5, DIM), 1);
    const ng_check_report report = ng_check_function(two_layers, &x, 1, .context = net);
    ck_assert_msg(report.passed, "%s", report.message);
}

/* ---- Depth ----------------------------------------------------------------------------------- */

START_TEST(sixty_calls_may_be_nested_and_seventy_are_an_error)
{
    for (int depth = 60; depth <= 70; depth += 10) {
        ng_module *net = ng_linear_new(DIM, DIM);
        for (int i = 0; i < depth; i++) net = wrapped(net, true);
        ng_tensor *y = ng_forward(own(net), tape, normal(NG_F32, NG_SHAPE(2, DIM), 1));
        if (depth == 60) assert_ok(ng_backward(tape, ng_sum(tape, y)));
        if (depth == 70) assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_EGRAD, "ng_recompute");
    }
}

/* ---- Memory and threads --------------------------------------------------------------------- */

/* Bytes of a training step of so many blocks, and allocations of later steps. */
static int64_t bytes_of(int blocks, bool again)
{
    ng_tape *on = ng_tape_new();
    ng_module *net = ng_sequential_new(ng_tanh_new());
    for (int i = 0; i < blocks; i++)
        ng_sequential_add(net, wrapped(ng_transformer_block_new(32, 4), again));
    ng_tensor *x = normal(NG_F32, NG_SHAPE(4, 16, 32), 1);
    int64_t made = 0, kept = 0;
    for (int step = 0; step < 6; step++) {
        assert_ok(ng_backward(on, ng_sum(on, ng_square(on, ng_forward(net, on, x)))));
        ng_tape_reset(on);
        kept = ng_tape_used(on).bytes_kept;
        if (step == 2) made = allocations_made();
    }
    if (kept > 0) assert_none_allocated_since(made);
    ng_tape_free(on), ng_module_free(net);
    return kept;
}

/* Under AddressSanitizer a tape keeps no memory. */
START_TEST(memory_is_given_back)
{
    const int64_t again = bytes_of(24, true), whole = bytes_of(24, false);
    if (whole > 0) ck_assert_int_lt(2 * again, whole);
}

static void *train_twins(void *unused)
{
    (void)unused;
    twins *t = malloc(sizeof *t);
    for (int i = 0; i < 2; i++) {
        t->net[i] = two_mixed(i);
        t->on[i] = ng_tape_new();
        t->x[i] = ng_require_grad(ng_ones_new(NG_F32, NG_SHAPE(6, DIM)));
    }
    for (int step = 0; step < 20; step++)
        for (int i = 0; i < 2; i++) {
            ng_tensor *y = ng_forward(t->net[i], t->on[i], t->x[i]);
            if (ng_backward(t->on[i], ng_sum(t->on[i], y)) != NG_OK) return t;
            ng_tape_reset(t->on[i]);
        }
    return t;
}

START_TEST(threads_recompute_at_the_same_time)
{
    enum { THREADS = 3 };
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, train_twins, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(thread[i], &result);
        twins *t = result;
        assert_twins(t, 0);
        twins_free(t);
        for (int k = 0; k < 2; k++) ng_tensor_free(t->x[k]);
        free(t);
    }
}

Suite *recompute_suite(void)
{
    Suite *suite = suite_create("recompute");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, a_gradient_may_be_taken_twice, frozen_parameters_get_no_gradient,
              inputs_may_be_named, other_tensors_may_replace_the_parameters,
              it_is_ng_forward_where_nothing_is_recorded, a_failure_in_either_run_is_an_error,
              a_backward_pass_inside_is_an_error, without_memory_nothing_is_lost,
              a_change_is_undone_or_noticed_even_if_the_output_is_the_same,
              a_module_that_was_converted_is_an_error,
              the_checker_passes_detached_values_before_a_recomputation,
              sixty_calls_may_be_nested_and_seventy_are_an_error, memory_is_given_back,
              threads_recompute_at_the_same_time);
    return suite;
}
