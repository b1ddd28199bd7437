/* The file of a training: everything that the steps to come depend on, by name.
 *
 *     module.NAME                  parameters and buffers
 *     optimizer.K.NAME             the K-th state array of a parameter
 *     gradient.NAME                a gradient that waits for a step
 *     optimizer.steps              taken by each parameter (I64)
 *     training.position            epoch, batch, step, batch size, in an epoch, optimizer's steps
 *     training.settings            the optimizer's, and its rate (F64)
 *     training.program             layers, groups and data, in words (U8)
 *     training.modes               of each module: 1 in training, 2 frozen (I64)
 *     tape, data, history          stream of dropout (U64), order of samples (I64), text (U8)
 *     number. count. rng. tensor.  what is kept for the user
 *
 * One list of slots, each a name and the memory behind it, is both written and read. */
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

enum { EPOCH, BATCH, STEP, SIZE, IN_EPOCH, OPTIMIZER_STEPS, POSITIONS };

/* ---- Slots --------------------------------------------------------------------------------- */

typedef struct {
    ng_stored stored;       /* name, kind, shape; the memory to be written */
    void *memory;           /* the same, to be read into */
    bool aside;             /* copied before all is known to fit */
    ng_tensor *tensor;      /* to be touched, or NULL */
    const ng_stored *found; /* in the file */
} slot;

/* What does not lie in memory as it lies in the file. */
typedef struct {
    int64_t position[POSITIONS];
    double settings[NG_SETTINGS + 1]; /* the last is the rate now */
    int n_settings;
    uint64_t streams[8];
    int64_t *steps, *modes, *order;
    int64_t samples; /* in the order: of the data set, or of the file's */
    bool *waits;     /* whether a parameter's gradient waits for a step */
    ng_text history;
    ng_text program;     /* this one */
    char *saved_program; /* the file's, while it is read */
} aside;

typedef struct {
    const char *function;
    const ng_safetensors *file; /* that is read, or NULL */
    slot *list;
    int count, room;
    bool failed;
    aside aside;
} slots;

static void add_slot(slots *s, const char *prefix, const char *name, slot added)
{
    if (s->failed) return;
    s->failed = true;
    if (s->count == s->room) {
        const int room = 2 * s->room + 32;
        slot *grown = ng_grow(s->function, s->list, s->count, room, sizeof *grown);
        if (!grown) return;
        s->list = grown;
        s->room = room;
    }
    ng_text text = {.function = s->function};
    ng_text_print(&text, "%s%s", prefix, name);
    if (text.failed) return;
    added.stored.name = text.bytes;
    added.stored.bytes = added.memory;
    s->list[s->count++] = added;
    s->failed = false;
}

static void add_array(slots *s, const char *name, ng_stored_kind kind, ng_shape shape, void *memory)
{
    const slot added = {
        .stored = {.kind = kind, .shape = shape, .size = ng_shape_span(shape, 0, shape.rank)},
        .memory = memory,
        .aside = true};
    add_slot(s, "", name, added);
}

static void add_tensor(slots *s, const char *prefix, const char *name, ng_tensor *x)
{
    const slot added = {.stored = ng_stored_of("", x), .memory = x->data, .tensor = x};
    add_slot(s, prefix, name, added);
}

/* Memory of `size` numbers for an array that is put together. */
static void *aside_new(slots *s, int64_t size)
{
    void *memory = s->failed ? NULL : ng_calloc(s->function, size, sizeof(int64_t));
    s->failed = !memory;
    return memory;
}

static void slots_free(slots *s)
{
    for (int i = 0; i < s->count; i++) ng_free((void *)s->list[i].stored.name);
    ng_free(s->list);
    ng_free(s->aside.steps);
    ng_free(s->aside.modes);
    ng_free(s->aside.order);
    ng_free(s->aside.waits);
    ng_free(s->aside.history.bytes);
    ng_free(s->aside.program.bytes);
    ng_free(s->aside.saved_program);
}

/* ---- Everything that a training keeps ------------------------------------------------------ */

