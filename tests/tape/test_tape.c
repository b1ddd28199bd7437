/* Recording, the reverse sweep, sweeps inside sweeps, gradients of gradients, reset, the graph. */
#include "core/arena.h"
#include "support/fixture.h"
#include "support/support.h"
#include "tape/tape.h"
#include <stdio.h>
#include <unistd.h>

static ng_tensor *leaf(double value)
{
    return ng_require_grad(own(ng_full_new(NG_F64, NG_SCALAR, value)));
}

/* Which the test frees. */
static ng_tensor *loose(int n)
{
    ng_rng rng = ng_rng_seeded((uint64_t)n);
    return ng_require_grad(ng_uniform_new(NG_F64, NG_SHAPE(n), 0.5, 1.5, &rng));
}
static ng_tensor *leaf_of(int n) { return own(loose(n)); }

/* ---- ng_backward -------------------------------------------------------------------------- */

/* One op uses x twice. Several ops use h. */
START_TEST(gradients_of_a_shared_tensor_add_up)
{
    ng_tensor *x = leaf(0.7);
    ng_tensor *h = ng_add(tape, x, x);
    ng_tensor *y = ng_add(tape, ng_tanh(tape, h), ng_add(tape, ng_mul(tape, h, h), h));
    assert_ok(ng_backward(tape, y));
    const double t = tanh(1.4);
    assert_close(ng_item(ng_grad(x)), 2 * (1 - t * t + 2 * 1.4 + 1), 1e-14);
}

START_TEST(backward_accumulates_over_calls)
{
    ng_tensor *x = leaf(3);
    ng_tensor *y = ng_square(tape, x);
    for (int i = 1; i <= 3; i++) {
        assert_ok(ng_backward(tape, y));
        assert_close(ng_item(ng_grad(x)), 6.0 * i, 0);
    }
    ng_zero_grad(x);
    assert_close(ng_item(ng_grad(x)), 0, 0);
    assert_ok(ng_backward(tape, y));
    assert_close(ng_item(ng_grad(x)), 6, 0);
}

START_TEST(backward_from_contracts_with_the_cotangent)
{
    ng_tensor *x = leaf_of(3),
              *dy = own(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(10, 20, 30)));
    assert_ok(ng_backward_from(tape, ng_square(tape, x), dy));
    for (int i = 0; i < 3; i++) assert_close(ng_get(ng_grad(x), i), 20 * (i + 1) * ng_get(x, i), 0);
    ng_tensor *y = leaf(2);
    assert_ok(ng_backward(tape, y));
    assert_close(ng_item(ng_grad(y)), 1, 0);
}

static int visits;
static void counting_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)on, (void)node;
    visits++;
    dx[0] = dy;
}
static const ng_op counting_op = {.name = "counting", .gradient = counting_rule};

static ng_tensor *counting(ng_tape *on, ng_tensor *x)
{
    ng_tensor *y = ng_result_view(on, x, ng_shape_of(x));
    return ng_record(on, &counting_op, y, &x, 1, NULL, 0);
}

START_TEST(a_sweep_visits_only_what_lies_between)
{
    ng_tensor *x = leaf(1), *z = leaf(2), *loss = counting(tape, x);
    for (int i = 0; i < 5; i++) counting(tape, loss);
    visits = 0;
    assert_ok(ng_backward(tape, loss));
    ck_assert_int_eq(visits, 1);
    ng_tensor *y = ng_add(tape, counting(tape, loss), z);
    assert_ok(ng_gradient(tape, y, x));
    ck_assert_int_eq(visits, 3);
    assert_ok(ng_gradient(tape, y, z)); /* not through `counting`, nor what was asked for before */
    ck_assert_int_eq(visits, 3);
}

/* Each step has another mask. Seeding restarts the stream. */
START_TEST(a_reset_does_not_restart_the_random_numbers)
{
    enum { COUNT = 100 };
    ng_tensor *x = own(ng_ones_new(NG_F64, NG_SHAPE(COUNT)));
    ng_tensor *masks[3];
    for (int step = 0; step < 3; step++) {
        if (step != 1) ng_tape_seed(tape, 5);
        masks[step] = ng_copy_new(ng_dropout(tape, x, 0.5), NG_F64);
        ng_tape_reset(tape);
    }
    int same = 0;
    for (int i = 0; i < COUNT; i++) same += ng_get(masks[0], i) == ng_get(masks[1], i);
    ck_assert_int_gt(same, 20);
    ck_assert_int_lt(same, 80);
    assert_same_bits(masks[0], masks[2]);
    for (int i = 0; i < 3; i++) ng_tensor_free(masks[i]);
}

