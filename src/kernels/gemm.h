/* The cache blocks of the built-in matrix product, and which products need none. */
#ifndef NG_KERNELS_GEMM_H
#define NG_KERNELS_GEMM_H

#include "kernels/kernels.h"

enum {
    NG_GEMM_ROWS = 120, /* of A: whole tiles of 6 and 12 */
    NG_GEMM_DEPTH = 256,
    NG_GEMM_COLUMN_BYTES = 2048, /* of a row of B */
    NG_GEMM_SMALL = 262144,      /* multiplications that are done without packing A */
    NG_GEMM_SHARED = 2097152,    /* and those, some 30 us, that are worth sharing */
    NG_GEMM_FEW = 3              /* rows of C, or terms of its sums */
};

/* Few rows against a transposed B: each element is the product of two runs of memory. */
static inline bool ng_gemm_has_few_rows(const ng_product *p)
{
    return p->m <= NG_GEMM_FEW && p->b.transposed && !p->a.transposed;
}

/* Few terms, or none: each row of C is a sum of a few rows of B. */
static inline bool ng_gemm_has_few_terms(const ng_product *p)
{
    return p->k <= NG_GEMM_FEW && (!p->b.transposed || p->k == 0);
}

#endif
