/* 13. Find the bugs. This backward pass of LayerNorm (exercise 5, without beta) is written as for a
 * fused kernel: xhat and r are kept from the forward pass, as numbers. It has two faults, which
 * libraries have had: one is not seen where gamma is 1, the other is not seen in training.
 *
 * The checker draws gamma at random and differentiates what is written here once more. It reports
 * the first order that is wrong: mend that, and run it again. */
#include "exercise.h"

static ng_tensor *normalized(ng_tape *tape, ng_tensor *x, ng_tensor **r)
{
    ng_tensor *off = ng_sub(tape, x, row_mean(tape, x));
    *r = reciprocal_root(tape, row_mean(tape, ng_square(tape, off)));
    return ng_mul(tape, off, *r);
}

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *in)
{
    ng_tensor *r, *xhat = normalized(tape, in[0], &r);
    return ng_mul(tape, xhat, in[1]);
}

/* What the forward pass computed, as numbers: not recorded. */
static ng_tensor *kept(ng_tape *tape, ng_tensor *x, ng_tensor **r)
{
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *xhat = normalized(tape, x, r);
    ng_tape_set_recording(tape, was);
    return xhat;
}

static void backward(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *gamma = node->inputs[1], *r;
    ng_tensor *xhat = kept(tape, node->inputs[0], &r);
    ng_tensor *g = ng_mul(tape, dy, gamma);
    ng_tensor *along = ng_mul(tape, xhat, row_mean(tape, ng_mul(tape, dy, xhat)));
    ng_tensor *centred = ng_sub(tape, g, row_mean(tape, g));
    dx[0] = ng_mul(tape, r, ng_sub(tape, centred, along));
    dx[1] = column_sum(tape, ng_mul(tape, dy, xhat));
}

EXERCISE("LayerNorm with two faults", {.name = "x", .shape = NG_SHAPE(3, 4)},
         {.name = "gamma", .shape = NG_SHAPE(4)})
