/* What one call sends from process to process.
 *
 * When all members of this process have begun it, their data are added up along the tree (route.h),
 * in the place of the first of each node; then the process takes the steps of its route: first with
 * a frame, which says what was called for, how it stands, and, where they are few, the data; then,
 * if all is well and they are many, with the data alone. So every process knows of a failure before
 * it waits for data, and each frame that is waited for is sent, if only to say that its sender has
 * failed.
 *
 * Where the route is recursive doubling, many data go it by halves (Rabenseifner 2004): at each
 * step peers give each other the half that the other is to add up, so that in the end each process
 * has the sum of its own part, and then they give those back the same way. Each number is added
 * along the same tree, but a process sends less than twice all data, and not all at each step. */
#include "group/call.h"
#include "core/alloc.h"
#include "group/combine.h"
#include <stdio.h>
#include <string.h>

/* ---- Steps between processes ---------------------------------------------------------------- */

static bool in_frame(const ng_head *h)
{
    return ng_combined_bytes(h->how, h->count) <= NG_FRAME_BYTES;
}

static int tag_of(const ng_call *c)
{
    return (int)(c->ticket % 16000) * 2 + (c->stage != NG_STAGE_FRAMES);
}

static void send(ng_team *t, ng_call *c, int peer, const void *data, size_t bytes)
{
    t->sent.messages++;
    t->sent.bytes += (int64_t)bytes;
    c->waits[0] = true;
    t->link.send(t->link.with, peer, tag_of(c), data, bytes, &c->request[0]);
}

static void receive(ng_team *t, ng_call *c, int peer, void *data, size_t bytes)
{
    c->waits[1] = true;
    t->link.receive(t->link.with, peer, tag_of(c), data, bytes, &c->request[1]);
}

static void send_value(ng_team *t, ng_call *c, const ng_step *step)
{
    const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
    if (c->stage == NG_STAGE_DATA) {
        send(t, c, step->peer, c->data[step->block], bytes);
        return;
    }
    const bool takes = c->head.status == NG_OK && in_frame(&c->head);
    c->out->head = c->head;
    if (takes && bytes) memcpy(c->out->data, c->data[step->block], bytes);
    send(t, c, step->peer, c->out, sizeof c->out->head + (takes ? bytes : 0));
}

static void begin_frames_step(ng_team *t, ng_call *c, const ng_step *step, bool sends,
                              bool receives)
{
    if (receives && c->stage == NG_STAGE_FRAMES)
        receive(t, c, step->peer, c->in, sizeof *c->in);
    else if (receives)
        receive(t, c, step->peer, step->kind == NG_STEP_TAKE ? c->data[0] : c->theirs,
                ng_combined_bytes(c->head.how, c->head.count));
    if (sends) send_value(t, c, step);
}

/* Of the numbers. */
typedef struct {
    int64_t from, to;
} range;

/* What is this process's to add up after so many steps. */
static range part_after(const ng_team *t, const ng_call *c, int steps)
{
    range part = {0, c->head.count};
    for (int i = 0; i < steps; i++) {
        const int64_t middle = part.from + (part.to - part.from) / 2;
        if (t->route.step[i].left)
            part.to = middle;
        else
            part.from = middle;
    }
    return part;
}

/* What is then its peer's of that step. */
static range part_of_peer(const ng_team *t, const ng_call *c, int step)
{
    range all = part_after(t, c, step);
    const range mine = part_after(t, c, step + 1);
    if (t->route.step[step].left)
        all.from = mine.to;
    else
        all.to = mine.from;
    return all;
}

static char *place_of(const ng_call *c, range part)
{
    return (char *)c->data[0] + ng_combined_bytes(c->head.how, part.from);
}

static size_t bytes_of(const ng_call *c, range part)
{
    return ng_combined_bytes(c->head.how, part.to - part.from);
}

/* The step of the route: gathering goes back from the last. */
static int step_of(const ng_team *t, const ng_call *c)
{
    return c->stage == NG_STAGE_GATHER ? t->route.n_steps - 1 - c->step : c->step;
}

static void begin_half_step(ng_team *t, ng_call *c)
{
    const int step = step_of(t, c), peer = t->route.step[step].peer;
    const range mine = part_after(t, c, step + 1), other = part_of_peer(t, c, step);
    if (c->stage == NG_STAGE_HALVE) {
        receive(t, c, peer, c->theirs, bytes_of(c, mine));
        send(t, c, peer, place_of(c, other), bytes_of(c, other));
    } else {
        receive(t, c, peer, place_of(c, other), bytes_of(c, other));
        send(t, c, peer, place_of(c, mine), bytes_of(c, mine));
    }
}

static void begin_step(ng_team *t, ng_call *c)
{
    const ng_step *step = &t->route.step[c->step];
    if (c->stage == NG_STAGE_HALVE || c->stage == NG_STAGE_GATHER)
        begin_half_step(t, c);
    else
        begin_frames_step(t, c, step,
                          step->kind == NG_STEP_SEND || step->kind == NG_STEP_EXCHANGE ||
                              step->kind == NG_STEP_GIVE,
                          step->kind == NG_STEP_RECEIVE || step->kind == NG_STEP_EXCHANGE ||
                              step->kind == NG_STEP_TAKE);
    c->begun = true;
}

/* Whether the values themselves go along with this stage's messages. */
static bool has_values(const ng_call *c)
{
    return c->head.status == NG_OK && (c->stage == NG_STAGE_DATA || in_frame(&c->head));
}

