/* Attention: y = dropout(softmax(scale q k^T)) v for each head, the softmax over the keys that a
 * query sees.
 *
 * Heads have either a dimension of their own, q (N, H, T, D), or are parts of the features, q
 * (N, T, H D), as a Linear computes them; ng_self_attention reads q, k and v from one tensor
 * (N, T, 3 H D). The kernels take strides, so that no layout is copied to another.
 *
 * Saved for the backward pass: y, and of each row of scores its maximum and sum e^(score - max). It
 * computes the T x T weights again, a block at a time (Dao et al. 2022), and the mask of dropout
 * from its seed. For (8, 64, 64) with its backward pass this takes 0.3 to 0.4 of the time of the
 * composed ops, and no T x T matrix is kept. */
#include "kernels/dropout.h"
#include "ops/op.h"
#include <math.h>

typedef struct {
    ng_attention_shape shape;
    bool apart;   /* heads in a dimension of their own */
    bool packed;  /* q, k and v in one tensor, the first input */
    double *kept; /* (N, H, 2, T), the tape's: see kernels.def */
} attention_attributes;

static size_t packed_bytes(const attention_attributes *saved, const ng_tensor *qkv, int part)
{
    return (size_t)(part * saved->shape.heads * saved->shape.dim) * ng_dtype_bytes(qkv->dtype);
}

/* ---- Definition --------------------------------------------------------------------------- */

/* Input `part` of q, k, v as (N, H, rows, D). */
static ng_tensor *heads_of(ng_tape *tape, const attention_attributes *saved, ng_tensor *const *in,
                           int part)
{
    const ng_attention_shape *s = &saved->shape;
    if (saved->apart) return in[part];
    const int64_t width = s->heads * s->dim, rows = part == 0 ? s->queries : s->keys;
    ng_tensor *x = in[saved->packed ? 0 : part];
    if (saved->packed) x = ng_slice(tape, x, -1, part * width, (part + 1) * width);
    x = ng_reshape(tape, x, NG_SHAPE(s->batches, rows, s->heads, s->dim));
    return ng_permute(tape, x, NG_AXES(0, 2, 1, 3));
}

/* 1 where query t sees key j: (T, S), or with a mask (1 or N, 1 or H, T, S). */
static ng_tensor *visible(ng_tape *tape, const attention_attributes *saved, ng_tensor *mask,
                          ng_dtype dtype)
{
    const ng_attention_shape *s = &saved->shape;
    ng_tensor *sees = ng_result_full(tape, dtype, NG_SHAPE(s->queries, s->keys), 1);
    if (s->causal) sees = ng_tril(tape, sees, s->keys - s->queries);
    if (ng_is_none(mask)) return sees;
    const ng_shape shape = mask->shape;
    if (shape.rank == 2) mask = ng_reshape(tape, mask, NG_SHAPE(s->batches, 1, 1, s->keys));
    if (shape.rank == 3)
        mask = ng_reshape(tape, mask, NG_SHAPE(shape.dim[0], 1, s->queries, s->keys));
    return ng_where(tape, mask, sees, ng_full(tape, dtype, NG_SCALAR, 0));
}

/* (N, H, T, S): 0 where dropout removes a weight, else 1 / (1 - p). */
static ng_tensor *drop_mask(ng_tape *tape, const ng_attention_shape *s, ng_dtype dtype)
{
    const uint32_t limit = ng_drop_limit(s);
    const double kept = 1 / (1 - s->dropout);
    ng_tensor *mask = ng_result(tape, dtype, NG_SHAPE(s->batches, s->heads, s->queries, s->keys));
    const int64_t rows = mask && mask->size > 0 ? mask->size / s->keys : 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t key = 0; key < s->keys; key++) {
            const ng_drop_key random = ng_drop_key_of(s, row / s->queries, key);
            const bool dropped = ng_drop_bits(random, (uint32_t)(row % s->queries)) < limit;
            ng_tensor_store(mask, row * s->keys + key, dropped ? 0 : kept);
        }
    return mask;
}

/* Attention made of ops: the definition, and what runs where .weights are asked for or the mask is
 * not one of keys. A query that sees no key has output 0: its weights are all 0, and their sum, 0,
 * is replaced by 1 before the division. */
