/* The cases of modules. */
#include "table.h"

#define SEQUENTIAL(X)                                                                              \
    X(Sequential, (ANY("x", 3, 4)),                                                                \
      ng_sequential_new(ng_linear_new(4, 5), ng_layer_norm_new(5), ng_gelu_new(),                  \
                        ng_linear_new(5, 2)))                                                      \
    X(Sequential_residual_convolution, (BATCH("x", 2, 2, 3, 3)),                                   \
      ng_sequential_new(                                                                           \
          ng_residual_new(ng_sequential_new(ng_conv2d_new(2, 2, 3, .padding = 1, .no_bias = true), \
                                            ng_batch_norm_new(2), ng_silu_new())),                 \
          ng_global_avg_pool_new(), ng_linear_new(2, 2)))

#define RESIDUAL(X)                                                                                \
    X(Residual, (ANY("x", 3, 4)),                                                                  \
      ng_residual_new(ng_sequential_new(ng_rms_norm_new(4), ng_linear_new(4, 4))))                 \
    X(Residual_conditioned, (ANY("x", 3, 4), ANY("condition", 3, 3)),                              \
      ng_residual_new(ng_adaptive_layer_norm_new(4, .condition = 3)))

#define LINEAR(X)                                                                                  \
    X(Linear, (ANY("x", 3, 4)), ng_linear_new(4, 3))                                               \
    X(Linear_batched, (ANY("x", 2, 3, 4)), ng_linear_new(4, 3))                                    \
    X(Linear_no_bias, (ANY("x", 3, 4)), ng_linear_new(4, 3, .no_bias = true))

static ng_module *standardize_made(void)
{
    ng_tensor *samples = ng_tensor_from(NG_F64, NG_SHAPE(2, 3), NG_VALUES(1, -2, 5, 4, 0, 5));
    ng_module *layer = samples ? ng_standardize_new(3, .samples = samples) : NULL;
    ng_tensor_free(samples);
    return layer;
}

#define STANDARDIZE(X) X(Standardize, (ANY("x", 4, 3)), standardize_made())

#define ACTIVATIONS(X)                                                                             \
    X(ReLU, (NOT_ZERO("x", 3, 4)), ng_relu_new())                                                  \
    X(LeakyReLU, (NOT_ZERO("x", 3, 4)), ng_leaky_relu_new(0.1))                                    \
    X(GELU, (ANY("x", 3, 4)), ng_gelu_new())                                                       \
    X(GELUTanh, (ANY("x", 3, 4)), ng_gelu_tanh_new())                                              \
    X(SiLU, (ANY("x", 3, 4)), ng_silu_new())                                                       \
    X(Tanh, (ANY("x", 3, 4)), ng_tanh_new())                                                       \
    X(Sigmoid, (ANY("x", 3, 4)), ng_sigmoid_new())                                                 \
    X(Softplus, (ANY("x", 3, 4)), ng_softplus_new())                                               \
    X(GLU, (ANY("x", 3, 4)), ng_glu_new())                                                         \
    X(ELU, (NOT_ZERO("x", 3, 4)), ng_elu_new(0.8))                                                 \
    X(CELU, (NOT_ZERO("x", 3, 4)), ng_celu_new(0.7))                                               \
    X(PReLU, (NOT_ZERO("x", 3, 4)), ng_prelu_new(1))                                               \
    X(PReLU_channels, (NOT_ZERO("x", 2, 4, 3)), ng_prelu_new(4, .slope = 0.1))                     \
    X(Function_sin, (ANY("x", 3, 4)), ng_function_new("sin", ng_sin))

#define DROPOUT(X) X(Dropout, (BATCH("x", 3, 4)), ng_dropout_new(0.3))
#define DROPOUT_EVALUATED(X) X(Dropout_eval, (ANY("x", 3, 4)), ng_dropout_new(0.3))

#define EMBEDDING(X)                                                                               \
    X(Embedding, (INDEX("ids", 5, 2, 3)), ng_embedding_new(5, 3))                                  \
    X(Embedding_padding, (INDEX("ids", 5, 3, 4)),                                                  \
      ng_embedding_new(5, 3, .padded = true, .padding = 2))                                        \
    X(LearnedPositions, (ANY("x", 2, 4, 2)), ng_learned_positions_new(4, 2))                       \
    X(LearnedPositions_shorter, (ANY("x", 2, 3, 2)), ng_learned_positions_new(4, 2))

