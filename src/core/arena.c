/* A stack of memory in a few large blocks. */
#include "core/arena.h"
#include "core/alloc.h"

/* Under AddressSanitizer memory is poisoned until it is allocated, and so is a gap behind each
 * piece. */
#ifdef NG_ARENA_FORGETS
#include <sanitizer/asan_interface.h>
enum { GAP = 16 };
#define POISON(memory, bytes) ASAN_POISON_MEMORY_REGION(memory, bytes)
#define UNPOISON(memory, bytes) ASAN_UNPOISON_MEMORY_REGION(memory, bytes)
#else
enum { GAP = 0 };
#define POISON(memory, bytes) ((void)(memory), (void)(bytes))
#define UNPOISON(memory, bytes) ((void)(memory), (void)(bytes))
#endif

/* Small pieces are packed: a tensor of a few numbers, its elements and its node share lines. */
enum { SMALL_ALIGNMENT = 16, LARGE_ALIGNMENT = 64, LARGE_BYTES = 256, SMALLEST_BLOCK = 1 << 16 };
enum { MOST_REPLACED = 64 << 20 }; /* bytes */

/* The header takes one cache line, so that what follows it is aligned. */
struct ng_arena_block {
    _Alignas(LARGE_ALIGNMENT) ng_arena_block *older;
    size_t used, size; /* of the bytes that follow */
};

static char *arena_block_bytes(ng_arena_block *block) { return (char *)(block + 1); }

/* Not ng_calloc: the thread that first writes to a page should be the one that uses it. */
static ng_arena_block *block_new(size_t size)
{
    ng_arena_block *block = ng_memory.allocate(LARGE_ALIGNMENT, sizeof *block + size);
    if (!block) return NULL;
    ng_prefer_huge_pages(block, sizeof *block + size);
    *block = (ng_arena_block){.size = size};
    POISON(arena_block_bytes(block), size);
    return block;
}

static void block_free(ng_arena_block *block)
{
    UNPOISON(arena_block_bytes(block), block->size);
    ng_memory.free(block);
}

static size_t round_up(size_t bytes, size_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

/* Adds a block of at least `bytes` bytes, as large as all before it if there is memory for that. */
static bool arena_add_block(ng_arena *arena, size_t bytes)
{
    const size_t needed = round_up(bytes, LARGE_ALIGNMENT);
    size_t size = arena->kept > SMALLEST_BLOCK ? (size_t)arena->kept : SMALLEST_BLOCK;
    if (size < needed) size = needed;
    ng_arena_block *block = block_new(size);
    if (!block && size > needed) block = block_new(size = needed);
    if (!block) return false;
    block->older = arena->block;
    arena->block = block;
    arena->kept += (int64_t)size;
    return true;
}

/* Not inlined: ng_arena_alloc would then save registers on every call. */
static __attribute__((noinline)) void *alloc_in_new_block(const char *function, ng_arena *arena,
                                                          size_t bytes)
{
    if (bytes <= PTRDIFF_MAX / 4 && arena_add_block(arena, bytes + GAP))
        return ng_arena_alloc(function, arena, bytes);
    ng_fail(NG_ENOMEM, "%s: out of memory: %zu bytes on the tape", function, bytes);
    return NULL;
}

void *ng_arena_alloc(const char *function, ng_arena *arena, size_t bytes)
{
    ng_arena_block *block = arena->block;
    size_t begin = block ? block->used : 0;
    if (bytes >= LARGE_BYTES) begin = round_up(begin, LARGE_ALIGNMENT);
    if (!block || bytes > PTRDIFF_MAX / 4 || block->size - begin < bytes + GAP)
        return alloc_in_new_block(function, arena, bytes);
    const size_t end = round_up(begin + bytes + GAP, SMALL_ALIGNMENT);
    arena->used += (int64_t)(end - block->used);
    block->used = end;
    UNPOISON(arena_block_bytes(block) + begin, bytes);
    return arena_block_bytes(block) + begin;
}

bool ng_arena_holds(const ng_arena *arena, const void *address)
{
    const uintptr_t place = (uintptr_t)address;
    for (const ng_arena_block *block = arena->block; block; block = block->older) {
        const uintptr_t first = (uintptr_t)(block + 1);
        if (place >= first && place - first < block->size) return true;
    }
    return false;
}

static void free_blocks(ng_arena_block *newest)
{
    for (ng_arena_block *block = newest, *older; block; block = older) {
        older = block->older;
        block_free(block);
    }
}

void ng_arena_release(ng_arena *arena)
{
    free_blocks(arena->block);
    free_blocks(arena->replaced);
    *arena = (ng_arena){0};
}

void ng_arena_reset(ng_arena *arena)
{
#ifdef NG_ARENA_FORGETS
    ng_arena_release(arena);
#else
    free_blocks(arena->replaced);
    arena->replaced = NULL;
    ng_arena_block *const several = arena->block && arena->block->older ? arena->block : NULL;
    ng_arena_block *const merged = several ? block_new((size_t)arena->kept) : NULL;
    if (merged) {
        arena->block = merged;
        if (arena->kept <= MOST_REPLACED)
            arena->replaced = several;
        else
            free_blocks(several);
    }
    for (ng_arena_block *block = arena->block; block; block = block->older) block->used = 0;
    arena->used = 0;
#endif
}

#undef POISON
#undef UNPOISON
