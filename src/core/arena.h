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
 * size, so that the next round of the same work allocates nothing. */
void ng_arena_reset(ng_arena *arena);

/* Defined under AddressSanitizer: there a reset gives all memory back. The sanitizer holds what was
 * freed back for a while, so that use after reset is caught even when later work fills the arena
 * again, and its report shows the line of the reset. */
#if defined(__SANITIZE_ADDRESS__)
#define NG_ARENA_FORGETS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NG_ARENA_FORGETS
#endif
#endif

/* Gives all memory back. */
void ng_arena_release(ng_arena *arena);

#endif
