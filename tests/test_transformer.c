/* The transformer: attention against plain loops and its definition, every module against PyTorch
 * in double, what it promises about masks, positions, placements, threads, memory and errors. */
#include "golden.h"
#include "support.h"

#include "kernels/dropout.h"
#include "kernels/kernels.h"
#include "ops/op.h"

/* ---- The kernels of every table against plain loops ------------------------------------------ */

static const char *const isas[] = {"baseline", "avx2", "avx512"};

/* One array of the table's dtype, and the same values in double. */
typedef struct {
    void *raw;
    double *values;
    int64_t n;
} array;

static array array_of(ng_dtype dtype, int64_t n, ng_rng *rng)
{
    array a = {calloc((size_t)n, ng_dtype_bytes(dtype)), calloc((size_t)n, sizeof(double)), n};
    ck_assert(a.raw && a.values);
    for (int64_t i = 0; i < n; i++) {
        const double value = (double)(float)ng_rng_normal(rng); /* the same number in both */
        a.values[i] = value;
        if (dtype == NG_F32)
            ((float *)a.raw)[i] = (float)value;
        else
            ((double *)a.raw)[i] = value;
    }
    return a;
}

static double at(ng_dtype dtype, const void *x, int64_t i)
{
    return dtype == NG_F32 ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

static void array_free(array a) { free(a.raw), free(a.values); }

static bool sees(const ng_attention_shape *s, const double *mask, int64_t batch, int64_t query,
                 int64_t key)
{
    if (mask && mask[batch * s->keys + key] == 0) return false;
    return !s->causal || key <= query + s->keys - s->queries;
}

static int64_t offset(ng_head_strides strides, int64_t batch, int64_t head, int64_t row)
{
    return batch * strides.batch + head * strides.head + row * strides.row;
}

/* What dropout multiplies a weight by. */
static double factor(const ng_attention_shape *s, int64_t unit, int64_t query, int64_t key)
{
    const uint32_t bits = ng_drop_bits(ng_drop_key_of(s, unit, key), (uint32_t)query);
    return bits < ng_drop_limit(s) ? 0 : 1 / (1 - s->dropout);
}

/* y, dq, dk and dv of one query, the last two added to what stands there. */
static void plain_query(const ng_attention_shape *s, int64_t batch, int64_t head, int64_t query,
                        const double *const in[5], double *const out[4])
{
    const double *q = in[0] + offset(s->q, batch, head, query);
    const double *dy = in[4] + offset(s->y, batch, head, query);
    long double *weights = calloc((size_t)s->keys + 1, sizeof *weights), max = -HUGE_VALL, sum = 0;
    for (int64_t j = 0; j < s->keys; j++) {
        const double *k = in[1] + offset(s->k, batch, head, j);
        long double score = 0;
        for (int64_t d = 0; d < s->dim; d++) score += (long double)q[d] * (long double)k[d];
        weights[j] = score * (long double)s->scale;
        if (sees(s, in[3], batch, query, j) && weights[j] > max) max = weights[j];
    }
    for (int64_t j = 0; j < s->keys; j++) {
        weights[j] = sees(s, in[3], batch, query, j) ? expl(weights[j] - max) : 0;
        sum += weights[j];
    }
    double *y = out[0] + offset(s->y, batch, head, query);
    long double delta = 0;
    double *kept = calloc((size_t)s->keys + 1, sizeof *kept);
    for (int64_t j = 0; j < s->keys; j++) kept[j] = factor(s, batch * s->heads + head, query, j);
    for (int64_t j = 0; j < s->keys; j++) weights[j] = sum == 0 ? 0 : weights[j] / sum;
    for (int64_t d = 0; d < s->dim; d++) {
        long double value = 0;
        for (int64_t j = 0; j < s->keys; j++)
            value += (long double)kept[j] * weights[j] *
                     (long double)in[2][offset(s->v, batch, head, j) + d];
        y[d] = (double)value;
        delta += value * (long double)dy[d];
    }
    double *dq = out[1] + offset(s->q, batch, head, query);
    for (int64_t j = 0; j < s->keys; j++) {
        const double *k = in[1] + offset(s->k, batch, head, j);
        const double *v = in[2] + offset(s->v, batch, head, j);
        double *dk = out[2] + offset(s->k, batch, head, j);
        double *dv = out[3] + offset(s->v, batch, head, j);
        long double dp = 0;
        for (int64_t d = 0; d < s->dim; d++) dp += (long double)dy[d] * (long double)v[d];
        const double ds = (double)(weights[j] * ((long double)kept[j] * dp - delta)) * s->scale;
        for (int64_t d = 0; d < s->dim; d++) {
            dq[d] += ds * k[d];
            dk[d] += ds * q[d];
            dv[d] += kept[j] * (double)weights[j] * dy[d];
        }
    }
    free(weights), free(kept);
}

static void expect_array(const char *what, ng_dtype dtype, const array *actual, const double *plain)
{
    const double tolerance = dtype == NG_F32 ? 2e-5 : 1e-13;
    for (int64_t i = 0; i < actual->n; i++) {
        char label[64];
        snprintf(label, sizeof label, "%s[%lld]", what, (long long)i);
        expect_near(__FILE__, __LINE__, label, at(dtype, actual->raw, i), plain[i],
                    tolerance * (1 + fabs(plain[i])));
    }
}

static void expect_plain(const ng_kernels *kernels, ng_dtype dtype, ng_attention_shape s, bool mask)
{
    ng_rng rng = ng_rng_seeded(5);
    const int64_t units = s.batches * s.heads;
    s.q = s.y = (ng_head_strides){s.queries * s.heads * s.dim, s.dim, s.heads * s.dim};
    s.k = s.v = (ng_head_strides){s.heads * s.keys * s.dim, s.keys * s.dim, s.dim};
    array q = array_of(dtype, units * s.queries * s.dim, &rng);
    array k = array_of(dtype, units * s.keys * s.dim, &rng), v = array_of(dtype, k.n, &rng);
    array seen = array_of(dtype, s.batches * s.keys, &rng), dy = array_of(dtype, q.n, &rng);
    for (int64_t i = 0; i < seen.n; i++) {
        const bool one = i / s.keys != 1 && i % 3 != 1; /* the second batch has no key at all */
        seen.values[i] = one;
        if (dtype == NG_F32)
            ((float *)seen.raw)[i] = one;
        else
            ((double *)seen.raw)[i] = one;
    }
    array y = array_of(dtype, q.n, &rng), dq = array_of(dtype, q.n, &rng);
    array dk = array_of(dtype, k.n, &rng), dv = array_of(dtype, k.n, &rng);
    double *kept = calloc(2 * (size_t)(units * s.queries), sizeof *kept);
    double *plain[4] = {calloc((size_t)q.n, sizeof(double)), calloc((size_t)q.n, sizeof(double)),
                        calloc((size_t)k.n, sizeof(double)), calloc((size_t)k.n, sizeof(double))};
    memcpy(plain[2], dk.values, (size_t)k.n * sizeof(double)); /* dk is added to what is there */
    const double *const in[5] = {q.values, k.values, v.values, mask ? seen.values : NULL,
                                 dy.values};
    for (int64_t unit = 0; unit < units; unit++)
        for (int64_t t = 0; t < s.queries; t++)
            plain_query(&s, unit / s.heads, unit % s.heads, t, in, plain);

    const ng_attention_inputs given = {q.raw, k.raw, v.raw, mask ? seen.raw : NULL};
    kernels->attention(&s, given, y.raw, kept);
    kernels->attention_backward(
        &s, given, y.raw, kept, dy.raw,
        (ng_attention_gradients){{dq.raw, false}, {dk.raw, true}, {dv.raw, false}});
    expect_array("y", dtype, &y, plain[0]);
    expect_array("dq", dtype, &dq, plain[1]);
    expect_array("dk", dtype, &dk, plain[2]);
    expect_array("dv", dtype, &dv, plain[3]);

    array_free(q), array_free(k), array_free(v), array_free(seen), array_free(dy);
    array_free(y), array_free(dq), array_free(dk), array_free(dv);
    free(kept);
    for (int i = 0; i < 4; i++) free(plain[i]);
}

/* Tails of every kind, several blocks of queries and keys, heads deeper than a block. */
static const ng_attention_shape kernel_shapes[] = {
    {.batches = 2, .heads = 1, .queries = 1, .keys = 1, .dim = 1, .scale = 1},
    {.batches = 2, .heads = 2, .queries = 5, .keys = 7, .dim = 3, .scale = 0.6},
    {.batches = 2, .heads = 1, .queries = 64, .keys = 64, .dim = 32, .scale = 0.2, .causal = true},
    {.batches = 1, .heads = 2, .queries = 70, .keys = 131, .dim = 19, .scale = 0.3, .causal = true},
    {.batches = 2, .heads = 1, .queries = 130, .keys = 65, .dim = 16, .scale = 0.3},
    {.batches = 1, .heads = 1, .queries = 67, .keys = 66, .dim = 131, .scale = 0.1},
    {.batches = 2,
     .heads = 3,
     .queries = 5,
     .keys = 7,
     .dim = 3,
     .scale = 0.6,
     .dropout = 0.5,
     .seed = 1},
    {.batches = 1,
     .heads = 2,
     .queries = 70,
     .keys = 131,
     .dim = 19,
     .scale = 0.3,
     .causal = true,
     .dropout = 0.2,
     .seed = UINT64_MAX},
};
#define KERNEL_SHAPES ((int)(sizeof kernel_shapes / sizeof kernel_shapes[0]))

START_TEST(attention_kernels_are_the_plain_formula)
{
    for (int i = 0; i < 6; i++) {
        const ng_dtype dtype = i % 2 ? NG_F64 : NG_F32;
        const ng_kernels *kernels = ng_kernels_of(isas[i / 2], dtype);
        if (!kernels) continue;
        expect_plain(kernels, dtype, kernel_shapes[_i], false);
        expect_plain(kernels, dtype, kernel_shapes[_i], true);
    }
}
END_TEST

/* Rows that are no whole number of vectors; gradients that are added; what overflows e^-x. */
START_TEST(swiglu_kernels_are_the_plain_formula)
{
    enum { ROWS = 5, N = 37, SIZE = ROWS * N };
    for (int i = 0; i < 6; i++) {
        const ng_dtype dtype = i % 2 ? NG_F64 : NG_F32;
        const ng_kernels *kernels = ng_kernels_of(isas[i / 2], dtype);
        if (!kernels) continue;
        ng_rng rng = ng_rng_seeded(5);
        array x = array_of(dtype, 2 * SIZE, &rng), dy = array_of(dtype, SIZE, &rng);
        array y = array_of(dtype, SIZE, &rng), dx = array_of(dtype, 2 * SIZE, &rng);
        for (int64_t k = 0; k < 2 * N; k++) { /* the first row */
            x.values[k] = (k % 2 ? 900 : -900) * (1 + (double)(k % 5));
            if (dtype == NG_F32)
                ((float *)x.raw)[k] = (float)x.values[k];
            else
                ((double *)x.raw)[k] = x.values[k];
        }
        double plain_y[SIZE], plain_dx[2 * SIZE];
        for (int64_t k = 0; k < SIZE; k++) {
            const int64_t at = k / N * 2 * N + k % N;
            const double a = x.values[at], b = x.values[at + N], s = 1 / (1 + exp(-a));
            plain_y[k] = a * s * b;
            plain_dx[at] = dx.values[at] + dy.values[k] * b * s * (1 + a * (1 - s));
            plain_dx[at + N] = dx.values[at + N] + dy.values[k] * a * s;
        }
        kernels->swiglu(x.raw, y.raw, ROWS, N);
        kernels->swiglu_backward(x.raw, dy.raw, dx.raw, ROWS, N, true);
        expect_array("y", dtype, &y, plain_y);
        expect_array("dx", dtype, &dx, plain_dx);
        array_free(x), array_free(dy), array_free(y), array_free(dx);
    }
}
END_TEST

/* ---- The ops -------------------------------------------------------------------------------*/

static ng_tensor *normal(ng_dtype dtype, ng_shape shape, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    return ng_require_grad(ng_normal_new(dtype, shape, 0, 1, &rng));
}

START_TEST(attention_is_its_definition)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *qkv = normal(NG_F64, NG_SHAPE(2, 70, 36), 1);
    ng_tensor *mask = ng_ones_new(NG_F64, NG_SHAPE(2, 70));
    for (int64_t i = 0; i < 140; i++)
        if (i % 5 == 2 || i < 3) ng_set(mask, i, 0); /* the first queries see nothing */
    ng_tensor *dy = normal(NG_F64, NG_SHAPE(2, 70, 12), 2);
    ng_tensor *y =
        ng_self_attention(tape, qkv, mask, .heads = 3, .causal = true, .dropout = _i ? 0.3 : 0);
    assert_ok(y);
    ng_tensor *composed = ng_node_of(y)->op->definition(tape, ng_node_of(y));
    assert_tensors_close(y, composed, 1e-12);
    ck_assert(ng_at(y, 0, 2, 0) == 0);
    ck_assert(ng_at(y, 0, 3, 0) != 0);
    ng_tensor *fast = ng_gradient(tape, y, qkv, .cotangent = dy);
    ng_tensor *slow = ng_gradient(tape, composed, qkv, .cotangent = dy);
    assert_tensors_close(fast, slow, 1e-11);
    ng_tensor_free(qkv), ng_tensor_free(mask), ng_tensor_free(dy);
    ng_tape_free(tape);
}
END_TEST

