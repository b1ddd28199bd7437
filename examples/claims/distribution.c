/* A layer's activations before and after each norm: what is standardized, and what is not. */
#include "lab.h"
#include <math.h>
#include <stdio.h>

enum { WIDTH, EPOCHS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 128, .quick = 32},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 10, .quick = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "distribution",
    .source = "documents 003 (4.2 to 4.4, 4.7) and 004",
    .claim = "normalization transforms activations to have mean zero and variance one",
    .method =
        "A network without norm learns the digits. The activations of its second hidden layer\n"
        "(before the ReLU) for the validation images, a matrix of images x features, then go\n"
        "through a new BatchNorm, LayerNorm and RMSNorm. Measured are the mean and deviation of\n"
        "each column under BatchNorm and of each row under the others: what the norm works on.\n"
        "The documents' worked examples are computed besides.\n",
    .rule = "a norm passes if every mean is within 0.01 of 0 and every deviation within 0.01 of 1, "
            "a worked example if it comes out to 0.001: holds if all six pass, fails if none does",
    .seeds = 5,
    .quick_seeds = 1,
    .sizes = sizes};

typedef struct {
    double mean, deviation;
} moments;

/* Of count values, `step` apart. */
static moments moments_of(const double *x, int64_t count, int64_t step)
{
    moments m = {0, 0};
    for (int64_t i = 0; i < count; i++) m.mean += x[i * step] / (double)count;
    for (int64_t i = 0; i < count; i++) m.deviation += pow(x[i * step] - m.mean, 2) / (double)count;
    m.deviation = sqrt(m.deviation);
    return m;
}

static double *numbers_of(const ng_tensor *x)
{
    const int64_t size = lab_goes_on() ? ng_size(x) : 0;
    double *numbers = lab_numbers(size);
    for (int64_t i = 0; i < size; i++) numbers[i] = ng_get(x, i);
    return numbers;
}

/* What a new norm, with gamma 1 and beta 0, makes of x (rows, features). */
static double *normalized(const lab_norm *norm, ng_tape *tape, ng_tensor *x)
{
    ng_module *module = norm->make(ng_dim(x, 1));
    double *y = numbers_of(ng_forward(module, tape, x));
    ng_module_free(module);
    return y;
}

/* ---- The documents' examples -------------------------------------------------------------- */

/* Document 003's embedding: four of its 512 numbers are printed, with their mean and deviation. The
 * others stand half above and half below one value, so that these come out. */
enum { EMBEDDING = 512 };
static void fill_embedding(double *x)
{
    const double known[] = {0.146, 0.108, 0.192, 0.11}, mean = 0.135, deviation = 0.048;
    double sum = EMBEDDING * mean, squares = EMBEDDING * deviation * deviation;
    for (int i = 0; i < 4; i++) {
        x[i] = known[i];
        sum -= known[i], squares -= pow(known[i] - mean, 2);
    }
    const double middle = sum / (EMBEDDING - 4);
    const double spread = sqrt(squares / (EMBEDDING - 4) - pow(middle - mean, 2));
    for (int i = 4; i < EMBEDDING; i++) x[i] = i % 2 ? middle + spread : middle - spread;
}

/* Writes what the norm makes of x beside the `count` values that a document prints, and returns the
 * largest difference. */
static double off_by(const lab_norm *norm, ng_tape *tape, const char *name, const double *x,
                     int64_t features, const double *printed, int count)
{
    ng_tensor *row = ng_tensor_from(NG_F32, NG_SHAPE(1, features), x, features);
    const double *y = normalized(norm, tape, row);
    double most = 0;
    lab_block(name, "x y printed");
    for (int i = 0; i < count; i++) {
        lab_row(x[i], y[i], printed[i]);
        most = fmax(most, fabs(y[i] - printed[i]));
    }
    ng_tensor_free(row), ng_tape_reset(tape);
    return most;
}

enum { EXAMPLES = 3 };
static void compute_examples(ng_tape *tape, double *off)
{
    const double four[] = {1, 2, 3, 4}, two[] = {3, 4};
    double embedding[EMBEDDING];
    fill_embedding(embedding);
    off[0] = off_by(&lab_layer_norm, tape, "worked LayerNorm", four, 4,
                    (const double[]){-1.341, -0.447, 0.447, 1.341}, 4);
    off[1] = off_by(&lab_layer_norm, tape, "worked embedding", embedding, EMBEDDING,
                    (const double[]){0.229, -0.562, 1.188, -0.521}, 4);
    off[2] =
        off_by(&lab_rms_norm, tape, "worked RMSNorm", two, 2, (const double[]){0.849, 1.131}, 2);
}

/* ---- Histograms --------------------------------------------------------------------------- */

static const double first_bin = -8, bin_width = 0.25;
enum { BINS = 64 };

/* Adds the values' density, so that its area grows by `weight`. */
static void add_density(double *density, const double *x, int64_t count, double weight)
{
    for (int64_t i = 0; i < count; i++) {
        const double bin = floor((x[i] - first_bin) / bin_width);
        if (bin >= 0 && bin < BINS) density[(int)bin] += weight / (bin_width * (double)count);
    }
}

