/* The doubt itself: every derivative measured, compared, and judged. */
#include "check/check.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Judging -------------------------------------------------------------------------------
 *
 * S is the largest numeric derivative of the tensor, M = sum |w_j F_j| what was differenced and L
 * the length on which it was. A derivative a is right where
 *
 *     |a - n| <= tolerance max(|a|, |n|) + slack,   slack = 4 error + rounding
 *
 * `rounding` is what the reverse pass itself may lose: 2^12 eps M / L where terms of the size M / L
 * cancel, and 1e-12 S. The slack has to be below S / 10^5 (or ten tolerances, if that is more), so
 * that a poor estimate of the error excuses nothing; else both must be 0 to rounding. What is not
 * right is measured again before it is called wrong.
 */
static const double lowest_exponent = 1.7, default_tolerance = 1e-9;

static double largest_slack(const ng_check_options *options)
{
    return fmax(1e-5, 10 * options->tolerance);
}

typedef struct {
    ng_subject *subject;
    const ng_check_options *options;
    ng_check_report *report;
    const ng_check_leaf *leaf;
    double *directions; /* one after another; NULL where elements move */
    int64_t groups;     /* of elements of like size, along which each direction is taken apart */
    int64_t count;      /* of lines through the base point in this leaf */
    ng_comparison *found;
    double scale; /* S */
} doubt;

/* What is gathered over all leaves, at one order. */
typedef struct {
    double worst; /* rank of the worst derivative so far, of both orders; -1 before the first */
    int64_t compared, failed, kinks, undecided; /* undecided: of the failed ones */
    bool anything;        /* a derivative other than 0 was seen; a gradient at order 2 */
    const char *untested; /* the first leaf that was nowhere but at kinks */
} tally;

static double rounding_of(const ng_comparison *c)
{
    return 0x1p12 * DBL_EPSILON * c->numeric.magnitude / c->numeric.length;
}

/* Not where what was differenced leaves the range of double: that would round anything to 0. */
static bool zero_to_rounding(const ng_comparison *c)
{
    double rounding = rounding_of(c);
    return isfinite(rounding) && fabs(c->analytic) <= rounding &&
           fabs(c->numeric.value) <= rounding;
}

static double slack_of(const doubt *d, const ng_comparison *c)
{
    return NG_CHECK_CERTAINTY * c->numeric.error + rounding_of(c) + 1e-12 * d->scale;
}

static bool is_known(const doubt *d, const ng_comparison *c)
{
    return slack_of(d, c) <= largest_slack(d->options) * d->scale;
}

/* How much more they are apart than is allowed; NaN where either is. */
static double excess_of(const doubt *d, const ng_comparison *c)
{
    double size = fmax(fabs(c->analytic), fabs(c->numeric.value));
    double allowed = d->options->tolerance * size + slack_of(d, c);
    return fabs(c->analytic - c->numeric.value) - allowed;
}

static bool agrees(const doubt *d, const ng_comparison *c)
{
    return zero_to_rounding(c) || (is_known(d, c) && excess_of(d, c) <= 0);
}

static bool undecided(const doubt *d, const ng_comparison *c)
{
    return !is_known(d, c) && !(excess_of(d, c) > 0);
}

/* ---- Measuring ----------------------------------------------------------------------------- */

static ng_line line_at(const doubt *d, int64_t i)
{
    ng_line line = {.subject = d->subject, .leaf = d->leaf, .index = i};
    if (d->directions) line.direction = d->directions + i * d->leaf->tensor->size;
    line.length = ng_line_length(d->leaf, line.direction, d->directions ? -1 : i);
    return line;
}

static double analytic_along(const ng_line *line)
{
    const double *gradient = line->subject->analytic + line->leaf->offset;
    if (!line->direction) return gradient[line->index];
    long double sum = 0;
    for (int64_t i = 0; i < line->leaf->tensor->size; i++) {
        sum += (long double)gradient[i] * (long double)line->direction[i];
    }
    return (double)sum;
}

static bool differentiate(doubt *d, const ng_line *line, ng_comparison *c)
{
    double enough = 1e-3 * d->options->tolerance;
    if (!ng_line_derivative(line, d->options->step, c->analytic, d->scale, enough, &c->numeric,
                            d->report)) {
        return false;
    }
    double size = fabs(c->numeric.value);
    if (c->numeric.error <= largest_slack(d->options) * size) d->scale = fmax(d->scale, size);
    return true;
}

