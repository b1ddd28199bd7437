/* Constants on the tape, and changes of dtype. */
#include "ops/losses.h"
#include <math.h>
#include <string.h>

static bool is_dtype(const char *function, ng_dtype dtype)
{
    if (ng_dtype_bytes(dtype) > 0) return true;
    ng_fail(NG_EDTYPE, "%s: dtype %d, expected NG_F32, NG_F64 or NG_I64", function, (int)dtype);
    return false;
}

static bool constant_ok(const char *function, ng_tape *tape, ng_dtype dtype, ng_shape shape)
{
    if (!ng_given(function, "tape", tape) || !is_dtype(function, dtype) ||
        ng_shape_size(function, shape) < 0)
        return false;
    tape->function = function;
    return true;
}

/* A constant with uninitialised elements. */
static ng_tensor *constant(const char *function, ng_tape *tape, ng_dtype dtype, ng_shape shape)
{
    return constant_ok(function, tape, dtype, shape) ? ng_result(tape, dtype, shape) : NULL;
}

ng_tensor *ng_full(ng_tape *tape, ng_dtype dtype, ng_shape shape, double value)
{
    return constant_ok("ng_full", tape, dtype, shape) ? ng_result_full(tape, dtype, shape, value)
                                                      : NULL;
}

static ng_tensor *full_like(const char *function, ng_tape *tape, const ng_tensor *x, double value)
{
    if (!ng_given(function, "tape", tape) || !ng_given(function, "x", x) ||
        !ng_usable(function, "operand", 1, tape, x))
        return NULL;
    tape->function = function;
    return ng_result_full(tape, x->dtype, x->shape, value);
}

ng_tensor *ng_zeros_like(ng_tape *tape, const ng_tensor *x)
{
    return full_like("ng_zeros_like", tape, x, 0);
}

ng_tensor *ng_ones_like(ng_tape *tape, const ng_tensor *x)
{
    return full_like("ng_ones_like", tape, x, 1);
}

ng_tensor *ng_from(ng_tape *tape, ng_dtype dtype, ng_shape shape, const double *values,
                   int64_t count)
{
    static const char function[] = "ng_from";
    if (!ng_given(function, "values", values)) return NULL;
    ng_tensor *x = constant(function, tape, dtype, shape);
    if (!x) return NULL;
    if (count != x->size) {
        ng_fail(NG_ESHAPE, "%s: %lld values, expected %lld for shape %s", function,
                (long long)count, (long long)x->size, ng_shape_print(shape).text);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) ng_tensor_store(x, i, values[i]);
    return x;
}

/* ---- Drawn -------------------------------------------------------------------------------- */

ng_tensor *ng_normal(ng_tape *tape, ng_dtype dtype, ng_shape shape, double mean, double deviation)
{
    static const char function[] = "ng_normal";
    if (tape && !ng_deviation_accepted(function, deviation)) return NULL;
    ng_tensor *x = constant(function, tape, dtype, shape);
    if (!x) return NULL;
    for (int64_t i = 0; i < x->size; i++)
        ng_tensor_store(x, i, mean + deviation * ng_rng_normal(&tape->rng));
    return x;
}

ng_tensor *ng_uniform(ng_tape *tape, ng_dtype dtype, ng_shape shape, double low, double high)
{
    static const char function[] = "ng_uniform";
    if (tape && !ng_range_accepted(function, dtype, low, high)) return NULL;
    ng_tensor *x = constant(function, tape, dtype, shape);
    if (x) ng_tensor_draw_uniform(x, low, high, &tape->rng);
    return x;
}

/* NaN if a number is below 0 or NaN. */
static double row_total(const ng_tensor *p, int64_t row, int64_t classes, double scale)
{
    double sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        const double weight = ng_tensor_load(p, row * classes + c) * scale;
        sum += weight >= 0 ? weight : (double)NAN;
    }
    return sum;
}

/* The index of a row's element, drawn in proportion to it; -1 with an error. A row whose sum
 * overflows is scaled. */
static int64_t sampled(const ng_tensor *p, int64_t row, int64_t classes, ng_rng *rng)
{
    double scale = 1, sum = row_total(p, row, classes, scale);
    if (isinf(sum)) sum = row_total(p, row, classes, scale = 0x1p-64);
    if (!(sum > 0) || isinf(sum)) {
        ng_fail(NG_EVALUE, "ng_sample: row %lld, expected finite numbers from 0, not all of them 0",
                (long long)row);
        return -1;
    }
    double left = sum * ng_rng_uniform(rng);
    int64_t last = 0; /* where rounding leaves something */
    for (int64_t c = 0; c < classes; c++) {
        const double weight = ng_tensor_load(p, row * classes + c) * scale;
        if (weight > 0 && left < weight) return c;
        if (weight > 0) last = c;
        left -= weight;
    }
    return last;
}

