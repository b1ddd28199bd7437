/* Relatives of batch normalization: batch renormalization, and normalization in sub-batches. Both
 * are ng_batch_norm with other statistics, scales and shifts. */
#include "ops/op.h"
#include <math.h>

/* x (N, C, ...) as the kernels see it; false with an error where x has no channels or a channel
 * has too few values for training. */
static bool columns_of(const char *function, const ng_tensor *x, bool training,
                       ng_column_norm_shape *shape)
{
    if (x->shape.rank < 2 || x->shape.rank > 4) {
        ng_fail(NG_ESHAPE, "%s: x of shape %s, expected (N, C), (N, C, L) or (N, C, H, W)",
                function, ng_shape_print(x->shape).text);
        return false;
    }
    *shape = (ng_column_norm_shape){.outer = x->shape.dim[0],
                                    .channels = x->shape.dim[1],
                                    .inner = ng_shape_span(x->shape, 2, x->shape.rank)};
    if (!training || shape->outer * shape->inner >= 2) return true;
    ng_fail(NG_ESHAPE, "%s: training needs more than one value per channel, got shape %s", function,
            ng_shape_print(x->shape).text);
    return false;
}

/* Running statistics are constants that training writes to: neither differentiated nor a tape's. */
static bool running_ok(const char *function, const char *name, const ng_tensor *running,
                       bool training)
{
    if (running->requires_grad) {
        ng_fail(NG_EGRAD, "%s: %s has no gradient, but requires one", function, name);
        return false;
    }
    if (training && running->tape) {
        ng_fail(NG_ESTATE, "%s: training updates %s, but it belongs to a tape and is read-only",
                function, name);
        return false;
    }
    return true;
}

static bool momentum_ok(const char *function, double momentum)
{
    if (momentum >= 0 && momentum <= 1) return true;
    ng_fail(NG_EVALUE, "%s: momentum = %g, expected 0 <= momentum <= 1", function, momentum);
    return false;
}

/* ---- Batch renormalization. Ioffe 2017 ------------------------------------------------------ */

static const char renorm[] = "ng_batch_renorm";

/* The operands and settings of one call. */
typedef struct {
    ng_tensor *x, *gamma, *beta, *running_mean, *running_deviation;
    double eps, momentum, r_max, d_max;
    bool training;
} renorm_call;

static bool renorm_ok(ng_tape *tape, const renorm_call *o, ng_column_norm_shape *shape)
{
    ng_tensor *inputs[] = {o->x, o->running_mean, o->running_deviation, o->gamma, o->beta};
    if (!ng_given(renorm, "x", o->x) || !ng_norm_given(renorm, "gamma", o->gamma) ||
        !ng_norm_given(renorm, "beta", o->beta) ||
        !ng_norm_given(renorm, "running_mean", o->running_mean) ||
        !ng_norm_given(renorm, "running_deviation", o->running_deviation))
        return false;
    if (!ng_accepts(renorm, tape, 3, inputs) || !ng_accepts_optional(renorm, tape, 5, inputs) ||
        !columns_of(renorm, o->x, o->training, shape) ||
        !ng_channels_fit(renorm, "gamma", o->gamma, o->x) ||
        !ng_channels_fit(renorm, "beta", o->beta, o->x) ||
        !ng_channels_fit(renorm, "running_mean", o->running_mean, o->x) ||
        !ng_channels_fit(renorm, "running_deviation", o->running_deviation, o->x) ||
        !running_ok(renorm, "running_mean", o->running_mean, o->training) ||
        !running_ok(renorm, "running_deviation", o->running_deviation, o->training) ||
        !ng_norm_eps_ok(renorm, o->eps) || !momentum_ok(renorm, o->momentum))
        return false;
    if (!o->training || (o->r_max >= 1 && o->d_max >= 0)) return true;
    ng_fail(NG_EVALUE, "%s: r_max = %g and d_max = %g, expected r_max >= 1 and d_max >= 0", renorm,
            o->r_max, o->d_max);
    return false;
}

