/* Forward passes that read other tensors instead of parameters: ng_forward_using; tied weights. */
#include "nn/module.h"
#include <string.h>

ng_tensor *ng_parameter_value(ng_tape *tape, ng_tensor *parameter)
{
    if (!ng_given("ng_parameter_value", "tape", tape) ||
        !ng_given("ng_parameter_value", "parameter", parameter))
        return NULL;
    for (;; parameter = ng_tied_to(parameter)) {
        for (const ng_replaced *r = tape->replaced; r; r = r->older)
            for (int i = 0; i < r->count; i++)
                if (r->pair[i].parameter == parameter) return r->pair[i].value;
        if (!ng_tied_to(parameter)) return parameter;
    }
}

/* ---- Tied weights --------------------------------------------------------------------------- */

static const char tying[] = "ng_module_tie";

/* The walk at the parameter of that name, tied or not; false with an error if there is none. */
static bool tie_end(const ng_module *module, const char *name, ng_tree_walk *w)
{
    for (*w = ng_tree_begin(module); ng_tree_next(w);)
        if ((w->entry->kind == NG_ENTRY_PARAMETER || w->entry->kind == NG_ENTRY_TIED) &&
            strcmp(ng_entry_path(module, w->entry), name) == 0)
            return true;
    ng_fail(NG_EVALUE, "%s: the %s has no parameter named \"%s\"", tying, module->type->name, name);
    return false;
}

ng_status ng_module_tie(ng_module *module, const char *name, const char *other)
{
    ng_tree_walk tied, target;
    if (!ng_given(tying, "module", module) || !ng_given(tying, "name", name) ||
        !ng_given(tying, "other", other) || !tie_end(module, name, &tied) ||
        !tie_end(module, other, &target))
        return ng_newest_status();
    ng_tensor *own = tied.entry->tensor, *shared = ng_untied(target.entry->tensor);
    if (ng_tied_to(own) || own == shared)
        return ng_fail(NG_ESTATE, "%s: %s and %s, expected two parameters, the first not tied yet",
                       tying, name, other);
    if (!ng_has_type(tying, name, own, shared->dtype, shared->shape)) return ng_newest_status();
    tied.entry->kind = NG_ENTRY_TIED;
    own->leaf->tied = shared;
    own->requires_grad = false;
    ng_module_restructured(tied.owner, -1);
    return NG_OK;
}

/* ---- Other tensors for one pass -------------------------------------------------------------- */

ng_tensor *ng_scale_value(ng_tape *tape, ng_tensor *parameter, bool unit_offset)
{
    ng_tensor *scale = ng_parameter_value(tape, parameter);
    return unit_offset && !ng_is_none(scale) ? ng_add_scalar(tape, scale, 1) : scale;
}

/* A list in front of those of now, to be filled; NULL without memory. */
static ng_replaced *replaced_new(ng_tape *tape, int count)
{
    ng_replaced *list = ng_tape_memory(tape, sizeof *list + (size_t)count * sizeof *list->pair);
    if (list) list->older = tape->replaced, list->count = count;
    return list;
}

ng_tensor *ng_forward_replaced(ng_module *module, ng_tape *tape, const ng_inputs *inputs,
                               ng_tensor *parameter, ng_tensor *value)
{
    ng_replaced *list = replaced_new(tape, 1);
    if (!list) return NULL;
    list->pair[0].parameter = parameter;
    list->pair[0].value = value;
    tape->replaced = list;
    ng_tensor *y = ng_forward_child(module, tape, inputs->x, inputs);
    tape->replaced = list->older;
    return y;
}

static const char using_name[] = "ng_forward_using";

/* Whether `value` can replace `own`, the parameter of that path. */
static bool using_fits(const char *path, const ng_tensor *own, const ng_tape *tape,
                       const ng_tensor *value)
{
    char role[160];
    snprintf(role, sizeof role, "the tensor for %s", path);
    return ng_given(using_name, role, value) && ng_usable(using_name, role, 0, tape, value) &&
           ng_has_type(using_name, role, value, own->dtype, own->shape);
}

/* Pairs the parameters of the tree with `values`; false if one does not fit. */
static bool using_collect(const ng_module *root, const ng_tape *tape, ng_tensor *const *values,
                          ng_replaced *list)
{
    int i = 0;
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);) {
        if (w.entry->kind != NG_ENTRY_PARAMETER) continue;
        if (!using_fits(ng_entry_path(root, w.entry), w.entry->tensor, tape, values[i]))
            return false;
        list->pair[i].parameter = w.entry->tensor;
        list->pair[i].value = values[i];
        i++;
    }
    return true;
}

ng_tensor *ng_forward_using_with(ng_module *module, ng_tape *tape, ng_tensor *const *parameters,
                                 int count, ng_inputs inputs)
{
    if (!ng_given(using_name, "module", module) || !ng_given(using_name, "tape", tape) ||
        !ng_given(using_name, "x", inputs.x) ||
        !ng_given(using_name, "the list of parameters", parameters))
        return NULL;
    if (count != module->registry->parameters) {
        ng_fail(NG_EVALUE, "%s: %d tensors, expected %lld: the parameters of the %s", using_name,
                count, (long long)module->registry->parameters, module->type->name);
        return NULL;
    }
    tape->function = using_name;
    ng_replaced *list = replaced_new(tape, count);
    if (!list || !using_collect(module, tape, parameters, list)) return NULL;
    tape->replaced = list;
    ng_tensor *y = ng_forward_with(module, tape, inputs);
    tape->replaced = list->older;
    return y;
}
