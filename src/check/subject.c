/* The function that is checked: its values and analytic gradients at the present point. */
#include "check/check.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

static const char subject_function[] = "ng_check_function";

/* ---- Open and close -------------------------------------------------------------------------- */

bool ng_swap_dtype(ng_swapped *swapped, ng_tensor *x, ng_dtype through, ng_dtype dtype)
{
    *swapped = (ng_swapped){0};
    ng_tensor *rounded = ng_copy_new(x, through);
    ng_tensor *copy = rounded ? ng_copy_new(rounded, dtype) : NULL;
    ng_tensor_free(rounded);
    if (!copy) return false;
    *swapped = (ng_swapped){.tensor = x, .was = *x, .copy = copy};
    x->dtype = dtype;
    x->data = copy->data;
    x->leaf = copy->leaf;
    return true;
}

void ng_swap_back(ng_swapped *swapped)
{
    if (swapped->tensor) *swapped->tensor = swapped->was;
    ng_tensor_destroy(swapped->copy);
}

bool ng_subject_add(ng_subject *subject, const char *name, ng_tensor *tensor, bool buffer)
{
    ng_check_leaf *leaf = &subject->leaves[subject->n_tensors++];
    leaf->tensor = tensor;
    leaf->offset = subject->n_gradient;
    leaf->origin = ng_calloc(subject_function, tensor->size + 1, sizeof *leaf->origin);
    snprintf(leaf->name, sizeof leaf->name, "%.63s", name);
    if (!leaf->origin) return false;
    memcpy(leaf->origin, tensor->data, (size_t)tensor->size * sizeof *leaf->origin);
    if (buffer) return true;
    double most = 0, squares = 0; /* relative to the largest, so that no square leaves the range */
    for (int64_t i = 0; i < tensor->size; i++) most = fmax(most, fabs(leaf->origin[i]));
    for (int64_t i = 0; i < tensor->size && most > 0; i++)
        squares += (leaf->origin[i] / most) * (leaf->origin[i] / most);
    leaf->size = squares > 0 ? most * sqrt(squares / (double)tensor->size) : 0;
    subject->n_leaves++;
    subject->n_gradient += tensor->size;
    return true;
}

static bool subject_add_argument(ng_subject *subject, int index)
{
    const ng_check_options *options = subject->options;
    ng_tensor *input = options->inputs[index];
    char name[64];
    snprintf(name, sizeof name, "input %d", index + 1);
    if (options->names && options->names[index])
        snprintf(name, sizeof name, "%.63s", options->names[index]);
    if (!input) {
        ng_check_say(subject->report, "%s is NULL: %s", name, ng_check_reason());
        ng_note_null(subject_function, name);
        return false;
    }
    if (ng_is_none(input))
        return ng_check_say(subject->report, "%s is NG_NONE: the function itself hands that on",
                            name);

    const bool constant = options->constant && options->constant[index];
    ng_tensor **argument = &subject->arguments[subject->n_arguments++];
    *argument = input;
    if (input->dtype == NG_I64 || (constant && input->dtype != NG_F64)) return true;
    if (input->dtype != NG_F64)
        return ng_check_say(subject->report, "%s is %s: derivatives are checked in float64", name,
                            ng_dtype_name(input->dtype));
    *argument = ng_copy_new(input, NG_F64);
    const bool ok = *argument && (constant || (ng_require_grad(*argument) &&
                                               ng_subject_add(subject, name, *argument, false)));
    return ok || ng_check_stop(subject->report);
}

