/* What the members of a group do together.
 *
 * A member's n-th collective call has the ticket n, on every member. When all members of this
 * process have begun it, their data are added up along the tree (route.h), in the place of the
 * first of each node; then the process takes the steps of its route: first with a frame, which
 * says what was called for, how it stands, and, where they are few, the data; then, if all is well
 * and they are many, with the data alone. So every process knows of a failure before it waits for
 * data, and each frame that is waited for is sent, if only to say that its sender has failed.
 */
#include "group/team.h"
#include "core/alloc.h"
#include "group/combine.h"
#include "group/route.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    RING = 64,        /* calls that may be under way at once */
    TEXT = 232,       /* of a failure, cut */
    INLINE = 3584,    /* bytes of data that a frame takes along */
    FAREWELL = 32767, /* the tag of the last messages; those of calls are below */
    PATIENCE = 100    /* looks at the link before a thread that waits sleeps a little */
};

/* What was called for, and how it stands. */
typedef struct {
    int32_t how, fast;
    int64_t count;
    int32_t status, member; /* not NG_OK: who has failed */
    char text[TEXT];
} head;

typedef struct {
    head head;
    double data[INLINE / sizeof(double)];
} frame;

typedef enum { FRAMES, TURN, DATA, ANY_ORDER, DONE } stage;

/* One collective call, as this process sees it. */
typedef struct {
    int64_t ticket;
    int arrived; /* members of this process that have begun it */
    stage stage;
    int step;
    bool begun; /* the messages of the step are under way */
    head head;
    void **data; /* of each member of this process */
    frame *out, *in;
    void *theirs; /* what comes from other processes, where it is more than a frame takes */
    size_t theirs_bytes;
    ng_group_request request[2];
    bool waits[2];
} call;

typedef struct {
    ng_group_link link; /* size 1: there is none */
    ng_route route;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    call call[RING];
    void **data; /* of all calls */
    frame *frames;
    bool failed; /* nothing new is begun; */
    head failure;
    bool over;       /* and all processes know */
    int settling;    /* members of this process that wait for that */
    int64_t started; /* tickets that a member of this process has taken */
    ng_group_traffic sent;
} team;

struct ng_group {
    team *team;
    int rank; /* in the group */
    int here; /* among the members of this process */
    int64_t next;
};

static bool is_linked(const team *t) { return t->link.size > 1; }

/* ---- What was called for, and how it stands -------------------------------------------------- */

static void describe(const head *h, char *text, size_t bytes)
{
    static const char *const what[] = {[NG_COMBINE_F32] = "numbers (float32) to add up",
                                       [NG_COMBINE_F64] = "numbers (float64) to add up",
                                       [NG_COMBINE_BITS] = "words to hand round",
                                       [NG_COMBINE_MOMENTS] = "channels' statistics",
                                       [NG_COMBINE_LEAVE] = ""};
    if (h->how == NG_COMBINE_LEAVE)
        snprintf(text, bytes, "has no more to do");
    else
        snprintf(text, bytes, "has %lld %s%s", (long long)h->count, what[h->how],
                 h->fast ? " in any order" : "");
}

/* head = that of the members to its left, and right's: the failure of the first, or of both. */
static void join_heads(head *left, const head *right)
{
    if (left->status != NG_OK && (right->status == NG_OK || left->member <= right->member)) return;
    if (left->status != NG_OK || right->status != NG_OK) {
        *left = *right;
        return;
    }
    if (left->how == right->how && left->count == right->count && left->fast == right->fast) return;
    char mine[80], theirs[80], text[TEXT];
    describe(left, mine, sizeof mine), describe(right, theirs, sizeof theirs);
    snprintf(text, sizeof text, "it %s, where rank %d %s", theirs, left->member, mine);
    *left = *right;
    left->status = NG_ESTATE;
    memcpy(left->text, text, sizeof text);
}

static head failed_head(ng_status status, int member, const char *text)
{
    head h = {.how = NG_COMBINE_LEAVE, .status = (int32_t)status, .member = member};
    snprintf(h.text, sizeof h.text, "%s", text);
    return h;
}

/* ---- Steps between processes ---------------------------------------------------------------- */

static bool in_frame(const head *h) { return ng_combined_bytes(h->how, h->count) <= INLINE; }

static int tag_of(const call *c) { return (int)(c->ticket % 16000) * 2 + (c->stage == DATA); }

