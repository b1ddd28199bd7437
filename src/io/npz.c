/* NumPy's archives: zip files of .npy files, stored or deflated.
 *
 *     for each entry: a local header, its name, an extra field, its content
 *     for each entry: a header of the directory, its name, an extra field, a comment
 *     the end: how many entries, where the directory stands, a comment
 *
 * Numbers of 4 GB and more stand in wider fields elsewhere (zip64): these are read, not written.
 */
#include "io/dataset.h"
#include "io/inflate.h"
#include "io/npy.h"
#include <math.h>
#include <string.h>

enum { LOCAL = 30, DIRECTORY = 46, LARGE_END = 56, LOCATOR = 20, END = 22 };
enum { STORED = 0, DEFLATED = 8 };
static const char ending[] = ".npy";

/* ---- Write --------------------------------------------------------------------------------- */

static void put(ng_text *text, uint64_t value, int bytes)
{
    unsigned char little[8];
    for (int i = 0; i < bytes; i++) little[i] = (unsigned char)(value >> 8 * i);
    ng_text_add(text, little, bytes);
}

/* What both headers have in common: 26 bytes, from the version on. The date is the first that there
 * is, so that equal tensors give equal files. */
static void put_entry(ng_text *text, const char *name, uint32_t crc, int64_t size)
{
    enum { VERSION = 20, UTF8 = 0x800, FIRST_DAY = 0x21 };
    put(text, VERSION, 2), put(text, UTF8, 2), put(text, STORED, 2);
    put(text, 0, 2), put(text, FIRST_DAY, 2);
    put(text, crc, 4), put(text, (uint64_t)size, 4), put(text, (uint64_t)size, 4);
    put(text, strlen(name) + strlen(ending), 2), put(text, 0, 2);
}

/* Writes one entry and notes it in the directory; its bytes. */
static int64_t write_entry(ng_replacement *file, const ng_npz_array *array, int64_t offset,
                           ng_text *directory)
{
    const ng_tensor *x = array->tensor;
    ng_text header = {.function = directory->function}, local = header;
    unsigned char piece[4096];
    ng_npy_print_header(&header, x);
    uint32_t crc = ng_crc32(0, header.bytes, header.count);
    int64_t next = 0;
    for (size_t bytes; (bytes = ng_npy_piece(x, &next, piece)) > 0;)
        crc = ng_crc32(crc, piece, (int64_t)bytes);
    const int64_t size = header.count + x->size * (int64_t)ng_dtype_bytes(x->dtype);

    ng_text_add(&local, "PK\3\4", 4);
    put_entry(&local, array->name, crc, size);
    ng_text_print(&local, "%s%s", array->name, ending);
    ng_text_add(directory, "PK\1\2\24\0", 6);
    put_entry(directory, array->name, crc, size);
    put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 2), put(directory, 0, 4);
    put(directory, (uint64_t)offset, 4);
    ng_text_print(directory, "%s%s", array->name, ending);

    directory->failed = directory->failed || header.failed || local.failed;
    if (!directory->failed) {
        ng_replacement_write(file, local.bytes, (size_t)local.count);
        ng_replacement_write(file, header.bytes, (size_t)header.count);
    }
    next = 0;
    for (size_t bytes; !directory->failed && (bytes = ng_npy_piece(x, &next, piece)) > 0;)
        ng_replacement_write(file, piece, bytes);
    const int64_t written = local.count + size;
    ng_free(local.bytes);
    ng_free(header.bytes);
    return written;
}

static bool arrays_accepted(const char *function, const ng_npz_array *arrays, int count)
{
    int64_t bytes = 0;
    if (count < 1 || count > 0xfffe) {
        ng_fail(NG_EVALUE, "%s: %d arrays, expected 1 to 65534", function, count);
        return false;
    }
    for (int i = 0; i < count; i++) {
        const ng_npz_array *array = &arrays[i];
        if (!ng_given(function, "name", array->name) ||
            !ng_given(function, "tensor", array->tensor) || !ng_readable(function, array->tensor))
            return false;
        if (!*array->name || strlen(array->name) > 1000) {
            ng_fail(NG_EVALUE, "%s: a name of %zu bytes, expected 1 to 1000", function,
                    strlen(array->name));
            return false;
        }
        if (!ng_is_utf8(array->name)) {
            ng_fail(NG_EVALUE, "%s: an array is named \"%s\", expected UTF-8", function,
                    array->name);
            return false;
        }
        for (int k = 0; k < i; k++)
            if (strcmp(arrays[k].name, array->name) == 0) {
                ng_fail(NG_EVALUE, "%s: two arrays are named \"%s\"", function, array->name);
                return false;
            }
        bytes += array->tensor->size * (int64_t)ng_dtype_bytes(array->tensor->dtype) + 4096;
        if (bytes > UINT32_MAX) {
            ng_fail(NG_EVALUE, "%s: more than 4 GB, which this form of archive cannot hold",
                    function);
            return false;
        }
    }
    return true;
}

