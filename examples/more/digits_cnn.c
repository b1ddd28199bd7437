/* A small residual network with BatchNorm, or another norm, on 8 x 8 images of digits.
 *
 *     conv 3 x 3 to W channels
 *     a residual block of two convolutions
 *     conv 3 x 3 to 2 W channels, stride 2: 4 x 4 from here on
 *     a residual block of two convolutions
 *     global average pooling and a Linear to the classes
 *
 * Each convolution is followed by a norm. Trains with AdamW, warm-up and a cosine schedule from
 * several seeds, and writes the curves to a .dat file: build/examples/digits_cnn --help */
#include "image_norms.h"
#include "options.h"
#include "training.h"

enum { SIDE = 8, CLASSES = 10, BATCH = 1 /* index in norms */ };

/* ---- Options ---- */

typedef struct {
    bool norm[NORMS];
    double lr;
    int seeds, epochs, batch, width, threads;
    const char *data;
    char out[1024];
    look look;
    checkpoint saved;
} options;

static const char usage[] =
    "usage: digits_cnn [options]\n"
    "\n"
    "Trains a small residual convolutional network on handwritten digits, from several seeds\n"
    "and with each requested norm, and prints its accuracy on the validation set, a fifth of\n"
    "the digits.\n";

static options parse_options(int argc, char **argv)
{
    options o = {.norm = {[BATCH] = true},
                 .lr = 0.005,
                 .seeds = 5,
                 .epochs = 10,
                 .batch = 64,
                 .width = 16,
                 .threads = 1};
    const char *out = NULL;
    const program_option known[] = {
        OPTION_LIST("norm", "LIST", "some of none,batch,layer,group (batch)", o.norm, norms),
        OPTION_COUNT("seeds", "N", "runs of each norm (5)", &o.seeds, 1, MAX_SEEDS),
        OPTION_COUNT("epochs", "N", "passes over the training data (10)", &o.epochs, 1, 100000),
        OPTION_COUNT("batch", "N", "samples per step (64)", &o.batch, 1, 1000000),
        OPTION_RATE("lr", "RATE", "highest learning rate (0.005)", &o.lr),
        OPTION_COUNT("width", "N", "channels of the first half (16)", &o.width, 1, 10000),
        OPTION_TEXT("data", "FILE",
                    "a CSV file: 64 pixels of 0 to 16, label (examples/data/digits.csv)", &o.data),
        OPTION_TEXT("out", "PREFIX", "prefix of the .dat (build/digits_cnn)", &out),
        LOOK_OPTIONS(o.look),
        CHECKPOINT_OPTIONS(o.saved),
        THREADS_OPTION(o.threads, "1")};
    refuse_more(argc, argv, read_options(argc, argv, usage, OPTIONS(known), CTRL_C_HELP));
    check_checkpoint(&o.saved);
    choose_prefix(o.out, sizeof o.out, out, "digits_cnn");
    if (!o.data) o.data = find_data("digits.csv");
    return o;
}

/* ---- The network ---- */

/* Adds a convolution and its norm. With a norm it has no bias, since beta replaces it. */
static void add_convolution(ng_module *net, const norm_choice *norm, int64_t in, int64_t out,
                            int64_t stride)
{
    ng_sequential_add(net, ng_conv2d_new(in, out, 3, .stride = stride, .padding = 1,
                                         .no_bias = norm->make != NULL));
    if (norm->make) ng_sequential_add(net, norm->make(out));
}

/* Adds relu(x + conv(relu(conv(x)))), a norm after each convolution. He et al. 2016. */
static void add_block(ng_module *net, const norm_choice *norm, int64_t channels)
{
    ng_module *inner = ng_sequential_from(NULL, 0);
    add_convolution(inner, norm, channels, channels, 1);
    ng_sequential_add(inner, ng_relu_new());
    add_convolution(inner, norm, channels, channels, 1);
    ng_sequential_add(net, ng_residual_new(inner));
    ng_sequential_add(net, ng_relu_new());
}

