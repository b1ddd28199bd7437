/* MNIST's IDX files: a magic number 0x0000TTDD (type, number of dimensions), the dimensions as
 * 32-bit big-endian numbers, then the elements row by row. Type 8 is an unsigned byte. */
#include "io/dataset.h"
#include "io/stored.h"

static const char read_idx[] = "ng_dataset_read_idx";

static uint32_t big_endian(const char *bytes)
{
    const unsigned char *b = (const unsigned char *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Describes the unsigned bytes of a file in `rank` dimensions; false if it has another form. */
static bool parse_idx(ng_origin origin, char *bytes, int64_t size, int rank, ng_stored *pixels)
{
    const int64_t header = 4 + 4 * rank;
    const unsigned magic = size >= 4 ? big_endian(bytes) : 0, expected = 0x0800u | (unsigned)rank;
    if (size < header || magic != expected)
        return ng_refuse(origin, NG_EPARSE,
                         "%lld bytes that begin with 0x%08x, expected an IDX file of bytes in %d "
                         "dimensions (0x%08x)",
                         (long long)size, magic, rank, expected);
    *pixels = (ng_stored){.kind = NG_STORED_U8, .bytes = bytes + header, .size = size - header};
    pixels->shape.rank = rank;
    for (int i = 0; i < rank; i++) pixels->shape.dim[i] = big_endian(bytes + 4 + 4 * i);
    return pixels->size == ng_stored_bytes(NG_STORED_U8, pixels->shape) ||
           ng_refuse(origin, NG_EPARSE, "%lld bytes after the header, which promises %s",
                     (long long)pixels->size, ng_shape_print(pixels->shape).text);
}

static ng_tensor *read_idx_tensor(const char *path, int rank, ng_dtype dtype)
{
    int64_t size = 0;
    ng_stored pixels;
    ng_tensor *x = NULL;
    char *bytes = ng_file_read_unpacked(read_idx, path, &size);
    if (bytes && parse_idx((ng_origin){read_idx, path}, bytes, size, rank, &pixels))
        x = ng_tensor_make(read_idx, dtype, pixels.shape);
    if (x) ng_stored_load(&pixels, x);
    ng_free(bytes);
    return x;
}

ng_dataset *ng_dataset_read_idx_with(const char *images, ng_dataset_read_idx_options options)
{
    const double scale = ng_option(options.scale, 1.0 / 255);
    if (!ng_given(read_idx, "images", images) ||
        !ng_dataset_features_accepted(read_idx, scale, options.dtype))
        return NULL;
    ng_tensor *x = read_idx_tensor(images, 3, options.dtype), *y = NULL;
    if (x && ng_dataset_scale((ng_origin){read_idx, images}, x, scale))
        y = options.labels ? read_idx_tensor(options.labels, 1, NG_I64) : NG_NONE;
    return ng_dataset_adopt(read_idx, x, y);
}