ng_status ng_tensors_save_npz(const char *path, const ng_npz_array *arrays, int count)
{
    static const char function[] = "ng_tensors_save_npz";
    if (!ng_given(function, "path", path) || !ng_given(function, "arrays", arrays) ||
        !arrays_accepted(function, arrays, count))
        return ng_newest_status();
    ng_replacement file;
    const ng_status begun = ng_replacement_begin(&file, function, path);
    if (begun != NG_OK) return begun;
    ng_text directory = {.function = function};
    int64_t offset = 0;
    for (int i = 0; i < count && !directory.failed; i++)
        offset += write_entry(&file, &arrays[i], offset, &directory);
    const int64_t bytes = directory.count;
    ng_text_add(&directory, "PK\5\6\0\0\0\0", 8);
    put(&directory, (uint64_t)count, 2), put(&directory, (uint64_t)count, 2);
    put(&directory, (uint64_t)bytes, 4), put(&directory, (uint64_t)offset, 4);
    put(&directory, 0, 2);
    const ng_status status = directory.failed ? NG_ENOMEM : NG_OK;
    if (status == NG_OK) ng_replacement_write(&file, directory.bytes, (size_t)directory.count);
    ng_free(directory.bytes);
    return ng_replacement_end(&file, status);
}

/* ---- Read ---------------------------------------------------------------------------------- */

typedef struct {
    const char *function, *path;
    unsigned char *bytes; /* the whole file */
    int64_t size;
} archive;

/* An entry, as the directory has it. */
typedef struct {
    const char *name;
    int name_length, method;
    uint32_t crc;
    int64_t packed, size, offset;
} entry;

