/* ng_plot: from histories to panels of curves, with labels at their ends. */
#include "plot/plot.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plot_name[] = "ng_plot";

/* The colours of curves, of text about them (a contrast of 4.5 to the page), and their marks. */
enum { LOOKS = 5 };
static const struct {
    const char *line, *text;
    int mark;
} looks[LOOKS] = {{"#0072b2", "#0068a3", 5},
                  {"#e69f00", "#8f6000", 7},
                  {"#009e73", "#00755a", 9},
                  {"#cc79a7", "#a8487d", 11},
                  {"#000000", "#000000", 13}};

/* A series of a block; low and high are the indexes of its band's, or n_series. */
typedef struct {
    const ng_block *block;
    const char *source; /* the history's name, or NULL */
    int64_t series, low, high;
    char label[160];
    int panel, look;     /* the look is its number in the panel */
    double last, height; /* the last value; where its label stands, 0 to 1 */
    bool banded;
} curve;

typedef struct {
    const ng_plot_options *options;
    curve *curves;
    int64_t count, room;
    const char **names; /* of the series that are drawn, each once */
    int64_t n_names, names_room;
    bool many_blocks, failed;
} plot;

/* The range of an axis. */
typedef struct {
    double low, high;
    bool log;
} range;

/* ---- Which curves --------------------------------------------------------------------------- */

/* Whether the series is NAME_low, _high, _min or _max of a series NAME of the block. */
static bool is_companion(const ng_block *b, const char *name)
{
    static const char *const endings[] = {"_low", "_high", "_min", "_max"};
    const size_t length = strlen(name);
    for (int64_t k = 0; k < b->n_series; k++) {
        const size_t stem = strlen(b->series[k]);
        if (stem >= length || strncmp(name, b->series[k], stem) != 0) continue;
        for (int i = 0; i < 4; i++)
            if (strcmp(name + stem, endings[i]) == 0) return true;
    }
    return false;
}

static bool is_wanted(const plot *p, const ng_block *b, const char *name)
{
    const char *const *wanted = p->options->series;
    if (!wanted) return !is_companion(b, name) && strcmp(name, "runs") != 0 && !strchr(name, '/');
    while (*wanted && strcmp(*wanted, name) != 0) wanted++;
    return *wanted != NULL;
}

static int64_t find_companion(const ng_block *b, const char *name, const char *ending)
{
    char other[256];
    const int length = snprintf(other, sizeof other, "%s%s", name, ending);
    return length < (int)sizeof other ? ng_find_series(b, other) : b->n_series;
}

/* Adds a name to those that are drawn, and returns its index; -1 without memory. */
static int name_index(plot *p, const char *name)
{
    for (int64_t i = 0; i < p->n_names; i++)
        if (strcmp(p->names[i], name) == 0) return (int)i;
    if (!NG_RESERVE(plot_name, p->names, p->n_names, p->names_room)) return -1;
    p->names[p->n_names] = name;
    return (int)p->n_names++;
}

static bool is_drawn(double value, bool log) { return isfinite(value) && (!log || value > 0); }

/* Whether a curve can be drawn; else an error that says what is wrong with its values. */
static bool curve_has_points(const plot *p, const curve *c)
{
    const bool log_x = p->options->log_x, log_y = p->options->log_y;
    int64_t finite = 0, drawn = 0;
    for (int64_t i = 0; i < c->block->n_points; i++) {
        const ng_point *point = &c->block->points[i];
        if (point->series != c->series) continue;
        finite += isfinite(point->value);
        drawn += is_drawn(point->value, log_y) && is_drawn(ng_place(c->block, point), log_x);
    }
    if (drawn > 0) return true;
    ng_fail(NG_EVALUE, "%s: the series \"%s\"%s%s has no %s", plot_name,
            c->block->series[c->series], c->block->name ? " of the block " : "",
            c->block->name ? c->block->name : "",
            finite == 0 ? "finite value" : "positive value for the logarithmic axis");
    return false;
}

