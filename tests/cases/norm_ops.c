/* The cases of the ops of norms. */
#include "table.h"

#define ROW_NORM(X)                                                                                \
    X(layer_norm, (ANY("x", 2, 3, 5), ANY("gamma", 5), ANY("beta", 5)),                            \
      ng_layer_norm(tape, in[0], in[1], in[2], .eps = 1e-5))                                       \
    X(layer_norm_no_gamma, (ANY("x", 3, 5), ANY("beta", 5)),                                       \
      ng_layer_norm(tape, in[0], NG_NONE, in[1], .eps = 1e-5))                                     \
    X(layer_norm_no_beta, (ANY("x", 3, 5), ANY("gamma", 5)),                                       \
      ng_layer_norm(tape, in[0], in[1], NG_NONE, .eps = 1e-5))                                     \
    X(layer_norm_no_affine, (ANY("x", 3, 5)),                                                      \
      ng_layer_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))                                   \
    X(layer_norm_two_dimensions, (ANY("x", 3, 2, 4), ANY("gamma", 2, 4), ANY("beta", 2, 4)),       \
      ng_layer_norm(tape, in[0], in[1], in[2], .eps = 1e-5))                                       \
    X(layer_norm_two_dimensions_no_affine, (ANY("x", 3, 2, 4)),                                    \
      ng_row_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5, .dims = 2))                          \
    X(layer_norm_unbiased, (ANY("x", 3, 5), ANY("gamma", 5), ANY("beta", 5)),                      \
      ng_row_norm(tape, in[0], in[1], in[2], .eps = 1e-6, .unbiased = true))                       \
    X(layer_norm_one_feature, (ANY("x", 4, 1), ANY("gamma", 1), ANY("beta", 1)),                   \
      ng_layer_norm(tape, in[0], in[1], in[2], .eps = 1e-5))                                       \
    X(rms_norm, (ANY("x", 3, 5), ANY("gamma", 5)), ng_rms_norm(tape, in[0], in[1], .eps = 1e-6))   \
    X(rms_norm_no_affine, (ANY("x", 3, 5)), ng_rms_norm(tape, in[0], NG_NONE, .eps = 1e-6))        \
    X(rms_norm_beta_two_dimensions, (ANY("x", 3, 2, 3), ANY("gamma", 2, 3), ANY("beta", 2, 3)),    \
      ng_row_norm(tape, in[0], in[1], in[2], .eps = 1e-6, .rms = true))                            \
    X(rms_norm_partial, (ANY("x", 3, 7), ANY("gamma", 7)),                                         \
      ng_row_norm(tape, in[0], in[1], NG_NONE, .eps = 1e-6, .rms = true, .partial = 0.5))

#define AFFINE ANY("gamma", 3), ANY("beta", 3)
#define RUNNING CONSTANT("running_mean", 3), POSITIVE_CONSTANT("running_var", 3)

#define BATCH_NORM(X)                                                                              \
    X(batch_norm, (ANY("x", 5, 3), AFFINE),                                                        \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true))   \
    X(batch_norm_N_C_L, (ANY("x", 2, 3, 4), AFFINE),                                               \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true))   \
    X(batch_norm_N_C_H_W, (ANY("x", 2, 3, 2, 2), AFFINE),                                          \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true))   \
    X(batch_norm_N_C_D_H_W, (ANY("x", 2, 3, 1, 2, 2), AFFINE),                                     \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true))   \
    X(batch_norm_no_affine, (ANY("x", 5, 3)),                                                      \
      ng_batch_norm(tape, in[0], NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = 1e-5,                  \
                    .training = true))                                                             \
    X(batch_norm_eval, (ANY("x", 5, 3), AFFINE, RUNNING),                                          \
      ng_batch_norm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5))                         \
    X(batch_norm_eval_N_C_L, (ANY("x", 2, 3, 4), AFFINE, RUNNING),                                 \
      ng_batch_norm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5))                         \
    X(batch_norm_eval_no_affine, (ANY("x", 5, 3), RUNNING),                                        \
      ng_batch_norm(tape, in[0], NG_NONE, NG_NONE, in[1], in[2], .eps = 1e-5))                     \
    X(batch_norm_mask, (ANY("x", 7, 3), AFFINE, INDEX("mask", 2, 7)),                              \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true,    \
                    .mask = in[3]))                                                                \
    X(batch_norm_mask_N_C_L, (ANY("x", 2, 3, 5), AFFINE, INDEX("mask", 2, 2, 5)),                  \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true,    \
                    .mask = in[3]))                                                                \
    X(batch_norm_mask_of_samples_N_C_H_W, (ANY("x", 4, 3, 2, 1), AFFINE, INDEX("mask", 2, 4)),     \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true,    \
                    .mask = in[3]))                                                                \
    X(batch_norm_mask_eval_N_C_H_W,                                                                \
      (ANY("x", 2, 3, 2, 2), AFFINE, RUNNING, INDEX("mask", 2, 2, 2, 2)),                          \
      ng_batch_norm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .mask = in[5]))          \
    X(batch_norm_mask_N_C_D_H_W, (ANY("x", 2, 3, 2, 1, 2), AFFINE, INDEX("mask", 2, 2, 2, 1, 2)),  \
      ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true,    \
                    .mask = in[3]))