static uint64_t large_at(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static uint32_t number_at(const unsigned char *bytes, int count)
{
    return (uint32_t)large_at(bytes, count);
}

static bool malformed(const archive *a, const char *what)
{
    ng_fail(NG_EPARSE, "%s: %s: %s", a->function, a->path, what);
    return false;
}

/* Where the directory stands, and how many entries it has. */
typedef struct {
    uint64_t at, bytes, count;
} directory;

/* Another end may stand before it, with wider fields for numbers that are too large for its own. */
static bool read_large_end(const archive *a, int64_t end, directory *d)
{
    if (end < LOCATOR + LARGE_END) return true;
    const unsigned char *locator = a->bytes + end - LOCATOR;
    if (memcmp(locator, "PK\6\7", 4) != 0) return true;
    const uint64_t at = large_at(locator + 8, 8), last = (uint64_t)(end - LOCATOR - LARGE_END);
    const unsigned char *b = a->bytes + (at <= last ? at : 0);
    if (at > last || memcmp(b, "PK\6\6", 4) != 0)
        return malformed(a, "the end of a large archive is damaged");
    *d = (directory){
        .at = large_at(b + 48, 8), .bytes = large_at(b + 40, 8), .count = large_at(b + 32, 8)};
    return true;
}

/* The end is followed by a comment of any length. */
static bool find_directory(const archive *a, int64_t *at, int64_t *count)
{
    for (int64_t end = a->size - END; end >= 0 && end >= a->size - END - 0xffff; end--) {
        const unsigned char *b = a->bytes + end;
        if (memcmp(b, "PK\5\6", 4) != 0 || number_at(b + 20, 2) != a->size - END - end) continue;
        directory d = {.at = number_at(b + 16, 4),
                       .bytes = number_at(b + 12, 4),
                       .count = number_at(b + 10, 2)};
        if (number_at(b + 4, 4) != 0 || number_at(b + 8, 2) != d.count)
            return malformed(a, "an archive in several files");
        if (!read_large_end(a, end, &d)) return false;
        if (d.at > (uint64_t)end || d.bytes > (uint64_t)end - d.at || d.count > d.bytes / DIRECTORY)
            return malformed(a, "the directory stands outside of the file");
        *at = (int64_t)d.at;
        *count = (int64_t)d.count;
        return true;
    }
    return malformed(a, "not an archive (.npz), or cut short");
}

/* A number of an entry that its field is too narrow for: the next one of the extra field that is
 * kept for them. */
static bool widen(int64_t *number, const unsigned char **extra, const unsigned char *end)
{
    if (*number != UINT32_MAX) return true;
    if (end - *extra < 8 || large_at(*extra, 8) > INT64_MAX) return false;
    *number = (int64_t)large_at(*extra, 8);
    *extra += 8;
    return true;
}

static bool widen_all(entry *e, const unsigned char *extra, int bytes)
{
    const unsigned char *end = extra + bytes, *stop = extra;
    while (end - extra >= 4 && number_at(extra, 2) != 1) {
        const int64_t length = 4 + number_at(extra + 2, 2);
        extra += length < end - extra ? length : end - extra;
    }
    if (end - extra >= 4) {
        const int64_t length = number_at(extra + 2, 2);
        extra += 4;
        stop = extra + (length < end - extra ? length : end - extra);
    }
    return widen(&e->size, &extra, stop) && widen(&e->packed, &extra, stop) &&
           widen(&e->offset, &extra, stop);
}

static bool read_entry(const archive *a, int64_t *at, entry *e)
{
    const unsigned char *b = a->bytes + *at;
    if (a->size - *at < DIRECTORY || memcmp(b, "PK\1\2", 4) != 0)
        return malformed(a, "the directory is damaged");
    *e = (entry){.name = (const char *)b + DIRECTORY,
                 .name_length = (int)number_at(b + 28, 2),
                 .method = (int)number_at(b + 10, 2),
                 .crc = number_at(b + 16, 4),
                 .packed = number_at(b + 20, 4),
                 .size = number_at(b + 24, 4),
                 .offset = number_at(b + 42, 4)};
    const int extra = (int)number_at(b + 30, 2);
    *at += DIRECTORY + e->name_length + extra + (int)number_at(b + 32, 2);
    if (*at > a->size) return malformed(a, "the directory is cut short");
    if (number_at(b + 8, 2) & 1) return malformed(a, "an archive under a password");
    return widen_all(e, b + DIRECTORY + e->name_length, extra) ||
           malformed(a, "a large array's numbers are missing");
}

static bool is_named(const entry *e, const char *name)
{
    const size_t length = strlen(name);
    return (size_t)e->name_length == length + strlen(ending) &&
           memcmp(e->name, name, length) == 0 &&
           memcmp(e->name + length, ending, strlen(ending)) == 0;
}

/* The names that there are, for a message. */
static bool fail_missing(const archive *a, const char *name, int64_t at, int64_t count)
{
    char names[256] = "";
    entry e;
    for (int64_t i = 0; i < count && read_entry(a, &at, &e); i++) {
        const size_t used = strlen(names);
        const bool array = e.name_length > 4 && memcmp(e.name + e.name_length - 4, ending, 4) == 0;
        snprintf(names + used, sizeof names - used, "%s%.*s", i ? ", " : "",
                 array ? e.name_length - 4 : e.name_length, e.name);
    }
    for (char *c = names; *c; c++)
        if (*c > 0 && *c < ' ') *c = '?';
    ng_fail(NG_EVALUE, "%s: %s has no array \"%s\"; it has: %s", a->function, a->path, name, names);
    return false;
}

/* The last of its name: where an array was added to an archive again, it is the newer one. */
static bool find_entry(const archive *a, const char *name, entry *found)
{
    int64_t at, first, count = 0;
    *found = (entry){.name = NULL};
    if (!find_directory(a, &at, &count)) return false;
    first = at;
    for (int64_t i = 0; i < count; i++) {
        entry e;
        if (!read_entry(a, &at, &e)) return false;
        if (is_named(&e, name)) *found = e;
    }
    return found->name || fail_missing(a, name, first, count);
}

/* What an entry holds, unpacked into memory of its own. */
static char *content_of(const archive *a, const entry *e)
{
    const bool inside = a->size - e->offset >= LOCAL;
    const unsigned char *b = a->bytes + (inside ? e->offset : 0);
    if (!inside || memcmp(b, "PK\3\4", 4) != 0)
        return malformed(a, "an entry stands outside of the file"), NULL;
    const int64_t begin = LOCAL + number_at(b + 26, 2) + number_at(b + 28, 2);
    if (e->packed > a->size - e->offset - begin)
        return malformed(a, "an entry reaches beyond the file"), NULL;
    char *content = NULL;
    int64_t used = e->packed, size = e->packed;
    if (e->method == DEFLATED) {
        content = ng_inflate(a->function, a->path, b + begin, e->packed, e->size, &used, &size);
    } else if (e->method == STORED) {
        content = ng_calloc(a->function, size + 1, 1);
        if (content) memcpy(content, b + begin, (size_t)size);
    } else {
        malformed(a, "an array that is packed neither by \"stored\" nor by \"deflate\"");
    }
    if (!content) return NULL;
    if (used == e->packed && size == e->size &&
        NG_CHECKSUM_HOLDS(ng_crc32(0, content, size) == e->crc))
        return content;
    malformed(a, "damaged: an array's checksum or its length is another one");
    ng_free(content);
    return NULL;
}

/* One array, in its own dtype or, unless `own`, in the one that is asked for. */
static ng_tensor *load(const archive *a, const char *name, bool own, ng_dtype dtype)
{
    entry e;
    ng_stored array;
    void *moved = NULL;
    char *content = find_entry(a, name, &e) ? content_of(a, &e) : NULL;
    ng_tensor *x = NULL;
    if (content && ng_npy_parse(a->function, a->path, content, e.size, &array, &moved)) {
        array.name = name;
        const bool whole = ng_npy_dtype(&array) == NG_I64;
        if (own && (dtype == NG_I64 || whole)) dtype = ng_npy_dtype(&array);
        x = ng_npy_tensor(a->function, a->path, &array, dtype);
    }
    ng_free(moved);
    ng_free(content);
    return x;
}

static bool open_archive(archive *a)
{
    a->bytes = (unsigned char *)ng_file_read(a->function, a->path, &a->size);
    return a->bytes;
}

ng_tensor *ng_tensor_load_npz(const char *path, const char *name)
{
    archive a = {.function = "ng_tensor_load_npz", .path = path};
    if (!ng_given(a.function, "path", path) || !ng_given(a.function, "name", name)) return NULL;
    ng_tensor *x = open_archive(&a) ? load(&a, name, true, NG_I64) : NULL;
    ng_free(a.bytes);
    return x;
}

/* ---- Data sets ----------------------------------------------------------------------------- */

static bool options_accepted(ng_dataset_read_npz_options *o, const char *function)
{
    if (!ng_given(function, "path", o->path) ||
        !ng_option_idle(function, "y", o->y && o->no_label, "without .no_label"))
        return false;
    o->scale = ng_option(o->scale, 1);
    if (!o->x) o->x = "x";
    if (!o->y) o->y = "y";
    if (!isfinite(o->scale))
        ng_fail(NG_EVALUE, "%s: scale %g, expected a finite number", function, o->scale);
    else if (o->dtype != NG_F32 && o->dtype != NG_F64)
        ng_fail(NG_EDTYPE, "%s: features as %s, expected float32 or float64", function,
                ng_dtype_name(o->dtype));
    else
        return true;
    return false;
}

static bool scale_by(const archive *a, ng_tensor *x, double scale)
{
    for (int64_t i = 0; scale != 1 && i < x->size; i++) {
        const double before = ng_tensor_load(x, i);
        ng_tensor_store(x, i, before * scale);
        if (isfinite(ng_tensor_load(x, i)) || !isfinite(before)) continue;
        ng_fail(NG_EVALUE, "%s: %s: %g times the scale is no %s", a->function, a->path, before,
                ng_dtype_name(x->dtype));
        return false;
    }
    return true;
}

/* Takes over both tensors. */
static ng_dataset *put_together(const archive *a, ng_tensor *x, ng_tensor *y, double scale)
{
    bool fits = x && y && scale_by(a, x, scale);
    if (fits && (x->shape.rank < 1 || x->size == 0)) {
        ng_fail(NG_EPARSE, "%s: %s: x is %s, expected (count, ...) with a sample or more",
                a->function, a->path, ng_shape_print(x->shape).text);
        fits = false;
    } else if (fits && !ng_is_none(y) &&
               (y->shape.rank < 1 || y->shape.dim[0] != x->shape.dim[0])) {
        ng_fail(NG_EPARSE, "%s: %s: x is %s and y %s, expected as many labels as samples",
                a->function, a->path, ng_shape_print(x->shape).text, ng_shape_print(y->shape).text);
        fits = false;
    }
    if (fits) return ng_dataset_adopt(a->function, x, y);
    ng_tensor_free(x);
    ng_tensor_free(y);
    return NULL;
}

ng_dataset *ng_dataset_read_npz_with(ng_dataset_read_npz_options options)
{
    archive a = {.function = "ng_dataset_read_npz", .path = options.path};
    if (!options_accepted(&options, a.function)) return NULL;
    ng_dataset *dataset = NULL;
    if (open_archive(&a)) {
        ng_tensor *x = load(&a, options.x, false, options.dtype);
        ng_tensor *y = !x                 ? NULL
                       : options.no_label ? NG_NONE
                                          : load(&a, options.y, true, options.dtype);
        dataset = put_together(&a, x, y, options.scale);
    }
    ng_free(a.bytes);
    return dataset;
}
