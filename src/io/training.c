/* The loop of a training: where it is, and when it is saved. */
#include "io/training.h"
#include "io/json.h"
#include "optim/optimizer.h"
#include <string.h>
#include <time.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- Make and free ------------------------------------------------------------------------- */

static bool training_options_accepted(const ng_training_new_options *o)
{
    static const char name[] = "ng_training_new";
    if (!ng_given(name, "optimizer", o->optimizer)) return false;
    if (o->every < 0 || o->keep < 0 || o->keep > 1000) {
        ng_fail(NG_EVALUE,
                "%s: every is %lld and keep %lld, expected both 0 or more, keep at most 1000", name,
                (long long)o->every, (long long)o->keep);
        return false;
    }
    if (o->data && !o->tape) {
        ng_fail(NG_EVALUE, "%s: .data without .tape, expected one for its batches", name);
        return false;
    }
    if (o->minutes == 0 && ng_option_given(o->minutes)) {
        ng_fail(NG_EVALUE, "%s: minutes is 0, expected more than 0", name);
        return false;
    }
    return ng_option_idle(name, "seed", o->seed && !o->data, "with .data") &&
           ng_option_idle(name, "in_order", o->in_order && !o->data, "with .data") &&
           ng_option_idle(name, "seed", o->seed && o->in_order, "without .in_order") &&
           ng_option_idle(name, "every", o->every && !o->path, "with .path") &&
           ng_option_idle(name, "minutes", ng_option_given(o->minutes) && !o->path, "with .path") &&
           ng_option_idle(name, "keep", o->keep && !o->path, "with .path") &&
           ng_option_range(name, "minutes", o->minutes, 0, 1e9) &&
           (!o->path || ng_file_writable(name, o->path));
}

ng_training *ng_training_new_with(ng_training_new_options options)
{
    if (!training_options_accepted(&options)) return NULL;
    ng_training *self = ng_calloc("ng_training_new", 1, sizeof *self);
    if (!self) return NULL;
    if (options.path) self->path = ng_copy_text("ng_training_new", options.path);
    if (options.path && !self->path) {
        ng_free(self);
        return NULL;
    }
    if (options.every == 0 && options.minutes == 0) options.minutes = 10;
    if (options.keep == 0) options.keep = 1;
    self->with = options;
    self->with.path = self->path;
    if (options.data) self->samples = ng_training_digest_of(options.data);
    self->saved_time = seconds_now();
    return self;
}

void ng_training_free(ng_training *training)
{
    if (!training) return;
    ng_stored_free(&training->kept);
    ng_free(training->path);
    ng_free(training);
}

/* ---- What is kept for the user ------------------------------------------------------------- */

static ng_status keep_as(const char *function, ng_training *self, const char *name, ng_stored array)
{
    if (!ng_given(function, "training", self) || !ng_given(function, "name", name) ||
        !ng_given(function, "what is to be kept", array.bytes))
        return ng_newest_status();
    if (!ng_is_utf8(name))
        return ng_fail(NG_EVALUE, "%s: the name \"%s\", expected UTF-8", function, name);
    ng_stored_list *kept = &self->kept;
    if (!ng_stored_add(function, kept, "kept.", name, array)) return NG_ENOMEM;
    if (!ng_stored_twice(kept)) return NG_OK;
    ng_free((char *)kept->arrays[--kept->count].name);
    return ng_fail(NG_EVALUE, "%s: \"%s\" is kept already", function, name);
}

ng_status ng_training_keep_number(ng_training *training, const char *name, double *number)
{
    const ng_stored array = {.kind = NG_STORED_F64, .size = 1, .bytes = number};
    return keep_as("ng_training_keep_number", training, name, array);
}

ng_status ng_training_keep_count(ng_training *training, const char *name, int64_t *count)
{
    const ng_stored array = {.kind = NG_STORED_I64, .size = 1, .bytes = count};
    return keep_as("ng_training_keep_count", training, name, array);
}

ng_status ng_training_keep_rng(ng_training *training, const char *name, ng_rng *rng)
{
    const ng_stored array = {.kind = NG_STORED_I64, .size = 4, .bytes = rng};
    return keep_as("ng_training_keep_rng", training, name, array);
}

ng_status ng_training_keep_tensor(ng_training *training, const char *name, ng_tensor *x)
{
    static const char function[] = "ng_training_keep_tensor";
    const ng_status status = ng_writable(function, x);
    return status == NG_OK ? keep_as(function, training, name, ng_stored_of(x)) : status;
}

/* ---- When it is saved ---------------------------------------------------------------------- */

