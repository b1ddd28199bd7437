/* Numeric derivatives of sum_j w_j F_j along a line through the base point.
 *
 *     D(h) = sum_j w_j (F_j(h) - F_j(-h)) / 2h = slope + c1 h^2 + c2 h^4 + ...
 *
 * Differences are taken output by output before they are summed, so that large outputs that did
 * not move leave no noise, and summed in long double. Steps are powers of two: x + h and x - h
 * are exact but for a change of binade.
 */
#include "check/check.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Along the line ------------------------------------------------------------------------ */

double ng_line_length(const ng_check_leaf *leaf, int64_t index)
{
    double sum = 0;
    for (int64_t i = 0; i < leaf->tensor->size; i++) sum += leaf->origin[i] * leaf->origin[i];
    double size = sqrt(sum / (double)leaf->tensor->size);
    if (index >= 0) size = fmax(size, fabs(leaf->origin[index]));
    return size > 0 && isfinite(size) ? exp2(round(log2(size))) : 1;
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

enum { LEVELS = 6 };

static const ng_numeric unknown = {.value = (double)NAN, .error = HUGE_VAL, .length = 1};

/* row[k] = (4^k row[k-1] - previous[k-1]) / (4^k - 1) takes the term h^2k away; how far row[k] is
 * from what it was made of estimates its error (Ridders 1982). */
static void extrapolate(double *row, const double *previous, int level, double rounding,
                        ng_numeric *best)
{
    double factor = 4;
    for (int k = 1; k <= level; k++, factor *= 4) {
        row[k] = (factor * row[k - 1] - previous[k - 1]) / (factor - 1);
        double error = fmax(fabs(row[k] - row[k - 1]), fabs(row[k] - previous[k - 1])) + rounding;
        if (!(error < best->error)) continue;
        best->value = row[k];
        best->error = error;
    }
}

static bool good(const ng_numeric *numeric, double scale, double enough)
{
    return numeric->error <= enough * fmax(fabs(numeric->value), scale);
}

/* One table, from the step h downwards. */
static bool tabulate(const ng_line *line, double h, double scale, double enough, ng_numeric *best,
                     ng_check_report *report)
{
    double rows[2][LEVELS], length = fmax(line->length, h), gap = 0;
    for (int level = 0; level < LEVELS; level++, h /= 2) {
        double *row = rows[level % 2];
        contraction change;
        if (!central(line, h, &row[0], &change, report)) return false;
        double rounding = 2 * DBL_EPSILON * change.magnitude / h;
        double error = best->error, last_gap = gap;
        gap = compare_sides(line->subject, h, -h).gap;
        extrapolate(row, rows[(level + 1) % 2], level, rounding, best);
        if (best->error < error) {
            best->magnitude = change.magnitude;
            best->length = length;
            best->moved = change.moved;
            best->bent = gap > 0.75 * last_gap && gap > 1e3 * rounding;
        }
        if (level >= 2 && good(best, scale, enough)) break;
    }
    return true;
}

/* Tables from ever smaller steps, until one is good enough: a kink near by, or a function that
 * changes on a much shorter scale than its input has, spoils the first ones. */
static bool from_smaller_steps(const ng_line *line, double scale, double enough,
                               ng_numeric *numeric, ng_check_report *report)
{
    for (int exponent = -4; exponent >= -24; exponent -= 5) {
        double h = ldexp(line->length, exponent);
        if (!tabulate(line, h, scale, enough, numeric, report)) return false;
        if (good(numeric, scale, enough)) break;
    }
    return true;
}

/* Where x is tiny the outputs may not feel its small steps. */
static bool from_larger_steps(const ng_line *line, double scale, double enough, ng_numeric *numeric,
                              ng_check_report *report)
{
    for (double h = 16 * line->length; h < 0.25; h *= 256) {
        ng_numeric larger = unknown;
        if (!tabulate(line, h, scale, enough, &larger, report)) return false;
        if (!larger.moved || !good(&larger, scale, enough)) continue;
        *numeric = larger;
        break;
    }
    return true;
}

bool ng_line_derivative(const ng_line *line, double step, double expected, double scale,
                        double enough, ng_numeric *numeric, ng_check_report *report)
{
    *numeric = unknown;
    bool ok;
    if (step > 0) {
        ok = tabulate(line, step * line->length, scale, enough, numeric, report);
    } else {
        ok = from_smaller_steps(line, scale, enough, numeric, report);
        bool settled = good(numeric, scale, enough) && (numeric->moved || expected == 0);
        if (ok && !settled) ok = from_larger_steps(line, scale, enough, numeric, report);
    }
    if (!numeric->moved) numeric->magnitude = whole_magnitude(line->subject);
    return ok;
}

/* ---- Kinks --------------------------------------------------------------------------------- */

bool ng_line_kink(const ng_line *line, double analytic, bool *kink, ng_check_report *report)
{
    enum { STEPS = 4 };
    sides at[STEPS];
    *kink = false;
    for (int i = 0; i < STEPS; i++) {
        double up, down, h = ldexp(line->length, -14 - 4 * i);
        if (!values_around(line, h, &up, &down, report)) return false;
        at[i] = compare_sides(line->subject, up, down);
    }
    /* A smooth function's gap shrinks with h, 16-fold from step to step; rounding grows so. A kink
     * keeps its gap; a jump's grows, far above rounding. */
    bool stays = true, grows = true;
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
    *exponent = isfinite(noise) ? 0 : (double)NAN;
    if (!isfinite(noise)) return true;
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
