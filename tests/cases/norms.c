/* The cases of normalization layers. */
#include "table.h"

/* ---- layer_norm ----------------------------------------------------------------------------- */

MODULE(layer_case_layer_norm, ng_layer_norm_new(5))
MODULE(case_layer_norm_over, ng_layer_norm_over_new(NG_SHAPE(2, 3)))
MODULE(case_layer_norm_no_bias, ng_layer_norm_new(5, .no_bias = true))
MODULE(case_layer_norm_no_affine, ng_layer_norm_new(5, .no_affine = true))
MODULE(layer_case_layer_norm_unbiased, ng_layer_norm_new(5, .unbiased = true))
MODULE(case_layer_norm_channels, ng_layer_norm_new(3, .channels_first = true))
MODULE(case_layer_norm_unit_offset, ng_layer_norm_new(5, .unit_offset = true))

static const gradient_case layer_norm_cases[] = {
    LAYER("LayerNorm", layer_case_layer_norm, ANY("x", 3, 5)),
    LAYER("LayerNorm (batched)", layer_case_layer_norm, ANY("x", 2, 2, 5)),
    LAYER("LayerNorm (over 2 dims)", case_layer_norm_over, ANY("x", 2, 2, 3)),
    LAYER("LayerNorm (no bias)", case_layer_norm_no_bias, ANY("x", 3, 5)),
    LAYER("LayerNorm (no affine)", case_layer_norm_no_affine, ANY("x", 3, 5)),
    LAYER("LayerNorm (unbiased)", layer_case_layer_norm_unbiased, ANY("x", 3, 5)),
    LAYER("LayerNorm (channels first)", case_layer_norm_channels, ANY("x", 2, 3, 2, 2)),
    LAYER("LayerNorm (unit offset)", case_layer_norm_unit_offset, ANY("x", 3, 5)),
};

/* ---- rms_norm ------------------------------------------------------------------------------- */

MODULE(layer_case_rms_norm, ng_rms_norm_new(5))
MODULE(case_rms_norm_no_affine, ng_rms_norm_new(5, .no_affine = true))
MODULE(layer_case_rms_norm_partial, ng_rms_norm_new(5, .partial = 0.6))
MODULE(case_rms_norm_unit_offset, ng_rms_norm_new(5, .unit_offset = true))
MODULE(case_rms_norm_conditional, ng_rms_norm_new(5, .condition = 2))

static const gradient_case rms_norm_cases[] = {
    LAYER("RMSNorm", layer_case_rms_norm, ANY("x", 3, 5)),
    LAYER("RMSNorm (no affine)", case_rms_norm_no_affine, ANY("x", 3, 5)),
    LAYER("RMSNorm (partial)", layer_case_rms_norm_partial, ANY("x", 3, 5)),
    LAYER("RMSNorm (unit offset)", case_rms_norm_unit_offset, ANY("x", 3, 5)),
    LAYER("RMSNorm (conditional)", case_rms_norm_conditional, ANY("x", 2, 3, 5),
          ANY("condition", 2, 1, 2)),
};

/* ---- gated_rms_norm ------------------------------------------------------------------------- */

MODULE(case_gated_rms_norm, ng_gated_rms_norm_new(4))
MODULE(case_gated_rms_norm_groups, ng_gated_rms_norm_new(6, .groups = 2))
MODULE(case_gated_rms_norm_first, ng_gated_rms_norm_new(4, .norm_first = true))

static const gradient_case gated_rms_norm_cases[] = {
    LAYER("GatedRMSNorm", case_gated_rms_norm, ANY("x", 2, 2, 4), ANY("gate", 2, 2, 4)),
    LAYER("GatedRMSNorm (groups)", case_gated_rms_norm_groups, ANY("x", 3, 6), ANY("gate", 3, 6)),
    LAYER("GatedRMSNorm (norm first)", case_gated_rms_norm_first, ANY("x", 3, 4),
          ANY("gate", 3, 4)),
};

