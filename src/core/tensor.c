/* Tensors: make, inspect, change, and the gradient of a leaf. */
#include "core/tensor.h"
#include "core/error.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

ng_tensor ng_none_tensor;

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {[NG_F32] = {"float32", 4}, [NG_F64] = {"float64", 8}, [NG_I64] = {"int64", 8}};

static bool dtype_exists(ng_dtype dtype) { return (unsigned)dtype <= NG_I64; }

const char *ng_dtype_name(ng_dtype dtype)
{
    return dtype_exists(dtype) ? dtypes[dtype].name : "unknown dtype";
}

size_t ng_dtype_bytes(ng_dtype dtype) { return dtype_exists(dtype) ? dtypes[dtype].bytes : 0; }

/* ---- Make and free ------------------------------------------------------------------------ */

ng_tensor *ng_tensor_make(const char *function, ng_dtype dtype, ng_shape shape)
{
    if (!dtype_exists(dtype)) {
        ng_fail(NG_EDTYPE, "%s: dtype %d, expected NG_F32, NG_F64 or NG_I64", function, (int)dtype);
        return NULL;
    }
    const int64_t size = ng_shape_size(function, shape);
    if (size < 0) return NULL;
    struct {
        ng_tensor tensor;
        ng_leaf leaf;
    } *made = ng_calloc(function, 1, sizeof *made);
    void *data = ng_calloc(function, size, dtypes[dtype].bytes);
    if (!made || !data) {
        ng_free(made), ng_free(data);
        return NULL;
    }
    made->tensor = (ng_tensor){
        .dtype = dtype, .shape = shape, .size = size, .data = data, .leaf = &made->leaf};
    return &made->tensor;
}

void ng_tensor_destroy(ng_tensor *x)
{
    if (!x) return;
    ng_tensor_destroy(x->leaf->grad);
    ng_free(x->data);
    ng_free(x);
}

static bool is_yours(const ng_tensor *x)
{
    return x && !ng_is_none(x) && !x->tape && !x->module_owned;
}

void ng_tensor_free(ng_tensor *x)
{
    if (is_yours(x)) ng_tensor_destroy(x);
}

ng_tensor *ng_zeros_new(ng_dtype dtype, ng_shape shape)
{
    return ng_tensor_make("ng_zeros_new", dtype, shape);
}

static ng_tensor *filled_new(const char *function, ng_dtype dtype, ng_shape shape, double value)
{
    ng_tensor *x = ng_tensor_make(function, dtype, shape);
    if (x) ng_fill(x, value);
    return x;
}

ng_tensor *ng_ones_new(ng_dtype dtype, ng_shape shape)
{
    return filled_new("ng_ones_new", dtype, shape, 1.0);
}

ng_tensor *ng_full_new(ng_dtype dtype, ng_shape shape, double value)
{
    return filled_new("ng_full_new", dtype, shape, value);
}

bool ng_range_accepted(const char *function, ng_dtype dtype, double low, double high)
{
    const bool one = low == high && ceil(low) == low;
    if (!(low <= high && isfinite(high - low)))
        ng_fail(NG_EVALUE, "%s: range [%g, %g), expected low <= high and a finite difference",
                function, low, high);
    else if (dtype == NG_I64 && !one && ceil(low) == ceil(high))
        ng_fail(NG_EVALUE, "%s: range [%g, %g) of int64, expected a whole number in it", function,
                low, high);
    else
        return true;
    return false;
}

bool ng_deviation_accepted(const char *function, double deviation)
{
    if (deviation >= 0 && isfinite(deviation)) return true;
    ng_fail(NG_EVALUE, "%s: deviation %g, expected at least 0, and finite", function, deviation);
    return false;
}

ng_tensor *ng_uniform_new(ng_dtype dtype, ng_shape shape, double low, double high, ng_rng *rng)
{
    if (!ng_given("ng_uniform_new", "rng", rng)) return NULL;
    if (!ng_range_accepted("ng_uniform_new", dtype, low, high)) return NULL;
    ng_tensor *x = ng_tensor_make("ng_uniform_new", dtype, shape);
    if (x) ng_fill_uniform(x, low, high, rng);
    return x;
}

