/* Layers without statistics, containers, and layers around a layer.
 *
 *     ng_module *cnn = ng_sequential_new(ng_conv2d_new(1, 16, 3, .padding = 1), ng_relu_new(),
 *                                        ng_max_pool2d_new(2), ng_flatten_new(),
 *                                        ng_linear_new(16 * 14 * 14, 10));
 *     ng_tensor *scores = ng_forward(cnn, tape, images);
 *     ng_module_free(cnn);
 *
 *     ng_linear_new(in, out)                     x weight^T + bias
 *     ng_relu_new()                              max(x, 0); other activations by their names
 *     ng_prelu_new(1)                            x > 0 ? x : weight x
 *     ng_function_new(name, function)            any function of one tensor
 *     ng_dropout_new(p)                          x mask / (1 - p) in training
 *     ng_film_new(channels)                      (1 + scale) x + shift, made of a condition
 *     ng_sequential_new(a, b, ...)               ... b(a(x))
 *     ng_list_new(a, b, ...)                     modules that your code calls
 *     ng_residual_new(inner)                     x + inner(x)
 *     ng_parameters_new(tensors, n)              your tensors as parameters
 *     ng_conv2d_new(in, out, kernel)             convolution; of lines ng_conv1d_new
 *     ng_conv_transpose2d_new(in, out, kernel)   transposed; of lines ng_conv_transpose1d_new
 *     ng_max_pool2d_new(kernel)                  pooling: also ng_avg_pool2d_new, ..._pool1d_new,
 *                                                ng_adaptive_avg_pool_new, ng_global_avg_pool_new
 *     ng_upsample_new(scale)                     `scale` times the size
 *     ng_flatten_new()                           (N, ...) -> (N, all the others)
 *     ng_weight_norm_new(inner)                  inner with the weight g v / |v|
 *     ng_weight_standardization_new(i)           inner with the weight (v - mean) / sqrt(var + eps)
 *     ng_spectral_norm_new(inner)                inner with the weight W / sigma
 *
 * No constructor takes a seed: ng_module_init(net, seed) draws the weights of a network. */
#ifndef NORMGRAD_LAYERS_H
#define NORMGRAD_LAYERS_H

#include <normgrad/module.h>

NG_BEGIN_C

/* ---- Linear, activations -------------------------------------------------------------------- */

/* How a weight is drawn. fan_in and fan_out are how many numbers it reads and how many it makes. */
typedef enum {
    NG_INIT_DEFAULT = 0,     /* the layer's own; in ng_fill_init U(-b, b), b = 1 / sqrt(fan_in) */
    NG_INIT_KAIMING_UNIFORM, /* U(-b, b), b = sqrt(6 / fan_in); He et al. 2015 */
    NG_INIT_KAIMING_NORMAL,  /* N(0, 2 / fan_in) */
    NG_INIT_XAVIER_UNIFORM,  /* U(-b, b), b = sqrt(6 / (fan_in + fan_out)); Glorot & Bengio 2010 */
    NG_INIT_XAVIER_NORMAL,   /* N(0, 2 / (fan_in + fan_out)) */
    NG_INIT_NORMAL,          /* N(0, value^2) */
    NG_INIT_CONSTANT         /* value */
} ng_init_kind;

/* Draws a tensor; a matrix is (fan_out, fan_in), a vector has both fans equal to its length.
 * `value` is used by NG_INIT_NORMAL and NG_INIT_CONSTANT only. */
NG_API ng_status ng_fill_init(ng_tensor *x, ng_init_kind kind, double value, ng_rng *rng);

/* Linear: y = x weight^T + bias; weight (out, in), bias (out). Both are drawn from
 * U(-1/sqrt(in), 1/sqrt(in)), as in PyTorch.
 *     ng_linear_new(64, 128)   ng_linear_new(64, 128, .no_bias = true) */
typedef struct {
    bool no_bias;      /* no bias */
    ng_init_kind init; /* of the weight; the bias is then 0 */
    double init_value; /* deviation of NG_INIT_NORMAL (no default), value of NG_INIT_CONSTANT (0) */
    int64_t out;
} ng_linear_new_options;
#define ng_linear_new(in, ...)                                                                     \
    ng_linear_new_with(in, NG_NAMED(ng_linear_new_options, out, __VA_ARGS__))
NG_API ng_module *ng_linear_new_with(int64_t in, ng_linear_new_options options);

/* Activations; the formulas are in elementwise.h. A negative slope or alpha is NG_EVALUE, and so is
 * an alpha of 0 for CELU. */
