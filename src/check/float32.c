/* Float32 against float64, for functions with an op of the user's own.
 *
 * Everything else in the check runs in double, so that it would never see the float kernels of such
 * an op. Both runs start from inputs rounded to float32. They agree where no value differs by more
 * than 1e-3 of the largest, and no gradient by more than 1e-3 of the largest in its input and 1e-5
 * of the largest of all: enough for a wrong kernel, not for a small loss of accuracy.
 */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>

bool ng_swap_dtype(ng_swapped *swapped, ng_tensor *x, ng_dtype dtype)
{
    ng_tensor *copy = ng_copy_new(x, dtype);
    if (!copy) return false;
    *swapped = (ng_swapped){.tensor = x, .was = *x};
    x->dtype = dtype;
    x->data = copy->data;
    x->grad = NULL;
    copy->data = NULL;
    ng_tensor_destroy(copy);
    return true;
}

void ng_swap_back(ng_swapped *swapped)
{
    ng_tensor *x = swapped->tensor;
    if (!x) return;
    ng_free(x->data);
    if (x->grad) ng_tensor_destroy(x->grad);
    *x = swapped->was;
}

/* One run of the function, in one of the two dtypes. */
typedef struct {
    ng_subject *subject;
    ng_dtype dtype;
    ng_swapped *rounded, *swapped; /* tensors in float32, and then in the dtype */
    int count;
    double *values, *gradient;
} float32_run;

/* To float32, which rounds, and from there to the dtype. */
static bool float32_swap(float32_run *run, ng_tensor *x)
{
    if (!x || x->dtype != NG_F64) return true;
    const int i = run->count++;
    return ng_swap_dtype(&run->rounded[i], x, NG_F32) &&
           ng_swap_dtype(&run->swapped[i], x, run->dtype);
}

static bool float32_swap_all(float32_run *run)
{
    const ng_subject *s = run->subject;
    bool ok = true;
    for (int i = 0; i < s->n_arguments && ok; i++) ok = float32_swap(run, s->owned[i]);
    for (int i = 0; i < s->n_leaves && ok; i++) ok = float32_swap(run, s->leaves[i].tensor);
    for (int i = 0; i < s->n_states && ok; i++) ok = float32_swap(run, s->states[i].tensor);
    return ok;
}

static void float32_swap_back(float32_run *run)
{
    while (run->count-- > 0) {
        ng_swap_back(&run->swapped[run->count]);
        ng_swap_back(&run->rounded[run->count]);
    }
}

static void float32_load(const ng_tensor *x, double *values)
{
    for (int64_t i = 0; i < x->size; i++) values[i] = ng_tensor_load(x, i);
}

static bool float32_evaluate(float32_run *run, ng_tape *tape)
{
    const ng_subject *s = run->subject;
    ng_tensor *y = s->call(tape, s->arguments, s->context);
    if (!y) return false;
    if (y->dtype != run->dtype || !ng_shape_equal(y->shape, s->cotangent->shape)) {
        ng_fail(NG_EDTYPE, "the result is %s %s", ng_dtype_name(y->dtype),
                ng_shape_print(y->shape).text);
        return false;
    }
    ng_tensor *u = ng_tape_own(tape, ng_copy_new(s->cotangent, run->dtype));
    if (!u || ng_gradients(tape, &y, 1, s->targets, s->n_leaves, s->gradients, .cotangents = &u))
        return false;
    float32_load(y, run->values);
    for (int i = 0; i < s->n_leaves; i++)
        if (!ng_is_none(s->gradients[i]))
            float32_load(s->gradients[i], run->gradient + s->leaves[i].offset);
    return true;
}

static bool float32_evaluate_in(float32_run *run, ng_dtype dtype)
{
    ng_tape *tape = ng_tape_new();
    run->dtype = dtype;
    run->count = 0;
    ng_tape_seed(tape, run->subject->options->seed);
    ng_tape_set_mode(tape, NG_TAPE_REMEMBER); /* running statistics stay */
    const bool ok = tape && float32_swap_all(run) && float32_evaluate(run, tape);
    float32_swap_back(run);
    ng_tape_free(tape);
    return ok;
}

static double float32_largest(const double *x, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = fmax(most, fabs(x[i]));
    return most;
}

static bool float32_agrees(const ng_subject *subject, const char *what, const char *of,
                           const double *single, const double *twice, int64_t count, double allowed,
                           ng_check_report *report)
{
    for (int64_t i = 0; i < count; i++) {
        if (fabs(single[i] - twice[i]) <= allowed || !((float)fabs(twice[i]) < HUGE_VALF)) continue;
        return ng_check_say(
            report,
            "in float32 %s%s at [%lld] is %.9g, in float64 %.9g: see the kernels of op \"%s\"",
            what, of, (long long)i, single[i], twice[i], subject->own_op->name);
    }
    return true;
}

static bool float32_compare(const ng_subject *s, const double *const *values,
                            const double *const *gradients, ng_check_report *report)
{
    const double most = 1e-3 * float32_largest(values[1], s->n_values);
    const double everywhere = 1e-5 * float32_largest(gradients[1], s->n_gradient);
    if (!float32_agrees(s, "the result", "", values[0], values[1], s->n_values, most, report))
        return false;
    for (int i = 0; i < s->n_leaves; i++) {
        const ng_check_leaf *leaf = &s->leaves[i];
        const double *in_float = gradients[0] + leaf->offset, *twice = gradients[1] + leaf->offset;
        const int64_t size = leaf->tensor->size;
        if (!float32_agrees(s, "the gradient of ", leaf->name, in_float, twice, size,
                            1e-3 * float32_largest(twice, size) + everywhere, report))
            return false;
    }
    return true;
}

bool ng_subject_check_float32(ng_subject *s, ng_check_report *report)
{
    if (!s->own_op) return true;
    snprintf(report->own_op, sizeof report->own_op, "%s", s->own_op->name);
    if (!s->asks_dtype) {
        snprintf(report->not_in_float32, sizeof report->not_in_float32,
                 "ng_dtype_of is never called");
        return true;
    }
    const int64_t tensors = (int64_t)s->n_arguments + s->n_leaves + s->n_states;
    const int64_t numbers = s->n_values + s->n_gradient;
    ng_swapped *swapped = ng_calloc("ng_check_function", 2 * tensors + 1, sizeof *swapped);
    double *found = ng_calloc("ng_check_function", 2 * numbers + 1, sizeof *found);
    bool ran = swapped && found;
    const double *values[2], *gradients[2];
    for (int i = 0; i < 2 && ran; i++) {
        float32_run run = {.subject = s, .rounded = swapped, .swapped = swapped + tensors};
        values[i] = run.values = found + i * numbers;
        gradients[i] = run.gradient = run.values + s->n_values;
        ran = float32_evaluate_in(&run, i ? NG_F64 : NG_F32);
    }
    if (!ran)
        snprintf(report->not_in_float32, sizeof report->not_in_float32, "%s", ng_check_reason());
    const bool ok = !ran || float32_compare(s, values, gradients, report);
    ng_free(swapped), ng_free(found);
    return ok;
}
