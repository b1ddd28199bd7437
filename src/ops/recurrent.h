/* A recurrent layer composed of ops, step by step: the definition of the fused ones, and what a
 * layer with norms in its cell is made of. */
#ifndef NG_OPS_RECURRENT_H
#define NG_OPS_RECURRENT_H

#include "kernels/kernels.h"
#include <normgrad/ops.h>

/* What of a cell is normalized where there is a norm: the product of x, of all steps at once; that
 * of h; and of an LSTM c before its tanh, of an RNN the sum of both products, in whose place these
 * two are not. */
typedef enum { NG_PLACE_INPUT, NG_PLACE_HIDDEN, NG_PLACE_STATE } ng_recurrent_place;

typedef struct {
    ng_cell cell;
    bool reverse;
    ng_recurrent_weights weights;
    ng_recurrent_state first;
    ng_tensor *lengths;
    /* x normalized, of which what the mask, x's shape without features or NG_NONE, has 0 for is
     * padding; may be NULL. */
    ng_tensor *(*norm)(void *layer, ng_tape *tape, ng_recurrent_place place, ng_tensor *x,
                       ng_tensor *mask);
    void *layer; /* handed to norm */
} ng_recurrent_composition;

/* y (N, T, H) of x (N, T, F), whose shapes are in order; *last is the state after the last step. */
ng_tensor *ng_recurrent_composed(ng_tape *tape, ng_tensor *x, const ng_recurrent_composition *of,
                                 ng_recurrent_state *last);

/* Whether lengths is NG_NONE, or int64 (N) of numbers from 0 to T; else an error. */
bool ng_lengths_ok(const char *function, ng_tape *tape, ng_tensor *lengths, int64_t rows,
                   int64_t steps);

/* Whether the operands of a layer fit each other; else an error of `function`. */
bool ng_recurrent_fits(const char *function, ng_tape *tape, ng_tensor *x,
                       const ng_recurrent_composition *of);

#endif
