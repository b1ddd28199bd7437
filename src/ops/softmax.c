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

/* What a node keeps. */
typedef struct {
    int axis;
    bool log;
} softmax_attributes;

/* ---- softmax: y = e^x / sum e^x,  log_softmax: y = x - ln sum e^x ----------------------------
 *
 * dx = y (dy - sum y dy),  dx = dy - e^y sum dy */

static ng_status softmax_op_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                     ng_slot *dx)
{
    (void)tape;
    const softmax_attributes *a = node->attributes;
    const ng_tensor *y = node->output;
    const axis_span s = span_of(y, a->axis);
    ng_kernels_for(y->dtype)->softmax_backward(y->data, dy->data, dx->data, s.outer, s.n, s.inner,
                                               a->log, dx->accumulate);
    return NG_OK;
}

static ng_tensor *softmax_definition(ng_tape *tape, const ng_node *node)
{
    const softmax_attributes *a = node->attributes;
    ng_tensor *z = ng_shifted(tape, node->inputs[0], a->axis), *e = ng_exp(tape, z);
    ng_tensor *sum = ng_sum(tape, e, .axes = NG_AXES(a->axis), .keepdim = true);
    return a->log ? ng_sub(tape, z, ng_log(tape, sum)) : ng_div(tape, e, sum);
}

static const ng_op softmax_op = {.built_in = true,
                                 .name = "softmax",
                                 .backward = softmax_op_backward,
                                 .definition = softmax_definition};
static const ng_op log_softmax_op = {.built_in = true,
                                     .name = "log_softmax",
                                     .backward = softmax_op_backward,
                                     .definition = softmax_definition};

/* With fewer neighbouring columns, rows are faster. */
#define FEW_COLUMNS 8

static ng_tensor *softmax_along(const char *function, ng_tape *tape, ng_tensor *x, ng_axes axes,
                                bool log)
{
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    const int last = x->shape.rank - 1, index = ng_axis_named(function, axes, last + 1);
    if (index < 0) return NULL;
    const axis_span s = span_of(x, index);
    if (index < last && s.inner < FEW_COLUMNS) {
        ng_tensor *rows = ng_transpose(tape, x, index, last);
        rows = rows ? softmax_along(function, tape, rows, NG_AXES(last), log) : NULL;
        return ng_transpose(tape, rows, index, last);
    }
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y) return NULL;
    if (x->size > 0)
        ng_kernels_for(x->dtype)->softmax(x->data, y->data, s.outer, s.n, s.inner, log);
    const softmax_attributes a = {index, log};
    return ng_record(tape, log ? &log_softmax_op : &softmax_op, y, &x, 1, &a, sizeof a);
}

ng_tensor *ng_softmax_with(ng_tape *tape, ng_axis_options options)
{
    return softmax_along("ng_softmax", tape, options.x, options.axes, false);
}

ng_tensor *ng_log_softmax_with(ng_tape *tape, ng_axis_options options)
{
    return softmax_along("ng_log_softmax", tape, options.x, options.axes, true);
}
