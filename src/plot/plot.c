/* ng_plot: from histories to panels of curves. */
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char plot_name[] = "ng_plot";

/* The colours and the marks of the curves of a panel. */
enum { LOOKS = 5 };
static const struct {
    const char *colour;
    int mark;
} looks[LOOKS] = {{"#0072b2", 5}, {"#e69f00", 7}, {"#009e73", 9}, {"#cc79a7", 11}, {"#000000", 13}};

/* A series of a block; low and high are the indexes of its band's, or n_series. */
typedef struct {
    const ng_block *block;
    const char *source; /* the history's name, or NULL */
    int64_t series, low, high;
    int panel, look; /* the look is its number in the panel */
    bool banded;
} curve;

typedef struct {
    const ng_plot_options *options;
    curve *curves;
    int64_t count, room;
    const char **names; /* of the series that are drawn, each once */
    int64_t n_names, names_room;
    bool many_blocks;
} plot;

/* ---- Which curves --------------------------------------------------------------------------- */

static int64_t find_companion(const ng_block *b, const char *name, const char *ending)
{
    char other[256];
    const int length = snprintf(other, sizeof other, "%s%s", name, ending);
    return length < (int)sizeof other ? ng_find_series(b, other) : b->n_series;
}

/* Whether a series' name is that of a quartile or an extreme of another. */
static bool is_companion(const char *name)
{
    const char *ending = strrchr(name, '_');
    return ending && (strcmp(ending, "_low") == 0 || strcmp(ending, "_high") == 0 ||
                      strcmp(ending, "_min") == 0 || strcmp(ending, "_max") == 0);
}

