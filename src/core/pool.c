/* One pool of threads for the process. Who shares out a loop takes part in it.
 *
 * The loop's grains are dealt out as runs, one for each participant. Each takes pieces from the
 * front of its own run, and when that is done from those of the others. So nobody waits for a
 * thread that the system has not let run, its grains are done by those who run: only a piece that
 * was begun is waited for.
 *
 * A run is one atomic word, which names the loop it belongs to. A thread that comes late finds
 * another loop's name, or nothing left, and cannot take anything; a piece that was taken keeps the
 * loop open, and its description as it is, until the piece is done. */
#define _GNU_SOURCE /* sched.h: the processors of a thread */
#include "core/pool.h"
#include <normgrad/core.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

enum {
    GRAINS = 16, /* of a run, at most */
    STACK_BYTES = 1 << 19,
    SPIN = 20000,           /* nanoseconds that a thread looks about before it sleeps */
    MOST_CREDIT = 16000000, /* nanoseconds of help that are remembered */
    LEAST_PRUDENCE = 4,     /* a loss is made up for by doing without for so many times as long, */
    MOST_PRUDENCE = 64,     /* and, where one follows the other, for up to that */
    LOOK = 1000000,         /* nanoseconds between looks for others that want the processors */
    CROWDED = 3,  /* what it costs that a thread waits for a processor: so many times that */
    NICENESS = 10 /* of who helps: a tenth of the time where another wants the processor */
};

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t wakes;
    atomic_bool asleep;
} sleeper;

typedef struct {
    _Alignas(64) _Atomic uint64_t run; /* loop (32 bits), next grain, end (16 bits each) */
    sleeper sleeper;
    pthread_t thread;
} participant;

static participant member[NG_MOST_THREADS]; /* member 0 is whoever shares out */

static struct {
    atomic_bool taken; /* by who shares out, or changes the pool */
    bool watches_fork;
    bool full;               /* the system gives no more threads */
    int threads;             /* members, the first included */
    int helpers;             /* of which so many are asked to help */
    int64_t credit;          /* nanoseconds that help has gained of late */
    int64_t prudence;        /* as things went of late */
    int64_t ask_from;        /* when more may be asked again */
    _Atomic int64_t crowded; /* nanoseconds that threads have waited for processors of late */

    /* The loop. */
    ng_span *span;
    const void *arguments;
    int64_t units, grain, grains;

    _Alignas(64) _Atomic uint32_t loop; /* its name: they are counted */
    atomic_int participants;            /* none: the threads end */
    _Alignas(64) _Atomic int64_t left;  /* grains that are not done */
    _Atomic uint32_t done;              /* the last loop that is */
} pool = {.threads = 1};

static int64_t nanoseconds(struct timespec time)
{
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return nanoseconds(time);
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The first to ask has it. Nobody waits for it to share out. */
static bool take_pool(void)
{
    return !atomic_exchange_explicit(&pool.taken, true, memory_order_acquire);
}

static void give_pool(void) { atomic_store_explicit(&pool.taken, false, memory_order_release); }

/* ---- Waiting -------------------------------------------------------------------------------- */

static void pause_briefly(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

static bool changes_soon(_Atomic uint32_t *word, uint32_t value)
{
    const int64_t end = now() + SPIN;
    do
        for (int i = 0; i < 32; i++, pause_briefly())
            if (atomic_load_explicit(word, memory_order_acquire) != value) return true;
    while (now() < end);
    return false;
}

/* Returns when the word is not `value` any more. */
static void sleep_while(sleeper *self, _Atomic uint32_t *word, uint32_t value)
{
    pthread_mutex_lock(&self->lock);
    atomic_store(&self->asleep, true);
    while (atomic_load(word) == value) pthread_cond_wait(&self->wakes, &self->lock);
    atomic_store(&self->asleep, false);
    pthread_mutex_unlock(&self->lock);
}

/* The word has changed. Who was about to sleep when it did sees that, or is seen here. */
static void wake(sleeper *other)
{
    if (!atomic_load(&other->asleep)) return;
    pthread_mutex_lock(&other->lock);
    pthread_mutex_unlock(&other->lock);
    pthread_cond_signal(&other->wakes);
}

static void begin_awake(sleeper *self)
{
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->wakes, NULL);
    atomic_store(&self->asleep, false);
}

/* ---- Processors ------------------------------------------------------------------------------ */

/* The system may start or wake a thread on the processor of who does that, and leave both there
 * while another is idle: Linux does not look for an idle one where two share a cache and half their
 * time is used. The thread would come too late for its share, if at all: so this processor is
 * forbidden to it for a moment, in which the system puts it elsewhere. */
#ifdef __linux__
static bool forbid_this_processor(pthread_t thread, cpu_set_t *allowed)
{
    const int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE) return false;
    if (pthread_getaffinity_np(thread, sizeof *allowed, allowed)) return false;
    cpu_set_t others = *allowed;
    CPU_CLR((size_t)here, &others);
    return CPU_COUNT(&others) > 0 && !pthread_setaffinity_np(thread, sizeof others, &others);
}

