/* Activations (formulas in elementwise.h) and any function of one tensor, as modules. */
#include "nn/module.h"
#include <math.h>
#include <string.h>

/* Activations without settings: the name in ng_NAME_new, and the name of the class. */
#define ACTIVATIONS(A)                                                                             \
    A(relu, "ReLU")                                                                                \
    A(gelu, "GELU")                                                                                \
    A(gelu_tanh, "GELUTanh")                                                                       \
    A(silu, "SiLU")                                                                                \
    A(tanh, "Tanh")                                                                                \
    A(sigmoid, "Sigmoid")                                                                          \
    A(softplus, "Softplus")                                                                        \
    A(glu, "GLU")

typedef struct {
    ng_module_class base;
    ng_tensor *(*op)(ng_tape *tape, ng_tensor *x);
} activation_class;

static ng_tensor *activation_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ((const activation_class *)self->type)->op(tape, x);
}

#define ACTIVATION_CLASS(op_name, shown)                                                           \
    static const activation_class op_name##_class = {                                              \
        {.name = shown, .size = sizeof(ng_module), .forward = activation_forward}, ng_##op_name};
ACTIVATIONS(ACTIVATION_CLASS)

#define CONSTRUCTOR(op_name, shown)                                                                \
    ng_module *ng_##op_name##_new(void)                                                            \
    {                                                                                              \
        return ng_module_built(ng_module_new(&op_name##_class.base));                              \
    }
ACTIVATIONS(CONSTRUCTOR)

bool ng_output_range(const ng_module *layer, double *low, double *high)
{
    *low = layer->type == &tanh_class.base ? -1 : 0, *high = 1;
    return *low < 0 || layer->type == &sigmoid_class.base;
}

/* ---- With one number ----------------------------------------------------------------------- */

typedef struct {
    ng_module base;
    double number;
} numbered;

typedef struct {
    ng_module_class base;
    ng_tensor *(*op)(ng_tape *tape, ng_tensor *x, double number);
} numbered_class;

static ng_tensor *numbered_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ((const numbered_class *)self->type)->op(tape, x, ((const numbered *)self)->number);
}

static void numbered_describe(const ng_module *self, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", ng_number_print(((const numbered *)self)->number).text);
}

static ng_module *numbered_new(const numbered_class *type, double number)
{
    numbered *self = (numbered *)ng_module_new(&type->base);
    if (!self) return NULL;
    self->number = number;
    return ng_module_built(&self->base);
}

#define NUMBERED(op_name, shown)                                                                   \
    static const numbered_class op_name##_class = {{.name = shown,                                 \
                                                    .size = sizeof(numbered),                      \
                                                    .forward = numbered_forward,                   \
                                                    .describe = numbered_describe},                \
                                                   ng_##op_name}
NUMBERED(leaky_relu, "LeakyReLU");
NUMBERED(elu, "ELU");
NUMBERED(celu, "CELU");

ng_module *ng_leaky_relu_new(double slope)
{
    if (!ng_option_range("ng_leaky_relu_new", "slope", slope, 0, HUGE_VAL)) return NULL;
    return numbered_new(&leaky_relu_class, slope);
}

ng_module *ng_elu_new(double alpha)
{
    if (!ng_option_range("ng_elu_new", "alpha", alpha, 0, HUGE_VAL)) return NULL;
    return numbered_new(&elu_class, alpha);
}

ng_module *ng_celu_new(double alpha)
{
    if (!ng_above_zero("ng_celu_new", "alpha", alpha)) return NULL;
    return numbered_new(&celu_class, alpha);
}

/* ---- PReLU --------------------------------------------------------------------------------- */

typedef struct {
    ng_module base;
    int64_t channels;
    ng_tensor *slope; /* (channels) */
} prelu;

static ng_tensor *prelu_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ng_prelu(tape, x, ng_parameter_value(tape, ((const prelu *)self)->slope));
}

static void prelu_describe(const ng_module *self, char *text, size_t bytes)
{
    snprintf(text, bytes, "%lld", (long long)((const prelu *)self)->channels);
}

static const ng_module_class prelu_class = {
    .name = "PReLU", .size = sizeof(prelu), .forward = prelu_forward, .describe = prelu_describe};

ng_module *ng_prelu_new_with(ng_prelu_new_options options)
{
    static const char name[] = "ng_prelu_new";
    const double slope = ng_option(options.slope, 0.25);
    if (!ng_option_positive(name, "channels", options.channels, "channels")) return NULL;
    if (!ng_option_range(name, "slope", slope, -HUGE_VAL, HUGE_VAL)) return NULL;
    prelu *self = (prelu *)ng_module_new(&prelu_class);
    if (!self) return NULL;
    self->channels = options.channels;
    self->slope =
        ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.channels), .value = slope);
    return ng_module_built(&self->base);
}

/* ---- Any function -------------------------------------------------------------------------- */

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

#undef ACTIVATION_CLASS
