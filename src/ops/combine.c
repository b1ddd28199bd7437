/* Linear combinations, and a shift along an axis. */
#include "ops/op.h"

/* ---- combine: y = sum_i weights_i x_i ------------------------------------------------------- */

/* dx_i = weights_i dy; the attributes are the weights. */
static void combine_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const double *weights = node->attributes;
    for (int i = 0; i < node->n_inputs; i++)
        if (ng_wants(dx, i)) dx[i] = ng_mul_scalar(tape, dy, weights[i]);
}

static ng_status combine_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                  ng_slot *dx)
{
    const double *weights = node->attributes;
    (void)tape;
    for (int i = 0; i < node->n_inputs; i++)
        if (dx[i].data)
            ng_kernels_for(dy->dtype)->axpy(weights[i], dy->data, dx[i].data, dy->size,
                                            dx[i].accumulate);
    return NG_OK;
}

static const ng_op combine_op = {
    .name = "combine", .gradient = combine_gradient, .backward = combine_backward};

ng_tensor *ng_combine(ng_tape *tape, ng_tensor *const *tensors, const double *weights, int count)
{
    static const char function[] = "ng_combine";
    if (tape && count < 1) {
        ng_fail(NG_EVALUE, "%s: %d tensors, expected at least one", function, count);
        return NULL;
    }
    if (!ng_accepts(function, tape, count, tensors) || !ng_given(function, "weights", weights))
        return NULL;
    for (int i = 1; i < count; i++) {
        if (ng_shape_equal(tensors[i]->shape, tensors[0]->shape)) continue;
        ng_fail(NG_ESHAPE, "%s: tensor 1 is %s and tensor %d %s, expected one shape", function,
                ng_shape_print(tensors[0]->shape).text, i + 1,
                ng_shape_print(tensors[i]->shape).text);
        return NULL;
    }
    const void **data = ng_tape_memory(tape, (size_t)count * sizeof *data);
    ng_tensor *y = data ? ng_result(tape, tensors[0]->dtype, tensors[0]->shape) : NULL;
    if (!y) return NULL;
    for (int i = 0; i < count; i++) data[i] = tensors[i]->data;
    ng_kernels_for(y->dtype)->weighted_sum(data, weights, count, y->data, y->size);
    return ng_record_own(tape, &combine_op, y, tensors, count, weights,
                         (size_t)count * sizeof *weights);
}

/* ---- shift: y[i] = x[i - by], 0 where there is none ------------------------------------------ */

ng_tensor *ng_shift_with(ng_tape *tape, ng_tensor *x, ng_shift_options options)
{
    static const char function[] = "ng_shift";
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    const int along = ng_axis_named(function, options.axes, x->shape.rank);
    if (along < 0) return NULL;
    const int64_t length = x->shape.dim[along], by = options.by;
    const int64_t down = by < 0 ? 0 : by < length ? by : length;
    const int64_t up = by >= 0 ? 0 : by > -length ? -by : length;
    return ng_pad(tape, ng_slice(tape, x, along, up, length - down), along, down, up);
}
