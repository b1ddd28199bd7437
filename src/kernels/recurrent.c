/* A layer of a recurrent network, all its steps. With G gates, and everything in the order of the
 * batch, so that nothing is moved about:
 *
 *     gates (N T, G H) = x (N T, F) W_ih^T + b     one product for all steps
 *     gates_t (N, G H) += h_t (N, H) W_hh^T        a product for each, rows T G H apart
 *     h_t+1 = cell(gates_t, h_t)
 *
 * and back, from the last step to the first,
 *
 *     dgates_t = cell'(dh_t+1)                     dh_t += dgates_t W_hh
 *     dx = dgates W_ih    dW_ih = dgates^T x    dW_hh = dgates^T h    db = the rows' sum
 *
 * In GRU h's product is kept apart from x's, because a gate stands between them.
 *
 * No row of a batch looks at another one: blocks of rows, small enough for what they have computed
 * to stay in cache, go through all of this without waiting for each other. Runs of blocks, parts,
 * are shared among threads; each has its own sum of the weights' gradients, and these are added in
 * order. Blocks and parts depend on the shape alone. */
#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include <string.h>

typedef struct {
    const ng_recurrent_shape *shape;
    const ng_kernels *kernels;
    ng_dtype dtype;
    int64_t bytes, width; /* of an element; G hidden */
    int64_t block, parts; /* rows in a block; parts */
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
    const int64_t blocks = (shape->rows + w.block - 1) / w.block;
    w.parts = ng_least(ng_least(blocks, PARTS), PART_ELEMENTS / part_size(shape));
    if (w.parts < 1) w.parts = 1;
    return w;
}

int64_t ng_recurrent_parts(const ng_recurrent_shape *shape)
{
    return work_of(NG_F32, shape, NULL, NULL, NULL).parts * part_size(shape);
}

/* C = A B (+ C, or + bias), each matrix without gaps. A part that is not the only one has a thread
 * to itself. */
static void multiply(const recurrent_work *w, ng_product p)
{
    p.a.row = p.a.transposed ? p.m : p.k;
    p.b.row = p.b.transposed ? p.k : p.n;
    p.c_row = p.n;
    if (w->parts > 1)
        w->kernels->gemm(&p);
    else
        ng_gemm(w->dtype, &p);
}

/* C (m, n) += A (m, k) B (k, n) of one step. */
static void multiply_add(const recurrent_work *w, ng_rows a, const void *b, ng_rows c, int64_t m,
                         int64_t n, int64_t k)
{
    w->kernels->gemm(&(ng_product){.m = m,
                                   .n = n,
                                   .k = k,
                                   .a = {.at = a.at, .row = a.row},
                                   .b = {.at = b, .row = n},
                                   .c = c.at,
                                   .c_row = c.row,
                                   .accumulate = true});
}

/* ---- Where the blocks' rows are ------------------------------------------------------------- */

/* Rows from `first` of an array (rows, `row` elements), from element `at` of each. */
static ng_rows rows_at(const recurrent_work *w, void *array, int64_t first, int64_t row, int64_t at)
{
    if (!array) return (ng_rows){NULL, 0};
    return (ng_rows){(char *)array + (first * row + at) * w->bytes, row};
}

/* Of an array (rows, steps, width), those of step t. */
static ng_rows step_of(const recurrent_work *w, void *array, int64_t first, int64_t t,
                       int64_t width)
{
    return rows_at(w, array, first, w->shape->steps * width, t * width);
}

/* The states before step t, or the last ones where t is past the end on either side. */
static ng_rows state_of(const recurrent_work *w, void *states, void *last, int64_t first, int64_t t)
{
    if (t >= 0 && t < w->shape->steps) return step_of(w, states, first, t, w->shape->hidden);
    return rows_at(w, last, first, w->shape->hidden, 0);
}

/* h_t of y, or its gradient: those behind the steps are the last h and c. */
static ng_rows output_of(const recurrent_work *w, int64_t first, int64_t t)
{
    const int64_t hidden = w->shape->hidden;
    return rows_at(w, w->y, first, (w->shape->steps + w->shape->last) * hidden, t * hidden);
}

/* The t of a step, from the first that is taken to the last; past it, one beyond the end. */
static int64_t time_of(const ng_recurrent_shape *s, int64_t step)
{
    return s->reverse ? s->steps - 1 - step : step;
}

static int64_t rows_in(const recurrent_work *w, int64_t first)
{
    const int64_t left = w->shape->rows - first;
    return left < w->block ? left : w->block;
}

