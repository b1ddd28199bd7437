/* The cases of the ops of norms. */
#include "table.h"

/* ---- row_norm ------------------------------------------------------------------------------- */

CALL(case_layer_norm, ng_layer_norm(tape, in[0], in[1], in[2], .eps = 1e-5))
CALL(case_layer_norm_no_gamma, ng_layer_norm(tape, in[0], NG_NONE, in[1], .eps = 1e-5))
CALL(case_layer_norm_no_beta, ng_layer_norm(tape, in[0], in[1], NG_NONE, .eps = 1e-5))
CALL(case_layer_norm_plain, ng_layer_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))
CALL(case_layer_norm_unbiased,
     ng_row_norm(tape, in[0], in[1], in[2], .eps = 1e-6, .unbiased = true))
CALL(case_row_norm_dims, ng_row_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5, .dims = 2))
CALL(case_rms_norm, ng_rms_norm(tape, in[0], in[1], .eps = 1e-6))
CALL(case_rms_norm_plain, ng_rms_norm(tape, in[0], NG_NONE, .eps = 1e-6))
CALL(case_rms_norm_beta, ng_row_norm(tape, in[0], in[1], in[2], .eps = 1e-6, .rms = true))
CALL(case_rms_norm_partial,
     ng_row_norm(tape, in[0], in[1], NG_NONE, .eps = 1e-6, .rms = true, .partial = 0.5))

static const gradient_case row_norm_cases[] = {
    OP("layer_norm", case_layer_norm, ANY("x", 2, 3, 5), ANY("gamma", 5), ANY("beta", 5)),
    OP("layer_norm (no gamma)", case_layer_norm_no_gamma, ANY("x", 3, 5), ANY("beta", 5)),
    OP("layer_norm (no beta)", case_layer_norm_no_beta, ANY("x", 3, 5), ANY("gamma", 5)),
    OP("layer_norm (no affine)", case_layer_norm_plain, ANY("x", 3, 5)),
    OP("layer_norm (two dimensions)", case_layer_norm, ANY("x", 3, 2, 4), ANY("gamma", 2, 4),
       ANY("beta", 2, 4)),
    OP("layer_norm (two dimensions, no affine)", case_row_norm_dims, ANY("x", 3, 2, 4)),
    OP("layer_norm (unbiased)", case_layer_norm_unbiased, ANY("x", 3, 5), ANY("gamma", 5),
       ANY("beta", 5)),
    OP("layer_norm (one feature)", case_layer_norm, ANY("x", 4, 1), ANY("gamma", 1),
       ANY("beta", 1)),
    OP("rms_norm", case_rms_norm, ANY("x", 3, 5), ANY("gamma", 5)),
    OP("rms_norm (no affine)", case_rms_norm_plain, ANY("x", 3, 5)),
    OP("rms_norm (beta, two dimensions)", case_rms_norm_beta, ANY("x", 3, 2, 3), ANY("gamma", 2, 3),
       ANY("beta", 2, 3)),
    OP("rms_norm (partial)", case_rms_norm_partial, ANY("x", 3, 7), ANY("gamma", 7)),
};

/* ---- batch_norm ----------------------------------------------------------------------------- */

CALL(case_training,
     ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5, .training = true))
CALL(case_training_plain,
     ng_batch_norm(tape, in[0], NG_NONE, NG_NONE, NG_NONE, NG_NONE, .eps = 1e-5, .training = true))
CALL(case_eval, ng_batch_norm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5))
CALL(case_eval_plain, ng_batch_norm(tape, in[0], NG_NONE, NG_NONE, in[1], in[2], .eps = 1e-5))

CALL(case_masked, ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5,
                                .training = true, .mask = in[3]))
CALL(case_masked_eval,
     ng_batch_norm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .mask = in[5]))

#define AFFINE ANY("gamma", 3), ANY("beta", 3)
#define RUNNING CONSTANT("running_mean", 3), POSITIVE_CONSTANT("running_var", 3)

