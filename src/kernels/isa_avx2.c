/* The kernels for AVX2 with FMA. */
#include "kernels/tables.h"

#if defined(__AVX2__) && defined(__FMA__)

#define NG_ISA "avx2"
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

const ng_kernels *const ng_tables_avx2[2] = {&table_f32, &table_f64};

#else

const ng_kernels *const ng_tables_avx2[2] = {NULL, NULL};

#endif