START_TEST(an_output_that_requires_no_gradient_is_an_error)
{
    ng_tensor *x = leaf_of(3), *constant = own(ng_ones_new(NG_F64, NG_SHAPE(3)));
    assert_fails(ng_backward(tape, ng_sum(tape, constant)), NG_EGRAD);
    ng_tape_set_recording(tape, false);
    assert_fails(ng_backward(tape, ng_sum(tape, x)), NG_EGRAD);
}

/* AddressSanitizer stops at the read itself: tests/scripts/lifetimes.sh. */
#ifndef NG_ARENA_FORGETS
static void assert_says_who_made_it(const char *maker)
{
    ck_assert_int_eq(ng_error_status(), NG_ESTATE);
    ck_assert_msg(strstr(ng_error_text(), maker), "%s", ng_error_text());
    ck_assert_msg(strstr(ng_error_text(), "ng_tape_reset"), "%s", ng_error_text());
    ng_clear_error();
}

/* Wherever it is read, the error names the op. */
START_TEST(a_use_after_the_reset_says_who_made_the_tensor)
{
    ng_tensor *x = leaf_of(1), *found = NULL;
    ng_tensor *const y = ng_exp(tape, x), *const loss = ng_sum(tape, y);
    ng_tape_reset(tape);
    ck_assert(isnan(ng_item(y)));
    assert_says_who_made_it("ng_exp");
    ck_assert_ptr_null(ng_data_f64(loss));
    assert_says_who_made_it("ng_sum");
    ck_assert_ptr_null(ng_copy_new(loss, NG_F64));
    assert_says_who_made_it("ng_sum");
    FILE *sink = fopen("/dev/null", "w");
    ng_fprint(sink, y);
    fclose(sink);
    assert_says_who_made_it("ng_exp");
    ck_assert_int_ne(ng_backward(tape, loss), NG_OK);
    assert_says_who_made_it("ng_sum");
    ck_assert_int_ne(ng_gradients(tape, &loss, 1, &x, 1, &found), NG_OK);
    assert_says_who_made_it("ng_sum");

    ng_tensor *const z = ng_square(tape, x); /* lies where y was */
    ck_assert_ptr_null(ng_gradient(tape, z, loss));
    assert_says_who_made_it("ng_sum");
    ck_assert_ptr_null(ng_gradient(tape, z, x, .cotangent = loss));
    assert_says_who_made_it("ng_sum");
    ck_assert_ptr_null(ng_add(tape, z, loss));
    assert_says_who_made_it("ng_sum");
}

#endif

START_TEST(wrong_use_of_backward_is_an_error)
{
    ng_tape *other = own(ng_tape_new());
    ng_tensor *x = leaf_of(3), *y = ng_exp(tape, x);
    assert_fails(ng_backward(tape, y), NG_ESHAPE);
    assert_fails(ng_backward(other, ng_sum(tape, y)), NG_ESTATE);
    assert_fails(ng_add(other, y, x), NG_ESTATE);
    assert_fails(ng_backward_from(tape, y, ng_sum(tape, y)), NG_ESHAPE);
    ng_tensor *floats = own(ng_ones_new(NG_F32, NG_SHAPE(3)));
    assert_fails(ng_backward_from(tape, y, floats), NG_EDTYPE);
    ck_assert_int_eq(ng_backward(tape, NULL), NG_ENULL);
    ck_assert(!ng_has_grad(x));
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
}

START_TEST(an_operand_changed_since_it_was_recorded_is_noticed)
{
    ng_tensor *x = leaf_of(3), *c = leaf_of(3),
              *view = ng_reshape(tape, ng_detach(tape, c), NG_SHAPE(3));
    ng_tensor *squares = ng_sum(tape, ng_square(tape, x)),
              *product = ng_sum(tape, ng_mul(tape, x, view));
    ng_set(c, 0, 4); /* with which its view has changed */
    assert_fails(ng_backward(tape, product), NG_ESTATE);
    ng_set(x, 0, 4);
    assert_fails(ng_backward(tape, squares), NG_ESTATE);
    ck_assert(!ng_has_grad(x));
}

START_TEST(an_op_without_gradient_is_an_error_and_changes_nothing)
{
    ng_tensor *x = leaf_of(3), *w = leaf_of(3);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_mul(tape, x, w))));
    ng_tensor *before = own(ng_copy_new(ng_grad(w), NG_F64));
    ng_tensor *mask = ng_greater(tape, x, ng_zeros_like(tape, x));
    ng_tensor *y = ng_sum(tape, ng_add(tape, mask, ng_mul(tape, w, w)));
    assert_fails(ng_backward(tape, y), NG_EGRAD);
    assert_same_bits(ng_grad(w), before);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_mul(tape, w, w))));
}

static void forgetful_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)on, (void)node, (void)dy, (void)dx;
}
static void misshapen_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)node;
    dx[0] = ng_sum(on, dy);
}

