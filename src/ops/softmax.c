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

/* x - max x along an axis, as ng_shifted. */
static ng_tensor *shifted(ng_tape *tape, ng_tensor *x, int axis)
{
    if (!x || ng_dim(x, axis) == 0) return x;
    ng_tensor *max = ng_max(tape, ng_detach(tape, x), .axes = NG_AXES(axis), .keepdim = true);
    return ng_sub(tape, x, max);
}

ng_tensor *ng_shifted(ng_tape *tape, ng_tensor *x) { return shifted(tape, x, -1); }

/* ---- softmax: y = e^x / sum e^x -------------------------------------------------------------
 *
 * dx = y (dy - sum y dy) */

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
    ng_tensor *e = ng_exp(tape, shifted(tape, node->inputs[0], axis));
    return ng_div(tape, e, ng_sum(tape, e, .axes = NG_AXES(axis), .keepdim = true));
}

static const ng_op softmax_op = {
    .name = "softmax", .backward = softmax_op_backward, .definition = softmax_definition};

/* ---- log_softmax: y = x - ln sum e^x --------------------------------------------------------
 *
 * dx = dy - e^y sum dy */

static ng_status softmax_log_softmax_backward(ng_tape *tape, const ng_node *node,
                                              const ng_tensor *dy, ng_slot *dx)
{
    (void)tape;
    const ng_tensor *y = node->output;
    const axis_span s = span_of(y, *(const int *)node->attributes);
    ng_kernels_for(y->dtype)->log_softmax_backward(y->data, dy->data, dx->data, s.outer, s.n,
                                                   s.inner, dx->accumulate);
    return NG_OK;
}

static ng_tensor *log_softmax_definition(ng_tape *tape, const ng_node *node)
{
    const int axis = *(const int *)node->attributes;
    ng_tensor *z = shifted(tape, node->inputs[0], axis);
    ng_tensor *sum = ng_sum(tape, ng_exp(tape, z), .axes = NG_AXES(axis), .keepdim = true);
    return ng_sub(tape, z, ng_log(tape, sum));
}

static const ng_op log_softmax_op = {.name = "log_softmax",
                                     .backward = softmax_log_softmax_backward,
                                     .definition = log_softmax_definition};

/* ---- Along any axis ----------------------------------------------------------------------- */

/* With fewer neighbouring columns, rows are faster. */
#define FEW_COLUMNS 8

static ng_tensor *along(const char *function, ng_tape *tape, const ng_op *op, ng_tensor *x,
                        int axis)
{
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    const int last = x->shape.rank - 1, index = ng_axis_index(function, axis, last + 1);
    if (index < 0) return NULL;
    const axis_span s = span_of(x, index);
    if (index < last && s.inner < FEW_COLUMNS) {
        ng_tensor *rows = ng_transpose(tape, x, index, last);
        return ng_transpose(tape, rows ? along(function, tape, op, rows, last) : NULL, index, last);
    }
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y) return NULL;
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    void (*const forward)(const void *, void *, int64_t, int64_t, int64_t) =
        op == &softmax_op ? kernels->softmax : kernels->log_softmax;
    if (x->size > 0) forward(x->data, y->data, s.outer, s.n, s.inner);
    return ng_record(tape, op, y, &x, 1, &index, sizeof index);
}

ng_tensor *ng_softmax(ng_tape *tape, ng_tensor *x, int axis)
{
    return along("ng_softmax", tape, &softmax_op, x, axis);
}

ng_tensor *ng_log_softmax(ng_tape *tape, ng_tensor *x, int axis)
{
    return along("ng_log_softmax", tape, &log_softmax_op, x, axis);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_CALL(case_softmax, ng_softmax(tape, in[0], -1))
NG_CASE_CALL(case_softmax_first, ng_softmax(tape, in[0], 0))
NG_CASE_CALL(case_softmax_middle, ng_softmax(tape, in[0], 1))
NG_CASE_CALL(case_log_softmax_middle, ng_log_softmax(tape, in[0], 1))
NG_CASE_CALL(case_log_softmax, ng_log_softmax(tape, in[0], -1))
NG_CASE_CALL(case_log_softmax_first, ng_log_softmax(tape, in[0], 0))

const ng_case ng_op_cases_softmax[] = {
    {.name = "softmax",
     .call = case_softmax,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(3, 5)}}},
    {.name = "softmax (axis 0)",
     .call = case_softmax_first,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(4, 3)}}},
    {.name = "softmax (axis 1 of 3)",
     .call = case_softmax_middle,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(2, 4, 3)}}},
    {.name = "softmax (axis 1 of 3, columns)",
     .call = case_softmax_middle,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(2, 3, 9)}}},
    {.name = "log_softmax (axis 1 of 3, columns)",
     .call = case_log_softmax_middle,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(2, 3, 9)}}},
    {.name = "log_softmax",
     .call = case_log_softmax,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(3, 5)}}},
    {.name = "log_softmax (axis 0)",
     .call = case_log_softmax_first,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(4, 3)}}},
};
const int ng_op_cases_softmax_count = NG_CASE_COUNT(ng_op_cases_softmax);
