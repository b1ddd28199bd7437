/* PolyNorm: y = w_0 n(x^3) + w_1 n(x^2) + w_2 n(x) + b, n(x) = x / sqrt(mean(x^2) + eps). */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_poly_norm_new_options options;
    ng_tensor *weight, *bias; /* (3), (1) */
} poly_norm;

static ng_tensor *poly_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const poly_norm *layer = (const poly_norm *)self;
    if (!ng_features_fit(self, x, layer->options.dim)) return NULL;
    ng_tensor *weight = ng_parameter_value(tape, layer->weight), *square = ng_square(tape, x);
    ng_tensor *const powers[] = {ng_mul(tape, square, x), square, x};
    ng_tensor *y = ng_parameter_value(tape, layer->bias);
    for (int i = 2; i >= 0; i--) {
        ng_tensor *n = ng_rms_norm(tape, powers[i], NG_NONE, .eps = layer->options.eps);
        y = ng_add(tape, ng_mul(tape, n, ng_slice(tape, weight, 0, i, i + 1)), y);
    }
    return y;
}

static const ng_module_class poly_norm_class = {
    .name = "PolyNorm", .size = sizeof(poly_norm), .forward = poly_norm_forward};

static const ng_setting poly_norm_settings[] = {
    {NG_OPTION(poly_norm, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(poly_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {0}};

ng_module *ng_poly_norm_new_with(ng_poly_norm_new_options options)
{
    poly_norm *self = ng_layer_new("ng_poly_norm_new", &poly_norm_class, poly_norm_settings,
                                   &(poly_norm){.options = options});
    if (!self) return NULL;
    self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(3), .value = 1.0 / 3);
    self->bias = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(1));
    return ng_module_built(&self->base);
}