static ng_tensor *misshapen_definition(ng_tape *on, const ng_node *node)
{
    return ng_sum(on, node->inputs[0]);
}

START_TEST(a_wrong_rule_is_an_error)
{
    static const ng_op wrong[] = {{.name = "forgetful", .gradient = forgetful_rule},
                                  {.name = "misshapen", .gradient = misshapen_rule},
                                  {.name = "defined", .definition = misshapen_definition}};
    ng_tensor *x = leaf_of(3);
    for (int i = 0; i < 3; i++) {
        ng_tensor *y = ng_result_view(tape, x, NG_SHAPE(3));
        y = ng_record(tape, &wrong[i], y, &x, 1, NULL, 0);
        assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_EGRAD, wrong[i].name);
    }
    ck_assert(!ng_has_grad(x));
}

/* ---- ng_gradients ------------------------------------------------------------------------- */

/* d^n/dx^n x^5 at 2: 80, 160, 240, 240, 120, and then 0. */
START_TEST(gradients_of_any_order)
{
    ng_tensor *x = leaf(2), *y = ng_pow_scalar(tape, x, 5);
    const double expected[] = {80, 160, 240, 240, 120, 0};
    for (int order = 0; order < 6; order++) {
        y = ng_gradient(tape, y, x, .record = true, .allow_unused = true);
        assert_close(ng_item(y), expected[order], 1e-14);
        if (!ng_requires_grad(y)) y = ng_mul_scalar(tape, x, 0);
    }
    ck_assert(!ng_has_grad(x));
}

START_TEST(gradients_to_intermediates_and_of_several_outputs)
{
    ng_tensor *x = leaf(3);
    ng_tensor *h = ng_square(tape, x);
    ng_tensor *outputs[] = {ng_mul(tape, h, x), ng_exp(tape, ng_mul_scalar(tape, h, 0.1)), h};
    ng_tensor *cotangents[] = {leaf(2), leaf(1), leaf(5)};
    ng_tensor *inputs[] = {x, h}, *found[2];
    assert_ok(ng_gradients(tape, outputs, 3, inputs, 2, found, .cotangents = cotangents));
    const double dh = 2 * 3 + 0.1 * exp(0.9) + 5;
    assert_close(ng_item(found[1]), dh, 1e-14);
    assert_close(ng_item(found[0]), dh * 6 + 2 * 9, 1e-14);
    ck_assert(!ng_has_grad(x));
}

START_TEST(an_input_that_is_named_twice_gets_its_gradient_twice)
{
    ng_tensor *x = leaf(3), *h = ng_square(tape, x), *y = ng_mul(tape, h, x), *found[4];
    assert_ok(ng_gradients(tape, &y, 1, ((ng_tensor *[]){x, h, x, h}), 4, found));
    for (int i = 0; i < 4; i++) assert_close(ng_item(found[i]), i % 2 ? 3 : 27, 0);
}

/* x itself, sums and views pass a cotangent on without a copy. */
START_TEST(a_gradient_stays_when_its_cotangent_is_changed_or_freed)
{
    ng_tensor *x = leaf_of(2), *u = leaf_of(2);
    for (int which = 0; which < 6; which++) {
        const bool record = which % 2;
        ng_tensor *y = which < 2   ? x
                       : which < 4 ? ng_add(tape, x, x)
                                   : ng_reshape(tape, x, NG_SHAPE(2, 1));
        const double times = which / 2 == 1 ? 2 : 1;
        ng_tensor *dy = ng_zeros_new(NG_F64, ng_shape_of(y)), *unit[2], *same;
        for (int i = 0; i < 2; i++) {
            ng_fill(dy, -0.0);
            ng_set(dy, i, 1);
            unit[i] = ng_gradient(tape, y, x, .cotangent = dy, .record = record);
        }
        ng_fill(dy, 7);
        ng_tensor_free(dy);
        assert_values(unit[0], 0.0, times, 0);
        assert_values(unit[1], 0.0, 0, times);
        ck_assert(signbit(ng_get(unit[0], 1)));
        ng_set(u, 0, -0.0);
        ng_set(u, 1, 3);
        ng_tensor *seen = ng_reshape(tape, u, ng_shape_of(y));
        same = ng_gradient(tape, y, x, .cotangent = which < 4 ? u : seen, .record = record);
        ng_set(u, 1, 7);
        assert_values(same, 0.0, 0, times * 3);
        ck_assert(signbit(ng_get(same, 0)));
        ck_assert_int_eq(ng_requires_grad(same), record);
    }
}

static ng_tensor *product_definition(ng_tape *on, const ng_node *node)
{
    return ng_mul(on, node->inputs[0], node->inputs[1]);
}

