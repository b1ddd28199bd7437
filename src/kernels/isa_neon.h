/* NEON of 64-bit ARM, which has 32 registers and no stores past the caches.
 * lanes.h includes it, and says what each word means. */

#include <arm_neon.h>

#define NG_VECTOR 16
#define NG_FUSES 1
#define GEMM_ROWS 12
#define NG_REGISTER "w"

typedef double wide __attribute__((vector_size(16)));
typedef float floats __attribute__((vector_size(16)));

NG_INLINE wide load_f32(const float *x) { return (wide)vcvt_f64_f32(vld1_f32(x)); }
NG_INLINE void store_f32(float *x, wide v) { vst1_f32(x, vcvt_f32_f64((float64x2_t)v)); }

NG_INLINE wide low_half(floats v) { return (wide)vcvt_f64_f32(vget_low_f32((float32x4_t)v)); }
NG_INLINE wide high_half(floats v) { return (wide)vcvt_high_f64_f32((float32x4_t)v); }

NG_INLINE void stream_f32(float *x, wide v) { store_f32(x, v); }
NG_INLINE void stream_vector(void *x, wide v) { memcpy(x, &v, sizeof v); }
NG_INLINE void stream_end(void) {}

NG_INLINE floats fused_floats(floats a, floats b, floats c)
{
    return (floats)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}
NG_INLINE wide fused_wide(wide a, wide b, wide c)
{
    return (wide)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
}

NG_INLINE double wide_sum(wide v) { return v[0] + v[1]; }