ng_tensor *ng_sample(ng_tape *tape, ng_tensor *probabilities)
{
    const ng_tensor *const p = probabilities;
    if (!ng_accepts("ng_sample", tape, 1, &probabilities) || !ng_has_rows("ng_sample", p))
        return NULL;
    const int64_t classes = ng_dim(p, -1);
    ng_shape rows = p->shape;
    rows.rank--;
    ng_tensor *y = ng_result(tape, NG_I64, rows);
    ng_rng rng = tape->rng; /* a call that fails takes nothing from the stream */
    for (int64_t i = 0; y && i < y->size; i++) {
        const int64_t index = sampled(p, i, classes, &rng);
        if (index < 0) return NULL;
        ((int64_t *)y->data)[i] = index;
    }
    if (y) tape->rng = rng;
    return y;
}

/* ---- Of indices --------------------------------------------------------------------------- */

/* How many numbers there are before `to`, also where the quotient is rounded up. */
static double steps_before(double first, double end, double step)
{
    const double count = ceil((end - first) / step), last = first + (count - 1) * step;
    return count > 0 && (step > 0 ? last >= end : last <= end) ? count - 1 : count;
}

ng_tensor *ng_arange(ng_tape *tape, ng_dtype dtype, double first, double end, double step)
{
    static const char function[] = "ng_arange";
    const double count = steps_before(first, end, step);
    if (tape && !(isfinite(first) && isfinite(step) && step != 0 && count < 0x1p53)) {
        ng_fail(NG_EVALUE,
                "%s: from %g to %g in steps of %g, expected finite numbers, a step that is not 0 "
                "and fewer than 2^53 of them",
                function, first, end, step);
        return NULL;
    }
    ng_tensor *x =
        constant(function, tape, dtype, NG_SHAPE(tape && count > 0 ? (int64_t)count : 0));
    if (!x) return NULL;
    for (int64_t i = 0; i < x->size; i++) ng_tensor_store(x, i, first + (double)i * step);
    return x;
}

ng_tensor *ng_eye(ng_tape *tape, ng_dtype dtype, int64_t n)
{
    ng_tensor *x = constant("ng_eye", tape, dtype, NG_SHAPE(n, n));
    if (!x) return NULL;
    memset(x->data, 0, (size_t)x->size * ng_dtype_bytes(dtype));
    for (int64_t i = 0; i < n; i++) ng_tensor_store(x, i * n + i, 1);
    return x;
}

ng_tensor *ng_one_hot(ng_tape *tape, ng_dtype dtype, ng_tensor *labels, int64_t classes)
{
    static const char function[] = "ng_one_hot";
    if (!ng_accepts_index(function, tape, "labels", labels)) return NULL;
    if (classes < 0) {
        ng_fail(NG_EVALUE, "%s: %lld classes, expected 0 or more", function, (long long)classes);
        return NULL;
    }
    ng_shape shape = labels->shape;
    if (shape.rank < NG_MAX_RANK) shape.dim[shape.rank] = classes;
    shape.rank++;
    const int64_t *const label = labels->data;
    if (classes == 0 && labels->size > 0) {
        ng_fail(NG_EVALUE, "%s: classes is 0, expected at least 1 where there are labels",
                function);
        return NULL;
    }
    for (int64_t i = 0; i < labels->size; i++)
        if (!ng_label_ok(function, label[i], i, classes)) return NULL;
    ng_tensor *x = constant(function, tape, dtype, shape);
    if (!x) return NULL;
    memset(x->data, 0, (size_t)x->size * ng_dtype_bytes(dtype));
    for (int64_t i = 0; i < labels->size; i++) ng_tensor_store(x, i * classes + label[i], 1);
    return x;
}

/* ---- Changes of dtype --------------------------------------------------------------------- */

/* dx is dy, cast back. An int64 result is a constant. */
static void cast_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    dx[0] = ng_cast(tape, dy, node->inputs[0]->dtype);
}

static const ng_op cast_op = {.name = "cast", .gradient = cast_gradient};

/* Casts x into y; float and double have loops of their own. */
static void convert(const ng_tensor *x, ng_tensor *y)
{
    if (y->dtype == NG_F64 && x->dtype == NG_F32) {
        const float *in = x->data;
        double *out = y->data;
        for (int64_t i = 0; i < x->size; i++) out[i] = (double)in[i];
    } else if (y->dtype == NG_F32 && x->dtype == NG_F64) {
        const double *in = x->data;
        float *out = y->data;
        for (int64_t i = 0; i < x->size; i++) out[i] = (float)in[i];
    } else {
        for (int64_t i = 0; i < x->size; i++) ng_tensor_store(y, i, ng_tensor_load(x, i));
    }
}

ng_tensor *ng_cast(ng_tape *tape, ng_tensor *x, ng_dtype dtype)
{
    if (!ng_accepts_any("ng_cast", tape, 1, &x) || !is_dtype("ng_cast", dtype)) return NULL;
    ng_tensor *y = ng_result(tape, dtype, x->shape);
    if (!y) return NULL;
    if (dtype == x->dtype && x->size > 0)
        memcpy(y->data, x->data, (size_t)x->size * ng_dtype_bytes(dtype));
    else
        convert(x, y);
    if (dtype == NG_I64) return y;
    return ng_record_own(tape, &cast_op, y, &x, 1, NULL, 0);
}
