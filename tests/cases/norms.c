/* The cases of normalization layers. */
#include "table.h"

#define LAYER_NORM(X)                                                                              \
    X(LayerNorm, (ANY("x", 3, 5)), ng_layer_norm_new(5))                                           \
    X(LayerNorm_batched, (ANY("x", 2, 2, 5)), ng_layer_norm_new(5))                                \
    X(LayerNorm_over_2_dims, (ANY("x", 2, 2, 3)), ng_layer_norm_over_new(NG_SHAPE(2, 3)))          \
    X(LayerNorm_no_bias, (ANY("x", 3, 5)), ng_layer_norm_new(5, .no_bias = true))                  \
    X(LayerNorm_no_affine, (ANY("x", 3, 5)), ng_layer_norm_new(5, .no_affine = true))              \
    X(LayerNorm_unbiased, (ANY("x", 3, 5)), ng_layer_norm_new(5, .unbiased = true))                \
    X(LayerNorm_channels_first, (ANY("x", 2, 3, 2, 2)),                                            \
      ng_layer_norm_new(3, .channels_first = true))                                                \
    X(LayerNorm_unit_offset, (ANY("x", 3, 5)), ng_layer_norm_new(5, .unit_offset = true))

#define RMS_NORM(X)                                                                                \
    X(RMSNorm, (ANY("x", 3, 5)), ng_rms_norm_new(5))                                               \
    X(RMSNorm_no_affine, (ANY("x", 3, 5)), ng_rms_norm_new(5, .no_affine = true))                  \
    X(RMSNorm_partial, (ANY("x", 3, 5)), ng_rms_norm_new(5, .partial = 0.6))                       \
    X(RMSNorm_groups, (ANY("x", 3, 6)), ng_rms_norm_new(6, .groups = 2))                           \
    X(RMSNorm_by_deviation, (ANY("x", 3, 5)), ng_rms_norm_new(5, .by_deviation = true))            \
    X(RMSNorm_channels_first, (ANY("x", 2, 3, 2, 2)), ng_rms_norm_new(3, .channels_first = true))  \
    X(RMSNorm_unit_offset, (ANY("x", 3, 5)), ng_rms_norm_new(5, .unit_offset = true))              \
    X(RMSNorm_conditional, (ANY("x", 2, 3, 5), ANY("condition", 2, 1, 2)),                         \
      ng_rms_norm_new(5, .condition = 2))

#define GATED_RMS_NORM(X)                                                                          \
    X(GatedRMSNorm, (ANY("x", 2, 2, 4), ANY("gate", 2, 2, 4)), ng_gated_rms_norm_new(4))           \
    X(GatedRMSNorm_groups, (ANY("x", 3, 6), ANY("gate", 3, 6)),                                    \
      ng_gated_rms_norm_new(6, .groups = 2))                                                       \
    X(GatedRMSNorm_norm_first, (ANY("x", 3, 4), ANY("gate", 3, 4)),                                \
      ng_gated_rms_norm_new(4, .norm_first = true))

#define ADAPTIVE_LAYER_NORM(X)                                                                     \
    X(AdaptiveLayerNorm_projected, (ANY("x", 3, 4)), ng_adaptive_layer_norm_new(4))                \
    X(AdaptiveLayerNorm_conditioned, (ANY("x", 2, 3, 4), ANY("condition", 2, 1, 3)),               \
      ng_adaptive_layer_norm_new(4, .condition = 3))                                               \
    X(AdaptiveLayerNorm_gated, (ANY("x", 3, 4), ANY("condition", 3, 3)),                           \
      ng_adaptive_layer_norm_new(4, .condition = 3, .gate = true))                                 \
    X(AdaNorm, (ANY("x", 3, 4)), ng_ada_norm_new(4))                                               \
    X(AdaNorm_differentiated, (ANY("x", 3, 4)),                                                    \
      ng_ada_norm_new(4, .scale = 1.5, .k = 0.3, .differentiate = true))                           \
    X(AdaNorm_raw, (ANY("x", 3, 4)), ng_ada_norm_new(4, .raw = true))                              \
    X(AdaNorm_raw_differentiated, (ANY("x", 3, 4)),                                                \
      ng_ada_norm_new(4, .k = 0.3, .raw = true, .differentiate = true))

