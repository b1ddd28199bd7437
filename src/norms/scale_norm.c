/* ScaleNorm: y = g x / ||x|| over the last dimension, one learned length g. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_scale_norm_new_options options;
    ng_tensor *g; /* (1) */
} scale_norm;

static ng_tensor *scale_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const scale_norm *layer = (const scale_norm *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    return ng_scale_norm(tape, x, ng_parameter_value(tape, layer->g), .eps = layer->options.eps);
}

static const ng_module_class scale_norm_class = {
    .name = "ScaleNorm", .size = sizeof(scale_norm), .forward = scale_norm_forward};

static const ng_setting scale_norm_settings[] = {
    {NG_OPTION(scale_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(scale_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-10},
    {NG_OPTION(scale_norm, length), NG_IS_FINITE, .quiet = true},
    {0}};

ng_module *ng_scale_norm_new_with(ng_scale_norm_new_options options)
{
    scale_norm *self = ng_layer_new("ng_scale_norm_new", &scale_norm_class, scale_norm_settings,
                                    &(scale_norm){.options = options});
    if (!self) return NULL;
    self->g =
        ng_module_add_parameter(&self->base, "g", NG_SHAPE(1),
                                .value = ng_option(options.length, sqrt((double)options.dim)));
    return ng_module_built(&self->base);
}
