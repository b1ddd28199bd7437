/* Data-parallel training: every rank of a group has the network, and takes a part of each batch.
 *
 *     ng_parallel *parallel = ng_parallel_new(net, group);
 *     ...
 *     ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, mine.x), mine.y);
 *     if (ng_parallel_backward(parallel, tape, loss) || ng_optimizer_step(adam)) break;
 *
 * Networks that are equal at first get the same gradients to the bit, and so stay equal. With
 * ng_group_run the bits do not depend on the number of processes either, if the work of each rank
 * depends on its rank alone: its part of the data (ng_dataset_shard), and its stream of dropout,
 * ng_tape_seed(tape, ng_group_seed(group, seed)). */
#ifndef NORMGRAD_PARALLEL_H
#define NORMGRAD_PARALLEL_H

#include <normgrad/group.h>
#include <normgrad/nn.h>

NG_BEGIN_C

/* Gives the network's parameters and buffers the values of rank 0. If names, shapes, dtypes or the
 * settings of layers differ from rank 0's, that is an error on all ranks, which names the first
 * rank that differs. The network and the group must outlive the result, which is yours.
 *
 * bucket  bytes of gradients that are added up at once; default 1 MB
 * fast    lets the link add up between processes in any order: the bits are then the same on all
 *         ranks, but depend on the number of processes */
typedef struct ng_parallel ng_parallel;
typedef struct {
    int64_t bucket;
    bool fast;
    ng_group *group;
} ng_parallel_new_options;
#define ng_parallel_new(module, ...)                                                               \
    ng_parallel_new_with(module, NG_NAMED(ng_parallel_new_options, group, __VA_ARGS__))
NG_API ng_parallel *ng_parallel_new_with(ng_module *module, ng_parallel_new_options options);

/* Runs ng_backward of share * loss on every rank, and adds the sum over the ranks to the gradients.
 * A parameter that no rank has reached keeps its gradient. Leaves that are no parameters of the network get the gradient of
 * their own rank only.
 *
 * Call it on every rank, even after a failure or with a loss that is NULL: so the other ranks learn
 * of the failure. After an error no parameter's gradient has changed.
 *
 * share  weight of this rank's loss: its samples over those of all ranks; default 1 / size, which
 *        gives the mean of the losses
 * later  keeps the gradients for the next call, whose sum includes them: for batches that come in
 *        pieces. Nothing is added up, and ng_grad does not show them yet */
typedef struct {
    double share;
    bool later;
    ng_tensor *loss;
} ng_parallel_backward_options;
#define ng_parallel_backward(parallel, tape, ...)                                                  \
    ng_parallel_backward_with(parallel, tape,                                                      \
                              NG_NAMED(ng_parallel_backward_options, loss, __VA_ARGS__))
NG_API NG_MUST_CHECK ng_status ng_parallel_backward_with(ng_parallel *parallel, ng_tape *tape,
                                                         ng_parallel_backward_options options);

/* A seed for this rank's own stream, made of `seed` and the rank; 0 for NULL. */
NG_API uint64_t ng_group_seed(const ng_group *group, uint64_t seed);

NG_API void ng_parallel_free(ng_parallel *parallel); /* takes NULL */

NG_END_C

#endif
