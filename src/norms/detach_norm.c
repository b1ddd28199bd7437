/* DetachNorm: y = (x - mean) / sqrt(var + eps), the statistics constants in the gradient. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_detach_norm_new_options options;
} detach_norm;

static ng_tensor *detach_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const ng_detach_norm_new_options *options = &((const detach_norm *)self)->options;
    if (!ng_features_fit(self, x, options->dim)) return NULL;
    return ng_detach_norm(tape, x, .eps = options->eps, .mean_flows = options->mean_flows,
                          .deviation_flows = options->deviation_flows);
}

static const ng_module_class detach_norm_class = {
    .name = "DetachNorm", .size = sizeof(detach_norm), .forward = detach_norm_forward};

static const ng_setting detach_norm_settings[] = {
    {NG_OPTION(detach_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(detach_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(detach_norm, mean_flows), NG_IS_FLAG},
    {NG_OPTION(detach_norm, deviation_flows), NG_IS_FLAG},
    {0}};

ng_module *ng_detach_norm_new_with(ng_detach_norm_new_options options)
{
    return ng_module_built(ng_layer_new("ng_detach_norm_new", &detach_norm_class,
                                        detach_norm_settings, &(detach_norm){.options = options}));
}
