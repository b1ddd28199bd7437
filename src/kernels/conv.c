/* Convolution as a matrix product of each image's columns (Chellapilla, Puri & Simard 2006).
 *
 * With K = channels kernel_h kernel_w and L = out_h out_w, an image's columns are (K, L):
 *
 *     Y = W columns(X) + b                W (outputs, K), Y (outputs, L)
 *     dX = columns^T(W^T dY)              sums what an element gave to several columns
 *     dW = sum over images of dY columns(X)^T
 *     db = sum over images and places of dY
 *
 * for each group of channels. Several small images make a bundle: their columns stand side by side,
 * and L is the sum of theirs. Threads share blocks of images; each block has memory for a bundle
 * and for its part of dW. Bundles and blocks depend on the shape alone, and the parts are added in
 * order.
 *
 * Where windows move by several elements, a column would be gathered. There columns are rows in
 * memory, (L, K), which are copied line by line of a window, and Y^T is computed.
 *
 * Where each channel has a window of its own there are no columns: depthwise.inc. */
#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include <string.h>

enum {
    CONV_BLOCKS = 16,    /* at most */
    CONV_SUMS = 1 << 20, /* at most so many elements in all blocks' parts of dW */
    CONV_PLACES = 128,   /* of a bundle: a product that is wide enough to be fast, and in cache */
    CONV_LARGE = 1 << 23 /* multiplications for an image, from which on threads share each product
                             and there is one block: its memory is large */
};

typedef struct {
    const ng_conv_shape *shape;
    const ng_kernels *kernels;
    ng_dtype dtype;
    int64_t blocks, length; /* images in a block */
    int64_t bundle;         /* images in a bundle */
    int64_t m, n, k;        /* of each group's product for one image */
    bool direct;            /* the image is its own columns */
    bool by_rows;           /* a column is a row in memory */
    const void *x, *weight, *bias, *dy;
    void *y;
    char *scratch;
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
    return w->direct ? 0 : w->shape->groups * w->k * w->n * w->bundle;
}
/* Elements of a row: the columns of all groups at one place. */
static int64_t column_length(const conv_work *w) { return w->shape->groups * w->k; }
static int64_t product_size(const conv_work *w)
{
    return w->bundle == 1 && !w->by_rows ? 0 : output_size(w) * w->bundle;
}
static int64_t frame_size(const conv_work *w)
{
    return w->by_rows ? ng_frame_size(&w->shape->windows) : 0;
}

/* Bytes of some elements, in whole cache lines. */
static int64_t whole_lines(const conv_work *w, int64_t count)
{
    return (count * (int64_t)ng_dtype_bytes(w->dtype) + 63) / 64 * 64;
}

/* Bytes of a block's memory: columns, outputs or their gradient, and a framed image. */
static int64_t block_bytes(const conv_work *w)
{
    return whole_lines(w, column_size(w)) + whole_lines(w, product_size(w)) +
           whole_lines(w, frame_size(w));
}

/* Behind the blocks' memory: their parts of dW; in the forward pass by rows the weights, turned to
 * (k, outputs). */
static char *parts_of(const conv_work *w) { return w->scratch + w->blocks * block_bytes(w); }

static conv_work conv_work_of(ng_dtype dtype, const ng_conv_shape *shape)
{
    const ng_windows *v = &shape->windows;
    conv_work w = {.shape = shape, .kernels = ng_kernels_for(dtype), .dtype = dtype, .blocks = 1};
    w.m = shape->outputs / shape->groups;
    w.n = v->out[0] * v->out[1];
    w.k = shape->channels / shape->groups * v->kernel[0] * v->kernel[1];
    w.bundle = ng_least(shape->images, CONV_PLACES / w.n);
    if (w.bundle < 1) w.bundle = 1;
    const int64_t bundles = (shape->images + w.bundle - 1) / w.bundle;
    if ((double)weight_size(&w) * (double)w.n < (double)CONV_LARGE)
        w.blocks = ng_least(ng_least(bundles, CONV_BLOCKS), CONV_SUMS / weight_size(&w));
    if (w.blocks < 1) w.blocks = 1;
    w.length = (bundles + w.blocks - 1) / w.blocks * w.bundle;
    w.direct = w.bundle == 1 && v->kernel[0] * v->kernel[1] * v->stride[0] * v->stride[1] == 1 &&
               v->padding[0] == 0 && v->padding[1] == 0;
    w.by_rows = v->stride[1] > 1 && v->dilation[1] == 1;
    return w;
}

