/* The table of layers: every layer in every mode, with an input to check it on. */
#include "nn/module.h"
#include <normgrad/gradcheck.h>

/* ---- Constructors of one variant each ------------------------------------------------------ */

static ng_module *linear(void) { return ng_linear_new(4, 3); }
static ng_module *linear_no_bias(void) { return ng_linear_new(4, 3, .no_bias = true); }

static ng_module *layer_norm(void) { return ng_layer_norm_new(5); }
static ng_module *layer_norm_over(void) { return ng_layer_norm_over_new(NG_SHAPE(2, 3)); }
static ng_module *layer_norm_no_bias(void) { return ng_layer_norm_new(5, .no_bias = true); }
static ng_module *layer_norm_no_affine(void) { return ng_layer_norm_new(5, .no_affine = true); }
static ng_module *layer_norm_unbiased(void) { return ng_layer_norm_new(5, .unbiased = true); }

static ng_module *rms_norm(void) { return ng_rms_norm_new(5); }
static ng_module *rms_norm_no_affine(void) { return ng_rms_norm_new(5, .no_affine = true); }
static ng_module *rms_norm_partial(void) { return ng_rms_norm_new(5, .partial = 0.6); }

static ng_module *adaptive_projected(void) { return ng_adaptive_layer_norm_new(4); }
static ng_module *adaptive_conditioned(void)
{
    return ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_CONDITIONED, .condition = 3);
}
static ng_module *adaptive_gated(void)
{
    return ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_CONDITIONED, .condition = 3,
                                      .gate = true);
}
static ng_module *adanorm(void)
{
    return ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_ADANORM);
}
static ng_module *adanorm_differentiated(void)
{
    return ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_ADANORM, .scale = 1.5, .k = 0.3,
                                      .differentiate = true);
}
static ng_module *adanorm_raw(void)
{
    return ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_ADANORM, .raw = true);
}
static ng_module *adanorm_raw_differentiated(void)
{
    return ng_adaptive_layer_norm_new(4, .form = NG_ADAPTIVE_ADANORM, .k = 0.3, .raw = true,
                                      .differentiate = true);
}

static ng_module *batch_norm(void) { return ng_batch_norm_new(3); }
static ng_module *batch_norm_cumulative(void) { return ng_batch_norm_new(3, .cumulative = true); }
static ng_module *batch_norm_no_affine(void) { return ng_batch_norm_new(3, .no_affine = true); }
static ng_module *batch_norm_no_running_stats(void)
{
    return ng_batch_norm_new(3, .no_running_stats = true);
}

/* Running statistics away from 0 and 1, where they would hide a mistake. */
static ng_module *with_statistics(ng_module *module)
{
    if (!module) return NULL;
    ng_fill(ng_module_find(module, "running_mean"), 0.4);
    ng_fill(ng_module_find(module, "running_var"), 2.3);
    return module;
}
static ng_module *batch_norm_seen(void) { return with_statistics(ng_batch_norm_new(3)); }
static ng_module *batch_norm_frozen(void)
{
    return with_statistics(ng_batch_norm_new(3, .frozen = true));
}

static ng_module *leaky_relu(void) { return ng_leaky_relu_new(0.1); }
static ng_module *dropout(void) { return ng_dropout_new(0.3); }

static ng_module *sequential(void)
{
    return ng_sequential_new(ng_linear_new(4, 5), ng_layer_norm_new(5), ng_gelu_new(),
                             ng_linear_new(5, 2));
}
static ng_module *residual(void)
{
    return ng_residual_new(ng_sequential_new(ng_rms_norm_new(4), ng_linear_new(4, 4)));
}
static ng_module *residual_conditioned(void) { return ng_residual_new(adaptive_conditioned()); }

static ng_module *layer_norm_channels(void) { return ng_layer_norm_new(3, .channels_first = true); }
static ng_module *group_norm(void) { return ng_group_norm_new(2, 4); }
static ng_module *group_norm_features(void) { return ng_group_norm_new(2, 6); }
static ng_module *group_norm_no_affine(void) { return ng_group_norm_new(2, 4, .no_affine = true); }
static ng_module *instance_norm(void) { return ng_instance_norm_new(3); }
static ng_module *instance_norm_affine(void) { return ng_instance_norm_new(3, .affine = true); }
static ng_module *scale_norm(void) { return ng_scale_norm_new(5); }
static ng_module *detach_norm(void) { return ng_detach_norm_new(5); }
static ng_module *detach_norm_mean_flows(void) { return ng_detach_norm_new(5, .mean_flows = true); }
static ng_module *detach_norm_deviation_flows(void)
{
    return ng_detach_norm_new(5, .deviation_flows = true);
}
static ng_module *dynamic_tanh(void) { return ng_dynamic_tanh_new(5); }
static ng_module *dynamic_tanh_no_affine(void)
{
    return ng_dynamic_tanh_new(5, .alpha = 0.8, .no_affine = true);
}

