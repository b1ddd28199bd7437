/* ng_watch: what the layers of a network compute, and how their parameters move.
 *
 * The first call gives each layer a slot, in which ng_forward notes the layer's output
 * (nn/forward.c). The tape forgets them when it is reset. */
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

typedef struct watcher watcher;
typedef struct {
    ng_watched base; /* first: in the module's list */
    watcher *watcher;
    const ng_module *module;
    const ng_tensor *output; /* of the module's last call */
    uint64_t pass;           /* in which that was */
    int n_parameters;        /* its own: the next ones of the watcher's */
    size_t length;           /* of the path and the '/' in the name */
    char *name;              /* of a series */
} watched_layer;

struct watcher {
    ng_watched base; /* first: in the net's list */
    ng_listener listener;
    ng_module *net;
    uint64_t pass;      /* counts the passes: an output of an earlier one is gone */
    uint64_t structure; /* of the net when this was made */
    uint64_t number;    /* of the network, from 1 */
    watched_layer *layers;
    watched_parameter *parameters; /* of all layers, in their order */
    int64_t n_layers, layers_room, n_parameters, parameters_room;
    bool begun;          /* the values of a call are known */
    ng_history *history; /* this and the next two: of the last call */
    int64_t step;
    double steps; /* since the one before, or 0 */
};

/* ---- The layers ----------------------------------------------------------------------------- */

/* The outputs are gone. */
static void watcher_reset(ng_listener *listener)
{
    watcher *w = (watcher *)((char *)listener - offsetof(watcher, listener));
    ng_tape_unlisten(listener);
    w->pass++;
}

/* Notes the output of a layer, which can be read until the tape is reset. */
static void layer_called(ng_watched *base, ng_tape *tape, ng_tensor *y)
{
    watched_layer *l = (watched_layer *)base;
    watcher *w = l->watcher;
    if (w->listener.tape != tape) {
        ng_tape_listen(tape, &w->listener);
        w->pass++;
    }
    l->output = y;
    l->pass = w->pass;
}

static void enter_list(const ng_module *module, ng_watched *item)
{
    item->next = module->registry->watched;
    module->registry->watched = item;
}

static void leave_list(const ng_module *module, ng_watched *item)
{
    ng_watched **at = &module->registry->watched;
    while (*at && *at != item) at = &(*at)->next;
    if (*at) *at = item->next;
}

/* The net is being freed, or has changed; what it holds is there still. */
static void watcher_free(ng_watched *base)
{
    watcher *w = (watcher *)base;
    ng_tape_unlisten(&w->listener);
    leave_list(w->net, base);
    for (int64_t i = 0; i < w->n_parameters; i++) ng_tensor_free(w->parameters[i].before);
    for (int64_t i = 0; i < w->n_layers; i++) {
        leave_list(w->layers[i].module, &w->layers[i].base);
        ng_free(w->layers[i].name);
    }
    ng_free(w->parameters), ng_free(w->layers);
    ng_free(w);
}

static void layer_freed(ng_watched *base) { watcher_free(&((watched_layer *)base)->watcher->base); }

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

static bool add_layer(watcher *w, const ng_module *net, const ng_module *layer)
{
    const struct ng_registry *registry = layer->registry;
    watched_layer l = {.module = layer};
    if (!NG_RESERVE(watch_name, w->layers, w->n_layers, w->layers_room) || !name_layer(&l, net))
        return false;
    w->layers[w->n_layers++] = l;
    for (int i = 0; i < registry->count; i++) {
        const ng_tensor *x = registry->entries[i].tensor;
        if (registry->entries[i].kind != NG_ENTRY_PARAMETER) continue;
        if (!NG_RESERVE(watch_name, w->parameters, w->n_parameters, w->parameters_room))
            return false;
        ng_tensor *before = ng_tensor_make(watch_name, x->dtype, x->shape);
        if (!before) return false;
        w->parameters[w->n_parameters++] = (watched_parameter){x, before};
        w->layers[w->n_layers - 1].n_parameters++;
    }
    return true;
}

/* Whether the net has the layers and the dtypes that it had. */
static bool is_current(const watcher *w, const ng_module *net)
{
    if (w->structure != net->registry->structure) return false; /* tensors may be gone */
    for (int64_t i = 0; i < w->n_parameters; i++)
        if (w->parameters[i].tensor->dtype != w->parameters[i].before->dtype) return false;
    return true;
}

