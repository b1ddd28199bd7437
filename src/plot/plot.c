/* ng_plot: from histories to panels of curves. */
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char plot_name[] = "ng_plot";

/* The colours and the marks of curves; then the same with the next dash, and the other mark. */
enum { COLOURS = 6, DASHES = 5 };
static const struct {
    const char *colour;
    int mark;
} looks[COLOURS] = {{"0072b2", 5},  {"e69f00", 7},  {"009e73", 9},
                    {"cc79a7", 11}, {"000000", 13}, {"d55e00", 15}};

/* A series of a block, known by indexes, since arrays move while a live figure is shown. */
typedef struct {
    const ng_history *history;
    const char *source; /* the history's name, or NULL */
    int64_t block, series;
    int64_t low, high; /* of the band; -1: there is none */
    const char *lacks; /* what its values lack, or NULL: it can be drawn */
    int panel;
    int look;  /* the same in all panels for a block */
    int index; /* of its numbers in the data */
} curve;

typedef struct {
    const ng_plot_options *options;
    bool log_x, log_y;
    int smooth;
    curve *curves;
    int64_t count, room;
    const char **names; /* of the series that are drawn, each once */
    int64_t n_names, names_room;
    int n_looks;
    bool many_blocks, many_sources; /* their names differ */
} plot;

/* ---- Which curves --------------------------------------------------------------------------- */

static ng_block *block_of(const curve *c) { return &c->history->blocks[c->block]; }

static const ng_series *series_of(const curve *c) { return &block_of(c)->series[c->series]; }

static bool has_band(const curve *c) { return c->low >= 0 && c->high >= 0; }

/* Returns the series whose name has `length` bytes of this one and an ending, or -1. */
static int64_t find_companion(const ng_block *b, const char *name, size_t length,
                              const char *ending)
{
    for (int64_t k = 0; k < b->n_series; k++)
        if (strncmp(b->series[k].name, name, length) == 0 &&
            strcmp(b->series[k].name + length, ending) == 0)
            return k;
    return -1;
}

/* Whether the series is an end of another one's band. */
static bool is_band(const ng_block *b, const char *name)
{
    const char *end = strrchr(name, '_');
    if (!end || (strcmp(end, "_low") != 0 && strcmp(end, "_high") != 0)) return false;
    const size_t length = (size_t)(end - name);
    return find_companion(b, name, length, "") >= 0 &&
           find_companion(b, name, length, "_low") >= 0 &&
           find_companion(b, name, length, "_high") >= 0;
}

static bool is_wanted(const plot *p, const ng_block *b, const ng_series *series)
{
    const char *const *wanted = p->options->series;
    if (!wanted)
        return series->kind == NG_SERIES_CURVE && !(p->options->band && is_band(b, series->name));
    while (*wanted && strcmp(*wanted, series->name) != 0) wanted++;
    return *wanted != NULL;
}

/* The index of a name among those that are drawn, or n_names. */
static int64_t find_name(const plot *p, const char *name)
{
    int64_t i = 0;
    while (i < p->n_names && strcmp(p->names[i], name) != 0) i++;
    return i;
}

/* Returns what keeps a series from being drawn, or NULL. */
static const char *what_lacks(const plot *p, const ng_series *series)
{
    bool finite = false;
    for (int64_t i = 0; i < series->n_points; i++) {
        const ng_point *point = &series->points[i];
        finite = finite || ng_is_drawn(point->value, false);
        if (ng_is_drawn(point->value, p->log_y) &&
            ng_is_drawn(ng_place(series->real, point), p->log_x))
            return NULL;
    }
    return finite ? "no positive value" : "no finite value";
}

/* The look of another panel's curve of the same block, or the next one. */
static int choose_look(plot *p, const curve *c)
{
    for (int64_t i = 0; p->options->panels && i < p->count; i++)
        if (block_of(&p->curves[i]) == block_of(c)) return p->curves[i].look;
    return p->n_looks++;
}

static bool names_differ(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) != 0 : a != b;
}

