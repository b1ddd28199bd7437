/* Sizes, broadcasting and axes of shapes. */
#include "core/shape.h"

ng_shape_text ng_shape_print(ng_shape shape)
{
    ng_shape_text result;
    char *end = result.text;
    const char *const limit = result.text + sizeof result.text;
    end += snprintf(end, (size_t)(limit - end), "(");
    for (int i = 0; i < shape.rank && i < NG_MAX_RANK; i++)
        end += snprintf(end, (size_t)(limit - end), i > 0 ? ", %lld" : "%lld",
                        (long long)shape.dim[i]);
    snprintf(end, (size_t)(limit - end), shape.rank == 1 ? ",)" : ")");
    return result;
}

static int64_t too_large(const char *function, ng_shape shape)
{
    ng_fail(NG_ESHAPE, "%s: %s has more elements than memory can hold", function,
            ng_shape_print(shape).text);
    return -1;
}

int64_t ng_shape_size(const char *function, ng_shape shape)
{
    if (shape.rank < 0 || shape.rank > NG_MAX_RANK) {
        ng_fail(NG_ESHAPE, "%s: %d dimensions, expected 0 to %d", function, shape.rank,
                NG_MAX_RANK);
        return -1;
    }
    int64_t size = 1; /* without the dimensions of 0 */
    bool empty = false;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] == 0) {
            empty = true;
            continue;
        }
        if (shape.dim[i] < 0) {
            ng_fail(NG_ESHAPE, "%s: shape %s, expected dimensions of at least 0", function,
                    ng_shape_print(shape).text);
            return -1;
        }
        if (__builtin_mul_overflow(size, shape.dim[i], &size) || size > INT64_MAX / 8)
            return too_large(function, shape);
    }
    if (empty) return 0;
    /* Every element of every dtype must be addressable. */
    return size <= PTRDIFF_MAX / 8 ? size : too_large(function, shape);
}

bool ng_shape_equal(ng_shape a, ng_shape b)
{
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i]) return false;
    return true;
}

/* The dimension of a shape that is padded with leading ones to `rank`. */
static int64_t padded_dim(ng_shape shape, int axis, int rank)
{
    const int own = axis - (rank - shape.rank);
    return own < 0 ? 1 : shape.dim[own];
}

static int joint_rank(ng_shape a, ng_shape b) { return a.rank > b.rank ? a.rank : b.rank; }

bool ng_shapes_broadcast(ng_shape a, ng_shape b)
{
    const int rank = joint_rank(a, b);
    for (int i = 0; i < rank; i++) {
        const int64_t da = padded_dim(a, i, rank), db = padded_dim(b, i, rank);
        if (da != db && da != 1 && db != 1) return false;
    }
    return true;
}

bool ng_shape_broadcast(const char *function, ng_shape a, ng_shape b, ng_shape *result)
{
    if (!ng_shapes_broadcast(a, b)) {
        ng_fail(NG_ESHAPE, "%s: shapes do not broadcast: %s and %s", function,
                ng_shape_print(a).text, ng_shape_print(b).text);
        return false;
    }
    ng_shape joint = {.rank = joint_rank(a, b)};
    for (int i = 0; i < joint.rank; i++) {
        const int64_t da = padded_dim(a, i, joint.rank);
        joint.dim[i] = da == 1 ? padded_dim(b, i, joint.rank) : da;
    }
    *result = joint;
    return ng_shape_size(function, joint) >= 0;
}

int64_t ng_shape_span(ng_shape shape, int first, int last)
{
    int64_t span = 1;
    for (int i = first; i < last; i++) span *= shape.dim[i];
    return span;
}

int ng_axis_index(const char *function, int axis, int rank)
{
    if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
    if (rank == 0)
        ng_fail(NG_ESHAPE, "%s: axis %d of a scalar, which has no axes", function, axis);
    else
        ng_fail(NG_ESHAPE, "%s: axis %d, expected %d .. %d", function, axis, -rank, rank - 1);
    return -1;
}

int ng_axis_named(const char *function, ng_axes axes, int rank)
{
    if (axes.count == 0 || axes.count == 1)
        return ng_axis_index(function, axes.count == 0 ? -1 : axes.axis[0], rank);
    ng_fail(NG_ESHAPE, "%s: %d axes, expected one", function, axes.count);
    return -1;
}

bool ng_axes_mark(const char *function, ng_axes axes, int rank, bool reduced[NG_MAX_RANK])
{
    if (axes.count < 0 || axes.count > NG_MAX_RANK) {
        ng_fail(NG_ESHAPE, "%s: %d axes, expected 0 to %d", function, axes.count, NG_MAX_RANK);
        return false;
    }
    for (int i = 0; i < NG_MAX_RANK; i++) reduced[i] = axes.count == 0 && i < rank;
    for (int i = 0; i < axes.count; i++) {
        const int axis = ng_axis_index(function, axes.axis[i], rank);
        if (axis < 0) return false;
        if (reduced[axis]) {
            ng_fail(NG_ESHAPE, "%s: axis %d is named twice", function, axes.axis[i]);
            return false;
        }
        reduced[axis] = true;
    }
    return true;
}
