/* Does a norm let a network train with higher learning rates? Plain gradient descent at rates from
 * 0.004 to 8, in networks of 2 to 16 hidden layers; the weights are drawn in the way that suits
 * the network without a norm. */
#include "lab.h"
#include <math.h>

enum { WIDTH, EPOCHS, BATCH };
static lab_size sizes[] = {[WIDTH] = {"width", "features of each hidden layer", .normal = 64},
                           [EPOCHS] = {"epochs", "passes over the data", .normal = 8, .quick = 1},
                           [BATCH] = {"batch", "samples a step", .normal = 64},
                           {0}};

static const lab_experiment experiment = {
    .id = "learning_rate",
    .source = "document 003, benefit 3; Ioffe & Szegedy 2015, section 3.3",
    .claim = "normalized activations allow higher learning rates",
    .method =
        "Digits, 64 - (Linear, norm, ReLU) x 2, 4, 8 or 16 - 10, weights as He et al. 2015. Plain\n"
        "gradient descent at each of 23 rates, 0.004 times powers of the root of 2. Final loss:\n"
        "the training loss of the last epoch; not finite or above 10 counts as 10. A rate trains\n"
        "when that is below ln(10) / 2, half the loss of a guess.\n",
    .rule = "for a norm at a depth it holds if the highest rate that trains is at least twice that "
            "of no norm, in the median over seeds; holds with 3 norms at 4 depths, fails with none",
    .seeds = 5,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, DEPTHS = 4, RATES = 23 };
static const lab_norm *const norms[NORMS] = {&lab_no_norm, &lab_batch_norm, &lab_layer_norm,
                                             &lab_rms_norm};
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

/* NaN where no rate trains. */
static double highest_that_trains(const double *losses)
{
    double highest = (double)NAN;
    for (int i = 0; i < RATES; i++)
        if (losses[i] < log(10) / 2) highest = rate_of(i);
    return highest;
}

/* All that was measured: losses[depth][norm][seed][rate], and the highest rates made of it. */
static double *losses;
static lab_spread highest[DEPTHS][NORMS];

static double *losses_of(int depth, int norm, int seed)
{
    return losses + ((depth * NORMS + norm) * lab_seeds() + seed) * RATES;
}

static void train_all(int seed)
{
    ng_dataset *train, *validate;
    lab_digits(lab_seed(seed), 0, &train, &validate);
    for (int d = 0; d < DEPTHS; d++) {
        for (int n = 0; n < NORMS && lab_goes_on(); n++) {
            lab_progress((seed * DEPTHS + d) * NORMS + n, lab_seeds() * DEPTHS * NORMS,
                         "seed %d/%d  %d layers  %s", seed + 1, lab_seeds(), depths[d],
                         norms[n]->name);
            for (int i = 0; i < RATES; i++)
                losses_of(d, n, seed)[i] =
                    final_loss(norms[n], depths[d], rate_of(i), lab_seed(seed), train);
        }
    }
    ng_dataset_free(train), ng_dataset_free(validate);
}

static void write_losses(int depth, int norm)
{
    double *values = lab_numbers(lab_seeds());
    char name[64];
    snprintf(name, sizeof name, "%s, %d layers", norms[norm]->name, depths[depth]);
    lab_block(name, "rate loss loss_low loss_high");
    for (int i = 0; i < RATES; i++) {
        for (int seed = 0; seed < lab_seeds(); seed++)
            values[seed] = losses_of(depth, norm, seed)[i];
        const lab_spread loss = lab_spread_of(values, lab_seeds());
        lab_row(rate_of(i), loss.median, loss.low, loss.high);
    }
}

static void write_highest(int norm)
{
    double *values = lab_numbers(lab_seeds());
    char name[64];
    snprintf(name, sizeof name, "%s, highest", norms[norm]->name);
    lab_block(name, "layers rate rate_low rate_high seeds");
    for (int d = 0; d < DEPTHS; d++) {
        for (int seed = 0; seed < lab_seeds(); seed++)
            values[seed] = highest_that_trains(losses_of(d, norm, seed));
        const lab_spread rate = highest[d][norm] = lab_spread_of(values, lab_seeds());
        lab_row(depths[d], rate.median, rate.low, rate.high, rate.count);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    losses = lab_numbers((int64_t)DEPTHS * NORMS * lab_seeds() * RATES);
    for (int seed = 0; seed < lab_seeds(); seed++) train_all(seed);

    lab_data("plain gradient descent, 64-%d x layers-10, ReLU, batch %d, %d epochs",
             lab_whole(WIDTH), lab_whole(BATCH), lab_whole(EPOCHS));
    for (int n = 0; n < NORMS; n++)
        for (int d = 0; d < DEPTHS; d++) write_losses(d, n);
    for (int n = 0; n < NORMS; n++) write_highest(n);

    bool held[(NORMS - 1) * DEPTHS];
    int holding[NORMS] = {0};
    for (int n = 1; n < NORMS; n++) {
        for (int d = 0; d < DEPTHS; d++) {
            const double norm = highest[d][n].median, none = highest[d][0].median;
            const bool twice = norm > 0 && !(norm < 2 * none); /* NaN: no rate trains */
            held[(n - 1) * DEPTHS + d] = twice;
            holding[n] += twice;
        }
    }
    const lab_spread *few = highest[0], *many = highest[DEPTHS - 1];
    return lab_end(lab_verdict_of(held, (NORMS - 1) * DEPTHS),
                   "highest rate that trains, 2 and 16 layers: no norm %.2g, %.2g; BatchNorm %.2g, "
                   "%.2g; LayerNorm %.2g, %.2g; RMSNorm %.2g, %.2g; at least twice that of no norm "
                   "with BatchNorm at %d of 4 depths, LayerNorm at %d, RMSNorm at %d; %d seeds",
                   few[0].median, many[0].median, few[1].median, many[1].median, few[2].median,
                   many[2].median, few[3].median, many[3].median, holding[1], holding[2],
                   holding[3], lab_seeds());
}
