/* Does a norm regularize? Networks learn few digits until they know them by heart; the gap between
 * validation and training loss is compared after equal training, and where the training losses are
 * equal. Dropout, which is known to regularize, shows what that looks like. */
#include "lab.h"
#include <math.h>

enum { WIDTH, STEPS, BATCH, RATE };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of both hidden layers", .normal = 128},
    [STEPS] = {"steps", "of training", .normal = 1200, .quick = 400},
    [BATCH] = {"batch", "samples a step", .normal = 32},
    [RATE] = {"rate", "learning rate of Adam", .normal = 0.001, .fraction = true},
    {0}};

static const lab_experiment experiment = {
    .id = "regularization",
    .source = "document 003, benefit 4; Ioffe & Szegedy 2015, section 3.4",
    .claim = "normalization acts as a form of regularization and helps prevent overfitting",
    .method =
        "100, 200, 400 or 800 digits to train with, all others to validate; 64-128-128-10, "
        "weights\n"
        "as He et al. 2015, 1200 steps of Adam. Gap: validation loss less training loss, both in\n"
        "eval mode, looked at every 20 steps; after the last step, and where the training loss\n"
        "first falls below 0.0316. Beside the norms, as a control that is no part of the verdict:\n"
        "no norm with dropout of 0.5.\n",
    .rule = "a norm regularizes if its gap is smaller than that of no norm in the median and with "
            "at least four fifths of the seeds (same images); holds if all 3 norms do at all 4 "
            "sizes, after equal training and at equal training loss, fails if none does anywhere",
    .seeds = 10,
    .quick_seeds = 1,
    .sizes = sizes};

enum { KINDS = 5, NORMS = 4, COUNTS = 4, LEVELS = 11, RULE_LEVEL = 6, LOOK = 20 };
static ng_module *make_dropout(int64_t features)
{
    (void)features;
    return ng_dropout_new(0.5);
}
static const lab_norm dropout = {"dropout", "dropout", make_dropout};
static const lab_norm *const kinds[KINDS] = {&lab_no_norm, &lab_batch_norm, &lab_layer_norm,
                                             &lab_rms_norm, &dropout};
static const int counts[COUNTS] = {100, 200, 400, 800};

/* Training losses at which the validation loss is noted: 1, 0.56, 0.32 ... 0.0032. */
static double level_of(int i) { return pow(10, -0.25 * i); }

/* ---- One run ---- */

typedef struct {
    double validation[LEVELS]; /* loss where the training loss first is below a level; or NaN */
    double equal_loss;         /* gap at level 0.0316; NaN where it is not reached */
    double equal_training;     /* gap after the last step */
} outcome;

static outcome run(const lab_norm *kind, uint64_t seed, ng_dataset *train, ng_dataset *validate)
{
    ng_module *net = lab_network(kind, lab_whole(WIDTH), 2, seed);
    lab_he_weights(net, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = lab_number(RATE));
    ng_tape *tape = ng_tape_new();
    ng_tape_seed(tape, seed);
    outcome o = {.equal_loss = (double)NAN};
    for (int i = 0; i < LEVELS; i++) o.validation[i] = (double)NAN;
    int64_t looked = 0;
    for (uint64_t epoch = 0; ng_optimizer_steps(adam) < lab_whole(STEPS); epoch++) {
        lab_train_epoch(net, adam, tape, train, lab_whole(BATCH), epoch);
        if (ng_optimizer_steps(adam) < looked + LOOK) continue;
        looked = ng_optimizer_steps(adam);
        const double loss = lab_evaluate(net, tape, train).loss;
        const double validation = lab_evaluate(net, tape, validate).loss;
        for (int i = 0; i < LEVELS; i++)
            if (isnan(o.validation[i]) && loss < level_of(i)) {
                o.validation[i] = validation;
                if (i == RULE_LEVEL) o.equal_loss = validation - loss;
            }
        o.equal_training = validation - loss;
    }
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    return o;
}

/* ---- All runs ---- */

enum { MOST_SEEDS = 1000 };
static outcome outcomes[COUNTS][KINDS][MOST_SEEDS];

typedef double measure(const outcome *o);
static double equal_training(const outcome *o) { return o->equal_training; }
static double equal_loss(const outcome *o) { return o->equal_loss; }

static lab_spread spread_of(int count, int kind, measure *of)
{
    double *values = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) values[seed] = of(&outcomes[count][kind][seed]);
    return lab_spread_of(values, lab_seeds());
}

/* The same as a share of what it is without a norm, with the same images and first weights. */
static lab_spread share_of(int count, int kind, measure *of)
{
    double *values = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++)
        values[seed] = of(&outcomes[count][kind][seed]) / of(&outcomes[count][0][seed]);
    return lab_spread_of(values, lab_seeds());
}

