/* Scale, shift and running statistics of the layers that normalize over the batch. */
#include "norms/batch_state.h"
#include "tape/tape.h"

ng_batch_state ng_batch_state_add(ng_module *base, int64_t channels, const char *spread,
                                  bool no_affine, bool no_running_stats)
{
    const ng_shape shape = NG_SHAPE(channels);
    ng_batch_state state = {NG_NONE, NG_NONE, NG_NONE, NG_NONE, NULL};
    state.gamma = ng_module_add_parameter(base, "weight", shape, .value = 1, .left_out = no_affine);
    state.beta = ng_module_add_parameter(base, "bias", shape, .left_out = no_affine);
    if (!no_running_stats) {
        state.mean = ng_module_add_buffer(base, "running_mean", shape, 0);
        state.spread = ng_module_add_buffer(base, spread, shape, 1);
        state.batches = ng_module_add_count(base, "num_batches_tracked");
    }
    return state;
}

void ng_batch_state_count(const ng_batch_state *state, const ng_tape *tape)
{
    if (ng_tape_is_live(tape)) ng_fill(state->batches, ng_item(state->batches) + 1);
}
