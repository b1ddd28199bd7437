/* ode: y'_0 = x_0, y'_i = x_i y_(i-1) from y(0) = 0 to y(2) in s steps of Runge-Kutta's method of
 * order 4; the gradient of the last element. */
#include "gradbench.h"

static ng_tensor *x;
static int64_t steps;

static void prepare(const char *input)
{
    x = input_leaf(input, "x");
    steps = input_count(input, "s");
}

/* The state is (1, y), so that y'_i = x_i times the element before it, and 1' = 0. */
static ng_tensor *slope(ng_tape *tape, ng_tensor *rates, ng_tensor *state)
{
    return ng_mul(tape, rates, ng_shift(tape, state, 1, .axes = NG_AXES(0)));
}

static ng_tensor *ahead(ng_tape *tape, ng_tensor *state, double h, ng_tensor *k)
{
    return ng_combine(tape, (ng_tensor *[]){state, k}, (double[]){1, h}, 2);
}

static ng_tensor *primal(ng_tape *tape)
{
    const double h = 2 / (double)steps, weights[] = {1, h / 6, h / 3, h / 3, h / 6};
    ng_tensor *rates = ng_pad(tape, x, 0, 1, 0);
    ng_tensor *state = ng_pad(tape, ng_full(tape, NG_F64, NG_SHAPE(1), 1), 0, 0, ng_size(x));
    for (int64_t i = 0; i < steps; i++) {
        ng_tensor *k1 = slope(tape, rates, state);
        ng_tensor *k2 = slope(tape, rates, ahead(tape, state, h / 2, k1));
        ng_tensor *k3 = slope(tape, rates, ahead(tape, state, h / 2, k2));
        ng_tensor *k4 = slope(tape, rates, ahead(tape, state, h, k3));
        state = ng_combine(tape, (ng_tensor *[]){state, k1, k2, k3, k4}, weights, 5);
    }
    return ng_slice(tape, state, 0, 1, NG_END);
}

const gradbench_eval eval_ode = {"primal", "gradient", prepare, primal, NULL};
