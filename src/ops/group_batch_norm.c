/* Batch normalization over the samples of all ranks of a group: batch_norm.c, with m values per
 * channel on all ranks together. A rank may have none. Per channel,
 *
 *     (m, mean, sum (x - mean)^2) = that of all ranks, combined two by two (group/group.c)
 *
 * and backwards, with sums over the samples of all ranks,
 *
 *     dx     = rstd (g - sum(g) / m - xhat sum(g xhat) / m)
 *     dgamma = sum over the rank's own samples of dy xhat
 *     dbeta  = sum over the rank's own samples of dy
 *
 * The sums are added up on every rank, even where no gradient to x is wanted: another rank may want
 * its own. Each rank's parameters get the gradient of its own samples. Parallel training adds them up.
 */
#include "group/collective.h"
#include "ops/op.h"
#include <string.h>

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

void ng_moments_add(const ng_moments *from, ng_moments *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++) to[i] = moments_of_both(&to[i], &from[i]);
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

bool ng_group_statistics(ng_tape *tape, const ng_batch_call *o, ng_batch_norm_attributes *saved,
                         double *var)
{
    const int64_t channels = saved->shape.channels;
    const ng_statistics *s = &saved->statistics;
    const double own = saved->count;
    const size_t bytes = (size_t)channels * sizeof(ng_moments);
    ng_moments *all = ng_tape_memory(tape, bytes);
    ng_moments *rows = ng_tape_memory(tape, (size_t)ng_group_size(o->group) * bytes);
    if (!all || !rows) return false;
    for (int64_t c = 0; c < channels; c++)
        all[c] = own > 0 ? (ng_moments){own, s->mean[c], s->low ? s->low[c] : 0, var[c] * own}
                         : (ng_moments){0, 0, 0, 0};
    if (!ng_moments_combine(o->group, o->function, all, rows, channels)) return false;
    saved->group = o->group;
    saved->count = channels > 0 ? all[0].n : 0;
    if (channels > 0 && saved->count < 2) {
        ng_fail(NG_ESHAPE,
                "%s: training needs more than one value per channel, got %g of %d "
                "ranks together",
                o->function, saved->count, ng_group_size(o->group));
        return false;
    }
    for (int64_t c = 0; c < channels; c++) {
        s->mean[c] = all[c].mean;
        if (s->low) s->low[c] = all[c].low;
        var[c] = all[c].squares / saved->count;
    }
    ng_inverse_deviation(s->rstd, var, saved->shape.eps, channels);
    return true;
}

/* ---- Gradient ------------------------------------------------------------------------------- */

/* sum of dy xhat and of dy, per channel, of this rank's samples, in the tensors' dtype. */
typedef struct {
    ng_tensor *dgamma, *dbeta;
} channel_sums;

static bool own_sums(ng_tape *tape, const ng_node *node, const ng_tensor *dy, channel_sums *sums)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0];
    const ng_shape shape = NG_SHAPE(saved->shape.channels);
    sums->dgamma = ng_result_full(tape, x->dtype, shape, 0);
    sums->dbeta = ng_result_full(tape, x->dtype, shape, 0);
    if (!sums->dgamma || !sums->dbeta) return false;
    const ng_norm_gradients to = {.dgamma.data = sums->dgamma->data,
                                  .dbeta.data = sums->dbeta->data};
    if (dy->size)
        ng_kernels_for(x->dtype)->column_norm_backward(&saved->shape, x->data, NULL,
                                                       saved->statistics, dy->data, true, to);
    return true;
}

/* The scale and shift that take xhat to xhat sum(g xhat) / m + sum(g) / m, times -rstd. */
static bool means_of_all(ng_tape *tape, const ng_node *node, const channel_sums *own,
                         channel_sums *all)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    const ng_tensor *gamma = node->inputs[1];
    const int64_t channels = saved->shape.channels;
    double *sums =
        ng_tape_memory(tape, (size_t)ng_group_room(saved->group, 2 * channels) * sizeof *sums);
    all->dgamma = ng_result(tape, own->dgamma->dtype, own->dgamma->shape);
    all->dbeta = ng_result(tape, own->dgamma->dtype, own->dgamma->shape);
    if (!sums || !all->dgamma || !all->dbeta) return false;
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
        ng_tensor_store(all->dgamma, c, scale * sums[c]);
        ng_tensor_store(all->dbeta, c, scale * sums[channels + c]);
    }
    return true;
}

/* dx = rstd g, as with fixed statistics, plus what the means of all ranks add to it. */
static bool group_batch_propagate(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                  const channel_sums *all, ng_slot dx)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    if (x->size == 0) return true;
    ng_tensor *means = ng_result(tape, x->dtype, x->shape);
    if (!means) return false;
    kernels->column_norm_backward(&saved->shape, x->data, gamma->data, saved->statistics, dy->data,
                                  true, (ng_norm_gradients){.dx = dx});
    kernels->column_norm(&saved->shape, x->data, saved->statistics, all->dgamma->data,
                         all->dbeta->data, means->data);
    kernels->add_to(means->data, dx.data, x->size);
    return true;
}

static void put_total(const ng_tensor *sum, ng_slot slot)
{
    if (slot.data)
        ng_kernels_for(sum->dtype)->axpy(1, sum->data, slot.data, sum->size, slot.accumulate);
}

static ng_status group_batch_norm_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                           ng_slot *dx)
{
    channel_sums own, all;
    if (!own_sums(tape, node, dy, &own) || !means_of_all(tape, node, &own, &all) ||
        (dx[0].data && !group_batch_propagate(tape, node, dy, &all, dx[0])))
        return ng_newest_status();
    put_total(own.dgamma, dx[1]);
    put_total(own.dbeta, dx[2]);
    return NG_OK;
}

/* ---- Definition ----------------------------------------------------------------------------- */

/* The mean over the channels of all ranks. */
static ng_tensor *mean_of_all(ng_tape *tape, ng_tensor *x, const ng_batch_norm_attributes *saved)
{
    ng_tensor *sum = ng_sum(tape, x, .axes = ng_all_but_channel(x), .keepdim = true);
    return ng_mul_scalar(tape, ng_group_sum(tape, sum, saved->group), 1 / saved->count);
}

static ng_tensor *group_batch_norm_definition(ng_tape *tape, const ng_node *node)
{
    const ng_batch_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0];
    ng_tensor *centred = ng_sub(tape, x, mean_of_all(tape, x, saved));
    centred =
        ng_sub(tape, centred, mean_of_all(tape, centred, saved)); /* less a rounded mean's error */
    ng_tensor *var = mean_of_all(tape, ng_square(tape, centred), saved);
    var = ng_add_scalar(tape, ng_reshape(tape, var, ng_shape_per_channel(x)), saved->shape.eps);
    const ng_composed_norm norm = {centred, ng_rsqrt(tape, var)};
    return ng_composed_output(tape, norm, node->inputs[1], node->inputs[2], x);
}

const ng_op ng_group_batch_norm_op = {.built_in = true,
                                      .name = "group_batch_norm",
                                      .backward = group_batch_norm_backward,
                                      .definition = group_batch_norm_definition,
                                      .joint = true};
