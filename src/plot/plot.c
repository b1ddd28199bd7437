/* ng_plot: from histories to panels of curves. */
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char plot_name[] = "ng_plot";

/* The colours and the marks of curves; then the same with the next dash, and the other mark. */
enum { COLOURS = 6, DASHES = 5 };
static const struct {
    const char *colour;
    int mark;
} looks[COLOURS] = {{"0072b2", 5},  {"e69f00", 7},  {"009e73", 9},
                    {"cc79a7", 11}, {"000000", 13}, {"d55e00", 15}};

/* A series of a block; low and high are the indexes of its band's, or n_series. */
typedef struct {
    const ng_block *block;
    const char *source; /* the history's name, or NULL */
    int64_t series, low, high;
    int panel;
    int look;  /* the same in all panels for a block */
    int index; /* of its numbers in the data */
    bool banded;
} curve;

typedef struct {
    const ng_plot_options *options;
    curve *curves;
    int64_t count, room;
    const char **names; /* of the series that are drawn, each once */
    int64_t n_names, names_room;
    int n_looks;
    bool many_blocks;
} plot;

/* ---- Which curves --------------------------------------------------------------------------- */

/* Returns the series whose name is that before `end` and an ending, or n_series. */
static int64_t find_companion(const ng_block *b, const char *name, const char *end,
                              const char *ending)
{
    const size_t length = (size_t)(end - name);
    int64_t k = 0;
    while (k < b->n_series &&
           (strncmp(b->series[k], name, length) != 0 || strcmp(b->series[k] + length, ending) != 0))
        k++;
    return k;
}

static bool has(const ng_block *b, const char *name, const char *end, const char *ending)
{
    return find_companion(b, name, end, ending) < b->n_series;
}

/* Whether the series is a quartile or an extreme of another one. */
static bool is_companion(const ng_block *b, const char *name)
{
    static const char *const pairs[][2] = {
        {"_low", "_high"}, {"_high", "_low"}, {"_min", "_max"}, {"_max", "_min"}};
    const char *end = strrchr(name, '_');
    for (int i = 0; end && i < 4; i++)
        if (strcmp(end, pairs[i][0]) == 0)
            return has(b, name, end, "") && has(b, name, end, pairs[i][1]);
    return false;
}

bool ng_is_watched(const ng_block *b, const char *name)
{
    const char *end = strrchr(name, '/');
    if (!end) return false;
    if (has(b, name, end, "/zeros") && has(b, name, end, "/saturated")) return true;
    return has(b, name, end, "/weight") &&
           (has(b, name, end, "/gradient") || has(b, name, end, "/update"));
}

/* Whether the block is one of ng_history_summary. */
static bool is_summary(const ng_block *b)
{
    for (int64_t k = 0; k < b->n_series; k++)
        if (is_companion(b, b->series[k])) return true;
    return false;
}

static bool is_wanted(const plot *p, const ng_block *b, const char *name)
{
    const char *const *wanted = p->options->series;
    if (!wanted)
        return !is_companion(b, name) && !ng_is_watched(b, name) &&
               (strcmp(name, "runs") != 0 || !is_summary(b));
    while (*wanted && strcmp(*wanted, name) != 0) wanted++;
    return *wanted != NULL;
}

/* The index of a name among those that are drawn, or n_names. */
static int64_t find_name(const plot *p, const char *name)
{
    int64_t i = 0;
    while (i < p->n_names && strcmp(p->names[i], name) != 0) i++;
    return i;
}

static bool is_drawn(double value, bool log) { return isfinite(value) && (!log || value > 0); }

/* Whether a curve can be drawn; else an error that says what is wrong with its values. */
static bool curve_has_points(const plot *p, const curve *c)
{
    const ng_block *b = c->block;
    bool finite = false;
    for (int64_t i = 0; i < b->n_points; i++) {
        const ng_point *point = &b->points[i];
        if (point->series != c->series) continue;
        finite = finite || isfinite(point->value);
        if (is_drawn(point->value, p->options->log_y) &&
            is_drawn(ng_place(b, point), p->options->log_x))
            return true;
    }
    ng_fail(NG_EVALUE, "%s: the series \"%s\"%s%s has no %s", plot_name, b->series[c->series],
            b->name ? " of the block " : "", b->name ? b->name : "",
            finite ? "positive value for the logarithmic axis" : "finite value");
    return false;
}

