/* Losses of predictions and targets: for each element or row, or their sum or mean. */
#include "ops/losses.h"
#include <math.h>

/* ---- Reductions ----------------------------------------------------------------------------- */

bool ng_reduction_ok(const char *function, ng_reduction reduction)
{
    if ((unsigned)reduction <= NG_EACH) return true;
    ng_fail(NG_EVALUE, "%s: reduction %d, expected NG_MEAN, NG_SUM or NG_EACH", function,
            (int)reduction);
    return false;
}

ng_tensor *ng_reduced(ng_tape *tape, ng_tensor *losses, ng_reduction reduction)
{
    if (reduction == NG_EACH) return losses;
    return reduction == NG_SUM ? ng_sum(tape, losses) : ng_mean(tape, losses);
}

/* Memory of the tape for as many elements as x has. */
static void *memory_like(ng_tape *tape, const ng_tensor *x)
{
    return ng_tape_memory(tape, (size_t)x->size * ng_dtype_bytes(x->dtype));
}

static bool pair_fits(const char *function, ng_tape *tape, ng_tensor *x, const ng_loss_options *o)
{
    static const char *const names[] = {"x", "target"};
    ng_tensor *inputs[] = {x, o->target};
    if (tape && o->target && ng_usable(function, "target", 0, tape, o->target) &&
        o->target->dtype == NG_I64) {
        ng_fail(NG_EDTYPE,
                "%s: target is int64, as labels are, expected float32 or float64: ng_cast "
                "converts it, and .targets of ng_dataset_read_csv reads numbers",
                function);
        return false;
    }
    return ng_accepts_optional(function, tape, 2, 2, inputs, names) &&
           ng_reduction_ok(function, o->reduction) &&
           ng_has_shape(function, "target", o->target, x->shape);
}

bool ng_loss_pair_ok(const char *function, ng_tape *tape, ng_tensor *x, const ng_loss_options *o)
{
    return pair_fits(function, tape, x, o) &&
           ng_option_idle(function, "delta", ng_option_given(o->delta), "in ng_huber");
}

bool ng_targets_ok(const char *function, const char *name, const ng_tensor *target, double low,
                   double high)
{
    if (target->requires_grad) return true;
    const int64_t place = ng_kernels_for(target->dtype)
                              ->first_outside(target->data, target->size, low - 1e-5, high + 1e-5);
    if (place < 0) return true;
    ng_fail(NG_EVALUE, "%s: %s %g at [%lld], expected %s", function, name,
            ng_tensor_load(target, place), (long long)place,
            high < HUGE_VAL ? "0 to 1" : "0 or more");
    return false;
}

/* out = binary(a, b) for two arrays of x's shape. */
static void combine(ng_binary binary, const ng_tensor *x, const void *a, const void *b, void *out)
{
    const ng_walk walk = ng_walk_broadcast(x->shape, x->shape, x->shape);
    ng_kernels_for(x->dtype)->binary(binary, &walk, a, b, out);
}

/* What a loss of each element keeps: how it is reduced, and the factor of a sum. */
typedef struct {
    ng_reduction reduction;
    double scale;
} loss_attributes;

static loss_attributes loss_attributes_of(ng_reduction reduction, int64_t count)
{
    return (loss_attributes){reduction, reduction == NG_MEAN ? 1 / (double)count : 1};
}

/* Adds factor g dy to a slot; scratch holds one dy per element where dy has one for each. */
static void add_scaled(const ng_tensor *x, const loss_attributes *saved, const void *g,
                       const ng_tensor *dy, double factor, void *scratch, ng_slot slot)
{
    double scale = factor * saved->scale;
    if (saved->reduction == NG_EACH) {
        combine(NG_BINARY_MUL, x, g, dy->data, scratch);
        g = scratch;
    } else {
        scale *= ng_tensor_load(dy, 0);
    }
    ng_kernels_for(x->dtype)->axpy(scale, g, slot.data, x->size, slot.accumulate);
}

/* ---- mse: (x - t)^2 -------------------------------------------------------------------------
 *
 * dx = 2 (x - t) dy,  dt = -dx
 *
 * At 256x128 with its backward pass it takes 0.5 of its definition's time. */

