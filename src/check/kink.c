/* Kinks and jumps: points where the slopes of the two sides differ. */
#include "check/check.h"
#include <math.h>

/* The gap between the slopes shrinks with h where the function is smooth, 16-fold from step to
 * step, and rounding grows so. At a kink it stays; at a jump it grows, far above rounding. A jump
 * that the larger steps do not see, where the numeric derivative is known to a tenth, is none. */
bool ng_line_kink(const ng_line *line, double analytic, const ng_estimate *estimate, bool *kink,
                  ng_check_report *report)
{
    enum { STEPS = 4 };
    ng_sides at[STEPS];
    /* A kink beyond the steps of the numeric derivative is not at this point. */
    const double first =
        fmin(ldexp(line->length, -14), estimate->step > 0 ? estimate->step : HUGE_VAL);
    for (int i = 0; i < STEPS; i++) {
        ng_contraction change;
        double slope;
        if (!ng_line_sides(line, ldexp(first, -4 * i), &change, &slope, &at[i], report))
            return false;
    }
    bool stays = true, grows = !(estimate->error <= 0.1 * fabs(estimate->value));
    for (int i = 1; i < STEPS; i++) {
        const double ratio = at[i].gap / at[i - 1].gap;
        stays = stays && ratio > 0.5 && ratio < 2;
        grows = grows && ratio > 8 && ratio < 32;
    }
    const ng_sides *last = &at[STEPS - 1];
    stays = stays && last->gap > 1e3 * last->rounding;
    grows = grows && last->gap > 1e8 * last->rounding;
    const double slack = 1e-3 * last->gap;
    const bool between = analytic >= last->low - slack && analytic <= last->high + slack;
    *kink = (stays || grows) && between;
    return true;
}
