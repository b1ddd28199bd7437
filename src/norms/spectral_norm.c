/* SpectralNorm: any module with a parameter "weight", which is divided by an estimate of its
 * largest singular value: w = W / sigma, sigma = u^T W v. Miyato et al. 2018. The module is a child
 * named inner. */
#include "norms/reparameterized.h"
#include "tape/tape.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_reparameterized r;
    ng_spectral_norm_new_options options;
    ng_tensor *u, *v; /* (out), (n): estimates of W's first singular vectors */
} spectral_norm;

/* ---- Power iteration ------------------------------------------------------------------------ */

/* W (out, n) times a power of 2, so that its largest element is about 1: lengths neither vanish nor
 * overflow because W is small or large. *usable is false for a W of zeros, and for one with an
 * element that is not finite. */
static ng_tensor *spectral_scaled(ng_tape *tape, ng_tensor *weight, ng_shape matrix, bool *usable)
{
    const ng_tensor *high = ng_max(tape, weight), *low = ng_min(tape, weight);
    if (!high || !low) return NULL;
    const double largest = fmax(ng_item(high), -ng_item(low));
    *usable = largest > 0 && isfinite(largest);
    const int exponent = *usable ? ilogb(largest) : 0,
              least = weight->dtype == NG_F32 ? -126 : -1022;
    const double scale = ldexp(1, exponent > least ? -exponent : -least);
    return ng_mul_scalar(tape, ng_reshape(tape, weight, matrix), scale);
}

/* x / ||x||; *usable becomes false where the length is not above eps. */
static ng_tensor *spectral_unit(ng_tape *tape, ng_tensor *x, double eps, bool *usable)
{
    const ng_tensor *squares = ng_sum(tape, ng_square(tape, x));
    if (!squares) return NULL;
    const double length = sqrt(ng_item(squares));
    if (!(length > eps)) *usable = false;
    return *usable ? ng_mul_scalar(tape, x, 1 / length) : x;
}

/* v = W^T u / ||W^T u||, then u = W v / ||W v||, `count` times, starting with *u. If a length is 0
 * or not finite, *u and *v do not change. */
static bool spectral_iterate(ng_tape *tape, ng_tensor *weight, double eps, int64_t count,
                             ng_tensor **u, ng_tensor **v)
{
    const int64_t out = (*u)->size, n = (*v)->size;
    const bool was = ng_tape_set_recording(tape, false);
    bool usable = false;
    ng_tensor *matrix = spectral_scaled(tape, weight, NG_SHAPE(out, n), &usable);
    ng_tensor *left = ng_reshape(tape, *u, NG_SHAPE(out, 1)), *right = NULL;
    for (int64_t i = 0; i < count && usable; i++) {
        right = ng_matmul(tape, matrix, left, .transpose_a = true);
        right = spectral_unit(tape, right, eps, &usable);
        left = spectral_unit(tape, ng_matmul(tape, matrix, right), eps, &usable);
    }
    ng_tape_set_recording(tape, was);
    if (!matrix || !left) return false;
    if (!usable) return true;
    *u = ng_reshape(tape, left, NG_SHAPE(out));
    *v = ng_reshape(tape, right, NG_SHAPE(n));
    return *u && *v;
}

/* ---- The layer ------------------------------------------------------------------------------ */

/* The layer's own u and v change only if the pass succeeds. */
static ng_tensor *spectral_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const spectral_norm *layer = (const spectral_norm *)self;
    const ng_spectral_norm_new_options *options = &layer->options;
    ng_tensor *weight = ng_parameter_value(tape, layer->r.weight), *u = layer->u, *v = layer->v;
    if (self->training && !self->frozen &&
        !spectral_iterate(tape, weight, options->eps, options->iterations, &u, &v))
        return NULL;
    const bool iterated = u != layer->u;
    if (iterated) {
        u = ng_detach(tape, u, .by_definition = true);
        v = ng_detach(tape, v, .by_definition = true);
    }
    ng_tensor *y =
        ng_forward_reparameterized(&layer->r, ng_spectral_norm(tape, weight, u, v), tape, in);
    if (y && iterated && ng_tape_is_live(tape)) {
        ng_copy_values(layer->u, u);
        ng_copy_values(layer->v, v);
    }
    return y;
}

/* A random direction. */
static void spectral_draw(ng_tensor *x, ng_rng *rng)
{
    double squares = 0;
    ng_fill_normal(x, 0, 1, rng);
    for (int64_t i = 0; i < x->size; i++) squares += ng_tensor_load(x, i) * ng_tensor_load(x, i);
    for (int64_t i = 0; i < x->size; i++) ng_set(x, i, ng_tensor_load(x, i) / sqrt(squares));
}

/* Draws random directions, and iterates until evaluation works without training. */
static void spectral_norm_init(ng_module *self, ng_rng *rng)
{
    enum { AT_FIRST = 50 };
    const spectral_norm *layer = (const spectral_norm *)self;
    spectral_draw(layer->u, rng);
    spectral_draw(layer->v, rng);
    ng_tape *tape = ng_tape_new();
    ng_tensor *u = layer->u, *v = layer->v;
    if (spectral_iterate(tape, ng_untied(layer->r.weight), layer->options.eps, AT_FIRST, &u, &v)) {
        ng_copy_values(layer->u, u);
        ng_copy_values(layer->v, v);
    }
    ng_tape_free(tape);
}

static const ng_module_class spectral_norm_class = {.name = "SpectralNorm",
                                                    .size = sizeof(spectral_norm),
                                                    .forward_with = spectral_norm_forward,
                                                    .init = spectral_norm_init};

static const ng_setting spectral_norm_settings[] = {
    {NG_OPTION(spectral_norm, iterations), NG_IS_COUNT, .standard = 1, .unit = "iterations"},
    {NG_OPTION(spectral_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-12},
    {0}};

ng_module *ng_spectral_norm_new_with(ng_spectral_norm_new_options options)
{
    static const char name[] = "ng_spectral_norm_new";
    spectral_norm layer = {.options = options};
    spectral_norm *self =
        ng_reparameterize(name, options.inner, &layer.r)
            ? ng_layer_new(name, &spectral_norm_class, spectral_norm_settings, &layer)
            : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    const ng_tensor *weight = layer.r.weight;
    const int64_t out = weight->shape.dim[0], n = weight->size / out;
    self->u = ng_module_add_buffer(&self->base, "u", NG_SHAPE(out), 0);
    self->v = ng_module_add_buffer(&self->base, "v", NG_SHAPE(n), 0);
    ng_module_add_child(&self->base, "inner", options.inner);
    return ng_module_built(&self->base);
}
