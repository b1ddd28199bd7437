/* Jacobians, Hessians and their products with vectors, each made of gradients. */
#include "ops/op.h"
#include <normgrad/derivatives.h>
#include <string.h>

static bool derivatives_has_gradient(const char *function, const char *role, int number,
                                     const ng_tape *tape, const ng_tensor *x)
{
    if (!ng_usable(function, role, number, tape, x)) return false;
    if (x->requires_grad) return true;
    char which[16] = "";
    if (number > 0) snprintf(which, sizeof which, " %d", number);
    ng_fail(NG_EGRAD, "%s: %s%s requires no gradient: %s", function, role, which,
            x->tape ? ng_why_no_gradient(tape) : "call ng_require_grad on it first");
    return false;
}

static bool one_element(const char *function, const ng_tensor *y)
{
    return ng_expect_shape(y->size == 1, function, "y", y, "one element");
}

/* Whether there is one vector for each input, of its shape and dtype. */
static bool vectors_fit(const char *function, ng_tape *tape, ng_tensor *const *inputs,
                        ng_tensor *const *vectors, int count)
{
    if (count < 1) {
        ng_fail(NG_EVALUE, "%s: %d inputs, expected at least one", function, count);
        return false;
    }
    if (!ng_list_given(function, "input", inputs, count) ||
        !ng_list_given(function, "vector", vectors, count))
        return false;
    for (int i = 0; i < count; i++) {
        const ng_tensor *x = inputs[i], *v = vectors[i];
        if (!derivatives_has_gradient(function, "input", i + 1, tape, x) ||
            !ng_usable(function, "vector", i + 1, tape, v))
            return false;
        char name[24];
        snprintf(name, sizeof name, "vector %d", i + 1);
        if (!ng_has_type(function, name, v, x->dtype, x->shape)) return false;
    }
    return true;
}

/* sum_j a_j . b_j over the terms that have a gradient; NG_NONE if none has. */
static ng_tensor *dot_of_lists(ng_tape *tape, ng_tensor *const *a, ng_tensor *const *b, int count)
{
    ng_tensor *sum = NG_NONE;
    for (int i = 0; i < count; i++) {
        if (!a[i]->requires_grad) continue;
        ng_tensor *term = ng_dot(tape, a[i], b[i]);
        sum = ng_is_none(sum) ? term : ng_add(tape, sum, term);
    }
    return sum;
}

/* ---- Jacobian: a row for each element of y -------------------------------------------------- */

/* (y..., x...) */
static bool derivatives_joint_shape(const char *function, ng_shape y, ng_shape x, ng_shape *joint)
{
    if (y.rank + x.rank > NG_MAX_RANK) {
        ng_fail(NG_ESHAPE, "%s: %s by %s gives %d dimensions, expected at most %d", function,
                ng_shape_print(y).text, ng_shape_print(x).text, y.rank + x.rank, NG_MAX_RANK);
        return false;
    }
    *joint = y;
    for (int i = 0; i < x.rank; i++) joint->dim[joint->rank++] = x.dim[i];
    return ng_shape_size(function, *joint) >= 0;
}

/* d y_k / d x. Each row has a cotangent of its own, because it is recorded with the row. */
static ng_tensor *row_of(const char *function, ng_tape *tape, ng_tensor *y, int64_t k,
                         ng_jacobian_options options)
{
    ng_tensor *row = NULL;
    ng_tensor *one = ng_result_full(tape, y->dtype, y->shape, 0);
    if (!one) return NULL;
    ng_tensor_store(one, k, 1);
    ng_gradients_for(function, tape, &y, 1, &options.x, 1,
                     (ng_gradients_options){.gradients = &row,
                                            .cotangents = &one,
                                            .record = options.record,
                                            .allow_unused = options.allow_unused});
    return row;
}

static ng_tensor *recorded_rows(const char *function, ng_tape *tape, ng_tensor *y, ng_shape shape,
                                ng_jacobian_options options)
{
    ng_tensor **rows = ng_tape_memory(tape, ((size_t)y->size + 1) * sizeof(ng_tensor *));
    if (!rows) return NULL;
    for (int64_t k = 0; k < y->size; k++) {
        ng_tensor *row = row_of(function, tape, y, k, options);
        rows[k] = row ? ng_reshape(tape, row, NG_SHAPE(1, options.x->size)) : NULL;
        if (!rows[k]) return NULL;
    }
    return ng_reshape(tape, ng_concat(tape, rows, (int)y->size, 0), shape);
}

static ng_tensor *copied_rows(const char *function, ng_tape *tape, ng_tensor *y, ng_shape shape,
                              ng_jacobian_options options)
{
    ng_tensor *jacobian = ng_result(tape, y->dtype, shape);
    const size_t bytes = (size_t)options.x->size * ng_dtype_bytes(y->dtype);
    for (int64_t k = 0; jacobian && k < y->size; k++) {
        const ng_tensor *row = row_of(function, tape, y, k, options);
        if (!row) return NULL;
        memcpy((char *)jacobian->data + (size_t)k * bytes, row->data, bytes);
    }
    return jacobian;
}

static ng_tensor *jacobian(const char *function, ng_tape *tape, ng_tensor *y,
                           ng_jacobian_options options)
{
    ng_shape shape;
    if (!derivatives_joint_shape(function, y->shape, options.x->shape, &shape) ||
        !ng_expect_shape(y->size <= INT32_MAX, function, "y", y, "at most 2^31 - 1 elements"))
        return NULL;
    if (y->size == 0) return ng_result(tape, y->dtype, shape);
    return options.record ? recorded_rows(function, tape, y, shape, options)
                          : copied_rows(function, tape, y, shape, options);
}