static bool add_curve(plot *p, curve c)
{
    ng_block *b = block_of(&c);
    const char *name = b->series[c.series].name;
    const int64_t index = find_name(p, name);
    if (index == p->n_names) {
        if (!NG_RESERVE(plot_name, p->names, p->n_names, p->names_room)) return false;
        p->names[p->n_names++] = name;
    }
    if (!NG_RESERVE(plot_name, p->curves, p->count, p->room)) return false;
    c.panel = p->options->panels ? (int)index : 0;
    c.low = p->options->band ? find_companion(b, name, strlen(name), "_low") : -1;
    c.high = p->options->band ? find_companion(b, name, strlen(name), "_high") : -1;
    c.lacks = what_lacks(p, &b->series[c.series]);
    c.look = choose_look(p, &c);
    p->curves[p->count++] = c;
    p->many_blocks = p->many_blocks || names_differ(b->name, block_of(p->curves)->name);
    p->many_sources = p->many_sources || names_differ(c.source, p->curves->source);
    return true;
}

static bool add_curves(plot *p, const ng_history *history, const char *source)
{
    for (int64_t i = 0; i < history->count; i++) {
        ng_block *b = &history->blocks[i];
        for (int64_t k = 0; k < b->n_series; k++) {
            ng_series_sort(&b->series[k]);
            if (is_wanted(p, b, &b->series[k]) &&
                !add_curve(p, (curve){history, source, .block = i, .series = k}))
                return false;
        }
    }
    return true;
}

/* Whether there is a curve that can be drawn. */
static bool has_curve(const plot *p)
{
    for (int64_t i = 0; i < p->count; i++)
        if (!p->curves[i].lacks) return true;
    if (p->count == 0)
        ng_fail(NG_EVALUE, "%s: nothing is logged in the history, or only what ng_plot_watch draws",
                plot_name);
    else
        ng_fail(NG_EVALUE, "%s: the series \"%s\" has %s", plot_name, series_of(p->curves)->name,
                p->curves->lacks);
    return false;
}

static bool collect_curves(plot *p, const ng_history *history)
{
    const ng_plot_options *o = p->options;
    const bool several = o->histories && o->histories[0];
    for (int i = 0; i == 0 || (several && o->histories[i - 1]); i++) {
        const ng_history *h = i == 0 ? history : o->histories[i - 1];
        const char *source = o->names ? o->names[i] : several ? h->what : NULL;
        if (o->names && !source)
            return ng_fail(NG_EVALUE, "%s: .names ends before the histories", plot_name), false;
        if (!add_curves(p, h, source)) return false;
    }
    for (int i = 0; o->series && o->series[i]; i++)
        if (find_name(p, o->series[i]) == p->n_names)
            return ng_fail(NG_EVALUE, "%s: there is no series \"%s\" in the history", plot_name,
                           o->series[i]),
                   false;
    return has_curve(p);
}

/* ---- The numbers ---------------------------------------------------------------------------- */

/* What a curve shows at a place: the value and the ends of its band. */
typedef struct {
    double x, y[3];
    double sum; /* during smooth_rows */
    bool kept;  /* of many, by keep_extremes */
} plot_row;

/* gnuplot cannot draw a range of numbers this small. */
static double flushed(double value) { return fabs(value) < 1e-300 ? 0 : value; }

/* Returns a row for each value of the series, and how many; NULL without memory. */
static plot_row *curve_rows(const plot *p, const curve *c, int64_t *count)
{
    ng_block *b = block_of(c);
    const int64_t columns[] = {c->series, c->low, c->high};
    int64_t next[3] = {0};
    for (int k = 0; k < 3; k++)
        if (columns[k] >= 0) ng_series_sort(&b->series[columns[k]]);
    const ng_series *s = series_of(c);
    plot_row *rows = ng_calloc(plot_name, s->n_points + 1, sizeof *rows);
    *count = 0;
    for (int64_t i = 0; rows && i < s->n_points; i++) {
        const ng_point *p0 = &s->points[i];
        plot_row row = {.x = flushed(ng_place(b->real, p0))};
        for (int k = 0; k < 3; k++) {
            const ng_series *column = columns[k] >= 0 ? &b->series[columns[k]] : NULL;
            while (column && next[k] < column->n_points &&
                   ng_compare_places(b->real, &column->points[next[k]], p0) < 0)
                next[k]++;
            const bool logged = column && next[k] < column->n_points &&
                                ng_compare_places(b->real, &column->points[next[k]], p0) == 0;
            row.y[k] = logged ? flushed(column->points[next[k]].value) : (double)NAN;
        }
        if (ng_is_drawn(row.x, p->log_x)) rows[(*count)++] = row;
    }
    return rows;
}

/* Replaces a column by the mean of the last `n` values, back to one that is not drawn. A window is
 * the end of a block of n rows and the begin of the next: nothing is subtracted, so that no outlier
 * leaves an error behind it. */
