/* Batch normalization: each channel over the batch and all positions, in training over the batches
 * of all ranks of a group if there is one.
 *
 * x (N, C, ...) is seen as (outer, channels, inner); gamma, beta and the running statistics are
 * (C). Per channel, over its m = outer x inner values, or those of all ranks:
 *
 *     mean = (sum x) / m,  var = (sum (x - mean)^2) / m      in training
 *     mean = running_mean, var = running_var                 else
 *     rstd = 1 / sqrt(var + eps)
 *     xhat = (x - mean) rstd
 *     y    = xhat gamma + beta
 *
 * kernels/row_norm.inc derives the gradient; without training it is dx = rstd dy gamma.
 *
 * With a group dgamma and dbeta are sums over the rank's own samples; parallel training adds them
 * up. A rank may have no samples.
 *
 * With a mask the positions that are no padding are gathered as rows (M, C), normalized, and
 * scattered. So statistics, gradients of any order and groups are those of a batch without padding.
 *
 * A recorded gradient in training without a group is the op batch_norm_dx, whose own gradient is in
 * kernels/norm_second.inc. Else it is the gradient of the definition. At 256x128 with its backward
 * pass the op takes 0.2 of its definition's time, and by batch_norm_dx a step with a gradient
 * penalty takes 0.7 to 0.8. */
#include "ops/batch_norm.h"
#include "group/collective.h"
#include <string.h>

/* What a node keeps. */
typedef struct {
    ng_column_norm_shape shape;
    ng_statistics statistics; /* (channels), the tape's */
    double count;             /* values per channel */
    bool fixed;               /* the statistics are running ones, constants */
    ng_group *group;          /* whose ranks share the batch, or NULL */
} batch_attributes;

/* ---- Operands and settings ------------------------------------------------------------------ */

/* Whether the batch is that of several ranks. */
static bool is_joint(const ng_batch_call *call)
{
    return call->training && call->group && ng_group_size(call->group) > 1;
}

static bool is_masked(const ng_batch_call *call) { return call->mask && !ng_is_none(call->mask); }

/* Whether running statistics have the right shape and no gradient. Training writes to them, so that
 * they may not be a tape's. */
