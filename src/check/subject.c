/* The function that is checked: its values and analytic gradients where the leaves stand. */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

static const char checker[] = "ng_check_function";

static bool no_memory(ng_check_report *report)
{
    return ng_check_say(report, "the check could not be set up: %s", ng_check_reason());
}

/* ---- Open and close -------------------------------------------------------------------------- */

bool ng_subject_add_leaf(ng_subject *subject, const char *name, ng_tensor *tensor)
{
    double *origin = ng_calloc(checker, tensor->size + 1, sizeof *origin);
    if (!origin) return false;
    memcpy(origin, tensor->data, (size_t)tensor->size * sizeof *origin);
    subject->leaves[subject->n_leaves++] = (ng_check_leaf){
        .name = name, .tensor = tensor, .origin = origin, .offset = subject->n_gradient};
    subject->n_gradient += tensor->size;
    return true;
}

bool ng_subject_add_state(ng_subject *subject, ng_tensor *tensor)
{
    const size_t bytes = (size_t)tensor->size * ng_dtype_bytes(tensor->dtype);
    void *origin = ng_calloc(checker, (int64_t)bytes + 1, 1);
    if (!origin) return false;
    memcpy(origin, tensor->data, bytes);
    subject->states[subject->n_states++] = (ng_check_state){.tensor = tensor, .origin = origin};
    return true;
}

static const char *name_of_input(const ng_check_options *options, int index)
{
    static const char *const names[] = {"input 1", "input 2", "input 3",
                                        "input 4", "input 5", "input 6",
                                        "input 7", "input 8", "an input after 8"};
    if (options->names && options->names[index]) return options->names[index];
    return names[index < 8 ? index : 8];
}

static bool add_argument(ng_subject *subject, int index, ng_check_report *report)
{
    const ng_check_options *options = subject->options;
    ng_tensor *input = options->inputs[index];
    const char *name = name_of_input(options, index);
    if (!input) {
        ng_check_say(report, "%s is NULL: %s", name, ng_check_reason());
        ng_note_null(checker, name);
        return false;
    }
    if (ng_is_none(input))
        return ng_check_say(report, "%s is NG_NONE: the function itself hands that on", name);

    const bool constant = options->constant && options->constant[index];
    subject->arguments[subject->n_arguments++] = input;
    if (input->dtype == NG_I64 || (constant && input->dtype != NG_F64)) return true;
    if (input->dtype != NG_F64)
        return ng_check_say(report, "%s is %s: derivatives are checked in float64", name,
                            ng_dtype_name(input->dtype));
    ng_tensor *copy = ng_copy_new(input, NG_F64);
    if (!copy) return no_memory(report);
    subject->owned[index] = subject->arguments[index] = copy;
    return constant || (ng_require_grad(copy) && ng_subject_add_leaf(subject, name, copy)) ||
           no_memory(report);
}

bool ng_subject_open(ng_subject *subject, ng_check_call *call, void *context,
                     const ng_check_options *options, int more_leaves, int states,
                     ng_check_report *report)
{
    *subject = (ng_subject){.call = call, .context = context, .options = options};
    const int n = options->n_inputs;
    if (!ng_given(checker, "call", call))
        return ng_check_say(report, "there is no function to check");
    if (n < 0 || (n > 0 && !ng_given(checker, "inputs", options->inputs)))
        return ng_check_say(report, "inputs are missing: %d were announced", n);
    subject->arguments = ng_calloc(checker, n + 1, sizeof *subject->arguments);
    subject->owned = ng_calloc(checker, n + 1, sizeof *subject->owned);
    subject->leaves = ng_calloc(checker, (int64_t)n + more_leaves + 1, sizeof *subject->leaves);
    subject->states = ng_calloc(checker, (int64_t)states + 1, sizeof *subject->states);
    if (!subject->arguments || !subject->owned || !subject->leaves || !subject->states)
        return no_memory(report);
    for (int i = 0; i < n; i++)
        if (!add_argument(subject, i, report)) return false;
    return true;
}

