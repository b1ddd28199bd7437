/* A stack of memory that is emptied at once and kept for the next use. */
#ifndef NG_CORE_ARENA_H
#define NG_CORE_ARENA_H

#include <normgrad/core.h>

typedef struct ng_arena_block ng_arena_block;
typedef struct {
    ng_arena_block *block;    /* the newest; it links to the older ones */
    ng_arena_block *replaced; /* by one block at the last reset; not used any more */
    int64_t used, kept;       /* bytes, over all blocks but those */
} ng_arena;

/* Not initialised; aligned to 16 bytes, from 256 bytes on to 64. NULL with NG_ENOMEM in the name of
 * `function`. */
void *ng_arena_alloc(const char *function, ng_arena *arena, size_t bytes);

/* Whether the address is in memory of the arena. */
bool ng_arena_holds(const ng_arena *arena, const void *address);

/* Empties the arena. Several blocks are replaced by one of their total size, so that the next round
 * of the same work allocates nothing. Replaced blocks of up to 64 MB are freed at the next reset:
 * until then a tensor in them can be read, and is known to be from before the reset. */
void ng_arena_reset(ng_arena *arena);

/* Defined under AddressSanitizer: a reset then frees all memory. The sanitizer does not reuse it
 * for a while. So it catches a use after the reset, also after later work, and reports the line of
 * the reset. */
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