static void send(team *t, call *c, int peer, const void *data, size_t bytes)
{
    t->sent.messages++;
    t->sent.bytes += (int64_t)bytes;
    c->waits[0] = true;
    t->link.send(t->link.with, peer, tag_of(c), data, bytes, &c->request[0]);
}

static void receive(team *t, call *c, int peer, void *data, size_t bytes)
{
    c->waits[1] = true;
    t->link.receive(t->link.with, peer, tag_of(c), data, bytes, &c->request[1]);
}

static void send_value(team *t, call *c, const ng_step *step)
{
    const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
    if (c->stage == DATA) {
        send(t, c, step->peer, c->data[step->block], bytes);
        return;
    }
    const bool takes = c->head.status == NG_OK && in_frame(&c->head);
    c->out->head = c->head;
    if (takes && bytes) memcpy(c->out->data, c->data[step->block], bytes);
    send(t, c, step->peer, c->out, sizeof c->out->head + (takes ? bytes : 0));
}

static void begin_step(team *t, call *c, const ng_step *step)
{
    const bool sends =
        step->kind == NG_STEP_SEND || step->kind == NG_STEP_EXCHANGE || step->kind == NG_STEP_GIVE;
    const bool receives = step->kind == NG_STEP_RECEIVE || step->kind == NG_STEP_EXCHANGE ||
                          step->kind == NG_STEP_TAKE;
    if (receives && c->stage == FRAMES)
        receive(t, c, step->peer, c->in, sizeof *c->in);
    else if (receives)
        receive(t, c, step->peer, step->kind == NG_STEP_TAKE ? c->data[0] : c->theirs,
                ng_combined_bytes(c->head.how, c->head.count));
    if (sends) send_value(t, c, step);
    c->begun = true;
}

/* Whether the values themselves go along with this stage's messages. */
static bool has_values(const call *c)
{
    return c->head.status == NG_OK && (c->stage == DATA || in_frame(&c->head));
}

static void join(call *c, const ng_step *step)
{
    if (c->stage == FRAMES && step->left)
        join_heads(&c->head, &c->in->head);
    else if (c->stage == FRAMES) {
        head left = c->in->head;
        join_heads(&left, &c->head);
        c->head = left;
    }
    if (!has_values(c)) return;
    void *mine = c->data[step->block];
    const void *theirs = c->stage == DATA ? c->theirs : c->in->data;
    ng_combine(c->head.how, c->head.count, step->left ? mine : theirs, step->left ? theirs : mine,
               mine);
}

static void finish_step(call *c, const ng_step *step)
{
    if (step->kind == NG_STEP_RECEIVE || step->kind == NG_STEP_EXCHANGE) join(c, step);
    if (step->kind == NG_STEP_ADD && has_values(c))
        ng_combine(c->head.how, c->head.count, c->data[step->block], c->data[step->peer],
                   c->data[step->block]);
    if (step->kind == NG_STEP_TAKE && c->stage == FRAMES) {
        c->head = c->in->head;
        const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
        if (has_values(c) && bytes) memcpy(c->data[0], c->in->data, bytes);
    }
    c->begun = false;
    c->step++;
}

static bool is_waiting(team *t, call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->waits[i] && t->link.test(t->link.with, &c->request[i])) c->waits[i] = false;
    return c->waits[0] || c->waits[1];
}

/* ---- One call ------------------------------------------------------------------------------- */

static void finish(team *t, call *c)
{
    c->stage = DONE;
    const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
    for (int i = 1; i < t->route.count && c->head.status == NG_OK && bytes; i++)
        memcpy(c->data[i], c->data[0], bytes);
    if (c->head.status != NG_OK && !t->failed) {
        t->failed = true;
        t->failure = c->head;
    }
    pthread_cond_broadcast(&t->changed);
}

static void next_stage(team *t, call *c)
{
    c->step = 0;
    if (c->stage != FRAMES || c->head.status != NG_OK || in_frame(&c->head)) {
        finish(t, c);
        return;
    }
    c->stage = c->head.fast ? TURN : DATA;
}

/* Sums in any order begin in the order of their tickets, on every process: that is how they find
 * each other. */
static bool has_turn(const team *t, const call *c)
{
    for (int i = 0; i < RING; i++) {
        const call *other = &t->call[i];
        if (other->ticket < c->ticket && other->stage <= TURN && other->head.fast) return false;
    }
    return true;
}