enum { IN_TRAINING = 1, FROZEN = 2 };

static int64_t count_modules(const ng_module *module)
{
    int64_t count = 1;
    for (int i = 0; i < module->registry->count; i++)
        if (module->registry->entries[i].child)
            count += count_modules(module->registry->entries[i].child);
    return count;
}

/* Depth first; the next free place. */
static int64_t *get_modes(const ng_module *module, int64_t *modes)
{
    *modes++ = (module->training ? IN_TRAINING : 0) | (module->frozen ? FROZEN : 0);
    for (int i = 0; i < module->registry->count; i++)
        if (module->registry->entries[i].child)
            modes = get_modes(module->registry->entries[i].child, modes);
    return modes;
}

static const int64_t *set_modes(ng_module *module, const int64_t *modes)
{
    module->training = *modes & IN_TRAINING;
    module->frozen = *modes++ & FROZEN;
    for (int i = 0; i < module->registry->count; i++) {
        const ng_entry *entry = &module->registry->entries[i];
        if (entry->kind == NG_ENTRY_PARAMETER) entry->tensor->requires_grad = !module->frozen;
        if (entry->child) modes = set_modes(entry->child, modes);
    }
    return modes;
}

static void add_module(slots *s, ng_module *module)
{
    static const ng_entry_kind kinds[] = {NG_ENTRY_PARAMETER, NG_ENTRY_BUFFER};
    ng_named_tensor tensor;
    for (int k = 0; k < 2; k++)
        for (int i = 0; ng_module_tensor(module, kinds[k], i, &tensor); i++)
            add_tensor(s, "module.", tensor.name, tensor.tensor);
    const int64_t count = count_modules(module);
    s->aside.modes = aside_new(s, count);
    if (s->failed) return;
    get_modes(module, s->aside.modes);
    add_array(s, "training.modes", NG_STORED_I64, NG_SHAPE(count), s->aside.modes);
}

/* Whether a parameter's gradient waits: here, or in the file. */
static bool gradient_waits(slots *s, const ng_moved *moved)
{
    if (!s->file) return ng_is_reached(moved);
    ng_text name = {.function = s->function};
    ng_text_print(&name, "gradient.%s", moved->name);
    const bool waits = !name.failed && ng_safetensors_find(s->file, name.bytes);
    s->failed = s->failed || name.failed;
    ng_free(name.bytes);
    return waits;
}

static void add_moved(slots *s, const ng_optimizer *optimizer, const ng_moved *moved, bool waits)
{
    for (int k = 0; k < optimizer->states; k++) {
        char prefix[32];
        slot added = {.stored = ng_stored_of("", moved->weight), .memory = moved->state[k]};
        snprintf(prefix, sizeof prefix, "optimizer.%d.", k);
        add_slot(s, prefix, moved->name, added);
    }
    if (!waits) return;
    ng_tensor *gradient = ng_tensor_grad_slot(moved->weight);
    if (gradient)
        add_tensor(s, "gradient.", moved->name, gradient);
    else
        s->failed = true;
}

static void add_optimizer(slots *s, const ng_training *self, ng_optimizer *optimizer)
{
    aside *a = &s->aside;
    ng_setting settings[NG_SETTINGS];
    a->n_settings = ng_optimizer_settings(optimizer, settings);
    for (int i = 0; i < a->n_settings; i++) a->settings[i] = settings[i].value;
    a->settings[a->n_settings] = optimizer->lr;
    add_array(s, "training.settings", NG_STORED_F64, NG_SHAPE(a->n_settings + 1), a->settings);

    const int64_t position[] = {self->at.epoch, self->at.batch, self->at.step,
                                self->size,     self->in_epoch, optimizer->steps};
    memcpy(a->position, position, sizeof position);
    add_array(s, "training.position", NG_STORED_I64, NG_SHAPE(POSITIONS), a->position);

    a->steps = aside_new(s, optimizer->count);
    a->waits = aside_new(s, optimizer->count);
    for (int i = 0; i < optimizer->count && !s->failed; i++) {
        a->steps[i] = optimizer->moved[i].steps;
        a->waits[i] = gradient_waits(s, &optimizer->moved[i]);
        add_moved(s, optimizer, &optimizer->moved[i], a->waits[i]);
    }
    add_array(s, "optimizer.steps", NG_STORED_I64, NG_SHAPE(optimizer->count), a->steps);
}