static bool add_curves(plot *p, const ng_history *history, const char *source)
{
    for (int64_t i = 0; i < history->count; i++) {
        const ng_block *b = &history->blocks[i];
        for (int64_t k = 0; k < b->n_series; k++) {
            if (!is_wanted(p, b, b->series[k])) continue;
            const int name = name_index(p, b->series[k]);
            if (name < 0 || !NG_RESERVE(plot_name, p->curves, p->count, p->room)) return false;
            curve *c = &p->curves[p->count++];
            *c = (curve){.block = b, .source = source, .series = k, .panel = name};
            c->low = find_companion(b, b->series[k], "_low");
            c->high = find_companion(b, b->series[k], "_high");
            c->banded = p->options->band && c->low < b->n_series && c->high < b->n_series;
            if (!p->options->panels) c->panel = 0;
            for (int64_t other = 0; other < p->count - 1; other++)
                c->look += p->curves[other].panel == c->panel;
            p->many_blocks = p->many_blocks || b->name != p->curves[0].block->name;
            if (!curve_has_points(p, c)) return false;
        }
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
        int64_t known = 0;
        while (known < p->n_names && strcmp(p->names[known], o->series[i]) != 0) known++;
        if (known < p->n_names) continue;
        ng_fail(NG_EVALUE, "%s: there is no series \"%s\" in the history", plot_name, o->series[i]);
        return false;
    }
    if (p->count == 0) ng_fail(NG_EVALUE, "%s: nothing is logged in the history", plot_name);
    return p->count > 0;
}

/* What distinguishes the curve from the others. */
static void label_curve(const plot *p, curve *c)
{
    const bool series = p->n_names > 1 && !p->options->panels;
    const char *parts[] = {c->source, p->many_blocks ? c->block->name : NULL,
                           series ? c->block->series[c->series] : NULL};
    int at = 0;
    for (int i = 0; i < 3; i++)
        if (parts[i] && at < (int)sizeof c->label)
            at += snprintf(c->label + at, sizeof c->label - (size_t)at, "%s%s", at ? ", " : "",
                           parts[i]);
}

/* ---- Ranges --------------------------------------------------------------------------------- */

static void extend(range *r, double value)
{
    if (!is_drawn(value, r->log)) return;
    if (!(r->low <= value)) r->low = value;
    if (!(r->high >= value)) r->high = value;
}

/* The share of the range below a value. */
static double share_below(const range *r, double value)
{
    return r->log ? log(value / r->low) / log(r->high / r->low)
                  : (value - r->low) / (r->high - r->low);
}

/* Widens the range by a share at both ends, or where it is empty. */
static void pad_range(range *r, double share)
{
    const bool empty = !(r->high > r->low);
    if (r->log) {
        const double factor = empty ? 2 : pow(r->high / r->low, share);
        r->low = fmax(r->low / factor, 1e-307), r->high = fmin(r->high * factor, 1e307);
    } else {
        const double size = fabs(r->low) > 0 ? fabs(r->low) / 10 : 1;
        const double more = empty ? size : share * (r->high - r->low);
        r->low -= more, r->high += more;
    }
}

/* A round distance of tics, at most `most` of them in the range. */
static double tic_distance(const range *r, int most)
{
    const double each = (r->high - r->low) / most, unit = pow(10, floor(log10(each)));
    return unit * (each > 5 * unit ? 10 : each > 2 * unit ? 5 : each > unit ? 2 : 1);
}

