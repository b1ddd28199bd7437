/* What all modules share: making, registering, adopting, modes, freeing. */
#include "nn/module.h"
#include <string.h>

/* ---- Make and free ------------------------------------------------------------------------ */

/* "front.name", or name alone at the root. */
static ng_path *path_new(const char *function, const char *front, const char *name, ng_path *older)
{
    const size_t bytes = (front ? strlen(front) + 1 : 0) + strlen(name) + 1;
    ng_path *path = ng_calloc(function, (int64_t)(sizeof(ng_path) + bytes), 1);
    if (!path) return NULL;
    snprintf(path->text, bytes, "%s%s%s", front ? front : "", front ? "." : "", name);
    path->older = older;
    return path;
}

static void path_free(ng_path *path)
{
    while (path) {
        ng_path *older = path->older;
        ng_free(path);
        path = older;
    }
}

static bool class_accepted(const char *function, const ng_module_class *type)
{
    if (type->size < sizeof(ng_module))
        ng_fail(NG_EVALUE, "%s: the class %s has a size of %zu, expected that of its struct",
                function, type->name, type->size);
    else if (type->forward && type->forward_with)
        ng_fail(NG_EVALUE, "%s: the class %s has .forward and .forward_with, expected one of them",
                function, type->name);
    else if (type->forward && (type->takes | type->needs))
        ng_fail(NG_EVALUE,
                "%s: the class %s has .takes or .needs with .forward, which gets x alone: "
                "expected .forward_with",
                function, type->name);
    else
        return true;
    return false;
}

ng_module *ng_module_new(const ng_module_class *type)
{
    static const char function[] = "ng_module_new";
    if (!ng_given(function, "type", type) || !ng_given(function, "type->name", type->name) ||
        !class_accepted(function, type))
        return NULL;
    ng_module *self = ng_calloc(function, 1, type->size);
    struct ng_registry *registry = ng_calloc(function, 1, sizeof *registry);
    if (!self || !registry) {
        ng_free(self), ng_free(registry);
        return NULL;
    }
    self->type = type;
    self->takes = type->takes, self->needs = type->needs;
    self->training = true;
    self->registry = registry;
    return self;
}

static void module_destroy(ng_module *self)
{
    if (self->type->destroy) self->type->destroy(self);
    struct ng_registry *registry = self->registry;
    while (registry->watched) registry->watched->freed(registry->watched);
    for (int i = 0; i < registry->count; i++) {
        ng_entry *entry = &registry->entries[i];
        ng_tensor_destroy(entry->tensor);
        if (entry->child) module_destroy(entry->child);
        path_free(entry->path);
    }
    ng_free(registry->entries);
    ng_free(registry);
    ng_free(self);
}

void ng_module_free(ng_module *module)
{
    if (module && !module->registry->parent) module_destroy(module);
}

/* ---- Register ----------------------------------------------------------------------------- */

static bool name_accepted(const char *function, const ng_module *self, const char *name)
{
    if (!ng_given(function, "name", name)) return false;
    if (!*name || strchr(name, '.')) {
        ng_fail(NG_EVALUE, "%s: name \"%s\" in a %s, expected one without '.'", function, name,
                self->type->name);
        return false;
    }
    for (int i = 0; i < self->registry->count; i++)
        if (strcmp(ng_entry_path(self, &self->registry->entries[i]), name) == 0) {
            ng_fail(NG_EVALUE, "%s: a %s has two entries named \"%s\"", function, self->type->name,
                    name);
            return false;
        }
    return true;
}

/* The entry after the last one, with its path; the caller adds it by counting it. NULL on error. */
static ng_entry *entry_prepare(const char *function, ng_module *self, const char *name)
{
    struct ng_registry *registry = self->registry;
    if (!name_accepted(function, self, name)) return NULL;
    if (registry->count == registry->capacity) {
        const int capacity = registry->capacity ? 2 * registry->capacity : 4;
        ng_entry *grown =
            ng_grow(function, registry->entries, registry->count, capacity, sizeof *grown);
        if (!grown) return NULL;
        registry->entries = grown;
        registry->capacity = capacity;
    }
    ng_path *path = path_new(function, registry->path ? registry->path->text : NULL, name, NULL);
    if (!path) return NULL;
    ng_entry *entry = &registry->entries[registry->count];
    *entry = (ng_entry){.path = path};
    return entry;
}

/* Notes a failure of the constructor, for ng_module_built. */
static void *remember_failure(ng_module *self)
{
    self->registry->failed = true;
    return NULL;
}

