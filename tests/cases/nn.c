/* The cases of modules. */
#include "table.h"

/* ---- sequential ----------------------------------------------------------------------------- */

MODULE(layer_case_sequential, ng_sequential_new(ng_linear_new(4, 5), ng_layer_norm_new(5),
                                                ng_gelu_new(), ng_linear_new(5, 2)))
MODULE(layer_case_residual_convolution,
       ng_sequential_new(ng_residual_new(ng_sequential_new(ng_conv2d_new(2, 2, 3, .padding = 1,
                                                                         .no_bias = true),
                                                           ng_batch_norm_new(2), ng_silu_new())),
                         ng_global_avg_pool_new(), ng_linear_new(2, 2)))

static const gradient_case sequential_cases[] = {
    LAYER("Sequential", layer_case_sequential, ANY("x", 3, 4)),
    BATCH_LAYER("Sequential (residual convolution)", layer_case_residual_convolution,
                ANY("x", 2, 2, 3, 3)),
};

/* ---- residual ------------------------------------------------------------------------------- */

MODULE(layer_case_residual,
       ng_residual_new(ng_sequential_new(ng_rms_norm_new(4), ng_linear_new(4, 4))))
MODULE(layer_case_residual_inner, ng_adaptive_layer_norm_new(4, .condition = 3))
MODULE(layer_case_residual_conditioned, ng_residual_new(layer_case_residual_inner()))

static const gradient_case residual_cases[] = {
    LAYER("Residual", layer_case_residual, ANY("x", 3, 4)),
    LAYER("Residual (conditioned)", layer_case_residual_conditioned, ANY("x", 3, 4),
          ANY("condition", 3, 3)),
};

/* ---- linear --------------------------------------------------------------------------------- */

MODULE(layer_case_linear, ng_linear_new(4, 3))
MODULE(layer_case_linear_no_bias, ng_linear_new(4, 3, .no_bias = true))

static const gradient_case linear_cases[] = {
    LAYER("Linear", layer_case_linear, ANY("x", 3, 4)),
    LAYER("Linear (batched)", layer_case_linear, ANY("x", 2, 3, 4)),
    LAYER("Linear (no bias)", layer_case_linear_no_bias, ANY("x", 3, 4)),
};

/* ---- standardize ---------------------------------------------------------------------------- */

static ng_module *layer_case_standardize(void)
{
    ng_tensor *samples = ng_tensor_from(NG_F64, NG_SHAPE(2, 3), NG_VALUES(1, -2, 5, 4, 0, 5));
    ng_module *layer = samples ? ng_standardize_new(3, .samples = samples) : NULL;
    ng_tensor_free(samples);
    return layer;
}

static const gradient_case standardize_cases[] = {
    LAYER("Standardize", layer_case_standardize, ANY("x", 4, 3)),
};

/* ---- activations ---------------------------------------------------------------------------- */

MODULE(layer_case_leaky_relu, ng_leaky_relu_new(0.1))
MODULE(layer_case_elu, ng_elu_new(0.8))
MODULE(layer_case_celu, ng_celu_new(0.7))
MODULE(layer_case_prelu, ng_prelu_new(1))
MODULE(layer_case_prelu_of_channels, ng_prelu_new(4, .slope = 0.1))
MODULE(layer_case_function, ng_function_new("sin", ng_sin))

static const gradient_case activations_cases[] = {
    LAYER("ReLU", ng_relu_new, NOT_ZERO("x", 3, 4)),
    LAYER("LeakyReLU", layer_case_leaky_relu, NOT_ZERO("x", 3, 4)),
    LAYER("GELU", ng_gelu_new, ANY("x", 3, 4)),
    LAYER("GELUTanh", ng_gelu_tanh_new, ANY("x", 3, 4)),
    LAYER("SiLU", ng_silu_new, ANY("x", 3, 4)),
    LAYER("Tanh", ng_tanh_new, ANY("x", 3, 4)),
    LAYER("Sigmoid", ng_sigmoid_new, ANY("x", 3, 4)),
    LAYER("Softplus", ng_softplus_new, ANY("x", 3, 4)),
    LAYER("GLU", ng_glu_new, ANY("x", 3, 4)),
    LAYER("ELU", layer_case_elu, NOT_ZERO("x", 3, 4)),
    LAYER("CELU", layer_case_celu, NOT_ZERO("x", 3, 4)),
    LAYER("PReLU", layer_case_prelu, NOT_ZERO("x", 3, 4)),
    LAYER("PReLU (channels)", layer_case_prelu_of_channels, NOT_ZERO("x", 2, 4, 3)),
    LAYER("Function (sin)", layer_case_function, ANY("x", 3, 4)),
};

