/* Numbers in order: what the programs make of several seeds, norms or elements. */
#ifndef EXAMPLES_NUMBERS_H
#define EXAMPLES_NUMBERS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

/* qsort's order. */
static inline int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct {
    int count;
    double median, low, high;       /* low and high: the extremes */
    double quarter, three_quarters; /* a quarter of the values are below, a quarter above */
} number_spread;

/* Of `count` sorted values, the one that this share of them is below, in proportion between two. */
static inline double number_quantile(const double *sorted, int64_t count, double share)
{
    const double at = share * (double)(count - 1);
    const int64_t below = (int64_t)at;
    const double part = at - (double)below, value = sorted[below];
    return part > 0 ? (1 - part) * value + part * sorted[below + 1] : value;
}

/* Sorts the values, none of which is NaN. NaN where there is no value. */
static inline number_spread number_spread_of(double *values, int count)
{
    const double none = (double)NAN;
    if (count == 0) return (number_spread){0, none, none, none, none, none};
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (number_spread){.count = count,
                           .median = (values[(count - 1) / 2] + values[count / 2]) / 2,
                           .low = values[0],
                           .high = values[count - 1],
                           .quarter = number_quantile(values, count, 0.25),
                           .three_quarters = number_quantile(values, count, 0.75)};
}

/* Between which two of `count` sorted values the true median lies: sorted[below] and sorted[count -
 * 1 - below], whatever the values' distribution. With k of them below a value and k above, the
 * median is outside with twice the chance of at most k heads in `count` throws of a coin; it is the
 * narrowest interval where that is at most `missed`. -1 where there is none: the values are too
 * few. */
static inline int number_median_interval(int count, double missed)
{
    double exactly = ldexp(1, 1 - count), chance = 0; /* of k heads, twice; of at most k */
    int below = -1;
    for (int k = 0; 2 * k < count; k++) {
        chance += exactly;
        if (chance > missed) break;
        below = k;
        exactly *= (double)(count - k) / (k + 1);
    }
    return below;
}

#endif
