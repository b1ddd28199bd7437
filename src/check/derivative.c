/* Numeric derivatives of sum_j w_j F_j along a line through the base point.
 *
 *     D(h) = sum_j w_j (F_j(h) - F_j(-h)) / 2h = slope + c1 h^2 + c2 h^4 + ...
 *
 * Differences are taken output by output before they are summed, so that large outputs that did
 * not move leave no noise, and summed in long double. Steps are powers of two times one number of
 * twelve bits: x + h and x - h are exact but for a change of binade, and where a function repeats
 * itself, as sin(2 pi 64 x) does, steps are no whole periods, which would show nothing.
 */
#include "check/check.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Along the line ------------------------------------------------------------------------ */

static double power_near(double size)
{
    return size > 0 && isfinite(size) ? exp2(fmin(round(log2(size)), 1023)) : 1;
}

/* By the root of the mean square, of numbers near 1, so that no square leaves the range. */
static double root_mean_square(const double *x, const double *direction, int64_t size)
{
    double sum = 0, most = 0, count = 0;
    for (int64_t i = 0; i < size; i++)
        if (!direction || direction[i] != 0) most = fmax(most, fabs(x[i])), count++;
    const double unit = fmax(power_near(most), 0x1p-1000), inverse = 1 / unit;
    for (int64_t i = 0; i < size; i++) {
        const double ratio = !direction || direction[i] != 0 ? x[i] * inverse : 0;
        sum += ratio * ratio;
    }
    return sqrt(sum / count) * unit;
}

double ng_line_length(const ng_check_leaf *leaf, const double *direction, int64_t index)
{
    double size = root_mean_square(leaf->origin, direction, leaf->tensor->size);
    if (index >= 0) size = fmax(size, fabs(leaf->origin[index]));
    return power_near(size);
}

/* Moves by t and tells how far that was. */
static double move(const ng_line *line, double t)
{
    double *x = line->leaf->tensor->data;
    const double *origin = line->leaf->origin;
    ng_touch(line->leaf->tensor);
    if (!line->direction) {
        x[line->index] = origin[line->index] + t;
        return x[line->index] - origin[line->index];
    }
    for (int64_t i = 0; i < line->leaf->tensor->size; i++) {
        x[i] = origin[i] + t * line->direction[i];
    }
    return t;
}

static void move_back(const ng_line *line)
{
    ng_tensor *x = line->leaf->tensor;
    ng_touch(x);
    memcpy(x->data, line->leaf->origin, (size_t)x->size * sizeof *line->leaf->origin);
}

static bool values_at(const ng_line *line, double t, double *moved, double *values,
                      ng_check_report *report)
{
    *moved = move(line, t);
    bool ok = ng_subject_values(line->subject, values, report);
    move_back(line);
    return ok;
}

/* sum_j w_j (to_j - from_j), and the size of what was subtracted. */
typedef struct {
    long double sum;
    double magnitude;
    bool moved;
} contraction;

static contraction contract(const ng_subject *subject, const double *to, const double *from)
{
    contraction result = {0};
    for (int64_t j = 0; j < subject->n_values; j++) {
        if (to[j] == from[j]) continue;
        double weight = subject->weights[j];
        result.sum += (long double)weight * ((long double)to[j] - (long double)from[j]);
        result.magnitude += fabs(weight) * fmax(fabs(to[j]), fabs(from[j]));
        result.moved = true;
    }
    return result;
}

/* sum |w_j F_j| at the base point. */
static double whole_magnitude(const ng_subject *subject)
{
    double sum = 0;
    for (int64_t j = 0; j < subject->n_values; j++) {
        sum += fabs(subject->weights[j] * subject->base[j]);
    }
    return sum;
}

/* F at h to the one side and to the other. */
static bool values_around(const ng_line *line, double h, double *up, double *down,
                          ng_check_report *report)
{
    return values_at(line, h, up, line->subject->plus, report) &&
           values_at(line, -h, down, line->subject->minus, report);
}

static bool central(const ng_line *line, double h, double *slope, contraction *change,
                    ng_check_report *report)
{
    double up, down;
    if (!values_around(line, h, &up, &down, report)) return false;
    *change = contract(line->subject, line->subject->plus, line->subject->minus);
    *slope = (double)(change->sum / ((long double)up - (long double)down));
    return true;
}

