/* Images x (N, C, H, W): windows laid out as columns and put back, pooling, flattening.
 *
 * Output (r, c) of a window sees the elements
 *
 *     x[n, i, r stride - padding + j dilation, c stride - padding + k dilation]
 *
 * for j < kernel_h, k < kernel_w; what lies outside the image is 0, for max pooling -Inf. */
#include "ops/pool.h"
#include <math.h>

static const char in_avg_pool[] = "in average pooling";

/* ---- unfold and fold: each is the other's gradient ----------------------------------------- */

static void unfold_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const ng_windows *w = node->attributes;
    dx[0] = ng_fold_with(tape, dy, w->size[0], w->size[1], ng_window_of(w));
}

static ng_status unfold_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                 ng_slot *dx)
{
    (void)tape;
    ng_kernels_for(dy->dtype)->fold(node->attributes, dy->data, dy->shape.dim[2], dx[0].data,
                                    dx[0].accumulate);
    return NG_OK;
}

static const ng_op unfold_op = {
    .name = "unfold", .gradient = unfold_gradient, .backward = unfold_backward};

ng_tensor *ng_unfold_with(ng_tape *tape, ng_tensor *x, ng_window_options window)
{
    ng_windows w;
    if (!ng_accepts("ng_unfold", tape, 1, &x) || !ng_is_image("ng_unfold", x) ||
        !ng_option_idle("ng_unfold", "exclude_padding", window.exclude_padding, in_avg_pool) ||
        !ng_windows_of("ng_unfold", x->shape, &window, &w))
        return NULL;
    const int64_t rows = x->shape.dim[1] * w.kernel[0] * w.kernel[1];
    ng_tensor *y = ng_result(tape, x->dtype, NG_SHAPE(x->shape.dim[0], rows, w.out[0] * w.out[1]));
    if (!y) return NULL;
    ng_kernels_for(x->dtype)->unfold(&w, x->data, y->data, y->shape.dim[2]);
    return ng_record_own(tape, &unfold_op, y, &x, 1, &w, sizeof w);
}

static void fold_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_unfold_with(tape, dy, ng_window_of(node->attributes));
}

static const ng_op fold_op = {.name = "fold", .gradient = fold_gradient};

/* Whether columns have the shape (N, C kernel_h kernel_w, OH OW) of the windows. */
static bool columns_fit(const ng_shape columns, const ng_windows *w)
{
    const int64_t taps = w->kernel[0] * w->kernel[1], places = w->out[0] * w->out[1];
    if (columns.rank == 3 && columns.dim[1] % taps == 0 && columns.dim[2] == places) return true;
    ng_fail(NG_ESHAPE, "ng_fold: columns of shape %s, expected (N, C * %lld, %lld)",
            ng_shape_print(columns).text, (long long)taps, (long long)places);
    return false;
}

ng_tensor *ng_fold_with(ng_tape *tape, ng_tensor *columns, int64_t height, int64_t width,
                        ng_window_options window)
{
    ng_windows w;
    ng_shape shape = NG_SHAPE(1, 1, height, width);
    if (!ng_accepts("ng_fold", tape, 1, &columns) || ng_shape_size("ng_fold", shape) < 0 ||
        !ng_option_idle("ng_fold", "exclude_padding", window.exclude_padding, in_avg_pool) ||
        !ng_windows_of("ng_fold", shape, &window, &w) || !columns_fit(columns->shape, &w))
        return NULL;
    shape.dim[0] = columns->shape.dim[0];
    shape.dim[1] = columns->shape.dim[1] / (w.kernel[0] * w.kernel[1]);
    ng_tensor *y = ng_result(tape, columns->dtype, shape);
    if (!y) return NULL;
    w.planes = shape.dim[0] * shape.dim[1];
    ng_kernels_for(y->dtype)->fold(&w, columns->data, columns->shape.dim[2], y->data, false);
    return ng_record_own(tape, &fold_op, y, &columns, 1, &w, sizeof w);
}

/* ---- Pooling ------------------------------------------------------------------------------- */

/* The windows of x: (N, C, kernel_h kernel_w, OH OW). */
static ng_tensor *windows_apart(ng_tape *tape, ng_tensor *x, const ng_windows *w)
{
    ng_tensor *columns = ng_unfold_with(tape, x, ng_window_of(w));
    if (!columns) return NULL;
    return ng_reshape(tape, columns,
                      NG_SHAPE(x->shape.dim[0], x->shape.dim[1], w->kernel[0] * w->kernel[1],
                               w->out[0] * w->out[1]));
}

