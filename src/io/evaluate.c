/* The mean loss and the accuracy of a network over a data set. */
#include "io/dataset.h"
#include "nn/module.h"
#include <math.h>
#include <normgrad/evaluate.h>

static const char evaluating[] = "ng_evaluate";

/* Sums over the samples so far. */
typedef struct {
    double loss;
    int64_t samples, labels, right;
} evaluation_sums;

/* The loss of a batch, by labels or targets. Counts the labels that are right. */
static ng_tensor *loss_by_kind(ng_module *net, ng_tape *tape, const ng_batch *batch,
                               evaluation_sums *s)
{
    ng_tensor *y = batch->y, *made = ng_forward(net, tape, batch->x);
    if (!y || y->dtype != NG_I64) return ng_mse(tape, made, y);
    ng_tensor *loss = ng_cross_entropy(tape, made, y);
    if (!loss) return NULL;
    s->right += llround(ng_accuracy(made, y) * (double)y->size);
    s->labels += y->size;
    return loss;
}

/* Adds a batch to the sums. */
static bool evaluate_batch(ng_module *net, ng_tape *tape, const ng_batch *batch,
                           const ng_evaluate_options *o, evaluation_sums *s)
{
    const int64_t failures = ng_failures();
    ng_tensor *loss =
        o->loss ? o->loss(net, tape, batch, o->context) : loss_by_kind(net, tape, batch, s);
    if (!loss && ng_failures() == failures)
        ng_fail(NG_EVALUE, "%s: the .loss returned NULL without an error", evaluating);
    if (!loss || ng_failures() != failures) return false;
    if (ng_size(loss) != 1) {
        ng_fail(NG_ESHAPE, "%s: the loss is %s, expected one element", evaluating,
                ng_shape_print(loss->shape).text);
        return false;
    }
    s->loss += ng_item(loss) * (double)batch->size;
    s->samples += batch->size;
    return true;
}

static bool evaluate_all(ng_module *net, const ng_evaluate_options *o, evaluation_sums *s)
{
    ng_tensor *x = ng_dataset_x(o->data), *y = ng_dataset_y(o->data);
    const int64_t count = ng_dataset_count(o->data);
    ng_tape *tape = ng_tape_new();
    bool ok = tape != NULL;
    if (ok) ng_tape_set_recording(tape, false);
    for (int64_t from = 0; ok && from < count; from += o->batch) {
        const int64_t size = count - from < o->batch ? count - from : o->batch;
        const ng_batch batch = {.x = ng_slice(tape, x, 0, from, from + size),
                                .y = ng_is_none(y) ? NG_NONE
                                                   : ng_slice(tape, y, 0, from, from + size),
                                .size = size};
        ok = batch.x && batch.y && evaluate_batch(net, tape, &batch, o, s);
        ng_tape_reset(tape);
    }
    ng_tape_free(tape);
    return ok;
}

ng_evaluation ng_evaluate_with(ng_module *net, ng_evaluate_options options)
{
    const ng_evaluation nothing = {(double)NAN, (double)NAN};
    if (options.batch == 0) options.batch = 256;
    if (!ng_given(evaluating, "net", net) || !ng_given(evaluating, "data", options.data) ||
        !ng_option_positive(evaluating, "batch", options.batch, "samples"))
        return nothing;
    if (!options.loss && ng_is_none(ng_dataset_y(options.data))) {
        ng_fail(NG_EVALUE, "%s: the data set has no labels or targets, and there is no .loss",
                evaluating);
        return nothing;
    }
    ng_modes before;
    if (!ng_modes_evaluate(evaluating, net, &before)) return nothing;
    evaluation_sums s = {0};
    const bool ok = evaluate_all(net, &options, &s);
    ng_modes_restore(net, &before);
    if (!ok) return nothing;
    return (ng_evaluation){.loss = s.loss / (double)s.samples,
                           .accuracy = s.labels ? (double)s.right / (double)s.labels : (double)NAN};
}
