/* Memory: checked sizes, whole cache lines, large pages. */
#include "core/alloc.h"
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif
#ifdef _WIN32
#include "core/windows.h"
#else
#define NG_FREE_ALIGNED free
#endif

ng_memory_functions ng_memory = {aligned_alloc, NG_FREE_ALIGNED};

enum { ALIGNMENT = 64, HUGE_PAGE = 1 << 21 };

void ng_prefer_huge_pages(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    char *const end = (char *)memory + bytes;
    char *const begin = (char *)memory + (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
    if (bytes >= 2 * HUGE_PAGE)
        madvise(begin, (size_t)(end - begin) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

/* Bytes of `count` elements, in whole cache lines; 0 if that overflows or count is negative. */
static size_t padded_bytes(int64_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow((uint64_t)count, size, &bytes)) return 0;
    if (bytes > PTRDIFF_MAX - ALIGNMENT) return 0;
    const size_t lines = (bytes + ALIGNMENT - 1) / ALIGNMENT;
    return (lines > 0 ? lines : 1) * ALIGNMENT;
}

void *ng_calloc(const char *function, int64_t count, size_t size)
{
    const size_t bytes = padded_bytes(count, size);
    void *memory = bytes > 0 ? ng_memory.allocate(ALIGNMENT, bytes) : NULL;
    if (!memory) {
        ng_fail(NG_ENOMEM, "%s: out of memory: %lld elements of %zu bytes", function,
                (long long)count, size);
        return NULL;
    }
    ng_prefer_huge_pages(memory, bytes);
    return memset(memory, 0, bytes);
}

void *ng_allocate_quietly(size_t bytes)
{
    const size_t whole = padded_bytes((int64_t)bytes, 1);
    return whole > 0 ? ng_memory.allocate(ALIGNMENT, whole) : NULL;
}

void ng_free(void *memory) { ng_memory.free(memory); }

void *ng_grow(const char *function, void *array, int64_t count, int64_t more, size_t size)
{
    void *grown = ng_calloc(function, more, size);
    if (!grown) return NULL;
    if (count > 0) memcpy(grown, array, (size_t)count * size);
    ng_free(array);
    return grown;
}

char *ng_copy_text(const char *function, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    char *copy = ng_calloc(function, (int64_t)bytes, 1);
    return copy ? memcpy(copy, text, bytes) : NULL;
}
