/* One table of kernels: for the dtype REAL (float or double) and the instruction set ISA, both
 * named on the command line, whose flags it is compiled with. The Makefile compiles this file once
 * for each of them; tables.h lists them. */
#include "kernels/attention.inc"
#include "kernels/column_norm.inc"
#include "kernels/gemm.inc"
#include "kernels/group.inc"
#include "kernels/image.inc"
#include "kernels/norm_second.inc"
#include "kernels/pointwise.inc"
#include "kernels/recurrent.inc"
#include "kernels/reduce.inc"
#include "kernels/resize.inc"
#include "kernels/row_norm.inc"
#include "kernels/rows.inc"
#include "kernels/softmax.inc"
#include "kernels/tables.h"
#include "kernels/tanh_norm.inc"
#include "kernels/taps.inc"
#include "kernels/transpose.inc"
#include "kernels/update.inc"

#define NAME_OF(isa) #isa
#define NAME(isa) NAME_OF(isa)
#define TABLE_OF(isa, real) ng_table_##isa##_##real
#define TABLE(isa, real) TABLE_OF(isa, real)

const ng_kernels TABLE(ISA, REAL) = {
    .isa = NAME(ISA),
#define X(returns, name, arguments) .name = name,
#include "kernels/kernels.def"
};
