/* NumPy's .npy files:
 *
 *     "\x93NUMPY"  version (two bytes)  length of the header (u16; from version 2 on u32)
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  blanks, a new line
 *     the elements
 */
#include "io/npy.h"
#include "io/json.h"
#include <normgrad/data.h>
#include <string.h>

static const char npy_magic[] = "\x93NUMPY";
enum { NPY_MAGIC = 6, NPY_BEFORE = 10, NPY_LINE = 64, NPY_HEADER_MOST = 1 << 16 };

/* ---- Write --------------------------------------------------------------------------------- */

/* Prints what stands before the elements. */
static void npy_print_header(ng_text *text, const ng_tensor *x)
{
    ng_text_add(text, "\x93NUMPY\1\0\0\0", NPY_BEFORE);
    ng_text_print(text, "{'descr': '<%s', 'fortran_order': False, 'shape': (",
                  ng_stored_numpy(ng_stored_kind_of(x->dtype)));
    for (int i = 0; i < x->shape.rank; i++)
        ng_text_print(text, "%s%lld", i ? ", " : "", (long long)x->shape.dim[i]);
    ng_text_print(text, "%s), }", x->shape.rank == 1 ? "," : "");
    ng_text_print(text, "%*s\n", NPY_LINE - 1 - (int)(text->count % NPY_LINE), "");
    const int64_t length = text->count - NPY_BEFORE;
    if (text->failed) return;
    text->bytes[8] = (char)(length & 0xff), text->bytes[9] = (char)(length >> 8);
}

ng_status ng_tensor_save_npy(const ng_tensor *x, const char *path)
{
    static const char function[] = "ng_tensor_save_npy";
    if (!ng_given(function, "x", x) || !ng_given(function, "path", path) ||
        !ng_readable(function, x))
        return ng_newest_status();
    const ng_stored stored = ng_stored_of(x);
    ng_text header = {.function = function};
    npy_print_header(&header, x);
    ng_replacement file;
    ng_replacement_begin(&file, function, path);
    ng_replacement_text(&file, &header);
    ng_stored_write(&stored, &file);
    return ng_replacement_end(&file);
}

/* ---- The header ---------------------------------------------------------------------------- */

typedef struct {
    ng_stored_kind kind;
    bool swapped, fortran_order;
    ng_shape shape;
} npy_header;

/* Goes to the value of a key. */
static bool npy_seek(ng_json *json, const char *key)
{
    char *found = strstr(json->begin, key);
    if (!found) return ng_refuse(json->origin, NG_EPARSE, "the header has no %s", key);
    json->at = found + strlen(key);
    json->at += strspn(json->at, " ");
    return true;
}

/* '<f4': order of bytes, kind and width. */
static bool parse_descr(ng_json *json, npy_header *h)
{
    const char *text = json->at;
    uint16_t one = 1;
    ng_little_endian(&one, 1, 2);
    if (text[0] == '\'' && text[1] && strchr("<>=|", text[1]) && text[2] && text[3] &&
        text[4] == '\'') {
        const char code[] = {text[2], text[3], '\0'};
        h->kind = ng_stored_kind_named(code);
        h->swapped = text[1] == (one == 1 ? '>' : '<');
    }
    return h->kind != NG_STORED_OTHER ||
           ng_refuse(json->origin, NG_EPARSE,
                     "dtype %.*s, expected bool, integers or float16 to float64",
                     (int)strcspn(text, ",}\n"), text);
}

/* (), (3,), (3, 4). Python 2 wrote (3L, 4L). */
static bool parse_shape(ng_json *json, ng_shape *shape)
{
    if (!ng_json_need(json, '(')) return false;
    while (!ng_json_take(json, ')')) {
        if (shape->rank == NG_MAX_RANK) return ng_json_expected(json, "at most 8 dimensions");
        if (!ng_json_count(json, &shape->dim[shape->rank++])) return false;
        ng_json_take(json, 'L');
        if (!ng_json_take(json, ',')) return ng_json_need(json, ')');
    }
    return true;
}

static bool parse_npy_header(ng_json *json, npy_header *h)
{
    if (!npy_seek(json, "'fortran_order':")) return false;
    h->fortran_order = *json->at == 'T';
    if (strncmp(json->at, "True", 4) != 0 && strncmp(json->at, "False", 5) != 0)
        return ng_json_expected(json, "True or False");
    return npy_seek(json, "'descr':") && parse_descr(json, h) && npy_seek(json, "'shape':") &&
           parse_shape(json, &h->shape);
}

