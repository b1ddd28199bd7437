/* Attention and transformers.
 *
 *     ng_module *net = ng_transformer_new(65, .dim = 128, .layers = 4, .norm = ng_norm_rms);
 *     ng_tensor *logits = ng_forward(net, tape, ids, .mask = mask);
 *
 *     ng_transformer_new(vocabulary)         ids (N, T) -> logits (N, T, vocabulary)
 *     ng_transformer_block_new(dim, heads)   x + attention(norm(x)), x + feed_forward(norm(x))
 *     ng_multi_head_attention_new(dim, h)    attention(q, k, v) W_o + b_o
 *     ng_feed_forward_new(dim)               f(x W_1^T + b_1) W_2^T + b_2
 *     ng_embedding_new(count, dim)           weight[id]
 *     ng_learned_positions_new(length, dim)  x + weight[t]
 *     ng_adaptive_residual_new(inner)        x + gate inner(scale xhat + shift), of a condition
 *
 * Modules with norms inside take a function that makes one: ng_norm_layer, ng_norm_rms,
 * ng_norm_batch, ng_norm_scale, ng_norm_dynamic_tanh, ng_norm_derf, ng_norm_none, or your own. */
#ifndef NORMGRAD_ATTENTION_H
#define NORMGRAD_ATTENTION_H

#include <normgrad/layers.h>
#include <normgrad/norms.h>

NG_BEGIN_C

/* Embedding: int64 ids of any shape -> (..., dim), row by row of weight (count, dim), drawn from
 * N(0, deviation^2). An id outside 0 .. count - 1 is an error.
 *     ng_embedding_new(65, 128)   ng_embedding_new(65, 128, .padded = true, .padding = 0) */
