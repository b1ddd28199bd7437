/* Copies values into another network of the same structure; moving averages; conversion. */
#include "nn/module.h"
#include <math.h>
#include <string.h>

/* The next tensor of a tree; NULL after the last. */
static const ng_entry *next_tensor(ng_tree_walk *w)
{
    while (ng_tree_next(w))
        if (w->entry->tensor) return w->entry;
    return NULL;
}

static const char *kind_name(const ng_entry *entry)
{
    if (!entry) return "nothing";
    if (entry->kind == NG_ENTRY_TIED) return "the tied";
    return entry->kind == NG_ENTRY_BUFFER ? "the buffer" : "the parameter";
}

/* The path of the parameter to which a tensor is tied; "" if it is not, or to one outside. */
static const char *tied_path(const ng_module *root, const ng_tensor *x)
{
    const ng_tensor *target = ng_tied_to(x);
    for (ng_tree_walk w = ng_tree_begin(root); target && ng_tree_next(&w);)
        if (w.entry->tensor == target) return ng_entry_path(root, w.entry);
    return "";
}

/* NG_OK if both trees have the same tensors, and the values of `source` fit `target`. */
static ng_status trees_match(const char *function, const ng_module *target, const ng_module *source)
{
    ng_tree_walk a = ng_tree_begin(target), b = ng_tree_begin(source);
    for (;;) {
        const ng_entry *x = next_tensor(&a), *y = next_tensor(&b);
        if (!x && !y) return NG_OK;
        const char *of_x = x ? ng_entry_path(target, x) : "more";
        const char *of_y = y ? ng_entry_path(source, y) : "more";
        if (!x || !y || x->kind != y->kind || strcmp(of_x, of_y) != 0)
            return ng_fail(NG_EVALUE, "%s: target, a %s, has %s %s, but source, a %s, has %s %s",
                           function, target->type->name, kind_name(x), of_x, source->type->name,
                           kind_name(y), of_y);
        const char *tie_x = tied_path(target, x->tensor), *tie_y = tied_path(source, y->tensor);
        if (strcmp(tie_x, tie_y) != 0)
            return ng_fail(NG_EVALUE, "%s: %s is tied to %s in target, but to %s in source",
                           function, of_x, tie_x, tie_y);
        if (!ng_shape_equal(x->tensor->shape, y->tensor->shape))
            return ng_fail(NG_ESHAPE, "%s: %s is %s in target, but %s in source", function, of_x,
                           ng_shape_print(x->tensor->shape).text,
                           ng_shape_print(y->tensor->shape).text);
        if (!ng_range_fits(function, of_y, y->tensor, x->tensor->dtype)) return ng_newest_status();
    }
}

static double average_of(double target, double source, double decay)
{
    return decay * target + (1 - decay) * source;
}

static void average(ng_tensor *target, const ng_tensor *source, double decay)
{
    if (target->dtype == NG_F32 && source->dtype == NG_F32) {
        float *x = target->data;
        const float *y = source->data;
        for (int64_t i = 0; i < target->size; i++)
            x[i] = (float)average_of((double)x[i], (double)y[i], decay);
    } else {
        for (int64_t i = 0; i < target->size; i++)
            ng_tensor_store(
                target, i, average_of(ng_tensor_load(target, i), ng_tensor_load(source, i), decay));
    }
    ng_touch(target);
}

/* Averages parameters if decay is above 0, and copies everything else. */
static ng_status copy_or_average(const char *function, ng_module *target, const ng_module *source,
                                 double decay)
{
    if (!ng_given(function, "target", target) || !ng_given(function, "source", source) ||
        !ng_module_ready(target) || !ng_module_ready(source))
        return ng_newest_status();
    const ng_status status = trees_match(function, target, source);
    if (status != NG_OK || target == source) return status;
    ng_tree_walk a = ng_tree_begin(target), b = ng_tree_begin(source);
    for (const ng_entry *x, *y; (x = next_tensor(&a)) && (y = next_tensor(&b));)
        if (decay > 0 && x->kind == NG_ENTRY_PARAMETER)
            average(x->tensor, y->tensor, decay);
        else
            ng_copy_values(x->tensor, y->tensor);
    return NG_OK;
}

ng_status ng_module_copy(ng_module *target, const ng_module *source)
{
    return copy_or_average("ng_module_copy", target, source, 0);
}

ng_status ng_module_average(ng_module *target, const ng_module *source, double decay)
{
    static const char name[] = "ng_module_average";
    if (!(decay >= 0 && decay <= 1))
        return ng_fail(NG_EVALUE, "%s: decay is %g, expected 0 <= decay <= 1", name, decay);
    return copy_or_average(name, target, source, decay);
}

/* ---- Convert ------------------------------------------------------------------------------ */

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
    x->leaf->has_grad = false;
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
