/* NumPy's .npy files:
 *
 *     "\x93NUMPY"  version (two bytes)  length of the header (u16; from version 2 on u32)
 *     {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }  blanks, a new line
 *     the elements
 */
#include "io/npy.h"
#include <normgrad/data.h>
#include <string.h>

static const char npy_magic[] = "\x93NUMPY";
enum { NPY_MAGIC = 6, NPY_LINE = 64, NPY_HEADER_MOST = 1 << 16 };

/* ---- Write --------------------------------------------------------------------------------- */

void ng_npy_print_header(ng_text *text, const ng_tensor *x)
{
    const char *descr = x->dtype == NG_F32 ? "<f4" : x->dtype == NG_F64 ? "<f8" : "<i8";
    ng_text_add(text, npy_magic, NPY_MAGIC);
    ng_text_add(text, "\1\0\0\0", 4);
    ng_text_print(text, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < x->shape.rank; i++)
        ng_text_print(text, "%s%lld", i ? ", " : "", (long long)x->shape.dim[i]);
    ng_text_print(text, "%s), }", x->shape.rank == 1 ? "," : "");
    while (!text->failed && text->count % NPY_LINE != NPY_LINE - 1) ng_text_add(text, " ", 1);
    ng_text_add(text, "\n", 1);
    if (text->failed) return;
    const int64_t length = text->count - NPY_MAGIC - 4;
    text->bytes[NPY_MAGIC + 2] = (char)(length & 0xff);
    text->bytes[NPY_MAGIC + 3] = (char)(length >> 8);
}

static void write_elements(void *file, const void *bytes, int64_t count)
{
    ng_replacement_write(file, bytes, count);
}

ng_status ng_tensor_save_npy(const ng_tensor *x, const char *path)
{
    static const char function[] = "ng_tensor_save_npy";
    if (!ng_given(function, "x", x) || !ng_given(function, "path", path) ||
        !ng_readable(function, x))
        return ng_newest_status();
    ng_text header = {.function = function};
    ng_npy_print_header(&header, x);
    ng_replacement file;
    ng_status status = header.failed ? NG_ENOMEM : ng_replacement_begin(&file, function, path);
    if (status == NG_OK) {
        const ng_stored stored = ng_stored_of("", x);
        ng_replacement_write(&file, header.bytes, header.count);
        ng_stored_pieces(&stored, write_elements, &file);
        status = ng_replacement_end(&file, NG_OK);
    }
    ng_free(header.bytes);
    return status;
}

/* ---- The header ---------------------------------------------------------------------------- */

/* What a header says, and how far it is read. */
typedef struct {
    const char *function, *path;
    const char *at, *end;
    ng_stored_kind kind;
    bool swapped, fortran_order;
    ng_shape shape;
} npy_header;

static bool npy_expected(const npy_header *h, const char *what)
{
    const bool ended = h->at == h->end;
    ng_fail(NG_EPARSE, "%s: %s: the header %s, expected %s", h->function, h->path,
            ended ? "ends too early" : "is malformed", what);
    return false;
}

static void skip_white(npy_header *h)
{
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\n' || *h->at == '\t')) h->at++;
}

/* Takes a word, if it is the next. */
static bool take_word(npy_header *h, const char *word)
{
    skip_white(h);
    const int64_t length = (int64_t)strlen(word);
    if (h->end - h->at < length || memcmp(h->at, word, (size_t)length) != 0) return false;
    h->at += length;
    return true;
}