/* Reads the file up to the elements. Returns how many bytes that took, or -1. */
static int64_t read_header(ng_source *source, int64_t size, npy_header *h)
{
    unsigned char head[12] = {0};
    if (size >= 10 && !ng_source_all(source, head, 10)) return -1;
    const int64_t begin = head[6] == 1 ? 10 : 12;
    if (begin == 12 && size >= 12 && !ng_source_all(source, head + 10, 2)) return -1;
    const int64_t length = head[8] | head[9] << 8 | head[10] << 16 | (int64_t)head[11] << 24;
    if (memcmp(head, npy_magic, NPY_MAGIC) != 0 || head[6] < 1 || head[6] > 3 ||
        length > size - begin || length > NPY_HEADER_MOST)
        return ng_refuse(source->origin, NG_EPARSE,
                         "not a .npy file of version 1, 2 or 3, or cut short"),
               -1;
    char *text = ng_calloc(source->origin.function, length + 1, 1);
    if (!text) return -1;
    ng_json json = {source->origin, text, text, text + length};
    const bool parsed = ng_source_all(source, text, length) && parse_npy_header(&json, h);
    ng_free(text);
    return parsed ? begin + length : -1;
}

/* ---- The elements -------------------------------------------------------------------------- */

/* Goes to the next element in an order in which the first dimension runs fastest. `element` is the
 * element's index in row-major order. */
static int64_t next_in_columns(ng_shape shape, int64_t index[NG_MAX_RANK], int64_t element)
{
    for (int axis = 0; axis < shape.rank; axis++) {
        const int64_t stride = ng_shape_span(shape, axis + 1, shape.rank);
        if (++index[axis] < shape.dim[axis]) return element + stride;
        element -= stride * (shape.dim[axis] - 1);
        index[axis] = 0;
    }
    return element;
}

/* Reads elements of x's dtype straight into x, and converts others in pieces. */
static bool read_elements(ng_source *source, const npy_header *h, const char *name, ng_tensor *x)
{
    const int width = ng_stored_width(h->kind);
    if (h->kind == ng_stored_kind_of(x->dtype) && !h->fortran_order) {
        if (!ng_source_all(source, x->data, x->size * width)) return false;
        if (h->swapped) ng_swap_bytes(x->data, x->size, width);
        return true;
    }
    unsigned char bytes[8192];
    ng_stored piece = {.name = name, .kind = h->kind, .bytes = bytes};
    int64_t index[NG_MAX_RANK] = {0}, element = 0;
    for (int64_t left = x->size; left > 0; left -= piece.size, piece.first += piece.size) {
        piece.size = (int64_t)sizeof bytes / width < left ? (int64_t)sizeof bytes / width : left;
        if (!ng_source_all(source, bytes, piece.size * width)) return false;
        if (h->swapped) ng_swap_bytes(bytes, piece.size, width);
        if (!ng_stored_fits(source->origin, &piece, x)) return false;
        for (int64_t i = 0; i < piece.size; i++) {
            ng_stored_store(&piece, i, x, element);
            element = h->fortran_order ? next_in_columns(h->shape, index, element) : element + 1;
        }
    }
    return true;
}

static ng_dtype dtype_wanted(ng_stored_kind kind, ng_npy_role role, ng_dtype dtype)
{
    const bool real = kind == NG_STORED_F64 || kind == NG_STORED_F32 || kind == NG_STORED_F16;
    if (role == NG_NPY_FEATURES || (role == NG_NPY_LABELS && real)) return dtype;
    return kind == NG_STORED_F64 ? NG_F64 : real ? NG_F32 : NG_I64;
}

ng_tensor *ng_npy_read(ng_source *source, int64_t size, const char *name, ng_npy_role role,
                       ng_dtype dtype)
{
    npy_header h = {.kind = NG_STORED_OTHER};
    const int64_t begin = read_header(source, size, &h);
    if (begin < 0) return NULL;
    if (size - begin != ng_stored_bytes(h.kind, h.shape))
        return ng_refuse(source->origin, NG_EPARSE,
                         "%lld bytes after the header, which promises %s of %d bytes each",
                         (long long)(size - begin), ng_shape_print(h.shape).text,
                         ng_stored_width(h.kind)),
               NULL;
    ng_tensor *x =
        ng_tensor_make(source->origin.function, dtype_wanted(h.kind, role, dtype), h.shape);
    if (x && read_elements(source, &h, name, x)) return x;
    ng_tensor_free(x);
    return NULL;
}

ng_tensor *ng_tensor_read_npy(const char *path)
{
    static const char function[] = "ng_tensor_read_npy";
    if (!ng_given(function, "path", path)) return NULL;
    int64_t size = 0;
    ng_source source;
    char *bytes = ng_file_read(function, path, &size);
    ng_tensor *x = NULL;
    if (bytes &&
        ng_source_begin(&source, (ng_origin){function, path}, bytes, size, NG_PACKED_NOT)) {
        x = ng_npy_read(&source, size, "the array", NG_NPY_OWN, NG_F32);
        ng_source_end(&source);
    }
    ng_free(bytes);
    return x;
}
