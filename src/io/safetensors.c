#include "io/safetensors.h"
#include "io/file.h"
#include "nn/module.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int bytes;
} kinds[] = {
    [NG_STORED_BOOL] = {"BOOL", 1}, [NG_STORED_U8] = {"U8", 1},   [NG_STORED_I8] = {"I8", 1},
    [NG_STORED_I16] = {"I16", 2},   [NG_STORED_U16] = {"U16", 2}, [NG_STORED_F16] = {"F16", 2},
    [NG_STORED_BF16] = {"BF16", 2}, [NG_STORED_I32] = {"I32", 4}, [NG_STORED_U32] = {"U32", 4},
    [NG_STORED_F32] = {"F32", 4},   [NG_STORED_F64] = {"F64", 8}, [NG_STORED_I64] = {"I64", 8},
    [NG_STORED_U64] = {"U64", 8},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* Longer headers are refused, here as in Python. */
#define HEADER_MOST 100000000

static const char digest_key[] = "digest";

/* ---- Numbers in bytes ---------------------------------------------------------------------- */

static uint64_t number_at(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static void put_number(unsigned char *bytes, uint64_t value, int count)
{
    for (int i = 0; i < count; i++) bytes[i] = (unsigned char)(value >> 8 * i);
}

/* A pattern of `count` bytes as the machine has it. */
static uint64_t pattern_at(const unsigned char *element, int count)
{
    uint8_t one;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (count) {
    case 1: return memcpy(&one, element, 1), one;
    case 2: return memcpy(&two, element, 2), two;
    case 4: return memcpy(&four, element, 4), four;
    default: return memcpy(&eight, element, 8), eight;
    }
}

/* Hands out an array's elements in little-endian pieces. */
typedef struct {
    const ng_stored *stored;
    int64_t next;
    unsigned char bytes[4096];
} pieces;

static size_t next_piece(pieces *p)
{
    const int width = kinds[p->stored->kind].bytes;
    const unsigned char *from = (const unsigned char *)p->stored->bytes + p->next * width;
    const int64_t left = p->stored->size - p->next, most = (int64_t)sizeof p->bytes / width;
    const int64_t count = left < most ? left : most;
    for (int64_t i = 0; i < count; i++)
        put_number(p->bytes + i * width, pattern_at(from + i * width, width), width);
    p->next += count;
    return (size_t)(count * width);
}

/* ---- The digest ---------------------------------------------------------------------------- */

/* Of the texts in the order of their keys, but for the digest's own. */
static uint64_t digest_of_texts(uint64_t hash, const ng_stored_text *texts, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (strcmp(texts[i].key, digest_key) == 0) continue;
        hash = ng_digest(hash, texts[i].key, strlen(texts[i].key) + 1);
        hash = ng_digest(hash, texts[i].text, strlen(texts[i].text) + 1);
    }
    return hash;
}

/* Of an array's name and dtype with their zero bytes, rank and dimensions as u64. */
static uint64_t digest_of_entry(uint64_t hash, const ng_stored *stored)
{
    unsigned char numbers[8 * (NG_MAX_RANK + 1)];
    hash = ng_digest(hash, stored->name, strlen(stored->name) + 1);
    hash = ng_digest(hash, kinds[stored->kind].name, strlen(kinds[stored->kind].name) + 1);
    put_number(numbers, (uint64_t)stored->shape.rank, 8);
    for (int i = 0; i < stored->shape.rank; i++)
        put_number(numbers + 8 * (i + 1), (uint64_t)stored->shape.dim[i], 8);
    return ng_digest(hash, numbers, 8 * (size_t)(stored->shape.rank + 1));
}

typedef struct {
    char text[24];
} digest_text;
static digest_text print_digest(uint64_t hash)
{
    digest_text printed;
    snprintf(printed.text, sizeof printed.text, "fnv1a:%016" PRIx64, hash);
    return printed;
}

/* ---- Order --------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const ng_stored *)a)->name, ((const ng_stored *)b)->name);
}

static int by_kind_and_name(const void *a, const void *b)
{
    const ng_stored *left = a, *right = b;
    return left->kind != right->kind ? (int)right->kind - (int)left->kind : by_name(a, b);
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const ng_stored_text *)a)->key, ((const ng_stored_text *)b)->key);
}

/* Where it stands in the file; of those without elements, which take no room, any order will do. */
static int by_place(const void *a, const void *b)
{
    const ng_stored *left = a, *right = b;
    if (left->bytes != right->bytes)
        return (const char *)left->bytes < (const char *)right->bytes ? -1 : 1;
    return (left->size > 0) - (right->size > 0);
}

static void sort(void *elements, int64_t count, size_t size,
                 int (*order)(const void *, const void *))
{
    if (count > 0) qsort(elements, (size_t)count, size, order);
}

/* ---- UTF-8 --------------------------------------------------------------------------------- */

/* Bytes of the character that begins at `at`; 0 where none does. No surrogates, nothing longer than
 * it need be, nothing beyond U+10FFFF. */
static int character_at(const unsigned char *at, const unsigned char *end)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (*at < 0x80) return 1;
    const int count = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
    if (*at < 0xc0 || *at > 0xf4 || end - at < count) return 0;
    uint32_t code = *at & (0x7fu >> count);
    for (int i = 1; i < count; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[count] || code > 0x10ffff || surrogate ? 0 : count;
}

bool ng_is_utf8(const char *text)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
    while (at < end) {
        const int count = character_at(at, end);
        if (count == 0) return false;
        at += count;
    }
    return true;
}

