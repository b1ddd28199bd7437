/* AVX2 with FMA.
 * lanes.h includes it, and says what each word means. */

#include <immintrin.h>

#define NG_VECTOR 32
#define NG_FUSES 1
#define GEMM_ROWS 6
#define NG_REGISTER "x"

typedef double wide __attribute__((vector_size(32)));
typedef float floats __attribute__((vector_size(32)));

NG_INLINE wide load_f32(const float *x) { return (wide)_mm256_cvtps_pd(_mm_loadu_ps(x)); }
NG_INLINE void store_f32(float *x, wide v) { _mm_storeu_ps(x, _mm256_cvtpd_ps((__m256d)v)); }

NG_INLINE wide low_half(floats v)
{
    return (wide)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
}
NG_INLINE wide high_half(floats v)
{
    return (wide)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}

NG_INLINE void stream_f32(float *x, wide v) { _mm_stream_ps(x, _mm256_cvtpd_ps((__m256d)v)); }
NG_INLINE void stream_vector(void *x, wide v) { _mm256_stream_pd(x, (__m256d)v); }
NG_INLINE void stream_end(void) { _mm_sfence(); }

NG_INLINE floats fused_floats(floats a, floats b, floats c)
{
    return (floats)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
NG_INLINE wide fused_wide(wide a, wide b, wide c)
{
    return (wide)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

NG_INLINE double wide_sum(wide v)
{
    const __m128d pair = _mm256_castpd256_pd128((__m256d)v) + _mm256_extractf128_pd((__m256d)v, 1);
    return pair[0] + pair[1];
}
