/* Random networks: ng_recompute gives the bits of ng_forward, or NG_ESTATE where something that the
 * pass reads was changed before its gradient is taken. */
#include "norms/norm.h"
#include "support/fixture.h"
#include "support/support.h"

enum { ROWS = 6, DIM = 6, CONDITION = 3, NETWORKS = 300, SHARED = 3 };

/* A network and what its functions read; one with ng_forward, one with ng_recompute. */
typedef struct {
    bool again;
    ng_tape *tape;
    ng_module *net, *shared[SHARED];
    ng_tensor *x, *condition, *leaf, *constant, *source, *older, *mean, *variance;
    ng_rng rng; /* of what is built */
    bool takes_condition;
} world;

static world *here; /* that of the functions which run */

/* ---- Layers of our own ----------------------------------------------------------------------- */

static ng_tensor *by_leaf(ng_tape *on, ng_tensor *x) { return ng_mul(on, x, here->leaf); }
static ng_tensor *by_constant(ng_tape *on, ng_tensor *x) { return ng_mul(on, x, here->constant); }
static ng_tensor *by_older(ng_tape *on, ng_tensor *x) { return ng_mul(on, x, here->older); }
static ng_tensor *by_square(ng_tape *on, ng_tensor *x)
{
    return ng_mul(on, x, ng_square(on, here->constant)); /* the square is not recorded */
}
static ng_tensor *by_detached(ng_tape *on, ng_tensor *x)
{
    return ng_mul(on, x, ng_add(on, ng_detach(on, ng_tanh(on, x)), ng_detach(on, here->leaf)));
}
static ng_tensor *by_slope(ng_tape *on, ng_tensor *x)
{
    ng_tensor *v = ng_variable(on, x), *y = ng_tanh(on, ng_mul(on, v, here->leaf));
    return ng_mul(on, x, ng_gradient(on, ng_sum(on, y), v, .record = true));
}
static ng_tensor *noise(ng_tape *on, ng_tensor *x)
{
    return ng_add(on, x, ng_normal(on, ng_dtype_of(x), ng_shape_of(x), 0, 1));
}
static ng_tensor *by_statistics(ng_tape *on, ng_tensor *x)
{
    return ng_batch_norm(on, x, NG_NONE, NG_NONE, here->mean, here->variance, .training = true);
}
static ng_tensor *shared_0(ng_tape *on, ng_tensor *x) { return ng_forward(here->shared[0], on, x); }
static ng_tensor *shared_1(ng_tape *on, ng_tensor *x) { return ng_forward(here->shared[1], on, x); }
static ng_tensor *shared_2(ng_tape *on, ng_tensor *x) { return ng_forward(here->shared[2], on, x); }

/* Multiplies by a buffer that grows with each pass in training. */
typedef struct {
    ng_module base;
    ng_tensor *count;
} counting;

static ng_tensor *counting_forward(ng_module *self, ng_tape *on, ng_tensor *x)
{
    ng_tensor *count = ((counting *)self)->count;
    ng_tensor *y = ng_mul_scalar(on, x, ng_item(count));
    if (self->training) ng_fill(count, ng_item(count) * 1.25);
    return y;
}

static const ng_module_class counting_class = {
    .name = "Counting", .size = sizeof(counting), .forward = counting_forward};

static ng_module *counting_new(void)
{
    counting *self = (counting *)ng_module_new(&counting_class);
    self->count = ng_module_add_buffer(&self->base, "count", NG_SCALAR, 1);
    return ng_module_built(&self->base);
}

/* Runs its child by ng_recompute, or by ng_forward. */
typedef struct {
    ng_module base;
    ng_module *inner;
    bool again, takes_condition;
} wrapper;

static ng_tensor *wrapper_forward(ng_module *self, ng_tape *on, const ng_inputs *in)
{
    const wrapper *layer = (const wrapper *)self;
    ng_tensor *condition = layer->takes_condition ? in->condition : NG_NONE;
    return layer->again ? ng_recompute(layer->inner, on, in->x, .condition = condition)
                        : ng_forward(layer->inner, on, in->x, .condition = condition);
}

