/* The report: its messages, its hints, and how it is printed. */
#include "check/check.h"
#include "core/error.h"
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

/* "x: 15 of 15 wrong; gamma, beta: right": those that are right in a row share the word. */
void ng_check_count(ng_check_report *report, const char *name, int64_t wrong, int64_t compared)
{
    static const char right[] = ": right";
    char *text = report->counts;
    const size_t space = sizeof report->counts, word = strlen(right);
    size_t used = strlen(text);
    const bool after_right = used > word && strcmp(text + used - word, right) == 0;
    const char *separator = used == 0 ? "" : "; ";
    if (compared == 0) return;
    if (wrong == 0 && after_right) {
        separator = ", ";
        used -= word;
    }
    if (wrong > 0)
        snprintf(text + used, space - used, "%s%s: %lld of %lld wrong", separator, name,
                 (long long)wrong, (long long)compared);
    else
        snprintf(text + used, space - used, "%s%s%s", separator, name, right);
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

/* The factor by which all wrong derivatives differ from the right ones; NaN if there is none. */
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

/* Elements in groups: all, a row (the last axis), or a channel (all axes but axis 1). An element is
 * at (outer index * groups + group) * inner + inner index. */
typedef struct {
    const char *where;
    int64_t groups, inner, outer;
} grouping;

static int64_t in_group(const grouping *g, int64_t group, int64_t i)
{
    return (i / g->inner * g->groups + group) * g->inner + i % g->inner;
}

static double off_by(const ng_comparison *c) { return c->analytic - c->numeric.value; }

static double largest_difference(const ng_comparison *found, int64_t count)
{
    double largest = 0;
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(off_by(&found[i])));
    return largest;
}

/* What the differences of one group may have in common. */
typedef enum { HINT_CONSTANT, HINT_FACTOR, HINT_LINE } hint_pattern;

/* How far the differences of one group are from their mean, from a multiple of the derivative, or
 * from the straight line in x that is fitted to them. */
static double off_pattern(const ng_comparison *found, const double *x, const grouping *g,
                          int64_t group, hint_pattern kind)
{
    int64_t n = g->outer * g->inner;
    double mean_t = 0, mean_d = 0, tt = 0, td = 0, worst = 0;
    for (int64_t i = 0; i < n && kind != HINT_FACTOR; i++) {
        int64_t e = in_group(g, group, i);
        mean_d += off_by(&found[e]) / (double)n;
        mean_t += x[e] / (double)n;
    }
    for (int pass = 0; pass < 2; pass++) {
        double slope = tt > 0 && kind != HINT_CONSTANT ? td / tt : 0;
        for (int64_t i = 0; i < n; i++) {
            int64_t e = in_group(g, group, i);
            double t = (kind == HINT_FACTOR ? found[e].numeric.value : x[e]) - mean_t;
            double d = off_by(&found[e]) - mean_d;
            if (pass == 0)
                tt += t * t, td += t * d;
            else
                worst = fmax(worst, fabs(d - slope * t));
        }
    }
    return worst;
}

static bool follows(const ng_comparison *found, const double *x, const grouping *g,
                    hint_pattern kind, double tolerance)
{
    int64_t free_numbers = (kind == HINT_LINE ? 2 : 1) * g->groups;
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
    } texts[] = {[HINT_CONSTANT] = {"a constant", ": a mean's or sum's term is missing"},
                 [HINT_FACTOR] = {"a factor of its own", ": as with a wrong statistic"},
                 [HINT_LINE] = {"a line in the input", ": as with a variance held fixed"}};
    ng_shape shape = leaf->tensor->shape;
    int64_t row = shape.rank > 0 ? shape.dim[shape.rank - 1] : 1;
    int64_t channels = shape.rank > 1 ? shape.dim[1] : 1;
    int64_t inner = shape.rank > 1 ? ng_shape_span(shape, 2, shape.rank) : 1;
    const grouping choices[] = {{" in all elements", 1, 1, count},
                                {" in each row", count / row, row, 1},
                                {" in each channel", channels, inner, count / channels / inner}};
    double tolerance = 1e-3 * largest_difference(found, count);
    for (hint_pattern kind = HINT_CONSTANT; kind <= HINT_LINE; kind++) {
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

/* How far the derivatives are from a sum of 0 along an axis, as a share of their own sum. */
static double sum_along(const ng_comparison *found, ng_shape shape, int axis, bool numeric)
{
    const int64_t length = shape.dim[axis], inner = ng_shape_span(shape, axis + 1, shape.rank);
    const int64_t outer = ng_shape_span(shape, 0, axis);
    double off = 0, whole = 0;
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            double sum = 0;
            for (int64_t k = 0; k < length; k++) {
                const ng_comparison *d = &found[(o * length + k) * inner + i];
                const double value = numeric ? d->numeric.value : d->analytic;
                sum += value;
                whole += fabs(value);
            }
            off += fabs(sum);
        }
    }
    return off / whole;
}