#define RENORM_STATISTICS CONSTANT("running_mean", 3), POSITIVE_CONSTANT("running_deviation", 3)

#define SUB_BATCH(X)                                                                               \
    X(batch_renorm, (ANY("x", 5, 3), AFFINE, RENORM_STATISTICS),                                   \
      ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .momentum = NG_ZERO,   \
                      .r_max = 1.2, .d_max = 0.5, .training = true))                               \
    X(batch_renorm_N_C_L, (ANY("x", 2, 3, 4), AFFINE, RENORM_STATISTICS),                          \
      ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .momentum = NG_ZERO,   \
                      .r_max = 1.2, .d_max = 0.5, .training = true))                               \
    X(batch_renorm_no_affine, (ANY("x", 5, 3), RENORM_STATISTICS),                                 \
      ng_batch_renorm(tape, in[0], NG_NONE, NG_NONE, in[1], in[2], .eps = 1e-5,                    \
                      .momentum = NG_ZERO, .r_max = 10, .d_max = 10, .training = true))            \
    X(batch_renorm_eval, (ANY("x", 5, 3), AFFINE, RENORM_STATISTICS),                              \
      ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4]))                                    \
    X(batch_renorm_mask, (ANY("x", 12, 3), AFFINE, RENORM_STATISTICS, INDEX("mask", 2, 12)),       \
      ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .momentum = NG_ZERO,   \
                      .r_max = 1.2, .d_max = 0.5, .training = true, .mask = in[5]))                \
    X(batch_renorm_mask_N_C_L,                                                                     \
      (ANY("x", 2, 3, 5), AFFINE, RENORM_STATISTICS, INDEX("mask", 2, 2, 5)),                      \
      ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .momentum = NG_ZERO,   \
                      .r_max = 1.2, .d_max = 0.5, .training = true, .mask = in[5]))                \
    X(batch_renorm_mask_eval_N_C_L,                                                                \
      (ANY("x", 2, 3, 4), AFFINE, RENORM_STATISTICS, INDEX("mask", 2, 2, 4)),                      \
      ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .mask = in[5]))                     \
    X(ghost_batch_norm, (ANY("x", 8, 3), AFFINE),                                                  \
      ng_ghost_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .size = 3, .eps = 1e-5,     \
                          .training = true))                                                       \
    X(ghost_batch_norm_N_C_L, (ANY("x", 4, 3, 3), AFFINE),                                         \
      ng_ghost_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .size = 3, .eps = 1e-5,     \
                          .training = true))                                                       \
    X(ghost_batch_norm_a_last_sample, (ANY("x", 7, 3), AFFINE),                                    \
      ng_ghost_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .size = 3, .eps = 1e-5,     \
                          .training = true))

#define GAMMA(channels) ANY("gamma", channels)
#define BETA(channels) ANY("beta", channels)

#define GROUP_NORM(X)                                                                              \
    X(group_norm_N_C, (ANY("x", 2, 6), GAMMA(6), BETA(6)),                                         \
      ng_group_norm(tape, in[0], in[1], in[2], .groups = 2, .eps = 1e-5))                          \
    X(group_norm_N_C_L, (ANY("x", 2, 4, 3), GAMMA(4), BETA(4)),                                    \
      ng_group_norm(tape, in[0], in[1], in[2], .groups = 2, .eps = 1e-5))                          \
    X(group_norm_N_C_H_W, (ANY("x", 2, 4, 2, 3), GAMMA(4), BETA(4)),                               \
      ng_group_norm(tape, in[0], in[1], in[2], .groups = 2, .eps = 1e-5))                          \
    X(group_norm_no_gamma, (ANY("x", 2, 4, 3), BETA(4)),                                           \
      ng_group_norm(tape, in[0], NG_NONE, in[1], .groups = 2, .eps = 1e-5))                        \
    X(group_norm_no_beta_one_group, (ANY("x", 2, 3, 3), GAMMA(3)),                                 \
      ng_group_norm(tape, in[0], in[1], NG_NONE, .groups = 1, .eps = 1e-5))                        \
    X(group_norm_no_affine, (ANY("x", 2, 4, 3)),                                                   \
      ng_group_norm(tape, in[0], NG_NONE, NG_NONE, .groups = 2, .eps = 1e-5))                      \
    X(instance_norm_N_C_L, (ANY("x", 2, 3, 5), GAMMA(3), BETA(3)),                                 \
      ng_instance_norm(tape, in[0], in[1], in[2], .eps = 1e-5))                                    \
    X(instance_norm_N_C_H_W, (ANY("x", 2, 2, 3, 2), GAMMA(2), BETA(2)),                            \
      ng_instance_norm(tape, in[0], in[1], in[2], .eps = 1e-5))                                    \
    X(instance_norm_no_affine, (ANY("x", 2, 3, 5)),                                                \
      ng_instance_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))

