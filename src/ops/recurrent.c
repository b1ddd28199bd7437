/* Recurrent layers in one direction: rnn, gru, lstm. With G gates,
 *
 *     a (T, N, G H) = x W_ih^T + b                 one product for all steps
 *     p (N, G H) = h_t (N, H) W_hh^T               one for each step
 *     h_t+1 = cell(a_t, p, h_t)
 *
 * The state between steps is h (N, H), of an LSTM h and c in one tensor (2, N, H). */
#include "ops/recurrent.h"
#include "ops/op.h"
#include <string.h>

/* ---- Operands ------------------------------------------------------------------------------- */

/* Whether lengths is NG_NONE, or int64 (N) of numbers from 0 to T. */
static bool recurrent_lengths_fit(const char *function, ng_tape *tape, ng_tensor *lengths,
                                  int64_t rows, int64_t steps)
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
    if (!ng_expect_shape(shape.rank == 3, function, "x", x, "(N, T, F)")) return false;
    if (hh.rank != 2 || hh.dim[1] < 1 || hh.dim[0] / gates != hh.dim[1] || hh.dim[0] % gates != 0) {
        ng_fail(NG_ESHAPE, "%s: weight_hh is %s, expected (%lld H, H)", function,
                ng_shape_print(hh).text, (long long)gates);
        return false;
    }
    return ng_has_shape(function, "weight_ih", w->weight_ih, NG_SHAPE(hh.dim[0], shape.dim[2])) &&
           ng_has_shape(function, "bias_ih", w->bias_ih, NG_SHAPE(hh.dim[0])) &&
           ng_has_shape(function, "bias_hh", w->bias_hh, NG_SHAPE(hh.dim[0]));
}

static bool recurrence_fits(const char *function, ng_tape *tape, ng_tensor *x,
                            const ng_recurrence *layer)
{
    const ng_recurrent_weights *w = &layer->weights;
    ng_tensor *const in[] = {x,          w->weight_ih,   w->weight_hh,  w->bias_ih,
                             w->bias_hh, layer->first.h, layer->first.c};
    static const char *const names[] = {"x",       "weight_ih", "weight_hh", "bias_ih",
                                        "bias_hh", "h",         "c"};
    if (!ng_accepts_optional(function, tape, 3, 7, in, names) ||
        !recurrent_weights_fit(function, x, ng_cell_gates(layer->cell), w))
        return false;
    const ng_shape state = NG_SHAPE(x->shape.dim[0], w->weight_hh->shape.dim[1]);
    if (layer->cell != NG_CELL_LSTM && !ng_is_none(layer->first.c)) {
        ng_fail(NG_EVALUE, "%s: c is %s, expected NG_NONE: only an LSTM has one", function,
                ng_shape_print(layer->first.c->shape).text);
        return false;
    }
    return ng_has_shape(function, "h", layer->first.h, state) &&
           ng_has_shape(function, "c", layer->first.c, state) &&
           recurrent_lengths_fit(function, tape, layer->lengths, x->shape.dim[0], x->shape.dim[1]);
}

/* ---- Lengths -------------------------------------------------------------------------------- */

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

/* x (N, T, n) with 0 at the steps that taken (N, T) has 0 for. */
static ng_tensor *zero_where_ended(ng_tape *tape, ng_tensor *taken, ng_tensor *x)
{
    if (!x) return NULL;
    ng_tensor *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    return ng_where(tape, ng_unsqueeze(tape, taken, -1), x, zero);
}

/* Whether any row takes step t. */
static bool is_taken(const ng_tensor *lengths, int64_t t)
{
    bool taken = false;
    for (int64_t r = 0; r < lengths->size; r++) taken |= t < ((const int64_t *)lengths->data)[r];
    return taken;
}

/* ---- A cell, composed of ops -------------------------------------------------------------------
 *
 * a and p are (N, G H), the mask (N) says which rows count. */

/* Part i of x along its first axis. */
static ng_tensor *part_of(ng_tape *tape, ng_tensor *x, int64_t i)
{
    return ng_squeeze(tape, ng_slice(tape, x, 0, i, i + 1), 0);
}

static ng_tensor *with_bias(ng_tape *tape, ng_tensor *x, ng_tensor *bias)
{
    return ng_is_none(bias) ? x : ng_add(tape, x, bias);
}

static ng_tensor *state_normed(ng_tape *tape, const ng_recurrence *layer, ng_tensor *x,
                               ng_tensor *mask)
{
    return layer->norm ? layer->norm(layer->norms, tape, NG_PLACE_STATE, x, mask) : x;
}

