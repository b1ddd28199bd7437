/* The elementary functions in double. They use only +, -, *, / and shifts of bits, and never fuse a
 * product with a sum: so a result has the same bits in any place and on any processor, and the
 * compiler turns loops of them into vectors. NaN, infinities, signs of zeros and gradual underflow
 * are as in the C library. `make accuracy` measures the errors.
 *
 * elementary.c and each table of kernels include this file. Polynomials without a source are the
 * best ones, by Remez' algorithm, for the function and the interval that the comment names; their
 * relative errors are below 4e-17. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* `unused`: not every file that includes this one calls every function. */
#define NG_INLINE static inline __attribute__((always_inline, unused))

/* math.h's M_LOG2E and so on, which POSIX does not have. */
#define NG_LOG2E 1.4426950408889634074
#define NG_LN2 0.69314718055994530942
#define NG_PI_2 1.57079632679489661923
#define NG_PI_4 0.78539816339744830962
#define NG_2_PI 0.63661977236758134308
#define NG_2_SQRTPI 1.12837916709551257390
#define NG_SQRT1_2 0.70710678118654752440

/* c0 + c1 x + c2 x^2 + c3 x^3 + rest x^4 */
NG_INLINE double four_terms(double x, double c0, double c1, double c2, double c3, double rest)
{
    const double z = x * x;
    return (c0 + c1 * x) + z * ((c2 + c3 * x) + z * rest);
}

