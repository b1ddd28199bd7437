/* NumPy's .npy files:
 *
 *     "\x93NUMPY"  version (two bytes)  length of the header (u16; from version 2 on u32)
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  blanks, a new line
 *     the elements
 */
#include "io/npy.h"
#include <normgrad/data.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum { MAGIC = 6, LINE = 64 };

/* ---- Write --------------------------------------------------------------------------------- */

static const char *descr_of(ng_dtype dtype)
{
    return dtype == NG_F32 ? "<f4" : dtype == NG_F64 ? "<f8" : "<i8";
}

void ng_npy_print_header(ng_text *text, const ng_tensor *x)
{
    ng_text_add(text, magic, MAGIC);
    ng_text_add(text, "\1\0\0\0", 4);
    ng_text_print(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr_of(x->dtype));
    for (int i = 0; i < x->shape.rank; i++)
        ng_text_print(text, "%s%lld", i ? ", " : "", (long long)x->shape.dim[i]);
    ng_text_print(text, "%s), }", x->shape.rank == 1 ? "," : "");
    while (!text->failed && text->count % LINE != LINE - 1) ng_text_add(text, " ", 1);
    ng_text_add(text, "\n", 1);
    if (text->failed) return;
    const int64_t length = text->count - MAGIC - 4;
    text->bytes[MAGIC + 2] = (char)(length & 0xff);
    text->bytes[MAGIC + 3] = (char)(length >> 8);
}

size_t ng_npy_piece(const ng_tensor *x, int64_t *next, unsigned char piece[4096])
{
    const int width = (int)ng_dtype_bytes(x->dtype);
    int64_t count = 4096 / width;
    if (count > x->size - *next) count = x->size - *next;
    const char *from = (const char *)x->data + *next * width;
    for (int64_t i = 0; i < count; i++) {
        uint32_t four;
        uint64_t bits;
        if (width == 4)
            memcpy(&four, from + 4 * i, 4), bits = four;
        else
            memcpy(&bits, from + 8 * i, 8);
        for (int k = 0; k < width; k++) piece[i * width + k] = (unsigned char)(bits >> 8 * k);
    }
    *next += count;
    return (size_t)(count * width);
}

ng_status ng_tensor_save_npy(const ng_tensor *x, const char *path)
{
    static const char function[] = "ng_tensor_save_npy";
    if (!ng_given(function, "x", x) || !ng_given(function, "path", path) ||
        !ng_readable(function, x))
        return ng_newest_status();
    ng_replacement file;
    const ng_status begun = ng_replacement_begin(&file, function, path);
    if (begun != NG_OK) return begun;
    ng_text header = {.function = function};
    ng_npy_print_header(&header, x);
    const ng_status status = header.failed ? NG_ENOMEM : NG_OK;
    if (status == NG_OK) ng_replacement_write(&file, header.bytes, (size_t)header.count);
    ng_free(header.bytes);
    int64_t next = 0;
    unsigned char piece[4096];
    for (size_t bytes; status == NG_OK && (bytes = ng_npy_piece(x, &next, piece)) > 0;)
        ng_replacement_write(&file, piece, bytes);
    return ng_replacement_end(&file, status);
}

/* ---- The header ---------------------------------------------------------------------------- */

/* A header that is read, and what it says. */
typedef struct {
    const char *function, *path;
    const char *at, *end;
    ng_stored_kind kind;
    int width;
    bool big_endian, fortran_order;
    ng_shape shape;
} header;

static bool expected(const header *h, const char *what)
{
    ng_fail(NG_EPARSE, "%s: %s: the header has no %s", h->function, h->path, what);
    return false;
}

static void skip_blanks(header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
}

/* Whether the next word is this one, which is then passed. */
static bool take(header *h, const char *word)
{
    skip_blanks(h);
    const int64_t length = (int64_t)strlen(word);
    if (h->end - h->at < length || memcmp(h->at, word, (size_t)length) != 0) return false;
    h->at += length;
    return true;
}

/* 'text' or "text", of at most 15 characters. */
static bool take_string(header *h, char text[16])
{
    skip_blanks(h);
    const char quote = h->at < h->end ? *h->at : '\0';
    if (quote != '\'' && quote != '"') return false;
    int length = 0;
    for (h->at++; h->at < h->end && *h->at != quote; h->at++) {
        if (length == 15) return false;
        text[length++] = *h->at;
    }
    text[length] = '\0';
    if (h->at == h->end) return false;
    h->at++;
    return true;
}

