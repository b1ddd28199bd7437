/* The report: its messages, its hints, and how it is printed. */
#include "check/check.h"
#include "core/error.h"
#include "core/number.h"
#include <math.h>
#include <string.h>

bool ng_check_say(ng_check_report *report, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!report->message[0]) ng_c_print(report->message, sizeof report->message, format, arguments);
    va_end(arguments);
    return false;
}

const char *ng_check_reason(void)
{
    return ng_failed() ? ng_error_text() : "NULL was returned without an error";
}

bool ng_check_stop(ng_check_report *report)
{
    return ng_check_say(report, "the check could not go on: %s", ng_check_reason());
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

/* The derivatives of one leaf, and the worst of them. */
typedef struct {
    const ng_line *worst;
    const ng_check_leaf *leaf;
    ng_shape shape;
    const ng_comparison *found;
    int64_t count;
    double largest; /* difference of analytic and numeric */
} hint_case;

/* Leaves a hint; true. */
static bool hint(ng_check_report *report, const char *format, ...) NG_PRINTF(2, 3);
static bool hint(ng_check_report *report, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    ng_c_print(report->hint, sizeof report->hint, format, arguments);
    va_end(arguments);
    return true;
}

static const char hint_zero[] = "it is 0 where it should not be";

/* The factor by which all wrong derivatives differ from the right ones. */
static bool hint_factor(const hint_case *c)
{
    ng_check_report *report = c->worst->subject->report;
    double factor = (double)NAN;
    for (int64_t i = 0; i < c->count; i++) {
        if (!c->found[i].wrong) continue;
        const double ratio = c->found[i].analytic / c->found[i].numeric.value;
        if (isnan(factor)) factor = ratio;
        if (!(fabs(ratio - factor) <= CHECK_NO_PATTERN * fabs(factor - 1))) return false;
    }
    if (!isfinite(factor) || factor == 1) return false;
    if (factor == 0) return hint(report, "%s", hint_zero);
    if (fabs(factor + 1) < CHECK_PATTERN) return hint(report, "the sign is flipped");
    const double size = fabs(factor) < 1 ? 1 / fabs(factor) : fabs(factor);
    return hint(
        report, "%stoo %s by a factor of %.*g", factor < 0 ? "the sign is flipped, and it is " : "",
        fabs(factor) < 1 ? "small" : "large", (int)fmax(6, 2 - floor(log10(size - 1))), size);
}

/* What the differences between analytic and numeric derivatives of a group of elements have in
 * common. If a normalization's gradient lacks the mean's term, they are constant along the axes it
 * normalizes over; if it lacks the variance's, they are a straight line in x; a wrong statistic is
 * a factor. */
typedef enum { HINT_CONSTANT, HINT_FACTOR, HINT_LINE } hint_pattern;

/* Elements in groups: all, a row (the last axis), or a channel (all axes but axis 1). Element i of
 * a group is at (i / inner * groups + group) * inner + i % inner. */
typedef struct {
    const char *where;
    int64_t groups, inner;
} grouping;

/* Whether each group has differences a + b t, by least squares: a alone, b alone with the numeric
 * derivative as t, or both with x. */
static bool follows(const hint_case *c, const grouping *g, hint_pattern kind)
{
    const int64_t n = c->count / g->groups;
    if (n < 3 || g->groups * (n - (kind == HINT_LINE ? 2 : 1)) < 3) return false;
    for (int64_t group = 0; group < g->groups; group++) {
        double t1 = 0, d1 = 0, tt = 0, td = 0, a = 0, b = 0;
        for (int64_t i = 0; i < 2 * n; i++) { /* first the sums, then what is left */
            const int64_t e = (i % n / g->inner * g->groups + group) * g->inner + i % n % g->inner;
            const double numeric = c->found[e].numeric.value, d = c->found[e].analytic - numeric;
            const double t = kind == HINT_FACTOR ? numeric : c->leaf->origin[e];
            if (i < n) t1 += t, d1 += d, tt += t * t, td += t * d;
            if (i == n && kind == HINT_FACTOR) b = td / tt;
            if (i == n && kind == HINT_LINE)
                b = ((double)n * td - t1 * d1) / ((double)n * tt - t1 * t1);
            if (i == n && kind != HINT_FACTOR) a = (d1 - b * t1) / (double)n;
            if (i >= n && !(fabs(d - a - b * t) <= CHECK_NO_PATTERN * c->largest)) return false;
        }
    }
    return true;
}

/* Whether the numeric derivatives of each group sum to 0, as where a mean is subtracted, and the
 * analytic ones do not. */
static bool lacks_mean(const hint_case *c, const grouping *g)
{
    double numeric = 0, analytic = 0, whole = 0;
    for (int64_t group = 0; group < g->groups; group++) {
        double sums[2] = {0, 0};
        for (int64_t i = 0; i < c->count / g->groups; i++) {
            const ng_comparison *d =
                &c->found[(i / g->inner * g->groups + group) * g->inner + i % g->inner];
            sums[0] += d->numeric.value, sums[1] += d->analytic;
            whole += fabs(d->numeric.value);
        }
        numeric += fabs(sums[0]), analytic += fabs(sums[1]);
    }
    return numeric < CHECK_PATTERN * whole && analytic > CHECK_NO_PATTERN * whole;
}

static bool hint_missing_term(const hint_case *c)
{
    static const char *const texts[] = {
        [HINT_CONSTANT] = "off by a constant in %s: a mean's or sum's term is missing or wrong",
        [HINT_FACTOR] = "off by a factor of its own in %s: as with a wrong statistic",
        [HINT_LINE] = "off by a line in the input in %s: a variance's term is missing or wrong"};
    static const char both[] =
        "off by a line in the input in %s: the mean's term is missing or wrong, and the variance's";
    const ng_shape shape = c->shape;
    const int64_t row = shape.rank > 0 ? shape.dim[shape.rank - 1] : 1;
    const int64_t channels = shape.rank > 1 ? shape.dim[1] : 1;
    const int64_t inner = shape.rank > 1 ? ng_shape_span(shape, 2, shape.rank) : 1;
    const grouping choices[] = {{"all elements", 1, 1},
                                {"each row", c->count / row, row},
                                {"each channel", channels, inner}};
    for (hint_pattern kind = HINT_CONSTANT; kind <= HINT_LINE; kind++)
        for (int i = 0; i < 3; i++)
            if (follows(c, &choices[i], kind))
                return hint(c->worst->subject->report,
                            kind == HINT_LINE && lacks_mean(c, &choices[i]) ? both : texts[kind],
                            choices[i].where);
    return false;
}

/* The gradient of a matrix (or a stack of them) is in memory column by column. */
static bool hint_transposed(const hint_case *c)
{
    const ng_shape shape = c->shape;
    if (shape.rank < 2) return false;
    const int64_t rows = shape.dim[shape.rank - 2], columns = shape.dim[shape.rank - 1];
    for (int64_t e = 0; e < c->count; e++) {
        const int64_t at = e % (rows * columns), i = at / columns, j = at % columns;
        const double other = c->found[e - at + j * rows + i].numeric.value;
        if (!(fabs(c->found[e].analytic - other) <= CHECK_PATTERN * c->largest)) return false;
    }
    return hint(c->worst->subject->report, "it is transposed");
}

/* The sums of the analytic or numeric derivatives along an axis, relative to their sizes. */
static double sums_along(const hint_case *c, int axis, bool numeric)
{
    const int64_t length = c->shape.dim[axis];
    const int64_t inner = ng_shape_span(c->shape, axis + 1, c->shape.rank);
    double off = 0, whole = 0;
    for (int64_t line = 0; line < c->count / length; line++) {
        double sum = 0;
        for (int64_t k = 0; k < length; k++) {
            const ng_comparison *d = &c->found[(line / inner * length + k) * inner + line % inner];
            const double value = numeric ? d->numeric.value : d->analytic;
            sum += value;
            whole += fabs(value);
        }
        off += fabs(sum);
    }
    return off / whole;
}

/* The gradient of what subtracts a mean, or divides by a sum, sums to 0 along that axis. */
static bool hint_axis(const hint_case *c)
{
    for (int axis = 0; axis < c->shape.rank; axis++)
        if (sums_along(c, axis, true) < CHECK_PATTERN &&
            sums_along(c, axis, false) > CHECK_NO_PATTERN)
            return hint(c->worst->subject->report,
                        "it does not sum to 0 along axis %d, as it should: a wrong axis, or a "
                        "mean's term is missing",
                        axis);
    return false;
}

/* Returns whether the numeric derivative depends on the values of another leaf and the gradient
 * does not. */
static bool ignores_leaf(const hint_case *c, const ng_check_leaf *other)
{
    ng_subject *subject = c->worst->subject;
    double *x = other->tensor->data, size = 0, change = 0;
    const double h = ldexp(c->worst->length, -10);
    ng_sides before, after;
    bool same = ng_line_sides(c->worst, h, &before);
    for (int64_t i = 0; i < other->tensor->size; i++) x[i] = 1.5 * other->origin[i] + 0.25;
    same = same && ng_line_sides(c->worst, h, &after) &&
           ng_subject_evaluate(subject, subject->plus, subject->other);
    memcpy(x, other->origin, (size_t)other->tensor->size * sizeof *x);
    if (!same || !(fabs(after.slope - before.slope) > CHECK_PATTERN * fabs(before.slope)))
        return false;
    for (int64_t i = c->leaf->offset; i < c->leaf->offset + c->count; i++) {
        size = fmax(size, fabs(subject->analytic[i]));
        change = fmax(change, fabs(subject->other[i] - subject->analytic[i]));
    }
    return change <= CHECK_SAME * size;
}

/* A norm's gradient that forgets gamma, for example. A failure on the way is not reported. */
static bool hint_forgotten(const hint_case *c)
{
    ng_subject *subject = c->worst->subject;
    ng_check_report *report = subject->report, unused = {0};
    const ng_check_leaf *forgotten = NULL;
    subject->report = &unused;
    for (int i = 0; i < subject->n_leaves && !forgotten; i++)
        if (&subject->leaves[i] != c->leaf && ignores_leaf(c, &subject->leaves[i]))
            forgotten = &subject->leaves[i];
    subject->report = report;
    return forgotten &&
           hint(report, "it does not depend on %.40s, and should: a factor is forgotten",
                forgotten->name);
}

void ng_check_find_hint(const ng_line *worst, const ng_comparison *found, int64_t count, bool each)
{
    ng_check_report *report = worst->subject->report;
    hint_case c = {worst, worst->leaf, worst->leaf->tensor->shape, found, count, 0};
    int64_t wrong = 0;
    bool known = true, nan = false;
    for (int64_t i = 0; i < count; i++) {
        wrong += found[i].wrong;
        known = known && isfinite(found[i].numeric.value) && isfinite(found[i].analytic);
        nan = nan || (found[i].wrong && isnan(found[i].analytic));
        c.largest = fmax(c.largest, fabs(found[i].analytic - found[i].numeric.value));
    }
    report->hint[0] = '\0';
    if (nan)
        hint(report, "it is NaN");
    else if (each && wrong == 1 && count > 1)
        hint(report, "only this element is wrong");
    else if (known && !hint_factor(&c) && !hint_forgotten(&c) && each && !hint_transposed(&c) &&
             !hint_missing_term(&c))
        hint_axis(&c);
}

void ng_check_explain(const ng_subject *subject)
{
    ng_check_report *report = subject->report;
    const ng_op *op = subject->own_op;
    if (report->order == 2 && op && !op->gradient && !op->definition)
        hint(report, "order 2 needs a .gradient of %.40s, made of ops, or a .definition", op->name);
    else if (report->order == 2 && op && op->gradient && strcmp(report->hint, hint_zero) == 0)
        hint(report, "%s: the .gradient of %.40s is not made of recorded ops", hint_zero, op->name);
    else if (subject->lost)
        hint(report,
             "the function takes a gradient without .record = true, so that it is a constant");
    else if (subject->options->detached_moves && report->detached > 0 && report->failed > 0)
        hint(report, "%s is detached", report->detached_value);
}

/* ---- Print --------------------------------------------------------------------------------- */

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
    if (report->detached > 0)
        fprintf(stream, ", with %d detached value%s held fixed (%s%s)", report->detached,
                report->detached == 1 ? "" : "s", report->detached_value,
                report->detached == 1 ? "" : ", ...");
    if (report->not_in_float32[0])
        fprintf(stream, ", not checked in float32 (%s)", report->not_in_float32);
    else if (report->own_op[0])
        fputs(", in float32 too", stream);
}

