/* Step 6: gradients of gradients. A network u(t) learns to solve a differential equation, that of
 * a spring with friction:
 *
 *     u'' + u' + 16 u = 0,   u(0) = 1, u'(0) = 0
 *
 * No solution is shown to it. Its loss is how far it is from fulfilling the equation at random
 * times. u' and u'' are gradients of the network with respect to its input, and the training takes
 * their gradients with respect to the weights (Raissi, Perdikaris & Karniadakis 2019). Run it in
 * the project's directory; a number after its name is the number of steps. */
#include <math.h>
#include <normgrad.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 3000, POINTS = 64 };
static const double last = 4; /* the time that the equation is solved up to */

static ng_module *network(void)
{
    ng_module *net = ng_sequential_new(ng_linear_new(1, 32), ng_function_new("sin", ng_sin),
                                       ng_linear_new(32, 32), ng_function_new("sin", ng_sin),
                                       ng_linear_new(32, 1));
    ng_module_to(net, NG_F64);
    return net;
}

/* What is left of the equation at the times t (n, 1). .record puts a gradient on the tape as well,
 * so that it has a gradient itself. */
static ng_tensor *residual(ng_module *net, ng_tape *tape, ng_tensor *t)
{
    ng_tensor *u = ng_forward(net, tape, t);
    ng_tensor *u1 = ng_gradient(tape, u, t, .record = true);
    ng_tensor *u2 = ng_gradient(tape, u1, t, .record = true);
    return ng_add(tape, u2, ng_add(tape, u1, ng_mul_scalar(tape, u, 16)));
}

/* (u(0) - 1)^2 + u'(0)^2. ng_variable makes a constant into an input that has a gradient. */
static ng_tensor *beginning(ng_module *net, ng_tape *tape)
{
    ng_tensor *zero = ng_variable(tape, ng_full(tape, NG_F64, NG_SHAPE(1, 1), 0));
    ng_tensor *u = ng_forward(net, tape, zero);
    ng_tensor *u1 = ng_gradient(tape, u, zero, .record = true);
    ng_tensor *off = ng_square(tape, ng_add_scalar(tape, u, -1));
    return ng_sum(tape, ng_add(tape, off, ng_square(tape, u1)));
}

static ng_tensor *loss_of(ng_module *net, ng_tape *tape)
{
    ng_tensor *t = ng_variable(tape, ng_uniform(tape, NG_F64, NG_SHAPE(POINTS, 1), 0, last));
    ng_tensor *equation = ng_mean(tape, ng_square(tape, residual(net, tape, t)));
    return ng_add(tape, equation, ng_mul_scalar(tape, beginning(net, tape), 100));
}

/* What the checker calls. The gradient of the residual contains a third derivative. */
static ng_tensor *call_residual(ng_tape *tape, ng_tensor *const *inputs, void *net)
{
    return residual(net, tape, inputs[0]);
}

/* e^(-t/2) (cos(w t) + sin(w t) / (2 w)), w^2 = 16 - 1/4 */
static double exact(double t)
{
    const double w = sqrt(16 - 0.25);
    return exp(-t / 2) * (cos(w * t) + sin(w * t) / (2 * w));
}

/* Logs the exact solution, and the network's under a name. Returns their largest distance. */
static double compare(ng_module *net, ng_tape *tape, ng_history *history, const char *name)
{
    double most = 0;
    ng_tensor *t = ng_arange(tape, NG_F64, 0, last + 0.01, 0.02);
    ng_tensor *u = ng_forward(net, tape, ng_reshape(tape, t, NG_SHAPE(-1, 1)));
    for (int64_t i = 0; u && i < ng_size(u); i++) {
        const double at = ng_get(t, i);
        ng_history_log_at(history, "exact", at, exact(at));
        ng_history_log_at(history, name, at, ng_get(u, i));
        most = fmax(most, fabs(ng_get(u, i) - exact(at)));
    }
    ng_tape_reset(tape);
    return most;
}

int main(int argc, char **argv)
{
    const int steps = argc > 1 ? atoi(argv[1]) : STEPS;
    if (steps < 1) return fprintf(stderr, "usage: 6_second_order [STEPS]\n"), 2;
    ng_module *net = network();
    ng_optimizer *adam = ng_adam_new(
        net, .lr = 5e-3, .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .steps = steps));
    ng_history *history = ng_history_new("a spring with friction");
    ng_tape *tape = ng_tape_new();
    const int every = steps < 5 ? 1 : steps / 5;

    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *t = ng_uniform_new(NG_F64, NG_SHAPE(5, 1), 0, last, &rng);
    ng_check_report report = ng_check_function(call_residual, &t, 1, .context = net);
    ng_check_print_head(stdout);
    ng_check_print(stdout, "residual", &report);

    double distance = 0;
    puts("\n  step       loss  farthest from the exact solution");
    for (int step = 1; step <= steps && !ng_failed(); step++) {
        ng_tensor *loss = loss_of(net, tape);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        const double value = ng_item(loss);
        ng_tape_reset(tape);
        if (step > 1 && step % every != 0) continue;
        const char *name = step == 1 ? "first_step" : step == every ? "after_a_fifth" : "trained";
        distance = compare(net, tape, history, name);
        printf("%6d  %9.3g  %32.2g\n", step, value, distance);
    }
    if (!ng_failed() && !ng_plot(history, "build/6_second_order.svg", .x_label = "t"))
        puts("\nfigure: build/6_second_order.svg");

    if (ng_failed()) fprintf(stderr, "6_second_order: %s\n", ng_error_text());
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_history_free(history), ng_tensor_free(t);
    return ng_failed() || !report.passed || (steps >= STEPS && distance > 0.01);
}