/* Whatever stands in the memory that it is put into. */
START_TEST(no_gradient_flows_to_the_mask)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 5, 6), 3);
    ng_tensor *ones = ng_require_grad(ng_ones_new(NG_F64, NG_SHAPE(2, 5)));
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < 100; i++) assert_ok(ng_full(tape, NG_F64, NG_SHAPE(100), 7));
        ng_tape_reset(tape);
        ng_tensor *mask = ng_mul_scalar(tape, ones, 2);
        assert_ok(ng_backward(tape, ng_sum(tape, ng_attention(tape, x, x, x, mask, .heads = 2))));
        for (int64_t i = 0; i < 10; i++) assert_close(ng_get(ng_grad(ones), i), 0, 0);
    }
    ng_tensor_free(x), ng_tensor_free(ones), ng_tape_free(tape);
}
END_TEST

/* The weights of attention themselves, (2, 2, T, T): of equal scores, against the identity. */
static ng_tensor *dropped_weights(ng_tape *tape, int64_t length, double dropout)
{
    const ng_shape shape = NG_SHAPE(2, 2, length, length);
    ng_tensor *zero = ng_full(tape, NG_F64, shape, 0), *one = ng_zeros_new(NG_F64, shape);
    for (int64_t row = 0; row < 4 * length; row++) ng_set(one, row * length + row % length, 1);
    ng_tensor *identity = ng_add(tape, zero, one);
    ng_tensor_free(one);
    return ng_attention(tape, zero, zero, identity, NG_NONE, .dropout = dropout);
}

START_TEST(dropout_of_weights_drops_its_share_and_scales_the_rest)
{
    enum { LENGTH = 150 };
    const double p = 0.3, kept = 1 / (0.7 * LENGTH), n = 4.0 * LENGTH * LENGTH;
    ng_tape *tape = ng_tape_new();
    ng_tensor *weights = dropped_weights(tape, LENGTH, p);
    int64_t dropped = 0, rows[LENGTH] = {0}, columns[LENGTH] = {0};
    for (int64_t i = 0; i < weights->size; i++) {
        const double weight = ng_get(weights, i);
        if (weight == 0) {
            dropped++;
            rows[i / LENGTH % LENGTH]++;
            columns[i % LENGTH]++;
        } else {
            assert_close(weight, kept, 1e-14);
        }
    }
    assert_near((double)dropped / n, p, 4 * sqrt(p * (1 - p) / n));
    for (int i = 0; i < LENGTH; i++) {
        const double count = 4 * LENGTH, off = 5 * sqrt(p * (1 - p) / count);
        assert_near((double)rows[i] / count, p, off);
        assert_near((double)columns[i] / count, p, off);
    }
    assert_near(ng_item(ng_mean(tape, weights)) * LENGTH, 1, 0.01); /* as without dropout */
    ng_tape_free(tape);
}
END_TEST

