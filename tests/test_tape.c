/* Recording, the reverse sweep, gradients of gradients, reset, the graph. */
#include "core/arena.h"
#include "support.h"
#include "tape/tape.h"
#include <stdio.h>
#include <unistd.h>

static ng_tensor *leaf(double value)
{
    return ng_require_grad(ng_full_new(NG_F64, NG_SCALAR, value));
}

static ng_tensor *leaf_of(int n)
{
    ng_rng rng = ng_rng_seeded((uint64_t)n);
    return ng_require_grad(ng_uniform_new(NG_F64, NG_SHAPE(n), 0.5, 1.5, &rng));
}

/* ---- ng_backward -------------------------------------------------------------------------- */

START_TEST(backward_of_a_product_is_the_other_factor)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *a = leaf(3), *b = leaf(4);
    assert_ok(ng_backward(tape, ng_mul(tape, a, b)));
    assert_close(ng_item(ng_grad(a)), 4, 0);
    assert_close(ng_item(ng_grad(b)), 3, 0);
    ng_tape_free(tape), ng_tensor_free(a), ng_tensor_free(b);
    ck_assert_int_eq(allocations_live(), 0);
}
END_TEST

/* y = x * x + x reaches x three times, through one op twice. */
START_TEST(gradients_of_a_shared_operand_add_up)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(5);
    ng_tensor *y = ng_add(tape, ng_mul(tape, x, x), x);
    assert_ok(ng_backward(tape, y));
    assert_close(ng_item(ng_grad(x)), 11, 0);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

/* An intermediate used by several ops, by a kernel and by rules, in one graph. */
START_TEST(gradients_of_a_shared_intermediate_add_up)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(0.7);
    ng_tensor *h = ng_mul_scalar(tape, x, 2);
    ng_tensor *y = ng_add(tape, ng_tanh(tape, h), ng_add(tape, ng_mul(tape, h, h), h));
    assert_ok(ng_backward(tape, y));
    const double t = tanh(1.4);
    assert_close(ng_item(ng_grad(x)), 2 * (1 - t * t + 2 * 1.4 + 1), 1e-14);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(backward_accumulates_over_calls)
{
    ng_tape *tape = ng_tape_new();
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
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(backward_from_contracts_with_the_cotangent)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_require_grad(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(1, 2, 3)));
    ng_tensor *dy = ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(10, 20, 30));
    assert_ok(ng_backward_from(tape, ng_square(tape, x), dy));
    assert_values(ng_grad(x), 0.0, 20, 80, 180);
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(dy);
}
END_TEST

static int visits;
static void counting_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)tape, (void)node;
    visits++;
    dx[0] = dy;
}
static const ng_op counting_op = {.name = "counting", .gradient = counting_rule};

static ng_tensor *counting(ng_tape *tape, ng_tensor *x)
{
    ng_tensor *y = ng_result_view(tape, x, ng_shape_of(x));
    return ng_record(tape, &counting_op, y, &x, 1, NULL, 0);
}

START_TEST(backward_walks_only_what_the_loss_reaches)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(1);
    ng_tensor *loss = counting(tape, x);
    for (int i = 0; i < 5; i++) counting(tape, loss);
    visits = 0;
    assert_ok(ng_backward(tape, loss));
    ck_assert_int_eq(visits, 1);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(an_earlier_sweep_leaves_no_wish_behind)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(1), *z = leaf(2), *gradient;
    ng_tensor *y = ng_add(tape, counting(tape, counting(tape, x)), z);
    visits = 0;
    assert_ok(ng_gradients(tape, &y, 1, &x, 1, &gradient));
    ck_assert_int_eq(visits, 2);
    assert_ok(ng_gradients(tape, &y, 1, &z, 1, &gradient)); /* does not lead through them */
    ck_assert_int_eq(visits, 2);
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(z);
}
END_TEST

/* Steps have masks of their own; a tape seeded anew begins again. */
START_TEST(a_reset_lets_the_stream_of_random_numbers_go_on)
{
    enum { COUNT = 100 };
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F64, NG_SHAPE(COUNT));
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
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(backward_of_a_leaf_is_one)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(2);
    assert_ok(ng_backward(tape, x));
    assert_close(ng_item(ng_grad(x)), 1, 0);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(why_an_output_requires_no_gradient_is_reported)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(3), *constant = ng_ones_new(NG_F64, NG_SHAPE(3));
    assert_ok(ng_backward(tape, ng_sum(tape, x)));
    ck_assert_int_eq(ng_backward(tape, ng_sum(tape, constant)), NG_EGRAD);
    assert_error(NG_EGRAD, "requires a gradient: all that it depends on is frozen or constant");
    ng_tape_set_recording(tape, false);
    ck_assert_int_eq(ng_backward(tape, ng_sum(tape, x)), NG_EGRAD);
    assert_error(NG_EGRAD, "requires a gradient: recording is off");
    ng_tensor_free(x), ng_tensor_free(constant), ng_tape_free(tape);
}
END_TEST

