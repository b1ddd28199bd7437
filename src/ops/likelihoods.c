/* Losses of log-probabilities: nll, class weights, Kullback-Leibler; and accuracy. */
#include "ops/losses.h"
#include <math.h>

/* For each row the element of its label, that element's factor, and whether the row counts. */
typedef struct {
    ng_tensor *index;   /* int64 (..., 1); 0 for a row that is ignored */
    ng_tensor *factors; /* (...): the label's weight; 0 for a row that is ignored */
    ng_tensor *counts;  /* (...): 1 or 0 */
    double total;       /* of the factors */
} selection;

static bool label_weights_fit(const char *function, const ng_tape *tape, const ng_tensor *x,
                              const ng_tensor *weights)
{
    return !weights ||
           (ng_usable(function, "weights", 0, tape, weights) &&
            ng_has_type(function, "weights", weights, x->dtype, NG_SHAPE(ng_dim(x, -1))));
}

bool ng_labels_fit(const char *function, const ng_tensor *x, const ng_tensor *labels)
{
    ng_shape leading = x->shape;
    if (!ng_expect_shape(leading.rank > 0, function, "x", x, "(..., classes)")) return false;
    leading.rank--;
    if (ng_shape_equal(leading, labels->shape)) return true;
    ng_fail(NG_ESHAPE, "%s: labels are %s, expected %s, one for each row of x %s", function,
            ng_shape_print(labels->shape).text, ng_shape_print(leading).text,
            ng_shape_print(x->shape).text);
    return false;
}

bool ng_label_ok(const char *function, int64_t label, int64_t row, int64_t classes)
{
    if (label >= 0 && label < classes) return true;
    ng_fail(NG_EVALUE, "%s: label %lld in row %lld, expected 0 .. %lld", function, (long long)label,
            (long long)row, (long long)classes - 1);
    return false;
}

ng_tensor *ng_classes_last(ng_tape *tape, ng_tensor *x, bool channels_first)
{
    if (!x || !channels_first || x->shape.rank < 3) return x;
    ng_axes axes = {.count = x->shape.rank};
    for (int i = 1; i < axes.count; i++) axes.axis[i] = i % (axes.count - 1) + 1;
    return ng_permute(tape, x, axes);
}

static bool select_labels(const char *function, ng_tape *tape, const ng_tensor *x,
                          const ng_nll_options *o, selection *s)
{
    if (!label_weights_fit(function, tape, x, o->weights)) return false;
    ng_shape column = o->labels->shape;
    column.dim[column.rank++] = 1;
    *s = (selection){.index = ng_result(tape, NG_I64, column),
                     .factors = ng_result(tape, x->dtype, o->labels->shape),
                     .counts = ng_result(tape, x->dtype, o->labels->shape)};
    if (!s->index || !s->factors || !s->counts) return false;
    const int64_t *label = o->labels->data, classes = ng_dim(x, -1);
    int64_t *const index = s->index->data;
    for (int64_t r = 0; r < o->labels->size; r++) {
        const bool ignored = o->ignore && label[r] == o->ignored;
        if (!ignored && !ng_label_ok(function, label[r], r, classes)) return false;
        const double weight = o->weights && !ignored ? ng_tensor_load(o->weights, label[r]) : 1;
        index[r] = ignored ? 0 : label[r];
        ng_tensor_store(s->factors, r, ignored ? 0 : weight);
        ng_tensor_store(s->counts, r, ignored ? 0 : 1);
        s->total += ignored ? 0 : weight;
    }
    return true;
}

static ng_tensor *reduced_by(ng_tape *tape, ng_tensor *losses, ng_reduction reduction, double total)
{
    if (reduction == NG_EACH) return losses;
    ng_tensor *sum = ng_sum(tape, losses);
    return reduction == NG_SUM ? sum : ng_mul_scalar(tape, sum, 1 / total);
}

/* -factor x[label]; 0 where the factor is 0, even if x is infinite or NaN. */
static ng_tensor *of_labels(ng_tape *tape, ng_tensor *x, const selection *s)
{
    ng_tensor *picked = ng_squeeze(tape, ng_take_along_axis(tape, x, s->index), -1);
    ng_tensor *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    return ng_neg(tape, ng_mul(tape, s->factors, ng_where(tape, s->factors, picked, zero)));
}

