/* LocalResponseNorm: y = x / (k + alpha / size sum x_j^2)^beta over neighbouring channels. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_local_response_norm_new_options options;
} local_response_norm;

static ng_tensor *local_response_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const ng_local_response_norm_new_options *o = &((const local_response_norm *)self)->options;
    return ng_local_response_norm(tape, x, o->size, .alpha = o->alpha, .beta = o->beta, .k = o->k);
}

static void local_response_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_local_response_norm_new_options *o = &((const local_response_norm *)self)->options;
    snprintf(text, bytes, "%lld, alpha=%s, beta=%s, k=%s", (long long)o->size,
             ng_number_print(o->alpha).text, ng_number_print(o->beta).text,
             ng_number_print(o->k).text);
}

static const ng_module_class local_response_norm_class = {.name = "LocalResponseNorm",
                                                          .size = sizeof(local_response_norm),
                                                          .forward = local_response_norm_forward,
                                                          .describe = local_response_norm_describe};

ng_module *ng_local_response_norm_new_with(ng_local_response_norm_new_options options)
{
    static const char name[] = "ng_local_response_norm_new";
    options.alpha = ng_option(options.alpha, 1e-4);
    options.beta = ng_option(options.beta, 0.75);
    options.k = ng_option(options.k, 1);
    if (!ng_option_positive(name, "size", options.size, "channels")) return NULL;
    if (!ng_option_range(name, "alpha", options.alpha, 0, HUGE_VAL)) return NULL;
    if (!ng_option_range(name, "beta", options.beta, 0, HUGE_VAL)) return NULL;
    if (!ng_option_range(name, "k", options.k, 0, HUGE_VAL)) return NULL;
    local_response_norm *self = (local_response_norm *)ng_module_new(&local_response_norm_class);
    if (!self) return NULL;
    self->options = options;
    return ng_module_built(&self->base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_MODULE(case_local_response_norm,
               ng_local_response_norm_new(3, .alpha = 0.7, .beta = 0.6, .k = 0.8))

const ng_case ng_layer_cases_local_response_norm[] = {
    NG_CASE_LAYER("LocalResponseNorm", case_local_response_norm, NG_CASE_ANY("x", 2, 5, 2, 2)),
};
const int ng_layer_cases_local_response_norm_count =
    NG_CASE_COUNT(ng_layer_cases_local_response_norm);
