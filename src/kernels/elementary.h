/* e^x, e^x - 1, tanh and gelu of one float, in plain arithmetic, which the compiler turns into
 * vectors of any width without a call. */
#include "kernels/elementary_f64.h"

/* What an element costs, in additions: COSTLY is some arithmetic or a call of libmvec; CALLED is a
 * call of libm in double. */
#define CHEAP 1
#define COSTLY (sizeof(REAL) == sizeof(float) ? 4 : 8)
#define CALLED (sizeof(REAL) == sizeof(float) ? 4 : 32)

/* x = n ln 2 + r: e^r - 1, and n as the last bits of `shifted`, for |x| <= 150. ln 2 is cut in two
 * as in Moshier's Cephes library; the polynomial is the best of degree 6 that begins with 1 + r,
 * whose error relative to e^r is 3.2e-9. */
NG_INLINE float expm1_reduced(float x, float tail, float *shifted)
{
    const float to_integer = 0x1.8p23f; /* adding it leaves a whole number in the last bits */
    *shifted = fused_f32(x, (float)M_LOG2E, to_integer);
    const float n = *shifted - to_integer;
    const float r = fused_f32(n, -0.693359375f, x) + fused_f32(n, 2.12194440e-4f, tail);
    float p = 1.38142177e-3f;
    p = fused_f32(p, r, 8.36889858e-3f);
    p = fused_f32(p, r, 4.16684058e-2f);
    p = fused_f32(p, r, 1.66665191e-1f);
    p = fused_f32(p, r, 4.99999933e-1f);
    return fused_f32(p, r * r, r);
}

/* e^r, within 2 ulp. */
NG_INLINE float exp_reduced(float x, float tail, float *shifted)
{
    return expm1_reduced(x, tail, shifted) + 1;
}

