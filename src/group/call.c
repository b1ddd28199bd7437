/* One call from process to process.
 *
 * When all ranks of this process have begun the call, their data are added up along the tree
 * (route.c), each node in the place of its first rank. Then the process takes the steps of its
 * route, first with a frame: it holds the call, its status and the data if they are few. Without a
 * failure, a second round of steps carries many data alone. So every process knows of a failure
 * before it waits for data. Each frame that a process waits for is sent, even if its sender has
 * failed.
 *
 * Where the route is recursive doubling, many data are sent by halves (Rabenseifner 2004). In each
 * step two peers exchange the halves that the other is to add up. At the end each process has the
 * sum of its own part, and the parts are returned the same way. Each number is added along the same
 * tree, but a process sends less than twice all data. */
#include "core/alloc.h"
#include "group/process_group.h"
#include <stdio.h>
#include <string.h>

/* ---- Steps between processes ---------------------------------------------------------------- */

static bool in_frame(const ng_head *h)
{
    return ng_combined_bytes(h->how, h->count) <= NG_FRAME_BYTES;
}

static int call_tag(const ng_call *c)
{
    return (int)(c->ticket % 16000) * 2 + (c->stage != NG_STAGE_FRAMES);
}

static void call_send(ng_process_group *pg, ng_call *c, int peer, const void *data, size_t bytes)
{
    pg->sent.messages++;
    pg->sent.bytes += (int64_t)bytes;
    c->waits[0] = true;
    pg->link.send(pg->link.with, peer, call_tag(c), data, bytes, &c->request[0]);
}

static void call_receive(ng_process_group *pg, ng_call *c, int peer, void *data, size_t bytes)
{
    c->waits[1] = true;
    pg->link.receive(pg->link.with, peer, call_tag(c), data, bytes, &c->request[1]);
}

/* Whether the messages of this stage carry the values. */
static bool has_values(const ng_call *c)
{
    return c->head.status == NG_OK && (c->stage == NG_STAGE_DATA || in_frame(&c->head));
}

static void send_value(ng_process_group *pg, ng_call *c, const ng_step *step)
{
    const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
    if (c->stage == NG_STAGE_DATA) {
        call_send(pg, c, step->peer, c->data[step->block], bytes);
        return;
    }
    c->out->head = c->head;
    if (has_values(c) && bytes) memcpy(c->out->data, c->data[step->block], bytes);
    call_send(pg, c, step->peer, c->out, sizeof c->out->head + (has_values(c) ? bytes : 0));
}

static void begin_whole_step(ng_process_group *pg, ng_call *c, const ng_step *step)
{
    const ng_step_kind kind = step->kind;
    const bool sends = kind == NG_STEP_SEND || kind == NG_STEP_EXCHANGE || kind == NG_STEP_GIVE;
    const bool receives =
        kind == NG_STEP_RECEIVE || kind == NG_STEP_EXCHANGE || kind == NG_STEP_TAKE;
    if (receives && c->stage == NG_STAGE_FRAMES)
        call_receive(pg, c, step->peer, c->in, sizeof *c->in);
    else if (receives)
        call_receive(pg, c, step->peer, step->kind == NG_STEP_TAKE ? c->data[0] : c->theirs,
                     ng_combined_bytes(c->head.how, c->head.count));
    if (sends) send_value(pg, c, step);
}

/* A range of the numbers. */
typedef struct {
    int64_t from, to;
} part_range;

/* The part that this process adds up after so many steps; `others` is that of the last step's
 * peer. */
static part_range part_after(const ng_process_group *pg, const ng_call *c, int steps,
                             part_range *others)
{
    part_range part = {0, c->head.count};
    for (int i = 0; i < steps; i++) {
        const int64_t middle = part.from + (part.to - part.from) / 2;
        const part_range left = {part.from, middle}, right = {middle, part.to};
        part = pg->route.step[i].left ? left : right;
        *others = pg->route.step[i].left ? right : left;
    }
    return part;
}

static char *part_place(const ng_call *c, part_range part)
{
    return (char *)c->data[0] + ng_combined_bytes(c->head.how, part.from);
}

