/* What the members of a group do together.
 *
 * A member's n-th collective call has the ticket n, on every member. When all members of this
 * process have begun it, it goes its way to the other processes (call.c). */
#include "core/alloc.h"
#include "group/call.h"
#include <sched.h>
#include <stdio.h>
#include <time.h>

enum { PATIENCE = 1000 }; /* looks at the link before a thread that waits sleeps a little */

/* ---- All calls ------------------------------------------------------------------------------ */

static void go_on_with_all(ng_team *t)
{
    for (int i = 0; i < NG_CALLS; i++) {
        ng_call *c = &t->call[i];
        if (c->arrived == t->route.count && c->stage != NG_STAGE_DONE) ng_call_go_on(t, c);
    }
}

/* Lets others work for a while. */
static void look_again(int *looks)
{
    if (++*looks < PATIENCE)
        sched_yield();
    else
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
}

/* The same between two looks at what goes on; the lock is given up meanwhile. While data are under
 * way there is no sleeping: many a link goes on only when it is looked at. */
static void pause_for(ng_team *t, const ng_call *c, int *looks)
{
    if (!ng_team_is_linked(t)) {
        pthread_cond_wait(&t->changed, &t->lock);
        return;
    }
    if (c->stage > NG_STAGE_TURN) *looks = 0;
    pthread_mutex_unlock(&t->lock);
    look_again(looks);
    pthread_mutex_lock(&t->lock);
    go_on_with_all(t);
}

/* The place of a call that begins now; NULL once the group has failed. */
static ng_call *place_of(ng_team *t, int64_t ticket)
{
    ng_call *c = &t->call[ticket % NG_CALLS];
    int looks = 0;
    while (!t->failed && c->ticket != ticket && c->stage != NG_STAGE_DONE) pause_for(t, c, &looks);
    if (t->failed) return NULL;
    if (c->ticket != ticket) {
        c->ticket = ticket;
        c->arrived = 0;
        c->stage = NG_STAGE_FRAMES;
    }
    return c;
}

static void arrive(ng_group *group, ng_call *c, const ng_head *h, void *data)
{
    ng_team *t = group->team;
    c->data[group->here] = data;
    if (c->arrived++ == 0)
        c->head = *h;
    else
        ng_head_add(&c->head, h);
    if (c->arrived == t->route.count) ng_call_set_out(t, c);
}

static int64_t start(ng_group *group, const ng_head *h, void *data)
{
    ng_team *t = group->team;
    pthread_mutex_lock(&t->lock);
    ng_call *c = place_of(t, group->next);
    const int64_t ticket = c ? group->next++ : -1;
    if (t->started < group->next) t->started = group->next;
    if (c) arrive(group, c, h, data);
    pthread_mutex_unlock(&t->lock);
    return ticket;
}

int64_t ng_group_start_failed(ng_group *group)
{
    const ng_head h = ng_failed() ? ng_head_failed(ng_error_status(), group->rank, ng_error_text())
                                  : ng_head_failed(NG_ESTATE, group->rank, "it was left early");
    return start(group, &h, NULL);
}

int64_t ng_group_start(ng_group *group, ng_collective collective)
{
    if (ng_failed()) return ng_group_start_failed(group);
    ng_head h = {.how = (int32_t)collective.how,
                 .fast = collective.fast && ng_team_is_linked(group->team),
                 .count = collective.count,
                 .member = group->rank};
    snprintf(h.text, sizeof h.text, "%s", collective.call);
    return start(group, &h, collective.data);
}

/* ---- The end of a group that has failed ------------------------------------------------------ */

static void wait_for(const ng_team *t, ng_group_request *request)
{
    for (int looks = 0; !t->link.test(t->link.with, request);) look_again(&looks);
}

/* How many calls any process has begun. */
static int64_t most_started(const ng_team *t)
{
    const int n = t->link.size;
    int64_t most = t->started, theirs = 0;
    for (int hop = 1; hop < n; hop++) {
        const int to = (t->link.rank + hop) % n, from = (t->link.rank + n - hop) % n;
        ng_group_request sent, received;
        t->link.receive(t->link.with, from, NG_FAREWELL_TAG, &theirs, sizeof theirs, &received);
        t->link.send(t->link.with, to, NG_FAREWELL_TAG, &t->started, sizeof t->started, &sent);
        wait_for(t, &received);
        wait_for(t, &sent);
        if (theirs > most) most = theirs;
    }
    return most;
}

/* All members of this process have stopped. Takes the part of those that have not begun a call
 * which others wait for, so that no message is left under way. */
