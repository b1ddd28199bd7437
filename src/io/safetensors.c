/* Files in the safetensors format, written and read. */
#include "io/safetensors.h"
#include "io/json.h"
#include "nn/module.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEADER_MOST 100000000 /* bytes of a header, as in Python's package */

static const char digest_key[] = "digest";

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

static void sort_arrays(ng_stored *arrays, int64_t count, int (*order)(const void *, const void *))
{
    if (count > 0) qsort(arrays, (size_t)count, sizeof *arrays, order);
}

/* The first array with the name of the one before it, or NULL; sorts them by name. */
static const ng_stored *named_twice(ng_stored *arrays, int64_t count)
{
    sort_arrays(arrays, count, by_name);
    for (int64_t i = 1; i < count; i++)
        if (strcmp(arrays[i - 1].name, arrays[i].name) == 0) return &arrays[i];
    return NULL;
}

/* ---- The digest ---------------------------------------------------------------------------- */

static int64_t stored_bytes(const ng_stored *stored)
{
    return stored->size * ng_stored_width(stored->kind);
}

static void digest_piece(void *digest, const void *bytes, int64_t count)
{
    uint64_t *const hash = digest;
    *hash = ng_digest(*hash, bytes, (size_t)count);
}

static void digest_text(uint64_t *digest, const char *text)
{
    digest_piece(digest, text, (int64_t)strlen(text) + 1);
}

static void digest_number(uint64_t *digest, int64_t number)
{
    ng_little_endian(&number, 1, sizeof number);
    digest_piece(digest, &number, sizeof number);
}

typedef struct {
    char text[24];
} digest_string;

/* The digest of a file's arrays, in the order of their dtypes and names, and of its texts. */
static digest_string digest_of_all(const ng_stored *arrays, int64_t count,
                                   const ng_stored_text *texts, int64_t n_texts)
{
    uint64_t digest = NG_DIGEST_START;
    for (int64_t i = 0; i < count; i++) {
        digest_text(&digest, arrays[i].name);
        digest_text(&digest, ng_stored_name(arrays[i].kind));
        digest_number(&digest, arrays[i].shape.rank);
        for (int k = 0; k < arrays[i].shape.rank; k++)
            digest_number(&digest, arrays[i].shape.dim[k]);
        ng_stored_pieces(&arrays[i], digest_piece, &digest);
    }
    for (int64_t i = 0; i < n_texts; i++) {
        if (strcmp(texts[i].key, digest_key) == 0) continue;
        digest_text(&digest, texts[i].key);
        digest_text(&digest, texts[i].text);
    }
    digest_string printed;
    snprintf(printed.text, sizeof printed.text, "fnv1a:%016" PRIx64, digest);
    return printed;
}

/* ---- Write --------------------------------------------------------------------------------- */

static void print_member(ng_text *header, const char *key, const char *text)
{
    ng_json_print_string(header, key);
    ng_text_add(header, ":", 1);
    ng_json_print_string(header, text);
}

static void print_array(ng_text *header, const ng_stored *stored, int64_t *offset)
{
    const int64_t end = *offset + stored_bytes(stored);
    ng_text_add(header, ",", 1);
    ng_json_print_string(header, stored->name);
    ng_text_print(header, ":{\"dtype\":\"%s\",\"shape\":[", ng_stored_name(stored->kind));
    for (int i = 0; i < stored->shape.rank; i++)
        ng_text_print(header, "%s%lld", i ? "," : "", (long long)stored->shape.dim[i]);
    ng_text_print(header, "],\"data_offsets\":[%lld,%lld]}", (long long)*offset, (long long)end);
    *offset = end;
}

static void print_header(ng_text *header, const ng_stored *arrays, int count,
                         const ng_stored_text *texts, int n_texts)
{
    ng_text_add(header, "{\"__metadata__\":{", 17);
    print_member(header, digest_key, digest_of_all(arrays, count, texts, n_texts).text);
    for (int i = 0; i < n_texts; i++) {
        ng_text_add(header, ",", 1);
        print_member(header, texts[i].key, texts[i].text);
    }
    ng_text_add(header, "}", 1);
    int64_t offset = 0;
    for (int i = 0; i < count; i++) print_array(header, &arrays[i], &offset);
    ng_text_add(header, "}", 1);
    while (!header->failed && header->count % 8) ng_text_add(header, " ", 1);
}

