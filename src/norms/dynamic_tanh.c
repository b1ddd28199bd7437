/* DynamicTanh: y = gamma tanh(alpha x) + beta, in place of a norm, without statistics. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_dynamic_tanh_new_options options;
    ng_tensor *alpha;        /* (1) */
    ng_tensor *gamma, *beta; /* (dim), or NG_NONE */
} dynamic_tanh_layer;

static ng_tensor *dynamic_tanh_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const dynamic_tanh_layer *layer = (const dynamic_tanh_layer *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    return ng_dynamic_tanh(tape, x, ng_parameter_value(tape, layer->alpha),
                           ng_parameter_value(tape, layer->gamma),
                           ng_parameter_value(tape, layer->beta));
}

static const ng_module_class dynamic_tanh_class = {
    .name = "DynamicTanh", .size = sizeof(dynamic_tanh_layer), .forward = dynamic_tanh_forward};

static const ng_setting dynamic_tanh_settings[] = {
    {NG_OPTION(dynamic_tanh_layer, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(dynamic_tanh_layer, alpha), NG_IS_FINITE, .standard = 0.5},
    {NG_OPTION(dynamic_tanh_layer, no_affine), NG_IS_FLAG},
    {0}};

ng_module *ng_dynamic_tanh_new_with(ng_dynamic_tanh_new_options options)
{
    dynamic_tanh_layer *self =
        ng_layer_new("ng_dynamic_tanh_new", &dynamic_tanh_class, dynamic_tanh_settings,
                     &(dynamic_tanh_layer){.options = options});
    if (!self) return NULL;
    ng_module *base = &self->base;
    const ng_shape row = NG_SHAPE(options.dim);
    self->alpha = ng_module_add_parameter(base, "alpha", NG_SHAPE(1), .value = self->options.alpha);
    self->gamma =
        ng_module_add_parameter(base, "weight", row, .value = 1, .left_out = options.no_affine);
    self->beta = ng_module_add_parameter(base, "bias", row, .left_out = options.no_affine);
    return ng_module_built(base);
}
