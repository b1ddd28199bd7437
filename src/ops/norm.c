/* What the norms share: checks of operands, how a tensor per channel meets x, the numbers that a
 * definition treats in its place, and the operands of those that normalize over the batch. */
#include "ops/op.h"
#include <math.h>

/* ---- Operands ----------------------------------------------------------------------------- */

bool ng_norm_given(const char *function, const char *name, const ng_tensor *operand)
{
    if (!operand && !ng_failed())
        ng_fail(NG_ENULL, "%s: %s is NULL; NG_NONE leaves it out", function, name);
    return operand != NULL;
}

bool ng_norm_eps_ok(const char *function, double eps)
{
    if (eps >= 0 && isfinite(eps)) return true;
    ng_fail(NG_EVALUE, "%s: eps = %g, expected a finite number of at least 0", function, eps);
    return false;
}

bool ng_has_channels(const char *function, const ng_tensor *x)
{
    if (x->shape.rank >= 2 && ng_shape_span(x->shape, 1, x->shape.rank) > 0) return true;
    ng_fail(NG_ESHAPE, "%s: x of shape %s, expected (N, C, ...) with at least 1 element a sample",
            function, ng_shape_print(x->shape).text);
    return false;
}

bool ng_has_rows(const char *function, const ng_tensor *x)
{
    if (x->shape.rank >= 1 && x->shape.dim[x->shape.rank - 1] >= 1) return true;
    ng_fail(NG_ESHAPE, "%s: x of shape %s, expected rows of at least 1 element", function,
            ng_shape_print(x->shape).text);
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

ng_shape ng_shape_per_channel(const ng_tensor *x)
{
    return (ng_shape){.rank = x->shape.rank - 1, .dim = {x->shape.dim[1], 1, 1, 1, 1, 1, 1}};
}

ng_tensor *ng_per_channel(ng_tape *tape, ng_tensor *c, const ng_tensor *x)
{
    return ng_reshape(tape, c, ng_shape_per_channel(x));
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
    tape->rstd = memory, tape->n_rstd = memory ? count : 0;
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

/* ---- Over the batch ----------------------------------------------------------------------- */

static bool is_batch(const char *function, const ng_tensor *x)
{
    if (x->shape.rank >= 2 && x->shape.rank <= 4) return true;
    ng_fail(NG_ESHAPE, "%s: x of shape %s, expected (N, C), (N, C, L) or (N, C, H, W)", function,
            ng_shape_print(x->shape).text);
    return false;
}

/* Running statistics are constants that training writes to: neither differentiated nor a tape's. */
static bool running_ok(const ng_batch_call *o, const char *name, const ng_tensor *running)
{
    if (!ng_channels_fit(o->function, name, running, o->x)) return false;
    if (running->requires_grad) {
        ng_fail(NG_EGRAD, "%s: %s requires a gradient, expected a buffer without one", o->function,
                name);
        return false;
    }
    if (o->training && running->tape) {
        ng_fail(NG_ESTATE, "%s: training updates %s, but it belongs to a tape and is read-only",
                o->function, name);
        return false;
    }
    return true;
}

/* One memory cannot be both. */
static bool running_apart(const ng_batch_call *o)
{
    if (!o->training || ng_is_none(o->running_mean) || o->running_mean != o->running_spread)
        return true;
    ng_fail(NG_EVALUE, "%s: running_mean and %s are one tensor, expected two", o->function,
            o->spread);
    return false;
}

static bool momentum_ok(const char *function, double momentum)
{
    if (momentum >= 0 && momentum <= 1) return true;
    ng_fail(NG_EVALUE, "%s: momentum = %g, expected 0 <= momentum <= 1", function, momentum);
    return false;
}

bool ng_batch_accepts(ng_tape *tape, const ng_batch_call *o, ng_column_norm_shape *shape)
{
    const char *function = o->function;
    ng_tensor *inputs[] = {o->x, o->gamma, o->beta, o->running_mean, o->running_spread};
    if (!ng_given(function, "x", o->x) || !ng_norm_given(function, "gamma", o->gamma) ||
        !ng_norm_given(function, "beta", o->beta) ||
        !ng_norm_given(function, "running_mean", o->running_mean) ||
        !ng_norm_given(function, o->spread, o->running_spread) ||
        !ng_accepts(function, tape, 1, inputs) || !ng_accepts_optional(function, tape, 5, inputs) ||
        !is_batch(function, o->x) || !ng_channels_fit(function, "gamma", o->gamma, o->x) ||
        !ng_channels_fit(function, "beta", o->beta, o->x) ||
        !running_ok(o, "running_mean", o->running_mean) ||
        !running_ok(o, o->spread, o->running_spread) || !ng_norm_eps_ok(function, o->eps) ||
        !momentum_ok(function, o->momentum) || !running_apart(o))
        return false;

    const ng_shape x = o->x->shape;
    *shape = (ng_column_norm_shape){.outer = o->x->size == 0 ? 0 : x.dim[0],
                                    .channels = x.dim[1],
                                    .inner = ng_shape_span(x, 2, x.rank),
                                    .eps = o->eps};
    if (!o->training || ng_is_joint(o) || shape->outer * shape->inner >= 2) return true;
    ng_fail(NG_ESHAPE, "%s: training needs more than one value per channel, got shape %s", function,
            ng_shape_print(x).text);
    return false;
}

void ng_batch_moved(const ng_batch_call *o, ng_batch_moments moments)
{
    if (o->later) {
        *o->later = moments;
        return;
    }
    ng_move_running(o->running_mean, moments.mean, 1, o->momentum);
    ng_move_running(o->running_spread, moments.var, moments.factor, o->momentum);
}

void ng_move_running(ng_tensor *running, const double *batch, double factor, double momentum)
{
    if (ng_is_none(running) || momentum == 0) return;
    ng_kernels_for(running->dtype)
        ->move_toward(running->data, batch, factor, momentum, running->size);
    ng_touch(running);
}
