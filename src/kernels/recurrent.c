/* A layer of a recurrent network, all its steps. With G gates,
 *
 *     gates_t (N, G H) = x_t (N, F) W_ih^T + b     one product for some steps, a chunk
 *     gates_t += h_t (N, H) W_hh^T                 one for each step
 *     h_t+1 = cell(gates_t, h_t)
 *
 * and back, from the last step to the first,
 *
 *     dgates_t = cell'(dh_t+1)                     dh_t += dgates_t W_hh
 *     dx = dgates W_ih    dW_ih += dgates^T x    dW_hh += dgates^T h    db += the rows' sum
 *
 * the second line for a chunk at a time, as long as it is in cache. In GRU h's product is kept
 * apart from x's, because a gate stands between them.
 *
 * No row of a batch looks at another one: blocks of rows go through all of this without waiting for
 * each other. What a block computes stands in the order of its steps, each of which so is one run
 * of memory; what it reads of x, in the order of the batch, is brought together for each chunk.
 * Runs of blocks, parts, are shared among threads; each has its own sum of the weights' gradients,
 * and these are added in order. Blocks, chunks and parts depend on the shape alone. */
#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include <string.h>

typedef struct {
    const ng_recurrent_shape *shape;
    const ng_kernels *kernels;
    ng_dtype dtype;
    int64_t bytes, width; /* of an element; G hidden */
    int64_t block, chunk; /* rows, steps */
    int64_t parts;
    const ng_recurrent_operands *in;
    const ng_recurrent_kept *kept;
    const void *bias; /* forward: what is added to x's product */
    const ng_recurrent_scratch *scratch;
    const ng_recurrent_gradients *to;
    void *y; /* or its gradient */
} recurrent_work;

/* A product of so few rows with a small W_hh reads it as it stands in cache; a large one is worth
 * packing for many rows. */
#define SMALL_WEIGHT 16384

/* Of a block in all steps of a chunk: the terms that a weight's gradient gets at once. */
#define CHUNK_ROWS 256

/* At most so many parts, and elements in all their gradients of weights together. */
#define PARTS 16
#define PART_ELEMENTS (INT64_C(1) << 20)

static int64_t part_size(const ng_recurrent_shape *s)
{
    return ng_cell_gates(s->cell) * s->hidden * (s->features + s->hidden + 2);
}

static recurrent_work work_of(ng_dtype dtype, const ng_recurrent_shape *shape,
                              const ng_recurrent_operands *operands, const ng_recurrent_kept *kept,
                              const void *y)
{
    const int64_t width = ng_cell_gates(shape->cell) * shape->hidden;
    recurrent_work w = {.shape = shape,
                        .kernels = ng_kernels_for(dtype),
                        .dtype = dtype,
                        .bytes = (int64_t)ng_dtype_bytes(dtype),
                        .width = width,
                        .block = width * shape->hidden <= SMALL_WEIGHT ? 16 : 64,
                        .in = operands,
                        .kept = kept,
                        .y = (void *)y};
    if (shape->rows > 0) w.block = ng_least(w.block, shape->rows);
    w.chunk = ng_least(CHUNK_ROWS / w.block, shape->steps);
    const int64_t blocks = (shape->rows + w.block - 1) / w.block;
    w.parts = ng_least(ng_least(blocks, PARTS), PART_ELEMENTS / part_size(shape));
    if (w.parts < 1) w.parts = 1;
    return w;
}

int64_t ng_recurrent_rows(const ng_recurrent_shape *shape)
{
    const recurrent_work w = work_of(NG_F32, shape, NULL, NULL, NULL);
    return w.parts * w.block * w.chunk;
}

int64_t ng_recurrent_parts(const ng_recurrent_shape *shape)
{
    return work_of(NG_F32, shape, NULL, NULL, NULL).parts * part_size(shape);
}

