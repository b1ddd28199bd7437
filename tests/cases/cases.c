/* The cases one after the other; their inputs drawn; a case checked. */
#include "table.h"
#include <math.h>
#include <string.h>

/* The case of this index in lists, of which the last is NULL. */
static const gradient_case *case_in(const case_list *const *lists, int index)
{
    for (; *lists; lists++) {
        if (index < (*lists)->count) return &(*lists)->cases[index];
        index -= (*lists)->count;
    }
    return NULL;
}

const gradient_case *op_case(int index)
{
    static const case_list *const lists[] = {&op_cases, &norm_op_cases, &fused_cases, NULL};
    return case_in(lists, index);
}

const gradient_case *layer_case(int index)
{
    static const case_list *const lists[] = {&nn_cases, &norm_cases, NULL};
    return case_in(lists, index);
}

bool case_is_norm(const gradient_case *spec)
{
    const case_list *lists[] = {&norm_op_cases, &norm_cases};
    for (int i = 0; i < 2; i++)
        if (spec >= lists[i]->cases && spec < lists[i]->cases + lists[i]->count) return true;
    return false;
}

const gradient_case *large_case(int index)
{
    static const case_list *const lists[] = {&large_norm_cases, &large_cases, NULL};
    return case_in(lists, index);
}

int case_count(const gradient_case *case_at(int index))
{
    int count = 0;
    while (case_at(count)) count++;
    return count;
}

/* From `low` on. Where there is room each one comes twice: a mask leaves something. */
static void draw_indices(ng_tensor *x, int64_t low, int64_t count, ng_rng *rng)
{
    int64_t *values = ng_data_i64(x);
    const bool shuffled = ng_size(x) >= 2 * count;
    for (int64_t i = 0; i < ng_size(x); i++) {
        const int64_t j = shuffled ? ng_rng_below(rng, i + 1) : i;
        values[i] = values[j];
        values[j] = low + (shuffled ? i % count : ng_rng_below(rng, count));
    }
}

ng_tensor *case_input_new(const case_input *input, ng_rng *rng)
{
    const double low = input->low, high = input->high;
    const bool normal = low == 0 && high == 0;
    if (!normal && !(low < high)) return NULL;
    ng_tensor *x = ng_zeros_new(input->index ? NG_I64 : NG_F64, input->shape);
    if (x && input->index) return draw_indices(x, (int64_t)low, (int64_t)(high - low), rng), x;
    for (int64_t i = 0; i < ng_size(x); i++) {
        double value = 0;
        for (int draws = 0; draws == 0 || fabs(value) < input->avoid; draws++) {
            if (draws == 1000) return ng_tensor_free(x), NULL;
            value = normal ? ng_rng_normal(rng) : low + (high - low) * ng_rng_uniform(rng);
        }
        ng_data_f64(x)[i] = value;
    }
    return x;
}

ng_inputs case_inputs(const gradient_case *spec, ng_tensor *const *inputs)
{
    ng_inputs in = {.x = inputs[0]};
    const struct {
        const char *name;
        ng_tensor **place;
    } places[] = {{"condition", &in.condition}, {"mask", &in.mask},   {"lengths", &in.lengths},
                  {"memory", &in.memory},       {"style", &in.style}, {"gate", &in.gate}};
    for (int i = 1; i < CASE_INPUTS && spec->inputs[i].name; i++)
        for (size_t k = 0; k < sizeof places / sizeof *places; k++)
            if (strcmp(places[k].name, spec->inputs[i].name) == 0) *places[k].place = inputs[i];
    return in;
}

ng_check_report check_case(const gradient_case *spec, ng_check_options options)
{
    ng_tensor *inputs[CASE_INPUTS];
    const char *names[CASE_INPUTS];
    bool constant[CASE_INPUTS];
    int n = 0;
    /* Other numbers than the checker draws from the seed: a norm's gradient does not see a
     * cotangent that is equal to x. */
    ng_rng rng = ng_rng_seeded((options.seed + 1) * 0x9e3779b97f4a7c15 + 4 * 0xd1b54a32d192ed03);
    for (; n < CASE_INPUTS && spec->inputs[n].name; n++) {
        names[n] = spec->inputs[n].name;
        constant[n] = spec->inputs[n].constant;
        inputs[n] = case_input_new(&spec->inputs[n], &rng);
    }
    options.inputs = inputs;
    options.n_inputs = n;
    options.names = names;
    options.constant = constant;
    ng_module *module = spec->module ? spec->module() : NULL;
    if (module && spec->eval) ng_eval(module);
    ng_check_report report = spec->module ? ng_check_module_with(module, options)
                                          : ng_check_function_with(spec->call, options);
    ng_module_free(module);
    for (int i = 0; i < n; i++) ng_tensor_free(inputs[i]);
    return report;
}

gradient_case case_broadcast(const gradient_case *spec, broadcast_side side)
{
    gradient_case result = *spec;
    ng_shape *left = &result.inputs[0].shape, *right = &result.inputs[1].shape;
    ng_shape *shorter = side == BROADCAST_LEFT ? left : side == BROADCAST_BOTH ? right : NULL;
    ng_shape *narrow = side == BROADCAST_RIGHT ? right : side == BROADCAST_BOTH ? left : NULL;
    if (shorter) {
        for (int i = 1; i < shorter->rank; i++) shorter->dim[i - 1] = shorter->dim[i];
        shorter->dim[--shorter->rank] = 0;
    }
    if (narrow) narrow->dim[narrow->rank - 1] = 1;
    return result;
}
