/* Vectors, sums over contiguous elements, and the other small functions that the kernels share. */
#include "core/elementary.h"
#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include "kernels/walk.h"
#include <math.h>
#include <string.h>

/* A name that a macro makes. In normgrad.c it gets the instruction set and dtype (names.h). */
#ifndef NG_OF_TABLE
#define NG_OF_TABLE(name) name
#endif

/* Of two functions the one for REAL; F(sqrt) is REAL's function of math.h. */
#define NG_OF_REAL(of_float, of_double) _Generic((REAL)0, float : of_float, double : of_double)
#define F(name) NG_OF_REAL(name##f, name)

#define NG_APART __attribute__((noinline))

/* The iterations of the next loop are independent; they are few, and their number is a constant. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed" /* some loops are no vectors */
#define NG_NO_ORDER _Pragma("clang loop vectorize(assume_safety)")
#define NG_UNROLLED _Pragma("clang loop unroll(full)")
#else
#define NG_NO_ORDER _Pragma("GCC ivdep")
#define NG_UNROLLED _Pragma("GCC unroll 12")
#endif

/* The instruction set's file defines:
 *
 *     NG_VECTOR               bytes in a vector; f64vec is one of doubles, f32vec one of floats
 *     NG_FUSES                whether a b + c is rounded once
 *     NG_GEMM_TILE               rows of the tile that a matrix product keeps in registers
 *     NG_REGISTER             the letter of a vector register in assembler, if there is one
 *     load_f32, store_f32     NG_LANES floats as doubles, and back
 *     low_half, high_half     halves of an f32vec as doubles
 *     NG_MASKS                whether there are loads and stores of a vector's first elements:
 *                             load_some_f32, _f64, store_some_f32, _f64
 *     stream_vector           a non-temporal store to aligned memory, if the instruction set
 *                             it has one; stream_end orders it before later stores
 *     fused_f32vec, _f64vec   a b + c of each element, as fused_real()
 *     sum_f64vec              the sum of the elements, in a fixed order */
#define NG_ISA_NUMBER_OF(isa) NG_ISA_##isa
#define NG_ISA_NUMBER(isa) NG_ISA_NUMBER_OF(isa)
#define NG_ISA_baseline 0
#define NG_ISA_avx2 1
#define NG_ISA_avx512 2
#define NG_ISA_neon 3
#if NG_ISA_NUMBER(ISA) == NG_ISA_avx512
#include "kernels/isa_avx512.h"
#elif NG_ISA_NUMBER(ISA) == NG_ISA_avx2
#include "kernels/isa_avx2.h"
#elif NG_ISA_NUMBER(ISA) == NG_ISA_neon
#include "kernels/isa_neon.h"
#else
#include "kernels/isa_baseline.h"
#endif

/* Doubles in a vector. */
#define NG_LANES ((int)(NG_VECTOR / sizeof(double)))

NG_INLINE f64vec load_f64(const double *x)
{
    f64vec v;
    memcpy(&v, x, sizeof v);
    return v;
}
NG_INLINE f64vec splat_f64(double value) { return value - (f64vec){0}; }
NG_INLINE void store_f64(double *x, f64vec v) { memcpy(x, &v, sizeof v); }

/* a b + c, rounded once if the instruction set can, else twice. The compiler may not fuse anything
 * else (-ffp-contract=off): if it fused one copy of a loop and not another, their bits would
 * differ. */
NG_INLINE double fused_f64(double a, double b, double c)
{
    return NG_FUSES ? __builtin_fma(a, b, c) : a * b + c;
}

NG_INLINE float fused_f32(float a, float b, float c)
{
    return NG_FUSES ? __builtin_fmaf(a, b, c) : a * b + c;
}

/* ---- Vectors of REAL ----------------------------------------------------------------------- */

/* A full vector of REALs. */
typedef REAL vec __attribute__((vector_size(NG_VECTOR)));
#define NG_VEC ((int64_t)(NG_VECTOR / sizeof(REAL)))

NG_INLINE vec load_vec(const REAL *x)
{
    vec v;
    memcpy(&v, x, sizeof v);
    return v;
}

