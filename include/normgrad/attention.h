/* Attention and transformers.
 *
 *     ng_module *model = ng_transformer_new(65, .dim = 128, .layers = 4, .norm = ng_norm_rms);
 *     ng_tensor *scores = ng_forward(model, tape, labels, .mask = mask);
 *     ng_module *block = ng_transformer_block_new(128, 4, .causal = true);
 *     ng_tensor *z = ng_forward(block, tape, x);
 *     ng_module_free(model), ng_module_free(block);
 *
 *     ng_transformer_new(vocabulary)          ids (N, T) -> logits (N, T, vocabulary)
 *     ng_transformer_block_new(dim, heads)    x + attention(norm(x)), x + feed_forward(norm(x))
 *     ng_multi_head_attention_new(dim, h)     attention(q, k, v) W_o + b_o
 *     ng_forward_attention(module, tape, x, keys, values, mask)   the same, with its weights
 *     ng_feed_forward_new(dim)                f(x W_1^T + b_1) W_2^T + b_2
 *     ng_embedding_new(count, dim)            weight[id]
 *     ng_learned_positions_new(length, dim)   x + weight[t]
 *     ng_adaptive_residual_new(inner)         x + gate inner(scale xhat + shift), of a condition
 *
 * A module with norms inside takes a function that makes one as the setting .norm: ng_norm_layer,
 * ng_norm_rms, ng_norm_batch, ng_norm_scale, ng_norm_dynamic_tanh, ng_norm_derf, ng_norm_none, or a
 * function of yours. */
#ifndef NORMGRAD_ATTENTION_H
#define NORMGRAD_ATTENTION_H

#include <normgrad/layers.h>
#include <normgrad/norms.h>

NG_BEGIN_C

/* Embedding: int64 ids of any shape -> (..., dim), for each id its row of weight (count, dim),
 * which is drawn from N(0, deviation^2). An id outside 0 .. count - 1 is an error.
 *     ng_embedding_new(65, 128)   ng_embedding_new(65, 128, .padded = true, .padding = 0) */
