/* Reshape, permute, flip, broadcast, slice, pad, concat: elements of any dtype in another place. */
#include "ops/op.h"
#include <string.h>

/* ---- reshape: the same memory ------------------------------------------------------------- */

static void reshape_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_reshape(tape, dy, node->inputs[0]->shape);
}

static const ng_op reshape_op = {.name = "reshape", .gradient = reshape_gradient};

/* Replaces a dimension -1 by the size over the product of the others. */
static bool fill_open_dimension(const ng_tensor *x, ng_shape *shape)
{
    if (shape->rank < 0 || shape->rank > NG_MAX_RANK) return true;
    const ng_shape asked = *shape;
    int open = -1;
    int64_t others = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (asked.dim[i] != -1) {
            if (__builtin_mul_overflow(others, asked.dim[i], &others)) return true;
        } else if (open < 0) {
            open = i;
        } else {
            ng_fail(NG_ESHAPE, "ng_reshape: shape %s, expected at most one dimension -1",
                    ng_shape_print(asked).text);
            return false;
        }
    }
    if (open < 0) return true;
    if (others <= 0 || x->size % others != 0) {
        ng_fail(NG_ESHAPE,
                "ng_reshape: x is %s with %lld elements, expected a multiple of the rest of %s",
                ng_shape_print(x->shape).text, (long long)x->size, ng_shape_print(asked).text);
        return false;
    }
    shape->dim[open] = x->size / others;
    return true;
}

ng_tensor *ng_reshape(ng_tape *tape, ng_tensor *x, ng_shape shape)
{
    if (!ng_accepts_any("ng_reshape", tape, 1, &x)) return NULL;
    if (!fill_open_dimension(x, &shape)) return NULL;
    if (ng_shape_equal(x->shape, shape)) return x;
    const int64_t size = ng_shape_size("ng_reshape", shape);
    if (size < 0) return NULL;
    if (size != x->size) {
        ng_fail(NG_ESHAPE, "ng_reshape: x is %s with %lld elements, but shape %s has %lld",
                ng_shape_print(x->shape).text, (long long)x->size, ng_shape_print(shape).text,
                (long long)size);
        return NULL;
    }
    ng_tensor *y = ng_result_view(tape, x, shape);
    return y ? ng_record_own(tape, &reshape_op, y, &x, 1, NULL, 0) : NULL;
}

/* ---- permute: y's axis i is x's axis axes[i] ----------------------------------------------- */

/* The inverse: x's axis axes[i] is y's axis i. */
static void permute_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const ng_axes *axes = node->attributes;
    ng_axes inverse = {.count = axes->count};
    for (int i = 0; i < axes->count; i++) inverse.axis[axes->axis[i]] = i;
    dx[0] = ng_permute(tape, dy, inverse);
}

static const ng_op permute_op = {.name = "permute", .gradient = permute_gradient};

/* axes: each of 0 .. rank - 1 once */
static ng_tensor *permuted(ng_tape *tape, ng_tensor *x, ng_axes axes)
{
    int64_t x_strides[NG_MAX_RANK], x_steps[NG_MAX_RANK], y_steps[NG_MAX_RANK];
    ng_strides(x->shape, x_strides);
    ng_shape shape = {.rank = axes.count};
    for (int i = 0; i < axes.count; i++) {
        shape.dim[i] = x->shape.dim[axes.axis[i]];
        x_steps[i] = x_strides[axes.axis[i]];
    }
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y) return NULL;
    ng_strides(shape, y_steps);
    const ng_walk walk = ng_walk_strided(shape, x_steps, y_steps);
    ng_copy_walk(&walk, x->data, y->data, ng_dtype_bytes(x->dtype));
    return ng_record_own(tape, &permute_op, y, &x, 1, &axes, sizeof axes);
}

ng_tensor *ng_permute(ng_tape *tape, ng_tensor *x, ng_axes axes)
{
    if (!ng_accepts_any("ng_permute", tape, 1, &x)) return NULL;
    if (axes.count != x->shape.rank) {
        ng_fail(NG_ESHAPE, "ng_permute: %d axes for %s, expected %d", axes.count,
                ng_shape_print(x->shape).text, x->shape.rank);
        return NULL;
    }
    bool named[NG_MAX_RANK];
    if (!ng_axes_mark("ng_permute", axes, x->shape.rank, named)) return NULL;
    for (int i = 0; i < axes.count; i++)
        if (axes.axis[i] < 0) axes.axis[i] += axes.count;
    return permuted(tape, x, axes);
}

