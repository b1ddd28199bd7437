/* Multi-head attention: y = attention(q, k, v) W_o + b_o, its weights with dropout in training.
 * Vaswani et al. 2017. In self-attention q, k and v are parts of x W + b, side by side; in
 * cross-attention q is made of x, k and v of another sequence. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    int64_t dim, kv_dim; /* features of q, and of k and of v */
    ng_multi_head_attention_new_options options;
    ng_tensor *in_weight;                      /* (dim + 2 kv_dim, dim): q, k, v; or NG_NONE and */
    ng_tensor *q_weight, *k_weight, *v_weight; /* (dim, dim), (kv_dim, context), (kv_dim, ...) */
    ng_tensor *in_bias;                        /* (dim + 2 kv_dim), or NG_NONE */
    ng_tensor *out_weight;                     /* (dim, dim) */
    ng_tensor *out_bias;                       /* (dim), or NG_NONE */
    ng_module *q_norm, *k_norm, *v_norm;       /* of each head, or NULL */
} attention_layer;

/* What k and v have in place of x's features in cross-attention. */
static int64_t value_context(const attention_layer *layer)
{
    const ng_multi_head_attention_new_options *o = &layer->options;
    return o->value_context ? o->value_context : o->context;
}

static bool is_cross(const attention_layer *layer) { return layer->options.context != 0; }

/* Whether q and k have length 1, times a learned number in place of 1 / sqrt(features). */
static bool has_temperature(const attention_layer *layer)
{
    return ng_option_given(layer->options.qk_temperature);
}

/* The inputs of a pass; in self-attention x, keys and values are one tensor. */
typedef struct {
    ng_tensor *x, *keys, *values, *mask;
    ng_tensor **weights; /* gets the weights, or NULL */
} sequences;

/* ---- Queries, keys and values -------------------------------------------------------------- */

static int64_t head_dim(const attention_layer *layer) { return layer->dim / layer->options.heads; }

/* q, k or v (N, T, heads D) with the norm of each `head` features, if the layer has one. */
static ng_tensor *heads_normed(ng_tape *tape, ng_tensor *x, ng_module *norm, int64_t head)
{
    if (!norm || !x) return x;
    const ng_shape shape = x->shape;
    x = ng_reshape(tape, x, NG_SHAPE(shape.dim[0], shape.dim[1], shape.dim[2] / head, head));
    return ng_reshape(tape, ng_forward(norm, tape, x), shape);
}

/* q or k after QK-norm and rotary positions, if the layer has them. */
static ng_tensor *normed_and_rotated(const attention_layer *layer, ng_tape *tape, ng_tensor *x,
                                     ng_module *norm)
{
    x = heads_normed(tape, x, norm, layer->options.qk_norm_whole ? ng_dim(x, -1) : head_dim(layer));
    if (!layer->options.rotary) return x;
    return ng_rotary(tape, x, .dim = head_dim(layer), .base = layer->options.rotary_base);
}

/* Attention of q, k and v (N, T, features). */
static ng_tensor *attention_attend(const attention_layer *layer, ng_tape *tape,
                                   ng_tensor *const qkv[3], const sequences *in)
{
    const ng_multi_head_attention_new_options *o = &layer->options;
    ng_tensor *q = normed_and_rotated(layer, tape, qkv[0], layer->q_norm);
    ng_tensor *k = normed_and_rotated(layer, tape, qkv[1], layer->k_norm);
    ng_tensor *v = heads_normed(tape, qkv[2], layer->v_norm, head_dim(layer));
    return ng_attention(tape, q, k, v, in->mask, .heads = o->heads, .kv_heads = o->kv_heads,
                        .scale = has_temperature(layer) ? 1 : 0, .causal = o->causal,
                        .dropout = layer->base.training ? o->dropout : 0, .weights = in->weights);
}