static ng_cell_step cell_step(const recurrent_work *w, int64_t first, int64_t step)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_kept *kept = w->kept;
    const int64_t t = time_of(s, step), next = time_of(s, step + 1);
    return (ng_cell_step){.rows = rows_in(w, first),
                          .hidden = s->hidden,
                          .step = t,
                          .lengths = s->lengths ? s->lengths + first : NULL,
                          .gates = step_of(w, kept->gates, first, t, w->width),
                          .product = step_of(w, kept->product, first, t, w->width),
                          .h = state_of(w, kept->h, kept->h_last, first, t),
                          .c = state_of(w, kept->c, kept->c_last, first, t),
                          .h_after = state_of(w, kept->h, kept->h_last, first, next),
                          .c_after = state_of(w, kept->c, kept->c_last, first, next),
                          .y = output_of(w, first, t)};
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

/* to = from, or 0 where that is NULL */
static void copy_rows(const recurrent_work *w, ng_rows from, ng_rows to, int64_t rows)
{
    const size_t bytes = (size_t)(w->shape->hidden * w->bytes);
    for (int64_t r = 0; r < rows && to.at; r++) {
        char *const row = (char *)to.at + r * to.row * w->bytes;
        if (from.at)
            memcpy(row, (const char *)from.at + r * from.row * w->bytes, bytes);
        else
            memset(row, 0, bytes);
    }
}

/* ---- Forward -------------------------------------------------------------------------------- */

static void take_step(const recurrent_work *w, const ng_cell_step *s)
{
    switch (w->shape->cell) {
    case NG_CELL_TANH: w->kernels->rnn_cell(s, false); break;
    case NG_CELL_RELU: w->kernels->rnn_cell(s, true); break;
    case NG_CELL_GRU: w->kernels->gru_cell(s); break;
    case NG_CELL_LSTM: w->kernels->lstm_cell(s); break;
    }
}

static void forward_block(const recurrent_work *w, int64_t first)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_kept *kept = w->kept;
    const int64_t rows = rows_in(w, first), start = time_of(s, 0);
    multiply(w, (ng_product){.m = rows * s->steps,
                             .n = w->width,
                             .k = s->features,
                             .a = {.at = step_of(w, (void *)w->in->x, first, 0, s->features).at},
                             .b = {.at = w->in->w_ih, .transposed = true},
                             .bias = w->bias,
                             .c = step_of(w, kept->gates, first, 0, w->width).at});
    const ng_rows h0 = rows_at(w, (void *)w->in->h0, first, s->hidden, 0);
    const ng_rows c0 = rows_at(w, (void *)w->in->c0, first, s->hidden, 0);
    copy_rows(w, h0, state_of(w, kept->h, kept->h_last, first, start), rows);
    copy_rows(w, c0, state_of(w, kept->c, kept->c_last, first, start), rows);
    for (int64_t step = 0; step < s->steps; step++) {
        const ng_cell_step cell = cell_step(w, first, step);
        multiply_add(w, cell.h, kept->weight, kept->product ? cell.product : cell.gates, rows,
                     w->width, s->hidden);
        take_step(w, &cell);
    }
    const ng_rows h = rows_at(w, kept->h_last, first, s->hidden, 0);
    const ng_rows c = rows_at(w, kept->c_last, first, s->hidden, 0);
    if (s->last > 0) copy_rows(w, h, output_of(w, first, s->steps), rows);
    if (s->last > 1) copy_rows(w, c, output_of(w, first, s->steps + 1), rows);
}

/* The rows of a part: from first to below end. */
static int64_t first_row(const recurrent_work *w, int64_t part)
{
    const int64_t blocks = (w->shape->rows + w->block - 1) / w->block;
    return ng_least((blocks + w->parts - 1) / w->parts * part * w->block, w->shape->rows);
}