/* y = a b, whose gradient comes from the definition. */
static ng_tensor *defined_product(ng_tape *on, ng_tensor *a, ng_tensor *b)
{
    static const ng_op op = {.name = "defined product", .definition = product_definition};
    ng_tensor *y = ng_result_full(on, NG_F64, NG_SCALAR, ng_item(a) * ng_item(b));
    return ng_record(on, &op, y, (ng_tensor *[]){a, b}, 2, NULL, 0);
}

START_TEST(definitions_give_gradients_to_what_required_them_when_recorded)
{
    ng_tensor *x = leaf(3), *w = own(ng_full_new(NG_F64, NG_SCALAR, 4));
    ng_tensor *square = defined_product(tape, x, x), *y = defined_product(tape, square, w);
    ng_require_grad(w);
    assert_ok(ng_backward(tape, y));
    assert_close(ng_item(ng_grad(x)), 24, 0);
    ck_assert(!ng_has_grad(w));
    ng_tensor *first = ng_gradient(tape, y, x, .record = true);
    assert_close(ng_item(first), 24, 0);
    assert_close(ng_item(ng_gradient(tape, first, x)), 8, 0);
    assert_fails(ng_gradient(tape, first, w), NG_EGRAD);
}

START_TEST(an_unused_input_is_an_error_or_zero)
{
    ng_tensor *x = leaf_of(2), *unused = leaf_of(2),
              *constant = own(ng_ones_new(NG_F64, NG_SHAPE(2)));
    ng_tensor *y = ng_exp(tape, x), *before = y;
    assert_fails(ng_gradient(tape, y, unused), NG_EGRAD);
    assert_values(ng_gradient(tape, y, unused, .allow_unused = true), 0.0, 0, 0);
    assert_fails(ng_gradient(tape, y, constant), NG_EGRAD);
    ck_assert_ptr_null(ng_gradient(tape, NULL, x));
    assert_tensors_close(ng_gradient(tape, y, x), before, 1e-15);
}

START_TEST(wrong_use_of_gradients_is_an_error)
{
    ng_tape *other = own(ng_tape_new());
    ng_tensor *x = leaf(3), *y = ng_square(tape, x), *g = NULL;
    for (int n = -1; n < 1; n++) {
        assert_fails(ng_gradients(tape, &y, n, &x, 1, &g), NG_EVALUE);
        assert_fails(ng_gradients(tape, &y, 1, &x, n, &g), NG_EVALUE);
    }
    assert_fails(ng_gradient(tape, y, ng_square(other, x)), NG_ESTATE);
    assert_fails(ng_gradient(tape, y, NG_NONE), NG_EVALUE);
    assert_fails(ng_gradient(tape, y, x, .cotangent = ng_square(other, x)), NG_ESTATE);
    assert_fails(ng_backward_from(tape, y, ng_square(other, x)), NG_ESTATE);
    assert_fails(ng_backward_from(tape, y, NG_NONE), NG_EVALUE);
    ck_assert(!ng_has_grad(x));
    assert_close(ng_item(ng_gradient(tape, y, x)), 6, 0);
    assert_close(ng_item(ng_gradient(tape, y, x, .cotangent = NG_NONE)), 6, 0); /* of ones */
}

START_TEST(wrong_use_of_record_is_an_error)
{
    static const ng_op nameless = {.gradient = NULL};
    ng_tape *other = own(ng_tape_new());
    ng_tensor *x = leaf(3), *foreign = ng_square(other, x);
    ng_tensor *y = ng_result(tape, NG_F64, NG_SCALAR), *null = NULL;
    assert_fails(ng_record(tape, &counting_op, x, &x, 1, NULL, 0), NG_ESTATE);
    assert_fails(ng_record(tape, &counting_op, y, (ng_tensor *[]){x, foreign}, 2, NULL, 0),
                 NG_ESTATE);
    ck_assert_ptr_null(ng_record(tape, &counting_op, y, (ng_tensor *[]){x, null}, 2, NULL, 0));
    ng_clear_error();
    assert_fails(ng_record(tape, &counting_op, y, &x, -1, NULL, 0), NG_EVALUE);
    assert_fails(ng_record(tape, &nameless, y, &x, 1, NULL, 0), NG_ENULL);
    assert_ok(ng_record(tape, &counting_op, y, &x, 1, NULL, 0));
    assert_fails(ng_record(tape, &counting_op, y, &x, 1, NULL, 0), NG_ESTATE);
    assert_fails(ng_result(tape, (ng_dtype)9, NG_SCALAR), NG_EDTYPE);
    ck_assert_int_eq(ng_tape_used(tape).ops, 1);
}

START_TEST(recorded_gradient_depends_on_its_cotangent)
{
    ng_tensor *x = leaf(3), *u = leaf(7);
    ng_tensor *g = ng_gradient(tape, ng_square(tape, x), x, .cotangent = u, .record = true);
    assert_ok(ng_backward(tape, g));
    assert_close(ng_item(ng_grad(x)), 2 * 7, 0);
    assert_close(ng_item(ng_grad(u)), 2 * 3, 0);
}