/* Counts the step that was begun as done. */
static void count_work(ng_training *self)
{
    if (!self->working) return;
    self->working = false;
    self->at.step++;
    if (self->in_epoch && self->with.data) self->at.batch++;
}

static bool save_training(const char *function, ng_training *self)
{
    if (!self->path) return true;
    if (ng_training_write(function, self) != NG_OK) return false;
    self->saved_step = self->at.step;
    self->saved_time = seconds_now();
    return true;
}

static bool is_due(const ng_training *self)
{
    if (self->at.step == self->saved_step) return false;
    if (self->with.every > 0 && self->at.step - self->saved_step >= self->with.every) return true;
    return self->with.minutes > 0 && seconds_now() - self->saved_time >= 60 * self->with.minutes;
}

/* Counts the step that was begun, and saves if it is time. False if the training ends here. */
static bool training_goes_on(const char *function, ng_training *self)
{
    if (!ng_given(function, "training", self) || ng_failed() || self->over) return false;
    count_work(self);
    if (!self->stop) return !is_due(self) || save_training(function, self);
    self->over = save_training(function, self);
    return false;
}

ng_status ng_training_save(ng_training *training)
{
    static const char function[] = "ng_training_save";
    if (!ng_given(function, "training", training)) return ng_newest_status();
    if (!training->path) return ng_fail(NG_ESTATE, "%s: there is no path to save to", function);
    count_work(training);
    return save_training(function, training) ? NG_OK : ng_newest_status();
}

ng_status ng_training_resume_with(ng_training_resume_options options)
{
    static const char function[] = "ng_training_resume";
    ng_training *self = options.training;
    if (!ng_given(function, "training", self)) return ng_newest_status();
    if (!self->path && options.or_begin) return NG_OK;
    if (!self->path) return ng_fail(NG_ESTATE, "%s: there is no path to read from", function);
    if (options.or_begin && ng_file_missing(self->path)) return NG_OK;
    if (!ng_training_read(function, self, options.changed)) return ng_newest_status();
    self->working = self->over = false;
    self->saved_step = self->at.step;
    self->saved_time = seconds_now();
    return NG_OK;
}

/* ---- The loop ------------------------------------------------------------------------------ */

bool ng_training_epoch(ng_training *training, int64_t epochs)
{
    static const char function[] = "ng_training_epoch";
    ng_training *self = training;
    if (!ng_given(function, "training", self) || ng_failed() || self->over) return false;
    count_work(self);
    if (self->in_epoch && !self->resumed) {
        self->in_epoch = false;
        self->at.epoch++;
        self->at.batch = self->size = 0;
    }
    if (!training_goes_on(function, self)) return false;
    if (self->at.epoch >= epochs) {
        save_training(function, self);
        return false;
    }
    self->in_epoch = true;
    self->resumed = false;
    if (!self->with.data || self->with.in_order) return true;
    const uint64_t seed = self->with.seed + (uint64_t)self->at.epoch;
    return ng_dataset_shuffle(self->with.data, seed) == NG_OK;
}

bool ng_training_batch_with(ng_training *training, int64_t size, ng_dataset_batch_options options)
{
    static const char function[] = "ng_training_batch";
    ng_training *self = training;
    if (!training_goes_on(function, self) || !ng_given(function, "batch", options.batch))
        return false;
    if (!self->with.data || !self->in_epoch || self->resumed) {
        ng_fail(NG_ESTATE, "%s: %s", function,
                self->with.data ? "no epoch was begun, expected ng_training_epoch around it"
                                : "the training has no data set");
        return false;
    }
    if (self->at.batch > 0 && self->size != size) {
        ng_fail(NG_ESTATE, "%s: size is %lld, expected %lld as in the epoch's earlier batches",
                function, (long long)size, (long long)self->size);
        return false;
    }
    self->size = size;
    self->working =
        ng_dataset_batch_with(self->with.data, self->with.tape, self->at.batch, size, options);
    return self->working;
}

bool ng_training_step(ng_training *training, int64_t steps)
{
    static const char function[] = "ng_training_step";
    if (!training_goes_on(function, training)) return false;
    training->working = training->at.step < steps;
    if (!training->working) save_training(function, training);
    return training->working;
}

void ng_training_stop(ng_training *training)
{
    if (training) training->stop = 1;
}

bool ng_training_stopped(const ng_training *training)
{
    return ng_given("ng_training_stopped", "training", training) && training->stop;
}

ng_position ng_training_at(const ng_training *training)
{
    if (!ng_given("ng_training_at", "training", training)) return (ng_position){-1, -1, -1};
    return training->at;
}
