/* Functions of the user's that fail or do what they must not: kernels, gradient rules, definitions,
 * modules, links, projections, programs of ranks. And tensors that change between a pass and its
 * gradient. */
#include "support/fixture.h"
#include "support/support.h"
#include <math.h>

static ng_tensor *leaf_of(int n, double value)
{
    return ng_require_grad(own(ng_full_new(NG_F64, NG_SHAPE(n), value)));
}

/* y = x, recorded with this op. */
static ng_tensor *record(const ng_op *op, ng_tensor *x)
{
    ng_tensor *y = ng_result(tape, NG_F64, ng_shape_of(x));
    for (int64_t i = 0; i < ng_size(x); i++) ng_data_f64(y)[i] = ng_get(x, i);
    return ng_record(tape, op, y, &x, 1, NULL, 0);
}

/* ---- Functions that fail --------------------------------------------------------------------- */

static ng_status silent_kernel(ng_tape *on, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    (void)on, (void)node, (void)dy, (void)dx;
    return NG_EIO;
}

static ng_tensor *silent_definition(ng_tape *on, const ng_node *node)
{
    (void)on, (void)node;
    return NULL;
}

static void silent_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)on, (void)node, (void)dy, (void)dx;
}

static void clearing_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)node;
    dx[0] = ng_matmul(on, dy, NULL);
    ng_clear_error();
}

/* It hands out a gradient, but says that it has failed. */
static void failing_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)on, (void)node;
    dx[0] = dy;
    ng_fail(NG_EPARSE, "the rule of my_op");
}

static const struct {
    ng_op op;
    ng_status status;
} failing[] = {{{.name = "my_op", .backward = silent_kernel}, NG_EIO},
               {{.name = "my_op", .definition = silent_definition}, NG_EGRAD},
               {{.name = "my_op", .gradient = silent_rule}, NG_EGRAD},
               {{.name = "my_op", .gradient = clearing_rule}, NG_EGRAD},
               {{.name = "my_op", .gradient = failing_rule}, NG_EPARSE}};

/* Each failure is recorded with the op's name, and the sweep returns its status, also if an older
 * failure is on record. */
START_TEST(a_failure_without_a_record_is_recorded)
{
    ng_tensor *w = leaf_of(2, 1), *x = leaf_of(2, 1), *g = x;
    ng_tensor *y = ng_add(tape, record(&failing[_i].op, ng_exp(tape, x)), w);
    assert_fails(ng_backward(tape, ng_sum(tape, y)), failing[_i].status, "my_op");
    assert_fails(ng_gradients(tape, &y, 1, &x, 1, &g), failing[_i].status, "my_op");
    assert_fails(ng_gradient(tape, y, x), failing[_i].status, "my_op");
    ck_assert_ptr_eq(g, x);
    ck_assert(!ng_has_grad(x) && !ng_has_grad(w));

    ng_fail(NG_ESHAPE, "an older failure");
    ck_assert_int_eq(ng_backward(tape, ng_sum(tape, y)), failing[_i].status);
    ck_assert(ng_failed());
    ck_assert_int_eq(ng_gradients(tape, &y, 1, &x, 1, &g), failing[_i].status);
    ck_assert(ng_failed());
    ng_clear_error();
    assert_ok(ng_backward(tape, ng_sum(tape, ng_exp(tape, x))));
}

static ng_tensor *silent_function(ng_tape *on, ng_tensor *x)
{
    (void)on, (void)x;
    return NULL;
}

static ng_tensor *silent_call(ng_tape *on, ng_tensor *const *inputs, void *context)
{
    (void)on, (void)inputs, (void)context;
    return NULL;
}

static void clearing_init(ng_module *self, ng_rng *rng)
{
    (void)self;
    ng_fill_uniform(NULL, 0, 1, rng);
    ng_clear_error();
}

