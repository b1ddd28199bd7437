/* The median and the quartiles of several runs, as a history. */
#include "io/history.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char summary_name[] = "ng_history_summary_new";

/* The values that the runs have logged, in any order and then sorted by place, series and value. */
typedef struct {
    int64_t series; /* the index of its name */
    double place, value;
    bool ends; /* NaN, and the last value of its run */
} sample;

typedef struct {
    const char *name;
    ng_series_kind kind;
    int64_t lost; /* how many runs have ended with NaN before the present place */
} summary_series;

typedef struct {
    sample *samples;
    int64_t count, room;
    summary_series *series;
    int64_t n_series, series_room;
    int64_t runs;
    bool real;
} summary;

/* Returns the index of a series, in the order in which they are first met; -1 without memory. */
static int64_t index_of_series(summary *s, const ng_series *series)
{
    int64_t i = 0;
    while (i < s->n_series && strcmp(s->series[i].name, series->name) != 0) i++;
    if (i < s->n_series) return i;
    if (!NG_RESERVE(summary_name, s->series, s->n_series, s->series_room)) return -1;
    s->series[s->n_series++] = (summary_series){.name = series->name, .kind = series->kind};
    return i;
}

static bool add_series_of_run(summary *s, ng_series *series)
{
    const int64_t index = index_of_series(s, series);
    if (index < 0) return false;
    ng_series_sort(series);
    for (int64_t i = 0; i < series->n_points; i++) {
        const ng_point *p = &series->points[i];
        if (!NG_RESERVE(summary_name, s->samples, s->count, s->room)) return false;
        s->samples[s->count++] = (sample){index, ng_place(series->real, p), p->value,
                                          .ends = i == series->n_points - 1 && isnan(p->value)};
    }
    return true;
}

static bool add_run(summary *s, const ng_block *b)
{
    if (b->n_series == 0) return true;
    if (s->runs++ > 0 && s->real != b->real)
        return ng_fail(NG_EVALUE, "%s: some runs are logged by x, others by step", summary_name),
               false;
    s->real = b->real;
    for (int64_t k = 0; k < b->n_series; k++)
        if (!add_series_of_run(s, &b->series[k])) return false;
    return true;
}

/* NaN comes last. */
static int by_place_then_value(const void *a, const void *b)
{
    const sample *s = a, *t = b;
    if (s->place != t->place) return s->place < t->place ? -1 : 1;
    if (s->series != t->series) return s->series < t->series ? -1 : 1;
    if (isnan(s->value) || isnan(t->value)) return isnan(s->value) - isnan(t->value);
    return (s->value > t->value) - (s->value < t->value);
}

/* The quantile of a level, from 0 to 1, of `count` sorted numbers and of NaNs, which stand before
 * them for the lower levels and after them for the others; interpolated linearly. */
static double quantile(const sample *sorted, int64_t count, int64_t nans, double level)
{
    const double position = level * (double)(count + nans - 1);
    const double part = position - floor(position);
    const int64_t below = (int64_t)position - (level < 0.5 ? nans : 0), above = below + (part > 0);
    if (below < 0 || above >= count) return (double)NAN;
    const double low = sorted[below].value, high = sorted[above].value;
    return low == high ? low : (1 - part) * low + part * high; /* also of infinities */
}

static void log_summary(ng_history *result, const char *name, ng_series_kind kind, bool real,
                        double place, double value)
{
    const ng_block *b = result->count > 0 ? &result->blocks[result->count - 1] : NULL;
    const int64_t k = b ? ng_find_series(b, name) : 0;
    if (b && k < b->n_series && b->series[k].kind != kind)
        ng_fail(NG_EVALUE, "%s: the series \"%s\" has the name of a statistic of another series",
                summary_name, name);
    else if ((real ? ng_history_log_at(result, name, place, value)
                   : ng_history_log(result, name, (int64_t)place, value)) == NG_OK)
        ng_history_mark(result, kind);
}

/* Logs what is known of the samples of one series at one place. Returns how many are no NaN. */
static int64_t log_group(ng_history *result, const summary *s, const sample *group, int64_t count)
{
    static const struct {
        const char *ending;
        double level;
    } statistics[] = {{"", 0.5}, {"_low", 0.25}, {"_high", 0.75}, {"_min", 0}, {"_max", 1}};
    summary_series *series = &s->series[group->series];
    int64_t nans = series->lost;
    for (; count > 0 && isnan(group[count - 1].value); count--, nans++)
        series->lost += group[count - 1].ends;
    for (int i = 0; i < 5; i++) {
        ng_text name = {.function = summary_name};
        ng_text_print(&name, "%s%s", series->name, statistics[i].ending);
        if (name.bytes)
            log_summary(result, name.bytes, i == 0 ? series->kind : NG_SERIES_SPREAD, s->real,
                        group->place, quantile(group, count, nans, statistics[i].level));
        ng_free(name.bytes);
    }
    return count;
}

static void log_groups(ng_history *result, const summary *s, int64_t failures)
{
    for (int64_t i = 0; i < s->count && ng_failures() == failures;) {
        const double place = s->samples[i].place;
        int64_t most = 0;
        while (i < s->count && s->samples[i].place == place) {
            int64_t end = i;
            while (end < s->count && s->samples[end].place == place &&
                   s->samples[end].series == s->samples[i].series)
                end++;
            const int64_t count = log_group(result, s, &s->samples[i], end - i);
            if (count > most) most = count;
            i = end;
        }
        log_summary(result, "runs", NG_SERIES_SPREAD, s->real, place, (double)most);
    }
}

static bool collect_runs(summary *s, ng_history *const *histories, const char *block, int count)
{
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < histories[i]->count; k++) {
            ng_block *b = &histories[i]->blocks[k];
            if (block && (!b->name || strcmp(b->name, block) != 0)) continue;
            if (!add_run(s, b)) return false;
        }
    if (s->count == 0)
        ng_fail(NG_EVALUE, "%s: nothing is logged%s%s", summary_name, block ? " in a block " : "",
                block ? block : "");
    return s->count > 0;
}

ng_history *ng_history_summary_new_with(ng_history *const *histories,
                                        ng_history_summary_new_options options)
{
    if (!ng_given(summary_name, "histories", histories) ||
        !ng_option_positive(summary_name, "count", options.count, "histories"))
        return NULL;
    for (int i = 0; i < options.count; i++)
        if (!ng_given(summary_name, "a history", histories[i])) return NULL;
    summary s = {0};
    ng_history *result = NULL;
    const int64_t failures = ng_failures();
    if (collect_runs(&s, histories, options.block, options.count)) {
        qsort(s.samples, (size_t)s.count, sizeof *s.samples, by_place_then_value);
        result = ng_history_new(histories[0]->what);
        if (result && options.block) ng_history_block(result, options.block);
        log_groups(result, &s, failures);
    }
    ng_free(s.samples), ng_free(s.series);
    if (ng_failures() == failures) return result;
    ng_history_free(result);
    return NULL;
}
