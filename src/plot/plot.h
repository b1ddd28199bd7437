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

/* Whether the path, or its absence, is one that a figure can be drawn to, and the settings fit it.
 * */
bool ng_figure_accepted(const ng_figure *figure);

/* The figure's size in pixels, or in characters of text. */
int ng_figure_width(const ng_figure *figure);
int ng_figure_height(const ng_figure *figure);

/* Whether half a second has passed since it was last true. */
bool ng_live_is_due(ng_live *live);

/* Draws the figure and frees both texts. */
ng_status ng_figure_draw(ng_figure *figure);

/* Adds a text in quotes, with every byte that gnuplot might read as something else as a number. */
void ng_text_quote(ng_text *text, const char *quoted);

/* Adds "set NAME "TEXT" noenhanced", unless the text is NULL. */
void ng_text_label(ng_text *text, const char *name, const char *label);

#endif
