/* Checks a module in place: its tensors work in double for the time of the check. */
#include "check/check.h"
#include "core/error.h"
#include <math.h>

typedef struct {
    ng_named_tensor named;
    ng_swapped swapped;
    bool parameter;
} module_tensor;

typedef struct {
    ng_module *module;
    module_tensor *tensors; /* the parameters, then the buffers */
    int count, parameters;
} module_state;

static int count_tensors(ng_module *module, bool parameters)
{
    int count = 0;
    ng_named_tensor named;
    while (parameters ? ng_module_parameter(module, count, &named)
                      : ng_module_buffer(module, count, &named))
        count++;
    return count;
}

static bool list_tensors(module_state *s)
{
    s->parameters = count_tensors(s->module, true);
    s->count = s->parameters + count_tensors(s->module, false);
    s->tensors = ng_calloc("ng_check_module", s->count + 1, sizeof *s->tensors);
    for (int i = 0; s->tensors && i < s->count; i++) {
        module_tensor *item = &s->tensors[i];
        item->parameter = i < s->parameters;
        if (!(item->parameter ? ng_module_parameter(s->module, i, &item->named)
                              : ng_module_buffer(s->module, i - s->parameters, &item->named)))
            return false;
    }
    return s->tensors;
}

static void give_back(module_state *s)
{
    for (int i = s->count - 1; i >= 0 && s->tensors; i--) ng_swap_back(&s->tensors[i].swapped);
    ng_free(s->tensors);
}

static bool is_constant_at(const ng_tensor *x, double value)
{
    for (int64_t i = 0; i < x->size; i++)
        if (ng_tensor_load(x, i) != value) return false;
    return true;
}

/* Zeros become normal values, ones values around 1 that stay positive, as a variance must. */
static void randomise(const module_tensor *item, ng_rng *rng)
{
    ng_tensor *x = item->named.tensor;
    bool zeros = is_constant_at(x, 0), ones = is_constant_at(x, 1);
    if (x->dtype != NG_F64 || !(zeros || ones) || (!item->parameter && x->size == 1)) return;
    for (int64_t i = 0; i < x->size; i++) {
        double value = zeros ? 0.5 * ng_rng_normal(rng) : 0.5 + ng_rng_uniform(rng);
        ng_tensor_store(x, i, value);
    }
}

static ng_tensor *check_forward(ng_tape *tape, ng_tensor *const *inputs, void *context)
{
    return ng_forward(context, tape, inputs[0]);
}

static ng_tensor *check_forward_conditioned(ng_tape *tape, ng_tensor *const *inputs, void *context)
{
    return ng_forward_conditioned(context, tape, inputs[0], inputs[1]);
}

static bool prepare(module_state *s, ng_subject *subject, const ng_check_options *options,
                    ng_check_report *report)
{
    ng_check_call *call = options->n_inputs == 2 ? check_forward_conditioned : check_forward;
    ng_rng rng = ng_check_rng(options->seed, NG_CHECK_PARAMETERS);
    if (!list_tensors(s) || !ng_subject_open(subject, call, s->module, options, s->parameters,
                                             s->count - s->parameters, report))
        return false;
    for (int i = 0; i < s->count; i++) {
        module_tensor *item = &s->tensors[i];
        ng_tensor *x = item->named.tensor;
        const ng_dtype work = x->dtype == NG_I64 ? NG_I64 : NG_F64;
        if (!ng_swap_dtype(&item->swapped, x, work, work)) return false;
        x->requires_grad = item->parameter;
        randomise(item, &rng);
        if (!(item->parameter ? ng_subject_add_leaf(subject, item->named.name, x)
                              : ng_subject_add_state(subject, x)))
            return false;
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
    module_state s = {.module = module};
    ng_subject subject = {0};
    if (prepare(&s, &subject, &options, &report))
        ng_check_subject(&subject);
    else
        ng_check_stop(&report);
    ng_subject_close(&subject);
    give_back(&s);
    return report;
}