/* AddressSanitizer stops at the read itself: tests/lifetimes.sh. */
#ifndef NG_ARENA_FORGETS
START_TEST(a_result_from_before_the_reset_is_refused)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(3);
    ng_tensor *b = ng_exp(tape, x), *a = ng_exp(tape, ng_exp(tape, b));
    ng_tape_reset(tape);
    b = ng_mul_scalar(tape, x, 5);
    ck_assert_ptr_null(ng_add(tape, b, a));
    assert_error(NG_ESTATE, "ng_add: operand 2 was computed before ng_tape_reset");
    ng_tensor_free(x), ng_tape_free(tape);
}
END_TEST
#endif

START_TEST(wrong_use_of_backward_is_told)
{
    ng_tape *tape = ng_tape_new(), *other = ng_tape_new();
    ng_tensor *x = leaf_of(3), *constant = ng_ones_new(NG_F64, NG_SHAPE(3));
    ng_tensor *y = ng_exp(tape, x);
    ck_assert_int_eq(ng_backward(tape, y), NG_ESHAPE);
    assert_error(NG_ESHAPE, "ng_backward: the loss has shape (3,), expected one element");
    ck_assert_int_eq(ng_backward(other, ng_sum(tape, y)), NG_ESTATE);
    assert_error(NG_ESTATE, "another tape");
    ck_assert_int_eq(ng_backward(tape, ng_sum(tape, constant)), NG_EGRAD);
    assert_error(NG_EGRAD, "depends on nothing that requires a gradient");
    ck_assert_ptr_null(ng_add(other, y, x));
    assert_error(NG_ESTATE, "ng_add: operand 1 lives on another tape");
    ck_assert_int_eq(ng_backward_from(tape, y, ng_sum(tape, y)), NG_ESHAPE);
    assert_error(NG_ESHAPE, "the cotangent is float64 (), expected float64 (3,) like the output");
    ng_tensor *floats = ng_ones_new(NG_F32, NG_SHAPE(3));
    ck_assert_int_eq(ng_backward_from(tape, y, floats), NG_EDTYPE);
    assert_error(NG_EDTYPE, "the cotangent is float32 (3,), expected float64 (3,) like the output");
    ck_assert_int_eq(ng_backward(tape, NULL), NG_ENULL);
    ck_assert(!ng_has_grad(x));
    assert_ok(ng_backward(tape, ng_sum(tape, y)));
    ng_tape_free(tape), ng_tape_free(other);
    ng_tensor_free(x), ng_tensor_free(constant), ng_tensor_free(floats);
}
END_TEST

START_TEST(dtypes_do_not_mix)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_ones_new(NG_F32, NG_SHAPE(2)), *y = ng_ones_new(NG_F64, NG_SHAPE(2));
    ng_tensor *labels = ng_ones_new(NG_I64, NG_SHAPE(2));
    ck_assert_ptr_null(ng_add(tape, x, y));
    assert_error(NG_EDTYPE,
                 "ng_add: dtypes differ: operand 1 is float32, operand 2 is float64; convert the");
    ck_assert_ptr_null(ng_exp(tape, labels));
    assert_error(NG_EDTYPE, "ng_exp: operand 1 is int64, expected float32 or float64");
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(y), ng_tensor_free(labels);
}
END_TEST

START_TEST(an_operand_changed_since_it_was_recorded_is_noticed)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(3);
    ng_tensor *y = ng_square(tape, x);
    ng_set(x, 0, 4);
    ck_assert_int_eq(ng_backward(tape, y), NG_ESTATE);
    assert_error(NG_ESTATE, "an operand of square was changed after the op was recorded");
    ck_assert(!ng_has_grad(x));
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(a_view_changes_with_its_base)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(3), *c = leaf_of(3);
    ng_tensor *view = ng_reshape(tape, ng_detach(tape, c), NG_SHAPE(3));
    ng_tensor *y = ng_sum(tape, ng_mul(tape, x, view));
    ng_set(c, 0, 4);
    ck_assert_int_eq(ng_backward(tape, y), NG_ESTATE);
    assert_error(NG_ESTATE, "an operand of mul was changed after the op was recorded");
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(c);
}
END_TEST

START_TEST(an_op_without_gradient_fails_loudly_and_changes_nothing)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(3), *w = leaf_of(3);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_mul(tape, x, w))));
    ng_tensor *before = ng_copy_new(ng_grad(w), NG_F64);
    ng_tensor *mask = ng_greater(tape, x, ng_zeros_like(tape, x));
    ng_tensor *y = ng_sum(tape, ng_add(tape, mask, ng_mul(tape, w, w)));
    ck_assert_int_eq(ng_backward(tape, y), NG_EGRAD);
    assert_error(NG_EGRAD, "greater has no gradient");
    assert_same_bits(ng_grad(w), before);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_mul(tape, w, w))));
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(w), ng_tensor_free(before);
}
END_TEST

