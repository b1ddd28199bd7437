/* The cases of the other ops: activations, losses, attention, recurrent networks, images. */
#include "table.h"

/* Values on both sides of the kinks of the hard activations, and between them. */
#define WIDE BETWEEN("x", -7.03, 7.01, 5, 6)

#define ACTIVATIONS(X)                                                                             \
    X(tanh, (ANY("x", 3, 4)), ng_tanh(tape, in[0]))                                                \
    X(sigmoid, (ANY("x", 3, 4)), ng_sigmoid(tape, in[0]))                                          \
    X(relu, (NOT_ZERO("x", 3, 4)), ng_relu(tape, in[0]))                                           \
    X(leaky_relu, (NOT_ZERO("x", 3, 4)), ng_leaky_relu(tape, in[0], 0.1))                          \
    X(gelu, (ANY("x", 3, 4)), ng_gelu(tape, in[0]))                                                \
    X(gelu_tanh, (ANY("x", 3, 4)), ng_gelu_tanh(tape, in[0]))                                      \
    X(silu, (ANY("x", 3, 4)), ng_silu(tape, in[0]))                                                \
    X(softplus, (ANY("x", 3, 4)), ng_softplus(tape, in[0]))                                        \
    X(elu, (NOT_ZERO("x", 3, 4)), ng_elu(tape, in[0], 0.7))                                        \
    X(selu, (NOT_ZERO("x", 3, 4)), ng_selu(tape, in[0]))                                           \
    X(celu, (NOT_ZERO("x", 3, 4)), ng_celu(tape, in[0], 0.7))                                      \
    X(prelu, (NOT_ZERO("x", 3, 4), ANY("slope", 1)), ng_prelu(tape, in[0], in[1]))                 \
    X(prelu_channels, (NOT_ZERO("x", 2, 3, 2), ANY("slope", 3)), ng_prelu(tape, in[0], in[1]))     \
    X(glu, (ANY("x", 3, 4)), ng_glu(tape, in[0]))                                                  \
    X(mish, (ANY("x", 3, 4)), ng_mish(tape, in[0]))                                                \
    X(softsign, (NOT_ZERO("x", 3, 4)), ng_softsign(tape, in[0]))                                   \
    X(hardtanh, (WIDE), ng_hardtanh(tape, in[0]))                                                  \
    X(hardsigmoid, (WIDE), ng_hardsigmoid(tape, in[0]))                                            \
    X(hardswish, (WIDE), ng_hardswish(tape, in[0]))

#define SOFTMAX(X)                                                                                 \
    X(softmax, (ANY("x", 3, 5)), ng_softmax(tape, in[0]))                                          \
    X(softmax_axis_0, (ANY("x", 4, 3)), ng_softmax(tape, in[0], .axes = NG_AXES(0)))               \
    X(softmax_axis_1_of_3, (ANY("x", 2, 4, 3)), ng_softmax(tape, in[0], .axes = NG_AXES(1)))       \
    X(softmax_axis_1_of_3_columns, (ANY("x", 2, 3, 9)),                                            \
      ng_softmax(tape, in[0], .axes = NG_AXES(1)))                                                 \
    X(log_softmax_axis_1_of_3_columns, (ANY("x", 2, 3, 9)),                                        \
      ng_log_softmax(tape, in[0], .axes = NG_AXES(1)))                                             \
    X(log_softmax, (ANY("x", 3, 5)), ng_log_softmax(tape, in[0]))                                  \
    X(log_softmax_axis_0, (ANY("x", 4, 3)), ng_log_softmax(tape, in[0], .axes = NG_AXES(0)))

#define SWIGLU(X)                                                                                  \
    X(swiglu, (ANY("x", 2, 3, 8)), ng_swiglu(tape, in[0]))                                         \
    X(swiglu_one_row, (ANY("x", 6)), ng_swiglu(tape, in[0]))

#define OF_CLASSES ANY("logits", 6, 4), INDEX("labels", 4, 6), POSITIVE_CONSTANT("weights", 4)

