/* Groups: several ranks run one program, each on its part of a batch. A rank is a thread of this
 * process, or a process on this or another machine (mpi.h).
 *
 *     static ng_status program(ng_group *group, void *with)
 *     {
 *         const double mine[1] = {(double)ng_group_rank(group)};
 *         double all[8];
 *         return ng_group_gather(group, mine, 1, all);
 *     }
 *     static ng_status run_it(void) { return ng_group_run(program, NULL, 8); }
 *
 *     ng_group_run(program, with, ranks)         runs a program on threads
 *     ng_group_alone_new()                       a group of one rank
 *     ng_group_rank(group)                       this rank, from 0; ng_group_size
 *     ng_group_sum(tape, x, group)               the sum over the ranks, differentiable
 *     ng_group_broadcast(group, x, from)         copies x of one rank to all
 *     ng_group_gather(group, mine, count, all)   numbers of each rank, on all ranks
 *     ng_group_agree(group)                      whether no rank has failed
 *     ng_group_over_new(&link)                   a group on a link of your own
 *
 * parallel.h trains a network on a group. All ranks make the calls below in the same order, with
 * the same sizes. A call ends when all ranks have made it. Sums are added along one binary tree
 * over the ranks, so their bits depend on the number of ranks alone:
 *
 *     rank  0   1   2   3   4   5   6   7
 *           +---+   +---+   +---+   +---+
 *           +-------+       +-------+
 *           +---------------+
 *
 * A call fails on all ranks if one rank makes it with a failure on its record, or makes another
 * call. The error names that rank. The group has then ended: every later call fails at once. A rank
 * that has failed frees its group with the failure on record, and the others learn of it. A rank
 * that neither calls nor frees its group is waited for. */
#ifndef NORMGRAD_GROUP_H
#define NORMGRAD_GROUP_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* A group as one rank sees it. It is used by one thread. */
typedef struct ng_group ng_group;

/* Runs a program on `ranks` threads. Each gets its group, which is freed when the program returns.
 * Returns NG_OK if the program has returned NG_OK on every rank with no failure on record. Else it
 * records the failure of the lowest rank that has one, and returns its status.
 *
 * Each rank computes on as many threads as ng_set_threads says: with many ranks, set 1. A library
 * without threads (NG_NO_THREADS) runs one rank, and refuses more with NG_EVALUE. */
typedef ng_status ng_group_program(ng_group *group, void *with);
NG_API NG_MUST_CHECK ng_status ng_group_run(ng_group_program *program, void *with, int ranks);

/* A group of one rank: the same program runs alone. Yours. */
NG_API ng_group *ng_group_alone_new(void);

/* This rank, from 0, and the number of ranks; -1 for NULL. */
NG_API int ng_group_rank(const ng_group *group);
NG_API int ng_group_size(const ng_group *group);

/* y = sum of x over the ranks, on every rank. The gradient to x is the sum of the gradients that
 * the ranks have for y: that of the sum of all ranks' losses. It has gradients of any order. */
NG_API ng_tensor *ng_group_sum(ng_tape *tape, ng_tensor *x, ng_group *group);

/* Copies the values of x on rank `from` to x on every rank. x is yours or a module's, of any dtype.
 */
NG_API NG_MUST_CHECK ng_status ng_group_broadcast(ng_group *group, ng_tensor *x, int from);

/* Collects `count` numbers from each rank, such as its loss and accuracy, into `all` (size x
 * count), by rank, on every rank. */
NG_API NG_MUST_CHECK ng_status ng_group_gather(ng_group *group, const double *mine, int count,
                                               double *all);

/* NG_OK if no rank has a failure on record; else an error on all ranks. */
NG_API NG_MUST_CHECK ng_status ng_group_agree(ng_group *group);

NG_API void ng_group_free(ng_group *group); /* takes NULL; waits for the other ranks */

/* ---- Your own link --------------------------------------------------------------------------
 *
 * A link carries data between ranks: mpi.h has one for MPI. Its two functions are called on all
 * ranks with the same number of bytes, and return when this rank has its data. A function that
 * fails records why (ng_fail) and returns the status; the group has then ended on this rank. `mine`
 * and `all` do not overlap. */

/* The functions of a link, and what they get. */
typedef struct {
    int rank, size; /* this rank, from 0, and the number of ranks */
    void *with;     /* passed to each function */

    /* `mine` has `bytes` bytes for each rank, in the order of ranks. `all` gets the bytes that each
     * rank has for this one. */
    ng_status (*all_to_all)(void *with, const void *mine, void *all, size_t bytes);

    /* `all` gets the `bytes` bytes of each rank, in the order of ranks. */
    ng_status (*all_gather)(void *with, const void *mine, void *all, size_t bytes);

    /* Called when the group is freed; may be NULL. */
    void (*close)(void *with);
} ng_group_link;

/* The group of these ranks. Yours; the link is copied. */
NG_API ng_group *ng_group_over_new(const ng_group_link *link);

NG_END_C

#endif
