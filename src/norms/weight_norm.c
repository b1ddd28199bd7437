/* WeightNorm and SpectralNorm: any module with a parameter "weight", run with a function of it in
 * its place. The module stays whole, as a child named inner. */
#include "nn/module.h"
#include "tape/tape.h"
#include <math.h>
#include <string.h>

/* The wrapped module and its parameter. */
typedef struct {
    ng_module *inner;
    ng_tensor *weight;
} reparameterized;

/* The parameter "weight" of the module itself; the names of a child's have a '.'. */
static ng_tensor *weight_of(ng_module *module)
{
    ng_named_tensor parameter;
    for (int i = 0; ng_module_parameter(module, i, &parameter); i++)
        if (strcmp(parameter.name, "weight") == 0) return parameter.tensor;
    return NULL;
}

/* Finds the weight; an error where there is none, or no row of it, to take the place of. */
static bool wrap(const char *function, ng_module *inner, reparameterized *r)
{
    if (!ng_given(function, "inner", inner)) return false;
    *r = (reparameterized){inner, weight_of(inner)};
    if (!r->weight)
        ng_fail(NG_EVALUE, "%s: a %s has no parameter \"weight\" of its own", function,
                inner->type->name);
    else if (r->weight->shape.rank == 0 || r->weight->size == 0)
        ng_fail(NG_ESHAPE, "%s: the weight of a %s is %s, expected rows", function,
                inner->type->name, ng_shape_print(r->weight->shape).text);
    else
        return true;
    return false;
}

/* The inner module's output with `weight` in the place of its own. */
static ng_tensor *forward_by(const reparameterized *r, ng_tensor *weight, ng_tape *tape,
                             ng_tensor *x)
{
    if (!weight) return NULL;
    const ng_replaced replaced = {.parameters = &r->weight, .values = &weight, .count = 1};
    return ng_forward_replaced(r->inner, tape, x, NG_NONE, replaced);
}

/* ---- WeightNorm: w = g v / ||v||, v being inner's weight. Salimans & Kingma 2016 ------------ */

typedef struct {
    ng_module base;
    reparameterized r;
    ng_tensor *g; /* (out), or (1) for the whole */
} weight_norm;

static ng_tensor *weight_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const weight_norm *layer = (const weight_norm *)self;
    ng_tensor *v = ng_stand_in(tape, layer->r.weight), *g = ng_stand_in(tape, layer->g);
    return forward_by(&layer->r, ng_weight_norm(tape, v, g), tape, x);
}

/* g = ||v||: the layer starts as its inner one. */
static void weight_norm_init(ng_module *self, ng_rng *rng)
{
    (void)rng;
    const weight_norm *layer = (const weight_norm *)self;
    const ng_tensor *v = layer->r.weight;
    const int64_t rows = layer->g->size, n = v->size / rows;
    for (int64_t row = 0; row < rows; row++) {
        double squares = 0;
        for (int64_t i = row * n; i < (row + 1) * n; i++)
            squares += ng_tensor_load(v, i) * ng_tensor_load(v, i);
        ng_set(layer->g, row, sqrt(squares));
    }
}

static void weight_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const weight_norm *layer = (const weight_norm *)self;
    snprintf(text, bytes, "%lld length%s", (long long)layer->g->size,
             layer->g->size == 1 ? "" : "s");
}

static const ng_module_class weight_norm_class = {.name = "WeightNorm",
                                                  .size = sizeof(weight_norm),
                                                  .forward = weight_norm_forward,
                                                  .init = weight_norm_init,
                                                  .describe = weight_norm_describe};

ng_module *ng_weight_norm_new_with(ng_weight_norm_new_options options)
{
    reparameterized r;
    weight_norm *self = wrap("ng_weight_norm_new", options.inner, &r)
                            ? (weight_norm *)ng_module_new(&weight_norm_class)
                            : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    const int64_t lengths = options.whole ? 1 : r.weight->shape.dim[0];
    self->r = r;
    self->g = ng_module_add_parameter(&self->base, "g", NG_SHAPE(lengths));
    ng_module_add_child(&self->base, "inner", options.inner);
    return ng_module_built(&self->base);
}

/* ---- SpectralNorm: w = W / sigma, sigma = u^T W v. Miyato et al. 2018 ----------------------- */

typedef struct {
    ng_module base;
    reparameterized r;
    ng_spectral_norm_new_options options;
    ng_tensor *u, *v; /* (out), (n): W's first singular vectors, as far as they are known */
} spectral_norm;

/* x / max(||x||, eps) of a column (n, 1) */
static ng_tensor *unit(ng_tape *tape, ng_tensor *x, double eps)
{
    ng_tensor *length = ng_sqrt(tape, ng_sum(tape, ng_square(tape, x)));
    return length ? ng_div(tape, x, ng_clamp(tape, length, eps, HUGE_VAL)) : NULL;
}

/* Power iteration: v = W^T u / ||W^T u||, then u = W v / ||W v||, as often as asked. */
static bool iterate(const spectral_norm *layer, ng_tape *tape, ng_tensor *weight, ng_tensor **u,
                    ng_tensor **v)
{
    const ng_spectral_norm_new_options *options = &layer->options;
    const int64_t out = layer->u->size, n = layer->v->size;
    const bool was = ng_tape_set_recording(tape, false);
    ng_tensor *matrix = ng_reshape(tape, weight, NG_SHAPE(out, n));
    ng_tensor *left = ng_reshape(tape, layer->u, NG_SHAPE(out, 1)), *right = NULL;
    for (int i = 0; i < options->iterations; i++) {
        right = unit(tape, ng_matmul(tape, matrix, left, .transpose_a = true), options->eps);
        left = unit(tape, ng_matmul(tape, matrix, right), options->eps);
    }
    ng_tape_set_recording(tape, was);
    *u = ng_detach(tape, ng_reshape(tape, left, NG_SHAPE(out)), .by_definition = true);
    *v = ng_detach(tape, ng_reshape(tape, right, NG_SHAPE(n)), .by_definition = true);
    return *u && *v;
}