static bool running_ok(const ng_batch_call *o, const char *name, const ng_tensor *running)
{
    if (!ng_operand_fits(o->function, name, running, NG_SHAPE(o->x->shape.dim[1]), o->x))
        return false;
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

static bool batch_settings_ok(const char *function, double eps, double momentum)
{
    if (!ng_norm_eps_ok(function, eps)) return false;
    if (momentum >= 0 && momentum <= 1) return true;
    ng_fail(NG_EVALUE, "%s: momentum is %g, expected 0 <= momentum <= 1", function, momentum);
    return false;
}

bool ng_batch_accepts(ng_tape *tape, const ng_batch_call *o)
{
    const char *function = o->function;
    const char *const names[] = {"x", "gamma", "beta", "running_mean", o->spread};
    ng_tensor *inputs[] = {o->x, o->gamma, o->beta, o->running_mean, o->running_spread};
    if (!ng_accepts_optional(function, tape, 1, 5, inputs, names)) return false;
    if (!ng_expect_shape(o->x->shape.rank >= 2, function, "x", o->x, "(N, C, ...)") ||
        !ng_affine_fits(function, o->gamma, o->beta, NG_SHAPE(o->x->shape.dim[1]), o->x) ||
        !running_ok(o, "running_mean", o->running_mean) ||
        !running_ok(o, o->spread, o->running_spread) ||
        !batch_settings_ok(function, o->eps, o->momentum))
        return false;
    if (o->training && !ng_is_none(o->running_mean) && o->running_mean == o->running_spread) {
        ng_fail(NG_EVALUE, "%s: running_mean and %s are one tensor, expected two", function,
                o->spread);
        return false;
    }
    if (o->training || !(ng_is_none(o->running_mean) || ng_is_none(o->running_spread))) return true;
    ng_fail(NG_EVALUE, "%s: running_mean and %s are needed outside training", function, o->spread);
    return false;
}

/* ---- Padding -------------------------------------------------------------------------------- */

/* Whether the mask has a number for each sample of x (N, C, ...), or for each position. */
static bool mask_fits(const ng_batch_call *o)
{
    const ng_tensor *mask = o->mask;
    const ng_shape x = o->x->shape;
    ng_shape positions = {.rank = x.rank - 1, .dim = {x.dim[0]}};
    for (int i = 2; i < x.rank; i++) positions.dim[i - 1] = x.dim[i];
    if (ng_shape_equal(mask->shape, NG_SHAPE(x.dim[0])) || ng_shape_equal(mask->shape, positions))
        return true;
    ng_fail(NG_ESHAPE, "%s: mask is %s and x %s, expected mask %s%s%s", o->function,
            ng_shape_print(mask->shape).text, ng_shape_print(x).text,
            ng_shape_print(NG_SHAPE(x.dim[0])).text, x.rank > 2 ? " or " : "",
            x.rank > 2 ? ng_shape_print(positions).text : "");
    return false;
}

/* The numbers of the rows that are no padding. */
static ng_tensor *real_rows(ng_tape *tape, const ng_tensor *mask, int64_t rows)
{
    const int64_t each = mask->size > 0 ? rows / mask->size : 0;
    int64_t count = 0;
    for (int64_t i = 0; i < mask->size; i++) count += ng_tensor_load(mask, i) != 0;
    ng_tensor *index = ng_result(tape, NG_I64, NG_SHAPE(count * each));
    if (!index) return NULL;
    int64_t *next = index->data;
    for (int64_t i = 0; i < mask->size; i++)
        for (int64_t j = 0; j < each && ng_tensor_load(mask, i) != 0; j++) *next++ = i * each + j;
    return index;
}

/* Makes the call's x (N, C, ...) the rows (M, C) that are no padding, and *index their numbers. */
static bool gather(ng_tape *tape, ng_batch_call *call, ng_tensor **index)
{
    const ng_shape s = call->x->shape;
    const int64_t count = s.dim[0] * ng_shape_span(s, 2, s.rank);
    if (!ng_usable(call->function, "mask", 0, tape, call->mask) || !mask_fits(call)) return false;
    ng_tensor *rows = call->x;
    if (s.rank > 2) {
        rows = ng_transpose(tape, ng_by_positions(tape, rows), 1, 2);
        rows = ng_reshape(tape, rows, NG_SHAPE(count, s.dim[1]));
    }
    *index = rows ? real_rows(tape, call->mask, count) : NULL;
    call->x = *index ? ng_gather_rows(tape, rows, *index) : NULL;
    return call->x;
}

/* The rows of that index where they stood in x (N, C, ...), 0 elsewhere. */
static ng_tensor *scatter_rows(ng_tape *tape, ng_tensor *rows, ng_tensor *index, ng_shape s)
{
    const int64_t positions = ng_shape_span(s, 2, s.rank);
    ng_tensor *y = ng_scatter_add_rows(tape, rows, index, s.dim[0] * positions);
    if (s.rank == 2) return y;
    y = ng_reshape(tape, y, NG_SHAPE(s.dim[0], positions, s.dim[1]));
    return ng_reshape(tape, ng_transpose(tape, y, 1, 2), s);
}

/* ---- Statistics ----------------------------------------------------------------------------- */

/* Chan, Golub & LeVeque 1979. delta = b's mean - a's; mean = a's + delta n_b / n;
 * squares = a's + b's + delta^2 n_a n_b / n. */
static ng_moments moments_of_both(const ng_moments *a, const ng_moments *b)
{
    if (a->n == 0) return *b;
    if (b->n == 0) return *a;
    const double n = a->n + b->n, delta = (b->mean - a->mean) + (b->low - a->low);
    const double shift = a->low + delta * (b->n / n), mean = a->mean + shift;
    const double part = mean - a->mean;
    return (ng_moments){.n = n,
                        .mean = mean,
                        .low = (a->mean - (mean - part)) + (shift - part),
                        .squares = a->squares + b->squares + delta * delta * (a->n * b->n / n)};
}

void ng_moments_add(const ng_moments *others, ng_moments *sums, int64_t count)
{
    for (int64_t i = 0; i < count; i++) sums[i] = moments_of_both(&sums[i], &others[i]);
}

bool ng_moments_combine(ng_group *group, const char *function, ng_moments *moments,
                        ng_moments *rows, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof *moments;
    if (ng_group_call(group, function, "of %lld channels", (long long)count) ||
        ng_group_rows(group, moments, rows, bytes))
        return false;
    memcpy(moments, rows, bytes);
    for (int r = 1; r < ng_group_size(group); r++) ng_moments_add(rows + r * count, moments, count);
    return true;
}

/* Makes the statistics of this rank's samples those of all ranks' samples. */
static bool join(ng_tape *tape, const ng_batch_call *o, batch_attributes *saved, double *var)
{
    const int64_t channels = saved->shape.channels;
    const ng_statistics *s = &saved->statistics;
    const size_t bytes = (size_t)channels * sizeof(ng_moments);
    ng_moments *all = ng_tape_memory(tape, bytes);
    ng_moments *rows = ng_tape_memory(tape, (size_t)ng_group_size(o->group) * bytes);
    if (!all || !rows) return false;
    const double own = saved->count;
    for (int64_t c = 0; c < channels; c++)
        all[c] = own > 0 ? (ng_moments){own, s->mean[c], s->low ? s->low[c] : 0, var[c] * own}
                         : (ng_moments){0, 0, 0, 0};
    if (!ng_moments_combine(o->group, o->function, all, rows, channels)) return false;
    saved->group = o->group;
    saved->count = channels > 0 ? all[0].n : 2;
    for (int64_t c = 0; c < channels; c++) {
        s->mean[c] = all[c].mean;
        if (s->low) s->low[c] = all[c].low;
        var[c] = all[c].squares / saved->count;
    }
    ng_inverse_deviation(s->rstd, var, o->eps, channels);
    return true;
}

static bool batch_statistics(ng_tape *tape, const ng_batch_call *o, batch_attributes *saved,
                             double *var)
{
    saved->count = (double)(saved->shape.outer * saved->shape.inner);
    if (is_joint(o) || saved->count >= 2)
        ng_kernels_for(o->x->dtype)
            ->column_statistics(&saved->shape, o->x->data, saved->statistics, var);
    if (is_joint(o) && !join(tape, o, saved, var)) return false;
    if (saved->count >= 2) return true;
    if (saved->group)
        ng_fail(NG_ESHAPE,
                "%s: training needs more than one value per channel, got %g of %d ranks together",
                o->function, saved->count, ng_group_size(o->group));
    else
        ng_fail(NG_ESHAPE, "%s: training needs more than one value per channel, got shape %s%s",
                o->function, ng_shape_print(o->x->shape).text,
                is_masked(o) ? " without padding" : "");
    return false;
}

static void running_statistics(const ng_batch_call *o, batch_attributes *saved, double *var)
{
    const int64_t channels = saved->shape.channels;
    saved->fixed = true;
    saved->statistics.low = NULL;
    for (int64_t c = 0; c < channels; c++) {
        saved->statistics.mean[c] = ng_tensor_load(o->running_mean, c);
        var[c] = ng_tensor_load(o->running_spread, c);
    }
    ng_inverse_deviation(saved->statistics.rstd, var, o->eps, channels);
}

void ng_batch_move(const ng_batch_call *o, const ng_batch_moments *batch)
{
    const double *const targets[] = {batch->mean, batch->spread}, factor[] = {1, batch->factor};
    ng_tensor *const running[] = {o->running_mean, o->running_spread};
    for (int i = 0; i < 2 && batch->mean && o->momentum != 0; i++) {
        if (ng_is_none(running[i])) continue;
        ng_kernels_for(running[i]->dtype)
            ->move_toward(running[i]->data, targets[i], factor[i], o->momentum, running[i]->size);
        ng_touch(running[i]);
    }
}

/* ---- Backward ------------------------------------------------------------------------------- */

static ng_status batch_norm_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                     ng_slot *dx)
{
    (void)tape;
    const batch_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    const ng_norm_gradients gradients = {dx[0], dx[1], dx[2]};
    ng_kernels_for(x->dtype)->column_norm_backward(
        &saved->shape, x->data, gamma->data, saved->statistics, dy->data, saved->fixed, gradients);
    return NG_OK;
}

