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
    return ng_detach_norm(tape, x, .eps = options->eps, .mean_flows = options->mean_flows,
                          .deviation_flows = options->deviation_flows);
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
