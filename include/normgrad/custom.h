/* Layers of your own.
 *
 *     typedef struct { ng_module base; ng_module *project; } film;
 *     static ng_tensor *film_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
 *     {
 *         ng_tensor *factor = ng_forward(((film *)self)->project, tape, in->condition);
 *         return ng_mul(tape, in->x, ng_add_scalar(tape, factor, 1));
 *     }
 *     static const ng_module_class film_class = {
 *         .name = "MyFilm", .size = sizeof(film), .forward_with = film_forward,
 *         .needs = NG_INPUT_CONDITION};
 *
 * A layer is a struct that begins with an ng_module, a class, a forward function and a constructor.
 * Gradients of any order, names, freezing, saving and the summary follow. ng_check_module checks
 * it. The layer above computes x (1 + W c) for a condition c. Its constructor registers the child:
 *
 *     ng_module *film_new(int64_t condition, int64_t dim)
 *     {
 *         film *self = (film *)ng_module_new(&film_class);
 *         if (!self) return NULL;
 *         self->project = ng_module_add_child(&self->base, "project",
 *                                             ng_linear_new(condition, dim));
 *         return ng_module_built(&self->base);
 *     }
 *     ... ng_forward(layer, tape, x, .condition = c)
 *
 * A layer without a condition has .forward, which gets x. One with a parameter registers it, and
 * reads it through ng_parameter_value:
 *
 *     self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(dim), .value = 1);
 *     ... ng_mul(tape, x, ng_parameter_value(tape, self->weight))
 *
 *     ng_module_new(&class)                        a zeroed layer
 *     ng_module_add_parameter(self, name, shape)   registers a parameter
 *     ng_module_add_buffer(self, name, shape, value)   registers a buffer
 *     ng_module_add_child(self, name, child)       registers a child
 *     ng_module_built(self)                        ends the constructor
 *     ng_parameter_value(tape, parameter)          reads a parameter in a pass
 *     ng_forward_child(child, tape, x, inputs)     calls a child with the other inputs
 */
#ifndef NORMGRAD_CUSTOM_H
#define NORMGRAD_CUSTOM_H

#include <normgrad/module.h>

NG_BEGIN_C

/* What the modules of one kind share: a static const struct. */
typedef struct {
    const char *name; /* "LayerNorm" */
    size_t size;      /* of the struct that embeds ng_module */

    /* The output for x, if neither the layer nor a child of it takes another input. */
    ng_tensor *(*forward)(ng_module *self, ng_tape *tape, ng_tensor *x);
    /* Instead of .forward: the output for x and the other inputs. Those left out are NG_NONE. A
     * container passes them on with ng_forward_child. */
    ng_tensor *(*forward_with)(ng_module *self, ng_tape *tape, const ng_inputs *inputs);
    unsigned takes; /* the inputs that it uses if they are given, NG_INPUT_MASK | ... */
    unsigned needs; /* the inputs without which a call is an error */

    /* Draws the module's own parameters, at the first use and in ng_module_init, after those of its
     * children. A parameter that it does not draw has the value with which it was registered.
     * Optional, like the next two. */
    void (*init)(ng_module *self, ng_rng *rng);

    /* Frees what is not registered. It may be called while the instance is still zeroed. */
    void (*destroy)(ng_module *self);

    /* Writes the settings as text, such as "128, eps=1e-05" for LayerNorm(128, eps=1e-05). Write
     * all settings with all digits: ng_training_resume and ng_parallel_new compare layers by this
     * text. If it does not fit in `bytes`, the function is called again with more. */
    void (*describe)(const ng_module *self, char *text, size_t bytes);
} ng_module_class;

/* What every module begins with. */
struct ng_module {
    const ng_module_class *type;  /* its functions */
    bool training;                /* what ng_train and ng_eval say */
    bool frozen;                  /* what ng_freeze and ng_unfreeze say */
    unsigned takes, needs;        /* the class's; a constructor may change them */
    struct ng_registry *registry; /* parameters, buffers, children; the library's own */
};

/* Returns a zeroed instance of type->size with nothing registered yet. NG_ENULL without a name,
 * NG_EVALUE if the size is less than an ng_module's, and for a class that has .forward and also
 * .forward_with, .takes or .needs. */
NG_API ng_module *ng_module_new(const ng_module_class *type);

/* Registers a parameter under a name without '.', and returns it; the module owns it. If this
 * fails, ng_module_built returns NULL.
 *     ng_module_add_parameter(&self->base, "gamma", NG_SHAPE(dim), .value = 1) */
typedef struct {
    double value;   /* of every element, until the class's init draws another; default 0 */
    bool left_out;  /* register nothing and return NG_NONE, for a parameter that a setting drops */
    ng_shape shape; /* of the parameter */
} ng_module_add_parameter_options;
#define ng_module_add_parameter(self, name, ...)                                                   \
    ng_module_add_parameter_with(self, name,                                                       \
                                 NG_NAMED(ng_module_add_parameter_options, shape, __VA_ARGS__))
NG_API ng_tensor *ng_module_add_parameter_with(ng_module *self, const char *name,
                                               ng_module_add_parameter_options options);

/* Registers a buffer, filled with `value`, and returns it. */
NG_API ng_tensor *ng_module_add_buffer(ng_module *self, const char *name, ng_shape shape,
                                       double value);

/* The output of a child for x. The child also gets the condition, mask... of `inputs`. */
NG_API ng_tensor *ng_forward_child(ng_module *child, ng_tape *tape, ng_tensor *x,
                                   const ng_inputs *inputs);

/* Registers a child and returns it. The forward function calls it with ng_forward, or with
 * ng_forward_child. From this call on the child belongs to self, even if the call fails. If child
 * is NULL, ng_module_built returns NULL. A child keeps its modes, even if self is frozen or in
 * evaluation. */
NG_API ng_module *ng_module_add_child(ng_module *self, const char *name, ng_module *child);

/* Returns the value of a parameter in this pass: the parameter itself (or NG_NONE), or the tensor
 * with which WeightNorm, SpectralNorm or ng_forward_using replaces it. A forward function reads
 * every parameter through it. An op on a replaced parameter itself is NG_ESTATE. */
NG_API ng_tensor *ng_parameter_value(ng_tape *tape, ng_tensor *parameter);

/* Ends a constructor: returns self, or frees it and returns NULL if anything could not be
 * registered. */
NG_API ng_module *ng_module_built(ng_module *self);

NG_END_C

#endif
