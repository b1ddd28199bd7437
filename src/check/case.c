/* Cases: inputs drawn, and checked. */
#include "check/check.h"
#include <math.h>

ng_tensor *ng_case_input_new(const ng_case_input *input, ng_rng *rng)
{
    static const char function[] = "ng_case_input_new";
    if (!ng_given(function, "input", input) || !ng_given(function, "rng", rng)) return NULL;
    const double low = input->low, high = input->high, avoid = input->avoid;
    const bool normal = low == 0 && high == 0;
    if (input->index && !(ceil(low) < high))
        return ng_fail(NG_EVALUE, "%s: %s has no index in [%g, %g)", function, input->name, low,
                       high),
               NULL;
    if (!normal && !(low < high && avoid < fmax(fabs(low), fabs(high))))
        return ng_fail(NG_EVALUE, "%s: %s has no value in [%g, %g) with |value| >= %g", function,
                       input->name, low, high, avoid),
               NULL;
    ng_tensor *x = ng_zeros_new(input->index ? NG_I64 : NG_F64, input->shape);
    const int64_t first = input->index ? (int64_t)ceil(low) : 0;
    const int64_t span = input->index ? (int64_t)ceil(high) - first : 0;
    for (int64_t i = 0; x && i < x->size; i++) {
        if (input->index) {
            ((int64_t *)x->data)[i] = first + ng_rng_below(rng, span);
            continue;
        }
        double value;
        do value = normal ? ng_rng_normal(rng) : low + (high - low) * ng_rng_uniform(rng);
        while (fabs(value) < avoid);
        ng_tensor_store(x, i, value);
    }
    return x;
}

static ng_check_report check_inputs(const ng_case *spec, const ng_check_options *options)
{
    if (!spec->module) return ng_check_function_with(spec->call, *options);
    ng_module *module = spec->module();
    if (module && spec->eval) ng_eval(module);
    ng_check_report report = ng_check_module_with(module, *options);
    ng_module_free(module);
    return report;
}

ng_check_report ng_check_case(const ng_case *spec, ng_check_options options)
{
    ng_tensor *inputs[NG_CASE_INPUTS] = {0};
    const char *names[NG_CASE_INPUTS];
    bool constant[NG_CASE_INPUTS];
    int n = 0;
    ng_check_report report = ng_check_report_new(&options);
    ng_rng rng = ng_check_rng(options.seed, NG_CHECK_INPUT_VALUES);
    if (!ng_given("ng_check_case", "spec", spec)) {
        ng_check_say(&report, "there is no case to check");
        return report;
    }
    for (; n < NG_CASE_INPUTS && spec->inputs[n].name; n++) {
        names[n] = spec->inputs[n].name;
        constant[n] = spec->inputs[n].constant;
        inputs[n] = ng_case_input_new(&spec->inputs[n], &rng);
        if (!inputs[n])
            ng_check_say(&report, "%s could not be drawn: %s", names[n], ng_check_reason());
    }
    options.inputs = inputs;
    options.n_inputs = n;
    options.names = names;
    options.constant = constant;
    if (!report.message[0]) report = check_inputs(spec, &options);
    for (int i = 0; i < n; i++) ng_tensor_free(inputs[i]);
    return report;
}

/* ---- Broadcasting -------------------------------------------------------------------------- */

ng_case ng_case_broadcast(const ng_case *spec, ng_broadcast_side side)
{
    if (!ng_given("ng_case_broadcast", "spec", spec)) return (ng_case){0};
    ng_case result = *spec;
    ng_shape *left = &result.inputs[0].shape, *right = &result.inputs[1].shape;
    ng_shape *shorter = side == NG_BROADCAST_LEFT ? left : side == NG_BROADCAST_BOTH ? right : NULL;
    ng_shape *narrow = side == NG_BROADCAST_RIGHT ? right : side == NG_BROADCAST_BOTH ? left : NULL;
    if (shorter && shorter->rank > 0) {
        for (int i = 1; i < shorter->rank; i++) shorter->dim[i - 1] = shorter->dim[i];
        shorter->dim[--shorter->rank] = 0;
    }
    if (narrow && narrow->rank > 0) narrow->dim[narrow->rank - 1] = 1;
    return result;
}
