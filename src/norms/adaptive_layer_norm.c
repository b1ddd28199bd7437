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
    bool silu;               /* conditioned: the Linear gets silu(c) */
} adaptive;

static ng_tensor *adaptive_normalize(const adaptive *layer, ng_tape *tape, ng_tensor *x)
{
    if (!ng_features_fit(&layer->base, x, layer->options.dim)) return NULL;
    return ng_layer_norm(tape, x, NG_NONE, NG_NONE, .eps = layer->options.eps);
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

static const ng_module_class projected_class = {
    .name = "AdaptiveLayerNorm", .size = sizeof(adaptive), .forward = projected_forward};

/* ---- Conditioned: y = ((1 + scale(c)) * xhat + shift(c)) [* gate(c)]. Peebles & Xie 2023 ---- */

/* (1 + scale) xhat + shift. A Linear makes shift, scale and, unless it is NULL, *gate of c. */
static ng_tensor *adapted(const adaptive *layer, ng_tape *tape, ng_tensor *x, ng_tensor *c,
                          ng_tensor **gate)
{
    const int64_t dim = layer->options.dim;
    ng_tensor *xhat = adaptive_normalize(layer, tape, x);
    if (!xhat || !ng_condition_fits(&layer->base, c, layer->options.condition, x, -1)) return NULL;
    if (layer->silu) c = ng_silu(tape, c);
    ng_tensor *modulation = c ? ng_forward(layer->modulation, tape, c) : NULL;
    modulation = ng_condition_expand(tape, modulation, x, -1);
    if (gate) *gate = ng_features(tape, modulation, 2, dim);
    return ng_scale_and_shift(tape, xhat, modulation, dim, -1, false);
}

static ng_tensor *conditioned_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const adaptive *layer = (const adaptive *)self;
    ng_tensor *gate = NULL;
    const bool gated = layer->options.gate;
    ng_tensor *y = adapted(layer, tape, in->x, in->condition, gated ? &gate : NULL);
    return gated ? ng_mul(tape, gate, y) : y;
}

static const ng_module_class conditioned_class = {.name = "AdaptiveLayerNorm",
                                                  .size = sizeof(adaptive),
                                                  .forward_with = conditioned_forward,
                                                  .needs = NG_INPUT_CONDITION};

/* ---- Make ---- */

/* Registers the Linear that makes so many parts of dim features of a condition, all 0 at first. */
static ng_module *add_linear(adaptive *self, int64_t parts)
{
    const ng_adaptive_layer_norm_new_options *o = &self->options;
    return ng_module_add_child(
        &self->base, "modulation",
        ng_linear_new(o->condition, parts * o->dim, .init = NG_INIT_CONSTANT));
}

static const ng_setting adaptive_settings[] = {
    {NG_OPTION(adaptive, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(adaptive, condition), NG_IS_COUNT_OR_0, .unit = "features"},
    {NG_OPTION(adaptive, gate), NG_IS_FLAG, .needs = "condition"},
    {NG_OPTION(adaptive, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {0}};

ng_module *ng_adaptive_layer_norm_new_with(ng_adaptive_layer_norm_new_options options)
{
    const bool conditioned = options.condition != 0;
    if (conditioned) options.eps = ng_option(options.eps, 1e-6);
    adaptive *self = ng_layer_new("ng_adaptive_layer_norm_new",
                                  conditioned ? &conditioned_class : &projected_class,
                                  adaptive_settings, &(adaptive){.options = options});
    if (!self) return NULL;
    const int64_t dim = options.dim;
    if (conditioned) {
        self->modulation = add_linear(self, options.gate ? 3 : 2);
    } else {
        self->gamma = ng_module_add_child(&self->base, "gamma", ng_linear_new(dim, dim));
        self->beta = ng_module_add_child(&self->base, "beta", ng_linear_new(dim, dim));
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
                                                        .needs = NG_INPUT_CONDITION};

static const ng_setting adaptive_residual_settings[] = {
    {NG_OPTION(adaptive, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(adaptive, condition), NG_IS_COUNT, .unit = "features"},
    {NG_OPTION(adaptive, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-6},
    {0}};

ng_module *ng_adaptive_residual_new_with(ng_adaptive_residual_new_options options)
{
    static const char name[] = "ng_adaptive_residual_new";
    adaptive_residual layer = {.adapted.silu = true};
    layer.adapted.options = (ng_adaptive_layer_norm_new_options){
        .eps = options.eps, .condition = options.condition, .dim = options.dim};
    adaptive_residual *self =
        ng_given(name, "inner", options.inner)
            ? ng_layer_new(name, &adaptive_residual_class, adaptive_residual_settings, &layer)
            : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    ng_module *base = &self->adapted.base;
    self->inner = ng_module_add_child(base, "inner", options.inner);
    self->adapted.modulation = add_linear(&self->adapted, 3);
    return ng_module_built(base);
}