ng_tensor *ng_normal_new(ng_dtype dtype, ng_shape shape, double mean, double deviation, ng_rng *rng)
{
    if (!ng_given("ng_normal_new", "rng", rng)) return NULL;
    if (!ng_deviation_accepted("ng_normal_new", deviation)) return NULL;
    ng_tensor *x = ng_tensor_make("ng_normal_new", dtype, shape);
    if (x) ng_fill_normal(x, mean, deviation, rng);
    return x;
}

ng_tensor *ng_tensor_from(ng_dtype dtype, ng_shape shape, const double *values, int64_t count)
{
    if (!ng_given("ng_tensor_from", "values", values)) return NULL;
    ng_tensor *x = ng_tensor_make("ng_tensor_from", dtype, shape);
    if (!x) return NULL;
    if (count != x->size) {
        ng_fail(NG_ESHAPE, "ng_tensor_from: %lld values, expected %lld for shape %s",
                (long long)count, (long long)x->size, ng_shape_print(shape).text);
        ng_tensor_destroy(x);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) ng_tensor_store(x, i, values[i]);
    return x;
}

ng_tensor *ng_tensor_from_array_with(ng_dtype dtype, ng_shape shape, const void *array, int element,
                                     int64_t bytes)
{
    static const char name[] = "ng_tensor_from_array";
    if (!ng_given(name, "array", array)) return NULL;
    ng_tensor *x = ng_tensor_make(name, dtype, shape);
    if (!x) return NULL;
    if (bytes != 0 && element != 0 && bytes / abs(element) != x->size) {
        ng_fail(NG_ESHAPE, "%s: the array has %lld elements, expected %lld for %s", name,
                (long long)(bytes / abs(element)), (long long)x->size, ng_shape_print(shape).text);
        ng_tensor_free(x);
        return NULL;
    }
    const int size = (int)dtypes[dtype].bytes, own = dtype == NG_I64 ? -size : size;
    if (element == 0 || element == own) {
        memcpy(x->data, array, (size_t)x->size * (size_t)size);
        return x;
    }
    for (int64_t i = 0; i < x->size; i++)
        ng_tensor_store(x, i,
                        element == 4    ? (double)((const float *)array)[i]
                        : element == 8  ? ((const double *)array)[i]
                        : element == -4 ? (double)((const int32_t *)array)[i]
                                        : (double)((const int64_t *)array)[i]);
    return x;
}

ng_expiry_text ng_expiry_print(const ng_tensor *x)
{
    ng_expiry_text expiry;
    const bool known = ((const ng_tape_head *)x->tape)->self == x->tape && x->maker;
    snprintf(expiry.text, sizeof expiry.text, "is from before ng_tape_reset%s%s%s",
             known ? " (made by " : "", known ? x->maker : "", known ? ")" : "");
    return expiry;
}

bool ng_readable(const char *function, const ng_tensor *x)
{
    if (ng_is_none(x))
        ng_fail(NG_EVALUE, "%s: NG_NONE has no elements", function);
    else if (ng_is_expired(x))
        ng_fail(NG_ESTATE, "%s: the tensor %s", function, ng_expiry_print(x).text);
    else if (ng_is_stale(x))
        ng_fail(NG_ESTATE, "%s: a view of a tensor that was since converted to another dtype",
                function);
    else
        return true;
    return false;
}

bool ng_has_shape(const char *function, const char *name, const ng_tensor *x, ng_shape shape)
{
    if (ng_is_none(x) || ng_shape_equal(x->shape, shape)) return true;
    ng_fail(NG_ESHAPE, "%s: %s is %s, expected %s", function, name, ng_shape_print(x->shape).text,
            ng_shape_print(shape).text);
    return false;
}

bool ng_has_type(const char *function, const char *name, const ng_tensor *x, ng_dtype dtype,
                 ng_shape shape)
{
    if (x->dtype == dtype && ng_shape_equal(x->shape, shape)) return true;
    ng_fail(x->dtype != dtype ? NG_EDTYPE : NG_ESHAPE, "%s: %s is %s %s, expected %s %s", function,
            name, ng_dtype_name(x->dtype), ng_shape_print(x->shape).text, ng_dtype_name(dtype),
            ng_shape_print(shape).text);
    return false;
}

