/* NumPy's archives: zip files of .npy files, stored or deflated.
 *
 *     for each entry: a local header, its name, an extra field, its content
 *     for each entry: a header of the directory, its name, an extra field, a comment
 *     the end: how many entries, where the directory stands, a comment
 *
 * Numbers of 4 GB and more stand in wider fields elsewhere (zip64). These are read, not written. */
#include "io/dataset.h"
#include "io/json.h"
#include "io/npy.h"
#include <math.h>
#include <string.h>

enum { ZIP_LOCAL = 30, ZIP_ENTRY = 46, ZIP_END64 = 56, ZIP_LOCATOR = 20, ZIP_END = 22 };
enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

/* ---- Write --------------------------------------------------------------------------------- */

/* Adds little-endian numbers; `widths` has a digit for the bytes of each. */
static void zip_print(ng_text *text, const char *widths, const uint64_t *numbers)
{
    for (; *widths; widths++) ng_text_number(text, *numbers++, *widths - '0');
}

static void add_to_crc(void *crc, const void *bytes, int64_t count)
{
    uint32_t *const sum = crc;
    *sum = ng_crc32(*sum, bytes, count);
}

/* Writes one array and adds its entry to the directory; how many bytes it took. The date is the
 * first that there is, so that equal tensors give equal files. */
static int64_t write_array(ng_replacement *file, const ng_npz_array *array, int64_t offset,
                           ng_text *directory)
{
    enum { VERSION = 20, UTF8 = 0x800, FIRST_DAY = 0x21 };
    const ng_stored stored = ng_stored_of("", array->tensor);
    ng_text header = {.function = directory->function}, local = header;
    ng_npy_print_header(&header, array->tensor);
    uint32_t crc = ng_crc32(0, header.bytes, header.count);
    ng_stored_pieces(&stored, add_to_crc, &crc);
    const int64_t size = header.count + ng_stored_bytes(stored.kind, stored.shape);

    /* What follows the version is the same in both headers. */
    const uint64_t numbers[] = {VERSION,
                                UTF8,
                                ZIP_STORED,
                                0,
                                FIRST_DAY,
                                crc,
                                (uint64_t)size,
                                (uint64_t)size,
                                strlen(array->name) + 4,
                                0};
    ng_text_add(&local, "PK\3\4", 4);
    zip_print(&local, "2222244422", numbers);
    ng_text_print(&local, "%s.npy", array->name);
    ng_text_add(directory, "PK\1\2\24\0", 6);
    zip_print(directory, "2222244422", numbers);
    zip_print(directory, "22244", (const uint64_t[]){0, 0, 0, 0, (uint64_t)offset});
    ng_text_print(directory, "%s.npy", array->name);

    directory->failed = directory->failed || header.failed || local.failed;
    if (!directory->failed) {
        ng_replacement_write(file, local.bytes, local.count);
        ng_replacement_write(file, header.bytes, header.count);
        ng_stored_write(&stored, file);
    }
    const int64_t written = local.count + size;
    ng_free(local.bytes), ng_free(header.bytes);
    return written;
}

static ng_status check_arrays(const char *function, const ng_npz_array *arrays, int count)
{
    int64_t bytes = 0;
    if (count < 1 || count > 0xfffe)
        return ng_fail(NG_EVALUE, "%s: %d arrays, expected 1 to 65534", function, count);
    for (int i = 0; i < count; i++) {
        const ng_npz_array *array = &arrays[i];
        if (!ng_given(function, "name", array->name) ||
            !ng_given(function, "tensor", array->tensor) || !ng_readable(function, array->tensor))
            return ng_newest_status();
        const size_t length = strlen(array->name);
        if (length < 1 || length > 1000 || !ng_is_utf8(array->name))
            return ng_fail(NG_EVALUE,
                           "%s: an array is named \"%.100s\", expected UTF-8, 1 to 1000 bytes",
                           function, array->name);
        for (int k = 0; k < i; k++)
            if (strcmp(arrays[k].name, array->name) == 0)
                return ng_fail(NG_EVALUE, "%s: two arrays are named \"%s\"", function, array->name);
        bytes += array->tensor->size * (int64_t)ng_dtype_bytes(array->tensor->dtype) + 4096;
        if (bytes > UINT32_MAX)
            return ng_fail(NG_EVALUE, "%s: more than 4 GB, expected less", function);
    }
    return NG_OK;
}

