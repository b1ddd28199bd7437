/* Batch renormalization: batch normalization, corrected in training by the running statistics.
 * Ioffe 2017. */
#include "ops/batch_norm.h"
#include <math.h>

typedef struct {
    double r_max, d_max;
} limits;

static double clip(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value; /* a NaN stays */
}

/* (xhat r + d) gamma + beta is batch normalization with gamma r for gamma and gamma d + beta for
 * beta; r and d are constants. */
static bool correct_affine(ng_tape *tape, ng_batch_call *call, ng_batch_moments *batch)
{
    const limits *limit = call->settings;
    const ng_tensor *mean = call->running_mean, *deviation = call->running_spread;
    ng_tensor *r = ng_result(tape, mean->dtype, mean->shape);
    ng_tensor *d = ng_result(tape, mean->dtype, mean->shape);
    if (!r || !d) return false;
    batch->factor = 1;
    for (int64_t c = 0; c < mean->size; c++) {
        const double sigma = ng_tensor_load(deviation, c),
                     sigma_b = sqrt(batch->spread[c] + call->eps);
        const double offset = (batch->mean[c] - ng_tensor_load(mean, c)) / sigma;
        batch->spread[c] = sigma_b;
        ng_tensor_store(r, c, clip(sigma_b / sigma, 1 / limit->r_max, limit->r_max));
        ng_tensor_store(d, c, clip(offset, -limit->d_max, limit->d_max));
    }
    r = ng_detach(tape, r, .by_definition = true); /* the checker holds them fixed */
    d = ng_detach(tape, d, .by_definition = true);
    if (call->gamma != NG_NONE) r = ng_mul(tape, call->gamma, r), d = ng_mul(tape, call->gamma, d);
    if (call->beta != NG_NONE) d = ng_add(tape, d, call->beta);
    call->gamma = r, call->beta = d;
    return r && d;
}

ng_tensor *ng_batch_renorm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                ng_tensor *running_mean, ng_batch_renorm_options options)
{
    static const char function[] = "ng_batch_renorm";
    ng_batch_call call = NG_BATCH_CALL(function, options, running_deviation);
    const limits limit = {ng_option(options.r_max, 3), ng_option(options.d_max, 5)};
    call.group = options.group;
    call.mask = options.mask;
    if (!ng_batch_accepts(tape, &call)) return NULL;
    if (ng_is_none(running_mean) || ng_is_none(call.running_spread)) {
        ng_fail(NG_EVALUE, "%s: running_mean and running_deviation are needed, in training too",
                function);
        return NULL;
    }
    if (call.training) {
        if (!ng_option_range(function, "r_max", limit.r_max, 1, HUGE_VAL) ||
            !ng_option_range(function, "d_max", limit.d_max, 0, HUGE_VAL))
            return NULL;
        call.adapt = correct_affine, call.settings = &limit;
    } else {
        call.running_spread = ng_square(tape, call.running_spread);
        call.eps = 0;
        if (!call.running_spread) return NULL;
    }
    return ng_batch_norm_called(tape, &call);
}