static void smooth_rows(plot_row *rows, int64_t count, int64_t n, int k, bool log)
{
    int64_t first = 0;
    double sum = 0;
    for (int64_t i = count - 1; i >= 0; i--)
        rows[i].sum = rows[i].y[k] + (i + 1 < count && (i + 1) % n != 0 ? rows[i + 1].sum : 0);
    for (int64_t i = 0; i < count; i++) {
        if (i % n == 0) sum = 0;
        if (!ng_is_drawn(rows[i].y[k], log)) {
            first = i + 1, sum = 0;
            continue;
        }
        if (i - n + 1 > first) first = i - n + 1;
        sum += rows[i].y[k];
        rows[i].y[k] = (first < i - i % n ? sum + rows[first].sum : sum) / (double)(i - first + 1);
    }
}

/* The column of pixels of a row. */
static double column_of(const plot_row *rows, int64_t count, double x, bool log_x, double columns)
{
    const double low = rows[0].x, high = rows[count - 1].x;
    return floor(columns * (log_x ? log(x / low) / log(high / low) : (x - low) / (high - low)));
}

/* Keeps what a line through all rows shows: in each column of pixels the first and the last row,
 * the lowest and the highest values, and an interruption. */
static void keep_extremes(const plot *p, plot_row *rows, int64_t count, double columns)
{
    for (int64_t i = 0, end = 1; i < count; i = end++) {
        const double column = column_of(rows, count, rows[i].x, p->log_x, columns);
        while (end < count && column_of(rows, count, rows[end].x, p->log_x, columns) == column)
            end++;
        rows[i].kept = rows[end - 1].kept = true;
        for (int k = 0; k < 3; k++) {
            plot_row *low = NULL, *high = NULL, *gap = NULL;
            for (plot_row *r = &rows[i]; r < &rows[end]; r++)
                if (!ng_is_drawn(r->y[k], p->log_y)) {
                    if (!gap) gap = r;
                } else {
                    if (!low || r->y[k] < low->y[k]) low = r;
                    if (!high || r->y[k] > high->y[k]) high = r;
                }
            if (low) low->kept = high->kept = true;
            if (gap) gap->kept = true;
        }
    }
}

/* Names the curve: by all that it is, or by what distinguishes it from the others. */
static void print_name(ng_text *text, const plot *p, const curve *c, bool whole)
{
    const char *series = series_of(c)->name;
    const char *parts[] = {p->many_sources || whole ? c->source : NULL,
                           p->many_blocks || whole ? block_of(c)->name : NULL,
                           whole || (p->n_names > 1 && !p->options->panels) ? series : NULL};
    const int64_t begin = text->count;
    for (int i = 0; i < 3; i++)
        if (parts[i]) ng_text_print(text, "%s%s", text->count > begin ? ", " : "", parts[i]);
    if (text->count == begin) ng_text_print(text, "%s", series);
}

/* The ranges of a panel. */
typedef struct {
    double x[2], y[2];
} plot_range;

/* Prints a block of numbers: x, the value, and the ends of the band. NaN interrupts the curve, and
 * the band. */
static void print_rows(ng_figure *f, const plot *p, const curve *c, plot_row *rows, int64_t count,
                       plot_range *range)
{
    const double columns = (double)f->width / f->columns;
    const bool thin = (double)count > 4 * columns;
    if (thin) keep_extremes(p, rows, count, columns);
    for (int64_t i = 0; i < count; i++) {
        const plot_row *r = &rows[i];
        if (thin && !r->kept) continue;
        const bool drawn = ng_is_drawn(r->y[0], p->log_y);
        const bool band = drawn && ng_is_drawn(r->y[1], p->log_y) && ng_is_drawn(r->y[2], p->log_y);
        ng_text_print(&f->data, "%.15g", r->x);
        ng_include(range->x, r->x);
        for (int k = 0; k < (has_band(c) ? 3 : 1); k++) {
            const bool shown = k == 0 ? drawn : band;
            if (shown) ng_include(range->y, r->y[k]);
            char number[32];
            snprintf(number, sizeof number, "%.12g", r->y[k]);
            ng_text_print(&f->data, " %s", shown ? number : "NaN");
        }
        ng_text_print(&f->data, "\n");
    }
    ng_text_print(&f->data, "\n\n");
}

