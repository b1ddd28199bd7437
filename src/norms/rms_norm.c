/* RMSNorm: y = x / sqrt(mean(x^2) + eps) * gamma over the last dimension. With a unit offset
 * 1 + gamma is in the place of gamma, with a condition 1 + scale(c). */
#include "norms/film.h"

typedef struct {
    ng_module base;
    ng_rms_norm_new_options options;
    ng_tensor *gamma;      /* (dim), or NG_NONE */
    ng_module *modulation; /* with a condition: FiLM */
} rms_norm;

static ng_tensor *rms_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const rms_norm *layer = (const rms_norm *)self;
    const ng_rms_norm_new_options *options = &layer->options;
    if (!ng_features_fit(self, in->x, options->dim)) return NULL;
    ng_tensor *y =
        ng_row_norm(tape, in->x, ng_scale_value(tape, layer->gamma, options->unit_offset), NG_NONE,
                    .eps = options->eps, .dims = 1, .rms = true, .partial = options->partial);
    return ng_modulate(layer->modulation, tape, y, in);
}

static const ng_module_class rms_norm_class = {
    .name = "RMSNorm", .size = sizeof(rms_norm), .forward_with = rms_norm_forward};

static const ng_setting rms_norm_settings[] = {
    {NG_OPTION(rms_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(rms_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {NG_OPTION(rms_norm, partial), NG_IS_PART, .standard = 1, .quiet = true},
    {NG_OPTION(rms_norm, unit_offset), NG_IS_FLAG, .excludes = "no_affine"},
    {NG_OPTION(rms_norm, no_affine), NG_IS_FLAG},
    {NG_OPTION(rms_norm, condition), NG_IS_COUNT_OR_0, .unit = "features",
     .excludes = "no_affine unit_offset"},
    {0}};

ng_module *ng_rms_norm_new_with(ng_rms_norm_new_options options)
{
    rms_norm *self = ng_layer_new("ng_rms_norm_new", &rms_norm_class, rms_norm_settings,
                                  &(rms_norm){.options = options});
    if (!self) return NULL;
    self->gamma = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.dim),
                                          .value = options.unit_offset ? 0 : 1,
                                          .left_out = options.no_affine || options.condition);
    self->modulation =
        ng_add_modulation(&self->base, (ng_film_new_options){.channels = options.dim,
                                                             .condition = options.condition,
                                                             .features_last = true,
                                                             .no_shift = true});
    return ng_module_built(&self->base);
}