static bool measure(doubt *d)
{
    for (int64_t i = 0; i < d->count; i++) {
        ng_comparison *c = &d->found[i];
        ng_line line = line_at(d, i);
        c->analytic = analytic_along(&line);
        if (d->report->mode == NG_CHECK_TAYLOR) {
            if (!ng_line_exponent(&line, c->analytic, &c->slope, d->report)) return false;
        }
        if (!differentiate(d, &line, c)) return false;
    }
    return true;
}

/* Taylor's remainder decides, but where the difference is too large for it. A remainder of rounding
 * has no exponent, or that of the rounding in the analytic derivative, or of the smallest steps'
 * rest on a stair; it decides nothing. */
static bool is_right(const doubt *d, ng_comparison *c)
{
    if (!isfinite(c->analytic)) return false;
    if (d->report->mode != NG_CHECK_TAYLOR) return agrees(d, c);
    if (zero_to_rounding(c) || c->numeric.coarse) c->slope = 0;
    if (c->slope == 0) return agrees(d, c);
    return c->slope >= lowest_exponent && !(excess_of(d, c) > 0);
}

static bool judge(doubt *d, tally *sum)
{
    for (int64_t i = 0; i < d->count; i++) {
        ng_comparison *c = &d->found[i];
        ng_line line = line_at(d, i);
        c->wrong = !is_right(d, c);
        if (c->wrong && !ng_line_repeat(&line, &c->numeric, d->report)) return false;
        c->wrong = c->wrong && !is_right(d, c);
        sum->anything = sum->anything || !zero_to_rounding(c);
        if (!c->wrong && !c->numeric.bent) continue;
        if (!ng_line_kink(&line, c->analytic, &c->numeric, &c->kink, d->report)) return false;
        c->wrong = c->wrong && !c->kink;
        sum->undecided += c->wrong && undecided(d, c);
    }
    return true;
}

/* ---- Telling ------------------------------------------------------------------------------- */

static double relative_error(const doubt *d, const ng_comparison *c)
{
    double error = fabs(c->analytic - c->numeric.value);
    double size = fmax(fmax(fabs(c->analytic), fabs(c->numeric.value)), d->scale);
    return error == 0 || zero_to_rounding(c) ? 0 : error / size;
}

/* Wrong ones rank above right ones, NaN above all. */
static double rank_of(const doubt *d, const ng_comparison *c)
{
    double error = relative_error(d, c);
    if (d->report->mode == NG_CHECK_TAYLOR && c->slope > 0) error = 1 / c->slope;
    if (isnan(error)) error = HUGE_VAL;
    return c->wrong ? 1e3 + error : error;
}

static bool remember_worst(doubt *d, int64_t i, tally *sum)
{
    const ng_comparison *c = &d->found[i];
    ng_check_report *report = d->report;
    double rank = rank_of(d, c);
    if (c->kink || rank <= sum->worst) return false;
    sum->worst = rank;
    snprintf(report->worst_name, sizeof report->worst_name, "%s", d->leaf->name);
    report->worst_index = i / d->groups;
    report->analytic = c->analytic;
    report->numeric = c->numeric.value;
    report->absolute_error = fabs(c->analytic - c->numeric.value);
    report->relative_error = relative_error(d, c);
    report->error_estimate = c->numeric.error;
    return c->wrong;
}

/* Whether all of a group of lines, or of the elements, stand at a kink. */
static bool nowhere_but_at_kinks(const doubt *d)
{
    for (int64_t group = 0; group < d->groups && d->count > 0; group++) {
        bool all = true;
        for (int64_t i = group; i < d->count; i += d->groups) all = all && d->found[i].kink;
        if (all) return true;
    }
    return false;
}