/* Prints the numbers of a curve as one block, and after them the smoothed ones as another. */
static void print_curve(ng_figure *f, const plot *p, const curve *c, plot_range *range)
{
    ng_text name = {.function = plot_name};
    int64_t count;
    plot_row *rows = curve_rows(p, c, &count);
    print_name(&name, p, c, true);
    f->data.failed = f->data.failed || name.failed || !rows;
    for (char *letter = name.bytes; letter && *letter; letter++)
        if (*letter == '\n' || *letter == '\r') *letter = ' ';
    for (int part = 0; !f->data.failed && part < (p->smooth > 0 ? 2 : 1); part++) {
        ng_text_print(&f->data, "# %s", name.bytes);
        if (part == 1) ng_text_print(&f->data, ", mean of %d", p->smooth);
        ng_text_print(&f->data, "\n");
        for (int k = 0; part == 1 && k < 3; k++) smooth_rows(rows, count, p->smooth, k, p->log_y);
        print_rows(f, p, c, rows, count, range);
    }
    ng_free(name.bytes), ng_free(rows);
}

/* Prints the numbers of all curves, and the axes of all panels. */
static void print_data(plot *p, ng_figure *f)
{
    const double width = (double)f->width / f->columns,
                 height = (double)f->height / f->panels * f->columns;
    int index = 0;
    f->data.count = f->axes.count = 0;
    for (int panel = 0; panel < f->panels; panel++) {
        plot_range range = {{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}};
        bool whole = false;
        for (int64_t i = 0; i < p->count; i++) {
            curve *c = &p->curves[i];
            if (c->panel != panel || c->lacks) continue;
            whole = !block_of(c)->real;
            c->index = index, index += p->smooth > 0 ? 2 : 1;
            print_curve(f, p, c, &range);
        }
        ng_text_print(&f->axes, "axes%d = \"", panel);
        ng_text_axis(&f->axes, (ng_axis){"x", range.x[0], range.x[1], p->log_x, f->as_text, whole,
                                         fmax(2, fmin(8, width / f->letter / 9 - 1))});
        ng_text_axis(&f->axes, (ng_axis){"y", range.y[0], range.y[1], p->log_y, f->as_text, false,
                                         f->as_text ? height / 2.5 : 0});
        ng_text_print(&f->axes, "\"\n");
    }
}

/* ---- The key -------------------------------------------------------------------------------- */

static void print_look(ng_text *text, int look)
{
    const int round = look / COLOURS % DASHES, colour = look % COLOURS;
    ng_text_print(text, "with linespoints lt %d lc rgb '#%s' lw 2 dt %d pt %d ps 0.7 pn 6",
                  look + 1, looks[colour].colour, round + 1, looks[colour].mark - round % 2);
}

/* The key: its lines have at most `letters` letters. */
typedef struct {
    double letters;
    int lines, widest, columns; /* columns: 0: beside the only panel */
} plot_key;

/* Adds a name: curves without points that have its lines as their titles. */
static void add_key_name(ng_text *text, plot_key *key, int look, const char *name)
{
    do {
        int letters;
        const int64_t bytes = ng_line_bytes(name, key->letters, &letters);
        ng_text_print(text, "%sNaN ", key->lines++ ? ", " : "");
        if (look >= 0)
            print_look(text, look);
        else
            ng_text_print(text, "with lines lt nodraw");
        ng_text_print(text, " title ");
        ng_text_quote(text, name, bytes);
        if (letters > key->widest) key->widest = letters;
        look = -1, name += bytes;
    } while (*name);
}

/* Adds the name of each look, and which of its values lack. */
static void add_key_names(ng_text *text, plot_key *key, const plot *p)
{
    key->lines = 0;
    for (int look = 0; look < p->n_looks && !text->failed; look++) {
        ng_text name = {.function = plot_name};
        for (const curve *c = p->curves; c < p->curves + p->count; c++) {
            if (c->look != look) continue;
            if (name.count == 0) print_name(&name, p, c, false);
            if (c->lacks && p->options->panels && p->n_names > 1)
                ng_text_print(&name, ", %s", series_of(c)->name);
            if (c->lacks) ng_text_print(&name, ": %s", c->lacks);
        }
        if (name.bytes) add_key_name(text, key, look, name.bytes);
        text->failed = text->failed || name.failed;
        ng_free(name.bytes);
    }
}

