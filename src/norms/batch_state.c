/* Scale, shift and running statistics of the layers that normalize over the batch. */
#include "norms/batch_state.h"
#include "core/tensor.h"
#include "ops/batch_norm.h"
#include "tape/tape.h"

ng_batch_state ng_batch_state_add(ng_module *base, int64_t channels, const char *spread,
                                  bool no_affine, bool no_running_stats)
{
    const ng_shape shape = NG_SHAPE(channels);
    ng_batch_state state = {NG_NONE, NG_NONE, NG_NONE, NG_NONE, NULL, NULL, NULL};
    state.gamma = ng_module_add_parameter(base, "weight", shape, .value = 1, .left_out = no_affine);
    state.beta = ng_module_add_parameter(base, "bias", shape, .left_out = no_affine);
    if (!no_running_stats) {
        state.mean = ng_module_add_buffer(base, "running_mean", shape, 0);
        state.spread = ng_module_add_buffer(base, spread, shape, 1);
        state.batches = ng_module_add_count(base, "num_batches_tracked");
    }
    return state;
}

bool ng_batch_state_collect(const ng_batch_state *state, ng_tape *tape, const ng_tensor *x)
{
    const ng_column_norm_shape shape = {.outer = x->shape.dim[0],
                                        .channels = x->shape.dim[1],
                                        .inner = ng_shape_span(x->shape, 2, x->shape.rank),
                                        .eps = 1};
    const double n = (double)(shape.outer * shape.inner);
    double *var = ng_tape_memory(tape, (size_t)shape.channels * sizeof *var);
    ng_moments *batch = ng_tape_memory(tape, (size_t)shape.channels * sizeof *batch);
    ng_statistics statistics;
    if (!var || !batch || !ng_statistics_new(tape, x, shape.channels, true, &statistics))
        return false;
    if (n == 0) return true;
    ng_kernels_for(x->dtype)->column_statistics(&shape, x->data, statistics, var);
    for (int64_t c = 0; c < shape.channels; c++)
        batch[c] =
            (ng_moments){n, statistics.mean[c], statistics.low ? statistics.low[c] : 0, var[c] * n};
    ng_moments_add(batch, state->moments, shape.channels);
    return true;
}

void ng_batch_state_count(const ng_batch_state *state, const ng_tape *tape)
{
    if (ng_tape_is_live(tape)) ng_fill(state->batches, ng_item(state->batches) + 1);
}

void ng_running_move(ng_tensor *running, const ng_tensor *statistic, double factor, double momentum)
{
    const int64_t channels = running->size, samples = statistic->size / channels;
    for (int64_t c = 0; c < channels; c++) {
        double sum = 0;
        for (int64_t n = 0; n < samples; n++) sum += ng_tensor_load(statistic, n * channels + c);
        const double old = ng_tensor_load(running, c);
        ng_tensor_store(running, c, old + momentum * (factor * sum / (double)samples - old));
    }
    ng_touch(running);
}

bool ng_batch_state_move(const ng_batch_state *state, ng_tape *tape, ng_tensor *x, double momentum)
{
    if (!ng_tape_is_live(tape) || x->size == 0) return true;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *rows = ng_by_positions(tape, x);
    ng_tensor *mean = ng_mean(tape, rows, .axes = NG_AXES(-1));
    ng_tensor *var = ng_variance(tape, rows, .axes = NG_AXES(-1), .unbiased = true);
    ng_tape_set_recording(tape, was);
    if (!mean || !var) return false;
    ng_running_move(state->mean, mean, 1, momentum);
    ng_running_move(state->spread, var, 1, momentum);
    ng_batch_state_count(state, tape);
    return true;
}
