/* Linear: y = x weight^T + bias. */
#include "nn/module.h"
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
    ng_init(layer->weight, options->init, options->init_value, rng);
    if (options->no_bias) return;
    const double bound = options->init == NG_INIT_DEFAULT ? 1 / sqrt((double)layer->in) : 0;
    ng_fill_uniform(layer->bias, -bound, bound, rng);
}

static void linear_describe(const ng_module *self, char *text, size_t bytes)
{
    const linear *layer = (const linear *)self;
    const ng_linear_new_options *options = &layer->options;
    static const char *const inits[] = {"",
                                        ", init=kaiming_uniform",
                                        ", init=kaiming_normal",
                                        ", init=xavier_uniform",
                                        ", init=xavier_normal",
                                        ", init=normal ",
                                        ", init=constant "};
    const bool valued = options->init == NG_INIT_NORMAL || options->init == NG_INIT_CONSTANT;
    snprintf(text, bytes, "%lld, %lld%s%s%s", (long long)layer->in, (long long)options->out,
             options->no_bias ? ", no bias" : "", inits[options->init],
             valued ? ng_number_print(options->init_value).text : "");
}

static const ng_module_class linear_class = {.name = "Linear",
                                             .size = sizeof(linear),
                                             .forward = linear_forward,
                                             .init = linear_init,
                                             .describe = linear_describe};

static bool init_accepted(ng_init_kind kind, double value)
{
    static const char where[] = "with NG_INIT_NORMAL or _CONSTANT";
    const bool takes = kind == NG_INIT_NORMAL || kind == NG_INIT_CONSTANT;
    if ((unsigned)kind > NG_INIT_CONSTANT) {
        ng_fail(NG_EVALUE, "ng_linear_new: init is %d, expected an ng_init_kind", (int)kind);
        return false;
    }
    if (!ng_option_idle("ng_linear_new", "init_value", !takes && ng_option_given(value), where))
        return false;
    if (kind == NG_INIT_NORMAL && !ng_option_given(value)) {
        ng_fail(NG_EVALUE, "ng_linear_new: init_value is 0, expected a deviation (or NG_ZERO)");
        return false;
    }
    const double low = kind == NG_INIT_CONSTANT ? -HUGE_VAL : 0;
    return ng_option_range("ng_linear_new", "init_value", value, low, HUGE_VAL);
}

ng_module *ng_linear_new_with(int64_t in, ng_linear_new_options options)
{
    if (!ng_option_positive("ng_linear_new", "in", in, "features")) return NULL;
    if (!ng_option_positive("ng_linear_new", "out", options.out, "features")) return NULL;
    if (!init_accepted(options.init, options.init_value)) return NULL;

    linear *self = (linear *)ng_module_new(&linear_class);
    if (!self) return NULL;
    self->in = in;
    self->options = options;
    self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.out, in));
    self->bias = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(options.out),
                                         .left_out = options.no_bias);
    return ng_module_built(&self->base);
}