NG_INLINE void store_vec(REAL *x, vec v) { memcpy(x, &v, sizeof v); }

/* The first `count` elements of a vector, at most NG_VEC, with `rest` in place of the others. The
 * end of an array is thus computed like its whole vectors, to the same bits. */
NG_INLINE vec load_some(const REAL *x, int64_t count, REAL rest)
{
    if (count == NG_VEC) return load_vec(x);
#ifdef NG_MASKS
    return NG_OF_REAL(load_some_f32, load_some_f64)(x, count, rest);
#else
    vec v = rest - (vec){0};
    for (int64_t i = 0; i < count; i++) v[i] = x[i];
    return v;
#endif
}

NG_INLINE void store_some(REAL *x, vec v, int64_t count)
{
    if (count == NG_VEC) {
        store_vec(x, v);
        return;
    }
#ifdef NG_MASKS
    NG_OF_REAL(store_some_f32, store_some_f64)(x, v, count);
#else
    for (int64_t i = 0; i < count; i++) x[i] = v[i];
#endif
}

NG_INLINE vec splat(REAL value) { return value - (vec){0}; }

/* NG_LANES elements of REAL as doubles, and back. */
#define load_real NG_OF_REAL(load_f32, load_f64)
#define store_real NG_OF_REAL(store_f32, store_f64)

/* The first `count` elements as doubles, at most NG_LANES, with `rest`, or 0, in place of the
 * others; and back. */
NG_INLINE f64vec load_lanes_or(const REAL *x, int64_t count, REAL rest)
{
    if (count == NG_LANES) return load_real(x);
    const vec v = load_some(x, count, rest);
    return NG_OF_REAL(low_half((f32vec)v), (f64vec)v);
}

NG_INLINE f64vec load_lanes(const REAL *x, int64_t count) { return load_lanes_or(x, count, 0); }

NG_INLINE void put_lanes(REAL *result, f64vec value, int64_t count, bool add)
{
    if (count == NG_LANES) store_real(result, add ? load_real(result) + value : value);
    for (int64_t i = 0; i < count && count < NG_LANES; i++)
        result[i] = (REAL)(add ? (double)result[i] + value[i] : value[i]);
}

/* a b + c: of one REAL, and of each element. */
#define fused_real NG_OF_REAL(fused_f32, fused_f64)
#define fused_vec NG_OF_REAL(fused_f32vec, fused_f64vec)

/* The first `count` elements of to = v. A whole vector goes past the caches if `stream`. */
NG_INLINE void put_vec(REAL *result, vec v, int64_t count, const bool stream)
{
    if (stream && count == NG_VEC)
        stream_vector(result, (f64vec)v);
    else
        store_some(result, v, count);
}

/* The first `count` elements of to (+)= a b. */
NG_INLINE void put_product(REAL *result, const bool add, vec a, vec b, int64_t count,
                           const bool stream)
{
    put_vec(result, add ? fused_vec(a, b, load_some(result, count, 0)) : a * b, count, stream);
}

/* ---- Sums -----------------------------------------------------------------------------------
 *
 * A sum runs in accumulators side by side, 32 of floats or 16 of doubles: element i is added to
 * accumulator i % 32, or i % 16. Their number is that of elements, not of vectors, and one tree
 * adds them up. So a sum has the same bits with vectors of any width.
 *
 * A block has an element for each accumulator. It takes NG_PARTS vectors, whose loops are unrolled:
 * accumulators that are indexed by constants stay in registers. */
#define NG_PARTS (128 / NG_VECTOR)
#define NG_BLOCK ((int64_t)(128 / sizeof(REAL)))
#define NG_BLOCK_F64 ((int64_t)16)
#define NG_EACH_PART(k) _Pragma("GCC unroll 8") for (int k = 0; k < NG_PARTS; k++)
#if NG_VECTOR == 64
#define NG_EACH_HALF(k) for (int k = 0; k < 1; k++)
#else
#define NG_EACH_HALF(k) _Pragma("GCC unroll 4") for (int k = 0; k < NG_PARTS / 2; k++)
#endif