/* Measures the names, and decides where the key stands. False if it does not fit. */
static bool make_key(plot_key *key, const plot *p, ng_figure *f)
{
    const double sample = f->as_text ? 10 : 65, high = f->height > 0 ? f->height : 440;
    ng_text measured = {.function = plot_name};
    *key = (plot_key){.letters = (f->width - sample) / f->letter};
    if (p->n_looks == 1) return true;
    add_key_names(&measured, key, p);
    f->script.failed = measured.failed;
    ng_free(measured.bytes);
    const double width = key->widest * f->letter + sample;
    if (f->panels == 1 && width <= 0.3 * f->width && key->lines * f->line <= 0.8 * high)
        return true;
    key->columns = key->lines > p->n_looks ? 1 : (int)fmax(1, f->width / width);
    f->key_rows = (key->lines + key->columns - 1) / key->columns;
    const double least = 2 * f->key_rows * f->line;
    if (f->height == 0 || f->height >= least) return true;
    return ng_fail(NG_EVALUE, "%s: a height of %d, but the names of %d curves need at least %g",
                   plot_name, f->height, p->n_looks, least),
           false;
}

/* ---- The panels ----------------------------------------------------------------------------- */

static void print_labels(const plot *p, ng_figure *f, int panel)
{
    const ng_plot_options *o = p->options;
    const int rows = (f->panels + f->columns - 1) / f->columns;
    const double width = (double)f->width / f->columns, height = (double)f->height / rows;
    const curve *c = NULL; /* one that is drawn, if there is one */
    for (int64_t i = 0; i < p->count; i++)
        if (p->curves[i].panel == panel && (!c || c->lacks)) c = &p->curves[i];
    const char *x_label = o->x_label ? o->x_label : ng_axis_name(block_of(c));
    const char *y_label = o->y_label                     ? o->y_label
                          : o->panels || p->n_names == 1 ? p->names[panel]
                                                         : "";
    ng_text_label(&f->script, "set xlabel", c->lacks ? c->lacks : x_label, 0.8 * width / f->letter);
    ng_text_label(&f->script, "\nset ylabel", y_label,
                  f->as_text ? width / 4 : 0.8 * height / f->letter);
    if (f->as_text && *y_label) /* beside the numbers */
        ng_text_print(&f->script, " offset -2\nset lmargin %g",
                      fmin((double)strlen(y_label), width / 4) + 12);
    ng_text_print(&f->script, "\neval axes%d\n", panel);
}

static void print_panel(const plot *p, ng_figure *f, int panel)
{
    enum { BAND, RAW, LINE, LAYERS }; /* what is drawn below what */
    const bool smooth = p->smooth > 0;
    const char *between = "";
    ng_figure_place(f, panel);
    print_labels(p, f, panel);
    ng_text_print(&f->script, "plot ");
    for (int layer = BAND; layer < LAYERS; layer++)
        for (int64_t i = 0; i < p->count; i++) {
            const curve *c = &p->curves[i];
            const char *colour = looks[c->look % COLOURS].colour;
            const bool no_raw = !smooth || f->as_text; /* text has no pale lines */
            const int index = c->index + (smooth && layer != RAW);
            if (c->panel != panel || c->lacks || (layer == BAND && !has_band(c)) ||
                (layer == RAW && no_raw))
                continue;
            ng_text_print(&f->script, "%sdata(%d) index at(%d) using ", between, index, index);
            if (layer == BAND)
                ng_text_print(&f->script,
                              "1:3:4 with filledcurves fs transparent solid 0.15 noborder "
                              "lc rgb '#%s'",
                              colour);
            else if (layer == RAW)
                ng_text_print(&f->script, "1:2 with lines lc rgb '#b0%s'", colour);
            else
                ng_text_print(&f->script, "1:2 "), print_look(&f->script, c->look);
            ng_text_print(&f->script, " notitle");
            between = ", ";
        }
    if (!*between) ng_text_print(&f->script, "[1:2] [1:2] NaN notitle");
}