ng_tensor *ng_transpose(ng_tape *tape, ng_tensor *x, int axis, int other)
{
    if (!ng_accepts_any("ng_transpose", tape, 1, &x)) return NULL;
    const int rank = x->shape.rank;
    const int one = ng_axis_index("ng_transpose", axis, rank);
    const int two = one < 0 ? -1 : ng_axis_index("ng_transpose", other, rank);
    if (one < 0 || two < 0) return NULL;
    ng_axes axes = {.count = rank};
    for (int i = 0; i < rank; i++) axes.axis[i] = i == one ? two : i == two ? one : i;
    return permuted(tape, x, axes);
}

/* ---- flip: along some axes in reverse ------------------------------------------------------- */

static void flip_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_flip(tape, dy, .axes = *(const ng_axes *)node->attributes);
}

static const ng_op flip_op = {.name = "flip", .gradient = flip_gradient};

ng_tensor *ng_flip_with(ng_tape *tape, ng_axis_options options)
{
    const ng_axes axes = options.axes.count == 0 ? NG_AXES(-1) : options.axes;
    bool reversed[NG_MAX_RANK];
    ng_tensor *x = options.x;
    if (!ng_accepts_any("ng_flip", tape, 1, &x) ||
        !ng_axes_mark("ng_flip", axes, x->shape.rank, reversed))
        return NULL;
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y) return NULL;
    int64_t x_steps[NG_MAX_RANK], y_steps[NG_MAX_RANK], first = 0;
    ng_strides(x->shape, y_steps);
    for (int i = 0; i < x->shape.rank; i++) {
        x_steps[i] = reversed[i] ? -y_steps[i] : y_steps[i];
        if (reversed[i]) first += (x->shape.dim[i] - 1) * y_steps[i];
    }
    const int64_t bytes = (int64_t)ng_dtype_bytes(x->dtype);
    const ng_walk walk = ng_walk_strided(x->shape, x_steps, y_steps);
    if (x->size > 0)
        ng_copy_walk(&walk, (const char *)x->data + first * bytes, y->data, (size_t)bytes);
    return ng_record_own(tape, &flip_op, y, &x, 1, &axes, sizeof axes);
}

/* ---- broadcast_to: x repeated along axes of length 1, and along new leading ones ------------ */

static void broadcast_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_sum_to(tape, dy, node->inputs[0]->shape);
}

static const ng_op broadcast_op = {.name = "broadcast_to", .gradient = broadcast_gradient};

static bool broadcasts_to(ng_shape shape, ng_shape wide)
{
    const int leading = wide.rank - shape.rank;
    for (int i = 0; i < shape.rank; i++)
        if (leading < 0 || (shape.dim[i] != 1 && shape.dim[i] != wide.dim[i + leading]))
            return false;
    return true;
}

ng_tensor *ng_broadcast_to(ng_tape *tape, ng_tensor *x, ng_shape shape)
{
    if (!ng_accepts_any("ng_broadcast_to", tape, 1, &x)) return NULL;
    if (ng_shape_equal(x->shape, shape)) return x;
    if (ng_shape_size("ng_broadcast_to", shape) < 0) return NULL;
    if (!broadcasts_to(x->shape, shape)) {
        ng_fail(NG_ESHAPE, "ng_broadcast_to: %s does not broadcast to %s",
                ng_shape_print(x->shape).text, ng_shape_print(shape).text);
        return NULL;
    }
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y) return NULL;
    const ng_walk walk = ng_walk_broadcast(shape, x->shape, shape);
    ng_copy_walk(&walk, x->data, y->data, ng_dtype_bytes(x->dtype));
    return ng_record_own(tape, &broadcast_op, y, &x, 1, NULL, 0);
}

/* ---- slice, pad, concat: a part of an axis is one block of memory per index before it ------- */

/* A part along an axis: `count` blocks of `length` elements, `step` apart, the first at `start`. */
typedef struct {
    int64_t count, length, step, start;
} blocks;

static blocks layout_blocks_of(ng_shape shape, int axis, int64_t begin, int64_t end)
{
    const int64_t inner = ng_shape_span(shape, axis + 1, shape.rank);
    return (blocks){.count = ng_shape_span(shape, 0, axis),
                    .length = (end - begin) * inner,
                    .step = shape.dim[axis] * inner,
                    .start = begin * inner};
}