/* Of the next query, key, head and batch; and of the same in the next pass. */
START_TEST(dropped_weights_are_independent_of_their_neighbours)
{
    enum { LENGTH = 100 };
    const int64_t steps[] = {LENGTH, 1, LENGTH * LENGTH, 2 * LENGTH * LENGTH};
    const double p = 0.5;
    ng_tape *tape = ng_tape_new();
    ng_tensor *first = dropped_weights(tape, LENGTH, p), *next = dropped_weights(tape, LENGTH, p);
    for (int k = 0; k < 5; k++) {
        const int64_t step = k < 4 ? steps[k] : 0, n = first->size - step;
        int64_t both = 0;
        for (int64_t i = 0; i < n; i++)
            both += ng_get(first, i) == 0 && ng_get(k < 4 ? first : next, i + step) == 0;
        assert_near((double)both / (double)n, p * p, 5 * sqrt(p * p * (1 - p * p) / (double)n));
    }
    ng_tape_free(tape);
}
END_TEST

START_TEST(dropout_of_weights_follows_the_tape)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *qkv = normal(NG_F32, NG_SHAPE(2, 9, 12), 3);
#define DROPPED(p) ng_self_attention(tape, qkv, NG_NONE, .heads = 2, .dropout = p)
    ng_tape_seed(tape, 7);
    ng_tensor *a = DROPPED(0.5), *plain = DROPPED(0), *b = DROPPED(0.5);
    ck_assert_ptr_null(DROPPED(1));
    assert_error(NG_EVALUE, "ng_self_attention: dropout is 1, expected 0 <= dropout < 1");
    ng_tensor *c = DROPPED(0.5);
    ck_assert(memcmp(a->data, b->data, (size_t)a->size * sizeof(float)) != 0);
    ng_tape_seed(tape, 7); /* neither a probability of 0 nor an error takes from the stream */
    assert_same_bits(DROPPED(0.5), a);
    assert_same_bits(DROPPED(0.5), b);
    assert_same_bits(DROPPED(0.5), c);
    assert_same_bits(DROPPED(0), plain);
#undef DROPPED
    ng_tensor_free(qkv);
    ng_tape_free(tape);
}
END_TEST

START_TEST(one_packed_tensor_gives_what_its_parts_give)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *qkv = normal(NG_F64, NG_SHAPE(2, 9, 24), 3);
    ng_tensor *part[3], *apart[3];
    for (int i = 0; i < 3; i++) {
        part[i] = ng_slice(tape, qkv, -1, 8 * i, 8 * (i + 1));
        apart[i] =
            ng_permute(tape, ng_reshape(tape, part[i], NG_SHAPE(2, 9, 2, 4)), NG_AXES(0, 2, 1, 3));
    }
    ng_tensor *packed = ng_self_attention(tape, qkv, NG_NONE, .heads = 2, .causal = true);
    ng_tensor *beside =
        ng_attention(tape, part[0], part[1], part[2], NG_NONE, .heads = 2, .causal = true);
    ng_tensor *heads = ng_attention(tape, apart[0], apart[1], apart[2], NG_NONE, .causal = true);
    heads = ng_reshape(tape, ng_permute(tape, heads, NG_AXES(0, 2, 1, 3)), NG_SHAPE(2, 9, 8));
    assert_same_bits(packed, beside);
    assert_same_bits(packed, heads);
    ng_tensor *gradient = ng_gradient(tape, ng_sum(tape, ng_square(tape, packed)), qkv);
    assert_tensors_close(gradient, ng_gradient(tape, ng_sum(tape, ng_square(tape, beside)), qkv),
                         1e-13);
    assert_tensors_close(gradient, ng_gradient(tape, ng_sum(tape, ng_square(tape, heads)), qkv),
                         1e-13);
    ng_tensor_free(qkv);
    ng_tape_free(tape);
}
END_TEST

START_TEST(one_tensor_in_all_three_places_has_the_sum_of_gradients)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 5, 4), 4);
    ng_tensor *y = ng_attention(tape, x, x, x, NG_NONE, .heads = 2);
    ng_tensor *composed = ng_node_of(y)->op->definition(tape, ng_node_of(y));
    assert_tensors_close(ng_gradient(tape, ng_sum(tape, ng_square(tape, y)), x),
                         ng_gradient(tape, ng_sum(tape, ng_square(tape, composed)), x), 1e-12);
    ng_tensor_free(x);
    ng_tape_free(tape);
}
END_TEST

START_TEST(attention_to_no_key_is_zero_with_gradients_of_any_order)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *q = ng_require_grad(normal(NG_F64, NG_SHAPE(1, 2, 3, 4), 5));
    ng_tensor *none = ng_zeros_new(NG_F64, NG_SHAPE(1, 2, 0, 4));
    ng_tensor *y = ng_attention(tape, q, none, none, NG_NONE);
    ng_tensor *dq = ng_gradient(tape, y, q, .record = true);
    for (int i = 0; i < 24; i++) ck_assert(ng_get(y, i) == 0 && ng_get(dq, i) == 0);
    ng_tensor_free(q), ng_tensor_free(none);
    ng_tape_free(tape);
}
END_TEST

START_TEST(attention_passes_nan_on)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *qkv = normal(NG_F32, NG_SHAPE(1, 4, 6), 5);
    ng_set(qkv, 6 + 2, (double)NAN); /* in k of the second position */
    ng_tensor *y = ng_self_attention(tape, qkv, NG_NONE, .heads = 1, .causal = true);
    ck_assert(!isnan(ng_at(y, 0, 0, 0)));
    for (int t = 1; t < 4; t++) ck_assert(isnan(ng_at(y, 0, t, 0)));
    ng_tensor_free(qkv);
    ng_tape_free(tape);
}
END_TEST

START_TEST(large_scores_do_not_overflow)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *q = ng_full_new(NG_F32, NG_SHAPE(1, 1, 3, 2), 1e4);
    ng_tensor *v = normal(NG_F32, NG_SHAPE(1, 1, 3, 2), 6);
    ng_tensor *y = ng_attention(tape, q, q, v, NG_NONE);
    for (int d = 0; d < 2; d++)
        assert_near(ng_at(y, 0, 0, 2, d),
                    (ng_at(v, 0, 0, 0, d) + ng_at(v, 0, 0, 1, d) + ng_at(v, 0, 0, 2, d)) / 3, 1e-6);
    ng_tensor_free(q), ng_tensor_free(v);
    ng_tape_free(tape);
}
END_TEST

/* Attention of one query, 1, to keys of one feature, which are its scores. */
static ng_tensor *of_scores(ng_tape *tape, ng_tensor *scores, ng_tensor *values)
{
    ng_tensor *q = ng_full(tape, ng_dtype_of(scores), NG_SHAPE(1, 1, 1, 1), 1);
    const ng_shape keys = NG_SHAPE(1, 1, ng_size(scores), 1);
    return ng_attention(tape, q, ng_reshape(tape, scores, keys), ng_reshape(tape, values, keys),
                        NG_NONE);
}

/* e^-1000 is 0 in either dtype: a value of that weight counts for nothing, however large it is. */
START_TEST(a_value_without_weight_counts_for_nothing)
{
    ng_tape *tape = ng_tape_new();
    const ng_dtype dtype = _i == 0 ? NG_F32 : NG_F64;
    const double large = dtype == NG_F32 ? 1e38 : 1e307;
    for (int heavy = 0; heavy < 2; heavy++) {
        double score[] = {-1000, -1000}, value[] = {large, large};
        score[heavy] = 0, value[heavy] = 1;
        ng_tensor *scores = ng_from(tape, dtype, NG_SHAPE(2), score, 2);
        ng_tensor *values = ng_from(tape, dtype, NG_SHAPE(2), value, 2);
        assert_near(ng_item(of_scores(tape, scores, values)), 1, 0);
    }
    ng_tape_free(tape);
}
END_TEST

/* Where no score is above -Inf, as where they have left the dtype's range, there is no largest to
 * weigh them by: that is not a query without keys. A later key may still have all the weight. */
