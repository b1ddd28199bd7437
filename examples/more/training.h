/* Training of several seeds on labelled samples: Ctrl-C, curves, checkpoints, progress. */
#ifndef EXAMPLES_TRAINING_H
#define EXAMPLES_TRAINING_H

#include "digest.h"
#include "figure.h"
#include "look.h"
#include "numbers.h"
#include "pass.h"
#include "program.h"
#include "progress.h"
#include <signal.h>

enum { EXIT_INTERRUPTED = 130, MAX_SEEDS = 100 };

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;

static inline void on_signal(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* The first Ctrl-C sets `interrupted`. The second one ends the program at once. */
static inline void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- What is measured ---- */

/* The curves of one kind of network for the seeds first_seed, first_seed + 1... */
typedef enum { LOSS, ACCURACY, MEASURES } measure;
typedef struct {
    ng_tensor *measured[MAX_SEEDS]; /* (MEASURES, epochs), or NULL */
    int seeds, epochs, first_seed;
    int done[MAX_SEEDS]; /* epochs completed, by seed */
    int64_t parameters;
    double seconds;
} curves;

static inline void make_curves(curves *all, int count, int seeds, int epochs)
{
    for (int i = 0; i < count; i++) all[i] = (curves){.seeds = seeds, .epochs = epochs};
}

/* Frees what was measured; the curves can be used for the next kind of network. */
static inline void clear_curves(curves *all, int count)
{
    for (int i = 0; i < count; i++)
        for (int seed = 0; seed < MAX_SEEDS; seed++) {
            ng_tensor_free(all[i].measured[seed]);
            all[i].measured[seed] = NULL, all[i].done[seed] = 0;
        }
}

/* Returns the most epochs that any seed has completed. */
static inline int epochs_reached(const curves *c)
{
    int epochs = 0;
    for (int seed = 0; seed < c->seeds; seed++)
        if (c->done[seed] > epochs) epochs = c->done[seed];
    return epochs;
}

static inline bool has_results(const curves *all, int count)
{
    for (int i = 0; i < count; i++)
        if (epochs_reached(&all[i]) > 0) return true;
    return false;
}

/* Returns the spread over the seeds that have completed the epoch. */
static inline number_spread number_spread_at(const curves *c, measure which, int epoch)
{
    double reached[MAX_SEEDS];
    int count = 0;
    for (int seed = 0; seed < c->seeds; seed++)
        if (c->done[seed] > epoch) reached[count++] = ng_at(c->measured[seed], which, epoch);
    return number_spread_of(reached, count);
}

/* Logs the columns that plots/convergence.gp draws, as one block. */
static inline void log_curves(ng_history *history, const char *name, const curves *c)
{
    const int epochs = epochs_reached(c);
    if (epochs > 0) ng_history_block(history, name);
    for (int epoch = 0; epoch < epochs; epoch++) {
        const number_spread loss = number_spread_at(c, LOSS, epoch);
        const number_spread accuracy = number_spread_at(c, ACCURACY, epoch);
        ng_history_log(history, "seeds", epoch + 1, loss.count);
        ng_history_log(history, "train_loss", epoch + 1, loss.median);
        ng_history_log(history, "train_loss_low", epoch + 1, loss.quarter);
        ng_history_log(history, "train_loss_high", epoch + 1, loss.three_quarters);
        ng_history_log(history, "val_accuracy", epoch + 1, accuracy.median);
        ng_history_log(history, "val_accuracy_low", epoch + 1, accuracy.quarter);
        ng_history_log(history, "val_accuracy_high", epoch + 1, accuracy.three_quarters);
    }
}

/* Writes PREFIX.dat and removes figures of older data. */
static inline bool write_dat(const ng_history *history, const char *prefix)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.svg", prefix), remove(path);
    snprintf(path, sizeof path, "%s.png", prefix), remove(path);
    snprintf(path, sizeof path, "%s.dat", prefix);
    return ng_history_write(history, path) == NG_OK;
}

/* Redraws the medians of the network's curves after an epoch of one seed. */
static inline void draw_live(look *l, const curves *c, int seed, const char *status)
{
    const int epoch = c->done[seed];
    if (!l->curves || epoch == 0) return;
    ng_history_log(l->curves, "train_loss", epoch, number_spread_at(c, LOSS, epoch - 1).median);
    ng_history_log(l->curves, "val_accuracy", epoch,
                   number_spread_at(c, ACCURACY, epoch - 1).median);
    look_draw(l, status);
}

/* ---- Checkpoints ---- */

/* Where trainings are saved, and whether saved ones are resumed. Each training has its own file. */
typedef struct {
    const char *prefix; /* NULL: not saved */
    bool resume;
} checkpoint;

