/* A program for each member, on a thread of its own. */
#include "core/alloc.h"
#include "group/call.h"

typedef struct {
    ng_group_program *program;
    void *with;
    pthread_mutex_t gate; /* held until all threads are there */
    bool called_off;
} play;

typedef struct {
    ng_group group;
    play *play;
    pthread_t thread;
    ng_error_record record;
} member;

static void run_program(member *m)
{
    const play *p = m->play;
    const ng_status status = p->program(&m->group, p->with);
    if (status != NG_OK && !ng_failed())
        ng_fail(status, "ng_group_run: the program of rank %d returned %s", m->group.rank,
                ng_status_name(status));
    ng_group_leave(&m->group, "ng_group_run");
    m->record = ng_error_put_aside();
}

static void *run_in_thread(void *of)
{
    member *m = of;
    pthread_mutex_lock(&m->play->gate);
    pthread_mutex_unlock(&m->play->gate);
    if (!m->play->called_off) run_program(m);
    return NULL;
}

/* Where the system gives too few threads, no program has begun. */
static void call_off(play *p, member *members, int count, int threads)
{
    p->called_off = true;
    ng_fail(NG_ENOMEM, "ng_group_run: the system gives %d of %d threads", threads, count - 1);
    for (int i = 0; i < count - 1; i++) ng_group_start_failed(&members[i].group);
    members[0].group.team->settling = count - 1;
    ng_group_end_failed(&members[count - 1].group, "ng_group_run");
    members[0].record = ng_error_put_aside();
}

/* Each member on a thread of its own; the last one's is the caller's. */
static void run_all(play *p, member *members, int count)
{
    int threads = 0;
    pthread_mutex_lock(&p->gate);
    while (threads < count - 1 &&
           !pthread_create(&members[threads].thread, NULL, run_in_thread, &members[threads]))
        threads++;
    if (threads < count - 1) call_off(p, members, count, threads);
    pthread_mutex_unlock(&p->gate);
    if (!p->called_off) run_program(&members[count - 1]);
    for (int i = 0; i < threads; i++) pthread_join(members[i].thread, NULL);
}

static ng_status run(ng_team *t, member *members, ng_group_program *program, void *with)
{
    const int count = t->route.count;
    play p = {.program = program, .with = with};
    pthread_mutex_init(&p.gate, NULL);
    for (int i = 0; i < count; i++)
        members[i] =
            (member){.group = {.team = t, .rank = t->route.first + i, .here = i}, .play = &p};
    run_all(&p, members, count);
    pthread_mutex_destroy(&p.gate);
    for (int i = 0; i < count; i++)
        if (members[i].record.failures > 0)
            return ng_fail(members[i].record.status, "%s", members[i].record.text);
    return NG_OK;
}

/* Whether all processes want the same number of members. */
static bool agreed(ng_group *group, int members)
{
    ng_team *t = group->team;
    ng_moments m = {.n = 1, .mean = members};
    if (ng_group_agree(group) ||
        ng_group_combine(group, "ng_group_run",
                         (ng_collective){.how = NG_COMBINE_MOMENTS, .data = &m, .count = 1}))
        return false;
    if (m.squares == 0) return true;
    ng_fail(NG_EVALUE, "ng_group_run: %d members at process %d, and another number at others",
            members, t->link.rank);
    return false;
}

ng_status ng_group_run(ng_group *group, ng_group_program *program, void *with, int members)
{
    static const char function[] = "ng_group_run";
    if (!ng_given(function, "group", group) || !ng_given(function, "program", program))
        return ng_newest_status();
    const ng_group_link link = group->team->link;
    ng_team *t = NULL;
    member *list = NULL;
    if (members < link.size || members > NG_MOST_MEMBERS || group->team->route.members != link.size)
        ng_fail(NG_EVALUE, "%s: %d members, expected one or more for each of %d processes",
                function, members, group->team->route.members);
    else
        t = ng_team_new(function, &link, members);
    if (t) list = ng_calloc(function, t->route.count, sizeof *list);
    ng_status status = NG_OK;
    if (!agreed(group, members))
        status = ng_newest_status();
    else
        status = run(t, list, program, with);
    ng_free(list);
    ng_team_free(t);
    return status;
}
