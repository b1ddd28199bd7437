/* Batch normalization: each channel over the batch and all positions.
 *
 * x (N, C), (N, C, L) or (N, C, H, W) is seen as (outer, channels, inner); gamma, beta and the
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
 */
#include "ops/op.h"
#include <math.h>

typedef struct {
    ng_column_norm_shape shape;
    bool fixed;               /* the statistics are constants */
    ng_statistics statistics; /* (channels), the tape's */
} batch_norm_attributes;

/* The operands and settings of one call. */
typedef struct {
    ng_tensor *x, *gamma, *beta, *running_mean, *running_var;
    double eps, momentum;
    bool training;
} batch_norm_call;

/* ---- Gradient and definition -------------------------------------------------------------- */

static ng_status batch_norm_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                     ng_slot *dx)
{
    (void)tape;
    const batch_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    const ng_norm_gradients gradients = {dx[0].data,       dx[1].data,       dx[2].data,
                                         dx[0].accumulate, dx[1].accumulate, dx[2].accumulate};
    ng_kernels_for(x->dtype)->column_norm_backward(
        &saved->shape, x->data, gamma->data, saved->statistics, dy->data, saved->fixed, gradients);
    return NG_OK;
}

/* The shape in which numbers per channel broadcast against x: (C), (C, 1) or (C, 1, 1). */
static ng_shape channels_of(const ng_tensor *x)
{
    return (ng_shape){.rank = ng_rank(x) - 1, .dim = {ng_dim(x, 1), 1, 1}};
}

static ng_tensor *per_channel(ng_tape *tape, ng_tensor *c, const ng_tensor *x)
{
    return ng_reshape(tape, c, channels_of(x));
}

static ng_tensor *batch_norm_definition(ng_tape *tape, const ng_node *node)
{
    const batch_norm_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *gamma = node->inputs[1], *beta = node->inputs[2];
    ng_tensor *z = x, *mean, *var;
    if (saved->fixed) {
        mean = per_channel(tape, node->inputs[3], x);
        var = ng_add_scalar(tape, per_channel(tape, node->inputs[4], x), saved->shape.eps);
    } else {
        const ng_axes all_but_channel = {.count = ng_rank(x) - 1, .axis = {0, 2, 3}};
        const ng_norm_constants near = ng_norm_constants_of(tape, x->dtype, channels_of(x),
                                                            &saved->statistics, saved->shape.eps);
        z = ng_norm_near(tape, x, near);
        mean = ng_mean(tape, z, .axes = all_but_channel, .keepdim = true);
        var = ng_variance(tape, z, .axes = all_but_channel, .keepdim = true);
        var = ng_add(tape, ng_reshape(tape, var, channels_of(x)), near.eps);
    }
    ng_tensor *y = ng_mul(tape, ng_sub(tape, z, mean), ng_rsqrt(tape, var));
    if (gamma != NG_NONE) y = ng_mul(tape, y, per_channel(tape, gamma, x));
    if (beta != NG_NONE) y = ng_add(tape, y, per_channel(tape, beta, x));
    return y;
}

static const ng_op batch_norm_op = {
    .name = "batch_norm", .backward = batch_norm_backward, .definition = batch_norm_definition};

/* ---- Shape rule --------------------------------------------------------------------------- */

static bool operands_given(const batch_norm_call *o)
{
    static const char function[] = "ng_batch_norm";
    return ng_given(function, "x", o->x) && ng_norm_given(function, "gamma", o->gamma) &&
           ng_norm_given(function, "beta", o->beta) &&
           ng_norm_given(function, "running_mean", o->running_mean) &&
           ng_norm_given(function, "running_var", o->running_var);
}

static bool channels_fit(const char *name, const ng_tensor *c, const ng_tensor *x)
{
    const ng_shape expected = NG_SHAPE(x->shape.dim[1]);
    if (ng_is_none(c) || ng_shape_equal(c->shape, expected)) return true;
    ng_fail(NG_ESHAPE, "ng_batch_norm: %s of shape %s, expected %s for x of shape %s", name,
            ng_shape_print(c->shape).text, ng_shape_print(expected).text,
            ng_shape_print(x->shape).text);
    return false;
}