/* ---- Recording off, detaching, reset ------------------------------------------------------- */

START_TEST(nothing_is_recorded_while_recording_is_off)
{
    ng_tensor *x = leaf(3);
    ck_assert(ng_tape_set_recording(tape, false));
    ng_tensor *y = ng_square(tape, x);
    ck_assert(!ng_tape_set_recording(tape, true));
    assert_close(ng_item(y), 9, 0);
    ck_assert(!ng_requires_grad(y));
    ck_assert_ptr_null(ng_node_of(y));
    ck_assert_int_eq(ng_tape_used(tape).ops, 0);
    assert_fails(ng_backward(tape, y), NG_EGRAD);
}

START_TEST(no_gradient_flows_through_detach)
{
    ng_tensor *x = leaf(3);
    ng_tensor *y = ng_mul(tape, ng_detach(tape, ng_square(tape, x)), x);
    assert_ok(ng_backward(tape, y));
    assert_close(ng_item(y), 27, 0);
    assert_close(ng_item(ng_grad(x)), 9, 0);
}

START_TEST(tensors_of_a_tape_are_read_only)
{
    ng_tensor *x = leaf(1), *y = ng_exp(tape, x);
    assert_fails(ng_fill(y, 0), NG_ESTATE);
    ng_tensor_free(y);
    assert_close(ng_item(y), exp(1), 1e-15);
}

/* ---- Owned tensors ------------------------------------------------------------------------- */

START_TEST(a_tape_frees_what_it_was_given)
{
    int64_t kept = 0; /* the memory of the tape itself */
    for (int step = 0; step < 3; step++) {
        ng_tensor *x = ng_tape_own(tape, loose(3)), *twice = ng_mul_scalar(tape, x, 2);
        ck_assert_ptr_eq(ng_tape_own(tape, x), x);
        assert_ok(ng_backward(tape, ng_sum(tape, twice)));
        ng_tensor_free(x);
        assert_values(ng_grad(x), 0, 2, 2, 2);
        assert_fails(ng_set(x, 0, 4), NG_ESTATE);
        ng_tape_reset(tape);
        if (step == 0) kept = allocations_live();
    }
    ck_assert_int_eq(allocations_live(), kept);
    assert_ok(ng_tape_own(tape, loose(1)));
}

START_TEST(a_tape_takes_only_what_is_yours)
{
    ng_tape *other = own(ng_tape_new());
    ng_tensor *x = loose(1), *y = ng_sum(other, x);
    ng_module *layer = own(ng_linear_new(2, 1));
    assert_ok(ng_backward(other, y));
    assert_fails(ng_tape_own(tape, y), NG_ESTATE);
    assert_fails(ng_tape_own(tape, ng_module_find(layer, "weight")), NG_ESTATE);
    assert_fails(ng_tape_own(tape, ng_grad(x)), NG_ESTATE);
    assert_fails(ng_tape_own(tape, NG_NONE), NG_EVALUE);
    ck_assert_ptr_null(ng_tape_own(tape, NULL));
    ck_assert_ptr_null(ng_tape_own(NULL, x));
    ng_clear_error();
    assert_ok(ng_set(x, 0, 4)); /* x is still the test's */
    allocations_fail_after(0);
    ck_assert_ptr_eq(ng_tape_own(tape, x), x);
    allocations_succeed();
    assert_fails(ng_square(other, x), NG_ESTATE);
}

/* Every allocation of a backward pass fails in turn. The pass adds to one leaf's gradient and
 * computes the other's for the first time; or an optimizer has used both, and the pass may drop
 * them, since ng_grad has not shown them. */
