/* What the files of ops share. */
#ifndef NG_OPS_OP_H
#define NG_OPS_OP_H

#include "core/error.h"
#include "kernels/kernels.h"
#include "tape/tape.h"
#include <normgrad/ops.h>

/* Whether a gradient rule must compute the gradient of input i. */
static inline bool ng_wants(ng_tensor *const *dx, int i) { return dx[i] != NG_NONE; }

/* ng_accepts for ops that only move elements: operands of one dtype, which may be int64. */
bool ng_accepts_any(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs);

/* Whether `index` is not NULL, belongs to this tape or to none, and is int64; `what` is its name in
 * the error, "index" or "labels". */
bool ng_accepts_index(const char *function, ng_tape *tape, const char *what, ng_tensor *index);

/* ng_given for an operand that NG_NONE may leave out. */
bool ng_given_or_none(const char *function, const char *name, const ng_tensor *operand);

/* Whether all elements of an int64 index are from 0 to bound - 1; else an error. */
bool ng_index_within(const char *function, const ng_tensor *index, int64_t bound);

/* ---- Element by element ------------------------------------------------------------------- */

/* y = map(x; a, b), recorded as `op`; its attributes are an ng_mapping. */
ng_tensor *ng_map_record(const char *function, ng_tape *tape, const ng_op *op, ng_tensor *x,
                         ng_map map, double a, double b);

/* ng_op.backward by kernels->map_backward, for the maps that have one. */
ng_status ng_map_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx);

/* Defines the gradient rule of y = f(x): dx by its formula in dy, x and y. */
#define NG_UNARY_RULE(op, formula)                                                                 \
    static void op##_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)   \
    {                                                                                              \
        ng_tensor *const x = node->inputs[0], *const y = node->output;                             \
        (void)x, (void)y;                                                                          \
        dx[0] = formula;                                                                           \
    }

/* The largest number of a floating dtype; x, and these for the infinities. */
double ng_largest(ng_dtype dtype);
ng_tensor *ng_finite(ng_tape *tape, ng_tensor *x);

/* y = binary(a, b), broadcasting, recorded as `op`. */
ng_tensor *ng_binary_record(const char *function, ng_tape *tape, const ng_op *op, ng_tensor *a,
                            ng_tensor *b, ng_binary binary);

/* ---- Parts of the last dimension ----------------------------------------------------------- */

/* Whether the last dimension of x is even; else an error. */
bool ng_has_halves(const char *function, const ng_tensor *x);

/* Features i n .. (i + 1) n - 1 of x (..., features). */
ng_tensor *ng_features(ng_tape *tape, ng_tensor *x, int64_t i, int64_t n);

/* ---- Reductions ---------------------------------------------------------------------------- */

/* Whether x and the options are in order, without .unbiased; then marks the reduced axes. */
bool ng_accepts_reduction(const char *function, ng_tape *tape, const ng_reduce_options *options,
                          bool *reduced);

/* A shape without its reduced axes, or with length 1 for each. */
ng_shape ng_reduced_shape(ng_shape shape, const bool *reduced, bool keepdim);

/* sum x^2 in double, in which squares of floats neither overflow nor vanish; reduced axes have
 * length 1. */
ng_tensor *ng_sum_of_squares(ng_tape *tape, const ng_tensor *x, const bool *reduced);

/* ---- What the norms share ----------------------------------------------------------------- */

/* ng_accepts_optional for a norm's x, gamma and beta, of which the last two may be left out. */
bool ng_norm_accepts(const char *function, ng_tape *tape, ng_tensor *const inputs[3]);

/* Whether eps is finite and at least 0. */
bool ng_norm_eps_ok(const char *function, double eps);

/* Whether x is (N, C, ...) with at least 1 element a sample; N may be 0. */
bool ng_has_channels(const char *function, const ng_tensor *x);

/* Whether x has a last axis of at least 1 element; there may be no rows. */
bool ng_has_rows(const char *function, const ng_tensor *x);

/* Whether c is NG_NONE or has the shape that x requires; the same for gamma and beta. */
bool ng_operand_fits(const char *function, const char *name, const ng_tensor *c, ng_shape expected,
                     const ng_tensor *x);
