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
    int width, height;        /* 0: by the number of panels; set by the functions below */
    bool as_text;             /* then sizes are in characters */
    double letter, line;      /* the size of a character */
    int panels, panel_height; /* of a panel, if the height is 0; 0: a default */
    int columns, title_rows;  /* set by ng_figure_divide */
    int key_rows;             /* lines of a key below the panels */
    bool keep, live;
    ng_text data;   /* blocks of numbers, with two blank lines between them */
    ng_text axes;   /* sets axes0 and so on: for each panel the commands that depend on the data */
    ng_text script; /* draws the blocks `data(0) index at(0)` and so on; the terminal is set */
} ng_figure;

/* Begins a figure. False if none can be drawn to the path, or in a window. */
bool ng_figure_begin(ng_figure *figure);

/* Divides the width among the panels. */
void ng_figure_divide(ng_figure *figure);

/* Adds the commands that place the next panel; number `panels` is the key below them. */
void ng_figure_place(ng_figure *figure, int panel);

ng_status ng_figure_draw(const ng_figure *figure);

void ng_figure_free(ng_figure *figure);

/* A gnuplot that draws the figure in a file again and again. */
typedef struct {
    pid_t process;             /* 0: there is none */
    FILE *said, *out;          /* its standard error; and its output, if the figure is not live */
    char folder[32], path[40]; /* of the file */
} ng_gnuplot;

/* Shows a figure. The first call starts gnuplot, the last one waits for its end and adds what it
 * drew. After a failure there is no gnuplot. */
ng_status ng_gnuplot_show(ng_gnuplot *gnuplot, const ng_figure *figure, bool last, ng_text *drawn);

/* Whether a value can be drawn. gnuplot draws nothing from 9e307 on, or below 1e-308 on a
 * logarithmic axis, and needs some room. */
static inline bool ng_is_drawn(double value, bool log)
{
    return value >= (log ? 1e-300 : -1e300) && value <= 1e300;
}

/* Extends a range of values. */
static inline void ng_include(double range[2], double value)
{
    if (value < range[0]) range[0] = value;
    if (value > range[1]) range[1] = value;
}

/* ---- Text and axes (text.c) ------------------------------------------------------------------ */

/* Returns the bytes of the first line of a text, which has at most `most` letters, and how many
 * letters it has. A line is broken at a blank if there is one. */
int64_t ng_line_bytes(const char *text, double most, int *letters);

/* Adds some bytes of a text in quotes, as they are: gnuplot reads nothing in them. What is no UTF-8
 * and no character of XML becomes U+FFFD. */
void ng_text_quote(ng_text *text, const char *letters, int64_t bytes);

/* Adds the name of a file in this folder in quotes, with all its bytes. */
void ng_text_quote_file(ng_text *text, const char *name);

/* Adds "COMMAND 'TEXT' noenhanced", in lines of at most `most` letters. */
void ng_text_label(ng_text *text, const char *command, const char *label, double most);

/* Adds commands for the tics of the axis "x", "y" or "cb": what gnuplot does not choose well. On a
 * logarithmic axis this is also the range. */
typedef struct {
    const char *name;
    double low, high; /* of the values; low > high: there are none */
    bool log, as_text;
    bool whole;  /* no tics between whole numbers */
    double most; /* tics that have room; 0: gnuplot decides */
} ng_axis;
void ng_text_axis(ng_text *text, ng_axis axis);

#endif
