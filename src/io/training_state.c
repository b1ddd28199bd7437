/* The file of a training: everything that the steps to come depend on, by name.
 *
 *     module.NAME                  parameters and buffers
 *     optimizer.K.NAME             the K-th state array of a parameter
 *     gradient.NAME                a gradient that waits for a step
 *     optimizer.steps              taken by each parameter (I64)
 *     training.position            epoch, batch, step, batch size, in an epoch, optimizer's steps
 *     training.rate                the optimizer's base rate (F64)
 *     training.modes               of each module: 1 in training, 2 frozen (I64)
 *     tape                         the stream of dropout: as seeded, and now (U64)
 *     number. count. rng. tensor.  what is kept for the user
 *
 * and the texts settings, history and normgrad (the version). One list of items, each a name and
 * the memory behind it, is both written and read. */
#include "io/dataset.h"
#include "io/history.h"
#include "io/training.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "tape/tape.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Items --------------------------------------------------------------------------------- */

typedef struct {
    ng_stored stored;       /* name, kind, shape and memory */
    ng_tensor *tensor;      /* whose memory it is, or NULL */
    bool copied;            /* the memory is the state's: it is read before anything is changed */
    const ng_stored *found; /* in the file that is read */
} state_item;

enum { AT_EPOCH, AT_BATCH, AT_STEP, AT_SIZE, AT_IN_EPOCH, AT_OPTIMIZER_STEPS, POSITIONS };

typedef struct {
    const char *function;
    const ng_safetensors *file; /* that is read, or NULL */
    state_item *items;
    int64_t count, room;
    bool failed;

    /* Copies of what does not lie in memory as it lies in the file. */
    int64_t position[POSITIONS];
    double rate;
    uint64_t streams[8];
    int64_t *steps, *modes;
    bool *waits; /* whether a parameter's gradient waits for a step */
    ng_text settings, history;
} training_state;

/* Adds an item named prefix + name. */
static void add_item(training_state *s, const char *prefix, const char *name, state_item item)
{
    ng_text text = {.function = s->function};
    if (s->failed) return;
    ng_text_print(&text, "%s%s", prefix, name);
    s->failed = text.failed || !NG_RESERVE(s->function, s->items, s->count, s->room);
    if (s->failed) {
        ng_free(text.bytes);
        return;
    }
    item.stored.name = text.bytes;
    item.stored.size = ng_shape_span(item.stored.shape, 0, item.stored.shape.rank);
    s->items[s->count++] = item;
}

static void add_copy(training_state *s, const char *name, ng_stored_kind kind, ng_shape shape,
                     void *memory)
{
    add_item(
        s, "", name,
        (state_item){.stored = {.kind = kind, .shape = shape, .bytes = memory}, .copied = true});
}

static void add_tensor(training_state *s, const char *prefix, const char *name, ng_tensor *x)
{
    add_item(s, prefix, name, (state_item){.stored = ng_stored_of("", x), .tensor = x});
}

static void *state_calloc(training_state *s, int64_t count, size_t size)
{
    void *memory = s->failed ? NULL : ng_calloc(s->function, count, size);
    s->failed = !memory;
    return memory;
}

static void state_free(training_state *s)
{
    for (int64_t i = 0; i < s->count; i++) ng_free((void *)s->items[i].stored.name);
    ng_free(s->items);
    ng_free(s->steps);
    ng_free(s->modes);
    ng_free(s->waits);
    ng_free(s->settings.bytes);
    ng_free(s->history.bytes);
}

/* ---- Everything that a training keeps ------------------------------------------------------ */

enum { MODE_TRAINING = 1, MODE_FROZEN = 2 };

static void add_module(training_state *s, const ng_module *module)
{
    static const ng_entry_kind kinds[] = {NG_ENTRY_PARAMETER, NG_ENTRY_BUFFER};
    ng_named_tensor tensor;
    const ng_module *layer;
    int count = 0;
    for (int k = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++)
            add_tensor(s, "module.", tensor.name, tensor.tensor);
    while (ng_module_layer(module, count)) count++;
    s->modes = state_calloc(s, count, sizeof *s->modes);
    for (int i = 0; s->modes && (layer = ng_module_layer(module, i)); i++)
        s->modes[i] = (layer->training ? MODE_TRAINING : 0) | (layer->frozen ? MODE_FROZEN : 0);
    add_copy(s, "training.modes", NG_STORED_I64, NG_SHAPE(count), s->modes);
}