static void tell(doubt *d, tally *sum)
{
    ng_check_report *report = d->report;
    bool worst_is_here = false;
    if (!sum->untested && nowhere_but_at_kinks(d)) sum->untested = d->leaf->name;
    for (int64_t i = 0; i < d->count; i++) {
        const ng_comparison *c = &d->found[i];
        sum->compared++;
        sum->failed += c->wrong;
        sum->kinks += c->kink;
        bool measured = c->slope > 0 && !c->kink;
        if (measured && (report->slope == 0 || c->slope < report->slope)) report->slope = c->slope;
        worst_is_here = remember_worst(d, i, sum) || worst_is_here;
    }
    if (worst_is_here) {
        report->hint[0] = '\0';
        ng_check_find_hint(d->leaf, d->found, d->count, !d->directions, report);
    }
}

static void conclude(const doubt *d, const tally *sum)
{
    ng_check_report *report = d->report;
    const char *what = report->order == 2 ? "second derivatives" : "derivatives";
    if (sum->compared == 0) {
        ng_check_say(report, "there was nothing to compare");
    } else if (sum->failed > 0) {
        ng_check_say(report, "%lld of %lld %s are wrong%s, the worst in %s", (long long)sum->failed,
                     (long long)sum->compared, what,
                     sum->undecided == sum->failed ? " or cannot be told from rounding" : "",
                     report->worst_name);
    } else if (sum->untested) {
        ng_check_say(report, "%s stands at a kink wherever it was moved: nothing of it was tested",
                     sum->untested);
    } else if (!sum->anything) {
        ng_check_say(report, "every derivative is 0: nothing was tested");
    }
}

/* ---- The check ----------------------------------------------------------------------------- */

/* The group of an element: how often it could be multiplied by 2^16 and be no larger than most. */
static int group_of(double x, double length)
{
    return x == 0 ? 0 : (int)fmax(0, floor((log2(length) - log2(fabs(x))) / 16));
}

/* The next larger one that has an element, or -1. */
static int group_after(const ng_check_leaf *leaf, double length, int group)
{
    int next = -1;
    for (int64_t e = 0; e < leaf->tensor->size; e++) {
        const int of = group_of(leaf->origin[e], length);
        if (of > group && (next < 0 || of < next)) next = of;
    }
    return next;
}

/* Of a direction, what moves one group. */
static void keep_group(const ng_check_leaf *leaf, double length, int group, const double *direction,
                       double *kept)
{
    for (int64_t e = 0; e < leaf->tensor->size; e++)
        kept[e] = group_of(leaf->origin[e], length) == group ? direction[e] : 0;
}

/* Normal directions with few bits, so that steps along them are exact. What is tiny moves apart
 * from what is not, since no step is right for both. */
static bool draw_directions(doubt *d, ng_rng *rng)
{
    const int64_t size = d->leaf->tensor->size;
    const double length = ng_line_length(d->leaf, NULL, -1);
    for (int g = group_after(d->leaf, length, 0); g > 0; g = group_after(d->leaf, length, g))
        d->groups++;
    d->count = size > 0 ? d->options->directions * d->groups : 0;
    d->directions = ng_calloc("ng_check_function", d->count * size + 1, sizeof *d->directions);
    for (int64_t i = 0; d->directions && i < d->count; i += d->groups) {
        double *whole = d->directions + i * size, *part = whole + size;
        for (int64_t e = 0; e < size; e++) whole[e] = round(ng_rng_normal(rng) * 256) / 256;
        for (int g = group_after(d->leaf, length, 0); g > 0; part += size) {
            keep_group(d->leaf, length, g, whole, part);
            g = group_after(d->leaf, length, g);
        }
        keep_group(d->leaf, length, 0, whole, whole);
    }
    return d->directions;
}

static bool doubt_leaf(doubt *d, ng_rng *rng, tally *sum)
{
    const bool each = d->report->mode == NG_CHECK_ELEMENTS;
    d->count = d->leaf->tensor->size;
    d->directions = NULL;
    d->groups = 1;
    bool ok = each || draw_directions(d, rng);
    d->found = ok ? ng_calloc("ng_check_function", d->count + 1, sizeof *d->found) : NULL;
    ok = d->found;
    if (!ok) ng_check_say(d->report, "the check could not go on: %s", ng_check_reason());
    ok = ok && measure(d) && judge(d, sum);
    if (ok) tell(d, sum);
    ng_free(d->found);
    ng_free(d->directions);
    return ok;
}