/* ---- adaptive_layer_norm -------------------------------------------------------------------- */

MODULE(case_adaptive_projected, ng_adaptive_layer_norm_new(4))
MODULE(case_adaptive_conditioned, ng_adaptive_layer_norm_new(4, .condition = 3))
MODULE(case_adaptive_gated, ng_adaptive_layer_norm_new(4, .condition = 3, .gate = true))
MODULE(case_adanorm, ng_ada_norm_new(4))
MODULE(case_adanorm_differentiated,
       ng_ada_norm_new(4, .scale = 1.5, .k = 0.3, .differentiate = true))
MODULE(case_adanorm_raw, ng_ada_norm_new(4, .raw = true))
MODULE(case_adanorm_raw_differentiated,
       ng_ada_norm_new(4, .k = 0.3, .raw = true, .differentiate = true))

static const gradient_case adaptive_layer_norm_cases[] = {
    LAYER("AdaptiveLayerNorm (projected)", case_adaptive_projected, ANY("x", 3, 4)),
    LAYER("AdaptiveLayerNorm (conditioned)", case_adaptive_conditioned, ANY("x", 2, 3, 4),
          ANY("condition", 2, 1, 3)),
    LAYER("AdaptiveLayerNorm (gated)", case_adaptive_gated, ANY("x", 3, 4), ANY("condition", 3, 3)),
    LAYER("AdaNorm", case_adanorm, ANY("x", 3, 4)),
    LAYER("AdaNorm (differentiated)", case_adanorm_differentiated, ANY("x", 3, 4)),
    LAYER("AdaNorm (raw)", case_adanorm_raw, ANY("x", 3, 4)),
    LAYER("AdaNorm (raw, differentiated)", case_adanorm_raw_differentiated, ANY("x", 3, 4)),
};

/* ---- batch_norm ----------------------------------------------------------------------------- */

MODULE(case_batch_norm, ng_batch_norm_new(3))
MODULE(case_batch_norm_cumulative, ng_batch_norm_new(3, .cumulative = true))
MODULE(case_batch_norm_no_affine, ng_batch_norm_new(3, .no_affine = true))

/* Sets running statistics that are not 0 and 1, which would hide a mistake. */
static ng_module *with_statistics(ng_module *module)
{
    if (!module) return NULL;
    ng_fill(ng_module_find(module, "running_mean"), 0.4);
    ng_fill(ng_module_find(module, "running_var"), 2.3);
    return module;
}
MODULE(case_batch_norm_seen, with_statistics(ng_batch_norm_new(3)))
MODULE(case_batch_norm_frozen, with_statistics(ng_batch_norm_new(3, .frozen = true)))
MODULE(case_batch_norm_no_running_stats, ng_batch_norm_new(3, .no_running_stats = true))
MODULE(case_batch_norm_ghost, ng_batch_norm_new(3, .ghost = 3))
MODULE(case_batch_norm_masked, ng_batch_norm_new(3))
MODULE(case_batch_norm_masked_frozen, with_statistics(ng_batch_norm_new(3, .frozen = true)))
MODULE(case_batch_norm_conditional, with_statistics(ng_batch_norm_new(3, .condition = 2)))