static ng_module *make_network(const options *o, const norm_choice *norm, int seed)
{
    ng_module *net = ng_sequential_from(NULL, 0);
    add_convolution(net, norm, 1, o->width, 1);
    ng_sequential_add(net, ng_relu_new());
    add_block(net, norm, o->width);
    add_convolution(net, norm, o->width, 2 * o->width, 2);
    ng_sequential_add(net, ng_relu_new());
    add_block(net, norm, 2 * o->width);
    ng_sequential_add(net, ng_global_avg_pool_new());
    ng_sequential_add(net, ng_linear_new(2 * o->width, CLASSES));
    ng_module_init(net, (uint64_t)seed);
    return net;
}

/* ---- Training ---- */

/* AdamW. The rate rises over the first tenth of the steps, then falls as a cosine. */
static ng_optimizer *make_optimizer(const options *o, ng_module *net, int64_t samples)
{
    const int64_t steps = samples / o->batch * o->epochs;
    const ng_schedule cosine = {
        .kind = NG_SCHEDULE_COSINE, .warmup = steps / 10, .steps = steps - steps / 10};
    return ng_adamw_new(net, .lr = o->lr, .schedule = cosine);
}

/* Trains from one seed, which draws the split and the weights, without incomplete batches. */
static void run_seed(options *o, const norm_choice *norm, ng_dataset *data, int seed, curves *c,
                     progress *bar)
{
    training t = {.name = norm->name, .seed = seed, .batch = o->batch, .drop_last = true};
    const int64_t samples = ng_dataset_count(data) * 4 / 5;
    const double began = progress_clock();
    ng_dataset_split(data, samples, (uint64_t)seed, &t.train, &t.validate);
    t.net = make_network(o, norm, seed);
    t.optimizer = make_optimizer(o, t.net, samples);
    t.tape = ng_tape_new();
    t.curves = c;
    t.bar = bar;
    c->parameters = ng_failed() ? 0 : ng_parameter_count(t.net);
    if (seed == 0) t.watched = look_watch(&o->look, t.net, norm->name);
    const bool begun = training_begin(&t, &o->saved, norm->key);
    while (begun && ng_training_epoch(t.run, o->epochs) && run_epoch(&t)) {
        char status[96];
        snprintf(status, sizeof status, "%s, seed %d of %d", norm->name, seed + 1, o->seeds);
        draw_live(&o->look, c, seed, status);
    }
    look_draw_layers(t.watched, o->out, norm->key);
    print_seed(&t, progress_clock() - began);
    training_free(&t);
}

/* ---- Results ---- */

static void print_results(const curves *all)
{
    printf("\n%-10s %10s %13s   %s\n", "norm", "parameters", "training loss",
           "validation accuracy (%)");
    for (int i = 0; i < NORMS; i++) print_curves(norms[i].name, &all[i]);
}

static bool write_history(const options *o, ng_dataset *data, const curves *all)
{
    const int64_t count = ng_dataset_count(data);
    char what[512];
    snprintf(what, sizeof what,
             "%lld samples to train, %lld to validate; residual network of width %d; adamw, lr "
             "%g, batch %d; seeds 0 to %d; float32",
             (long long)(count * 4 / 5), (long long)(count - count * 4 / 5), o->width, o->lr,
             o->batch, o->seeds - 1);
    ng_history *history = ng_history_new(what);
    for (int i = 0; i < NORMS; i++) log_curves(history, norms[i].name, &all[i]);
    static const char *const drawn[] = {"train_loss", "val_accuracy", NULL};
    const bool written = write_dat(history, o->out);
    if (written) putchar('\n'), look_plot(history, o->out, drawn, "epoch");
    ng_history_free(history);
    return written;
}

/* ---- Main ---- */

/* Returns whether the file has the network's input size, valid labels, and enough samples for a
 * batch. */
