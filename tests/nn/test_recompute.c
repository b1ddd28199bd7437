/* ng_recompute: uses, failures, memory that is given back. test_random_networks.c compares its bits
 * with those of ng_forward. */
#include "support/fixture.h"
#include "support/support.h"
#include <math.h>

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

/* ---- Uses ----------------------------------------------------------------------------------- */

START_TEST(other_tensors_may_replace_the_parameters)
{
    ng_tensor *found[2][64];
    int n = 0;
    for (int i = 0; i < 2; i++) {
        ng_module *net = own(wrapped(two_mixed(i), i));
        ng_tensor *w[64];
        ng_named_tensor p;
        assert_ok(ng_module_to(net, NG_F64));
        for (n = 0; ng_module_parameter(net, n, &p); n++) w[n] = ng_mul_scalar(tape, p.tensor, 1.1);
        ng_tape_seed(tape, 1);
        ng_tensor *y = ng_forward_using(net, tape, w, n, normal(NG_F64, NG_SHAPE(6, DIM), 1));
        assert_ok(ng_gradients(tape, &y, 1, w, n, found[i]));
    }
    for (int k = 0; k < n; k++) assert_same_bits(found[0][k], found[1][k]);
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

/* ---- The checker ----------------------------------------------------------------------------- */

static ng_tensor *times_detached(ng_tape *on, ng_tensor *x)
{
    return ng_mul(on, ng_square(on, x), ng_detach(on, x));
}

static ng_tensor *recompute_product(ng_tape *on, ng_tensor *const *in, void *context)
{
    return ng_recompute(context, on, in[0]);
}

/* The gradient is taken where x has moved and the detached value has not: so in both runs. */
START_TEST(detached_values_are_held_fixed_in_both_runs)
{
    ng_module *net = own(ng_function_new("times_detached", times_detached));
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 3), 1);
    const ng_check_report report =
        ng_check_function(recompute_product, &x, 1, .context = net, .order = 2);
    ck_assert_msg(report.passed, "%s", ng_error_text());
    ck_assert_int_eq(report.detached, 1);
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

/* ---- Memory --------------------------------------------------------------------------------- */

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

Suite *recompute_suite(void)
{
    Suite *suite = suite_create("recompute");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, other_tensors_may_replace_the_parameters,
              it_is_ng_forward_where_nothing_is_recorded, a_failure_in_either_run_is_an_error,
              without_memory_nothing_is_lost, detached_values_are_held_fixed_in_both_runs,
              sixty_calls_may_be_nested_and_seventy_are_an_error, memory_is_given_back);
    return suite;
}