static ng_tensor *rnn_step(ng_tape *tape, const ng_recurrence *layer, ng_tensor *a, ng_tensor *p,
                           ng_tensor *mask)
{
    ng_tensor *sum = state_normed(tape, layer, ng_add(tape, a, p), mask);
    if (layer->norm) sum = with_bias(tape, sum, layer->weights.bias_ih);
    return layer->cell == NG_CELL_RELU ? ng_relu(tape, sum) : ng_tanh(tape, sum);
}

/* r, z = s(a + p)   n = tanh(a + r p)   h' = n + z (h - n) */
static ng_tensor *gru_step(ng_tape *tape, ng_tensor *a, ng_tensor *p, ng_tensor *h)
{
    if (!h) return NULL;
    const int64_t n = h->shape.dim[1];
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
static ng_tensor *lstm_step(ng_tape *tape, const ng_recurrence *layer, ng_tensor *a, ng_tensor *p,
                            ng_tensor *state, ng_tensor *mask)
{
    if (!state) return NULL;
    const int64_t n = state->shape.dim[2];
    ng_tensor *gates = ng_add(tape, a, p), *c = part_of(tape, state, 1);
    ng_tensor *open = ng_sigmoid(tape, ng_slice(tape, gates, -1, 0, 2 * n)); /* i and f */
    ng_tensor *g = ng_tanh(tape, ng_features(tape, gates, 2, n));
    ng_tensor *o = ng_sigmoid(tape, ng_features(tape, gates, 3, n));
    c = ng_add(tape, ng_mul(tape, ng_features(tape, open, 1, n), c),
               ng_mul(tape, ng_features(tape, open, 0, n), g));
    ng_tensor *h = ng_mul(tape, o, ng_tanh(tape, state_normed(tape, layer, c, mask)));
    return ng_stack(tape, NG_TENSORS(h, c), 0);
}

/* ---- gru_cell, lstm_cell -----------------------------------------------------------------------
 *
 * They read one step of a (T, N, G H). With the backward pass of a batch of 32 their definitions
 * take 2.1 times as long with 16 features, 1.5 with 64, and in an LSTM of 128 1.1. */

enum { INPUT, PRODUCT, STATE };

typedef struct {
    ng_cell cell;
    int64_t step;
    void *gates;
} cell_attributes;

static ng_tensor *cell_definition(ng_tape *tape, const ng_node *node)
{
    const cell_attributes *saved = node->attributes;
    ng_tensor *const *in = node->inputs, *a = part_of(tape, in[INPUT], saved->step);
    const ng_recurrence layer = {.cell = saved->cell};
    return saved->cell == NG_CELL_LSTM ? lstm_step(tape, &layer, a, in[PRODUCT], in[STATE], NG_NONE)
                                       : gru_step(tape, a, in[PRODUCT], in[STATE]);
}

static ng_cell_step cell_step(const cell_attributes *saved, ng_tensor *const *in,
                              const ng_tensor *after)
{
    const ng_tensor *product = in[PRODUCT];
    const size_t offset = (size_t)saved->step * ng_bytes_of(product);
    return (ng_cell_step){.cell = saved->cell,
                          .rows = product->shape.dim[0],
                          .hidden = product->shape.dim[1] / ng_cell_gates(saved->cell),
                          .input = (const char *)in[INPUT]->data + offset,
                          .product = product->data,
                          .state = in[STATE]->data,
                          .after = after->data,
                          .gates = saved->gates};
}

/* Where the kernel adds a gradient: its slot, or memory that nobody reads if it is not wanted. */
static void *gradient_sum(ng_tape *tape, ng_slot slot, size_t bytes)
{
    void *sum = slot.data ? slot.data : ng_tape_memory(tape, bytes);
    if (sum && !slot.accumulate) memset(sum, 0, bytes);
    return sum;
}

static ng_status cell_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    const cell_attributes *saved = node->attributes;
    ng_tensor *const *in = node->inputs;
    const size_t bytes = ng_bytes_of(in[PRODUCT]);
    const bool wanted = dx[INPUT].data != NULL;
    ng_cell_step step = cell_step(saved, in, node->output);
    char *dinput = gradient_sum(tape, dx[INPUT], wanted ? ng_bytes_of(in[INPUT]) : bytes);
    step.dinput = wanted ? dinput + (size_t)saved->step * bytes : dinput;
    step.dproduct = gradient_sum(tape, dx[PRODUCT], bytes);
    step.dstate = gradient_sum(tape, dx[STATE], ng_bytes_of(in[STATE]));
    step.dafter = dy->data;
    if (!dinput || !step.dproduct || !step.dstate) return NG_ENOMEM;
    ng_kernels_for(dy->dtype)->step_cell_backward(&step);
    return NG_OK;
}

