/* Recomputes the running statistics of a network's BatchNorms over a data set.
 *
 * What a layer is given depends on the statistics of the layers before it. So the network runs on
 * all data once for each BatchNorm, in evaluation: after pass k at least the first k have their
 * final statistics. In a pass each layer collects the moments of its inputs, batch by batch. */
#include "io/dataset.h"
#include "norms/batch_state.h"
#include <normgrad/evaluate.h>
#include <string.h>

static const char recomputing[] = "ng_batch_norm_recompute";

/* A BatchNorm, and its statistics before: mean and spread of each channel, number of batches. */
typedef struct {
    ng_batch_state *state;
    double *before;
} recomputed;

/* Finds the layers of the network, with `found` not NULL, and returns their number. */
static int find_batch_norms(const ng_module *net, recomputed *found)
{
    int count = 0;
    const ng_module *module;
    for (int i = 0; (module = ng_module_layer(net, i)); i++) {
        ng_batch_state *state = ng_batch_norm_state(module);
        if (state && found) found[count].state = state;
        count += state != NULL;
    }
    return count;
}

/* Makes the memory of a layer, and keeps its statistics. */
static bool begin_layer(recomputed *layer)
{
    ng_batch_state *state = layer->state;
    const int64_t channels = state->mean->size;
    layer->before = ng_calloc(recomputing, 2 * channels + 1, sizeof *layer->before);
    state->moments = ng_calloc(recomputing, channels, sizeof(ng_moments));
    if (!layer->before || !state->moments) return false;
    for (int64_t c = 0; c < channels; c++) {
        layer->before[c] = ng_tensor_load(state->mean, c);
        layer->before[channels + c] = ng_tensor_load(state->spread, c);
    }
    layer->before[2 * channels] = ng_item(state->batches);
    return true;
}

/* Frees the memory of a layer; after an error it has its statistics again. */
static void end_layer(recomputed *layer, bool ok)
{
    ng_batch_state *state = layer->state;
    const int64_t channels = state->mean->size;
    for (int64_t c = 0; c < channels && layer->before && state->moments && !ok; c++) {
        ng_tensor_store(state->mean, c, layer->before[c]);
        ng_tensor_store(state->spread, c, layer->before[channels + c]);
        ng_tensor_store(state->batches, 0, layer->before[2 * channels]);
    }
    ng_free(layer->before), ng_free(state->moments);
    state->moments = NULL;
}

/* Gives a layer the statistics that it and the other ranks have collected. */
static bool take_statistics(const recomputed *layer, int64_t batches)
{
    const ng_batch_state *state = layer->state;
    const int64_t channels = state->mean->size;
    ng_moments *all = state->moments;
    if (state->group) {
        ng_moments *rows =
            ng_calloc(recomputing, ng_group_size(state->group) * channels, sizeof *rows);
        const bool well = ng_moments_combine(state->group, recomputing, all, rows, channels);
        ng_free(rows);
        if (!well) return false;
    }
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
static bool recompute_all(ng_module *net, recomputed *layers, int count, ng_dataset *data,
                          int64_t size, bool ok)
{
    ng_tape *tape = ok ? ng_tape_new() : NULL;
    ok = tape != NULL;
    if (ok) ng_tape_set_recording(tape, false);
    for (int i = 0; i < count; i++) ok = begin_layer(&layers[i]) && ok;
    for (int pass = 0; pass < count && (ok || pass == 0); pass++) {
        ok = ok && run_on_all(net, tape, data, size);
        for (int i = 0; i < count; i++) {
            const bool grouped = layers[i].state->group;
            if (ok || grouped)
                ok = take_statistics(&layers[i], (ng_dataset_count(data) + size - 1) / size) && ok;
            if (!ok && grouped) break;
        }
    }
    for (int i = 0; i < count; i++) end_layer(&layers[i], ok);
    ng_tape_free(tape);
    return ok;
}

ng_status ng_batch_norm_recompute(ng_module *net, ng_dataset *dataset, int64_t batch)
{
    if (!ng_given(recomputing, "net", net) || !ng_given(recomputing, "dataset", dataset) ||
        !ng_option_positive(recomputing, "batch", batch, "samples"))
        return ng_newest_status();
    const int count = find_batch_norms(net, NULL);
    if (count == 0)
        return ng_fail(NG_EVALUE, "%s: no BatchNorm has running statistics that are not frozen",
                       recomputing);
    recomputed *layers = ng_calloc(recomputing, count, sizeof *layers);
    if (!layers) return NG_ENOMEM;
    find_batch_norms(net, layers);
    ng_modes before;
    const bool evaluates = ng_modes_evaluate(recomputing, net, &before);
    const bool ok = recompute_all(net, layers, count, dataset, batch, evaluates);
    ng_modes_restore(net, &before);
    ng_free(layers);
    return ok ? NG_OK : ng_newest_status();
}
