/* One table of kernels: for the dtype REAL (float or double) and the instruction set ISA, both
 * named on the command line, with whose flags it is compiled. The Makefile compiles this file once
 * for each of them; normgrad.c includes it once for each. The files are in the order in which they
 * use each other. */
/* clang-format off */
#include "kernels/tables.h"
#include "kernels/lanes.h"
#include "kernels/elementary.h"
#include "kernels/transpose.inc"
#include "kernels/gemm.inc"
#include "kernels/reduce.inc"
#include "kernels/rows.inc"
#include "kernels/softmax.inc"
#include "kernels/pointwise.inc"
#include "kernels/row_norm.inc"
#include "kernels/column_norm.inc"
#include "kernels/group.inc"
#include "kernels/norm_second.inc"
#include "kernels/attention.inc"
#include "kernels/recurrent.inc"
#include "kernels/image.inc"
#include "kernels/depthwise.inc"
#include "kernels/resize.inc"
#include "kernels/update.inc"
/* clang-format on */

#define NG_NAME_OF(isa) #isa
#define NG_NAME(isa) NG_NAME_OF(isa)
#define NG_KERNEL_TABLE_OF(isa, real) ng_table_##isa##_##real
#define NG_KERNEL_TABLE(isa, real) NG_KERNEL_TABLE_OF(isa, real)

const ng_kernels NG_KERNEL_TABLE(ISA, REAL) = {
    NG_NAME(ISA),
#define X(returns, name, arguments) kernel_##name,
#include "kernels/kernels.def"
#undef X
};

/* Other text in another instruction set's inclusion. */
#undef NG_VECTOR
#undef NG_EACH_HALF
#undef NG_FUSES
#undef NG_REGISTER
#undef NG_MASKS
#undef NG_GEMM_TILE