/* ---- nll: -weights[label] x[label] --------------------------------------------------------- */

ng_tensor *ng_nll_with(ng_tape *tape, ng_tensor *x, ng_nll_options options)
{
    static const char function[] = "ng_nll";
    selection s;
    if (ng_is_none(options.weights)) options.weights = NULL;
    if (!ng_accepts(function, tape, 1, &x) ||
        !ng_accepts_index(function, tape, "labels", options.labels) ||
        !ng_reduction_ok(function, options.reduction) ||
        !(x = ng_classes_last(tape, x, options.channels_first)) ||
        !ng_labels_fit(function, x, options.labels) ||
        !ng_option_idle(function, "ignored", !options.ignore && options.ignored, "with .ignore") ||
        !select_labels(function, tape, x, &options, &s))
        return NULL;
    return reduced_by(tape, of_labels(tape, x, &s), options.reduction, s.total);
}

/* ---- cross_entropy with weights ---------------------------------------------------------------
 *
 * loss = -sum_c w_c q_c log_softmax(x)_c,  q = (1 - s) onehot(label) + s / classes */

ng_tensor *ng_weighted_cross_entropy(ng_tape *tape, ng_tensor *logits,
                                     ng_cross_entropy_options options)
{
    static const char function[] = "ng_cross_entropy";
    const ng_nll_options of_rows = {.ignore = options.ignore,
                                    .ignored = options.ignored,
                                    .weights = options.weights,
                                    .labels = options.labels};
    selection s;
    if (!select_labels(function, tape, logits, &of_rows, &s)) return NULL;
    ng_tensor *zero = ng_full(tape, logits->dtype, NG_SCALAR, 0);
    if (options.ignore) logits = ng_where(tape, ng_unsqueeze(tape, s.counts, -1), logits, zero);
    ng_tensor *x = ng_log_softmax(tape, logits);
    if (!x || !zero) return NULL;
    ng_tensor *losses = of_labels(tape, x, &s);
    if (options.smoothing > 0) {
        ng_tensor *weights = ng_detach(tape, options.weights, .by_definition = true);
        ng_tensor *terms = ng_mul(tape, ng_where(tape, weights, x, zero), weights);
        ng_tensor *all = ng_sum(tape, terms, .axes = NG_AXES(-1));
        all = ng_where(tape, s.counts, all, zero);
        const double each = options.smoothing / (double)ng_dim(x, -1);
        losses = ng_sub(tape, ng_mul_scalar(tape, losses, 1 - options.smoothing),
                        ng_mul_scalar(tape, all, each));
    }
    return reduced_by(tape, losses, options.reduction, s.total);
}

/* ---- cross_entropy of probabilities p ---------------------------------------------------------
 *
 * loss = -sum_c w_c q_c log_softmax(x)_c,  q = (1 - s) p + s / classes */

/* The probabilities of o, classes last; NULL with an error. */
static ng_tensor *probabilities_for(const char *function, ng_tape *tape, ng_tensor *logits,
                                    const ng_cross_entropy_options *o)
{
    ng_tensor *const operands[] = {logits, o->labels};
    if (o->labels->dtype != logits->dtype) {
        ng_fail(NG_EDTYPE, "%s: labels are %s, expected int64, or probabilities in %s", function,
                ng_dtype_name(o->labels->dtype), ng_dtype_name(logits->dtype));
        return NULL;
    }
    if (!ng_accepts(function, tape, 2, operands)) return NULL;
    ng_tensor *const p = ng_classes_last(tape, o->labels, o->channels_first);
    if (!p || ng_shape_equal(p->shape, logits->shape)) return p;
    ng_fail(NG_EDTYPE, "%s: labels is %s %s, expected int64, or probabilities of the logits' shape",
            function, ng_dtype_name(o->labels->dtype), ng_shape_print(o->labels->shape).text);
    return NULL;
}

