/* A figure: numbers, the commands that draw them, and the run of gnuplot that turns both into a
 * file, a text or a window. */
#ifndef NG_PLOT_PLOT_H
#define NG_PLOT_PLOT_H

#include "io/history.h"
#include <normgrad/plot.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct {
    const char *function;
    const char *path; /* "-": text, NULL: a window */
    const char *title;
    int width, height; /* 0: by the number of panels; set by the functions below */
    bool keep, live;
    int panels, panel_height; /* of a panel, if the height is 0; 0: a default */
    int key_rows;             /* lines of the key below the panels */
    bool as_text;             /* this and the next are set by ng_figure_begin */
    double letter, line;      /* the size of a character */
    int columns;
    ng_text data;   /* blocks of numbers, with two blank lines between them */
    ng_text script; /* draws `$data index 0` and so on; the terminal is set */
} ng_figure;

/* Begins a figure of so many panels, among which the width is divided. False if none can be drawn
 * to the path, or in a window. */
bool ng_figure_begin(ng_figure *figure);

/* Adds the commands that place the next panel; number `panels` is the key below them. */
void ng_figure_place(ng_figure *figure, int panel);

ng_status ng_figure_draw(const ng_figure *figure);

void ng_figure_free(ng_figure *figure);

/* A gnuplot that draws the figure in a file again and again. */
typedef struct {
    pid_t process;  /* 0: there is none */
    FILE *said;     /* its standard error */
    char path[260]; /* of the file */
} ng_gnuplot;

/* Shows a figure. The first call starts gnuplot, which draws to the descriptor `out`, or the
 * standard output if it is -1. The last call waits for its end. After a failure there is none. */
ng_status ng_gnuplot_show(ng_gnuplot *gnuplot, const ng_figure *figure, bool last, int out);

/* Whether a value can be drawn. gnuplot draws nothing from 9e307 on, or below 1e-308 on a
 * logarithmic axis, and needs some room. */
static inline bool ng_is_drawn(double value, bool log)
{
    return value >= (log ? 1e-300 : -1e300) && value <= 1e300;
}

/* Adds "COMMAND "TEXT" noenhanced", where gnuplot reads nothing in the text. A control character,
 * and what is not UTF-8, becomes U+FFFD. */
void ng_text_label(ng_text *text, const char *command, const char *label);

/* Adds the format of an axis: powers of ten, or digits that tell close numbers apart. */
void ng_text_format(ng_text *text, const char *axis, bool log, bool as_text);

/* Adds the tics of a linear x axis. gnuplot's do not know how wide a panel is, and stand between
 * whole numbers. */
void ng_text_x_tics(ng_figure *figure, double low, double high, bool whole);

#endif