static bool smaller(int count, int norm, measure *of)
{
    int wins = 0;
    for (int seed = 0; seed < lab_seeds(); seed++)
        wins += of(&outcomes[count][norm][seed]) < of(&outcomes[count][0][seed]);
    return spread_of(count, norm, of).median < spread_of(count, 0, of).median &&
           5 * wins >= 4 * lab_seeds();
}

static void write_path(int count, int kind)
{
    double *values = lab_numbers(lab_seeds());
    char name[64];
    snprintf(name, sizeof name, "%s, %d images", kinds[kind]->name, counts[count]);
    lab_block(name, "train validation validation_low validation_high seeds");
    for (int i = 0; i < LEVELS; i++) {
        for (int seed = 0; seed < lab_seeds(); seed++)
            values[seed] = outcomes[count][kind][seed].validation[i];
        const lab_spread loss = lab_spread_of(values, lab_seeds());
        const bool most = 2 * loss.count > lab_seeds(); /* reach this level */
        lab_row(level_of(i), most ? loss.median : (double)NAN, most ? loss.low : (double)NAN,
                most ? loss.high : (double)NAN, loss.count);
    }
}

static void write_gaps(const char *when, int kind, measure *of)
{
    char name[64];
    snprintf(name, sizeof name, "%s, gap at equal %s", kinds[kind]->name, when);
    lab_block(name, "images gap gap_low gap_high share share_low share_high seeds");
    for (int count = 0; count < COUNTS; count++) {
        const lab_spread gap = spread_of(count, kind, of), share = share_of(count, kind, of);
        lab_row(counts[count], gap.median, gap.low, gap.high, share.median, share.low, share.high,
                share.count);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    ng_dataset *all = ng_dataset_read_csv("examples/data/digits.csv", .scale = 1.0 / 16);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        for (int count = 0; count < COUNTS; count++) {
            ng_dataset *train, *validate;
            ng_dataset_split(all, counts[count], lab_seed(seed), &train, &validate);
            for (int kind = 0; kind < KINDS; kind++) {
                lab_progress((seed * COUNTS + count) * KINDS + kind, lab_seeds() * COUNTS * KINDS,
                             "seed %d/%d  %d images  %s", seed + 1, lab_seeds(), counts[count],
                             kinds[kind]->name);
                outcomes[count][kind][seed] = run(kinds[kind], lab_seed(seed), train, validate);
            }
            ng_dataset_free(train), ng_dataset_free(validate);
        }
    }

    ng_dataset_free(all);

    lab_data("network 64-%d-%d-10, ReLU, Adam at %g, batch %d, %d steps", lab_whole(WIDTH),
             lab_whole(WIDTH), lab_number(RATE), lab_whole(BATCH), lab_whole(STEPS));
    for (int kind = 0; kind < KINDS; kind++)
        for (int count = 0; count < COUNTS; count++) write_path(count, kind);
    for (int kind = 0; kind < KINDS; kind++) {
        write_gaps("training", kind, equal_training);
        write_gaps("loss", kind, equal_loss);
    }

    bool held[2 * (NORMS - 1) * COUNTS];
    int tests = 0, after_training = 0, at_loss = 0, by_dropout = 0;
    for (int norm = 1; norm < KINDS; norm++) {
        for (int count = 0; count < COUNTS; count++) {
            const bool training = smaller(count, norm, equal_training);
            const bool loss = smaller(count, norm, equal_loss);
            if (kinds[norm] == &dropout) {
                by_dropout += training + loss;
                continue;
            }
            after_training += held[tests++] = training;
            at_loss += held[tests++] = loss;
        }
    }
#define SHARE(kind, of) share_of(0, kind, of).median, share_of(2, kind, of).median
    return lab_end(lab_verdict_of(held, tests),
                   "median gap as a share of that of no norm (%.3f and %.3f), 100 and 400 images, "
                   "after equal training: BatchNorm %.2f, %.2f, LayerNorm %.2f, %.2f, RMSNorm "
                   "%.2f, %.2f, dropout %.2f, %.2f; at equal training loss: BatchNorm %.2f, %.2f, "
                   "LayerNorm %.2f, %.2f, RMSNorm %.2f, %.2f, dropout %.2f, %.2f; smaller with a "
                   "norm in %d and %d of 12 cases, with dropout in %d of 8; %d seeds",
                   spread_of(0, 0, equal_training).median, spread_of(2, 0, equal_training).median,
                   SHARE(1, equal_training), SHARE(2, equal_training), SHARE(3, equal_training),
                   SHARE(4, equal_training), SHARE(1, equal_loss), SHARE(2, equal_loss),
                   SHARE(3, equal_loss), SHARE(4, equal_loss), after_training, at_loss, by_dropout,
                   lab_seeds());
}