static void forgetful_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)tape, (void)node, (void)dy, (void)dx;
}
static void misshapen_rule(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)node;
    dx[0] = ng_sum(tape, dy);
}

/* y is the first elements of x, and may be none. Called for none, it would clear dx itself. */
static int first_calls;
static ng_status first_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                ng_slot *dx)
{
    (void)tape;
    first_calls++;
    double *out = dx[0].data;
    const int64_t count = ng_size(dy);
    for (int64_t i = 0; i < count; i++) out[i] = ng_get(dy, i);
    for (int64_t i = count; i < ng_size(node->inputs[0]); i++) out[i] = 0;
    return NG_OK;
}
static const ng_op first_op = {.name = "first", .backward = first_backward};
static const ng_op joint_op = {.name = "first", .backward = first_backward, .joint = true};

START_TEST(the_kernel_of_an_empty_output_is_not_called_but_where_others_take_part)
{
    static const ng_op *const ops[] = {&first_op, &joint_op};
    for (int k = 0; k < 4; k++) {
        ng_tape *tape = ng_tape_new();
        ng_tensor *x = ng_require_grad(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(1, 2, 3)));
        const int64_t count = k / 2;
        ng_tensor *y = ng_result(tape, NG_F64, NG_SHAPE(count)), *gradient;
        if (count > 0) ng_data_f64(y)[0] = 1;
        y = ng_record(tape, ops[k % 2], y, &x, 1, NULL, 0);
        first_calls = 0;
        assert_ok(ng_gradients(tape, &y, 1, &x, 1, &gradient));
        ck_assert_int_eq(first_calls, count > 0 || k % 2 == 1);
        assert_values(gradient, 0, count > 0, 0, 0);
        ng_tape_free(tape), ng_tensor_free(x);
    }
}
END_TEST

START_TEST(a_wrong_rule_is_told)
{
    const ng_op forgetful = {.name = "forgetful", .gradient = forgetful_rule};
    const ng_op misshapen = {.name = "misshapen", .gradient = misshapen_rule};
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(3);
    ng_tensor *same = ng_result_view(tape, x, NG_SHAPE(3));
    ng_tensor *y = ng_record(tape, &forgetful, same, &x, 1, NULL, 0);
    ck_assert_int_eq(ng_backward(tape, ng_sum(tape, y)), NG_EGRAD);
    assert_error(NG_EGRAD, "the gradient rule of forgetful gave no gradient of operand 1");
    y = ng_record(tape, &misshapen, ng_result_view(tape, x, NG_SHAPE(3)), &x, 1, NULL, 0);
    ck_assert_int_eq(ng_backward(tape, ng_sum(tape, y)), NG_EGRAD);
    assert_error(NG_EGRAD, "misshapen gave float64 (), expected float64 (3,)");
    ck_assert(!ng_has_grad(x));
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

/* ---- ng_gradients ------------------------------------------------------------------------- */

/* d^n/dx^n x^5 at 2: 80, 160, 240, 240, 120, and then 0. */
START_TEST(gradients_of_any_order)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(2), *y = ng_pow_scalar(tape, x, 5);
    const double expected[] = {80, 160, 240, 240, 120, 0};
    for (int order = 0; order < 6; order++) {
        y = ng_gradient(tape, y, x, .record = true, .allow_unused = true);
        assert_close(ng_item(y), expected[order], 1e-14);
        if (!ng_requires_grad(y)) y = ng_mul_scalar(tape, x, 0);
    }
    ck_assert(!ng_has_grad(x));
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

/* The gradient of a fused op's gradient comes from its definition: silu'' in closed form. */
START_TEST(second_gradient_of_a_fused_op)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(0.3);
    ng_tensor *first = ng_gradient(tape, ng_silu(tape, x), x, .record = true);
    ng_tensor *second = ng_gradient(tape, first, x);
    const double s = 1 / (1 + exp(-0.3));
    assert_close(ng_item(first), s + 0.3 * s * (1 - s), 1e-13);
    assert_close(ng_item(second), s * (1 - s) * (2 + 0.3 * (1 - 2 * s)), 1e-13);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(gradients_to_intermediates_and_of_several_outputs)
{
    ng_tape *tape = ng_tape_new();
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
    for (int i = 0; i < 3; i++) ng_tensor_free(cotangents[i]);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

/* Leaves and intermediates alike: gradients[j] belongs to inputs[j]. */
START_TEST(an_input_that_is_named_twice_gets_its_gradient_twice)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(3);
    ng_tensor *h = ng_square(tape, x), *y = ng_mul(tape, h, x);
    ng_tensor *inputs[] = {x, h, x, h}, *found[4];
    assert_ok(ng_gradients(tape, &y, 1, inputs, 4, found));
    for (int i = 0; i < 4; i++) assert_close(ng_item(found[i]), i % 2 ? 3 : 27, 0);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(gradient_to_itself_is_the_cotangent)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(2);
    assert_values(ng_gradient(tape, x, x), 0.0, 1, 1);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

/* Sums, views and x itself hand a cotangent on as it is. */
START_TEST(a_gradient_stays_when_its_cotangent_is_written_to_or_freed)
{
    ng_tape *tape = ng_tape_new();
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
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(u);
}
END_TEST

/* How many ops a recorded gradient takes, to the first n inputs. */
static int64_t ops_of_gradient(ng_tensor *(*call)(ng_tape *, ng_tensor *const *), ng_tensor **in,
                               int n)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *y = call(tape, in), *gradients[2];
    const int64_t before = ng_tape_used(tape).ops;
    ck_assert_int_eq(ng_gradients(tape, &y, 1, in, n, gradients, .record = true), NG_OK);
    const int64_t ops = ng_tape_used(tape).ops - before;
    ng_tape_free(tape);
    return ops;
}

static ng_tensor *product(ng_tape *tape, ng_tensor *const *in)
{
    return ng_mul(tape, in[0], in[1]);
}

static ng_tensor *normalized(ng_tape *tape, ng_tensor *const *in)
{
    return ng_layer_norm(tape, in[0], in[1], NG_NONE, 1e-5);
}

static ng_tensor *by_definition(ng_tape *tape, ng_tensor *const *in)
{
    return ng_row_norm(tape, in[0], in[1], NG_NONE, .rms = true, .partial = 0.5);
}

/* gamma and the second factor require gradients, but nobody asked. */
START_TEST(a_recorded_gradient_computes_only_what_was_asked_for)
{
    ng_tensor *(*const calls[])(ng_tape *, ng_tensor *const *) = {product, normalized,
                                                                  by_definition};
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *in[] = {ng_require_grad(ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 1, &rng)),
                       ng_require_grad(ng_normal_new(NG_F64, NG_SHAPE(4), 0, 1, &rng))};
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(ops_of_gradient(calls[i], in, 1), ops_of_gradient(calls[i], in, 2));
    ck_assert_int_eq(ops_of_gradient(product, in, 1), 1);
    ck_assert_int_eq(ops_of_gradient(normalized, in, 1), 1);
    for (int i = 0; i < 2; i++) ng_tensor_free(in[i]);
}
END_TEST

