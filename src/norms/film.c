/* FiLM: y = (1 + scale(c)) * x + shift(c), scale and shift of each channel made of a condition. The
 * conditional norms have one as a child. */
#include "norms/film.h"

typedef struct {
    ng_module base;
    ng_film_new_options options;
    ng_tensor *weight, *bias; /* (2 channels, condition) and (2 channels): shift, scale; or scale */
} film;

/* ---- Conditions of samples ------------------------------------------------------------------ */

/* Records which condition of k features was expected. */
static void refuse_condition(const ng_module *self, const ng_tensor *c, int64_t k,
                             const ng_tensor *x, int axis)
{
    const char *layer = self->type->name;
    ng_shape each = x->shape; /* position */
    each.dim[axis == 1 ? 1 : each.rank - 1] = k;
    const ng_shape sample = each.rank > 2 ? NG_SHAPE(each.dim[0], k) : each;
    if (c->dtype == NG_I64)
        ng_fail(NG_EDTYPE,
                "%s: condition is int64 %s, expected float32 or float64: an ng_embedding_new makes "
                "one of labels",
                layer, ng_shape_print(c->shape).text);
    else
        ng_fail(NG_ESHAPE, "%s: condition is %s, expected %s%s%s for x %s", layer,
                ng_shape_print(c->shape).text, ng_shape_print(sample).text,
                each.rank > 2 ? " or " : "", each.rank > 2 ? ng_shape_print(each).text : "",
                ng_shape_print(x->shape).text);
}

bool ng_condition_fits(const ng_module *self, const ng_tensor *c, int64_t k, const ng_tensor *x,
                       int axis)
{
    const int rank = c->shape.rank, all = x->shape.rank;
    const int feature = axis == 1 && rank == all ? 1 : rank - 1;
    bool fits = c->dtype != NG_I64 && rank >= 1 && (rank == all || (rank < all && rank <= 2)) &&
                c->shape.dim[feature] == k;
    for (int i = 0; fits && i < rank; i++)
        fits = i == feature || c->shape.dim[i] == x->shape.dim[i] || c->shape.dim[i] == 1;
    if (!fits) refuse_condition(self, c, k, x, axis);
    return fits;
}

ng_tensor *ng_condition_expand(ng_tape *tape, ng_tensor *modulation, const ng_tensor *x, int axis)
{
    if (!modulation || modulation->shape.rank == x->shape.rank) return modulation;
    const int last = modulation->shape.rank - 1;
    ng_shape wide = {.rank = x->shape.rank};
    for (int i = 0; i < wide.rank; i++) wide.dim[i] = i < last ? modulation->shape.dim[i] : 1;
    wide.dim[axis == 1 ? 1 : wide.rank - 1] = modulation->shape.dim[last];
    return ng_reshape(tape, modulation, wide);
}

ng_tensor *ng_scale_and_shift(ng_tape *tape, ng_tensor *x, ng_tensor *modulation, int64_t n,
                              int axis, bool no_shift)
{
    if (no_shift) return ng_mul(tape, ng_add_scalar(tape, modulation, 1), x);
    ng_tensor *shift = ng_slice(tape, modulation, axis, 0, n);
    ng_tensor *scale = ng_slice(tape, modulation, axis, n, 2 * n);
    return ng_add(tape, ng_mul(tape, ng_add_scalar(tape, scale, 1), x), shift);
}

/* ---- The layer ------------------------------------------------------------------------------ */

/* x (N, channels, ...) with the channels last, or back. */
static ng_tensor *swap_channels(ng_tape *tape, ng_tensor *x, int axis)
{
    return x && axis == 1 && x->shape.rank > 2 ? ng_transpose(tape, x, 1, -1) : x;
}

static ng_tensor *film_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    const film *layer = (const film *)self;
    const ng_film_new_options *o = &layer->options;
    ng_tensor *x = in->x, *c = in->condition;
    const int axis = o->features_last ? -1 : 1;
    if (!(o->features_last ? ng_features_fit(self, x, o->channels)
                           : ng_channels_fit(self, x, o->channels)) ||
        !ng_condition_fits(self, c, o->condition, x, axis))
        return NULL;
    ng_tensor *modulation =
        ng_linear(tape, swap_channels(tape, c, axis), ng_parameter_value(tape, layer->weight),
                  ng_parameter_value(tape, layer->bias));
    modulation = ng_condition_expand(tape, swap_channels(tape, modulation, axis), x, axis);
    return ng_scale_and_shift(tape, x, modulation, o->channels, axis, o->no_shift);
}

static const ng_module_class film_class = {.name = "FiLM",
                                           .size = sizeof(film),
                                           .forward_with = film_forward,
                                           .needs = NG_INPUT_CONDITION};

static const ng_setting film_settings[] = {
    {NG_OPTION(film, channels), NG_IS_COUNT, .unit = "channels", .bare = true},
    {NG_OPTION(film, condition), NG_IS_COUNT, .unit = "features"},
    {NG_OPTION(film, features_last), NG_IS_FLAG},
    {NG_OPTION(film, no_shift), NG_IS_FLAG},
    {0}};

ng_module *ng_film_new_with(ng_film_new_options options)
{
    film *self =
        ng_layer_new("ng_film_new", &film_class, film_settings, &(film){.options = options});
    if (!self) return NULL;
    const int64_t rows = (options.no_shift ? 1 : 2) * options.channels;
    self->weight =
        ng_module_add_parameter(&self->base, "weight", NG_SHAPE(rows, options.condition));
    self->bias = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(rows));
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