typedef struct {
    loss_attributes loss;
    void *difference; /* x - t, the tape's */
} mse_attributes;

static ng_status mse_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    const mse_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0];
    const bool each = saved->loss.reduction == NG_EACH;
    void *scratch = each ? memory_like(tape, x) : NULL;
    if (each && !scratch) return NG_ENOMEM;
    if (dx[0].data) add_scaled(x, &saved->loss, saved->difference, dy, 2, scratch, dx[0]);
    if (dx[1].data) add_scaled(x, &saved->loss, saved->difference, dy, -2, scratch, dx[1]);
    return NG_OK;
}

static ng_tensor *mse_definition(ng_tape *tape, const ng_node *node)
{
    const mse_attributes *saved = node->attributes;
    ng_tensor *difference = ng_sub(tape, node->inputs[0], node->inputs[1]);
    return ng_reduced(tape, ng_square(tape, difference), saved->loss.reduction);
}

static const ng_op mse_op = {.name = "mse", .backward = mse_backward, .definition = mse_definition};

ng_tensor *ng_mse_with(ng_tape *tape, ng_tensor *x, ng_loss_options options)
{
    if (!ng_loss_pair_ok("ng_mse", tape, x, &options)) return NULL;
    const ng_reduction reduction = options.reduction;
    ng_tensor *y = ng_result(tape, x->dtype, reduction == NG_EACH ? x->shape : NG_SCALAR);
    mse_attributes saved = {.loss = loss_attributes_of(reduction, x->size),
                            .difference = memory_like(tape, x)};
    if (!y || !saved.difference) return NULL;
    combine(NG_BINARY_SUB, x, x->data, options.target->data, saved.difference);
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    if (reduction == NG_EACH)
        kernels->map((ng_mapping){.kind = NG_MAP_SQUARE}, saved.difference, y->data, x->size);
    else
        ng_tensor_store(
            y, 0, saved.loss.scale * kernels->dot(saved.difference, saved.difference, x->size));
    ng_tensor *inputs[] = {x, options.target};
    return ng_record_own(tape, &mse_op, y, inputs, 2, &saved, sizeof saved);
}

/* ---- l1: |x - t| ---------------------------------------------------------------------------- */

ng_tensor *ng_l1_with(ng_tape *tape, ng_tensor *x, ng_loss_options options)
{
    if (!ng_loss_pair_ok("ng_l1", tape, x, &options)) return NULL;
    return ng_reduced(tape, ng_abs(tape, ng_sub(tape, x, options.target)), options.reduction);
}

/* ---- huber: d = |x - t|: d <= delta ? d^2 / 2 : delta (d - delta / 2) -----------------------
 *
 * With u = x - t and q = u clamped to [-delta, delta] both branches are q (u - q / 2). */

ng_tensor *ng_huber_with(ng_tape *tape, ng_tensor *x, ng_loss_options options)
{
    if (!pair_fits("ng_huber", tape, x, &options)) return NULL;
    const double delta = ng_option(options.delta, 1);
    if (!(delta > 0)) {
        ng_fail(NG_EVALUE, "ng_huber: delta is %g, expected a positive number", delta + 0);
        return NULL;
    }
    ng_tensor *u = ng_sub(tape, x, options.target);
    ng_tensor *q = ng_clamp(tape, u, -delta, delta);
    ng_tensor *losses = ng_mul(tape, q, ng_sub(tape, u, ng_mul_scalar(tape, q, 0.5)));
    return ng_reduced(tape, losses, options.reduction);
}

/* ---- binary_cross_entropy: softplus(x) - t x ------------------------------------------------
 *
 * dx = (sigmoid(x) - t) dy,  dt = -x dy
 *
 * At 256x128 with its backward pass it takes 0.6 of its definition's time. */

static ng_status bce_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy, ng_slot *dx)
{
    const loss_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *target = node->inputs[1];
    void *g = memory_like(tape, x), *scratch = memory_like(tape, x);
    if (!g || !scratch) return NG_ENOMEM;
    if (dx[0].data) {
        combine(NG_BINARY_LOGISTIC_SLOPE, x, x->data, target->data, g);
        add_scaled(x, saved, g, dy, 1, scratch, dx[0]);
    }
    if (dx[1].data) add_scaled(x, saved, x->data, dy, -1, scratch, dx[1]);
    return NG_OK;
}

