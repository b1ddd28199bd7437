/* Losses with a margin, and of a predicted normal distribution. */
#include "ops/losses.h"
#include <math.h>

/* ---- What they share ----------------------------------------------------------------------- */

/* The targets as a constant: each is 1 or -1. NULL with an error. */
static ng_tensor *signs(const char *function, ng_tape *tape, ng_tensor *targets, ng_shape shape)
{
    if (!ng_has_shape(function, "target", targets, shape)) return NULL;
    for (int64_t i = 0; i < targets->size; i++) {
        const double t = ng_tensor_load(targets, i);
        if (fabs(t) == 1) continue;
        ng_fail(NG_EVALUE, "%s: target %g at [%lld], expected 1 or -1", function, t, (long long)i);
        return NULL;
    }
    return ng_detach(tape, targets, .by_definition = true);
}

static bool margin_ok(const char *function, ng_reduction reduction, double margin)
{
    return ng_reduction_ok(function, reduction) &&
           ng_option_range(function, "margin", margin, -HUGE_VAL, HUGE_VAL);
}

/* ---- hinge: max(0, margin - t x), or the mean over classes of max(0, margin - x[label] + x) */

/* The label's own term is no part of the sum. */
static ng_tensor *hinge_of_classes(const char *function, ng_tape *tape, ng_tensor *x,
                                   ng_tensor *labels, double margin)
{
    if (!ng_accepts_index(function, tape, "target", labels) || !ng_labels_fit(function, x, labels))
        return NULL;
    const int64_t classes = ng_dim(x, -1), *const label = labels->data;
    for (int64_t i = 0; i < labels->size; i++)
        if (!ng_label_ok(function, label[i], i, classes)) return NULL;
    ng_tensor *own = ng_take_along_axis(tape, x, ng_unsqueeze(tape, labels, -1));
    ng_tensor *terms = ng_relu(tape, ng_add_scalar(tape, ng_sub(tape, x, own), margin));
    ng_tensor *is_own = ng_one_hot(tape, x->dtype, labels, classes);
    terms = ng_where(tape, is_own, ng_full(tape, x->dtype, NG_SCALAR, 0), terms);
    return ng_mean(tape, terms, .axes = NG_AXES(-1));
}

ng_tensor *ng_hinge_with(ng_tape *tape, ng_tensor *x, ng_margin_options options)
{
    static const char function[] = "ng_hinge";
    ng_tensor *const operands[] = {x, options.target};
    const double margin = ng_option(options.margin, 1);
    if (!ng_accepts(function, tape, 1, &x) || !ng_given(function, "target", options.target) ||
        !margin_ok(function, options.reduction, margin))
        return NULL;
    if (!ng_is_none(options.target) && options.target->dtype == NG_I64)
        return ng_reduced(tape, hinge_of_classes(function, tape, x, options.target, margin),
                          options.reduction);
    ng_tensor *t = ng_accepts(function, tape, 2, operands)
                       ? signs(function, tape, options.target, x->shape)
                       : NULL;
    ng_tensor *losses = ng_relu(tape, ng_scalar_sub(tape, margin, ng_mul(tape, t, x)));
    return ng_reduced(tape, losses, options.reduction);
}

/* ---- hinge_embedding: t = 1: x; t = -1: max(0, margin - x) ----------------------------------- */

ng_tensor *ng_hinge_embedding_with(ng_tape *tape, ng_tensor *x, ng_margin_options options)
{
    static const char function[] = "ng_hinge_embedding";
    ng_tensor *const operands[] = {x, options.target};
    const double margin = ng_option(options.margin, 1);
    if (!ng_accepts(function, tape, 2, operands) || !margin_ok(function, options.reduction, margin))
        return NULL;
    ng_tensor *t = signs(function, tape, options.target, x->shape);
    ng_tensor *apart = ng_relu(tape, ng_scalar_sub(tape, margin, x));
    return ng_reduced(tape, ng_where(tape, ng_relu(tape, t), x, apart), options.reduction);
}

/* ---- cosine_embedding: t = 1: 1 - cos(a, b); t = -1: max(0, cos(a, b) - margin) -------------- */

