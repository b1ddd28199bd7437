/* Batch normalization: each channel over the batch and all positions.
 *
 * x (N, C, ...) is seen as (outer, channels, inner); gamma, beta and the
 * running statistics are (C). Per channel, over its m = outer x inner values:
 *
 *     mean = (sum x) / m,  var = (sum (x - mean)^2) / m      in training
 *     mean = running_mean, var = running_var                 else
 *     rstd = 1 / sqrt(var + eps)
 *     xhat = (x - mean) rstd
 *     y    = xhat gamma + beta
 *
 * and backwards, with g = dy gamma, the means over a channel:
 *
 *     dx     = rstd (g - mean(g) - xhat mean(g xhat))        in training
 *     dx     = rstd g                                        else
 *     dgamma = sum over the channel of dy xhat
 *     dbeta  = sum over the channel of dy
 *
 * A recorded gradient in training is the op batch_norm_dx, whose own gradient is in
 * kernels/norm_second.inc. With fixed statistics it is the gradient of the definition.
 */
#include "ops/op.h"
#include <math.h>

/* ---- Gradient and definition -------------------------------------------------------------- */

static ng_status batch_norm_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                     ng_slot *dx)
{
    (void)tape;
    const ng_batch_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    const ng_norm_gradients gradients = {dx[0], dx[1], dx[2]};
    ng_kernels_for(x->dtype)->column_norm_backward(
        &saved->shape, x->data, gamma->data, saved->statistics, dy->data, saved->fixed, gradients);
    return NG_OK;
}

/* x normalized by the running statistics, which are inputs 3 and 4. */
static ng_composed_norm compose_fixed(ng_tape *tape, const ng_node *node, double eps)
{
    ng_tensor *x = node->inputs[0], *mean = ng_per_channel(tape, node->inputs[3], x);
    ng_tensor *var = ng_add_scalar(tape, ng_per_channel(tape, node->inputs[4], x), eps);
    return (ng_composed_norm){ng_sub(tape, x, mean), ng_rsqrt(tape, var)};
}

static ng_composed_norm compose_channels(ng_tape *tape, ng_tensor *x,
                                         const ng_batch_norm_attributes *saved)
{
    return ng_compose_norm(tape, x, ng_all_but_channel(x), saved->shape.eps);
}

static ng_tensor *batch_norm_definition(ng_tape *tape, const ng_node *node)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0];
    const ng_composed_norm c = saved->fixed ? compose_fixed(tape, node, saved->shape.eps)
                                            : compose_channels(tape, x, saved);
    return ng_composed_output(tape, c, node->inputs[1], node->inputs[2], x);
}

/* ---- The gradient of the gradient ---------------------------------------------------------- */

static ng_tensor *batch_norm_dx_definition(ng_tape *tape, const ng_node *node)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *dy = node->inputs[2];
    const ng_axes axes = ng_all_but_channel(x);
    const ng_composed_norm c = compose_channels(tape, x, saved);
    ng_tensor *xhat = ng_mul(tape, c.centred, c.rstd);
    ng_tensor *g = gamma == NG_NONE ? dy : ng_mul(tape, dy, ng_per_channel(tape, gamma, x));
    ng_tensor *a = ng_mean(tape, ng_mul(tape, g, xhat), .axes = axes, .keepdim = true);
    g = ng_sub(tape, g, ng_mean(tape, g, .axes = axes, .keepdim = true));
    return ng_mul(tape, ng_sub(tape, g, ng_mul(tape, xhat, a)), c.rstd);
}

static ng_status batch_norm_dx_backward(ng_tape *tape, const ng_node *node, const ng_tensor *u,
                                        ng_slot *to)
{
    (void)tape;
    const ng_batch_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *dy = node->inputs[2];
    ng_kernels_for(x->dtype)->column_norm_second(&saved->shape, x->data, gamma->data,
                                                 saved->statistics, dy->data, u->data,
                                                 (ng_second_gradients){to[0], to[1], to[2]});
    return NG_OK;
}

static const ng_op batch_norm_dx_op = {.built_in = true,
                                       .name = "batch_norm_dx",
                                       .backward = batch_norm_dx_backward,
                                       .definition = batch_norm_dx_definition};

static ng_tensor *batch_norm_dx(ng_tape *tape, const ng_node *node, ng_tensor *dy)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *inputs[] = {x, node->inputs[1], dy};
    ng_tensor *dx = ng_result(tape, x->dtype, x->shape);
    if (!dx) return NULL;
    ng_kernels_for(x->dtype)->column_norm_backward(&saved->shape, x->data, inputs[1]->data,
                                                   saved->statistics, dy->data, false,
                                                   (ng_norm_gradients){.dx.data = dx->data});
    return ng_record(tape, &batch_norm_dx_op, dx, inputs, 3, saved, sizeof *saved);
}