ng_tensor *ng_copy_new(const ng_tensor *x, ng_dtype dtype)
{
    if (!ng_given("ng_copy_new", "x", x) || !ng_readable("ng_copy_new", x)) return NULL;
    ng_tensor *copy = ng_tensor_make("ng_copy_new", dtype, x->shape);
    if (copy) ng_copy_values(copy, x);
    return copy;
}

/* ---- Inspect ------------------------------------------------------------------------------ */

ng_dtype ng_dtype_of(const ng_tensor *x)
{
    return ng_given("ng_dtype_of", "x", x) ? x->dtype : NG_F32;
}

int ng_rank(const ng_tensor *x) { return ng_given("ng_rank", "x", x) ? x->shape.rank : -1; }

int64_t ng_size(const ng_tensor *x) { return ng_given("ng_size", "x", x) ? x->size : -1; }

ng_shape ng_shape_of(const ng_tensor *x)
{
    return ng_given("ng_shape_of", "x", x) ? x->shape : NG_SCALAR;
}

int64_t ng_dim(const ng_tensor *x, int axis)
{
    if (!ng_given("ng_dim", "x", x)) return -1;
    const int index = ng_axis_index("ng_dim", axis, x->shape.rank);
    return index < 0 ? -1 : x->shape.dim[index];
}

static void *data_as(const char *function, const ng_tensor *x, ng_dtype dtype)
{
    if (!ng_given(function, "x", x) || !ng_readable(function, x)) return NULL;
    if (x->dtype == dtype) return x->data;
    ng_fail(NG_EDTYPE, "%s: the tensor is %s, expected %s", function, ng_dtype_name(x->dtype),
            ng_dtype_name(dtype));
    return NULL;
}

float *ng_data_f32(const ng_tensor *x) { return data_as("ng_data_f32", x, NG_F32); }

double *ng_data_f64(const ng_tensor *x) { return data_as("ng_data_f64", x, NG_F64); }

int64_t *ng_data_i64(const ng_tensor *x) { return data_as("ng_data_i64", x, NG_I64); }

double ng_tensor_load(const ng_tensor *x, int64_t i)
{
    switch (x->dtype) {
    case NG_F32: return (double)((const float *)x->data)[i];
    case NG_F64: return ((const double *)x->data)[i];
    case NG_I64: return (double)((const int64_t *)x->data)[i];
    }
    return nan("");
}

/* The nearest int64; the end of the range for numbers beyond it, 0 for NaN. */
static int64_t to_int64(double value)
{
    if (isnan(value)) return 0;
    if (value >= 0x1p63) return INT64_MAX;
    if (value < -0x1p63) return INT64_MIN;
    return llround(value);
}

void ng_tensor_store(ng_tensor *x, int64_t i, double value)
{
    switch (x->dtype) {
    case NG_F32: ((float *)x->data)[i] = (float)value; break;
    case NG_F64: ((double *)x->data)[i] = value; break;
    case NG_I64: ((int64_t *)x->data)[i] = to_int64(value); break;
    }
}

double ng_item(const ng_tensor *x)
{
    if (!ng_given("ng_item", "x", x) || !ng_readable("ng_item", x)) return nan("");
    if (x->size == 1) return ng_tensor_load(x, 0);
    ng_fail(NG_ESHAPE, "ng_item: a tensor of shape %s, expected one element",
            ng_shape_print(x->shape).text);
    return nan("");
}

static bool index_ok(const char *function, const ng_tensor *x, int64_t index)
{
    if (index >= 0 && index < x->size) return true;
    ng_fail(NG_ESHAPE, "%s: index %lld, expected at least 0 and below %lld", function,
            (long long)index, (long long)x->size);
    return false;
}

double ng_get(const ng_tensor *x, int64_t index)
{
    if (!ng_given("ng_get", "x", x) || !ng_readable("ng_get", x) || !index_ok("ng_get", x, index))
        return nan("");
    return ng_tensor_load(x, index);
}

