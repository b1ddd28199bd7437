/* The mean of g xhat had dy in place of g: with gamma = 1 they are the same. PyTorch's recorded
 * gradient of LayerNorm lacked a gamma like that (pytorch 41595).
 *
 * And xhat and r depend on x. Numbers that are kept have no gradient, so dx is right and the
 * gradient of dx lacks two terms. Here they are computed again from x, recorded; a kernel that
 * keeps them needs a rule of its own for the second order (exercise 11). With numbers kept in that
 * rule in turn, the third order is wrong: PyTorch's LayerNorm (pytorch 175754). */
#define SOLUTION solution
#include "../exercise.h"

static ng_tensor *normalized(ng_tape *tape, ng_tensor *x, ng_tensor **r);
static ng_tensor *kept(ng_tape *tape, ng_tensor *x, ng_tensor **r);

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *gamma = node->inputs[1], *r;
    ng_tensor *xhat = normalized(tape, node->inputs[0], &r);
    ng_tensor *g = ng_mul(tape, dy, gamma);
    ng_tensor *along = ng_mul(tape, xhat, row_mean(tape, ng_mul(tape, g, xhat)));
    ng_tensor *centred = ng_sub(tape, g, row_mean(tape, g));
    dx[0] = ng_mul(tape, r, ng_sub(tape, centred, along));
    dx[1] = column_sum(tape, ng_mul(tape, dy, xhat));
}

#include "../13_find_the_bug.c"
