/* LayerNorm: y = (x - mean) / sqrt(var + eps) * gamma + beta over the last dimensions, or over the
 * channels. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    ng_layer_norm_options options; /* with the shape, whichever way it was given */
    ng_tensor *gamma, *beta;       /* of that shape, or NG_NONE */
} layer_norm;

/* Whether x ends in the normalized shape; without gamma and beta nobody else would ask. */
static bool ends_in(const ng_tensor *x, ng_shape shape)
{
    const int leading = ng_rank(x) - shape.rank;
    bool same = leading >= 0;
    for (int i = 0; same && i < shape.rank; i++) same = x->shape.dim[leading + i] == shape.dim[i];
    if (!same)
        ng_fail(NG_ESHAPE, "LayerNorm: x is %s, expected its last dimensions to be %s",
                ng_shape_print(x->shape).text, ng_shape_print(shape).text);
    return same;
}

/* The axes of x with that of the channels last, (0, 2, ..., 1); or the way back. */
static ng_axes channels_last(int rank, bool back)
{
    ng_axes axes = {.count = rank};
    for (int i = 1; i < rank; i++)
        axes.axis[i] = back ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
    return axes;
}

/* Over the channels of x (N, C, ...): with them last, as of any row. */
static ng_tensor *over_channels(const layer_norm *layer, ng_tape *tape, ng_tensor *x)
{
    const int64_t channels = layer->options.shape.dim[0];
    if (ng_rank(x) < 2 || ng_dim(x, 1) != channels) {
        ng_fail(NG_ESHAPE, "LayerNorm: x is %s, expected (N, %lld, ...)",
                ng_shape_print(x->shape).text, (long long)channels);
        return NULL;
    }
    ng_tensor *rows = ng_permute(tape, x, channels_last(ng_rank(x), false));
    ng_tensor *y = ng_row_norm(tape, rows, .gamma = layer->gamma, .beta = layer->beta,
                               .eps = layer->options.eps, .unbiased = layer->options.unbiased);
    return ng_permute(tape, y, channels_last(ng_rank(x), true));
}

static ng_tensor *layer_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const layer_norm *layer = (const layer_norm *)self;
    const ng_layer_norm_options *options = &layer->options;
    if (options->channels_first) return over_channels(layer, tape, x);
    if (!ends_in(x, options->shape)) return NULL;
    return ng_row_norm(tape, x, .gamma = layer->gamma, .beta = layer->beta, .eps = options->eps,
                       .dims = options->shape.rank, .unbiased = options->unbiased);
}

static void layer_norm_init(ng_module *self, ng_rng *rng)
{
    (void)rng;
    layer_norm *layer = (layer_norm *)self;
    if (!ng_is_none(layer->gamma)) ng_fill(layer->gamma, 1);
    if (!ng_is_none(layer->beta)) ng_fill(layer->beta, 0);
}

static void layer_norm_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_layer_norm_options *options = &((const layer_norm *)self)->options;
    char dim[24];
    snprintf(dim, sizeof dim, "%lld", (long long)options->shape.dim[0]);
    snprintf(text, bytes, "%s, eps=%g%s%s%s",
             options->shape.rank == 1 ? dim : ng_shape_print(options->shape).text, options->eps,
             options->no_affine ? ", no affine" : (options->no_bias ? ", no bias" : ""),
             options->unbiased ? ", unbiased" : "",
             options->channels_first ? ", channels first" : "");
}

static const ng_module_class layer_norm_class = {.name = "LayerNorm",
                                                 .size = sizeof(layer_norm),
                                                 .forward = layer_norm_forward,
                                                 .init = layer_norm_init,
                                                 .describe = layer_norm_describe};

/* Turns dim into a shape of one dimension; false with an error where the shape is no shape. */
static bool settle_shape(ng_layer_norm_options *options)
{
    if (options->dim != 0 && options->shape.rank != 0) {
        ng_fail(NG_EVALUE, "ng_layer_norm_new: both dim %lld and shape %s, expected one of them",
                (long long)options->dim, ng_shape_print(options->shape).text);
        return false;
    }
    if (options->shape.rank == 0) options->shape = NG_SHAPE(options->dim);
    for (int i = 0; i < options->shape.rank && i < NG_MAX_RANK; i++)
        if (!ng_option_positive("ng_layer_norm_new", "dim", options->shape.dim[i], "features"))
            return false;
    if (options->channels_first && options->shape.rank != 1) {
        ng_fail(NG_EVALUE, "ng_layer_norm_new: .channels_first with shape %s, expected dim",
                ng_shape_print(options->shape).text);
        return false;
    }
    return ng_shape_size("ng_layer_norm_new", options->shape) >= 0;
}

ng_module *ng_layer_norm_create(ng_layer_norm_options options)
{
    options.eps = ng_option_or(options.eps, 1e-5);
    if (!settle_shape(&options)) return NULL;
    if (!ng_option_range("ng_layer_norm_new", "eps", options.eps, 0, HUGE_VAL)) return NULL;

    layer_norm *self = (layer_norm *)ng_module_new(&layer_norm_class);
    if (!self) return NULL;
    self->options = options;
    self->gamma =
        options.no_affine ? NG_NONE : ng_module_add_parameter(&self->base, "weight", options.shape);
    self->beta = options.no_affine || options.no_bias
                     ? NG_NONE
                     : ng_module_add_parameter(&self->base, "bias", options.shape);
    return ng_module_built(&self->base);
}