#define LIKELIHOODS(X)                                                                             \
    X(nll, (ANY("x", 6, 4), INDEX("labels", 4, 6)),                                                \
      ng_nll(tape, ng_log_softmax(tape, in[0]), in[1]))                                            \
    X(nll_each_weights_ignored_label, (OF_CLASSES),                                                \
      ng_nll(tape, in[0], in[1], .reduction = NG_EACH, .ignore = true, .ignored = 2,               \
             .weights = in[2]))                                                                    \
    X(cross_entropy_weights, (OF_CLASSES), ng_cross_entropy(tape, in[0], in[1], .weights = in[2])) \
    X(cross_entropy_sum_weights_smoothing_ignored_label, (OF_CLASSES),                             \
      ng_cross_entropy(tape, in[0], in[1], .weights = in[2], .smoothing = 0.2, .ignore = true,     \
                       .ignored = 2, .reduction = NG_SUM))                                         \
    X(nll_channels_first, (ANY("x", 2, 3, 2), INDEX("labels", 3, 2, 2)),                           \
      ng_nll(tape, in[0], in[1], .channels_first = true))                                          \
    X(cross_entropy_probabilities, (ANY("logits", 3, 4), BETWEEN("labels", 0.1, 0.9, 3, 4)),       \
      ng_cross_entropy(tape, in[0], in[1]))                                                        \
    X(cross_entropy_each_probabilities_weights_smoothing_channels_first,                           \
      (ANY("logits", 2, 3, 2), BETWEEN("labels", 0.1, 0.9, 2, 3, 2),                               \
       POSITIVE_CONSTANT("weights", 3)),                                                           \
      ng_cross_entropy(tape, in[0], in[1], .weights = in[2], .smoothing = 0.2,                     \
                       .reduction = NG_EACH, .channels_first = true))                              \
    X(kl_divergence, (ANY("x", 3, 4), POSITIVE("t", 3, 4)), ng_kl_divergence(tape, in[0], in[1]))  \
    X(kl_divergence_each, (ANY("x", 3, 4), POSITIVE("t", 3, 4)),                                   \
      ng_kl_divergence(tape, in[0], in[1], .reduction = NG_EACH))

#define PAIR ANY("x", 3, 4), ANY("t", 3, 4)
#define LOGITS_AND_PROBABILITIES ANY("logits", 3, 4), BETWEEN("t", 0, 1, 3, 4)
#define LOGITS_AND_LABELS(rows, lowest, highest)                                                   \
    ANY("logits", rows, 4),                                                                        \
    {                                                                                              \
        .name = "labels", .shape = SHAPE(rows), .low = (lowest), .high = (highest) + 1,            \
        .index = true                                                                              \
    }

#define LOSSES(X)                                                                                  \
    X(mse, (PAIR), ng_mse(tape, in[0], in[1]))                                                     \
    X(mse_sum, (PAIR), ng_mse(tape, in[0], in[1], .reduction = NG_SUM))                            \
    X(mse_each, (PAIR), ng_mse(tape, in[0], in[1], .reduction = NG_EACH))                          \
    X(l1, (PAIR), ng_l1(tape, in[0], in[1]))                                                       \
    X(l1_sum, (PAIR), ng_l1(tape, in[0], in[1], .reduction = NG_SUM))                              \
    X(l1_each, (PAIR), ng_l1(tape, in[0], in[1], .reduction = NG_EACH))                            \
    X(huber, (PAIR), ng_huber(tape, in[0], in[1]))                                                 \
    X(huber_sum_delta_0_6, (PAIR),                                                                 \
      ng_huber(tape, in[0], in[1], .reduction = NG_SUM, .delta = 0.6))                             \
    X(huber_each_delta_2, (PAIR), ng_huber(tape, in[0], in[1], .reduction = NG_EACH, .delta = 2))  \
    X(binary_cross_entropy, (LOGITS_AND_PROBABILITIES),                                            \
      ng_binary_cross_entropy(tape, in[0], in[1]))                                                 \
    X(binary_cross_entropy_sum, (LOGITS_AND_PROBABILITIES),                                        \
      ng_binary_cross_entropy(tape, in[0], in[1], .reduction = NG_SUM))                            \
    X(binary_cross_entropy_each, (LOGITS_AND_PROBABILITIES),                                       \
      ng_binary_cross_entropy(tape, in[0], in[1], .reduction = NG_EACH))                           \
    X(binary_cross_entropy_weights_weights_of_positives,                                           \
      (LOGITS_AND_PROBABILITIES, POSITIVE_CONSTANT("weights", 3, 1),                               \
       POSITIVE_CONSTANT("positive_weights", 4)),                                                  \
      ng_binary_cross_entropy(tape, in[0], in[1], .weights = in[2], .positive_weights = in[3]))    \
    X(cross_entropy, (LOGITS_AND_LABELS(6, 0, 3)), ng_cross_entropy(tape, in[0], in[1]))           \
    X(cross_entropy_sum, (LOGITS_AND_LABELS(6, 0, 3)),                                             \
      ng_cross_entropy(tape, in[0], in[1], .reduction = NG_SUM))                                   \
    X(cross_entropy_each, (LOGITS_AND_LABELS(6, 0, 3)),                                            \
      ng_cross_entropy(tape, in[0], in[1], .reduction = NG_EACH))                                  \
    X(cross_entropy_smoothing, (LOGITS_AND_LABELS(6, 0, 3)),                                       \
      ng_cross_entropy(tape, in[0], in[1], .smoothing = 0.2))                                      \
    X(cross_entropy_ignored_label, (LOGITS_AND_LABELS(12, 1, 3)),                                  \
      ng_cross_entropy(tape, in[0], in[1], .ignore = true, .ignored = 2))                          \
    X(cross_entropy_each_smoothing_ignored_label, (LOGITS_AND_LABELS(12, -1, 1)),                  \
      ng_cross_entropy(tape, in[0], in[1], .reduction = NG_EACH, .smoothing = 0.1, .ignore = true, \
                       .ignored = -1))                                                             \
    X(cross_entropy_channels_first, (ANY("logits", 2, 3, 2, 2), INDEX("labels", 3, 2, 2, 2)),      \
      ng_cross_entropy(tape, in[0], in[1], .channels_first = true, .smoothing = 0.2))

