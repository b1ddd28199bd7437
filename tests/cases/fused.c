/* The cases of the other ops: activations, losses, attention, recurrent networks, images. */
#include "table.h"

/* ---- activations ---------------------------------------------------------------------------- */

CALL(case_tanh, ng_tanh(tape, in[0]))
CALL(case_sigmoid, ng_sigmoid(tape, in[0]))
CALL(case_relu, ng_relu(tape, in[0]))
CALL(case_leaky_relu, ng_leaky_relu(tape, in[0], 0.1))
CALL(case_gelu, ng_gelu(tape, in[0]))
CALL(case_gelu_tanh, ng_gelu_tanh(tape, in[0]))
CALL(case_silu, ng_silu(tape, in[0]))
CALL(case_softplus, ng_softplus(tape, in[0]))
CALL(case_elu, ng_elu(tape, in[0], 0.7))
CALL(case_selu, ng_selu(tape, in[0]))
CALL(case_celu, ng_celu(tape, in[0], 0.7))
CALL(case_prelu, ng_prelu(tape, in[0], in[1]))
CALL(case_glu, ng_glu(tape, in[0]))
CALL(case_mish, ng_mish(tape, in[0]))
CALL(case_softsign, ng_softsign(tape, in[0]))
CALL(case_hardtanh, ng_hardtanh(tape, in[0]))
CALL(case_hardsigmoid, ng_hardsigmoid(tape, in[0]))
CALL(case_hardswish, ng_hardswish(tape, in[0]))

/* Values on both sides of the kinks of the hard activations, and between them. */
#define WIDE BETWEEN("x", -7.03, 7.01, 5, 6)

static const gradient_case activations_cases[] = {
    OP("tanh", case_tanh, ANY("x", 3, 4)),
    OP("sigmoid", case_sigmoid, ANY("x", 3, 4)),
    OP("relu", case_relu, NOT_ZERO("x", 3, 4)),
    OP("leaky_relu", case_leaky_relu, NOT_ZERO("x", 3, 4)),
    OP("gelu", case_gelu, ANY("x", 3, 4)),
    OP("gelu_tanh", case_gelu_tanh, ANY("x", 3, 4)),
    OP("silu", case_silu, ANY("x", 3, 4)),
    OP("softplus", case_softplus, ANY("x", 3, 4)),
    OP("elu", case_elu, NOT_ZERO("x", 3, 4)),
    OP("selu", case_selu, NOT_ZERO("x", 3, 4)),
    OP("celu", case_celu, NOT_ZERO("x", 3, 4)),
    OP("prelu", case_prelu, NOT_ZERO("x", 3, 4), ANY("slope", 1)),
    OP("prelu (channels)", case_prelu, NOT_ZERO("x", 2, 3, 2), ANY("slope", 3)),
    OP("glu", case_glu, ANY("x", 3, 4)),
    OP("mish", case_mish, ANY("x", 3, 4)),
    OP("softsign", case_softsign, NOT_ZERO("x", 3, 4)),
    OP("hardtanh", case_hardtanh, WIDE),
    OP("hardsigmoid", case_hardsigmoid, WIDE),
    OP("hardswish", case_hardswish, WIDE),
};

/* ---- softmax -------------------------------------------------------------------------------- */

CALL(case_softmax, ng_softmax(tape, in[0]))
CALL(case_softmax_first, ng_softmax(tape, in[0], .axes = NG_AXES(0)))
CALL(case_softmax_middle, ng_softmax(tape, in[0], .axes = NG_AXES(1)))
CALL(case_log_softmax_middle, ng_log_softmax(tape, in[0], .axes = NG_AXES(1)))
CALL(case_log_softmax, ng_log_softmax(tape, in[0]))
CALL(case_log_softmax_first, ng_log_softmax(tape, in[0], .axes = NG_AXES(0)))

static const gradient_case softmax_cases[] = {
    OP("softmax", case_softmax, ANY("x", 3, 5)),
    OP("softmax (axis 0)", case_softmax_first, ANY("x", 4, 3)),
    OP("softmax (axis 1 of 3)", case_softmax_middle, ANY("x", 2, 4, 3)),
    OP("softmax (axis 1 of 3, columns)", case_softmax_middle, ANY("x", 2, 3, 9)),
    OP("log_softmax (axis 1 of 3, columns)", case_log_softmax_middle, ANY("x", 2, 3, 9)),
    OP("log_softmax", case_log_softmax, ANY("x", 3, 5)),
    OP("log_softmax (axis 0)", case_log_softmax_first, ANY("x", 4, 3)),
};

