/* 7. The same BatchNorm, simplified: put the steps of exercise 6 together by hand, until dx is one
 * formula of r, xhat and g = gamma dy with two means over columns. sum(off) is 0: use it. */
#include "exercise.h"

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *off = ng_sub(tape, in[0], column_mean(tape, in[0]));
    ng_tensor *r = reciprocal_root(tape, column_mean(tape, ng_square(tape, off)));
    return ng_add(tape, ng_mul(tape, ng_mul(tape, off, r), in[1]), in[2]);
}

static void backward(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    ng_tensor *off = ng_sub(tape, x, column_mean(tape, x));
    ng_tensor *r = reciprocal_root(tape, column_mean(tape, ng_square(tape, off)));
    ng_tensor *xhat = ng_mul(tape, off, r), *g = ng_mul(tape, dy, gamma);
    (void)g;
    dx[0] = NG_NONE; /* yours */
    dx[1] = column_sum(tape, ng_mul(tape, dy, xhat));
    dx[2] = column_sum(tape, dy);
}

EXERCISE("BatchNorm, simplified", {.name = "x", .shape = NG_SHAPE(5, 3)},
         {.name = "gamma", .shape = NG_SHAPE(3)}, {.name = "beta", .shape = NG_SHAPE(3)})
