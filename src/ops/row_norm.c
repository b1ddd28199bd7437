/* Row-wise normalization: LayerNorm and RMSNorm; pRMSNorm, which is composed.
 *
 * x is seen as (rows, n), a row being the last `dims` dimensions; gamma and beta are (n).
 *
 *     mean = (sum x) / n          0 for RMSNorm
 *     var  = (sum (x - mean)^2) / n     n - 1 in place of n where unbiased
 *     rstd = 1 / sqrt(var + eps)
 *     xhat = (x - mean) rstd
 *     y    = xhat gamma + beta
 *
 * kernels/row_norm.inc derives the gradient. A recorded gradient is the op row_norm_dx, whose own
 * gradient is in kernels/norm_second.inc.
 *
 * At 256x128 with its backward pass LayerNorm takes 0.3 of its definition's time, RMSNorm 0.5; a
 * recorded gradient and the gradient of that take 28 and 60 us, by the definition 120 and 165. A
 * step with a gradient penalty takes 0.7 to 0.8.
 */
#include "ops/norm.h"

typedef struct {
    ng_row_norm_shape shape;
    ng_statistics statistics; /* (rows), the tape's; no mean for RMSNorm */
} row_norm_attributes;

/* ---- Gradient and definition -------------------------------------------------------------- */

static double *new_scratch(ng_tape *tape, const row_norm_attributes *saved)
{
    return ng_tape_memory(tape, (size_t)ng_row_norm_scratch(&saved->shape) * sizeof(double));
}

static ng_status row_norm_op_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                      ng_slot *dx)
{
    const row_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    double *scratch = NULL;
    if ((dx[1].data || dx[2].data) && !(scratch = new_scratch(tape, saved))) return NG_ENOMEM;
    const ng_norm_gradients gradients = {dx[0], dx[1], dx[2]};
    ng_kernels_for(x->dtype)->row_norm_backward(&saved->shape, x->data, gamma->data,
                                                saved->statistics, dy->data, gradients, scratch);
    return NG_OK;
}

static double divisor_of(const ng_row_norm_shape *shape)
{
    return (double)(shape->unbiased ? shape->n - 1 : shape->n);
}

/* x as rows, without their means if they are centred, and 1 / deviation. */
static ng_composed_norm compose_rows(ng_tape *tape, ng_tensor *x, const row_norm_attributes *saved)
{
    const ng_row_norm_shape *s = &saved->shape;
    return ng_compose_norm(tape, ng_reshape(tape, x, NG_SHAPE(s->rows, s->n)), NG_AXES(1),
                           (ng_deviation){s->center, divisor_of(s), s->eps});
}

static ng_tensor *row_norm_definition(ng_tape *tape, const ng_node *node)
{
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *beta = node->inputs[2];
    const ng_composed_norm c = compose_rows(tape, x, node->attributes);
    ng_tensor *y = ng_reshape(tape, ng_mul(tape, c.centred, c.rstd), ng_shape_of(x));
    if (gamma != NG_NONE) y = ng_mul(tape, y, gamma);
    if (beta != NG_NONE) y = ng_add(tape, y, beta);
    return y;
}

/* ---- The gradient of the gradient ---------------------------------------------------------- */

static ng_tensor *row_norm_dx_definition(ng_tape *tape, const ng_node *node)
{
    const row_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *dy = node->inputs[2];
    const ng_composed_norm c = compose_rows(tape, x, saved);
    ng_tensor *xhat = ng_mul(tape, c.centred, c.rstd);
    ng_tensor *g = gamma == NG_NONE ? dy : ng_mul(tape, dy, gamma);
    g = ng_reshape(tape, g, ng_shape_of(xhat));
    ng_tensor *slope = ng_sum(tape, ng_mul(tape, g, xhat), .axes = NG_AXES(1), .keepdim = true);
    ng_tensor *a = ng_mul_scalar(tape, slope, 1 / divisor_of(&saved->shape));
    if (saved->shape.center)
        g = ng_sub(tape, g, ng_mean(tape, g, .axes = NG_AXES(1), .keepdim = true));
    ng_tensor *dx = ng_mul(tape, ng_sub(tape, g, ng_mul(tape, xhat, a)), c.rstd);
    return ng_reshape(tape, dx, ng_shape_of(x));
}

