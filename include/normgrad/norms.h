/* Normalization layers.
 *
 *     ng_module *norm = ng_layer_norm_new(128, .eps = 1e-6);
 *     ng_tensor *y = ng_forward(norm, tape, x);                   x (..., 128)
 *
 *     ng_module *adaptive = ng_group_norm_new(8, 32, .condition = 64);
 *     ng_tensor *z = ng_forward(adaptive, tape, image, .condition = c);
 *
 * xhat = (x - mean) / sqrt(var + eps), var over n. Of features, x (..., n):
 *
 *     ng_layer_norm_new(n)               weight xhat + bias
 *     ng_layer_norm_over_new(shape)      the same over several trailing dimensions
 *     ng_rms_norm_new(n)                 weight x / sqrt(mean(x^2) + eps)
 *     ng_gated_rms_norm_new(n)           weight norm(x silu(gate))
 *     ng_adaptive_layer_norm_new(n)      scale xhat + shift, both made of x or of a condition
 *     ng_detach_norm_new(n)              xhat with statistics constant in the gradient
 *     ng_l2_norm_new(n)                  weight x / sqrt(sum x^2 + eps)
 *     ng_scale_norm_new(n)               g x / sqrt(sum x^2 + eps)
 *     ng_dynamic_tanh_new(n)             weight tanh(alpha x) + bias
 *     ng_derf_new(n)                     weight erf(alpha x + shift) + bias
 *
 * Of channels, x (N, C), (N, C, L), (N, C, H, W)...:
 *
 *     ng_batch_norm_new(C)               weight xhat + bias, over all samples
 *     ng_batch_renorm_new(C)             the same, corrected by running statistics
 *     ng_group_norm_new(groups, C)       weight xhat + bias, over the channels of a group
 *     ng_instance_norm_new(C)            xhat of each channel of a sample
 *     ng_filter_response_norm_new(C)     max(weight x / sqrt(mean(x^2) + eps) + bias, tau)
 *     ng_global_response_norm_new(C)     x + weight x G / (mean G + eps) + bias
 *     ng_evo_norm_new(C)                 with an activation in it
 *     ng_local_response_norm_new(size)   x / (k + alpha mean(x^2))^beta
 *
 * In layers.h: FiLM, WeightNorm, WeightStandardization, SpectralNorm; adaLN-Zero in attention.h.
 *
 * Parameters weight start at 1 and bias at 0. Settings that several norms have:
 *
 * eps         added under the root. Default 1e-5; with a mean square (RMSNorm, FilterResponseNorm,
 *             GlobalResponseNorm) and for a condition (AdaptiveLayerNorm, AdaptiveResidual) 1e-6;
 *             with a sum of squares (L2Norm, ScaleNorm) 1e-10, so that a row of zeros gives zeros
 * no_affine   without weight and bias
 * condition   features of a condition c, which ng_forward is then given as .condition. In place of
 *             weight and bias the factor is 1 + scale(c) and the summand shift(c), made by the
 *             child modulation, a FiLM
 * momentum    of running statistics, r += momentum (statistic - r); default 0.1 */
#ifndef NORMGRAD_NORMS_H
#define NORMGRAD_NORMS_H

#include <normgrad/module.h>

NG_BEGIN_C

/* ---- Norms of features --------------------------------------------------------------------- */

/* LayerNorm over the last dimension, or over the trailing dimensions of a shape, which weight and
 * bias then have. Ba, Kiros & Hinton 2016.
 *     ng_layer_norm_new(128, .no_bias = true)   ng_layer_norm_over_new(NG_SHAPE(4, 8)) */
typedef struct {
    double eps;              /* default 1e-5 */
    bool no_bias, no_affine; /* without bias; without both */
    bool unit_offset;        /* xhat (1 + weight) + bias, weight from 0 (Apex) */
    bool unbiased;           /* variance over n - 1 */
    bool channels_first;     /* over the channels of (N, dim, ...) instead, at each position */
    ng_shape shape;          /* of the trailing dimensions */
    int64_t dim;             /* features, where there is no shape */
} ng_layer_norm_new_options;
#define ng_layer_norm_new(...)                                                                     \
    ng_layer_norm_new_with(NG_NAMED(ng_layer_norm_new_options, dim, __VA_ARGS__))
