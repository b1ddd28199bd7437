/* Numeric derivatives along a line, by Richardson extrapolation, with an estimate of their error.
 *
 * Differences are taken output by output before they are summed, so that large outputs that do not
 * move leave no noise. Steps are powers of two times a number of few bits: x + h and x - h are
 * nearly exact, and no step is a whole period of a function such as sin(2 pi 16 x).
 */
#include "check/check.h"
#include <float.h>
#include <math.h>
#include <string.h>

/* ---- Along the line -------------------------------------------------------------------------- */

double ng_line_length(const ng_check_leaf *leaf, int64_t index)
{
    const double size = index < 0 ? leaf->size : fmax(leaf->size, fabs(leaf->origin[index]));
    return size > 0 ? exp2(round(log2(fmin(fmax(size, 0x1p-960), 0x1p1000)))) : 1;
}

/* F at t along the line. Returns t as it was rounded in *moved. */
static bool line_values(const ng_line *line, double t, double *moved, double *values)
{
    ng_tensor *tensor = line->leaf->tensor;
    double *x = tensor->data;
    const double *origin = line->leaf->origin;
    *moved = t;
    if (line->direction) {
        for (int64_t i = 0; i < tensor->size; i++) x[i] = origin[i] + t * line->direction[i];
    } else {
        x[line->index] = origin[line->index] + t;
        *moved = x[line->index] - origin[line->index];
    }
    const bool ok = ng_subject_evaluate(line->subject, values, NULL);
    memcpy(x, origin, (size_t)tensor->size * sizeof *x);
    return ok;
}

bool ng_line_sides(const ng_line *line, double h, ng_sides *sides)
{
    const ng_subject *subject = line->subject;
    const double *base = subject->base, *plus = subject->plus, *minus = subject->minus;
    double up, down;
    if (!line_values(line, h, &up, subject->plus) || !line_values(line, -h, &down, subject->minus))
        return false;
    *sides = (ng_sides){0};
    long double sum = 0;
    bool right_moves = false, left_moves = false;
    for (int64_t j = 0; j < subject->n_values; j++) {
        const double weight = subject->weights[j];
        const double right = weight * (plus[j] - base[j]) / up;
        const double left = weight * (minus[j] - base[j]) / down;
        sum += (long double)weight * ((long double)plus[j] - (long double)minus[j]);
        if (plus[j] != minus[j] || plus[j] != base[j])
            sides->magnitude += fabs(weight) * fmax(fabs(plus[j]), fabs(minus[j]));
        sides->moved = sides->moved || plus[j] != minus[j];
        sides->gap += fabs(right - left);
        sides->low += fmin(left, right);
        sides->high += fmax(left, right);
        if (right != left) sides->rounding += DBL_EPSILON * fabs(weight * base[j]) / up;
        right_moves = right_moves || right != 0;
        left_moves = left_moves || left != 0;
    }
    sides->slope = (double)(sum / ((long double)up - (long double)down));
    sides->both = right_moves && left_moves;
    return true;
}

/* ---- Refinement ------------------------------------------------------------------------------ */

/* The estimates of ever smaller steps. */
typedef struct {
    ng_estimate rows[CHECK_STEPS];
    int count;
    bool good;    /* the newest is good enough */
    double still; /* the step at which the outputs do not move and had before; 0: none */
    bool both;    /* they have moved on both sides at one step */
} refinement;

/* row[k] = (4^k row[k-1] - previous[k-1]) / (4^k - 1) has no term h^2k; returns the one that is
 * nearest to what it was made of, and that distance as its error. */
static ng_estimate extrapolate(double *row, const double *previous, int level)
{
    ng_estimate best = {.value = (double)NAN, .error = HUGE_VAL};
    double factor = 4;
    for (int k = 1; k <= level && k <= CHECK_POWERS; k++, factor *= 4) {
        row[k] = (factor * row[k - 1] - previous[k - 1]) / (factor - 1);
        const double error = fmax(fabs(row[k] - row[k - 1]), fabs(row[k] - previous[k - 1]));
        if (!(error < best.error)) continue;
        best.value = row[k];
        best.error = error;
    }
    return best;
}

static bool refine(const ng_line *line, double h, double scale, double enough, refinement *r)
{
    double table[2][CHECK_POWERS + 1], last_gap = 0;
    for (int i = 0; i < CHECK_STEPS && !r->good; i++, h /= 2) {
        double *row = table[i % 2];
        ng_sides sides;
        if (!ng_line_sides(line, h, &sides)) return false;
        row[0] = sides.slope;
        if (r->count > 0 && r->rows[r->count - 1].step > 0 && !sides.moved) {
            r->still = h;
            return true;
        }
        r->both = r->both || sides.both;
        if (i > 0) {
            const double rounding = 2 * DBL_EPSILON * sides.magnitude / h;
            ng_estimate *best = &r->rows[r->count++];
            *best = extrapolate(row, table[(i + 1) % 2], i);
            best->error += rounding;
            best->magnitude = sides.magnitude;
            best->step = sides.moved ? h : 0;
            best->bent = sides.gap > 0.75 * last_gap && sides.gap > CHECK_KINK * rounding;
            r->good = i >= 2 && best->error <= enough * fmax(fabs(best->value), scale);
        }
        last_gap = sides.gap;
    }
    return true;
}

/* The estimate with the smallest error. Noise of the function is an error of noise / step. By
 * chance some estimates show less, so the error is at least what the noise at smaller steps
 * gives. */
static ng_estimate best_estimate(const refinement *r)
{
    ng_estimate best = {.value = (double)NAN, .error = HUGE_VAL};
    double noise = 0;
    for (int i = r->count - 1; i >= 0; i--) {
        ng_estimate row = r->rows[i];
        const double shown = row.error * row.step;
        if (row.step > 0) row.error = fmax(row.error, noise / row.step);
        if (row.error < best.error) best = row;
        if (i >= 2 && isfinite(shown)) noise = fmax(noise, shown);
    }
    return best;
}

bool ng_line_estimate(const ng_line *line, double factor, double scale, double enough,
                      ng_estimate *estimate)
{
    const ng_subject *subject = line->subject;
    const double step = subject->options->step, h = step > 0 ? step : CHECK_FIRST_STEP;
    refinement r = {0};
    if (!refine(line, factor * h * line->length, scale, enough, &r)) return false;
    *estimate = r.good ? r.rows[r.count - 1] : best_estimate(&r);
    /* Outputs that stand still at small steps: a derivative of 0 beside a kink, which moves them on
     * one side only; or arithmetic coarser than double, where larger steps agree on a slope. */
    const bool coarse = r.both && estimate->error <= 1e-3 * fabs(estimate->value);
    if (r.still > 0 && !coarse)
        *estimate = (ng_estimate){.error = DBL_EPSILON * r.rows[r.count - 1].magnitude / r.still};
    estimate->length = line->length;
    if (line->length < CHECK_TINY && !(estimate->step > 0 && r.good)) {
        ng_line wide = *line;
        ng_estimate other;
        wide.length = CHECK_TINY;
        if (!ng_line_estimate(&wide, factor, scale, enough, &other)) return false;
        if (estimate->step == 0 || other.error < estimate->error) *estimate = other;
        return true;
    }
    if (estimate->step > 0) return true;
    estimate->magnitude = 0;
    for (int64_t j = 0; j < subject->n_values; j++)
        estimate->magnitude += fabs(subject->weights[j] * subject->base[j]);
    return true;
}
