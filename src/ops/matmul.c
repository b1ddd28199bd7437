/* Matrix products: matmul (..., n, k) x (..., k, m) -> (..., n, m), of vectors too, and linear. */
#include "kernels/walk.h"
#include "ops/op.h"

/* ---- Products of batches of matrices, over plain memory ------------------------------------ */

/* One factor: the last two dimensions of `shape` are the stored matrix. */
typedef struct {
    const void *data;
    ng_shape shape;
    bool transpose;
} factor;

static factor factor_of(const ng_tensor *x, bool transpose)
{
    return (factor){x->data, x->shape, transpose};
}

static int64_t stored_columns(ng_shape shape) { return shape.dim[shape.rank - 1]; }

static int64_t rows(const factor *f)
{
    return f->shape.dim[f->shape.rank - (f->transpose ? 1 : 2)];
}

static int64_t columns(const factor *f)
{
    return f->shape.dim[f->shape.rank - (f->transpose ? 2 : 1)];
}

static int64_t matrix_size(ng_shape shape)
{
    return ng_shape_span(shape, shape.rank - 2, shape.rank);
}

static int64_t matrices(ng_shape shape) { return ng_shape_span(shape, 0, shape.rank - 2); }

static ng_shape batch_of(ng_shape shape)
{
    shape.rank -= 2;
    return shape;
}

/* The offset in C of the sum that matrix number `index` of the batch belongs to. */
static int64_t start_of(ng_shape shape, ng_shape batch, int64_t index)
{
    int64_t start = 0, stride = matrix_size(shape);
    const int leading = batch.rank - (shape.rank - 2);
    for (int i = batch.rank - 1; i >= leading; i--) {
        const int64_t dim = shape.dim[i - leading];
        if (dim > 1) start += index % batch.dim[i] * stride;
        stride *= dim;
        index /= batch.dim[i];
    }
    return start;
}

/* C (+)= A B for each matrix of the batch that A's, B's and C's leading dimensions broadcast to;
 * where C's own are smaller it is the sum. */
static void matmul_multiply(ng_dtype dtype, factor a, factor b, ng_shape batch, void *c,
                            ng_shape c_shape, bool accumulate)
{
    int64_t m = rows(&a), n = columns(&b), k = columns(&a);
    const ng_walk walk = ng_walk_broadcast(batch, batch_of(a.shape), batch_of(b.shape));
    const int last = walk.rank - 1;
    bool summed = matrices(c_shape) != walk.size, joined = false;

    /* Matrices times one matrix are one product of more rows; a sum over the batch is one of
     * inner dimension k count. */
    if (!summed && !a.transpose && walk.a[last] == 1 && walk.b[last] == 0) {
        m *= walk.dim[last];
        joined = true;
    } else if (summed && matrices(c_shape) == 1 && a.transpose && !b.transpose && last == 0 &&
               walk.a[0] == 1 && walk.b[0] == 1) {
        k *= walk.size;
        joined = true;
        summed = false;
    }
    if (k == 0 || summed) {
        if (!accumulate) ng_kernels_for(dtype)->fill(c, ng_shape_span(c_shape, 0, c_shape.rank), 0);
        accumulate = true;
    }
    if (m == 0 || n == 0 || k == 0 || walk.size == 0) return;

    const int64_t count = joined ? walk.size / walk.dim[last] : walk.size;
    const int64_t a_size = matrix_size(a.shape), b_size = matrix_size(b.shape);
    const size_t bytes = ng_dtype_bytes(dtype);
    ng_product p = {.m = m,
                    .n = n,
                    .k = k,
                    .a = {.row = stored_columns(a.shape), .transposed = a.transpose},
                    .b = {.row = stored_columns(b.shape), .transposed = b.transpose},
                    .c_row = stored_columns(c_shape),
                    .accumulate = accumulate};
    ng_cursor at;
    ng_cursor_set(&at, &walk, joined ? last : walk.rank, 1, 0);
    for (int64_t i = 0; i < count; i++, ng_cursor_next(&walk, &at)) {
        p.a.at = (const char *)a.data + (size_t)(at.a * a_size) * bytes;
        p.b.at = (const char *)b.data + (size_t)(at.b * b_size) * bytes;
        p.c = (char *)c + (size_t)(summed ? start_of(c_shape, batch, i) : i * m * n) * bytes;
        ng_kernels_for(dtype)->gemm(&p);
    }
}

/* ---- matmul ------------------------------------------------------------------------------- */

