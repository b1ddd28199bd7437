/* Named series of numbers by step or by x, and the aligned columns that gnuplot reads.
 *
 * The points of a series are read in the order of their places. Most are logged in this order; the
 * others are sorted in before the series is read, or when they are more than half of the points. */
#include "io/history.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies a text with spaces in place of new lines. */
static char *one_line_copy(const char *function, const char *text)
{
    char *copy = ng_copy_text(function, text);
    for (char *p = copy; p && *p; p++)
        if (*p == '\n' || *p == '\r') *p = ' ';
    return copy;
}

/* ---- Make and free ------------------------------------------------------------------------- */

ng_history *ng_history_new(const char *what)
{
    if (!ng_given("ng_history_new", "what", what)) return NULL;
    ng_history *self = ng_calloc("ng_history_new", 1, sizeof *self);
    if (!self) return NULL;
    self->what = one_line_copy("ng_history_new", what);
    if (self->what) return self;
    ng_free(self);
    return NULL;
}

void ng_history_free(ng_history *history)
{
    if (!history) return;
    if (history->live) history->end_live(history);
    for (int64_t i = 0; i < history->count; i++) {
        ng_block *b = &history->blocks[i];
        for (int64_t k = 0; k < b->n_series; k++)
            ng_free(b->series[k].name), ng_free(b->series[k].points);
        ng_free(b->series);
        ng_free(b->name);
    }
    ng_free(history->blocks);
    ng_free(history->what);
    ng_free(history);
}

/* ---- Log ----------------------------------------------------------------------------------- */

static bool add_history_block(const char *function, ng_history *self, char *name)
{
    if (!NG_RESERVE(function, self->blocks, self->count, self->room)) return false;
    self->blocks[self->count++] = (ng_block){.name = name};
    return true;
}

static bool has_block(const ng_history *self, const char *name)
{
    for (int64_t i = 0; i < self->count; i++)
        if (self->blocks[i].name && strcmp(self->blocks[i].name, name) == 0) return true;
    return false;
}

ng_status ng_history_block(ng_history *history, const char *name)
{
    static const char function[] = "ng_history_block";
    if (!ng_given(function, "history", history) || !ng_given(function, "name", name))
        return ng_newest_status();
    char *copy = one_line_copy(function, name);
    if (!copy) return NG_ENOMEM;
    const bool taken = has_block(history, copy);
    if (!taken && add_history_block(function, history, copy)) return NG_OK;
    ng_free(copy);
    return taken ? ng_fail(NG_EVALUE, "%s: there is a block \"%s\" already", function, name)
                 : NG_ENOMEM;
}

static bool is_series_name(const char *name, bool real)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";
    return *name && name[strspn(name, allowed)] == '\0' && strcmp(name, "step") != 0 &&
           !(real && strcmp(name, "x") == 0);
}

int64_t ng_find_series(const ng_block *b, const char *name)
{
    for (int64_t i = 0; i < b->n_series; i++) {
        const int64_t at = (b->newest + i) % b->n_series;
        if (strcmp(b->series[at].name, name) == 0) return at;
    }
    return b->n_series;
}

static bool add_series(const char *function, ng_block *b, const char *name)
{
    if (!NG_RESERVE(function, b->series, b->n_series, b->room)) return false;
    b->series[b->n_series] = (ng_series){.name = ng_copy_text(function, name), .real = b->real};
    return b->series[b->n_series].name && ++b->n_series;
}

void ng_history_mark(ng_history *history, ng_series_kind kind)
{
    ng_block *b = &history->blocks[history->count - 1];
    b->series[b->newest].kind = kind;
}

static int by_order(const ng_point *p, const ng_point *q)
{
    return (p->order > q->order) - (p->order < q->order);
}

static int by_step(const void *a, const void *b)
{
    const int places = ng_compare_places(false, a, b);
    return places != 0 ? places : by_order(a, b);
}

static int by_x(const void *a, const void *b)
{
    const int places = ng_compare_places(true, a, b);
    return places != 0 ? places : by_order(a, b);
}

void ng_series_sort(ng_series *s)
{
    if (s->n_sorted == s->n_points) return;
    for (int64_t i = 0; i < s->n_points; i++) s->points[i].order = i;
    qsort(s->points, (size_t)s->n_points, sizeof *s->points, s->real ? by_x : by_step);
    int64_t last = 0;
    for (int64_t i = 1; i < s->n_points; i++) {
        last += ng_compare_places(s->real, &s->points[i], &s->points[last]) != 0;
        s->points[last] = s->points[i];
    }
    s->n_points = s->n_sorted = last + 1;
}

