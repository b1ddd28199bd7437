/* Checkpoints: a module's parameters and buffers by name, in one little-endian file.
 *
 *     "NGRD"  version (u32)  count (u64)
 *     count times: bytes of the name (u32), the name, dtype (u32), rank (u32), dimensions (i64
 *     each), the elements
 *     FNV-1a of all bytes before (u64)
 */
#include "io/file.h"
#include "nn/module.h"
#include <string.h>

static const char magic[4] = {'N', 'G', 'R', 'D'};
enum { VERSION = 1, HEADER_BYTES = 16, CHECKSUM_BYTES = 8 };

static const ng_entry_kind kinds[] = {NG_ENTRY_PARAMETER, NG_ENTRY_BUFFER};

static int count_tensors(const ng_module *module)
{
    ng_named_tensor tensor;
    int count = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++) count++;
    return count;
}

/* ---- Write --------------------------------------------------------------------------------- */

typedef struct {
    ng_replacement *file;
    uint64_t hash;
} writer;

static void put_bytes(writer *out, const void *bytes, size_t count)
{
    out->hash = ng_digest(out->hash, bytes, count);
    ng_replacement_write(out->file, bytes, count);
}

static void put_number(writer *out, uint64_t value, int bytes)
{
    unsigned char little[8];
    for (int i = 0; i < bytes; i++) little[i] = (unsigned char)(value >> 8 * i);
    put_bytes(out, little, (size_t)bytes);
}

static void put_elements(writer *out, const ng_tensor *x)
{
    for (int64_t i = 0; i < x->size; i++) {
        if (x->dtype == NG_F32) {
            uint32_t bits;
            memcpy(&bits, (const float *)x->data + i, sizeof bits);
            put_number(out, bits, 4);
        } else {
            uint64_t bits;
            memcpy(&bits, (const double *)x->data + i, sizeof bits);
            put_number(out, bits, 8);
        }
    }
}

static void put_tensor(writer *out, const char *name, const ng_tensor *x)
{
    put_number(out, strlen(name), 4);
    put_bytes(out, name, strlen(name));
    put_number(out, (uint64_t)x->dtype, 4);
    put_number(out, (uint64_t)x->shape.rank, 4);
    for (int i = 0; i < x->shape.rank; i++) put_number(out, (uint64_t)x->shape.dim[i], 8);
    put_elements(out, x);
}

ng_status ng_module_save(const ng_module *module, const char *path)
{
    static const char function[] = "ng_module_save";
    if (!ng_given(function, "module", module) || !ng_given(function, "path", path))
        return ng_newest_status();
    ng_replacement file;
    const ng_status begun = ng_replacement_begin(&file, function, path);
    if (begun != NG_OK) return begun;

    writer out = {&file, NG_DIGEST_START};
    put_bytes(&out, magic, sizeof magic);
    put_number(&out, VERSION, 4);
    put_number(&out, (uint64_t)count_tensors(module), 8);
    ng_named_tensor tensor;
    for (int k = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++)
            put_tensor(&out, tensor.name, tensor.tensor);
    put_number(&out, out.hash, CHECKSUM_BYTES);
    return ng_replacement_end(&file, NG_OK);
}

/* ---- Read ---------------------------------------------------------------------------------- */

/* A file in memory, and how far it has been read. */
typedef struct {
    const char *path;
    const unsigned char *bytes;
    int64_t size, at;
} reader;

/* A tensor as the file has it. */
typedef struct {
    const char *name;
    int name_length;
    ng_dtype dtype;
    ng_shape shape;
    int64_t size;
    const unsigned char *elements;
} saved_tensor;

/* A tensor of the module, and what the file has for it. */
typedef struct {
    ng_named_tensor own;
    saved_tensor saved;
} match;

static bool malformed(const reader *in, const char *what)
{
    ng_fail(NG_EPARSE, "ng_module_load: %s: %s", in->path, what);
    return false;
}