START_TEST(an_unused_input_is_told_or_zero)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(2), *unused = leaf_of(2), *constant = ng_ones_new(NG_F64, NG_SHAPE(2));
    ng_tensor *y = ng_exp(tape, x), *before = y;
    ck_assert_ptr_null(ng_gradient(tape, y, unused));
    assert_error(NG_EGRAD, "ng_gradients: no output depends on input 1");
    assert_values(ng_gradient(tape, y, unused, .allow_unused = true), 0.0, 0, 0);
    ck_assert_ptr_null(ng_gradient(tape, y, constant));
    assert_error(NG_EGRAD, "input 1 does not require a gradient");
    ck_assert_ptr_null(ng_gradient(tape, NULL, x));
    assert_tensors_close(ng_gradient(tape, y, x), before, 1e-15);
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(unused), ng_tensor_free(constant);
}
END_TEST

START_TEST(wrong_use_of_gradients_is_told)
{
    ng_tape *tape = ng_tape_new(), *other = ng_tape_new();
    ng_tensor *x = leaf(3), *y = ng_square(tape, x), *g = NULL;
    for (int n = -1; n < 1; n++) {
        ck_assert_int_eq(ng_gradients(tape, &y, n, &x, 1, &g), NG_EVALUE);
        assert_error(NG_EVALUE, "outputs, expected at least one");
        ck_assert_int_eq(ng_gradients(tape, &y, 1, &x, n, &g), NG_EVALUE);
        assert_error(NG_EVALUE, "inputs, expected at least one");
    }
    ck_assert_ptr_null(ng_gradient(tape, y, ng_square(other, x)));
    assert_error(NG_ESTATE, "ng_gradients: input 1 lives on another tape");
    ck_assert_ptr_null(ng_gradient(tape, y, NG_NONE));
    assert_error(NG_EVALUE, "ng_gradients: input 1 is NG_NONE");
    ck_assert_ptr_null(ng_gradient(tape, y, x, .cotangent = ng_square(other, x)));
    assert_error(NG_ESTATE, "ng_gradients: the cotangent lives on another tape");
    ck_assert_int_eq(ng_backward_from(tape, y, ng_square(other, x)), NG_ESTATE);
    assert_error(NG_ESTATE, "ng_backward_from: the cotangent lives on another tape");
    ck_assert(!ng_has_grad(x));
    assert_close(ng_item(ng_gradient(tape, y, x)), 6, 0);
    ng_tape_free(tape), ng_tape_free(other), ng_tensor_free(x);
}
END_TEST

