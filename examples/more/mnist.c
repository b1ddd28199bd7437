/* A comparison of norms on MNIST, read from the original files.
 *
 *     conv 5 x 5 to 16 channels, stride 2; norm; relu      28 x 28 -> 14 x 14
 *     conv 5 x 5 to 32 channels, stride 2; norm; relu      -> 7 x 7
 *     a Linear to the classes
 *
 * Trains with Adam and a cosine schedule, without a norm and with each of three, and measures the
 * accuracy on other images: build/examples/mnist --help */
#include "image_norms.h"
#include "options.h"
#include "training.h"

enum { CLASSES = 10 };

/* ---- Options ---- */

typedef struct {
    bool norm[NORMS];
    double lr;
    int seeds, epochs, batch, train, threads;
    const char *images, *labels, *test_images, *test_labels;
    char out[1024];
    checkpoint saved;
} options;

static const char usage[] =
    "usage: mnist --images FILE --labels FILE [options]\n"
    "\n"
    "Trains a small convolutional network on MNIST's images of digits with each norm, and prints\n"
    "its accuracy on images that were not used for training. The files are read as distributed,\n"
    "compressed (.gz) or not:\n"
    "\n"
    "  train-images-idx3-ubyte.gz  train-labels-idx1-ubyte.gz   60,000 for training\n"
    "  t10k-images-idx3-ubyte.gz   t10k-labels-idx1-ubyte.gz    10,000 for testing\n"
    "\n"
    "from https://ossci-datasets.s3.amazonaws.com/mnist/ or, the original site,\n"
    "http://yann.lecun.com/exdb/mnist/. Other files of this format work (Fashion-MNIST, say).\n";

static options parse_options(int argc, char **argv)
{
    options o = {
        .norm = {true, true, true, true}, .lr = 0.002, .seeds = 1, .epochs = 1, .batch = 64};
    const char *out = NULL;
    const program_option known[] = {
        OPTION_TEXT("images", "FILE", "training images", &o.images),
        OPTION_TEXT("labels", "FILE", "labels of the training images", &o.labels),
        OPTION_TEXT("test-images", "FILE", "test images (a fifth of the images, drawn by the seed)",
                    &o.test_images),
        OPTION_TEXT("test-labels", "FILE", "labels of the test images", &o.test_labels),
        OPTION_COUNT("train", "N",
                     "number of training images; without --test-images the rest is for testing",
                     &o.train, 1, 100000000),
        OPTION_LIST("norm", "LIST", "some of none,batch,layer,group (all)", o.norm, norms),
        OPTION_COUNT("seeds", "N", "runs of each norm (1)", &o.seeds, 1, MAX_SEEDS),
        OPTION_COUNT("epochs", "N", "passes over the training images (1)", &o.epochs, 1, 100000),
        OPTION_COUNT("batch", "N", "samples per step (64)", &o.batch, 1, 1000000),
        OPTION_RATE("lr", "RATE", "highest learning rate (0.002)", &o.lr),
        CHECKPOINT_OPTIONS(o.saved),
        OPTION_TEXT("out", "PREFIX", "prefix of the .dat (build/mnist)", &out),
        THREADS_OPTION(o.threads, "0")};
    refuse_more(argc, argv, read_options(argc, argv, usage, OPTIONS(known), CTRL_C_HELP));
    check_checkpoint(&o.saved);
    if (!o.images || !o.labels || !o.test_images != !o.test_labels) {
        complain("expected --images and --labels, and --test-images and --test-labels both or "
                 "neither; --help says where to get the files");
        exit(EXIT_USAGE);
    }
    choose_prefix(o.out, sizeof o.out, out, "mnist");
    return o;
}

/* ---- Images ---- */

/* Reads images (count, 1, height, width) and their labels of ten classes. */
static ng_dataset *read_images(const char *images, const char *labels)
{
    ng_dataset *read = ng_dataset_read_idx(images, labels), *data = NULL;
    const ng_tensor *y = read ? ng_dataset_y(read) : NULL;
    for (int64_t i = 0; i < (y ? ng_size(y) : 0) && !ng_failed(); i++)
        if (ng_get(y, i) >= (double)CLASSES)
            ng_fail(NG_EVALUE, "%s: label %g, expected 0 to %d", labels, ng_get(y, i), CLASSES - 1);
    if (read && !ng_failed()) {
        const ng_shape shape = ng_shape_of(ng_dataset_x(read));
        ng_tensor *x = ng_copy_new(ng_dataset_x(read), NG_F32);
        ng_tape *tape = ng_tape_new();
        const ng_shape image = NG_SHAPE(shape.dim[0], 1, shape.dim[1], shape.dim[2]);
        data = ng_dataset_from(ng_reshape(tape, x, image), y);
        ng_tape_free(tape), ng_tensor_free(x);
    }
    ng_dataset_free(read);
    return data;
}

typedef struct {
    options options;
    ng_dataset *images, *test; /* test: NULL if the images are split */
    int64_t train;             /* number of training images */
    curves curves[NORMS];
} job;

static bool read_data(job *j)
{
    const options *o = &j->options;
    j->images = read_images(o->images, o->labels);
    if (!j->images) return false;
    if (o->test_images) {
        j->test = read_images(o->test_images, o->test_labels);
        if (!j->test) return false;
    }
    const int64_t count = ng_dataset_count(j->images), most = j->test ? count : count - 1;
    j->train = o->train ? o->train : j->test ? count : count * 4 / 5;
    if (j->train > most || j->train < o->batch) {
        ng_fail(NG_EVALUE, "--train %lld: of %lld images, expected %d (a batch) to %lld",
                (long long)j->train, (long long)count, o->batch, (long long)most);
        return false;
    }
    return true;
}

