/* A progress line in the terminal, redrawn in place:
 *
 *     LayerNorm    seed 3/5  loss 0.0123  91000 samples/s  0:04 left */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    const char *label, *unit;
    double total; /* units of the whole job */
    double began, shown;
    bool off; /* draws nothing */
} progress;

static inline double progress_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns whether standard output is a terminal that can redraw a line. */
static inline bool progress_terminal(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDOUT_FILENO) && kind && strcmp(kind, "dumb") != 0;
}

static inline progress progress_begin(const char *label, const char *unit, double total, bool off)
{
    return (progress){label, unit, total, .began = progress_clock(), .off = off};
}

/* Redraws the line, at most ten times a second. */
static inline void progress_show(progress *p, double done, const char *detail)
{
    const double now = progress_clock();
    if (p->off || done <= 0 || now - p->shown < 0.1) return;
    p->shown = now;
    const double rate = done / (now - p->began);
    const int left = (int)((p->total - done) / rate + 0.5);
    char line[256];
    snprintf(line, sizeof line, "%-12s %s  %.0f %s/s  %d:%02d left", p->label, detail, rate,
             p->unit, left / 60, left % 60);
    printf("\r%.79s\033[K", line); /* a longer line could not be redrawn */
    fflush(stdout);
}

/* Clears the line before other output. */
static inline void progress_end(const progress *p)
{
    if (p->shown > 0) printf("\r\033[K");
    fflush(stdout);
}

#endif
