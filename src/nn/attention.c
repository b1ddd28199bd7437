/* Multi-head self-attention: y = attention(q, k, v) W_o + b_o, where q, k and v are thirds of
 * x W + b; its weights have dropout in training. Vaswani et al. 2017. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    int64_t dim;
    ng_multi_head_attention_new_options options;
    ng_tensor *in_weight;       /* (3 dim, dim): q, k, v */
    ng_tensor *in_bias;         /* (3 dim), or NG_NONE */
    ng_tensor *out_weight;      /* (dim, dim) */
    ng_tensor *out_bias;        /* (dim), or NG_NONE */
    ng_module *q_norm, *k_norm; /* of each head, or NULL */
} attention;

/* Third `part` of qkv as it is, or with each of its heads normalized: (N, T, dim). */
static ng_tensor *part_of(const attention *layer, ng_tape *tape, ng_tensor *qkv, int64_t part,
                          ng_module *norm)
{
    const int64_t dim = layer->dim, heads = layer->options.heads;
    ng_tensor *x = ng_slice(tape, qkv, -1, part * dim, (part + 1) * dim);
    if (!norm || !x) return x;
    const ng_shape shape = x->shape;
    x = ng_reshape(tape, x, NG_SHAPE(shape.dim[0], shape.dim[1], heads, dim / heads));
    return ng_reshape(tape, ng_forward(norm, tape, x), shape);
}

/* QK-norm takes q and k out of the packed tensor; without it they stay where the product left
 * them. */
static ng_tensor *attend(const attention *layer, ng_tape *tape, ng_tensor *qkv, ng_tensor *mask)
{
    const ng_multi_head_attention_new_options *o = &layer->options;
    const int64_t dim = layer->dim, head = dim / o->heads;
    const double dropout = layer->base.training ? o->dropout : 0;
    if (!layer->q_norm) {
        if (o->rotary)
            qkv = ng_rotary(tape, qkv, .dim = head, .over = 2 * dim, .base = o->rotary_base);
        return ng_self_attention(tape, qkv, mask, .heads = o->heads, .causal = o->causal,
                                 .dropout = dropout);
    }
    ng_tensor *q = part_of(layer, tape, qkv, 0, layer->q_norm);
    ng_tensor *k = part_of(layer, tape, qkv, 1, layer->k_norm);
    ng_tensor *v = part_of(layer, tape, qkv, 2, NULL);
    if (o->rotary) {
        q = ng_rotary(tape, q, .dim = head, .base = o->rotary_base);
        k = ng_rotary(tape, k, .dim = head, .base = o->rotary_base);
    }
    return ng_attention(tape, q, k, v, mask, .heads = o->heads, .causal = o->causal,
                        .dropout = dropout);
}

static bool shapes_fit(const attention *layer, const ng_tensor *x, const ng_tensor *mask)
{
    const ng_shape shape = x->shape;
    if (shape.rank != 3 || shape.dim[2] != layer->dim) {
        ng_fail(NG_ESHAPE, "MultiHeadAttention: x is %s, expected (N, T, %lld)",
                ng_shape_print(shape).text, (long long)layer->dim);
        return false;
    }
    if (ng_is_none(mask) || ng_shape_equal(mask->shape, NG_SHAPE(shape.dim[0], shape.dim[1])))
        return true;
    ng_fail(NG_ESHAPE, "MultiHeadAttention: mask is %s and x %s, expected mask (N, T)",
            ng_shape_print(mask->shape).text, ng_shape_print(shape).text);
    return false;
}

static ng_tensor *attention_forward_given(ng_module *self, ng_tape *tape, ng_tensor *x,
                                          ng_tensor *mask)
{
    const attention *layer = (const attention *)self;
    if (!shapes_fit(layer, x, mask)) return NULL;
    ng_tensor *qkv =
        ng_linear(tape, x, ng_stand_in(tape, layer->in_weight), ng_stand_in(tape, layer->in_bias));
    ng_tensor *y = attend(layer, tape, qkv, mask);
    return ng_linear(tape, y, ng_stand_in(tape, layer->out_weight),
                     ng_stand_in(tape, layer->out_bias));
}

static ng_tensor *attention_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return attention_forward_given(self, tape, x, NG_NONE);
}

/* Each of the four matrices as Xavier has it, v's and the last one times the gain. */
static void attention_init(ng_module *self, ng_rng *rng)
{
    attention *layer = (attention *)self;
    const int64_t square = layer->dim * layer->dim;
    const double deviation = 1 / sqrt((double)layer->dim), gain = layer->options.gain;
    ng_fill_normal(layer->in_weight, 0, deviation, rng);
    for (int64_t i = 2 * square; i < 3 * square; i++)
        ng_set(layer->in_weight, i, gain * ng_get(layer->in_weight, i));
    ng_fill_normal(layer->out_weight, 0, gain * deviation, rng);
}