#define TRIPLET ANY("anchor", 3, 4), ANY("positive", 3, 4), ANY("negative", 3, 4)

#define MARGINS(X)                                                                                 \
    X(hinge, (ANY("x", 3, 4), CONSTANT("target", 3, 4)),                                           \
      ng_hinge(tape, in[0], ng_sign(tape, in[1])))                                                 \
    X(hinge_each_classes, (ANY("x", 3, 4), INDEX("target", 4, 3)),                                 \
      ng_hinge(tape, in[0], in[1], .reduction = NG_EACH, .margin = 2))                             \
    X(hinge_embedding, (ANY("x", 3, 4), CONSTANT("target", 3, 4)),                                 \
      ng_hinge_embedding(tape, in[0], ng_sign(tape, in[1])))                                       \
    X(cosine_embedding, (ANY("a", 4, 3), ANY("b", 4, 3), CONSTANT("target", 4)),                   \
      ng_cosine_embedding(tape, in[0], in[1], ng_sign(tape, in[2]), .margin = -0.5))               \
    X(triplet, (TRIPLET), ng_triplet(tape, in[0], in[1], in[2], .margin = 2))                      \
    X(triplet_each_swap_order_3, (TRIPLET),                                                        \
      ng_triplet(tape, in[0], in[1], in[2], .margin = 3, .order = 3, .swap = true,                 \
                 .reduction = NG_EACH))                                                            \
    X(gaussian_nll, (ANY("x", 3, 4), ANY("target", 3, 4), POSITIVE("var", 3, 4)),                  \
      ng_gaussian_nll(tape, in[0], in[1], in[2]))                                                  \
    X(gaussian_nll_each_one_variance_a_row,                                                        \
      (ANY("x", 3, 4), ANY("target", 3, 4), POSITIVE("var", 3, 1)),                                \
      ng_gaussian_nll(tape, in[0], in[1], in[2], .full = true, .reduction = NG_EACH))

#define DROPOUT(X) X(dropout, (ANY("x", 5, 7)), ng_dropout(tape, in[0], 0.3))

#define ROTARY(X)                                                                                  \
    X(rotary, (ANY("x", 2, 3, 4)), ng_rotary(tape, in[0]))                                         \
    X(rotary_heads_part_of_the_features, (ANY("x", 2, 3, 5)),                                      \
      ng_rotary(tape, in[0], .dim = 2, .over = 4, .base = 50, .start = 3))

/* A mask from normal values: 1 above -0.7, about three quarters. */
static ng_tensor *mask_of(ng_tape *tape, ng_tensor *x)
{
    return ng_greater(tape, x, ng_full(tape, ng_dtype_of(x), NG_SCALAR, -0.7));
}

/* y and the weights side by side: (N, H, T, D + S). */
static ng_tensor *attention_weights_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *weights = NULL;
    ng_tensor *y = ng_attention(tape, in[0], in[1], in[2], NG_NONE, .causal = true, .dropout = 0.2,
                                .weights = &weights);
    return ng_concat(tape, NG_TENSORS(y, weights), -1);
}

#define MASK(...) CONSTANT("mask", __VA_ARGS__)

