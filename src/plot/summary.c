/* The median and the quartiles of several runs, as a history. */
#include "io/history.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char summary_name[] = "ng_history_summary";

/* The values that the runs have logged, in any order and then sorted by series, place and value. */
typedef struct {
    int64_t series; /* the index of its name */
    double place, value;
} sample;

typedef struct {
    sample *samples;
    int64_t count, room;
    const char **names;
    int64_t n_names, names_room;
    int64_t runs;
    bool real;
} summary;

/* Returns the index of a name, in the order in which they are first met; -1 without memory. */
static int64_t index_of_name(summary *s, const char *name)
{
    int64_t i = 0;
    while (i < s->n_names && strcmp(s->names[i], name) != 0) i++;
    if (i < s->n_names) return i;
    if (!NG_RESERVE(summary_name, s->names, s->n_names, s->names_room)) return -1;
    s->names[s->n_names++] = name;
    return i;
}

static bool add_run(summary *s, const ng_block *b)
{
    if (b->n_points == 0) return true;
    if (s->runs++ > 0 && s->real != b->real) {
        ng_fail(NG_EVALUE, "%s: some runs are logged by x, and others by step", summary_name);
        return false;
    }
    s->real = b->real;
    for (int64_t i = 0; i < b->n_points; i++) {
        const ng_point *p = &b->points[i];
        const int64_t series = index_of_name(s, b->series[p->series]);
        if (series < 0 || !NG_RESERVE(summary_name, s->samples, s->count, s->room)) return false;
        s->samples[s->count++] = (sample){series, ng_place(b, p), p->value};
    }
    return true;
}

/* NaN comes last. */
static int by_place(const void *a, const void *b)
{
    const sample *s = a, *t = b;
    if (s->place != t->place) return s->place < t->place ? -1 : 1;
    if (s->series != t->series) return s->series < t->series ? -1 : 1;
    if (isnan(s->value) || isnan(t->value)) return isnan(s->value) - isnan(t->value);
    return (s->value > t->value) - (s->value < t->value);
}

/* The quantile of sorted values, interpolated linearly. */
static double quantile(const sample *sorted, int64_t count, double share)
{
    const double at = share * (double)(count - 1);
    const int64_t below = (int64_t)at;
    const double part = at - (double)below, low = sorted[below].value;
    if (part == 0 || low == sorted[below + 1].value) return low; /* also of infinities */
    return (1 - part) * low + part * sorted[below + 1].value;
}

static void log_summary(ng_history *to, const summary *s, const char *series, const char *ending,
                        double place, double value)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s", series, ending);
    if (s->real)
        ng_history_log_at(to, name, place, value);
    else
        ng_history_log(to, name, (int64_t)place, value);
}

/* Logs what is known of the samples of one series at one place. Returns how many are not NaN. */
static int64_t log_group(ng_history *to, const summary *s, const sample *group, int64_t count)
{
    static const struct {
        const char *ending;
        double share;
    } shares[] = {{"", 0.5}, {"_low", 0.25}, {"_high", 0.75}, {"_min", 0}, {"_max", 1}};
    while (count > 0 && isnan(group[count - 1].value)) count--;
    for (int i = 0; i < 5; i++)
        log_summary(to, s, s->names[group->series], shares[i].ending, group->place,
                    count > 0 ? quantile(group, count, shares[i].share) : (double)NAN);
    return count;
}

static void log_groups(ng_history *to, const summary *s, int64_t failures)
{
    for (int64_t i = 0; i < s->count && ng_failures() == failures;) {
        const double place = s->samples[i].place;
        int64_t most = 0;
        while (i < s->count && s->samples[i].place == place) {
            int64_t end = i;
            while (end < s->count && s->samples[end].place == place &&
                   s->samples[end].series == s->samples[i].series)
                end++;
            const int64_t count = log_group(to, s, &s->samples[i], end - i);
            if (count > most) most = count;
            i = end;
        }
        log_summary(to, s, "runs", "", place, (double)most);
    }
}

static bool collect_runs(summary *s, ng_history *const *histories, const char *block, int count)
{
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < histories[i]->count; k++) {
            const ng_block *b = &histories[i]->blocks[k];
            if (block && (!b->name || strcmp(b->name, block) != 0)) continue;
            if (!add_run(s, b)) return false;
        }
    if (s->count == 0)
        ng_fail(NG_EVALUE, "%s: nothing is logged%s%s", summary_name, block ? " in a block " : "",
                block ? block : "");
    return s->count > 0;
}

ng_history *ng_history_summary_with(ng_history *const *histories,
                                    ng_history_summary_options options)
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
        qsort(s.samples, (size_t)s.count, sizeof *s.samples, by_place);
        result = ng_history_new(histories[0]->what);
        if (result && options.block) ng_history_block(result, options.block);
        log_groups(result, &s, failures);
    }
    ng_free(s.samples), ng_free(s.names);
    if (ng_failures() == failures) return result;
    ng_history_free(result);
    return NULL;
}
