/* Normalization layers of channels. norms.h explains eps, no_affine, condition and momentum.
 *
 *     ng_module *norm = ng_batch_norm_new(32, .momentum = 0.2);
 *     ng_tensor *z = ng_forward(norm, tape, images);
 *     ng_module *adaptive = ng_group_norm_new(8, 32, .condition = 64);
 *     z = ng_forward(adaptive, tape, images, .condition = condition);
 *     ng_module_free(norm), ng_module_free(adaptive);
 *
 * x is (N, C), (N, C, L), (N, C, H, W)..., and xhat (x - mean) / sqrt(var + eps):
 *
 *     ng_batch_norm_new(C)                        weight xhat + bias, over all samples
 *     ng_batch_renorm_new(C)                      the same, corrected by running statistics
 *     ng_group_norm_new(groups, C)                weight xhat + bias, over the channels of a group
 *     ng_instance_norm_new(C)                     weight xhat + bias, over a channel of a sample
 *     ng_filter_response_norm_new(C)              max(weight x / sqrt(mean(x^2) + eps) + bias, tau)
 *     ng_global_response_norm_new(C)              x + weight x G / (mean G + eps) + bias
 *     ng_evo_norm_new(C)                          normalization and activation in one
 *     ng_local_response_norm_new(size)            x / (k + alpha mean(x^2))^beta */
#ifndef NORMGRAD_CHANNEL_NORMS_H
#define NORMGRAD_CHANNEL_NORMS_H

#include <normgrad/module.h>

NG_BEGIN_C

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

/* Which EvoNorm, B or S: its number. */
typedef enum { NG_EVO_0 = 0, NG_EVO_1, NG_EVO_2 } ng_evo_norm_kind;

/* EvoNorm; parameters weight, bias and, in B0 and S0, v (which starts at 1). Liu, Brock, Simonyan &
 * Le 2020.
 *
 *     B0  x / max(sqrt(var_batch + eps), v x + sqrt(var_sample + eps)) weight + bias
 *     B1  x / max(sqrt(var_batch + eps), (x + 1) sqrt(square_sample + eps)) weight + bias
 *     B2  x / max(sqrt(var_batch + eps), sqrt(square_sample + eps) - x) weight + bias
 *     S0  x sigmoid(v x) / sqrt(var_group + eps) weight + bias
 *     S1  x sigmoid(x) / sqrt(var_group + eps) weight + bias
 *     S2  x sigmoid(x) / sqrt(square_group + eps) weight + bias
 *
 * var_batch is the variance of a channel over the batch, in evaluation the running variance;
 * var_sample and square_sample the variance and the mean square of a channel of a sample, var_group
 * and square_group those of a sample's group. Training B0 to B2 with one value per channel is an
 * error. */
typedef struct {
    double eps;            /* default 1e-5 */
    int64_t groups;        /* S with so many groups of C / groups channels; default: B */
    double momentum;       /* of B; default 0.1 */
    ng_evo_norm_kind kind; /* default NG_EVO_0 */
    int64_t channels;      /* C, a multiple of the groups */
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