/* ---- swiglu --------------------------------------------------------------------------------- */

CALL(case_swiglu, ng_swiglu(tape, in[0]))

static const gradient_case swiglu_cases[] = {
    OP("swiglu", case_swiglu, ANY("x", 2, 3, 8)),
    OP("swiglu (one row)", case_swiglu, ANY("x", 6)),
};

/* ---- likelihoods ---------------------------------------------------------------------------- */

CALL(case_nll, ng_nll(tape, ng_log_softmax(tape, in[0]), in[1]))
CALL(case_nll_each, ng_nll(tape, in[0], in[1], .reduction = NG_EACH, .ignore = true, .ignored = 2,
                           .weights = in[2]))
CALL(case_weighted, ng_cross_entropy(tape, in[0], in[1], .weights = in[2]))
CALL(case_weighted_all, ng_cross_entropy(tape, in[0], in[1], .weights = in[2], .smoothing = 0.2,
                                         .ignore = true, .ignored = 2, .reduction = NG_SUM))
CALL(case_nll_first, ng_nll(tape, in[0], in[1], .channels_first = true))
CALL(case_soft, ng_cross_entropy(tape, in[0], in[1]))
CALL(case_soft_all, ng_cross_entropy(tape, in[0], in[1], .weights = in[2], .smoothing = 0.2,
                                     .reduction = NG_EACH, .channels_first = true))
CALL(case_kl, ng_kl_divergence(tape, in[0], in[1]))
CALL(case_kl_each, ng_kl_divergence(tape, in[0], in[1], .reduction = NG_EACH))

#define OF_CLASSES ANY("logits", 6, 4), INDEX("labels", 4, 6), POSITIVE_CONSTANT("weights", 4)

static const gradient_case likelihoods_cases[] = {
    OP("nll", case_nll, ANY("x", 6, 4), INDEX("labels", 4, 6)),
    OP("nll (each, weights, ignored label)", case_nll_each, OF_CLASSES),
    OP("cross_entropy (weights)", case_weighted, OF_CLASSES),
    OP("cross_entropy (sum, weights, smoothing, ignored label)", case_weighted_all, OF_CLASSES),
    OP("nll (channels first)", case_nll_first, ANY("x", 2, 3, 2), INDEX("labels", 3, 2, 2)),
    OP("cross_entropy (probabilities)", case_soft, ANY("logits", 3, 4),
       BETWEEN("labels", 0.1, 0.9, 3, 4)),
    OP("cross_entropy (each, probabilities, weights, smoothing, channels first)", case_soft_all,
       ANY("logits", 2, 3, 2), BETWEEN("labels", 0.1, 0.9, 2, 3, 2),
       POSITIVE_CONSTANT("weights", 3)),
    OP("kl_divergence", case_kl, ANY("x", 3, 4), POSITIVE("t", 3, 4)),
    OP("kl_divergence (each)", case_kl_each, ANY("x", 3, 4), POSITIVE("t", 3, 4)),
};

/* ---- losses --------------------------------------------------------------------------------- */

CALL(case_mse, ng_mse(tape, in[0], in[1]))
CALL(case_mse_sum, ng_mse(tape, in[0], in[1], .reduction = NG_SUM))
CALL(case_mse_each, ng_mse(tape, in[0], in[1], .reduction = NG_EACH))
CALL(case_l1, ng_l1(tape, in[0], in[1]))
CALL(case_l1_sum, ng_l1(tape, in[0], in[1], .reduction = NG_SUM))
CALL(case_l1_each, ng_l1(tape, in[0], in[1], .reduction = NG_EACH))
CALL(case_huber, ng_huber(tape, in[0], in[1]))
CALL(case_huber_sum, ng_huber(tape, in[0], in[1], .reduction = NG_SUM, .delta = 0.6))
CALL(case_huber_each, ng_huber(tape, in[0], in[1], .reduction = NG_EACH, .delta = 2))
CALL(case_bce, ng_binary_cross_entropy(tape, in[0], in[1]))
CALL(case_bce_sum, ng_binary_cross_entropy(tape, in[0], in[1], .reduction = NG_SUM))
CALL(case_bce_each, ng_binary_cross_entropy(tape, in[0], in[1], .reduction = NG_EACH))
CALL(case_cross_entropy, ng_cross_entropy(tape, in[0], in[1]))
CALL(case_cross_entropy_sum, ng_cross_entropy(tape, in[0], in[1], .reduction = NG_SUM))
CALL(case_cross_entropy_each, ng_cross_entropy(tape, in[0], in[1], .reduction = NG_EACH))
CALL(case_cross_entropy_smoothing, ng_cross_entropy(tape, in[0], in[1], .smoothing = 0.2))
CALL(case_cross_entropy_ignored, ng_cross_entropy(tape, in[0], in[1], .ignore = true, .ignored = 2))
CALL(case_cross_entropy_all, ng_cross_entropy(tape, in[0], in[1], .reduction = NG_EACH,
                                              .smoothing = 0.1, .ignore = true, .ignored = -1))