#define FEED_FORWARD(X)                                                                            \
    X(FeedForward, (ANY("x", 2, 3)), ng_feed_forward_new(3))                                       \
    X(FeedForward_GELUTanh, (ANY("x", 2, 3)),                                                      \
      ng_feed_forward_new(3, .hidden = 4, .activation = NG_FEED_FORWARD_GELU_TANH))                \
    X(FeedForward_SwiGLU, (ANY("x", 1, 2, 3)),                                                     \
      ng_feed_forward_new(3, .activation = NG_FEED_FORWARD_SWIGLU, .no_bias = true))

#define ATTENTION(X)                                                                               \
    X(MultiHeadAttention, (ANY("x", 2, 3, 4)), ng_multi_head_attention_new(4, 2))                  \
    X(MultiHeadAttention_causal_rotary, (ANY("x", 2, 3, 4)),                                       \
      ng_multi_head_attention_new(4, 1, .causal = true, .rotary = true, .no_bias = true))          \
    X(MultiHeadAttention_dropout, (BATCH("x", 2, 3, 4)),                                           \
      ng_multi_head_attention_new(4, 2, .dropout = 0.3))                                           \
    X(MultiHeadAttention_QK_RMSNorm_causal_rotary, (ANY("x", 2, 3, 4)),                            \
      ng_multi_head_attention_new(4, 2, .causal = true, .rotary = true, .qk_norm = ng_norm_rms))   \
    X(MultiHeadAttention_QK_LayerNorm, (ANY("x", 1, 3, 6)),                                        \
      ng_multi_head_attention_new(6, 2, .qk_norm = ng_norm_layer))                                 \
    X(MultiHeadAttention_LayerNorm_of_v, (ANY("x", 1, 3, 6)),                                      \
      ng_multi_head_attention_new(6, 2, .v_norm = ng_norm_layer))                                  \
    X(MultiHeadAttention_learned_temperature, (ANY("x", 2, 3, 4)),                                 \
      ng_multi_head_attention_new(4, 2, .causal = true, .qk_temperature = 2))                      \
    X(MultiHeadAttention_shared_keys_and_values_causal_rotary, (ANY("x", 2, 3, 8)),                \
      ng_multi_head_attention_new(8, 4, .kv_heads = 2, .causal = true, .rotary = true))            \
    X(MultiHeadAttention_one_head_of_keys_and_values_QK_RMSNorm, (ANY("x", 2, 3, 6)),              \
      ng_multi_head_attention_new(6, 3, .kv_heads = 1, .qk_norm = ng_norm_rms))                    \
    X(MultiHeadAttention_cross, (ANY("x", 2, 3, 4), ANY("memory", 2, 2, 3)),                       \
      ng_multi_head_attention_new(4, 2, .context = 3))                                             \
    X(MultiHeadAttention_cross_shared_causal_QK_LayerNorm,                                         \
      (ANY("x", 1, 2, 6), ANY("memory", 1, 3, 3)),                                                 \
      ng_multi_head_attention_new(6, 2, .context = 3, .kv_heads = 1, .causal = true,               \
                                  .no_bias = true, .qk_norm = ng_norm_layer))
#define ATTENTION_EVALUATED(X)                                                                     \
    X(MultiHeadAttention_dropout_eval, (ANY("x", 2, 3, 4)),                                        \
      ng_multi_head_attention_new(4, 2, .dropout = 0.3))

#define PLACED(n, ...)                                                                             \
    ng_transformer_new(5, .dim = 4, .heads = n, .layers = 2, .length = 4, .hidden = 3,             \
                       .placement = __VA_ARGS__)

/* alpha is 1, so that the coefficients depend on the streams. */
static ng_module *hyper_made(void)
{
    ng_module *net = PLACED(2, NG_NORM_HYPER, .streams = 2);
    for (int i = 0; net && i < 4; i++) {
        char name[64];
        snprintf(name, sizeof name, "blocks.%d.%s_connection.alpha", i / 2,
                 i % 2 ? "feed_forward" : "attention");
        if (ng_fill(ng_module_find(net, name), 1)) return NULL;
    }
    return net;
}

