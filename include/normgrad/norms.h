/* Normalization layers.
 *
 *     ng_module *norm = ng_layer_norm_new(128, .eps = 1e-6);
 *     ng_tensor *z = ng_forward(norm, tape, x);
 *     ng_module *adaptive = ng_group_norm_new(8, 32, .condition = 64);
 *     z = ng_forward(adaptive, tape, images, .condition = condition);
 *     ng_module_free(norm), ng_module_free(adaptive);
 *
 * xhat is (x - mean) / sqrt(var + eps), and var divides by n. Of features, x (..., n):
 *
 *     ng_layer_norm_new(n)            weight xhat + bias
 *     ng_layer_norm_over_new(shape)   the same over several trailing dimensions
 *     ng_rms_norm_new(n)              weight x / sqrt(mean(x^2) + eps)
 *     ng_gated_rms_norm_new(n)        weight norm(x silu(gate))
 *     ng_adaptive_layer_norm_new(n)   scale xhat + shift, both made of x or of a condition
 *     ng_ada_norm_new(n)              scale (1 - k xhat) xhat
 *     ng_detach_norm_new(n)           xhat, statistics constant in the gradient
 *     ng_l2_norm_new(n)               weight x / sqrt(sum x^2 + eps)
 *     ng_scale_norm_new(n)            g x / sqrt(sum x^2 + eps)
 *     ng_dynamic_tanh_new(n)          weight tanh(alpha x) + bias
 *     ng_derf_new(n)                  weight erf(alpha x + shift) + bias
 *
 * Of channels, x (N, C), (N, C, L), (N, C, H, W)...:
 *
 *     ng_batch_norm_new(C)                        weight xhat + bias, over all samples
 *     ng_batch_renorm_new(C)                      the same, corrected by running statistics
 *     ng_group_norm_new(groups, C)                weight xhat + bias, over the channels of a group
 *     ng_instance_norm_new(C)                     weight xhat + bias, over a channel of a sample
 *     ng_filter_response_norm_new(C)              max(weight x / sqrt(mean(x^2) + eps) + bias, tau)
 *     ng_global_response_norm_new(C)              x + weight x G / (mean G + eps) + bias
 *     ng_evo_norm_new(C)                          normalization and activation in one
 *     ng_local_response_norm_new(size)            x / (k + alpha mean(x^2))^beta
 *
 * FiLM and the norms of weights are in layers.h, adaLN-Zero is in attention.h,
 * ng_batch_norm_recompute in evaluate.h.
 *
 * Settings that several norms have. Parameters weight start at 1, bias at 0.
 *
 *     eps         added under the root. Default 1e-5; 1e-6 in RMSNorm, FilterResponseNorm,
 *                 GlobalResponseNorm and AdaptiveLayerNorm of a condition; 1e-10 in L2Norm and
 *                 ScaleNorm, so that a row of zeros gives zeros
 *     no_affine   no weight and no bias
 *     condition   features k of a condition c, which ng_forward is given as .condition: the norm is
 *                 (1 + scale(c)) xhat + shift(c). A child named modulation, a FiLM, makes scale and
 *                 shift. c (N, k) belongs to samples and holds at all positions of x. One with x's
 *                 rank and k features in place of x's, (N, T, k) or (N, k, H, W), holds for each
 *                 position; dimensions of 1 broadcast. Default: no condition. A norm without this
 *                 setting gets it by .no_affine = true and an ng_film_new(C, .condition = k) behind
 *     momentum    of running statistics, r += momentum (statistic - r); default 0.1 */
#ifndef NORMGRAD_NORMS_H
#define NORMGRAD_NORMS_H

#include <normgrad/module.h>

NG_BEGIN_C

/* ---- Norms of features --------------------------------------------------------------------- */

/* LayerNorm over the last dimension, or over the trailing dimensions of a shape; weight and bias
 * have that shape. Ba, Kiros & Hinton 2016.
 *     ng_layer_norm_new(128, .no_bias = true)   ng_layer_norm_over_new(NG_SHAPE(4, 8)) */
