/* A physics-informed network (Raissi, Perdikaris & Karniadakis 2019): u(t) is a network whose loss
 * is the residual of a differential equation, here that of a damped oscillator,
 *
 *     u'' + 2 d u' + (d^2 + w^2) u = 0,   u(0) = 1, u'(0) = 0,
 *
 * at random times in each step. u' and u'' are gradients with respect to the input, which are
 * differentiated again with respect to the parameters. build/examples/pinn --help */
#include "experiment.h"

enum { POINTS = 64, SHOWN = 200 };
static const double d = 0.5, w = 4, end = 4; /* damping, frequency, last time */

/* u and its first two derivatives at t (n, 1). */
typedef struct {
    ng_tensor *u, *first, *second;
} jet;

static jet jet_at(ng_module *net, ng_tape *tape, ng_tensor *t)
{
    jet j = {.u = ng_forward(net, tape, t)};
    j.first = ng_gradient(tape, j.u, t, .record = true);
    j.second = ng_gradient(tape, j.first, t, .record = true);
    return j;
}

static ng_tensor *residual(ng_tape *tape, jet j)
{
    ng_tensor *damping = ng_mul_scalar(tape, j.first, 2 * d);
    ng_tensor *spring = ng_mul_scalar(tape, j.u, d * d + w * w);
    return ng_add(tape, j.second, ng_add(tape, damping, spring));
}

static ng_tensor *loss_of(ng_module *net, ng_tape *tape)
{
    ng_tensor *t = ng_variable(tape, ng_uniform(tape, NG_F64, NG_SHAPE(POINTS, 1), 0, end));
    ng_tensor *start = ng_variable(tape, ng_full(tape, NG_F64, NG_SHAPE(1, 1), 0));
    ng_tensor *equation = ng_mean(tape, ng_square(tape, residual(tape, jet_at(net, tape, t))));
    const jet first = jet_at(net, tape, start);
    ng_tensor *place = ng_square(tape, ng_add_scalar(tape, first.u, -1));
    ng_tensor *speed = ng_square(tape, first.first);
    ng_tensor *conditions = ng_sum(tape, ng_add(tape, ng_mul_scalar(tape, place, 20), speed));
    return ng_add(tape, ng_mul_scalar(tape, equation, 0.1), ng_mul_scalar(tape, conditions, 10));
}

/* e^(-d t) (cos w t + d / w sin w t) */
static double exact(double t) { return exp(-d * t) * (cos(w * t) + d / w * sin(w * t)); }

/* Logs the network's and the exact solution. Returns the largest distance between them. */
static double log_solution(ng_history *history, ng_module *net, ng_tape *tape)
{
    double worst = 0;
    ng_tensor *t =
        ng_reshape(tape, ng_arange(tape, NG_F64, 0, end, end / (double)SHOWN), NG_SHAPE(-1, 1));
    ng_tensor *u = ng_forward(net, tape, t);
    ng_history_block(history, "solution");
    for (int64_t i = 0; u && i < ng_size(t); i++) {
        const double at = ng_get(t, i);
        ng_history_log(history, "t", i, at);
        ng_history_log(history, "network", i, ng_get(u, i));
        ng_history_log(history, "exact", i, exact(at));
        worst = fmax(worst, fabs(ng_get(u, i) - exact(at)));
    }
    return worst;
}

int main(int argc, char **argv)
{
    static const char what[] = "Solves the equation of a damped oscillator with a network.";
    experiment e = experiment_begin(argc, argv, "pinn", what, 6000);
    ng_module *net = ng_sequential_new(ng_linear_new(1, 32), ng_function_new("sin", ng_sin),
                                       ng_linear_new(32, 32), ng_function_new("sin", ng_sin),
                                       ng_linear_new(32, 1));
    ng_module_init(net, e.seed);
    ng_module_to(net, NG_F64);
    ng_optimizer *adam =
        ng_adam_new(net, .lr = 5e-3, .schedule = {.kind = NG_SCHEDULE_COSINE, .steps = e.steps});
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, e.seed);
    double loss = 0;
    for (int step = 0; experiment_goes_on(&e, step, "loss", loss); step++) {
        ng_tensor *of_step = loss_of(net, tape);
        if (ng_backward(tape, of_step) || ng_optimizer_step(adam)) break;
        loss = ng_item(of_step);
        ng_tape_reset(tape);
    }
    const double worst = log_solution(e.history, net, tape);
    progress_end(&e.bar);
    if (!ng_failed()) printf("largest distance from the exact solution: %.2e\n", worst);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    return experiment_end(&e);
}