static void write_density(const char *name, const double *density, moments m)
{
    lab_block(name, "x density mean deviation");
    for (int i = 0; i < BINS; i++)
        lab_row(first_bin + (i + 0.5) * bin_width, density[i], m.mean, m.deviation);
}

/* Document 003's figure: a bell with mean 2.5 and deviation 1.118, and LayerNorm of its rows. */
static void write_bell(ng_tape *tape)
{
    ng_rng rng = ng_rng_seeded(lab_seed(0));
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(128, EMBEDDING), 2.5, sqrt(1.25), &rng);
    const double *values[] = {numbers_of(x), normalized(&lab_layer_norm, tape, x)};
    for (int i = 0; i < 2; i++) {
        double density[BINS] = {0};
        add_density(density, values[i], ng_size(x), 1);
        write_density(i ? "bell after" : "bell before", density,
                      moments_of(values[i], ng_size(x), 1));
    }
    ng_tensor_free(x), ng_tape_reset(tape);
}

/* ---- The layer ---------------------------------------------------------------------------- */

static const lab_norm *const norms[] = {&lab_no_norm, &lab_batch_norm, &lab_layer_norm,
                                        &lab_rms_norm};
enum { NORMS = 4 };

static struct {
    double density[BINS];
    moments all;                    /* of all values; mean over the seeds */
    double mean_off, deviation_off; /* the furthest from 0 and from 1, of what it works on */
    double others_mean;             /* the furthest mean from 0 of what it does not */
    const double *sample;           /* of the first seed */
} found[NORMS];
static int64_t images, features;

static moments of_row(const double *x, int64_t i)
{
    return moments_of(x + i * features, features, 1);
}
static moments of_column(const double *x, int64_t i) { return moments_of(x + i, images, features); }

static void measure(int norm, const double *y)
{
    const bool by_column = norms[norm] == &lab_batch_norm;
    const moments all = moments_of(y, images * features, 1);
    found[norm].all.mean += all.mean / lab_seeds();
    found[norm].all.deviation += all.deviation / lab_seeds();
    add_density(found[norm].density, y, images * features, 1.0 / lab_seeds());
    for (int64_t i = 0; i < (by_column ? features : images); i++) {
        const moments m = by_column ? of_column(y, i) : of_row(y, i);
        found[norm].mean_off = fmax(found[norm].mean_off, fabs(m.mean));
        found[norm].deviation_off = fmax(found[norm].deviation_off, fabs(m.deviation - 1));
    }
    for (int64_t i = 0; i < (by_column ? images : features); i++) {
        const moments m = by_column ? of_row(y, i) : of_column(y, i);
        found[norm].others_mean = fmax(found[norm].others_mean, fabs(m.mean));
    }
    if (!found[norm].sample) found[norm].sample = y;
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
        measure(i, norms[i]->make ? normalized(norms[i], tape, x) : numbers_of(x));
    ng_tape_set_recording(tape, true), ng_tape_reset(tape);
    ng_optimizer_free(adam), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
}

static void write_layer(int norm)
{
    char name[64];
    write_density(norms[norm]->name, found[norm].density, found[norm].all);
    snprintf(name, sizeof name, "%s images", norms[norm]->name);
    lab_block(name, "mean deviation");
    for (int64_t i = 0; i < images; i++) {
        const moments m = of_row(found[norm].sample, i);
        lab_row(m.mean, m.deviation);
    }
    snprintf(name, sizeof name, "%s features", norms[norm]->name);
    lab_block(name, "mean deviation");
    for (int64_t i = 0; i < features; i++) {
        const moments m = of_column(found[norm].sample, i);
        lab_row(m.mean, m.deviation);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    ng_tape *tape = ng_tape_new();
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) run(seed, tape);

    lab_data("second layer of 64-%d-%d-10 after %d epochs, %d images", lab_whole(WIDTH),
             lab_whole(WIDTH), lab_whole(EPOCHS), (int)images);
    double off[EXAMPLES];
    compute_examples(tape, off);
    write_bell(tape);
    for (int i = 0; i < NORMS; i++) write_layer(i);
    ng_tape_free(tape);

    bool held[EXAMPLES + NORMS - 1];
    for (int i = 0; i < EXAMPLES; i++) held[i] = off[i] <= 0.001;
    for (int i = 1; i < NORMS; i++)
        held[EXAMPLES + i - 1] = found[i].mean_off <= 0.01 && found[i].deviation_off <= 0.01;
    return lab_end(
        lab_verdict_of(held, EXAMPLES + NORMS - 1),
        "before: mean %.2f, deviation %.2f; furthest mean from 0 and deviation from 1: BatchNorm, "
        "by feature, %.0e and %.0e; LayerNorm, by image, %.0e and %.0e; RMSNorm, by image, %.2f "
        "and %.2f; LayerNorm leaves features' means up to %.1f from 0, BatchNorm images' up to "
        "%.1f; worked examples off by %.1g, %.1g and %.1g; %d seeds",
        found[0].all.mean, found[0].all.deviation, found[1].mean_off, found[1].deviation_off,
        found[2].mean_off, found[2].deviation_off, found[3].mean_off, found[3].deviation_off,
        found[2].others_mean, found[1].others_mean, off[0], off[1], off[2], lab_seeds());
}
