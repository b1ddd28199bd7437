/* What the .inc files share whatever their dtype: vectors, and the math that vectorizes. */
#ifndef NG_KERNELS_LANES_H
#define NG_KERNELS_LANES_H

#include "kernels/kernels.h"
#include "kernels/parallel.h"
#include "kernels/walk.h"
#include <math.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define NG_VECTOR 64 /* bytes */
#elif defined(__AVX2__)
#define NG_VECTOR 32
#else
#define NG_VECTOR 16
#endif

#define NG_INLINE static inline __attribute__((always_inline))
#define NG_APART __attribute__((noinline))

/* Sums run in `LANES` doubles side by side, whose order of addition is fixed by the source. */
#define LANES ((int)(NG_VECTOR / sizeof(double)))
typedef double wide __attribute__((vector_size(NG_VECTOR)));

/* LANES elements as doubles, and back. gcc converts a generic vector of floats by halves, at three
 * times the cost of the instruction for it. */
#if defined(__AVX512F__)
NG_INLINE wide load_f32(const float *x) { return (wide)_mm512_cvtps_pd(_mm256_loadu_ps(x)); }
NG_INLINE void store_f32(float *x, wide v) { _mm256_storeu_ps(x, _mm512_cvtpd_ps((__m512d)v)); }
#elif defined(__AVX2__)
NG_INLINE wide load_f32(const float *x) { return (wide)_mm256_cvtps_pd(_mm_loadu_ps(x)); }
NG_INLINE void store_f32(float *x, wide v) { _mm_storeu_ps(x, _mm256_cvtpd_ps((__m256d)v)); }
#else
typedef float narrow __attribute__((vector_size(NG_VECTOR / 2)));
NG_INLINE wide load_f32(const float *x)
{
    narrow v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, wide);
}
NG_INLINE void store_f32(float *x, wide v)
{
    const narrow narrowed = __builtin_convertvector(v, narrow);
    memcpy(x, &narrowed, sizeof narrowed);
}
#endif

/* A full vector of floats, and its halves as doubles. */
typedef float floats __attribute__((vector_size(NG_VECTOR)));
#if defined(__AVX512F__)
NG_INLINE wide low_half(floats v)
{
    return (wide)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
}
NG_INLINE wide high_half(floats v)
{
    return (wide)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
}
#elif defined(__AVX2__)
NG_INLINE wide low_half(floats v)
{
    return (wide)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
}
NG_INLINE wide high_half(floats v)
{
    return (wide)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}
#else
NG_INLINE wide low_half(floats v) { return (wide){(double)v[0], (double)v[1]}; }
NG_INLINE wide high_half(floats v) { return (wide){(double)v[2], (double)v[3]}; }
#endif

NG_INLINE wide load_f64(const double *x)
{
    wide v;
    memcpy(&v, x, sizeof v);
    return v;
}
NG_INLINE wide wide_of(double value) { return value - (wide){0}; }
NG_INLINE void store_f64(double *x, wide v) { memcpy(x, &v, sizeof v); }

/* Stores of aligned x past the caches, where the instruction set has one; stream_end orders them
 * before what other threads are told next. */
#if defined(__AVX512F__)
NG_INLINE void stream_f32(float *x, wide v) { _mm256_stream_ps(x, _mm512_cvtpd_ps((__m512d)v)); }
NG_INLINE void stream_f64(double *x, wide v) { _mm512_stream_pd(x, (__m512d)v); }
NG_INLINE void stream_vector(void *x, wide v) { _mm512_stream_pd(x, (__m512d)v); }
NG_INLINE void stream_end(void) { _mm_sfence(); }
#elif defined(__AVX2__)
NG_INLINE void stream_f32(float *x, wide v) { _mm_stream_ps(x, _mm256_cvtpd_ps((__m256d)v)); }
NG_INLINE void stream_f64(double *x, wide v) { _mm256_stream_pd(x, (__m256d)v); }
NG_INLINE void stream_vector(void *x, wide v) { _mm256_stream_pd(x, (__m256d)v); }
NG_INLINE void stream_end(void) { _mm_sfence(); }
#else
NG_INLINE void stream_f32(float *x, wide v) { store_f32(x, v); }
NG_INLINE void stream_f64(double *x, wide v) { store_f64(x, v); }
NG_INLINE void stream_vector(void *x, wide v) { memcpy(x, &v, sizeof v); }
NG_INLINE void stream_end(void) {}
#endif

NG_INLINE double wide_sum(wide v)
{
#if defined(__AVX512F__)
    const __m256d half = _mm512_castpd512_pd256((__m512d)v) + _mm512_extractf64x4_pd((__m512d)v, 1);
#elif defined(__AVX2__)
    const __m256d half = (__m256d)v;
#endif
#if defined(__AVX2__)
    const __m128d pair = _mm256_castpd256_pd128(half) + _mm256_extractf128_pd(half, 1);
    return pair[0] + pair[1];
#else
    return v[0] + v[1];
#endif
}

/* a b + c, rounded once where the instruction set can; elsewhere twice. What a compiler would fuse
 * in one copy of an inlined function and not in another is so the same in both. */
NG_INLINE double fused(double a, double b, double c)
{
#ifdef __FP_FAST_FMA
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* glibc has vector versions of these in libmvec; told so, gcc calls them from plain loops. They
 * are good to 4 ulp, so that only float uses them. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define NG_SIMD __attribute__((simd("notinbranch")))
NG_SIMD float expf(float);
NG_SIMD float logf(float);
NG_SIMD float sinf(float);
NG_SIMD float cosf(float);
NG_SIMD float powf(float, float);
#if __GLIBC_PREREQ(2, 35)
NG_SIMD float tanhf(float);
NG_SIMD float erff(float);
NG_SIMD float erfcf(float);
NG_SIMD float log1pf(float);
#endif
#endif

#endif