/* C = A B (+ C, or + bias), each matrix without gaps. */
static void multiply(const recurrent_work *w, ng_product p)
{
    p.a.row = p.a.transposed ? p.m : p.k;
    p.b.row = p.b.transposed ? p.k : p.n;
    p.c_row = p.n;
    w->kernels->gemm(&p);
}

/* C (rows, n) = A (rows, k) B (k, n) + bias, or + C without one: of one step, without gaps. */
static void multiply_step(const recurrent_work *w, int64_t rows, ng_rows a, const void *b,
                          const void *bias, ng_rows c)
{
    w->kernels->gemm(&(ng_product){.m = rows,
                                   .n = c.row,
                                   .k = a.row,
                                   .a = {.at = a.at, .row = a.row},
                                   .b = {.at = b, .row = c.row},
                                   .bias = bias,
                                   .c = c.at,
                                   .c_row = c.row,
                                   .accumulate = !bias});
}

/* ---- Where rows are ------------------------------------------------------------------------- */

/* Rows of a batch, and the part that has them. */
typedef struct {
    int64_t part, first, count;
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

/* The same in an array that has (chunk, rows, width) for each part: the i-th step of a chunk. */
static ng_rows chunk_rows(const recurrent_work *w, void *array, row_block b, int64_t i,
                          int64_t width)
{
    return rows_at(w, array, (b.part * w->chunk * w->block + i * b.count) * width, width);
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

/* What takes a step of the cell, or goes back over it. */
typedef void step_kernel(const ng_cell_step *step);
static step_kernel *kernel_of(const recurrent_work *w, bool back)
{
    const ng_kernels *k = w->kernels;
    switch (w->shape->cell) {
    case NG_CELL_GRU: return back ? k->gru_cell_backward : k->gru_cell;
    case NG_CELL_LSTM: return back ? k->lstm_cell_backward : k->lstm_cell;
    default: return back ? k->rnn_cell_backward : k->rnn_cell;
    }
}

static ng_cell_step cell_step(const recurrent_work *w, row_block b, int64_t step)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_kept *kept = w->kept;
    const int64_t t = time_of(s, step);
    return (ng_cell_step){.rows = b.count,
                          .hidden = s->hidden,
                          .step = t,
                          .relu = s->cell == NG_CELL_RELU,
                          .lengths = s->lengths ? s->lengths + b.first : NULL,
                          .gates = gates_at(w, kept->gates, b, step),
                          .product = gates_at(w, kept->product, b, step),
                          .h = state_at(w, kept->h, b, step),
                          .c = state_at(w, kept->c, b, step),
                          .h_after = state_at(w, kept->h, b, step + 1),
                          .c_after = state_at(w, kept->c, b, step + 1),
                          .y = output_at(w, b, t)};
}

/* The gradients that parts sum up, and what one of them has of each. */
typedef enum { DW_IH, DW_HH, DB_IH, DB_HH, KINDS } kind;

static int64_t kind_size(const recurrent_work *w, kind k)
{
    return w->width * (k == DW_IH ? w->shape->features : k == DW_HH ? w->shape->hidden : 1);
}

static void *part_of(const recurrent_work *w, kind k, int64_t part)
{
    int64_t at = part * kind_size(w, k);
    for (kind before = DW_IH; before < k; before++) at += w->parts * kind_size(w, before);
    return (char *)w->scratch->parts + at * w->bytes;
}

/* to = from, rows of n elements, or 0 where that is NULL */
static void copy_rows(const recurrent_work *w, ng_rows from, ng_rows to, int64_t rows, int64_t n)
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
        copy_rows(
            w, batch_rows(w, (void *)w->in->x, b, s->steps, time_of(s, of.first + i), s->features),
            chunk_rows(w, w->kept->x, b, i, s->features), b.count, s->features);
    return chunk_rows(w, w->kept->x, b, 0, s->features).at;
}

/* ---- Forward -------------------------------------------------------------------------------- */