START_TEST(attention_to_scores_of_minus_infinity_is_nan)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *scores = ng_full_new(NG_F32, NG_SHAPE(100), -(double)INFINITY);
    ng_tensor *v = ng_require_grad(normal(NG_F32, NG_SHAPE(100), 6));
    ng_tensor *y = of_scores(tape, scores, v), *dv = ng_gradient(tape, y, v);
    ck_assert(isnan(ng_item(y)) && isnan(ng_get(dv, 0)));
    ng_set(scores, 99, 0);
    assert_near(ng_item(of_scores(tape, scores, v)), ng_get(v, 99), 0);
    ng_tensor_free(scores), ng_tensor_free(v);
    ng_tape_free(tape);
}
END_TEST

START_TEST(rotated_products_depend_on_the_distance_alone)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 6), 7), *rows[2];
    for (int i = 0; i < 2; i++)
        rows[i] = ng_broadcast_to(tape, ng_slice(tape, x, 0, i, i + 1), NG_SHAPE(9, 6));
    ng_tensor *q = ng_rotary(tape, rows[0]), *k = ng_rotary(tape, rows[1]);
    ng_tensor *products = ng_matmul(tape, q, k, .transpose_b = true);
    for (int t = 3; t < 9; t++)
        assert_near(ng_at(products, t, t - 3), ng_at(products, 3, 0), 1e-12);
    ng_tensor *later = ng_rotary(tape, ng_slice(tape, rows[0], 0, 4, 9), .start = 4);
    assert_tensors_close(later, ng_slice(tape, q, 0, 4, 9), 1e-14);
    ng_tensor_free(x);
    ng_tape_free(tape);
}
END_TEST

START_TEST(swiglu_is_silu_of_one_half_times_the_other)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F64, NG_SHAPE(3, 50, 26), 1), *odd = normal(NG_F64, NG_SHAPE(4, 3), 2);
    ng_tensor *y = ng_swiglu(tape, x);
    ng_tensor *a = ng_slice(tape, x, -1, 0, 13), *b = ng_slice(tape, x, -1, 13, NG_END);
    ng_tensor *composed = ng_mul(tape, ng_silu(tape, a), b);
    assert_tensors_close(y, composed, 1e-15);
    assert_tensors_close(ng_gradient(tape, ng_sum(tape, ng_square(tape, y)), x),
                         ng_gradient(tape, ng_sum(tape, ng_square(tape, composed)), x), 1e-14);
    ng_set(x, 13, (double)NAN); /* b of the first */
    y = ng_swiglu(tape, x);
    ck_assert(isnan(ng_get(y, 0)) && !isnan(ng_get(y, 1)));
    ck_assert_ptr_null(ng_swiglu(tape, odd));
    assert_error(NG_ESHAPE, "ng_swiglu: x is (4, 3), expected an even last dimension");
    ck_assert_ptr_null(ng_swiglu(tape, NULL));
    ng_tensor_free(x), ng_tensor_free(odd);
    ng_tape_free(tape);
}
END_TEST

START_TEST(wrong_attention_is_refused)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F64, NG_SHAPE(2, 5, 12), 1);
    ng_tensor *y = normal(NG_F64, NG_SHAPE(2, 3, 12), 2), *z = normal(NG_F64, NG_SHAPE(2, 5), 3);
    ng_tensor *f = normal(NG_F32, NG_SHAPE(2, 5), 3);
    ck_assert_ptr_null(ng_self_attention(tape, x, NG_NONE, .heads = 3));
    assert_error(NG_EVALUE, "heads is 3, expected a positive number that divides 4 features");
    ck_assert_ptr_null(ng_self_attention(tape, x, NG_NONE));
    assert_error(NG_EVALUE, "heads is 0");
    ck_assert_ptr_null(ng_self_attention(tape, z, NG_NONE, .heads = 1));
    assert_error(NG_ESHAPE, "qkv is (2, 5), expected (N, T, 3 features)");
    ck_assert_ptr_null(ng_self_attention(tape, y, z, .heads = 2));
    assert_error(NG_ESHAPE, "mask is (2, 5), expected (2, 3)");
    ck_assert_ptr_null(ng_self_attention(tape, x, f, .heads = 2));
    assert_error(NG_EDTYPE, "dtypes differ");
    ck_assert_ptr_null(ng_self_attention(tape, x, z, .heads = 2, .scale = HUGE_VAL));
    assert_error(NG_EVALUE, "scale");
    ck_assert_ptr_null(ng_attention(tape, x, y, y, NG_NONE));
    assert_error(NG_ESHAPE, "expected (N, H, T, D)");
    ck_assert_ptr_null(ng_attention(tape, x, y, x, NG_NONE, .heads = 2));
    assert_error(NG_ESHAPE, "expected (N, T, features)");
    ng_tensor *one = normal(NG_F64, NG_SHAPE(1, 5, 12), 4);
    ck_assert_ptr_null(ng_attention(tape, x, one, one, NG_NONE, .heads = 2));
    assert_error(NG_ESHAPE, "q (2, 5, 12), k (1, 5, 12), v (1, 5, 12), expected (N, T, features)");
    ng_tensor *odd = normal(NG_F64, NG_SHAPE(2, 5, 13), 4);
    ck_assert_ptr_null(ng_self_attention(tape, odd, NG_NONE, .heads = 2));
    assert_error(NG_ESHAPE, "qkv is (2, 5, 13), expected (N, T, 3 features)");
    ng_tensor_free(one), ng_tensor_free(odd);
    ck_assert_ptr_null(ng_attention(tape, x, NG_NONE, y, NG_NONE, .heads = 2));
    assert_error(NG_EVALUE, "NG_NONE");
    ck_assert_ptr_null(ng_rotary(tape, x, .dim = 5));
    assert_error(NG_ESHAPE, "dim is 5");
    ck_assert_ptr_null(ng_rotary(tape, x, .dim = 4, .over = 6));
    assert_error(NG_ESHAPE, "the 6 of 12 features");
    ck_assert_ptr_null(ng_rotary(tape, x, .base = -1));
    assert_error(NG_EVALUE, "base is -1");
    ck_assert_ptr_null(ng_attention(tape, x, x, x, NG_NONE, .heads = 4, .kv_heads = 3));
    assert_error(NG_EVALUE, "ng_attention: kv_heads is 3, expected a divisor of 4 heads");
    ck_assert_ptr_null(ng_attention(tape, x, x, x, NG_NONE, .heads = 4, .kv_heads = 2));
    assert_error(NG_ESHAPE, "expected k and v with 2 heads for q's 4");
    ck_assert_ptr_null(ng_attention(tape, z, z, z, NG_NONE, .kv_heads = 1));
    assert_error(NG_EVALUE, "kv_heads is 1, expected a divisor of 0 heads");
    ck_assert_ptr_null(ng_self_attention(tape, x, NG_NONE, .heads = 4, .kv_heads = -1));
    assert_error(NG_EVALUE, "kv_heads is -1");
    ck_assert_ptr_null(ng_self_attention(tape, x, NG_NONE, .heads = 3, .kv_heads = 1));
    assert_error(NG_ESHAPE,
                 "qkv is (2, 5, 12), expected (N, T, (H + 2 G) D) for 3 heads of q, 1 of");
    ck_assert_ptr_null(ng_self_attention(tape, x, NG_NONE, .heads = INT64_MAX, .kv_heads = 1));
    assert_error(NG_ESHAPE, "9223372036854775807 heads of q");
    ng_tensor_free(x), ng_tensor_free(y), ng_tensor_free(z), ng_tensor_free(f);
    ng_tape_free(tape);
}
END_TEST

/* ---- Against PyTorch ------------------------------------------------------------------------*/

#define TOLERANCE 1e-11

static void load(void) { golden_load("tests/golden/transformer.txt"); }

static void set_parameters(ng_module *module, const char *name)
{
    ng_named_tensor p;
    assert_ok(ng_module_to(module, NG_F64));
    for (int i = 0; ng_module_parameter(module, i, &p); i++)
        assert_ok(ng_copy_values(p.tensor, golden("%s/%s", name, p.name)));
}

static void expect_golden(const char *name, const char *figure, const ng_tensor *x)
{
    char what[160];
    snprintf(what, sizeof what, "%s: ours and PyTorch's %s", name, figure);
    expect_tensors_close(__FILE__, __LINE__, what, x, golden("%s/%s", name, figure), TOLERANCE);
}

