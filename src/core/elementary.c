/* Elementary functions of one double, by the formulas of elementary.h; sines of large numbers. */
#include "core/elementary.h"
#include "core/functions.h"

/* 64 bits of zeros, then the bits of 2/pi behind the point. */
static const uint32_t two_by_pi[] = {
    0x00000000, 0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041,
    0xfe5163ab, 0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
    0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b,
    0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d,
    0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab};

/* The sine of x and `quarters` right angles. x 2/pi is computed modulo 4 in 224 bits, by the seven
 * words of 2/pi that contribute to them (Payne and Hanek 1983). |x| >= 2^-10. */
static double sine_of_large(double x, uint64_t quarters)
{
    enum { WORDS = 7 };
    if (!(fabs(x) < (double)INFINITY)) return (double)NAN;
    const uint64_t bits = bits_of_f64(fabs(x)), one = (uint64_t)1 << 52;
    const uint64_t mantissa = (bits & (one - 1)) | one, low = mantissa & UINT32_MAX;
    const int exponent = (int)(bits >> 52) - 1075; /* |x| = mantissa 2^exponent */
    const int first = (exponent + 62) / 32, shift = exponent + 62 - 32 * first;

    uint32_t product[WORDS];
    uint64_t carry = 0;
    for (int i = WORDS - 1; i >= 0; i--, carry >>= 32)
        product[i] = (uint32_t)(carry += low * two_by_pi[first + i]);
    carry = 0;
    for (int i = WORDS - 2; i >= 0; i--, carry >>= 32)
        product[i] = (uint32_t)(carry += product[i] + (mantissa >> 32) * two_by_pi[first + i + 1]);

    uint64_t part[3]; /* x 2/pi modulo 4: two bits, then the fraction */
    for (int i = 0; i < 3; i++) {
        const uint32_t *p = product + 2 * i;
        part[i] = ((uint64_t)p[0] << 32 | p[1]) << shift | ((uint64_t)p[2] << shift) >> 32;
    }
    const uint64_t half = (uint64_t)1 << 61, turn = (part[0] + half) >> 62;
    const bool below = part[0] & half; /* the fraction is nearer to the next quarter */
    uint64_t fraction = part[0] << 2 | part[1] >> 62, after = part[1] << 2 | part[2] >> 62;
    if (below) fraction = ~fraction, after = ~after;
    const int zeros = __builtin_clzll(fraction | 1);
    if (zeros > 0) fraction = fraction << zeros | after >> (64 - zeros);

    /* pi/2 in two parts, of which the first has 26 bits. */
    const double head = (double)(fraction >> 38) * 0x1p38;
    const double tail = (double)(fraction & (((uint64_t)1 << 38) - 1));
    const double angle =
        head * 1.570796310901641845703125 + (head * 1.58932547735281966e-08 + tail * NG_PI_2);
    const double rest = angle * power_of_two_f64(TO_INTEGER - 64 - zeros);
    return x < 0 ? sine_of_rest(below ? rest : -rest, quarters - turn)
                 : sine_of_rest(below ? -rest : rest, quarters + turn);
}

double ng_sine_of_large(double x) { return sine_of_large(x, 0); }
double ng_cosine_of_large(double x) { return sine_of_large(x, 1); }

double ng_sine(double x) { return fabs(x) <= SINE_END ? sin_f64(x) : sine_of_large(x, 0); }
double ng_cosine(double x) { return fabs(x) <= SINE_END ? cos_f64(x) : sine_of_large(x, 1); }
double ng_ln(double x) { return log_f64(x); }
double ng_power(double x, double y) { return pow_f64(x, y); }