static ng_tensor *attention_composed(ng_tape *tape, const attention_attributes *saved,
                                     ng_tensor *const *in, ng_shape shape, ng_tensor **kept)
{
    const ng_dtype dtype = in[0]->dtype;
    ng_tensor *q = heads_of(tape, saved, in, 0), *k = heads_of(tape, saved, in, 1);
    ng_tensor *v = heads_of(tape, saved, in, 2);
    ng_tensor *sees = visible(tape, saved, in[3], dtype);
    ng_tensor *zero = ng_full(tape, dtype, NG_SCALAR, 0), *one = ng_full(tape, dtype, NG_SCALAR, 1);

    ng_tensor *scores = ng_matmul(tape, q, k, .transpose_b = true);
    scores = ng_mul_scalar(tape, scores, saved->shape.scale);
    scores = ng_where(tape, sees, scores, ng_full(tape, dtype, NG_SCALAR, -ng_largest(dtype)));
    ng_tensor *weights = ng_exp(tape, ng_shifted(tape, scores, -1));
    weights = ng_where(tape, sees, weights, zero);
    ng_tensor *sum = ng_sum(tape, weights, .axes = NG_AXES(-1), .keepdim = true);
    sum = ng_where(tape, ng_detach(tape, sum), sum, one);
    weights = ng_div(tape, weights, sum);
    if (saved->shape.dropout > 0)
        weights = ng_mul(tape, weights, drop_mask(tape, &saved->shape, dtype));
    ng_tensor *y = ng_matmul(tape, weights, v);
    if (!saved->apart) y = ng_reshape(tape, ng_permute(tape, y, NG_AXES(0, 2, 1, 3)), shape);
    if (y && kept) *kept = weights;
    return y;
}

static ng_tensor *attention_definition(ng_tape *tape, const ng_node *node)
{
    return attention_composed(tape, node->attributes, node->inputs, node->output->shape, NULL);
}

/* ---- Backward ----------------------------------------------------------------------------- */

/* The inputs of the kernel; q, k and v may be parts of one tensor. */
static ng_attention_inputs inputs_of(const attention_attributes *saved, ng_tensor *const *in)
{
    const char *q = in[0]->data;
    if (!saved->packed) return (ng_attention_inputs){q, in[1]->data, in[2]->data, in[3]->data};
    return (ng_attention_inputs){q, q + packed_bytes(saved, in[0], 1),
                                 q + packed_bytes(saved, in[0], 2), in[3]->data};
}

static ng_status attention_op_backward(ng_tape *tape, const ng_node *node, const ng_tensor *dy,
                                       ng_slot *dx)
{
    (void)tape;
    const attention_attributes *saved = node->attributes;
    const ng_tensor *const *in = (const ng_tensor *const *)node->inputs;
    const ng_kernels *kernels = ng_kernels_for(dy->dtype);
    const ng_attention_inputs inputs = inputs_of(saved, node->inputs);
    ng_attention_gradients gradients = {dx[0], dx[1], dx[2]};
    if (saved->packed) {
        gradients.dk = gradients.dv = gradients.dq;
        if (gradients.dk.data)
            gradients.dk.data = (char *)gradients.dk.data + packed_bytes(saved, in[0], 1);
        if (gradients.dv.data)
            gradients.dv.data = (char *)gradients.dv.data + packed_bytes(saved, in[0], 2);
    }
    if (dx[3].data && !dx[3].accumulate) kernels->fill(dx[3].data, in[3]->size, 0);
    kernels->attention_backward(&saved->shape, inputs, node->output->data, saved->kept, dy->data,
                                gradients);
    return NG_OK;
}

static const ng_op attention_op = {
    .name = "attention", .backward = attention_op_backward, .definition = attention_definition};

/* ---- Shape rule --------------------------------------------------------------------------- */

static ng_head_strides strides_apart(int64_t heads, int64_t rows, int64_t dim)
{
    return (ng_head_strides){.batch = heads * rows * dim, .head = rows * dim, .row = dim};
}

static ng_head_strides strides_beside(int64_t rows, int64_t dim, int64_t width)
{
    return (ng_head_strides){.batch = rows * width, .head = dim, .row = width};
}