/* Rows of a table of options. */
#define CHECKPOINT_OPTIONS(saved)                                                                  \
    OPTION_TEXT("checkpoint", "FILE",                                                              \
                "save each training every few seconds, and on Ctrl-C, in a file whose name\n"      \
                "begins with FILE",                                                                \
                &(saved).prefix),                                                                  \
        OPTION_SWITCH("resume", "resume the trainings saved by --checkpoint", &(saved).resume)
#define THREADS_OPTION(count, standard)                                                            \
    OPTION_COUNT("threads", "N", "threads of the kernels; 0: one per processor (" standard ")",    \
                 &(count), 0, NG_MOST_THREADS)
#define CTRL_C_HELP                                                                                \
    "Ctrl-C ends the program after the current batch and saves the results so far. A training\n"   \
    "whose loss is not finite ends, counts with an infinite loss, and makes the exit\n"            \
    "status 1.\n"

static inline void check_checkpoint(const checkpoint *c)
{
    if (c->prefix) refuse_long("checkpoint", c->prefix);
    if (c->prefix && !can_write("checkpoint", c->prefix)) exit(EXIT_FAILED);
    if (c->prefix || !c->resume) return;
    complain("--resume: expected --checkpoint as well; --help shows all options");
    exit(EXIT_USAGE);
}

/* Returns FILE.KEY-NUMBER, or NULL without --checkpoint. Valid until the thread's next call. */
static inline const char *checkpoint_path(const checkpoint *c, const char *key, int number)
{
    static _Thread_local char path[4096];
    if (!c->prefix) return NULL;
    snprintf(path, sizeof path, "%s.%s-%d", c->prefix, key, number);
    return path;
}

/* A setting of the program that the library's checkpoint does not contain. It is saved with the
 * training, and a resumed training must have the same value. */
typedef struct {
    const char *name;
    int64_t now, saved;
} setting;

static inline void keep_settings(ng_training *run, setting *all, int count)
{
    for (int i = 0; i < count; i++) {
        all[i].saved = all[i].now;
        ng_training_keep_count(run, all[i].name, &all[i].saved);
    }
}

/* Returns whether the settings equal those saved in the file; fails with NG_EVALUE if not. */
static inline bool settings_stay(const char *path, const setting *all, int count)
{
    for (int i = 0; i < count; i++) {
        if (all[i].saved == all[i].now) continue;
        ng_fail(NG_EVALUE, "%s: the %s is %lld in the file and %lld in this run", path, all[i].name,
                (long long)all[i].saved, (long long)all[i].now);
        return false;
    }
    return true;
}

/* ---- Training ---- */

/* One training run: a network, its data, and where its results go. */
typedef struct {
    const char *name;
    int seed, batch; /* seed: the index in the curves */
    bool drop_last;  /* leave out a last batch that is not full */
    bool on_trial;   /* tries a learning rate: divergence is a result, not a failure */
    double before;   /* samples that the progress line counts before the first seed */
    ng_module *net;
    ng_optimizer *optimizer;
    ng_tape *tape;
    ng_dataset *train, *validate;
    curves *curves;
    progress *bar;
    ng_training *run;
    ng_history *watched; /* or NULL */
    double sum, seen;    /* sum of losses, number of samples of this epoch */
    int64_t done;        /* epochs completed */
    setting settings[2];
} training;

static inline int64_t digest_of_samples(const ng_dataset *data)
{
    const uint64_t digest = digest_of_values(DIGEST_START, ng_dataset_x(data));
    return (int64_t)digest_of_values(digest, ng_dataset_y(data));
}

/* Begins the training, or resumes a saved one. The other members must be set. */
static inline bool training_begin(training *t, const checkpoint *saved, const char *key)
{
    curves *c = t->curves;
    const char *path = checkpoint_path(saved, key, c->first_seed + t->seed);
    c->measured[t->seed] = ng_zeros_new(NG_F64, NG_SHAPE(MEASURES, c->epochs));
    t->settings[0] = (setting){.name = "batch", .now = t->batch};
    t->settings[1] = (setting){.name = "digest of the samples that measure",
                               .now = digest_of_samples(t->validate)};
    t->run = ng_training_new(t->optimizer, .tape = t->tape, .data = t->train, .path = path,
                             .minutes = path ? 0.1 : 0);
    keep_settings(t->run, t->settings, 2);
    ng_training_keep_number(t->run, "sum", &t->sum);
    ng_training_keep_number(t->run, "seen", &t->seen);
    ng_training_keep_count(t->run, "done", &t->done);
    ng_training_keep_tensor(t->run, "loss and accuracy by epoch", c->measured[t->seed]);
    if (ng_failed()) return false;
    if (saved->resume && ng_training_resume(t->run, .or_begin = true)) return false;
    c->done[t->seed] = (int)(t->done < c->epochs ? t->done : c->epochs);
    return settings_stay(path, t->settings, 2);
}

