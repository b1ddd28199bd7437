/* Groups: several ranks run one program on parts of one batch. A rank is a thread of this process,
 * or a process of its own on this or another machine (mpi.h). Eight ranks on threads:
 *
 *     static ng_status train(ng_group *group, void *with)
 *     {
 *         ng_dataset *mine = ng_dataset_shard(with, ng_group_rank(group), ng_group_size(group));
 *         ng_module *net = ng_sequential_new(ng_linear_new(64, 10));
 *         ng_parallel *parallel = ng_parallel_new(net, group); // parallel.h
 *         ...
 *         return ng_error_status();
 *     }
 *
 *     if (ng_group_run(train, dataset, 8)) fprintf(stderr, "%s\n", ng_error_text());
 *
 * All ranks make the calls below in the same order, with the same sizes. A call ends when all ranks
 * have made it. Sums are added along one binary tree over the ranks, so their bits depend on the
 * number of ranks alone:
 *
 *     rank  0   1   2   3   4   5   6   7
 *           +---+   +---+   +---+   +---+
 *           +-------+       +-------+
 *           +---------------+
 *
 * A call fails on all ranks if one rank makes it with a failure on its record, or makes a different
 * call. The error names that rank. The group has then ended: every later call fails at once.
 * ng_group_free is a rank's last call. So a rank that has failed frees its group with the failure
 * on record, and the others receive it. A rank that neither calls nor frees is waited for. */
#ifndef NORMGRAD_GROUP_H
#define NORMGRAD_GROUP_H

#include <normgrad/tape.h>

NG_BEGIN_C

/* A group as one rank sees it. It is used by one thread. */
typedef struct ng_group ng_group;

/* Runs a program on `ranks` threads, each with its own group, which is freed when the program
 * returns. Returns NG_OK if every program has returned it with no failure on record. Else it
 * records the failure of the first rank that has one, and returns its status.
 *
 * Each thread computes on as many threads as ng_set_threads says: with many ranks, one. */
typedef ng_status ng_group_program(ng_group *group, void *with);
NG_API NG_MUST_CHECK ng_status ng_group_run(ng_group_program *program, void *with, int ranks);

/* A group of one rank: the same program runs alone. Yours. */
NG_API ng_group *ng_group_alone(void);

/* This rank, from 0, and the number of ranks; -1 for NULL. */
NG_API int ng_group_rank(const ng_group *group);
NG_API int ng_group_size(const ng_group *group);

/* y = sum of x over the ranks, on all of them. Its gradient is the sum of the ranks' cotangents. So
 * the sum of the losses of all ranks has gradients of any order through it. */
NG_API ng_tensor *ng_group_sum(ng_tape *tape, ng_tensor *x, ng_group *group);

/* Copies the values of x (yours or a module's, any dtype) on rank `from` to x on every rank, to the
 * bit. */
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
 * ranks with the same number of bytes, and return when this rank has its data. If one fails, it
 * records why (ng_fail) and returns the status: the group has then ended on this rank. `mine` and
 * `all` do not overlap.
 *
 * all_to_all  `mine` has `bytes` bytes for each rank, by rank; `all` gets from each rank those for
 *             this one
 * all_gather  `all` gets the `bytes` bytes of each rank, by rank
 * close       called when the group is freed; may be NULL */
typedef struct {
    int rank, size; /* this rank, from 0, and the number of ranks */
    void *with;     /* passed to each function */
    ng_status (*all_to_all)(void *with, const void *mine, void *all, size_t bytes);
    ng_status (*all_gather)(void *with, const void *mine, void *all, size_t bytes);
    void (*close)(void *with);
} ng_group_link;

/* The group of these ranks. Yours; the link is copied. */
NG_API ng_group *ng_group_over(const ng_group_link *link);

NG_END_C

#endif
