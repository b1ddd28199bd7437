/* BatchNorm: each channel normalized over the batch, or by running statistics. */
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

static ng_tensor *at_once(const batch_norm *layer, ng_tape *tape, ng_tensor *x, ng_tensor *mask,
                          double momentum, bool training)
{
    const ng_batch_state *state = &layer->state;
    return ng_batch_norm(tape, x, ng_parameter_value(tape, state->gamma),
                         ng_parameter_value(tape, state->beta), state->mean, state->spread,
                         .eps = layer->options.eps, .momentum = momentum, .training = training,
                         .group = layer->options.group, .mask = mask);
}

static ng_tensor *in_parts(const batch_norm *layer, ng_tape *tape, ng_tensor *x, double momentum,
                           bool training)
{
    const ng_batch_state *state = &layer->state;
    return ng_ghost_batch_norm(
        tape, x, ng_parameter_value(tape, state->gamma), ng_parameter_value(tape, state->beta),
        state->mean, state->spread, .size = layer->options.ghost, .eps = layer->options.eps,
        .momentum = momentum, .training = training, .combine = layer->options.combined);
}

static ng_tensor *batch_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    batch_norm *layer = (batch_norm *)self;
    ng_tensor *x = in->x;
    const ng_batch_norm_new_options *options = &layer->options;
    const bool training = uses_batch(layer), counts = training && !options->no_running_stats;
    const ng_batch_state *state = &layer->state;
    const double seen = counts ? ng_item(state->batches) : 0;
    if (!ng_channels_fit(self, x, options->channels)) return NULL;
    if (state->moments && !ng_batch_state_collect(state, tape, x)) return NULL;
    const double momentum = options->cumulative ? 1 / (seen + 1) : options->momentum;
    if (options->ghost &&
        !ng_option_apart(self->type->name, "ghost", true, "mask", !ng_is_none(in->mask)))
        return NULL;
    const bool parts = options->ghost && !options->group;
    ng_tensor *y = parts ? in_parts(layer, tape, x, momentum, training)
                         : at_once(layer, tape, x, in->mask, momentum, training);
    if (y && counts) ng_batch_state_count(state, tape);
    return ng_modulate(layer->modulation, tape, y, in);
}

static void batch_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_batch_norm_new_options *options = &((const batch_norm *)self)->options;
    char momentum[48] = "";
    if (options->cumulative)
        snprintf(momentum, sizeof momentum, ", cumulative");
    else if (!options->no_running_stats)
        snprintf(momentum, sizeof momentum, ", momentum=%s",
                 ng_number_print(options->momentum).text);
    char ghost[48] = "";
    if (options->ghost)
        snprintf(ghost, sizeof ghost, ", ghost=%lld%s", (long long)options->ghost,
                 options->combined ? " combined" : "");
    snprintf(text, bytes, "%lld, eps=%s%s%s%s%s%s%s", (long long)options->channels,
             ng_number_print(options->eps).text, momentum,
             options->no_running_stats ? ", no running stats" : "",
             options->no_affine ? ", no affine" : "", options->frozen ? ", frozen" : "", ghost,
             options->group ? ", synchronized" : "");
}

static const ng_module_class batch_norm_class = {.name = "BatchNorm",
                                                 .size = sizeof(batch_norm),

                                                 .forward_with = batch_norm_forward,
                                                 .takes = NG_INPUT_MASK,
                                                 .describe = batch_norm_describe};

ng_batch_state *ng_batch_norm_state(const ng_module *module)
{
    batch_norm *layer = (batch_norm *)module;
    if (module->type != &batch_norm_class || layer->options.no_running_stats || module->frozen ||
        layer->options.frozen)
        return NULL;
    return &layer->state;
}

/* Whether no setting is without effect, because no running statistics move, or because those of the
 * batch are never used. */
static bool options_count(const char *name, const ng_batch_norm_new_options *options)
{
    const char *moves = "where running statistics move", *batches = "where batches give statistics";
    const bool rest = options->no_running_stats || options->frozen, frozen = options->frozen;
    return ng_option_idle(name, "momentum", rest && ng_option_given(options->momentum), moves) &&
           ng_option_idle(name, "cumulative", rest && options->cumulative, moves) &&
           ng_option_idle(name, "ghost", frozen && options->ghost, batches) &&
           ng_option_idle(name, "group", frozen && options->group, batches);
}

static bool batch_norm_options_accepted(const ng_batch_norm_new_options *options)
{
    static const char name[] = "ng_batch_norm_new";
    const bool apart = options->ghost && !options->combined; /* each part has its own statistics */
    if (options->ghost < 0 || (options->combined && !options->ghost)) {
        ng_fail(NG_EVALUE, "%s: ghost is %lld%s, expected a number of samples", name,
                (long long)options->ghost, options->combined ? " with .combined" : "");
        return false;
    }
    if (!ng_option_apart(name, "cumulative", options->cumulative, "momentum",
                         ng_option_given(options->momentum)) ||
        !ng_option_apart(name, "frozen", options->frozen, "no_running_stats",
                         options->no_running_stats) ||
        !ng_option_apart(name, "ghost", apart, "group", options->group) ||
        !ng_option_apart(name, "condition", options->condition, "no_affine", options->no_affine) ||
        !ng_option_apart(name, "ghost", apart, "cumulative", options->cumulative))
        return false;
    return options_count(name, options) &&
           ng_option_positive(name, "channels", options->channels, "channels") &&
           ng_batch_settings_ok(name, options->eps, options->momentum);
}

ng_module *ng_batch_norm_new_with(ng_batch_norm_new_options options)
{
    if (!batch_norm_options_accepted(&options)) return NULL;
    options.eps = ng_option(options.eps, 1e-5);
    options.momentum = ng_option(options.momentum, 0.1);

    batch_norm *self = (batch_norm *)ng_module_new(&batch_norm_class);
    if (!self) return NULL;
    self->options = options;
    self->state =
        ng_batch_state_add(&self->base, options.channels, "running_var",
                           options.no_affine || options.condition, options.no_running_stats);
    self->state.group = options.group;
    self->modulation =
        ng_add_modulation(&self->base, (ng_film_new_options){.channels = options.channels,
                                                             .condition = options.condition});
    return ng_module_built(&self->base);
}
