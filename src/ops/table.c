/* The cases of all ops, family by family. */
#include "ops/op.h"

#define LIST(family) {ng_op_cases_##family, &ng_op_cases_##family##_count},
static const ng_case_list lists[] = {NG_FAMILIES(LIST)};

const ng_case *ng_op_case(int index) { return ng_case_at(lists, NG_CASE_COUNT(lists), index); }
