/* The mean and deviation of a layer's activations before and after each norm. */
#include "lab.h"
#include <stdio.h>

enum { WIDTH, EPOCHS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 128, .quick = 32},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 10, .quick = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "distribution",
    .source = "documents 003 (4.2 to 4.4) and 004; document 001 for RMSNorm",
    .claim = "normalization transforms activations to have mean zero and variance one, RMSNorm to "
             "have mean square one",
    .method =
        "A network without a norm learns the digits. The activations of its second hidden layer\n"
        "(before the ReLU) for the validation images, a matrix of images x features, go through\n"
        "a new BatchNorm, LayerNorm and RMSNorm. Measured: the mean and deviation of each\n"
        "feature under BatchNorm and of each image under LayerNorm, and the root mean square of\n"
        "each image under RMSNorm, which does not centre. In addition, the worked examples of\n"
        "the documents; these are not random, so all seeds give the same number.\n",
    .rule =
        "the mean farthest from 0 is within 0.01, the deviation (for RMSNorm the root mean "
        "square) farthest from 1 is within 0.01 of 1, and a worked example differs by less than "
        "0.001 from the printed numbers",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

typedef struct {
    double mean, deviation;
} moments;

/* Returns the moments of `count` values that are `step` apart. */
static moments moments_of(const double *x, int64_t count, int64_t step)
{
    moments m = {0, 0};
    for (int64_t i = 0; i < count; i++) m.mean += x[i * step] / (double)count;
    for (int64_t i = 0; i < count; i++) m.deviation += pow(x[i * step] - m.mean, 2) / (double)count;
    m.deviation = sqrt(m.deviation);
    return m;
}

static double root_mean_square(moments m) { return hypot(m.mean, m.deviation); }

static double *numbers_of(const ng_tensor *x)
{
    const int64_t size = lab_goes_on() ? ng_size(x) : 0;
    double *numbers = lab_numbers(size);
    for (int64_t i = 0; i < size; i++) numbers[i] = ng_get(x, i);
    return numbers;
}

/* Returns the output of a new norm, with gamma 1 and beta 0, for x (rows, features). */
static double *normalized(const lab_norm *norm, ng_tape *tape, ng_tensor *x)
{
    ng_module *module = norm->make(ng_dim(x, 1));
    double *y = numbers_of(ng_forward(module, tape, x));
    ng_module_free(module);
    return y;
}

/* ---- The documents' examples -------------------------------------------------------------- */

/* Document 003's embedding of 512 numbers. It prints four of them, the mean and the deviation. The
 * others are chosen, half above and half below one value, to give this mean and deviation. */
enum { EMBEDDING = 512 };
static void fill_embedding(double *x)
{
    const double known[] = {0.146, 0.108, 0.192, 0.11}, mean = 0.135, deviation = 0.048;
    double sum = (double)EMBEDDING * mean, squares = (double)EMBEDDING * deviation * deviation;
    for (int i = 0; i < 4; i++) {
        x[i] = known[i];
        sum -= known[i], squares -= pow(known[i] - mean, 2);
    }
    const double middle = sum / (EMBEDDING - 4);
    const double spread = sqrt(squares / (EMBEDDING - 4) - pow(middle - mean, 2));
    for (int i = 4; i < EMBEDDING; i++) x[i] = i % 2 ? middle + spread : middle - spread;
}

/* Writes the norm's output y next to the `count` values printed in a document, and judges the
 * largest difference. */
static void judge_example(const char *name, const char *norm, const double *x, const double *y,
                          const double *printed, int count)
{
    double *most = lab_numbers(lab_seeds());
    char block[64];
    snprintf(block, sizeof block, "worked: %s", name);
    lab_block(block, "x y printed");
    for (int i = 0; i < count; i++) {
        lab_row(x[i], y[i], printed[i]);
        most[0] = fmax(most[0], fabs(y[i] - printed[i]));
    }
    for (int seed = 1; seed < lab_seeds(); seed++) most[seed] = most[0];
    lab_judge((lab_part){norm, most, .side = LAB_BELOW, .threshold = 0.001},
              "%s, difference from what is printed", name);
}

