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

static void dropout_describe(const ng_module *self, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", ng_number_print(((const dropout *)self)->p).text);
}

static const ng_module_class dropout_class = {.name = "Dropout",
                                              .size = sizeof(dropout),
                                              .forward = dropout_forward,
                                              .describe = dropout_describe};

ng_module *ng_dropout_new(double p)
{
    if (!ng_option_range("ng_dropout_new", "p", p, 0, 1)) return NULL;
    dropout *self = (dropout *)ng_module_new(&dropout_class);
    if (self) self->p = p;
    return self ? ng_module_built(&self->base) : NULL;
}
