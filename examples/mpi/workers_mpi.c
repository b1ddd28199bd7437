/* The experiment `workers` with each worker on a rank of a group, compared with the workers that
 * `workers` simulates one after the other. The ranks are threads; on processes of MPI they give the
 * same bits.
 *
 *     build/examples/mpi/workers_mpi [--seeds 25] [--out plots/]
 *
 * Both start from the same shards and weights. They differ in how gradients are added, in which
 * order, and how statistics are combined. */
#include "../claims/workers.h"
#include <stddef.h>
#include <stdlib.h>

enum { FOUR, SIXTEEN, COUNTS, MOST_SEEDS = 1000 };
static int workers_of(int i) { return i == FOUR ? 4 : 16; }

static const lab_experiment experiment = {
    .id = "workers_mpi",
    .source = "the experiment `workers`",
    .claim = "workers on their own ranks give the same results as workers simulated in one process",
    .method =
        "As `workers`, with 4 and with 16 workers on ranks. Own statistics are those of a rank,\n"
        "combined ones those of .group. A seed gives both the same shards and first weights. The\n"
        "loss of the first epoch compares the methods before rounding errors have grown.\n"
        "Accuracy and difference of the running means after the last epoch compare the final\n"
        "results.\n",
    .rule = "same seed, ranks less simulated workers: the relative difference of the first epoch's "
            "loss is within 1e-6; the final accuracy is within a point, and the difference of the "
            "running means within 0.02",
    .seeds = 25,
    .quick_seeds = 1,
    .sizes = sizes};

/* ---- On ranks ---- */

typedef struct {
    int method;
    ng_dataset **shards, *validate;
    uint64_t seed;
    outcome result; /* of rank 0 */
} job;

static ng_module *make_ranks_network(int method, ng_group *group, uint64_t seed)
{
    const int64_t width = lab_whole(WIDTH);
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < 2; i++) {
        ng_sequential_add(net, ng_linear_new(i == 0 ? 64 : width, width));
        ng_sequential_add(
            net, method == LAYER
                     ? ng_layer_norm_new(width)
                     : ng_batch_norm_new(width, .group = method == COMBINED ? group : NULL));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(width, 10));
    ng_module_init(net, seed);
    return net;
}

/* Returns the mean over all ranks. Lowers *least, if given, to the smallest value. */
static double mean_of(ng_group *group, double mine, double *least)
{
    double all[MOST_WORKERS] = {0}, sum = 0;
    lab_goes_on();
    if (ng_group_gather(group, &mine, 1, all)) lab_goes_on();
    for (int r = 0; r < ng_group_size(group); r++) {
        sum += all[r];
        if (least) *least = fmin(*least, all[r]);
    }
    return sum / ng_group_size(group);
}

/* Trains for one epoch. Returns the mean loss. */
static double train_epoch(ng_group *group, ng_module *net, ng_parallel *parallel,
                          ng_optimizer *adam, ng_tape *tape, ng_dataset *mine)
{
    const int64_t part = lab_whole(BATCH) / ng_group_size(group);
    const int steps = (int)(ng_dataset_count(mine) / part);
    double sum = 0;
    ng_batch batch;
    for (int i = 0; i < steps && lab_goes_on(); i++) {
        ng_dataset_batch(mine, tape, i, part, &batch);
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_parallel_backward(parallel, tape, loss) || ng_optimizer_step(adam)) break;
        sum += ng_item(loss) / steps;
        ng_tape_reset(tape);
    }
    return mean_of(group, sum, NULL);
}

/* Collects every rank's running statistics for combine_statistics. */
static void collect(ng_group *group, ng_module *net, statistics *all)
{
    const int ranks = ng_group_size(group);
    double *mine = calloc((size_t)lab_whole(WIDTH) * (size_t)(ranks + 1), sizeof *mine);
    double *theirs = mine + lab_whole(WIDTH);
    if (!mine) exit(EXIT_FAILURE);
    for (int r = 0; r < ranks; r++) all[r] = copy_statistics(net);
    ng_named_tensor b;
    for (int i = 0; ng_module_buffer(net, i, &b); i++) {
        const int64_t size = ng_size(b.tensor);
        for (int64_t k = 0; k < size; k++) mine[k] = ng_get(b.tensor, k);
        if (ng_group_gather(group, mine, (int)size, theirs)) lab_goes_on();
        for (int r = 0; r < ranks; r++)
            for (int64_t k = 0; k < size; k++) ng_set(all[r].buffers[i], k, theirs[r * size + k]);
    }
    free(mine);
}

