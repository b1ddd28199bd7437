/* Normalization layers: those of features, and settings that all have.
 *
 *     ng_module *norm = ng_layer_norm_new(128, .eps = 1e-6);
 *     ng_tensor *z = ng_forward(norm, tape, x);
 *     ng_module *adaptive = ng_adaptive_layer_norm_new(128, .condition = 64);
 *     z = ng_forward(adaptive, tape, x, .condition = condition);
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
 *     ng_bhyt_new(n)                  weight tanh(lambda x / (kappa sqrt(mean(x^2) + eps)))
 *     ng_seed_norm_new(n)             (weight + alpha tanh(x . beta)) x / sqrt(mean(x^2) + eps)
 *     ng_poly_norm_new(n)             w_0 n(x^3) + w_1 n(x^2) + w_2 n(x) + b, n an RMSNorm
 *
 * Those of channels are in channel_norms.h, which this header includes.
 * FiLM and the norms of weights are in layers.h, adaLN-Zero is in attention.h,
 * ng_batch_norm_recompute in evaluate.h.
 *
 * Settings that several norms have. Parameters weight start at 1, bias at 0.
 *
 *     eps         added under the root. Default 1e-5; 1e-6 in RMSNorm, BHyT, SeeDNorm, PolyNorm,
 *                 FilterResponseNorm, GlobalResponseNorm and AdaptiveLayerNorm of a condition;
 *                 1e-10 in L2Norm and ScaleNorm, so that a row of zeros gives zeros
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

#include <normgrad/channel_norms.h>

NG_BEGIN_C

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
    double eps;          /* default 1e-6 */
    bool no_affine;      /* no weight */
    bool unit_offset;    /* (1 + weight) in place of weight; weight starts at 0 (Gemma) */
    double partial;      /* share of the features in the mean square; default 1 */
    int64_t groups;      /* groups of neighbouring features, each with its own mean square, such as
                          heads (MultiheadRMSNorm); default 1 */
    bool by_deviation;   /* divide by the deviation, sqrt(var + eps) with var over n - 1, and do not
                          subtract the mean: SimpleNorm of timm */
    bool channels_first; /* normalize over the channels of x (N, dim, ...), at each position */
    int64_t condition;   /* features of c */
    int64_t dim;         /* features */
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

/* BHyT, bounded hyperbolic tanh, with the exact mean square; Byun et al. 2025. Parameters: lambda
 * (one number), weight. */
typedef struct {
    double lambda; /* where lambda starts; default 2 */
    double kappa;  /* default 10 */
    double eps;    /* default 1e-6 */
    int64_t dim;   /* features */
} ng_bhyt_new_options;
#define ng_bhyt_new(...) ng_bhyt_new_with(NG_NAMED(ng_bhyt_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_bhyt_new_with(ng_bhyt_new_options options);

/* SeeDNorm, self-rescaled dynamic normalization; Cai et al. 2025. Parameters: weight and alpha,
 * which start at 1, and beta, which starts at 0, so that it begins as RMSNorm. */
typedef struct {
    double eps;  /* default 1e-6 */
    int64_t dim; /* features */
} ng_seed_norm_new_options;
#define ng_seed_norm_new(...)                                                                      \
    ng_seed_norm_new_with(NG_NAMED(ng_seed_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_seed_norm_new_with(ng_seed_norm_new_options options);

/* PolyNorm, which its authors put in place of an activation; Zhuo et al. 2024 (PolyCom).
 * Parameters: weight (3), which starts at 1/3, and bias (one number). x^3 must be in the range of
 * the dtype. */
typedef struct {
    double eps;  /* default 1e-6 */
    int64_t dim; /* features */
} ng_poly_norm_new_options;
#define ng_poly_norm_new(...)                                                                      \
    ng_poly_norm_new_with(NG_NAMED(ng_poly_norm_new_options, dim, __VA_ARGS__))
NG_API ng_module *ng_poly_norm_new_with(ng_poly_norm_new_options options);

NG_END_C

#endif
