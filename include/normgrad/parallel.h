/* Data-parallel training: every member of a group has the network, and takes a part of each batch.
 *
 *     ng_parallel *parallel = ng_parallel_new(net, group);
 *     ...
 *     ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, mine.x), mine.y);
 *     if (ng_parallel_backward(parallel, tape, loss) || ng_optimizer_step(adam)) break;
 *
 * Networks that are equal at first get the same gradients to the bit, and so remain equal. With
 * ng_group_run the bits do not depend on the number of processes either, if what each member does
 * depends on its rank alone: its part of the data (ng_dataset_shard), and its stream of dropout,
 * ng_tape_seed(tape, ng_group_seed(group, seed)). */
#ifndef NORMGRAD_PARALLEL_H
#define NORMGRAD_PARALLEL_H

#include <normgrad/group.h>
#include <normgrad/nn.h>

NG_BEGIN_C

/* Gives the network's parameters and buffers the values that rank 0 has. Where names, shapes,
 * dtypes, or the settings of layers are not rank 0's, it is an error on all members, which names
 * the first such rank. The network and the group must outlive it; it is yours.
 *
 * bucket  bytes of gradients that are added up at once; default 1 MB
 * fast    adds up between processes in any order, as the link does fastest: the bits are then the
 *         same on all members, but depend on the number of processes */
typedef struct ng_parallel ng_parallel;
typedef struct {
    int64_t bucket;
    bool fast;
    ng_group *group;
} ng_parallel_new_options;
#define ng_parallel_new(module, ...)                                                               \
    ng_parallel_new_with(module, NG_NAMED(ng_parallel_new_options, group, __VA_ARGS__))
NG_API ng_parallel *ng_parallel_new_with(ng_module *module, ng_parallel_new_options options);

/* ng_backward of share * loss on every member; adds the sum over the members to the gradients. The
 * sums begin while the sweep goes on, as soon as gradients are complete. A parameter that no member
 * has reached is left alone. What no parameter of the network is gets its own gradient only.
 *
 * Call it whatever has happened before, as with a loss that is NULL: that is how the others learn
 * of it. After an error no parameter's gradient has changed, but for one that an optimizer has
 * used: that may be gone, as after ng_backward.
 *
 * share  what the member's loss counts: its samples over those of all; default 1 / size, which is
 *        the mean of the members' losses
 * later  keeps the gradients for the next call, whose sum has them in it: for batches that come in
 *        pieces. Nothing is added up, and ng_grad shows nothing of it yet */
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

/* A seed for each member's own stream, made of `seed` and its rank; 0 for NULL. */
NG_API uint64_t ng_group_seed(const ng_group *group, uint64_t seed);

NG_API void ng_parallel_free(ng_parallel *parallel); /* takes NULL */

NG_END_C

#endif
