/* RMSNorm: y = x / sqrt(mean(x^2) + eps) * gamma over the last dimension. With a unit offset
 * 1 + gamma is in the place of gamma, with a condition 1 + scale(c). */
#include "norms/film.h"

typedef struct {
    ng_module base;
    ng_rms_norm_new_options options;
    ng_tensor *gamma;      /* (dim), or NG_NONE */
    ng_module *modulation; /* with a condition: FiLM */
} rms_norm;

static ng_tensor *rms_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const rms_norm *layer = (const rms_norm *)self;
    const ng_rms_norm_new_options *options = &layer->options;
    if (!ng_features_fit(self, in->x, options->dim)) return NULL;
    ng_tensor *y =
        ng_row_norm(tape, in->x, ng_scale_value(tape, layer->gamma, options->unit_offset), NG_NONE,
                    .eps = options->eps, .dims = 1, .rms = true, .partial = options->partial);
    return ng_modulate(layer->modulation, tape, y, in);
}

static void rms_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_rms_norm_new_options *options = &((const rms_norm *)self)->options;
    char partial[48] = "";
    if (options->partial < 1)
        snprintf(partial, sizeof partial, ", partial=%s", ng_number_print(options->partial).text);
    snprintf(text, bytes, "%lld, eps=%s%s%s%s", (long long)options->dim,
             ng_number_print(options->eps).text, partial,
             options->unit_offset ? ", unit offset" : "", options->no_affine ? ", no affine" : "");
}

static const ng_module_class rms_norm_class = {.name = "RMSNorm",
                                               .size = sizeof(rms_norm),
                                               .forward_with = rms_norm_forward,
                                               .describe = rms_norm_describe};

static bool rms_norm_options_accepted(const ng_rms_norm_new_options *options)
{
    static const char name[] = "ng_rms_norm_new";
    const ng_row_norm_options of_op = {
        .eps = options->eps, .rms = true, .partial = options->partial};
    return ng_option_positive(name, "dim", options->dim, "features") &&
           ng_option_apart(name, "no_affine", options->no_affine, "unit_offset",
                           options->unit_offset) &&
           ng_option_apart(name, "condition", options->condition, "no_affine",
                           options->no_affine) &&
           ng_option_apart(name, "condition", options->condition, "unit_offset",
                           options->unit_offset) &&
           ng_row_norm_settings_ok(name, &of_op);
}

ng_module *ng_rms_norm_new_with(ng_rms_norm_new_options options)
{
    options.eps = ng_option(options.eps, 1e-6);
    options.partial = ng_option(options.partial, 1);
    if (!rms_norm_options_accepted(&options)) return NULL;

    rms_norm *self = (rms_norm *)ng_module_new(&rms_norm_class);
    if (!self) return NULL;
    self->options = options;
    self->gamma = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(options.dim),
                                          .value = options.unit_offset ? 0 : 1,
                                          .left_out = options.no_affine || options.condition);
    self->modulation =
        ng_add_modulation(&self->base, (ng_film_new_options){.channels = options.dim,
                                                             .condition = options.condition,
                                                             .features_last = true,
                                                             .no_shift = true});
    return ng_module_built(&self->base);
}
