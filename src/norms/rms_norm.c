/* RMSNorm: y = x / sqrt(mean(x^2) + eps) * gamma over the last dimension. */
#include "nn/module.h"

typedef struct {
    ng_module base;
    ng_rms_norm_new_options options;
    ng_tensor *gamma; /* (dim), or NG_NONE */
} rms_norm;

static ng_tensor *rms_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const rms_norm *layer = (const rms_norm *)self;
    const ng_rms_norm_new_options *options = &layer->options;
    if (!ng_features_fit(self, x, options->dim)) return NULL;
    return ng_row_norm(tape, x, ng_parameter_value(tape, layer->gamma), NG_NONE,
                       .eps = options->eps, .dims = 1, .rms = true, .partial = options->partial);
}

static void rms_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_rms_norm_new_options *options = &((const rms_norm *)self)->options;
    char partial[48] = "";
    if (options->partial < 1)
        snprintf(partial, sizeof partial, ", partial=%s", ng_number_print(options->partial).text);
    snprintf(text, bytes, "%lld, eps=%s%s%s", (long long)options->dim,
             ng_number_print(options->eps).text, partial, options->no_affine ? ", no affine" : "");
}

static const ng_module_class rms_norm_class = {.name = "RMSNorm",
                                               .size = sizeof(rms_norm),
                                               .forward = rms_norm_forward,
                                               .describe = rms_norm_describe};

ng_module *ng_rms_norm_new_with(ng_rms_norm_new_options options)
{
    options.eps = ng_option(options.eps, 1e-6);
    options.partial = ng_option(options.partial, 1);
    const ng_row_norm_options of_op = {.eps = options.eps, .rms = true, .partial = options.partial};
    if (!ng_option_positive("ng_rms_norm_new", "dim", options.dim, "features") ||
        !ng_row_norm_settings_ok("ng_rms_norm_new", &of_op))
        return NULL;

    rms_norm *self = (rms_norm *)ng_module_new(&rms_norm_class);
    if (!self) return NULL;
    self->options = options;
    self->gamma = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.dim), .value = 1,
                                          .left_out = options.no_affine);
    return ng_module_built(&self->base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_MODULE(layer_case_rms_norm, ng_rms_norm_new(5))
NG_CASE_MODULE(case_rms_norm_no_affine, ng_rms_norm_new(5, .no_affine = true))
NG_CASE_MODULE(layer_case_rms_norm_partial, ng_rms_norm_new(5, .partial = 0.6))

const ng_case ng_layer_cases_rms_norm[] = {
    NG_CASE_LAYER("RMSNorm", layer_case_rms_norm, NG_CASE_ANY("x", 3, 5)),
    NG_CASE_LAYER("RMSNorm (no affine)", case_rms_norm_no_affine, NG_CASE_ANY("x", 3, 5)),
    NG_CASE_LAYER("RMSNorm (partial)", layer_case_rms_norm_partial, NG_CASE_ANY("x", 3, 5)),
};
const int ng_layer_cases_rms_norm_count = NG_CASE_COUNT(ng_layer_cases_rms_norm);