/* The look of another panel's curve of the same block, or the next one. */
static int choose_look(plot *p, const curve *c)
{
    for (int64_t i = 0; p->options->panels && i < p->count; i++)
        if (p->curves[i].block == c->block) return p->curves[i].look;
    return p->n_looks++;
}

static bool add_curve(plot *p, const ng_block *b, int64_t series, const char *source)
{
    const char *name = b->series[series];
    const char *end = name + strlen(name);
    const int64_t index = find_name(p, name);
    if (index == p->n_names) {
        if (!NG_RESERVE(plot_name, p->names, p->n_names, p->names_room)) return false;
        p->names[p->n_names++] = name;
    }
    if (!NG_RESERVE(plot_name, p->curves, p->count, p->room)) return false;
    curve c = {.block = b, .source = source, .series = series};
    c.panel = p->options->panels ? (int)index : 0;
    c.low = find_companion(b, name, end, "_low");
    c.high = find_companion(b, name, end, "_high");
    c.banded = p->options->band && c.low < b->n_series && c.high < b->n_series;
    c.look = choose_look(p, &c);
    p->curves[p->count++] = c;
    p->many_blocks = p->many_blocks || b->name != p->curves[0].block->name;
    return curve_has_points(p, &c);
}

static bool add_curves(plot *p, const ng_history *history, const char *source)
{
    for (int64_t i = 0; i < history->count; i++) {
        ng_block *b = &history->blocks[i];
        ng_block_sort(b);
        for (int64_t k = 0; k < b->n_series; k++)
            if (is_wanted(p, b, b->series[k]) && !add_curve(p, b, k, source)) return false;
    }
    return true;
}

static bool collect_curves(plot *p, const ng_history *history)
{
    const ng_plot_options *o = p->options;
    const bool several = o->histories && o->histories[0];
    for (int i = 0; i == 0 || (several && o->histories[i - 1]); i++) {
        const ng_history *h = i == 0 ? history : o->histories[i - 1];
        const char *source = o->names ? o->names[i] : several ? h->what : NULL;
        if (o->names && !source) {
            ng_fail(NG_EVALUE, "%s: .names ends before the histories", plot_name);
            return false;
        }
        if (!add_curves(p, h, source)) return false;
    }
    for (int i = 0; o->series && o->series[i]; i++) {
        if (find_name(p, o->series[i]) < p->n_names) continue;
        ng_fail(NG_EVALUE, "%s: there is no series \"%s\" in the history", plot_name, o->series[i]);
        return false;
    }
    if (p->count == 0)
        ng_fail(NG_EVALUE, "%s: nothing is logged in the history, or only what ng_plot_watch draws",
                plot_name);
    return p->count > 0;
}

/* ---- The numbers ---------------------------------------------------------------------------- */

/* What a curve shows at a place: the value and the ends of its band. */
typedef struct {
    double x, y[3];
    double sum; /* during smooth_rows */
    bool kept;  /* of many, by keep_extremes */
} plot_row;

/* Returns a row for each value of the series, and how many; NULL without memory. */
static plot_row *curve_rows(const plot *p, const curve *c, int64_t *count)
{
    const ng_block *b = c->block;
    const int64_t columns[] = {c->series, c->low, c->high};
    plot_row *rows = ng_calloc(plot_name, b->n_points + 1, sizeof *rows);
    *count = 0;
    for (int64_t i = 0; rows && i < b->n_points;) {
        const ng_point *first = &b->points[i];
        plot_row row = {ng_place(b, first), {(double)NAN, (double)NAN, (double)NAN}, 0, false};
        bool logged = false;
        for (; i < b->n_points && ng_same_place(b, first, &b->points[i]); i++) {
            logged = logged || b->points[i].series == c->series;
            for (int k = 0; k < 3; k++)
                if (b->points[i].series == columns[k]) row.y[k] = b->points[i].value;
        }
        if (logged && is_drawn(row.x, p->options->log_x)) rows[(*count)++] = row;
    }
    return rows;
}

/* Replaces a column by the mean of the last `n` values, back to one that is not finite. A window is
 * the end of a block of n rows and the begin of the next: nothing is subtracted, so that no outlier
 * leaves an error behind it. */
