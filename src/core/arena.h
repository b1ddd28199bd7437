/* A stack of memory that is emptied at once and kept for the next use. */
#ifndef NG_CORE_ARENA_H
#define NG_CORE_ARENA_H

#include <normgrad/core.h>

typedef struct ng_arena_block ng_arena_block;
typedef struct {
    ng_arena_block *block; /* the newest; it links to the older ones */
    int64_t used, kept;    /* bytes, over all blocks */
} ng_arena;

/* 64-byte aligned, not initialised; NULL with NG_ENOMEM in the name of `function`. */
void *ng_arena_alloc(const char *function, ng_arena *arena, size_t bytes);

/* Empties the arena. If it had spread over several blocks they are replaced by one of their joint
 * size, so that the next round of the same work allocates nothing. Under AddressSanitizer the
 * memory is poisoned: use after reset is caught. */
void ng_arena_reset(ng_arena *arena);

/* Gives all memory back. */
void ng_arena_release(ng_arena *arena);

#endif
