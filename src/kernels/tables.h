/* The tables that the isa_*.c files define, by dtype: NULL where the compiler had no such flags. */
#ifndef NG_KERNELS_TABLES_H
#define NG_KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const ng_kernels *const ng_tables_baseline[2];
extern const ng_kernels *const ng_tables_avx2[2];
extern const ng_kernels *const ng_tables_avx512[2];

#endif
