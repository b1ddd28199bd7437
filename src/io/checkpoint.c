/* A module's parameters and buffers by name, in a file of the safetensors format. */
#include "io/file.h"
#include "io/safetensors.h"
#include "nn/module.h"
#include <string.h>

static const ng_entry_kind kinds[] = {NG_ENTRY_PARAMETER, NG_ENTRY_BUFFER};

static int count_tensors(const ng_module *module)
{
    ng_named_tensor tensor;
    int count = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++) count++;
    return count;
}

/* ---- Write --------------------------------------------------------------------------------- */

ng_status ng_module_save(const ng_module *module, const char *path)
{
    static const char function[] = "ng_module_save";
    if (!ng_given(function, "module", module) || !ng_given(function, "path", path))
        return ng_newest_status();
    const int count = count_tensors(module);
    ng_stored *arrays = ng_calloc(function, count, sizeof *arrays);
    if (!arrays) return NG_ENOMEM;
    ng_named_tensor tensor;
    for (int k = 0, n = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++)
            arrays[n++] = ng_stored_of(tensor.name, tensor.tensor);
    const ng_status status = ng_safetensors_write(function, path, arrays, count, NULL, 0);
    ng_free(arrays);
    return status;
}

/* ---- Rename -------------------------------------------------------------------------------- */

static const char load[] = "ng_module_load";

/* How long the run of whole parts at `at`, the begin of a part, is that equals `from`; 0 if it is
 * another one. */
static size_t matches(const char *at, const char *from)
{
    const size_t length = strlen(from);
    const bool same = strncmp(at, from, length) == 0;
    return same && (at[length] == '.' || at[length] == '\0') ? length : 0;
}

/* name with each run of parts that is `from` in the form `to`; to be given back with ng_free. */
static char *renamed(const char *name, const char *from, const char *to)
{
    ng_text text = {.function = load};
    ng_text_add(&text, "", 0);
    for (const char *at = name; *at;) {
        const size_t found = matches(at, from), part = found ? found : strcspn(at, ".");
        const char *put = found ? to : at;
        const size_t length = found ? strlen(to) : part;
        if (length > 0 && text.count > 0) ng_text_add(&text, ".", 1);
        ng_text_add(&text, put, (int64_t)length);
        at += part;
        if (*at == '.') at++;
    }
    if (!text.failed) return text.bytes;
    ng_free(text.bytes);
    return NULL;
}

static bool has_part(const char *name, const char *from)
{
    for (const char *at = name; *at; at += *at == '.') {
        if (matches(at, from)) return true;
        at += strcspn(at, ".");
    }
    return false;
}

static bool pairs_accepted(const char *const *rename)
{
    for (int i = 0; rename && rename[i]; i += 2)
        if (!rename[i + 1] || rename[i][0] == '\0') {
            ng_fail(NG_EVALUE, "%s: .rename: \"%s\" %s", load, rename[i],
                    rename[i + 1] ? "is renamed, expected a name" : "has no second name");
            return false;
        }
    return true;
}

/* Gives the file's tensors the names that a pair makes; made[i] is the i-th's where it has one. */
static bool rename_by(const char *const *pair, ng_safetensors *file, char **made)
{
    bool any = false;
    for (int64_t i = 0; i < file->count; i++) {
        if (!has_part(file->arrays[i].name, pair[0])) continue;
        char *name = renamed(file->arrays[i].name, pair[0], pair[1]);
        if (!name) return false;
        ng_free(made[i]);
        file->arrays[i].name = made[i] = name;
        any = true;
    }
    if (!any)
        ng_fail(NG_EVALUE, "%s: .rename: %s has no name with \"%s\"", load, file->path, pair[0]);
    return any;
}

static bool rename_all(ng_safetensors *file, const char *const *rename, char **made)
{
    for (const char *const *pair = rename; pair && *pair; pair += 2)
        if (!rename_by(pair, file, made)) return false;
    return ng_safetensors_sort(file);
}

/* ---- Read ---------------------------------------------------------------------------------- */

/* A tensor of the module, and what the file has for it, or NULL. */
typedef struct {
    ng_named_tensor own;
    const ng_stored *stored;
} match;