#define ATTENTION(X)                                                                               \
    X(attention, (ANY("q", 1, 2, 3, 2), ANY("k", 1, 2, 4, 2), ANY("v", 1, 2, 4, 2)),               \
      ng_attention(tape, in[0], in[1], in[2], NG_NONE))                                            \
    X(attention_causal, (ANY("q", 2, 1, 3, 2), ANY("k", 2, 1, 3, 2), ANY("v", 2, 1, 3, 2)),        \
      ng_attention(tape, in[0], in[1], in[2], NG_NONE, .causal = true))                            \
    X(attention_causal_more_queries_than_keys,                                                     \
      (ANY("q", 1, 2, 5, 2), ANY("k", 1, 2, 3, 2), ANY("v", 1, 2, 3, 2)),                          \
      ng_attention(tape, in[0], in[1], in[2], NG_NONE, .causal = true))                            \
    X(attention_key_mask,                                                                          \
      (ANY("q", 2, 1, 2, 3), ANY("k", 2, 1, 4, 3), ANY("v", 2, 1, 4, 3), MASK(2, 4)),              \
      ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .scale = 0.7))                 \
    X(attention_heads_side_by_side_causal,                                                         \
      (ANY("q", 1, 2, 4), ANY("k", 1, 3, 4), ANY("v", 1, 3, 4)),                                   \
      ng_attention(tape, in[0], in[1], in[2], NG_NONE, .heads = 2, .causal = true))                \
    X(attention_key_mask_dropout,                                                                  \
      (ANY("q", 2, 1, 2, 3), ANY("k", 2, 1, 4, 3), ANY("v", 2, 1, 4, 3), MASK(2, 4)),              \
      ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .dropout = 0.4))               \
    X(attention_shared_keys_and_values_causal_key_mask,                                            \
      (ANY("q", 2, 2, 8), ANY("k", 2, 3, 4), ANY("v", 2, 3, 4), MASK(2, 3)),                       \
      ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .heads = 4, .kv_heads = 2,     \
                   .causal = true))                                                                \
    X(attention_one_head_of_keys_and_values,                                                       \
      (ANY("q", 1, 3, 2, 2), ANY("k", 1, 1, 3, 2), ANY("v", 1, 1, 3, 2)),                          \
      ng_attention(tape, in[0], in[1], in[2], NG_NONE, .kv_heads = 1))                             \
    X(attention_mask_of_queries_and_keys,                                                          \
      (ANY("q", 2, 2, 4), ANY("k", 2, 3, 4), ANY("v", 2, 3, 4), MASK(1, 2, 3)),                    \
      ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .heads = 2))                   \
    X(attention_mask_of_each_head,                                                                 \
      (ANY("q", 2, 2, 4), ANY("k", 2, 3, 4), ANY("v", 2, 3, 4), MASK(2, 2, 2, 3)),                 \
      ng_attention(tape, in[0], in[1], in[2], mask_of(tape, in[3]), .heads = 2))                   \
    X(attention_with_its_weights,                                                                  \
      (ANY("q", 1, 2, 3, 2), ANY("k", 1, 2, 4, 2), ANY("v", 1, 2, 4, 2)),                          \
      attention_weights_result(tape, in))                                                          \
    X(self_attention_shared_keys_and_values_causal, (ANY("qkv", 2, 3, 8)),                         \
      ng_self_attention(tape, in[0], NG_NONE, .heads = 2, .kv_heads = 1, .causal = true))          \
    X(self_attention, (ANY("qkv", 2, 3, 6)), ng_self_attention(tape, in[0], NG_NONE, .heads = 2))  \
    X(self_attention_causal_key_mask, (ANY("qkv", 2, 4, 12), MASK(2, 4)),                          \
      ng_self_attention(tape, in[0], mask_of(tape, in[1]), .heads = 2, .causal = true))            \
    X(self_attention_causal_dropout, (ANY("qkv", 2, 4, 12)),                                       \
      ng_self_attention(tape, in[0], NG_NONE, .heads = 2, .causal = true, .dropout = 0.3))

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

static ng_tensor *rnn_all_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_recurrent_state state = {in[5], NG_NONE};
    ng_tensor *y = ng_rnn(tape, in[0], WEIGHTS, state, in[6], .reverse = true, .last = &state);
    return with_last(tape, y, &state);
}

static ng_tensor *gru_all_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_recurrent_state state = {in[5], NG_NONE};
    ng_tensor *y = ng_gru(tape, in[0], WEIGHTS, state, in[6], .last = &state);
    return with_last(tape, y, &state);
}

static ng_tensor *lstm_all_result(ng_tape *tape, ng_tensor *const *in)
{
    ng_recurrent_state state = {in[5], in[6]};
    ng_tensor *y = ng_lstm(tape, in[0], WEIGHTS, state, in[7], .reverse = true, .last = &state);
    return with_last(tape, y, &state);
}

#define CELL_INPUTS(gates, h)                                                                      \
    ANY("x", 2, 3, 2), ANY("weight_ih", gates *h, 2), ANY("weight_hh", gates *h, h),               \
        ANY("bias_ih", gates *h), ANY("bias_hh", gates *h)

