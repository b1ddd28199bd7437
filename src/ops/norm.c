/* What the norms share: checks of operands and settings, statistics, composition of ops. */
#include "ops/norm.h"
#include <math.h>

/* ---- Operands and settings ---------------------------------------------------------------- */

bool ng_norm_accepts(const char *function, ng_tape *tape, ng_tensor *const inputs[3])
{
    static const char *const names[] = {"x", "gamma", "beta"};
    return ng_accepts_optional(function, tape, 1, 3, inputs, names);
}

bool ng_norm_eps_ok(const char *function, double eps)
{
    return ng_option_range(function, "eps", eps, 0, HUGE_VAL);
}

bool ng_has_channels(const char *function, const ng_tensor *x)
{
    return ng_expect_shape(x->shape.rank >= 2 && ng_shape_span(x->shape, 1, x->shape.rank) > 0,
                           function, "x", x, "(N, C, ...) with at least 1 element a sample");
}

bool ng_has_rows(const char *function, const ng_tensor *x)
{
    return ng_expect_shape(x->shape.rank >= 1 && ng_dim(x, -1) >= 1, function, "x", x,
                           "rows of at least 1 element");
}

bool ng_operand_fits(const char *function, const char *name, const ng_tensor *c, ng_shape expected,
                     const ng_tensor *x)
{
    if (ng_is_none(c) || ng_shape_equal(c->shape, expected)) return true;
    ng_fail(NG_ESHAPE, "%s: %s of shape %s, expected %s for a tensor of shape %s", function, name,
            ng_shape_print(c->shape).text, ng_shape_print(expected).text,
            ng_shape_print(x->shape).text);
    return false;
}

bool ng_affine_fits(const char *function, const ng_tensor *gamma, const ng_tensor *beta,
                    ng_shape expected, const ng_tensor *x)
{
    return ng_operand_fits(function, "gamma", gamma, expected, x) &&
           ng_operand_fits(function, "beta", beta, expected, x);
}

ng_shape ng_shape_per_channel(const ng_tensor *x)
{
    return (ng_shape){.rank = x->shape.rank - 1, .dim = {x->shape.dim[1], 1, 1, 1, 1, 1, 1}};
}

ng_tensor *ng_per_channel(ng_tape *tape, ng_tensor *c, const ng_tensor *x)
{
    return ng_reshape(tape, c, ng_shape_per_channel(x));
}

ng_tensor *ng_by_positions(ng_tape *tape, ng_tensor *x)
{
    const ng_shape s = x->shape;
    return ng_reshape(tape, x, NG_SHAPE(s.dim[0], s.dim[1], ng_shape_span(s, 2, s.rank)));
}

ng_axes ng_all_but_channel(const ng_tensor *x)
{
    return (ng_axes){.count = ng_rank(x) - 1, .axis = {0, 2, 3, 4, 5, 6, 7}};
}

/* ---- Statistics --------------------------------------------------------------------------- */

bool ng_statistics_new(ng_tape *tape, const ng_tensor *x, int64_t count, bool center,
                       ng_statistics *statistics)
{
    const bool low = center && x->dtype == NG_F64;
    double *memory =
        ng_tape_memory(tape, (size_t)count * (size_t)(1 + center + low) * sizeof *memory);
    *statistics = (ng_statistics){.rstd = memory,
                                  .mean = memory && center ? memory + count : NULL,
                                  .low = memory && low ? memory + 2 * count : NULL};
    return memory != NULL;
}

void ng_inverse_deviation(double *rstd, const double *var, double eps, int64_t n)
{
    for (int64_t i = 0; i < n; i++) rstd[i] = 1 / sqrt(var[i] + eps);
}

void ng_channel_affine(const ng_tensor *x, const ng_tensor *gamma, const ng_tensor *beta, void *y)
{
    const ng_column_norm_shape shape = {.outer = x->shape.dim[0],
                                        .channels = x->shape.dim[1],
                                        .inner = ng_shape_span(x->shape, 2, x->shape.rank)};
    ng_kernels_for(x->dtype)->column_norm(&shape, x->data, (ng_statistics){NULL, NULL, NULL},
                                          gamma->data, beta->data, y);
}

/* ---- In the definitions ------------------------------------------------------------------- */

ng_composed_norm ng_compose_norm(ng_tape *tape, ng_tensor *x, ng_axes axes, ng_deviation deviation)
{
    if (deviation.center) {
        x = ng_near_zero(tape, x, axes);
        x = ng_sub(tape, x, ng_mean(tape, x, .axes = axes, .keepdim = true));
    }
    ng_tensor *squares = ng_sum(tape, ng_square(tape, x), .axes = axes, .keepdim = true);
    ng_tensor *var = ng_mul_scalar(tape, squares, 1 / deviation.divisor);
    return (ng_composed_norm){x, ng_rsqrt(tape, ng_add_scalar(tape, var, deviation.eps))};
}

ng_tensor *ng_affine_composed(ng_tape *tape, ng_tensor *y, ng_tensor *gamma, ng_tensor *beta)
{
    if (y && gamma != NG_NONE) y = ng_mul(tape, y, ng_per_channel(tape, gamma, y));
    if (y && beta != NG_NONE) y = ng_add(tape, y, ng_per_channel(tape, beta, y));
    return y;
}

ng_tensor *ng_composed_output(ng_tape *tape, ng_composed_norm norm, ng_tensor *gamma,
                              ng_tensor *beta, const ng_tensor *x)
{
    ng_tensor *y = ng_reshape(tape, ng_mul(tape, norm.centred, norm.rstd), x->shape);
    return ng_affine_composed(tape, y, gamma, beta);
}

ng_tensor *ng_rms_norm_of_groups(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, int64_t groups,
                                 double eps)
{
    if (groups == 1 || !x) return ng_rms_norm(tape, x, gamma, .eps = eps);
    const int64_t n = ng_dim(x, -1) / groups;
    ng_tensor *parts = ng_reshape(tape, x, NG_SHAPE(ng_size(x) / n, n));
    ng_tensor *y = ng_reshape(tape, ng_rms_norm(tape, parts, NG_NONE, .eps = eps), x->shape);
    return ng_is_none(gamma) ? y : ng_mul(tape, y, gamma);
}
