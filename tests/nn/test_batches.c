/* A row has the same bits in any batch: output and gradient to x of every layer that does not mix
 * samples, in evaluation. */
#include "support/fixture.h"
#include "support/support.h"
#include <string.h>

enum { ROWS = 70, DIM = 24, STEPS = 5, SIDE = 6, CHANNELS = 8 };

/* X(name, module, elements of a sample) */
#define FLAT NG_SHAPE(ROWS, DIM)
#define SERIES NG_SHAPE(ROWS, STEPS, DIM)
#define IMAGE NG_SHAPE(ROWS, CHANNELS, SIDE, SIDE)
#define LAYERS(X)                                                                                  \
    X("Linear", ng_linear_new(DIM, 33), FLAT)                                                      \
    X("Linear of a few", ng_linear_new(DIM, 3), FLAT)                                              \
    X("MLP", ng_sequential_new(ng_linear_new(DIM, 300), ng_gelu_new(), ng_linear_new(300, 10)),    \
      FLAT)                                                                                        \
    X("LayerNorm", ng_layer_norm_new(DIM), FLAT)                                                   \
    X("RMSNorm", ng_rms_norm_new(DIM), SERIES)                                                     \
    X("BatchNorm", ng_batch_norm_new(DIM), FLAT)                                                   \
    X("BatchNorm of images", ng_batch_norm_new(CHANNELS), IMAGE)                                   \
    X("BatchRenorm", ng_batch_renorm_new(DIM), FLAT)                                               \
    X("GroupNorm", ng_group_norm_new(4, CHANNELS), IMAGE)                                          \
    X("InstanceNorm", ng_instance_norm_new(CHANNELS, .no_affine = true), IMAGE)                    \
    X("FilterResponseNorm", ng_filter_response_norm_new(CHANNELS), IMAGE)                          \
    X("EvoNorm", ng_evo_norm_new(CHANNELS), IMAGE)                                                 \
    X("LocalResponseNorm", ng_local_response_norm_new(3), IMAGE)                                   \
    X("L2Norm", ng_l2_norm_new(DIM), FLAT)                                                         \
    X("ScaleNorm", ng_scale_norm_new(DIM), FLAT)                                                   \
    X("DetachNorm", ng_detach_norm_new(DIM), FLAT)                                                 \
    X("DynamicTanh", ng_dynamic_tanh_new(DIM), FLAT)                                               \
    X("Derf", ng_derf_new(DIM), FLAT)                                                              \
    X("BHyT", ng_bhyt_new(DIM), FLAT)                                                              \
    X("SeeDNorm", ng_seed_norm_new(DIM), FLAT)                                                     \
    X("PolyNorm", ng_poly_norm_new(DIM), FLAT)                                                     \
    X("SimpleNorm", ng_rms_norm_new(DIM, .by_deviation = true), FLAT)                              \
    X("WeightNorm", ng_weight_norm_new(ng_linear_new(DIM, 17)), FLAT)                              \
    X("SpectralNorm", ng_spectral_norm_new(ng_linear_new(DIM, 17)), FLAT)                          \
    X("Tanh", ng_tanh_new(), FLAT)                                                                 \
    X("SiLU", ng_silu_new(), FLAT)                                                                 \
    X("Softplus", ng_softplus_new(), FLAT)                                                         \
    X("Conv2d", ng_conv2d_new(CHANNELS, 5, 3, .padding = 1), IMAGE)                                \
    X("Conv2d by channel", ng_conv2d_new(CHANNELS, CHANNELS, 3, .groups = CHANNELS), IMAGE)        \
    X("ConvTranspose2d", ng_conv_transpose2d_new(CHANNELS, 5, 3, .stride = 2), IMAGE)              \
    X("MaxPool2d", ng_max_pool2d_new(2), IMAGE)                                                    \
    X("AvgPool2d", ng_avg_pool2d_new(2), IMAGE)                                                    \
    X("GlobalAvgPool", ng_global_avg_pool_new(), IMAGE)                                            \
    X("RNN", ng_rnn_new(DIM, 19), SERIES)                                                          \
    X("GRU", ng_gru_new(DIM, 19), SERIES)                                                          \
    X("LSTM", ng_lstm_new(DIM, 19, .bidirectional = true), SERIES)                                 \
    X("MultiHeadAttention", ng_multi_head_attention_new(DIM, 3, .causal = true), SERIES)           \
    X("TransformerBlock", ng_transformer_block_new(DIM, 3), SERIES)

