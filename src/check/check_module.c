/* Checks a module in place: its tensors work in double for the time of the check. */
#include "check/check.h"
#include <math.h>
#include <string.h>

/* A tensor of the module as it was. The struct is put back as it stood, so that giving the module
 * back cannot fail and no bit of value, gradient or version is lost. */
typedef struct {
    ng_tensor *tensor;
    ng_tensor was;
    const char *name;
    bool parameter;
    bool swapped;
} shelved;

typedef struct {
    ng_module *module;
    shelved *tensors;
    int count, parameters;
} shelf;

static int count_tensors(ng_module *module, bool parameters)
{
    int count = 0;
    ng_named_tensor named;
    while (parameters ? ng_module_parameter(module, count, &named)
                      : ng_module_buffer(module, count, &named)) {
        count++;
    }
    return count;
}

static bool list_tensors(shelf *s)
{
    s->parameters = count_tensors(s->module, true);
    s->count = s->parameters + count_tensors(s->module, false);
    s->tensors = ng_calloc("ng_check_module", s->count + 1, sizeof *s->tensors);
    if (!s->tensors) return false;
    for (int i = 0; i < s->count; i++) {
        bool parameter = i < s->parameters;
        ng_named_tensor named = {0};
        bool found = parameter ? ng_module_parameter(s->module, i, &named)
                               : ng_module_buffer(s->module, i - s->parameters, &named);
        if (!found) return false;
        s->tensors[i] =
            (shelved){.tensor = named.tensor, .name = named.name, .parameter = parameter};
    }
    return true;
}

/* Gives the tensor double values of its own (int64 stays int64), to move and to randomise. */
static bool swap_in(shelved *item)
{
    ng_tensor *x = item->tensor;
    ng_dtype dtype = x->dtype == NG_I64 ? NG_I64 : NG_F64;
    ng_tensor *copy = ng_copy_new(x, dtype);
    if (!copy) return false;
    item->was = *x;
    item->swapped = true;
    x->dtype = dtype;
    x->data = copy->data;
    x->grad = NULL;
    x->requires_grad = item->parameter;
    copy->data = NULL;
    ng_tensor_destroy(copy);
    return true;
}

static void give_back(shelf *s)
{
    for (int i = s->count - 1; i >= 0 && s->tensors; i--) {
        shelved *item = &s->tensors[i];
        if (!item->swapped) continue;
        ng_free(item->tensor->data);
        if (item->tensor->grad) ng_tensor_destroy(item->tensor->grad);
        *item->tensor = item->was;
    }
    ng_free(s->tensors);
}

static bool constant_at(const ng_tensor *x, double value)
{
    for (int64_t i = 0; i < x->size; i++) {
        if (ng_tensor_load(x, i) != value) return false;
    }
    return true;
}

/* Zeros become normal values, ones values around 1 that stay positive, as a variance must. */
static void randomise(const shelved *item, ng_rng *rng)
{
    ng_tensor *x = item->tensor;
    bool zeros = constant_at(x, 0), ones = constant_at(x, 1);
    if (x->dtype != NG_F64 || !(zeros || ones) || (!item->parameter && x->size == 1)) return;
    for (int64_t i = 0; i < x->size; i++) {
        double value = zeros ? 0.5 * ng_rng_normal(rng) : 0.5 + ng_rng_uniform(rng);
        ng_tensor_store(x, i, value);
    }
}

static ng_tensor *forward(ng_tape *tape, ng_tensor *const *inputs, void *context)
{
    return ng_forward(context, tape, inputs[0]);
}

static ng_tensor *forward_given(ng_tape *tape, ng_tensor *const *inputs, void *context)
{
    return ng_forward_given(context, tape, inputs[0], inputs[1]);
}

static bool prepare(shelf *s, ng_subject *subject, const ng_check_options *options,
                    ng_check_report *report)
{
    ng_check_call *call = options->n_inputs == 2 ? forward_given : forward;
    ng_rng rng = ng_check_rng(options->seed, NG_CHECK_PARAMETERS);
    if (!ng_subject_open(subject, call, s->module, options, s->parameters, s->count - s->parameters,
                         report)) {
        return false;
    }
    for (int i = 0; i < s->count; i++) {
        shelved *item = &s->tensors[i];
        if (!swap_in(item)) return false;
        randomise(item, &rng);
        bool added = item->parameter ? ng_subject_add_leaf(subject, item->name, item->tensor)
                                     : ng_subject_add_state(subject, item->tensor);
        if (!added) return false;
    }
    return true;
}

ng_check_report ng_check_module_with(ng_module *module, ng_check_options options)
{
    static const char *const names[] = {"x", "condition"};
    ng_check_report report = ng_check_report_new(&options);
    if (report.message[0]) return report;
    if (!module) {
        ng_check_say(&report, "there is no module to check: %s", ng_check_reason());
        ng_note_null("ng_check_module", "module");
        return report;
    }
    if (options.n_inputs != 1 && options.n_inputs != 2) {
        ng_check_say(&report, "%d inputs were given: a module takes x, or x and a condition",
                     options.n_inputs);
        return report;
    }
    if (options.context) {
        ng_check_say(&report, "there is a .context, which no function of a module is handed");
        return report;
    }
    if (!options.names) options.names = names;
    shelf s = {.module = module};
    ng_subject subject = {0};
    if (list_tensors(&s) && prepare(&s, &subject, &options, &report)) {
        ng_check_subject(&subject, &options, &report);
    } else {
        ng_check_say(&report, "the check could not be set up: %s", ng_check_reason());
    }
    ng_subject_close(&subject);
    give_back(&s);
    return report;
}
