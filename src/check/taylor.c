/* Taylor's remainder R(h) = sum w (F(h) - F(0)) - h analytic, which falls as h^2 where the gradient
 * is right and as h where it is wrong. */
#include "check/check.h"
#include <float.h>
#include <math.h>

enum { TAYLOR_STEPS = 24 };

typedef struct {
    double value, rounding;
} taylor_remainder;

static bool taylor_at(const ng_line *line, double h, double analytic, taylor_remainder *found,
                      ng_check_report *report)
{
    ng_subject *subject = line->subject;
    double moved;
    if (!ng_line_values(line, h, &moved, subject->plus, report)) return false;
    const ng_contraction change = ng_contract(subject, subject->plus, subject->base);
    found->value = (double)(change.sum - (long double)moved * (long double)analytic);
    found->rounding = 8 * DBL_EPSILON * (change.magnitude + fabs(moved * analytic));
    return true;
}

/* What rounding does beyond its bound: halving the smallest steps does not halve the remainder. */
static double taylor_noise(const taylor_remainder *at)
{
    double noise = 0;
    for (int i = TAYLOR_STEPS - 4; i < TAYLOR_STEPS - 1; i++)
        noise += fabs(at[i].value - 2 * at[i + 1].value);
    return noise;
}

/* Taken at the smallest step whose remainder is well above rounding: from it to the next smaller
 * one, and to it from steps 4 to 16 times as large. The largest counts, since terms that cancel at
 * one of the steps make it smaller. A remainder that falls to rounding at once had crossed a kink,
 * on this side of which the function is a line. */
bool ng_line_exponent(const ng_line *line, double analytic, double *exponent,
                      ng_check_report *report)
{
    taylor_remainder at[TAYLOR_STEPS];
    for (int i = 0; i < TAYLOR_STEPS; i++)
        if (!taylor_at(line, ldexp(line->length, -2 - i), analytic, &at[i], report)) return false;
    double noise = taylor_noise(at);
    const bool known = isfinite(noise) && isfinite(at[TAYLOR_STEPS - 1].rounding);
    *exponent = known ? 0 : (double)NAN;
    int last = known ? TAYLOR_STEPS - 2 : -1;
    while (last >= 0 && !(fabs(at[last].value) > 100 * fmax(noise, at[last].rounding))) last--;
    if (last < 2) return true;

    const double size = fabs(at[last].value);
    noise = fmax(noise, at[last].rounding);
    *exponent = log2(size / fmax(fabs(at[last + 1].value), noise));
    for (int i = last - 2; i >= 0 && i >= last - 4; i--) {
        const double larger = log2(fabs(at[i].value) / size) / (last - i);
        if (isfinite(larger)) *exponent = fmax(*exponent, larger);
    }
    if (*exponent > 6) *exponent = 0;
    return true;
}