/* The batch's mean and deviation sqrt(var + eps) per channel, of the tape. */
typedef struct {
    double *mean, *deviation;
} batch_statistics;

static bool statistics_of(ng_tape *tape, const renorm_call *o, const ng_column_norm_shape *shape,
                          batch_statistics *batch)
{
    const size_t channels = (size_t)shape->channels;
    double *memory = ng_tape_memory(tape, 3 * channels * sizeof *memory);
    if (!memory) return false;
    *batch = (batch_statistics){memory, memory + channels};
    ng_column_norm_shape with_eps = *shape;
    with_eps.eps = o->eps;
    const ng_statistics to = {.mean = batch->mean, .rstd = batch->deviation};
    ng_kernels_for(o->x->dtype)
        ->column_statistics(&with_eps, o->x->data, to, memory + 2 * channels);
    for (size_t c = 0; c < channels; c++) batch->deviation[c] = 1 / batch->deviation[c];
    return true;
}

static double clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value; /* a NaN stays */
}

/* r and d (C), detached: what the checker's replay holds fixed. */
static bool corrections(ng_tape *tape, const renorm_call *o, const batch_statistics *batch,
                        ng_tensor **r, ng_tensor **d)
{
    const int64_t channels = o->running_mean->size;
    *r = ng_result(tape, o->x->dtype, NG_SHAPE(channels));
    *d = ng_result(tape, o->x->dtype, NG_SHAPE(channels));
    if (!*r || !*d) return false;
    for (int64_t c = 0; c < channels; c++) {
        const double sigma = ng_tensor_load(o->running_deviation, c);
        const double off = (batch->mean[c] - ng_tensor_load(o->running_mean, c)) / sigma;
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
                                  const ng_column_norm_shape *shape)
{
    batch_statistics batch;
    ng_tensor *scale, *shift;
    if (!statistics_of(tape, o, shape, &batch) || !corrections(tape, o, &batch, &scale, &shift))
        return NULL;
    if (o->gamma != NG_NONE) {
        scale = ng_mul(tape, o->gamma, scale);
        shift = ng_mul(tape, o->gamma, shift);
    }
    if (o->beta != NG_NONE) shift = ng_add(tape, shift, o->beta);
    if (!scale || !shift) return NULL;
    ng_tensor *y =
        ng_batch_norm(tape, o->x, scale, shift, NG_NONE, NG_NONE, .eps = o->eps, .training = true);
    if (y && ng_tape_is_live(tape)) {
        ng_move_running(o->running_mean, batch.mean, 1, o->momentum);
        ng_move_running(o->running_deviation, batch.deviation, 1, o->momentum);
    }
    return y;
}

static ng_tensor *batch_renorm(ng_tape *tape, const renorm_call *o)
{
    ng_column_norm_shape shape;
    if (!renorm_ok(tape, o, &shape)) return NULL;
    if (o->training) return renorm_training(tape, o, &shape);
    ng_tensor *var = ng_square(tape, o->running_deviation);
    if (!var) return NULL;
    return ng_batch_norm(tape, o->x, o->gamma, o->beta, o->running_mean, var, .eps = NG_ZERO);
}

ng_tensor *ng_batch_renorm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                ng_tensor *running_mean, ng_batch_renorm_options options)
{
    const renorm_call call = {.x = x,
                              .gamma = gamma,
                              .beta = beta,
                              .running_mean = running_mean,
                              .running_deviation = options.running_deviation,
                              .eps = ng_option(options.eps, 1e-5),
                              .momentum = ng_option(options.momentum, 0.1),
                              .r_max = ng_option(options.r_max, 3),
                              .d_max = ng_option(options.d_max, 5),
                              .training = options.training};
    return batch_renorm(tape, &call);
}

/* ---- In sub-batches: ghost batch normalization, Hoffer, Hubara & Soudry 2017 ----------------
 *
 * Put together, the statistics of the sub-batches are those of the whole batch, which one process
 * takes at once. */

