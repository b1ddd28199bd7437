/* Named series of numbers by step, and the aligned columns that gnuplot reads.
 *
 * Each series keeps its points in the order of their steps. A step is mostly logged after those
 * before it, so that the search for its place ends at once. */
#include "io/file.h"
#include <math.h>
#include <normgrad/history.h>
#include <stdio.h>
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

ng_status ng_history_block(ng_history *history, const char *name)
{
    static const char function[] = "ng_history_block";
    if (!ng_given(function, "history", history) || !ng_given(function, "name", name))
        return ng_newest_status();
    char *copy = one_line(function, name);
    if (!copy) return NG_ENOMEM;
    bool taken = false;
    for (int64_t i = 0; i < history->count; i++) {
        const char *other = history->blocks[i].name;
        taken = taken || (other && strcmp(other, copy) == 0);
    }
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

static series *add_series(block *b, const char *name)
{
    void *array = b->series;
    if (!reserve("ng_history_log", &array, b->count, &b->capacity, sizeof(series))) return NULL;
    b->series = array;
    char *copy = ng_copy_text("ng_history_log", name);
    if (!copy) return NULL;
    b->series[b->count] = (series){.name = copy};
    return &b->series[b->count++];
}

static bool add_point(series *s, int64_t step, double value)
{
    int64_t i = s->count;
    while (i > 0 && s->points[i - 1].step > step) i--;
    if (i > 0 && s->points[i - 1].step == step) {
        s->points[i - 1].value = value;
        return true;
    }
    void *array = s->points;
    if (!reserve("ng_history_log", &array, s->count, &s->capacity, sizeof(point))) return false;
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
    if (!s) s = add_series(b, name);
    if (!s) return NG_ENOMEM;
    if (add_point(s, step, value)) return NG_OK;
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
static void write_block(ng_replacement *file, const block *b, const int *width)
{
    ng_replacement_print(file, "%-*s", width[0], "step");
    for (int64_t i = 0; i < b->count; i++)
        ng_replacement_print(file, "  %-*s", i + 1 < b->count ? width[i + 1] : 0,
                             b->series[i].name);
    ng_replacement_print(file, "\n");

    int64_t step = INT64_MIN;
    while (next_step(b, &step)) {
        ng_replacement_print(file, "%-*s", width[0], print_step(step).text);
        for (int64_t i = 0; i < b->count; i++)
            ng_replacement_print(file, "  %-*s", i + 1 < b->count ? width[i + 1] : 0,
                                 print_at(&b->series[i], step).text);
        ng_replacement_print(file, "\n");
        if (step == INT64_MAX) break;
        step++;
    }
}

static ng_status write_blocks(ng_replacement *file, const ng_history *history)
{
    ng_replacement_print(file, "# what: %s; normgrad %s\n", history->what, ng_version());
    bool first = true;
    for (int64_t i = 0; i < history->count; i++) {
        const block *b = &history->blocks[i];
        if (b->count == 0) continue;
        int *width = ng_calloc("ng_history_write", b->count + 1, sizeof *width);
        if (!width) return NG_ENOMEM;
        width[0] = step_width(b);
        for (int64_t j = 0; j < b->count; j++) width[j + 1] = column_width(&b->series[j]);

        ng_replacement_print(file, first ? "\n" : "\n\n");
        if (b->name) ng_replacement_print(file, "# %s\n", b->name);
        write_block(file, b, width);
        ng_free(width);
        first = false;
    }
    return NG_OK;
}

ng_status ng_history_write(const ng_history *history, const char *path)
{
    static const char function[] = "ng_history_write";
    if (!ng_given(function, "history", history) || !ng_given(function, "path", path))
        return ng_newest_status();
    ng_replacement file;
    ng_status status = ng_replacement_begin(&file, function, path);
    if (status != NG_OK) return status;
    ng_c_locale locale;
    if (ng_c_locale_enter(function, &locale)) {
        status = write_blocks(&file, history);
        ng_c_locale_leave(&locale);
    } else {
        status = NG_ENOMEM;
    }
    return ng_replacement_end(&file, status);
}