static void attention_describe(const ng_module *self, char *text, size_t bytes)
{
    const attention *layer = (const attention *)self;
    const ng_multi_head_attention_new_options *o = &layer->options;
    char dropout[32] = "";
    if (o->dropout > 0) snprintf(dropout, sizeof dropout, ", dropout=%g", o->dropout);
    snprintf(text, bytes, "%lld, heads=%lld%s%s%s%s", (long long)layer->dim, (long long)o->heads,
             o->causal ? ", causal" : "", o->rotary ? ", rotary" : "", dropout,
             o->no_bias ? ", no bias" : "");
}

static const ng_module_class attention_class = {.name = "MultiHeadAttention",
                                                .size = sizeof(attention),
                                                .forward = attention_forward,
                                                .forward_given = attention_forward_given,
                                                .init = attention_init,
                                                .describe = attention_describe};

static bool options_accepted(int64_t dim, const ng_multi_head_attention_new_options *o)
{
    static const char name[] = "ng_multi_head_attention_new";
    if (!ng_option_positive(name, "dim", dim, "features") ||
        !ng_option_positive(name, "heads", o->heads, "heads") ||
        !ng_option_range(name, "dropout", o->dropout, 0, 1) ||
        !ng_option_range(name, "gain", o->gain, 0, HUGE_VAL) ||
        !ng_option_range(name, "rotary_base", o->rotary_base, 0, HUGE_VAL))
        return false;
    if (dim % o->heads != 0) {
        ng_fail(NG_EVALUE, "%s: %lld heads, expected a number that divides dim %lld", name,
                (long long)o->heads, (long long)dim);
        return false;
    }
    if (!o->rotary || dim / o->heads % 2 == 0) return true;
    ng_fail(NG_EVALUE, "%s: heads of %lld features, expected an even number for rotary positions",
            name, (long long)(dim / o->heads));
    return false;
}

ng_module *ng_multi_head_attention_new_with(int64_t dim,
                                            ng_multi_head_attention_new_options options)
{
    options.gain = ng_option(options.gain, 1);
    if (!options_accepted(dim, &options)) return NULL;
    attention *self = (attention *)ng_module_new(&attention_class);
    if (!self) return NULL;
    ng_module *base = &self->base;
    const int64_t head = dim / options.heads;
    self->dim = dim;
    self->options = options;
    self->in_weight = ng_module_add_parameter(base, "in_weight", NG_SHAPE(3 * dim, dim));
    self->in_bias =
        ng_module_add_parameter(base, "in_bias", NG_SHAPE(3 * dim), .left_out = options.no_bias);
    self->out_weight = ng_module_add_parameter(base, "out_weight", NG_SHAPE(dim, dim));
    self->out_bias =
        ng_module_add_parameter(base, "out_bias", NG_SHAPE(dim), .left_out = options.no_bias);
    if (options.qk_norm) {
        self->q_norm = ng_module_add_child(base, "q_norm", options.qk_norm(head));
        self->k_norm = ng_module_add_child(base, "k_norm", options.qk_norm(head));
    }
    return ng_module_built(base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

static ng_module *case_attention(void) { return ng_multi_head_attention_new(4, 2); }
static ng_module *case_attention_causal(void)
{
    return ng_multi_head_attention_new(4, 1, .causal = true, .rotary = true, .no_bias = true);
}
static ng_module *case_attention_dropout(void)
{
    return ng_multi_head_attention_new(4, 2, .dropout = 0.3);
}
static ng_module *case_attention_qk_norm(void)
{
    return ng_multi_head_attention_new(4, 2, .causal = true, .rotary = true,
                                       .qk_norm = ng_norm_rms);
}
static ng_module *case_attention_qk_layer_norm(void)
{
    return ng_multi_head_attention_new(6, 2, .qk_norm = ng_norm_layer);
}

const ng_case ng_layer_cases_attention[] = {
    {.name = "MultiHeadAttention", .module = case_attention, .inputs = {NG_CASE_ANY("x", 2, 3, 4)}},
    {.name = "MultiHeadAttention (causal, rotary)",
     .module = case_attention_causal,
     .inputs = {NG_CASE_ANY("x", 2, 3, 4)}},
    {.name = "MultiHeadAttention (dropout)",
     .module = case_attention_dropout,
     .inputs = {NG_CASE_ANY("x", 2, 3, 4)}},
    {.name = "MultiHeadAttention (dropout, eval)",
     .module = case_attention_dropout,
     .eval = true,
     .inputs = {NG_CASE_ANY("x", 2, 3, 4)}},
    {.name = "MultiHeadAttention (QK-RMSNorm, causal, rotary)",
     .module = case_attention_qk_norm,
     .inputs = {NG_CASE_ANY("x", 2, 3, 4)}},
    {.name = "MultiHeadAttention (QK-LayerNorm)",
     .module = case_attention_qk_layer_norm,
     .inputs = {NG_CASE_ANY("x", 1, 3, 6)}},
};
const int ng_layer_cases_attention_count = NG_CASE_COUNT(ng_layer_cases_attention);
