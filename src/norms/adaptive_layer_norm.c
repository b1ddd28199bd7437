/* AdaptiveLayerNorm: LayerNorm without affine, scaled and shifted by functions of the data. And
 * AdaptiveResidual, the block of DiT that begins with it. */
#include "norms/film.h"
#include "ops/op.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_adaptive_layer_norm_new_options options;
    ng_module *gamma, *beta; /* projected: Linear(dim, dim) each */
    ng_module *modulation;   /* conditioned: Linear(condition, 2 dim or 3 dim), from zero */
    bool silu;               /* conditioned: what makes them is of silu(c) */
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

/* (1 + scale) xhat + shift, of what the Linear makes of c: shift, scale and, unless it is NULL,
 * *gate. */
static ng_tensor *adapted(const adaptive *layer, ng_tape *tape, ng_tensor *x, ng_tensor *c,
                          ng_tensor **gate)
{
    const int64_t dim = layer->options.dim;
    ng_tensor *xhat = adaptive_normalize(layer, tape, x);
    if (!xhat || !ng_condition_fits(&layer->base, c, layer->options.condition, x, -1)) return NULL;
    if (layer->silu) c = ng_silu(tape, c);
    ng_tensor *made = c ? ng_forward(layer->modulation, tape, c) : NULL;
    made = ng_condition_spread(tape, made, x, -1);
    if (gate) *gate = ng_features(tape, made, 2, dim);
    return ng_scale_and_shift(tape, xhat, made, dim, -1, false);
}

static ng_tensor *conditioned_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const adaptive *layer = (const adaptive *)self;
    ng_tensor *gate = NULL;
    const bool gated = layer->options.gate;
    ng_tensor *y = adapted(layer, tape, in->x, in->condition, gated ? &gate : NULL);
    return gated ? ng_mul(tape, gate, y) : y;
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

/* Registers the Linear that makes `parts` of a condition, all 0 at first. */
static ng_module *add_linear(adaptive *self, int64_t parts)
{
    const ng_adaptive_layer_norm_new_options *o = &self->options;
    return ng_module_add_child(
        &self->base, "modulation",
        ng_linear_new(o->condition, parts * o->dim, .init = NG_INIT_CONSTANT));
}

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
        self->modulation = add_linear(self, options.gate ? 3 : 2);
    }
    return ng_module_built(&self->base);
}

/* ---- AdaptiveResidual: y = x + gate(c) * inner((1 + scale(c)) * xhat + shift(c)) ---- */

typedef struct {
    adaptive adapted; /* of silu(c), with a gate */
    ng_module *inner;
} adaptive_residual;

static ng_tensor *adaptive_residual_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const adaptive_residual *layer = (const adaptive_residual *)self;
    ng_tensor *gate = NULL, *h = adapted(&layer->adapted, tape, in->x, in->condition, &gate);
    ng_tensor *branch = h ? ng_forward_child(layer->inner, tape, h, in) : NULL;
    if (branch && !ng_shape_equal(branch->shape, h->shape)) {
        ng_fail(NG_ESHAPE, "AdaptiveResidual: inner turned %s into %s, expected the same shape",
                ng_shape_print(h->shape).text, ng_shape_print(branch->shape).text);
        return NULL;
    }
    return branch ? ng_add(tape, in->x, ng_mul(tape, gate, branch)) : NULL;
}

static const ng_module_class adaptive_residual_class = {.name = "AdaptiveResidual",
                                                        .size = sizeof(adaptive_residual),
                                                        .forward_with = adaptive_residual_forward,
                                                        .needs = NG_INPUT_CONDITION,
                                                        .describe = conditioned_describe};

ng_module *ng_adaptive_residual_new_with(ng_adaptive_residual_new_options options)
{
    static const char name[] = "ng_adaptive_residual_new";
    options.eps = ng_option(options.eps, 1e-6);
    const bool accepted = ng_given(name, "inner", options.inner) &&
                          ng_option_positive(name, "dim", options.dim, "features") &&
                          ng_option_positive(name, "condition", options.condition, "features") &&
                          ng_norm_eps_ok(name, options.eps);
    adaptive_residual *self =
        accepted ? (adaptive_residual *)ng_module_new(&adaptive_residual_class) : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    adaptive *layer = &self->adapted;
    layer->options = (ng_adaptive_layer_norm_new_options){
        .eps = options.eps, .condition = options.condition, .dim = options.dim};
    layer->silu = true;
    self->inner = ng_module_add_child(&layer->base, "inner", options.inner);
    layer->modulation = add_linear(layer, 3);
    return ng_module_built(&layer->base);
}
