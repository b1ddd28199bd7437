/* The thread pool: runs the blocks of a loop on several threads. */
#ifndef NG_CORE_POOL_H
#define NG_CORE_POOL_H

#include <stdint.h>

/* Does the units begin .. end - 1 of the work described by `arguments`. */
typedef void ng_span(const void *arguments, int64_t begin, int64_t end);

/* Calls span for runs of whole grains (the last one may be cut) that together are all units, on
 * this thread and, if it is worth it, on free threads of the pool, and returns when all are done. A
 * span must give the same bits wherever the grains are divided.
 *
 * The rule: `work` is the loop's size in cheap elements, of which one thread does some 18 in a
 * nanosecond. Waking a thread takes some 60 us (30 of them the caller's), so that a loop wakes one
 * from ng_wake_from on, about 70 us. A helper that is awake, because a loop was shared just before,
 * takes part from NG_SHARE_FROM on, about 7 us. So a network of small layers runs on one thread; in
 * one with large layers the small loops between are shared as well, and each thread's part of the
 * data stays in its cache. */
#define NG_SHARE_FROM 131072
extern int64_t ng_wake_from; /* 10 * NG_SHARE_FROM; tests lower it */
void ng_share(ng_span *span, const void *arguments, int64_t units, int64_t grain, int64_t work);

/* Ends the pool's threads. The next shared loop starts new ones. */
void ng_pool_stop(void);

#endif
