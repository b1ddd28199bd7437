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
    const char *source; /* the history's name, or "" */
    int64_t block, series;
    int64_t low, high; /* of the band; -1: there is none */
    const char *lacks; /* what its values lack, or NULL: it can be drawn */
    int panel;
    int look;  /* the same in all panels for a block */
    int index; /* of its numbers in the data */
} curve;

typedef struct {
    ng_plot_options options; /* in a live figure the texts are gone after the call */
    curve *curves;
    int64_t count, room;
    const char **names; /* of the series that are drawn, each once */
    int64_t n_names, names_room;
    int n_looks, n_indexes;
    bool many_blocks, many_sources; /* their names differ */
} plot;

/* ---- Which curves --------------------------------------------------------------------------- */

static ng_block *block_of(const curve *c) { return &c->history->blocks[c->block]; }

static const ng_series *series_of(const curve *c) { return &block_of(c)->series[c->series]; }

static const char *block_name(const curve *c) { return block_of(c)->name ? block_of(c)->name : ""; }

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
    return end && (strcmp(end, "_low") == 0 || strcmp(end, "_high") == 0) &&
           find_companion(b, name, (size_t)(end - name), "") >= 0;
}

static bool is_wanted(const plot *p, const ng_block *b, const ng_series *series)
{
    const char *const *wanted = p->options.series;
    if (!wanted)
        return series->kind == NG_SERIES_CURVE && !(p->options.band && is_band(b, series->name));
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
static const char *what_lacks(const plot *p, const ng_series *s)
{
    bool finite = false;
    for (const ng_point *point = s->points; point < s->points + s->n_points; point++) {
        finite = finite || ng_is_drawn(point->value, false);
        if (ng_is_drawn(point->value, p->options.log_y) &&
            ng_is_drawn(ng_place(s->real, point), p->options.log_x))
            return NULL;
    }
    return finite ? "no positive value" : "no finite value";
}

/* The look of another panel's curve of the same block, or the next one. */
static int choose_look(plot *p, const curve *c)
{
    for (int64_t i = 0; p->options.panels && i < p->count; i++)
        if (block_of(&p->curves[i]) == block_of(c)) return p->curves[i].look;
    return p->n_looks++;
}

static bool add_curve(plot *p, curve c)
{
    ng_block *b = block_of(&c);
    const char *name = b->series[c.series].name;
    const int64_t index = find_name(p, name);
    if (!NG_RESERVE(plot_name, p->names, p->n_names, p->names_room) ||
        !NG_RESERVE(plot_name, p->curves, p->count, p->room))
        return false;
    if (index == p->n_names) p->names[p->n_names++] = name;
    c.panel = p->options.panels ? (int)index : 0;
    c.low = p->options.band ? find_companion(b, name, strlen(name), "_low") : -1;
    c.high = p->options.band ? find_companion(b, name, strlen(name), "_high") : -1;
    c.lacks = what_lacks(p, &b->series[c.series]);
    c.look = choose_look(p, &c);
    c.index = p->n_indexes;
    if (!c.lacks) p->n_indexes++;
    p->curves[p->count++] = c;
    p->many_blocks = p->many_blocks || strcmp(block_name(&c), block_name(p->curves)) != 0;
    p->many_sources = p->many_sources || strcmp(c.source, p->curves->source) != 0;
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

static bool collect_curves(plot *p, const ng_history *history)
{
    const ng_plot_options *o = &p->options;
    const bool several = o->histories && o->histories[0];
    for (int i = 0; i == 0 || (several && o->histories[i - 1]); i++) {
        const ng_history *h = i == 0 ? history : o->histories[i - 1];
        const char *source = o->names ? o->names[i] : several ? h->what : "";
        if (!source)
            return ng_fail(NG_EVALUE, "%s: .names ends before the histories", plot_name), false;
        if (!add_curves(p, h, source)) return false;
    }
    for (int i = 0; o->series && o->series[i]; i++)
        if (find_name(p, o->series[i]) == p->n_names)
            return ng_fail(NG_EVALUE, "%s: there is no series \"%s\" in the history", plot_name,
                           o->series[i]),
                   false;
    if (p->count == 0)
        ng_fail(NG_EVALUE, "%s: nothing is logged in the history, or only what ng_plot_watch draws",
                plot_name);
    else if (p->n_indexes == 0)
        ng_fail(NG_EVALUE, "%s: the series \"%s\" has %s", plot_name, series_of(p->curves)->name,
                p->curves->lacks);
    return p->n_indexes > 0;
}

/* ---- The numbers ---------------------------------------------------------------------------- */

/* What a curve shows at a place. */
enum { ROW_VALUE, ROW_LOW, ROW_HIGH, ROW_RAW, ROW_COLUMNS }; /* ROW_RAW: not smoothed */
typedef struct {
    double x, y[ROW_COLUMNS];
    bool kept; /* of many, by keep_extremes */
} plot_row;

/* gnuplot cannot draw a range of numbers this small. */
static double flushed(double value) { return fabs(value) < 1e-300 ? 0 : value; }

/* Returns the value of a series at a place, or NaN; -1: there is no series. */
static double value_at(const ng_block *b, int64_t series, const ng_point *place)
{
    if (series < 0) return (double)NAN;
    const ng_point *points = b->series[series].points;
    int64_t low = 0, high = b->series[series].n_points;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = ng_compare_places(b->real, &points[middle], place);
        if (order == 0) return flushed(points[middle].value);
        *(order < 0 ? &low : &high) = middle + (order < 0);
    }
    return (double)NAN;
}

/* Replaces a column by the mean of the last `n` values, back to one that is not drawn. */
static void smooth_rows(plot_row *rows, int64_t count, int n, int k, bool log)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        double sum = 0;
        int64_t before = i;
        for (; before >= 0 && before > i - n && ng_is_drawn(rows[before].y[k], log); before--)
            sum += rows[before].y[k];
        if (before < i) rows[i].y[k] = sum / (double)(i - before);
    }
}