/* Of one element in float, y has the dtype and the rank that NG_NONE has by chance. */
START_TEST(ng_none_is_no_cotangent)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_require_grad(ng_full_new(NG_F32, NG_SCALAR, 3)), *y = ng_square(tape, x);
    ck_assert_int_eq(ng_backward_from(tape, y, NG_NONE), NG_EVALUE);
    assert_error(NG_EVALUE, "ng_backward_from: the cotangent is NG_NONE, expected a tensor");
    ck_assert_ptr_null(ng_gradient(tape, y, x, .cotangent = NG_NONE));
    assert_error(NG_EVALUE, "ng_gradients: the cotangent is NG_NONE, expected a tensor");
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(what_an_op_records_must_be_its_own)
{
    static const ng_op nameless = {.gradient = NULL};
    ng_tape *tape = ng_tape_new(), *other = ng_tape_new();
    ng_tensor *x = leaf(3), *foreign = ng_square(other, x);
    ng_tensor *y = ng_result(tape, NG_F64, NG_SCALAR), *null = NULL;
    ck_assert_ptr_null(ng_record(tape, &counting_op, x, &x, 1, NULL, 0));
    assert_error(NG_ESTATE, "ng_record: the output of counting is not from ng_result on this tape");
    ck_assert_ptr_null(ng_record(tape, &counting_op, y, (ng_tensor *[]){x, foreign}, 2, NULL, 0));
    assert_error(NG_ESTATE, "ng_record: input 2 lives on another tape");
    ck_assert_ptr_null(ng_record(tape, &counting_op, y, (ng_tensor *[]){x, null}, 2, NULL, 0));
    ng_clear_error();
    ck_assert_ptr_null(ng_record(tape, &counting_op, y, &x, -1, NULL, 0));
    assert_error(NG_EVALUE, "ng_record: -1 inputs of counting");
    ck_assert_ptr_null(ng_record(tape, &nameless, y, &x, 1, NULL, 0));
    assert_error(NG_ENULL, "ng_record: the op's name is NULL");
    assert_ok(ng_record(tape, &counting_op, y, &x, 1, NULL, 0));
    ck_assert_ptr_null(ng_record(tape, &counting_op, y, &x, 1, NULL, 0));
    assert_error(NG_ESTATE, "ng_record: the output of counting was recorded before");
    ck_assert_ptr_null(ng_result(tape, (ng_dtype)9, NG_SCALAR));
    assert_error(NG_EDTYPE, "ng_result: dtype 9");
    ck_assert_int_eq(ng_tape_used(tape).ops, 1);
    ng_tape_free(tape), ng_tape_free(other), ng_tensor_free(x);
}
END_TEST

/* A gradient that is differentiated reaches both the leaf and its cotangent. */
START_TEST(recorded_gradient_depends_on_its_cotangent)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(3), *u = leaf(7);
    ng_tensor *g = ng_gradient(tape, ng_square(tape, x), x, .cotangent = u, .record = true);
    assert_ok(ng_backward(tape, g));
    assert_close(ng_item(ng_grad(x)), 2 * 7, 0);
    assert_close(ng_item(ng_grad(u)), 2 * 3, 0);
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(u);
}
END_TEST

/* ---- Recording off, detaching, reset ------------------------------------------------------- */

START_TEST(nothing_is_recorded_while_recording_is_off)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(3);
    ck_assert(ng_tape_set_recording(tape, false));
    ng_tensor *y = ng_square(tape, x);
    ck_assert(!ng_tape_set_recording(tape, true));
    assert_close(ng_item(y), 9, 0);
    ck_assert(!ng_requires_grad(y));
    ck_assert_ptr_null(ng_node_of(y));
    ck_assert_int_eq(ng_tape_used(tape).ops, 0);
    ck_assert_int_eq(ng_backward(tape, y), NG_EGRAD);
    ng_clear_error();
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(no_gradient_flows_through_detach)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(3);
    ng_tensor *y = ng_mul(tape, ng_detach(tape, ng_square(tape, x)), x);
    assert_ok(ng_backward(tape, y));
    assert_close(ng_item(y), 27, 0);
    assert_close(ng_item(ng_grad(x)), 9, 0);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(replay_hands_out_the_detached_values_of_the_first_run)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(3);
    ng_tape_set_mode(tape, NG_TAPE_REMEMBER);
    assert_close(ng_item(ng_detach(tape, ng_square(tape, x))), 9, 0);
    ng_tape_set_mode(tape, NG_TAPE_REPLAY);
    for (int i = 0; i < 2; i++) {
        ng_tape_reset(tape);
        ng_set(x, 0, 4 + i);
        assert_close(ng_item(ng_detach(tape, ng_square(tape, x))), 9, 0);
    }
    ck_assert_ptr_null(ng_detach(tape, x));
    assert_error(NG_ESTATE, "has no counterpart in the first run");
    ng_tape_set_mode(tape, NG_TAPE_LIVE);
    assert_close(ng_item(ng_detach(tape, x)), 5, 0);
    ng_tape_free(tape), ng_tensor_free(x);
    ck_assert_int_eq(allocations_live(), 0);
}
END_TEST

