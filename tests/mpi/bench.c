/* What data-parallel training costs, on two processes pinned to a core each, for
 * tests/mpi/bench.sh:
 *
 *     mpirun -n 2 --bind-to core bench RESULTS.tsv [ROUNDS [PART]]
 *
 * Of all plans, or those with PART in their name.
 *
 * 784-1024-1024-10 with 512 samples a step, shared by the ranks but where each has as many; every
 * plan is timed a few steps at a time, in turn. A step's time is that of its slowest rank; given
 * are the shortest and the median, and the processor's time, the shortest, which other work on the
 * machine does not lengthen much: ranks that wait for each other sleep.
 */
#include "group/collective.h"
#include "network.h"
#include <normgrad.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INPUTS = 784, WIDTH = 1024, CLASSES = 10, BATCH = 512, STEPS = 5, WARM = 2, MOST = 2000 };
enum { BYTES = 4 * (INPUTS * WIDTH + WIDTH + WIDTH * WIDTH + WIDTH + WIDTH * CLASSES + CLASSES) };
#define KB *INT64_C(1024)
#define MB *INT64_C(1048576)

static const network slow = {20e-6, 10e9 / 8}, quick = {2e-6, 100e9 / 8}, none = {0, 0};

/* ---- What is timed ---- */

typedef enum { STEP, SUMS, ALLREDUCE, ROUND_TRIP, STREAM, GATHER } kind;
typedef enum { ALONE, APART, TREE, FAST } way;
typedef enum { NO_NORM, OWN_STATISTICS, OF_ALL } norm;

typedef struct {
    const char *name;
    kind kind;
    way way;
    int64_t batch, bucket; /* of a rank; bytes */
    norm norm;
    const network *network;
} plan;

#define EACH_BUCKET(kind, way, name)                                                               \
    {name " 64 KB", kind, way, BATCH / 2, 64 KB, NO_NORM, &none},                                  \
        {name " 256 KB", kind, way, BATCH / 2, 256 KB, NO_NORM, &none},                            \
        {name " 1 MB", kind, way, BATCH / 2, 1 MB, NO_NORM, &none},                                \
        {name " 4 MB", kind, way, BATCH / 2, 4 MB, NO_NORM, &none},                                \
    {                                                                                              \
        name " 16 MB", kind, way, BATCH / 2, 16 MB, NO_NORM, &none                                 \
    }

static const plan plans[] = {
    {"one rank", STEP, ALONE, BATCH, 0, NO_NORM, &none},
    {"half the batch, apart", STEP, APART, BATCH / 2, 0, NO_NORM, &none},
    EACH_BUCKET(STEP, TREE, "two ranks, tree,"),
    EACH_BUCKET(STEP, FAST, "two ranks, fast,"),
    {"two ranks, tree, 512 samples each", STEP, TREE, BATCH, 1 MB, NO_NORM, &none},
    {"sums alone, tree", SUMS, TREE, 0, 1 MB, NO_NORM, &none},
    {"sums alone, fast", SUMS, FAST, 0, 1 MB, NO_NORM, &none},
    {"MPI_Allreduce of the same bytes", ALLREDUCE, APART, 0, 0, NO_NORM, &none},
    {"10 Gbit/s, 20 us: tree", STEP, TREE, BATCH / 2, 1 MB, NO_NORM, &slow},
    {"10 Gbit/s, 20 us: sums alone", SUMS, TREE, 0, 1 MB, NO_NORM, &slow},
    {"100 Gbit/s, 2 us: tree", STEP, TREE, BATCH / 2, 1 MB, NO_NORM, &quick},
    {"100 Gbit/s, 2 us: sums alone", SUMS, TREE, 0, 1 MB, NO_NORM, &quick},
    {"BatchNorm, own statistics", STEP, TREE, BATCH / 2, 1 MB, OWN_STATISTICS, &none},
    {"BatchNorm, synchronized", STEP, TREE, BATCH / 2, 1 MB, OF_ALL, &none},
    {"8 bytes there and back", ROUND_TRIP, APART, 0, 0, NO_NORM, &none},
    {"1 MB one way", STREAM, APART, 0, 0, NO_NORM, &none},
    {"ng_group_gather of one number", GATHER, TREE, 0, 0, NO_NORM, &none},
    {"one rank, batch 256", STEP, ALONE, 256, 0, NO_NORM, &none},
    {"one rank, batch 128", STEP, ALONE, 128, 0, NO_NORM, &none},
    {"one rank, batch 64", STEP, ALONE, 64, 0, NO_NORM, &none},
    {"one rank, batch 32", STEP, ALONE, 32, 0, NO_NORM, &none},
    {"one rank, batch 16", STEP, ALONE, 16, 0, NO_NORM, &none},
    {"one rank, batch 8", STEP, ALONE, 8, 0, NO_NORM, &none},
    {"one rank, batch 4", STEP, ALONE, 4, 0, NO_NORM, &none},
    {"one rank, batch 2", STEP, ALONE, 2, 0, NO_NORM, &none},
    {"one rank, batch 1", STEP, ALONE, 1, 0, NO_NORM, &none},
};
enum { PLANS = sizeof plans / sizeof plans[0] };

