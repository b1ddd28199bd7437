/* Arrays in files and lists of them; their elements converted to those of tensors. */
#include "io/stored.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *numpy;
    int bytes;
} stored_kinds[] = {
    [NG_STORED_OTHER] = {"another dtype", "another dtype", 1},
    [NG_STORED_BOOL] = {"BOOL", "b1", 1},
    [NG_STORED_U8] = {"U8", "u1", 1},
    [NG_STORED_I8] = {"I8", "i1", 1},
    [NG_STORED_I16] = {"I16", "i2", 2},
    [NG_STORED_U16] = {"U16", "u2", 2},
    [NG_STORED_F16] = {"F16", "f2", 2},
    [NG_STORED_BF16] = {"BF16", "BF16", 2},
    [NG_STORED_I32] = {"I32", "i4", 4},
    [NG_STORED_U32] = {"U32", "u4", 4},
    [NG_STORED_F32] = {"F32", "f4", 4},
    [NG_STORED_F64] = {"F64", "f8", 8},
    [NG_STORED_I64] = {"I64", "i8", 8},
    [NG_STORED_U64] = {"U64", "u8", 8},
};

int ng_stored_width(ng_stored_kind kind) { return stored_kinds[kind].bytes; }

const char *ng_stored_name(ng_stored_kind kind) { return stored_kinds[kind].name; }

const char *ng_stored_numpy(ng_stored_kind kind) { return stored_kinds[kind].numpy; }

ng_stored_kind ng_stored_kind_named(const char *name)
{
    int kind = NG_STORED_KINDS - 1;
    while (kind > NG_STORED_OTHER && strcmp(stored_kinds[kind].name, name) != 0 &&
           strcmp(stored_kinds[kind].numpy, name) != 0)
        kind--;
    return (ng_stored_kind)kind;
}

ng_stored_kind ng_stored_kind_of(ng_dtype dtype)
{
    return dtype == NG_F32 ? NG_STORED_F32 : dtype == NG_F64 ? NG_STORED_F64 : NG_STORED_I64;
}

void ng_swap_bytes(void *bytes, int64_t count, int width)
{
    unsigned char *element = bytes;
    for (int64_t i = 0; i < count; i++, element += width)
        for (int k = 0; k < width / 2; k++) {
            const unsigned char byte = element[k];
            element[k] = element[width - 1 - k];
            element[width - 1 - k] = byte;
        }
}

ng_stored ng_stored_of(const ng_tensor *x)
{
    return (ng_stored){.kind = ng_stored_kind_of(x->dtype),
                       .shape = x->shape,
                       .size = x->size,
                       .bytes = x->data,
                       .tensor = (ng_tensor *)x};
}

bool ng_stored_add(const char *function, ng_stored_list *list, const char *prefix, const char *name,
                   ng_stored array)
{
    ng_text text = {.function = function};
    ng_text_print(&text, "%s%s", prefix, name);
    if (text.failed || !NG_RESERVE(function, list->arrays, list->count, list->room)) {
        ng_free(text.bytes);
        return false;
    }
    array.name = text.bytes;
    list->arrays[list->count++] = array;
    return true;
}

void ng_stored_free(ng_stored_list *list)
{
    for (int64_t i = 0; i < list->count; i++) ng_free((char *)list->arrays[i].name);
    ng_free(list->arrays);
}

ng_stored *ng_stored_find(const ng_stored_list *list, const char *name)
{
    for (int64_t i = 0; i < list->count; i++)
        if (strcmp(list->arrays[i].name, name) == 0) return &list->arrays[i];
    return NULL;
}

const char *ng_stored_twice(const ng_stored_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        if (ng_stored_find(list, list->arrays[i].name) != &list->arrays[i])
            return list->arrays[i].name;
    return NULL;
}

void ng_stored_pieces(const ng_stored *stored,
                      void (*take)(void *sink, const void *bytes, int64_t count), void *sink)
{
    const int width = ng_stored_width(stored->kind);
    unsigned char piece[8192];
    const int64_t most = (int64_t)sizeof piece / width;
    for (int64_t i = 0, count; i < stored->size; i += count) {
        count = stored->size - i < most ? stored->size - i : most;
        memcpy(piece, (const char *)stored->bytes + i * width, (size_t)(count * width));
        ng_little_endian(piece, count, width);
        take(sink, piece, count * width);
    }
}

static void write_piece(void *file, const void *bytes, int64_t count)
{
    ng_replacement_write(file, bytes, count);
}

void ng_stored_write(const ng_stored *stored, ng_replacement *file)
{
    ng_stored_pieces(stored, write_piece, file);
}

