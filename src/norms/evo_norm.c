/* EvoNorm: normalization and activation in one formula. B0 uses the variances of the batch and of
 * each sample, S0 that of groups of a sample's channels. */
#include "norms/batch_state.h"
#include "ops/norm.h"

typedef struct {
    ng_module base;
    ng_evo_norm_new_options options;
    ng_tensor *gamma, *beta, *v; /* (channels) */
    ng_tensor *running_var;      /* (channels), of B0 */
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

/* ---- B0: y = x / max(deviation of batch, v x + deviation of sample) * gamma + beta ---- */

static ng_tensor *evo_b0_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const evo_norm *layer = (const evo_norm *)self;
    const int64_t channels = layer->options.channels;
    if (!ng_channels_fit(self, x, channels)) return NULL;
    const bool training = self->training && !self->frozen;
    const ng_shape s = x->shape;
    const int64_t count = s.dim[0] * ng_shape_span(s, 2, s.rank);
    if (training && count < 2) {
        ng_fail(NG_ESHAPE, "EvoNormB0: x is %s, expected more than one value per channel",
                ng_shape_print(s).text);
        return NULL;
    }
    x = ng_by_positions(tape, x);
    if (!x) return NULL;
    ng_tensor *var = training ? ng_variance(tape, x, .axes = NG_AXES(0, 2)) : layer->running_var;
    ng_tensor *sample_var = ng_variance(tape, x, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *batch = evo_deviation(layer, tape, ng_reshape(tape, var, NG_SHAPE(channels, 1)));
    ng_tensor *sample =
        ng_add(tape, evo_slope(layer, tape, x), evo_deviation(layer, tape, sample_var));
    ng_tensor *y = evo_affine(layer, tape, ng_div(tape, x, ng_maximum(tape, batch, sample)), s);
    if (!y || !training || !ng_tape_is_live(tape)) return y;
    ng_running_move(layer->running_var, var, (double)count / (double)(count - 1),
                    layer->options.momentum);
    return y;
}

/* ---- S0: y = x sigmoid(v x) / deviation of the group * gamma + beta ---- */

static ng_tensor *evo_s0_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const evo_norm *layer = (const evo_norm *)self;
    if (!ng_channels_fit(self, x, layer->options.channels)) return NULL;
    const ng_shape s = x->shape;
    const int64_t each = ng_shape_span(s, 1, s.rank) / layer->options.groups;
    const ng_shape parts = NG_SHAPE(s.dim[0], layer->options.groups, each);
    ng_tensor *var =
        ng_variance(tape, ng_reshape(tape, x, parts), .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *swish = ng_mul(tape, x, ng_sigmoid(tape, evo_slope(layer, tape, x)));
    ng_tensor *y = ng_div(tape, ng_reshape(tape, swish, parts), evo_deviation(layer, tape, var));
    return evo_affine(layer, tape, y, s);
}

/* ---- The layer ---- */

static const ng_module_class evo_b0_class = {
    .name = "EvoNormB0", .size = sizeof(evo_norm), .forward = evo_b0_forward};

static const ng_module_class evo_s0_class = {
    .name = "EvoNormS0", .size = sizeof(evo_norm), .forward = evo_s0_forward};

static const ng_setting evo_norm_settings[] = {
    {NG_OPTION(evo_norm, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(evo_norm, groups), NG_IS_COUNT_OR_0, .unit = "groups", .divides = "channels",
     .excludes = "momentum"},
    {NG_OPTION(evo_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(evo_norm, momentum), NG_IS_FRACTION, .standard = 0.1},
    {0}};

ng_module *ng_evo_norm_new_with(ng_evo_norm_new_options options)
{
    const bool grouped = options.groups != 0;
    evo_norm *self = ng_layer_new("ng_evo_norm_new", grouped ? &evo_s0_class : &evo_b0_class,
                                  evo_norm_settings, &(evo_norm){.options = options});
    if (!self) return NULL;
    const ng_shape shape = NG_SHAPE(options.channels);
    self->gamma = ng_module_add_parameter(&self->base, "weight", shape, .value = 1);
    self->beta = ng_module_add_parameter(&self->base, "bias", shape);
    self->v = ng_module_add_parameter(&self->base, "v", shape, .value = 1);
    if (!grouped) self->running_var = ng_module_add_buffer(&self->base, "running_var", shape, 1);
    return ng_module_built(&self->base);
}