static ng_tensor *times_constant(ng_tape *tape, ng_tensor *x, ng_tensor *factor)
{
    return factor ? ng_mul(tape, x, ng_detach(tape, factor, .by_definition = true)) : x;
}

/* (1 - t) softplus(x) + t softplus(-x), the same without cancellation, with factors or without. */
static ng_tensor *weighted_bce(ng_tape *tape, ng_tensor *x, ng_tensor *target,
                               const ng_binary_cross_entropy_options *o)
{
    ng_tensor *no = ng_mul(tape, ng_scalar_sub(tape, 1, target), ng_softplus(tape, x));
    ng_tensor *yes = ng_mul(tape, target, ng_softplus(tape, ng_neg(tape, x)));
    ng_tensor *losses = ng_add(tape, no, times_constant(tape, yes, o->positive_weights));
    return ng_reduced(tape, times_constant(tape, losses, o->weights), o->reduction);
}

static ng_tensor *bce_definition(ng_tape *tape, const ng_node *node)
{
    const loss_attributes *saved = node->attributes;
    const ng_binary_cross_entropy_options plain = {.reduction = saved->reduction};
    return weighted_bce(tape, node->inputs[0], node->inputs[1], &plain);
}

/* sigmoid(x) - t as (1 - t) sigmoid(x) - t sigmoid(-x), of which a small part keeps its digits. The
 * definition's gradient to t is the difference of two softplus, which loses those of a small x. */
static void bce_gradient(ng_tape *tape, const ng_node *node, ng_tensor *dy, ng_tensor **dx)
{
    const loss_attributes *saved = node->attributes;
    ng_tensor *x = node->inputs[0], *target = node->inputs[1];
    if (saved->scale != 1) dy = ng_mul_scalar(tape, dy, saved->scale);
    if (ng_wants(dx, 0)) {
        ng_tensor *no = ng_mul(tape, dy, ng_scalar_sub(tape, 1, target));
        ng_tensor *yes = ng_mul(tape, dy, target);
        dx[0] = ng_sub(tape, ng_mul(tape, no, ng_sigmoid(tape, x)),
                       ng_mul(tape, yes, ng_sigmoid(tape, ng_neg(tape, x))));
    }
    if (ng_wants(dx, 1)) dx[1] = ng_neg(tape, ng_mul(tape, dy, x));
}

bool ng_factor_fits(const char *function, const char *name, const ng_tape *tape,
                    const ng_tensor *factor, const ng_tensor *x)
{
    ng_shape joint;
    if (!factor) return true;
    if (!ng_usable(function, name, 0, tape, factor)) return false;
    if (factor->dtype == x->dtype && ng_shapes_broadcast(factor->shape, x->shape) &&
        ng_shape_broadcast(function, factor->shape, x->shape, &joint) &&
        ng_shape_equal(joint, x->shape))
        return true;
    ng_fail(factor->dtype != x->dtype ? NG_EDTYPE : NG_ESHAPE,
            "%s: %s is %s %s, expected %s of a shape that broadcasts to %s", function, name,
            ng_dtype_name(factor->dtype), ng_shape_print(factor->shape).text,
            ng_dtype_name(x->dtype), ng_shape_print(x->shape).text);
    return false;
}

static const ng_op bce_op = {.name = "binary_cross_entropy",
                             .gradient = bce_gradient,
                             .backward = bce_backward,
                             .definition = bce_definition};