static const char ghost[] = "ng_ghost_batch_norm";

/* The operands and settings of one call. */
typedef struct {
    ng_tensor *x, *gamma, *beta, *running_mean, *running_var;
    int64_t size;
    double eps, momentum;
    bool training, combine;
} ghost_call;

static int64_t parts_of(const ghost_call *o)
{
    return (o->x->shape.dim[0] + o->size - 1) / o->size;
}

static ng_tensor *part_of(ng_tape *tape, const ghost_call *o, int64_t part)
{
    const int64_t first = part * o->size, count = o->x->shape.dim[0];
    const int64_t last = first + o->size < count ? first + o->size : count;
    return ng_slice(tape, o->x, 0, first, last);
}

static ng_tensor *batch_norm_of(ng_tape *tape, const ghost_call *o, ng_tensor *x)
{
    return ng_batch_norm(tape, x, o->gamma, o->beta, o->running_mean, o->running_var, .eps = o->eps,
                         .momentum = o->momentum, .training = o->training);
}

/* Where a running statistic stood, should a later sub-batch fail. */
static double *values_of(ng_tape *tape, const ng_tensor *x)
{
    double *values = ng_tape_memory(tape, ((size_t)x->size + 1) * sizeof *values);
    for (int64_t i = 0; values && i < x->size; i++) values[i] = ng_tensor_load(x, i);
    return values;
}

static void put_back(ng_tensor *x, const double *values)
{
    for (int64_t i = 0; i < x->size; i++) ng_tensor_store(x, i, values[i]);
    if (!ng_is_none(x)) ng_touch(x);
}

/* Each sub-batch by itself, one after the other. */
static ng_tensor *each_alone(ng_tape *tape, const ghost_call *o)
{
    const int64_t count = parts_of(o);
    ng_tensor **y = ng_tape_memory(tape, (size_t)count * sizeof *y);
    const double *mean = y ? values_of(tape, o->running_mean) : NULL;
    const double *var = mean ? values_of(tape, o->running_var) : NULL;
    if (!var) return NULL;
    int64_t done = 0;
    while (done < count && (y[done] = batch_norm_of(tape, o, part_of(tape, o, done)))) done++;
    ng_tensor *joined = done == count ? ng_concat(tape, y, (int)count, 0) : NULL;
    if (joined || done == 0) return joined;
    put_back(o->running_mean, mean);
    put_back(o->running_var, var);
    return NULL;
}

static bool ghost_ok(ng_tape *tape, const ghost_call *o, ng_column_norm_shape *shape)
{
    ng_tensor *inputs[] = {o->x, o->gamma, o->beta, o->running_mean, o->running_var};
    if (!ng_given(ghost, "x", o->x) || !ng_norm_given(ghost, "gamma", o->gamma) ||
        !ng_norm_given(ghost, "beta", o->beta) ||
        !ng_norm_given(ghost, "running_mean", o->running_mean) ||
        !ng_norm_given(ghost, "running_var", o->running_var) ||
        !ng_accepts(ghost, tape, 1, inputs) || !ng_accepts_optional(ghost, tape, 5, inputs) ||
        !columns_of(ghost, o->x, o->training, shape) ||
        !ng_channels_fit(ghost, "gamma", o->gamma, o->x) ||
        !ng_channels_fit(ghost, "beta", o->beta, o->x) ||
        !ng_channels_fit(ghost, "running_mean", o->running_mean, o->x) ||
        !ng_channels_fit(ghost, "running_var", o->running_var, o->x) ||
        !running_ok(ghost, "running_mean", o->running_mean, o->training) ||
        !running_ok(ghost, "running_var", o->running_var, o->training) ||
        !ng_norm_eps_ok(ghost, o->eps) || !momentum_ok(ghost, o->momentum))
        return false;
    if (o->size >= 1) return true;
    ng_fail(NG_EVALUE, "%s: size is %lld, expected a positive number of samples", ghost,
            (long long)o->size);
    return false;
}