CALL(case_bce_weights,
     ng_binary_cross_entropy(tape, in[0], in[1], .weights = in[2], .positive_weights = in[3]))
CALL(case_cross_entropy_first,
     ng_cross_entropy(tape, in[0], in[1], .channels_first = true, .smoothing = 0.2))

#define PAIR ANY("x", 3, 4), ANY("t", 3, 4)
#define LOGITS_AND_PROBABILITIES ANY("logits", 3, 4), BETWEEN("t", 0, 1, 3, 4)
#define LOGITS_AND_LABELS(rows, lowest, highest)                                                   \
    ANY("logits", rows, 4),                                                                        \
    {                                                                                              \
        .name = "labels", .shape = SHAPE(rows), .low = (lowest), .high = (highest) + 1,            \
        .index = true                                                                              \
    }

static const gradient_case losses_cases[] = {
    OP("mse", case_mse, PAIR),
    OP("mse (sum)", case_mse_sum, PAIR),
    OP("mse (each)", case_mse_each, PAIR),
    OP("l1", case_l1, PAIR),
    OP("l1 (sum)", case_l1_sum, PAIR),
    OP("l1 (each)", case_l1_each, PAIR),
    OP("huber", case_huber, PAIR),
    OP("huber (sum, delta 0.6)", case_huber_sum, PAIR),
    OP("huber (each, delta 2)", case_huber_each, PAIR),
    OP("binary_cross_entropy", case_bce, LOGITS_AND_PROBABILITIES),
    OP("binary_cross_entropy (sum)", case_bce_sum, LOGITS_AND_PROBABILITIES),
    OP("binary_cross_entropy (each)", case_bce_each, LOGITS_AND_PROBABILITIES),
    OP("binary_cross_entropy (weights, weights of positives)", case_bce_weights,
       LOGITS_AND_PROBABILITIES, POSITIVE_CONSTANT("weights", 3, 1),
       POSITIVE_CONSTANT("positive_weights", 4)),
    OP("cross_entropy", case_cross_entropy, LOGITS_AND_LABELS(6, 0, 3)),
    OP("cross_entropy (sum)", case_cross_entropy_sum, LOGITS_AND_LABELS(6, 0, 3)),
    OP("cross_entropy (each)", case_cross_entropy_each, LOGITS_AND_LABELS(6, 0, 3)),
    OP("cross_entropy (smoothing)", case_cross_entropy_smoothing, LOGITS_AND_LABELS(6, 0, 3)),
    OP("cross_entropy (ignored label)", case_cross_entropy_ignored, LOGITS_AND_LABELS(12, 1, 3)),
    OP("cross_entropy (each, smoothing, ignored label)", case_cross_entropy_all,
       LOGITS_AND_LABELS(12, -1, 1)),
    OP("cross_entropy (channels first)", case_cross_entropy_first, ANY("logits", 2, 3, 2, 2),
       INDEX("labels", 3, 2, 2, 2)),
};

/* ---- margins -------------------------------------------------------------------------------- */

CALL(case_hinge, ng_hinge(tape, in[0], ng_sign(tape, in[1])))
CALL(case_hinge_classes, ng_hinge(tape, in[0], in[1], .reduction = NG_EACH, .margin = 2))
CALL(case_hinge_embedding, ng_hinge_embedding(tape, in[0], ng_sign(tape, in[1])))
CALL(case_cosine_embedding,
     ng_cosine_embedding(tape, in[0], in[1], ng_sign(tape, in[2]), .margin = -0.5))
CALL(case_triplet, ng_triplet(tape, in[0], in[1], in[2], .margin = 2))
CALL(case_triplet_swap, ng_triplet(tape, in[0], in[1], in[2], .margin = 3, .order = 3, .swap = true,
                                   .reduction = NG_EACH))
