/* Numbers in order: what the programs make of several seeds, norms or elements. */
#ifndef EXAMPLES_NUMBERS_H
#define EXAMPLES_NUMBERS_H

#include <math.h>
#include <stdlib.h>

/* qsort's order. */
static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    int count;
    double median, low, high;
} number_spread;

/* Sorts the values, none of which is NaN. NaN where there is no value. */
static inline number_spread number_spread_of(double *values, int count)
{
    const double none = (double)NAN;
    if (count == 0) return (number_spread){0, none, none, none};
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (number_spread){.count = count,
                           .median = (values[(count - 1) / 2] + values[count / 2]) / 2,
                           .low = values[0],
                           .high = values[count - 1]};
}

#endif
