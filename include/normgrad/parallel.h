/* Data-parallel training: every rank of a group has the network and takes a part of each batch.
 *
 *     ng_parallel *parallel = ng_parallel_new(net, group); // all get the values of rank 0
 *     for (int step = 0; ng_dataset_batch(shard, tape, step, 32, &batch); step++) {
 *         ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch.x), batch.y);
 *         if (ng_parallel_backward(parallel, tape, loss) || ng_optimizer_step(adam)) break;
 *         ng_tape_reset(tape);
 *     }
 *     ng_parallel_free(parallel);
 *
 *     ng_parallel_new(net, group)                  makes the network of all ranks equal
 *     ng_parallel_backward(parallel, tape, loss)   in place of ng_backward
 *     ng_group_seed(group, seed)                   a seed for this rank
 *
 * All ranks get the same gradients to the bit, so their networks stay equal. These bits depend only
 * on the number of ranks if the work of each rank depends only on its number: its part of the data
 * (ng_dataset_shard_new), and its random numbers, ng_tape_seed(tape, ng_group_seed(group, 17)). */
#ifndef NORMGRAD_PARALLEL_H
#define NORMGRAD_PARALLEL_H

#include <normgrad/group.h>
#include <normgrad/nn.h>

NG_BEGIN_C

/* Gives the network's parameters and buffers the values of rank 0, and returns an object of yours.
 * The network and the group must outlive it. If names, shapes, dtypes or settings of layers differ
 * from those of rank 0, that is an error on all ranks, which names the first rank that differs. */
typedef struct ng_parallel ng_parallel;
NG_API ng_parallel *ng_parallel_new(ng_module *module, ng_group *group);

/* Runs ng_backward of share * loss on every rank, and adds the sum over the ranks to the gradients.
 * Several calls before a step add up, as with ng_backward.
 *
 * Call it on every rank, even after a failure or with a loss that is NULL: so the other ranks learn
 * of the failure. After an error no parameter's gradient has changed. A parameter that the loss of
 * no rank depends on keeps its gradient. A leaf that is no parameter of the network gets the
 * gradient of its own rank only. */
typedef struct {
    double share; /* weight of this rank's loss: its samples divided by those of all ranks; default
                     1 / size, for the mean of the losses */
    ng_tensor *loss;
} ng_parallel_backward_options;
#define ng_parallel_backward(parallel, tape, ...)                                                  \
    ng_parallel_backward_with(parallel, tape,                                                      \
                              NG_NAMED(ng_parallel_backward_options, loss, __VA_ARGS__))
NG_API NG_MUST_CHECK ng_status ng_parallel_backward_with(ng_parallel *parallel, ng_tape *tape,
                                                         ng_parallel_backward_options options);

/* A seed for this rank's own random numbers, made of `seed` and the rank; 0 for NULL. */
NG_API uint64_t ng_group_seed(const ng_group *group, uint64_t seed);

NG_API void ng_parallel_free(ng_parallel *parallel); /* takes NULL */

NG_END_C

#endif
