/* Linear: y = x weight^T + bias. */
#include "nn/fold.h"
#include <math.h>

typedef struct {
    ng_module base;
    int64_t in;
    ng_linear_new_options options;
    ng_tensor *weight; /* (out, in) */
    ng_tensor *bias;   /* (out), or NG_NONE */
} linear;

static ng_tensor *linear_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const linear *layer = (const linear *)self;
    return ng_linear(tape, x, ng_parameter_value(tape, layer->weight),
                     ng_parameter_value(tape, layer->bias));
}

static void linear_init(ng_module *self, ng_rng *rng)
{
    linear *layer = (linear *)self;
    const ng_linear_new_options *options = &layer->options;
    ng_fill_init(layer->weight, options->init, options->init_value, rng);
    if (options->no_bias) return;
    const double bound = options->init == NG_INIT_DEFAULT ? 1 / sqrt((double)layer->in) : 0;
    ng_fill_uniform(layer->bias, -bound, bound, rng);
}

static const ng_module_class linear_class = {
    .name = "Linear", .size = sizeof(linear), .forward = linear_forward, .init = linear_init};

bool ng_linear_part(ng_module *module, ng_fold_part *part)
{
    linear *layer = (linear *)module;
    if (module->type != &linear_class) return false;
    *part = (ng_fold_part){.weight = &layer->weight,
                           .bias = &layer->bias,
                           .left_out = &layer->options.no_bias,
                           .features = layer->options.out};
    return true;
}

static const char *const init_names[] = {
    "default",       "kaiming_uniform", "kaiming_normal", "xavier_uniform",
    "xavier_normal", "normal",          "constant",       NULL};
static const ng_setting linear_settings[] = {
    {NG_MEMBER(linear, in), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(linear, out), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(linear, no_bias), NG_IS_FLAG},
    {NG_OPTION(linear, init), NG_IS_CHOICE, .unit = "ng_init_kind", .choices = init_names,
     .quiet = true},
    {NG_OPTION(linear, init_value), NG_IS_FINITE, .needs = "init",
     .when = 1 << NG_INIT_NORMAL | 1 << NG_INIT_CONSTANT},
    {0}};

ng_module *ng_linear_new_with(int64_t in, ng_linear_new_options options)
{
    static const char name[] = "ng_linear_new";
    const bool normal = options.init == NG_INIT_NORMAL;
    if (normal && !ng_option_given(options.init_value)) {
        ng_fail(NG_EVALUE, "%s: init_value is 0, expected a deviation (or NG_ZERO)", name);
        return NULL;
    }
    if (normal && !ng_option_range(name, "init_value", options.init_value, 0, HUGE_VAL))
        return NULL;
    linear *self =
        ng_layer_new(name, &linear_class, linear_settings, &(linear){.in = in, .options = options});
    if (!self) return NULL;
    self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.out, in));
    self->bias = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(options.out),
                                         .left_out = options.no_bias);
    return ng_module_built(&self->base);
}