#define RECURRENT(X)                                                                               \
    X(rnn, (CELL_INPUTS(1, 3)), ng_rnn(tape, in[0], WEIGHTS, NG_NO_STATE, NG_NONE))                \
    X(rnn_relu, (CELL_INPUTS(1, 3)),                                                               \
      ng_rnn(tape, in[0], WEIGHTS, NG_NO_STATE, NG_NONE, .relu = true))                            \
    X(rnn_reverse_lengths_states, (CELL_INPUTS(1, 2), ANY("h0", 2, 2), INDEX("lengths", 4, 2)),    \
      rnn_all_result(tape, in))                                                                    \
    X(gru_no_bias_reverse, (ANY("x", 2, 3, 2), ANY("weight_ih", 6, 2), ANY("weight_hh", 6, 2)),    \
      ng_gru(tape, in[0], NO_BIAS, NG_NO_STATE, NG_NONE, .reverse = true))                         \
    X(gru_lengths_states, (CELL_INPUTS(3, 2), ANY("h0", 2, 2), INDEX("lengths", 4, 2)),            \
      gru_all_result(tape, in))                                                                    \
    X(lstm_no_bias, (ANY("x", 2, 3, 2), ANY("weight_ih", 8, 2), ANY("weight_hh", 8, 2)),           \
      ng_lstm(tape, in[0], NO_BIAS, NG_NO_STATE, NG_NONE))                                         \
    X(lstm_reverse_lengths_states,                                                                 \
      (CELL_INPUTS(4, 2), ANY("h0", 2, 2), ANY("c0", 2, 2), INDEX("lengths", 4, 2)),               \
      lstm_all_result(tape, in))

#define WEIGHT(...) ANY("weight", __VA_ARGS__)
#define BIAS ANY("bias", 2)

#define CONV2D(X)                                                                                  \
    X(conv2d, (ANY("x", 2, 2, 3, 4), WEIGHT(2, 2, 2, 3), BIAS),                                    \
      ng_conv2d(tape, in[0], in[1], in[2]))                                                        \
    X(conv2d_no_bias, (ANY("x", 2, 1, 3, 3), WEIGHT(2, 1, 2, 2)),                                  \
      ng_conv2d(tape, in[0], in[1], NG_NONE))                                                      \
    X(conv2d_1_x_1, (ANY("x", 2, 3, 2, 2), WEIGHT(2, 3, 1, 1), BIAS),                              \
      ng_conv2d(tape, in[0], in[1], in[2]))                                                        \
    X(conv2d_padding, (ANY("x", 1, 2, 3, 4), WEIGHT(2, 2, 3, 3), BIAS),                            \
      ng_conv2d(tape, in[0], in[1], in[2], .padding = 1))                                          \
    X(conv2d_stride, (ANY("x", 2, 1, 4, 5), WEIGHT(2, 1, 3, 3), BIAS),                             \
      ng_conv2d(tape, in[0], in[1], in[2], .stride = 2, .padding = 1))                             \
    X(conv2d_dilation, (ANY("x", 1, 2, 4, 4), WEIGHT(2, 2, 2, 2), BIAS),                           \
      ng_conv2d(tape, in[0], in[1], in[2], .dilation = 2, .padding_h = 1))                         \
    X(conv2d_groups, (ANY("x", 1, 4, 3, 3), WEIGHT(2, 2, 2, 2), BIAS),                             \
      ng_conv2d(tape, in[0], in[1], in[2], .padding_w = 1, .groups = 2))                           \
    X(conv2d_depthwise, (ANY("x", 2, 2, 3, 3), WEIGHT(2, 1, 2, 2), BIAS),                          \
      ng_conv2d(tape, in[0], in[1], in[2], .padding_w = 1, .groups = 2))                           \
    X(conv2d_stride_padding_dilation_groups, (ANY("x", 1, 2, 3, 5), WEIGHT(2, 1, 2, 3), BIAS),     \
      ng_conv2d(tape, in[0], in[1], in[2], .stride_w = 2, .padding = 2, .padding_w = 1,            \
                .dilation_h = 2, .groups = 2))                                                     \
    X(conv1d, (ANY("x", 2, 3, 5), WEIGHT(2, 3, 2), BIAS), ng_conv1d(tape, in[0], in[1], in[2]))    \
    X(conv1d_no_bias_padding, (ANY("x", 1, 2, 4), WEIGHT(3, 2, 3)),                                \
      ng_conv1d(tape, in[0], in[1], NG_NONE, .padding = 1))                                        \
    X(conv1d_stride_padding_dilation_groups, (ANY("x", 2, 2, 6), WEIGHT(2, 1, 3), BIAS),           \
      ng_conv1d(tape, in[0], in[1], in[2], .stride = 2, .padding = 2, .dilation = 2, .groups = 2))