/* Returns a row for each value of the series, and how many; NULL without memory. */
static plot_row *curve_rows(const plot *p, const curve *c, int64_t *count)
{
    const ng_block *b = block_of(c);
    const int64_t columns[ROW_COLUMNS] = {c->series, c->low, c->high, c->series};
    for (int k = 0; k < ROW_RAW; k++)
        if (columns[k] >= 0) ng_series_sort(&b->series[columns[k]]);
    const ng_series *s = series_of(c);
    plot_row *rows = ng_calloc(plot_name, s->n_points + 1, sizeof *rows);
    *count = 0;
    for (int64_t i = 0; rows && i < s->n_points; i++) {
        plot_row *row = &rows[*count];
        row->x = flushed(ng_place(b->real, &s->points[i]));
        for (int k = 0; k < ROW_COLUMNS; k++) row->y[k] = value_at(b, columns[k], &s->points[i]);
        *count += ng_is_drawn(row->x, p->options.log_x);
    }
    for (int k = ROW_VALUE; rows && p->options.smooth > 0 && k < ROW_RAW; k++)
        smooth_rows(rows, *count, p->options.smooth, k, p->options.log_y);
    return rows;
}

/* The column of pixels of a row. */
static double pixel_of(const plot_row *rows, int64_t count, double x, bool log_x, double pixels)
{
    const double low = rows[0].x, high = rows[count - 1].x;
    return floor(pixels * (log_x ? log(x / low) / log(high / low) : (x - low) / (high - low)));
}

/* Keeps what a line through all rows shows: in each column of pixels the first and the last row,
 * the lowest and the highest values, and an interruption. */