/* Per channel (C): dgamma = sum(dy xhat) and dbeta = sum(dy), over the rank's own samples. The part
 * of dx that depends on all ranks is -rstd (xhat sum(g xhat) + sum(g)) / m; there dgamma holds the
 * factor of xhat, and dbeta the rest. */
typedef struct {
    ng_tensor *dgamma, *dbeta;
} channel_sums;

static bool own_sums(ng_tape *tape, const ng_node *node, const ng_tensor *dy, channel_sums *sums)
{
    const batch_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0];
    const ng_shape shape = NG_SHAPE(saved->shape.channels);
    sums->dgamma = ng_result_full(tape, x->dtype, shape, 0);
    sums->dbeta = ng_result_full(tape, x->dtype, shape, 0);
    if (!sums->dgamma || !sums->dbeta) return false;
    const ng_norm_gradients gradients = {.dgamma.data = sums->dgamma->data,
                                         .dbeta.data = sums->dbeta->data};
    if (dy->size)
        ng_kernels_for(x->dtype)->column_norm_backward(
            &saved->shape, x->data, NULL, saved->statistics, dy->data, true, gradients);
    return true;
}

static bool means_of_all(ng_tape *tape, const ng_node *node, const channel_sums *own,
                         channel_sums *means)
{
    const batch_attributes *saved = node->attributes;
    const ng_tensor *gamma = node->inputs[1];
    const int64_t channels = saved->shape.channels;
    double *sums =
        ng_tape_memory(tape, (size_t)ng_group_padded(saved->group, 2 * channels) * sizeof *sums);
    means->dgamma = ng_result(tape, own->dgamma->dtype, own->dgamma->shape);
    means->dbeta = ng_result(tape, own->dgamma->dtype, own->dgamma->shape);
    if (!sums || !means->dgamma || !means->dbeta) return false;
    for (int64_t c = 0; c < channels; c++) {
        sums[c] = ng_tensor_load(own->dgamma, c);
        sums[channels + c] = ng_tensor_load(own->dbeta, c);
    }
    if (ng_group_call(saved->group, "ng_batch_norm", "of %lld channels, backwards",
                      (long long)channels) ||
        ng_group_add(saved->group, NG_F64, sums, 2 * channels))
        return false;
    for (int64_t c = 0; c < channels; c++) {
        const double g = ng_is_none(gamma) ? 1 : ng_tensor_load(gamma, c);
        const double scale = -saved->statistics.rstd[c] * g / saved->count;
        ng_tensor_store(means->dgamma, c, scale * sums[c]);
        ng_tensor_store(means->dbeta, c, scale * sums[channels + c]);
    }
    return true;
}

