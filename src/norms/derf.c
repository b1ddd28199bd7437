/* Derf: y = gamma erf(alpha x + s) + beta, in place of a norm, without statistics. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_dynamic_tanh_new_options options;
    ng_tensor *alpha, *shift; /* (1) */
    ng_tensor *gamma, *beta;  /* (dim), or NG_NONE */
} derf;

static ng_tensor *derf_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const derf *layer = (const derf *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    ng_tensor *inner = ng_mul(tape, x, ng_parameter_value(tape, layer->alpha));
    ng_tensor *y = ng_erf(tape, ng_add(tape, inner, ng_parameter_value(tape, layer->shift)));
    if (layer->options.no_affine) return y;
    y = ng_mul(tape, y, ng_parameter_value(tape, layer->gamma));
    return ng_add(tape, y, ng_parameter_value(tape, layer->beta));
}

static const ng_module_class derf_class = {
    .name = "Derf", .size = sizeof(derf), .forward = derf_forward};

static const ng_setting derf_settings[] = {
    {NG_OPTION(derf, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(derf, alpha), NG_IS_FINITE, .standard = 0.5},
    {NG_OPTION(derf, no_affine), NG_IS_FLAG},
    {0}};

ng_module *ng_derf_new_with(ng_dynamic_tanh_new_options options)
{
    derf *self =
        ng_layer_new("ng_derf_new", &derf_class, derf_settings, &(derf){.options = options});
    if (!self) return NULL;
    ng_module *base = &self->base;
    const ng_shape row = NG_SHAPE(options.dim);
    self->alpha = ng_module_add_parameter(base, "alpha", NG_SHAPE(1), .value = self->options.alpha);
    self->shift = ng_module_add_parameter(base, "shift", NG_SHAPE(1));
    self->gamma =
        ng_module_add_parameter(base, "weight", row, .value = 1, .left_out = options.no_affine);
    self->beta = ng_module_add_parameter(base, "bias", row, .left_out = options.no_affine);
    return ng_module_built(base);
}
