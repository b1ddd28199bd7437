/* Model-agnostic meta-learning (Finn, Abbeel & Levine 2017): learns initial weights from which one
 * step of gradient descent on ten points of a sine fits that sine. The loss after the step is
 * differentiated through the step's gradient. build/examples/maml --help */
#include "harness.h"

enum { SHOTS = 10, TASKS = 8, MOST = 8, TRIALS = 100, TRIED = 10 };
enum { STEPS, SEED, OUT };
static option options[] = {[STEPS] = {"steps", "training steps", .normal = 6000},
                           [SEED] = {"seed", "seed of all random numbers", .zero = true},
                           [OUT] = {"out", "prefix of the .dat and .svg (build/maml)", .text = ""},
                           {0}};
static const double inner_lr = 0.01, pi = 3.14159265358979323846;

typedef struct {
    double amplitude, phase; /* y = amplitude sin(x + phase) */
} task;

static task draw_task(ng_rng *rng)
{
    return (task){0.1 + 4.9 * ng_rng_uniform(rng), pi * ng_rng_uniform(rng)};
}

/* Draws points of a sine: returns x and sets *y. */
static ng_tensor *draw_points(ng_tape *tape, task t, ng_tensor **y)
{
    ng_tensor *x = ng_uniform(tape, NG_F32, NG_SHAPE(SHOTS, 1), -5, 5);
    *y = ng_mul_scalar(tape, ng_sin(tape, ng_add_scalar(tape, x, t.phase)), t.amplitude);
    return x;
}

/* Replaces w by the weights after a step, as a function of w. */
static bool descend(ng_tape *tape, ng_tensor *loss, ng_tensor **w, int n)
{
    ng_tensor *g[MOST];
    if (!loss || ng_gradients(tape, &loss, 1, w, n, g, .record = true) != NG_OK) return false;
    for (int i = 0; i < n; i++) w[i] = ng_sub(tape, w[i], ng_mul_scalar(tape, g[i], inner_lr));
    return true;
}

static int parameters_of(ng_module *net, ng_tensor **w)
{
    ng_named_tensor p;
    int n = 0;
    for (; n < MOST && ng_module_parameter(net, n, &p); n++) w[n] = p.tensor;
    return n;
}

/* Returns the loss on new points of a task after `steps` steps on a few of its points. */
static ng_tensor *loss_after(ng_module *net, ng_tape *tape, task t, int steps)
{
    ng_tensor *w[MOST], *y, *other_y;
    const int n = parameters_of(net, w);
    ng_tensor *x = draw_points(tape, t, &y), *other = draw_points(tape, t, &other_y);
    for (int k = 0; k < steps; k++)
        if (!descend(tape, ng_mse(tape, ng_forward_using(net, tape, w, n, x), y), w, n))
            return NULL;
    return ng_mse(tape, ng_forward_using(net, tape, w, n, other), other_y);
}

/* Logs the mean loss over new tasks after 0, 1... steps. */
static void log_trials(ng_history *history, const char *name, ng_module *net, ng_tape *tape)
{
    ng_history_block(history, name);
    for (int steps = 0; steps <= TRIED && !ng_failed(); steps++) {
        ng_rng rng = ng_rng_seeded(1000);
        double sum = 0;
        ng_tape_seed(tape, 1000);
        for (int i = 0; i < TRIALS; i++, ng_tape_reset(tape))
            sum += ng_item(loss_after(net, tape, draw_task(&rng), steps));
        ng_history_log(history, "loss", steps, sum / (double)TRIALS);
        if (steps <= 1 || steps == TRIED)
            printf("%-9s weights, a new sine after %2d steps: loss %.3f\n", name, steps,
                   sum / (double)TRIALS);
    }
}

static ng_module *network(uint64_t seed)
{
    ng_module *net = ng_sequential_new(ng_linear_new(1, 40), ng_relu_new(), ng_linear_new(40, 40),
                                       ng_relu_new(), ng_linear_new(40, 1));
    ng_module_init(net, seed);
    return net;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: maml [options]\n\n"
        "Learns initial weights from which one step fits a sine to ten points.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "maml");
    const uint64_t seed = (uint64_t)get_number(SEED);
    ng_module *net = network(seed), *untrained = network(seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
    ng_history *history = ng_history_new("maml: loss on a new sine by steps of gradient descent");
    ng_tape *tape = ng_tape_new();
    ng_rng rng = ng_rng_seeded(seed);
    ng_tape_seed(tape, seed);
    for (int step = 1; step <= get_whole(STEPS); step++) {
        ng_tensor *sum = loss_after(net, tape, draw_task(&rng), 1);
        for (int i = 1; i < TASKS; i++)
            sum = ng_add(tape, sum, loss_after(net, tape, draw_task(&rng), 1));
        sum = ng_mul_scalar(tape, sum, 1.0 / (double)TASKS);
        if (ng_backward(tape, sum) || ng_optimizer_step(adam)) break;
        const double loss = ng_item(sum);
        ng_tape_reset(tape);
        if (!is_finite(loss, "the loss", step)) break;
        if (step % 1000 == 0) printf("step %5d  loss %.4f\n", step, loss), fflush(stdout);
    }
    log_trials(history, "trained", net, tape);
    log_trials(history, "untrained", untrained, tape);
    save_history(history, prefix.text,
                 (ng_plot_options){.x_label = "steps on the new sine",
                                   .y_label = "mean squared error",
                                   .log_y = true});
    ng_tape_free(tape), ng_optimizer_free(adam), ng_history_free(history);
    ng_module_free(net), ng_module_free(untrained);
    return end_program(EXIT_SUCCESS);
}