static void set_modes(const training_state *s, ng_module *module)
{
    ng_module *layer;
    for (int i = 0; (layer = (ng_module *)ng_module_layer(module, i)); i++) {
        layer->training = s->modes[i] & MODE_TRAINING;
        layer->frozen = s->modes[i] & MODE_FROZEN;
        for (int k = 0; k < layer->registry->count; k++) {
            const ng_entry *entry = &layer->registry->entries[k];
            if (entry->kind == NG_ENTRY_PARAMETER) entry->tensor->requires_grad = !layer->frozen;
        }
    }
}

/* Whether a parameter's gradient waits for a step: here, or in the file. */
static bool gradient_waits(training_state *s, const ng_moved *moved)
{
    if (!s->file) return ng_has_new_gradient(moved);
    ng_text name = {.function = s->function};
    ng_text_print(&name, "gradient.%s", moved->name);
    s->failed = s->failed || name.failed;
    const bool waits = !name.failed && ng_safetensors_find(s->file, name.bytes);
    ng_free(name.bytes);
    return waits;
}

static void add_parameter(training_state *s, const ng_optimizer *optimizer, int index)
{
    const ng_moved *moved = &optimizer->moved[index];
    s->steps[index] = moved->steps;
    s->waits[index] = gradient_waits(s, moved);
    for (int k = 0; k < optimizer->states; k++) {
        char prefix[32];
        state_item item = {.stored = ng_stored_of("", moved->weight)};
        item.stored.bytes = moved->state[k];
        snprintf(prefix, sizeof prefix, "optimizer.%d.", k);
        add_item(s, prefix, moved->name, item);
    }
    if (!s->waits[index]) return;
    ng_tensor *gradient = ng_tensor_grad_slot(moved->weight);
    if (gradient)
        add_tensor(s, "gradient.", moved->name, gradient);
    else
        s->failed = true;
}

static void add_optimizer(training_state *s, const ng_training *self)
{
    const ng_optimizer *optimizer = self->with.optimizer;
    const int64_t position[] = {self->at.epoch, self->at.batch, self->at.step,
                                self->size,     self->in_epoch, optimizer->steps};
    memcpy(s->position, position, sizeof position);
    add_copy(s, "training.position", NG_STORED_I64, NG_SHAPE(POSITIONS), s->position);
    s->rate = optimizer->lr;
    add_copy(s, "training.rate", NG_STORED_F64, NG_SCALAR, &s->rate);
    s->steps = state_calloc(s, optimizer->count, sizeof *s->steps);
    s->waits = state_calloc(s, optimizer->count, sizeof *s->waits);
    for (int i = 0; i < optimizer->count && !s->failed; i++) add_parameter(s, optimizer, i);
    add_copy(s, "optimizer.steps", NG_STORED_I64, NG_SHAPE(optimizer->count), s->steps);
}

static void add_tape(training_state *s, const ng_tape *tape)
{
    memcpy(s->streams, tape->seeded.state, sizeof(ng_rng));
    memcpy(s->streams + 4, tape->rng.state, sizeof(ng_rng));
    add_copy(s, "tape", NG_STORED_U64, NG_SHAPE(2, 4), s->streams);
}

static void add_kept(training_state *s, const ng_kept *kept)
{
    const ng_shape shape = kept->kind == NG_STORED_U64 ? NG_SHAPE(4) : NG_SCALAR;
    if (kept->tensor)
        add_tensor(s, "", kept->name, kept->tensor);
    else
        add_item(
            s, "", kept->name,
            (state_item){.stored = {.kind = kept->kind, .shape = shape, .bytes = kept->memory}});
}

static void add_all(training_state *s, const ng_training *self)
{
    s->settings.function = s->history.function = s->function;
    ng_training_print_settings(self, &s->settings);
    s->failed = s->settings.failed;
    add_module(s, self->with.optimizer->module);
    add_optimizer(s, self);
    if (self->with.tape) add_tape(s, self->with.tape);
    for (int64_t i = 0; i < self->n_kept; i++) add_kept(s, &self->kept[i]);
}

/* ---- Write --------------------------------------------------------------------------------- */

/* The names of older files: PATH.1, PATH.2...; PATH.0 while the file at the path is replaced. */
typedef struct {
    char text[PATH_MAX + 32];
} older_path;
static older_path older_of(const char *path, int64_t number)
{
    older_path name;
    snprintf(name.text, sizeof name.text, "%.*s.%lld", PATH_MAX, path, (long long)number);
    return name;
}

