/* Tensors: dense, row-major arrays of up to 8 dimensions, in NumPy's order of dimensions.
 *
 *     float values[6] = {1, 2, 3, 4, 5, 6};
 *     ng_tensor *m = ng_tensor_from_array(NG_F32, NG_SHAPE(2, 3), values);
 *     ng_tensor *v = ng_require_grad(ng_tensor_from(NG_F64, NG_SHAPE(3), NG_VALUES(1, 2, 3)));
 *     ng_print(m);
 *     printf("%g %g\n", ng_at(m, 1, 2), ng_get(v, 0));
 *     ng_tensor_free(m), ng_tensor_free(v);
 *
 *     ng_zeros_new(dtype, shape)                     0 everywhere; ng_ones_new, ng_full_new
 *     ng_uniform_new(dtype, shape, low, high, &rng)   uniform in [low, high)
 *     ng_normal_new(dtype, shape, mean, deviation, &rng)   normally distributed
 *     ng_tensor_from(dtype, shape, NG_VALUES(...))   numbers that you write
 *     ng_tensor_from_array(dtype, shape, array)      a copy of an array
 *     ng_copy_new(x, dtype)                          a copy of a tensor
 *     ng_shape_of(x)                                 its shape; ng_rank, ng_size, ng_dim
 *     ng_data_f32(x)                                 its elements; ng_data_f64, ng_data_i64
 *     ng_item(x)                                     its only element; ng_get(x, i), ng_at(x, i, j)
 *     ng_print(x)                                    prints it
 *     ng_set(x, i, value)                            sets an element; ng_fill, ng_copy_values
 *     ng_require_grad(x)                             makes x a leaf that gets gradients
 *     ng_grad(x)                                     its gradient; ng_set_grad, ng_zero_grad
 *     ng_tensor_free(x)                              frees a tensor of yours
 *
 * Every tensor has one of three owners, who ends its life:
 *
 *     you       what a _new, _read or _from function gave     ng_tensor_free
 *     a module  its parameters and buffers                    ng_module_free
 *     a tape    what was computed on it, and ng_tape_own      ng_tape_reset, ng_tape_free
 *
 * A tape keeps pointers to the operands of its ops, and a view (ng_reshape, ng_detach) shows the
 * memory of another tensor. So free an operand only after the tape's reset, or give it to the tape
 * with ng_tape_own. If it is freed earlier, later calls read freed memory; with the debug library
 * (make VARIANT=asan) the program stops at that line. */
#ifndef NORMGRAD_TENSOR_H
#define NORMGRAD_TENSOR_H

#include <normgrad/settings.h>
#include <stdio.h>

NG_BEGIN_C

#define NG_MAX_RANK 8 /* the most dimensions a shape may have */

/* An array of numbers. Made by the functions below, or by an op on a tape. */
typedef struct ng_tensor ng_tensor;

/* What the elements are. Operands of one operation have one dtype. */
typedef enum {
    NG_F32 = 0, /* float: training */
    NG_F64,     /* double: gradient checks */
    NG_I64      /* int64_t: labels and indices; never differentiated */
} ng_dtype;

NG_API const char *ng_dtype_name(ng_dtype dtype); /* "float32", "float64", "int64" */
NG_API size_t ng_dtype_bytes(ng_dtype dtype);     /* 4, 8, 8 */

/* NG_SHAPE(32, 64) is a matrix of 32 rows; NG_SCALAR has no dimension and one element. */
typedef struct {
    int rank;                 /* how many dimensions, 0 to 8 */
    int64_t dim[NG_MAX_RANK]; /* the length of each, 0 or more */
} ng_shape;

/* NG_AXES(0, -1): axes of a tensor; negative ones count from the last. */
typedef struct ng_axes {
    int count;             /* how many, 0 to 8 */
    int axis[NG_MAX_RANK]; /* which */
    NG_AXES_IN_CXX
} ng_axes;

/* Two macros each write two arguments, a list and its length: NG_VALUES(1, 2, 3, 4) numbers, for
 * ng_tensor_from, and NG_TENSORS(a, b) tensors, for ng_concat. */

/* In place of an optional tensor: there is none. (NULL means that an earlier call failed.) */
NG_API extern ng_tensor ng_none_tensor;
#define NG_NONE (&ng_none_tensor)

/* ---- Make (the tensor is yours: ng_tensor_free) ------------------------------------------- */

/* Tensors of one value, or of random values: uniform in [low, high), or normal with mean and
 * deviation. Uniform int64 values are the whole numbers in [low, high); NG_EVALUE if there is none.
 */
NG_API ng_tensor *ng_zeros_new(ng_dtype dtype, ng_shape shape);
NG_API ng_tensor *ng_ones_new(ng_dtype dtype, ng_shape shape);
NG_API ng_tensor *ng_full_new(ng_dtype dtype, ng_shape shape, double value);
NG_API ng_tensor *ng_uniform_new(ng_dtype dtype, ng_shape shape, double low, double high,
                                 ng_rng *rng);
NG_API ng_tensor *ng_normal_new(ng_dtype dtype, ng_shape shape, double mean, double deviation,
                                ng_rng *rng);

/* A tensor of `count` numbers, row by row, converted to `dtype`; `count` must be the shape's size.
 *     ng_tensor_from(NG_F32, NG_SHAPE(2, 2), NG_VALUES(1, 2, 3, 4))
 * Numbers that become int64, here and elsewhere, are rounded to the nearest, halves away from 0 (C
 * and PyTorch truncate). Numbers out of range become the smallest or largest int64, NaN becomes 0.
 */
