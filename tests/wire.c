#include "wire.h"
#include "support.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUM_TAG = 1 << 20 };

typedef struct message {
    struct message *next;
    int from, to, tag;
    size_t bytes;
    char data[];
} message;

typedef struct {
    pthread_mutex_t lock;
    int count;
    message *first, **last; /* in the order in which they were sent */
} network;

typedef struct {
    network *network;
    ng_group_link link;
    int64_t sums;
    pthread_t thread;
    wire_process *process;
    void *with;
    ng_status status;
    char text[WIRE_TEXT];
} process;

/* A request that waits for a message, or for one message of each process to add. */
typedef struct {
    int from, tag; /* from -1: a sum */
    void *data;
    size_t bytes;
    int64_t count; /* numbers of a sum */
    ng_dtype dtype;
    bool done;
} waiting;

static void post(process *p, int to, int tag, const void *data, size_t bytes)
{
    network *n = p->network;
    message *m = malloc(sizeof *m + bytes);
    if (!m) abort();
    *m = (message){.from = p->link.rank, .to = to, .tag = tag, .bytes = bytes};
    if (bytes) memcpy(m->data, data, bytes);
    pthread_mutex_lock(&n->lock);
    *n->last = m;
    n->last = &m->next;
    pthread_mutex_unlock(&n->lock);
}

/* Returns the oldest message of this kind, which the caller frees, or NULL. */
static message *take(process *p, int from, int tag)
{
    network *n = p->network;
    pthread_mutex_lock(&n->lock);
    message **at = &n->first;
    while (*at && !((*at)->from == from && (*at)->to == p->link.rank && (*at)->tag == tag))
        at = &(*at)->next;
    message *found = *at;
    if (found) *at = found->next;
    if (found && n->last == &found->next) n->last = at;
    pthread_mutex_unlock(&n->lock);
    return found;
}

static bool has(process *p, int from, int tag)
{
    network *n = p->network;
    bool found = false;
    pthread_mutex_lock(&n->lock);
    for (message *m = n->first; m && !found; m = m->next)
        found = m->from == from && m->to == p->link.rank && m->tag == tag;
    pthread_mutex_unlock(&n->lock);
    return found;
}

static void wire_send(void *with, int to, int tag, const void *data, size_t bytes,
                      ng_group_request *request)
{
    post(with, to, tag, data, bytes);
    request->words[0] = 0;
}

static waiting *wait_for(ng_group_request *request, waiting w)
{
    waiting *own = malloc(sizeof *own);
    if (!own) abort();
    *own = w;
    request->words[0] = (uint64_t)(uintptr_t)own;
    return own;
}

static void wire_receive(void *with, int from, int tag, void *data, size_t bytes,
                         ng_group_request *request)
{
    (void)with;
    wait_for(request, (waiting){.from = from, .tag = tag, .data = data, .bytes = bytes});
}

static void wire_sum(void *with, void *data, int64_t count, ng_dtype dtype,
                     ng_group_request *request)
{
    process *p = with;
    const int tag = SUM_TAG + (int)p->sums++;
    const size_t bytes = (size_t)count * (dtype == NG_F32 ? 4 : 8);
    for (int i = 0; i < p->link.size; i++) post(p, i, tag, data, bytes);
    wait_for(
        request,
        (waiting){
            .from = -1, .tag = tag, .data = data, .bytes = bytes, .count = count, .dtype = dtype});
}

/* Adds from the last process to the first, which is not the tree's order. */
static bool add_up(process *p, const waiting *w)
{
    for (int i = 0; i < p->link.size; i++)
        if (!has(p, i, w->tag)) return false;
    memset(w->data, 0, w->bytes);
    for (int i = p->link.size - 1; i >= 0; i--) {
        message *m = take(p, i, w->tag);
        for (int64_t k = 0; k < w->count; k++)
            if (w->dtype == NG_F32)
                ((float *)w->data)[k] += ((float *)(void *)m->data)[k];
            else
                ((double *)w->data)[k] += ((double *)(void *)m->data)[k];
        free(m);
    }
    return true;
}

static bool wire_test(void *with, ng_group_request *request)
{
    waiting *w = (waiting *)(uintptr_t)request->words[0];
    if (!w) return true;
    if (w->from < 0) {
        if (!add_up(with, w)) return false;
    } else {
        message *m = take(with, w->from, w->tag);
        if (!m) return false;
        if (m->bytes > w->bytes) abort();
        if (m->bytes) memcpy(w->data, m->data, m->bytes);
        free(m);
    }
    free(w);
    request->words[0] = 0;
    return true;
}

static void *run_process(void *of)
{
    process *p = of;
    p->status = p->process(&p->link, p->with);
    snprintf(p->text, sizeof p->text, "%s", ng_error_text());
    return NULL;
}

wire_outcome wire_run(int count, wire_process *function, void *with)
{
    network n = {.count = count};
    n.last = &n.first;
    pthread_mutex_init(&n.lock, NULL);
    process *processes = calloc((size_t)count, sizeof *processes);
    if (!processes) abort();
    for (int i = 0; i < count; i++) {
        processes[i] = (process){.network = &n, .process = function, .with = with};
        processes[i].link = (ng_group_link){
            i, count, &processes[i], wire_send, wire_receive, wire_test, wire_sum, NULL};
    }
    for (int i = 0; i < count; i++)
        if (pthread_create(&processes[i].thread, NULL, run_process, &processes[i])) abort();
    wire_outcome outcome = {.left = 0};
    for (int i = 0; i < count; i++) {
        pthread_join(processes[i].thread, NULL);
        outcome.status[i] = processes[i].status;
        memcpy(outcome.text[i], processes[i].text, WIRE_TEXT);
    }
    for (message *m = n.first, *next; m; m = next, outcome.left++) next = m->next, free(m);
    free(processes);
    pthread_mutex_destroy(&n.lock);
    return outcome;
}

typedef struct {
    int members;
    ng_group_program *program;
    void *with;
} members_run;

static ng_status run_members(const ng_group_link *link, void *with)
{
    const members_run *run = with;
    ng_group *group = ng_group_over(link);
    if (!group) ng_clear_error(), group = ng_group_over(link); /* an allocation was refused once */
    const ng_status status = ng_group_run(group, run->program, run->with, run->members);
    ng_group_free(group);
    return status;
}

wire_outcome wire_run_members(int count, int members, ng_group_program *program, void *with)
{
    members_run run = {members, program, with};
    return wire_run(count, run_members, &run);
}

void wire_refuse_each(int members, ng_group_program *program)
{
    bool refused = true;
    for (int64_t n = 0; refused; n = next_to_refuse(n)) {
        const int64_t live = allocations_live();
        allocations_fail_once_after(n);
        const wire_outcome o = wire_run_members(2, members, program, NULL);
        refused = allocations_refused();
        allocations_succeed();
        ck_assert_int_eq(o.left, 0);
        ck_assert_int_eq(allocations_live(), live);
        ck_assert_msg(o.status[0] == o.status[1], "refused %lld: %s / %s", (long long)n, o.text[0],
                      o.text[1]);
        ck_assert_msg(o.status[0] == NG_OK || o.status[0] == NG_ENOMEM, "%s", o.text[0]);
        ng_clear_error();
    }
}
