/* ng_plot_watch: what ng_watch has logged, as images of layers by steps. */
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char layers_name[] = "ng_plot_watch";

/* The panels. */
enum { IMAGES = 4 };
static const struct {
    const char *statistic, *title;
    bool log;
} images[IMAGES] = {{"deviation", "Deviation of the output", true},
                    {"zeros", "Share of zeros in the output", false},
                    {"gradient", "Norm of the gradient", true},
                    {"ratio", "Update / weight", true}};

/* An image: one row for each series of a statistic, one column for each of `columns` steps. */
typedef struct {
    const ng_block *block;
    int64_t *series; /* of each row */
    int rows, columns;
    double first, width; /* the first step, and the steps of one column */
} image;

static bool is_of(const char *series, const char *statistic)
{
    const char *slash = strrchr(series, '/');
    return slash && strcmp(slash + 1, statistic) == 0;
}

/* Returns the newest block with series of ng_watch, or NULL. */
static const ng_block *watched_block(const ng_history *history)
{
    for (int64_t i = history->count - 1; i >= 0; i--)
        for (int64_t k = 0; k < history->blocks[i].n_series; k++)
            for (int s = 0; s < IMAGES; s++)
                if (is_of(history->blocks[i].series[k], images[s].statistic))
                    return &history->blocks[i];
    return NULL;
}

/* The first and the last step at which a layer was watched, and how many such steps there are. */
static void find_steps(image *m)
{
    enum { MOST = 120 };
    double last = 0, count = 0;
    for (int64_t i = 0; i < m->block->n_points; i++) {
        const ng_point *p = &m->block->points[i];
        if (!strchr(m->block->series[p->series], '/')) continue;
        if (count == 0) m->first = (double)p->step;
        if (count == 0 || (double)p->step != last) count++;
        last = (double)p->step;
    }
    m->columns = count < MOST ? (int)count : MOST;
    m->width = m->columns > 1 ? (last - m->first) / (m->columns - 1) : 1;
}

/* Prints the matrix. A step that lies between columns is in the nearest one; in a column of several
 * steps the last counts. */
static bool print_matrix(ng_text *data, const image *m, bool log)
{
    double *values = ng_calloc(layers_name, (int64_t)m->rows * m->columns, sizeof *values);
    int64_t *row_of = ng_calloc(layers_name, m->block->n_series, sizeof *row_of);
    for (int64_t i = 0; values && i < (int64_t)m->rows * m->columns; i++) values[i] = (double)NAN;
    for (int row = 0; row_of && row < m->rows; row++) row_of[m->series[row]] = row + 1;
    for (int64_t i = 0; values && row_of && i < m->block->n_points; i++) {
        const ng_point *p = &m->block->points[i];
        const int64_t row = row_of[p->series] - 1;
        const int column = (int)(((double)p->step - m->first) / m->width + 0.5);
        if (row >= 0 && isfinite(p->value) && (!log || p->value > 0))
            values[row * m->columns + column] = p->value;
    }
    for (int64_t i = 0; values && row_of && i < (int64_t)m->rows * m->columns; i++) {
        ng_text_print(data, isnan(values[i]) ? "NaN" : "%.5g", values[i]);
        ng_text_add(data, (i + 1) % m->columns == 0 ? "\n" : " ", 1);
    }
    ng_text_print(data, "\n\n");
    const bool printed = values && row_of;
    ng_free(values), ng_free(row_of);
    return printed;
}

static void print_image(ng_text *text, const image *m, int which, int index)
{
    ng_text_label(text, "title", images[which].title);
    ng_text_label(text, "xlabel", "step");
    ng_text_print(text, "%sset logscale cb\nset cbrange [%s]\nset format cb '%s'\n",
                  images[which].log ? "" : "un", images[which].log ? "*:*" : "0:1",
                  images[which].log ? "10^{%T}" : "%g");
    ng_text_print(text, "set xrange [%.9g:%.9g]\nset yrange [%g:-0.5]\nset ytics font ',%d' (",
                  m->first - m->width / 2, m->first + m->width * (m->columns - 0.5), m->rows - 0.5,
                  m->rows > 20 ? 8 : 10);
    for (int row = 0; row < m->rows; row++) {
        char name[256];
        const char *series = m->block->series[m->series[row]];
        snprintf(name, sizeof name, "%.*s", (int)(strrchr(series, '/') - series), series);
        if (row > 0) ng_text_print(text, ", ");
        ng_text_quote(text, name);
        ng_text_print(text, " %d", row);
    }
    ng_text_print(
        text,
        ") noenhanced\nplot data index %d matrix using (%.9g + $1 * %.9g):2:3 with image pixels\n",
        index, m->first, m->width);
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
    image m = {.block = watched_block(history)};
    if (!m.block)
        return ng_fail(NG_EVALUE, "%s: ng_watch has logged nothing in the history", layers_name);
    m.series = ng_calloc(layers_name, m.block->n_series, sizeof *m.series);
    if (!m.series) return NG_ENOMEM;
    find_steps(&m);
    const locale_t locale = ng_c_locale_begin();
    int most = 0;
    bool printed = true;
    ng_text_print(&f.script, "set tics nomirror out\nunset grid\nset palette defined (0 '#440154', "
                             "1 '#3b528b', 2 '#21918c', 3 '#5ec962', 4 '#fde725')\n");
    for (int i = 0; i < IMAGES && printed; i++) {
        m.rows = 0;
        for (int64_t k = 0; k < m.block->n_series; k++)
            if (is_of(m.block->series[k], images[i].statistic)) m.series[m.rows++] = k;
        if (m.rows == 0) continue;
        printed = print_matrix(&f.data, &m, images[i].log);
        print_image(&f.script, &m, i, f.panels++);
        if (m.rows > most) most = m.rows;
    }
    f.columns = f.panels == 1 ? 1 : 2;
    if (f.width == 0 && f.path && strcmp(f.path, "-") != 0) f.width = f.columns * 560;
    if (f.height == 0 && f.path && strcmp(f.path, "-") != 0)
        f.height = (f.panels + 1) / 2 * (110 + (most > 15 ? 14 : 20) * (most > 8 ? most : 8));
    ng_status status = NG_ENOMEM;
    if (printed)
        status = ng_figure_draw(&f);
    else
        ng_free(f.data.bytes), ng_free(f.script.bytes);
    ng_c_locale_end(locale);
    ng_free(m.series);
    return status;
}
