/* The C engines' side of the protocol, and how a case is timed. */
#include "engine.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MOST_SAMPLES = 4096, HUGE_PAGE = 1 << 21 };

/* Shorter runs are timed several at a time, so that reading the clock does not count. */
static const double shortest_sample = 20e-6;

double bench_now(void)
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

double bench_median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

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

bool bench_parse_shape(bench_case *what)
{
    const char *text = what->shape;
    char *end;
    if (!strncmp(what->name, "transformer-", 12)) {
        what->layers = strtoll(what->name + 12, &end, 10);
        what->dim = *end == 'x' ? strtoll(end + 1, NULL, 10) : 0;
        if (what->layers < 1 || what->dim < 1) return false;
    }
    if (!strncmp(what->name, "lstm-", 5) && (what->hidden = strtoll(what->name + 5, &end, 10)) < 1)
        return false;
    what->rows = strtoll(text, &end, 10);
    if (*end == 'x') {
        what->columns = strtoll(end + 1, &end, 10);
        what->depth = *end == 'x' ? strtoll(end + 1, &end, 10) : 1;
        return *end == '\0' && what->rows > 0 && what->columns > 0 && what->depth > 0;
    }
    for (what->widths = 0;; text = end + 1) {
        const int64_t width = strtoll(text, &end, 10);
        const int64_t times = *end == '*' ? strtoll(end + 1, &end, 10) : 1;
        if (width < 1 || times < 1 || times > BENCH_LAYERS - what->widths) return false;
        for (int64_t i = 0; i < times; i++) what->width[what->widths++] = width;
        if (*end != '-') break;
    }
    if (*end != '@') return false;
    what->batch = strtoll(end + 1, &end, 10);
    return *end == '\0' && what->batch > 0;
}

/* The products with weights, each three times (forward, and two backward); those of the attention,
 * two forward and four backward, of which a causal mask leaves half. */
static double transformer_flops(const bench_case *what)
{
    const double dim = (double)what->dim, length = (double)what->columns;
    const double tokens = (double)what->rows * length;
    const double layer = 6 * 12 * dim * dim + 6 * length * dim;
    return tokens * ((double)what->layers * layer + 6 * dim * BENCH_VOCABULARY);
}

/* Of four gates the products of x and of h, forward and for the weights' gradients; of h once more,
 * for its own. */
static double lstm_flops(const bench_case *what)
{
    const double hidden = (double)what->hidden;
    return 2 * 5 * (double)what->rows * (double)what->columns * 4 * hidden * hidden;
}

/* Forward y = x W, backward dW = x dy and dx = dy W, but no dx for the input. */
double bench_step_flops(const bench_case *what)
{
    if (what->layers) return transformer_flops(what);
    if (what->hidden) return lstm_flops(what);
    double flops = 0;
    for (int i = 0; i + 1 < what->widths; i++)
        flops +=
            (i ? 6 : 4) * (double)what->batch * (double)what->width[i] * (double)what->width[i + 1];
    return flops;
}

/* ---- Timing -------------------------------------------------------------------------------- */

/* Seconds of `count` runs in a row. */
static double sample(const bench_job *job, int variant, int count)
{
    if (job->before) job->before(job->state);
    const double begin = bench_now();
    for (int i = 0; i < count; i++) job->run(job->state, variant);
    return bench_now() - begin;
}

/* Median seconds of one run. A tenth of the time, or one run, warms caches and threads. */
static double time_variant(const bench_job *job, int variant, double seconds, int least)
{
    static double samples[MOST_SAMPLES];
    const double begin = bench_now();
    double once;
    do once = sample(job, variant, 1);
    while (bench_now() - begin < 0.1 * seconds);
    const int together = job->before || once >= shortest_sample ? 1
                         : once < shortest_sample / 1000        ? 1000
                                                                : (int)(shortest_sample / once);
    int count = 0;
    while (count < MOST_SAMPLES && (count < least || bench_now() - begin < seconds))
        samples[count++] = sample(job, variant, together) / together;
    return bench_median(samples, count);
}

static double time_job(const bench_job *job, double seconds, int least)
{
    double best = time_variant(job, 0, seconds / job->variants, least);
    for (int variant = 1; variant < job->variants; variant++) {
        const double time = time_variant(job, variant, seconds / job->variants, least);
        if (time < best) best = time;
    }
    if (job->bound) {
        bench_job other = *job;
        other.run = job->bound;
        const double time = time_variant(&other, 0, seconds, least);
        if (time > best) best = time;
    }
    return best / job->per;
}

/* ---- The protocol -------------------------------------------------------------------------- */

static void close_job(bench_job *job)
{
    if (job->close) job->close(job->state);
    *job = (bench_job){.per = 1, .variants = 1};
}

static bool open_job(const char *line, bench_open *open, bench_job *job)
{
    bench_case what = {0};
    if (sscanf(line, "open %23s %31s %47s", what.group, what.name, what.shape) != 3) return false;
    return bench_parse_shape(&what) && open(&what, job);
}

int bench_serve(const char *name, bench_open *open)
{
    char line[256];
    bench_job job = {.per = 1, .variants = 1};
    printf("ready %s\n", name);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        double milliseconds;
        int least;
        if (!strncmp(line, "open ", 5)) {
            close_job(&job);
            puts(open_job(line, open, &job) ? "ok" : "no");
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
