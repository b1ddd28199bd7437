/* Images and lines: convolution, pooling, resizing.
 *
 *     ng_tensor *y = ng_conv2d(tape, images, kernels, bias, .padding = 1);
 *     y = ng_max_pool2d(tape, ng_relu(tape, y), 2);
 *     y = ng_interpolate(tape, y, NG_SHAPE(28, 28), .mode = NG_LINEAR);
 *     ng_tensor *features = ng_global_avg_pool(tape, y);
 *
 *     ng_conv2d(tape, x, weight, bias)             convolution of images
 *     ng_conv1d(tape, x, weight, bias)             of lines
 *     ng_conv_transpose2d(tape, x, weight, bias)   the gradient of a convolution to its input
 *     ng_conv_transpose1d(tape, x, weight, bias)   the same of lines
 *     ng_max_pool2d(tape, x, kernel)               the largest element of each window
 *     ng_avg_pool2d(tape, x, kernel)               the mean of each window
 *     ng_max_pool1d(tape, x, kernel)               the same of lines
 *     ng_avg_pool1d(tape, x, kernel)               the same of lines
 *     ng_adaptive_avg_pool(tape, x, size)          mean pooling to a given size
 *     ng_adaptive_max_pool(tape, x, size)          max pooling to a given size
 *     ng_global_avg_pool(tape, x)                  the mean of each channel
 *     ng_flatten(tape, x)                          (N, ...) -> (N, all the others)
 *     ng_upsample(tape, x, scale)                  `scale` times the size
 *     ng_interpolate(tape, x, size)                a given size
 *     ng_unfold(tape, x, kernel)                   every window as a column
 *     ng_fold(tape, columns, height, width, kernel)   the sum of the windows
 *
 * Images x are (N, C, H, W): images, channels, rows, columns. Lines x are (N, C, L). Rows of 64
 * pixels become images by ng_reshape(tape, x, NG_SHAPE(-1, 1, 8, 8)), in a network by a layer of
 * ng_function_new. A window moves over each channel. An axis of length n gets the length, rounded
 * down,
 *
 *     (n + 2 padding - dilation (kernel - 1) - 1) / stride + 1
 *
 * which is OH, OW or OL below. A window larger than the padded image is an error. Each setting
 * holds for rows and columns, unless the setting that ends in _h (rows) or _w (columns) is given:
 * ng_unfold(tape, x, 2, .kernel_w = 3) has windows of 2 x 3.
 */
#ifndef NORMGRAD_IMAGES_H
#define NORMGRAD_IMAGES_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* ---- Convolution -------------------------------------------------------------------------- */

/* Convolution of images x (N, C, H, W) with weight (O, C / groups, kernel_h, kernel_w) and bias (O)
 * or NG_NONE -> (N, O, OH, OW):
 *     y[n, o, r, c] = bias[o] + sum over i, j, k of weight[o, i, j, k]
 *         x[n, i, r stride - padding + j dilation, c stride - padding + k dilation]
 *     ng_conv2d(tape, x, weight, bias, .padding = 1)
 * With groups of at most 8 channels, an infinite weight can make NaN in dx near the border, and an
 * infinite x can make NaN in dweight. */
