/* TransformerBlock: attention and feed-forward with norms. Transformer: a stack of blocks from ids
 * to logits. */
#include "nn/hyper_connection.h"
#include <math.h>

/* ---- The block: two branches, each with its residual and its norms ----------------------------
 *
 * A branch adds f(x) to x, f being attention or feed-forward. Norms that a placement does not have
 * are left out; the factors alpha and scale are 1 but for DeepNorm and LayerNorm scaling.
 *
 *     y = after(f(scale before(x)));  x = sum(alpha x + y) */
enum { BEFORE = 1, AFTER = 2, SUM = 4, OF_QKV = 8 };

typedef struct {
    unsigned attention, feed_forward; /* where each branch has norms */
    bool at_end;                      /* the stack ends with a norm */
} norm_places;

static const norm_places norms_of[] = {
    [NG_NORM_PRE] = {BEFORE, BEFORE, true},
    [NG_NORM_POST] = {SUM, SUM, false},
    [NG_NORM_PERI] = {BEFORE | AFTER, BEFORE | AFTER, true},
    [NG_NORM_DEEP] = {SUM, SUM, false},
    [NG_NORM_HYBRID] = {OF_QKV | SUM, 0, true},
    [NG_NORM_DUAL] = {SUM, SUM, true},
    [NG_NORM_SCALED] = {BEFORE, BEFORE, true},
    [NG_NORM_MIX] = {0, 0, true}, /* its blocks are post or pre */
    [NG_NORM_OLMO2] = {AFTER, AFTER, true},
    [NG_NORM_HYPER] = {BEFORE, BEFORE, true}};
static const char *const placement_names[] = {"pre",
                                              "post",
                                              "Peri-LN",
                                              "DeepNorm",
                                              "HybridNorm",
                                              "ResiDual",
                                              "LayerNorm scaling",
                                              "Mix-LN",
                                              "OLMo 2",
                                              "hyper-connections",
                                              NULL};

typedef struct {
    ng_module *before, *f, *after, *dropout, *sum, *connection; /* NULL: not there, but for f */
} branch;

typedef struct {
    ng_module base;
    int64_t dim;
    ng_transformer_block_new_options options;
    double alpha, scale;
    branch attention, feed_forward;
} transformer_block;

static ng_tensor *normed(ng_module *norm, ng_tape *tape, ng_tensor *x, const ng_inputs *in)
{
    return norm ? ng_forward_child(norm, tape, x, in) : x;
}

static ng_tensor *times(ng_tape *tape, ng_tensor *x, double factor)
{
    return factor == 1 ? x : ng_mul_scalar(tape, x, factor);
}

static ng_tensor *added_by(const transformer_block *layer, const branch *b, ng_tape *tape,
                           ng_tensor *x, const ng_inputs *in)
{
    ng_tensor *y = times(tape, normed(b->before, tape, x, in), layer->scale);
    y = normed(b->after, tape, ng_forward_child(b->f, tape, y, in), in);
    return b->dropout ? ng_forward(b->dropout, tape, y) : y;
}

/* Adds y to the second stream too, if there is one. */
static ng_tensor *run_branch(const transformer_block *layer, const branch *b, ng_tape *tape,
                             ng_tensor *x, const ng_inputs *in, ng_tensor **second)
{
    if (b->connection) {
        ng_hyper_streams rest;
        ng_tensor *own = ng_hyper_read(b->connection, tape, x, &rest);
        return own ? ng_hyper_write(&rest, tape, added_by(layer, b, tape, own, in)) : NULL;
    }
    ng_tensor *y = added_by(layer, b, tape, x, in);
    if (*second) *second = ng_add(tape, *second, y);
    return normed(b->sum, tape, ng_add(tape, times(tape, x, layer->alpha), y), in);
}

/* The two streams of ResiDual stand side by side, (N, T, 2 dim). */
static ng_tensor *both_streams(ng_tape *tape, ng_tensor *first, ng_tensor *second)
{
    return ng_concat(tape, NG_TENSORS(first, second), -1);
}

static ng_tensor *stream(ng_tape *tape, ng_tensor *both, int64_t dim, int index)
{
    return ng_slice(tape, both, -1, index * dim, (index + 1) * dim);
}