static const ng_module_class wrapper_class = {
    .name = "Wrapper", .size = sizeof(wrapper), .forward_with = wrapper_forward};

static ng_module *wrapped(ng_module *inner, bool again, bool takes_condition)
{
    wrapper *self = (wrapper *)ng_module_new(&wrapper_class);
    self->inner = ng_module_add_child(&self->base, "inner", inner);
    self->again = again;
    self->takes_condition = takes_condition;
    return ng_module_built(&self->base);
}

/* ---- Random networks ------------------------------------------------------------------------- */

static ng_module *film(world *w)
{
    w->takes_condition = true;
    return ng_film_new(DIM, .condition = CONDITION, .features_last = true);
}

static ng_module *leaf_layer(world *w)
{
    static ng_function *const functions[] = {by_leaf,  by_constant, by_older, by_square,
                                             by_slope, by_detached, noise,    by_statistics,
                                             shared_0, shared_1,    shared_2};
    const int64_t kind = ng_rng_below(&w->rng, 28);
    switch (kind) {
    case 0: return ng_linear_new(DIM, DIM);
    case 1: return ng_layer_norm_new(DIM);
    case 2: return ng_rms_norm_new(DIM, .unit_offset = true);
    case 3: return ng_batch_norm_new(DIM);
    case 4: return ng_batch_norm_new(DIM, .ghost = 3);
    case 5: return ng_batch_renorm_new(DIM);
    case 6: return ng_group_norm_new(2, DIM);
    case 7: return ng_dropout_new(0.3);
    case 8: return ng_gelu_new();
    case 9: return ng_prelu_new(1);
    case 10: return ng_spectral_norm_new(ng_linear_new(DIM, DIM));
    case 11: return ng_weight_norm_new(ng_linear_new(DIM, DIM));
    case 12: return ng_feed_forward_new(DIM);
    case 13: return ng_detach_norm_new(DIM);
    case 14: return ng_dynamic_tanh_new(DIM);
    case 15: return film(w);
    case 16: return counting_new();
    default: return ng_function_new("function", functions[kind - 17]);
    }
}

static ng_module *network(world *w, int depth);

/* A network that is recomputed, or not. */
static ng_module *recomputed(world *w, int depth)
{
    const bool took = w->takes_condition;
    w->takes_condition = false;
    ng_module *inner = network(w, depth);
    ng_module *self = wrapped(inner, w->again, w->takes_condition);
    w->takes_condition = w->takes_condition || took;
    return self;
}

static ng_module *network(world *w, int depth)
{
    ng_module *net = ng_sequential_new(ng_tanh_new());
    const int64_t layers = 1 + ng_rng_below(&w->rng, 4);
    for (int64_t i = 0; i < layers; i++) {
        const int64_t kind = depth > 0 ? ng_rng_below(&w->rng, 6) : 3;
        ng_module *layer = kind == 0   ? recomputed(w, depth - 1)
                           : kind == 1 ? ng_residual_new(network(w, depth - 1))
                           : kind == 2 ? network(w, depth - 1)
                                       : leaf_layer(w);
        assert_ok(ng_sequential_add(net, layer));
    }
    return net;
}

static ng_tensor *leaf_of(ng_dtype dtype, ng_shape shape, uint64_t seed, bool requires_grad)
{
    ng_rng rng = ng_rng_seeded(seed);
    ng_tensor *x = ng_uniform_new(dtype, shape, 0.5, 1.5, &rng);
    return requires_grad ? ng_require_grad(x) : x;
}

