/* Layer normalization over the channels: each position of each sample by itself.
 *
 * x (N, C, ...) is seen as N matrices (C, positions), each normalized down its columns; gamma and
 * beta are (C). Per column
 *
 *     mean = (sum x) / C,  var = (sum (x - mean)^2) / C,  rstd = 1 / sqrt(var + eps)
 *     xhat = (x - mean) rstd
 *     y    = xhat gamma + beta                             by row, the channel
 *
 * kernels/row_norm.inc derives the gradient.
 *
 * Of images (16, 16, 16, 16) with its backward pass it takes 0.5 of its definition's time.
 */
#include "ops/norm.h"

typedef struct {
    ng_group_shape shape; /* (N, C, positions) */
    double eps;
    ng_statistics statistics; /* (N, positions), the tape's */
} channel_norm_attributes;

/* One sample, (C, positions), as the column kernels see it. */
static ng_column_norm_shape sample_of(const channel_norm_attributes *saved)
{
    return (ng_column_norm_shape){.outer = saved->shape.channels,
                                  .channels = saved->shape.inner,
                                  .inner = 1,
                                  .eps = saved->eps};
}

/* Where a sample begins in x's elements. */
static void *at_sample(const ng_tensor *x, void *data, const channel_norm_attributes *saved,
                       int64_t sample)
{
    const int64_t elements = sample * saved->shape.channels * saved->shape.inner;
    return (char *)data + (size_t)elements * ng_dtype_bytes(x->dtype);
}

/* The statistics of a sample's columns. */
static ng_statistics statistics_at(const channel_norm_attributes *saved, int64_t sample)
{
    const ng_statistics *s = &saved->statistics;
    const int64_t first = sample * saved->shape.inner;
    return (ng_statistics){s->mean + first, s->low ? s->low + first : NULL, s->rstd + first};
}

/* y = xhat, by the saved statistics. */
static void normalize(const ng_tensor *x, const channel_norm_attributes *saved, void *y)
{
    const ng_column_norm_shape shape = sample_of(saved);
    for (int64_t n = 0; n < saved->shape.outer; n++)
        ng_kernels_for(x->dtype)->column_norm(&shape, at_sample(x, x->data, saved, n),
                                              statistics_at(saved, n), NULL, NULL,
                                              at_sample(x, y, saved, n));
}

/* ---- Gradient and definition -------------------------------------------------------------- */

static void channel_norm_propagate(const ng_tensor *x, const channel_norm_attributes *saved,
                                   void *g, ng_slot dx)
{
    const ng_column_norm_shape shape = sample_of(saved);
    for (int64_t n = 0; n < saved->shape.outer; n++)
        ng_kernels_for(x->dtype)->column_norm_backward(
            &shape, at_sample(x, x->data, saved, n), NULL, statistics_at(saved, n),
            at_sample(x, g, saved, n), false,
            (ng_norm_gradients){.dx = {at_sample(x, dx.data, saved, n), dx.accumulate}});
}

/* dgamma and dbeta: those of a column norm of xhat with fixed statistics. */
static void affine_sums(const ng_tensor *x, const channel_norm_attributes *saved,
                        const ng_tensor *dy, ng_slot *dx, void *xhat)
{
    const ng_group_shape *s = &saved->shape;
    const ng_column_norm_shape shape = {s->outer, s->channels, s->inner, 0};
    normalize(x, saved, xhat);
    ng_kernels_for(x->dtype)->column_norm_backward(
        &shape, xhat, NULL, (ng_statistics){NULL, NULL, NULL}, dy->data, true,
        (ng_norm_gradients){.dgamma = dx[1], .dbeta = dx[2]});
}

static ng_status channel_norm_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                       ng_slot *dx)
{
    const channel_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    void *scratch = NULL, *g = dy->data;
    if (dx[1].data || dx[2].data || !ng_is_none(gamma)) {
        scratch = ng_tape_memory(tape, (size_t)x->size * ng_dtype_bytes(x->dtype));
        if (!scratch) return NG_ENOMEM;
    }
    if (dx[1].data || dx[2].data) affine_sums(x, saved, dy, dx, scratch);
    if (!dx[0].data) return NG_OK;
    if (!ng_is_none(gamma)) {
        g = scratch;
        ng_channel_affine(dy, gamma, NG_NONE, g);
    }
    channel_norm_propagate(x, saved, g, dx[0]);
    return NG_OK;
}

static ng_tensor *channel_norm_definition(ng_tape *tape, const ng_node *node)
{
    const channel_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0];
    const ng_composed_norm norm = ng_compose_norm(
        tape, x, NG_AXES(1), (ng_deviation){true, (double)saved->shape.channels, saved->eps});
    return ng_composed_output(tape, norm, node->inputs[1], node->inputs[2], x);
}

static const ng_op channel_norm_op = {.name = "channel_norm",
                                      .backward = channel_norm_backward,
                                      .definition = channel_norm_definition};

/* ---- Forward ------------------------------------------------------------------------------ */

ng_tensor *ng_channel_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                                ng_norm_options options)
{
    static const char name[] = "ng_channel_norm";
    ng_tensor *beta = options.last, *inputs[] = {x, gamma, beta};
    const double eps = ng_option(options.eps, 1e-5);
    if (!ng_norm_accepts(name, tape, inputs) || !ng_norm_eps_ok(name, eps) ||
        !ng_has_channels(name, x) ||
        !ng_affine_fits(name, gamma, beta, NG_SHAPE(x->shape.dim[1]), x))
        return NULL;
    const int64_t samples = x->shape.dim[0], channels = x->shape.dim[1];
    const int64_t positions = ng_shape_span(x->shape, 2, x->shape.rank);
    channel_norm_attributes saved = {.shape = {samples, channels, channels, positions}, .eps = eps};
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    double *var = y ? ng_tape_memory(tape, (size_t)positions * sizeof *var) : NULL;
    if (!var || !ng_statistics_new(tape, x, samples * positions, true, &saved.statistics))
        return NULL;
    const ng_column_norm_shape sample = sample_of(&saved);
    for (int64_t n = 0; n < samples; n++)
        ng_kernels_for(x->dtype)->column_statistics(&sample, at_sample(x, x->data, &saved, n),
                                                    statistics_at(&saved, n), var);
    normalize(x, &saved, y->data);
    if (gamma->data || beta->data) ng_channel_affine(y, gamma, beta, y->data);
    return ng_record_own(tape, &channel_norm_op, y, inputs, 3, &saved, sizeof saved);
}
