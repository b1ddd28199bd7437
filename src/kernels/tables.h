/* The instruction sets of this build, the best first, and a table for each and each dtype. */
#ifndef NG_KERNELS_TABLES_H
#define NG_KERNELS_TABLES_H

#include "kernels/kernels.h"

#if defined(__x86_64__)
#define NG_ISAS(X) X(avx512) X(avx2) X(baseline)
#elif defined(__aarch64__)
#define NG_ISAS(X) X(neon) X(baseline)
#else
#define NG_ISAS(X) X(baseline)
#endif

#define X(isa) extern const ng_kernels ng_table_##isa##_float, ng_table_##isa##_double;
NG_ISAS(X)
#undef X

#endif