/* Output and gradient to x, whose memory is the tape's. */
typedef struct {
    ng_tensor *y, *dx;
} passes;

static ng_tensor *like(const ng_tensor *x, int64_t seed)
{
    ng_rng rng = ng_rng_seeded((uint64_t)seed);
    return own(ng_uniform_new(ng_dtype_of(x), ng_shape_of(x), -1, 1, &rng));
}

static size_t bytes_of(const ng_tensor *x)
{
    return (size_t)ng_size(x) * ng_dtype_bytes(ng_dtype_of(x));
}

static char *data_of(const ng_tensor *x)
{
    return ng_dtype_of(x) == NG_F32 ? (char *)ng_data_f32(x) : (char *)ng_data_f64(x);
}

/* Rows order[0 .. count - 1] of x. */
static ng_tensor *rows_of(const ng_tensor *x, const int64_t *order, int64_t count)
{
    ng_shape shape = ng_shape_of(x);
    const size_t row = bytes_of(x) / (size_t)shape.dim[0];
    shape.dim[0] = count;
    ng_tensor *rows = ng_zeros_new(ng_dtype_of(x), shape);
    for (int64_t i = 0; i < count; i++)
        memcpy(data_of(rows) + (size_t)i * row, data_of(x) + (size_t)order[i] * row, row);
    return rows;
}

static passes run(ng_module *layer, ng_tensor *x, ng_tensor *dy)
{
    ng_tensor *y = ng_forward(layer, tape, ng_require_grad(x));
    const passes done = {y, ng_gradient(tape, y, x, .cotangent = dy)};
    assert_ok(done.dx);
    return done;
}

static void assert_same_rows(const char *name, const char *what, ng_tensor *all, ng_tensor *some,
                             const int64_t *order, int64_t count)
{
    ng_tensor *expected = rows_of(all, order, count);
    ck_assert_msg(!memcmp(data_of(expected), data_of(some), bytes_of(some)),
                  "%s: %s of a batch of %lld: other bits", name, what, (long long)count);
    ng_tensor_free(expected);
}

static const char *const names[] = {
#define X(name, module, shape) name,
    LAYERS(X)
#undef X
};

static ng_module *layer_new(int i, ng_shape *shape)
{
    int k = 0;
#define X(name, module, of)                                                                        \
    if (k++ == i) {                                                                                \
        *shape = of;                                                                               \
        return module;                                                                             \
    }
    LAYERS(X)
#undef X
    return NULL;
}

START_TEST(a_row_has_the_same_bits_in_any_batch)
{
    ng_shape shape;
    ng_module *layer = own(layer_new(_i, &shape));
    ng_rng rng = ng_rng_seeded(3);
    ng_tensor *x = own(ng_uniform_new(NG_F32, shape, -2, 3, &rng));
    for (int i = 0; i < 3; i++) ng_forward(layer, tape, x); /* running statistics */
    ng_eval(layer);
    ng_tensor *first = ng_forward(layer, tape, x), *dy = like(first, 4);
    ng_tape_reset(tape);
    ng_tape *const kept = tape;
    const passes all = run(layer, x, dy);
    int64_t order[ROWS];
    for (int64_t i = 0; i < ROWS; i++) order[i] = i;
    tape = ng_tape_new();
    for (int64_t count = 1; count <= ROWS; count++) {
        for (int64_t i = ROWS - 1; i > 0; i--) { /* another order */
            const int64_t j = ng_rng_below(&rng, i + 1), was = order[i];
            order[i] = order[j], order[j] = was;
        }
        ng_tensor *some = rows_of(x, order, count), *cotangent = rows_of(dy, order, count);
        const passes of_some = run(layer, some, cotangent);
        assert_same_rows(names[_i], "y", all.y, of_some.y, order, count);
        assert_same_rows(names[_i], "dx", all.dx, of_some.dx, order, count);
        ng_tape_reset(tape);
        ng_tensor_free(some), ng_tensor_free(cotangent);
    }
    ng_tape_free(tape);
    tape = kept;
}

Suite *batches_suite(void)
{
    Suite *suite = suite_create("batches");
    TCase *tests = add_case(suite, set_up, tear_down);
    add_loops(tests, sizeof names / sizeof *names, a_row_has_the_same_bits_in_any_batch);
    return suite;
}
