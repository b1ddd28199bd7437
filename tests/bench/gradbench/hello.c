/* hello: y = x^2 and its gradient. */
#include "gradbench.h"

static ng_tensor *x;

static void prepare(const char *input) { x = ng_require_grad(input_tensor(input, NULL)); }

static void square(ng_tape *tape, ng_tensor **y) { *y = ng_square(tape, x); }

static void double_x(ng_tape *tape, ng_tensor **dx)
{
    *dx = ng_gradient(tape, ng_square(tape, x), x);
}

int main(void)
{
    const gradbench_module module = {.module = "hello",
                                     .prepare = prepare,
                                     .primal = {"square", square},
                                     .gradient = {{"double", double_x}}};
    return gradbench(&module);
}