void ng_module_restructured(ng_module *self, int64_t more)
{
    for (; self; self = self->registry->parent) {
        self->registry->parameters += more;
        self->registry->structure++;
    }
}

/* Adds the prepared entry, whose tensor the module owns from now on. */
static void add_entry(ng_module *self, ng_entry *entry, ng_entry_kind kind, ng_tensor *tensor)
{
    entry->kind = kind;
    entry->tensor = tensor;
    tensor->module_owned = true;
    self->registry->count++;
    ng_module_restructured(self, kind == NG_ENTRY_PARAMETER ? 1 : 0);
}

ng_entry *ng_module_add_tensor(const char *function, ng_module *self, const char *name,
                               ng_entry_kind kind, ng_dtype dtype, ng_shape shape)
{
    ng_entry *entry = entry_prepare(function, self, name);
    if (!entry) return remember_failure(self);
    ng_tensor *tensor = ng_tensor_make(function, dtype, shape);
    if (!tensor) {
        path_free(entry->path);
        return remember_failure(self);
    }
    add_entry(self, entry, kind, tensor);
    return entry;
}

void ng_module_drop_last(ng_module *self)
{
    ng_entry *entry = &self->registry->entries[--self->registry->count];
    ng_tensor_destroy(entry->tensor);
    path_free(entry->path);
    ng_module_restructured(self, entry->kind == NG_ENTRY_PARAMETER ? -1 : 0);
}

bool ng_module_take_parameter(const char *function, ng_module *self, const char *name,
                              ng_tensor *tensor)
{
    ng_entry *entry = entry_prepare(function, self, name);
    if (!entry) return false;
    add_entry(self, entry, NG_ENTRY_PARAMETER, tensor);
    tensor->requires_grad = true;
    return true;
}

static ng_tensor *fill_first(ng_entry *entry, double value)
{
    entry->initial = value;
    ng_fill(entry->tensor, value);
    return entry->tensor;
}

ng_tensor *ng_module_add_parameter_with(ng_module *self, const char *name,
                                        ng_module_add_parameter_options options)
{
    static const char function[] = "ng_module_add_parameter";
    if (!ng_given(function, "self", self)) return NULL;
    if (options.left_out) return NG_NONE;
    ng_entry *entry =
        ng_module_add_tensor(function, self, name, NG_ENTRY_PARAMETER, NG_F32, options.shape);
    if (!entry) return NULL;
    entry->tensor->requires_grad = !self->frozen;
    return fill_first(entry, options.value == 0 ? 0 : options.value);
}

ng_tensor *ng_module_add_buffer(ng_module *self, const char *name, ng_shape shape, double value)
{
    if (!ng_given("ng_module_add_buffer", "self", self)) return NULL;
    ng_entry *entry =
        ng_module_add_tensor("ng_module_add_buffer", self, name, NG_ENTRY_BUFFER, NG_F32, shape);
    if (!entry) return NULL;
    return fill_first(entry, value);
}

ng_tensor *ng_module_add_count(ng_module *self, const char *name)
{
    ng_entry *entry =
        ng_module_add_tensor("ng_module_add_count", self, name, NG_ENTRY_BUFFER, NG_I64, NG_SCALAR);
    return entry ? entry->tensor : NULL;
}

ng_module *ng_module_built(ng_module *self)
{
    if (!ng_given("ng_module_built", "self", self)) return NULL;
    if (!self->registry->failed) return self;
    if (!ng_failed())
        ng_fail(NG_ESTATE,
                "ng_module_built: a child, parameter or buffer of the %s could not be added",
                self->type->name);
    ng_module_free(self);
    return NULL;
}

/* ---- Adopt -------------------------------------------------------------------------------- */

/* Makes the path front.path for everything below `self`; drop_paths undoes it. */
static bool prepare_paths(ng_module *self, const char *front)
{
    for (ng_tree_walk w = ng_tree_begin(self); ng_tree_next(&w);) {
        ng_path *path = w.entry->path;
        w.entry->next_path = path_new("ng_module_add_child", front, path->text, path);
        if (!w.entry->next_path) return false;
    }
    return true;
}

static void drop_paths(ng_module *self)
{
    for (ng_tree_walk w = ng_tree_begin(self); ng_tree_next(&w);) {
        ng_free(w.entry->next_path);
        w.entry->next_path = NULL;
    }
}

static void commit_paths(ng_module *self)
{
    for (ng_tree_walk w = ng_tree_begin(self); ng_tree_next(&w);) {
        w.entry->path = w.entry->next_path;
        w.entry->next_path = NULL;
        if (w.entry->child) w.entry->child->registry->path = w.entry->path;
    }
}