static void take_leave(ng_team *t)
{
    const int64_t most = most_started(t);
    const int64_t from = t->started > NG_CALLS ? t->started - NG_CALLS : 0;
    for (int64_t ticket = from; ticket < most; ticket++) {
        ng_call *c = &t->call[ticket % NG_CALLS];
        if (c->ticket > ticket) continue;
        if (c->ticket != ticket || c->arrived < t->route.count) {
            c->ticket = ticket;
            c->arrived = t->route.count;
            c->head = t->failure;
            ng_call_set_out(t, c);
        }
        for (int looks = 0; c->stage != NG_STAGE_DONE; ng_call_go_on(t, c)) look_again(&looks);
    }
    t->over = true;
    pthread_cond_broadcast(&t->changed);
}

/* Waits until all have stopped; the lock is held. */
static ng_status settle(ng_group *group, const char *function)
{
    ng_team *t = group->team;
    if (!t->over && ++t->settling == t->route.count) take_leave(t);
    while (!t->over) pthread_cond_wait(&t->changed, &t->lock);
    const ng_head *f = &t->failure;
    if (f->member == group->rank && ng_failed()) return ng_error_status();
    return ng_fail((ng_status)f->status, "%s: rank %d of %d: %s", function, f->member,
                   t->route.members, f->text);
}

/* Whether a call is still to come to its end; whether that was a good one. Its place is given to
 * another only after a good end. */
static bool is_open(const ng_team *t, int64_t ticket)
{
    const ng_call *c = &t->call[ticket % NG_CALLS];
    return c->ticket == ticket && c->stage != NG_STAGE_DONE;
}

static bool ended_well(const ng_team *t, int64_t ticket)
{
    if (ticket < 0) return false;
    const ng_call *c = &t->call[ticket % NG_CALLS];
    return c->ticket > ticket || (c->stage == NG_STAGE_DONE && c->head.status == NG_OK);
}

ng_status ng_group_wait(ng_group *group, const char *function, int64_t ticket)
{
    ng_team *t = group->team;
    int looks = 0;
    pthread_mutex_lock(&t->lock);
    while (ticket >= 0 && !t->failed && is_open(t, ticket))
        pause_for(t, &t->call[ticket % NG_CALLS], &looks);
    const ng_status status = ended_well(t, ticket) ? NG_OK : settle(group, function);
    pthread_mutex_unlock(&t->lock);
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
    ng_team *t = group->team;
    if (!ng_team_is_linked(t)) return;
    pthread_mutex_lock(&t->lock);
    go_on_with_all(t);
    pthread_mutex_unlock(&t->lock);
}

ng_group_traffic ng_group_sent(const ng_group *group) { return group->team->sent; }
/* The member's last call. */
void ng_group_leave(ng_group *group, const char *function)
{
    if (ng_failed())
        ng_group_end_failed(group, function);
    else if (!group->team->over)
        ng_group_combine(group, function, (ng_collective){.how = NG_COMBINE_LEAVE, .call = ""});
}

/* ---- Make and free -------------------------------------------------------------------------- */

void ng_team_free(ng_team *t)
{
    if (!t) return;
    for (int i = 0; i < NG_CALLS; i++) ng_free(t->call[i].theirs);
    ng_free(t->data), ng_free(t->frames);
    pthread_cond_destroy(&t->changed), pthread_mutex_destroy(&t->lock);
    ng_free(t);
}

ng_team *ng_team_new(const char *function, const ng_group_link *link, int members)
{
    ng_team *t = ng_calloc(function, 1, sizeof *t);
    if (!t) return NULL;
    t->link = *link;
    pthread_mutex_init(&t->lock, NULL), pthread_cond_init(&t->changed, NULL);
    ng_route_plan(&t->route, members, link->size, link->rank);
    t->data = ng_calloc(function, (int64_t)NG_CALLS * t->route.count, sizeof *t->data);
    t->frames = ng_calloc(function, ng_team_is_linked(t) ? 2 * NG_CALLS : 0, sizeof *t->frames);
    if (!t->data || !t->frames) {
        ng_team_free(t);
        return NULL;
    }
    for (int i = 0; i < NG_CALLS; i++)
        t->call[i] = (ng_call){.ticket = -1,
                               .stage = NG_STAGE_DONE,
                               .data = t->data + (ptrdiff_t)i * t->route.count,
                               .out = ng_team_is_linked(t) ? &t->frames[2 * i] : NULL,
                               .in = ng_team_is_linked(t) ? &t->frames[2 * i + 1] : NULL};
    return t;
}
