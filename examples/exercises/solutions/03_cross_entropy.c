/* log p[c] = x[c] - log sum_k e^x[k]. Its derivative to x[j] is [j = c] - e^x[j] / sum_k e^x[k],
 * which is [j = c] - p[j]. With the minus sign and the mean over rows:
 *
 *     dx = dy (p - target) / rows
 *
 * Each row of dx sums to 0: adding a number to all x of a row changes nothing. */
#define SOLUTION solution
#include "../exercise.h"

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0];
    ng_tensor *p = ng_softmax(tape, x);
    ng_tensor *target = ng_one_hot(tape, NG_F64, node->inputs[1], ng_dim(x, -1));
    ng_tensor *off = ng_mul_scalar(tape, ng_sub(tape, p, target), 1 / (double)ng_dim(x, 0));
    dx[0] = ng_mul(tape, dy, off);
}

#include "../03_cross_entropy.c"
