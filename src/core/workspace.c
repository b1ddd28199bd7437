/* Scratch memory of kernels, kept for the next use. */
#include "core/workspace.h"
#include "core/alloc.h"
#include <stdatomic.h>

struct ng_workspace {
    atomic_bool taken;
    void *memory;
    size_t bytes;
};

/* One for each thread that the pool may have. A program's own threads use what is free. */
static ng_workspace spaces[NG_MOST_THREADS];

static bool workspace_try(ng_workspace *space)
{
    return !atomic_load_explicit(&space->taken, memory_order_relaxed) &&
           !atomic_exchange_explicit(&space->taken, true, memory_order_acquire);
}

void ng_workspace_give(ng_workspace *space)
{
    if (space) atomic_store_explicit(&space->taken, false, memory_order_release);
}

static void empty(ng_workspace *space)
{
    ng_free(space->memory);
    space->memory = NULL;
    space->bytes = 0;
}

static bool workspace_fill(ng_workspace *space, size_t bytes)
{
    if (space->bytes >= bytes) return true;
    empty(space);
    space->memory = ng_allocate_quietly(bytes);
    if (space->memory) space->bytes = bytes;
    return space->memory;
}

ng_workspace *ng_workspace_take(size_t bytes, void **memory)
{
    *memory = NULL;
    for (int i = 0; i < NG_MOST_THREADS; i++) {
        if (!workspace_try(&spaces[i])) continue;
        if (workspace_fill(&spaces[i], bytes)) {
            *memory = spaces[i].memory;
            return &spaces[i];
        }
        ng_workspace_give(&spaces[i]);
        return NULL;
    }
    return NULL;
}

void ng_workspaces_free(void)
{
    for (int i = 0; i < NG_MOST_THREADS; i++) {
        if (!workspace_try(&spaces[i])) continue;
        empty(&spaces[i]);
        ng_workspace_give(&spaces[i]);
    }
}

__attribute__((destructor)) static void free_at_end(void) { ng_workspaces_free(); }
