/* ng_forward: named inputs, and the pass through a module. */
#include "nn/module.h"
#include <string.h>

ng_tensor *ng_failed_in(const ng_module *module, int64_t failures_before)
{
    ng_fail_unrecorded(failures_before, NG_ENULL, "forward returned NULL without an error");
    if (ng_failures() > ng_failures_ever() - failures_before) return NULL;
    ng_locate_error(ng_module_path(ng_module_root(module), module), module->type->name);
    return NULL;
}

/* The inputs in the order of the bits of ng_input, and x. */
static const struct {
    const char *name;
    size_t place;
} named_inputs[NG_INPUTS_COUNT] = {{"condition", offsetof(ng_inputs, condition)},
                                   {"mask", offsetof(ng_inputs, mask)},
                                   {"lengths", offsetof(ng_inputs, lengths)},
                                   {"memory", offsetof(ng_inputs, memory)},
                                   {"memory_mask", offsetof(ng_inputs, memory_mask)},
                                   {"style", offsetof(ng_inputs, style)},
                                   {"gate", offsetof(ng_inputs, gate)},
                                   {"x", offsetof(ng_inputs, x)}};
enum { NAMED_INPUTS = NG_INPUTS_COUNT - 1 };

ng_tensor **ng_input_at(const ng_inputs *inputs, int index)
{
    return (ng_tensor **)((char *)inputs + named_inputs[index].place);
}

ng_tensor **ng_input_named(ng_inputs *inputs, const char *name)
{
    for (int i = 0; i < NAMED_INPUTS; i++)
        if (strcmp(named_inputs[i].name, name) == 0) return ng_input_at(inputs, i);
    return NULL;
}

/* Runs the class's function. `advice` follows the error of a missing input. */
static ng_tensor *run_class(ng_module *module, ng_tape *tape, const ng_inputs *inputs,
                            const char *advice)
{
    const ng_module_class *type = module->type;
    for (int i = 0; module->needs >> i; i++)
        if (module->needs >> i & 1 && ng_is_none(*ng_input_at(inputs, i))) {
            ng_fail(NG_EVALUE, "ng_forward: .%s is missing%s", named_inputs[i].name, advice);
            return NULL;
        }
    if (type->forward_with) return type->forward_with(module, tape, inputs);
    if (type->forward) return type->forward(module, tape, inputs->x);
    ng_fail(NG_ESTATE, "ng_forward: the class has neither .forward nor .forward_with");
    return NULL;
}

/* The inputs are usable and not NULL, but for x. */
static ng_tensor *run_module(ng_module *module, ng_tape *tape, const ng_inputs *inputs,
                             const char *advice)
{
    static const char function[] = "ng_forward";
    if (!ng_given(function, "x", inputs->x) || !ng_usable(function, "x", 0, tape, inputs->x) ||
        !ng_module_ready(module) || (tape->passes && !ng_pass_notes(tape, module)))
        return NULL;
    const int64_t failures = ng_failures_ever();
    ng_tensor *y = run_class(module, tape, inputs, advice);
    if (!y || !ng_usable(function, "the result of its class", 0, tape, y))
        return ng_failed_in(module, failures);
    const bool is_kept = tape->scopes == 0;
    for (ng_watched *w = module->registry->watched; w && is_kept; w = w->next)
        if (w->called) w->called(w, tape, y);
    return y;
}

/* The inputs that the module uses where they are given, or one to which it passes them on. */
static unsigned inputs_used(const ng_module *module)
{
    unsigned used = module->takes | module->needs;
    for (int i = 0; i < module->registry->count && module->type->forward_with; i++)
        if (module->registry->entries[i].child)
            used |= inputs_used(module->registry->entries[i].child);
    return used;
}

