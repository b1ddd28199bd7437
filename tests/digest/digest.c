/* Trains small networks, one with each kind of layer, and prints two digests of the bits of each
 * one's losses, parameters and buffers: after 8 steps and after 200. With the argument "short" it
 * stops after 8. The digests in digests.txt are those of every processor with fused multiply-add,
 * compiler, C library and number of threads:
 *
 *     make digest | diff - tests/digest/digests.txt */
#include <inttypes.h>
#include <normgrad.h>
#include <stdio.h>
#include <string.h>

enum { FEW_STEPS = 8, STEPS = 200 };
enum { BATCH = 24, FEATURES = 20, HIDDEN = 48, CLASSES = 5 }; /* of rows */
enum { CHANNELS = 8, SIDE = 8, LENGTH = 12, VOCABULARY = 11 };

/* FNV-1a of bytes from the lowest to the highest of each number. */
static uint64_t digest_of(uint64_t digest, const void *data, size_t count, size_t bytes)
{
    const unsigned char *at = data;
    const uint16_t one = 1;
    const bool little = *(const unsigned char *)&one == 1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < bytes; k++)
            digest = (digest ^ at[i * bytes + (little ? k : bytes - 1 - k)]) * 0x100000001b3u;
    return digest;
}

static uint64_t digest_of_tensor(uint64_t digest, const ng_tensor *x)
{
    const bool counts = x && ng_dtype_of(x) == NG_I64; /* batches seen */
    return !x || counts ? digest
                        : digest_of(digest, ng_data_f32(x), (size_t)ng_size(x), sizeof(float));
}

static uint64_t digest_of_network(uint64_t digest, ng_module *net)
{
    ng_named_tensor named;
    for (int i = 0; ng_module_parameter(net, i, &named); i++)
        digest = digest_of_tensor(digest, named.tensor);
    for (int i = 0; ng_module_buffer(net, i, &named); i++)
        digest = digest_of_tensor(digest, named.tensor);
    return digest;
}

/* ---- Networks ----------------------------------------------------------------------------- */

typedef enum { ROWS, IMAGES, SERIES, TOKENS } input_kind;

static ng_tensor *input_new(input_kind kind, ng_rng *rng)
{
    if (kind == ROWS) return ng_uniform_new(NG_F32, NG_SHAPE(BATCH, FEATURES), -2, 2, rng);
    if (kind == IMAGES) return ng_uniform_new(NG_F32, NG_SHAPE(BATCH, 2, SIDE, SIDE), -2, 2, rng);
    if (kind == SERIES)
        return ng_uniform_new(NG_F32, NG_SHAPE(BATCH, LENGTH, FEATURES), -2, 2, rng);
    return ng_uniform_new(NG_I64, NG_SHAPE(BATCH, LENGTH), 0, VOCABULARY, rng);
}

/* Rows: a hidden layer with the norm, or with the activation. */
static ng_module *mlp(ng_module *layer)
{
    return ng_sequential_new(ng_linear_new(FEATURES, HIDDEN), layer, ng_gelu_new(),
                             ng_linear_new(HIDDEN, CLASSES));
}

/* Images: two convolutions, with the norm between them. */
static ng_module *convolutions(ng_module *layer)
{
    return ng_sequential_new(ng_conv2d_new(2, CHANNELS, 3, .padding = 1), layer, ng_silu_new(),
                             ng_max_pool2d_new(2), ng_conv2d_new(CHANNELS, CHANNELS, 3),
                             ng_global_avg_pool_new(), ng_linear_new(CHANNELS, CLASSES));
}

/* Series: each step's output is a row of logits. */
static ng_module *recurrent(ng_module *layer)
{
    return ng_sequential_new(layer, ng_linear_new(HIDDEN, CLASSES));
}

