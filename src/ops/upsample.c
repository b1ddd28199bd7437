/* Lines x (N, C, L) and images (N, C, H, W) at another size, axis by axis: element i of the result
 * is one of x, or lies between two neighbours,
 *
 *     y[i] = (1 - f[i]) x[low[i]] + f[i] x[low[i] + 1]
 *
 * Lines are images of one row. The gradient is the transposed map: each dy[i] goes to the one or
 * two x that y[i] saw, times their shares. */
#include "ops/op.h"
#include <math.h>

typedef struct {
    ng_resizing resizing; /* whose places are the tape's */
    bool back;            /* the transposed map */
} resize_attributes;

/* Resizes x, or adds dy back. */
static ng_tensor *upsample_resize(ng_tape *tape, ng_tensor *x, const resize_attributes *a);

static void resize_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    resize_attributes a = *(const resize_attributes *)node->attributes;
    a.back = !a.back;
    dx[0] = upsample_resize(tape, dy, &a);
}

static ng_status upsample_resize_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                          ng_slot *dx)
{
    (void)tape;
    const resize_attributes *a = node->attributes;
    ng_kernels_for(dy->dtype)->resize_backward(&a->resizing, dy->data, dx[0].data,
                                               dx[0].accumulate);
    return NG_OK;
}

static const ng_op resize_op = {
    .name = "interpolate", .gradient = resize_gradient, .backward = upsample_resize_backward};

static const ng_op resize_back_op = {.name = "interpolate_dx", .gradient = resize_gradient};

static ng_tensor *upsample_resize(ng_tape *tape, ng_tensor *x, const resize_attributes *a)
{
    if (!x) return NULL;
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    const int64_t *size = a->back ? a->resizing.size : a->resizing.out;
    ng_shape shape = x->shape;
    for (int i = 2; i < shape.rank; i++) shape.dim[i] = size[i + 2 - shape.rank];
    ng_tensor *y = ng_result(tape, x->dtype, shape);
    if (!y) return NULL;
    if (a->back)
        kernels->resize_backward(&a->resizing, x->data, y->data, false);
    else
        kernels->resize(&a->resizing, x->data, y->data);
    return ng_record_own(tape, a->back ? &resize_back_op : &resize_op, y, &x, 1, a, sizeof *a);
}

/* low[i] = floor(i from / to), without a product that could overflow. */
static void nearest_places(int64_t size, int64_t out, int64_t *low)
{
    int64_t place = 0, rest = 0;
    for (int64_t i = 0; i < out; i++) {
        low[i] = place;
        rest += size;
        place += rest / out;
        rest %= out;
    }
}

/* t of images.h, and its parts j and f. */
static void linear_places(int64_t size, int64_t out, bool corners, int64_t *low, ng_tensor *weight)
{
    const double step = !corners  ? (double)size / (double)out
                        : out > 1 ? (double)(size - 1) / (double)(out - 1)
                                  : 0;
    for (int64_t i = 0; i < out; i++) {
        double t = corners ? step * (double)i : step * ((double)i + 0.5) - 0.5;
        t = fmin(fmax(t, 0), (double)(size - 1));
        low[i] = (int64_t)t;
        ng_tensor_store(weight, i, t - (double)low[i]);
    }
}

/* Computes the source positions along one axis; false without memory. */
static bool places_of(ng_tape *tape, ng_dtype dtype, const ng_interpolate_options *o, int axis,
                      ng_resizing *resizing)
{
    const int64_t size = resizing->size[axis], out = resizing->out[axis];
    ng_tensor *low = ng_result(tape, NG_I64, NG_SHAPE(out));
    if (!low) return false;
    resizing->low[axis] = low->data;
    if (o->mode == NG_NEAREST || size == out) {
        nearest_places(size, out, low->data);
        return true;
    }
    ng_tensor *weight = ng_result(tape, dtype, NG_SHAPE(out));
    if (!weight) return false;
    linear_places(size, out, o->align_corners, low->data, weight);
    resizing->share[axis] = weight->data;
    return true;
}

