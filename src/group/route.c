/* The way of a sum between processes: up the tree to process 0 and down again. Where the numbers of
 * ranks and processes are powers of two it is recursive doubling, which takes half as many steps.
 * Both add the same halves to each other. */
#include "group/process_group.h"

/* The first rank of a process; the number of all ranks for process = processes. */
static int first_of(int ranks, int processes, int process)
{
    return (int)((int64_t)ranks * process / processes);
}

static int holder_of(const ng_route *r, int rank)
{
    int process = (int)((int64_t)rank * r->processes / r->ranks);
    while (first_of(r->ranks, r->processes, process) > rank) process--;
    while (first_of(r->ranks, r->processes, process + 1) <= rank) process++;
    return process;
}

static void route_add_step(ng_route *r, ng_step_kind kind, int peer, int block, bool left)
{
    r->step[r->n_steps++] = (ng_step){kind, peer, block, left};
}

static bool route_is_here(const ng_route *r, int begin, int end)
{
    return begin >= r->first && (end < r->ranks ? end : r->ranks) <= r->first + r->count;
}

/* The node at `left` whose right half begins at `right`. */
static void plan_node(ng_route *r, int left, int right)
{
    if (right >= r->ranks || route_is_here(r, left, 2 * right - left)) return;
    const int to = holder_of(r, left), from = holder_of(r, right);
    if (to == from) {
        if (to == r->process)
            route_add_step(r, NG_STEP_ADD, right - r->first, left - r->first, true);
    } else if (from == r->process)
        route_add_step(r, NG_STEP_SEND, to, right - r->first, false);
    else if (to == r->process)
        route_add_step(r, NG_STEP_RECEIVE, from, left - r->first, true);
}

/* Level by level. Only the nodes that contain the first or the last rank of this process can have
 * one half here and the other elsewhere. */
static void plan_up(ng_route *r)
{
    const int last = r->first + r->count - 1;
    for (int half = 1; half < r->ranks; half *= 2) {
        const int begin = r->first / (2 * half), end = last / (2 * half);
        plan_node(r, begin * 2 * half, begin * 2 * half + half);
        if (end != begin) plan_node(r, end * 2 * half, end * 2 * half + half);
    }
}

/* The sum, at process 0, goes to process p from p without its lowest bit. */
static void plan_down(ng_route *r)
{
    int reach = 1;
    while (reach < r->processes) reach *= 2;
    if (r->process > 0) {
        reach = r->process & -r->process;
        route_add_step(r, NG_STEP_TAKE, r->process - reach, 0, false);
    }
    for (int far = reach / 2; far > 0; far /= 2)
        if (r->process + far < r->processes)
            route_add_step(r, NG_STEP_GIVE, r->process + far, 0, false);
}

static bool is_power_of_two(int n) { return (n & (n - 1)) == 0; }

void ng_route_plan(ng_route *r, int ranks, int processes, int process)
{
    const int first = first_of(ranks, processes, process);
    *r = (ng_route){.ranks = ranks,
                    .processes = processes,
                    .process = process,
                    .first = first,
                    .count = first_of(ranks, processes, process + 1) - first};
    if (ranks % processes == 0 && is_power_of_two(processes) &&
        is_power_of_two(ranks / processes)) {
        r->doubling = true;
        for (int far = 1; far < processes; far *= 2)
            route_add_step(r, NG_STEP_EXCHANGE, process ^ far, 0, (process & far) == 0);
        return;
    }
    plan_up(r);
    plan_down(r);
}