void ng_subject_close(ng_subject *subject)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        if (subject->cotangents) ng_tensor_free(subject->cotangents[i]);
        ng_free(subject->leaves[i].origin);
    }
    for (int i = 0; i < subject->n_states; i++) ng_free(subject->states[i].origin);
    for (int i = 0; i < subject->n_arguments; i++) ng_tensor_free(subject->owned[i]);
    ng_tensor_free(subject->cotangent);
    ng_tape_free(subject->tape);
    ng_free(subject->arguments), ng_free(subject->owned);
    ng_free(subject->leaves), ng_free(subject->states);
    ng_free(subject->targets), ng_free(subject->weights);
    *subject = (ng_subject){0};
}

/* The lists of tensors are one piece of memory, and so are those of numbers. */
static bool subject_reserve(ng_subject *subject)
{
    const int64_t n = subject->n_leaves, m = subject->n_gradient;
    const int64_t values = subject->cotangent->size;
    const int64_t most = subject->options->order == 2 && m > values ? m : values;
    subject->targets = ng_calloc(checker, 5 * n + 1, sizeof *subject->targets);
    subject->weights = ng_calloc(checker, 4 * most + m + 1, sizeof *subject->weights);
    if (!subject->targets || !subject->weights) return false;
    subject->gradients = subject->targets + n;
    subject->cotangents = subject->gradients + n;
    subject->curved = subject->cotangents + n;
    subject->curved_cotangents = subject->curved + n;
    subject->base = subject->weights + most;
    subject->plus = subject->base + most;
    subject->minus = subject->plus + most;
    subject->analytic = subject->minus + most;
    return true;
}

/* ---- Evaluate -------------------------------------------------------------------------------- */

/* f on the tape; states stand as they were. */
static ng_tensor *subject_run(ng_subject *subject, ng_check_report *report)
{
    for (int i = 0; i < subject->n_states; i++) {
        ng_tensor *tensor = subject->states[i].tensor;
        memcpy(tensor->data, subject->states[i].origin,
               (size_t)tensor->size * ng_dtype_bytes(tensor->dtype));
    }
    const int64_t questions = ng_dtype_questions();
    ng_tensor *y = subject->call(subject->tape, subject->arguments, subject->context);
    subject->asks_dtype = ng_dtype_questions() > questions;
    subject->nested = subject->tape->gradients > 0;
    subject->lost = subject->tape->unrecorded_gradients > 0;
    if (subject->tape->own_op) subject->own_op = subject->tape->own_op;
    if (!y) {
        ng_check_say(report, "the function failed: %s", ng_check_reason());
        return NULL;
    }
    if (y->dtype != NG_F64) {
        ng_check_say(report, "the function's result is %s: float64 was expected",
                     ng_dtype_name(y->dtype));
        return NULL;
    }
    if (subject->cotangent && !ng_shape_equal(y->shape, subject->cotangent->shape)) {
        ng_check_say(report, "the function's result is %s, and was %s before",
                     ng_shape_print(y->shape).text, ng_shape_print(subject->cotangent->shape).text);
        return NULL;
    }
    return y;
}

/* Copies the gradient of one leaf, which has its shape, to its place. */
static bool gather_gradient(const ng_subject *subject, int i, double *values,
                            ng_check_report *report)
{
    const ng_check_leaf *leaf = &subject->leaves[i];
    const ng_tensor *gradient = subject->gradients[i];
    if (!gradient) return ng_check_say(report, "the gradient of %s is missing", leaf->name);
    if (ng_is_none(gradient)) {
        memset(values + leaf->offset, 0, (size_t)leaf->tensor->size * sizeof *values);
        return true;
    }
    if (!ng_shape_equal(gradient->shape, leaf->tensor->shape) || gradient->dtype != NG_F64) {
        return ng_check_say(report, "the gradient of %s is %s %s, but %s is %s %s", leaf->name,
                            ng_dtype_name(gradient->dtype), ng_shape_print(gradient->shape).text,
                            leaf->name, ng_dtype_name(NG_F64),
                            ng_shape_print(leaf->tensor->shape).text);
    }
    memcpy(values + leaf->offset, gradient->data, (size_t)gradient->size * sizeof *values);
    return true;
}

static bool gather_gradients(const ng_subject *subject, double *values, ng_check_report *report)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        if (!gather_gradient(subject, i, values, report)) return false;
    }
    return true;
}

