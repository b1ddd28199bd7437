/* Cases: inputs drawn, and checked. */
#include "check/check.h"
#include <math.h>

static bool well_formed(const ng_case_input *input)
{
    if (input->index && !(ceil(input->low) < input->high)) {
        ng_fail(NG_EVALUE, "ng_case_input_new: %s has no index in [%g, %g)", input->name,
                input->low, input->high);
        return false;
    }
    bool normal = input->low == 0 && input->high == 0;
    double reach = fmax(fabs(input->low), fabs(input->high));
    if (!normal && !(input->low < input->high && input->avoid < reach)) {
        ng_fail(NG_EVALUE, "ng_case_input_new: %s has no value in [%g, %g) with |value| >= %g",
                input->name, input->low, input->high, input->avoid);
        return false;
    }
    return true;
}

static double draw(const ng_case_input *input, ng_rng *rng)
{
    bool normal = input->low == 0 && input->high == 0;
    double value;
    do {
        value = normal ? ng_rng_normal(rng)
                       : input->low + (input->high - input->low) * ng_rng_uniform(rng);
    } while (fabs(value) < input->avoid);
    return value;
}

ng_tensor *ng_case_input_new(const ng_case_input *input, ng_rng *rng)
{
    if (!ng_given("ng_case_input_new", "input", input) ||
        !ng_given("ng_case_input_new", "rng", rng) || !well_formed(input))
        return NULL;
    ng_tensor *x = ng_zeros_new(input->index ? NG_I64 : NG_F64, input->shape);
    if (!x) return NULL;
    int64_t low = input->index ? (int64_t)ceil(input->low) : 0;
    int64_t span = input->index ? (int64_t)ceil(input->high) - low : 0;
    for (int64_t i = 0; i < x->size; i++) {
        if (input->index) {
            ((int64_t *)x->data)[i] = low + ng_rng_below(rng, span);
        } else {
            ((double *)x->data)[i] = draw(input, rng);
        }
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
    if (spec->call && (spec->module || spec->eval)) {
        ng_check_say(&report, "the case is an op, and has %s, which only a layer has",
                     spec->module ? "a constructor" : "a mode");
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

static void drop_first(ng_shape *shape)
{
    if (shape->rank == 0) return;
    for (int i = 1; i < shape->rank; i++) shape->dim[i - 1] = shape->dim[i];
    shape->dim[--shape->rank] = 0;
}

static void narrow_last(ng_shape *shape)
{
    if (shape->rank > 0) shape->dim[shape->rank - 1] = 1;
}

ng_case ng_case_broadcast(const ng_case *spec, ng_broadcast_side side)
{
    if (!ng_given("ng_case_broadcast", "spec", spec)) return (ng_case){0};
    ng_case narrow = *spec;
    ng_shape *left = &narrow.inputs[0].shape, *right = &narrow.inputs[1].shape;
    if (side == NG_BROADCAST_LEFT) drop_first(left);
    if (side == NG_BROADCAST_RIGHT) narrow_last(right);
    if (side == NG_BROADCAST_BOTH) {
        narrow_last(left);
        drop_first(right);
    }
    return narrow;
}