NG_INLINE uint64_t bits_of_f64(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

NG_INLINE double f64_of_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* All bits where a condition holds, for selections: compilers turn loops with these into vectors,
 * and do not compute what follows once for each case. With SSE2 gcc makes vectors of the first form
 * only. */
NG_INLINE uint64_t bits_where(bool condition)
{
#if defined(__SSE2__) && !defined(__SSE4_2__) && !defined(__clang__)
    return bits_of_f64(condition ? f64_of_bits(UINT64_MAX) : 0);
#else
    return -(uint64_t)condition;
#endif
}

NG_INLINE double select_f64(uint64_t where, double yes, double no)
{
    return f64_of_bits((bits_of_f64(yes) & where) | (bits_of_f64(no) & ~where));
}

/* x between two bounds; a NaN stays. */
NG_INLINE double between_f64(double x, double low, double high)
{
    return select_f64(bits_where(x < low), low, select_f64(bits_where(x > high), high, x));
}

/* Adding it rounds to a whole number, which then stands in the last bits. */
#define TO_INTEGER 0x1.8p52

/* 2^n for a whole n from -1022 to 1023, which stands in the last bits of `shifted`; 0 for -1023. */
NG_INLINE double power_of_two_f64(double shifted)
{
    return f64_of_bits((bits_of_f64(shifted) + 1023) << 52);
}

/* y 2^n with 2^n in two factors, neither of which overflows by itself. */
NG_INLINE double times_power_of_two(double y, double shifted)
{
    const double n = shifted - TO_INTEGER, half = n * 0.5 + TO_INTEGER;
    const uint64_t rest = bits_of_f64(shifted) - bits_of_f64(half);
    return y * power_of_two_f64(half) * f64_of_bits((rest + 1023) << 52);
}

/* ln 2 in two parts, the first with 32 bits, as in fdlibm. */
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

/* ---- e^x, tanh ----------------------------------------------------------------------------- */

/* (e^r - 1 - r) / r^2 for |r| <= ln 2 / 2. */
NG_INLINE double exp_polynomial(double r)
{
    double p = 2.763041864828245e-07 + 2.5001495375697165e-08 * r;
    p = four_terms(r, 0.0013888888944018258, 0.00019841269508793897, 2.4801492656844063e-05,
                   2.755758312118464e-06, p);
    return four_terms(r, 0.5000000000000011, 0.16666666666666413, 0.04166666666652885,
                      0.008333333333494092, p);
}

/* y, or `least` for x below `low`, or Inf for x above `high`. A selection of the result, unlike one
 * of x, delays nothing. */
NG_INLINE double or_end(double x, double low, double least, double high, double y)
{
    const double above = select_f64(bits_where(x > high), (double)INFINITY, y);
    return select_f64(bits_where(x < low), least, above);
}

/* x + tail = n ln 2 + r: e^r - 1, and n in the last bits of *shifted. */
NG_INLINE double expm1_reduced_f64(double x, double tail, double *shifted)
{
    *shifted = x * NG_LOG2E + TO_INTEGER;
    const double n = *shifted - TO_INTEGER, r = (x - n * LN2_HIGH) - (n * LN2_LOW - tail);
    return r + r * r * exp_polynomial(r);
}

/* c e^(x + tail) for x from -760 to 710 and a small tail, where c is not rounded to the places of a
 * small e^x, and *power = e^(x + tail). */
NG_INLINE double exp_sum_times(double x, double tail, double c, double *power)
{
    double shifted;
    const double e = 1 + expm1_reduced_f64(x, tail, &shifted);
    *power = times_power_of_two(e, shifted);
    return times_power_of_two(c * e, shifted);
}

NG_INLINE double exp_times_f64(double x, double c, double *power)
{
    return exp_sum_times(x, 0, c, power);
}

/* e^(x + tail) */
NG_INLINE double exp_sum_f64(double x, double tail)
{
    double power;
    exp_sum_times(x, tail, 1, &power);
    return or_end(x, -760, 0, 710, power);
}

NG_INLINE double exp_f64(double x) { return exp_sum_f64(x, 0); }

/* e^x for all x <= 709; 0 where it is less than any normal number. */
NG_INLINE double exp_low_f64(double x)
{
    double shifted;
    const double e = 1 + expm1_reduced_f64(x < -709 ? -709 : x, 0, &shifted);
    return e * power_of_two_f64(shifted);
}

/* e^x - 1 = 2^n (e^r - 1) + 2^n - 1 */
NG_INLINE double expm1_f64(double x)
{
    double shifted;
    const double p = expm1_reduced_f64(x, 0, &shifted), n = shifted - TO_INTEGER;
    const double half = n * 0.5 + TO_INTEGER, rest = n - (half - TO_INTEGER);
    const double power = power_of_two_f64(half), less = power - power_of_two_f64(TO_INTEGER - rest);
    const double y = (p * power + less) * power_of_two_f64(TO_INTEGER + rest);
    return copysign(or_end(x, -80, 1, 710, y), x);
}

/* tanh x = e / (e + 2), e = e^2x - 1. It is 1 from 22 on. */
NG_INLINE double tanh_f64(double x)
{
    double shifted;
    const double a = fabs(x), p = expm1_reduced_f64(2 * (a > 22 ? 22 : a), 0, &shifted);
    const double power = power_of_two_f64(shifted), e = p * power + (power - 1);
    return copysign(e / (e + 2), x);
}

/* ---- ln x ---------------------------------------------------------------------------------- */

/* ln(x + tail) - scale ln 2 for a positive, normal and finite x. x = 2^k m, m from sqrt(1/2) to
 * sqrt 2, and ln m as in fdlibm's log:
 *     f = m - 1, s = f / (2 + f), ln(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + P(s^2))) */
NG_INLINE double log_sum_f64(double x, double tail, double scale)
{
    const uint64_t root = 0x3fe6a09e667f3bcd, one = 0x3ff0000000000000; /* sqrt(1/2) and 1 */
    const uint64_t shifted = bits_of_f64(x) - root + one, biased = shifted >> 52;
    const double k = f64_of_bits(biased | bits_of_f64(0x1p52)) - (0x1p52 + 1023) - scale;
    const double m = f64_of_bits((shifted & (((uint64_t)1 << 52) - 1)) + root);
    const uint64_t inverse = biased < 2046 ? 2046 - biased : 0; /* of 2^k, or 0 at the end */
    const double f = (m - 1) + tail * f64_of_bits(inverse << 52);
    const double s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    double p =
        1.818357216161805012e-01 + z * (1.531383769920937332e-01 + z * 1.479819860511658591e-01);
    p = four_terms(z, 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                   2.222219843214978396e-01, p);
    return k * LN2_HIGH - ((half - (s * (half + z * p) + k * LN2_LOW)) - f);
}

/* y, or the logarithm of an x that is 0, Inf, NaN or negative. */
NG_INLINE double log_or_edge_f64(double x, double y)
{
    const double edge = x == 0 ? -(double)INFINITY : x < 0 ? (double)NAN : x;
    return x > 0 && x < (double)INFINITY ? y : edge;
}

NG_INLINE double log_f64(double x)
{
    const bool subnormal = x < 0x1p-1022;
    const double y = log_sum_f64(subnormal ? x * 0x1p54 : x, 0, subnormal ? 54 : 0);
    return log_or_edge_f64(x, y);
}

/* ln x of a positive, normal and finite number. */
NG_INLINE double log_ordinary_f64(double x) { return log_sum_f64(x, 0, 0); }

/* ln(1 + x); `lost` is what rounding took from 1 + x. */
NG_INLINE double log1p_f64(double x)
{
    const double sum = 1 + x, one = sum - x, lost = (1 - one) + (x - (sum - one));
    return copysign(log_or_edge_f64(sum, log_sum_f64(sum, lost, 0)), x);
}

/* ---- sin x, cos x -------------------------------------------------------------------------- */

/* The sine of r and as many right angles as the last bits of `turn` say, for |r| <= pi/4. The
 * polynomials are fdlibm's. */
NG_INLINE double sine_of_rest(double r, uint64_t turn)
{
    const double z = r * r;
    double p = -2.50507602534068634195e-08 + z * 1.58969099521155010221e-10;
    p = four_terms(z, -1.66666666666666324348e-01, 8.33333333332248946124e-03,
                   -1.98412698298579493134e-04, 2.75573137070700676789e-06, p);
    double q = 2.08757232129817482790e-09 - z * 1.13596475577881948265e-11;
    q = four_terms(z, 4.16666666666666019037e-02, -1.38888888888741095749e-03,
                   2.48015872894767294178e-05, -2.75573143513906633035e-07, q);
    const double half = 0.5 * z, one = 1 - half;
    const double sine = r + r * (z * p), cosine = one + (((1 - one) - half) + z * z * q);
    return f64_of_bits(bits_of_f64(turn & 1 ? cosine : sine) ^ (turn & 2) << 62);
}

/* The sine of x and `quarters` right angles for |x| <= SINE_END; beyond it callers use
 * ng_sine_of_large. x = n pi/2 + r, with pi/2 in three parts of 33 bits, whose products with n are
 * exact, and a rest. */
#define SINE_END 0x1p20
NG_INLINE double sine_f64(double x, uint64_t quarters)
{
    const double shifted = x * NG_2_PI + TO_INTEGER, n = shifted - TO_INTEGER;
    const double a = x - n * 1.57079632673412561417e+00, second = n * 6.07710050630396597660e-11;
    const double b = a - second, third = n * 2.02226624871116645580e-21, c = b - third;
    const double lost = ((a - b) - second) + ((b - c) - third);
    const double r = c + (lost - n * 8.47842766036889956997e-32);
    return sine_of_rest(r, bits_of_f64(shifted) + quarters);
}

NG_INLINE double sin_f64(double x)
{
    const double y = sine_f64(x, 0);
    return x == 0 ? x : y;
}

NG_INLINE double cos_f64(double x) { return sine_f64(x, 1); }

/* ---- arctan x ------------------------------------------------------------------------------ */

/* arctan a = arctan c + arctan((a - c) / (1 + a c)) with c = 0, 1 or Inf; the polynomial is that of
 * (arctan t - t) / t^3 for |t| <= tan(pi/8). */
NG_INLINE double atan_f64(double x)
{
    const double a = fabs(x);
    const bool middle = a > 0.41421356237309503, far = a > 2.414213562373095;
    const double t = (far ? -1 : middle ? a - 1 : a) / (far ? a : middle ? a + 1 : 1), z = t * t;
    double p = -0.050393628761844095 + z * (0.038066212164082194 - z * 0.017909210977741315);
    p = four_terms(z, -0.090908977637384455, 0.076920603258406994, -0.066631054465253763,
                   0.058479007708392404, p);
    p = four_terms(z, -0.33333333333333198, 0.19999999999953696, -0.14285714280203005,
                   0.11111110783693184, p);
    const double high = far ? NG_PI_2 : middle ? NG_PI_4 : 0;
    const double low = far ? 6.123233995736766e-17 : middle ? 3.061616997868383e-17 : 0;
    return copysign(high + (low + (t + t * (z * p))), x);
}

/* ---- The normal distribution --------------------------------------------------------------- */

/* erf x for |x| < ERF_NEAR, by the polynomial of erf(x) / x - 1 in x^2. */
#define ERF_NEAR 0.7
NG_INLINE double erf_near(double x)
{
    const double z = x * x;
    double p = 1.6136273308568402e-06 - 1.3121579316394928e-07 * z;
    p = four_terms(z, 0.005223977444842234, -0.0008548313271955489, 0.00012054693540015303,
                   -1.4907161218029832e-05, p);
    p = four_terms(z, 0.12837916709551256, -0.37612638903182966, 0.11283791670902557,
                   -0.02686617063147411, p);
    return x + x * p;
}

/* e^(-scale a^2) without the error of rounding a^2, for a power of two as scale. */
NG_INLINE double bell_f64(double a, double scale)
{
    const double high = f64_of_bits(bits_of_f64(a) >> 27 << 27); /* whose square is exact */
    return exp_sum_f64(-scale * high * high, scale * (high - a) * (high + a));
}

/* e^(a^2) erfc a for ERF_NEAR <= a <= ERFC_END, from which on erfc is 0:
 *     q P(u) with q = 1 / (a + 3), u = (a - 3) q,
 * the form of Shepherd and Laframboise (Mathematics of Computation 36, 1981). */
#define ERFC_END 28
NG_INLINE double erfc_by_bell(double a)
{
    const double q = 1 / (a + 3), u = (a - 3) * q;
    double p = four_terms(u, -4.4081233935038164e-07, -1.8137141890259074e-07,
                          6.284910809366737e-08, 1.1514057659906369e-08, 0);
    p = four_terms(u, -1.7480850871668623e-05, -4.738207560747275e-06, 2.7906067575590382e-06,
                   9.663399095313336e-07, p);
    p = four_terms(u, -0.0005483100297091715, -0.00027677764188707027, 0.00010756392006322609,
                   3.0396082900334528e-05, p);
    p = four_terms(u, 0.11952776128625682, -0.02682723462470116, -0.0012124166008204208,
                   0.0030340619938419803, p);
    p = four_terms(u, 1.0740069070883396, -0.8833944531698839, 0.5902283571041175,
                   -0.31046726190054874, p);
    return q * p;
}

NG_INLINE double erf_f64(double x)
{
    const double a = fabs(x), near = erf_near(a), far = 1 - bell_f64(a, 1) * erfc_by_bell(a);
    return copysign(a < ERF_NEAR ? near : a > ERFC_END ? 1 : far, x);
}

NG_INLINE double erfc_f64(double x)
{
    const double a = fabs(x), near = 1 - erf_near(x), tail = bell_f64(a, 1) * erfc_by_bell(a);
    const double far = a > ERFC_END ? 0 : tail;
    return a < ERF_NEAR ? near : x > 0 ? far : 2 - far;
}

/* The normal distribution at a = |x|, or 40 if that is less: its density times sqrt(2 pi), and what
 * makes of that the probability of numbers above a. */
typedef struct {
    double a, bell, above_by_bell;
} normal_f64;

NG_INLINE normal_f64 normal_at_f64(double x)
{
    const double a = between_f64(fabs(x), 0, 40), root = a * NG_SQRT1_2, bell = bell_f64(a, 0.5);
    const double near = (0.5 - 0.5 * erf_near(root)) / bell, far = 0.5 * erfc_by_bell(root);
    return (normal_f64){a, bell, select_f64(bits_where(root < ERF_NEAR), near, far)};
}

/* As in float. a comes first, so that no factor is less than the smallest normal number. */
NG_INLINE double gelu_f64(double x)
{
    const normal_f64 normal = normal_at_f64(x);
    return (x < 0 ? -0. : x) - normal.a * normal.above_by_bell * normal.bell;
}

NG_INLINE double gelu_slope_f64(double x)
{
    const normal_f64 normal = normal_at_f64(x);
    const double a_phi = normal.a * (0.5 * NG_2_SQRTPI * NG_SQRT1_2);
    const double left = normal.bell * (normal.above_by_bell - a_phi);
    return x > 0 ? 1 - left : left;
}

/* ---- x^y ----------------------------------------------------------------------------------- */

/* The first 21 bits of x, of which products are exact. */
NG_INLINE double first_bits_f64(double x) { return f64_of_bits(bits_of_f64(x) >> 32 << 32); }

/* Where x, at least 0, is a whole number. */
NG_INLINE uint64_t where_whole(double x)
{
    return bits_where(x >= 0x1p52) | bits_where((x + 0x1p52) - 0x1p52 == x);
}

/* x^y of any x, if `power` is |x|^y for |x| from the smallest number to the largest. */
NG_INLINE double power_with_edges(double x, double y, double power)
{
    const double a = fabs(x), size = fabs(y), infinity = (double)INFINITY;
    const uint64_t zero = bits_where(a == 0), infinite = bits_where(a == infinity);
    const uint64_t grows = bits_where(y > 0), whole = where_whole(size);
    const uint64_t end = ((zero & ~grows) | (infinite & grows)) & bits_of_f64(infinity);
    power = select_f64(zero | infinite, f64_of_bits(end), power);
    power = select_f64(bits_where(y == 0) | bits_where(a == 1), 1, power);
    const uint64_t negative = bits_where(x < 0), odd = whole & ~where_whole(0.5 * size);
    const uint64_t no_number = (bits_where(x != x) & ~bits_where(y == 0)) |
                               (bits_where(y != y) & ~bits_where(x == 1)) |
                               (negative & ~infinite & ~whole);
    const uint64_t sign = bits_of_f64(x) & odd & ((uint64_t)1 << 63);
    return f64_of_bits(bits_of_f64(select_f64(no_number, (double)NAN, power)) | sign);
}

/* a^y 2^(scale y) for a positive, normal and finite a. As in fdlibm, log2 a = high + low with 21
 * bits in high; a = 2^k m, s = (m - c) / (m + c) with c = 1 or 1.5:
 *     ln(m / c) = 2 s + 2/3 s^3 + s^5 P(s^2)
 * Then y log2 a = n + r in two parts, and 2^r. */
NG_INLINE double pow_scaled_f64(double a, double scale, double y)
{
    const uint64_t least = 0x3febb67ae8584caa, one = 0x3ff0000000000000; /* sqrt(3)/2 and 1 */
    const uint64_t shifted = bits_of_f64(a) - least + one;
    const double k = f64_of_bits(shifted >> 52 | bits_of_f64(0x1p52)) - (0x1p52 + 1023) + scale;
    const double m = f64_of_bits((shifted & (((uint64_t)1 << 52) - 1)) + least);
    const bool upper = m > 1.224744871391589;
    const double c = upper ? 1.5 : 1;

    const double difference = m - c, inverse = 1 / (m + c), s = difference * inverse;
    const double s1 = first_bits_f64(s), sum1 = first_bits_f64(m + c), sum2 = m - (sum1 - c);
    const double s2 = inverse * ((difference - s1 * sum1) - s1 * sum2), z = s * s;
    double p = 2.30660745775561754067e-01 + z * 2.06975017800338417784e-01;
    p = four_terms(z, 5.99999999999994648725e-01, 4.28571428578550184252e-01,
                   3.33333329818377432918e-01, 2.72728123808534006489e-01, p);
    const double rest = z * z * p + s2 * (s1 + s), square = s1 * s1;
    const double t1 = first_bits_f64(3 + square + rest), t2 = rest - ((t1 - 3) - square);
    const double u = s1 * t1, v = s2 * t1 + t2 * s;
    const double q1 = first_bits_f64(u + v), q2 = v - (q1 - u); /* 3/2 ln(m / c) */
    const double cp1 = 9.61796700954437255859e-01,
                 cp2 = -7.02846165095275826516e-09; /* 2/3 / ln 2 */
    const double z1 = cp1 * q1, z2 = cp2 * q1 + q2 * 9.61796693925975554329e-01 +
                                     (upper ? 1.35003920212974897128e-08 : 0);
    const double of_c = upper ? 5.84962487220764160156e-01 : 0;
    const double high = first_bits_f64(((z1 + z2) + of_c) + k),
                 low = z2 - (((high - k) - of_c) - z1);

    const double bounded = between_f64(y, -0x1p70, 0x1p70), y1 = first_bits_f64(bounded);
    double e1 = y1 * high, e2 = (bounded - y1) * high + bounded * low;
    const bool far = fabs(e1) > 1100;
    e1 = between_f64(e1, -1100, 1100), e2 = far ? 0 : e2;
    const double nearest = (e1 + e2) + TO_INTEGER, n = nearest - TO_INTEGER;
    const double t = first_bits_f64(e2 + (e1 - n));
    const double r1 = t * 6.93147182464599609375e-01;
    const double r2 = (e2 - (t - (e1 - n))) * NG_LN2 + t * -1.90465429995776804525e-09;
    const double r = r1 + r2, lost = r2 - (r - r1);
    const double e = 1 + (r + (r * r * exp_polynomial(r) + (lost + r * lost)));
    return times_power_of_two(e, nearest);
}

/* x^y of a positive, normal and finite x and a finite y. */
NG_INLINE double pow_ordinary_f64(double x, double y) { return pow_scaled_f64(x, 0, y); }

NG_INLINE double pow_f64(double x, double y)
{
    const double a = fabs(x);
    const bool subnormal = a < 0x1p-1022;
    const double power = pow_scaled_f64(subnormal ? a * 0x1p54 : a, subnormal ? -54 : 0, y);
    return power_with_edges(x, y, power);
}