static void smooth_rows(plot_row *rows, int64_t count, int64_t n, int k)
{
    int64_t first = 0;
    double sum = 0;
    for (int64_t i = count - 1; i >= 0; i--)
        rows[i].sum = rows[i].y[k] + (i + 1 < count && (i + 1) % n != 0 ? rows[i + 1].sum : 0);
    for (int64_t i = 0; i < count; i++) {
        if (i % n == 0) sum = 0;
        if (!isfinite(rows[i].y[k])) {
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
    const bool log_x = p->options->log_x, log_y = p->options->log_y;
    for (int64_t i = 0, end = 1; i < count; i = end++) {
        const double column = column_of(rows, count, rows[i].x, log_x, columns);
        while (end < count && column_of(rows, count, rows[end].x, log_x, columns) == column) end++;
        rows[i].kept = rows[end - 1].kept = true;
        for (int k = 0; k < 3; k++) {
            plot_row *low = NULL, *high = NULL, *gap = NULL;
            for (plot_row *r = &rows[i]; r < &rows[end]; r++)
                if (!is_drawn(r->y[k], log_y)) {
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
    const char *series = c->block->series[c->series];
    const char *parts[] = {c->source, p->many_blocks || whole ? c->block->name : NULL,
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

static void include(double range[2], double value)
{
    range[0] = fmin(range[0], value), range[1] = fmax(range[1], value);
}

/* Prints a block of numbers: x, the value, and the ends of the band. NaN interrupts the curve, and
 * the band. */
static void print_rows(ng_figure *f, const plot *p, const curve *c, plot_row *rows, int64_t count,
                       plot_range *range)
{
    const double columns = p->options->live ? 100 : (double)f->width / f->columns;
    const bool thin = (double)count > 4 * columns;
    if (thin) keep_extremes(p, rows, count, columns);
    for (int64_t i = 0; i < count; i++) {
        const plot_row *r = &rows[i];
        if (thin && !r->kept) continue;
        const bool drawn = is_drawn(r->y[0], p->options->log_y);
        const bool band = c->banded && drawn && is_drawn(r->y[1], p->options->log_y) &&
                          is_drawn(r->y[2], p->options->log_y);
        ng_text_print(&f->data, "%s", ng_number_print(r->x).text);
        include(range->x, r->x);
        for (int k = 0; k < (c->banded ? 3 : 1); k++) {
            const bool shown = k == 0 ? drawn : band;
            ng_text_print(&f->data, " %s", shown ? ng_number_print(r->y[k]).text : "NaN");
            if (shown) include(range->y, r->y[k]);
        }
        ng_text_print(&f->data, "\n");
    }
    ng_text_print(&f->data, "\n\n");
}

/* Prints the numbers of a curve as one block, and after them the smoothed ones as another. */
static void print_curve(ng_figure *f, const plot *p, const curve *c, plot_range *range)
{
    const int smooth = p->options->smooth;
    ng_text name = {.function = plot_name};
    int64_t count;
    plot_row *rows = curve_rows(p, c, &count);
    print_name(&name, p, c, true);
    f->data.failed = f->data.failed || name.failed || !rows;
    for (char *at = name.bytes; at && *at; at++)
        if (*at == '\n' || *at == '\r') *at = ' ';
    for (int part = 0; !f->data.failed && part < (smooth > 0 ? 2 : 1); part++) {
        ng_text_print(&f->data, "# %s", name.bytes);
        if (part == 1) ng_text_print(&f->data, ", mean of %d", smooth);
        ng_text_print(&f->data, "\n");
        for (int k = 0; part == 1 && k < 3; k++) smooth_rows(rows, count, smooth, k);
        print_rows(f, p, c, rows, count, range);
    }
    ng_free(name.bytes), ng_free(rows);
}

/* ---- The key -------------------------------------------------------------------------------- */

static void print_look(ng_text *text, int look)
{
    const int round = look / COLOURS % DASHES, colour = look % COLOURS;
    ng_text_print(text, "with linespoints lt %d lc rgb '#%s' lw 2 dt %d pt %d ps 0.7 pn 6",
                  look + 1, looks[colour].colour, round + 1, looks[colour].mark - round % 2);
}

/* The key: its lines of at most `letters` letters. The last of `most` lines says how many names are
 * left out. */
typedef struct {
    double letters, most;
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

static void add_key_names(ng_text *text, plot_key *key, const plot *p)
{
    key->lines = 0;
    for (int look = 0; look < p->n_looks && !text->failed; look++) {
        const int64_t before = text->count;
        const int lines = key->lines, left = p->n_looks - look;
        const curve *c = p->curves;
        ng_text name = {.function = plot_name};
        while (c->look != look) c++;
        print_name(&name, p, c, false);
        if (name.bytes) add_key_name(text, key, look, name.bytes);
        if (key->lines + (left > 1) > key->most) {
            name.count = 0, text->count = before, key->lines = lines, look = p->n_looks;
            ng_text_print(&name, "and %d more", left);
            if (name.bytes) add_key_name(text, key, -1, name.bytes);
        }
        text->failed = text->failed || name.failed;
        ng_free(name.bytes);
    }
}

/* Measures the names, and decides where the key stands. */
static plot_key make_key(const plot *p, ng_figure *f)
{
    const double sample = f->as_text ? 10 : 65, high = f->height > 0 ? f->height : 440;
    plot_key key = {.letters = (f->width - sample) / f->letter, .most = HUGE_VAL};
    ng_text measured = {.function = plot_name};
    add_key_names(&measured, &key, p);
    f->script.failed = f->script.failed || measured.failed;
    ng_free(measured.bytes);
    const double most = f->height > 0 ? floor(f->height / f->line / 2) : 40;
    double width = key.widest * f->letter + sample;
    if (f->panels == 1 && width <= 0.3 * f->width && key.lines * f->line <= 0.8 * high) return key;
    for (int full = 0; full < 2; full++) { /* then with room for the last line */
        key.columns = key.lines > p->n_looks ? 1 : (int)fmax(1, f->width / width);
        f->key_rows = (key.lines + key.columns - 1) / key.columns;
        if (f->key_rows <= most) break;
        width = fmax(width, 15 * f->letter + sample);
        f->key_rows = (int)most;
    }
    key.most = f->key_rows * key.columns;
    return key;
}

/* ---- The panels ----------------------------------------------------------------------------- */

static void print_axes(const plot *p, ng_figure *f, const ng_block *b, const char *y_label,
                       const plot_range *range)
{
    const ng_plot_options *o = p->options;
    const int rows = (f->panels + f->columns - 1) / f->columns;
    const double width = (double)f->width / f->columns, height = (double)f->height / rows;
    ng_axis x = {"x", range->x[0], range->x[1], o->log_x, true, f->as_text, 0},
            y = {"y", range->y[0], range->y[1], o->log_y, false, f->as_text, 0};
    x.most = fmax(2, fmin(8, width / f->letter / 9 - 1));
    if (!b->real) x.most = fmax(1, fmin(x.most, x.high - x.low)); /* no half steps */
    y.most = fmax(2, fmin(9, height / f->line / 2.5));
    ng_text_label(&f->script, "set xlabel", o->x_label ? o->x_label : ng_axis_name(b),
                  0.8 * width / f->letter);
    if (o->y_label) y_label = o->y_label;
    ng_text_label(&f->script, "\nset ylabel", y_label,
                  f->as_text ? width / 4 : 0.8 * height / f->letter);
    if (f->as_text && *y_label) /* beside the numbers */
        ng_text_print(&f->script, "\nset lmargin %g",
                      fmin((double)strlen(y_label), width / 4) + 11);
    ng_text_print(&f->script, "\n");
    ng_text_axis(&f->script, x);
    ng_text_axis(&f->script, y);
}

static void print_panel(plot *p, ng_figure *f, int panel, int *index)
{
    enum { BAND, RAW, LINE, LAYERS }; /* what is drawn below what */
    const bool smooth = p->options->smooth > 0;
    const char *between = "plot ";
    const ng_block *b = NULL;
    plot_range range = {{HUGE_VAL, -HUGE_VAL}, {HUGE_VAL, -HUGE_VAL}};
    ng_figure_place(f, panel);
    for (int64_t i = 0; i < p->count; i++) {
        curve *c = &p->curves[i];
        if (c->panel != panel) continue;
        b = c->block;
        print_curve(f, p, c, &range);
        c->index = *index, *index += smooth ? 2 : 1;
    }
    print_axes(p, f, b, p->options->panels || p->n_names == 1 ? p->names[panel] : "", &range);
    for (int layer = BAND; layer < LAYERS; layer++)
        for (int64_t i = 0; i < p->count; i++) {
            const curve *c = &p->curves[i];
            const char *colour = looks[c->look % COLOURS].colour;
            const bool no_raw = !smooth || f->as_text; /* text has no pale lines */
            if (c->panel != panel || (layer == BAND && !c->banded) || (layer == RAW && no_raw))
                continue;
            ng_text_print(&f->script, "%sdata index %d using ", between,
                          c->index + (smooth && layer != RAW));
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
}

static void print_panels(plot *p, ng_figure *f)
{
    const ng_plot_options *o = p->options;
    int index = 0;
    f->panels = o->panels ? (int)p->n_names : 1;
    ng_figure_divide(f);
    plot_key key = p->n_looks > 1 ? make_key(p, f) : (plot_key){0};
    const bool beside = p->n_looks > 1 && key.columns == 0;
    ng_text_print(&f->script, "%s%sset key %s\n", o->log_x ? "set logscale x\n" : "",
                  o->log_y ? "set logscale y\n" : "", beside ? "on" : "off");
    for (int panel = 0; panel < f->panels; panel++) {
        print_panel(p, f, panel, &index);
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
}

/* ---- Live figures --------------------------------------------------------------------------- */

/* A figure that is redrawn, and what the last call asked for while it waits to be drawn. */
struct ng_live {
    ng_gnuplot gnuplot;
    bool waits;
    ng_plot_options options; /* with copies of the texts */
    char **texts;            /* title, labels, and the series, ended by NULL */
};

static void drop_texts(char **texts)
{
    for (int i = 0; texts && texts[i]; i++) ng_free(texts[i]);
    ng_free(texts);
}

/* Copies the options of a call, whose texts may not last until the figure is drawn. */
static bool keep_options(struct ng_live *live, const ng_plot_options *o)
{
    const char *const given[] = {o->title, o->x_label, o->y_label};
    int count = 3;
    while (o->series && o->series[count - 3]) count++;
    char **texts = ng_calloc(plot_name, count + 1, sizeof *texts);
    bool made = texts != NULL;
    for (int i = 0; made && i < count; i++) {
        const char *text = i < 3 ? given[i] : o->series[i - 3];
        made = (texts[i] = ng_copy_text(plot_name, text ? text : "")) != NULL;
    }
    if (!made) return drop_texts(texts), false;
    drop_texts(live->texts);
    live->texts = texts;
    live->options = *o;
    live->options.title = o->title ? texts[0] : NULL;
    live->options.x_label = o->x_label ? texts[1] : NULL;
    live->options.y_label = o->y_label ? texts[2] : NULL;
    live->options.series = o->series ? (const char *const *)(texts + 3) : NULL;
    return live->waits = true;
}

static ng_status draw_plot(ng_history *history, const ng_plot_options *options)
{
    ng_figure f = {.function = plot_name,
                   .path = options->path,
                   .title = options->title,
                   .width = options->width,
                   .height = options->height,
                   .keep = options->keep,
                   .live = options->live ? &history->live->gnuplot : NULL,
                   .data.function = plot_name,
                   .script.function = plot_name};
    plot p = {.options = options};
    const locale_t locale = ng_c_locale_begin();
    ng_status status = ng_figure_accepted(&f) ? NG_OK : ng_newest_status();
    if (status == NG_OK) status = collect_curves(&p, history) ? NG_OK : ng_newest_status();
    if (status == NG_OK) {
        print_panels(&p, &f);
        status = ng_figure_draw(&f);
    }
    ng_c_locale_end(locale);
    ng_free(f.data.bytes), ng_free(f.script.bytes);
    ng_free(p.curves), ng_free(p.names);
    return status;
}

ng_status ng_plot_waiting(ng_history *history)
{
    struct ng_live *live = history->live;
    if (!live || !live->waits) return NG_OK;
    live->waits = false;
    return draw_plot(history, &live->options);
}

/* An error of the last figure is no error of the program that is done with it. */
static void end_live(ng_history *history)
{
    const bool failed = ng_failed();
    ng_plot_waiting(history);
    if (!failed) ng_clear_error();
    ng_gnuplot_end(&history->live->gnuplot);
    drop_texts(history->live->texts);
    ng_free(history->live);
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
    if (options.live && !history->live) {
        history->live = ng_calloc(plot_name, 1, sizeof *history->live);
        if (!history->live) return NG_ENOMEM;
        history->end_live = end_live;
    }
    if (options.live && !ng_gnuplot_is_due(&history->live->gnuplot))
        return keep_options(history->live, &options) ? NG_OK : NG_ENOMEM;
    if (options.live) history->live->waits = false;
    const ng_status waiting = ng_plot_waiting(history);
    return waiting == NG_OK ? draw_plot(history, &options) : waiting;
}