/* Of all rounds; seconds. */
typedef struct {
    double seconds[MOST], busy; /* the processor's, the shortest */
    double parts[3];            /* of it: forward, backward, optimizer */
    int count;
    ng_group_traffic sent; /* in a step */
} timing;

static timing timings[PLANS];
static int rank;

/* Whatever fails ends the job. */
static void well(bool so, const char *what)
{
    if (so && !ng_failed()) return;
    fprintf(stderr, "bench: %s: %s\n", what, ng_failed() ? ng_error_text() : "failed");
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* The processor's time of this thread. */
static double busy_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- One thing to be timed ---- */

typedef struct {
    const plan *plan;
    ng_group *group;
    ng_module *net;
    ng_parallel *parallel;
    ng_optimizer *adam;
    ng_tape *tape;
    ng_tensor *x, *y;
    float *numbers;
} job;

static ng_module *make_network(const job *j)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < 2; i++) {
        ng_sequential_add(net, ng_linear_new(i ? WIDTH : INPUTS, WIDTH));
        if (j->plan->norm != NO_NORM)
            ng_sequential_add(
                net, ng_batch_norm_new(WIDTH, .group = j->plan->norm == OF_ALL ? j->group : NULL));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(WIDTH, CLASSES));
    ng_module_init(net, 1);
    return net;
}

static job job_new(const plan *p)
{
    job j = {.plan = p};
    if (p->way != ALONE) j.group = network_group(*p->network);
    if (p->kind != STEP) {
        j.numbers = calloc(BYTES, 1);
        return j;
    }
    ng_rng rng = ng_rng_seeded((uint64_t)rank);
    j.net = make_network(&j);
    if (p->way == TREE || p->way == FAST)
        j.parallel = ng_parallel_new(j.net, j.group, .bucket = p->bucket, .fast = p->way == FAST);
    j.adam = ng_adam_new(j.net);
    j.tape = ng_tape_new();
    j.x = ng_normal_new(NG_F32, NG_SHAPE(p->batch, INPUTS), 0, 1, &rng);
    j.y = ng_zeros_new(NG_I64, NG_SHAPE(p->batch));
    for (int64_t i = 0; i < p->batch; i++) ng_set(j.y, i, (double)(i % CLASSES));
    return j;
}

static void job_free(job *j)
{
    ng_tensor_free(j->x), ng_tensor_free(j->y), ng_tape_free(j->tape), ng_optimizer_free(j->adam);
    ng_parallel_free(j->parallel), ng_module_free(j->net);
    ng_group_free(j->group), free(j->numbers);
    well(true, j->plan->name);
}

static void step(const job *j, double part[3])
{
    const double begin = busy_now();
    ng_tensor *loss = ng_cross_entropy(j->tape, ng_forward(j->net, j->tape, j->x), j->y);
    const double forward = busy_now();
    const ng_status status =
        j->parallel ? ng_parallel_backward(j->parallel, j->tape, loss) : ng_backward(j->tape, loss);
    const double backward = busy_now();
    well(!status && !ng_optimizer_step(j->adam), j->plan->name);
    part[0] = forward - begin, part[1] = backward - forward, part[2] = busy_now() - backward;
    ng_tape_reset(j->tape);
}

/* All gradients' bytes in so many calls, none of which waits for the one before. */
static void add_up(const job *j)
{
    const int64_t numbers = BYTES / 4, part = j->plan->bucket / 4;
    int64_t ticket[64];
    int n = 0;
    for (int64_t at = 0; at < numbers; at += part)
        ticket[n++] = ng_group_start(
            j->group, (ng_collective){.how = NG_COMBINE_F32,
                                      .fast = j->plan->way == FAST,
                                      .data = j->numbers + at,
                                      .count = at + part < numbers ? part : numbers - at});
    for (int i = 0; i < n; i++) well(!ng_group_wait(j->group, "bench", ticket[i]), "a sum");
}

