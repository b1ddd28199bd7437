/* ng_watch: what the layers of a network compute, and how their parameters move.
 *
 * The first call gives each layer a slot, in which ng_forward notes the layer's output
 * (nn/module.c). The tape forgets them when it is reset. */
#include "nn/module.h"
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char watch_name[] = "ng_watch";

/* A parameter, and its values at the last call. */
typedef struct {
    const ng_tensor *tensor;
    ng_tensor *before;
} watched_parameter;

typedef struct {
    const ng_module *module;
    ng_seen seen;
    int n_parameters; /* its own: the next ones of the watcher's */
    size_t length;    /* of the path and the '/' in the name */
    char *name;       /* of a series */
} watched_layer;

typedef struct {
    ng_watcher base; /* first: the module frees it as that */
    uint64_t digest; /* of the layers, the parameters and their dtypes */
    uint64_t number; /* of the network, from 1 */
    watched_layer *layers;
    watched_parameter *parameters; /* of all layers, in their order */
    int64_t n_layers, n_parameters;
    int64_t step; /* of the last call */
    bool begun;   /* the values of a call are known */
} watcher;

/* ---- The layers ----------------------------------------------------------------------------- */

/* The outputs are gone. */
static void watcher_reset(ng_listener *listener)
{
    ng_tape_unlisten(listener);
    ((ng_watcher *)listener)->pass++;
}

static void watcher_free(ng_watcher *base)
{
    watcher *w = (watcher *)base;
    ng_tape_unlisten(&base->listener);
    for (int64_t i = 0; w->parameters && i < w->n_parameters; i++)
        ng_tensor_free(w->parameters[i].before);
    for (int64_t i = 0; w->layers && i < w->n_layers; i++) ng_free(w->layers[i].name);
    ng_free(w->parameters), ng_free(w->layers);
    ng_free(w);
}

/* The next parameter that the module itself has registered, or NULL. */
static const ng_tensor *own_parameter(const ng_module *module, int *entry)
{
    while (*entry < module->registry->count) {
        const ng_entry *e = &module->registry->entries[(*entry)++];
        if (e->kind == NG_ENTRY_PARAMETER) return e->tensor;
    }
    return NULL;
}

/* The next layer of the net that is no container, or NULL. */
static const ng_module *next_layer(const ng_module *net, int *index)
{
    const ng_module *layer;
    while ((layer = ng_module_layer(net, (*index)++))) {
        if (ng_is_container(layer)) continue;
        if (layer != net || !ng_module_child(net, 0)) return layer;
    }
    return NULL;
}

/* Counts layers and parameters, and computes their digest. */
static watcher watcher_scan(const ng_module *net)
{
    watcher w = {.base = {.listener.reset = watcher_reset, .destroy = watcher_free},
                 .digest = NG_DIGEST_START};
    const ng_module *layer;
    const ng_tensor *own;
    for (int i = 0; (layer = next_layer(net, &i)); w.n_layers++) {
        w.digest = ng_digest(w.digest, &layer, sizeof layer);
        for (int e = 0; (own = own_parameter(layer, &e)); w.n_parameters++) {
            w.digest = ng_digest(w.digest, &own, sizeof own);
            w.digest = ng_digest(w.digest, &own->dtype, sizeof own->dtype);
        }
    }
    return w;
}

/* Names the layer by its path, with the type after a number: "0.Linear". */
static bool name_layer(watched_layer *l, const ng_module *net)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *path = ng_module_path(net, l->module), *type = l->module->type->name;
    const char *dot = strrchr(path, '.'), *last = dot ? dot + 1 : path;
    const bool number = last[strspn(last, "0123456789")] == '\0';
    const size_t size = strlen(path) + strlen(type) + 16;
    l->name = ng_calloc(watch_name, (int64_t)size, 1);
    if (!l->name) return false;
    snprintf(l->name, size, "%s%s%s", path, number && *path ? "." : "", number ? type : "");
    for (char *at = l->name; *(at += strspn(at, allowed)); at++) *at = '_';
    l->length = strlen(l->name) + 1;
    l->name[l->length - 1] = '/';
    return true;
}

static watcher *watcher_new(const ng_module *net, const watcher *scanned)
{
    watcher *w = ng_calloc(watch_name, 1, sizeof *w);
    if (!w) return NULL;
    *w = *scanned;
    w->layers = ng_calloc(watch_name, w->n_layers + 1, sizeof *w->layers);
    w->parameters = ng_calloc(watch_name, w->n_parameters + 1, sizeof *w->parameters);
    bool made = w->layers && w->parameters;
    watched_layer *l = w->layers;
    watched_parameter *p = w->parameters;
    for (int i = 0; made && (l->module = next_layer(net, &i)); l++) {
        const ng_tensor *own;
        made = name_layer(l, net);
        for (int e = 0; made && (own = own_parameter(l->module, &e)); p++, l->n_parameters++) {
            p->tensor = own;
            p->before = ng_tensor_make(watch_name, own->dtype, own->shape);
            made = p->before != NULL;
        }
    }
    if (made) return w;
    watcher_free(&w->base);
    return NULL;
}