static const gradient_case batch_norm_cases[] = {
    BATCH_LAYER("BatchNorm", case_batch_norm, ANY("x", 5, 3)),
    BATCH_LAYER("BatchNorm (N, C, L)", case_batch_norm, ANY("x", 2, 3, 4)),
    BATCH_LAYER("BatchNorm (N, C, H, W)", case_batch_norm, ANY("x", 2, 3, 2, 2)),
    BATCH_LAYER("BatchNorm (N, C, D, H, W)", case_batch_norm, ANY("x", 2, 3, 1, 2, 2)),
    BATCH_LAYER("BatchNorm (cumulative)", case_batch_norm_cumulative, ANY("x", 5, 3)),
    BATCH_LAYER("BatchNorm (no affine)", case_batch_norm_no_affine, ANY("x", 5, 3)),
    LAYER_EVAL("BatchNorm (eval)", case_batch_norm_seen, ANY("x", 2, 3, 4)),
    LAYER("BatchNorm (frozen)", case_batch_norm_frozen, ANY("x", 5, 3)),
    {.name = "BatchNorm (eval, no running stats)",
     .module = case_batch_norm_no_running_stats,
     .eval = true,
     .batch = true,
     .inputs = {ANY("x", 5, 3)}},
    BATCH_LAYER("BatchNorm (ghost)", case_batch_norm_ghost, ANY("x", 8, 3)),
    BATCH_LAYER("BatchNorm (ghost, a last sample)", case_batch_norm_ghost, ANY("x", 7, 3)),
    BATCH_LAYER("BatchNorm (masked)", case_batch_norm_masked, ANY("x", 7, 3), INDEX("mask", 2, 7)),
    BATCH_LAYER("BatchNorm (masked, N, C, L)", case_batch_norm_masked, ANY("x", 2, 3, 6),
                INDEX("mask", 2, 2, 6)),
    LAYER("BatchNorm (masked, frozen, N, C, L)", case_batch_norm_masked_frozen, ANY("x", 2, 3, 4),
          INDEX("mask", 2, 2, 4)),
    BATCH_LAYER("BatchNorm (conditional)", case_batch_norm_conditional, ANY("x", 5, 3),
                ANY("condition", 5, 2)),
    LAYER_EVAL("BatchNorm (conditional, eval, N, C, L)", case_batch_norm_conditional,
               ANY("x", 2, 3, 4), ANY("condition", 2, 2)),
};

/* ---- batch_renorm --------------------------------------------------------------------------- */

MODULE(case_batch_renorm, ng_batch_renorm_new(3, .r_max = 1.3, .d_max = 0.4))
MODULE(case_batch_renorm_warming_up, ng_batch_renorm_new(3, .warmup = 5))
MODULE(case_batch_renorm_no_affine, ng_batch_renorm_new(3, .no_affine = true))
static ng_module *case_batch_renorm_seen(void)
{
    ng_module *module = ng_batch_renorm_new(3);
    ng_fill(module ? ng_module_find(module, "running_mean") : NULL, 0.4);
    ng_fill(module ? ng_module_find(module, "running_deviation") : NULL, 1.5);
    return module;
}

MODULE(case_batch_renorm_masked, ng_batch_renorm_new(3, .r_max = 1.3, .d_max = 0.4))

static const gradient_case batch_renorm_cases[] = {
    BATCH_LAYER("BatchRenorm", case_batch_renorm, ANY("x", 5, 3)),
    BATCH_LAYER("BatchRenorm (N, C, H, W)", case_batch_renorm, ANY("x", 2, 3, 2, 2)),
    BATCH_LAYER("BatchRenorm (warming up)", case_batch_renorm_warming_up, ANY("x", 5, 3)),
    BATCH_LAYER("BatchRenorm (no affine)", case_batch_renorm_no_affine, ANY("x", 2, 3, 4)),
    LAYER_EVAL("BatchRenorm (eval)", case_batch_renorm_seen, ANY("x", 2, 3, 4)),
    BATCH_LAYER("BatchRenorm (masked)", case_batch_renorm_masked, ANY("x", 7, 3),
                INDEX("mask", 2, 7)),
    BATCH_LAYER("BatchRenorm (masked, N, C, L)", case_batch_renorm_masked, ANY("x", 2, 3, 6),
                INDEX("mask", 2, 2, 6)),
};

/* ---- group_norm ----------------------------------------------------------------------------- */

MODULE(case_group_norm_features, ng_group_norm_new(2, 6))
MODULE(case_group_norm, ng_group_norm_new(2, 4))
MODULE(case_group_norm_no_affine, ng_group_norm_new(2, 4, .no_affine = true))
MODULE(case_group_norm_conditional, ng_group_norm_new(2, 4, .condition = 3))

