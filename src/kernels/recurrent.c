/* A layer of a recurrent network, all its steps. With G gates,
 *
 *     gates_t (N, G H) = x_t (N, F) W_ih^T + b     one product for some steps, a chunk
 *     gates_t += h_t (N, H) W_hh^T                 one for each step
 *     h_t+1 = step_cell(gates_t, h_t)
 *
 * and back, from the last step to the first,
 *
 *     dgates_t = cell'(dh_t+1)                     dh_t += dgates_t W_hh
 *     dx = dgates W_ih    dW_ih += dgates^T x    dW_hh += dgates^T h    db += the rows' sum
 *
 * where the second line is computed for a chunk at a time, while it is in cache. GRU keeps h's
 * product apart from x's, because a gate multiplies only h's.
 *
 * Rows of a batch do not depend on each other. Threads share blocks of rows; each block goes
 * through all steps by itself. Its arrays are in the order of the steps, so that a step is one run
 * of memory. x is in the order of the batch and is copied for each chunk. Each block has its own
 * sum of the weights' gradients; these are added in order. Blocks and chunks depend on the shape
 * alone. */
#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include <string.h>

typedef struct {
    const ng_recurrent_shape *shape;
    const ng_kernels *kernels;
    int64_t bytes, width;         /* of an element; G hidden */
    int64_t block, blocks, chunk; /* rows in a block, blocks; steps in a chunk */
    const ng_recurrent_operands *in;
    const ng_recurrent_kept *kept;
    const void *bias; /* forward: what is added to x's product */
    const ng_recurrent_scratch *scratch;
    const ng_recurrent_gradients *to;
    void *y; /* or its gradient */
} recurrent_work;

enum {
    RECURRENT_SMALL = 16384, /* elements of a W_hh that is fast without packing, for a few rows */
    RECURRENT_CHUNK = 256,   /* rows of a block in all steps of a chunk */
    RECURRENT_BLOCKS = 16,   /* at most */
    RECURRENT_SUMS = 1 << 20 /* at most so many elements in all blocks' gradients of weights */
};

/* Elements of the gradients of all weights: dW_ih, dW_hh, db_ih, db_hh. */
static int64_t weights_size(const ng_recurrent_shape *s)
{
    return ng_cell_gates(s->cell) * s->hidden * (s->features + s->hidden + 2);
}

static recurrent_work recurrent_work_of(ng_dtype dtype, const ng_recurrent_shape *shape,
                                        const ng_recurrent_operands *operands,
                                        const ng_recurrent_kept *kept, const void *y)
{
    const int64_t width = ng_cell_gates(shape->cell) * shape->hidden, rows = shape->rows;
    recurrent_work w = {.shape = shape,
                        .kernels = ng_kernels_for(dtype),
                        .bytes = (int64_t)ng_dtype_bytes(dtype),
                        .width = width,
                        .in = operands,
                        .kept = kept,
                        .y = (void *)(uintptr_t)y};
    const int64_t few = width * shape->hidden <= RECURRENT_SMALL ? 16 : 64;
    const int64_t most = ng_least(RECURRENT_BLOCKS, RECURRENT_SUMS / weights_size(shape));
    w.block = most > 1 ? (rows + most - 1) / most : rows;
    if (w.block < few) w.block = rows == 0 ? few : ng_least(few, rows);
    w.blocks = rows == 0 ? 1 : (rows + w.block - 1) / w.block;
    w.chunk = ng_least(RECURRENT_CHUNK / w.block, shape->steps);
    if (w.chunk < 1) w.chunk = 1;
    return w;
}

int64_t ng_recurrent_rows(const ng_recurrent_shape *shape)
{
    const recurrent_work w = recurrent_work_of(NG_F32, shape, NULL, NULL, NULL);
    return w.blocks * w.block * w.chunk;
}

/* The gradients of each block, and of several their sum. */
int64_t ng_recurrent_parts(const ng_recurrent_shape *shape)
{
    const recurrent_work w = recurrent_work_of(NG_F32, shape, NULL, NULL, NULL);
    return (w.blocks == 1 ? 1 : w.blocks + 1) * weights_size(shape);
}