static bool is_wanted(const plot *p, const char *name)
{
    const char *const *wanted = p->options->series;
    if (!wanted) return strcmp(name, "runs") != 0 && !strchr(name, '/') && !is_companion(name);
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

static bool add_curve(plot *p, const ng_block *b, int64_t series, const char *source)
{
    const char *name = b->series[series];
    const int64_t index = find_name(p, name);
    if (index == p->n_names) {
        if (!NG_RESERVE(plot_name, p->names, p->n_names, p->names_room)) return false;
        p->names[p->n_names++] = name;
    }
    if (!NG_RESERVE(plot_name, p->curves, p->count, p->room)) return false;
    curve *c = &p->curves[p->count++];
    *c = (curve){.block = b, .source = source, .series = series};
    c->panel = p->options->panels ? (int)index : 0;
    c->low = find_companion(b, name, "_low"), c->high = find_companion(b, name, "_high");
    c->banded = p->options->band && c->low < b->n_series && c->high < b->n_series;
    for (int64_t i = 0; i < p->count - 1; i++) c->look += p->curves[i].panel == c->panel;
    p->many_blocks = p->many_blocks || b->name != p->curves[0].block->name;
    return curve_has_points(p, c);
}

static bool add_curves(plot *p, const ng_history *history, const char *source)
{
    for (int64_t i = 0; i < history->count; i++) {
        const ng_block *b = &history->blocks[i];
        for (int64_t k = 0; k < b->n_series; k++)
            if (is_wanted(p, b->series[k]) && !add_curve(p, b, k, source)) return false;
    }
    return true;
}

static bool collect_curves(plot *p, const ng_history *history)
{
    const ng_plot_options *o = p->options;
    if (!add_curves(p, history, o->names ? o->names[0] : NULL)) return false;
    for (int i = 0; o->histories && o->histories[i]; i++)
        if (!add_curves(p, o->histories[i], o->names ? o->names[i + 1] : NULL)) return false;
    for (int i = 0; o->series && o->series[i]; i++) {
        if (find_name(p, o->series[i]) < p->n_names) continue;
        ng_fail(NG_EVALUE, "%s: there is no series \"%s\" in the history", plot_name, o->series[i]);
        return false;
    }
    if (p->count == 0) ng_fail(NG_EVALUE, "%s: nothing is logged in the history", plot_name);
    return p->count > 0;
}

/* ---- The numbers and the commands ----------------------------------------------------------- */

/* Prints x, the value, and the ends of the band. NaN interrupts the curve and the band. A live
 * figure has some hundred points, so that printing and drawing them takes no time. */
static void print_points(ng_text *data, const plot *p, const curve *c)
{
    const ng_block *b = c->block;
    const int64_t columns[] = {c->series, c->low, c->high};
    const int64_t every = p->options->live ? b->n_points / (500 * b->n_series) + 1 : 1;
    int64_t count = 0;
    ng_text_print(data, "# %s%s%s\n", b->series[c->series], b->name ? ", " : "",
                  b->name ? b->name : "");
    for (int64_t i = 0; i < b->n_points;) {
        double values[3] = {(double)NAN, (double)NAN, (double)NAN};
        const ng_point *first = &b->points[i];
        bool logged = false, drawn = is_drawn(ng_place(b, first), p->options->log_x);
        for (; i < b->n_points && ng_same_place(b, first, &b->points[i]); i++) {
            logged = logged || b->points[i].series == c->series;
            for (int k = 0; k < 3; k++)
                if (b->points[i].series == columns[k]) values[k] = b->points[i].value;
        }
        if (!logged || count++ % every != 0) continue;
        for (int k = 0; k < (c->banded ? 3 : 1); k++)
            drawn = drawn && is_drawn(values[k], p->options->log_y);
        if (!drawn)
            ng_text_print(data, "%.9g NaN NaN NaN\n", ng_place(b, first));
        else if (c->banded)
            ng_text_print(data, "%.9g %.9g %.9g %.9g\n", ng_place(b, first), values[0], values[1],
                          values[2]);
        else
            ng_text_print(data, "%.9g %.9g\n", ng_place(b, first), values[0]);
    }
    ng_text_print(data, "\n\n");
}

/* Prints what distinguishes the curve from the others. */
static void print_name(ng_text *text, const plot *p, const curve *c)
{
    char name[160] = "";
    const bool series = p->n_names > 1 && !p->options->panels;
    const char *parts[] = {c->source, p->many_blocks ? c->block->name : NULL,
                           series ? c->block->series[c->series] : NULL};
    for (int i = 0; i < 3; i++) {
        const size_t used = strlen(name);
        if (parts[i]) snprintf(name + used, sizeof name - used, "%s%s", used ? ", " : "", parts[i]);
    }
    ng_text_print(text, " title ");
    ng_text_quote(text, name);
}

/* Prints a panel whose numbers begin with block `index`. Returns the index of the next panel's. */
static int print_panel(const plot *p, ng_figure *f, int panel, int index)
{
    const ng_plot_options *o = p->options;
    ng_text *text = &f->script, bands = {.function = plot_name}, lines = {.function = plot_name};
    const char *axis = "step", *name = p->n_names == 1 ? p->names[0] : "";
    double low = HUGE_VAL, high = -HUGE_VAL;
    for (int64_t i = 0; i < p->count; i++) {
        const curve *c = &p->curves[i];
        if (c->panel != panel) continue;
        const int look = c->look % LOOKS;
        axis = ng_axis_name(c->block);
        low = fmin(low, ng_place(c->block, &c->block->points[0]));
        high = fmax(high, ng_place(c->block, &c->block->points[c->block->n_points - 1]));
        print_points(&f->data, p, c);
        if (c->banded)
            ng_text_print(&bands,
                          "data index %d using 1:3:4 with filledcurves fs transparent solid 0.15 "
                          "noborder lc rgb '%s' notitle, ",
                          index, looks[look].colour);
        ng_text_print(&lines,
                      "%sdata index %d using 1:2 with linespoints lc rgb '%s' lw 2 dt %d pt %d ps "
                      "0.7 pn 6",
                      lines.count ? ", " : "", index++, looks[look].colour, c->look < LOOKS ? 1 : 2,
                      looks[look].mark);
        print_name(&lines, p, c);
    }
    if (o->panels) name = p->names[panel];
    ng_text_label(text, "xlabel", o->x_label ? o->x_label : axis);
    ng_text_label(text, "ylabel", o->y_label ? o->y_label : name);
    if (!o->log_x) ng_text_tics(text, low, high, 6);
    ng_text_print(text, "plot ");
    ng_text_add(text, bands.bytes, bands.count);
    ng_text_add(text, lines.bytes, lines.count);
    ng_text_print(text, "\n");
    text->failed = text->failed || bands.failed || lines.failed;
    ng_free(bands.bytes), ng_free(lines.bytes);
    return index;
}

static void print_panels(const plot *p, ng_figure *f)
{
    const ng_plot_options *o = p->options;
    f->panels = o->panels ? (int)p->n_names : 1;
    f->columns = f->panels == 4 ? 2 : f->panels > 6 ? 4 : f->panels > 3 ? 3 : f->panels;
    /* Beside a narrow panel a key would leave it no width. Below, it begins at the axis' name. */
    if (f->panels > 1) ng_text_print(&f->script, "set xlabel offset 0,0.6\n");
    ng_text_print(&f->script, "set key %s%s\n%s%s",
                  f->panels > 1 ? "bottom center horizontal " : "",
                  p->count > f->panels ? "on" : "off",
                  o->log_x ? "set logscale x\nset format x '10^{%T}'\n" : "set autoscale xfix\n",
                  o->log_y ? "set logscale y\nset format y '10^{%T}'\n" : "");
    for (int panel = 0, index = 0; panel < f->panels; panel++)
        index = print_panel(p, f, panel, index);
}

ng_status ng_plot_with(ng_history *history, ng_plot_options options)
{
    if (!ng_given(plot_name, "history", history)) return ng_newest_status();
    ng_figure f = {.function = plot_name,
                   .path = options.path,
                   .title = options.title,
                   .width = options.width,
                   .height = options.height,
                   .keep = options.keep,
                   .live = options.live ? &history->live : NULL};
    plot p = {.options = &options};
    f.data.function = f.script.function = plot_name;
    if (!ng_figure_accepted(&f)) return ng_newest_status();
    if (f.live && !ng_live_is_due(f.live)) return NG_OK;
    const locale_t locale = ng_c_locale_begin();
    ng_status status = collect_curves(&p, history) ? NG_OK : ng_newest_status();
    if (status == NG_OK) {
        print_panels(&p, &f);
        status = ng_figure_draw(&f);
    }
    ng_c_locale_end(locale);
    ng_free(f.data.bytes), ng_free(f.script.bytes);
    ng_free(p.curves), ng_free(p.names);
    return status;
}
