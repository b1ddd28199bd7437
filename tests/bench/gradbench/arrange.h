/* Arrangements of columns and their signs, the terms of a determinant. */
#ifndef NG_BENCH_ARRANGE_H
#define NG_BENCH_ARRANGE_H

#include <stdint.h>
#include <string.h>

static int64_t arrangements(int64_t n, int64_t chosen)
{
    int64_t count = 1;
    for (int64_t i = 0; i < chosen; i++) count *= n - i;
    return count;
}

/* The i-th arrangement of n columns: those chosen, and then the others in ascending order. Returns
 * its sign. */
static int arrange(int64_t i, int64_t n, int64_t chosen, int64_t *columns)
{
    int sign = 1;
    for (int64_t at = 0; at < n; at++) columns[at] = at;
    for (int64_t at = 0, rest = arrangements(n, chosen); at < chosen; at++) {
        rest /= n - at;
        const int64_t j = at + i / rest % (n - at), column = columns[j];
        memmove(columns + at + 1, columns + at, (size_t)(j - at) * sizeof *columns);
        columns[at] = column;
        if ((j - at) % 2) sign = -sign;
    }
    return sign;
}

#endif
