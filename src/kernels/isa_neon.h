/* NEON of 64-bit ARM, which has 32 registers and no stores past the caches.
 * lanes.h includes it, and explains each name. */

#include <arm_neon.h>

#define NG_VECTOR 16
#define NG_FUSES 1
#define NG_GEMM_TILE 12
#define NG_REGISTER "w"

typedef double f64vec __attribute__((vector_size(16)));
typedef float f32vec __attribute__((vector_size(16)));

NG_INLINE f64vec load_f32(const float *x) { return (f64vec)vcvt_f64_f32(vld1_f32(x)); }
NG_INLINE void store_f32(float *x, f64vec v) { vst1_f32(x, vcvt_f32_f64((float64x2_t)v)); }

NG_INLINE f64vec low_half(f32vec v) { return (f64vec)vcvt_f64_f32(vget_low_f32((float32x4_t)v)); }
NG_INLINE f64vec high_half(f32vec v) { return (f64vec)vcvt_high_f64_f32((float32x4_t)v); }

NG_INLINE void stream_vector(void *x, f64vec v) { memcpy(x, &v, sizeof v); }
NG_INLINE void stream_end(void) {}

NG_INLINE f32vec fused_f32vec(f32vec a, f32vec b, f32vec c)
{
    return (f32vec)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
NG_INLINE f64vec fused_f64vec(f64vec a, f64vec b, f64vec c)
{
    return (f64vec)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}

NG_INLINE double sum_f64vec(f64vec v) { return v[0] + v[1]; }