static void world_make(world *w, bool again, uint64_t seed, ng_dtype dtype)
{
    *w = (world){.again = again, .tape = ng_tape_new(), .rng = ng_rng_seeded(seed)};
    w->net = recomputed(w, 2);
    w->shared[0] = ng_linear_new(DIM, DIM);
    w->shared[1] = ng_batch_norm_new(DIM);
    w->shared[2] = ng_spectral_norm_new(ng_linear_new(DIM, DIM));
    for (int i = 0; i < SHARED; i++) assert_ok(ng_module_to(w->shared[i], dtype));
    assert_ok(ng_module_init(w->net, seed));
    assert_ok(ng_module_to(w->net, dtype));
    w->x = leaf_of(dtype, NG_SHAPE(ROWS, DIM), seed + 1, true);
    w->condition = leaf_of(dtype, NG_SHAPE(ROWS, CONDITION), seed + 2, seed % 2);
    w->leaf = leaf_of(dtype, NG_SHAPE(DIM), seed + 3, true);
    w->constant = leaf_of(dtype, NG_SHAPE(DIM), seed + 4, false);
    w->source = leaf_of(dtype, NG_SHAPE(DIM), seed + 5, true);
    w->mean = leaf_of(dtype, NG_SHAPE(DIM), seed + 6, false);
    w->variance = leaf_of(dtype, NG_SHAPE(DIM), seed + 7, false);
    w->older = ng_mul_scalar(w->tape, w->source, 2);
}

static void world_free(world *w)
{
    ng_tape_free(w->tape);
    ng_module_free(w->net);
    for (int i = 0; i < SHARED; i++) ng_module_free(w->shared[i]);
    ng_tensor_free(w->x), ng_tensor_free(w->condition), ng_tensor_free(w->leaf);
    ng_tensor_free(w->constant), ng_tensor_free(w->source);
    ng_tensor_free(w->mean), ng_tensor_free(w->variance);
}

/* The output, in which x and the older result have a part of their own. */
static ng_tensor *pass(world *w)
{
    enum { MOST = 128 };
    here = w;
    ng_tensor *condition = w->takes_condition ? w->condition : NG_NONE, *values[MOST];
    ng_named_tensor p;
    int count = 0;
    const bool replaced = ng_rng_below(&w->rng, 4) == 0;
    for (; replaced && ng_module_parameter(w->net, count, &p); count++) {
        ck_assert_int_lt(count, MOST);
        values[count] = ng_mul_scalar(w->tape, p.tensor, 1.5);
    }
    ng_tensor *y =
        replaced ? ng_forward_using(w->net, w->tape, values, count, w->x, .condition = condition)
                 : ng_forward(w->net, w->tape, w->x, .condition = condition);
    return ng_add(w->tape, ng_add(w->tape, y, w->x), w->older);
}

/* ---- Changes between a pass and its gradient ------------------------------------------------- */

static void change_nothing(world *w) { (void)w; }
static void change_parameter(world *w)
{
    ng_named_tensor p;
    if (ng_module_parameter(w->net, (int)ng_rng_below(&w->rng, 6), &p)) ng_fill(p.tensor, 0.75);
}
static void change_shared(world *w)
{
    ng_named_tensor p;
    if (ng_module_parameter(w->shared[2], 0, &p)) ng_fill(p.tensor, 0.75);
}
static void change_buffers(world *w)
{
    ng_named_tensor p;
    for (int i = 0; ng_module_buffer(w->net, i, &p); i++) ng_fill(p.tensor, 3);
    for (int i = 0; ng_module_buffer(w->shared[1], i, &p); i++) ng_fill(p.tensor, 3);
}
static void change_leaf(world *w) { ng_fill(w->leaf, 0.5); }
static void change_constant(world *w) { ng_fill(w->constant, 0.5); }
static void change_x(world *w) { ng_set(w->x, 1, 0.5); }
static void change_condition(world *w) { ng_set(w->condition, 1, 0.5); }
static void to_evaluation(world *w)
{
    ng_eval(w->net);
    ng_eval(w->shared[1]);
}
static void to_training(world *w)
{
    ng_train(w->net);
    ng_train(w->shared[1]);
}
static void freeze(world *w)
{
    ng_freeze(w->net);
    ng_freeze(w->shared[0]);
    ng_freeze(w->shared[1]);
}
static void unfreeze(world *w)
{
    ng_unfreeze(w->net);
    ng_unfreeze(w->shared[0]);
    ng_unfreeze(w->shared[1]);
}
static void another_pass(world *w) { assert_ok(pass(w)); }
static void pass_in_training(world *w)
{
    to_training(w);
    assert_ok(pass(w));
    to_evaluation(w);
}
static void add_layer(world *w)
{
    assert_ok(ng_sequential_add(ng_module_child(w->net, 0), ng_tanh_new()));
}
static void to_float64(world *w) { assert_ok(ng_module_to(w->net, NG_F64)); }
static void there_and_back(world *w)
{
    const ng_dtype dtype = ng_dtype_of(w->x), other = dtype == NG_F32 ? NG_F64 : NG_F32;
    for (int i = 0; i < SHARED; i++) {
        assert_ok(ng_module_to(w->shared[i], other));
        assert_ok(ng_module_to(w->shared[i], dtype));
    }
    assert_ok(ng_module_to(w->net, other));
    assert_ok(ng_module_to(w->net, dtype));
}