/* Sets running statistics that are not 0 and 1, which would hide a mistake. */
static ng_module *with_statistics(ng_module *module)
{
    if (!module) return NULL;
    ng_fill(ng_module_find(module, "running_mean"), 0.4);
    ng_fill(ng_module_find(module, "running_var"), 2.3);
    return module;
}

#define BATCH_NORM(X)                                                                              \
    X(BatchNorm, (BATCH("x", 5, 3)), ng_batch_norm_new(3))                                         \
    X(BatchNorm_N_C_L, (BATCH("x", 2, 3, 4)), ng_batch_norm_new(3))                                \
    X(BatchNorm_N_C_H_W, (BATCH("x", 2, 3, 2, 2)), ng_batch_norm_new(3))                           \
    X(BatchNorm_N_C_D_H_W, (BATCH("x", 2, 3, 1, 2, 2)), ng_batch_norm_new(3))                      \
    X(BatchNorm_cumulative, (BATCH("x", 5, 3)), ng_batch_norm_new(3, .cumulative = true))          \
    X(BatchNorm_no_affine, (BATCH("x", 5, 3)), ng_batch_norm_new(3, .no_affine = true))            \
    X(BatchNorm_frozen, (ANY("x", 5, 3)), with_statistics(ng_batch_norm_new(3, .frozen = true)))   \
    X(BatchNorm_ghost, (BATCH("x", 8, 3)), ng_batch_norm_new(3, .ghost = 3))                       \
    X(BatchNorm_ghost_a_last_sample, (BATCH("x", 7, 3)), ng_batch_norm_new(3, .ghost = 3))         \
    X(BatchNorm_masked, (BATCH("x", 7, 3), INDEX("mask", 2, 7)), ng_batch_norm_new(3))             \
    X(BatchNorm_masked_N_C_L, (BATCH("x", 2, 3, 6), INDEX("mask", 2, 2, 6)), ng_batch_norm_new(3)) \
    X(BatchNorm_masked_frozen_N_C_L, (ANY("x", 2, 3, 4), INDEX("mask", 2, 2, 4)),                  \
      with_statistics(ng_batch_norm_new(3, .frozen = true)))                                       \
    X(BatchNorm_conditional, (BATCH("x", 5, 3), ANY("condition", 5, 2)),                           \
      with_statistics(ng_batch_norm_new(3, .condition = 2)))
#define BATCH_NORM_EVALUATED(X)                                                                    \
    X(BatchNorm_eval, (ANY("x", 2, 3, 4)), with_statistics(ng_batch_norm_new(3)))                  \
    X(BatchNorm_eval_no_running_stats, (BATCH("x", 5, 3)),                                         \
      ng_batch_norm_new(3, .no_running_stats = true))                                              \
    X(BatchNorm_conditional_eval_N_C_L, (ANY("x", 2, 3, 4), ANY("condition", 2, 2)),               \
      with_statistics(ng_batch_norm_new(3, .condition = 2)))

static ng_module *batch_renorm_seen_made(void)
{
    ng_module *module = ng_batch_renorm_new(3);
    ng_fill(module ? ng_module_find(module, "running_mean") : NULL, 0.4);
    ng_fill(module ? ng_module_find(module, "running_deviation") : NULL, 1.5);
    return module;
}