static const ng_op gru_cell_op = {
    .name = "gru_cell", .backward = cell_backward, .definition = cell_definition};
static const ng_op lstm_cell_op = {
    .name = "lstm_cell", .backward = cell_backward, .definition = cell_definition};

static ng_tensor *fused_cell(ng_tape *tape, ng_cell cell, int64_t t, ng_tensor *a, ng_tensor *p,
                             ng_tensor *state)
{
    if (!a || !p || !state) return NULL;
    ng_tensor *const in[] = {a, p, state};
    ng_tensor *after = ng_result_like(tape, state);
    const cell_attributes saved = {cell, t, ng_tape_memory(tape, ng_bytes_of(p))};
    if (!after || !saved.gates) return NULL;
    const ng_cell_step step = cell_step(&saved, in, after);
    ng_kernels_for(state->dtype)->step_cell(&step);
    const ng_op *op = cell == NG_CELL_LSTM ? &lstm_cell_op : &gru_cell_op;
    return ng_record_own(tape, op, after, in, 3, &saved, sizeof saved);
}

/* ---- All steps ------------------------------------------------------------------------------- */

/* x W^T + b, or norm(x W^T) + b; the norm of an RNN comes later, and so does its bias. */
static ng_tensor *recurrent_product(ng_tape *tape, const ng_recurrence *layer,
                                    ng_recurrent_place place, ng_tensor *x, ng_tensor *mask)
{
    const bool input = place == NG_PLACE_INPUT;
    ng_tensor *weight = input ? layer->weights.weight_ih : layer->weights.weight_hh;
    ng_tensor *bias = input ? layer->weights.bias_ih : layer->weights.bias_hh;
    if (!layer->norm) return ng_linear(tape, x, weight, bias);
    ng_tensor *y = ng_linear(tape, x, weight, NG_NONE);
    if (ng_cell_gates(layer->cell) == 1) return y;
    return with_bias(tape, layer->norm(layer->norms, tape, place, y, mask), bias);
}

static ng_tensor *hidden_of(ng_tape *tape, ng_cell cell, ng_tensor *state)
{
    return cell == NG_CELL_LSTM ? part_of(tape, state, 0) : state;
}

/* The state after step t of a (T, N, G H). */
static ng_tensor *next_state(ng_tape *tape, const ng_recurrence *layer, ng_tensor *a, int64_t t,
                             ng_tensor *h, ng_tensor *state, ng_tensor *mask)
{
    ng_tensor *p = recurrent_product(tape, layer, NG_PLACE_HIDDEN, h, mask);
    const bool lstm = layer->cell == NG_CELL_LSTM;
    if (layer->cell == NG_CELL_GRU || (lstm && !layer->norm))
        return fused_cell(tape, layer->cell, t, a, p, state);
    a = part_of(tape, a, t);
    return lstm ? lstm_step(tape, layer, a, p, state, mask) : rnn_step(tape, layer, a, p, mask);
}

/* The same for the rows that have a 1 in masks (T, N); the others keep their state. Step 0 is
 * computed also if no row takes it: the gradients are 0. */
static ng_tensor *step_of_rows(ng_tape *tape, const ng_recurrence *layer, ng_tensor *a,
                               ng_tensor *masks, int64_t t, ng_tensor *h, ng_tensor *state)
{
    if (ng_is_none(masks)) return next_state(tape, layer, a, t, h, state, NG_NONE);
    if (t > 0 && !is_taken(layer->lengths, t)) return state;
    ng_tensor *mask = part_of(tape, masks, t);
    ng_tensor *after = next_state(tape, layer, a, t, h, state, mask);
    return after ? ng_where(tape, ng_unsqueeze(tape, mask, -1), after, state) : NULL;
}

/* For x (T, N, F). */
static ng_tensor *first_state(ng_tape *tape, const ng_recurrence *layer, const ng_tensor *x)
{
    if (!x) return NULL;
    const ng_shape shape = NG_SHAPE(x->shape.dim[1], layer->weights.weight_hh->shape.dim[1]);
    ng_tensor *h = layer->first.h, *c = layer->first.c;
    if (ng_is_none(h)) h = ng_full(tape, x->dtype, shape, 0);
    if (layer->cell != NG_CELL_LSTM) return h;
    if (ng_is_none(c)) c = ng_full(tape, x->dtype, shape, 0);
    return ng_stack(tape, NG_TENSORS(h, c), 0);
}

