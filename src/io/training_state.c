/* The file of a training has everything that later steps depend on. Its arrays are
 *
 *     module.NAME        parameters and buffers
 *     optimizer.K.NAME   the K-th state array of a parameter
 *     gradient.NAME      a gradient that waits for a step
 *     kept.NAME          a tensor that is kept for the user
 *
 * and its texts normgrad (the version), settings, history, and state, which has the numbers:
 *
 *     {"position":[epoch,batch,step,batch size,in an epoch,optimizer's steps],
 *      "rate":[the optimizer's base rate], "modes":[of each module: 1 in training, 2 frozen],
 *      "steps":[of each parameter], "waits":[of each parameter: its gradient for a step],
 *      "tape":[the stream of dropout as seeded, and now], "kept.NAME":[a number, count, generator]}
 *
 * Floats are as printf writes them, also inf and nan. One list of numbers and one of arrays are
 * both written and read. */
#include "io/history.h"
#include "io/json.h"
#include "io/training.h"
#include "nn/module.h"
#include "optim/optimizer.h"
#include "tape/tape.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include "core/windows.h"
#else
#include <unistd.h>
#endif

enum { AT_EPOCH, AT_BATCH, AT_STEP, AT_SIZE, AT_IN_EPOCH, AT_OPTIMIZER_STEPS, POSITIONS };
enum { MODE_TRAINING = 1, MODE_FROZEN = 2 };

typedef struct {
    const char *function;
    ng_stored_list numbers; /* the copies below */
    ng_stored_list arrays;  /* the program's own */
    bool failed;

    int64_t position[POSITIONS];
    double rate;
    ng_rng streams[2];
    int64_t *modes, *steps, *waits;
    ng_rng *kept; /* memory of a kept number, count or generator each */
    ng_text settings, history, text;
} training_state;

static void add_to(training_state *s, ng_stored_list *list, const char *prefix, const char *name,
                   ng_stored array)
{
    s->failed = s->failed || !ng_stored_add(s->function, list, prefix, name, array);
}

static void add_numbers(training_state *s, const char *name, ng_stored_kind kind, int64_t size,
                        void *copy)
{
    add_to(s, &s->numbers, "", name, (ng_stored){.kind = kind, .size = size, .bytes = copy});
}

static void *state_calloc(training_state *s, int64_t count, size_t size)
{
    void *memory = s->failed ? NULL : ng_calloc(s->function, count, size);
    s->failed = !memory;
    return memory;
}

static void state_free(training_state *s)
{
    ng_stored_free(&s->numbers);
    ng_stored_free(&s->arrays);
    ng_free(s->modes);
    ng_free(s->kept);
    ng_free(s->settings.bytes);
    ng_free(s->history.bytes);
    ng_free(s->text.bytes);
}

/* ---- Everything that a training keeps ------------------------------------------------------ */

static void add_counts(training_state *s, const ng_optimizer *optimizer)
{
    const ng_module *layer;
    const int count = optimizer->count;
    int layers = 0;
    while (ng_module_layer(optimizer->module, layers)) layers++;
    s->modes = state_calloc(s, layers + 2 * count, sizeof *s->modes);
    if (s->failed) return;
    s->steps = s->modes + layers;
    s->waits = s->steps + count;
    for (int i = 0; (layer = ng_module_layer(optimizer->module, i)); i++)
        s->modes[i] = (layer->training ? MODE_TRAINING : 0) | (layer->frozen ? MODE_FROZEN : 0);
    for (int i = 0; i < count; i++) {
        s->steps[i] = optimizer->moved[i].steps;
        s->waits[i] = ng_has_new_gradient(&optimizer->moved[i]);
    }
    add_numbers(s, "modes", NG_STORED_I64, layers, s->modes);
    add_numbers(s, "steps", NG_STORED_I64, count, s->steps);
    add_numbers(s, "waits", NG_STORED_I64, count, s->waits);
}

/* Prints the settings, too. */
static void add_all_numbers(training_state *s, const ng_training *self)
{
    const ng_optimizer *optimizer = self->with.optimizer;
    const int64_t position[] = {self->at.epoch, self->at.batch, self->at.step,
                                self->size,     self->in_epoch, optimizer->steps};
    s->settings.function = s->function;
    ng_training_print_settings(self, &s->settings);
    s->failed = s->settings.failed;
    memcpy(s->position, position, sizeof position);
    add_numbers(s, "position", NG_STORED_I64, POSITIONS, s->position);
    s->rate = optimizer->lr;
    add_numbers(s, "rate", NG_STORED_F64, 1, &s->rate);
    add_counts(s, optimizer);
    if (self->with.tape) {
        s->streams[0] = self->with.tape->seeded, s->streams[1] = self->with.tape->rng;
        add_numbers(s, "tape", NG_STORED_I64, 8, s->streams);
    }
    s->kept = state_calloc(s, self->kept.count, sizeof *s->kept);
    for (int64_t i = 0; i < self->kept.count && !s->failed; i++) {
        const ng_stored *kept = &self->kept.arrays[i];
        if (kept->tensor) continue;
        memcpy(&s->kept[i], kept->bytes, 8 * (size_t)kept->size);
        add_numbers(s, kept->name, kept->kind, kept->size, &s->kept[i]);
    }
}

