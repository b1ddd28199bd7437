/* Rows of compilers.py: ops and layers with one thread. With the library by a compiler this file
 * becomes a shared object. */
#include <normgrad.h>
#include <stdio.h>
#include <time.h>

/* ---- The rows: what is done with x, and with y of x's shape or with a row v ------------------ */

#define OPS(X)                                                                                     \
    X("add", ng_add(t, x, y))                                                                      \
    X("add row", ng_add(t, x, v))                                                                  \
    X("mul", ng_mul(t, x, y))                                                                      \
    X("mul row", ng_mul(t, x, v))                                                                  \
    X("div", ng_div(t, x, y))                                                                      \
    X("exp", ng_exp(t, x))                                                                         \
    X("log", ng_log(t, ng_abs(t, x)))                                                              \
    X("tanh", ng_tanh(t, x))                                                                       \
    X("sigmoid", ng_sigmoid(t, x))                                                                 \
    X("gelu", ng_gelu(t, x))                                                                       \
    X("relu", ng_relu(t, x))                                                                       \
    X("silu", ng_silu(t, x))                                                                       \
    X("sin", ng_sin(t, x))                                                                         \
    X("erf", ng_erf(t, x))                                                                         \
    X("square", ng_square(t, x))                                                                   \
    X("sqrt", ng_sqrt(t, ng_abs(t, x)))                                                            \
    X("softmax", ng_softmax(t, x))                                                                 \
    X("log_softmax", ng_log_softmax(t, x))                                                         \
    X("sum", ng_sum(t, x))                                                                         \
    X("sum of columns", ng_sum(t, x, .axes = NG_AXES(0)))                                          \
    X("sum of rows", ng_sum(t, x, .axes = NG_AXES(1)))                                             \
    X("mean of rows", ng_mean(t, x, .axes = NG_AXES(1)))                                           \
    X("variance of rows", ng_variance(t, x, .axes = NG_AXES(1)))                                   \
    X("max of rows", ng_max(t, x, .axes = NG_AXES(1)))                                             \
    X("logsumexp of rows", ng_logsumexp(t, x, .axes = NG_AXES(1)))                                 \
    X("transpose", ng_transpose(t, x, 0, 1))                                                       \
    X("cumsum", ng_cumsum(t, x))                                                                   \
    X("mse", ng_mse(t, x, y))

#define LAYERS(X)                                                                                  \
    X("LayerNorm", ng_layer_norm_new(d))                                                           \
    X("LayerNorm without bias", ng_layer_norm_new(d, .no_bias = true))                             \
    X("LayerNorm without affine", ng_layer_norm_new(d, .no_affine = true))                         \
    X("RMSNorm", ng_rms_norm_new(d))                                                               \
    X("RMSNorm without affine", ng_rms_norm_new(d, .no_affine = true))                             \
    X("BatchNorm", ng_batch_norm_new(d))                                                           \
    X("BatchNorm without affine", ng_batch_norm_new(d, .no_affine = true))                         \
    X("GroupNorm", ng_group_norm_new(4, d))                                                        \
    X("AdaptiveLayerNorm", ng_adaptive_layer_norm_new(d))                                          \
    X("DynamicTanh", ng_dynamic_tanh_new(d))                                                       \
    X("Derf", ng_derf_new(d))                                                                      \
    X("ScaleNorm", ng_scale_norm_new(d))                                                           \
    X("L2Norm", ng_l2_norm_new(d))                                                                 \
    X("Linear", ng_linear_new(d, d))                                                               \
    X("Dropout", ng_dropout_new(0.1))

/* Of images (16, 32, 16, 16). */
#define IMAGE_LAYERS(X)                                                                            \
    X("convolution 3x3", ng_conv2d_new(32, 32, 3, .padding = 1))                                   \
    X("convolution 5x5 stride 2", ng_conv2d_new(32, 64, 5, .padding = 2, .stride = 2))             \
    X("depthwise 3x3", ng_conv2d_new(32, 32, 3, .padding = 1, .groups = 32))                       \
    X("convolution 1x1", ng_conv2d_new(32, 64, 1))                                                 \
    X("BatchNorm of images", ng_batch_norm_new(32))                                                \
    X("GroupNorm of images", ng_group_norm_new(8, 32))                                             \
    X("InstanceNorm", ng_instance_norm_new(32))                                                    \
    X("LayerNorm channels first", ng_layer_norm_new(32, .channels_first = true))                   \
    X("FilterResponseNorm", ng_filter_response_norm_new(32))                                       \
    X("max pooling", ng_max_pool2d_new(2))                                                         \
    X("average pooling", ng_avg_pool2d_new(2))