static size_t part_bytes(const ng_call *c, part_range part)
{
    return ng_combined_bytes(c->head.how, part.to - part.from);
}

/* Halving sends the peer's part and receives numbers to add to the own one. Gathering takes the
 * steps in reverse: it sends the own part, added up, and receives the peer's. */
static void begin_half_step(ng_process_group *pg, ng_call *c)
{
    const bool halves = c->stage == NG_STAGE_HALVE;
    const int step = halves ? c->step : pg->route.n_steps - 1 - c->step;
    const int peer = pg->route.step[step].peer;
    part_range theirs = {0, 0};
    const part_range mine = part_after(pg, c, step + 1, &theirs);
    const part_range in = halves ? mine : theirs, out = halves ? theirs : mine;
    call_receive(pg, c, peer, halves ? c->theirs : part_place(c, in), part_bytes(c, in));
    call_send(pg, c, peer, part_place(c, out), part_bytes(c, out));
}

static void begin_step(ng_process_group *pg, ng_call *c)
{
    if (c->stage == NG_STAGE_HALVE || c->stage == NG_STAGE_GATHER)
        begin_half_step(pg, c);
    else
        begin_whole_step(pg, c, &pg->route.step[c->step]);
    c->begun = true;
}

/* Adds numbers of the step's peer to those of this process. */
static void add_theirs(const ng_call *c, const ng_step *step, int64_t count, void *mine,
                       const void *theirs)
{
    ng_combine_blocks(c->head.how, count, step->left ? mine : theirs, step->left ? theirs : mine,
                      mine);
}

static void add_received(ng_call *c, const ng_step *step)
{
    const bool in_frames = c->stage == NG_STAGE_FRAMES;
    if (in_frames) ng_head_add(&c->head, &c->in->head);
    if (has_values(c))
        add_theirs(c, step, c->head.count, c->data[step->block],
                   in_frames ? (const void *)c->in->data : c->theirs);
}

/* Adds the half that this step has received. */
static void add_received_half(const ng_process_group *pg, const ng_call *c)
{
    part_range others;
    const part_range mine = part_after(pg, c, c->step + 1, &others);
    add_theirs(c, &pg->route.step[c->step], mine.to - mine.from, part_place(c, mine), c->theirs);
}

static void finish_whole_step(ng_call *c, const ng_step *step)
{
    if (step->kind == NG_STEP_RECEIVE || step->kind == NG_STEP_EXCHANGE) add_received(c, step);
    if (step->kind == NG_STEP_ADD && has_values(c))
        ng_combine_blocks(c->head.how, c->head.count, c->data[step->block], c->data[step->peer],
                          c->data[step->block]);
    if (step->kind == NG_STEP_TAKE && c->stage == NG_STAGE_FRAMES) {
        c->head = c->in->head;
        const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
        if (has_values(c) && bytes) memcpy(c->data[0], c->in->data, bytes);
    }
}

static void finish_step(const ng_process_group *pg, ng_call *c)
{
    if (c->stage == NG_STAGE_HALVE)
        add_received_half(pg, c);
    else if (c->stage != NG_STAGE_GATHER)
        finish_whole_step(c, &pg->route.step[c->step]);
    c->begun = false;
    c->step++;
}

static bool is_waiting(ng_process_group *pg, ng_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->waits[i] && pg->link.test(pg->link.with, &c->request[i])) c->waits[i] = false;
    return c->waits[0] || c->waits[1];
}

/* ---- One call ------------------------------------------------------------------------------- */

static void call_finish(ng_process_group *pg, ng_call *c)
{
    c->stage = NG_STAGE_DONE;
    const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
    for (int i = 1; i < pg->route.count && c->head.status == NG_OK && bytes; i++)
        memcpy(c->data[i], c->data[0], bytes);
    if (c->head.status != NG_OK && !pg->failed) {
        pg->failed = true;
        pg->failure = c->head;
    }
    pthread_cond_broadcast(&pg->changed);
}

