/* What trainings have in common: --checkpoint and --resume; --live, a figure that is redrawn while
 * a network trains; --watch, a figure of its layers. */
#ifndef EXAMPLES_TRAINING_H
#define EXAMPLES_TRAINING_H

#include "figure.h"
#include "options.h"
#include "progress.h"

typedef struct {
    const char *checkpoint; /* where trainings are saved; NULL: they are not */
    bool resume, live, watch;
    int threads;
    ng_history *curves; /* those of --live; NULL: none are drawn */
} training_options;

/* Rows of a table of options. */
#define TRAINING_OPTIONS(t)                                                                        \
    OPTION_TEXT("checkpoint", "FILE",                                                              \
                "save each training every few seconds, and on Ctrl-C, in a file whose name\n"      \
                "begins with FILE",                                                                \
                &(t).checkpoint),                                                                  \
        OPTION_SWITCH("resume", "resume the trainings saved by --checkpoint", &(t).resume),        \
        OPTION_SWITCH("live",                                                                      \
                      "redraw the curves during training: in a window, or in the terminal\n"       \
                      "if there is no display",                                                    \
                      &(t).live),                                                                  \
        OPTION_SWITCH("watch",                                                                     \
                      "watch the layers of the first seed's networks, and draw them in\n"          \
                      "PREFIX-NAME-layers.svg",                                                    \
                      &(t).watch),                                                                 \
        OPTION_COUNT("threads", "N", "threads of the kernels; 0: one per processor", &(t).threads, \
                     0, NG_MOST_THREADS)
#define CTRL_C_HELP                                                                                \
    "Ctrl-C ends the program after the current batch and saves the results so far. A training\n"   \
    "whose loss is not finite ends, and the exit status is then 1.\n"

static inline bool has_display(void) { return getenv("DISPLAY") || getenv("WAYLAND_DISPLAY"); }

/* Whether the terminal shows the curves, so that nothing else may be written to it. */
static inline bool fills_terminal(const training_options *t) { return t->live && !has_display(); }

/* Checks the options and begins the curves of --live. */
static inline void begin_trainings(training_options *t)
{
    if (t->checkpoint && !can_write("checkpoint", t->checkpoint)) exit(EXIT_FAILED);
    if (t->resume && !t->checkpoint) {
        complain("--resume: expected --checkpoint as well; --help shows all options");
        exit(EXIT_USAGE);
    }
    if (fills_terminal(t) && !isatty(STDOUT_FILENO)) {
        complain("--live needs a display or a terminal; continuing without it");
        t->live = false;
    }
    if (t->live) t->curves = ng_history_new("live");
    ng_set_threads(t->threads);
    catch_signals();
}

/* ---- Checkpoints ---- */

/* A setting of the program that a resumed training must have as well. */
typedef struct {
    const char *name;
    int64_t now, saved;
} setting;

/* Returns a training that is saved in CHECKPOINT.KEY-NUMBER. Keep what it needs, then call
 * training_begin. */
static inline ng_training *training_new(const training_options *t, ng_optimizer *optimizer,
                                        ng_tape *tape, ng_dataset *data, const char *key,
                                        int number)
{
    char path[2 * LONGEST_TEXT];
    snprintf(path, sizeof path, "%s.%s-%d", t->checkpoint ? t->checkpoint : "", key, number);
    return ng_training_new(optimizer, .tape = tape, .data = data,
                           .path = t->checkpoint ? path : NULL, .minutes = t->checkpoint ? 0.1 : 0);
}

/* Begins the training, or resumes it, with the settings as they were. */
static inline bool training_begin(const training_options *t, ng_training *run, setting *all,
                                  int count)
{
    for (int i = 0; i < count; i++) {
        all[i].saved = all[i].now;
        ng_training_keep_count(run, all[i].name, &all[i].saved);
    }
    if (ng_failed() || (t->resume && ng_training_resume(run, .or_begin = true))) return false;
    for (int i = 0; i < count; i++)
        if (all[i].saved != all[i].now)
            ng_fail(NG_EVALUE, "--resume: the %s was %lld and is %lld in this run", all[i].name,
                    (long long)all[i].saved, (long long)all[i].now);
    return !ng_failed();
}

/* ---- Figures ---- */

/* Redraws the curves. A figure that cannot be drawn does not end the training. */
static inline void draw_live(training_options *t, const char *title)
{
    if (!t->curves || ng_failed() ||
        ng_plot(t->curves, has_display() ? NULL : "-", .panels = true, .live = true,
                .title = title) == NG_OK)
        return;
    complain("%s; continuing without --live", ng_error_text());
    ng_clear_error();
    ng_history_free(t->curves);
    t->curves = NULL;
}

/* Draws PREFIX.svg from the history of PREFIX.dat, a panel for each series, and says where it
 * is. */
static inline void draw_panels(ng_history *history, const char *prefix, const char *const *series,
                               const char *x_label)
{
    char path[2 * LONGEST_TEXT];
    snprintf(path, sizeof path, "%s.svg", prefix);
    if (ng_failed()) return;
    const bool drawn = ng_plot(history, path, .x_label = x_label, .series = series, .band = true,
                               .panels = true) == NG_OK;
    printf("Curves: %s.dat%s%s\n", prefix, drawn ? ", drawn in " : "; ",
           drawn ? path : ng_error_text());
    ng_clear_error();
}

/* Logs what a step has done to the layers; NULL if nobody watches. */
static inline void watch_step(ng_history *watched, ng_module *net, int64_t step)
{
    if (watched && step % 10 == 0) ng_watch(net, watched, step);
}

/* Draws PREFIX-NAME-layers.svg. */
static inline void draw_layers(ng_history *watched, const char *prefix, const char *name)
{
    char path[2 * LONGEST_TEXT];
    snprintf(path, sizeof path, "%s-%s-layers.svg", prefix, name);
    if (!watched || ng_failed()) return;
    if (ng_plot_watch(watched, path, .title = name) == NG_OK)
        printf("Layers: %s\n", path);
    else
        complain("%s", ng_error_text()), ng_clear_error();
}

#endif
