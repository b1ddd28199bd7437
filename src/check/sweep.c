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

static double sweep_median(double *values, int64_t count)
{
    if (count == 0) return (double)NAN;
    qsort(values, (size_t)count, sizeof *values, sweep_ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The median relative error over all elements of all leaves, of differences of relative step h. */
static bool sweep_median_error(ng_subject *subject, double h, double *errors, double *result,
                               ng_check_report *report)
{
    int64_t count = 0;
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        for (int64_t e = 0; e < leaf->tensor->size; e++) {
            double slope, analytic = subject->analytic[leaf->offset + e];
            ng_line line = {.subject = subject, .leaf = leaf, .index = e};
            line.length = ng_line_length(leaf, e);
            if (analytic == 0) continue;
            if (!ng_line_difference(&line, h * line.length, &slope, report)) return false;
            double error = fabs(slope - analytic) / fabs(analytic);
            errors[count++] = isnan(error) ? HUGE_VAL : error;
        }
    }
    *result = sweep_median(errors, count);
    return true;
}

static bool sweep_steps(ng_subject *subject, const double *steps, double *errors, int count,
                        ng_check_report *report)
{
    if (!ng_subject_begin(subject, report) || !ng_subject_find_detached(subject, report) ||
        (subject->options->order == 2 && !ng_subject_raise(subject, report)))
        return false;
    double *each = ng_calloc("ng_check_sweep", subject->n_gradient + 1, sizeof *each);
    bool ok = each || ng_check_say(report, "%s", ng_check_reason());
    for (int i = 0; i < count && ok; i++)
        ok = sweep_median_error(subject, steps[i], each, &errors[i], report);
    ng_free(each);
    return ok;
}

static bool sweep_has_meaning(const ng_check_options *options, ng_check_report *report)
{
    const bool idle = options->mode == NG_CHECK_ELEMENTS && options->step == 0 &&
                      !ng_option_given(options->tolerance);
    return !report->message[0] &&
           (idle || ng_check_say(report, "a mode, a tolerance or a step is set: a sweep takes "
                                         "every element, and `steps`"));
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
    bool ok = sweep_has_meaning(&options, &report) &&
              ng_subject_open(&subject, call, options.context, &options, 0, 0, &report);
    const ng_error_record earlier = ng_error_take();
    ok = ok && sweep_steps(&subject, steps, errors, count, &report);
    if (ok) ng_clear_error();
    ng_error_restore(&earlier);
    ng_subject_close(&subject);
    return ok ? NG_OK : ng_fail(NG_EVALUE, "%s: %s", function, report.message);
}
