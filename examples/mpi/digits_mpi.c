/* Distributed training on digits: compares BatchNorm with each rank's own statistics,
 * synchronized BatchNorm, and LayerNorm. Each rank of the group trains on a part of every batch.
 *
 *     mpirun -n 2 build/examples/mpi/digits_mpi [--seeds 3] [--epochs 10]
 *     build/examples/mpi/digits_mpi --threads 2
 *
 * The last column is the loss to the last bit. It depends on the number of ranks, not on
 * whether they are processes or threads. */
#include "harness.h"
#include "world.h"

enum { OWN, SYNCHRONIZED, LAYER, NORMS, WIDTH = 128, BATCH = 64 };
static const char *const norm_names[] = {"BatchNorm, own statistics", "BatchNorm, synchronized",
                                         "LayerNorm"};

enum { THREADS, SEEDS, EPOCHS };
static option options[] = {
    [THREADS] = {"threads", "ranks on threads of one process, without mpirun", .most = MOST_MEMBERS,
                 .zero = true},
    [SEEDS] = {"seeds", "runs of each norm", .normal = 3, .most = 100},
    [EPOCHS] = {"epochs", "passes over the training data", .normal = 10, .most = 1000},
    {0}};

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

/* The results of one training. */
typedef struct {
    double loss, accuracy;
} result;

static result train(ng_group *group, int norm, int seed, ng_dataset *mine, ng_dataset *validate)
{
    ng_module *net = make_network(norm, group, (uint64_t)seed);
    ng_parallel *parallel = ng_parallel_new(net, group);
    ng_optimizer *adam = ng_adam_new(net, .lr = 2e-3);
    ng_tape *tape = ng_tape_new();
    result r = {0, 0};
    for (int epoch = 0; epoch < get_whole(EPOCHS) && !ng_failed(); epoch++) {
        ng_dataset_shuffle(mine, (uint64_t)epoch);
        r.loss = members_mean(
            group, train_epoch(net, parallel, adam, tape, mine, BATCH / ng_group_size(group)));
    }
    r.accuracy = members_mean(group, 100 * ng_evaluate(net, validate).accuracy);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_parallel_free(parallel), ng_module_free(net);
    return r;
}

static ng_status run_rank(ng_group *group, void *with)
{
    (void)with;
    const bool prints = ng_group_rank(group) == 0;
    if (BATCH % ng_group_size(group))
        return ng_fail(NG_EVALUE, "%d ranks, expected 1, 2, 4, 8 ...", ng_group_size(group));
    if (prints)
        printf("64-%d-%d-10 on %d ranks, batches of %d, %d epochs, mean of %d seeds\n", WIDTH,
               WIDTH, ng_group_size(group), BATCH, get_whole(EPOCHS), get_whole(SEEDS));
    ng_dataset *all = read_digits(), *learn, *validate;
    if (!all || ng_dataset_split_new(all, ng_dataset_count(all) * 4 / 5, 0, &learn, &validate))
        return ng_error_status();
    ng_dataset *mine = ng_dataset_shard_new(learn, ng_group_rank(group), ng_group_size(group));
    if (prints) printf("%-26s %12s %12s   %s\n", "norm", "train loss", "accuracy %", "exact loss");
    for (int norm = 0; norm < NORMS && !ng_failed(); norm++) {
        double loss = 0, accuracy = 0;
        for (int seed = 0; seed < get_whole(SEEDS) && !ng_failed(); seed++) {
            const result r = train(group, norm, seed, mine, validate);
            loss += r.loss / get_whole(SEEDS), accuracy += r.accuracy / get_whole(SEEDS);
        }
        if (prints && !ng_failed())
            printf("%-26s %12.5f %12.2f   %a\n", norm_names[norm], loss, accuracy, loss);
        if (prints) fflush(stdout);
    }
    ng_dataset_free(all), ng_dataset_free(learn), ng_dataset_free(validate), ng_dataset_free(mine);
    return ng_error_status();
}

int main(int argc, char **argv)
{
    begin_program(argc, argv, "usage: mpirun -n COUNT digits_mpi [options]\n", options, NULL);
    return end_program(world_run(run_rank, NULL, get_whole(THREADS)) != NG_OK);
}