ng_status ng_safetensors_write(const char *function, const char *path, ng_stored *arrays, int count,
                               const ng_stored_text *texts, int n_texts)
{
    for (int i = 0; i < count; i++)
        if (!ng_is_utf8(arrays[i].name) || strcmp(arrays[i].name, "__metadata__") == 0)
            return ng_fail(NG_EVALUE, "%s: a tensor is named \"%s\", expected UTF-8 and not that",
                           function, arrays[i].name);
    const ng_stored *twice = named_twice(arrays, count);
    if (twice) return ng_fail(NG_EVALUE, "%s: two tensors are named \"%s\"", function, twice->name);
    sort_arrays(arrays, count, by_kind_and_name);

    ng_text header = {.function = function}, length = header;
    print_header(&header, arrays, count, texts, n_texts);
    ng_text_number(&length, (uint64_t)header.count, 8);
    ng_replacement file;
    ng_status status = NG_ENOMEM;
    if (header.count > HEADER_MOST)
        status = ng_fail(NG_EVALUE, "%s: %s: names and texts of %lld bytes, expected at most %d",
                         function, path, (long long)header.count, HEADER_MOST);
    else if (!header.failed && !length.failed)
        status = ng_replacement_begin(&file, function, path);
    if (status == NG_OK) {
        ng_replacement_write(&file, length.bytes, length.count);
        ng_replacement_write(&file, header.bytes, header.count);
        for (int i = 0; i < count; i++) ng_stored_write(&arrays[i], &file);
        status = ng_replacement_end(&file, NG_OK);
    }
    ng_free(length.bytes);
    ng_free(header.bytes);
    return status;
}

/* ---- The header ---------------------------------------------------------------------------- */

/* What the header says of one array. */
typedef struct {
    ng_stored stored;
    int64_t offsets[2];
    bool given[3];
} described;

/* A file while its header is read. */
typedef struct {
    ng_safetensors *file;
    unsigned char *data;
    int64_t data_bytes;
    bool has_metadata;
} reading;

/* [n, n, ...] of at most `most` numbers. */
static bool parse_counts(ng_json *json, int64_t *values, int most, int *count)
{
    *count = 0;
    if (!ng_json_need(json, '[')) return false;
    if (ng_json_take(json, ']')) return true;
    do {
        if (*count == most) return ng_json_expected(json, "fewer numbers");
        if (!ng_json_count(json, &values[(*count)++])) return false;
    } while (ng_json_take(json, ','));
    return ng_json_need(json, ']');
}

static bool parse_property(ng_json *json, const char *key, void *data)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    described *array = data;
    ng_stored *stored = &array->stored;
    int which = 0, count;
    while (which < 3 && strcmp(key, keys[which]) != 0) which++;
    if (which == 3 || array->given[which])
        return ng_json_expected(json, "each of dtype, shape and data_offsets once");
    array->given[which] = true;
    if (which == 1) return parse_counts(json, stored->shape.dim, NG_MAX_RANK, &stored->shape.rank);
    if (which == 2)
        return parse_counts(json, array->offsets, 2, &count) &&
               (count == 2 || ng_json_expected(json, "two offsets"));
    if (!ng_json_string(json, &stored->dtype)) return false;
    for (int i = NG_STORED_BOOL; i < NG_STORED_KINDS; i++)
        if (strcmp(ng_stored_name((ng_stored_kind)i), stored->dtype) == 0)
            stored->kind = (ng_stored_kind)i;
    return true;
}

/* Whether the offsets hold as many bytes as the shape asks for. Nobody knows how many those are of
 * a dtype that is not read. */
static bool place_array(const reading *r, described *array)
{
    ng_stored *stored = &array->stored;
    const int64_t bytes = array->offsets[1] - array->offsets[0];
    if (array->offsets[0] > array->offsets[1] || array->offsets[1] > r->data_bytes)
        return ng_refuse(r->file->origin, NG_EPARSE, "\"%s\" stands outside of the file",
                         stored->name);
    if (stored->kind != NG_STORED_OTHER && bytes != ng_stored_bytes(stored->kind, stored->shape))
        return ng_refuse(r->file->origin, NG_EPARSE,
                         "\"%s\" has other bytes than its shape asks for", stored->name);
    stored->size = bytes / ng_stored_width(stored->kind);
    stored->bytes = r->data + array->offsets[0];
    return true;
}

static bool parse_text(ng_json *json, const char *key, void *data)
{
    ng_safetensors *file = ((reading *)data)->file;
    const char *text;
    if (!ng_json_string(json, &text) ||
        !NG_RESERVE(json->origin.function, file->texts, file->n_texts, file->texts_room))
        return false;
    file->texts[file->n_texts++] = (ng_stored_text){key, text};
    return true;
}