#define TRANSFORMER(X)                                                                             \
    X(TransformerBlock_pre, (ANY("x", 2, 3, 4)),                                                   \
      ng_transformer_block_new(4, 2, .hidden = 3, .norm = ng_norm_rms, .causal = true,             \
                               .activation = NG_FEED_FORWARD_SWIGLU))                              \
    X(TransformerBlock_post, (BATCH("x", 2, 3, 4)),                                                \
      ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_POST, .dropout = 0.2))      \
    X(TransformerBlock_Peri_LN, (ANY("x", 2, 3, 4)),                                               \
      ng_transformer_block_new(4, 2, .kv_heads = 1, .hidden = 3, .placement = NG_NORM_PERI,        \
                               .qk_norm = ng_norm_rms))                                            \
    X(TransformerBlock_DeepNorm, (ANY("x", 2, 3, 4)),                                              \
      ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_DEEP, .layers = 3))         \
    X(TransformerBlock_HybridNorm, (ANY("x", 2, 3, 6)),                                            \
      ng_transformer_block_new(6, 2, .kv_heads = 1, .hidden = 3, .placement = NG_NORM_HYBRID,      \
                               .norm = ng_norm_rms))                                               \
    X(TransformerBlock_ResiDual, (BATCH("x", 2, 3, 8)),                                            \
      ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_DUAL, .dropout = 0.2))      \
    X(TransformerBlock_LayerNorm_scaling, (ANY("x", 2, 3, 4)),                                     \
      ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_SCALED, .layer = 3))        \
    X(TransformerBlock_Derf, (ANY("x", 2, 3, 4)),                                                  \
      ng_transformer_block_new(4, 2, .hidden = 3, .norm = ng_norm_derf))                           \
    X(TransformerBlock_BatchNorm, (BATCH("x", 2, 3, 4)),                                           \
      ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_batch))                          \
    X(TransformerBlock_OLMo_2, (ANY("x", 2, 3, 4)),                                                \
      ng_transformer_block_new(4, 2, .kv_heads = 1, .hidden = 3, .placement = NG_NORM_OLMO2,       \
                               .norm = ng_norm_rms, .qk_norm = ng_norm_rms,                        \
                               .qk_norm_whole = true))                                             \
    X(TransformerBlock_hyper_connections, (BATCH("x", 2, 2, 8)),                                   \
      ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_HYPER, .streams = 2,        \
                               .dropout = 0.2))                                                    \
    X(TransformerBlock_no_norm, (ANY("x", 2, 2, 4)),                                               \
      ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_none))                           \
    X(Transformer, (INDEX("ids", 5, 2, 3)),                                                        \
      ng_transformer_new(5, .dim = 4, .heads = 2, .layers = 2, .length = 4, .hidden = 3))          \
    X(Transformer_OLMo_2, (INDEX("ids", 5, 2, 3)), PLACED(2, NG_NORM_OLMO2))                       \
    X(Transformer_hyper_connections, (INDEX("ids", 5, 2, 3)), hyper_made())                        \
    X(Transformer_Peri_LN, (INDEX("ids", 5, 2, 3)), PLACED(2, NG_NORM_PERI))                       \
    X(Transformer_HybridNorm, (INDEX("ids", 5, 2, 3)),                                             \
      PLACED(1, NG_NORM_HYBRID, .norm = ng_norm_rms))                                              \
    X(Transformer_ResiDual, (INDEX("ids", 5, 2, 3)), PLACED(2, NG_NORM_DUAL))                      \
    X(Transformer_LayerNorm_scaling, (INDEX("ids", 5, 2, 3)), PLACED(2, NG_NORM_SCALED))           \
    X(Transformer_Mix_LN, (INDEX("ids", 5, 2, 3)), PLACED(2, NG_NORM_MIX, .post_share = 0.5))      \
    X(Transformer_rotary_DeepNorm, (INDEX("ids", 5, 2, 3)),                                        \
      ng_transformer_new(5, .dim = 4, .heads = 1, .layers = 1, .hidden = 3, .norm = ng_norm_rms,   \
                         .placement = NG_NORM_DEEP, .positions = NG_POSITIONS_ROTARY,              \
                         .bidirectional = true))

/* Lengths from 1 to 3. */
#define CASE_LENGTHS(rows)                                                                         \
    {                                                                                              \
        .name = "lengths", .shape = SHAPE(rows), .low = 1, .high = 4, .index = true                \
    }

#define RECURRENT(X)                                                                               \
    X(RNN_relu_no_bias, (ANY("x", 2, 3, 2)), ng_rnn_new(2, 3, .relu = true, .no_bias = true))      \
    X(GRU_two_layers_both_directions, (ANY("x", 2, 3, 2)),                                         \
      ng_gru_new(2, 2, .layers = 2, .bidirectional = true))                                        \
    X(LSTM_two_layers_dropout, (BATCH("x", 2, 3, 2)),                                              \
      ng_lstm_new(2, 2, .layers = 2, .dropout = 0.3))                                              \
    X(LSTM_both_directions_lengths, (ANY("x", 3, 3, 2), CASE_LENGTHS(3)),                          \
      ng_lstm_new(2, 2, .bidirectional = true))                                                    \
    X(RNN_LayerNorm, (ANY("x", 2, 3, 2)), ng_rnn_new(2, 3, .norm = ng_norm_layer))                 \
    X(GRU_LayerNorm, (ANY("x", 2, 2, 2)), ng_gru_new(2, 3, .norm = ng_norm_layer))                 \
    X(LSTM_LayerNorm_both_directions_lengths, (ANY("x", 2, 3, 2), CASE_LENGTHS(2)),                \
      ng_lstm_new(2, 3, .norm = ng_norm_layer, .bidirectional = true))                             \
    X(LSTM_RMSNorm, (ANY("x", 2, 2, 2)), ng_lstm_new(2, 3, .norm = ng_norm_rms))