/* ---- dropout -------------------------------------------------------------------------------- */

MODULE(layer_case_dropout, ng_dropout_new(0.3))

static const gradient_case dropout_cases[] = {
    BATCH_LAYER("Dropout", layer_case_dropout, ANY("x", 3, 4)),
    LAYER_EVAL("Dropout (eval)", layer_case_dropout, ANY("x", 3, 4)),
};

/* ---- embedding ------------------------------------------------------------------------------ */

MODULE(layer_case_embedding, ng_embedding_new(5, 3))
MODULE(layer_case_padded, ng_embedding_new(5, 3, .padded = true, .padding = 2))
MODULE(layer_case_learned_positions, ng_learned_positions_new(4, 2))

static const gradient_case embedding_cases[] = {
    LAYER("Embedding", layer_case_embedding, INDEX("ids", 5, 2, 3)),
    LAYER("Embedding (padding)", layer_case_padded, INDEX("ids", 5, 3, 4)),
    LAYER("LearnedPositions", layer_case_learned_positions, ANY("x", 2, 4, 2)),
    LAYER("LearnedPositions (shorter)", layer_case_learned_positions, ANY("x", 2, 3, 2)),
};

/* ---- feed_forward --------------------------------------------------------------------------- */

MODULE(layer_case_feed_forward, ng_feed_forward_new(3))
MODULE(layer_case_feed_forward_tanh,
       ng_feed_forward_new(3, .hidden = 4, .activation = NG_FEED_FORWARD_GELU_TANH))
MODULE(layer_case_swiglu,
       ng_feed_forward_new(3, .activation = NG_FEED_FORWARD_SWIGLU, .no_bias = true))

static const gradient_case feed_forward_cases[] = {
    LAYER("FeedForward", layer_case_feed_forward, ANY("x", 2, 3)),
    LAYER("FeedForward (GELUTanh)", layer_case_feed_forward_tanh, ANY("x", 2, 3)),
    LAYER("FeedForward (SwiGLU)", layer_case_swiglu, ANY("x", 1, 2, 3)),
};

/* ---- attention ------------------------------------------------------------------------------ */

MODULE(layer_case_attention, ng_multi_head_attention_new(4, 2))
MODULE(layer_case_attention_causal,
       ng_multi_head_attention_new(4, 1, .causal = true, .rotary = true, .no_bias = true))
MODULE(layer_case_attention_dropout, ng_multi_head_attention_new(4, 2, .dropout = 0.3))
MODULE(layer_case_attention_qk_norm,
       ng_multi_head_attention_new(4, 2, .causal = true, .rotary = true, .qk_norm = ng_norm_rms))
MODULE(layer_case_attention_qk_layer_norm,
       ng_multi_head_attention_new(6, 2, .qk_norm = ng_norm_layer))
MODULE(layer_case_attention_v_norm, ng_multi_head_attention_new(6, 2, .v_norm = ng_norm_layer))
MODULE(layer_case_attention_temperature,
       ng_multi_head_attention_new(4, 2, .causal = true, .qk_temperature = 2))
MODULE(layer_case_attention_shared,
       ng_multi_head_attention_new(8, 4, .kv_heads = 2, .causal = true, .rotary = true))
MODULE(layer_case_attention_shared_qk_norm,
       ng_multi_head_attention_new(6, 3, .kv_heads = 1, .qk_norm = ng_norm_rms))
MODULE(layer_case_attention_cross, ng_multi_head_attention_new(4, 2, .context = 3))
MODULE(layer_case_attention_cross_shared,
       ng_multi_head_attention_new(6, 2, .context = 3, .kv_heads = 1, .causal = true,
                                   .no_bias = true, .qk_norm = ng_norm_layer))