/* Returns the point of the same place in a series that is sorted, or NULL. */
static ng_point *find_point(const ng_series *s, const ng_point *p)
{
    int64_t low = 0, high = s->n_sorted;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const bool before = ng_compare_places(s->real, &s->points[middle], p) < 0;
        *(before ? &low : &high) = before ? middle + 1 : middle;
    }
    ng_point *found = low < s->n_sorted ? &s->points[low] : NULL;
    return found && ng_compare_places(s->real, found, p) == 0 ? found : NULL;
}

static bool add_point(const char *function, ng_block *b, int64_t series, ng_point point)
{
    ng_series *s = &b->series[series];
    const bool sorted = s->n_sorted == s->n_points;
    const ng_point *last = s->n_points > 0 ? &s->points[s->n_points - 1] : NULL;
    const bool after = !last || ng_compare_places(s->real, last, &point) < 0;
    ng_point *again = sorted && !after ? find_point(s, &point) : NULL;
    if (!again && !NG_RESERVE(function, s->points, s->n_points, s->room)) return false;
    b->newest = series;
    if (again) return *again = point, true;
    s->n_sorted += sorted && after;
    s->points[s->n_points++] = point;
    if (s->n_points > 2 * s->n_sorted + 64) ng_series_sort(s);
    return true;
}

static ng_status log_point(const char *function, ng_history *history, const char *series, bool real,
                           ng_point point)
{
    if (!ng_given(function, "history", history) || !ng_given(function, "series", series))
        return ng_newest_status();
    ng_block *b = history->count > 0 ? &history->blocks[history->count - 1] : NULL;
    const int64_t index = b ? ng_find_series(b, series) : 0;
    if ((!b || index == b->n_series) && !is_series_name(series, real))
        return ng_fail(NG_EVALUE,
                       "%s: \"%s\", expected a name of letters, digits, '_', '-', '.' and '/', "
                       "other than \"step\"%s",
                       function, series, real ? " and \"x\"" : "");
    if (!b && !add_history_block(function, history, NULL)) return NG_ENOMEM;
    b = &history->blocks[history->count - 1];
    if (b->n_series > 0 && b->real != real)
        return ng_fail(NG_EVALUE, "%s: the block's values are logged by %s, and this one by %s",
                       function, real ? "step" : "x", real ? "x" : "step");
    b->real = real;
    const bool added = index == b->n_series;
    if (added && !add_series(function, b, series)) return NG_ENOMEM;
    if (add_point(function, b, index, point)) return NG_OK;
    if (added) ng_free(b->series[--b->n_series].name);
    return NG_ENOMEM;
}

ng_status ng_history_log(ng_history *history, const char *series, int64_t step, double value)
{
    return log_point("ng_history_log", history, series, false,
                     (ng_point){.step = step, .value = value});
}

ng_status ng_history_log_at(ng_history *history, const char *series, double x, double value)
{
    static const char function[] = "ng_history_log_at";
    if (!isfinite(x))
        return ng_fail(NG_EVALUE, "%s: x is %g, expected a finite number", function, x);
    return log_point(function, history, series, true, (ng_point){.x = x + 0.0, .value = value});
}

/* ---- Write --------------------------------------------------------------------------------- */

/* Nine digits give a float back exactly. */
static const char *value_text(double value, char text[32])
{
    snprintf(text, 32, "%.9g", value);
    return isnan(value) ? "NaN" : isfinite(value) ? text : value > 0 ? "Inf" : "-Inf";
}

static const char *const kind_names[NG_SERIES_KINDS] = {
    [NG_SERIES_CURVE] = "curve", [NG_SERIES_SPREAD] = "spread", [NG_SERIES_LAYER] = "layer"};
static const char kinds_line[] = "#kinds:";

/* Prints one column of a line. A column is as wide as its name and most numbers; the last one is
 * not padded. */
static void print_column(ng_text *text, const ng_block *b, int64_t series, const char *cell)
{
    enum { STEP = 8, VALUE = 12 };
    const char *name = series < 0 ? ng_axis_name(b) : b->series[series].name;
    const int least = series < 0 ? STEP : VALUE, length = (int)strlen(name);
    const int width = length > least ? length : least;
    if (series == b->n_series - 1)
        ng_text_print(text, "%s\n", cell);
    else
        ng_text_print(text, "%-*s  ", width, cell);
}

/* Prints the kinds of the series, if not all are curves. */
static void print_kinds(ng_text *text, const ng_block *b)
{
    int64_t k = 0;
    while (k < b->n_series && b->series[k].kind == NG_SERIES_CURVE) k++;
    if (k == b->n_series) return;
    print_column(text, b, -1, kinds_line);
    for (k = 0; k < b->n_series; k++) print_column(text, b, k, kind_names[b->series[k].kind]);
}

