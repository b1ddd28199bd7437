/* Activations as modules, whose formulas are in ops.h, and any other function. */
#include "nn/module.h"
#include <math.h>
#include <string.h>

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

/* ---- Any function ---- */

typedef struct {
    ng_module base;
    ng_function *function;
    char name[48];
} function_layer;

static ng_tensor *function_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ((const function_layer *)self)->function(tape, x);
}

static void function_describe(const ng_module *self, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", ((const function_layer *)self)->name);
}

static const ng_module_class function_class = {.name = "Function",
                                               .size = sizeof(function_layer),
                                               .forward = function_forward,
                                               .describe = function_describe};

ng_module *ng_function_new(const char *name, ng_function *function)
{
    static const char constructor[] = "ng_function_new";
    const size_t longest = sizeof((function_layer *)NULL)->name - 1;
    if (!ng_given(constructor, "name", name)) return NULL;
    if (!function) {
        ng_note_null(constructor, "function");
        return NULL;
    }
    if (strlen(name) > longest) {
        ng_fail(NG_EVALUE, "%s: a name of %zu characters, expected at most %zu", constructor,
                strlen(name), longest);
        return NULL;
    }
    function_layer *self = (function_layer *)ng_module_new(&function_class);
    if (!self) return NULL;
    self->function = function;
    strcpy(self->name, name);
    return ng_module_built(&self->base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

static ng_module *case_leaky_relu(void) { return ng_leaky_relu_new(0.1); }
static ng_module *case_function(void) { return ng_function_new("sin", ng_sin); }

const ng_case ng_layer_cases_activations[] = {
    {.name = "ReLU", .module = ng_relu_new, .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "LeakyReLU", .module = case_leaky_relu, .inputs = {NG_CASE_NOT_ZERO("x", 3, 4)}},
    {.name = "GELU", .module = ng_gelu_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "GELUTanh", .module = ng_gelu_tanh_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "SiLU", .module = ng_silu_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "Tanh", .module = ng_tanh_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "Sigmoid", .module = ng_sigmoid_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "Softplus", .module = ng_softplus_new, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "Function (sin)", .module = case_function, .inputs = {NG_CASE_ANY("x", 3, 4)}},
};
const int ng_layer_cases_activations_count = NG_CASE_COUNT(ng_layer_cases_activations);
