/* Convolution of images: x (N, C, H, W), weight (O, C / groups, kernel_h, kernel_w), bias (O) ->
 * (N, O, OH, OW). Seen as a matrix product, for each image and each group of channels,
 *
 *     y = W columns(x) + b
 *
 * where a column holds what one window sees (ng_unfold). */
#include "ops/op.h"

/* ---- Gradient and definition -------------------------------------------------------------- */

/* dx = fold(W^T dy), dW = sum over images of dy columns(x)^T, db = sum of dy */
static ng_status conv2d_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                 ng_slot *dx)
{
    const ng_conv_shape *shape = node->attributes;
    void *scratch = ng_tape_memory(tape, (size_t)ng_conv_scratch(dy->dtype, shape, true));
    if (!scratch) return NG_ENOMEM;
    const ng_conv_gradients gradients = {dx[0].data,       dx[1].data,       dx[2].data,
                                         dx[0].accumulate, dx[1].accumulate, dx[2].accumulate};
    ng_conv_backward(dy->dtype, shape, node->inputs[0]->data, node->inputs[1]->data, dy->data,
                     gradients, scratch);
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

/* ---- Shape rule --------------------------------------------------------------------------- */

static bool operands_given(const ng_tensor *x, const ng_tensor *weight, const ng_tensor *bias)
{
    static const char function[] = "ng_conv2d";
    return ng_given(function, "x", x) && ng_given(function, "weight", weight) &&
           ng_norm_given(function, "bias", bias);
}

static bool weight_fits(const ng_tensor *x, const ng_tensor *w, const ng_tensor *bias,
                        int64_t groups)
{
    const ng_shape shape = x->shape, weight = w->shape;
    const int64_t channels = shape.dim[1];
    if (weight.rank != 4 || ng_shape_span(weight, 0, 4) == 0) {
        ng_fail(NG_ESHAPE, "ng_conv2d: weight is %s, expected (O, C / groups, kernel_h, kernel_w)",
                ng_shape_print(weight).text);
        return false;
    }
    if (groups < 1 || channels % groups != 0 || weight.dim[0] % groups != 0) {
        ng_fail(NG_EVALUE,
                "ng_conv2d: %lld groups, expected a divisor of %lld channels and %lld outputs",
                (long long)groups, (long long)channels, (long long)weight.dim[0]);
        return false;
    }
    if (weight.dim[1] != channels / groups) {
        ng_fail(NG_ESHAPE, "ng_conv2d: x is %s and weight %s, expected weight (O, %lld, ...)",
                ng_shape_print(shape).text, ng_shape_print(weight).text,
                (long long)(channels / groups));
        return false;
    }
    const ng_shape expected = NG_SHAPE(weight.dim[0]);
    if (ng_is_none(bias) || ng_shape_equal(bias->shape, expected)) return true;
    ng_fail(NG_ESHAPE, "ng_conv2d: bias is %s and weight %s, expected bias %s",
            ng_shape_print(bias->shape).text, ng_shape_print(weight).text,
            ng_shape_print(expected).text);
    return false;
}

static bool shape_of(const ng_tensor *x, const ng_tensor *w, const ng_conv2d_options *o,
                     ng_conv_shape *s)
{
    const ng_shape weight = w->shape;
    *s = (ng_conv_shape){.images = x->shape.dim[0],
                         .channels = x->shape.dim[1],
                         .outputs = weight.dim[0],
                         .groups = o->groups == 0 ? 1 : o->groups};
    const ng_window_options window = {.kernel_h = weight.dim[2],
                                      .kernel_w = weight.dim[3],
                                      .stride = o->stride,
                                      .stride_h = o->stride_h,
                                      .stride_w = o->stride_w,
                                      .padding = o->padding,
                                      .padding_h = o->padding_h,
                                      .padding_w = o->padding_w,
                                      .dilation = o->dilation,
                                      .dilation_h = o->dilation_h,
                                      .dilation_w = o->dilation_w};
    if (!weight_fits(x, w, o->bias, s->groups) ||
        !ng_windows_of("ng_conv2d", x->shape, &window, &s->windows))
        return false;
    s->windows.planes = s->channels;
    return true;
}

/* ---- Forward ------------------------------------------------------------------------------ */

ng_tensor *ng_conv2d_with(ng_tape *tape, ng_tensor *x, ng_tensor *weight, ng_conv2d_options options)
{
    ng_tensor *const inputs[] = {x, weight, options.bias};
    ng_conv_shape shape;
    if (!operands_given(x, weight, options.bias) || !ng_accepts("ng_conv2d", tape, 2, inputs) ||
        !ng_accepts_optional("ng_conv2d", tape, 3, inputs) || !ng_is_image("ng_conv2d", x->shape) ||
        !shape_of(x, weight, &options, &shape))
        return NULL;
    const ng_windows *w = &shape.windows;
    ng_tensor *y =
        ng_result(tape, x->dtype, NG_SHAPE(shape.images, shape.outputs, w->out[0], w->out[1]));
    void *scratch =
        y ? ng_tape_memory(tape, (size_t)ng_conv_scratch(x->dtype, &shape, false)) : NULL;
    if (!scratch) return NULL;
    ng_conv(x->dtype, &shape, x->data, weight->data, options.bias->data, y->data, scratch);
    return ng_record(tape, &conv2d_op, y, inputs, 3, &shape, sizeof shape);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_CALL(case_conv, ng_conv2d(tape, in[0], in[1], in[2]))
NG_CASE_CALL(case_conv_no_bias, ng_conv2d(tape, in[0], in[1], NG_NONE))
NG_CASE_CALL(case_conv_same, ng_conv2d(tape, in[0], in[1], in[2], .padding = 1))
NG_CASE_CALL(case_conv_stride, ng_conv2d(tape, in[0], in[1], in[2], .stride = 2, .padding = 1))
NG_CASE_CALL(case_conv_dilation,
             ng_conv2d(tape, in[0], in[1], in[2], .dilation = 2, .padding_h = 1))
NG_CASE_CALL(case_conv_groups, ng_conv2d(tape, in[0], in[1], in[2], .padding_w = 1, .groups = 2))
NG_CASE_CALL(case_conv_all, ng_conv2d(tape, in[0], in[1], in[2], .stride_w = 2, .padding = 2,
                                      .padding_w = 1, .dilation_h = 2, .groups = 2))

#define CASE(text, function, bias, x_shape, weight_shape)                                          \
    {                                                                                              \
        .name = text, .call = function,                                                            \
        .inputs = {{.name = "x", .shape = x_shape},                                                \
                   {.name = "weight", .shape = weight_shape},                                      \
                   {.name = bias, .shape = NG_CASE_SHAPE(2)}},                                     \
    }

const ng_case ng_op_cases_conv2d[] = {
    CASE("conv2d", case_conv, "bias", NG_CASE_SHAPE(2, 2, 3, 4), NG_CASE_SHAPE(2, 2, 2, 3)),
    CASE("conv2d (no bias)", case_conv_no_bias, NULL, NG_CASE_SHAPE(2, 1, 3, 3),
         NG_CASE_SHAPE(2, 1, 2, 2)),
    CASE("conv2d (1 x 1)", case_conv, "bias", NG_CASE_SHAPE(2, 3, 2, 2), NG_CASE_SHAPE(2, 3, 1, 1)),
    CASE("conv2d (padding)", case_conv_same, "bias", NG_CASE_SHAPE(1, 2, 3, 4),
         NG_CASE_SHAPE(2, 2, 3, 3)),
    CASE("conv2d (stride)", case_conv_stride, "bias", NG_CASE_SHAPE(2, 1, 4, 5),
         NG_CASE_SHAPE(2, 1, 3, 3)),
    CASE("conv2d (dilation)", case_conv_dilation, "bias", NG_CASE_SHAPE(1, 2, 4, 4),
         NG_CASE_SHAPE(2, 2, 2, 2)),
    CASE("conv2d (groups)", case_conv_groups, "bias", NG_CASE_SHAPE(1, 4, 3, 3),
         NG_CASE_SHAPE(2, 2, 2, 2)),
    CASE("conv2d (depthwise)", case_conv_groups, "bias", NG_CASE_SHAPE(2, 2, 3, 3),
         NG_CASE_SHAPE(2, 1, 2, 2)),
    CASE("conv2d (stride, padding, dilation, groups)", case_conv_all, "bias",
         NG_CASE_SHAPE(1, 2, 3, 5), NG_CASE_SHAPE(2, 1, 2, 3)),
};
const int ng_op_cases_conv2d_count = NG_CASE_COUNT(ng_op_cases_conv2d);
