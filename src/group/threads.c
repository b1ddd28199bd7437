/* Threads as ranks: a link in memory. A rank shows its data, waits until all have, copies what is
 * for it, and waits until all have copied. */
#include "core/alloc.h"
#include "group/collective.h"
#include <string.h>
#ifndef NG_NO_THREADS
#include <pthread.h>

/* The ranks of one run. */
typedef struct {
    ng_group_program *program;
    void *with;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int size, arrived;
    uint64_t turn; /* how often all have arrived */
    bool broken;   /* a rank could not begin, so that none will */
    struct rank_thread *ranks;
} meeting;

typedef struct rank_thread {
    meeting *meeting;
    int rank;
    const char *data;
    pthread_t thread;
    ng_error_record record;
} rank_thread;

/* Waits until all ranks are here; false if one could not begin. */
static bool wait_for_all(meeting *m)
{
    pthread_mutex_lock(&m->lock);
    const uint64_t turn = m->turn;
    if (++m->arrived == m->size) {
        m->arrived = 0, m->turn++;
        pthread_cond_broadcast(&m->changed);
    }
    while (m->turn == turn && !m->broken) pthread_cond_wait(&m->changed, &m->lock);
    const bool well = !m->broken;
    pthread_mutex_unlock(&m->lock);
    return well;
}

static void break_meeting(meeting *m)
{
    pthread_mutex_lock(&m->lock);
    m->broken = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
}

/* From each rank, the bytes that it shows at `offset`. */
static ng_status exchange(rank_thread *own, const void *mine, void *all, size_t bytes,
                          size_t offset)
{
    meeting *m = own->meeting;
    own->data = mine;
    if (!wait_for_all(m)) return ng_fail(NG_ENOMEM, "ng_group_run: a rank could not begin");
    for (int r = 0; r < m->size; r++)
        memcpy((char *)all + (size_t)r * bytes, m->ranks[r].data + offset, bytes);
    wait_for_all(m);
    return NG_OK;
}

static ng_status threads_all_to_all(void *with, const void *mine, void *all, size_t bytes)
{
    rank_thread *own = with;
    return exchange(own, mine, all, bytes, (size_t)own->rank * bytes);
}

static ng_status threads_all_gather(void *with, const void *mine, void *all, size_t bytes)
{
    return exchange(with, mine, all, bytes, 0);
}

static void *run_rank(void *argument)
{
    rank_thread *own = argument;
    meeting *m = own->meeting;
    ng_group *group = ng_group_over_new(
        &(ng_group_link){own->rank, m->size, own, threads_all_to_all, threads_all_gather, NULL});
    if (!group) break_meeting(m);
    const ng_status status = group ? m->program(group, m->with) : NG_OK;
    if (status != NG_OK)
        ng_fail_unrecorded(0, status, "ng_group_run: the program of rank %d returned %s", own->rank,
                           ng_status_name(status));
    ng_group_free(group);
    own->record = ng_error_take();
    return NULL;
}

static ng_status run_ranks(const char *function, ng_group_program *program, void *with, int ranks)
{
    rank_thread *list = ng_calloc(function, ranks, sizeof *list);
    if (!list) return NG_ENOMEM;
    meeting m = {.program = program, .with = with, .size = ranks, .ranks = list};
    pthread_mutex_init(&m.lock, NULL), pthread_cond_init(&m.changed, NULL);
    int threads = 0;
    for (; threads < ranks; threads++) {
        list[threads] = (rank_thread){.meeting = &m, .rank = threads};
        if (pthread_create(&list[threads].thread, NULL, run_rank, &list[threads])) break;
    }
    if (threads < ranks) break_meeting(&m);
    for (int r = 0; r < threads; r++) pthread_join(list[r].thread, NULL);
    ng_status status = NG_OK;
    if (threads < ranks)
        status =
            ng_fail(NG_ENOMEM, "%s: the system gives %d of %d threads", function, threads, ranks);
    for (int r = 0; r < ranks && !status; r++)
        if (list[r].record.failures)
            status = ng_fail(list[r].record.status, "%s", list[r].record.text);
    pthread_cond_destroy(&m.changed), pthread_mutex_destroy(&m.lock);
    ng_free(list);
    return status;
}

#else /* one rank, on the thread that calls */

static ng_status run_ranks(const char *function, ng_group_program *program, void *with, int ranks)
{
    if (ranks > 1)
        return ng_fail(NG_EVALUE, "%s: %d ranks, expected 1 without threads (NG_NO_THREADS)",
                       function, ranks);
    ng_group *group = ng_group_alone_new();
    if (!group) return ng_newest_status();
    const ng_status status = program(group, with);
    ng_group_free(group);
    if (status != NG_OK)
        ng_fail_unrecorded(0, status, "%s: the program returned %s", function,
                           ng_status_name(status));
    return status;
}

#endif

ng_status ng_group_run(ng_group_program *program, void *with, int ranks)
{
    static const char function[] = "ng_group_run";
    if (!ng_given(function, "program", program)) return ng_newest_status();
    if (ranks < 1) return ng_fail(NG_EVALUE, "%s: %d ranks, expected 1 or more", function, ranks);
    return run_ranks(function, program, with, ranks);
}
