/* The adding problem (Hochreiter & Schmidhuber 1997) with fifty numbers, learned by an LSTM with
 * LayerNorm in the cell (Ba, Kiros & Hinton 2016) and without, from five seeds each. Every batch is
 * new, so the training error is an error on unseen data. build/examples/lstm --help */
#include "harness.h"

enum { BATCH = 64, LENGTH = 50, HIDDEN = 32, RUNS = 5, POINTS = 40, NORMS = 2 };
static ng_norm_maker *const norms[NORMS] = {NULL, ng_norm_layer};
static const char *const names[NORMS] = {"no norm", "LayerNorm"};

enum { STEPS, SEED, OUT };
static option options[] = {[STEPS] = {"steps", "training steps", .normal = 2000},
                           [SEED] = {"seed", "first seed of five", .zero = true},
                           [OUT] = {"out", "prefix of the .dat and .svg (build/lstm)", .text = ""},
                           {0}};

/* Trains from a seed and logs the mean error of every POINTS-th part. All seeds see the same
 * batches. Returns the last error. */
static double train(int norm, int run, curve_set *curves)
{
    ng_module *lstm = ng_lstm_new(2, HIDDEN, .norm = norms[norm]);
    ng_module *net = ng_sequential_new(lstm, ng_linear_new(HIDDEN, 1));
    ng_module_init(net, (uint64_t)(get_whole(SEED) + run));
    ng_optimizer *adam = ng_adam_new(net, .lr = 3e-3);
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(BATCH, LENGTH, 2));
    ng_tensor *sums = ng_zeros_new(NG_F32, NG_SHAPE(BATCH, 1));
    ng_tape *tape = ng_tape_new();
    ng_rng rng = ng_rng_seeded((uint64_t)get_number(SEED));
    const int every = get_whole(STEPS) < POINTS ? 1 : get_whole(STEPS) / POINTS;
    double sum = 0, mean = 0;
    for (int step = 1; step <= get_whole(STEPS); step++) {
        draw_sums(x, sums, &rng);
        ng_tensor *y = ng_slice(tape, ng_forward(net, tape, x), 1, LENGTH - 1, LENGTH);
        ng_tensor *loss = ng_mse(tape, ng_reshape(tape, y, NG_SHAPE(BATCH, 1)), sums);
        if (ng_backward(tape, loss)) break;
        ng_clip_grad_norm(net, 1);
        if (ng_optimizer_step(adam)) break;
        sum += ng_item(loss) / every;
        ng_tape_reset(tape);
        if (!is_finite(sum, "the error", step)) break;
        show_progress(norm * RUNS + run + (double)step / get_whole(STEPS), NORMS * RUNS,
                      "%s, seed %d, step %d", names[norm], run, step);
        if (step % every != 0) continue;
        log_curves(curves, run, "error", step, sum);
        mean = sum, sum = 0;
    }
    ng_tape_free(tape), ng_tensor_free(x), ng_tensor_free(sums);
    ng_optimizer_free(adam), ng_module_free(net);
    return mean;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: lstm [options]\n\n"
        "Learns to add the two marked numbers of fifty, with LayerNorm and without.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "lstm");
    begin_data("adding problem, %d numbers, LSTM with %d features, batches of %d", LENGTH, HIDDEN,
               BATCH);
    for (int i = 0; i < NORMS; i++) {
        curve_set *curves = new_curves("step", "%s", names[i]);
        for (int k = 0; k < RUNS && still_works(); k++)
            printf("%-9s seed %d: error %.5f\n", names[i], k, train(i, k, curves));
    }
    still_works();
    draw_curves(prefix.text, (ng_plot_options){.y_label = "mean squared error", .log_y = true});
    end_data(prefix.text);
    return end_program(EXIT_SUCCESS);
}
