/* GroupNorm: the channels of a sample normalized in groups; InstanceNorm: each by itself. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    int64_t channels, groups;
    double eps;
    ng_tensor *gamma, *beta; /* (channels), or NG_NONE */
} group_norm_layer;

static ng_tensor *group_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const group_norm_layer *layer = (const group_norm_layer *)self;
    if (!ng_channels_fit(self, x, layer->channels)) return NULL;
    return ng_group_norm(tape, x, ng_parameter_value(tape, layer->gamma),
                         ng_parameter_value(tape, layer->beta), .groups = layer->groups,
                         .eps = layer->eps);
}

static ng_tensor *instance_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const group_norm_layer *layer = (const group_norm_layer *)self;
    if (!ng_channels_fit(self, x, layer->channels)) return NULL;
    if (ng_shape_span(x->shape, 2, x->shape.rank) == 1) {
        ng_fail(NG_ESHAPE, "InstanceNorm: x is %s, expected more than one position a channel",
                ng_shape_print(x->shape).text);
        return NULL;
    }
    return ng_instance_norm(tape, x, ng_parameter_value(tape, layer->gamma),
                            ng_parameter_value(tape, layer->beta), layer->eps);
}

static void group_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const group_norm_layer *layer = (const group_norm_layer *)self;
    snprintf(text, bytes, "%lld, groups=%lld, eps=%s%s", (long long)layer->channels,
             (long long)layer->groups, ng_number_print(layer->eps).text,
             ng_is_none(layer->gamma) ? ", no affine" : "");
}

static void instance_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const group_norm_layer *layer = (const group_norm_layer *)self;
    snprintf(text, bytes, "%lld, eps=%s%s", (long long)layer->channels,
             ng_number_print(layer->eps).text, ng_is_none(layer->gamma) ? "" : ", affine");
}

static const ng_module_class group_norm_class = {.name = "GroupNorm",
                                                 .size = sizeof(group_norm_layer),
                                                 .forward = group_norm_forward,
                                                 .describe = group_norm_describe};

static const ng_module_class instance_norm_class = {.name = "InstanceNorm",
                                                    .size = sizeof(group_norm_layer),
                                                    .forward = instance_norm_forward,
                                                    .describe = instance_norm_describe};

static ng_module *group_norm_create(const char *function, const ng_module_class *type,
                                    int64_t channels, int64_t groups, double eps, bool affine)
{
    eps = ng_option(eps, 1e-5);
    if (!ng_option_positive(function, "channels", channels, "channels") ||
        !ng_groups_divide(function, groups, channels) || !ng_norm_eps_ok(function, eps))
        return NULL;
    group_norm_layer *self = (group_norm_layer *)ng_module_new(type);
    if (!self) return NULL;
    const ng_shape shape = NG_SHAPE(channels);
    self->channels = channels;
    self->groups = groups;
    self->eps = eps;
    self->gamma =
        ng_module_add_parameter(&self->base, "weight", shape, .value = 1, .left_out = !affine);
    self->beta = ng_module_add_parameter(&self->base, "bias", shape, .left_out = !affine);
    return ng_module_built(&self->base);
}

ng_module *ng_group_norm_new_with(int64_t groups, ng_group_norm_new_options options)
{
    return group_norm_create("ng_group_norm_new", &group_norm_class, options.channels, groups,
                             options.eps, !options.no_affine);
}

ng_module *ng_instance_norm_new_with(ng_instance_norm_new_options options)
{
    return group_norm_create("ng_instance_norm_new", &instance_norm_class, options.channels,
                             options.channels, options.eps, options.affine);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_MODULE(case_group_norm_features, ng_group_norm_new(2, 6))
NG_CASE_MODULE(case_group_norm, ng_group_norm_new(2, 4))
NG_CASE_MODULE(case_group_norm_no_affine, ng_group_norm_new(2, 4, .no_affine = true))
NG_CASE_MODULE(case_instance_norm, ng_instance_norm_new(3))
NG_CASE_MODULE(case_instance_norm_affine, ng_instance_norm_new(3, .affine = true))

const ng_case ng_layer_cases_group_norm[] = {
    NG_CASE_LAYER("GroupNorm (N, C)", case_group_norm_features, NG_CASE_ANY("x", 3, 6)),
    NG_CASE_LAYER("GroupNorm (N, C, L)", case_group_norm, NG_CASE_ANY("x", 2, 4, 3)),
    NG_CASE_LAYER("GroupNorm (N, C, H, W)", case_group_norm, NG_CASE_ANY("x", 2, 4, 2, 2)),
    NG_CASE_LAYER("GroupNorm (no affine)", case_group_norm_no_affine, NG_CASE_ANY("x", 2, 4, 3)),
    NG_CASE_LAYER("InstanceNorm (N, C, L)", case_instance_norm, NG_CASE_ANY("x", 2, 3, 4)),
    NG_CASE_LAYER("InstanceNorm (affine)", case_instance_norm_affine, NG_CASE_ANY("x", 2, 3, 2, 2)),
};
const int ng_layer_cases_group_norm_count = NG_CASE_COUNT(ng_layer_cases_group_norm);
