/* Elements by their place along an axis, and in order: take_along_axis, sort, top-k. */
#include "ops/op.h"

/* ---- take_along_axis: y[.., j, ..] = x[.., index[.., j, ..], ..] --------------------------- */

/* Whether index has x's shape except along the axis, and all its values are valid. */
static bool index_fits(const char *function, ng_shape x, int axis, const ng_tensor *index)
{
    ng_shape expected = x;
    if (index->shape.rank == x.rank) expected.dim[axis] = index->shape.dim[axis];
    if (!ng_shape_equal(expected, index->shape)) {
        ng_fail(NG_ESHAPE, "%s: index is %s for %s, expected one that differs along axis %d only",
                function, ng_shape_print(index->shape).text, ng_shape_print(x).text, axis);
        return false;
    }
    return ng_index_within(function, index, x.dim[axis]);
}

/* Converts indices along an axis to offsets among all elements of a tensor of this shape. */
static ng_tensor *offsets_of(ng_tape *tape, ng_shape shape, int axis, const ng_tensor *index)
{
    ng_tensor *place = ng_result(tape, NG_I64, index->shape);
    if (!place) return NULL;
    const int64_t inner = ng_shape_span(shape, axis + 1, shape.rank), length = shape.dim[axis];
    const int64_t row = index->shape.dim[axis] * inner, *chosen = index->data;
    int64_t *offset = place->data;
    for (int64_t begin = 0; row > 0 && begin < index->size; begin += row)
        for (int64_t i = 0, column = 0; i < row; i++, column = column + 1 < inner ? column + 1 : 0)
            *offset++ = (begin / row * length + *chosen++) * inner + column;
    return place;
}

ng_tensor *ng_take_along_axis_with(ng_tape *tape, ng_tensor *x, ng_take_along_axis_options options)
{
    ng_tensor *index = options.index;
    static const char function[] = "ng_take_along_axis";
    if (!ng_accepts_any(function, tape, 1, &x) || !ng_accepts_index(function, tape, "index", index))
        return NULL;
    const int along = ng_axis_named(function, options.axes, x->shape.rank);
    if (along < 0 || !index_fits(function, x->shape, along, index)) return NULL;
    ng_tensor *flat = ng_reshape(tape, x, NG_SHAPE(x->size));
    ng_tensor *place = offsets_of(tape, x->shape, along, index);
    return flat && place ? ng_gather_rows(tape, flat, place) : NULL;
}

ng_tensor *ng_scatter_add_along_axis_with(ng_tape *tape, ng_tensor *x, ng_tensor *index,
                                          ng_scatter_add_along_axis_options options)
{
    static const char function[] = "ng_scatter_add_along_axis";
    if (!ng_accepts(function, tape, 1, &x) || !ng_accepts_index(function, tape, "index", index))
        return NULL;
    const int along = ng_axis_named(function, options.axes, x->shape.rank);
    if (along < 0) return NULL;
    ng_shape shape = x->shape;
    if (!ng_shape_equal(shape, index->shape)) {
        ng_fail(NG_ESHAPE, "%s: x is %s and index %s, expected one shape", function,
                ng_shape_print(shape).text, ng_shape_print(index->shape).text);
        return NULL;
    }
    shape.dim[along] = options.length;
    const int64_t size = ng_shape_size(function, shape);
    if (size < 0 || !index_fits(function, shape, along, index)) return NULL;
    ng_tensor *place = offsets_of(tape, shape, along, index);
    ng_tensor *flat = place ? ng_scatter_add_rows(tape, x, place, size) : NULL;
    return flat ? ng_reshape(tape, flat, shape) : NULL;
}

/* ---- sort ---------------------------------------------------------------------------------- */

/* Whether a comes after b: a NaN is above every number. */
static bool above(double a, double b) { return a > b || (a != a && b == b); }

/* Merges the runs [begin, middle) and [middle, end), stable. */
static void merge(const double *key, const int64_t *in, int64_t *out, int64_t begin, int64_t middle,
                  int64_t end, bool descending)
{
    int64_t left = begin, right = middle;
    for (int64_t i = begin; i < end; i++) {
        const bool one_empty = left == middle || right == end;
        const double a = one_empty ? 0 : key[in[left]], b = one_empty ? 0 : key[in[right]];
        const bool later = one_empty ? left == middle : descending ? above(b, a) : above(a, b);
        out[i] = in[later ? right++ : left++];
    }
}

