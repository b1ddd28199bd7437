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

/* The state is (1, y), so that y'_i = x_i times the element before it, and 1' = 0. */
static ng_tensor *slope(ng_tape *tape, ng_tensor *rates, ng_tensor *state)
{
    return ng_mul(tape, rates, ng_roll(tape, state, 1, 0));
}

static ng_tensor *plus(ng_tape *tape, ng_tensor *y, double h, ng_tensor *k)
{
    return ng_add(tape, y, ng_mul_scalar(tape, k, h));
}

static void primal(ng_tape *tape, ng_tensor **y)
{
    const double h = 2 / (double)steps;
    ng_tensor *rates = ng_pad(tape, x, 0, 1, 0);
    ng_tensor *state = ng_pad(tape, ng_full(tape, NG_F64, NG_SHAPE(1), 1), 0, 0, ng_size(x));
    for (int64_t i = 0; i < steps; i++) {
        ng_tensor *k1 = slope(tape, rates, state);
        ng_tensor *k2 = slope(tape, rates, plus(tape, state, h / 2, k1));
        ng_tensor *k3 = slope(tape, rates, plus(tape, state, h / 2, k2));
        ng_tensor *k4 = slope(tape, rates, plus(tape, state, h, k3));
        ng_tensor *k = ng_add(tape, plus(tape, k1, 2, k2), plus(tape, k4, 2, k3));
        state = plus(tape, state, h / 6, k);
    }
    *y = ng_slice(tape, state, 0, 1, NG_END);
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