NG_API ng_module *ng_relu_new(void);
NG_API ng_module *ng_gelu_new(void);
NG_API ng_module *ng_gelu_tanh_new(void);
NG_API ng_module *ng_silu_new(void);
NG_API ng_module *ng_tanh_new(void);
NG_API ng_module *ng_sigmoid_new(void);
NG_API ng_module *ng_softplus_new(void);
NG_API ng_module *ng_glu_new(void); /* halves the last dimension */
NG_API ng_module *ng_leaky_relu_new(double slope);
NG_API ng_module *ng_elu_new(double alpha);
NG_API ng_module *ng_celu_new(double alpha);

/* PReLU: the slope for x < 0 is the parameter weight, one number, or one for each channel of
 * x (N, C, ...). He, Zhang, Ren & Sun 2015. */
typedef struct {
    double slope;     /* where weight starts; default 0.25 */
    int64_t channels; /* 1 or C */
} ng_prelu_new_options;
#define ng_prelu_new(...) ng_prelu_new_with(NG_NAMED(ng_prelu_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_prelu_new_with(ng_prelu_new_options options);

/* Any function of one tensor as a layer without parameters: ng_function_new("sin", ng_sin).
 * ng_summary shows the name, of at most 47 characters. */
typedef ng_tensor *ng_function(ng_tape *tape, ng_tensor *x);
NG_API ng_module *ng_function_new(const char *name, ng_function *function);

/* Dropout with probability p, in training only. */
NG_API ng_module *ng_dropout_new(double p);

/* FiLM: (1 + scale) x + shift, where (shift, scale) = weight c + bias for a condition c of samples
 * or of positions, as norms.h has it (of positions: SPADE, Park et al. 2019). weight (2 channels,
 * condition) and bias (2 channels) start at 0, so at first y = x. Perez et al. 2018. */
typedef struct {
    int64_t condition;  /* features of c */
    bool features_last; /* x is (N, ..., channels), and c of positions (N, ..., condition) */
    bool no_shift;      /* no shift; weight and bias have half as many rows */
    int64_t channels;   /* of x */
} ng_film_new_options;
#define ng_film_new(...) ng_film_new_with(NG_NAMED(ng_film_new_options, channels, __VA_ARGS__))
NG_API ng_module *ng_film_new_with(ng_film_new_options options);

/* ---- Containers ----------------------------------------------------------------------------- */

/* Sequential: calls its children one after the other. They are named 0, 1, 2... The Sequential owns
 * them, even if the call fails. A module that ng_sequential_add adds keeps its mode: call ng_eval
 * or ng_freeze again if needed. */
NG_API ng_module *ng_sequential_from(ng_module *const *modules, int count);
#ifndef __cplusplus
#define ng_sequential_new(...)                                                                     \
    ng_sequential_from((ng_module *[]){__VA_ARGS__},                                               \
                       (int)(sizeof((ng_module *[]){__VA_ARGS__}) / sizeof(ng_module *)))
#else
NG_END_C
static inline ng_module *ng_sequential_of_list(std::initializer_list<ng_module *> modules)
{
    return ng_sequential_from(modules.begin(), (int)modules.size());
}
#define ng_sequential_new(...) ng_sequential_of_list({__VA_ARGS__})
NG_BEGIN_C
#endif
NG_API ng_status ng_sequential_add(ng_module *sequential, ng_module *module);

/* A list of modules that your code gets by ng_module_child and calls: steps of a loop, heads of a
 * network, networks of an ensemble. It has no forward function. Names and ownership are as in
 * ng_sequential_from. */
NG_API ng_module *ng_list_from(ng_module *const *modules, int count);
#ifndef __cplusplus
#define ng_list_new(...)                                                                           \
    ng_list_from((ng_module *[]){__VA_ARGS__},                                                     \
                 (int)(sizeof((ng_module *[]){__VA_ARGS__}) / sizeof(ng_module *)))
#else
NG_END_C
static inline ng_module *ng_list_of_list(std::initializer_list<ng_module *> modules)
{
    return ng_list_from(modules.begin(), (int)modules.size());
}
#define ng_list_new(...) ng_list_of_list({__VA_ARGS__})
NG_BEGIN_C
#endif
NG_API ng_status ng_list_add(ng_module *list, ng_module *module);