static ng_module *batch_renorm(void) { return ng_batch_renorm_new(3, .r_max = 1.3, .d_max = 0.4); }
static ng_module *batch_renorm_warming_up(void) { return ng_batch_renorm_new(3, .warmup = 5); }
static ng_module *batch_renorm_no_affine(void) { return ng_batch_renorm_new(3, .no_affine = true); }
static ng_module *batch_renorm_seen(void)
{
    ng_module *module = ng_batch_renorm_new(3);
    ng_fill(module ? ng_module_find(module, "running_mean") : NULL, 0.4);
    ng_fill(module ? ng_module_find(module, "running_deviation") : NULL, 1.5);
    return module;
}
static ng_module *batch_norm_ghost(void) { return ng_batch_norm_new(3, .ghost = 3); }
static ng_module *batch_norm_combined(void)
{
    return ng_batch_norm_new(3, .ghost = 3, .combined = true);
}

static ng_module *adaptive_residual(void)
{
    return ng_adaptive_residual_new(ng_linear_new(4, 4), .dim = 4, .condition = 3);
}
static ng_module *weight_norm(void) { return ng_weight_norm_new(ng_linear_new(4, 3)); }
static ng_module *weight_norm_whole(void)
{
    return ng_weight_norm_new(ng_linear_new(4, 3), .whole = true);
}
static ng_module *spectral_norm(void) { return ng_spectral_norm_new(ng_linear_new(4, 3)); }
static ng_module *spectral_norm_iterated(void)
{
    return ng_spectral_norm_new(ng_linear_new(4, 3, .no_bias = true), .iterations = 3);
}

static ng_module *conv2d(void) { return ng_conv2d_new(2, 3, 2); }
static ng_module *weight_norm_conv2d(void) { return ng_weight_norm_new(conv2d()); }
static ng_module *spectral_norm_conv2d(void) { return ng_spectral_norm_new(conv2d()); }
static ng_module *conv2d_no_bias(void)
{
    return ng_conv2d_new(2, 3, 1, .stride = 2, .no_bias = true);
}
static ng_module *conv2d_all(void)
{
    return ng_conv2d_new(2, 4, 3, .kernel_w = 2, .stride_w = 2, .padding = 1, .dilation_w = 2,
                         .groups = 2);
}
static ng_module *max_pool2d(void) { return ng_max_pool2d_new(2); }
static ng_module *avg_pool2d(void)
{
    return ng_avg_pool2d_new(3, .kernel_w = 2, .stride = 2, .padding = 1);
}
static ng_module *residual_convolution(void)
{
    return ng_sequential_new(
        ng_residual_new(ng_sequential_new(ng_conv2d_new(2, 2, 3, .padding = 1, .no_bias = true),
                                          ng_batch_norm_new(2), ng_silu_new())),
        ng_global_avg_pool_new(), ng_linear_new(2, 2));
}

static ng_module *embedding(void) { return ng_embedding_new(5, 3); }
static ng_module *learned_positions(void) { return ng_learned_positions_new(4, 2); }
static ng_module *attention(void) { return ng_multi_head_attention_new(4, 2); }
static ng_module *attention_causal(void)
{
    return ng_multi_head_attention_new(4, 1, .causal = true, .rotary = true, .no_bias = true);
}
static ng_module *attention_dropout(void)
{
    return ng_multi_head_attention_new(4, 2, .dropout = 0.3);
}
static ng_module *attention_qk_norm(void)
{
    return ng_multi_head_attention_new(4, 2, .causal = true, .rotary = true,
                                       .qk_norm = ng_norm_rms);
}
static ng_module *attention_qk_layer_norm(void)
{
    return ng_multi_head_attention_new(6, 2, .qk_norm = ng_norm_layer);
}
static ng_module *feed_forward(void) { return ng_feed_forward_new(3); }
static ng_module *feed_forward_tanh(void)
{
    return ng_feed_forward_new(3, .hidden = 4, .activation = NG_FEED_FORWARD_GELU_TANH);
}
static ng_module *swiglu(void)
{
    return ng_feed_forward_new(3, .activation = NG_FEED_FORWARD_SWIGLU, .no_bias = true);
}
static ng_module *block_pre(void)
{
    return ng_transformer_block_new(4, 2, .hidden = 3, .norm = ng_norm_rms, .causal = true,
                                    .activation = NG_FEED_FORWARD_SWIGLU);
}
static ng_module *block_post(void)
{
    return ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_POST, .dropout = 0.2);
}
static ng_module *block_sandwich(void)
{
    return ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_SANDWICH,
                                    .qk_norm = ng_norm_rms);
}
static ng_module *block_deep(void)
{
    return ng_transformer_block_new(4, 2, .hidden = 3, .placement = NG_NORM_DEEP, .layers = 3);
}
static ng_module *block_batch(void)
{
    return ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_batch);
}
static ng_module *block_no_norm(void)
{
    return ng_transformer_block_new(4, 1, .hidden = 3, .norm = ng_norm_none);
}
static ng_module *transformer(void)
{
    return ng_transformer_new(5, .dim = 4, .heads = 2, .layers = 2, .length = 4, .hidden = 3);
}
static ng_module *transformer_rotary(void)
{
    return ng_transformer_new(5, .dim = 4, .heads = 1, .layers = 1, .hidden = 3,
                              .norm = ng_norm_rms, .placement = NG_NORM_DEEP,
                              .positions = NG_POSITIONS_ROTARY, .bidirectional = true);
}

