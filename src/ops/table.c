/* The table of ops: the rows of every family, one after the other. */
#include "ops/op.h"

typedef struct {
    const ng_check_row_spec *rows;
    const int *count;
} family;

static const family families[] = {
    {ng_rows_arithmetic, &ng_rows_arithmetic_count},
    {ng_rows_elementwise, &ng_rows_elementwise_count},
    {ng_rows_activations, &ng_rows_activations_count},
    {ng_rows_reduce, &ng_rows_reduce_count},
    {ng_rows_matmul, &ng_rows_matmul_count},
    {ng_rows_layout, &ng_rows_layout_count},
    {ng_rows_select, &ng_rows_select_count},
    {ng_rows_softmax, &ng_rows_softmax_count},
    {ng_rows_losses, &ng_rows_losses_count},
    {ng_rows_dropout, &ng_rows_dropout_count},
    {ng_rows_norm, &ng_rows_norm_count},
    {ng_rows_batch_norm, &ng_rows_batch_norm_count},
    {ng_rows_group_norm, &ng_rows_group_norm_count},
    {ng_rows_simple_norms, &ng_rows_simple_norms_count},
    {ng_rows_batch_variants, &ng_rows_batch_variants_count},
    {ng_rows_weight_norm, &ng_rows_weight_norm_count},
    {ng_rows_attention, &ng_rows_attention_count},
    {ng_rows_rotary, &ng_rows_rotary_count},
};

const ng_check_row_spec *ng_op_row(int index)
{
    if (index < 0) return NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (index < *families[i].count) return &families[i].rows[index];
        index -= *families[i].count;
    }
    return NULL;
}
