/* Gradients of a whole module: norm, clipping, zeroing. The norm of its parameters. */
#include "optim/optimizer.h"
#include <math.h>

/* The parameter's gradient; NULL if there is none or an optimizer has used it. */
static ng_tensor *fresh_gradient(const ng_named_tensor *parameter)
{
    const ng_tensor *weight = parameter->tensor;
    return ng_grad_is_new(weight->leaf) ? weight->leaf->grad : NULL;
}

/* sqrt(sum g^2) = most * root, so that no square leaves the range of double; most is the largest
 * |g|, or the first that is not finite. */
typedef struct {
    double most, root;
} norm;

static ng_tensor *clip_parameter(const ng_named_tensor *parameter) { return parameter->tensor; }

/* Of each parameter what is measured: its fresh gradient, or itself. */
typedef ng_tensor *measured(const ng_named_tensor *parameter);

static norm norm_without_overflow(ng_module *module, measured *measure)
{
    norm n = {0, 0};
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        const ng_tensor *g = measure(&parameter);
        for (int64_t j = 0; g && j < g->size && isfinite(n.most); j++) {
            const double size = fabs(ng_tensor_load(g, j));
            if (!(size <= n.most)) n.most = size;
        }
    }
    if (n.most == 0 || !isfinite(n.most)) return (norm){n.most, 1};
    double squares = 0;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        const ng_tensor *g = measure(&parameter);
        for (int64_t j = 0; g && j < g->size; j++) {
            const double scaled = ng_tensor_load(g, j) / n.most;
            squares += scaled * scaled;
        }
    }
    return (norm){n.most, sqrt(squares)};
}

static norm norm_of(ng_module *module, measured *measure)
{
    double squares = 0;
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        const ng_tensor *g = measure(&parameter);
        if (g) squares += ng_kernels_for(g->dtype)->dot(g->data, g->data, g->size);
    }
    const bool in_range = squares > 1e-280 && squares < HUGE_VAL;
    return in_range ? (norm){1, sqrt(squares)} : norm_without_overflow(module, measure);
}

double ng_grad_norm(ng_module *module)
{
    if (!ng_given("ng_grad_norm", "module", module)) return (double)NAN;
    const norm n = norm_of(module, fresh_gradient);
    return n.most * n.root;
}

double ng_parameter_norm(ng_module *module)
{
    if (!ng_given("ng_parameter_norm", "module", module)) return (double)NAN;
    const norm n = norm_of(module, clip_parameter);
    return n.most * n.root;
}

static void scale_f32(float *x, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)((double)x[i] * factor);
}

static void scale_f64(double *x, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

/* Names the first element that is not finite. */
static double clip_refuse(const char *function, ng_module *module)
{
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        const ng_tensor *g = fresh_gradient(&parameter);
        for (int64_t j = 0; g && j < g->size; j++) {
            const double value = ng_tensor_load(g, j);
            if (isfinite(value)) continue;
            ng_fail(NG_EVALUE, "%s: the gradient of \"%s\" is %g at [%lld]", function,
                    parameter.name, value, (long long)j);
            return (double)NAN;
        }
    }
    return (double)NAN;
}

double ng_clip_grad_norm(ng_module *module, double max_norm)
{
    static const char function[] = "ng_clip_grad_norm";
    if (!ng_given(function, "module", module)) return (double)NAN;
    if (!ng_option_range(function, "max_norm", max_norm, 0, HUGE_VAL)) return (double)NAN;
    const norm n = norm_of(module, fresh_gradient);
    if (!isfinite(n.most)) return clip_refuse(function, module);
    const double length = n.most * n.root;
    if (!(length > max_norm)) return length;
    const double factor =
        isfinite(length) ? max_norm / (length + 1e-6) : max_norm / n.most / n.root;
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        ng_tensor *g = fresh_gradient(&parameter);
        if (!g) continue;
        if (g->dtype == NG_F32)
            scale_f32(g->data, g->size, factor);
        else
            scale_f64(g->data, g->size, factor);
        ng_touch(g);
    }
    return length;
}

ng_status ng_clip_grad_value(ng_module *module, double limit)
{
    if (!ng_given("ng_clip_grad_value", "module", module)) return ng_newest_status();
    if (!ng_option_range("ng_clip_grad_value", "limit", limit, 0, HUGE_VAL))
        return ng_newest_status();
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        ng_tensor *g = fresh_gradient(&parameter);
        if (!g) continue;
        const ng_mapping clamp = {NG_MAP_CLAMP, -limit, limit};
        ng_kernels_for(g->dtype)->map(clamp, g->data, g->data, g->size);
        ng_touch(g);
    }
    return NG_OK;
}

void ng_zero_grads(ng_module *module)
{
    if (!ng_given("ng_zero_grads", "module", module)) return;
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) ng_zero_grad(parameter.tensor);
}
