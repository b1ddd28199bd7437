/* 8. AdaptiveLayerNorm: x (rows, n), a condition c (rows, m), W and V (m, n), and for each row
 *
 *     y = (1 + c W) xhat + c V        xhat as in LayerNorm
 *
 * c is in two places. ng_matmul(tape, a, b, .transpose_a = true) multiplies by a transpose. */
#include "exercise.h"

static ng_tensor *normalized(ng_tape *tape, ng_tensor *x, ng_tensor **r)
{
    ng_tensor *off = ng_sub(tape, x, row_mean(tape, x));
    *r = reciprocal_root(tape, row_mean(tape, ng_square(tape, off)));
    return ng_mul(tape, off, *r);
}

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *r, *xhat = normalized(tape, in[0], &r);
    ng_tensor *scale = ng_add_scalar(tape, ng_matmul(tape, in[1], in[2]), 1);
    return ng_add(tape, ng_mul(tape, xhat, scale), ng_matmul(tape, in[1], in[3]));
}

static void backward(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *c = node->inputs[1], *W = node->inputs[2], *V = node->inputs[3], *r;
    ng_tensor *xhat = normalized(tape, node->inputs[0], &r);
    (void)c, (void)W, (void)V, (void)xhat, (void)dy;
    for (int i = 0; i < 4; i++) dx[i] = NG_NONE; /* yours: of x, c, W and V */
}

EXERCISE("AdaptiveLayerNorm", {.name = "x", .shape = NG_SHAPE(3, 4)},
         {.name = "c", .shape = NG_SHAPE(3, 2)}, {.name = "W", .shape = NG_SHAPE(2, 4)},
         {.name = "V", .shape = NG_SHAPE(2, 4)})
