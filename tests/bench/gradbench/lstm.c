/* lstm: the mean loss of an LSTM that predicts a text, bit by bit. Its matrices are diagonal:
 *     f = s(W_f x + b_f)   i = s(W_i h + b_i)   o = s(W_o x + b_o)   g = tanh(W_g h + b_g)
 *     c' = f c + i g   h' = o tanh(c')
 * ng_lstm computes all steps of a layer, with matrices that hold these diagonals. */
#include "gradbench.h"

static ng_tensor *weights, *extra, *state, *inputs, *targets;
static int64_t layers, bits;

static void prepare(const char *input)
{
    ng_tensor *text = input_tensor(input, "sequence");
    weights = input_leaf(input, "main_params");
    extra = input_leaf(input, "extra_params");
    state = input_tensor(input, "state");
    layers = ng_dim(state, 0) / 2;
    bits = ng_dim(text, 1);
    if (ng_failed()) return;
    const ng_shape shape = NG_SHAPE(1, ng_dim(text, 0) - 1, bits);
    inputs = held_zeros(NG_F64, shape), targets = held_zeros(NG_F64, shape);
    for (int64_t i = 0; i < ng_size(targets); i++) {
        ng_set(inputs, i, ng_get(text, i));
        ng_set(targets, i, ng_get(text, i + bits));
    }
}

static ng_tensor *row(ng_tape *tape, ng_tensor *x, int64_t i) { return rows_of(tape, x, i, i + 1); }

/* The layer's weights in ng_lstm's order of gates i, f, g, o, from rows f, i, o, g. */
static ng_recurrent_weights weights_of(ng_tape *tape, int64_t layer)
{
    ng_tensor *eye = ng_eye(tape, NG_F64, bits), *none = ng_zeros_like(tape, eye);
    ng_tensor *w = ng_reshape(tape, row(tape, weights, 2 * layer), NG_SHAPE(4, bits));
    ng_tensor *b = ng_reshape(tape, row(tape, weights, 2 * layer + 1), NG_SHAPE(4, bits));
    ng_tensor *order = ng_from(tape, NG_I64, NG_SHAPE(4), NG_VALUES(1, 0, 3, 2));
    ng_tensor *diagonal[4];
    for (int gate = 0; gate < 4; gate++) diagonal[gate] = ng_mul(tape, eye, row(tape, w, gate));
    return (ng_recurrent_weights){
        .weight_ih = ng_concat(tape, NG_TENSORS(none, diagonal[0], none, diagonal[2]), 0),
        .weight_hh = ng_concat(tape, NG_TENSORS(diagonal[1], none, diagonal[3], none), 0),
        .bias_ih = ng_reshape(tape, ng_gather_rows(tape, b, order), NG_SHAPE(4 * bits)),
        .bias_hh = NG_NONE};
}

static ng_tensor *objective(ng_tape *tape)
{
    ng_tensor *h = ng_mul(tape, inputs, row(tape, extra, 0));
    for (int64_t i = 0; i < layers; i++) {
        const ng_recurrent_state start = {.h = row(tape, state, 2 * i),
                                          .c = row(tape, state, 2 * i + 1)};
        h = ng_lstm(tape, h, weights_of(tape, i), start, NG_NONE);
    }
    ng_tensor *y = ng_add(tape, ng_mul(tape, h, row(tape, extra, 1)), row(tape, extra, 2));
    /* The benchmark's sum of exponentials begins with 2. */
    ng_tensor *sum = ng_sum(tape, ng_exp(tape, y), .axes = NG_AXES(2), .keepdim = true);
    ng_tensor *norm = ng_sub(tape, y, ng_log(tape, ng_add_scalar(tape, sum, 2)));
    return ng_mul_scalar(tape, ng_dot(tape, targets, norm), -1 / (double)ng_size(targets));
}

static void jacobian(ng_tape *tape)
{
    ng_tensor *y = objective(tape), *const leaves[] = {weights, extra}, *gradients[2];
    if (ng_gradients(tape, &y, 1, leaves, 2, gradients)) return;
    for (int i = 0; i < 2; i++) gradients[i] = ng_reshape(tape, gradients[i], NG_SHAPE(-1));
    answer(NULL, ng_concat(tape, gradients, 2, 0));
}

const gradbench_eval eval_lstm = {"objective", "jacobian", prepare, objective, jacobian};
