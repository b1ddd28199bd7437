/* FiLM: y = (1 + scale(c)) * x + shift(c), scale and shift of each channel made of a condition. The
 * conditional norms have one as a child. */
#include "norms/film.h"
#include "ops/op.h"

typedef struct {
    ng_module base;
    ng_film_new_options options;
    ng_tensor *weight, *bias; /* (2 channels, condition) and (2 channels): shift, scale; or scale */
} film;

/* Whether c is float or double, of this shape or of its first two axes. */
static bool condition_fits(const ng_tensor *c, ng_shape expected)
{
    const ng_shape rows = NG_SHAPE(expected.dim[0], expected.dim[1]);
    const bool fits = ng_shape_equal(c->shape, rows) || ng_shape_equal(c->shape, expected);
    if (fits && c->dtype != NG_I64) return true;
    const bool maps = expected.rank > 2;
    ng_fail(c->dtype == NG_I64 ? NG_EDTYPE : NG_ESHAPE,
            "FiLM: condition is %s %s, expected float32 or float64 %s%s%s", ng_dtype_name(c->dtype),
            ng_shape_print(c->shape).text, ng_shape_print(rows).text, maps ? " or " : "",
            maps ? ng_shape_print(expected).text : "");
    return false;
}

/* Whether x has the channels, and c is (N, condition) or (N, condition, ...) with x's positions;
 * with the features last broadcasting tells whether c fits. */
static bool film_fits(const film *layer, const ng_tensor *x, const ng_tensor *c)
{
    const ng_film_new_options *options = &layer->options;
    if (options->features_last) return ng_features_fit(&layer->base, x, options->channels);
    if (!ng_channels_fit(&layer->base, x, options->channels)) return false;
    ng_shape expected = x->shape;
    expected.dim[1] = options->condition;
    return condition_fits(c, expected);
}

/* x (N, channels, ...) with the channels last, and back. */
static ng_tensor *film_turn(ng_tape *tape, ng_tensor *x)
{
    return x && x->shape.rank > 2 ? ng_transpose(tape, x, 1, -1) : x;
}

/* Shift and scale side by side, in a shape that broadcasts against x. */
static ng_tensor *film_modulation(const film *layer, ng_tape *tape, const ng_tensor *x,
                                  ng_tensor *c)
{
    ng_tensor *weight = ng_parameter_value(tape, layer->weight),
              *bias = ng_parameter_value(tape, layer->bias);
    if (!film_fits(layer, x, c)) return NULL;
    if (layer->options.features_last) return ng_linear(tape, c, weight, bias);
    ng_tensor *made = film_turn(tape, ng_linear(tape, film_turn(tape, c), weight, bias));
    if (!made || made->shape.rank == x->shape.rank) return made;
    ng_shape wide = made->shape;
    while (wide.rank < x->shape.rank) wide.dim[wide.rank++] = 1;
    return ng_reshape(tape, made, wide);
}

static ng_tensor *film_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const film *layer = (const film *)self;
    ng_tensor *x = in->x;
    const int64_t channels = layer->options.channels;
    const int axis = layer->options.features_last ? -1 : 1;
    ng_tensor *made = film_modulation(layer, tape, x, in->condition);
    if (layer->options.no_shift) return ng_mul(tape, ng_add_scalar(tape, made, 1), x);
    ng_tensor *shift = ng_slice(tape, made, axis, 0, channels);
    ng_tensor *scale = ng_slice(tape, made, axis, channels, NG_END);
    return ng_add(tape, ng_mul(tape, ng_add_scalar(tape, scale, 1), x), shift);
}

static void film_describe(const ng_module *self, char *text, size_t bytes)
{
    const ng_film_new_options *options = &((const film *)self)->options;
    snprintf(text, bytes, "%lld, condition=%lld%s%s", (long long)options->channels,
             (long long)options->condition, options->features_last ? ", features last" : "",
             options->no_shift ? ", no shift" : "");
}

static const ng_module_class film_class = {.name = "FiLM",
                                           .size = sizeof(film),
                                           .forward_with = film_forward,
                                           .needs = NG_INPUT_CONDITION,
                                           .describe = film_describe};

ng_module *ng_film_new_with(ng_film_new_options options)
{
    static const char name[] = "ng_film_new";
    if (!ng_option_positive(name, "channels", options.channels, "channels") ||
        !ng_option_positive(name, "condition", options.condition, "features"))
        return NULL;
    film *self = (film *)ng_module_new(&film_class);
    if (!self) return NULL;
    const int64_t made = (options.no_shift ? 1 : 2) * options.channels;
    self->options = options;
    self->weight =
        ng_module_add_parameter(&self->base, "weight", NG_SHAPE(made, options.condition));
    self->bias = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(made));
    return ng_module_built(&self->base);
}

/* ---- In the conditional norms ---- */

ng_module *ng_add_modulation(ng_module *self, ng_film_new_options options)
{
    if (options.condition == 0) return NULL;
    self->needs |= NG_INPUT_CONDITION;
    return ng_module_add_child(self, "modulation", ng_film_new_with(options));
}

ng_tensor *ng_modulate(ng_module *modulation, ng_tape *tape, ng_tensor *y, const ng_inputs *in)
{
    return modulation && y ? ng_forward_child(modulation, tape, y, in) : y;
}