/* Links the file at the path to PATH.0, or copies it if the file system has no links. */
static ng_status keep_present(const char *function, const char *path)
{
    const older_path name = older_of(path, 0);
    unlink(name.text);
    if (linkat(AT_FDCWD, path, AT_FDCWD, name.text, AT_SYMLINK_FOLLOW) == 0) return NG_OK;
    int64_t size;
    char *bytes = ng_file_read(function, path, &size);
    const ng_status status = bytes ? ng_file_write(name.text, bytes, size) : ng_newest_status();
    ng_free(bytes);
    return status;
}

/* Moves each older file to the next number; the last one is overwritten. */
static ng_status move_older(const char *function, const char *path, int64_t keep)
{
    for (int64_t number = keep - 2; number >= 0; number--) {
        const older_path from = older_of(path, number), to = older_of(path, number + 1);
        if (rename(from.text, to.text) != 0 && errno != ENOENT)
            return ng_fail(NG_EIO, "%s: cannot write %s: %s", function, to.text, strerror(errno));
    }
    return NG_OK;
}

/* Writes the new file, and then moves the older ones. */
static ng_status replace_state(const ng_training *self, const training_state *s, ng_stored *arrays)
{
    const ng_stored_text texts[] = {
        {"history", s->history.bytes}, {"normgrad", ng_version()}, {"settings", s->settings.bytes}};
    const int first = self->with.history ? 0 : 1;
    const bool keeps = self->with.keep > 1 && access(self->path, F_OK) == 0;
    ng_status status = keeps ? keep_present(s->function, self->path) : NG_OK;
    if (status != NG_OK) return status;
    status = ng_safetensors_write(s->function, self->path, arrays, (int)s->count, texts + first,
                                  3 - first);
    if (!keeps) return status;
    if (status == NG_OK) return move_older(s->function, self->path, self->with.keep);
    unlink(older_of(self->path, 0).text);
    return status;
}

ng_status ng_training_write(const char *function, ng_training *self)
{
    if (!ng_optimizer_current(function, self->with.optimizer)) return ng_newest_status();
    training_state s = {.function = function};
    add_all(&s, self);
    if (self->with.history) ng_history_print(self->with.history, true, &s.history);
    s.failed = s.failed || s.history.failed;
    ng_stored *arrays = state_calloc(&s, s.count, sizeof *arrays);
    for (int64_t i = 0; arrays && i < s.count; i++) arrays[i] = s.items[i].stored;
    const ng_status status = arrays ? replace_state(self, &s, arrays) : ng_newest_status();
    ng_free(arrays);
    state_free(&s);
    return status;
}

/* ---- Read ---------------------------------------------------------------------------------- */

/* Finds the array of each item; the file may have no others. */
static bool match_items(training_state *s)
{
    for (int64_t i = 0; i < s->count; i++) {
        state_item *item = &s->items[i];
        const ng_stored *own = &item->stored, *found = ng_safetensors_find(s->file, own->name);
        if (!found) return ng_refuse(s->file->origin, NG_EVALUE, "\"%s\" is missing", own->name);
        if (!ng_shape_equal(found->shape, own->shape))
            return ng_refuse(s->file->origin, NG_ESHAPE, "\"%s\" of shape %s, expected %s",
                             own->name, ng_shape_print(found->shape).text,
                             ng_shape_print(own->shape).text);
        if (found->kind != own->kind)
            return ng_refuse(s->file->origin, NG_EDTYPE, "\"%s\" in %s, expected %s", own->name,
                             ng_stored_name(found->kind), ng_stored_name(own->kind));
        item->found = found;
    }
    for (int64_t i = 0; i < s->file->count && s->count < s->file->count; i++) {
        bool used = false;
        for (int64_t k = 0; k < s->count && !used; k++)
            used = s->items[k].found == &s->file->arrays[i];
        if (!used)
            return ng_refuse(s->file->origin, NG_EVALUE, "\"%s\" is nothing that is kept here",
                             s->file->arrays[i].name);
    }
    return true;
}

static void copy_item(const state_item *item)
{
    const int64_t width = ng_stored_width(item->stored.kind);
    if (item->found->size > 0)
        memcpy(item->stored.bytes, item->found->bytes, (size_t)(item->found->size * width));
    if (item->tensor) ng_touch(item->tensor);
}