typedef struct {
    bool a, b; /* which operands are read transposed */
} matmul_transposes;

/* With A and B as they are read, dA = dY B^T and dB = A^T dY; of an operand that is read
 * transposed, the gradient is the transpose of that. */
static void matmul_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const matmul_transposes t = *(const matmul_transposes *)node->attributes;
    ng_tensor *a = node->inputs[0], *b = node->inputs[1];
    if (ng_wants(dx, 0)) {
        ng_tensor *da = t.a ? ng_matmul(tape, b, dy, .transpose_a = t.b, .transpose_b = true)
                            : ng_matmul(tape, dy, b, .transpose_b = !t.b);
        dx[0] = ng_sum_to(tape, da, a->shape);
    }
    if (ng_wants(dx, 1)) {
        ng_tensor *db = t.b ? ng_matmul(tape, dy, a, .transpose_a = true, .transpose_b = t.a)
                            : ng_matmul(tape, a, dy, .transpose_a = !t.a);
        dx[1] = ng_sum_to(tape, db, b->shape);
    }
}

static ng_status matmul_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                 ng_slot *dx)
{
    (void)tape;
    const matmul_transposes t = *(const matmul_transposes *)node->attributes;
    const ng_tensor *a = node->inputs[0], *b = node->inputs[1];
    const ng_shape batch = batch_of(dy->shape);
    if (dx[0].data)
        matmul_multiply(dy->dtype, t.a ? factor_of(b, t.b) : factor_of(dy, false),
                        t.a ? factor_of(dy, true) : factor_of(b, !t.b), batch, dx[0].data, a->shape,
                        dx[0].accumulate);
    if (dx[1].data)
        matmul_multiply(dy->dtype, t.b ? factor_of(dy, true) : factor_of(a, !t.a),
                        t.b ? factor_of(a, t.a) : factor_of(dy, false), batch, dx[1].data, b->shape,
                        dx[1].accumulate);
    return NG_OK;
}

static const ng_op matmul_op = {
    .name = "matmul", .gradient = matmul_gradient, .backward = matmul_backward};

static ng_tensor *matmul_fail(const char *problem, const factor *a, const factor *b)
{
    ng_fail(NG_ESHAPE, "ng_matmul: %s: %s%s x %s%s", problem, ng_shape_print(a->shape).text,
            a->transpose ? "^T" : "", ng_shape_print(b->shape).text, b->transpose ? "^T" : "");
    return NULL;
}

static bool is_vector(const ng_tensor *x) { return x->shape.rank == 1; }

/* A vector a is a row (1, k), a vector b a column (k, 1); their axis of length 1 is removed. */
static ng_tensor *matmul_of_vectors(ng_tape *tape, ng_tensor *a, ng_matmul_options o)
{
    static const char function[] = "ng_matmul", where[] = "for matrices";
    const bool row = is_vector(a), column = is_vector(o.b);
    if (!ng_option_idle(function, "transpose_a", row && o.transpose_a, where) ||
        !ng_option_idle(function, "transpose_b", column && o.transpose_b, where))
        return NULL;
    if (row) a = ng_unsqueeze(tape, a, 0);
    if (column) o.b = ng_unsqueeze(tape, o.b, 1);
    ng_tensor *y = ng_matmul_with(tape, a, o);
    if (column) y = ng_squeeze(tape, y, -1);
    return row ? ng_squeeze(tape, y, column ? -1 : -2) : y;
}

ng_tensor *ng_matmul_with(ng_tape *tape, ng_tensor *a, ng_matmul_options options)
{
    ng_tensor *const inputs[] = {a, options.b};
    if (!ng_accepts("ng_matmul", tape, 2, inputs)) return NULL;
    const bool scalars = a->shape.rank == 0 || options.b->shape.rank == 0;
    if (!scalars && (is_vector(a) || is_vector(options.b)))
        return matmul_of_vectors(tape, a, options);
    const factor left = factor_of(a, options.transpose_a);
    const factor right = factor_of(options.b, options.transpose_b);
    if (left.shape.rank < 2 || right.shape.rank < 2)
        return matmul_fail("each operand needs a dimension or more", &left, &right);
    if (columns(&left) != rows(&right))
        return matmul_fail("inner dimensions differ", &left, &right);
    ng_shape batch, shape;
    if (!ng_shapes_broadcast(batch_of(left.shape), batch_of(right.shape)))
        return matmul_fail("leading dimensions do not broadcast", &left, &right);
    if (!ng_shape_broadcast("ng_matmul", batch_of(left.shape), batch_of(right.shape), &batch))
        return NULL;
    shape = batch;
    shape.dim[shape.rank++] = rows(&left);
    shape.dim[shape.rank++] = columns(&right);

    ng_tensor *y = ng_result(tape, a->dtype, shape);
    if (!y) return NULL;
    matmul_multiply(a->dtype, left, right, batch, y->data, shape, false);
    const matmul_transposes attributes = {options.transpose_a, options.transpose_b};
    return ng_record_own(tape, &matmul_op, y, inputs, 2, &attributes, sizeof attributes);
}