typedef struct {
    int64_t stride;   /* default 1 */
    int64_t padding;  /* zeros on both sides; default 0 */
    int64_t dilation; /* distance between neighbours in the window; default 1 */
    int64_t groups; /* each group of O / groups outputs reads its own group of C / groups channels;
                       default 1. groups = C is a depthwise convolution */
    int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w; /* rows; columns */
    ng_tensor *bias;
} ng_conv2d_options;
#define ng_conv2d(tape, x, weight, ...)                                                            \
    ng_conv2d_with(tape, x, weight, NG_NAMED(ng_conv2d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv2d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                 ng_conv2d_options options);

/* Convolution of lines x (N, C, L) with weight (O, C / groups, kernel) and bias (O) or NG_NONE ->
 * (N, O, OL).
 *     ng_conv1d(tape, x, weight, bias, .stride = 2, .padding = 1) */
typedef struct {
    int64_t stride, padding, dilation, groups; /* as in ng_conv2d */
    ng_tensor *bias;
} ng_conv1d_options;
#define ng_conv1d(tape, x, weight, ...)                                                            \
    ng_conv1d_with(tape, x, weight, NG_NAMED(ng_conv1d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv1d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                 ng_conv1d_options options);

/* Transposed convolution: the gradient of a convolution to its input, with x in place of dy. Images
 * x (N, C, H, W), weight (C, O / groups, kernel_h, kernel_w), bias (O) or NG_NONE -> (N, O, OH,
 * OW); lines x (N, C, L), weight (C, O / groups, kernel) -> (N, O, OL):
 *     y[n, o, r stride - padding + j dilation, c stride - padding + k dilation]
 *         += weight[i, o, j, k] x[n, i, r, c]
 * Then the bias is added. An axis of length n gets the length (n - 1) stride - 2 padding +
 * dilation (kernel - 1) + output_padding + 1, which must be at least 1. Dumoulin & Visin 2016.
 *     ng_conv_transpose2d(tape, x, weight, bias, .stride = 2, .padding = 1, .output_padding = 1) */
typedef struct {
    int64_t stride, padding;  /* of the convolution, as in ng_conv2d */
    int64_t output_padding;   /* rows and columns added at the end, fewer than the stride. Several
                                lengths give x's length in the convolution: this selects one */
    int64_t dilation, groups; /* as in ng_conv2d */
    int64_t stride_h, stride_w, padding_h, padding_w, dilation_h, dilation_w; /* rows; columns */
    int64_t output_padding_h, output_padding_w;                               /* the same */
    ng_tensor *bias;
} ng_conv_transpose2d_options;
#define ng_conv_transpose2d(tape, x, weight, ...)                                                  \
    ng_conv_transpose2d_with(tape, x, weight,                                                      \
                             NG_NAMED(ng_conv_transpose2d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv_transpose2d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                           ng_conv_transpose2d_options options);
typedef struct {
    int64_t stride, padding, output_padding, dilation, groups; /* as in ng_conv_transpose2d */
    ng_tensor *bias;
} ng_conv_transpose1d_options;
#define ng_conv_transpose1d(tape, x, weight, ...)                                                  \
    ng_conv_transpose1d_with(tape, x, weight,                                                      \
                             NG_NAMED(ng_conv_transpose1d_options, bias, __VA_ARGS__))
NG_API ng_tensor *ng_conv_transpose1d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                           ng_conv_transpose1d_options options);

/* ---- Pooling ------------------------------------------------------------------------------ */

/* A window that moves over images, for pooling and unfolding. */
typedef struct {
    int64_t stride;   /* default 1; in pooling the kernel */
    int64_t padding;  /* zeros (-Inf in max pooling) on both sides; default 0 */
    int64_t dilation; /* distance between neighbours in the window; default 1 */
    int64_t kernel_h, kernel_w, stride_h, stride_w;       /* for rows and for columns */
    int64_t padding_h, padding_w, dilation_h, dilation_w; /* the same */
    bool ceil; /* lengths are rounded up: a last window that begins in the image, or in the
                  padding before it, may reach beyond the padding behind it (PyTorch's
                  ceil_mode) */
    bool exclude_padding; /* a mean divides by the number of elements that are no padding (PyTorch's
                             count_include_pad=False) */
    int64_t kernel;
} ng_window_options;

/* The largest element, or the mean, of each window: (N, C, H, W) -> (N, C, OH, OW). Padding is at
 * most half of the kernel.
 *     ng_max_pool2d(tape, x, 2)   ng_avg_pool2d(tape, x, 3, .stride = 2, .padding = 1)
 * Equal elements share the gradient of the largest. A mean includes the zeros of the padding, but
 * nothing beyond it. */
#define ng_max_pool2d(tape, x, ...)                                                                \
    ng_max_pool2d_with(tape, x, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
#define ng_avg_pool2d(tape, x, ...)                                                                \
    ng_avg_pool2d_with(tape, x, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
NG_API ng_tensor *ng_max_pool2d_with(ng_tape *tape, ng_tensor *x, ng_window_options window);
NG_API ng_tensor *ng_avg_pool2d_with(ng_tape *tape, ng_tensor *x, ng_window_options window);

/* The same of lines: (N, C, L) -> (N, C, OL).
 *     ng_max_pool1d(tape, x, 2)   ng_avg_pool1d(tape, x, 3, .stride = 2, .padding = 1) */
typedef struct {
    int64_t stride, padding, dilation; /* as in ng_window_options, like the others */
    bool ceil, exclude_padding;
    int64_t kernel;
} ng_pool1d_options;
#define ng_max_pool1d(tape, x, ...)                                                                \
    ng_max_pool1d_with(tape, x, NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
#define ng_avg_pool1d(tape, x, ...)                                                                \
    ng_avg_pool1d_with(tape, x, NG_NAMED(ng_pool1d_options, kernel, __VA_ARGS__))
NG_API ng_tensor *ng_max_pool1d_with(ng_tape *tape, ng_tensor *x, ng_pool1d_options options);
NG_API ng_tensor *ng_avg_pool1d_with(ng_tape *tape, ng_tensor *x, ng_pool1d_options options);

/* Pooling to a given size: images (N, C, H, W) to (N, C, rows, columns), lines (N, C, L) to
 * (N, C, length). If an axis of length n becomes m, y[i] is the mean, or the largest, of
 *     x[floor(i n / m)] .. x[ceil((i + 1) n / m) - 1]
 * m may be larger than n. Equal elements share the gradient of the largest, along columns and then
 * rows.   ng_adaptive_avg_pool(tape, x, NG_SHAPE(7, 7)) */
NG_API ng_tensor *ng_adaptive_avg_pool(ng_tape *tape, ng_tensor *x, ng_shape size);
NG_API ng_tensor *ng_adaptive_max_pool(ng_tape *tape, ng_tensor *x, ng_shape size);

/* y[n, c] = mean over rows and columns of x[n, c]: (N, C, H, W) -> (N, C). Lin et al. 2014. */
NG_API ng_tensor *ng_global_avg_pool(ng_tape *tape, ng_tensor *x);

NG_API ng_tensor *ng_flatten(ng_tape *tape, ng_tensor *x); /* (N, ...) -> (N, all the others) */

/* ---- Resizing, windows -------------------------------------------------------------------- */

/* How an image is resized. An axis of length n gets length m, with t = (i + 1/2) n / m - 1/2. */
typedef enum {
    NG_NEAREST = 0, /* y[i] = x[floor(i n / m)] */
    NG_LINEAR /* y[i] = (1 - f) x[j] + f x[j + 1], j = floor(t), f = t - j, clamped at the ends;
                 of images along rows and along columns. PyTorch's "bilinear" */
} ng_interpolation;

/* Resizes images (N, C, H, W) or lines (N, C, L): ng_upsample to `scale` times their size,
 * ng_interpolate to a given size (H, W) or (L).
 *     ng_upsample(tape, x, 2)   ng_interpolate(tape, x, NG_SHAPE(28, 28), .mode = NG_LINEAR) */
typedef struct {
    ng_interpolation mode; /* default NG_NEAREST */
    bool align_corners; /* with NG_LINEAR: t = i (n - 1) / (m - 1), so that the outermost elements
                           of x and y coincide; without it, the edges of the images do */
    int64_t scale;      /* at least 1 */
} ng_upsample_options;
typedef struct {
    ng_interpolation mode; /* as in ng_upsample */
    bool align_corners;    /* as in ng_upsample */
    ng_shape size;
} ng_interpolate_options;
#define ng_upsample(tape, x, ...)                                                                  \
    ng_upsample_with(tape, x, NG_NAMED(ng_upsample_options, scale, __VA_ARGS__))
#define ng_interpolate(tape, x, ...)                                                               \
    ng_interpolate_with(tape, x, NG_NAMED(ng_interpolate_options, size, __VA_ARGS__))
NG_API ng_tensor *ng_upsample_with(ng_tape *tape, ng_tensor *x, ng_upsample_options options);
NG_API ng_tensor *ng_interpolate_with(ng_tape *tape, ng_tensor *x, ng_interpolate_options options);

/* ng_unfold makes every window a column: (N, C, H, W) -> (N, C kernel_h kernel_w, OH OW). ng_fold
 * puts columns back, and adds up where windows overlap. Each is the gradient of the other.
 *     ng_unfold(tape, x, 3, .padding = 1)   ng_fold(tape, columns, 8, 8, 3, .padding = 1) */
#define ng_unfold(tape, x, ...)                                                                    \
    ng_unfold_with(tape, x, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
#define ng_fold(tape, columns, height, width, ...)                                                 \
    ng_fold_with(tape, columns, height, width, NG_NAMED(ng_window_options, kernel, __VA_ARGS__))
NG_API ng_tensor *ng_unfold_with(ng_tape *tape, ng_tensor *x, ng_window_options window);
NG_API ng_tensor *ng_fold_with(ng_tape *tape, ng_tensor *columns, int64_t height, int64_t width,
                               ng_window_options window);

NG_END_C

#endif