/* Each channel has a window of its own. */
static bool is_depthwise(const ng_conv_shape *s)
{
    return s->groups == s->channels && s->outputs == s->channels && s->channels > 1;
}

int64_t ng_conv_scratch(ng_dtype dtype, const ng_conv_shape *shape, bool backward)
{
    const int64_t sums = shape->images * shape->outputs;
    const conv_work w = conv_work_of(dtype, shape);
    const int64_t memory =
        is_depthwise(shape) ? ng_depthwise_scratch(&shape->windows) : w.blocks * block_bytes(&w);
    if (!backward) return memory + (w.by_rows ? whole_lines(&w, weight_size(&w)) : 0);
    if (is_depthwise(shape)) return memory + whole_lines(&w, sums);
    return memory + whole_lines(&w, w.blocks * weight_size(&w)) + whole_lines(&w, sums);
}

/* ---- A bundle of images -------------------------------------------------------------------- */

/* Element `index` of an array of the work's dtype. */
static const char *conv_in(const conv_work *w, const void *array, int64_t index)
{
    return (const char *)array + index * (int64_t)ng_dtype_bytes(w->dtype);
}

static char *conv_out(const conv_work *w, void *array, int64_t index)
{
    return (char *)array + index * (int64_t)ng_dtype_bytes(w->dtype);
}

typedef struct {
    int64_t first, count; /* images */
    int64_t places;       /* of all of them together */
    char *columns;        /* (groups, k, places), or by rows (places, groups, k) */
    char *products;       /* (outputs, places): Y or dY of more than one image; by rows Y^T */
    char *frame;
} bundle;

static bundle bundle_at(const conv_work *w, int64_t block, int64_t first)
{
    const int64_t end = ng_least((block + 1) * w->length, w->shape->images);
    bundle b = {.first = first, .count = ng_least(w->bundle, end - first)};
    b.places = b.count * w->n;
    b.columns = w->scratch + block * block_bytes(w);
    b.products = b.columns + whole_lines(w, column_size(w));
    b.frame = b.products + whole_lines(w, product_size(w));
    return b;
}

/* Copies rows of one image's outputs to its place among those of the bundle, or back. */
static void conv_copy(const conv_work *w, const char *source, int64_t from_row, char *result,
                      int64_t to_row)
{
    const int64_t bytes = (int64_t)ng_dtype_bytes(w->dtype);
    for (int64_t o = 0; o < w->shape->outputs; o++)
        memcpy(result + o * to_row * bytes, source + o * from_row * bytes, (size_t)(w->n * bytes));
}

static const char *columns_of(const conv_work *w, const bundle *b)
{
    const ng_windows *v = &w->shape->windows;
    if (w->direct) return conv_in(w, w->x, b->first * image_size(w));
    for (int64_t i = 0; i < b->count; i++) {
        const char *image = conv_in(w, w->x, (b->first + i) * image_size(w));
        if (w->by_rows)
            w->kernels->unfold_rows(v, image, b->frame,
                                    conv_out(w, b->columns, i * w->n * column_length(w)),
                                    column_length(w));
        else
            w->kernels->unfold(v, image, conv_out(w, b->columns, i * w->n), b->places);
    }
    return b->columns;
}

/* The bundle's dY. That of a single image is not copied. */
static const char *gradient_of(const conv_work *w, const bundle *b)
{
    if (w->bundle == 1) return conv_in(w, w->dy, b->first * output_size(w));
    for (int64_t i = 0; i < b->count; i++)
        conv_copy(w, conv_in(w, w->dy, (b->first + i) * output_size(w)), w->n,
                  conv_out(w, b->products, i * w->n), b->places);
    return b->products;
}

/* y (outputs, places) = b */
static void fill_bias(const conv_work *w, char *y, int64_t places)
{
    for (int64_t o = 0; o < w->shape->outputs; o++) {
        const double value =
            w->dtype == NG_F32 ? (double)((const float *)w->bias)[o] : ((const double *)w->bias)[o];
        w->kernels->fill(conv_out(w, y, o * places), places, value);
    }
}

