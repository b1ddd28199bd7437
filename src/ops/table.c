/* The table of ops: the rows of every family in one list. */
#include "ops/op.h"
#include <string.h>

#define CAPACITY 256

static ng_check_row_spec rows[CAPACITY];
static int n_rows;

static void append(const ng_check_row_spec *family, int count)
{
    if (count > CAPACITY - n_rows) count = CAPACITY - n_rows;
    memcpy(rows + n_rows, family, (size_t)count * sizeof *family);
    n_rows += count;
}

/* At load, before any thread can look. */
__attribute__((constructor)) static void gather(void)
{
    append(ng_rows_arithmetic, ng_rows_arithmetic_count);
    append(ng_rows_elementwise, ng_rows_elementwise_count);
    append(ng_rows_activations, ng_rows_activations_count);
    append(ng_rows_reduce, ng_rows_reduce_count);
    append(ng_rows_matmul, ng_rows_matmul_count);
    append(ng_rows_layout, ng_rows_layout_count);
    append(ng_rows_select, ng_rows_select_count);
    append(ng_rows_softmax, ng_rows_softmax_count);
    append(ng_rows_losses, ng_rows_losses_count);
    append(ng_rows_dropout, ng_rows_dropout_count);
    append(ng_rows_norm, ng_rows_norm_count);
    append(ng_rows_batch_norm, ng_rows_batch_norm_count);
}

const ng_check_row_spec *ng_op_rows(int *count)
{
    if (count) *count = n_rows;
    return rows;
}
