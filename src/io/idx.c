/* MNIST's IDX files: a magic number 0x0000TTDD (type, number of dimensions), the dimensions as
 * 32-bit big-endian numbers, then the elements row by row. Type 8 is an unsigned byte. */
#include "io/dataset.h"
#include "io/file.h"
#include <math.h>

static const char read_idx[] = "ng_dataset_read_idx";

enum { IDX_DIMS = 3 };

/* A file whose content has been checked against its header. */
typedef struct {
    char *bytes; /* the whole file */
    const unsigned char *elements;
    int64_t dim[IDX_DIMS];
} idx_file;

static uint32_t big_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Checks the header for unsigned bytes in `rank` dimensions, and the size that follows from it. */
static bool check_idx(const char *path, int64_t size, int rank, idx_file *file)
{
    const int64_t header = 4 + 4 * rank;
    const uint32_t magic = size >= 4 ? big_endian(file->bytes) : 0;
    const ng_origin origin = {read_idx, path};
    if (size < header || magic != (0x0800u | (unsigned)rank))
        return ng_refuse(origin, NG_EPARSE,
                         "%lld bytes that begin with 0x%08x, expected an IDX file of "
                         "bytes in %d dimension%s (0x%08x)",
                         (long long)size, (unsigned)magic, rank, rank == 1 ? "" : "s",
                         0x0800u | (unsigned)rank);

    int64_t expected = 1; /* up to 2^32 elements a dimension: checked against overflow */
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        file->dim[i] = big_endian(file->bytes + 4 + 4 * i);
        if (file->dim[i] == 0) return ng_refuse(origin, NG_EPARSE, "dimension %d is 0", i);
        fits = fits && expected <= INT64_MAX / file->dim[i];
        if (fits) expected *= file->dim[i];
    }
    if (!fits || expected != size - header)
        return ng_refuse(
            origin, NG_EPARSE, "%lld bytes after the header, which promises %lld x %lld x %lld",
            (long long)(size - header), (long long)file->dim[0],
            (long long)(rank > 1 ? file->dim[1] : 1), (long long)(rank > 2 ? file->dim[2] : 1));
    file->elements = (const unsigned char *)file->bytes + header;
    return true;
}

static bool read_idx_file(const char *path, int rank, idx_file *file)
{
    int64_t size = 0;
    file->bytes = ng_file_read_unpacked(read_idx, path, &size);
    return file->bytes && check_idx(path, size, rank, file);
}

/* The elements times `scale` as a tensor. */
static ng_tensor *idx_tensor(const idx_file *file, int rank, double scale, ng_dtype dtype)
{
    ng_shape shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dim[i] = file->dim[i];
    ng_tensor *x = ng_tensor_make(read_idx, dtype, shape);
    for (int64_t i = 0; x && i < x->size; i++) ng_tensor_store(x, i, file->elements[i] * scale);
    return x;
}

ng_dataset *ng_dataset_read_idx_with(const char *images, ng_dataset_read_idx_options options)
{
    if (!ng_given(read_idx, "images", images)) return NULL;
    options.scale = ng_option(options.scale, 1.0 / 255);
    /* 1e30: times 255 still within a float */
    if (!(fabs(options.scale) <= 1e30)) {
        ng_fail(NG_EVALUE, "%s: scale %g, expected at most 1e30", read_idx, options.scale);
        return NULL;
    }
    if (!ng_dataset_features_accepted(read_idx, options.scale, options.dtype)) return NULL;
    idx_file pixels = {0}, labels = {0};
    ng_tensor *x = NULL, *y = NULL;
    if (read_idx_file(images, 3, &pixels) &&
        (!options.labels || read_idx_file(options.labels, 1, &labels))) {
        x = idx_tensor(&pixels, 3, options.scale, options.dtype);
        y = options.labels ? idx_tensor(&labels, 1, 1, NG_I64) : NG_NONE;
    }
    ng_free(pixels.bytes);
    ng_free(labels.bytes);
    return ng_dataset_adopt(read_idx, x, y);
}