typedef struct {
    double eps;          /* default 1e-5 */
    bool no_bias;        /* no bias */
    bool no_affine;      /* no weight and no bias */
    bool unit_offset;    /* xhat (1 + weight) + bias; weight starts at 0 (Apex) */
    bool unbiased;       /* var divides by n - 1 */
    bool channels_first; /* normalize over the channels of x (N, dim, ...), at each position */
    ng_shape shape;      /* trailing dimensions */
    int64_t dim;         /* features */
} ng_layer_norm_new_options;
#define ng_layer_norm_new(...)                                                                     \
    ng_layer_norm_new_with(NG_NAMED(ng_layer_norm_new_options, dim, __VA_ARGS__))
#define ng_layer_norm_over_new(...)                                                                \
    ng_layer_norm_new_with(NG_NAMED(ng_layer_norm_new_options, shape, __VA_ARGS__))
NG_API ng_module *ng_layer_norm_new_with(ng_layer_norm_new_options options);

/* RMSNorm; Zhang & Sennrich 2019. With .condition it has no shift: AdaRMSNorm, Crowson et al. 2024.
 */
typedef struct {
    double eps;        /* default 1e-6 */
    bool no_affine;    /* no weight */
    bool unit_offset;  /* (1 + weight) in place of weight; weight starts at 0 (Gemma) */
    double partial;    /* share of the features in the mean square; default 1 */
    int64_t condition; /* features of c */
    int64_t dim;       /* features */
} ng_rms_norm_new_options;
#define ng_rms_norm_new(...)                                                                       \
    ng_rms_norm_new_with(NG_NAMED(ng_rms_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_rms_norm_new_with(ng_rms_norm_new_options options);

/* Gated RMSNorm with a gate z of x's shape, the input .gate of ng_forward: norm(x silu(z)) weight
 * (Dao & Gu 2024, Mamba-2); with .norm_first norm(x) weight silu(z) (Qwen3-Next). */
typedef struct {
    double eps;      /* default 1e-5 */
    int64_t groups;  /* groups of neighbouring features, each with its own mean square; default 1 */
    bool norm_first; /* normalize first, then gate */
    int64_t dim;     /* features, a multiple of the groups */
} ng_gated_rms_norm_new_options;
#define ng_gated_rms_norm_new(...)                                                                 \
    ng_gated_rms_norm_new_with(NG_NAMED(ng_gated_rms_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_gated_rms_norm_new_with(ng_gated_rms_norm_new_options options);

/* AdaptiveLayerNorm: with .condition (1 + scale(c)) xhat + shift(c), where one Linear makes scale
 * and shift of c and starts at 0 (adaLN-Zero; Peebles & Xie 2023); without one (W_g x + b_g) xhat +
 * (W_b x + b_b), with the Linears gamma and beta as children. */
typedef struct {
    double eps;        /* default 1e-5; with .condition 1e-6 */
    int64_t condition; /* features of c */
    bool gate;         /* with .condition: multiply the result by gate(c) */
    int64_t dim;       /* features of x */
} ng_adaptive_layer_norm_new_options;
#define ng_adaptive_layer_norm_new(...)                                                            \
    ng_adaptive_layer_norm_new_with(NG_NAMED(ng_adaptive_layer_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_adaptive_layer_norm_new_with(ng_adaptive_layer_norm_new_options options);

/* AdaNorm: scale (1 - k xhat) xhat without parameters; scale (1 - k xhat) is a constant in the
 * gradient. Xu et al. 2019. */
typedef struct {
    double eps;         /* default 1e-5 */
    double scale, k;    /* default 1, 0.1 */
    bool differentiate; /* scale (1 - k xhat) has a gradient */
    bool raw;           /* the factor is scale (1 - k x) */
    int64_t dim;        /* features */
} ng_ada_norm_new_options;
#define ng_ada_norm_new(...)                                                                       \
    ng_ada_norm_new_with(NG_NAMED(ng_ada_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_ada_norm_new_with(ng_ada_norm_new_options options);

/* DetachNorm: xhat without parameters, mean and deviation constant in the gradient. Xu et al. 2019.
 */
typedef struct {
    double eps;                       /* default 1e-5 */
    bool mean_flows, deviation_flows; /* the gradient flows through the mean; the deviation */
    int64_t dim;                      /* features */
} ng_detach_norm_new_options;
#define ng_detach_norm_new(...)                                                                    \
    ng_detach_norm_new_with(NG_NAMED(ng_detach_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_detach_norm_new_with(ng_detach_norm_new_options options);

/* L2 normalization with a weight (dim), which Liu, Rabinovich & Berg 2015 start at 10 or 20. */
typedef struct {
    double eps;          /* default 1e-10 */
    double scale;        /* where weight starts; default 1 */
    bool no_affine;      /* no weight */
    bool channels_first; /* normalize over the channels of x (N, dim, ...), at each position */
    int64_t dim;         /* features */
} ng_l2_norm_new_options;
#define ng_l2_norm_new(...) ng_l2_norm_new_with(NG_NAMED(ng_l2_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_l2_norm_new_with(ng_l2_norm_new_options options);

/* ScaleNorm; parameter g, one number. Nguyen & Salazar 2019. */
typedef struct {
    double eps;    /* default 1e-10 */
    double length; /* where g starts; default sqrt(dim) */
    int64_t dim;   /* features */
} ng_scale_norm_new_options;
#define ng_scale_norm_new(...)                                                                     \
    ng_scale_norm_new_with(NG_NAMED(ng_scale_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_scale_norm_new_with(ng_scale_norm_new_options options);

/* DynamicTanh (Zhu et al. 2025) and Derf (Chen et al. 2025). Parameters: alpha (one number),
 * weight, bias; of Derf also shift (one number, which starts at 0). */
typedef struct {
    double alpha;   /* where alpha starts; default 0.5 */
    bool no_affine; /* without weight and bias */
    int64_t dim;    /* features */
} ng_dynamic_tanh_new_options;
#define ng_dynamic_tanh_new(...)                                                                   \
    ng_dynamic_tanh_new_with(NG_NAMED(ng_dynamic_tanh_new_options, dim, __VA_ARGS__))
#define ng_derf_new(...) ng_derf_new_with(NG_NAMED(ng_dynamic_tanh_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_dynamic_tanh_new_with(ng_dynamic_tanh_new_options options);
NG_API ng_module *ng_derf_new_with(ng_dynamic_tanh_new_options options);

/* ---- Norms of channels --------------------------------------------------------------------- */

/* BatchNorm; Ioffe & Szegedy 2015, with .condition de Vries et al. 2017. Buffers: running_mean,
 * running_var, and num_batches_tracked (int64). The input .mask of ng_forward is 0 for padding, as
 * in ng_batch_norm; not with .ghost. Training with one value per channel is an error. */
typedef struct {
    double eps, momentum;  /* defaults 1e-5 and 0.1 */
    bool cumulative;       /* running statistics are the averages over all batches */
    bool no_affine;        /* no weight and no bias */
    bool no_running_stats; /* use the batch's statistics in evaluation too */
    bool frozen;           /* use running statistics in training too; weight and bias still train */
    int64_t ghost;         /* in training, the size of sub-batches with statistics of their own */
    ng_group *group;       /* in training, statistics are those of all ranks' batches. It must
                              outlive the layer's last pass */
    int64_t condition;     /* features of c */
    int64_t channels;      /* C */
} ng_batch_norm_new_options;
#define ng_batch_norm_new(...)                                                                     \
    ng_batch_norm_new_with(NG_NAMED(ng_batch_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_batch_norm_new_with(ng_batch_norm_new_options options);

/* Batch renormalization as ng_batch_renorm has it; Ioffe 2017. For .warmup batches it is BatchNorm;
 * over the next .ramp batches the limits rise evenly to r_max and d_max. Buffers: running_mean,
 * running_deviation, and num_batches_tracked. */
typedef struct {
    double eps, momentum; /* defaults 1e-5 and 0.1 */
    double r_max, d_max;  /* defaults 3 and 5 */
    int64_t warmup, ramp; /* numbers of batches */
    bool no_affine;       /* no weight and no bias */
    ng_group *group;      /* as in ng_batch_norm_new */
    int64_t channels;     /* C */
} ng_batch_renorm_new_options;
#define ng_batch_renorm_new(...)                                                                   \
    ng_batch_renorm_new_with(NG_NAMED(ng_batch_renorm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_batch_renorm_new_with(ng_batch_renorm_new_options options);

/* GroupNorm, over groups of neighbouring channels of a sample. Wu & He 2018. */
typedef struct {
    double eps;        /* default 1e-5 */
    bool no_affine;    /* no weight and no bias */
    int64_t condition; /* features of c */
    int64_t channels;  /* C, a multiple of the groups */
} ng_group_norm_new_options;
#define ng_group_norm_new(groups, ...)                                                             \
    ng_group_norm_new_with(groups, NG_NAMED(ng_group_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_group_norm_new_with(int64_t groups, ng_group_norm_new_options options);

/* InstanceNorm: each channel of a sample over its positions, of which there are at least two.
 * Ulyanov, Vedaldi & Lempitsky 2016; with .condition Dumoulin, Shlens & Kudlur 2017. */
typedef struct {
    double eps;         /* default 1e-5 */
    bool no_affine;     /* no weight and no bias; PyTorch's default */
    bool running_stats; /* evaluation, and a frozen layer, use averages of the samples' means and
                           unbiased variances: PyTorch's track_running_stats */
    double momentum;    /* of these averages; default 0.1 */
    int64_t condition;  /* features of c */
    bool style; /* AdaIN: sqrt(var(s) + eps) xhat + mean(s) for the input .style of ng_forward,
                   s (N, C, ...); without weight and bias, and not with .condition. Huang &
                   Belongie 2017 */
    int64_t channels; /* C */
} ng_instance_norm_new_options;
#define ng_instance_norm_new(...)                                                                  \
    ng_instance_norm_new_with(NG_NAMED(ng_instance_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_instance_norm_new_with(ng_instance_norm_new_options options);

/* Filter response normalization: the mean is over the positions of a channel of a sample; then a
 * threshold tau, which is learned and starts at 0. Singh & Krishnan 2020. */
typedef struct {
    double eps;       /* default 1e-6 */
    bool learned_eps; /* add |e|, e a learned number that starts at 1e-4: for few positions. Squares
                         are then computed in x's dtype */
    bool no_threshold; /* no max and no tau */
    int64_t channels;  /* C */
} ng_filter_response_norm_new_options;
#define ng_filter_response_norm_new(...)                                                           \
    ng_filter_response_norm_new_with(                                                              \
        NG_NAMED(ng_filter_response_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_filter_response_norm_new_with(ng_filter_response_norm_new_options options);

/* Global response normalization: G_c is the length of channel c of a sample over its positions, and
 * mean G is over the channels. weight and bias both start at 0. Woo et al. 2023 (ConvNeXt V2). */
typedef struct {
    double eps;       /* default 1e-6 */
    int64_t channels; /* C */
} ng_global_response_norm_new_options;
#define ng_global_response_norm_new(...)                                                           \
    ng_global_response_norm_new_with(                                                              \
        NG_NAMED(ng_global_response_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_global_response_norm_new_with(ng_global_response_norm_new_options options);

/* EvoNorm; parameters weight, bias and v (which starts at 1). Liu, Brock, Simonyan & Le 2020.
 *
 *     B0  x / max(sqrt(var_batch + eps), v x + sqrt(var_sample + eps)) weight + bias
 *     S0  x sigmoid(v x) / sqrt(var_group + eps) weight + bias
 *
 * var_batch is the variance of a channel over the batch, in evaluation the running variance;
 * var_sample that of a channel of a sample, and var_group that of a sample's group. Training B0
 * with one value per channel is an error. */
typedef struct {
    double eps;       /* default 1e-5 */
    int64_t groups;   /* S0 with so many groups of C / groups channels; default: B0 */
    double momentum;  /* of B0; default 0.1 */
    int64_t channels; /* C, a multiple of the groups */
} ng_evo_norm_new_options;
#define ng_evo_norm_new(...)                                                                       \
    ng_evo_norm_new_with(NG_NAMED(ng_evo_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_evo_norm_new_with(ng_evo_norm_new_options options);

/* Local response normalization, as ng_local_response_norm has it. Krizhevsky, Sutskever & Hinton
 * 2012. */
typedef struct {
    double alpha, beta, k; /* defaults 1e-4, 0.75 and 1 */
    int64_t size;          /* channels */
} ng_local_response_norm_new_options;
#define ng_local_response_norm_new(...)                                                            \
    ng_local_response_norm_new_with(NG_NAMED(ng_local_response_norm_new_options, size, __VA_ARGS__))
NG_API ng_module *ng_local_response_norm_new_with(ng_local_response_norm_new_options options);

NG_END_C

#endif
