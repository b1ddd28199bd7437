/* The table of kernels (instruction set and dtype) under test, and arrays of its dtype. */
#ifndef TABLE_H
#define TABLE_H

#include "kernels/kernels.h"
#include "support/support.h"

enum { ISAS = 3, TABLES = 2 * ISAS };

static const ng_kernels *k;
static ng_dtype dtype;
static bool in_float;
static double ulp;
static const double inf = (double)INFINITY, nan_value = (double)NAN;

/* Lengths around vectors, their tails, and several blocks. */
enum { SIZES = 12 };
static const int64_t sizes[SIZES] = {1, 2, 3, 7, 15, 17, 31, 33, 63, 65, 1000, 1023};

static ng_rng rng;
static uint64_t bits_seen; /* a hash of all results since use_table() */

/* Puts table i of TABLES under test, and begins the random numbers again; false: there is none. */
static bool use_table(int i)
{
    const char *isa = ng_isa_name(i / 2);
    dtype = i % 2 ? NG_F64 : NG_F32;
    in_float = dtype == NG_F32;
    ulp = in_float ? 0x1p-23 : 0x1p-52;
    rng = (ng_rng){{1, 2, 3, 4}};
    bits_seen = 0;
    k = isa ? ng_kernels_of(isa, dtype) : NULL;
    if (!k && isa) fprintf(stderr, "skipped: %s kernels, which this processor has not\n", isa);
    return k != NULL;
}

/* Whether long double has more digits than the dtype: for double not on some machines, nor under
 * valgrind. */
static bool reference_is_wider(void)
{
    const volatile long double one = 1;
    return in_float || one + 0x1p-60L != one;
}

/* ---- Memory, freed by release() ---- */

static void *made[96];
static int made_count;

/* n elements of so many bytes, 0. */
static void *keep(int64_t n, size_t bytes)
{
    void *memory = calloc((size_t)n + 1, bytes);
    ck_assert(memory && made_count < 96);
    return made[made_count++] = memory;
}

static double *doubles(int64_t n) { return keep(n, sizeof(double)); }

/* n elements of the table's dtype, starting one past an aligned address. */
static char *make(int64_t n)
{
    const size_t bytes = ng_dtype_bytes(dtype);
    char *memory = keep(n, bytes);
    memset(memory, 0xff, (size_t)(n + 1) * bytes); /* NaN */
    return memory + bytes;
}

static void release(void)
{
    while (made_count > 0) free(made[--made_count]);
}

/* x, or NULL if it is not given. */
static char *or_null(char *x, bool given) { return given ? x : NULL; }

static long double get(const void *x, int64_t i)
{
    return in_float ? (long double)((const float *)x)[i] : (long double)((const double *)x)[i];
}

static void put(void *x, int64_t i, double value)
{
    if (in_float)
        ((float *)x)[i] = (float)value;
    else
        ((double *)x)[i] = value;
}

static char *uniform(int64_t n, double low, double high)
{
    char *x = make(n);
    for (int64_t i = 0; i < n; i++) put(x, i, low + (high - low) * ng_rng_uniform(&rng));
    return x;
}

static char *constant(int64_t n, double value)
{
    char *x = make(n);
    for (int64_t i = 0; i < n; i++) put(x, i, value);
    return x;
}

static char *copy(const char *x, int64_t n)
{
    return memcpy(make(n), x, (size_t)n * ng_dtype_bytes(dtype));
}

/* ---- Assertions ---- */

/* |y[i] - expected| <= units ulp max(|expected|, floor) */
static void expect(const char *what, const void *y, int64_t i, long double expected, double units,
                   double floor)
{
    const double actual = (double)get(y, i), e = (double)expected;
    uint64_t bits = 0; /* of a NaN, whose sign is free */
    if (!isnan(actual)) memcpy(&bits, &actual, sizeof bits);
    bits_seen = (bits_seen ^ bits) * 0x9e3779b97f4a7c15u;
    bits_seen ^= bits_seen >> 29;
    const double of_expected = reference_is_wider() ? 0 : 4; /* what is expected is rounded too */
    const double allowed = isfinite(e) ? (units + of_expected) * ulp * fmax(fabs(e), floor) : 0;
    if (fabs(actual - e) <= allowed || (isnan(e) && isnan(actual)) || actual == e) return;
    ck_abort_msg("%s %s %s [%lld]: %.17g, expected %.17g, allowed error %.3g", k->isa,
                 ng_dtype_name(dtype), what, (long long)i, actual, e, allowed);
}

static void expect_bits(const char *what, const void *a, const void *b, int64_t n)
{
    ck_assert_msg(!memcmp(a, b, (size_t)n * ng_dtype_bytes(dtype)), "%s %s %s: bits differ", k->isa,
                  ng_dtype_name(dtype), what);
}

#endif
