/* The cases of all ops. */
#include "tape/case.h"

#define CASES(file)                                                                                \
    extern const ng_case ng_op_cases_##file[];                                                     \
    extern const int ng_op_cases_##file##_count;
#include "ops/cases.def"
#undef CASES

#define CASES(file) {ng_op_cases_##file, &ng_op_cases_##file##_count},
static const ng_case_list lists[] = {
#include "ops/cases.def"
};

const ng_case *ng_op_case(int index) { return ng_case_at(lists, NG_CASE_COUNT(lists), index); }
#undef CASES
