/* AdaptiveResidual, DiT's adaLN-Zero block:
 *
 *     y = x + gate(c) * inner((1 + scale(c)) * xhat + shift(c))
 */
#include "nn/module.h"
#include "ops/op.h"

typedef struct {
    ng_module base;
    ng_adaptive_residual_new_options options;
    ng_module *inner, *modulation; /* modulation: Linear(condition, 3 dim), from zero */
} adaptive_residual;

/* The modulation (..., 3 dim): shift, scale, gate. */
static ng_tensor *adaptive_residual_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const adaptive_residual *layer = (const adaptive_residual *)self;
    const int64_t dim = layer->options.dim;
    ng_tensor *x = in->x;
    if (!ng_features_fit(self, x, dim)) return NULL;
    ng_tensor *c = ng_silu(tape, in->condition);
    ng_tensor *modulation = c ? ng_forward(layer->modulation, tape, c) : NULL;
    ng_tensor *xhat = ng_layer_norm(tape, x, NG_NONE, NG_NONE, layer->options.eps);
    ng_tensor *scale = ng_add_scalar(tape, ng_features(tape, modulation, 1, dim), 1);
    ng_tensor *h = ng_add(tape, ng_mul(tape, scale, xhat), ng_features(tape, modulation, 0, dim));
    ng_tensor *branch = h ? ng_forward_child(layer->inner, tape, h, in) : NULL;
    if (branch && !ng_shape_equal(branch->shape, h->shape)) {
        ng_fail(NG_ESHAPE, "AdaptiveResidual: inner turned %s into %s, expected the same shape",
                ng_shape_print(h->shape).text, ng_shape_print(branch->shape).text);
        return NULL;
    }
    return ng_add(tape, x, ng_mul(tape, ng_features(tape, modulation, 2, dim), branch));
}

static void adaptive_residual_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_adaptive_residual_new_options *options = &((const adaptive_residual *)self)->options;
    snprintf(text, bytes, "%lld, condition=%lld, eps=%s", (long long)options->dim,
             (long long)options->condition, ng_number_print(options->eps).text);
}

static const ng_module_class adaptive_residual_class = {.name = "AdaptiveResidual",
                                                        .size = sizeof(adaptive_residual),
                                                        .forward_with = adaptive_residual_forward,
                                                        .needs = NG_INPUT_CONDITION,
                                                        .describe = adaptive_residual_describe};

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
    self->inner = ng_module_add_child(&self->base, "inner", options.inner);
    self->modulation = ng_module_add_child(
        &self->base, "modulation",
        ng_linear_new(options.condition, 3 * options.dim, .init = NG_INIT_CONSTANT));
    options.inner = NULL;
    self->options = options;
    return ng_module_built(&self->base);
}