ng_tensor *ng_cosine_embedding_with(ng_tape *tape, ng_tensor *a, ng_tensor *b,
                                    ng_margin_options options)
{
    static const char function[] = "ng_cosine_embedding";
    ng_tensor *const operands[] = {a, b, options.target};
    if (!ng_accepts(function, tape, 3, operands) ||
        !margin_ok(function, options.reduction, options.margin) || !ng_has_rows(function, a) ||
        !ng_has_shape(function, "b", b, a->shape))
        return NULL;
    ng_shape rows = a->shape;
    rows.rank--;
    ng_tensor *t = signs(function, tape, options.target, rows);
    ng_tensor *cosine = t ? ng_cosine_similarity(tape, a, b) : NULL;
    ng_tensor *apart = ng_relu(tape, ng_add_scalar(tape, cosine, -options.margin));
    ng_tensor *alike = ng_scalar_sub(tape, 1, cosine);
    ng_tensor *losses = ng_where(tape, ng_relu(tape, t), alike, apart);
    return ng_reduced(tape, losses, options.reduction);
}

/* ---- triplet: max(0, |a - p| - |a - n| + margin) --------------------------------------------- */

static ng_tensor *distance(ng_tape *tape, ng_tensor *a, ng_tensor *b, double order)
{
    ng_tensor *between = ng_add_scalar(tape, ng_sub(tape, a, b), 1e-6);
    return ng_norm(tape, between, .axes = NG_AXES(-1), .order = order);
}

ng_tensor *ng_triplet_with(ng_tape *tape, ng_tensor *anchor, ng_tensor *positive,
                           ng_triplet_options options)
{
    static const char function[] = "ng_triplet";
    ng_tensor *const negative = options.negative, *const operands[] = {anchor, positive, negative};
    const double margin = ng_option(options.margin, 1);
    if (!ng_accepts(function, tape, 3, operands) ||
        !margin_ok(function, options.reduction, margin) || !ng_has_rows(function, anchor) ||
        !ng_has_shape(function, "positive", positive, anchor->shape) ||
        !ng_has_shape(function, "negative", negative, anchor->shape))
        return NULL;
    ng_tensor *near = distance(tape, anchor, positive, options.order);
    ng_tensor *far = distance(tape, anchor, negative, options.order);
    if (options.swap)
        far = ng_minimum(tape, far, distance(tape, positive, negative, options.order));
    ng_tensor *losses = ng_relu(tape, ng_add_scalar(tape, ng_sub(tape, near, far), margin));
    return ng_reduced(tape, losses, options.reduction);
}

/* ---- gaussian_nll: (ln v + (x - t)^2 / v) / 2, v = max(var, eps) ----------------------------- */

ng_tensor *ng_gaussian_nll_with(ng_tape *tape, ng_tensor *x, ng_tensor *target,
                                ng_gaussian_nll_options options)
{
    static const char function[] = "ng_gaussian_nll";
    ng_tensor *const var = options.var, *const operands[] = {x, target, var};
    const double eps = ng_option(options.eps, 1e-6), half_log_two_pi = 0.91893853320467274178;
    if (!ng_accepts(function, tape, 3, operands) || !ng_reduction_ok(function, options.reduction) ||
        !ng_option_range(function, "eps", eps, 0, HUGE_VAL) ||
        !ng_has_shape(function, "target", target, x->shape) ||
        !ng_factor_fits(function, "var", tape, var, x) ||
        !ng_targets_ok(function, "var", var, 0, HUGE_VAL))
        return NULL;
    ng_tensor *below = ng_relu(tape, ng_scalar_sub(tape, eps, var));
    ng_tensor *v = ng_add(tape, var, ng_detach(tape, below, .by_definition = true));
    ng_tensor *squares = ng_square(tape, ng_sub(tape, x, target));
    ng_tensor *losses = ng_add(tape, ng_log(tape, v), ng_div(tape, squares, v));
    losses = ng_mul_scalar(tape, losses, 0.5);
    if (options.full) losses = ng_add_scalar(tape, losses, half_log_two_pi);
    return ng_reduced(tape, losses, options.reduction);
}