typedef struct {
    double deviation; /* default 1 */
    bool padded;      /* .padding is an id; not in ng_learned_positions_new */
    int64_t padding;  /* the id of padding, PyTorch's padding_idx. Its row begins as zeros, and gets
                         no gradient from this layer */
    int64_t dim;
} ng_embedding_new_options;
#define ng_embedding_new(count, ...)                                                               \
    ng_embedding_new_with(count, NG_NAMED(ng_embedding_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_embedding_new_with(int64_t count, ng_embedding_new_options options);

/* LearnedPositions: y = x + weight[t] for x (..., T, dim); weight is (length, dim), and T is at
 * most length. Rotary positions are a setting of the attention. */
#define ng_learned_positions_new(length, ...)                                                      \
    ng_learned_positions_new_with(length, NG_NAMED(ng_embedding_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_learned_positions_new_with(int64_t length, ng_embedding_new_options options);

/* A function that makes a norm over `dim` features, for the setting .norm: one of these or your
 * own. If you call it, the module is yours. */
typedef ng_module *ng_norm_maker(int64_t dim);
NG_API ng_module *ng_norm_layer(int64_t dim);        /* LayerNorm */
NG_API ng_module *ng_norm_rms(int64_t dim);          /* RMSNorm */
NG_API ng_module *ng_norm_scale(int64_t dim);        /* ScaleNorm */
NG_API ng_module *ng_norm_dynamic_tanh(int64_t dim); /* DynamicTanh */
NG_API ng_module *ng_norm_derf(int64_t dim);         /* Derf */
NG_API ng_module *ng_norm_none(int64_t dim);         /* y = x */

/* BatchNorm over all positions of all samples. A transformer's block passes its key mask on to it,
 * and a recurrent layer the lengths of the rows: padding does not count. If you call it yourself,
 * the input .mask has x's shape without features, 0 for padding. */
NG_API ng_module *ng_norm_batch(int64_t dim);

/* The maker of a norm by its name, for programs that compare norms: "layer_norm" gives
 * ng_norm_layer. All take x (..., dim); "batch_norm" is ng_norm_batch, and "group_norm" has 8
 * groups in each position, or 4, 2 or 1 where 8 does not divide dim. NULL with NG_EVALUE for
 * another name. ng_norm_names returns all names, ended by NULL: "none", "layer_norm", "rms_norm"...
 */
NG_API ng_norm_maker *ng_norm_named(const char *name);
NG_API const char *const *ng_norm_names(void);

/* MultiHeadAttention: y = attention(q, k, v) W_o + b_o. Vaswani et al. 2017.
 *
 * Self-attention takes x (N, T, dim); q, k and v are parts of x W + b. The input .mask is 0 where a
 * key is hidden: from all queries (N, T), or from a query (1 or N, T, T). Parameters: in_weight
 * (dim + 2 kv, dim), in_bias, out_weight (dim, dim), out_bias; kv is dim, or with .kv_heads
 * dim kv_heads / heads.
 *
 * Cross-attention (.context) makes q of x, and k and v of another sequence (N, S, context), the
 * input .memory. The input .memory_mask is its mask, (N, S) or (1 or N, T, S). The parameters
 * q_weight (dim, dim), k_weight (kv, context) and v_weight (kv, value_context) replace in_weight.
 *
 * Each matrix is drawn by NG_INIT_XAVIER_NORMAL.
 *     ng_multi_head_attention_new(128, 4, .causal = true, .qk_norm = ng_norm_rms)
 *     ng_multi_head_attention_new(128, 8, .kv_heads = 2)   ..._new(128, 8, .context = 64) */
typedef struct {
    bool causal;            /* no position sees a later one */
    bool no_bias;           /* no in_bias and no out_bias */
    bool rotary;            /* rotary positions for q and k; Su et al. 2021 */
    double rotary_base;     /* default 10000 */
    ng_norm_maker *qk_norm; /* norm of each head of q and k; Dehghani et al. 2023 */
    bool qk_norm_whole;     /* qk_norm is over all heads of q, and of k, together; OLMo 2. A norm
                               that makes RMSNorm with .groups then has a weight for each head */
    ng_norm_maker *v_norm;  /* norm of each head of v */
    double qk_temperature; /* q and k of each head are divided by their lengths, and the weights are
                              softmax(g q k^T). g is a learned number that starts at this value,
                              the parameter q_norm.g. Henry et al. 2020 start at log2(L^2 - L) for
                              sequences of length L. Not with .qk_norm; default: no such g */
    double dropout;        /* of the attention weights, in training */
    double gain;           /* factor of the drawn weights of v and W_o; default 1 */
    int64_t kv_heads;      /* heads of k and v, a divisor of heads, each shared by neighbouring
                              heads of q; default heads. Ainslie et al. 2023 */
    int64_t context;       /* features of the other sequence; default: self-attention */
    int64_t value_context; /* features of the values, if they are another tensor than the keys
                              (ng_forward_attention); default context */
    int64_t heads;         /* divides dim */
} ng_multi_head_attention_new_options;
#define ng_multi_head_attention_new(dim, ...)                                                      \
    ng_multi_head_attention_new_with(                                                              \
        dim, NG_NAMED(ng_multi_head_attention_new_options, heads, __VA_ARGS__))
NG_API ng_module *ng_multi_head_attention_new_with(int64_t dim,
                                                   ng_multi_head_attention_new_options options);

/* The output y (N, T, dim) of a MultiHeadAttention for queries x (N, T, dim), keys (N, S, context)
 * and values (N, S, value_context), which may be one tensor, and a mask as in ng_attention, or
 * NG_NONE. Without .context keys and values must be x.
 *     ng_forward_attention(attention, tape, x, x, x, NG_NONE, .weights = &weights) */
typedef struct {
    ng_tensor **weights; /* gets the weights (N, heads, T, S), as in ng_attention */
    ng_tensor *mask;
} ng_forward_attention_options;
#define ng_forward_attention(module, tape, x, keys, values, ...)                                   \
    ng_forward_attention_with(module, tape, x, keys, values,                                       \
                              NG_NAMED(ng_forward_attention_options, mask, __VA_ARGS__))
NG_API ng_tensor *ng_forward_attention_with(ng_module *module, ng_tape *tape, ng_tensor *x,
                                            ng_tensor *keys, ng_tensor *values,
                                            ng_forward_attention_options options);

/* FeedForward: y = f(x W_1^T + b_1) W_2^T + b_2. With NG_FEED_FORWARD_SWIGLU (Shazeer 2020)
 * y = (silu(a) b) W_2^T + b_2, where a and b are the halves of x W_1^T + b_1. Parameters: in_weight
 * (hidden, dim), for SwiGLU (2 hidden, dim), in_bias, out_weight (dim, hidden), out_bias. */
typedef enum {
    NG_FEED_FORWARD_GELU = 0,  /* f = gelu */
    NG_FEED_FORWARD_GELU_TANH, /* f = gelu_tanh */
    NG_FEED_FORWARD_RELU,      /* f = relu */
    NG_FEED_FORWARD_SWIGLU     /* two halves, multiplied */
} ng_feed_forward_activation;
typedef struct {
    int64_t hidden; /* default 4 dim; for SwiGLU 8/3 dim, which is as many weights */
    ng_feed_forward_activation activation; /* default NG_FEED_FORWARD_GELU */
    bool no_bias;                          /* without b_1 and b_2 */
    double gain;                           /* factor of the drawn weights; default 1 */
    int64_t dim;
} ng_feed_forward_new_options;
#define ng_feed_forward_new(...)                                                                   \
    ng_feed_forward_new_with(NG_NAMED(ng_feed_forward_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_feed_forward_new_with(ng_feed_forward_new_options options);

/* Where a block has its norms. f is its attention, then its feed-forward. To train without norms,
 * put another layer in their place: .norm = ng_norm_dynamic_tanh or ng_norm_derf. */
typedef enum {
    NG_NORM_PRE = 0, /* x + f(norm(x)); Xiong et al. 2020 */
    NG_NORM_POST,    /* norm(x + f(x)); Vaswani et al. 2017 */
    NG_NORM_PERI,    /* Peri-LN, a sandwich: x + norm(f(norm(x))); Ding et al. 2021, Kim et al. 2025
                        (without their optional norm of the embedding) */
    NG_NORM_DEEP,    /* DeepNorm: norm(alpha x + f(x)), alpha = (2 layers)^(1/4). The drawn weights
                        of v, W_o and the feed-forward are multiplied by (8 layers)^(-1/4); Wang et
                        al. 2022 */
    NG_NORM_HYBRID,  /* HybridNorm: y = norm(x + attention(x)), y + feed_forward(y); .norm also
                        makes norms of each head of q, k and v; Zhuo et al. 2025 */
    NG_NORM_DUAL,    /* ResiDual: two streams x and d begin as the embedding and become
                        norm(x + f(x)) and d + f(x); the head takes x + norm(d); Xie et al. 2023 */
    NG_NORM_SCALED,  /* LayerNorm scaling: x + f(norm(x) / sqrt(layer)), with the first layer 1; Sun
                        et al. 2025 */
    NG_NORM_MIX,     /* Mix-LN: the first blocks are post-norm, the others pre-norm; in
                        ng_transformer_new only; Li et al. 2024 */
    NG_NORM_OLMO2,   /* x + norm(f(x)); OLMo 2, Walsh et al. 2025, with .norm = ng_norm_rms,
                        .qk_norm = ng_norm_rms and .qk_norm_whole = true */
    NG_NORM_HYPER    /* manifold-constrained hyper-connections of n streams, which begin as copies
                        of the embedding; the head takes the norm of their sum:
                        x'_o = sum_i R[o, i] x_i + 2 sigmoid(b)[o] f(norm(sum_i sigmoid(a)[i] x_i)),
                        R = ng_sinkhorn(c), and a, b, c are alpha W xhat + bias of all streams, with
                        xhat their RMSNorm; Xie et al. 2025 (arXiv 2512.24880), Zhu et al. 2024 */
} ng_norm_placement;

/* The most layers of a Transformer. More is NG_EVALUE. */
#define NG_MAX_LAYERS 10000

/* TransformerBlock of x (N, T, dim); the input .mask is 0 for hidden keys (N, T).
 *     ng_transformer_block_new(128, 4, .norm = ng_norm_rms, .placement = NG_NORM_PERI)
 * Children: attention, attention_norm, feed_forward, feed_forward_norm (not with NG_NORM_HYBRID),
 * attention_after and feed_forward_after for the second norms of NG_NORM_PERI, attention_dropout
 * and feed_forward_dropout. With NG_NORM_DUAL x is (N, T, 2 dim), the two streams side by side.
 * With NG_NORM_HYPER it is (N, T, streams dim), and the children attention_connection and
 * feed_forward_connection make the coefficients: weight (2 n + n^2, n dim), bias and alpha (3),
 * with rows for sigmoid(a), sigmoid(b) and R. alpha starts at 0.01, and bias so that the block
 * begins as pre-norm's: sigmoid(a) = 1 / n, 2 sigmoid(b) = 1, R the unit matrix but for e^-8. */
typedef struct {
    int64_t hidden;              /* of the feed-forward */
    ng_norm_maker *norm;         /* default ng_norm_layer */
    ng_norm_placement placement; /* default NG_NORM_PRE */
    int64_t layers;              /* of the whole stack, for NG_NORM_DEEP; default 1 */
    int64_t layer;   /* this block's place in it, from 1, for NG_NORM_SCALED; default 1 */
    int64_t streams; /* of NG_NORM_HYPER, 2 or more; default 4 */
    ng_feed_forward_activation activation; /* of the feed-forward */
    double dropout;               /* of the attention weights, and of what each branch adds */
    bool causal, rotary, no_bias; /* as in ng_multi_head_attention_new */
    ng_norm_maker *qk_norm;       /* the same */
    bool qk_norm_whole;           /* the same */
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
 * The input .mask is 0 for hidden keys (N, T).
 *     ng_transformer_new(65, .norm = ng_norm_rms, .positions = NG_POSITIONS_ROTARY)
 * Children: embedding, positions, blocks (a Sequential), norm (not with NG_NORM_POST and
 * NG_NORM_DEEP, whose blocks end in one) and head. */
typedef enum {
    NG_POSITIONS_LEARNED = 0, /* ng_learned_positions_new, after the embedding */
    NG_POSITIONS_ROTARY,      /* in every attention */
    NG_POSITIONS_NONE         /* none; only the causal mask depends on them */
} ng_positions;
typedef struct {
    int64_t dim, heads, layers, length; /* default 128, 4, 4, 128 */
    int64_t hidden;                     /* of the feed-forward */
    ng_norm_maker *norm;                /* default ng_norm_layer */
    ng_norm_placement placement;        /* default NG_NORM_PRE */
    double post_share;                  /* share of post-norm blocks in NG_NORM_MIX, rounded down;
                                           there must be one. Default 0.25 */
    int64_t streams;                    /* of NG_NORM_HYPER; default 4 */
    ng_positions positions;             /* default NG_POSITIONS_LEARNED */
    ng_feed_forward_activation activation; /* of the feed-forward */
    double dropout;                        /* of the embedded ids, and in the blocks */
    bool bidirectional;                    /* every position sees every other */
    bool no_bias;                          /* in attention and feed-forward */
    ng_norm_maker *qk_norm;                /* of each head of q and k */
    bool qk_norm_whole;                    /* over all heads together */
    double qk_temperature;                 /* as in ng_multi_head_attention_new */
    int64_t kv_heads;                      /* of keys and values; default heads */
    int64_t vocabulary;                    /* ids are 0 .. vocabulary - 1 */
} ng_transformer_new_options;
#define ng_transformer_new(...)                                                                    \
    ng_transformer_new_with(NG_NAMED(ng_transformer_new_options, vocabulary, __VA_ARGS__))
NG_API ng_module *ng_transformer_new_with(ng_transformer_new_options options);

/* AdaptiveResidual, the adaLN-Zero block of DiT: x + gate inner((1 + scale) xhat + shift). One
 * Linear makes (shift, scale, gate) of silu(c) for the input .condition, c as norms.h has it. It
 * starts at 0, so at first y = x. inner keeps the shape; the block owns it, even if the call fails.
 * Peebles & Xie 2023. */
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
