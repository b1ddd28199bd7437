/* Softmax, losses, accuracy.
 *
 *     ng_tensor *loss = ng_cross_entropy(tape, logits, labels, .smoothing = 0.1);
 *     ng_tensor *each = ng_mse(tape, x, y, .reduction = NG_EACH);
 *     ng_tensor *probabilities = ng_softmax(tape, logits);
 *     printf("%g %%\n", 100 * ng_accuracy(logits, labels));
 *
 *     ng_softmax(tape, x)                        e^x / sum e^x
 *     ng_log_softmax(tape, x)                    x - ln sum e^x
 *     ng_mse(tape, x, t)                         (x - t)^2
 *     ng_l1(tape, x, t)                          |x - t|
 *     ng_huber(tape, x, t)                       d^2 / 2 up to d = delta, then linear; d = |x - t|
 *     ng_cross_entropy(tape, logits, labels)     -ln softmax(logits)[label]
 *     ng_nll(tape, x, labels)                    -x[label], x = log_softmax(logits)
 *     ng_binary_cross_entropy(tape, logits, t)   softplus(x) - t x
 *     ng_kl_divergence(tape, x, t)               t (ln t - x)
 *     ng_hinge(tape, x, t)                       max(0, 1 - t x)
 *     ng_hinge_embedding(tape, x, t)             t = 1: x;  t = -1: max(0, 1 - x)
 *     ng_cosine_embedding(tape, a, b, t)         t = 1: 1 - cos(a, b);  t = -1: max(0, cos(a, b))
 *     ng_triplet(tape, a, p, n)                  max(0, d(a, p) - d(a, n) + 1)
 *     ng_gaussian_nll(tape, x, t, var)           (ln var + (x - t)^2 / var) / 2
 *     ng_accuracy(logits, labels)                the fraction of rows that are right
 *
 * Every loss has the setting .reduction: the mean of the elements or rows (default), their sum, or
 * all of them. Operands of a loss do not broadcast: x and its target have one shape.
 */
#ifndef NORMGRAD_LOSSES_H
#define NORMGRAD_LOSSES_H

#include <normgrad/reductions.h>

NG_BEGIN_C

/* A distribution along an axis, y = e^x / sum e^x, and its logarithm, y = x - ln sum e^x. */
#define ng_softmax(tape, ...) ng_softmax_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
#define ng_log_softmax(tape, ...)                                                                  \
    ng_log_softmax_with(tape, NG_NAMED(ng_axis_options, x, __VA_ARGS__))
NG_API ng_tensor *ng_softmax_with(ng_tape *tape, ng_axis_options options);
NG_API ng_tensor *ng_log_softmax_with(ng_tape *tape, ng_axis_options options);

/* How the losses of elements or rows are reduced. */
typedef enum {
    NG_MEAN = 0, /* their mean */
    NG_SUM,      /* their sum */
    NG_EACH      /* all of them */
} ng_reduction;

/* ---- Regression --------------------------------------------------------------------------- */

/* Losses of a prediction x against a target t of the same shape:
 *     ng_mse     (x - t)^2
 *     ng_l1      |x - t|
 *     ng_huber   d <= delta ? d^2 / 2 : delta (d - delta / 2), d = |x - t| */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double delta;           /* ng_huber: where the square becomes linear; default 1 */
    ng_tensor *target;
} ng_loss_options;
#define ng_mse(tape, x, ...) ng_mse_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
#define ng_l1(tape, x, ...) ng_l1_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
#define ng_huber(tape, x, ...)                                                                     \
    ng_huber_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_mse_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);
NG_API ng_tensor *ng_l1_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);
NG_API ng_tensor *ng_huber_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);

