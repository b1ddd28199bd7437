/* Transposed convolution: x (N, C, H, W), weight (C, O / groups, kernel_h, kernel_w), bias (O) ->
 * (N, O, OH, OW). It is the gradient that a convolution from (N, O, OH, OW) to (N, C, H, W) gives
 * its input, with x in the place of dy:
 *
 *     y = fold(W^T x) + b
 *
 * that is, each element of x adds a window of weights, times itself, to the result (ng_fold). Here
 * `shape` is that of the convolution: its channels are O, its outputs C. */
#include "ops/conv.h"

/* ---- Gradient and definition -------------------------------------------------------------- */

/* dx is a convolution of dy, dweight its gradient to the weight. */
static void transposed_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const ng_conv_shape *shape = node->attributes;
    ng_tensor *x = node->inputs[0], *weight = node->inputs[1];
    if (ng_wants(dx, 0)) dx[0] = ng_convolution(tape, ng_conv_call_of(dy, weight, shape));
    if (ng_wants(dx, 1)) dx[1] = ng_conv2d_dweight(tape, dy, x, shape);
}

/* Matrices (groups, K, C / groups) x (N, groups, C / groups, H W) -> (N, groups, K, H W) */
static ng_tensor *transposed_definition(ng_tape *tape, const ng_node *node)
{
    const ng_conv_shape *s = node->attributes;
    const ng_windows *w = &s->windows;
    const int64_t groups = s->groups, places = w->out[0] * w->out[1];
    const int64_t k = s->channels / groups * w->kernel[0] * w->kernel[1];
    ng_tensor *x =
        ng_reshape(tape, node->inputs[0], NG_SHAPE(s->images, groups, s->outputs / groups, places));
    ng_tensor *weight = ng_reshape(tape, node->inputs[1], NG_SHAPE(groups, s->outputs / groups, k));
    ng_tensor *columns = ng_matmul(tape, weight, x, .transpose_a = true);
    columns = ng_reshape(tape, columns, NG_SHAPE(s->images, groups * k, places));
    return ng_fold_with(tape, columns, w->size[0], w->size[1], ng_window_of(w));
}

static const ng_op transposed_op = {.name = "conv_transpose2d",
                                    .gradient = transposed_gradient,
                                    .definition = transposed_definition};

/* ---- Shape rule --------------------------------------------------------------------------- */

bool ng_output_padding_ok(const char *function, int64_t output_padding, int64_t stride)
{
    if (output_padding >= 0 && output_padding < stride) return true;
    ng_fail(NG_EVALUE, "%s: output_padding is %lld, expected 0 to stride - 1 = %lld", function,
            (long long)output_padding, (long long)stride - 1);
    return false;
}

/* (n - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1 along one axis. */
static bool length_of(const ng_conv_call *call, const ng_windows *w, int axis, int64_t *length)
{
    const ng_shape x = call->x->shape;
    const int64_t n = call->axes == 2 ? x.dim[2 + axis] : axis == 0 ? 1 : x.dim[2];
    const int64_t more = call->output_padding[axis], stride = w->stride[axis];
    const int64_t reach = w->dilation[axis] * (w->kernel[axis] - 1) + 1;
    if (!ng_output_padding_ok(call->function, more, stride)) return false;
    if (ng_shape_size(call->function, NG_SHAPE(n, stride)) < 0) return false;
    *length = n == 0 ? 0 : (n - 1) * stride - 2 * w->padding[axis] + reach + more;
    if (*length > 0) return true;
    ng_fail(NG_ESHAPE, "%s: x is %s, whose result has %lld %s, expected at least one",
            call->function, ng_shape_print(x).text, (long long)*length,
            call->axes == 1 ? "places"
            : axis == 0     ? "rows"
                            : "columns");
    return false;
}

/* *shape as the kernels see it; false with an error. */
static bool shape_of(const ng_conv_call *call, ng_conv_shape *shape)
{
    const ng_shape x = call->x->shape, weight = call->weight->shape;
    int64_t size[2];
    ng_windows settings;
    if (!ng_window_settings(call->function, &call->window, &settings) ||
        !length_of(call, &settings, 0, &size[0]) || !length_of(call, &settings, 1, &size[1]))
        return false;
    *shape = (ng_conv_shape){.images = x.dim[0],
                             .channels = weight.dim[1] * call->groups,
                             .outputs = x.dim[1],
                             .groups = call->groups};
    const ng_shape y = NG_SHAPE(shape->images, shape->channels, size[0], size[1]);
    if (ng_shape_size(call->function, y) < 0 ||
        !ng_windows_of(call->function, y, &call->window, &shape->windows))
        return false;
    shape->windows.planes = shape->channels;
    return true;
}

/* ---- Forward ------------------------------------------------------------------------------ */

ng_tensor *ng_transposed_convolution(ng_tape *tape, ng_conv_call call)
{
    ng_conv_shape shape;
    if (!ng_conv_accepts(tape, &call, 1) || !shape_of(&call, &shape)) return NULL;
    const ng_windows *w = &shape.windows;
    const ng_dtype dtype = call.x->dtype;
    ng_tensor *const inputs[] = {ng_conv_as_images(tape, call.x, &call),
                                 ng_conv_as_images(tape, call.weight, &call)};
    if (!inputs[0] || !inputs[1]) return NULL;
    ng_tensor *y =
        ng_result(tape, dtype, NG_SHAPE(shape.images, shape.channels, w->size[0], w->size[1]));
    void *scratch = y ? ng_tape_memory(tape, (size_t)ng_conv_scratch(dtype, &shape, true)) : NULL;
    if (!scratch) return NULL;
    ng_conv_backward(dtype, &shape, NULL, inputs[1]->data, inputs[0]->data,
                     (ng_conv_gradients){.dx.data = y->data}, scratch);
    y = ng_record_own(tape, &transposed_op, y, inputs, 2, &shape, sizeof shape);
    if (!ng_is_none(call.bias))
        y = ng_add(tape, y, ng_reshape(tape, call.bias, NG_SHAPE(shape.channels, 1, 1)));
    return ng_conv_as_given(tape, y, &call);
}

ng_tensor *ng_conv_transpose2d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                    ng_conv_transpose2d_options options)
{
    const ng_conv_transpose2d_options *o = &options;
    const int64_t more_h = o->output_padding_h, more_w = o->output_padding_w;
    return ng_transposed_convolution(
        tape, (ng_conv_call){.function = "ng_conv_transpose2d",
                             .x = x,
                             .weight = weight,
                             .bias = o->bias,
                             .axes = 2,
                             .groups = o->groups,
                             .window = NG_CONV_WINDOW(*o),
                             .output_padding = {more_h ? more_h : o->output_padding,
                                                more_w ? more_w : o->output_padding}});
}

ng_tensor *ng_conv_transpose1d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight,
                                    ng_conv_transpose1d_options options)
{
    return ng_transposed_convolution(tape,
                                     (ng_conv_call){.function = "ng_conv_transpose1d",
                                                    .x = x,
                                                    .weight = weight,
                                                    .bias = options.bias,
                                                    .axes = 1,
                                                    .groups = options.groups,
                                                    .window = NG_CONV_LINE(options),
                                                    .output_padding = {0, options.output_padding}});
}
