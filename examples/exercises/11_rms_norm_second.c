/* 11. The second order of RMSNorm. Exercise 4 gave RMSNorm's gradient. Here that gradient is the
 * op: x and g (rows, n), and for each row, with r = 1 / sqrt(mean(x^2) + eps) and c = mean(g x),
 *
 *     z = r g - r^3 c x
 *
 * Derive its gradients to x and to g from dz. Remember dr/dx_j = -r^3 x_j / n. Checked at both
 * orders this is RMSNorm up to its third derivative. */
#include "exercise.h"

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *x = in[0], *g = in[1];
    ng_tensor *r = reciprocal_root(tape, row_mean(tape, ng_square(tape, x)));
    ng_tensor *c = row_mean(tape, ng_mul(tape, g, x));
    ng_tensor *along = ng_mul(tape, ng_mul(tape, ng_square(tape, r), c), x);
    return ng_mul(tape, r, ng_sub(tape, g, along));
}

static void backward(ng_tape *tape, const ng_node *node, ng_tensor *dz, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *g = node->inputs[1];
    ng_tensor *r = reciprocal_root(tape, row_mean(tape, ng_square(tape, x)));
    ng_tensor *c = row_mean(tape, ng_mul(tape, g, x));
    (void)r, (void)c, (void)dz;
    dx[0] = NG_NONE; /* yours: of x */
    dx[1] = NG_NONE; /* of g */
}

EXERCISE("second order of RMSNorm", {.name = "x", .shape = NG_SHAPE(3, 4)},
         {.name = "g", .shape = NG_SHAPE(3, 4)})
