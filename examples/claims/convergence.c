/* The number of steps that networks with and without a norm need, by gradient descent and Adam:
 * each at its best of seven rates, and all at the best rate without a norm. */
#include "lab.h"
#include <stdlib.h>

enum { WIDTH, DEPTH, EPOCHS, BATCH };
static lab_size sizes[] = {[WIDTH] = {"width", "features of each hidden layer", .normal = 64},
                           [DEPTH] = {"depth", "hidden layers", .normal = 4},
                           [EPOCHS] = {"epochs", "passes over the data", .normal = 20, .quick = 3},
                           [BATCH] = {"batch", "samples per step", .normal = 64},
                           {0}};

static const lab_experiment experiment = {
    .id = "convergence",
    .figure = "convergence_rates", /* plots/convergence.* belongs to digits */
    .source = "documents 001 and 003, benefit 3; document 004",
    .claim = "normalization makes training converge faster",
    .method =
        "Digits, 64 - (Linear, norm, ReLU) x 4 - 10, weights as He et al. 2015; plain gradient\n"
        "descent and Adam, each at seven rates, powers of 2. Measured: the steps until 95 % of\n"
        "the validation images are right at two checks in succession, with a check every five\n"
        "steps. The best rate has the lowest median number of steps over three seeds that are\n"
        "not scored.\n",
    .rule =
        "from the same seed (same split) a norm needs fewer steps than no norm: the quotient is "
        "below 1, each at its own best rate and both at the best rate of no norm, for each "
        "optimizer",
    .seeds = 15,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, OPTIMIZERS = 2, RATES = 7, LOOK = 5 };
static const double target = 0.95;

static ng_optimizer *make_sgd(ng_module *net, double rate) { return ng_sgd_new(net, .lr = rate); }
static ng_optimizer *make_adam(ng_module *net, double rate) { return ng_adam_new(net, .lr = rate); }

static const struct {
    const char *name;
    ng_optimizer *(*make)(ng_module *net, double rate);
    double lowest; /* learning rate */
} optimizers[OPTIMIZERS] = {{"gradient descent", make_sgd, 0.064}, {"Adam", make_adam, 0.001}};

static double rate_of(int optimizer, int i) { return ldexp(optimizers[optimizer].lowest, i); }

/* ---- One run ---- */

/* The training loss by epoch, and the steps to the target; Inf if it is not reached. */
typedef struct {
    double *losses; /* NULL: not trained yet */
    double steps;
} run;

/* A network in training, checked every few steps until it reaches the target. */
typedef struct {
    run *run;
    ng_module *net;
    ng_tape *tape;
    ng_dataset *validate;
    double step, reached; /* reached: the step of the first check at the target, or -1 */
} walk;

static void look(void *context)
{
    walk *w = context;
    w->step++;
    if (isfinite(w->run->steps) || fmod(w->step, LOOK) != 0) return;
    const bool there = lab_evaluate(w->net, w->tape, w->validate).accuracy >= target;
    if (there && w->reached > 0) w->run->steps = w->reached;
    w->reached = there ? w->step : -1;
}

static void train(run *r, ng_module *net, ng_optimizer *optimizer, ng_dataset *data,
                  ng_dataset *validate)
{
    walk w = {.run = r, .net = net, .tape = ng_tape_new(), .validate = validate, .reached = -1};
    r->steps = HUGE_VAL;
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && lab_goes_on(); epoch++) {
        r->losses[epoch] = lab_watch_epoch(net, optimizer, w.tape, data, lab_whole(BATCH),
                                           (uint64_t)epoch, look, &w);
        if (!isfinite(r->losses[epoch])) break;
    }
    ng_tape_free(w.tape);
}

/* ---- All runs ---- */

/* [optimizer][norm][rate][seed]; the tuning seeds follow the scored ones. */
static run *runs;

static int all_seeds(void) { return lab_seeds() + lab_tuning_seeds(); }

static uint64_t seed_at(int place)
{
    return place < lab_seeds() ? lab_seed(place) : lab_tuning_seed(place - lab_seeds());
}

static run *run_of(int optimizer, int norm, int rate, int place)
{
    return &runs[((optimizer * NORMS + norm) * RATES + rate) * all_seeds() + place];
}

static void train_one(int optimizer, int norm, int rate, int place, ng_dataset *data,
                      ng_dataset *validate)
{
    run *r = run_of(optimizer, norm, rate, place);
    if (r->losses) return;
    r->losses = lab_numbers(lab_whole(EPOCHS));
    for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++) r->losses[epoch] = (double)NAN;
    ng_module *net =
        lab_network(lab_norms[norm], lab_whole(WIDTH), lab_whole(DEPTH), seed_at(place));
    lab_he_weights(net, seed_at(place));
    ng_optimizer *o = optimizers[optimizer].make(net, rate_of(optimizer, rate));
    train(r, net, o, data, validate);
    ng_optimizer_free(o), ng_module_free(net);
}

