/* The cache blocks of the built-in matrix product. */
#ifndef NG_KERNELS_GEMM_H
#define NG_KERNELS_GEMM_H

#include <stdint.h>

enum {
    NG_GEMM_ROWS = 120, /* of A: whole tiles of 6 and 12 */
    NG_GEMM_DEPTH = 256,
    NG_GEMM_COLUMN_BYTES = 2048, /* of a row of B */
    NG_GEMM_SMALL = 262144       /* multiplications that are done without packing A */
};

#endif