static void expect_gradients(const char *name, ng_module *module)
{
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(module, i, &p); i++) {
        char figure[80];
        snprintf(figure, sizeof figure, "d%s", p.name);
        expect_golden(name, figure, ng_grad(p.tensor));
    }
}

/* Frees the module. */
static void expect_pytorchs(const char *name, ng_module *module, ng_tensor *x, ng_tensor *mask)
{
    ng_tape *tape = ng_tape_new();
    set_parameters(module, name);
    ng_tensor *y = ng_forward_conditioned(module, tape, x, mask);
    expect_golden(name, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", name)));
    expect_gradients(name, module);
    if (ng_requires_grad(x)) expect_golden(name, "dx", ng_grad(x));
    ng_tape_free(tape);
    ng_module_free(module);
}

START_TEST(embedding_is_pytorchs)
{
    ng_tensor *ids = ng_copy_new(golden("embedding/ids"), NG_I64);
    expect_pytorchs("embedding", ng_embedding_new(7, 3), ids, NG_NONE);
    ng_tensor_free(ids);
}
END_TEST

START_TEST(attention_is_pytorchs)
{
    static const char *const names[] = {"attention", "attention_masked", "attention_causal",
                                        "attention_causal_masked"};
    const char *name = names[_i];
    expect_pytorchs(name, ng_multi_head_attention_new(6, 2, .causal = _i >= 2),
                    ng_require_grad(golden("%s/x", name)),
                    _i % 2 ? golden("%s/mask", name) : NG_NONE);
}
END_TEST

/* Keys and values of other widths and another length. */
START_TEST(cross_attention_is_pytorchs)
{
    const char *name = _i ? "cross_masked" : "cross";
    ng_tape *tape = ng_tape_new();
    ng_module *cross = ng_multi_head_attention_new(6, 2, .context = 3, .value_context = 7);
    set_parameters(cross, name);
    ng_tensor *x = ng_require_grad(golden("%s/x", name));
    ng_tensor *keys = ng_require_grad(golden("%s/keys", name));
    ng_tensor *values = ng_require_grad(golden("%s/values", name));
    ng_tensor *mask = _i ? golden("%s/mask", name) : NG_NONE;
    ng_tensor *y = ng_forward_attention(cross, tape, x, keys, values, mask);
    expect_golden(name, "y", y);
    assert_ok(ng_backward_from(tape, y, golden("%s/dy", name)));
    expect_gradients(name, cross);
    expect_golden(name, "dx", ng_grad(x));
    expect_golden(name, "dkeys", ng_grad(keys));
    expect_golden(name, "dvalues", ng_grad(values));
    ng_tape_free(tape);
    ng_module_free(cross);
}
END_TEST

START_TEST(attention_with_shared_heads_is_pytorchs_with_repeated_ones)
{
    const char *name = _i == 1 ? "shared_1" : "shared_2";
    expect_pytorchs(name, ng_multi_head_attention_new(12, 4, .kv_heads = _i, .causal = true),
                    ng_require_grad(golden("%s/x", name)),
                    _i == 2 ? golden("%s/mask", name) : NG_NONE);
}
END_TEST

START_TEST(block_is_pytorchs)
{
    char name[64];
    snprintf(name, sizeof name, "block_%s_%s%s", _i & 1 ? "post" : "pre", _i & 2 ? "gelu" : "relu",
             _i & 4 ? "_masked" : "");
    ng_module *block = ng_transformer_block_new(
        6, 2, .hidden = 8, .causal = true, .placement = _i & 1 ? NG_NORM_POST : NG_NORM_PRE,
        .activation = _i & 2 ? NG_FEED_FORWARD_GELU : NG_FEED_FORWARD_RELU);
    expect_pytorchs(name, block, ng_require_grad(golden("%s/x", name)),
                    _i & 4 ? golden("%s/mask", name) : NG_NONE);
}
END_TEST

#define STEPS 20
#define BATCHES 4

START_TEST(twenty_adamw_losses_are_pytorchs)
{
    const char *name = _i ? "training_post" : "training_pre";
    ng_module *net = ng_transformer_new(11, .dim = 6, .heads = 2, .layers = 2, .length = 5,
                                        .placement = _i ? NG_NORM_POST : NG_NORM_PRE);
    set_parameters(net, name);
    ng_optimizer *adamw = ng_adamw_new(net, .lr = 3e-3, .weight_decay = 0.05);
    ng_tape *tape = ng_tape_new();
    ng_tensor *ids[BATCHES], *labels[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        ids[i] = ng_copy_new(golden("training/ids%d", i), NG_I64);
        labels[i] = ng_copy_new(golden("training/labels%d", i), NG_I64);
    }
    for (int step = 0; step < STEPS; step++) {
        ng_tensor *logits = ng_forward(net, tape, ids[step % BATCHES]);
        ng_tensor *loss = ng_cross_entropy(tape, logits, labels[step % BATCHES]);
        assert_ok(ng_backward(tape, loss));
        assert_ok(ng_optimizer_step(adamw));
        assert_close(ng_item(loss), ng_get(golden("%s/losses", name), step), 1e-9);
        ng_tape_reset(tape);
    }
    for (int i = 0; i < BATCHES; i++) ng_tensor_free(ids[i]), ng_tensor_free(labels[i]);
    ng_optimizer_free(adamw), ng_module_free(net), ng_tape_free(tape);
}
END_TEST

/* ---- Modules --------------------------------------------------------------------------------*/

START_TEST(a_causal_output_depends_on_no_later_id)
{
    ng_tape *tape = ng_tape_new();
    ng_module *net = ng_transformer_new(10, .dim = 8, .heads = 2, .layers = 2);
    ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(1, 100));
    for (int i = 0; i < 100; i++) ng_set(ids, i, i * 7 % 10);
    ng_tensor *before = ng_copy_new(ng_forward(net, tape, ids), NG_F32);
    ng_set(ids, 80, 9);
    ng_tensor *after = ng_forward(net, tape, ids);
    for (int t = 0; t < 80; t++) ck_assert(ng_at(before, 0, t, 0) == ng_at(after, 0, t, 0));
    ck_assert(ng_at(before, 0, 80, 0) != ng_at(after, 0, 80, 0));
    ck_assert(ng_at(before, 0, 99, 0) != ng_at(after, 0, 99, 0));
    ng_tensor_free(ids), ng_tensor_free(before);
    ng_module_free(net);
    ng_tape_free(tape);
}
END_TEST

static ng_module *child(ng_module *module, const char *name)
{
    for (int i = 0; ng_module_child(module, i); i++)
        if (strcmp(ng_module_child_name(module, i), name) == 0) return ng_module_child(module, i);
    ck_abort_msg("no child %s", name);
    return NULL;
}

/* The formula of one branch, from the block's own children. */
static ng_tensor *branch(ng_module *block, ng_tape *tape, ng_tensor *x, const char *name,
                         ng_norm_placement placement, double alpha, double dropout)
{
    char norm[48], after[48];
    snprintf(norm, sizeof norm, "%s_norm", name);
    snprintf(after, sizeof after, "%s_after", name);
    ng_module *f = child(block, name), *n = child(block, norm);
    const bool first = placement == NG_NORM_PRE || placement == NG_NORM_SANDWICH;
    ng_tensor *y = ng_forward(f, tape, first ? ng_forward(n, tape, x) : x);
    if (placement == NG_NORM_SANDWICH) y = ng_forward(child(block, after), tape, y);
    if (dropout > 0) y = ng_dropout(tape, y, dropout);
    if (placement == NG_NORM_DEEP) x = ng_mul_scalar(tape, x, alpha);
    y = ng_add(tape, x, y);
    return first ? y : ng_forward(n, tape, y);
}

