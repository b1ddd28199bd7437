/* The thread pool: runs the blocks of a loop on several threads. */
#ifndef NG_CORE_POOL_H
#define NG_CORE_POOL_H

#include <stdbool.h>
#include <stdint.h>

/* Does the units begin .. end - 1 of the work described by `arguments`. */
typedef void ng_span(const void *arguments, int64_t begin, int64_t end);

/* Calls span for runs of whole grains (the last grain may be shorter) until all units are done, on
 * this thread and, if that pays, on free threads of the pool. A span must give the same bits
 * wherever the grains are divided.
 *
 * `work` is the size of the loop in cheap elements, of which one thread does some 18 in a
 * nanosecond. A helper that is awake takes part in loops from NG_SHARE_FROM on, about 7 us. To wake
 * one takes the caller up to 40 us, and the helper comes after about 100 us. So helpers are woken
 * when such loops have taken about 70 us, and stay awake for 200 us after each. A network of small
 * layers runs on one thread. In a network of larger layers the small loops between them are shared
 * too, and each thread's data stay in its cache. */
#define NG_SHARE_FROM 131072
extern bool ng_always_share; /* tests set it: loops from NG_SHARE_FROM on are shared at once */
void ng_share(ng_span *span, const void *arguments, int64_t units, int64_t grain, int64_t work);

#endif