/* At order 2 the second derivatives may all be 0, as a line's are, but not the gradient too. */
static bool has_gradient(const ng_subject *subject)
{
    for (int64_t i = 0; i < subject->n_values; i++) {
        if (subject->base[i] != 0) return true;
    }
    return false;
}

static bool doubt_order(ng_subject *subject, const ng_check_options *options,
                        ng_check_report *report, double *worst)
{
    ng_rng rng = ng_check_rng(options->seed, NG_CHECK_DIRECTIONS);
    tally sum = {.worst = *worst, .anything = subject->order == 2 && has_gradient(subject)};
    doubt d = {.subject = subject, .options = options, .report = report};
    report->order = subject->order;
    for (int i = 0; i < subject->n_leaves; i++) {
        d.leaf = &subject->leaves[i];
        d.scale = 0;
        if (!doubt_leaf(&d, &rng, &sum)) return false;
    }
    report->compared += sum.compared;
    report->failed += sum.failed;
    report->kinks += sum.kinks;
    *worst = sum.worst;
    conclude(&d, &sum);
    return !report->message[0] && ng_subject_repeats(subject, report);
}

/* Where the first derivatives are wrong, the second ones are not looked at. */
static bool doubt_orders(ng_subject *subject, const ng_check_options *options,
                         ng_check_report *report)
{
    double worst = -1;
    if (!ng_subject_begin(subject, options, report) ||
        !ng_subject_find_held(subject, options, report) ||
        !doubt_order(subject, options, report, &worst) || !ng_subject_adds_up(subject, report)) {
        return false;
    }
    if (options->order == 1) return true;
    report->order = 2;
    return ng_subject_raise(subject, options, report) &&
           doubt_order(subject, options, report, &worst);
}

static void doubt_subject(ng_subject *subject, const ng_check_options *options,
                          ng_check_report *report)
{
    ng_check_options chosen = *options;
    if (chosen.order == 0) chosen.order = 1;
    if (chosen.directions == 0) chosen.directions = 3;
    chosen.tolerance = ng_option(chosen.tolerance, default_tolerance);
    report->passed = doubt_orders(subject, &chosen, report);
    if (!report->passed) ng_check_explain(subject, &chosen, report);
}

static bool options_have_meaning(const ng_check_options *options, ng_check_report *report)
{
    int order = options->order, mode = (int)options->mode;
    if (order < 0 || order > 2) {
        return ng_check_say(report, "order %d was asked for: it is 1 or 2", order);
    }
    if (mode < NG_CHECK_ELEMENTS || mode > NG_CHECK_TAYLOR) {
        return ng_check_say(report, "mode %d was asked for: it is an ng_check_mode", mode);
    }
    if (mode == NG_CHECK_ELEMENTS && options->directions != 0) {
        return ng_check_say(report, "%d directions were asked for: elements have none",
                            options->directions);
    }
    if (options->directions < 0) {
        return ng_check_say(report, "%d directions were asked for", options->directions);
    }
    if (!(options->tolerance >= 0 && options->tolerance < 1)) {
        return ng_check_say(report, "the tolerance is %g: it is between 0 and 1",
                            options->tolerance);
    }
    const bool no_step = options->step == 0 && ng_option_given(options->step);
    if (no_step || !(options->step >= 0 && options->step <= 1)) {
        return ng_check_say(report, "the step is %g: it is between 0 and 1", options->step);
    }
    return true;
}

/* The report quotes what fails here, whatever is on record already. */
void ng_check_subject(ng_subject *subject, const ng_check_options *options, ng_check_report *report)
{
    const ng_error_record earlier = ng_error_put_aside();
    doubt_subject(subject, options, report);
    ng_error_put_back(&earlier);
}

ng_check_report ng_check_report_new(const ng_check_options *options)
{
    ng_check_report report = {.order = options->order == 0 ? 1 : options->order,
                              .mode = options->mode};
    options_have_meaning(options, &report);
    return report;
}

ng_check_report ng_check_function_with(ng_check_call *call, ng_check_options options)
{
    ng_check_report report = ng_check_report_new(&options);
    ng_subject subject = {0};
    if (report.message[0]) return report;
    if (ng_subject_open(&subject, call, options.context, &options, 0, 0, &report)) {
        ng_check_subject(&subject, &options, &report);
    }
    ng_subject_close(&subject);
    return report;
}
