/* The cases of all layers, file by file. */
#include "nn/module.h"

#define LIST(file) {ng_layer_cases_##file, &ng_layer_cases_##file##_count},
static const ng_case_list lists[] = {NG_LAYER_FILES(LIST)};

const ng_case *ng_layer_case(int index) { return ng_case_at(lists, NG_CASE_COUNT(lists), index); }