/* Order of bytes, kind and width: "<f4". */
static bool take_descr(header *h)
{
    static const struct {
        const char *name;
        ng_stored_kind kind;
        int width;
    } known[] = {{"b1", NG_STORED_U8, 1},  {"i1", NG_STORED_I8, 1},  {"u1", NG_STORED_U8, 1},
                 {"i2", NG_STORED_I16, 2}, {"u2", NG_STORED_U16, 2}, {"i4", NG_STORED_I32, 4},
                 {"u4", NG_STORED_U32, 4}, {"i8", NG_STORED_I64, 8}, {"u8", NG_STORED_U64, 8},
                 {"f2", NG_STORED_F16, 2}, {"f4", NG_STORED_F32, 4}, {"f8", NG_STORED_F64, 8}};
    char text[16];
    if (!take_string(h, text)) return expected(h, "dtype of one kind of number");
    const bool ordered = *text && strchr("<>=|", *text);
    h->big_endian = *text == '>';
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    h->big_endian = h->big_endian || *text == '=';
#endif
    for (size_t i = 0; ordered && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(text + 1, known[i].name) != 0) continue;
        h->kind = known[i].kind;
        h->width = known[i].width;
        return true;
    }
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    ng_fail(NG_EPARSE, "%s: %s: dtype '%s', expected bool, integers or float16 to float64",
            h->function, h->path, text);
    return false;
}

static bool take_order(header *h)
{
    h->fortran_order = take(h, "True");
    return h->fortran_order || take(h, "False") || expected(h, "fortran_order, True or False");
}

/* (), (3,), (3, 4) */
static bool take_shape(header *h)
{
    if (!take(h, "(")) return expected(h, "shape");
    for (h->shape.rank = 0; !take(h, ")");) {
        int64_t length = 0;
        skip_blanks(h);
        const char *first = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            if (__builtin_mul_overflow(length, 10, &length) ||
                __builtin_add_overflow(length, *h->at - '0', &length))
                return expected(h, "shape that memory could hold");
        if (h->at == first) return expected(h, "whole numbers in the shape");
        if (h->shape.rank == NG_MAX_RANK) return expected(h, "shape of at most 8 dimensions");
        h->shape.dim[h->shape.rank++] = length;
        if (!take(h, ",") && (h->shape.rank == 1 || h->at == h->end || *h->at != ')'))
            return expected(h, "comma in the shape");
    }
    return true;
}

static bool take_header(header *h)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    static bool (*const takers[])(header *) = {take_descr, take_order, take_shape};
    bool given[3] = {false, false, false};
    char key[16];
    if (!take(h, "{")) return expected(h, "'{'");
    while (!take(h, "}")) {
        int which = 0;
        if (!take_string(h, key) || !take(h, ":")) return expected(h, "pairs of name and value");
        while (which < 3 && strcmp(key, names[which]) != 0) which++;
        if (which == 3 || given[which])
            return expected(h, "descr, fortran_order, shape, each once");
        given[which] = true;
        if (!takers[which](h)) return false;
        skip_blanks(h);
        if (!take(h, ",") && (h->at == h->end || *h->at != '}'))
            return expected(h, "comma, or '}', after a value");
    }
    skip_blanks(h);
    if (h->at != h->end) return expected(h, "end after its '}'");
    return (given[0] && given[1] && given[2]) || expected(h, "descr, fortran_order or shape");
}

/* ---- The elements -------------------------------------------------------------------------- */

static void swap_bytes(unsigned char *bytes, int64_t count, int width)
{
    for (int64_t i = 0; i < count; i++, bytes += width)
        for (int k = 0; k < width / 2; k++) {
            const unsigned char byte = bytes[k];
            bytes[k] = bytes[width - 1 - k];
            bytes[width - 1 - k] = byte;
        }
}

