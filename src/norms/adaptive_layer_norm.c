/* AdaptiveLayerNorm: LayerNorm without affine, scaled and shifted by functions of the data. */
#include "nn/module.h"
#include "ops/op.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_adaptive_layer_norm_new_options options;
    ng_module *gamma, *beta; /* projected: Linear(dim, dim) each */
    ng_module *modulation;   /* conditioned: Linear(condition, 2 dim or 3 dim) */
} adaptive;

static ng_tensor *adaptive_normalize(const adaptive *layer, ng_tape *tape, ng_tensor *x)
{
    if (!ng_features_fit(&layer->base, x, layer->options.dim)) return NULL;
    return ng_layer_norm(tape, x, NG_NONE, NG_NONE, layer->options.eps);
}

/* ---- Projected: y = (W_g x + b_g) * xhat + (W_b x + b_b) ---- */

static ng_tensor *projected_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const adaptive *layer = (const adaptive *)self;
    ng_tensor *xhat = adaptive_normalize(layer, tape, x);
    if (!xhat) return NULL;
    ng_tensor *gamma = ng_forward(layer->gamma, tape, x);
    ng_tensor *beta = ng_forward(layer->beta, tape, x);
    return ng_add(tape, ng_mul(tape, gamma, xhat), beta);
}

static void projected_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_adaptive_layer_norm_new_options *options = &((const adaptive *)self)->options;
    snprintf(text, bytes, "%lld, projected, eps=%s", (long long)options->dim,
             ng_number_print(options->eps).text);
}

static const ng_module_class projected_class = {.name = "AdaptiveLayerNorm",
                                                .size = sizeof(adaptive),
                                                .forward = projected_forward,
                                                .describe = projected_describe};

/* ---- Conditioned: y = ((1 + scale(c)) * xhat + shift(c)) [* gate(c)]. Peebles & Xie 2023 ---- */

/* The modulation (..., 2 dim or 3 dim): shift, scale, gate. */
static ng_tensor *conditioned_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const adaptive *layer = (const adaptive *)self;
    const int64_t dim = layer->options.dim;
    ng_tensor *xhat = adaptive_normalize(layer, tape, in->x);
    ng_tensor *modulation = xhat ? ng_forward(layer->modulation, tape, in->condition) : NULL;
    if (!modulation) return NULL;
    ng_tensor *shift = ng_features(tape, modulation, 0, dim);
    ng_tensor *scale = ng_add_scalar(tape, ng_features(tape, modulation, 1, dim), 1);
    ng_tensor *y = ng_add(tape, ng_mul(tape, scale, xhat), shift);
    return layer->options.gate ? ng_mul(tape, ng_features(tape, modulation, 2, dim), y) : y;
}

static void conditioned_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_adaptive_layer_norm_new_options *options = &((const adaptive *)self)->options;
    snprintf(text, bytes, "%lld, condition=%lld%s, eps=%s", (long long)options->dim,
             (long long)options->condition, options->gate ? ", gate" : "",
             ng_number_print(options->eps).text);
}

static const ng_module_class conditioned_class = {.name = "AdaptiveLayerNorm",
                                                  .size = sizeof(adaptive),
                                                  .forward_with = conditioned_forward,
                                                  .needs = NG_INPUT_CONDITION,
                                                  .describe = conditioned_describe};

/* ---- AdaNorm: y = C (1 - k xhat) * xhat, the factor held constant. Xu et al. 2019 ---- */

static ng_tensor *adanorm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const adaptive *layer = (const adaptive *)self;
    const ng_adaptive_layer_norm_new_options *options = &layer->options;
    ng_tensor *xhat = adaptive_normalize(layer, tape, x);
    if (!xhat) return NULL;
    ng_tensor *base = options->raw ? x : xhat;
    if (!options->differentiate) base = ng_detach(tape, base, .by_definition = true);
    ng_tensor *factor = ng_scalar_sub(tape, 1, ng_mul_scalar(tape, base, options->k));
    return ng_mul(tape, ng_mul_scalar(tape, factor, options->scale), xhat);
}

