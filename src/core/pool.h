/* The thread pool: runs the blocks of a loop on several threads. */
#ifndef NG_CORE_POOL_H
#define NG_CORE_POOL_H

#include <stdint.h>

/* Does the units begin .. end - 1 of the work described by `arguments`. */
typedef void ng_span(const void *arguments, int64_t begin, int64_t end);

/* Calls span for runs of whole grains (the last grain may be shorter) until all units are done, on
 * this thread and, if that pays, on free threads of the pool. A span must give the same bits
 * wherever the grains are divided.
 *
 * `work` is the size of the loop in cheap elements, of which one thread does some 18 in a
 * nanosecond. Waking a thread takes about 60 us, so a loop wakes one from ng_wake_from on, about 70
 * us. A helper that is still awake after the last shared loop takes part from NG_SHARE_FROM on,
 * about 7 us. So a network of small layers runs on one thread. In a network of large layers the
 * small loops between them are shared too, and each thread's data stay in its cache. */
#define NG_SHARE_FROM 131072
extern int64_t ng_wake_from; /* 10 * NG_SHARE_FROM; tests lower it */
void ng_share(ng_span *span, const void *arguments, int64_t units, int64_t grain, int64_t work);

#endif