#define ng_layer_norm_over_new(...)                                                                \
    ng_layer_norm_new_with(NG_NAMED(ng_layer_norm_new_options, shape, __VA_ARGS__))
NG_API ng_module *ng_layer_norm_new_with(ng_layer_norm_new_options options);

/* RMSNorm; Zhang & Sennrich 2019. With .condition there is no shift: AdaRMSNorm, Crowson et al.
 * 2024. */
typedef struct {
    double eps;        /* default 1e-6 */
    bool no_affine;    /* without weight */
    bool unit_offset;  /* xhat (1 + weight), weight from 0 (Gemma) */
    double partial;    /* share of the features that the statistic reads; default 1 */
    int64_t condition; /* features of c (..., condition); default 0: none */
    int64_t dim;       /* features */
} ng_rms_norm_new_options;
#define ng_rms_norm_new(...)                                                                       \
    ng_rms_norm_new_with(NG_NAMED(ng_rms_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_rms_norm_new_with(ng_rms_norm_new_options options);

/* Gated RMSNorm with a gate z of x's shape, the input .gate of ng_forward: norm(x silu(z)) weight
 * (Dao & Gu 2024, Mamba-2); with .norm_first norm(x) weight silu(z) (Qwen3-Next). */
typedef struct {
    double eps;      /* default 1e-5 */
    int64_t groups;  /* neighbouring features with a mean square of their own; default 1 group */
    bool norm_first; /* gate what was normalized */
    int64_t dim;     /* features, a multiple of the groups */
} ng_gated_rms_norm_new_options;
#define ng_gated_rms_norm_new(...)                                                                 \
    ng_gated_rms_norm_new_with(NG_NAMED(ng_gated_rms_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_gated_rms_norm_new_with(ng_gated_rms_norm_new_options options);

/* AdaptiveLayerNorm:
 *
 * NG_ADAPTIVE_PROJECTED   (W_g x + b_g) xhat + (W_b x + b_b); children gamma and beta (Linear)
 * NG_ADAPTIVE_CONDITIONED (1 + scale(c)) xhat + shift(c) for a condition c (..., condition), whose
 *                         leading dimensions broadcast; with .gate times gate(c). One Linear makes
 *                         (shift, scale, gate) and starts at 0: adaLN-Zero, Peebles & Xie 2023
 * NG_ADAPTIVE_ADANORM     C (1 - k xhat) xhat, with C (1 - k xhat) constant in the gradient unless
 *                         .differentiate; with .raw C (1 - k x). Xu et al. 2019 */
typedef enum {
    NG_ADAPTIVE_PROJECTED = 0,
    NG_ADAPTIVE_CONDITIONED,
    NG_ADAPTIVE_ADANORM
} ng_adaptive_form;
typedef struct {
    ng_adaptive_form form;   /* default NG_ADAPTIVE_PROJECTED */
    double eps;              /* default 1e-5; conditioned 1e-6 */
    int64_t condition;       /* conditioned: features of c */
    bool gate;               /* conditioned: with gate(c) */
    double scale, k;         /* AdaNorm: C, default 1; k, default 0.1 */
    bool differentiate, raw; /* AdaNorm: the factor has a gradient; is made of x */
    int64_t dim;             /* features of x */
} ng_adaptive_layer_norm_new_options;
#define ng_adaptive_layer_norm_new(...)                                                            \
    ng_adaptive_layer_norm_new_with(NG_NAMED(ng_adaptive_layer_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_adaptive_layer_norm_new_with(ng_adaptive_layer_norm_new_options options);

/* DetachNorm: xhat without parameters, mean and deviation constant in the gradient. Xu et al. 2019.
 */
typedef struct {
    double eps;                       /* default 1e-5 */
    bool mean_flows, deviation_flows; /* the gradient flows through it after all */
    int64_t dim;                      /* features */
} ng_detach_norm_new_options;
#define ng_detach_norm_new(...)                                                                    \
    ng_detach_norm_new_with(NG_NAMED(ng_detach_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_detach_norm_new_with(ng_detach_norm_new_options options);

/* L2 normalization with a weight (dim). Liu, Rabinovich & Berg 2015 start it at 10 or 20. */
typedef struct {
    double eps;          /* default 1e-10 */
    double scale;        /* where weight starts; default 1 */
    bool no_affine;      /* without weight */
    bool channels_first; /* over the channels of (N, dim, ...) instead, at each position */
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

/* DynamicTanh (Zhu et al. 2025) and Derf (Chen et al. 2025); parameters alpha, one number, weight,
 * bias, and of Derf shift, one number from 0. */
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

/* BatchNorm; buffers running_mean (0), running_var (1) and num_batches_tracked (int64). Training
 * with one value per channel is an error. The input .mask of ng_forward is that of ng_batch_norm, 0
 * for padding; with .ghost it is an error. Ioffe & Szegedy 2015; with .condition de Vries et al.
 * 2017. */
typedef struct {
    double eps, momentum;  /* defaults 1e-5 and 0.1 */
    bool cumulative;       /* running statistics are plain averages over all batches */
    bool no_affine;        /* without weight and bias */
    bool no_running_stats; /* evaluation uses the batch too */
    bool frozen;           /* always use running statistics; weight and bias still train */
    int64_t ghost;         /* in training, samples of a sub-batch with its own statistics */
    ng_group *group;       /* in training, statistics are over the batches of all ranks; it must
                              outlive the layer's last pass */
    int64_t condition;     /* features of c; default 0: none */
    int64_t channels;      /* C */
} ng_batch_norm_new_options;
#define ng_batch_norm_new(...)                                                                     \
    ng_batch_norm_new_with(NG_NAMED(ng_batch_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_batch_norm_new_with(ng_batch_norm_new_options options);

/* Recomputes the running statistics of every BatchNorm over a data set: the mean and the unbiased
 * variance of the layer's inputs in evaluation, over all samples and all ranks of its .group, for
 * any size of batches. For averaged weights (Wu & Johnson 2021) or new data (AdaBN, Li et al.
 * 2017). It takes one pass over the data per BatchNorm, and all ranks of a group call it together.
 * Frozen layers and BatchRenorm do not change, nor do modes. NG_EVALUE if there is no BatchNorm to
 * recompute; NG_ESHAPE for fewer than two values per channel. After an error nothing has changed.
 */
struct ng_dataset; /* data.h */
NG_API NG_MUST_CHECK ng_status ng_batch_norm_recompute(ng_module *net, struct ng_dataset *dataset,
                                                       int64_t batch);

/* Batch renormalization as in norm_ops.h; buffers running_mean (0), running_deviation (1) and
 * num_batches_tracked. For .warmup batches it is BatchNorm; over the next .ramp batches the limits
 * rise evenly to r_max and d_max. Ioffe 2017. */
typedef struct {
    double eps, momentum; /* defaults 1e-5 and 0.1 */
    double r_max, d_max;  /* defaults 3 and 5 */
    int64_t warmup, ramp; /* numbers of batches */
    bool no_affine;       /* without weight and bias */
    ng_group *group;      /* as in ng_batch_norm_new */
    int64_t channels;     /* C */
} ng_batch_renorm_new_options;
#define ng_batch_renorm_new(...)                                                                   \
    ng_batch_renorm_new_with(NG_NAMED(ng_batch_renorm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_batch_renorm_new_with(ng_batch_renorm_new_options options);

/* GroupNorm, a sample's channels in groups of neighbours. Wu & He 2018. */
typedef struct {
    double eps;        /* default 1e-5 */
    bool no_affine;    /* without parameters */
    int64_t condition; /* features of c; default 0: none */
    int64_t channels;  /* C, a multiple of the groups */
} ng_group_norm_new_options;
#define ng_group_norm_new(groups, ...)                                                             \
    ng_group_norm_new_with(groups, NG_NAMED(ng_group_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_group_norm_new_with(int64_t groups, ng_group_norm_new_options options);

/* InstanceNorm, each channel of a sample over its positions, more than one. Ulyanov, Vedaldi &
 * Lempitsky 2016; with .condition Dumoulin, Shlens & Kudlur 2017. With .style it needs the input
 * .style, s (N, C, ...) of any number of positions: sqrt(var(s) + eps) xhat + mean(s), AdaIN, Huang
 * & Belongie 2017. With .running_stats evaluation, and a frozen layer, use running statistics, the
 * averages of the samples' means and unbiased variances: PyTorch's track_running_stats. */
typedef struct {
    double eps;         /* default 1e-5 */
    bool affine;        /* parameters weight and bias */
    bool running_stats; /* buffers as in BatchNorm */
    double momentum;    /* of these; default 0.1 */
    int64_t condition;  /* features of c; default 0: none */
    bool style;         /* AdaIN; not with .affine or .condition */
    int64_t channels;   /* C */
} ng_instance_norm_new_options;
#define ng_instance_norm_new(...)                                                                  \
    ng_instance_norm_new_with(NG_NAMED(ng_instance_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_instance_norm_new_with(ng_instance_norm_new_options options);

/* Filter response normalization, the mean over the positions of a channel of a sample, with the
 * thresholded linear unit; parameters weight, bias, tau (0). Singh & Krishnan 2020. With
 * .learned_eps |parameter eps| is added to .eps, one number from 1e-4, for few positions. */
typedef struct {
    double eps;        /* default 1e-6 */
    bool learned_eps;  /* a parameter eps (1); squares are then taken in x's dtype */
    bool no_threshold; /* without max and tau */
    int64_t channels;  /* C */
} ng_filter_response_norm_new_options;
#define ng_filter_response_norm_new(...)                                                           \
    ng_filter_response_norm_new_with(                                                              \
        NG_NAMED(ng_filter_response_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_filter_response_norm_new_with(ng_filter_response_norm_new_options options);

/* Global response normalization, G_c the length of channel c of a sample over its positions, mean G
 * over the channels; parameters weight and bias, both from 0. Woo et al. 2023 (ConvNeXt V2). */
typedef struct {
    double eps;       /* default 1e-6 */
    int64_t channels; /* C */
} ng_global_response_norm_new_options;
#define ng_global_response_norm_new(...)                                                           \
    ng_global_response_norm_new_with(                                                              \
        NG_NAMED(ng_global_response_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_global_response_norm_new_with(ng_global_response_norm_new_options options);

/* EvoNorm; parameters weight, bias and v (1) per channel. Liu, Brock, Simonyan & Le 2020.
 *
 * B0  x / max(sqrt(var_batch + eps), v x + sqrt(var_sample + eps)) weight + bias: var_batch of a
 *     channel over the batch, in evaluation running_var; var_sample of a channel of a sample.
 *     Training with one value per channel is an error
 * S0  x sigmoid(v x) / sqrt(var_group + eps) weight + bias: var_group of a sample's group */
typedef struct {
    double eps;       /* default 1e-5 */
    int64_t groups;   /* of S0, each of C / groups channels; default 0: B0 */
    double momentum;  /* of B0; default 0.1 */
    int64_t channels; /* C, a multiple of the groups */
} ng_evo_norm_new_options;
#define ng_evo_norm_new(...)                                                                       \
    ng_evo_norm_new_with(NG_NAMED(ng_evo_norm_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_evo_norm_new_with(ng_evo_norm_new_options options);

/* Local response normalization over neighbouring channels, as in norm_ops.h. Squares are taken in
 * x's dtype. Krizhevsky, Sutskever & Hinton 2012. */
typedef struct {
    double alpha, beta, k; /* defaults 1e-4, 0.75 and 1 */
    int64_t size;          /* channels */
} ng_local_response_norm_new_options;
#define ng_local_response_norm_new(...)                                                            \
    ng_local_response_norm_new_with(NG_NAMED(ng_local_response_norm_new_options, size, __VA_ARGS__))
NG_API ng_module *ng_local_response_norm_new_with(ng_local_response_norm_new_options options);

NG_END_C

#endif
