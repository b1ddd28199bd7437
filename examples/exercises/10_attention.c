/* 10. Attention of one head with a mask: q, k, v (T, d),
 *
 *     s = q k^T / sqrt(d) + mask        p = softmax of each row of s        y = p v
 *
 * The mask is 0 where position i may look at j (j <= i), and so negative elsewhere that p is 0. */
#include "exercise.h"
#include <math.h>

static ng_tensor *weights(ng_tape *tape, ng_tensor *q, ng_tensor *k)
{
    ng_tensor *s = ng_matmul(tape, q, k, .transpose_b = true);
    s = ng_mul_scalar(tape, s, 1 / sqrt((double)ng_dim(q, 1)));
    ng_tensor *later = ng_triu(tape, ng_full(tape, NG_F64, ng_shape_of(s), -1e9), 1);
    return ng_softmax(tape, ng_add(tape, s, later));
}

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *in)
{
    return ng_matmul(tape, weights(tape, in[0], in[1]), in[2]);
}

static void backward(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *q = node->inputs[0], *k = node->inputs[1], *v = node->inputs[2];
    ng_tensor *p = weights(tape, q, k);
    (void)p, (void)v, (void)dy;
    for (int i = 0; i < 3; i++) dx[i] = NG_NONE; /* yours: of q, k and v */
}

EXERCISE("attention", {.name = "q", .shape = NG_SHAPE(4, 3)},
         {.name = "k", .shape = NG_SHAPE(4, 3)}, {.name = "v", .shape = NG_SHAPE(4, 3)})