/* Prints a row for each place. `next` is the next point of each series. */
static void print_history_rows(ng_text *text, const ng_block *b, int64_t *next)
{
    while (!text->failed) {
        const ng_point *first = NULL;
        for (int64_t k = 0; k < b->n_series; k++) {
            const ng_series *s = &b->series[k];
            const ng_point *p = next[k] < s->n_points ? &s->points[next[k]] : NULL;
            if (p && (!first || ng_compare_places(b->real, p, first) < 0)) first = p;
        }
        if (!first) return;
        char step[24], value[32];
        snprintf(step, sizeof step, "%lld", (long long)first->step);
        print_column(text, b, -1, b->real ? ng_number_print(first->x).text : step);
        for (int64_t k = 0; k < b->n_series; k++) {
            const ng_series *s = &b->series[k];
            const ng_point *p = next[k] < s->n_points ? &s->points[next[k]] : NULL;
            const bool logged = p && ng_compare_places(b->real, p, first) == 0;
            print_column(text, b, k, logged ? value_text(p->value, value) : "?");
            next[k] += logged;
        }
    }
}

static void print_block(ng_text *text, ng_block *b)
{
    int64_t *next = ng_calloc(text->function, b->n_series + 1, sizeof *next);
    if (!next) text->failed = true;
    for (int64_t k = 0; k < b->n_series; k++) ng_series_sort(&b->series[k]);
    if (b->name) ng_text_print(text, "# %s\n", b->name);
    print_kinds(text, b);
    print_column(text, b, -1, ng_axis_name(b));
    for (int64_t k = 0; k < b->n_series; k++) print_column(text, b, k, b->series[k].name);
    if (next) print_history_rows(text, b, next);
    ng_free(next);
}

void ng_history_print(const ng_history *history, bool all, ng_text *text)
{
    const locale_t locale = ng_c_locale_begin();
    const char *between = "\n";
    ng_text_print(text, "# what: %s; normgrad %s\n", history->what, ng_version());
    for (int64_t i = 0; i < history->count; i++) {
        ng_block *b = &history->blocks[i];
        if (b->n_series == 0 && !all) continue;
        ng_text_print(text, "%s", between);
        print_block(text, b);
        between = "\n\n";
    }
    ng_c_locale_end(locale);
}

ng_status ng_history_write(const ng_history *history, const char *path)
{
    static const char function[] = "ng_history_write";
    if (!ng_given(function, "history", history) || !ng_given(function, "path", path))
        return ng_newest_status();
    ng_text text = {.function = function};
    ng_history_print(history, false, &text);
    return ng_text_save(&text, path);
}

/* ---- Read ---------------------------------------------------------------------------------- */

/* The next line, ended with a zero byte. */
static bool next_text_line(ng_lines *in)
{
    if (!ng_lines_next(in)) return false;
    *in->stop = '\0';
    return true;
}

static bool history_expected(const ng_lines *in, const char *what)
{
    return ng_refuse(in->origin, NG_EPARSE, "line %lld: expected %s", (long long)in->line, what);
}

/* The next word of the line; NULL at its end. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " ");
    if (*word == '\0') return NULL;
    char *stop = word + strcspn(word, " ");
    *at = *stop ? stop + 1 : stop;
    *stop = '\0';
    return word;
}

static bool parse_place(const char *word, bool real, ng_point *p)
{
    char *stop;
    if (real) return ng_parse_number(word, word + strlen(word), &p->x) && isfinite(p->x);
    errno = 0;
    p->step = strtoll(word, &stop, 10);
    return *stop == '\0' && errno == 0;
}

static bool parse_value(const char *word, double *value)
{
    if (strcmp(word, "NaN") == 0) return *value = (double)NAN, true;
    if (strcmp(word, "Inf") == 0) return *value = HUGE_VAL, true;
    if (strcmp(word, "-Inf") == 0) return *value = -HUGE_VAL, true;
    return ng_parse_number(word, word + strlen(word), value) && isfinite(*value);
}

/* Parses "step" or "x" and the names of the series. */
static bool parse_names(const ng_lines *in, bool all, ng_block *b)
{
    char *at = in->at, *word = next_word(&at);
    b->real = word && strcmp(word, "x") == 0;
    if (!word || (!b->real && strcmp(word, "step") != 0))
        return history_expected(in, "a line of names, from \"step\" or \"x\" on");
    while ((word = next_word(&at))) {
        if (!is_series_name(word, b->real) || ng_find_series(b, word) < b->n_series)
            return history_expected(
                in, "names of series that differ, of letters, digits, '_', '-', '.', '/'");
        if (!add_series(in->origin.function, b, word)) return false;
    }
    return b->n_series > 0 || all || history_expected(in, "a series");
}

