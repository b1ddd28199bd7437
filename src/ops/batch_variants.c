/* Batch renormalization, and batch normalization in sub-batches; both call ng_batch_norm. */
#include "ops/op.h"
#include <math.h>

/* ---- Batch renormalization. Ioffe 2017 ------------------------------------------------------ */

typedef struct {
    ng_batch_call batch; /* with a running deviation */
    double r_max, d_max;
} renorm_call;

static bool renorm_accepts(ng_tape *tape, const renorm_call *o, ng_column_norm_shape *shape)
{
    const ng_batch_call *b = &o->batch;
    if (!ng_batch_accepts(tape, b, shape)) return false;
    if (ng_is_none(b->running_mean) || ng_is_none(b->running_spread)) {
        ng_fail(NG_EVALUE, "%s: running_mean and running_deviation are needed, in training too",
                b->function);
        return false;
    }
    if (!b->training || (o->r_max >= 1 && o->d_max >= 0)) return true;
    ng_fail(NG_EVALUE, "%s: r_max = %g and d_max = %g, expected r_max >= 1 and d_max >= 0",
            b->function, o->r_max, o->d_max);
    return false;
}

/* The batch's mean and deviation sqrt(var + eps) per channel, of the tape. */
typedef struct {
    double *mean, *deviation;
} batch_statistics;

static bool statistics_of(ng_tape *tape, const ng_batch_call *b, const ng_column_norm_shape *shape,
                          batch_statistics *batch)
{
    ng_batch_norm_attributes saved = {.shape = *shape};
    double *var;
    if (!ng_batch_statistics(tape, b, &saved, &var)) return false;
    *batch = (batch_statistics){saved.statistics.mean, saved.statistics.rstd};
    for (int64_t c = 0; c < shape->channels; c++) batch->deviation[c] = 1 / batch->deviation[c];
    return true;
}

static double clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value; /* a NaN stays */
}

/* r and d (C), detached; the checker holds them fixed. */
static bool corrections(ng_tape *tape, const renorm_call *o, const batch_statistics *batch,
                        ng_tensor **r, ng_tensor **d)
{
    const ng_tensor *mean = o->batch.running_mean, *deviation = o->batch.running_spread;
    *r = ng_result(tape, mean->dtype, mean->shape);
    *d = ng_result(tape, mean->dtype, mean->shape);
    if (!*r || !*d) return false;
    for (int64_t c = 0; c < mean->size; c++) {
        const double sigma = ng_tensor_load(deviation, c);
        const double off = (batch->mean[c] - ng_tensor_load(mean, c)) / sigma;
        ng_tensor_store(*r, c, clip(batch->deviation[c] / sigma, 1 / o->r_max, o->r_max));
        ng_tensor_store(*d, c, clip(off, -o->d_max, o->d_max));
    }
    *r = ng_detach(tape, *r, .by_definition = true);
    *d = ng_detach(tape, *d, .by_definition = true);
    return *r && *d;
}

/* Training: (xhat r + d) gamma + beta is batch normalization with gamma r for gamma and
 * gamma d + beta for beta. */
static ng_tensor *renorm_training(ng_tape *tape, const renorm_call *o,
                                  const batch_statistics *batch)
{
    const ng_batch_call *b = &o->batch;
    ng_tensor *scale, *shift;
    if (!corrections(tape, o, batch, &scale, &shift)) return NULL;
    if (b->gamma != NG_NONE) {
        scale = ng_mul(tape, b->gamma, scale);
        shift = ng_mul(tape, b->gamma, shift);
    }
    if (b->beta != NG_NONE) shift = ng_add(tape, shift, b->beta);
    if (!scale || !shift) return NULL;
    return ng_batch_norm(tape, b->x, scale, shift, NG_NONE, NG_NONE, .eps = b->eps,
                         .training = true, .group = b->group);
}

static ng_tensor *renorm_evaluating(ng_tape *tape, const ng_batch_call *b)
{
    ng_tensor *var = ng_square(tape, b->running_spread);
    if (!var) return NULL;
    return ng_batch_norm(tape, b->x, b->gamma, b->beta, b->running_mean, var, .eps = NG_ZERO);
}

static ng_tensor *batch_renorm(ng_tape *tape, const renorm_call *o)
{
    const ng_batch_call *b = &o->batch;
    renorm_call rows = *o;
    batch_statistics batch = {NULL, NULL};
    ng_column_norm_shape shape;
    ng_tensor *index, *y;
    if (!ng_batch_unpad(tape, b, &rows.batch, &index) || !renorm_accepts(tape, &rows, &shape))
        return NULL;
    if (b->training && !statistics_of(tape, &rows.batch, &shape, &batch)) return NULL;
    y = b->training ? renorm_training(tape, &rows, &batch) : renorm_evaluating(tape, &rows.batch);
    y = ng_batch_pad(tape, y, index, b->x);
    if (y && b->training && ng_tape_is_live(tape)) {
        ng_move_running(b->running_mean, batch.mean, 1, b->momentum);
        ng_move_running(b->running_spread, batch.deviation, 1, b->momentum);
    }
    return y;
}

ng_tensor *ng_batch_renorm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                ng_tensor *running_mean, ng_batch_renorm_options options)
{
    renorm_call call = {.batch = NG_BATCH_CALL("ng_batch_renorm", options, running_deviation),
                        .r_max = ng_option(options.r_max, 3),
                        .d_max = ng_option(options.d_max, 5)};
    call.batch.group = options.group;
    call.batch.mask = options.mask;
    return batch_renorm(tape, &call);
}

/* ---- In sub-batches: ghost batch normalization, Hoffer, Hubara & Soudry 2017 ----------------
 *
 * The combined statistics of the sub-batches are those of the whole batch: ng_batch_norm. */

/* Each sub-batch by itself; the running statistics move once for each, when all have succeeded. */
static ng_tensor *in_sub_batches(ng_tape *tape, const ng_batch_call *o, int64_t size)
{
    const int64_t samples = o->x->shape.dim[0], count = (samples + size - 1) / size;
    ng_tensor **y = ng_tape_memory(tape, (size_t)count * sizeof(ng_tensor *));
    ng_batch_moments *moments = ng_tape_memory(tape, (size_t)count * sizeof *moments);
    if (!y || !moments) return NULL;
    for (int64_t i = 0; i < count; i++) {
        ng_batch_call part = *o;
        part.x = ng_slice(tape, o->x, 0, i * size, i + 1 < count ? (i + 1) * size : samples);
        y[i] = ng_batch_norm_run(tape, &part, &moments[i]);
        if (!y[i]) return NULL;
    }
    ng_tensor *joined = ng_concat(tape, y, (int)count, 0);
    for (int64_t i = 0; joined && i < count; i++) ng_batch_move(o, &moments[i]);
    return joined;
}

ng_tensor *ng_ghost_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                    ng_tensor *running_mean, ng_ghost_batch_norm_options options)
{
    static const char function[] = "ng_ghost_batch_norm";
    const ng_batch_call call = NG_BATCH_CALL(function, options, running_var);
    ng_column_norm_shape shape;
    if (!ng_batch_accepts(tape, &call, &shape)) return NULL;
    if (options.size < 1) {
        ng_fail(NG_EVALUE, "%s: size is %lld, expected a positive number of samples", function,
                (long long)options.size);
        return NULL;
    }
    const bool whole = !call.training || options.combine || options.size >= shape.outer;
    return whole ? ng_batch_norm_called(tape, &call) : in_sub_batches(tape, &call, options.size);
}