static void begin_in_any_order(team *t, call *c)
{
    c->stage = ANY_ORDER;
    c->waits[0] = c->begun = true;
    t->link.sum(t->link.with, c->data[0], c->head.count,
                c->head.how == NG_COMBINE_F32 ? NG_F32 : NG_F64, &c->request[0]);
}

static void go_on(team *t, call *c)
{
    while (c->stage != DONE) {
        if (c->stage == TURN && !has_turn(t, c)) return;
        if (c->stage == TURN) begin_in_any_order(t, c);
        if (c->begun) {
            if (is_waiting(t, c)) return;
            if (c->stage == ANY_ORDER) {
                finish(t, c);
                return;
            }
            finish_step(c, &t->route.step[c->step]);
        }
        if (c->step == t->route.n_steps)
            next_stage(t, c);
        else
            begin_step(t, c, &t->route.step[c->step]);
    }
}

/* Adds up the nodes of the tree that lie wholly in this process. */
static void add_up_here(const team *t, const call *c)
{
    const ng_route *r = &t->route;
    const int last = r->first + r->count;
    for (int half = 1; half < r->members; half *= 2)
        for (int left = 0; left + half < last; left += 2 * half) {
            const int end = left + 2 * half < r->members ? left + 2 * half : r->members;
            if (left < r->first || end > last) continue;
            void *to = c->data[left - r->first];
            ng_combine(c->head.how, c->head.count, to, c->data[left + half - r->first], to);
        }
}

/* In any order means one value to a process, whatever the tree. */
static void add_up_all_here(const team *t, const call *c)
{
    for (int i = 1; i < t->route.count; i++)
        ng_combine(c->head.how, c->head.count, c->data[0], c->data[i], c->data[0]);
}

static void make_room(const team *t, call *c)
{
    const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
    if (!is_linked(t) || c->head.fast || in_frame(&c->head) || bytes <= c->theirs_bytes) return;
    void *memory = ng_allocate_quietly(bytes);
    if (!memory) {
        char text[80];
        snprintf(text, sizeof text, "out of memory (%zu bytes for a sum)", bytes);
        c->head = failed_head(NG_ENOMEM, t->route.first, text);
        return;
    }
    ng_free(c->theirs);
    c->theirs = memory;
    c->theirs_bytes = bytes;
}

/* All members of this process are there. */
static void set_out(team *t, call *c)
{
    if (c->head.status == NG_OK) make_room(t, c);
    c->stage = FRAMES;
    c->step = 0;
    c->begun = false;
    if (c->head.status == NG_OK)
        (c->head.fast && !in_frame(&c->head) ? add_up_all_here : add_up_here)(t, c);
    go_on(t, c);
}

/* ---- All calls ------------------------------------------------------------------------------ */