static ng_tensor *ghost_batch_norm(ng_tape *tape, const ghost_call *o)
{
    ng_column_norm_shape shape;
    if (!ghost_ok(tape, o, &shape)) return NULL;
    const bool whole = !o->training || o->combine || o->size >= shape.outer;
    return whole ? batch_norm_of(tape, o, o->x) : each_alone(tape, o);
}

ng_tensor *ng_ghost_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                    ng_tensor *running_mean, ng_ghost_batch_norm_options options)
{
    const ghost_call call = {.x = x,
                             .gamma = gamma,
                             .beta = beta,
                             .running_mean = running_mean,
                             .running_var = options.running_var,
                             .size = options.size,
                             .eps = options.eps,
                             .momentum = options.momentum,
                             .training = options.training,
                             .combine = options.combine};
    return ghost_batch_norm(tape, &call);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_CALL(case_renorm,
             ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5,
                             .momentum = NG_ZERO, .r_max = 1.2, .d_max = 0.5, .training = true))
NG_CASE_CALL(case_renorm_plain,
             ng_batch_renorm(tape, in[0], NG_NONE, NG_NONE, in[1], in[2], .eps = 1e-5,
                             .momentum = NG_ZERO, .r_max = 10, .d_max = 10, .training = true))
NG_CASE_CALL(case_renorm_eval, ng_batch_renorm(tape, in[0], in[1], in[2], in[3], in[4]))
NG_CASE_CALL(case_ghost, ng_ghost_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .size = 3,
                                             .eps = 1e-5, .training = true))
NG_CASE_CALL(case_combined,
             ng_ghost_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .size = 3,
                                 .eps = 1e-5, .training = true, .combine = true))

#define RUNNING_MEAN                                                                               \
    {                                                                                              \
        .name = "running_mean", .shape = NG_CASE_SHAPE(3), .constant = true                        \
    }
#define RUNNING_DEVIATION                                                                          \
    {                                                                                              \
        .name = "running_deviation", .shape = NG_CASE_SHAPE(3), .low = 0.5, .high = 2,             \
        .constant = true                                                                           \
    }
#define AFFINE NG_CASE_ANY("gamma", 3), NG_CASE_ANY("beta", 3)

const ng_case ng_op_cases_batch_variants[] = {
    {.name = "batch_renorm",
     .call = case_renorm,
     .inputs = {NG_CASE_ANY("x", 5, 3), AFFINE, RUNNING_MEAN, RUNNING_DEVIATION}},
    {.name = "batch_renorm (N, C, L)",
     .call = case_renorm,
     .inputs = {NG_CASE_ANY("x", 2, 3, 4), AFFINE, RUNNING_MEAN, RUNNING_DEVIATION}},
    {.name = "batch_renorm (no affine)",
     .call = case_renorm_plain,
     .inputs = {NG_CASE_ANY("x", 5, 3), RUNNING_MEAN, RUNNING_DEVIATION}},
    {.name = "batch_renorm (eval)",
     .call = case_renorm_eval,
     .inputs = {NG_CASE_ANY("x", 5, 3), AFFINE, RUNNING_MEAN, RUNNING_DEVIATION}},
    {.name = "ghost_batch_norm", .call = case_ghost, .inputs = {NG_CASE_ANY("x", 8, 3), AFFINE}},
    {.name = "ghost_batch_norm (N, C, L)",
     .call = case_ghost,
     .inputs = {NG_CASE_ANY("x", 4, 3, 3), AFFINE}},
    {.name = "ghost_batch_norm (combined)",
     .call = case_combined,
     .inputs = {NG_CASE_ANY("x", 8, 3), AFFINE}},
    {.name = "ghost_batch_norm (combined, N, C, H, W)",
     .call = case_combined,
     .inputs = {NG_CASE_ANY("x", 4, 3, 2, 2), AFFINE}},
};
const int ng_op_cases_batch_variants_count = NG_CASE_COUNT(ng_op_cases_batch_variants);
