/* Random numbers. */
#include "core/error.h"
#include "core/functions.h"
#include "core/tensor.h"
#include <math.h>
#include <string.h>

static uint64_t rotate_left(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

ng_rng ng_rng_seeded(uint64_t seed)
{
    ng_rng rng;
    for (int i = 0; i < 4; i++) rng.state[i] = splitmix64(&seed);
    return rng;
}

static uint64_t rng_step(ng_rng *rng)
{
    uint64_t *s = rng->state;
    const uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

static double rng_uniform(ng_rng *rng) { return (double)(rng_step(rng) >> 11) * 0x1p-53; }

uint64_t ng_rng_next(ng_rng *rng)
{
    return ng_given("ng_rng_next", "rng", rng) ? rng_step(rng) : 0;
}

/* An element is 0 where a uniform number, 53 bits of a draw, is below p. The selected value is an
 * integer: for floats most compilers make a branch, which is often predicted wrongly. */
void ng_tensor_draw_mask(ng_tensor *x, double p, ng_rng *rng)
{
    const uint64_t limit = (uint64_t)ceil(p * 0x1p53) << 11;
    const double kept = 1 / (1 - p);
    const float kept_f32 = (float)kept;
    uint64_t bits;
    uint32_t bits_f32;
    memcpy(&bits, &kept, sizeof bits), memcpy(&bits_f32, &kept_f32, sizeof bits_f32);
    const int64_t n = x->size;
    float *const singles = x->data;
    double *const doubles = x->data;
    ng_rng r = *rng; /* its state stays in registers */
    if (x->dtype == NG_F32) {
#pragma GCC unroll 4
        for (int64_t i = 0; i < n; i++) {
            const uint32_t value = rng_step(&r) < limit ? 0 : bits_f32;
            memcpy(singles + i, &value, sizeof value);
        }
    } else {
#pragma GCC unroll 4
        for (int64_t i = 0; i < n; i++) {
            const uint64_t value = rng_step(&r) < limit ? 0 : bits;
            memcpy(doubles + i, &value, sizeof value);
        }
    }
    *rng = r;
}

double ng_rng_uniform(ng_rng *rng)
{
    return ng_given("ng_rng_uniform", "rng", rng) ? rng_uniform(rng) : (double)NAN;
}

/* Box and Muller 1958; the second value of each pair is not kept, so that a generator stays a
 * plain stream of numbers. */
double ng_rng_normal(ng_rng *rng)
{
    if (!ng_given("ng_rng_normal", "rng", rng)) return (double)NAN;
    const double pi = 3.14159265358979323846;
    const double u = 1.0 - rng_uniform(rng); /* (0, 1] */
    return sqrt(-2.0 * ng_ln(u)) * ng_cosine(2.0 * pi * rng_uniform(rng));
}

/* Draws anew while the number falls into the incomplete last stretch of the 64-bit range. */
uint64_t ng_rng_upto(ng_rng *rng, uint64_t last)
{
    const uint64_t count = last + 1, excess = count ? -count % count : 0; /* 2^64 mod count */
    uint64_t drawn;
    if (last == 0) return 0;
    do drawn = rng_step(rng);
    while (drawn < excess);
    return count ? drawn % count : drawn;
}

int64_t ng_rng_below(ng_rng *rng, int64_t bound)
{
    if (!ng_given("ng_rng_below", "rng", rng)) return -1;
    if (bound < 1) {
        ng_fail(NG_EVALUE, "ng_rng_below: bound is %lld, expected at least 1", (long long)bound);
        return -1;
    }
    return (int64_t)ng_rng_upto(rng, (uint64_t)bound - 1);
}
