/* Gradients of a whole module: norm, clipping, zeroing. */
#include "optim/optimizer.h"
#include <math.h>

/* The index-th parameter's gradient, or NULL where it is spent or was never made. */
static ng_tensor *fresh_gradient(const ng_named_tensor *parameter)
{
    const ng_tensor *weight = parameter->tensor;
    return weight->grad_spent ? NULL : weight->grad;
}

double ng_grad_norm(ng_module *module)
{
    if (!ng_given("ng_grad_norm", "module", module)) return (double)NAN;
    double squares = 0;
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        const ng_tensor *g = fresh_gradient(&parameter);
        if (g) squares += ng_kernels_for(g->dtype)->dot(g->data, g->data, g->size);
    }
    return sqrt(squares);
}

static void scale_f32(float *x, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++) x[i] = (float)((double)x[i] * factor);
}

static void scale_f64(double *x, int64_t n, double factor)
{
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
}

double ng_clip_grad_norm(ng_module *module, double max_norm)
{
    if (!ng_given("ng_clip_grad_norm", "module", module)) return (double)NAN;
    if (!ng_option_range("ng_clip_grad_norm", "max_norm", max_norm, 0, HUGE_VAL))
        return (double)NAN;
    const double norm = ng_grad_norm(module);
    if (!(norm > max_norm)) return norm;
    const double factor = max_norm / (norm + 1e-6);
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        ng_tensor *g = fresh_gradient(&parameter);
        if (!g) continue;
        if (g->dtype == NG_F32)
            scale_f32(g->data, g->size, factor);
        else
            scale_f64(g->data, g->size, factor);
    }
    return norm;
}

ng_status ng_clip_grad_value(ng_module *module, double limit)
{
    if (!ng_given("ng_clip_grad_value", "module", module)) return ng_newest_status();
    if (!ng_option_range("ng_clip_grad_value", "limit", limit, 0, HUGE_VAL))
        return ng_newest_status();
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) {
        ng_tensor *g = fresh_gradient(&parameter);
        if (g) ng_kernels_for(g->dtype)->clamp_in_place(g->data, g->size, -limit, limit);
    }
    return NG_OK;
}

void ng_zero_grads(ng_module *module)
{
    if (!ng_given("ng_zero_grads", "module", module)) return;
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++) ng_zero_grad(parameter.tensor);
}
