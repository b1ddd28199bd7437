/* Attention and the transformer: definitions, PyTorch's values, masks, positions, placements,
 * threads, errors. */
#include "support/fixture.h"
#include "support/golden.h"
#include "support/support.h"

#include "ops/op.h"

/* ---- The ops -------------------------------------------------------------------------------*/

/* The weights of attention (2, 2, T, T) for equal scores, as attention to the identity. */
static ng_tensor *dropped_weights(ng_tape *on, int64_t length, double dropout)
{
    const ng_shape shape = NG_SHAPE(2, 2, length, length);
    ng_tensor *zero = ng_full(on, NG_F64, shape, 0), *one = ng_zeros_new(NG_F64, shape);
    for (int64_t row = 0; row < 4 * length; row++) ng_set(one, row * length + row % length, 1);
    ng_tensor *identity = ng_add(on, zero, one);
    ng_tensor_free(one);
    return ng_attention(on, zero, zero, identity, NG_NONE, .dropout = dropout);
}

START_TEST(dropout_of_weights_drops_its_share_and_scales_the_rest)
{
    enum { LENGTH = 150 };
    const double p = 0.3, kept = 1 / (0.7 * (double)LENGTH),
                 n = 4.0 * (double)LENGTH * (double)LENGTH;
    ng_tensor *weights = dropped_weights(tape, LENGTH, p);
    int64_t dropped = 0, rows[LENGTH] = {0}, columns[LENGTH] = {0};
    for (int64_t i = 0; i < weights->size; i++) {
        const double weight = ng_get(weights, i);
        if (weight == 0) {
            dropped++;
            rows[i / LENGTH % LENGTH]++;
            columns[i % LENGTH]++;
        } else {
            assert_close(weight, kept, 1e-14);
        }
    }
    assert_near((double)dropped / n, p, 4 * sqrt(p * (1 - p) / n));
    for (int i = 0; i < LENGTH; i++) {
        const double count = 4 * LENGTH, off = 5 * sqrt(p * (1 - p) / count);
        assert_near((double)rows[i] / count, p, off);
        assert_near((double)columns[i] / count, p, off);
    }
    assert_near(ng_item(ng_mean(tape, weights)) * (double)LENGTH, 1, 0.01); /* as without dropout */
}

START_TEST(dropout_of_weights_follows_the_tape)
{
    ng_tensor *qkv = normal(NG_F32, NG_SHAPE(2, 9, 12), 3);
#define DROPPED(p) ng_self_attention(tape, qkv, NG_NONE, .heads = 2, .dropout = p)
    ng_tape_seed(tape, 7);
    ng_tensor *a = DROPPED(0.5), *plain = DROPPED(0), *b = DROPPED(0.5);
    assert_refused(DROPPED(1), "ng_self_attention");
    ng_tensor *c = DROPPED(0.5);
    ck_assert(memcmp(a->data, b->data, (size_t)a->size * sizeof(float)) != 0);
    ng_tape_seed(tape, 7); /* neither a probability of 0 nor an error takes from the stream */
    assert_same_bits(DROPPED(0.5), a);
    assert_same_bits(DROPPED(0.5), b);
    assert_same_bits(DROPPED(0.5), c);
    assert_same_bits(DROPPED(0), plain);
#undef DROPPED
}

START_TEST(one_packed_tensor_gives_what_its_parts_give)
{
    ng_tensor *qkv = normal(NG_F64, NG_SHAPE(2, 9, 24), 3);
    ng_tensor *part[3], *apart[3];
    for (int i = 0; i < 3; i++) {
        part[i] = ng_slice(tape, qkv, -1, 8 * i, 8 * (i + 1));
        apart[i] =
            ng_permute(tape, ng_reshape(tape, part[i], NG_SHAPE(2, 9, 2, 4)), NG_AXES(0, 2, 1, 3));
    }
    ng_tensor *packed = ng_self_attention(tape, qkv, NG_NONE, .heads = 2, .causal = true);
    ng_tensor *beside =
        ng_attention(tape, part[0], part[1], part[2], NG_NONE, .heads = 2, .causal = true);
    ng_tensor *heads = ng_attention(tape, apart[0], apart[1], apart[2], NG_NONE, .causal = true);
    heads = ng_reshape(tape, ng_permute(tape, heads, NG_AXES(0, 2, 1, 3)), NG_SHAPE(2, 9, 8));
    assert_same_bits(packed, beside);
    assert_same_bits(packed, heads);
    ng_tensor *gradient = ng_gradient(tape, ng_sum(tape, ng_square(tape, packed)), qkv);
    assert_tensors_close(gradient, ng_gradient(tape, ng_sum(tape, ng_square(tape, beside)), qkv),
                         1e-13);
    assert_tensors_close(gradient, ng_gradient(tape, ng_sum(tape, ng_square(tape, heads)), qkv),
                         1e-13);
}