static ng_status row_norm_dx_backward(ng_tape *tape, const ng_node *node, const ng_tensor *u,
                                      ng_slot *slots)
{
    const row_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *dy = node->inputs[2];
    double *scratch = NULL;
    if (slots[1].data && !(scratch = new_scratch(tape, saved))) return NG_ENOMEM;
    ng_kernels_for(x->dtype)->row_norm_second(
        &saved->shape, x->data, gamma->data, saved->statistics, dy->data, u->data,
        (ng_second_gradients){slots[0], slots[1], slots[2]}, scratch);
    return NG_OK;
}

static const ng_op row_norm_dx_op = {
    .name = "row_norm_dx", .backward = row_norm_dx_backward, .definition = row_norm_dx_definition};

static ng_tensor *row_norm_dx(ng_tape *tape, const ng_node *node, ng_tensor *dy)
{
    const row_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *inputs[] = {x, node->inputs[1], dy};
    ng_tensor *dx = ng_result(tape, x->dtype, x->shape);
    if (!dx) return NULL;
    ng_kernels_for(x->dtype)->row_norm_backward(&saved->shape, x->data, inputs[1]->data,
                                                saved->statistics, dy->data,
                                                (ng_norm_gradients){.dx.data = dx->data}, NULL);
    return ng_record_own(tape, &row_norm_dx_op, dx, inputs, 3, saved, sizeof *saved);
}

static void row_norm_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const row_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *beta = node->inputs[2];
    if (ng_wants(dx, 0)) dx[0] = row_norm_dx(tape, node, dy);
    if (ng_wants(dx, 1)) {
        ng_tensor *xhat =
            ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = ng_exactly(saved->shape.eps),
                        .dims = gamma->shape.rank, .rms = !saved->shape.center,
                        .unbiased = saved->shape.unbiased);
        dx[1] = ng_sum_to(tape, ng_mul(tape, dy, xhat), gamma->shape);
    }
    if (ng_wants(dx, 2)) dx[2] = ng_sum_to(tape, dy, beta->shape);
}

static const ng_op layer_norm_op = {.name = "layer_norm",
                                    .backward = row_norm_op_backward,
                                    .gradient = row_norm_gradient,
                                    .definition = row_norm_definition};

static const ng_op rms_norm_op = {.name = "rms_norm",
                                  .backward = row_norm_op_backward,
                                  .gradient = row_norm_gradient,
                                  .definition = row_norm_definition};

/* ---- Shape rule --------------------------------------------------------------------------- */

/* The last `dims` dimensions of a shape. */
static ng_shape trailing(ng_shape shape, int dims)
{
    ng_shape last = {.rank = dims};
    for (int i = 0; i < dims; i++) last.dim[i] = shape.dim[shape.rank - dims + i];
    return last;
}

/* How many trailing dimensions make a row; 0 with an error. */
static int row_dims(const char *function, const ng_tensor *x, const ng_tensor *gamma,
                    const ng_row_norm_options *o)
{
    const ng_tensor *affine = ng_is_none(gamma) ? o->beta : gamma;
    int dims = o->dims;
    if (dims == 0) dims = ng_is_none(affine) ? 1 : affine->shape.rank;
    if (dims >= 1 && dims <= x->shape.rank) return dims;
    ng_fail(NG_ESHAPE, "%s: a row has %d dimensions, expected at least 1 and at most those of x %s",
            function, dims, ng_shape_print(x->shape).text);
    return 0;
}

/* Whether eps, .partial, .rms and .unbiased go together; eps and .partial have no default here. */
static bool row_norm_settings_ok(const char *function, const ng_row_norm_options *o)
{
    if (!ng_norm_eps_ok(function, o->eps)) return false;
    if (!(o->partial > 0 && o->partial <= 1))
        ng_fail(NG_EVALUE, "%s: partial is %g, expected 0 < partial <= 1", function,
                o->partial + 0);
    else if (o->partial < 1 && !o->rms)
        ng_fail(NG_EVALUE, "%s: partial statistics are for .rms, not for centred rows", function);
    else if (o->unbiased && o->rms)
        ng_fail(NG_EVALUE, "%s: an unbiased variance needs centred rows, not .rms", function);
    else
        return true;
    return false;
}

