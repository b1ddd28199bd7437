/* A small residual network with each of several norms on 8 x 8 images of digits.
 *
 *     conv 3 x 3 to W channels
 *     a residual block of two convolutions
 *     conv 3 x 3 to 2 W channels, stride 2: 4 x 4 from here on
 *     a residual block of two convolutions
 *     global average pooling and a Linear to the classes
 *
 * Each convolution is followed by a norm: build/examples/digits_cnn --help */
#include "compare.h"

enum { SIDE = 8 };
static int width = 16;
static const char *file;

/* Adds a convolution and its norm. With a norm it has no bias, since beta replaces it. */
static void add_convolution(ng_module *net, ng_norm_maker *norm, int64_t in, int64_t out,
                            int64_t stride)
{
    ng_sequential_add(net, ng_conv2d_new(in, out, 3, .stride = stride, .padding = 1,
                                         .no_bias = norm != ng_norm_none));
    ng_sequential_add(net, norm(out));
}

/* Adds relu(x + conv(relu(conv(x)))), a norm after each convolution. He et al. 2016. */
static void add_block(ng_module *net, ng_norm_maker *norm, int64_t channels)
{
    ng_module *inner = ng_sequential_from(NULL, 0);
    add_convolution(inner, norm, channels, channels, 1);
    ng_sequential_add(inner, ng_relu_new());
    add_convolution(inner, norm, channels, channels, 1);
    ng_sequential_add(net, ng_residual_new(inner));
    ng_sequential_add(net, ng_relu_new());
}

static ng_module *make_network(const comparison *c, ng_norm_maker *norm)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    add_convolution(net, norm, 1, width, 1);
    ng_sequential_add(net, ng_relu_new());
    add_block(net, norm, width);
    add_convolution(net, norm, width, 2 * width, 2);
    ng_sequential_add(net, ng_relu_new());
    add_block(net, norm, 2 * width);
    ng_sequential_add(net, ng_global_avg_pool_new());
    ng_sequential_add(net, ng_linear_new(2 * width, c->classes));
    return net;
}

/* AdamW. The rate rises over the first tenth of the steps, then falls as a cosine. */
static ng_optimizer *make_optimizer(const comparison *c, ng_module *net, double lr, int64_t steps)
{
    (void)c;
    const ng_schedule cosine = {
        .kind = NG_SCHEDULE_COSINE, .warmup = steps / 10, .steps = steps - steps / 10};
    return ng_adamw_new(net, 0.01, .lr = lr, .schedule = cosine);
}

static bool read_data(comparison *c)
{
    ng_dataset *lines =
        ng_dataset_read_csv(file ? file : find_data("digits.csv"), .scale = 1.0 / 16);
    c->data = as_images(lines, NG_SHAPE(-1, 1, SIDE, SIDE));
    ng_dataset_free(lines);
    if (!count_classes(c)) return false;
    c->train = ng_dataset_count(c->data) * 4 / 5;
    c->optimizer_name = "adamw";
    snprintf(c->network_text, sizeof c->network_text, "residual, of width %d", width);
    return true;
}

int main(int argc, char **argv)
{
    static const program_option own[] = {
        OPTION_COUNT("width", "N", "channels of the first half", &width, 1, 10000),
        OPTION_TEXT("data", "FILE",
                    "a CSV file: 64 pixels from 0 to 16, and the label\n(examples/data/digits.csv)",
                    &file)};
    static comparison cnn = {.usage = "usage: digits_cnn [options]\n"
                                      "\n"
                                      "Trains a small residual convolutional network on "
                                      "handwritten digits, from several seeds\n"
                                      "and with each requested norm, and prints its accuracy on "
                                      "the validation set, a fifth of\n"
                                      "the digits.\n",
                             .prefix = "digits_cnn",
                             .norms = "none,batch,layer,group",
                             .own = OPTIONS(own),
                             .seeds = 5,
                             .epochs = 10,
                             .batch = 64,
                             .lr = 0.005,
                             .with = {.threads = 1},
                             .read = read_data,
                             .network = make_network,
                             .optimizer = make_optimizer};
    return compare_norms(&cnn, argc, argv);
}
