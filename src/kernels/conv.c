/* Convolution as a matrix product of each image's columns (Chellapilla, Puri & Simard 2006).
 *
 * With K = channels kernel_h kernel_w and L = out_h out_w, an image's columns are (K, L):
 *
 *     Y = W columns(X) + b                W (outputs, K), Y (outputs, L)
 *     dX = columns^T(W^T dY)              what a place gave to several columns comes back summed
 *     dW = sum over images of dY columns(X)^T
 *     db = sum over images and places of dY
 *
 * for each group of channels apart. The images are cut into blocks, which threads share; each has
 * memory for the columns of one image and for its part of dW. The number of blocks depends on the
 * shape alone, and the parts are added in their order. */
#include "kernels/kernels.h"
#include "kernels/parallel.h"

/* Products of one image with as many multiplications as this are worth a BLAS; one block means
 * that its threads, in place of ours, share the work. */
#define LARGE_IMAGE (INT64_C(1) << 23)

/* At most so many blocks, and elements in all parts of dW together. */
#define BLOCKS 16
#define PARTS (INT64_C(1) << 20)

typedef struct {
    const ng_conv_shape *shape;
    const ng_kernels *kernels;
    ng_dtype dtype;
    int64_t blocks, length; /* images in a block */
    int64_t m, n, k;        /* of each group's product */
    bool direct;            /* the image is its own columns */
    const char *x, *weight, *bias, *dy;
    char *y, *scratch;
    ng_conv_gradients to;
} conv_work;

/* ---- Sizes --------------------------------------------------------------------------------- */

static int64_t weight_size(const conv_work *w) { return w->shape->outputs * w->k; }
static int64_t image_size(const conv_work *w)
{
    return w->shape->channels * w->shape->windows.size[0] * w->shape->windows.size[1];
}
static int64_t output_size(const conv_work *w) { return w->shape->outputs * w->n; }
static int64_t column_size(const conv_work *w)
{
    return w->direct ? 0 : w->shape->groups * w->k * w->n;
}