/* ---- Write --------------------------------------------------------------------------------- */

static ng_stored_kind kind_of(ng_dtype dtype)
{
    return dtype == NG_F32 ? NG_STORED_F32 : dtype == NG_F64 ? NG_STORED_F64 : NG_STORED_I64;
}

const char *ng_stored_kind_name(ng_stored_kind kind) { return kinds[kind].name; }

ng_stored ng_stored_of(const char *name, const ng_tensor *x)
{
    return (ng_stored){name, kind_of(x->dtype), x->shape, x->size, x->data};
}

static void print_string(ng_text *header, const char *text)
{
    static const char shorts[] = "\b\t\n\f\r\"\\", letters[] = "btnfr\"\\";
    ng_text_add(header, "\"", 1);
    for (const char *at = text; *at; at++) {
        const char *found = strchr(shorts, *at);
        if (found)
            ng_text_print(header, "\\%c", letters[found - shorts]);
        else if ((unsigned char)*at < 0x20)
            ng_text_print(header, "\\u%04x", (unsigned)*at);
        else
            ng_text_add(header, at, 1);
    }
    ng_text_add(header, "\"", 1);
}

static void print_text(ng_text *header, const char *key, const char *text)
{
    print_string(header, key);
    ng_text_add(header, ":", 1);
    print_string(header, text);
}

static void print_array(ng_text *header, const ng_stored *stored, int64_t *offset)
{
    const int64_t end = *offset + stored->size * kinds[stored->kind].bytes;
    ng_text_add(header, ",", 1);
    print_string(header, stored->name);
    ng_text_print(header, ":{\"dtype\":\"%s\",\"shape\":[", kinds[stored->kind].name);
    for (int i = 0; i < stored->shape.rank; i++)
        ng_text_print(header, "%s%lld", i ? "," : "", (long long)stored->shape.dim[i]);
    ng_text_print(header, "],\"data_offsets\":[%lld,%lld]}", (long long)*offset, (long long)end);
    *offset = end;
}

/* The length, then the header, which begins with the metadata. */
static ng_text header_of(const char *function, const ng_stored *arrays, int count,
                         const ng_stored_text *texts, int n_texts, uint64_t hash)
{
    ng_text header = {.function = function};
    ng_text_add(&header, "\0\0\0\0\0\0\0", 8);
    ng_text_print(&header, "{\"__metadata__\":{");
    print_text(&header, digest_key, print_digest(hash).text);
    for (int i = 0; i < n_texts; i++) {
        ng_text_add(&header, ",", 1);
        print_text(&header, texts[i].key, texts[i].text);
    }
    ng_text_add(&header, "}", 1);
    int64_t offset = 0;
    for (int i = 0; i < count; i++) print_array(&header, &arrays[i], &offset);
    ng_text_add(&header, "}", 1);
    while (!header.failed && header.count % 8) ng_text_add(&header, " ", 1);
    if (!header.failed) put_number((unsigned char *)header.bytes, (uint64_t)header.count - 8, 8);
    return header;
}

