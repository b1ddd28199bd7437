/* Learning-rate schedules: the factor of the base rate at each step. */
#include "optim/optimizer.h"
#include <math.h>

bool ng_schedule_accepted(const char *function, const ng_schedule *schedule)
{
    if ((unsigned)schedule->kind > NG_SCHEDULE_LINEAR) {
        ng_fail(NG_EVALUE, "%s: schedule.kind is %d, expected an ng_schedule_kind", function,
                (int)schedule->kind);
        return false;
    }
    if (schedule->warmup < 0) {
        ng_fail(NG_EVALUE, "%s: schedule.warmup is %lld, expected at least 0 steps", function,
                (long long)schedule->warmup);
        return false;
    }
    const double infinity = HUGE_VAL;
    if (!ng_option_range(function, "schedule.factor", schedule->factor, 0, infinity)) return false;
    if (!ng_option_range(function, "schedule.floor", schedule->floor, 0, infinity)) return false;
    const bool stairs = schedule->kind == NG_SCHEDULE_STEP;
    const bool ramp = schedule->kind == NG_SCHEDULE_COSINE || schedule->kind == NG_SCHEDULE_LINEAR;
    const bool factor = ng_option_given(schedule->factor);
    const char *of_stairs = "with NG_SCHEDULE_STEP",
               *of_ramps = "with NG_SCHEDULE_COSINE or _LINEAR";
    if (!ng_option_idle(function, "schedule.every", !stairs && schedule->every, of_stairs) ||
        !ng_option_idle(function, "schedule.factor", !stairs && factor, of_stairs) ||
        !ng_option_idle(function, "schedule.steps", !ramp && schedule->steps, of_ramps) ||
        !ng_option_idle(function, "schedule.floor", !ramp && schedule->floor != 0, of_ramps))
        return false;
    return stairs
               ? ng_option_positive(function, "schedule.every", schedule->every, "steps")
               : !ramp || ng_option_positive(function, "schedule.steps", schedule->steps, "steps");
}

static double cosine(double floor_factor, double progress)
{
    const double pi = 3.14159265358979323846;
    return floor_factor + (1 - floor_factor) * (1 + ng_cosine(pi * progress)) / 2;
}

/* The factor `step` steps after the warm-up. */
static double factor_after(const ng_schedule *schedule, int64_t step)
{
    switch (schedule->kind) {
    case NG_SCHEDULE_CONSTANT: return 1;
    case NG_SCHEDULE_STEP:
        return ng_power(ng_option(schedule->factor, 0.1), (double)(step / schedule->every));
    case NG_SCHEDULE_COSINE:
    case NG_SCHEDULE_LINEAR: break;
    }
    if (step >= schedule->steps) return schedule->floor;
    const double progress = (double)step / (double)schedule->steps;
    if (schedule->kind == NG_SCHEDULE_COSINE) return cosine(schedule->floor, progress);
    return 1 - (1 - schedule->floor) * progress;
}

double ng_schedule_factor(const ng_schedule *schedule, int64_t step)
{
    if (!ng_given("ng_schedule_factor", "schedule", schedule) ||
        !ng_schedule_accepted("ng_schedule_factor", schedule))
        return (double)NAN;
    if (step < 0) {
        ng_fail(NG_EVALUE, "ng_schedule_factor: step is %lld, expected at least 0",
                (long long)step);
        return (double)NAN;
    }
    if (step < schedule->warmup) return (double)(step + 1) / (double)schedule->warmup;
    return factor_after(schedule, step - schedule->warmup);
}
