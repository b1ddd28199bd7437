/* The check: its passes, its settings, and its call for a function. */
#include "check/check.h"
#include "core/error.h"
#include <math.h>

/* The passes in their order, and the orders at which each is made. One that fails says why in the
 * report, and ends the check. */
static const struct {
    int first, last;
    bool (*pass)(ng_subject *subject);
} passes[] = {
    {1, 1, ng_check_independent},      /* no row depends on others, where that is promised */
    {1, 4, ng_check_repeats},          /* another run gives the same bits */
    {1, 1, ng_check_unrecorded},       /* and one in which nothing is recorded */
    {1, 1, ng_check_detached},         /* the detached values that the result depends on */
    {2, 4, ng_check_recorded},         /* the gradient is the same where it is recorded */
    {1, 4, ng_check_derivatives},      /* each one against finite differences */
    {1, 4, ng_check_linear},           /* a cotangent times a number gives the gradient times it */
    {1, 4, ng_check_gradient_repeats}, /* the gradient has the same bits after all these runs */
    {1, 2, ng_check_alone},            /* each input's is the same where it is asked for alone */
};

static bool make_passes(ng_subject *subject)
{
    for (int order = 1; order <= subject->orders; order++) {
        if (!ng_subject_begin(subject, order)) return false;
        for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
            if (order >= passes[i].first && order <= passes[i].last && !passes[i].pass(subject))
                return false;
    }
    return true;
}

/* Failures on the way are in the report and not on record, except a lack of memory. */
static void check_subject(ng_subject *subject)
{
    const ng_error_record earlier = ng_error_take();
    subject->report->passed = make_passes(subject);
    if (!subject->report->passed) ng_check_explain(subject);
    if (ng_error_status() != NG_ENOMEM) ng_clear_error();
    ng_error_restore(&earlier);
}

ng_check_report ng_check_once(const ng_checked *what, const ng_check_options *options,
                              bool *refused)
{
    ng_check_report report = {.order = 1, .mode = options->mode};
    ng_subject subject = {0};
    if (what->module ? ng_module_open(&subject, what->module, options, &report)
                     : ng_subject_open(&subject, what->call, options->context, options, 0, &report))
        check_subject(&subject);
    *refused = subject.refused;
    ng_subject_close(&subject);
    return report;
}

ng_check_report ng_check(const ng_checked *what, const ng_check_options *options)
{
    bool refused;
    ng_check_report report = ng_check_once(what, options, &refused);
    if (report.passed && options->shapes) ng_check_shapes(what, *options, &report);
    return report;
}

ng_check_report ng_check_report_new(const ng_check_options *options)
{
    ng_check_report report = {.order = 1, .mode = options->mode};
    const int order = options->order, mode = (int)options->mode, lines = options->directions;
    const double tolerance = options->tolerance, step = options->step;
    if (order < 0 || order > 4)
        ng_check_say(&report, "order %d was asked for: it is 1 to 4", order);
    else if (mode < NG_CHECK_ELEMENTS || mode > NG_CHECK_FAST)
        ng_check_say(&report, "mode %d was asked for: it is an ng_check_mode", mode);
    else if (mode == NG_CHECK_ELEMENTS && order < CHECK_IN_DIRECTIONS && lines != 0)
        ng_check_say(&report, "%d directions were asked for: elements have none", lines);
    else if (lines < 0)
        ng_check_say(&report, "%d directions were asked for", lines);
    else if (options->independent < 0)
        ng_check_say(&report, "%d dimensions of independent rows were asked for",
                     options->independent);
    else if (options->causal && options->independent == 0)
        ng_check_say(&report, ".causal is set: it needs .independent, the dimensions of the rows");
    else if (!(tolerance >= 0 && tolerance < 1))
        ng_check_say(&report, "the tolerance is %g: it is between 0 and 1", tolerance);
    else if (!(step >= 0 && step <= 1) || (step == 0 && ng_option_given(step)))
        ng_check_say(&report, "the step is %g: it is between 0 and 1", step + 0);
    return report;
}

ng_check_report ng_check_function_with(ng_check_call *call, ng_check_options options)
{
    const ng_check_report report = ng_check_report_new(&options);
    return report.message[0] ? report : ng_check(&(ng_checked){.call = call}, &options);
}
