/* The tree of a module: paths, walks, its parameters, buffers and children. */
#include "nn/module.h"
#include <string.h>

/* ---- Paths -------------------------------------------------------------------------------- */

const char *ng_module_path(const ng_module *root, const ng_module *module)
{
    if (module == root || !module->registry->path) return "";
    const ng_path *above = root->registry->path;
    return module->registry->path->text + (above ? strlen(above->text) + 1 : 0);
}

const char *ng_entry_path(const ng_module *root, const ng_entry *entry)
{
    const ng_path *above = root->registry->path;
    return entry->path->text + (above ? strlen(above->text) + 1 : 0);
}

/* ---- Walk --------------------------------------------------------------------------------- */

ng_tree_walk ng_tree_begin(const ng_module *root)
{
    return (ng_tree_walk){.root = root, .module = (ng_module *)root};
}

bool ng_tree_next(ng_tree_walk *w)
{
    while (w->next == w->module->registry->count) {
        if (w->module == w->root) return false;
        w->next = w->module->registry->place + 1;
        w->module = w->module->registry->parent;
    }
    w->owner = w->module;
    w->entry = &w->module->registry->entries[w->next++];
    if (w->entry->child) {
        w->module = w->entry->child;
        w->next = 0;
    }
    return true;
}

ng_module *ng_module_root(const ng_module *module)
{
    while (module->registry->parent) module = module->registry->parent;
    return (ng_module *)module;
}

/* ---- Look --------------------------------------------------------------------------------- */

bool ng_module_tensor(const ng_module *root, ng_entry_kind kind, int index, ng_named_tensor *found)
{
    if (kind != NG_ENTRY_CHILD && !ng_module_ready(root)) return false;
    for (ng_tree_walk w = ng_tree_begin(root); index >= 0 && ng_tree_next(&w);) {
        if (w.entry->kind != kind || index-- > 0) continue;
        *found = (ng_named_tensor){ng_entry_path(root, w.entry), w.entry->tensor, w.owner};
        return true;
    }
    return false;
}

bool ng_module_parameter(ng_module *module, int index, ng_named_tensor *parameter)
{
    static const char function[] = "ng_module_parameter";
    return ng_given(function, "module", module) && ng_given(function, "parameter", parameter) &&
           ng_module_tensor(module, NG_ENTRY_PARAMETER, index, parameter);
}

bool ng_module_buffer(ng_module *module, int index, ng_named_tensor *buffer)
{
    static const char function[] = "ng_module_buffer";
    return ng_given(function, "module", module) && ng_given(function, "buffer", buffer) &&
           ng_module_tensor(module, NG_ENTRY_BUFFER, index, buffer);
}

ng_tensor *ng_module_find(ng_module *module, const char *name)
{
    if (!ng_given("ng_module_find", "module", module) ||
        !ng_given("ng_module_find", "name", name) || !ng_module_ready(module))
        return NULL;
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);)
        if (w.entry->tensor && strcmp(ng_entry_path(module, w.entry), name) == 0)
            return ng_untied(w.entry->tensor);
    ng_fail(NG_EVALUE, "ng_module_find: the %s has no parameter or buffer named \"%s\"",
            module->type->name, name);
    return NULL;
}

const ng_module *ng_module_layer(const ng_module *root, int index)
{
    if (index == 0) return root;
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);)
        if (w.entry->child && --index == 0) return w.entry->child;
    return NULL;
}

static const ng_entry *nth_child(const ng_module *self, int index)
{
    if (index < 0) return NULL;
    for (int i = 0; i < self->registry->count; i++) {
        const ng_entry *entry = &self->registry->entries[i];
        if (entry->child && index-- == 0) return entry;
    }
    return NULL;
}

ng_module *ng_module_child(const ng_module *module, int index)
{
    if (!ng_given("ng_module_child", "module", module)) return NULL;
    const ng_entry *entry = nth_child(module, index);
    return entry ? entry->child : NULL;
}

const char *ng_module_child_name(const ng_module *module, int index)
{
    if (!ng_given("ng_module_child_name", "module", module)) return NULL;
    const ng_entry *entry = nth_child(module, index);
    return entry ? ng_entry_path(module, entry) : NULL;
}

int64_t ng_parameter_count(const ng_module *module)
{
    if (!ng_given("ng_parameter_count", "module", module)) return -1;
    int64_t count = 0;
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);)
        if (w.entry->kind == NG_ENTRY_PARAMETER) count += w.entry->tensor->size;
    return count;
}
