/* BatchRenorm: batch normalization whose training is corrected towards its evaluation. */
#include "nn/module.h"
#include "tape/tape.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_batch_renorm_module_options options;
    ng_tensor *gamma, *beta;                     /* (channels), or NG_NONE */
    ng_tensor *running_mean, *running_deviation; /* (channels) */
    ng_tensor *batches;                          /* how many these have seen */
} batch_renorm;

/* How far the limits are open after `seen` batches: 0 during the warm-up, then rising to 1. */
static double opening(const ng_batch_renorm_module_options *options, double seen)
{
    const double past = seen - (double)options->warmup;
    if (past < 0) return 0;
    return past < (double)options->ramp ? past / (double)options->ramp : 1;
}

static ng_tensor *batch_renorm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    batch_renorm *layer = (batch_renorm *)self;
    const ng_batch_renorm_module_options *options = &layer->options;
    const bool training = self->training && !self->frozen;
    const double seen = ng_item(layer->batches), open = opening(options, seen);
    if (ng_rank(x) >= 2 && ng_dim(x, 1) != options->channels) {
        ng_fail(NG_ESHAPE, "BatchRenorm: x is %s, expected (N, %lld, ...)",
                ng_shape_print(x->shape).text, (long long)options->channels);
        return NULL;
    }
    ng_tensor *y = ng_batch_renorm(
        tape, x, .gamma = layer->gamma, .beta = layer->beta, .running_mean = layer->running_mean,
        .running_deviation = layer->running_deviation, .eps = options->eps,
        .momentum = options->momentum, .r_max = 1 + open * (options->r_max - 1),
        .d_max = open * options->d_max, .training = training);
    if (y && training && ng_tape_is_live(tape)) ng_fill(layer->batches, seen + 1);
    return y;
}

static void batch_renorm_init(ng_module *self, ng_rng *rng)
{
    (void)rng;
    batch_renorm *layer = (batch_renorm *)self;
    if (layer->options.no_affine) return;
    ng_fill(layer->gamma, 1);
    ng_fill(layer->beta, 0);
}

static void batch_renorm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_batch_renorm_module_options *options = &((const batch_renorm *)self)->options;
    snprintf(text, bytes, "%lld, eps=%g, momentum=%g, r_max=%g, d_max=%g%s",
             (long long)options->channels, options->eps, options->momentum, options->r_max,
             options->d_max, options->no_affine ? ", no affine" : "");
}

static const ng_module_class batch_renorm_class = {.name = "BatchRenorm",
                                                   .size = sizeof(batch_renorm),
                                                   .forward = batch_renorm_forward,
                                                   .init = batch_renorm_init,
                                                   .describe = batch_renorm_describe};

static bool options_accepted(const ng_batch_renorm_module_options *options)
{
    static const char name[] = "ng_batch_renorm_new";
    if (options->warmup < 0 || options->ramp < 0) {
        ng_fail(NG_EVALUE, "%s: warmup is %lld and ramp %lld, expected numbers of batches", name,
                (long long)options->warmup, (long long)options->ramp);
        return false;
    }
    if (!(options->momentum >= 0 && options->momentum <= 1)) {
        ng_fail(NG_EVALUE, "%s: momentum is %g, expected 0 < momentum <= 1", name,
                options->momentum);
        return false;
    }
    return ng_option_positive(name, "channels", options->channels, "channels") &&
           ng_option_range(name, "eps", options->eps, 0, HUGE_VAL) &&
           ng_option_range(name, "r_max", options->r_max, 1, HUGE_VAL) &&
           ng_option_range(name, "d_max", options->d_max, 0, HUGE_VAL);
}

ng_module *ng_batch_renorm_create(ng_batch_renorm_module_options options)
{
    options.eps = ng_option_or(options.eps, 1e-5);
    options.momentum = ng_option_or(options.momentum, 0.1);
    options.r_max = ng_option_or(options.r_max, 3);
    options.d_max = ng_option_or(options.d_max, 5);
    if (!options_accepted(&options)) return NULL;

    batch_renorm *self = (batch_renorm *)ng_module_new(&batch_renorm_class);
    if (!self) return NULL;
    ng_module *base = &self->base;
    const ng_shape shape = NG_SHAPE(options.channels);
    self->options = options;
    self->gamma = options.no_affine ? NG_NONE : ng_module_add_parameter(base, "weight", shape);
    self->beta = options.no_affine ? NG_NONE : ng_module_add_parameter(base, "bias", shape);
    self->running_mean = ng_module_add_buffer(base, "running_mean", shape, 0);
    self->running_deviation = ng_module_add_buffer(base, "running_deviation", shape, 1);
    self->batches = ng_module_add_buffer(base, "batches", NG_SHAPE(1), 0);
    return ng_module_built(base);
}