static uint64_t digest_arrays(const ng_stored *arrays, int count)
{
    uint64_t hash = NG_DIGEST_START;
    for (int i = 0; i < count; i++) {
        pieces p = {.stored = &arrays[i]};
        hash = digest_of_entry(hash, &arrays[i]);
        for (size_t bytes; (bytes = next_piece(&p)) > 0;) hash = ng_digest(hash, p.bytes, bytes);
    }
    return hash;
}

static ng_status check_names(const char *function, const ng_stored *arrays, int count)
{
    for (int i = 0; i < count; i++) {
        const char *name = arrays[i].name;
        if (!ng_is_utf8(name) || strcmp(name, "__metadata__") == 0)
            return ng_fail(NG_EVALUE, "%s: a tensor is named \"%s\", expected UTF-8 and not that",
                           function, name);
    }
    return NG_OK;
}

ng_status ng_safetensors_write(const char *function, const char *path, ng_stored *arrays, int count,
                               const ng_stored_text *texts, int n_texts)
{
    const ng_status checked = check_names(function, arrays, count);
    if (checked != NG_OK) return checked;
    sort(arrays, count, sizeof *arrays, by_name);
    for (int i = 1; i < count; i++)
        if (strcmp(arrays[i - 1].name, arrays[i].name) == 0)
            return ng_fail(NG_EVALUE, "%s: two tensors are named \"%s\"", function, arrays[i].name);
    sort(arrays, count, sizeof *arrays, by_kind_and_name);

    ng_replacement file;
    const ng_status begun = ng_replacement_begin(&file, function, path);
    if (begun != NG_OK) return begun;
    const uint64_t hash = digest_of_texts(digest_arrays(arrays, count), texts, n_texts);
    ng_text header = header_of(function, arrays, count, texts, n_texts, hash);
    if (!header.failed) ng_replacement_write(&file, header.bytes, (size_t)header.count);
    for (int i = 0; i < count && !header.failed; i++) {
        pieces p = {.stored = &arrays[i]};
        for (size_t bytes; (bytes = next_piece(&p)) > 0;)
            ng_replacement_write(&file, p.bytes, bytes);
    }
    const ng_status status = header.failed ? NG_ENOMEM : NG_OK;
    ng_free(header.bytes);
    return ng_replacement_end(&file, status);
}

/* ---- Parse --------------------------------------------------------------------------------- */

typedef struct {
    ng_safetensors *file;
    char *begin, *at, *end; /* of the header */
    const unsigned char *data;
    int64_t data_bytes;
} parser;

/* An error at the place where the header is read. */
static bool expected(const parser *p, const char *what)
{
    ng_fail(NG_EPARSE, "%s: %s: byte %lld of the header: expected %s", p->file->function,
            p->file->path, (long long)(p->at - p->begin), what);
    return false;
}

static bool malformed(const ng_safetensors *file, const char *name, const char *what)
{
    ng_fail(NG_EPARSE, "%s: %s: \"%s\" %s", file->function, file->path, name, what);
    return false;
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r'))
        p->at++;
}

