/* NumPy's archives: zip files of .npy files, stored or deflated.
 *
 *     for each entry: a local header, its name, an extra field, its content
 *     for each entry: a header of the directory, its name, an extra field, a comment
 *     the end: how many entries, where the directory stands, a comment
 */
#include "io/dataset.h"
#include "io/npy.h"
#include <stdio.h>
#include <string.h>

enum { ZIP_LOCAL = 30, ZIP_ENTRY = 46, ZIP_END = 22 };
enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* ---- The directory ------------------------------------------------------------------------- */

/* An archive in memory, and where its directory stands. */
typedef struct {
    ng_origin origin;
    unsigned char *bytes; /* the whole file */
    int64_t size, directory, count;
} archive;

/* An entry, as the directory has it. */
typedef struct {
    const char *name;
    int name_length, method;
    uint32_t crc;
    int64_t packed, size, offset;
} zip_entry;

/* Reads a little-endian number. Numbers beyond int64 give INT64_MAX, which is refused later. */
static int64_t zip_number(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value < INT64_MAX ? (int64_t)value : INT64_MAX;
}

/* Finds the directory by the end of the archive. */
static bool find_directory(archive *a)
{
    const int64_t end = a->size - ZIP_END;
    if (end < 0 || memcmp(a->bytes + end, "PK\5\6", 4) != 0)
        return ng_refuse(a->origin, NG_EPARSE, "not an archive (.npz), or cut short");
    const unsigned char *b = a->bytes + end;
    a->count = zip_number(b + 10, 2);
    a->directory = zip_number(b + 16, 4);
    return true;
}

/* Reads the entry at `*next` and goes to the next one. */
static bool read_entry(const archive *a, int64_t *next, zip_entry *e)
{
    const bool inside = a->size - *next >= ZIP_ENTRY;
    const unsigned char *b = a->bytes + (inside ? *next : 0);
    if (!inside || memcmp(b, "PK\1\2", 4) != 0)
        return ng_refuse(a->origin, NG_EPARSE, "the directory is damaged");
    *e = (zip_entry){.name = (const char *)b + ZIP_ENTRY,
                     .name_length = (int)zip_number(b + 28, 2),
                     .method = (int)zip_number(b + 10, 2),
                     .crc = (uint32_t)zip_number(b + 16, 4),
                     .packed = zip_number(b + 20, 4),
                     .size = zip_number(b + 24, 4),
                     .offset = zip_number(b + 42, 4)};
    *next += ZIP_ENTRY + e->name_length + zip_number(b + 30, 2) + zip_number(b + 32, 2);
    if (*next > a->size) return ng_refuse(a->origin, NG_EPARSE, "the directory is damaged");
    if (e->packed == UINT32_MAX || e->size == UINT32_MAX || e->offset == UINT32_MAX)
        return ng_refuse(a->origin, NG_EPARSE, "an array of 4 GB or more, expected less");
    if (zip_number(b + 8, 2) & 1)
        return ng_refuse(a->origin, NG_EPARSE, "an archive under a password");
    return true;
}

/* Returns the length of an entry's name without ".npy". */
static int base_length(const zip_entry *e)
{
    const int base = e->name_length - 4;
    return base > 0 && memcmp(e->name + base, ".npy", 4) == 0 ? base : e->name_length;
}

/* Finds the entry of an array. The error names the arrays that are there. */
static bool find_array(const archive *a, const char *name, zip_entry *found)
{
    char names[256] = "";
    int64_t next = a->directory;
    for (int64_t i = 0; i < a->count; i++) {
        if (!read_entry(a, &next, found)) return false;
        const int length = base_length(found);
        const size_t used = strlen(names);
        if (strlen(name) == (size_t)length && memcmp(found->name, name, (size_t)length) == 0)
            return true;
        snprintf(names + used, sizeof names - used, "%s%.*s", i ? ", " : "", length, found->name);
    }
    return ng_refuse(a->origin, NG_EVALUE, "no array \"%s\"; it has: %s", name, names);
}

/* ---- Arrays -------------------------------------------------------------------------------- */

