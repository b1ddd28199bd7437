/* MNIST's IDX files: a magic number 0x0000TTDD (type, number of dimensions), the dimensions as
 * 32-bit big-endian numbers, then the elements row by row. Type 8 is an unsigned byte. */
#include "io/dataset.h"
#include "io/inflate.h"
#include <math.h>

static const char function[] = "ng_dataset_read_idx";

enum { MAX_DIMS = 3 };

/* A file whose content has been checked against its header. */
typedef struct {
    char *bytes; /* the whole file */
    const unsigned char *elements;
    int64_t dim[MAX_DIMS];
} ng_idx;

static uint32_t big_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Checks the header for unsigned bytes in `rank` dimensions, and the size that follows from it. */
static bool check(const char *path, int64_t size, int rank, ng_idx *file)
{
    const int64_t header = 4 + 4 * rank;
    const uint32_t magic = size >= 4 ? big_endian(file->bytes) : 0;
    if (size < header || magic != (0x0800u | (unsigned)rank)) {
        ng_fail(NG_EPARSE,
                "%s: %s: %lld bytes that begin with 0x%08x, expected an IDX file of "
                "bytes in %d dimension%s (0x%08x)",
                function, path, (long long)size, (unsigned)magic, rank, rank == 1 ? "" : "s",
                0x0800u | (unsigned)rank);
        return false;
    }

    int64_t expected = 1; /* up to 2^32 elements a dimension: checked against overflow */
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        file->dim[i] = big_endian(file->bytes + 4 + 4 * i);
        if (file->dim[i] == 0) {
            ng_fail(NG_EPARSE, "%s: %s: dimension %d is 0", function, path, i);
            return false;
        }
        fits = fits && expected <= INT64_MAX / file->dim[i];
        if (fits) expected *= file->dim[i];
    }
    if (!fits || expected != size - header) {
        ng_fail(NG_EPARSE, "%s: %s: %lld bytes after the header, which promises %lld x %lld x %lld",
                function, path, (long long)(size - header), (long long)file->dim[0],
                (long long)(rank > 1 ? file->dim[1] : 1), (long long)(rank > 2 ? file->dim[2] : 1));
        return false;
    }
    file->elements = (const unsigned char *)file->bytes + header;
    return true;
}

static bool read_idx(const char *path, int rank, ng_idx *file)
{
    int64_t size = 0;
    file->bytes = ng_file_read_unpacked(function, path, &size);
    return file->bytes && check(path, size, rank, file);
}

static ng_tensor *images_new(const ng_idx *file, double scale, ng_dtype dtype)
{
    ng_tensor *x =
        ng_tensor_make(function, dtype, NG_SHAPE(file->dim[0], file->dim[1], file->dim[2]));
    for (int64_t i = 0; x && i < x->size; i++) ng_tensor_store(x, i, file->elements[i] * scale);
    return x;
}

static ng_tensor *labels_new(const ng_idx *file)
{
    ng_tensor *y = ng_tensor_make(function, NG_I64, NG_SHAPE(file->dim[0]));
    for (int64_t i = 0; y && i < y->size; i++) ng_tensor_store(y, i, file->elements[i]);
    return y;
}

static ng_dataset *read_pair(const char *path, const ng_dataset_read_idx_options *options,
                             ng_idx *images, ng_idx *labels)
{
    if (!read_idx(path, 3, images)) return NULL;
    if (options->labels && !read_idx(options->labels, 1, labels)) return NULL;
    if (options->labels && images->dim[0] != labels->dim[0]) {
        ng_fail(NG_EPARSE, "%s: %lld images in %s, but %lld labels in %s", function,
                (long long)images->dim[0], path, (long long)labels->dim[0], options->labels);
        return NULL;
    }
    ng_tensor *x = images_new(images, options->scale, options->dtype);
    return ng_dataset_adopt(function, x,
                            !x                ? NULL
                            : options->labels ? labels_new(labels)
                                              : NG_NONE);
}

ng_dataset *ng_dataset_read_idx_with(const char *images, ng_dataset_read_idx_options options)
{
    if (!ng_given(function, "images", images)) return NULL;
    options.scale = ng_option(options.scale, 1.0 / 255);
    /* 1e30: times 255 still within a float */
    if (!(fabs(options.scale) <= 1e30)) {
        ng_fail(NG_EVALUE, "%s: scale %g, expected at most 1e30", function, options.scale);
        return NULL;
    }
    if (options.dtype != NG_F32 && options.dtype != NG_F64) {
        ng_fail(NG_EDTYPE, "%s: images as %s, expected float32 or float64", function,
                ng_dtype_name(options.dtype));
        return NULL;
    }

    ng_idx pixels = {0}, labels = {0};
    ng_dataset *dataset = read_pair(images, &options, &pixels, &labels);
    ng_free(pixels.bytes);
    ng_free(labels.bytes);
    return dataset;
}