static const gradient_case batch_norm_cases[] = {
    OP("batch_norm", case_training, ANY("x", 5, 3), AFFINE),
    OP("batch_norm (N, C, L)", case_training, ANY("x", 2, 3, 4), AFFINE),
    OP("batch_norm (N, C, H, W)", case_training, ANY("x", 2, 3, 2, 2), AFFINE),
    OP("batch_norm (N, C, D, H, W)", case_training, ANY("x", 2, 3, 1, 2, 2), AFFINE),
    OP("batch_norm (no affine)", case_training_plain, ANY("x", 5, 3)),
    OP("batch_norm (eval)", case_eval, ANY("x", 5, 3), AFFINE, RUNNING),
    OP("batch_norm (eval, N, C, L)", case_eval, ANY("x", 2, 3, 4), AFFINE, RUNNING),
    OP("batch_norm (eval, no affine)", case_eval_plain, ANY("x", 5, 3), RUNNING),
    OP("batch_norm (mask)", case_masked, ANY("x", 7, 3), AFFINE, INDEX("mask", 2, 7)),
    OP("batch_norm (mask, N, C, L)", case_masked, ANY("x", 2, 3, 5), AFFINE,
       INDEX("mask", 2, 2, 5)),
    OP("batch_norm (mask of samples, N, C, H, W)", case_masked, ANY("x", 4, 3, 2, 1), AFFINE,
       INDEX("mask", 2, 4)),
    OP("batch_norm (mask, eval, N, C, H, W)", case_masked_eval, ANY("x", 2, 3, 2, 2), AFFINE,
       RUNNING, INDEX("mask", 2, 2, 2, 2)),
    OP("batch_norm (mask, N, C, D, H, W)", case_masked, ANY("x", 2, 3, 2, 1, 2), AFFINE,
       INDEX("mask", 2, 2, 2, 1, 2)),
};

/* ---- batch_renorm, ghost_batch_norm ---------------------------------------------------------- */

CALL(case_renorm,
     ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .momentum = NG_ZERO,
                     .r_max = 1.2, .d_max = 0.5, .training = true))
CALL(case_renorm_plain,
     ng_batch_renorm(tape, in[0], NG_NONE, NG_NONE, in[1], in[2], .eps = 1e-5, .momentum = NG_ZERO,
                     .r_max = 10, .d_max = 10, .training = true))
CALL(case_renorm_eval, ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4]))
CALL(case_renorm_masked,
     ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5, .momentum = NG_ZERO,
                     .r_max = 1.2, .d_max = 0.5, .training = true, .mask = in[5]))
CALL(case_renorm_masked_eval,
     ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .mask = in[5]))
CALL(case_ghost, ng_ghost_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .size = 3,
                                     .eps = 1e-5, .training = true))

#define RENORM_STATISTICS CONSTANT("running_mean", 3), POSITIVE_CONSTANT("running_deviation", 3)

static const gradient_case sub_batch_cases[] = {
    OP("batch_renorm", case_renorm, ANY("x", 5, 3), AFFINE, RENORM_STATISTICS),
    OP("batch_renorm (N, C, L)", case_renorm, ANY("x", 2, 3, 4), AFFINE, RENORM_STATISTICS),
    OP("batch_renorm (no affine)", case_renorm_plain, ANY("x", 5, 3), RENORM_STATISTICS),
    OP("batch_renorm (eval)", case_renorm_eval, ANY("x", 5, 3), AFFINE, RENORM_STATISTICS),
    OP("batch_renorm (mask)", case_renorm_masked, ANY("x", 12, 3), AFFINE, RENORM_STATISTICS,
       INDEX("mask", 2, 12)),
    OP("batch_renorm (mask, N, C, L)", case_renorm_masked, ANY("x", 2, 3, 5), AFFINE,
       RENORM_STATISTICS, INDEX("mask", 2, 2, 5)),
    OP("batch_renorm (mask, eval, N, C, L)", case_renorm_masked_eval, ANY("x", 2, 3, 4), AFFINE,
       RENORM_STATISTICS, INDEX("mask", 2, 2, 4)),
    OP("ghost_batch_norm", case_ghost, ANY("x", 8, 3), AFFINE),
    OP("ghost_batch_norm (N, C, L)", case_ghost, ANY("x", 4, 3, 3), AFFINE),
    OP("ghost_batch_norm (a last sample)", case_ghost, ANY("x", 7, 3), AFFINE),
};