/* The gradient of what subtracts a mean, or divides by a sum, sums to 0 along that axis. */
static bool hint_axis(const ng_check_leaf *leaf, const ng_comparison *found,
                      ng_check_report *report)
{
    const ng_shape shape = leaf->tensor->shape;
    static const double zero = 1e-6, more = 1e-3;
    int right = -1, instead = -1;
    for (int axis = 0; axis < shape.rank && shape.rank > 1; axis++) {
        const double numeric = sum_along(found, shape, axis, true);
        const double analytic = sum_along(found, shape, axis, false);
        if (numeric < zero && analytic > more) right = axis;
        if (analytic < zero && numeric > more) instead = axis;
    }
    if (right < 0) return false;
    if (instead >= 0)
        hint(report, "it sums to 0 along axis %d, and should along axis %d: the wrong axis",
             instead, right);
    else
        hint(report,
             "it does not sum to 0 along axis %d, as it should: a wrong axis, or a mean's "
             "term is missing",
             right);
    return true;
}

/* Whether the worst derivative of one leaf changes where another leaf has other values, and the
 * gradient does not. */
static bool ignores_leaf(const ng_line *worst, const ng_check_leaf *other, double *gradient,
                         ng_check_report *unused)
{
    ng_subject *subject = worst->subject;
    const ng_check_leaf *leaf = worst->leaf;
    const int64_t bytes = other->tensor->size * (int64_t)sizeof(double);
    double *x = other->tensor->data, before, after;
    const double h = ldexp(worst->length, -10);
    bool same = ng_line_difference(worst, h, &before, unused);
    ng_touch(other->tensor);
    for (int64_t i = 0; i < other->tensor->size; i++) x[i] = 1.5 * other->origin[i] + 0.25;
    same = same && ng_line_difference(worst, h, &after, unused) &&
           ng_subject_gradient(subject, gradient, unused);
    ng_touch(other->tensor);
    memcpy(x, other->origin, (size_t)bytes);
    if (!same || !(fabs(after - before) > 1e-6 * fabs(before))) return false;
    double size = 0, change = 0;
    for (int64_t i = leaf->offset; i < leaf->offset + leaf->tensor->size; i++) {
        size = fmax(size, fabs(subject->analytic[i]));
        change = fmax(change, fabs(gradient[i] - subject->analytic[i]));
    }
    return change <= 1e-9 * size;
}

/* As where a norm's gradient forgets gamma. */
static bool hint_forgotten(const ng_line *worst, ng_check_report *report)
{
    ng_subject *subject = worst->subject;
    double *gradient = ng_calloc("ng_check_function", subject->n_gradient + 1, sizeof *gradient);
    bool found = false;
    for (int i = 0; i < subject->n_leaves && gradient && !found; i++) {
        const ng_check_leaf *other = &subject->leaves[i];
        ng_check_report unused = {0};
        found = other != worst->leaf && ignores_leaf(worst, other, gradient, &unused);
        if (found)
            hint(report, "it does not depend on %.40s, and should: a factor is forgotten",
                 other->name);
    }
    ng_free(gradient);
    return found;
}

void ng_check_find_hint(const ng_line *worst, const ng_comparison *found, int64_t count, bool each,
                        ng_check_report *report)
{
    const ng_check_leaf *leaf = worst->leaf;
    int64_t wrong = 0;
    bool known = true;
    report->hint[0] = '\0';
    for (int64_t i = 0; i < count; i++) {
        wrong += found[i].wrong;
        known = known && isfinite(found[i].numeric.value) && isfinite(found[i].analytic);
        if (found[i].wrong && isnan(found[i].analytic)) {
            hint(report, "it is NaN");
            return;
        }
    }
    if (each && wrong == 1 && count > 1)
        hint(report, "only this element is wrong");
    else if (known && !hint_factor(found, count, report) && !hint_forgotten(worst, report) &&
             each && !hint_transposed(leaf, found, count, report) &&
             !hint_missing_term(leaf, found, count, report))
        hint_axis(leaf, found, report);
}

void ng_check_explain(const ng_subject *subject, ng_check_report *report)
{
    if (subject->lost)
        hint(report,
             "the function takes a gradient without .record = true, so that it is a constant");
    else if (subject->options->detached_moves && report->detached > 0 && report->failed > 0)
        hint(report, "%s is detached", report->detached_value);
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
    if (report->own_op[0] && !report->not_in_float32[0]) fputs(", in float32 too", stream);
    if (report->not_in_float32[0])
        fprintf(stream, ", not checked in float32 (%s)", report->not_in_float32);
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
    if (strchr(report->counts, ';')) fprintf(stream, "    %s\n", report->counts);
}