/* The module in the tree whose .forward keeps this input from a layer below it, or NULL. */
static const ng_module *module_that_blocks(const ng_module *root, unsigned input)
{
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);) {
        const ng_module *layer = w.entry->child;
        if (!layer || !((layer->takes | layer->needs) & input)) continue;
        while (layer != root) {
            layer = layer->registry->parent;
            if (layer->type->forward) return layer;
        }
    }
    return NULL;
}

/* Fails, for no layer gets this input. */
static bool refuse_unused(const char *function, const ng_module *module, int index)
{
    const char *name = named_inputs[index].name;
    const ng_module *blocking = module_that_blocks(module, 1u << index);
    if (blocking)
        ng_fail(NG_EVALUE,
                "%s: .%s is given, but the .forward of %s passes no inputs on to its children: "
                "use .forward_with and ng_forward_child",
                function, name, blocking->type->name);
    else
        ng_fail(NG_EVALUE,
                "%s: the input .%s is given, but no layer of the %s takes it "
                "(a class says so in .takes or .needs)",
                function, name, module->type->name);
    return false;
}

/* Sets those that are left out to NG_NONE. False with an error: one is NULL, unusable, or for
 * nobody. */
static bool inputs_accepted(const char *function, const ng_module *module, const ng_tape *tape,
                            ng_inputs *inputs)
{
    int given = 0;
    unsigned set = 0;
    for (int i = 0; i < NAMED_INPUTS; i++) {
        ng_tensor **input = ng_input_at(inputs, i);
        given += *input != NULL;
        if (!*input) *input = NG_NONE;
        if (ng_is_none(*input)) continue;
        if (!ng_usable(function, named_inputs[i].name, 0, tape, *input)) return false;
        set |= 1u << i;
    }
    if (given < inputs->named) {
        if (!ng_failed())
            ng_fail(NG_ENULL, "%s: a named input is NULL; NG_NONE leaves it out", function);
        return false;
    }
    const unsigned unused = set ? set & ~inputs_used(module) : 0;
    for (int i = 0; i < NAMED_INPUTS; i++)
        if (unused >> i & 1) return refuse_unused(function, module, i);
    return true;
}

ng_tensor *ng_forward_with(ng_module *module, ng_tape *tape, ng_inputs inputs)
{
    static const char function[] = "ng_forward";
    if (!ng_given(function, "module", module) || !ng_given(function, "tape", tape) ||
        !inputs_accepted(function, module, tape, &inputs))
        return NULL;
    return run_module(module, tape, &inputs,
                      module->registry->parent
                          ? "; a layer passes inputs on to a child with ng_forward_child"
                          : "");
}

ng_tensor *ng_forward_child(ng_module *child, ng_tape *tape, ng_tensor *x, const ng_inputs *inputs)
{
    static const char function[] = "ng_forward_child";
    if (!ng_given(function, "child", child) || !ng_given(function, "tape", tape) ||
        !ng_given(function, "inputs", inputs))
        return NULL;
    ng_inputs all = *inputs;
    all.x = x;
    for (int i = 0; i < NAMED_INPUTS; i++)
        if (!*ng_input_at(&all, i)) {
            ng_given(function, named_inputs[i].name, NULL);
            return NULL;
        }
    return run_module(child, tape, &all, "");
}

bool ng_features_fit(const ng_module *self, const ng_tensor *x, int64_t dim)
{
    if (ng_rank(x) >= 1 && ng_dim(x, -1) == dim) return true;
    ng_fail(NG_ESHAPE, "%s: x is %s, expected its last dimension to be %lld", self->type->name,
            ng_shape_print(x->shape).text, (long long)dim);
    return false;
}

bool ng_channels_fit(const ng_module *self, const ng_tensor *x, int64_t channels)
{
    if (ng_rank(x) >= 2 && ng_dim(x, 1) == channels) return true;
    ng_fail(NG_ESHAPE, "%s: x is %s, expected (N, %lld, ...)", self->type->name,
            ng_shape_print(x->shape).text, (long long)channels);
    return false;
}
