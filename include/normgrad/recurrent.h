/* Recurrent networks: RNN, GRU and LSTM.
 *
 *     ng_module *lstm = ng_lstm_new(64, 128, .layers = 2, .norm = ng_norm_layer);
 *     ng_tensor *h = ng_forward(lstm, tape, x, .lengths = lengths);
 *     ng_recurrent_state state = NG_NO_STATE;
 *     h = ng_forward_recurrent(lstm, tape, x, NG_NONE, &state);
 *     ng_recurrent_state kept = {ng_copy_new(state.h, NG_F32), ng_copy_new(state.c, NG_F32)};
 *     ng_tape_reset(tape);
 *     state.h = ng_tape_own(tape, kept.h), state.c = ng_tape_own(tape, kept.c);
 *     h = ng_forward_recurrent(lstm, tape, y, NG_NONE, &state);
 *     ng_module_free(lstm);
 *
 *     ng_rnn_new(features, hidden)    h' = tanh(W_ih x + b_ih + W_hh h + b_hh)
 *     ng_gru_new(features, hidden)    a gated recurrent unit
 *     ng_lstm_new(features, hidden)   long short-term memory
 *     ng_forward_recurrent(module, tape, x, lengths, &state)   continues from a state
 *
 * x (N, T, features) -> y (N, T, hidden), the state h of the last layer after each step; with
 * .bidirectional y is twice as wide. sequences.h has the formulas. The input .lengths holds the
 * lengths of the rows, int64 (N). Parameters have PyTorch's names, shapes and order of gates:
 * weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse... They are drawn from
 * U(-b, b), b = 1 / sqrt(hidden).
 *
 * With .norm the cell is that of Ba, Kiros & Hinton 2016, in which LayerNorm was introduced. Each
 * norm is a child, named norm_ih_l0, norm_ih_l0_reverse... With the sigmoid s:
 *
 *     RNN   h' = tanh(norm(W_ih x + W_hh h) + b), b = b_ih + b_hh
 *     GRU   r, z = s(norm_ih(W_ih x) + norm_hh(W_hh h) + b)
 *           n = tanh(norm_in(W_in x) + b_in + r * (norm_hn(W_hn h) + b_hn))
 *           h' = (1 - z) * n + z * h
 *     LSTM  i, f, g, o = norm_ih(W_ih x) + norm_hh(W_hh h) + b
 *           c' = s(f) * c + s(i) * tanh(g)
 *           h' = s(o) * tanh(norm_c(c')) */
#ifndef NORMGRAD_RECURRENT_H
#define NORMGRAD_RECURRENT_H

#include <normgrad/attention.h>

NG_BEGIN_C

/* RNN, GRU and LSTM.
 *     ng_gru_new(64, 128, .layers = 3, .bidirectional = true, .dropout = 0.1) */
typedef struct {
    int64_t layers;      /* stacked; default 1 */
    bool bidirectional;  /* each layer runs forward and back; h of both stand side by side */
    bool no_bias;        /* without bias_ih and bias_hh */
    bool relu;           /* ng_rnn_new only: max(0, ...) in place of tanh */
    double dropout;      /* between layers, in training */
    ng_norm_maker *norm; /* in the cell, such as ng_norm_layer (attention.h); default: none */
    int64_t hidden;      /* features of h */
} ng_recurrent_new_options;
#define ng_rnn_new(features, ...)                                                                  \
    ng_rnn_new_with(features, NG_NAMED(ng_recurrent_new_options, hidden, __VA_ARGS__))
#define ng_gru_new(features, ...)                                                                  \
    ng_gru_new_with(features, NG_NAMED(ng_recurrent_new_options, hidden, __VA_ARGS__))
#define ng_lstm_new(features, ...)                                                                 \
    ng_lstm_new_with(features, NG_NAMED(ng_recurrent_new_options, hidden, __VA_ARGS__))
NG_API ng_module *ng_rnn_new_with(int64_t features, ng_recurrent_new_options options);
NG_API ng_module *ng_gru_new_with(int64_t features, ng_recurrent_new_options options);
NG_API ng_module *ng_lstm_new_with(int64_t features, ng_recurrent_new_options options);

/* The output y, beginning from the given state. *state becomes the state after the last step: h,
 * and of an LSTM c, each (layers directions, N, hidden); NG_NONE is zeros. lengths is as in
 * ng_forward, or NG_NONE.
 *
 * The new state belongs to the tape: to continue from it after ng_tape_reset, keep copies, as in
 * the example above. With one layer and direction ng_squeeze(tape, state.h, 0) is (N, hidden). A
 * module that is no RNN, GRU or LSTM is NG_EVALUE. */
NG_API ng_tensor *ng_forward_recurrent(ng_module *module, ng_tape *tape, ng_tensor *x,
                                       ng_tensor *lengths, ng_recurrent_state *state);

NG_END_C

#endif
