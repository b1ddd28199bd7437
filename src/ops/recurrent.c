/* Recurrent layers, all steps of one direction: rnn, gru, lstm.
 *
 * Where last states are wanted, the kernels (kernels/recurrent.c) append h, and of an LSTM c, to
 * the steps of y: y (N, T + 2, H), of which the results are slices. So one tensor has all
 * gradients. */
#include "ops/recurrent.h"
#include "ops/op.h"
#include <math.h>

enum { X, WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH, H0, C0, LENGTHS, INPUTS };

typedef struct {
    ng_recurrent_shape shape;
    ng_recurrent_kept kept;
} recurrent_attributes;

/* ---- Lengths -------------------------------------------------------------------------------- */

/* Whether all elements are finite, and so small that what is computed from them is finite too. */
static bool is_harmless(const ng_tensor *x, int64_t begin, int64_t end)
{
    const double most = x->dtype == NG_F32 ? 0x1p60 : 0x1p500;
    for (int64_t i = begin; i < end; i++)
        if (!(fabs(ng_tensor_load(x, i)) < most)) return false;
    return true;
}

/* (N, T): 1 at the steps before the length of a row. */
static ng_tensor *taken_steps(ng_tape *tape, const ng_tensor *lengths, ng_dtype dtype,
                              int64_t steps)
{
    const int64_t *length = lengths->data;
    ng_tensor *mask = ng_result(tape, dtype, NG_SHAPE(lengths->size, steps));
    for (int64_t i = 0; mask && i < mask->size; i++)
        ng_tensor_store(mask, i, i % steps < length[i / steps]);
    return mask;
}

/* x (N, T, F) with 0 after the rows' lengths if it has Inf, NaN or huge numbers there, which would
 * spoil the weights' gradients. */
static ng_tensor *without_padding(ng_tape *tape, ng_tensor *x, const ng_tensor *lengths)
{
    if (ng_is_none(lengths)) return x;
    const int64_t steps = x->shape.dim[1], width = x->shape.dim[2];
    bool harmless = true;
    for (int64_t r = 0; harmless && r < lengths->size; r++)
        harmless = is_harmless(x, (r * steps + ((const int64_t *)lengths->data)[r]) * width,
                               (r + 1) * steps * width);
    if (harmless) return x;
    ng_tensor *taken = ng_unsqueeze(tape, taken_steps(tape, lengths, x->dtype, steps), -1);
    return ng_where(tape, taken, x, ng_full(tape, x->dtype, NG_SCALAR, 0));
}

/* ---- Definition ----------------------------------------------------------------------------- */

/* Step t of x (N, T, n): (N, n) */
static ng_tensor *at_step(ng_tape *tape, ng_tensor *x, int64_t t)
{
    return ng_squeeze(tape, ng_slice(tape, x, 1, t, t + 1), 1);
}

static ng_tensor *with_bias(ng_tape *tape, ng_tensor *x, ng_tensor *bias)
{
    return ng_is_none(bias) ? x : ng_add(tape, x, bias);
}

/* x W^T + b, or norm(x W^T) + b; the norm of an RNN comes later, and so does its bias. The mask,
 * here and below, is of the rows of x that count. */
static ng_tensor *recurrent_product(ng_tape *tape, const ng_recurrent_composition *of,
                                    ng_recurrent_place place, ng_tensor *x, ng_tensor *mask)
{
    const bool input = place == NG_PLACE_INPUT;
    ng_tensor *weight = input ? of->weights.weight_ih : of->weights.weight_hh;
    ng_tensor *bias = input ? of->weights.bias_ih : of->weights.bias_hh;
    if (!of->norm) return ng_linear(tape, x, weight, bias);
    ng_tensor *y = ng_linear(tape, x, weight, NG_NONE);
    if (ng_cell_gates(of->cell) == 1) return y;
    return with_bias(tape, of->norm(of->layer, tape, place, y, mask), bias);
}

static ng_tensor *rnn_step(ng_tape *tape, const ng_recurrent_composition *of, ng_tensor *a,
                           ng_tensor *h, ng_tensor *mask)
{
    ng_tensor *sum = ng_add(tape, a, recurrent_product(tape, of, NG_PLACE_HIDDEN, h, mask));
    if (of->norm) {
        sum = of->norm(of->layer, tape, NG_PLACE_STATE, sum, mask);
        sum = with_bias(tape, with_bias(tape, sum, of->weights.bias_ih), of->weights.bias_hh);
    }
    return of->cell == NG_CELL_RELU ? ng_relu(tape, sum) : ng_tanh(tape, sum);
}

