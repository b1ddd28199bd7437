/* lse: y = ln sum e^x, composed of its primitives as the benchmark asks. (ng_logsumexp is this
 * function as one op.) */
#include "gradbench.h"

static ng_tensor *x;

static void prepare(const char *input) { x = ng_require_grad(input_tensor(input, "x")); }

/* y = a + ln sum e^(x - a) for any a: a = max x avoids overflow, and needs no gradient. */
static void primal(ng_tape *tape, ng_tensor **y)
{
    ng_tensor *a = ng_max(tape, ng_detach(tape, x));
    ng_tensor *sum = ng_sum(tape, ng_exp(tape, ng_sub(tape, x, a)));
    *y = ng_add(tape, ng_log(tape, sum), a);
}

static void gradient(ng_tape *tape, ng_tensor **dx)
{
    ng_tensor *y;
    primal(tape, &y);
    *dx = ng_gradient(tape, y, x);
}

int main(void)
{
    const gradbench_module module = {.module = "lse",
                                     .prepare = prepare,
                                     .primal = {"primal", primal},
                                     .gradient = {{"gradient", gradient}}};
    return gradbench(&module);
}