NG_API ng_tensor *ng_tensor_from(ng_dtype dtype, ng_shape shape, const double *values,
                                 int64_t count);

/* A copy of an array that holds the shape's elements, row by row, converted to `dtype`. The array
 * is of float, double, int, long or long long, or an array of such arrays; other types do not
 * compile. A length other than the shape's size is NG_ESHAPE; the length behind a pointer is not
 * known. A void pointer must point to elements of `dtype`.
 *     float a[3][2];  ng_tensor_from_array(NG_F64, NG_SHAPE(3, 2), a) */
#define ng_tensor_from_array(dtype, shape, array)                                                  \
    ng_tensor_from_array_with(dtype, shape, array, NG_ELEMENT(array), NG_BYTES(array))
NG_API ng_tensor *ng_tensor_from_array_with(ng_dtype dtype, ng_shape shape, const void *array,
                                            int element, int64_t bytes);

/* A copy of values only (no gradient, no history) in the same or another dtype. */
NG_API ng_tensor *ng_copy_new(const ng_tensor *x, ng_dtype dtype);

/* ---- Inspect ------------------------------------------------------------------------------ */

NG_API ng_dtype ng_dtype_of(const ng_tensor *x);     /* NG_F32 for NULL */
NG_API int ng_rank(const ng_tensor *x);              /* -1 for NULL */
NG_API int64_t ng_size(const ng_tensor *x);          /* elements; -1 for NULL */
NG_API int64_t ng_dim(const ng_tensor *x, int axis); /* axis -1 is the last; -1 on error */
NG_API ng_shape ng_shape_of(const ng_tensor *x);     /* NG_SCALAR for NULL */

/* The elements, row by row, to read and to write; NULL with NG_EDTYPE if the tensor has another
 * dtype. After writing call ng_touch(x). A backward pass through an op that was recorded with the
 * old elements of x, or of a view of x, is then an error. */
NG_API float *ng_data_f32(const ng_tensor *x);
NG_API double *ng_data_f64(const ng_tensor *x);
NG_API int64_t *ng_data_i64(const ng_tensor *x);
NG_API void ng_touch(ng_tensor *x);

/* One element as a double: the only one; by flat index; by coordinates, ng_at(x, 2, 3). NaN on
 * error. */
NG_API double ng_item(const ng_tensor *x);
NG_API double ng_get(const ng_tensor *x, int64_t index);
NG_API double ng_at_index(const ng_tensor *x, ng_shape index);
#define ng_at(x, ...) ng_at_index(x, NG_SHAPE(__VA_ARGS__))

/* Prints shape, dtype and values; long axes show their first and last three entries.
 *     ng_print(x);   ng_print(x, .digits = 17);
 *
 * digits  significant digits, 1 to 17; 17 shows a double exactly; default 5 */
typedef struct {
    int digits;
    const ng_tensor *x;
} ng_print_options;
#define ng_print(...) ng_fprint_with(stdout, NG_NAMED(ng_print_options, x, __VA_ARGS__))
#define ng_fprint(stream, ...) ng_fprint_with(stream, NG_NAMED(ng_print_options, x, __VA_ARGS__))
NG_API void ng_fprint_with(FILE *stream, ng_print_options options);

/* ---- Change (tensors of yours and of modules; to change a tape's is NG_ESTATE) ------------- */

/* Set one element by flat index, or all elements: to one value, or as ng_uniform_new and
 * ng_normal_new draw them. int64 labels are written without a conversion by
 * ng_data_i64(y)[i] = label. */
NG_API ng_status ng_set(ng_tensor *x, int64_t index, double value);
NG_API ng_status ng_fill(ng_tensor *x, double value);
NG_API ng_status ng_fill_uniform(ng_tensor *x, double low, double high, ng_rng *rng);
NG_API ng_status ng_fill_normal(ng_tensor *x, double mean, double deviation, ng_rng *rng);

/* Copies the values of `from` into `x`, converting dtype; sizes must agree. */
NG_API ng_status ng_copy_values(ng_tensor *x, const ng_tensor *from);

/* ---- Gradients of a leaf ------------------------------------------------------------------ */

/* Makes x (yours, float or double) a leaf, a tensor that gets a gradient and is not itself
 * computed, and returns it:
 *     ng_tensor *x = ng_require_grad(ng_normal_new(NG_F64, NG_SHAPE(3, 4), 0, 1, &rng)); */
NG_API ng_tensor *ng_require_grad(ng_tensor *x);
NG_API bool ng_requires_grad(const ng_tensor *x);

/* The gradient that ng_backward has accumulated in a leaf, in x's shape; it lives as long as x.
 * NULL with NG_EGRAD if no backward pass has reached x; ng_has_grad asks without an error. A
 * backward pass that has this gradient as an operand or a cotangent reads it as it was before the
 * pass. A gradient rule must not call ng_grad for a leaf of its own pass. */
NG_API ng_tensor *ng_grad(ng_tensor *x);
NG_API bool ng_has_grad(const ng_tensor *x);

/* Makes a copy of g (x's shape and dtype) the gradient of x, as if ng_backward had computed it: for
 * a gradient of your own. */
NG_API ng_status ng_set_grad(ng_tensor *x, const ng_tensor *g);

/* Sets the gradient to zero. A training loop need not call it: after an optimizer's step the next
 * backward pass overwrites the gradient. */
NG_API void ng_zero_grad(ng_tensor *x);

/* ---- Free --------------------------------------------------------------------------------- */

/* Frees a tensor of yours with its gradient. Ignores NULL and tensors of a tape or a module. */
NG_API void ng_tensor_free(ng_tensor *x);

NG_END_C

#endif