static const gradient_case group_norm_cases[] = {
    LAYER("GroupNorm (N, C)", case_group_norm_features, ANY("x", 3, 6)),
    LAYER("GroupNorm (N, C, L)", case_group_norm, ANY("x", 2, 4, 3)),
    LAYER("GroupNorm (N, C, H, W)", case_group_norm, ANY("x", 2, 4, 2, 2)),
    LAYER("GroupNorm (no affine)", case_group_norm_no_affine, ANY("x", 2, 4, 3)),
    LAYER("GroupNorm (conditional)", case_group_norm_conditional, ANY("x", 2, 4, 3),
          ANY("condition", 2, 3)),
    LAYER("GroupNorm (maps)", case_group_norm_conditional, ANY("x", 2, 4, 2, 2),
          ANY("condition", 2, 3, 2, 2)),
};

/* ---- instance_norm -------------------------------------------------------------------------- */

MODULE(case_instance_norm, ng_instance_norm_new(3, .no_affine = true))
MODULE(case_instance_norm_affine, ng_instance_norm_new(3))
MODULE(case_instance_norm_running, ng_instance_norm_new(3, .running_stats = true))
MODULE(case_instance_norm_conditional, ng_instance_norm_new(3, .condition = 2))
MODULE(case_instance_norm_style, ng_instance_norm_new(3, .style = true))

static const gradient_case instance_norm_cases[] = {
    LAYER("InstanceNorm (N, C, L)", case_instance_norm, ANY("x", 2, 3, 4)),
    LAYER("InstanceNorm (affine)", case_instance_norm_affine, ANY("x", 2, 3, 2, 2)),
    LAYER("InstanceNorm (running)", case_instance_norm_running, ANY("x", 2, 3, 4)),
    LAYER_EVAL("InstanceNorm (running, eval)", case_instance_norm_running, ANY("x", 2, 3, 4)),
    LAYER("InstanceNorm (conditional)", case_instance_norm_conditional, ANY("x", 2, 3, 4),
          ANY("condition", 2, 2)),
    LAYER("InstanceNorm (style)", case_instance_norm_style, ANY("x", 2, 3, 2, 2),
          ANY("style", 2, 3, 5)),
};

/* ---- filter_response_norm ------------------------------------------------------------------- */

MODULE(case_filter_response_norm, ng_filter_response_norm_new(3))
MODULE(case_filter_response_norm_learned,
       ng_filter_response_norm_new(3, .eps = 0.1, .learned_eps = true))
MODULE(case_filter_response_norm_smooth, ng_filter_response_norm_new(3, .no_threshold = true))

static const gradient_case filter_response_norm_cases[] = {
    LAYER("FilterResponseNorm", case_filter_response_norm, NOT_ZERO("x", 2, 3, 2, 2)),
    LAYER("FilterResponseNorm (learned eps)", case_filter_response_norm_learned,
          NOT_ZERO("x", 2, 3, 4)),
    LAYER("FilterResponseNorm (no threshold)", case_filter_response_norm_smooth, ANY("x", 2, 3, 4)),
};

/* ---- global_response_norm ------------------------------------------------------------------- */

MODULE(case_global_response_norm, ng_global_response_norm_new(3, .eps = 0.1))

static const gradient_case global_response_norm_cases[] = {
    LAYER("GlobalResponseNorm", case_global_response_norm, ANY("x", 2, 3, 2, 2)),
    LAYER("GlobalResponseNorm (features)", case_global_response_norm, NOT_ZERO("x", 2, 3)),
};

/* ---- evo_norm ------------------------------------------------------------------------------- */

MODULE(case_evo_b0, ng_evo_norm_new(3))
MODULE(case_evo_s0, ng_evo_norm_new(4, .groups = 2))

static const gradient_case evo_norm_cases[] = {
    BATCH_LAYER("EvoNormB0", case_evo_b0, ANY("x", 2, 3, 2, 2)),
    LAYER_EVAL("EvoNormB0 (eval)", case_evo_b0, ANY("x", 2, 3, 4)),
    LAYER("EvoNormS0", case_evo_s0, ANY("x", 2, 4, 2, 2)),
};

