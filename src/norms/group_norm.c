/* GroupNorm: the channels of a sample normalized in groups. */
#include "norms/film.h"

typedef struct {
    ng_module base;
    int64_t groups;
    ng_group_norm_new_options options;
    ng_tensor *gamma, *beta; /* (channels), or NG_NONE */
    ng_module *modulation;   /* with a condition: FiLM */
} group_norm_layer;

static ng_tensor *group_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const group_norm_layer *layer = (const group_norm_layer *)self;
    if (!ng_channels_fit(self, in->x, layer->options.channels)) return NULL;
    ng_tensor *y = ng_group_norm(tape, in->x, ng_parameter_value(tape, layer->gamma),
                                 ng_parameter_value(tape, layer->beta), .groups = layer->groups,
                                 .eps = layer->options.eps);
    return ng_modulate(layer->modulation, tape, y, in);
}

static const ng_module_class group_norm_class = {
    .name = "GroupNorm", .size = sizeof(group_norm_layer), .forward_with = group_norm_forward};

static const ng_setting group_norm_settings[] = {
    {NG_OPTION(group_norm_layer, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_MEMBER(group_norm_layer, groups), NG_IS_COUNT, .unit = "groups", .divides = "channels"},
    {NG_OPTION(group_norm_layer, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(group_norm_layer, no_affine), NG_IS_FLAG},
    {NG_OPTION(group_norm_layer, condition), NG_IS_COUNT_OR_0, .unit = "features",
     .excludes = "no_affine"},
    {0}};

ng_module *ng_group_norm_new_with(int64_t groups, ng_group_norm_new_options options)
{
    group_norm_layer *self =
        ng_layer_new("ng_group_norm_new", &group_norm_class, group_norm_settings,
                     &(group_norm_layer){.groups = groups, .options = options});
    if (!self) return NULL;
    const ng_shape shape = NG_SHAPE(options.channels);
    const bool left_out = options.no_affine || options.condition;
    self->gamma =
        ng_module_add_parameter(&self->base, "weight", shape, .value = 1, .left_out = left_out);
    self->beta = ng_module_add_parameter(&self->base, "bias", shape, .left_out = left_out);
    self->modulation =
        ng_add_modulation(&self->base, (ng_film_new_options){.channels = options.channels,
                                                             .condition = options.condition});
    return ng_module_built(&self->base);
}
