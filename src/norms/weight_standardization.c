/* Weight standardization: any module with a parameter "weight", of which each output's row is used
 * with mean 0 and variance 1. The module is a child named inner. */
#include "norms/reparameterized.h"

typedef struct {
    ng_module base;
    ng_reparameterized r;
    double eps;
} weight_standardization;

static ng_tensor *weight_standardization_forward(ng_module *self, ng_tape *tape,
                                                 const ng_inputs *in)
{
    const weight_standardization *layer = (const weight_standardization *)self;
    ng_tensor *v = ng_parameter_value(tape, layer->r.weight);
    const int64_t rows = v->shape.dim[0];
    ng_tensor *matrix = ng_reshape(tape, v, NG_SHAPE(rows, v->size / rows));
    ng_tensor *w = ng_layer_norm(tape, matrix, NG_NONE, NG_NONE, layer->eps);
    return ng_forward_reparameterized(&layer->r, ng_reshape(tape, w, v->shape), tape, in);
}

static void weight_standardization_describe(const ng_module *self, char *text, size_t bytes)
{
    snprintf(text, bytes, "eps=%s",
             ng_number_print(((const weight_standardization *)self)->eps).text);
}

static const ng_module_class weight_standardization_class = {
    .name = "WeightStandardization",
    .size = sizeof(weight_standardization),
    .forward_with = weight_standardization_forward,
    .describe = weight_standardization_describe};

ng_module *ng_weight_standardization_new_with(ng_weight_standardization_new_options options)
{
    static const char name[] = "ng_weight_standardization_new";
    ng_reparameterized r;
    const double eps = ng_option(options.eps, 1e-5);
    weight_standardization *self =
        ng_norm_eps_ok(name, eps) && ng_reparameterize(name, options.inner, &r)
            ? (weight_standardization *)ng_module_new(&weight_standardization_class)
            : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    self->r = r;
    self->eps = eps;
    ng_module_add_child(&self->base, "inner", options.inner);
    return ng_module_built(&self->base);
}