/* dx = rstd g, as with fixed statistics, plus what the means of all ranks add to it. */
static bool joint_dx(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                     const channel_sums *means, ng_slot dx)
{
    const batch_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    if (x->size == 0) return true;
    ng_tensor *added = ng_result(tape, x->dtype, x->shape);
    if (!added) return false;
    kernels->column_norm_backward(&saved->shape, x->data, gamma->data, saved->statistics, dy->data,
                                  true, (ng_norm_gradients){.dx = dx});
    kernels->column_norm(&saved->shape, x->data, saved->statistics, means->dgamma->data,
                         means->dbeta->data, added->data);
    kernels->add_to(added->data, dx.data, x->size);
    return true;
}

/* The sums are added up on every rank, even where no gradient to x is wanted: another rank may want
 * its own. */
static ng_status joint_batch_norm_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                           ng_slot *dx)
{
    channel_sums own, means;
    if (!own_sums(tape, node, dy, &own) || !means_of_all(tape, node, &own, &means) ||
        (dx[0].data && !joint_dx(tape, node, dy, &means, dx[0])))
        return ng_newest_status();
    const ng_tensor *const sums[] = {own.dgamma, own.dbeta};
    for (int i = 0; i < 2; i++)
        if (dx[1 + i].data)
            ng_kernels_for(dy->dtype)->axpy(1, sums[i]->data, dx[1 + i].data, sums[i]->size,
                                            dx[1 + i].accumulate);
    return NG_OK;
}

