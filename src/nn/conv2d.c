/* Convolutions: y = weight * x + bias over images (N, in, H, W) and lines (N, in, L); transposed
 * ones. */
#include "nn/fold.h"
#include "nn/window.h"
#include "ops/conv.h"
#include <math.h>

typedef struct {
    ng_module_class base;
    const char *maker; /* the constructor, for messages */
    const char *op;    /* what it calls, likewise */
    int axes;          /* 2 of images, 1 of lines */
    bool transposed;
} conv_class;

typedef struct {
    ng_module base;
    int64_t in, out, groups;
    ng_window_options window;  /* with both lengths of the kernel */
    int64_t output_padding[2]; /* of rows and columns, or of lines the second */
    bool no_bias;
    ng_tensor *weight; /* (out, in / groups, kernel...), or transposed (in, out / groups, ...) */
    ng_tensor *bias;   /* (out), or NG_NONE */
} conv;

/* ---- Forward ------------------------------------------------------------------------------- */

static ng_tensor *conv_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const conv *layer = (const conv *)self;
    const conv_class *type = (const conv_class *)self->type;
    const bool images = type->axes == 2;
    if (x->shape.rank != type->axes + 2 || x->shape.dim[1] != layer->in) {
        ng_fail(NG_ESHAPE, "%s: x is %s, expected (N, %lld, %s)", self->type->name,
                ng_shape_print(x->shape).text, (long long)layer->in,
                images ? "height, width" : "length");
        return NULL;
    }
    const ng_conv_call call = {
        .function = type->op,
        .x = x,
        .weight = ng_parameter_value(tape, layer->weight),
        .bias = ng_parameter_value(tape, layer->bias),
        .axes = type->axes,
        .groups = layer->groups,
        .window = images ? layer->window : (ng_window_options)NG_CONV_LINE(layer->window),
        .output_padding = {images ? layer->output_padding[0] : 0, layer->output_padding[1]}};
    return type->transposed ? ng_transposed_convolution(tape, call) : ng_convolution(tape, call);
}

/* ---- Weights, settings ---------------------------------------------------------------------- */

static void conv_init(ng_module *self, ng_rng *rng)
{
    conv *layer = (conv *)self;
    ng_fill_init(layer->weight, NG_INIT_DEFAULT, 0, rng);
    if (layer->no_bias) return;
    const double fan_in = (double)ng_shape_span(layer->weight->shape, 1, layer->weight->shape.rank);
    ng_fill_uniform(layer->bias, -1 / sqrt(fan_in), 1 / sqrt(fan_in), rng);
}

#define CONV_CLASS(label, op_name, length, is_transposed)                                          \
    {                                                                                              \
        {.name = label, .size = sizeof(conv), .forward = conv_forward, .init = conv_init},         \
            op_name "_new", op_name, length, is_transposed                                         \
    }

static const conv_class conv2d_class = CONV_CLASS("Conv2d", "ng_conv2d", 2, false);
static const conv_class conv1d_class = CONV_CLASS("Conv1d", "ng_conv1d", 1, false);
static const conv_class transposed2d_class =
    CONV_CLASS("ConvTranspose2d", "ng_conv_transpose2d", 2, true);
static const conv_class transposed1d_class =
    CONV_CLASS("ConvTranspose1d", "ng_conv_transpose1d", 1, true);

bool ng_conv_part(ng_module *module, ng_fold_part *part)
{
    conv *layer = (conv *)module;
    if (module->type != &conv2d_class.base && module->type != &conv1d_class.base) return false;
    *part = (ng_fold_part){.weight = &layer->weight,
                           .bias = &layer->bias,
                           .left_out = &layer->no_bias,
                           .features = layer->out};
    return true;
}

/* ---- Constructors --------------------------------------------------------------------------- */

/* "1", "0 x 1"; nothing where both are 0. */
static void print_output_padding(const void *member, char *text, size_t bytes)
{
    const int64_t *padding = member;
    const long long rows = padding[0], columns = padding[1];
    if (rows != columns)
        snprintf(text, bytes, "%lld x %lld", rows, columns);
    else if (rows > 0)
        snprintf(text, bytes, "%lld", rows);
}