static void adanorm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_adaptive_layer_norm_new_options *options = &((const adaptive *)self)->options;
    snprintf(text, bytes, "%lld, AdaNorm, C=%s, k=%s%s%s, eps=%s", (long long)options->dim,
             ng_number_print(options->scale).text, ng_number_print(options->k).text,
             options->raw ? ", raw" : "", options->differentiate ? ", differentiated" : "",
             ng_number_print(options->eps).text);
}

static const ng_module_class adanorm_class = {.name = "AdaptiveLayerNorm",
                                              .size = sizeof(adaptive),
                                              .forward = adanorm_forward,
                                              .describe = adanorm_describe};

/* ---- Make ---- */

static const char adaptive_name[] = "ng_adaptive_layer_norm_new";

static bool adaptive_options_accepted(const ng_adaptive_layer_norm_new_options *options)
{
    const ng_adaptive_form form = options->form;
    const bool conditioned = form == NG_ADAPTIVE_CONDITIONED, adanorm = form == NG_ADAPTIVE_ADANORM;
    const char *in_conditioned = "with NG_ADAPTIVE_CONDITIONED",
               *in_adanorm = "with NG_ADAPTIVE_ADANORM";
    if ((unsigned)form > NG_ADAPTIVE_ADANORM) {
        ng_fail(NG_EVALUE, "%s: form is %d, expected an ng_adaptive_form", adaptive_name,
                (int)form);
        return false;
    }
    if (conditioned &&
        !ng_option_positive(adaptive_name, "condition", options->condition, "features"))
        return false;
    return ng_option_positive(adaptive_name, "dim", options->dim, "features") &&
           ng_norm_eps_ok(adaptive_name, options->eps) &&
           ng_option_range(adaptive_name, "scale", options->scale, -HUGE_VAL, HUGE_VAL) &&
           ng_option_range(adaptive_name, "k", options->k, -HUGE_VAL, HUGE_VAL) &&
           ng_option_idle(adaptive_name, "condition", !conditioned && options->condition,
                          in_conditioned) &&
           ng_option_idle(adaptive_name, "gate", !conditioned && options->gate, in_conditioned) &&
           ng_option_idle(adaptive_name, "scale", !adanorm && ng_option_given(options->scale),
                          in_adanorm) &&
           ng_option_idle(adaptive_name, "k", !adanorm && ng_option_given(options->k),
                          in_adanorm) &&
           ng_option_idle(adaptive_name, "differentiate", !adanorm && options->differentiate,
                          in_adanorm) &&
           ng_option_idle(adaptive_name, "raw", !adanorm && options->raw, in_adanorm);
}

ng_module *ng_adaptive_layer_norm_new_with(ng_adaptive_layer_norm_new_options options)
{
    static const ng_module_class *const classes[] = {&projected_class, &conditioned_class,
                                                     &adanorm_class};
    if (!adaptive_options_accepted(&options)) return NULL;
    const bool conditioned = options.form == NG_ADAPTIVE_CONDITIONED;
    options.eps = ng_option(options.eps, conditioned ? 1e-6 : 1e-5);
    options.scale = ng_option(options.scale, 1);
    options.k = ng_option(options.k, 0.1);

    adaptive *self = (adaptive *)ng_module_new(classes[options.form]);
    if (!self) return NULL;
    self->options = options;
    const int64_t dim = options.dim;
    if (options.form == NG_ADAPTIVE_PROJECTED) {
        self->gamma = ng_module_add_child(&self->base, "gamma", ng_linear_new(dim, dim));
        self->beta = ng_module_add_child(&self->base, "beta", ng_linear_new(dim, dim));
    } else if (conditioned) {
        self->modulation =
            ng_module_add_child(&self->base, "modulation",
                                ng_linear_new(options.condition, (options.gate ? 3 : 2) * dim,
                                              .init = NG_INIT_CONSTANT));
    }
    return ng_module_built(&self->base);
}
