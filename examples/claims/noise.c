/* The noise of a small batch's gradient by norm: sampling alone gives a variance proportional to
 * one over the batch size; BatchNorm's statistics add to it. */
#include "lab.h"
#include <stdlib.h>

enum { WIDTH, DRAWS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 48},
    [DRAWS] = {"draws", "batches of each size", .normal = 300, .quick = 20, .least = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "noise",
    .source = "Ioffe & Szegedy 2015, section 3.4; Hoffer, Hubara & Soudry 2017; Luo et al. 2019",
    .claim =
        "in small batches BatchNorm's gradient is noisier than sampling explains, and biased "
        "against the gradient of all data; ghost batches give that noise without a smaller batch",
    .method =
        "64 - (Linear, norm, ReLU) x 2 - 10 after one epoch on the digits, all at one rate. 300\n"
        "batches of 4 to 128 images are drawn with replacement. Measured: the variance of both\n"
        "hidden matrices' gradient times the batch size, which is constant if only sampling\n"
        "causes noise; and the distance of their mean from the gradient of all images, relative\n"
        "to its length, corrected for the finite number of batches. Ghost batches: batches of 32\n"
        "to 128 that are normalized in parts of 8.\n",
    .rule =
        "variance times size at batch 4 over that at 128 is above 1.25 with BatchNorm and within "
        "0.25 of 1 with the others; the mean at batch 4 is off by more than 0.25 with BatchNorm, "
        "by less with the others; the noise per sample of batches of 128 with ghosts of 8 is that "
        "of batches of 8, within 0.25",
    .seeds = 11,
    .quick_seeds = 1,
    .sizes = sizes};

enum { KINDS = 5, GHOSTS = 4, SIZES = 6, GHOST = 8, MATRICES = 2 };
static ng_module *make_ghosts(int64_t n) { return ng_batch_norm_new(n, .ghost = GHOST); }
static const lab_norm ghosts = {"ghosts", "BatchNorm, ghosts of 8", make_ghosts};
static const lab_norm *const kinds[KINDS] = {&lab_no_norm, &lab_batch_norm, &lab_layer_norm,
                                             &lab_rms_norm, &ghosts};
static int size_at(int i) { return 4 << i; } /* 4, 8 ... 128 */
static int first_size(int kind) { return kind == GHOSTS ? 3 : 0; }

/* ---- One gradient ---- */

typedef struct {
    ng_module *net;
    ng_tape *tape;
    ng_tensor *weights[MATRICES];
    int64_t count; /* elements of both matrices */
} network;

/* Sets g to the gradient of the loss of x (n, 64) and y (n) with respect to both matrices. */
static void gradient_of(network *n, ng_tensor *x, ng_tensor *y, double *g)
{
    ng_tensor *loss = ng_cross_entropy(n->tape, ng_forward(n->net, n->tape, x), y);
    ng_tensor *gradients[MATRICES];
    ng_gradients(n->tape, &loss, 1, n->weights, MATRICES, gradients);
    lab_goes_on();
    for (int m = 0; m < MATRICES; m++) {
        const float *values = ng_data_f32(gradients[m]);
        for (int64_t i = 0; i < ng_size(gradients[m]); i++) *g++ = (double)values[i];
    }
    ng_tape_reset(n->tape);
}

static void draw_batch(network *n, const ng_dataset *data, int size, ng_rng *rng, double *g)
{
    ng_tensor *x = ng_zeros_new(NG_F32, NG_SHAPE(size, 64)),
              *y = ng_zeros_new(NG_I64, NG_SHAPE(size));
    lab_goes_on();
    const float *all = ng_data_f32(ng_dataset_x(data));
    for (int64_t i = 0; i < size; i++) {
        const int64_t k = ng_rng_below(rng, ng_dataset_count(data));
        for (int64_t j = 0; j < 64; j++) ng_data_f32(x)[i * 64 + j] = all[k * 64 + j];
        ng_data_i64(y)[i] = ng_data_i64(ng_dataset_y(data))[k];
    }
    ng_touch(x), ng_touch(y);
    gradient_of(n, x, y, g);
    ng_tensor_free(x), ng_tensor_free(y);
}

/* ---- Variance and bias ---- */

typedef struct {
    double variance, off; /* times the size, over |G|^2; squared distance over |G|^2 */
} measured;

static measured measure_size(network *n, const ng_dataset *data, int size, ng_rng *rng,
                             const double *whole)
{
    const int draws = lab_whole(DRAWS);
    double *sum = calloc((size_t)n->count, sizeof *sum), *g = calloc((size_t)n->count, sizeof *g);
    double squares = 0, of_mean = 0, of_whole = 0, off = 0;
    for (int d = 0; d < draws && sum && g; d++) {
        draw_batch(n, data, size, rng, g);
        for (int64_t i = 0; i < n->count; i++) sum[i] += g[i], squares += g[i] * g[i] / draws;
    }
    for (int64_t i = 0; i < n->count && sum && g; i++) {
        const double mean = sum[i] / draws;
        of_mean += mean * mean, of_whole += whole[i] * whole[i];
        off += (mean - whole[i]) * (mean - whole[i]);
    }
    free(sum), free(g);
    const double variance = (squares - of_mean) * draws / (draws - 1);
    return (measured){size * variance / of_whole, (off - variance / draws) / of_whole};
}

