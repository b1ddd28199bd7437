/* Float32 against float64, for functions with an op of the user's own.
 *
 * Everything else in the check runs in double and would never see the float kernels of such an op.
 * Both runs start from inputs rounded to float32. They agree if values and gradients differ by less
 * than a share of the largest.
 */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>

typedef struct {
    ng_swapped *list;
    int count;
    ng_dtype dtype;
} float32_swaps;

/* Rounds a tensor to float32 and gives it the dtype, once. */
static bool float32_swap(float32_swaps *swaps, ng_tensor *x)
{
    if (x->dtype != NG_F64) return true;
    for (int i = 0; i < swaps->count; i++)
        if (swaps->list[i].tensor == x) return true;
    return ng_swap_dtype(&swaps->list[swaps->count++], x, NG_F32, swaps->dtype);
}

/* Values and gradient from rounded inputs in a dtype, on a tape of its own, which leaves running
 * statistics as they are. A failure goes into the report's `not_in_float32`. */
static bool float32_evaluate(const ng_subject *subject, float32_swaps swaps, double *values,
                             double *gradient)
{
    ng_check_report failure = {0};
    ng_subject run = *subject;
    run.report = &failure;
    run.dtype = swaps.dtype;
    run.n_tensors = run.n_leaves;
    run.tape = ng_tape_new();
    bool ok = run.tape && float32_swap(&swaps, run.cotangent);
    for (int i = 0; i < run.n_arguments && ok; i++) ok = float32_swap(&swaps, run.arguments[i]);
    for (int i = 0; i < subject->n_tensors && ok; i++)
        ok = float32_swap(&swaps, run.leaves[i].tensor);
    if (!ok) ng_check_stop(&failure);
    if (ok) {
        ng_tape_seed(run.tape, run.options->seed);
        ng_tape_set_mode(run.tape, NG_TAPE_REMEMBER);
        ok = ng_subject_evaluate(&run, values, gradient);
    }
    while (swaps.count > 0) ng_swap_back(&swaps.list[--swaps.count]);
    ng_tape_free(run.tape);
    if (!ok)
        snprintf(subject->report->not_in_float32, sizeof subject->report->not_in_float32, "%.95s",
                 failure.message);
    return ok;
}

/* Numbers beyond the range of a float are not compared. */
static bool float32_agrees(const ng_subject *subject, const char *what, const char *of,
                           const double *single, const double *twice, int64_t count,
                           double everywhere)
{
    const double allowed = CHECK_FLOAT * ng_check_largest(twice, count) + everywhere;
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(single[i] - twice[i]) <= allowed) && (float)fabs(twice[i]) < HUGE_VALF)
            return ng_check_say(
                subject->report,
                "in float32 %s%s at [%lld] is %.9g, in float64 %.9g: see the kernels of op \"%s\"",
                what, of, (long long)i, ng_check_printable(single[i]), ng_check_printable(twice[i]),
                subject->own_op->name);
    return true;
}

bool ng_subject_check_float32(ng_subject *subject)
{
    ng_check_report *report = subject->report;
    if (!subject->own_op) return true;
    snprintf(report->own_op, sizeof report->own_op, "%s", subject->own_op->name);
    if (!subject->own_op->float32) {
        snprintf(report->not_in_float32, sizeof report->not_in_float32, "it has no .float32");
        return true;
    }
    const int64_t tensors = (int64_t)subject->n_arguments + subject->n_tensors + 1;
    const int64_t n = subject->n_values, m = subject->n_gradient;
    ng_swapped *swapped = ng_calloc("ng_check_function", tensors, sizeof *swapped);
    double *single = ng_calloc("ng_check_function", 2 * (n + m) + 1, sizeof *single);
    double *twice = single + n + m;
    bool ok = (swapped && single) || ng_check_stop(report);
    if (ok && float32_evaluate(subject, (float32_swaps){swapped, 0, NG_F32}, single, single + n) &&
        float32_evaluate(subject, (float32_swaps){swapped, 0, NG_F64}, twice, twice + n)) {
        const double everywhere = CHECK_FLOAT_OF_ALL * ng_check_largest(twice + n, m);
        ok = float32_agrees(subject, "the result", "", single, twice, n, 0);
        for (int i = 0; i < subject->n_leaves && ok; i++) {
            const ng_check_leaf *leaf = &subject->leaves[i];
            const int64_t at = n + leaf->offset;
            ok = float32_agrees(subject, "the gradient of ", leaf->name, single + at, twice + at,
                                leaf->tensor->size, everywhere);
        }
    }
    ng_free(swapped), ng_free(single);
    return ok;
}