/* Your tensors as the parameters of a module, named 0, 1, 2..., for an optimizer, clipping or a
 * file. The module owns them, and they require a gradient; after an error they are still yours.
 * ng_module_init fills them with 0.
 *
 *     ng_tensor *w = ng_zeros_new(NG_F64, NG_SHAPE(3)), *b = ng_zeros_new(NG_F64, NG_SCALAR);
 *     ng_optimizer *adam = ng_adam_new(ng_parameters_new(NG_TENSORS(w, b))); */
NG_API ng_module *ng_parameters_new(ng_tensor *const *tensors, int count);

/* y = x + inner(x); the child is named inner. The module owns it, even if the call fails. */
NG_API ng_module *ng_residual_new(ng_module *inner);

/* ---- Images and lines ----------------------------------------------------------------------- */

/* Convolution of x (N, in, H, W), as ng_conv2d (images.h) has it; weight (out, in / groups,
 * kernel_h, kernel_w), bias (out), both drawn from U(-b, b), b = 1 / sqrt(in / groups kernel_h
 * kernel_w).
 *     ng_conv2d_new(1, 16, 3, .padding = 1)
 *     ng_conv2d_new(16, 32, 3, .stride = 2, .kernel_w = 5) */
typedef struct {
    int64_t stride, padding, dilation, groups;            /* for rows and columns alike */
    int64_t kernel_h, kernel_w, stride_h, stride_w;       /* for rows and for columns */
    int64_t padding_h, padding_w, dilation_h, dilation_w; /* the same */
    bool no_bias; /* no bias; use it before a BatchNorm, which subtracts any bias */
    int64_t kernel;
} ng_conv2d_new_options;
#define ng_conv2d_new(in, out, ...)                                                                \
    ng_conv2d_new_with(in, out, NG_NAMED(ng_conv2d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv2d_new_with(int64_t in, int64_t out, ng_conv2d_new_options options);

/* Convolution of lines x (N, in, L), as ng_conv1d has it; weight (out, in / groups, kernel), bias
 * (out), drawn in the same way.   ng_conv1d_new(16, 32, 5, .padding = 2) */
typedef struct {
    int64_t stride, padding, dilation, groups; /* of ng_conv1d */
    bool no_bias;                              /* without bias */
    int64_t kernel;                            /* its length */
} ng_conv1d_new_options;
#define ng_conv1d_new(in, out, ...)                                                                \
    ng_conv1d_new_with(in, out, NG_NAMED(ng_conv1d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv1d_new_with(int64_t in, int64_t out, ng_conv1d_new_options options);

/* Transposed convolution of images x (N, in, H, W) or lines x (N, in, L), as ng_conv_transpose2d
 * has it; weight (in, out / groups, kernel_h, kernel_w) or (in, out / groups, kernel), bias (out),
 * both drawn from U(-b, b), b = 1 / sqrt(out / groups kernel_h kernel_w).
 *     ng_conv_transpose2d_new(32, 16, 4, .stride = 2, .padding = 1)    twice as large */
typedef struct {
    int64_t stride, padding, output_padding, dilation, groups; /* for rows and columns alike */
    int64_t kernel_h, kernel_w, stride_h, stride_w;            /* for rows and for columns */
    int64_t padding_h, padding_w, dilation_h, dilation_w;      /* the same */
    int64_t output_padding_h, output_padding_w;                /* the same */
    bool no_bias;                                              /* without bias */
    int64_t kernel;
} ng_conv_transpose2d_new_options;
#define ng_conv_transpose2d_new(in, out, ...)                                                      \
    ng_conv_transpose2d_new_with(in, out,                                                          \
                                 NG_NAMED(ng_conv_transpose2d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv_transpose2d_new_with(int64_t in, int64_t out,
                                               ng_conv_transpose2d_new_options options);
typedef struct {
    int64_t stride, padding, output_padding, dilation, groups; /* of ng_conv_transpose1d */
    bool no_bias;                                              /* without bias */
    int64_t kernel;                                            /* its length */
} ng_conv_transpose1d_new_options;
#define ng_conv_transpose1d_new(in, out, ...)                                                      \
    ng_conv_transpose1d_new_with(in, out,                                                          \
                                 NG_NAMED(ng_conv_transpose1d_new_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_conv_transpose1d_new_with(int64_t in, int64_t out,
                                               ng_conv_transpose1d_new_options options);

/* ng_upsample as a layer:   ng_upsample_new(2, .mode = NG_LINEAR) */
#define ng_upsample_new(...) ng_upsample_new_with(NG_NAMED(ng_upsample_options, scale, __VA_ARGS__))
NG_API ng_module *ng_upsample_new_with(ng_upsample_options options);

/* Pooling of x (N, C, H, W), or of lines (N, C, L); flattening of any x (N, ...). The formulas
 * are in images.h.
 *     ng_max_pool2d_new(2)   ng_avg_pool1d_new(3, .stride = 2, .padding = 1) */
#define ng_max_pool2d_new(...)                                                                     \
    ng_max_pool2d_new_with(NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
#define ng_avg_pool2d_new(...)                                                                     \
    ng_avg_pool2d_new_with(NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_max_pool2d_new_with(ng_window_options window);
NG_API ng_module *ng_avg_pool2d_new_with(ng_window_options window);
#define ng_max_pool1d_new(...)                                                                     \
    ng_max_pool1d_new_with(NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
#define ng_avg_pool1d_new(...)                                                                     \
    ng_avg_pool1d_new_with(NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
NG_API ng_module *ng_max_pool1d_new_with(ng_pool1d_options options);
NG_API ng_module *ng_avg_pool1d_new_with(ng_pool1d_options options);
NG_API ng_module *ng_adaptive_avg_pool_new(ng_shape size); /* NG_SHAPE(7, 7); of lines (length) */
NG_API ng_module *ng_adaptive_max_pool_new(ng_shape size); /* the same */
NG_API ng_module *ng_global_avg_pool_new(void);            /* (N, C, H, W) -> (N, C) */
NG_API ng_module *ng_flatten_new(void);                    /* (N, ...) -> (N, all the others) */

/* ---- Norms of weights ----------------------------------------------------------------------- */

/* WeightNorm: a layer with the weight g v / |v|, with a length g and a direction v for each output.
 * inner is a module with a parameter "weight" (out, ...), such as Linear, Conv2d or Embedding. The
 * parameters are g, which starts as |v| so that nothing changes at first, and inner.weight, which
 * is v. The new module owns inner, even if the call fails. Salimans & Kingma 2016.
 *     ng_weight_norm_new(ng_linear_new(64, 32))
 * A row of zeros stays 0. The weight of a transposed convolution is (in, ...): g has a length for
 * each input. */
typedef struct {
    bool whole;    /* one length for the whole weight */
    bool centered; /* g (v - mean v) / |v - mean v|; g starts as that length. Huang et al. 2017 */
    ng_module *inner; /* the layer inside; owned by the new one */
} ng_weight_norm_new_options;
#define ng_weight_norm_new(...)                                                                    \
    ng_weight_norm_new_with(NG_NAMED(ng_weight_norm_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_weight_norm_new_with(ng_weight_norm_new_options options);

/* Weight standardization of such a layer: the weight is (v - mean) / sqrt(var + eps), where v is
 * the parameter inner.weight; mean and variance are those of an output's row. Qiao et al. 2019.
 *     ng_weight_standardization_new(ng_conv2d_new(16, 32, 3)) */
typedef struct {
    double eps;       /* default 1e-5 */
    ng_module *inner; /* the layer inside; owned by the new one */
} ng_weight_standardization_new_options;
#define ng_weight_standardization_new(...)                                                         \
    ng_weight_standardization_new_with(                                                            \
        NG_NAMED(ng_weight_standardization_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_weight_standardization_new_with(ng_weight_standardization_new_options options);

/* SpectralNorm of such a layer: the weight is W / sigma, where W is inner.weight as a matrix
 * (out, n), and sigma = u^T W v. The buffers u and v estimate W's first singular vectors and are
 * constants in the gradient. They begin with 50 iterations when the weights are drawn; each forward
 * pass in training adds one:
 *     v = W^T u / |W^T u|   u = W v / |W v|
 * Evaluation, a frozen layer and a W of zeros do not change u and v. The weight of a transposed
 * convolution is (in, n), where PyTorch has (out, n). Miyato et al. 2018. */
typedef struct {
    int64_t iterations; /* in a forward pass; default 1 */
    double eps; /* least length of W^T u and W v, relative to W's largest element; default 1e-12. If
                   one is shorter, u and v stay as they are */
    ng_module *inner; /* the layer inside; owned by the new one */
} ng_spectral_norm_new_options;
#define ng_spectral_norm_new(...)                                                                  \
    ng_spectral_norm_new_with(NG_NAMED(ng_spectral_norm_new_options, inner, __VA_ARGS__))
NG_API ng_module *ng_spectral_norm_new_with(ng_spectral_norm_new_options options);

NG_END_C

#endif
