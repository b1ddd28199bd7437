/* The members of a group that one process holds, and what goes on between them and the others. */
#ifndef NG_GROUP_TEAM_H
#define NG_GROUP_TEAM_H

#include "core/error.h"
#include <normgrad/group.h>

/* How the members' data are combined. */
typedef enum {
    NG_COMBINE_F32,     /* sums of floats, */
    NG_COMBINE_F64,     /* and of doubles */
    NG_COMBINE_BITS,    /* 64-bit words, or-ed: where all but one are 0, that one's */
    NG_COMBINE_MOMENTS, /* ng_moments */
    NG_COMBINE_LEAVE    /* nothing: the member has no more to do */
} ng_combining;

/* Of n numbers: their mean, as the sum of two doubles, and the sum of their squared distances from
 * it. */
typedef struct {
    double n, mean, low, squares;
} ng_moments;

/* What one member puts in, and gets back in its place. */
typedef struct {
    ng_combining how;
    bool fast; /* sums between processes in any order */
    void *data;
    int64_t count;    /* of numbers, words or moments */
    const char *call; /* what the others must call for too, "ng_group_sum of (2, 3)" */
} ng_collective;

/* Begins to combine; the data are left alone until ng_group_wait. The ticket is for that. With a
 * failure on this thread's record it is ng_group_start_failed. */
int64_t ng_group_start(ng_group *group, ng_collective collective);

/* Begins, in the place of whatever the others begin, with this thread's failure: theirs fails. */
int64_t ng_group_start_failed(ng_group *group);

/* Waits for it. A failure is recorded in the name of `function`. */
ng_status ng_group_wait(ng_group *group, const char *function, int64_t ticket);

/* Both; a `call` that is NULL is `function`. */
ng_status ng_group_combine(ng_group *group, const char *function, ng_collective collective);

/* Tells all members of this thread's failure, and ends the group; returns that failure. */
ng_status ng_group_end_failed(ng_group *group, const char *function);

/* Lets what goes on between processes go on. */
void ng_group_poll(ng_group *group);

/* What was sent to other processes since the group began. */
typedef struct {
    int64_t messages, bytes;
} ng_group_traffic;
ng_group_traffic ng_group_sent(const ng_group *group);

#endif