START_TEST(attention_passes_nan_on)
{
    ng_tensor *qkv = normal(NG_F32, NG_SHAPE(1, 4, 6), 5);
    ng_set(qkv, 6 + 2, (double)NAN); /* in k of the second position */
    ng_tensor *y = ng_self_attention(tape, qkv, NG_NONE, .heads = 1, .causal = true);
    ck_assert(!isnan(ng_at(y, 0, 0, 0)));
    for (int t = 1; t < 4; t++) ck_assert(isnan(ng_at(y, 0, t, 0)));
}

/* Attention of one query, 1, to keys of one feature: the scores are the keys. */
static ng_tensor *of_scores(ng_tape *on, ng_tensor *scores, ng_tensor *values)
{
    ng_tensor *q = ng_full(on, ng_dtype_of(scores), NG_SHAPE(1, 1, 1, 1), 1);
    const ng_shape keys = NG_SHAPE(1, 1, ng_size(scores), 1);
    return ng_attention(on, q, ng_reshape(on, scores, keys), ng_reshape(on, values, keys), NG_NONE);
}

/* If all scores are -Inf, as after an overflow, there is no largest to subtract: the result is NaN,
 * not that of a query without keys. With a later finite score that key has all the weight. */
START_TEST(attention_to_scores_of_minus_infinity_is_nan)
{
    ng_tensor *scores = own(ng_full_new(NG_F32, NG_SHAPE(100), -(double)INFINITY));
    ng_tensor *v = normal(NG_F32, NG_SHAPE(100), 6);
    ng_tensor *y = of_scores(tape, scores, v), *dv = ng_gradient(tape, y, v);
    ck_assert(isnan(ng_item(y)) && isnan(ng_get(dv, 0)));
    ng_set(scores, 99, 0);
    assert_near(ng_item(of_scores(tape, scores, v)), ng_get(v, 99), 0);
}

START_TEST(rotated_products_depend_on_the_distance_alone)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 6), 7), *rows[2];
    for (int i = 0; i < 2; i++)
        rows[i] = ng_broadcast_to(tape, ng_slice(tape, x, 0, i, i + 1), NG_SHAPE(9, 6));
    ng_tensor *q = ng_rotary(tape, rows[0]), *k = ng_rotary(tape, rows[1]);
    ng_tensor *products = ng_matmul(tape, q, k, .transpose_b = true);
    for (int t = 3; t < 9; t++)
        assert_near(ng_at(products, t, t - 3), ng_at(products, 3, 0), 1e-12);
    ng_tensor *later = ng_rotary(tape, ng_slice(tape, rows[0], 0, 4, 9), .start = 4);
    assert_tensors_close(later, ng_slice(tape, q, 0, 4, 9), 1e-14);
}