/* Without dropout, and with it on what each branch adds. */
START_TEST(a_block_is_the_formula_of_its_placement)
{
    const ng_norm_placement placement = (ng_norm_placement)(_i / 2);
    const double alpha = pow(36, 0.25), dropout = _i % 2 ? 0.3 : 0;
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 5, 8), 8);
    ng_module *block =
        ng_transformer_block_new(8, 2, .placement = placement, .norm = ng_norm_rms,
                                 .dropout = dropout, .layers = placement == NG_NORM_DEEP ? 18 : 0);
    ng_tape_seed(tape, 5);
    ng_tensor *y = branch(block, tape, x, "attention", placement, alpha, dropout);
    y = branch(block, tape, y, "feed_forward", placement, alpha, dropout);
    ng_tape_seed(tape, 5);
    assert_same_bits(ng_forward(block, tape, x), y);
    ng_tensor_free(x);
    ng_module_free(block);
    ng_tape_free(tape);
}
END_TEST

START_TEST(a_transformer_drops_of_its_embedded_ids)
{
    ng_tape *tape = ng_tape_new();
    ng_module *net = ng_transformer_new(7, .dim = 8, .heads = 2, .layers = 1, .dropout = 0.3);
    ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(3, 4));
    for (int i = 0; i < 12; i++) ng_set(ids, i, i % 7);
    ng_tape_seed(tape, 5);
    ng_tensor *x = ng_forward(child(net, "embedding"), tape, ids);
    x = ng_dropout(tape, ng_forward(child(net, "positions"), tape, x), 0.3);
    x = ng_forward(child(net, "norm"), tape, ng_forward(child(net, "blocks"), tape, x));
    x = ng_forward(child(net, "head"), tape, x);
    ng_tape_seed(tape, 5);
    assert_same_bits(ng_forward(net, tape, ids), x);
    ng_tensor_free(ids);
    ng_module_free(net);
    ng_tape_free(tape);
}
END_TEST

static double deviation(const ng_tensor *x, int64_t from, int64_t to)
{
    double sum = 0;
    for (int64_t i = from; i < to; i++) sum += ng_get(x, i) * ng_get(x, i);
    return sqrt(sum / (double)(to - from));
}

START_TEST(deep_norm_draws_its_weights_beta_times_as_wide)
{
    const int64_t dim = 64, square = dim * dim;
    ng_module *block = ng_transformer_block_new(dim, 4, .placement = NG_NORM_DEEP, .layers = 18);
    const double beta = pow(8 * 18, -0.25), xavier = 1 / sqrt((double)dim);
    const double hidden = sqrt(2 / (double)(dim + 4 * dim));
    ng_tensor *in = ng_module_find(block, "attention.in_weight");
    assert_close(deviation(in, 0, 2 * square), xavier, 0.05);
    assert_close(deviation(in, 2 * square, 3 * square), beta * xavier, 0.05);
    assert_close(deviation(ng_module_find(block, "attention.out_weight"), 0, square), beta * xavier,
                 0.05);
    assert_close(deviation(ng_module_find(block, "feed_forward.in_weight"), 0, 4 * square),
                 beta * hidden, 0.05);
    assert_close(deviation(ng_module_find(block, "feed_forward.out_weight"), 0, 4 * square),
                 beta * hidden, 0.05);
    ng_module_free(block);
}
END_TEST

/* A norm that the library does not have. */
static ng_module *loose_norm(int64_t dim) { return ng_layer_norm_new(dim, .eps = 0.5); }

/* Each matrix as Xavier's normal has it: N(0, 2 / (rows + columns)), v's times the gain. */
START_TEST(shared_and_crossing_heads_are_drawn_as_xavier_has_it)
{
    ng_module *shared = ng_multi_head_attention_new(64, 8, .kv_heads = 2, .gain = 0.5);
    ng_tensor *in = ng_module_find(shared, "in_weight");
    const double narrow = sqrt(2.0 / (64 + 16));
    assert_close(deviation(in, 0, 64 * 64), sqrt(1.0 / 64), 0.06);
    assert_close(deviation(in, 64 * 64, 80 * 64), narrow, 0.06);
    assert_close(deviation(in, 80 * 64, 96 * 64), 0.5 * narrow, 0.06);
    ng_module_free(shared);
    ng_module *cross = ng_multi_head_attention_new(64, 8, .context = 32, .gain = 0.5);
    const double wide = sqrt(2.0 / (64 + 32));
    assert_close(deviation(ng_module_find(cross, "q_weight"), 0, 64 * 64), sqrt(1.0 / 64), 0.06);
    assert_close(deviation(ng_module_find(cross, "k_weight"), 0, 64 * 32), wide, 0.06);
    assert_close(deviation(ng_module_find(cross, "v_weight"), 0, 64 * 32), 0.5 * wide, 0.06);
    ng_module_free(cross);
}
END_TEST

START_TEST(any_maker_of_norms_plugs_in)
{
    static ng_norm_maker *const makers[] = {ng_norm_layer, ng_norm_rms, ng_norm_batch, ng_norm_none,
                                            loose_norm};
    ng_tape *tape = ng_tape_new();
    ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(3, 4));
    for (int i = 0; i < 12; i++) ng_set(ids, i, i % 7);
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        for (int placement = 0; placement < 4; placement++) {
            ng_module *net =
                ng_transformer_new(7, .dim = 8, .heads = 2, .layers = 2, .norm = makers[i],
                                   .qk_norm = makers[i], .placement = (ng_norm_placement)placement,
                                   .positions = NG_POSITIONS_ROTARY, .dropout = 0.1);
            ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, ids), ids);
            assert_ok(ng_backward(tape, loss));
            ck_assert(isfinite(ng_grad_norm(net)));
            ng_module_free(net);
            ng_tape_reset(tape);
        }
    ng_tensor_free(ids);
    ng_tape_free(tape);
}
END_TEST

START_TEST(a_block_hands_its_dropout_to_the_attention)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 5, 8), 8);
    ng_module *dropping = ng_transformer_block_new(8, 2, .dropout = 0.5);
    ng_module *attention = child(dropping, "attention");
    ng_tensor *y = ng_forward(attention, tape, x), *again = ng_forward(attention, tape, x);
    ck_assert(memcmp(y->data, again->data, (size_t)y->size * sizeof(float)) != 0);
    ng_eval(dropping);
    ng_module *plain = ng_transformer_block_new(8, 2);
    ng_eval(plain);
    assert_same_bits(ng_forward(attention, tape, x), ng_forward(attention, tape, x));
    assert_same_bits(ng_forward(dropping, tape, x), ng_forward(plain, tape, x));
    ck_assert_ptr_null(ng_multi_head_attention_new(8, 2, .dropout = 1));
    assert_error(NG_EVALUE, "dropout is 1, expected 0 <= dropout < 1");
    ng_tensor_free(x);
    ng_module_free(dropping), ng_module_free(plain);
    ng_tape_free(tape);
}
END_TEST

START_TEST(swiglu_has_as_many_weights_as_gelu)
{
    ng_module *gelu = ng_feed_forward_new(96, .no_bias = true);
    ng_module *swiglu =
        ng_feed_forward_new(96, .no_bias = true, .activation = NG_FEED_FORWARD_SWIGLU);
    ck_assert_int_eq(ng_parameter_count(gelu), ng_parameter_count(swiglu));
    ng_module_free(gelu), ng_module_free(swiglu);
}
END_TEST

/* ---- Threads and memory ---------------------------------------------------------------------*/

static ng_tensor *gradient_with_threads(int threads, ng_dtype dtype, double dropout)
{
    ng_set_threads(threads);
    ng_tape *tape = ng_tape_new();
    ng_tensor *qkv = normal(dtype, NG_SHAPE(3, 100, 96), 9);
    ng_tensor *x = ng_rotary(tape, qkv, .dim = 16, .over = 64);
    ng_tensor *y =
        ng_self_attention(tape, x, NG_NONE, .heads = 2, .causal = true, .dropout = dropout);
    assert_ok(ng_backward(tape, ng_sum(tape, ng_square(tape, y))));
    ng_tensor *gradient = ng_copy_new(ng_grad(qkv), dtype);
    ng_tensor_free(qkv);
    ng_tape_free(tape);
    ng_set_threads(0);
    return gradient;
}

START_TEST(attention_has_the_same_bits_for_any_number_of_threads)
{
    const ng_dtype dtype = _i % 2 ? NG_F64 : NG_F32;
    const double dropout = _i / 2 ? 0.25 : 0;
    ng_tensor *one = gradient_with_threads(1, dtype, dropout);
    for (int threads = 2; threads <= 5; threads++) {
        ng_tensor *many = gradient_with_threads(threads, dtype, dropout);
        assert_same_bits(one, many);
        ng_tensor_free(many);
    }
    ng_tensor_free(one);
}
END_TEST