/* Attention of the packed q, k and v (N, T, features), which are sliced out of it for norms. */
static ng_tensor *attend_packed(const attention_layer *layer, ng_tape *tape, ng_tensor *qkv,
                                const sequences *in)
{
    const ng_multi_head_attention_new_options *o = &layer->options;
    const int64_t first_k = layer->dim, first_v = first_k + layer->kv_dim;
    if (layer->q_norm || layer->v_norm) {
        ng_tensor *const parts[] = {ng_slice(tape, qkv, -1, 0, first_k),
                                    ng_slice(tape, qkv, -1, first_k, first_v),
                                    ng_slice(tape, qkv, -1, first_v, NG_END)};
        return attention_attend(layer, tape, parts, in);
    }
    if (o->rotary)
        qkv = ng_rotary(tape, qkv, .dim = head_dim(layer), .over = first_v, .base = o->rotary_base);
    return ng_self_attention(tape, qkv, in->mask, .heads = o->heads, .kv_heads = o->kv_heads,
                             .causal = o->causal, .dropout = layer->base.training ? o->dropout : 0,
                             .weights = in->weights);
}

/* Rows first .. end - 1 of in_bias. */
static ng_tensor *bias_part(const attention_layer *layer, ng_tape *tape, int64_t first, int64_t end)
{
    ng_tensor *bias = ng_parameter_value(tape, layer->in_bias);
    return ng_is_none(bias) ? bias : ng_slice(tape, bias, 0, first, end);
}

static ng_tensor *attend_across(const attention_layer *layer, ng_tape *tape, const sequences *in)
{
    const int64_t first_k = layer->dim, first_v = first_k + layer->kv_dim,
                  end = first_v + layer->kv_dim;
    ng_tensor *const qkv[] = {ng_linear(tape, in->x, ng_parameter_value(tape, layer->q_weight),
                                        bias_part(layer, tape, 0, first_k)),
                              ng_linear(tape, in->keys, ng_parameter_value(tape, layer->k_weight),
                                        bias_part(layer, tape, first_k, first_v)),
                              ng_linear(tape, in->values, ng_parameter_value(tape, layer->v_weight),
                                        bias_part(layer, tape, first_v, end))};
    return attention_attend(layer, tape, qkv, in);
}

/* ---- Forward ------------------------------------------------------------------------------- */

static bool sequence_fits(const char *name, const ng_tensor *x, int64_t features)
{
    if (x->shape.rank == 3 && x->shape.dim[2] == features) return true;
    ng_fail(NG_ESHAPE, "MultiHeadAttention: %s is %s, expected (N, T, %lld)", name,
            ng_shape_print(x->shape).text, (long long)features);
    return false;
}

/* Whether x, keys and values have the same samples, and keys and values one length. */
static bool lengths_fit(const sequences *in)
{
    const ng_shape a = in->x->shape, b = in->keys->shape, c = in->values->shape;
    if (b.dim[0] != a.dim[0] || c.dim[0] != b.dim[0] || c.dim[1] != b.dim[1]) {
        ng_fail(NG_ESHAPE,
                "MultiHeadAttention: x is %s, keys %s and values %s, expected equal numbers of "
                "samples, and keys and values of one length",
                ng_shape_print(a).text, ng_shape_print(b).text, ng_shape_print(c).text);
        return false;
    }
    return true;
}

static ng_tensor *attention_run(const attention_layer *layer, ng_tape *tape, const sequences *in)
{
    const int64_t dim = layer->dim, context = layer->options.context;
    const bool cross = is_cross(layer);
    if (!sequence_fits("x", in->x, dim) ||
        !sequence_fits("keys", in->keys, cross ? context : dim) ||
        !sequence_fits("values", in->values, cross ? value_context(layer) : dim) ||
        !lengths_fit(in))
        return NULL;
    ng_tensor *y =
        cross ? attend_across(layer, tape, in)
              : attend_packed(layer, tape,
                              ng_linear(tape, in->x, ng_parameter_value(tape, layer->in_weight),
                                        ng_parameter_value(tape, layer->in_bias)),
                              in);
    return ng_linear(tape, y, ng_parameter_value(tape, layer->out_weight),
                     ng_parameter_value(tape, layer->out_bias));
}