/* Likewise, of a block of `count` elements in vectors of `lanes`, the parts that have any. */
#define NG_EACH_PART_OF(k, count, lanes) NG_EACH_PART(k) if (k * (lanes) < (count))

/* How many of `count` elements are in part k of vectors of `lanes`. */
NG_INLINE int64_t in_part(int64_t count, int k, int64_t lanes)
{
    return ng_least(count - k * lanes, lanes);
}

/* The sum of 8 doubles: 4 are added to the other 4, of these 2 to 2, and so on. */
NG_INLINE double sum_of_8(const f64vec s[NG_PARTS / 2])
{
    if (NG_PARTS == 2) return sum_f64vec(s[0]);
    if (NG_PARTS == 4) return sum_f64vec(s[0] + s[1 % (NG_PARTS / 2)]);
    return sum_f64vec((s[0] + s[2 % (NG_PARTS / 2)]) +
                      (s[1 % (NG_PARTS / 2)] + s[3 % (NG_PARTS / 2)]));
}

/* Likewise of a block of doubles. */
NG_INLINE double sum_of_f64(const f64vec sums[NG_PARTS])
{
    f64vec s[NG_PARTS / 2];
    NG_EACH_HALF(k) s[k] = sums[k] + sums[k + NG_PARTS / 2];
    return sum_of_8(s);
}

/* Likewise of a block of REALs, in double. Of 32 floats 16 are added to the others in float. */
NG_INLINE double sum_of(const vec sums[NG_PARTS])
{
    enum { QUARTER = NG_PARTS > 2 ? NG_PARTS / 4 : 1 };
    vec v[NG_PARTS / 2];
    f64vec s[NG_PARTS / 2];
    NG_EACH_HALF(k) v[k] = sums[k] + sums[k + NG_PARTS / 2];
    NG_EACH_HALF(k)
    {
        const f32vec a = (f32vec)v[k / 2], b = (f32vec)v[(k / 2 + QUARTER) % (NG_PARTS / 2)];
        if (sizeof(REAL) == sizeof(double))
            s[k] = (f64vec)v[k];
        else if (NG_PARTS == 2)
            s[k] = low_half(a) + high_half(a);
        else
            s[k] = k % 2 == 0 ? low_half(a) + low_half(b) : high_half(a) + high_half(b);
    }
    return sum_of_8(s);
}

/* sum[0 .. NG_VEC - 1] += v */
NG_INLINE void add_vec(double *sum, vec v)
{
    if (sizeof(REAL) == sizeof(double)) {
        store_f64(sum, load_f64(sum) + (f64vec)v);
    } else {
        store_f64(sum, load_f64(sum) + low_half((f32vec)v));
        store_f64(sum + NG_LANES, load_f64(sum + NG_LANES) + high_half((f32vec)v));
    }
}

/* Adds x - shift, or with `square` (x - shift)^2, of a block's first `count` elements. */
NG_INLINE void add_powers(f64vec s[NG_PARTS], const REAL *x, int64_t count, REAL shift,
                          const bool square)
{
    NG_EACH_PART_OF(k, count, NG_LANES)
    {
        const f64vec v = load_lanes_or(x + k * NG_LANES, in_part(count, k, NG_LANES), shift);
        const f64vec p = v - (double)shift;
        s[k] = square ? fused_f64vec(p, p, s[k]) : s[k] + p;
    }
}

/* Runs of at most so many elements are summed, and their maximum is found, one after the other. */
#define NG_SHORT_RUN 8

NG_INLINE double power_run(const REAL *x, int64_t n, REAL shift, const bool square)
{
    f64vec s[NG_PARTS] = {{0}};
    double sum = 0;
    int64_t i = 0;
    for (; i < n && n <= NG_SHORT_RUN; i++) {
        const double p = (double)x[i] - (double)shift;
        sum = square ? fused_f64(p, p, sum) : sum + p;
    }
    if (n <= NG_SHORT_RUN) return sum;
    for (; i + NG_BLOCK_F64 <= n; i += NG_BLOCK_F64)
        add_powers(s, x + i, NG_BLOCK_F64, shift, square);
    if (i < n) add_powers(s, x + i, n - i, shift, square);
    return sum_of_f64(s);
}