ng_tensor *ng_binary_cross_entropy_with(ng_tape *tape, ng_tensor *logits,
                                        ng_binary_cross_entropy_options options)
{
    static const char function[] = "ng_binary_cross_entropy";
    const ng_loss_options pair = {.reduction = options.reduction, .target = options.target};
    if (ng_is_none(options.weights)) options.weights = NULL;
    if (ng_is_none(options.positive_weights)) options.positive_weights = NULL;
    if (!pair_fits(function, tape, logits, &pair) ||
        !ng_targets_ok(function, "target", options.target, 0, 1) ||
        !ng_factor_fits(function, "weights", tape, options.weights, logits) ||
        !ng_factor_fits(function, "positive_weights", tape, options.positive_weights, logits))
        return NULL;
    if (options.weights || options.positive_weights)
        return weighted_bce(tape, logits, options.target, &options);
    const ng_tensor *x = logits;
    const loss_attributes saved = loss_attributes_of(options.reduction, x->size);
    const bool each = saved.reduction == NG_EACH;
    ng_tensor *y = ng_result(tape, x->dtype, each ? x->shape : NG_SCALAR);
    void *losses = each && y ? y->data : memory_like(tape, x);
    if (!y || !losses) return NULL;
    combine(NG_BINARY_LOGISTIC, x, x->data, options.target->data, losses);
    if (!each) ng_kernels_for(x->dtype)->sum(losses, y->data, 1, x->size, 1, saved.scale, false);
    ng_tensor *inputs[] = {logits, options.target};
    return ng_record_own(tape, &bce_op, y, inputs, 2, &saved, sizeof saved);
}

/* ---- cross_entropy: -sum_c q_c log_softmax(x)_c ---------------------------------------------
 *
 * With q = (1 - s) onehot(label) + s / classes, which sums to 1:
 *
 *     loss = ln sum e^x - (1 - s) x[label] - s mean(x)
 *     dx   = (softmax(x) - q) dy
 *
 * For 256 rows of 10 classes with its backward pass it takes 0.4 of its definition's time. */

typedef struct {
    ng_cross_entropy_shape shape;
    loss_attributes loss;
    double *kept; /* (rows, 2), the tape's: see kernels.def */
} cross_entropy_attributes;

static ng_status losses_cross_entropy_backward(ng_tape *tape, const ng_node *node,
                                               const ng_tensor *dy, ng_slot *dx)
{
    (void)tape;
    const cross_entropy_attributes *a = node->attributes;
    const ng_tensor *x = node->inputs[0], *labels = node->inputs[1];
    const ng_loss_slopes slopes = {dy->data, a->loss.reduction == NG_EACH, a->loss.scale};
    ng_kernels_for(x->dtype)->cross_entropy_backward(&a->shape, x->data, labels->data, a->kept,
                                                     slopes, dx[0].data, dx[0].accumulate);
    return NG_OK;
}

/* The place of each row's label among all logits, and whether the row counts. */
static bool label_places(const cross_entropy_attributes *a, const ng_tensor *labels,
                         ng_tensor *place, ng_tensor *counts)
{
    if (!place || !counts) return false;
    const int64_t *label = labels->data;
    int64_t *index = place->data;
    for (int64_t r = 0; r < a->shape.rows; r++) {
        const bool ignored = ng_is_ignored(&a->shape, label[r]);
        index[r] = r * a->shape.n + (ignored ? 0 : label[r]);
        ng_tensor_store(counts, r, ignored ? 0 : 1);
    }
    return true;
}

static ng_tensor *cross_entropy_definition(ng_tape *tape, const ng_node *node)
{
    const cross_entropy_attributes *a = node->attributes;
    ng_tensor *x = node->inputs[0], *labels = node->inputs[1];
    ng_tensor *place = ng_result(tape, NG_I64, labels->shape);
    ng_tensor *counts = ng_result(tape, x->dtype, labels->shape);
    ng_tensor *zero = ng_full(tape, x->dtype, NG_SCALAR, 0);
    if (!zero || !label_places(a, labels, place, counts)) return NULL;
    if (a->shape.ignore) x = ng_where(tape, ng_unsqueeze(tape, counts, -1), x, zero);

    ng_tensor *z = ng_shifted(tape, x, -1); /* a shift changes no loss */
    ng_tensor *lse = ng_logsumexp(tape, z, .axes = NG_AXES(-1));
    ng_tensor *flat = ng_reshape(tape, z, NG_SHAPE(a->shape.rows * a->shape.n));
    ng_tensor *of_label = ng_gather_rows(tape, flat, place);
    ng_tensor *losses = ng_sub(tape, lse, ng_mul_scalar(tape, of_label, 1 - a->shape.smoothing));
    if (a->shape.smoothing > 0) {
        ng_tensor *mean = ng_mean(tape, z, .axes = NG_AXES(-1));
        losses = ng_sub(tape, losses, ng_mul_scalar(tape, mean, a->shape.smoothing));
    }
    if (a->shape.ignore) losses = ng_where(tape, counts, losses, zero);
    if (a->loss.reduction == NG_EACH) return losses;
    return ng_mul_scalar(tape, ng_sum(tape, losses), a->loss.scale);
}

