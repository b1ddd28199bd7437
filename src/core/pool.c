/* The thread pool of the process, and the number of its threads.
 *
 * A loop is cut into blocks of equal size. The blocks that are left are one range in an atomic
 * word. The thread that shares the loop (the caller) takes blocks from its front, the pool's
 * threads (the helpers) from its back: with two threads, each finds in its cache what it wrote in
 * the loop before. Each takes a part of what is left, so that the first runs are long and the last
 * ones short. The caller waits only for blocks that were begun.
 *
 * Sharing must not cost more than it gains, on a machine that other programs use too. A wake must
 * be earned by loops that take POOL_WAKE_LOSS times as long. After a wait for a helper that has
 * lost its processor, loops are not shared for POOL_WAIT_LOSS times as long. */
#include "core/pool.h"
#include "core/workspace.h"
#include <normgrad/core.h>

/* Whether so many threads may be asked for; else an error. */
static bool is_number_of_threads(int count)
{
    if (count >= 0 && count <= NG_MOST_THREADS) return true;
    ng_fail(NG_EVALUE, "ng_set_threads: count is %d, expected 0 .. %d", count, NG_MOST_THREADS);
    return false;
}

#ifdef NG_NO_THREADS /* every loop runs on the thread that calls it */

bool ng_always_share;

int ng_threads(void) { return 1; }
ng_status ng_set_threads(int count)
{
    if (!is_number_of_threads(count)) return NG_EVALUE;
    ng_workspaces_free();
    return NG_OK;
}
void ng_share(ng_span *span, const void *arguments, int64_t units, int64_t grain, int64_t work)
{
    (void)grain, (void)work, span(arguments, 0, units);
}

#else

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#ifdef _WIN32
#include "core/windows.h"
#else
#include <signal.h>
#include <unistd.h>
#endif
#ifdef CPU_COUNT /* Linux with _GNU_SOURCE: sets of processors, and a priority for each thread */
#include <sys/resource.h>
#endif

enum {
    POOL_BLOCKS = 16,   /* per thread, at most */
    POOL_NICENESS = 10, /* added to a helper's: other programs come first */
    POOL_RATE = 18,     /* cheap elements in a nanosecond */
    /* In nanoseconds: */
    POOL_SPIN = 200000,  /* that a helper waits for another loop awake: twice what waking takes */
    POOL_WAIT = 50000,   /* that the caller waits awake for a helper's last block */
    POOL_WORTH = 70000,  /* of loops that are worth waking a helper */
    POOL_WAKE_LOSS = 16, /* one nanosecond of so many may be lost by waking a helper */
    POOL_WAIT_LOSS = 4   /* and by waiting for one that comes late */
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work; /* there are blocks, or the helpers are to end */
    pthread_cond_t idle; /* the last helper has left the loop, or the pool is given back */
    bool taken;          /* by the caller of a loop, or by stop_pool */
    bool ending;
    bool full; /* the system gives no more threads, or cannot report a fork */
    int helpers;
    pthread_t thread[NG_MOST_THREADS - 1];

    /* The loop. It changes under the lock, while no helper is inside. */
    ng_span *span;
    const void *arguments;
    int64_t units, block; /* block: how many units */
    int threads;          /* the caller and the helpers */
    int64_t loops;        /* that were shared */

    /* In nanoseconds, for the thread that has taken the pool. */
    int64_t earned;      /* the loops since the last wake, less POOL_WAKE_LOSS times its cost */
    int64_t alone_until; /* no loop is shared before: the caller has waited for a helper */

    atomic_int inside;                   /* helpers that may be at a block */
    atomic_int awake;                    /* helpers at a loop, or spinning until the next one */
    _Alignas(64) _Atomic uint64_t range; /* blocks to take: first and end, 32 bits each */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .idle = PTHREAD_COND_INITIALIZER};

/* ---- A loop --------------------------------------------------------------------------------- */

static uint64_t pool_range(void) { return atomic_load_explicit(&pool.range, memory_order_relaxed); }
static bool pool_has_blocks(void) { return pool_range() >> 32 < (uint32_t)pool_range(); }
static bool pool_has_helpers(void) { return atomic_load(&pool.inside) > 0; }

