/* Sequential: one module after the other; and List, whose children their owner calls. */
#include "nn/module.h"

static ng_tensor *sequential_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    ng_module *child;
    ng_tensor *x = in->x;
    for (int i = 0; x && (child = ng_module_child(self, i)); i++)
        x = ng_forward_child(child, tape, x, in);
    return x;
}

static const ng_module_class sequential_class = {
    .name = "Sequential", .size = sizeof(ng_module), .forward_with = sequential_forward};

static const ng_module_class list_class = {.name = "List", .size = sizeof(ng_module)};

bool ng_is_container(const ng_module *module)
{
    return module->type == &sequential_class || module->type == &list_class;
}

static bool container_append(ng_module *self, ng_module *module)
{
    char name[16];
    snprintf(name, sizeof name, "%d", self ? self->registry->count : 0);
    return ng_module_add_child(self, name, module) != NULL;
}

static bool came_before(ng_module *const *modules, int index)
{
    for (int i = 0; i < index; i++)
        if (modules[i] == modules[index]) return true;
    return false;
}

static ng_module *container(const char *function, const ng_module_class *type,
                            ng_module *const *modules, int count)
{
    if (count < 0) {
        ng_fail(NG_EVALUE, "%s: %d modules, expected 0 or more", function, count);
        return NULL;
    }
    if (count > 0 && !ng_given(function, "modules", modules)) return NULL;
    ng_module *self = ng_module_new(type);
    for (int i = 0; i < count; i++) {
        char which[32];
        snprintf(which, sizeof which, "module %d", i);
        ng_given(function, which, modules[i]);
        if (self || !came_before(modules, i)) container_append(self, modules[i]);
    }
    return ng_module_built(self);
}

ng_module *ng_sequential_from(ng_module *const *modules, int count)
{
    return container("ng_sequential_from", &sequential_class, modules, count);
}

ng_module *ng_list_from(ng_module *const *modules, int count)
{
    return container("ng_list_from", &list_class, modules, count);
}

static ng_status container_add(const char *function, const char *role, const ng_module_class *type,
                               ng_module *self, ng_module *module)
{
    if (!ng_given(function, role, self) || !ng_given(function, "module", module)) {
        ng_module_free(module);
        return ng_newest_status();
    }
    if (self->type != type) {
        ng_module_refuse(self, module);
        return ng_fail(NG_EVALUE, "%s: the module is a %s, expected a %s", function,
                       self->type->name, type->name);
    }
    return container_append(self, module) ? NG_OK : ng_newest_status();
}

ng_status ng_sequential_add(ng_module *sequential, ng_module *module)
{
    return container_add("ng_sequential_add", "sequential", &sequential_class, sequential, module);
}

ng_status ng_list_add(ng_module *list, ng_module *module)
{
    return container_add("ng_list_add", "list", &list_class, list, module);
}