static void find_weights(network *n, const lab_norm *norm)
{
    n->weights[0] = ng_module_find(n->net, "0.weight");
    n->weights[1] = ng_module_find(n->net, norm->make ? "3.weight" : "2.weight");
    n->count = ng_size(n->weights[0]) + ng_size(n->weights[1]);
}

/* Returns the network with ghost batches instead of BatchNorm, with the same weights. */
static network with_ghosts(network n)
{
    ng_module *net = lab_network(&ghosts, lab_whole(WIDTH), 2, 0);
    if (ng_module_copy(net, n.net)) lab_goes_on();
    ng_module_free(n.net);
    n.net = net;
    find_weights(&n, &ghosts);
    return n;
}

static void measure(int kind, uint64_t seed, measured at[SIZES])
{
    ng_dataset *train, *rest;
    lab_digits(seed, 0, &train, &rest);
    /* Ghost batches are measured on BatchNorm's network, relative to its gradient of all images. */
    const lab_norm *trained = kind == GHOSTS ? &lab_batch_norm : kinds[kind];
    network n = {.net = lab_network(trained, lab_whole(WIDTH), 2, seed), .tape = ng_tape_new()};
    ng_optimizer *sgd = ng_sgd_new(n.net, .lr = 0.1);
    lab_train_epoch(n.net, sgd, n.tape, train, 64, 0);
    find_weights(&n, trained);
    ng_optimizer_free(sgd);
    double *whole = lab_numbers(n.count);
    ng_tensor *x = ng_copy_new(ng_dataset_x(train), NG_F32);
    ng_tensor *y = ng_copy_new(ng_dataset_y(train), NG_I64);
    gradient_of(&n, x, y, whole);
    if (kind == GHOSTS) n = with_ghosts(n);
    ng_rng rng = ng_rng_seeded(seed);
    for (int i = first_size(kind); i < SIZES; i++)
        at[i] = measure_size(&n, train, size_at(i), &rng, whole);
    ng_tensor_free(x), ng_tensor_free(y), ng_tape_free(n.tape), ng_module_free(n.net);
    ng_dataset_free(train), ng_dataset_free(rest);
    lab_goes_on();
}

/* ---- Main ---- */

static double *variance[KINDS][SIZES], *off[KINDS][SIZES];

static void measure_kind(int kind)
{
    measured at[SIZES];
    lab_curves *curves = lab_curves_new("size", "%s", kinds[kind]->name);
    for (int i = 0; i < SIZES; i++)
        variance[kind][i] = lab_numbers(lab_seeds()), off[kind][i] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        lab_progress(kind * lab_seeds() + seed, KINDS * lab_seeds(), "%s, seed %d",
                     kinds[kind]->name, seed + 1);
        measure(kind, lab_seed(seed), at);
        for (int i = first_size(kind); i < SIZES; i++) {
            variance[kind][i][seed] = at[i].variance;
            off[kind][i][seed] = sqrt(fmax(0, at[i].off));
            lab_log(curves, seed, "variance off", size_at(i), at[i].variance, off[kind][i][seed]);
        }
    }
}

static void judge(int kind)
{
    const char *norm = kinds[kind]->make ? kinds[kind]->name : NULL;
    const bool noisy = kinds[kind] == &lab_batch_norm;
    const char *suffix = norm ? "" : ", no norm";
    lab_judge((lab_part){norm, lab_quotients(variance[kind][0], variance[kind][SIZES - 1]),
                         .side = noisy ? LAB_ABOVE : LAB_WITHIN, .around = 1,
                         .threshold = noisy ? 1.25 : 0.25},
              "variance times batch size at 4 over that at 128%s", suffix);
    lab_judge(
        (lab_part){norm, off[kind][0], .side = noisy ? LAB_ABOVE : LAB_BELOW, .threshold = 0.25},
        "mean gradient at batch size 4 off that of all data, as a share%s", suffix);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%d-%d-10 after an epoch, %d batches of each size", lab_whole(WIDTH),
             lab_whole(WIDTH), lab_whole(DRAWS));
    for (int kind = 0; kind < KINDS; kind++) measure_kind(kind);
    for (int kind = 0; kind < GHOSTS; kind++) judge(kind);
    lab_judge((lab_part){"BatchNorm", lab_quotients(variance[GHOSTS][SIZES - 1], variance[1][1]),
                         .side = LAB_WITHIN, .around = 1, .threshold = 0.25},
              "variance times size of ghosts of 8 in batches of 128 over that of batches of 8");
    return lab_end();
}