#define BATCH_RENORM(X)                                                                            \
    X(BatchRenorm, (BATCH("x", 5, 3)), ng_batch_renorm_new(3, .r_max = 1.3, .d_max = 0.4))         \
    X(BatchRenorm_N_C_H_W, (BATCH("x", 2, 3, 2, 2)),                                               \
      ng_batch_renorm_new(3, .r_max = 1.3, .d_max = 0.4))                                          \
    X(BatchRenorm_warming_up, (BATCH("x", 5, 3)), ng_batch_renorm_new(3, .warmup = 5))             \
    X(BatchRenorm_no_affine, (BATCH("x", 2, 3, 4)), ng_batch_renorm_new(3, .no_affine = true))     \
    X(BatchRenorm_masked, (BATCH("x", 7, 3), INDEX("mask", 2, 7)),                                 \
      ng_batch_renorm_new(3, .r_max = 1.3, .d_max = 0.4))                                          \
    X(BatchRenorm_masked_N_C_L, (BATCH("x", 2, 3, 6), INDEX("mask", 2, 2, 6)),                     \
      ng_batch_renorm_new(3, .r_max = 1.3, .d_max = 0.4))
#define BATCH_RENORM_EVALUATED(X) X(BatchRenorm_eval, (ANY("x", 2, 3, 4)), batch_renorm_seen_made())

#define GROUP_NORM(X)                                                                              \
    X(GroupNorm_N_C, (ANY("x", 3, 6)), ng_group_norm_new(2, 6))                                    \
    X(GroupNorm_N_C_L, (ANY("x", 2, 4, 3)), ng_group_norm_new(2, 4))                               \
    X(GroupNorm_N_C_H_W, (ANY("x", 2, 4, 2, 2)), ng_group_norm_new(2, 4))                          \
    X(GroupNorm_no_affine, (ANY("x", 2, 4, 3)), ng_group_norm_new(2, 4, .no_affine = true))        \
    X(GroupNorm_conditional, (ANY("x", 2, 4, 3), ANY("condition", 2, 3)),                          \
      ng_group_norm_new(2, 4, .condition = 3))                                                     \
    X(GroupNorm_maps, (ANY("x", 2, 4, 2, 2), ANY("condition", 2, 3, 2, 2)),                        \
      ng_group_norm_new(2, 4, .condition = 3))

#define INSTANCE_NORM(X)                                                                           \
    X(InstanceNorm_N_C_L, (ANY("x", 2, 3, 4)), ng_instance_norm_new(3, .no_affine = true))         \
    X(InstanceNorm_affine, (ANY("x", 2, 3, 2, 2)), ng_instance_norm_new(3))                        \
    X(InstanceNorm_running, (ANY("x", 2, 3, 4)), ng_instance_norm_new(3, .running_stats = true))   \
    X(InstanceNorm_conditional, (ANY("x", 2, 3, 4), ANY("condition", 2, 2)),                       \
      ng_instance_norm_new(3, .condition = 2))                                                     \
    X(InstanceNorm_style, (ANY("x", 2, 3, 2, 2), ANY("style", 2, 3, 5)),                           \
      ng_instance_norm_new(3, .style = true))
#define INSTANCE_NORM_EVALUATED(X)                                                                 \
    X(InstanceNorm_running_eval, (ANY("x", 2, 3, 4)),                                              \
      ng_instance_norm_new(3, .running_stats = true))

#define FILTER_RESPONSE_NORM(X)                                                                    \
    X(FilterResponseNorm, (NOT_ZERO("x", 2, 3, 2, 2)), ng_filter_response_norm_new(3))             \
    X(FilterResponseNorm_learned_eps, (NOT_ZERO("x", 2, 3, 4)),                                    \
      ng_filter_response_norm_new(3, .eps = 0.1, .learned_eps = true))                             \
    X(FilterResponseNorm_no_threshold, (ANY("x", 2, 3, 4)),                                        \
      ng_filter_response_norm_new(3, .no_threshold = true))

#define GLOBAL_RESPONSE_NORM(X)                                                                    \
    X(GlobalResponseNorm, (ANY("x", 2, 3, 2, 2)), ng_global_response_norm_new(3, .eps = 0.1))      \
    X(GlobalResponseNorm_features, (NOT_ZERO("x", 2, 3)),                                          \
      ng_global_response_norm_new(3, .eps = 0.1))