/* An array of the file, where it is there in the form that is wanted. */
static const ng_stored *find_like(const slots *s, const char *name, ng_stored_kind kind)
{
    const ng_stored *found = ng_safetensors_find(s->file, name);
    return found && found->kind == kind && found->shape.rank == 1 ? found : NULL;
}

/* The order of the samples as it is, or with room for the file's, which may be of another number of
 * them. */
static void add_order(slots *s, ng_dataset *data)
{
    aside *a = &s->aside;
    const ng_stored *found = s->file ? find_like(s, "data", NG_STORED_I64) : NULL;
    a->samples = found ? found->size : ng_dataset_count(data);
    a->order = aside_new(s, a->samples);
    if (s->failed) return;
    if (!found) memcpy(a->order, ng_dataset_order(data), (size_t)a->samples * sizeof(int64_t));
    add_array(s, "data", NG_STORED_I64, NG_SHAPE(a->samples), a->order);
}

static void add_streams(slots *s, const ng_training *self)
{
    aside *a = &s->aside;
    if (self->with.tape) {
        memcpy(a->streams, self->with.tape->seeded.state, sizeof(ng_rng));
        memcpy(a->streams + 4, self->with.tape->rng.state, sizeof(ng_rng));
        add_array(s, "tape", NG_STORED_U64, NG_SHAPE(2, 4), a->streams);
    }
    if (self->with.data) add_order(s, self->with.data);
}

/* Of the history as it is, or with room for the file's. */
static void add_history(slots *s, const ng_training *self)
{
    ng_text *text = &s->aside.history;
    text->function = s->function;
    const ng_stored *found = s->file ? ng_safetensors_find(s->file, "history") : NULL;
    if (!self->with.history || s->failed) return;
    if (!found)
        ng_history_print(self->with.history, true, text);
    else if ((text->bytes = ng_calloc(s->function, found->size + 1, 1)))
        text->count = found->size;
    s->failed = text->failed || !text->bytes;
    add_array(s, "history", NG_STORED_U8, NG_SHAPE(text->count), text->bytes);
}

/* What this program is, or with room for what the file says of its own. */
static void add_program(slots *s, const ng_training *self)
{
    aside *a = &s->aside;
    if (s->failed) return;
    a->program.function = s->function;
    ng_training_print_program(self, &a->program);
    const ng_stored *found = s->file ? ng_safetensors_find(s->file, "training.program") : NULL;
    const int64_t size = found ? found->size : a->program.count;
    if (found) a->saved_program = ng_calloc(s->function, size + 1, 1);
    s->failed = a->program.failed || (found && !a->saved_program);
    add_array(s, "training.program", NG_STORED_U8, NG_SHAPE(size),
              found ? a->saved_program : a->program.bytes);
}

static void add_all(slots *s, ng_training *self)
{
    add_program(s, self);
    add_module(s, self->with.optimizer->module);
    add_optimizer(s, self, self->with.optimizer);
    add_streams(s, self);
    add_history(s, self);
    for (int64_t i = 0; i < self->n_kept; i++) {
        const ng_kept *kept = &self->kept[i];
        const ng_shape shape = kept->kind == NG_STORED_U64 ? NG_SHAPE(4) : NG_SCALAR;
        const slot added = {.stored = {.kind = kept->kind,
                                       .shape = shape,
                                       .size = ng_shape_span(shape, 0, shape.rank)},
                            .memory = kept->memory};
        if (kept->tensor)
            add_tensor(s, "", kept->name, kept->tensor);
        else
            add_slot(s, "", kept->name, added);
    }
}

/* ---- Write --------------------------------------------------------------------------------- */