static void allow(pthread_t thread, const cpu_set_t *allowed)
{
    pthread_setaffinity_np(thread, sizeof *allowed, allowed);
}

static void move_elsewhere(pthread_t thread)
{
    cpu_set_t allowed;
    if (forbid_this_processor(thread, &allowed)) allow(thread, &allowed);
}

static void wake_elsewhere(participant *other)
{
    cpu_set_t allowed;
    if (!atomic_load(&other->sleeper.asleep)) return;
    const bool apart = forbid_this_processor(other->thread, &allowed);
    wake(&other->sleeper);
    if (apart) allow(other->thread, &allowed);
}
#else
static void move_elsewhere(pthread_t thread) { (void)thread; }
static void wake_elsewhere(participant *other) { wake(&other->sleeper); }
#endif

/* ---- A loop --------------------------------------------------------------------------------- */

/* Takes half of what is left of a run, from its front; returns how many grains that are. */
static int64_t take(participant *from, uint32_t loop, int64_t *first)
{
    uint64_t run = atomic_load_explicit(&from->run, memory_order_acquire);
    for (;;) {
        const int64_t next = run >> 16 & 0xffff, left = (int64_t)(run & 0xffff) - next;
        const uint64_t count = (uint64_t)(left + 1) / 2;
        if (run >> 32 != loop || left == 0) return 0;
        if (atomic_compare_exchange_weak_explicit(&from->run, &run, run + (count << 16),
                                                  memory_order_acq_rel, memory_order_acquire)) {
            *first = next;
            return (int64_t)count;
        }
    }
}

/* Does what there is to do, and returns how many grains that were. */
static int64_t take_part(int self, uint32_t loop, int participants)
{
    int64_t total = 0, first, count;
    for (int i = 0; i < participants; i++)
        while ((count = take(&member[(self + i) % participants], loop, &first)) > 0) {
            const int64_t end = least((first + count) * pool.grain, pool.units);
            pool.span(pool.arguments, first * pool.grain, end);
            total += count;
            if (atomic_fetch_sub_explicit(&pool.left, count, memory_order_acq_rel) > count)
                continue;
            atomic_store(&pool.done, loop);
            wake(&member[0].sleeper);
        }
    return total;
}

/* Each wakes two, so that many are soon awake. */
static void wake_next(int self, int participants)
{
    for (int next = 2 * self + 1; next <= 2 * self + 2 && next < participants; next++)
        wake_elsewhere(&member[next]);
}

/* A new loop's name is what the threads wait for. */
static uint32_t announce(int participants)
{
    const uint32_t loop = atomic_load_explicit(&pool.loop, memory_order_relaxed) + 1;
    atomic_store_explicit(&pool.participants, participants, memory_order_relaxed);
    atomic_store(&pool.loop, loop);
    wake_next(0, participants);
    return loop;
}