#define EVO_NORM(X)                                                                                \
    X(EvoNormB0, (BATCH("x", 2, 3, 2, 2)), ng_evo_norm_new(3))                                     \
    X(EvoNormB1, (BATCH("x", 2, 3, 2, 2)), ng_evo_norm_new(3, .kind = NG_EVO_1))                   \
    X(EvoNormB2, (BATCH("x", 2, 3, 2, 2)), ng_evo_norm_new(3, .kind = NG_EVO_2))                   \
    X(EvoNormS1, (ANY("x", 2, 4, 2, 2)), ng_evo_norm_new(4, .groups = 2, .kind = NG_EVO_1))        \
    X(EvoNormS2, (ANY("x", 2, 4, 2, 2)), ng_evo_norm_new(4, .groups = 2, .kind = NG_EVO_2))        \
    X(EvoNormS0, (ANY("x", 2, 4, 2, 2)), ng_evo_norm_new(4, .groups = 2))
#define EVO_NORM_EVALUATED(X) X(EvoNormB0_eval, (ANY("x", 2, 3, 4)), ng_evo_norm_new(3))

#define SCALE_NORM(X) X(ScaleNorm, (ANY("x", 3, 5)), ng_scale_norm_new(5))

#define L2_NORM(X)                                                                                 \
    X(L2Norm, (ANY("x", 3, 5)), ng_l2_norm_new(5, .scale = 3))                                     \
    X(L2Norm_no_affine, (ANY("x", 3, 5)), ng_l2_norm_new(5, .no_affine = true))                    \
    X(L2Norm_channels_first, (ANY("x", 2, 3, 2, 2)), ng_l2_norm_new(3, .channels_first = true))

#define DETACH_NORM(X)                                                                             \
    X(DetachNorm, (ANY("x", 3, 5)), ng_detach_norm_new(5))                                         \
    X(DetachNorm_mean_flows, (ANY("x", 3, 5)), ng_detach_norm_new(5, .mean_flows = true))          \
    X(DetachNorm_deviation_flows, (ANY("x", 3, 5)), ng_detach_norm_new(5, .deviation_flows = true))

#define DYNAMIC_TANH(X)                                                                            \
    X(DynamicTanh, (ANY("x", 3, 5)), ng_dynamic_tanh_new(5))                                       \
    X(DynamicTanh_no_affine, (ANY("x", 3, 5)),                                                     \
      ng_dynamic_tanh_new(5, .alpha = 0.8, .no_affine = true))

#define DERF(X)                                                                                    \
    X(Derf, (ANY("x", 3, 5)), ng_derf_new(5))                                                      \
    X(Derf_no_affine, (ANY("x", 3, 5)), ng_derf_new(5, .alpha = 0.8, .no_affine = true))

#define BHYT(X)                                                                                    \
    X(BHyT, (ANY("x", 3, 5)), ng_bhyt_new(5))                                                      \
    X(BHyT_steep, (ANY("x", 2, 2, 5)), ng_bhyt_new(5, .lambda = 3, .kappa = 2, .eps = 0.1))

#define SEED_NORM(X) X(SeeDNorm, (ANY("x", 3, 5)), ng_seed_norm_new(5))
#define POLY_NORM(X) X(PolyNorm, (ANY("x", 3, 5)), ng_poly_norm_new(5))

#define LOCAL_RESPONSE_NORM(X)                                                                     \
    X(LocalResponseNorm, (ANY("x", 2, 5, 2, 2)),                                                   \
      ng_local_response_norm_new(3, .alpha = 0.7, .beta = 0.6, .k = 0.8))

#define FILM(X)                                                                                    \
    X(FiLM_N_C, (ANY("x", 4, 3), ANY("condition", 4, 2)), ng_film_new(3, .condition = 2))          \
    X(FiLM_N_C_H_W, (ANY("x", 2, 3, 2, 2), ANY("condition", 2, 2)),                                \
      ng_film_new(3, .condition = 2))                                                              \
    X(FiLM_maps, (ANY("x", 2, 3, 2, 3), ANY("condition", 2, 2, 2, 3)),                             \
      ng_film_new(3, .condition = 2))                                                              \
    X(FiLM_features_last_no_shift, (ANY("x", 2, 4, 3), ANY("condition", 2, 1, 2)),                 \
      ng_film_new(3, .condition = 2, .features_last = true, .no_shift = true))

