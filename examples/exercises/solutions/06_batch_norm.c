/* From the end to the beginning, N being the number of rows:
 *
 *     dxhat = gamma dy
 *     dr    = sum(dxhat off)
 *     dvar  = -r^3 / 2 dr                    since r = (var + eps)^(-1/2)
 *     doff  = r dxhat + 2 off dvar / N       off acts on xhat, and on var
 *     dmean = -sum(doff)
 *     dx    = doff + dmean / N               x acts on off, and on mean */
#define SOLUTION solution
#include "../exercise.h"

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    const double N = (double)ng_dim(x, 0);
    ng_tensor *off = ng_sub(tape, x, column_mean(tape, x));
    ng_tensor *r = reciprocal_root(tape, column_mean(tape, ng_square(tape, off)));
    ng_tensor *dxhat = ng_mul(tape, dy, gamma);
    ng_tensor *dr = column_sum(tape, ng_mul(tape, dxhat, off));
    ng_tensor *dvar =
        ng_mul_scalar(tape, ng_mul(tape, ng_mul(tape, ng_square(tape, r), r), dr), -0.5);
    ng_tensor *by_var = ng_mul_scalar(tape, ng_mul(tape, off, dvar), 2 / N);
    ng_tensor *doff = ng_add(tape, ng_mul(tape, dxhat, r), by_var);
    ng_tensor *dmean = ng_neg(tape, column_sum(tape, doff));
    dx[0] = ng_add(tape, doff, ng_mul_scalar(tape, dmean, 1 / N));
    dx[1] = column_sum(tape, ng_mul(tape, dy, ng_mul(tape, off, r)));
    dx[2] = column_sum(tape, dy);
}

#include "../06_batch_norm.c"
