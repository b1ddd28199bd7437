/* saddle: the x and then the y of min_x max_y |x|^2 - |y|^2 in two dimensions, each by gradient
 * descent: the derivative of the maximum goes through the descent that finds it. */
#include "descent.h"

static ng_tensor *start;
static bool inner_forward;

static void prepare(const char *input) { start = input_tensor(input, "start"); }

static ng_tensor *f(ng_tape *tape, ng_tensor *x, ng_tensor *y)
{
    return ng_sub(tape, ng_sum_squares(tape, x), ng_sum_squares(tape, y));
}

static ng_tensor *minus_f(ng_tape *tape, const descent *c, ng_tensor *y)
{
    return ng_neg(tape, f(tape, c->with, y));
}

static ng_tensor *highest(ng_tape *tape, ng_tensor *x, bool inner)
{
    return descend(
        tape, &(descent){.value = minus_f, .with = x, .forward = inner_forward, .inner = inner},
        start);
}

static ng_tensor *most(ng_tape *tape, const descent *c, ng_tensor *x)
{
    (void)c;
    return f(tape, x, highest(tape, x, true));
}

static ng_tensor *saddle(ng_tape *tape, bool outer, bool inner)
{
    inner_forward = inner;
    ng_tensor *x = descend(tape, &(descent){.value = most, .forward = outer}, start);
    return ng_concat(tape, NG_TENSORS(x, highest(tape, x, true)), 0);
}

int main(void) { return descents("saddle", prepare, saddle); }
