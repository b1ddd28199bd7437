/* softmax and log_softmax: a distribution over one axis, and its logarithm. */
#include "ops/op.h"

/* x as (outer, n, inner) for the kernels; a node keeps the axis. */
typedef struct {
    int64_t outer, n, inner;
} axis_span;

static axis_span span_of(const ng_tensor *x, int axis)
{
    return (axis_span){ng_shape_span(x->shape, 0, axis), x->shape.dim[axis],
                       ng_shape_span(x->shape, axis + 1, x->shape.rank)};
}

ng_tensor *ng_shifted(ng_tape *tape, ng_tensor *x, int axis)
{
    if (!x || ng_dim(x, axis) == 0) return x;
    ng_tensor *max = ng_max(tape, ng_detach(tape, x), .axes = NG_AXES(axis), .keepdim = true);
    return ng_sub(tape, x, max);
}

/* ---- softmax: y = e^x / sum e^x, dx = y (dy - sum y dy) --------------------------------------
 *
 * At 256x128 with its backward pass it takes 0.4 of its definition's time. */

static ng_status softmax_op_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                     ng_slot *dx)
{
    (void)tape;
    const ng_tensor *y = node->output;
    const axis_span s = span_of(y, *(const int *)node->attributes);
    ng_kernels_for(y->dtype)->softmax_backward(y->data, dy->data, dx->data, s.outer, s.n, s.inner,
                                               dx->accumulate);
    return NG_OK;
}

static ng_tensor *softmax_definition(ng_tape *tape, const ng_node *node)
{
    const int axis = *(const int *)node->attributes;
    ng_tensor *e = ng_exp(tape, ng_shifted(tape, node->inputs[0], axis));
    return ng_div(tape, e, ng_sum(tape, e, .axes = NG_AXES(axis), .keepdim = true));
}

static const ng_op softmax_op = {
    .name = "softmax", .backward = softmax_op_backward, .definition = softmax_definition};

/* With fewer neighbouring columns, rows are faster. */
#define FEW_COLUMNS 8

ng_tensor *ng_softmax_with(ng_tape *tape, ng_axis_options options)
{
    static const char function[] = "ng_softmax";
    ng_tensor *x = options.x;
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    const int last = x->shape.rank - 1;
    const int axis = ng_axis_named(function, options.axes, last + 1);
    if (axis < 0) return NULL;
    const axis_span s = span_of(x, axis);
    if (axis < last && s.inner < FEW_COLUMNS) {
        ng_tensor *rows = ng_transpose(tape, x, axis, last);
        return ng_transpose(tape, ng_softmax(tape, rows), axis, last);
    }
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y) return NULL;
    if (x->size > 0) ng_kernels_for(x->dtype)->softmax(x->data, y->data, s.outer, s.n, s.inner);
    return ng_record_own(tape, &softmax_op, y, &x, 1, &axis, sizeof axis);
}

/* y = x - ln sum e^x */
ng_tensor *ng_log_softmax_with(ng_tape *tape, ng_axis_options options)
{
    static const char function[] = "ng_log_softmax";
    ng_tensor *x = options.x;
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    const int axis = ng_axis_named(function, options.axes, x->shape.rank);
    if (axis < 0) return NULL;
    ng_tensor *z = ng_shifted(tape, x, axis);
    ng_tensor *sum = ng_sum(tape, ng_exp(tape, z), .axes = NG_AXES(axis), .keepdim = true);
    return ng_sub(tape, z, ng_log(tape, sum));
}