CALL(case_gaussian, ng_gaussian_nll(tape, in[0], in[1], in[2]))
CALL(case_gaussian_each,
     ng_gaussian_nll(tape, in[0], in[1], in[2], .full = true, .reduction = NG_EACH))

#define TRIPLET ANY("anchor", 3, 4), ANY("positive", 3, 4), ANY("negative", 3, 4)

static const gradient_case margins_cases[] = {
    OP("hinge", case_hinge, ANY("x", 3, 4), CONSTANT("target", 3, 4)),
    OP("hinge (each, classes)", case_hinge_classes, ANY("x", 3, 4), INDEX("target", 4, 3)),
    OP("hinge_embedding", case_hinge_embedding, ANY("x", 3, 4), CONSTANT("target", 3, 4)),
    OP("cosine_embedding", case_cosine_embedding, ANY("a", 4, 3), ANY("b", 4, 3),
       CONSTANT("target", 4)),
    OP("triplet", case_triplet, TRIPLET),
    OP("triplet (each, swap, order 3)", case_triplet_swap, TRIPLET),
    OP("gaussian_nll", case_gaussian, ANY("x", 3, 4), ANY("target", 3, 4), POSITIVE("var", 3, 4)),
    OP("gaussian_nll (each, one variance a row)", case_gaussian_each, ANY("x", 3, 4),
       ANY("target", 3, 4), POSITIVE("var", 3, 1)),
};

/* ---- dropout -------------------------------------------------------------------------------- */

CALL(case_dropout, ng_dropout(tape, in[0], 0.3))

static const gradient_case dropout_cases[] = {
    OP("dropout", case_dropout, ANY("x", 5, 7)),
};

/* ---- rotary --------------------------------------------------------------------------------- */

CALL(case_rotary, ng_rotary(tape, in[0]))
CALL(case_rotary_part, ng_rotary(tape, in[0], .dim = 2, .over = 4, .base = 50, .start = 3))

static const gradient_case rotary_cases[] = {
    OP("rotary", case_rotary, ANY("x", 2, 3, 4)),
    OP("rotary (heads, part of the features)", case_rotary_part, ANY("x", 2, 3, 5)),
};

/* ---- attention ------------------------------------------------------------------------------ */

/* A mask from normal values: 1 above -0.7, about three quarters. */
static ng_tensor *mask_of(ng_tape *tape, ng_tensor *x)
{
    return ng_greater(tape, x, ng_full(tape, ng_dtype_of(x), NG_SCALAR, -0.7));
}

CALL(case_attention, ng_attention(tape, in[0], in[1], in[2], NG_NONE))
CALL(case_attention_causal, ng_attention(tape, in[0], in[1], in[2], NG_NONE, .causal = true))
CALL(case_attention_mask,
     ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .scale = 0.7))
CALL(case_attention_beside,
     ng_attention(tape, in[0], in[1], in[2], NG_NONE, .heads = 2, .causal = true))
CALL(case_attention_dropout,
     ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .dropout = 0.4))
CALL(case_attention_shared, ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]),
                                         .heads = 4, .kv_heads = 2, .causal = true))
CALL(case_attention_shared_apart, ng_attention(tape, in[0], in[1], in[2], NG_NONE, .kv_heads = 1))
CALL(case_self_attention_shared,
     ng_self_attention(tape, in[0], NG_NONE, .heads = 2, .kv_heads = 1, .causal = true))
CALL(case_self_attention, ng_self_attention(tape, in[0], NG_NONE, .heads = 2))
CALL(case_self_attention_causal,
     ng_self_attention(tape, in[0], mask_of(tape, in[1]), .heads = 2, .causal = true))
CALL(case_self_attention_dropout,
     ng_self_attention(tape, in[0], NG_NONE, .heads = 2, .causal = true, .dropout = 0.3))

CALL(case_attention_pairs,
     ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .heads = 2))

/* y and the weights side by side: (N, H, T, D + S). */
static ng_tensor *case_attention_weights(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_tensor *weights = NULL;
    ng_tensor *y = ng_attention(tape, in[0], in[1], in[2], NG_NONE, .causal = true, .dropout = 0.2,
                                .weights = &weights);
    return ng_concat(tape, NG_TENSORS(y, weights), -1);
}

#define MASK(...) CONSTANT("mask", __VA_ARGS__)

