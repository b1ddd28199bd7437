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
    if (size < header || magic != (0x0800u | (unsigned)rank)) {
        ng_fail(NG_EPARSE,
                "%s: %s: %lld bytes that begin with 0x%08x, expected an IDX file of "
                "bytes in %d dimension%s (0x%08x)",
                read_idx, path, (long long)size, (unsigned)magic, rank, rank == 1 ? "" : "s",
                0x0800u | (unsigned)rank);
        return false;
    }

    int64_t expected = 1; /* up to 2^32 elements a dimension: checked against overflow */
    bool fits = true;
    for (int i = 0; i < rank; i++) {
        file->dim[i] = big_endian(file->bytes + 4 + 4 * i);
        if (file->dim[i] == 0) {
            ng_fail(NG_EPARSE, "%s: %s: dimension %d is 0", read_idx, path, i);
            return false;
        }
        fits = fits && expected <= INT64_MAX / file->dim[i];
        if (fits) expected *= file->dim[i];
    }
    if (!fits || expected != size - header) {
        ng_fail(NG_EPARSE, "%s: %s: %lld bytes after the header, which promises %lld x %lld x %lld",
                read_idx, path, (long long)(size - header), (long long)file->dim[0],
                (long long)(rank > 1 ? file->dim[1] : 1), (long long)(rank > 2 ? file->dim[2] : 1));
        return false;
    }
    file->elements = (const unsigned char *)file->bytes + header;
    return true;
}

static bool read_idx_file(const char *path, int rank, idx_file *file)
{
    int64_t size = 0;
    file->bytes = ng_file_read_unpacked(read_idx, path, &size);
    return file->bytes && check_idx(path, size, rank, file);
}

static ng_tensor *images_new(const idx_file *file, double scale, ng_dtype dtype)
{
    ng_tensor *x =
        ng_tensor_make(read_idx, dtype, NG_SHAPE(file->dim[0], file->dim[1], file->dim[2]));
    for (int64_t i = 0; x && i < x->size; i++) ng_tensor_store(x, i, file->elements[i] * scale);
    return x;
}

static ng_tensor *labels_new(const idx_file *file)
{
    ng_tensor *y = ng_tensor_make(read_idx, NG_I64, NG_SHAPE(file->dim[0]));
    for (int64_t i = 0; y && i < y->size; i++) ng_tensor_store(y, i, file->elements[i]);
    return y;
}

static ng_dataset *read_pair(const char *path, const ng_dataset_read_idx_options *options,
                             idx_file *images, idx_file *labels)
{
    if (!read_idx_file(path, 3, images)) return NULL;
    if (options->labels && !read_idx_file(options->labels, 1, labels)) return NULL;
    if (options->labels && images->dim[0] != labels->dim[0]) {
        ng_fail(NG_EPARSE, "%s: %lld images in %s, but %lld labels in %s", read_idx,
                (long long)images->dim[0], path, (long long)labels->dim[0], options->labels);
        return NULL;
    }
    ng_tensor *x = images_new(images, options->scale, options->dtype);
    return ng_dataset_adopt(read_idx, x,
                            !x                ? NULL
                            : options->labels ? labels_new(labels)
                                              : NG_NONE);
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
    if (options.dtype != NG_F32 && options.dtype != NG_F64) {
        ng_fail(NG_EDTYPE, "%s: images as %s, expected float32 or float64", read_idx,
                ng_dtype_name(options.dtype));
        return NULL;
    }

    idx_file pixels = {0}, labels = {0};
    ng_dataset *dataset = read_pair(images, &options, &pixels, &labels);
    ng_free(pixels.bytes);
    ng_free(labels.bytes);
    return dataset;
}
