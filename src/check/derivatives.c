/* The pass that gives the check its name: every derivative estimated, compared and judged. */
#include "check/check.h"
#include "core/error.h"
#include <float.h>
#include <math.h>

/* The check of one leaf. */
typedef struct {
    ng_subject *subject;
    const ng_check_leaf *leaf;
    double *directions; /* one after another; NULL if elements move */
    int64_t count;      /* of lines through the base point */
    ng_comparison *found;
    double tolerance;
    double scale; /* S, the largest derivative so far */
} leaf_check;

/* Over all leaves, at one order. */
typedef struct {
    int64_t compared, failed, kinks;
    int64_t undecided;    /* of the failed ones */
    bool anything;        /* a derivative other than 0 was seen, here or at order 1 */
    const char *untested; /* the first leaf with kinks only */
} check_stats;

/* ---- Judging --------------------------------------------------------------------------------- */

/* The rounding error of the reverse pass where terms cancel. */
static double rounding_of(const ng_comparison *d)
{
    return CHECK_CANCELLED * DBL_EPSILON * d->numeric.magnitude / d->numeric.length;
}

/* Whether both are 0 within rounding; false if the magnitude is beyond the range of double. */
static bool zero_to_rounding(const ng_comparison *d)
{
    const double rounding = rounding_of(d);
    return isfinite(rounding) && fabs(d->analytic) <= rounding &&
           fabs(d->numeric.value) <= rounding;
}

static double slack_of(const leaf_check *c, const ng_comparison *d)
{
    return CHECK_ERRORS * d->numeric.error + rounding_of(d) + CHECK_LOST * c->scale;
}

static double largest_slack(const leaf_check *c) { return fmax(CHECK_KNOWN, 10 * c->tolerance); }

static bool is_known(const leaf_check *c, const ng_comparison *d)
{
    return slack_of(c, d) <= largest_slack(c) * c->scale;
}

/* How much more they are apart than is allowed; NaN if either is. */
static double excess_of(const leaf_check *c, const ng_comparison *d)
{
    const double size = fmax(fabs(d->analytic), fabs(d->numeric.value));
    return fabs(d->analytic - d->numeric.value) - c->tolerance * size - slack_of(c, d);
}

static bool comparison_is_right(const leaf_check *c, const ng_comparison *d)
{
    return isfinite(d->analytic) &&
           (zero_to_rounding(d) || (is_known(c, d) && excess_of(c, d) <= 0));
}

/* ---- Measuring ------------------------------------------------------------------------------- */

static ng_line line_at(const leaf_check *c, int64_t i)
{
    ng_line line = {.subject = c->subject, .leaf = c->leaf, .index = i};
    if (c->directions) line.direction = c->directions + i * c->leaf->tensor->size;
    line.length = ng_line_length(c->leaf, c->directions ? -1 : i);
    return line;
}

static double analytic_along(const ng_line *line)
{
    const double *gradient = line->subject->analytic + line->leaf->offset;
    if (!line->direction) return gradient[line->index];
    long double sum = 0;
    for (int64_t i = 0; i < line->leaf->tensor->size; i++)
        sum += (long double)gradient[i] * (long double)line->direction[i];
    return (double)sum;
}

static bool measure(leaf_check *c)
{
    for (int64_t i = 0; i < c->count; i++) {
        ng_comparison *d = &c->found[i];
        const ng_line line = line_at(c, i);
        d->analytic = analytic_along(&line);
        if (!ng_line_estimate(&line, CHECK_FACTOR, c->scale, CHECK_ENOUGH * c->tolerance,
                              &d->numeric))
            return false;
        const double size = fabs(d->numeric.value);
        if (d->numeric.error <= largest_slack(c) * size) c->scale = fmax(c->scale, size);
    }
    return true;
}

/* Measures a derivative that seems wrong again from other steps. If the function is noisy, the
 * results differ. */
static bool measure_again(const leaf_check *c, const ng_line *line, ng_comparison *d)
{
    static const double factors[] = CHECK_OTHER_FACTORS;
    for (int i = 0; i < 2; i++) {
        ng_estimate again;
        if (!ng_line_estimate(line, factors[i], c->scale, CHECK_ENOUGH * c->tolerance, &again))
            return false;
        const double apart = fabs(again.value - d->numeric.value);
        const double error = fmax(d->numeric.error, fmax(apart, again.error));
        d->numeric.error = isnan(apart) ? HUGE_VAL : error;
    }
    return true;
}

static bool judge(leaf_check *c, check_stats *sum)
{
    for (int64_t i = 0; i < c->count; i++) {
        ng_comparison *d = &c->found[i];
        const ng_line line = line_at(c, i);
        d->wrong = !comparison_is_right(c, d);
        if (d->wrong && !measure_again(c, &line, d)) return false;
        d->wrong = d->wrong && !comparison_is_right(c, d);
        sum->anything = sum->anything || !zero_to_rounding(d);
        if (!d->wrong && !d->numeric.bent) continue;
        if (!ng_line_kink(&line, d->analytic, &d->numeric, &d->kink)) return false;
        d->wrong = d->wrong && !d->kink;
        sum->undecided += d->wrong && !is_known(c, d) && !(excess_of(c, d) > 0);
    }
    return true;
}

/* ---- Into the report ------------------------------------------------------------------------- */

