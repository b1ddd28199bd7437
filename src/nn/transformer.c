/* TransformerBlock: attention and feed-forward with norms. Transformer: a stack of blocks from ids
 * to logits. */
#include "nn/module.h"
#include <math.h>

/* ---- The block: two branches, each with its residual and its norms ---------------------------
 *
 *     pre       x + f(norm(x))              Xiong et al. 2020
 *     post      norm(x + f(x))              Vaswani et al. 2017
 *     sandwich  x + after(f(norm(x)))       Ding et al. 2021
 *     DeepNorm  norm(alpha x + f(x))        Wang et al. 2022 */
typedef struct {
    ng_module *norm, *f, *after, *dropout; /* the last two or NULL */
} branch;

typedef struct {
    ng_module base;
    int64_t dim;
    ng_transformer_block_new_options options;
    double alpha;
    branch attention, feed_forward;
} transformer_block;

static const char *const placement_names[] = {"pre", "post", "sandwich", "DeepNorm"};

static bool norm_comes_first(ng_norm_placement placement)
{
    return placement == NG_NORM_PRE || placement == NG_NORM_SANDWICH;
}

static ng_tensor *through(const transformer_block *layer, const branch *b, ng_tape *tape,
                          ng_tensor *x, ng_tensor *mask)
{
    const bool first = norm_comes_first(layer->options.placement);
    ng_tensor *y = first ? ng_forward_conditioned(b->norm, tape, x, mask) : x;
    y = ng_forward_conditioned(b->f, tape, y, mask);
    if (b->after) y = ng_forward_conditioned(b->after, tape, y, mask);
    if (b->dropout) y = ng_forward(b->dropout, tape, y);
    if (layer->alpha != 1) x = ng_mul_scalar(tape, x, layer->alpha);
    y = ng_add(tape, x, y);
    return first ? y : ng_forward_conditioned(b->norm, tape, y, mask);
}

static ng_tensor *block_forward(ng_module *self, ng_tape *tape, ng_tensor *x, ng_tensor *mask)
{
    const transformer_block *layer = (const transformer_block *)self;
    x = through(layer, &layer->attention, tape, x, mask);
    return through(layer, &layer->feed_forward, tape, x, mask);
}

static void block_describe(const ng_module *self, char *text, size_t bytes)
{
    const transformer_block *layer = (const transformer_block *)self;
    const char *name = placement_names[layer->options.placement];
    if (layer->options.placement == NG_NORM_DEEP)
        snprintf(text, bytes, "%lld, %s, alpha=%s", (long long)layer->dim, name,
                 ng_number_print(layer->alpha).text);
    else
        snprintf(text, bytes, "%lld, %s", (long long)layer->dim, name);
}

static const ng_module_class block_class = {.name = "TransformerBlock",
                                            .size = sizeof(transformer_block),
                                            .forward = ng_forward_unconditioned,
                                            .forward_conditioned = block_forward,
                                            .describe = block_describe};

/* The attention checks the other settings. */
static bool block_options_accepted(const char *function, const ng_transformer_block_new_options *o)
{
    if ((unsigned)o->placement > NG_NORM_DEEP) {
        ng_fail(NG_EVALUE, "%s: placement is %d, expected an ng_norm_placement", function,
                (int)o->placement);
        return false;
    }
    return ng_option_idle(function, "layers", o->placement != NG_NORM_DEEP && o->layers != 0,
                          "with NG_NORM_DEEP") &&
           (o->layers == 0 || ng_option_positive(function, "layers", o->layers, "layers"));
}

/* Registers f as `name`, and its norms and dropout as <name>_norm and so on. */
static branch branch_around(transformer_block *self, const char *name, ng_module *f)
{
    const ng_transformer_block_new_options *o = &self->options;
    ng_module *base = &self->base;
    char label[48];
    branch b = {.f = ng_module_add_child(base, name, f)};
    snprintf(label, sizeof label, "%s_norm", name);
    b.norm = ng_module_add_child(base, label, o->norm(self->dim));
    snprintf(label, sizeof label, "%s_after", name);
    if (o->placement == NG_NORM_SANDWICH)
        b.after = ng_module_add_child(base, label, o->norm(self->dim));
    snprintf(label, sizeof label, "%s_dropout", name);
    if (o->dropout > 0) b.dropout = ng_module_add_child(base, label, ng_dropout_new(o->dropout));
    return b;
}

