/* Sums over the ranks of a group. y = sum of x over the ranks; the cotangent of every rank adds to
 * the gradient of x on every rank: dx = sum of dy over the ranks. */
#include "group/collective.h"
#include "ops/op.h"
#include <string.h>

static void group_sum_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_group_sum(tape, dy, *(ng_group *const *)node->attributes);
}

static const ng_op group_sum_op = {.name = "group_sum", .gradient = group_sum_gradient};

ng_tensor *ng_group_sum(ng_tape *tape, ng_tensor *x, ng_group *group)
{
    static const char function[] = "ng_group_sum";
    if (!ng_given(function, "group", group) || !ng_accepts(function, tape, 1, &x)) return NULL;
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y) return NULL;
    if (x->size) memcpy(y->data, x->data, (size_t)x->size * ng_dtype_bytes(x->dtype));
    char call[NG_MAX_RANK * 22 + 32];
    snprintf(call, sizeof call, "%s of %s", function, ng_shape_print(x->shape).text);
    const ng_collective sum = {.how = x->dtype == NG_F32 ? NG_COMBINE_F32 : NG_COMBINE_F64,
                               .data = y->data,
                               .count = x->size,
                               .call = call};
    if (ng_group_combine(group, function, sum)) return NULL;
    return ng_record(tape, &group_sum_op, y, &x, 1, &group, sizeof group);
}
