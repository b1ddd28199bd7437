/* The function that is checked: its values and analytic gradients at the present point. */
#include "check/check.h"
#include "core/error.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

static const char subject_function[] = "ng_check_function";

/* ---- Open and close -------------------------------------------------------------------------- */

bool ng_swap_dtype(ng_swapped *swapped, ng_tensor *x, ng_dtype dtype)
{
    *swapped = (ng_swapped){0};
    ng_tensor *copy = ng_copy_new(x, dtype);
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
    *subject = (ng_subject){.call = call,
                            .context = context,
                            .options = options,
                            .report = report,
                            .orders = options->order > 1 ? options->order : 1,
                            .worst = -1};
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

/* The cotangents of an order: that of the result, then n_leaves for each further order. */
static ng_tensor **cotangents_of(const ng_subject *subject, int order)
{
    return subject->cotangents + (order > 1 ? 1 + (order - 2) * subject->n_leaves : 0);
}

ng_tensor **ng_subject_cotangents(const ng_subject *subject, int *count)
{
    *count = subject->order > 1 ? subject->n_leaves : 1;
    return cotangents_of(subject, subject->order);
}

void ng_subject_close(ng_subject *subject)
{
    for (int i = 0; subject->cotangents && i < 1 + (subject->orders - 1) * subject->n_leaves; i++)
        ng_tensor_free(subject->cotangents[i]);
    for (int i = subject->n_tensors - 1; i >= 0; i--) {
        ng_swap_back(&subject->leaves[i].swapped);
        ng_free(subject->leaves[i].origin);
    }
    for (int i = 0; i < subject->n_arguments; i++)
        if (subject->arguments[i] != subject->options->inputs[i])
            ng_tensor_free(subject->arguments[i]);
    ng_tape_free(subject->tape);
    ng_free(subject->arguments), ng_free(subject->leaves);
    ng_free(subject->targets), ng_free(subject->weights);
    *subject = (ng_subject){0};
}

/* The lists of tensors are one piece of memory. */
static bool subject_reserve_lists(ng_subject *subject)
{
    const int64_t n = subject->n_leaves;
    subject->targets =
        ng_calloc(subject_function, (1 + subject->orders) * n + 1, sizeof *subject->targets);
    if (!subject->targets) return false;
    subject->gradients = subject->targets + n;
    subject->cotangents = subject->gradients + n;
    for (int i = 0; i < n; i++) subject->targets[i] = subject->leaves[i].tensor;
    return true;
}

/* So are those of numbers. */
static bool subject_reserve_numbers(ng_subject *subject, int64_t values)
{
    const int64_t m = subject->n_gradient, most = m > values ? m : values;
    subject->weights = ng_calloc(subject_function, 4 * most + 3 * m + 1, sizeof *subject->weights);
    if (!subject->weights) return false;
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
    if (ng_node_kind(node) == NG_USERS_OP && !subject->own_op) subject->own_op = node->op;
}

static void subject_swept(ng_listener *listener) { ((ng_subject *)listener)->swept = true; }

ng_tensor *ng_subject_run(ng_subject *subject)
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
    const ng_status status = y ? NG_OK : ng_newest_status();
    subject->refused = !subject->like && (status == NG_ESHAPE || status == NG_EVALUE);
    if (!y || (ng_failed() && ng_failures_ever() > before))
        ng_check_say(subject->report, "the function failed: %s", ng_check_reason());
    else if (ng_is_none(y))
        ng_check_say(subject->report, "the function's result is NG_NONE");
    else if (y->dtype != NG_F64)
        ng_check_say(subject->report, "the function's result is %s: float64 was expected",
                     ng_dtype_name(y->dtype));
    else if (subject->like && !ng_shape_equal(y->shape, subject->like->shape))
        ng_check_say(subject->report, "the function's result is %s, expected %s",
                     ng_shape_print(y->shape).text, ng_shape_print(subject->like->shape).text);
    else
        return y;
    return NULL;
}

/* The first leaf that has no gradient by itself, for the message. */
static const char *leaf_without_gradient(ng_subject *subject, ng_tensor *y)
{
    for (int i = 0; i < subject->n_leaves; i++) {
        ng_tensor *gradient;
        if (ng_gradients(subject->tape, &y, 1, &subject->targets[i], 1, &gradient,
                         .cotangents = subject->cotangents) != NG_OK)
            return subject->leaves[i].name;
    }
    return "the inputs";
}

/* The gradients of sum w F at an order. Those parts of F that are constant add nothing, but each
 * leaf must have a gradient of the result. */
