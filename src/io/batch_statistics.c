/* Recomputes the running statistics of a network's BatchNorms over a data set.
 *
 * What a layer is given depends on the statistics of the layers before it. So a copy of the network
 * runs on all data once for each BatchNorm: after pass k at least the first k have their final
 * statistics. In a pass each layer collects the moments of its inputs, batch by batch. */
#include "io/dataset.h"
#include "norms/batch_state.h"
#include <string.h>

static const char recomputing[] = "ng_batch_norm_recompute";

/* The same BatchNorm in the copy and in the network. */
typedef struct {
    ng_batch_state *copy, *own;
} recomputed;

/* Finds the layers of the network and of its copy, unless that is NULL; `to` may be NULL. Returns
 * their number. */
static int find_batch_norms(ng_module *net, ng_module *copy, recomputed *to)
{
    int count = 0;
    const ng_module *module;
    for (int i = 0; (module = ng_module_layer(net, i)); i++) {
        ng_batch_state *state = ng_batch_norm_state(module);
        if (!state) continue;
        if (to) to[count].own = state;
        if (to && copy) to[count].copy = ng_batch_norm_state(ng_module_layer(copy, i));
        count++;
    }
    return count;
}

/* Gives a layer of the copy the statistics that it and the other ranks have collected. */
static bool take_statistics(const recomputed *layer, int64_t batches)
{
    const ng_batch_state *state = layer->copy;
    const int64_t channels = layer->own->mean->size;
    ng_moments *all = state ? state->moments : NULL;
    const ng_collective together = {.how = NG_COMBINE_MOMENTS, .data = all, .count = channels};
    if (layer->own->group && ng_group_combine(layer->own->group, recomputing, together))
        return false;
    if (all[0].n < 2) {
        ng_fail(NG_ESHAPE,
                "%s: a BatchNorm of %lld channels was given %g values per channel, expected 2 or "
                "more",
                recomputing, (long long)channels, all[0].n);
        return false;
    }
    for (int64_t c = 0; c < channels; c++) {
        ng_tensor_store(state->mean, c, all[c].mean + all[c].low);
        ng_tensor_store(state->spread, c, all[c].squares / (all[c].n - 1));
    }
    ng_touch(state->mean), ng_touch(state->spread);
    ng_fill(state->batches, (double)batches);
    memset(all, 0, (size_t)channels * sizeof *all);
    return true;
}

static bool run_on_all(ng_module *net, ng_tape *tape, ng_dataset *data, int64_t size)
{
    const int64_t count = ng_dataset_count(data);
    for (int64_t i = 0; i * size < count; i++) {
        ng_batch batch;
        const bool ran =
            ng_dataset_batch(data, tape, i, size, &batch) && ng_forward(net, tape, batch.x);
        ng_tape_reset(tape);
        if (!ran) return false;
    }
    return true;
}

/* A rank that has failed takes part in the next call of its group, which then fails on all. */
static bool recompute_all(const recomputed *layers, int count, ng_module *copy, ng_dataset *data,
                          int64_t size)
{
    ng_tape *tape = ng_tape_new();
    bool ok = copy && tape;
    if (ok) ng_eval(copy), ng_tape_set_recording(tape, false);
    for (int i = 0; i < count && ok; i++) {
        ng_batch_state *state = layers[i].copy;
        ok = (state->moments = ng_calloc(recomputing, state->mean->size, sizeof(ng_moments)));
    }
    for (int pass = 0; pass < count && (ok || pass == 0); pass++) {
        ok = ok && run_on_all(copy, tape, data, size);
        for (int i = 0; i < count; i++) {
            const bool grouped = layers[i].own->group;
            if (ok || grouped)
                ok = take_statistics(&layers[i], (ng_dataset_count(data) + size - 1) / size) && ok;
            if (!ok && grouped) break;
        }
    }
    for (int i = 0; i < count && copy; i++) ng_free(layers[i].copy->moments);
    ng_tape_free(tape);
    return ok;
}

ng_status ng_batch_norm_recompute(ng_module *net, ng_dataset *dataset, int64_t batch)
{
    if (!ng_given(recomputing, "net", net) || !ng_given(recomputing, "dataset", dataset) ||
        !ng_option_positive(recomputing, "batch", batch, "samples"))
        return ng_newest_status();
    const int count = find_batch_norms(net, NULL, NULL);
    if (count == 0)
        return ng_fail(NG_EVALUE, "%s: no BatchNorm has running statistics that are not frozen",
                       recomputing);
    recomputed *layers = ng_calloc(recomputing, count, sizeof *layers);
    if (!layers) return NG_ENOMEM;
    ng_module *copy = ng_module_clone(net);
    find_batch_norms(net, copy, layers);
    const bool ok = recompute_all(layers, count, copy, dataset, batch);
    for (int i = 0; i < count && ok; i++) {
        ng_copy_values(layers[i].own->mean, layers[i].copy->mean);
        ng_copy_values(layers[i].own->spread, layers[i].copy->spread);
        ng_copy_values(layers[i].own->batches, layers[i].copy->batches);
    }
    ng_free(layers), ng_module_free(copy);
    return ok ? NG_OK : ng_newest_status();
}
