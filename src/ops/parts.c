/* squeeze, unsqueeze, stack, chunk, roll, repeat, tril and triu, made of the ops of layout.c. */
#include "ops/op.h"

ng_tensor *ng_squeeze(ng_tape *tape, ng_tensor *x, int axis)
{
    static const char function[] = "ng_squeeze";
    if (!ng_accepts_any(function, tape, 1, &x)) return NULL;
    const int along = ng_axis_index(function, axis, x->shape.rank);
    if (along < 0) return NULL;
    if (x->shape.dim[along] != 1) {
        ng_fail(NG_ESHAPE, "%s: axis %d of %s, expected one of length 1", function, along,
                ng_shape_print(x->shape).text);
        return NULL;
    }
    ng_shape shape = {.rank = x->shape.rank - 1};
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = x->shape.dim[i < along ? i : i + 1];
    return ng_reshape(tape, x, shape);
}

static ng_tensor *unsqueezed(const char *function, ng_tape *tape, ng_tensor *x, int axis)
{
    if (x->shape.rank == NG_MAX_RANK) {
        ng_fail(NG_ESHAPE, "%s: %s has %d dimensions, expected at most 7", function,
                ng_shape_print(x->shape).text, NG_MAX_RANK);
        return NULL;
    }
    const int along = ng_axis_index(function, axis, x->shape.rank + 1);
    if (along < 0) return NULL;
    ng_shape shape = {.rank = x->shape.rank + 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dim[i] = i == along ? 1 : x->shape.dim[i < along ? i : i - 1];
    return ng_reshape(tape, x, shape);
}

ng_tensor *ng_unsqueeze(ng_tape *tape, ng_tensor *x, int axis)
{
    static const char function[] = "ng_unsqueeze";
    return ng_accepts_any(function, tape, 1, &x) ? unsqueezed(function, tape, x, axis) : NULL;
}

ng_tensor *ng_stack(ng_tape *tape, ng_tensor *const *parts, int count, int axis)
{
    static const char function[] = "ng_stack";
    if (tape && count < 1) {
        ng_fail(NG_EVALUE, "%s: %d parts, expected at least one", function, count);
        return NULL;
    }
    if (!ng_accepts_any(function, tape, count, parts)) return NULL;
    for (int i = 1; i < count; i++) {
        if (ng_shape_equal(parts[i]->shape, parts[0]->shape)) continue;
        ng_fail(NG_ESHAPE, "%s: part 1 is %s and part %d %s, expected one shape", function,
                ng_shape_print(parts[0]->shape).text, i + 1, ng_shape_print(parts[i]->shape).text);
        return NULL;
    }
    ng_tensor **deeper = ng_tape_memory(tape, (size_t)count * sizeof(ng_tensor *));
    if (!deeper) return NULL;
    for (int i = 0; i < count; i++)
        if (!(deeper[i] = unsqueezed(function, tape, parts[i], axis))) return NULL;
    const int along = ng_axis_index(function, axis, parts[0]->shape.rank + 1);
    return ng_concat(tape, deeper, count, along);
}

ng_status ng_chunk(ng_tape *tape, ng_tensor *x, int count, int axis, ng_tensor **chunks)
{
    static const char function[] = "ng_chunk";
    if (!ng_accepts_any(function, tape, 1, &x) || !ng_given(function, "chunks", chunks))
        return ng_newest_status();
    const int along = ng_axis_index(function, axis, x->shape.rank);
    if (along < 0) return ng_newest_status();
    const int64_t length = x->shape.dim[along];
    if (count < 1 || length % count != 0)
        return ng_fail(NG_ESHAPE,
                       "%s: %d parts of axis %d of %s, expected a number that divides it", function,
                       count, along, ng_shape_print(x->shape).text);
    ng_tensor **parts = ng_tape_memory(tape, (size_t)count * sizeof(ng_tensor *));
    if (!parts) return ng_newest_status();
    const int64_t each = length / count;
    for (int i = 0; i < count; i++)
        if (!(parts[i] = ng_slice(tape, x, along, i * each, (i + 1) * each)))
            return ng_newest_status();
    for (int i = 0; i < count; i++) chunks[i] = parts[i];
    return NG_OK;
}

ng_tensor *ng_roll_with(ng_tape *tape, ng_tensor *x, ng_shift_options options)
{
    static const char function[] = "ng_roll";
    if (!ng_accepts_any(function, tape, 1, &x)) return NULL;
    const int along = ng_axis_named(function, options.axes, x->shape.rank);
    if (along < 0) return NULL;
    const int64_t n = x->shape.dim[along], rest = n > 0 ? options.by % n : 0;
    if (rest == 0) return x;
    const int64_t first = rest > 0 ? n - rest : -rest; /* the element that comes first */
    return ng_concat(
        tape, NG_TENSORS(ng_slice(tape, x, along, first, n), ng_slice(tape, x, along, 0, first)),
        along);
}

ng_tensor *ng_repeat(ng_tape *tape, ng_tensor *x, ng_shape counts)
{
    static const char function[] = "ng_repeat";
    if (!ng_accepts_any(function, tape, 1, &x)) return NULL;
    const int leading = counts.rank - x->shape.rank;
    if (leading < 0 || counts.rank > NG_MAX_RANK) {
        ng_fail(NG_ESHAPE, "%s: counts %s for x %s, expected one for each dimension, at most %d",
                function, ng_shape_print(counts).text, ng_shape_print(x->shape).text, NG_MAX_RANK);
        return NULL;
    }
    ng_shape shape = {.rank = counts.rank};
    for (int i = 0; i < shape.rank; i++) shape.dim[i] = i < leading ? 1 : x->shape.dim[i - leading];
    for (int i = 0; x && i < shape.rank; i++) {
        const int64_t outer = ng_shape_span(shape, 0, i), n = counts.dim[i];
        const int64_t inner = ng_shape_span(shape, i, shape.rank);
        if (ng_shape_size(function, NG_SHAPE(shape.dim[i], n)) < 0) return NULL;
        x = ng_reshape(tape, x, NG_SHAPE(outer, 1, inner));
        x = ng_broadcast_to(tape, x, NG_SHAPE(outer, n, inner));
        shape.dim[i] *= n;
    }
    return ng_reshape(tape, x, shape);
}

/* ---- Triangles: the rest is 0, whatever stood there ---------------------------------------- */

static int64_t between(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* 1 where column - row <= diagonal (lower), or >= (upper), of a matrix (rows, columns): a row
 * changes at column row + first. */
static ng_tensor *triangle(ng_tape *tape, const ng_tensor *x, int64_t diagonal, bool upper)
{
    const int64_t rows = ng_dim(x, -2), columns = ng_dim(x, -1);
    const int64_t first = between(diagonal, -rows, columns) + !upper;
    const int64_t bytes = (int64_t)ng_dtype_bytes(x->dtype);
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    ng_tensor *mask = ng_result(tape, x->dtype, NG_SHAPE(rows, columns));
    for (int64_t row = 0; mask && mask->size > 0 && row < rows; row++) {
        const int64_t left = between(row + first, 0, columns);
        char *const numbers = (char *)mask->data + row * columns * bytes;
        kernels->fill(numbers, left, !upper);
        kernels->fill(numbers + left * bytes, columns - left, upper);
    }
    return mask;
}

static ng_tensor *triangular(const char *function, ng_tape *tape, ng_tensor *x, int64_t diagonal,
                             bool upper)
{
    if (!ng_accepts(function, tape, 1, &x) ||
        !ng_expect_shape(x->shape.rank >= 2, function, "x", x, "(..., rows, columns)"))
        return NULL;
    ng_tensor *mask = triangle(tape, x, diagonal, upper);
    return mask ? ng_where(tape, mask, x, ng_full(tape, x->dtype, NG_SCALAR, 0)) : NULL;
}

ng_tensor *ng_tril(ng_tape *tape, ng_tensor *x, int64_t diagonal)
{
    return triangular("ng_tril", tape, x, diagonal, false);
}

ng_tensor *ng_triu(ng_tape *tape, ng_tensor *x, int64_t diagonal)
{
    return triangular("ng_triu", tape, x, diagonal, true);
}