/* 'text' or "text", of at most 15 characters. */
static bool take_quoted(npy_header *h, char text[16])
{
    skip_white(h);
    const char quote = h->at < h->end ? *h->at : '\0';
    int length = 0;
    if (quote != '\'' && quote != '"') return false;
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
static bool take_descr(npy_header *h)
{
    static const struct {
        const char *name;
        ng_stored_kind kind;
    } known[] = {{"b1", NG_STORED_BOOL}, {"i1", NG_STORED_I8},  {"u1", NG_STORED_U8},
                 {"i2", NG_STORED_I16},  {"u2", NG_STORED_U16}, {"i4", NG_STORED_I32},
                 {"u4", NG_STORED_U32},  {"i8", NG_STORED_I64}, {"u8", NG_STORED_U64},
                 {"f2", NG_STORED_F16},  {"f4", NG_STORED_F32}, {"f8", NG_STORED_F64}};
    char text[16];
    uint16_t one = 1;
    ng_little_endian(&one, 1, 2);
    const bool big_machine = one != 1;
    if (!take_quoted(h, text)) return npy_expected(h, "a dtype of one kind of number");
    h->swapped = *text == (big_machine ? '<' : '>');
    for (size_t i = 0; *text && strchr("<>=|", *text) && i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(text + 1, known[i].name) != 0) continue;
        h->kind = known[i].kind;
        return true;
    }
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~') *c = '?';
    ng_fail(NG_EPARSE, "%s: %s: dtype '%s', expected bool, integers or float16 to float64",
            h->function, h->path, text);
    return false;
}

static bool take_order(npy_header *h)
{
    h->fortran_order = take_word(h, "True");
    return h->fortran_order || take_word(h, "False") ||
           npy_expected(h, "fortran_order, True or False");
}

/* (), (3,), (3, 4). Python 2 wrote (3L, 4L). */
static bool take_shape(npy_header *h)
{
    if (!take_word(h, "(")) return npy_expected(h, "a shape in parentheses");
    for (h->shape.rank = 0; !take_word(h, ")");) {
        int64_t length = 0;
        skip_white(h);
        const char *first = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            if (__builtin_mul_overflow(length, 10, &length) ||
                __builtin_add_overflow(length, *h->at - '0', &length))
                return npy_expected(h, "a shape that memory could hold");
        if (h->at == first) return npy_expected(h, "whole numbers in the shape");
        if (h->shape.rank == NG_MAX_RANK) return npy_expected(h, "a shape of at most 8 dimensions");
        h->shape.dim[h->shape.rank++] = length;
        take_word(h, "L");
        if (take_word(h, ",")) continue;
        if (h->at < h->end && *h->at == ')' && h->shape.rank > 1) continue;
        return npy_expected(h, h->shape.rank == 1 ? "a comma after the shape's only number, (3,)"
                                                  : "a comma between the shape's numbers");
    }
    return true;
}

static bool take_header(npy_header *h)
{
    static const char *const names[] = {"descr", "fortran_order", "shape"};
    static bool (*const takers[])(npy_header *) = {take_descr, take_order, take_shape};
    bool given[3] = {false, false, false};
    char key[16];
    if (!take_word(h, "{")) return npy_expected(h, "'{'");
    while (!take_word(h, "}")) {
        int which = 0;
        if (!take_quoted(h, key) || !take_word(h, ":"))
            return npy_expected(h, "pairs of name and value");
        while (which < 3 && strcmp(key, names[which]) != 0) which++;
        if (which == 3 || given[which])
            return npy_expected(h, "descr, fortran_order, shape, each once");
        given[which] = true;
        if (!takers[which](h)) return false;
        skip_white(h);
        if (!take_word(h, ",") && (h->at == h->end || *h->at != '}'))
            return npy_expected(h, "a comma, or '}', after a value");
    }
    skip_white(h);
    if (h->at != h->end) return npy_expected(h, "nothing after its '}'");
    return (given[0] && given[1] && given[2]) || npy_expected(h, "descr, fortran_order and shape");
}

