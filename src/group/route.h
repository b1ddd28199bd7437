/* The way that a sum takes from process to process. */
#ifndef NG_GROUP_ROUTE_H
#define NG_GROUP_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

/* The tree over members 0 .. n - 1: the node of height h at i, a multiple of 2^h, is the members
 * i .. i + 2^h - 1 as far as there are any; its value is that of its left half plus that of its
 * right half, and is held by who holds its first member, in that member's place. */

typedef enum {
    NG_STEP_SEND,     /* the value at `block` goes to peer, who holds the left half */
    NG_STEP_RECEIVE,  /* the right half comes from peer; the value at `block` is the left one */
    NG_STEP_ADD,      /* both halves are here: the right one at `peer`, a member of this process */
    NG_STEP_EXCHANGE, /* peer and this process add each other's */
    NG_STEP_GIVE,     /* the sum goes to peer */
    NG_STEP_TAKE      /* the sum comes from peer */
} ng_step_kind;

typedef struct {
    ng_step_kind kind;
    int peer;  /* a process, but for NG_STEP_ADD */
    int block; /* a member of this process, from 0 */
    bool left; /* exchange: the value of this process is the left one */
} ng_step;

enum { NG_MOST_STEPS = 128, NG_MOST_MEMBERS = 1 << 20 };

/* Members in all, processes, and what this one does: it holds the members first .. first + count -
 * 1, and has added up the nodes that lie wholly among them when the steps begin. */
typedef struct {
    int members, processes, process;
    int first, count;
    bool doubling; /* all steps are exchanges */
    int n_steps;
    ng_step step[NG_MOST_STEPS];
} ng_route;

/* The route of a process; processes <= members <= NG_MOST_MEMBERS. */
void ng_route_plan(ng_route *route, int members, int processes, int process);

#endif
