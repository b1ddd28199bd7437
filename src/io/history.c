/* Named series of numbers by step, and the aligned columns that gnuplot reads.
 *
 * Each series keeps its points in the order of their steps. A step is mostly logged after those
 * before it, so that the search for its place ends at once. */
#include "io/history.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t step;
    double value;
} point;

typedef struct {
    char *name;
    point *points; /* by step */
    int64_t count, capacity;
} series;

typedef struct {
    char *name; /* NULL: the first block of a history that begins without one */
    series *series;
    int64_t count, capacity;
} block;

struct ng_history {
    char *what;
    block *blocks; /* the last one is written to */
    int64_t count, capacity;
};

/* A copy that stays on the one line of a comment. */
static char *one_line_copy(const char *function, const char *text)
{
    char *copy = ng_copy_text(function, text);
    for (char *p = copy; p && *p; p++)
        if (*p == '\n' || *p == '\r') *p = ' ';
    return copy;
}

/* ---- Make and free -------------------------------------------------------------------------- */

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

static void free_block(block *b)
{
    for (int64_t i = 0; i < b->count; i++) {
        ng_free(b->series[i].name);
        ng_free(b->series[i].points);
    }
    ng_free(b->series);
    ng_free(b->name);
}

void ng_history_free(ng_history *history)
{
    if (!history) return;
    for (int64_t i = 0; i < history->count; i++) free_block(&history->blocks[i]);
    ng_free(history->blocks);
    ng_free(history->what);
    ng_free(history);
}

/* ---- Log ------------------------------------------------------------------------------------ */

static block *add_block(const char *function, ng_history *self, char *name)
{
    void *blocks = self->blocks;
    if (!ng_reserve(function, &blocks, self->count, &self->capacity, sizeof(block))) return NULL;
    self->blocks = blocks;
    block *b = &self->blocks[self->count++];
    *b = (block){.name = name};
    return b;
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
    if (!taken && add_block(function, history, copy)) return NG_OK;
    ng_free(copy);
    return taken ? ng_fail(NG_EVALUE, "ng_history_block: there is a block \"%s\" already", name)
                 : NG_ENOMEM;
}

static bool is_series_name(const char *name)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    return *name && name[strspn(name, allowed)] == '\0' && strcmp(name, "step") != 0;
}

static series *find_series(const block *b, const char *name)
{
    for (int64_t i = 0; i < b->count; i++)
        if (strcmp(b->series[i].name, name) == 0) return &b->series[i];
    return NULL;
}

static series *add_series(const char *function, block *b, const char *name)
{
    void *array = b->series;
    if (!ng_reserve(function, &array, b->count, &b->capacity, sizeof(series))) return NULL;
    b->series = array;
    char *copy = ng_copy_text(function, name);
    if (!copy) return NULL;
    b->series[b->count] = (series){.name = copy};
    return &b->series[b->count++];
}

static bool add_point(const char *function, series *s, int64_t step, double value)
{
    int64_t i = s->count;
    while (i > 0 && s->points[i - 1].step > step) i--;
    if (i > 0 && s->points[i - 1].step == step) {
        s->points[i - 1].value = value;
        return true;
    }
    void *array = s->points;
    if (!ng_reserve(function, &array, s->count, &s->capacity, sizeof(point))) return false;
    s->points = array;
    memmove(s->points + i + 1, s->points + i, (size_t)(s->count - i) * sizeof(point));
    s->points[i] = (point){step, value};
    s->count++;
    return true;
}

/* A series that was made for a point that found no memory goes again. */
static void drop_empty_series(block *b, series *s)
{
    if (s->count > 0) return;
    ng_free(s->name);
    ng_free(s->points);
    b->count--;
}

ng_status ng_history_log(ng_history *history, const char *name, int64_t step, double value)
{
    static const char function[] = "ng_history_log";
    if (!ng_given(function, "history", history) || !ng_given(function, "series", name))
        return ng_newest_status();
    if (!is_series_name(name))
        return ng_fail(NG_EVALUE,
                       "ng_history_log: \"%s\", expected a name of letters, digits, "
                       "'_', '-' and '.', other than \"step\"",
                       name);
    if (history->count == 0 && !add_block(function, history, NULL)) return NG_ENOMEM;

    block *b = &history->blocks[history->count - 1];
    series *s = find_series(b, name);
    if (!s) s = add_series(function, b, name);
    if (!s) return NG_ENOMEM;
    if (add_point(function, s, step, value)) return NG_OK;
    drop_empty_series(b, s);
    return NG_ENOMEM;
}

