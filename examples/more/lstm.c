/* The adding problem with fifty numbers, learned by an LSTM with LayerNorm in the cell (Ba, Kiros &
 * Hinton 2016) and without, from five seeds each. Every batch is new, so the training error is an
 * error on unseen data. build/examples/lstm --help */
#include "adding.h"
#include "experiment.h"

enum { BATCH = 64, LENGTH = 50, HIDDEN = 32, RUNS = 5, POINTS = 40, NORMS = 2 };
static ng_norm_maker *const norms[NORMS] = {NULL, ng_norm_layer};
static const char *const names[NORMS] = {"no norm", "LayerNorm"};

typedef struct {
    ng_module *net;
    ng_optimizer *adam;
    double errors[POINTS]; /* means over the steps between two points */
} run;

static run begin_run(ng_norm_maker *norm, uint64_t seed)
{
    ng_module *lstm = ng_lstm_new(2, HIDDEN, .norm = norm);
    run r = {.net = ng_sequential_new(lstm, ng_linear_new(HIDDEN, 1))};
    ng_module_init(r.net, seed);
    r.adam = ng_adam_new(r.net, .lr = 3e-3);
    return r;
}

/* Takes one step. Returns the mean squared error before it. */
static double descend(const run *r, ng_tape *tape, ng_tensor *x, ng_tensor *sums)
{
    ng_tensor *y = ng_slice(tape, ng_forward(r->net, tape, x), 1, LENGTH - 1, LENGTH);
    ng_tensor *loss = ng_mse(tape, ng_reshape(tape, y, NG_SHAPE(BATCH, 1)), sums);
    if (ng_backward(tape, loss)) return ng_item(NULL);
    ng_clip_grad_norm(r->net, 1);
    const double error = ng_optimizer_step(r->adam) ? ng_item(NULL) : ng_item(loss);
    ng_tape_reset(tape);
    return error;
}

/* Logs the points that are complete after `steps` steps. */
static void log_runs(ng_history *history, const char *name, const run *runs, int steps, int every)
{
    ng_history_block(history, name);
    for (int i = 0; i < POINTS && (i + 1) * every <= steps; i++)
        for (int k = 0; k < RUNS; k++) {
            char series[16];
            snprintf(series, sizeof series, "run%d", k);
            ng_history_log(history, series, (i + 1) * every, runs[k].errors[i]);
            if (i == POINTS - 1) printf("%-9s seed %d: error %.5f\n", name, k, runs[k].errors[i]);
        }
}

int main(int argc, char **argv)
{
    static const char what[] =
        "Learns to add the two marked numbers of fifty, with LayerNorm and without.";
    experiment e = experiment_begin(argc, argv, "lstm", what, 2000);
    const int every = e.steps < POINTS ? 1 : e.steps / POINTS;
    run runs[NORMS][RUNS];
    for (int i = 0; i < NORMS * RUNS; i++)
        runs[i / RUNS][i % RUNS] = begin_run(norms[i / RUNS], e.seed + (uint64_t)(i % RUNS));
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(BATCH, LENGTH, 2));
    ng_tensor *sums = ng_zeros_new(NG_F32, NG_SHAPE(BATCH, 1));
    ng_tape *tape = ng_tape_new();
    ng_rng rng = ng_rng_seeded(e.seed);
    double mean = 0;
    int step = 0;
    for (; experiment_goes_on(&e, step, "error", mean); step++) {
        draw_sums(x, sums, &rng);
        mean = 0;
        for (int i = 0; i < NORMS * RUNS; i++) {
            run *r = &runs[i / RUNS][i % RUNS];
            const double error = descend(r, tape, x, sums);
            mean += error / (NORMS * RUNS);
            if (step / every < POINTS) r->errors[step / every] += error / every;
        }
    }
    for (int i = 0; i < NORMS; i++) log_runs(e.history, names[i], runs[i], step, every);
    for (int i = 0; i < NORMS * RUNS; i++) {
        ng_optimizer_free(runs[i / RUNS][i % RUNS].adam);
        ng_module_free(runs[i / RUNS][i % RUNS].net);
    }
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(sums);
    return experiment_end(&e);
}