static const ng_setting conv_settings[] = {
    {NG_MEMBER(conv, in), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_MEMBER(conv, out), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_MEMBER(conv, window), NG_IS_OTHER, .print = ng_print_window, .bare = true},
    {NG_MEMBER(conv, output_padding), NG_IS_OTHER, .print = print_output_padding},
    {NG_MEMBER(conv, groups), NG_IS_COUNT, .standard = 1, .unit = "groups", .divides = "in out",
     .quiet = true},
    {NG_MEMBER(conv, no_bias), NG_IS_FLAG},
    {0}};

/* A layer like `prototype`, whose base is not set. */
static ng_module *conv_create(const conv_class *type, conv prototype)
{
    ng_windows settings;
    ng_window_options *w = &prototype.window;
    if (!ng_window_settings(type->maker, w, &settings)) return NULL;
    for (int axis = 0; axis < 2; axis++)
        if (!ng_output_padding_ok(type->maker, prototype.output_padding[axis],
                                  settings.stride[axis]))
            return NULL;
    if (w->kernel_h == 0) w->kernel_h = w->kernel;
    if (w->kernel_w == 0) w->kernel_w = w->kernel;
    conv *self = ng_layer_new(type->maker, &type->base, conv_settings, &prototype);
    if (!self) return NULL;
    const int64_t first = type->transposed ? prototype.in : prototype.out;
    const int64_t second = (type->transposed ? prototype.out : prototype.in) / prototype.groups;
    const ng_shape shape = type->axes == 2 ? NG_SHAPE(first, second, w->kernel_h, w->kernel_w)
                                           : NG_SHAPE(first, second, w->kernel);
    self->weight = ng_module_add_parameter(&self->base, "weight", shape);
    self->bias = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(prototype.out),
                                         .left_out = prototype.no_bias);
    return ng_module_built(&self->base);
}

/* The window of an image, from the settings of these names. */
#define WINDOW_OF(o)                                                                               \
    {                                                                                              \
        .stride = (o).stride, .padding = (o).padding, .dilation = (o).dilation,                    \
        .kernel_h = (o).kernel_h, .kernel_w = (o).kernel_w, .stride_h = (o).stride_h,              \
        .stride_w = (o).stride_w, .padding_h = (o).padding_h, .padding_w = (o).padding_w,          \
        .dilation_h = (o).dilation_h, .dilation_w = (o).dilation_w, .kernel = (o).kernel           \
    }
#define LINE_OF(o)                                                                                 \
    {                                                                                              \
        .stride = (o).stride, .padding = (o).padding, .dilation = (o).dilation,                    \
        .kernel = (o).kernel                                                                       \
    }

ng_module *ng_conv2d_new_with(int64_t in, int64_t out, ng_conv2d_new_options options)
{
    return conv_create(&conv2d_class, (conv){.in = in,
                                             .out = out,
                                             .groups = options.groups,
                                             .window = WINDOW_OF(options),
                                             .no_bias = options.no_bias});
}

ng_module *ng_conv1d_new_with(int64_t in, int64_t out, ng_conv1d_new_options options)
{
    return conv_create(&conv1d_class, (conv){.in = in,
                                             .out = out,
                                             .groups = options.groups,
                                             .window = LINE_OF(options),
                                             .no_bias = options.no_bias});
}

ng_module *ng_conv_transpose2d_new_with(int64_t in, int64_t out,
                                        ng_conv_transpose2d_new_options options)
{
    const int64_t rows = options.output_padding_h, columns = options.output_padding_w;
    return conv_create(&transposed2d_class,
                       (conv){.in = in,
                              .out = out,
                              .groups = options.groups,
                              .window = WINDOW_OF(options),
                              .output_padding = {rows != 0 ? rows : options.output_padding,
                                                 columns != 0 ? columns : options.output_padding},
                              .no_bias = options.no_bias});
}

ng_module *ng_conv_transpose1d_new_with(int64_t in, int64_t out,
                                        ng_conv_transpose1d_new_options options)
{
    return conv_create(&transposed1d_class,
                       (conv){.in = in,
                              .out = out,
                              .groups = options.groups,
                              .window = LINE_OF(options),
                              .output_padding = {options.output_padding, options.output_padding},
                              .no_bias = options.no_bias});
}

#undef CONV_CLASS
#undef WINDOW_OF
#undef LINE_OF
