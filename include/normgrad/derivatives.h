/* Derivatives beyond the gradient, each made of gradients: of whole outputs, of second order, and
 * forward. All are results on the tape, and with .record can be differentiated again.
 *
 *     ng_tensor *x = ng_variable(tape, start);
 *     ng_tensor *h = ng_hessian(tape, rosenbrock(tape, x), x);
 *
 * x is a leaf or an intermediate that requires a gradient. A gradient that is to be differentiated
 * must have been recorded (ng_gradient(tape, y, x, .record = true)); NG_EGRAD asks whether it was.
 */
#ifndef NORMGRAD_DERIVATIVES_H
#define NORMGRAD_DERIVATIVES_H

#include <normgrad/ops.h>

NG_BEGIN_C

/* J[i, j] = d y_i / d x_j for y (...) and x (...), of any shapes: -> (y's dimensions..., x's). One
 * backward pass for each element of y. Together they have at most 8 dimensions.
 *
 * record        record it too, so that it can be differentiated again
 * allow_unused  where y does not depend on x it is 0, in place of NG_EGRAD */
typedef struct {
    bool record, allow_unused;
    ng_tensor *x;
} ng_jacobian_options;
#define ng_jacobian(tape, y, ...)                                                                  \
    ng_jacobian_with(tape, y, NG_NAMED(ng_jacobian_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_jacobian_with(ng_tape *tape, ng_tensor *y, ng_jacobian_options options);

/* H[i, j] = d^2 y / (d x_i d x_j) for a y of one element: x (...) -> (x's dimensions..., x's). One
 * backward pass for each element of x; settings as above. A y that is linear in x has H = 0. */
#define ng_hessian(tape, y, ...)                                                                   \
    ng_hessian_with(tape, y, NG_NAMED(ng_jacobian_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_hessian_with(ng_tape *tape, ng_tensor *y, ng_jacobian_options options);

/* The Hessian times a vector, without it: products[i] = sum_j d^2 y / (d x_i d x_j) v_j for
 * a y of one element, over a list of inputs x_j and vectors v_j of their shapes. Two backward
 * passes, whatever the number of inputs. Pearlmutter 1994.
 *
 *     ng_hvp(tape, loss, parameters, n, vectors, products)
 *
 * record        record them too
 * allow_unused  an input that y does not depend on has product 0, in place of NG_EGRAD */
typedef struct {
    bool record, allow_unused;
    ng_tensor **products;
} ng_hvp_options;
#define ng_hvp(tape, y, inputs, n_inputs, vectors, ...)                                            \
    ng_hvp_with(tape, y, inputs, n_inputs, vectors, NG_NAMED(ng_hvp_options, products, __VA_ARGS__))
NG_API ng_status ng_hvp_with(ng_tape *tape, ng_tensor *y, ng_tensor *const *inputs, int n_inputs,
                             ng_tensor *const *vectors, ng_hvp_options options);

/* The Jacobian times a vector, along which the inputs move: dy = sum_j (d y / d x_j) v_j, in y's
 * shape, with vectors v_j of the inputs' shapes. It is the gradient, to the cotangent, of the
 * gradient's product with v, which is linear in the cotangent: two backward passes, whatever the
 * sizes.
 *
 *     ng_jvp(tape, y, &x, 1, &direction)
 *
 * record        record it too
 * allow_unused  an input that y does not depend on adds 0, in place of NG_EGRAD */
typedef struct {
    bool record, allow_unused;
    ng_tensor *const *vectors;
} ng_jvp_options;
#define ng_jvp(tape, y, inputs, n_inputs, ...)                                                     \
    ng_jvp_with(tape, y, inputs, n_inputs, NG_LISTED(ng_jvp_options, vectors, __VA_ARGS__))
NG_API ng_tensor *ng_jvp_with(ng_tape *tape, ng_tensor *y, ng_tensor *const *inputs, int n_inputs,
                              ng_jvp_options options);

NG_END_C

#endif
