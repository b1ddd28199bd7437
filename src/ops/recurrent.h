/* A recurrent layer in one direction, for ng_rnn and the others, and for layers with norms in the
 * cell. */
#ifndef NG_OPS_RECURRENT_H
#define NG_OPS_RECURRENT_H

#include "kernels/kernels.h"
#include <normgrad/ops.h>

/* What a norm in the cell is applied to. Input: the product of x, of all steps at once. Hidden: the
 * product of h, in a GRU and an LSTM. State: an LSTM's c before its tanh, and an RNN's sum of both
 * products; an RNN has this place only. */
typedef enum { NG_PLACE_INPUT, NG_PLACE_HIDDEN, NG_PLACE_STATE } ng_recurrent_place;

typedef struct {
    ng_cell cell;
    bool reverse;
    ng_recurrent_weights weights;
    ng_recurrent_state first;
    ng_tensor *lengths;
    /* Normalizes x; NULL: the cell has no norms. The mask has x's shape without the features, and 0
     * at padding; or it is NG_NONE. */
    ng_tensor *(*norm)(void *norms, ng_tape *tape, ng_recurrent_place place, ng_tensor *x,
                       ng_tensor *mask);
    void *norms; /* handed to norm */
} ng_recurrence;

/* y (N, T, H) of x (N, T, F). *last, unless it is NULL, becomes the state after the last step.
 * Errors name `function`. */
ng_tensor *ng_recur(const char *function, ng_tape *tape, ng_tensor *x, const ng_recurrence *layer,
                    ng_recurrent_state *last);

#endif
