/* A progress line in the terminal, redrawn in place:
 *
 *     LayerNorm    [############........]  seed 3/5  loss 0.0123  91000 samples/s  0:04 left */
#ifndef PROGRESS_H
#define PROGRESS_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

static inline int progress_columns(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

static inline progress progress_begin(const char *label, const char *unit, double total, bool off)
{
    return (progress){
        .label = label, .unit = unit, .total = total, .began = progress_clock(), .off = off};
}

/* Redraws the line, at most ten times a second. */
static inline void progress_show(progress *p, double done, const char *detail)
{
    const double now = progress_clock();
    if (p->off || done <= 0 || now - p->shown < 0.1) return;
    p->shown = now;

    const double rate = done / (now - p->began);
    const int left = (int)((p->total - done) / rate + 0.5);
    char tail[160], bar[48] = "";
    snprintf(tail, sizeof tail, "%s  %.0f %s/s  %d:%02d left", detail, rate, p->unit, left / 60,
             left % 60);

    /* The label takes 19 columns, the bar the rest. */
    const int columns = progress_columns() - 1;
    int cells = columns - 19 - (int)strlen(tail) - 4;
    if (cells > 40) cells = 40;
    const int full = (int)(cells * done / p->total);
    if (cells >= 8) {
        bar[0] = '[';
        for (int i = 0; i < cells; i++) bar[1 + i] = i < full ? '#' : '.';
        strcpy(bar + 1 + cells, "]  ");
    }

    char line[256];
    snprintf(line, sizeof line, "%-18s %s%s", p->label, bar, tail);
    printf("\r%.*s\033[K", columns, line);
    fflush(stdout);
}

/* Clears the line before other output. */
static inline void progress_end(const progress *p)
{
    if (p->shown > 0) printf("\r\033[K");
    fflush(stdout);
}

#endif