static ng_status run_member(ng_group *group, void *with)
{
    job *j = with;
    const int rank = ng_group_rank(group), ranks = ng_group_size(group);
    ng_module *net = make_ranks_network(j->method, group, j->seed);
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_optimizer *adam = ng_adam_new(net, .lr = lab_number(RATE));
    ng_tape *tape = ng_tape_new();
    statistics own[MOST_WORKERS] = {{{NULL}, 0}};
    outcome o = {.worst = 100};
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && lab_goes_on(); epoch++) {
        ng_dataset_shuffle(j->shards[rank], (uint64_t)(epoch * ranks + rank));
        o.loss = train_epoch(group, net, parallel, adam, tape, j->shards[rank]);
        if (epoch == 0) o.first = o.loss;
    }
    o.accuracy = mean_of(group, 100 * lab_evaluate(net, tape, j->validate).accuracy, &o.worst);
    if (j->method == OWN) {
        collect(group, net, own);
        o.difference = combine_statistics(net, own, ranks);
    }
    o.together = 100 * lab_evaluate(net, tape, j->validate).accuracy;
    if (rank == 0) j->result = o;
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < own[r].count; i++) ng_tensor_free(own[r].buffers[i]);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_parallel_free(parallel), ng_module_free(net);
    return ng_error_status();
}

/* ---- All runs ---- */

typedef struct {
    outcome ranks[MOST_SEEDS], simulated[MOST_SEEDS];
} pair;
static pair pairs[SHARDINGS][METHODS][COUNTS];

static void run_all(int seed)
{
    ng_dataset *train, *validate, *shards[MOST_WORKERS];
    lab_digits(lab_seed(seed), 0, &train, &validate);
    for (int sharding = 0; sharding < SHARDINGS; sharding++)
        for (int i = 0; i < COUNTS; i++)
            for (int m = 0; m < METHODS; m++) {
                pair *p = &pairs[sharding][m][i];
                make_shards(train, sharding, shards, workers_of(i));
                p->simulated[seed] = run(m, workers_of(i), shards, validate, lab_seed(seed));
                for (int k = 0; k < workers_of(i); k++) ng_dataset_free(shards[k]);
                make_shards(train, sharding, shards, workers_of(i)); /* not yet shuffled */
                job j = {
                    .method = m, .shards = shards, .validate = validate, .seed = lab_seed(seed)};
                if (ng_group_run(run_member, &j, workers_of(i))) lab_goes_on();
                p->ranks[seed] = j.result;
                for (int k = 0; k < workers_of(i); k++) ng_dataset_free(shards[k]);
                lab_progress((seed * SHARDINGS + sharding) * COUNTS + i,
                             lab_seeds() * SHARDINGS * COUNTS, "seed %d/%d", seed + 1, lab_seeds());
            }
    ng_dataset_free(train), ng_dataset_free(validate);
}

static double field_of(const outcome *o, size_t field)
{
    double value;
    memcpy(&value, (const char *)o + field, sizeof value);
    return value;
}

static void log_outcomes(int sharding, int method)
{
    lab_curves *curves =
        lab_curves_new("workers", "%s, %s", sharding_names[sharding], method_names[method]);
    for (int seed = 0; seed < lab_seeds(); seed++)
        for (int i = 0; i < COUNTS; i++) {
            const outcome *ranks = &pairs[sharding][method][i].ranks[seed];
            const outcome *simulated = &pairs[sharding][method][i].simulated[seed];
            lab_log(curves, seed, "accuracy simulated difference difference_simulated",
                    workers_of(i), ranks->accuracy, simulated->accuracy, ranks->difference,
                    simulated->difference);
        }
}

static void judge(int sharding, int method, int i, size_t field, const char *what, double within)
{
    const pair *p = &pairs[sharding][method][i];
    const bool relative = field == offsetof(outcome, first);
    double *values = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        const double simulated = field_of(&p->simulated[seed], field);
        values[seed] = (field_of(&p->ranks[seed], field) - simulated) / (relative ? simulated : 1);
    }
    lab_judge((lab_part){method == LAYER ? "LayerNorm" : "BatchNorm", values, .side = LAB_WITHIN,
                         .threshold = within},
              "%s, %d workers, %s: %s", method_names[method], workers_of(i),
              sharding_names[sharding], what);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    for (int seed = 0; seed < lab_seeds(); seed++) run_all(seed);

    lab_data("workers on ranks, and simulated one after the other");
    for (int sharding = 0; sharding < SHARDINGS; sharding++)
        for (int m = 0; m < METHODS; m++) log_outcomes(sharding, m);
    for (int sharding = 0; sharding < SHARDINGS; sharding++)
        for (int m = 0; m < METHODS; m++)
            for (int i = 0; i < COUNTS; i++) {
                judge(sharding, m, i, offsetof(outcome, first), "loss of the first epoch", 1e-6);
                judge(sharding, m, i, offsetof(outcome, accuracy), "accuracy, points", 1);
                if (m == OWN)
                    judge(sharding, m, i, offsetof(outcome, difference), "difference of means",
                          0.02);
            }
    return lab_end();
}
