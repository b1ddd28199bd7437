/* A training on ranks, for tests/mpi/run.sh: on processes of MPI, or with RANKS other than 0
 * on so many threads of one process.
 *
 *     check train RANKS        prints a digest of all losses and of the network, which is one line
 *     check stop RANKS STATE   as train, but stops half way; each rank's state is in STATE.RANK
 *     check go-on RANKS STATE  goes on from there
 *     check fail RANKS         rank 1 meets bad data: every rank says so, and ends
 *     check hunger RANKS       the same of a rank for which there is no memory
 *     check leave RANKS        rank 1 leaves early, without an error of its own
 *     check large RANKS        more than MPI can send at once
 *     check kill 0             process 0 kills itself in the middle
 *     check single 0           MPI is begun for one thread; prints "refused"
 *     check funneled 0         MPI is begun for its first thread; another one is refused
 */
#include "support/labelled.h"
#include <inttypes.h>
#include <normgrad.h>
#include <normgrad/mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 8, STEPS = 200, FEATURES = 6, CLASSES = 3, SAMPLES = 2000, BATCH = 5 };

typedef struct {
    const char *mode, *state;
    uint64_t digest; /* of rank 0 */
} job;

static bool is(const job *j, const char *mode) { return strcmp(j->mode, mode) == 0; }

static uint64_t mix(uint64_t digest, const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
    return digest;
}

typedef struct {
    ng_group *group;
    ng_module *net;
    ng_parallel *parallel;
    ng_optimizer *adam;
    ng_tape *tape;
    ng_training *run;
    double history; /* the losses' digest, exact in a double: its low 52 bits */
} rank_state;

/* The loss of all ranks, the same bits on each. */
static double total_of(rank_state *m, double loss)
{
    double all[64], sum = 0;
    if (ng_group_gather(m->group, &loss, 1, all)) return 0;
    for (int r = 0; r < ng_group_size(m->group); r++) sum += all[r];
    return sum / ng_group_size(m->group);
}

static bool step(job *j, rank_state *m, const ng_batch *batch, int64_t at)
{
    const bool astray = at == 50 && ng_group_rank(m->group) == 1;
    if (is(j, "leave") && at == 50 && ng_group_rank(m->group) == 1) return false;
    if (is(j, "kill") && at == 50 && ng_group_rank(m->group) == 0) raise(SIGKILL);
    ng_tensor *x = batch->x;
    if (astray && is(j, "fail")) x = ng_slice(m->tape, x, 1, 1, FEATURES);
    if (astray && is(j, "hunger")) x = ng_zeros_new(NG_F32, NG_SHAPE(1 << 29, 1 << 29));
    ng_tensor *loss = ng_cross_entropy(m->tape, ng_forward(m->net, m->tape, x), batch->y);
    if (ng_parallel_backward(m->parallel, m->tape, loss)) return false;
    ng_clip_grad_norm(m->net, 0.5);
    if (ng_optimizer_step(m->adam)) return false;
    const double total = total_of(m, ng_item(loss));
    uint64_t digest = (uint64_t)m->history;
    digest = mix(digest, &total, sizeof total) & ((UINT64_C(1) << 52) - 1);
    m->history = (double)digest;
    ng_tape_reset(m->tape);
    return true;
}

/* Whether all ranks' states are of one step. */
static bool taken_up(rank_state *m)
{
    if (ng_training_resume(m->run)) return false;
    const double at = (double)ng_training_at(m->run).step, mean = total_of(m, at);
    if (mean != at)
        ng_fail(NG_ESTATE, "the state of rank %d is of another step", ng_group_rank(m->group));
    return ng_group_agree(m->group) == NG_OK;
}

