/* Checks a module in place: its tensors work in double for the time of the check. */
#include "nn/module.h"
#include "check/check.h"
#include "core/error.h"

static bool is_constant_at(const ng_tensor *x, double value)
{
    for (int64_t i = 0; i < x->size; i++)
        if (ng_tensor_load(x, i) != value) return false;
    return true;
}

/* Zeros become normal values, ones values around 1 that stay positive, as a variance must. */
static void randomise(ng_tensor *x, ng_rng *rng)
{
    const bool zeros = is_constant_at(x, 0);
    if (!zeros && !is_constant_at(x, 1)) return;
    for (int64_t i = 0; i < x->size; i++)
        ng_tensor_store(x, i, zeros ? 0.5 * ng_rng_normal(rng) : 0.5 + ng_rng_uniform(rng));
}

/* The context is the subject, whose context is the module. */
static ng_tensor *check_forward(ng_tape *tape, ng_tensor *const *inputs, void *context)
{
    const ng_subject *subject = context;
    const ng_check_options *options = subject->options;
    ng_inputs in = {.x = inputs[0]};
    for (int i = 1; i < options->n_inputs; i++) *ng_input_named(&in, options->names[i]) = inputs[i];
    return ng_forward_with(subject->module, tape, in);
}

static bool module_tensor(ng_module *module, bool buffer, int index, ng_named_tensor *named)
{
    return buffer ? ng_module_buffer(module, index, named)
                  : ng_module_parameter(module, index, named);
}

static bool module_add(ng_subject *subject, const ng_named_tensor *named, bool buffer, ng_rng *rng)
{
    ng_tensor *x = named->tensor;
    const ng_dtype dtype = x->dtype == NG_I64 ? NG_I64 : NG_F64;
    if (!ng_swap_dtype(&subject->leaves[subject->n_tensors].swapped, x, dtype)) return false;
    x->requires_grad = !buffer;
    if (dtype == NG_F64 && (!buffer || x->size > 1)) randomise(x, rng);
    return ng_subject_add(subject, named->name, x, buffer);
}

bool ng_module_open(ng_subject *subject, ng_module *module, const ng_check_options *options,
                    ng_check_report *report)
{
    ng_rng rng = ng_check_rng(options->seed, NG_CHECK_PARAMETERS);
    ng_named_tensor named;
    int count = 0;
    for (int buffer = 0; buffer < 2; buffer++)
        for (int i = 0; module_tensor(module, buffer, i, &named); i++) count++;
    if (!ng_subject_open(subject, check_forward, subject, options, count, report)) return false;
    subject->module = module;
    for (int buffer = 0; buffer < 2; buffer++)
        for (int i = 0; module_tensor(module, buffer, i, &named); i++)
            if (!module_add(subject, &named, buffer, &rng)) return ng_check_stop(report);
    return true;
}

/* Whether the inputs after x have names of ng_forward's inputs; a single one is x. */
static bool inputs_named(ng_check_options *options, ng_check_report *report)
{
    static const char *const only_x[] = {"x"};
    if (options->n_inputs == 1 && !options->names) options->names = only_x;
    if (options->n_inputs < 1) return ng_check_say(report, "there are no inputs: a module takes x");
    if (!options->names)
        return ng_check_say(report,
                            "%d inputs, but .names gives none: expected those of ng_forward, such "
                            "as \"x\" and \"condition\"",
                            options->n_inputs);
    ng_inputs in;
    for (int i = 1; i < options->n_inputs; i++)
        if (!options->names[i] || !ng_input_named(&in, options->names[i]))
            return ng_check_say(report,
                                "input %d is named \"%s\", expected a name of ng_forward's, such "
                                "as \"condition\"",
                                i + 1, options->names[i] ? options->names[i] : "");
    return true;
}

ng_check_report ng_check_module_with(ng_module *module, ng_check_options options)
{
    ng_check_report report = ng_check_report_new(&options);
    if (report.message[0]) return report;
    if (!module) {
        ng_check_say(&report, "there is no module to check: %s", ng_check_reason());
        ng_note_null("ng_check_module", "module");
        return report;
    }
    if (!inputs_named(&options, &report)) return report;
    if (options.context) {
        ng_check_say(&report, "there is a .context, which no function of a module is handed");
        return report;
    }
    return ng_check(&(ng_checked){.module = module}, &options);
}