double ng_at_index(const ng_tensor *x, ng_shape index)
{
    if (!ng_given("ng_at", "x", x) || !ng_readable("ng_at", x)) return nan("");
    int64_t flat = 0;
    bool inside = index.rank == x->shape.rank;
    for (int i = 0; inside && i < index.rank; i++) {
        inside = index.dim[i] >= 0 && index.dim[i] < x->shape.dim[i];
        if (inside) flat = flat * x->shape.dim[i] + index.dim[i];
    }
    if (inside) return ng_tensor_load(x, flat);
    ng_fail(NG_ESHAPE, "ng_at: index %s, expected one inside the shape %s",
            ng_shape_print(index).text, ng_shape_print(x->shape).text);
    return nan("");
}

/* ---- Change ------------------------------------------------------------------------------- */

void ng_touch(ng_tensor *x)
{
    if (ng_given("ng_touch", "x", x) && !ng_is_none(x)) (x->base ? x->base : x)->version++;
}

ng_status ng_writable(const char *function, const ng_tensor *x)
{
    if (!ng_given(function, "x", x)) return ng_newest_status();
    if (ng_is_none(x)) return ng_fail(NG_EVALUE, "%s: NG_NONE cannot be written", function);
    if (x->tape)
        return ng_fail(NG_ESTATE, "%s: the tensor belongs to a tape and is read-only", function);
    return NG_OK;
}

ng_status ng_set(ng_tensor *x, int64_t index, double value)
{
    const ng_status status = ng_writable("ng_set", x);
    if (status != NG_OK) return status;
    if (!index_ok("ng_set", x, index)) return NG_ESHAPE;
    ng_tensor_store(x, index, value);
    ng_touch(x);
    return NG_OK;
}

ng_status ng_fill(ng_tensor *x, double value)
{
    const ng_status status = ng_writable("ng_fill", x);
    if (status != NG_OK) return status;
    for (int64_t i = 0; i < x->size; i++) ng_tensor_store(x, i, value);
    ng_touch(x);
    return NG_OK;
}

/* The largest number of the dtype below `high`. */
static double largest_below(ng_dtype dtype, double high)
{
    const float single = (float)high;
    if (dtype == NG_F64) return nextafter(high, -HUGE_VAL);
    return (double)((double)single < high ? single : nextafterf(single, -HUGE_VALF));
}

/* Every bit is drawn: a double has 53. */
static void draw_whole(ng_tensor *x, double low, double high, ng_rng *rng)
{
    const int64_t first = to_int64(ceil(low)), end = to_int64(ceil(high));
    const int64_t last = high >= 0x1p63 ? INT64_MAX : end > first ? end - 1 : first;
    int64_t *const values = x->data;
    for (int64_t i = 0; i < x->size; i++)
        values[i] = (int64_t)((uint64_t)first + ng_rng_upto(rng, (uint64_t)last - (uint64_t)first));
}

void ng_tensor_draw_uniform(ng_tensor *x, double low, double high, ng_rng *rng)
{
    if (x->dtype == NG_I64) {
        draw_whole(x, low, high, rng);
        return;
    }
    const double last = largest_below(x->dtype, high);
    for (int64_t i = 0; i < x->size; i++) {
        ng_tensor_store(x, i, low + (high - low) * ng_rng_uniform(rng));
        if (low <= last && ng_tensor_load(x, i) > last) ng_tensor_store(x, i, last);
    }
}

ng_status ng_fill_uniform(ng_tensor *x, double low, double high, ng_rng *rng)
{
    const ng_status status = ng_writable("ng_fill_uniform", x);
    if (status != NG_OK) return status;
    if (!ng_given("ng_fill_uniform", "rng", rng)) return ng_newest_status();
    if (!ng_range_accepted("ng_fill_uniform", x->dtype, low, high)) return NG_EVALUE;
    ng_tensor_draw_uniform(x, low, high, rng);
    ng_touch(x);
    return NG_OK;
}

ng_status ng_fill_normal(ng_tensor *x, double mean, double deviation, ng_rng *rng)
{
    const ng_status status = ng_writable("ng_fill_normal", x);
    if (status != NG_OK) return status;
    if (!ng_given("ng_fill_normal", "rng", rng)) return ng_newest_status();
    if (!ng_deviation_accepted("ng_fill_normal", deviation)) return NG_EVALUE;
    for (int64_t i = 0; i < x->size; i++)
        ng_tensor_store(x, i, mean + deviation * ng_rng_normal(rng));
    ng_touch(x);
    return NG_OK;
}