static void print_range(ng_text *text, char axis, const range *r)
{
    const double decades = r->log ? log10(r->high / r->low) : 0;
    ng_text_print(text, "set %crange [%.9g:%.9g]\nset format %c '%s'\nset %ctics autofreq\n", axis,
                  r->low, r->high, axis, decades >= 2 ? "10^{%T}" : "%g", axis);
    ng_text_print(text, r->log ? "set logscale %c\n" : "unset logscale %c\n", axis);
    if (!r->log && axis == 'x') ng_text_print(text, "set xtics %.9g\n", tic_distance(r, 6));
    if (!r->log || decades >= 2) return;
    /* By itself gnuplot would mark powers of ten alone. */
    const double least = decades > 0.7 ? 0 : tic_distance(r, 8);
    const char *between = "(";
    ng_text_print(text, "set %ctics ", axis);
    for (double tic = least > 0 ? least * ceil(r->low / least) : pow(10, floor(log10(r->low)));
         tic <= r->high; between = ", ") {
        ng_text_print(text, "%s%g", between, tic);
        const double digit = tic / pow(10, floor(log10(tic) + 1e-9));
        tic = least > 0 ? tic + least : tic * (digit < 1.5 ? 2 : digit < 3 ? 2.5 : 2);
    }
    ng_text_print(text, ")\n");
}

/* ---- The numbers and the commands ----------------------------------------------------------- */

/* Prints x, the value, and the ends of the band, and extends the ranges. Where values cannot be
 * drawn there is one blank line, which interrupts a curve; two would begin the next one. */
static void print_points(ng_text *data, curve *c, range *x, range *y)
{
    const ng_block *b = c->block;
    ng_text_print(data, "# %s%s%s\n", b->series[c->series], b->name ? ", " : "",
                  b->name ? b->name : "");
    bool going = false;
    for (int64_t i = 0; i < b->n_points;) {
        double value[3] = {(double)NAN, (double)NAN, (double)NAN};
        const ng_point *first = &b->points[i];
        bool logged = false;
        for (; i < b->n_points && ng_same_place(b, first, &b->points[i]); i++) {
            const ng_point *p = &b->points[i];
            logged = logged || p->series == c->series;
            if (p->series == c->series) value[0] = p->value;
            if (p->series == c->low) value[1] = p->value;
            if (p->series == c->high) value[2] = p->value;
        }
        if (!logged) continue;
        const double place = ng_place(b, first);
        bool drawn = is_drawn(place, x->log);
        for (int k = 0; k < (c->banded ? 3 : 1); k++) drawn = drawn && is_drawn(value[k], y->log);
        if (!drawn && going) ng_text_print(data, "\n");
        if (!(going = drawn)) continue;
        ng_text_print(data, "%.17g %.9g", place, value[0]);
        if (c->banded) ng_text_print(data, " %.9g %.9g", value[1], value[2]);
        ng_text_print(data, "\n");
        extend(x, place), c->last = value[0];
        for (int k = 0; k < (c->banded ? 3 : 1); k++) extend(y, value[k]);
    }
    ng_text_print(data, "\n\n");
}

static int by_height(const void *a, const void *b)
{
    const curve *const *c = a, *const *d = b;
    return ((*c)->height > (*d)->height) - ((*c)->height < (*d)->height);
}

/* Moves labels that are closer than `gap` apart, in the order of their curves' ends: upwards first,
 * and down again from the top. */
static void spread_labels(curve **ends, int count, double gap)
{
    qsort(ends, (size_t)count, sizeof *ends, by_height);
    for (int i = 1; i < count; i++)
        ends[i]->height = fmax(ends[i]->height, ends[i - 1]->height + gap);
    if (count > 0) ends[count - 1]->height = fmin(ends[count - 1]->height, 1);
    for (int i = count - 2; i >= 0; i--)
        ends[i]->height = fmin(ends[i]->height, ends[i + 1]->height - gap);
}