static void forward_span(const void *arguments, int64_t begin, int64_t end)
{
    const recurrent_work *w = arguments;
    const int64_t last = first_row(w, end);
    for (int64_t first = first_row(w, begin); first < last; first += w->block)
        forward_block(w, first);
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

/* What is added to x's product: both biases but for GRU, where h's has its own. */
static const void *input_bias(const recurrent_work *w)
{
    const void *ih = w->in->b_ih, *hh = w->kept->product ? NULL : w->in->b_hh;
    if (!ih || !hh) return ih ? ih : hh;
    memcpy(w->kept->bias, ih, (size_t)(w->width * w->bytes));
    w->kernels->add_to(hh, w->kept->bias, w->width);
    return w->kept->bias;
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

/* product (rows steps, G hidden) = b_hh */
static void fill_product(const recurrent_work *w)
{
    const int64_t count = w->shape->rows * w->shape->steps;
    const size_t bytes = (size_t)(w->width * w->bytes);
    char *to = w->kept->product;
    if (!w->in->b_hh) memset(to, 0, (size_t)count * bytes);
    for (int64_t i = 0; i < count && w->in->b_hh; i++, to += bytes) memcpy(to, w->in->b_hh, bytes);
}

void ng_recurrent(ng_dtype dtype, const ng_recurrent_shape *shape,
                  const ng_recurrent_operands *operands, const ng_recurrent_kept *kept, void *y)
{
    recurrent_work w = work_of(dtype, shape, operands, kept, y);
    w.bias = input_bias(&w);
    turn_weight(&w);
    if (kept->product) fill_product(&w);
    share_parts(forward_span, &w);
}

/* ---- Backward ------------------------------------------------------------------------------- */

static void take_step_back(const recurrent_work *w, const ng_cell_step *s)
{
    switch (w->shape->cell) {
    case NG_CELL_TANH: w->kernels->rnn_cell_backward(s, false); break;
    case NG_CELL_RELU: w->kernels->rnn_cell_backward(s, true); break;
    case NG_CELL_GRU: w->kernels->gru_cell_backward(s); break;
    case NG_CELL_LSTM: w->kernels->lstm_cell_backward(s); break;
    }
}

/* From dgates and dproduct of a block to dx, and onto the part's gradients of weights, biases. */
static void gradients_of_block(const recurrent_work *w, int64_t part, int64_t first, bool add)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_scratch *scratch = w->scratch;
    const int64_t rows = rows_in(w, first) * s->steps;
    const void *dgates = step_of(w, scratch->dgates, first, 0, w->width).at;
    const void *dproduct = step_of(w, scratch->dproduct, first, 0, w->width).at;
    if (!dproduct) dproduct = dgates;
    const void *x = step_of(w, (void *)w->in->x, first, 0, s->features).at;
    const void *h = step_of(w, w->kept->h, first, 0, s->hidden).at;
    if (w->to->dx.data)
        multiply(w, (ng_product){.m = rows,
                                 .n = s->features,
                                 .k = w->width,
                                 .a = {.at = dgates},
                                 .b = {.at = w->in->w_ih},
                                 .c = step_of(w, w->to->dx.data, first, 0, s->features).at,
                                 .accumulate = w->to->dx.accumulate});
    ng_product weight = {.m = w->width, .k = rows, .a = {.transposed = true}, .accumulate = add};
    weight.n = s->features, weight.a.at = dgates, weight.b.at = x;
    weight.c = part_of(w, DW_IH, part);
    if (w->to->dw_ih.data) multiply(w, weight);
    weight.n = s->hidden, weight.a.at = dproduct, weight.b.at = h;
    weight.c = part_of(w, DW_HH, part);
    if (w->to->dw_hh.data) multiply(w, weight);
    if (w->to->db_ih.data)
        w->kernels->sum(dgates, part_of(w, DB_IH, part), 1, rows, w->width, 1, add);
    if (w->to->db_hh.data)
        w->kernels->sum(dproduct, part_of(w, DB_HH, part), 1, rows, w->width, 1, add);
}

static void backward_block(const recurrent_work *w, int64_t first)
{
    const ng_recurrent_shape *s = w->shape;
    const ng_recurrent_scratch *scratch = w->scratch;
    const ng_rows none = {NULL, 0};
    const int64_t rows = rows_in(w, first);
    const ng_rows dh = rows_at(w, scratch->dh, first, s->hidden, 0);
    const ng_rows dc = rows_at(w, scratch->dc, first, s->hidden, 0);
    copy_rows(w, s->last > 0 ? output_of(w, first, s->steps) : none, dh, rows);
    copy_rows(w, s->last > 1 ? output_of(w, first, s->steps + 1) : none, dc, rows);
    for (int64_t step = s->steps - 1; step >= 0; step--) {
        const int64_t t = time_of(s, step);
        ng_cell_step cell = cell_step(w, first, step);
        cell.dgates = step_of(w, scratch->dgates, first, t, w->width);
        cell.dproduct = step_of(w, scratch->dproduct, first, t, w->width);
        cell.dh = dh, cell.dc = dc;
        take_step_back(w, &cell);
        multiply_add(w, scratch->dproduct ? cell.dproduct : cell.dgates, w->in->w_hh, dh, rows,
                     s->hidden, w->width);
    }
}

static void clear_part(const recurrent_work *w, int64_t part)
{
    for (kind k = DW_IH; k < KINDS; k++)
        memset(part_of(w, k, part), 0, (size_t)(kind_size(w, k) * w->bytes));
}

static void backward_span(const void *arguments, int64_t begin, int64_t end)
{
    const recurrent_work *w = arguments;
    for (int64_t part = begin; part < end; part++) {
        const int64_t start = first_row(w, part), last = first_row(w, part + 1);
        if (start == last) clear_part(w, part);
        for (int64_t first = start; first < last; first += w->block) {
            backward_block(w, first);
            gradients_of_block(w, part, first, first > start);
        }
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
    add_parts(&w, DB_HH, to->db_hh);
    state_gradient(&w, scratch->dh, to->dh0);
    state_gradient(&w, scratch->dc, to->dc0);
}
