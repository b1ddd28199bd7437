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
    ng_fill_init(layer->weight, NG_INIT_NORMAL, layer->options.deviation, rng);
    const int64_t dim = layer->options.dim, first = layer->options.padding * dim;
    for (int64_t i = 0; layer->options.padded && i < dim; i++) ng_set(layer->weight, first + i, 0);
}

/* Learned positions have no padding. */
static const ng_setting embedding_settings[] = {
    {NG_MEMBER(embedding, count), NG_IS_COUNT, .unit = "rows", .bare = true},
    {NG_OPTION(embedding, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_OPTION(embedding, padded), NG_IS_FLAG},
    {NG_OPTION(embedding, padding), NG_IS_COUNT_OR_0, .unit = "ids", .needs = "padded"},
    {NG_OPTION(embedding, deviation), NG_IS_NOT_NEGATIVE, .standard = 1, .quiet = true},
    {0}};

static ng_module *embedding_create(const char *function, const ng_module_class *type, int64_t count,
                                   ng_embedding_new_options options)
{
    embedding *self = ng_layer_new(function, type, embedding_settings,
                                   &(embedding){.count = count, .options = options});
    if (!self) return NULL;
    self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(count, options.dim));
    return ng_module_built(&self->base);
}

/* ---- Embedding: y = weight[id] ---- */

/* 1 at the id of padding, else 0: (ids..., 1). */
static ng_tensor *padding_mask(ng_tape *tape, const ng_tensor *ids, int64_t padding, ng_dtype dtype)
{
    ng_shape shape = ids->shape;
    shape.dim[shape.rank++] = 1;
    ng_tensor *mask = ng_full(tape, dtype, shape, 0);
    const int64_t *id = ids->data;
    for (int64_t i = 0; mask && i < ids->size; i++)
        if (id[i] == padding) ng_tensor_store(mask, i, 1);
    return mask;
}

static ng_tensor *embedding_forward(ng_module *self, ng_tape *tape, ng_tensor *ids)
{
    const embedding *layer = (const embedding *)self;
    ng_tensor *y = ng_gather_rows(tape, ng_parameter_value(tape, layer->weight), ids);
    if (!y || !layer->options.padded) return y;
    ng_tensor *mask = padding_mask(tape, ids, layer->options.padding, y->dtype);
    return ng_where(tape, mask, ng_detach(tape, y, .by_definition = true), y);
}

static const ng_module_class embedding_class = {.name = "Embedding",
                                                .size = sizeof(embedding),
                                                .forward = embedding_forward,
                                                .init = embedding_init};

ng_module *ng_embedding_new_with(int64_t count, ng_embedding_new_options options)
{
    static const char function[] = "ng_embedding_new";
    const int64_t id = options.padding;
    if (options.padded && (id < 0 || id >= count)) {
        ng_fail(NG_EVALUE, "%s: padding is %lld, expected an id from 0 to %lld", function,
                (long long)id, (long long)count - 1);
        return NULL;
    }
    return embedding_create(function, &embedding_class, count, options);
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
                                                .init = embedding_init};

ng_module *ng_learned_positions_new_with(int64_t length, ng_embedding_new_options options)
{
    static const char function[] = "ng_learned_positions_new";
    const bool padded = options.padded || options.padding != 0;
    return ng_option_idle(function, "padded", padded, "in ng_embedding_new")
               ? embedding_create(function, &positions_class, length, options)
               : NULL;
}
