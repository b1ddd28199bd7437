/* WeightNorm: any module with a parameter "weight", which gets a length and a direction of its own:
 * w = g v / ||v||, where v is the module's weight, centred or not. The module is a child
 * named inner. */
#include "norms/reparameterized.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_reparameterized r;
    ng_weight_norm_new_options options;
    ng_tensor *g; /* (out), or (1) for the whole */
} weight_norm;

/* v less the mean of each row (n), or of the whole. */
static ng_tensor *less_its_mean(ng_tape *tape, ng_tensor *v, int64_t rows)
{
    ng_tensor *matrix = ng_reshape(tape, v, NG_SHAPE(rows, v->size / rows));
    ng_tensor *mean = ng_mean(tape, matrix, .axes = NG_AXES(-1), .keepdim = true);
    return ng_reshape(tape, ng_sub(tape, matrix, mean), v->shape);
}

static ng_tensor *weight_norm_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const weight_norm *layer = (const weight_norm *)self;
    ng_tensor *v = ng_parameter_value(tape, layer->r.weight),
              *g = ng_parameter_value(tape, layer->g);
    if (layer->options.centered) v = less_its_mean(tape, v, g->size);
    return ng_forward_reparameterized(&layer->r, ng_weight_norm(tape, v, g), tape, in);
}

/* g = ||v||, or that of the centred v: at first the weight in use is v itself, or the centred v. */
static void weight_norm_init(ng_module *self, ng_rng *rng)
{
    (void)rng;
    const weight_norm *layer = (const weight_norm *)self;
    const ng_tensor *v = ng_untied(layer->r.weight);
    const int64_t rows = layer->g->size, n = v->size / rows;
    for (int64_t row = 0; row < rows; row++) {
        double squares = 0, mean = 0;
        for (int64_t i = row * n; i < (row + 1) * n && layer->options.centered; i++)
            mean += ng_tensor_load(v, i) / (double)n;
        for (int64_t i = row * n; i < (row + 1) * n; i++) {
            const double part = ng_tensor_load(v, i) - mean;
            squares += part * part;
        }
        ng_set(layer->g, row, sqrt(squares));
    }
}

static const ng_module_class weight_norm_class = {.name = "WeightNorm",
                                                  .size = sizeof(weight_norm),
                                                  .forward_with = weight_norm_forward,
                                                  .init = weight_norm_init};

static const ng_setting weight_norm_settings[] = {{NG_OPTION(weight_norm, whole), NG_IS_FLAG},
                                                  {NG_OPTION(weight_norm, centered), NG_IS_FLAG},
                                                  {0}};

ng_module *ng_weight_norm_new_with(ng_weight_norm_new_options options)
{
    static const char name[] = "ng_weight_norm_new";
    weight_norm layer = {.options = options};
    weight_norm *self = ng_reparameterize(name, options.inner, &layer.r)
                            ? ng_layer_new(name, &weight_norm_class, weight_norm_settings, &layer)
                            : NULL;
    if (!self) {
        ng_module_free(options.inner);
        return NULL;
    }
    const int64_t lengths = options.whole ? 1 : layer.r.weight->shape.dim[0];
    self->g = ng_module_add_parameter(&self->base, "g", NG_SHAPE(lengths));
    ng_module_add_child(&self->base, "inner", options.inner);
    return ng_module_built(&self->base);
}