START_TEST(a_module_that_fails_without_a_record_is_an_error)
{
    static const ng_module_class clearing = {
        .name = "Clearing", .size = sizeof(ng_module), .init = clearing_init};
    ng_module *net = own(ng_sequential_new(ng_function_new("mine", silent_function)));
    ng_module *other = own(ng_module_built(ng_module_new(&clearing)));
    ng_tensor *x = leaf_of(2, 1);
    ck_assert_ptr_null(ng_forward(net, tape, x));
    assert_error(NG_ENULL, "Function");
    ng_fail(NG_ESHAPE, "an older failure");
    ck_assert_ptr_null(ng_forward(net, tape, x));
    ck_assert_int_eq(ng_failures(), 2);
    ng_clear_error();
    assert_fails(ng_module_init(other, 1), NG_ESTATE);
    const ng_check_report report = ng_check_function(silent_call, &x, 1);
    ck_assert(!report.passed);
}

static ng_status silent_link(void *with, const void *mine, void *all, size_t bytes)
{
    (void)with, (void)mine, (void)all, (void)bytes;
    return NG_EIO;
}

static ng_status silent_projection(void *context, const char *name, ng_tensor *weight)
{
    (void)context, (void)name, (void)weight;
    return NG_EPARSE;
}

static ng_status silent_program(ng_group *group, void *with)
{
    (void)with;
    return ng_group_rank(group) ? NG_EIO : NG_OK;
}

START_TEST(links_projections_and_programs_that_fail_without_a_record_are_errors)
{
    ng_group *group = ng_group_over_new(
        &(ng_group_link){.size = 1, .all_to_all = silent_link, .all_gather = silent_link});
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ng_group_agree(group), NG_EIO);
        assert_error(NG_EIO, "link");
    }
    ng_group_free(group);
    ck_assert_int_ne(ng_group_run(silent_program, NULL, 2), NG_OK);
    assert_error(NG_EIO, "rank 1");

    ng_tensor *w = ng_require_grad(ng_ones_new(NG_F64, NG_SHAPE(2)));
    ng_optimizer *sgd = own(ng_sgd_new(own(ng_parameters_new(&w, 1)), .lr = 1));
    assert_ok(ng_optimizer_set_projection(sgd, silent_projection, NULL));
    assert_ok(ng_backward(tape, ng_sum(tape, w)));
    ng_fail(NG_ESHAPE, "an older failure");
    ck_assert_int_eq(ng_optimizer_step(sgd), NG_EPARSE);
    ck_assert_int_eq(ng_failures(), 2);
    ng_clear_error();
}

/* ---- What a rule gives ----------------------------------------------------------------------- */

static ng_tensor *given;
static void giving_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)on, (void)node, (void)dy;
    dx[0] = given;
}
static const ng_op giving_op = {.name = "giving", .gradient = giving_rule};

START_TEST(a_constant_that_a_rule_gives_is_copied)
{
    ng_tensor *x = leaf_of(2, 1), *w = leaf_of(2, 3);
    given = own(ng_full_new(NG_F64, NG_SHAPE(2), 3));
    ng_tensor *g = ng_gradient(tape, record(&giving_op, x), x);
    ng_tensor *recorded = ng_gradient(tape, record(&giving_op, x), x, .record = true);
    assert_ok(ng_fill(given, 9));
    assert_values(g, 0.0, 3, 3);
    assert_values(recorded, 0.0, 3, 3);

    given = w; /* a leaf keeps its gradient */
    g = ng_gradient(tape, record(&giving_op, x), x, .record = true);
    assert_values(ng_gradient(tape, ng_square(tape, g), w), 0.0, 6, 6);
}

START_TEST(a_tensor_of_another_tape_from_a_rule_is_refused)
{
    ng_tape *other = own(ng_tape_new());
    ng_tensor *x = leaf_of(2, 1);
    given = ng_full(other, NG_F64, NG_SHAPE(2), 5);
    assert_fails(ng_gradient(tape, record(&giving_op, x), x), NG_ESTATE, "giving");
    assert_fails(ng_backward(tape, ng_sum(tape, record(&giving_op, x))), NG_ESTATE, "giving");
    ck_assert(!ng_has_grad(x));
}

/* ---- A gradient of zero ---------------------------------------------------------------------- */

