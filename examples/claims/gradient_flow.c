/* The size of the gradient in each layer of a deep network, at the start and during training. */
#include "lab.h"
#include <stdio.h>

enum { WIDTH, DEPTH, EPOCHS, RATE };
enum { NORMS = 4, GAINS = 3, MOST_DEPTH = 100, PROBE = 256 };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64, .quick = 32},
    [DEPTH] = {"depth", "hidden layers", .normal = 24, .quick = 12, .most = MOST_DEPTH},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 15, .quick = 2},
    [RATE] = {"lr", "learning rate of SGD", .normal = 0.01, .fraction = true},
    {0}};

static const lab_experiment experiment = {
    .id = "gradient_flow",
    .source = "documents 003 (4.5, benefit 2; 4.7), 004 and 001",
    .claim =
        "without normalization gradients vanish or explode while they propagate back through the "
        "layers; with it they have about the same size in every layer",
    .method =
        "Deep networks of Linear, norm and ReLU on the digits. The initial weights are those of\n"
        "He et al. 2015 times a gain of 0.5, 1 or 2: N(0, (gain sqrt(2 / width))^2), biases 0.\n"
        "Measured: the root mean square of the gradient of the loss with respect to each\n"
        "Linear's output, over 256 validation images, at the start and after each epoch of SGD.\n"
        "All networks have the same rate, since the experiment compares gradients and not\n"
        "accuracies. The spread is the largest size of all layers over the smallest.\n",
    .rule = "at gains 0.5 and 2 the spread at the start is above 1000 without a norm, and below 10 "
            "with each norm, both at the start and in the median during training",
    .seeds = 10,
    .quick_seeds = 1,
    .sizes = sizes};

static const double gains[] = {0.5, 1, 2};

static int depth, looks; /* measurements: before training and after each epoch */

/* By gain, norm, measurement, and seed: the largest gradient of a layer over the smallest. */
static double *spreads;
static double *spreads_of(int gain, int norm, int look)
{
    return spreads + (((int64_t)gain * NORMS + norm) * looks + look) * lab_seeds();
}

static double root_mean_square(const ng_tensor *x)
{
    double sum = 0;
    for (int64_t i = 0; i < ng_size(x); i++) sum += pow(ng_get(x, i), 2);
    return sqrt(sum / (double)ng_size(x));
}

/* Returns a network whose hidden weights are `gain` times He et al.'s, without biases. */
static ng_module *deep_network(const lab_norm *norm, double gain, uint64_t seed)
{
    ng_rng rng = ng_rng_seeded(seed);
    ng_named_tensor p;
    ng_module *net = lab_network(norm, lab_whole(WIDTH), depth, seed);
    for (int i = 0; ng_module_parameter(net, i, &p); i++) {
        if (ng_rank(p.tensor) != 2) continue;
        const double he = sqrt(2 / (double)ng_dim(p.tensor, 1));
        const bool last = ng_dim(p.tensor, 0) == 10;
        ng_fill_normal(p.tensor, 0, last ? he : gain * he, &rng);
        ng_module_parameter(net, ++i, &p);
        ng_fill(p.tensor, 0);
    }
    return net;
}

typedef struct {
    double loss, layer[MOST_DEPTH], weight[MOST_DEPTH];
} look;

/* Measures the gradients with respect to each hidden Linear's output and weight. */
static look look_at(ng_module *net, ng_tape *tape, const ng_batch *probe)
{
    ng_tensor *inputs[2 * MOST_DEPTH], *gradients[2 * MOST_DEPTH], *h = probe->x;
    const int per_layer = ng_module_child(net, 3 * depth) ? 3 : 2; /* children */
    look seen = {0};
    for (int l = 0; l < depth; l++) {
        char name[32];
        snprintf(name, sizeof name, "%d.weight", l * per_layer);
        inputs[l] = lab_forward_part(net, l * per_layer, l * per_layer + 1, tape, h);
        inputs[depth + l] = ng_module_find(net, name);
        h = lab_forward_part(net, l * per_layer + 1, (l + 1) * per_layer, tape, inputs[l]);
    }
    h = lab_forward_part(net, depth * per_layer, depth * per_layer + 1, tape, h);
    ng_tensor *loss = ng_cross_entropy(tape, h, probe->y);
    ng_gradients(tape, &loss, 1, inputs, 2 * depth, gradients);
    lab_goes_on();
    seen.loss = ng_item(loss);
    for (int l = 0; l < depth; l++) {
        seen.layer[l] = root_mean_square(gradients[l]);
        seen.weight[l] = root_mean_square(gradients[depth + l]);
    }
    return seen;
}

