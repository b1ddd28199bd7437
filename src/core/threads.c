/* The number of threads that share work. */
#define _GNU_SOURCE /* sched_getaffinity */
#include "core/pool.h"
#include "core/workspace.h"
#include <normgrad/core.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int thread_count; /* 0: not known yet */

static int bounded_threads(long count)
{
    return count < 1 ? 1 : count > NG_MOST_THREADS ? NG_MOST_THREADS : (int)count;
}

/* The processors that this process may run on. */
static long usable_processors(void)
{
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
    return sysconf(_SC_NPROCESSORS_ONLN);
}

/* OMP_NUM_THREADS may be a list, "4,2", one number for each level of nested loops: ours are not
 * nested, the first counts. */
static int default_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    const long count = text ? strtol(text, NULL, 10) : 0;
    return bounded_threads(count > 0 ? count : usable_processors());
}

int ng_threads(void)
{
    int count = atomic_load_explicit(&thread_count, memory_order_relaxed);
    if (count > 0) return count;
    count = default_threads();
    int unknown = 0; /* another thread may have set it meanwhile */
    return atomic_compare_exchange_strong(&thread_count, &unknown, count) ? count : unknown;
}

void ng_set_threads(int count)
{
    atomic_store(&thread_count, count > 0 ? bounded_threads(count) : default_threads());
    ng_pool_stop();
    ng_workspaces_free();
}
