/* Memory for the time of a piece of work, kept for the next. */
#ifndef NG_CORE_WORKSPACE_H
#define NG_CORE_WORKSPACE_H

#include <stddef.h>

typedef struct ng_workspace ng_workspace;

/* At least `bytes` of memory, aligned to 64 bytes, that nobody else has until they are given back.
 * NULL if there is none: then *memory is too, no error is recorded, and the caller does without. */
ng_workspace *ng_workspace_take(size_t bytes, void **memory);
void ng_workspace_give(ng_workspace *workspace); /* NULL: nothing */

/* Frees what nobody has. */
void ng_workspaces_free(void);

#endif