/* r, z = s(a + p)   n = tanh(a + r p)   h' = n + z (h - n) */
static ng_tensor *gru_step(ng_tape *tape, const ng_recurrent_composition *of, ng_tensor *a,
                           ng_tensor *h, ng_tensor *mask)
{
    if (!h) return NULL;
    const int64_t n = h->shape.dim[1];
    ng_tensor *p = recurrent_product(tape, of, NG_PLACE_HIDDEN, h, mask);
    ng_tensor *open =
        ng_add(tape, ng_slice(tape, a, -1, 0, 2 * n), ng_slice(tape, p, -1, 0, 2 * n));
    open = ng_sigmoid(tape, open);
    ng_tensor *r = ng_features(tape, open, 0, n), *z = ng_features(tape, open, 1, n);
    ng_tensor *new =
        ng_add(tape, ng_features(tape, a, 2, n), ng_mul(tape, r, ng_features(tape, p, 2, n)));
    new = ng_tanh(tape, new);
    return ng_add(tape, new, ng_mul(tape, z, ng_sub(tape, h, new)));
}

/* i, f, g, o = a + p   c' = s(f) c + s(i) tanh(g)   h' = s(o) tanh(c') */
static ng_tensor *lstm_step(ng_tape *tape, const ng_recurrent_composition *of, ng_tensor *a,
                            ng_tensor *h, ng_tensor **c, ng_tensor *mask)
{
    if (!h) return NULL;
    const int64_t n = h->shape.dim[1];
    ng_tensor *gates = ng_add(tape, a, recurrent_product(tape, of, NG_PLACE_HIDDEN, h, mask));
    ng_tensor *open = ng_sigmoid(tape, ng_slice(tape, gates, -1, 0, 2 * n)); /* i and f */
    ng_tensor *g = ng_tanh(tape, ng_features(tape, gates, 2, n));
    ng_tensor *o = ng_sigmoid(tape, ng_features(tape, gates, 3, n));
    *c = ng_add(tape, ng_mul(tape, ng_features(tape, open, 1, n), *c),
                ng_mul(tape, ng_features(tape, open, 0, n), g));
    ng_tensor *seen = of->norm ? of->norm(of->layer, tape, NG_PLACE_STATE, *c, mask) : *c;
    return ng_mul(tape, o, ng_tanh(tape, seen));
}

/* Whether any row takes step t. */
static bool is_taken(const ng_tensor *lengths, int64_t t)
{
    bool taken = false;
    for (int64_t r = 0; r < lengths->size; r++) taken |= t < ((const int64_t *)lengths->data)[r];
    return taken;
}

static ng_tensor *moved(ng_tape *tape, const ng_recurrent_composition *of, ng_tensor *a,
                        ng_recurrent_state *state, ng_tensor *mask)
{
    if (of->cell == NG_CELL_LSTM) return lstm_step(tape, of, a, state->h, &state->c, mask);
    if (of->cell == NG_CELL_GRU) return gru_step(tape, of, a, state->h, mask);
    return rnn_step(tape, of, a, state->h, mask);
}

/* The y of step t, and *state after it, for the rows that taken (N, T) has 1 for; the others keep
 * their state and have y = 0. Step 0 is computed also if no row takes it: the gradients are 0. */
static ng_tensor *step(ng_tape *tape, const ng_recurrent_composition *of, ng_tensor *a,
                       ng_tensor *taken, int64_t t, ng_recurrent_state *state)
{
    if (ng_is_none(taken)) return state->h = moved(tape, of, a, state, NG_NONE);
    if (!a || !state->h) return NULL;
    if (t > 0 && !is_taken(of->lengths, t)) return ng_zeros_like(tape, state->h);
    const ng_recurrent_state old = *state;
    ng_tensor *column = ng_slice(tape, taken, 1, t, t + 1), *mask = ng_squeeze(tape, column, 1);
    ng_tensor *h = mask ? moved(tape, of, a, state, mask) : NULL;
    state->h = ng_where(tape, column, h, old.h);
    if (of->cell == NG_CELL_LSTM) state->c = ng_where(tape, column, state->c, old.c);
    return h ? ng_where(tape, column, h, ng_zeros_like(tape, h)) : NULL;
}