/* ---- Write ---------------------------------------------------------------------------------- */

typedef struct {
    char text[32];
} history_cell;

/* Nine digits give a float back exactly. */
static history_cell print_value(double value)
{
    if (isnan(value)) return (history_cell){"NaN"};
    if (isinf(value)) return value > 0 ? (history_cell){"Inf"} : (history_cell){"-Inf"};
    history_cell cell;
    snprintf(cell.text, sizeof cell.text, "%.9g", value);
    return cell;
}

static history_cell print_step(int64_t step)
{
    history_cell cell;
    snprintf(cell.text, sizeof cell.text, "%lld", (long long)step);
    return cell;
}

/* A column while its block is written. */
typedef struct {
    int width;
    int64_t next; /* the first point that is not written yet */
} history_column;

static void widen_column(history_column *column, const char *text)
{
    const int length = (int)strlen(text);
    if (length > column->width) column->width = length;
}

/* The lowest step among the points that are not written yet; false if there are none. */
static bool next_step(const block *b, const history_column *columns, int64_t *step)
{
    bool found = false;
    for (int64_t i = 0; i < b->count; i++) {
        const series *s = &b->series[i];
        if (columns[i].next == s->count) continue;
        const int64_t own = s->points[columns[i].next].step;
        if (!found || own < *step) *step = own;
        found = true;
    }
    return found;
}

/* Writes a block with columns of one width each, but for the last, which is not padded. */
static void print_block(ng_text *text, const block *b, history_column *steps,
                        history_column *columns)
{
    widen_column(steps, "step");
    for (int64_t i = 0; i < b->count; i++) {
        const series *s = &b->series[i];
        widen_column(&columns[i], s->name);
        for (int64_t k = 0; k < s->count; k++) {
            widen_column(steps, print_step(s->points[k].step).text);
            widen_column(&columns[i], print_value(s->points[k].value).text);
        }
    }
    if (b->count) columns[b->count - 1].width = 0;

    if (b->name) ng_text_print(text, "# %s\n", b->name);
    ng_text_print(text, "%-*s", b->count ? steps->width : 0, "step");
    for (int64_t i = 0; i < b->count; i++)
        ng_text_print(text, "  %-*s", columns[i].width, b->series[i].name);
    ng_text_print(text, "\n");
    for (int64_t step = 0; !text->failed && next_step(b, columns, &step);) {
        ng_text_print(text, "%-*s", steps->width, print_step(step).text);
        for (int64_t i = 0; i < b->count; i++) {
            const series *s = &b->series[i];
            const int64_t at = columns[i].next;
            const bool logged = at < s->count && s->points[at].step == step;
            ng_text_print(text, "  %-*s", columns[i].width,
                          logged ? print_value(s->points[at].value).text : "?");
            columns[i].next += logged;
        }
        ng_text_print(text, "\n");
    }
}

