/* The norms as operations. norms.h has them as layers, which own gamma, beta and running
 * statistics.
 *
 *     ng_tensor *y = ng_layer_norm(tape, x, gamma, beta, .eps = 1e-5);
 *     y = ng_rms_norm(tape, y, NG_NONE);
 *     y = ng_batch_norm(tape, y, gamma, beta, running_mean, running_var, .training = true);
 *     y = ng_group_norm(tape, y, gamma, beta, .groups = 4);
 *
 *     ng_layer_norm(tape, x, gamma, beta)            xhat gamma + beta over the last dimension
 *     ng_rms_norm(tape, x, gamma)                    x / sqrt(mean(x^2) + eps) gamma
 *     ng_row_norm(tape, x, gamma, beta)              both, with more settings
 *     ng_batch_norm(tape, x, gamma, beta, mean, var)   xhat over a channel of the batch
 *     ng_batch_renorm(tape, x, gamma, beta, mean, deviation)   near the running statistics
 *     ng_ghost_batch_norm(tape, x, gamma, beta, mean, var)   xhat over sub-batches
 *     ng_group_norm(tape, x, gamma, beta)            xhat over groups of channels
 *     ng_instance_norm(tape, x, gamma, beta)         xhat over each channel of a sample
 *     ng_channel_norm(tape, x, gamma, beta)          xhat over all channels at each position
 *     ng_scale_norm(tape, x, g)                      g x / |x|
 *     ng_detach_norm(tape, x)                        xhat, statistics constant in the gradient
 *     ng_dynamic_tanh(tape, x, alpha, gamma, beta)   gamma tanh(alpha x) + beta
 *     ng_local_response_norm(tape, x, size)          x / (k + alpha mean_j x_j^2)^beta
 *     ng_sinkhorn(tape, x)                           e^x with rows and columns that sum to 1
 *     ng_weight_norm(tape, v, g)                     g v / |v|
 *     ng_spectral_norm(tape, w, u, v)                w / (u^T W v)
 *
 * xhat is (x - mean) / sqrt(var + eps), and var divides by n. gamma and beta scale and shift xhat;
 * each may be NG_NONE.
 *
 * Accuracy, which `make accuracy` measures (tests/accuracy/README.md). Results and gradients, also
 * those of gradients, are sums of terms. In float they are within 1e-6 of the terms' sizes, and in
 * double within 3e-15, in rows of more than 10,000 elements 1e-14. The terms of xhat are those of
 * the mean of (x_i - x_j) / deviation over all j, however far from zero x is. Where x is near the
 * mean, xhat in double is within 5e-16, however small it is. This holds for any ratio of mean to
 * deviation, for all floats, and for doubles that are 0 or between 1e-150 and 1e150; BatchNorm's
 * results in float are off by up to 1.2e-38 more. For DetachNorm, and for recorded gradients of
 * norms other than LayerNorm, RMSNorm and BatchNorm, it holds for deviations from 1e-12 to 1e12 in
 * float and from 1e-100 to 1e100 in double.
 */
#ifndef NORMGRAD_NORM_OPS_H
#define NORMGRAD_NORM_OPS_H

#include <normgrad/group.h>

NG_BEGIN_C

/* ---- Norms of rows ------------------------------------------------------------------------ */

/* The setting of the norms that have this one: ng_layer_norm(tape, x, gamma, beta, .eps = 1e-6) */
typedef struct {
    double eps;      /* default 1e-5; RMSNorm 1e-6, ScaleNorm 1e-10 */
    ng_tensor *last; /* beta, gamma or g */
} ng_norm_options;

/* LayerNorm, y = xhat gamma + beta over the last dimensions of x: those of gamma (or beta); without
 * both, the last one. Ba, Kiros & Hinton 2016. With one feature y is beta, and the gradients to x
 * and gamma are 0. */
#define ng_layer_norm(tape, x, gamma, ...)                                                         \
    ng_layer_norm_with(tape, x, gamma, NG_NAMED(ng_norm_options, last, __VA_ARGS__))