/* y = max of each window, where what lies outside the image is -Inf. For images (16, 16, 16, 16)
 * with its backward pass it takes 0.7 of its definition's time, and less memory. */
static ng_tensor *max_pool_definition(ng_tape *tape, const ng_node *node)
{
    const ng_windows *w = node->attributes;
    ng_tensor *x = node->inputs[0];
    ng_tensor *inside = windows_apart(tape, ng_ones_like(tape, x), w);
    ng_tensor *outside = ng_full(tape, x->dtype, NG_SCALAR, -HUGE_VAL);
    ng_tensor *seen = ng_where(tape, inside, windows_apart(tape, x, w), outside);
    ng_tensor *y = ng_max(tape, seen, .axes = NG_AXES(2));
    return ng_reshape(tape, y, node->output->shape);
}

static ng_status image_max_pool_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                         ng_slot *dx)
{
    (void)tape;
    ng_kernels_for(dy->dtype)->max_pool_backward(node->attributes, node->inputs[0]->data,
                                                 node->output->data, dy->data, dx[0].data,
                                                 dx[0].accumulate);
    return NG_OK;
}

static const ng_op max_pool_op = {
    .name = "max_pool2d", .backward = image_max_pool_backward, .definition = max_pool_definition};

/* y = mean of each window, where what lies outside the image is 0 */
static ng_tensor *mean_of_windows(ng_tape *tape, ng_tensor *x, const ng_windows *w)
{
    ng_tensor *y = ng_mean(tape, windows_apart(tape, x, w), .axes = NG_AXES(2));
    return ng_reshape(tape, y, NG_SHAPE(x->shape.dim[0], x->shape.dim[1], w->out[0], w->out[1]));
}

static ng_tensor *max_of_windows(ng_tape *tape, ng_tensor *x, const ng_windows *w)
{
    const ng_shape shape = NG_SHAPE(x->shape.dim[0], x->shape.dim[1], w->out[0], w->out[1]);
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y) return NULL;
    ng_kernels_for(x->dtype)->max_pool(w, x->data, y->data);
    return ng_record_own(tape, &max_pool_op, y, &x, 1, w, sizeof *w);
}

bool ng_pool_settings_ok(const ng_pool_call *call)
{
    ng_windows w;
    if (call->adaptive) return ng_adaptive_size_ok(call);
    if (!ng_window_settings(call->function, &call->window, &w) ||
        !ng_option_idle(call->function, "exclude_padding",
                        call->max && call->window.exclude_padding, in_avg_pool))
        return false;
    for (int i = 0; i < 2; i++) {
        if (2 * w.padding[i] <= w.kernel[i]) continue;
        ng_fail(NG_EVALUE, "%s: padding is %lld, expected at most half of the kernel's %lld",
                call->function, (long long)w.padding[i], (long long)w.kernel[i]);
        return false;
    }
    return true;
}

/* Elements of each window along axis i as a constant (out): those inside of the image, or also of
 * the padding. A window of .ceil may have fewer than the kernel. */
static ng_tensor *window_sizes(ng_tape *tape, const ng_windows *w, int i, bool inside,
                               ng_dtype dtype)
{
    ng_tensor *sizes = ng_result(tape, dtype, NG_SHAPE(w->out[i]));
    const int64_t padding = inside ? 0 : w->padding[i];
    for (int64_t o = 0; sizes && o < w->out[i]; o++) {
        int64_t count = 0;
        for (int64_t k = 0; k < w->kernel[i]; k++) {
            const int64_t place = o * w->stride[i] - w->padding[i] + k * w->dilation[i];
            count += place >= -padding && place < w->size[i] + padding;
        }
        ng_tensor_store(sizes, o, (double)count);
    }
    return sizes;
}

/* Means over whole kernels -> means over as many elements as the windows have. */
static ng_tensor *mean_of_fewer(ng_tape *tape, ng_tensor *y, const ng_windows *w, bool inside)
{
    if (!y || y->size == 0) return y;
    ng_tensor *rows = window_sizes(tape, w, 0, inside, y->dtype);
    ng_tensor *columns = window_sizes(tape, w, 1, inside, y->dtype);
    ng_tensor *count = ng_mul(tape, ng_unsqueeze(tape, rows, 1), columns);
    return ng_mul(tape, y, ng_scalar_div(tape, (double)w->kernel[0] * (double)w->kernel[1], count));
}

