/* The C engines' side of the protocol, and how a case is timed. */
#include "engine.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_SAMPLES = 4096, HUGE_PAGE = 1 << 21 };

/* Shorter runs are timed several at a time, so that reading the clock does not count. */
static const double shortest_sample = 20e-6;

void *bench_buffer(int64_t bytes)
{
    const size_t size = ((size_t)bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    void *memory = aligned_alloc(HUGE_PAGE, size);
    if (!memory) return NULL;
#ifdef MADV_HUGEPAGE
    madvise(memory, size, MADV_HUGEPAGE);
#endif
    return memset(memory, 0, size);
}

/* ---- A case ---------------------------------------------------------------------------------- */

/* "64-128*3-10@32" */
static bool parse_network(bench_case *what)
{
    const char *text = what->shape;
    char *end;
    for (what->widths = 0;; text = end + 1) {
        const int64_t width = strtoll(text, &end, 10);
        const int64_t times = *end == '*' ? strtoll(end + 1, &end, 10) : 1;
        if (width < 1 || times < 1 || times > BENCH_LAYERS - what->widths) return false;
        for (int64_t i = 0; i < times; i++) what->width[what->widths++] = width;
        if (*end != '-') break;
    }
    what->batch = *end == '@' ? strtoll(end + 1, NULL, 10) : 0;
    return what->batch > 0;
}

static bool parse_case(const char *line, bench_case *what)
{
    long long number[4] = {1, 1, 1, 1}, of_name[2] = {0, 0};
    *what = (bench_case){0};
    if (sscanf(line, "open %23s %31s %47s", what->group, what->name, what->shape) != 3)
        return false;
    what->back = strstr(what->group, "backward") != NULL;
    if (strchr(what->shape, '@')) return parse_network(what);
    if (sscanf(what->shape, "%lldx%lldx%lld>%lld", number, number + 1, number + 2, number + 3) < 2)
        return false;
    what->rows = number[0], what->columns = number[1], what->depth = number[2];
    const char *digits = what->name + strcspn(what->name, "0123456789");
    sscanf(digits, "%lld%*c%lld", of_name, of_name + 1);
    what->layers = of_name[0], what->dim = of_name[1], what->hidden = of_name[0];
    what->kernel = of_name[0], what->stride = of_name[1];
    if (strncmp(what->group, "conv", 4)) return true;
    what->out = number[3], what->padding = what->kernel / 2;
    what->groups = strncmp(what->name, "conv", 4) ? what->columns : 1;
    what->side = (what->depth - 1) / what->stride + 1;
    return what->kernel % 2 == 1;
}

bool bench_turns(const bench_case *what, char operand)
{
    const char *at = strchr(what->name, operand);
    return at && at[1] == '^';
}

/* ---- Timing -------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Seconds of `count` runs in a row. */
static double sample(const bench_job *job, int count)
{
    if (job->before) job->before(job->state);
    const double begin = now();
    for (int i = 0; i < count; i++) job->run(job->state);
    return now() - begin;
}

/* Median seconds of one run. A tenth of the time, or one run, warms caches and threads. */
static double time_runs(const bench_job *job, double seconds, int least)
{
    static double samples[MOST_SAMPLES];
    const double begin = now();
    double once;
    do once = sample(job, 1);
    while (now() - begin < 0.1 * seconds);
    const int together = job->before || once >= shortest_sample ? 1
                         : once < shortest_sample / 1000        ? 1000
                                                                : (int)(shortest_sample / once);
    int count = 0;
    while (count < MOST_SAMPLES && (count < least || now() - begin < seconds))
        samples[count++] = sample(job, together) / together;
    qsort(samples, (size_t)count, sizeof *samples, ascending);
    return (samples[(count - 1) / 2] + samples[count / 2]) / 2;
}

static double time_job(const bench_job *job, double seconds, int least)
{
    if (!job->choose) return time_runs(job, seconds, least);
    double best = 1e30;
    for (int variant = 0; variant < job->variants; variant++) {
        job->choose(job->state, variant);
        const double time = time_runs(job, seconds / job->variants, least);
        best = time < best ? time : best;
    }
    return best;
}

/* ---- The protocol -------------------------------------------------------------------------- */

static void close_job(bench_job *job)
{
    if (job->close) job->close(job->state);
    *job = (bench_job){0};
}

int bench_serve(const char *name, bench_open *open)
{
    char line[256];
    bench_job job = {0};
    printf("ready %s\n", name);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        double milliseconds;
        int least;
        if (!strncmp(line, "open ", 5)) {
            bench_case what;
            close_job(&job);
            puts(parse_case(line, &what) && open(&what, &job) ? "ok" : "no");
        } else if (job.run && sscanf(line, "time %lf %d", &milliseconds, &least) == 2) {
            printf("%.9g\n", 1e6 * time_job(&job, 1e-3 * milliseconds, least));
        } else {
            close_job(&job);
            puts("ok");
        }
        fflush(stdout);
    }
    close_job(&job);
    return EXIT_SUCCESS;
}
