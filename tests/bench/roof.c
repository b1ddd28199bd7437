/* The roof: what the machine allows. For work that is bound by memory the fastest loop with the
 * same reads and writes on buffers of the same size: ordinary or streaming stores, in vectors of
 * each width that the processor has, with what comes next fetched to the second cache or not; and
 * where each element costs an exponential or more, no less than that takes over a row that stays
 * in the nearest cache. For a training step its matrix products at the rate of a large square
 * one. */
#include "engine.h"
#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* y = a x, or a x + z where there is a z; without y the sum of x goes to *sum. n is a multiple of
 * 64. */
typedef void stream(const float *x, const float *z, float *y, int64_t n, float *sum);

enum { LANES = 64, PRODUCT = 1536, SMALL = 1 << 20, MOST_LOOPS = 7, AHEAD = 2048 };
static const float factor = 1.0009765625f;

static inline __attribute__((always_inline)) void
ordinary(const float *restrict x, const float *restrict z, float *restrict y, int64_t n, float *sum)
{
    if (!y) {
        float lane[LANES] = {0};
        for (int64_t i = 0; i < n; i += LANES)
            for (int k = 0; k < LANES; k++) lane[k] += x[i + k];
        for (int k = 0; k < LANES; k++) *sum += lane[k];
    } else if (z) {
        for (int64_t i = 0; i < n; i++) y[i] = factor * x[i] + z[i];
    } else {
        for (int64_t i = 0; i < n; i++) y[i] = factor * x[i];
    }
}

static void baseline(const float *x, const float *z, float *y, int64_t n, float *sum)
{
    ordinary(x, z, y, n, sum);
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,fma")))

AVX2 static void avx2(const float *x, const float *z, float *y, int64_t n, float *sum)
{
    ordinary(x, z, y, n, sum);
}

AVX512 static void avx512(const float *x, const float *z, float *y, int64_t n, float *sum)
{
    const __m512 a = _mm512_set1_ps(factor);
    if (!y) {
        ordinary(x, z, y, n, sum);
        return;
    }
    for (int64_t i = 0; i < n; i += 16) {
        const __m512 ax = _mm512_mul_ps(a, _mm512_load_ps(x + i));
        _mm512_store_ps(y + i, z ? _mm512_add_ps(ax, _mm512_load_ps(z + i)) : ax);
    }
}

/* Stores past the caches, in vectors of so many bits; with `fetch` what comes next is brought to
 * the second cache meanwhile. */
#define PASSING(name, target, bits, fetch)                                                         \
    target static void name(const float *x, const float *z, float *y, int64_t n, float *sum)       \
    {                                                                                              \
        const __m##bits a = _mm##bits##_set1_ps(factor);                                           \
        (void)sum;                                                                                 \
        for (int64_t i = 0; i < n; i += bits / 32) {                                               \
            const __m##bits ax = _mm##bits##_mul_ps(a, _mm##bits##_load_ps(x + i));                \
            _mm##bits##_stream_ps(y + i,                                                           \
                                  z ? _mm##bits##_add_ps(ax, _mm##bits##_load_ps(z + i)) : ax);    \
            if (fetch) __builtin_prefetch(x + i + AHEAD, 0, 2);                                    \
            if (fetch && z) __builtin_prefetch(z + i + AHEAD, 0, 2);                               \
        }                                                                                          \
        _mm_sfence();                                                                              \
    }
PASSING(avx2_streaming, AVX2, 256, false)
PASSING(avx2_fetching, AVX2, 256, true)
PASSING(avx512_streaming, AVX512, 512, false)
PASSING(avx512_fetching, AVX512, 512, true)
#endif

/* ---- Streaming ----------------------------------------------------------------------------- */

/* With `again`, x and z are first summed: BatchNorm must have read all of a batch before it writes,
 * where a row that is normalized is in cache when it is read again.
 * The variants are the loops, shared by all threads; and, where starting threads may cost more than
 * they save, the loops again on one. */
typedef struct {
    stream *loop[MOST_LOOPS], *sum;
    int loops;
    int64_t n; /* floats */
    float *x, *z, *y;
    bool again;
    ng_span *arithmetic; /* of a row, which is a unit; or NULL */
    int64_t rows, columns;
} streams;

static void copy_values(float *x, const float *values, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = values[i % LANES];
}

/* Where sums go, so that they are worked out. */
static _Atomic float sink;

typedef struct {
    stream *loop;
    const float *x, *z;
    float *y;
} shared_streams;

static void stream_span(const void *arguments, int64_t begin, int64_t end)
{
    const shared_streams *w = arguments;
    const int64_t first = begin * LANES;
    float sum = 0;
    w->loop(w->x + first, w->z ? w->z + first : NULL, w->y ? w->y + first : NULL,
            (end - begin) * LANES, &sum);
    atomic_store_explicit(&sink, sum, memory_order_relaxed);
}

static void run_stream(const streams *s, bool shared, shared_streams work)
{
    const int64_t blocks = s->n / LANES;
    if (shared)
        ng_share(stream_span, &work, blocks, 1, INT64_MAX);
    else
        stream_span(&work, 0, blocks);
}

static void run_streams(void *state, int variant)
{
    const streams *s = state;
    const bool shared = variant < s->loops;
    if (s->again) run_stream(s, shared, (shared_streams){s->sum, s->x, NULL, NULL});
    if (s->again && s->z) run_stream(s, shared, (shared_streams){s->sum, s->z, NULL, NULL});
    run_stream(s, shared, (shared_streams){s->loop[variant % s->loops], s->x, s->z, s->y});
}

/* ---- Arithmetic ----------------------------------------------------------------------------- */

/* The formulas of the library's own kernels, over and over on the same row. */
enum { MOST_COLUMNS = 1024 };

static void fill_row(float *x, int64_t columns)
{
    for (int64_t i = 0; i < columns; i++) x[i] = (float)(i % 101) / 25 - 2;
}

static void gelu_rows(const void *arguments, int64_t begin, int64_t end)
{
    const streams *s = arguments;
    const ng_kernels *kernels = ng_kernels_for(NG_F32);
    float x[MOST_COLUMNS], y[MOST_COLUMNS];
    fill_row(x, s->columns);
    for (int64_t i = begin; i < end; i++)
        kernels->map((ng_mapping){.kind = NG_MAP_GELU}, x, y, s->columns);
    atomic_store_explicit(&sink, y[0], memory_order_relaxed);
}

static void cross_entropy_rows(const void *arguments, int64_t begin, int64_t end)
{
    const streams *s = arguments;
    const ng_kernels *kernels = ng_kernels_for(NG_F32);
    float x[MOST_COLUMNS], loss[1];
    double kept[2];
    const int64_t label[1] = {0};
    const ng_cross_entropy_shape shape = {.rows = 1, .n = s->columns};
    fill_row(x, s->columns);
    for (int64_t i = begin; i < end; i++) kernels->cross_entropy(&shape, x, label, loss, kept);
    atomic_store_explicit(&sink, loss[0], memory_order_relaxed);
}

static void run_arithmetic(void *state, int variant)
{
    const streams *s = state;
    (void)variant;
    ng_share(s->arithmetic, s, s->rows, 16, INT64_MAX);
}

/* Of the cases that are bound by it. */
static ng_span *arithmetic_of(const bench_case *what)
{
    if (what->columns > MOST_COLUMNS) return NULL;
    return !strcmp(what->name, "gelu_forward")            ? gelu_rows
           : !strcmp(what->name, "cross_entropy_forward") ? cross_entropy_rows
                                                          : NULL;
}

static void close_streams(void *state)
{
    streams *s = state;
    free(s->x), free(s->z), free(s->y), free(s);
}

static void choose_loops(streams *s)
{
    s->sum = s->loop[s->loops++] = baseline;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        s->sum = s->loop[s->loops++] = avx2;
        if (s->y) {
            s->loop[s->loops++] = avx2_streaming;
            s->loop[s->loops++] = avx2_fetching;
        }
    }
    if (__builtin_cpu_supports("avx512f")) {
        s->sum = s->loop[s->loops++] = avx512;
        if (s->y) {
            s->loop[s->loops++] = avx512_streaming;
            s->loop[s->loops++] = avx512_fetching;
        }
    }
#endif
}