bool ng_subject_open(ng_subject *subject, ng_check_call *call, void *context,
                     const ng_check_options *options, int more, ng_check_report *report)
{
    *subject = (ng_subject){
        .call = call, .context = context, .options = options, .report = report, .dtype = NG_F64};
    const int n = options->n_inputs;
    if (!ng_given(subject_function, "call", call))
        return ng_check_say(report, "there is no function to check");
    if (n < 0 || (n > 0 && !ng_given(subject_function, "inputs", options->inputs)))
        return ng_check_say(report, "inputs are missing: %d were announced", n);
    subject->arguments = ng_calloc(subject_function, n + 1, sizeof *subject->arguments);
    subject->leaves = ng_calloc(subject_function, n + more + 1, sizeof *subject->leaves);
    if (!subject->arguments || !subject->leaves) return ng_check_stop(report);
    for (int i = 0; i < n; i++)
        if (!subject_add_argument(subject, i)) return false;
    return true;
}

void ng_subject_close(ng_subject *subject)
{
    for (int i = 0; i < subject->n_leaves && subject->cotangents; i++)
        ng_tensor_free(subject->cotangents[i]);
    for (int i = subject->n_tensors - 1; i >= 0; i--) {
        ng_swap_back(&subject->leaves[i].swapped);
        ng_free(subject->leaves[i].origin);
    }
    for (int i = 0; i < subject->n_arguments; i++)
        if (subject->arguments[i] != subject->options->inputs[i])
            ng_tensor_free(subject->arguments[i]);
    ng_tensor_free(subject->cotangent);
    ng_tape_free(subject->tape);
    ng_free(subject->arguments), ng_free(subject->leaves);
    ng_free(subject->targets), ng_free(subject->weights);
    *subject = (ng_subject){0};
}

/* The lists of tensors are one piece of memory, and so are those of numbers. */
static bool subject_reserve(ng_subject *subject)
{
    const int64_t n = subject->n_leaves, m = subject->n_gradient;
    const int64_t values = subject->cotangent->size;
    const int64_t most = subject->options->order == 2 && m > values ? m : values;
    subject->targets = ng_calloc(subject_function, 3 * n + 1, sizeof *subject->targets);
    subject->weights = ng_calloc(subject_function, 4 * most + 3 * m + 1, sizeof *subject->weights);
    if (!subject->targets || !subject->weights) return false;
    subject->gradients = subject->targets + n;
    subject->cotangents = subject->gradients + n;
    subject->base = subject->weights + most;
    subject->plus = subject->base + most;
    subject->minus = subject->plus + most;
    subject->analytic = subject->minus + most;
    subject->first = subject->analytic + m;
    subject->other = subject->first + m;
    return true;
}

/* ---- Evaluate -------------------------------------------------------------------------------- */

/* f has recorded an op; f takes a gradient. */
static void subject_recorded(ng_listener *listener, const ng_node *node)
{
    ng_subject *subject = (ng_subject *)listener;
    if (!node->op->built_in && !subject->own_op) subject->own_op = node->op;
}

static void subject_swept(ng_listener *listener) { ((ng_subject *)listener)->swept = true; }

/* f on the tape, with every buffer as it was. */
static ng_tensor *subject_run(ng_subject *subject)
{
    for (int i = subject->n_leaves; i < subject->n_tensors; i++) {
        const ng_check_leaf *buffer = &subject->leaves[i];
        memcpy(buffer->tensor->data, buffer->origin,
               (size_t)buffer->tensor->size * sizeof *buffer->origin);
    }
    subject->swept = false;
    const int64_t before = ng_failures_ever();
    ng_tensor *y = subject->call(subject->tape, subject->arguments, subject->context);
    if (!y) ng_fail_unrecorded(before, NG_ENULL, "NULL was returned without an error");
    subject->nested = subject->swept;
    subject->lost = subject->tape->unrecorded_gradients > 0;
    if (!y || (ng_failed() && ng_failures_ever() > before))
        ng_check_say(subject->report, "the function failed: %s", ng_check_reason());
    else if (ng_is_none(y))
        ng_check_say(subject->report, "the function's result is NG_NONE");
    else if (y->dtype != subject->dtype)
        ng_check_say(subject->report, "the function's result is %s: %s was expected",
                     ng_dtype_name(y->dtype), ng_dtype_name(subject->dtype));
    else if (subject->cotangent && !ng_shape_equal(y->shape, subject->cotangent->shape))
        ng_check_say(subject->report, "the function's result is %s, and was %s before",
                     ng_shape_print(y->shape).text, ng_shape_print(subject->cotangent->shape).text);
    else
        return y;
    return NULL;
}