/* PATH.1 and so on: the files of the past; PATH.0 while the one at the path is being replaced. */
typedef struct {
    char text[PATH_MAX + 32];
} older_path;
static older_path older_of(const char *path, int64_t number)
{
    older_path name;
    snprintf(name.text, sizeof name.text, "%.*s.%lld", PATH_MAX, path, (long long)number);
    return name;
}

/* Gives the file at the path a second name, or its bytes to a second file where that cannot be. */
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

/* Moves each file of the past to the next number; the last one goes. */
static ng_status move_older(const char *function, const char *path, int64_t keep)
{
    for (int64_t number = keep - 2; number >= 0; number--) {
        const older_path from = older_of(path, number), to = older_of(path, number + 1);
        if (rename(from.text, to.text) != 0 && errno != ENOENT)
            return ng_fail(NG_EIO, "%s: cannot write %s: %s", function, to.text, strerror(errno));
    }
    return NG_OK;
}

/* The files of the past change when the new one has taken its place. */
static ng_status replace(const char *function, const ng_training *self, ng_stored *arrays,
                         int count)
{
    const ng_stored_text texts[] = {{"normgrad", ng_version()},
                                    {"optimizer", self->with.optimizer->type->name}};
    const bool keeps = self->with.keep > 1 && access(self->path, F_OK) == 0;
    ng_status status = keeps ? keep_present(function, self->path) : NG_OK;
    if (status != NG_OK) return status;
    status = ng_safetensors_write(function, self->path, arrays, count, texts, 2);
    if (!keeps) return status;
    if (status == NG_OK) return move_older(function, self->path, self->with.keep);
    unlink(older_of(self->path, 0).text);
    return status;
}

static ng_status write_slots(const char *function, const ng_training *self, slots *s)
{
    ng_stored *arrays = s->failed ? NULL : ng_calloc(function, s->count, sizeof *arrays);
    if (!arrays) return ng_newest_status();
    for (int i = 0; i < s->count; i++) arrays[i] = s->list[i].stored;
    const ng_status status = replace(function, self, arrays, s->count);
    ng_free(arrays);
    return status;
}

ng_status ng_training_write(const char *function, ng_training *self)
{
    if (!ng_optimizer_current(function, self->with.optimizer)) return ng_newest_status();
    slots s = {.function = function};
    add_all(&s, self);
    const ng_status status = write_slots(function, self, &s);
    slots_free(&s);
    return status;
}

/* ---- Read ---------------------------------------------------------------------------------- */

static bool refuse(const slots *s, ng_status status, const char *name, const char *what)
{
    ng_fail(status, "%s: %s: \"%s\" %s", s->function, s->file->path, name, what);
    return false;
}

static bool match(slots *s)
{
    for (int i = 0; i < s->count; i++) {
        slot *wanted = &s->list[i];
        const ng_stored *stored = &wanted->stored;
        wanted->found = ng_safetensors_find(s->file, stored->name);
        if (!wanted->found) return refuse(s, NG_EVALUE, stored->name, "is missing");
        if (!ng_shape_equal(wanted->found->shape, stored->shape)) {
            ng_fail(NG_ESHAPE, "%s: %s has \"%s\" of shape %s, expected %s", s->function,
                    s->file->path, stored->name, ng_shape_print(wanted->found->shape).text,
                    ng_shape_print(stored->shape).text);
            return false;
        }
        if (wanted->found->kind == stored->kind) continue;
        ng_fail(NG_EDTYPE, "%s: %s has \"%s\" in %s, expected %s", s->function, s->file->path,
                stored->name, ng_stored_kind_name(wanted->found->kind),
                ng_stored_kind_name(stored->kind));
        return false;
    }
    return true;
}

/* Whether the file has no more than was found; no name stands twice on either side. */
static bool none_left(const slots *s)
{
    if (s->count == s->file->count) return true;
    for (int64_t i = 0; i < s->file->count; i++) {
        bool wanted = false;
        for (int k = 0; k < s->count && !wanted; k++)
            wanted = s->list[k].found == &s->file->arrays[i];
        if (!wanted)
            return refuse(s, NG_EVALUE, s->file->arrays[i].name, "is nothing that is kept here");
    }
    return true;
}