static const gradient_case attention_cases[] = {
    OP("attention", case_attention, ANY("q", 1, 2, 3, 2), ANY("k", 1, 2, 4, 2),
       ANY("v", 1, 2, 4, 2)),
    OP("attention (causal)", case_attention_causal, ANY("q", 2, 1, 3, 2), ANY("k", 2, 1, 3, 2),
       ANY("v", 2, 1, 3, 2)),
    OP("attention (causal, more queries than keys)", case_attention_causal, ANY("q", 1, 2, 5, 2),
       ANY("k", 1, 2, 3, 2), ANY("v", 1, 2, 3, 2)),
    OP("attention (key mask)", case_attention_mask, ANY("q", 2, 1, 2, 3), ANY("k", 2, 1, 4, 3),
       ANY("v", 2, 1, 4, 3), MASK(2, 4)),
    OP("attention (heads side by side, causal)", case_attention_beside, ANY("q", 1, 2, 4),
       ANY("k", 1, 3, 4), ANY("v", 1, 3, 4)),
    OP("attention (key mask, dropout)", case_attention_dropout, ANY("q", 2, 1, 2, 3),
       ANY("k", 2, 1, 4, 3), ANY("v", 2, 1, 4, 3), MASK(2, 4)),
    OP("attention (shared keys and values, causal, key mask)", case_attention_shared,
       ANY("q", 2, 2, 8), ANY("k", 2, 3, 4), ANY("v", 2, 3, 4), MASK(2, 3)),
    OP("attention (one head of keys and values)", case_attention_shared_apart, ANY("q", 1, 3, 2, 2),
       ANY("k", 1, 1, 3, 2), ANY("v", 1, 1, 3, 2)),
    OP("attention (mask of queries and keys)", case_attention_pairs, ANY("q", 2, 2, 4),
       ANY("k", 2, 3, 4), ANY("v", 2, 3, 4), MASK(1, 2, 3)),
    OP("attention (mask of each head)", case_attention_pairs, ANY("q", 2, 2, 4), ANY("k", 2, 3, 4),
       ANY("v", 2, 3, 4), MASK(2, 2, 2, 3)),
    OP("attention (with its weights)", case_attention_weights, ANY("q", 1, 2, 3, 2),
       ANY("k", 1, 2, 4, 2), ANY("v", 1, 2, 4, 2)),
    OP("self_attention (shared keys and values, causal)", case_self_attention_shared,
       ANY("qkv", 2, 3, 8)),
    OP("self_attention", case_self_attention, ANY("qkv", 2, 3, 6)),
    OP("self_attention (causal, key mask)", case_self_attention_causal, ANY("qkv", 2, 4, 12),
       MASK(2, 4)),
    OP("self_attention (causal, dropout)", case_self_attention_dropout, ANY("qkv", 2, 4, 12)),
};

/* ---- recurrent ------------------------------------------------------------------------------ */

/* y and the last states in one tensor (N, T + 1 or 2, H), so that each gets a gradient. */
static ng_tensor *with_last(ng_tape *tape, ng_tensor *y, const ng_recurrent_state *last)
{
    if (!y) return NULL;
    const ng_shape row = NG_SHAPE(ng_dim(y, 0), 1, ng_dim(y, 2));
    ng_tensor *parts[3] = {y, ng_reshape(tape, last->h, row)};
    const int count = last->c == NG_NONE ? 2 : 3;
    if (count > 2) parts[2] = ng_reshape(tape, last->c, row);
    return ng_concat(tape, parts, count, 1);
}

#define WEIGHTS ((ng_recurrent_weights){in[1], in[2], in[3], in[4]})
#define NO_BIAS ((ng_recurrent_weights){in[1], in[2], NG_NONE, NG_NONE})

static ng_tensor *case_rnn_all(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_recurrent_state state = {in[5], NG_NONE};
    ng_tensor *y = ng_rnn(tape, in[0], WEIGHTS, state, in[6], .reverse = true, .last = &state);
    return with_last(tape, y, &state);
}

static ng_tensor *case_gru_all(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_recurrent_state state = {in[5], NG_NONE};
    ng_tensor *y = ng_gru(tape, in[0], WEIGHTS, state, in[6], .last = &state);
    return with_last(tape, y, &state);
}

static ng_tensor *case_lstm_all(ng_tape *tape, ng_tensor *const *in, void *context)
{
    (void)context;
    ng_recurrent_state state = {in[5], in[6]};
    ng_tensor *y = ng_lstm(tape, in[0], WEIGHTS, state, in[7], .reverse = true, .last = &state);
    return with_last(tape, y, &state);
}

