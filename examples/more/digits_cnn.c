/* A small residual network with each of several norms on images: 8 x 8 digits, or MNIST's files.
 *
 *     conv 3 x 3 to W channels
 *     a residual block of two convolutions
 *     conv 3 x 3 to 2 W channels, stride 2: half as high and wide from here on
 *     a residual block of two convolutions
 *     global average pooling and a Linear to the classes
 *
 * Each convolution is followed by a norm: build/examples/digits_cnn --help */
#include "harness.h"

enum { MOST = 8 }; /* networks that are compared */
static const char norm_list[] = "none,batch_norm,layer_norm,group_norm";
enum { NORM, SEEDS, EPOCHS, BATCH, WIDTH, LR, IMAGES, LABELS, OUT };
static option options[] = {
    [NORM] = {"norm", "with a comma between them", .text = norm_list, .choices = norm_list,
              .many = true},
    [SEEDS] = {"seeds", "runs of each norm", .normal = 5, .most = 100},
    [EPOCHS] = {"epochs", "passes over the training data", .normal = 10},
    [BATCH] = {"batch", "samples per step", .normal = 64, .least = 2},
    [WIDTH] = {"width", "channels of the first half", .normal = 16, .least = 4},
    [LR] = {"lr", "highest learning rate", .normal = 0.005, .fraction = true},
    [IMAGES] = {"images", "file of images in MNIST's format, .gz or not (the digits)", .text = ""},
    [LABELS] = {"labels", "file of their labels", .text = ""},
    [OUT] = {"out", "prefix of the .dat and .svg (build/digits_cnn)", .text = ""},
    {0}};

static ng_module *make_norm(const char *name, int64_t channels)
{
    if (strcmp(name, "batch_norm") == 0) return ng_batch_norm_new(channels);
    if (strcmp(name, "group_norm") == 0) return ng_group_norm_new(4, channels);
    if (strcmp(name, "layer_norm") == 0) /* over each pixel's channels */
        return ng_layer_norm_new(channels, .channels_first = true);
    return ng_norm_none(channels);
}

/* Adds a convolution and its norm. With a norm it has no bias, since beta replaces it. */
static void add_convolution(ng_module *net, const char *norm, int64_t in, int64_t out,
                            int64_t stride)
{
    ng_sequential_add(net, ng_conv2d_new(in, out, 3, .stride = stride, .padding = 1,
                                         .no_bias = strcmp(norm, "none") != 0));
    ng_sequential_add(net, make_norm(norm, out));
}

/* Adds relu(x + conv(relu(conv(x)))), a norm after each convolution. He et al. 2016. */
static void add_block(ng_module *net, const char *norm, int64_t channels)
{
    ng_module *inner = ng_sequential_from(NULL, 0);
    add_convolution(inner, norm, channels, channels, 1);
    ng_sequential_add(inner, ng_relu_new());
    add_convolution(inner, norm, channels, channels, 1);
    ng_sequential_add(net, ng_residual_new(inner));
    ng_sequential_add(net, ng_relu_new());
}

static ng_module *make_network(const char *norm, uint64_t seed)
{
    const int64_t width = get_whole(WIDTH);
    ng_module *net = ng_sequential_from(NULL, 0);
    add_convolution(net, norm, 1, width, 1);
    ng_sequential_add(net, ng_relu_new());
    add_block(net, norm, width);
    add_convolution(net, norm, width, 2 * width, 2);
    ng_sequential_add(net, ng_relu_new());
    add_block(net, norm, 2 * width);
    ng_sequential_add(net, ng_global_avg_pool_new());
    ng_sequential_add(net, ng_linear_new(2 * width, 10));
    ng_module_init(net, seed);
    return net;
}

/* Returns images (count, 1, height, width) and their labels. */
static ng_dataset *read_images(void)
{
    ng_tape *tape = ng_tape_new();
    const bool given = *get_text(IMAGES);
    if (given != (bool)*get_text(LABELS)) give_up(EXIT_USAGE, "expected --images and --labels");
    ng_dataset *read =
        given ? ng_dataset_read_idx(get_text(IMAGES), get_text(LABELS)) : read_digits();
    still_works();
    ng_tensor *x = ng_dataset_x(read);
    const ng_shape shape =
        given ? NG_SHAPE(-1, 1, ng_dim(x, 1), ng_dim(x, 2)) : NG_SHAPE(-1, 1, 8, 8);
    ng_dataset *images = ng_dataset_from(ng_reshape(tape, x, shape), ng_dataset_y(read));
    ng_tape_free(tape), ng_dataset_free(read);
    return images;
}