/* A group's columns, (places, k). */
static ng_factor columns_of_group(const conv_work *w, const bundle *b, const char *columns,
                                  int64_t g)
{
    if (w->by_rows)
        return (ng_factor){.at = conv_in(w, columns, g * w->k), .row = column_length(w)};
    return (ng_factor){
        .at = conv_in(w, columns, g * w->k * b->places), .row = b->places, .transposed = true};
}

static void forward_bundle(const conv_work *w, const bundle *b)
{
    const char *columns = columns_of(w, b);
    char *y = w->bundle == 1 ? conv_out(w, w->y, b->first * output_size(w)) : b->products;
    if (w->bias) fill_bias(w, y, b->places);
    for (int64_t g = 0; g < w->shape->groups; g++)
        w->kernels->gemm(
            &(ng_product){.m = w->m,
                          .n = b->places,
                          .k = w->k,
                          .a = {.at = conv_in(w, w->weight, g * w->m * w->k), .row = w->k},
                          .b = {.at = columns_of_group(w, b, columns, g).at, .row = b->places},
                          .c = conv_out(w, y, g * w->m * b->places),
                          .c_row = b->places,
                          .accumulate = w->bias != NULL});
    for (int64_t i = 0; i < b->count && w->bundle > 1; i++)
        conv_copy(w, conv_in(w, y, i * w->n), b->places,
                  conv_out(w, w->y, (b->first + i) * output_size(w)), w->n);
}

static void forward_by_rows(const conv_work *w, const bundle *b)
{
    const int64_t outputs = w->shape->outputs;
    const char *columns = columns_of(w, b);
    for (int64_t g = 0; g < w->shape->groups; g++)
        w->kernels->gemm(
            &(ng_product){.m = b->places,
                          .n = w->m,
                          .k = w->k,
                          .a = columns_of_group(w, b, columns, g),
                          .b = {.at = conv_in(w, parts_of(w), g * w->m), .row = outputs},
                          .bias = w->bias ? conv_in(w, w->bias, g * w->m) : NULL,
                          .c = conv_out(w, b->products, g * w->m),
                          .c_row = outputs});
    for (int64_t i = 0; i < b->count; i++)
        w->kernels->transpose(conv_in(w, b->products, i * w->n * outputs), outputs, w->n, outputs,
                              conv_out(w, w->y, (b->first + i) * output_size(w)), w->n);
}

static void weight_bundle(const conv_work *w, const bundle *b, const char *dy, char *dweight,
                          bool accumulate)
{
    const char *columns = columns_of(w, b);
    for (int64_t g = 0; g < w->shape->groups; g++)
        w->kernels->gemm(
            &(ng_product){.m = w->m,
                          .n = w->k,
                          .k = b->places,
                          .a = {.at = conv_in(w, dy, g * w->m * b->places), .row = b->places},
                          .b = columns_of_group(w, b, columns, g),
                          .c = conv_out(w, dweight, g * w->m * w->k),
                          .c_row = w->k,
                          .accumulate = accumulate});
}

/* dx (+)= what its windows' columns give it. */
static void fold_columns(const conv_work *w, const bundle *b, const char *columns, char *dx)
{
    const ng_windows *v = &w->shape->windows;
    const bool add = w->to.dx.accumulate;
    for (int64_t i = 0; i < b->count; i++, dx = conv_out(w, dx, image_size(w)))
        if (w->by_rows)
            w->kernels->fold_rows(v, conv_in(w, columns, i * w->n * column_length(w)),
                                  column_length(w), b->frame, dx, add);
        else
            w->kernels->fold(v, conv_in(w, columns, i * w->n), b->places, dx, add);
}

static void input_bundle(const conv_work *w, const bundle *b, const char *dy)
{
    char *dx = conv_out(w, w->to.dx.data, b->first * image_size(w));
    char *columns = w->direct ? dx : b->columns;
    for (int64_t g = 0; g < w->shape->groups; g++) {
        const ng_factor weight = {.at = conv_in(w, w->weight, g * w->m * w->k), .row = w->k};
        const ng_factor slopes = {.at = conv_in(w, dy, g * w->m * b->places), .row = b->places};
        ng_product p = {.k = w->m, .accumulate = w->direct && w->to.dx.accumulate};
        if (w->by_rows) {
            p.m = b->places, p.n = w->k, p.a = slopes, p.b = weight;
            p.c = conv_out(w, columns, g * w->k), p.c_row = column_length(w);
        } else {
            p.m = w->k, p.n = b->places, p.a = weight, p.b = slopes;
            p.c = conv_out(w, columns, g * w->k * b->places), p.c_row = b->places;
        }
        p.a.transposed = true;
        w->kernels->gemm(&p);
    }
    if (!w->direct) fold_columns(w, b, columns, dx);
}