static void forward_chunk(const recurrent_work *w, row_block b, chunk of)
{
    const ng_recurrent_kept *kept = w->kept;
    multiply(w, (ng_product){.m = b.count * of.count,
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
        kernel_of(w, false)(&cell);
    }
}

static void forward_block(const recurrent_work *w, row_block b)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_kept *kept = w->kept;
    const int64_t n = s->hidden;
    copy_rows(w, kept_rows(w, (void *)w->in->h0, b, 1, 0, n), state_at(w, kept->h, b, 0), b.count,
              n);
    copy_rows(w, kept_rows(w, (void *)w->in->c0, b, 1, 0, n), state_at(w, kept->c, b, 0), b.count,
              n);
    for (int64_t step = 0; step < s->steps; step += w->chunk)
        forward_chunk(w, b, (chunk){step, ng_least(w->chunk, s->steps - step)});
    void *const last[] = {kept->h, kept->c};
    for (int64_t i = 0; i < s->last; i++)
        copy_rows(w, state_at(w, last[i], b, s->steps), output_at(w, b, s->steps + i), b.count, n);
}

/* The rows of a part: from first to below end. */
static int64_t first_row(const recurrent_work *w, int64_t part)
{
    const int64_t blocks = (w->shape->rows + w->block - 1) / w->block;
    return ng_least((blocks + w->parts - 1) / w->parts * part * w->block, w->shape->rows);
}

/* The part's block from row `first`. */
static row_block block_from(const recurrent_work *w, int64_t part, int64_t first)
{
    return (row_block){part, first, ng_least(w->block, w->shape->rows - first)};
}

static void forward_span(const void *arguments, int64_t begin, int64_t end)
{
    const recurrent_work *w = arguments;
    for (int64_t part = begin; part < end; part++)
        for (int64_t row = first_row(w, part); row < first_row(w, part + 1); row += w->block)
            forward_block(w, block_from(w, part, row));
}