/* Trains from a seed, which draws the split and the weights, with AdamW: the rate rises over the
 * first tenth of the steps, then falls as a cosine. Logs each epoch. Returns the accuracy. */
static double train(const ng_dataset *images, const char *norm, int seed, curve_set *curves)
{
    ng_dataset *train = NULL, *test = NULL;
    ng_dataset_split_new(images, ng_dataset_count(images) * 4 / 5, (uint64_t)seed, &train, &test);
    ng_module *net = make_network(norm, (uint64_t)seed);
    const int steps = (int)(ng_dataset_count(train) / get_whole(BATCH) + 1) * get_whole(EPOCHS);
    ng_optimizer *adam =
        ng_adamw_new(net, 0.01, .lr = get_number(LR),
                     .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = steps / 10,
                                             .steps = steps - steps / 10));
    ng_tape *tape = ng_tape_new();
    double accuracy = 0;
    for (int epoch = 1; epoch <= get_whole(EPOCHS); epoch++) {
        ng_dataset_shuffle(train, (uint64_t)epoch);
        const double loss = run_epoch(net, adam, tape, train, get_whole(BATCH));
        if (!is_finite(loss, norm, epoch)) break;
        accuracy = 100 * ng_evaluate(net, test).accuracy;
        log_curves(curves, seed, "train_loss val_accuracy", epoch, loss, accuracy);
    }
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(test);
    return accuracy;
}

int main(int argc, char **argv)
{
    static const char usage[] =
        "usage: digits_cnn [options]\n"
        "\n"
        "Trains a small residual convolutional network on handwritten digits, from several seeds\n"
        "and with each requested norm, and prints its accuracy on the validation set, a fifth of\n"
        "the images. The digits are examples/data's, or MNIST's, whose files are at\n"
        "https://ossci-datasets.s3.amazonaws.com/mnist/:\n"
        "\n"
        "  --images train-images-idx3-ubyte.gz --labels train-labels-idx1-ubyte.gz\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "digits_cnn");
    ng_dataset *images = read_images();
    begin_data(
        "digits as images; residual network of width %d; adamw, lr %g; batch %d; seeds 0 to %d",
        get_whole(WIDTH), get_number(LR), get_whole(BATCH), get_whole(SEEDS) - 1);
    printf("%-12s median  lowest  highest  of the validation accuracy (%%)\n", "norm");
    char norm[ITEM];
    ng_history *medians[MOST + 1] = {NULL};
    const char *names[MOST];
    int count = 0;
    for (const char *at = get_text(NORM); count < MOST && next_item(&at, ',', norm);) {
        double accuracies[MOST_SEEDS];
        curve_set *curves = new_curves("epoch", "%s", norm);
        for (int seed = 0; seed < get_whole(SEEDS) && still_works(); seed++)
            accuracies[seed] = train(images, norm, seed, curves);
        still_works();
        names[count] = curves->name.text;
        medians[count++] = ng_history_summary_new(curves->runs, curves->count);
        const double median = median_of(accuracies, get_whole(SEEDS));
        printf("%-12s %6.2f  %6.2f  %7.2f\n", norm, median, accuracies[0],
               accuracies[get_whole(SEEDS) - 1]);
        fflush(stdout);
    }
    const line figure = line_of("%s.svg", prefix.text);
    if (ng_plot(medians[0], figure.text, .histories = medians + 1, .names = names, .band = true,
                .panels = true, .x_label = "epoch"))
        complain("%s", ng_error_text()), ng_clear_error();
    end_data(prefix.text);
    printf("Data: %s.dat\n", prefix.text);
    while (count > 0) ng_history_free(medians[--count]);
    ng_dataset_free(images);
    return end_program(EXIT_SUCCESS);
}