/* Of images. */
static ng_tensor *image_pooled(ng_tape *tape, ng_tensor *x, const ng_pool_call *call)
{
    ng_windows w;
    ng_window_options window = call->window;
    if (window.stride == 0) {
        window.stride = window.kernel;
        if (window.stride_h == 0) window.stride_h = window.kernel_h;
        if (window.stride_w == 0) window.stride_w = window.kernel_w;
    }
    if (!ng_windows_of(call->function, x->shape, &window, &w)) return NULL;
    if (call->max) return max_of_windows(tape, x, &w);
    ng_tensor *y = mean_of_windows(tape, x, &w);
    if (!(window.ceil || window.exclude_padding)) return y;
    return mean_of_fewer(tape, y, &w, window.exclude_padding);
}

ng_tensor *ng_pooled(ng_tape *tape, ng_tensor *x, const ng_pool_call *call)
{
    if (!ng_accepts(call->function, tape, 1, &x) || !ng_pool_settings_ok(call)) return NULL;
    if (call->adaptive) return ng_adaptive_pooled(tape, x, call);
    if (!call->lines) return ng_is_image(call->function, x) ? image_pooled(tape, x, call) : NULL;
    if (!ng_is_line(call->function, x)) return NULL;
    const ng_shape shape = x->shape;
    const ng_window_options *w = &call->window;
    const ng_pool_call of_rows = {.function = call->function,
                                  .window = {.kernel_h = 1,
                                             .kernel_w = w->kernel,
                                             .stride_h = 1,
                                             .stride_w = w->stride,
                                             .padding_w = w->padding,
                                             .dilation_w = w->dilation,
                                             .ceil = w->ceil,
                                             .exclude_padding = w->exclude_padding},
                                  .max = call->max};
    x = ng_reshape(tape, x, NG_SHAPE(shape.dim[0], shape.dim[1], 1, shape.dim[2]));
    return ng_squeeze(tape, x ? image_pooled(tape, x, &of_rows) : NULL, 2);
}

ng_tensor *ng_max_pool2d_with(ng_tape *tape, ng_tensor *x, ng_window_options window)
{
    return ng_pooled(tape, x,
                     &(ng_pool_call){.function = "ng_max_pool2d", .window = window, .max = true});
}

ng_tensor *ng_avg_pool2d_with(ng_tape *tape, ng_tensor *x, ng_window_options window)
{
    return ng_pooled(tape, x, &(ng_pool_call){.function = "ng_avg_pool2d", .window = window});
}

ng_tensor *ng_max_pool1d_with(ng_tape *tape, ng_tensor *x, ng_pool1d_options options)
{
    const ng_pool_call call = NG_LINE_POOL_CALL("ng_max_pool1d", options, true);
    return ng_pooled(tape, x, &call);
}

ng_tensor *ng_avg_pool1d_with(ng_tape *tape, ng_tensor *x, ng_pool1d_options options)
{
    const ng_pool_call call = NG_LINE_POOL_CALL("ng_avg_pool1d", options, false);
    return ng_pooled(tape, x, &call);
}

ng_tensor *ng_global_avg_pool(ng_tape *tape, ng_tensor *x)
{
    static const char function[] = "ng_global_avg_pool";
    if (!ng_accepts(function, tape, 1, &x) || !ng_is_image(function, x) ||
        !ng_expect_shape(x->shape.dim[2] > 0 && x->shape.dim[3] > 0, function, "x", x,
                         "images of at least one element"))
        return NULL;
    return ng_mean(tape, x, .axes = NG_AXES(2, 3));
}

ng_tensor *ng_flatten(ng_tape *tape, ng_tensor *x)
{
    if (!ng_accepts_any("ng_flatten", tape, 1, &x) ||
        !ng_expect_shape(x->shape.rank >= 1, "ng_flatten", "x", x, "(N, ...)"))
        return NULL;
    const ng_shape shape = x->shape;
    return ng_reshape(tape, x, NG_SHAPE(shape.dim[0], ng_shape_span(shape, 1, shape.rank)));
}