static void print_labels(plot *p, ng_figure *f, int panel, const range *y, curve **ends)
{
    const int rows = (f->panels + f->columns - 1) / f->columns;
    const bool text = f->path && strcmp(f->path, "-") == 0;
    const double gap = (text ? 1.3 : 22) * rows / ng_figure_height(f);
    int count = 0;
    size_t longest = 0;
    for (int64_t i = 0; i < p->count; i++) {
        curve *c = &p->curves[i];
        if (c->panel != panel || !c->label[0]) continue;
        c->height = share_below(y, c->last);
        ends[count++] = c;
        if (strlen(c->label) > longest) longest = strlen(c->label);
    }
    spread_labels(ends, count, gap);
    ng_text_print(&f->script, "unset label\nset rmargin %d\n", (int)longest + 3);
    for (int i = 0; i < count; i++) {
        ng_text_print(&f->script, "set label ");
        ng_text_quote(&f->script, ends[i]->label);
        ng_text_print(&f->script,
                      " at graph 1.01, graph %.4f left offset 0.7,0 noenhanced tc rgb '%s'\n",
                      ends[i]->height, looks[ends[i]->look % LOOKS].text);
    }
}

static void print_panel(plot *p, ng_figure *f, int panel, int first, curve **ends)
{
    const ng_plot_options *o = p->options;
    range x = {(double)NAN, (double)NAN, o->log_x}, y = {(double)NAN, (double)NAN, o->log_y};
    const char *axis = "step", *name = p->n_names == 1 ? p->names[0] : NULL;
    for (int64_t i = 0; i < p->count; i++) {
        if (p->curves[i].panel != panel) continue;
        print_points(&f->data, &p->curves[i], &x, &y);
        axis = ng_axis_name(p->curves[i].block);
    }
    if (!(x.high > x.low)) pad_range(&x, 0);
    pad_range(&y, 0.04);
    ng_text *text = &f->script;
    print_range(text, 'x', &x), print_range(text, 'y', &y);
    ng_text_label(text, "xlabel", o->x_label ? o->x_label : axis);
    if (o->panels) name = p->names[panel];
    ng_text_label(text, "ylabel", o->y_label ? o->y_label : name ? name : "");
    print_labels(p, f, panel, &y, ends);
    const char *between = "plot";
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0, index = first; i < p->count; i++) {
            const curve *c = &p->curves[i];
            if (c->panel != panel) continue;
            const char *colour = looks[c->look % LOOKS].line;
            const bool dashed = c->look >= LOOKS;
            if (pass == 0 && c->banded)
                ng_text_print(text,
                              "%s data index %d using 1:3:4 with filledcurves fs transparent solid "
                              "0.15 noborder lc rgb '%s'",
                              between, (int)index, colour);
            if (pass == 1)
                ng_text_print(text,
                              "%s data index %d using 1:2 with linespoints lc rgb '%s' lw 2 dt %d "
                              "pt %d ps 0.7 pn 6",
                              between, (int)index, colour, dashed ? 2 : 1,
                              looks[c->look % LOOKS].mark);
            if (pass == 1 || c->banded) between = ",";
            index++;
        }
    }
    ng_text_print(text, "\n");
}

/* Prints all panels; each has the blocks of numbers that follow those of the panel before. */
static bool print_panels(plot *p, ng_figure *f)
{
    int first = 0;
    curve **ends = ng_calloc(plot_name, p->count, sizeof *ends);
    if (!ends) return false;
    for (int panel = 0; panel < f->panels; panel++) {
        print_panel(p, f, panel, first, ends);
        for (int64_t i = 0; i < p->count; i++) first += p->curves[i].panel == panel;
    }
    ng_free(ends);
    return true;
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
    bool drawn = collect_curves(&p, history);
    f.panels = options.panels ? (int)p.n_names : 1;
    f.columns = f.panels <= 3 ? f.panels : f.panels <= 6 ? 3 : 4;
    if (f.panels == 4) f.columns = 2;
    for (int64_t i = 0; i < p.count; i++) label_curve(&p, &p.curves[i]);
    drawn = drawn && print_panels(&p, &f);
    const ng_status status = drawn ? ng_figure_draw(&f) : ng_newest_status();
    ng_c_locale_end(locale);
    ng_free(p.curves), ng_free(p.names);
    return status;
}