/* C = A B (+ C, or + bias), each matrix without gaps. */
static void recurrent_multiply(const recurrent_work *w, ng_product product)
{
    const ng_product p = ng_without_gaps(product);
    w->kernels->gemm(&p);
}

/* C (rows, n) = A (rows, k) B (k, n) + bias, or + C without one: of one step. */
static void multiply_step(const recurrent_work *w, int64_t rows, ng_rows a, const void *b,
                          const void *bias, ng_rows c)
{
    recurrent_multiply(w, (ng_product){.m = rows,
                                       .n = c.row,
                                       .k = a.row,
                                       .a = {.at = a.at},
                                       .b = {.at = b},
                                       .bias = bias,
                                       .c = c.at,
                                       .accumulate = !bias});
}

/* ---- Where rows are ------------------------------------------------------------------------- */

/* Rows of a batch. */
typedef struct {
    int64_t index, first, count;
} row_block;

/* Rows `row` elements apart, from element `at` of an array; none of none. */
static ng_rows rows_at(const recurrent_work *w, void *array, int64_t at, int64_t row)
{
    if (!array) return (ng_rows){NULL, 0};
    return (ng_rows){(char *)array + at * w->bytes, row};
}

/* Those of one step in an array (rows, steps, width), the order of the batch. */
static ng_rows batch_rows(const recurrent_work *w, void *array, row_block b, int64_t steps,
                          int64_t t, int64_t width)
{
    return rows_at(w, array, (b.first * steps + t) * width, steps * width);
}

/* The same in an array that has (steps, rows, width) for each block; of one step: (rows, width). */
static ng_rows kept_rows(const recurrent_work *w, void *array, row_block b, int64_t steps,
                         int64_t step, int64_t width)
{
    return rows_at(w, array, (b.first * steps + step * b.count) * width, width);
}

/* The same in an array that has (chunk, rows, width) for each block: the i-th step of a chunk. */
static ng_rows chunk_rows(const recurrent_work *w, void *array, row_block b, int64_t i,
                          int64_t width)
{
    return rows_at(w, array, (b.index * w->chunk * w->block + i * b.count) * width, width);
}

/* The states before a step; those before the one past the end are the last. */
static ng_rows state_at(const recurrent_work *w, void *states, row_block b, int64_t step)
{
    return kept_rows(w, states, b, w->shape->steps + 1, step, w->shape->hidden);
}

static ng_rows gates_at(const recurrent_work *w, void *gates, row_block b, int64_t step)
{
    return kept_rows(w, gates, b, w->shape->steps, step, w->width);
}

/* h_t of y, or its gradient: those behind the steps are the last h and c. */
static ng_rows output_at(const recurrent_work *w, row_block b, int64_t t)
{
    return batch_rows(w, w->y, b, w->shape->steps + w->shape->last, t, w->shape->hidden);
}

/* The t of a step, from the first that is taken to the last. */
static int64_t time_of(const ng_recurrent_shape *s, int64_t step)
{
    return s->reverse ? s->steps - 1 - step : step;
}

static ng_cell_step cell_step(const recurrent_work *w, row_block b, int64_t step)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_kept *kept = w->kept;
    const int64_t t = time_of(s, step);
    return (ng_cell_step){.rows = b.count,
                          .hidden = s->hidden,
                          .step = t,
                          .cell = s->cell,
                          .lengths = s->lengths ? s->lengths + b.first : NULL,
                          .gates = gates_at(w, kept->gates, b, step),
                          .product = gates_at(w, kept->product, b, step),
                          .h = state_at(w, kept->h, b, step),
                          .c = state_at(w, kept->c, b, step),
                          .h_after = state_at(w, kept->h, b, step + 1),
                          .c_after = state_at(w, kept->c, b, step + 1),
                          .y = output_at(w, b, t)};
}

/* The gradients of weights of a block, or the sum over blocks, which is behind the last. */
typedef struct {
    char *w_ih, *w_hh, *b_ih, *b_hh;
} weight_sums;