static void take_blocks(bool from_front)
{
    for (uint64_t range = pool_range(), rest;;) {
        const int64_t first = (int64_t)(range >> 32), end = (uint32_t)range;
        const int64_t count = (end - first + 2 * pool.threads - 1) / (2 * pool.threads);
        if (first >= end) return;
        rest = from_front ? range + ((uint64_t)count << 32) : range - (uint64_t)count;
        if (!atomic_compare_exchange_weak_explicit(&pool.range, &range, rest, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        const int64_t begin = (from_front ? first : end - count) * pool.block;
        const int64_t stop = begin + count * pool.block;
        pool.span(pool.arguments, begin, stop < pool.units ? stop : pool.units);
        range = pool_range();
    }
}

static int64_t pool_clock(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Returns when `condition` is not `value` any more, or after so many nanoseconds. */
static void spin_while(bool (*condition)(void), bool value, int64_t nanoseconds)
{
    const int64_t end = pool_clock() + nanoseconds;
    do
        for (int i = 0; i < 32; i++) {
            if (condition() != value) return;
#if defined __x86_64__ || defined __i386__
            __builtin_ia32_pause();
#elif defined __aarch64__
            __asm__ volatile("yield");
#endif
        }
    while (pool_clock() < end);
}

/* Takes part in the current loop if it has blocks left. Returns the number of the loop, which
 * changes under the lock, while no helper is inside. */
static int64_t help_with_loop(void)
{
    pthread_mutex_lock(&pool.lock);
    const int64_t loop = pool.loops;
    const bool has_blocks = pool_has_blocks();
    atomic_fetch_add(&pool.inside, has_blocks);
    pthread_mutex_unlock(&pool.lock);
    if (!has_blocks) return loop;
    take_blocks(false);
    pthread_mutex_lock(&pool.lock);
    if (atomic_fetch_sub(&pool.inside, 1) == 1) pthread_cond_broadcast(&pool.idle);
    pthread_mutex_unlock(&pool.lock);
    return loop;
}

/* A helper spins after each loop, and when it is woken: it may come too late for one loop, but not
 * for the next. */
static void *help(void *unused)
{
#ifdef CPU_COUNT /* elsewhere it is the whole process's */
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + POOL_NICENESS);
#endif
    int64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.loops == seen && !pool.ending) pthread_cond_wait(&pool.work, &pool.lock);
        if (pool.ending) break;
        pthread_mutex_unlock(&pool.lock);
        atomic_fetch_add(&pool.awake, 1);
        do {
            seen = help_with_loop();
            spin_while(pool_has_blocks, false, POOL_SPIN);
        } while (pool_has_blocks());
        atomic_fetch_sub(&pool.awake, 1);
        pthread_mutex_lock(&pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    return unused;
}

/* ---- Threads -------------------------------------------------------------------------------- */

/* Signals stay blocked in helpers: a program's handlers run on its own threads. */
static void start_helpers(int wanted)
{
#ifndef _WIN32 /* which sends none */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
#endif
    while (pool.helpers < wanted && !pool.full)
        if (pthread_create(&pool.thread[pool.helpers], NULL, help, NULL))
            pool.full = true;
        else
            pool.helpers++;
#ifndef _WIN32
    pthread_sigmask(SIG_SETMASK, &before, NULL);
#endif
}

/* Takes the pool for the caller; false if another thread has it and `wait` is false. */
static bool take_pool(bool wait)
{
    pthread_mutex_lock(&pool.lock);
    while (pool.taken && wait) pthread_cond_wait(&pool.idle, &pool.lock);
    const bool was_free = !pool.taken;
    pool.taken = true;
    pthread_mutex_unlock(&pool.lock);
    return was_free;
}

static void give_pool(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.taken = false;
    pthread_mutex_unlock(&pool.lock);
    pthread_cond_broadcast(&pool.idle);
}

static void stop_pool(bool wait)
{
    if (!take_pool(wait)) return;
    pthread_mutex_lock(&pool.lock);
    pool.ending = true;
    pthread_mutex_unlock(&pool.lock);
    pthread_cond_broadcast(&pool.work);
    for (int i = 0; i < pool.helpers; i++) pthread_join(pool.thread[i], NULL);
    pool.ending = pool.full = false;
    pool.helpers = 0;
    pool.earned = pool.alone_until = 0;
    give_pool();
}

#ifndef _WIN32 /* which has no fork() */
/* A child of fork() has one thread, whatever its parent's threads were doing. */
static void forget_helpers(void)
{
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.work = pool.idle = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.taken = pool.ending = pool.full = false;
    pool.helpers = 0;
    atomic_store(&pool.inside, 0);
    atomic_store(&pool.awake, 0);
    atomic_store(&pool.range, 0);
}

/* When the library is loaded: before anything can take the pool. */
__attribute__((constructor)) static void watch_forks(void)
{
    pool.full = pthread_atfork(NULL, NULL, forget_helpers);
}
#endif

/* At the end of the process, or when the library is unloaded; a loop of another thread goes on. */
__attribute__((destructor)) static void stop_at_end(void) { stop_pool(false); }

/* ---- The number of threads ------------------------------------------------------------------ */

static atomic_int thread_count; /* 0: not known yet */

static int bounded_threads(long count)
{
    return count < 1 ? 1 : count > NG_MOST_THREADS ? NG_MOST_THREADS : (int)count;
}

/* The processors that this process may run on. */
static long usable_processors(void)
{
#ifdef CPU_COUNT
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
#ifdef _SC_NPROCESSORS_ONLN
    return sysconf(_SC_NPROCESSORS_ONLN);
#else
    return 1;
#endif
}

/* OMP_NUM_THREADS may be a list, "4,2", one number for each level of nested loops: the first
 * counts. */
static int default_threads(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    char *end = "";
    const long count = text ? strtol(text, &end, 10) : 0;
    const bool is_number = count > 0 && (*end == '\0' || *end == ',');
    return bounded_threads(is_number ? count : usable_processors());
}

int ng_threads(void)
{
    int count = atomic_load_explicit(&thread_count, memory_order_relaxed);
    if (count > 0) return count;
    count = default_threads();
    int unknown = 0; /* another thread may have set it meanwhile */
    return atomic_compare_exchange_strong(&thread_count, &unknown, count) ? count : unknown;
}

ng_status ng_set_threads(int count)
{
    if (!is_number_of_threads(count)) return NG_EVALUE;
    atomic_store(&thread_count, count > 0 ? count : default_threads());
    stop_pool(true);
    ng_workspaces_free();
    return NG_OK;
}

/* ---- Sharing out ---------------------------------------------------------------------------- */

/* Wakes so many helpers, and takes the cost off what was earned. */
static void wake_helpers(int count)
{
    const int64_t begin = pool_clock();
    for (int i = 0; i < count; i++) pthread_cond_signal(&pool.work);
    pool.earned -= POOL_WAKE_LOSS * (pool_clock() - begin);
}

/* Waits for the blocks that helpers have begun. `work` is the time of the caller's own blocks. If
 * the wait takes much more than a fourth of it, another program has a helper's processor. */
static void await_helpers(int64_t work)
{
    const int64_t begin = pool_clock();
    spin_while(pool_has_helpers, true, POOL_WAIT);
    pthread_mutex_lock(&pool.lock);
    while (pool_has_helpers()) pthread_cond_wait(&pool.idle, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    const int64_t end = pool_clock(), late = end - begin - work / 4;
    if (late > POOL_WAIT) pool.alone_until = end + POOL_WAIT_LOSS * late;
}

static void share_taken_pool(ng_span *span, const void *arguments, int64_t units, int64_t grain,
                             int helpers)
{
    const int64_t grains = (units + grain - 1) / grain, most = POOL_BLOCKS * (helpers + 1);
    const int asleep = helpers - atomic_load(&pool.awake);
    pthread_mutex_lock(&pool.lock);
    pool.span = span;
    pool.arguments = arguments;
    pool.units = units;
    pool.block = (grains + most - 1) / most * grain;
    pool.threads = helpers + 1;
    pool.loops++;
    atomic_store(&pool.range, (uint64_t)((units + pool.block - 1) / pool.block));
    pthread_mutex_unlock(&pool.lock);
    if (asleep > 0) wake_helpers(asleep);
    const int64_t begin = pool_clock();
    take_blocks(true);
    await_helpers(pool_clock() - begin);
}

bool ng_always_share;

/* How many of the wanted helpers a loop of so many nanoseconds pays for. */
static int affordable_helpers(int wanted, int64_t work)
{
    pool.earned = work + (pool.earned < POOL_WORTH ? pool.earned : POOL_WORTH);
    if (ng_always_share) return wanted;
    if (pool_clock() < pool.alone_until) return 0;
    const int awake = atomic_load(&pool.awake);
    return pool.earned >= POOL_WORTH || awake > wanted ? wanted : awake;
}

void ng_share(ng_span *span, const void *arguments, int64_t units, int64_t grain, int64_t work)
{
    if (work < NG_SHARE_FROM) {
        span(arguments, 0, units); /* at once: a small op takes less than a division */
        return;
    }
    const int64_t grains = (units + grain - 1) / grain;
    const int wanted = (grains < ng_threads() ? (int)grains : ng_threads()) - 1;
    if (wanted > 0 && take_pool(false)) {
        int helpers = affordable_helpers(wanted, work / POOL_RATE);
        if (pool.helpers < helpers && !pool.full) start_helpers(helpers);
        if (pool.helpers < helpers) helpers = pool.helpers;
        if (helpers > 0) share_taken_pool(span, arguments, units, grain, helpers);
        give_pool();
        if (helpers > 0) return;
    }
    span(arguments, 0, units);
}

#endif
