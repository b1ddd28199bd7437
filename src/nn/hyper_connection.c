/* Manifold-constrained hyper-connections: residual streams that doubly stochastic matrices mix,
 * with coefficients made of the streams. */
#include "nn/hyper_connection.h"
#include "core/functions.h"
#include <math.h>

typedef struct {
    ng_module base;
    int64_t dim, streams;
    ng_tensor *weight, *bias; /* (2 n + n^2, n dim), (2 n + n^2): of pre, post and res */
    ng_tensor *alpha;         /* (3): of each */
} hyper_connection;

/* Elements first .. end - 1 of alpha xhat W^T + b, which belong to pre, post or res. */
static ng_tensor *coefficients(const hyper_connection *layer, ng_tape *tape, ng_tensor *logits,
                               int part, int64_t first, int64_t end)
{
    ng_tensor *alpha = ng_parameter_value(tape, layer->alpha);
    ng_tensor *bias = ng_parameter_value(tape, layer->bias);
    ng_tensor *own = ng_slice(tape, logits, -1, first, end);
    own = ng_mul(tape, own, ng_slice(tape, alpha, 0, part, part + 1));
    return ng_add(tape, own, ng_slice(tape, bias, 0, first, end));
}

ng_tensor *ng_hyper_read(const ng_module *connection, ng_tape *tape, ng_tensor *x,
                         ng_hyper_streams *rest)
{
    const hyper_connection *layer = (const hyper_connection *)connection;
    const int64_t n = layer->streams, dim = layer->dim;
    if (!x || !ng_features_fit(connection, x, n * dim)) return NULL;
    ng_shape shape = x->shape;
    const int64_t rows = ng_shape_span(shape, 0, shape.rank - 1);
    ng_tensor *flat = ng_rms_norm(tape, ng_reshape(tape, x, NG_SHAPE(rows, n * dim)), NG_NONE);
    ng_tensor *logits = ng_linear(tape, flat, ng_parameter_value(tape, layer->weight), NG_NONE);
    ng_tensor *pre = ng_sigmoid(tape, coefficients(layer, tape, logits, 0, 0, n));
    ng_tensor *post = ng_sigmoid(tape, coefficients(layer, tape, logits, 1, n, 2 * n));
    ng_tensor *res = coefficients(layer, tape, logits, 2, 2 * n, 2 * n + n * n);
    *rest = (ng_hyper_streams){
        .streams = ng_reshape(tape, x, NG_SHAPE(rows, n, dim)),
        .post = ng_mul_scalar(tape, ng_reshape(tape, post, NG_SHAPE(rows, n, 1)), 2),
        .res = ng_sinkhorn(tape, ng_reshape(tape, res, NG_SHAPE(rows, n, n))),
        .shape = shape};
    shape.dim[shape.rank - 1] = dim;
    pre = ng_reshape(tape, pre, NG_SHAPE(rows, 1, n));
    return ng_reshape(tape, ng_matmul(tape, pre, rest->streams), shape);
}

ng_tensor *ng_hyper_write(const ng_hyper_streams *rest, ng_tape *tape, ng_tensor *y)
{
    const ng_shape s = rest->streams ? rest->streams->shape : NG_SCALAR;
    y = ng_mul(tape, rest->post, ng_reshape(tape, y, NG_SHAPE(s.dim[0], 1, s.dim[2])));
    y = ng_add(tape, ng_matmul(tape, rest->res, rest->streams), y);
    return ng_reshape(tape, y, rest->shape);
}

/* With all streams equal the block is then pre-norm's, up to alpha: pre is 1 / n, post is 1 and
 * res the unit matrix but for e^-8. */
static void hyper_connection_init(ng_module *self, ng_rng *rng)
{
    hyper_connection *layer = (hyper_connection *)self;
    const int64_t n = layer->streams;
    ng_fill_normal(layer->weight, 0, 1 / sqrt((double)(n * layer->dim)), rng);
    for (int64_t i = 0; i < n; i++) ng_set(layer->bias, i, -ng_ln((double)n - 1));
    for (int64_t i = 0; i < n * n; i++) ng_set(layer->bias, 2 * n + i, i % (n + 1) ? -8 : 0);
}

static const ng_module_class hyper_connection_class = {
    .name = "HyperConnection", .size = sizeof(hyper_connection), .init = hyper_connection_init};

static const ng_setting hyper_connection_settings[] = {
    {NG_MEMBER(hyper_connection, dim), NG_IS_COUNT, .unit = "features", .bare = true},
    {NG_MEMBER(hyper_connection, streams), NG_IS_COUNT, .unit = "streams"},
    {0}};

ng_module *ng_hyper_connection_new(int64_t dim, int64_t streams)
{
    hyper_connection *self =
        ng_layer_new("ng_transformer_block_new", &hyper_connection_class, hyper_connection_settings,
                     &(hyper_connection){.dim = dim, .streams = streams});
    if (!self) return NULL;
    const int64_t count = streams * (2 + streams);
    self->weight = ng_module_add_parameter(&self->base, "weight", NG_SHAPE(count, streams * dim));
    self->bias = ng_module_add_parameter(&self->base, "bias", NG_SHAPE(count));
    self->alpha = ng_module_add_parameter(&self->base, "alpha", NG_SHAPE(3), .value = 0.01);
    return ng_module_built(&self->base);
}
