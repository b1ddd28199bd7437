/* The cache blocks of the built-in matrix product, and the memory it packs them into. */
#ifndef NG_KERNELS_GEMM_H
#define NG_KERNELS_GEMM_H

#include <stdint.h>

enum {
    NG_GEMM_ROWS = 120, /* of A: whole tiles of 6 and 12 */
    NG_GEMM_DEPTH = 256,
    NG_GEMM_COLUMN_BYTES = 2048, /* of a row of B */
    NG_GEMM_SMALL = 262144       /* multiplications that are done without packing A */
};

/* One block of A and one of B, of either dtype, for each thread. */
extern _Thread_local char ng_gemm_rows[NG_GEMM_ROWS * NG_GEMM_DEPTH * sizeof(double)];
extern _Thread_local char ng_gemm_columns[NG_GEMM_COLUMN_BYTES * NG_GEMM_DEPTH];

#endif