/* Parses the words of a line of kinds. */
static bool parse_kinds(const ng_lines *in, char *words, ng_block *b)
{
    const char *word;
    for (int64_t k = 0; k < b->n_series; k++) {
        int kind = 0;
        if (!(word = next_word(&words)))
            return history_expected(in, "a kind for each series in the line before");
        while (kind < NG_SERIES_KINDS && strcmp(word, kind_names[kind]) != 0) kind++;
        if (kind == NG_SERIES_KINDS)
            return history_expected(in, "the kinds curve, spread and layer in the line before");
        b->series[k].kind = (ng_series_kind)kind;
    }
    return !next_word(&words) ||
           history_expected(in, "no more kinds than series in the line before");
}

/* Parses a row; `before` is the place of the one before it, with order 0 if there is none. */
static bool parse_history_row(const ng_lines *in, ng_block *b, ng_point *before)
{
    char *at = in->at, *word = next_word(&at);
    ng_point p = {.order = 1};
    if (!word || !parse_place(word, b->real, &p))
        return history_expected(in, b->real ? "a number" : "a step");
    if (before->order > 0 && ng_compare_places(b->real, &p, before) <= 0)
        return history_expected(in, b->real ? "an x beyond the one before"
                                            : "a step beyond the one before");
    *before = p;
    for (int64_t k = 0; k < b->n_series; k++) {
        if (!(word = next_word(&at))) return history_expected(in, "a value for each series");
        if (strcmp(word, "?") == 0) continue;
        if (!parse_value(word, &p.value))
            return history_expected(in, "a number, NaN, Inf, -Inf or ?");
        if (!add_point(in->origin.function, b, k, p)) return false;
    }
    return !next_word(&at) || history_expected(in, "no more values than series");
}

/* Parses a block from its name or first line to the blank line or the end after it. */
static bool parse_history_block(ng_lines *in, bool all, ng_history *history)
{
    char *kinds = NULL;
    ng_point before = {0};
    if (in->at[0] == '#' && strncmp(in->at, kinds_line, strlen(kinds_line)) != 0) {
        const char *name = in->at + 2;
        if (in->at[1] != ' ' || has_block(history, name))
            return history_expected(in, "\"# \" and a name that no block has yet");
        if (ng_history_block(history, name) != NG_OK) return false;
        if (!next_text_line(in)) return history_expected(in, "a line of names");
    } else if (!add_history_block(in->origin.function, history, NULL)) {
        return false;
    }
    ng_block *b = &history->blocks[history->count - 1];
    if (strncmp(in->at, kinds_line, strlen(kinds_line)) == 0) {
        kinds = in->at + strlen(kinds_line);
        if (!next_text_line(in)) return history_expected(in, "a line of names");
    }
    if (!parse_names(in, all, b) || (kinds && !parse_kinds(in, kinds, b))) return false;
    while (next_text_line(in) && in->at[0] != '\0')
        if (!parse_history_row(in, b, &before)) return false;
    return true;
}

static ng_history *parse_history(ng_lines *in, bool all)
{
    static const char opening[] = "# what: ", version[] = "; normgrad ";
    if (!next_text_line(in) || strncmp(in->at, opening, strlen(opening)) != 0)
        return history_expected(in, "\"# what: \", as ng_history_write begins"), NULL;
    char *what = in->at + strlen(opening), *cut = NULL;
    for (char *at = what; (at = strstr(at, version)); at++) cut = at;
    if (!cut) return history_expected(in, "the version of normgrad"), NULL;
    *cut = '\0';
    ng_history *history = ng_history_new(what);
    while (history && next_text_line(in)) {
        if (in->at[0] == '\0' || parse_history_block(in, all, history)) continue;
        ng_history_free(history);
        return NULL;
    }
    return history;
}

ng_history *ng_history_parse(const char *function, const char *path, bool all, char *text,
                             int64_t size)
{
    ng_lines in = {.origin = {function, path}, .next = text, .end = text + size};
    if (memchr(text, '\0', (size_t)size)) {
        ng_refuse(in.origin, NG_EPARSE, "there is a zero byte in it");
        return NULL;
    }
    const locale_t locale = ng_c_locale_begin();
    ng_history *history = parse_history(&in, all);
    ng_c_locale_end(locale);
    return history;
}

ng_history *ng_history_read(const char *path)
{
    static const char function[] = "ng_history_read";
    if (!ng_given(function, "path", path)) return NULL;
    int64_t size = 0;
    char *text = ng_file_read(function, path, &size);
    ng_history *history = text ? ng_history_parse(function, path, false, text, size) : NULL;
    ng_free(text);
    return history;
}

void ng_history_swap_blocks(ng_history *a, ng_history *b)
{
    if (a->live) a->end_live(a);
    const ng_history was = *a;
    a->blocks = b->blocks, a->count = b->count, a->room = b->room;
    b->blocks = was.blocks, b->count = was.count, b->room = was.room;
}