static void join(ng_call *c, const ng_step *step)
{
    if (c->stage == NG_STAGE_FRAMES) ng_head_add(&c->head, &c->in->head);
    if (!has_values(c)) return;
    void *mine = c->data[step->block];
    const void *theirs = c->stage == NG_STAGE_DATA ? c->theirs : c->in->data;
    ng_combine(c->head.how, c->head.count, step->left ? mine : theirs, step->left ? theirs : mine,
               mine);
}

/* Adds up the half of this step. */
static void join_half(const ng_team *t, const ng_call *c)
{
    const range mine = part_after(t, c, c->step + 1);
    const bool left = t->route.step[c->step].left;
    void *here = place_of(c, mine);
    ng_combine(c->head.how, mine.to - mine.from, left ? here : c->theirs, left ? c->theirs : here,
               here);
}

static void finish_frames_step(ng_call *c, const ng_step *step)
{
    if (step->kind == NG_STEP_RECEIVE || step->kind == NG_STEP_EXCHANGE) join(c, step);
    if (step->kind == NG_STEP_ADD && has_values(c))
        ng_combine(c->head.how, c->head.count, c->data[step->block], c->data[step->peer],
                   c->data[step->block]);
    if (step->kind == NG_STEP_TAKE && c->stage == NG_STAGE_FRAMES) {
        c->head = c->in->head;
        const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
        if (has_values(c) && bytes) memcpy(c->data[0], c->in->data, bytes);
    }
}

static void finish_step(const ng_team *t, ng_call *c)
{
    if (c->stage == NG_STAGE_HALVE)
        join_half(t, c);
    else if (c->stage != NG_STAGE_GATHER)
        finish_frames_step(c, &t->route.step[c->step]);
    c->begun = false;
    c->step++;
}

static bool is_waiting(ng_team *t, ng_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->waits[i] && t->link.test(t->link.with, &c->request[i])) c->waits[i] = false;
    return c->waits[0] || c->waits[1];
}

/* ---- One call ------------------------------------------------------------------------------- */

static void finish(ng_team *t, ng_call *c)
{
    c->stage = NG_STAGE_DONE;
    const size_t bytes = ng_combined_bytes(c->head.how, c->head.count);
    for (int i = 1; i < t->route.count && c->head.status == NG_OK && bytes; i++)
        memcpy(c->data[i], c->data[0], bytes);
    if (c->head.status != NG_OK && !t->failed) {
        t->failed = true;
        t->failure = c->head;
    }
    pthread_cond_broadcast(&t->changed);
}

static void next_stage(ng_team *t, ng_call *c)
{
    c->step = 0;
    if (c->stage == NG_STAGE_HALVE)
        c->stage = NG_STAGE_GATHER;
    else if (c->stage != NG_STAGE_FRAMES || c->head.status != NG_OK || in_frame(&c->head))
        finish(t, c);
    else
        c->stage = c->head.fast        ? NG_STAGE_TURN
                   : t->route.doubling ? NG_STAGE_HALVE
                                       : NG_STAGE_DATA;
}

/* Sums in any order begin in the order of their tickets, on every process: that is how they find
 * each other. */
static bool has_turn(const ng_team *t, const ng_call *c)
{
    for (int i = 0; i < NG_CALLS; i++) {
        const ng_call *other = &t->call[i];
        if (other->ticket < c->ticket && other->stage <= NG_STAGE_TURN && other->head.fast)
            return false;
    }
    return true;
}

static void begin_in_any_order(ng_team *t, ng_call *c)
{
    c->stage = NG_STAGE_ANY_ORDER;
    c->waits[0] = c->begun = true;
    t->link.sum(t->link.with, c->data[0], c->head.count,
                c->head.how == NG_COMBINE_F32 ? NG_F32 : NG_F64, &c->request[0]);
}

void ng_call_go_on(ng_team *t, ng_call *c)
{
    while (c->stage != NG_STAGE_DONE) {
        if (c->stage == NG_STAGE_TURN && !has_turn(t, c)) return;
        if (c->stage == NG_STAGE_TURN) begin_in_any_order(t, c);
        if (c->begun) {
            if (is_waiting(t, c)) return;
            if (c->stage == NG_STAGE_ANY_ORDER) {
                finish(t, c);
                return;
            }
            finish_step(t, c);
        }
        if (c->step == t->route.n_steps)
            next_stage(t, c);
        else
            begin_step(t, c);
    }
}

/* Adds up the nodes of the tree that lie wholly in this process. */
static void add_up_here(const ng_team *t, const ng_call *c)
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
static void add_up_all_here(const ng_team *t, const ng_call *c)
{
    for (int i = 1; i < t->route.count; i++)
        ng_combine(c->head.how, c->head.count, c->data[0], c->data[i], c->data[0]);
}

static void make_room(const ng_team *t, ng_call *c)
{
    const int64_t count = t->route.doubling ? (c->head.count + 1) / 2 : c->head.count;
    const size_t bytes = ng_combined_bytes(c->head.how, count);
    if (!ng_team_is_linked(t) || c->head.fast || in_frame(&c->head) || bytes <= c->theirs_bytes)
        return;
    void *memory = ng_allocate_quietly(bytes);
    if (!memory) {
        char text[80];
        snprintf(text, sizeof text, "out of memory (%zu bytes for a sum)", bytes);
        c->head = ng_head_failed(NG_ENOMEM, t->route.first, text);
        return;
    }
    ng_free(c->theirs);
    c->theirs = memory;
    c->theirs_bytes = bytes;
}

void ng_call_set_out(ng_team *t, ng_call *c)
{
    if (c->head.status == NG_OK) make_room(t, c);
    c->stage = NG_STAGE_FRAMES;
    c->step = 0;
    c->begun = false;
    if (c->head.status == NG_OK)
        (c->head.fast && !in_frame(&c->head) ? add_up_all_here : add_up_here)(t, c);
    ng_call_go_on(t, c);
}