static uint64_t number_at(const unsigned char *bytes, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* The next `count` bytes; NULL with an error where the file has no more. */
static const unsigned char *take(reader *in, int64_t count)
{
    if (count > in->size - in->at) {
        ng_fail(NG_EPARSE, "ng_module_load: %s: cut short at byte %lld", in->path,
                (long long)in->at);
        return NULL;
    }
    in->at += count;
    return in->bytes + in->at - count;
}

static bool take_number(reader *in, int bytes, uint64_t *value)
{
    const unsigned char *at = take(in, bytes);
    if (at) *value = number_at(at, bytes);
    return at != NULL;
}

static bool take_shape(reader *in, saved_tensor *saved)
{
    uint64_t rank;
    if (!take_number(in, 4, &rank)) return false;
    if (rank > NG_MAX_RANK) return malformed(in, "a tensor of more than 8 dimensions");
    saved->shape.rank = (int)rank;
    for (int i = 0; i < saved->shape.rank; i++) {
        uint64_t dim;
        if (!take_number(in, 8, &dim)) return false;
        if (dim > INT64_MAX) return malformed(in, "a negative dimension");
        saved->shape.dim[i] = (int64_t)dim;
    }
    saved->size = ng_shape_size("ng_module_load", saved->shape);
    return saved->size >= 0 || malformed(in, "a tensor larger than memory");
}

static bool take_tensor(reader *in, saved_tensor *saved)
{
    uint64_t length, dtype;
    *saved = (saved_tensor){.name = ""};
    if (!take_number(in, 4, &length)) return false;
    saved->name = (const char *)take(in, (int64_t)length);
    saved->name_length = (int)length;
    if (!saved->name || !take_number(in, 4, &dtype)) return false;
    if (dtype != NG_F32 && dtype != NG_F64) return malformed(in, "a tensor of unknown dtype");
    saved->dtype = (ng_dtype)dtype;
    if (!take_shape(in, saved)) return false;
    const int64_t bytes = (int64_t)ng_dtype_bytes(saved->dtype);
    if (saved->size > INT64_MAX / bytes) return malformed(in, "a tensor larger than memory");
    saved->elements = take(in, saved->size * bytes);
    return saved->elements != NULL;
}

/* Checks the frame and leaves `in` between header and checksum. */
static bool take_header(reader *in, uint64_t *count)
{
    uint64_t version;
    if (in->size < HEADER_BYTES + CHECKSUM_BYTES || memcmp(in->bytes, magic, sizeof magic) != 0)
        return malformed(in, "not a normgrad checkpoint, or cut short");
    in->size -= CHECKSUM_BYTES;
    if (ng_digest(NG_DIGEST_START, in->bytes, (size_t)in->size) !=
        number_at(in->bytes + in->size, CHECKSUM_BYTES))
        return malformed(in, "damaged: the checksum differs");
    in->at = sizeof magic;
    if (!take_number(in, 4, &version) || !take_number(in, 8, count)) return false;
    if (version == VERSION) return true;
    ng_fail(NG_EPARSE, "ng_module_load: %s: format version %lld, expected %d", in->path,
            (long long)version, VERSION);
    return false;
}

static void collect(const ng_module *module, match *matches)
{
    ng_named_tensor tensor;
    for (int k = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++)
            matches++->own = tensor;
}

static match *find_match(match *matches, int count, const saved_tensor *saved)
{
    for (int i = 0; i < count; i++) {
        const char *name = matches[i].own.name;
        if (strlen(name) == (size_t)saved->name_length &&
            memcmp(name, saved->name, strlen(name)) == 0)
            return &matches[i];
    }
    return NULL;
}

static bool assign(const reader *in, match *matches, int count, const saved_tensor *saved)
{
    match *found = find_match(matches, count, saved);
    if (!found) {
        ng_fail(NG_EVALUE, "ng_module_load: %s has \"%.*s\", which the module has not", in->path,
                saved->name_length, saved->name);
        return false;
    }
    if (found->saved.elements) return malformed(in, "a tensor stands in it twice");
    const ng_shape expected = found->own.tensor->shape;
    if (!ng_shape_equal(expected, saved->shape)) {
        ng_fail(NG_ESHAPE, "ng_module_load: %s has \"%s\" of shape %s, expected %s", in->path,
                found->own.name, ng_shape_print(saved->shape).text, ng_shape_print(expected).text);
        return false;
    }
    found->saved = *saved;
    return true;
}

static bool take_all(reader *in, match *matches, int count)
{
    uint64_t left;
    saved_tensor saved;
    if (!take_header(in, &left)) return false;
    for (; left > 0; left--)
        if (!take_tensor(in, &saved) || !assign(in, matches, count, &saved)) return false;
    if (in->at != in->size) return malformed(in, "bytes after the last tensor");
    for (int i = 0; i < count; i++)
        if (!matches[i].saved.elements) {
            ng_fail(NG_EVALUE, "ng_module_load: %s has no \"%s\"", in->path, matches[i].own.name);
            return false;
        }
    return true;
}

/* The same dtype keeps its bits; another one is converted. */
static void store(const match *found)
{
    ng_tensor *x = found->own.tensor;
    const saved_tensor *saved = &found->saved;
    for (int64_t i = 0; i < saved->size; i++) {
        if (saved->dtype == NG_F32) {
            const uint32_t bits = (uint32_t)number_at(saved->elements + 4 * i, 4);
            float value;
            memcpy(&value, &bits, sizeof value);
            if (x->dtype == NG_F32)
                memcpy((float *)x->data + i, &bits, sizeof bits);
            else
                ng_tensor_store(x, i, (double)value);
        } else {
            const uint64_t bits = number_at(saved->elements + 8 * i, 8);
            double value;
            memcpy(&value, &bits, sizeof value);
            ng_tensor_store(x, i, value);
        }
    }
    ng_touch(x);
}

ng_status ng_module_load(ng_module *module, const char *path)
{
    static const char function[] = "ng_module_load";
    if (!ng_given(function, "module", module) || !ng_given(function, "path", path))
        return ng_newest_status();
    const int count = count_tensors(module);
    match *matches = ng_calloc(function, count, sizeof *matches);
    reader in = {.path = path};
    if (matches) in.bytes = (unsigned char *)ng_file_read(function, path, &in.size);

    if (matches) collect(module, matches);
    const bool complete = in.bytes && take_all(&in, matches, count);
    for (int i = 0; complete && i < count; i++) store(&matches[i]);

    ng_free((void *)in.bytes);
    ng_free(matches);
    return complete ? NG_OK : ng_newest_status();
}
