/* The file of a training has everything that later steps depend on:
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
 * and the texts settings, history and normgrad (the version). One list of arrays in memory is both
 * written and read. */
#include "io/history.h"
#include "io/training.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "tape/tape.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { AT_EPOCH, AT_BATCH, AT_STEP, AT_SIZE, AT_IN_EPOCH, AT_OPTIMIZER_STEPS, POSITIONS };
enum { MODE_TRAINING = 1, MODE_FROZEN = 2 };

typedef struct {
    const char *function;
    ng_safetensors *file; /* that is read, or NULL */
    ng_stored_list list;
    int64_t copies; /* the first so many arrays are the copies below */
    bool failed;

    /* Copies of what has another form in memory than in the file. */
    int64_t position[POSITIONS];
    double rate;
    uint64_t streams[8];
    int64_t *steps, *modes;
    bool *waits; /* whether a parameter's gradient waits for a step */
    ng_text settings, history;
} training_state;

static void add_array(training_state *s, const char *prefix, const char *name, ng_stored array)
{
    s->failed = s->failed || !ng_stored_add(s->function, &s->list, prefix, name, array);
}

static void add_copy(training_state *s, const char *name, ng_stored_kind kind, ng_shape shape,
                     void *memory)
{
    const int64_t size = ng_shape_span(shape, 0, shape.rank);
    add_array(s, "", name,
              (ng_stored){.kind = kind, .shape = shape, .size = size, .bytes = memory});
    s->copies++;
}

static void *state_calloc(training_state *s, int64_t count, size_t size)
{
    void *memory = s->failed ? NULL : ng_calloc(s->function, count, size);
    s->failed = !memory;
    return memory;
}

static void state_free(training_state *s)
{
    ng_stored_free(&s->list);
    ng_free(s->steps);
    ng_free(s->modes);
    ng_free(s->waits);
    ng_free(s->settings.bytes);
    ng_free(s->history.bytes);
}

/* ---- Everything that a training keeps ------------------------------------------------------ */

static void add_modes(training_state *s, const ng_module *module)
{
    const ng_module *layer;
    int count = 0;
    while (ng_module_layer(module, count)) count++;
    s->modes = state_calloc(s, count, sizeof *s->modes);
    for (int i = 0; s->modes && (layer = ng_module_layer(module, i)); i++)
        s->modes[i] = (layer->training ? MODE_TRAINING : 0) | (layer->frozen ? MODE_FROZEN : 0);
    add_copy(s, "training.modes", NG_STORED_I64, NG_SHAPE(count), s->modes);
}

static void add_copies(training_state *s, const ng_training *self)
{
    const ng_optimizer *optimizer = self->with.optimizer;
    const int64_t position[] = {self->at.epoch, self->at.batch, self->at.step,
                                self->size,     self->in_epoch, optimizer->steps};
    memcpy(s->position, position, sizeof position);
    add_copy(s, "training.position", NG_STORED_I64, NG_SHAPE(POSITIONS), s->position);
    s->rate = optimizer->lr;
    add_copy(s, "training.rate", NG_STORED_F64, NG_SCALAR, &s->rate);
    add_modes(s, optimizer->module);
    s->steps = state_calloc(s, optimizer->count, sizeof *s->steps);
    for (int i = 0; s->steps && i < optimizer->count; i++) s->steps[i] = optimizer->moved[i].steps;
    add_copy(s, "optimizer.steps", NG_STORED_I64, NG_SHAPE(optimizer->count), s->steps);
    if (!self->with.tape) return;
    memcpy(s->streams, self->with.tape->seeded.state, sizeof(ng_rng));
    memcpy(s->streams + 4, self->with.tape->rng.state, sizeof(ng_rng));
    add_copy(s, "tape", NG_STORED_U64, NG_SHAPE(2, 4), s->streams);
}

/* Whether a parameter's gradient waits for a step: in the file if one is read, else here. */
static bool gradient_waits(training_state *s, const ng_moved *moved)
{
    if (!s->file) return ng_has_new_gradient(moved);
    ng_text name = {.function = s->function};
    ng_text_print(&name, "gradient.%s", moved->name);
    s->failed = s->failed || name.failed;
    const bool waits = !name.failed && ng_stored_find(&s->file->list, name.bytes);
    ng_free(name.bytes);
    return waits;
}

static void add_parameter(training_state *s, const ng_optimizer *optimizer, int index)
{
    const ng_moved *moved = &optimizer->moved[index];
    s->waits[index] = gradient_waits(s, moved);
    for (int k = 0; k < optimizer->states; k++) {
        char prefix[32];
        ng_stored array = ng_stored_of(moved->weight);
        array.bytes = moved->state[k];
        array.tensor = NULL;
        snprintf(prefix, sizeof prefix, "optimizer.%d.", k);
        add_array(s, prefix, moved->name, array);
    }
    if (!s->waits[index]) return;
    const ng_tensor *gradient = ng_tensor_grad_slot(moved->weight);
    s->failed = s->failed || !gradient;
    if (gradient) add_array(s, "gradient.", moved->name, ng_stored_of(gradient));
}