/* ---- Definition ----------------------------------------------------------------------------- */

/* Of each channel, over the samples of all ranks. */
static ng_tensor *mean_of_all(ng_tape *tape, ng_tensor *x, const batch_attributes *saved)
{
    ng_tensor *sum = ng_sum(tape, x, .axes = ng_all_but_channel(x), .keepdim = true);
    return ng_mul_scalar(tape, ng_group_sum(tape, sum, saved->group), 1 / saved->count);
}

/* Running statistics are inputs 3 and 4. */
static ng_composed_norm compose(ng_tape *tape, const ng_node *node)
{
    const batch_attributes *saved = node->attributes;
    const double eps = saved->shape.eps;
    ng_tensor *x = node->inputs[0];
    if (saved->fixed) {
        ng_tensor *mean = ng_per_channel(tape, node->inputs[3], x);
        ng_tensor *var = ng_add_scalar(tape, ng_per_channel(tape, node->inputs[4], x), eps);
        return (ng_composed_norm){ng_sub(tape, x, mean), ng_rsqrt(tape, var)};
    }
    if (!saved->group)
        return ng_compose_norm(tape, x, ng_all_but_channel(x),
                               (ng_deviation){true, saved->count, eps});
    ng_tensor *centred = ng_sub(tape, x, mean_of_all(tape, x, saved));
    centred =
        ng_sub(tape, centred, mean_of_all(tape, centred, saved)); /* less a rounded mean's error */
    ng_tensor *var = mean_of_all(tape, ng_square(tape, centred), saved);
    return (ng_composed_norm){centred, ng_rsqrt(tape, ng_add_scalar(tape, var, eps))};
}

static ng_tensor *batch_norm_definition(ng_tape *tape, const ng_node *node)
{
    return ng_composed_output(tape, compose(tape, node), node->inputs[1], node->inputs[2],
                              node->inputs[0]);
}

/* ---- The gradient of the gradient ----------------------------------------------------------- */

static ng_tensor *batch_norm_dx_definition(ng_tape *tape, const ng_node *node)
{
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *g = node->inputs[2];
    const ng_axes axes = ng_all_but_channel(x);
    const ng_composed_norm c = compose(tape, node);
    ng_tensor *xhat = ng_mul(tape, c.centred, c.rstd);
    if (gamma != NG_NONE) g = ng_mul(tape, g, ng_per_channel(tape, gamma, x));
    ng_tensor *a = ng_mean(tape, ng_mul(tape, g, xhat), .axes = axes, .keepdim = true);
    g = ng_sub(tape, g, ng_mean(tape, g, .axes = axes, .keepdim = true));
    return ng_mul(tape, ng_sub(tape, g, ng_mul(tape, xhat, a)), c.rstd);
}

static ng_status batch_norm_dx_backward(ng_tape *tape, const ng_node *node, const ng_tensor *u,
                                        ng_slot *slots)
{
    (void)tape;
    const batch_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *dy = node->inputs[2];
    ng_kernels_for(x->dtype)->column_norm_second(
        &saved->shape, x->data, gamma->data, saved->statistics, dy->data, u->data,
        (ng_second_gradients){slots[0], slots[1], slots[2]});
    return NG_OK;
}

static const ng_op batch_norm_dx_op = {.name = "batch_norm_dx",
                                       .backward = batch_norm_dx_backward,
                                       .definition = batch_norm_dx_definition};