/* Each of q, k and v (N, H, rows, D). */
static bool shape_apart(const ng_tensor *q, const ng_tensor *k, const ng_tensor *v,
                        ng_attention_shape *s)
{
    const ng_shape a = q->shape, b = k->shape;
    if (a.rank != 4 || b.rank != 4 || !ng_shape_equal(b, v->shape) || a.dim[0] != b.dim[0] ||
        a.dim[1] != b.dim[1] || a.dim[3] != b.dim[3]) {
        ng_fail(NG_ESHAPE,
                "ng_attention: q %s, k %s, v %s, expected (N, H, T, D), and (N, H, S, D) for k and "
                "v (with .heads: (N, T, H D))",
                ng_shape_print(a).text, ng_shape_print(b).text, ng_shape_print(v->shape).text);
        return false;
    }
    s->batches = a.dim[0], s->heads = a.dim[1], s->queries = a.dim[2], s->dim = a.dim[3];
    s->keys = b.dim[2];
    s->q = s->y = strides_apart(s->heads, s->queries, s->dim);
    s->k = s->v = strides_apart(s->heads, s->keys, s->dim);
    return true;
}

static bool heads_divide(const char *function, int64_t heads, int64_t features)
{
    if (heads > 0 && features % heads == 0) return true;
    ng_fail(NG_EVALUE, "%s: heads is %lld, expected a positive number that divides %lld features",
            function, (long long)heads, (long long)features);
    return false;
}

static bool kv_heads_divide(const char *function, int64_t kv_heads, int64_t heads)
{
    if (kv_heads > 0 && heads > 0 && heads % kv_heads == 0) return true;
    ng_fail(NG_EVALUE, "%s: kv_heads is %lld, expected a divisor of %lld heads", function,
            (long long)kv_heads, (long long)heads);
    return false;
}

/* q (N, T, H D), k and v (N, S, H D). */
static bool shape_beside(const ng_tensor *q, const ng_tensor *k, const ng_tensor *v, int64_t heads,
                         ng_attention_shape *s)
{
    const ng_shape a = q->shape, b = k->shape;
    if (a.rank != 3 || b.rank != 3 || !ng_shape_equal(b, v->shape) || a.dim[0] != b.dim[0] ||
        a.dim[2] != b.dim[2]) {
        ng_fail(NG_ESHAPE,
                "ng_attention: q %s, k %s, v %s, expected (N, T, features), and (N, S, features) "
                "for k and v (without .heads: (N, H, T, D))",
                ng_shape_print(a).text, ng_shape_print(b).text, ng_shape_print(v->shape).text);
        return false;
    }
    if (!heads_divide("ng_attention", heads, a.dim[2])) return false;
    s->batches = a.dim[0], s->queries = a.dim[1], s->keys = b.dim[1];
    s->heads = heads, s->dim = a.dim[2] / heads;
    s->q = s->y = strides_beside(s->queries, s->dim, a.dim[2]);
    s->k = s->v = strides_beside(s->keys, s->dim, a.dim[2]);
    return true;
}

/* qkv (N, T, 3 H D). */
static bool shape_packed(const ng_tensor *qkv, int64_t heads, ng_attention_shape *s)
{
    const ng_shape a = qkv->shape;
    if (!ng_expect_shape(a.rank == 3 && a.dim[2] % 3 == 0, "ng_self_attention", "qkv", qkv,
                         "(N, T, 3 features)") ||
        !heads_divide("ng_self_attention", heads, a.dim[2] / 3))
        return false;
    s->batches = a.dim[0], s->queries = s->keys = a.dim[1];
    s->heads = heads, s->dim = a.dim[2] / 3 / heads;
    s->q = s->k = s->v = strides_beside(s->queries, s->dim, a.dim[2]);
    s->y = strides_beside(s->queries, s->dim, a.dim[2] / 3);
    return true;
}

/* ---- Heads that share keys and values ------------------------------------------------------ */

