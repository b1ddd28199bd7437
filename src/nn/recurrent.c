/* RNN, GRU and LSTM: stacked layers, in one direction or both, with norms in the cell (Ba, Kiros &
 * Hinton 2016) or without. */
#include "ops/recurrent.h"
#include "nn/module.h"
#include <math.h>

/* One direction of one layer. */
typedef struct {
    ng_recurrent_weights weights;
    ng_module *norm_ih, *norm_hh; /* LSTM: of all gates; GRU: of r and z */
    ng_module *norm_in, *norm_hn; /* GRU: of n */
    ng_module *norm_state;        /* LSTM: norm_c; RNN: norm, of the sum */
} direction;

typedef struct {
    ng_module base;
    ng_cell cell;
    int64_t features;
    ng_recurrent_new_options options;
    direction *directions; /* of layer 0, of layer 1... */
} recurrent;

static int64_t directions_in(const recurrent *layer)
{
    return layer->options.bidirectional ? 2 : 1;
}

/* ---- Forward ------------------------------------------------------------------------------- */

static ng_tensor *with_mask(ng_module *norm, ng_tape *tape, ng_tensor *x, ng_tensor *mask)
{
    ng_inputs in = NG_NO_INPUTS;
    in.mask = mask;
    return ng_forward_child(norm, tape, x, &in);
}

static ng_tensor *normalized(void *layer, ng_tape *tape, ng_recurrent_place place, ng_tensor *x,
                             ng_tensor *mask)
{
    const direction *d = layer;
    if (!x || !mask) return NULL;
    if (place == NG_PLACE_STATE) return with_mask(d->norm_state, tape, x, mask);
    const bool input = place == NG_PLACE_INPUT;
    ng_module *norm = input ? d->norm_ih : d->norm_hh, *rest = input ? d->norm_in : d->norm_hn;
    if (!rest) return with_mask(norm, tape, x, mask);
    const int64_t n = ng_dim(x, -1) / 3;
    ng_tensor *gates = ng_slice(tape, x, -1, 0, 2 * n), *last = ng_slice(tape, x, -1, 2 * n, 3 * n);
    if (!gates || !last) return NULL;
    ng_tensor *parts[] = {with_mask(norm, tape, gates, mask), with_mask(rest, tape, last, mask)};
    return parts[0] && parts[1] ? ng_concat(tape, parts, 2, -1) : NULL;
}

/* The weights, or what replaces them in this pass. */
static ng_recurrent_weights weights_in_use(ng_tape *tape, const ng_recurrent_weights *w)
{
    return (ng_recurrent_weights){
        ng_parameter_value(tape, w->weight_ih), ng_parameter_value(tape, w->weight_hh),
        ng_parameter_value(tape, w->bias_ih), ng_parameter_value(tape, w->bias_hh)};
}

/* Runs one direction of one layer from *state, which becomes the last state if that is wanted. */
static ng_tensor *recurrent_run(const recurrent *layer, ng_tape *tape, ng_tensor *x, int64_t which,
                                ng_tensor *lengths, ng_recurrent_state *state, bool wanted)
{
    direction *d = &layer->directions[which];
    const ng_recurrence run = {.cell = layer->cell,
                               .reverse = which % directions_in(layer),
                               .weights = weights_in_use(tape, &d->weights),
                               .first = *state,
                               .lengths = lengths,
                               .norm = layer->options.norm ? normalized : NULL,
                               .norms = d};
    return ng_recur(layer->base.type->name, tape, x, &run, wanted ? state : NULL);
}

/* The which-th matrix (N, hidden) of states (layers directions, N, hidden), or NG_NONE. */
static ng_tensor *recurrent_state_at(ng_tape *tape, ng_tensor *states, int64_t which)
{
    if (ng_is_none(states)) return NG_NONE;
    return ng_squeeze(tape, ng_slice(tape, states, 0, which, which + 1), 0);
}

static bool state_fits(const recurrent *layer, const char *name, const ng_tensor *state,
                       const ng_tensor *x)
{
    const ng_shape expected = NG_SHAPE(layer->options.layers * directions_in(layer),
                                       x->shape.dim[0], layer->options.hidden);
    return ng_has_shape(layer->base.type->name, name, state, expected);
}

/* Runs one layer and joins the outputs of its directions; updates the states h and c. */
static ng_tensor *run_layer(const recurrent *layer, ng_tape *tape, ng_tensor *x, int64_t l,
                            ng_tensor *lengths, ng_recurrent_state *states, bool wanted)
{
    const int64_t count = directions_in(layer);
    ng_tensor *parts[2];
    for (int64_t d = 0; d < count; d++) {
        const int64_t which = l * count + d;
        parts[d] = recurrent_run(layer, tape, x, which, lengths, &states[which], wanted);
    }
    ng_tensor *y = count > 1 ? ng_concat(tape, parts, 2, -1) : parts[0];
    const bool drops = layer->base.training && layer->options.dropout > 0;
    return drops && l + 1 < layer->options.layers ? ng_dropout(tape, y, layer->options.dropout) : y;
}

