/* Weight standardization: any module with a parameter "weight", of which each output's row is used
 * with mean 0 and variance 1. The module is a child named inner. */
#include "norms/reparameterized.h"

typedef struct {
    ng_module base;
    ng_reparameterized r;
    ng_weight_standardization_new_options options;
} weight_standardization;

static ng_tensor *weight_standardization_forward(ng_module *self, ng_tape *tape,
                                                 const ng_inputs *in)
{
    const weight_standardization *layer = (const weight_standardization *)self;
    ng_tensor *v = ng_parameter_value(tape, layer->r.weight);
    const int64_t rows = v->shape.dim[0];
    ng_tensor *matrix = ng_reshape(tape, v, NG_SHAPE(rows, v->size / rows));
    ng_tensor *w = ng_layer_norm(tape, matrix, NG_NONE, NG_NONE, .eps = layer->options.eps);
    return ng_forward_reparameterized(&layer->r, ng_reshape(tape, w, v->shape), tape, in);
}

static const ng_module_class weight_standardization_class = {.name = "WeightStandardization",
                                                             .size = sizeof(weight_standardization),
                                                             .forward_with =
                                                                 weight_standardization_forward};

static const ng_setting weight_standardization_settings[] = {
    {NG_OPTION(weight_standardization, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5}, {0}};

ng_module *ng_weight_standardization_new_with(ng_weight_standardization_new_options options)
{
    static const char name[] = "ng_weight_standardization_new";
    weight_standardization layer = {.options = options};
    weight_standardization *self = ng_reparameterize(name, options.inner, &layer.r)
                                       ? ng_layer_new(name, &weight_standardization_class,
                                                      weight_standardization_settings, &layer)
                                       : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    ng_module_add_child(&self->base, "inner", options.inner);
    return ng_module_built(&self->base);
}