/* ---- group_norm ----------------------------------------------------------------------------- */

CALL(case_group, ng_group_norm(tape, in[0], in[1], in[2], .groups = 2, .eps = 1e-5))
CALL(case_group_no_gamma, ng_group_norm(tape, in[0], NG_NONE, in[1], .groups = 2, .eps = 1e-5))
CALL(case_group_no_beta, ng_group_norm(tape, in[0], in[1], NG_NONE, .groups = 1, .eps = 1e-5))
CALL(case_group_plain, ng_group_norm(tape, in[0], NG_NONE, NG_NONE, .groups = 2, .eps = 1e-5))
CALL(case_instance, ng_instance_norm(tape, in[0], in[1], in[2], .eps = 1e-5))
CALL(case_instance_plain, ng_instance_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))

#define GAMMA(channels) ANY("gamma", channels)
#define BETA(channels) ANY("beta", channels)

static const gradient_case group_norm_cases[] = {
    OP("group_norm (N, C)", case_group, ANY("x", 2, 6), GAMMA(6), BETA(6)),
    OP("group_norm (N, C, L)", case_group, ANY("x", 2, 4, 3), GAMMA(4), BETA(4)),
    OP("group_norm (N, C, H, W)", case_group, ANY("x", 2, 4, 2, 3), GAMMA(4), BETA(4)),
    OP("group_norm (no gamma)", case_group_no_gamma, ANY("x", 2, 4, 3), BETA(4)),
    OP("group_norm (no beta, one group)", case_group_no_beta, ANY("x", 2, 3, 3), GAMMA(3)),
    OP("group_norm (no affine)", case_group_plain, ANY("x", 2, 4, 3)),
    OP("instance_norm (N, C, L)", case_instance, ANY("x", 2, 3, 5), GAMMA(3), BETA(3)),
    OP("instance_norm (N, C, H, W)", case_instance, ANY("x", 2, 2, 3, 2), GAMMA(2), BETA(2)),
    OP("instance_norm (no affine)", case_instance_plain, ANY("x", 2, 3, 5)),
};

/* ---- channel_norm --------------------------------------------------------------------------- */

CALL(case_both, ng_channel_norm(tape, in[0], in[1], in[2], .eps = 1e-5))
CALL(case_no_gamma, ng_channel_norm(tape, in[0], NG_NONE, in[1], .eps = 1e-5))
CALL(case_plain, ng_channel_norm(tape, in[0], NG_NONE, NG_NONE, .eps = 1e-5))

static const gradient_case channel_norm_cases[] = {
    OP("channel_norm (N, C)", case_both, ANY("x", 3, 5), ANY("gamma", 5), ANY("beta", 5)),
    OP("channel_norm (N, C, H, W)", case_both, ANY("x", 2, 3, 2, 3), ANY("gamma", 3),
       ANY("beta", 3)),
    OP("channel_norm (no gamma)", case_no_gamma, ANY("x", 2, 3, 4), ANY("beta", 3)),
    OP("channel_norm (no affine)", case_plain, ANY("x", 2, 3, 4)),
};

/* ---- simple_norms --------------------------------------------------------------------------- */

