/* BatchRenorm: batch normalization, corrected in training by the running statistics. */
#include "norms/batch_state.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_batch_renorm_new_options options;
    ng_batch_state state; /* with a running deviation */
} batch_renorm_layer;

/* The share of r_max - 1 and d_max after `seen` batches: 0 during the warm-up, then rising to 1. */
static double opening(const ng_batch_renorm_new_options *options, double seen)
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
    const double open = opening(options, ng_item(state->batches));
    if (!ng_channels_fit(self, in->x, options->channels)) return NULL;
    ng_tensor *y = ng_batch_renorm(
        tape, in->x, ng_parameter_value(tape, state->gamma), ng_parameter_value(tape, state->beta),
        state->mean, state->spread, .eps = options->eps, .momentum = options->momentum,
        .r_max = 1 + open * (options->r_max - 1), .d_max = ng_exactly(open * options->d_max),
        .training = training, .group = options->group, .mask = in->mask);
    if (y && training) ng_batch_state_count(state, tape);
    return y;
}

static void batch_renorm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_batch_renorm_new_options *options = &((const batch_renorm_layer *)self)->options;
    char warmup[40] = "", ramp[40] = "";
    if (options->warmup > 0)
        snprintf(warmup, sizeof warmup, ", warmup=%lld", (long long)options->warmup);
    if (options->ramp > 0) snprintf(ramp, sizeof ramp, ", ramp=%lld", (long long)options->ramp);
    snprintf(text, bytes, "%lld, eps=%s, momentum=%s, r_max=%s, d_max=%s%s%s%s%s",
             (long long)options->channels, ng_number_print(options->eps).text,
             ng_number_print(options->momentum).text, ng_number_print(options->r_max).text,
             ng_number_print(options->d_max).text, warmup, ramp,
             options->no_affine ? ", no affine" : "", options->group ? ", synchronized" : "");
}

static const ng_module_class batch_renorm_class = {.name = "BatchRenorm",
                                                   .size = sizeof(batch_renorm_layer),

                                                   .forward_with = batch_renorm_forward,
                                                   .takes = NG_INPUT_MASK,
                                                   .describe = batch_renorm_describe};

static bool batch_renorm_options_accepted(const ng_batch_renorm_new_options *options)
{
    static const char name[] = "ng_batch_renorm_new";
    if (options->warmup < 0 || options->ramp < 0) {
        ng_fail(NG_EVALUE, "%s: warmup is %lld and ramp %lld, expected numbers of batches", name,
                (long long)options->warmup, (long long)options->ramp);
        return false;
    }
    return ng_option_positive(name, "channels", options->channels, "channels") &&
           ng_batch_settings_ok(name, options->eps, options->momentum) &&
           ng_option_range(name, "r_max", options->r_max, 1, HUGE_VAL) &&
           ng_option_range(name, "d_max", options->d_max, 0, HUGE_VAL);
}

ng_module *ng_batch_renorm_new_with(ng_batch_renorm_new_options options)
{
    options.eps = ng_option(options.eps, 1e-5);
    options.momentum = ng_option(options.momentum, 0.1);
    options.r_max = ng_option(options.r_max, 3);
    options.d_max = ng_option(options.d_max, 5);
    if (!batch_renorm_options_accepted(&options)) return NULL;

    batch_renorm_layer *self = (batch_renorm_layer *)ng_module_new(&batch_renorm_class);
    if (!self) return NULL;
    self->options = options;
    self->state = ng_batch_state_add(&self->base, options.channels, "running_deviation",
                                     options.no_affine, false);
    return ng_module_built(&self->base);
}