static ng_tensor *block_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const transformer_block *layer = (const transformer_block *)self;
    const bool dual = layer->options.placement == NG_NORM_DUAL;
    ng_tensor *x = in->x, *second = NULL;
    if (dual) {
        if (!ng_features_fit(self, x, 2 * layer->dim)) return NULL;
        second = stream(tape, x, layer->dim, 1);
        x = stream(tape, x, layer->dim, 0);
    }
    x = run_branch(layer, &layer->attention, tape, x, in, &second);
    x = run_branch(layer, &layer->feed_forward, tape, x, in, &second);
    return dual ? both_streams(tape, x, second) : x;
}

static const ng_module_class block_class = {
    .name = "TransformerBlock", .size = sizeof(transformer_block), .forward_with = block_forward};

/* The attention checks the other settings. */
static const ng_setting block_settings[] = {
    {NG_MEMBER(transformer_block, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(transformer_block, placement), NG_IS_CHOICE, .unit = "ng_norm_placement",
     .choices = placement_names, .bare = true},
    {NG_OPTION(transformer_block, layers), NG_IS_COUNT, .standard = 1, .unit = "layers",
     .needs = "placement", .when = 1 << NG_NORM_DEEP},
    {NG_OPTION(transformer_block, layer), NG_IS_COUNT, .standard = 1, .unit = "layers",
     .needs = "placement", .when = 1 << NG_NORM_SCALED},
    {NG_OPTION(transformer_block, streams), NG_IS_COUNT, .standard = 4, .unit = "streams",
     .needs = "placement", .when = 1 << NG_NORM_HYPER},
    {0}};

/* Whether the placement is one of a block, and leaves the norms of q and k to the caller. */
static bool placement_ok(const char *function, const ng_transformer_block_new_options *o)
{
    static const char where[] = "without NG_NORM_HYBRID";
    const bool hybrid = o->placement == NG_NORM_HYBRID;
    if (o->placement == NG_NORM_MIX) {
        ng_fail(NG_EVALUE,
                "%s: placement is NG_NORM_MIX, which is for a whole transformer; expected "
                "NG_NORM_POST or NG_NORM_PRE",
                function);
        return false;
    }
    return ng_option_idle(function, "qk_norm", hybrid && (o->qk_norm || o->qk_norm_whole), where) &&
           ng_option_idle(function, "qk_temperature", hybrid && ng_option_given(o->qk_temperature),
                          where);
}

/* Registers f as `name`, and its norms and dropout as <name>_norm and so on. */
static branch branch_around(transformer_block *self, const char *name, ng_module *f,
                            unsigned places)
{
    const ng_transformer_block_new_options *o = &self->options;
    ng_module *base = &self->base;
    char label[48];
    branch b = {.f = ng_module_add_child(base, name, f)};
    snprintf(label, sizeof label, "%s_norm", name);
    if (places & (BEFORE | SUM)) {
        ng_module *norm = ng_module_add_child(base, label, o->norm(self->dim));
        *(places & BEFORE ? &b.before : &b.sum) = norm;
    }
    snprintf(label, sizeof label, "%s_after", name);
    if (places & AFTER) b.after = ng_module_add_child(base, label, o->norm(self->dim));
    snprintf(label, sizeof label, "%s_dropout", name);
    if (o->dropout > 0) b.dropout = ng_module_add_child(base, label, ng_dropout_new(o->dropout));
    snprintf(label, sizeof label, "%s_connection", name);
    if (o->placement == NG_NORM_HYPER)
        b.connection =
            ng_module_add_child(base, label, ng_hyper_connection_new(self->dim, o->streams));
    return b;
}

ng_module *ng_transformer_block_new_with(int64_t dim, ng_transformer_block_new_options options)
{
    static const char name[] = "ng_transformer_block_new";
    if (!options.norm) options.norm = ng_norm_layer;
    if (!placement_ok(name, &options)) return NULL;
    transformer_block *self = ng_layer_new(name, &block_class, block_settings,
                                           &(transformer_block){.dim = dim, .options = options});
    if (!self) return NULL;
    options = self->options;
    const norm_places *places = &norms_of[options.placement];
    const bool deep = options.placement == NG_NORM_DEEP, of_qkv = places->attention & OF_QKV;
    const double layers = (double)options.layers, gain = deep ? 1 / sqrt(sqrt(8 * layers)) : 1;
    self->alpha = deep ? sqrt(sqrt(2 * layers)) : 1;
    self->scale = 1 / sqrt((double)options.layer);
    self->attention = branch_around(
        self, "attention",
        ng_multi_head_attention_new(
            dim, options.heads, .kv_heads = options.kv_heads, .causal = options.causal,
            .rotary = options.rotary, .qk_norm = of_qkv ? options.norm : options.qk_norm,
            .qk_norm_whole = options.qk_norm_whole, .v_norm = of_qkv ? options.norm : NULL,
            .qk_temperature = options.qk_temperature, .dropout = options.dropout,
            .no_bias = options.no_bias, .gain = gain),
        places->attention);
    self->feed_forward = branch_around(
        self, "feed_forward",
        ng_feed_forward_new(dim, .hidden = options.hidden, .activation = options.activation,
                            .no_bias = options.no_bias, .gain = gain),
        places->feed_forward);
    return ng_module_built(&self->base);
}

/* ---- The stack: ids (N, T) -> logits (N, T, vocabulary) ------------------------------------- */

typedef struct {
    ng_module base;
    ng_transformer_new_options options;
    ng_module *embedding, *positions, *dropout, *blocks, *norm, *head;
} transformer;

static bool ids_fit(const transformer *net, const ng_tensor *ids)
{
    if (ids->shape.rank != 2) {
        ng_fail(NG_ESHAPE, "Transformer: ids are %s, expected (N, T)",
                ng_shape_print(ids->shape).text);
        return false;
    }
    if (ids->shape.dim[1] <= net->options.length) return true;
    ng_fail(NG_ESHAPE, "Transformer: ids are %s, %lld steps long, expected at most %lld",
            ng_shape_print(ids->shape).text, (long long)ids->shape.dim[1],
            (long long)net->options.length);
    return false;
}

/* The sum over the streams of x (N, T, streams dim). */
static ng_tensor *sum_of_streams(ng_tape *tape, ng_tensor *x, int64_t dim)
{
    if (!x) return NULL;
    const ng_shape s = x->shape;
    x = ng_reshape(tape, x, NG_SHAPE(s.dim[0], s.dim[1], s.dim[2] / dim, dim));
    return ng_sum(tape, x, .axes = NG_AXES(2));
}

static ng_tensor *transformer_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const transformer *net = (const transformer *)self;
    const bool dual = net->options.placement == NG_NORM_DUAL;
    const bool hyper = net->options.placement == NG_NORM_HYPER;
    if (!ids_fit(net, in->x)) return NULL;
    ng_tensor *x = ng_forward(net->embedding, tape, in->x);
    if (net->positions) x = ng_forward(net->positions, tape, x);
    if (net->dropout) x = ng_forward(net->dropout, tape, x);
    if (!dual) {
        if (hyper) x = ng_repeat(tape, x, NG_SHAPE(1, 1, net->options.streams));
        x = ng_forward_child(net->blocks, tape, x, in);
        if (hyper) x = sum_of_streams(tape, x, net->options.dim);
        return ng_forward(net->head, tape, normed(net->norm, tape, x, in));
    }
    x = ng_forward_child(net->blocks, tape, both_streams(tape, x, x), in);
    ng_tensor *second = normed(net->norm, tape, stream(tape, x, net->options.dim, 1), in);
    x = ng_add(tape, stream(tape, x, net->options.dim, 0), second);
    return ng_forward(net->head, tape, x);
}

