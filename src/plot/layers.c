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

/* Returns the newest block with series of ng_watch, or NULL. */
static ng_block *watched_block(const ng_history *history)
{
    for (int64_t i = history->count - 1; i >= 0; i--) {
        ng_block *b = &history->blocks[i];
        for (int64_t k = 0; k < b->n_series && !b->real; k++)
            if (ng_is_watched(b, b->series[k])) return b;
    }
    return NULL;
}

static bool is_drawn_in(int which, double value)
{
    return isfinite(value) && (!images[which].log || value > 0);
}

/* The rows of an image, and the steps at which they were logged, after them the end of the last. */
typedef struct {
    int rows;
    bool drawn; /* there is a value to draw */
    double *steps;
    int64_t count;
} image;

static bool make_image(image *m, const ng_block *b, int which)
{
    bool *wanted = ng_calloc(layers_name, b->n_series, sizeof *wanted);
    m->steps = ng_calloc(layers_name, b->n_points + 1, sizeof *m->steps);
    const bool made = m->steps && wanted;
    for (int64_t k = 0; made && k < b->n_series; k++)
        m->rows += wanted[k] = is_of(b, k, images[which].statistic);
    for (int64_t i = 0; made && i < b->n_points; i++) {
        const ng_point *p = &b->points[i];
        const double step = (double)p->step;
        if (!wanted[p->series]) continue;
        m->drawn = m->drawn || is_drawn_in(which, p->value);
        if (m->count == 0 || step > m->steps[m->count - 1]) m->steps[m->count++] = step;
    }
    if (m->count > 0)
        m->steps[m->count] =
            m->steps[m->count - 1] + (m->count > 1 ? m->steps[1] - m->steps[0] : 1);
    ng_free(wanted);
    return made;
}

/* Prints the cells of a row: the ends of its columns of steps, the row, and the first value there
 * that can be drawn. Extends the range of the values. */
static void print_cells(ng_text *data, const ng_block *b, int64_t series, int row, int which,
                        const image *m, double range[2])
{
    const int64_t each = (m->count + COLUMNS - 1) / COLUMNS;
    int64_t at = 0, printed = -1;
    for (int64_t i = 0; i < b->n_points; i++) {
        const ng_point *p = &b->points[i];
        if (p->series != series || !is_drawn_in(which, p->value)) continue;
        while (m->steps[at] < (double)p->step) at++;
        const int64_t column = at / each, next = (column + 1) * each;
        if (column == printed) continue;
        printed = column;
        ng_text_print(data, "%.17g %.17g %d %.9g\n", m->steps[column * each],
                      m->steps[next < m->count ? next : m->count], row, p->value);
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

static void print_image(ng_figure *f, const ng_block *b, int which, const image *m, int index)
{
    ng_text *text = &f->script;
    const bool log = images[which].log;
    const double letters = f->width / f->columns / f->letter, first = m->steps[0],
                 last = m->steps[m->count];
    double range[2] = {HUGE_VAL, -HUGE_VAL};
    ng_figure_place(f, index);
    ng_text_label(text, "set title", images[which].title, letters);
    ng_text_print(text, "\nset yrange [%g:-0.5]\nset ytics font ',%d' (", m->rows - 0.5,
                  m->rows > 20 ? 8 : 10);
    for (int64_t k = 0, row = 0; k < b->n_series; k++) {
        if (!is_of(b, k, images[which].statistic)) continue;
        print_row_name(text, b->series[k], (int)row, letters / 3);
        print_cells(&f->data, b, k, (int)row++, which, m, range);
    }
    ng_text_print(text, ") noenhanced\n%sset logscale cb\n", log ? "" : "un");
    if (!log) range[0] = 0, range[1] = 1;
    ng_text_axis(text, (ng_axis){"x", first, last, .tight = true, .most = 5});
    ng_text_axis(text, (ng_axis){"cb", range[0], range[1], log, true, false, 6});
    /* Each cell reaches below the next ones, which are drawn later: no seams. */
    ng_text_print(
        text,
        "overlap = %.9g\nplot data index %d using 1:3:1:($2+overlap):($3-0.5):($3+0.55):4 "
        "with boxxyerror fs solid noborder lc palette\n",
        (last - first) / 200, index);
    ng_text_print(&f->data, "\n\n");
}

static ng_status draw_layers(ng_figure *f, const ng_block *b)
{
    image made[IMAGES] = {{0}};
    int most = 8, panels = 0;
    ng_status status = NG_OK;
    for (int i = 0; i < IMAGES && status == NG_OK; i++) {
        if (!make_image(&made[i], b, i)) status = NG_ENOMEM;
        f->panels += made[i].drawn;
        if (made[i].rows > most) most = made[i].rows;
    }
    if (status == NG_OK && f->panels == 0)
        status = ng_fail(NG_EVALUE, "%s: the layers have no value that can be drawn", layers_name);
    if (status == NG_OK) {
        f->panel_height = 110 + (most > 15 ? 14 : 20) * most;
        ng_figure_divide(f);
        ng_text_print(&f->script, "unset grid\nset key off\nset palette defined (0 '#440154', "
                                  "1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n"
                                  "set xlabel 'step'\n");
        for (int i = 0; i < IMAGES; i++)
            if (made[i].drawn) print_image(f, b, i, &made[i], panels++);
        status = ng_figure_draw(f);
    }
    for (int i = 0; i < IMAGES; i++) ng_free(made[i].steps);
    return status;
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