START_TEST(out_of_memory_shows_no_part_of_a_gradient)
{
    ng_tensor *leaves[] = {loose(3), loose(5)}, *before[2];
    ng_module *both = own(ng_parameters_new(leaves, 2));
    ng_optimizer *sgd = own(ng_sgd_new(both));
    const bool used = _i;
    int dropped = 0;
    bool refused = true;
    for (int n = 0; refused; n++) {
        ng_tape *on = ng_tape_new();
        for (int i = 0; i < 2; i++) ng_zero_grad(leaves[i]);
        ng_tensor *sums[] = {ng_sum(on, ng_exp(on, leaves[0])), ng_sum(on, ng_exp(on, leaves[1]))};
        assert_ok(ng_backward(on, sums[0]));
        if (used) assert_ok(ng_backward(on, sums[1]));
        if (used) assert_ok(ng_optimizer_step(sgd));
        for (int i = 0; i < 1 + used; i++) before[i] = ng_copy_new(leaves[i]->leaf->grad, NG_F64);
        ng_tape_free(on);
        on = ng_tape_new();
        ng_tensor *row = ng_reshape(on, leaves[0], NG_SHAPE(1, 3));
        ng_tensor *big = ng_broadcast_to(on, row, NG_SHAPE(9000, 3));
        ng_tensor *first = ng_sum(on, ng_silu(on, big)); /* its gradient is computed last */
        ng_tensor *loss = ng_add(on, first, ng_sum(on, leaves[1]));
        allocations_fail_after(n);
        const ng_status status = ng_backward(on, loss);
        refused = allocations_refused();
        allocations_succeed();
        ck_assert_int_eq(status, refused ? NG_ENOMEM : NG_OK);
        ng_clear_error();
        for (int i = 0; i < 1 + used; i++) {
            if (refused && ng_has_grad(leaves[i]))
                assert_same_bits(leaves[i]->leaf->grad, before[i]);
            dropped += refused && !ng_has_grad(leaves[i]);
            ng_tensor_free(before[i]);
        }
        if (refused && !used) ck_assert(!ng_has_grad(leaves[1]));
        if (refused && used) ck_assert_int_eq(ng_optimizer_step(sgd), NG_ESTATE);
        ng_clear_error();
        ng_tape_free(on);
        ck_assert_int_lt(n, 100);
    }
    ck_assert_int_eq(dropped > 0, used);
    assert_values(ng_grad(leaves[1]), 0.0, 1, 1, 1, 1, 1);
    assert_ok(ng_optimizer_step(sgd));
}

/* ---- Sweeps inside sweeps: gradient rules that take gradients themselves --------------------- */

/* y = f(x), recorded as one op. Its gradient rule runs f on a variable and takes a gradient. */
typedef ng_tensor *function(ng_tape *on, ng_tensor *x);
typedef struct {
    function *f;
    bool by_backward; /* by ng_backward instead of ng_gradient */
} again_attributes;

static void again_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const again_attributes *a = node->attributes;
    const bool was = ng_tape_set_recording(on, true);
    ng_tensor *v = ng_variable(on, node->inputs[0]), *y = a->f(on, v);
    if (!a->by_backward)
        dx[0] = ng_gradient(on, y, v, .cotangent = dy);
    else if (ng_backward_from(on, y, dy) == NG_OK)
        dx[0] = ng_grad(v);
    ng_tape_set_recording(on, was);
}

static const ng_op again_op = {.name = "again", .gradient = again_rule};

static ng_tensor *again(ng_tape *on, ng_tensor *x, function *f, bool by_backward)
{
    const bool was = ng_tape_set_recording(on, false);
    ng_tensor *y = f(on, x);
    ng_tape_set_recording(on, was);
    const again_attributes a = {f, by_backward};
    return y ? ng_record(on, &again_op, y, &x, 1, &a, sizeof a) : NULL;
}

static ng_tensor *tanh_of(ng_tape *on, ng_tensor *x) { return ng_tanh(on, x); }

/* f(x) = sin(g(x)) x, each of whose ops has a rule that takes a gradient, four deep. */
static ng_tensor *level0(ng_tape *on, ng_tensor *x) { return ng_mul(on, ng_sin(on, x), x); }
#define LEVEL(n, below)                                                                            \
    static ng_tensor *level##n(ng_tape *on, ng_tensor *x)                                          \
    {                                                                                              \
        ng_tensor *inner = again(on, ng_add_scalar(on, x, 0.1), level##below, n % 2);              \
        return ng_mul(on, again(on, inner, tanh_of, false), x);                                    \
    }
LEVEL(1, 0)
LEVEL(2, 1)
LEVEL(3, 2)
LEVEL(4, 3)

static double value_at(function *f, double at) { return ng_item(f(tape, leaf(at))); }

START_TEST(sweeps_nest_to_any_depth)
{
    static function *const levels[] = {level0, level1, level2, level3, level4};
    for (int i = 0; i < 5; i++) {
        ng_tensor *p = leaf(0.7), *x = ng_square(tape, p);
        ng_tensor *y = ng_add(tape, again(tape, x, levels[i], i % 2), ng_mul(tape, x, x));
        const double at = 0.49, h = 1e-5;
        const double slope =
            (value_at(levels[i], at + h) - value_at(levels[i], at - h)) / (2 * h) + 2 * at;
        assert_ok(ng_backward(tape, y));
        assert_close(ng_item(ng_grad(p)), slope * 2 * 0.7, 1e-8);
        assert_close(ng_item(ng_gradient(tape, y, p)), ng_item(ng_grad(p)), 1e-14);
    }
}

/* The outer pass goes on with the leaf that the inner one has reached. */
static ng_tensor *shared;
static ng_tensor *times_shared(ng_tape *on, ng_tensor *x)
{
    return ng_mul(on, x, ng_square(on, shared));
}

START_TEST(an_inner_backward_adds_to_a_leaf_of_the_outer_one)
{
    shared = leaf(3);
    for (int pass = 0; pass < 3; pass++) {
        ng_tensor *x = ng_mul_scalar(tape, shared, 2);
        ng_tensor *y = ng_add(tape, ng_mul(tape, shared, x), again(tape, x, times_shared, true));
        assert_ok(ng_backward(tape, ng_add(tape, shared, y)));
        /* x s^2 by the rule, with x = 2 s constant; and s + 2 s^2 + 2 s s^2 with s^2 constant */
        assert_close(ng_item(ng_grad(shared)), (pass + 1) * (36 + 1 + 12 + 18), 1e-14);
    }
}

static void endless_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_gradient(on, node->output, node->inputs[0], .cotangent = dy);
}