START_TEST(wrong_attention_is_refused)
{
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 5, 12), 1);
    ng_tensor *y = normal(NG_F64, NG_SHAPE(2, 3, 12), 2), *z = normal(NG_F64, NG_SHAPE(2, 5), 3);
    ng_tensor *f = normal(NG_F32, NG_SHAPE(2, 5), 3);
    assert_refused(ng_self_attention(tape, x, NG_NONE, .heads = 3));
    assert_refused(ng_self_attention(tape, x, NG_NONE));
    assert_fails(ng_self_attention(tape, z, NG_NONE, .heads = 1), NG_ESHAPE);
    assert_fails(ng_self_attention(tape, y, z, .heads = 2), NG_ESHAPE);
    assert_fails(ng_self_attention(tape, x, f, .heads = 2), NG_EDTYPE);
    assert_refused(ng_self_attention(tape, x, z, .heads = 2, .scale = HUGE_VAL));
    assert_fails(ng_attention(tape, x, y, y, NG_NONE), NG_ESHAPE);
    assert_fails(ng_attention(tape, x, y, x, NG_NONE, .heads = 2), NG_ESHAPE);
    ng_tensor *one = normal(NG_F64, NG_SHAPE(1, 5, 12), 4);
    assert_fails(ng_attention(tape, x, one, one, NG_NONE, .heads = 2), NG_ESHAPE);
    ng_tensor *odd = normal(NG_F64, NG_SHAPE(2, 5, 13), 4);
    assert_fails(ng_self_attention(tape, odd, NG_NONE, .heads = 2), NG_ESHAPE);
    assert_refused(ng_attention(tape, x, NG_NONE, y, NG_NONE, .heads = 2));
    assert_same_bits(ng_rotary(tape, x, .over = 4), ng_rotary(tape, x, .dim = 4, .over = 4));
    assert_fails(ng_swiglu(tape, normal(NG_F64, NG_SHAPE(4, 3), 2)), NG_ESHAPE);
    assert_fails(ng_rotary(tape, x, .dim = 5), NG_ESHAPE);
    assert_fails(ng_rotary(tape, x, .dim = 4, .over = 6), NG_ESHAPE);
    assert_refused(ng_rotary(tape, x, .base = -1));
    assert_refused(ng_attention(tape, x, x, x, NG_NONE, .heads = 4, .kv_heads = 3));
    assert_fails(ng_attention(tape, x, x, x, NG_NONE, .heads = 4, .kv_heads = 2), NG_ESHAPE);
    assert_refused(ng_attention(tape, z, z, z, NG_NONE, .kv_heads = 1));
    assert_refused(ng_self_attention(tape, x, NG_NONE, .heads = 4, .kv_heads = -1));
    assert_fails(ng_self_attention(tape, x, NG_NONE, .heads = 3, .kv_heads = 1), NG_ESHAPE);
    assert_fails(ng_self_attention(tape, x, NG_NONE, .heads = INT64_MAX, .kv_heads = 1), NG_ESHAPE);
}

/* ---- Against PyTorch ------------------------------------------------------------------------*/

#define TOLERANCE 1e-11

static void set_parameters(ng_module *module, const char *name)
{
    ng_named_tensor p;
    assert_ok(ng_module_to(module, NG_F64));
    for (int i = 0; ng_module_parameter(module, i, &p); i++)
        assert_ok(ng_copy_values(p.tensor, golden("%s/%s", name, p.name)));
}

#define expect_golden(row, figure, x) assert_golden(x, TOLERANCE, "%s/%s", row, figure)

static void expect_gradients(const char *name, ng_module *module)
{
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(module, i, &p); i++) {
        char figure[80];
        snprintf(figure, sizeof figure, "d%s", p.name);
        expect_golden(name, figure, ng_grad(p.tensor));
    }
}

