/* Feed-forward: y = f(x W_1^T + b_1) W_2^T + b_2 for each position; SwiGLU has a second first
 * layer, which multiplies: f = silu(a) b, [a, b] = x W_1^T + b_1. Shazeer 2020. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_feed_forward_new_options options;
    ng_tensor *in_weight, *in_bias;   /* (hidden, dim), or (2 hidden, dim) for SwiGLU */
    ng_tensor *out_weight, *out_bias; /* (dim, hidden) */
} feed_forward;

static ng_tensor *activate(ng_tape *tape, ng_tensor *x, ng_feed_forward_activation activation)
{
    switch (activation) {
    case NG_FEED_FORWARD_GELU: return ng_gelu(tape, x);
    case NG_FEED_FORWARD_GELU_TANH: return ng_gelu_tanh(tape, x);
    case NG_FEED_FORWARD_RELU: return ng_relu(tape, x);
    case NG_FEED_FORWARD_SWIGLU: break;
    }
    return ng_swiglu(tape, x);
}

static ng_tensor *feed_forward_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const feed_forward *layer = (const feed_forward *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    ng_tensor *inner = ng_linear(tape, x, ng_parameter_value(tape, layer->in_weight),
                                 ng_parameter_value(tape, layer->in_bias));
    ng_tensor *active = activate(tape, inner, layer->options.activation);
    return ng_linear(tape, active, ng_parameter_value(tape, layer->out_weight),
                     ng_parameter_value(tape, layer->out_bias));
}

static void feed_forward_init(ng_module *self, ng_rng *rng)
{
    feed_forward *layer = (feed_forward *)self;
    const ng_feed_forward_new_options *o = &layer->options;
    const double deviation = o->gain * sqrt(2 / (double)(o->dim + o->hidden));
    ng_fill_normal(layer->in_weight, 0, deviation, rng);
    ng_fill_normal(layer->out_weight, 0, deviation, rng);
}

static const ng_module_class feed_forward_class = {.name = "FeedForward",
                                                   .size = sizeof(feed_forward),
                                                   .forward = feed_forward_forward,
                                                   .init = feed_forward_init};

static const char *const activation_names[] = {"GELU", "GELUTanh", "ReLU", "SwiGLU", NULL};
static const ng_setting feed_forward_settings[] = {
    {NG_OPTION(feed_forward, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(feed_forward, hidden), NG_IS_COUNT, .unit = "features"},
    {NG_OPTION(feed_forward, activation), NG_IS_CHOICE, .unit = "ng_feed_forward_activation",
     .choices = activation_names, .bare = true},
    {NG_OPTION(feed_forward, no_bias), NG_IS_FLAG},
    {NG_OPTION(feed_forward, gain), NG_IS_NOT_NEGATIVE, .standard = 1, .quiet = true},
    {0}};

ng_module *ng_feed_forward_new_with(ng_feed_forward_new_options options)
{
    const bool gated = options.activation == NG_FEED_FORWARD_SWIGLU;
    if (options.hidden == 0 && options.dim > 0 && options.dim <= NG_OPTION_MOST)
        options.hidden = gated ? (8 * options.dim + 2) / 3 : 4 * options.dim;
    feed_forward *self = ng_layer_new("ng_feed_forward_new", &feed_forward_class,
                                      feed_forward_settings, &(feed_forward){.options = options});
    if (!self) return NULL;
    ng_module *base = &self->base;
    const int64_t dim = options.dim, hidden = options.hidden, first = gated ? 2 * hidden : hidden;
    self->in_weight = ng_module_add_parameter(base, "in_weight", NG_SHAPE(first, dim));
    self->in_bias =
        ng_module_add_parameter(base, "in_bias", NG_SHAPE(first), .left_out = options.no_bias);
    self->out_weight = ng_module_add_parameter(base, "out_weight", NG_SHAPE(dim, hidden));
    self->out_bias =
        ng_module_add_parameter(base, "out_bias", NG_SHAPE(dim), .left_out = options.no_bias);
    return ng_module_built(base);
}
