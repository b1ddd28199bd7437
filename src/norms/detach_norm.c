/* DetachNorm: y = (x - mean) / sqrt(var + eps), the statistics constants in the gradient. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_detach_norm_new_options options;
} detach_norm;

static ng_tensor *detach_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const ng_detach_norm_new_options *options = &((const detach_norm *)self)->options;
    if (!ng_features_fit(self, x, options->dim)) return NULL;
    return ng_detach_norm(tape, x, .eps = options->eps, .detach_mean = !options->mean_flows,
                          .detach_deviation = !options->deviation_flows);
}

static void detach_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_detach_norm_new_options *options = &((const detach_norm *)self)->options;
    snprintf(text, bytes, "%lld, eps=%s%s%s", (long long)options->dim,
             ng_number_print(options->eps).text, options->mean_flows ? ", mean flows" : "",
             options->deviation_flows ? ", deviation flows" : "");
}

static const ng_module_class detach_norm_class = {.name = "DetachNorm",
                                                  .size = sizeof(detach_norm),
                                                  .forward = detach_norm_forward,
                                                  .describe = detach_norm_describe};

ng_module *ng_detach_norm_new_with(ng_detach_norm_new_options options)
{
    options.eps = ng_option(options.eps, 1e-5);
    if (!ng_option_positive("ng_detach_norm_new", "dim", options.dim, "features")) return NULL;
    if (!ng_norm_eps_ok("ng_detach_norm_new", options.eps)) return NULL;

    detach_norm *self = (detach_norm *)ng_module_new(&detach_norm_class);
    if (!self) return NULL;
    self->options = options;
    return ng_module_built(&self->base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_MODULE(case_detach_norm, ng_detach_norm_new(5))
NG_CASE_MODULE(case_detach_norm_mean_flows, ng_detach_norm_new(5, .mean_flows = true))
NG_CASE_MODULE(case_detach_norm_deviation_flows, ng_detach_norm_new(5, .deviation_flows = true))

const ng_case ng_layer_cases_detach_norm[] = {
    NG_CASE_LAYER("DetachNorm", case_detach_norm, NG_CASE_ANY("x", 3, 5)),
    NG_CASE_LAYER("DetachNorm (mean flows)", case_detach_norm_mean_flows, NG_CASE_ANY("x", 3, 5)),
    NG_CASE_LAYER("DetachNorm (deviation flows)", case_detach_norm_deviation_flows,
                  NG_CASE_ANY("x", 3, 5)),
};
const int ng_layer_cases_detach_norm_count = NG_CASE_COUNT(ng_layer_cases_detach_norm);
