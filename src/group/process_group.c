/* The calls of the ranks that this process holds.
 *
 * The n-th collective call of a rank has ticket n, on every rank. When all ranks of this process
 * have begun it, call.c takes it to the other processes. */
#include "group/process_group.h"
#include "core/alloc.h"
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { LOOKS_BEFORE_SLEEP = 1000 }; /* tests of the link before a waiting thread sleeps */

/* ---- All calls ------------------------------------------------------------------------------ */

static void go_on_with_all(ng_process_group *pg)
{
    for (int i = 0; i < NG_CALLS; i++) {
        ng_call *c = &pg->call[i];
        if (c->arrived == pg->route.count && c->stage != NG_STAGE_DONE) ng_call_go_on(pg, c);
    }
}

/* Gives the processor to others for a moment. */
static void back_off(int *tries)
{
    if (++*tries < LOOKS_BEFORE_SLEEP)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* Waits a moment without the lock, then goes on with all calls. While data are under way it does
 * not sleep: many links progress only inside `test`. */
static void pause_for(ng_process_group *pg, const ng_call *c, int *tries)
{
    if (!ng_is_linked(pg)) {
        pthread_cond_wait(&pg->changed, &pg->lock);
        return;
    }
    if (c->stage > NG_STAGE_TURN) *tries = 0;
    pthread_mutex_unlock(&pg->lock);
    back_off(tries);
    pthread_mutex_lock(&pg->lock);
    go_on_with_all(pg);
}

/* The place of a call that begins now; NULL once the group has failed. */
static ng_call *call_slot(ng_process_group *pg, int64_t ticket)
{
    ng_call *c = &pg->call[ticket % NG_CALLS];
    int tries = 0;
    while (!pg->failed && c->ticket != ticket && c->stage != NG_STAGE_DONE)
        pause_for(pg, c, &tries);
    if (pg->failed) return NULL;
    if (c->ticket != ticket) {
        c->ticket = ticket;
        c->arrived = 0;
        c->stage = NG_STAGE_FRAMES;
    }
    return c;
}

static void arrive_at_call(ng_group *group, ng_call *c, const ng_head *h, void *data)
{
    ng_process_group *pg = group->pg;
    c->data[group->here] = data;
    if (c->arrived++ == 0)
        c->head = *h;
    else
        ng_head_add(&c->head, h);
    if (c->arrived == pg->route.count) ng_call_begin(pg, c);
}

static int64_t start_call(ng_group *group, const ng_head *h, void *data)
{
    ng_process_group *pg = group->pg;
    pthread_mutex_lock(&pg->lock);
    ng_call *c = call_slot(pg, group->next);
    const int64_t ticket = c ? group->next++ : -1;
    if (pg->started < group->next) pg->started = group->next;
    if (c) arrive_at_call(group, c, h, data);
    pthread_mutex_unlock(&pg->lock);
    return ticket;
}

int64_t ng_group_start_failed(ng_group *group)
{
    const ng_head h = ng_head_failed(ng_error_status(), group->rank, ng_error_text());
    return start_call(group, &h, NULL);
}

int64_t ng_group_start(ng_group *group, ng_collective collective)
{
    if (ng_failed()) return ng_group_start_failed(group);
    ng_head h = {.how = (int32_t)collective.how,
                 .fast = collective.fast && ng_is_linked(group->pg),
                 .count = collective.count,
                 .rank = group->rank};
    snprintf(h.text, sizeof h.text, "%s", collective.call);
    return start_call(group, &h, collective.data);
}

/* ---- The end of a group that has failed ------------------------------------------------------ */

static void wait_for_request(const ng_process_group *pg, ng_group_request *request)
{
    for (int tries = 0; !pg->link.test(pg->link.with, request);) back_off(&tries);
}

/* How many calls any process has begun. */
static int64_t most_started(const ng_process_group *pg)
{
    const int n = pg->link.size;
    int64_t most = pg->started, theirs = 0;
    for (int hop = 1; hop < n; hop++) {
        const int to = (pg->link.rank + hop) % n, from = (pg->link.rank + n - hop) % n;
        ng_group_request sent, received;
        pg->link.receive(pg->link.with, from, NG_FAREWELL_TAG, &theirs, sizeof theirs, &received);
        pg->link.send(pg->link.with, to, NG_FAREWELL_TAG, &pg->started, sizeof pg->started, &sent);
        wait_for_request(pg, &received);
        wait_for_request(pg, &sent);
        if (theirs > most) most = theirs;
    }
    return most;
}

/* All ranks of this process have stopped. Takes part, with the failure, in the calls that other
 * processes have begun, so that no message is left under way. */
static void finish_open_calls(ng_process_group *pg)
{
    const int64_t most = most_started(pg);
    const int64_t from = pg->started > NG_CALLS ? pg->started - NG_CALLS : 0;
    for (int64_t ticket = from; ticket < most; ticket++) {
        ng_call *c = &pg->call[ticket % NG_CALLS];
        if (c->ticket > ticket) continue;
        if (c->ticket != ticket || c->arrived < pg->route.count) {
            c->ticket = ticket;
            c->arrived = pg->route.count;
            c->head = pg->failure;
            ng_call_begin(pg, c);
        }
        for (int tries = 0; c->stage != NG_STAGE_DONE; ng_call_go_on(pg, c)) back_off(&tries);
    }
    pg->over = true;
    pthread_cond_broadcast(&pg->changed);
}

/* Waits until all ranks have stopped; the lock is held. Returns the failure. */
static ng_status end_group(ng_group *group, const char *function)
{
    ng_process_group *pg = group->pg;
    if (!pg->over && ++pg->leaving == pg->route.count) finish_open_calls(pg);
    while (!pg->over) pthread_cond_wait(&pg->changed, &pg->lock);
    const ng_head *f = &pg->failure;
    if (f->rank == group->rank && ng_failed()) return ng_error_status();
    return ng_fail((ng_status)f->status, "%s: rank %d of %d: %s", function, f->rank,
                   pg->route.ranks, f->text);
}

/* Whether the call is under way; whether it has succeeded. Only a call that has succeeded gives its
 * place to another. */
static bool is_open(const ng_process_group *pg, int64_t ticket)
{
    const ng_call *c = &pg->call[ticket % NG_CALLS];
    return c->ticket == ticket && c->stage != NG_STAGE_DONE;
}

static bool ended_well(const ng_process_group *pg, int64_t ticket)
{
    if (ticket < 0) return false;
    const ng_call *c = &pg->call[ticket % NG_CALLS];
    return c->ticket > ticket || (c->stage == NG_STAGE_DONE && c->head.status == NG_OK);
}

ng_status ng_group_wait(ng_group *group, const char *function, int64_t ticket)
{
    ng_process_group *pg = group->pg;
    int tries = 0;
    pthread_mutex_lock(&pg->lock);
    while (ticket >= 0 && !pg->failed && is_open(pg, ticket))
        pause_for(pg, &pg->call[ticket % NG_CALLS], &tries);
    const ng_status status = ended_well(pg, ticket) ? NG_OK : end_group(group, function);
    pthread_mutex_unlock(&pg->lock);
    return status;
}

ng_status ng_group_combine(ng_group *group, const char *function, ng_collective collective)
{
    if (!collective.call) collective.call = function;
    return ng_group_wait(group, function, ng_group_start(group, collective));
}

ng_status ng_group_end_failed(ng_group *group, const char *function)
{
    return ng_group_wait(group, function, ng_group_start_failed(group));
}

void ng_group_poll(ng_group *group)
{
    ng_process_group *pg = group->pg;
    if (!ng_is_linked(pg)) return;
    pthread_mutex_lock(&pg->lock);
    go_on_with_all(pg);
    pthread_mutex_unlock(&pg->lock);
}

ng_group_traffic ng_group_sent(const ng_group *group) { return group->pg->sent; }

void ng_group_leave(ng_group *group, const char *function)
{
    if (!group->pg->over)
        ng_group_combine(group, function, (ng_collective){.how = NG_COMBINE_LEAVE, .call = ""});
}

/* ---- Make and free -------------------------------------------------------------------------- */

void ng_process_group_free(ng_process_group *pg)
{
    if (!pg) return;
    for (int i = 0; i < NG_CALLS; i++) ng_free(pg->call[i].theirs);
    ng_free(pg->data), ng_free(pg->frames);
    pthread_cond_destroy(&pg->changed), pthread_mutex_destroy(&pg->lock);
    ng_free(pg);
}

ng_process_group *ng_process_group_new(const char *function, const ng_group_link *link, int ranks)
{
    ng_process_group *pg = ng_calloc(function, 1, sizeof *pg);
    if (!pg) return NULL;
    pg->link = *link;
    pthread_mutex_init(&pg->lock, NULL), pthread_cond_init(&pg->changed, NULL);
    ng_route_plan(&pg->route, ranks, link->size, link->rank);
    pg->data = ng_calloc(function, (int64_t)NG_CALLS * pg->route.count, sizeof *pg->data);
    pg->frames = ng_calloc(function, ng_is_linked(pg) ? 2 * NG_CALLS : 0, sizeof *pg->frames);
    if (!pg->data || !pg->frames) {
        ng_process_group_free(pg);
        return NULL;
    }
    for (int i = 0; i < NG_CALLS; i++)
        pg->call[i] = (ng_call){.ticket = -1,
                                .stage = NG_STAGE_DONE,
                                .data = pg->data + (ptrdiff_t)i * pg->route.count,
                                .out = ng_is_linked(pg) ? &pg->frames[2 * i] : NULL,
                                .in = ng_is_linked(pg) ? &pg->frames[2 * i + 1] : NULL};
    return pg;
}
