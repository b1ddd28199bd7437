/* Derivatives beyond the gradient: Jacobians, Hessians, and their products with vectors.
 *
 *     ng_tensor *v = ng_variable(tape, x);
 *     ng_tensor *y = ng_softmax(tape, v);
 *     ng_tensor *j = ng_jacobian(tape, y, v);
 *     ng_tensor *h = ng_hessian(tape, ng_sum(tape, ng_square(tape, y)), v);
 *     ng_tensor *dy = ng_jvp(tape, y, &v, 1, &vector);
 *
 *     ng_jacobian(tape, y, x)                    J[i, j] = d y_i / d x_j
 *     ng_hessian(tape, y, x)                     H[i, j] = d^2 y / (d x_i d x_j)
 *     ng_hvp(tape, y, inputs, n, vectors, out)   H v without H
 *     ng_jvp(tape, y, inputs, n, vectors)        J v without J
 *
 * x is a leaf or an intermediate that requires a gradient. The results are on the tape; with
 * .record they can be differentiated again. If y is a gradient itself, it must have been recorded
 * (ng_gradient(tape, y, x, .record = true)); else NG_EGRAD.
 */
#ifndef NORMGRAD_DERIVATIVES_H
#define NORMGRAD_DERIVATIVES_H

#include <normgrad/ops.h>

NG_BEGIN_C

/* J[i, j] = d y_i / d x_j for y and x of any shapes: -> (y's dimensions..., x's dimensions...), at
 * most 8 in all. One backward pass for each element of y. */
typedef struct {
    bool record;       /* record it, so that it can be differentiated */
    bool allow_unused; /* 0 if y does not depend on x; default: NG_EGRAD */
    ng_tensor *x;
} ng_jacobian_options;
#define ng_jacobian(tape, y, ...)                                                                  \
    ng_jacobian_with(tape, y, NG_NAMED(ng_jacobian_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_jacobian_with(ng_tape *tape, ng_tensor *y, ng_jacobian_options options);

/* H[i, j] = d^2 y / (d x_i d x_j) for a y of one element -> (x's dimensions..., x's dimensions...).
 * One backward pass for each element of x. If y is linear in x, H is 0. */
#define ng_hessian(tape, y, ...)                                                                   \
    ng_hessian_with(tape, y, NG_NAMED(ng_jacobian_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_hessian_with(ng_tape *tape, ng_tensor *y, ng_jacobian_options options);

/* The Hessian times a vector, without computing the Hessian: for a y of one element, inputs x_j,
 * and vectors v_j of their shapes,
 *     products[i] = sum_j d^2 y / (d x_i d x_j) v_j
 *     ng_hvp(tape, loss, parameters, n, vectors, products)
 * Two backward passes for any number of inputs. Pearlmutter 1994. */
typedef struct {
    bool record;       /* record them, so that they can be differentiated */
    bool allow_unused; /* 0 for an input that y does not depend on; default: NG_EGRAD */
    ng_tensor **products;
} ng_hvp_options;
#define ng_hvp(tape, y, inputs, n_inputs, vectors, ...)                                            \
    ng_hvp_with(tape, y, inputs, n_inputs, vectors, NG_NAMED(ng_hvp_options, products, __VA_ARGS__))
NG_API ng_status ng_hvp_with(ng_tape *tape, ng_tensor *y, ng_tensor *const *inputs, int n_inputs,
                             ng_tensor *const *vectors, ng_hvp_options options);

/* The Jacobian times a vector, how y changes when the inputs move along it: for vectors v_j of the
 * inputs' shapes,
 *     dy = sum_j (d y / d x_j) v_j
 *     ng_jvp(tape, y, &x, 1, &direction)
 * dy has y's shape. Two backward passes for any sizes. */
typedef struct {
    bool record;       /* record it, so that it can be differentiated */
    bool allow_unused; /* an input that y does not depend on adds 0; default: NG_EGRAD */
    ng_tensor *const *vectors;
} ng_jvp_options;
#define ng_jvp(tape, y, inputs, n_inputs, ...)                                                     \
    ng_jvp_with(tape, y, inputs, n_inputs, NG_NAMED(ng_jvp_options, vectors, __VA_ARGS__))
NG_API ng_tensor *ng_jvp_with(ng_tape *tape, ng_tensor *y, ng_tensor *const *inputs, int n_inputs,
                              ng_jvp_options options);

NG_END_C

#endif
