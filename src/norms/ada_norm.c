/* AdaNorm: y = C (1 - k xhat) * xhat, the factor held constant in the gradient. Xu et al. 2019. */
#include "nn/module.h"
#include "nn/settings.h"

typedef struct {
    ng_module base;
    ng_ada_norm_new_options options;
} ada_norm;

static ng_tensor *ada_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const ng_ada_norm_new_options *options = &((const ada_norm *)self)->options;
    if (!ng_features_fit(self, x, options->dim)) return NULL;
    ng_tensor *xhat = ng_layer_norm(tape, x, NG_NONE, NG_NONE, .eps = options->eps);
    if (!xhat) return NULL;
    ng_tensor *base = options->raw ? x : xhat;
    if (!options->differentiate) base = ng_detach(tape, base, .by_definition = true);
    ng_tensor *factor = ng_scalar_sub(tape, 1, ng_mul_scalar(tape, base, options->k));
    return ng_mul(tape, ng_mul_scalar(tape, factor, options->scale), xhat);
}

static const ng_module_class ada_norm_class = {
    .name = "AdaNorm", .size = sizeof(ada_norm), .forward = ada_norm_forward};

static const ng_setting ada_norm_settings[] = {
    {NG_OPTION(ada_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(ada_norm, scale), NG_IS_FINITE, .standard = 1},
    {NG_OPTION(ada_norm, k), NG_IS_FINITE, .standard = 0.1},
    {NG_OPTION(ada_norm, raw), NG_IS_FLAG},
    {NG_OPTION(ada_norm, differentiate), NG_IS_FLAG},
    {NG_OPTION(ada_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {0}};

ng_module *ng_ada_norm_new_with(ng_ada_norm_new_options options)
{
    ada_norm *self = ng_layer_new("ng_ada_norm_new", &ada_norm_class, ada_norm_settings,
                                  &(ada_norm){.options = options});
    return self ? ng_module_built(&self->base) : NULL;
}
