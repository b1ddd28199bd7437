/* A module's parameters and buffers by name, in a file of the safetensors format. */
#include "io/file.h"
#include "io/safetensors.h"
#include "nn/module.h"
#include <string.h>

/* A tensor of the module, and what the file has for it, or NULL. */
typedef struct {
    ng_named_tensor own;
    const ng_stored *stored;
} tensor_pair;

/* All parameters and buffers of a module; ng_free them. */
static tensor_pair *tensors_of(const char *function, const ng_module *module, int *count)
{
    static const ng_entry_kind kinds[] = {NG_ENTRY_PARAMETER, NG_ENTRY_BUFFER};
    tensor_pair *pairs = NULL;
    for (bool filling = false;; filling = true) {
        ng_named_tensor tensor;
        *count = 0;
        for (int k = 0; k < 2; k++)
            for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++, ++*count)
                if (filling) pairs[*count].own = tensor;
        if (filling || !(pairs = ng_calloc(function, *count, sizeof *pairs))) return pairs;
    }
}

ng_status ng_module_save(const ng_module *module, const char *path)
{
    static const char function[] = "ng_module_save";
    if (!ng_given(function, "module", module) || !ng_given(function, "path", path))
        return ng_newest_status();
    int count;
    tensor_pair *pairs = tensors_of(function, module, &count);
    ng_stored *arrays = pairs ? ng_calloc(function, count, sizeof *arrays) : NULL;
    for (int i = 0; arrays && i < count; i++)
        arrays[i] = ng_stored_of(pairs[i].own.name, pairs[i].own.tensor);
    const ng_status status =
        arrays ? ng_safetensors_write(function, path, arrays, count, NULL, 0) : NG_ENOMEM;
    ng_free(arrays);
    ng_free(pairs);
    return status;
}

/* ---- Rename -------------------------------------------------------------------------------- */

static const char module_load[] = "ng_module_load";

/* The length of `from` if the whole parts at `at` equal it, else 0. */
static size_t match_parts(const char *at, const char *from)
{
    const size_t length = strlen(from);
    const bool same = strncmp(at, from, length) == 0;
    return same && (at[length] == '.' || at[length] == '\0') ? length : 0;
}

/* A copy of `name` in which each run of parts that equals `from` is replaced by `to`; ng_free it.
 * *any is set if there was one. */
static char *renamed(const char *name, const char *from, const char *to, bool *any)
{
    ng_text text = {.function = module_load};
    ng_text_add(&text, "", 0);
    for (const char *at = name; *at; at += *at == '.') {
        const size_t found = match_parts(at, from), part = found ? found : strcspn(at, ".");
        const size_t length = found ? strlen(to) : part;
        *any = *any || found;
        if (length > 0 && text.count > 0) ng_text_add(&text, ".", 1);
        ng_text_add(&text, found ? to : at, (int64_t)length);
        at += part;
    }
    if (!text.failed) return text.bytes;
    ng_free(text.bytes);
    return NULL;
}

/* Renames the file's tensors by each pair in turn. */
static bool rename_all(ng_safetensors *file, const char *const *rename)
{
    for (int i = 0; rename && rename[i]; i += 2)
        if (!rename[i + 1] || rename[i][0] == '\0')
            return ng_refuse(file->origin, NG_EVALUE, ".rename: \"%s\" %s", rename[i],
                             rename[i + 1] ? "is renamed, expected a name" : "has no second name");
    for (; rename && *rename; rename += 2) {
        bool any = false;
        for (int64_t i = 0; i < file->count; i++) {
            ng_stored *stored = &file->arrays[i];
            bool found = false;
            char *name = renamed(stored->name, rename[0], rename[1], &found);
            if (!name) return false;
            ng_free(found ? stored->renamed : name);
            if (found) stored->name = stored->renamed = name;
            any = any || found;
        }
        if (!any)
            return ng_refuse(file->origin, NG_EVALUE, ".rename: no name with \"%s\"", rename[0]);
    }
    return ng_safetensors_sort(file);
}

/* ---- Load ---------------------------------------------------------------------------------- */

static void report_name(ng_load_report *report, const char *heading, int64_t before,
                        const char *name)
{
    const size_t used = strlen(report->names), room = sizeof report->names - used;
    const char *between = before > 0 ? ", " : used > 0 ? "; " : "";
    snprintf(report->names + used, room, "%s%s%s", between, before > 0 ? "" : heading, name);
}

/* Finds what the file has for each tensor of the module, and whether it fits. */
static bool find_pairs(const ng_safetensors *file, bool partial, tensor_pair *pairs, int count,
                       ng_load_report *report)
{
    for (int i = 0; i < count; i++) {
        const char *name = pairs[i].own.name;
        const ng_tensor *x = pairs[i].own.tensor;
        const ng_stored *stored = pairs[i].stored = ng_safetensors_find(file, name);
        if (!stored) {
            report_name(report, "kept: ", report->kept++, name);
            if (partial) continue;
            return ng_refuse(file->origin, NG_EVALUE, "has no \"%s\"", name);
        }
        report->loaded++;
        if (!ng_shape_equal(stored->shape, x->shape))
            return ng_refuse(file->origin, NG_ESHAPE, "has \"%s\" of shape %s, expected %s", name,
                             ng_shape_print(stored->shape).text, ng_shape_print(x->shape).text);
        if (!ng_stored_fits(file->origin, stored, x)) return false;
    }
    return true;
}

/* Whether the module has a tensor for each of the file's, or need not. */
static bool none_unused(const ng_safetensors *file, bool partial, const tensor_pair *pairs,
                        int count, ng_load_report *report)
{
    for (int64_t i = 0; i < file->count; i++) {
        const ng_stored *stored = &file->arrays[i];
        bool used = false;
        for (int k = 0; k < count && !used; k++) used = pairs[k].stored == stored;
        if (used) continue;
        report_name(report, "unused: ", report->unused++, stored->name);
        if (partial) continue;
        return ng_refuse(file->origin, NG_EVALUE, "has \"%s\", which the module has not",
                         stored->name);
    }
    if (report->loaded > 0 || (count == 0 && file->count == 0)) return true;
    return ng_refuse(file->origin, NG_EVALUE, "has nothing for the module; %s", report->names);
}

ng_status ng_module_load_with(ng_module *module, ng_module_load_options options)
{
    if (!ng_given(module_load, "module", module) || !ng_given(module_load, "path", options.path))
        return ng_newest_status();
    ng_safetensors file;
    ng_load_report report = {0};
    int count = 0;
    tensor_pair *pairs = tensors_of(module_load, module, &count);
    const bool loaded = ng_safetensors_open(&file, module_load, options.path, options.verify) &&
                        pairs && rename_all(&file, options.rename) &&
                        find_pairs(&file, options.partial, pairs, count, &report) &&
                        none_unused(&file, options.partial, pairs, count, &report);
    for (int i = 0; loaded && i < count; i++)
        if (pairs[i].stored) ng_stored_load(pairs[i].stored, pairs[i].own.tensor);
    ng_safetensors_close(&file);
    ng_free(pairs);
    if (loaded && options.report) *options.report = report;
    return loaded ? NG_OK : ng_newest_status();
}