static weight_sums sums_at(const recurrent_work *w, int64_t index)
{
    const int64_t line = w->width * w->bytes;
    weight_sums sums;
    sums.w_ih = (char *)w->scratch->parts + index * weights_size(w->shape) * w->bytes;
    sums.w_hh = sums.w_ih + w->shape->features * line;
    sums.b_ih = sums.w_hh + w->shape->hidden * line;
    sums.b_hh = sums.b_ih + line;
    return sums;
}

/* to = from, rows of n elements, or 0 where that is NULL */
static void recurrent_copy(const recurrent_work *w, ng_rows from, ng_rows to, int64_t rows,
                           int64_t n)
{
    const size_t bytes = (size_t)(n * w->bytes);
    for (int64_t r = 0; r < rows && to.at; r++) {
        char *const row = (char *)to.at + r * to.row * w->bytes;
        if (from.at)
            memcpy(row, (const char *)from.at + r * from.row * w->bytes, bytes);
        else
            memset(row, 0, bytes);
    }
}

/* Steps of a block that are taken together. */
typedef struct {
    int64_t first, count;
} chunk;

/* kept->x = x of a chunk */
static const void *gather_x(const recurrent_work *w, row_block b, chunk of)
{
    const ng_recurrent_shape *s = w->shape;
    for (int64_t i = 0; i < of.count; i++)
        recurrent_copy(
            w, batch_rows(w, (void *)w->in->x, b, s->steps, time_of(s, of.first + i), s->features),
            chunk_rows(w, w->kept->x, b, i, s->features), b.count, s->features);
    return chunk_rows(w, w->kept->x, b, 0, s->features).at;
}

/* ---- Forward -------------------------------------------------------------------------------- */

static void recurrent_chunk(const recurrent_work *w, row_block b, chunk of)
{
    const ng_recurrent_kept *kept = w->kept;
    recurrent_multiply(w, (ng_product){.m = b.count * of.count,
                                       .n = w->width,
                                       .k = w->shape->features,
                                       .a = {.at = gather_x(w, b, of)},
                                       .b = {.at = w->in->w_ih, .transposed = true},
                                       .bias = w->bias,
                                       .c = gates_at(w, kept->gates, b, of.first).at});
    for (int64_t step = of.first; step < of.first + of.count; step++) {
        const ng_cell_step cell = cell_step(w, b, step);
        if (kept->product)
            multiply_step(w, b.count, cell.h, kept->weight, kept->bias, cell.product);
        else
            multiply_step(w, b.count, cell.h, kept->weight, NULL, cell.gates);
        w->kernels->step_cell(&cell);
    }
}

static void recurrent_block(const recurrent_work *w, row_block b)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_kept *kept = w->kept;
    const int64_t n = s->hidden;
    recurrent_copy(w, kept_rows(w, (void *)w->in->h0, b, 1, 0, n), state_at(w, kept->h, b, 0),
                   b.count, n);
    recurrent_copy(w, kept_rows(w, (void *)w->in->c0, b, 1, 0, n), state_at(w, kept->c, b, 0),
                   b.count, n);
    for (int64_t step = 0; step < s->steps; step += w->chunk)
        recurrent_chunk(w, b, (chunk){step, ng_least(w->chunk, s->steps - step)});
    void *const last[] = {kept->h, kept->c};
    for (int64_t i = 0; i < s->last; i++)
        recurrent_copy(w, state_at(w, last[i], b, s->steps), output_at(w, b, s->steps + i), b.count,
                       n);
}

static row_block recurrent_block_at(const recurrent_work *w, int64_t index)
{
    const int64_t first = index * w->block;
    return (row_block){index, first, ng_least(w->block, w->shape->rows - first)};
}

static void recurrent_span(const void *arguments, int64_t begin, int64_t end)
{
    const recurrent_work *w = arguments;
    for (int64_t i = begin; i < end && w->shape->rows > 0; i++)
        recurrent_block(w, recurrent_block_at(w, i));
}