static void expect_pytorchs(const char *name, ng_module *module, ng_tensor *x, ng_tensor *mask)
{
    set_parameters(own(module), name);
    ng_tensor *y = ng_forward(module, tape, x, .mask = mask);
    expect_golden(name, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", name)));
    expect_gradients(name, module);
    if (ng_requires_grad(x)) expect_golden(name, "dx", ng_grad(x));
}

static void load_transformer(void) { set_up(), golden_load("tests/golden/transformer.txt"); }

START_TEST(embedding_is_pytorchs)
{
    ng_tensor *ids = own(ng_copy_new(golden("embedding/ids"), NG_I64));
    expect_pytorchs("embedding", ng_embedding_new(7, 3), ids, NG_NONE);
}

START_TEST(attention_is_pytorchs)
{
    static const char *const names[] = {"attention", "attention_masked", "attention_causal",
                                        "attention_causal_masked"};
    const char *name = names[_i];
    expect_pytorchs(name, ng_multi_head_attention_new(6, 2, .causal = _i >= 2),
                    ng_require_grad(golden("%s/x", name)),
                    _i % 2 ? golden("%s/mask", name) : NG_NONE);
}

/* Keys and values of other widths and another length. */
START_TEST(cross_attention_is_pytorchs)
{
    const char *name = _i ? "cross_masked" : "cross";
    ng_module *cross = own(ng_multi_head_attention_new(6, 2, .context = 3, .value_context = 7));
    set_parameters(cross, name);
    ng_tensor *x = ng_require_grad(golden("%s/x", name));
    ng_tensor *keys = ng_require_grad(golden("%s/keys", name));
    ng_tensor *values = ng_require_grad(golden("%s/values", name));
    ng_tensor *mask = _i ? golden("%s/mask", name) : NG_NONE;
    ng_tensor *y = ng_forward_attention(cross, tape, x, keys, values, mask);
    expect_golden(name, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", name)));
    expect_gradients(name, cross);
    expect_golden(name, "dx", ng_grad(x));
    expect_golden(name, "dkeys", ng_grad(keys));
    expect_golden(name, "dvalues", ng_grad(values));
}

START_TEST(attention_with_shared_heads_is_pytorchs_with_repeated_ones)
{
    const char *name = _i ? "shared_2" : "shared_1";
    expect_pytorchs(name, ng_multi_head_attention_new(12, 4, .kv_heads = 1 + _i, .causal = true),
                    ng_require_grad(golden("%s/x", name)), _i ? golden("%s/mask", name) : NG_NONE);
}

START_TEST(block_is_pytorchs)
{
    char name[64];
    snprintf(name, sizeof name, "block_%s_%s%s", _i & 1 ? "post" : "pre", _i & 2 ? "gelu" : "relu",
             _i & 4 ? "_masked" : "");
    ng_module *block = ng_transformer_block_new(
        6, 2, .hidden = 8, .causal = true, .placement = _i & 1 ? NG_NORM_POST : NG_NORM_PRE,
        .activation = _i & 2 ? NG_FEED_FORWARD_GELU : NG_FEED_FORWARD_RELU);
    expect_pytorchs(name, block, ng_require_grad(golden("%s/x", name)),
                    _i & 4 ? golden("%s/mask", name) : NG_NONE);
}

#define STEPS 20
#define BATCHES 4

START_TEST(twenty_adamw_losses_are_pytorchs)
{
    const char *name = _i ? "training_post" : "training_pre";
    ng_module *net = own(ng_transformer_new(11, .dim = 6, .heads = 2, .layers = 2, .length = 5,
                                            .placement = _i ? NG_NORM_POST : NG_NORM_PRE));
    set_parameters(net, name);
    ng_optimizer *adamw = own(ng_adamw_new(net, 0.05, .lr = 3e-3));
    ng_tensor *ids[BATCHES], *labels[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        ids[i] = ng_copy_new(golden("training/ids%d", i), NG_I64);
        labels[i] = ng_copy_new(golden("training/labels%d", i), NG_I64);
    }
    for (int step = 0; step < STEPS; step++) {
        ng_tensor *logits = ng_forward(net, tape, ids[step % BATCHES]);
        ng_tensor *loss = ng_cross_entropy(tape, logits, labels[step % BATCHES]);
        assert_ok(ng_backward(tape, loss));
        assert_ok(ng_optimizer_step(adamw));
        assert_close(ng_item(loss), ng_get(golden("%s/losses", name), step), 1e-9);
        ng_tape_reset(tape);
    }
    for (int i = 0; i < BATCHES; i++) ng_tensor_free(ids[i]), ng_tensor_free(labels[i]);
}

static void load_placements(void) { set_up(), golden_load("tests/golden/placements.txt"); }

typedef struct {
    const char *name;
    ng_norm_placement placement;
    double post_share;
    ng_norm_maker *norm, *qk_norm;
    bool whole;
    int64_t streams;
} placed_row;

/* Heads of three features, each with a weight of its own. */
static ng_module *of_three(int64_t dim) { return ng_rms_norm_new(dim, .groups = dim / 3); }

static const placed_row placed[] = {
    {.name = "peri", .placement = NG_NORM_PERI},
    {.name = "hybrid", .placement = NG_NORM_HYBRID, .norm = ng_norm_rms},
    {.name = "dual", .placement = NG_NORM_DUAL},
    {.name = "scaled", .placement = NG_NORM_SCALED},
    {.name = "mix", .placement = NG_NORM_MIX, .post_share = 0.34},
    {.name = "olmo2",
     .placement = NG_NORM_OLMO2,
     .norm = ng_norm_rms,
     .qk_norm = ng_norm_rms,
     .whole = true},
    {.name = "per_head", .norm = ng_norm_rms, .qk_norm = of_three, .whole = true},
    {.name = "hyper", .placement = NG_NORM_HYPER, .norm = ng_norm_rms, .streams = 3},
    {.name = "derf", .norm = ng_norm_derf}};
#define PLACED ((int)(sizeof placed / sizeof placed[0]))

START_TEST(each_placement_is_the_formula_of_its_paper)
{
    const char *name = placed[_i].name;
    ng_tensor *ids = own(ng_copy_new(golden("%s/ids", name), NG_I64));
    ng_module *net =
        ng_transformer_new(5, .dim = 6, .heads = 2, .layers = 3, .length = 4, .hidden = 5,
                           .norm = placed[_i].norm, .placement = placed[_i].placement,
                           .post_share = placed[_i].post_share, .qk_norm = placed[_i].qk_norm,
                           .qk_norm_whole = placed[_i].whole, .streams = placed[_i].streams);
    expect_pytorchs(name, net, ids, NG_NONE);
}

START_TEST(every_placement_has_figures)
{
    golden_expect_rows(placed, PLACED, sizeof *placed, NULL);
}

/* ---- Modules --------------------------------------------------------------------------------*/

START_TEST(a_causal_output_depends_on_no_later_id)
{
    ng_module *net = own(ng_transformer_new(10, .dim = 8, .heads = 2, .layers = 2));
    ng_tensor *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(1, 100)));
    for (int i = 0; i < 100; i++) ng_set(ids, i, i * 7 % 10);
    ng_tensor *before = own(ng_copy_new(ng_forward(net, tape, ids), NG_F32));
    ng_set(ids, 80, 9);
    ng_tensor *after = ng_forward(net, tape, ids);
    for (int t = 0; t < 80; t++) ck_assert(ng_at(before, 0, t, 0) == ng_at(after, 0, t, 0));
    ck_assert(ng_at(before, 0, 80, 0) != ng_at(after, 0, 80, 0));
    ck_assert(ng_at(before, 0, 99, 0) != ng_at(after, 0, 99, 0));
}

