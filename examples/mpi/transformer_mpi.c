/* Distributed training of a character-level transformer on Newton's Opticks. Each rank of the
 * group draws its own part of every batch.
 *
 *     mpirun -n 2 build/examples/mpi/transformer_mpi [--steps 200] [--width 128]
 *     build/examples/mpi/transformer_mpi --threads 2
 *
 * The last column is a digest of losses and weights. It depends on the number of ranks, not on
 * whether they are processes or threads. */
#include "harness.h"
#include "world.h"
#include <inttypes.h>

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
    const letters *text;
    ng_group *group;
    ng_module *net;
    ng_parallel *parallel;
    ng_optimizer *adam;
    ng_tape *tape;
    ng_tensor *ids, *labels; /* (part of the batch, context) */
    ng_rng rng;
    uint64_t digest;
} rank_state;

/* Takes a step. Returns the mean loss of all ranks, the same bits on each. */
static double step(rank_state *m)
{
    draw_letters(m->text, m->ids, m->labels, &m->rng, 0, m->text->count - 1);
    ng_tensor *loss = ng_cross_entropy(m->tape, ng_forward(m->net, m->tape, m->ids), m->labels);
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
               LAYERS, get_whole(WIDTH), ng_group_size(m->group), BATCH, "steps", "loss", "digest");
    for (int i = 1; i <= get_whole(STEPS) && !ng_failed(); i++) {
        const double loss = step(m);
        m->digest = digest_of_number(m->digest, loss);
        if (i % REPORT && i < get_whole(STEPS)) continue;
        m->digest = digest_of_parameters(m->digest, m->net);
        if (prints && !ng_failed()) printf("%6d %10.5f   %016" PRIx64 "\n", i, loss, m->digest);
        if (prints) fflush(stdout);
    }
}

static ng_status run_rank(ng_group *group, void *with)
{
    const int64_t part = BATCH / ng_group_size(group);
    if (BATCH % ng_group_size(group))
        return ng_fail(NG_EVALUE, "%d ranks, expected 1, 2, 4 or 8", ng_group_size(group));
    rank_state m = {.text = with, .group = group, .rng = ng_rng_seeded(ng_group_seed(group, 1))};
    m.net = ng_transformer_new(m.text->vocabulary, .dim = get_whole(WIDTH), .heads = 4,
                               .layers = LAYERS, .length = CONTEXT, .dropout = 0.1);
    m.parallel = ng_parallel_new(m.net, group);
    m.adam = ng_adamw_new(m.net, 0.1, .lr = 1e-3);
    m.tape = ng_tape_new();
    m.digest = DIGEST_START;
    ng_tape_seed(m.tape, ng_group_seed(group, 2)); /* for dropout */
    m.ids = ng_zeros_new(NG_I64, NG_SHAPE(part, CONTEXT));
    m.labels = ng_zeros_new(NG_I64, NG_SHAPE(part, CONTEXT));
    train(&m);
    ng_tensor_free(m.ids), ng_tensor_free(m.labels), ng_tape_free(m.tape);
    ng_optimizer_free(m.adam), ng_parallel_free(m.parallel), ng_module_free(m.net);
    return ng_error_status();
}

int main(int argc, char **argv)
{
    begin_program(argc, argv, "usage: mpirun -n COUNT transformer_mpi [options]\n", options, NULL);
    letters text = read_letters(find_file("examples/data", "opticks.txt").text);
    const ng_status status = world_run(run_rank, &text, get_whole(THREADS));
    free(text.bytes);
    return end_program(status != NG_OK);
}
