/* How two members' data become one. */
#ifndef NG_GROUP_COMBINE_H
#define NG_GROUP_COMBINE_H

#include "group/team.h"

/* Of `count` numbers, words or moments; `how` is an ng_combining. */
size_t ng_combined_bytes(int32_t how, int64_t count);

/* to = left + right; `to` is one of them. */
void ng_combine(int32_t how, int64_t count, const void *left, const void *right, void *to);

#endif