static ng_tensor *attention_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const attention_layer *layer = (const attention_layer *)self;
    const sequences inputs = is_cross(layer)
                                 ? (sequences){in->x, in->memory, in->memory, in->memory_mask, NULL}
                                 : (sequences){in->x, in->x, in->x, in->mask, NULL};
    return attention_run(layer, tape, &inputs);
}

/* ---- Weights, settings ---------------------------------------------------------------------- */

/* Multiplies the elements from `first` on by a factor. */
static void scale_from(ng_tensor *weight, int64_t first, double factor)
{
    for (int64_t i = first; i < ng_size(weight); i++) ng_set(weight, i, factor * ng_get(weight, i));
}

/* Draws each matrix by Xavier's rule, v's and the last one times the gain. k and v have fewer rows
 * than q where heads share them. */
static void attention_init(ng_module *self, ng_rng *rng)
{
    attention_layer *layer = (attention_layer *)self;
    const int64_t dim = layer->dim, kv_dim = layer->kv_dim;
    const double deviation = 1 / sqrt((double)dim), gain = layer->options.gain;
    if (is_cross(layer)) {
        ng_fill_normal(layer->q_weight, 0, deviation, rng);
        ng_fill_init(layer->k_weight, NG_INIT_XAVIER_NORMAL, 0, rng);
        ng_fill_init(layer->v_weight, NG_INIT_XAVIER_NORMAL, 0, rng);
        scale_from(layer->v_weight, 0, gain);
    } else {
        ng_fill_normal(layer->in_weight, 0, deviation, rng);
        scale_from(layer->in_weight, dim * dim, sqrt(2 * (double)dim / (double)(dim + kv_dim)));
        scale_from(layer->in_weight, (dim + kv_dim) * dim, gain);
    }
    ng_fill_normal(layer->out_weight, 0, gain * deviation, rng);
}

static const ng_module_class attention_class = {.name = "MultiHeadAttention",
                                                .size = sizeof(attention_layer),
                                                .forward_with = attention_forward,
                                                .takes = NG_INPUT_MASK,
                                                .init = attention_init};

ng_tensor *ng_forward_attention_with(ng_module *module, ng_tape *tape, ng_tensor *x,
                                     ng_tensor *keys, ng_tensor *values,
                                     ng_forward_attention_options options)
{
    static const char function[] = "ng_forward_attention";
    ng_tensor *const mask = options.mask;
    ng_tensor *const inputs[] = {x, keys, values, mask};
    if (!ng_given(function, "module", module) || !ng_given(function, "tape", tape) ||
        !ng_given(function, "mask", mask) ||
        !ng_accepts_optional(function, tape, 3, 4, inputs, NULL) || !ng_module_ready(module))
        return NULL;
    const attention_layer *layer = (const attention_layer *)module;
    const bool known = module->type == &attention_class;
    if (!known || (!is_cross(layer) && (keys != x || values != x))) {
        ng_fail(NG_EVALUE, "%s: the module is a %s, expected a MultiHeadAttention%s", function,
                module->type->name,
                known ? " with .context: without it keys and values are x" : "");
        return NULL;
    }
    const int64_t failures = ng_failures_ever();
    ng_tensor *y = attention_run(layer, tape, &(sequences){x, keys, values, mask, options.weights});
    return y ? y : ng_failed_in(module, failures);
}

/* ---- Make ---------------------------------------------------------------------------------- */