static double tuning_steps(int optimizer, int norm, int rate)
{
    double steps[LAB_TUNING_SEEDS];
    for (int i = 0; i < lab_tuning_seeds(); i++)
        steps[i] = run_of(optimizer, norm, rate, lab_seeds() + i)->steps;
    return lab_percentile(steps, lab_tuning_seeds(), 50);
}

/* Returns the index of the rate with the fewest steps, the lowest such rate. */
static int best_rate(int optimizer, int norm)
{
    int best = 0;
    for (int i = 1; i < RATES; i++)
        if (tuning_steps(optimizer, norm, i) < tuning_steps(optimizer, norm, best)) best = i;
    return best;
}

/* Trains from one seed: at every rate for a tuning seed, otherwise at the two rates compared. */
static void train_all(int place)
{
    const bool tuning = place >= lab_seeds();
    ng_dataset *data, *validate;
    lab_digits(seed_at(place), 0, &data, &validate);
    for (int i = 0; i < OPTIMIZERS * NORMS; i++) {
        const int norm = i % NORMS, optimizer = i / NORMS;
        const int done = tuning ? place - lab_seeds() : lab_tuning_seeds() + place;
        lab_progress(done * OPTIMIZERS * NORMS + i, all_seeds() * OPTIMIZERS * NORMS,
                     "seed %d/%d  %s  %s", done + 1, all_seeds(), optimizers[optimizer].name,
                     lab_norms[norm]->name);
        for (int rate = 0; rate < RATES; rate++)
            if (tuning || rate == best_rate(optimizer, norm) || rate == best_rate(optimizer, 0))
                train_one(optimizer, norm, rate, place, data, validate);
    }
    ng_dataset_free(data), ng_dataset_free(validate);
}

/* ---- Results ---- */

static void write_steps(int optimizer, int norm)
{
    /* steps on all of lab_digits */
    const double all = ceil(1437.0 / lab_whole(BATCH)) * lab_whole(EPOCHS);
    lab_curves *curves =
        lab_curves_new("rate", "%s, %s, steps", optimizers[optimizer].name, lab_norms[norm]->name);
    for (int i = 0; i < RATES; i++)
        for (int k = 0; k < lab_tuning_seeds(); k++) {
            const double rate = rate_of(optimizer, i);
            const run *r = run_of(optimizer, norm, i, lab_seeds() + k);
            lab_log(curves, k, "steps best limit", rate, fmin(r->steps, all),
                    i == best_rate(optimizer, norm), all);
        }
}

static void write_losses(int optimizer, int norm)
{
    const int best = best_rate(optimizer, norm);
    lab_curves *curves =
        lab_curves_new("epoch", "%s, %s, loss", optimizers[optimizer].name, lab_norms[norm]->name);
    for (int seed = 0; seed < lab_seeds(); seed++)
        for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++) {
            const run *r = run_of(optimizer, norm, best, seed);
            lab_log(curves, seed, "loss rate", epoch + 1, r->losses[epoch],
                    rate_of(optimizer, best));
        }
}

/* Judges the steps over those without a norm at its best rate; 1 if neither reaches the target. */
static void judge(int optimizer, int norm, int rate, const char *at)
{
    double *shares = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        const double with = run_of(optimizer, norm, rate, seed)->steps;
        const double without = run_of(optimizer, 0, best_rate(optimizer, 0), seed)->steps;
        shares[seed] = isinf(with) && isinf(without) ? 1 : with / without;
    }
    lab_judge((lab_part){lab_norms[norm]->name, shares, .side = LAB_BELOW, .threshold = 1},
              "steps to 95 %%, %s, %s, as a share of no norm's", optimizers[optimizer].name, at);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    const int run_count = OPTIMIZERS * NORMS * RATES * all_seeds();
    runs = calloc((size_t)run_count, sizeof *runs);
    if (!runs) ng_fail(NG_ENOMEM, "convergence: no memory for %d runs", run_count);
    for (int i = 0; i < lab_tuning_seeds() && lab_goes_on(); i++) train_all(lab_seeds() + i);
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) train_all(seed);

    lab_data("network 64-%d x %d-10, ReLU, batch %d", lab_whole(WIDTH), lab_whole(DEPTH),
             lab_whole(BATCH));
    for (int optimizer = 0; optimizer < OPTIMIZERS; optimizer++)
        for (int norm = 0; norm < NORMS; norm++)
            write_losses(optimizer, norm), write_steps(optimizer, norm);
    for (int optimizer = 0; optimizer < OPTIMIZERS; optimizer++) {
        for (int norm = 1; norm < NORMS; norm++) {
            judge(optimizer, norm, best_rate(optimizer, norm), "own rates");
            judge(optimizer, norm, best_rate(optimizer, 0), "the rate best without");
        }
    }
    free(runs);
    return lab_end();
}