static void keep_extremes(const plot *p, plot_row *rows, int64_t count, double pixels)
{
    for (int64_t i = 0, end = 1; i < count; i = end++) {
        const double pixel = pixel_of(rows, count, rows[i].x, p->options.log_x, pixels);
        while (end < count && pixel_of(rows, count, rows[end].x, p->options.log_x, pixels) == pixel)
            end++;
        rows[i].kept = rows[end - 1].kept = true;
        for (int k = 0; k < ROW_COLUMNS; k++) {
            plot_row *low = NULL, *high = NULL, *gap = NULL;
            for (plot_row *r = &rows[i]; r < &rows[end]; r++) {
                const bool drawn = ng_is_drawn(r->y[k], p->options.log_y);
                if (!drawn && !gap) gap = r;
                if (drawn && (!low || r->y[k] < low->y[k])) low = r;
                if (drawn && (!high || r->y[k] > high->y[k])) high = r;
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
    const char *parts[] = {p->many_sources || whole ? c->source : "",
                           p->many_blocks || whole ? block_name(c) : "",
                           whole || (p->n_names > 1 && !p->options.panels) ? series : ""};
    const int64_t begin = text->count;
    for (int i = 0; i < 3; i++)
        if (*parts[i]) ng_text_print(text, "%s%s", text->count > begin ? ", " : "", parts[i]);
    if (text->count == begin) ng_text_print(text, "%s", series);
}

/* Prints the numbers of a curve: its name, and x, the value, the ends of the band and the value
 * before it was smoothed, as far as they are drawn. NaN interrupts the curve, and the band. */
static void print_curve(ng_figure *f, const plot *p, const curve *c)
{
    ng_text name = {.function = plot_name};
    int64_t count;
    plot_row *rows = curve_rows(p, c, &count);
    const double pixels = (double)f->width / f->columns;
    const bool log = p->options.log_y, thin = (double)count > 4 * pixels;
    if (thin) keep_extremes(p, rows, count, pixels);
    print_name(&name, p, c, true);
    f->data.failed = f->data.failed || name.failed || !rows;
    for (char *letter = name.bytes; letter && *letter; letter++)
        if (*letter == '\n' || *letter == '\r') *letter = ' ';
    ng_text_print(&f->data, "# %s\n", name.bytes);
    for (const plot_row *r = rows; r < rows + count; r++) {
        if (thin && !r->kept) continue;
        const bool drawn = ng_is_drawn(r->y[ROW_VALUE], log);
        const bool band =
            drawn && ng_is_drawn(r->y[ROW_LOW], log) && ng_is_drawn(r->y[ROW_HIGH], log);
        const bool shown[ROW_COLUMNS] = {drawn, band, band, ng_is_drawn(r->y[ROW_RAW], log)};
        ng_text_print(&f->data, "%.15g", r->x);
        for (int k = 0; k < ROW_COLUMNS; k++) {
            if (k == ROW_RAW ? p->options.smooth == 0 : k != ROW_VALUE && !has_band(c)) continue;
            if (shown[k])
                ng_text_print(&f->data, " %.12g", r->y[k]);
            else
                ng_text_print(&f->data, " NaN");
        }
        ng_text_print(&f->data, "\n");
    }
    ng_text_print(&f->data, "\n\n");
    ng_free(name.bytes), ng_free(rows);
}

static void print_data(const plot *p, ng_figure *f)
{
    f->data.count = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (!p->curves[i].lacks) print_curve(f, p, &p->curves[i]);
}

/* ---- The key -------------------------------------------------------------------------------- */

static void print_look(ng_text *text, int look)
{
    const int round = look / COLOURS % DASHES, colour = look % COLOURS;
    ng_text_print(text, "with linespoints lt %d lc rgb '#%s' lw 2 dt %d pt %d ps 0.7 pn 6",
                  look + 1, looks[colour].colour, round + 1, looks[colour].mark - round % 2);
}

/* Prints the name of each look and which of its values lack, each in a line of at most `most`
 * letters. Returns the letters of the widest. */
static int print_key_names(ng_text *text, const plot *p, double most)
{
    int widest = 0, letters;
    for (int look = 0; look < p->n_looks && !text->failed; look++) {
        ng_text name = {.function = plot_name};
        for (const curve *c = p->curves; c < p->curves + p->count; c++) {
            if (c->look != look) continue;
            if (name.count == 0) print_name(&name, p, c, false);
            if (c->lacks && p->options.panels && p->n_names > 1)
                ng_text_print(&name, ", %s", series_of(c)->name);
            if (c->lacks) ng_text_print(&name, ": %s", c->lacks);
        }
        text->failed = name.failed;
        ng_text_print(text, "%sNaN ", look > 0 ? ", " : "");
        print_look(text, look);
        ng_text_print(text, " title ");
        if (name.bytes) ng_text_quote(text, name.bytes, ng_line_bytes(name.bytes, most, &letters));
        if (letters > widest) widest = letters;
        ng_free(name.bytes);
    }
    return widest;
}

/* Prints the key, if there are several curves, and makes room for it below the panels. False if
 * there is none. */
static bool print_key(ng_text *key, const plot *p, ng_figure *f)
{
    const double sample = f->as_text ? 10 : 65;
    if (p->n_looks == 1) return true;
    ng_text names = {.function = plot_name};
    const int widest = print_key_names(&names, p, (f->width - sample) / f->letter);
    const int columns = (int)fmax(1, f->width / (widest * f->letter + sample));
    ng_text_print(key,
                  "unset border\nunset tics\nunset xlabel\nunset ylabel\nunset title\n"
                  "unset logscale\nset margins 0,0,0,0\nset xrange [0:1]\nset yrange [0:1]\n"
                  "set key on inside center center horizontal maxcols %d\nplot %s\n",
                  columns, names.failed ? "" : names.bytes);
    key->failed = key->failed || names.failed;
    ng_free(names.bytes);
    f->key_rows = (p->n_looks + columns - 1) / columns;
    const double least = 2 * f->key_rows * f->line;
    if (f->height == 0 || f->height >= least) return true;
    return ng_fail(NG_EVALUE, "%s: a height of %d, but the names of %d curves need at least %g",
                   plot_name, f->height, p->n_looks, least),
           false;
}

/* ---- The panels ----------------------------------------------------------------------------- */

static void print_axes(const plot *p, ng_figure *f, int panel)
{
    const ng_plot_options *o = &p->options;
    const double width = (double)f->width / f->columns / f->letter,
                 height = (double)f->height * f->columns / f->panels / f->letter;
    const curve *c = NULL; /* one that is drawn, if there is one */
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const curve *each = p->curves; each < p->curves + p->count; each++) {
        const ng_series *s = series_of(each);
        if (each->panel != panel || (c && each->lacks)) continue;
        c = each;
        if (c->lacks) continue;
        low = fmin(low, ng_place(s->real, &s->points[0]));
        high = fmax(high, ng_place(s->real, &s->points[s->n_points - 1]));
    }
    const char *x_label = o->x_label ? o->x_label : ng_axis_name(block_of(c));
    const char *y_label = o->y_label                     ? o->y_label
                          : o->panels || p->n_names == 1 ? p->names[panel]
                                                         : "";
    ng_text_label(&f->script, "set xlabel", c->lacks ? c->lacks : x_label, 0.8 * width);
    ng_text_label(&f->script, f->as_text ? "\nset title" : "\nset ylabel", y_label,
                  0.8 * (f->as_text ? width : height));
    ng_text_print(&f->script, "\n");
    if (!o->log_x && !c->lacks)
        ng_text_x_tics(&f->script, low, high, !block_of(c)->real, fmax(2, fmin(8, width / 9 - 1)));
}

static void print_panel(const plot *p, ng_figure *f, int panel)
{
    const bool pale = p->options.smooth > 0 && !f->as_text; /* text has no pale lines */
    const char *between = "";
    ng_figure_place(f, panel);
    print_axes(p, f, panel);
    ng_text_print(&f->script, "plot ");
    for (int layer = 0; layer < 3; layer++) /* bands below pale lines below curves */
        for (const curve *c = p->curves; c < p->curves + p->count; c++) {
            const char *colour = looks[c->look % COLOURS].colour;
            if (c->panel != panel || c->lacks || (layer == 0 && !has_band(c)) ||
                (layer == 1 && !pale))
                continue;
            ng_text_print(&f->script, "%sdata(%d) index at(%d) using ", between, c->index,
                          c->index);
            if (layer == 0)
                ng_text_print(&f->script,
                              "1:3:4 with filledcurves fs transparent solid 0.15 noborder "
                              "lc rgb '#%s'",
                              colour);
            else if (layer == 1)
                ng_text_print(&f->script, "1:%d with lines lc rgb '#b0%s'", has_band(c) ? 5 : 3,
                              colour);
            else
                ng_text_print(&f->script, "1:2 "), print_look(&f->script, c->look);
            between = ", ";
        }
    ng_text_print(&f->script, "%s\n", *between ? "" : "[1:2] [1:2] NaN");
}

/* Prints the commands and the numbers of the figure. */
static bool print_figure(const plot *p, ng_figure *f)
{
    const ng_plot_options *o = &p->options;
    ng_text key = {.function = plot_name};
    f->panels = o->panels ? (int)p->n_names : 1;
    ng_figure_divide(f);
    const bool fits = print_key(&key, p, f);
    if (fits) {
        print_data(p, f);
        ng_text_print(&f->script, "%s%sset key off\n",
                      o->log_x ? "set logscale x\n" : "set autoscale xfix\n",
                      o->log_y ? "set logscale y\n" : "");
        ng_text_format(&f->script, "x", o->log_x, f->as_text);
        ng_text_format(&f->script, "y", o->log_y, f->as_text);
        for (int panel = 0; panel < f->panels; panel++) print_panel(p, f, panel);
        if (f->key_rows > 0) ng_figure_place(f, f->panels);
        ng_text_add(&f->script, key.bytes, key.count);
        f->script.failed = f->script.failed || key.failed;
    }
    ng_free(key.bytes);
    return fits;
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
    *p = (plot){.options = *options};
    const bool made = ng_figure_begin(f) && collect_curves(p, history) && print_figure(p, f);
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
        ng_gnuplot_show(&live->gnuplot, &live->figure, true, -1);
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
    live->figure.path = live->figure.path ? "-" : NULL;
    if (status == NG_OK) status = ng_gnuplot_show(&live->gnuplot, &live->figure, false, -1);
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
