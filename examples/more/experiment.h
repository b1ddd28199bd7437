/* The common frame of a program that runs one experiment of many steps: options, loop, figure.
 *
 *     int main(int argc, char **argv)
 *     {
 *         experiment e = experiment_begin(argc, argv, "maml", "Learns to learn.", 6000);
 *         for (int step = 0; experiment_goes_on(&e, step, "loss", loss); step++) loss = ...;
 *         return experiment_end(&e);
 *     }
 *
 * plots/NAME.gp draws the figure from what is logged in e.history. */
#ifndef EXAMPLES_EXPERIMENT_H
#define EXAMPLES_EXPERIMENT_H

#include "figure.h"
#include "options.h"
#include "progress.h"

typedef struct {
    const char *name;
    int steps;
    uint64_t seed;
    char out[LONGEST_TEXT + 100];
    bool no_plot;
    progress bar;
    ng_history *history;
    char last[64]; /* result of the last step */
} experiment;

/* Reads the options and opens the history. `steps` is the default of --steps. */
static inline experiment experiment_begin(int argc, char **argv, const char *name, const char *what,
                                          int steps)
{
    experiment e = {.name = name, .steps = steps};
    const char *out = NULL;
    int seed = 0;
    char usage[512], out_help[96], title[128];
    snprintf(usage, sizeof usage, "usage: %s [options]\n\n%s\n", name, what);
    snprintf(out_help, sizeof out_help, "prefix of the .dat, .svg and .png (build/%s)", name);
    const program_option known[] = {
        OPTION_COUNT("steps", "N", "training steps", &e.steps, 1, 100000000),
        OPTION_COUNT("seed", "N", "seed of all random numbers", &seed, 0, 1000000000),
        OPTION_TEXT("out", "PREFIX", out_help, &out),
        OPTION_SWITCH("no-plot", "draw no figure", &e.no_plot)};
    refuse_more(
        argc, argv,
        read_options(argc, argv, usage, OPTIONS(known),
                     "Ctrl-C ends it after the current step and draws the results so far.\n"));
    e.seed = (uint64_t)seed;
    choose_prefix(e.out, sizeof e.out, out, name);
    if (!can_write("out", e.out)) exit(program_end(EXIT_FAILED));
    catch_signals();
    snprintf(title, sizeof title, "%s, %d steps, seed %d", name, e.steps, seed);
    e.history = ng_history_new(title);
    e.bar = progress_begin(name, "steps", e.steps, !progress_terminal());
    return e;
}

/* Returns whether there is another step. The loop ends after the last step, on Ctrl-C, after a
 * failure, and when `value`, the result of the previous step, is not finite. Logs at most a
 * thousand values, shows the progress, and prints the last result. */
static inline bool experiment_goes_on(experiment *e, int step, const char *series, double value)
{
    char detail[64];
    if (step > 0 && !ng_failed()) {
        if (!still_trains(value, "step %d: the %s", step, series)) return false;
        if (step % (e->steps / 1000 + 1) == 0) ng_history_log(e->history, series, step, value);
        snprintf(e->last, sizeof e->last, "%d steps: %s %.4g", step, series, value);
        snprintf(detail, sizeof detail, "step %d/%d  %s %.4f", step, e->steps, series, value);
        progress_show(&e->bar, step, detail);
    }
    const bool goes_on = step < e->steps && !interrupted && !ng_failed();
    if (!goes_on) progress_end(&e->bar), puts(e->last);
    return goes_on;
}

/* Writes the history and draws the figure. Returns the exit status. */
static inline int experiment_end(experiment *e)
{
    char script[128];
    progress_end(&e->bar);
    snprintf(script, sizeof script, "plots/%s.gp", e->name);
    const bool ok =
        !ng_failed() && write_dat(e->history, e->out) && draw_figure(script, e->out, !e->no_plot);
    ng_history_free(e->history);
    return program_end(!ok ? EXIT_FAILED : interrupted ? EXIT_INTERRUPTED : EXIT_SUCCESS);
}

#endif
