/* AVX-512 (F, VL, DQ, BW) with FMA.
 * lanes.h includes it, and explains each name. */

#include <immintrin.h>

#define NG_VECTOR 64
#define NG_FUSES 1
#define NG_GEMM_TILE 12
#define NG_REGISTER "v"

typedef double f64vec __attribute__((vector_size(64)));
typedef float f32vec __attribute__((vector_size(64)));

NG_INLINE f64vec load_f32(const float *x) { return (f64vec)_mm512_cvtps_pd(_mm256_loadu_ps(x)); }
NG_INLINE void store_f32(float *x, f64vec v) { _mm256_storeu_ps(x, _mm512_cvtpd_ps((__m512d)v)); }

NG_INLINE f64vec low_half(f32vec v)
{
    return (f64vec)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
}
NG_INLINE f64vec high_half(f32vec v)
{
    return (f64vec)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
}

#define NG_MASKS 1
NG_INLINE f32vec load_some_f32(const float *x, int64_t count, float rest)
{
    return (f32vec)_mm512_mask_loadu_ps(_mm512_set1_ps(rest), (__mmask16)((1u << count) - 1), x);
}
NG_INLINE f64vec load_some_f64(const double *x, int64_t count, double rest)
{
    return (f64vec)_mm512_mask_loadu_pd(_mm512_set1_pd(rest), (__mmask8)((1u << count) - 1), x);
}
NG_INLINE void store_some_f32(float *x, f32vec v, int64_t count)
{
    _mm512_mask_storeu_ps(x, (__mmask16)((1u << count) - 1), (__m512)v);
}
NG_INLINE void store_some_f64(double *x, f64vec v, int64_t count)
{
    _mm512_mask_storeu_pd(x, (__mmask8)((1u << count) - 1), (__m512d)v);
}

NG_INLINE void stream_vector(void *x, f64vec v) { _mm512_stream_pd(x, (__m512d)v); }
NG_INLINE void stream_end(void) { _mm_sfence(); }

NG_INLINE f32vec fused_f32vec(f32vec a, f32vec b, f32vec c)
{
    return (f32vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
NG_INLINE f64vec fused_f64vec(f64vec a, f64vec b, f64vec c)
{
    return (f64vec)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}

NG_INLINE double sum_f64vec(f64vec v)
{
    const __m256d half = _mm512_castpd512_pd256((__m512d)v) + _mm512_extractf64x4_pd((__m512d)v, 1);
    const __m128d pair = _mm256_castpd256_pd128(half) + _mm256_extractf128_pd(half, 1);
    return pair[0] + pair[1];
}