/* A watcher of all modules of the net that are no containers, or of a net without modules. */
static watcher *watcher_new(ng_module *net)
{
    watcher *w = ng_calloc(watch_name, 1, sizeof *w);
    if (!w) return NULL;
    w->net = net;
    const ng_module *layer;
    bool made = true;
    for (int i = 0; made && (layer = ng_module_layer(net, i)); i++)
        if (!ng_is_container(layer) && (layer != net || !ng_module_child(net, 0)))
            made = add_layer(w, net, layer);
    if (!made) return watcher_free(&w->base), NULL;
    w->base.freed = watcher_free;
    w->listener.reset = watcher_reset;
    w->structure = net->registry->structure;
    enter_list(net, &w->base);
    for (watched_layer *l = w->layers; l < w->layers + w->n_layers; l++) {
        l->watcher = w;
        l->base.called = layer_called;
        l->base.freed = layer_freed;
        enter_list(l->module, &l->base);
    }
    return w;
}

/* The net's watcher, made anew if there is none or the net has changed. */
static watcher *watcher_of(ng_module *net)
{
    static _Atomic uint64_t networks;
    ng_watched *base = net->registry->watched;
    while (base && base->freed != watcher_free) base = base->next;
    watcher *old = (watcher *)base;
    if (old && is_current(old, net)) return old;
    watcher *w = watcher_new(net);
    if (!w) return NULL;
    w->number = old ? old->number : ++networks;
    if (old) watcher_free(&old->base);
    return w;
}

/* ---- Log ------------------------------------------------------------------------------------ */

static bool log_statistic(const watched_layer *l, const char *statistic, double value)
{
    const watcher *w = l->watcher;
    strcpy(l->name + l->length, statistic);
    if (ng_history_log(w->history, l->name, w->step, value) != NG_OK) return false;
    ng_history_mark(w->history, NG_SERIES_LAYER);
    return true;
}

static double square(double x) { return x * x; }

/* The mean and deviation of an output, and the shares of its elements that are 0 or saturated. */
static bool log_output(const watched_layer *l)
{
    const ng_tensor *y = l->output;
    if (l->pass != l->watcher->pass || !y || y->size == 0) return true;
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
    return log_statistic(l, "mean", mean) && log_statistic(l, "deviation", sqrt(var)) &&
           log_statistic(l, "zeros", zeros / size) &&
           log_statistic(l, "saturated", saturated / size);
}

static bool log_parameters(const watched_layer *l, const watched_parameter *p)
{
    double gradient = 0, weight = 0, update = 0;
    bool has_gradient = false;
    for (int k = 0; k < l->n_parameters; k++) {
        const ng_tensor *x = p[k].tensor;
        const bool counts = x->leaf->has_grad;
        has_gradient = has_gradient || counts;
        for (int64_t i = 0; i < x->size; i++) {
            const double value = ng_tensor_load(x, i);
            weight += square(value), update += square(value - ng_tensor_load(p[k].before, i));
            if (counts) gradient += square(ng_tensor_load(x->leaf->grad, i));
        }
        memcpy(p[k].before->data, x->data, (size_t)x->size * ng_dtype_bytes(x->dtype));
    }
    if (l->watcher->step < 0 || l->n_parameters == 0) return true;
    if (has_gradient && !log_statistic(l, "gradient", sqrt(gradient))) return false;
    if (!log_statistic(l, "weight", sqrt(weight))) return false;
    if (!(l->watcher->steps > 0)) return true;
    update = sqrt(update) / l->watcher->steps;
    return log_statistic(l, "update", update) &&
           (weight == 0 || log_statistic(l, "ratio", update / sqrt(weight)));
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
        return ng_fail(NG_EVALUE, "%s: the block has another network's series: give each a history",
                       watch_name);
    const double before = (double)(w->step < -1 ? -1 : w->step);
    w->steps = w->begun ? (double)step - before : 0;
    w->history = history, w->step = step, w->begun = true;
    bool logged = true;
    const watched_parameter *p = w->parameters;
    for (const watched_layer *l = w->layers; l < w->layers + w->n_layers; l++) {
        if (!logged) w->steps = 0;
        if (logged && step >= 0) logged = log_output(l);
        logged = log_parameters(l, p) && logged;
        p += l->n_parameters;
    }
    if (step >= 0 && history->count > 0) history->blocks[history->count - 1].watched = w->number;
    return logged ? NG_OK : ng_newest_status();
}