ng_module *ng_transformer_block_new_with(int64_t dim, ng_transformer_block_new_options options)
{
    if (!options.norm) options.norm = ng_norm_layer;
    if (!block_options_accepted("ng_transformer_block_new", &options)) return NULL;
    if (options.layers == 0) options.layers = 1;
    transformer_block *self = (transformer_block *)ng_module_new(&block_class);
    if (!self) return NULL;

    const bool deep = options.placement == NG_NORM_DEEP;
    const double layers = (double)options.layers, gain = deep ? pow(8 * layers, -0.25) : 1;
    self->dim = dim;
    self->options = options;
    self->alpha = deep ? pow(2 * layers, 0.25) : 1;
    self->attention =
        branch_around(self, "attention",
                      ng_multi_head_attention_new(
                          dim, options.heads, .kv_heads = options.kv_heads,
                          .causal = options.causal, .rotary = options.rotary,
                          .qk_norm = options.qk_norm, .qk_temperature = options.qk_temperature,
                          .dropout = options.dropout, .no_bias = options.no_bias, .gain = gain));
    self->feed_forward = branch_around(
        self, "feed_forward",
        ng_feed_forward_new(dim, .hidden = options.hidden, .activation = options.activation,
                            .no_bias = options.no_bias, .gain = gain));
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

static ng_tensor *transformer_forward(ng_module *self, ng_tape *tape, ng_tensor *ids,
                                      ng_tensor *mask)
{
    const transformer *net = (const transformer *)self;
    if (!ids_fit(net, ids)) return NULL;
    ng_tensor *x = ng_forward(net->embedding, tape, ids);
    if (net->positions) x = ng_forward(net->positions, tape, x);
    if (net->dropout) x = ng_forward(net->dropout, tape, x);
    x = ng_forward_conditioned(net->blocks, tape, x, mask);
    if (net->norm) x = ng_forward_conditioned(net->norm, tape, x, mask);
    return ng_forward(net->head, tape, x);
}

static void transformer_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_transformer_new_options *o = &((const transformer *)self)->options;
    snprintf(text, bytes, "%lld ids, length=%lld, %s", (long long)o->vocabulary,
             (long long)o->length, placement_names[o->placement]);
}

static const ng_module_class transformer_class = {.name = "Transformer",
                                                  .size = sizeof(transformer),
                                                  .forward = ng_forward_unconditioned,
                                                  .forward_conditioned = transformer_forward,
                                                  .describe = transformer_describe};

static ng_module *transformer_blocks(const ng_transformer_new_options *o)
{
    ng_module *blocks = ng_sequential_from(NULL, 0);
    for (int64_t i = 0; blocks && i < o->layers; i++) {
        ng_module *added = ng_transformer_block_new(
            o->dim, o->heads, .kv_heads = o->kv_heads, .hidden = o->hidden, .norm = o->norm,
            .qk_norm = o->qk_norm, .qk_temperature = o->qk_temperature, .placement = o->placement,
            .layers = o->placement == NG_NORM_DEEP ? o->layers : 0, .activation = o->activation,
            .dropout = o->dropout, .causal = !o->bidirectional,
            .rotary = o->positions == NG_POSITIONS_ROTARY, .no_bias = o->no_bias);
        if (added && ng_sequential_add(blocks, added) == NG_OK) continue;
        ng_module_free(blocks);
        return NULL;
    }
    return blocks;
}

static int64_t or_count(int64_t value, int64_t standard) { return value == 0 ? standard : value; }

/* The blocks check the other settings. */
static bool transformer_options_accepted(const ng_transformer_new_options *o)
{
    static const char name[] = "ng_transformer_new";
    if ((unsigned)o->positions > NG_POSITIONS_NONE) {
        ng_fail(NG_EVALUE, "%s: positions is %d, expected an ng_positions", name,
                (int)o->positions);
        return false;
    }
    if (o->layers > NG_MAX_LAYERS) {
        ng_fail(NG_EVALUE, "%s: layers is %lld, expected at most %d", name, (long long)o->layers,
                NG_MAX_LAYERS);
        return false;
    }
    return ng_option_positive(name, "vocabulary", o->vocabulary, "ids") &&
           ng_option_positive(name, "layers", o->layers, "layers") &&
           ng_option_positive(name, "length", o->length, "positions") &&
           ng_option_range(name, "dropout", o->dropout, 0, 1);
}

