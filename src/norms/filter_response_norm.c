/* Filter response normalization, y = gamma x / sqrt(mean(x^2) + eps) + beta over the positions of a
 * channel, and the thresholded linear unit, max(y, tau). */
#include "nn/module.h"
#include "ops/norm.h"

typedef struct {
    ng_module base;
    ng_filter_response_norm_new_options options;
    ng_tensor *gamma, *beta; /* (channels) */
    ng_tensor *tau;          /* (channels), or NG_NONE */
    ng_tensor *eps;          /* (1), or NG_NONE */
} filter_response_norm;

/* x / sqrt(mean(x^2) + eps + |learned eps|) over the last dimension. */
static ng_tensor *divide_by_rms(const filter_response_norm *layer, ng_tape *tape, ng_tensor *x)
{
    ng_tensor *learned = ng_parameter_value(tape, layer->eps);
    if (ng_is_none(learned)) return ng_rms_norm(tape, x, NG_NONE, .eps = layer->options.eps);
    ng_tensor *square = ng_mean(tape, ng_square(tape, x), .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *eps = ng_add_scalar(tape, ng_abs(tape, learned), layer->options.eps);
    return ng_mul(tape, x, ng_rsqrt(tape, ng_add(tape, square, eps)));
}

static ng_tensor *filter_response_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const filter_response_norm *layer = (const filter_response_norm *)self;
    if (!ng_channels_fit(self, x, layer->options.channels)) return NULL;
    ng_tensor *y = divide_by_rms(layer, tape, ng_by_positions(tape, x));
    y = ng_reshape(tape, y, x->shape);
    y = ng_affine_composed(tape, y, ng_parameter_value(tape, layer->gamma),
                           ng_parameter_value(tape, layer->beta));
    if (layer->options.no_threshold) return y;
    return ng_maximum(tape, y, ng_per_channel(tape, ng_parameter_value(tape, layer->tau), x));
}

static const ng_module_class filter_response_norm_class = {.name = "FilterResponseNorm",
                                                           .size = sizeof(filter_response_norm),
                                                           .forward = filter_response_norm_forward};

static const ng_setting filter_response_norm_settings[] = {
    {NG_OPTION(filter_response_norm, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(filter_response_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {NG_OPTION(filter_response_norm, learned_eps), NG_IS_FLAG},
    {NG_OPTION(filter_response_norm, no_threshold), NG_IS_FLAG},
    {0}};

ng_module *ng_filter_response_norm_new_with(ng_filter_response_norm_new_options options)
{
    filter_response_norm *self =
        ng_layer_new("ng_filter_response_norm_new", &filter_response_norm_class,
                     filter_response_norm_settings, &(filter_response_norm){.options = options});
    if (!self) return NULL;
    ng_module *base = &self->base;
    const ng_shape shape = NG_SHAPE(options.channels);
    self->gamma = ng_module_add_parameter(base, "weight", shape, .value = 1);
    self->beta = ng_module_add_parameter(base, "bias", shape);
    self->tau = ng_module_add_parameter(base, "tau", shape, .left_out = options.no_threshold);
    self->eps = ng_module_add_parameter(base, "eps", NG_SHAPE(1), .value = 1e-4,
                                        .left_out = !options.learned_eps);
    return ng_module_built(base);
}
