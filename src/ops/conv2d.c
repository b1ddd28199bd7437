/* Convolution of images: x (N, C, H, W), weight (O, C / groups, kernel_h, kernel_w), bias (O) ->
 * (N, O, OH, OW). Seen as a matrix product, for each image and each group of channels,
 *
 *     y = W columns(x) + b
 *
 * where a column holds what one window sees (ng_unfold). Lines (N, C, L) are images of one row.
 *
 * Convolution is linear in x and in W. With dy in the place of y there are three such products, and
 * the gradients of each are the other two:
 *
 *     y  = W columns(x)                            conv2d
 *     dx = fold(W^T dy)                            conv_transpose2d (conv_transpose.c)
 *     dW = sum over images of dy columns(x)^T      conv2d_dweight
 *
 * The definition takes the same time, but keeps the columns: 44 MB in place of 6.6 for a 3x3
 * window. */
#include "ops/conv.h"

/* ---- The gradient to the weight ------------------------------------------------------------ */

ng_conv_call ng_conv_call_of(ng_tensor *x, ng_tensor *weight, const ng_conv_shape *shape)
{
    return (ng_conv_call){.function = "conv2d",
                          .x = x,
                          .weight = weight,
                          .bias = NG_NONE,
                          .axes = 2,
                          .groups = shape->groups,
                          .window = ng_window_of(&shape->windows)};
}

/* dx of a convolution. Rows and columns at the end that no window reaches, because of the stride,
 * are output_padding of the transposed convolution. */
static ng_tensor *conv2d_dx(ng_tape *tape, ng_tensor *dy, ng_tensor *weight,
                            const ng_conv_shape *shape)
{
    const ng_windows *w = &shape->windows;
    ng_conv_call call = ng_conv_call_of(dy, weight, shape);
    for (int i = 0; i < 2; i++)
        call.output_padding[i] = w->size[i] + 2 * w->padding[i] -
                                 w->dilation[i] * (w->kernel[i] - 1) - 1 -
                                 (w->out[i] - 1) * w->stride[i];
    return ng_transposed_convolution(tape, call);
}

/* The gradients of the weight's gradient; its cotangent u has the weight's shape. */
static void dweight_gradient(ng_tape *tape, const ng_node *node, ng_tensor *u, ng_tensor **dx)
{
    const ng_conv_shape *shape = node->attributes;
    ng_tensor *x = node->inputs[0], *dy = node->inputs[1];
    if (ng_wants(dx, 0)) dx[0] = conv2d_dx(tape, dy, u, shape);
    if (ng_wants(dx, 1)) dx[1] = ng_convolution(tape, ng_conv_call_of(x, u, shape));
}

static const ng_op dweight_op = {.name = "conv2d_dweight", .gradient = dweight_gradient};

ng_tensor *ng_conv2d_dweight(ng_tape *tape, ng_tensor *x, ng_tensor *dy, const ng_conv_shape *shape)
{
    ng_tensor *const inputs[] = {x, dy};
    if (!ng_accepts("conv2d_dweight", tape, 2, inputs)) return NULL;
    const ng_shape weight = NG_SHAPE(shape->outputs, shape->channels / shape->groups,
                                     shape->windows.kernel[0], shape->windows.kernel[1]);
    ng_tensor *dweight = ng_result(tape, x->dtype, weight);
    void *scratch =
        dweight ? ng_tape_memory(tape, (size_t)ng_conv_scratch(x->dtype, shape, true)) : NULL;
    if (!scratch) return NULL;
    ng_conv_backward(x->dtype, shape, x->data, NULL, dy->data,
                     (ng_conv_gradients){.dweight.data = dweight->data}, scratch);
    return ng_record_own(tape, &dweight_op, dweight, inputs, 2, shape, sizeof *shape);
}

/* ---- Gradient and definition -------------------------------------------------------------- */

static ng_status conv2d_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                 ng_slot *dx)
{
    const ng_conv_shape *shape = node->attributes;
    void *scratch = ng_tape_memory(tape, (size_t)ng_conv_scratch(dy->dtype, shape, true));
    if (!scratch) return NG_ENOMEM;
    ng_conv_backward(dy->dtype, shape, node->inputs[0]->data, node->inputs[1]->data, dy->data,
                     (ng_conv_gradients){dx[0], dx[1], dx[2]}, scratch);
    return NG_OK;
}

/* Matrices (groups, O / groups, K) x (N, groups, K, OH OW) -> (N, groups, O / groups, OH OW) */
static ng_tensor *conv2d_definition(ng_tape *tape, const ng_node *node)
{
    const ng_conv_shape *s = node->attributes;
    const ng_windows *w = &s->windows;
    ng_tensor *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2];
    const int64_t groups = s->groups;
    const int64_t k = s->channels / groups * w->kernel[0] * w->kernel[1];
    ng_tensor *columns = ng_unfold_with(tape, x, ng_window_of(w));
    columns = ng_reshape(tape, columns, NG_SHAPE(s->images, groups, k, w->out[0] * w->out[1]));
    ng_tensor *matrices = ng_reshape(tape, weight, NG_SHAPE(groups, s->outputs / groups, k));
    ng_tensor *y = ng_reshape(tape, ng_matmul(tape, matrices, columns), node->output->shape);
    if (ng_is_none(bias)) return y;
    return ng_add(tape, y, ng_reshape(tape, bias, NG_SHAPE(s->outputs, 1, 1)));
}

static const ng_op conv2d_op = {
    .name = "conv2d", .backward = conv2d_backward, .definition = conv2d_definition};

