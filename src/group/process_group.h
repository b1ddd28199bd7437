/* A group as one process sees it: its ranks, its calls, and the way of a call between processes. */
#ifndef NG_GROUP_PROCESS_GROUP_H
#define NG_GROUP_PROCESS_GROUP_H

#include "group/collective.h"
#include <pthread.h>

enum {
    NG_CALLS = 64,           /* under way at once, at most */
    NG_FRAME_BYTES = 3584,   /* of data in a frame */
    NG_FAREWELL_TAG = 32767, /* of the last messages; the tags of calls are below */
    NG_HEAD_TEXT = 232,      /* longer texts are cut */
    NG_MOST_STEPS = 128,
    NG_MOST_RANKS = 1 << 20
};

/* ---- combine.c: how two values become one --------------------------------------------------- */

/* Bytes of `count` numbers, words or moments; `how` is an ng_combining. */
size_t ng_combined_bytes(int32_t how, int64_t count);

/* to = left + right; `to` is one of them. */
void ng_combine_blocks(int32_t how, int64_t count, const void *left, const void *right, void *to);

/* What a rank has called, or how it has failed. */
typedef struct {
    int32_t how, fast;
    int64_t count;
    int32_t status, rank;    /* status other than NG_OK: this rank has failed */
    char text[NG_HEAD_TEXT]; /* of the failure, or of the call */
} ng_head;

ng_head ng_head_failed(ng_status status, int rank, const char *text);

/* Combines two heads: the common call, or the failure of the first rank that failed. Different
 * calls are a failure too. */
void ng_head_add(ng_head *head, const ng_head *other);

/* ---- route.c: the way of a sum between processes --------------------------------------------
 *
 * The sum follows a binary tree over the ranks 0 .. n - 1. The node of height h at i, a multiple of
 * 2^h, covers the ranks i .. i + 2^h - 1 that exist. Its value is that of its left half plus that
 * of its right half. The process that holds its first rank keeps it, in that rank's place. */
typedef enum {
    NG_STEP_SEND,     /* the value at `block` goes to peer, who holds the left half */
    NG_STEP_RECEIVE,  /* the right half comes from peer; the value at `block` is the left one */
    NG_STEP_ADD,      /* both halves are here: the right one at `peer`, a rank of this process */
    NG_STEP_EXCHANGE, /* peer and this process add each other's */
    NG_STEP_GIVE,     /* the sum goes to peer */
    NG_STEP_TAKE      /* the sum comes from peer */
} ng_step_kind;

typedef struct {
    ng_step_kind kind;
    int peer;  /* a process; of NG_STEP_ADD a rank of this process */
    int block; /* a rank of this process, from 0 */
    bool left; /* exchange: the value of this process is the left one */
} ng_step;

/* This process holds the ranks first .. first + count - 1. It has added up the nodes that lie
 * wholly among them when the steps begin. */
typedef struct {
    int ranks, processes, process;
    int first, count;
    bool doubling; /* all steps are exchanges */
    int n_steps;
    ng_step step[NG_MOST_STEPS];
} ng_route;

/* The route of a process; processes <= ranks <= NG_MOST_RANKS. */
void ng_route_plan(ng_route *route, int ranks, int processes, int process);

/* ---- call.c: one call; the lock is held ----------------------------------------------------- */

/* The first message between processes: the call, and its data if they are few. */
typedef struct {
    ng_head head;
    double data[NG_FRAME_BYTES / sizeof(double)];
} ng_frame;

typedef enum {
    NG_STAGE_FRAMES,    /* frames are under way */
    NG_STAGE_TURN,      /* waits until earlier sums in any order have begun */
    NG_STAGE_ANY_ORDER, /* the link adds up */
    NG_STAGE_DATA,      /* the data take the same way as the frames */
    NG_STAGE_HALVE,     /* recursive doubling: each step leaves half of a half to add up here */
    NG_STAGE_GATHER,    /* then the sums of the parts come back */
    NG_STAGE_DONE
} ng_stage;

typedef struct {
    int64_t ticket;
    int arrived; /* ranks of this process that have begun it */
    ng_stage stage;
    int step;
    bool begun; /* the messages of the step are under way */
    ng_head head;
    void **data; /* of each rank of this process */
    ng_frame *out, *in;
    void *theirs; /* data from other processes that are too many for a frame */
    size_t theirs_bytes;
    ng_group_request request[2];
    bool waits[2];
} ng_call;

typedef struct {
    ng_group_link link; /* size 1: there is none */
    ng_route route;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ng_call call[NG_CALLS];
    void **data; /* of all calls */
    ng_frame *frames;
    bool failed; /* no new call begins */
    ng_head failure;
    bool over;       /* failed, and all processes know */
    int leaving;     /* ranks of this process that wait for that */
    int64_t started; /* tickets that a rank of this process has taken */
    ng_group_traffic sent;
} ng_process_group;

/* Adds up the data of this process, whose ranks have all arrived, and begins the steps. */
void ng_call_begin(ng_process_group *pg, ng_call *call);

/* Takes the steps that can be taken now. */
void ng_call_go_on(ng_process_group *pg, ng_call *call);

/* ---- process_group.c ------------------------------------------------------------------------ */

struct ng_group {
    ng_process_group *pg;
    int rank; /* in the group */
    int here; /* among the ranks of this process */
    int64_t next;
};

static inline bool ng_is_linked(const ng_process_group *pg) { return pg->link.size > 1; }

/* This process's part of a group of `ranks` ranks; NULL without memory. */
ng_process_group *ng_process_group_new(const char *function, const ng_group_link *link, int ranks);
void ng_process_group_free(ng_process_group *pg); /* takes NULL */

/* The last call of a rank. */
void ng_group_leave(ng_group *group, const char *function);

#endif