/* ---- Training ---- */

/* Returns the side after a convolution of stride 2. */
static int64_t halved(int64_t side) { return (side + 1) / 2; }

static ng_module *make_network(const job *j, const norm_choice *norm, int seed)
{
    const ng_tensor *x = ng_dataset_x(j->images);
    const int64_t height = halved(halved(ng_dim(x, 2))), width = halved(halved(ng_dim(x, 3)));
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int64_t in = 1, out = 16; out <= 32; in = out, out *= 2) {
        ng_sequential_add(net, ng_conv2d_new(in, out, 5, .stride = 2, .padding = 2,
                                             .no_bias = norm->make != NULL));
        if (norm->make) ng_sequential_add(net, norm->make(out));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_flatten_new());
    ng_sequential_add(net, ng_linear_new(32 * height * width, CLASSES));
    ng_module_init(net, (uint64_t)seed);
    return net;
}

/* Trains from one seed, which draws the weights and, if there is a split, the split. */
static void run_seed(job *j, int norm, int seed, progress *bar)
{
    const options *o = &j->options;
    curves *c = &j->curves[norm];
    training t = {.name = norms[norm].name, .seed = seed, .batch = o->batch, .drop_last = true};
    const double began = progress_clock();
    ng_dataset *rest = NULL;
    if (j->train < ng_dataset_count(j->images))
        ng_dataset_split(j->images, j->train, (uint64_t)seed, &t.train, &rest);
    else
        t.train = ng_dataset_from(ng_dataset_x(j->images), ng_dataset_y(j->images));
    if (j->test) {
        t.validate = ng_dataset_from(ng_dataset_x(j->test), ng_dataset_y(j->test));
        ng_dataset_free(rest);
    } else {
        t.validate = rest;
    }
    t.net = make_network(j, &norms[norm], seed);
    t.optimizer = ng_adam_new(
        t.net, .lr = o->lr,
        .schedule = {.kind = NG_SCHEDULE_COSINE, .steps = j->train / o->batch * o->epochs});
    t.tape = ng_tape_new();
    t.curves = c;
    t.bar = bar;
    c->parameters = ng_failed() ? 0 : ng_parameter_count(t.net);
    const bool begun = !ng_failed() && training_begin(&t, &o->saved, norms[norm].key);
    while (begun && ng_training_epoch(t.run, o->epochs) && run_epoch(&t)) {
    }
    print_seed(&t, progress_clock() - began);
    training_free(&t);
}

/* ---- Results ---- */

static void print_table(const job *j)
{
    printf("\n%-10s %10s %13s   %s\n", "norm", "parameters", "training loss", "accuracy (%)");
    for (int i = 0; i < NORMS; i++) print_curves(norms[i].name, &j->curves[i]);
}

static bool write_history(const job *j)
{
    const options *o = &j->options;
    char what[256];
    snprintf(what, sizeof what,
             "MNIST, %lld images to train; two convolutions; adam, lr %g, batch %d; seeds 0 to %d; "
             "float32",
             (long long)j->train, o->lr, o->batch, o->seeds - 1);
    ng_history *history = ng_history_new(what);
    for (int i = 0; i < NORMS; i++) log_curves(history, norms[i].name, &j->curves[i]);
    const bool written = write_dat(history, o->out);
    ng_history_free(history);
    return written;
}

static void work(job *j)
{
    const options *o = &j->options;
    const int64_t measured =
        ng_dataset_count(j->test ? j->test : j->images) - (j->test ? 0 : j->train);
    printf(
        "%lld images for training, %lld for testing, Adam at %g, batch %d, %d epoch%s, %d seed%s\n"
        "\n",
        (long long)j->train, (long long)measured, o->lr, o->batch, o->epochs,
        o->epochs == 1 ? "" : "s", o->seeds, o->seeds == 1 ? "" : "s");
    fflush(stdout);
    for (int i = 0; i < NORMS && !interrupted && !ng_failed(); i++) {
        if (!o->norm[i]) continue;
        const double samples = (double)j->train * o->seeds * o->epochs;
        progress bar = progress_begin(norms[i].name, "samples", samples, !progress_terminal());
        for (int seed = 0; seed < o->seeds && !interrupted && !ng_failed(); seed++)
            run_seed(j, i, seed, &bar);
        progress_end(&bar);
    }
    if (ng_failed()) return;
    const bool any = has_results(j->curves, NORMS);
    if (any) {
        print_table(j);
        if (write_history(j)) printf("\nCurves: %s.dat\n", o->out);
    }
    if (interrupted) printf("Interrupted%s.\n", any ? "" : ": no curves are saved");
}

int main(int argc, char **argv)
{
    program_begin(argv);
    job j = {.options = parse_options(argc, argv)};
    ng_set_threads(j.options.threads);
    catch_signals();
    make_curves(j.curves, NORMS, j.options.seeds, j.options.epochs);
    const bool ready = can_write("out", j.options.out) && read_data(&j);
    if (ready) work(&j);
    clear_curves(j.curves, NORMS);
    ng_dataset_free(j.images), ng_dataset_free(j.test);
    return program_end(!ready ? EXIT_FAILED : interrupted ? EXIT_INTERRUPTED : EXIT_SUCCESS);
}
