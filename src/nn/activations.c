/* Activations as modules; formulas are in ops.h. */
#include "nn/module.h"
#include <math.h>

/* Those without settings: what ng_..._new is called after, and the name it shows. */
#define ACTIVATIONS(A)                                                                             \
    A(relu, "ReLU")                                                                                \
    A(gelu, "GELU")                                                                                \
    A(gelu_tanh, "GELUTanh")                                                                       \
    A(silu, "SiLU")                                                                                \
    A(tanh, "Tanh")                                                                                \
    A(sigmoid, "Sigmoid")                                                                          \
    A(softplus, "Softplus")

typedef struct {
    ng_module_class base;
    ng_tensor *(*op)(ng_tape *tape, ng_tensor *x);
} activation_class;

static ng_tensor *activation_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ((const activation_class *)self->type)->op(tape, x);
}

#define CLASS(op_name, shown)                                                                      \
    static const activation_class op_name##_class = {                                              \
        {.name = shown, .size = sizeof(ng_module), .forward = activation_forward}, ng_##op_name};
ACTIVATIONS(CLASS)

#define CONSTRUCTOR(op_name, shown)                                                                \
    ng_module *ng_##op_name##_new(void)                                                            \
    {                                                                                              \
        return ng_module_built(ng_module_new(&op_name##_class.base));                              \
    }
ACTIVATIONS(CONSTRUCTOR)

/* ---- Leaky ReLU ---- */

typedef struct {
    ng_module base;
    double slope;
} leaky_relu;

static ng_tensor *leaky_relu_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ng_leaky_relu(tape, x, ((const leaky_relu *)self)->slope);
}

static void leaky_relu_describe(const ng_module *self, char *text, size_t bytes)
{
    snprintf(text, bytes, "%g", ((const leaky_relu *)self)->slope);
}

static const ng_module_class leaky_relu_class = {.name = "LeakyReLU",
                                                 .size = sizeof(leaky_relu),
                                                 .forward = leaky_relu_forward,
                                                 .describe = leaky_relu_describe};

ng_module *ng_leaky_relu_new(double slope)
{
    if (!ng_option_range("ng_leaky_relu_new", "slope", slope, 0, HUGE_VAL)) return NULL;
    leaky_relu *self = (leaky_relu *)ng_module_new(&leaky_relu_class);
    if (self) self->slope = slope;
    return self ? ng_module_built(&self->base) : NULL;
}

/* ---- Cases -------------------------------------------------------------------------------- */

static ng_module *case_leaky_relu(void) { return ng_leaky_relu_new(0.1); }

const ng_case ng_layer_cases_activations[] = {
    {.name = "ReLU", .module = ng_relu_new, .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "LeakyReLU", .module = case_leaky_relu, .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "GELU", .module = ng_gelu_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "GELUTanh", .module = ng_gelu_tanh_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "SiLU", .module = ng_silu_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "Tanh", .module = ng_tanh_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "Sigmoid", .module = ng_sigmoid_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "Softplus", .module = ng_softplus_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
};
const int ng_layer_cases_activations_count = NG_CASE_COUNT(ng_layer_cases_activations);