#define CONV_TRANSPOSE(X)                                                                          \
    X(conv_transpose2d, (ANY("x", 2, 3, 2, 3), WEIGHT(3, 2, 2, 2), BIAS),                          \
      ng_conv_transpose2d(tape, in[0], in[1], in[2]))                                              \
    X(conv_transpose2d_no_bias, (ANY("x", 2, 1, 2, 2), WEIGHT(1, 2, 3, 2)),                        \
      ng_conv_transpose2d(tape, in[0], in[1], NG_NONE, .stride = 2))                               \
    X(conv_transpose2d_stride_padding_output_padding,                                              \
      (ANY("x", 1, 2, 2, 3), WEIGHT(2, 2, 3, 3), BIAS),                                            \
      ng_conv_transpose2d(tape, in[0], in[1], in[2], .stride = 2, .padding = 1,                    \
                          .output_padding = 1))                                                    \
    X(conv_transpose2d_stride_padding_dilation_groups,                                             \
      (ANY("x", 1, 4, 3, 2), WEIGHT(4, 1, 2, 2), BIAS),                                            \
      ng_conv_transpose2d(tape, in[0], in[1], in[2], .stride_w = 3, .padding_h = 1, .dilation = 2, \
                          .output_padding_w = 2, .groups = 2))                                     \
    X(conv_transpose1d, (ANY("x", 2, 3, 3), WEIGHT(3, 2, 2), BIAS),                                \
      ng_conv_transpose1d(tape, in[0], in[1], in[2]))                                              \
    X(conv_transpose1d_stride_padding_dilation_groups, (ANY("x", 2, 2, 3), WEIGHT(2, 1, 3), BIAS), \
      ng_conv_transpose1d(tape, in[0], in[1], in[2], .stride = 3, .padding = 1, .dilation = 2,     \
                          .output_padding = 1, .groups = 2))

#define IMAGE(X)                                                                                   \
    X(unfold, (ANY("x", 2, 2, 3, 4)), ng_unfold(tape, in[0], 2))                                   \
    X(unfold_padding, (ANY("x", 1, 2, 3, 4)), ng_unfold(tape, in[0], 3, .padding = 1))             \
    X(unfold_stride_padding_dilation, (ANY("x", 1, 2, 5, 4)),                                      \
      ng_unfold(tape, in[0], 2, .kernel_w = 3, .stride_h = 2, .padding_w = 2, .dilation_w = 2))    \
    X(fold, (ANY("columns", 2, 8, 6)), ng_fold(tape, in[0], 3, 4, 2))                              \
    X(fold_stride_padding_dilation, (ANY("columns", 1, 12, 8)),                                    \
      ng_fold(tape, in[0], 5, 4, 2, .kernel_w = 3, .stride_h = 2, .padding_w = 2,                  \
              .dilation_w = 2))                                                                    \
    X(max_pool2d, (ANY("x", 2, 2, 4, 5)), ng_max_pool2d(tape, in[0], 2))                           \
    X(max_pool2d_stride_padding_dilation, (ANY("x", 1, 2, 5, 6)),                                  \
      ng_max_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .dilation_w = 2))                   \
    X(avg_pool2d, (ANY("x", 2, 2, 4, 5)), ng_avg_pool2d(tape, in[0], 2))                           \
    X(avg_pool2d_stride_padding, (ANY("x", 1, 2, 3, 4)),                                           \
      ng_avg_pool2d(tape, in[0], 3, .kernel_w = 2, .stride = 1, .padding = 1))                     \
    X(unfold_ceil, (ANY("x", 1, 2, 3, 3)), ng_unfold(tape, in[0], 2, .stride = 2, .ceil = true))   \
    X(max_pool2d_ceil, (ANY("x", 2, 2, 5, 4)),                                                     \
      ng_max_pool2d(tape, in[0], 3, .stride = 2, .padding_w = 1, .ceil = true))                    \
    X(avg_pool2d_ceil, (ANY("x", 1, 2, 4, 5)),                                                     \
      ng_avg_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .ceil = true))                      \
    X(avg_pool2d_without_the_padding, (ANY("x", 1, 2, 3, 4)),                                      \
      ng_avg_pool2d(tape, in[0], 3, .stride = 2, .padding = 1, .exclude_padding = true))           \
    X(max_pool1d, (ANY("x", 2, 2, 6)), ng_max_pool1d(tape, in[0], 3, .stride = 2, .padding = 1))   \
    X(avg_pool1d, (ANY("x", 2, 2, 5)), ng_avg_pool1d(tape, in[0], 2, .ceil = true))                \
    X(global_avg_pool, (ANY("x", 2, 3, 2, 4)), ng_global_avg_pool(tape, in[0]))                    \
    X(flatten, (ANY("x", 2, 3, 2, 2)), ng_flatten(tape, in[0]))

