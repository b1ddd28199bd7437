/* What the training programs share: how they end, and what several seeds make of a number. */
#ifndef EXAMPLES_TRAINING_H
#define EXAMPLES_TRAINING_H

#include <errno.h>
#include <math.h>
#include <normgrad.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_INTERRUPTED = 130 };

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;

static inline void on_signal(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* A second Ctrl-C ends the program at once. */
static inline void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* ---- What goes wrong ---- */

/* Says what the library last recorded. */
static inline int end_failed(void)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, ng_last_error());
    return EXIT_FAILED;
}

/* Before an hour of training is spent on a file that cannot be written. */
static inline bool can_write(const char *out)
{
    const char *slash = strrchr(out, '/');
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - out) + 1 : 1, slash ? out : ".");
    if (access(folder, W_OK) == 0) return true;
    fprintf(stderr, "%s: --out %s: %s: %s\n", program_invocation_short_name, out, folder,
            strerror(errno));
    return false;
}

/* PREFIX.dat */
static inline bool write_dat(const ng_history *history, const char *out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.dat", out);
    return ng_history_write(history, path) == NG_OK;
}

/* ---- Seeds ---- */

enum { MAX_SEEDS = 100 };

/* Of the seeds that have reached an epoch. */
typedef struct {
    int seeds;
    double median, low, high;
} spread;

static inline int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of values[seed][epoch] at one epoch, where done[seed] epochs are there; a NaN counts as Inf. */
static inline spread spread_at(const double *values, const int *done, int seeds, int epochs,
                               int epoch)
{
    double sorted[MAX_SEEDS];
    int n = 0;
    for (int seed = 0; seed < seeds; seed++) {
        const double value = values[seed * epochs + epoch];
        if (done[seed] > epoch) sorted[n++] = isnan(value) ? HUGE_VAL : value;
    }
    if (n == 0) return (spread){0};
    qsort(sorted, (size_t)n, sizeof sorted[0], by_value);
    return (spread){.seeds = n,
                    .median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2,
                    .low = sorted[0],
                    .high = sorted[n - 1]};
}

/* The last epoch that any seed has reached; -1 where there is none. */
static inline int last_epoch(const int *done, int seeds)
{
    int epochs = 0;
    for (int seed = 0; seed < seeds; seed++)
        if (done[seed] > epochs) epochs = done[seed];
    return epochs - 1;
}

/* The columns that plots/convergence.gp draws. */
static inline void log_epoch(ng_history *history, int epoch, spread loss, spread accuracy)
{
    ng_history_log(history, "seeds", epoch + 1, loss.seeds);
    ng_history_log(history, "train_loss", epoch + 1, loss.median);
    ng_history_log(history, "train_loss_low", epoch + 1, loss.low);
    ng_history_log(history, "train_loss_high", epoch + 1, loss.high);
    ng_history_log(history, "val_accuracy", epoch + 1, accuracy.median);
    ng_history_log(history, "val_accuracy_low", epoch + 1, accuracy.low);
    ng_history_log(history, "val_accuracy_high", epoch + 1, accuracy.high);
}

#endif
