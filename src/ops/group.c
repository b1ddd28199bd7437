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
    const size_t bytes = ng_dtype_bytes(x->dtype);
    void *sum = ng_tape_memory(tape, (size_t)ng_group_padded(group, x->size) * bytes);
    if (sum && x->size) memcpy(sum, x->data, (size_t)x->size * bytes);
    if (ng_group_call(group, function, "of %s %s", ng_dtype_name(x->dtype),
                      ng_shape_print(x->shape).text) ||
        ng_group_add(group, x->dtype, sum, x->size))
        return NULL;
    if (x->size) memcpy(y->data, sum, (size_t)x->size * bytes);
    return ng_record_own(tape, &group_sum_op, y, &x, 1, &group, sizeof group);
}