static const struct {
    void (*make)(world *w);
    bool may_refuse; /* NG_ESTATE although what ng_forward needs is unchanged */
} changes[] = {{change_nothing, false},  {to_evaluation, false},   {to_training, false},
               {freeze, false},          {unfreeze, false},        {another_pass, false},
               {change_parameter, true}, {change_shared, true},    {change_buffers, true},
               {change_leaf, true},      {change_constant, true},  {change_x, true},
               {change_condition, true}, {pass_in_training, true}, {add_layer, true},
               {to_float64, true},       {there_and_back, true}};
enum { CHANGES = sizeof changes / sizeof *changes };

/* ---- The same as ng_forward ------------------------------------------------------------------ */

static void assert_alike(ng_tensor *a, ng_tensor *b, double allowed)
{
    ck_assert_int_eq(ng_has_grad(a), ng_has_grad(b));
    if (!ng_has_grad(a)) return;
    if (allowed == 0) assert_same_bits(ng_grad(a), ng_grad(b));
    for (int64_t i = 0; i < ng_size(a) && allowed > 0; i++)
        assert_near(ng_get(ng_grad(b), i), ng_get(ng_grad(a), i), allowed);
}

static void assert_same_modules(ng_module *a, ng_module *b, double allowed)
{
    ng_named_tensor p, q;
    assert_same_module(a, b);
    for (int i = 0; ng_module_parameter(a, i, &p); i++) {
        ck_assert(ng_module_parameter(b, i, &q));
        assert_alike(p.tensor, q.tensor, allowed);
    }
}

/* Gradients, to the bit if nothing is allowed; parameters, buffers and random numbers. */
static void assert_same_worlds(world *a, world *b, double allowed)
{
    assert_same_modules(a->net, b->net, allowed);
    for (int i = 0; i < SHARED; i++) assert_same_modules(a->shared[i], b->shared[i], allowed);
    assert_alike(a->x, b->x, allowed);
    assert_alike(a->condition, b->condition, allowed);
    assert_alike(a->leaf, b->leaf, allowed);
    assert_alike(a->source, b->source, allowed);
    assert_same_bits(a->mean, b->mean);
    assert_same_bits(a->variance, b->variance);
    assert_same_bits(ng_normal(a->tape, NG_F32, NG_SHAPE(4), 0, 1),
                     ng_normal(b->tape, NG_F32, NG_SHAPE(4), 0, 1));
}

static ng_status gradient_of(world *w, ng_tensor *y)
{
    here = w;
    const ng_status status = ng_backward_from(w->tape, y, ng_cos(w->tape, ng_detach(w->tape, y)));
    ng_clear_error();
    return status;
}