static blocks blocks_of_all(ng_shape shape, int axis)
{
    return layout_blocks_of(shape, axis, 0, shape.dim[axis]);
}

static char *element_block(const void *data, const blocks *b, int64_t i, size_t bytes)
{
    return (char *)data + (size_t)(b->start + i * b->step) * bytes;
}

static void copy_blocks(ng_dtype dtype, const void *x, blocks x_blocks, void *y, blocks y_blocks)
{
    const size_t bytes = ng_dtype_bytes(dtype);
    if (x_blocks.count == 0 || x_blocks.length == 0) return;
    const ng_walk walk =
        ng_walk_strided(NG_SHAPE(x_blocks.count, x_blocks.length), (int64_t[]){x_blocks.step, 1},
                        (int64_t[]){y_blocks.step, 1});
    ng_copy_walk(&walk, element_block(x, &x_blocks, 0, bytes),
                 element_block(y, &y_blocks, 0, bytes), bytes);
}

static void add_blocks(ng_dtype dtype, const void *x, blocks x_blocks, void *y, blocks y_blocks)
{
    const ng_kernels *kernels = ng_kernels_for(dtype);
    const size_t bytes = ng_dtype_bytes(dtype);
    for (int64_t i = 0; i < x_blocks.count; i++)
        kernels->add_to(element_block(x, &x_blocks, i, bytes),
                        element_block(y, &y_blocks, i, bytes), x_blocks.length);
}

/* The part of the input that a slice takes, or of the output that the input of a pad fills. */
typedef struct {
    int axis;
    int64_t begin, end;
} part;

static void slice_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const part *p = node->attributes;
    dx[0] = ng_pad(tape, dy, p->axis, p->begin, node->inputs[0]->shape.dim[p->axis] - p->end);
}

/* dx[..., from:to, ...] += dy */
static ng_status slice_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                ng_slot *dx)
{
    (void)tape;
    const part *p = node->attributes;
    const ng_tensor *x = node->inputs[0];
    const blocks dy_blocks = blocks_of_all(dy->shape, p->axis);
    const blocks dx_blocks = layout_blocks_of(x->shape, p->axis, p->begin, p->end);
    if (!dx[0].accumulate) ng_kernels_for(x->dtype)->fill(dx[0].data, x->size, 0);
    if (dx[0].accumulate)
        add_blocks(x->dtype, dy->data, dy_blocks, dx[0].data, dx_blocks);
    else
        copy_blocks(x->dtype, dy->data, dy_blocks, dx[0].data, dx_blocks);
    return NG_OK;
}

static const ng_op slice_op = {
    .name = "slice", .gradient = slice_gradient, .backward = slice_backward};

/* Converts negative bounds; true if 0 <= from <= to <= dim. */
static bool resolve_bounds(ng_shape shape, int axis, int64_t *begin, int64_t *end)
{
    const int64_t dim = shape.dim[axis], first = *begin, last = *end == NG_END ? dim : *end;
    if (first < -dim || first > dim || last < -dim || last > dim) {
        ng_fail(NG_ESHAPE, "ng_slice: %lld:%lld along axis %d of %s, expected bounds %lld .. %lld",
                (long long)first, (long long)last, axis, ng_shape_print(shape).text,
                (long long)-dim, (long long)dim);
        return false;
    }
    *begin = first < 0 ? first + dim : first;
    *end = last < 0 ? last + dim : last;
    if (*begin <= *end) return true;
    ng_fail(NG_ESHAPE, "ng_slice: %lld:%lld along axis %d of %s ends before it starts",
            (long long)first, (long long)last, axis, ng_shape_print(shape).text);
    return false;
}

ng_tensor *ng_slice(ng_tape *tape, ng_tensor *x, int axis, int64_t begin, int64_t end)
{
    if (!ng_accepts_any("ng_slice", tape, 1, &x)) return NULL;
    const int along = ng_axis_index("ng_slice", axis, x->shape.rank);
    if (along < 0 || !resolve_bounds(x->shape, along, &begin, &end)) return NULL;
    ng_shape shape = x->shape;
    shape.dim[along] = end - begin;
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y) return NULL;
    copy_blocks(x->dtype, x->data, layout_blocks_of(x->shape, along, begin, end), y->data,
                blocks_of_all(shape, along));
    const part attributes = {along, begin, end};
    return ng_record_own(tape, &slice_op, y, &x, 1, &attributes, sizeof attributes);
}