/* Negative log-likelihood of targets t under normal distributions with means x and variances var:
 * (ln v + (x - t)^2 / v) / 2, v = max(var, eps). x and t have one shape, to which var broadcasts.
 * The slope of v is 1 below eps too. A var below 0 (by more than 1e-5) is NG_EVALUE, unless it
 * requires a gradient. Nix & Weigend 1994. */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double eps;             /* default 1e-6 */
    bool full;              /* add ln(2 pi) / 2 */
    ng_tensor *var;
} ng_gaussian_nll_options;
#define ng_gaussian_nll(tape, x, target, ...)                                                      \
    ng_gaussian_nll_with(tape, x, target, NG_NAMED(ng_gaussian_nll_options, var, __VA_ARGS__))
NG_API ng_tensor *ng_gaussian_nll_with(ng_tape *tape, ng_tensor *x, ng_tensor *target,
                                       ng_gaussian_nll_options options);

/* ---- Classification ----------------------------------------------------------------------- */

/* Cross-entropy of logits (..., classes) and int64 labels (...):
 *     loss = -sum_c q_c log_softmax(logits)_c
 *     q = (1 - smoothing) onehot(label) + smoothing / classes
 * A label outside 0 .. classes - 1 is an error, unless it is .ignored.
 *
 * Labels may also be probabilities p, of the logits' shape and dtype. Then q is
 *     (1 - smoothing) p + smoothing / classes
 * and gradients flow to p. A p outside [0, 1] (by more than 1e-5) is NG_EVALUE, unless it requires
 * a gradient. A mean is over the number of rows, with weights too; .ignore is not allowed.
 *
 * A class of weight 0, or of q = 0, adds 0 to the loss whatever its logit, and gives p no gradient.
 * The mean of no rows, or with weights that sum to 0, is NaN. */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double smoothing;       /* default 0 */
    bool ignore;         /* rows whose label is .ignored have loss 0 and do not count in the mean */
    int64_t ignored;     /* that label */
    bool channels_first; /* logits are (N, classes, ...), labels (N, ...), as in PyTorch */
    ng_tensor *weights;  /* (classes), a factor for each class; the mean is divided by the sum of
                            the labels' weights; gets no gradient; default: 1 */
    ng_tensor *labels;
} ng_cross_entropy_options;
#define ng_cross_entropy(tape, logits, ...)                                                        \
    ng_cross_entropy_with(tape, logits, NG_NAMED(ng_cross_entropy_options, labels, __VA_ARGS__))
NG_API ng_tensor *ng_cross_entropy_with(ng_tape *tape, ng_tensor *logits,
                                        ng_cross_entropy_options options);

/* Negative log-likelihood of log-probabilities x (..., classes), which ng_log_softmax gives, and
 * int64 labels (...): loss = -weights[label] x[label]. */
typedef struct {
    ng_reduction reduction; /* as in ng_cross_entropy, like the others */
    bool ignore;
    int64_t ignored;
    bool channels_first;
    ng_tensor *weights;
    ng_tensor *labels;
} ng_nll_options;
#define ng_nll(tape, x, ...) ng_nll_with(tape, x, NG_NAMED(ng_nll_options, labels, __VA_ARGS__))
NG_API ng_tensor *ng_nll_with(ng_tape *tape, ng_tensor *x, ng_nll_options options);

/* Binary cross-entropy of logits x and targets t in [0, 1], of one shape:
 *     weights (positive_weights t softplus(-x) + (1 - t) softplus(x))
 * which without weights is softplus(x) - t x. PyTorch's binary_cross_entropy_with_logits. A target
 * outside [0, 1] (by more than 1e-5) is NG_EVALUE, unless it requires a gradient. */
