/* Training is exercise 7 without gamma. In evaluation nothing is shared between the rows: with
 * q = 1 / sqrt(s^2 + eps) and e = (x - m) q,
 *
 *     dx gains q de        dm = -sum(q de)        ds = -sum(de e) q^2 s      since dq/ds = -q^3 s
 *
 * Who uses training's formula in evaluation subtracts two means that are not there. */
#define SOLUTION solution
#include "../exercise.h"

static ng_tensor *of_batch(ng_tape *tape, ng_tensor *x, ng_tensor **r);

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *m = node->inputs[1], *s = node->inputs[2], *r;
    ng_tensor *dt = ng_reshape(tape, ng_slice(tape, dy, 0, 0, 1), ng_shape_of(x));
    ng_tensor *de = ng_reshape(tape, ng_slice(tape, dy, 0, 1, 2), ng_shape_of(x));
    ng_tensor *xhat = of_batch(tape, x, &r), *q = reciprocal_root(tape, ng_square(tape, s));
    ng_tensor *along = ng_mul(tape, xhat, column_mean(tape, ng_mul(tape, dt, xhat)));
    ng_tensor *centred = ng_sub(tape, dt, column_mean(tape, dt));
    ng_tensor *trained = ng_mul(tape, r, ng_sub(tape, centred, along));
    ng_tensor *off = ng_mul(tape, ng_sub(tape, x, m), ng_mul(tape, ng_square(tape, q), s));
    dx[0] = ng_add(tape, trained, ng_mul(tape, q, de));
    dx[1] = ng_neg(tape, column_sum(tape, ng_mul(tape, q, de)));
    dx[2] = ng_neg(tape, column_sum(tape, ng_mul(tape, ng_mul(tape, de, q), off)));
}

#include "../12_running_statistics.c"
