/* BatchNorm in data-parallel training: each of K workers normalizes its own part of the batch and
 * keeps its own running statistics; the gradients are averaged. Shards are random or sorted by
 * class. */
#include "workers.h"
#include <stddef.h>

enum { ONE, FOUR, SIXTEEN, COUNTS };
static int workers_of(int i) { return 1 << 2 * i; } /* 1, 4, 16 */

static const lab_experiment experiment = {
    .id = "workers",
    .source = "document 000",
    .claim =
        "in distributed training BatchNorm's running statistics differ between workers, so that "
        "the model does not converge effectively",
    .method =
        "Digits, 64-64-64-10, Adam, batches of 128 shared among 1 to 16 workers, each with a\n"
        "fixed shard of the images, drawn at random or from the images sorted by class.\n"
        "BatchNorm: each worker normalizes its own part and keeps its own running statistics.\n"
        "Combined: the statistics of all parts are combined: those of the whole batch. LayerNorm "
        "has\n"
        "none. Measured: accuracy on the validation images, with each worker's running\n"
        "statistics in turn, and the difference: the deviation of the running means among\n"
        "workers, in running deviations. All share one learning rate, and a seed gives all the\n"
        "same images, shards and first weights.\n",
    .rule =
        "harm: with random and with sorted shards, with 4 and with 16 workers, the accuracy with "
        "workers' own statistics (mean over workers) is over a point below that with combined "
        "ones; no harm: with combined statistics and with LayerNorm the accuracy with 16 workers "
        "is within 2 points of that with one",
    .seeds = 25,
    .quick_seeds = 1,
    .sizes = sizes};

/* ---- All runs ---- */

enum { MOST_SEEDS = 1000 };
static outcome outcomes[SHARDINGS][METHODS][COUNTS][MOST_SEEDS];

static void run_all(int seed)
{
    ng_dataset *train, *validate, *shards[MOST_WORKERS];
    lab_digits(lab_seed(seed), 0, &train, &validate);
    for (int sharding = 0; sharding < SHARDINGS; sharding++) {
        for (int i = 0; i < COUNTS; i++) {
            make_shards(train, sharding, shards, workers_of(i));
            for (int m = 0; m < METHODS; m++) {
                lab_progress((seed * SHARDINGS + sharding) * COUNTS + i,
                             lab_seeds() * SHARDINGS * COUNTS, "seed %d/%d  %s  %d workers  %s",
                             seed + 1, lab_seeds(), sharding_names[sharding], workers_of(i),
                             method_names[m]);
                outcomes[sharding][m][i][seed] =
                    run(m, workers_of(i), shards, validate, lab_seed(seed));
            }
            for (int k = 0; k < workers_of(i); k++) ng_dataset_free(shards[k]);
        }
    }
    ng_dataset_free(train), ng_dataset_free(validate);
}

static void log_outcomes(int sharding, int method)
{
    lab_curves *curves =
        lab_curves_new("workers", "%s, %s", sharding_names[sharding], method_names[method]);
    for (int seed = 0; seed < lab_seeds(); seed++)
        for (int i = 0; i < COUNTS; i++) {
            const outcome *o = &outcomes[sharding][method][i][seed];
            lab_log(curves, seed, "accuracy worst together difference loss", workers_of(i),
                    o->accuracy, o->worst, o->together, o->difference, o->loss);
        }
}

/* A method and a number of workers. gain() returns how much more accurate one is than the other, in
 * points. */
typedef struct {
    int method, count;
} setting;

static const double *gain(int sharding, setting here, setting there)
{
    double *values = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++)
        values[seed] = outcomes[sharding][here.method][here.count][seed].accuracy -
                       outcomes[sharding][there.method][there.count][seed].accuracy;
    return values;
}

static void judge_harm(int sharding, int count)
{
    const setting own = {OWN, count}, combined = {COMBINED, count};
    lab_judge(
        (lab_part){"BatchNorm", gain(sharding, own, combined), .side = LAB_BELOW, .threshold = -1},
        "%d workers, %s: accuracy with own statistics less that with combined, points",
        workers_of(count), sharding_names[sharding]);
}

static void judge_no_harm(int sharding, int method)
{
    const setting many = {method, SIXTEEN}, one = {method, ONE};
    lab_judge((lab_part){method == LAYER ? "LayerNorm" : "BatchNorm", gain(sharding, many, one),
                         .side = LAB_WITHIN, .threshold = 2},
              "%s%s: accuracy with 16 workers less that with one, points", sharding_names[sharding],
              method == LAYER ? "" : ", combined statistics");
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    for (int seed = 0; seed < lab_seeds(); seed++) run_all(seed);

    lab_data("network 64-%d-%d-10, ReLU, Adam at %g, batch %d, %d epochs", lab_whole(WIDTH),
             lab_whole(WIDTH), lab_number(RATE), lab_whole(BATCH), lab_whole(EPOCHS));
    for (int sharding = 0; sharding < SHARDINGS; sharding++)
        for (int method = 0; method < METHODS; method++) log_outcomes(sharding, method);
    for (int sharding = 0; sharding < SHARDINGS; sharding++) {
        judge_harm(sharding, FOUR), judge_harm(sharding, SIXTEEN);
        judge_no_harm(sharding, COMBINED), judge_no_harm(sharding, LAYER);
    }
    return lab_end();
}