/* Slopes of the two sides at a step: `gap` sums how far they are apart, output by output; `low` and
 * `high` bound what a choice between the sides can give. */
typedef struct {
    double gap, low, high, rounding;
} sides;

/* Of the values around that were taken last. */
static sides compare_sides(const ng_subject *subject, double up, double down)
{
    sides found = {0};
    for (int64_t j = 0; j < subject->n_values; j++) {
        double weight = subject->weights[j], base = subject->base[j];
        double right = weight * (subject->plus[j] - base) / up;
        double left = weight * (subject->minus[j] - base) / down;
        found.gap += fabs(right - left);
        found.low += fmin(left, right);
        found.high += fmax(left, right);
        if (right != left) found.rounding += DBL_EPSILON * fabs(weight * base) / up;
    }
    return found;
}

bool ng_line_difference(const ng_line *line, double h, double *slope, ng_check_report *report)
{
    contraction change;
    return central(line, h, slope, &change, report);
}

/* ---- Richardson extrapolation -------------------------------------------------------------- */

enum { LEVELS = 6, TABLES = 5, TRIES = 4 };
static const double share = 3709 / 4096.0;

/* row[k] = (4^k row[k-1] - previous[k-1]) / (4^k - 1) takes the term h^2k away. */
static void extrapolate(double *row, const double *previous, int level)
{
    double factor = 4;
    for (int k = 1; k <= level; k++, factor *= 4)
        row[k] = (factor * row[k - 1] - previous[k - 1]) / (factor - 1);
}

/* How far row[k] is from what it was made of estimates its error (Ridders 1982). */
static ng_numeric best_of(const double *row, const double *previous, int level, double rounding)
{
    ng_numeric best = {.value = (double)NAN, .error = HUGE_VAL};
    for (int k = 1; k <= level; k++) {
        double error = fmax(fabs(row[k] - row[k - 1]), fabs(row[k] - previous[k - 1])) + rounding;
        if (!(error < best.error)) continue;
        best.value = row[k];
        best.error = error;
        best.order = k;
    }
    return best;
}

/* What tables of ever smaller steps have shown. */
typedef struct {
    double scale, enough;
    ng_numeric rows[(TABLES + 1) * LEVELS]; /* the best of each row */
    int count;
    bool settled;     /* the newest is good, and confirmed */
    double slope;     /* the newest at which the outputs moved */
    bool moved, flat; /* they have; and at a smaller step no more */
    bool coarse;      /* one of them, on a stair, moves no more */
} course;

static course begin(const ng_line *line, double scale, double enough)
{
    ng_subject *subject = line->subject;
    memset(subject->trails, 0, (size_t)subject->n_values * sizeof *subject->trails);
    return (course){.scale = scale, .enough = enough};
}

static bool good(const course *c, const ng_numeric *numeric)
{
    return numeric->error <= c->enough * fmax(fabs(numeric->value), c->scale);
}

static bool goes_on(const course *c) { return !c->flat && !c->coarse && !c->settled; }

/* Whether an output that had a slope is at rest at the step h, by the values around that were taken
 * last: on a stair, as float is beside double, of which smaller steps see what moves on alone. Next
 * to a kink, of which large steps see half the slope, the last that moves sees less than half of
 * that; on a stair, more. A slope that is rounding, or next to nothing here, does not count. */
static bool rests(const ng_line *line, double h, double slope, const course *c)
{
    static const double agreement = 1 / 32.0, half = 0.54; /* of these at least 15/32 are seen */
    const ng_subject *subject = line->subject;
    const double nothing = c->enough * fmax(fabs(slope), c->scale);
    bool found = false;
    for (int64_t j = 0; j < subject->n_values; j++) {
        ng_check_trail *trail = &subject->trails[j];
        const double newest = (subject->plus[j] - subject->minus[j]) / (2 * h);
        const double rounding = 0x1p12 * DBL_EPSILON * fabs(subject->base[j]) / line->length;
        const double size = fabs(trail->steady), last = trail->slope * copysign(1, trail->steady);
        found = found || (newest == 0 && last > half * size && size > rounding &&
                          fabs(subject->weights[j]) * size > nothing);
        const bool agrees = fabs(newest - trail->slope) <= agreement * fabs(newest);
        trail->agreed = newest != 0 && agrees ? trail->agreed + 1 : 0;
        if (trail->agreed >= 2 && fabs(newest) > size) trail->steady = newest;
        trail->slope = newest;
    }
    return found;
}

