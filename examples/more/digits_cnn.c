/* A small residual network with each of several norms on 8 x 8 images of digits.
 *
 *     conv 3 x 3 to W channels
 *     a residual block of two convolutions
 *     conv 3 x 3 to 2 W channels, stride 2: 4 x 4 from here on
 *     a residual block of two convolutions
 *     global average pooling and a Linear to the classes
 *
 * Each convolution is followed by a norm: build/examples/digits_cnn --help */
#include "harness.h"

enum { SIDE = 8 };
static const char norm_list[] = "none,batch_norm,layer_norm,group_norm";
enum { NORM, SEEDS, EPOCHS, BATCH, WIDTH, LR, OUT };
static option options[] = {
    [NORM] = {"norm", "with a comma between them", .text = norm_list, .choices = norm_list,
              .many = true},
    [SEEDS] = {"seeds", "runs of each norm", .normal = 5, .most = 100},
    [EPOCHS] = {"epochs", "passes over the training data", .normal = 10},
    [BATCH] = {"batch", "samples per step", .normal = 64, .least = 2},
    [WIDTH] = {"width", "channels of the first half", .normal = 16, .least = 4},
    [LR] = {"lr", "highest learning rate", .normal = 0.005, .fraction = true},
    [OUT] = {"out", "prefix of the .dat and .svg (build/digits_cnn)", .text = ""},
    {0}};

/* Adds a convolution and its norm. With a norm it has no bias, since beta replaces it. */
static void add_convolution(ng_module *net, const char *norm, int64_t in, int64_t out,
                            int64_t stride)
{
    ng_sequential_add(net, ng_conv2d_new(in, out, 3, .stride = stride, .padding = 1,
                                         .no_bias = strcmp(norm, "none") != 0));
    ng_sequential_add(net, norm_of_images(norm, out));
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

/* Returns the digits as images (count, 1, SIDE, SIDE). */
static ng_dataset *read_images(void)
{
    ng_tape *tape = ng_tape_new();
    ng_dataset *rows =
        ng_dataset_read_csv(find_file("examples/data", "digits.csv").text, .scale = 1.0 / 16);
    still_works();
    ng_tensor *x = ng_reshape(tape, ng_dataset_x(rows), NG_SHAPE(-1, 1, SIDE, SIDE));
    ng_dataset *images = ng_dataset_from(x, ng_dataset_y(rows));
    ng_tape_free(tape), ng_dataset_free(rows);
    return images;
}

/* Trains from a seed, which draws the split and the weights, with AdamW: the rate rises over the
 * first tenth of the steps, then falls as a cosine. Logs each epoch. Returns the accuracy. */
static double train(const ng_dataset *images, const char *norm, int seed, curve_set *curves)
{
    ng_dataset *train = NULL, *test = NULL;
    ng_dataset_split_new(images, ng_dataset_count(images) * 4 / 5, (uint64_t)seed, &train, &test);
    ng_module *net = make_network(norm, (uint64_t)seed);
    const int steps = (int)(ng_dataset_count(train) / get_whole(BATCH)) * get_whole(EPOCHS);
    ng_optimizer *adam =
        ng_adamw_new(net, 0.01, .lr = get_number(LR),
                     .schedule = NG_SCHEDULE(.kind = NG_SCHEDULE_COSINE, .warmup = steps / 10,
                                             .steps = steps - steps / 10));
    ng_tape *tape = ng_tape_new();
    double accuracy = 0;
    for (int epoch = 1; epoch <= get_whole(EPOCHS); epoch++) {
        ng_dataset_shuffle(train, (uint64_t)epoch);
        const double loss = run_epoch(net, adam, tape, train, get_whole(BATCH), true);
        if (!is_finite(loss, norm, epoch)) break;
        accuracy = 100 * ng_evaluate(net, test).accuracy;
        log_curves(curves, seed, "train_loss val_accuracy", epoch, loss, accuracy);
        show_progress(epoch, get_whole(EPOCHS), "%s, seed %d, epoch %d", norm, seed, epoch);
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
        "the digits.\n";
    begin_program(argc, argv, usage, options, NULL);
    const line prefix = choose_prefix(get_text(OUT), "digits_cnn");
    ng_dataset *images = read_images();
    begin_data(
        "digits as images; residual network of width %d; adamw, lr %g; batch %d; seeds 0 to %d",
        get_whole(WIDTH), get_number(LR), get_whole(BATCH), get_whole(SEEDS) - 1);
    printf("%-12s median  lowest  highest  of the validation accuracy (%%)\n", "norm");
    char norm[32];
    for (const char *at = get_text(NORM); next_item(&at, norm, sizeof norm);) {
        double accuracies[MOST_SEEDS];
        curve_set *curves = new_curves("epoch", "%s", norm);
        for (int seed = 0; seed < get_whole(SEEDS) && still_works(); seed++)
            accuracies[seed] = train(images, norm, seed, curves);
        still_works();
        const double median = median_of(accuracies, get_whole(SEEDS));
        printf("%-12s %6.2f  %6.2f  %7.2f\n", norm, median, accuracies[0],
               accuracies[get_whole(SEEDS) - 1]);
        fflush(stdout);
    }
    draw_curves(prefix.text, (ng_plot_options){.x_label = "epoch"});
    end_data(prefix.text);
    ng_dataset_free(images);
    return end_program(EXIT_SUCCESS);
}