void ng_history_print(const ng_history *history, bool all, ng_text *text)
{
    const locale_t locale = ng_c_locale_begin();
    const char *between = "\n";
    ng_text_print(text, "# what: %s; normgrad %s\n", history->what, ng_version());
    for (int64_t i = 0; i < history->count; i++) {
        if (history->blocks[i].count == 0 && !all) continue;
        const block *b = &history->blocks[i];
        history_column *columns = ng_calloc(text->function, b->count + 1, sizeof *columns);
        text->failed = text->failed || !columns;
        ng_text_print(text, "%s", between);
        if (columns) print_block(text, b, &columns[b->count], columns);
        ng_free(columns);
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

/* ---- Read ----------------------------------------------------------------------------------- */

/* A walk over the lines of a file that ends with a zero byte. */
typedef struct {
    const char *function, *path;
    char *next, *end;
    char *at; /* the line, ended with a zero byte */
    int64_t line;
    bool all; /* blocks without series too */
} history_lines;

static bool next_text_line(history_lines *in)
{
    if (in->next == in->end) return false;
    in->at = in->next;
    while (in->next < in->end && *in->next != '\n') in->next++;
    char *stop = in->next;
    if (in->next < in->end) in->next++;
    if (stop > in->at && stop[-1] == '\r') stop--;
    *stop = '\0';
    in->line++;
    return true;
}

static bool history_expected(const history_lines *in, const char *expected)
{
    ng_fail(NG_EPARSE, "%s: %s:%lld: expected %s", in->function, in->path, (long long)in->line,
            expected);
    return false;
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

static bool parse_step(const char *word, int64_t *step)
{
    char *stop;
    errno = 0;
    *step = strtoll(word, &stop, 10);
    const bool number = (*word >= '0' && *word <= '9') || (*word == '-' && word[1] != '\0');
    return number && *stop == '\0' && errno == 0;
}

static bool parse_value(const char *word, double *value)
{
    if (strcmp(word, "NaN") == 0) return *value = (double)NAN, true;
    if (strcmp(word, "Inf") == 0) return *value = HUGE_VAL, true;
    if (strcmp(word, "-Inf") == 0) return *value = -HUGE_VAL, true;
    char *stop;
    if (word[strspn(word, "+-.0123456789eE")] != '\0') return false;
    *value = strtod(word, &stop);
    return stop != word && *stop == '\0' && isfinite(*value);
}

/* "step", and the names of the series. */
static bool parse_names(const history_lines *in, block *b)
{
    char *at = in->at, *word = next_word(&at);
    if (!word || strcmp(word, "step") != 0)
        return history_expected(in, "a line of names, from \"step\" on");
    while ((word = next_word(&at))) {
        if (!is_series_name(word) || find_series(b, word))
            return history_expected(
                in, "names of series that differ, of letters, digits, '_', '-', '.'");
        if (!add_series(in->function, b, word)) return false;
    }
    return b->count > 0 || in->all || history_expected(in, "a series");
}

static bool parse_history_row(const history_lines *in, block *b, bool first, int64_t *step)
{
    char *at = in->at, *word = next_word(&at);
    const int64_t before = *step;
    if (!word || !parse_step(word, step)) return history_expected(in, "a step");
    if (!first && *step <= before) return history_expected(in, "a step beyond the one before");
    for (int64_t i = 0; i < b->count; i++) {
        double value;
        if (!(word = next_word(&at))) return history_expected(in, "a value for each series");
        if (strcmp(word, "?") == 0) continue;
        if (!parse_value(word, &value))
            return history_expected(in, "a number, NaN, Inf, -Inf or ?");
        if (!add_point(in->function, &b->series[i], *step, value)) return false;
    }
    return !next_word(&at) || history_expected(in, "no more values than series");
}

/* From its name, if it has one, to the blank line or the end behind it. */
static bool parse_history_block(history_lines *in, ng_history *history)
{
    const bool named = in->at[0] == '#';
    if (named && in->at[1] != ' ') return history_expected(in, "\"# \" and the block's name");
    if (named && has_block(history, in->at + 2))
        return history_expected(in, "a name that no block has yet");
    if (named && ng_history_block(history, in->at + 2) != NG_OK) return false;
    if (!named && !add_block(in->function, history, NULL)) return false;
    if (named && !next_text_line(in)) return history_expected(in, "a line of names");
    block *b = &history->blocks[history->count - 1];
    if (!parse_names(in, b)) return false;
    int64_t step = 0;
    for (bool first = true; next_text_line(in) && in->at[0] != '\0'; first = false)
        if (!parse_history_row(in, b, first, &step)) return false;
    for (int64_t i = 0; i < b->count; i++)
        if (b->series[i].count == 0) return history_expected(in, "a value in each series before");
    return true;
}

static ng_history *parse_history(history_lines *in)
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
        if (in->at[0] == '\0' || parse_history_block(in, history)) continue;
        ng_history_free(history);
        return NULL;
    }
    return history;
}

ng_history *ng_history_parse(const char *function, const char *path, bool all, char *text,
                             int64_t size)
{
    history_lines in = {
        .function = function, .path = path, .next = text, .end = text + size, .all = all};
    if (memchr(text, '\0', (size_t)size)) {
        ng_fail(NG_EPARSE, "%s: %s: there is a zero byte in it", function, path);
        return NULL;
    }
    const locale_t locale = ng_c_locale_begin();
    ng_history *history = parse_history(&in);
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

void ng_history_swap(ng_history *a, ng_history *b)
{
    const ng_history was = *a;
    char *const what = a->what, *const other = b->what;
    *a = *b;
    *b = was;
    a->what = what;
    b->what = other;
}
