/* Shapes and places: reshape, transpose, slice, join; select, sort.
 *
 *     ng_tensor *rows = ng_reshape(tape, x, NG_SHAPE(-1, 8));
 *     ng_tensor *left = ng_slice(tape, rows, -1, 0, 4);
 *     ng_tensor *both = ng_concat(tape, NG_TENSORS(left, left), 0);
 *     ng_tensor *index, *largest = ng_top_k(tape, both, 3, .index = &index);
 *     ng_tensor *words = ng_gather_rows(tape, table, labels);
 *
 *     ng_reshape(tape, x, shape)                     the same elements in another shape
 *     ng_permute(tape, x, axes)                      y's axis i is x's axis axes[i]
 *     ng_transpose(tape, x, axis, other)             swaps two axes
 *     ng_broadcast_to(tape, x, shape)                repeats x along axes of length 1
 *     ng_squeeze(tape, x, axis)                      removes an axis of length 1
 *     ng_unsqueeze(tape, x, axis)                    adds an axis of length 1
 *     ng_slice(tape, x, axis, begin, end)            x[..., begin:end, ...]
 *     ng_pad(tape, x, axis, before, after)           zeros before and after x
 *     ng_concat(tape, parts, count, axis)            joins along an axis
 *     ng_stack(tape, parts, count, axis)             joins along a new axis
 *     ng_chunk(tape, x, count, axis, chunks)         splits into equal parts
 *     ng_repeat(tape, x, counts)                     x side by side
 *     ng_flip(tape, x)                               reverses an axis
 *     ng_roll(tape, x, by)                           y[(i + by) mod n] = x[i]
 *     ng_shift(tape, x, by)                          y[i] = x[i - by], zeros move in
 *     ng_tril(tape, x, diagonal)                     the lower triangle, else 0
 *     ng_triu(tape, x, diagonal)                     the upper triangle, else 0
 *     ng_gather_rows(tape, table, index)             y[i, :] = table[index[i], :]
 *     ng_scatter_add_rows(tape, x, index, n)         y[index[i], :] += x[i, :]
 *     ng_take_along_axis(tape, x, index)             y[j] = x[index[j]]
 *     ng_scatter_add_along_axis(tape, x, index, n)   y[index[j]] += x[j]
 *     ng_sort(tape, x)                               the elements in order
 *     ng_argsort(tape, x)                            their indices
 *     ng_top_k(tape, x, k)                           the k largest
 *
 * x may be int64 too, except in ng_shift, ng_tril, ng_triu, the scatter-adds and the sorts.
 *
 * An operation that changes nothing returns x itself, for example a reshape to x's own shape. The
 * gradient of the result is then that of x.
 */
#ifndef NORMGRAD_SHAPES_H
#define NORMGRAD_SHAPES_H

#include <normgrad/reductions.h>

NG_BEGIN_C

/* ---- Shape -------------------------------------------------------------------------------- */

/* The same elements in another shape, in shared memory. One dimension may be -1: it is computed
 * from the others. */