/* ---- scale_norm ----------------------------------------------------------------------------- */

MODULE(layer_case_scale_norm, ng_scale_norm_new(5))

static const gradient_case scale_norm_cases[] = {
    LAYER("ScaleNorm", layer_case_scale_norm, ANY("x", 3, 5)),
};

/* ---- l2_norm -------------------------------------------------------------------------------- */

MODULE(case_l2_norm, ng_l2_norm_new(5, .scale = 3))
MODULE(case_l2_norm_no_affine, ng_l2_norm_new(5, .no_affine = true))
MODULE(case_l2_norm_channels, ng_l2_norm_new(3, .channels_first = true))

static const gradient_case l2_norm_cases[] = {
    LAYER("L2Norm", case_l2_norm, ANY("x", 3, 5)),
    LAYER("L2Norm (no affine)", case_l2_norm_no_affine, ANY("x", 3, 5)),
    LAYER("L2Norm (channels first)", case_l2_norm_channels, ANY("x", 2, 3, 2, 2)),
};

/* ---- detach_norm ---------------------------------------------------------------------------- */

MODULE(case_detach_norm, ng_detach_norm_new(5))
MODULE(case_detach_norm_mean_flows, ng_detach_norm_new(5, .mean_flows = true))
MODULE(case_detach_norm_deviation_flows, ng_detach_norm_new(5, .deviation_flows = true))

static const gradient_case detach_norm_cases[] = {
    LAYER("DetachNorm", case_detach_norm, ANY("x", 3, 5)),
    LAYER("DetachNorm (mean flows)", case_detach_norm_mean_flows, ANY("x", 3, 5)),
    LAYER("DetachNorm (deviation flows)", case_detach_norm_deviation_flows, ANY("x", 3, 5)),
};

/* ---- dynamic_tanh --------------------------------------------------------------------------- */

MODULE(layer_case_dynamic_tanh, ng_dynamic_tanh_new(5))
MODULE(case_dynamic_tanh_no_affine, ng_dynamic_tanh_new(5, .alpha = 0.8, .no_affine = true))

static const gradient_case dynamic_tanh_cases[] = {
    LAYER("DynamicTanh", layer_case_dynamic_tanh, ANY("x", 3, 5)),
    LAYER("DynamicTanh (no affine)", case_dynamic_tanh_no_affine, ANY("x", 3, 5)),
};

/* ---- derf ----------------------------------------------------------------------------------- */

MODULE(case_derf, ng_derf_new(5))
MODULE(case_derf_no_affine, ng_derf_new(5, .alpha = 0.8, .no_affine = true))

static const gradient_case derf_cases[] = {
    LAYER("Derf", case_derf, ANY("x", 3, 5)),
    LAYER("Derf (no affine)", case_derf_no_affine, ANY("x", 3, 5)),
};

/* ---- local_response_norm -------------------------------------------------------------------- */

MODULE(case_local_response_norm, ng_local_response_norm_new(3, .alpha = 0.7, .beta = 0.6, .k = 0.8))

static const gradient_case local_response_norm_cases[] = {
    LAYER("LocalResponseNorm", case_local_response_norm, ANY("x", 2, 5, 2, 2)),
};

/* ---- film ----------------------------------------------------------------------------------- */

MODULE(case_film, ng_film_new(3, .condition = 2))
MODULE(case_film_features, ng_film_new(3, .condition = 2, .features_last = true, .no_shift = true))

static const gradient_case film_cases[] = {
    LAYER("FiLM (N, C)", case_film, ANY("x", 4, 3), ANY("condition", 4, 2)),
    LAYER("FiLM (N, C, H, W)", case_film, ANY("x", 2, 3, 2, 2), ANY("condition", 2, 2)),
    LAYER("FiLM (maps)", case_film, ANY("x", 2, 3, 2, 3), ANY("condition", 2, 2, 2, 3)),
    LAYER("FiLM (features last, no shift)", case_film_features, ANY("x", 2, 4, 3),
          ANY("condition", 2, 1, 2)),
};

