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

/* Prints the cells of a row: the ends of each in steps, the row and the value. Extends the range of
 * the steps. */
static void print_cells(ng_text *data, const ng_series *s, int row, bool log, double steps[2])
{
    const int64_t n = s->n_points, each = (n + COLUMNS - 1) / COLUMNS;
    const ng_point *p = s->points;
    const double last = n > 1 ? (double)(p[1].step - p[0].step) : 1;
    for (int64_t i = 0; i < n; i += each) {
        const double begin = (double)p[i].step;
        const double end = i + each < n ? (double)p[i + each].step : (double)p[n - 1].step + last;
        steps[0] = fmin(steps[0], begin), steps[1] = fmax(steps[1], end);
        if (ng_is_drawn(p[i].value, log))
            ng_text_print(data, "%.17g %.17g %d %.9g\n", begin, end, row, p[i].value);
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

/* Prints an image. False if it has no value that can be drawn. */
static bool print_image(ng_figure *f, const ng_block *b, int which, int rows)
{
    const bool log = images[which].log;
    const int64_t before = f->data.count;
    ng_text *text = &f->script;
    double steps[2] = {HUGE_VAL, -HUGE_VAL};
    int row = 0;
    ng_figure_place(f, which);
    ng_text_label(text, "set title", images[which].title);
    ng_text_print(text, "\nset yrange [%g:-0.5]\nset ytics font ',%d' (", rows - 0.45,
                  rows > 20 ? 8 : 10);
    for (const ng_series *s = b->series; s < b->series + b->n_series; s++) {
        if (!is_row(s, which)) continue;
        print_row_name(text, s->name, row, f->width / f->columns / f->letter / 3);
        print_cells(&f->data, s, row++, log, steps);
    }
    const bool drawn = f->data.count > before;
    ng_text_print(&f->data, drawn ? "\n\n" : "NaN\n\n\n");
    ng_text_print(text, ") noenhanced\n%s\n",
                  log ? "set cbrange [*:*]\nset logscale cb"
                      : "unset logscale cb\nset cbrange [0:1]");
    ng_text_format(text, "cb", log, false);
    if (!drawn) return ng_text_print(text, "plot [1:2] [1:2] NaN\n"), false;
    ng_text_x_tics(f, steps[0], steps[1], true);
    /* Each cell reaches below the next ones, which are drawn later: no seams. gnuplot finds the
     * range of colours among the cells that are whole. */
    const double overlap = (steps[1] - steps[0]) / 200;
    ng_text_print(text,
                  "set xrange [%.17g:%.17g]\n"
                  "plot $data index %d using 1:3:1:($2+%.17g):($3-0.5):($3+0.55):4 "
                  "with boxxyerror fs solid noborder lc palette\n",
                  steps[0], steps[1] + 1.01 * overlap, which, overlap);
    return true;
}

static ng_status draw_layers(ng_figure *f, const ng_block *b)
{
    bool drawn = false;
    int rows[IMAGES] = {0}, most = 8;
    for (ng_series *s = b->series; s < b->series + b->n_series; s++) {
        ng_series_sort(s);
        for (int i = 0; i < IMAGES; i++) rows[i] += is_row(s, i);
    }
    for (int i = 0; i < IMAGES; i++) most = rows[i] > most ? rows[i] : most;
    f->panels = IMAGES;
    f->panel_height = 110 + (most > 15 ? 14 : 20) * most;
    if (!ng_figure_begin(f)) return ng_newest_status();
    ng_text_print(&f->script, "unset grid\nset key off\nset palette defined (0 '#440154', "
                              "1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n"
                              "set xlabel 'step'\n");
    for (int i = 0; i < IMAGES; i++) drawn = print_image(f, b, i, rows[i]) || drawn;
    if (drawn) return ng_figure_draw(f);
    return ng_fail(NG_EVALUE, "%s: nothing of what ng_watch has logged can be drawn", layers_name);
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
