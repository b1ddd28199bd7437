/* What all modules share: registration, paths, iteration, drawing, modes, dtype, freeing. */
#include "nn/module.h"
#include "tape/tape.h"
#include <math.h>
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

/* ---- Walk ---------------------------------------------------------------------------------- */

ng_tree_walk ng_tree_begin(const ng_module *root)
{
    return (ng_tree_walk){.root = root, .at = (ng_module *)root};
}

bool ng_tree_next(ng_tree_walk *w)
{
    while (w->next == w->at->registry->count) {
        if (w->at == w->root) return false;
        w->next = w->at->registry->place + 1;
        w->at = w->at->registry->parent;
    }
    w->owner = w->at;
    w->entry = &w->at->registry->entries[w->next++];
    if (w->entry->child) {
        w->at = w->entry->child;
        w->next = 0;
    }
    return true;
}

static ng_module *root_of(const ng_module *module)
{
    while (module->registry->parent) module = module->registry->parent;
    return (ng_module *)module;
}

/* ---- Make and free ------------------------------------------------------------------------ */

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
    if (registry->watcher) registry->watcher->destroy(registry->watcher);
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

/* ---- Draw --------------------------------------------------------------------------------- */

static ng_rng stream_of(uint64_t seed, const char *path)
{
    const uint64_t hash = ng_digest(NG_DIGEST_START, path, strlen(path));
    return ng_rng_seeded(hash ^ (seed * 0x9e3779b97f4a7c15u));
}

static bool has_tied(const ng_module *root)
{
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);)
        if (w.entry->kind == NG_ENTRY_TIED) return true;
    return false;
}

/* Draws the modules that are not drawn yet, each after its children, whose values it may use. */
static void draw_tree(const ng_module *root, ng_module *self, uint64_t seed)
{
    for (int i = 0; i < self->registry->count; i++) {
        ng_module *child = self->registry->entries[i].child;
        if (child) draw_tree(root, child, seed);
    }
    if (self->registry->drawn || !self->type->init) return;
    ng_rng rng = stream_of(seed, ng_module_path(root, self));
    self->type->init(self, &rng);
}

static void set_drawn(ng_module *root, bool drawn)
{
    root->registry->drawn = root->registry->complete = drawn;
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);)
        if (w.entry->child)
            w.entry->child->registry->drawn = w.entry->child->registry->complete = drawn;
}

/* Draws what is not drawn yet. Twice where weights are tied: a module may use one that is drawn
 * after it. */
static bool draw(ng_module *root, uint64_t seed)
{
    const int64_t failures = ng_failures_ever();
    root->registry->complete = true; /* so that a class's init may look at its module */
    draw_tree(root, root, seed);
    if (has_tied(root)) draw_tree(root, root, seed);
    if (ng_failures_ever() == failures) {
        set_drawn(root, true);
        return true;
    }
    root->registry->complete = false;
    ng_fail_unrecorded(failures, NG_ESTATE, "ng_module_init: the init of a class has failed");
    return false;
}

bool ng_module_ready(const ng_module *module)
{
    if (module->registry->complete) return true;
    ng_module *root = root_of(module);
    return root->registry->complete || draw(root, 0);
}

ng_status ng_module_init(ng_module *module, uint64_t seed)
{
    if (!ng_given("ng_module_init", "module", module)) return ng_newest_status();
    if (module->registry->parent && !ng_module_ready(module)) return ng_newest_status();
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);)
        if (w.entry->tensor) ng_fill(w.entry->tensor, w.entry->initial);
    set_drawn(module, false);
    return draw(module, seed) ? NG_OK : ng_newest_status();
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
    if (child && (!self || root_of(self) != child)) ng_module_free(child);
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
    if (root_of(self) == child)
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

/* ---- Look ---------------------------------------------------------------------------------- */

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

/* The description, in a buffer that is doubled until the text fits. */
static char *describe_whole(const char *function, const ng_module *module)
{
    enum { MOST = 1 << 20 };
    for (int64_t bytes = 256; bytes <= MOST; bytes *= 2) {
        char *text = ng_calloc(function, bytes, 1);
        if (!text) return NULL;
        ng_module_describe(module, text, (size_t)bytes);
        if ((int64_t)strlen(text) < bytes - 1) return text;
        ng_free(text);
    }
    ng_fail(NG_EVALUE, "%s: the settings of a %s take more than %d characters", function,
            module->type->name, MOST);
    return NULL;
}

