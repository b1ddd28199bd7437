/* Evaluate a network, and deploy it.
 *
 *     ng_module *net = ng_sequential_new(
 *         ng_standardize_new(64, .samples = ng_dataset_x(train)), ng_linear_new(64, 32),
 *         ng_batch_norm_new(32), ng_relu_new(), ng_linear_new(32, 10));
 *     const ng_evaluation found = ng_evaluate(net, train);
 *     printf("loss %.3f, %.1f %% right\n", found.loss, 100 * found.accuracy);
 *     if (ng_module_save(net, "net.safetensors")) fprintf(stderr, "%s\n", ng_error_text());
 *
 *     ng_evaluate(net, data)          the mean loss and the accuracy over a data set
 *     ng_standardize_new(features)    a first layer: mean 0 and deviation 1
 *     ng_batch_norm_recompute(net, data, batch)   new running statistics
 *     ng_module_fold(net)             merges norms into the layers beside them
 *
 * A program that uses the saved network makes the same layers, the first by ng_standardize_new(64),
 * loads them with ng_module_load, and calls ng_eval. Then ng_forward(net, tape, x) takes samples as
 * they are in the file of data, also a single one, x (1, 64).
 */
#ifndef NORMGRAD_EVALUATE_H
#define NORMGRAD_EVALUATE_H

#include <normgrad/data.h>
#include <normgrad/nn.h>

NG_BEGIN_C

/* Computes a number for a batch, its mean over the samples, as a tensor of one element. */
typedef ng_tensor *ng_batch_loss(ng_module *net, ng_tape *tape, const ng_batch *batch,
                                 void *context);

/* What ng_evaluate found; NaN after an error. */
typedef struct {
    double loss;     /* the mean over all samples */
    double accuracy; /* the fraction of labels that are right, 0 to 1; NaN without labels */
} ng_evaluation;

/* Runs a network on all samples of a data set, in their first order, in evaluation (ng_eval) and
 * without recording, and returns the mean loss and the accuracy. Afterwards each layer has the mode
 * that it had before. The call makes a tape of its own.
 *
 * The loss is ng_cross_entropy if y holds labels, and ng_mse if it holds targets. Another one, and
 * a network that takes more than batch.x, is a function of yours; then the accuracy is NaN:
 *
 *     static ng_tensor *loss(ng_module *net, ng_tape *tape, const ng_batch *batch, void *context)
 *     {
 *         return ng_huber(tape, ng_forward(net, tape, batch->x), batch->y);
 *     }
 *     ng_evaluate(net, test, .loss = loss).loss
 *
 * NG_EVALUE without y, unless there is a .loss; NG_ESHAPE if that gives more than one element. */
typedef struct {
    ng_batch_loss *loss; /* default: see above */
    void *context;       /* passed to the loss */
    int64_t batch;       /* samples in a batch; default 256 */
    ng_dataset *data;
} ng_evaluate_options;
#define ng_evaluate(net, ...)                                                                      \
    ng_evaluate_with(net, NG_NAMED(ng_evaluate_options, data, __VA_ARGS__))
NG_API ng_evaluation ng_evaluate_with(ng_module *net, ng_evaluate_options options);

/* Standardize: y = (x - mean) / deviation for each feature of x (..., features), with the mean and
 * the deviation that it has in .samples. A feature that is constant there, or whose deviation is
 * below 1e-160, becomes 0, as in ng_dataset_standardize. Buffers, which are saved and not trained:
 * mean and deviation (features).
 *
 * Without .samples there are no statistics (NaN) until ng_module_load has read some; a call before
 * is NG_ESTATE. NG_EVALUE if one leaves the range of float. Samples whose mean is 1e4 times their
 * deviation lose four digits in a float32 network. ng_module_init gives the layer the statistics of
 * .samples again, in the network's present dtype. */
typedef struct {
    const ng_tensor *samples; /* (..., features), float32 or float64, such as ng_dataset_x(train) */
    int64_t features;
} ng_standardize_new_options;
#define ng_standardize_new(...)                                                                    \
    ng_standardize_new_with(NG_NAMED(ng_standardize_new_options, features, __VA_ARGS__))
NG_API ng_module *ng_standardize_new_with(ng_standardize_new_options options);

/* Recomputes the running statistics of every BatchNorm over a data set, in batches of `batch`
 * samples: for averaged weights (Wu & Johnson 2021) or new data (AdaBN, Li et al. 2017). They
 * become the mean and unbiased variance of the layer's inputs in evaluation, over all samples, and
 * all ranks of its .group, which call this together. It takes one pass over the data per BatchNorm.
 * Frozen layers, BatchRenorm and modes do not change. NG_EVALUE if there is nothing to recompute;
 * NG_ESHAPE for fewer than two values per channel. After an error nothing has changed. */
NG_API NG_MUST_CHECK ng_status ng_batch_norm_recompute(ng_module *net, ng_dataset *dataset,
                                                       int64_t batch);

/* Merges norms into the layers beside them in a Sequential, for a network that is only used: a
 * BatchNorm in evaluation into the Linear, Conv1d or Conv2d before it, of which it is then what
 * ng_norm_none makes; weight and bias of a LayerNorm or RMSNorm into the Linear after it, so that
 * it is as with .no_affine. Other names stay; a layer without bias gets one.
 *
 *     ng_eval(net);
 *     if (ng_module_fold(net)) fprintf(stderr, "%s\n", ng_error_text());
 *
 * Outputs change by rounding: each by at most 4 units in the last place of the sum of the absolute
 * values of the terms that it is made of. NG_EVALUE with the path of the first BatchNorm, LayerNorm
 * or RMSNorm in the tree that cannot be folded, by its place, its settings, its mode or a tied
 * parameter; then nothing has changed. x of a Linear before a BatchNorm is (N, features). Reset
 * tapes that have recorded a pass before; what was folded is freed. */
NG_API NG_MUST_CHECK ng_status ng_module_fold(ng_module *net);

NG_END_C

#endif