static bool is_of(const slots *s, const ng_optimizer *optimizer)
{
    const char *name = ng_safetensors_text(s->file, "optimizer");
    if (name && strcmp(name, optimizer->type->name) == 0) return true;
    ng_fail(NG_EVALUE, "%s: %s is of %s%s, expected one of the optimizer %s", s->function,
            s->file->path, name ? "the optimizer " : "no training", name ? name : "",
            optimizer->type->name);
    return false;
}

/* Whether the optimizer was made with the settings of the file; with `changed`, whether its state
 * has the same meaning. Asked before names are compared, for a setting may decide on them. */
static bool settings_agree(const slots *s, const ng_optimizer *optimizer, bool changed)
{
    ng_setting own[NG_SETTINGS];
    double saved[NG_SETTINGS + 1];
    const int count = ng_optimizer_settings(optimizer, own);
    const ng_stored *found = find_like(s, "training.settings", NG_STORED_F64);
    if (!found || found->size != count + 1) return true; /* as match tells */
    ng_stored_copy(found, saved);
    for (int i = 0; i < count; i++) {
        const bool other_state = own[i].has_state && (saved[i] > 0) != (own[i].value > 0);
        if (saved[i] == own[i].value || (changed && !other_state)) continue;
        ng_fail(NG_EVALUE, "%s: %s: the optimizer's %s is %s, and here %s (%s)", s->function,
                s->file->path, own[i].name, ng_number_print(saved[i]).text,
                ng_number_print(own[i].value).text,
                other_state ? "which has state of its own" : ".changed allows it");
        return false;
    }
    return true;
}

/* Whether the network has as many modules as the file's, whatever they are. */
static bool modules_agree(const slots *s, const ng_module *module)
{
    const int64_t own = count_modules(module);
    const ng_stored *found = find_like(s, "training.modes", NG_STORED_I64);
    if (!found || found->size == own) return true; /* as match tells */
    ng_fail(NG_EVALUE, "%s: %s is of a network of %lld modules, expected %lld", s->function,
            s->file->path, (long long)found->size, (long long)own);
    return false;
}

/* Whether the file is of this program: of its layers, groups and data. */
static bool program_agrees(slots *s)
{
    const ng_stored *found = find_like(s, "training.program", NG_STORED_U8);
    if (!found) return true; /* as match tells */
    ng_stored_copy(found, s->aside.saved_program);
    return ng_training_same_program(s->function, s->file->path, s->aside.saved_program,
                                    s->aside.program.bytes);
}

static bool is_permutation(const slots *s, int64_t count)
{
    bool *seen = ng_calloc(s->function, count, sizeof *seen), whole = seen;
    for (int64_t i = 0; whole && i < count; i++) {
        const int64_t at = s->aside.order[i];
        whole = at >= 0 && at < count && !seen[at];
        if (whole) seen[at] = true;
        if (!whole) refuse(s, NG_EPARSE, "data", "is no order of the samples");
    }
    ng_free(seen);
    return whole;
}

/* A generator of zeros would give nothing else. */
static bool streams_run(const slots *s)
{
    for (int i = 0; i < s->count; i++) {
        const slot *stream = &s->list[i];
        uint64_t state[8];
        if (stream->stored.kind != NG_STORED_U64) continue;
        ng_stored_copy(stream->found, state);
        for (int64_t at = 0; at < stream->stored.size; at += 4)
            if (!(state[at] | state[at + 1] | state[at + 2] | state[at + 3]))
                return refuse(s, NG_EPARSE, stream->stored.name, "is no generator's state");
    }
    return true;
}

