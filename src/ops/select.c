/* Rows by index, where, and comparisons. */
#include "ops/elementwise.h"

/* ---- Index operands ----------------------------------------------------------------------- */

bool ng_index_within(const char *function, const ng_tensor *index, int64_t bound)
{
    const int64_t *number = index->data;
    for (int64_t i = 0; i < index->size; i++) {
        if (number[i] >= 0 && number[i] < bound) continue;
        if (bound > 0)
            ng_fail(NG_ESHAPE, "%s: index[%lld] is %lld, expected 0 .. %lld", function,
                    (long long)i, (long long)number[i], (long long)(bound - 1));
        else
            ng_fail(NG_ESHAPE, "%s: index[%lld] is %lld, expected no index: there are no rows",
                    function, (long long)i, (long long)number[i]);
        return false;
    }
    return true;
}

/* ---- gather_rows: y[i, :] = table[index[i], :] --------------------------------------------- */

static void select_gather_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy,
                                   ng_tensor **dx)
{
    ng_tensor *table = node->inputs[0], *index = node->inputs[1];
    dx[0] = ng_scatter_add_rows(tape, dy, index, table->shape.dim[0]);
}

/* to[index[i], :] (+)= x[i, :] */
static bool scatter(ng_tape *tape, const ng_tensor *x, const ng_tensor *index, ng_slot sum,
                    int64_t rows, int64_t width)
{
    const ng_scatter_shape shape = {index->size, rows, width};
    int64_t *scratch = ng_tape_memory(tape, (size_t)ng_scatter_scratch(&shape) * sizeof *scratch);
    if (!scratch) return false;
    ng_kernels_for(x->dtype)->scatter_add_rows(&shape, x->data, index->data, sum.data,
                                               sum.accumulate, scratch);
    return true;
}

static ng_status gather_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                 ng_slot *dx)
{
    const ng_shape table = node->inputs[0]->shape;
    const bool done = scatter(tape, dy, node->inputs[1], dx[0], table.dim[0],
                              ng_shape_span(table, 1, table.rank));
    return done ? NG_OK : NG_ENOMEM;
}

static const ng_op gather_op = {
    .name = "gather_rows", .gradient = select_gather_gradient, .backward = gather_backward};

/* (index..., table's other dimensions...); false with an error if these are too many. */
static bool gathered_shape(const ng_tensor *table, const ng_tensor *index, ng_shape *shape)
{
    if (table->shape.rank < 1) {
        ng_fail(NG_ESHAPE, "ng_gather_rows: table is (), expected (rows, ...)");
        return false;
    }
    const int rank = index->shape.rank + table->shape.rank - 1;
    if (rank > NG_MAX_RANK) {
        ng_fail(NG_ESHAPE,
                "ng_gather_rows: table %s by index %s gives %d dimensions, expected at most %d",
                ng_shape_print(table->shape).text, ng_shape_print(index->shape).text, rank,
                NG_MAX_RANK);
        return false;
    }
    *shape = index->shape;
    for (int i = 1; i < table->shape.rank; i++) shape->dim[shape->rank++] = table->shape.dim[i];
    return ng_shape_size("ng_gather_rows", *shape) >= 0;
}

static void gather_any(const ng_tensor *table, const ng_tensor *index, ng_tensor *y)
{
    const int64_t width = ng_shape_span(table->shape, 1, table->shape.rank);
    if (table->dtype != NG_I64) {
        ng_kernels_for(table->dtype)
            ->gather_rows(table->data, index->data, y->data, index->size, width);
        return;
    }
    const int64_t *const rows = table->data, *const number = index->data;
    int64_t *const out = y->data;
    for (int64_t i = 0; i < index->size; i++)
        for (int64_t j = 0; j < width; j++) out[i * width + j] = rows[number[i] * width + j];
}

ng_tensor *ng_gather_rows(ng_tape *tape, ng_tensor *table, ng_tensor *index)
{
    ng_shape shape;
    if (!ng_accepts_any("ng_gather_rows", tape, 1, &table) ||
        !ng_accepts_index("ng_gather_rows", tape, "index", index) ||
        !gathered_shape(table, index, &shape) ||
        !ng_index_within("ng_gather_rows", index, table->shape.dim[0]))
        return NULL;
    ng_tensor *y = ng_result(tape, table->dtype, shape);
    if (!y) return NULL;
    gather_any(table, index, y);
    ng_tensor *const inputs[] = {table, index};
    return ng_record_own(tape, &gather_op, y, inputs, 2, NULL, 0);
}

/* ---- scatter_add_rows: y[index[i], :] += x[i, :] -------------------------------------------- */

