/* The kernels for any processor of this architecture. */
#include "kernels/tables.h"

#define NG_ISA "baseline"
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

const ng_kernels *const ng_tables_baseline[2] = {&table_f32, &table_f64};
