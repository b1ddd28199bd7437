/* Recurrent networks: RNN, GRU and LSTM.
 *
 *     ng_module *lstm = ng_lstm_new(64, 128, .layers = 2, .norm = ng_norm_layer);
 *     ng_tensor *y = ng_forward(lstm, tape, x, .lengths = lengths);
 *
 *     ng_recurrent_state state = NG_NO_STATE;
 *     y = ng_forward_recurrent(lstm, tape, x, NG_NONE, &state);
 *
 * x (N, T, features) -> y (N, T, hidden), twice as wide with .bidirectional: the state h of the
 * last layer after each step. sequences.h has the formulas. The input .lengths holds the rows'
 * lengths, int64 (N). Parameters have the names, shapes and order of gates of PyTorch:
 * weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_ih_l0_reverse... All are drawn from
 * U(-b, b), b = 1 / sqrt(hidden).
 *
 * With .norm the cell is that of Ba, Kiros & Hinton 2016, where LayerNorm began. Each norm is a
 * child of its own, named norm_ih_l0 (and norm_ih_l0_reverse...), s is the sigmoid:
 *
 * RNN   h' = tanh(norm(W_ih x + W_hh h) + b), b = b_ih + b_hh
 * GRU   r, z = s(norm_ih(W_ih x) + norm_hh(W_hh h) + b)
 *       n = tanh(norm_in(W_in x) + b_in + r * (norm_hn(W_hn h) + b_hn))    h' = (1 - z) * n + z * h
 * LSTM  i, f, g, o = norm_ih(W_ih x) + norm_hh(W_hh h) + b
 *       c' = s(f) * c + s(i) * tanh(g)    h' = s(o) * tanh(norm_c(c')) */
#ifndef NORMGRAD_RECURRENT_H
#define NORMGRAD_RECURRENT_H

#include <normgrad/attention.h>

NG_BEGIN_C

/* RNN, GRU and LSTM.
 *     ng_gru_new(64, 128, .layers = 3, .bidirectional = true, .dropout = 0.1) */
typedef struct {
    int64_t layers;      /* one on the other; default 1 */
    bool bidirectional;  /* each layer forward and back, h of both side by side */
    bool no_bias;        /* without bias_ih and bias_hh */
    bool relu;           /* max(0, ...) for tanh; in ng_rnn_new only */
    double dropout;      /* of what a layer hands to the next, in training */
    ng_norm_maker *norm; /* in the cell; default none */
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

/* y from the given state on, which becomes the state after the last step: h, and of an LSTM c, each
 * (layers directions, N, hidden), or NG_NONE for zeros; a GRU's and an RNN's c stays NG_NONE.
 * lengths as in ng_forward, or NG_NONE.
 *
 * The state is the tape's: to go on from it after ng_tape_reset, keep copies (ng_copy_new). A
 * module that is no RNN, GRU or LSTM is NG_EVALUE. */
NG_API ng_tensor *ng_forward_recurrent(ng_module *module, ng_tape *tape, ng_tensor *x,
                                       ng_tensor *lengths, ng_recurrent_state *state);

NG_END_C

#endif
