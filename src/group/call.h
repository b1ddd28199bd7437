/* One collective call, and the team that makes it: the members that one process holds. */
#ifndef NG_GROUP_CALL_H
#define NG_GROUP_CALL_H

#include "group/head.h"
#include "group/route.h"
#include <pthread.h>

enum {
    NG_CALLS = 64,           /* that may be under way at once */
    NG_FRAME_BYTES = 3584,   /* of data that a frame takes along */
    NG_FAREWELL_TAG = 32767, /* of the last messages; those of calls are below */
};

/* What goes from process to process first: what was called for, and the data where they are few. */
typedef struct {
    ng_head head;
    double data[NG_FRAME_BYTES / sizeof(double)];
} ng_frame;

typedef enum {
    NG_STAGE_FRAMES, /* frames go their way */
    NG_STAGE_TURN,   /* waits for those before it, to be added up in any order */
    NG_STAGE_ANY_ORDER,
    NG_STAGE_DATA,   /* the data go the frames' way, */
    NG_STAGE_HALVE,  /* or, where that is recursive doubling, what half of a half is left here; */
    NG_STAGE_GATHER, /* and then the sums of these come back */
    NG_STAGE_DONE
} ng_stage;

/* As this process sees it. */
typedef struct {
    int64_t ticket;
    int arrived; /* members of this process that have begun it */
    ng_stage stage;
    int step;
    bool begun; /* the messages of the step are under way */
    ng_head head;
    void **data; /* of each member of this process */
    ng_frame *out, *in;
    void *theirs; /* what comes from other processes, where it is more than a frame takes */
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
    bool failed; /* nothing new is begun; */
    ng_head failure;
    bool over;       /* and all processes know */
    int settling;    /* members of this process that wait for that */
    int64_t started; /* tickets that a member of this process has taken */
    ng_group_traffic sent;
} ng_team;

struct ng_group {
    ng_team *team;
    int rank; /* in the group */
    int here; /* among the members of this process */
    int64_t next;
};

static inline bool ng_team_is_linked(const ng_team *team) { return team->link.size > 1; }

/* ---- call.c: the lock is held -------------------------------------------------------------- */

/* All members of this process are there: adds up what they have, and sets out. */
void ng_call_set_out(ng_team *team, ng_call *call);

/* Takes the steps that can be taken now. */
void ng_call_go_on(ng_team *team, ng_call *call);

/* ---- team.c -------------------------------------------------------------------------------- */

/* The team of this process in a group of so many members; NULL without memory. */
ng_team *ng_team_new(const char *function, const ng_group_link *link, int members);
void ng_team_free(ng_team *team); /* takes NULL */

/* The member's last call. */
void ng_group_leave(ng_group *group, const char *function);

#endif
