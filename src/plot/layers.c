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

static bool is_of(const ng_block *b, int64_t series, const char *statistic)
{
    const char *slash = strrchr(b->series[series], '/');
    return slash && strcmp(slash, statistic) == 0 && ng_is_watched(b, b->series[series]);
}

/* How many series of the block have this statistic. */
static int count_rows(const ng_block *b, const char *statistic)
{
    int rows = 0;
    for (int64_t k = 0; k < b->n_series; k++) rows += is_of(b, k, statistic);
    return rows;
}

/* Returns the newest block with series of ng_watch, or NULL. */
static ng_block *watched_block(const ng_history *history)
{
    for (int64_t i = history->count - 1; i >= 0; i--)
        for (int s = 0; s < IMAGES; s++)
            if (!history->blocks[i].real &&
                count_rows(&history->blocks[i], images[s].statistic) > 0)
                return &history->blocks[i];
    return NULL;
}

/* Returns the steps at which a series of the statistic was logged, the end of the last one after
 * them, and how many they are; NULL without memory. */
static double *steps_of(const ng_block *b, const char *statistic, int64_t *count)
{
    double *steps = ng_calloc(layers_name, b->n_points + 1, sizeof *steps);
    bool *wanted = ng_calloc(layers_name, b->n_series, sizeof *wanted);
    *count = 0;
    for (int64_t k = 0; wanted && k < b->n_series; k++) wanted[k] = is_of(b, k, statistic);
    for (int64_t i = 0; steps && wanted && i < b->n_points; i++) {
        const double step = (double)b->points[i].step;
        if (!wanted[b->points[i].series]) continue;
        if (*count == 0 || step > steps[*count - 1]) steps[(*count)++] = step;
    }
    const bool made = steps && wanted && *count > 0;
    if (made) steps[*count] = steps[*count - 1] + (*count > 1 ? steps[1] - steps[0] : 1);
    ng_free(wanted);
    if (!made) ng_free(steps);
    return made ? steps : NULL;
}

/* Prints the cells of a row: the ends of its columns of steps, the row, and the first value there
 * that can be drawn. Extends the range of the values. */
static void print_cells(ng_text *data, const ng_block *b, int64_t series, int row, bool log,
                        const double *steps, int64_t count, double range[2])
{
    const int64_t each = (count + COLUMNS - 1) / COLUMNS;
    int64_t at = 0, printed = -1;
    for (int64_t i = 0; i < b->n_points; i++) {
        const ng_point *p = &b->points[i];
        if (p->series != series || !isfinite(p->value) || (log && p->value <= 0)) continue;
        while (steps[at] < (double)p->step) at++;
        const int64_t column = at / each, next = (column + 1) * each;
        if (column == printed) continue;
        printed = column;
        ng_text_print(data, "%.17g %.17g %d %.9g\n", steps[column * each],
                      steps[next < count ? next : count], row, p->value);
        range[0] = fmin(range[0], p->value), range[1] = fmax(range[1], p->value);
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

static void print_image(ng_figure *f, const ng_block *b, int which, int index)
{
    ng_text *text = &f->script;
    const bool log = images[which].log;
    const int rows = count_rows(b, images[which].statistic);
    const double letters = f->width / f->columns / f->letter;
    double range[2] = {HUGE_VAL, -HUGE_VAL};
    int64_t count;
    double *steps = steps_of(b, images[which].statistic, &count);
    if (!steps) {
        text->failed = true;
        return;
    }
    ng_figure_place(f, index);
    ng_text_label(text, "set title", images[which].title, letters);
    ng_text_print(text, "\nset yrange [%g:-0.5]\nset ytics font ',%d' (", rows - 0.5,
                  rows > 20 ? 8 : 10);
    for (int64_t k = 0, row = 0; k < b->n_series; k++) {
        if (!is_of(b, k, images[which].statistic)) continue;
        print_row_name(text, b->series[k], (int)row, letters / 3);
        print_cells(&f->data, b, k, (int)row++, log, steps, count, range);
    }
    ng_text_print(text, ") noenhanced\n%sset logscale cb\n", log ? "" : "un");
    if (!log || range[0] > range[1]) range[0] = log ? 1 : 0, range[1] = 1;
    ng_text_axis(text, (ng_axis){"x", steps[0], steps[count], .tight = true, .most = 5});
    ng_text_axis(text, (ng_axis){"cb", range[0], range[1], log, true, false, 6});
    /* Each cell reaches below the next ones, which are drawn later: no seams. */
    ng_text_print(
        text,
        "overlap = %.9g\nplot data index %d using 1:3:1:($2+overlap):($3-0.5):($3+0.55):4 "
        "with boxxyerror fs solid noborder lc palette\n",
        (steps[count] - steps[0]) / 200, index);
    ng_text_print(&f->data, "\n\n");
    ng_free(steps);
}

/* Whether the statistic has a value that can be drawn. */
static bool has_image(const ng_block *b, int which)
{
    for (int64_t i = 0; i < b->n_points; i++) {
        const ng_point *p = &b->points[i];
        if (isfinite(p->value) && (!images[which].log || p->value > 0) &&
            is_of(b, p->series, images[which].statistic))
            return true;
    }
    return false;
}

static ng_status draw_layers(ng_figure *f, const ng_block *b)
{
    int most = 8, panels = 0;
    for (int i = 0; i < IMAGES; i++) {
        const int rows = count_rows(b, images[i].statistic);
        if (has_image(b, i)) f->panels++;
        if (rows > most) most = rows;
    }
    if (f->panels == 0)
        return ng_fail(NG_EVALUE, "%s: the layers have no value that can be drawn", layers_name);
    f->panel_height = 110 + (most > 15 ? 14 : 20) * most;
    ng_figure_divide(f);
    ng_text_print(&f->script, "unset grid\nset key off\nset palette defined (0 '#440154', "
                              "1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n"
                              "set xlabel 'step'\n");
    for (int i = 0; i < IMAGES; i++)
        if (has_image(b, i)) print_image(f, b, i, panels++);
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
                   .keep = options.keep,
                   .data.function = layers_name,
                   .script.function = layers_name};
    if (!ng_figure_accepted(&f) || ng_plot_waiting(history) != NG_OK) return ng_newest_status();
    if (f.path && strcmp(f.path, "-") == 0)
        return ng_fail(NG_EVALUE, "%s: the path is \"-\", but text has no colours", layers_name);
    ng_block *b = watched_block(history);
    if (!b)
        return ng_fail(NG_EVALUE, "%s: ng_watch has logged nothing in the history", layers_name);
    ng_block_sort(b);
    const locale_t locale = ng_c_locale_begin();
    const ng_status status = draw_layers(&f, b);
    ng_c_locale_end(locale);
    ng_free(f.data.bytes), ng_free(f.script.bytes);
    return status;
}
