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

/* Makes room for one more element of `size` bytes; false with NG_ENOMEM and nothing changed. */
static bool reserve(const char *function, void **array, int64_t count, int64_t *capacity,
                    size_t size)
{
    if (count < *capacity) return true;
    const int64_t more = *capacity ? 2 * *capacity : 8;
    void *grown =
        *array ? ng_grow(function, *array, *capacity, more, size) : ng_calloc(function, more, size);
    if (!grown) return false;
    *array = grown;
    *capacity = more;
    return true;
}

/* A copy that stays on the one line of a comment. */
static char *one_line(const char *function, const char *text)
{
    char *copy = ng_copy_text(function, text);
    for (char *p = copy; p && *p; p++)
        if (*p == '\n' || *p == '\r') *p = ' ';
    return copy;
}

/* ---- Make and free ---- */

ng_history *ng_history_new(const char *what)
{
    if (!ng_given("ng_history_new", "what", what)) return NULL;
    ng_history *self = ng_calloc("ng_history_new", 1, sizeof *self);
    if (!self) return NULL;
    self->what = one_line("ng_history_new", what);
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

/* ---- Log ---- */

static block *add_block(const char *function, ng_history *self, char *name)
{
    void *blocks = self->blocks;
    if (!reserve(function, &blocks, self->count, &self->capacity, sizeof(block))) return NULL;
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
    char *copy = one_line(function, name);
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
    if (!reserve(function, &array, b->count, &b->capacity, sizeof(series))) return NULL;
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
    if (!reserve(function, &array, s->count, &s->capacity, sizeof(point))) return false;
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

/* ---- Write ---- */

/* Index of the first point at or after a step, by bisection. */
static int64_t first_from(const series *s, int64_t step)
{
    int64_t low = 0, high = s->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->points[middle].step < step)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first step at or after *step in any series of the block. */
static bool next_step(const block *b, int64_t *step)
{
    bool found = false;
    int64_t next = INT64_MAX;
    for (int64_t i = 0; i < b->count; i++) {
        const series *s = &b->series[i];
        const int64_t at = first_from(s, *step);
        if (at == s->count) continue;
        found = true;
        if (s->points[at].step < next) next = s->points[at].step;
    }
    *step = next;
    return found;
}

typedef struct {
    char text[32];
} cell;

/* Nine digits give a float back exactly. */
static cell print_value(double value)
{
    if (isnan(value)) return (cell){"NaN"};
    if (isinf(value)) return value > 0 ? (cell){"Inf"} : (cell){"-Inf"};
    cell c;
    snprintf(c.text, sizeof c.text, "%.9g", value);
    return c;
}

static cell print_step(int64_t step)
{
    cell c;
    snprintf(c.text, sizeof c.text, "%lld", (long long)step);
    return c;
}

static cell print_at(const series *s, int64_t step)
{
    const int64_t at = first_from(s, step);
    const bool there = at < s->count && s->points[at].step == step;
    return there ? print_value(s->points[at].value) : (cell){"?"};
}

static int wider(int width, const char *text)
{
    const int length = (int)strlen(text);
    return length > width ? length : width;
}

static int column_width(const series *s)
{
    int width = wider(0, s->name);
    for (int64_t i = 0; i < s->count; i++)
        width = wider(width, print_value(s->points[i].value).text);
    return width;
}

static int step_width(const block *b)
{
    int width = wider(0, "step");
    for (int64_t i = 0; i < b->count; i++)
        for (int64_t j = 0; j < b->series[i].count; j++)
            width = wider(width, print_step(b->series[i].points[j].step).text);
    return width;
}

/* `width` holds each column's, the steps' first. The last column needs none. */
static void print_block(ng_text *text, const block *b, const int *width)
{
    ng_text_print(text, "%-*s", b->count ? width[0] : 0, "step");
    for (int64_t i = 0; i < b->count; i++)
        ng_text_print(text, "  %-*s", i + 1 < b->count ? width[i + 1] : 0, b->series[i].name);
    ng_text_print(text, "\n");

    int64_t step = INT64_MIN;
    while (next_step(b, &step)) {
        ng_text_print(text, "%-*s", width[0], print_step(step).text);
        for (int64_t i = 0; i < b->count; i++)
            ng_text_print(text, "  %-*s", i + 1 < b->count ? width[i + 1] : 0,
                          print_at(&b->series[i], step).text);
        ng_text_print(text, "\n");
        if (step == INT64_MAX) break;
        step++;
    }
}

static void print_blocks(ng_text *text, const ng_history *history, bool all)
{
    ng_text_print(text, "# what: %s; normgrad %s\n", history->what, ng_version());
    bool first = true;
    for (int64_t i = 0; i < history->count && !text->failed; i++) {
        const block *b = &history->blocks[i];
        if (b->count == 0 && !all) continue;
        int *width = ng_calloc(text->function, b->count + 1, sizeof *width);
        if (!width) {
            text->failed = true;
            return;
        }
        width[0] = step_width(b);
        for (int64_t j = 0; j < b->count; j++) width[j + 1] = column_width(&b->series[j]);

        ng_text_print(text, first ? "\n" : "\n\n");
        if (b->name) ng_text_print(text, "# %s\n", b->name);
        print_block(text, b, width);
        ng_free(width);
        first = false;
    }
}

void ng_history_print(const ng_history *history, bool all, ng_text *text)
{
    ng_c_locale locale;
    if (!ng_c_locale_enter(text->function, &locale)) {
        text->failed = true;
        return;
    }
    print_blocks(text, history, all);
    ng_c_locale_leave(&locale);
}

ng_status ng_history_write(const ng_history *history, const char *path)
{
    static const char function[] = "ng_history_write";
    if (!ng_given(function, "history", history) || !ng_given(function, "path", path))
        return ng_newest_status();
    ng_replacement file;
    const ng_status begun = ng_replacement_begin(&file, function, path);
    if (begun != NG_OK) return begun;
    ng_text text = {.function = function};
    ng_history_print(history, false, &text);
    if (!text.failed) ng_replacement_write(&file, text.bytes, (size_t)text.count);
    ng_free(text.bytes);
    return ng_replacement_end(&file, text.failed ? NG_ENOMEM : NG_OK);
}

/* ---- Read ---- */

/* A walk over the lines of a file that ends with a zero byte. */
typedef struct {
    const char *function, *path;
    char *next, *end;
    char *at; /* the line, ended with a zero byte */
    int64_t line;
    bool all; /* blocks without series too */
} lines;

static bool next_line(lines *in)
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

static bool unread(const lines *in, const char *expected)
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
    if (word[strspn(word, "+-.0123456789eE")] != '\0') return false;
    char *stop;
    *value = strtod(word, &stop);
    return stop != word && *stop == '\0' && isfinite(*value);
}

/* "step", and the names of the series. */
static bool parse_names(const lines *in, block *b)
{
    char *at = in->at, *word = next_word(&at);
    if (!word || strcmp(word, "step") != 0) return unread(in, "a line of names, from \"step\" on");
    while ((word = next_word(&at))) {
        if (!is_series_name(word) || find_series(b, word))
            return unread(in, "names of series that differ, of letters, digits, '_', '-', '.'");
        if (!add_series(in->function, b, word)) return false;
    }
    return b->count > 0 || in->all || unread(in, "a series");
}

static bool parse_row(const lines *in, block *b, bool first, int64_t *step)
{
    char *at = in->at, *word = next_word(&at);
    const int64_t before = *step;
    if (!word || !parse_step(word, step)) return unread(in, "a step");
    if (!first && *step <= before) return unread(in, "a step beyond the one before");
    for (int64_t i = 0; i < b->count; i++) {
        double value;
        if (!(word = next_word(&at))) return unread(in, "a value for each series");
        if (strcmp(word, "?") == 0) continue;
        if (!parse_value(word, &value)) return unread(in, "a number, NaN, Inf, -Inf or ?");
        if (!add_point(in->function, &b->series[i], *step, value)) return false;
    }
    return !next_word(&at) || unread(in, "no more values than series");
}

/* From its name, if it has one, to the blank line or the end behind it. */
static bool parse_block(lines *in, ng_history *history)
{
    const bool named = in->at[0] == '#';
    if (named && in->at[1] != ' ') return unread(in, "\"# \" and the block's name");
    if (named && has_block(history, in->at + 2)) return unread(in, "a name that no block has yet");
    if (named && ng_history_block(history, in->at + 2) != NG_OK) return false;
    if (!named && !add_block(in->function, history, NULL)) return false;
    if (named && !next_line(in)) return unread(in, "a line of names");
    block *b = &history->blocks[history->count - 1];
    if (!parse_names(in, b)) return false;
    int64_t step = 0;
    for (bool first = true; next_line(in) && in->at[0] != '\0'; first = false)
        if (!parse_row(in, b, first, &step)) return false;
    for (int64_t i = 0; i < b->count; i++)
        if (b->series[i].count == 0) return unread(in, "a value in each series before");
    return true;
}

static ng_history *parse(lines *in)
{
    static const char opening[] = "# what: ", version[] = "; normgrad ";
    if (!next_line(in) || strncmp(in->at, opening, strlen(opening)) != 0)
        return unread(in, "\"# what: \", as ng_history_write begins"), NULL;
    char *what = in->at + strlen(opening), *cut = NULL;
    for (char *at = what; (at = strstr(at, version)); at++) cut = at;
    if (!cut) return unread(in, "the version of normgrad"), NULL;
    *cut = '\0';
    ng_history *history = ng_history_new(what);
    while (history && next_line(in)) {
        if (in->at[0] == '\0' || parse_block(in, history)) continue;
        ng_history_free(history);
        return NULL;
    }
    return history;
}

ng_history *ng_history_parse(const char *function, const char *path, bool all, char *text,
                             int64_t size)
{
    lines in = {.function = function, .path = path, .next = text, .end = text + size, .all = all};
    ng_c_locale locale;
    if (memchr(text, '\0', (size_t)size)) {
        ng_fail(NG_EPARSE, "%s: %s: there is a zero byte in it", function, path);
        return NULL;
    }
    if (!ng_c_locale_enter(function, &locale)) return NULL;
    ng_history *history = parse(&in);
    ng_c_locale_leave(&locale);
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