bool ng_has_halves(const char *function, const ng_tensor *x)
{
    const bool even = x->shape.rank >= 1 && ng_dim(x, -1) % 2 == 0;
    return ng_expect_shape(even, function, "x", x, "an even last dimension");
}

ng_tensor *ng_features(ng_tape *tape, ng_tensor *x, int64_t i, int64_t n)
{
    return ng_slice(tape, x, -1, i * n, (i + 1) * n);
}

static void pad_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const part *p = node->attributes;
    dx[0] = ng_slice(tape, dy, p->axis, p->begin, p->end);
}

static const ng_op pad_op = {.name = "pad", .gradient = pad_gradient};

ng_tensor *ng_pad(ng_tape *tape, ng_tensor *x, int axis, int64_t before, int64_t after)
{
    if (!ng_accepts_any("ng_pad", tape, 1, &x)) return NULL;
    const int along = ng_axis_index("ng_pad", axis, x->shape.rank);
    if (along < 0) return NULL;
    ng_shape shape = x->shape;
    int64_t both;
    if (before < 0 || after < 0 || __builtin_add_overflow(before, after, &both) ||
        __builtin_add_overflow(shape.dim[along], both, &shape.dim[along])) {
        ng_fail(NG_EVALUE, "ng_pad: %lld before and %lld after, expected numbers from 0",
                (long long)before, (long long)after);
        return NULL;
    }
    if (ng_shape_size("ng_pad", shape) < 0) return NULL;
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y) return NULL;
    const part attributes = {along, before, before + x->shape.dim[along]};
    memset(y->data, 0, (size_t)y->size * ng_dtype_bytes(y->dtype));
    copy_blocks(x->dtype, x->data, blocks_of_all(x->shape, along), y->data,
                layout_blocks_of(shape, along, attributes.begin, attributes.end));
    return ng_record_own(tape, &pad_op, y, &x, 1, &attributes, sizeof attributes);
}

static void concat_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const int axis = *(const int *)node->attributes;
    int64_t begin = 0;
    for (int i = 0; i < node->n_inputs; i++) {
        const int64_t end = begin + node->inputs[i]->shape.dim[axis];
        if (ng_wants(dx, i)) dx[i] = ng_slice(tape, dy, axis, begin, end);
        begin = end;
    }
}

static const ng_op concat_op = {.name = "concat", .gradient = concat_gradient};

/* The shape of the first part with the sum of all lengths along the axis. */
static bool layout_joint_shape(ng_tensor *const *parts, int count, int axis, ng_shape *joint)
{
    *joint = parts[0]->shape;
    int64_t *length = &joint->dim[axis];
    for (int i = 1; i < count; i++) {
        const ng_shape shape = parts[i]->shape;
        ng_shape expected = parts[0]->shape;
        expected.dim[axis] = shape.dim[axis];
        if (!ng_shape_equal(expected, shape)) {
            ng_fail(NG_ESHAPE,
                    "ng_concat: %s and %s, expected shapes that differ along axis %d only",
                    ng_shape_print(parts[0]->shape).text, ng_shape_print(shape).text, axis);
            return false;
        }
        if (__builtin_add_overflow(*length, shape.dim[axis], length)) {
            ng_fail(NG_ESHAPE, "ng_concat: axis %d has more elements than memory can hold", axis);
            return false;
        }
    }
    return true;
}

ng_tensor *ng_concat(ng_tape *tape, ng_tensor *const *parts, int count, int axis)
{
    if (tape && count < 1) {
        ng_fail(NG_EVALUE, "ng_concat: %d parts, expected at least one", count);
        return NULL;
    }
    if (!ng_accepts_any("ng_concat", tape, count, parts)) return NULL;
    const int along = ng_axis_index("ng_concat", axis, parts[0]->shape.rank);
    ng_shape shape;
    if (along < 0 || !layout_joint_shape(parts, count, along, &shape)) return NULL;
    ng_tensor *y = ng_result(tape, parts[0]->dtype, shape);
    if (!y) return NULL;
    int64_t begin = 0;
    for (int i = 0; i < count; i++) {
        const int64_t end = begin + parts[i]->shape.dim[along];
        copy_blocks(y->dtype, parts[i]->data, blocks_of_all(parts[i]->shape, along), y->data,
                    layout_blocks_of(shape, along, begin, end));
        begin = end;
    }
    return ng_record_own(tape, &concat_op, y, parts, count, &along, sizeof along);
}
