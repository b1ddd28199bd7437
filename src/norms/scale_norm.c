/* ScaleNorm: y = g x / ||x|| over the last dimension, one learned length g. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_scale_norm_new_options options;
    ng_tensor *g; /* (1) */
} scale_norm;

static ng_tensor *scale_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const scale_norm *layer = (const scale_norm *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    return ng_scale_norm(tape, x, ng_parameter_value(tape, layer->g), layer->options.eps);
}

static void scale_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_scale_norm_new_options *options = &((const scale_norm *)self)->options;
    snprintf(text, bytes, "%lld, eps=%s", (long long)options->dim,
             ng_number_print(options->eps).text);
}

static const ng_module_class scale_norm_class = {.name = "ScaleNorm",
                                                 .size = sizeof(scale_norm),
                                                 .forward = scale_norm_forward,
                                                 .describe = scale_norm_describe};

ng_module *ng_scale_norm_new_with(ng_scale_norm_new_options options)
{
    options.eps = ng_option(options.eps, 1e-10);
    if (!ng_option_positive("ng_scale_norm_new", "dim", options.dim, "features") ||
        !ng_norm_eps_ok("ng_scale_norm_new", options.eps) ||
        !ng_option_range("ng_scale_norm_new", "length", options.length, -HUGE_VAL, HUGE_VAL))
        return NULL;

    scale_norm *self = (scale_norm *)ng_module_new(&scale_norm_class);
    if (!self) return NULL;
    self->options = options;
    self->g =
        ng_module_add_parameter(&self->base, "g", NG_SHAPE(1),
                                .value = ng_option(options.length, sqrt((double)options.dim)));
    return ng_module_built(&self->base);
}
