/* dr/dx_j = -r^3 x_j / n. The two ways from x to L give
 *
 *     dx_j = r dy_j + (sum_i dy_i x_i) dr/dx_j = r dy_j - r^3 x_j mean(dy x)
 *
 * and with y = r x
 *
 *     dx = r (dy - y mean(dy y))
 *
 * The part of dy along y is taken away: making a row longer does not change it. */
#define SOLUTION solution
#include "../exercise.h"

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *y = node->output;
    ng_tensor *r = reciprocal_root(tape, row_mean(tape, ng_square(tape, x)));
    ng_tensor *along = ng_mul(tape, y, row_mean(tape, ng_mul(tape, dy, y)));
    dx[0] = ng_mul(tape, r, ng_sub(tape, dy, along));
}

#include "../04_rms_norm.c"