static bool take(parser *p, char c)
{
    skip_blanks(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool take_sign(parser *p, char c)
{
    const char text[] = {'\'', c, '\'', '\0'};
    return take(p, c) || expected(p, text);
}

/* Four hexadecimal digits; -1 where there are none. */
static int32_t take_hex(parser *p)
{
    static const char digits[] = "0123456789abcdef";
    if (p->end - p->at < 4) return -1;
    int32_t code = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        const char c = (char)(*p->at >= 'A' && *p->at <= 'F' ? *p->at + 32 : *p->at);
        const char *found = c ? strchr(digits, c) : NULL;
        if (!found) return -1;
        code = code << 4 | (int32_t)(found - digits);
    }
    return code;
}

/* \uXXXX, of which two may be one character; it takes no more bytes in UTF-8. */
static bool take_unicode(parser *p, char **to)
{
    int32_t code = take_hex(p);
    if (code >= 0xd800 && code < 0xdc00) {
        if (p->end - p->at < 2 || p->at[0] != '\\' || p->at[1] != 'u')
            return expected(p, "the other half of a character");
        p->at += 2;
        const int32_t low = take_hex(p);
        if (low < 0xdc00 || low > 0xdfff) return expected(p, "the other half of a character");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code <= 0 || (code >= 0xdc00 && code < 0xe000)) {
        return expected(p, "a character's four digits");
    }
    const int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const int marks[] = {0, 0xc0, 0xe0, 0xf0};
    *(*to)++ = (char)(marks[more] | code >> 6 * more);
    for (int i = more - 1; i >= 0; i--) *(*to)++ = (char)(0x80 | (code >> 6 * i & 0x3f));
    return true;
}

static bool take_escape(parser *p, char **to)
{
    static const char letters[] = "btnfr\"\\/", values[] = "\b\t\n\f\r\"\\/";
    const char c = p->at < p->end ? *p->at : '\0';
    const char *found = c ? strchr(letters, c) : NULL;
    if (!found && c != 'u') return expected(p, "a character after '\\'");
    p->at++;
    if (!found) return take_unicode(p, to);
    *(*to)++ = values[found - letters];
    return true;
}

/* A string, decoded where it stands, and ended with a zero byte. */
static bool take_string(parser *p, const char **text)
{
    if (!take_sign(p, '"')) return false;
    char *to = p->at;
    *text = to;
    while (p->at < p->end && *p->at != '"') {
        const unsigned char c = (unsigned char)*p->at;
        if (c < 0x20) return expected(p, "no control character in a string");
        if (c == '\\') {
            p->at++;
            if (!take_escape(p, &to)) return false;
            continue;
        }
        const int count = character_at((unsigned char *)p->at, (unsigned char *)p->end);
        if (count == 0) return expected(p, "UTF-8");
        for (int i = 0; i < count; i++) *to++ = *p->at++;
    }
    if (p->at == p->end) return expected(p, "the end of a string");
    *to = '\0';
    p->at++;
    return true;
}

static bool take_count(parser *p, int64_t *value)
{
    skip_blanks(p);
    const char *first = p->at;
    *value = 0;
    for (; p->at < p->end && *p->at >= '0' && *p->at <= '9'; p->at++)
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, *p->at - '0', value))
            return expected(p, "a number below 2^63");
    if (p->at == first || (*first == '0' && p->at - first > 1))
        return expected(p, "a whole number");
    return true;
}

/* [n, n, ...] of at most `most` numbers. */
static bool take_counts(parser *p, int64_t *values, int most, int *count)
{
    *count = 0;
    if (!take_sign(p, '[')) return false;
    if (take(p, ']')) return true;
    do {
        if (*count == most) return expected(p, "fewer numbers");
        if (!take_count(p, &values[(*count)++])) return false;
    } while (take(p, ','));
    return take_sign(p, ']');
}

static bool take_kind(parser *p, ng_stored_kind *kind)
{
    const char *name;
    if (!take_string(p, &name)) return false;
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0) return *kind = (ng_stored_kind)i, true;
    ng_fail(NG_EPARSE, "%s: %s: dtype \"%.20s\", expected one from BOOL to F64", p->file->function,
            p->file->path, name);
    return false;
}

/* One of "dtype", "shape" and "data_offsets", which may come in any order, each once. */
static bool take_member(parser *p, ng_stored *stored, int64_t offsets[2], bool given[3])
{
    static const char *const members[] = {"dtype", "shape", "data_offsets"};
    const char *key;
    if (!take_string(p, &key)) return false;
    int which = 0, count;
    while (which < 3 && strcmp(key, members[which]) != 0) which++;
    if (which == 3 || given[which])
        return expected(p, "each of dtype, shape and data_offsets once");
    given[which] = true;
    if (!take_sign(p, ':')) return false;
    if (which == 0) return take_kind(p, &stored->kind);
    if (which == 1) return take_counts(p, stored->shape.dim, NG_MAX_RANK, &stored->shape.rank);
    return take_counts(p, offsets, 2, &count) && (count == 2 || expected(p, "two offsets"));
}

/* The elements that a shape promises stand between the offsets, within the data. */
static bool place(const parser *p, ng_stored *stored, const int64_t offsets[2])
{
    int64_t bytes = kinds[stored->kind].bytes;
    bool fits = true, empty = false;
    for (int i = 0; i < stored->shape.rank; i++) empty = empty || stored->shape.dim[i] == 0;
    for (int i = 0; i < stored->shape.rank && !empty; i++)
        fits = fits && !__builtin_mul_overflow(bytes, stored->shape.dim[i], &bytes);
    if (empty) bytes = 0;
    if (offsets[0] > offsets[1] || offsets[1] > p->data_bytes)
        return malformed(p->file, stored->name, "stands outside of the file");
    if (!fits || offsets[1] - offsets[0] != bytes)
        return malformed(p->file, stored->name, "has other bytes than its shape asks for");
    stored->size = bytes / kinds[stored->kind].bytes;
    stored->bytes = p->data + offsets[0];
    return true;
}