static void scatter_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_gather_rows(tape, dy, node->inputs[1]);
}

static const ng_op scatter_op = {.name = "scatter_add_rows", .gradient = scatter_gradient};

ng_tensor *ng_scatter_add_rows(ng_tape *tape, ng_tensor *x, ng_tensor *index, int64_t rows)
{
    if (!ng_accepts("ng_scatter_add_rows", tape, 1, &x) ||
        !ng_accepts_index("ng_scatter_add_rows", tape, "index", index))
        return NULL;
    const int leading = index->shape.rank;
    ng_shape start = x->shape;
    if (start.rank >= leading) start.rank = leading;
    if (!ng_shape_equal(start, index->shape)) {
        ng_fail(NG_ESHAPE, "ng_scatter_add_rows: x is %s and index %s, expected x (index..., ...)",
                ng_shape_print(x->shape).text, ng_shape_print(index->shape).text);
        return NULL;
    }
    ng_shape shape = {.rank = 1, .dim = {rows}};
    for (int i = leading; i < x->shape.rank; i++) {
        if (shape.rank < NG_MAX_RANK) shape.dim[shape.rank] = x->shape.dim[i];
        shape.rank++;
    }
    if (ng_shape_size("ng_scatter_add_rows", shape) < 0 ||
        !ng_index_within("ng_scatter_add_rows", index, rows))
        return NULL;
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y || !scatter(tape, x, index, (ng_slot){.data = y->data}, rows,
                       ng_shape_span(x->shape, leading, x->shape.rank)))
        return NULL;
    ng_tensor *const inputs[] = {x, index};
    return ng_record_own(tape, &scatter_op, y, inputs, 2, NULL, 0);
}

/* ---- where: y = condition != 0 ? a : b ------------------------------------------------------ */

static void where_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    ng_tensor *condition = node->inputs[0], *a = node->inputs[1], *b = node->inputs[2];
    ng_tensor *zero = ng_full(tape, dy->dtype, NG_SCALAR, 0);
    dx[0] = NG_NONE;
    if (ng_wants(dx, 1)) dx[1] = ng_sum_to(tape, ng_where(tape, condition, dy, zero), a->shape);
    if (ng_wants(dx, 2)) dx[2] = ng_sum_to(tape, ng_where(tape, condition, zero, dy), b->shape);
}

static const ng_op where_op = {.name = "where", .gradient = where_gradient};

/* x's elements, broadcast to `shape`. */
static const void *broadcast_data(ng_tape *tape, const ng_tensor *x, ng_shape shape, int64_t size)
{
    if (ng_shape_equal(x->shape, shape)) return x->data;
    const size_t bytes = ng_dtype_bytes(x->dtype);
    void *data = ng_tape_memory(tape, (size_t)size * bytes);
    if (!data) return NULL;
    const ng_walk walk = ng_walk_broadcast(shape, x->shape, shape);
    ng_copy_walk(&walk, x->data, data, bytes);
    return data;
}

ng_tensor *ng_where(ng_tape *tape, ng_tensor *condition, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *const inputs[] = {condition, a, b};
    ng_shape shape;
    if (!ng_accepts("ng_where", tape, 3, inputs) ||
        !ng_shape_broadcast("ng_where", a->shape, b->shape, &shape) ||
        !ng_shape_broadcast("ng_where", condition->shape, shape, &shape))
        return NULL;
    ng_tensor *y = ng_result(tape, a->dtype, shape);
    if (!y) return NULL;
    const void *values[3];
    for (int i = 0; i < 3; i++)
        if (!(values[i] = broadcast_data(tape, inputs[i], shape, y->size))) return NULL;
    ng_kernels_for(a->dtype)->where(values[0], values[1], values[2], y->data, y->size);
    return ng_record_own(tape, &where_op, y, inputs, 3, NULL, 0);
}

/* ---- Comparisons: 1 or 0, without gradient ------------------------------------------------- */

#define COMPARISON(op, kernel)                                                                     \
    static const ng_op op##_op = {.name = #op};                                                    \
    ng_tensor *ng_##op(ng_tape *tape, ng_tensor *a, ng_tensor *b)                                  \
    {                                                                                              \
        return ng_binary_record("ng_" #op, tape, &op##_op, a, b, kernel);                          \
    }

COMPARISON(greater, NG_BINARY_GREATER)
COMPARISON(greater_equal, NG_BINARY_GREATER_EQUAL)
COMPARISON(less, NG_BINARY_LESS)
COMPARISON(equal, NG_BINARY_EQUAL)
