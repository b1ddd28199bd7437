/* Recomputes the running statistics of a network's BatchNorms over a data set.
 *
 * What a layer is given depends on the statistics of the layers before it. So the network runs on
 * all data once for each BatchNorm: after pass k at least the first k have their final statistics.
 * In a pass each layer collects the moments of its inputs, batch by batch. */
#include "io/dataset.h"
#include "norms/batch_state.h"
#include <string.h>

static const char recomputing[] = "ng_batch_norm_recompute";

/* A BatchNorm, and what it had before. */
typedef struct {
    const ng_module *module;
    ng_batch_state *state;
    ng_group *group;
    ng_tensor *mean, *var;
    double batches;
} recomputed;

typedef struct {
    ng_module *net;
    ng_dataset *data;
    int64_t batch;
    recomputed *layers;
    int count;
    bool *training; /* of each module */
} recomputation;

/* ---- The layers ---------------------------------------------------------------------------- */

/* Finds the layers and their number; `to` may be NULL. */
static int find_batch_norms(const ng_module *net, recomputed *to)
{
    int count = 0;
    const ng_module *module;
    for (int i = 0; (module = ng_module_layer(net, i)); i++) {
        ng_group *group = NULL;
        ng_batch_state *state = ng_batch_norm_state((ng_module *)module, &group);
        if (!state) continue;
        if (to) to[count] = (recomputed){.module = module, .state = state, .group = group};
        count++;
    }
    return count;
}

static bool remember(recomputed *layer)
{
    ng_batch_state *state = layer->state;
    layer->mean = ng_copy_new(state->mean, state->mean->dtype);
    layer->var = ng_copy_new(state->spread, state->spread->dtype);
    layer->batches = ng_item(state->batches);
    state->moments = ng_calloc(recomputing, state->mean->size, sizeof *state->moments);
    return layer->mean && layer->var && state->moments;
}

/* Ends the collecting; after a failure the layer has its former statistics. */
static void forget(recomputed *layer, bool failed)
{
    if (failed && layer->mean && layer->var) {
        ng_copy_values(layer->state->mean, layer->mean);
        ng_copy_values(layer->state->spread, layer->var);
        ng_fill(layer->state->batches, layer->batches);
    }
    ng_tensor_free(layer->mean), ng_tensor_free(layer->var);
    ng_free(layer->state->moments);
    layer->state->moments = NULL;
}

/* Gives a layer the statistics that it and the other ranks have collected. */
static bool take_statistics(const recomputation *r, const recomputed *layer, int64_t batches)
{
    const ng_batch_state *state = layer->state;
    const int64_t channels = state->mean->size;
    ng_moments *all = state->moments;
    const ng_collective together = {.how = NG_COMBINE_MOMENTS, .data = all, .count = channels};
    if (layer->group && ng_group_combine(layer->group, recomputing, together)) return false;
    if (all[0].n < 2) {
        ng_fail(NG_ESHAPE,
                "%s: BatchNorm \"%s\" was given %g values per channel, expected 2 or more",
                recomputing, ng_module_path(r->net, layer->module), all[0].n);
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

/* ---- The passes ---------------------------------------------------------------------------- */

static bool run_on_all(const recomputation *r, ng_tape *tape, int64_t batches)
{
    for (int64_t i = 0; i < batches; i++) {
        ng_batch batch;
        const bool ran = ng_dataset_batch(r->data, tape, i, r->batch, &batch) &&
                         ng_forward(r->net, tape, batch.x);
        ng_tape_reset(tape);
        if (!ran) return false;
    }
    return true;
}

/* A rank that has failed takes part in the next call of its group, which then fails on all. */
static bool recompute_all(const recomputation *r, ng_tape *tape, bool ok)
{
    const int64_t batches = (ng_dataset_count(r->data) + r->batch - 1) / r->batch;
    for (int pass = 0; pass < r->count && (ok || pass == 0); pass++) {
        ok = ok && run_on_all(r, tape, batches);
        for (int i = 0; i < r->count; i++) {
            const recomputed *layer = &r->layers[i];
            if (ok || layer->group) ok = take_statistics(r, layer, batches) && ok;
            if (!ok && layer->group) break;
        }
    }
    return ok;
}

/* Puts all modules into evaluation mode, or back into their own. */
static void switch_modes(const recomputation *r, bool back)
{
    ng_module *module;
    for (int i = 0; (module = (ng_module *)ng_module_layer(r->net, i)); i++) {
        if (!back) r->training[i] = module->training;
        module->training = back && r->training[i];
    }
}

ng_status ng_batch_norm_recompute(ng_module *net, ng_dataset *dataset, int64_t batch)
{
    if (!ng_given(recomputing, "net", net) || !ng_given(recomputing, "dataset", dataset) ||
        !ng_option_positive(recomputing, "batch", batch, "samples"))
        return ng_newest_status();
    recomputation r = {.net = net, .data = dataset, .batch = batch};
    r.count = find_batch_norms(net, NULL);
    if (r.count == 0)
        return ng_fail(NG_EVALUE, "%s: no BatchNorm has running statistics that are not frozen",
                       recomputing);
    int modules = 0;
    while (ng_module_layer(net, modules)) modules++;
    r.layers = ng_calloc(recomputing, r.count, sizeof *r.layers);
    r.training = ng_calloc(recomputing, modules, sizeof *r.training);
    ng_tape *tape = ng_tape_new();
    bool ok = r.layers && r.training && tape;
    if (r.layers) find_batch_norms(net, r.layers);
    for (int i = 0; i < r.count && ok; i++) ok = remember(&r.layers[i]);
    if (r.training) switch_modes(&r, false);
    if (tape) ng_tape_set_recording(tape, false);
    if (r.layers) ok = recompute_all(&r, tape, ok);
    if (r.training) switch_modes(&r, true);
    for (int i = 0; i < r.count && r.layers; i++) forget(&r.layers[i], !ok);
    ng_free(r.layers), ng_free(r.training), ng_tape_free(tape);
    return ok ? NG_OK : ng_newest_status();
}