CALL(case_rnn, ng_rnn(tape, in[0], WEIGHTS, NG_NO_STATE, NG_NONE))
CALL(case_rnn_relu, ng_rnn(tape, in[0], WEIGHTS, NG_NO_STATE, NG_NONE, .relu = true))
CALL(case_gru, ng_gru(tape, in[0], NO_BIAS, NG_NO_STATE, NG_NONE, .reverse = true))
CALL(case_lstm, ng_lstm(tape, in[0], NO_BIAS, NG_NO_STATE, NG_NONE))

#define CELL_INPUTS(gates, h)                                                                      \
    ANY("x", 2, 3, 2), ANY("weight_ih", gates *h, 2), ANY("weight_hh", gates *h, h),               \
        ANY("bias_ih", gates *h), ANY("bias_hh", gates *h)

static const gradient_case recurrent_cases[] = {
    OP("rnn", case_rnn, CELL_INPUTS(1, 3)),
    OP("rnn (relu)", case_rnn_relu, CELL_INPUTS(1, 3)),
    OP("rnn (reverse, lengths, states)", case_rnn_all, CELL_INPUTS(1, 2), ANY("h0", 2, 2),
       INDEX("lengths", 4, 2)),
    OP("gru (no bias, reverse)", case_gru, ANY("x", 2, 3, 2), ANY("weight_ih", 6, 2),
       ANY("weight_hh", 6, 2)),
    OP("gru (lengths, states)", case_gru_all, CELL_INPUTS(3, 2), ANY("h0", 2, 2),
       INDEX("lengths", 4, 2)),
    OP("lstm (no bias)", case_lstm, ANY("x", 2, 3, 2), ANY("weight_ih", 8, 2),
       ANY("weight_hh", 8, 2)),
    OP("lstm (reverse, lengths, states)", case_lstm_all, CELL_INPUTS(4, 2), ANY("h0", 2, 2),
       ANY("c0", 2, 2), INDEX("lengths", 4, 2)),
};

/* ---- conv2d --------------------------------------------------------------------------------- */

CALL(case_conv, ng_conv2d(tape, in[0], in[1], in[2]))
CALL(case_conv_no_bias, ng_conv2d(tape, in[0], in[1], NG_NONE))
CALL(case_conv_same, ng_conv2d(tape, in[0], in[1], in[2], .padding = 1))
CALL(case_conv_stride, ng_conv2d(tape, in[0], in[1], in[2], .stride = 2, .padding = 1))
CALL(case_conv_dilation, ng_conv2d(tape, in[0], in[1], in[2], .dilation = 2, .padding_h = 1))
CALL(case_conv_groups, ng_conv2d(tape, in[0], in[1], in[2], .padding_w = 1, .groups = 2))
CALL(case_conv_all, ng_conv2d(tape, in[0], in[1], in[2], .stride_w = 2, .padding = 2,
                              .padding_w = 1, .dilation_h = 2, .groups = 2))
CALL(case_line, ng_conv1d(tape, in[0], in[1], in[2]))
CALL(case_line_no_bias, ng_conv1d(tape, in[0], in[1], NG_NONE, .padding = 1))
CALL(case_line_all,
     ng_conv1d(tape, in[0], in[1], in[2], .stride = 2, .padding = 2, .dilation = 2, .groups = 2))

#define X(...) ANY("x", __VA_ARGS__)
#define WEIGHT(...) ANY("weight", __VA_ARGS__)
#define BIAS ANY("bias", 2)

static const gradient_case conv2d_cases[] = {
    OP("conv2d", case_conv, X(2, 2, 3, 4), WEIGHT(2, 2, 2, 3), BIAS),
    OP("conv2d (no bias)", case_conv_no_bias, X(2, 1, 3, 3), WEIGHT(2, 1, 2, 2)),
    OP("conv2d (1 x 1)", case_conv, X(2, 3, 2, 2), WEIGHT(2, 3, 1, 1), BIAS),
    OP("conv2d (padding)", case_conv_same, X(1, 2, 3, 4), WEIGHT(2, 2, 3, 3), BIAS),
    OP("conv2d (stride)", case_conv_stride, X(2, 1, 4, 5), WEIGHT(2, 1, 3, 3), BIAS),
    OP("conv2d (dilation)", case_conv_dilation, X(1, 2, 4, 4), WEIGHT(2, 2, 2, 2), BIAS),
    OP("conv2d (groups)", case_conv_groups, X(1, 4, 3, 3), WEIGHT(2, 2, 2, 2), BIAS),
    OP("conv2d (depthwise)", case_conv_groups, X(2, 2, 3, 3), WEIGHT(2, 1, 2, 2), BIAS),
    OP("conv2d (stride, padding, dilation, groups)", case_conv_all, X(1, 2, 3, 5),
       WEIGHT(2, 1, 2, 3), BIAS),
    OP("conv1d", case_line, X(2, 3, 5), WEIGHT(2, 3, 2), BIAS),
    OP("conv1d (no bias, padding)", case_line_no_bias, X(1, 2, 4), WEIGHT(3, 2, 3)),
    OP("conv1d (stride, padding, dilation, groups)", case_line_all, X(2, 2, 6), WEIGHT(2, 1, 3),
       BIAS),
};

