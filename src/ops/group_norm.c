/* Group normalization: the channels of each sample in groups.
 *
 * x (N, C, ...) is seen as (N, groups, n), n = C / groups * positions, a row being one group of one
 * sample; gamma and beta are (C). Per row
 *
 *     mean = (sum x) / n,  var = (sum (x - mean)^2) / n,  rstd = 1 / sqrt(var + eps)
 *     xhat = (x - mean) rstd
 *     y    = xhat gamma + beta                             by channel
 *
 * kernels/row_norm.inc derives the gradient.
 *
 * Of images (16, 16, 16, 16) with its backward pass it takes 0.2 of its definition's time.
 */
#include "ops/norm.h"

typedef struct {
    ng_group_shape shape;
    ng_row_norm_shape rows;
    ng_statistics statistics; /* (N, groups), the tape's */
} group_norm_attributes;

/* ---- Gradient and definition -------------------------------------------------------------- */

static ng_status group_norm_op_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                        ng_slot *dx)
{
    const group_norm_attributes *saved = node->attributes;
    const ng_tensor *x = node->inputs[0], *gamma = node->inputs[1];
    double *scratch = NULL;
    if (dx[1].data || dx[2].data) {
        const size_t doubles = (size_t)ng_group_norm_scratch(&saved->shape);
        scratch = ng_tape_memory(tape, doubles * sizeof *scratch);
        if (!scratch) return NG_ENOMEM;
    }
    ng_kernels_for(x->dtype)->group_norm_backward(
        &saved->shape, x->data, gamma->data, saved->statistics, dy->data,
        (ng_norm_gradients){dx[0], dx[1], dx[2]}, scratch);
    return NG_OK;
}

static ng_tensor *group_norm_definition(ng_tape *tape, const ng_node *node)
{
    const group_norm_attributes *saved = node->attributes;
    const ng_row_norm_shape *rows = &saved->rows;
    ng_tensor *x = node->inputs[0], *group = ng_reshape(tape, x, NG_SHAPE(rows->rows, rows->n));
    const ng_composed_norm norm =
        ng_compose_norm(tape, group, NG_AXES(1), (ng_deviation){true, (double)rows->n, rows->eps});
    return ng_composed_output(tape, norm, node->inputs[1], node->inputs[2], x);
}

static const ng_op group_norm_op = {
    .name = "group_norm", .backward = group_norm_op_backward, .definition = group_norm_definition};

/* ---- Shape rule --------------------------------------------------------------------------- */

static bool groups_divide(const char *function, int64_t groups, int64_t channels)
{
    if (groups >= 1 && channels % groups == 0) return true;
    ng_fail(NG_EVALUE, "%s: groups is %lld, expected a divisor of %lld channels", function,
            (long long)groups, (long long)channels);
    return false;
}

/* The kernels' views of x; false with an error. */
static bool groups_of(const char *function, const ng_tensor *x, int64_t groups, double eps,
                      group_norm_attributes *views)
{
    if (!ng_has_channels(function, x) || !groups_divide(function, groups, x->shape.dim[1]))
        return false;
    const int64_t channels = x->shape.dim[1];
    const int64_t rows = x->shape.dim[0] * groups;
    const int64_t n = ng_shape_span(x->shape, 1, x->shape.rank) / groups;
    views->shape = (ng_group_shape){.outer = x->shape.dim[0],
                                    .channels = channels,
                                    .groups = groups,
                                    .inner = n * groups / channels};
    views->rows = (ng_row_norm_shape){.rows = rows, .n = n, .eps = eps, .center = true};
    return true;
}

/* ---- Forward ------------------------------------------------------------------------------ */

/* The op; o->eps has no default any more. */
static ng_tensor *group_norm(const char *function, ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                             const ng_group_norm_options *o)
{
    ng_tensor *const beta = o->beta, *inputs[] = {x, gamma, beta};
    group_norm_attributes saved;
    if (!ng_norm_accepts(function, tape, inputs) || !ng_norm_eps_ok(function, o->eps) ||
        !groups_of(function, x, o->groups, o->eps, &saved) ||
        !ng_affine_fits(function, gamma, beta, NG_SHAPE(x->shape.dim[1]), x))
        return NULL;

    ng_tensor *y = ng_result(tape, x->dtype, x->shape);
    if (!y || !ng_statistics_new(tape, x, saved.rows.rows, true, &saved.statistics)) return NULL;
    ng_kernels_for(x->dtype)->row_norm(&saved.rows, x->data, NULL, NULL, y->data, saved.statistics);
    if (gamma->data || beta->data) ng_channel_affine(y, gamma, beta, y->data);
    return ng_record_own(tape, &group_norm_op, y, inputs, 3, &saved, sizeof saved);
}

ng_tensor *ng_group_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma,
                              ng_group_norm_options options)
{
    options.eps = ng_option(options.eps, 1e-5);
    return group_norm("ng_group_norm", tape, x, gamma, &options);
}

ng_tensor *ng_instance_norm_with(ng_tape *tape, ng_tensor *x, ng_tensor *gamma, ng_norm_options o)
{
    const bool has_channels = x && !ng_is_none(x) && x->shape.rank >= 2;
    const ng_group_norm_options options = {.groups = has_channels ? x->shape.dim[1] : 1,
                                           .eps = ng_option(o.eps, 1e-5),
                                           .beta = o.last};
    return group_norm("ng_instance_norm", tape, x, gamma, &options);
}
