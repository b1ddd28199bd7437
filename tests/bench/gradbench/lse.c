/* lse: y = ln sum e^x, composed of its primitives as the benchmark asks. (ng_logsumexp is this
 * function as one op.) */
#include "gradbench.h"

static ng_tensor *x;

static void prepare(const char *input) { x = input_leaf(input, "x"); }

/* y = a + ln sum e^(x - a) for any a: a = max x avoids overflow, and needs no gradient. */
static ng_tensor *primal(ng_tape *tape)
{
    ng_tensor *a = ng_max(tape, ng_detach(tape, x));
    ng_tensor *sum = ng_sum(tape, ng_exp(tape, ng_sub(tape, x, a)));
    return ng_add(tape, ng_log(tape, sum), a);
}

const gradbench_eval eval_lse = {"primal", "gradient", prepare, primal, NULL};
