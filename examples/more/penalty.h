/* Training data for critics, points on a circle, and the gradient penalty of Gulrajani et al.
 * 2017. */
#ifndef EXAMPLES_PENALTY_H
#define EXAMPLES_PENALTY_H

#include <math.h>
#include <normgrad.h>

static const double circle_deviation = 0.05;

/* Points (count, 2) of eight Gaussians on a circle of radius 1. */
static inline ng_tensor *draw_circle(ng_tape *tape, ng_dtype dtype, int64_t count)
{
    ng_tensor *eighth = ng_floor(tape, ng_uniform(tape, dtype, NG_SHAPE(count, 1), 0, 8));
    ng_tensor *angle = ng_mul_scalar(tape, eighth, acos(-1) / 4);
    ng_tensor *center = ng_concat(tape, NG_TENSORS(ng_cos(tape, angle), ng_sin(tape, angle)), 1);
    return ng_add(tape, center, ng_normal(tape, dtype, NG_SHAPE(count, 2), 0, circle_deviation));
}

/* Points (count, 2) on the lines between those of a and of b, at random places. They are leaves, so
 * that gradients with respect to them exist. */
static inline ng_tensor *points_between(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    ng_tensor *share = ng_uniform(tape, ng_dtype_of(a), NG_SHAPE(ng_dim(a, 0), 1), 0, 1);
    ng_tensor *way = ng_mul(tape, share, ng_sub(tape, b, a));
    return ng_variable(tape, ng_add(tape, a, way));
}

/* Records the mean of (|d critic(v) / d v| - 1)^2 over random points v between those of a and of
 * b. */
static inline ng_tensor *gradient_penalty(ng_module *critic, ng_tape *tape, ng_tensor *a,
                                          ng_tensor *b)
{
    ng_tensor *v = points_between(tape, a, b);
    ng_tensor *slope = ng_gradient(tape, ng_forward(critic, tape, v), v, .record = true);
    ng_tensor *length = ng_norm(tape, slope, .axes = NG_AXES(1));
    return ng_mean(tape, ng_square(tape, ng_add_scalar(tape, length, -1)));
}

#endif