static bool reserve(const ng_safetensors *file, void **array, int64_t count, int64_t *room,
                    size_t size)
{
    if (count < *room) return true;
    const int64_t more = *room ? 2 * *room : 16;
    void *grown = ng_grow(file->function, *array, count, more, size);
    if (!grown) return false;
    *array = grown;
    *room = more;
    return true;
}

static bool take_array(parser *p, const char *name)
{
    ng_safetensors *file = p->file;
    ng_stored stored = {.name = name};
    int64_t offsets[2] = {0, 0};
    bool given[3] = {false, false, false};
    if (!take_sign(p, '{')) return false;
    do {
        if (!take_member(p, &stored, offsets, given)) return false;
    } while (take(p, ','));
    if (!take_sign(p, '}')) return false;
    if (!given[0] || !given[1] || !given[2])
        return malformed(file, name, "lacks dtype, shape or data_offsets");
    void *arrays = file->arrays;
    if (!place(p, &stored, offsets) ||
        !reserve(file, &arrays, file->count, &file->room, sizeof stored))
        return false;
    file->arrays = arrays;
    file->arrays[file->count++] = stored;
    return true;
}

static bool take_texts(parser *p)
{
    ng_safetensors *file = p->file;
    if (!take_sign(p, '{')) return false;
    if (take(p, '}')) return true;
    do {
        ng_stored_text pair;
        if (!take_string(p, &pair.key) || !take_sign(p, ':') || !take_string(p, &pair.text))
            return false;
        void *texts = file->texts;
        if (!reserve(file, &texts, file->n_texts, &file->texts_room, sizeof pair)) return false;
        file->texts = texts;
        file->texts[file->n_texts++] = pair;
    } while (take(p, ','));
    return take_sign(p, '}');
}

static bool take_header(parser *p)
{
    bool described = false;
    if (p->at == p->end || *p->at != '{') return expected(p, "'{'");
    p->at++;
    if (!take(p, '}')) {
        do {
            const char *name;
            if (!take_string(p, &name) || !take_sign(p, ':')) return false;
            const bool about = strcmp(name, "__metadata__") == 0;
            if (about && described) return expected(p, "one __metadata__");
            described = described || about;
            if (!(about ? take_texts(p) : take_array(p, name))) return false;
        } while (take(p, ','));
        if (!take_sign(p, '}')) return false;
    }
    skip_blanks(p);
    return p->at == p->end || expected(p, "nothing after the last '}'");
}

/* ---- Read ---------------------------------------------------------------------------------- */

/* Whether the arrays, in the order of their places, fill the data. */
static bool is_gapless(const parser *p)
{
    const ng_safetensors *file = p->file;
    const unsigned char *next = p->data;
    for (int64_t i = 0; i < file->count; i++) {
        const ng_stored *stored = &file->arrays[i];
        if (stored->bytes != next)
            return malformed(file, stored->name, "does not begin where another one ends");
        next += stored->size * kinds[stored->kind].bytes;
    }
    if (next == p->data + p->data_bytes) return true;
    ng_fail(NG_EPARSE, "%s: %s: %lld bytes after the last tensor", file->function, file->path,
            (long long)(p->data + p->data_bytes - next));
    return false;
}

/* In the order in which the file was written, if it is as we write it: by dtype and name. */
static bool digest_holds(ng_safetensors *file, bool verify)
{
    const char *promised = ng_safetensors_text(file, digest_key);
    const bool ours = promised && strncmp(promised, "fnv1a:", 6) == 0;
    if (!ours && !verify) return true;
    if (!ours) {
        ng_fail(NG_EPARSE, "%s: %s: there is no digest to verify it by", file->function,
                file->path);
        return false;
    }
    sort(file->arrays, file->count, sizeof *file->arrays, by_kind_and_name);
    uint64_t hash = NG_DIGEST_START;
    for (int64_t i = 0; i < file->count; i++) {
        const ng_stored *stored = &file->arrays[i];
        hash = digest_of_entry(hash, stored);
        hash = ng_digest(hash, stored->bytes, (size_t)(stored->size * kinds[stored->kind].bytes));
    }
    hash = digest_of_texts(hash, file->texts, file->n_texts);
    if (NG_CHECKSUM_HOLDS(strcmp(promised, print_digest(hash).text) == 0)) return true;
    ng_fail(NG_EPARSE, "%s: %s: damaged or changed: the digest is %s, expected %.22s",
            file->function, file->path, print_digest(hash).text, promised);
    return false;
}