/* *state becomes the states of all layers and directions, stacked. */
static bool join_states(const recurrent *layer, ng_tape *tape, const ng_recurrent_state *states,
                        ng_recurrent_state *state)
{
    const int64_t count = layer->options.layers * directions_in(layer);
    ng_tensor **one = ng_tape_memory(tape, (size_t)count * sizeof(ng_tensor *));
    if (!one) return false;
    for (int64_t i = 0; i < count; i++) one[i] = states[i].h;
    state->h = ng_stack(tape, one, (int)count, 0);
    if (layer->cell != NG_CELL_LSTM) return state->h != NULL;
    for (int64_t i = 0; i < count; i++) one[i] = states[i].c;
    state->c = ng_stack(tape, one, (int)count, 0);
    return state->h && state->c;
}

/* Runs all layers; *state becomes the last states, unless it is NULL. */
static ng_tensor *run_layers(const recurrent *layer, ng_tape *tape, ng_tensor *x,
                             ng_tensor *lengths, ng_recurrent_state *state)
{
    const ng_recurrent_new_options *o = &layer->options;
    const ng_recurrent_state none = {NG_NONE, NG_NONE}, *first = state ? state : &none;
    const int64_t count = o->layers * directions_in(layer);
    if (ng_rank(x) != 3 || ng_dim(x, 2) != layer->features) {
        ng_fail(NG_ESHAPE, "%s: x is %s, expected (N, T, %lld)", layer->base.type->name,
                ng_shape_print(x->shape).text, (long long)layer->features);
        return NULL;
    }
    if (!state_fits(layer, "h", first->h, x) || !state_fits(layer, "c", first->c, x)) return NULL;
    ng_recurrent_state *states = ng_tape_memory(tape, (size_t)count * sizeof *states);
    if (!states) return NULL;
    for (int64_t i = 0; i < count; i++) {
        states[i] = (ng_recurrent_state){recurrent_state_at(tape, first->h, i),
                                         recurrent_state_at(tape, first->c, i)};
        if (!states[i].h || !states[i].c) return NULL;
    }
    for (int64_t l = 0; l < o->layers && x; l++)
        x = run_layer(layer, tape, x, l, lengths, states, state);
    return x && (!state || join_states(layer, tape, states, state)) ? x : NULL;
}

static ng_tensor *recurrent_forward(ng_module *self, ng_tape *tape, const ng_inputs *in)
{
    return run_layers((const recurrent *)self, tape, in->x, in->lengths, NULL);
}

/* ---- Class --------------------------------------------------------------------------------- */

static void recurrent_init(ng_module *self, ng_rng *rng)
{
    const recurrent *layer = (const recurrent *)self;
    const double bound = 1 / sqrt((double)layer->options.hidden);
    for (int64_t i = 0; i < layer->options.layers * directions_in(layer); i++) {
        const ng_recurrent_weights w = layer->directions[i].weights;
        ng_tensor *const drawn[] = {w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh};
        for (int k = 0; k < (layer->options.no_bias ? 2 : 4); k++)
            ng_fill_uniform(drawn[k], -bound, bound, rng);
    }
}

static void recurrent_destroy(ng_module *self) { ng_free(((recurrent *)self)->directions); }

#define RECURRENT_CLASS(text)                                                                      \
    {                                                                                              \
        .name = text, .size = sizeof(recurrent), .forward_with = recurrent_forward,                \
        .takes = NG_INPUT_LENGTHS, .init = recurrent_init, .destroy = recurrent_destroy            \
    }
static const ng_module_class rnn_class = RECURRENT_CLASS("RNN");
static const ng_module_class gru_class = RECURRENT_CLASS("GRU");
static const ng_module_class lstm_class = RECURRENT_CLASS("LSTM");

ng_tensor *ng_forward_recurrent(ng_module *module, ng_tape *tape, ng_tensor *x, ng_tensor *lengths,
                                ng_recurrent_state *state)
{
    static const char function[] = "ng_forward_recurrent";
    if (!ng_given(function, "module", module) || !ng_given(function, "tape", tape) ||
        !ng_given(function, "x", x) || !ng_given(function, "lengths", lengths) ||
        !ng_given(function, "state", state) || !ng_given(function, "h", state->h) ||
        !ng_given(function, "c", state->c) || !ng_usable(function, "x", 0, tape, x) ||
        !ng_module_ready(module))
        return NULL;
    if (module->type->forward_with != recurrent_forward) {
        ng_fail(NG_EVALUE, "%s: the module is a %s, expected an RNN, a GRU or an LSTM", function,
                module->type->name);
        return NULL;
    }
    const int64_t failures = ng_failures_ever();
    ng_recurrent_state after = *state;
    ng_tensor *y = run_layers((const recurrent *)module, tape, x, lengths, &after);
    if (!y) return ng_failed_in(module, failures);
    *state = after;
    return y;
}