static const ng_op cross_entropy_op = {.name = "cross_entropy",
                                       .backward = losses_cross_entropy_backward,
                                       .definition = cross_entropy_definition};

static bool classes_ok(ng_tape *tape, ng_tensor *logits, const ng_cross_entropy_options *o)
{
    static const char function[] = "ng_cross_entropy";
    return ng_accepts(function, tape, 1, &logits) &&
           ng_accepts_index(function, tape, "labels", o->labels) &&
           ng_reduction_ok(function, o->reduction) &&
           ng_option_idle(function, "ignored", !o->ignore && o->ignored, "with .ignore") &&
           ng_labels_fit(function, logits, o->labels) &&
           ng_expect_shape(ng_dim(logits, -1) >= 1, function, "logits", logits, "(..., classes)");
}

static bool smoothing_ok(double smoothing)
{
    if (smoothing >= 0 && smoothing <= 1) return true;
    ng_fail(NG_EVALUE, "ng_cross_entropy: smoothing is %g, expected 0 <= smoothing <= 1",
            smoothing);
    return false;
}

/* The number of rows that count; -1 with an error for a label that is no class. */
static int64_t counted_rows(const cross_entropy_attributes *a, const int64_t *label)
{
    int64_t count = 0;
    for (int64_t r = 0; r < a->shape.rows; r++) {
        if (ng_is_ignored(&a->shape, label[r])) continue;
        if (!ng_label_ok("ng_cross_entropy", label[r], r, a->shape.n)) return -1;
        count++;
    }
    return count;
}

ng_tensor *ng_cross_entropy_with(ng_tape *tape, ng_tensor *logits, ng_cross_entropy_options options)
{
    static const char function[] = "ng_cross_entropy";
    if (!ng_accepts(function, tape, 1, &logits) || !ng_given(function, "labels", options.labels))
        return NULL;
    if (!(logits = ng_classes_last(tape, logits, options.channels_first))) return NULL;
    if (ng_is_none(options.weights)) options.weights = NULL;
    const bool labelled = ng_is_none(options.labels) || options.labels->dtype == NG_I64;
    if ((labelled && !classes_ok(tape, logits, &options)) || !smoothing_ok(options.smoothing))
        return NULL;
    if (!labelled) return ng_cross_entropy_of_probabilities(tape, logits, options);
    if (options.weights) return ng_weighted_cross_entropy(tape, logits, options);
    const ng_tensor *x = logits, *labels = options.labels;
    cross_entropy_attributes a = {.shape = {.rows = labels->size,
                                            .n = ng_dim(x, -1),
                                            .smoothing = options.smoothing,
                                            .ignore = options.ignore,
                                            .ignored = options.ignored}};
    const int64_t count = counted_rows(&a, labels->data);
    if (count < 0) return NULL;
    a.loss = loss_attributes_of(options.reduction, count);

    const bool each = options.reduction == NG_EACH;
    ng_tensor *y = ng_result(tape, x->dtype, each ? labels->shape : NG_SCALAR);
    ng_tensor *losses = each ? y : ng_result(tape, x->dtype, labels->shape);
    a.kept = ng_tape_memory(tape, 2 * (size_t)a.shape.rows * sizeof *a.kept);
    if (!y || !losses || !a.kept) return NULL;
    const ng_kernels *kernels = ng_kernels_for(x->dtype);
    kernels->cross_entropy(&a.shape, x->data, labels->data, losses->data, a.kept);
    if (!each) kernels->sum(losses->data, y->data, 1, a.shape.rows, 1, a.loss.scale, false);
    ng_tensor *inputs[] = {logits, options.labels};
    return ng_record_own(tape, &cross_entropy_op, y, inputs, 2, &a, sizeof a);
}