static ng_tensor *or_zeros(ng_tape *tape, ng_tensor *state, ng_dtype dtype, ng_shape shape)
{
    return ng_is_none(state) ? ng_full(tape, dtype, shape, 0) : state;
}

ng_tensor *ng_recurrent_composed(ng_tape *tape, ng_tensor *x, const ng_recurrent_composition *of,
                                 ng_recurrent_state *last)
{
    const int64_t rows = x->shape.dim[0], steps = x->shape.dim[1];
    const int64_t hidden = of->weights.weight_hh->shape.dim[1];
    const ng_shape shape = NG_SHAPE(rows, hidden);
    *last = of->first;
    last->h = or_zeros(tape, last->h, x->dtype, shape);
    if (of->cell == NG_CELL_LSTM) last->c = or_zeros(tape, last->c, x->dtype, shape);
    ng_tensor *taken =
        ng_is_none(of->lengths) ? NG_NONE : taken_steps(tape, of->lengths, x->dtype, steps);
    x = without_padding(tape, x, of->lengths);
    ng_tensor *a = recurrent_product(tape, of, NG_PLACE_INPUT, x, taken);
    if (!a || !taken || !last->h || !last->c) return NULL;
    if (rows == 0 || steps == 0) return ng_features(tape, a, 0, hidden); /* empty, as y is */
    ng_tensor **y = ng_tape_memory(tape, (size_t)steps * sizeof(ng_tensor *));
    if (!y) return NULL;
    for (int64_t i = 0; i < steps; i++) {
        const int64_t t = of->reverse ? steps - 1 - i : i;
        y[t] = step(tape, of, at_step(tape, a, t), taken, t, last);
        y[t] = ng_reshape(tape, y[t], NG_SHAPE(rows, 1, hidden));
        if (!y[t] || !last->h || !last->c) return NULL;
    }
    return ng_concat(tape, y, (int)steps, 1);
}

/* The outputs followed by the last states, as in the kernels. */
static ng_tensor *recurrent_definition(ng_tape *tape, const ng_node *node)
{
    const recurrent_attributes *saved = node->attributes;
    const ng_recurrent_shape *s = &saved->shape;
    ng_tensor *const *in = node->inputs;
    ng_recurrent_state last;
    const ng_recurrent_composition of = {
        .cell = s->cell,
        .reverse = s->reverse,
        .weights = {in[WEIGHT_IH], in[WEIGHT_HH], in[BIAS_IH], in[BIAS_HH]},
        .first = {in[H0], in[C0]},
        .lengths = in[LENGTHS]};
    ng_tensor *y = ng_recurrent_composed(tape, in[X], &of, &last);
    if (s->last == 0) return y;
    const ng_shape row = NG_SHAPE(s->rows, 1, s->hidden);
    ng_tensor *parts[3] = {y, ng_reshape(tape, last.h, row)};
    if (s->last > 1) parts[2] = ng_reshape(tape, last.c, row);
    return ng_concat(tape, parts, 1 + (int)s->last, 1);
}

/* ---- Backward ------------------------------------------------------------------------------- */

static ng_recurrent_operands operands_of(ng_tensor *const *in)
{
    return (ng_recurrent_operands){in[X]->data,       in[WEIGHT_IH]->data, in[WEIGHT_HH]->data,
                                   in[BIAS_IH]->data, in[BIAS_HH]->data,   in[H0]->data,
                                   in[C0]->data};
}

/* Memory of the tape for `count` elements if they are wanted; false without memory. */
static bool take(ng_tape *tape, ng_dtype dtype, bool wanted, int64_t count, void **memory)
{
    *memory = wanted ? ng_tape_memory(tape, (size_t)count * ng_dtype_bytes(dtype)) : NULL;
    return *memory || !wanted;
}

static ng_status recurrent_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                    ng_slot *dx)
{
    const recurrent_attributes *saved = node->attributes;
    const ng_recurrent_shape *s = &saved->shape;
    const int64_t gates = ng_recurrent_rows(s) * ng_cell_gates(s->cell) * s->hidden;
    const int64_t state = s->rows * s->hidden;
    ng_recurrent_scratch scratch;
    if (!take(tape, dy->dtype, true, gates, &scratch.dgates) ||
        !take(tape, dy->dtype, s->cell == NG_CELL_GRU, gates, &scratch.dproduct) ||
        !take(tape, dy->dtype, true, state, &scratch.dh) ||
        !take(tape, dy->dtype, s->cell == NG_CELL_LSTM, state, &scratch.dc) ||
        !take(tape, dy->dtype, true, ng_recurrent_parts(s), &scratch.parts))
        return NG_ENOMEM;
    const ng_recurrent_gradients to = {dx[X],       dx[WEIGHT_IH], dx[WEIGHT_HH], dx[BIAS_IH],
                                       dx[BIAS_HH], dx[H0],        dx[C0]};
    const ng_recurrent_operands operands = operands_of(node->inputs);
    ng_recurrent_backward(dy->dtype, s, &operands, &saved->kept, dy->data, &scratch, &to);
    return NG_OK;
}