void ng_module_refuse(ng_module *self, ng_module *child)
{
    if (child && (!self || ng_module_root(self) != child)) ng_module_free(child);
}

static int depth_of(const ng_module *module)
{
    int depth = 0;
    while ((module = module->registry->parent)) depth++;
    return depth;
}

/* Whether `child` belongs to no module, and does not contain self. */
static bool may_adopt(const ng_module *self, const char *name, const ng_module *child)
{
    static const char function[] = "ng_module_add_child";
    const char *label = name ? name : "", *type = child->type->name;
    if (ng_module_root(self) == child)
        ng_fail(NG_ESTATE, "%s: the %s \"%s\" would contain itself", function, type, label);
    else if (child->registry->parent)
        ng_fail(NG_ESTATE,
                "%s: the %s \"%s\" already belongs to a %s, expected a module of its own: make "
                "another one, then ng_module_copy its values, or ng_module_tie the parameters",
                function, type, label, child->registry->parent->type->name);
    else
        return true;
    return false;
}

static bool is_shallow(const ng_module *self, const ng_module *child)
{
    if (depth_of(self) + 1 + child->registry->height < NG_MAX_DEPTH) return true;
    ng_fail(NG_EVALUE, "ng_module_add_child: a %s in a %s nests modules more than %d deep",
            child->type->name, self->type->name, NG_MAX_DEPTH);
    return false;
}

ng_module *ng_module_add_child(ng_module *self, const char *name, ng_module *child)
{
    if (!ng_given("ng_module_add_child", "self", self)) {
        ng_module_free(child);
        return NULL;
    }
    if (!ng_given("ng_module_add_child", "child", child) || !may_adopt(self, name, child))
        return remember_failure(self);

    ng_entry *entry =
        is_shallow(self, child) ? entry_prepare("ng_module_add_child", self, name) : NULL;
    if (!entry || !prepare_paths(child, entry->path->text)) {
        drop_paths(child);
        if (entry) path_free(entry->path);
        ng_module_free(child);
        return remember_failure(self);
    }
    entry->kind = NG_ENTRY_CHILD;
    entry->child = child;
    child->registry->place = self->registry->count++;
    child->registry->parent = self;
    child->registry->path = entry->path;
    ng_module_restructured(self, child->registry->parameters);
    int height = child->registry->height + 1;
    for (ng_module *above = self; above; above = above->registry->parent, height++)
        if (above->registry->height < height) above->registry->height = height;
    commit_paths(child);
    for (ng_module *above = self; above && !child->registry->complete;
         above = above->registry->parent)
        above->registry->complete = false;
    return child;
}

/* ---- Modes -------------------------------------------------------------------------------- */

static void set_training(ng_module *module, bool training)
{
    module->training = training;
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);)
        if (w.entry->child) w.entry->child->training = training;
}

bool ng_modes_evaluate(const char *function, ng_module *root, ng_modes *before)
{
    *before = (ng_modes){0};
    const ng_module *module;
    while (ng_module_layer(root, before->count)) before->count++;
    before->training = ng_calloc(function, before->count, sizeof *before->training);
    if (!before->training || !ng_module_ready(root)) {
        ng_free(before->training);
        *before = (ng_modes){0};
        return false;
    }
    for (int i = 0; (module = ng_module_layer(root, i)); i++)
        before->training[i] = module->training;
    set_training(root, false);
    return true;
}

void ng_modes_restore(ng_module *root, ng_modes *before)
{
    ng_module *module;
    for (int i = 0; i < before->count && (module = (ng_module *)ng_module_layer(root, i)); i++)
        module->training = before->training[i];
    ng_free(before->training);
}

void ng_train(ng_module *module)
{
    if (ng_given("ng_train", "module", module)) set_training(module, true);
}

void ng_eval(ng_module *module)
{
    if (ng_given("ng_eval", "module", module) && ng_module_ready(module))
        set_training(module, false);
}

static void set_frozen(ng_module *module, bool frozen)
{
    module->frozen = frozen;
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);) {
        if (w.entry->child) w.entry->child->frozen = frozen;
        if (w.entry->kind == NG_ENTRY_PARAMETER) w.entry->tensor->requires_grad = !frozen;
    }
}

void ng_freeze(ng_module *module)
{
    if (ng_given("ng_freeze", "module", module)) set_frozen(module, true);
}

void ng_unfreeze(ng_module *module)
{
    if (ng_given("ng_unfreeze", "module", module)) set_frozen(module, false);
}
