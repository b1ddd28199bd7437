/* Embedding: a row of a table for each id. Learned positions: a row added at each position. */
#include "nn/module.h"
#include <math.h>

typedef struct {
    ng_module base;
    int64_t count;
    ng_embedding_new_options options;
    ng_tensor *weight; /* (count, dim) */
} embedding;

static void embedding_init(ng_module *self, ng_rng *rng)
{
    const embedding *layer = (const embedding *)self;
    ng_init(layer->weight, NG_INIT_NORMAL, layer->options.deviation, rng);
}

static void embedding_describe(const ng_module *self, char *text, size_t bytes)
{
    const embedding *layer = (const embedding *)self;
    snprintf(text, bytes, "%lld, %lld", (long long)layer->count, (long long)layer->options.dim);
}

static ng_module *embedding_create(const char *function, const ng_module_class *type, int64_t count,
                                   ng_embedding_new_options options)
{
    options.deviation = ng_option(options.deviation, 1);
    if (!ng_option_positive(function, "count", count, "rows") ||
        !ng_option_positive(function, "dim", options.dim, "features") ||
        !ng_option_range(function, "deviation", options.deviation, 0, HUGE_VAL))
        return NULL;
    embedding *self = (embedding *)ng_module_new(type);
    if (!self) return NULL;
    self->count = count;
    self->options = options;
    self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(count, options.dim));
    return ng_module_built(&self->base);
}

/* ---- Embedding: y = weight[id] ---- */

static ng_tensor *embedding_forward(ng_module *self, ng_tape *tape, ng_tensor *ids)
{
    const embedding *layer = (const embedding *)self;
    return ng_gather_rows(tape, ng_parameter_value(tape, layer->weight), ids);
}

static const ng_module_class embedding_class = {.name = "Embedding",
                                                .size = sizeof(embedding),
                                                .forward = embedding_forward,
                                                .init = embedding_init,
                                                .describe = embedding_describe};

ng_module *ng_embedding_new_with(int64_t count, ng_embedding_new_options options)
{
    return embedding_create("ng_embedding_new", &embedding_class, count, options);
}

/* ---- Learned positions: y[..., t, :] = x[..., t, :] + weight[t] ---- */

static ng_tensor *positions_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    const embedding *layer = (const embedding *)self;
    const int64_t length = layer->count, dim = layer->options.dim;
    if (x->shape.rank < 2 || ng_dim(x, -1) != dim) {
        ng_fail(NG_ESHAPE, "LearnedPositions: x is %s, expected (..., T, %lld)",
                ng_shape_print(x->shape).text, (long long)dim);
        return NULL;
    }
    const int64_t places = ng_dim(x, -2);
    if (places > length) {
        ng_fail(NG_ESHAPE, "LearnedPositions: x is %s, %lld steps long, expected at most %lld",
                ng_shape_print(x->shape).text, (long long)places, (long long)length);
        return NULL;
    }
    ng_tensor *rows = ng_parameter_value(tape, layer->weight);
    if (places < length) rows = ng_slice(tape, rows, 0, 0, places);
    return ng_add(tape, x, rows);
}

static const ng_module_class positions_class = {.name = "LearnedPositions",
                                                .size = sizeof(embedding),
                                                .forward = positions_forward,
                                                .init = embedding_init,
                                                .describe = embedding_describe};

ng_module *ng_learned_positions_new_with(int64_t length, ng_embedding_new_options options)
{
    return embedding_create("ng_learned_positions_new", &positions_class, length, options);
}

/* ---- Cases -------------------------------------------------------------------------------- */

NG_CASE_MODULE(layer_case_embedding, ng_embedding_new(5, 3))
NG_CASE_MODULE(layer_case_learned_positions, ng_learned_positions_new(4, 2))

const ng_case ng_layer_cases_embedding[] = {
    NG_CASE_LAYER("Embedding", layer_case_embedding, NG_CASE_INDEX("ids", 5, 2, 3)),
    NG_CASE_LAYER("LearnedPositions", layer_case_learned_positions, NG_CASE_ANY("x", 2, 4, 2)),
    NG_CASE_LAYER("LearnedPositions (shorter)", layer_case_learned_positions,
                  NG_CASE_ANY("x", 2, 3, 2)),
};
const int ng_layer_cases_embedding_count = NG_CASE_COUNT(ng_layer_cases_embedding);