static void subject_load(const ng_tensor *x, double *values)
{
    for (int64_t i = 0; i < x->size; i++) values[i] = ng_tensor_load(x, i);
}

/* Copies the gradients of leaves, which have the leaves' shapes, to their places. */
static void subject_gather(const ng_subject *subject, double *values)
{
    for (int i = 0; i < subject->n_leaves; i++)
        subject_load(subject->gradients[i], values + subject->leaves[i].offset);
}

/* The first leaf that has no gradient by itself, for the message. */
static const char *leaf_without_gradient(ng_subject *subject, ng_tensor *y)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        ng_tensor *gradient;
        if (ng_gradients(subject->tape, &y, 1, &subject->targets[i], 1, &gradient,
                         .cotangents = &subject->cotangent) != NG_OK)
            return subject->leaves[i].name;
    }
    return "the inputs";
}

/* The gradients of sum v g, where the first gradients g are on the tape. Those that are constant
 * add nothing. */
static bool second_gradients(ng_subject *subject, double *analytic)
{
    if (ng_gradients(subject->tape, subject->gradients, subject->n_leaves, subject->targets,
                     subject->n_leaves, subject->gradients, .cotangents = subject->cotangents,
                     .allow_unused = true) != NG_OK)
        return ng_check_say(subject->report, "no second gradient: %s", ng_check_reason());
    subject_gather(subject, analytic);
    return true;
}

/* Recorded without a gradient too: f may take a gradient itself. */
static bool evaluate_on_tape(ng_subject *subject, double *values, double *gradient)
{
    const bool second = subject->order == 2;
    ng_tensor *y = subject_run(subject);
    if (!y) return false;
    if (!second) subject_load(y, values);
    if (!second && !gradient) return true;
    if (ng_gradients(subject->tape, &y, 1, subject->targets, subject->n_leaves, subject->gradients,
                     .cotangents = &subject->cotangent, .record = second) != NG_OK)
        return ng_check_say(subject->report, "no gradient of %s: %s",
                            leaf_without_gradient(subject, y), ng_check_reason());
    subject_gather(subject, second ? values : gradient);
    return !second || !gradient || second_gradients(subject, gradient);
}

bool ng_subject_evaluate(ng_subject *subject, double *values, double *gradient)
{
    const bool ok = evaluate_on_tape(subject, values, gradient);
    ng_tape_reset(subject->tape);
    return ok;
}

/* ---- Begin ----------------------------------------------------------------------------------- */

/* Learns the result's shape and draws its cotangent. */
static bool subject_probe(ng_subject *subject)
{
    ng_rng rng = ng_check_rng(subject->options->seed, NG_CHECK_COTANGENTS);
    ng_tensor *y = subject_run(subject);
    if (y) subject->cotangent = ng_normal_new(NG_F64, y->shape, 0, 1, &rng);
    ng_tape_reset(subject->tape);
    return subject->cotangent || (y && ng_check_stop(subject->report));
}

/* Bitwise; any NaN equals any other. */
static bool same_bits(const ng_subject *subject, const double *first, const double *again,
                      int64_t count, const char *what)
{
    for (int64_t i = 0; i < count; i++) {
        if (memcmp(&first[i], &again[i], sizeof *first) == 0) continue;
        if (isnan(first[i]) && isnan(again[i])) continue;
        return ng_check_say(
            subject->report, "run again at the same point, %s is %.17g at [%lld], not %.17g", what,
            ng_check_printable(again[i]), (long long)i, ng_check_printable(first[i]));
    }
    return true;
}