/* The size of the one element that moves, or 0. */
static double own_size(const ng_line *line)
{
    const double own = line->direction ? 0 : fabs(line->leaf->origin[line->index]);
    return own > 0 ? power_near(own) : 0;
}

bool ng_line_repeat(const ng_line *line, ng_numeric *numeric, ng_check_report *report)
{
    /* Shares of 2^12, odd ones: on a stair whole steps of it would show none. */
    static const double shares[] = {3709, 3331, 2939, 2557, 2179};
    const int order = numeric->order;
    if (numeric->repeated || !(numeric->step > 0)) return true;
    for (int i = 0; i < 5; i++) {
        double rows[2][LEVELS] = {{0}}, h = ldexp(numeric->step * shares[i], order - 12);
        for (int level = 0; level <= order; level++, h /= 2) {
            contraction change;
            if (!central(line, h, &rows[level % 2][0], &change, report)) return false;
            extrapolate(rows[level % 2], rows[(level + 1) % 2], level);
        }
        double apart = fabs(rows[order % 2][order] - numeric->value);
        if (!(apart <= numeric->error)) numeric->error = isnan(apart) ? HUGE_VAL : apart;
    }
    numeric->repeated = true;
    return true;
}

/* Large steps may agree and yet miss what is narrower than all of them, as a bump is. So the newest
 * row counts as known only where a far smaller step does not contradict it by more than its
 * rounding. */
static bool compare(const ng_line *line, double small, course *c, ng_check_report *report)
{
    ng_numeric *row = &c->rows[c->count - 1];
    double slope;
    contraction change;
    if (!central(line, small, &slope, &change, report)) return false;
    const double rounding = DBL_EPSILON * fmax(change.magnitude, row->magnitude) / small;
    const double apart = fabs(slope - row->value);
    if (!(apart <= 1e-6 * fabs(row->value) + 1e-9 * c->scale + 16 * rounding))
        row->error = isnan(apart) ? HUGE_VAL : fmax(row->error, apart);
    return true;
}

/* Settles the course if the newest row, of the step h, stays good, on the scale too of an element
 * that is tiny beside others. What the first table has not shown may be so by luck, as on a stair.
 */
static bool confirm(const ng_line *line, double h, course *c, ng_check_report *report)
{
    ng_numeric *row = &c->rows[c->count - 1];
    const double far = ldexp(share * line->length, -20), own = ldexp(share * own_size(line), -10);
    if (h <= line->length && h > 16 * far && !compare(line, far, c, report)) return false;
    if (own > 0 && own < far && h > 16 * own && !compare(line, own, c, report)) return false;
    if (good(c, row) && c->count >= LEVELS && !ng_line_repeat(line, row, report)) return false;
    c->settled = good(c, row);
    return true;
}

/* One table, from the step h downwards, to where a row is good enough or nothing moves any more. */
static bool tabulate(const ng_line *line, double h, course *c, ng_check_report *report)
{
    double rows[2][LEVELS], length = fmax(line->length, h), gap = 0;
    h *= share;
    for (int level = 0; level < LEVELS; level++, h /= 2) {
        double *row = rows[level % 2], *previous = rows[(level + 1) % 2];
        contraction change;
        if (!central(line, h, &row[0], &change, report)) return false;
        c->flat = c->moved && !change.moved;
        c->coarse = rests(line, h, row[0], c);
        if (c->flat || c->coarse) break;
        c->moved = change.moved;
        c->slope = row[0];
        double rounding = 2 * DBL_EPSILON * change.magnitude / h, last_gap = gap;
        gap = compare_sides(line->subject, h, -h).gap;
        if (level == 0) continue;
        extrapolate(row, previous, level);
        ng_numeric best = best_of(row, previous, level, rounding);
        best.magnitude = change.magnitude;
        best.length = length;
        best.step = change.moved ? h : 0;
        best.moved = change.moved;
        best.bent = gap > 0.75 * last_gap && gap > 1e3 * rounding;
        c->rows[c->count++] = best;
        if (level < 2 || !good(c, &best)) continue;
        if (!confirm(line, h, c, report)) return false;
        if (c->settled) break;
    }
    return true;
}

