/* ng_plot: from histories to panels of curves. gnuplot reads what ng_history_write writes. */
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char plot_name[] = "ng_plot";

/* The colours of curves, each with a mark; then the same with the next dash, and the other mark. */
enum { COLOURS = 6, DASHES = 5 };
static const char *const colours[COLOURS] = {"0072b2", "e69f00", "009e73",
                                             "cc79a7", "000000", "d55e00"};

/* A series of a block. */
typedef struct {
    const ng_block *block;
    const ng_series *series;
    const char *source; /* the history's name, or "" */
    int index;          /* of the block in the data */
    bool band;          /* has a band that is drawn */
    bool drawn;         /* has a value that can be drawn */
    int panel;
    int look; /* the same in all panels for a block */
} curve;

typedef struct {
    const ng_plot_options *options;
    curve *curves;
    int64_t count, room;
    const char **names; /* of the series that are drawn, each once */
    int64_t n_names, names_room;
    int n_looks, n_blocks;
    bool any_drawn, many_blocks, many_sources; /* their names differ */
} plot;

/* ---- Which curves --------------------------------------------------------------------------- */

static const char *block_name(const curve *c) { return c->block->name ? c->block->name : ""; }

/* Whether there is a series whose name has `length` bytes of this one and an ending. */
static bool has_companion(const ng_block *b, const char *name, size_t length, const char *ending)
{
    for (int64_t k = 0; k < b->n_series; k++)
        if (strncmp(b->series[k].name, name, length) == 0 &&
            strcmp(b->series[k].name + length, ending) == 0)
            return true;
    return false;
}

static bool has_band(const ng_block *b, const char *name)
{
    return has_companion(b, name, strlen(name), "_low") &&
           has_companion(b, name, strlen(name), "_high");
}

