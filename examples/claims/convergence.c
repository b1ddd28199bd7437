/* Does a network with a norm learn in fewer steps? Plain gradient descent and Adam, each at seven
 * rates: a norm is compared with none where each has its own best rate, and where both have the
 * rate that is best without a norm. */
#include "lab.h"
#include <math.h>
#include <stdlib.h>

enum { WIDTH, DEPTH, EPOCHS, BATCH };
static lab_size sizes[] = {[WIDTH] = {"width", "features of each hidden layer", .normal = 64},
                           [DEPTH] = {"depth", "hidden layers", .normal = 4},
                           [EPOCHS] = {"epochs", "passes over the data", .normal = 20, .quick = 3},
                           [BATCH] = {"batch", "samples a step", .normal = 64},
                           {0}};

static const lab_experiment experiment = {
    .id = "convergence",
    .figure = "convergence_rates", /* plots/convergence.* is the demo's */
    .source = "documents 001 and 003, benefit 3; document 004",
    .claim = "normalization makes training converge faster",
    .method =
        "Digits, 64 - (Linear, norm, ReLU) x 4 - 10, weights as He et al. 2015; plain gradient\n"
        "descent and Adam, each at seven rates, powers of 2. Counted: steps until 95 % of the\n"
        "validation images are right, looked at every five steps. The best rate is that with the\n"
        "fewest steps in the median over seeds.\n",
    .rule = "a norm is faster if it takes fewer steps than no norm in the median and with at least "
            "four fifths of the seeds (same split); holds if all 3 norms are, at their own best "
            "rates and at that of no norm, with both optimizers; fails if none is in any of these",
    .seeds = 15,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, OPTIMIZERS = 2, RATES = 7, LOOK = 5 };
static const lab_norm *const norms[NORMS] = {&lab_no_norm, &lab_batch_norm, &lab_layer_norm,
                                             &lab_rms_norm};
static const double target = 0.95;

static ng_optimizer *make_sgd(ng_module *net, double rate) { return ng_sgd_new(net, .lr = rate); }
static ng_optimizer *make_adam(ng_module *net, double rate) { return ng_adam_new(net, .lr = rate); }

static const struct {
    const char *name;
    ng_optimizer *(*make)(ng_module *net, double rate);
    double lowest; /* rate */
} optimizers[OPTIMIZERS] = {{"gradient descent", make_sgd, 0.064}, {"Adam", make_adam, 0.001}};

static double rate_of(int optimizer, int i) { return ldexp(optimizers[optimizer].lowest, i); }

/* ---- One run ---- */

/* The training loss of each epoch; the steps to the target, Inf if it is not reached. */
typedef struct {
    double *losses;
    double steps;
} run;

/* A network on its way, looked at every few steps until it is at the target. */
typedef struct {
    run *run;
    ng_module *net;
    ng_tape *tape;
    ng_dataset *validate;
    double step;
} walk;

static void look(void *context)
{
    walk *w = context;
    w->step++;
    if (isinf(w->run->steps) && fmod(w->step, LOOK) == 0 &&
        lab_evaluate(w->net, w->tape, w->validate).accuracy >= target)
        w->run->steps = w->step;
}

static void train(run *r, ng_module *net, ng_optimizer *optimizer, ng_dataset *data,
                  ng_dataset *validate)
{
    walk w = {.run = r, .net = net, .tape = ng_tape_new(), .validate = validate};
    r->steps = HUGE_VAL;
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && lab_goes_on(); epoch++) {
        r->losses[epoch] = lab_watch_epoch(net, optimizer, w.tape, data, lab_whole(BATCH),
                                           (uint64_t)epoch, look, &w);
        if (!isfinite(r->losses[epoch])) break;
    }
    ng_tape_free(w.tape);
}

/* ---- All runs ---- */

static run *runs; /* [optimizer][norm][rate][seed] */

static run *run_of(int optimizer, int norm, int rate, int seed)
{
    return &runs[((optimizer * NORMS + norm) * RATES + rate) * lab_seeds() + seed];
}

static void train_all(int seed)
{
    ng_dataset *data, *validate;
    lab_digits(lab_seed(seed), 0, &data, &validate);
    for (int i = 0; i < OPTIMIZERS * NORMS * RATES; i++) {
        const int rate = i % RATES, norm = i / RATES % NORMS, optimizer = i / RATES / NORMS;
        lab_progress(seed * OPTIMIZERS * NORMS * RATES + i,
                     lab_seeds() * OPTIMIZERS * NORMS * RATES, "seed %d/%d  %s  %s", seed + 1,
                     lab_seeds(), optimizers[optimizer].name, norms[norm]->name);
        run *r = run_of(optimizer, norm, rate, seed);
        r->losses = lab_numbers(lab_whole(EPOCHS));
        for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++) r->losses[epoch] = (double)NAN;
        ng_module *net =
            lab_network(norms[norm], lab_whole(WIDTH), lab_whole(DEPTH), lab_seed(seed));
        lab_he_weights(net, lab_seed(seed));
        ng_optimizer *o = optimizers[optimizer].make(net, rate_of(optimizer, rate));
        train(r, net, o, data, validate);
        ng_optimizer_free(o), ng_module_free(net);
    }
    ng_dataset_free(data), ng_dataset_free(validate);
}