START_TEST(a_rule_that_differentiates_itself_without_end_is_an_error)
{
    const ng_op endless = {.name = "endless", .gradient = endless_rule};
    ng_tensor *p = leaf(2), *x = ng_square(tape, p);
    ng_tensor *y = ng_result(tape, NG_F64, NG_SCALAR);
    ng_data_f64(y)[0] = 1;
    y = ng_record(tape, &endless, y, &x, 1, NULL, 0);
    assert_fails(ng_backward(tape, y), NG_EGRAD, "ng_gradients");
    assert_fails(ng_gradient(tape, y, p), NG_EGRAD);
    ck_assert(!ng_has_grad(p));
    assert_ok(ng_backward(tape, x)); /* the tape can be used on */
    assert_close(ng_item(ng_grad(p)), 4, 0);
}

/* A failure in an inner sweep ends the outer one, and leaves nothing behind. */
static ng_tensor *failing(ng_tape *on, ng_tensor *x)
{
    return ng_tape_recording(on) ? ng_mul(on, ng_greater(on, x, ng_zeros_like(on, x)), x)
                                 : ng_mul_scalar(on, x, 1);
}

START_TEST(a_failure_in_an_inner_sweep_is_one_of_the_outer)
{
    ng_tensor *p = leaf(0.5), *w = leaf(2);
    ng_tensor *x = ng_sin(tape, p);
    ng_tensor *bad = again(tape, ng_mul(tape, x, w), failing, false);
    assert_fails(ng_backward(tape, ng_add(tape, bad, ng_exp(tape, x))), NG_EGRAD, "ng_gradients");
    ck_assert(!ng_has_grad(p) && !ng_has_grad(w));
    assert_ok(ng_backward(tape, ng_exp(tape, x)));
    assert_close(ng_item(ng_grad(p)), exp(sin(0.5)) * cos(0.5), 1e-14);
    assert_ok(ng_gradient(tape, ng_mul(tape, x, w), w));
}

/* ---- Random graphs -------------------------------------------------------------------------- */

/* Ops on values drawn from all earlier ones; their gradients, recorded and not, to leaves and
 * intermediates, alone and together, by kernels and by definitions, are the same. */
static ng_tensor *random_op(ng_rng *rng, ng_tensor *a, ng_tensor *b)
{
    switch (ng_rng_below(rng, 8)) {
    case 0: return ng_add(tape, a, b);
    case 1: return ng_mul(tape, a, b);
    case 2: return ng_tanh(tape, a);
    case 3: return ng_layer_norm(tape, a, NG_NONE, b, .eps = 1e-2);
    case 4: return ng_gelu(tape, a);
    case 5: return ng_rms_norm(tape, a, b, .eps = 1e-2);
    case 6: return ng_sub(tape, ng_detach(tape, a), b);
    default: return ng_mul(tape, a, a);
    }
}

