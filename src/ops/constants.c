/* Tensors that are no function of anything, and changes of dtype. */
#include "ops/op.h"
#include <string.h>

static bool is_dtype(const char *function, ng_dtype dtype)
{
    if (ng_dtype_bytes(dtype) > 0) return true;
    ng_fail(NG_EDTYPE, "%s: dtype %d, expected NG_F32, NG_F64 or NG_I64", function, (int)dtype);
    return false;
}

ng_tensor *ng_full(ng_tape *tape, ng_dtype dtype, ng_shape shape, double value)
{
    static const char function[] = "ng_full";
    if (!ng_given(function, "tape", tape) || !is_dtype(function, dtype) ||
        ng_shape_size(function, shape) < 0)
        return NULL;
    tape->function = function;
    return ng_result_full(tape, dtype, shape, value);
}

static ng_tensor *full_like(const char *function, ng_tape *tape, const ng_tensor *x, double value)
{
    if (!ng_given(function, "tape", tape) || !ng_given(function, "x", x) ||
        !ng_usable(function, "operand", 1, tape, x))
        return NULL;
    tape->function = function;
    return ng_result_full(tape, x->dtype, x->shape, value);
}

ng_tensor *ng_zeros_like(ng_tape *tape, const ng_tensor *x)
{
    return full_like("ng_zeros_like", tape, x, 0);
}

ng_tensor *ng_ones_like(ng_tape *tape, const ng_tensor *x)
{
    return full_like("ng_ones_like", tape, x, 1);
}

/* dx is dy, cast back. An int64 result is a constant. */
static void cast_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_cast(tape, dy, node->inputs[0]->dtype);
}

static const ng_op cast_op = {.name = "cast", .gradient = cast_gradient};

/* The pairs of dtypes that are cast most, and any other. */
static void convert(const ng_tensor *x, ng_tensor *y)
{
    if (y->dtype == NG_F64 && x->dtype == NG_F32) {
        const float *from = x->data;
        double *to = y->data;
        for (int64_t i = 0; i < x->size; i++) to[i] = (double)from[i];
    } else if (y->dtype == NG_F32 && x->dtype == NG_F64) {
        const double *from = x->data;
        float *to = y->data;
        for (int64_t i = 0; i < x->size; i++) to[i] = (float)from[i];
    } else {
        for (int64_t i = 0; i < x->size; i++) ng_tensor_store(y, i, ng_tensor_load(x, i));
    }
}

ng_tensor *ng_cast(ng_tape *tape, ng_tensor *x, ng_dtype dtype)
{
    if (!ng_accepts_any("ng_cast", tape, 1, &x) || !is_dtype("ng_cast", dtype)) return NULL;
    ng_tensor *y = ng_result(tape, dtype, x->shape);
    if (!y) return NULL;
    if (dtype == x->dtype && x->size > 0)
        memcpy(y->data, x->data, (size_t)x->size * ng_dtype_bytes(dtype));
    else
        convert(x, y);
    if (dtype == NG_I64) return y;
    return ng_record(tape, &cast_op, y, &x, 1, NULL, 0);
}