NG_API ng_tensor *ng_layer_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                     ng_norm_options options);

/* RMSNorm, y = x / sqrt(mean(x^2) + eps) gamma over the last dimensions of x: those of gamma, or
 * the last one. Zhang & Sennrich 2019. */
#define ng_rms_norm(tape, x, ...)                                                                  \
    ng_rms_norm_with(tape, x, NG_NAMED(ng_norm_options, last, __VA_ARGS__))
NG_API ng_tensor *ng_rms_norm_with(ng_tape *tape, ng_tensor *x, ng_norm_options options);

/* LayerNorm, or with .rms RMSNorm, with more settings. */
typedef struct {
    double eps;     /* default 1e-5; with .rms 1e-6 */
    int dims;       /* trailing dimensions of a row; default: the rank of gamma or beta, or 1 */
    bool rms;       /* do not subtract the mean */
    bool unbiased;  /* var divides by n - 1 */
    double partial; /* with .rms: the mean square is over the first floor(partial n) of n features,
                       at least one; 0 < partial <= 1, default 1. pRMSNorm, Zhang & Sennrich 2019 */
    ng_tensor *beta;
} ng_row_norm_options;
#define ng_row_norm(tape, x, gamma, ...)                                                           \
    ng_row_norm_with(tape, x, gamma, NG_NAMED(ng_row_norm_options, beta, __VA_ARGS__))
NG_API ng_tensor *ng_row_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                   ng_row_norm_options options);

/* ScaleNorm, y = g x / sqrt(sum x^2 + eps) over the last dimension; g is one number (1). Nguyen &
 * Salazar 2019, whose formula has an eps of zero. */
#define ng_scale_norm(tape, x, ...)                                                                \
    ng_scale_norm_with(tape, x, NG_NAMED(ng_norm_options, last, __VA_ARGS__))
NG_API ng_tensor *ng_scale_norm_with(ng_tape *tape, ng_tensor *x, ng_norm_options options);

/* DetachNorm, xhat over the last dimension, with the mean and the deviation sqrt(var + eps)
 * constant in the gradient: dx = dy / sqrt(var + eps). Xu et al. 2019. If the gradient flows
 * through both, it is their LayerNorm-simple, LayerNorm without gamma and beta. */