/* A leaf that only a gradient of zero reaches has one: of the op itself, of an op below it, and of
 * an op differentiated by its definition. */
static ng_tensor *where_definition(ng_tape *on, const ng_node *node)
{
    ng_tensor *zero = ng_zeros_like(on, node->inputs[0]);
    return ng_where(on, node->inputs[0], zero, zero);
}

START_TEST(a_gradient_of_none_is_zero)
{
    static const ng_op defined = {.name = "defined", .definition = where_definition};
    ng_tensor *w = leaf_of(2, 1), *a = ng_full(tape, NG_F64, NG_SHAPE(2), 3);
    ng_tensor *below = ng_exp(tape, w),
              *all[] = {ng_where(tape, w, a, a), ng_where(tape, below, a, a), ng_sign(tape, w),
                        record(&defined, w), record(&defined, below)};
    for (int i = 0; i < 5; i++) {
        ng_tensor *x = i % 3 == 1 ? below : w, *both[] = {w, x}, *gradients[2];
        assert_values(ng_gradient(tape, all[i], w), 0, 0, 0);
        assert_values(ng_gradient(tape, all[i], x, .record = true), 0, 0, 0);
        assert_ok(ng_gradients(tape, &all[i], 1, both, 2, gradients));
        assert_values(gradients[1], 0, 0, 0);
        assert_ok(ng_backward(tape, ng_sum(tape, all[i])));
        ck_assert(ng_has_grad(w));
        assert_values(ng_grad(w), 0, 0, 0);
    }
    assert_ok(ng_backward(tape, ng_sum(tape, ng_add(tape, below, all[1]))));
    assert_values(ng_grad(w), 1e-15, exp(1), exp(1));
}

/* ---- Tensors that change --------------------------------------------------------------------- */

/* Written through a view, a detached value, or a view of a view. */
START_TEST(a_write_through_a_view_is_noticed)
{
    ng_tensor *w = leaf_of(2, 3);
    for (int i = 0; i < 3; i++) {
        ng_tensor *row = ng_reshape(tape, w, NG_SHAPE(1, 2));
        ng_tensor *views[] = {row, ng_reshape(tape, row, NG_SHAPE(2, 1)), ng_detach(tape, w)};
        ng_tensor *y = ng_sum(tape, ng_square(tape, _i ? w : row));
        assert_values(ng_gradient(tape, y, w), 0, 6, 6);
        ng_data_f64(views[i])[0] = 100;
        ng_touch(views[i]);
        assert_fails(ng_backward(tape, y), NG_ESTATE);
        assert_ok(ng_fill(w, 3));
    }
}

/* The gradient of w as an operand, as a view of it, as a cotangent, and as what a rule gives: the
 * pass reads it as it was before, whether or not an optimizer has used it. */
START_TEST(the_gradient_of_a_leaf_is_read_as_it_was)
{
    ng_tensor *w = ng_require_grad(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(1, 2, 3)));
    ng_optimizer *sgd = own(ng_sgd_new(own(ng_parameters_new(&w, 1)), .lr = 0.1));
    for (int way = 0; way < 8; way++) {
        const bool used = way % 2;
        ng_zero_grad(w);
        assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, w))));
        if (used) assert_ok(ng_optimizer_step(sgd));
        ng_tape_reset(tape);
        ng_tensor *g = ng_grad(w), *copy = own(ng_copy_new(g, NG_F64)), *dy = g, *y;
        ng_tensor *read = way / 2 == 1 ? ng_reshape(tape, g, NG_SHAPE(3)) : g;
        given = g;
        if (way / 2 <= 1) { /* g w + g w^2 */
            y = ng_mul(tape, read, w);
            y = ng_add(tape, y, ng_mul(tape, read, ng_square(tape, w)));
            dy = ng_full(tape, NG_F64, NG_SHAPE(3), 1);
        } else { /* w^2 by the cotangent, w^2 w by the rule */
            y = ng_square(tape, w);
            if (way / 2 == 3) y = ng_mul(tape, ng_exp(tape, w), record(&giving_op, y));
        }
        ng_tensor *expected = ng_gradient(tape, y, w, .cotangent = own(ng_copy_new(dy, NG_F64)));
        assert_ok(ng_backward_from(tape, y, dy));
        for (int i = 0; i < 3; i++)
            assert_close(ng_get(ng_grad(w), i), ng_get(expected, i) + (used ? 0 : ng_get(copy, i)),
                         1e-15);
        if (way / 2 <= 1) assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_ESTATE);
    }
}

