/* The scale 1 + c W stands where gamma did, but each row has its own:
 *
 *     g = (1 + c W) dy, and dx as in LayerNorm
 *     dscale = dy xhat, dshift = dy             the gradients to c W and to c V
 *     dW = c^T dscale, dV = c^T dshift
 *     dc = dscale W^T + dshift V^T              both places */
#define SOLUTION solution
#include "../exercise.h"

static ng_tensor *normalized(ng_tape *tape, ng_tensor *x, ng_tensor **r);

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *c = node->inputs[1], *W = node->inputs[2], *V = node->inputs[3], *r;
    ng_tensor *xhat = normalized(tape, node->inputs[0], &r);
    ng_tensor *g = ng_mul(tape, dy, ng_add_scalar(tape, ng_matmul(tape, c, W), 1));
    ng_tensor *along = ng_mul(tape, xhat, row_mean(tape, ng_mul(tape, g, xhat)));
    ng_tensor *dscale = ng_mul(tape, dy, xhat);
    dx[0] = ng_mul(tape, r, ng_sub(tape, ng_sub(tape, g, row_mean(tape, g)), along));
    dx[1] = ng_add(tape, ng_matmul(tape, dscale, W, .transpose_b = true),
                   ng_matmul(tape, dy, V, .transpose_b = true));
    dx[2] = ng_matmul(tape, c, dscale, .transpose_a = true);
    dx[3] = ng_matmul(tape, c, dy, .transpose_a = true);
}

#include "../08_adaptive_layer_norm.c"
