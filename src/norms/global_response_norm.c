/* Global response normalization: y = x + gamma x s + beta, where s is the length of a channel of a
 * sample over its positions, divided by the mean of all channels' lengths. */
#include "nn/module.h"
#include "ops/norm.h"

typedef struct {
    ng_module base;
    ng_global_response_norm_new_options options;
    ng_tensor *gamma, *beta; /* (channels) */
} global_response_norm;

static ng_tensor *global_response_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const global_response_norm *layer = (const global_response_norm *)self;
    if (!ng_channels_fit(self, x, layer->options.channels)) return NULL;
    ng_tensor *rows = ng_by_positions(tape, x);
    ng_tensor *length = ng_norm(tape, rows, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *mean = ng_mean(tape, length, .axes = NG_AXES(1), .keepdim = true);
    ng_tensor *s = ng_div(tape, length, ng_add_scalar(tape, mean, layer->options.eps));
    ng_tensor *y = ng_reshape(tape, ng_mul(tape, rows, s), x->shape);
    y = ng_affine_composed(tape, y, ng_parameter_value(tape, layer->gamma),
                           ng_parameter_value(tape, layer->beta));
    return ng_add(tape, x, y);
}

static const ng_module_class global_response_norm_class = {.name = "GlobalResponseNorm",
                                                           .size = sizeof(global_response_norm),
                                                           .forward = global_response_norm_forward};

static const ng_setting global_response_norm_settings[] = {
    {NG_OPTION(global_response_norm, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(global_response_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {0}};

ng_module *ng_global_response_norm_new_with(ng_global_response_norm_new_options options)
{
    global_response_norm *self =
        ng_layer_new("ng_global_response_norm_new", &global_response_norm_class,
                     global_response_norm_settings, &(global_response_norm){.options = options});
    if (!self) return NULL;
    self->gamma = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.channels));
    self->beta = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(options.channels));
    return ng_module_built(&self->base);
}