ng_status ng_tensors_save_npz(const char *path, const ng_npz_array *arrays, int count)
{
    static const char function[] = "ng_tensors_save_npz";
    if (!ng_given(function, "path", path) || !ng_given(function, "arrays", arrays))
        return ng_newest_status();
    ng_status status = check_arrays(function, arrays, count);
    if (status != NG_OK) return status;
    ng_replacement file;
    status = ng_replacement_begin(&file, function, path);
    if (status != NG_OK) return status;
    ng_text directory = {.function = function};
    int64_t offset = 0;
    for (int i = 0; i < count && !directory.failed; i++)
        offset += write_array(&file, &arrays[i], offset, &directory);
    const uint64_t n = (uint64_t)count, bytes = (uint64_t)directory.count;
    ng_text_add(&directory, "PK\5\6", 4);
    zip_print(&directory, "2222442", (const uint64_t[]){0, 0, n, n, bytes, (uint64_t)offset, 0});
    if (!directory.failed) ng_replacement_write(&file, directory.bytes, directory.count);
    ng_free(directory.bytes);
    return ng_replacement_end(&file, directory.failed ? NG_ENOMEM : NG_OK);
}

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

static uint64_t zip_number(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* Finds the directory by the end of the archive. The end of a large archive stands before it. */
static bool find_directory(archive *a)
{
    const int64_t end = a->size - ZIP_END;
    if (end < 0 || memcmp(a->bytes + end, "PK\5\6", 4) != 0)
        return ng_refuse(a->origin, NG_EPARSE, "not an archive (.npz), or cut short");
    const unsigned char *b = a->bytes + end;
    uint64_t count = zip_number(b + 10, 2), bytes = zip_number(b + 12, 4),
             at = zip_number(b + 16, 4);
    const unsigned char *locator = b - ZIP_LOCATOR;
    if (end >= ZIP_LOCATOR + ZIP_END64 && memcmp(locator, "PK\6\7", 4) == 0) {
        const uint64_t place = zip_number(locator + 8, 8);
        const uint64_t last = (uint64_t)(end - ZIP_LOCATOR - ZIP_END64);
        b = a->bytes + (place <= last ? place : 0);
        if (place > last || memcmp(b, "PK\6\6", 4) != 0)
            return ng_refuse(a->origin, NG_EPARSE, "the end of a large archive is damaged");
        count = zip_number(b + 32, 8), bytes = zip_number(b + 40, 8), at = zip_number(b + 48, 8);
    }
    if (at > (uint64_t)end || bytes > (uint64_t)end - at || count > bytes / ZIP_ENTRY)
        return ng_refuse(a->origin, NG_EPARSE, "the directory stands outside of the file");
    a->directory = (int64_t)at;
    a->count = (int64_t)count;
    return true;
}

/* Reads the numbers of an entry that their fields are too narrow for from the extra field with the
 * id 1: size, packed size and offset, those that are needed. */
static bool widen_numbers(zip_entry *e, const unsigned char *extra, const unsigned char *end)
{
    int64_t *const numbers[] = {&e->size, &e->packed, &e->offset};
    while (end - extra >= 4 && zip_number(extra, 2) != 1) {
        const int64_t length = 4 + (int64_t)zip_number(extra + 2, 2);
        extra += length < end - extra ? length : end - extra;
    }
    int64_t left = end - extra >= 4 ? (int64_t)zip_number(extra + 2, 2) : 0;
    if (left > end - extra - 4) left = end - extra < 4 ? 0 : end - extra - 4;
    extra += 4;
    for (int i = 0; i < 3; i++) {
        if (*numbers[i] != UINT32_MAX) continue;
        if (left < 8 || zip_number(extra, 8) > INT64_MAX) return false;
        *numbers[i] = (int64_t)zip_number(extra, 8);
        extra += 8, left -= 8;
    }
    return true;
}

/* Reads the entry at `*at` and goes to the next one. */
static bool read_entry(const archive *a, int64_t *at, zip_entry *e)
{
    const unsigned char *b = a->bytes + *at;
    if (a->size - *at < ZIP_ENTRY || memcmp(b, "PK\1\2", 4) != 0)
        return ng_refuse(a->origin, NG_EPARSE, "the directory is damaged");
    *e = (zip_entry){.name = (const char *)b + ZIP_ENTRY,
                     .name_length = (int)zip_number(b + 28, 2),
                     .method = (int)zip_number(b + 10, 2),
                     .crc = (uint32_t)zip_number(b + 16, 4),
                     .packed = (int64_t)zip_number(b + 20, 4),
                     .size = (int64_t)zip_number(b + 24, 4),
                     .offset = (int64_t)zip_number(b + 42, 4)};
    const unsigned char *extra = b + ZIP_ENTRY + e->name_length;
    const int64_t extra_length = (int64_t)zip_number(b + 30, 2);
    *at += ZIP_ENTRY + e->name_length + extra_length + (int64_t)zip_number(b + 32, 2);
    if (*at > a->size) return ng_refuse(a->origin, NG_EPARSE, "the directory is cut short");
    if (zip_number(b + 8, 2) & 1)
        return ng_refuse(a->origin, NG_EPARSE, "an archive under a password");
    return widen_numbers(e, extra, extra + extra_length) ||
           ng_refuse(a->origin, NG_EPARSE, "a large array's numbers are missing");
}

/* The length of an entry's name without ".npy". */
static int base_length(const zip_entry *e)
{
    const int base = e->name_length - 4;
    return base > 0 && memcmp(e->name + base, ".npy", 4) == 0 ? base : e->name_length;
}

/* The entry of an array; an error names those that are there. */
static bool find_array(const archive *a, const char *name, zip_entry *found)
{
    char names[256] = "";
    int64_t at = a->directory;
    for (int64_t i = 0; i < a->count; i++) {
        if (!read_entry(a, &at, found)) return false;
        const int length = base_length(found);
        const size_t used = strlen(names);
        if (strlen(name) == (size_t)length && memcmp(found->name, name, (size_t)length) == 0)
            return true;
        snprintf(names + used, sizeof names - used, "%s%.*s", i ? ", " : "", length, found->name);
    }
    for (char *c = names; *c; c++)
        if (*c > 0 && *c < ' ') *c = '?';
    return ng_refuse(a->origin, NG_EVALUE, "no array \"%s\"; it has: %s", name, names);
}

/* ---- Arrays -------------------------------------------------------------------------------- */

static bool open_array(const archive *a, const zip_entry *e, ng_source *source)
{
    const bool inside = a->size - e->offset >= ZIP_LOCAL;
    const unsigned char *b = a->bytes + (inside ? e->offset : 0);
    if (!inside || memcmp(b, "PK\3\4", 4) != 0)
        return ng_refuse(a->origin, NG_EPARSE, "an entry stands outside of the file");
    const int64_t begin = ZIP_LOCAL + (int64_t)(zip_number(b + 26, 2) + zip_number(b + 28, 2));
    if (e->packed > a->size - e->offset - begin)
        return ng_refuse(a->origin, NG_EPARSE, "an entry reaches beyond the file");
    if (e->method != ZIP_STORED && e->method != ZIP_DEFLATED)
        return ng_refuse(a->origin, NG_EPARSE,
                         "an array that is packed neither by \"stored\" nor by \"deflate\"");
    /* Deflate packs 1032 bytes into one at most, so that no memory is taken for a false size. */
    if (e->method == ZIP_STORED ? e->size != e->packed : e->size / 1032 > e->packed)
        return ng_refuse(a->origin, NG_EPARSE, "damaged: an array's length is another one");
    return ng_source_begin(source, a->origin, b + begin, e->packed,
                           e->method == ZIP_DEFLATED ? NG_PACKED_DEFLATE : NG_PACKED_NOT);
}

/* Whether an array that was read has nothing left and the checksum of its entry. */
static bool array_whole(const archive *a, const zip_entry *e, ng_source *source)
{
    char more;
    const uint32_t crc = source->crc;
    const int64_t left = ng_source_some(source, &more, 1);
    if (left == 0 && source->next == source->end && NG_CHECKSUM_HOLDS(crc == e->crc)) return true;
    return left < 0 ? false
                    : ng_refuse(a->origin, NG_EPARSE,
                                "damaged: an array's checksum or its length is another one");
}

static ng_tensor *load_array(const archive *a, const char *name, ng_npy_role role, ng_dtype dtype)
{
    zip_entry e;
    ng_source source;
    if (!find_array(a, name, &e) || !open_array(a, &e, &source)) return NULL;
    ng_tensor *x = ng_npy_read(&source, e.size, name, role, dtype);
    if (x && !array_whole(a, &e, &source)) {
        ng_tensor_free(x);
        x = NULL;
    }
    ng_source_end(&source);
    return x;
}

static bool open_archive(archive *a)
{
    a->bytes = (unsigned char *)ng_file_read(a->origin.function, a->origin.path, &a->size);
    return a->bytes && find_directory(a);
}

ng_tensor *ng_tensor_load_npz(const char *path, const char *name)
{
    archive a = {.origin = {"ng_tensor_load_npz", path}};
    if (!ng_given(a.origin.function, "path", path) || !ng_given(a.origin.function, "name", name))
        return NULL;
    ng_tensor *x = open_archive(&a) ? load_array(&a, name, NG_NPY_OWN, NG_F32) : NULL;
    ng_free(a.bytes);
    return x;
}

/* ---- Data sets ----------------------------------------------------------------------------- */

static bool npz_scale(const archive *a, ng_tensor *x, double scale)
{
    for (int64_t i = 0; scale != 1 && i < x->size; i++) {
        const double before = ng_tensor_load(x, i);
        ng_tensor_store(x, i, before * scale);
        if (isfinite(ng_tensor_load(x, i)) || !isfinite(before)) continue;
        return ng_refuse(a->origin, NG_EVALUE, "%g times the scale is no %s", before,
                         ng_dtype_name(x->dtype));
    }
    return true;
}

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
    if (x && npz_scale(&a, x, scale))
        y = options.no_label
                ? NG_NONE
                : load_array(&a, options.y ? options.y : "y", NG_NPY_LABELS, options.dtype);
    ng_free(a.bytes);
    return ng_dataset_adopt(a.origin.function, x, y);
}
