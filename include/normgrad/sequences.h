/* Sequences: attention, rotary positions, recurrence. attention.h and recurrent.h have the layers.
 *
 *     ng_tensor *q = ng_rotary(tape, x, .dim = 16);
 *     ng_tensor *y = ng_attention(tape, q, q, x, NG_NONE, .heads = 4, .causal = true);
 *     ng_recurrent_state state = NG_NO_STATE;
 *     y = ng_lstm(tape, y, weights, state, NG_NONE, .last = &state);
 *
 *     ng_attention(tape, q, k, v, mask)           softmax(scale q k^T) v for each head
 *     ng_self_attention(tape, qkv, mask)          the same, with q, k and v in one tensor
 *     ng_rotary(tape, x)                          rotates pairs of features by their position
 *     ng_rnn(tape, x, weights, state, lengths)    h' = tanh(W_ih x + b_ih + W_hh h + b_hh)
 *     ng_gru(tape, x, weights, state, lengths)    h' = (1 - z) * n + z * h
 *     ng_lstm(tape, x, weights, state, lengths)   c' = s(f) * c + s(i) * tanh(g)
 */
#ifndef NORMGRAD_SEQUENCES_H
#define NORMGRAD_SEQUENCES_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* ---- Attention ---------------------------------------------------------------------------- */

/* y = dropout(softmax(scale q k^T)) v for each head; Vaswani et al. 2017. q is (N, H, T, D), k and
 * v are (N, H, S, D), y is (N, H, T, D). With .heads = H the heads stand side by side: q and y are
 * (N, T, H D), k and v are (N, S, H D).
 *
 * mask is NG_NONE, or 0 where a key is hidden: from all queries (N, S); from a query (1 or N, T, S)
 * or (1 or N, 1 or H, T, S). Of a mask (T, S) make ng_unsqueeze(tape, mask, 0). It gets no
 * gradient.
 *
 * A hidden key has weight 0, but it and its value must be finite. A query that sees no key has
 * output 0. With .weights, or a mask of three or four dimensions, the op is composed of others: it
 * takes several times as long and keeps T x S numbers. Without, the backward pass computes the
 * weights again (Dao et al. 2022). */
typedef struct {
    int64_t heads;    /* H; default: q, k and v have a dimension of heads */
    int64_t kv_heads; /* G, a divisor of H: k and v have G heads, each shared by H / G neighbouring
                         heads of q; default H. Shazeer 2019, Ainslie et al. 2023 */
    double scale;     /* default 1 / sqrt(D) */
    bool causal;      /* query t sees only the keys 0 .. t + S - T: the last query sees all. If
                         T > S, the first T - S queries see none */
    double dropout;   /* probability, below 1, that a weight becomes 0; the others are divided by
                         1 - dropout. Drawn from the tape's generator */
    ng_tensor *
        *weights; /* gets the weights (N, H, T, S), after dropout; gradients flow through them
                     too. Their mean over axis 1 is PyTorch's second result */
    ng_tensor *mask;
} ng_attention_options;
#define ng_attention(tape, q, k, v, ...)                                                           \
    ng_attention_with(tape, q, k, v, NG_NAMED(ng_attention_options, mask, __VA_ARGS__))
NG_API ng_tensor *ng_attention_with(ng_tape *tape, ng_tensor *q, ng_tensor *k, ng_tensor *v,
                                    ng_attention_options options);

/* Attention with q, k and v side by side in the features of one tensor: qkv (N, T, 3 H D), mask
 * (N, T) or NG_NONE -> (N, T, H D). With .kv_heads = G qkv is (N, T, (H + 2 G) D). */
typedef struct {
    int64_t heads, kv_heads; /* as in ng_attention, like the others */
    double scale;
    bool causal;
    double dropout;
    ng_tensor **weights;
    ng_tensor *mask;
} ng_self_attention_options;
#define ng_self_attention(tape, qkv, ...)                                                          \
    ng_self_attention_with(tape, qkv, NG_NAMED(ng_self_attention_options, mask, __VA_ARGS__))
