/* One network's values in another of the same structure: copied, or averaged in. */
#include "nn/module.h"
#include <string.h>

/* The tensors of a tree one after the other, in the order of registration. */
typedef struct {
    const ng_module *root;
    int depth;
    struct {
        const ng_module *module;
        int next; /* of its entries */
    } level[NG_MAX_DEPTH];
} walk;

static void walk_begin(walk *w, const ng_module *root)
{
    w->root = root;
    w->depth = 1;
    w->level[0].module = root;
    w->level[0].next = 0;
}

/* NULL past the last. */
static const ng_entry *walk_next(walk *w)
{
    while (w->depth > 0) {
        const ng_module *module = w->level[w->depth - 1].module;
        if (w->level[w->depth - 1].next == module->registry->count) {
            w->depth--;
            continue;
        }
        const ng_entry *entry = &module->registry->entries[w->level[w->depth - 1].next++];
        if (!entry->child) return entry;
        w->level[w->depth].module = entry->child;
        w->level[w->depth++].next = 0;
    }
    return NULL;
}

/* Whether each tensor of one has its like in the other. */
static ng_status compare(const char *function, const ng_module *to, const ng_module *from)
{
    walk a, b;
    walk_begin(&a, to), walk_begin(&b, from);
    for (;;) {
        const ng_entry *x = walk_next(&a), *y = walk_next(&b);
        if (!x && !y) return NG_OK;
        const char *of_x = x ? ng_entry_path(to, x) : "nothing more";
        const char *of_y = y ? ng_entry_path(from, y) : "nothing more";
        if (!x || !y || x->kind != y->kind || strcmp(of_x, of_y) != 0)
            return ng_fail(NG_EVALUE, "%s: the %s has %s where the other %s has %s", function,
                           to->type->name, of_x, from->type->name, of_y);
        if (!ng_shape_equal(x->tensor->shape, y->tensor->shape))
            return ng_fail(NG_ESHAPE, "%s: %s is %s, and %s in the other", function, of_x,
                           ng_shape_print(x->tensor->shape).text,
                           ng_shape_print(y->tensor->shape).text);
    }
}

static double between(double to, double from, double decay)
{
    return decay * to + (1 - decay) * from;
}

static void average(ng_tensor *to, const ng_tensor *from, double decay)
{
    if (to->dtype == NG_F32 && from->dtype == NG_F32) {
        float *x = to->data;
        const float *y = from->data;
        for (int64_t i = 0; i < to->size; i++)
            x[i] = (float)between((double)x[i], (double)y[i], decay);
    } else {
        for (int64_t i = 0; i < to->size; i++)
            ng_tensor_store(to, i, between(ng_tensor_load(to, i), ng_tensor_load(from, i), decay));
    }
    ng_touch(to);
}

/* Buffers are always copied. */
static ng_status merge(const char *function, ng_module *to, const ng_module *from, double decay)
{
    if (!ng_given(function, "to", to) || !ng_given(function, "from", from))
        return ng_newest_status();
    const ng_status status = compare(function, to, from);
    if (status != NG_OK || to == from) return status;
    walk a, b;
    walk_begin(&a, to), walk_begin(&b, from);
    for (const ng_entry *x, *y; (x = walk_next(&a)) && (y = walk_next(&b));)
        if (decay > 0 && x->kind == NG_ENTRY_PARAMETER)
            average(x->tensor, y->tensor, decay);
        else
            ng_copy_values(x->tensor, y->tensor);
    return NG_OK;
}

ng_status ng_module_copy(ng_module *to, const ng_module *from)
{
    return merge("ng_module_copy", to, from, 0);
}

ng_status ng_module_average(ng_module *to, const ng_module *from, double decay)
{
    static const char name[] = "ng_module_average";
    if (!(decay >= 0 && decay <= 1))
        return ng_fail(NG_EVALUE, "%s: decay is %g, expected 0 <= decay <= 1", name, decay);
    return merge(name, to, from, decay);
}
