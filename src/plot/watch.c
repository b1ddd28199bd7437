/* ng_watch: what the layers of a network compute, and how their parameters move.
 *
 * The first call gives each layer a slot, in which ng_forward notes the layer's output
 * (nn/module.c). The tape forgets them when it is reset. */
#include "kernels/kernels.h"
#include "nn/module.h"
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char watch_name[] = "ng_watch";

/* A parameter, and its values at the last call. */
typedef struct {
    const ng_tensor *tensor;
    ng_dtype dtype;
    void *before;
} watched_parameter;

typedef struct {
    ng_watcher base; /* first: the module frees it as that */
    ng_seen *seen;   /* of each layer */
    const ng_module **layers;
    int count;
    watched_parameter *parameters; /* of all layers, in their order */
    int64_t n_parameters;
    int64_t step; /* of the last call */
    bool begun;   /* the values of a call are known */
} watcher;

/* ---- The layers ----------------------------------------------------------------------------- */

static void watcher_free(ng_watcher *base)
{
    watcher *w = (watcher *)base;
    ng_tape_unwatch(base);
    for (int64_t i = 0; i < w->n_parameters; i++) ng_free(w->parameters[i].before);
    ng_free(w->parameters), ng_free(w->seen), ng_free(w->layers);
    ng_free(w);
}

/* The parameters that the module itself has registered. */
static const ng_tensor *own_parameter(const ng_module *module, int *entry)
{
    while (*entry < module->registry->count) {
        const ng_entry *e = &module->registry->entries[(*entry)++];
        if (e->kind == NG_ENTRY_PARAMETER) return e->tensor;
    }
    return NULL;
}

static bool is_container(const ng_module *module)
{
    return strcmp(module->type->name, "Sequential") == 0 || strcmp(module->type->name, "List") == 0;
}

/* The index-th layer of the net that is no container, or NULL. */
static const ng_module *watched_layer(const ng_module *net, int *index)
{
    const ng_module *layer;
    while ((layer = ng_module_layer(net, (*index)++)))
        if (!is_container(layer) && (layer != net || !ng_module_child(net, 0))) return layer;
    return NULL;
}

static watcher *watcher_new(const ng_module *net)
{
    watcher *w = ng_calloc(watch_name, 1, sizeof *w);
    if (!w) return NULL;
    w->base.destroy = watcher_free;
    const ng_module *layer;
    for (int i = 0; (layer = watched_layer(net, &i)); w->count++)
        for (int e = 0; own_parameter(layer, &e);) w->n_parameters++;
    w->seen = ng_calloc(watch_name, w->count + 1, sizeof *w->seen);
    w->layers = ng_calloc(watch_name, w->count + 1, sizeof *w->layers);
    w->parameters = ng_calloc(watch_name, w->n_parameters + 1, sizeof *w->parameters);
    bool made = w->seen && w->layers && w->parameters;
    if (!made) w->n_parameters = 0;
    watched_parameter *p = w->parameters;
    for (int i = 0, k = 0; made && (layer = watched_layer(net, &i)); k++) {
        w->layers[k] = layer;
        const ng_tensor *own;
        for (int e = 0; made && (own = own_parameter(layer, &e)); p++) {
            *p = (watched_parameter){.tensor = own, .dtype = own->dtype};
            p->before = ng_calloc(watch_name, own->size, ng_dtype_bytes(own->dtype));
            made = p->before != NULL;
        }
    }
    if (made) return w;
    watcher_free(&w->base);
    return NULL;
}

/* Whether the watcher still has all layers and parameters of the net, as they are. */
static bool fits_net(const watcher *w, const ng_module *net)
{
    const ng_module *layer;
    int count = 0;
    const watched_parameter *p = w->parameters, *end = p + w->n_parameters;
    for (int i = 0; (layer = watched_layer(net, &i)); count++) {
        if (count == w->count || w->layers[count] != layer) return false;
        const ng_tensor *own;
        for (int e = 0; (own = own_parameter(layer, &e)); p++)
            if (p == end || p->tensor != own || p->dtype != own->dtype) return false;
    }
    return count == w->count && p == end;
}

/* The net's watcher, made anew if there is none or the net has changed. */
static watcher *watcher_of(ng_module *net)
{
    struct ng_registry *registry = net->registry;
    watcher *w = (watcher *)registry->watcher;
    if (!w || !fits_net(w, net)) {
        watcher *made = watcher_new(net);
        if (!made) return NULL;
        if (w) watcher_free(&w->base);
        registry->watcher = &made->base;
        w = made;
    }
    for (int i = 0; i < w->count; i++) {
        w->seen[i].watcher = &w->base;
        w->layers[i]->registry->seen = &w->seen[i];
    }
    return w;
}