static const ng_module_class transformer_class = {
    .name = "Transformer", .size = sizeof(transformer), .forward_with = transformer_forward};

/* The number of blocks of Mix-LN with post-norm, which are the first ones. */
static int64_t post_blocks(const ng_transformer_new_options *o)
{
    return ng_fraction_of(o->post_share, o->layers);
}

static ng_module *transformer_blocks(const ng_transformer_new_options *o)
{
    ng_module *blocks = ng_sequential_from(NULL, 0);
    for (int64_t i = 0; blocks && i < o->layers; i++) {
        ng_norm_placement placement = o->placement;
        if (placement == NG_NORM_MIX) placement = i < post_blocks(o) ? NG_NORM_POST : NG_NORM_PRE;
        ng_module *added = ng_transformer_block_new(
            o->dim, o->heads, .kv_heads = o->kv_heads, .hidden = o->hidden, .norm = o->norm,
            .qk_norm = o->qk_norm, .qk_norm_whole = o->qk_norm_whole,
            .qk_temperature = o->qk_temperature, .placement = placement,
            .streams = placement == NG_NORM_HYPER ? o->streams : 0,
            .layers = placement == NG_NORM_DEEP ? o->layers : 0,
            .layer = placement == NG_NORM_SCALED ? i + 1 : 0, .activation = o->activation,
            .dropout = o->dropout, .causal = !o->bidirectional,
            .rotary = o->positions == NG_POSITIONS_ROTARY, .no_bias = o->no_bias);
        if (added && ng_sequential_add(blocks, added) == NG_OK) continue;
        ng_module_free(blocks);
        return NULL;
    }
    return blocks;
}

