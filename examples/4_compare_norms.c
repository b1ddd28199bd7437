/* Step 4: which norm learns fastest? Trains one network without a norm and with each of five, from
 * five seeds each, prints a table, and draws the median over the seeds with a band of the
 * quartiles. All have the same learning rate; `make demo` finds the best one of each. Run it in the
 * project's directory. */
#include <normgrad.h>
#include <stdio.h>

enum { KINDS = 6, SEEDS = 5, EPOCHS = 20, BATCH = 64, WIDTH = 128 };

/* Any of ng_norm_names. The scale and shift of the last are made of x by two Linear layers, so it
 * has the most parameters. */
static const char *const names[KINDS] = {"none",     "batch_norm", "layer_norm",
                                         "rms_norm", "group_norm", "adaptive_layer_norm"};

/* Trains one network. Returns a history of its loss and accuracy by epoch; *last is the last
 * accuracy. The seed draws the split of the digits, the weights and the order of the samples. */
static ng_history *train(int kind, uint64_t seed, ng_dataset *digits, ng_tape *tape, double *last)
{
    ng_dataset *part = NULL, *test = NULL;
    ng_dataset_split_new(digits, 1437, seed, &part, &test);
    ng_norm_maker *norm = ng_norm_named(names[kind]);
    ng_module *net = ng_sequential_new(ng_linear_new(64, WIDTH), norm(WIDTH), ng_relu_new(),
                                       ng_linear_new(WIDTH, WIDTH), norm(WIDTH), ng_relu_new(),
                                       ng_linear_new(WIDTH, 10));
    ng_module_init(net, seed);
    ng_optimizer *sgd = ng_sgd_new(net, .lr = 0.05);
    ng_history *history = ng_history_new(names[kind]);
    for (int epoch = 1; epoch <= EPOCHS && !ng_failed(); epoch++) {
        ng_batch batch;
        double sum = 0;
        int count = 0;
        ng_dataset_shuffle(part, seed + (uint64_t)(1000 * epoch));
        for (; ng_dataset_batch(part, tape, count, BATCH, &batch); count++) {
            ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
            if (ng_backward(tape, loss) || ng_optimizer_step(sgd)) break;
            sum += ng_item(loss);
            ng_tape_reset(tape);
        }
        ng_history_log(history, "training_loss", epoch, sum / count);
        *last = 100 * ng_evaluate(net, test).accuracy;
        ng_history_log(history, "test_accuracy", epoch, *last);
    }
    ng_optimizer_free(sgd), ng_module_free(net), ng_dataset_free(part), ng_dataset_free(test);
    return history;
}

int main(void)
{
    ng_dataset *digits = ng_dataset_read_csv("examples/data/digits.csv", .scale = 1.0 / 16);
    if (!digits) return fprintf(stderr, "4_compare_norms: %s\n", ng_error_text()), 1;
    ng_tape *tape = ng_tape_new();
    ng_history *summaries[KINDS + 1] = {NULL}; /* ends with NULL */
    printf("test accuracy in %% after %d epochs, a column for each seed\n\n", EPOCHS);
    for (int kind = 0; kind < KINDS; kind++) {
        ng_history *runs[SEEDS];
        double last = 0;
        printf("%-19s", names[kind]);
        for (int seed = 0; seed < SEEDS; seed++) {
            runs[seed] = train(kind, (uint64_t)seed, digits, tape, &last);
            printf("%6.1f", last), fflush(stdout);
        }
        summaries[kind] = ng_history_summary_new(runs, SEEDS); /* median and quartiles by epoch */
        for (int seed = 0; seed < SEEDS; seed++) ng_history_free(runs[seed]);
        puts("");
    }
    static const char *const series[] = {"training_loss", "test_accuracy", NULL};
    if (!ng_failed() && !ng_plot(summaries[0], "build/4_compare_norms.svg", .band = true,
                                 .histories = summaries + 1, .names = names, .series = series,
                                 .panels = true, .x_label = "epoch"))
        puts("\nfigure: build/4_compare_norms.svg");

    if (ng_failed()) fprintf(stderr, "4_compare_norms: %s\n", ng_error_text());
    for (int kind = 0; kind < KINDS; kind++) ng_history_free(summaries[kind]);
    ng_tape_free(tape), ng_dataset_free(digits);
    return ng_failed();
}
