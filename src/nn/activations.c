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

#define ACTIVATION_CLASS(op_name, label)                                                           \
    static const activation_class op_name##_class = {                                              \
        {.name = label, .size = sizeof(ng_module), .forward = activation_forward}, ng_##op_name};
ACTIVATIONS(ACTIVATION_CLASS)

#define CONSTRUCTOR(op_name, label)                                                                \
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

static const ng_setting slope_settings[] = {
    {NG_PLACE("slope", numbered, number), NG_IS_NOT_NEGATIVE, .bare = true}, {0}};
static const ng_setting alpha_settings[] = {
    {NG_PLACE("alpha", numbered, number), NG_IS_NOT_NEGATIVE, .bare = true}, {0}};
static const ng_setting celu_settings[] = {
    {NG_PLACE("alpha", numbered, number), NG_IS_POSITIVE, .bare = true}, {0}};

#define NUMBERED(op_name, label, settings, parameter)                                              \
    static const numbered_class op_name##_class = {                                                \
        {.name = label, .size = sizeof(numbered), .forward = numbered_forward}, ng_##op_name};     \
    ng_module *ng_##op_name##_new(double parameter)                                                \
    {                                                                                              \
        return ng_module_built(ng_layer_new("ng_" #op_name "_new", &op_name##_class.base,          \
                                            settings, &(numbered){.number = parameter}));          \
    }
NUMBERED(leaky_relu, "LeakyReLU", slope_settings, slope)
NUMBERED(elu, "ELU", alpha_settings, alpha)
NUMBERED(celu, "CELU", celu_settings, alpha)

/* ---- PReLU --------------------------------------------------------------------------------- */

typedef struct {
    ng_module base;
    ng_prelu_new_options options;
    ng_tensor *slope; /* (channels) */
} prelu;

static ng_tensor *prelu_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ng_prelu(tape, x, ng_parameter_value(tape, ((const prelu *)self)->slope));
}

static const ng_module_class prelu_class = {
    .name = "PReLU", .size = sizeof(prelu), .forward = prelu_forward};

static const ng_setting prelu_settings[] = {
    {NG_OPTION(prelu, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(prelu, slope), NG_IS_FINITE, .standard = 0.25, .quiet = true},
    {0}};

ng_module *ng_prelu_new_with(ng_prelu_new_options options)
{
    prelu *self =
        ng_layer_new("ng_prelu_new", &prelu_class, prelu_settings, &(prelu){.options = options});
    if (!self) return NULL;
    self->slope = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.channels),
                                          .value = self->options.slope);
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

static void print_function_name(const void *member, char *text, size_t bytes)
{
    snprintf(text, bytes, "%s", (const char *)member);
}

static const ng_setting function_settings[] = {
    {NG_MEMBER(function_layer, name), NG_IS_OTHER, .print = print_function_name, .bare = true},
    {0}};

static const ng_module_class function_class = {
    .name = "Function", .size = sizeof(function_layer), .forward = function_forward};

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
    function_layer layer = {.function = function};
    strcpy(layer.name, name);
    return ng_module_built(ng_layer_new(constructor, &function_class, function_settings, &layer));
}

#undef ACTIVATION_CLASS
#undef NUMBERED