/* ---- conv_transpose ------------------------------------------------------------------------- */

CALL(case_transpose_plain, ng_conv_transpose2d(tape, in[0], in[1], in[2]))
CALL(case_no_bias, ng_conv_transpose2d(tape, in[0], in[1], NG_NONE, .stride = 2))
CALL(case_stride,
     ng_conv_transpose2d(tape, in[0], in[1], in[2], .stride = 2, .padding = 1, .output_padding = 1))
CALL(case_all, ng_conv_transpose2d(tape, in[0], in[1], in[2], .stride_w = 3, .padding_h = 1,
                                   .dilation = 2, .output_padding_w = 2, .groups = 2))
CALL(case_transpose_line, ng_conv_transpose1d(tape, in[0], in[1], in[2]))
CALL(case_transpose_line_all,
     ng_conv_transpose1d(tape, in[0], in[1], in[2], .stride = 3, .padding = 1, .dilation = 2,
                         .output_padding = 1, .groups = 2))

static const gradient_case conv_transpose_cases[] = {
    OP("conv_transpose2d", case_transpose_plain, X(2, 3, 2, 3), WEIGHT(3, 2, 2, 2), BIAS),
    OP("conv_transpose2d (no bias)", case_no_bias, X(2, 1, 2, 2), WEIGHT(1, 2, 3, 2)),
    OP("conv_transpose2d (stride, padding, output padding)", case_stride, X(1, 2, 2, 3),
       WEIGHT(2, 2, 3, 3), BIAS),
    OP("conv_transpose2d (stride, padding, dilation, groups)", case_all, X(1, 4, 3, 2),
       WEIGHT(4, 1, 2, 2), BIAS),
    OP("conv_transpose1d", case_transpose_line, X(2, 3, 3), WEIGHT(3, 2, 2), BIAS),
    OP("conv_transpose1d (stride, padding, dilation, groups)", case_transpose_line_all, X(2, 2, 3),
       WEIGHT(2, 1, 3), BIAS),
};

/* ---- image ---------------------------------------------------------------------------------- */

CALL(case_unfold, ng_unfold(tape, in[0], 2))
CALL(case_unfold_same, ng_unfold(tape, in[0], 3, .padding = 1))
CALL(case_unfold_all,
     ng_unfold(tape, in[0], 2, .kernel_w = 3, .stride_h = 2, .padding_w = 2, .dilation_w = 2))
CALL(case_fold, ng_fold(tape, in[0], 3, 4, 2))
CALL(case_fold_all,
     ng_fold(tape, in[0], 5, 4, 2, .kernel_w = 3, .stride_h = 2, .padding_w = 2, .dilation_w = 2))
CALL(case_max_pool, ng_max_pool2d(tape, in[0], 2))
CALL(case_max_pool_all, ng_max_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .dilation_w = 2))
CALL(case_avg_pool, ng_avg_pool2d(tape, in[0], 2))
CALL(case_avg_pool_all, ng_avg_pool2d(tape, in[0], 3, .kernel_w = 2, .stride = 1, .padding = 1))
CALL(case_max_pool_ceil, ng_max_pool2d(tape, in[0], 3, .stride = 2, .padding_w = 1, .ceil = true))
CALL(case_avg_pool_ceil, ng_avg_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .ceil = true))
CALL(case_avg_pool_exclude,
     ng_avg_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .exclude_padding = true))
CALL(case_max_pool1d, ng_max_pool1d(tape, in[0], 3, .stride = 2, .padding = 1))
CALL(case_avg_pool1d, ng_avg_pool1d(tape, in[0], 2, .ceil = true))
CALL(case_unfold_ceil, ng_unfold(tape, in[0], 2, .stride = 2, .ceil = true))
CALL(case_global_avg_pool, ng_global_avg_pool(tape, in[0]))
CALL(case_flatten, ng_flatten(tape, in[0]))

