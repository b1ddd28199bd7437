/* SeeDNorm: y = (alpha tanh(x . beta) + gamma) x / sqrt(mean(x^2) + eps). */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_seed_norm_new_options options;
    ng_tensor *gamma, *alpha, *beta; /* (dim) */
} seed_norm;

static ng_tensor *seed_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const seed_norm *layer = (const seed_norm *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    ng_tensor *each = ng_mul(tape, x, ng_parameter_value(tape, layer->beta));
    ng_tensor *dot = ng_sum(tape, each, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *own = ng_mul(tape, ng_tanh(tape, dot), ng_parameter_value(tape, layer->alpha));
    ng_tensor *scale = ng_add(tape, own, ng_parameter_value(tape, layer->gamma));
    return ng_mul(tape, ng_rms_norm(tape, x, NG_NONE, .eps = layer->options.eps), scale);
}

static const ng_module_class seed_norm_class = {
    .name = "SeeDNorm", .size = sizeof(seed_norm), .forward = seed_norm_forward};

static const ng_setting seed_norm_settings[] = {
    {NG_OPTION(seed_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(seed_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {0}};

ng_module *ng_seed_norm_new_with(ng_seed_norm_new_options options)
{
    seed_norm *self = ng_layer_new("ng_seed_norm_new", &seed_norm_class, seed_norm_settings,
                                   &(seed_norm){.options = options});
    if (!self) return NULL;
    const ng_shape row = NG_SHAPE(options.dim);
    self->gamma = ng_module_add_parameter(&self->base, "weight", row, .value = 1);
    self->alpha = ng_module_add_parameter(&self->base, "alpha", row, .value = 1);
    self->beta = ng_module_add_parameter(&self->base, "beta", row);
    return ng_module_built(&self->base);
}
