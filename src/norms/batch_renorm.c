/* BatchRenorm: batch normalization, corrected in training by the running statistics. Ioffe 2017. */
#include "norms/batch_state.h"
#include <math.h>

/* ---- The op --------------------------------------------------------------------------------- */

typedef struct {
    double r_max, d_max;
} limits;

static double clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value; /* a NaN stays */
}

/* (xhat r + d) gamma + beta is batch normalization with gamma r for gamma and gamma d + beta for
 * beta; r and d are constants. */
static bool correct_affine(ng_tape *tape, ng_batch_call *call, ng_batch_moments *batch)
{
    const limits *limit = call->with;
    const ng_tensor *mean = call->running_mean, *deviation = call->running_spread;
    ng_tensor *r = ng_result(tape, mean->dtype, mean->shape);
    ng_tensor *d = ng_result(tape, mean->dtype, mean->shape);
    if (!r || !d) return false;
    batch->factor = 1;
    for (int64_t c = 0; c < mean->size; c++) {
        const double sigma = ng_tensor_load(deviation, c),
                     sigma_b = sqrt(batch->spread[c] + call->eps);
        const double offset = (batch->mean[c] - ng_tensor_load(mean, c)) / sigma;
        batch->spread[c] = sigma_b;
        ng_tensor_store(r, c, clip(sigma_b / sigma, 1 / limit->r_max, limit->r_max));
        ng_tensor_store(d, c, clip(offset, -limit->d_max, limit->d_max));
    }
    r = ng_detach(tape, r, .by_definition = true); /* the checker holds them fixed */
    d = ng_detach(tape, d, .by_definition = true);
    if (call->gamma != NG_NONE) r = ng_mul(tape, call->gamma, r), d = ng_mul(tape, call->gamma, d);
    if (call->beta != NG_NONE) d = ng_add(tape, d, call->beta);
    call->gamma = r, call->beta = d;
    return r && d;
}

ng_tensor *ng_batch_renorm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                ng_tensor *running_mean, ng_batch_renorm_options options)
{
    static const char function[] = "ng_batch_renorm";
    ng_batch_call call = NG_BATCH_CALL(function, options, running_deviation);
    const limits limit = {ng_option(options.r_max, 3), ng_option(options.d_max, 5)};
    call.group = options.group;
    call.mask = options.mask;
    if (!ng_batch_accepts(tape, &call)) return NULL;
    if (ng_is_none(running_mean) || ng_is_none(call.running_spread)) {
        ng_fail(NG_EVALUE, "%s: running_mean and running_deviation are needed, in training too",
                function);
        return NULL;
    }
    if (call.training) {
        if (!ng_option_range(function, "r_max", limit.r_max, 1, HUGE_VAL) ||
            !ng_option_range(function, "d_max", limit.d_max, 0, HUGE_VAL))
            return NULL;
        call.adapt = correct_affine, call.with = &limit;
    } else {
        call.running_spread = ng_square(tape, call.running_spread);
        call.eps = 0;
        if (!call.running_spread) return NULL;
    }
    return ng_batch_norm_called(tape, &call);
}

/* ---- The layer ------------------------------------------------------------------------------ */

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
