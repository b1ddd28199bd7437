/* Taylor's remainder R(h) = sum w (F(h) - F(0)) - h analytic, which falls as h^2 if the gradient is
 * right and as h if it is wrong. */
#include "check/check.h"
#include <float.h>
#include <math.h>

enum { TAYLOR_STEPS = 24 };

/* Taken at the smallest step whose remainder is well above rounding: from it to the next smaller
 * one, and to it from steps 4 to 16 times as large. The largest counts, since terms that cancel at
 * one of the steps make it smaller. A remainder that falls to rounding at once had crossed a kink,
 * on this side of which the function is a line. */
bool ng_line_exponent(const ng_line *line, double analytic, double *exponent)
{
    double remainder[TAYLOR_STEPS], rounding[TAYLOR_STEPS], noise = 0;
    for (int i = 0; i < TAYLOR_STEPS; i++) {
        ng_sides sides;
        if (!ng_line_sides(line, ldexp(line->length, -2 - i), &sides)) return false;
        remainder[i] = (double)(sides.right - sides.step * (long double)analytic);
        rounding[i] = 8 * DBL_EPSILON * (sides.magnitude + fabs((double)sides.step * analytic));
    }
    /* Rounding beyond its bound: halving the smallest steps does not halve the remainder. */
    for (int i = TAYLOR_STEPS - 4; i < TAYLOR_STEPS - 1; i++)
        noise += fabs(remainder[i] - 2 * remainder[i + 1]);
    const bool known = isfinite(noise) && isfinite(rounding[TAYLOR_STEPS - 1]);
    *exponent = known ? 0 : (double)NAN;
    int last = known ? TAYLOR_STEPS - 2 : -1;
    while (last >= 0 && !(fabs(remainder[last]) > 100 * fmax(noise, rounding[last]))) last--;
    if (last < 2) return true;

    const double size = fabs(remainder[last]);
    *exponent = log2(size / fmax(fabs(remainder[last + 1]), fmax(noise, rounding[last])));
    for (int i = last - 2; i >= 0 && i >= last - 4; i--) {
        const double larger = log2(fabs(remainder[i]) / size) / (last - i);
        if (isfinite(larger)) *exponent = fmax(*exponent, larger);
    }
    if (*exponent > 6) *exponent = 0;
    return true;
}