/* In double: sum x - shift, and sum x^2. */
NG_INLINE double sum_run(const REAL *x, int64_t n, REAL shift)
{
    return power_run(x, n, shift, false);
}

NG_INLINE double square_run(const REAL *x, int64_t n) { return power_run(x, n, 0, true); }

NG_INLINE void add_products_f64(f64vec s[NG_PARTS], const REAL *x, const REAL *y, int64_t count)
{
    NG_EACH_PART_OF(k, count, NG_LANES)
    {
        const int64_t lanes = in_part(count, k, NG_LANES);
        s[k] = fused_f64vec(load_lanes(x + k * NG_LANES, lanes),
                            load_lanes(y + k * NG_LANES, lanes), s[k]);
    }
}

/* sum x y in double */
static double dot_run(const REAL *x, const REAL *y, int64_t n)
{
    f64vec s[NG_PARTS] = {{0}};
    int64_t i = 0;
    for (; i + NG_BLOCK_F64 <= n; i += NG_BLOCK_F64)
        add_products_f64(s, x + i, y + i, NG_BLOCK_F64);
    if (i < n) add_products_f64(s, x + i, y + i, n - i);
    return sum_of_f64(s);
}

/* Terms that an accumulator adds in REAL before its sum is added in double. */
#define NG_SUM_RUN 32

NG_INLINE void add_products(vec s[NG_PARTS], const REAL *x, const REAL *y, int64_t count)
{
    NG_EACH_PART_OF(k, count, NG_VEC)
    {
        const int64_t part = in_part(count, k, NG_VEC);
        s[k] =
            fused_vec(load_some(x + k * NG_VEC, part, 0), load_some(y + k * NG_VEC, part, 0), s[k]);
    }
}

/* Likewise sum x. */
NG_INLINE double sum_in_real(const REAL *x, int64_t n)
{
    double sum = 0;
    if (n <= NG_SHORT_RUN) return sum_run(x, n, 0);
    for (int64_t i = 0; i < n;) {
        const int64_t end = ng_least(n, i + NG_SUM_RUN * NG_BLOCK);
        vec s[NG_PARTS] = {{0}};
        for (; i + NG_BLOCK <= end; i += NG_BLOCK)
            NG_EACH_PART(k) s[k] += load_vec(x + i + k * NG_VEC);
        if (i < end) NG_EACH_PART_OF(k, end - i, NG_VEC)
        s[k] += load_some(x + i + k * NG_VEC, in_part(end - i, k, NG_VEC), 0);
        i = end;
        sum += sum_of(s);
    }
    return sum;
}

/* sum x y in REAL over short runs. */
NG_INLINE double dot_in_real(const REAL *x, const REAL *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n;) {
        const int64_t end = ng_least(n, i + NG_SUM_RUN * NG_BLOCK);
        vec s[NG_PARTS] = {{0}};
        for (; i + NG_BLOCK <= end; i += NG_BLOCK) add_products(s, x + i, y + i, NG_BLOCK);
        if (i < end) add_products(s, x + i, y + i, end - i), i = end;
        sum += sum_of(s);
    }
    return sum;
}

/* Whether `out`, one of `arrays` of the same size in rows of n, is streamed. Each row must be
 * aligned. */
NG_INLINE bool is_streamed(const void *out, int arrays, int64_t rows, int64_t n)
{
    const int64_t row_bytes = n * (int64_t)sizeof(REAL);
    return ng_stores_past(arrays * rows * row_bytes) && row_bytes % NG_VECTOR == 0 &&
           (uintptr_t)out % NG_VECTOR == 0;
}

/* Prefetches to the L2 cache; the L1 cache waits for too few lines at a time. */
NG_INLINE void fetch(const REAL *x) { __builtin_prefetch(x, 0, 2); }

/* The larger; a NaN if either is one. */
NG_INLINE REAL larger(REAL m, REAL x)
{
    const REAL most = x > m ? x : m;
    return x != x ? x : most;
}

