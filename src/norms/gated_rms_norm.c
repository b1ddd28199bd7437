/* Gated RMSNorm: y = norm(x silu(z)) gamma, or norm(x) gamma silu(z), z being the input .gate. */
#include "nn/module.h"
#include "ops/norm.h"

typedef struct {
    ng_module base;
    ng_gated_rms_norm_new_options options;
    ng_tensor *gamma; /* (dim) */
} gated_rms_norm;

static ng_tensor *gated_rms_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const gated_rms_norm *layer = (const gated_rms_norm *)self;
    ng_tensor *x = in->x;
    if (!ng_features_fit(self, x, layer->options.dim) ||
        !ng_has_shape("GatedRMSNorm", "gate", in->gate, x->shape))
        return NULL;
    const ng_gated_rms_norm_new_options *o = &layer->options;
    ng_tensor *gate = ng_silu(tape, in->gate), *gamma = ng_parameter_value(tape, layer->gamma);
    if (!o->norm_first) x = ng_mul(tape, x, gate);
    ng_tensor *y = ng_rms_norm_of_groups(tape, x, gamma, o->groups, o->eps);
    return o->norm_first ? ng_mul(tape, y, gate) : y;
}

static const ng_module_class gated_rms_norm_class = {.name = "GatedRMSNorm",
                                                     .size = sizeof(gated_rms_norm),
                                                     .forward_with = gated_rms_norm_forward,
                                                     .needs = NG_INPUT_GATE};

static const ng_setting gated_rms_norm_settings[] = {
    {NG_OPTION(gated_rms_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(gated_rms_norm, groups), NG_IS_COUNT, .standard = 1, .unit = "groups",
     .divides = "dim"},
    {NG_OPTION(gated_rms_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(gated_rms_norm, norm_first), NG_IS_FLAG},
    {0}};

ng_module *ng_gated_rms_norm_new_with(ng_gated_rms_norm_new_options options)
{
    gated_rms_norm *self =
        ng_layer_new("ng_gated_rms_norm_new", &gated_rms_norm_class, gated_rms_norm_settings,
                     &(gated_rms_norm){.options = options});
    if (!self) return NULL;
    self->gamma = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.dim), .value = 1);
    return ng_module_built(&self->base);
}