bool ng_affine_fits(const char *function, const ng_tensor *gamma, const ng_tensor *beta,
                    ng_shape expected, const ng_tensor *x);

/* Memory of the tape for the statistics of `count` rows or columns of x; false if there is none. */
bool ng_statistics_new(ng_tape *tape, const ng_tensor *x, int64_t count, bool center,
                       ng_statistics *statistics);

/* rstd = 1 / sqrt(var + eps) */
void ng_inverse_deviation(double *rstd, const double *var, double eps, int64_t n);

/* y = x scaled and shifted per channel, x (N, C, ...); gamma and beta are (C) or NG_NONE. y may be
 * x's data. */
void ng_channel_affine(const ng_tensor *x, const ng_tensor *gamma, const ng_tensor *beta, void *y);

/* The shape in which numbers per channel broadcast against x (N, C, ...), (C, 1...); a tensor (C)
 * in it. */
ng_shape ng_shape_per_channel(const ng_tensor *x);
ng_tensor *ng_per_channel(ng_tape *tape, ng_tensor *c, const ng_tensor *x);

/* x (N, C, ...) as (N, C, positions). */
ng_tensor *ng_by_positions(ng_tape *tape, ng_tensor *x);

/* The axes of x (N, C, ...) but that of the channels. */
ng_axes ng_all_but_channel(const ng_tensor *x);

/* ---- Norms composed of ops ---------------------------------------------------------------- */

/* x minus a constant near its mean over some axes, so that the rest has a mean near 0: x far from 0
 * then keeps its digits where its mean is subtracted. */
ng_tensor *ng_near_zero(ng_tape *tape, ng_tensor *x, ng_axes axes);

/* The parts of a composed norm: x less its mean, and 1 / deviation. */
typedef struct {
    ng_tensor *centred, *rstd;
} ng_composed_norm;

/* The deviation is sqrt(sum of squares / divisor + eps), of x less its mean if `center`. */
typedef struct {
    bool center;
    double divisor, eps;
} ng_deviation;

/* Of x over some axes. */
ng_composed_norm ng_compose_norm(ng_tape *tape, ng_tensor *x, ng_axes axes, ng_deviation deviation);

/* y (N, C, ...) scaled and shifted per channel; gamma and beta may be NG_NONE. */
ng_tensor *ng_affine_composed(ng_tape *tape, ng_tensor *y, ng_tensor *gamma, ng_tensor *beta);

/* centred rstd, scaled and shifted per channel, in the shape of x (N, C, ...). */
ng_tensor *ng_composed_output(ng_tape *tape, ng_composed_norm norm, ng_tensor *gamma,
                              ng_tensor *beta, const ng_tensor *x);

/* ---- Batch normalization (batch_norm.c) ---------------------------------------------------- */

/* What running statistics move toward, per channel: the batch's mean, and `factor` times its
 * spread, which is its variance. */
typedef struct {
    double *mean, *spread; /* the tape's; NULL: nothing moves */
    double factor;
} ng_batch_moments;

/* A call of a norm over the batch. */
typedef struct ng_batch_call {
    const char *function;
    ng_tensor *x;                             /* (N, C, ...) */
    ng_tensor *gamma, *beta;                  /* (C), or NG_NONE, as are the next two */
    ng_tensor *running_mean, *running_spread; /* a variance, or a deviation: */
    const char *spread;                       /* its name, "running_var" */
    double eps, momentum;
    bool training;
    ng_group *group; /* or NULL */
    ng_tensor *mask; /* 0 at padding; NG_NONE or NULL: there is none */

    /* Or NULL: when the statistics are known, changes the call's gamma and beta, and what running
     * statistics move toward. False with an error. */
    bool (*adapt)(ng_tape *tape, struct ng_batch_call *call, ng_batch_moments *batch);
    const void *with;
} ng_batch_call;