void ng_check_print_head(FILE *stream)
{
    if (!ng_given("ng_check_print_head", "stream", stream)) return;
    fprintf(stream, "%-46s %5s %8s  %9s  %-22s %s\n", "", "order", "compared", "error", "at",
            "verdict");
}

void ng_check_print(FILE *stream, const char *name, const ng_check_report *report)
{
    if (!ng_given("ng_check_print", "stream", stream) ||
        !ng_given("ng_check_print", "report", report))
        return;
    const locale_t locale = ng_c_locale_begin();
    const bool zero = report->analytic == 0; /* then the absolute error */
    char error[24] = "", place[96] = "";
    if (report->compared > 0)
        snprintf(error, sizeof error, zero ? "%.0e abs" : "%.1e",
                 zero ? report->absolute_error : report->relative_error);
    if (report->worst_name[0])
        snprintf(place, sizeof place,
                 report->mode == NG_CHECK_ELEMENTS ? "%s[%lld]" : "%s, direction %lld",
                 report->worst_name, (long long)report->worst_index);
    fprintf(stream, "%-46s %5s %8lld  %9s  %-22s ", name ? name : "",
            report->order == 2 ? "1, 2" : "1", (long long)report->compared, error, place);
    print_verdict(stream, report);
    fputc('\n', stream);
    if (!report->passed)
        fprintf(stream, "    %s%s%s\n", report->message, report->hint[0] ? "; " : "", report->hint);
    if (!report->passed && report->failed > 0) {
        fprintf(stream, "    analytic %.12g, numeric %.12g, which is known to %.1e\n",
                report->analytic, report->numeric, report->error_estimate);
        if (strchr(report->counts, ';')) fprintf(stream, "    %s\n", report->counts);
    }
    ng_c_locale_end(locale);
}
