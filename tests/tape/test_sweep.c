/* Sweeps inside sweeps: gradient rules that take gradients themselves. */
#include "fixture.h"
#include "support.h"
#include <math.h>

static ng_tensor *leaf(double value)
{
    return ng_require_grad(own(ng_full_new(NG_F64, NG_SCALAR, value)));
}

FIXTURE(set_up, tear_down)

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

/* p = 0.5, z = exp(p), x = sin(z), loss = z + tanh(x). */
TEST(a_rule_may_take_a_gradient)
{
    ng_tensor *p = leaf(0.5);
    for (int by_backward = 0; by_backward < 2; by_backward++) {
        ng_tensor *z = ng_exp(tape, p), *x = ng_sin(tape, z);
        ng_tensor *loss = ng_sum(tape, ng_add(tape, again(tape, x, tanh_of, by_backward), z));
        ng_zero_grad(p);
        assert_ok(ng_backward(tape, loss));
        assert_close(ng_item(ng_grad(p)), 1.59456950378, 1e-11);
        assert_close(ng_item(ng_gradient(tape, loss, p)), 1.59456950378, 1e-11);
        assert_close(ng_item(ng_gradient(tape, loss, z)), 1.59456950378 / exp(0.5), 1e-11);
    }
}

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

TEST(sweeps_nest_to_any_depth)
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

TEST(an_inner_backward_adds_to_a_leaf_of_the_outer_one)
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

TEST(a_rule_that_differentiates_itself_without_end_is_an_error)
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

TEST(a_failure_in_an_inner_sweep_is_one_of_the_outer)
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

static ng_tensor *misshapen_definition(ng_tape *on, const ng_node *node)
{
    return ng_sum(on, node->inputs[0]);
}

TEST(a_wrong_definition_is_named_as_such)
{
    static const ng_op op = {.name = "misshapen", .definition = misshapen_definition};
    ng_tensor *x = own(ng_require_grad(ng_ones_new(NG_F64, NG_SHAPE(3))));
    ng_tensor *y = ng_record(tape, &op, ng_zeros_like(tape, x), &x, 1, NULL, 0);
    assert_fails(ng_backward(tape, ng_sum(tape, y)), NG_EGRAD);
}

/* ---- What a sweep visits -------------------------------------------------------------------- */

static int visits;
static void counting_rule(ng_tape *on, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    (void)on, (void)node;
    visits++;
    dx[0] = dy;
}

static ng_tensor *counting(ng_tape *on, ng_tensor *x)
{
    static const ng_op op = {.name = "counting", .gradient = counting_rule};
    ng_tensor *y = ng_result(on, NG_F64, NG_SCALAR);
    ng_data_f64(y)[0] = ng_item(x);
    return ng_record(on, &op, y, &x, 1, NULL, 0);
}

/* Each call takes as much memory of the tape, however long that is. */
TEST(gradients_visit_what_lies_between)
{
    ng_tensor *x = leaf(1), *far = counting(tape, x);
    visits = 0;
    for (int i = 0; i < 1000; i++) {
        ng_tensor *from = i % 2 ? x : far;
        ng_tensor *y = counting(tape, ng_mul(tape, counting(tape, from), x));
        const int64_t before = ng_tape_used(tape).bytes_used;
        assert_ok(ng_gradient(tape, y, from));
        ck_assert_int_lt(ng_tape_used(tape).bytes_used - before, 2000);
    }
    ck_assert_int_eq(visits, 2000);
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
    case 3: return ng_layer_norm(tape, a, NG_NONE, b, 1e-2);
    case 4: return ng_gelu(tape, a);
    case 5: return ng_rms_norm(tape, a, b, 1e-2);
    case 6: return ng_sub(tape, ng_detach(tape, a), b);
    default: return ng_mul(tape, a, a);
    }
}

TEST(gradients_of_random_graphs_agree)
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
