/* Copies a network: values into another of the same structure, moving averages, clones. */
#include "nn/module.h"
#include <string.h>

/* The next tensor of a tree; NULL after the last. */
static const ng_entry *next_tensor(ng_tree_walk *w)
{
    while (ng_tree_next(w))
        if (w->entry->tensor) return w->entry;
    return NULL;
}

/* NG_OK if both trees have the same tensors, and all values of `from` fit the dtype in `to`. */
static ng_status trees_match(const char *function, const ng_module *to, const ng_module *from)
{
    ng_tree_walk a = ng_tree_begin(to), b = ng_tree_begin(from);
    for (;;) {
        const ng_entry *x = next_tensor(&a), *y = next_tensor(&b);
        if (!x && !y) return NG_OK;
        const char *of_x = x ? ng_entry_path(to, x) : "nothing more";
        const char *of_y = y ? ng_entry_path(from, y) : "nothing more";
        if (!x || !y || x->kind != y->kind || strcmp(of_x, of_y) != 0)
            return ng_fail(NG_EVALUE, "%s: to, a %s, has %s, but from, a %s, has %s in its place",
                           function, to->type->name, of_x, from->type->name, of_y);
        if (!ng_shape_equal(x->tensor->shape, y->tensor->shape))
            return ng_fail(NG_ESHAPE, "%s: %s is %s in to, but %s in from", function, of_x,
                           ng_shape_print(x->tensor->shape).text,
                           ng_shape_print(y->tensor->shape).text);
        if (!ng_range_fits(function, of_y, y->tensor, x->tensor->dtype)) return ng_newest_status();
    }
}

static double average_of(double to, double from, double decay)
{
    return decay * to + (1 - decay) * from;
}

static void average(ng_tensor *to, const ng_tensor *from, double decay)
{
    if (to->dtype == NG_F32 && from->dtype == NG_F32) {
        float *x = to->data;
        const float *y = from->data;
        for (int64_t i = 0; i < to->size; i++)
            x[i] = (float)average_of((double)x[i], (double)y[i], decay);
    } else {
        for (int64_t i = 0; i < to->size; i++)
            ng_tensor_store(to, i,
                            average_of(ng_tensor_load(to, i), ng_tensor_load(from, i), decay));
    }
    ng_touch(to);
}

/* Averages parameters if decay is above 0, and copies everything else. */
static ng_status copy_or_average(const char *function, ng_module *to, const ng_module *from,
                                 double decay)
{
    if (!ng_given(function, "to", to) || !ng_given(function, "from", from))
        return ng_newest_status();
    const ng_status status = trees_match(function, to, from);
    if (status != NG_OK || to == from) return status;
    ng_tree_walk a = ng_tree_begin(to), b = ng_tree_begin(from);
    for (const ng_entry *x, *y; (x = next_tensor(&a)) && (y = next_tensor(&b));)
        if (decay > 0 && x->kind == NG_ENTRY_PARAMETER)
            average(x->tensor, y->tensor, decay);
        else
            ng_copy_values(x->tensor, y->tensor);
    return NG_OK;
}

ng_status ng_module_copy(ng_module *to, const ng_module *from)
{
    return copy_or_average("ng_module_copy", to, from, 0);
}

ng_status ng_module_average(ng_module *to, const ng_module *from, double decay)
{
    static const char name[] = "ng_module_average";
    if (!(decay >= 0 && decay <= 1))
        return ng_fail(NG_EVALUE, "%s: decay is %g, expected 0 <= decay <= 1", name, decay);
    return copy_or_average(name, to, from, decay);
}

/* ---- Clone: the structure first, then where pointers lead, then the values ------------------- */

static const char cloning[] = "ng_module_clone";

/* An address in the old tree, and its counterpart in the new one. */
typedef struct {
    const void *old;
    void *new;
} twin;

