/* Median, quantiles and confidence interval of a list of numbers. */
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
    double quarter, three_quarters; /* the quartiles */
} number_spread;

/* Returns the quantile `share` of `count` sorted values, linearly interpolated. */
static inline double number_quantile(const double *sorted, int64_t count, double share)
{
    const double at = share * (double)(count - 1);
    const int64_t below = (int64_t)at;
    const double part = at - (double)below, value = sorted[below];
    return part > 0 ? (1 - part) * value + part * sorted[below + 1] : value;
}

/* Returns the spread of the values and sorts them. No value may be NaN; without values the result
 * is NaN. */
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

/* Returns `below` such that the median of the distribution lies between sorted[below] and
 * sorted[count - 1 - below] of `count` sorted values, with an error probability of at most
 * `missed`: the narrowest interval of the sign test. The probability that the median is outside is
 * twice the chance of at most `below` heads in `count` tosses of a coin. -1 if there are too few
 * values. */
static inline int number_median_interval(int count, double missed)
{
    double exactly = ldexp(1, 1 - count), chance = 0; /* twice P(exactly k heads), twice P(at most
                                                       * k) */
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