/* ---- weight_norm ---------------------------------------------------------------------------- */

MODULE(layer_case_weight_norm, ng_weight_norm_new(ng_linear_new(4, 3)))
MODULE(case_weight_norm_whole, ng_weight_norm_new(ng_linear_new(4, 3), .whole = true))
MODULE(case_weight_norm_centred, ng_weight_norm_new(ng_linear_new(4, 3), .centered = true))
MODULE(case_weight_norm_conv2d, ng_weight_norm_new(ng_conv2d_new(2, 3, 2)))

static const gradient_case weight_norm_cases[] = {
    LAYER("WeightNorm", layer_case_weight_norm, ANY("x", 3, 4)),
    LAYER("WeightNorm (whole)", case_weight_norm_whole, ANY("x", 3, 4)),
    LAYER("WeightNorm (centred)", case_weight_norm_centred, ANY("x", 3, 4)),
    LAYER("WeightNorm (Conv2d)", case_weight_norm_conv2d, ANY("x", 2, 2, 3, 3)),
};

/* ---- weight_standardization ----------------------------------------------------------------- */

MODULE(case_weight_standardization, ng_weight_standardization_new(ng_linear_new(4, 3)))
MODULE(case_weight_standardization_conv2d, ng_weight_standardization_new(ng_conv2d_new(2, 3, 2)))

static const gradient_case weight_standardization_cases[] = {
    LAYER("WeightStandardization", case_weight_standardization, ANY("x", 3, 4)),
    LAYER("WeightStandardization (Conv2d)", case_weight_standardization_conv2d,
          ANY("x", 2, 2, 3, 3)),
};

/* ---- spectral_norm -------------------------------------------------------------------------- */

/* u is away from the first singular vector, where its part in the gradient would be 0. */
static ng_module *layer_case_spectral_norm(void)
{
    ng_module *module = ng_spectral_norm_new(ng_linear_new(4, 3));
    if (!module || ng_fill(ng_module_find(module, "u"), 0.5) == NG_OK) return module;
    ng_module_free(module);
    return NULL;
}
MODULE(case_spectral_norm_iterated,
       ng_spectral_norm_new(ng_linear_new(4, 3, .no_bias = true), .iterations = 3))
MODULE(case_spectral_norm_conv2d, ng_spectral_norm_new(ng_conv2d_new(2, 3, 2)))

static const gradient_case spectral_norm_cases[] = {
    LAYER("SpectralNorm", layer_case_spectral_norm, ANY("x", 3, 4)),
    LAYER("SpectralNorm (3 iterations)", case_spectral_norm_iterated, ANY("x", 3, 4)),
    LAYER_EVAL("SpectralNorm (eval)", layer_case_spectral_norm, ANY("x", 3, 4)),
    LAYER("SpectralNorm (Conv2d)", case_spectral_norm_conv2d, ANY("x", 2, 2, 3, 3)),
};

const case_list norms_lists[] = {
    LIST(layer_norm_cases),
    LIST(rms_norm_cases),
    LIST(gated_rms_norm_cases),
    LIST(adaptive_layer_norm_cases),
    LIST(batch_norm_cases),
    LIST(batch_renorm_cases),
    LIST(group_norm_cases),
    LIST(instance_norm_cases),
    LIST(filter_response_norm_cases),
    LIST(global_response_norm_cases),
    LIST(evo_norm_cases),
    LIST(scale_norm_cases),
    LIST(l2_norm_cases),
    LIST(detach_norm_cases),
    LIST(dynamic_tanh_cases),
    LIST(derf_cases),
    LIST(local_response_norm_cases),
    LIST(film_cases),
    LIST(weight_norm_cases),
    LIST(weight_standardization_cases),
    LIST(spectral_norm_cases),
    {0},
};