/* Whether k and v have kv_heads heads as wide as q's, and these divide `heads`. */
static bool kv_heads_fit(const ng_tensor *q, const ng_tensor *k, const ng_tensor *v, int64_t heads,
                         int64_t kv_heads)
{
    const ng_shape a = q->shape, b = k->shape;
    if (!kv_heads_divide("ng_attention", kv_heads, heads)) return false;
    const bool apart = a.rank == 4, alike = a.rank == b.rank && ng_shape_equal(b, v->shape);
    if (alike && apart && b.dim[1] == kv_heads) return true;
    if (alike && a.rank == 3 && a.dim[2] % heads == 0 && b.dim[2] == a.dim[2] / heads * kv_heads)
        return true;
    ng_fail(NG_ESHAPE,
            "ng_attention: q %s, k %s, v %s, expected k and v with %lld heads for q's %lld",
            ng_shape_print(a).text, ng_shape_print(b).text, ng_shape_print(v->shape).text,
            (long long)kv_heads, (long long)heads);
    return false;
}

/* k or v with each head repeated H / G times, for the heads of q that share it:
 * (N, G, S, D) -> (N, H, S, D), or (N, S, G D) -> (N, S, H D). */
static ng_tensor *repeated(ng_tape *tape, ng_tensor *x, int64_t heads, int64_t kv_heads)
{
    const ng_shape s = x->shape;
    const int64_t each = heads / kv_heads, width = s.dim[s.rank - 1];
    if (s.rank == 4) {
        x = ng_reshape(tape, x, NG_SHAPE(s.dim[0], kv_heads, 1, s.dim[2], width));
        x = ng_broadcast_to(tape, x, NG_SHAPE(s.dim[0], kv_heads, each, s.dim[2], width));
        return ng_reshape(tape, x, NG_SHAPE(s.dim[0], heads, s.dim[2], width));
    }
    x = ng_reshape(tape, x, NG_SHAPE(s.dim[0], s.dim[1], kv_heads, 1, width / kv_heads));
    x = ng_broadcast_to(tape, x, NG_SHAPE(s.dim[0], s.dim[1], kv_heads, each, width / kv_heads));
    return ng_reshape(tape, x, NG_SHAPE(s.dim[0], s.dim[1], each * width));
}

/* ---- Forward ------------------------------------------------------------------------------ */

static bool one_or(int64_t dim, int64_t count) { return dim == 1 || dim == count; }

/* Whether the mask is of keys, or of queries and keys, for all heads or for each. */
static bool attention_mask_fits(const char *function, const ng_tensor *mask,
                                const ng_attention_shape *s)
{
    if (ng_is_none(mask)) return true;
    const ng_shape m = mask->shape;
    const bool pairs = (m.rank == 3 || m.rank == 4) && m.dim[m.rank - 2] == s->queries;
    if (m.rank == 2 ? m.dim[0] == s->batches && m.dim[1] == s->keys
                    : pairs && m.dim[m.rank - 1] == s->keys && one_or(m.dim[0], s->batches) &&
                          (m.rank == 3 || one_or(m.dim[1], s->heads)))
        return true;
    ng_fail(NG_ESHAPE,
            "%s: mask is %s, expected (%lld, %lld), or (1 or N, T, S) or (1 or N, 1 or H, T, S) "
            "with T = %lld",
            function, ng_shape_print(m).text, (long long)s->batches, (long long)s->keys,
            (long long)s->queries);
    return false;
}

static ng_tensor *attention_record(const char *function, ng_tape *tape, ng_tensor *const inputs[4],
                                   attention_attributes saved, const ng_attention_options *options)
{
    ng_attention_shape *s = &saved.shape;
    s->causal = options->causal;
    s->scale = ng_option(options->scale, s->dim > 0 ? 1 / sqrt((double)s->dim) : 1);
    s->dropout = options->dropout;
    const int64_t rows = ng_shape_size(function, NG_SHAPE(s->batches, s->heads, s->queries));
    if (rows < 0 || !ng_option_range(function, "scale", s->scale, -HUGE_VAL, HUGE_VAL) ||
        !ng_option_range(function, "dropout", s->dropout, 0, 1) ||
        !attention_mask_fits(function, inputs[3], s))
        return NULL;
    ng_rng rng = tape->rng; /* a call that fails takes nothing from the stream */
    if (s->dropout > 0) s->seed = ng_rng_next(&rng);

    const ng_tensor *q = inputs[0];
    ng_shape shape = q->shape;
    if (saved.packed) shape.dim[2] /= 3;
    if (options->weights || (!ng_is_none(inputs[3]) && inputs[3]->shape.rank > 2)) {
        ng_tensor *composed = attention_composed(tape, &saved, inputs, shape, options->weights);
        if (composed) tape->rng = rng;
        return composed;
    }
    ng_tensor *y = ng_result(tape, q->dtype, shape);
    if (!y) return NULL;
    if (y->size > 0) saved.kept = ng_tape_memory(tape, 2 * (size_t)rows * sizeof *saved.kept);
    if (y->size > 0 && !saved.kept) return NULL;
    if (y->size > 0)
        ng_kernels_for(q->dtype)->attention(s, inputs_of(&saved, inputs), y->data, saved.kept);
    y = ng_record_own(tape, &attention_op, y, inputs, 4, &saved, sizeof saved);
    if (y) tape->rng = rng;
    return y;
}