static double spread_of(const double *magnitudes)
{
    double least = (double)INFINITY, most = 0;
    for (int l = 0; l < depth; l++) {
        if (!isfinite(magnitudes[l])) return (double)NAN;
        least = fmin(least, magnitudes[l]), most = fmax(most, magnitudes[l]);
    }
    return most / least;
}

typedef struct {
    lab_curves *start, *training;
} curves;

static void run(int gain, int norm, int seed, ng_tape *tape, curves to)
{
    ng_dataset *train, *validate;
    ng_batch probe;
    lab_digits(lab_seed(seed), 0, &train, &validate);
    ng_module *net = deep_network(lab_norms[norm], gains[gain], lab_seed(seed));
    ng_optimizer *sgd = ng_sgd_new(net, .lr = lab_number(RATE));
    for (int epoch = 0; epoch < looks; epoch++) {
        if (epoch > 0) lab_train_epoch(net, sgd, tape, train, 64, (uint64_t)epoch);
        ng_dataset_batch(validate, tape, 0, PROBE, &probe);
        const look seen = look_at(net, tape, &probe);
        ng_tape_reset(tape);
        spreads_of(gain, norm, epoch)[seed] = spread_of(seen.layer);
        lab_log(to.training, seed, "spread loss", epoch, spread_of(seen.layer), seen.loss);
        for (int l = 0; l < depth && epoch == 0; l++)
            lab_log(to.start, seed, "gradient weight_gradient", l + 1, seen.layer[l],
                    seen.weight[l]);
    }
    ng_optimizer_free(sgd), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
}

/* Judges, seed by seed: the spread at the start, and its median during training. */
static void judge_spreads(int gain, int norm)
{
    double *start = spreads_of(gain, norm, 0);
    double *training = lab_numbers(lab_seeds()), *of_seed = lab_numbers(looks);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        for (int i = 1; i < looks; i++) of_seed[i] = spreads_of(gain, norm, i)[seed];
        training[seed] = lab_percentile(of_seed + 1, looks - 1, 50);
    }
    if (norm == 0) {
        lab_judge((lab_part){lab_norms[norm]->name, start, .side = LAB_ABOVE, .threshold = 1000},
                  "largest gradient of the layers over the smallest, gain %g, start", gains[gain]);
        return;
    }
    lab_judge((lab_part){lab_norms[norm]->name, start, .side = LAB_BELOW, .threshold = 10},
              "largest gradient of the layers over the smallest, gain %g, start", gains[gain]);
    lab_judge((lab_part){lab_norms[norm]->name, training, .side = LAB_BELOW, .threshold = 10},
              "largest gradient of the layers over the smallest, gain %g, training", gains[gain]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    depth = lab_whole(DEPTH), looks = lab_whole(EPOCHS) + 1;
    const int64_t runs = (int64_t)GAINS * NORMS * lab_seeds();
    spreads = lab_numbers(runs * looks);
    ng_tape *tape = ng_tape_new();
    for (int gain = 0, done = 0; gain < GAINS; gain++)
        for (int norm = 0; norm < NORMS; norm++) {
            const char *name = lab_norms[norm]->name;
            const curves to = {lab_curves_new("layer", "%s, gain %g, start", name, gains[gain]),
                               lab_curves_new("epoch", "%s, gain %g, training", name, gains[gain])};
            for (int seed = 0; seed < lab_seeds(); seed++, done++) {
                lab_progress(done, (double)runs, "gain %g, %s", gains[gain], name);
                run(gain, norm, seed, tape, to);
            }
        }
    ng_tape_free(tape);

    lab_data("64-%d-...-%d-10, %d hidden layers, SGD at %g", lab_whole(WIDTH), lab_whole(WIDTH),
             depth, lab_number(RATE));
    for (int norm = 0; norm < NORMS; norm++)
        for (int gain = 0; gain < GAINS; gain += 2) judge_spreads(gain, norm);
    return lab_end();
}
