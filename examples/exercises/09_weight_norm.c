/* 9. Weight normalization: a weight's rows v (out, in) and their lengths g (out, 1),
 *
 *     w = g u        u = v / |v| for each row
 *
 * The op's output is w. |v| = sqrt(sum(v^2)), with no eps. */
#include "exercise.h"

static ng_tensor *lengths(ng_tape *tape, ng_tensor *v)
{
    return ng_sqrt(tape, row_sum(tape, ng_square(tape, v)));
}

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *in)
{
    return ng_mul(tape, in[1], ng_div(tape, in[0], lengths(tape, in[0])));
}

static void backward(ng_tape *tape, const ng_node *node, ng_tensor *dw, ng_tensor **dx)
{
    ng_tensor *v = node->inputs[0], *g = node->inputs[1];
    ng_tensor *length = lengths(tape, v);
    (void)g, (void)length, (void)dw;
    dx[0] = NG_NONE; /* yours: of v */
    dx[1] = NG_NONE; /* of g */
}

EXERCISE("weight norm", {.name = "v", .shape = NG_SHAPE(3, 4)},
         {.name = "g", .shape = NG_SHAPE(3, 1)})