ng_module *ng_transformer_new_with(ng_transformer_new_options options)
{
    if (!options.norm) options.norm = ng_norm_layer;
    options.dim = or_count(options.dim, 128);
    options.heads = or_count(options.heads, 4);
    options.layers = or_count(options.layers, 4);
    options.length = or_count(options.length, 128);
    if (!transformer_options_accepted(&options)) return NULL;
    transformer *self = (transformer *)ng_module_new(&transformer_class);
    if (!self) return NULL;

    ng_module *base = &self->base;
    self->options = options;
    self->embedding = ng_module_add_child(
        base, "embedding", ng_embedding_new(options.vocabulary, options.dim, .deviation = 0.02));
    if (options.positions == NG_POSITIONS_LEARNED)
        self->positions = ng_module_add_child(
            base, "positions",
            ng_learned_positions_new(options.length, options.dim, .deviation = 0.02));
    if (options.dropout > 0)
        self->dropout = ng_module_add_child(base, "dropout", ng_dropout_new(options.dropout));
    self->blocks = ng_module_add_child(base, "blocks", transformer_blocks(&options));
    if (norm_comes_first(options.placement))
        self->norm = ng_module_add_child(base, "norm", options.norm(options.dim));
    self->head = ng_module_add_child(
        base, "head",
        ng_linear_new(options.dim, options.vocabulary, .init = NG_INIT_NORMAL, .init_value = 0.02));
    return ng_module_built(base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_MODULE(layer_case_block_pre,
               ng_transformer_block_new(4, 2, .hidden = 3, .norm = ng_norm_rms, .causal = true,
                                        .activation = NG_FEED_FORWARD_SWIGLU))
NG_CASE_MODULE(layer_case_block_post,
               ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_POST,
                                        .dropout = 0.2))
NG_CASE_MODULE(layer_case_block_sandwich,
               ng_transformer_block_new(4, 2, .kv_heads = 1, .hidden = 3,
                                        .placement = NG_NORM_SANDWICH, .qk_norm = ng_norm_rms))
NG_CASE_MODULE(layer_case_block_deep,
               ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_DEEP, .layers = 3))
NG_CASE_MODULE(layer_case_block_batch,
               ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_batch))
NG_CASE_MODULE(layer_case_block_no_norm,
               ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_none))
NG_CASE_MODULE(layer_case_transformer,
               ng_transformer_new(5, .dim = 4, .heads = 2, .layers = 2, .length = 4, .hidden = 3))
NG_CASE_MODULE(layer_case_transformer_rotary,
               ng_transformer_new(5, .dim = 4, .heads = 1, .layers = 1, .hidden = 3,
                                  .norm = ng_norm_rms, .placement = NG_NORM_DEEP,
                                  .positions = NG_POSITIONS_ROTARY, .bidirectional = true))

const ng_case ng_layer_cases_transformer[] = {
    NG_CASE_LAYER("TransformerBlock (pre)", layer_case_block_pre, NG_CASE_ANY("x", 2, 3, 4)),
    NG_CASE_LAYER("TransformerBlock (post)", layer_case_block_post, NG_CASE_ANY("x", 2, 3, 4)),
    NG_CASE_LAYER("TransformerBlock (sandwich)", layer_case_block_sandwich,
                  NG_CASE_ANY("x", 2, 3, 4)),
    NG_CASE_LAYER("TransformerBlock (DeepNorm)", layer_case_block_deep, NG_CASE_ANY("x", 2, 3, 4)),
    NG_CASE_LAYER("TransformerBlock (BatchNorm)", layer_case_block_batch,
                  NG_CASE_ANY("x", 2, 3, 4)),
    NG_CASE_LAYER("TransformerBlock (no norm)", layer_case_block_no_norm,
                  NG_CASE_ANY("x", 2, 2, 4)),
    NG_CASE_LAYER("Transformer", layer_case_transformer, NG_CASE_INDEX("ids", 5, 2, 3)),
    NG_CASE_LAYER("Transformer (rotary, DeepNorm)", layer_case_transformer_rotary,
                  NG_CASE_INDEX("ids", 5, 2, 3)),
};
const int ng_layer_cases_transformer_count = NG_CASE_COUNT(ng_layer_cases_transformer);
