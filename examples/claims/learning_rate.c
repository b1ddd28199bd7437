/* The highest learning rate at which a network trains, with and without a norm: plain gradient
 * descent at rates from 0.004 to 16, 2 to 16 hidden layers, weights initialized for the network
 * without a norm. */
#include "lab.h"

enum { WIDTH, EPOCHS, BATCH };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64, .quick = 32},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 8, .quick = 1},
    [BATCH] = {"batch", "samples per step", .normal = 64, .quick = 16},
    {0}};

static const lab_experiment experiment = {
    .id = "learning_rate",
    .source = "document 003, benefit 3; Ioffe & Szegedy 2015, section 3.3",
    .claim = "normalized activations allow higher learning rates",
    .method =
        "Digits, 64 - (Linear, norm, ReLU) x 2, 4, 8 or 16 - 10, weights as He et al. 2015.\n"
        "Plain gradient descent at rates from 0.004 to 16, a factor of sqrt(2) apart. Final\n"
        "loss: the training loss of the last epoch; a loss above 10 or not finite counts as 10.\n"
        "A rate trains if the final loss is below ln(10) / 2, half the loss of a random guess.\n"
        "Measured: the highest rate that trains.\n",
    .rule = "at each depth the highest rate that trains with a norm is above that without from the "
            "same seed (same split): the quotient is above 1",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, DEPTHS = 4, RATES = 25, SHOWN = 2 };
static const int depths[DEPTHS] = {2, 4, 8, 16};
static const double diverged = 10;

static double rate_of(int i) { return 0.004 * pow(2, 0.5 * i); }

static double final_loss(const lab_norm *norm, int depth, double rate, uint64_t seed,
                         ng_dataset *train)
{
    ng_module *net = lab_network(norm, lab_whole(WIDTH), depth, seed);
    lab_he_weights(net, seed);
    ng_optimizer *sgd = ng_sgd_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    double loss = 0;
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && isfinite(loss); epoch++)
        loss = lab_train_epoch(net, sgd, tape, train, lab_whole(BATCH), (uint64_t)epoch);
    ng_tape_free(tape), ng_optimizer_free(sgd), ng_module_free(net);
    return loss < diverged ? loss : diverged;
}

/* ---- All runs ---- */

/* The highest rates that train, NaN where none does: [(depth * NORMS + norm) * seeds + seed]. */
static double *highest;
static lab_curves *losses[NORMS], *by_depth[NORMS];

static double *highest_of(int depth, int norm)
{
    return highest + (depth * NORMS + norm) * lab_seeds();
}

/* Trains from the highest rate down to the first that trains; at depths[SHOWN] down to the last. */
static void descend(int depth, int norm, int seed, ng_dataset *train)
{
    double *found = &highest_of(depth, norm)[seed];
    *found = (double)NAN;
    for (int i = RATES - 1; i >= 0 && (depth == SHOWN || isnan(*found)); i--) {
        const double loss =
            final_loss(lab_norms[norm], depths[depth], rate_of(i), lab_seed(seed), train);
        if (depth == SHOWN) lab_log(losses[norm], seed, "loss", rate_of(i), loss);
        if (isnan(*found) && loss < log(10) / 2) *found = rate_of(i);
    }
    lab_log(by_depth[norm], seed, "rate", depths[depth], *found);
}

static void train_all(int seed)
{
    ng_dataset *train, *validate;
    lab_digits(lab_seed(seed), 0, &train, &validate);
    for (int d = 0; d < DEPTHS; d++) {
        for (int n = 0; n < NORMS && lab_goes_on(); n++) {
            lab_progress((seed * DEPTHS + d) * NORMS + n, lab_seeds() * DEPTHS * NORMS,
                         "seed %d/%d  %d layers  %s", seed + 1, lab_seeds(), depths[d],
                         lab_norms[n]->name);
            descend(d, n, seed, train);
        }
    }
    ng_dataset_free(train), ng_dataset_free(validate);
}

/* ---- Results ---- */

/* Where only one trains at no rate, the quotient is 0 or Inf; where neither does, 1. */
static void judge(int depth, int norm)
{
    double *quotients = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        const double with = highest_of(depth, norm)[seed], without = highest_of(depth, 0)[seed];
        const bool trains = !isnan(with), bare = !isnan(without);
        quotients[seed] = trains && bare ? with / without : trains ? HUGE_VAL : !bare;
    }
    lab_judge((lab_part){lab_norms[norm]->name, quotients, .side = LAB_ABOVE, .threshold = 1},
              "highest rate that trains, %d layers, as a multiple of no norm's", depths[depth]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    highest = lab_numbers((int64_t)DEPTHS * NORMS * lab_seeds());
    for (int n = 0; n < NORMS; n++) {
        losses[n] = lab_curves_new("rate", "%s, %d layers", lab_norms[n]->name, depths[SHOWN]);
        by_depth[n] = lab_curves_new("layers", "%s, highest", lab_norms[n]->name);
    }
    for (int seed = 0; seed < lab_seeds(); seed++) train_all(seed);

    lab_data("plain gradient descent, 64-%d x layers-10, ReLU, batch %d, %d epochs",
             lab_whole(WIDTH), lab_whole(BATCH), lab_whole(EPOCHS));
    for (int n = 1; n < NORMS; n++)
        for (int d = 0; d < DEPTHS; d++) judge(d, n);
    return lab_end();
}