NG_INLINE vec larger_vec(vec m, vec x)
{
    const __typeof__(x > m) mask = (x > m) | (x != x);
    return (vec)((mask & (__typeof__(mask))x) | (~mask & (__typeof__(mask))m));
}

/* max x; -Inf of nothing, a NaN if there is one. */
NG_INLINE REAL max_of_run(const REAL *x, int64_t n)
{
    const REAL least = -(REAL)INFINITY;
    REAL each[NG_VEC], max = least;
    bool nan = false;
    for (int64_t i = 0; i < n && n <= 2 * NG_SHORT_RUN; i++)
        max = x[i] > max ? x[i] : max, nan |= x[i] != x[i];
    if (n > 2 * NG_SHORT_RUN) {
        vec m[NG_PARTS];
        NG_EACH_PART(k) m[k] = splat(least);
        int64_t i = 0;
        for (; i + NG_BLOCK <= n; i += NG_BLOCK)
            NG_EACH_PART(k) m[k] = larger_vec(m[k], load_vec(x + i + k * NG_VEC));
        if (i < n) NG_EACH_PART_OF(k, n - i, NG_VEC)
        m[k] = larger_vec(m[k], load_some(x + i + k * NG_VEC, in_part(n - i, k, NG_VEC), least));
        NG_EACH_HALF(k) m[k] = larger_vec(m[k], m[k + NG_PARTS / 2]);
        if (NG_PARTS == 8)
            m[0] = larger_vec(m[0], m[2 % NG_PARTS]), m[1] = larger_vec(m[1], m[3 % NG_PARTS]);
        store_vec(each, NG_PARTS > 2 ? larger_vec(m[0], m[1]) : m[0]);
        NG_UNROLLED
        for (int64_t half = NG_VEC / 2; half > 0; half /= 2)
            for (int64_t j = 0; j < half; j++) each[j] = larger(each[j], each[j + half]);
        max = each[0], nan = max != max;
    }
    return nan ? (REAL)NAN : max;
}

/* Columns whose sums are kept on the stack, in double. */
#define NG_COLUMNS 1024

/* x, or 0 if it is below the smallest normal number. */
NG_INLINE REAL normal_or_zero(REAL x)
{
    const REAL least = (REAL)(sizeof(REAL) == sizeof(float) ? 0x1p-126 : 0x1p-1022);
    return F(fabs)(x) < least ? 0 : x;
}

/* to[i] (+)= value for i < n, `value` being an expression of i. There is a loop for each, without a
 * condition inside, so that both become vectors. */
#define NG_PUT_EACH(i, n, to, add, value)                                                          \
    do {                                                                                           \
        if (add)                                                                                   \
            for (int64_t i = 0; i < (n); i++) (to)[i] += (value);                                  \
        else                                                                                       \
            for (int64_t i = 0; i < (n); i++) (to)[i] = (value);                                   \
    } while (0)

/* y (+)= value */
NG_INLINE void put(REAL *y, double value, bool accumulate)
{
    *y = (REAL)(accumulate ? (double)*y + value : value);
}

/* Element i of a gradient, NULL where it is not wanted; and what goes there. */
NG_INLINE REAL *place_in(ng_slot result, int64_t i)
{
    return result.data ? (REAL *)result.data + i : NULL;
}

/* Whether a gradient can be stored past the caches: it is not read. */
NG_INLINE bool can_stream(ng_slot result) { return result.data && !result.accumulate; }

NG_INLINE void put_in(ng_slot result, int64_t i, double value)
{
    if (result.data) put((REAL *)result.data + i, value, result.accumulate);
}

/* Likewise its elements from `first` on. */
NG_INLINE void put_run(ng_slot result, int64_t first, const double *restrict values, int64_t count)
{
    REAL *restrict y = place_in(result, first);
    int64_t j = 0;
    if (!y) return;
    for (; j + NG_LANES <= count; j += NG_LANES) {
        const f64vec value = load_f64(values + j);
        store_real(y + j, result.accumulate ? load_real(y + j) + value : value);
    }
    for (; j < count; j++) put(y + j, values[j], result.accumulate);
}
