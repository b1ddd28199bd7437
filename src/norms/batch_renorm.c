/* BatchRenorm: batch normalization, corrected in training by the running statistics. */
#include "norms/batch_state.h"

typedef struct {
    ng_module base;
    ng_batch_renorm_new_options options;
    ng_batch_state state; /* with a running deviation */
} batch_renorm_layer;

/* The fraction of r_max - 1 and d_max after `seen` batches: 0 in the warm-up, then rising to 1. */
static double limit_fraction(const ng_batch_renorm_new_options *options, double seen)
{
    const double past = seen - (double)options->warmup;
    if (past < 0) return 0;
    return past < (double)options->ramp ? past / (double)options->ramp : 1;
}

static ng_tensor *batch_renorm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    batch_renorm_layer *layer = (batch_renorm_layer *)self;
    const ng_batch_renorm_new_options *options = &layer->options;
    const bool training = self->training && !self->frozen;
    const ng_batch_state *state = &layer->state;
    const double fraction = limit_fraction(options, ng_item(state->batches));
    if (!ng_channels_fit(self, in->x, options->channels)) return NULL;
    ng_tensor *y = ng_batch_renorm(
        tape, in->x, ng_parameter_value(tape, state->gamma), ng_parameter_value(tape, state->beta),
        state->mean, state->spread, .eps = options->eps, .momentum = options->momentum,
        .r_max = 1 + fraction * (options->r_max - 1),
        .d_max = ng_exactly(fraction * options->d_max), .training = training,
        .group = options->group, .mask = in->mask);
    if (y && training) ng_batch_state_count(state, tape);
    return y;
}

static const ng_module_class batch_renorm_class = {.name = "BatchRenorm",
                                                   .size = sizeof(batch_renorm_layer),

                                                   .forward_with = batch_renorm_forward,
                                                   .takes = NG_INPUT_MASK};

static const ng_setting batch_renorm_settings[] = {
    {NG_OPTION(batch_renorm_layer, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(batch_renorm_layer, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(batch_renorm_layer, momentum), NG_IS_FRACTION, .standard = 0.1},
    {NG_OPTION(batch_renorm_layer, r_max), NG_IS_FACTOR, .standard = 3},
    {NG_OPTION(batch_renorm_layer, d_max), NG_IS_NOT_NEGATIVE, .standard = 5},
    {NG_OPTION(batch_renorm_layer, warmup), NG_IS_COUNT_OR_0, .unit = "batches"},
    {NG_OPTION(batch_renorm_layer, ramp), NG_IS_COUNT_OR_0, .unit = "batches"},
    {NG_OPTION(batch_renorm_layer, no_affine), NG_IS_FLAG},
    {NG_OPTION(batch_renorm_layer, group), NG_IS_POINTER, .label = "synchronized"},
    {0}};

ng_module *ng_batch_renorm_new_with(ng_batch_renorm_new_options options)
{
    batch_renorm_layer *self =
        ng_layer_new("ng_batch_renorm_new", &batch_renorm_class, batch_renorm_settings,
                     &(batch_renorm_layer){.options = options});
    if (!self) return NULL;
    self->state = ng_batch_state_add(&self->base, options.channels, "running_deviation",
                                     options.no_affine, false);
    return ng_module_built(&self->base);
}
