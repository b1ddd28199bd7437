/* Distributed training on digits: compares BatchNorm with each rank's own statistics,
 * synchronized BatchNorm, and LayerNorm. Each rank of the group trains on a part of every batch.
 *
 *     mpirun -n 2 build/examples/mpi/digits_mpi [--seeds 3] [--epochs 10]
 *     build/examples/mpi/digits_mpi --threads 2
 *
 * The last column is a digest of losses and weights. It depends on the number of ranks, not on
 * whether they are processes or threads. */
#include "options.h"
#include "program.h"
#include "world.h"
#include <inttypes.h>

enum { OWN, SYNCHRONIZED, LAYER, NORMS, WIDTH = 128, BATCH = 64 };
static const char *const norm_names[] = {"BatchNorm, own statistics", "BatchNorm, synchronized",
                                         "LayerNorm"};

typedef struct {
    int threads, seeds, epochs;
    const char *data;
} options;

/* ---- One rank ---- */

static ng_module *make_norm(int norm, ng_group *group)
{
    if (norm == LAYER) return ng_layer_norm_new(WIDTH);
    return ng_batch_norm_new(WIDTH, .group = norm == SYNCHRONIZED ? group : NULL);
}

static ng_module *make_network(int norm, ng_group *group, uint64_t seed)
{
    ng_module *net =
        ng_sequential_new(ng_linear_new(64, WIDTH), make_norm(norm, group), ng_relu_new(),
                          ng_linear_new(WIDTH, WIDTH), make_norm(norm, group), ng_relu_new(),
                          ng_linear_new(WIDTH, 10));
    ng_module_init(net, seed);
    return net;
}

static double train_epoch(ng_module *net, ng_parallel *parallel, ng_optimizer *adam, ng_tape *tape,
                          ng_dataset *mine, int64_t part)
{
    double sum = 0;
    ng_batch batch;
    int i = 0;
    for (; ng_dataset_batch(mine, tape, i, part, &batch, .drop_last = true); i++) {
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
        if (ng_parallel_backward(parallel, tape, loss) || ng_optimizer_step(adam)) break;
        sum += ng_item(loss);
        ng_tape_reset(tape);
    }
    return sum / i;
}

/* Returns the accuracy in per cent, with the rank's own running statistics. */
static double accuracy_of(ng_module *net, ng_tape *tape, const ng_dataset *data)
{
    ng_batch all;
    ng_eval(net);
    ng_dataset_batch((ng_dataset *)data, tape, 0, ng_dataset_count(data), &all);
    const double accuracy = 100 * ng_accuracy(ng_forward(net, tape, all.x), all.y);
    ng_tape_reset(tape);
    ng_train(net);
    return accuracy;
}

/* The results of one training. */
typedef struct {
    double loss, accuracy;
    uint64_t digest;
} result;

static result train(const options *o, ng_group *group, int norm, int seed, ng_dataset *mine,
                    const ng_dataset *validate)
{
    ng_module *net = make_network(norm, group, (uint64_t)seed);
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_optimizer *adam = ng_adam_new(net, .lr = 2e-3);
    ng_tape *tape = ng_tape_new();
    result r = {.digest = DIGEST_START};
    for (int epoch = 0; epoch < o->epochs && !ng_failed(); epoch++) {
        ng_dataset_shuffle(mine, (uint64_t)epoch);
        r.loss = members_mean(
            group, train_epoch(net, parallel, adam, tape, mine, BATCH / ng_group_size(group)));
        r.digest = digest_of_number(r.digest, r.loss);
    }
    r.accuracy = members_mean(group, accuracy_of(net, tape, validate));
    r.digest = digest_of_parameters(r.digest, net);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_parallel_free(parallel), ng_module_free(net);
    return r;
}

static ng_status run_rank(ng_group *group, void *with)
{
    const options *o = with;
    const bool prints = ng_group_rank(group) == 0;
    if (BATCH % ng_group_size(group))
        return ng_fail(NG_EVALUE, "%d ranks, expected 1, 2, 4, 8 ...", ng_group_size(group));
    if (prints)
        printf("64-%d-%d-10 on %d ranks, batches of %d, %d epochs, mean of %d seeds\n", WIDTH,
               WIDTH, ng_group_size(group), BATCH, o->epochs, o->seeds);
    ng_dataset *all = ng_dataset_read_csv(o->data, .scale = 1.0 / 16), *learn, *validate;
    if (!all || ng_dataset_split_new(all, ng_dataset_count(all) * 4 / 5, 0, &learn, &validate))
        return ng_error_status();
    ng_dataset *mine = ng_dataset_shard_new(learn, ng_group_rank(group), ng_group_size(group));
    if (prints) printf("%-26s %12s %12s   %s\n", "norm", "train loss", "accuracy %", "digest");
    for (int norm = 0; norm < NORMS && !ng_failed(); norm++) {
        double loss = 0, accuracy = 0;
        uint64_t digest = DIGEST_START;
        for (int seed = 0; seed < o->seeds && !ng_failed(); seed++) {
            const result r = train(o, group, norm, seed, mine, validate);
            loss += r.loss / o->seeds, accuracy += r.accuracy / o->seeds;
            digest = digest_of(digest, r.digest);
        }
        if (prints && !ng_failed())
            printf("%-26s %12.5f %12.2f   %016" PRIx64 "\n", norm_names[norm], loss, accuracy,
                   digest);
        if (prints) fflush(stdout);
    }
    ng_dataset_free(all), ng_dataset_free(learn), ng_dataset_free(validate), ng_dataset_free(mine);
    return ng_error_status();
}

/* ---- Main ---- */

static options parse_options(int argc, char **argv)
{
    options o = {.seeds = 3, .epochs = 10};
    const program_option known[] = {
        OPTION_COUNT("threads", "N", "ranks on threads of one process, without mpirun", &o.threads,
                     1, MOST_MEMBERS),
        OPTION_COUNT("seeds", "N", "runs of each norm (3)", &o.seeds, 1, 100),
        OPTION_COUNT("epochs", "N", "passes over the training data (10)", &o.epochs, 1, 1000)};
    const char *usage = "usage: mpirun -n COUNT digits_mpi [options]\n";
    refuse_more(argc, argv, read_options(argc, argv, usage, OPTIONS(known), NULL));
    o.data = find_data("digits.csv");
    return o;
}

int main(int argc, char **argv)
{
    program_begin(argv);
    options o = parse_options(argc, argv);
    return program_end(world_run(run_rank, &o, o.threads) != NG_OK);
}