/* The first leaf that has no gradient by itself, for the message. */
static const char *leaf_without_gradient(ng_subject *subject, ng_tensor *y)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        ng_tensor *gradient;
        ng_status status = ng_gradients(subject->tape, &y, 1, &subject->targets[i], 1, &gradient,
                                        .cotangents = &subject->cotangent);
        if (status != NG_OK) return subject->leaves[i].name;
    }
    return "the inputs";
}

static bool first_gradients(ng_subject *subject, ng_tensor *y, bool record, ng_check_report *report)
{
    if (ng_gradients(subject->tape, &y, 1, subject->targets, subject->n_leaves, subject->gradients,
                     .cotangents = &subject->cotangent, .record = record) == NG_OK)
        return true;
    return ng_check_say(report, "no gradient of %s: %s", leaf_without_gradient(subject, y),
                        ng_check_reason());
}

/* The gradients of sum v g, g being the first gradients, which are on the tape. */
static bool second_gradients(ng_subject *subject, double *analytic, ng_check_report *report)
{
    int n = 0;
    for (int i = 0; i < subject->n_leaves; i++) {
        if (!ng_requires_grad(subject->gradients[i])) continue;
        subject->curved[n] = subject->gradients[i];
        subject->curved_cotangents[n++] = subject->cotangents[i];
    }
    if (n == 0) { /* f is linear in every leaf */
        memset(analytic, 0, (size_t)subject->n_gradient * sizeof *analytic);
        return true;
    }
    ng_status status = ng_gradients(subject->tape, subject->curved, n, subject->targets,
                                    subject->n_leaves, subject->gradients,
                                    .cotangents = subject->curved_cotangents, .allow_unused = true);
    if (status != NG_OK) {
        return ng_check_say(report, "no second gradient: %s", ng_check_reason());
    }
    return gather_gradients(subject, analytic, report);
}

/* Recorded at order 1 too: f may take a gradient itself. */
static bool values_on_tape(ng_subject *subject, double *values, ng_check_report *report)
{
    ng_tensor *y = subject_run(subject, report);
    if (!y) return false;
    if (subject->order == 2) {
        return first_gradients(subject, y, true, report) &&
               gather_gradients(subject, values, report);
    }
    memcpy(values, y->data, (size_t)y->size * sizeof *values);
    return true;
}

bool ng_subject_values(ng_subject *subject, double *values, ng_check_report *report)
{
    bool ok = values_on_tape(subject, values, report);
    ng_tape_reset(subject->tape);
    return ok;
}

static bool gradients_on_tape(ng_subject *subject, double *analytic, double *values,
                              ng_check_report *report)
{
    ng_tensor *y = subject_run(subject, report);
    if (!y || !first_gradients(subject, y, subject->order == 2, report)) return false;
    if (subject->order == 1) {
        memcpy(values, y->data, (size_t)y->size * sizeof *values);
        return gather_gradients(subject, analytic, report);
    }
    return gather_gradients(subject, values, report) && second_gradients(subject, analytic, report);
}

/* ---- Begin ----------------------------------------------------------------------------------- */

/* Learns the result's shape and draws its cotangent. */
static bool probe(ng_subject *subject, ng_rng *rng, ng_check_report *report)
{
    ng_tensor *y = subject_run(subject, report);
    if (y) subject->cotangent = ng_normal_new(NG_F64, y->shape, 0, 1, rng);
    ng_tape_reset(subject->tape);
    return subject->cotangent || (y && no_memory(report));
}

static bool all_finite(const double *values, int64_t count, const char *what,
                       ng_check_report *report)
{
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return ng_check_say(report, "%s is %g at [%lld]", what, values[i], (long long)i);
    return true;
}

/* Bitwise, but for NaN, whose bits say nothing. */
static bool same_bits(const double *first, const double *again, int64_t count, const char *what,
                      ng_check_report *report)
{
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&first[i], &again[i], sizeof *first) == 0) continue;
        if (isnan(first[i]) && isnan(again[i])) continue;
        return ng_check_say(report, "run again at the same point, %s is %.17g at [%lld], not %.17g",
                            what, again[i], (long long)i, first[i]);
    }
    return true;
}

static bool evaluate(ng_subject *subject, double *analytic, double *values, ng_check_report *report)
{
    const bool ok = gradients_on_tape(subject, analytic, values, report);
    ng_tape_reset(subject->tape);
    return ok;
}