/* X(name, kind of input, network) */
#define NETWORKS(X)                                                                                \
    X("mlp", ROWS, mlp(ng_tanh_new()))                                                             \
    X("layer_norm", ROWS, mlp(ng_layer_norm_new(HIDDEN)))                                          \
    X("rms_norm", ROWS, mlp(ng_rms_norm_new(HIDDEN)))                                              \
    X("batch_norm", ROWS, mlp(ng_batch_norm_new(HIDDEN)))                                          \
    X("batch_renorm", ROWS, mlp(ng_batch_renorm_new(HIDDEN)))                                      \
    X("group_norm", ROWS, mlp(ng_group_norm_new(4, HIDDEN)))                                       \
    X("l2_norm", ROWS, mlp(ng_l2_norm_new(HIDDEN)))                                                \
    X("scale_norm", ROWS, mlp(ng_scale_norm_new(HIDDEN)))                                          \
    X("detach_norm", ROWS, mlp(ng_detach_norm_new(HIDDEN)))                                        \
    X("dynamic_tanh", ROWS, mlp(ng_dynamic_tanh_new(HIDDEN)))                                      \
    X("derf", ROWS, mlp(ng_derf_new(HIDDEN)))                                                      \
    X("weight_norm", ROWS, mlp(ng_weight_norm_new(ng_linear_new(HIDDEN, HIDDEN))))                 \
    X("spectral_norm", ROWS, mlp(ng_spectral_norm_new(ng_linear_new(HIDDEN, HIDDEN))))             \
    X("dropout", ROWS, mlp(ng_dropout_new(0.25)))                                                  \
    X("softplus", ROWS, mlp(ng_softplus_new()))                                                    \
    X("elu", ROWS, mlp(ng_elu_new(0.5)))                                                           \
    X("convolution", IMAGES, convolutions(ng_relu_new()))                                          \
    X("batch_norm of images", IMAGES, convolutions(ng_batch_norm_new(CHANNELS)))                   \
    X("group_norm of images", IMAGES, convolutions(ng_group_norm_new(2, CHANNELS)))                \
    X("instance_norm", IMAGES, convolutions(ng_instance_norm_new(CHANNELS, .no_affine = true)))    \
    X("filter_response_norm", IMAGES, convolutions(ng_filter_response_norm_new(CHANNELS)))         \
    X("evo_norm", IMAGES, convolutions(ng_evo_norm_new(CHANNELS)))                                 \
    X("local_response_norm", IMAGES, convolutions(ng_local_response_norm_new(3)))                  \
    X("weight_standardization", IMAGES,                                                            \
      convolutions(                                                                                \
          ng_weight_standardization_new(ng_conv2d_new(CHANNELS, CHANNELS, 3, .padding = 1))))      \
    X("depthwise convolution", IMAGES,                                                             \
      convolutions(ng_conv2d_new(CHANNELS, CHANNELS, 3, .padding = 1, .groups = CHANNELS)))        \
    X("rnn", SERIES, recurrent(ng_rnn_new(FEATURES, HIDDEN)))                                      \
    X("gru", SERIES, recurrent(ng_gru_new(FEATURES, HIDDEN)))                                      \
    X("lstm", SERIES, recurrent(ng_lstm_new(FEATURES, HIDDEN)))                                    \
    X("lstm with layer_norm", SERIES,                                                              \
      recurrent(ng_lstm_new(FEATURES, HIDDEN, .norm = ng_norm_layer)))                             \
    X("transformer", TOKENS,                                                                       \
      ng_transformer_new(VOCABULARY, .dim = HIDDEN, .heads = 2, .layers = 2, .length = LENGTH))    \
    X("transformer with rms_norm", TOKENS,                                                         \
      ng_transformer_new(VOCABULARY, .dim = HIDDEN, .heads = 2, .layers = 2, .length = LENGTH,     \
                         .norm = ng_norm_rms, .positions = NG_POSITIONS_ROTARY))

/* Trains the network on one batch, whose labels are drawn at random. */
static void train(const char *name, input_kind kind, ng_module *net, bool brief)
{
    ng_rng rng = ng_rng_seeded(1);
    ng_tensor *x = input_new(kind, &rng);
    const ng_shape rows = kind < SERIES ? NG_SHAPE(BATCH) : NG_SHAPE(BATCH, LENGTH);
    const int64_t classes = kind == TOKENS ? VOCABULARY : CLASSES;
    ng_tensor *labels = ng_uniform_new(NG_I64, rows, 0, (double)classes, &rng);
    ng_optimizer *adam = ng_adam_new(net, .lr = 0.003);
    ng_tape *tape = ng_tape_new();
    uint64_t digest = 0xcbf29ce484222325u, few = 0;
    for (int step = 0; step < (brief ? FEW_STEPS : STEPS) && !ng_failed(); step++) {
        ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, x), labels);
        if (ng_backward(tape, loss) || ng_optimizer_step(adam)) break;
        digest = digest_of_tensor(digest, loss);
        if (step == FEW_STEPS - 1) few = digest_of_network(digest, net);
        ng_tape_reset(tape);
    }
    digest = digest_of_network(digest, net);
    ng_eval(net);
    digest = digest_of_tensor(digest, ng_forward(net, tape, x));
    if (!ng_failed() && brief) printf("%016" PRIx64 " %s\n", few, name);
    if (!ng_failed() && !brief) printf("%016" PRIx64 " %016" PRIx64 " %s\n", few, digest, name);
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_tensor_free(x), ng_tensor_free(labels);
}

int main(int argc, char **argv)
{
    const bool brief = argc == 2 && !strcmp(argv[1], "short");
#define X(name, kind, network) train(name, kind, network, brief);
    NETWORKS(X)
#undef X
    if (ng_failed()) fprintf(stderr, "digest: %s\n", ng_error_text());
    return ng_failed();
}