/* It gives what a run detached to the run that detaches the same, not what is like it. */
START_TEST(replay_takes_no_other_shape_and_no_other_dtype_for_what_was_detached)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(3), *shorter = leaf_of(2), *in_float = ng_copy_new(x, NG_F32);
    ng_tape_set_mode(tape, NG_TAPE_REMEMBER);
    assert_ok(ng_detach(tape, x));
    ng_tape_set_mode(tape, NG_TAPE_REPLAY);
    ck_assert_ptr_null(ng_detach(tape, shorter));
    assert_error(NG_ESTATE, "has no counterpart in the first run");
    ck_assert_ptr_null(ng_detach(tape, in_float));
    assert_error(NG_ESTATE, "has no counterpart in the first run");
    assert_ok(ng_detach(tape, x));
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(shorter), ng_tensor_free(in_float);
}
END_TEST

START_TEST(reset_keeps_memory_and_ends_all)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(1000);
    int64_t made = 0;
    for (int step = 0; step < 5; step++) {
        ng_tensor *y = x;
        for (int i = 0; i < 100; i++) y = ng_sin(tape, y);
        assert_ok(ng_backward(tape, ng_sum(tape, y)));
        ck_assert_int_eq(ng_tape_used(tape).ops, 101);
        ng_tape_reset(tape);
        ck_assert_int_eq(ng_tape_used(tape).ops, 0);
        ck_assert_int_eq(ng_tape_used(tape).bytes_used, 0);
        if (step == 1) made = allocations_made();
    }
    assert_none_allocated_since(made);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

START_TEST(tensors_of_a_tape_are_read_only)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf(1), *y = ng_exp(tape, x);
    ck_assert_int_eq(ng_fill(y, 0), NG_ESTATE);
    assert_error(NG_ESTATE, "belongs to a tape and is read-only");
    ng_tensor_free(y);
    assert_close(ng_item(y), exp(1), 1e-15);
    ng_tape_free(tape), ng_tensor_free(x);
}
END_TEST

/* ---- Handing over -------------------------------------------------------------------------- */

START_TEST(a_tape_frees_what_it_was_given)
{
    ng_tape *tape = ng_tape_new();
    int64_t kept = 0; /* by the tape, for itself */
    for (int step = 0; step < 3; step++) {
        ng_tensor *x = ng_tape_own(tape, leaf(3)),
                  *c = ng_tape_own(tape, ng_full_new(NG_F64, NG_SCALAR, 2));
        ck_assert_ptr_eq(ng_tape_own(tape, x), x);
        assert_ok(ng_backward(tape, ng_mul(tape, ng_square(tape, x), c)));
        assert_close(ng_item(ng_grad(x)), 12, 0);
        ng_tensor_free(x);
        assert_close(ng_item(x), 3, 0);
        ck_assert_int_eq(ng_set(x, 0, 4), NG_ESTATE);
        assert_error(NG_ESTATE, "belongs to a tape and is read-only");
        ng_tape_reset(tape);
        if (step == 0) kept = allocations_live();
    }
    ck_assert_int_eq(allocations_live(), kept);
    assert_ok(ng_tape_own(tape, leaf(1)));
    ng_tape_free(tape);
    ck_assert_int_eq(allocations_live(), 0);
}
END_TEST

START_TEST(a_tape_takes_only_what_is_yours)
{
    ng_tape *tape = ng_tape_new(), *other = ng_tape_new();
    ng_tensor *x = leaf(3), *y = ng_square(other, x);
    ng_module *layer = ng_linear_new(2, 1);
    assert_ok(ng_backward(other, y));
    ck_assert_ptr_null(ng_tape_own(tape, y));
    assert_error(NG_ESTATE, "ng_tape_own: the tensor lives on another tape");
    ck_assert_ptr_null(ng_tape_own(tape, ng_module_find(layer, "weight")));
    assert_error(NG_ESTATE, "ng_tape_own: the tensor belongs to a module or is a gradient");
    ck_assert_ptr_null(ng_tape_own(tape, ng_grad(x)));
    assert_error(NG_ESTATE, "ng_tape_own: the tensor belongs to a module or is a gradient");
    ck_assert_ptr_null(ng_tape_own(tape, NG_NONE));
    assert_error(NG_EVALUE, "ng_tape_own: the tensor is NG_NONE");
    ck_assert_ptr_null(ng_tape_own(tape, NULL));
    ck_assert_ptr_null(ng_tape_own(NULL, x));
    ng_clear_error();
    assert_ok(ng_set(x, 0, 4)); /* still mine */
    allocations_fail_after(0);
    ck_assert_ptr_eq(ng_tape_own(tape, x), x);
    allocations_succeed();
    ck_assert_ptr_null(ng_square(other, x));
    assert_error(NG_ESTATE, "ng_square: operand 1 lives on another tape");
    ng_module_free(layer), ng_tape_free(other), ng_tape_free(tape);
    ck_assert_int_eq(allocations_live(), 0);
}
END_TEST