/* F at the base point once more, without a gradient. */
static bool values_repeat(ng_subject *subject, const char *what)
{
    return ng_subject_evaluate(subject, subject->plus, NULL) &&
           same_bits(subject, subject->base, subject->plus, subject->n_values, what);
}

bool ng_subject_repeats(ng_subject *subject)
{
    return ng_subject_evaluate(subject, subject->plus, subject->other) &&
           same_bits(subject, subject->analytic, subject->other, subject->n_gradient,
                     subject->order == 2 ? "the second gradient" : "the gradient");
}

/* Values and gradients twice, and the values alone, with the detached values of the run before. */
static bool evaluate_repeatedly(ng_subject *subject)
{
    const char *what = subject->order == 2 ? "the gradient" : "the result";
    const ng_tape_mode mode = subject->order == 1 ? NG_TAPE_REMEMBER : NG_TAPE_REPLAY;
    ng_tape_set_mode(subject->tape, mode);
    if (!ng_subject_evaluate(subject, subject->base, subject->analytic)) return false;
    for (int64_t i = 0; i < subject->n_values; i++)
        if (!isfinite(subject->base[i]))
            return ng_check_say(subject->report, "%s is %g at [%lld]", what,
                                ng_check_printable(subject->base[i]), (long long)i);
    ng_tape_set_mode(subject->tape, mode);
    const bool ok = ng_subject_repeats(subject);
    ng_tape_set_mode(subject->tape, NG_TAPE_REPLAY);
    return ok && same_bits(subject, subject->base, subject->plus, subject->n_values, what) &&
           values_repeat(subject, what);
}

/* A result has the same bits when nothing is recorded. (A function that takes a gradient has none
 * then.) */
static bool unrecorded_is_the_same(ng_subject *subject)
{
    const bool was = ng_tape_set_recording(subject->tape, false);
    const bool ok = values_repeat(subject, "the result, not recorded,");
    ng_tape_set_recording(subject->tape, was);
    return ok;
}

bool ng_subject_begin(ng_subject *subject)
{
    if (subject->n_leaves == 0)
        return ng_check_say(subject->report, "there is nothing to differentiate: no float64 input");
    subject->order = 1;
    subject->tape = ng_tape_new();
    if (!subject->tape) return ng_check_stop(subject->report);
    subject->listener = (ng_listener){.recorded = subject_recorded, .swept = subject_swept};
    ng_tape_listen(subject->tape, &subject->listener);
    ng_tape_seed(subject->tape, subject->options->seed);
    ng_tape_set_mode(subject->tape, NG_TAPE_REMEMBER);
    if (!subject_probe(subject)) return false;
    if (!subject_reserve(subject)) return ng_check_stop(subject->report);

    subject->n_values = subject->cotangent->size;
    subject_load(subject->cotangent, subject->weights);
    for (int i = 0; i < subject->n_leaves; i++) subject->targets[i] = subject->leaves[i].tensor;
    return evaluate_repeatedly(subject) && (subject->nested || unrecorded_is_the_same(subject));
}

/* ---- Other ways to the same gradient ------------------------------------------------------- */

double ng_check_largest(const double *values, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) most = fmax(most, fabs(values[i]));
    return most;
}

/* Whether a leaf's gradient is the one that was compared, up to rounding. */
static bool same_gradient(const ng_subject *subject, int i, const double *compared,
                          const double *other, const char *how)
{
    const ng_check_leaf *leaf = &subject->leaves[i];
    const int64_t begin = leaf->offset, size = leaf->tensor->size;
    const double allowed = CHECK_SAME * ng_check_largest(other + begin, size) +
                           CHECK_SAME_OF_ALL * ng_check_largest(compared, subject->n_gradient);
    for (int64_t e = begin; e < begin + size; e++)
        if (!(fabs(other[e] - compared[e]) <= allowed))
            return ng_check_say(subject->report,
                                "the gradient of %s at [%lld] is %.9g, but %.9g %s", leaf->name,
                                (long long)(e - begin), ng_check_printable(compared[e]),
                                ng_check_printable(other[e]), how);
    return true;
}

