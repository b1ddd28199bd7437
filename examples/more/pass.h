/* One training step on a batch, and one pass over labelled samples in batches. */
#ifndef EXAMPLES_PASS_H
#define EXAMPLES_PASS_H

#include "look.h"
#include <normgrad.h>

typedef struct {
    int64_t batch;
    bool drop_last; /* leave out a last batch that is not full */
    uint64_t epoch; /* seed of the order */
    /* Called after every step with the mean loss so far and the samples seen. false ends the
     * pass. */
    bool (*after)(void *context, double mean, double seen);
    void *context;
} pass_options;

/* Takes a training step on one batch, which is logged in `watched` unless that is NULL. Returns the
 * loss before it, or NaN after a failure. */
static inline double train_batch(ng_module *net, ng_optimizer *optimizer, ng_tape *tape,
                                 const ng_batch *batch, ng_history *watched)
{
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch->x), batch->y);
    if (ng_backward(tape, loss) || ng_optimizer_step(optimizer)) return ng_item(NULL);
    const double value = ng_item(loss);
    look_step(watched, net, ng_optimizer_steps(optimizer));
    ng_tape_reset(tape);
    return value;
}

/* Trains for one pass. Returns the mean of the steps' losses. */
static inline double train_pass(ng_module *net, ng_optimizer *optimizer, ng_tape *tape,
                                ng_dataset *data, pass_options options)
{
    ng_batch batch;
    double sum = 0, seen = 0;
    ng_dataset_shuffle(data, options.epoch);
    for (int i = 0;
         ng_dataset_batch(data, tape, i, options.batch, &batch, .drop_last = options.drop_last);
         i++) {
        sum += train_batch(net, optimizer, tape, &batch, NULL) * (double)batch.size;
        seen += (double)batch.size;
        if (ng_failed() || !options.after(options.context, sum / seen, seen)) break;
    }
    return sum / seen;
}

#endif