static const ng_op rnn_op = {
    .name = "rnn", .backward = recurrent_backward, .definition = recurrent_definition};
static const ng_op gru_op = {
    .name = "gru", .backward = recurrent_backward, .definition = recurrent_definition};
static const ng_op lstm_op = {
    .name = "lstm", .backward = recurrent_backward, .definition = recurrent_definition};

/* ---- Shape rule ----------------------------------------------------------------------------- */

bool ng_lengths_ok(const char *function, ng_tape *tape, ng_tensor *lengths, int64_t rows,
                   int64_t steps)
{
    if (!ng_given_or_none(function, "lengths", lengths)) return false;
    if (ng_is_none(lengths)) return true;
    if (!ng_accepts_index(function, tape, "lengths", lengths)) return false;
    if (!ng_has_shape(function, "lengths", lengths, NG_SHAPE(rows))) return false;
    const int64_t *length = lengths->data;
    for (int64_t i = 0; i < rows; i++)
        if (length[i] < 0 || length[i] > steps) {
            ng_fail(NG_EVALUE, "%s: length %lld of row %lld, expected 0 .. %lld steps", function,
                    (long long)length[i], (long long)i, (long long)steps);
            return false;
        }
    return true;
}

static bool recurrent_weights_fit(const char *function, const ng_tensor *x, int64_t gates,
                                  const ng_recurrent_weights *w)
{
    const ng_shape shape = x->shape, hh = w->weight_hh->shape;
    if (shape.rank != 3) {
        ng_fail(NG_ESHAPE, "%s: x is %s, expected (N, T, F)", function, ng_shape_print(shape).text);
        return false;
    }
    if (hh.rank != 2 || hh.dim[1] < 1 || hh.dim[0] / gates != hh.dim[1] || hh.dim[0] % gates != 0) {
        ng_fail(NG_ESHAPE, "%s: weight_hh is %s, expected (%lld H, H)", function,
                ng_shape_print(hh).text, (long long)gates);
        return false;
    }
    return ng_has_shape(function, "weight_ih", w->weight_ih, NG_SHAPE(hh.dim[0], shape.dim[2])) &&
           ng_has_shape(function, "bias_ih", w->bias_ih, NG_SHAPE(hh.dim[0])) &&
           ng_has_shape(function, "bias_hh", w->bias_hh, NG_SHAPE(hh.dim[0]));
}

bool ng_recurrent_fits(const char *function, ng_tape *tape, ng_tensor *x,
                       const ng_recurrent_composition *of)
{
    const ng_recurrent_weights *w = &of->weights;
    ng_tensor *const in[] = {x,          w->weight_ih, w->weight_hh, w->bias_ih,
                             w->bias_hh, of->first.h,  of->first.c};
    static const char *const names[] = {"x",       "weight_ih", "weight_hh", "bias_ih",
                                        "bias_hh", "h",         "c"};
    if (!ng_accepts_optional(function, tape, BIAS_IH, LENGTHS, in, names) ||
        !recurrent_weights_fit(function, x, ng_cell_gates(of->cell), w))
        return false;
    const ng_shape state = NG_SHAPE(x->shape.dim[0], w->weight_hh->shape.dim[1]);
    if (of->cell != NG_CELL_LSTM && !ng_is_none(of->first.c)) {
        ng_fail(NG_EVALUE, "%s: c is %s, expected NG_NONE: only an LSTM has one", function,
                ng_shape_print(of->first.c->shape).text);
        return false;
    }
    return ng_has_shape(function, "h", of->first.h, state) &&
           ng_has_shape(function, "c", of->first.c, state) &&
           ng_lengths_ok(function, tape, of->lengths, x->shape.dim[0], x->shape.dim[1]);
}

/* ---- Forward -------------------------------------------------------------------------------- */