#define CHANNEL_NORM(X)                                                                            \
    X(channel_norm_N_C, (ANY("x", 3, 5), ANY("gamma", 5), ANY("beta", 5)),                         \
      ng_channel_norm(tape, in[0], in[1], in[2], .eps = 1e-5))                                     \
    X(channel_norm_N_C_H_W, (ANY("x", 2, 3, 2, 3), ANY("gamma", 3), ANY("beta", 3)),               \
      ng_channel_norm(tape, in[0], in[1], in[2], .eps = 1e-5))                                     \
    X(channel_norm_no_gamma, (ANY("x", 2, 3, 4), ANY("beta", 3)),                                  \
      ng_channel_norm(tape, in[0], NG_NONE, in[1], .eps = 1e-5))                                   \
    X(channel_norm_no_affine, (ANY("x", 2, 3, 4)),                                                 \
      ng_channel_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))

#define SIMPLE_NORMS(X)                                                                            \
    X(scale_norm, (ANY("x", 3, 5), ANY("g", 1)),                                                   \
      ng_scale_norm(tape, in[0], in[1], .eps = NG_ZERO))                                           \
    X(scale_norm_eps, (ANY("x", 2, 2, 3), ANY("g", 1)),                                            \
      ng_scale_norm(tape, in[0], in[1], .eps = 0.3))                                               \
    X(detach_norm_both, (ANY("x", 3, 5)), ng_detach_norm(tape, in[0], .eps = 1e-5))                \
    X(detach_norm_deviation, (ANY("x", 3, 5)),                                                     \
      ng_detach_norm(tape, in[0], .eps = 1e-5, .mean_flows = true))                                \
    X(detach_norm_mean, (ANY("x", 3, 5)),                                                          \
      ng_detach_norm(tape, in[0], .eps = 1e-5, .deviation_flows = true))                           \
    X(detach_norm_neither, (ANY("x", 3, 5)),                                                       \
      ng_detach_norm(tape, in[0], .eps = 1e-5, .mean_flows = true, .deviation_flows = true))       \
    X(dynamic_tanh, (ANY("x", 2, 2, 4), ANY("alpha", 1), ANY("gamma", 4), ANY("beta", 4)),         \
      ng_dynamic_tanh(tape, in[0], in[1], in[2], in[3]))                                           \
    X(dynamic_tanh_no_gamma, (ANY("x", 3, 4), ANY("alpha", 1), ANY("beta", 4)),                    \
      ng_dynamic_tanh(tape, in[0], in[1], NG_NONE, in[2]))                                         \
    X(dynamic_tanh_no_affine, (ANY("x", 3, 4), ANY("alpha", 1)),                                   \
      ng_dynamic_tanh(tape, in[0], in[1], NG_NONE, NG_NONE))                                       \
    X(sinkhorn, (ANY("x", 2, 3, 3)), ng_sinkhorn(tape, in[0]))                                     \
    X(sinkhorn_2_steps, (ANY("x", 4, 4)), ng_sinkhorn(tape, in[0], .steps = 2))                    \
    X(local_response_norm, (ANY("x", 2, 5, 2, 2)),                                                 \
      ng_local_response_norm(tape, in[0], 3, .alpha = 0.7, .k = 0.8))                              \
    X(local_response_norm_even_N_C_L, (ANY("x", 2, 3, 2)),                                         \
      ng_local_response_norm(tape, in[0], 4, .alpha = 2, .beta = 0.5))

#define WEIGHT_NORM(X)                                                                             \
    X(weight_norm, (ANY("v", 3, 4), ANY("g", 3)), ng_weight_norm(tape, in[0], in[1]))              \
    X(weight_norm_kernel, (ANY("v", 2, 3, 2, 2), ANY("g", 2)), ng_weight_norm(tape, in[0], in[1])) \
    X(weight_norm_whole, (ANY("v", 3, 4), ANY("g", 1)), ng_weight_norm(tape, in[0], in[1]))        \
    X(spectral_norm, (POSITIVE("w", 3, 4), POSITIVE_CONSTANT("u", 3), POSITIVE_CONSTANT("v", 4)),  \
      ng_spectral_norm(tape, in[0], in[1], in[2]))                                                 \
    X(spectral_norm_kernel,                                                                        \
      (POSITIVE("w", 2, 2, 1, 2), POSITIVE_CONSTANT("u", 2), POSITIVE_CONSTANT("v", 4)),           \
      ng_spectral_norm(tape, in[0], in[1], in[2]))