static ng_module *small_transformer(void)
{
    return ng_transformer_new(5, .dim = 4, .heads = 2, .layers = 1, .length = 3, .dropout = 0.1,
                              .placement = NG_NORM_SANDWICH, .norm = ng_norm_batch,
                              .qk_norm = ng_norm_rms);
}

START_TEST(training_allocates_nothing_once_warm)
{
    ng_tape *tape = ng_tape_new();
    ng_module *net = small_transformer();
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
    ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(2, 3));
    int64_t made = 0;
    for (int step = 0; step < 6; step++) {
        if (step == 3) made = allocations_made();
        assert_ok(ng_backward(tape, ng_cross_entropy(tape, ng_forward(net, tape, ids), ids)));
        assert_ok(ng_optimizer_step(adam));
        ng_tape_reset(tape);
    }
    assert_none_allocated_since(made);
    ng_tensor_free(ids), ng_optimizer_free(adam), ng_module_free(net), ng_tape_free(tape);
}
END_TEST

START_TEST(a_transformer_is_built_whole_or_not_at_all)
{
    for (int64_t count = 0;; count++) {
        allocations_fail_after(count);
        ng_module *net = small_transformer();
        const bool refused = allocations_refused();
        allocations_succeed();
        ck_assert(refused == !net);
        if (net) {
            ng_module_free(net);
            break;
        }
        assert_error(NG_ENOMEM, "");
        ck_assert_int_eq(allocations_live(), 0);
    }
}
END_TEST

START_TEST(a_pass_without_memory_is_an_error)
{
    ng_module *net = small_transformer();
    ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(2, 3));
    for (int64_t count = 0;; count++) {
        ng_tape *tape = ng_tape_new();
        allocations_fail_after(count);
        ng_tensor *y = ng_forward(net, tape, ids);
        const bool done = ng_backward_from(tape, y, y) == NG_OK;
        const bool refused = allocations_refused();
        allocations_succeed();
        ng_tape_free(tape);
        ck_assert(done == !refused);
        if (done) break;
        assert_error(NG_ENOMEM, "");
    }
    ng_tensor_free(ids), ng_module_free(net);
}
END_TEST

/* One step; a call that is refused memory is made a second time. (BatchNorm and dropout move state
 * in a pass that may fail later: here is neither.) */
static double step_with_retries(ng_module *net, const ng_tensor *ids)
{
    ng_tape *tape = ng_tape_new();
    if (!tape) tape = ng_tape_new();
    ng_optimizer *adam = ng_adamw_new(net);
    if (!adam) adam = ng_adamw_new(net);
    ng_tensor *x = ng_copy_new(ids, NG_I64);
    if (!x) x = ng_copy_new(ids, NG_I64);
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), x);
    if (!loss) loss = ng_cross_entropy(tape, ng_forward(net, tape, x), x);
    if (ng_backward(tape, loss) != NG_OK) assert_ok(ng_backward(tape, loss));
    if (ng_optimizer_step(adam) != NG_OK) assert_ok(ng_optimizer_step(adam));
    const double value = ng_item(loss);
    ng_tensor_free(x), ng_optimizer_free(adam), ng_tape_free(tape);
    return value;
}

START_TEST(a_step_refused_memory_and_made_again_has_the_same_bits)
{
    ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(2, 3));
    for (int i = 0; i < 6; i++) ng_set(ids, i, i % 5);
    ng_module *first = NULL;
    double loss = 0;
    bool refused = true;
    for (int64_t count = -1; refused; count++) { /* -1: refused nothing, to compare with */
        ng_module *net =
            ng_transformer_new(5, .dim = 4, .heads = 2, .layers = 1, .length = 3,
                               .positions = NG_POSITIONS_ROTARY, .placement = NG_NORM_SANDWICH,
                               .qk_norm = ng_norm_rms, .activation = NG_FEED_FORWARD_SWIGLU);
        if (count >= 0) allocations_fail_once_after(count);
        const double again = step_with_retries(net, ids);
        refused = count < 0 || allocations_refused();
        allocations_succeed();
        ng_clear_error();
        if (!first) {
            first = net, loss = again;
            continue;
        }
        ck_assert(again == loss);
        ng_named_tensor a, b;
        for (int i = 0; ng_module_parameter(net, i, &a); i++) {
            ng_module_parameter(first, i, &b);
            assert_same_bits(a.tensor, b.tensor);
        }
        ng_module_free(net);
    }
    ng_tensor_free(ids), ng_module_free(first);
}
END_TEST

/* ---- Errors ---------------------------------------------------------------------------------*/

START_TEST(wrong_ids_are_named)
{
    ng_tape *tape = ng_tape_new();
    ng_module *net = ng_transformer_new(65, .dim = 8, .heads = 2, .layers = 1, .length = 4);
    ng_tensor *ids = ng_zeros_new(NG_I64, NG_SHAPE(2, 4));
    ng_tensor *longer = ng_zeros_new(NG_I64, NG_SHAPE(2, 5));
    ng_tensor *row = ng_zeros_new(NG_I64, NG_SHAPE(4)), *x = normal(NG_F32, NG_SHAPE(2, 4), 1);
    ng_tensor *flat = ng_ones_new(NG_F32, NG_SHAPE(8));
    ng_set(ids, 6, 65);
    ck_assert_ptr_null(ng_forward(net, tape, ids));
    assert_error(NG_ESHAPE, "id 65 at index 6 of ids (2, 4), expected 0 .. 64");
    ng_set(ids, 6, -1);
    ck_assert_ptr_null(ng_forward(net, tape, ids));
    assert_error(NG_ESHAPE, "id -1 at index 6");
    ck_assert_ptr_null(ng_forward(net, tape, longer));
    assert_error(NG_ESHAPE, "5 steps long, expected at most 4");
    ck_assert_ptr_null(ng_forward(net, tape, row));
    assert_error(NG_ESHAPE, "expected (N, T)");
    ck_assert_ptr_null(ng_forward(net, tape, x));
    assert_error(NG_EDTYPE, "ids are float32, expected int64");
    ng_set(ids, 6, 0);
    ck_assert_ptr_null(ng_forward_conditioned(net, tape, ids, flat));
    assert_error(NG_ESHAPE, "mask is (8,), expected (2, 4)");
    ng_tensor_free(ids), ng_tensor_free(longer), ng_tensor_free(row), ng_tensor_free(x);
    ng_tensor_free(flat);
    ng_module_free(net);
    ng_tape_free(tape);
}
END_TEST

START_TEST(shapes_that_do_not_fit_are_named)
{
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = normal(NG_F32, NG_SHAPE(2, 3, 8), 1), *y = normal(NG_F32, NG_SHAPE(2, 3, 7), 1);
    ng_tensor *mask = ng_ones_new(NG_F32, NG_SHAPE(3, 2)), *flat = normal(NG_F32, NG_SHAPE(8), 1);
    ng_module *attention = ng_multi_head_attention_new(8, 2);
    ng_module *places = ng_learned_positions_new(2, 8), *forward = ng_feed_forward_new(8);
    ck_assert_ptr_null(ng_forward(attention, tape, y));
    assert_error(NG_ESHAPE, "x is (2, 3, 7), expected (N, T, 8)");
    ck_assert_ptr_null(ng_forward_conditioned(attention, tape, x, mask));
    assert_error(NG_ESHAPE, "mask is (3, 2), expected (2, 3)");
    ck_assert_ptr_null(ng_forward_attention(attention, tape, x, x, x, NG_NONE));
    assert_error(NG_EVALUE,
                 "ng_forward_attention: the module is a MultiHeadAttention without .context");
    ck_assert_ptr_null(ng_forward_attention(places, tape, x, x, x, NG_NONE));
    assert_error(NG_EVALUE, "the module is a LearnedPositions, expected a MultiHeadAttention with");
    ng_module *cross = ng_multi_head_attention_new(8, 2, .context = 7);
    ck_assert_ptr_null(ng_forward(cross, tape, x));
    assert_error(NG_EVALUE, "it was made with .context, expected ng_forward_conditioned or");
    ck_assert_ptr_null(ng_forward_conditioned(cross, tape, x, x));
    assert_error(NG_ESHAPE, "MultiHeadAttention: keys is (2, 3, 8), expected (N, T, 7)");
    ck_assert_ptr_null(ng_forward_attention(cross, tape, x, y, y, mask));
    assert_error(NG_ESHAPE, "mask is (3, 2), expected (2, 3)");
    ng_tensor *shorter = ng_slice(tape, y, 1, 0, 2);
    ck_assert_ptr_null(ng_forward_attention(cross, tape, x, y, shorter, NG_NONE));
    assert_error(NG_ESHAPE,
                 "keys (2, 3, 7) and values (2, 2, 7), expected equal numbers of samples");
    ng_module_free(cross);
    ck_assert_ptr_null(ng_forward(places, tape, x));
    assert_error(NG_ESHAPE, "3 steps long, expected at most 2");
    ck_assert_ptr_null(ng_forward(places, tape, flat));
    assert_error(NG_ESHAPE, "expected (..., T, 8)");
    ck_assert_ptr_null(ng_forward(forward, tape, y));
    assert_error(NG_ESHAPE, "expected its last dimension to be 8");
    ng_tensor_free(x), ng_tensor_free(y), ng_tensor_free(mask), ng_tensor_free(flat);
    ng_module_free(attention), ng_module_free(places), ng_module_free(forward);
    ng_tape_free(tape);
}
END_TEST