/* ---- Shape rule, also of the transposed ---------------------------------------------------- */

static bool is_of_rank(const ng_conv_call *call)
{
    return call->axes == 2 ? ng_is_image(call->function, call->x)
                           : ng_is_line(call->function, call->x);
}

/* `outputs` is the axis of weight that counts the channels of the result. */
static bool weight_fits(const ng_conv_call *call, int outputs)
{
    const ng_shape x = call->x->shape, weight = call->weight->shape;
    const long long groups = call->groups, channels = x.dim[1];
    if (weight.rank != x.rank || ng_shape_span(weight, 0, weight.rank) == 0) {
        ng_fail(NG_ESHAPE, "%s: weight is %s, expected (%s, %s)", call->function,
                ng_shape_print(weight).text, outputs == 0 ? "O, C / groups" : "C, O / groups",
                call->axes == 2 ? "kernel_h, kernel_w" : "kernel");
        return false;
    }
    if (groups < 1 || channels % groups != 0 || weight.dim[0] % groups != 0) {
        ng_fail(NG_EVALUE, "%s: %lld groups, expected a divisor of %lld channels and %lld %s",
                call->function, groups, channels, (long long)weight.dim[0],
                outputs == 0 ? "outputs" : "rows of weight");
        return false;
    }
    const long long inputs = outputs == 0 ? channels / groups : channels;
    if (weight.dim[1 - outputs] == inputs) return true;
    ng_fail(NG_ESHAPE, "%s: x is %s and weight %s, expected weight (%s%lld, ...)", call->function,
            ng_shape_print(x).text, ng_shape_print(weight).text, outputs == 0 ? "O, " : "", inputs);
    return false;
}

static bool bias_fits(const ng_conv_call *call, int outputs)
{
    const ng_shape weight = call->weight->shape;
    const ng_shape expected = NG_SHAPE(weight.dim[outputs] * (outputs == 0 ? 1 : call->groups));
    return ng_has_shape(call->function, "bias", call->bias, expected);
}

bool ng_conv_accepts(ng_tape *tape, ng_conv_call *call, int outputs)
{
    ng_tensor *const inputs[] = {call->x, call->weight, call->bias};
    const char *function = call->function;
    static const char *const names[] = {"x", "weight", "bias"};
    if (!ng_accepts_optional(function, tape, 2, 3, inputs, names) || !is_of_rank(call))
        return false;
    if (call->groups == 0) call->groups = 1;
    if (!weight_fits(call, outputs) || !bias_fits(call, outputs)) return false;
    const ng_shape weight = call->weight->shape;
    call->window.kernel_h = call->axes == 2 ? weight.dim[2] : 1;
    call->window.kernel_w = weight.dim[weight.rank - 1];
    return true;
}

ng_tensor *ng_conv_as_images(ng_tape *tape, ng_tensor *x, const ng_conv_call *call)
{
    return call->axes == 2 ? x : ng_unsqueeze(tape, x, 2);
}

ng_tensor *ng_conv_as_given(ng_tape *tape, ng_tensor *y, const ng_conv_call *call)
{
    return call->axes == 2 ? y : ng_squeeze(tape, y, 2);
}

/* ---- Forward ------------------------------------------------------------------------------ */

ng_tensor *ng_convolution(ng_tape *tape, ng_conv_call call)
{
    ng_conv_shape shape;
    if (!ng_conv_accepts(tape, &call, 0) ||
        !ng_windows_of(call.function, call.x->shape, &call.window, &shape.windows))
        return NULL;
    const ng_windows *w = &shape.windows;
    shape.images = call.x->shape.dim[0], shape.channels = call.x->shape.dim[1];
    shape.outputs = call.weight->shape.dim[0], shape.groups = call.groups;
    shape.windows.planes = shape.channels;
    ng_tensor *const inputs[] = {ng_conv_as_images(tape, call.x, &call),
                                 ng_conv_as_images(tape, call.weight, &call), call.bias};
    const ng_dtype dtype = call.x->dtype;
    if (!inputs[0] || !inputs[1]) return NULL;
    ng_tensor *y =
        ng_result(tape, dtype, NG_SHAPE(shape.images, shape.outputs, w->out[0], w->out[1]));
    void *scratch = y ? ng_tape_memory(tape, (size_t)ng_conv_scratch(dtype, &shape, false)) : NULL;
    if (!scratch) return NULL;
    ng_conv(dtype, &shape, inputs[0]->data, inputs[1]->data, call.bias->data, y->data, scratch);
    y = ng_record_own(tape, &conv2d_op, y, inputs, 3, &shape, sizeof shape);
    return ng_conv_as_given(tape, y, &call);
}

ng_tensor *ng_conv2d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight, ng_conv2d_options options)
{
    const ng_conv2d_options *o = &options;
    return ng_convolution(tape, (ng_conv_call){.function = "ng_conv2d",
                                               .x = x,
                                               .weight = weight,
                                               .bias = o->bias,
                                               .axes = 2,
                                               .groups = o->groups,
                                               .window = NG_CONV_WINDOW(*o)});
}

ng_tensor *ng_conv1d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight, ng_conv1d_options options)
{
    return ng_convolution(tape, (ng_conv_call){.function = "ng_conv1d",
                                               .x = x,
                                               .weight = weight,
                                               .bias = options.bias,
                                               .axes = 1,
                                               .groups = options.groups,
                                               .window = NG_CONV_LINE(options)});
}