ng_status ng_copy_values(ng_tensor *x, const ng_tensor *from)
{
    const ng_status status = ng_writable("ng_copy_values", x);
    if (status != NG_OK) return status;
    if (!ng_given("ng_copy_values", "from", from) || !ng_readable("ng_copy_values", from))
        return ng_newest_status();
    if (x->size != from->size)
        return ng_fail(NG_ESHAPE, "ng_copy_values: from is %s, expected as many elements as x, %s",
                       ng_shape_print(from->shape).text, ng_shape_print(x->shape).text);
    if (x->dtype == from->dtype)
        memmove(x->data, from->data, (size_t)x->size * dtypes[x->dtype].bytes);
    else
        for (int64_t i = 0; i < x->size; i++) ng_tensor_store(x, i, ng_tensor_load(from, i));
    ng_touch(x);
    return NG_OK;
}

/* ---- Gradients of a leaf ------------------------------------------------------------------ */

ng_tensor *ng_require_grad(ng_tensor *x)
{
    const ng_status status = ng_writable("ng_require_grad", x);
    if (status != NG_OK) return NULL;
    if (x->dtype == NG_I64) {
        ng_fail(NG_EDTYPE, "ng_require_grad: the tensor is int64, expected float32 or float64");
        return NULL;
    }
    x->requires_grad = true;
    return x;
}

bool ng_requires_grad(const ng_tensor *x)
{
    return ng_given("ng_requires_grad", "x", x) && x->requires_grad;
}

bool ng_has_grad(const ng_tensor *x)
{
    return ng_given("ng_has_grad", "x", x) && x->leaf && x->leaf->has_grad;
}

ng_tensor *ng_grad(ng_tensor *x)
{
    if (!ng_given("ng_grad", "x", x)) return NULL;
    if (ng_has_grad(x)) {
        x->leaf->shown = true;
        return x->leaf->grad;
    }
    ng_fail(NG_EGRAD, "ng_grad: no backward pass has reached this tensor of shape %s",
            ng_shape_print(x->shape).text);
    return NULL;
}

ng_tensor *ng_tensor_grad_slot(ng_tensor *x)
{
    ng_leaf *leaf = x->leaf;
    if (leaf->grad) return leaf->grad;
    leaf->grad = ng_tensor_make("ng_backward", x->dtype, x->shape);
    if (leaf->grad) leaf->grad->module_owned = true; /* the leaf frees it, nobody else */
    return leaf->grad;
}

void ng_tensor_grad_arrived(ng_tensor *x)
{
    x->leaf->has_grad = true;
    x->leaf->arrived++;
    ng_touch(x->leaf->grad);
}

ng_status ng_set_grad(ng_tensor *x, const ng_tensor *g)
{
    static const char function[] = "ng_set_grad";
    if (!ng_given(function, "x", x) || !ng_given(function, "g", g) || !ng_readable(function, g))
        return ng_newest_status();
    if (!x->requires_grad || x->node)
        return ng_fail(NG_EGRAD, "%s: the tensor of shape %s is no leaf that requires a gradient",
                       function, ng_shape_print(x->shape).text);
    if (!ng_has_type(function, "g", g, x->dtype, x->shape)) return ng_newest_status();
    ng_tensor *grad = ng_tensor_grad_slot(x);
    if (!grad) return ng_newest_status();
    memmove(grad->data, g->data, (size_t)x->size * dtypes[x->dtype].bytes);
    ng_tensor_grad_arrived(x);
    return NG_OK;
}

void ng_zero_grad(ng_tensor *x)
{
    if (!ng_given("ng_zero_grad", "x", x) || !ng_has_grad(x)) return;
    memset(x->leaf->grad->data, 0, (size_t)x->size * dtypes[x->dtype].bytes);
    ng_touch(x->leaf->grad);
    if (!ng_grad_is_new(x->leaf)) x->leaf->used--; /* for an optimizer that is made later */
}