static bool resize_mode_ok(const char *function, ng_interpolation mode, bool align_corners)
{
    if (mode != NG_NEAREST && mode != NG_LINEAR)
        ng_fail(NG_EVALUE, "%s: mode is %d, expected NG_NEAREST or NG_LINEAR", function, (int)mode);
    else if (align_corners && mode != NG_LINEAR)
        ng_fail(NG_EVALUE, "%s: .align_corners with NG_NEAREST, expected it with NG_LINEAR only",
                function);
    else
        return true;
    return false;
}

static bool settings_fit(const char *function, const ng_tensor *x, const ng_interpolate_options *o)
{
    const ng_shape shape = x->shape;
    const bool fits =
        (shape.rank == 3 || shape.rank == 4) && ng_shape_span(shape, 2, shape.rank) > 0;
    return ng_expect_shape(fits, function, "x", x,
                           "(N, C, L) or (N, C, H, W) with elements in each") &&
           resize_mode_ok(function, o->mode, o->align_corners);
}

/* o->size has one length for each axis of x after the channels. */
static ng_tensor *interpolate(const char *function, ng_tape *tape, ng_tensor *x,
                              const ng_interpolate_options *o)
{
    ng_shape shape = x->shape;
    for (int i = 2; i < shape.rank; i++) shape.dim[i] = o->size.dim[i - 2];
    if (ng_shape_size(function, shape) < 0) return NULL;
    if (x->size == 0 || ng_shape_equal(x->shape, shape)) return ng_reshape(tape, x, shape);
    const bool line = shape.rank == 3;
    const int last = shape.rank - 1;
    resize_attributes a = {.resizing = {.planes = shape.dim[0] * shape.dim[1],
                                        .size = {line ? 1 : x->shape.dim[2], x->shape.dim[last]},
                                        .out = {line ? 1 : shape.dim[2], shape.dim[last]}}};
    for (int i = 0; i < 2; i++)
        if (!places_of(tape, x->dtype, o, i, &a.resizing)) return NULL;
    return upsample_resize(tape, x, &a);
}

ng_tensor *ng_interpolate_with(ng_tape *tape, ng_tensor *x, ng_interpolate_options options)
{
    static const char function[] = "ng_interpolate";
    if (!ng_accepts(function, tape, 1, &x) || !settings_fit(function, x, &options)) return NULL;
    const ng_shape size = options.size;
    bool fits = size.rank == x->shape.rank - 2;
    for (int i = 0; i < size.rank && fits; i++) fits = size.dim[i] > 0;
    if (fits) return interpolate(function, tape, x, &options);
    ng_fail(NG_ESHAPE, "%s: size is %s and x %s, expected %s", function, ng_shape_print(size).text,
            ng_shape_print(x->shape).text,
            x->shape.rank == 3 ? "a positive length" : "positive rows and columns");
    return NULL;
}

ng_tensor *ng_upsample_with(ng_tape *tape, ng_tensor *x, ng_upsample_options options)
{
    static const char function[] = "ng_upsample";
    ng_interpolate_options o = {.mode = options.mode, .align_corners = options.align_corners};
    if (!ng_accepts(function, tape, 1, &x) || !settings_fit(function, x, &o)) return NULL;
    if (options.scale < 1) {
        ng_fail(NG_EVALUE, "%s: scale is %lld, expected at least 1", function,
                (long long)options.scale);
        return NULL;
    }
    o.size.rank = x->shape.rank - 2;
    for (int i = 0; i < o.size.rank; i++) {
        const int64_t length = x->shape.dim[2 + i];
        if (ng_shape_size(function, NG_SHAPE(length, options.scale)) < 0) return NULL;
        o.size.dim[i] = length * options.scale;
    }
    return interpolate(function, tape, x, &o);
}
