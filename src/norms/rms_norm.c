/* RMSNorm: y = x / sqrt(mean(x^2) + eps) * gamma over the last dimension. With a unit offset
 * 1 + gamma is in the place of gamma, with a condition 1 + scale(c). SimpleNorm divides by the
 * deviation. */
#include "nn/fold.h"
#include "norms/film.h"
#include "ops/norm.h"

typedef struct {
    ng_module base;
    ng_rms_norm_new_options options;
    ng_tensor *gamma;      /* (dim), or NG_NONE */
    ng_tensor *beta;       /* NG_NONE */
    ng_module *modulation; /* with a condition: FiLM */
} rms_norm;

/* x with its features last, normalized and times gamma. */
static ng_tensor *rms_normalized(const rms_norm *layer, ng_tape *tape, ng_tensor *x)
{
    const ng_rms_norm_new_options *o = &layer->options;
    ng_tensor *gamma = ng_scale_value(tape, layer->gamma, o->unit_offset);
    if (o->groups > 1) return ng_rms_norm_of_groups(tape, x, gamma, o->groups, o->eps);
    if (!o->by_deviation)
        return ng_row_norm(tape, x, gamma, NG_NONE, .eps = o->eps, .dims = 1, .rms = true,
                           .partial = o->partial);
    ng_tensor *var = ng_variance(tape, x, .axes = NG_AXES(-1), .keepdim = true, .unbiased = true);
    ng_tensor *y = ng_mul(tape, x, ng_rsqrt(tape, ng_add_scalar(tape, var, o->eps)));
    return ng_is_none(gamma) ? y : ng_mul(tape, y, gamma);
}

static ng_tensor *rms_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const rms_norm *layer = (const rms_norm *)self;
    const ng_rms_norm_new_options *o = &layer->options;
    ng_tensor *x = in->x;
    if (!(o->channels_first ? ng_channels_fit : ng_features_fit)(self, x, o->dim)) return NULL;
    const bool swap = o->channels_first && x->shape.rank > 2;
    ng_tensor *y = rms_normalized(layer, tape, swap ? ng_transpose(tape, x, 1, -1) : x);
    return ng_modulate(layer->modulation, tape, swap ? ng_transpose(tape, y, 1, -1) : y, in);
}

static const ng_module_class rms_norm_class = {
    .name = "RMSNorm", .size = sizeof(rms_norm), .forward_with = rms_norm_forward};

bool ng_rms_norm_part(ng_module *module, ng_fold_part *part)
{
    rms_norm *layer = (rms_norm *)module;
    ng_rms_norm_new_options *o = &layer->options;
    if (module->type != &rms_norm_class) return false;
    *part = (ng_fold_part){.weight = &layer->gamma,
                           .bias = &layer->beta,
                           .left_out = &o->no_affine,
                           .features = o->dim,
                           .never = o->channels_first ? "it is over channels"
                                    : o->condition    ? "it takes a condition"
                                    : o->unit_offset  ? "it has a unit offset"
                                                      : NULL};
    return true;
}

static const ng_setting rms_norm_settings[] = {
    {NG_OPTION(rms_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(rms_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {NG_OPTION(rms_norm, partial), NG_IS_PART, .standard = 1, .quiet = true},
    {NG_OPTION(rms_norm, groups), NG_IS_COUNT_OR_0, .unit = "groups", .divides = "dim",
     .excludes = "partial"},
    {NG_OPTION(rms_norm, by_deviation), NG_IS_FLAG, .excludes = "partial groups"},
    {NG_OPTION(rms_norm, channels_first), NG_IS_FLAG, .excludes = "condition"},
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