static const ng_setting attention_settings[] = {
    {NG_MEMBER(attention_layer, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(attention_layer, heads), NG_IS_COUNT, .unit = "heads", .divides = "dim"},
    {NG_OPTION(attention_layer, kv_heads), NG_IS_COUNT_OR_0, .unit = "heads", .divides = "heads"},
    {NG_OPTION(attention_layer, context), NG_IS_COUNT_OR_0, .unit = "features"},
    {NG_OPTION(attention_layer, value_context), NG_IS_COUNT_OR_0, .unit = "features",
     .needs = "context"},
    {NG_OPTION(attention_layer, causal), NG_IS_FLAG},
    {NG_OPTION(attention_layer, rotary), NG_IS_FLAG},
    {NG_OPTION(attention_layer, rotary_base), NG_IS_POSITIVE, .standard = 10000, .needs = "rotary",
     .quiet = true},
    {NG_OPTION(attention_layer, qk_norm), NG_IS_POINTER, .excludes = "qk_temperature",
     .hidden = true},
    {NG_OPTION(attention_layer, qk_norm_whole), NG_IS_FLAG, .needs = "qk_norm", .quiet = true},
    {NG_OPTION(attention_layer, qk_temperature), NG_IS_FINITE, .quiet = true},
    {NG_OPTION(attention_layer, dropout), NG_IS_PROBABILITY, .quiet = true},
    {NG_OPTION(attention_layer, no_bias), NG_IS_FLAG},
    {NG_OPTION(attention_layer, gain), NG_IS_NOT_NEGATIVE, .standard = 1, .quiet = true},
    {0}};

/* Registers the weights of q, k and v: one matrix, or three for cross-attention. */
static void add_in_weights(attention_layer *self)
{
    ng_module *base = &self->base;
    const int64_t dim = self->dim, kv_dim = self->kv_dim, context = self->options.context;
    const bool cross = is_cross(self);
    self->in_weight = ng_module_add_parameter(base, "in_weight", NG_SHAPE(dim + 2 * kv_dim, dim),
                                              .left_out = cross);
    self->q_weight =
        ng_module_add_parameter(base, "q_weight", NG_SHAPE(dim, dim), .left_out = !cross);
    self->k_weight =
        ng_module_add_parameter(base, "k_weight", NG_SHAPE(kv_dim, context), .left_out = !cross);
    self->v_weight = ng_module_add_parameter(
        base, "v_weight", NG_SHAPE(kv_dim, value_context(self)), .left_out = !cross);
}

ng_module *ng_multi_head_attention_new_with(int64_t dim,
                                            ng_multi_head_attention_new_options options)
{
    static const char name[] = "ng_multi_head_attention_new";
    if (options.kv_heads == options.heads) options.kv_heads = 0;
    if (options.value_context == options.context) options.value_context = 0;
    if (options.rotary && options.heads > 0 && dim / options.heads % 2 != 0) {
        ng_fail(NG_EVALUE,
                "%s: heads of %lld features, expected an even number for rotary "
                "positions",
                name, (long long)(dim / options.heads));
        return NULL;
    }
    attention_layer *self = ng_layer_new(name, &attention_class, attention_settings,
                                         &(attention_layer){.dim = dim, .options = options});
    if (!self) return NULL;
    ng_module *base = &self->base;
    const int64_t head = dim / options.heads;
    self->kv_dim = options.kv_heads ? options.kv_heads * head : dim;
    if (is_cross(self)) base->takes = NG_INPUT_MEMORY_MASK, base->needs = NG_INPUT_MEMORY;
    add_in_weights(self);
    self->in_bias = ng_module_add_parameter(base, "in_bias", NG_SHAPE(dim + 2 * self->kv_dim),
                                            .left_out = options.no_bias);
    self->out_weight = ng_module_add_parameter(base, "out_weight", NG_SHAPE(dim, dim));
    self->out_bias =
        ng_module_add_parameter(base, "out_bias", NG_SHAPE(dim), .left_out = options.no_bias);
    if (options.qk_norm) {
        const int64_t of_q = options.qk_norm_whole ? dim : head;
        const int64_t of_k = options.qk_norm_whole ? self->kv_dim : head;
        self->q_norm = ng_module_add_child(base, "q_norm", options.qk_norm(of_q));
        self->k_norm = ng_module_add_child(base, "k_norm", options.qk_norm(of_k));
    } else if (has_temperature(self)) {
        self->q_norm = ng_module_add_child(
            base, "q_norm", ng_scale_norm_new(head, .length = options.qk_temperature));
        self->k_norm = ng_module_add_child(base, "k_norm", ng_l2_norm_new(head, .no_affine = true));
    }
    if (options.v_norm) self->v_norm = ng_module_add_child(base, "v_norm", options.v_norm(head));
    return ng_module_built(base);
}