char *ng_module_settings(const char *function, const ng_module *module)
{
    const locale_t locale = ng_c_locale_begin();
    char *text = describe_whole(function, module);
    ng_c_locale_end(locale);
    return text;
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

/* ---- Use ----------------------------------------------------------------------------------- */

ng_tensor *ng_failed_in(const ng_module *module, int64_t failures_before)
{
    ng_fail_unrecorded(failures_before, NG_ENULL, "forward returned NULL without an error");
    if (ng_failures() > ng_failures_ever() - failures_before) return NULL;
    ng_locate_error(ng_module_path(root_of(module), module), module->type->name);
    return NULL;
}

/* The watcher of a module that is about to run, or NULL. It is on this tape from now on. Nothing is
 * noted of results that are given back. */
static ng_watcher *watcher_of_pass(const ng_module *module, ng_tape *tape)
{
    if (!module->registry->seen || tape->scopes > 0) return NULL;
    ng_watcher *watcher = module->registry->seen->watcher;
    if (watcher->listener.tape != tape) {
        ng_tape_listen(tape, &watcher->listener);
        watcher->pass++;
    }
    watcher->n_rstd = 0;
    return watcher;
}

/* Notes the output of a module, and the statistics of the norm that has run inside it, unless a
 * module below has taken them. */
static ng_tensor *noted(const ng_module *module, ng_watcher *watcher, ng_tensor *y)
{
    if (!watcher) return y;
    *module->registry->seen = (ng_seen){watcher, watcher->pass, y, watcher->rstd, watcher->n_rstd};
    watcher->n_rstd = 0;
    return y;
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
    ng_watcher *watcher = watcher_of_pass(module, tape);
    ng_tensor *y = run_class(module, tape, inputs, advice);
    if (!y || !ng_usable(function, "the result of its class", 0, tape, y))
        return ng_failed_in(module, failures);
    return noted(module, watcher, y);
}

/* The inputs that the module uses where they are given, or one to which it passes them on. */
static unsigned taken_by(const ng_module *module)
{
    unsigned taken = module->takes | module->needs;
    for (int i = 0; i < module->registry->count && module->type->forward_with; i++)
        if (module->registry->entries[i].child)
            taken |= taken_by(module->registry->entries[i].child);
    return taken;
}

/* The module in the tree whose .forward keeps this input from a layer below it, or NULL. */
static const ng_module *kept_by(const ng_module *root, unsigned input)
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
static bool refuse_idle(const char *function, const ng_module *module, int index)
{
    const char *name = named_inputs[index].name;
    const ng_module *keeper = kept_by(module, 1u << index);
    if (keeper)
        ng_fail(NG_EVALUE,
                "%s: .%s is given, but the .forward of %s passes no inputs on to its children: "
                "use .forward_with and ng_forward_child",
                function, name, keeper->type->name);
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
    const unsigned idle = set ? set & ~taken_by(module) : 0;
    for (int i = 0; i < NAMED_INPUTS; i++)
        if (idle >> i & 1) return refuse_idle(function, module, i);
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

static void set_training(ng_module *module, bool training)
{
    module->training = training;
    for (ng_tree_walk w = ng_tree_begin(module); ng_tree_next(&w);)
        if (w.entry->child) w.entry->child->training = training;
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

/* ---- Convert ------------------------------------------------------------------------------- */

bool ng_range_fits(const char *function, const char *name, const ng_tensor *x, ng_dtype dtype)
{
    if (x->dtype != NG_F64 || dtype != NG_F32) return true;
    const double *value = x->data;
    for (int64_t i = 0; i < x->size; i++) {
        if (!isfinite(value[i]) || isfinite((float)value[i])) continue;
        ng_fail(NG_EVALUE, "%s: %s has %g at index %lld, beyond the range of float32", function,
                name, value[i], (long long)i);
        return false;
    }
    return true;
}

/* Converts all tensors of a tree into `converted` ones, which drop_converted frees. */
static bool convert_tree(const ng_module *root, ng_dtype dtype)
{
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);) {
        const ng_tensor *x = w.entry->tensor;
        if (!x || x->dtype == dtype || x->dtype == NG_I64) continue; /* counters stay int64 */
        if (!ng_range_fits("ng_module_to", ng_entry_path(root, w.entry), x, dtype)) return false;
        w.entry->converted = ng_tensor_make("ng_module_to", dtype, x->shape);
        if (!w.entry->converted) return false;
        ng_copy_values(w.entry->converted, x);
    }
    return true;
}

static void drop_converted(ng_module *root)
{
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);) {
        ng_tensor_destroy(w.entry->converted);
        w.entry->converted = NULL;
    }
}

/* Exchanges the elements with those of `converted`, so that pointers to the tensor stay valid. */
static void trade_converted(ng_entry *entry)
{
    ng_tensor *x = entry->tensor, *converted = entry->converted;
    void *data = x->data;
    x->data = converted->data;
    x->dtype = converted->dtype;
    converted->data = data;
    ng_tensor_destroy(x->leaf->grad);
    x->leaf->grad = NULL;
    x->leaf->grad_state = NG_GRAD_NONE;
    ng_touch(x);
}

ng_status ng_module_to(ng_module *module, ng_dtype dtype)
{
    if (!ng_given("ng_module_to", "module", module) || !ng_module_ready(module))
        return ng_newest_status();
    if (dtype != NG_F32 && dtype != NG_F64)
        return ng_fail(NG_EDTYPE, "ng_module_to: dtype %s, expected float32 or float64",
                       ng_dtype_name(dtype));
    const bool converted = convert_tree(module, dtype);
    for (ng_tree_walk w = ng_tree_begin(module); converted && ng_tree_next(&w);)
        if (w.entry->converted) trade_converted(w.entry);
    drop_converted(module);
    return converted ? NG_OK : ng_newest_status();
}