static ng_module *child(ng_module *module, const char *name)
{
    for (int i = 0; ng_module_child(module, i); i++)
        if (strcmp(ng_module_child_name(module, i), name) == 0) return ng_module_child(module, i);
    ck_abort_msg("no child %s", name);
    return NULL;
}

/* The formula of one branch, from the block's own children. */
static ng_tensor *branch(ng_module *block, ng_tape *on, ng_tensor *x, const char *name,
                         ng_norm_placement placement, double alpha, double dropout)
{
    char norm[48], after[48];
    snprintf(norm, sizeof norm, "%s_norm", name);
    snprintf(after, sizeof after, "%s_after", name);
    ng_module *f = child(block, name), *n = child(block, norm);
    const bool first = placement == NG_NORM_PRE || placement == NG_NORM_PERI;
    ng_tensor *y = ng_forward(f, on, first ? ng_forward(n, on, x) : x);
    if (placement == NG_NORM_PERI) y = ng_forward(child(block, after), on, y);
    if (dropout > 0) y = ng_dropout(on, y, dropout);
    if (placement == NG_NORM_DEEP) x = ng_mul_scalar(on, x, alpha);
    y = ng_add(on, x, y);
    return first ? y : ng_forward(n, on, y);
}

/* Without dropout, and with dropout on what each branch adds. */
START_TEST(a_block_is_the_formula_of_its_placement)
{
    const ng_norm_placement placement = (ng_norm_placement)(_i / 2);
    const double alpha = pow(36, 0.25), dropout = _i % 2 ? 0.3 : 0;
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 5, 8), 8);
    ng_module *block = own(ng_transformer_block_new(8, 2, .placement = placement,
                                                    .norm = ng_norm_rms, .dropout = dropout,
                                                    .layers = placement == NG_NORM_DEEP ? 18 : 0));
    ng_tape_seed(tape, 5);
    ng_tensor *y = branch(block, tape, x, "attention", placement, alpha, dropout);
    y = branch(block, tape, y, "feed_forward", placement, alpha, dropout);
    ng_tape_seed(tape, 5);
    assert_same_bits(ng_forward(block, tape, x), y);
}

/* 0.29 of 100 is 28.999999999999996. */
START_TEST(mix_ln_rounds_its_share_down)
{
    ng_module *net = own(ng_transformer_new(5, .dim = 2, .heads = 1, .hidden = 1, .layers = 100,
                                            .placement = NG_NORM_MIX, .post_share = 0.29));
    char *text = summary_of(net);
    assert_ok(text);
    int post = 0;
    for (const char *at = text; (at = strstr(at, "2, post")); at++) post++;
    free(text);
    ck_assert_int_eq(post, 29);
}

START_TEST(a_transformer_drops_of_its_embedded_ids)
{
    ng_module *net = own(ng_transformer_new(7, .dim = 8, .heads = 2, .layers = 1, .dropout = 0.3));
    ng_tensor *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(3, 4)));
    for (int i = 0; i < 12; i++) ng_set(ids, i, i % 7);
    ng_tape_seed(tape, 5);
    ng_tensor *x = ng_forward(child(net, "embedding"), tape, ids);
    x = ng_dropout(tape, ng_forward(child(net, "positions"), tape, x), 0.3);
    x = ng_forward(child(net, "norm"), tape, ng_forward(child(net, "blocks"), tape, x));
    x = ng_forward(child(net, "head"), tape, x);
    ng_tape_seed(tape, 5);
    assert_same_bits(ng_forward(net, tape, ids), x);
}