/* Sizes around vectors and blocks (large_case), and of gradients that are recorded. */
#define ROWS(n, f) ANY("x", n, f), ANY("gamma", f), ANY("beta", f)
#define CHANNELS(c, ...) ANY("x", __VA_ARGS__), ANY("gamma", c), ANY("beta", c)
#define LAYER(...) ng_row_norm(tape, in[0], in[1], in[2], .eps = 1e-5, __VA_ARGS__)
#define BATCH_NORMED ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .training = true)
#define GROUP(n) ng_group_norm(tape, in[0], in[1], in[2], .groups = n)
#define SLOPE(y) ng_gradient(tape, y, in[0], .cotangent = in[3], .record = true)

#define LARGE(X)                                                                                   \
    X(layer_norm_of_7, (ROWS(3, 7)), LAYER(.rms = false))                                          \
    X(layer_norm_of_17, (ROWS(3, 17)), LAYER(.unbiased = true))                                    \
    X(layer_norm_of_33, (ROWS(700, 33)), LAYER(.rms = false))                                      \
    X(layer_norm_of_65, (ROWS(21, 65)), LAYER(.rms = false))                                       \
    X(layer_norm_of_1023, (ROWS(3, 1023)), LAYER(.rms = false))                                    \
    X(layer_norm_of_4097, (ROWS(3, 4097)), LAYER(.unbiased = true))                                \
    X(rms_norm_of_31, (ROWS(3, 31)), LAYER(.rms = true))                                           \
    X(rms_norm_of_63, (ROWS(21, 63)), LAYER(.rms = true))                                          \
    X(rms_norm_of_1037, (ROWS(70, 1037)), LAYER(.rms = true))                                      \
    X(rms_norm_of_3585, (ROWS(3, 3585)), LAYER(.rms = true))                                       \
    X(slope_of_layer_norm_of_17, (ROWS(3, 17), ANY("dy", 3, 17)), SLOPE(LAYER(.rms = false)))      \
    X(slope_of_layer_norm_of_1000, (ROWS(3, 1000), ANY("dy", 3, 1000)),                            \
      SLOPE(LAYER(.unbiased = true)))                                                              \
    X(slope_of_rms_norm_of_65, (ROWS(3, 65), ANY("dy", 3, 65)), SLOPE(LAYER(.rms = true)))         \
    X(batch_norm_of_7, (CHANNELS(7, 7, 7)), BATCH_NORMED)                                          \
    X(batch_norm_of_33, (CHANNELS(33, 7, 33)), BATCH_NORMED)                                       \
    X(batch_norm_of_long_columns, (CHANNELS(37, 773, 37)), BATCH_NORMED)                           \
    X(batch_norm_of_few_columns, (CHANNELS(3, 1023, 3)), BATCH_NORMED)                             \
    X(batch_norm_of_images, (CHANNELS(5, 3, 5, 65)), BATCH_NORMED)                                 \
    X(batch_norm_of_many_images, (CHANNELS(3, 40, 3, 33)), BATCH_NORMED)                           \
    X(slope_of_batch_norm_of_65, (CHANNELS(65, 7, 65), ANY("dy", 7, 65)), SLOPE(BATCH_NORMED))     \
    X(slope_of_batch_norm_of_images, (CHANNELS(3, 2, 3, 63), ANY("dy", 2, 3, 63)),                 \
      SLOPE(BATCH_NORMED))                                                                         \
    X(group_norm_of_33, (CHANNELS(6, 3, 6, 33)), GROUP(2))                                         \
    X(group_norm_of_features, (CHANNELS(24, 40, 24)), GROUP(3))                                    \
    X(group_norm_of_one_group, (CHANNELS(65, 5, 65)), GROUP(1))                                    \
    X(group_norm_of_many_images, (CHANNELS(12, 20, 12, 17)), GROUP(3))                             \
    X(channel_norm_of_33, (CHANNELS(5, 3, 5, 33)),                                                 \
      ng_channel_norm(tape, in[0], in[1], in[2], .eps = 1e-5))
LARGE(OP_CALL)
static const gradient_case large[] = {LARGE(OP_ROW)};
const case_list large_norm_cases = LIST(large);

/* clang-format off */
#define ALL(X)                                                                                     \
    ROW_NORM(X) BATCH_NORM(X) SUB_BATCH(X) GROUP_NORM(X) CHANNEL_NORM(X) SIMPLE_NORMS(X)           \
    WEIGHT_NORM(X)
/* clang-format on */

ALL(OP_CALL)

static const gradient_case cases[] = {ALL(OP_ROW)};
const case_list norm_op_cases = LIST(cases);