static bool open_streams(const bench_case *what, bench_job *job, int reads, int writes)
{
    const int64_t size = what->rows * what->columns;
    streams *s = calloc(1, sizeof *s);
    if (!s) return false;
    s->n = (size + LANES - 1) / LANES * LANES;
    s->again = !strcmp(what->name, "batch_norm");
    const int64_t bytes = s->n * (int64_t)sizeof(float);
    s->x = bench_buffer(bytes);
    s->z = reads > 1 ? bench_buffer(bytes) : NULL;
    s->y = writes ? bench_buffer(bytes) : NULL;
    choose_loops(s);
    const bool small = bytes <= SMALL && ng_threads() > 1;
    s->rows = what->rows, s->columns = what->columns;
    s->arithmetic = arithmetic_of(what);
    *job = (bench_job){.state = s,
                       .run = run_streams,
                       .bound = s->arithmetic ? run_arithmetic : NULL,
                       .close = close_streams,
                       .per = 1,
                       .variants = small ? 2 * s->loops : s->loops};
    if (!s->x || (reads > 1 && !s->z) || (writes && !s->y)) return false;
    float values[LANES];
    for (int i = 0; i < LANES; i++) values[i] = 1e-3f * (float)i;
    copy_values(s->x, values, s->n);
    if (s->z) copy_values(s->z, values, s->n);
    return true;
}

/* ---- Which work reads and writes how much -------------------------------------------------- */

/* In tensors of the case's shape. Left out is what touches none: the backward pass of a sum hands
 * dy on as it is. */
static const struct {
    const char *group, *name;
    int reads, writes;
} traffic[] = {
    {"norm_forward", NULL, 1, 1},
    {"norm_backward", NULL, 2, 1},
    {"pointwise", "gelu_forward", 1, 1},
    {"pointwise", "gelu_backward", 2, 1},
    {"pointwise", "softmax_forward", 1, 1},
    {"pointwise", "softmax_backward", 2, 1},
    {"pointwise", "cross_entropy_forward", 1, 0},
    {"pointwise", "cross_entropy_backward", 1, 1},
    {"pointwise", "bias_add_forward", 1, 1},
    {"pointwise", "bias_add_backward", 1, 0}, /* dbias; dx is dy */
    {"pointwise", "residual_add_forward", 2, 1},
};

static bool open_roof(const bench_case *what, bench_job *job)
{
    if (!strcmp(what->group, "step")) {
        const bench_case square = {.rows = PRODUCT, .columns = PRODUCT, .depth = PRODUCT};
        const bool opened = bench_open_product(&square, false, false, job);
        job->per = 2.0 * PRODUCT * PRODUCT * PRODUCT / bench_step_flops(what);
        return opened;
    }
    for (size_t i = 0; i < sizeof traffic / sizeof *traffic; i++)
        if (!strcmp(what->group, traffic[i].group) &&
            (!traffic[i].name || !strcmp(what->name, traffic[i].name)))
            return open_streams(what, job, traffic[i].reads, traffic[i].writes);
    return false;
}

int bench_roof(void) { return bench_serve("roof", open_roof); }