/* ---- Blocks of images ---------------------------------------------------------------------- */

static void conv_share(ng_span *span, const conv_work *w)
{
    if (w->shape->images == 0) return;
    ng_share(span, w, w->blocks, 1, w->shape->images * output_size(w) * w->k / 8);
}

static void conv_span(const void *arguments, int64_t begin, int64_t end)
{
    const conv_work *w = arguments;
    for (int64_t block = begin; block < end; block++) {
        const int64_t last = ng_least((block + 1) * w->length, w->shape->images);
        for (int64_t first = block * w->length; first < last; first += w->bundle) {
            const bundle b = bundle_at(w, block, first);
            if (w->by_rows)
                forward_by_rows(w, &b);
            else
                forward_bundle(w, &b);
        }
    }
}

void ng_conv(ng_dtype dtype, const ng_conv_shape *shape, const void *x, const void *weight,
             const void *bias, void *y, void *scratch)
{
    conv_work w = conv_work_of(dtype, shape);
    w.x = x, w.weight = weight, w.bias = bias, w.y = y, w.scratch = scratch;
    if (is_depthwise(shape)) {
        w.kernels->depthwise(shape, x, weight, bias, NULL, y, w.to, scratch);
        return;
    }
    if (w.by_rows)
        w.kernels->transpose(weight, w.k, shape->outputs, w.k, parts_of(&w), shape->outputs);
    conv_share(conv_span, &w);
}

static void conv_backward_block(const conv_work *w, int64_t block)
{
    char *part = conv_out(w, parts_of(w), block * weight_size(w));
    const int64_t begin = block * w->length, end = ng_least(begin + w->length, w->shape->images);
    if (begin >= end && w->to.dweight.data) w->kernels->fill(part, weight_size(w), 0);
    for (int64_t first = begin; first < end; first += w->bundle) {
        const bundle b = bundle_at(w, block, first);
        const char *dy = gradient_of(w, &b);
        if (w->to.dweight.data) weight_bundle(w, &b, dy, part, first > begin);
        if (w->to.dx.data) input_bundle(w, &b, dy);
    }
}

static void conv_backward_span(const void *arguments, int64_t begin, int64_t end)
{
    for (int64_t block = begin; block < end; block++) conv_backward_block(arguments, block);
}

static void products_backward(const conv_work *w)
{
    conv_share(conv_backward_span, w);
    if (w->to.dweight.data)
        w->kernels->sum(parts_of(w), w->to.dweight.data, 1, w->shape->images == 0 ? 0 : w->blocks,
                        weight_size(w), 1, w->to.dweight.accumulate);
}

/* dbias: the places of each image and output first, then the images. */
static void sum_bias(const conv_work *w, char *sums)
{
    const int64_t images = w->shape->images, outputs = w->shape->outputs;
    w->kernels->sum(w->dy, sums, images * outputs, w->n, 1, 1, false);
    w->kernels->sum(sums, w->to.dbias.data, 1, images, outputs, 1, w->to.dbias.accumulate);
}

void ng_conv_backward(ng_dtype dtype, const ng_conv_shape *shape, const void *x, const void *weight,
                      const void *dy, ng_conv_gradients result, void *scratch)
{
    conv_work w = conv_work_of(dtype, shape);
    w.x = x, w.weight = weight, w.dy = dy, w.to = result, w.scratch = scratch;
    if (is_depthwise(shape)) {
        w.kernels->depthwise(shape, x, weight, NULL, dy, NULL, result, scratch);
        if (result.dbias.data) sum_bias(&w, w.scratch + ng_depthwise_scratch(&shape->windows));
        return;
    }
    if (result.dx.data || result.dweight.data) products_backward(&w);
    if (result.dbias.data) sum_bias(&w, parts_of(&w) + whole_lines(&w, w.blocks * weight_size(&w)));
}