int64_t ng_stored_bytes(ng_stored_kind kind, ng_shape shape)
{
    int64_t bytes = ng_stored_width(kind);
    for (int i = 0; i < shape.rank; i++)
        if (shape.dim[i] == 0) return 0;
    for (int i = 0; i < shape.rank; i++)
        if (__builtin_mul_overflow(bytes, shape.dim[i], &bytes)) return -1;
    return bytes;
}

/* ---- Elements ------------------------------------------------------------------------------ */

/* An element: a float, or a whole number in 64 bits, unsigned for U64. */
typedef struct {
    bool is_float;
    double real;
    int64_t whole;
    bool beyond; /* a whole number beyond int64 */
} stored_element;

/* sign, 5 bits of exponent from -15, 10 bits of fraction */
static double half_value(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 0x1f), fraction = (int)(bits & 0x3ff);
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31) value = fraction ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -value : value;
}

static double float_value(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

static stored_element stored_element_at(const ng_stored *stored, int64_t i)
{
    const int width = ng_stored_width(stored->kind);
    uint64_t bits = 0;
    memcpy(&bits, (const char *)stored->bytes + i * width, (size_t)width);
    ng_little_endian(&bits, 1, width);
    ng_little_endian(&bits, 1, sizeof bits);
    stored_element e = {.is_float = true};
    switch (stored->kind) {
    case NG_STORED_F16: e.real = half_value((uint32_t)bits); return e;
    case NG_STORED_BF16: e.real = float_value((uint32_t)bits << 16); return e;
    case NG_STORED_F32: e.real = float_value((uint32_t)bits); return e;
    case NG_STORED_F64: memcpy(&e.real, &bits, sizeof e.real); return e;
    case NG_STORED_I8: e.whole = (int8_t)bits; break;
    case NG_STORED_I16: e.whole = (int16_t)bits; break;
    case NG_STORED_I32: e.whole = (int32_t)bits; break;
    default: e.whole = (int64_t)bits; break;
    }
    e.is_float = false;
    e.beyond = stored->kind == NG_STORED_U64 && e.whole < 0;
    return e;
}

static bool element_fits(stored_element e, ng_dtype dtype)
{
    if (e.is_float && dtype == NG_I64) return e.real == floor(e.real) && fabs(e.real) <= 0x1p53;
    if (e.is_float) return dtype == NG_F64 || !isfinite(e.real) || isfinite((float)e.real);
    if (e.beyond || dtype == NG_I64) return !e.beyond;
    const double real = (double)e.whole;
    if (real >= 0x1p63 || (int64_t)real != e.whole) return false;
    return dtype == NG_F64 || (double)(float)real == real;
}

bool ng_stored_fits(ng_origin origin, const ng_stored *stored, const ng_tensor *x)
{
    if (stored->kind == NG_STORED_OTHER)
        return ng_refuse(origin, NG_EPARSE, "\"%s\" has dtype %.20s, expected one from BOOL to F64",
                         stored->name, stored->dtype);
    if (stored->kind == ng_stored_kind_of(x->dtype)) return true;
    for (int64_t i = 0; i < stored->size; i++) {
        const stored_element e = stored_element_at(stored, i);
        if (element_fits(e, x->dtype)) continue;
        char whole[32];
        snprintf(whole, sizeof whole, e.beyond ? "%" PRIu64 : "%" PRId64, (uint64_t)e.whole);
        return ng_refuse(origin, NG_EVALUE, "\"%s\" (%s): element %lld is %s, which is no %s",
                         stored->name, ng_stored_name(stored->kind), (long long)(stored->first + i),
                         e.is_float ? ng_number_print(e.real).text : whole,
                         ng_dtype_name(x->dtype));
    }
    return true;
}

void ng_stored_store(const ng_stored *stored, int64_t i, ng_tensor *x, int64_t element)
{
    const stored_element e = stored_element_at(stored, i);
    if (x->dtype == NG_I64)
        ((int64_t *)x->data)[element] = e.is_float ? (int64_t)e.real : e.whole;
    else
        ng_tensor_store(x, element, e.is_float ? e.real : (double)e.whole);
}

void ng_stored_load(const ng_stored *stored, ng_tensor *x)
{
    if (stored->size > 0 && stored->kind == ng_stored_kind_of(x->dtype))
        memcpy(x->data, stored->bytes, (size_t)stored->size * ng_dtype_bytes(x->dtype));
    else
        for (int64_t i = 0; i < stored->size; i++) ng_stored_store(stored, i, x, i);
    ng_touch(x);
}
