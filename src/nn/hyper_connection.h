/* Hyper-connections: n residual streams x_i, side by side, around a branch f.
 *
 *     x'_o = sum_i res[o, i] x_i + post[o] f(sum_i pre[i] x_i) */
#ifndef NG_NN_HYPER_CONNECTION_H
#define NG_NN_HYPER_CONNECTION_H

#include "nn/module.h"

/* Makes the coefficients of one branch of x (..., streams dim); at least 2 streams. */
ng_module *ng_hyper_connection_new(int64_t dim, int64_t streams);

/* The streams (rows, n, dim) and what the branch's output is added with. */
typedef struct {
    ng_tensor *streams, *post, *res; /* (rows, n, dim), (rows, n, 1), (rows, n, n) */
    ng_shape shape;                  /* of x */
} ng_hyper_streams;

/* sum_i pre[i] x_i (..., dim), the branch's input, and the rest for ng_hyper_write, which returns
 * the new streams for the branch's output y (..., dim). */
ng_tensor *ng_hyper_read(const ng_module *connection, ng_tape *tape, ng_tensor *x,
                         ng_hyper_streams *rest);
ng_tensor *ng_hyper_write(const ng_hyper_streams *rest, ng_tape *tape, ng_tensor *y);

#endif