static bool recurrent_keep(ng_tape *tape, ng_dtype dtype, const ng_recurrent_shape *s,
                           ng_recurrent_kept *kept)
{
    const int64_t width = ng_cell_gates(s->cell) * s->hidden;
    const int64_t states = s->rows * (s->steps + 1) * s->hidden;
    const bool gru = s->cell == NG_CELL_GRU, lstm = s->cell == NG_CELL_LSTM;
    return take(tape, dtype, true, s->rows * s->steps * width, &kept->gates) &&
           take(tape, dtype, gru, s->rows * s->steps * width, &kept->product) &&
           take(tape, dtype, true, states, &kept->h) && take(tape, dtype, lstm, states, &kept->c) &&
           take(tape, dtype, true, s->hidden * width, &kept->weight) &&
           take(tape, dtype, true, width, &kept->bias) &&
           take(tape, dtype, true, ng_recurrent_rows(s) * s->features, &kept->x);
}

/* The i-th of the last states, which follow the steps of y: (N, H) */
static ng_tensor *last_state(ng_tape *tape, ng_tensor *y, const ng_recurrent_shape *s, int64_t i)
{
    return ng_squeeze(tape, ng_slice(tape, y, 1, s->steps + i, s->steps + i + 1), 1);
}

static ng_tensor *recur(const char *function, const ng_op *op, ng_cell cell, ng_tape *tape,
                        ng_tensor *x, const ng_recurrent_weights *w, ng_recurrent_state first,
                        const ng_recurrent_options *options)
{
    const ng_recurrent_composition of = {.cell = cell,
                                         .reverse = options->reverse,
                                         .weights = *w,
                                         .first = first,
                                         .lengths = options->lengths};
    const bool relu = options->relu && ng_cell_gates(cell) > 1;
    if (!ng_option_idle(function, "relu", relu, "in ng_rnn") ||
        !ng_recurrent_fits(function, tape, x, &of))
        return NULL;
    x = without_padding(tape, x, of.lengths);
    if (!x) return NULL;
    ng_tensor *const in[INPUTS] = {x,          w->weight_ih, w->weight_hh, w->bias_ih,
                                   w->bias_hh, first.h,      first.c,      of.lengths};
    ng_recurrent_state *last = options->last;
    const int64_t states = cell == NG_CELL_LSTM ? 2 : 1;
    recurrent_attributes saved = {.shape = {.cell = cell,
                                            .rows = x->shape.dim[0],
                                            .steps = x->shape.dim[1],
                                            .features = x->shape.dim[2],
                                            .hidden = w->weight_hh->shape.dim[1],
                                            .last = last ? states : 0,
                                            .lengths = of.lengths->data,
                                            .reverse = of.reverse}};
    const ng_recurrent_shape *s = &saved.shape;
    if (ng_shape_size(function, NG_SHAPE(s->rows, s->steps, w->weight_hh->shape.dim[0])) < 0)
        return NULL;
    ng_tensor *y = ng_result(tape, x->dtype, NG_SHAPE(s->rows, s->steps + s->last, s->hidden));
    if (!y || !recurrent_keep(tape, x->dtype, s, &saved.kept)) return NULL;
    const ng_recurrent_operands operands = operands_of(in);
    ng_recurrent(x->dtype, s, &operands, &saved.kept, y->data);
    y = ng_record_own(tape, op, y, in, INPUTS, &saved, sizeof saved);
    if (!last || !y) return y;
    last->h = last_state(tape, y, s, 0);
    last->c = states > 1 ? last_state(tape, y, s, 1) : NG_NONE;
    return last->h && last->c ? ng_slice(tape, y, 1, 0, s->steps) : NULL;
}

ng_tensor *ng_rnn_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                       ng_recurrent_state state, ng_recurrent_options options)
{
    const ng_cell cell = options.relu ? NG_CELL_RELU : NG_CELL_TANH;
    return recur("ng_rnn", &rnn_op, cell, tape, x, &weights, state, &options);
}

ng_tensor *ng_gru_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                       ng_recurrent_state state, ng_recurrent_options options)
{
    return recur("ng_gru", &gru_op, NG_CELL_GRU, tape, x, &weights, state, &options);
}

ng_tensor *ng_lstm_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                        ng_recurrent_state state, ng_recurrent_options options)
{
    return recur("ng_lstm", &lstm_op, NG_CELL_LSTM, tape, x, &weights, state, &options);
}