NG_API ng_tensor *ng_self_attention_with(ng_tape *tape, ng_tensor *qkv,
                                         ng_self_attention_options options);

/* Rotary positions of x (..., T, features): rotates the pair of features (2i, 2i + 1) of each head
 * by the angle (start + t) base^(-2i / dim). Su et al. 2021. */
typedef struct {
    int64_t dim;   /* features of a head, even; default: all that are rotated */
    int64_t over;  /* how many leading features are rotated; default: all */
    int64_t start; /* position of the first row; default 0 */
    double base;   /* default 10000 */
    ng_tensor *x;
} ng_rotary_options;
#define ng_rotary(tape, ...) ng_rotary_with(tape, NG_NAMED(ng_rotary_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_rotary_with(ng_tape *tape, ng_rotary_options options);

/* ---- Recurrence --------------------------------------------------------------------------- */

/* The weights of a layer. Its G gates stand one above the other in PyTorch's order; G is 1 in an
 * RNN, 3 in a GRU, 4 in an LSTM. */
typedef struct {
    ng_tensor *weight_ih, *weight_hh; /* (G H, F) and (G H, H) */
    ng_tensor *bias_ih, *bias_hh;     /* (G H), or NG_NONE */
} ng_recurrent_weights;

/* The state between steps: h (N, H), and c (N, H) of an LSTM; NG_NONE is zeros. */
typedef struct {
    ng_tensor *h, *c;
} ng_recurrent_state;
#define NG_NO_STATE NG_NAMED(ng_recurrent_state, c, NG_NONE, .h = NG_NONE)

/* One layer of a recurrent network in one direction: x (N, T, F) -> y (N, T, H), the state h after
 * each step. s is the sigmoid, * multiplies element by element:
 *
 *     ng_rnn   h' = tanh(W_ih x + b_ih + W_hh h + b_hh); Elman 1990
 *     ng_gru   r, z = s(W_ih x + b_ih + W_hh h + b_hh); Cho et al. 2014
 *              n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
 *              h' = (1 - z) * n + z * h
 *     ng_lstm  i, f, g, o = W_ih x + b_ih + W_hh h + b_hh; Hochreiter & Schmidhuber 1997
 *              c' = s(f) * c + s(i) * tanh(g)
 *              h' = s(o) * tanh(c')
 *
 *     y = ng_gru(tape, x, weights, state, lengths, .reverse = true, .last = &state)
 *
 * lengths is int64 (N), from 0 to T, or NG_NONE. Steps at and after a row's length do not change
 * its state and give y = 0, so padding has no effect, whatever it holds (PyTorch's
 * pack_padded_sequence). */
typedef struct {
    bool reverse; /* steps in reverse, each row from its last step on */
    bool relu;    /* ng_rnn only: max(0, ...) in place of tanh */
    ng_recurrent_state
        *last; /* gets the state after the last step; c is NG_NONE except in an LSTM */
    ng_tensor *lengths;
} ng_recurrent_options;
#define ng_rnn(tape, x, weights, state, ...)                                                       \
    ng_rnn_with(tape, x, weights, state, NG_NAMED(ng_recurrent_options, lengths, __VA_ARGS__))
#define ng_gru(tape, x, weights, state, ...)                                                       \
    ng_gru_with(tape, x, weights, state, NG_NAMED(ng_recurrent_options, lengths, __VA_ARGS__))
#define ng_lstm(tape, x, weights, state, ...)                                                      \
    ng_lstm_with(tape, x, weights, state, NG_NAMED(ng_recurrent_options, lengths, __VA_ARGS__))
NG_API ng_tensor *ng_rnn_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                              ng_recurrent_state state, ng_recurrent_options options);
NG_API ng_tensor *ng_gru_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                              ng_recurrent_state state, ng_recurrent_options options);
NG_API ng_tensor *ng_lstm_with(ng_tape *tape, ng_tensor *x, ng_recurrent_weights weights,
                               ng_recurrent_state state, ng_recurrent_options options);

NG_END_C

#endif
