/* The error of plain central differences, for the figure that shows why the step matters. */
#include "check/check.h"
#include "core/error.h"
#include <math.h>
#include <stdlib.h>

static int sweep_ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median relative error of differences of relative step h, over all elements of all leaves. */
static bool sweep_median_error(ng_subject *subject, double h, double *errors, double *median)
{
    int64_t count = 0;
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        for (int64_t e = 0; e < leaf->tensor->size; e++) {
            const double analytic = subject->analytic[leaf->offset + e];
            const double length = ng_line_length(leaf, e);
            const ng_line line = {.subject = subject, .leaf = leaf, .index = e, .length = length};
            ng_sides sides;
            if (analytic == 0) continue;
            if (!ng_line_sides(&line, h * length, &sides)) return false;
            const double error = fabs(sides.slope - analytic) / fabs(analytic);
            errors[count++] = isnan(error) ? HUGE_VAL : error;
        }
    }
    qsort(errors, (size_t)count, sizeof *errors, sweep_ascending);
    *median = count > 0 ? (errors[(count - 1) / 2] + errors[count / 2]) / 2 : (double)NAN;
    return true;
}

static bool sweep_steps(ng_subject *subject, const double *steps, double *errors, int count)
{
    if (!ng_subject_begin(subject) || !ng_subject_find_detached(subject) ||
        (subject->options->order == 2 && !ng_subject_raise(subject)))
        return false;
    bool ok = true;
    for (int i = 0; i < count && ok; i++)
        ok = sweep_median_error(subject, steps[i], subject->other, &errors[i]);
    return ok;
}

/* Of two failures the record keeps the first: the function's own, unless there was one before. */
ng_status ng_check_sweep_with(ng_check_call *call, const double *steps, double *errors, int count,
                              ng_check_options options)
{
    static const char function[] = "ng_check_sweep";
    ng_check_report report = ng_check_report_new(&options);
    ng_subject subject = {0};
    if (!ng_given(function, "call", call) || !ng_given(function, "steps", steps) ||
        !ng_given(function, "errors", errors))
        return ng_newest_status();
    if (options.mode != NG_CHECK_ELEMENTS || options.step != 0 ||
        ng_option_given(options.tolerance))
        ng_check_say(&report,
                     "a mode, a tolerance or a step is set: a sweep takes every element, and "
                     "`steps`");
    bool ok = !report.message[0] &&
              ng_subject_open(&subject, call, options.context, &options, 0, &report);
    const ng_error_record earlier = ng_error_take();
    ok = ok && sweep_steps(&subject, steps, errors, count);
    if (ok) ng_clear_error();
    ng_error_restore(&earlier);
    ng_subject_close(&subject);
    return ok ? NG_OK : ng_fail(NG_EVALUE, "%s: %s", function, report.message);
}