/* One block alone leaves the threads to its products. */
static void share_blocks(ng_span *span, const recurrent_work *w)
{
    const ng_recurrent_shape *s = w->shape;
    if (w->blocks == 1)
        span(w, 0, 1);
    else
        ng_share(span, w, w->blocks, 1,
                 s->rows * s->steps * w->width * ((s->hidden + s->features) / 16 + 8));
}

/* What is added to x's product: both biases; for GRU h's stays apart, in kept->bias. */
static const void *input_bias(const recurrent_work *w)
{
    const void *ih = w->in->b_ih, *hh = w->in->b_hh;
    void *const bias = w->kept->bias;
    const size_t bytes = (size_t)(w->width * w->bytes);
    if (w->kept->product) {
        hh ? memcpy(bias, hh, bytes) : memset(bias, 0, bytes);
        return ih;
    }
    if (!ih || !hh) return ih ? ih : hh;
    memcpy(bias, ih, bytes);
    w->kernels->add_to(hh, bias, w->width);
    return bias;
}

/* weight (hidden, G hidden) = W_hh^T */
static void turn_weight(const recurrent_work *w)
{
    const int64_t hidden = w->shape->hidden;
    const ng_walk walk =
        ng_walk_strided(NG_SHAPE(hidden, w->width), (int64_t[NG_MAX_RANK]){1, hidden},
                        (int64_t[NG_MAX_RANK]){w->width, 1});
    ng_copy_walk(&walk, w->in->w_hh, w->kept->weight, (size_t)w->bytes);
}

void ng_recurrent(ng_dtype dtype, const ng_recurrent_shape *shape,
                  const ng_recurrent_operands *operands, const ng_recurrent_kept *kept, void *y)
{
    recurrent_work w = recurrent_work_of(dtype, shape, operands, kept, y);
    w.bias = input_bias(&w);
    turn_weight(&w);
    share_blocks(recurrent_span, &w);
}

/* ---- Backward ------------------------------------------------------------------------------- */

/* dx of a chunk, by way of kept->x. */
static void input_gradient(const recurrent_work *w, row_block b, chunk of, const void *dgates)
{
    const ng_recurrent_shape *s = w->shape;
    const int64_t n = s->features;
    const ng_slot to = w->to->dx;
    recurrent_multiply(w, (ng_product){.m = b.count * of.count,
                                       .n = n,
                                       .k = w->width,
                                       .a = {.at = dgates},
                                       .b = {.at = w->in->w_ih},
                                       .c = chunk_rows(w, w->kept->x, b, 0, n).at});
    for (int64_t i = 0; i < of.count; i++) {
        const ng_rows from = chunk_rows(w, w->kept->x, b, i, n);
        const ng_rows dx = batch_rows(w, to.data, b, s->steps, time_of(s, of.first + i), n);
        for (int64_t r = 0; r < b.count; r++)
            w->kernels->axpy(1, (char *)from.at + r * from.row * w->bytes,
                             (char *)dx.at + r * dx.row * w->bytes, n, to.accumulate);
    }
}

/* From dgates and dproduct of a chunk to dx, and onto the block's gradients of weights. */
static void gradients_of_chunk(const recurrent_work *w, row_block b, chunk of)
{
    const ng_recurrent_scratch *scratch = w->scratch;
    const int64_t rows = b.count * of.count;
    const void *dgates = chunk_rows(w, scratch->dgates, b, 0, w->width).at;
    const void *dproduct = chunk_rows(w, scratch->dproduct, b, 0, w->width).at;
    if (!dproduct) dproduct = dgates;
    const weight_sums sums = sums_at(w, b.index);
    ng_product weight = {.m = w->width, .k = rows, .a = {.transposed = true}, .accumulate = true};
    if (w->to->dw_ih.data) {
        weight.n = w->shape->features, weight.a.at = dgates, weight.c = sums.w_ih;
        weight.b.at = gather_x(w, b, of);
        recurrent_multiply(w, weight);
    }
    if (w->to->dw_hh.data) {
        weight.n = w->shape->hidden, weight.a.at = dproduct, weight.c = sums.w_hh;
        weight.b.at = state_at(w, w->kept->h, b, of.first).at;
        recurrent_multiply(w, weight);
    }
    if (w->to->db_ih.data) w->kernels->sum(dgates, sums.b_ih, 1, rows, w->width, 1, true);
    if (w->to->db_hh.data) w->kernels->sum(dproduct, sums.b_hh, 1, rows, w->width, 1, true);
    if (w->to->dx.data) input_gradient(w, b, of, dgates);
}

