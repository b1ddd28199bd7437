/* Layers of your own: a struct that begins with an ng_module, a class, a constructor and a forward
 * function. Gradients, names, freezing, saving and the summary follow. ng_check_module checks it.
 *
 *     typedef struct { ng_module base; ng_tensor *weight; } scale;
 *
 *     static ng_tensor *scale_forward(ng_module *m, ng_tape *tape, ng_tensor *x)
 *     {
 *         return ng_mul(tape, x, ng_parameter_value(tape, ((scale *)m)->weight));
 *     }
 *
 *     static const ng_module_class scale_class = {
 *         .name = "Scale", .size = sizeof(scale), .forward = scale_forward};
 *
 *     ng_module *scale_new(int64_t dim)
 *     {
 *         scale *self = (scale *)ng_module_new(&scale_class);
 *         if (!self) return NULL;
 *         self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(dim), .value = 1);
 *         return ng_module_built(&self->base);
 *     }
 *
 * A layer with a child and a condition c, x (1 + W c), has in addition
 *
 *     static ng_tensor *my_forward(ng_module *m, ng_tape *tape, const ng_inputs *in)
 *     {
 *         my_layer *self = (my_layer *)m;
 *         ng_tensor *factor = ng_forward(self->project, tape, in->condition);
 *         return ng_mul(tape, in->x, ng_add_scalar(tape, factor, 1));
 *     }
 *     ... .forward_with = my_forward, .needs = NG_INPUT_CONDITION};
 *     self->project = ng_module_add_child(&self->base, "project", ng_linear_new(condition, dim));
 */
#ifndef NORMGRAD_CUSTOM_H
#define NORMGRAD_CUSTOM_H

#include <normgrad/module.h>

NG_BEGIN_C

/* What the modules of one kind share: a static const struct. */
typedef struct {
    const char *name; /* "LayerNorm" */
    size_t size;      /* of the struct that embeds ng_module */

    /* The output for x. Of a class that needs no other input and has no children that do. */
    ng_tensor *(*forward)(ng_module *self, ng_tape *tape, ng_tensor *x);
    /* In its place: the output for x and named inputs, which are NG_NONE where they are left out. A
     * container passes them on with ng_forward_child. */
    ng_tensor *(*forward_with)(ng_module *self, ng_tape *tape, const ng_inputs *inputs);
    unsigned takes; /* NG_INPUT_ names that it uses where they are given */
    unsigned needs; /* those without which it is not called */

    /* Draws the module's own parameters, at the first use and in ng_module_init. A parameter that
     * it leaves alone has the value with which it was registered. Children are drawn before.
     * Optional, like the next two. */
    void (*init)(ng_module *self, ng_rng *rng);

    /* Frees what is not registered; also of an instance that is still zeroed. */
    void (*destroy)(ng_module *self);

    /* Writes the settings as text, such as "128, eps=1e-05" for LayerNorm(128, eps=1e-05). Write
     * all settings with all digits: ng_training_resume and ng_parallel_new compare layers by this
     * text (ng_module_load does not). If it fills all bytes, the function is called again with
     * more. */
    void (*describe)(const ng_module *self, char *text, size_t bytes);
} ng_module_class;

/* What every module begins with. */
struct ng_module {
    const ng_module_class *type;  /* its functions */
    bool training;                /* what ng_train and ng_eval say */
    bool frozen;                  /* what ng_freeze and ng_unfreeze say */
    unsigned takes, needs;        /* the class's; a constructor may change them */
    struct ng_registry *registry; /* parameters, buffers, children: module.c's */
};

/* Returns a zeroed instance of type->size with nothing registered yet. NG_ENULL without a name,
 * NG_EVALUE if the size is less than an ng_module's. */
NG_API ng_module *ng_module_new(const ng_module_class *type);

/* Registers a parameter under a name without '.', and returns it; the module owns it. A failure
 * is remembered by the module for ng_module_built.
 *     ng_module_add_parameter(&self->base, "gamma", NG_SHAPE(dim), .value = 1) */
typedef struct {
    double value;   /* of every element, in a new module and before the class's init; default 0 */
    bool left_out;  /* nothing is registered, and NG_NONE returned */
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

/* The output of a child for x, which is also given the other inputs of `inputs`. */
NG_API ng_tensor *ng_forward_child(ng_module *child, ng_tape *tape, ng_tensor *x,
                                   const ng_inputs *inputs);

/* Registers a child and returns it; a forward function calls it with ng_forward, a container's with
 * ng_forward_child. The child belongs to self from this call on, also if the call fails. A NULL
 * child is a failure, remembered for ng_module_built. A child keeps its modes, also if self is
 * frozen or in evaluation. */
NG_API ng_module *ng_module_add_child(ng_module *self, const char *name, ng_module *child);

/* Returns the value of a parameter in this pass: the parameter itself (or NG_NONE), or the tensor
 * with which WeightNorm, SpectralNorm or ng_forward_using replaces it. A forward function reads
 * every parameter through it: an op on a parameter that is replaced is NG_ESTATE. */
NG_API ng_tensor *ng_parameter_value(ng_tape *tape, ng_tensor *parameter);

/* Ends a constructor: returns self. If anything could not be registered
 * since self was made, frees it and returns NULL. */
NG_API ng_module *ng_module_built(ng_module *self);

NG_END_C

#endif