#define WEIGHT_NORM(X)                                                                             \
    X(WeightNorm, (ANY("x", 3, 4)), ng_weight_norm_new(ng_linear_new(4, 3)))                       \
    X(WeightNorm_whole, (ANY("x", 3, 4)), ng_weight_norm_new(ng_linear_new(4, 3), .whole = true))  \
    X(WeightNorm_centred, (ANY("x", 3, 4)),                                                        \
      ng_weight_norm_new(ng_linear_new(4, 3), .centered = true))                                   \
    X(WeightNorm_Conv2d, (ANY("x", 2, 2, 3, 3)), ng_weight_norm_new(ng_conv2d_new(2, 3, 2)))

#define WEIGHT_STANDARDIZATION(X)                                                                  \
    X(WeightStandardization, (ANY("x", 3, 4)), ng_weight_standardization_new(ng_linear_new(4, 3))) \
    X(WeightStandardization_Conv2d, (ANY("x", 2, 2, 3, 3)),                                        \
      ng_weight_standardization_new(ng_conv2d_new(2, 3, 2)))

/* u is away from the first singular vector, where its part in the gradient would be 0. */
static ng_module *spectral_norm_made(void)
{
    ng_module *module = ng_spectral_norm_new(ng_linear_new(4, 3));
    if (!module || ng_fill(ng_module_find(module, "u"), 0.5) == NG_OK) return module;
    ng_module_free(module);
    return NULL;
}

#define SPECTRAL_NORM(X)                                                                           \
    X(SpectralNorm, (ANY("x", 3, 4)), spectral_norm_made())                                        \
    X(SpectralNorm_3_iterations, (ANY("x", 3, 4)),                                                 \
      ng_spectral_norm_new(ng_linear_new(4, 3, .no_bias = true), .iterations = 3))                 \
    X(SpectralNorm_Conv2d, (ANY("x", 2, 2, 3, 3)), ng_spectral_norm_new(ng_conv2d_new(2, 3, 2)))
#define SPECTRAL_NORM_EVALUATED(X) X(SpectralNorm_eval, (ANY("x", 3, 4)), spectral_norm_made())

/* clang-format off */
#define ALL(X)                                                                                     \
    LAYER_NORM(X) RMS_NORM(X) GATED_RMS_NORM(X) ADAPTIVE_LAYER_NORM(X) BATCH_NORM(X)               \
    BATCH_RENORM(X) GROUP_NORM(X) INSTANCE_NORM(X) FILTER_RESPONSE_NORM(X)                         \
    GLOBAL_RESPONSE_NORM(X) EVO_NORM(X) SCALE_NORM(X) L2_NORM(X) DETACH_NORM(X) DYNAMIC_TANH(X)    \
    DERF(X) BHYT(X) SEED_NORM(X) POLY_NORM(X)                                                      \
    LOCAL_RESPONSE_NORM(X) FILM(X) WEIGHT_NORM(X) WEIGHT_STANDARDIZATION(X)                        \
    SPECTRAL_NORM(X)
/* clang-format on */
#define ALL_EVALUATED(X)                                                                           \
    BATCH_NORM_EVALUATED(X)                                                                        \
    BATCH_RENORM_EVALUATED(X)                                                                      \
    INSTANCE_NORM_EVALUATED(X) EVO_NORM_EVALUATED(X) SPECTRAL_NORM_EVALUATED(X)

ALL(LAYER_MAKER)
ALL_EVALUATED(LAYER_MAKER)

static const gradient_case cases[] = {ALL(LAYER_ROW) ALL_EVALUATED(EVALUATED_ROW)};
const case_list norm_cases = LIST(cases);
