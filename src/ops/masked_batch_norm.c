/* Batch normalization where some positions are padding. The others are gathered as rows (M, C):
 *
 *     y = scatter(batch_norm(gather(x)))
 *
 * so that statistics, gradients of any order, running statistics and groups are those of a batch
 * without the padding. At padding y is 0, and so is the gradient to x. */
#include "ops/op.h"

/* Whether the mask has a number for each sample of x (N, C, ...), or for each position. */
static bool mask_fits(const ng_batch_call *o)
{
    const ng_tensor *mask = o->mask;
    const ng_shape x = o->x->shape;
    ng_shape positions = {.rank = x.rank - 1, .dim = {x.dim[0]}};
    for (int i = 2; i < x.rank; i++) positions.dim[i - 1] = x.dim[i];
    if (ng_shape_equal(mask->shape, NG_SHAPE(x.dim[0])) || ng_shape_equal(mask->shape, positions))
        return true;
    ng_fail(NG_ESHAPE, "%s: mask is %s and x %s, expected mask %s%s%s", o->function,
            ng_shape_print(mask->shape).text, ng_shape_print(x).text,
            ng_shape_print(NG_SHAPE(x.dim[0])).text, x.rank > 2 ? " or " : "",
            x.rank > 2 ? ng_shape_print(positions).text : "");
    return false;
}

/* The rows (N L, C) of x (N, C, ...) with L positions, and back. */
static ng_tensor *masked_rows_of(ng_tape *tape, ng_tensor *x)
{
    const ng_shape s = x->shape;
    if (s.rank == 2) return x;
    x = ng_transpose(tape, ng_by_positions(tape, x), 1, 2);
    return ng_reshape(tape, x, NG_SHAPE(s.dim[0] * ng_shape_span(s, 2, s.rank), s.dim[1]));
}

static ng_tensor *from_rows(ng_tape *tape, ng_tensor *rows, ng_shape s)
{
    if (s.rank == 2) return rows;
    rows = ng_reshape(tape, rows, NG_SHAPE(s.dim[0], ng_shape_span(s, 2, s.rank), s.dim[1]));
    return ng_reshape(tape, ng_transpose(tape, rows, 1, 2), s);
}

/* The rows that are no padding. */
static ng_tensor *real_rows(ng_tape *tape, const ng_tensor *mask, int64_t rows)
{
    const int64_t each = mask->size > 0 ? rows / mask->size : 0;
    int64_t count = 0;
    for (int64_t i = 0; i < mask->size; i++) count += ng_tensor_load(mask, i) != 0;
    ng_tensor *index = ng_result(tape, NG_I64, NG_SHAPE(count * each));
    if (!index) return NULL;
    int64_t *to = index->data;
    for (int64_t i = 0; i < mask->size; i++)
        for (int64_t j = 0; j < each && ng_tensor_load(mask, i) != 0; j++) *to++ = i * each + j;
    return index;
}

bool ng_batch_unpad(ng_tape *tape, const ng_batch_call *call, ng_batch_call *rows,
                    ng_tensor **index)
{
    ng_column_norm_shape shape;
    *rows = *call;
    *index = NULL;
    if (!call->mask || ng_is_none(call->mask)) return true;
    if (!ng_batch_accepts(tape, call, &shape) ||
        !ng_usable(call->function, "mask", 0, tape, call->mask) || !mask_fits(call))
        return false;
    ng_tensor *all = masked_rows_of(tape, call->x);
    *index = all ? real_rows(tape, call->mask, all->shape.dim[0]) : NULL;
    if (!*index) return false;
    if (call->training && !ng_is_joint(call) && (*index)->size < 2) {
        ng_fail(NG_ESHAPE,
                "%s: training needs more than one value per channel, the mask leaves %lld of %lld",
                call->function, (long long)(*index)->size, (long long)all->shape.dim[0]);
        return false;
    }
    rows->x = ng_gather_rows(tape, all, *index);
    return rows->x;
}

ng_tensor *ng_batch_pad(ng_tape *tape, ng_tensor *y, ng_tensor *index, const ng_tensor *x)
{
    if (!y || !index) return y;
    const int64_t count = x->shape.dim[0] * ng_shape_span(x->shape, 2, x->shape.rank);
    return from_rows(tape, ng_scatter_add_rows(tape, y, index, count), x->shape);
}
