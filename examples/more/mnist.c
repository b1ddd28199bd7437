/* A comparison of norms on MNIST, read from the original files.
 *
 *     conv 5 x 5 to 16 channels, stride 2; norm; relu      28 x 28 -> 14 x 14
 *     conv 5 x 5 to 32 channels, stride 2; norm; relu      -> 7 x 7
 *     a Linear to the classes
 *
 * Trains with Adam and a cosine schedule: build/examples/mnist --help */
#include "compare.h"

static const char *images, *labels, *test_images, *test_labels;
static int train;

static ng_dataset *read_idx(const char *x, const char *y)
{
    ng_dataset *read = ng_dataset_read_idx(x, y);
    const ng_tensor *pixels = read ? ng_dataset_x(read) : NULL;
    ng_dataset *data = as_images(read, NG_SHAPE(-1, 1, ng_dim(pixels, 1), ng_dim(pixels, 2)));
    ng_dataset_free(read);
    return data;
}

static bool read_data(comparison *c)
{
    if (!images || !labels || !test_images != !test_labels) {
        complain("expected --images and --labels, and --test-images and --test-labels both or "
                 "neither; --help says where to get the files");
        exit(EXIT_USAGE);
    }
    c->data = read_idx(images, labels);
    if (test_images) c->test = read_idx(test_images, test_labels);
    if (!count_classes(c)) return false;
    const int64_t count = ng_dataset_count(c->data), most = c->test ? count : count - 1;
    c->train = train ? train : c->test ? count : count * 4 / 5;
    if (c->train > most)
        ng_fail(NG_EVALUE, "--train %lld: of %lld images, expected at most %lld",
                (long long)c->train, (long long)count, (long long)most);
    c->optimizer_name = "adam";
    snprintf(c->network_text, sizeof c->network_text, "two convolutions");
    return !ng_failed();
}

/* Returns the side after a convolution of stride 2. */
static int64_t halved(int64_t side) { return (side + 1) / 2; }

static ng_module *make_network(const comparison *c, ng_norm_maker *norm)
{
    const ng_tensor *x = ng_dataset_x(c->data);
    const int64_t height = halved(halved(ng_dim(x, 2))), width = halved(halved(ng_dim(x, 3)));
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int64_t in = 1, out = 16; out <= 32; in = out, out *= 2) {
        ng_sequential_add(net, ng_conv2d_new(in, out, 5, .stride = 2, .padding = 2,
                                             .no_bias = norm != ng_norm_none));
        ng_sequential_add(net, norm(out));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_flatten_new());
    ng_sequential_add(net, ng_linear_new(32 * height * width, c->classes));
    return net;
}

static ng_optimizer *make_optimizer(const comparison *c, ng_module *net, double lr, int64_t steps)
{
    (void)c;
    return ng_adam_new(net, .lr = lr,
                       .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .steps = steps));
}

int main(int argc, char **argv)
{
    static const program_option own[] = {
        OPTION_TEXT("images", "FILE", "training images", &images),
        OPTION_TEXT("labels", "FILE", "labels of the training images", &labels),
        OPTION_TEXT("test-images", "FILE", "test images (a fifth of the images, drawn by the seed)",
                    &test_images),
        OPTION_TEXT("test-labels", "FILE", "labels of the test images", &test_labels),
        OPTION_COUNT(
            "train", "N",
            "training images; without --test-images the rest is for testing (all, or 4 of 5)",
            &train, 1, 100000000)};
    static comparison mnist = {
        .usage =
            "usage: mnist --images FILE --labels FILE [options]\n"
            "\n"
            "Trains a small convolutional network on MNIST's images of digits with each norm, and\n"
            "prints its accuracy on images that were not used for training. The files are read as\n"
            "distributed, compressed (.gz) or not:\n"
            "\n"
            "  train-images-idx3-ubyte.gz  train-labels-idx1-ubyte.gz   60,000 for training\n"
            "  t10k-images-idx3-ubyte.gz   t10k-labels-idx1-ubyte.gz    10,000 for testing\n"
            "\n"
            "from https://ossci-datasets.s3.amazonaws.com/mnist/ or, the original site,\n"
            "http://yann.lecun.com/exdb/mnist/. Other files of this format work (Fashion-MNIST, "
            "say).\n",
        .prefix = "mnist",
        .norms = "none,batch,layer,group",
        .own = OPTIONS(own),
        .seeds = 1,
        .epochs = 1,
        .batch = 64,
        .lr = 0.002,
        .with = {.threads = 0},
        .read = read_data,
        .network = make_network,
        .optimizer = make_optimizer};
    return compare_norms(&mnist, argc, argv);
}
