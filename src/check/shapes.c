/* Other shapes of the first input: ranks 2 to 5, lengths that fill no vector, one row, no row. */
#include "check/check.h"
#include "core/error.h"
#include <string.h>

/* Lengths of the given input. */
enum { LAST = -1, CHANNELS = -2 };
static const ng_shape other_shapes[] = {
    {2, {1, LAST}},
    {2, {17, LAST}},
    {2, {0, LAST}},
    {3, {2, 3, LAST}},
    {3, {1, 1, LAST}},
    {4, {2, 1, 3, LAST}},
    {5, {1, 2, 3, 2, LAST}},
    {3, {2, CHANNELS, 7}},
    {3, {1, CHANNELS, 1}},
    {3, {0, CHANNELS, 3}},
    {3, {1, CHANNELS, 19}},
    {4, {2, CHANNELS, 3, 5}},
    {5, {2, CHANNELS, 1, 3, 2}},
};

/* Filled with elements of the given input, floats up to a tenth larger: in the same range. */
static ng_tensor *input_of(const ng_tensor *given, ng_shape shape, ng_rng *rng)
{
    const int64_t n = given->shape.dim[given->shape.rank - 1], c = given->shape.dim[1];
    for (int d = 0; d < shape.rank; d++)
        if (shape.dim[d] < 0) shape.dim[d] = shape.dim[d] == LAST ? n : c;
    ng_tensor *x = ng_zeros_new(given->dtype, shape);
    for (int64_t i = 0; x && given->size > 0 && i < x->size; i++) {
        const double value = ng_tensor_load(given, ng_rng_below(rng, given->size));
        ng_tensor_store(x, i, x->dtype == NG_I64 ? value : value * (1 + 0.1 * ng_rng_uniform(rng)));
    }
    return x;
}

/* Checks one shape. One that the function refuses is left out; the report of one that passes is
 * added to that of the given inputs, and takes its place if it does not. */
static void check_shape(const ng_checked *what, const ng_check_options *options,
                        ng_check_report *report)
{
    bool refused;
    ng_check_report one = ng_check_once(what, options, &refused);
    if (refused) return;
    report->shapes++;
    report->compared += one.compared;
    report->kinks += one.kinks;
    if (one.passed) return;
    one.shapes = report->shapes, one.compared = report->compared, one.kinks = report->kinks;
    *report = one;
    char place[80];
    snprintf(place, sizeof place, "first input %.60s",
             ng_shape_print(options->inputs[0]->shape).text);
    ng_check_place(report, place);
}

void ng_check_shapes(const ng_checked *what, ng_check_options options, ng_check_report *report)
{
    const ng_tensor *given = options.inputs[0];
    ng_rng rng = ng_check_rng(options.seed, NG_CHECK_SHAPES);
    ng_tensor **inputs = ng_calloc("ng_check_function", options.n_inputs, sizeof *inputs);
    report->passed = inputs && given->shape.rank > 1;
    if (inputs && !report->passed)
        ng_check_say(report, "other shapes were asked for of %s: expected two dimensions or more",
                     ng_shape_print(given->shape).text);
    for (size_t i = 0; i < sizeof other_shapes / sizeof *other_shapes && report->passed; i++) {
        memcpy(inputs, options.inputs, (size_t)options.n_inputs * sizeof *inputs);
        inputs[0] = input_of(given, other_shapes[i], &rng);
        report->passed = inputs[0];
        ng_check_options other = options;
        other.inputs = inputs;
        other.mode = NG_CHECK_FAST;
        if (inputs[0]) check_shape(what, &other, report);
        ng_tensor_free(inputs[0]);
    }
    ng_free(inputs);
    if (!report->passed) ng_check_stop(report);
}