START_TEST(gradients_of_random_graphs_agree)
{
    enum { LEAVES = 3, COUNT = 40, ASKED = 5 };
    for (int seed = 0; seed < 60; seed++) {
        ng_rng rng = ng_rng_seeded((uint64_t)seed);
        ng_tensor *x[COUNT], *asked[ASKED], *fast[ASKED], *recorded[ASKED];
        for (int i = 0; i < LEAVES; i++)
            x[i] = ng_tape_own(tape,
                               ng_require_grad(ng_normal_new(NG_F64, NG_SHAPE(4), 0, 0.7, &rng)));
        for (int i = LEAVES; i < COUNT; i++)
            x[i] = random_op(&rng, x[ng_rng_below(&rng, i)], x[ng_rng_below(&rng, i)]);
        ng_tensor *outputs[] = {x[COUNT - 1], x[COUNT - 5], x[COUNT - 9]};
        for (int i = 0; i < ASKED; i++)
            asked[i] = x[i < LEAVES ? i : (int)ng_rng_below(&rng, COUNT)];
        for (int i = LEAVES; i < ASKED; i++)
            if (!ng_requires_grad(asked[i])) asked[i] = x[0];
        assert_ok(ng_gradients(tape, outputs, 3, asked, ASKED, fast, .allow_unused = true));
        assert_ok(ng_gradients(tape, outputs, 3, asked, ASKED, recorded, .allow_unused = true,
                               .record = true));
        for (int i = 0; i < ASKED; i++) {
            assert_tensors_close(fast[i], recorded[i], 1e-10);
            ng_tensor *alone;
            assert_ok(ng_gradients(tape, outputs, 3, &asked[i], 1, &alone, .allow_unused = true));
            assert_tensors_close(alone, fast[i], 1e-12);
        }
        ng_tensor *sum = ng_add(tape, ng_sum(tape, outputs[0]),
                                ng_add(tape, ng_sum(tape, outputs[1]), ng_sum(tape, outputs[2])));
        if (ng_requires_grad(sum)) assert_ok(ng_backward(tape, sum));
        for (int i = 0; i < LEAVES; i++)
            if (ng_has_grad(x[i])) assert_tensors_close(ng_grad(x[i]), fast[i], 1e-12);
        ng_tape_reset(tape);
    }
}

/* ---- The graph ----------------------------------------------------------------------------- */

START_TEST(graph_shows_ops_and_shapes)
{
    ng_tensor *x = leaf_of(3), *other = leaf_of(4);
    ng_exp(tape, other);
    ng_tensor *norm = ng_rms_norm(tape, ng_sin(tape, x), NG_NONE, .eps = 1e-6);
    ng_tensor *y = ng_sum(tape, ng_mul(tape, x, norm));
    char path[] = "/tmp/normgrad-graph-XXXXXX", text[4096] = "";
    close(mkstemp(path));
    assert_ok(ng_tape_write_dot(tape, y, path));
    FILE *file = fopen(path, "r");
    ck_assert_uint_gt(fread(text, 1, sizeof text - 1, file), 0);
    fclose(file);
    remove(path);
    ck_assert_ptr_nonnull(strstr(text, "digraph"));
    ck_assert_ptr_nonnull(strstr(text, "label=\"sin\\n(3,)\""));
    ck_assert_ptr_nonnull(strstr(text, "label=\"mul\\n(3,)\""));
    ck_assert_ptr_nonnull(strstr(text, "label=\"(3,)\\nfloat64\""));
    ck_assert_ptr_null(strstr(text, "exp"));
    int edges = 0; /* none for NG_NONE */
    for (const char *edge = text; (edge = strstr(edge, "->")); edge++) edges++;
    ck_assert_int_eq(edges, 5);
    assert_fails(ng_tape_write_dot(tape, y, "/nowhere/graph.dot"), NG_EIO);
    assert_fails(ng_tape_write_dot(tape, x, path), NG_EGRAD);
}

Suite *tape_suite(void)
{
    Suite *suite = suite_create("tape");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, gradients_of_a_shared_tensor_add_up, backward_accumulates_over_calls,
              backward_from_contracts_with_the_cotangent, a_sweep_visits_only_what_lies_between,
              a_reset_does_not_restart_the_random_numbers,
              an_output_that_requires_no_gradient_is_an_error, wrong_use_of_backward_is_an_error,
              an_operand_changed_since_it_was_recorded_is_noticed,
              an_op_without_gradient_is_an_error_and_changes_nothing, a_wrong_rule_is_an_error,
              gradients_of_any_order, gradients_to_intermediates_and_of_several_outputs,
              an_input_that_is_named_twice_gets_its_gradient_twice,
              a_gradient_stays_when_its_cotangent_is_changed_or_freed,
              definitions_give_gradients_to_what_required_them_when_recorded,
              an_unused_input_is_an_error_or_zero, wrong_use_of_gradients_is_an_error,
              wrong_use_of_record_is_an_error, recorded_gradient_depends_on_its_cotangent,
              nothing_is_recorded_while_recording_is_off, no_gradient_flows_through_detach,
              tensors_of_a_tape_are_read_only, a_tape_frees_what_it_was_given,
              a_tape_takes_only_what_is_yours, sweeps_nest_to_any_depth,
              an_inner_backward_adds_to_a_leaf_of_the_outer_one,
              a_rule_that_differentiates_itself_without_end_is_an_error,
              a_failure_in_an_inner_sweep_is_one_of_the_outer, gradients_of_random_graphs_agree,
              graph_shows_ops_and_shapes);
    add_loops(tests, 2, out_of_memory_shows_no_part_of_a_gradient);
#ifndef NG_ARENA_FORGETS
    add_tests(tests, a_use_after_the_reset_says_who_made_the_tensor);
#endif
    return suite;
}
