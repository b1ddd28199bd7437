/* With g = gamma dy, the gradient to xhat, there are three ways from x: directly, through the
 * mean, and through r. The second subtracts mean(g), the third is RMSNorm's:
 *
 *     dx = r (g - mean(g) - xhat mean(g xhat))
 *
 * dx sums to 0 over a row, and so does dx xhat nearly: neither shifting nor stretching a row
 * changes y. dgamma = sum over rows of dy xhat, dbeta = sum over rows of dy. */
#define SOLUTION solution
#include "../exercise.h"

static ng_tensor *normalized(ng_tape *tape, ng_tensor *x, ng_tensor **r);

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *r, *xhat = normalized(tape, node->inputs[0], &r);
    ng_tensor *g = ng_mul(tape, dy, node->inputs[1]);
    ng_tensor *along = ng_mul(tape, xhat, row_mean(tape, ng_mul(tape, g, xhat)));
    ng_tensor *centred = ng_sub(tape, g, row_mean(tape, g));
    dx[0] = ng_mul(tape, r, ng_sub(tape, centred, along));
    dx[1] = column_sum(tape, ng_mul(tape, dy, xhat));
    dx[2] = column_sum(tape, dy);
}

#include "../05_layer_norm.c"
