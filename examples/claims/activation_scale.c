/* The size of a deep network's activations by layer, norm and scale of the initial weights, at the
 * start and after training. */
#include "lab.h"

enum { WIDTH, DEPTH, EPOCHS };
enum { NORMS = 4, GAINS = 3, TIMES = 2, MOST_DEPTH = 100 };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64},
    [DEPTH] = {"depth", "hidden layers", .normal = 24, .quick = 10, .most = MOST_DEPTH},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 10, .quick = 1},
    {0}};

static const lab_experiment experiment = {
    .id = "activation_scale",
    .source = "document 003 (4.5, benefit 1); Ioffe & Szegedy 2015",
    .claim = "without normalization activations grow or shrink from layer to layer; with it all "
             "layers' activations have the same size, at the start and during training",
    .method =
        "64 - (Linear, norm, ReLU) x 24 - 10 with the weights of He et al. 2015 times 1/2, 1 and\n"
        "2. Measured: the root mean square of each ReLU's output over all training images, at\n"
        "the start and after 10 epochs of gradient descent, all at one rate. The spread is the\n"
        "largest value of all layers over the smallest.\n",
    .rule =
        "with weights times 1/2 and 2 the spread at the start is above 1000 without a norm, and "
        "below 2 with each norm; after training it is below 4 with each norm",
    .seeds = 12,
    .quick_seeds = 1,
    .sizes = sizes};

#define RATE 0.02
static const double gains[GAINS] = {0.5, 1, 2};
static const char *const times[TIMES] = {"start", "trained"};

/* Returns a network with hidden matrices from N(0, gain^2 2 / fan_in). */
static ng_module *make_network(const lab_norm *norm, double gain, uint64_t seed)
{
    ng_module *net = lab_network(norm, lab_whole(WIDTH), lab_whole(DEPTH), seed);
    ng_tape *tape = ng_tape_new();
    ng_named_tensor p;
    lab_he_weights(net, seed);
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        if (ng_rank(p.tensor) == 2 && ng_dim(p.tensor, 0) != 10)
            ng_copy_values(p.tensor, ng_mul_scalar(tape, p.tensor, gain));
    ng_tape_free(tape);
    lab_goes_on();
    return net;
}

/* Sets at[l] to the root mean square of layer l's output. */
static void measure(const lab_norm *norm, ng_module *net, ng_tape *tape, ng_dataset *data,
                    double *at)
{
    const bool was = ng_tape_set_recording(tape, false);
    const int children = norm->make ? 3 : 2; /* per layer */
    ng_batch batch;
    ng_dataset_batch(data, tape, 0, ng_dataset_count(data), &batch);
    ng_tensor *x = batch.x;
    for (int l = 0; l < lab_whole(DEPTH); l++) {
        x = lab_forward_part(net, l * children, (l + 1) * children, tape, x);
        at[l] = sqrt(ng_item(ng_mean(tape, ng_square(tape, x))));
    }
    ng_tape_set_recording(tape, was);
    ng_tape_reset(tape);
    lab_goes_on();
}

static void train(const lab_norm *norm, double gain, uint64_t seed, double at[TIMES][MOST_DEPTH])
{
    ng_dataset *data, *rest;
    lab_digits(seed, 0, &data, &rest);
    ng_module *net = make_network(norm, gain, seed);
    ng_optimizer *sgd = ng_sgd_new(net, .lr = RATE);
    ng_tape *tape = ng_tape_new();
    measure(norm, net, tape, data, at[0]);
    for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++)
        lab_train_epoch(net, sgd, tape, data, 64, (uint64_t)epoch);
    measure(norm, net, tape, data, at[1]);
    ng_tape_free(tape), ng_optimizer_free(sgd), ng_module_free(net);
    ng_dataset_free(data), ng_dataset_free(rest);
}

/* Returns the largest value over the smallest; Inf if one is not finite. */
static double spread_of(const double *at)
{
    double least = HUGE_VAL, most = 0;
    for (int l = 0; l < lab_whole(DEPTH); l++) {
        if (!isfinite(at[l])) return HUGE_VAL;
        least = fmin(least, at[l]), most = fmax(most, at[l]);
    }
    return most / least;
}

static void judge(int norm, int gain, int time, const double *spread)
{
    const bool none = norm == 0;
    if (gains[gain] == 1 || (none && time > 0)) return;
    lab_judge((lab_part){none ? NULL : lab_norms[norm]->name, spread,
                         .side = none ? LAB_ABOVE : LAB_BELOW,
                         .threshold = none        ? 1000
                                      : time == 0 ? 2
                                                  : 4},
              "spread of the activations over layers, %s, weights times %g%s",
              time == 0 ? "at the start" : "after training", gains[gain], none ? ", no norm" : "");
}

static void measure_kind(int norm, int gain)
{
    const int seeds = lab_seeds();
    double *spread[TIMES], at[TIMES][MOST_DEPTH];
    lab_curves *curves[TIMES];
    for (int time = 0; time < TIMES; time++) {
        curves[time] =
            lab_curves_new("layer", "%s, %g, %s", lab_norms[norm]->name, gains[gain], times[time]);
        spread[time] = lab_numbers(seeds);
    }
    for (int seed = 0; seed < seeds; seed++) {
        lab_progress((norm * GAINS + gain) * seeds + seed, NORMS * GAINS * seeds,
                     "%s, weights times %g, seed %d", lab_norms[norm]->name, gains[gain], seed + 1);
        train(lab_norms[norm], gains[gain], lab_seed(seed), at);
        for (int time = 0; time < TIMES; time++) {
            spread[time][seed] = spread_of(at[time]);
            for (int l = 0; l < lab_whole(DEPTH); l++)
                lab_log(curves[time], seed, "size", l + 1, at[time][l]);
        }
    }
    for (int time = 0; time < TIMES; time++) judge(norm, gain, time, spread[time]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-(%d)x%d-10, ReLU, %d epochs at rate %g", lab_whole(WIDTH), lab_whole(DEPTH),
             lab_whole(EPOCHS), RATE);
    for (int norm = 0; norm < NORMS; norm++)
        for (int gain = 0; gain < GAINS; gain++) measure_kind(norm, gain);
    return lab_end();
}