/* The gradient of one leaf. If it is added, the leaf has another use with the gradient `before`,
 * and half of the sum is kept. */
static bool gradient_alone(ng_subject *subject, int i, const double *before, bool added,
                           double *values)
{
    const ng_check_leaf *leaf = &subject->leaves[i];
    ng_tensor *use = added ? ng_result(subject->tape, NG_F64, leaf->tensor->shape) : NULL;
    ng_tensor *y = added && !use ? NULL : subject_run(subject);
    if (!y) return ng_check_stop(subject->report);
    for (int64_t e = 0; use && e < use->size; e++)
        ng_tensor_store(use, e, before[leaf->offset + e]);
    ng_tensor *const outputs[] = {y, leaf->tensor}, *const cotangents[] = {subject->cotangent, use};
    if (ng_gradients(subject->tape, outputs, added ? 2 : 1, &subject->targets[i], 1,
                     &subject->gradients[i], .cotangents = cotangents, .record = !added) != NG_OK)
        return ng_check_say(subject->report, "no gradient of %s alone: %s", leaf->name,
                            ng_check_reason());
    subject_load(subject->gradients[i], values + leaf->offset);
    for (int64_t e = 0; use && e < use->size; e++) values[leaf->offset + e] /= 2;
    return true;
}

bool ng_subject_alone(ng_subject *subject, const double *compared, bool added)
{
    const char *how = added ? "where it is asked for alone and added to another"
                            : "where it is recorded and asked for alone";
    bool ok = true;
    for (int i = 0; i < subject->n_leaves && ok; i++) {
        ok = gradient_alone(subject, i, compared, added, subject->other);
        ng_tape_reset(subject->tape);
        ok = ok && same_gradient(subject, i, compared, subject->other, how);
    }
    return ok;
}

/* ---- Order 2 ------------------------------------------------------------------------------- */

/* v, leaf by leaf, which are the weights. */
static bool draw_second_cotangents(ng_subject *subject)
{
    ng_rng rng = ng_check_rng(subject->options->seed, NG_CHECK_SECOND_COTANGENTS);
    for (int i = 0; i < subject->n_leaves; i++) {
        const ng_check_leaf *leaf = &subject->leaves[i];
        subject->cotangents[i] = ng_normal_new(NG_F64, leaf->tensor->shape, 0, 1, &rng);
        if (!subject->cotangents[i]) return ng_check_stop(subject->report);
        subject_load(subject->cotangents[i], subject->weights + leaf->offset);
    }
    return true;
}

/* What differs if a gradient changes when it is recorded: of a fused op, the kernel from what is
 * differentiated again. */
static void say_recorded(const ng_op *op, char *text, size_t size)
{
    if (!op)
        snprintf(text, size, "when it is recorded: backward and definition differ");
    else if (op->backward)
        snprintf(text, size, "when it is recorded: .backward and %s of %.40s differ",
                 op->gradient ? ".gradient" : ".definition", op->name);
    else
        snprintf(text, size, "when it is recorded: %s of %.40s depends on that",
                 op->gradient ? ".gradient" : ".definition", op->name);
}

bool ng_subject_raise(ng_subject *subject)
{
    subject->order = 2;
    subject->n_values = subject->n_gradient;
    memcpy(subject->first, subject->analytic,
           (size_t)subject->n_gradient * sizeof *subject->analytic);
    if (!draw_second_cotangents(subject) || !evaluate_repeatedly(subject)) return false;
    char how[128];
    say_recorded(subject->own_op, how, sizeof how);
    for (int i = 0; i < subject->n_leaves; i++)
        if (!same_gradient(subject, i, subject->first, subject->base, how)) return false;
    return ng_subject_alone(subject, subject->base, false);
}
