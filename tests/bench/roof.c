/* The roof: the fastest loop with the same reads and writes, a "copy" y = a x or a "triad"
 * y = a x + z, in vectors of the library's instruction set, with ordinary or streaming stores, with
 * what comes next fetched to the second cache or not. For a step, a matrix product. */
#include "engine.h"
#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* z may be NULL. n is a multiple of LANES. */
typedef void stream(const float *x, const float *z, float *y, int64_t n);

enum { LANES = 64, SMALL = 1 << 20, AHEAD = 2048, LOOPS = 3 };
static const float factor = 1.0009765625f;

static void baseline(const float *restrict x, const float *restrict z, float *restrict y, int64_t n)
{
    for (int64_t i = 0; z && i < n; i++) y[i] = factor * x[i] + z[i];
    for (int64_t i = 0; !z && i < n; i++) y[i] = factor * x[i];
}

#ifdef __x86_64__
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,fma")))

/* In vectors of so many bits, which `put` stores. */
#define LOOP(name, target, bits, put, fetch, end)                                                  \
    target static void name(const float *x, const float *z, float *y, int64_t n)                   \
    {                                                                                              \
        const __m##bits a = _mm##bits##_set1_ps(factor);                                           \
        for (int64_t i = 0; i < n; i += bits / 32) {                                               \
            const __m##bits ax = _mm##bits##_mul_ps(a, _mm##bits##_load_ps(x + i));                \
            put(y + i, z ? _mm##bits##_add_ps(ax, _mm##bits##_load_ps(z + i)) : ax);               \
            if (fetch) __builtin_prefetch(x + i + AHEAD, 0, 2);                                    \
            if (fetch && z) __builtin_prefetch(z + i + AHEAD, 0, 2);                               \
        }                                                                                          \
        end;                                                                                       \
    }
LOOP(avx2, AVX2, 256, _mm256_store_ps, false, (void)0)
LOOP(avx2_streaming, AVX2, 256, _mm256_stream_ps, false, _mm_sfence())
LOOP(avx2_fetching, AVX2, 256, _mm256_stream_ps, true, _mm_sfence())
LOOP(avx512, AVX512, 512, _mm512_store_ps, false, (void)0)
LOOP(avx512_streaming, AVX512, 512, _mm512_stream_ps, false, _mm_sfence())
LOOP(avx512_fetching, AVX512, 512, _mm512_stream_ps, true, _mm_sfence())
#endif

static const struct {
    const char *isa;
    stream *loop[LOOPS];
} loops_of[] = {
#ifdef __x86_64__
    {"avx512", {avx512, avx512_streaming, avx512_fetching}},
    {"avx2", {avx2, avx2_streaming, avx2_fetching}},
#endif
    {"", {baseline, baseline, baseline}},
};

/* The variants are the loops, shared by all threads; and, where starting threads may cost more than
 * they save, the loops again on one. */
typedef struct {
    stream *const *loops;
    int variant;
    int64_t n; /* floats */
    float *x, *z, *y;
} streams;

static void stream_span(const void *state, int64_t begin, int64_t end)
{
    const streams *s = state;
    const int64_t from = begin * LANES;
    const float *z = s->z ? s->z + from : NULL;
    s->loops[s->variant % LOOPS](s->x + from, z, s->y + from, (end - begin) * LANES);
}

static void choose_loop(void *state, int variant) { ((streams *)state)->variant = variant; }

static void run_streams(void *state)
{
    const streams *s = state;
    if (s->variant < LOOPS)
        ng_share(stream_span, s, s->n / LANES, 1, INT64_MAX);
    else
        stream_span(s, 0, s->n / LANES);
}

static void close_streams(void *state)
{
    streams *s = state;
    free(s->x), free(s->z), free(s->y), free(s);
}

static float *new_buffer(int64_t n)
{
    float *x = bench_buffer(n * (int64_t)sizeof *x);
    for (int64_t i = 0; x && i < n; i++) x[i] = 1e-3f * (float)(i % LANES);
    return x;
}

bool bench_open_roof(const bench_case *what, bench_job *job)
{
    if (!strcmp(what->group, "product")) return bench_open_product(what, job);
    const char *isa = ng_kernels_for(NG_F32)->isa;
    const bool triad = !strcmp(what->name, "triad");
    streams *s = calloc(1, sizeof *s);
    size_t of = 0;
    if (!s) return false;
    while (*loops_of[of].isa && strcmp(loops_of[of].isa, isa)) of++;
    s->loops = loops_of[of].loop;
    s->n = (what->rows * what->columns + LANES - 1) / LANES * LANES;
    s->x = new_buffer(s->n), s->y = new_buffer(s->n), s->z = triad ? new_buffer(s->n) : NULL;
    const bool small = s->n * (int64_t)sizeof(float) <= SMALL && ng_threads() > 1;
    *job = (bench_job){.state = s,
                       .run = run_streams,
                       .close = close_streams,
                       .choose = choose_loop,
                       .variants = small ? 2 * LOOPS : LOOPS};
    return s->x && s->y && (s->z || !triad);
}