static void add_parameter(training_state *s, const ng_optimizer *optimizer, int index)
{
    const ng_moved *moved = &optimizer->moved[index];
    for (int k = 0; k < optimizer->states; k++) {
        char prefix[32];
        ng_stored array = ng_stored_of(moved->weight);
        array.bytes = moved->state[k];
        array.tensor = NULL;
        snprintf(prefix, sizeof prefix, "optimizer.%d.", k);
        add_to(s, &s->arrays, prefix, moved->name, array);
    }
    if (!s->waits[index]) return;
    const ng_tensor *gradient = ng_tensor_grad_slot(moved->weight);
    s->failed = s->failed || !gradient;
    if (gradient) add_to(s, &s->arrays, "gradient.", moved->name, ng_stored_of(gradient));
}

/* Call add_all_numbers first, and when reading read them. */
static void add_all_arrays(training_state *s, const ng_training *self)
{
    const ng_optimizer *optimizer = self->with.optimizer;
    s->failed =
        s->failed || !ng_stored_add_module(s->function, &s->arrays, "module.", optimizer->module);
    for (int i = 0; i < optimizer->count && !s->failed; i++) add_parameter(s, optimizer, i);
    for (int64_t i = 0; i < self->kept.count; i++) {
        const ng_stored *kept = &self->kept.arrays[i];
        if (kept->tensor) add_to(s, &s->arrays, "", kept->name, ng_stored_of(kept->tensor));
    }
}

/* ---- Write --------------------------------------------------------------------------------- */

static void print_numbers(ng_text *text, const ng_stored_list *numbers)
{
    const locale_t locale = ng_c_locale_begin();
    for (int64_t i = 0; i < numbers->count; i++) {
        ng_text_add(text, i ? "," : "{", 1);
        ng_json_print_string(text, numbers->arrays[i].name);
        ng_text_add(text, ":[", 2);
        for (int64_t k = 0; k < numbers->arrays[i].size; k++) {
            if (k > 0) ng_text_add(text, ",", 1);
            if (numbers->arrays[i].kind == NG_STORED_F64)
                ng_text_print(text, "%.17g", ((const double *)numbers->arrays[i].bytes)[k]);
            else
                ng_text_print(text, "%" PRId64, ((const int64_t *)numbers->arrays[i].bytes)[k]);
        }
        ng_text_add(text, "]", 1);
    }
    ng_text_add(text, "}", 1);
    ng_c_locale_end(locale);
}

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
    const ng_stored_text texts[] = {{"history", s->history.bytes},
                                    {"normgrad", ng_version()},
                                    {"settings", s->settings.bytes},
                                    {"state", s->text.bytes}};
    const int first = self->with.history ? 0 : 1;
    const bool keeps = self->with.keep > 1 && access(self->path, F_OK) == 0;
    const older_path present = older_of(self->path, 0);
    ng_status status = keeps ? copy_file(s->function, self->path, present.text) : NG_OK;
    if (status != NG_OK) return status;
    status = ng_safetensors_write(s->function, self->path, &s->arrays, texts + first, 4 - first);
    if (!keeps) return status;
    if (status == NG_OK) return move_older(s->function, self->path, self->with.keep);
    unlink(present.text);
    return status;
}

ng_status ng_training_write(const char *function, ng_training *self)
{
    if (!ng_optimizer_current(function, self->with.optimizer)) return ng_newest_status();
    training_state s = {function, .text.function = function, .history.function = function};
    add_all_numbers(&s, self);
    add_all_arrays(&s, self);
    print_numbers(&s.text, &s.numbers);
    if (self->with.history) ng_history_print(self->with.history, true, &s.history);
    const bool made = !s.failed && !s.history.failed && !s.text.failed;
    const ng_status status = made ? replace_state(self, &s) : ng_newest_status();
    state_free(&s);
    return status;
}

/* ---- Read ---------------------------------------------------------------------------------- */

static bool parse_number(ng_json *json, const ng_stored *number, int64_t i)
{
    const char *first = json->at;
    if (number->kind == NG_STORED_F64)
        ((double *)number->bytes)[i] = strtod(first, &json->at);
    else
        ((int64_t *)number->bytes)[i] = strtoll(first, &json->at, 10);
    return json->at > first || ng_json_expected(json, "a number");
}