static void add_name(ng_load_report *report, const char *heading, int64_t before, const char *name)
{
    const size_t used = strlen(report->names), room = sizeof report->names - used;
    const char *between = before > 0 ? ", " : used > 0 ? "; " : "";
    snprintf(report->names + used, room, "%s%s%s", between, before > 0 ? "" : heading, name);
}

/* Finds what the file has for each tensor of the module. */
static bool assign(const ng_safetensors *file, bool partial, match *matches_of, int count,
                   ng_load_report *report)
{
    for (int i = 0; i < count; i++) {
        const char *name = matches_of[i].own.name;
        const ng_stored *stored = ng_safetensors_find(file, name);
        matches_of[i].stored = stored;
        if (!stored) {
            add_name(report, "kept: ", report->kept++, name);
            if (partial) continue;
            ng_fail(NG_EVALUE, "%s: %s has no \"%s\"", load, file->path, name);
            return false;
        }
        report->loaded++;
        const ng_tensor *x = matches_of[i].own.tensor;
        if (!ng_shape_equal(stored->shape, x->shape)) {
            ng_fail(NG_ESHAPE, "%s: %s has \"%s\" of shape %s, expected %s", load, file->path, name,
                    ng_shape_print(stored->shape).text, ng_shape_print(x->shape).text);
            return false;
        }
        if (!ng_stored_fits(load, file->path, stored, x)) return false;
    }
    return true;
}

/* Whether the module has all that the file has, or need not. */
static bool none_left(const ng_safetensors *file, bool partial, const match *matches_of, int count,
                      ng_load_report *report, bool *used)
{
    for (int i = 0; i < count; i++)
        if (matches_of[i].stored) used[matches_of[i].stored - file->arrays] = true;
    for (int64_t i = 0; i < file->count; i++) {
        if (used[i]) continue;
        const char *name = file->arrays[i].name;
        add_name(report, "unused: ", report->unused++, name);
        if (partial) continue;
        ng_fail(NG_EVALUE, "%s: %s has \"%s\", which the module has not", load, file->path, name);
        return false;
    }
    if (report->loaded > 0 || (count == 0 && file->count == 0)) return true;
    ng_fail(NG_EVALUE, "%s: %s has nothing for the module; %s", load, file->path, report->names);
    return false;
}

static bool load_all(const ng_safetensors *file, bool partial, match *matches_of, int count,
                     ng_load_report *report)
{
    bool *used = ng_calloc(load, file->count, sizeof *used);
    const bool fits = used && assign(file, partial, matches_of, count, report) &&
                      none_left(file, partial, matches_of, count, report, used);
    for (int i = 0; fits && i < count; i++)
        if (matches_of[i].stored) ng_stored_load(matches_of[i].stored, matches_of[i].own.tensor);
    ng_free(used);
    return fits;
}

static bool load_file(ng_module *module, const ng_module_load_options *options,
                      ng_safetensors *file, ng_load_report *report)
{
    if (!ng_safetensors_open(file, load, options->path, options->verify)) return false;
    const int count = count_tensors(module);
    const int64_t names = file->count;
    match *matches_of = ng_calloc(load, count, sizeof *matches_of);
    char **made = matches_of ? ng_calloc(load, names, sizeof *made) : NULL;
    ng_named_tensor tensor;
    for (int k = 0, n = 0; made && k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++)
            matches_of[n++].own = tensor;
    const bool loaded = made && rename_all(file, options->rename, made) &&
                        load_all(file, options->partial, matches_of, count, report);
    for (int64_t i = 0; made && i < names; i++) ng_free(made[i]);
    ng_free(made);
    ng_free(matches_of);
    return loaded;
}

ng_status ng_module_load_with(ng_module *module, ng_module_load_options options)
{
    if (!ng_given(load, "module", module) || !ng_given(load, "path", options.path))
        return ng_newest_status();
    if (!pairs_accepted(options.rename)) return NG_EVALUE;
    ng_safetensors file;
    ng_load_report report = {0};
    const bool loaded = load_file(module, &options, &file, &report);
    ng_safetensors_close(&file);
    if (loaded && options.report) *options.report = report;
    return loaded ? NG_OK : ng_newest_status();
}