START_TEST(options_without_sense_are_refused)
{
    ck_assert_ptr_null(ng_multi_head_attention_new(10, 4));
    assert_error(NG_EVALUE, "4 heads, expected a number that divides dim 10");
    ck_assert_ptr_null(ng_multi_head_attention_new(10, 0));
    assert_error(NG_EVALUE, "heads is 0");
    ck_assert_ptr_null(ng_multi_head_attention_new(6, 2, .rotary = true));
    assert_error(NG_EVALUE, "heads of 3 features, expected an even number");
    ck_assert_ptr_null(ng_multi_head_attention_new(8, 4, .kv_heads = 3));
    assert_error(NG_EVALUE, "kv_heads is 3, expected a divisor of 4 heads");
    ck_assert_ptr_null(ng_multi_head_attention_new(8, 4, .context = -3));
    assert_error(NG_EVALUE, "context is -3");
    ck_assert_ptr_null(ng_multi_head_attention_new(8, 4, .value_context = 3));
    assert_error(NG_EVALUE, "context is 0");
    ck_assert_ptr_null(ng_transformer_new(65, .dim = 100, .heads = 3));
    assert_error(NG_EVALUE, "3 heads, expected a number that divides dim 100");
    ck_assert_ptr_null(ng_transformer_new(0));
    assert_error(NG_EVALUE, "vocabulary is 0");
    ck_assert_ptr_null(ng_transformer_new(65, .length = -1));
    assert_error(NG_EVALUE, "length is -1");
    ck_assert_ptr_null(ng_transformer_new(65, .dim = 4, .layers = INT64_C(1) << 40));
    assert_error(NG_EVALUE, "ng_transformer_new: layers is 1099511627776, expected at most 10000");
    ck_assert_ptr_null(ng_transformer_new(65, .placement = (ng_norm_placement)9));
    assert_error(NG_EVALUE, "placement is 9");
    ck_assert_ptr_null(ng_transformer_new(65, .dropout = 1));
    assert_error(NG_EVALUE, "dropout is 1");
    ck_assert_ptr_null(ng_feed_forward_new(4, .activation = (ng_feed_forward_activation)7));
    assert_error(NG_EVALUE, "activation is 7");
    ck_assert_ptr_null(ng_embedding_new(0, 4));
    assert_error(NG_EVALUE, "count is 0");
    ck_assert_ptr_null(ng_transformer_block_new(8, 2, .placement = NG_NORM_DEEP, .layers = -1));
    assert_error(NG_EVALUE, "layers is -1");
    ck_assert_ptr_null(ng_transformer_block_new(8, 2, .layers = 3));
    assert_error(NG_EVALUE, ".layers is set, which has an effect only with NG_NORM_DEEP");
}
END_TEST

Suite *transformer_suite(void)
{
    Suite *suite = suite_create("transformer");

    TCase *kernels = tcase_create("kernels");
    tcase_add_loop_test(kernels, attention_kernels_are_the_plain_formula, 0, KERNEL_SHAPES);
    tcase_add_test(kernels, swiglu_kernels_are_the_plain_formula);
    suite_add_tcase(suite, kernels);

    TCase *ops = tcase_create("ops");
    tcase_add_loop_test(ops, attention_is_its_definition, 0, 2);
    tcase_add_test(ops, no_gradient_flows_to_the_mask);
    tcase_add_test(ops, dropout_of_weights_drops_its_share_and_scales_the_rest);
    tcase_add_test(ops, dropped_weights_are_independent_of_their_neighbours);
    tcase_add_test(ops, dropout_of_weights_follows_the_tape);
    tcase_add_test(ops, one_packed_tensor_gives_what_its_parts_give);
    tcase_add_test(ops, one_tensor_in_all_three_places_has_the_sum_of_gradients);
    tcase_add_test(ops, attention_to_no_key_is_zero_with_gradients_of_any_order);
    tcase_add_test(ops, attention_passes_nan_on);
    tcase_add_test(ops, large_scores_do_not_overflow);
    tcase_add_loop_test(ops, a_value_without_weight_counts_for_nothing, 0, 2);
    tcase_add_test(ops, attention_to_scores_of_minus_infinity_is_nan);
    tcase_add_test(ops, rotated_products_depend_on_the_distance_alone);
    tcase_add_test(ops, swiglu_is_silu_of_one_half_times_the_other);
    tcase_add_test(ops, wrong_attention_is_refused);
    suite_add_tcase(suite, ops);

    TCase *pytorch = tcase_create("pytorch");
    tcase_add_checked_fixture(pytorch, load, golden_unload);
    tcase_add_test(pytorch, embedding_is_pytorchs);
    tcase_add_loop_test(pytorch, cross_attention_is_pytorchs, 0, 2);
    tcase_add_loop_test(pytorch, attention_with_shared_heads_is_pytorchs_with_repeated_ones, 1, 3);
    tcase_add_loop_test(pytorch, attention_is_pytorchs, 0, 4);
    tcase_add_loop_test(pytorch, block_is_pytorchs, 0, 8);
    tcase_add_loop_test(pytorch, twenty_adamw_losses_are_pytorchs, 0, 2);
    suite_add_tcase(suite, pytorch);

    TCase *modules = tcase_create("modules");
    tcase_add_test(modules, a_causal_output_depends_on_no_later_id);
    tcase_add_loop_test(modules, a_block_is_the_formula_of_its_placement, 0, 8);
    tcase_add_test(modules, a_transformer_drops_of_its_embedded_ids);
    tcase_add_test(modules, deep_norm_draws_its_weights_beta_times_as_wide);
    tcase_add_test(modules, any_maker_of_norms_plugs_in);
    tcase_add_test(modules, shared_and_crossing_heads_are_drawn_as_xavier_has_it);
    tcase_add_test(modules, a_block_hands_its_dropout_to_the_attention);
    tcase_add_test(modules, swiglu_has_as_many_weights_as_gelu);
    suite_add_tcase(suite, modules);

    TCase *resources = tcase_create("threads and memory");
    tcase_add_loop_test(resources, attention_has_the_same_bits_for_any_number_of_threads, 0, 4);
    tcase_add_test(resources, training_allocates_nothing_once_warm);
    tcase_add_test(resources, a_transformer_is_built_whole_or_not_at_all);
    tcase_add_test(resources, a_pass_without_memory_is_an_error);
    tcase_add_test(resources, a_step_refused_memory_and_made_again_has_the_same_bits);
    suite_add_tcase(suite, resources);

    TCase *errors = tcase_create("errors");
    tcase_add_test(errors, wrong_ids_are_named);
    tcase_add_test(errors, shapes_that_do_not_fit_are_named);
    tcase_add_test(errors, options_without_sense_are_refused);
    suite_add_tcase(suite, errors);
    return suite;
}