/* ---- Statistics ----------------------------------------------------------------------------- */

/* Whether the layer's output has a range, and its ends. */
static bool output_range(const ng_module *layer, double *low, double *high)
{
    const bool is_tanh = strcmp(layer->type->name, "Tanh") == 0;
    *low = is_tanh ? -1 : 0, *high = 1;
    return is_tanh || strcmp(layer->type->name, "Sigmoid") == 0;
}

/* ---- Log ------------------------------------------------------------------------------------ */

/* Where a layer's statistics go. */
typedef struct {
    ng_history *history;
    int64_t step;
    char name[256];
    size_t length; /* of the path and the '/' in it */
} layer_log;

static bool log_statistic(layer_log *to, const char *statistic, double value)
{
    strcpy(to->name + to->length, statistic);
    return ng_history_log(to->history, to->name, to->step, value) == NG_OK;
}

static layer_log log_of(const ng_module *net, const ng_module *layer, ng_history *history,
                        int64_t step)
{
    layer_log to = {.history = history, .step = step};
    const char *path = ng_module_path(net, layer);
    snprintf(to.name, sizeof to.name - 16, "%s", *path ? path : layer->type->name);
    for (char *at = to.name; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", *at))
            *at = '_';
    to.length = strlen(to.name) + 1;
    to.name[to.length - 1] = '/';
    return to;
}

static bool log_output(layer_log *to, const ng_module *layer, const ng_seen *seen)
{
    const ng_tensor *y = seen->output;
    if (seen->pass != seen->watcher->pass || !y || y->size == 0) return true;
    if (y->dtype != NG_F32 && y->dtype != NG_F64) return true;
    const ng_kernels *kernels = ng_kernels_for(y->dtype);
    double low, high, mean, var, divisor = 0;
    int64_t saturated = 0;
    if (output_range(layer, &low, &high))
        saturated = kernels->count_outside(y->data, y->size, low + 0.01, high - 0.01);
    const int64_t zeros = y->size - kernels->count_outside(y->data, y->size, 0, 0);
    kernels->moments(y->data, y->size, &mean, &var);
    const double size = (double)y->size;
    for (int64_t i = 0; i < seen->n_rstd; i++) divisor += 1 / seen->rstd[i] / (double)seen->n_rstd;
    return log_statistic(to, "mean", mean) && log_statistic(to, "deviation", sqrt(var)) &&
           log_statistic(to, "zeros", (double)zeros / size) &&
           log_statistic(to, "saturated", (double)saturated / size) &&
           (seen->n_rstd == 0 || log_statistic(to, "divisor", divisor));
}

static bool log_parameters(layer_log *to, watched_parameter *p, int count, double steps)
{
    double gradient = 0, weight = 0, update = 0;
    bool has_gradient = false;
    for (int i = 0; i < count; i++) {
        const ng_tensor *x = p[i].tensor;
        const ng_kernels *kernels = ng_kernels_for(x->dtype);
        double sums[2];
        kernels->change(x->data, p[i].before, x->size, sums);
        weight += sums[0], update += sums[1];
        if (x->grad_state == NG_GRAD_NONE) continue;
        has_gradient = true;
        gradient += kernels->dot(x->grad->data, x->grad->data, x->size);
    }
    if (to->step < 0 || count == 0) return true;
    if (has_gradient && !log_statistic(to, "gradient", sqrt(gradient))) return false;
    if (!log_statistic(to, "weight", sqrt(weight))) return false;
    if (!(steps > 0)) return true;
    update = sqrt(update) / steps;
    return log_statistic(to, "update", update) &&
           (weight == 0 || log_statistic(to, "ratio", update / sqrt(weight)));
}

ng_status ng_watch(ng_module *net, ng_history *history, int64_t step)
{
    if (!ng_given(watch_name, "net", net) || !ng_given(watch_name, "history", history))
        return ng_newest_status();
    watcher *w = watcher_of(net);
    if (!w) return NG_ENOMEM;
    const double steps = w->begun ? (double)(step - (w->step < -1 ? -1 : w->step)) : 0;
    bool logged = true;
    watched_parameter *p = w->parameters;
    for (int i = 0; i < w->count; i++) {
        layer_log to = log_of(net, w->layers[i], history, step);
        int count = 0;
        for (int e = 0; own_parameter(w->layers[i], &e);) count++;
        if (logged && step >= 0) logged = log_output(&to, w->layers[i], &w->seen[i]);
        logged = log_parameters(&to, p, count, logged ? steps : 0) && logged;
        p += count;
    }
    w->step = step, w->begun = true;
    return logged ? NG_OK : ng_newest_status();
}
