/* 1. y = tanh(x), element by element.
 *
 * backward gets dy = dL/dy and gives dx[i] = dL/d(input i), in the input's shape, made of ops:
 * ng_mul(tape, a, b), ng_square(tape, a), ng_add_scalar(tape, a, 1)... NG_NONE is a gradient of 0.
 */
#include "exercise.h"

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *in) { return ng_tanh(tape, in[0]); }

static void backward(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *y = node->output;
    (void)tape, (void)y, (void)dy;
    dx[0] = NG_NONE; /* yours */
}

EXERCISE("tanh", {.name = "x", .shape = NG_SHAPE(2, 3)})
