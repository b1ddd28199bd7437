/* Ghost batch normalization: in training each sub-batch is normalized by itself. Hoffer, Hubara &
 * Soudry 2017. */
#include "ops/batch_norm.h"

/* The running statistics move once for each, when all have succeeded. */
static ng_tensor *in_sub_batches(ng_tape *tape, const ng_batch_call *call, int64_t size)
{
    const ng_shape s = call->x->shape;
    const int64_t samples = s.dim[0], rest = samples % size * ng_shape_span(s, 2, s.rank);
    const int64_t count = samples / size + (rest > 1); /* one value joins the sub-batch before */
    ng_tensor **y = ng_tape_memory(tape, (size_t)count * sizeof(ng_tensor *));
    ng_batch_moments *moments = ng_tape_memory(tape, (size_t)count * sizeof *moments);
    if (!y || !moments) return NULL;
    for (int64_t i = 0; i < count; i++) {
        ng_batch_call part = *call;
        part.x = ng_slice(tape, call->x, 0, i * size, i + 1 < count ? (i + 1) * size : samples);
        y[i] = ng_batch_norm_run(tape, &part, &moments[i]);
        if (!y[i]) return NULL;
    }
    ng_tensor *joined = ng_concat(tape, y, (int)count, 0);
    for (int64_t i = 0; joined && i < count; i++) ng_batch_move(call, &moments[i]);
    return joined;
}

ng_tensor *ng_ghost_batch_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_tensor *beta,
                                    ng_tensor *running_mean, ng_ghost_batch_norm_options options)
{
    static const char function[] = "ng_ghost_batch_norm";
    const ng_batch_call call = NG_BATCH_CALL(function, options, running_var);
    if (!ng_batch_accepts(tape, &call) ||
        !ng_option_positive(function, "size", options.size, "samples"))
        return NULL;
    const bool whole = !call.training || options.size >= x->shape.dim[0];
    return whole ? ng_batch_norm_called(tape, &call) : in_sub_batches(tape, &call, options.size);
}