static ng_tensor *batch_norm_dx(ng_tape *tape, const ng_node *node, ng_tensor *dy)
{
    const batch_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *inputs[] = {x, node->inputs[1], dy};
    ng_tensor *dx = ng_result(tape, x->dtype, x->shape);
    if (!dx) return NULL;
    ng_kernels_for(x->dtype)->column_norm_backward(&saved->shape, x->data, inputs[1]->data,
                                                   saved->statistics, dy->data, false,
                                                   (ng_norm_gradients){.dx.data = dx->data});
    return ng_record_own(tape, &batch_norm_dx_op, dx, inputs, 3, saved, sizeof *saved);
}

static void batch_norm_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const batch_attributes *saved = node->attributes;
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

/* ---- Forward -------------------------------------------------------------------------------- */

static const ng_op batch_norm_op = {.name = "batch_norm",
                                    .backward = batch_norm_backward,
                                    .gradient = batch_norm_gradient,
                                    .definition = batch_norm_definition};

static const ng_op fixed_batch_norm_op = {
    .name = "batch_norm", .backward = batch_norm_backward, .definition = batch_norm_definition};

static const ng_op joint_batch_norm_op = {.name = "group_batch_norm",
                                          .backward = joint_batch_norm_backward,
                                          .definition = batch_norm_definition};

/* Running statistics are inputs, so that a backward pass after they were changed is noticed. */
static ng_tensor *normalize_batch(ng_tape *tape, ng_batch_call *o, ng_batch_moments *batch)
{
    ng_tensor *x = o->x, *y = ng_result(tape, x->dtype, x->shape);
    const ng_shape s = x->shape;
    batch_attributes saved = {.shape = {.outer = x->size == 0 ? 0 : s.dim[0],
                                        .channels = s.dim[1],
                                        .inner = ng_shape_span(s, 2, s.rank),
                                        .eps = o->eps}};
    double *var = ng_tape_memory(tape, (size_t)s.dim[1] * sizeof *var);
    if (!y || !var || !ng_statistics_new(tape, x, s.dim[1], true, &saved.statistics)) return NULL;
    if (!o->training)
        running_statistics(o, &saved, var);
    else if (!batch_statistics(tape, o, &saved, var))
        return NULL;
    *batch = (ng_batch_moments){saved.statistics.mean, var, saved.count / (saved.count - 1)};
    if (o->adapt && !o->adapt(tape, o, batch)) return NULL;
    if (y->size)
        ng_kernels_for(x->dtype)->column_norm(&saved.shape, x->data, saved.statistics,
                                              o->gamma->data, o->beta->data, y->data);
    ng_tensor *inputs[] = {x, o->gamma, o->beta, o->running_mean, o->running_spread};
    const ng_op *op = saved.group   ? &joint_batch_norm_op
                      : saved.fixed ? &fixed_batch_norm_op
                                    : &batch_norm_op;
    return ng_record_as(saved.group ? NG_JOINT_OP : NG_OWN_OP, tape, op, y, inputs,
                        saved.fixed ? 5 : 3, &saved, sizeof saved);
}

/* When a pass runs again, statistics of the caller's own stay as they are: ng_recompute puts back
 * those of modules only. */
static bool may_move(const ng_tape *tape, const ng_batch_call *call)
{
    return ng_tape_is_live(tape) && (!tape->replay.again || call->running_mean->module_owned);
}

ng_tensor *ng_batch_norm_run(ng_tape *tape, const ng_batch_call *call, ng_batch_moments *batch)
{
    ng_batch_call rows = *call;
    ng_tensor *index = NULL;
    if (!ng_batch_accepts(tape, call) || (is_masked(call) && !gather(tape, &rows, &index)))
        return NULL;
    ng_tensor *y = normalize_batch(tape, &rows, batch);
    if (y && index) y = scatter_rows(tape, y, index, call->x->shape);
    if (!call->training || !may_move(tape, call)) *batch = (ng_batch_moments){NULL, NULL, 0};
    return y;
}

/* The running statistics move last, when nothing can fail any more. */
ng_tensor *ng_batch_norm_called(ng_tape *tape, const ng_batch_call *call)
{
    ng_batch_moments batch;
    ng_tensor *y = ng_batch_norm_run(tape, call, &batch);
    if (y) ng_batch_move(call, &batch);
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