static void recurrent_backward_chunk(const recurrent_work *w, row_block b, chunk of)
{
    const ng_recurrent_scratch *scratch = w->scratch;
    for (int64_t i = of.count - 1; i >= 0; i--) {
        ng_cell_step cell = cell_step(w, b, of.first + i);
        cell.dgates = chunk_rows(w, scratch->dgates, b, i, w->width);
        cell.dproduct = chunk_rows(w, scratch->dproduct, b, i, w->width);
        cell.dh = kept_rows(w, scratch->dh, b, 1, 0, w->shape->hidden);
        cell.dc = kept_rows(w, scratch->dc, b, 1, 0, w->shape->hidden);
        w->kernels->step_cell_backward(&cell);
        multiply_step(w, b.count, cell.dproduct.at ? cell.dproduct : cell.dgates, w->in->w_hh, NULL,
                      cell.dh);
    }
    gradients_of_chunk(w, b, of);
}

static void recurrent_backward_block(const recurrent_work *w, row_block b)
{
    const ng_recurrent_shape *s = w->shape;
    void *const last[] = {w->scratch->dh, w->scratch->dc};
    for (int64_t i = 0; i < 2; i++)
        recurrent_copy(w, i < s->last ? output_at(w, b, s->steps + i) : (ng_rows){NULL, 0},
                       kept_rows(w, last[i], b, 1, 0, s->hidden), b.count, s->hidden);
    for (int64_t end = s->steps, count; end > 0; end -= count) {
        count = end - (end - 1) / w->chunk * w->chunk;
        recurrent_backward_chunk(w, b, (chunk){end - count, count});
    }
}

static void recurrent_backward_span(const void *arguments, int64_t begin, int64_t end)
{
    const recurrent_work *w = arguments;
    for (int64_t i = begin; i < end; i++) {
        memset(sums_at(w, i).w_ih, 0, (size_t)(weights_size(w->shape) * w->bytes));
        if (w->shape->rows > 0) recurrent_backward_block(w, recurrent_block_at(w, i));
    }
}

/* to (+)= from */
static void put_gradient(const recurrent_work *w, const void *from, ng_slot to, int64_t count)
{
    if (to.data) w->kernels->axpy(1, from, to.data, count, to.accumulate);
}

void ng_recurrent_backward(ng_dtype dtype, const ng_recurrent_shape *shape,
                           const ng_recurrent_operands *operands, const ng_recurrent_kept *kept,
                           const void *dy, const ng_recurrent_scratch *scratch,
                           const ng_recurrent_gradients *to)
{
    recurrent_work w = recurrent_work_of(dtype, shape, operands, kept, dy);
    w.scratch = scratch, w.to = to;
    share_blocks(recurrent_backward_span, &w);
    const weight_sums sums = sums_at(&w, w.blocks == 1 ? 0 : w.blocks);
    const int64_t states = shape->rows * shape->hidden;
    if (w.blocks > 1)
        w.kernels->sum(scratch->parts, sums.w_ih, 1, w.blocks, weights_size(shape), 1, false);
    put_gradient(&w, sums.w_ih, to->dw_ih, w.width * shape->features);
    put_gradient(&w, sums.w_hh, to->dw_hh, w.width * shape->hidden);
    put_gradient(&w, sums.b_ih, to->db_ih, w.width);
    put_gradient(&w, sums.b_hh, to->db_hh, w.width);
    put_gradient(&w, scratch->dh, to->dh0, states);
    put_gradient(&w, scratch->dc, to->dc0, states);
}