static void go_on_with_all(team *t)
{
    for (int i = 0; i < RING; i++) {
        call *c = &t->call[i];
        if (c->arrived == t->route.count && c->stage != DONE) go_on(t, c);
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

/* The same between two looks at what goes on; the lock is given up meanwhile. */
static void pause_for(team *t, int *looks)
{
    if (!is_linked(t)) {
        pthread_cond_wait(&t->changed, &t->lock);
        return;
    }
    pthread_mutex_unlock(&t->lock);
    look_again(looks);
    pthread_mutex_lock(&t->lock);
    go_on_with_all(t);
}

/* The place of a call that begins now; NULL once the group has failed. */
static call *place_of(team *t, int64_t ticket)
{
    call *c = &t->call[ticket % RING];
    int looks = 0;
    while (!t->failed && c->ticket != ticket && c->stage != DONE) pause_for(t, &looks);
    if (t->failed) return NULL;
    if (c->ticket != ticket) {
        c->ticket = ticket;
        c->arrived = 0;
        c->stage = FRAMES;
    }
    return c;
}

static void arrive(ng_group *group, call *c, const head *h, void *data)
{
    team *t = group->team;
    c->data[group->here] = data;
    if (c->arrived++ == 0)
        c->head = *h;
    else if (h->member > c->head.member)
        join_heads(&c->head, h);
    else {
        head left = *h;
        join_heads(&left, &c->head);
        c->head = left;
    }
    if (c->arrived == t->route.count) set_out(t, c);
}

static int64_t start(ng_group *group, const head *h, void *data)
{
    team *t = group->team;
    pthread_mutex_lock(&t->lock);
    call *c = place_of(t, group->next);
    const int64_t ticket = c ? group->next++ : -1;
    if (t->started < group->next) t->started = group->next;
    if (c) arrive(group, c, h, data);
    pthread_mutex_unlock(&t->lock);
    return ticket;
}

int64_t ng_group_start_failed(ng_group *group)
{
    const head h = ng_failed() ? failed_head(ng_error_status(), group->rank, ng_error_text())
                               : failed_head(NG_ESTATE, group->rank, "it was left early");
    return start(group, &h, NULL);
}

int64_t ng_group_start(ng_group *group, ng_collective collective)
{
    if (ng_failed()) return ng_group_start_failed(group);
    const head h = {.how = (int32_t)collective.how,
                    .fast = collective.fast && is_linked(group->team),
                    .count = collective.count,
                    .member = group->rank};
    return start(group, &h, collective.data);
}

/* ---- The end of a group that has failed ------------------------------------------------------ */

static void wait_for(const team *t, ng_group_request *request)
{
    for (int looks = 0; !t->link.test(t->link.with, request);) look_again(&looks);
}

/* How many calls any process has begun. */
static int64_t most_started(const team *t)
{
    const int n = t->link.size;
    int64_t most = t->started, theirs = 0;
    for (int hop = 1; hop < n; hop++) {
        const int to = (t->link.rank + hop) % n, from = (t->link.rank + n - hop) % n;
        ng_group_request sent, received;
        t->link.receive(t->link.with, from, FAREWELL, &theirs, sizeof theirs, &received);
        t->link.send(t->link.with, to, FAREWELL, &t->started, sizeof t->started, &sent);
        wait_for(t, &received);
        wait_for(t, &sent);
        if (theirs > most) most = theirs;
    }
    return most;
}

/* All members of this process have stopped. Takes the part of those that have not begun a call
 * which others wait for, so that no message is left under way. */
static void take_leave(team *t)
{
    const int64_t most = most_started(t);
    const int64_t from = t->started > RING ? t->started - RING : 0;
    for (int64_t ticket = from; ticket < most; ticket++) {
        call *c = &t->call[ticket % RING];
        if (c->ticket > ticket) continue;
        if (c->ticket != ticket || c->arrived < t->route.count) {
            c->ticket = ticket;
            c->arrived = t->route.count;
            c->head = t->failure;
            set_out(t, c);
        }
        for (int looks = 0; c->stage != DONE; go_on(t, c)) look_again(&looks);
    }
    t->over = true;
    pthread_cond_broadcast(&t->changed);
}

/* Waits until all have stopped; the lock is held. */
static ng_status settle(ng_group *group, const char *function)
{
    team *t = group->team;
    if (!t->over && ++t->settling == t->route.count) take_leave(t);
    while (!t->over) pthread_cond_wait(&t->changed, &t->lock);
    const head *f = &t->failure;
    if (f->member == group->rank && ng_failed()) return ng_error_status();
    return ng_fail((ng_status)f->status, "%s: rank %d of %d: %s", function, f->member,
                   t->route.members, f->text);
}

/* Whether a call is still to come to its end; whether that was a good one. Its place is given to
 * another only after a good end. */
static bool is_open(const team *t, int64_t ticket)
{
    const call *c = &t->call[ticket % RING];
    return c->ticket == ticket && c->stage != DONE;
}

static bool ended_well(const team *t, int64_t ticket)
{
    if (ticket < 0) return false;
    const call *c = &t->call[ticket % RING];
    return c->ticket > ticket || (c->stage == DONE && c->head.status == NG_OK);
}

ng_status ng_group_wait(ng_group *group, const char *function, int64_t ticket)
{
    team *t = group->team;
    int looks = 0;
    pthread_mutex_lock(&t->lock);
    while (ticket >= 0 && !t->failed && is_open(t, ticket)) pause_for(t, &looks);
    const ng_status status = ended_well(t, ticket) ? NG_OK : settle(group, function);
    pthread_mutex_unlock(&t->lock);
    return status;
}

ng_status ng_group_combine(ng_group *group, const char *function, ng_collective collective)
{
    return ng_group_wait(group, function, ng_group_start(group, collective));
}

ng_status ng_group_end_failed(ng_group *group, const char *function)
{
    return ng_group_wait(group, function, ng_group_start_failed(group));
}

void ng_group_poll(ng_group *group)
{
    team *t = group->team;
    if (!is_linked(t)) return;
    pthread_mutex_lock(&t->lock);
    go_on_with_all(t);
    pthread_mutex_unlock(&t->lock);
}

ng_group_traffic ng_group_sent(const ng_group *group) { return group->team->sent; }

/* ---- Make and free -------------------------------------------------------------------------- */

static void free_team(team *t)
{
    if (!t) return;
    for (int i = 0; i < RING; i++) ng_free(t->call[i].theirs);
    ng_free(t->data), ng_free(t->frames);
    pthread_cond_destroy(&t->changed), pthread_mutex_destroy(&t->lock);
    ng_free(t);
}

static team *team_new(const char *function, const ng_group_link *link, int members)
{
    team *t = ng_calloc(function, 1, sizeof *t);
    if (!t) return NULL;
    t->link = *link;
    pthread_mutex_init(&t->lock, NULL), pthread_cond_init(&t->changed, NULL);
    ng_route_plan(&t->route, members, link->size, link->rank);
    t->data = ng_calloc(function, (int64_t)RING * t->route.count, sizeof *t->data);
    t->frames = ng_calloc(function, is_linked(t) ? 2 * RING : 0, sizeof *t->frames);
    if (!t->data || !t->frames) {
        free_team(t);
        return NULL;
    }
    for (int i = 0; i < RING; i++)
        t->call[i] = (call){.ticket = -1,
                            .stage = DONE,
                            .data = t->data + (ptrdiff_t)i * t->route.count,
                            .out = is_linked(t) ? &t->frames[2 * i] : NULL,
                            .in = is_linked(t) ? &t->frames[2 * i + 1] : NULL};
    return t;
}

static ng_group *group_over(const char *function, const ng_group_link *link)
{
    ng_group *group = ng_calloc(function, 1, sizeof *group);
    team *t = group ? team_new(function, link, link->size) : NULL;
    if (!t) {
        ng_free(group);
        return NULL;
    }
    *group = (ng_group){.team = t, .rank = link->rank};
    return group;
}

ng_group *ng_group_alone(void) { return group_over("ng_group_alone", &(ng_group_link){.size = 1}); }

ng_group *ng_group_over(const ng_group_link *link)
{
    static const char function[] = "ng_group_over";
    if (!ng_given(function, "link", link)) return NULL;
    const bool whole = link->size == 1 || (link->send && link->receive && link->test && link->sum);
    if (link->size >= 1 && link->size <= NG_MOST_MEMBERS && link->rank >= 0 &&
        link->rank < link->size && whole)
        return group_over(function, link);
    ng_fail(NG_EVALUE, "%s: process %d of %d%s, expected 0 <= rank < size and all functions",
            function, link->rank, link->size, whole ? "" : " without all functions");
    return NULL;
}

int ng_group_rank(const ng_group *group)
{
    return ng_given("ng_group_rank", "group", group) ? group->rank : -1;
}

int ng_group_size(const ng_group *group)
{
    return ng_given("ng_group_size", "group", group) ? group->team->route.members : -1;
}

/* The member's last call. */
static void leave(ng_group *group, const char *function)
{
    if (ng_failed())
        ng_group_end_failed(group, function);
    else if (!group->team->over)
        ng_group_combine(group, function, (ng_collective){.how = NG_COMBINE_LEAVE});
}

void ng_group_free(ng_group *group)
{
    if (!group) return;
    leave(group, "ng_group_free");
    const ng_group_link *link = &group->team->link;
    if (link->close) link->close(link->with);
    free_team(group->team);
    ng_free(group);
}

/* ---- A program for each member -------------------------------------------------------------- */

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
    leave(&m->group, "ng_group_run");
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

static ng_status run(team *t, member *members, ng_group_program *program, void *with)
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
    team *t = group->team;
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
    team *t = NULL;
    member *list = NULL;
    if (members < link.size || members > NG_MOST_MEMBERS || group->team->route.members != link.size)
        ng_fail(NG_EVALUE, "%s: %d members, expected one or more for each of %d processes",
                function, members, group->team->route.members);
    else
        t = team_new(function, &link, members);
    if (t) list = ng_calloc(function, t->route.count, sizeof *list);
    ng_status status = NG_OK;
    if (!agreed(group, members))
        status = ng_newest_status();
    else
        status = run(t, list, program, with);
    ng_free(list);
    free_team(t);
    return status;
}
