/* The error of plain central differences, for the figure that shows why the step matters. */
#include "check/check.h"
#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int64_t count)
{
    if (count == 0) return (double)NAN;
    qsort(values, (size_t)count, sizeof *values, ascending);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

/* The median relative error over all elements of all leaves, of differences of relative step h. */
static bool median_error(ng_subject *subject, double h, double *errors, double *result,
                         ng_check_report *report)
{
    int64_t count = 0;
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        for (int64_t e = 0; e < leaf->tensor->size; e++) {
            double slope, analytic = subject->analytic[leaf->offset + e];
            ng_line line = {.subject = subject, .leaf = leaf, .index = e};
            line.length = ng_line_length(leaf, NULL, e);
            if (analytic == 0) continue;
            if (!ng_line_difference(&line, h * line.length, &slope, report)) return false;
            double error = fabs(slope - analytic) / fabs(analytic);
            errors[count++] = isnan(error) ? HUGE_VAL : error;
        }
    }
    *result = median(errors, count);
    return true;
}

static bool sweep(ng_subject *subject, const ng_check_options *options, const double *steps,
                  double *errors, int count, ng_check_report *report)
{
    if (!ng_subject_begin(subject, options, report) ||
        !ng_subject_find_held(subject, options, report) ||
        (options->order == 2 && !ng_subject_raise(subject, options, report))) {
        return false;
    }
    double *each = ng_calloc("ng_check_sweep", subject->n_gradient + 1, sizeof *each);
    bool ok = each || ng_check_say(report, "%s", ng_check_reason());
    for (int i = 0; i < count && ok; i++) {
        ok = median_error(subject, steps[i], each, &errors[i], report);
    }
    ng_free(each);
    return ok;
}

ng_status ng_check_sweep(ng_check_call *call, ng_check_options options, const double *steps,
                         double *errors, int count)
{
    ng_check_report report = ng_check_report_new(&options);
    ng_subject subject = {0};
    if (!ng_given("ng_check_sweep", "call", call) || !ng_given("ng_check_sweep", "steps", steps) ||
        !ng_given("ng_check_sweep", "errors", errors))
        return ng_newest_status();
    if (!report.message[0] && (options.mode != NG_CHECK_ELEMENTS || options.step > 0 ||
                               ng_option_given(options.tolerance))) {
        ng_check_say(&report, "a mode, a tolerance or a step is set: a sweep takes every element, "
                              "and `steps`");
    }
    bool ok = !report.message[0] &&
              ng_subject_open(&subject, call, options.context, &options, 0, 0, &report);
    const ng_error_record earlier = ng_error_put_aside();
    ok = ok && sweep(&subject, &options, steps, errors, count, &report);
    ng_error_put_back(&earlier);
    ng_subject_close(&subject);
    if (ok) return NG_OK;
    return ng_fail(NG_EVALUE, "ng_check_sweep: %s", report.message);
}
