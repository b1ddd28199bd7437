/* The pool of threads: the one way in which work is shared among them. */
#ifndef NG_CORE_POOL_H
#define NG_CORE_POOL_H

#include <stdint.h>

/* Does the units begin .. end - 1 of the work described by `arguments`. */
typedef void ng_span(const void *arguments, int64_t begin, int64_t end);

/* Calls span for runs of whole grains (the last one may be cut) that together are all units, on
 * this thread and on those of the pool that are free, and returns when all are done. A span must
 * give the same bits wherever the grains are divided. */
void ng_share_out(ng_span *span, const void *arguments, int64_t units, int64_t grain);

/* Ends the pool's threads; the next work that is shared starts new ones. */
void ng_pool_stop(void);

#endif
