/* The largest eigenvalues of the Hessian at equal loss, by norm. */
#include "lab.h"

enum { WIDTH, IMAGES };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 32, .quick = 16},
    [IMAGES] = {"images", "training images", .normal = 400, .quick = 100, .most = LAB_DIGITS},
    {0}};

static const lab_experiment experiment = {
    .id = "sharpness",
    .source = "Ghorbani, Krishnan & Xiao 2019; Santurkar et al. 2018",
    .claim = "normalization makes the loss less sharp: BatchNorm removes the large isolated "
             "eigenvalues of the Hessian that a network without it has",
    .method =
        "64 - (Linear, norm, ReLU) x 3 - 10 learns 400 digits in batches of 50, plain gradient\n"
        "descent, one rate for all. Where the loss of all 400 first is below 1, 0.3, 0.1 and\n"
        "0.03, the ten largest eigenvalues of its Hessian are found by power iteration on\n"
        "Hessian-vector products, each orthogonal to those before it. BatchNorm is in train\n"
        "mode, and its batch is all 400. Compared: the largest eigenvalues at the same loss,\n"
        "from the same seed.\n",
    .rule = "the largest eigenvalue at a loss of 1 and of 0.1 is below that without a norm",
    .seeds = 11,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, LEVELS = 4, VALUES = 10, ITERATIONS = 20, BATCH = 50, MOST_EPOCHS = 400 };
#define RATE 0.1
static const double levels[LEVELS] = {1, 0.3, 0.1, 0.03};

typedef struct {
    ng_module *net;
    ng_tape *tape;
    ng_tensor *x, *y;
} whole;

static ng_tensor *loss_of(void *context)
{
    const whole *w = context;
    return ng_cross_entropy(w->tape, ng_forward(w->net, w->tape, w->x), w->y);
}

static double loss_now(whole *w)
{
    const bool was = ng_tape_set_recording(w->tape, false);
    const double loss = ng_item(loss_of(w));
    ng_tape_set_recording(w->tape, was);
    ng_tape_reset(w->tape);
    return loss;
}

/* Sets values[level][index]; NaN if the loss does not reach the level. */
static void measure(const lab_norm *norm, uint64_t seed, double values[LEVELS][VALUES])
{
    ng_dataset *train, *rest;
    lab_digits(seed, lab_whole(IMAGES), &train, &rest);
    whole w = {lab_network(norm, lab_whole(WIDTH), 3, seed), ng_tape_new(),
               ng_copy_new(ng_dataset_x(train), NG_F32), ng_copy_new(ng_dataset_y(train), NG_I64)};
    ng_optimizer *sgd = ng_sgd_new(w.net, .lr = RATE);
    lab_curvature curvature = lab_curvature_of(w.net, w.tape, loss_of, &w, VALUES, seed);
    for (int i = 0; i < LEVELS * VALUES; i++) values[i / VALUES][i % VALUES] = (double)NAN;
    for (int epoch = 0, level = 0; epoch < MOST_EPOCHS && level < LEVELS; epoch++) {
        lab_train_epoch(w.net, sgd, w.tape, train, BATCH, (uint64_t)epoch);
        for (const double loss = loss_now(&w); level < LEVELS && loss < levels[level]; level++)
            for (int k = 0; k < VALUES; k++)
                values[level][k] = lab_eigenvalue(&curvature, k, ITERATIONS);
    }
    lab_curvature_free(&curvature), ng_optimizer_free(sgd), ng_tape_free(w.tape);
    ng_tensor_free(w.x), ng_tensor_free(w.y), ng_module_free(w.net);
    ng_dataset_free(train), ng_dataset_free(rest);
    lab_goes_on();
}

static double *largest[NORMS][LEVELS];

static void measure_norm(int norm)
{
    double values[LEVELS][VALUES];
    lab_curves *of_loss = lab_curves_new("loss", "%s", lab_norms[norm]->name), *of_index[LEVELS];
    for (int level = 0; level < LEVELS; level++) {
        largest[norm][level] = lab_numbers(lab_seeds());
        of_index[level] = lab_curves_new("index", "%s at %g", lab_norms[norm]->name, levels[level]);
    }
    for (int seed = 0; seed < lab_seeds(); seed++) {
        lab_progress(norm * lab_seeds() + seed, NORMS * lab_seeds(), "%s, seed %d",
                     lab_norms[norm]->name, seed + 1);
        measure(lab_norms[norm], lab_seed(seed), values);
        for (int level = 0; level < LEVELS; level++) {
            double *most = &largest[norm][level][seed];
            for (int k = 0; k < VALUES; k++) {
                lab_log(of_index[level], seed, "value", k + 1, values[level][k]);
                *most = fmax(*most, values[level][k]);
            }
            if (isnan(values[level][0])) *most = (double)NAN;
            lab_log(of_loss, seed, "value", levels[level], *most);
        }
    }
    for (int level = 0; level < 3 && norm > 0; level += 2)
        lab_judge((lab_part){lab_norms[norm]->name,
                             lab_quotients(largest[norm][level], largest[0][level]),
                             .side = LAB_BELOW, .threshold = 1},
                  "largest eigenvalue at a loss of %g, as a share of no norm's", levels[level]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%d-%d-%d-10, ReLU, %d images, rate %g", lab_whole(WIDTH), lab_whole(WIDTH),
             lab_whole(WIDTH), lab_whole(IMAGES), RATE);
    for (int norm = 0; norm < NORMS; norm++) measure_norm(norm);
    return lab_end();
}