static void next_stage(ng_process_group *pg, ng_call *c)
{
    c->step = 0;
    if (c->stage == NG_STAGE_HALVE)
        c->stage = NG_STAGE_GATHER;
    else if (c->stage != NG_STAGE_FRAMES || c->head.status != NG_OK || in_frame(&c->head))
        call_finish(pg, c);
    else
        c->stage = c->head.fast         ? NG_STAGE_TURN
                   : pg->route.doubling ? NG_STAGE_HALVE
                                        : NG_STAGE_DATA;
}

/* Sums in any order begin in the order of their tickets, the same on every process. */
static bool has_turn(const ng_process_group *pg, const ng_call *c)
{
    for (int i = 0; i < NG_CALLS; i++) {
        const ng_call *other = &pg->call[i];
        if (other->ticket < c->ticket && other->stage <= NG_STAGE_TURN && other->head.fast)
            return false;
    }
    return true;
}

static void begin_in_any_order(ng_process_group *pg, ng_call *c)
{
    c->stage = NG_STAGE_ANY_ORDER;
    c->waits[0] = c->begun = true;
    pg->link.sum(pg->link.with, c->data[0], c->head.count,
                 c->head.how == NG_COMBINE_F32 ? NG_F32 : NG_F64, &c->request[0]);
}

void ng_call_go_on(ng_process_group *pg, ng_call *c)
{
    while (c->stage != NG_STAGE_DONE) {
        if (c->stage == NG_STAGE_TURN && !has_turn(pg, c)) return;
        if (c->stage == NG_STAGE_TURN) begin_in_any_order(pg, c);
        if (c->begun) {
            if (is_waiting(pg, c)) return;
            if (c->stage == NG_STAGE_ANY_ORDER) {
                call_finish(pg, c);
                return;
            }
            finish_step(pg, c);
        }
        if (c->step == pg->route.n_steps)
            next_stage(pg, c);
        else
            begin_step(pg, c);
    }
}

/* Adds up the nodes of the tree that lie wholly in this process. */
static void add_up_tree(const ng_process_group *pg, const ng_call *c)
{
    const ng_route *r = &pg->route;
    const int last = r->first + r->count;
    for (int half = 1; half < r->ranks; half *= 2)
        for (int left = 0; left + half < last; left += 2 * half) {
            const int end = left + 2 * half < r->ranks ? left + 2 * half : r->ranks;
            if (left < r->first || end > last) continue;
            void *to = c->data[left - r->first];
            ng_combine_blocks(c->head.how, c->head.count, to, c->data[left + half - r->first], to);
        }
}

/* For sums in any order: one value of this process, without the tree. */
static void add_up_any_order(const ng_process_group *pg, const ng_call *c)
{
    for (int i = 1; i < pg->route.count; i++)
        ng_combine_blocks(c->head.how, c->head.count, c->data[0], c->data[i], c->data[0]);
}

static void reserve_theirs(const ng_process_group *pg, ng_call *c)
{
    const int64_t count = pg->route.doubling ? (c->head.count + 1) / 2 : c->head.count;
    const size_t bytes = ng_combined_bytes(c->head.how, count);
    if (!ng_is_linked(pg) || c->head.fast || in_frame(&c->head) || bytes <= c->theirs_bytes) return;
    void *memory = ng_allocate_quietly(bytes);
    if (!memory) {
        char text[80];
        snprintf(text, sizeof text, "out of memory: %zu bytes for a sum", bytes);
        c->head = ng_head_failed(NG_ENOMEM, pg->route.first, text);
        return;
    }
    ng_free(c->theirs);
    c->theirs = memory;
    c->theirs_bytes = bytes;
}

void ng_call_begin(ng_process_group *pg, ng_call *c)
{
    if (c->head.status == NG_OK) reserve_theirs(pg, c);
    c->stage = NG_STAGE_FRAMES;
    c->step = 0;
    c->begun = false;
    if (c->head.status == NG_OK && c->head.fast && !in_frame(&c->head))
        add_up_any_order(pg, c);
    else if (c->head.status == NG_OK)
        add_up_tree(pg, c);
    ng_call_go_on(pg, c);
}