bool ng_subject_gradient(ng_subject *subject, double *gradient, ng_check_report *report)
{
    return evaluate(subject, gradient, subject->plus, report);
}

static const char *gradient_name(const ng_subject *subject)
{
    return subject->order == 2 ? "the second gradient" : "the gradient";
}

bool ng_subject_repeats(ng_subject *subject, ng_check_report *report)
{
    double *again = ng_calloc(checker, subject->n_gradient + 1, sizeof *again);
    bool ok = again || no_memory(report);
    ok = ok && ng_subject_gradient(subject, again, report) &&
         same_bits(subject->analytic, again, subject->n_gradient, gradient_name(subject), report);
    ng_free(again);
    return ok;
}

/* Values and gradients twice, and the values alone, with the detached values of the run before. */
static bool evaluate_repeatedly(ng_subject *subject, ng_check_report *report)
{
    const char *what = subject->order == 2 ? "the gradient" : "the result";
    const ng_tape_mode mode = subject->order == 1 ? NG_TAPE_REMEMBER : NG_TAPE_REPLAY;
    ng_tape_set_mode(subject->tape, mode);
    if (!evaluate(subject, subject->analytic, subject->base, report) ||
        !all_finite(subject->base, subject->n_values, what, report))
        return false;
    ng_tape_set_mode(subject->tape, mode);
    const bool ok = ng_subject_repeats(subject, report);
    ng_tape_set_mode(subject->tape, NG_TAPE_REPLAY);
    return ok && same_bits(subject->base, subject->plus, subject->n_values, what, report) &&
           ng_subject_values(subject, subject->plus, report) &&
           same_bits(subject->base, subject->plus, subject->n_values, what, report);
}

/* A result has the same bits when nothing is recorded. (A function that takes a gradient has none
 * then.) */
static bool unrecorded_is_the_same(ng_subject *subject, ng_check_report *report)
{
    const bool was = ng_tape_set_recording(subject->tape, false);
    const bool ok = ng_subject_values(subject, subject->plus, report);
    ng_tape_set_recording(subject->tape, was);
    return ok && same_bits(subject->base, subject->plus, subject->n_values,
                           "the result, not recorded,", report);
}

bool ng_subject_begin(ng_subject *subject, ng_check_report *report)
{
    if (subject->n_leaves == 0)
        return ng_check_say(report, "there is nothing to differentiate: no float64 input");
    const uint64_t seed = subject->options->seed;
    ng_rng rng = ng_check_rng(seed, NG_CHECK_COTANGENTS);
    subject->order = 1;
    subject->tape = ng_tape_new();
    if (!subject->tape) return no_memory(report);
    ng_tape_seed(subject->tape, seed);
    ng_tape_set_mode(subject->tape, NG_TAPE_REMEMBER);
    if (!probe(subject, &rng, report)) return false;
    if (!subject_reserve(subject)) return no_memory(report);

    subject->n_values = subject->cotangent->size;
    memcpy(subject->weights, subject->cotangent->data,
           (size_t)subject->n_values * sizeof *subject->weights);
    for (int i = 0; i < subject->n_leaves; i++) subject->targets[i] = subject->leaves[i].tensor;
    return evaluate_repeatedly(subject, report) &&
           (subject->nested || unrecorded_is_the_same(subject, report));
}

/* ---- Other ways to the same gradient ------------------------------------------------------- */

/* The largest magnitude among those that are finite. */
static double largest_finite(const double *values, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) most = fmax(most, fabs(values[i]));
    return most;
}

/* Whether a leaf's gradient is the one that was compared, to 1e-9 of its largest element. */
static bool same_gradient(const ng_subject *subject, int i, const double *compared,
                          const double *other, const char *how, ng_check_report *report)
{
    const ng_check_leaf *leaf = &subject->leaves[i];
    const int64_t size = leaf->tensor->size;
    const double everywhere = largest_finite(other, subject->n_gradient);
    const double allowed = 1e-9 * largest_finite(other + leaf->offset, size) + 1e-13 * everywhere;
    for (int64_t e = leaf->offset; e < leaf->offset + size; e++) {
        if (fabs(other[e] - compared[e]) <= allowed) continue;
        return ng_check_say(report, "the gradient of %s at [%lld] is %.9g, but %.9g %s", leaf->name,
                            (long long)(e - leaf->offset), compared[e], other[e], how);
    }
    return true;
}

