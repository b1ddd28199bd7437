/* ng_plot_watch: what ng_watch has logged, as images of layers by steps. */
#include "plot/plot.h"
#include <math.h>
#include <string.h>

static const char layers_name[] = "ng_plot_watch";

/* The panels. */
enum { IMAGES = 4, COLUMNS = 120 };
static const struct {
    const char *statistic, *title;
    bool log;
} images[IMAGES] = {{"/deviation", "Deviation of the output", true},
                    {"/zeros", "Share of zeros in the output", false},
                    {"/gradient", "Norm of the gradient", true},
                    {"/ratio", "Update / weight", true}};

/* Returns the newest block with series of ng_watch, or NULL. */
static ng_block *watched_block(const ng_history *history)
{
    for (int64_t i = history->count - 1; i >= 0; i--) {
        ng_block *b = &history->blocks[i];
        for (int64_t k = 0; k < b->n_series && !b->real; k++)
            if (b->series[k].kind == NG_SERIES_LAYER) return b;
    }
    return NULL;
}

/* Whether the series is a row of an image. */
static bool is_row(const ng_series *s, int which)
{
    const char *slash = strrchr(s->name, '/');
    return s->kind == NG_SERIES_LAYER && slash && strcmp(slash, images[which].statistic) == 0;
}

static bool is_cell(int which, const ng_point *p)
{
    return ng_is_drawn(p->value, images[which].log);
}

/* Returns how many rows an image has, or 0 if it has no value that can be drawn. */
static int count_rows(const ng_block *b, int which)
{
    int rows = 0;
    bool drawn = false;
    for (int64_t k = 0; k < b->n_series; k++) {
        const ng_series *s = &b->series[k];
        if (!is_row(s, which)) continue;
        rows++;
        for (int64_t i = 0; i < s->n_points && !drawn; i++) drawn = is_cell(which, &s->points[i]);
    }
    return drawn ? rows : 0;
}

/* Prints the cells of a row: the ends of its columns of steps, the row, and the first value there
 * that can be drawn. Extends the range of the steps. */
static void print_cells(ng_text *data, const ng_series *s, int row, int which, double steps[2])
{
    const int64_t n = s->n_points, each = (n + COLUMNS - 1) / COLUMNS;
    const ng_point *p = s->points;
    for (int64_t begin = 0; begin < n; begin += each) {
        const int64_t next = begin + each;
        const double last = n > 1 ? (double)(p[1].step - p[0].step) : 1,
                     first = (double)p[begin].step,
                     end = next < n ? (double)p[next].step : (double)p[n - 1].step + last;
        int64_t i = begin;
        while (i < n && i < next && !is_cell(which, &p[i])) i++;
        steps[0] = fmin(steps[0], first), steps[1] = fmax(steps[1], end);
        if (i < n && i < next)
            ng_text_print(data, "%.17g %.17g %d %.9g\n", first, end, row, p[i].value);
    }
}

/* Adds the name of a row: the end of the layer's path, if it is long. */
static void print_row_name(ng_text *text, const char *series, int row, double most)
{
    const char *slash = strrchr(series, '/');
    const bool cut = (double)(slash - series) > most;
    if (cut) series = slash - (int)most + 3;
    ng_text_print(text, "%s'%s%.*s' %d", row > 0 ? ", " : "", cut ? "..." : "",
                  (int)(slash - series), series, row);
}

static void print_image(ng_figure *f, const ng_block *b, int which, int rows, int panel)
{
    ng_text *text = &f->script;
    const double letters = f->width / f->columns / f->letter;
    double steps[2] = {HUGE_VAL, -HUGE_VAL};
    int row = 0;
    ng_figure_place(f, panel);
    ng_text_label(text, "set title", images[which].title);
    ng_text_print(text, "\nset yrange [%g:-0.5]\nset ytics font ',%d' (", rows - 0.45,
                  rows > 20 ? 8 : 10);
    for (int64_t k = 0; k < b->n_series; k++) {
        if (!is_row(&b->series[k], which)) continue;
        print_row_name(text, b->series[k].name, row, letters / 3);
        print_cells(&f->data, &b->series[k], row++, which, steps);
    }
    ng_text_print(&f->data, "\n\n");
    ng_text_print(text, ") noenhanced\n%s\n",
                  images[which].log ? "set cbrange [*:*]\nset logscale cb"
                                    : "unset logscale cb\nset cbrange [0:1]");
    ng_text_format(text, "cb", images[which].log, false);
    ng_text_x_tics(f, steps[0], steps[1], true);
    /* Each cell reaches below the next ones, which are drawn later: no seams. gnuplot finds the
     * range of colours among the cells that are whole. */
    const double overlap = (steps[1] - steps[0]) / 200;
    ng_text_print(text,
                  "set xrange [%.17g:%.17g]\n"
                  "plot data index %d using 1:3:1:($2+%.17g):($3-0.5):($3+0.55):4 "
                  "with boxxyerror fs solid noborder lc palette\n",
                  steps[0], steps[1] + 1.01 * overlap, panel, overlap);
}

static ng_status draw_layers(ng_figure *f, ng_block *b)
{
    int rows[IMAGES], most = 8, panel = 0;
    for (int64_t k = 0; k < b->n_series; k++) ng_series_sort(&b->series[k]);
    for (int i = 0; i < IMAGES; i++) {
        rows[i] = count_rows(b, i);
        f->panels += rows[i] > 0;
        if (rows[i] > most) most = rows[i];
    }
    if (f->panels == 0)
        return ng_fail(NG_EVALUE,
                       "%s: ng_watch has logged no gradient, output or update that can be drawn",
                       layers_name);
    f->panel_height = 110 + (most > 15 ? 14 : 20) * most;
    ng_figure_divide(f);
    ng_text_print(&f->script, "unset grid\nset key off\nset palette defined (0 '#440154', "
                              "1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n"
                              "set xlabel 'step'\n");
    for (int i = 0; i < IMAGES; i++)
        if (rows[i] > 0) print_image(f, b, i, rows[i], panel++);
    return ng_figure_draw(f);
}

ng_status ng_plot_watch_with(ng_history *history, ng_plot_watch_options options)
{
    if (!ng_given(layers_name, "history", history)) return ng_newest_status();
    ng_figure f = {.function = layers_name,
                   .path = options.path,
                   .title = options.title,
                   .width = options.width,
                   .height = options.height,
                   .keep = options.keep};
    if (!ng_figure_begin(&f)) return ng_newest_status();
    if (f.path && strcmp(f.path, "-") == 0)
        return ng_fail(NG_EVALUE, "%s: the path is \"-\", but text has no colours", layers_name);
    ng_block *b = watched_block(history);
    if (!b)
        return ng_fail(NG_EVALUE, "%s: ng_watch has logged nothing in the history", layers_name);
    const locale_t locale = ng_c_locale_begin();
    const ng_status status = draw_layers(&f, b);
    ng_c_locale_end(locale);
    ng_figure_free(&f);
    return status;
}
