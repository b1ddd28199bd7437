/* What the files of ops share: checks of operands and settings, functions of each element. */
#include "ops/elementwise.h"
#include <float.h>
#include <math.h>

/* ---- Operands ----------------------------------------------------------------------------- */

bool ng_accepts_index(const char *function, ng_tape *tape, const char *what, ng_tensor *index)
{
    if (!ng_given(function, "tape", tape) || !ng_given(function, what, index)) return false;
    tape->function = function;
    if (!ng_usable(function, what, 0, tape, index)) return false;
    if (index->dtype != NG_I64) {
        ng_fail(NG_EDTYPE, "%s: %s is %s, expected int64", function, what,
                ng_dtype_name(index->dtype));
        return false;
    }
    return true;
}

bool ng_expect_shape(bool fits, const char *function, const char *name, const ng_tensor *x,
                     const char *expected)
{
    if (!fits)
        ng_fail(NG_ESHAPE, "%s: %s is %s, expected %s", function, name,
                ng_shape_print(x->shape).text, expected);
    return fits;
}

bool ng_accepts_any(const char *function, ng_tape *tape, int count, ng_tensor *const *inputs)
{
    if (!ng_all_given(function, tape, count, inputs)) return false;
    if (count == 0 || inputs[0]->dtype != NG_I64 || ng_is_none(inputs[0]))
        return ng_accepts(function, tape, count, inputs);
    for (int i = 0; i < count; i++)
        if (!ng_accepts_index(function, tape, "an operand", inputs[i])) return false;
    return true;
}

bool ng_given_or_none(const char *function, const char *name, const ng_tensor *operand)
{
    if (!operand && !ng_failed())
        ng_fail(NG_ENULL, "%s: %s is NULL; NG_NONE leaves it out", function, name);
    return operand != NULL;
}

/* ---- Element by element ------------------------------------------------------------------- */

ng_tensor *ng_map_record(const char *function, ng_tape *tape, const ng_op *op, ng_tensor *x,
                         ng_map map, double a, double b)
{
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    ng_tensor *y = ng_result_like(tape, x);
    if (!y) return NULL;
    const ng_mapping f = {map, a, b};
    ng_kernels_for(x->dtype)->map(f, x->data, y->data, x->size);
    return ng_record_own(tape, op, y, &x, 1, &f, sizeof f);
}

ng_status ng_map_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    (void)tape;
    const ng_mapping *const f = node->attributes;
    const ng_tensor *const x = node->inputs[0], *const y = node->output;
    ng_kernels_for(x->dtype)->map_backward(*f, x->data, y->data, dy->data, dx[0].data, x->size,
                                           dx[0].accumulate);
    return NG_OK;
}

double ng_largest(ng_dtype dtype) { return dtype == NG_F32 ? (double)FLT_MAX : DBL_MAX; }

ng_tensor *ng_finite(ng_tape *tape, ng_tensor *x)
{
    const double largest = x ? ng_largest(x->dtype) : 0;
    return ng_clamp(tape, x, -largest, largest);
}

/* y = f(a, b): a (...), b (...) -> their broadcast shape. For operands of one shape the walk is
 * set up directly, which saves time with small tensors. */
ng_tensor *ng_binary_record(const char *function, ng_tape *tape, const ng_op *op, ng_tensor *a,
                            ng_tensor *b, ng_binary binary)
{
    ng_tensor *const inputs[] = {a, b};
    if (!ng_accepts(function, tape, 2, inputs)) return NULL;
    ng_walk walk;
    ng_tensor *y;
    if (ng_same_shape(a, b)) {
        y = ng_result_like(tape, a);
        walk.rank = 1;
        walk.size = walk.dim[0] = a->size;
        walk.a[0] = walk.b[0] = 1;
    } else {
        ng_shape shape;
        if (!ng_shape_broadcast(function, a->shape, b->shape, &shape)) return NULL;
        y = ng_result(tape, a->dtype, shape);
        walk = ng_walk_broadcast(shape, a->shape, b->shape);
    }
    if (!y) return NULL;
    ng_kernels_for(a->dtype)->binary(binary, &walk, a->data, b->data, y->data);
    return ng_record_own(tape, op, y, inputs, 2, NULL, 0);
}
