/* L2 normalization: y = gamma x / sqrt(sum x^2 + eps) over the last dimension, or the channels. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_l2_norm_new_options options;
    ng_tensor *gamma; /* (dim), or NG_NONE */
} l2_norm;

/* sum x^2 = dim mean(x^2): RMSNorm, times gamma / sqrt(dim). */
static ng_tensor *l2_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const l2_norm *layer = (const l2_norm *)self;
    const ng_l2_norm_new_options *options = &layer->options;
    const double n = (double)options->dim, eps = ng_exactly(options->eps / n);
    const bool swap = options->channels_first && x->shape.rank > 2;
    if (options->channels_first ? !ng_channels_fit(self, x, options->dim)
                                : !ng_features_fit(self, x, options->dim))
        return NULL;
    if (swap) x = ng_transpose(tape, x, 1, -1);
    ng_tensor *gamma = ng_parameter_value(tape, layer->gamma), *y;
    if (ng_is_none(gamma))
        y = ng_mul_scalar(tape, ng_rms_norm(tape, x, NG_NONE, .eps = eps), 1 / sqrt(n));
    else
        y = ng_rms_norm(tape, x, ng_mul_scalar(tape, gamma, 1 / sqrt(n)), .eps = eps);
    return swap ? ng_transpose(tape, y, 1, -1) : y;
}

static const ng_module_class l2_norm_class = {
    .name = "L2Norm", .size = sizeof(l2_norm), .forward = l2_norm_forward};

static const ng_setting l2_norm_settings[] = {
    {NG_OPTION(l2_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(l2_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-10},
    {NG_OPTION(l2_norm, scale), NG_IS_FINITE, .standard = 1, .quiet = true},
    {NG_OPTION(l2_norm, no_affine), NG_IS_FLAG, .excludes = "scale"},
    {NG_OPTION(l2_norm, channels_first), NG_IS_FLAG},
    {0}};

ng_module *ng_l2_norm_new_with(ng_l2_norm_new_options options)
{
    l2_norm *self = ng_layer_new("ng_l2_norm_new", &l2_norm_class, l2_norm_settings,
                                 &(l2_norm){.options = options});
    if (!self) return NULL;
    self->gamma =
        ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.dim),
                                .value = self->options.scale, .left_out = options.no_affine);
    return ng_module_built(&self->base);
}
