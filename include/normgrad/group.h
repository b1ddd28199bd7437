/* Groups: programs of one kind that work on parts of one batch, on threads or on many machines.
 *
 * Every member of a group runs the same program and makes the same calls below in the same order;
 * each call ends when all have made it. What is added up is added along one binary tree over the
 * members, so that its bits depend on their number, and not on the processes that hold them:
 *
 *     member  0   1   2   3   4   5   6   7        a process may hold any run of neighbours
 *             +---+   +---+   +---+   +---+
 *             +-------+       +-------+
 *             +---------------+
 *
 * If a member makes a call with a failure on its record, or calls for another thing than the
 * others, the call is an error on all of them, which names the member and what it says; nobody
 * waits for ever. The group has then ended: every later call fails at once. ng_group_free, too, is
 * such a call: who has no more to do frees its group, who has failed frees it with the failure on
 * record, which the others are then told. A member that neither calls nor frees is waited for. */
#ifndef NORMGRAD_GROUP_H
#define NORMGRAD_GROUP_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* One member's view of its group. It is used by one thread. */
typedef struct ng_group ng_group;

/* A group of one, with which the same program runs alone. Yours. */
NG_API ng_group *ng_group_alone(void);

/* Which member this is, from 0, and how many there are; -1 for NULL. */
NG_API int ng_group_rank(const ng_group *group);
NG_API int ng_group_size(const ng_group *group);

/* Runs a program as a group of `members` that are shared out evenly, in order, to the processes of
 * `group`: `program` is called once for each member that falls to this process, with the new
 * group's view, each on a thread of its own. So one process runs eight members, or eight processes
 * one each, to the same bits. The views end with the programs; `group` waits meanwhile.
 *
 *     ng_status train(ng_group *group, void *settings) { ... }
 *     ng_group_run(group, train, &settings, 8);
 *
 * NG_OK if every program of every process has returned it with no failure on record, else the
 * failure of the first of this process's, which is then on this thread's record. */
typedef ng_status ng_group_program(ng_group *group, void *with);
NG_API NG_MUST_CHECK ng_status ng_group_run(ng_group *group, ng_group_program *program, void *with,
                                            int members);

/* y = sum of x over the members, on all of them; another shape or dtype on one of them is an error
 * on all. Its gradient is the sum of the members' cotangents, so that a loss, the sum of all
 * members' losses, has gradients of any order through it. */
NG_API ng_tensor *ng_group_sum(ng_tape *tape, ng_tensor *x, ng_group *group);

/* Gives x (yours or a module's, any dtype) on every member the values that it has on member `from`,
 * to the bit. NG_EDTYPE or NG_ESHAPE where it is of another there: it is then left as it is. */
NG_API NG_MUST_CHECK ng_status ng_group_broadcast(ng_group *group, ng_tensor *x, int from);

/* Collects `count` numbers from each member, such as its loss and accuracy, into `all` (size x
 * count), by rank, on every member. */
NG_API NG_MUST_CHECK ng_status ng_group_gather(ng_group *group, const double *mine, int count,
                                               double *all);

/* Whether all is well on all members: an error on each where one has a failure on record. */
NG_API NG_MUST_CHECK ng_status ng_group_agree(ng_group *group);

NG_API void ng_group_free(ng_group *group); /* takes NULL; the others are waited for */

/* ---- Your own way from process to process ---------------------------------------------------
 *
 * What carries messages between the processes of a group: MPI (mpi.h), or what you have. Messages
 * from one process to another with the same tag (0 to 32767) arrive in the order in which they were
 * sent. `send` and `receive` begin, and `test` tells whether what was begun is done, and lets it go
 * on; the memory is left alone until then. A link that is broken does not return: it ends its
 * process, and the job with it. All are called by one thread at a time. */
typedef struct {
    uint64_t words[2]; /* the link's own */
} ng_group_request;

/* The processes as this one sees them, and the functions of the link.
 *
 * send     `bytes` bytes to process `to`
 * receive  at most `bytes` bytes from process `from`; fewer may have been sent
 * test     whether it is done; asked no more after that
 * sum      begins to add up `count` numbers in place over all processes, in any order
 * close    when the group is freed; may be NULL */
typedef struct {
    int rank, size; /* which process this is, from 0, and how many there are */
    void *with;     /* handed to each of: */
    void (*send)(void *with, int to, int tag, const void *data, size_t bytes,
                 ng_group_request *request);
    void (*receive)(void *with, int from, int tag, void *data, size_t bytes,
                    ng_group_request *request);
    bool (*test)(void *with, ng_group_request *request);
    void (*sum)(void *with, void *data, int64_t count, ng_dtype dtype, ng_group_request *request);
    void (*close)(void *with);
} ng_group_link;

/* The group of these processes, one member each. Yours; the link is copied. */
NG_API ng_group *ng_group_over(const ng_group_link *link);

NG_END_C

#endif