static bool parse_numbers(ng_json *json, const char *name, void *data)
{
    const training_state *s = data;
    ng_stored *own = ng_stored_find(&s->numbers, name);
    if (!own) return ng_refuse(json->origin, NG_EVALUE, "has \"%s\", which is not used here", name);
    own->pair = own;
    if (!ng_json_need(json, '[')) return false;
    int64_t i = 0;
    for (; i < own->size && (i == 0 || ng_json_take(json, ',')); i++)
        if (!parse_number(json, own, i)) return false;
    return (i == own->size && ng_json_take(json, ']')) ||
           ng_refuse(json->origin, NG_ESHAPE, "\"%s\" has no %lld numbers", name,
                     (long long)own->size);
}

/* Reads the numbers into the copies. */
static bool read_numbers(training_state *s, ng_origin origin, char *text)
{
    ng_json json = {origin, text, text, text + strlen(text)};
    const locale_t locale = ng_c_locale_begin();
    const bool parsed = ng_json_object(&json, parse_numbers, s) && ng_json_end(&json);
    ng_c_locale_end(locale);
    if (!parsed) return false;
    for (int64_t i = 0; i < s->numbers.count; i++)
        if (!s->numbers.arrays[i].pair)
            return ng_refuse(origin, NG_EVALUE, "has no \"%s\"", s->numbers.arrays[i].name);
    for (int i = 0; i < POSITIONS; i++)
        if (s->position[i] < 0 || (i != AT_SIZE && s->position[i] > INT64_MAX / 2))
            return ng_refuse(origin, NG_EPARSE, "\"position\" is no position");
    return true;
}

/* Pairs the arrays with the file's, which must have the same dtypes. */
static bool match_arrays(training_state *s, ng_safetensors *file)
{
    if (!ng_safetensors_match(file, &s->arrays, false)) return false;
    for (int64_t i = 0; i < s->arrays.count; i++) {
        const ng_stored *own = &s->arrays.arrays[i];
        if (own->pair->kind != own->kind)
            return ng_refuse(file->origin, NG_EDTYPE, "has \"%s\" in %s, expected %s", own->name,
                             ng_stored_name(own->pair->kind), ng_stored_name(own->kind));
    }
    return true;
}

static void commit_arrays(const training_state *s, const ng_stored_list *kept)
{
    for (int64_t i = 0; i < s->arrays.count; i++) {
        const ng_stored *own = &s->arrays.arrays[i];
        const size_t bytes = (size_t)(own->size * ng_stored_width(own->kind));
        if (bytes > 0) memcpy(own->bytes, own->pair->bytes, bytes);
        if (own->tensor) ng_touch(own->tensor);
    }
    for (int64_t i = 0; i < kept->count; i++)
        if (!kept->arrays[i].tensor)
            memcpy(kept->arrays[i].bytes, &s->kept[i], 8 * (size_t)kept->arrays[i].size);
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
    commit_arrays(s, &self->kept);
    set_modes(s, self->with.optimizer->module);
    commit_optimizer(s, self->with.optimizer, changed);
    if (self->with.tape)
        self->with.tape->seeded = s->streams[0], self->with.tape->rng = s->streams[1];
    if (history) ng_history_swap_blocks(self->with.history, history);
    self->at = (ng_position){s->position[AT_EPOCH], s->position[AT_BATCH], s->position[AT_STEP]};
    self->size = s->position[AT_SIZE];
    self->in_epoch = self->resumed = s->position[AT_IN_EPOCH];
}

/* Reading the texts changes them, which the file in memory may. */
static bool read_state(training_state *s, ng_safetensors *file, ng_training *self, bool changed)
{
    const ng_origin origin = file->origin;
    const char *settings = ng_safetensors_text(file, "settings");
    char *text = (char *)ng_safetensors_text(file, "state");
    char *history_text = (char *)ng_safetensors_text(file, "history");
    if (!settings || !text)
        return ng_refuse(origin, NG_EVALUE, "no training's file, or one of version 0.4 and older");
    add_all_numbers(s, self);
    if (s->failed || !ng_training_same_settings(origin, settings, s->settings.bytes, changed))
        return false;
    if (!history_text != !self->with.history)
        return ng_refuse(origin, NG_EVALUE, "has %s history, and the training has %s",
                         history_text ? "a" : "no", history_text ? "none" : "one");
    if (!read_numbers(s, origin, text)) return false;
    add_all_arrays(s, self);
    if (s->failed || !match_arrays(s, file)) return false;
    ng_history *history = NULL;
    if (history_text)
        history = ng_history_parse(s->function, origin.path, true, history_text,
                                   (int64_t)strlen(history_text));
    if (!history != !history_text) return false;
    commit_state(s, self, history, changed);
    ng_history_free(history);
    return true;
}

bool ng_training_read(const char *function, ng_training *self, bool changed)
{
    if (!ng_optimizer_current(function, self->with.optimizer)) return false;
    ng_safetensors file;
    training_state s = {function, .text.function = function, .history.function = function};
    const bool resumed = ng_safetensors_open(&file, function, self->path, true) &&
                         read_state(&s, &file, self, changed);
    state_free(&s);
    ng_safetensors_close(&file);
    return resumed;
}