/* Whether the series is an end of another one's band. */
static bool is_band(const ng_block *b, const char *name)
{
    const char *end = strrchr(name, '_');
    return end && (strcmp(end, "_low") == 0 || strcmp(end, "_high") == 0) &&
           has_companion(b, name, (size_t)(end - name), "");
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

static bool has_value(const plot *p, const ng_series *s)
{
    int64_t i = 0;
    while (i < s->n_points && !(ng_is_drawn(s->points[i].value, p->options->log_y) &&
                                ng_is_drawn(ng_place(s->real, &s->points[i]), p->options->log_x)))
        i++;
    return i < s->n_points;
}

/* The look of another panel's curve of the same block, or the next one. */
static int choose_look(plot *p, const curve *c)
{
    for (int64_t i = 0; p->options->panels && i < p->count; i++)
        if (p->curves[i].block == c->block) return p->curves[i].look;
    return p->n_looks++;
}

static bool add_curve(plot *p, curve c)
{
    const char *name = c.series->name;
    const int64_t index = find_name(p, name);
    if (!NG_RESERVE(plot_name, p->names, p->n_names, p->names_room) ||
        !NG_RESERVE(plot_name, p->curves, p->count, p->room))
        return false;
    if (index == p->n_names) p->names[p->n_names++] = name;
    c.panel = p->options->panels ? (int)index : 0;
    c.band = p->options->band && has_band(c.block, name);
    c.drawn = has_value(p, c.series);
    c.look = choose_look(p, &c);
    p->curves[p->count++] = c;
    p->any_drawn = p->any_drawn || c.drawn;
    p->many_blocks = p->many_blocks || strcmp(block_name(&c), block_name(p->curves)) != 0;
    p->many_sources = p->many_sources || strcmp(c.source, p->curves->source) != 0;
    return true;
}

static bool add_curves(plot *p, const ng_history *history, const char *source)
{
    for (const ng_block *b = history->blocks; b < history->blocks + history->count; b++) {
        if (b->n_series == 0) continue; /* is not written */
        for (const ng_series *s = b->series; s < b->series + b->n_series; s++)
            if (is_wanted(p, b, s) &&
                !add_curve(
                    p, (curve){.block = b, .series = s, .source = source, .index = p->n_blocks}))
                return false;
        p->n_blocks++;
    }
    return true;
}

/* Collects the curves of all histories, and prints the histories. */
static bool collect_curves(plot *p, ng_figure *f, const ng_history *history)
{
    const ng_plot_options *o = p->options;
    const bool several = o->histories && o->histories[0];
    for (int i = 0; i == 0 || (several && o->histories[i - 1]); i++) {
        const ng_history *h = i == 0 ? history : o->histories[i - 1];
        const char *source = o->names ? o->names[i] : several ? h->what : "";
        if (!source)
            return ng_fail(NG_EVALUE, "%s: .names ends before the histories", plot_name), false;
        const int before = p->n_blocks;
        if (!add_curves(p, h, source)) return false;
        if (before > 0 && p->n_blocks > before) ng_text_print(&f->data, "\n\n");
        if (p->n_blocks > before) ng_history_print(h, false, &f->data);
    }
    for (int i = 0; o->series && o->series[i]; i++)
        if (find_name(p, o->series[i]) == p->n_names)
            return ng_fail(NG_EVALUE, "%s: there is no series \"%s\" in the history", plot_name,
                           o->series[i]),
                   false;
    if (!p->any_drawn)
        ng_fail(NG_EVALUE, "%s: the history has no value that can be drawn%s", plot_name,
                p->count == 0 ? ", or only what ng_plot_watch draws" : "");
    return p->any_drawn;
}

/* ---- The key -------------------------------------------------------------------------------- */

/* Names the curve by what distinguishes it from the others. */
static void print_name(ng_text *text, const plot *p, const curve *c)
{
    const char *series = c->series->name;
    const char *parts[] = {p->many_sources ? c->source : "", p->many_blocks ? block_name(c) : "",
                           p->n_names > 1 && !p->options->panels ? series : ""};
    for (int i = 0; i < 3; i++)
        if (*parts[i]) ng_text_print(text, "%s%s", text->count > 0 ? ", " : "", parts[i]);
    if (text->count == 0) ng_text_print(text, "%s", series);
}

static void print_look(ng_text *text, int look)
{
    const int round = look / COLOURS % DASHES, colour = look % COLOURS;
    ng_text_print(text, "with linespoints lt %d lc rgb '#%s' lw 2 dt %d pt %d ps 0.7 pn 6",
                  look + 1, colours[colour], round + 1, 5 + 2 * colour - round % 2);
}

/* Prints the name of each look and which of its values lack. Returns the bytes of the longest. */
static int print_key_names(ng_text *text, const plot *p)
{
    int widest = 0;
    for (int look = 0; look < p->n_looks && !text->failed; look++) {
        ng_text name = {.function = plot_name};
        for (const curve *c = p->curves; c < p->curves + p->count; c++) {
            if (c->look != look) continue;
            if (name.count == 0) print_name(&name, p, c);
            if (!c->drawn) ng_text_print(&name, ", no value of %s", c->series->name);
        }
        text->failed = name.failed;
        ng_text_print(text, "%sNaN ", look > 0 ? ", " : "");
        print_look(text, look);
        ng_text_label(text, " title", name.bytes);
        if (name.count > widest) widest = (int)name.count;
        ng_free(name.bytes);
    }
    return widest;
}

/* Prints the key, if there are several curves, and makes room for it below the panels. */
static void print_key(ng_text *key, const plot *p, ng_figure *f)
{
    const double sample = f->as_text ? 10 : 65;
    if (p->n_looks == 1) return;
    ng_text names = {.function = plot_name};
    const int widest = print_key_names(&names, p);
    const int columns = (int)fmax(1, f->width / (widest * f->letter + sample));
    ng_text_print(key,
                  "unset border\nunset tics\nunset xlabel\nunset ylabel\nunset title\n"
                  "unset logscale\nset margins 0,0,0,0\nset xrange [0:1]\nset yrange [0:1]\n"
                  "set key on inside center center horizontal maxcols %d\nplot %s\n",
                  columns, names.failed ? "" : names.bytes);
    key->failed = key->failed || names.failed;
    ng_free(names.bytes);
    f->key_rows = (p->n_looks + columns - 1) / columns;
}

/* ---- The panels ----------------------------------------------------------------------------- */

/* Prints what gnuplot computes from a column `s`: NaN for what cannot be drawn, and the mean of the
 * last n values since one. Column k has its own last values; what was not logged changes none. A
 * band needs both ends. */
static void print_functions(ng_text *script, const ng_plot_options *o)
{
    ng_text_print(script, "shown(y) = y < %s || y > 1e300 ? NaN : y\n",
                  o->log_y ? "1e-300" : "-1e300");
    if (o->smooth > 0)
        ng_text_print(script,
                      "n = %d; array last[5 * n]; array count[5]\n"
                      "sum_of(k, m) = sum [j = k * n - m + 1:k * n] last[j]\n"
                      "push(k, y) = (last[k * n - count[k] %% n] = y, count[k] = count[k] + 1, "
                      "m = count[k] < n ? count[k] : n, sum_of(k, m) / m)\n"
                      "next(k, y) = y == y ? push(k, y) : (count[k] = 0, y)\n"
                      "of(k, s) = (count[k] = column(0) == 0 ? 0 : count[k], "
                      "stringcolumn(s) eq '' ? column(s) : next(k, shown(column(s))))\n",
                      o->smooth);
    else
        ng_text_print(script, "of(k, s) = shown(column(s))\n");
    ng_text_print(script, "band(k, s, t) = of(k, s) + 0 * of(k + 1, t)\n");
}

static void print_axes(const plot *p, ng_figure *f, int panel)
{
    const ng_plot_options *o = p->options;
    const curve *one = NULL; /* that is drawn, if there is one */
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (const curve *c = p->curves; c < p->curves + p->count; c++) {
        if (c->panel != panel || (one && !c->drawn)) continue;
        one = c;
        low = fmin(low, ng_place(c->series->real, &c->series->points[0]));
        high = fmax(high, ng_place(c->series->real, &c->series->points[c->series->n_points - 1]));
    }
    ng_text_label(&f->script, "set xlabel", o->x_label ? o->x_label : ng_axis_name(one->block));
    ng_text_label(&f->script, f->as_text ? "\nset title" : "\nset ylabel",
                  o->y_label                     ? o->y_label
                  : o->panels || p->n_names == 1 ? p->names[panel]
                                                 : "");
    ng_text_print(&f->script, "\n");
    if (!o->log_x) ng_text_x_tics(f, low, high, !one->block->real);
}

static void print_panel(const plot *p, ng_figure *f, int panel)
{
    const bool pale = p->options->smooth > 0 && !f->as_text; /* text has no pale lines */
    const char *between = "";
    ng_figure_place(f, panel);
    print_axes(p, f, panel);
    ng_text_print(&f->script, "plot ");
    for (int layer = 0; layer < 3; layer++) /* bands below pale lines below curves */
        for (const curve *c = p->curves; c < p->curves + p->count; c++) {
            const char *colour = colours[c->look % COLOURS], *name = c->series->name;
            if (c->panel != panel || !c->drawn || (layer == 0 && !c->band) || (layer == 1 && !pale))
                continue;
            ng_text_print(&f->script, "%s$data index %d using '%s':", between, c->index,
                          ng_axis_name(c->block));
            if (layer == 0)
                ng_text_print(&f->script,
                              "(band(2, '%s_low', '%s_high')):(band(4, '%s_high', '%s_low')) "
                              "with filledcurves fs transparent solid 0.15 noborder lc rgb '#%s'",
                              name, name, name, name, colour);
            else if (layer == 1)
                ng_text_print(&f->script, "'%s' with lines lc rgb '#b0%s'", name, colour);
            else
                ng_text_print(&f->script, "(of(1, '%s')) ", name), print_look(&f->script, c->look);
            between = ", ";
        }
    ng_text_print(&f->script, "%s\n", *between ? "" : "[1:2] [1:2] NaN");
}

/* Prints the commands of the figure. */
static void print_figure(const plot *p, ng_figure *f)
{
    const ng_plot_options *o = p->options;
    ng_text key = {.function = plot_name};
    print_key(&key, p, f);
    print_functions(&f->script, o);
    ng_text_print(&f->script, "%s%sset key off\n",
                  o->log_x ? "set logscale x\n" : "set autoscale xfix\n",
                  o->log_y ? "set logscale y\n" : "");
    ng_text_format(&f->script, "x", o->log_x, f->as_text);
    ng_text_format(&f->script, "y", o->log_y, f->as_text);
    for (int panel = 0; panel < f->panels; panel++) print_panel(p, f, panel);
    if (f->key_rows > 0) ng_figure_place(f, f->panels);
    ng_text_add(&f->script, key.bytes, key.count);
    f->script.failed = f->script.failed || key.failed;
    ng_free(key.bytes);
}

/* ---- Draw ----------------------------------------------------------------------------------- */

static ng_status make_figure(ng_figure *f, ng_history *history, const ng_plot_options *options)
{
    plot p = {.options = options};
    *f = (ng_figure){.function = plot_name,
                     .path = options->path,
                     .title = options->title,
                     .width = options->width,
                     .height = options->height,
                     .keep = options->keep,
                     .live = options->live,
                     .data = {.function = plot_name}};
    bool made = collect_curves(&p, f, history);
    f->panels = options->panels ? (int)p.n_names : 1;
    made = made && ng_figure_begin(f);
    if (made) print_figure(&p, f);
    ng_free(p.curves), ng_free(p.names);
    return made ? NG_OK : ng_newest_status();
}

/* A figure that is redrawn. */
struct ng_live {
    ng_figure figure;
    ng_gnuplot gnuplot;
    double drawn;     /* when, in seconds of the clock */
    int64_t n_series; /* of the history when it was drawn */
};

/* Shows what was logged last. An error of this is no error of the program that is done with it. */
static void end_live(ng_history *history)
{
    struct ng_live *live = history->live;
    const bool failed = ng_failed();
    if (live->gnuplot.process > 0) {
        live->figure.data.count = 0;
        ng_history_print(history, false, &live->figure.data);
        ng_gnuplot_show(&live->gnuplot, &live->figure, true, -1);
    }
    if (!failed) ng_clear_error();
    ng_figure_free(&live->figure);
    ng_free(live);
    history->live = NULL;
}

/* Redraws the figure if half a second has passed, or if there is a new series. */
static ng_status draw_live(ng_history *history, const ng_plot_options *options)
{
    struct ng_live *live = history->live;
    struct timespec clock;
    clock_gettime(CLOCK_MONOTONIC, &clock);
    const double now = (double)clock.tv_sec + 1e-9 * (double)clock.tv_nsec;
    int64_t n_series = 0;
    for (int64_t i = 0; i < history->count; i++) n_series += history->blocks[i].n_series;
    if (live && live->n_series == n_series && now - live->drawn < 0.5) return NG_OK;
    if (!live && !(live = ng_calloc(plot_name, 1, sizeof *live))) return NG_ENOMEM;
    history->live = live, history->end_live = end_live;
    ng_figure_free(&live->figure);
    ng_status status = make_figure(&live->figure, history, options);
    live->figure.path = live->figure.path ? "-" : NULL;
    if (status == NG_OK) status = ng_gnuplot_show(&live->gnuplot, &live->figure, false, -1);
    live->drawn = now;
    live->n_series = n_series;
    return status;
}

static ng_status draw_once(ng_history *history, const ng_plot_options *options)
{
    ng_figure f;
    ng_status status = make_figure(&f, history, options);
    if (status == NG_OK) status = ng_figure_draw(&f);
    ng_figure_free(&f);
    return status;
}

ng_status ng_plot_with(ng_history *history, ng_plot_options options)
{
    if (!ng_given(plot_name, "history", history)) return ng_newest_status();
    if ((options.smooth != 0 &&
         !ng_option_positive(plot_name, "smooth", options.smooth, "values")) ||
        !ng_option_idle(plot_name, "histories", options.live && options.histories, "without .live"))
        return ng_newest_status();
    const locale_t locale = ng_c_locale_begin();
    const ng_status status =
        options.live ? draw_live(history, &options) : draw_once(history, &options);
    ng_c_locale_end(locale);
    return status;
}
