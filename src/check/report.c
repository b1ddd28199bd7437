/* What the checker tells: sentences, hints, and the line that is printed. */
#include "check/check.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

bool ng_check_say(ng_check_report *report, const char *format, ...)
{
    if (report->message[0]) return false;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
    return false;
}

const char *ng_check_reason(void)
{
    return ng_failed() ? ng_error_text() : "NULL was returned without an error";
}

/* ---- Hints --------------------------------------------------------------------------------- */

static void hint(ng_check_report *report, const char *format, ...) NG_PRINTF(2, 3);
static void hint(ng_check_report *report, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->hint, sizeof report->hint, format, arguments);
    va_end(arguments);
}

/* All wrong derivatives are the same multiple of the right ones: which? NaN if they are not. */
static double common_factor(const ng_comparison *found, int64_t count)
{
    double factor = (double)NAN;
    for (int64_t i = 0; i < count; i++) {
        if (!found[i].wrong) continue;
        double ratio = found[i].analytic / found[i].numeric.value;
        if (isnan(factor)) factor = ratio;
        if (!(fabs(ratio - factor) <= 1e-3 * fabs(factor - 1))) return (double)NAN;
    }
    return factor;
}

static bool hint_factor(const ng_comparison *found, int64_t count, ng_check_report *report)
{
    double factor = common_factor(found, count);
    double size = fabs(factor) < 1 ? 1 / fabs(factor) : fabs(factor);
    const char *flipped = factor < 0 ? "the sign is flipped, and it is " : "";
    const char *direction = fabs(factor) < 1 ? "small" : "large";
    if (!isfinite(factor) || fabs(factor - 1) < 1e-9) return false;
    if (factor == 0) {
        hint(report, "it is 0 where it should not be");
    } else if (fabs(factor + 1) < 1e-6) {
        hint(report, "the sign is flipped");
    } else {
        const int digits = (int)fmax(6, 2 - floor(log10(size - 1)));
        hint(report, "%stoo %s by a factor of %.*g", flipped, direction, digits, size);
    }
    return true;
}

/* The element of a group: all elements, a row (of the last axis), or a channel (of axis 1). */
typedef struct {
    const char *where;
    int64_t groups, inner,
        outer; /* element = (outer index * groups + group) * inner + inner index */
} grouping;

static int64_t in_group(const grouping *g, int64_t group, int64_t i)
{
    return (i / g->inner * g->groups + group) * g->inner + i % g->inner;
}

static double difference(const ng_comparison *c) { return c->analytic - c->numeric.value; }

static double largest_difference(const ng_comparison *found, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(difference(&found[i])));
    return largest;
}

/* What the errors of one group may have in common. */
typedef enum { A_CONSTANT, A_FACTOR, A_LINE } pattern;

/* How far the differences of one group are from their mean, from a multiple of the derivative, or
 * from the straight line in x that is fitted to them. */
static double off_pattern(const ng_comparison *found, const double *x, const grouping *g,
                          int64_t group, pattern kind)
{
    int64_t n = g->outer * g->inner;
    double mean_t = 0, mean_d = 0, tt = 0, td = 0, worst = 0;
    for (int64_t i = 0; i < n && kind != A_FACTOR; i++) {
        int64_t e = in_group(g, group, i);
        mean_d += difference(&found[e]) / (double)n;
        mean_t += x[e] / (double)n;
    }
    for (int pass = 0; pass < 2; pass++) {
        double slope = tt > 0 && kind != A_CONSTANT ? td / tt : 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t e = in_group(g, group, i);
            double t = (kind == A_FACTOR ? found[e].numeric.value : x[e]) - mean_t;
            double d = difference(&found[e]) - mean_d;
            if (pass == 0)
                tt += t * t, td += t * d;
            else
                worst = fmax(worst, fabs(d - slope * t));
        }
    }
    return worst;
}

static bool follows(const ng_comparison *found, const double *x, const grouping *g, pattern kind,
                    double tolerance)
{
    int64_t free_numbers = (kind == A_LINE ? 2 : 1) * g->groups;
    if (g->groups * g->outer * g->inner - free_numbers < 3 || g->outer * g->inner < 3) return false;
    for (int64_t group = 0; group < g->groups; group++) {
        if (!(off_pattern(found, x, g, group, kind) <= tolerance)) return false;
    }
    return true;
}

/* What is missing from a normalization's gradient is constant along what it normalizes over (the
 * mean's term) or a straight line in x (the variance's); a wrong rstd is a factor. */
static bool hint_missing_term(const ng_check_leaf *leaf, const ng_comparison *found, int64_t count,
                              ng_check_report *report)
{
    static const struct {
        const char *is, *means;
    } texts[] = {[A_CONSTANT] = {"a constant", ": a mean's or sum's term is missing"},
                 [A_FACTOR] = {"a factor of its own", ": as with a wrong statistic"},
                 [A_LINE] = {"a line in the input", ": as with a variance held fixed"}};
    ng_shape shape = leaf->tensor->shape;
    int64_t row = shape.rank > 0 ? shape.dim[shape.rank - 1] : 1;
    int64_t channels = shape.rank > 1 ? shape.dim[1] : 1;
    int64_t inner = shape.rank > 1 ? ng_shape_span(shape, 2, shape.rank) : 1;
    const grouping choices[] = {{" in all elements", 1, 1, count},
                                {" in each row", count / row, row, 1},
                                {" in each channel", channels, inner, count / channels / inner}};
    double tolerance = 1e-3 * largest_difference(found, count);
    for (pattern kind = A_CONSTANT; kind <= A_LINE; kind++) {
        for (int i = 0; i < 3; i++) {
            if (!follows(found, leaf->origin, &choices[i], kind, tolerance)) continue;
            hint(report, "off by %s%s%s", texts[kind].is, choices[i].where, texts[kind].means);
            return true;
        }
    }
    return false;
}

