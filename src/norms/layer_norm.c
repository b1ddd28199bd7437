/* LayerNorm: y = (x - mean) / sqrt(var + eps) * gamma + beta over the last dimensions, or over the
 * channels; with a unit offset 1 + gamma is in the place of gamma. */
#include "nn/fold.h"

typedef struct {
    ng_module base;
    ng_layer_norm_new_options options;
    ng_tensor *gamma, *beta; /* of options.shape, or NG_NONE */
} layer_norm;

/* Whether x ends in the normalized shape, which the op checks only against gamma and beta. */
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

/* The norm over the channels of x (N, C, ...), at each position. */
static ng_tensor *over_channels(const layer_norm *layer, ng_tape *tape, ng_tensor *x)
{
    if (!ng_channels_fit(&layer->base, x, layer->options.shape.dim[0])) return NULL;
    return ng_channel_norm(tape, x, ng_scale_value(tape, layer->gamma, layer->options.unit_offset),
                           ng_parameter_value(tape, layer->beta), .eps = layer->options.eps);
}

static ng_tensor *layer_norm_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const layer_norm *layer = (const layer_norm *)self;
    const ng_layer_norm_new_options *options = &layer->options;
    if (layer->options.channels_first) return over_channels(layer, tape, x);
    if (!ends_in(x, options->shape)) return NULL;
    return ng_row_norm(tape, x, ng_scale_value(tape, layer->gamma, options->unit_offset),
                       ng_parameter_value(tape, layer->beta), .eps = options->eps,
                       .dims = options->shape.rank, .unbiased = options->unbiased);
}

static const ng_module_class layer_norm_class = {
    .name = "LayerNorm", .size = sizeof(layer_norm), .forward = layer_norm_forward};

bool ng_layer_norm_part(ng_module *module, ng_fold_part *part)
{
    layer_norm *layer = (layer_norm *)module;
    ng_layer_norm_new_options *o = &layer->options;
    if (module->type != &layer_norm_class) return false;
    *part = (ng_fold_part){.weight = &layer->gamma,
                           .bias = &layer->beta,
                           .left_out = &o->no_affine,
                           .features = ng_shape_span(o->shape, 0, o->shape.rank),
                           .never = o->shape.rank > 1   ? "it is over several dimensions"
                                    : o->channels_first ? "it is over channels"
                                    : o->unit_offset    ? "it has a unit offset"
                                                        : NULL};
    return true;
}

static const ng_setting layer_norm_settings[] = {
    {NG_PLACE("dim", layer_norm, options.shape), NG_IS_SHAPE, .unit = "features", .bare = true},
    {NG_OPTION(layer_norm, eps), NG_IS_NOT_NEGATIVE, .standard = 1e-5},
    {NG_OPTION(layer_norm, no_affine), NG_IS_FLAG},
    {NG_OPTION(layer_norm, no_bias), NG_IS_FLAG},
    {NG_OPTION(layer_norm, unit_offset), NG_IS_FLAG, .excludes = "no_affine"},
    {NG_OPTION(layer_norm, unbiased), NG_IS_FLAG},
    {NG_OPTION(layer_norm, channels_first), NG_IS_FLAG, .excludes = "unbiased"},
    {0}};

ng_module *ng_layer_norm_new_with(ng_layer_norm_new_options options)
{
    static const char name[] = "ng_layer_norm_new";
    const int rank = options.shape.rank;
    if (!ng_option_apart(name, "shape", rank > 0, "dim", options.dim != 0) ||
        !ng_option_apart(name, "channels_first", options.channels_first, "shape", rank > 1))
        return NULL;
    if (rank == 0) options.shape = NG_SHAPE(options.dim);
    layer_norm *self = ng_layer_new(name, &layer_norm_class, layer_norm_settings,
                                    &(layer_norm){.options = options});
    if (!self) return NULL;
    self->gamma = ng_module_add_parameter(&self->base, "weight", options.shape,
                                          .value = options.unit_offset ? 0 : 1,
                                          .left_out = options.no_affine);
    self->beta = ng_module_add_parameter(&self->base, "bias", options.shape,
                                         .left_out = options.no_affine || options.no_bias);
    return ng_module_built(&self->base);
}