/* A generator whose state is all zeros would give nothing else. */
static bool generators_run(const training_state *s)
{
    static const uint64_t zeros[4];
    for (int64_t i = 0; i < s->count; i++) {
        const ng_stored *found = s->items[i].found;
        for (int64_t at = 0; found->kind == NG_STORED_U64 && at < found->size; at += 4)
            if (memcmp((const char *)found->bytes + 8 * at, zeros, sizeof zeros) == 0)
                return ng_refuse(s->file->origin, NG_EPARSE, "\"%s\" is no generator's state",
                                 found->name);
    }
    return true;
}

static bool position_accepted(const training_state *s)
{
    for (int i = 0; i < POSITIONS; i++)
        if (s->position[i] < 0 || (i != AT_SIZE && s->position[i] > INT64_MAX / 2))
            return ng_refuse(s->file->origin, NG_EPARSE, "\"training.position\" is no position");
    return true;
}

static void commit_optimizer(const training_state *s, ng_optimizer *optimizer, bool changed)
{
    optimizer->steps = s->position[AT_OPTIMIZER_STEPS];
    if (!changed) optimizer->lr = s->rate;
    for (int i = 0; i < optimizer->count; i++) {
        ng_moved *moved = &optimizer->moved[i];
        ng_tensor *weight = moved->weight;
        moved->steps = s->steps[i];
        moved->grad_epoch = weight->grad_epoch;
        if (s->waits[i])
            ng_tensor_grad_arrived(weight);
        else if (ng_has_grad(weight))
            weight->grad_state = NG_GRAD_USED;
    }
}

/* Nothing fails from here on. */
static void commit_state(const training_state *s, ng_training *self, ng_history *history,
                         bool changed)
{
    for (int64_t i = 0; i < s->count; i++)
        if (!s->items[i].copied) copy_item(&s->items[i]);
    set_modes(s, self->with.optimizer->module);
    commit_optimizer(s, self->with.optimizer, changed);
    if (self->with.tape) {
        memcpy(self->with.tape->seeded.state, s->streams, sizeof(ng_rng));
        memcpy(self->with.tape->rng.state, s->streams + 4, sizeof(ng_rng));
    }
    if (history) ng_history_swap(self->with.history, history);
    self->at = (ng_position){s->position[AT_EPOCH], s->position[AT_BATCH], s->position[AT_STEP]};
    self->size = s->position[AT_SIZE];
    self->in_epoch = self->resumed = s->position[AT_IN_EPOCH];
}

/* The history of the file, by way of a copy, which parsing changes. */
static ng_history *read_history(training_state *s)
{
    const char *text = ng_safetensors_text(s->file, "history");
    if (!text) return ng_refuse(s->file->origin, NG_EVALUE, "\"history\" is missing"), NULL;
    ng_text_add(&s->history, text, (int64_t)strlen(text));
    if (s->history.failed) return NULL;
    return ng_history_parse(s->function, s->file->origin.path, true, s->history.bytes,
                            s->history.count);
}

static bool read_state(training_state *s, ng_training *self, bool changed)
{
    const char *settings = ng_safetensors_text(s->file, "settings");
    if (!settings)
        return ng_refuse(s->file->origin, NG_EVALUE,
                         "no training's file, or one of version 0.2 and older");
    add_all(s, self);
    if (s->failed ||
        !ng_training_same_settings(s->file->origin, settings, s->settings.bytes, changed))
        return false;
    if (!self->with.history && ng_safetensors_text(s->file, "history"))
        return ng_refuse(s->file->origin, NG_EVALUE, "\"history\" is nothing that is kept here");
    if (!match_items(s)) return false;
    for (int64_t i = 0; i < s->count; i++)
        if (s->items[i].copied) copy_item(&s->items[i]);
    if (!position_accepted(s) || !generators_run(s)) return false;
    ng_history *history = self->with.history ? read_history(s) : NULL;
    if (self->with.history && !history) return false;
    commit_state(s, self, history, changed);
    ng_history_free(history);
    return true;
}

bool ng_training_read(const char *function, ng_training *self, bool changed)
{
    if (!ng_optimizer_current(function, self->with.optimizer)) return false;
    ng_safetensors file;
    training_state s = {.function = function, .file = &file};
    const bool resumed =
        ng_safetensors_open(&file, function, self->path, true) && read_state(&s, self, changed);
    state_free(&s);
    ng_safetensors_close(&file);
    return resumed;
}