static bool open_array(const archive *a, const zip_entry *e, ng_source *source)
{
    const int64_t left = a->size - ZIP_LOCAL - e->offset;
    const unsigned char *b = a->bytes + (left < 0 ? 0 : e->offset);
    const int64_t names = left < 0 ? 0 : zip_number(b + 26, 2) + zip_number(b + 28, 2);
    if (left < 0 || memcmp(b, "PK\3\4", 4) != 0 || e->packed > left - names)
        return ng_refuse(a->origin, NG_EPARSE, "an array stands outside of the file");
    if (e->method != ZIP_STORED && e->method != ZIP_DEFLATED)
        return ng_refuse(a->origin, NG_EPARSE,
                         "an array that is packed neither by \"stored\" nor by \"deflate\"");
    /* Deflate packs 1032 bytes into one at most, so that no memory is taken for a false size. */
    if (e->method == ZIP_STORED ? e->size != e->packed : e->size / 1032 > e->packed)
        return ng_refuse(a->origin, NG_EPARSE, "damaged: the length of an array differs");
    return ng_source_begin(source, a->origin, b + ZIP_LOCAL + names, e->packed,
                           e->method == ZIP_DEFLATED ? NG_PACKED_DEFLATE : NG_PACKED_NOT);
}

/* Whether nothing is left of an array that was read, and its checksum is that of its entry. */
static bool array_whole(const archive *a, const zip_entry *e, ng_source *source)
{
    char more;
    const uint32_t crc = source->crc;
    const int64_t left = ng_source_some(source, &more, 1);
    if (left < 0) return false;
    return (left == 0 && source->next == source->end && NG_CHECKSUM_HOLDS(crc == e->crc)) ||
           ng_refuse(a->origin, NG_EPARSE, "damaged: the checksum or length of an array differs");
}

static ng_tensor *load_array(const archive *a, const char *name, ng_npy_role role, ng_dtype dtype)
{
    zip_entry e = {0};
    ng_source source;
    if (!find_array(a, name, &e) || !open_array(a, &e, &source)) return NULL;
    ng_tensor *x = ng_npy_read(&source, e.size, name, role, dtype);
    const bool whole = x && array_whole(a, &e, &source);
    ng_source_end(&source);
    if (whole) return x;
    ng_tensor_free(x);
    return NULL;
}

static bool open_archive(archive *a)
{
    a->bytes = (unsigned char *)ng_file_read(a->origin.function, a->origin.path, &a->size);
    return a->bytes && find_directory(a);
}

ng_tensor *ng_tensor_read_npz(const char *path, const char *name)
{
    archive a = {.origin = {"ng_tensor_read_npz", path}};
    if (!ng_given(a.origin.function, "path", path) || !ng_given(a.origin.function, "name", name))
        return NULL;
    ng_tensor *x = open_archive(&a) ? load_array(&a, name, NG_NPY_OWN, NG_F32) : NULL;
    ng_free(a.bytes);
    return x;
}

/* ---- Data sets ----------------------------------------------------------------------------- */

ng_dataset *ng_dataset_read_npz_with(ng_dataset_read_npz_options options)
{
    archive a = {.origin = {"ng_dataset_read_npz", options.path}};
    const double scale = ng_option(options.scale, 1);
    if (!ng_given(a.origin.function, "path", options.path) ||
        !ng_option_idle(a.origin.function, "y", options.y && options.no_label,
                        "without .no_label") ||
        !ng_dataset_features_accepted(a.origin.function, scale, options.dtype))
        return NULL;
    ng_tensor *x = NULL, *y = NULL;
    if (open_archive(&a))
        x = load_array(&a, options.x ? options.x : "x", NG_NPY_FEATURES, options.dtype);
    if (x && ng_dataset_scale(a.origin, x, scale))
        y = options.no_label
                ? NG_NONE
                : load_array(&a, options.y ? options.y : "y", NG_NPY_LABELS, options.dtype);
    ng_free(a.bytes);
    return ng_dataset_adopt(a.origin.function, x, y);
}