static void train(job *j, rank_state *m, ng_dataset *mine)
{
    double number = 0;
    if (is(j, "large") && ng_group_gather(m->group, &number, 1 << 29, &number)) return;
    char path[256] = "";
    if (j->state) snprintf(path, sizeof path, "%s.%d", j->state, ng_group_rank(m->group));
    m->run = ng_training_new(m->adam, .tape = m->tape, .data = mine, .seed = 3,
                             .path = j->state ? path : NULL);
    ng_training_keep_number(m->run, "history", &m->history);
    if (is(j, "go-on") && !taken_up(m)) return;
    double last = 0;
    while (ng_training_epoch(m->run, 4)) {
        ng_batch batch;
        while (ng_training_batch(m->run, BATCH, &batch)) {
            const int64_t at = ng_training_at(m->run).step;
            if (!step(j, m, &batch, at)) return;
            if (is(j, "stop") && at == STEPS / 2) ng_training_stop(m->run);
        }
    }
    uint64_t digest = (uint64_t)m->history;
    ng_named_tensor named;
    for (int i = 0; ng_module_parameter(m->net, i, &named); i++)
        for (int64_t k = 0; k < ng_size(named.tensor); k++) {
            const double value = ng_get(named.tensor, k);
            digest = mix(digest, &value, sizeof value);
        }
    ng_eval(m->net);
    ng_batch all;
    if (ng_dataset_batch(mine, m->tape, 0, SAMPLES / SHARDS, &all))
        last = ng_item(ng_cross_entropy(m->tape, ng_forward(m->net, m->tape, all.x), all.y));
    last = total_of(m, last);
    digest = mix(digest, &last, sizeof last);
    if (ng_group_rank(m->group) == 0) j->digest = digest;
}

static ng_status program(ng_group *group, void *with)
{
    job *j = with;
    ng_dataset *all = labelled_data(NG_F32, SAMPLES, FEATURES);
    ng_dataset *mine = ng_dataset_shard_new(all, ng_group_rank(group), SHARDS);
    rank_state m = {.group = group};
    m.net = ng_sequential_new(ng_linear_new(FEATURES, 24), ng_batch_norm_new(24, .group = group),
                              ng_relu_new(), ng_dropout_new(0.2), ng_linear_new(24, 200),
                              ng_layer_norm_new(200), ng_gelu_new(), ng_linear_new(200, CLASSES));
    m.parallel = ng_parallel_new(m.net, group);
    m.adam = ng_adam_new(m.net, .lr = 0.003);
    m.tape = ng_tape_new();
    ng_tape_seed(m.tape, ng_group_seed(group, 17));
    train(j, &m, mine);
    ng_training_free(m.run), ng_tape_free(m.tape), ng_optimizer_free(m.adam);
    ng_parallel_free(m.parallel), ng_module_free(m.net);
    ng_dataset_free(all), ng_dataset_free(mine);
    const ng_status status = is(j, "leave") ? ng_error_status() : ng_group_agree(group);
    if (status) fprintf(stderr, "rank %d: %s\n", ng_group_rank(group), ng_error_text());
    if (ng_group_rank(group) == 0 && !status) printf("%016" PRIx64 "\n", j->digest);
    return status;
}

static void *refuse(void *said)
{
    if (!ng_mpi_group_new(MPI_COMM_WORLD) && ng_error_status() == NG_ESTATE) *(bool *)said = true;
    return NULL;
}

/* Whether ng_mpi_group_new refuses this thread, or another one. */
static bool is_refused(int level, bool another)
{
    pthread_t thread;
    bool said = false;
    int given;
    MPI_Init_thread(NULL, NULL, level, &given);
    if (given != level) return true; /* this MPI gives more */
    if (!another)
        refuse(&said);
    else if (!pthread_create(&thread, NULL, refuse, &said))
        pthread_join(thread, NULL);
    if (another) {
        ng_group *group = ng_mpi_group_new(MPI_COMM_WORLD);
        said = said && group;
        ng_group_free(group);
    }
    return said;
}

int main(int argc, char **argv)
{
    job j = {.mode = argc > 1 ? argv[1] : "train", .state = argc > 3 ? argv[3] : NULL};
    const int ranks = argc > 2 ? atoi(argv[2]) : 0;
    ng_set_threads(1);
    if (ranks > 0) return ng_group_run(program, &j, ranks) != NG_OK;
    if (is(&j, "single") || is(&j, "funneled")) {
        const bool funneled = is(&j, "funneled");
        if (is_refused(funneled ? MPI_THREAD_FUNNELED : MPI_THREAD_SINGLE, funneled))
            printf("refused\n");
    } else {
        if (ng_mpi_begin(&argc, &argv)) return 2;
        ng_group *group = ng_mpi_group_new(MPI_COMM_WORLD);
        const ng_status status = group ? program(group, &j) : ng_error_status();
        ng_group_free(group);
        if (is(&j, "leave") && !status && ng_failed()) fprintf(stderr, "%s\n", ng_error_text());
    }
    MPI_Finalize();
    return 0; /* mpirun ends the others of a process that fails */
}