/* Bytes of some elements, in whole cache lines. */
static int64_t lines(const conv_work *w, int64_t count)
{
    return (count * (int64_t)ng_dtype_bytes(w->dtype) + 63) / 64 * 64;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static conv_work work_of(ng_dtype dtype, const ng_conv_shape *shape)
{
    const ng_windows *v = &shape->windows;
    conv_work w = {.shape = shape, .kernels = ng_kernels_for(dtype), .dtype = dtype, .blocks = 1};
    w.m = shape->outputs / shape->groups;
    w.n = v->out[0] * v->out[1];
    w.k = shape->channels / shape->groups * v->kernel[0] * v->kernel[1];
    w.direct = v->kernel[0] * v->kernel[1] * v->stride[0] * v->stride[1] == 1 &&
               v->padding[0] == 0 && v->padding[1] == 0;
    if ((double)weight_size(&w) * (double)w.n < (double)LARGE_IMAGE)
        w.blocks = least(least(shape->images, BLOCKS), PARTS / weight_size(&w));
    if (w.blocks < 1) w.blocks = 1;
    w.length = (shape->images + w.blocks - 1) / w.blocks;
    return w;
}

int64_t ng_conv_scratch(ng_dtype dtype, const ng_conv_shape *shape, bool backward)
{
    const conv_work w = work_of(dtype, shape);
    const int64_t columns = w.blocks * lines(&w, column_size(&w));
    if (!backward) return columns;
    return columns + lines(&w, w.blocks * weight_size(&w)) +
           lines(&w, shape->images * shape->outputs);
}

/* ---- One image ----------------------------------------------------------------------------- */

/* Element `index` of an array of the work's dtype. */
static const char *in(const conv_work *w, const void *array, int64_t index)
{
    return (const char *)array + index * (int64_t)ng_dtype_bytes(w->dtype);
}

static char *out(const conv_work *w, void *array, int64_t index)
{
    return (char *)array + index * (int64_t)ng_dtype_bytes(w->dtype);
}

static void multiply(const conv_work *w, bool transpose_a, bool transpose_b, int64_t m, int64_t n,
                     int64_t k, const void *a, const void *b, void *c, bool accumulate)
{
    const int64_t lda = transpose_a ? m : k, ldb = transpose_b ? k : n;
    if (w->blocks > 1)
        w->kernels->gemm(transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, n, accumulate);
    else
        ng_gemm(w->dtype, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, c, n, accumulate);
}

/* The columns of image x, in `memory` unless it is its own. */
static const void *columns_of(const conv_work *w, const char *x, void *memory)
{
    if (w->direct) return x;
    w->kernels->unfold(&w->shape->windows, x, memory);
    return memory;
}

static void fill_bias(const conv_work *w, char *y)
{
    for (int64_t o = 0; o < w->shape->outputs; o++) {
        const double value = w->dtype == NG_F32 ? (double)((const float *)(const void *)w->bias)[o]
                                                : ((const double *)(const void *)w->bias)[o];
        w->kernels->fill(out(w, y, o * w->n), w->n, value);
    }
}

static void forward_image(const conv_work *w, int64_t image, void *memory)
{
    const char *x = in(w, w->x, image * image_size(w));
    char *y = out(w, w->y, image * output_size(w));
    const void *columns = columns_of(w, x, memory);
    if (w->bias) fill_bias(w, y);
    for (int64_t g = 0; g < w->shape->groups; g++)
        multiply(w, false, false, w->m, w->n, w->k, in(w, w->weight, g * w->m * w->k),
                 in(w, columns, g * w->k * w->n), out(w, y, g * w->m * w->n), w->bias != NULL);
}

static void weight_image(const conv_work *w, int64_t image, void *memory, void *dweight,
                         bool accumulate)
{
    const char *x = in(w, w->x, image * image_size(w));
    const char *dy = in(w, w->dy, image * output_size(w));
    const void *columns = columns_of(w, x, memory);
    for (int64_t g = 0; g < w->shape->groups; g++)
        multiply(w, false, true, w->m, w->k, w->n, in(w, dy, g * w->m * w->n),
                 in(w, columns, g * w->k * w->n), out(w, dweight, g * w->m * w->k), accumulate);
}

static void input_image(const conv_work *w, int64_t image, void *memory)
{
    const char *dy = in(w, w->dy, image * output_size(w));
    char *dx = out(w, w->to.dx, image * image_size(w));
    void *columns = w->direct ? dx : memory;
    for (int64_t g = 0; g < w->shape->groups; g++)
        multiply(w, true, false, w->k, w->n, w->m, in(w, w->weight, g * w->m * w->k),
                 in(w, dy, g * w->m * w->n), out(w, columns, g * w->k * w->n),
                 w->direct && w->to.add_dx);
    if (!w->direct) w->kernels->fold(&w->shape->windows, columns, dx, w->to.add_dx);
}

/* ---- Blocks of images ---------------------------------------------------------------------- */

static void share_blocks(ng_span *span, const conv_work *w)
{
    if (w->shape->images == 0) return;
    ng_share(span, w, w->blocks, 1, w->shape->images * output_size(w) * w->k / 8);
}

static void forward_span(const void *arguments, int64_t begin, int64_t end)
{
    const conv_work *w = arguments;
    for (int64_t b = begin; b < end; b++) {
        void *memory = w->scratch + b * lines(w, column_size(w));
        const int64_t last = least((b + 1) * w->length, w->shape->images);
        for (int64_t image = b * w->length; image < last; image++) forward_image(w, image, memory);
    }
}

void ng_conv(ng_dtype dtype, const ng_conv_shape *shape, const void *x, const void *weight,
             const void *bias, void *y, void *scratch)
{
    conv_work w = work_of(dtype, shape);
    w.x = x, w.weight = weight, w.bias = bias, w.y = y, w.scratch = scratch;
    share_blocks(forward_span, &w);
}

static char *parts_of(const conv_work *w)
{
    return w->scratch + w->blocks * lines(w, column_size(w));
}

static void backward_span(const void *arguments, int64_t begin, int64_t end)
{
    const conv_work *w = arguments;
    for (int64_t b = begin; b < end; b++) {
        void *memory = w->scratch + b * lines(w, column_size(w));
        char *part = out(w, parts_of(w), b * weight_size(w));
        const int64_t first = b * w->length, last = least(first + w->length, w->shape->images);
        if (first >= last && w->to.dweight) w->kernels->fill(part, weight_size(w), 0);
        for (int64_t image = first; image < last; image++) {
            if (w->to.dweight) weight_image(w, image, memory, part, image > first);
            if (w->to.dx) input_image(w, image, memory);
        }
    }
}

/* dbias: the places of each image and output first, then the images. */
static void sum_bias(const conv_work *w)
{
    const int64_t images = w->shape->images, outputs = w->shape->outputs;
    char *sums = parts_of(w) + lines(w, w->blocks * weight_size(w));
    w->kernels->sum(w->dy, sums, images * outputs, w->n, 1, 1, false);
    w->kernels->sum(sums, w->to.dbias, 1, images, outputs, 1, w->to.add_dbias);
}

void ng_conv_backward(ng_dtype dtype, const ng_conv_shape *shape, const void *x, const void *weight,
                      const void *dy, ng_conv_gradients gradients, void *scratch)
{
    conv_work w = work_of(dtype, shape);
    w.x = x, w.weight = weight, w.dy = dy, w.to = gradients, w.scratch = scratch;
    if (gradients.dx || gradients.dweight) share_blocks(backward_span, &w);
    if (gradients.dweight)
        w.kernels->sum(parts_of(&w), gradients.dweight, 1, shape->images == 0 ? 0 : w.blocks,
                       weight_size(&w), 1, gradients.add_dweight);
    if (gradients.dbias) sum_bias(&w);
}
