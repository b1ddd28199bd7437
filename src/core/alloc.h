/* All memory of the library comes from here: sizes are checked, failure is NG_ENOMEM in the name of
 * `function`, the public one that asked. */
#ifndef NG_CORE_ALLOC_H
#define NG_CORE_ALLOC_H

#include "core/error.h"

/* aligned_alloc and free; tests put functions here that count the calls and refuse some. */
typedef struct {
    void *(*allocate)(size_t alignment, size_t bytes);
    void (*free)(void *memory);
} ng_memory_functions;
extern ng_memory_functions ng_memory;

/* `count` elements of `size` bytes, zeroed, aligned to 64 bytes; NULL with NG_ENOMEM, also where
 * the product overflows. ng_free takes NULL. */
void *ng_calloc(const char *function, int64_t count, size_t size);
void ng_free(void *memory);

/* At least `bytes` bytes, aligned likewise, not initialised; NULL without an error if there is no
 * memory. */
void *ng_allocate_quietly(size_t bytes);

/* Grows an array that ng_calloc gave from `count` to `more` elements, the new ones zeroed; on
 * failure NULL, and the array is as it was. */
void *ng_grow(const char *function, void *array, int64_t count, int64_t more, size_t size);

/* Asks the system for large pages behind memory that nobody has touched yet. They need fewer
 * address look-ups. */
void ng_prefer_huge_pages(void *memory, size_t bytes);

char *ng_copy_text(const char *function, const char *text); /* free it with ng_free */

#endif
