/* Distributed training of a character-level transformer on Newton's Opticks. Each rank of the
 * group has its own part of the text.
 *
 *     mpirun -n 2 build/examples/mpi/transformer_mpi [--steps 200] [--width 128]
 *     build/examples/mpi/transformer_mpi --threads 2
 *
 * The last column is the loss to the last bit. It depends on the number of ranks, not on
 * whether they are processes or threads. */
#include "harness.h"
#include "world.h"

enum { CONTEXT = 64, BATCH = 8, LAYERS = 4, REPORT = 20 };

enum { THREADS, STEPS, WIDTH };
static option options[] = {
    [THREADS] = {"threads", "ranks on threads of one process, without mpirun", .most = BATCH,
                 .zero = true},
    [STEPS] = {"steps", "training steps", .normal = 200},
    [WIDTH] = {"width", "features; a multiple of 4", .normal = 128, .most = 4096},
    {0}};

/* ---- One rank ---- */

typedef struct {
    ng_dataset *mine; /* this rank's windows of the text */
    ng_group *group;
    ng_module *net;
    ng_parallel *parallel;
    ng_optimizer *adam;
    ng_tape *tape;
    int64_t part; /* of a batch */
} rank_state;

/* Takes a step. Returns the mean loss of all ranks, the same bits on each. */
static double step(rank_state *m, int number)
{
    ng_batch batch;
    const int64_t at = number % (ng_dataset_count(m->mine) / m->part);
    if (at == 0) ng_dataset_shuffle(m->mine, (uint64_t)number);
    ng_dataset_batch(m->mine, m->tape, at, m->part, &batch);
    ng_tensor *loss = ng_cross_entropy(m->tape, ng_forward(m->net, m->tape, batch.x), batch.y);
    if (ng_parallel_backward(m->parallel, m->tape, loss)) return ng_item(NULL);
    ng_clip_grad_norm(m->net, 1);
    const double mine = ng_item(loss);
    if (ng_optimizer_step(m->adam)) return ng_item(NULL);
    const double mean = members_mean(m->group, mine);
    ng_tape_reset(m->tape);
    return mean;
}

static void train(rank_state *m)
{
    const bool prints = ng_group_rank(m->group) == 0;
    if (prints)
        printf("a transformer of %d layers, width %d, on %d ranks, batches of %d\n%6s %10s   %s\n",
               LAYERS, get_whole(WIDTH), ng_group_size(m->group), BATCH, "steps", "loss",
               "exact loss");
    for (int i = 1; i <= get_whole(STEPS) && !ng_failed(); i++) {
        const double loss = step(m, i);
        if (i % REPORT && i < get_whole(STEPS)) continue;
        if (prints && !ng_failed()) printf("%6d %10.5f   %a\n", i, loss, loss);
        if (prints) fflush(stdout);
    }
}

static ng_status run_rank(ng_group *group, void *with)
{
    int vocabulary;
    if (BATCH % ng_group_size(group))
        return ng_fail(NG_EVALUE, "%d ranks, expected 1, 2, 4 or 8", ng_group_size(group));
    (void)with;
    ng_dataset *text =
        read_text(find_file("examples/data", "opticks.txt").text, CONTEXT, &vocabulary);
    rank_state m = {.group = group, .part = BATCH / ng_group_size(group)};
    m.mine = ng_dataset_shard_new(text, ng_group_rank(group), ng_group_size(group));
    m.net = ng_transformer_new(vocabulary, .dim = get_whole(WIDTH), .heads = 4, .layers = LAYERS,
                               .length = CONTEXT, .dropout = 0.1);
    m.parallel = ng_parallel_new(m.net, group);
    m.adam = ng_adamw_new(m.net, 0.1, .lr = 1e-3);
    m.tape = ng_tape_new();
    ng_tape_seed(m.tape, ng_group_seed(group, 2)); /* for dropout */
    train(&m);
    ng_dataset_free(text), ng_dataset_free(m.mine), ng_tape_free(m.tape);
    ng_optimizer_free(m.adam), ng_parallel_free(m.parallel), ng_module_free(m.net);
    return ng_error_status();
}

int main(int argc, char **argv)
{
    begin_program(argc, argv, "usage: mpirun -n COUNT transformer_mpi [options]\n", options, NULL);
    return end_program(world_run(run_rank, NULL, get_whole(THREADS)) != NG_OK);
}