static uint32_t deal_out(ng_span *span, const void *arguments, int64_t units, int64_t grain,
                         int participants)
{
    const uint32_t loop = atomic_load_explicit(&pool.loop, memory_order_relaxed) + 1;
    const int64_t grains = (units + grain - 1) / grain, most = GRAINS * participants;
    pool.span = span;
    pool.arguments = arguments;
    pool.units = units;
    pool.grain = (grains + most - 1) / most * grain;
    pool.grains = (units + pool.grain - 1) / pool.grain;
    atomic_store_explicit(&pool.left, pool.grains, memory_order_relaxed);
    atomic_store_explicit(&pool.done, loop - 1, memory_order_relaxed);
    for (int i = 0; i < participants; i++) {
        const uint64_t begin = (uint64_t)(pool.grains * i / participants);
        const uint64_t end = (uint64_t)(pool.grains * (i + 1) / participants);
        atomic_store_explicit(&member[i].run, (uint64_t)loop << 32 | begin << 16 | end,
                              memory_order_release);
    }
    return announce(participants);
}

/* ---- Others that want the processors --------------------------------------------------------- */

/* Where each processor has work already, help takes one from others, who take it back: all lose.
 * What tells is that threads of this process wait for a processor: they neither run nor sleep. */
typedef struct {
    int64_t time, ran; /* nanoseconds */
    long sleeps;
} glance;

static _Thread_local glance last; /* what this thread saw of itself when it looked last */

#ifdef __linux__
static glance glance_at(int64_t time)
{
    struct timespec ran;
    struct rusage usage;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran) || getrusage(RUSAGE_THREAD, &usage))
        return (glance){time, time, 0};
    return (glance){time, nanoseconds(ran), usage.ru_nvcsw};
}
#else
static glance glance_at(int64_t time) { return (glance){time, time, 0}; }
#endif

static void look_afresh(int64_t time) { last = glance_at(time); }

static bool looked_long_ago(int64_t time) { return time - last.time > LOOK; }

/* Nanoseconds that this thread has waited for a processor since it last looked; of a time in which
 * it slept nothing is known. */
static void look(int64_t time)
{
    const glance before = last;
    look_afresh(time);
    const int64_t waited = last.time - before.time - (last.ran - before.ran);
    if (last.sleeps == before.sleeps && waited > 0) atomic_fetch_add(&pool.crowded, waited);
}

/* ---- Threads -------------------------------------------------------------------------------- */

/* A thread that helps wakes up often, for a moment, and a system that is fair to sleepers lets it
 * run at once, where another program's thread works all the time. That one would lose up to half of
 * its time and this one see nobody waiting: so help takes what others leave. */
static void step_back(void)
{
#ifdef __linux__ /* elsewhere it is the whole process's */
    setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + NICENESS);
#endif
}

static void *help(void *argument)
{
    participant *self = argument;
    const int index = (int)(self - member);
    step_back();
    look_afresh(now());
    for (uint32_t seen = 0;;) {
        if (!changes_soon(&pool.loop, seen)) {
            look(now());
            sleep_while(&self->sleeper, &pool.loop, seen);
            look_afresh(now());
        }
        seen = atomic_load(&pool.loop);
        const int participants = atomic_load_explicit(&pool.participants, memory_order_relaxed);
        if (participants == 0) return NULL;
        if (index >= participants) continue;
        wake_next(index, participants);
        take_part(index, seen, participants);
        const int64_t time = now();
        if (looked_long_ago(time)) look(time);
    }
}

static bool start_thread(participant *next)
{
    pthread_attr_t attributes;
    begin_awake(&next->sleeper);
    if (pthread_attr_init(&attributes)) return false;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    const bool started = !pthread_create(&next->thread, &attributes, help, next);
    pthread_attr_destroy(&attributes);
    if (started) move_elsewhere(next->thread);
    return started;
}

static void end_threads(void)
{
    pool.full = false;
    if (pool.threads < 2) return;
    announce(0);
    for (int i = 1; i < pool.threads; i++) wake(&member[i].sleeper);
    for (int i = 1; i < pool.threads; i++) pthread_join(member[i].thread, NULL);
    pool.threads = 1;
}

