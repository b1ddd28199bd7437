/* A module's parameters and buffers by name, in a file of the safetensors format. */
#include "io/safetensors.h"
#include <string.h>

ng_status ng_module_save(const ng_module *module, const char *path)
{
    static const char function[] = "ng_module_save";
    if (!ng_given(function, "module", module) || !ng_given(function, "path", path))
        return ng_newest_status();
    ng_stored_list list = {0};
    const ng_status status = ng_stored_add_module(function, &list, "", module)
                                 ? ng_safetensors_write(function, path, &list, NULL, 0)
                                 : NG_ENOMEM;
    ng_stored_free(&list);
    return status;
}

/* ---- Rename -------------------------------------------------------------------------------- */

static const char module_load[] = "ng_module_load";

/* The length of `parts` if the name begins with them, whole, else 0. */
static size_t match_parts(const char *name, const char *parts)
{
    const size_t length = strlen(parts);
    const bool same = strncmp(name, parts, length) == 0;
    return same && (name[length] == '.' || name[length] == '\0') ? length : 0;
}

/* Returns a copy of `name` with `other` in place of each run of parts that equals `old`, and sets
 * *any if there was one. ng_free the copy. */
static char *renamed(const char *name, const char *old, const char *other, bool *any)
{
    ng_text text = {.function = module_load};
    ng_text_add(&text, "", 0);
    for (const char *rest = name; *rest; rest += *rest == '.') {
        const size_t found = match_parts(rest, old), part = found ? found : strcspn(rest, ".");
        const size_t length = found ? strlen(other) : part;
        *any = *any || found;
        if (length > 0 && text.count > 0) ng_text_add(&text, ".", 1);
        ng_text_add(&text, found ? other : rest, (int64_t)length);
        rest += part;
    }
    if (!text.failed) return text.bytes;
    ng_free(text.bytes);
    return NULL;
}

/* Renames the file's tensors by each pair in turn. */
static bool rename_all(ng_safetensors *file, const char *const *rename)
{
    for (; rename && *rename; rename += 2) {
        bool any = false;
        if (!rename[1] || rename[0][0] == '\0')
            return ng_refuse(file->origin, NG_EVALUE, ".rename: \"%s\" %s", rename[0],
                             rename[1] ? "is renamed, expected a name" : "has no second name");
        for (int64_t i = 0; i < file->list.count; i++) {
            ng_stored *stored = &file->list.arrays[i];
            char *name = renamed(stored->name, rename[0], rename[1], &any);
            if (!name) return false;
            ng_free((char *)stored->name);
            stored->name = name;
        }
        if (!any)
            return ng_refuse(file->origin, NG_EVALUE, ".rename: no name with \"%s\"", rename[0]);
    }
    const char *twice = ng_stored_twice(&file->list);
    return !twice || ng_refuse(file->origin, NG_EVALUE, "two tensors are named \"%s\"", twice);
}

/* ---- Load ---------------------------------------------------------------------------------- */

/* Adds the names of arrays without a pair to the report and returns how many there are. */
static int64_t report_unpaired(ng_load_report *report, const char *heading,
                               const ng_stored_list *list)
{
    int64_t count = 0;
    for (int64_t i = 0; i < list->count; i++) {
        if (list->arrays[i].pair) continue;
        const size_t used = strlen(report->names);
        const char *between = count > 0 ? ", " : used > 0 ? "; " : "";
        snprintf(report->names + used, sizeof report->names - used, "%s%s%s", between,
                 count > 0 ? "" : heading, list->arrays[i].name);
        count++;
    }
    return count;
}

/* Fills the report. False if an array cannot hold the elements of its pair, or no array has one. */
static bool arrays_fit(const ng_safetensors *file, const ng_stored_list *list,
                       ng_load_report *report)
{
    for (int64_t i = 0; i < list->count; i++) {
        const ng_stored *own = &list->arrays[i];
        if (own->pair && !ng_stored_fits(file->origin, own->pair, own->tensor)) return false;
    }
    report->kept = report_unpaired(report, "kept: ", list);
    report->unused = report_unpaired(report, "unused: ", &file->list);
    report->loaded = list->count - report->kept;
    if (report->loaded > 0 || (list->count == 0 && file->list.count == 0)) return true;
    return ng_refuse(file->origin, NG_EVALUE, "has nothing for the module; %s", report->names);
}

/* There is no file: everything is kept, and the report says so. */
static ng_status keep_all(const ng_module *module, ng_load_report *report)
{
    ng_stored_list list = {0};
    const bool listed = ng_stored_add_module(module_load, &list, "", module);
    if (listed && report) {
        *report = (ng_load_report){0};
        report->kept = report_unpaired(report, "kept: ", &list);
    }
    ng_stored_free(&list);
    return listed ? NG_OK : NG_ENOMEM;
}

ng_status ng_module_load_with(ng_module *module, ng_module_load_options options)
{
    if (!ng_given(module_load, "module", module) || !ng_given(module_load, "path", options.path))
        return ng_newest_status();
    if (ng_file_missing(options.path))
        return options.or_keep
                   ? keep_all(module, options.report)
                   : ng_fail(NG_EIO, "%s: there is no file %s; .or_keep = true allows that",
                             module_load, options.path);
    ng_safetensors file;
    ng_load_report report = {0};
    ng_stored_list list = {0};
    const bool loaded =
        ng_safetensors_open(&file, module_load, options.path, options.verify) &&
        ng_stored_add_module(module_load, &list, "", module) && rename_all(&file, options.rename) &&
        ng_safetensors_match(&file, &list, options.partial) && arrays_fit(&file, &list, &report);
    for (int64_t i = 0; loaded && i < list.count; i++)
        if (list.arrays[i].pair) ng_stored_load(list.arrays[i].pair, list.arrays[i].tensor);
    ng_safetensors_close(&file);
    ng_stored_free(&list);
    if (loaded && options.report) *options.report = report;
    return loaded ? NG_OK : ng_newest_status();
}