CALL(case_scale_norm, ng_scale_norm(tape, in[0], in[1], .eps = NG_ZERO))
CALL(case_scale_norm_eps, ng_scale_norm(tape, in[0], in[1], .eps = 0.3))
CALL(case_detach_both, ng_detach_norm(tape, in[0], .eps = 1e-5))
CALL(case_detach_mean, ng_detach_norm(tape, in[0], .eps = 1e-5, .deviation_flows = true))
CALL(case_detach_deviation, ng_detach_norm(tape, in[0], .eps = 1e-5, .mean_flows = true))
CALL(case_detach_neither,
     ng_detach_norm(tape, in[0], .eps = 1e-5, .mean_flows = true, .deviation_flows = true))
CALL(case_dynamic_tanh, ng_dynamic_tanh(tape, in[0], in[1], in[2], in[3]))
CALL(case_dynamic_tanh_no_gamma, ng_dynamic_tanh(tape, in[0], in[1], NG_NONE, in[2]))
CALL(case_dynamic_tanh_plain, ng_dynamic_tanh(tape, in[0], in[1], NG_NONE, NG_NONE))

CALL(case_local_response, ng_local_response_norm(tape, in[0], 3, .alpha = 0.7, .k = 0.8))
CALL(case_local_response_even, ng_local_response_norm(tape, in[0], 4, .alpha = 2, .beta = 0.5))

static const gradient_case simple_norms_cases[] = {
    OP("scale_norm", case_scale_norm, ANY("x", 3, 5), ANY("g", 1)),
    OP("scale_norm (eps)", case_scale_norm_eps, ANY("x", 2, 2, 3), ANY("g", 1)),
    OP("detach_norm (both)", case_detach_both, ANY("x", 3, 5)),
    OP("detach_norm (deviation)", case_detach_deviation, ANY("x", 3, 5)),
    OP("detach_norm (mean)", case_detach_mean, ANY("x", 3, 5)),
    OP("detach_norm (neither)", case_detach_neither, ANY("x", 3, 5)),
    OP("dynamic_tanh", case_dynamic_tanh, ANY("x", 2, 2, 4), ANY("alpha", 1), ANY("gamma", 4),
       ANY("beta", 4)),
    OP("dynamic_tanh (no gamma)", case_dynamic_tanh_no_gamma, ANY("x", 3, 4), ANY("alpha", 1),
       ANY("beta", 4)),
    OP("dynamic_tanh (no affine)", case_dynamic_tanh_plain, ANY("x", 3, 4), ANY("alpha", 1)),
    OP("local_response_norm", case_local_response, ANY("x", 2, 5, 2, 2)),
    OP("local_response_norm (even, N, C, L)", case_local_response_even, ANY("x", 2, 3, 2)),
};

/* ---- weight_norm ---------------------------------------------------------------------------- */

CALL(case_weight_norm, ng_weight_norm(tape, in[0], in[1]))
CALL(case_spectral_norm, ng_spectral_norm(tape, in[0], in[1], in[2]))

static const gradient_case weight_norm_cases[] = {
    OP("weight_norm", case_weight_norm, ANY("v", 3, 4), ANY("g", 3)),
    OP("weight_norm (kernel)", case_weight_norm, ANY("v", 2, 3, 2, 2), ANY("g", 2)),
    OP("weight_norm (whole)", case_weight_norm, ANY("v", 3, 4), ANY("g", 1)),
    OP("spectral_norm", case_spectral_norm, POSITIVE("w", 3, 4), POSITIVE_CONSTANT("u", 3),
       POSITIVE_CONSTANT("v", 4)),
    OP("spectral_norm (kernel)", case_spectral_norm, POSITIVE("w", 2, 2, 1, 2),
       POSITIVE_CONSTANT("u", 2), POSITIVE_CONSTANT("v", 4)),
};

const case_list norm_ops_lists[] = {
    LIST(row_norm_cases),     LIST(batch_norm_cases),
    LIST(sub_batch_cases),    LIST(group_norm_cases),
    LIST(channel_norm_cases), LIST(simple_norms_cases),
    LIST(weight_norm_cases),  {0},
};