static double deviation(const ng_tensor *x, int64_t from, int64_t to)
{
    double sum = 0;
    for (int64_t i = from; i < to; i++) sum += ng_get(x, i) * ng_get(x, i);
    return sqrt(sum / (double)(to - from));
}

START_TEST(deep_norm_draws_its_weights_beta_times_as_wide)
{
    const int64_t dim = 64, square = dim * dim;
    ng_module *block =
        own(ng_transformer_block_new(dim, 4, .placement = NG_NORM_DEEP, .layers = 18));
    const double beta = pow(8 * 18, -0.25), xavier = 1 / sqrt((double)dim);
    const double hidden = sqrt(2 / (double)(dim + 4 * dim));
    ng_tensor *in = ng_module_find(block, "attention.in_weight");
    assert_close(deviation(in, 0, 2 * square), xavier, 0.05);
    assert_close(deviation(in, 2 * square, 3 * square), beta * xavier, 0.05);
    assert_close(deviation(ng_module_find(block, "attention.out_weight"), 0, square), beta * xavier,
                 0.05);
    assert_close(deviation(ng_module_find(block, "feed_forward.in_weight"), 0, 4 * square),
                 beta * hidden, 0.05);
    assert_close(deviation(ng_module_find(block, "feed_forward.out_weight"), 0, 4 * square),
                 beta * hidden, 0.05);
}

/* A norm that the library does not have. */
static ng_module *loose_norm(int64_t dim) { return ng_layer_norm_new(dim, .eps = 0.5); }

/* Each matrix as Xavier's normal has it: N(0, 2 / (rows + columns)), v's times the gain. */
START_TEST(shared_and_crossing_heads_are_drawn_as_xavier_has_it)
{
    ng_module *shared = ng_multi_head_attention_new(64, 8, .kv_heads = 2, .gain = 0.5);
    ng_tensor *in = ng_module_find(shared, "in_weight");
    const double narrow = sqrt(2.0 / (64 + 16));
    assert_close(deviation(in, 0, 64 * 64), sqrt(1.0 / 64), 0.06);
    assert_close(deviation(in, 64 * 64, 80 * 64), narrow, 0.06);
    assert_close(deviation(in, 80 * 64, 96 * 64), 0.5 * narrow, 0.06);
    ng_module_free(shared);
    ng_module *cross = own(ng_multi_head_attention_new(64, 8, .context = 32, .gain = 0.5));
    const double wide = sqrt(2.0 / (64 + 32));
    assert_close(deviation(ng_module_find(cross, "q_weight"), 0, 64 * 64), sqrt(1.0 / 64), 0.06);
    assert_close(deviation(ng_module_find(cross, "k_weight"), 0, 64 * 32), wide, 0.06);
    assert_close(deviation(ng_module_find(cross, "v_weight"), 0, 64 * 32), 0.5 * wide, 0.06);
}

START_TEST(any_maker_of_norms_plugs_in)
{
    static ng_norm_maker *const makers[] = {ng_norm_layer, ng_norm_rms, ng_norm_batch, ng_norm_none,
                                            loose_norm};
    ng_tensor *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(3, 4)));
    for (int i = 0; i < 12; i++) ng_set(ids, i, i % 7);
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        for (int placement = 0; placement <= NG_NORM_MIX; placement++) {
            ng_module *net =
                ng_transformer_new(7, .dim = 8, .heads = 2, .layers = 4, .norm = makers[i],
                                   .qk_norm = placement == NG_NORM_HYBRID ? NULL : makers[i],
                                   .placement = (ng_norm_placement)placement,
                                   .positions = NG_POSITIONS_ROTARY, .dropout = 0.1);
            ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, ids), ids);
            assert_ok(ng_backward(tape, loss));
            ck_assert(isfinite(ng_grad_norm(net)));
            ng_module_free(net);
            ng_tape_reset(tape);
        }
}

START_TEST(a_block_hands_its_dropout_to_the_attention)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 5, 8), 8);
    ng_module *dropping = own(ng_transformer_block_new(8, 2, .dropout = 0.5));
    ng_module *attention = child(dropping, "attention");
    ng_tensor *y = ng_forward(attention, tape, x), *again = ng_forward(attention, tape, x);
    ck_assert(memcmp(y->data, again->data, (size_t)y->size * sizeof(float)) != 0);
    ng_eval(dropping);
    ng_module *plain = own(ng_transformer_block_new(8, 2));
    ng_eval(plain);
    assert_same_bits(ng_forward(attention, tape, x), ng_forward(attention, tape, x));
    assert_same_bits(ng_forward(dropping, tape, x), ng_forward(plain, tape, x));
    assert_refused(ng_multi_head_attention_new(8, 2, .dropout = 1));
}

