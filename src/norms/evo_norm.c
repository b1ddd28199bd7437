/* EvoNorm: normalization and activation in one formula. B0 to B2 use the variance of the batch and
 * one of each sample, S0 to S2 that of groups of a sample's channels. */
#include "norms/batch_state.h"
#include "ops/norm.h"

typedef struct {
    ng_module base;
    ng_evo_norm_new_options options;
    ng_tensor *gamma, *beta; /* (channels) */
    ng_tensor *v;            /* (channels), of B0 and S0 */
    ng_tensor *running_var;  /* (channels), of B0 to B2 */
} evo_norm;

/* y * gamma + beta, in this shape. */
static ng_tensor *evo_affine(const evo_norm *layer, ng_tape *tape, ng_tensor *y, ng_shape shape)
{
    return ng_affine_composed(tape, ng_reshape(tape, y, shape),
                              ng_parameter_value(tape, layer->gamma),
                              ng_parameter_value(tape, layer->beta));
}

/* v x, with a v for each channel. */
static ng_tensor *evo_slope(const evo_norm *layer, ng_tape *tape, ng_tensor *x)
{
    return ng_mul(tape, x, ng_per_channel(tape, ng_parameter_value(tape, layer->v), x));
}

/* sqrt(var + eps) */
static ng_tensor *evo_deviation(const evo_norm *layer, ng_tape *tape, ng_tensor *var)
{
    return ng_sqrt(tape, ng_add_scalar(tape, var, layer->options.eps));
}

/* The same of x over its last axis; unless centred, sqrt(mean(x^2) + eps). */
static ng_tensor *evo_spread(const evo_norm *layer, ng_tape *tape, ng_tensor *x, bool centred)
{
    if (!centred) x = ng_square(tape, x);
    const ng_axes axes = NG_AXES(-1);
    return evo_deviation(layer, tape,
                         centred ? ng_variance(tape, x, .axes = axes, .keepdim = true)
                                 : ng_mean(tape, x, .axes = axes, .keepdim = true));
}

/* ---- B: y = x / max(deviation of batch, f(x, spread of sample)) * gamma + beta ---- */

/* f: v x + deviation, (x + 1) rms or rms - x. */
static ng_tensor *evo_bound(const evo_norm *layer, ng_tape *tape, ng_tensor *x)
{
    const ng_evo_norm_kind kind = layer->options.kind;
    ng_tensor *spread = evo_spread(layer, tape, x, kind == NG_EVO_0);
    if (kind == NG_EVO_0) return ng_add(tape, evo_slope(layer, tape, x), spread);
    if (kind == NG_EVO_1) return ng_mul(tape, ng_add_scalar(tape, x, 1), spread);
    return ng_sub(tape, spread, x);
}

static ng_tensor *evo_b_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const evo_norm *layer = (const evo_norm *)self;
    const int64_t channels = layer->options.channels;
    if (!ng_channels_fit(self, x, channels)) return NULL;
    const bool training = self->training && !self->frozen;
    const ng_shape s = x->shape;
    const int64_t count = s.dim[0] * ng_shape_span(s, 2, s.rank);
    if (training && count < 2) {
        ng_fail(NG_ESHAPE, "%s: x is %s, expected more than one value per channel",
                self->type->name, ng_shape_print(s).text);
        return NULL;
    }
    x = ng_by_positions(tape, x);
    if (!x) return NULL;
    ng_tensor *var = training ? ng_variance(tape, x, .axes = NG_AXES(0, 2)) : layer->running_var;
    ng_tensor *sample = evo_bound(layer, tape, x);
    ng_tensor *batch = evo_deviation(layer, tape, ng_reshape(tape, var, NG_SHAPE(channels, 1)));
    ng_tensor *y = evo_affine(layer, tape, ng_div(tape, x, ng_maximum(tape, batch, sample)), s);
    if (!y || !training || !ng_tape_is_live(tape)) return y;
    ng_running_move(layer->running_var, var, (double)count / (double)(count - 1),
                    layer->options.momentum);
    return y;
}

/* ---- S: y = f(x) / spread of group * gamma + beta, f(x) = x sigmoid(v x) or x sigmoid(x) ---- */

static ng_tensor *evo_s_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const evo_norm *layer = (const evo_norm *)self;
    const ng_evo_norm_kind kind = layer->options.kind;
    if (!ng_channels_fit(self, x, layer->options.channels)) return NULL;
    const ng_shape s = x->shape;
    const int64_t each = ng_shape_span(s, 1, s.rank) / layer->options.groups;
    const ng_shape parts = NG_SHAPE(s.dim[0], layer->options.groups, each);
    ng_tensor *spread = evo_spread(layer, tape, ng_reshape(tape, x, parts), kind != NG_EVO_2);
    ng_tensor *swish = kind == NG_EVO_0
                           ? ng_mul(tape, x, ng_sigmoid(tape, evo_slope(layer, tape, x)))
                           : ng_silu(tape, x);
    return evo_affine(layer, tape, ng_div(tape, ng_reshape(tape, swish, parts), spread), s);
}

/* ---- The layer ---- */

#define EVO_CLASSES(label, run)                                                                    \
    {                                                                                              \
        {.name = label "0", .size = sizeof(evo_norm), .forward = run},                             \
            {.name = label "1", .size = sizeof(evo_norm), .forward = run},                         \
        {                                                                                          \
            .name = label "2", .size = sizeof(evo_norm), .forward = run                            \
        }                                                                                          \
    }
static const ng_module_class evo_classes[2][3] = {EVO_CLASSES("EvoNormB", evo_b_forward),
                                                  EVO_CLASSES("EvoNormS", evo_s_forward)};
#undef EVO_CLASSES

static const char *const evo_kind_names[] = {"0", "1", "2", NULL};
static const ng_setting evo_norm_settings[] = {
    {NG_OPTION(evo_norm, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(evo_norm, groups), NG_IS_COUNT_OR_0, .unit = "groups", .divides = "channels",
     .excludes = "momentum"},
    {NG_OPTION(evo_norm, kind), NG_IS_CHOICE, .unit = "ng_evo_norm_kind", .choices = evo_kind_names,
     .hidden = true},
    {NG_OPTION(evo_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(evo_norm, momentum), NG_IS_FRACTION, .standard = 0.1},
    {0}};

ng_module *ng_evo_norm_new_with(ng_evo_norm_new_options options)
{
    const bool grouped = options.groups != 0;
    const unsigned kind = (unsigned)options.kind;
    evo_norm *self = ng_layer_new("ng_evo_norm_new", &evo_classes[grouped][kind < 3 ? kind : 0],
                                  evo_norm_settings, &(evo_norm){.options = options});
    if (!self) return NULL;
    const ng_shape shape = NG_SHAPE(options.channels);
    self->gamma = ng_module_add_parameter(&self->base, "weight", shape, .value = 1);
    self->beta = ng_module_add_parameter(&self->base, "bias", shape);
    self->v = ng_module_add_parameter(&self->base, "v", shape, .value = 1,
                                      .left_out = options.kind != NG_EVO_0);
    if (!grouped) self->running_var = ng_module_add_buffer(&self->base, "running_var", shape, 1);
    return ng_module_built(&self->base);
}
