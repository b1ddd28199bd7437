/* The table of ops: the rows of every family, one after the other. */
#include "ops/op.h"

typedef struct {
    const ng_check_row_spec *rows;
    const int *count;
} family;

#define ROWS(name) {ng_rows_##name, &ng_rows_##name##_count},
static const family families[] = {NG_FAMILIES(ROWS)};

const ng_check_row_spec *ng_op_row(int index)
{
    if (index < 0) return NULL;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (index < *families[i].count) return &families[i].rows[index];
        index -= *families[i].count;
    }
    return NULL;
}
