/* LocalResponseNorm: y = x / (k + alpha / size sum x_j^2)^beta over neighbouring channels. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_local_response_norm_options options;
} local_response_norm;

static ng_tensor *local_response_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ng_local_response_norm_with(tape, x, ((const local_response_norm *)self)->options);
}

static const ng_module_class local_response_norm_class = {.name = "LocalResponseNorm",
                                                          .size = sizeof(local_response_norm),
                                                          .forward = local_response_norm_forward};

static const ng_setting local_response_norm_settings[] = {
    {NG_OPTION(local_response_norm, size), NG_IS_COUNT, .most = INT32_MAX, .unit = "channels",
     .bare = true},
    {NG_OPTION(local_response_norm, alpha), NG_IS_NOT_NEGATIVE, .standard = 1e-4},
    {NG_OPTION(local_response_norm, beta), NG_IS_NOT_NEGATIVE, .standard = 0.75},
    {NG_OPTION(local_response_norm, k), NG_IS_NOT_NEGATIVE, .standard = 1},
    {0}};

ng_module *ng_local_response_norm_new_with(ng_local_response_norm_new_options options)
{
    const ng_local_response_norm_options of_op = {
        .alpha = options.alpha, .beta = options.beta, .k = options.k, .size = options.size};
    return ng_module_built(ng_layer_new("ng_local_response_norm_new", &local_response_norm_class,
                                        local_response_norm_settings,
                                        &(local_response_norm){.options = of_op}));
}