static const gradient_case attention_cases[] = {
    LAYER("MultiHeadAttention", layer_case_attention, ANY("x", 2, 3, 4)),
    LAYER("MultiHeadAttention (causal, rotary)", layer_case_attention_causal, ANY("x", 2, 3, 4)),
    BATCH_LAYER("MultiHeadAttention (dropout)", layer_case_attention_dropout, ANY("x", 2, 3, 4)),
    LAYER_EVAL("MultiHeadAttention (dropout, eval)", layer_case_attention_dropout,
               ANY("x", 2, 3, 4)),
    LAYER("MultiHeadAttention (QK-RMSNorm, causal, rotary)", layer_case_attention_qk_norm,
          ANY("x", 2, 3, 4)),
    LAYER("MultiHeadAttention (QK-LayerNorm)", layer_case_attention_qk_layer_norm,
          ANY("x", 1, 3, 6)),
    LAYER("MultiHeadAttention (LayerNorm of v)", layer_case_attention_v_norm, ANY("x", 1, 3, 6)),
    LAYER("MultiHeadAttention (learned temperature)", layer_case_attention_temperature,
          ANY("x", 2, 3, 4)),
    LAYER("MultiHeadAttention (shared keys and values, causal, rotary)",
          layer_case_attention_shared, ANY("x", 2, 3, 8)),
    LAYER("MultiHeadAttention (one head of keys and values, QK-RMSNorm)",
          layer_case_attention_shared_qk_norm, ANY("x", 2, 3, 6)),
    LAYER("MultiHeadAttention (cross)", layer_case_attention_cross, ANY("x", 2, 3, 4),
          ANY("memory", 2, 2, 3)),
    LAYER("MultiHeadAttention (cross, shared, causal, QK-LayerNorm)",
          layer_case_attention_cross_shared, ANY("x", 1, 2, 6), ANY("memory", 1, 3, 3)),
};

/* ---- transformer ---------------------------------------------------------------------------- */

MODULE(layer_case_block_pre,
       ng_transformer_block_new(4, 2, .hidden = 3, .norm = ng_norm_rms, .causal = true,
                                .activation = NG_FEED_FORWARD_SWIGLU))
MODULE(layer_case_block_post,
       ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_POST, .dropout = 0.2))
MODULE(layer_case_block_peri,
       ng_transformer_block_new(4, 2, .kv_heads = 1, .hidden = 3, .placement = NG_NORM_PERI,
                                .qk_norm = ng_norm_rms))
MODULE(layer_case_block_deep,
       ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_DEEP, .layers = 3))
MODULE(layer_case_block_hybrid,
       ng_transformer_block_new(6, 2, .kv_heads = 1, .hidden = 3, .placement = NG_NORM_HYBRID,
                                .norm = ng_norm_rms))
MODULE(layer_case_block_dual,
       ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_DUAL, .dropout = 0.2))
MODULE(layer_case_block_scaled,
       ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_SCALED, .layer = 3))
MODULE(layer_case_block_derf, ng_transformer_block_new(4, 2, .hidden = 3, .norm = ng_norm_derf))
MODULE(layer_case_block_batch, ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_batch))
MODULE(layer_case_block_no_norm, ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_none))
MODULE(layer_case_transformer,
       ng_transformer_new(5, .dim = 4, .heads = 2, .layers = 2, .length = 4, .hidden = 3))
MODULE(layer_case_transformer_rotary,
       ng_transformer_new(5, .dim = 4, .heads = 1, .layers = 1, .hidden = 3, .norm = ng_norm_rms,
                          .placement = NG_NORM_DEEP, .positions = NG_POSITIONS_ROTARY,
                          .bidirectional = true))

#define PLACED(n, ...)                                                                             \
    ng_transformer_new(5, .dim = 4, .heads = n, .layers = 2, .length = 4, .hidden = 3,             \
                       .placement = __VA_ARGS__)
MODULE(layer_case_transformer_peri, PLACED(2, NG_NORM_PERI))
MODULE(layer_case_transformer_hybrid, PLACED(1, NG_NORM_HYBRID, .norm = ng_norm_rms))
MODULE(layer_case_transformer_dual, PLACED(2, NG_NORM_DUAL))
MODULE(layer_case_transformer_scaled, PLACED(2, NG_NORM_SCALED))
MODULE(layer_case_transformer_mix, PLACED(2, NG_NORM_MIX, .post_share = 0.5))

