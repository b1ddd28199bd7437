/* ng_group_run: a program for each rank, on a thread of its own. */
#include "core/alloc.h"
#include "group/process_group.h"
#include <stdio.h>

/* One run of a program. */
typedef struct {
    ng_group_program *program;
    void *with;
} group_run;

typedef struct {
    ng_group group;
    group_run *run;
    pthread_t thread;
    ng_error_record record;
} rank_thread;

static void run_program(rank_thread *r)
{
    const group_run *run = r->run;
    const ng_status status = run->program(&r->group, run->with);
    if (status != NG_OK && !ng_failed())
        ng_fail(status, "ng_group_run: the program of rank %d returned %s", r->group.rank,
                ng_status_name(status));
    ng_group_leave(&r->group, "ng_group_run");
    r->record = ng_error_take();
}

static void *run_in_thread(void *of)
{
    run_program(of);
    return NULL;
}

/* The system gives too few threads: fails in the name of the ranks that have none, and of the
 * caller's. */
static void fail_without_threads(rank_thread *list, int count, int threads)
{
    ng_process_group *pg = list[0].group.pg;
    ng_fail(NG_ENOMEM, "ng_group_run: the system gives %d of %d threads", threads, count - 1);
    for (int i = threads; i < count - 1; i++) ng_group_start_failed(&list[i].group);
    pthread_mutex_lock(&pg->lock);
    pg->leaving += count - 1 - threads;
    pthread_mutex_unlock(&pg->lock);
    ng_group_end_failed(&list[count - 1].group, "ng_group_run");
    list[count - 1].record = ng_error_take();
}

/* The last rank runs on the caller's thread. */
static void run_all(rank_thread *list, int count)
{
    int threads = 0;
    while (threads < count - 1 &&
           !pthread_create(&list[threads].thread, NULL, run_in_thread, &list[threads]))
        threads++;
    if (threads < count - 1)
        fail_without_threads(list, count, threads);
    else
        run_program(&list[count - 1]);
    for (int i = 0; i < threads; i++) pthread_join(list[i].thread, NULL);
}

static ng_status run_ranks(ng_process_group *pg, rank_thread *list, ng_group_program *program,
                           void *with)
{
    const int count = pg->route.count;
    group_run run = {.program = program, .with = with};
    for (int i = 0; i < count; i++)
        list[i] =
            (rank_thread){.group = {.pg = pg, .rank = pg->route.first + i, .here = i}, .run = &run};
    run_all(list, count);
    for (int i = 0; i < count; i++)
        if (list[i].record.failures > 0)
            return ng_fail(list[i].record.status, "%s", list[i].record.text);
    return NG_OK;
}

ng_status ng_group_run(ng_group *group, ng_group_program *program, void *with, int ranks)
{
    static const char function[] = "ng_group_run";
    if (!ng_given(function, "group", group) || !ng_given(function, "program", program))
        return ng_newest_status();
    const ng_group_link link = group->pg->link;
    ng_process_group *pg = NULL;
    rank_thread *list = NULL;
    if (group->pg->route.ranks != link.size)
        ng_fail(NG_ESTATE, "%s: called inside a program of ng_group_run", function);
    else if (ranks < link.size || ranks > NG_MOST_RANKS)
        ng_fail(NG_EVALUE, "%s: %d ranks for %d processes, expected at least one for each",
                function, ranks, link.size);
    else
        pg = ng_process_group_new(function, &link, ranks);
    if (pg) list = ng_calloc(function, pg->route.count, sizeof *list);
    char call[48];
    snprintf(call, sizeof call, "%s of %d ranks", function, ranks);
    ng_status status =
        ng_group_combine(group, function, (ng_collective){.how = NG_COMBINE_BITS, .call = call});
    if (status == NG_OK) status = run_ranks(pg, list, program, with);
    ng_free(list);
    ng_process_group_free(pg);
    return status;
}