/* A child has none of its parent's threads, whatever they were doing. */
static void forget_threads(void)
{
    begin_awake(&member[0].sleeper);
    pool.threads = 1;
    pool.full = false;
    give_pool();
}

/* A new thread sees the newest loop first: it is made one for nobody, younger than what a child's
 * parent may have left undone. Signals stay blocked in all: a program's handlers run on its own. */
static void start_threads(int wanted)
{
    sigset_t all, before;
    if (!pool.watches_fork) {
        begin_awake(&member[0].sleeper);
        pool.watches_fork = !pthread_atfork(NULL, NULL, forget_threads);
    }
    pool.full = !pool.watches_fork;
    announce(1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.threads < wanted && !pool.full)
        if (start_thread(&member[pool.threads]))
            pool.threads++;
        else
            pool.full = true;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pool.helpers = pool.threads - 1;
    pool.credit = 0;
    pool.prudence = LEAST_PRUDENCE;
    atomic_store(&pool.crowded, 0);
}

void ng_pool_stop(void)
{
    while (!take_pool()) sched_yield();
    end_threads();
    give_pool();
}

/* The process ends, or the library is unloaded. A loop that is under way on another thread then
 * ends with the process. */
__attribute__((destructor)) static void stop_at_end(void)
{
    if (!take_pool()) return;
    end_threads();
    give_pool();
}

/* ---- Sharing out ---------------------------------------------------------------------------- */

/* How many shall help at this time: after a loss half as many as before, later again twice as
 * many. */
static int64_t helpers_at(int64_t time)
{
    if (pool.helpers < pool.threads - 1 && time >= pool.ask_from) {
        if (pool.helpers == 0) atomic_store(&pool.crowded, 0);
        pool.helpers = (int)least(2 * pool.helpers + 1, pool.threads - 1);
        pool.ask_from = time + MOST_CREDIT;
    }
    return pool.helpers;
}

/* What help gains, in nanoseconds, is the time that this thread would have spent on the grains of
 * the others; what it costs is waking them, being preempted, and waiting for one that the system
 * has stopped in the middle of a piece: on a machine with other work that can be a hundred times as
 * long as the loop. */
static void judge(int64_t gain, int64_t cost, int64_t time)
{
    pool.credit = least(pool.credit + gain - cost, MOST_CREDIT);
    if (pool.credit == MOST_CREDIT) pool.prudence = LEAST_PRUDENCE;
    if (pool.credit >= 0) return;
    pool.helpers /= 2;
    pool.ask_from = time - pool.prudence * pool.credit;
    pool.prudence = least(2 * pool.prudence, MOST_PRUDENCE);
    pool.credit = 0;
}

/* False if nobody helps. */
static bool share_taken_pool(ng_span *span, const void *arguments, int64_t units, int64_t grain,
                             int64_t most)
{
    if (pool.threads < most && !pool.full) start_threads((int)most);
    const int64_t begin = now();
    const int participants = (int)least(most, 1 + helpers_at(begin));
    if (participants < 2) return false;
    if (looked_long_ago(begin)) look_afresh(begin);
    const uint32_t loop = deal_out(span, arguments, units, grain, participants);
    const int64_t dealt = now();
    const int64_t own = take_part(0, loop, participants);
    const int64_t worked = now();
    if (!changes_soon(&pool.done, loop - 1)) sleep_while(&member[0].sleeper, &pool.done, loop - 1);
    const int64_t end = now();
    if (looked_long_ago(end)) look(end);
    const int64_t gain = own > 0 ? (worked - dealt) * (pool.grains - own) / own : 0;
    const int64_t crowded = atomic_exchange(&pool.crowded, 0);
    judge(gain, dealt - begin + end - worked + CROWDED * crowded, end);
    return true;
}

void ng_share_out(ng_span *span, const void *arguments, int64_t units, int64_t grain)
{
    const int64_t most = least((units + grain - 1) / grain, ng_threads());
    if (most > 1 && take_pool()) {
        const bool shared = share_taken_pool(span, arguments, units, grain, most);
        give_pool();
        if (shared) return;
    }
    span(arguments, 0, units);
}
