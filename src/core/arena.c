/* A stack of memory in a few large blocks. */
#include "core/arena.h"
#include "core/alloc.h"
#include <stdlib.h>

/* Under AddressSanitizer memory is poisoned until it is allocated. */
#ifdef NG_ARENA_FORGETS
#include <sanitizer/asan_interface.h>
#define POISON(memory, bytes) ASAN_POISON_MEMORY_REGION(memory, bytes)
#define UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
#define POISON(memory, bytes) ((void)(memory), (void)(bytes))
#define UNPOISON(memory, bytes) ((void)(memory), (void)(bytes))
#endif

enum { ARENA_ALIGNMENT = 64, SMALLEST_BLOCK = 1 << 16 };

/* The header takes one cache line, so that what follows it is aligned. */
struct ng_arena_block {
    _Alignas(ARENA_ALIGNMENT) ng_arena_block *older;
    int64_t used, size; /* of the bytes that follow */
};

static char *arena_block_bytes(ng_arena_block *block) { return (char *)(block + 1); }

/* Not ng_calloc: the thread that first writes to a page should be the one that uses it. */
static ng_arena_block *block_new(int64_t size)
{
    ng_arena_block *block = aligned_alloc(ARENA_ALIGNMENT, sizeof *block + (size_t)size);
    if (!block) return NULL;
    ng_prefer_huge_pages(block, sizeof *block + (size_t)size);
    *block = (ng_arena_block){.size = size};
    POISON(arena_block_bytes(block), (size_t)size);
    return block;
}

static void block_free(ng_arena_block *block)
{
    UNPOISON(arena_block_bytes(block), (size_t)block->size);
    free(block);
}

static ng_arena_block *arena_add_block(ng_arena *arena, int64_t bytes)
{
    int64_t size = arena->kept > SMALLEST_BLOCK ? arena->kept : SMALLEST_BLOCK;
    if (size < bytes) size = bytes;
    ng_arena_block *block = block_new(size);
    if (!block && size > bytes) block = block_new(size = bytes);
    if (!block) return NULL;
    block->older = arena->block;
    arena->block = block;
    arena->kept += size;
    return block;
}

static void *arena_refuse(const char *function, size_t bytes)
{
    ng_fail(NG_ENOMEM, "%s: out of memory: %zu bytes on the tape", function, bytes);
    return NULL;
}

void *ng_arena_alloc(const char *function, ng_arena *arena, size_t bytes)
{
    if (bytes > PTRDIFF_MAX / 4) return arena_refuse(function, bytes);
    const int64_t needed =
        ((int64_t)bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    ng_arena_block *block = arena->block;
    if (!block || block->size - block->used < needed) block = arena_add_block(arena, needed);
    if (!block) return arena_refuse(function, bytes);
    void *memory = arena_block_bytes(block) + block->used;
    block->used += needed;
    arena->used += needed;
    UNPOISON(memory, bytes);
    return memory;
}

void ng_arena_release(ng_arena *arena)
{
    for (ng_arena_block *block = arena->block, *older; block; block = older) {
        older = block->older;
        block_free(block);
    }
    *arena = (ng_arena){0};
}

void ng_arena_reset(ng_arena *arena)
{
#ifdef NG_ARENA_FORGETS
    ng_arena_release(arena);
#else
    const int64_t kept = arena->kept;
    ng_arena_block *joint = arena->block && arena->block->older ? block_new(kept) : NULL;
    if (joint) {
        ng_arena_release(arena);
        *arena = (ng_arena){.block = joint, .kept = kept};
    }
    for (ng_arena_block *block = arena->block; block; block = block->older) block->used = 0;
    arena->used = 0;
#endif
}

#undef POISON
#undef UNPOISON
