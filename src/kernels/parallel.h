/* How kernels divide their work into blocks, and when they store past the caches. */
#ifndef NG_KERNELS_PARALLEL_H
#define NG_KERNELS_PARALLEL_H

#include "core/pool.h"
#include <stdbool.h>

static inline int64_t ng_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Whether work that reads and writes so many bytes uses non-temporal stores. The inputs then stay
 * in the caches, and lines that are overwritten are not read first. */
static inline bool ng_stores_past(int64_t bytes) { return bytes >= 32 << 20; }

/* Sums over n terms are cut into at most NG_BLOCKS blocks, whose sums are added in their order.
 * The length of a block depends on n alone; it is a multiple of 64. */
#define NG_BLOCKS 64
static inline int64_t ng_block_length(int64_t n, int64_t least)
{
    const int64_t length = (n + NG_BLOCKS - 1) / NG_BLOCKS;
    return length < least ? least : (length + 63) / 64 * 64;
}

static inline int64_t ng_block_count(int64_t n, int64_t length)
{
    return (n + length - 1) / length;
}

/* The number of rows that share one partial sum of dgamma and dbeta. There are at most 16 blocks of
 * at least 16 rows, so that the partial sums take less memory than the rows. Little work is one
 * block. The results' bits depend on these numbers. */
static inline int64_t ng_norm_block_rows(int64_t rows, int64_t n)
{
    const int64_t length = 4 * rows * n < 131072 ? rows : (rows + 15) / 16;
    return length < 16 ? 16 : length;
}

/* Likewise for slices of channels. From 16 elements per channel on there are far fewer sums than
 * elements, and each slice is a block. */
static inline int64_t ng_group_block_slices(int64_t slices, int64_t channels, int64_t inner)
{
    return inner < 16 ? ng_norm_block_rows(slices, channels * inner) : 1;
}

#endif
