/* InstanceNorm: each channel of each sample normalized over its positions; in evaluation by running
 * statistics if it keeps them. */
#include "norms/batch_state.h"
#include "norms/film.h"
#include "ops/norm.h"

typedef struct {
    ng_module base;
    ng_instance_norm_new_options options;
    ng_batch_state state;  /* with a running variance */
    ng_module *modulation; /* with a condition: FiLM */
} instance_norm_layer;

/* The output before a condition scales and shifts it. */
static ng_tensor *by_instance(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const instance_norm_layer *layer = (const instance_norm_layer *)self;
    const ng_instance_norm_new_options *options = &layer->options;
    const ng_batch_state *state = &layer->state;
    ng_tensor *gamma = ng_parameter_value(tape, state->gamma),
              *beta = ng_parameter_value(tape, state->beta);
    if (!ng_channels_fit(self, x, options->channels)) return NULL;
    if (options->running_stats && (!self->training || self->frozen))
        return ng_batch_norm(tape, x, gamma, beta, state->mean, state->spread, .eps = options->eps);
    if (ng_shape_span(x->shape, 2, x->shape.rank) == 1) {
        ng_fail(NG_ESHAPE, "InstanceNorm: x is %s, expected more than one position a channel",
                ng_shape_print(x->shape).text);
        return NULL;
    }
    ng_tensor *y = ng_instance_norm(tape, x, gamma, beta, .eps = options->eps);
    if (y && options->running_stats && !ng_batch_state_move(state, tape, x, options->momentum))
        return NULL;
    return y;
}

/* sqrt(var + eps) xhat + mean, by the positions of the style s (N, C, ...). */
static ng_tensor *in_style(ng_tape *tape, ng_tensor *xhat, ng_tensor *s, double eps)
{
    ng_shape expected = s->shape;
    for (int i = 0; i < 2; i++) expected.dim[i] = xhat->shape.dim[i];
    if (expected.rank < 2) expected.rank = 2;
    if (!ng_has_shape("InstanceNorm", "style", s, expected)) return NULL;
    s = ng_by_positions(tape, s);
    ng_tensor *mean = ng_mean(tape, s, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *var = ng_variance(tape, s, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *scale = ng_sqrt(tape, ng_add_scalar(tape, var, eps));
    ng_tensor *y = ng_add(tape, ng_mul(tape, ng_by_positions(tape, xhat), scale), mean);
    return ng_reshape(tape, y, xhat->shape);
}

static ng_tensor *instance_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    ng_tensor *y = by_instance(self, tape, in->x);
    const instance_norm_layer *layer = (const instance_norm_layer *)self;
    if (y && layer->options.style) return in_style(tape, y, in->style, layer->options.eps);
    return ng_modulate(layer->modulation, tape, y, in);
}

static const ng_module_class instance_norm_class = {.name = "InstanceNorm",
                                                    .size = sizeof(instance_norm_layer),
                                                    .forward_with = instance_norm_forward};

static const ng_setting instance_norm_settings[] = {
    {NG_OPTION(instance_norm_layer, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(instance_norm_layer, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(instance_norm_layer, running_stats), NG_IS_FLAG},
    {NG_OPTION(instance_norm_layer, momentum), NG_IS_FRACTION, .standard = 0.1,
     .needs = "running_stats"},
    {NG_OPTION(instance_norm_layer, no_affine), NG_IS_FLAG},
    {NG_OPTION(instance_norm_layer, condition), NG_IS_COUNT_OR_0, .unit = "features",
     .excludes = "no_affine"},
    {NG_OPTION(instance_norm_layer, style), NG_IS_FLAG, .excludes = "no_affine condition"},
    {0}};

ng_module *ng_instance_norm_new_with(ng_instance_norm_new_options options)
{
    instance_norm_layer *self =
        ng_layer_new("ng_instance_norm_new", &instance_norm_class, instance_norm_settings,
                     &(instance_norm_layer){.options = options});
    if (!self) return NULL;
    self->base.needs = options.style ? NG_INPUT_STYLE : 0;
    const bool left_out = options.no_affine || options.condition || options.style;
    self->state = ng_batch_state_add(&self->base, options.channels, "running_var", left_out,
                                     !options.running_stats);
    self->modulation =
        ng_add_modulation(&self->base, (ng_film_new_options){.channels = options.channels,
                                                             .condition = options.condition});
    return ng_module_built(&self->base);
}
