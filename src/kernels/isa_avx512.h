/* AVX-512 (F, VL, DQ, BW) with FMA.
 * lanes.h includes it, and says what each word means. */

#include <immintrin.h>

#define NG_VECTOR 64
#define NG_FUSES 1
#define GEMM_ROWS 12
#define NG_REGISTER "v"

typedef double wide __attribute__((vector_size(64)));
typedef float floats __attribute__((vector_size(64)));

NG_INLINE wide load_f32(const float *x) { return (wide)_mm512_cvtps_pd(_mm256_loadu_ps(x)); }
NG_INLINE void store_f32(float *x, wide v) { _mm256_storeu_ps(x, _mm512_cvtpd_ps((__m512d)v)); }

NG_INLINE wide low_half(floats v)
{
    return (wide)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
}
NG_INLINE wide high_half(floats v)
{
    return (wide)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
}

NG_INLINE void stream_f32(float *x, wide v) { _mm256_stream_ps(x, _mm512_cvtpd_ps((__m512d)v)); }
NG_INLINE void stream_vector(void *x, wide v) { _mm512_stream_pd(x, (__m512d)v); }
NG_INLINE void stream_end(void) { _mm_sfence(); }

NG_INLINE floats fused_floats(floats a, floats b, floats c)
{
    return (floats)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
NG_INLINE wide fused_wide(wide a, wide b, wide c)
{
    return (wide)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
}

NG_INLINE double wide_sum(wide v)
{
    const __m256d half = _mm512_castpd512_pd256((__m512d)v) + _mm512_extractf64x4_pd((__m512d)v, 1);
    const __m128d pair = _mm256_castpd256_pd128(half) + _mm256_extractf128_pd(half, 1);
    return pair[0] + pair[1];
}
