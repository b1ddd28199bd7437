/* BatchNorm: each channel normalized over the batch, or by running statistics. */
#include "nn/fold.h"
#include "norms/batch_state.h"
#include "norms/film.h"

typedef struct {
    ng_module base;
    ng_batch_norm_new_options options;
    ng_batch_state state;  /* with a running variance */
    ng_module *modulation; /* with a condition: FiLM */
} batch_norm;

/* Whether the statistics are the batch's: not if the layer is frozen, by ng_freeze or .frozen. */
static bool uses_batch(const batch_norm *layer)
{
    if (layer->options.no_running_stats) return true;
    return layer->base.training && !layer->base.frozen && !layer->options.frozen;
}

static ng_tensor *batch_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    batch_norm *layer = (batch_norm *)self;
    const ng_batch_norm_new_options *o = &layer->options;
    const ng_batch_state *state = &layer->state;
    const bool training = uses_batch(layer), counts = training && !o->no_running_stats;
    const double seen = counts ? ng_item(state->batches) : 0;
    const double momentum = o->cumulative ? 1 / (seen + 1) : o->momentum;
    if (!ng_channels_fit(self, in->x, o->channels) ||
        (state->moments && !ng_batch_state_collect(state, tape, in->x)) ||
        !ng_option_apart(self->type->name, "ghost", o->ghost, "mask", !ng_is_none(in->mask)))
        return NULL;
    ng_tensor *gamma = ng_parameter_value(tape, state->gamma);
    ng_tensor *beta = ng_parameter_value(tape, state->beta);
    ng_tensor *y = o->ghost
                       ? ng_ghost_batch_norm(tape, in->x, gamma, beta, state->mean, state->spread,
                                             .size = o->ghost, .eps = o->eps, .momentum = momentum,
                                             .training = training)
                       : ng_batch_norm(tape, in->x, gamma, beta, state->mean, state->spread,
                                       .eps = o->eps, .momentum = momentum, .training = training,
                                       .group = o->group, .mask = in->mask);
    if (y && counts) ng_batch_state_count(state, tape);
    return ng_modulate(layer->modulation, tape, y, in);
}

static const ng_module_class batch_norm_class = {.name = "BatchNorm",
                                                 .size = sizeof(batch_norm),

                                                 .forward_with = batch_norm_forward,
                                                 .takes = NG_INPUT_MASK};

ng_batch_state *ng_batch_norm_state(const ng_module *module)
{
    batch_norm *layer = (batch_norm *)module;
    if (module->type != &batch_norm_class || layer->options.no_running_stats || module->frozen ||
        layer->options.frozen)
        return NULL;
    return &layer->state;
}

bool ng_batch_norm_part(ng_module *module, ng_fold_part *part)
{
    batch_norm *layer = (batch_norm *)module;
    ng_batch_norm_new_options *o = &layer->options;
    if (module->type != &batch_norm_class) return false;
    *part = (ng_fold_part){.weight = &layer->state.gamma,
                           .bias = &layer->state.beta,
                           .left_out = &o->no_affine,
                           .features = o->channels,
                           .mean = layer->state.mean,
                           .var = layer->state.spread,
                           .eps = o->eps,
                           .never = o->no_running_stats ? "it has no running statistics"
                                    : o->condition      ? "it takes a condition"
                                                        : NULL};
    return true;
}

static const ng_setting batch_norm_settings[] = {
    {NG_OPTION(batch_norm, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(batch_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(batch_norm, momentum), NG_IS_FRACTION, .standard = 0.1},
    {NG_OPTION(batch_norm, cumulative), NG_IS_FLAG, .excludes = "momentum"},
    {NG_OPTION(batch_norm, no_running_stats), NG_IS_FLAG, .excludes = "momentum cumulative"},
    {NG_OPTION(batch_norm, no_affine), NG_IS_FLAG},
    {NG_OPTION(batch_norm, frozen), NG_IS_FLAG,
     .excludes = "momentum cumulative no_running_stats ghost group"},
    {NG_OPTION(batch_norm, ghost), NG_IS_COUNT_OR_0, .unit = "samples",
     .excludes = "group cumulative"},
    {NG_OPTION(batch_norm, group), NG_IS_POINTER, .label = "synchronized"},
    {NG_OPTION(batch_norm, condition), NG_IS_COUNT_OR_0, .unit = "features",
     .excludes = "no_affine"},
    {0}};

ng_module *ng_batch_norm_new_with(ng_batch_norm_new_options options)
{
    batch_norm *self = ng_layer_new("ng_batch_norm_new", &batch_norm_class, batch_norm_settings,
                                    &(batch_norm){.options = options});
    if (!self) return NULL;
    self->state =
        ng_batch_state_add(&self->base, options.channels, "running_var",
                           options.no_affine || options.condition, options.no_running_stats);
    self->state.group = options.group;
    self->modulation =
        ng_add_modulation(&self->base, (ng_film_new_options){.channels = options.channels,
                                                             .condition = options.condition});
    return ng_module_built(&self->base);
}
