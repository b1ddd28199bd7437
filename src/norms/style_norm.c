/* Adaptive instance normalization: y = deviation(s) xhat + mean(s) of a style s, the condition. */
#include "nn/module.h"
#include "ops/op.h"

typedef struct {
    ng_module base;
    ng_style_norm_new_options options;
} style_norm;

/* s (N, C, ...) must have x's samples and channels, and any positions. */
static bool style_fits(const ng_tensor *x, const ng_tensor *s)
{
    if (s->shape.rank >= 2 && s->shape.dim[0] == x->shape.dim[0] &&
        s->shape.dim[1] == x->shape.dim[1])
        return true;
    ng_fail(NG_ESHAPE, "StyleNorm: the style is %s, expected (%lld, %lld, ...)",
            ng_shape_print(s->shape).text, (long long)x->shape.dim[0], (long long)x->shape.dim[1]);
    return false;
}

static ng_tensor *style_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x, ng_tensor *s)
{
    const ng_style_norm_new_options *options = &((const style_norm *)self)->options;
    if (!ng_channels_fit(self, x, options->channels) || !style_fits(x, s)) return NULL;
    const int64_t samples = x->shape.dim[0], positions = ng_shape_span(s->shape, 2, s->shape.rank);
    ng_shape each = NG_SHAPE(samples, options->channels);
    while (each.rank < x->shape.rank) each.dim[each.rank++] = 1;
    ng_tensor *rows = ng_reshape(tape, s, NG_SHAPE(samples, options->channels, positions));
    ng_tensor *mean = ng_mean(tape, rows, .axes = NG_AXES(-1));
    ng_tensor *var = ng_variance(tape, rows, .axes = NG_AXES(-1));
    ng_tensor *deviation = ng_sqrt(tape, ng_add_scalar(tape, var, options->eps));
    ng_tensor *xhat = ng_instance_norm(tape, x, NG_NONE, NG_NONE, options->eps);
    return ng_add(tape, ng_mul(tape, xhat, ng_reshape(tape, deviation, each)),
                  ng_reshape(tape, mean, each));
}

static void style_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_style_norm_new_options *options = &((const style_norm *)self)->options;
    snprintf(text, bytes, "%lld, eps=%s", (long long)options->channels,
             ng_number_print(options->eps).text);
}

static const ng_module_class style_norm_class = {.name = "StyleNorm",
                                                 .size = sizeof(style_norm),
                                                 .forward_conditioned = style_norm_forward,
                                                 .describe = style_norm_describe};

ng_module *ng_style_norm_new_with(ng_style_norm_new_options options)
{
    options.eps = ng_option(options.eps, 1e-5);
    if (!ng_option_positive("ng_style_norm_new", "channels", options.channels, "channels") ||
        !ng_norm_eps_ok("ng_style_norm_new", options.eps))
        return NULL;
    style_norm *self = (style_norm *)ng_module_new(&style_norm_class);
    if (!self) return NULL;
    self->options = options;
    return ng_module_built(&self->base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_MODULE(case_style_norm, ng_style_norm_new(3))

const ng_case ng_layer_cases_style_norm[] = {
    NG_CASE_LAYER("StyleNorm", case_style_norm, NG_CASE_ANY("x", 2, 3, 2, 2),
                  NG_CASE_ANY("style", 2, 3, 5)),
};
const int ng_layer_cases_style_norm_count = NG_CASE_COUNT(ng_layer_cases_style_norm);