static void share_parts(ng_span *span, const recurrent_work *w)
{
    const ng_recurrent_shape *s = w->shape;
    if (w->parts == 1)
        span(w, 0, 1);
    else
        ng_share(span, w, w->parts, 1,
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
    recurrent_work w = work_of(dtype, shape, operands, kept, y);
    w.bias = input_bias(&w);
    turn_weight(&w);
    share_parts(forward_span, &w);
}

/* ---- Backward ------------------------------------------------------------------------------- */

/* dx of a chunk, by way of kept->x. */
static void input_gradient(const recurrent_work *w, row_block b, chunk of, const void *dgates)
{
    const ng_recurrent_shape *s = w->shape;
    const int64_t n = s->features;
    const ng_slot to = w->to->dx;
    multiply(w, (ng_product){.m = b.count * of.count,
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

/* From dgates and dproduct of a chunk to dx, and onto the part's gradients of weights, biases. */
static void gradients_of_chunk(const recurrent_work *w, row_block b, chunk of)
{
    const ng_recurrent_scratch *scratch = w->scratch;
    const int64_t rows = b.count * of.count;
    const void *dgates = chunk_rows(w, scratch->dgates, b, 0, w->width).at;
    const void *dproduct = chunk_rows(w, scratch->dproduct, b, 0, w->width).at;
    if (!dproduct) dproduct = dgates;
    ng_product weight = {.m = w->width, .k = rows, .a = {.transposed = true}, .accumulate = true};
    weight.n = w->shape->features, weight.a.at = dgates, weight.c = part_of(w, DW_IH, b.part);
    if (w->to->dw_ih.data) {
        weight.b.at = gather_x(w, b, of);
        multiply(w, weight);
    }
    weight.n = w->shape->hidden, weight.a.at = dproduct, weight.c = part_of(w, DW_HH, b.part);
    weight.b.at = state_at(w, w->kept->h, b, of.first).at;
    if (w->to->dw_hh.data) multiply(w, weight);
    if (w->to->db_ih.data || w->to->db_hh.data)
        w->kernels->sum(dgates, part_of(w, DB_IH, b.part), 1, rows, w->width, 1, true);
    if (w->to->db_hh.data && dproduct != dgates)
        w->kernels->sum(dproduct, part_of(w, DB_HH, b.part), 1, rows, w->width, 1, true);
    if (w->to->dx.data) input_gradient(w, b, of, dgates);
}

static void backward_chunk(const recurrent_work *w, row_block b, chunk of)
{
    const ng_recurrent_scratch *scratch = w->scratch;
    for (int64_t i = of.count - 1; i >= 0; i--) {
        ng_cell_step cell = cell_step(w, b, of.first + i);
        cell.dgates = chunk_rows(w, scratch->dgates, b, i, w->width);
        cell.dproduct = chunk_rows(w, scratch->dproduct, b, i, w->width);
        cell.dh = kept_rows(w, scratch->dh, b, 1, 0, w->shape->hidden);
        cell.dc = kept_rows(w, scratch->dc, b, 1, 0, w->shape->hidden);
        kernel_of(w, true)(&cell);
        multiply_step(w, b.count, cell.dproduct.at ? cell.dproduct : cell.dgates, w->in->w_hh, NULL,
                      cell.dh);
    }
    gradients_of_chunk(w, b, of);
}

static void backward_block(const recurrent_work *w, row_block b)
{
    const ng_recurrent_shape *s = w->shape;
    void *const last[] = {w->scratch->dh, w->scratch->dc};
    for (int64_t i = 0; i < 2; i++)
        copy_rows(w, i < s->last ? output_at(w, b, s->steps + i) : (ng_rows){NULL, 0},
                  kept_rows(w, last[i], b, 1, 0, s->hidden), b.count, s->hidden);
    for (int64_t end = s->steps, count; end > 0; end -= count) {
        count = end - (end - 1) / w->chunk * w->chunk;
        backward_chunk(w, b, (chunk){end - count, count});
    }
}

static void backward_span(const void *arguments, int64_t begin, int64_t end)
{
    const recurrent_work *w = arguments;
    for (int64_t part = begin; part < end; part++) {
        for (kind k = DW_IH; k < KINDS; k++)
            memset(part_of(w, k, part), 0, (size_t)(kind_size(w, k) * w->bytes));
        for (int64_t row = first_row(w, part); row < first_row(w, part + 1); row += w->block)
            backward_block(w, block_from(w, part, row));
    }
}

static void add_parts(const recurrent_work *w, kind k, ng_slot to)
{
    if (to.data)
        w->kernels->sum(part_of(w, k, 0), to.data, 1, w->parts, kind_size(w, k), 1, to.accumulate);
}

static void state_gradient(const recurrent_work *w, const void *from, ng_slot to)
{
    const int64_t count = w->shape->rows * w->shape->hidden;
    if (to.data) w->kernels->axpy(1, from, to.data, count, to.accumulate);
}

void ng_recurrent_backward(ng_dtype dtype, const ng_recurrent_shape *shape,
                           const ng_recurrent_operands *operands, const ng_recurrent_kept *kept,
                           const void *dy, const ng_recurrent_scratch *scratch,
                           const ng_recurrent_gradients *gradients)
{
    recurrent_work w = work_of(dtype, shape, operands, kept, dy);
    const ng_recurrent_gradients *to = gradients;
    w.scratch = scratch, w.to = to;
    share_parts(backward_span, &w);
    add_parts(&w, DW_IH, to->dw_ih);
    add_parts(&w, DW_HH, to->dw_hh);
    add_parts(&w, DB_IH, to->db_ih);
    add_parts(&w, scratch->dproduct ? DB_HH : DB_IH, to->db_hh);
    state_gradient(&w, scratch->dh, to->dh0);
    state_gradient(&w, scratch->dc, to->dc0);
}