/* Reads the header; how many bytes it took with what stands before it, or -1. */
static int64_t read_header(ng_source *source, int64_t size, npy_header *h)
{
    unsigned char head[12] = {0};
    if (size >= 10 && !ng_source_all(source, head, 10)) return -1;
    const int64_t begin = head[6] == 1 ? 10 : 12;
    if (begin == 12 && size >= 12 && !ng_source_all(source, head + 10, 2)) return -1;
    const int64_t length = head[8] | head[9] << 8 | head[10] << 16 | (int64_t)head[11] << 24;
    const bool known = memcmp(head, npy_magic, NPY_MAGIC) == 0 && head[6] <= 3 && head[7] == 0;
    if (!known || head[6] == 0 || length > size - begin || length > NPY_HEADER_MOST) {
        ng_fail(NG_EPARSE, "%s: %s: not a .npy file of version 1, 2 or 3, or cut short",
                source->function, source->path);
        return -1;
    }
    char *text = ng_calloc(source->function, length + 1, 1);
    *h = (npy_header){source->function, source->path, .at = text, .end = text + length};
    const bool taken = text && ng_source_all(source, text, length) && take_header(h);
    ng_free(text);
    return taken ? begin + length : -1;
}

/* ---- The elements -------------------------------------------------------------------------- */

/* Whether the shape promises the bytes that are there. */
static bool shape_holds(const npy_header *h, int64_t bytes)
{
    const int width = ng_stored_width(h->kind);
    int64_t promised = width;
    bool fits = true, empty = false;
    for (int i = 0; i < h->shape.rank; i++) empty = empty || h->shape.dim[i] == 0;
    for (int i = 0; i < h->shape.rank && !empty; i++)
        fits = fits && !__builtin_mul_overflow(promised, h->shape.dim[i], &promised);
    if (empty) promised = 0;
    if (fits && promised == bytes) return true;
    ng_fail(NG_EPARSE, "%s: %s: %lld bytes after the header, which promises %s of %d bytes each",
            h->function, h->path, (long long)bytes, ng_shape_print(h->shape).text, width);
    return false;
}

/* Goes to the next element of an array whose first dimension runs fastest: `at` is its place row by
 * row. */
static int64_t next_in_columns(ng_shape shape, int64_t index[NG_MAX_RANK], int64_t at)
{
    for (int axis = 0; axis < shape.rank; axis++) {
        const int64_t stride = ng_shape_span(shape, axis + 1, shape.rank);
        if (++index[axis] < shape.dim[axis]) return at + stride;
        at -= stride * (shape.dim[axis] - 1);
        index[axis] = 0;
    }
    return at;
}

/* Elements of x's dtype go straight into it, others by way of a small piece. */
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
    int64_t index[NG_MAX_RANK] = {0}, at = 0;
    for (int64_t left = x->size; left > 0; left -= piece.size, piece.first += piece.size) {
        piece.size = (int64_t)sizeof bytes / width < left ? (int64_t)sizeof bytes / width : left;
        if (!ng_source_all(source, bytes, piece.size * width)) return false;
        if (h->swapped) ng_swap_bytes(bytes, piece.size, width);
        if (!ng_stored_fits(h->function, h->path, &piece, x)) return false;
        for (int64_t i = 0; i < piece.size; i++) {
            ng_stored_store(&piece, i, x, at);
            at = h->fortran_order ? next_in_columns(h->shape, index, at) : at + 1;
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
    npy_header h;
    const int64_t begin = read_header(source, size, &h);
    if (begin < 0 || !shape_holds(&h, size - begin)) return NULL;
    ng_tensor *x = ng_tensor_make(source->function, dtype_wanted(h.kind, role, dtype), h.shape);
    if (x && read_elements(source, &h, name, x)) return x;
    ng_tensor_free(x);
    return NULL;
}

ng_tensor *ng_tensor_load_npy(const char *path)
{
    static const char function[] = "ng_tensor_load_npy";
    if (!ng_given(function, "path", path)) return NULL;
    int64_t size = 0;
    ng_source source;
    char *bytes = ng_file_read(function, path, &size);
    ng_tensor *x = NULL;
    if (bytes && ng_source_begin(&source, function, path, bytes, size, NG_PACKED_NOT)) {
        x = ng_npy_read(&source, size, "the array", NG_NPY_OWN, NG_F32);
        ng_source_end(&source);
    }
    ng_free(bytes);
    return x;
}
