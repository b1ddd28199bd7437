/* Residual: y = x + inner(x). */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_module *inner;
} residual;

static ng_tensor *residual_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    ng_tensor *x = in->x, *y = ng_forward_child(((residual *)self)->inner, tape, x, in);
    if (!y) return NULL;
    if (!ng_shape_equal(x->shape, y->shape)) {
        ng_fail(NG_ESHAPE, "Residual: inner turned %s into %s, expected the same shape",
                ng_shape_print(x->shape).text, ng_shape_print(y->shape).text);
        return NULL;
    }
    return ng_add(tape, x, y);
}

static const ng_module_class residual_class = {
    .name = "Residual", .size = sizeof(residual), .forward_with = residual_forward};

ng_module *ng_residual_new(ng_module *inner)
{
    if (!ng_given("ng_residual_new", "inner", inner)) return NULL;
    residual *self = (residual *)ng_module_new(&residual_class);
    if (!self) {
        ng_module_free(inner);
        return NULL;
    }
    self->inner = ng_module_add_child(&self->base, "inner", inner);
    return ng_module_built(&self->base);
}
