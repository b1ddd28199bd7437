/* Groups: programs of one kind that work on parts of one batch, on threads or on many machines.
 *
 * Every rank of a group runs the same program and makes the same calls below in the same order. A
 * call ends when all ranks have made it. Sums are added along one binary tree over the ranks. So
 * their bits depend on the number of ranks, and not on the processes that hold them:
 *
 *     rank  0   1   2   3   4   5   6   7        a process may hold any run of neighbours
 *           +---+   +---+   +---+   +---+
 *           +-------+       +-------+
 *           +---------------+
 *
 * A call fails on all ranks if one rank makes it with a failure on its record, or makes a different
 * call. The error names that rank and its failure; nobody waits for ever. The group has then ended:
 * every later call fails at once. ng_group_free counts as a call: a rank that has finished frees
 * its group, and a rank that has failed frees it with the failure on record, which the others
 * receive. A rank that neither calls nor frees is waited for. */
#ifndef NORMGRAD_GROUP_H
#define NORMGRAD_GROUP_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* A group as one rank sees it. It is used by one thread. */
typedef struct ng_group ng_group;

/* A group of one rank, with which the same program runs alone. Yours. */
NG_API ng_group *ng_group_alone(void);

/* This rank, from 0, and the number of ranks; -1 for NULL. */
NG_API int ng_group_rank(const ng_group *group);
NG_API int ng_group_size(const ng_group *group);

/* Runs a program on `ranks` ranks, which are divided evenly, in order, among the processes of
 * `group`. Each rank of this process runs on a thread of its own and gets the new group. One
 * process with eight ranks and eight processes with one each give the same bits. The new group ends
 * with the programs; `group` waits meanwhile.
 *
 *     ng_status train(ng_group *group, void *settings) { ... }
 *     ng_group_run(group, train, &settings, 8);
 *
 * Returns NG_OK if every program of every process has returned it with no failure on record. Else
 * it returns the failure of the first of this process's ranks and records it on this thread. */
typedef ng_status ng_group_program(ng_group *group, void *with);
NG_API NG_MUST_CHECK ng_status ng_group_run(ng_group *group, ng_group_program *program, void *with,
                                            int ranks);

/* y = sum of x over the ranks, on all of them. Another shape or dtype on one rank is an error on
 * all. Its gradient is the sum of the ranks' cotangents. So the sum of the losses of all ranks has
 * gradients of any order through it. */
NG_API ng_tensor *ng_group_sum(ng_tape *tape, ng_tensor *x, ng_group *group);

/* Copies the values of x (yours or a module's, any dtype) on rank `from` to x on every rank, to the
 * bit. NG_EDTYPE or NG_ESHAPE on a rank where x has another dtype or shape; x keeps its values. */
NG_API NG_MUST_CHECK ng_status ng_group_broadcast(ng_group *group, ng_tensor *x, int from);

/* Collects `count` numbers from each rank, such as its loss and accuracy, into `all` (size x
 * count), by rank, on every rank. */
NG_API NG_MUST_CHECK ng_status ng_group_gather(ng_group *group, const double *mine, int count,
                                               double *all);

/* NG_OK if no rank has a failure on record; else an error on all ranks. */
NG_API NG_MUST_CHECK ng_status ng_group_agree(ng_group *group);

NG_API void ng_group_free(ng_group *group); /* takes NULL; waits for the other ranks */

/* ---- Your own way from process to process ---------------------------------------------------
 *
 * A link carries messages between the processes of a group: MPI (mpi.h), or one of your own.
 * Messages from one process to another with the same tag (0 to 32767) arrive in the order in which
 * they were sent. `send` and `receive` begin a transfer. `test` says whether it has ended, and
 * lets it progress; the memory must stay until then. A broken link does not return: it ends its
 * process, and the job with it. All functions are called by one thread at a time. */
typedef struct {
    uint64_t words[2]; /* the link's own */
} ng_group_request;

/* The processes as this one sees them, and the functions of the link.
 *
 * send     `bytes` bytes to process `to`
 * receive  at most `bytes` bytes from process `from`; fewer may have been sent
 * test     whether the request has ended; it is not called again after that
 * sum      begins to add up `count` numbers in place over all processes, in any order
 * close    called when the group is freed; may be NULL */
typedef struct {
    int rank, size; /* this process, from 0, and the number of processes */
    void *with;     /* passed to each function */
    void (*send)(void *with, int to, int tag, const void *data, size_t bytes,
                 ng_group_request *request);
    void (*receive)(void *with, int from, int tag, void *data, size_t bytes,
                    ng_group_request *request);
    bool (*test)(void *with, ng_group_request *request);
    void (*sum)(void *with, void *data, int64_t count, ng_dtype dtype, ng_group_request *request);
    void (*close)(void *with);
} ng_group_link;

/* The group of these processes, one rank each. Yours; the link is copied. */
NG_API ng_group *ng_group_over(const ng_group_link *link);

NG_END_C

#endif
