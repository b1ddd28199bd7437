/* BHyT: y = gamma tanh(lambda x / (kappa sqrt(mean(x^2) + eps))), DynamicTanh of an RMSNorm. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_bhyt_new_options options;
    ng_tensor *lambda, *gamma; /* (1), (dim) */
} bhyt_layer;

static ng_tensor *bhyt_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const bhyt_layer *layer = (const bhyt_layer *)self;
    const ng_bhyt_new_options *o = &layer->options;
    if (!ng_features_fit(self, x, o->dim)) return NULL;
    ng_tensor *slope = ng_mul_scalar(tape, ng_parameter_value(tape, layer->lambda), 1 / o->kappa);
    return ng_dynamic_tanh(tape, ng_rms_norm(tape, x, NG_NONE, .eps = o->eps), slope,
                           ng_parameter_value(tape, layer->gamma), NG_NONE);
}

static const ng_module_class bhyt_class = {
    .name = "BHyT", .size = sizeof(bhyt_layer), .forward = bhyt_forward};

static const ng_setting bhyt_settings[] = {
    {NG_OPTION(bhyt_layer, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(bhyt_layer, lambda), NG_IS_FINITE, .standard = 2},
    {NG_OPTION(bhyt_layer, kappa), NG_IS_POSITIVE, .standard = 10},
    {NG_OPTION(bhyt_layer, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {0}};

ng_module *ng_bhyt_new_with(ng_bhyt_new_options options)
{
    bhyt_layer *self =
        ng_layer_new("ng_bhyt_new", &bhyt_class, bhyt_settings, &(bhyt_layer){.options = options});
    if (!self) return NULL;
    self->lambda =
        ng_module_add_parameter(&self->base, "lambda", NG_SHAPE(1), .value = self->options.lambda);
    self->gamma = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.dim), .value = 1);
    return ng_module_built(&self->base);
}