/* The row that is known best, or NULL where none is known. Where noise is beyond rounding the rows
 * err by noise / h, and some seem to err less by luck: none errs less than by the noise that
 * smaller steps have shown. A row of few terms shows more than noise. */
static ng_numeric *best_row(course *c)
{
    enum { TERMS = 3 };
    ng_numeric *best = NULL;
    double noise = 0, least = HUGE_VAL;
    for (int i = c->count - 1; i >= 0; i--) {
        ng_numeric *row = &c->rows[i];
        if (row->step > 0) row->error = fmax(row->error, noise / row->step);
        if (row->error < least) least = row->error, best = row;
        const double shown = row->error * row->step;
        if (i % (LEVELS - 1) + 1 >= TERMS && isfinite(shown)) noise = fmax(noise, shown);
    }
    return best;
}

/* The newest row where it is good enough; else the best of those that are as good when they are
 * repeated. */
static bool take_best(const ng_line *line, course *c, ng_numeric *numeric, ng_check_report *report)
{
    ng_numeric *best = c->settled ? &c->rows[c->count - 1] : best_row(c);
    for (int i = 0; i < TRIES && !c->settled && best && !best->repeated; i++) {
        if (!ng_line_repeat(line, best, report)) return false;
        best = best_row(c);
    }
    const ng_numeric unknown = {.value = (double)NAN, .error = HUGE_VAL, .length = 1};
    *numeric = best ? *best : unknown;
    return true;
}

/* Tables from ever smaller steps, until one is good enough: a kink near by, or a function that
 * changes on a much shorter scale than its input has, spoils the first ones. The last is of the
 * element's own size, where that is less than all of them: 1e-9, as beside 1 in a logarithm. */
static bool from_smaller_steps(const ng_line *line, course *c, ng_check_report *report)
{
    double h = ldexp(line->length, -4);
    for (int i = 0; i < TABLES && goes_on(c); i++, h = ldexp(h, 1 - LEVELS)) {
        if (!tabulate(line, h, c, report)) return false;
    }
    const double own = own_size(line);
    if (!goes_on(c) || !(own > 0 && own < ldexp(h, 4))) return true;
    return tabulate(line, ldexp(own, -4), c, report);
}

/* Where x is tiny the outputs may not feel its small steps. */
static bool from_larger_steps(const ng_line *line, const course *smaller, ng_numeric *numeric,
                              ng_check_report *report)
{
    for (double h = 16 * line->length; h < 0.25; h *= 256) {
        course c = begin(line, smaller->scale, smaller->enough);
        if (!tabulate(line, h, &c, report)) return false;
        if (!c.settled || !c.moved) continue;
        return take_best(line, &c, numeric, report);
    }
    return true;
}

/* Outputs that only larger steps move stand beside a kink, where the derivative is 0, or on a stair
 * of coarser rounding than double's, where larger steps agree. */
static void from_steps_that_move(const ng_line *line, const course *c, double expected,
                                 ng_numeric *numeric)
{
    const bool no_slope = fabs(expected) <= DBL_EPSILON * fabs(c->slope);
    const bool agreed = numeric->error <= 1e-3 * fabs(numeric->value);
    const double apart = fabs(numeric->value - expected);
    if (c->coarse || (!no_slope && (agreed || apart <= NG_CHECK_CERTAINTY * numeric->error)))
        return;
    *numeric = (ng_numeric){.error = no_slope ? 0 : fabs(c->slope), .length = line->length};
}

bool ng_line_derivative(const ng_line *line, double step, double expected, double scale,
                        double enough, ng_numeric *numeric, ng_check_report *report)
{
    course c = begin(line, scale, enough);
    bool ok = step > 0 ? tabulate(line, step * line->length, &c, report)
                       : from_smaller_steps(line, &c, report);
    ok = ok && take_best(line, &c, numeric, report);
    if (ok && c.flat)
        from_steps_that_move(line, &c, expected, numeric);
    else if (ok && !c.coarse && !(step > 0) && !(c.settled && (numeric->moved || expected == 0)))
        ok = from_larger_steps(line, &c, numeric, report);
    if (!numeric->moved) numeric->magnitude = whole_magnitude(line->subject);
    numeric->coarse = c.coarse;
    return ok;
}