static bool parse_entry(ng_json *json, const char *key, void *data)
{
    reading *r = data;
    ng_safetensors *file = r->file;
    if (strcmp(key, "__metadata__") == 0) {
        if (r->has_metadata) return ng_json_expected(json, "one __metadata__");
        r->has_metadata = true;
        return ng_json_object(json, parse_text, r);
    }
    described array = {.stored = {.name = key}};
    if (!ng_json_object(json, parse_property, &array)) return false;
    if (!array.given[0] || !array.given[1] || !array.given[2])
        return ng_refuse(file->origin, NG_EPARSE, "\"%s\" lacks dtype, shape or data_offsets", key);
    if (!place_array(r, &array) ||
        !NG_RESERVE(file->origin.function, file->arrays, file->count, file->room))
        return false;
    file->arrays[file->count++] = array.stored;
    return true;
}

/* ---- Read ---------------------------------------------------------------------------------- */

static bool texts_differ(ng_safetensors *file)
{
    if (file->n_texts > 0) qsort(file->texts, (size_t)file->n_texts, sizeof *file->texts, by_key);
    for (int64_t i = 1; i < file->n_texts; i++)
        if (strcmp(file->texts[i - 1].key, file->texts[i].key) == 0)
            return ng_refuse(file->origin, NG_EPARSE, "\"%s\" stands in the metadata twice",
                             file->texts[i].key);
    return true;
}

static bool digest_holds(ng_safetensors *file, bool verify)
{
    const char *promised = ng_safetensors_text(file, digest_key);
    if (!promised || strncmp(promised, "fnv1a:", 6) != 0)
        return !verify || ng_refuse(file->origin, NG_EPARSE, "there is no digest to verify it by");
    sort_arrays(file->arrays, file->count, by_kind_and_name);
    const digest_string own = digest_of_all(file->arrays, file->count, file->texts, file->n_texts);
    if (NG_CHECKSUM_HOLDS(strcmp(promised, own.text) == 0)) return true;
    return ng_refuse(file->origin, NG_EPARSE,
                     "damaged or changed: the digest is %s, expected %.22s", own.text, promised);
}

static bool parse_file(ng_safetensors *file, int64_t size, bool verify)
{
    uint64_t length = UINT64_MAX;
    if (size >= 8) memcpy(&length, file->content, 8);
    ng_little_endian(&length, 1, 8);
    if (length > HEADER_MOST || (int64_t)length > size - 8 || file->content[8] != '{')
        return ng_refuse(file->origin, NG_EPARSE, "not a safetensors file, or cut short");
    char *header = file->content + 8, *end = header + length;
    ng_json json = {file->origin, header, header, end};
    reading r = {
        .file = file, .data = (unsigned char *)end, .data_bytes = size - 8 - (int64_t)length};
    if (!ng_json_object(&json, parse_entry, &r)) return false;
    ng_json_skip_blanks(&json);
    if (json.at != json.end) return ng_json_expected(&json, "nothing after the last '}'");
    if (!texts_differ(file)) return false;
    for (int64_t i = 0; i < file->count; i++)
        ng_little_endian(file->arrays[i].bytes, file->arrays[i].size,
                         ng_stored_width(file->arrays[i].kind));
    const ng_stored *twice = named_twice(file->arrays, file->count);
    if (twice) return ng_refuse(file->origin, NG_EPARSE, "\"%s\" stands in it twice", twice->name);
    return digest_holds(file, verify) && ng_safetensors_sort(file);
}

bool ng_safetensors_open(ng_safetensors *file, const char *function, const char *path, bool verify)
{
    int64_t size = 0;
    *file = (ng_safetensors){.origin = {function, path}};
    file->content = ng_file_read(function, path, &size);
    return file->content && parse_file(file, size, verify);
}

void ng_safetensors_close(ng_safetensors *file)
{
    for (int64_t i = 0; i < file->count; i++) ng_free(file->arrays[i].renamed);
    ng_free(file->arrays);
    ng_free(file->texts);
    ng_free(file->content);
}

bool ng_safetensors_sort(ng_safetensors *file)
{
    const ng_stored *twice = named_twice(file->arrays, file->count);
    return !twice ||
           ng_refuse(file->origin, NG_EVALUE, "two tensors are named \"%s\"", twice->name);
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