bool ng_safetensors_sort(ng_safetensors *file)
{
    sort(file->arrays, file->count, sizeof *file->arrays, by_name);
    for (int64_t i = 1; i < file->count; i++)
        if (strcmp(file->arrays[i - 1].name, file->arrays[i].name) == 0) {
            ng_fail(NG_EVALUE, "%s: %s: two tensors are named \"%s\"", file->function, file->path,
                    file->arrays[i].name);
            return false;
        }
    return true;
}

/* Whether no name and no key stands twice; puts them into order. */
static bool names_differ(ng_safetensors *file)
{
    sort(file->arrays, file->count, sizeof *file->arrays, by_name);
    sort(file->texts, file->n_texts, sizeof *file->texts, by_key);
    for (int64_t i = 1; i < file->count; i++)
        if (strcmp(file->arrays[i - 1].name, file->arrays[i].name) == 0)
            return malformed(file, file->arrays[i].name, "stands in it twice");
    for (int64_t i = 1; i < file->n_texts; i++)
        if (strcmp(file->texts[i - 1].key, file->texts[i].key) == 0)
            return malformed(file, file->texts[i].key, "stands in the metadata twice");
    return true;
}

static bool parse(ng_safetensors *file, int64_t size, bool verify)
{
    const uint64_t length =
        size < 8 ? UINT64_MAX : number_at((const unsigned char *)file->content, 8);
    if (length > HEADER_MOST || (int64_t)length > size - 8) {
        ng_fail(NG_EPARSE, "%s: %s: not in the safetensors format, or cut short", file->function,
                file->path);
        return false;
    }
    char *header = file->content + 8;
    parser p = {.file = file,
                .begin = header,
                .at = header,
                .end = header + length,
                .data = (const unsigned char *)header + length,
                .data_bytes = size - 8 - (int64_t)length};
    if (!take_header(&p)) return false;
    sort(file->arrays, file->count, sizeof *file->arrays, by_place);
    return is_gapless(&p) && names_differ(file) && digest_holds(file, verify) &&
           ng_safetensors_sort(file);
}

bool ng_safetensors_open(ng_safetensors *file, const char *function, const char *path, bool verify)
{
    int64_t size = 0;
    *file = (ng_safetensors){.function = function, .path = path};
    file->content = ng_file_read(function, path, &size);
    return file->content && parse(file, size, verify);
}

void ng_safetensors_close(ng_safetensors *file)
{
    ng_free(file->arrays);
    ng_free(file->texts);
    ng_free(file->content);
}

const ng_stored *ng_safetensors_find(const ng_safetensors *file, const char *name)
{
    const ng_stored wanted = {.name = name};
    if (file->count == 0) return NULL;
    return bsearch(&wanted, file->arrays, (size_t)file->count, sizeof wanted, by_name);
}

const char *ng_safetensors_text(const ng_safetensors *file, const char *key)
{
    const ng_stored_text wanted = {.key = key};
    if (file->n_texts == 0) return NULL;
    const ng_stored_text *found =
        bsearch(&wanted, file->texts, (size_t)file->n_texts, sizeof wanted, by_key);
    return found ? found->text : NULL;
}

/* ---- Elements ------------------------------------------------------------------------------ */

static bool is_floating(ng_stored_kind kind)
{
    return kind == NG_STORED_F16 || kind == NG_STORED_BF16 || kind == NG_STORED_F32 ||
           kind == NG_STORED_F64;
}

static double from_float_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* sign, 5 bits of exponent from -15, 10 bits of fraction */
static double from_half_bits(uint32_t bits)
{
    const int exponent = (int)(bits >> 10 & 0x1f), fraction = (int)(bits & 0x3ff);
    double value = exponent == 0 ? ldexp(fraction, -24) : ldexp(fraction + 1024, exponent - 25);
    if (exponent == 31) value = fraction ? (double)NAN : (double)INFINITY;
    return bits >> 15 ? -value : value;
}