static const gradient_case transformer_cases[] = {
    LAYER("TransformerBlock (pre)", layer_case_block_pre, ANY("x", 2, 3, 4)),
    BATCH_LAYER("TransformerBlock (post)", layer_case_block_post, ANY("x", 2, 3, 4)),
    LAYER("TransformerBlock (Peri-LN)", layer_case_block_peri, ANY("x", 2, 3, 4)),
    LAYER("TransformerBlock (DeepNorm)", layer_case_block_deep, ANY("x", 2, 3, 4)),
    LAYER("TransformerBlock (HybridNorm)", layer_case_block_hybrid, ANY("x", 2, 3, 6)),
    BATCH_LAYER("TransformerBlock (ResiDual)", layer_case_block_dual, ANY("x", 2, 3, 8)),
    LAYER("TransformerBlock (LayerNorm scaling)", layer_case_block_scaled, ANY("x", 2, 3, 4)),
    LAYER("TransformerBlock (Derf)", layer_case_block_derf, ANY("x", 2, 3, 4)),
    BATCH_LAYER("TransformerBlock (BatchNorm)", layer_case_block_batch, ANY("x", 2, 3, 4)),
    LAYER("TransformerBlock (no norm)", layer_case_block_no_norm, ANY("x", 2, 2, 4)),
    LAYER("Transformer", layer_case_transformer, INDEX("ids", 5, 2, 3)),
    LAYER("Transformer (Peri-LN)", layer_case_transformer_peri, INDEX("ids", 5, 2, 3)),
    LAYER("Transformer (HybridNorm)", layer_case_transformer_hybrid, INDEX("ids", 5, 2, 3)),
    LAYER("Transformer (ResiDual)", layer_case_transformer_dual, INDEX("ids", 5, 2, 3)),
    LAYER("Transformer (LayerNorm scaling)", layer_case_transformer_scaled, INDEX("ids", 5, 2, 3)),
    LAYER("Transformer (Mix-LN)", layer_case_transformer_mix, INDEX("ids", 5, 2, 3)),
    LAYER("Transformer (rotary, DeepNorm)", layer_case_transformer_rotary, INDEX("ids", 5, 2, 3)),
};

/* ---- recurrent ------------------------------------------------------------------------------ */

MODULE(layer_case_rnn, ng_rnn_new(2, 3, .relu = true, .no_bias = true))
MODULE(layer_case_gru, ng_gru_new(2, 2, .layers = 2, .bidirectional = true))
MODULE(layer_case_lstm, ng_lstm_new(2, 2, .layers = 2, .dropout = 0.3))
MODULE(layer_case_lstm_lengths, ng_lstm_new(2, 2, .bidirectional = true))
MODULE(layer_case_rnn_norm, ng_rnn_new(2, 3, .norm = ng_norm_layer))
MODULE(layer_case_gru_norm, ng_gru_new(2, 3, .norm = ng_norm_layer))
MODULE(layer_case_lstm_norm, ng_lstm_new(2, 3, .norm = ng_norm_layer, .bidirectional = true))
MODULE(layer_case_lstm_rms, ng_lstm_new(2, 3, .norm = ng_norm_rms))

/* Lengths from 1 to 3. */
#define CASE_LENGTHS(rows)                                                                         \
    {                                                                                              \
        .name = "lengths", .shape = SHAPE(rows), .low = 1, .high = 4, .index = true                \
    }

static const gradient_case recurrent_cases[] = {
    LAYER("RNN (relu, no bias)", layer_case_rnn, ANY("x", 2, 3, 2)),
    LAYER("GRU (two layers, both directions)", layer_case_gru, ANY("x", 2, 3, 2)),
    BATCH_LAYER("LSTM (two layers, dropout)", layer_case_lstm, ANY("x", 2, 3, 2)),
    LAYER("LSTM (both directions, lengths)", layer_case_lstm_lengths, ANY("x", 3, 3, 2),
          CASE_LENGTHS(3)),
    LAYER("RNN (LayerNorm)", layer_case_rnn_norm, ANY("x", 2, 3, 2)),
    LAYER("GRU (LayerNorm)", layer_case_gru_norm, ANY("x", 2, 2, 2)),
    LAYER("LSTM (LayerNorm, both directions, lengths)", layer_case_lstm_norm, ANY("x", 2, 3, 2),
          CASE_LENGTHS(2)),
    LAYER("LSTM (RMSNorm)", layer_case_lstm_rms, ANY("x", 2, 2, 2)),
};

#undef CASE_LENGTHS

/* ---- conv2d --------------------------------------------------------------------------------- */

MODULE(layer_case_conv2d, ng_conv2d_new(2, 3, 2))
MODULE(layer_case_conv2d_no_bias, ng_conv2d_new(2, 3, 1, .stride = 2, .no_bias = true))
MODULE(layer_case_conv2d_all, ng_conv2d_new(2, 4, 3, .kernel_w = 2, .stride_w = 2, .padding = 1,
                                            .dilation_w = 2, .groups = 2))