static bool aside_accepted(const slots *s, const ng_training *self)
{
    const aside *a = &s->aside;
    for (int i = 0; i < POSITIONS; i++)
        if (a->position[i] < 0 || (i != SIZE && a->position[i] > INT64_MAX / 2))
            return refuse(s, NG_EPARSE, "training.position", "is no position");
    for (int i = 0; i < self->with.optimizer->count; i++)
        if (a->steps[i] < 0 || a->steps[i] > a->position[OPTIMIZER_STEPS])
            return refuse(s, NG_EPARSE, "optimizer.steps", "has more than the optimizer");
    const double lr = a->settings[a->n_settings];
    if (!(lr >= 0 && lr < HUGE_VAL))
        return refuse(s, NG_EPARSE, "training.settings", "has a rate that is none");
    return streams_run(s) && (!self->with.data || is_permutation(s, a->samples));
}

static void commit_optimizer(const slots *s, ng_optimizer *optimizer, bool changed)
{
    const aside *a = &s->aside;
    optimizer->steps = a->position[OPTIMIZER_STEPS];
    if (!changed) optimizer->lr = a->settings[a->n_settings];
    for (int i = 0; i < optimizer->count; i++) {
        ng_moved *moved = &optimizer->moved[i];
        ng_tensor *weight = moved->weight;
        moved->steps = a->steps[i];
        moved->seen = ng_passes_of(weight);
        if (weight->grad) weight->grad_spent = !a->waits[i];
        if (a->waits[i]) weight->grad->version++;
    }
}

/* With `changed` the file may be of other samples, or of an order that was drawn for each epoch,
 * which is none to be left as it is. */
static void commit_order(const slots *s, const ng_training *self)
{
    const aside *a = &s->aside;
    const bool drawn = !strstr(a->saved_program, "\nin_order\ttrue\n");
    if (a->samples != ng_dataset_count(self->with.data) || (drawn && self->with.in_order)) return;
    memcpy(ng_dataset_order(self->with.data), a->order, (size_t)a->samples * sizeof(int64_t));
}

/* Nothing fails from here on. */
static void commit(const slots *s, ng_training *self, ng_history *history, bool changed)
{
    const aside *a = &s->aside;
    for (int i = 0; i < s->count; i++) {
        const slot *wanted = &s->list[i];
        if (wanted->aside) continue;
        ng_stored_copy(wanted->found, wanted->memory);
        if (wanted->tensor) ng_touch(wanted->tensor);
    }
    set_modes(self->with.optimizer->module, a->modes);
    commit_optimizer(s, self->with.optimizer, changed);
    if (self->with.tape) {
        memcpy(self->with.tape->seeded.state, a->streams, sizeof(ng_rng));
        memcpy(self->with.tape->rng.state, a->streams + 4, sizeof(ng_rng));
    }
    if (self->with.data) commit_order(s, self);
    if (self->with.history) ng_history_swap(self->with.history, history);
    self->at = (ng_position){a->position[EPOCH], a->position[BATCH], a->position[STEP]};
    self->size = a->position[SIZE];
    self->in_epoch = self->taken_up = a->position[IN_EPOCH];
}

static bool take_up(slots *s, ng_training *self, bool changed)
{
    add_all(s, self);
    if (s->failed || !is_of(s, self->with.optimizer) ||
        !settings_agree(s, self->with.optimizer, changed) || (!changed && !program_agrees(s)) ||
        !modules_agree(s, self->with.optimizer->module) || !match(s) || !none_left(s))
        return false;
    for (int i = 0; i < s->count; i++)
        if (s->list[i].aside) ng_stored_copy(s->list[i].found, s->list[i].memory);
    if (!aside_accepted(s, self)) return false;
    ng_history *history = NULL;
    if (self->with.history) {
        ng_text *text = &s->aside.history;
        history = ng_history_parse(s->function, self->path, true, text->bytes, text->count);
        if (!history) return false;
    }
    commit(s, self, history, changed);
    ng_history_free(history);
    return true;
}

bool ng_training_read(const char *function, ng_training *self, bool changed)
{
    if (!ng_optimizer_current(function, self->with.optimizer)) return false;
    ng_safetensors file;
    slots s = {.function = function, .file = &file};
    const bool taken =
        ng_safetensors_open(&file, function, self->path, true) && take_up(&s, self, changed);
    slots_free(&s);
    ng_safetensors_close(&file);
    return taken;
}