static const char *const position_names[] = {"learned", "rotary", "none", NULL};
/* The blocks check the other settings, and describe those that are hidden. */
static const ng_setting transformer_settings[] = {
    {NG_OPTION(transformer, vocabulary), NG_IS_COUNT, .unit = "ids"},
    {NG_OPTION(transformer, length), NG_IS_COUNT, .standard = 128, .unit = "positions"},
    {NG_OPTION(transformer, positions), NG_IS_CHOICE, .unit = "ng_positions",
     .choices = position_names, .quiet = true},
    {NG_OPTION(transformer, placement), NG_IS_CHOICE, .unit = "ng_norm_placement",
     .choices = placement_names, .bare = true},
    {NG_OPTION(transformer, post_share), NG_IS_PROBABILITY, .standard = 0.25, .needs = "placement",
     .when = 1 << NG_NORM_MIX},
    {NG_OPTION(transformer, streams), NG_IS_COUNT, .standard = 4, .unit = "streams",
     .needs = "placement", .when = 1 << NG_NORM_HYPER, .hidden = true},
    {NG_OPTION(transformer, dim), NG_IS_COUNT, .standard = 128, .unit = "features", .hidden = true},
    {NG_OPTION(transformer, heads), NG_IS_COUNT, .standard = 4, .unit = "heads", .hidden = true},
    {NG_OPTION(transformer, layers), NG_IS_COUNT, .standard = 4, .most = NG_MAX_LAYERS,
     .unit = "layers", .hidden = true},
    {NG_OPTION(transformer, dropout), NG_IS_PROBABILITY, .hidden = true},
    {0}};

ng_module *ng_transformer_new_with(ng_transformer_new_options options)
{
    static const char name[] = "ng_transformer_new";
    if (!options.norm) options.norm = ng_norm_layer;
    transformer *self = ng_layer_new(name, &transformer_class, transformer_settings,
                                     &(transformer){.options = options});
    if (!self) return NULL;
    options = self->options;
    if (options.placement == NG_NORM_MIX && post_blocks(&options) == 0) {
        ng_fail(NG_EVALUE,
                "%s: post_share is %g of %lld blocks, which is none, expected one or more", name,
                options.post_share + 0, (long long)options.layers);
        ng_module_free(&self->base);
        return NULL;
    }
    ng_module *base = &self->base;
    self->embedding = ng_module_add_child(
        base, "embedding", ng_embedding_new(options.vocabulary, options.dim, .deviation = 0.02));
    if (options.positions == NG_POSITIONS_LEARNED)
        self->positions = ng_module_add_child(
            base, "positions",
            ng_learned_positions_new(options.length, options.dim, .deviation = 0.02));
    if (options.dropout > 0)
        self->dropout = ng_module_add_child(base, "dropout", ng_dropout_new(options.dropout));
    self->blocks = ng_module_add_child(base, "blocks", transformer_blocks(&options));
    if (norms_of[options.placement].at_end)
        self->norm = ng_module_add_child(base, "norm", options.norm(options.dim));
    self->head = ng_module_add_child(
        base, "head",
        ng_linear_new(options.dim, options.vocabulary, .init = NG_INIT_NORMAL, .init_value = 0.02));
    return ng_module_built(base);
}
