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

static void group_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const group_norm_layer *layer = (const group_norm_layer *)self;
    const ng_group_norm_new_options *options = &layer->options;
    snprintf(text, bytes, "%lld, groups=%lld, eps=%s%s", (long long)options->channels,
             (long long)layer->groups, ng_number_print(options->eps).text,
             options->no_affine ? ", no affine" : "");
}

static const ng_module_class group_norm_class = {.name = "GroupNorm",
                                                 .size = sizeof(group_norm_layer),
                                                 .forward_with = group_norm_forward,
                                                 .describe = group_norm_describe};

ng_module *ng_group_norm_new_with(int64_t groups, ng_group_norm_new_options options)
{
    static const char name[] = "ng_group_norm_new";
    options.eps = ng_option(options.eps, 1e-5);
    if (!ng_option_positive(name, "channels", options.channels, "channels") ||
        !ng_groups_divide(name, groups, options.channels) || !ng_norm_eps_ok(name, options.eps) ||
        !ng_option_apart(name, "condition", options.condition, "no_affine", options.no_affine))
        return NULL;
    group_norm_layer *self = (group_norm_layer *)ng_module_new(&group_norm_class);
    if (!self) return NULL;
    const ng_shape shape = NG_SHAPE(options.channels);
    const bool left_out = options.no_affine || options.condition;
    self->groups = groups;
    self->options = options;
    self->gamma =
        ng_module_add_parameter(&self->base, "weight", shape, .value = 1, .left_out = left_out);
    self->beta = ng_module_add_parameter(&self->base, "bias", shape, .left_out = left_out);
    self->modulation =
        ng_add_modulation(&self->base, (ng_film_new_options){.channels = options.channels,
                                                             .condition = options.condition});
    return ng_module_built(&self->base);
}