ng_tensor *ng_cross_entropy_of_probabilities(ng_tape *tape, ng_tensor *logits,
                                             ng_cross_entropy_options options)
{
    static const char function[] = "ng_cross_entropy";
    ng_tensor *q = probabilities_for(function, tape, logits, &options);
    if (!q || !ng_has_rows(function, logits) || !ng_reduction_ok(function, options.reduction) ||
        !ng_option_idle(function, "ignore", options.ignore, "with int64 labels") ||
        !ng_option_idle(function, "ignored", options.ignored != 0, "with int64 labels") ||
        !label_weights_fit(function, tape, logits, options.weights) ||
        !ng_targets_ok(function, "labels", options.labels, 0, 1))
        return NULL;
    const double s = options.smoothing, rows = (double)(logits->size / ng_dim(logits, -1));
    if (s > 0)
        q = ng_add_scalar(tape, ng_mul_scalar(tape, q, 1 - s), s / (double)ng_dim(logits, -1));
    if (options.weights)
        q = ng_mul(tape, q, ng_detach(tape, options.weights, .by_definition = true));
    ng_tensor *zero = ng_full(tape, logits->dtype, NG_SCALAR, 0);
    ng_tensor *x = ng_where(tape, ng_detach(tape, q), ng_log_softmax(tape, logits), zero);
    ng_tensor *losses = ng_neg(tape, ng_sum(tape, ng_mul(tape, q, x), .axes = NG_AXES(-1)));
    return reduced_by(tape, losses, options.reduction, rows);
}

/* ---- kl_divergence: t (ln t - x) ----------------------------------------------------------- */

ng_tensor *ng_kl_divergence_with(ng_tape *tape, ng_tensor *x, ng_loss_options options)
{
    static const char function[] = "ng_kl_divergence";
    if (!ng_loss_pair_ok(function, tape, x, &options) ||
        !ng_targets_ok(function, "target", options.target, 0, HUGE_VAL))
        return NULL;
    ng_tensor *const t = options.target;
    ng_tensor *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    ng_tensor *one = ng_full(tape, x->dtype, NG_SCALAR, 1);
    ng_tensor *none = ng_equal(tape, ng_detach(tape, t), zero);
    ng_tensor *log_t = ng_log(tape, ng_where(tape, none, one, t));
    ng_tensor *seen = ng_where(tape, none, zero, x); /* -Inf of what is ruled out, say, is not */
    ng_tensor *losses = ng_mul(tape, t, ng_sub(tape, log_t, seen));
    return ng_reduced(tape, ng_where(tape, none, zero, losses), options.reduction);
}

/* ---- accuracy ------------------------------------------------------------------------------ */

/* Whether the label's element is the first largest one; false if the row has a NaN. */
static bool likelihoods_is_right(const ng_tensor *x, int64_t row, int64_t classes, int64_t label)
{
    if (label < 0 || label >= classes) return false;
    const double top = ng_tensor_load(x, row * classes + label);
    for (int64_t c = 0; c < classes; c++) {
        const double value = ng_tensor_load(x, row * classes + c);
        if (!(c < label ? value < top : value <= top)) return false;
    }
    return true;
}

double ng_accuracy(const ng_tensor *logits, const ng_tensor *labels)
{
    static const char function[] = "ng_accuracy";
    if (!ng_given(function, "logits", logits) || !ng_given(function, "labels", labels) ||
        !ng_readable(function, logits) || !ng_readable(function, labels) ||
        !ng_labels_fit(function, logits, labels))
        return nan("");
    if (labels->dtype != NG_I64 || logits->dtype == NG_I64) {
        ng_fail(NG_EDTYPE,
                "%s: logits are %s and labels %s, expected float32 or float64, and int64", function,
                ng_dtype_name(logits->dtype), ng_dtype_name(labels->dtype));
        return nan("");
    }
    const int64_t *label = labels->data, classes = ng_dim(logits, -1);
    int64_t right = 0;
    for (int64_t r = 0; r < labels->size; r++)
        right += likelihoods_is_right(logits, r, classes, label[r]);
    return (double)right / (double)labels->size;
}