/* The net's watcher, made anew if there is none or the net has changed. */
static watcher *watcher_of(ng_module *net)
{
    struct ng_registry *registry = net->registry;
    watcher *w = (watcher *)registry->watcher;
    const watcher scanned = watcher_scan(net);
    if (!w || w->digest != scanned.digest) {
        static _Atomic uint64_t networks;
        watcher *made = watcher_new(net, &scanned);
        if (!made) return NULL;
        made->number = w ? w->number : ++networks;
        if (w) watcher_free(&w->base);
        registry->watcher = &made->base;
        w = made;
    }
    for (int64_t i = 0; i < w->n_layers; i++) {
        w->layers[i].seen.watcher = &w->base;
        w->layers[i].module->registry->seen = &w->layers[i].seen;
    }
    return w;
}

/* ---- Log ------------------------------------------------------------------------------------ */

/* Where the statistics of a call go. */
typedef struct {
    ng_history *history;
    int64_t step;
    double steps; /* since the call before, or 0 */
} watch_log;

static bool log_statistic(const watch_log *to, watched_layer *l, const char *statistic,
                          double value)
{
    strcpy(l->name + l->length, statistic);
    if (ng_history_log(to->history, l->name, to->step, value) != NG_OK) return false;
    ng_history_mark(to->history, NG_SERIES_LAYER);
    return true;
}

static double square(double x) { return x * x; }

/* The mean and the deviation of an output, and how many of its elements are 0, and outside a range. */
static bool log_output(const watch_log *to, watched_layer *l)
{
    const ng_seen *seen = &l->seen;
    const ng_tensor *y = seen->output;
    if (seen->pass != seen->watcher->pass || !y || y->size == 0) return true;
    if (y->dtype != NG_F32 && y->dtype != NG_F64) return true;
    const double size = (double)y->size;
    double low, high, mean = 0, var = 0, zeros = 0, saturated = 0;
    const bool bounded = ng_output_range(l->module, &low, &high);
    for (int64_t i = 0; i < y->size; i++) {
        const double value = ng_tensor_load(y, i);
        mean += value / size, zeros += value == 0;
        saturated += bounded && (value < low + 0.01 || value > high - 0.01);
    }
    for (int64_t i = 0; i < y->size; i++) var += square(ng_tensor_load(y, i) - mean) / size;
    return log_statistic(to, l, "mean", mean) && log_statistic(to, l, "deviation", sqrt(var)) &&
           log_statistic(to, l, "zeros", zeros / size) &&
           log_statistic(to, l, "saturated", saturated / size);
}

static bool log_parameters(const watch_log *to, watched_layer *l, watched_parameter *p)
{
    double gradient = 0, weight = 0, update = 0;
    bool has_gradient = false;
    for (int k = 0; k < l->n_parameters; k++) {
        const ng_tensor *x = p[k].tensor;
        const bool counts = x->leaf->grad_state != NG_GRAD_NONE;
        has_gradient = has_gradient || counts;
        for (int64_t i = 0; i < x->size; i++) {
            const double value = ng_tensor_load(x, i);
            weight += square(value), update += square(value - ng_tensor_load(p[k].before, i));
            if (counts) gradient += square(ng_tensor_load(x->leaf->grad, i));
        }
        memcpy(p[k].before->data, x->data, (size_t)x->size * ng_dtype_bytes(x->dtype));
    }
    if (to->step < 0 || l->n_parameters == 0) return true;
    if (has_gradient && !log_statistic(to, l, "gradient", sqrt(gradient))) return false;
    if (!log_statistic(to, l, "weight", sqrt(weight))) return false;
    if (!(to->steps > 0)) return true;
    update = sqrt(update) / to->steps;
    return log_statistic(to, l, "update", update) &&
           (weight == 0 || log_statistic(to, l, "ratio", update / sqrt(weight)));
}

ng_status ng_watch(ng_module *net, ng_history *history, int64_t step)
{
    if (!ng_given(watch_name, "net", net) || !ng_given(watch_name, "history", history) ||
        !ng_module_ready(net))
        return ng_newest_status();
    watcher *w = watcher_of(net);
    if (!w) return NG_ENOMEM;
    ng_block *b = history->count > 0 ? &history->blocks[history->count - 1] : NULL;
    if (b && b->watched != 0 && b->watched != w->number)
        return ng_fail(NG_EVALUE,
                       "%s: the block of the history has another network's series, which have the "
                       "same names: give each network a history",
                       watch_name);
    watch_log to = {.history = history, .step = step};
    if (w->begun) to.steps = (double)(step - (w->step < -1 ? -1 : w->step));
    bool logged = true;
    watched_parameter *p = w->parameters;
    for (int64_t i = 0; i < w->n_layers; i++) {
        watched_layer *l = &w->layers[i];
        if (!logged) to.steps = 0;
        if (logged && step >= 0) logged = log_output(&to, l);
        logged = log_parameters(&to, l, p) && logged;
        p += l->n_parameters;
    }
    w->step = step, w->begun = true;
    if (step >= 0 && history->count > 0) history->blocks[history->count - 1].watched = w->number;
    return logged ? NG_OK : ng_newest_status();
}