static bool shapes_ok(const batch_norm_call *o)
{
    const ng_shape shape = o->x->shape;
    if (shape.rank < 2 || shape.rank > 4) {
        ng_fail(NG_ESHAPE,
                "ng_batch_norm: x of shape %s, expected (N, C), (N, C, L) or (N, C, H, W)",
                ng_shape_print(shape).text);
        return false;
    }
    return channels_fit("gamma", o->gamma, o->x) && channels_fit("beta", o->beta, o->x) &&
           channels_fit("running_mean", o->running_mean, o->x) &&
           channels_fit("running_var", o->running_var, o->x);
}

static bool settings_ok(const batch_norm_call *o)
{
    if (!(o->eps >= 0 && isfinite(o->eps))) {
        ng_fail(NG_EVALUE, "ng_batch_norm: eps = %g, expected a finite number of at least 0",
                o->eps);
        return false;
    }
    if (!(o->momentum >= 0 && o->momentum <= 1)) {
        ng_fail(NG_EVALUE, "ng_batch_norm: momentum = %g, expected 0 <= momentum <= 1",
                o->momentum);
        return false;
    }
    return true;
}

/* Running statistics are constants that training writes to: they can be neither differentiated
 * nor a tape's. */
static bool running_ok(const batch_norm_call *o)
{
    if (!o->training && (ng_is_none(o->running_mean) || ng_is_none(o->running_var))) {
        ng_fail(NG_EVALUE,
                "ng_batch_norm: running_mean and running_var are needed outside training");
        return false;
    }
    if (o->running_mean->requires_grad || o->running_var->requires_grad) {
        ng_fail(NG_EGRAD, "ng_batch_norm: running statistics have no gradient, but one of them "
                          "requires it");
        return false;
    }
    if (o->training && (o->running_mean->tape || o->running_var->tape)) {
        ng_fail(NG_ESTATE, "ng_batch_norm: training updates the running statistics, but one of "
                           "them belongs to a tape and is read-only");
        return false;
    }
    return true;
}

/* ---- Statistics --------------------------------------------------------------------------- */

static void read_running(const batch_norm_call *o, double *mean, double *var)
{
    for (int64_t c = 0; c < o->running_mean->size; c++) {
        mean[c] = ng_tensor_load(o->running_mean, c);
        var[c] = ng_tensor_load(o->running_var, c);
    }
}

void ng_move_running(ng_tensor *running, const double *batch, double factor, double momentum)
{
    if (ng_is_none(running) || momentum == 0) return;
    ng_kernels_for(running->dtype)
        ->move_toward(running->data, batch, factor, momentum, running->size);
    ng_touch(running);
}

/* ---- Forward ------------------------------------------------------------------------------ */

static ng_tensor *batch_norm(ng_tape *tape, const batch_norm_call *o)
{
    ng_tensor *inputs[] = {o->x, o->gamma, o->beta, o->running_mean, o->running_var};
    if (!operands_given(o) || !ng_accepts("ng_batch_norm", tape, 1, inputs) ||
        !ng_accepts_optional("ng_batch_norm", tape, 5, inputs) || !shapes_ok(o) ||
        !settings_ok(o) || !running_ok(o))
        return NULL;

    const ng_tensor *x = o->x;
    batch_norm_attributes saved = {.shape = {.outer = x->size == 0 ? 0 : x->shape.dim[0],
                                             .channels = x->shape.dim[1],
                                             .inner = ng_shape_span(x->shape, 2, x->shape.rank),
                                             .eps = o->eps},
                                   .fixed = !o->training};
    const int64_t channels = saved.shape.channels, count = saved.shape.outer * saved.shape.inner;
    if (o->training && count < 2) {
        ng_fail(NG_ESHAPE,
                "ng_batch_norm: training needs more than one value per channel, got shape %s",
                ng_shape_print(x->shape).text);
        return NULL;
    }

    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    double *var = y ? ng_tape_memory(tape, (size_t)channels * sizeof *var) : NULL;
    if (!var || !ng_statistics_new(tape, x, channels, true, &saved.statistics)) return NULL;
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    if (o->training) {
        kernels->column_statistics(&saved.shape, x->data, saved.statistics, var);
    } else {
        saved.statistics.low = NULL;
        read_running(o, saved.statistics.mean, var);
        kernels->inverse_deviation(saved.statistics.rstd, var, o->eps, channels);
    }
    kernels->column_norm(&saved.shape, x->data, saved.statistics, o->gamma->data, o->beta->data,
                         y->data);

    /* The batch's own statistics are functions of x; running ones are inputs, so that a backward
     * pass after they were changed is noticed. */
    y = ng_record(tape, &batch_norm_op, y, inputs, o->training ? 3 : 5, &saved, sizeof saved);
    if (y && o->training && ng_tape_is_live(tape)) {
        const double unbiased = (double)count / (double)(count - 1);
        ng_move_running(o->running_mean, saved.statistics.mean, 1, o->momentum);
        ng_move_running(o->running_var, var, unbiased, o->momentum);
    }
    return y;
}

