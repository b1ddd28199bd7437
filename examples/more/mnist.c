/* Norms on MNIST, read from the original files.
 *
 *     conv 5 x 5 to 16 channels, stride 2; norm; relu      28 x 28 -> 14 x 14
 *     conv 5 x 5 to 32 channels, stride 2; norm; relu      -> 7 x 7
 *     a Linear to the classes
 *
 * Trains with Adam and a cosine schedule: build/examples/mnist --help */
#include "harness.h"

static const char norm_list[] = "none,batch_norm,layer_norm,group_norm";
enum { NORM, IMAGES, LABELS, TEST_IMAGES, TEST_LABELS, TRAIN, EPOCHS, BATCH, LR, SEED };
static option options[] = {
    [NORM] = {"norm", "with a comma between them", .text = norm_list, .choices = norm_list,
              .many = true},
    [IMAGES] = {"images", "file of training images", .text = ""},
    [LABELS] = {"labels", "file of their labels", .text = ""},
    [TEST_IMAGES] = {"test-images", "file of test images (the images that are left)", .text = ""},
    [TEST_LABELS] = {"test-labels", "file of their labels", .text = ""},
    [TRAIN] = {"train", "training images (four of five if there are no test images)", .zero = true},
    [EPOCHS] = {"epochs", "passes over the training images", .normal = 1},
    [BATCH] = {"batch", "samples per step", .normal = 64, .least = 2},
    [LR] = {"lr", "learning rate", .normal = 0.002, .fraction = true},
    [SEED] = {"seed", "seed of split and weights", .zero = true},
    {0}};

/* Returns images (count, 1, height, width) and their labels. */
static ng_dataset *read_images(const char *images, const char *labels)
{
    ng_tape *tape = ng_tape_new();
    ng_dataset *read = ng_dataset_read_idx(images, labels);
    still_works();
    const ng_tensor *x = ng_dataset_x(read);
    const ng_shape shape = NG_SHAPE(-1, 1, ng_dim(x, 1), ng_dim(x, 2));
    ng_dataset *data =
        ng_dataset_from(ng_reshape(tape, ng_dataset_x(read), shape), ng_dataset_y(read));
    ng_tape_free(tape), ng_dataset_free(read);
    return data;
}

/* Returns the side after a convolution of stride 2. */
static int64_t halved(int64_t side) { return (side + 1) / 2; }

static ng_module *make_network(const char *norm, const ng_tensor *x)
{
    const int64_t height = halved(halved(ng_dim(x, 2))), width = halved(halved(ng_dim(x, 3)));
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int64_t in = 1, out = 16; out <= 32; in = out, out *= 2) {
        ng_sequential_add(net, ng_conv2d_new(in, out, 5, .stride = 2, .padding = 2,
                                             .no_bias = strcmp(norm, "none") != 0));
        ng_sequential_add(net, norm_of_images(norm, out));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_flatten_new());
    ng_sequential_add(net, ng_linear_new(32 * height * width, 10));
    ng_module_init(net, (uint64_t)get_number(SEED));
    return net;
}

static double seconds_now(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Trains with a norm and prints loss and accuracy after each epoch. */
static void train(const char *norm, ng_dataset *train, ng_dataset *test)
{
    ng_module *net = make_network(norm, ng_dataset_x(train));
    const int64_t steps = ng_dataset_count(train) / get_whole(BATCH) * get_whole(EPOCHS);
    ng_optimizer *adam =
        ng_adam_new(net, .lr = get_number(LR),
                    .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .steps = steps));
    ng_tape *tape = ng_tape_new();
    for (int epoch = 0; epoch < get_whole(EPOCHS); epoch++) {
        const double began = seconds_now();
        ng_dataset_shuffle(train, (uint64_t)epoch);
        const double loss = run_epoch(net, adam, tape, train, get_whole(BATCH), true);
        if (!is_finite(loss, norm, epoch + 1)) break;
        const double seconds = seconds_now() - began;
        printf("%-12s epoch %2d  loss %.4f  accuracy %6.2f %%  %.1f s\n", norm, epoch + 1, loss,
               100 * ng_evaluate(net, test).accuracy, seconds);
        fflush(stdout);
    }
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
}

int main(int argc, char **argv)
{
    static const char usage[] =
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
        "say).\n";
    begin_program(argc, argv, usage, options, NULL);
    if (!*get_text(IMAGES) || !*get_text(LABELS))
        give_up(EXIT_USAGE, line_of("expected --images and --labels; --help says where they are"));
    ng_dataset *all = read_images(get_text(IMAGES), get_text(LABELS)), *some = NULL, *rest = NULL;
    ng_dataset *test =
        *get_text(TEST_IMAGES) ? read_images(get_text(TEST_IMAGES), get_text(TEST_LABELS)) : NULL;
    const int64_t count = ng_dataset_count(all);
    const int64_t kept = get_whole(TRAIN) ? get_whole(TRAIN) : test ? count : count * 4 / 5;
    if (kept < count) ng_dataset_split_new(all, kept, (uint64_t)get_number(SEED), &some, &rest);
    if (kept > count || (!test && !rest))
        ng_fail(NG_EVALUE, "--train %lld: of %lld images, expected fewer", (long long)kept,
                (long long)count);
    still_works();
    char norm[32];
    for (const char *at = get_text(NORM); next_item(&at, norm, sizeof norm) && still_works();)
        train(norm, some ? some : all, test ? test : rest);
    ng_dataset_free(all), ng_dataset_free(some), ng_dataset_free(rest), ng_dataset_free(test);
    return end_program(EXIT_SUCCESS);
}
