/* A figure: numbers, the commands that draw them, and the run of gnuplot that turns both into a
 * file, a text or a window. */
#ifndef NG_PLOT_PLOT_H
#define NG_PLOT_PLOT_H

#include "io/history.h"
#include <normgrad/plot.h>
#include <sys/types.h>

/* A gnuplot that redraws a figure. */
typedef struct {
    pid_t process; /* 0: there is none */
    int fd;        /* its standard input */
    double drawn;  /* when, in seconds of the clock */
} ng_gnuplot;

typedef struct {
    const char *function;
    const char *path; /* "-": text, NULL: a window */
    const char *title;
    int width, height;        /* 0: by the number of panels; set by the functions below */
    bool as_text;             /* then sizes are in characters */
    double letter, line;      /* the size of a character */
    int panels, panel_height; /* of a panel, if the height is 0; 0: a default */
    int columns, title_rows;  /* set by ng_figure_divide */
    int key_rows;             /* lines of a key below the panels */
    bool keep;
    ng_gnuplot *live; /* or NULL */
    ng_text data;     /* blocks of numbers, with two blank lines between them */
    ng_text script;   /* draws `data index 0` and so on in panels; the terminal is set */
} ng_figure;

/* Whether a figure can be drawn to the path, or in a window, and the settings fit. */
bool ng_figure_accepted(const ng_figure *figure);

/* Divides the width among the panels. */
void ng_figure_divide(ng_figure *figure);

/* Adds the commands that place the next panel; number `panels` is the key below them. */
void ng_figure_place(ng_figure *figure, int panel);

ng_status ng_figure_draw(const ng_figure *figure);

/* Whether half a second has passed since the live figure was drawn. */
bool ng_gnuplot_is_due(const ng_gnuplot *live);
void ng_gnuplot_end(ng_gnuplot *live);

/* Whether ng_watch has logged the series for a layer, whose path then has others. */
bool ng_is_watched(const ng_block *b, const char *series);

/* Draws what the history's live figure has not drawn yet. */
ng_status ng_plot_waiting(ng_history *history);

/* ---- Text and axes (text.c) ------------------------------------------------------------------ */

/* Returns the bytes of the first line of a text, which has at most `most` letters, and how many
 * letters it has. A line is broken at a blank if there is one. */
int64_t ng_line_bytes(const char *text, double most, int *letters);

/* Adds some bytes of a text in quotes, as they are: gnuplot reads nothing in them. What is no UTF-8
 * and no character of XML becomes U+FFFD. */
void ng_text_quote(ng_text *text, const char *from, int64_t bytes);

/* Adds the name of a file in this folder in quotes, with all its bytes. */
void ng_text_quote_file(ng_text *text, const char *name);

/* Adds "COMMAND 'TEXT' noenhanced", in lines of at most `most` letters. */
void ng_text_label(ng_text *text, const char *command, const char *label, double most);

/* Adds the range of the axis "x", "y" or "cb" and about `most` tics at round numbers with labels
 * that differ. A tight range ends with the values and has a tic at the first, if it is short. */
typedef struct {
    const char *name;
    double low, high;
    bool log, tight, as_text;
    double most;
} ng_axis;
void ng_text_axis(ng_text *text, ng_axis axis);

#endif