static bool data_fits(const options *o, ng_dataset *data)
{
    const ng_tensor *x = ng_dataset_x(data), *y = ng_dataset_y(data);
    if (!data) return false;
    const int64_t train = ng_dataset_count(data) * 4 / 5;
    if (ng_dim(x, 1) != SIDE * SIDE) {
        ng_fail(NG_EVALUE, "%s: %lld pixels, expected %d", o->data, (long long)ng_dim(x, 1),
                SIDE * SIDE);
    } else if (o->batch > train) {
        ng_fail(NG_EVALUE, "--batch %d: expected at most the %lld samples to train", o->batch,
                (long long)train);
    }
    for (int64_t i = 0; i < ng_size(y); i++)
        if (!(ng_get(y, i) >= 0 && ng_get(y, i) < (double)CLASSES) && !ng_failed())
            ng_fail(NG_EVALUE, "%s: label %g, expected 0 to %d", o->data, ng_get(y, i),
                    CLASSES - 1);
    return !ng_failed();
}

static void print_opening(const options *o, ng_dataset *data)
{
    const int64_t count = ng_dataset_count(data);
    ng_module *net = make_network(o, &norms[BATCH], 0);
    printf(
        "%lld samples for training, %lld for validation, %lld parameters with BatchNorm, AdamW at "
        "%g, batch %d, %d epoch%s\n\n",
        (long long)(count * 4 / 5), (long long)(count - count * 4 / 5),
        (long long)ng_parameter_count(net), o->lr, o->batch, o->epochs, o->epochs == 1 ? "" : "s");
    fflush(stdout);
    ng_module_free(net);
}

static void run_norm(options *o, const norm_choice *norm, ng_dataset *data, curves *c)
{
    const double samples = (double)(ng_dataset_count(data) * 4 / 5) * o->seeds * o->epochs;
    progress bar = progress_begin(norm->name, "samples", samples,
                                  !progress_terminal() || look_fills_terminal(&o->look));
    look_block(&o->look, norm->name);
    for (int seed = 0; seed < o->seeds && !interrupted && !ng_failed(); seed++)
        run_seed(o, norm, data, seed, c, &bar);
    progress_end(&bar);
}

static void work(options *o, ng_dataset *data, curves *all)
{
    print_opening(o, data);
    look_begin(&o->look);
    for (int i = 0; i < NORMS && !interrupted && !ng_failed(); i++)
        if (o->norm[i]) run_norm(o, &norms[i], data, &all[i]);
    look_end(&o->look);
    if (ng_failed()) return;
    const bool any = has_results(all, NORMS);
    if (any) {
        print_results(all);
        write_history(o, data, all);
    }
    if (interrupted) printf("Interrupted%s.\n", any ? "" : ": no curves are saved");
}

/* Reads the file's lines as images (count, 1, 8, 8). */
static ng_dataset *read_images(const options *o)
{
    ng_dataset *lines = ng_dataset_read_csv(o->data, .scale = 1.0 / 16), *images = NULL;
    if (data_fits(o, lines)) {
        ng_tensor *x = ng_copy_new(ng_dataset_x(lines), NG_F32);
        ng_tape *tape = ng_tape_new();
        images =
            ng_dataset_from(ng_reshape(tape, x, NG_SHAPE(-1, 1, SIDE, SIDE)), ng_dataset_y(lines));
        ng_tape_free(tape), ng_tensor_free(x);
    }
    ng_dataset_free(lines);
    return images;
}

int main(int argc, char **argv)
{
    program_begin(argv);
    options o = parse_options(argc, argv);
    curves all[NORMS];
    ng_set_threads(o.threads);
    catch_signals();
    ng_dataset *data = can_write("out", o.out) ? read_images(&o) : NULL;
    make_curves(all, NORMS, o.seeds, o.epochs);
    if (data) work(&o, data, all);
    clear_curves(all, NORMS);
    ng_dataset_free(data);
    return program_end(!data ? EXIT_FAILED : interrupted ? EXIT_INTERRUPTED : EXIT_SUCCESS);
}