/* Every allocation of a backward pass fails in turn; what was accumulated stays. */
START_TEST(out_of_memory_leaves_gradients_as_they_were)
{
    ng_tensor *x = leaf_of(3), *y = leaf_of(5);
    ng_tape *tape = ng_tape_new();
    assert_ok(ng_backward(tape, ng_sum(tape, ng_exp(tape, x))));
    ng_tensor *before = ng_copy_new(ng_grad(x), NG_F64);
    ng_tape_free(tape);
    bool refused = true;
    for (int n = 0; refused; n++) {
        tape = ng_tape_new();
        ng_tensor *row = ng_reshape(tape, x, NG_SHAPE(1, 3));
        ng_tensor *big = ng_broadcast_to(tape, row, NG_SHAPE(9000, 3));
        ng_tensor *loss = ng_add(tape, ng_sum(tape, ng_silu(tape, big)), ng_sum(tape, y));
        allocations_fail_after(n);
        const ng_status status = ng_backward(tape, loss);
        refused = allocations_refused();
        allocations_succeed();
        ck_assert_int_eq(status, refused ? NG_ENOMEM : NG_OK);
        if (refused) assert_same_bits(ng_grad(x), before);
        if (refused) ck_assert(!ng_has_grad(y));
        ng_tape_free(tape);
        ck_assert_int_lt(n, 100);
    }
    assert_values(ng_grad(y), 0.0, 1, 1, 1, 1, 1);
    ng_tensor_free(x), ng_tensor_free(y), ng_tensor_free(before);
    ck_assert_int_eq(allocations_live(), 0);
}
END_TEST

/* The same where an optimizer has used the gradients, which the pass writes over: those that it has
 * not come to stay, the others are gone. */
START_TEST(out_of_memory_shows_no_part_of_a_gradient)
{
    ng_tensor *leaves[] = {leaf_of(3), leaf_of(5)}, *before[2];
    ng_module *both = ng_parameters_new(leaves, 2);
    ng_optimizer *sgd = ng_sgd_new(both);
    ng_tape *tape = ng_tape_new();
    int dropped = 0;
    bool refused = true;
    for (int n = 0; refused; n++) {
        for (int i = 0; i < 2; i++) ng_zero_grad(leaves[i]);
        assert_ok(ng_backward(tape, ng_add(tape, ng_sum(tape, ng_exp(tape, leaves[0])),
                                           ng_sum(tape, ng_exp(tape, leaves[1])))));
        assert_ok(ng_optimizer_step(sgd));
        for (int i = 0; i < 2; i++) before[i] = ng_copy_new(ng_grad(leaves[i]), NG_F64);
        ng_tape_free(tape);
        tape = ng_tape_new();
        ng_tensor *row = ng_reshape(tape, leaves[0], NG_SHAPE(1, 3));
        ng_tensor *big = ng_broadcast_to(tape, row, NG_SHAPE(9000, 3));
        ng_tensor *first = ng_sum(tape, ng_silu(tape, big)); /* whose gradient is the last */
        ng_tensor *loss = ng_add(tape, first, ng_sum(tape, leaves[1]));
        allocations_fail_after(n);
        const ng_status status = ng_backward(tape, loss);
        refused = allocations_refused();
        allocations_succeed();
        ck_assert_int_eq(status, refused ? NG_ENOMEM : NG_OK);
        ng_clear_error();
        for (int i = 0; i < 2; i++) {
            if (refused && ng_has_grad(leaves[i])) assert_same_bits(ng_grad(leaves[i]), before[i]);
            dropped += refused && !ng_has_grad(leaves[i]);
            ng_tensor_free(before[i]);
        }
        if (refused) ck_assert_int_eq(ng_optimizer_step(sgd), NG_ESTATE);
        ng_clear_error();
        ck_assert_int_lt(n, 100);
    }
    ck_assert_int_gt(dropped, 0);
    assert_values(ng_grad(leaves[1]), 0.0, 1, 1, 1, 1, 1);
    assert_ok(ng_optimizer_step(sgd));
    ng_tape_free(tape), ng_optimizer_free(sgd), ng_module_free(both);
    ck_assert_int_eq(allocations_live(), 0);
}
END_TEST

/* ---- The graph ----------------------------------------------------------------------------- */

