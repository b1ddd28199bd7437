/* Standardize: subtracts the mean of each feature and divides by its deviation, both of samples. */
#include "io/dataset.h"
#include "nn/module.h"
#include "nn/settings.h"
#include <math.h>
#include <normgrad/evaluate.h>

typedef struct {
    ng_module base;
    ng_standardize_new_options options;
    double *of_samples; /* the mean, then the deviation of each feature; NULL without .samples */
    ng_tensor *mean, *deviation; /* (features) */
} standardize_layer;

static ng_tensor *standardize_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const standardize_layer *layer = (const standardize_layer *)self;
    ng_tensor *deviation = layer->deviation;
    if (!ng_features_fit(self, x, layer->options.features)) return NULL;
    for (int64_t j = 0; j < layer->options.features; j++)
        if (isnan(ng_tensor_load(deviation, j))) {
            ng_fail(NG_ESTATE,
                    "Standardize: there are no statistics, expected .samples, or ng_module_load "
                    "before");
            return NULL;
        }
    ng_tensor *varies = ng_greater(tape, deviation, ng_zeros_like(tape, deviation));
    ng_tensor *endless = ng_full(tape, deviation->dtype, deviation->shape, HUGE_VAL);
    return ng_div(tape, ng_sub(tape, x, layer->mean),
                  ng_where(tape, varies, deviation, endless)); /* a constant feature becomes 0 */
}

static void standardize_init(ng_module *self, ng_rng *rng)
{
    const standardize_layer *layer = (const standardize_layer *)self;
    (void)rng;
    for (int64_t j = 0; j < layer->options.features && layer->of_samples; j++) {
        ng_tensor_store(layer->mean, j, layer->of_samples[j]);
        ng_tensor_store(layer->deviation, j, layer->of_samples[layer->options.features + j]);
    }
}

static void standardize_destroy(ng_module *self)
{
    ng_free(((standardize_layer *)self)->of_samples);
}

static const ng_module_class standardize_class = {.name = "Standardize",
                                                  .size = sizeof(standardize_layer),
                                                  .forward = standardize_forward,
                                                  .init = standardize_init,
                                                  .destroy = standardize_destroy};

static const ng_setting standardize_settings[] = {
    {NG_OPTION(standardize_layer, features), NG_IS_COUNT, .unit = "features", .bare = true}, {0}};

/* Whether the samples are floating rows of the features; else an error. */
static bool samples_fit(const char *name, const ng_tensor *x, int64_t features)
{
    if (!ng_readable(name, x)) return false;
    if (x->dtype == NG_I64)
        ng_fail(NG_EDTYPE, "%s: .samples is int64, expected float32 or float64", name);
    else if (x->shape.rank < 1 || x->shape.dim[x->shape.rank - 1] != features || x->size == 0)
        ng_fail(NG_ESHAPE, "%s: .samples is %s, expected (..., %lld) with a row or more", name,
                ng_shape_print(x->shape).text, (long long)features);
    else
        return true;
    return false;
}

/* Computes the statistics of the samples; false with an error. */
static bool take_sample_statistics(const char *name, standardize_layer *self,
                                   const ng_tensor *samples)
{
    const int64_t n = self->options.features;
    if (!samples_fit(name, samples, n)) return false;
    double *statistics = self->of_samples = ng_calloc(name, 2 * n, sizeof *statistics);
    if (!statistics || !ng_feature_statistics(name, samples, n, statistics, statistics + n))
        return false;
    for (int64_t j = 0; j < 2 * n; j++)
        if (!isfinite((float)statistics[j])) {
            ng_fail(NG_EVALUE, "%s: the %s of feature %lld is %g, beyond the range of float", name,
                    j < n ? "mean" : "deviation", (long long)(j % n), statistics[j]);
            return false;
        }
    return true;
}

ng_module *ng_standardize_new_with(ng_standardize_new_options options)
{
    static const char name[] = "ng_standardize_new";
    const ng_tensor *samples = options.samples;
    standardize_layer *self =
        ng_layer_new(name, &standardize_class, standardize_settings,
                     &(standardize_layer){.options.features = options.features});
    if (!self) return NULL;
    if (samples && !take_sample_statistics(name, self, samples)) {
        ng_module_free(&self->base);
        return NULL;
    }
    const ng_shape shape = NG_SHAPE(options.features);
    self->mean = ng_module_add_buffer(&self->base, "mean", shape, (double)NAN);
    self->deviation = ng_module_add_buffer(&self->base, "deviation", shape, (double)NAN);
    return ng_module_built(&self->base);
}