/* ---- linear: y = x W^T + b: x (..., in), W (out, in), b (out) -> (..., out) ----------------
 *
 * The definition takes the same time, but keeps one more result of the size of y. */

static ng_tensor *linear_definition(ng_tape *tape, const ng_node *node)
{
    ng_tensor *x = node->inputs[0], *weight = node->inputs[1], *bias = node->inputs[2];
    const int64_t n = ng_shape_span(x->shape, 0, x->shape.rank - 1);
    ng_tensor *flat = ng_reshape(tape, x, NG_SHAPE(n, weight->shape.dim[1]));
    ng_tensor *y = ng_matmul(tape, flat, weight, .transpose_b = true);
    if (!ng_is_none(bias)) y = ng_add(tape, y, bias);
    return ng_reshape(tape, y, node->output->shape);
}

/* dx = dy W, dW = dy^T x, db = sum of dy's rows */
static ng_status linear_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                 ng_slot *dx)
{
    (void)tape;
    const ng_tensor *x = node->inputs[0], *weight = node->inputs[1];
    const ng_kernels *kernels = ng_kernels_for(dy->dtype);
    const int64_t out = weight->shape.dim[0], in = weight->shape.dim[1];
    const int64_t n = ng_shape_span(dy->shape, 0, dy->shape.rank - 1);
    ng_product products[] = {
        {.m = n, .n = in, .k = out, .a.at = dy->data, .b.at = weight->data},
        {.m = out, .n = in, .k = n, .a = {dy->data, .transposed = true}, .b.at = x->data}};
    for (int i = 0; i < 2; i++) {
        if (!dx[i].data) continue;
        products[i].c = dx[i].data, products[i].accumulate = dx[i].accumulate;
        products[i] = ng_without_gaps(products[i]);
        kernels->gemm(&products[i]);
    }
    if (dx[2].data) kernels->sum(dy->data, dx[2].data, 1, n, out, 1, dx[2].accumulate);
    return NG_OK;
}

static const ng_op linear_op = {
    .name = "linear", .backward = linear_backward, .definition = linear_definition};

static bool linear_fits(const ng_tensor *x, const ng_tensor *weight, const ng_tensor *bias)
{
    const ng_shape w = weight->shape;
    if (!ng_expect_shape(w.rank == 2, "ng_linear", "weight", weight, "(out, in)")) return false;
    if (x->shape.rank < 1 || stored_columns(x->shape) != w.dim[1]) {
        ng_fail(NG_ESHAPE, "ng_linear: x is %s and weight %s, expected x (..., %lld)",
                ng_shape_print(x->shape).text, ng_shape_print(w).text, (long long)w.dim[1]);
        return false;
    }
    return ng_has_shape("ng_linear", "bias", bias, NG_SHAPE(w.dim[0]));
}

ng_tensor *ng_linear(ng_tape *tape, ng_tensor *x, ng_tensor *weight, ng_tensor *bias)
{
    ng_tensor *const inputs[] = {x, weight, bias};
    if (!ng_accepts_optional("ng_linear", tape, 2, 3, inputs, NULL) ||
        !linear_fits(x, weight, bias))
        return NULL;
    const int64_t out = weight->shape.dim[0], in = weight->shape.dim[1];
    ng_shape shape = x->shape;
    shape.dim[shape.rank - 1] = out;
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y) return NULL;

    ng_kernels_for(x->dtype)->gemm(
        &(ng_product){.m = ng_shape_span(shape, 0, shape.rank - 1),
                      .n = out,
                      .k = in,
                      .a = {.at = x->data, .row = in},
                      .b = {.at = weight->data, .row = in, .transposed = true},
                      .bias = ng_is_none(bias) ? NULL : bias->data,
                      .c = y->data,
                      .c_row = out});
    return ng_record_own(tape, &linear_op, y, inputs, 3, NULL, 0);
}