static inline void training_free(training *t)
{
    ng_training_free(t->run);
    ng_tape_free(t->tape), ng_optimizer_free(t->optimizer), ng_module_free(t->net);
    ng_dataset_free(t->train), ng_dataset_free(t->validate);
    ng_history_free(t->watched);
}

/* Returns the fraction of samples whose largest logit is that of the label. */
static inline double accuracy_of(ng_module *net, ng_tape *tape, ng_dataset *data)
{
    ng_batch batch;
    int64_t right = 0;
    const bool was = ng_tape_set_recording(tape, false);
    ng_eval(net);
    for (int i = 0; ng_dataset_batch(data, tape, i, 256, &batch); i++) {
        const ng_tensor *guess = ng_argmax(tape, ng_forward(net, tape, batch.x));
        for (int64_t k = 0; k < batch.size; k++) right += ng_get(guess, k) == ng_get(batch.y, k);
        ng_tape_reset(tape);
    }
    ng_train(net);
    ng_tape_set_recording(tape, was);
    return (double)right / (double)ng_dataset_count(data);
}

/* Updates the progress line. */
static inline void show_run(const training *t)
{
    const curves *c = t->curves;
    const double count = (double)ng_dataset_count(t->train);
    const int epoch = (int)ng_training_at(t->run).epoch;
    char detail[96];
    snprintf(detail, sizeof detail, "seed %d/%d  epoch %2d/%d  loss %.4f", t->seed + 1, c->seeds,
             epoch + 1, c->epochs, t->sum / t->seen);
    progress_show(t->bar, t->before + count * (t->seed * c->epochs + epoch) + t->seen, detail);
}

/* Trains on the rest of the epoch. Returns the mean of the batches' losses. Ctrl-C, a failure or a
 * loss that is not finite ends it early. */
static inline double run_batches(training *t)
{
    ng_batch batch;
    if (ng_training_at(t->run).batch == 0) t->sum = t->seen = 0;
    while (ng_training_batch(t->run, t->batch, &batch, .drop_last = t->drop_last)) {
        t->sum +=
            train_batch(t->net, t->optimizer, t->tape, &batch, t->watched) * (double)batch.size;
        t->seen += (double)batch.size;
        if (ng_failed() || !isfinite(t->sum)) break;
        show_run(t);
        if (interrupted) ng_training_stop(t->run);
    }
    return t->sum / t->seen;
}

/* Trains for one epoch, then measures the accuracy. Returns whether the run goes on. A diverged run
 * ends: the remaining epochs get an infinite loss and the present accuracy. */
static inline bool run_epoch(training *t)
{
    curves *c = t->curves;
    const int epoch = (int)ng_training_at(t->run).epoch;
    const double loss = run_batches(t);
    if (interrupted || ng_failed()) return false;
    const double accuracy = accuracy_of(t->net, t->tape, t->validate);
    if (ng_failed()) return false;

    if (!isfinite(loss)) progress_end(t->bar);
    const bool goes_on = t->on_trial ? isfinite(loss)
                                     : still_trains(loss, "%s, seed %d/%d, epoch %d: the loss",
                                                    t->name, t->seed + 1, c->seeds, epoch + 1);
    const int last = goes_on ? epoch + 1 : c->epochs;
    for (int k = epoch; k < last; k++) {
        ng_set(c->measured[t->seed], k, goes_on ? loss : HUGE_VAL);
        ng_set(c->measured[t->seed], c->epochs + k, accuracy);
    }
    t->done = c->done[t->seed] = last;
    return goes_on;
}

/* ---- Results ---- */

/* Prints the result of a seed whose training is complete. */
static inline void print_seed(const training *t, double seconds)
{
    const curves *c = t->curves;
    if (c->done[t->seed] < c->epochs) return;
    progress_end(t->bar);
    printf("%-10s seed %d/%d  loss %.4f  validation accuracy %6.2f %%  %.1f s\n", t->name,
           t->seed + 1, c->seeds, ng_at(c->measured[t->seed], LOSS, c->epochs - 1),
           100 * ng_at(c->measured[t->seed], ACCURACY, c->epochs - 1), seconds);
    fflush(stdout);
}

/* Prints a line of the table: the newest epoch of all seeds. */
static inline void print_curves(const char *name, const curves *c)
{
    const int epochs = epochs_reached(c);
    if (epochs == 0) return;
    const number_spread loss = number_spread_at(c, LOSS, epochs - 1);
    const number_spread accuracy = number_spread_at(c, ACCURACY, epochs - 1);
    printf("%-10s %10lld %13.2e   median %.2f, lowest %.2f, highest %.2f over %d seed%s\n", name,
           (long long)c->parameters, loss.median, 100 * accuracy.median, 100 * accuracy.low,
           100 * accuracy.high, accuracy.count, accuracy.count == 1 ? "" : "s");
}

#endif
