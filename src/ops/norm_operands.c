/* What the norm families share: checks of operands, how a tensor per channel meets x, and the
 * numbers that a definition treats in its place. */
#include "ops/op.h"
#include <math.h>

bool ng_norm_given(const char *function, const char *name, const ng_tensor *operand)
{
    if (!operand && !ng_failed())
        ng_fail(NG_ENULL, "%s: %s is NULL; NG_NONE leaves it out", function, name);
    return operand != NULL;
}

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

bool ng_norm_eps_ok(const char *function, double eps)
{
    if (eps >= 0 && isfinite(eps)) return true;
    ng_fail(NG_EVALUE, "%s: eps = %g, expected a finite number of at least 0", function, eps);
    return false;
}

bool ng_channels_fit(const char *function, const char *name, const ng_tensor *c, const ng_tensor *x)
{
    const ng_shape expected = NG_SHAPE(x->shape.dim[1]);
    if (ng_is_none(c) || ng_shape_equal(c->shape, expected)) return true;
    ng_fail(NG_ESHAPE, "%s: %s of shape %s, expected %s for x of shape %s", function, name,
            ng_shape_print(c->shape).text, ng_shape_print(expected).text,
            ng_shape_print(x->shape).text);
    return false;
}

ng_tensor *ng_per_channel(ng_tape *tape, ng_tensor *c, const ng_tensor *x)
{
    ng_shape shape = {.rank = x->shape.rank - 1, .dim = {x->shape.dim[1], 1, 1, 1, 1, 1, 1}};
    return ng_reshape(tape, c, shape);
}

/* The power of 2 near rstd, or a smaller one if it would take the mean out of the dtype's range. */
static double scale_near(double mean, double rstd, ng_dtype dtype)
{
    if (!(rstd > 0) || isinf(rstd) || !isfinite(mean)) return 1;
    const int most = dtype == NG_F32 ? 126 : 1022, of_mean = fabs(mean) > 1 ? ilogb(mean) : 0;
    const int exponent = ilogb(rstd);
    return ldexp(1, exponent < most - of_mean ? exponent : most - of_mean);
}

ng_norm_constants ng_norm_constants_of(ng_tape *tape, ng_dtype dtype, ng_shape shape,
                                       const ng_statistics *statistics, double eps)
{
    const double *mean = statistics->mean, *rstd = statistics->rstd;
    const ng_norm_constants none = {NULL, NULL, NULL};
    ng_norm_constants c = {.scale = ng_result(tape, dtype, shape),
                           .shift = mean ? ng_result(tape, dtype, shape) : NULL,
                           .eps = ng_result(tape, dtype, shape)};
    if (!c.scale || !c.eps || (mean && !c.shift)) return none;
    for (int64_t i = 0; i < c.scale->size; i++) {
        const double center = mean ? mean[i] : 0, scale = scale_near(center, rstd[i], dtype);
        ng_tensor_store(c.scale, i, scale);
        ng_tensor_store(c.eps, i, eps * scale * scale);
        if (mean) ng_tensor_store(c.shift, i, center * scale);
    }
    return c;
}

ng_tensor *ng_norm_near(ng_tape *tape, ng_tensor *x, ng_norm_constants constants)
{
    ng_tensor *scaled = ng_mul(tape, x, constants.scale);
    return constants.shift ? ng_sub(tape, scaled, constants.shift) : scaled;
}
