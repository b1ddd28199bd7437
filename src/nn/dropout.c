/* Dropout: y = x mask / (1 - p) in training, y = x in eval. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    double p;
} dropout;

static ng_tensor *dropout_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return self->training ? ng_dropout(tape, x, ((const dropout *)self)->p) : x;
}

static const ng_module_class dropout_class = {
    .name = "Dropout", .size = sizeof(dropout), .forward = dropout_forward};

static const ng_setting dropout_settings[] = {
    {NG_MEMBER(dropout, p), NG_IS_PROBABILITY, .bare = true}, {0}};

ng_module *ng_dropout_new(double p)
{
    return ng_module_built(
        ng_layer_new("ng_dropout_new", &dropout_class, dropout_settings, &(dropout){.p = p}));
}