/* A call of ng_NAME with operands of these names and its options; without a group or a mask. */
#define NG_BATCH_CALL(label, options, running)                                                     \
    {                                                                                              \
        .function = label, .x = x, .gamma = gamma, .beta = beta, .running_mean = running_mean,     \
        .running_spread = (options).running, .spread = #running,                                   \
        .eps = ng_option((options).eps, 1e-5), .momentum = ng_option((options).momentum, 0.1),     \
        .training = (options).training                                                             \
    }

/* Whether operands and settings are in order, but for the mask. */
bool ng_batch_accepts(ng_tape *tape, const ng_batch_call *call);

/* The output, and what ng_batch_move is to move the running statistics toward. */
ng_tensor *ng_batch_norm_run(ng_tape *tape, const ng_batch_call *call, ng_batch_moments *batch);
void ng_batch_move(const ng_batch_call *call, const ng_batch_moments *batch);

/* Both. */
ng_tensor *ng_batch_norm_called(ng_tape *tape, const ng_batch_call *call);

/* Statistics of n numbers: their mean, as the sum of two doubles, and the sum of their squared
 * distances from it. */
typedef struct {
    double n, mean, low, squares;
} ng_moments;

/* Adds those of other numbers: to[i] becomes that of both. */
void ng_moments_add(const ng_moments *from, ng_moments *to, int64_t count);

/* Replaces each by that of all ranks' numbers, in a call of the group. `rows` has room for those of
 * all ranks. */
bool ng_moments_combine(ng_group *group, const char *function, ng_moments *moments,
                        ng_moments *rows, int64_t count);

/* ---- Softmax and losses ------------------------------------------------------------------- */

/* x - max x along an axis; x itself if it has no element. The maximum has no gradient, which is
 * right in functions of x that a shift does not change. */
ng_tensor *ng_shifted(ng_tape *tape, ng_tensor *x, int axis);

/* Whether the reduction is one of the three; the losses reduced by it. */
bool ng_reduction_ok(const char *function, ng_reduction reduction);
ng_tensor *ng_reduced(ng_tape *tape, ng_tensor *losses, ng_reduction reduction);

/* Whether x and its target have one shape, and the options have an effect. */
bool ng_loss_pair_ok(const char *function, ng_tape *tape, ng_tensor *x, const ng_loss_options *o);

/* Whether all targets are in [low, high], give or take 1e-5 for rounding. A tensor that requires a
 * gradient is not checked: finite differences go beyond both ends. */
bool ng_targets_ok(const char *function, const char *name, const ng_tensor *target, double low,
                   double high);

/* Whether a factor is NULL, or has the dtype of x and broadcasts to its shape. */
bool ng_factor_fits(const char *function, const char *name, const ng_tape *tape,
                    const ng_tensor *factor, const ng_tensor *x);

/* Whether x is (..., classes) and the labels (...); whether a row's label is a class. */
bool ng_labels_fit(const char *function, const ng_tensor *x, const ng_tensor *labels);
bool ng_label_ok(const char *function, int64_t label, int64_t row, int64_t classes);

/* x (N, classes, ...) as (N, ..., classes) if .channels_first is set, else x; NULL for NULL. */
ng_tensor *ng_classes_last(ng_tape *tape, ng_tensor *x, bool channels_first);

/* ng_cross_entropy with .weights, its other operands checked; and of probabilities, not checked. */
ng_tensor *ng_weighted_cross_entropy(ng_tape *tape, ng_tensor *logits,
                                     ng_cross_entropy_options options);
ng_tensor *ng_cross_entropy_of_probabilities(ng_tape *tape, ng_tensor *logits,
                                             ng_cross_entropy_options options);

/* ---- Windows over images ------------------------------------------------------------------ */

/* The window with all defaults filled in, over images (N, C, H, W) or lines (N, C, L), images of
 * one row; windows->planes is the number of channels of all images. False with an error for a
 * window that does not fit. */
bool ng_windows_of(const char *function, ng_shape image, const ng_window_options *window,
                   ng_windows *windows);

/* The settings alone: kernel, stride, padding and dilation. */
bool ng_window_settings(const char *function, const ng_window_options *window, ng_windows *windows);

/* Whether a transposed convolution's output_padding is from 0 to stride - 1. */
bool ng_output_padding_ok(const char *function, int64_t output_padding, int64_t stride);