static void batch_norm_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0];
    const ng_axes axes = ng_all_but_channel(x);
    if (ng_wants(dx, 0)) dx[0] = batch_norm_dx(tape, node, dy);
    if (ng_wants(dx, 1)) {
        ng_tensor *xhat = ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE,
                                        .eps = ng_exactly(saved->shape.eps), .training = true);
        dx[1] = ng_sum(tape, ng_mul(tape, dy, xhat), .axes = axes);
    }
    if (ng_wants(dx, 2)) dx[2] = ng_sum(tape, dy, .axes = axes);
}

static const ng_op batch_norm_op = {.built_in = true,
                                    .name = "batch_norm",
                                    .backward = batch_norm_backward,
                                    .gradient = batch_norm_gradient,
                                    .definition = batch_norm_definition};

static const ng_op fixed_batch_norm_op = {.built_in = true,
                                          .name = "batch_norm",
                                          .backward = batch_norm_backward,
                                          .definition = batch_norm_definition};

/* ---- Forward ------------------------------------------------------------------------------ */

static bool has_statistics(const ng_batch_call *o)
{
    if (o->training || !(ng_is_none(o->running_mean) || ng_is_none(o->running_spread))) return true;
    ng_fail(NG_EVALUE, "%s: running_mean and running_var are needed outside training", o->function);
    return false;
}

bool ng_batch_statistics(ng_tape *tape, const ng_batch_call *o, ng_batch_norm_attributes *saved,
                         double **var)
{
    const int64_t channels = saved->shape.channels;
    ng_statistics *to = &saved->statistics;
    *var = ng_tape_memory(tape, (size_t)channels * sizeof **var);
    if (!*var || !ng_statistics_new(tape, o->x, channels, true, to)) return false;
    saved->fixed = !o->training;
    saved->count = (double)(saved->shape.outer * saved->shape.inner);
    if (o->training) {
        ng_kernels_for(o->x->dtype)->column_statistics(&saved->shape, o->x->data, *to, *var);
        return !ng_is_joint(o) || ng_group_statistics(tape, o, saved, *var);
    }
    to->low = NULL;
    for (int64_t c = 0; c < channels; c++) {
        to->mean[c] = ng_tensor_load(o->running_mean, c);
        (*var)[c] = ng_tensor_load(o->running_spread, c);
    }
    ng_inverse_deviation(to->rstd, *var, o->eps, channels);
    return true;
}

ng_tensor *ng_batch_norm_run(ng_tape *tape, const ng_batch_call *o, ng_batch_moments *moments)
{
    *moments = (ng_batch_moments){NULL, NULL, 0};
    ng_batch_norm_attributes saved = {.group = NULL};
    double *var;
    if (!ng_batch_accepts(tape, o, &saved.shape) || !has_statistics(o)) return NULL;
    const ng_tensor *x = o->x;
    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y || !ng_batch_statistics(tape, o, &saved, &var)) return NULL;
    if (y->size)
        ng_kernels_for(x->dtype)->column_norm(&saved.shape, x->data, saved.statistics,
                                              o->gamma->data, o->beta->data, y->data);

    /* The batch's own statistics are functions of x; running ones are inputs, so that a backward
     * pass after they were changed is noticed. */
    ng_tensor *inputs[] = {o->x, o->gamma, o->beta, o->running_mean, o->running_spread};
    const ng_op *op = saved.group   ? &ng_group_batch_norm_op
                      : saved.fixed ? &fixed_batch_norm_op
                                    : &batch_norm_op;
    y = ng_record(tape, op, y, inputs, saved.fixed ? 5 : 3, &saved, sizeof saved);
    if (y && !saved.fixed && ng_tape_is_live(tape))
        *moments = (ng_batch_moments){saved.statistics.mean, var, saved.count / (saved.count - 1)};
    return y;
}

/* The running statistics move last, when nothing can fail any more. */
ng_tensor *ng_batch_norm_called(ng_tape *tape, const ng_batch_call *call)
{
    ng_batch_call rows;
    ng_batch_moments moments;
    ng_tensor *index;
    if (!ng_batch_unpad(tape, call, &rows, &index)) return NULL;
    ng_tensor *y = ng_batch_norm_run(tape, &rows, &moments);
    y = ng_batch_pad(tape, y, index, call->x);
    if (y) ng_batch_move(call, &moments);
    return y;
}

ng_tensor *ng_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                              ng_tensor *running_mean, ng_batch_norm_options options)
{
    ng_batch_call call = NG_BATCH_CALL("ng_batch_norm", options, running_var);
    call.group = options.group;
    call.mask = options.mask;
    return ng_batch_norm_called(tape, &call);
}