/* Of sequences (8, 64, 64). */
#define SEQUENCE_LAYERS(X)                                                                         \
    X("attention", ng_multi_head_attention_new(64, 4))                                             \
    X("LSTM", ng_lstm_new(64, 64))                                                                 \
    X("GRU", ng_gru_new(64, 64))                                                                   \
    X("transformer block", ng_transformer_block_new(64, 4))

/* Numbers the rows of a list: of one, its name or its value. */
#define COUNT(name, value) +1
#define NAME(name, value) name,
#define VALUE(name, value)                                                                         \
    if (which == i++) return value;
enum { N_OPS = 0 OPS(COUNT), N_LAYERS = 0 LAYERS(COUNT), N_IMAGES = 0 IMAGE_LAYERS(COUNT) };
enum { N_ROWS = N_OPS + N_LAYERS, BLOCKS = 4 }; /* of each size and dtype; sizes and dtypes */
static const char *const names[] = {OPS(NAME) LAYERS(NAME) IMAGE_LAYERS(NAME)
                                        SEQUENCE_LAYERS(NAME)};

/* ---- One row --------------------------------------------------------------------------------- */

static ng_tape *tape;
static ng_module *net;
static ng_tensor *x, *y, *v, *dy;
static int which;

static ng_tensor *op(ng_tape *t)
{
    int i = 0;
    OPS(VALUE)
    return NULL;
}

static ng_module *new_layer(int64_t d)
{
    int i = N_OPS;
    LAYERS(VALUE)
    IMAGE_LAYERS(VALUE)
    SEQUENCE_LAYERS(VALUE)
    return NULL;
}

static ng_tensor *new_leaf(ng_dtype dtype, ng_shape shape)
{
    ng_rng rng = ng_rng_seeded(1);
    return ng_require_grad(ng_normal_new(dtype, shape, 0, 1, &rng));
}

static void close_row(void)
{
    ng_tape_free(tape), ng_module_free(net);
    ng_tensor_free(x), ng_tensor_free(y), ng_tensor_free(v), ng_tensor_free(dy);
    dy = NULL;
}

/* Makes what the row needs and writes its name; false if there is no such row. */
bool row_open(int row, char name[64])
{
    close_row();
    ng_set_threads(1);
    const int block = row < BLOCKS * N_ROWS ? row / N_ROWS : BLOCKS;
    which = row - block * N_ROWS + (block == BLOCKS ? N_ROWS : 0);
    if (which >= (int)(sizeof names / sizeof *names)) return false;
    const ng_dtype dtype = block % 2 ? NG_F64 : NG_F32;
    const int64_t n = block < 2 ? 64 : 1024, d = block < 2 ? 128 : 768;
    const ng_shape shape = block < BLOCKS              ? NG_SHAPE(n, d)
                           : which < N_ROWS + N_IMAGES ? NG_SHAPE(16, 32, 16, 16)
                                                       : NG_SHAPE(8, 64, 64);
    tape = ng_tape_new();
    x = new_leaf(dtype, shape), y = new_leaf(dtype, shape), v = new_leaf(dtype, NG_SHAPE(d));
    net = which < N_OPS ? NULL : new_layer(d);
    if (net && ng_module_to(net, dtype)) return false;
    const char *of[] = {"64x128", "64x128 double", "1024x768", "1024x768 double", ""};
    snprintf(name, 64, "%s %s", names[which], of[block]);
    return true;
}

static double microseconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

/* Runs it so many times and lowers `least`, forward and backward; false on failure. */
bool row_run(int count, double least[2])
{
    for (int i = 0; i < count; i++) {
        ng_tape_reset(tape);
        const double begin = microseconds();
        ng_tensor *z = net ? ng_forward(net, tape, x) : op(tape);
        const double middle = microseconds();
        if (!dy) dy = new_leaf(ng_dtype_of(z), ng_shape_of(z));
        const double again = microseconds();
        if (ng_backward_from(tape, z, dy)) return puts(ng_error_text()) < 0;
        const double end = microseconds();
        if (middle - begin < least[0]) least[0] = middle - begin;
        if (end - again < least[1]) least[1] = end - again;
    }
    return true;
}