START_TEST(graph_shows_ops_and_shapes)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = leaf_of(3), *other = leaf_of(4);
    ng_exp(tape, other);
    ng_tensor *y = ng_sum(tape, ng_mul(tape, x, ng_sin(tape, x)));
    char path[] = "/tmp/normgrad-graph-XXXXXX", text[4096] = "";
    close(mkstemp(path));
    assert_ok(ng_tape_write_dot(tape, y, path));
    FILE *file = fopen(path, "r");
    const size_t bytes = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    remove(path);
    ck_assert_uint_gt(bytes, 0);
    ck_assert_ptr_nonnull(strstr(text, "digraph"));
    ck_assert_ptr_nonnull(strstr(text, "label=\"sin\\n(3,)\""));
    ck_assert_ptr_nonnull(strstr(text, "label=\"mul\\n(3,)\""));
    ck_assert_ptr_nonnull(strstr(text, "label=\"(3,)\\nfloat64\""));
    ck_assert_ptr_null(strstr(text, "exp"));
    ck_assert_int_eq(ng_tape_write_dot(tape, y, "/nowhere/graph.dot"), NG_EIO);
    assert_error(NG_EIO, "ng_tape_write_dot: cannot write /nowhere/graph.dot");
    ck_assert_int_eq(ng_tape_write_dot(tape, x, path), NG_EGRAD);
    ng_clear_error();
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(other);
}
END_TEST

Suite *tape_suite(void)
{
    Suite *suite = suite_create("tape");
    TCase *backward = tcase_create("backward");
    tcase_add_test(backward, backward_of_a_product_is_the_other_factor);
    tcase_add_test(backward, gradients_of_a_shared_operand_add_up);
    tcase_add_test(backward, gradients_of_a_shared_intermediate_add_up);
    tcase_add_test(backward, backward_accumulates_over_calls);
    tcase_add_test(backward, backward_from_contracts_with_the_cotangent);
    tcase_add_test(backward, backward_walks_only_what_the_loss_reaches);
    tcase_add_test(backward, an_earlier_sweep_leaves_no_wish_behind);
    tcase_add_test(backward, backward_of_a_leaf_is_one);
    tcase_add_test(backward, wrong_use_of_backward_is_told);
    tcase_add_test(backward, why_an_output_requires_no_gradient_is_reported);
#ifndef NG_ARENA_FORGETS
    tcase_add_test(backward, a_result_from_before_the_reset_is_refused);
#endif
    tcase_add_test(backward, dtypes_do_not_mix);
    tcase_add_test(backward, an_operand_changed_since_it_was_recorded_is_noticed);
    tcase_add_test(backward, a_view_changes_with_its_base);
    tcase_add_test(backward, an_op_without_gradient_fails_loudly_and_changes_nothing);
    tcase_add_test(backward, a_wrong_rule_is_told);
    tcase_add_test(backward,
                   the_kernel_of_an_empty_output_is_not_called_but_where_others_take_part);
    suite_add_tcase(suite, backward);
    TCase *gradients = tcase_create("gradients");
    tcase_add_test(gradients, gradients_of_any_order);
    tcase_add_test(gradients, second_gradient_of_a_fused_op);
    tcase_add_test(gradients, gradients_to_intermediates_and_of_several_outputs);
    tcase_add_test(gradients, an_input_that_is_named_twice_gets_its_gradient_twice);
    tcase_add_test(gradients, gradient_to_itself_is_the_cotangent);
    tcase_add_test(gradients, a_gradient_stays_when_its_cotangent_is_written_to_or_freed);
    tcase_add_test(gradients, a_recorded_gradient_computes_only_what_was_asked_for);
    tcase_add_test(gradients, an_unused_input_is_told_or_zero);
    tcase_add_test(gradients, wrong_use_of_gradients_is_told);
    tcase_add_test(gradients, ng_none_is_no_cotangent);
    tcase_add_test(gradients, what_an_op_records_must_be_its_own);
    tcase_add_test(gradients, recorded_gradient_depends_on_its_cotangent);
    suite_add_tcase(suite, gradients);
    TCase *life = tcase_create("life");
    tcase_add_test(life, nothing_is_recorded_while_recording_is_off);
    tcase_add_test(life, no_gradient_flows_through_detach);
    tcase_add_test(life, replay_hands_out_the_detached_values_of_the_first_run);
    tcase_add_test(life, replay_takes_no_other_shape_and_no_other_dtype_for_what_was_detached);
    tcase_add_test(life, reset_keeps_memory_and_ends_all);
    tcase_add_test(life, a_reset_lets_the_stream_of_random_numbers_go_on);
    tcase_add_test(life, tensors_of_a_tape_are_read_only);
    tcase_add_test(life, a_tape_frees_what_it_was_given);
    tcase_add_test(life, a_tape_takes_only_what_is_yours);
    tcase_add_test(life, out_of_memory_leaves_gradients_as_they_were);
    tcase_add_test(life, out_of_memory_shows_no_part_of_a_gradient);
    suite_add_tcase(suite, life);
    TCase *graph = tcase_create("graph");
    tcase_add_test(graph, graph_shows_ops_and_shapes);
    suite_add_tcase(suite, graph);
    return suite;
}