typedef struct {
    double eps;                       /* default 1e-5 */
    bool mean_flows, deviation_flows; /* the gradient flows through the mean; the deviation */
    ng_tensor *x;
} ng_detach_norm_options;
#define ng_detach_norm(tape, ...)                                                                  \
    ng_detach_norm_with(tape, NG_NAMED(ng_detach_norm_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_detach_norm_with(ng_tape *tape, ng_detach_norm_options options);

/* DynamicTanh, y = gamma tanh(alpha x) + beta: alpha is one number (1), gamma and beta are (n) for
 * the last dimension of x. Zhu, Chen, He, LeCun & Liu 2025. */
NG_API ng_tensor *ng_dynamic_tanh(ng_tape *tape, ng_tensor *x, ng_tensor *alpha, ng_tensor *gamma,
                                  ng_tensor *beta);

/* ---- Norms over the batch ----------------------------------------------------------------- */

/* BatchNorm of x (N, C) or (N, C, ...): y = xhat gamma + beta, with the mean and variance of each
 * channel. In training they are those of the batch, and the running statistics (C) are updated:
 *     running_mean += momentum (mean - running_mean)
 *     running_var  += momentum (unbiased var - running_var)
 * Otherwise they are the running statistics, which get no gradient. In training both may be
 * NG_NONE.
 *     ng_batch_norm(tape, x, gamma, beta, running_mean, running_var, .training = true)
 *
 * A mask of samples (N), or of positions (N, L), (N, H, W)..., is 0 at padding. Padding does not
 * count in the statistics; there y is 0, without a gradient to x. Ioffe & Szegedy 2015. */
typedef struct {
    double eps;      /* default 1e-5 */
    double momentum; /* default 0.1; NG_ZERO: no update */
    bool training;
    ng_group *group; /* in training, the batch is that of all ranks together (group.h). A rank may
                        have any number of samples, also none */
    ng_tensor *mask; /* of any dtype, gets no gradient; default: no padding */
    ng_tensor *running_var;
} ng_batch_norm_options;
#define ng_batch_norm(tape, x, gamma, beta, running_mean, ...)                                     \
    ng_batch_norm_with(tape, x, gamma, beta, running_mean,                                         \
                       NG_NAMED(ng_batch_norm_options, running_var, __VA_ARGS__))
NG_API ng_tensor *ng_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                     ng_tensor *running_mean, ng_batch_norm_options options);

/* Batch renormalization of x as in ng_batch_norm. In training, with the mean mean_b and the
 * deviation sigma_b = sqrt(var + eps) of the batch, and the running mean and deviation before it,
 *     r = clip(sigma_b / sigma, 1 / r_max, r_max)
 *     d = clip((mean_b - mean) / sigma, -d_max, d_max)
 *     y = ((x - mean_b) / sigma_b * r + d) * gamma + beta
 *     running_mean += momentum (mean_b - mean)    running_deviation += momentum (sigma_b - sigma)
 * where r and d are constants in the gradient. Otherwise y = (x - mean) / sigma * gamma + beta.
 * With r_max = 1 and d_max = NG_ZERO training is batch normalization. Ioffe 2017. */
typedef struct {
    double eps;      /* default 1e-5 */
    double momentum; /* default 0.1; NG_ZERO: no update */
    double r_max;    /* at least 1; default 3 */
    double d_max;    /* at least 0; default 5 */
    bool training;
    ng_group *group; /* as in ng_batch_norm */
    ng_tensor *mask; /* as in ng_batch_norm */
    ng_tensor *running_deviation;
} ng_batch_renorm_options;
#define ng_batch_renorm(tape, x, gamma, beta, running_mean, ...)                                   \
    ng_batch_renorm_with(tape, x, gamma, beta, running_mean,                                       \
                         NG_NAMED(ng_batch_renorm_options, running_deviation, __VA_ARGS__))
NG_API ng_tensor *ng_batch_renorm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                       ng_tensor *beta, ng_tensor *running_mean,
                                       ng_batch_renorm_options options);

/* BatchNorm in sub-batches of `size` samples. In training each is normalized by its own mean and
 * variance, as on one worker of a data-parallel job, and updates the running statistics in its
 * turn. Otherwise it is ng_batch_norm. The last sub-batch may be smaller; one with a single value
 * per channel joins the sub-batch before. Ghost batch normalization, Hoffer, Hubara & Soudry 2017.
 * */
typedef struct {
    int64_t size;    /* has no default */
    double eps;      /* default 1e-5 */
    double momentum; /* default 0.1; NG_ZERO: no update */
    bool training;
    ng_tensor *running_var;
} ng_ghost_batch_norm_options;
#define ng_ghost_batch_norm(tape, x, gamma, beta, running_mean, ...)                               \
    ng_ghost_batch_norm_with(tape, x, gamma, beta, running_mean,                                   \
                             NG_NAMED(ng_ghost_batch_norm_options, running_var, __VA_ARGS__))
NG_API ng_tensor *ng_ghost_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                           ng_tensor *beta, ng_tensor *running_mean,
                                           ng_ghost_batch_norm_options options);

/* ---- Norms of a sample's channels --------------------------------------------------------- */

/* GroupNorm of x (N, C) or (N, C, ...): the channels of a sample form `groups` groups of C / groups
 * neighbours. Each group is normalized over its channels and positions; gamma and beta are (C).
 * With one value in a group y is beta. Wu & He 2018.
 *     ng_group_norm(tape, x, gamma, beta, .groups = 4) */