static double floating_at(const ng_stored *stored, int64_t i)
{
    const int width = kinds[stored->kind].bytes;
    const uint64_t bits = number_at((const unsigned char *)stored->bytes + i * width, width);
    double value;
    switch (stored->kind) {
    case NG_STORED_F16: return from_half_bits((uint32_t)bits);
    case NG_STORED_BF16: return from_float_bits((uint32_t)bits << 16);
    case NG_STORED_F32: return from_float_bits((uint32_t)bits);
    default: memcpy(&value, &bits, sizeof value); return value;
    }
}

/* False where it is beyond int64. */
static bool whole_at(const ng_stored *stored, int64_t i, int64_t *value)
{
    const int width = kinds[stored->kind].bytes;
    const uint64_t bits = number_at((const unsigned char *)stored->bytes + i * width, width);
    switch (stored->kind) {
    case NG_STORED_I8: *value = (int8_t)bits; break;
    case NG_STORED_I16: *value = (int16_t)bits; break;
    case NG_STORED_I32: *value = (int32_t)bits; break;
    default: *value = (int64_t)bits; break;
    }
    return stored->kind != NG_STORED_U64 || bits <= INT64_MAX;
}

static bool element_fits(const ng_stored *stored, int64_t i, ng_dtype dtype)
{
    if (is_floating(stored->kind)) {
        const double value = floating_at(stored, i);
        if (dtype == NG_I64) return value == floor(value) && fabs(value) <= 0x1p53;
        return dtype == NG_F64 || !isfinite(value) || isfinite((float)value);
    }
    int64_t value;
    if (!whole_at(stored, i, &value)) return false;
    const double wide = (double)value;
    if (dtype == NG_I64) return true;
    if (wide >= 0x1p63 || (int64_t)wide != value) return false;
    return dtype == NG_F64 || (double)(float)wide == wide;
}

bool ng_stored_fits(const ng_safetensors *file, const ng_stored *stored, const ng_tensor *x)
{
    for (int64_t i = 0; i < stored->size; i++)
        if (!element_fits(stored, i, x->dtype)) {
            ng_fail(NG_EVALUE, "%s: %s: \"%s\" (%s) has at index %lld what no %s holds",
                    file->function, file->path, stored->name, kinds[stored->kind].name,
                    (long long)i, ng_dtype_name(x->dtype));
            return false;
        }
    return true;
}

/* The same dtype keeps its bits; another one is converted. */
static void load_element(const ng_stored *stored, int64_t i, ng_tensor *x)
{
    const unsigned char *at = stored->bytes;
    int64_t value = 0;
    if (stored->kind == NG_STORED_F32 && x->dtype == NG_F32) {
        const uint32_t bits = (uint32_t)number_at(at + 4 * i, 4);
        memcpy((float *)x->data + i, &bits, sizeof bits);
    } else if (stored->kind == NG_STORED_F64 && x->dtype == NG_F64) {
        const uint64_t bits = number_at(at + 8 * i, 8);
        memcpy((double *)x->data + i, &bits, sizeof bits);
    } else if (is_floating(stored->kind)) {
        ng_tensor_store(x, i, floating_at(stored, i));
    } else if (whole_at(stored, i, &value) && x->dtype == NG_I64) {
        ((int64_t *)x->data)[i] = value;
    } else {
        ng_tensor_store(x, i, (double)value);
    }
}

void ng_stored_load(const ng_stored *stored, ng_tensor *x)
{
    for (int64_t i = 0; i < stored->size; i++) load_element(stored, i, x);
    ng_touch(x);
}

void ng_stored_copy(const ng_stored *stored, void *to)
{
    const int width = kinds[stored->kind].bytes;
    const unsigned char *from = stored->bytes;
    unsigned char *at = to;
    for (int64_t i = 0; i < stored->size; i++, from += width, at += width) {
        const uint64_t bits = number_at(from, width);
        const uint8_t one = (uint8_t)bits;
        const uint16_t two = (uint16_t)bits;
        const uint32_t four = (uint32_t)bits;
        switch (width) {
        case 1: memcpy(at, &one, 1); break;
        case 2: memcpy(at, &two, 2); break;
        case 4: memcpy(at, &four, 4); break;
        default: memcpy(at, &bits, 8); break;
        }
    }
}
