/* What the losses share. */
#ifndef NG_OPS_LOSSES_H
#define NG_OPS_LOSSES_H

#include "ops/op.h"

/* Whether the reduction is one of the three; the losses reduced by it. */
bool ng_reduction_ok(const char *function, ng_reduction reduction);
ng_tensor *ng_reduced(ng_tape *tape, ng_tensor *losses, ng_reduction reduction);

/* Whether x and its target have one shape, and the options have an effect. */
bool ng_loss_pair_ok(const char *function, ng_tape *tape, ng_tensor *x, const ng_loss_options *o);

/* Whether all targets are in [low, high], give or take 1e-5 for rounding. A tensor that requires a
 * gradient is not checked: finite differences go beyond both ends. */
bool ng_targets_ok(const char *function, const char *name, const ng_tensor *target, double low,
                   double high);

/* Whether a factor is NULL, or has the dtype of x and broadcasts to its shape. */
bool ng_factor_fits(const char *function, const char *name, const ng_tape *tape,
                    const ng_tensor *factor, const ng_tensor *x);

/* Whether x is (..., classes) and the labels (...); whether a row's label is a class. */
bool ng_labels_fit(const char *function, const ng_tensor *x, const ng_tensor *labels);
bool ng_label_ok(const char *function, int64_t label, int64_t row, int64_t classes);

/* x (N, classes, ...) as (N, ..., classes) if .channels_first is set, else x; NULL for NULL. */
ng_tensor *ng_classes_last(ng_tape *tape, ng_tensor *x, bool channels_first);

/* ng_cross_entropy with .weights, its other operands checked; and of probabilities, not checked. */
ng_tensor *ng_weighted_cross_entropy(ng_tape *tape, ng_tensor *logits,
                                     ng_cross_entropy_options options);
ng_tensor *ng_cross_entropy_of_probabilities(ng_tape *tape, ng_tensor *logits,
                                             ng_cross_entropy_options options);

#endif