START_TEST(swiglu_has_as_many_weights_as_gelu)
{
    ng_module *gelu = own(ng_feed_forward_new(96, .no_bias = true));
    ng_module *swiglu =
        own(ng_feed_forward_new(96, .no_bias = true, .activation = NG_FEED_FORWARD_SWIGLU));
    ck_assert_int_eq(ng_parameter_count(gelu), ng_parameter_count(swiglu));
}

/* ---- Threads --------------------------------------------------------------------------------*/

static ng_tensor *gradient_with_threads(int threads, ng_dtype dtype, double dropout)
{
    ng_set_threads(threads);
    ng_tape_seed(tape, 5);
    ng_tensor *qkv = normal(dtype, NG_SHAPE(3, 100, 96), 9);
    ng_tensor *x = ng_rotary(tape, qkv, .dim = 16, .over = 64);
    ng_tensor *y =
        ng_self_attention(tape, x, NG_NONE, .heads = 2, .causal = true, .dropout = dropout);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, y))));
    return ng_grad(qkv);
}

START_TEST(attention_has_the_same_bits_for_any_number_of_threads)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double dropout = _i / 2 ? 0.25 : 0;
    ng_tensor *one = gradient_with_threads(1, dtype, dropout);
    for (int threads = 2; threads <= 5; threads++)
        assert_same_bits(one, gradient_with_threads(threads, dtype, dropout));
}

/* ---- Errors ---------------------------------------------------------------------------------*/

START_TEST(wrong_ids_are_named)
{
    ng_module *net = own(ng_transformer_new(65, .dim = 8, .heads = 2, .layers = 1, .length = 4));
    ng_tensor *ids = own(ng_zeros_new(NG_I64, NG_SHAPE(2, 4)));
    ng_tensor *longer = own(ng_zeros_new(NG_I64, NG_SHAPE(2, 5)));
    ng_tensor *row = own(ng_zeros_new(NG_I64, NG_SHAPE(4))), *x = normal(NG_F32, NG_SHAPE(2, 4), 1);
    ng_tensor *flat = own(ng_ones_new(NG_F32, NG_SHAPE(8)));
    ng_set(ids, 6, 65);
    assert_fails(ng_forward(net, tape, ids), NG_ESHAPE, "ng_gather_rows");
    ng_set(ids, 6, -1);
    assert_fails(ng_forward(net, tape, ids), NG_ESHAPE, "ng_gather_rows");
    assert_fails(ng_forward(net, tape, longer), NG_ESHAPE, "Transformer");
    assert_fails(ng_forward(net, tape, row), NG_ESHAPE, "Transformer");
    assert_fails(ng_forward(net, tape, x), NG_EDTYPE, "ng_gather_rows");
    ng_set(ids, 6, 0);
    assert_fails(ng_forward(net, tape, ids, .mask = flat), NG_ESHAPE, "ng_self_attention");
}

START_TEST(shapes_that_do_not_fit_are_named)
{
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3, 8), 1), *y = normal(NG_F32, NG_SHAPE(2, 3, 7), 1);
    ng_tensor *mask = own(ng_ones_new(NG_F32, NG_SHAPE(3, 2))),
              *flat = normal(NG_F32, NG_SHAPE(8), 1);
    ng_module *attention = own(ng_multi_head_attention_new(8, 2));
    ng_module *places = own(ng_learned_positions_new(2, 8)), *forward = own(ng_feed_forward_new(8));
    assert_fails(ng_forward(attention, tape, y), NG_ESHAPE, "MultiHeadAttention");
    assert_fails(ng_forward(attention, tape, x, .mask = mask), NG_ESHAPE, "MultiHeadAttention");
    assert_refused(ng_forward_attention(attention, tape, x, y, y, NG_NONE));
    assert_refused(ng_forward_attention(places, tape, x, x, x, NG_NONE));
    ng_module *cross = ng_multi_head_attention_new(8, 2, .context = 7);
    assert_refused(ng_forward(cross, tape, x));
    assert_fails(ng_forward(cross, tape, x, .memory = x), NG_ESHAPE, "MultiHeadAttention");
    assert_fails(ng_forward_attention(cross, tape, x, y, y, mask), NG_ESHAPE, "MultiHeadAttention");
    ng_tensor *shorter = ng_slice(tape, y, 1, 0, 2);
    assert_fails(ng_forward_attention(cross, tape, x, y, shorter, NG_NONE), NG_ESHAPE,
                 "MultiHeadAttention");
    ng_module_free(cross);
    assert_fails(ng_forward(places, tape, x), NG_ESHAPE, "LearnedPositions");
    assert_fails(ng_forward(places, tape, flat), NG_ESHAPE, "LearnedPositions");
    assert_fails(ng_forward(forward, tape, y), NG_ESHAPE, "FeedForward");
}