/* ---- The table ----------------------------------------------------------------------------- */

/* An input x of normal values; of values away from a kink at 0; and a condition. */
#define X(...) .name = "x", .shape = {__VA_ARGS__}
#define X_AWAY(...) X(__VA_ARGS__), .avoid = 0.05
#define CONDITION(...) .name = "condition", .shape = {__VA_ARGS__}

#define IDS(below, ...)                                                                            \
    .name = "ids", .shape = {__VA_ARGS__}, .index = true, .high = (below), .constant = true

static const ng_check_row_spec rows[] = {
    {.name = "Linear", .module = linear, .inputs = {{X(2, {3, 4})}}},
    {.name = "Linear (batched)", .module = linear, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "Linear (no bias)", .module = linear_no_bias, .inputs = {{X(2, {3, 4})}}},

    {.name = "LayerNorm", .module = layer_norm, .inputs = {{X(2, {3, 5})}}},
    {.name = "LayerNorm (batched)", .module = layer_norm, .inputs = {{X(3, {2, 2, 5})}}},
    {.name = "LayerNorm (over 2 dims)", .module = layer_norm_over, .inputs = {{X(3, {2, 2, 3})}}},
    {.name = "LayerNorm (no bias)", .module = layer_norm_no_bias, .inputs = {{X(2, {3, 5})}}},
    {.name = "LayerNorm (no affine)", .module = layer_norm_no_affine, .inputs = {{X(2, {3, 5})}}},
    {.name = "LayerNorm (unbiased)", .module = layer_norm_unbiased, .inputs = {{X(2, {3, 5})}}},

    {.name = "RMSNorm", .module = rms_norm, .inputs = {{X(2, {3, 5})}}},
    {.name = "RMSNorm (no affine)", .module = rms_norm_no_affine, .inputs = {{X(2, {3, 5})}}},
    {.name = "RMSNorm (partial)", .module = rms_norm_partial, .inputs = {{X(2, {3, 5})}}},

    {.name = "AdaptiveLayerNorm (projected)",
     .module = adaptive_projected,
     .inputs = {{X(2, {3, 4})}}},
    {.name = "AdaptiveLayerNorm (conditioned)",
     .module = adaptive_conditioned,
     .inputs = {{X(3, {2, 3, 4})}, {CONDITION(3, {2, 1, 3})}}},
    {.name = "AdaptiveLayerNorm (gated)",
     .module = adaptive_gated,
     .inputs = {{X(2, {3, 4})}, {CONDITION(2, {3, 3})}}},
    {.name = "AdaNorm", .module = adanorm, .inputs = {{X(2, {3, 4})}}},
    {.name = "AdaNorm (differentiated)",
     .module = adanorm_differentiated,
     .inputs = {{X(2, {3, 4})}}},
    {.name = "AdaNorm (raw)", .module = adanorm_raw, .inputs = {{X(2, {3, 4})}}},
    {.name = "AdaNorm (raw, differentiated)",
     .module = adanorm_raw_differentiated,
     .inputs = {{X(2, {3, 4})}}},

    {.name = "BatchNorm", .module = batch_norm, .inputs = {{X(2, {5, 3})}}},
    {.name = "BatchNorm (N, C, L)", .module = batch_norm, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "BatchNorm (N, C, H, W)", .module = batch_norm, .inputs = {{X(4, {2, 3, 2, 2})}}},
    {.name = "BatchNorm (cumulative)", .module = batch_norm_cumulative, .inputs = {{X(2, {5, 3})}}},
    {.name = "BatchNorm (no affine)", .module = batch_norm_no_affine, .inputs = {{X(2, {5, 3})}}},
    {.name = "BatchNorm (eval)",
     .module = batch_norm_seen,
     .eval = true,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "BatchNorm (frozen)", .module = batch_norm_frozen, .inputs = {{X(2, {5, 3})}}},
    {.name = "BatchNorm (eval, no running stats)",
     .module = batch_norm_no_running_stats,
     .eval = true,
     .inputs = {{X(2, {5, 3})}}},

    {.name = "ReLU", .module = ng_relu_new, .inputs = {{X_AWAY(2, {3, 4})}}},
    {.name = "LeakyReLU", .module = leaky_relu, .inputs = {{X_AWAY(2, {3, 4})}}},
    {.name = "GELU", .module = ng_gelu_new, .inputs = {{X(2, {3, 4})}}},
    {.name = "GELUTanh", .module = ng_gelu_tanh_new, .inputs = {{X(2, {3, 4})}}},
    {.name = "SiLU", .module = ng_silu_new, .inputs = {{X(2, {3, 4})}}},
    {.name = "Tanh", .module = ng_tanh_new, .inputs = {{X(2, {3, 4})}}},
    {.name = "Sigmoid", .module = ng_sigmoid_new, .inputs = {{X(2, {3, 4})}}},
    {.name = "Softplus", .module = ng_softplus_new, .inputs = {{X(2, {3, 4})}}},
    {.name = "Dropout", .module = dropout, .inputs = {{X(2, {3, 4})}}},
    {.name = "Dropout (eval)", .module = dropout, .eval = true, .inputs = {{X(2, {3, 4})}}},

    {.name = "Sequential", .module = sequential, .inputs = {{X(2, {3, 4})}}},
    {.name = "Residual", .module = residual, .inputs = {{X(2, {3, 4})}}},
    {.name = "Residual (conditioned)",
     .module = residual_conditioned,
     .inputs = {{X(2, {3, 4})}, {CONDITION(2, {3, 3})}}},

    {.name = "LayerNorm (channels first)",
     .module = layer_norm_channels,
     .inputs = {{X(4, {2, 3, 2, 2})}}},
    {.name = "GroupNorm (N, C)", .module = group_norm_features, .inputs = {{X(2, {3, 6})}}},
    {.name = "GroupNorm (N, C, L)", .module = group_norm, .inputs = {{X(3, {2, 4, 3})}}},
    {.name = "GroupNorm (N, C, H, W)", .module = group_norm, .inputs = {{X(4, {2, 4, 2, 2})}}},
    {.name = "GroupNorm (no affine)",
     .module = group_norm_no_affine,
     .inputs = {{X(3, {2, 4, 3})}}},
    {.name = "InstanceNorm (N, C, L)", .module = instance_norm, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "InstanceNorm (affine)",
     .module = instance_norm_affine,
     .inputs = {{X(4, {2, 3, 2, 2})}}},
    {.name = "ScaleNorm", .module = scale_norm, .inputs = {{X(2, {3, 5})}}},
    {.name = "DetachNorm", .module = detach_norm, .inputs = {{X(2, {3, 5})}}},
    {.name = "DetachNorm (mean flows)",
     .module = detach_norm_mean_flows,
     .inputs = {{X(2, {3, 5})}}},
    {.name = "DetachNorm (deviation flows)",
     .module = detach_norm_deviation_flows,
     .inputs = {{X(2, {3, 5})}}},
    {.name = "DynamicTanh", .module = dynamic_tanh, .inputs = {{X(2, {3, 5})}}},
    {.name = "DynamicTanh (no affine)",
     .module = dynamic_tanh_no_affine,
     .inputs = {{X(2, {3, 5})}}},

    {.name = "BatchRenorm", .module = batch_renorm, .inputs = {{X(2, {5, 3})}}},
    {.name = "BatchRenorm (N, C, H, W)", .module = batch_renorm, .inputs = {{X(4, {2, 3, 2, 2})}}},
    {.name = "BatchRenorm (warming up)",
     .module = batch_renorm_warming_up,
     .inputs = {{X(2, {5, 3})}}},
    {.name = "BatchRenorm (no affine)",
     .module = batch_renorm_no_affine,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "BatchRenorm (eval)",
     .module = batch_renorm_seen,
     .eval = true,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "BatchNorm (ghost)", .module = batch_norm_ghost, .inputs = {{X(2, {8, 3})}}},
    {.name = "BatchNorm (ghost, combined)",
     .module = batch_norm_combined,
     .inputs = {{X(2, {7, 3})}}},

    {.name = "AdaptiveResidual",
     .module = adaptive_residual,
     .inputs = {{X(3, {2, 3, 4})}, {CONDITION(3, {2, 1, 3})}}},
    {.name = "WeightNorm", .module = weight_norm, .inputs = {{X(2, {3, 4})}}},
    {.name = "WeightNorm (whole)", .module = weight_norm_whole, .inputs = {{X(2, {3, 4})}}},
    {.name = "SpectralNorm", .module = spectral_norm, .inputs = {{X(2, {3, 4})}}},
    {.name = "SpectralNorm (3 iterations)",
     .module = spectral_norm_iterated,
     .inputs = {{X(2, {3, 4})}}},
    {.name = "SpectralNorm (eval)",
     .module = spectral_norm,
     .eval = true,
     .inputs = {{X(2, {3, 4})}}},

    {.name = "Conv2d", .module = conv2d, .inputs = {{X(4, {2, 2, 3, 3})}}},
    {.name = "WeightNorm (Conv2d)", .module = weight_norm_conv2d, .inputs = {{X(4, {2, 2, 3, 3})}}},
    {.name = "SpectralNorm (Conv2d)",
     .module = spectral_norm_conv2d,
     .inputs = {{X(4, {2, 2, 3, 3})}}},
    {.name = "Conv2d (no bias)", .module = conv2d_no_bias, .inputs = {{X(4, {2, 2, 3, 3})}}},
    {.name = "Conv2d (stride, padding, dilation, groups)",
     .module = conv2d_all,
     .inputs = {{X(4, {1, 2, 3, 4})}}},
    {.name = "MaxPool2d", .module = max_pool2d, .inputs = {{X(4, {2, 2, 2, 4})}}},
    {.name = "AvgPool2d", .module = avg_pool2d, .inputs = {{X(4, {2, 1, 4, 4})}}},
    {.name = "GlobalAvgPool", .module = ng_global_avg_pool_new, .inputs = {{X(4, {2, 2, 2, 3})}}},
    {.name = "Flatten", .module = ng_flatten_new, .inputs = {{X(4, {2, 2, 2, 1})}}},
    {.name = "Sequential (residual convolution)",
     .module = residual_convolution,
     .inputs = {{X(4, {2, 2, 3, 3})}}},

    {.name = "Embedding", .module = embedding, .inputs = {{IDS(5, 2, {2, 3})}}},
    {.name = "LearnedPositions", .module = learned_positions, .inputs = {{X(3, {2, 4, 2})}}},
    {.name = "LearnedPositions (shorter)",
     .module = learned_positions,
     .inputs = {{X(3, {2, 3, 2})}}},
    {.name = "MultiHeadAttention", .module = attention, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "MultiHeadAttention (causal, rotary)",
     .module = attention_causal,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "MultiHeadAttention (dropout)",
     .module = attention_dropout,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "MultiHeadAttention (dropout, eval)",
     .module = attention_dropout,
     .eval = true,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "MultiHeadAttention (QK-RMSNorm, causal, rotary)",
     .module = attention_qk_norm,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "MultiHeadAttention (QK-LayerNorm)",
     .module = attention_qk_layer_norm,
     .inputs = {{X(3, {1, 3, 6})}}},
    {.name = "FeedForward", .module = feed_forward, .inputs = {{X(2, {2, 3})}}},
    {.name = "FeedForward (GELUTanh)", .module = feed_forward_tanh, .inputs = {{X(2, {2, 3})}}},
    {.name = "FeedForward (SwiGLU)", .module = swiglu, .inputs = {{X(3, {1, 2, 3})}}},
    {.name = "TransformerBlock (pre)", .module = block_pre, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "TransformerBlock (post)", .module = block_post, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "TransformerBlock (sandwich)",
     .module = block_sandwich,
     .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "TransformerBlock (DeepNorm)", .module = block_deep, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "TransformerBlock (BatchNorm)", .module = block_batch, .inputs = {{X(3, {2, 3, 4})}}},
    {.name = "TransformerBlock (no norm)", .module = block_no_norm, .inputs = {{X(3, {2, 2, 4})}}},
    {.name = "Transformer", .module = transformer, .inputs = {{IDS(5, 2, {2, 3})}}},
    {.name = "Transformer (rotary, DeepNorm)",
     .module = transformer_rotary,
     .inputs = {{IDS(5, 2, {2, 3})}}},
};

const ng_check_row_spec *ng_layer_row(int index)
{
    const int count = (int)(sizeof rows / sizeof *rows);
    return index >= 0 && index < count ? &rows[index] : NULL;
}