/* ---- Make ---------------------------------------------------------------------------------- */

static const ng_setting recurrent_settings[] = {
    {NG_MEMBER(recurrent, features), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(recurrent, hidden), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(recurrent, layers), NG_IS_COUNT, .standard = 1, .most = NG_MAX_LAYERS,
     .unit = "layers", .quiet = true},
    {NG_OPTION(recurrent, bidirectional), NG_IS_FLAG},
    {NG_OPTION(recurrent, relu), NG_IS_FLAG},
    {NG_OPTION(recurrent, dropout), NG_IS_PROBABILITY, .quiet = true},
    {NG_OPTION(recurrent, no_bias), NG_IS_FLAG},
    {0}};

/* "weight_ih_l2_reverse" */
typedef struct {
    char text[48];
} suffixed;
static suffixed name_of(const recurrent *layer, const char *stem, int64_t which)
{
    const int64_t count = directions_in(layer);
    suffixed name;
    snprintf(name.text, sizeof name.text, "%s_l%lld%s", stem, (long long)(which / count),
             which % count ? "_reverse" : "");
    return name;
}

static ng_tensor *add_weight(recurrent *layer, const char *stem, int64_t which, ng_shape shape)
{
    const bool left_out = layer->options.no_bias && shape.rank == 1;
    return ng_module_add_parameter(&layer->base, name_of(layer, stem, which).text, shape,
                                   .left_out = left_out);
}

static ng_module *add_norm(recurrent *layer, const char *stem, int64_t which, int64_t dim)
{
    return ng_module_add_child(&layer->base, name_of(layer, stem, which).text,
                               layer->options.norm(dim));
}

static void add_norms(recurrent *layer, direction *d, int64_t which)
{
    const int64_t n = layer->options.hidden;
    if (layer->cell == NG_CELL_LSTM) {
        d->norm_ih = add_norm(layer, "norm_ih", which, 4 * n);
        d->norm_hh = add_norm(layer, "norm_hh", which, 4 * n);
        d->norm_state = add_norm(layer, "norm_c", which, n);
    } else if (layer->cell == NG_CELL_GRU) {
        d->norm_ih = add_norm(layer, "norm_ih", which, 2 * n);
        d->norm_hh = add_norm(layer, "norm_hh", which, 2 * n);
        d->norm_in = add_norm(layer, "norm_in", which, n);
        d->norm_hn = add_norm(layer, "norm_hn", which, n);
    } else {
        d->norm_state = add_norm(layer, "norm", which, n);
    }
}

static void add_direction(recurrent *layer, int64_t which)
{
    const ng_recurrent_new_options *o = &layer->options;
    const int64_t width = ng_cell_gates(layer->cell) * o->hidden, count = directions_in(layer);
    const int64_t in = which < count ? layer->features : count * o->hidden;
    direction *d = &layer->directions[which];
    d->weights.weight_ih = add_weight(layer, "weight_ih", which, NG_SHAPE(width, in));
    d->weights.weight_hh = add_weight(layer, "weight_hh", which, NG_SHAPE(width, o->hidden));
    d->weights.bias_ih = add_weight(layer, "bias_ih", which, NG_SHAPE(width));
    d->weights.bias_hh = add_weight(layer, "bias_hh", which, NG_SHAPE(width));
    if (o->norm) add_norms(layer, d, which);
}

static ng_module *recurrent_new(const char *name, const ng_module_class *class, ng_cell cell,
                                int64_t features, ng_recurrent_new_options options)
{
    const bool drops = ng_option_given(options.dropout), one = options.layers <= 1;
    if (!ng_option_idle(name, "relu", options.relu && cell != NG_CELL_RELU, "in ng_rnn_new") ||
        !ng_option_idle(name, "dropout", drops && one, "between layers"))
        return NULL;
    recurrent *self =
        ng_layer_new(name, class, recurrent_settings,
                     &(recurrent){.cell = cell, .features = features, .options = options});
    if (!self) return NULL;
    const int64_t count = self->options.layers * directions_in(self);
    self->directions = ng_calloc(name, count, sizeof *self->directions);
    if (!self->directions) {
        ng_module_free(&self->base);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) add_direction(self, i);
    return ng_module_built(&self->base);
}

ng_module *ng_rnn_new_with(int64_t features, ng_recurrent_new_options options)
{
    return recurrent_new("ng_rnn_new", &rnn_class, options.relu ? NG_CELL_RELU : NG_CELL_TANH,
                         features, options);
}

ng_module *ng_gru_new_with(int64_t features, ng_recurrent_new_options options)
{
    return recurrent_new("ng_gru_new", &gru_class, NG_CELL_GRU, features, options);
}

ng_module *ng_lstm_new_with(int64_t features, ng_recurrent_new_options options)
{
    return recurrent_new("ng_lstm_new", &lstm_class, NG_CELL_LSTM, features, options);
}

#undef RECURRENT_CLASS