/* Document 003 writes sqrt(sigma^2 + eps) but computes sigma + eps. That is the same formula with
 * eps replaced by 2 sigma eps + eps^2. */
static void judge_examples(ng_tape *tape)
{
    const double four[] = {1, 2, 3, 4}, two[] = {3, 4}, eps = 1e-5, extra = 2 * 0.048 * eps;
    const double layer_prints[] = {-1.341, -0.447, 0.447, 1.341}, rms_prints[] = {0.849, 1.131};
    const double prints[] = {0.229, -0.562, 1.188, -0.521};
    double embedding[EMBEDDING];
    fill_embedding(embedding);
    ng_tensor *row = ng_tensor_from(NG_F32, NG_SHAPE(1, EMBEDDING), embedding, EMBEDDING);
    ng_tensor *first = ng_tensor_from(NG_F32, NG_SHAPE(1, 4), four, 4);
    ng_tensor *pair = ng_tensor_from(NG_F32, NG_SHAPE(1, 2), two, 2);
    judge_example("example 1, 2, 3, 4", "LayerNorm", four, normalized(&lab_layer_norm, tape, first),
                  layer_prints, 4);
    judge_example("example of an embedding, eps in the root", "LayerNorm", embedding,
                  normalized(&lab_layer_norm, tape, row), prints, 4);
    judge_example(
        "example of an embedding, eps added to sigma", "LayerNorm", embedding,
        numbers_of(ng_layer_norm(tape, row, NG_NONE, NG_NONE, ng_exactly(extra + eps * eps))),
        prints, 4);
    judge_example("example 3, 4", "RMSNorm", two, normalized(&lab_rms_norm, tape, pair), rms_prints,
                  2);
    ng_tensor_free(row), ng_tensor_free(first), ng_tensor_free(pair);
    ng_tape_reset(tape);
}

/* ---- Histograms --------------------------------------------------------------------------- */

static const double first_bin = -8, bin_width = 0.25;
enum { BINS = 64 };

/* Adds the values' density with area `weight`. */
static void add_density(double *density, const double *x, int64_t count, double weight)
{
    for (int64_t i = 0; i < count; i++) {
        const double bin = floor((x[i] - first_bin) / bin_width);
        if (bin >= 0 && bin < (double)BINS)
            density[(int)bin] += weight / (bin_width * (double)count);
    }
}

static void write_density(const char *name, const double *density, moments m)
{
    lab_block(name, "x density mean deviation");
    for (int i = 0; i < BINS; i++)
        lab_row(first_bin + (i + 0.5) * bin_width, density[i], m.mean, m.deviation);
}

/* ---- The layer ---------------------------------------------------------------------------- */

enum { NORMS = 4 };

static struct {
    double density[BINS];
    moments all; /* of all values; mean over the seeds */
    /* By seed: the mean farthest from 0, and the deviation and root mean square farthest from 1,
     * along the norm's axis; and the mean farthest from 0 along the other axis. */
    double *mean_off, *deviation_off, *square_off, *others_mean;
    const double *sample; /* of the first seed */
} found[NORMS];
static int64_t images, features;

static moments of_row(const double *x, int64_t i)
{
    return moments_of(x + i * features, features, 1);
}
static moments of_column(const double *x, int64_t i) { return moments_of(x + i, images, features); }

static void measure(int norm, int seed, const double *y)
{
    const bool by_column = lab_norms[norm] == &lab_batch_norm;
    const moments all = moments_of(y, images * features, 1);
    double mean = 0, deviation = 0, square = 0, others = 0;
    for (int64_t i = 0; i < (by_column ? features : images); i++) {
        const moments m = by_column ? of_column(y, i) : of_row(y, i);
        mean = fmax(mean, fabs(m.mean));
        deviation = fmax(deviation, fabs(m.deviation - 1));
        square = fmax(square, fabs(root_mean_square(m) - 1));
    }
    for (int64_t i = 0; i < (by_column ? images : features); i++)
        others = fmax(others, fabs((by_column ? of_row(y, i) : of_column(y, i)).mean));
    found[norm].all.mean += all.mean / lab_seeds();
    found[norm].all.deviation += all.deviation / lab_seeds();
    add_density(found[norm].density, y, images * features, 1.0 / lab_seeds());
    found[norm].mean_off[seed] = mean, found[norm].deviation_off[seed] = deviation;
    found[norm].square_off[seed] = square, found[norm].others_mean[seed] = others;
    if (seed == 0) found[norm].sample = y;
}