typedef struct {
    ng_reduction reduction;      /* default NG_MEAN, over all elements */
    ng_tensor *weights;          /* broadcasts to x, such as (classes); no gradient; default: 1 */
    ng_tensor *positive_weights; /* the same, PyTorch's pos_weight */
    ng_tensor *target;
} ng_binary_cross_entropy_options;
#define ng_binary_cross_entropy(tape, logits, ...)                                                 \
    ng_binary_cross_entropy_with(tape, logits,                                                     \
                                 NG_NAMED(ng_binary_cross_entropy_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_binary_cross_entropy_with(ng_tape *tape, ng_tensor *logits,
                                               ng_binary_cross_entropy_options options);

/* Kullback-Leibler divergence of probabilities t from log-probabilities x, of one shape: t (ln t -
 * x) for each element. NG_MEAN is the mean over all elements; for the mean over a batch of
 * distributions, divide NG_SUM by the number of rows. At t = 0 the loss is 0, with no gradient to
 * t. A t below 0 (by more than 1e-5) is NG_EVALUE, unless it requires a gradient. */
#define ng_kl_divergence(tape, x, ...)                                                             \
    ng_kl_divergence_with(tape, x, NG_NAMED(ng_loss_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_kl_divergence_with(ng_tape *tape, ng_tensor *x, ng_loss_options options);

/* The fraction of rows of logits (..., classes) whose largest element is at the int64 label (...).
 * The first of equal elements counts. A row with a NaN, or whose label is no class, is wrong. NaN
 * for no rows and on error. */
NG_API double ng_accuracy(const ng_tensor *logits, const ng_tensor *labels);

/* ---- Margins ------------------------------------------------------------------------------ */

/* Losses with a margin. Targets t are 1 or -1 and get no gradient.
 *     ng_hinge             max(0, margin - t x), x and t of one shape; Cortes & Vapnik 1995
 *     ng_hinge_embedding   t = 1: x;  t = -1: max(0, margin - x), for distances x
 *     ng_cosine_embedding  t = 1: 1 - cos(a, b);  t = -1: max(0, cos(a, b) - margin)
 * In ng_cosine_embedding a and b are (..., n) and t is (...); cos is ng_cosine_similarity.
 *
 * ng_hinge also takes scores x (..., classes) with int64 labels (...). The loss of a row is then
 * sum_c max(0, margin - x[label] + x[c]) / classes over the other classes c: PyTorch's
 * multi_margin_loss. */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double margin;          /* default 1; of ng_cosine_embedding 0 */
    ng_tensor *target;
} ng_margin_options;
#define ng_hinge(tape, x, ...)                                                                     \
    ng_hinge_with(tape, x, NG_NAMED(ng_margin_options, target, __VA_ARGS__))
#define ng_hinge_embedding(tape, x, ...)                                                           \
    ng_hinge_embedding_with(tape, x, NG_NAMED(ng_margin_options, target, __VA_ARGS__))
#define ng_cosine_embedding(tape, a, b, ...)                                                       \
    ng_cosine_embedding_with(tape, a, b, NG_NAMED(ng_margin_options, target, __VA_ARGS__))
NG_API ng_tensor *ng_hinge_with(ng_tape *tape, ng_tensor *x, ng_margin_options options);
NG_API ng_tensor *ng_hinge_embedding_with(ng_tape *tape, ng_tensor *x, ng_margin_options options);
NG_API ng_tensor *ng_cosine_embedding_with(ng_tape *tape, ng_tensor *a, ng_tensor *b,
                                           ng_margin_options options);

/* Triplet loss of rows (..., n): max(0, d(anchor, positive) - d(anchor, negative) + margin), with
 * d(a, b) = |a - b + 1e-6|. Schroff et al. 2015. */
typedef struct {
    ng_reduction reduction; /* default NG_MEAN */
    double margin;          /* default 1 */
    double order;           /* of the norm in d; default 2 */
    bool
        swap; /* use d(positive, negative) where it is less than d(anchor, negative); Balntas et al.
                 2016 */
    ng_tensor *negative;
} ng_triplet_options;
#define ng_triplet(tape, anchor, positive, ...)                                                    \
    ng_triplet_with(tape, anchor, positive, NG_NAMED(ng_triplet_options, negative, __VA_ARGS__))
NG_API ng_tensor *ng_triplet_with(ng_tape *tape, ng_tensor *anchor, ng_tensor *positive,
                                  ng_triplet_options options);

NG_END_C

#endif