#define ADAPTIVE_POOL(X)                                                                           \
    X(adaptive_avg_pool, (ANY("x", 2, 2, 5, 4)),                                                   \
      ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(3, 2)))                                           \
    X(adaptive_avg_pool_line, (ANY("x", 2, 2, 6)), ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(4))) \
    X(adaptive_avg_pool_longer_line, (ANY("x", 2, 2, 3)),                                          \
      ng_adaptive_avg_pool(tape, in[0], NG_SHAPE(4)))                                              \
    X(adaptive_max_pool, (ANY("x", 2, 2, 5, 4)), ng_adaptive_max_pool(tape, in[0], NG_SHAPE(3, 2)))

#define UPSAMPLE(X)                                                                                \
    X(upsample, (ANY("x", 2, 2, 2, 3)), ng_upsample(tape, in[0], 2))                               \
    X(upsample_lines, (ANY("x", 2, 2, 3)), ng_upsample(tape, in[0], 2))                            \
    X(upsample_bilinear, (ANY("x", 1, 2, 2, 3)), ng_upsample(tape, in[0], 2, .mode = NG_LINEAR))   \
    X(upsample_linear_lines, (ANY("x", 2, 2, 3)), ng_upsample(tape, in[0], 2, .mode = NG_LINEAR))  \
    X(upsample_bilinear_corners, (ANY("x", 1, 2, 2, 3)),                                           \
      ng_upsample(tape, in[0], 3, .mode = NG_LINEAR, .align_corners = true))                       \
    X(interpolate, (ANY("x", 1, 2, 3, 4)), ng_interpolate(tape, in[0], NG_SHAPE(5, 2)))            \
    X(interpolate_bilinear, (ANY("x", 1, 2, 3, 4)),                                                \
      ng_interpolate(tape, in[0], NG_SHAPE(2, 5), .mode = NG_LINEAR))

/* Sizes around vectors and blocks (large_case). */
#define HEADS(n, h, t, s, d) ANY("q", n, h, t, d), ANY("k", n, h, s, d), ANY("v", n, h, s, d)
#define ATTENDED(...) ng_attention(tape, in[0], in[1], in[2], __VA_ARGS__)
#define STATES(h) ANY("h0", 2, h), INDEX("lengths", 4, 2)
#define LSTM_STATES(h) ANY("h0", 2, h), ANY("c0", 2, h), INDEX("lengths", 4, 2)
#define IMAGES(n, c, h, w, out, each, kh, kw)                                                      \
    ANY("x", n, c, h, w), WEIGHT(out, each, kh, kw), ANY("bias", out)
#define CONVOLVED(...) ng_conv2d(tape, in[0], in[1], in[2], __VA_ARGS__)

#define ANY_LOGITS(...) BETWEEN("logits", -9, 9, __VA_ARGS__)

