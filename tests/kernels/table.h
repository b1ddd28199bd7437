/* The table of kernels (instruction set and dtype) under test, and arrays of its dtype. */
#ifndef TABLE_H
#define TABLE_H

#include "kernels/kernels.h"
#include "support.h"

/* Tests run once for each table, _i = 0 .. TABLES - 1, and pass if the build or the processor lacks
 * it. */
enum { ISAS = 3, TABLES = 2 * ISAS };

extern const ng_kernels *k;
extern ng_dtype dtype;
extern bool in_float;
extern double ulp;
static const double inf = (double)INFINITY, nan_value = (double)NAN;

/* Puts table i under test; false where there is none. */
bool use_table(int i);

/* Whether long double has more digits than the dtype: for double not on some machines, nor under
 * valgrind. */
bool reference_is_wider(void);

/* Lengths around vectors, their tails, and several blocks. */
extern const int64_t sizes[];
enum { SIZES = 12 };

/* ---- Memory, freed by release() ---- */

/* n elements of so many bytes, 0. */
void *keep(int64_t n, size_t bytes);
double *doubles(int64_t n);
/* n elements of the table's dtype, starting one past an aligned address. */
char *make(int64_t n);
char *uniform(int64_t n, double low, double high);
char *constant(int64_t n, double value);
char *copy(const char *x, int64_t n);
void release(void);
/* x, or NULL if it is not given. */
char *or_null(char *x, bool given);

long double get(const void *x, int64_t i);
void put(void *x, int64_t i, double value);
ng_rng *table_rng(void);

/* Begins the random numbers again, and forgets the numbers that were expected. */
void begin_again(void);
/* A hash of the bits of all numbers that were expected since. */
uint64_t bits_seen(void);

/* ---- Assertions ---- */

/* |y[i] - expected| <= units ulp max(|expected|, floor) */
void expect(const char *what, const void *y, int64_t i, long double expected, double units,
            double floor);
void expect_bits(const char *what, const void *a, const void *b, int64_t n);

#endif
