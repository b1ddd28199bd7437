/* Files in the safetensors format, written and read. */
#include "io/safetensors.h"
#include "io/json.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char digest_key[] = "digest";

static int by_kind_and_name(const void *a, const void *b)
{
    const ng_stored *left = a, *right = b;
    if (left->kind != right->kind) return (int)right->kind - (int)left->kind;
    return strcmp(left->name, right->name);
}

static void sort_arrays(ng_stored_list *list)
{
    if (list->count > 0)
        qsort(list->arrays, (size_t)list->count, sizeof *list->arrays, by_kind_and_name);
}

/* ---- The digest ---------------------------------------------------------------------------- */

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

/* Returns the digest of sorted arrays and of texts. */
static digest_string digest_of_all(const ng_stored_list *list, const ng_stored_text *texts,
                                   int64_t n_texts)
{
    uint64_t digest = NG_DIGEST_START;
    for (int64_t i = 0; i < list->count; i++) {
        const ng_stored *array = &list->arrays[i];
        digest_text(&digest, array->name);
        digest_text(&digest, ng_stored_name(array->kind));
        digest_number(&digest, array->shape.rank);
        for (int k = 0; k < array->shape.rank; k++) digest_number(&digest, array->shape.dim[k]);
        ng_stored_pieces(array, digest_piece, &digest);
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
    const int64_t end = *offset + stored->size * ng_stored_width(stored->kind);
    ng_text_add(header, ",", 1);
    ng_json_print_string(header, stored->name);
    ng_text_print(header, ":{\"dtype\":\"%s\",\"shape\":[", ng_stored_name(stored->kind));
    for (int i = 0; i < stored->shape.rank; i++)
        ng_text_print(header, "%s%lld", i ? "," : "", (long long)stored->shape.dim[i]);
    ng_text_print(header, "],\"data_offsets\":[%lld,%lld]}", (long long)*offset, (long long)end);
    *offset = end;
}

static void print_header(ng_text *header, const ng_stored_list *list, const ng_stored_text *texts,
                         int n_texts)
{
    int64_t offset = 0;
    ng_text_print(header, "{\"__metadata__\":{");
    print_member(header, digest_key, digest_of_all(list, texts, n_texts).text);
    for (int i = 0; i < n_texts; i++) {
        ng_text_add(header, ",", 1);
        print_member(header, texts[i].key, texts[i].text);
    }
    ng_text_add(header, "}", 1);
    for (int64_t i = 0; i < list->count; i++) print_array(header, &list->arrays[i], &offset);
    ng_text_add(header, "}", 1);
    while (!header->failed && header->count % 8) ng_text_add(header, " ", 1);
}

ng_status ng_safetensors_write(const char *function, const char *path, ng_stored_list *list,
                               const ng_stored_text *texts, int n_texts)
{
    for (int64_t i = 0; i < list->count; i++) {
        const char *name = list->arrays[i].name;
        if (!ng_is_utf8(name) || strcmp(name, "__metadata__") == 0)
            return ng_fail(NG_EVALUE, "%s: a tensor is named \"%s\", expected UTF-8 and not that",
                           function, name);
    }
    sort_arrays(list);

    ng_text header = {.function = function};
    print_header(&header, list, texts, n_texts);
    int64_t length = header.count;
    ng_little_endian(&length, 1, 8);
    ng_replacement file;
    ng_replacement_begin(&file, function, path);
    ng_replacement_write(&file, &length, 8);
    ng_replacement_text(&file, &header);
    for (int64_t i = 0; i < list->count; i++) ng_stored_write(&list->arrays[i], &file);
    return ng_replacement_end(&file);
}

/* ---- The header ---------------------------------------------------------------------------- */

/* What the header says of one array. */
typedef struct {
    ng_stored stored;
    int64_t offsets[2];
    int n_offsets;
} described;

/* A file while its header is read. */
typedef struct {
    ng_safetensors *file;
    char *data;
    int64_t data_bytes;
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
    described *array = data;
    ng_shape *shape = &array->stored.shape;
    if (strcmp(key, "dtype") == 0) return ng_json_string(json, &array->stored.dtype);
    if (strcmp(key, "shape") == 0) return parse_counts(json, shape->dim, NG_MAX_RANK, &shape->rank);
    if (strcmp(key, "data_offsets") == 0)
        return parse_counts(json, array->offsets, 2, &array->n_offsets);
    return ng_json_expected(json, "dtype, shape or data_offsets");
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

static int by_offset(const void *a, const void *b)
{
    const ng_stored *left = a, *right = b;
    if (left->bytes != right->bytes) return (char *)left->bytes < (char *)right->bytes ? -1 : 1;
    return left->size == 0 ? -1 : right->size == 0;
}

/* Whether the arrays follow each other without overlap and holes up to the end of the file. */
static bool data_filled(const reading *r)
{
    const ng_stored_list *list = &r->file->list;
    const char *next = r->data, *end = r->data + r->data_bytes;
    if (list->count > 0) qsort(list->arrays, (size_t)list->count, sizeof *list->arrays, by_offset);
    for (int64_t i = 0; i < list->count; i++) {
        const ng_stored *array = &list->arrays[i];
        if (array->bytes != next)
            return ng_refuse(r->file->origin, NG_EPARSE,
                             "\"%s\" does not begin where the array before it ends", array->name);
        next += array->size * ng_stored_width(array->kind);
    }
    return next == end || ng_refuse(r->file->origin, NG_EPARSE, "%lld bytes that no array has",
                                    (long long)(end - next));
}

/* Reads an array's entry. Its offsets must hold the bytes that its shape needs, which is unknown
 * for a dtype that is not read. */
static bool parse_entry(ng_json *json, const char *key, void *data)
{
    const reading *r = data;
    if (strcmp(key, "__metadata__") == 0) return ng_json_object(json, parse_text, data);
    described array = {.stored.shape.rank = -1};
    ng_stored *stored = &array.stored;
    if (!ng_json_object(json, parse_property, &array)) return false;
    if (!stored->dtype || stored->shape.rank < 0 || array.n_offsets != 2)
        return ng_refuse(json->origin, NG_EPARSE, "\"%s\" lacks dtype, shape or data_offsets", key);
    const int64_t begin = array.offsets[0], bytes = array.offsets[1] - begin;
    if (bytes < 0 || array.offsets[1] > r->data_bytes)
        return ng_refuse(json->origin, NG_EPARSE, "\"%s\" stands outside of the file", key);
    stored->kind = ng_stored_kind_named(stored->dtype);
    if (stored->kind != NG_STORED_OTHER && bytes != ng_stored_bytes(stored->kind, stored->shape))
        return ng_refuse(json->origin, NG_EPARSE, "\"%s\" has %lld bytes, which is not its shape's",
                         key, (long long)bytes);
    stored->size = bytes / ng_stored_width(stored->kind);
    stored->bytes = r->data + begin;
    ng_little_endian(stored->bytes, stored->size, ng_stored_width(stored->kind));
    return ng_stored_add(json->origin.function, &r->file->list, "", key, *stored);
}

/* ---- Read ---------------------------------------------------------------------------------- */

static bool digest_holds(ng_safetensors *file, bool verify)
{
    const char *promised = ng_safetensors_text(file, digest_key);
    if (!promised || strncmp(promised, "fnv1a:", 6) != 0)
        return !verify || ng_refuse(file->origin, NG_EPARSE, "there is no digest to verify it by");
    sort_arrays(&file->list);
    const digest_string own = digest_of_all(&file->list, file->texts, file->n_texts);
    if (NG_CHECKSUM_HOLDS(strcmp(promised, own.text) == 0)) return true;
    return ng_refuse(file->origin, NG_EPARSE,
                     "damaged or changed: the digest is %s, expected %.22s", own.text, promised);
}

bool ng_safetensors_open(ng_safetensors *file, const char *function, const char *path, bool verify)
{
    int64_t size = 0;
    uint64_t length = 0;
    *file = (ng_safetensors){.origin = {function, path}};
    file->content = ng_file_read(function, path, &size);
    if (!file->content) return false;
    if (size >= 8) memcpy(&length, file->content, 8);
    ng_little_endian(&length, 1, 8);
    if (size < 8 || length > (uint64_t)(size - 8))
        return ng_refuse(file->origin, NG_EPARSE, "not a safetensors file, or cut short");
    char *header = file->content + 8, *end = header + length;
    ng_json json = {file->origin, header, header, end};
    reading r = {.file = file, .data = end, .data_bytes = size - 8 - (int64_t)length};
    return ng_json_object(&json, parse_entry, &r) && ng_json_end(&json) && data_filled(&r) &&
           digest_holds(file, verify);
}

void ng_safetensors_close(ng_safetensors *file)
{
    ng_stored_free(&file->list);
    ng_free(file->texts);
    ng_free(file->content);
}

const char *ng_safetensors_text(const ng_safetensors *file, const char *key)
{
    for (int64_t i = 0; i < file->n_texts; i++)
        if (strcmp(file->texts[i].key, key) == 0) return file->texts[i].text;
    return NULL;
}

/* ---- What a program has and a file has ----------------------------------------------------- */

bool ng_stored_add_module(const char *function, ng_stored_list *list, const char *prefix,
                          const ng_module *module)
{
    static const ng_entry_kind kinds[] = {NG_ENTRY_PARAMETER, NG_ENTRY_BUFFER};
    ng_named_tensor found;
    for (int k = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &found); i++)
            if (!ng_stored_add(function, list, prefix, found.name, ng_stored_of(found.tensor)))
                return false;
    return true;
}

bool ng_safetensors_match(ng_safetensors *file, ng_stored_list *list, bool partial)
{
    for (int64_t i = 0; i < list->count; i++) {
        ng_stored *own = &list->arrays[i], *found = ng_stored_find(&file->list, own->name);
        if (!found && partial) continue;
        if (!found) return ng_refuse(file->origin, NG_EVALUE, "has no \"%s\"", own->name);
        if (!ng_shape_equal(found->shape, own->shape))
            return ng_refuse(file->origin, NG_ESHAPE, "has \"%s\" of shape %s, expected %s",
                             own->name, ng_shape_print(found->shape).text,
                             ng_shape_print(own->shape).text);
        own->pair = found;
        found->pair = own;
    }
    for (int64_t i = 0; i < file->list.count && !partial; i++)
        if (!file->list.arrays[i].pair)
            return ng_refuse(file->origin, NG_EVALUE, "has \"%s\", which is not used here",
                             file->list.arrays[i].name);
    return true;
}