/* The gradient of a matrix (or a stack of them) stands in memory column by column. */
static bool hint_transposed(const ng_check_leaf *leaf, const ng_comparison *found, int64_t count,
                            ng_check_report *report)
{
    ng_shape shape = leaf->tensor->shape;
    if (shape.rank < 2) return false;
    int64_t rows = shape.dim[shape.rank - 2], columns = shape.dim[shape.rank - 1];
    double tolerance = 1e-6 * largest_difference(found, count);
    for (int64_t e = 0; e < count; e++) {
        int64_t matrix = e / (rows * columns) * (rows * columns);
        int64_t i = e % (rows * columns) / columns, j = e % columns;
        double other = found[matrix + j * rows + i].numeric.value;
        if (!(fabs(found[e].analytic - other) <= tolerance)) return false;
    }
    hint(report, "it is transposed");
    return true;
}

void ng_check_find_hint(const ng_check_leaf *leaf, const ng_comparison *found, int64_t count,
                        bool each, ng_check_report *report)
{
    int64_t wrong = 0;
    bool known = true;
    for (int64_t i = 0; i < count; i++) {
        wrong += found[i].wrong;
        known = known && isfinite(found[i].numeric.value) && isfinite(found[i].analytic);
        if (found[i].wrong && isnan(found[i].analytic)) {
            hint(report, "it is NaN");
            return;
        }
    }
    if (each && wrong == 1 && count > 1) {
        hint(report, "only this element is wrong");
        return;
    }
    if (!known || hint_factor(found, count, report) || !each) return;
    if (hint_transposed(leaf, found, count, report)) return;
    hint_missing_term(leaf, found, count, report);
}

void ng_check_explain(const ng_subject *subject, const ng_check_options *options,
                      ng_check_report *report)
{
    if (subject->lost) {
        hint(report,
             "the function takes a gradient without .record = true, so that it is a constant");
    } else if (options->detached_moves && report->detached > 0 && report->failed > 0) {
        hint(report, "%s is detached", report->detached_value);
    }
}

/* ---- Print --------------------------------------------------------------------------------- */

static void place_of(const ng_check_report *report, char *text, size_t bytes)
{
    const char *format = report->mode == NG_CHECK_ELEMENTS ? "%s[%lld]" : "%s, direction %lld";
    text[0] = '\0';
    if (!report->worst_name[0]) return;
    snprintf(text, bytes, format, report->worst_name, (long long)report->worst_index);
}

static void error_of(const ng_check_report *report, char *text, size_t bytes)
{
    text[0] = '\0';
    if (report->compared == 0) return;
    if (report->mode != NG_CHECK_TAYLOR && report->analytic == 0) {
        snprintf(text, bytes, "%.0e abs", report->absolute_error);
    } else if (report->mode != NG_CHECK_TAYLOR) {
        snprintf(text, bytes, "%.1e", report->relative_error);
    } else if (report->slope == 0) {
        snprintf(text, bytes, "rounding");
    } else {
        snprintf(text, bytes, "h^%.2f", report->slope);
    }
}

static void print_verdict(FILE *stream, const ng_check_report *report)
{
    if (!report->passed) {
        fputs("FAILED", stream);
        if (report->failed > 0) fprintf(stream, ": %lld wrong", (long long)report->failed);
        return;
    }
    fputs("ok", stream);
    if (report->kinks > 0) fprintf(stream, ", %lld at kinks", (long long)report->kinks);
    if (report->constants > 0) fprintf(stream, ", %d constant by definition", report->constants);
    if (report->detached > 0) {
        fprintf(stream, ", with %d detached value%s held fixed (%s%s)", report->detached,
                report->detached == 1 ? "" : "s", report->detached_value,
                report->detached == 1 ? "" : ", ...");
    }
}

void ng_check_print_head(FILE *stream)
{
    if (!ng_given("ng_check_print_head", "stream", stream)) return;
    fprintf(stream, "%-46s %5s %8s  %9s  %-22s %s\n", "", "order", "compared", "error", "at",
            "verdict");
}

void ng_check_print(FILE *stream, const char *name, const ng_check_report *report)
{
    char place[96], error[24];
    if (!ng_given("ng_check_print", "stream", stream) ||
        !ng_given("ng_check_print", "report", report))
        return;
    place_of(report, place, sizeof place);
    error_of(report, error, sizeof error);
    fprintf(stream, "%-46s %5s %8lld  %9s  %-22s ", name ? name : "",
            report->order == 2 ? "1, 2" : "1", (long long)report->compared, error, place);
    print_verdict(stream, report);
    fputc('\n', stream);
    if (report->passed) return;
    fprintf(stream, "    %s%s%s\n", report->message, report->hint[0] ? "; " : "", report->hint);
    if (report->failed == 0) return;
    fprintf(stream, "    analytic %.12g, numeric %.12g, which is known to %.1e\n", report->analytic,
            report->numeric, report->error_estimate);
}
