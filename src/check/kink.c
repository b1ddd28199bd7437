/* Kinks and jumps: points at which the slopes of the two sides differ. */
#include "check/check.h"
#include <math.h>

/* From step to step, each 1/16 of the one before, the gap between the slopes becomes 16 times
 * smaller if the function is smooth. At a kink it stays; at a jump it becomes 16 times larger, as
 * rounding does, but far above rounding. No jump is assumed where the larger steps know the
 * derivative to a tenth. */
bool ng_line_kink(const ng_line *line, double analytic, const ng_estimate *estimate, bool *kink)
{
    enum { STEPS = 4 };
    ng_sides sides[STEPS];
    /* A kink beyond the steps of the numeric derivative is not at this point. */
    const double first =
        fmin(ldexp(estimate->length, -14), estimate->step > 0 ? estimate->step : HUGE_VAL);
    bool stays = true, grows = !(estimate->error <= 0.1 * fabs(estimate->value));
    for (int i = 0; i < STEPS; i++) {
        if (!ng_line_sides(line, ldexp(first, -4 * i), &sides[i])) return false;
        const double ratio = i > 0 ? sides[i].gap / sides[i - 1].gap : 0;
        stays = stays && (i == 0 || (ratio > 0.5 && ratio < 2));
        grows = grows && (i == 0 || (ratio > 8 && ratio < 32));
    }
    const ng_sides *last = &sides[STEPS - 1];
    stays = stays && last->gap > CHECK_KINK * last->rounding;
    grows = grows && last->gap > CHECK_JUMP * last->rounding;
    const double slack = CHECK_OUTSIDE * last->gap;
    *kink = (stays || grows) && analytic >= last->low - slack && analytic <= last->high + slack;
    return true;
}
