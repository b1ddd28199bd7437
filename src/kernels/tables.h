/* A table for each instruction set of this build and each dtype. The Makefile names the sets, the
 * best first: NG_ISAS(X) is X(avx2) X(baseline), for example. */
#ifndef NG_KERNELS_TABLES_H
#define NG_KERNELS_TABLES_H

#include "kernels/kernels.h"

#define X(isa) extern const ng_kernels ng_table_##isa##_float, ng_table_##isa##_double;
NG_ISAS(X)
#undef X

#endif