#define LARGE(X)                                                                                   \
    X(attention_of_one, (HEADS(2, 2, 1, 1, 1)), ATTENDED(NG_NONE, .scale = 2))                     \
    X(attention_few_queries, (HEADS(2, 2, 3, 5, 67), MASK(2, 5)),                                  \
      ATTENDED(mask_of(tape, in[3]), .dropout = 0.25))                                             \
    X(attention_whole_blocks, (HEADS(2, 2, 64, 64, 32)), ATTENDED(NG_NONE, .causal = true))        \
    X(attention_more_keys, (HEADS(2, 2, 70, 131, 13), MASK(2, 131)),                               \
      ATTENDED(mask_of(tape, in[3]), .causal = true, .dropout = 0.25))                             \
    X(attention_more_queries, (HEADS(2, 2, 130, 65, 16), MASK(2, 65)),                             \
      ATTENDED(mask_of(tape, in[3]), .scale = 0.5))                                                \
    X(attention_deep_heads, (HEADS(2, 1, 67, 66, 131)), ATTENDED(NG_NONE, .dropout = 0.25))        \
    X(softmax_of_1, (ANY_LOGITS(3, 1)), ng_softmax(tape, in[0]))                                   \
    X(softmax_of_65, (ANY_LOGITS(3, 65)), ng_softmax(tape, in[0]))                                 \
    X(softmax_of_1000, (ANY_LOGITS(3, 1000)), ng_softmax(tape, in[0]))                             \
    X(softmax_of_columns, (ANY_LOGITS(2, 5, 33)), ng_softmax(tape, in[0], .axes = NG_AXES(1)))     \
    X(softmax_of_many_columns, (ANY_LOGITS(2, 99, 70)),                                            \
      ng_softmax(tape, in[0], .axes = NG_AXES(1)))                                                 \
    X(cross_entropy_of_7, (ANY_LOGITS(4, 7), INDEX("labels", 7, 4)),                               \
      ng_cross_entropy(tape, in[0], in[1], .smoothing = 0.1))                                      \
    X(cross_entropy_of_65, (ANY_LOGITS(4, 65), INDEX("labels", 65, 4)),                            \
      ng_cross_entropy(tape, in[0], in[1], .reduction = NG_SUM))                                   \
    X(cross_entropy_of_1023, (ANY_LOGITS(9, 1023), INDEX("labels", 3, 9)),                         \
      ng_cross_entropy(tape, in[0], in[1], .reduction = NG_EACH, .smoothing = 0.1, .ignore = true, \
                       .ignored = 2))                                                              \
    X(swiglu_of_17, (BETWEEN("x", -6, 6, 3, 34)), ng_swiglu(tape, in[0]))                          \
    X(swiglu_of_1023, (BETWEEN("x", -6, 6, 3, 2046)), ng_swiglu(tape, in[0]))                      \
    X(gru_of_7, (CELL_INPUTS(3, 7), STATES(7)), gru_all_result(tape, in))                          \
    X(gru_of_33, (CELL_INPUTS(3, 33), STATES(33)), gru_all_result(tape, in))                       \
    X(lstm_of_17, (CELL_INPUTS(4, 17), LSTM_STATES(17)), lstm_all_result(tape, in))                \
    X(lstm_of_63, (CELL_INPUTS(4, 63), LSTM_STATES(63)), lstm_all_result(tape, in))                \
    X(conv2d_many_images, (IMAGES(37, 3, 9, 11, 5, 3, 3, 3)), CONVOLVED(.padding = 1))             \
    X(conv2d_large_images, (IMAGES(3, 16, 33, 35, 48, 16, 3, 3)), CONVOLVED(.padding = 1))         \
    X(conv2d_many_points, (IMAGES(20, 24, 6, 6, 32, 24, 1, 1)), CONVOLVED(.groups = 1))            \
    X(conv2d_strides_and_edges, (IMAGES(5, 2, 31, 30, 3, 2, 5, 4)),                                \
      CONVOLVED(.stride = 3, .padding = 2))                                                        \
    X(conv2d_small_images, (IMAGES(75, 3, 4, 5, 7, 3, 3, 3)), CONVOLVED(.padding = 1))             \
    X(conv2d_small_points, (IMAGES(64, 5, 3, 3, 4, 5, 1, 1)), CONVOLVED(.groups = 1))              \
    X(depthwise_many_channels, (IMAGES(1, 17, 7, 9, 17, 1, 3, 3)),                                 \
      CONVOLVED(.padding = 1, .groups = 17))                                                       \
    X(depthwise_stride, (IMAGES(3, 2, 8, 35, 2, 1, 2, 3)), CONVOLVED(.stride = 2, .groups = 2))    \
    X(depthwise_dilation, (IMAGES(3, 2, 9, 11, 2, 1, 3, 2)),                                       \
      CONVOLVED(.dilation = 2, .dilation_w = 4, .groups = 2))                                      \
    X(depthwise_stride_and_edges, (IMAGES(1, 17, 5, 40, 17, 1, 4, 5)),                             \
      CONVOLVED(.stride = 2, .padding = 2, .groups = 17))                                          \
    X(depthwise_low_and_wide, (IMAGES(3, 2, 3, 500, 2, 1, 2, 3)),                                  \
      CONVOLVED(.padding = 1, .dilation_h = 2, .groups = 2))                                       \
    X(depthwise_wide_edges, (IMAGES(3, 2, 5, 5, 2, 1, 5, 5)),                                      \
      CONVOLVED(.padding = 4, .dilation = 2, .groups = 2))
LARGE(OP_CALL)
static const gradient_case large[] = {LARGE(OP_ROW)};
const case_list large_cases = LIST(large);

/* clang-format off */
#define ALL(X)                                                                                     \
    ACTIVATIONS(X) SOFTMAX(X) SWIGLU(X) LIKELIHOODS(X) LOSSES(X) MARGINS(X) DROPOUT(X) ROTARY(X)   \
    ATTENTION(X) RECURRENT(X) CONV2D(X) CONV_TRANSPOSE(X) IMAGE(X) ADAPTIVE_POOL(X) UPSAMPLE(X)
/* clang-format on */

ALL(OP_CALL)

static const gradient_case cases[] = {ALL(OP_ROW)};
const case_list fused_cases = LIST(cases);
