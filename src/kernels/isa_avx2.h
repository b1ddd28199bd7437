/* AVX2 with FMA.
 * lanes.h includes it, and explains each name. */

#include <immintrin.h>

#define NG_VECTOR 32
#define NG_FUSES 1
#define NG_GEMM_TILE 6
#define NG_REGISTER "x"

typedef double f64vec __attribute__((vector_size(32)));
typedef float f32vec __attribute__((vector_size(32)));

NG_INLINE f64vec load_f32(const float *x) { return (f64vec)_mm256_cvtps_pd(_mm_loadu_ps(x)); }
NG_INLINE void store_f32(float *x, f64vec v) { _mm_storeu_ps(x, _mm256_cvtpd_ps((__m256d)v)); }

NG_INLINE f64vec low_half(f32vec v)
{
    return (f64vec)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
}
NG_INLINE f64vec high_half(f32vec v)
{
    return (f64vec)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
}

#define NG_MASKS 1
NG_INLINE __m256i mask_f32(int64_t count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
NG_INLINE __m256i mask_f64(int64_t count)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
NG_INLINE f32vec load_some_f32(const float *x, int64_t count, float rest)
{
    const __m256i mask = mask_f32(count);
    return (f32vec)_mm256_blendv_ps(_mm256_set1_ps(rest), _mm256_maskload_ps(x, mask),
                                    (__m256)mask);
}
NG_INLINE f64vec load_some_f64(const double *x, int64_t count, double rest)
{
    const __m256i mask = mask_f64(count);
    return (f64vec)_mm256_blendv_pd(_mm256_set1_pd(rest), _mm256_maskload_pd(x, mask),
                                    (__m256d)mask);
}
NG_INLINE void store_some_f32(float *x, f32vec v, int64_t count)
{
    _mm256_maskstore_ps(x, mask_f32(count), (__m256)v);
}
NG_INLINE void store_some_f64(double *x, f64vec v, int64_t count)
{
    _mm256_maskstore_pd(x, mask_f64(count), (__m256d)v);
}

NG_INLINE void stream_vector(void *x, f64vec v) { _mm256_stream_pd(x, (__m256d)v); }
NG_INLINE void stream_end(void) { _mm_sfence(); }

NG_INLINE f32vec fused_f32vec(f32vec a, f32vec b, f32vec c)
{
    return (f32vec)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
NG_INLINE f64vec fused_f64vec(f64vec a, f64vec b, f64vec c)
{
    return (f64vec)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
}

NG_INLINE double sum_f64vec(f64vec v)
{
    const __m128d pair = _mm256_castpd256_pd128((__m256d)v) + _mm256_extractf128_pd((__m256d)v, 1);
    return pair[0] + pair[1];
}
