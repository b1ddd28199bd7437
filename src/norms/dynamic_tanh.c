/* DynamicTanh: y = gamma tanh(alpha x) + beta, in place of a norm, without statistics. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_dynamic_tanh_new_options options;
    ng_tensor *alpha;        /* (1) */
    ng_tensor *gamma, *beta; /* (dim), or NG_NONE */
} dynamic_tanh_layer;

static ng_tensor *dynamic_tanh_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const dynamic_tanh_layer *layer = (const dynamic_tanh_layer *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    return ng_dynamic_tanh(tape, x, ng_parameter_value(tape, layer->alpha),
                           ng_parameter_value(tape, layer->gamma),
                           ng_parameter_value(tape, layer->beta));
}

static void dynamic_tanh_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_dynamic_tanh_new_options *options = &((const dynamic_tanh_layer *)self)->options;
    snprintf(text, bytes, "%lld, alpha=%s%s", (long long)options->dim,
             ng_number_print(options->alpha).text, options->no_affine ? ", no affine" : "");
}

static const ng_module_class dynamic_tanh_class = {.name = "DynamicTanh",
                                                   .size = sizeof(dynamic_tanh_layer),
                                                   .forward = dynamic_tanh_forward,
                                                   .describe = dynamic_tanh_describe};

ng_module *ng_dynamic_tanh_new_with(ng_dynamic_tanh_new_options options)
{
    static const char name[] = "ng_dynamic_tanh_new";
    options.alpha = ng_option(options.alpha, 0.5);
    if (!ng_option_positive(name, "dim", options.dim, "features")) return NULL;
    if (!ng_option_range(name, "alpha", options.alpha, -HUGE_VAL, HUGE_VAL)) return NULL;

    dynamic_tanh_layer *self = (dynamic_tanh_layer *)ng_module_new(&dynamic_tanh_class);
    if (!self) return NULL;
    ng_module *base = &self->base;
    const ng_shape row = NG_SHAPE(options.dim);
    self->options = options;
    self->alpha = ng_module_add_parameter(base, "alpha", NG_SHAPE(1), .value = options.alpha);
    self->gamma =
        ng_module_add_parameter(base, "weight", row, .value = 1, .left_out = options.no_affine);
    self->beta = ng_module_add_parameter(base, "bias", row, .left_out = options.no_affine);
    return ng_module_built(base);
}
