/* Conv2d: y = weight * x + bias over images (N, in, H, W). */
#include "nn/module.h"
#include "nn/window.h"
#include <math.h>

typedef struct {
    ng_module base;
    int64_t in, out;
    ng_conv2d_new_options options; /* with both lengths of the kernel */
    ng_tensor *weight;             /* (out, in / groups, kernel_h, kernel_w) */
    ng_tensor *bias;               /* (out), or NG_NONE */
} conv2d;

static ng_tensor *conv2d_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const conv2d *layer = (const conv2d *)self;
    const ng_conv2d_new_options *o = &layer->options;
    if (ng_rank(x) == 4 && ng_dim(x, 1) != layer->in) {
        ng_fail(NG_ESHAPE, "Conv2d: x is %s, expected (N, %lld, H, W)",
                ng_shape_print(x->shape).text, (long long)layer->in);
        return NULL;
    }
    return ng_conv2d(tape, x, ng_stand_in(tape, layer->weight), ng_stand_in(tape, layer->bias),
                     .stride = o->stride, .padding = o->padding, .dilation = o->dilation,
                     .groups = o->groups, .stride_h = o->stride_h, .stride_w = o->stride_w,
                     .padding_h = o->padding_h, .padding_w = o->padding_w,
                     .dilation_h = o->dilation_h, .dilation_w = o->dilation_w);
}

static void conv2d_init(ng_module *self, ng_rng *rng)
{
    conv2d *layer = (conv2d *)self;
    const ng_conv2d_new_options *o = &layer->options;
    ng_init(layer->weight, NG_INIT_DEFAULT, 0, rng);
    if (o->no_bias) return;
    const double fan_in =
        (double)(layer->in / o->groups) * (double)o->kernel_h * (double)o->kernel_w;
    ng_fill_uniform(layer->bias, -1 / sqrt(fan_in), 1 / sqrt(fan_in), rng);
}

static ng_window_options window_of(const ng_conv2d_new_options *o)
{
    return (ng_window_options){.kernel = o->kernel,
                               .stride = o->stride,
                               .padding = o->padding,
                               .dilation = o->dilation,
                               .kernel_h = o->kernel_h,
                               .kernel_w = o->kernel_w,
                               .stride_h = o->stride_h,
                               .stride_w = o->stride_w,
                               .padding_h = o->padding_h,
                               .padding_w = o->padding_w,
                               .dilation_h = o->dilation_h,
                               .dilation_w = o->dilation_w};
}

static void conv2d_describe(const ng_module *self, char *text, size_t bytes)
{
    const conv2d *layer = (const conv2d *)self;
    const ng_conv2d_new_options *o = &layer->options;
    char groups[32] = "";
    if (o->groups > 1) snprintf(groups, sizeof groups, ", groups=%lld", (long long)o->groups);
    const ng_window_options window = window_of(o);
    snprintf(text, bytes, "%lld, %lld, %s%s%s", (long long)layer->in, (long long)layer->out,
             ng_window_text(&window).text, groups, o->no_bias ? ", no bias" : "");
}

static const ng_module_class conv2d_class = {.name = "Conv2d",
                                             .size = sizeof(conv2d),
                                             .forward = conv2d_forward,
                                             .init = conv2d_init,
                                             .describe = conv2d_describe};

static bool options_accepted(int64_t in, int64_t out, const ng_conv2d_new_options *o)
{
    static const char name[] = "ng_conv2d_new";
    const ng_window_options window = window_of(o);
    if (!ng_option_positive(name, "in", in, "channels") ||
        !ng_option_positive(name, "out", out, "channels") ||
        !ng_option_positive(name, "groups", o->groups, "groups") ||
        !ng_window_accepted(name, &window))
        return false;
    if (in % o->groups == 0 && out % o->groups == 0) return true;
    ng_fail(NG_EVALUE, "%s: groups is %lld, expected a divisor of in = %lld and out = %lld", name,
            (long long)o->groups, (long long)in, (long long)out);
    return false;
}

ng_module *ng_conv2d_new_with(int64_t in, int64_t out, ng_conv2d_new_options options)
{
    if (options.groups == 0) options.groups = 1;
    if (!options_accepted(in, out, &options)) return NULL;
    if (options.kernel_h == 0) options.kernel_h = options.kernel;
    if (options.kernel_w == 0) options.kernel_w = options.kernel;

    conv2d *self = (conv2d *)ng_module_new(&conv2d_class);
    if (!self) return NULL;
    self->in = in;
    self->out = out;
    self->options = options;
    self->weight = ng_module_add_parameter(
        &self->base, "weight",
        NG_SHAPE(out, in / options.groups, options.kernel_h, options.kernel_w));
    self->bias =
        ng_module_add_parameter(&self->base, "bias", NG_SHAPE(out), .left_out = options.no_bias);
    return ng_module_built(&self->base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

static ng_module *case_conv2d(void) { return ng_conv2d_new(2, 3, 2); }
static ng_module *case_conv2d_no_bias(void)
{
    return ng_conv2d_new(2, 3, 1, .stride = 2, .no_bias = true);
}
static ng_module *case_conv2d_all(void)
{
    return ng_conv2d_new(2, 4, 3, .kernel_w = 2, .stride_w = 2, .padding = 1, .dilation_w = 2,
                         .groups = 2);
}

const ng_case ng_layer_cases_conv2d[] = {
    {.name = "Conv2d", .module = case_conv2d, .inputs = {NG_CASE_ANY("x", 2, 2, 3, 3)}},
    {.name = "Conv2d (no bias)",
     .module = case_conv2d_no_bias,
     .inputs = {NG_CASE_ANY("x", 2, 2, 3, 3)}},
    {.name = "Conv2d (stride, padding, dilation, groups)",
     .module = case_conv2d_all,
     .inputs = {NG_CASE_ANY("x", 1, 2, 3, 4)}},
};
const int ng_layer_cases_conv2d_count = NG_CASE_COUNT(ng_layer_cases_conv2d);