static lab_spread steps_at(int optimizer, int norm, int rate)
{
    double *steps = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++)
        steps[seed] = run_of(optimizer, norm, rate, seed)->steps;
    return lab_spread_of(steps, lab_seeds());
}

/* ---- What they show ---- */

/* The index of the rate with the fewest steps; of equals the lowest rate. */
static int best_rate(int optimizer, int norm)
{
    int best = 0;
    for (int i = 1; i < RATES; i++)
        if (steps_at(optimizer, norm, i).median < steps_at(optimizer, norm, best).median) best = i;
    return best;
}

static bool faster(int optimizer, int norm, int rate, int plain_rate)
{
    int wins = 0;
    for (int seed = 0; seed < lab_seeds(); seed++)
        wins += run_of(optimizer, norm, rate, seed)->steps <
                run_of(optimizer, 0, plain_rate, seed)->steps;
    return steps_at(optimizer, norm, rate).median < steps_at(optimizer, 0, plain_rate).median &&
           5 * wins >= 4 * lab_seeds();
}

static void write_steps(int optimizer, int norm)
{
    const double all = ceil(1437.0 / lab_whole(BATCH)) * lab_whole(EPOCHS); /* of lab_digits */
    const int best = best_rate(optimizer, norm);
    char name[64];
    snprintf(name, sizeof name, "%s, %s, steps", optimizers[optimizer].name, norms[norm]->name);
    lab_block(name, "rate steps steps_low steps_high best limit");
    for (int i = 0; i < RATES; i++) {
        const lab_spread steps = steps_at(optimizer, norm, i);
        lab_row(rate_of(optimizer, i), fmin(steps.median, all), fmin(steps.low, all),
                fmin(steps.high, all), i == best, all);
    }
}

static void write_losses(int optimizer, int norm)
{
    double *values = lab_numbers(lab_seeds());
    const int best = best_rate(optimizer, norm);
    char name[64];
    snprintf(name, sizeof name, "%s, %s, loss", optimizers[optimizer].name, norms[norm]->name);
    lab_block(name, "epoch loss loss_low loss_high rate seeds");
    for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++) {
        for (int seed = 0; seed < lab_seeds(); seed++)
            values[seed] = run_of(optimizer, norm, best, seed)->losses[epoch];
        const lab_spread loss = lab_spread_of(values, lab_seeds());
        lab_row(epoch + 1, loss.median, loss.low, loss.high, rate_of(optimizer, best), lab_seeds());
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    const int run_count = OPTIMIZERS * NORMS * RATES * lab_seeds();
    runs = calloc((size_t)run_count, sizeof *runs);
    if (!runs) ng_fail(NG_ENOMEM, "convergence: no memory for %d runs", run_count);
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) train_all(seed);

    lab_data("network 64-%d x %d-10, ReLU, batch %d", lab_whole(WIDTH), lab_whole(DEPTH),
             lab_whole(BATCH));
    for (int optimizer = 0; optimizer < OPTIMIZERS; optimizer++)
        for (int norm = 0; norm < NORMS; norm++)
            write_losses(optimizer, norm), write_steps(optimizer, norm);

    bool held[OPTIMIZERS * (NORMS - 1) * 2];
    int tests = 0, at_own = 0, at_common = 0;
    double own[OPTIMIZERS][NORMS], common[OPTIMIZERS][NORMS]; /* median steps */
    for (int o = 0; o < OPTIMIZERS; o++) {
        const int plain = best_rate(o, 0);
        for (int n = 0; n < NORMS; n++) {
            const int best = best_rate(o, n);
            own[o][n] = steps_at(o, n, best).median, common[o][n] = steps_at(o, n, plain).median;
            if (n == 0) continue;
            at_own += held[tests++] = faster(o, n, best, plain);
            at_common += held[tests++] = faster(o, n, plain, plain);
        }
    }
    const lab_verdict verdict = lab_verdict_of(held, tests);
    free(runs);
    return lab_end(verdict,
                   "median steps at own best rate (at that of no norm), gradient descent: no norm "
                   "%g, BatchNorm %g (%g), LayerNorm %g (%g), RMSNorm %g (%g); Adam: no norm %g, "
                   "BatchNorm %g (%g), LayerNorm %g (%g), RMSNorm %g (%g); faster in %d of 6 cases "
                   "at own rates and %d of 6 at the common one; %d seeds",
                   own[0][0], own[0][1], common[0][1], own[0][2], common[0][2], own[0][3],
                   common[0][3], own[1][0], own[1][1], common[1][1], own[1][2], common[1][2],
                   own[1][3], common[1][3], at_own, at_common, lab_seeds());
}
