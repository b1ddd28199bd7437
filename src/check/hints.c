/* Hints: what the wrong derivatives of an input have in common. */
#include "check/check.h"
#include "core/number.h"
#include <math.h>
#include <string.h>

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

/* ---- Candidates ---------------------------------------------------------------------------- */

/* The elements of a leaf in groups of `size`. Group k begins at k / low high + k % low, and has
 * pieces of `length` elements, `stride` apart; the pieces are `apart` from each other. */
typedef struct {
    const char *where;
    int64_t groups, low, high, size, length, stride, apart;
} grouping;

static int64_t element_of(const grouping *g, int64_t group, int64_t i)
{
    return group / g->low * g->high + group % g->low + i / g->length * g->apart +
           i % g->length * g->stride;
}

static grouping along_axis(ng_shape shape, int axis, const char *where)
{
    const int64_t inner = ng_shape_span(shape, axis + 1, shape.rank), length = shape.dim[axis];
    return (grouping){
        where, ng_shape_span(shape, 0, axis) * inner, inner, length * inner, length, length, inner,
        0};
}

/* All elements, rows (the last axis), channels (all axes but axis 1); returns how many. */
static int list_groupings(ng_shape shape, int64_t count, grouping list[3])
{
    const int64_t channels = shape.rank > 1 ? shape.dim[1] : 1;
    const int64_t inner = shape.rank > 1 ? ng_shape_span(shape, 2, shape.rank) : 1;
    list[0] = (grouping){"all elements", 1, 1, 0, count, count, 1, 0};
    if (shape.rank < 2) return 1;
    list[1] = along_axis(shape, shape.rank - 1, "each row");
    list[2] = (grouping){"each channel",   channels, 1, inner,
                         count / channels, inner,    1, channels * inner};
    return 3;
}

/* Faults by what they make of the difference between analytic and numeric derivatives: in each
 * group it is a constant plus a multiple of the numeric derivative n, of the input x, or of x less
 * its mean. A norm's gradient that lacks the mean's term is off by a constant along the axes that
 * it normalizes over, one that lacks the variance's by a multiple of x - mean. */
static const struct candidate {
    enum { OF_NOTHING, OF_NUMERIC, OF_INPUT, OF_CENTRED } multiple;
    bool constant;
    const char *text;
} candidates[] = {
    {OF_NOTHING, true, "off by a constant in %s: a mean's or sum's term is missing or wrong"},
    {OF_NUMERIC, false, "off by a factor of its own in %s: as with a wrong statistic"},
    {OF_CENTRED, false,
     "off by a multiple of x - mean in %s: a variance's term is missing or wrong"},
    {OF_INPUT, false, "off by a multiple of x in %s: a mean square's term is missing or wrong"},
    {OF_CENTRED, true,
     "off by a line in x in %s: the mean's term is missing or wrong, and the variance's"},
};

/* Whether the differences of each group are what the fault makes of them, by least squares. */
static bool explains(const struct candidate *fault, const hint_case *c, const grouping *g)
{
    const int64_t unknown = fault->constant + (fault->multiple != OF_NOTHING);
    if (g->size < 3 || g->groups * (g->size - unknown) < 3) return false;
    for (int64_t group = 0; group < g->groups; group++) {
        double mean = 0, constant = 0, squares = 0, products = 0;
        for (int pass = 0; pass < 3; pass++) /* means, sums, and what is left */
            for (int64_t i = 0; i < g->size; i++) {
                const int64_t e = element_of(g, group, i);
                const double numeric = c->found[e].numeric.value;
                const double off = c->found[e].analytic - numeric, x = c->leaf->origin[e];
                const double t = fault->multiple == OF_NOTHING   ? 0
                                 : fault->multiple == OF_NUMERIC ? numeric
                                                                 : x - mean;
                const double factor = squares > 0 ? products / squares : 0;
                if (pass == 0 && fault->multiple == OF_CENTRED) mean += x / (double)g->size;
                if (pass == 0 && fault->constant) constant += off / (double)g->size;
                if (pass == 1) squares += t * t, products += t * off;
                if (pass == 2 &&
                    !(fabs(off - constant - factor * t) <= CHECK_NO_PATTERN * c->largest))
                    return false;
            }
    }
    return true;
}

static bool hint_candidate(const hint_case *c)
{
    grouping groupings[3];
    const int n = list_groupings(c->shape, c->count, groupings);
    for (size_t k = 0; k < sizeof candidates / sizeof *candidates; k++)
        for (int i = 0; i < n; i++)
            if (explains(&candidates[k], c, &groupings[i]))
                return hint(c->worst->subject->report, candidates[k].text, groupings[i].where);
    return false;
}

/* ---- Others --------------------------------------------------------------------------------- */

/* The gradient of a matrix (or a stack of them) is in memory column by column. */
static bool hint_transposed(const hint_case *c)
{
    const ng_shape shape = c->shape;
    if (shape.rank < 2) return false;
    const int64_t rows = shape.dim[shape.rank - 2], columns = shape.dim[shape.rank - 1];
    for (int64_t e = 0; e < c->count; e++) {
        const int64_t place = e % (rows * columns), i = place / columns, j = place % columns;
        const double other = c->found[e - place + j * rows + i].numeric.value;
        if (!(fabs(c->found[e].analytic - other) <= CHECK_PATTERN * c->largest)) return false;
    }
    return hint(c->worst->subject->report, "it is transposed");
}

/* The sums of the analytic or numeric derivatives of each group, relative to their sizes. */
static double relative_sums(const hint_case *c, const grouping *g, bool numeric)
{
    double off = 0, whole = 0;
    for (int64_t group = 0; group < g->groups; group++) {
        double sum = 0;
        for (int64_t i = 0; i < g->size; i++) {
            const ng_comparison *d = &c->found[element_of(g, group, i)];
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
    for (int axis = 0; axis < c->shape.rank; axis++) {
        const grouping lines = along_axis(c->shape, axis, "");
        if (relative_sums(c, &lines, true) < CHECK_PATTERN &&
            relative_sums(c, &lines, false) > CHECK_NO_PATTERN)
            return hint(c->worst->subject->report,
                        "it does not sum to 0 along axis %d, as it should: a wrong axis, or a "
                        "mean's term is missing",
                        axis);
    }
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
             !hint_candidate(&c))
        hint_axis(&c);
}

void ng_check_explain(const ng_subject *subject)
{
    ng_check_report *report = subject->report;
    const ng_op *op = subject->own_op;
    if (report->order > 1 && op && !op->gradient && !op->definition)
        hint(report, "order %d needs a .gradient of %.40s, made of ops, or a .definition",
             report->order, op->name);
    else if (report->order > 1 && op && op->gradient && strcmp(report->hint, hint_zero) == 0)
        hint(report, "%s: the .gradient of %.40s is not made of recorded ops", hint_zero, op->name);
    else if (subject->lost)
        hint(report,
             "the function takes a gradient without .record = true, so that it is a constant");
    else if (subject->options->detached_moves && report->detached > 0 && report->failed > 0)
        hint(report, "%s is detached", report->detached_value);
}