/* Whether it is the worst so far. Wrong ones rank above right ones, NaN above all. */
static bool report_comparison(const leaf_check *c, int64_t i)
{
    const ng_comparison *d = &c->found[i];
    ng_check_report *report = c->subject->report;
    const double error = fabs(d->analytic - d->numeric.value);
    const double size = fmax(fmax(fabs(d->analytic), fabs(d->numeric.value)), c->scale);
    const double relative = error == 0 || zero_to_rounding(d) ? 0 : error / size;
    const double rank = (isnan(relative) ? HUGE_VAL : relative) + (d->wrong ? 1e3 : 0);
    if (d->kink || rank <= c->subject->worst) return false;
    c->subject->worst = rank;
    snprintf(report->worst_name, sizeof report->worst_name, "%s", c->leaf->name);
    report->worst_index = i;
    report->mode = c->directions ? NG_CHECK_FAST : NG_CHECK_ELEMENTS;
    report->analytic = ng_check_printable(d->analytic);
    report->numeric = ng_check_printable(d->numeric.value);
    report->absolute_error = ng_check_printable(error);
    report->relative_error = ng_check_printable(relative);
    report->error_estimate = d->numeric.error;
    return true;
}

static void report_leaf(const leaf_check *c, check_stats *sum)
{
    int64_t worst = -1, failed = 0, kinks = 0;
    for (int64_t i = 0; i < c->count; i++) {
        failed += c->found[i].wrong;
        kinks += c->found[i].kink;
        if (report_comparison(c, i) && c->found[i].wrong) worst = i;
    }
    sum->compared += c->count;
    sum->failed += failed;
    sum->kinks += kinks;
    if (!sum->untested && c->count > 0 && kinks == c->count) sum->untested = c->leaf->name;
    ng_check_count(c->subject->report, c->leaf->name, failed, c->count);
    if (worst < 0) return;
    const ng_line line = line_at(c, worst);
    ng_check_find_hint(&line, c->found, c->count, !c->directions);
}

/* ---- The check ------------------------------------------------------------------------------- */

/* Normal directions with few bits, so that steps along them are exact, and without a 0, so that
 * each element moves. */
static bool draw_directions(leaf_check *c, ng_rng *rng)
{
    const int64_t size = c->leaf->tensor->size, lines = c->subject->options->directions;
    c->count = size == 0 ? 0 : lines > 0 ? lines : 3;
    c->directions = ng_calloc("ng_check_function", c->count * size + 1, sizeof *c->directions);
    for (int64_t i = 0; c->directions && i < c->count * size; i++) {
        const double steps = round(ng_rng_normal(rng) * 256);
        c->directions[i] = (steps != 0 ? steps : 1) / 256;
    }
    return c->directions;
}

static bool check_leaf(leaf_check *c, ng_rng *rng, check_stats *sum)
{
    c->count = c->leaf->tensor->size;
    const ng_subject *subject = c->subject;
    const bool each =
        subject->options->mode == NG_CHECK_ELEMENTS && subject->order < CHECK_IN_DIRECTIONS;
    bool ok = each || draw_directions(c, rng);
    c->found = ok ? ng_calloc("ng_check_function", c->count + 1, sizeof *c->found) : NULL;
    ok = (c->found || ng_check_stop(c->subject->report)) && measure(c) && judge(c, sum);
    if (ok) report_leaf(c, sum);
    ng_free(c->found), ng_free(c->directions);
    return ok;
}

/* Why the derivatives of an order have not passed. */
static bool say_verdict(const ng_subject *subject, const check_stats *sum)
{
    ng_check_report *report = subject->report;
    const bool no_row = subject->options->shapes && subject->arguments[0]->size == 0;
    if (no_row && sum->failed == 0) return true;
    if (sum->compared == 0) return ng_check_say(report, "there was nothing to compare");
    if (sum->failed > 0)
        return ng_check_say(report, "%lld of %lld %s%sderivatives are wrong%s, the worst in %s",
                            (long long)sum->failed, (long long)sum->compared,
                            subject->order > 1 ? ng_check_ordinal(subject->order) : "",
                            subject->order > 1 ? " " : "",
                            sum->undecided == sum->failed ? " or cannot be told from rounding" : "",
                            report->worst_name);
    if (sum->untested)
        return ng_check_say(report,
                            "%s stands at a kink wherever it was moved: nothing of it was tested",
                            sum->untested);
    return sum->anything || ng_check_say(report, "every derivative is 0: nothing was tested");
}

/* Above order 1 all may be 0, as those of a line are. */
bool ng_check_derivatives(ng_subject *subject)
{
    ng_check_report *report = subject->report;
    ng_rng rng = ng_check_rng(subject->options->seed, NG_CHECK_DIRECTIONS);
    check_stats sum = {.anything = subject->order > 1};
    report->counts[0] = '\0';
    for (int i = 0; i < subject->n_leaves; i++) {
        leaf_check c = {.subject = subject,
                        .leaf = &subject->leaves[i],
                        .tolerance = ng_option(subject->options->tolerance, CHECK_TOLERANCE)};
        if (!check_leaf(&c, &rng, &sum)) return false;
    }
    report->compared += sum.compared;
    report->failed += sum.failed;
    report->kinks += sum.kinks;
    return say_verdict(subject, &sum);
}