NG_API ng_tensor *ng_reshape(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* Copies x with its axes in another order, ng_permute(tape, x, NG_AXES(0, 2, 1)): y's axis i is x's
 * axis axes.axis[i]. */
NG_API ng_tensor *ng_permute(ng_tape *tape, ng_tensor *x, ng_axes axes);

/* Swaps two axes; repeats x along axes of length 1 up to `shape`. */
NG_API ng_tensor *ng_transpose(ng_tape *tape, ng_tensor *x, int axis, int other);
NG_API ng_tensor *ng_broadcast_to(ng_tape *tape, ng_tensor *x, ng_shape shape);

/* Removes an axis of length 1; adds one, which is axis `axis` of the result. */
NG_API ng_tensor *ng_squeeze(ng_tape *tape, ng_tensor *x, int axis);
NG_API ng_tensor *ng_unsqueeze(ng_tape *tape, ng_tensor *x, int axis);

/* y = x[..., begin:end, ...] along an axis. Negative bounds count from its end, which is NG_END. */
#define NG_END INT64_MAX
NG_API ng_tensor *ng_slice(ng_tape *tape, ng_tensor *x, int axis, int64_t begin, int64_t end);

/* Zeros before and after x along an axis: the gradient of ng_slice. */
NG_API ng_tensor *ng_pad(ng_tape *tape, ng_tensor *x, int axis, int64_t before, int64_t after);

/* Joins tensors along an axis, ng_concat(tape, NG_TENSORS(a, b), 0); ng_stack joins tensors of one
 * shape along a new axis. */
NG_API ng_tensor *ng_concat(ng_tape *tape, ng_tensor *const *parts, int count, int axis);
NG_API ng_tensor *ng_stack(ng_tape *tape, ng_tensor *const *parts, int count, int axis);

/* Splits x along an axis into `count` equal parts; chunks[i] is the i-th. `count` must divide the
 * length of the axis. After an error chunks is unchanged. */
NG_API ng_status ng_chunk(ng_tape *tape, ng_tensor *x, int count, int axis, ng_tensor **chunks);

/* Repeats x counts.dim[i] times along dimension i: (3, 2) with NG_SHAPE(2, 1, 3) -> (2, 3, 6).
 * Dimensions that x lacks are leading ones of length 1. NumPy's tile. */
NG_API ng_tensor *ng_repeat(ng_tape *tape, ng_tensor *x, ng_shape counts);

/* The elements along one or more axes in reverse: ng_flip(tape, x, .axes = NG_AXES(0, 1)). */
#define ng_flip(tape, ...) ng_flip_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_flip_with(ng_tape *tape, ng_axis_options options);

/* Moves the elements by `by` places along an axis of length n; `by` may be negative. What ng_roll
 * moves out at one end comes in at the other: y[(i + by) mod n] = x[i]. ng_shift moves in zeros:
 * y[i] = x[i - by], or 0 where there is no such element. */
typedef struct {
    ng_axes axes; /* default: the last */
    int64_t by;
} ng_shift_options;
#define ng_roll(tape, x, ...) ng_roll_with(tape, x, NG_NAMED(ng_shift_options, by, __VA_ARGS__))
#define ng_shift(tape, x, ...) ng_shift_with(tape, x, NG_NAMED(ng_shift_options, by, __VA_ARGS__))
NG_API ng_tensor *ng_roll_with(ng_tape *tape, ng_tensor *x, ng_shift_options options);
NG_API ng_tensor *ng_shift_with(ng_tape *tape, ng_tensor *x, ng_shift_options options);

/* x (..., rows, columns) where column - row <= diagonal (tril) or >= diagonal (triu), else 0. */
NG_API ng_tensor *ng_tril(ng_tape *tape, ng_tensor *x, int64_t diagonal);
NG_API ng_tensor *ng_triu(ng_tape *tape, ng_tensor *x, int64_t diagonal);

/* ---- Selection ---------------------------------------------------------------------------- */

/* y[i, :] = table[index[i], :]: table (rows, ...), int64 index of any shape -> (index..., ...).
 * The gradient is summed in double. */
NG_API ng_tensor *ng_gather_rows(ng_tape *tape, ng_tensor *table, ng_tensor *index);

/* y[index[i], :] += x[i, :], y of `rows` rows, summed in double: the gradient of ng_gather_rows. */
NG_API ng_tensor *ng_scatter_add_rows(ng_tape *tape, ng_tensor *x, ng_tensor *index, int64_t rows);

/* y[.., j, ..] = x[.., index[.., j, ..], ..] along an axis. The int64 index has x's shape, except
 * for the length of that axis, which y gets from it. It applies the result of ng_argsort. */
typedef struct {
    ng_axes axes; /* default: the last */
    ng_tensor *index;
} ng_take_along_axis_options;
#define ng_take_along_axis(tape, x, ...)                                                           \
    ng_take_along_axis_with(tape, x, NG_NAMED(ng_take_along_axis_options, index, __VA_ARGS__))
NG_API ng_tensor *ng_take_along_axis_with(ng_tape *tape, ng_tensor *x,
                                          ng_take_along_axis_options options);

/* y[.., index[.., j, ..], ..] += x[.., j, ..], where y has `length` elements along the axis; x and
 * index have one shape. It is the gradient of ng_take_along_axis. */
typedef struct {
    ng_axes axes; /* default: the last */
    int64_t length;
} ng_scatter_add_along_axis_options;
#define ng_scatter_add_along_axis(tape, x, index, ...)                                             \
    ng_scatter_add_along_axis_with(                                                                \
        tape, x, index, NG_NAMED(ng_scatter_add_along_axis_options, length, __VA_ARGS__))
NG_API ng_tensor *ng_scatter_add_along_axis_with(ng_tape *tape, ng_tensor *x, ng_tensor *index,
                                                 ng_scatter_add_along_axis_options options);

/* ng_sort sorts x along an axis, the smallest first; ng_argsort returns the int64 indices of the
 * sorted elements. The gradient of an element goes to its place in x. Equal elements keep their
 * order, with .descending too. NaN counts as larger than every number. */
typedef struct {
    ng_axes axes;      /* default: the last */
    bool descending;   /* the largest first */
    ng_tensor **index; /* ng_sort only: gets the indices */
    ng_tensor *x;
} ng_sort_options;
#define ng_sort(tape, ...) ng_sort_with(tape, NG_NAMED(ng_sort_options, x, __VA_ARGS__))
#define ng_argsort(tape, ...) ng_argsort_with(tape, NG_NAMED(ng_sort_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_sort_with(ng_tape *tape, ng_sort_options options);
NG_API ng_tensor *ng_argsort_with(ng_tape *tape, ng_sort_options options);

/* The k largest elements along an axis, the largest first. Order, NaN and gradient are as in
 * ng_sort. */
typedef struct {
    ng_axes axes;      /* default: the last */
    bool smallest;     /* the k smallest, the smallest first */
    ng_tensor **index; /* gets their indices in x */
    int64_t k;
} ng_top_k_options;
#define ng_top_k(tape, x, ...) ng_top_k_with(tape, x, NG_NAMED(ng_top_k_options, k, __VA_ARGS__))
NG_API ng_tensor *ng_top_k_with(ng_tape *tape, ng_tensor *x, ng_top_k_options options);

NG_END_C

#endif