/* The kernel's view of x; false with an error for rows that are too short. */
static bool rows_of(const char *function, ng_shape x, const ng_row_norm_options *o, int dims,
                    ng_row_norm_shape *shape)
{
    const int64_t n = ng_shape_span(x, x.rank - dims, x.rank);
    *shape = (ng_row_norm_shape){.rows = ng_shape_span(x, 0, x.rank - dims),
                                 .n = n,
                                 .eps = o->eps,
                                 .center = !o->rms,
                                 .unbiased = o->unbiased};
    if (n >= (o->unbiased ? 2 : 1)) return true;
    ng_fail(NG_ESHAPE, "%s: %s needs rows of at least %s, got shape %s", function,
            o->unbiased ? "an unbiased variance" : "a norm",
            o->unbiased ? "2 elements" : "1 element", ng_shape_print(x).text);
    return false;
}

/* ---- Forward ------------------------------------------------------------------------------ */

/* pRMSNorm, whose mean square is over the first part of each row. */
static ng_tensor *partial_rms_norm(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                   const ng_row_norm_options *o, const ng_row_norm_shape *shape)
{
    const int64_t n = ng_fraction_of(o->partial, shape->n);
    ng_tensor *row = ng_reshape(tape, x, NG_SHAPE(shape->rows, shape->n));
    ng_tensor *part = ng_slice(tape, row, 1, 0, n < 1 ? 1 : n);
    ng_tensor *mean = ng_mean(tape, ng_square(tape, part), .axes = NG_AXES(1), .keepdim = true);
    ng_tensor *rstd = ng_rsqrt(tape, ng_add_scalar(tape, mean, shape->eps));
    ng_tensor *y = ng_reshape(tape, ng_mul(tape, row, rstd), ng_shape_of(x));
    if (gamma != NG_NONE) y = ng_mul(tape, y, gamma);
    return o->beta == NG_NONE ? y : ng_add(tape, y, o->beta);
}

static ng_tensor *recorded_row_norm(const char *function, ng_tape *tape, ng_tensor *x,
                                    ng_tensor *gamma, ng_row_norm_options options)
{
    const ng_row_norm_options *const o = &options;
    options.eps = ng_option(options.eps, options.rms ? 1e-6 : 1e-5);
    options.partial = ng_option(options.partial, 1);
    ng_tensor *const beta = o->beta, *inputs[] = {x, gamma, beta};
    if (!ng_norm_accepts(function, tape, inputs) || !row_norm_settings_ok(function, o)) return NULL;
    const int dims = row_dims(function, x, gamma, o);
    row_norm_attributes saved = {0};
    if (dims == 0 || !ng_affine_fits(function, gamma, beta, trailing(x->shape, dims), x) ||
        !rows_of(function, x->shape, o, dims, &saved.shape))
        return NULL;
    if (o->partial < 1) return partial_rms_norm(tape, x, gamma, o, &saved.shape);

    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y || !ng_statistics_new(tape, x, saved.shape.rows, !o->rms, &saved.statistics))
        return NULL;
    ng_kernels_for(x->dtype)->row_norm(&saved.shape, x->data, gamma->data, beta->data, y->data,
                                       saved.statistics);
    return ng_record_own(tape, o->rms ? &rms_norm_op : &layer_norm_op, y, inputs, 3, &saved,
                         sizeof saved);
}

ng_tensor *ng_row_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                            ng_row_norm_options options)
{
    return recorded_row_norm("ng_row_norm", tape, x, gamma, options);
}

ng_tensor *ng_layer_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_norm_options o)
{
    const ng_row_norm_options options = {.eps = o.eps, .beta = o.last};
    return recorded_row_norm("ng_layer_norm", tape, x, gamma, options);
}

ng_tensor *ng_rms_norm_with(ng_tape *tape, ng_tensor *x, ng_norm_options o)
{
    const ng_row_norm_options options = {.eps = o.eps, .rms = true, .beta = NG_NONE};
    return recorded_row_norm("ng_rms_norm", tape, x, o.last, options);
}