/* A module with the entries of `from`, without its values and the struct after the base. */
static ng_module *structure_of(const ng_module *from)
{
    if (from->type->destroy && !from->type->clone) {
        ng_fail(NG_EVALUE, "%s: the class %s has .destroy, expected .clone as well", cloning,
                from->type->name);
        return NULL;
    }
    ng_module *self = ng_module_new(from->type);
    if (!self) return NULL;
    struct ng_registry *registry = self->registry;
    registry->seeded = true; /* nothing is drawn on the way */
    for (int i = 0; i < from->registry->count && !registry->failed; i++) {
        const ng_entry *entry = &from->registry->entries[i];
        const char *name = ng_entry_path(from, entry);
        if (entry->child)
            ng_module_add_child(self, name, structure_of(entry->child));
        else
            ng_module_add_tensor(cloning, self, name, entry->kind, entry->tensor->dtype,
                                 entry->tensor->shape);
    }
    if (!registry->failed) return self;
    ng_module_free(self);
    return NULL;
}

static int64_t entries_below(const ng_module *root)
{
    int64_t count = 0;
    for (ng_tree_walk w = ng_tree_begin(root); ng_tree_next(&w);) count++;
    return count;
}

static void pair_up(const ng_module *from, const ng_module *to, twin *next)
{
    ng_tree_walk a = ng_tree_begin(from), b = ng_tree_begin(to);
    while (ng_tree_next(&a) && ng_tree_next(&b))
        *next++ = a.entry->child ? (twin){a.entry->child, b.entry->child}
                                 : (twin){a.entry->tensor, b.entry->tensor};
}

/* Replaces each word of the struct that is an address in the old tree by that of its counterpart. A
 * word may be padding, which is not initialized; tests/valgrind.supp names this function. */
__attribute__((noinline)) static void redirect(ng_module *self, const twin *twins, int64_t count)
{
    for (size_t at = sizeof(ng_module); at + sizeof(void *) <= self->type->size;
         at += sizeof(void *)) {
        const void *word;
        memcpy(&word, (char *)self + at, sizeof word);
        for (int64_t i = 0; i < count; i++)
            if (twins[i].old == word) memcpy((char *)self + at, &twins[i].new, sizeof word);
    }
}

/* Copies the struct. If the class's clone fails, it has freed what it had made, and its part of the
 * struct is zeroed for destroy. */
static ng_status fill_struct(const ng_module *from, ng_module *to, const twin *twins, int64_t count)
{
    struct ng_registry *registry = to->registry;
    memcpy(to, from, from->type->size);
    to->registry = registry;
    registry->seeded = from->registry->seeded;
    registry->drawn = from->registry->drawn;
    redirect(to, twins, count);
    const ng_status status = from->type->clone ? from->type->clone(to, from) : NG_OK;
    if (status != NG_OK) memset((char *)to + sizeof *to, 0, from->type->size - sizeof *to);
    return status;
}

static ng_status fill_in(const ng_module *from, ng_module *to, const twin *twins, int64_t count)
{
    ng_status status = fill_struct(from, to, twins, count);
    ng_tree_walk a = ng_tree_begin(from), b = ng_tree_begin(to);
    while (status == NG_OK && ng_tree_next(&a) && ng_tree_next(&b)) {
        if (a.entry->child) {
            status = fill_struct(a.entry->child, b.entry->child, twins, count);
            continue;
        }
        const ng_tensor *x = a.entry->tensor;
        ng_copy_values(b.entry->tensor, x);
        b.entry->tensor->requires_grad = x->requires_grad;
        b.entry->tensor->version = x->version;
        b.entry->initial = a.entry->initial;
        for (int64_t i = 0; ng_tied_to(x) && i < count; i++)
            if (twins[i].old == ng_tied_to(x)) b.entry->tensor->leaf->tied = twins[i].new;
        if (ng_tied_to(x) && !ng_tied_to(b.entry->tensor))
            status = ng_fail(NG_EVALUE, "%s: %s is tied to a parameter outside of the %s", cloning,
                             ng_entry_path(from, a.entry), from->type->name);
    }
    return status;
}

ng_module *ng_module_clone(const ng_module *module)
{
    if (!ng_given(cloning, "module", module)) return NULL;
    ng_module *self = structure_of(module);
    const int64_t count = entries_below(module);
    twin *twins = self ? ng_calloc(cloning, count + 1, sizeof *twins) : NULL;
    if (!twins) {
        ng_module_free(self);
        return NULL;
    }
    pair_up(module, self, twins);
    const ng_status status = fill_in(module, self, twins, count);
    ng_free(twins);
    if (status == NG_OK) return self;
    ng_module_free(self);
    return NULL;
}
