/* Lines x (N, C, L) and images (N, C, H, W) at another size, axis by axis: element i of the result
 * is one of x, or lies between two neighbours,
 *
 *     y[i] = (1 - f[i]) x[low[i]] + f[i] x[high[i]]
 *
 * Composed of ops: rows are gathered, and their gradient scattered. */
#include "ops/op.h"
#include <math.h>

/* low[i] = floor(i from / to), without a product that could overflow. */
static void nearest_places(int64_t from, int64_t to, int64_t *low)
{
    int64_t place = 0, rest = 0;
    for (int64_t i = 0; i < to; i++) {
        low[i] = place;
        rest += from;
        place += rest / to;
        rest %= to;
    }
}

/* t as ops.h has it, and its parts. */
static void linear_places(int64_t from, int64_t to, bool corners, int64_t *low, int64_t *high,
                          ng_tensor *share)
{
    const double step = !corners ? (double)from / (double)to
                        : to > 1 ? (double)(from - 1) / (double)(to - 1)
                                 : 0;
    for (int64_t i = 0; i < to; i++) {
        double t = corners ? step * (double)i : step * ((double)i + 0.5) - 0.5;
        t = fmin(fmax(t, 0), (double)(from - 1));
        low[i] = (int64_t)t;
        high[i] = t > (double)low[i] ? low[i] + 1 : low[i];
        ng_tensor_store(share, i, t - (double)low[i]);
    }
}

/* x with its axis `axis` at length `to`. */
static ng_tensor *resized(ng_tape *tape, ng_tensor *x, int axis, int64_t to,
                          const ng_interpolate_options *o)
{
    const int64_t from = ng_dim(x, axis);
    if (!x || from == to) return x;
    ng_tensor *rows = ng_transpose(tape, x, 0, axis);
    ng_tensor *low = ng_result(tape, NG_I64, NG_SHAPE(to));
    if (!rows || !low) return NULL;
    if (o->mode == NG_NEAREST) {
        nearest_places(from, to, low->data);
        return ng_transpose(tape, ng_gather_rows(tape, rows, low), 0, axis);
    }
    ng_tensor *high = ng_result(tape, NG_I64, NG_SHAPE(to));
    ng_shape each = {.rank = x->shape.rank, .dim = {to, 1, 1, 1}};
    ng_tensor *share = ng_result(tape, x->dtype, each);
    if (!high || !share) return NULL;
    linear_places(from, to, o->align_corners, low->data, high->data, share);
    ng_tensor *lower = ng_gather_rows(tape, rows, low), *upper = ng_gather_rows(tape, rows, high);
    ng_tensor *y = ng_mul(tape, lower, ng_scalar_sub(tape, 1, share));
    y = ng_add(tape, y, ng_mul(tape, upper, share));
    /* Where f is 0 the upper one does not count, and an Inf below stays one. */
    return ng_transpose(tape, ng_where(tape, share, y, lower), 0, axis);
}

static bool settings_fit(const char *function, const ng_tensor *x, const ng_interpolate_options *o)
{
    const ng_shape shape = x->shape;
    const bool linear = o->mode == NG_LINEAR;
    if ((shape.rank != 3 && shape.rank != 4) || ng_shape_span(shape, 2, shape.rank) == 0) {
        ng_fail(NG_ESHAPE, "%s: x is %s, expected (N, C, L) or (N, C, H, W) with elements in each",
                function, ng_shape_print(shape).text);
        return false;
    }
    if (o->mode != NG_NEAREST && !linear) {
        ng_fail(NG_EVALUE, "%s: mode is %d, expected NG_NEAREST or NG_LINEAR", function,
                (int)o->mode);
        return false;
    }
    if (!o->align_corners || linear) return true;
    ng_fail(NG_EVALUE, "%s: .align_corners with NG_NEAREST, expected it with NG_LINEAR only",
            function);
    return false;
}

/* o->size is one length for each axis of x behind the channels. */
static ng_tensor *interpolate(const char *function, ng_tape *tape, ng_tensor *x,
                              const ng_interpolate_options *o)
{
    ng_shape shape = x->shape;
    for (int i = 2; i < shape.rank; i++) shape.dim[i] = o->size.dim[i - 2];
    if (ng_shape_size(function, shape) < 0) return NULL;
    if (x->size == 0 || ng_shape_equal(x->shape, shape)) return ng_reshape(tape, x, shape);
    for (int i = x->shape.rank - 1; i >= 2; i--) x = resized(tape, x, i, shape.dim[i], o);
    return x;
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

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_CALL(case_nearest, ng_upsample(tape, in[0], 2))
NG_CASE_CALL(case_linear, ng_upsample(tape, in[0], 2, .mode = NG_LINEAR))
NG_CASE_CALL(case_corners, ng_upsample(tape, in[0], 3, .mode = NG_LINEAR, .align_corners = true))
NG_CASE_CALL(case_to_size, ng_interpolate(tape, in[0], NG_SHAPE(5, 2)))
NG_CASE_CALL(case_linear_to_size, ng_interpolate(tape, in[0], NG_SHAPE(2, 5), .mode = NG_LINEAR))

const ng_case ng_op_cases_upsample[] = {
    {.name = "upsample", .call = case_nearest, .inputs = {NG_CASE_ANY("x", 2, 2, 2, 3)}},
    {.name = "upsample (lines)", .call = case_nearest, .inputs = {NG_CASE_ANY("x", 2, 2, 3)}},
    {.name = "upsample (bilinear)", .call = case_linear, .inputs = {NG_CASE_ANY("x", 1, 2, 2, 3)}},
    {.name = "upsample (linear, lines)",
     .call = case_linear,
     .inputs = {NG_CASE_ANY("x", 2, 2, 3)}},
    {.name = "upsample (bilinear, corners)",
     .call = case_corners,
     .inputs = {NG_CASE_ANY("x", 1, 2, 2, 3)}},
    {.name = "interpolate", .call = case_to_size, .inputs = {NG_CASE_ANY("x", 1, 2, 3, 4)}},
    {.name = "interpolate (bilinear)",
     .call = case_linear_to_size,
     .inputs = {NG_CASE_ANY("x", 1, 2, 3, 4)}},
};
const int ng_op_cases_upsample_count = NG_CASE_COUNT(ng_op_cases_upsample);
