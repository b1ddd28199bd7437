/* What data-parallel training costs on two processes pinned to a core each:
 *
 *     mpirun -n 2 --bind-to core bench RESULTS.tsv [ROUNDS [PART]]
 *
 * Of all plans, or those with PART in their name.
 *
 * The network is 784-1024-1024-10 with 512 samples a step, or a transformer of 4 layers with 8
 * sequences; ranks share them, but where each has as many. Every plan is timed a few steps at a
 * time, in turn. A step's time is that of its slowest rank. Given are the shortest, the median, and
 * the shortest of the processor's time, which other work on the machine does not lengthen much. */
#include <normgrad.h>
#include <normgrad/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { INPUTS = 784, WIDTH = 1024, CLASSES = 10, STEPS = 5, WARM = 2, MOST = 2000 };
enum { VOCABULARY = 80, CONTEXT = 64, DIM = 128 };
enum { NUMBERS = INPUTS * WIDTH + WIDTH + WIDTH * WIDTH + WIDTH + WIDTH * CLASSES + CLASSES };

/* ---- What is timed ---- */

typedef enum { STEP, TRANSFORMER, SUM, ALLREDUCE, GATHER } kind;
typedef enum { ALONE, APART, TOGETHER } way;
typedef enum { NO_NORM, OWN_STATISTICS, OF_ALL } norm;

typedef struct {
    const char *name;
    kind kind;
    way way;
    int64_t batch; /* of a rank */
    norm norm;
} plan;

static const plan plans[] = {
    {"one rank", STEP, ALONE, 512, NO_NORM},
    {"half the batch, apart", STEP, APART, 256, NO_NORM},
    {"two ranks", STEP, TOGETHER, 256, NO_NORM},
    {"two ranks, 512 samples each", STEP, TOGETHER, 512, NO_NORM},
    {"the sum of its gradients", SUM, TOGETHER, 0, NO_NORM},
    {"MPI_Allreduce of the same bytes", ALLREDUCE, APART, 0, NO_NORM},
    {"BatchNorm, own statistics", STEP, TOGETHER, 256, OWN_STATISTICS},
    {"BatchNorm, synchronized", STEP, TOGETHER, 256, OF_ALL},
    {"ng_group_gather of one number", GATHER, TOGETHER, 0, NO_NORM},
    {"transformer, one rank", TRANSFORMER, ALONE, 8, NO_NORM},
    {"transformer, half the batch", TRANSFORMER, APART, 4, NO_NORM},
    {"transformer, two ranks", TRANSFORMER, TOGETHER, 4, NO_NORM},
};
enum { PLANS = sizeof plans / sizeof plans[0] };

/* Of all rounds; seconds. */
typedef struct {
    double seconds[MOST], busy; /* the processor's, the shortest */
    int count;
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
} job;

static ng_module *make_network(const job *j)
{
    if (j->plan->kind == TRANSFORMER)
        return ng_transformer_new(VOCABULARY, .dim = DIM, .heads = 4, .layers = 4,
                                  .length = CONTEXT);
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < 2; i++) {
        ng_sequential_add(net, ng_linear_new(i ? WIDTH : INPUTS, WIDTH));
        if (j->plan->norm != NO_NORM)
            ng_sequential_add(
                net, ng_batch_norm_new(WIDTH, .group = j->plan->norm == OF_ALL ? j->group : NULL));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(WIDTH, CLASSES));
    return net;
}

static job job_new(const plan *p)
{
    job j = {.plan = p, .tape = ng_tape_new()};
    ng_rng rng = ng_rng_seeded((uint64_t)rank);
    if (p->way == TOGETHER) j.group = ng_mpi_group_new(MPI_COMM_WORLD);
    if (p->kind != STEP && p->kind != TRANSFORMER) {
        j.x = ng_ones_new(NG_F32, NG_SHAPE(NUMBERS));
        return j;
    }
    const ng_shape shape =
        p->kind == TRANSFORMER ? NG_SHAPE(p->batch, CONTEXT) : NG_SHAPE(p->batch);
    j.net = make_network(&j);
    ng_module_init(j.net, 1);
    if (p->way == TOGETHER) j.parallel = ng_parallel_new(j.net, j.group);
    j.adam = ng_adam_new(j.net);
    j.y = ng_zeros_new(NG_I64, shape);
    for (int64_t i = 0; i < ng_size(j.y); i++) ng_set(j.y, i, (double)(i % CLASSES));
    j.x = p->kind == TRANSFORMER ? j.y
                                 : ng_normal_new(NG_F32, NG_SHAPE(p->batch, INPUTS), 0, 1, &rng);
    return j;
}

static void job_free(job *j)
{
    if (j->x != j->y) ng_tensor_free(j->x);
    ng_tensor_free(j->y), ng_tape_free(j->tape), ng_optimizer_free(j->adam);
    ng_parallel_free(j->parallel), ng_module_free(j->net), ng_group_free(j->group);
    well(true, j->plan->name);
}

static void step(const job *j)
{
    ng_tensor *loss = ng_cross_entropy(j->tape, ng_forward(j->net, j->tape, j->x), j->y);
    const ng_status status =
        j->parallel ? ng_parallel_backward(j->parallel, j->tape, loss) : ng_backward(j->tape, loss);
    well(!status && !ng_optimizer_step(j->adam), j->plan->name);
}

static void do_once(const job *j)
{
    double one = 1, all[2];
    switch (j->plan->kind) {
    case STEP:
    case TRANSFORMER: step(j); break;
    case SUM: well(ng_group_sum(j->tape, j->x, j->group), "sum"); break;
    case GATHER: well(!ng_group_gather(j->group, &one, 1, all), "gather"); break;
    case ALLREDUCE:
        MPI_Allreduce(MPI_IN_PLACE, ng_data_f32(j->x), NUMBERS, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    }
    ng_tape_reset(j->tape);
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
    double time[2], longest[2];
    if (j->plan->way != ALONE) MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime(), idle = busy_now();
    do_once(j);
    time[0] = MPI_Wtime() - begin, time[1] = busy_now() - idle;
    memcpy(longest, time, sizeof time);
    if (j->plan->way != ALONE) MPI_Allreduce(time, longest, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (!counts || t->count == MOST) return;
    t->seconds[t->count++] = longest[0];
    if (t->count == 1 || longest[1] < t->busy) t->busy = longest[1];
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
    fprintf(file, "what\tleast_ms\tmedian_ms\tbusy_ms\n");
    for (int i = 0; i < PLANS; i++) {
        timing *t = &timings[i];
        if (t->count == 0) continue;
        qsort(t->seconds, (size_t)t->count, sizeof t->seconds[0], ascending);
        fprintf(file, "%s\t%.5g\t%.5g\t%.5g\n", plans[i].name, 1e3 * t->seconds[0],
                1e3 * t->seconds[t->count / 2], 1e3 * t->busy);
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
