/* 2 off dvar / N = -off r^3 mean(g off) = -r xhat mean(g xhat), and its sum over a column is 0,
 * since sum(off) is. So dmean / N = -r mean(g), and
 *
 *     dx = r (g - mean(g) - xhat mean(g xhat))
 *
 * which is LayerNorm's formula over columns: all norms have this one. */
#define SOLUTION solution
#include "../exercise.h"

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *g = ng_mul(tape, dy, node->inputs[1]);
    ng_tensor *off = ng_sub(tape, x, column_mean(tape, x));
    ng_tensor *r = reciprocal_root(tape, column_mean(tape, ng_square(tape, off)));
    ng_tensor *xhat = ng_mul(tape, off, r);
    ng_tensor *along = ng_mul(tape, xhat, column_mean(tape, ng_mul(tape, g, xhat)));
    dx[0] = ng_mul(tape, r, ng_sub(tape, ng_sub(tape, g, column_mean(tape, g)), along));
    dx[1] = column_sum(tape, ng_mul(tape, dy, xhat));
    dx[2] = column_sum(tape, dy);
}

#include "../07_batch_norm_simplified.c"