static bool differentiate(ng_subject *subject, ng_tensor *const *f, int order, bool record)
{
    const int n = subject->n_leaves;
    if (ng_gradients(subject->tape, f, order == 1 ? 1 : n, subject->targets, n, subject->gradients,
                     .cotangents = cotangents_of(subject, order), .record = record,
                     .allow_unused = order > 1) == NG_OK)
        return true;
    if (order > 1)
        return ng_check_say(subject->report, "no %s gradient: %s", ng_check_ordinal(order),
                            ng_check_reason());
    const char *leaf = leaf_without_gradient(subject, f[0]);
    return ng_check_say(subject->report, "no gradient of %s: %s", leaf, ng_check_reason());
}

static void gather_values(ng_tensor *const *tensors, int count, double *values)
{
    for (int i = 0; i < count; values += tensors[i++]->size) ng_check_load(tensors[i], values);
}

/* F is the result, and at each further order the gradients of the order below, recorded. It is
 * recorded without a gradient too: f may take a gradient itself. */
static bool evaluate_on_tape(ng_subject *subject, double *values, double *gradient)
{
    ng_tensor *y = ng_subject_run(subject), *const *f = &y;
    if (!y) return false;
    for (int order = 1; order < subject->order; order++, f = subject->gradients)
        if (!differentiate(subject, f, order, true)) return false;
    gather_values(f, subject->order == 1 ? 1 : subject->n_leaves, values);
    if (!gradient) return true;
    if (!differentiate(subject, f, subject->order, false)) return false;
    gather_values(subject->gradients, subject->n_leaves, gradient);
    return true;
}

bool ng_subject_evaluate(ng_subject *subject, double *values, double *gradient)
{
    const bool ok = evaluate_on_tape(subject, values, gradient);
    ng_tape_reset(subject->tape);
    return ok;
}

/* ---- Begin ----------------------------------------------------------------------------------- */

const char *ng_check_ordinal(int order)
{
    static const char *const ordinals[] = {"", "first", "second", "third", "fourth"};
    return ordinals[order];
}

const char *ng_check_what(int order)
{
    static const char *const names[] = {"the result", "the gradient", "the second gradient",
                                        "the third gradient", "the fourth gradient"};
    return names[order];
}

/* Draws cotangents of the present order, for the tensors that F consists of: the weights. */
static bool draw_cotangents(ng_subject *subject, ng_tensor *const *f, int count)
{
    ng_rng rng = ng_check_rng(subject->options->seed, NG_CHECK_COTANGENTS_OF(subject->order));
    ng_tensor **cotangents = cotangents_of(subject, subject->order);
    subject->n_values = 0;
    for (int i = 0; i < count; i++) {
        cotangents[i] = ng_normal_new(NG_F64, f[i]->shape, 0, 1, &rng);
        if (!cotangents[i]) return ng_check_stop(subject->report);
        subject->n_values += f[i]->size;
    }
    gather_values(cotangents, count, subject->weights);
    return true;
}

/* Begins order 1: runs f to learn the result's shape. */
static bool subject_start(ng_subject *subject)
{
    if (subject->n_leaves == 0)
        return ng_check_say(subject->report, "there is nothing to differentiate: no float64 input");
    subject->tape = ng_tape_new();
    if (!subject->tape || !subject_reserve_lists(subject)) return ng_check_stop(subject->report);
    subject->listener = (ng_listener){.recorded = subject_recorded, .swept = subject_swept};
    ng_tape_listen(subject->tape, &subject->listener);
    ng_tape_seed(subject->tape, subject->options->seed);
    ng_tape_set_mode(subject->tape, NG_TAPE_REMEMBER);
    ng_tensor *y = ng_subject_run(subject);
    if (!y) return false;
    const bool ok = subject_reserve_numbers(subject, y->size) ? draw_cotangents(subject, &y, 1)
                                                              : ng_check_stop(subject->report);
    subject->like = subject->cotangents[0];
    ng_tape_reset(subject->tape);
    return ok;
}

/* Begins an order above 1: F is now the gradient of the order below. */
static bool subject_raise(ng_subject *subject)
{
    memcpy(subject->first, subject->analytic, (size_t)subject->n_gradient * sizeof(double));
    return draw_cotangents(subject, subject->targets, subject->n_leaves);
}

bool ng_subject_begin(ng_subject *subject, int order)
{
    subject->order = subject->report->order = order;
    if (!(order == 1 ? subject_start(subject) : subject_raise(subject))) return false;
    ng_tape_set_mode(subject->tape, order == 1 ? NG_TAPE_REMEMBER : NG_TAPE_REPLAY);
    if (!ng_subject_evaluate(subject, subject->base, subject->analytic)) return false;
    for (int64_t i = 0; i < subject->n_values; i++)
        if (!isfinite(subject->base[i]))
            return ng_check_say(subject->report, "%s is %g at [%lld]", ng_check_what(order - 1),
                                ng_check_printable(subject->base[i]), (long long)i);
    return true;
}