START_TEST(options_without_sense_are_refused)
{
    assert_refused(ng_multi_head_attention_new(10, 4));
    assert_refused(ng_multi_head_attention_new(10, 0));
    assert_refused(ng_multi_head_attention_new(6, 2, .rotary = true));
    assert_refused(ng_multi_head_attention_new(8, 4, .kv_heads = 3));
    assert_refused(ng_multi_head_attention_new(8, 4, .context = -3));
    assert_refused(ng_multi_head_attention_new(8, 4, .value_context = 3));
    assert_refused(ng_transformer_new(65, .dim = 100, .heads = 3), "ng_multi_head_attention_new");
    assert_refused(ng_transformer_new(0));
    assert_refused(ng_transformer_new(65, .length = -1));
    assert_refused(ng_transformer_new(65, .dim = 4, .layers = INT64_C(1) << 40));
    assert_refused(ng_transformer_new(65, .placement = (ng_norm_placement)10));
    assert_refused(ng_transformer_new(65, .dropout = 1));
    assert_refused(ng_feed_forward_new(4, .activation = (ng_feed_forward_activation)7));
    assert_refused(ng_embedding_new(0, 4));
    assert_refused(ng_transformer_block_new(8, 2, .placement = NG_NORM_DEEP, .layers = -1));
    assert_refused(ng_transformer_block_new(8, 2, .layers = 3));
    assert_refused(ng_transformer_block_new(8, 2, .layer = 3));
    assert_refused(ng_transformer_block_new(8, 2, .placement = NG_NORM_SCALED, .layer = -1));
    assert_refused(ng_transformer_block_new(8, 2, .placement = NG_NORM_MIX));
    assert_refused(ng_transformer_new(7, .placement = NG_NORM_HYBRID, .qk_norm = ng_norm_rms),
                   "ng_transformer_block_new");
    assert_refused(ng_transformer_new(7, .placement = NG_NORM_HYBRID, .qk_temperature = 2),
                   "ng_transformer_block_new");
    assert_refused(ng_transformer_new(7, .post_share = 0.5));
    assert_refused(ng_transformer_new(7, .placement = NG_NORM_MIX, .post_share = 1));
    assert_refused(ng_transformer_new(7, .placement = NG_NORM_MIX, .layers = 3));
}

Suite *transformer_suite(void)
{
    Suite *suite = suite_create("transformer");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_tests(
        tests, dropout_of_weights_drops_its_share_and_scales_the_rest,
        dropout_of_weights_follows_the_tape, one_packed_tensor_gives_what_its_parts_give,
        attention_passes_nan_on, attention_to_scores_of_minus_infinity_is_nan,
        rotated_products_depend_on_the_distance_alone, wrong_attention_is_refused,
        a_causal_output_depends_on_no_later_id, mix_ln_rounds_its_share_down,
        a_transformer_drops_of_its_embedded_ids, deep_norm_draws_its_weights_beta_times_as_wide,
        shared_and_crossing_heads_are_drawn_as_xavier_has_it, any_maker_of_norms_plugs_in,
        a_block_hands_its_dropout_to_the_attention, swiglu_has_as_many_weights_as_gelu,
        wrong_ids_are_named, shapes_that_do_not_fit_are_named, options_without_sense_are_refused);
    add_loops(tests, 8, a_block_is_the_formula_of_its_placement);
    add_loops(tests, 4, attention_has_the_same_bits_for_any_number_of_threads);
    tests = add_case(suite, load_transformer, golden_tear_down);
    add_tests(tests, embedding_is_pytorchs);
    add_loops(tests, 4, attention_is_pytorchs);
    add_loops(tests, 2, cross_attention_is_pytorchs,
              attention_with_shared_heads_is_pytorchs_with_repeated_ones,
              twenty_adamw_losses_are_pytorchs);
    add_loops(tests, 8, block_is_pytorchs);
    tests = add_case(suite, load_placements, golden_tear_down);
    add_tests(tests, every_placement_has_figures);
    add_loops(tests, PLACED, each_placement_is_the_formula_of_its_paper);
    return suite;
}
