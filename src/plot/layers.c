/* ng_plot_watch: what ng_watch has logged, as images of layers by steps. */
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char layers_name[] = "ng_plot_watch";

/* The panels. */
enum { IMAGES = 4, COLUMNS = 120 };
static const struct {
    const char *statistic, *title;
    bool log;
} images[IMAGES] = {{"deviation", "Deviation of the output", true},
                    {"zeros", "Share of zeros in the output", false},
                    {"gradient", "Norm of the gradient", true},
                    {"ratio", "Update / weight", true}};

static bool is_of(const char *series, const char *statistic)
{
    const char *slash = strrchr(series, '/');
    return slash && strcmp(slash + 1, statistic) == 0;
}

/* How many series of the block have this statistic. */
static int count_rows(const ng_block *b, const char *statistic)
{
    int rows = 0;
    for (int64_t k = 0; k < b->n_series; k++) rows += is_of(b->series[k], statistic);
    return rows;
}

/* Returns the newest block with series of ng_watch, or NULL. */
static const ng_block *watched_block(const ng_history *history)
{
    for (int64_t i = history->count - 1; i >= 0; i--)
        for (int s = 0; s < IMAGES; s++)
            if (count_rows(&history->blocks[i], images[s].statistic) > 0)
                return &history->blocks[i];
    return NULL;
}

/* The steps of a column: those between the first two calls, or more for at most COLUMNS columns. */
static double column_width(const ng_block *b)
{
    const ng_point *first = &b->points[0], *last = &b->points[b->n_points - 1], *next = first;
    while (next < last && ng_same_place(b, first, next)) next++;
    const double gap = (double)(next->step - first->step);
    return fmax(1, fmax(gap, (double)(last->step - first->step) / COLUMNS));
}

/* Prints the step, the row and the value of a series; in a column of several steps the first.
 * Extends the range of the values. */
static void print_cells(ng_text *data, const ng_block *b, int64_t series, int row, bool log,
                        double range[2])
{
    const double width = column_width(b);
    double newest = -HUGE_VAL;
    for (int64_t i = 0; i < b->n_points; i++) {
        const ng_point *p = &b->points[i];
        if (p->series != series || (double)p->step < newest + width) continue;
        if (!isfinite(p->value) || (log && p->value <= 0)) continue;
        newest = (double)p->step;
        ng_text_print(data, "%lld %d %.5g\n", (long long)p->step, row, p->value);
        range[0] = fmin(range[0], p->value), range[1] = fmax(range[1], p->value);
    }
}

static void print_image(ng_figure *f, const ng_block *b, int which)
{
    ng_text *text = &f->script;
    const bool log = images[which].log;
    const int rows = count_rows(b, images[which].statistic);
    const double half = column_width(b) / 2;
    double range[2] = {HUGE_VAL, -HUGE_VAL};
    int row = 0;
    ng_text_label(text, "title", images[which].title);
    ng_text_print(text, "set xrange [%.9g:%.9g]\nset yrange [%g:-0.5]\nset ytics font ',%d' (",
                  (double)b->points[0].step - half, (double)b->points[b->n_points - 1].step + half,
                  rows - 0.5, rows > 20 ? 8 : 10);
    for (int64_t k = 0; k < b->n_series; k++) {
        char name[256];
        const char *series = b->series[k];
        if (!is_of(series, images[which].statistic)) continue;
        snprintf(name, sizeof name, "%.*s", (int)(strrchr(series, '/') - series), series);
        if (row > 0) ng_text_print(text, ", ");
        ng_text_quote(text, name);
        ng_text_print(text, " %d", row);
        print_cells(&f->data, b, k, row++, log, range);
    }
    ng_text_print(text, ") noenhanced\n");
    if (range[0] > range[1]) return; /* no value */
    if (!log) range[0] = 0, range[1] = 1;
    if (range[0] == range[1]) range[0] /= 2, range[1] *= 2;
    ng_text_print(&f->data, "\n\n");
    ng_text_print(text,
                  "%sset logscale cb\nset cbrange [%.5g:%.5g]\nset format cb '%s'\nplot data index "
                  "%d using 1:2:(%.9g):(0.55):3 with boxxyerror fs solid noborder lc palette\n",
                  log ? "" : "un", range[0], range[1], log ? "10^{%T}" : "%g", f->panels++,
                  1.1 * half); /* no seams */
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
    f.data.function = f.script.function = layers_name;
    if (!ng_figure_accepted(&f)) return ng_newest_status();
    const ng_block *b = watched_block(history);
    if (!b)
        return ng_fail(NG_EVALUE, "%s: ng_watch has logged nothing in the history", layers_name);
    const locale_t locale = ng_c_locale_begin();
    int most = 8;
    ng_text_print(&f.script, "unset grid\nset key off\nset palette defined (0 '#440154', "
                             "1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n");
    ng_text_label(&f.script, "xlabel", "step");
    ng_text_tics(&f.script, (double)b->points[0].step, (double)b->points[b->n_points - 1].step, 4);
    for (int i = 0; i < IMAGES; i++) {
        const int rows = count_rows(b, images[i].statistic);
        if (rows > 0) print_image(&f, b, i);
        if (rows > most) most = rows;
    }
    f.columns = f.panels > 1 ? 2 : 1;
    if (f.height == 0 && f.path && strcmp(f.path, "-") != 0)
        f.height = (f.panels + 1) / 2 * (110 + (most > 15 ? 14 : 20) * most);
    ng_status status = NG_OK;
    if (f.panels == 0)
        status = ng_fail(NG_EVALUE, "%s: the layers have no value that can be drawn", layers_name);
    else
        status = ng_figure_draw(&f);
    ng_c_locale_end(locale);
    ng_free(f.data.bytes), ng_free(f.script.bytes);
    return status;
}