/* ---- The tape inside a rule ------------------------------------------------------------------ */

static void (*end_tape)(ng_tape *on);

static void ending_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)node;
    end_tape(on);
    dx[0] = dy;
}

static ng_tensor *ending_definition(ng_tape *on, const ng_node *node)
{
    end_tape(on);
    return ng_failed() ? NULL : ng_square(on, node->inputs[0]);
}

static ng_tensor *ending_function(ng_tape *on, ng_tensor *x)
{
    end_tape(on);
    return ng_square(on, x);
}

START_TEST(a_tape_that_is_in_use_is_not_reset_or_freed)
{
    static const ng_op ops[] = {{.name = "ending", .gradient = ending_rule},
                                {.name = "ending", .definition = ending_definition}};
    end_tape = _i ? ng_tape_free : ng_tape_reset;
    const char *name = _i ? "ng_tape_free" : "ng_tape_reset";
    ng_tensor *x = leaf_of(2, 3);
    for (int i = 0; i < 4; i++) {
        ng_tensor *y = record(&ops[i % 2], ng_exp(tape, x));
        ck_assert_ptr_null(ng_gradient(tape, y, x, .record = i > 1));
        assert_error(NG_ESTATE, name);
        assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_ESTATE, name);
    }
    ng_module *net = own(ng_function_new("ending", ending_function));
    ng_tensor *y = ng_recompute(net, tape, x);
    assert_error(NG_ESTATE, name);
    ng_clear_error();
    if (y) assert_values(y, 0, 9, 9);
    assert_values(ng_gradient(tape, ng_square(tape, x), x), 0, 6, 6);
}

/* Recording is off in a rule, unless the gradient is recorded, and the error says so. What a rule
 * switches is switched back. */
static bool switch_on;
static void gradient_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    if (switch_on) ng_tape_set_recording(on, true);
    ng_tensor *v = ng_variable(on, node->inputs[0]);
    dx[0] = ng_gradient(on, ng_exp(on, v), v, .cotangent = dy);
}

START_TEST(recording_is_off_inside_a_rule)
{
    static const ng_op op = {.name = "mine", .gradient = gradient_rule};
    ng_tensor *x = leaf_of(2, 0), *y = record(&op, x);
    switch_on = false;
    assert_fails(ng_gradient(tape, y, x), NG_EGRAD, "ng_");
    assert_values(ng_gradient(tape, y, x, .record = true), 0, 1, 1);
    switch_on = true;
    y = record(&op, ng_square(tape, ng_add_scalar(tape, x, 1)));
    const int64_t before = ng_tape_used(tape).ops;
    assert_values(ng_gradient(tape, y, x), 1e-15, 2 * exp(1), 2 * exp(1));
    ck_assert_int_eq(ng_tape_used(tape).ops, before + 1); /* the exp of the rule */
}

Suite *user_functions_suite(void)
{
    Suite *suite = suite_create("user_functions");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(tests, a_module_that_fails_without_a_record_is_an_error,
              links_projections_and_programs_that_fail_without_a_record_are_errors,
              a_constant_that_a_rule_gives_is_copied,
              a_tensor_of_another_tape_from_a_rule_is_refused, a_gradient_of_none_is_zero,
              the_gradient_of_a_leaf_is_read_as_it_was, recording_is_off_inside_a_rule);
    add_loops(tests, 5, a_failure_without_a_record_is_recorded);
    add_loops(tests, 2, a_write_through_a_view_is_noticed,
              a_tape_that_is_in_use_is_not_reset_or_freed);
    return suite;
}