/* The elements row by row of those whose first dimension runs fastest. */
static void *rows_of(const header *h, const unsigned char *bytes, int64_t count)
{
    unsigned char *rows = ng_calloc(h->function, count, (size_t)h->width);
    int64_t index[NG_MAX_RANK] = {0}, stride[NG_MAX_RANK] = {0}, from = 0;
    for (int i = 0; i < h->shape.rank; i++) stride[i] = i ? stride[i - 1] * h->shape.dim[i - 1] : 1;
    for (int64_t i = 0; rows && i < count; i++) {
        memcpy(rows + i * h->width, bytes + from * h->width, (size_t)h->width);
        for (int axis = h->shape.rank - 1; axis >= 0; axis--) {
            from += stride[axis];
            if (++index[axis] < h->shape.dim[axis]) break;
            from -= stride[axis] * h->shape.dim[axis];
            index[axis] = 0;
        }
    }
    return rows;
}

/* The size that the shape promises is that of the bytes which are there. */
static bool count_elements(const header *h, int64_t bytes, int64_t *count)
{
    int64_t promised = h->width;
    bool fits = true, empty = false;
    for (int i = 0; i < h->shape.rank; i++) empty = empty || h->shape.dim[i] == 0;
    for (int i = 0; i < h->shape.rank && !empty; i++)
        fits = fits && !__builtin_mul_overflow(promised, h->shape.dim[i], &promised);
    if (empty) promised = 0;
    *count = promised / h->width;
    if (fits && promised == bytes) return true;
    ng_fail(NG_EPARSE, "%s: %s: %lld bytes after the header, which promises %s of %d bytes each",
            h->function, h->path, (long long)bytes, ng_shape_print(h->shape).text, h->width);
    return false;
}

bool ng_npy_parse(const char *function, const char *path, char *bytes, int64_t size,
                  ng_stored *array, void **moved)
{
    const unsigned char *b = (const unsigned char *)bytes;
    header h = {.function = function, .path = path};
    int64_t begin = 0, length = 0, count;
    *moved = NULL;
    if (size >= 10 && memcmp(bytes, magic, MAGIC) == 0 && b[6] == 1) {
        begin = 10;
        length = b[8] | b[9] << 8;
    } else if (size >= 12 && memcmp(bytes, magic, MAGIC) == 0 && (b[6] == 2 || b[6] == 3)) {
        begin = 12;
        length = b[8] | b[9] << 8 | b[10] << 16 | (int64_t)b[11] << 24;
    }
    if (begin == 0 || b[7] != 0 || length > size - begin) {
        ng_fail(NG_EPARSE, "%s: %s: not a .npy file of version 1, 2 or 3, or cut short", function,
                path);
        return false;
    }
    h.at = bytes + begin;
    h.end = h.at + length;
    if (!take_header(&h) || !count_elements(&h, size - begin - length, &count)) return false;

    unsigned char *elements = (unsigned char *)bytes + begin + length;
    if (h.big_endian) swap_bytes(elements, count, h.width);
    if (h.fortran_order && h.shape.rank > 1 && count > 0) {
        elements = *moved = rows_of(&h, elements, count);
        if (!elements) return false;
    }
    *array = (ng_stored){"the array", h.kind, h.shape, count, elements};
    return true;
}

ng_dtype ng_npy_dtype(const ng_stored *array)
{
    if (array->kind == NG_STORED_F64) return NG_F64;
    return array->kind == NG_STORED_F32 || array->kind == NG_STORED_F16 ? NG_F32 : NG_I64;
}

ng_tensor *ng_npy_tensor(const char *function, const char *path, const ng_stored *array,
                         ng_dtype dtype)
{
    const ng_safetensors named = {.function = function, .path = path};
    ng_tensor *x = ng_tensor_make(function, dtype, array->shape);
    if (x && ng_stored_fits(&named, array, x)) {
        ng_stored_load(array, x);
        return x;
    }
    ng_tensor_free(x);
    return NULL;
}

ng_tensor *ng_tensor_load_npy(const char *path)
{
    static const char function[] = "ng_tensor_load_npy";
    if (!ng_given(function, "path", path)) return NULL;
    int64_t size = 0;
    ng_stored array;
    void *moved = NULL;
    char *bytes = ng_file_read(function, path, &size);
    const bool parsed = bytes && ng_npy_parse(function, path, bytes, size, &array, &moved);
    ng_tensor *x = parsed ? ng_npy_tensor(function, path, &array, ng_npy_dtype(&array)) : NULL;
    ng_free(moved);
    ng_free(bytes);
    return x;
}
