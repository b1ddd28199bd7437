/* Rotary positions: each pair of features of a head is turned by an angle that grows with the
 * position, so that a product of two rotated heads depends on their distance only.
 *
 *     y[t, 2i]     = x[t, 2i] cos a - x[t, 2i + 1] sin a
 *     y[t, 2i + 1] = x[t, 2i] sin a + x[t, 2i + 1] cos a,   a = (start + t) base^(-2i / dim)
 *
 * Su et al. 2021. The gradient is the rotation back. */
#include "core/functions.h"
#include "ops/op.h"

typedef struct {
    int64_t dim, over, start;
    double base;
    bool back;
} rotary_attributes;

static ng_tensor *rotary_rotate(ng_tape *tape, ng_tensor *x, const rotary_attributes *a);

static void rotary_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    rotary_attributes a = *(const rotary_attributes *)node->attributes;
    a.back = !a.back;
    dx[0] = rotary_rotate(tape, dy, &a);
}

static const ng_op rotary_op = {.name = "rotary", .gradient = rotary_gradient};

/* Cosines and sines: (length, 2, dim / 2). */
static ng_tensor *angles(ng_tape *tape, ng_dtype dtype, int64_t length, const rotary_attributes *a)
{
    const int64_t half = a->dim / 2;
    ng_tensor *table = ng_result(tape, dtype, NG_SHAPE(length, 2, half));
    for (int64_t i = 0; table && i < half; i++) {
        const double speed = ng_power(a->base, -2 * (double)i / (double)a->dim);
        for (int64_t t = 0; t < length; t++) {
            const double position = (double)a->start + (double)t;
            const double angle = position * speed, sine = ng_sine(angle);
            ng_tensor_store(table, 2 * t * half + i, ng_cosine(angle));
            ng_tensor_store(table, (2 * t + 1) * half + i, a->back ? -sine : sine);
        }
    }
    return table;
}

static ng_tensor *rotary_rotate(ng_tape *tape, ng_tensor *x, const rotary_attributes *a)
{
    if (!x) return NULL;
    const int last = x->shape.rank - 1;
    const ng_rotation_shape shape = {.rows = ng_shape_span(x->shape, 0, last),
                                     .length = x->shape.dim[last - 1],
                                     .features = x->shape.dim[last],
                                     .rotated = a->over,
                                     .dim = a->dim};
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y) return NULL;
    if (y->size > 0) {
        const ng_tensor *table = angles(tape, x->dtype, shape.length, a);
        if (!table) return NULL;
        ng_kernels_for(x->dtype)->rotate(&shape, x->data, table->data, y->data);
    }
    return ng_record_own(tape, &rotary_op, y, &x, 1, a, sizeof *a);
}

ng_tensor *ng_rotary_with(ng_tape *tape, ng_rotary_options options)
{
    ng_tensor *const x = options.x;
    if (!ng_accepts("ng_rotary", tape, 1, &x) ||
        !ng_expect_shape(x->shape.rank >= 2, "ng_rotary", "x", x, "(..., T, features)"))
        return NULL;
    const int64_t features = ng_dim(x, -1);
    const int64_t over = options.over != 0 ? options.over : features;
    const rotary_attributes a = {.dim = options.dim != 0 ? options.dim : over,
                                 .over = over,
                                 .start = options.start,
                                 .base = ng_option(options.base, 10000)};
    if (options.dim == 0 && over % 2 != 0) {
        ng_fail(NG_ESHAPE, "ng_rotary: %lld features are turned, expected an even number",
                (long long)over);
        return NULL;
    }
    if (a.dim < 2 || a.dim % 2 != 0 || a.over < 0 || a.over > features || a.over % a.dim != 0) {
        ng_fail(NG_ESHAPE,
                "ng_rotary: dim is %lld, expected an even number that divides the %lld of %lld "
                "features",
                (long long)a.dim, (long long)a.over, (long long)features);
        return NULL;
    }
    if (!ng_above_zero("ng_rotary", "base", a.base)) return NULL;
    return rotary_rotate(tape, x, &a);
}