typedef struct {
    int64_t groups; /* has no default */
    double eps;     /* default 1e-5 */
    ng_tensor *beta;
} ng_group_norm_options;
#define ng_group_norm(tape, x, gamma, ...)                                                         \
    ng_group_norm_with(tape, x, gamma, NG_NAMED(ng_group_norm_options, beta, __VA_ARGS__))
NG_API ng_tensor *ng_group_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                     ng_group_norm_options options);

/* InstanceNorm: GroupNorm in which every channel is a group. Ulyanov, Vedaldi & Lempitsky 2016. */
#define ng_instance_norm(tape, x, gamma, ...)                                                      \
    ng_instance_norm_with(tape, x, gamma, NG_NAMED(ng_norm_options, last, __VA_ARGS__))
NG_API ng_tensor *ng_instance_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                        ng_norm_options options);

/* LayerNorm over the channels of x (N, C, ...), at each position of each sample; gamma and beta are
 * (C). */
#define ng_channel_norm(tape, x, gamma, ...)                                                       \
    ng_channel_norm_with(tape, x, gamma, NG_NAMED(ng_norm_options, last, __VA_ARGS__))
NG_API ng_tensor *ng_channel_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                       ng_norm_options options);

/* Local response normalization of x (N, C, ...) over neighbouring channels at each position:
 *     y = x / (k + alpha / size sum_j x_j^2)^beta
 * over the `size` channels j from c - size / 2 on that exist. Krizhevsky, Sutskever & Hinton 2012,
 * section 3.3, whose alpha is not divided by size.
 *     ng_local_response_norm(tape, x, 5, .alpha = 5e-4, .k = 2)
 * Unlike in the other norms, a sum of squares that overflows x's dtype is Inf, and y is then 0. */
typedef struct {
    double alpha; /* default 1e-4; alpha, beta and k are at least 0 */
    double beta;  /* default 0.75 */
    double k;     /* default 1 */
    int64_t size; /* channels */
} ng_local_response_norm_options;
#define ng_local_response_norm(tape, x, ...)                                                       \
    ng_local_response_norm_with(tape, x,                                                           \
                                NG_NAMED(ng_local_response_norm_options, size, __VA_ARGS__))
NG_API ng_tensor *ng_local_response_norm_with(ng_tape *tape, ng_tensor *x,
                                              ng_local_response_norm_options options);

/* A matrix with rows and columns that sum to 1, from x (..., n, n): e^x, of which first each
 * column, then each row is divided by its sum, so many times. Rows then sum to 1, columns nearly;
 * how near depends on x. It is composed of other ops. Sinkhorn & Knopp 1967; Xie et al. 2025 for
 * hyper-connections, with 20 steps. */
typedef struct {
    int64_t steps; /* default 20 */
    ng_tensor *x;
} ng_sinkhorn_options;
#define ng_sinkhorn(tape, ...) ng_sinkhorn_with(tape, NG_NAMED(ng_sinkhorn_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_sinkhorn_with(ng_tape *tape, ng_sinkhorn_options options);

/* ---- Norms of weights --------------------------------------------------------------------- */

/* w = g v / |v| for each row v[i]: v (out, ...), g (out) -> (out, ...). If g has one element, |v|
 * is the length of all of v. A row of zeros stays 0, and the gradients to it and to its g are 0.
 * Salimans & Kingma 2016. */
NG_API ng_tensor *ng_weight_norm(ng_tape *tape, ng_tensor *v, ng_tensor *g);

/* y = w / sigma, sigma = u^T W v, where W (out, n) is w (out, ...) as a matrix. u (out) and v (n)
 * estimate its first singular vectors and are constants in the gradient. A sigma of 0 counts as 1,
 * so a weight of zeros stays 0. Miyato et al. 2018. */
NG_API ng_tensor *ng_spectral_norm(ng_tape *tape, ng_tensor *w, ng_tensor *u, ng_tensor *v);

NG_END_C

#endif
