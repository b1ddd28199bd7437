/* Collective calls of a group: every rank makes the same call, which combines their data. */
#ifndef NG_GROUP_COLLECTIVE_H
#define NG_GROUP_COLLECTIVE_H

#include "core/error.h"
#include <normgrad/group.h>

/* How the data of the ranks are combined. */
typedef enum {
    NG_COMBINE_F32,     /* sums of floats */
    NG_COMBINE_F64,     /* sums of doubles */
    NG_COMBINE_BITS,    /* 64-bit words, or-ed; all but one are 0 */
    NG_COMBINE_MOMENTS, /* ng_moments */
    NG_COMBINE_LEAVE    /* no data: the last call of a rank */
} ng_combining;

/* Statistics of n numbers: their mean, as the sum of two doubles, and the sum of their squared
 * distances from it. */
typedef struct {
    double n, mean, low, squares;
} ng_moments;

/* What one rank contributes; the result takes its place. */
typedef struct {
    ng_combining how;
    bool fast; /* sums between processes in any order */
    void *data;
    int64_t count;    /* of numbers, words or moments */
    const char *call; /* must be the same on all ranks: "ng_group_sum of (2, 3)" */
} ng_collective;

/* Begins to combine, and returns the ticket for ng_group_wait. The data must stay until then. With
 * a failure on this thread's record it does what ng_group_start_failed does. */
int64_t ng_group_start(ng_group *group, ng_collective collective);

/* Takes part in the next call with this thread's failure: the call fails on all ranks. */
int64_t ng_group_start_failed(ng_group *group);

/* Waits for the end of a call. A failure is recorded in the name of `function`. */
ng_status ng_group_wait(ng_group *group, const char *function, int64_t ticket);

/* Starts and waits; a `call` that is NULL is `function`. */
ng_status ng_group_combine(ng_group *group, const char *function, ng_collective collective);

/* Fails on all ranks with this thread's failure, and ends the group. Returns the failure. */
ng_status ng_group_end_failed(ng_group *group, const char *function);

/* Takes the steps of all calls that can be taken now. */
void ng_group_poll(ng_group *group);

/* Sent to other processes since the group began. */
typedef struct {
    int64_t messages, bytes;
} ng_group_traffic;
ng_group_traffic ng_group_sent(const ng_group *group);

#endif
