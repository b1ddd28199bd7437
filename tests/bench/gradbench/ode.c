/* ode: y'_0 = x_0, y'_i = x_i y_(i-1) from y(0) = 0 to y(2) in s steps of Runge-Kutta's method of
 * order 4; the gradient of the last element. */
#include "gradbench.h"

static ng_tensor *x;
static int64_t steps;

static void prepare(const char *input)
{
    x = ng_require_grad(input_tensor(input, "x"));
    steps = input_count(input, "s");
}

/* x * (1, y_0, y_1... y_(n-2)) */
static ng_tensor *slope(ng_tape *tape, ng_tensor *one, ng_tensor *y)
{
    ng_tensor *before = ng_slice(tape, y, 0, 0, -1);
    return ng_mul(tape, x, ng_concat(tape, NG_TENSORS(one, before), 0));
}

static ng_tensor *plus(ng_tape *tape, ng_tensor *y, double h, ng_tensor *k)
{
    return ng_add(tape, y, ng_mul_scalar(tape, k, h));
}

static void primal(ng_tape *tape, ng_tensor **result)
{
    const double h = 2 / (double)steps;
    ng_tensor *one = ng_full(tape, NG_F64, NG_SHAPE(1), 1), *y = ng_zeros_like(tape, x);
    for (int64_t i = 0; i < steps; i++) {
        ng_tensor *k1 = slope(tape, one, y);
        ng_tensor *k2 = slope(tape, one, plus(tape, y, h / 2, k1));
        ng_tensor *k3 = slope(tape, one, plus(tape, y, h / 2, k2));
        ng_tensor *k4 = slope(tape, one, plus(tape, y, h, k3));
        ng_tensor *k = ng_add(tape, plus(tape, k1, 2, k2), plus(tape, k4, 2, k3));
        y = plus(tape, y, h / 6, k);
    }
    *result = y;
}

static void gradient(ng_tape *tape, ng_tensor **dx)
{
    ng_tensor *y;
    primal(tape, &y);
    *dx = ng_gradient(tape, ng_slice(tape, y, 0, -1, NG_END), x);
}

int main(void)
{
    const gradbench_module module = {.module = "ode",
                                     .prepare = prepare,
                                     .primal = {"primal", primal},
                                     .gradient = {"gradient", gradient}};
    return gradbench(&module);
}
