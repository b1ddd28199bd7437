/* The kernels for AVX-512 (F, VL, DQ, BW) with FMA. */
#include "kernels/tables.h"

#if defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512DQ__) && defined(__AVX512BW__)

#define NG_ISA "avx512"
#include "kernels/elementary.h"
#include "kernels/lanes.h"

#define REAL float
#define F(name) name##f
#define K(name) name##_f32
#include "kernels/kernels.inc"

#define REAL double
#define F(name) name
#define K(name) name##_f64
#include "kernels/kernels.inc"

const ng_kernels *const ng_tables_avx512[2] = {&table_f32, &table_f64};

#else

const ng_kernels *const ng_tables_avx512[2] = {NULL, NULL};

#endif