/* Sorts the indices of n keys: stable merges of runs of 1, 2, 4... between two arrays. */
static void order_row(const double *key, int64_t n, bool descending, int64_t *order,
                      int64_t *scratch)
{
    int64_t *runs = order, *merged = scratch;
    for (int64_t i = 0; i < n; i++) order[i] = i;
    for (int64_t run = 1; run < n; run *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * run) {
            const int64_t middle = begin + run < n ? begin + run : n;
            merge(key, runs, merged, begin, middle, begin + 2 * run < n ? begin + 2 * run : n,
                  descending);
        }
        int64_t *other = runs;
        runs = merged, merged = other;
    }
    for (int64_t i = 0; runs != order && i < n; i++) order[i] = runs[i];
}

/* The indices of the first k keys in order, by insertion. */
static void order_first(const double *key, int64_t n, int64_t k, bool descending, int64_t *order)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t place = count;
        while (place > 0 && (descending ? above(key[i], key[order[place - 1]])
                                        : above(key[order[place - 1]], key[i])))
            place--;
        if (place == k) continue;
        count += count < k;
        for (int64_t j = count - 1; j > place; j--) order[j] = order[j - 1];
        order[place] = i;
    }
}

/* Up to this k, insertion is faster than sorting all. */
enum { FEW_ELEMENTS = 32 };

/* The indices of the first k along an axis. */
static ng_tensor *order_along(ng_tape *tape, ng_tensor *x, int along, int64_t k, bool descending)
{
    ng_shape shape = x->shape;
    const int64_t n = shape.dim[along];
    shape.dim[along] = k;
    ng_tensor *y = ng_result(tape, NG_I64, shape);
    double *key = ng_tape_memory(tape, (size_t)n * 3 * sizeof *key);
    if (!y || !key || y->size == 0) return key ? y : NULL;
    int64_t *const order = (int64_t *)(key + n), *const scratch = order + n,
                   *const result = y->data;
    const int64_t inner = ng_shape_span(x->shape, along + 1, x->shape.rank);
    for (int64_t column = 0; column < x->size / n; column++) {
        const int64_t start = column / inner * n * inner + column % inner;
        for (int64_t i = 0; i < n; i++) key[i] = ng_tensor_load(x, start + i * inner);
        if (k < n && k <= FEW_ELEMENTS)
            order_first(key, n, k, descending, order);
        else
            order_row(key, n, descending, order, scratch);
        for (int64_t i = 0; i < k; i++)
            result[(column / inner * k + i) * inner + column % inner] = order[i];
    }
    return y;
}

/* The first k elements along an axis, and their indices. */
static ng_tensor *take_ordered(ng_tape *tape, ng_tensor *x, int along, int64_t k, bool descending,
                               ng_tensor **indices)
{
    ng_tensor *index = order_along(tape, x, along, k, descending);
    ng_tensor *y = index ? ng_take_along_axis(tape, x, index, .axes = NG_AXES(along)) : NULL;
    if (y && indices) *indices = index;
    return y;
}

ng_tensor *ng_argsort_with(ng_tape *tape, ng_sort_options options)
{
    ng_tensor *x = options.x;
    static const char function[] = "ng_argsort";
    if (!ng_accepts(function, tape, 1, &x) ||
        !ng_option_idle(function, "index", options.index, "in ng_sort"))
        return NULL;
    const int along = ng_axis_named(function, options.axes, x->shape.rank);
    if (along < 0) return NULL;
    return order_along(tape, x, along, x->shape.dim[along], options.descending);
}

ng_tensor *ng_sort_with(ng_tape *tape, ng_sort_options options)
{
    ng_tensor *x = options.x;
    static const char function[] = "ng_sort";
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    const int along = ng_axis_named(function, options.axes, x->shape.rank);
    if (along < 0) return NULL;
    return take_ordered(tape, x, along, x->shape.dim[along], options.descending, options.index);
}

ng_tensor *ng_top_k_with(ng_tape *tape, ng_tensor *x, ng_top_k_options options)
{
    const int64_t k = options.k;
    static const char function[] = "ng_top_k";
    if (!ng_accepts(function, tape, 1, &x)) return NULL;
    const int along = ng_axis_named(function, options.axes, x->shape.rank);
    if (along < 0) return NULL;
    if (k < 0 || k > x->shape.dim[along]) {
        ng_fail(NG_EVALUE, "%s: k is %lld, expected 0 .. %lld along axis %d of %s", function,
                (long long)k, (long long)x->shape.dim[along], along, ng_shape_print(x->shape).text);
        return NULL;
    }
    return take_ordered(tape, x, along, k, !options.smallest, options.index);
}