/* A call of max or average pooling: by windows of images (N, C, H, W) or of lines (N, C, L), whose
 * window is one of both directions; or adaptive, to a size. */
typedef struct {
    const char *function;
    ng_window_options window;
    bool max, lines, adaptive;
    ng_shape size;
} ng_pool_call;
ng_tensor *ng_pooled(ng_tape *tape, ng_tensor *x, const ng_pool_call *call);
ng_tensor *ng_adaptive_pooled(ng_tape *tape, ng_tensor *x, const ng_pool_call *call);

/* Whether its settings are in order, and each window has an element that is no padding; whether the
 * size is a positive length, or positive rows and columns. */
bool ng_pool_settings_ok(const ng_pool_call *call);
bool ng_adaptive_size_ok(const ng_pool_call *call);

/* The call of ng_max_pool1d or ng_avg_pool1d with options of ng_pool1d_options. */
#define NG_LINE_POOL_CALL(label, o, is_max)                                                        \
    {                                                                                              \
        .function = label, .max = is_max, .lines = true, .window = {                               \
            .kernel = (o).kernel,                                                                  \
            .stride = (o).stride,                                                                  \
            .padding = (o).padding,                                                                \
            .dilation = (o).dilation,                                                              \
            .ceil = (o).ceil,                                                                      \
            .exclude_padding = (o).exclude_padding                                                 \
        }                                                                                          \
    }

/* Windows as options, for the definitions. */
ng_window_options ng_window_of(const ng_windows *windows);

/* The window of a convolution, whose kernel its weight has, from options of these names. */
#define NG_CONV_WINDOW(o)                                                                          \
    {                                                                                              \
        .stride = (o).stride, .stride_h = (o).stride_h, .stride_w = (o).stride_w,                  \
        .padding = (o).padding, .padding_h = (o).padding_h, .padding_w = (o).padding_w,            \
        .dilation = (o).dilation, .dilation_h = (o).dilation_h, .dilation_w = (o).dilation_w       \
    }
#define NG_CONV_LINE(o)                                                                            \
    {                                                                                              \
        .stride_w = (o).stride, .padding_w = (o).padding, .dilation_w = (o).dilation               \
    }

/* Whether x is (N, C, H, W); else an error. */
bool ng_is_image(const char *function, ng_shape shape);

/* A call of a convolution, or of a transposed one, over images or lines. */
typedef struct {
    const char *function;
    ng_tensor *x, *weight, *bias; /* bias may be NG_NONE */
    int axes;                     /* 2 of images, 1 of lines */
    int64_t groups;
    ng_window_options window;  /* without the kernel; for lines the settings that end in _w */
    int64_t output_padding[2]; /* transposed: of rows and columns */
} ng_conv_call;

/* The result of the call. */
ng_tensor *ng_convolution(ng_tape *tape, ng_conv_call call);
ng_tensor *ng_transposed_convolution(ng_tape *tape, ng_conv_call call);

/* Whether operands and groups are in order; then fills in the window's kernel and the default of
 * groups. The result has as many channels as weight's dimension `outputs`: 0, or of a transposed
 * convolution 1, times the groups. */
bool ng_conv_accepts(ng_tape *tape, ng_conv_call *call, int outputs);

/* Lines (N, C, L) as images (N, C, 1, L) and back; images as they are. */
ng_tensor *ng_conv_as_images(ng_tape *tape, ng_tensor *x, const ng_conv_call *call);
ng_tensor *ng_conv_as_given(ng_tape *tape, ng_tensor *y, const ng_conv_call *call);

/* The gradient to the weight of a convolution of x (N, C, H, W), from dy (N, O, OH, OW). */
ng_tensor *ng_conv2d_dweight(ng_tape *tape, ng_tensor *x, ng_tensor *dy,
                             const ng_conv_shape *shape);

/* A call of a convolution of that shape, or of its transposed one, for rules. */
ng_conv_call ng_conv_call_of(ng_tensor *x, ng_tensor *weight, const ng_conv_shape *shape);

#endif
