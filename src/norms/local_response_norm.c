/* LocalResponseNorm: y = x / (k + alpha / size sum x_j^2)^beta over neighbouring channels. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_local_response_norm_options options;
} local_response_norm;

static ng_tensor *local_response_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    return ng_local_response_norm_with(tape, x, ((const local_response_norm *)self)->options);
}

static void local_response_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_local_response_norm_options *o = &((const local_response_norm *)self)->options;
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
    const ng_local_response_norm_options of_op = {.alpha = ng_option(options.alpha, 1e-4),
                                                  .beta = ng_option(options.beta, 0.75),
                                                  .k = ng_option(options.k, 1),
                                                  .size = options.size};
    if (!ng_local_response_settings_ok("ng_local_response_norm_new", &of_op)) return NULL;
    local_response_norm *self = (local_response_norm *)ng_module_new(&local_response_norm_class);
    if (!self) return NULL;
    self->options = of_op;
    return ng_module_built(&self->base);
}
