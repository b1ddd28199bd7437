/* The cases of all layers, of src/nn/ and src/norms/. */
#include "tape/case.h"

#define CASES(file)                                                                                \
    extern const ng_case ng_layer_cases_##file[];                                                  \
    extern const int ng_layer_cases_##file##_count;
#include "norms/cases.def"
#undef CASES

#define CASES(file) {ng_layer_cases_##file, &ng_layer_cases_##file##_count},
static const ng_case_list layer_case_lists[] = {
#include "norms/cases.def"
};

const ng_case *ng_layer_case(int index)
{
    return ng_case_at(layer_case_lists, NG_CASE_COUNT(layer_case_lists), index);
}
#undef CASES
