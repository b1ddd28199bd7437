/* BatchNorm: each channel normalized over the batch, or by running statistics. */
#include "nn/module.h"
#include "tape/tape.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_batch_norm_module_options options;
    ng_tensor *gamma, *beta;               /* (channels), or NG_NONE */
    ng_tensor *running_mean, *running_var; /* (channels), or NG_NONE */
    ng_tensor *batches;                    /* how many the running statistics have seen */
} batch_norm;

/* Freezing and .frozen both hold the running statistics, whatever ng_train says. */
static bool uses_batch(const batch_norm *layer)
{
    if (layer->options.no_running_stats) return true;
    return layer->base.training && !layer->base.frozen && !layer->options.frozen;
}

static ng_tensor *in_parts(const batch_norm *layer, ng_tape *tape, ng_tensor *x, double momentum,
                           bool training)
{
    return ng_ghost_batch_norm(
        tape, x, .gamma = layer->gamma, .beta = layer->beta, .running_mean = layer->running_mean,
        .running_var = layer->running_var, .size = layer->options.ghost, .eps = layer->options.eps,
        .momentum = momentum, .training = training, .combine = layer->options.combined);
}

static ng_tensor *batch_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    batch_norm *layer = (batch_norm *)self;
    const ng_batch_norm_module_options *options = &layer->options;
    const bool training = uses_batch(layer), counts = training && !options->no_running_stats;
    const double seen = counts ? ng_item(layer->batches) : 0;
    if (ng_rank(x) >= 2 && ng_dim(x, 1) != options->channels) {
        ng_fail(NG_ESHAPE, "BatchNorm: x is %s, expected (N, %lld, ...)",
                ng_shape_print(x->shape).text, (long long)options->channels);
        return NULL;
    }
    const double momentum = options->cumulative ? 1 / (seen + 1) : options->momentum;
    ng_tensor *y =
        options->ghost
            ? in_parts(layer, tape, x, momentum, training)
            : ng_batch_norm(tape, x, .gamma = layer->gamma, .beta = layer->beta,
                            .running_mean = layer->running_mean, .running_var = layer->running_var,
                            .eps = options->eps, .momentum = momentum, .training = training);
    if (y && counts && ng_tape_is_live(tape)) ng_fill(layer->batches, seen + 1);
    return y;
}

static void batch_norm_init(ng_module *self, ng_rng *rng)
{
    (void)rng;
    batch_norm *layer = (batch_norm *)self;
    if (layer->options.no_affine) return;
    ng_fill(layer->gamma, 1);
    ng_fill(layer->beta, 0);
}

static void batch_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_batch_norm_module_options *options = &((const batch_norm *)self)->options;
    char momentum[40] = "";
    if (options->cumulative)
        snprintf(momentum, sizeof momentum, ", cumulative");
    else if (!options->no_running_stats)
        snprintf(momentum, sizeof momentum, ", momentum=%g", options->momentum);
    char ghost[48] = "";
    if (options->ghost)
        snprintf(ghost, sizeof ghost, ", ghost=%lld%s", (long long)options->ghost,
                 options->combined ? " combined" : "");
    snprintf(text, bytes, "%lld, eps=%g%s%s%s%s%s", (long long)options->channels, options->eps,
             momentum, options->no_running_stats ? ", no running stats" : "",
             options->no_affine ? ", no affine" : "", options->frozen ? ", frozen" : "", ghost);
}

static const ng_module_class batch_norm_class = {.name = "BatchNorm",
                                                 .size = sizeof(batch_norm),
                                                 .forward = batch_norm_forward,
                                                 .init = batch_norm_init,
                                                 .describe = batch_norm_describe};

static bool options_accepted(const ng_batch_norm_module_options *options)
{
    static const char name[] = "ng_batch_norm_new";
    if (options->cumulative && options->momentum != 0) {
        ng_fail(NG_EVALUE, "%s: both .cumulative and .momentum, expected one of them", name);
        return false;
    }
    if (options->frozen && options->no_running_stats) {
        ng_fail(NG_EVALUE, "%s: .frozen with .no_running_stats leaves no statistics", name);
        return false;
    }
    if (options->ghost < 0 || (options->combined && !options->ghost)) {
        ng_fail(NG_EVALUE, "%s: ghost is %lld%s, expected a number of samples", name,
                (long long)options->ghost, options->combined ? " with .combined" : "");
        return false;
    }
    if (options->ghost && options->cumulative && !options->combined) {
        ng_fail(NG_EVALUE, "%s: both .ghost and .cumulative, expected one of them", name);
        return false;
    }
    if (!(options->momentum >= 0 && options->momentum <= 1)) {
        ng_fail(NG_EVALUE, "%s: momentum is %g, expected 0 < momentum <= 1", name,
                options->momentum);
        return false;
    }
    return ng_option_positive(name, "channels", options->channels, "channels") &&
           ng_option_range(name, "eps", options->eps, 0, HUGE_VAL);
}

ng_module *ng_batch_norm_create(ng_batch_norm_module_options options)
{
    if (!options_accepted(&options)) return NULL;
    options.eps = ng_option_or(options.eps, 1e-5);
    options.momentum = ng_option_or(options.momentum, 0.1);

    batch_norm *self = (batch_norm *)ng_module_new(&batch_norm_class);
    if (!self) return NULL;
    ng_module *base = &self->base;
    const ng_shape shape = NG_SHAPE(options.channels);
    self->options = options;
    self->gamma = self->beta = self->running_mean = self->running_var = NG_NONE;
    if (!options.no_affine) {
        self->gamma = ng_module_add_parameter(base, "weight", shape);
        self->beta = ng_module_add_parameter(base, "bias", shape);
    }
    if (!options.no_running_stats) {
        self->running_mean = ng_module_add_buffer(base, "running_mean", shape, 0);
        self->running_var = ng_module_add_buffer(base, "running_var", shape, 1);
        self->batches = ng_module_add_buffer(base, "batches", NG_SHAPE(1), 0);
    }
    return ng_module_built(base);
}
