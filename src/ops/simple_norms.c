/* ScaleNorm, DetachNorm, LocalResponseNorm, DynamicTanh and Sinkhorn, composed of other ops. */
#include "ops/norm.h"
#include <math.h>

/* Whether c is the one number that `name` has to be. */
static bool one_number(const char *function, const char *name, const ng_tensor *c)
{
    return ng_expect_shape(c->size == 1 && c->shape.rank <= 1, function, name, c, "(1,)");
}

/* ---- ScaleNorm: y = g x / sqrt(sum x^2 + eps). Nguyen & Salazar 2019 ------------------------ */

/* sum x^2 = n mean(x^2): RMSNorm with eps / n, times g / sqrt(n). */
ng_tensor *ng_scale_norm_with(ng_tape *tape, ng_tensor *x, ng_norm_options options)
{
    static const char name[] = "ng_scale_norm";
    ng_tensor *g = options.last;
    const double eps = ng_option(options.eps, 1e-10);
    if (!ng_accepts(name, tape, 2, (ng_tensor *[]){x, g}) || !ng_has_rows(name, x) ||
        !one_number(name, "g", g) || !ng_norm_eps_ok(name, eps))
        return NULL;
    const double n = (double)x->shape.dim[x->shape.rank - 1];
    ng_tensor *unit = ng_rms_norm(tape, x, NG_NONE, .eps = ng_exactly(eps / n));
    return ng_mul(tape, unit, ng_mul_scalar(tape, g, 1 / sqrt(n)));
}

/* ---- DetachNorm: y = (x - mean) rstd, both constants in the gradient. Xu et al. 2019 --------- */

ng_tensor *ng_detach_norm_with(ng_tape *tape, ng_detach_norm_options options)
{
    static const char name[] = "ng_detach_norm";
    ng_tensor *x = options.x;
    const double eps = ng_option(options.eps, 1e-5);
    if (!ng_accepts(name, tape, 1, &x) || !ng_has_rows(name, x) || !ng_norm_eps_ok(name, eps))
        return NULL;
    if (options.mean_flows && options.deviation_flows)
        return ng_row_norm(tape, x, NG_NONE, NG_NONE, .eps = options.eps);
    ng_tensor *z = ng_near_zero(tape, x, NG_AXES(-1));
    ng_tensor *mean = ng_mean(tape, z, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *var = ng_variance(tape, z, .axes = NG_AXES(-1), .keepdim = true);
    ng_tensor *rstd = ng_rsqrt(tape, ng_add_scalar(tape, var, eps));
    if (!options.mean_flows) mean = ng_detach(tape, mean, .by_definition = true);
    if (!options.deviation_flows) rstd = ng_detach(tape, rstd, .by_definition = true);
    return ng_mul(tape, ng_sub(tape, z, mean), rstd);
}

/* ---- LocalResponseNorm: y = x / (k + alpha mean x^2)^beta. Krizhevsky, Sutskever & Hinton 2012 */

/* The mean of x (N, C, ...) over the `size` channels around each channel c; the first is
 * c - size / 2. Channels that do not exist count as 0. */
static ng_tensor *mean_of_neighbours(ng_tape *tape, ng_tensor *x, int64_t size)
{
    if (!x) return NULL;
    const ng_shape s = x->shape;
    const ng_shape image = NG_SHAPE(s.dim[0], 1, s.dim[1], ng_shape_span(s, 2, s.rank));
    x = ng_pad(tape, ng_reshape(tape, x, image), 2, size / 2, (size - 1) / 2);
    return ng_reshape(tape, ng_avg_pool2d(tape, x, size, .kernel_w = 1, .stride = 1), s);
}

static bool local_response_settings_ok(const char *function,
                                       const ng_local_response_norm_options *o)
{
    if (!ng_option_positive(function, "size", o->size, "channels")) return false;
    if (o->size > INT32_MAX) {
        ng_fail(NG_EVALUE, "%s: size is %lld, expected at most %d channels", function,
                (long long)o->size, INT32_MAX);
        return false;
    }
    return ng_option_range(function, "alpha", o->alpha, 0, HUGE_VAL) &&
           ng_option_range(function, "beta", o->beta, 0, HUGE_VAL) &&
           ng_option_range(function, "k", o->k, 0, HUGE_VAL);
}

ng_tensor *ng_local_response_norm_with(ng_tape *tape, ng_tensor *x,
                                       ng_local_response_norm_options options)
{
    static const char name[] = "ng_local_response_norm";
    options.alpha = ng_option(options.alpha, 1e-4);
    options.beta = ng_option(options.beta, 0.75);
    options.k = ng_option(options.k, 1);
    if (!ng_accepts(name, tape, 1, &x) ||
        !ng_expect_shape(x->shape.rank >= 2, name, "x", x, "(N, C, ...)") ||
        !local_response_settings_ok(name, &options))
        return NULL;
    if (x->size == 0) return ng_mul_scalar(tape, x, 1);
    ng_tensor *near = mean_of_neighbours(tape, ng_square(tape, x), options.size);
    ng_tensor *base = ng_add_scalar(tape, ng_mul_scalar(tape, near, options.alpha), options.k);
    return ng_mul(tape, x, ng_pow_scalar(tape, base, -options.beta));
}

/* ---- DynamicTanh: y = gamma tanh(alpha x) + beta. Zhu et al. 2025 --------------------------- */

ng_tensor *ng_dynamic_tanh(ng_tape *tape, ng_tensor *x, ng_tensor *alpha, ng_tensor *gamma,
                           ng_tensor *beta)
{
    static const char name[] = "ng_dynamic_tanh";
    static const char *const names[] = {"x", "alpha", "gamma", "beta"};
    ng_tensor *const inputs[] = {x, alpha, gamma, beta};
    if (!ng_accepts_optional(name, tape, 2, 4, inputs, names) || !ng_has_rows(name, x) ||
        !one_number(name, "alpha", alpha) ||
        !ng_affine_fits(name, gamma, beta, NG_SHAPE(ng_dim(x, -1)), x))
        return NULL;
    ng_tensor *y = ng_tanh(tape, ng_mul(tape, x, ng_reshape(tape, alpha, NG_SCALAR)));
    if (gamma != NG_NONE) y = ng_mul(tape, y, gamma);
    return beta != NG_NONE ? ng_add(tape, y, beta) : y;
}

/* ---- Sinkhorn: e^x with columns, then rows, divided by their sums. Sinkhorn & Knopp 1967 ---- */

/* ln y changes in place of y, so that no e^x is out of range. */
ng_tensor *ng_sinkhorn_with(ng_tape *tape, ng_sinkhorn_options options)
{
    static const char name[] = "ng_sinkhorn";
    ng_tensor *y = options.x;
    const int64_t steps = options.steps ? options.steps : 20;
    if (!ng_accepts(name, tape, 1, &y) || !ng_option_positive(name, "steps", steps, "steps") ||
        !ng_expect_shape(y->shape.rank >= 2 && ng_dim(y, -1) == ng_dim(y, -2) && ng_dim(y, -1) > 0,
                         name, "x", y, "(..., n, n)"))
        return NULL;
    for (int64_t i = 0; i < 2 * steps; i++) {
        const ng_axes axes = i % 2 == 0 ? NG_AXES(-2) : NG_AXES(-1);
        y = ng_sub(tape, y, ng_logsumexp(tape, y, .axes = axes, .keepdim = true));
    }
    return ng_exp(tape, y);
}