static void exchange(const job *j)
{
    const int other = 1 - rank;
    if (j->plan->kind == ALLREDUCE)
        MPI_Allreduce(MPI_IN_PLACE, j->numbers, BYTES / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const int bytes = j->plan->kind == STREAM ? 1 << 20 : 8;
    if (j->plan->kind == STREAM || j->plan->kind == ROUND_TRIP)
        for (int turn = 0; turn < (j->plan->kind == STREAM ? 1 : 2); turn++) {
            if (rank == turn)
                MPI_Send(j->numbers, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
            else
                MPI_Recv(j->numbers, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
}

static void do_once(const job *j, double part[3])
{
    double all[2];
    if (j->plan->kind == STEP)
        step(j, part);
    else if (j->plan->kind == SUMS)
        add_up(j);
    else if (j->plan->kind == GATHER)
        well(!ng_group_gather(j->group, part, 1, all), "gather");
    else
        exchange(j);
}

/* ---- Time ---- */

/* Without spinning, so that one rank works while the other has nothing to do. */
static void wait_quietly(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (MPI_Test(&request, &done, MPI_STATUS_IGNORE), !done)
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
}

static void time_once(const job *j, timing *t, bool counts)
{
    double part[3] = {0}, time[2], longest[2];
    const ng_group_traffic before = j->group ? ng_group_sent(j->group) : (ng_group_traffic){0};
    if (j->plan->way != ALONE) MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime(), idle = busy_now();
    do_once(j, part);
    time[0] = MPI_Wtime() - begin, time[1] = busy_now() - idle;
    if (j->plan->way == ALONE)
        memcpy(longest, time, sizeof time);
    else
        MPI_Allreduce(time, longest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (!counts || t->count == MOST) return;
    t->seconds[t->count++] = longest[0];
    if (t->count == 1 || longest[1] < t->busy) t->busy = longest[1];
    for (int i = 0; i < 3; i++)
        if (t->count == 1 || part[i] < t->parts[i]) t->parts[i] = part[i];
    if (!j->group) return;
    const ng_group_traffic after = ng_group_sent(j->group);
    t->sent.messages = after.messages - before.messages;
    t->sent.bytes = after.bytes - before.bytes;
}

static void run(const plan *p, timing *t)
{
    if (p->way != ALONE || rank == 0) {
        job j = job_new(p);
        for (int i = 0; i < WARM + STEPS; i++) time_once(&j, t, i >= WARM);
        job_free(&j);
    }
    wait_quietly();
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void write_results(FILE *file)
{
    fprintf(file, "what\tleast_ms\tmedian_ms\tbusy_ms\tmessages\tbytes\tforward_ms\tbackward_ms\t"
                  "optimizer_ms\n");
    for (int i = 0; i < PLANS; i++) {
        timing *t = &timings[i];
        if (t->count == 0) continue;
        qsort(t->seconds, (size_t)t->count, sizeof t->seconds[0], ascending);
        fprintf(file, "%s\t%.5g\t%.5g\t%.5g\t%lld\t%lld\t%.4g\t%.4g\t%.4g\n", plans[i].name,
                1e3 * t->seconds[0], 1e3 * t->seconds[t->count / 2], 1e3 * t->busy,
                (long long)t->sent.messages, (long long)t->sent.bytes, 1e3 * t->parts[0],
                1e3 * t->parts[1], 1e3 * t->parts[2]);
    }
}

int main(int argc, char **argv)
{
    int size;
    well(!ng_mpi_begin(&argc, &argv), "MPI");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_Comm_size(MPI_COMM_WORLD, &size);
    well(size == 2 && argc > 1, "expected two processes, and a file for the results");
    ng_set_threads(1);
    const int rounds = argc > 2 ? atoi(argv[2]) : 10;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < PLANS; i++)
            if (argc <= 3 || strstr(plans[i].name, argv[3])) run(&plans[i], &timings[i]);
    FILE *file = rank == 0 ? fopen(argv[1], "w") : NULL;
    well(file || rank > 0, argv[1]);
    if (file) write_results(file), fclose(file);
    MPI_Finalize();
    return 0;
}