ng_tensor *ng_attention_with(ng_tape *tape, ng_tensor *q, ng_tensor *k, ng_tensor *v,
                             ng_attention_options options)
{
    ng_tensor *inputs[] = {q, k, v, options.mask};
    if (!ng_accepts_optional("ng_attention", tape, 3, 4, inputs, NULL)) return NULL;
    if (options.kv_heads != 0) {
        const int64_t heads =
            options.heads == 0 && q->shape.rank == 4 ? q->shape.dim[1] : options.heads;
        if (!kv_heads_fit(q, k, v, heads, options.kv_heads)) return NULL;
        inputs[1] = k = repeated(tape, k, heads, options.kv_heads);
        inputs[2] = v = repeated(tape, v, heads, options.kv_heads);
        if (!k || !v) return NULL;
    }
    attention_attributes saved = {.apart = options.heads == 0};
    const bool fits = saved.apart ? shape_apart(q, k, v, &saved.shape)
                                  : shape_beside(q, k, v, options.heads, &saved.shape);
    return fits ? attention_record("ng_attention", tape, inputs, saved, &options) : NULL;
}

/* qkv (N, T, (H + 2 G) D) */
static ng_tensor *self_attention_shared(ng_tape *tape, ng_tensor *qkv,
                                        const ng_self_attention_options *o)
{
    static const char function[] = "ng_self_attention";
    const ng_shape shape = qkv->shape;
    if (!kv_heads_divide(function, o->kv_heads, o->heads)) return NULL;
    const int64_t width = shape.rank == 3 ? shape.dim[2] : -1;
    const int64_t all = o->heads <= INT32_MAX ? o->heads + 2 * o->kv_heads : INT64_MAX;
    if (width < 0 || width % all != 0) {
        ng_fail(NG_ESHAPE,
                "%s: qkv is %s, expected (N, T, (H + 2 G) D) for %lld heads of q, %lld of k and v",
                function, ng_shape_print(shape).text, (long long)o->heads, (long long)o->kv_heads);
        return NULL;
    }
    const int64_t at_k = width / all * o->heads, at_v = at_k + width / all * o->kv_heads;
    ng_tensor *k = ng_slice(tape, qkv, -1, at_k, at_v), *v = ng_slice(tape, qkv, -1, at_v, width);
    return ng_attention(tape, ng_slice(tape, qkv, -1, 0, at_k), k, v, o->mask, .heads = o->heads,
                        .kv_heads = o->kv_heads, .scale = o->scale, .causal = o->causal,
                        .dropout = o->dropout, .weights = o->weights);
}

ng_tensor *ng_self_attention_with(ng_tape *tape, ng_tensor *qkv, ng_self_attention_options options)
{
    ng_tensor *const inputs[] = {qkv, NG_NONE, NG_NONE, options.mask};
    if (!ng_accepts_optional("ng_self_attention", tape, 1, 4, inputs, NULL)) return NULL;
    if (options.kv_heads != 0 && options.kv_heads != options.heads)
        return self_attention_shared(tape, qkv, &options);
    attention_attributes saved = {.packed = true};
    if (!shape_packed(qkv, options.heads, &saved.shape)) return NULL;
    const ng_attention_options same = {.scale = options.scale,
                                       .causal = options.causal,
                                       .dropout = options.dropout,
                                       .weights = options.weights};
    return attention_record("ng_self_attention", tape, inputs, saved, &same);
}