ng_tensor *ng_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                              ng_tensor *running_mean, ng_batch_norm_options options)
{
    const batch_norm_call call = {.x = x,
                                  .gamma = gamma,
                                  .beta = beta,
                                  .running_mean = running_mean,
                                  .running_var = options.running_var,
                                  .eps = ng_option(options.eps, 1e-5),
                                  .momentum = ng_option(options.momentum, 0.1),
                                  .training = options.training};
    return batch_norm(tape, &call);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_CALL(case_training, ng_batch_norm(tape, in[0], in[1], in[2], NG_NONE, NG_NONE, .eps = 1e-5,
                                          .training = true))
NG_CASE_CALL(case_training_plain, ng_batch_norm(tape, in[0], NG_NONE, NG_NONE, NG_NONE, NG_NONE,
                                                .eps = 1e-5, .training = true))
NG_CASE_CALL(case_eval, ng_batch_norm(tape, in[0], in[1], in[2], in[3], in[4], .eps = 1e-5))
NG_CASE_CALL(case_eval_plain,
             ng_batch_norm(tape, in[0], NG_NONE, NG_NONE, in[1], in[2], .eps = 1e-5))

#define CHANNEL_INPUT(label)                                                                       \
    {                                                                                              \
        .name = label, .shape = NG_CASE_SHAPE(3)                                                   \
    }
#define RUNNING_MEAN                                                                               \
    {                                                                                              \
        .name = "running_mean", .shape = NG_CASE_SHAPE(3), .constant = true                        \
    }
#define RUNNING_VAR                                                                                \
    {                                                                                              \
        .name = "running_var", .shape = NG_CASE_SHAPE(3), .low = 0.5, .high = 2, .constant = true  \
    }

const ng_case ng_op_cases_batch_norm[] = {
    {.name = "batch_norm",
     .call = case_training,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(5, 3)},
                CHANNEL_INPUT("gamma"),
                CHANNEL_INPUT("beta")}},
    {.name = "batch_norm (N, C, L)",
     .call = case_training,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(2, 3, 4)},
                CHANNEL_INPUT("gamma"),
                CHANNEL_INPUT("beta")}},
    {.name = "batch_norm (N, C, H, W)",
     .call = case_training,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(2, 3, 2, 2)},
                CHANNEL_INPUT("gamma"),
                CHANNEL_INPUT("beta")}},
    {.name = "batch_norm (no affine)",
     .call = case_training_plain,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(5, 3)}}},
    {.name = "batch_norm (eval)",
     .call = case_eval,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(5, 3)},
                CHANNEL_INPUT("gamma"),
                CHANNEL_INPUT("beta"),
                RUNNING_MEAN,
                RUNNING_VAR}},
    {.name = "batch_norm (eval, N, C, L)",
     .call = case_eval,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(2, 3, 4)},
                CHANNEL_INPUT("gamma"),
                CHANNEL_INPUT("beta"),
                RUNNING_MEAN,
                RUNNING_VAR}},
    {.name = "batch_norm (eval, no affine)",
     .call = case_eval_plain,
     .inputs = {{.name = "x", .shape = NG_CASE_SHAPE(5, 3)}, RUNNING_MEAN, RUNNING_VAR}},
};
const int ng_op_cases_batch_norm_count = NG_CASE_COUNT(ng_op_cases_batch_norm);