#define CONV2D(X)                                                                                  \
    X(Conv2d, (ANY("x", 2, 2, 3, 3)), ng_conv2d_new(2, 3, 2))                                      \
    X(Conv2d_no_bias, (ANY("x", 2, 2, 3, 3)),                                                      \
      ng_conv2d_new(2, 3, 1, .stride = 2, .no_bias = true))                                        \
    X(Conv2d_stride_padding_dilation_groups, (ANY("x", 1, 2, 3, 4)),                               \
      ng_conv2d_new(2, 4, 3, .kernel_w = 2, .stride_w = 2, .padding = 1, .dilation_w = 2,          \
                    .groups = 2))                                                                  \
    X(Conv1d, (ANY("x", 2, 2, 5)), ng_conv1d_new(2, 4, 3, .stride = 2, .padding = 1, .groups = 2)) \
    X(ConvTranspose2d, (ANY("x", 1, 2, 2, 3)),                                                     \
      ng_conv_transpose2d_new(2, 2, 2, .stride = 2, .padding_w = 1, .output_padding_h = 1))        \
    X(ConvTranspose1d, (ANY("x", 2, 2, 3)),                                                        \
      ng_conv_transpose1d_new(2, 4, 3, .stride = 2, .padding = 1, .output_padding = 1,             \
                              .groups = 2, .no_bias = true))

#define POOLING(X)                                                                                 \
    X(MaxPool2d, (ANY("x", 2, 2, 2, 4)), ng_max_pool2d_new(2))                                     \
    X(AvgPool2d, (ANY("x", 2, 1, 4, 4)),                                                           \
      ng_avg_pool2d_new(3, .kernel_w = 2, .stride = 2, .padding = 1))                              \
    X(MaxPool1d, (ANY("x", 2, 2, 5)), ng_max_pool1d_new(2, .ceil = true))                          \
    X(AvgPool1d, (ANY("x", 2, 2, 4)),                                                              \
      ng_avg_pool1d_new(3, .stride = 1, .padding = 1, .exclude_padding = true))                    \
    X(AdaptiveAvgPool, (ANY("x", 1, 2, 3, 4)), ng_adaptive_avg_pool_new(NG_SHAPE(2, 3)))           \
    X(AdaptiveMaxPool, (ANY("x", 2, 2, 5)), ng_adaptive_max_pool_new(NG_SHAPE(2)))                 \
    X(Upsample, (ANY("x", 2, 2, 2, 1)), ng_upsample_new(2))                                        \
    X(Upsample_linear_corners, (ANY("x", 1, 2, 2, 3)),                                             \
      ng_upsample_new(3, .mode = NG_LINEAR, .align_corners = true))                                \
    X(GlobalAvgPool, (ANY("x", 2, 2, 2, 3)), ng_global_avg_pool_new())                             \
    X(Flatten, (ANY("x", 2, 2, 2, 1)), ng_flatten_new())

#define ADAPTIVE_RESIDUAL(X)                                                                       \
    X(AdaptiveResidual, (ANY("x", 2, 3, 4), ANY("condition", 2, 1, 3)),                            \
      ng_adaptive_residual_new(ng_linear_new(4, 4), .dim = 4, .condition = 3))

/* clang-format off */
#define ALL(X)                                                                                     \
    SEQUENTIAL(X) RESIDUAL(X) LINEAR(X) STANDARDIZE(X) ACTIVATIONS(X) DROPOUT(X) EMBEDDING(X)      \
    FEED_FORWARD(X) ATTENTION(X) TRANSFORMER(X) RECURRENT(X) CONV2D(X) POOLING(X)                  \
    ADAPTIVE_RESIDUAL(X)
/* clang-format on */
#define ALL_EVALUATED(X) DROPOUT_EVALUATED(X) ATTENTION_EVALUATED(X)

ALL(LAYER_MAKER)
ALL_EVALUATED(LAYER_MAKER)

static const gradient_case cases[] = {ALL(LAYER_ROW) ALL_EVALUATED(EVALUATED_ROW)};
const case_list nn_cases = LIST(cases);
