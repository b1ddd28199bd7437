/* Let a = mean(dz g), b = mean(dz x), c = mean(g x). L = n (r a - r^3 b c), a number of each row.
 *
 *     dL/dg = r dz - r^3 b x                            the op itself, applied to dz
 *     dL/dx = n (a - 3 r^2 b c) dr/dx - r^3 (c dz + b g)
 *           = r^3 (3 r^2 b c x - a x - c dz - b g)
 *
 * The first line shows that the Jacobian of a norm is symmetric without a scale. */
#define SOLUTION solution
#include "../exercise.h"

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dz, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *g = node->inputs[1];
    ng_tensor *r = reciprocal_root(tape, row_mean(tape, ng_square(tape, x)));
    ng_tensor *r2 = ng_square(tape, r), *r3 = ng_mul(tape, r2, r);
    ng_tensor *a = row_mean(tape, ng_mul(tape, dz, g));
    ng_tensor *b = row_mean(tape, ng_mul(tape, dz, x));
    ng_tensor *c = row_mean(tape, ng_mul(tape, g, x));
    ng_tensor *of_x = ng_mul_scalar(tape, ng_mul(tape, r2, ng_mul(tape, b, c)), 3);
    ng_tensor *along = ng_mul(tape, ng_sub(tape, of_x, a), x);
    ng_tensor *rest = ng_add(tape, ng_mul(tape, c, dz), ng_mul(tape, b, g));
    dx[0] = ng_mul(tape, r3, ng_sub(tape, along, rest));
    dx[1] = ng_sub(tape, ng_mul(tape, r, dz), ng_mul(tape, ng_mul(tape, r3, b), x));
}

#include "../11_rms_norm_second.c"