/* Prints the commands and the numbers of the figure. */
static bool print_panels(plot *p, ng_figure *f)
{
    plot_key key;
    f->panels = p->options->panels ? (int)p->n_names : 1;
    ng_figure_divide(f);
    if (!make_key(&key, p, f)) return false;
    const bool beside = p->n_looks > 1 && key.columns == 0;
    print_data(p, f);
    ng_text_print(&f->script, "%s%sset autoscale xfix\nset key %s\n",
                  p->log_x ? "set logscale x\n" : "", p->log_y ? "set logscale y\n" : "",
                  beside ? "on" : "off");
    for (int panel = 0; panel < f->panels; panel++) {
        print_panel(p, f, panel);
        ng_text_print(&f->script, beside ? ", " : "\n");
    }
    if (key.columns > 0) {
        ng_figure_place(f, f->panels);
        ng_text_print(&f->script,
                      "unset border\nunset xtics\nunset ytics\nunset xlabel\nunset ylabel\n"
                      "unset logscale\nset margins 0,0,0,0\nset xrange [0:1]\nset yrange [0:1]\n"
                      "set key on inside center center horizontal maxcols %d\nplot ",
                      key.columns);
    }
    if (p->n_looks > 1) add_key_names(&f->script, &key, p), ng_text_print(&f->script, "\n");
    return true;
}

/* ---- Draw ----------------------------------------------------------------------------------- */

/* A figure that is redrawn. Its options may be gone when the history ends, so the numbers are
 * printed again, and the commands stay. */
struct ng_live {
    plot plot;
    ng_figure figure;
    ng_gnuplot gnuplot;
    double drawn;     /* when, in seconds of the clock */
    int64_t n_series; /* of the history when it was drawn */
};

static ng_status make_figure(plot *p, ng_figure *f, ng_history *history,
                             const ng_plot_options *options)
{
    *f = (ng_figure){.function = plot_name,
                     .path = options->path,
                     .title = options->title,
                     .width = options->width,
                     .height = options->height,
                     .keep = options->keep,
                     .live = options->live};
    *p = (plot){.options = options,
                .log_x = options->log_x,
                .log_y = options->log_y,
                .smooth = options->smooth};
    const bool made = ng_figure_begin(f) && collect_curves(p, history) && print_panels(p, f);
    return made ? NG_OK : ng_newest_status();
}

static void free_figure(plot *p, ng_figure *f)
{
    ng_free(p->curves), ng_free(p->names);
    ng_figure_free(f);
}

/* Shows what was logged last. An error of this is no error of the program that is done with it. */
static void end_live(ng_history *history)
{
    struct ng_live *live = history->live;
    const bool failed = ng_failed();
    const locale_t locale = ng_c_locale_begin();
    if (live->gnuplot.process > 0) {
        print_data(&live->plot, &live->figure);
        ng_gnuplot_show(&live->gnuplot, &live->figure, true, NULL);
    }
    ng_c_locale_end(locale);
    if (!failed) ng_clear_error();
    free_figure(&live->plot, &live->figure);
    ng_free(live);
    history->live = NULL;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Redraws the figure if half a second has passed, or if there is a new series. */
static ng_status draw_live(ng_history *history, const ng_plot_options *options)
{
    struct ng_live *live = history->live;
    const double now = seconds();
    int64_t n_series = 0;
    for (int64_t i = 0; i < history->count; i++) n_series += history->blocks[i].n_series;
    if (live && live->n_series == n_series && now - live->drawn < 0.5) return NG_OK;
    if (!live && !(live = ng_calloc(plot_name, 1, sizeof *live))) return NG_ENOMEM;
    history->live = live, history->end_live = end_live;
    free_figure(&live->plot, &live->figure);
    ng_status status = make_figure(&live->plot, &live->figure, history, options);
    live->plot.options = NULL;
    live->figure.path = live->figure.path ? "-" : NULL;
    if (status == NG_OK) status = ng_gnuplot_show(&live->gnuplot, &live->figure, false, NULL);
    live->drawn = status == NG_OK ? now : -HUGE_VAL;
    live->n_series = n_series;
    return status;
}

static ng_status draw_once(ng_history *history, const ng_plot_options *options)
{
    plot p;
    ng_figure f;
    ng_status status = make_figure(&p, &f, history, options);
    if (status == NG_OK) status = ng_figure_draw(&f);
    free_figure(&p, &f);
    return status;
}

ng_status ng_plot_with(ng_history *history, ng_plot_options options)
{
    if (!ng_given(plot_name, "history", history)) return ng_newest_status();
    if ((options.smooth != 0 &&
         !ng_option_positive(plot_name, "smooth", options.smooth, "values")) ||
        !ng_option_idle(plot_name, "histories", options.live && options.histories,
                        "without .live") ||
        !ng_option_idle(plot_name, "names", options.live && options.names, "without .live"))
        return ng_newest_status();
    const locale_t locale = ng_c_locale_begin();
    const ng_status status =
        options.live ? draw_live(history, &options) : draw_once(history, &options);
    ng_c_locale_end(locale);
    return status;
}