/* The gradient of a leaf that has other uses, whose gradient was the same: half of the sum. */
static bool added_gradient(ng_subject *subject, int i, double *values, ng_check_report *report)
{
    const ng_check_leaf *leaf = &subject->leaves[i];
    ng_tensor *sum = NULL, *before = ng_result(subject->tape, NG_F64, leaf->tensor->shape);
    ng_tensor *y = before ? subject_run(subject, report) : NULL;
    if (!y) return ng_check_say(report, "%s", ng_check_reason());
    memcpy(before->data, subject->analytic + leaf->offset,
           (size_t)before->size * sizeof *subject->analytic);
    ng_tensor *const outputs[] = {y, leaf->tensor}, *const cotangents[] = {subject->cotangent,
                                                                           before};
    if (ng_gradients(subject->tape, outputs, 2, &subject->targets[i], 1, &sum,
                     .cotangents = cotangents) != NG_OK)
        return ng_check_say(report, "no gradient of %s alone: %s", leaf->name, ng_check_reason());
    for (int64_t e = 0; e < sum->size; e++)
        values[leaf->offset + e] = ((const double *)sum->data)[e] / 2;
    return true;
}

/* Recorded, and of one leaf, as for a gradient penalty. */
static bool recorded_alone(ng_subject *subject, int i, double *values, ng_check_report *report)
{
    ng_tensor *y = subject_run(subject, report);
    if (!y) return false;
    if (ng_gradients(subject->tape, &y, 1, &subject->targets[i], 1, &subject->gradients[i],
                     .cotangents = &subject->cotangent, .record = true) != NG_OK)
        return ng_check_say(report, "no gradient of %s alone: %s", subject->leaves[i].name,
                            ng_check_reason());
    return gather_gradient(subject, i, values, report);
}

bool ng_subject_adds_up(ng_subject *subject, ng_check_report *report)
{
    double *found = ng_calloc(checker, subject->n_gradient + 1, sizeof *found);
    bool ok = found || no_memory(report);
    if (ok) memcpy(found, subject->analytic, (size_t)subject->n_gradient * sizeof *found);
    for (int i = 0; i < subject->n_leaves && ok; i++) {
        ok = added_gradient(subject, i, found, report);
        ng_tape_reset(subject->tape);
        ok = ok && same_gradient(subject, i, subject->analytic, found,
                                 "where it is asked for alone and added to another", report);
    }
    ng_free(found);
    return ok;
}

/* ---- Order 2 ------------------------------------------------------------------------------- */

/* v, leaf by leaf, which are the weights. */
static bool draw_second_cotangents(ng_subject *subject)
{
    ng_rng rng = ng_check_rng(subject->options->seed, NG_CHECK_SECOND_COTANGENTS);
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_tensor *tensor = subject->leaves[i].tensor;
        ng_tensor *v = ng_normal_new(NG_F64, tensor->shape, 0, 1, &rng);
        if (!v) return false;
        subject->cotangents[i] = v;
        memcpy(subject->weights + subject->leaves[i].offset, v->data,
               (size_t)v->size * sizeof *subject->weights);
    }
    return true;
}

bool ng_subject_raise(ng_subject *subject, ng_check_report *report)
{
    double *plain = ng_calloc(checker, subject->n_gradient + 1, sizeof *plain);
    bool ok = plain && draw_second_cotangents(subject);
    if (!ok) no_memory(report);
    if (ok) memcpy(plain, subject->analytic, (size_t)subject->n_gradient * sizeof *plain);
    subject->order = 2;
    subject->n_values = subject->n_gradient;
    ok = ok && evaluate_repeatedly(subject, report);
    /* A fused op's definition, which is differentiated again, agrees with its kernel. */
    for (int i = 0; i < subject->n_leaves && ok; i++) {
        ok = same_gradient(subject, i, plain, subject->base,
                           "when it is recorded: backward and definition differ", report);
    }
    for (int i = 0; i < subject->n_leaves && ok; i++) {
        ok = recorded_alone(subject, i, plain, report);
        ng_tape_reset(subject->tape);
        ok = ok && same_gradient(subject, i, subject->base, plain,
                                 "where it is recorded and asked for alone", report);
    }
    ng_free(plain);
    return ok;
}
