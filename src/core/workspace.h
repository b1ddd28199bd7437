/* Scratch memory of kernels, kept for the next use. */
#ifndef NG_CORE_WORKSPACE_H
#define NG_CORE_WORKSPACE_H

#include <stddef.h>

typedef struct ng_workspace ng_workspace;

/* At least `bytes` bytes, aligned to 64, for the caller alone until ng_workspace_give. Without
 * memory the result and *memory are NULL; no error is recorded, and the caller does without. */
ng_workspace *ng_workspace_take(size_t bytes, void **memory);
void ng_workspace_give(ng_workspace *workspace); /* NULL: nothing */

/* Frees all workspaces that are not taken. */
void ng_workspaces_free(void);

#endif