static void run(int seed, ng_tape *tape)
{
    ng_dataset *train, *validate;
    ng_batch batch;
    lab_digits(lab_seed(seed), 0, &train, &validate);
    ng_module *net = lab_network(&lab_no_norm, lab_whole(WIDTH), 2, lab_seed(seed));
    ng_optimizer *adam = ng_adam_new(net, .lr = 1e-3);
    for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++) {
        lab_train_epoch(net, adam, tape, train, 64, (uint64_t)epoch);
        lab_progress(seed + (epoch + 1.0) / lab_whole(EPOCHS), lab_seeds(), "seed %d", seed);
    }
    ng_tape_set_recording(tape, false);
    ng_dataset_batch(validate, tape, 0, ng_dataset_count(validate), &batch);
    ng_tensor *x = lab_forward_part(net, 0, 3, tape, batch.x); /* Linear, ReLU, Linear */
    images = ng_dim(x, 0), features = ng_dim(x, 1);
    for (int i = 0; i < NORMS; i++)
        measure(i, seed, lab_norms[i]->make ? normalized(lab_norms[i], tape, x) : numbers_of(x));
    ng_tape_set_recording(tape, true), ng_tape_reset(tape);
    ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
}

static void write_layer(int norm)
{
    char name[64];
    write_density(lab_norms[norm]->name, found[norm].density, found[norm].all);
    snprintf(name, sizeof name, "%s images", lab_norms[norm]->name);
    lab_block(name, "mean deviation");
    for (int64_t i = 0; i < images; i++) {
        const moments m = of_row(found[norm].sample, i);
        lab_row(m.mean, m.deviation);
    }
    snprintf(name, sizeof name, "%s features", lab_norms[norm]->name);
    lab_block(name, "mean deviation");
    for (int64_t i = 0; i < features; i++) {
        const moments m = of_column(found[norm].sample, i);
        lab_row(m.mean, m.deviation);
    }
}

/* Writes the largest differences, by norm. */
static void write_farthest(void)
{
    lab_block("farthest", "norm mean deviation square others_mean");
    for (int i = 0; i < NORMS; i++)
        lab_row(i, lab_median(found[i].mean_off), lab_median(found[i].deviation_off),
                lab_median(found[i].square_off), lab_median(found[i].others_mean));
}

static void judge(int norm, const double *off, const char *what)
{
    lab_judge((lab_part){lab_norms[norm]->name, off, .side = LAB_BELOW, .threshold = 0.01}, "%s",
              what);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    ng_tape *tape = ng_tape_new();
    for (int i = 0; i < NORMS; i++) {
        found[i].mean_off = lab_numbers(lab_seeds());
        found[i].deviation_off = lab_numbers(lab_seeds());
        found[i].square_off = lab_numbers(lab_seeds());
        found[i].others_mean = lab_numbers(lab_seeds());
    }
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) run(seed, tape);

    lab_data("second layer of 64-%d-%d-10 after %d epochs, %d images", lab_whole(WIDTH),
             lab_whole(WIDTH), lab_whole(EPOCHS), (int)images);
    judge(1, found[1].mean_off, "mean of a feature, farthest from 0");
    judge(1, found[1].deviation_off, "deviation of a feature, farthest from 1");
    judge(2, found[2].mean_off, "mean of an image, farthest from 0");
    judge(2, found[2].deviation_off, "deviation of an image, farthest from 1");
    judge(3, found[3].square_off, "root mean square of an image, farthest from 1");
    judge_examples(tape);
    write_farthest();
    for (int i = 0; i < NORMS; i++) write_layer(i);
    ng_tape_free(tape);
    return lab_end();
}