/* ---- Kinks --------------------------------------------------------------------------------- */

bool ng_line_kink(const ng_line *line, double analytic, const ng_numeric *numeric, bool *kink,
                  ng_check_report *report)
{
    enum { STEPS = 4 };
    sides at[STEPS];
    /* A kink beyond the steps of the numeric derivative is none of this point's. */
    const double first =
        fmin(ldexp(line->length, -14), numeric->step > 0 ? numeric->step : HUGE_VAL);
    *kink = false;
    for (int i = 0; i < STEPS; i++) {
        double up, down, h = ldexp(first, -4 * i);
        if (!values_around(line, h, &up, &down, report)) return false;
        at[i] = compare_sides(line->subject, up, down);
    }
    /* A smooth function's gap shrinks with h, 16-fold from step to step; rounding grows so. A kink
     * keeps its gap; a jump's grows, far above rounding. */
    bool stays = true, grows = !(numeric->error <= 0.1 * fabs(numeric->value));
    for (int i = 1; i < STEPS; i++) {
        double ratio = at[i].gap / at[i - 1].gap;
        stays = stays && ratio > 0.5 && ratio < 2;
        grows = grows && ratio > 8 && ratio < 32;
    }
    const sides *last = &at[STEPS - 1];
    stays = stays && last->gap > 1e3 * last->rounding;
    grows = grows && last->gap > 1e8 * last->rounding;
    double slack = 1e-3 * last->gap;
    bool between = analytic >= last->low - slack && analytic <= last->high + slack;
    *kink = (stays || grows) && between;
    return true;
}

/* ---- Taylor's remainder -------------------------------------------------------------------- */

/* R(h) = sum w (F(h) - F(0)) - h analytic */
typedef struct {
    double value, size, rounding;
} remainder_of;

static bool remainder_at(const ng_line *line, double h, double analytic, remainder_of *found,
                         ng_check_report *report)
{
    ng_subject *subject = line->subject;
    double moved;
    if (!values_at(line, h, &moved, subject->plus, report)) return false;
    contraction change = contract(subject, subject->plus, subject->base);
    found->value = (double)(change.sum - (long double)moved * (long double)analytic);
    found->size = fabs(found->value);
    found->rounding = 8 * DBL_EPSILON * (change.magnitude + fabs(moved * analytic));
    return true;
}

/* How the remainder falls from one step to another, `halvings` below. */
static double exponent_between(double large, double small, int halvings)
{
    return log2(large / small) / halvings;
}

/* At the smallest step whose remainder is well above rounding: the exponent to the next smaller
 * one, and to it from steps 4 to 16 times as large. Of these the largest: terms that cancel at one
 * of the steps feign less. A remainder that falls to rounding at once had crossed a kink, on this
 * side of which the function is a line. What rounding does beyond its bound shows where halving
 * the smallest steps does not halve the remainder. */
bool ng_line_exponent(const ng_line *line, double analytic, double *exponent,
                      ng_check_report *report)
{
    enum { STEPS = 24 };
    remainder_of at[STEPS];
    for (int i = 0; i < STEPS; i++) {
        double h = ldexp(line->length, -2 - i);
        if (!remainder_at(line, h, analytic, &at[i], report)) return false;
    }
    double noise = 0;
    for (int i = STEPS - 4; i < STEPS - 1; i++) noise += fabs(at[i].value - 2 * at[i + 1].value);
    const bool known = isfinite(noise) && isfinite(at[STEPS - 1].rounding);
    *exponent = known ? 0 : (double)NAN;
    if (!known) return true;
    int last = STEPS - 2;
    while (last >= 0 && !(at[last].size > 100 * fmax(noise, at[last].rounding))) last--;
    if (last < 2) return true;

    noise = fmax(noise, at[last].rounding);
    *exponent = exponent_between(at[last].size, fmax(at[last + 1].size, noise), 1);
    for (int i = last - 2; i >= 0 && i >= last - 4; i--) {
        double slope = exponent_between(at[i].size, at[last].size, last - i);
        if (isfinite(slope)) *exponent = fmax(*exponent, slope);
    }
    if (*exponent > 6) *exponent = 0;
    return true;
}
