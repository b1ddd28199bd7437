/* A figure: numbers, the commands that draw them, and the run of gnuplot that turns both into a
 * file, a text or a window. */
#ifndef NG_PLOT_PLOT_H
#define NG_PLOT_PLOT_H

#include "io/history.h"
#include <normgrad/plot.h>

typedef struct {
    const char *function;
    const char *path; /* "-": text, NULL: a window */
    const char *title;
    int width, height; /* 0: by the number of panels */
    int panels, columns;
    bool keep;
    ng_live *live;  /* or NULL */
    ng_text data;   /* blocks of numbers, with two blank lines between them */
    ng_text script; /* draws `data index 0` and so on in panels; the terminal is set */
} ng_figure;

/* Whether a figure can be drawn to the path, or in a window, and the settings fit. */
bool ng_figure_accepted(const ng_figure *figure);

/* Whether half a second has passed since the figure was drawn. */
bool ng_live_is_due(const ng_live *live);

ng_status ng_figure_draw(const ng_figure *figure);

/* Adds a text in quotes, with every byte that gnuplot might read as something else as a number. */
void ng_text_quote(ng_text *text, const char *quoted);

/* Adds "set NAME "TEXT" noenhanced". */
void ng_text_label(ng_text *text, const char *name, const char *label);

/* Adds "set xtics" with a round distance; labels of gnuplot's own tics touch in narrow panels. */
void ng_text_tics(ng_text *text, double low, double high, int most);

#endif
