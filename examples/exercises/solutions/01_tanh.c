/* tanh' = 1 - tanh^2, so dx = dy (1 - y^2). It needs y alone, which is there already. */
#define SOLUTION solution
#include "../exercise.h"

static void solution(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *slope = ng_add_scalar(tape, ng_neg(tape, ng_square(tape, node->output)), 1);
    dx[0] = ng_mul(tape, dy, slope);
}

#include "../01_tanh.c"
