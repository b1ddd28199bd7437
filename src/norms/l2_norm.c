/* L2 normalization: y = gamma x / sqrt(sum x^2 + eps) over the last dimension, or the channels. */
#include "nn/module.h"
#include "ops/op.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_l2_norm_new_options options;
    ng_tensor *gamma; /* (dim), or NG_NONE */
} l2_norm;

/* sum x^2 = dim mean(x^2): RMSNorm, times gamma / sqrt(dim). */
static ng_tensor *l2_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const l2_norm *layer = (const l2_norm *)self;
    const ng_l2_norm_new_options *options = &layer->options;
    const double n = (double)options->dim, eps = ng_exactly(options->eps / n);
    const bool turn = options->channels_first && x->shape.rank > 2;
    if (options->channels_first ? !ng_channels_fit(self, x, options->dim)
                                : !ng_features_fit(self, x, options->dim))
        return NULL;
    if (turn) x = ng_transpose(tape, x, 1, -1);
    ng_tensor *gamma = ng_parameter_value(tape, layer->gamma), *y;
    if (ng_is_none(gamma))
        y = ng_mul_scalar(tape, ng_rms_norm(tape, x, NG_NONE, eps), 1 / sqrt(n));
    else
        y = ng_rms_norm(tape, x, ng_mul_scalar(tape, gamma, 1 / sqrt(n)), eps);
    return turn ? ng_transpose(tape, y, 1, -1) : y;
}

static void l2_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_l2_norm_new_options *options = &((const l2_norm *)self)->options;
    snprintf(text, bytes, "%lld, eps=%s%s%s", (long long)options->dim,
             ng_number_print(options->eps).text, options->no_affine ? ", no affine" : "",
             options->channels_first ? ", channels first" : "");
}

static const ng_module_class l2_norm_class = {.name = "L2Norm",
                                              .size = sizeof(l2_norm),
                                              .forward = l2_norm_forward,
                                              .describe = l2_norm_describe};

ng_module *ng_l2_norm_new_with(ng_l2_norm_new_options options)
{
    static const char name[] = "ng_l2_norm_new";
    options.eps = ng_option(options.eps, 1e-10);
    if (!ng_option_positive(name, "dim", options.dim, "features") ||
        !ng_norm_eps_ok(name, options.eps) ||
        !ng_option_apart(name, "no_affine", options.no_affine, "scale",
                         ng_option_given(options.scale)) ||
        !ng_option_range(name, "scale", options.scale, -HUGE_VAL, HUGE_VAL))
        return NULL;
    l2_norm *self = (l2_norm *)ng_module_new(&l2_norm_class);
    if (!self) return NULL;
    self->options = options;
    self->gamma = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.dim),
                                          .value = ng_option(options.scale, 1),
                                          .left_out = options.no_affine);
    return ng_module_built(&self->base);
}