NG_INLINE float power_of_two(int32_t n)
{
    const uint32_t bits = (uint32_t)(n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

NG_INLINE int32_t last_bits(float shifted)
{
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    return bits - 0x4b400000;
}

/* e^x; NaN, Inf, overflow and gradual underflow as expf has them. 2^n comes in two factors,
 * neither of which overflows by itself. */
NG_INLINE float exp_f32(float x)
{
    float shifted;
    const float low = x < -150 ? -150 : x;
    const float e = exp_reduced(low > 150 ? 150 : low, 0, &shifted);
    const int32_t n = last_bits(shifted), half = n >> 1;
    return e * power_of_two(half) * power_of_two(n - half);
}

/* e^x - 1 = 2^n (e^r - 1) + 2^n - 1, within 2 ulp; -0, numbers below the normal ones, NaN, Inf and
 * overflow as expm1f has them. 2^n comes in two factors as above. */
NG_INLINE float expm1_f32(float x)
{
    float shifted;
    const float low = x < -80 ? -80 : x;
    const float p = expm1_reduced(low > 150 ? 150 : low, 0, &shifted);
    const int32_t n = last_bits(shifted), half = n >> 1, rest = n - half;
    const float power = power_of_two(half), less = power - power_of_two(-rest);
    return copysignf(fused_f32(p, power, less) * power_of_two(rest), x);
}

/* e^(x + tail) for x from -88 to 88 and a tail below the last place of x; 0 where it is less than
 * any normal number (n = -127). */
NG_INLINE float exp_between(float x, float tail)
{
    float shifted;
    const float e = exp_reduced(x, tail, &shifted);
    return e * power_of_two(last_bits(shifted));
}

/* e^x for all x <= 88. */
NG_INLINE float exp_low_f32(float x) { return exp_between(x < -88 ? -88 : x, 0); }

/* tanh x, within 2 ulp: a polynomial near 0, as in Cephes' tanhf, 1 - 2 / (e^2x + 1) elsewhere. */
NG_INLINE float tanh_f32(float x)
{
    const float far = fabsf(x), a = far > 20 ? 20 : far, z = a * a;
    float p = -5.70498872745e-3f;
    p = fused_f32(p, z, 2.06390887954e-2f);
    p = fused_f32(p, z, -5.37397155531e-2f);
    p = fused_f32(p, z, 1.33314422036e-1f);
    p = fused_f32(p, z, -3.33332819422e-1f);
    const float near = fused_f32(p * z, a, a), rest = 1 - 2 / (exp_between(2 * a, 0) + 1);
    return copysignf(a < 0.625f ? near : rest, x);
}

/* The normal distribution at x: its density times sqrt(2 pi), and the probability below x, which
 * keeps its digits in the left tail. x (also NaN) is clamped to where both are constant. */
typedef struct {
    float x, bell, below;
} normal_f32;

/* a * b minus `product`, its rounded value. */
NG_INLINE float left_over(float a, float b, float product)
{
    if (NG_FUSES) return __builtin_fmaf(a, b, -product);
    const float split = 4097, a1 = a * split - (a * split - a), b1 = b * split - (b * split - b);
    const float a2 = a - a1, b2 = b - b1; /* Dekker's product */
    return ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2;
}

/* The smaller of |x| and limit; limit for a NaN. Positive floats have the order of their bits as
 * integers, and the minimum of two integers is one instruction that ignores NaN. */
NG_INLINE float magnitude_up_to(float x, float limit)
{
    int32_t bits, most;
    memcpy(&bits, &x, sizeof bits);
    memcpy(&most, &limit, sizeof most);
    bits &= INT32_MAX;
    bits = bits < most ? bits : most;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Beyond NORMAL_END the density is no normal number. Below -|x| lies
 *     e^(-x^2/2) q P(u) with q = 1 / (|x| + K), u = (|x| - K) q, K = 3,
 * the form of Shepherd and Laframboise (Mathematics of Computation 36, 1981), whose P is here the
 * best of degree 8 for |x| <= 14.6, by Remez' algorithm: its relative error is 5.3e-8. */
#define NORMAL_END 13.25f
NG_INLINE normal_f32 normal_at_f32(float x)
{
    const float a = magnitude_up_to(x, NORMAL_END);
    const float q = 1 / (a + 3), u = (a - 3) * q;
    float p = -2.62245394e-4f;
    p = fused_f32(p, u, -8.96687850e-4f);
    p = fused_f32(p, u, 1.07444736e-3f);
    p = fused_f32(p, u, 6.91923242e-3f);
    p = fused_f32(p, u, -1.04801116e-2f);
    p = fused_f32(p, u, -4.72551211e-2f);
    p = fused_f32(p, u, 2.30019407e-1f);
    p = fused_f32(p, u, -5.09332337e-1f);
    p = fused_f32(p, u, 7.29083668e-1f);

    const float half = a * -0.5f, exponent = a * half;
    const float bell = exp_between(exponent, left_over(a, half, exponent));
    const float beyond = bell * (p * q);
    return (normal_f32){copysignf(a, x), bell, x > 0 ? 1 - beyond : beyond};
}

/* x Phi(x) and its slope Phi(x) + x phi(x). At -Inf they are the limit, because the formulas would
 * multiply Inf by 0. */
NG_INLINE float gelu_f32(float x)
{
    return (x < -NORMAL_END ? -NORMAL_END : x) * normal_at_f32(x).below;
}

NG_INLINE float gelu_slope_f32(float x)
{
    const normal_f32 normal = normal_at_f32(x);
    const float x_phi = normal.x * (float)(0.5 * M_2_SQRTPI * M_SQRT1_2) * normal.bell;
    return x != x ? x : normal.below + x_phi;
}

/* Of REAL. */
#define exp_at OF_REAL(exp_f32, exp_f64)
#define expm1_at OF_REAL(expm1_f32, expm1_f64)
#define exp_low OF_REAL(exp_low_f32, exp_low_f64)
#define tanh_at OF_REAL(tanh_f32, tanh_f64)
#define log_at OF_REAL(logf, log_f64)
#define log1p_at OF_REAL(log1pf, log1p_f64)
#define sin_at OF_REAL(sinf, sin_f64)
#define cos_at OF_REAL(cosf, cos_f64)
#define erf_at OF_REAL(erff, erf_f64)
#define erfc_at OF_REAL(erfcf, erfc_f64)
#define gelu_at OF_REAL(gelu_f32, gelu_f64)
#define gelu_slope OF_REAL(gelu_slope_f32, gelu_slope_f64)