/* y (N, T, H) of a (T, N, G H); *state becomes that after the last step. Rows that have ended put
 * out what they kept. */
static ng_tensor *run_steps(ng_tape *tape, const ng_recurrence *layer, ng_tensor *a,
                            ng_tensor *masks, ng_tensor **state)
{
    const int64_t steps = a->shape.dim[0], rows = a->shape.dim[1];
    const int64_t hidden = layer->weights.weight_hh->shape.dim[1];
    ng_tensor *h = hidden_of(tape, layer->cell, *state);
    if (steps == 0)
        return ng_reshape(tape, ng_features(tape, a, 0, hidden), NG_SHAPE(rows, 0, hidden));
    ng_tensor **y = ng_tape_memory(tape, (size_t)steps * sizeof(ng_tensor *));
    for (int64_t i = 0; i < steps && y && h; i++) {
        const int64_t t = layer->reverse ? steps - 1 - i : i;
        *state = step_of_rows(tape, layer, a, masks, t, h, *state);
        y[t] = h = hidden_of(tape, layer->cell, *state);
    }
    return y && h ? ng_stack(tape, y, (int)steps, 1) : NULL;
}

/* The weights with both biases in bias_ih; a GRU's reset gate multiplies the other one. */
static ng_recurrent_weights with_one_bias(ng_tape *tape, ng_cell cell, ng_recurrent_weights w)
{
    if (cell == NG_CELL_GRU || ng_is_none(w.bias_hh)) return w;
    w.bias_ih = with_bias(tape, w.bias_hh, w.bias_ih);
    w.bias_hh = NG_NONE;
    return w;
}

ng_tensor *ng_recur(const char *function, ng_tape *tape, ng_tensor *x, const ng_recurrence *given,
                    ng_recurrent_state *last)
{
    if (!recurrence_fits(function, tape, x, given)) return NULL;
    ng_recurrence layer = *given;
    layer.weights = with_one_bias(tape, layer.cell, layer.weights);
    const bool padded = !ng_is_none(layer.lengths);
    ng_tensor *taken = NG_NONE, *masks = NG_NONE; /* (N, T) and (T, N) */
    if (padded) {
        taken = taken_steps(tape, layer.lengths, x->dtype, x->shape.dim[1]);
        masks = ng_transpose(tape, taken, 0, 1);
        x = zero_where_ended(tape, taken, x); /* whose Inf would spoil the weights' gradients */
    }
    x = ng_transpose(tape, x, 0, 1);
    ng_tensor *state = first_state(tape, &layer, x);
    ng_tensor *a = recurrent_product(tape, &layer, NG_PLACE_INPUT, x, masks);
    ng_tensor *y = a && masks && state ? run_steps(tape, &layer, a, masks, &state) : NULL;
    if (padded) y = zero_where_ended(tape, taken, y);
    if (!last || !y) return y;
    const bool lstm = layer.cell == NG_CELL_LSTM;
    ng_tensor *h = hidden_of(tape, layer.cell, state);
    ng_tensor *c = lstm ? part_of(tape, state, 1) : NG_NONE;
    if (!h || !c) return NULL;
    *last = (ng_recurrent_state){h, c};
    return y;
}

static ng_tensor *recur_with(const char *function, ng_cell cell, ng_tape *tape, ng_tensor *x,
                             ng_recurrent_weights weights, ng_recurrent_state state,
                             const ng_recurrent_options *options)
{
    const ng_recurrence layer = {.cell = cell,
                                 .reverse = options->reverse,
                                 .weights = weights,
                                 .first = state,
                                 .lengths = options->lengths};
    const bool relu = options->relu && ng_cell_gates(cell) > 1;
    if (!ng_option_idle(function, "relu", relu, "in ng_rnn")) return NULL;
    return ng_recur(function, tape, x, &layer, options->last);
}

ng_tensor *ng_rnn_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                       ng_recurrent_state state, ng_recurrent_options options)
{
    const ng_cell cell = options.relu ? NG_CELL_RELU : NG_CELL_TANH;
    return recur_with("ng_rnn", cell, tape, x, weights, state, &options);
}

ng_tensor *ng_gru_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                       ng_recurrent_state state, ng_recurrent_options options)
{
    return recur_with("ng_gru", NG_CELL_GRU, tape, x, weights, state, &options);
}

ng_tensor *ng_lstm_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                        ng_recurrent_state state, ng_recurrent_options options)
{
    return recur_with("ng_lstm", NG_CELL_LSTM, tape, x, weights, state, &options);
}
