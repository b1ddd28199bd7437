/* y = p v is a product: dv = p^T dy, dp = dy v^T. The softmax of a row has dp_i/ds_j =
 * p_i ([i = j] - p_j), so
 *
 *     ds = p (dp - sum over the row of dp p)
 *
 * Where the mask hides a position p is 0, and so is ds. s is a product as well:
 * dq = ds k / sqrt(d), dk = ds^T q / sqrt(d). */
#define SOLUTION solution
#include "../exercise.h"
#include <math.h>

static ng_tensor *weights(ng_tape *tape, ng_tensor *q, ng_tensor *k);

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *q = node->inputs[0], *k = node->inputs[1], *v = node->inputs[2];
    ng_tensor *p = weights(tape, q, k);
    ng_tensor *dp = ng_matmul(tape, dy, v, .transpose_b = true);
    ng_tensor *ds = ng_mul(tape, p, ng_sub(tape, dp, row_sum(tape, ng_mul(tape, dp, p))));
    ds = ng_mul_scalar(tape, ds, 1 / sqrt((double)ng_dim(q, 1)));
    dx[0] = ng_matmul(tape, ds, k);
    dx[1] = ng_matmul(tape, ds, q, .transpose_a = true);
    dx[2] = ng_matmul(tape, p, dy, .transpose_a = true);
}

#include "../10_attention.c"