static ng_tensor *spectral_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const spectral_norm *layer = (const spectral_norm *)self;
    const bool moves = self->training && !self->frozen;
    ng_tensor *weight = ng_stand_in(tape, layer->r.weight), *u = layer->u, *v = layer->v;
    if (moves && !iterate(layer, tape, weight, &u, &v)) return NULL;
    ng_tensor *y = forward_by(&layer->r, ng_spectral_norm(tape, weight, u, v), tape, x);
    if (y && moves && ng_tape_is_live(tape)) {
        ng_copy_values(layer->u, u);
        ng_copy_values(layer->v, v);
    }
    return y;
}

/* A random direction. */
static void draw_unit(ng_tensor *x, ng_rng *rng)
{
    double squares = 0;
    ng_fill_normal(x, 0, 1, rng);
    for (int64_t i = 0; i < x->size; i++) squares += ng_tensor_load(x, i) * ng_tensor_load(x, i);
    for (int64_t i = 0; i < x->size; i++) ng_set(x, i, ng_tensor_load(x, i) / sqrt(squares));
}

static void spectral_norm_init(ng_module *self, ng_rng *rng)
{
    spectral_norm *layer = (spectral_norm *)self;
    draw_unit(layer->u, rng);
    draw_unit(layer->v, rng);
}

static void spectral_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_spectral_norm_new_options *options = &((const spectral_norm *)self)->options;
    snprintf(text, bytes, "iterations=%d, eps=%s", options->iterations,
             ng_number_print(options->eps).text);
}

static const ng_module_class spectral_norm_class = {.name = "SpectralNorm",
                                                    .size = sizeof(spectral_norm),
                                                    .forward = spectral_norm_forward,
                                                    .init = spectral_norm_init,
                                                    .describe = spectral_norm_describe};

static bool spectral_options_accepted(const ng_spectral_norm_new_options *options)
{
    static const char name[] = "ng_spectral_norm_new";
    return ng_option_positive(name, "iterations", options->iterations, "iterations") &&
           ng_option_range(name, "eps", options->eps, 0, HUGE_VAL);
}

ng_module *ng_spectral_norm_new_with(ng_spectral_norm_new_options options)
{
    reparameterized r;
    if (options.iterations == 0) options.iterations = 1;
    options.eps = ng_option(options.eps, 1e-12);
    spectral_norm *self =
        spectral_options_accepted(&options) && wrap("ng_spectral_norm_new", options.inner, &r)
            ? (spectral_norm *)ng_module_new(&spectral_norm_class)
            : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    const int64_t out = r.weight->shape.dim[0], n = r.weight->size / out;
    self->r = r;
    self->u = ng_module_add_buffer(&self->base, "u", NG_SHAPE(out), 0);
    self->v = ng_module_add_buffer(&self->base, "v", NG_SHAPE(n), 0);
    ng_module_add_child(&self->base, "inner", options.inner);
    options.inner = NULL;
    self->options = options;
    return ng_module_built(&self->base);
}

/* ---- Cases -------------------------------------------------------------------------------- */

static ng_module *case_weight_norm(void) { return ng_weight_norm_new(ng_linear_new(4, 3)); }
static ng_module *case_weight_norm_whole(void)
{
    return ng_weight_norm_new(ng_linear_new(4, 3), .whole = true);
}
static ng_module *case_spectral_norm(void) { return ng_spectral_norm_new(ng_linear_new(4, 3)); }
static ng_module *case_spectral_norm_iterated(void)
{
    return ng_spectral_norm_new(ng_linear_new(4, 3, .no_bias = true), .iterations = 3);
}
static ng_module *case_conv2d(void) { return ng_conv2d_new(2, 3, 2); }
static ng_module *case_weight_norm_conv2d(void) { return ng_weight_norm_new(case_conv2d()); }
static ng_module *case_spectral_norm_conv2d(void) { return ng_spectral_norm_new(case_conv2d()); }

const ng_case ng_layer_cases_weight_norm[] = {
    {.name = "WeightNorm", .module = case_weight_norm, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "WeightNorm (whole)",
     .module = case_weight_norm_whole,
     .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "SpectralNorm", .module = case_spectral_norm, .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "SpectralNorm (3 iterations)",
     .module = case_spectral_norm_iterated,
     .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "SpectralNorm (eval)",
     .module = case_spectral_norm,
     .eval = true,
     .inputs = {NG_CASE_ANY("x", 3, 4)}},
    {.name = "WeightNorm (Conv2d)",
     .module = case_weight_norm_conv2d,
     .inputs = {NG_CASE_ANY("x", 2, 2, 3, 3)}},
    {.name = "SpectralNorm (Conv2d)",
     .module = case_spectral_norm_conv2d,
     .inputs = {NG_CASE_ANY("x", 2, 2, 3, 3)}},
};
const int ng_layer_cases_weight_norm_count = NG_CASE_COUNT(ng_layer_cases_weight_norm);