static void add_all(training_state *s, const ng_training *self)
{
    const ng_optimizer *optimizer = self->with.optimizer;
    s->settings.function = s->history.function = s->function;
    ng_training_print_settings(self, &s->settings);
    s->failed = s->settings.failed;
    add_copies(s, self);
    s->failed =
        s->failed || !ng_stored_add_module(s->function, &s->list, "module.", optimizer->module);
    s->waits = state_calloc(s, optimizer->count, sizeof *s->waits);
    for (int i = 0; i < optimizer->count && !s->failed; i++) add_parameter(s, optimizer, i);
    for (int64_t i = 0; i < self->kept.count; i++) {
        const ng_stored *kept = &self->kept.arrays[i];
        add_array(s, "", kept->name, kept->tensor ? ng_stored_of(kept->tensor) : *kept);
    }
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

static ng_status copy_file(const char *function, const char *path, const char *copy)
{
    int64_t size;
    char *bytes = ng_file_read(function, path, &size);
    const ng_status status = bytes ? ng_file_write(copy, bytes, size) : ng_newest_status();
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
static ng_status replace_state(const ng_training *self, training_state *s)
{
    const ng_stored_text texts[] = {
        {"history", s->history.bytes}, {"normgrad", ng_version()}, {"settings", s->settings.bytes}};
    const int first = self->with.history ? 0 : 1;
    const bool keeps = self->with.keep > 1 && access(self->path, F_OK) == 0;
    const older_path present = older_of(self->path, 0);
    ng_status status = keeps ? copy_file(s->function, self->path, present.text) : NG_OK;
    if (status != NG_OK) return status;
    status = ng_safetensors_write(s->function, self->path, &s->list, texts + first, 3 - first);
    if (!keeps) return status;
    if (status == NG_OK) return move_older(s->function, self->path, self->with.keep);
    unlink(present.text);
    return status;
}

ng_status ng_training_write(const char *function, ng_training *self)
{
    if (!ng_optimizer_current(function, self->with.optimizer)) return ng_newest_status();
    training_state s = {.function = function};
    add_all(&s, self);
    if (self->with.history) ng_history_print(self->with.history, true, &s.history);
    const bool made = !s.failed && !s.history.failed;
    const ng_status status = made ? replace_state(self, &s) : ng_newest_status();
    state_free(&s);
    return status;
}

/* ---- Read ---------------------------------------------------------------------------------- */

/* Pairs the arrays with the file's, which must have the same dtypes. */
static bool match_state(training_state *s)
{
    if (!ng_safetensors_match(s->file, &s->list, false)) return false;
    for (int64_t i = 0; i < s->list.count; i++) {
        const ng_stored *own = &s->list.arrays[i];
        if (own->pair->kind != own->kind)
            return ng_refuse(s->file->origin, NG_EDTYPE, "has \"%s\" in %s, expected %s", own->name,
                             ng_stored_name(own->pair->kind), ng_stored_name(own->kind));
    }
    return true;
}

/* Reads the arrays first..end - 1. */
static void read_arrays(const training_state *s, int64_t first, int64_t end)
{
    for (int64_t i = first; i < end; i++) {
        const ng_stored *own = &s->list.arrays[i];
        const size_t bytes = (size_t)(own->size * ng_stored_width(own->kind));
        if (bytes > 0) memcpy(own->bytes, own->pair->bytes, bytes);
        if (own->tensor) ng_touch(own->tensor);
    }
}

static bool position_accepted(const training_state *s)
{
    for (int i = 0; i < POSITIONS; i++)
        if (s->position[i] < 0 || (i != AT_SIZE && s->position[i] > INT64_MAX / 2))
            return ng_refuse(s->file->origin, NG_EPARSE, "\"training.position\" is no position");
    return true;
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

static void commit_optimizer(const training_state *s, ng_optimizer *optimizer, bool changed)
{
    optimizer->steps = s->position[AT_OPTIMIZER_STEPS];
    if (!changed) optimizer->lr = s->rate;
    for (int i = 0; i < optimizer->count; i++) {
        ng_moved *moved = &optimizer->moved[i];
        ng_tensor *weight = moved->weight;
        moved->steps = s->steps[i];
        moved->arrived = weight->leaf->used = weight->leaf->arrived;
        if (s->waits[i]) ng_tensor_grad_arrived(weight);
    }
}

/* Cannot fail. */
static void commit_state(const training_state *s, ng_training *self, ng_history *history,
                         bool changed)
{
    read_arrays(s, s->copies, s->list.count);
    set_modes(s, self->with.optimizer->module);
    commit_optimizer(s, self->with.optimizer, changed);
    if (self->with.tape) {
        memcpy(self->with.tape->seeded.state, s->streams, sizeof(ng_rng));
        memcpy(self->with.tape->rng.state, s->streams + 4, sizeof(ng_rng));
    }
    if (history) ng_history_swap_blocks(self->with.history, history);
    self->at = (ng_position){s->position[AT_EPOCH], s->position[AT_BATCH], s->position[AT_STEP]};
    self->size = s->position[AT_SIZE];
    self->in_epoch = self->resumed = s->position[AT_IN_EPOCH];
}

/* Parses a copy of the file's history, because parsing changes the text. */
static ng_history *read_history(training_state *s, const char *text)
{
    ng_text_add(&s->history, text, (int64_t)strlen(text));
    if (s->history.failed) return NULL;
    return ng_history_parse(s->function, s->file->origin.path, true, s->history.bytes,
                            s->history.count);
}

static bool read_state(training_state *s, ng_training *self, bool changed)
{
    const char *settings = ng_safetensors_text(s->file, "settings");
    const char *text = ng_safetensors_text(s->file, "history");
    if (!settings)
        return ng_refuse(s->file->origin, NG_EVALUE,
                         "no training's file, or one of version 0.2 and older");
    add_all(s, self);
    if (s->failed ||
        !ng_training_same_settings(s->file->origin, settings, s->settings.bytes, changed))
        return false;
    if (!text != !self->with.history)
        return ng_refuse(s->file->origin, NG_EVALUE, "has %s history, and the training has %s",
                         text ? "a" : "no", text ? "none" : "one");
    if (!match_state(s)) return false;
    read_arrays(s, 0, s->copies);
    if (!position_accepted(s)) return false;
    ng_history *history = text ? read_history(s, text) : NULL;
    if (text && !history) return false;
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