ng_tensor *ng_jacobian_with(ng_tape *tape, ng_tensor *y, ng_jacobian_options options)
{
    static const char function[] = "ng_jacobian";
    ng_tensor *const operands[] = {y, options.x};
    if (!ng_accepts(function, tape, 2, operands) ||
        !derivatives_has_gradient(function, "x", 0, tape, options.x))
        return NULL;
    if (!options.allow_unused && !derivatives_has_gradient(function, "y", 0, tape, y)) return NULL;
    return jacobian(function, tape, y, options);
}

/* ---- Hessian: the Jacobian of the gradient --------------------------------------------------- */

ng_tensor *ng_hessian_with(ng_tape *tape, ng_tensor *y, ng_jacobian_options options)
{
    static const char function[] = "ng_hessian";
    ng_tensor *const operands[] = {y, options.x};
    if (!ng_accepts(function, tape, 2, operands) ||
        !derivatives_has_gradient(function, "x", 0, tape, options.x) || !one_element(function, y))
        return NULL;
    if (!options.allow_unused && !derivatives_has_gradient(function, "y", 0, tape, y)) return NULL;
    ng_tensor *gradient = NULL;
    ng_gradients_for(function, tape, &y, 1, &options.x, 1,
                     (ng_gradients_options){.gradients = &gradient,
                                            .record = true,
                                            .allow_unused = options.allow_unused});
    if (!gradient) return NULL;
    options.allow_unused = true; /* a gradient that depends on x no more has derivative 0 */
    return jacobian(function, tape, gradient, options);
}

/* ---- Products with vectors ----------------------------------------------------------------- */

static ng_status zeros_for(ng_tape *tape, ng_tensor *const *inputs, int count, ng_tensor **zeros)
{
    for (int i = 0; i < count; i++)
        if (!(zeros[i] = ng_zeros_like(tape, inputs[i]))) return ng_newest_status();
    return NG_OK;
}

/* g . v, recorded, where g is the gradient of y, or of y . cotangent unless that is NULL. */
static ng_tensor *gradient_along(const char *function, ng_tape *tape, ng_tensor *y,
                                 ng_tensor *cotangent, ng_tensor *const *inputs,
                                 ng_tensor *const *vectors, int count, bool allow_unused)
{
    ng_tensor **g = ng_tape_memory(tape, (size_t)count * sizeof(ng_tensor *));
    const ng_gradients_options options = {.gradients = g,
                                          .cotangents = cotangent ? &cotangent : NULL,
                                          .record = true,
                                          .allow_unused = allow_unused};
    if (!g || ng_gradients_for(function, tape, &y, 1, inputs, count, options) != NG_OK) return NULL;
    const bool was = ng_tape_set_recording(tape, true);
    ng_tensor *along = dot_of_lists(tape, g, vectors, count);
    ng_tape_set_recording(tape, was);
    return along;
}

/* The gradient of g . v, where g is the gradient. */
ng_status ng_hvp_with(ng_tape *tape, ng_tensor *y, ng_tensor *const *inputs, int n_inputs,
                      ng_tensor *const *vectors, ng_hvp_options options)
{
    static const char function[] = "ng_hvp";
    if (!ng_accepts(function, tape, 1, &y) || !ng_given(function, "products", options.products) ||
        !vectors_fit(function, tape, inputs, vectors, n_inputs) || !one_element(function, y))
        return ng_newest_status();
    if (!options.allow_unused && !derivatives_has_gradient(function, "y", 0, tape, y))
        return ng_newest_status();
    ng_tensor **products = ng_tape_memory(tape, (size_t)n_inputs * sizeof(ng_tensor *));
    ng_tensor *along = products ? gradient_along(function, tape, y, NULL, inputs, vectors, n_inputs,
                                                 options.allow_unused)
                                : NULL;
    if (!along) return ng_newest_status();
    const ng_status status = ng_is_none(along)
                                 ? zeros_for(tape, inputs, n_inputs, products)
                                 : ng_gradients(tape, &along, 1, inputs, n_inputs, products,
                                                .record = options.record, .allow_unused = true);
    if (status == NG_OK) memcpy(options.products, products, (size_t)n_inputs * sizeof(ng_tensor *));
    return status;
}

ng_tensor *ng_jvp_with(ng_tape *tape, ng_tensor *y, ng_tensor *const *inputs, int n_inputs,
                       ng_jvp_options options)
{
    static const char function[] = "ng_jvp";
    if (!ng_accepts(function, tape, 1, &y) ||
        !vectors_fit(function, tape, inputs, options.vectors, n_inputs))
        return NULL;
    if (!options.allow_unused && !derivatives_has_gradient(function, "y", 0, tape, y)) return NULL;
    /* A node: a sweep to it ends there, where one to a leaf looks through the whole tape. */
    ng_tensor *minus = ng_result_full(tape, y->dtype, y->shape, -1);
    ng_tensor *leaf = minus ? ng_variable(tape, minus, .by_definition = true) : NULL;
    const bool was = ng_tape_set_recording(tape, true);
    ng_tensor *cotangent = leaf ? ng_neg(tape, leaf) : NULL;
    ng_tape_set_recording(tape, was);
    if (!cotangent) return NULL;
    ng_tensor *along = gradient_along(function, tape, y, cotangent, inputs, options.vectors,
                                      n_inputs, options.allow_unused);
    if (!along) return NULL;
    if (ng_is_none(along)) return ng_zeros_like(tape, y);
    ng_tensor *product =
        ng_gradient(tape, along, cotangent, .record = options.record, .allow_unused = true);
    leaf->requires_grad = false; /* it is no leaf to anybody else */
    return product;
}