static const gradient_case image_cases[] = {
    OP("unfold", case_unfold, ANY("x", 2, 2, 3, 4)),
    OP("unfold (padding)", case_unfold_same, ANY("x", 1, 2, 3, 4)),
    OP("unfold (stride, padding, dilation)", case_unfold_all, ANY("x", 1, 2, 5, 4)),
    OP("fold", case_fold, ANY("columns", 2, 8, 6)),
    OP("fold (stride, padding, dilation)", case_fold_all, ANY("columns", 1, 12, 8)),
    OP("max_pool2d", case_max_pool, ANY("x", 2, 2, 4, 5)),
    OP("max_pool2d (stride, padding, dilation)", case_max_pool_all, ANY("x", 1, 2, 5, 6)),
    OP("avg_pool2d", case_avg_pool, ANY("x", 2, 2, 4, 5)),
    OP("avg_pool2d (stride, padding)", case_avg_pool_all, ANY("x", 1, 2, 3, 4)),
    OP("unfold (ceil)", case_unfold_ceil, ANY("x", 1, 2, 3, 3)),
    OP("max_pool2d (ceil)", case_max_pool_ceil, ANY("x", 2, 2, 5, 4)),
    OP("avg_pool2d (ceil)", case_avg_pool_ceil, ANY("x", 1, 2, 4, 5)),
    OP("avg_pool2d (without the padding)", case_avg_pool_exclude, ANY("x", 1, 2, 3, 4)),
    OP("max_pool1d", case_max_pool1d, ANY("x", 2, 2, 6)),
    OP("avg_pool1d", case_avg_pool1d, ANY("x", 2, 2, 5)),
    OP("global_avg_pool", case_global_avg_pool, ANY("x", 2, 3, 2, 4)),
    OP("flatten", case_flatten, ANY("x", 2, 3, 2, 2)),
};

/* ---- adaptive_pool -------------------------------------------------------------------------- */

CALL(case_adaptive_avg, ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(3, 2)))
CALL(case_adaptive_avg_line, ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(4)))
CALL(case_adaptive_max, ng_adaptive_max_pool(tape, in[0], NG_SHAPE(3, 2)))

static const gradient_case adaptive_pool_cases[] = {
    OP("adaptive_avg_pool", case_adaptive_avg, ANY("x", 2, 2, 5, 4)),
    OP("adaptive_avg_pool (line)", case_adaptive_avg_line, ANY("x", 2, 2, 6)),
    OP("adaptive_avg_pool (longer line)", case_adaptive_avg_line, ANY("x", 2, 2, 3)),
    OP("adaptive_max_pool", case_adaptive_max, ANY("x", 2, 2, 5, 4)),
};

/* ---- upsample ------------------------------------------------------------------------------- */

CALL(case_nearest, ng_upsample(tape, in[0], 2))
CALL(case_upsample_linear, ng_upsample(tape, in[0], 2, .mode = NG_LINEAR))
CALL(case_corners, ng_upsample(tape, in[0], 3, .mode = NG_LINEAR, .align_corners = true))
CALL(case_to_size, ng_interpolate(tape, in[0], NG_SHAPE(5, 2)))
CALL(case_linear_to_size, ng_interpolate(tape, in[0], NG_SHAPE(2, 5), .mode = NG_LINEAR))

static const gradient_case upsample_cases[] = {
    OP("upsample", case_nearest, ANY("x", 2, 2, 2, 3)),
    OP("upsample (lines)", case_nearest, ANY("x", 2, 2, 3)),
    OP("upsample (bilinear)", case_upsample_linear, ANY("x", 1, 2, 2, 3)),
    OP("upsample (linear, lines)", case_upsample_linear, ANY("x", 2, 2, 3)),
    OP("upsample (bilinear, corners)", case_corners, ANY("x", 1, 2, 2, 3)),
    OP("interpolate", case_to_size, ANY("x", 1, 2, 3, 4)),
    OP("interpolate (bilinear)", case_linear_to_size, ANY("x", 1, 2, 3, 4)),
};

const case_list fused_lists[] = {
    LIST(activations_cases), LIST(softmax_cases),
    LIST(swiglu_cases),      LIST(likelihoods_cases),
    LIST(losses_cases),      LIST(margins_cases),
    LIST(dropout_cases),     LIST(rotary_cases),
    LIST(attention_cases),   LIST(recurrent_cases),
    LIST(conv2d_cases),      LIST(conv_transpose_cases),
    LIST(image_cases),       LIST(adaptive_pool_cases),
    LIST(upsample_cases),    {0},
};