/* Two passes that are alike, a change, and the gradient, twice. */
static void compare_first_order(uint64_t seed)
{
    world w[2];
    ng_tensor *y[2];
    ng_rng rng = ng_rng_seeded(1000 + seed);
    const ng_dtype dtype = ng_rng_below(&rng, 2) ? NG_F32 : NG_F64;
    const int64_t mode = ng_rng_below(&rng, 4);
    const int64_t change = ng_rng_below(&rng, 3) ? ng_rng_below(&rng, CHANGES) : 0;
    for (int i = 0; i < 2; i++) {
        world_make(&w[i], i, seed, dtype);
        if (mode == 1) to_evaluation(&w[i]);
        if (mode == 2) freeze(&w[i]);
        if (mode == 3) ng_freeze(ng_module_child(ng_module_child(w[i].net, 0), 1));
        y[i] = pass(&w[i]);
        assert_ok(y[i]);
    }
    assert_same_bits(y[0], y[1]);
    for (int i = 0; i < 2; i++) changes[change].make(&w[i]);
    for (int time = 0; time < 2; time++) {
        const ng_status expected = gradient_of(&w[0], y[0]), status = gradient_of(&w[1], y[1]);
        if (status == NG_ESTATE && expected == NG_OK && changes[change].may_refuse) break;
        ck_assert_int_eq(status, expected);
        assert_same_worlds(&w[0], &w[1], 0);
    }
    for (int i = 0; i < 2; i++) world_free(&w[i]);
}

/* The largest element of a parameter's gradient. */
static double largest_slope(ng_module *net)
{
    double largest = 1;
    ng_named_tensor p;
    for (int k = 0; ng_module_parameter(net, k, &p); k++)
        for (int64_t i = 0; ng_has_grad(p.tensor) && i < ng_size(p.tensor); i++)
            largest = fmax(largest, fabs(ng_get(ng_grad(p.tensor), i)));
    return largest;
}

/* The gradient of the squares of a gradient. */
static void compare_second_order(uint64_t seed)
{
    world w[2];
    for (int i = 0; i < 2; i++) {
        world_make(&w[i], i, seed, NG_F64);
        if (seed % 4 == 1) to_evaluation(&w[i]);
        if (seed % 4 == 2) ng_freeze(ng_module_child(ng_module_child(w[i].net, 0), 1));
        ng_tensor *y = pass(&w[i]), *slopes[2], *of[2] = {w[i].x, w[i].older};
        if (seed % 4 == 2) ng_unfreeze(w[i].net);
        if (seed % 4 == 3) to_evaluation(&w[i]);
        assert_ok(y);
        assert_ok(ng_gradients(w[i].tape, &y, 1, of, 2, slopes, .record = true));
        ng_tensor *penalty = ng_add(w[i].tape, ng_sum(w[i].tape, ng_square(w[i].tape, slopes[0])),
                                    ng_sum(w[i].tape, ng_square(w[i].tape, slopes[1])));
        assert_ok(ng_backward(w[i].tape, penalty));
    }
    assert_same_worlds(&w[0], &w[1], 1e-9 * largest_slope(w[0].net));
    for (int i = 0; i < 2; i++) world_free(&w[i]);
}

enum { FIRST_ORDER = 30, SECOND_ORDER = 10 }; /* networks in a test */

START_TEST(gradients_have_the_bits_of_forward)
{
    for (int i = 0; i < FIRST_ORDER; i++) compare_first_order((uint64_t)(FIRST_ORDER * _i + i));
}

START_TEST(second_gradients_are_those_of_forward)
{
    for (int i = 0; i < SECOND_ORDER; i++) compare_second_order((uint64_t)(SECOND_ORDER * _i + i));
}

Suite *random_networks_suite(void)
{
    Suite *suite = suite_create("random_networks");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_loops(tests, NETWORKS / FIRST_ORDER, gradients_have_the_bits_of_forward);
    add_loops(tests, 100 / SECOND_ORDER, second_gradients_are_those_of_forward);
    return suite;
}
