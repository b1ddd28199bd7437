/* Collective calls, for the rest of the library. */
#ifndef NG_GROUP_COLLECTIVE_H
#define NG_GROUP_COLLECTIVE_H

#include "core/error.h"
#include <normgrad/group.h>

/* Every rank begins a call with this. `format` says what is called, and with which sizes. NG_OK if
 * all ranks say the same and none has a failure on its record. Else it is an error on all ranks,
 * and the group has ended. So a rank that has failed begins the call all the same. */
ng_status ng_group_call(ng_group *group, const char *function, const char *format, ...)
    NG_PRINTF(3, 4);

/* Data may follow; the sizes are those of all ranks. An error is the link's. */

/* Puts the `bytes` bytes of each rank into `all`, by rank. */
ng_status ng_group_rows(ng_group *group, const void *mine, void *all, size_t bytes);

/* The numbers of an array that is added up: `count` and some more, a multiple of the ranks. */
int64_t ng_group_padded(const ng_group *group, int64_t count);

/* Adds arrays up over the ranks, in place. */
ng_status ng_group_add(ng_group *group, ng_dtype dtype, void *data, int64_t count);

#endif