typedef struct {
    double deviation; /* default 1 */
    bool padded;      /* there is an id of padding: in ng_embedding_new only */
    int64_t
        padding; /* that id, PyTorch's padding_idx: its row is drawn as zeros and gets no gradient
                         from here */
    int64_t dim;
} ng_embedding_new_options;
#define ng_embedding_new(count, ...)                                                               \
    ng_embedding_new_with(count, NG_NAMED(ng_embedding_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_embedding_new_with(int64_t count, ng_embedding_new_options options);

/* LearnedPositions: y = x + weight[t] for x (..., T, dim); weight (length, dim), and T is at most
 * length. Rotary positions are an option of the attention. */
#define ng_learned_positions_new(length, ...)                                                      \
    ng_learned_positions_new_with(length, NG_NAMED(ng_embedding_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_learned_positions_new_with(int64_t length, ng_embedding_new_options options);

/* A function that makes a norm over `dim` features. Modules with norms inside take one as an
 * option: one of these or your own. */
typedef ng_module *ng_norm_maker(int64_t dim);
NG_API ng_module *ng_norm_layer(int64_t dim);
NG_API ng_module *ng_norm_rms(int64_t dim);
/* BatchNorm over all positions of all samples. The input .mask has x's shape without features;
 * positions where it is 0 are left out. A transformer's block passes the key mask to it, a
 * recurrent layer the mask of the steps within the rows' lengths. */
NG_API ng_module *ng_norm_batch(int64_t dim);
NG_API ng_module *ng_norm_scale(int64_t dim);
NG_API ng_module *ng_norm_dynamic_tanh(int64_t dim);
NG_API ng_module *ng_norm_derf(int64_t dim);
NG_API ng_module *ng_norm_none(int64_t dim); /* y = x */

/* MultiHeadAttention: y = attention(q, k, v) W_o + b_o. Vaswani et al. 2017.
 *
 * Self-attention takes x (N, T, dim); q, k and v are parts of x W + b. The input .mask is that of
 * ng_attention: (N, T), 0 for a key that no query sees, or (1 or N, T, T), 0 for a key that a query
 * does not see. Parameters: in_weight (dim + 2 kv, dim), in_bias, out_weight (dim, dim), out_bias.
 * kv is dim, or with .kv_heads dim times kv_heads / heads.
 *
 * Cross-attention (.context) makes q of x, and k and v of another sequence (N, S, context), which
 * it needs as the input .memory; .memory_mask is a mask (N, S) or (1 or N, T, S). The parameters
 * q_weight (dim, dim), k_weight (kv, context) and v_weight (kv, value_context) replace in_weight.
 *
 * Each matrix is drawn as Xavier's normal.
 *     ng_multi_head_attention_new(128, 4, .causal = true, .qk_norm = ng_norm_rms)
 *     ng_multi_head_attention_new(128, 8, .kv_heads = 2)   ..._new(128, 8, .context = 64) */
typedef struct {
    bool causal, no_bias;   /* no position sees a later one; without in_bias, out_bias */
    bool rotary;            /* rotary positions for q and k; Su et al. 2021 */
    double rotary_base;     /* default 10000 */
    ng_norm_maker *qk_norm; /* of each head of q and k; Dehghani et al. 2023 */
    ng_norm_maker *v_norm;  /* of each head of v */
    double qk_temperature;  /* if set: q and k of each head are divided by their lengths, and the
                               weights are softmax(g q k^T). g is one learned number, the parameter
                               q_norm.g, and starts at this value. Henry et al. 2020 start at
                               log2(L^2 - L) for sequences of length L; not with .qk_norm */
    double dropout;         /* of the attention weights, in training */
    double gain;            /* factor of the drawn weights of v and W_o; default 1 */
    int64_t kv_heads;       /* heads of k and v, a divisor of heads, each shared by neighbouring
                               heads of q; default heads. Ainslie et al. 2023 */
    int64_t context;        /* features of the other sequence; default: self-attention */
    int64_t value_context;  /* of values of their own, in ng_forward_attention; default context */
    int64_t heads;          /* divides dim */
} ng_multi_head_attention_new_options;
#define ng_multi_head_attention_new(dim, ...)                                                      \
    ng_multi_head_attention_new_with(                                                              \
        dim, NG_NAMED(ng_multi_head_attention_new_options, heads, __VA_ARGS__))
NG_API ng_module *ng_multi_head_attention_new_with(int64_t dim,
                                                   ng_multi_head_attention_new_options options);

/* y (N, T, dim) of queries x (N, T, dim), keys (N, S, context) and values (N, S, value_context),
 * which may be one tensor, and a mask as in ng_attention or NG_NONE. Of a module without .context
 * keys and values are x. Another module is NG_EVALUE.
 *
 * weights  gets the weights (N, heads, T, S), as in ng_attention
 *     ng_forward_attention(attention, tape, x, x, x, NG_NONE, .weights = &weights) */
typedef struct {
    ng_tensor **weights;
    ng_tensor *mask;
} ng_forward_attention_options;
#define ng_forward_attention(module, tape, x, keys, values, ...)                                   \
    ng_forward_attention_with(module, tape, x, keys, values,                                       \
                              NG_NAMED(ng_forward_attention_options, mask, __VA_ARGS__))
NG_API ng_tensor *ng_forward_attention_with(ng_module *module, ng_tape *tape, ng_tensor *x,
                                            ng_tensor *keys, ng_tensor *values,
                                            ng_forward_attention_options options);

/* FeedForward: y = f(x W_1^T + b_1) W_2^T + b_2; with NG_FEED_FORWARD_SWIGLU y = (silu(a) b) W_2^T
 * + b_2, where a and b are halves of x W_1^T + b_1 (Shazeer 2020). Parameters in_weight (hidden,
 * dim), twice as high for SwiGLU, in_bias, out_weight (dim, hidden), out_bias. */
typedef enum {
    NG_FEED_FORWARD_GELU = 0,  /* f = gelu */
    NG_FEED_FORWARD_GELU_TANH, /* f = gelu_tanh */
    NG_FEED_FORWARD_RELU,      /* f = relu */
    NG_FEED_FORWARD_SWIGLU     /* two halves, multiplied */
} ng_feed_forward_activation;
typedef struct {
    int64_t hidden; /* default 4 dim; for SwiGLU 8/3 dim, so that the weights are as many */
    ng_feed_forward_activation activation; /* default NG_FEED_FORWARD_GELU */
    bool no_bias;                          /* without b_1 and b_2 */
    double gain;                           /* factor of the drawn weights; default 1 */
    int64_t dim;
} ng_feed_forward_new_options;
#define ng_feed_forward_new(...)                                                                   \
    ng_feed_forward_new_with(NG_NAMED(ng_feed_forward_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_feed_forward_new_with(ng_feed_forward_new_options options);

/* Where a block has its norms, f being its attention and then its feed-forward. To train without
 * norms, give .norm a layer that takes their place: ng_norm_dynamic_tanh (Zhu et al. 2025) or
 * ng_norm_derf (Chen et al. 2025). */
typedef enum {
    NG_NORM_PRE = 0, /* x + f(norm(x)); Xiong et al. 2020 */
    NG_NORM_POST,    /* norm(x + f(x)); Vaswani et al. 2017 */
    NG_NORM_PERI,    /* Peri-LN, a sandwich: x + norm(f(norm(x))); Ding et al. 2021, Kim et al. 2025
                        (without their optional norm of the embedding) */
    NG_NORM_DEEP,    /* DeepNorm: norm(alpha x + f(x)), alpha = (2 layers)^(1/4), and the weights of
                        v, W_o and feed-forward drawn beta = (8 layers)^(-1/4) times as wide; Wang
                        et al. 2022 */
    NG_NORM_HYBRID,  /* HybridNorm: y = norm(x + attention(x)), y + feed_forward(y), with norms of
                        each head of q, k and v, made by .norm; Zhuo et al. 2025 */
    NG_NORM_DUAL,    /* ResiDual: two streams x and d, which begin as the embedding, become
                        norm(x + f(x)) and d + f(x); the head takes x + norm(d); Xie et al. 2023 */
    NG_NORM_SCALED,  /* LayerNorm scaling: x + f(norm(x) / sqrt(layer)), the layers counted from 1;
                        Sun et al. 2025 */
    NG_NORM_MIX      /* Mix-LN: the first blocks post-norm, the others pre-norm; not for a single
                        block; Li et al. 2024 */
} ng_norm_placement;

/* The most layers of a Transformer. More is NG_EVALUE. */
#define NG_MAX_LAYERS 10000

/* TransformerBlock of x (N, T, dim); the input .mask is a key mask (N, T).
 * Children attention, attention_norm, feed_forward, feed_forward_norm (not with NG_NORM_HYBRID),
 * .._after for the second norms of NG_NORM_PERI, and .._dropout. With NG_NORM_DUAL x is
 * (N, T, 2 dim), the two streams side by side.
 *     ng_transformer_block_new(128, 4, .norm = ng_norm_rms, .placement = NG_NORM_PERI) */
typedef struct {
    int64_t hidden;                        /* of the feed-forward */
    ng_norm_maker *norm;                   /* default ng_norm_layer */
    ng_norm_placement placement;           /* default NG_NORM_PRE */
    int64_t layers;                        /* of the whole stack, for NG_NORM_DEEP; default 1 */
    int64_t layer;                         /* place in the stack, for NG_NORM_SCALED; default 1 */
    ng_feed_forward_activation activation; /* of the feed-forward */
    double dropout;               /* of the attention weights, and of what each branch adds */
    bool causal, rotary, no_bias; /* as in ng_multi_head_attention_new */
    ng_norm_maker *qk_norm;       /* the same */
    double qk_temperature;        /* the same */
    int64_t kv_heads;             /* the same */
    int64_t heads;                /* divides dim */
} ng_transformer_block_new_options;
#define ng_transformer_block_new(dim, ...)                                                         \
    ng_transformer_block_new_with(dim,                                                             \
                                  NG_NAMED(ng_transformer_block_new_options, heads, __VA_ARGS__))
NG_API ng_module *ng_transformer_block_new_with(int64_t dim,
                                                ng_transformer_block_new_options options);

/* Transformer, a language model: int64 ids (N, T) -> logits (N, T, vocabulary), T at most length.
 * Children embedding, positions, blocks (a Sequential), norm (not with NG_NORM_POST and
 * NG_NORM_DEEP, whose blocks end in one) and head. The input .mask is a key mask (N, T).
 *     ng_transformer_new(65, .norm = ng_norm_rms, .positions = NG_POSITIONS_ROTARY) */
typedef enum {
    NG_POSITIONS_LEARNED = 0, /* ng_learned_positions_new, after the embedding */
    NG_POSITIONS_ROTARY,      /* in every attention */
    NG_POSITIONS_NONE         /* only the causal mask tells them */
} ng_positions;
typedef struct {
    int64_t dim, heads, layers, length;    /* default 128, 4, 4, 128 */
    int64_t hidden;                        /* of the feed-forward */
    ng_norm_maker *norm;                   /* default ng_norm_layer */
    ng_norm_placement placement;           /* default NG_NORM_PRE */
    double post_share;                     /* of the blocks, rounded down, for NG_NORM_MIX; default
                                              0.25. Such a block must be there */
    ng_positions positions;                /* default NG_POSITIONS_LEARNED */
    ng_feed_forward_activation activation; /* of the feed-forward */
    double dropout;                        /* of the embedded ids, and in the blocks */
    bool bidirectional;                    /* every position sees every other */
    bool no_bias;                          /* in attention and feed-forward */
    ng_norm_maker *qk_norm;                /* of each head of q and k */
    double qk_temperature;                 /* as in ng_multi_head_attention_new */
    int64_t kv_heads;                      /* of keys and values; default heads */
    int64_t vocabulary;                    /* ids are 0 .. vocabulary - 1 */
} ng_transformer_new_options;
#define ng_transformer_new(...)                                                                    \
    ng_transformer_new_with(NG_NAMED(ng_transformer_new_options, vocabulary, __VA_ARGS__))
NG_API ng_module *ng_transformer_new_with(ng_transformer_new_options options);

/* DiT's adaLN-Zero block: x + gate(c) inner((1 + scale(c)) xhat + shift(c)). One Linear makes
 * (shift, scale, gate) of silu(c), c (..., condition), and starts at 0, so that the block starts as
 * y = x. inner keeps the shape; the block owns it, also if the call fails. Peebles & Xie 2023. */
typedef struct {
    int64_t dim, condition; /* features of x and of c */
    double eps;             /* default 1e-6 */
    ng_module *inner;       /* the layer inside */
} ng_adaptive_residual_new_options;
#define ng_adaptive_residual_new(...)                                                              \
    ng_adaptive_residual_new_with(NG_NAMED(ng_adaptive_residual_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_adaptive_residual_new_with(ng_adaptive_residual_new_options options);

NG_END_C

#endif
