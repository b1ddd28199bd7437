/* dg = sum over a row of dw u. For v, d|v|/dv = u, so the derivative of v / |v| takes away what is
 * along u, as in RMSNorm:
 *
 *     dv = g / |v| (dw - u sum(dw u))
 *
 * dv is at right angles to v: a step along dv only makes v longer, and never changes w much. */
#define SOLUTION solution
#include "../exercise.h"

static ng_tensor *lengths(ng_tape *tape, ng_tensor *v);

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dw, ng_tensor **dx)
{
    ng_tensor *v = node->inputs[0], *length = lengths(tape, v);
    ng_tensor *u = ng_div(tape, v, length);
    ng_tensor *dg = row_sum(tape, ng_mul(tape, dw, u));
    ng_tensor *across = ng_sub(tape, dw, ng_mul(tape, u, dg));
    dx[0] = ng_mul(tape, ng_div(tape, node->inputs[1], length), across);
    dx[1] = dg;
}

#include "../09_weight_norm.c"
