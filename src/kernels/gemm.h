/* The cache blocks of the built-in matrix product, and which products need none. */
#ifndef NG_KERNELS_GEMM_H
#define NG_KERNELS_GEMM_H

#include <stdbool.h>
#include <stdint.h>

enum {
    NG_GEMM_ROWS = 120, /* of A: whole tiles of 6 and 12 */
    NG_GEMM_DEPTH = 256,
    NG_GEMM_COLUMN_BYTES = 2048, /* of a row of B */
    NG_GEMM_SMALL = 262144,      /* multiplications that are done without packing A */
    NG_GEMM_FEW = 3              /* rows of C, or terms of its sums */
};

/* Few rows against a transposed B: each element is the product of two runs of memory. */
static inline bool ng_gemm_has_few_rows(bool transpose_a, bool transpose_b, int64_t m)
{
    return m <= NG_GEMM_FEW && transpose_b && !transpose_a;
}

/* Few terms: each row of C is a sum of a few rows of B. */
static inline bool ng_gemm_has_few_terms(bool transpose_b, int64_t k)
{
    return k <= NG_GEMM_FEW && !transpose_b;
}

#endif