MODULE(layer_case_conv1d, ng_conv1d_new(2, 4, 3, .stride = 2, .padding = 1, .groups = 2))
MODULE(layer_case_transposed2d,
       ng_conv_transpose2d_new(2, 2, 2, .stride = 2, .padding_w = 1, .output_padding_h = 1))
MODULE(layer_case_transposed1d,
       ng_conv_transpose1d_new(2, 4, 3, .stride = 2, .padding = 1, .output_padding = 1, .groups = 2,
                               .no_bias = true))

static const gradient_case conv2d_cases[] = {
    LAYER("Conv2d", layer_case_conv2d, ANY("x", 2, 2, 3, 3)),
    LAYER("Conv2d (no bias)", layer_case_conv2d_no_bias, ANY("x", 2, 2, 3, 3)),
    LAYER("Conv2d (stride, padding, dilation, groups)", layer_case_conv2d_all,
          ANY("x", 1, 2, 3, 4)),
    LAYER("Conv1d", layer_case_conv1d, ANY("x", 2, 2, 5)),
    LAYER("ConvTranspose2d", layer_case_transposed2d, ANY("x", 1, 2, 2, 3)),
    LAYER("ConvTranspose1d", layer_case_transposed1d, ANY("x", 2, 2, 3)),
};

/* ---- pooling -------------------------------------------------------------------------------- */

MODULE(layer_case_max_pool2d, ng_max_pool2d_new(2))
MODULE(layer_case_avg_pool2d, ng_avg_pool2d_new(3, .kernel_w = 2, .stride = 2, .padding = 1))

MODULE(layer_case_max_pool1d, ng_max_pool1d_new(2, .ceil = true))
MODULE(layer_case_avg_pool1d,
       ng_avg_pool1d_new(3, .stride = 1, .padding = 1, .exclude_padding = true))
MODULE(layer_case_adaptive_avg, ng_adaptive_avg_pool_new(NG_SHAPE(2, 3)))
MODULE(layer_case_adaptive_max, ng_adaptive_max_pool_new(NG_SHAPE(2)))

MODULE(layer_case_upsample, ng_upsample_new(2))
MODULE(layer_case_upsample_linear, ng_upsample_new(3, .mode = NG_LINEAR, .align_corners = true))

static const gradient_case pooling_cases[] = {
    LAYER("MaxPool2d", layer_case_max_pool2d, ANY("x", 2, 2, 2, 4)),
    LAYER("AvgPool2d", layer_case_avg_pool2d, ANY("x", 2, 1, 4, 4)),
    LAYER("MaxPool1d", layer_case_max_pool1d, ANY("x", 2, 2, 5)),
    LAYER("AvgPool1d", layer_case_avg_pool1d, ANY("x", 2, 2, 4)),
    LAYER("AdaptiveAvgPool", layer_case_adaptive_avg, ANY("x", 1, 2, 3, 4)),
    LAYER("AdaptiveMaxPool", layer_case_adaptive_max, ANY("x", 2, 2, 5)),
    LAYER("Upsample", layer_case_upsample, ANY("x", 2, 2, 2, 1)),
    LAYER("Upsample (linear, corners)", layer_case_upsample_linear, ANY("x", 1, 2, 2, 3)),
    LAYER("GlobalAvgPool", ng_global_avg_pool_new, ANY("x", 2, 2, 2, 3)),
    LAYER("Flatten", ng_flatten_new, ANY("x", 2, 2, 2, 1)),
};

/* ---- adaptive_residual ---------------------------------------------------------------------- */

MODULE(layer_case_adaptive_residual,
       ng_adaptive_residual_new(ng_linear_new(4, 4), .dim = 4, .condition = 3))

static const gradient_case adaptive_residual_cases[] = {
    LAYER("AdaptiveResidual", layer_case_adaptive_residual, ANY("x", 2, 3, 4),
          ANY("condition", 2, 1, 3)),
};

const case_list nn_lists[] = {
    LIST(sequential_cases),  LIST(residual_cases),          LIST(linear_cases),
    LIST(standardize_cases), LIST(activations_cases),       LIST(dropout_cases),
    LIST(embedding_cases),   LIST(feed_forward_cases),      LIST(attention_cases),
    LIST(transformer_cases), LIST(recurrent_cases),         LIST(conv2d_cases),
    LIST(pooling_cases),     LIST(adaptive_residual_cases), {0},
};
