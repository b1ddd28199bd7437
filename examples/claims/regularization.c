/* Norms as regularization: networks overfit a few digits; the gap between validation and training
 * loss is compared after equal training and at equal training loss. Dropout is the control. */
#include "lab.h"

enum { WIDTH, STEPS, BATCH, RATE };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of both hidden layers", .normal = 128},
    [STEPS] = {"steps", "training steps", .normal = 1200, .quick = 400},
    [BATCH] = {"batch", "samples per step", .normal = 32},
    [RATE] = {"rate", "learning rate of Adam", .normal = 0.001, .fraction = true},
    {0}};

static const lab_experiment experiment = {
    .id = "regularization",
    .source = "document 003, benefit 4; Ioffe & Szegedy 2015, section 3.4",
    .claim = "normalization acts as a form of regularization and helps prevent overfitting",
    .method =
        "100, 300 or 900 digits for training, all others for validation; 64-128-128-10, weights\n"
        "as He et al. 2015, 1200 steps of Adam, all at one learning rate. Gap: validation loss\n"
        "less training loss, both in eval mode, measured every 20 steps. It is taken after the\n"
        "last step, and where the training loss first falls below 0.0316. Dropout of 0.5 without\n"
        "a norm is the control. Dropout after BatchNorm tests Ioffe & Szegedy's statement that\n"
        "it is needed less there. The effect of dropout is the validation loss after the last\n"
        "step with it over that without.\n",
    .rule =
        "from the same seed (same images) the gap with a norm is smaller than without: the "
        "quotient is below 1, at equal training loss and after equal training, with 100 and with "
        "900 images; dropout helps less if its effect with BatchNorm, over its effect without, is "
        "above 1",
    .seeds = 21,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NONE, BATCH_NORM, LAYER_NORM, RMS_NORM, DROPOUT, BOTH, KINDS };
enum { FEW, SOME, MANY, COUNTS, LEVELS = 11, RULE_LEVEL = 6, LOOK = 20 };
static ng_module *make_dropout(int64_t features)
{
    (void)features;
    return ng_dropout_new(0.5);
}
static ng_module *make_both(int64_t features)
{
    ng_module *both = ng_sequential_from(NULL, 0);
    ng_sequential_add(both, ng_batch_norm_new(features));
    ng_sequential_add(both, ng_dropout_new(0.5));
    return both;
}
static const lab_norm dropout = {"dropout", "dropout", make_dropout};
static const lab_norm both = {"both", "BatchNorm and dropout", make_both};
static const lab_norm *const kinds[KINDS] = {&lab_no_norm,  &lab_batch_norm, &lab_layer_norm,
                                             &lab_rms_norm, &dropout,        &both};
static const int counts[COUNTS] = {100, 300, 900};

/* Returns the training loss at which the validation loss is stored: 1, 0.56, 0.32 ... 0.0032. */
static double level_of(int i) { return pow(10, -0.25 * i); }

/* ---- One run ---- */

typedef struct {
    double validation[LEVELS]; /* loss where the training loss first is below a level; or NaN */
    double equal_loss;         /* gap at level 0.0316; NaN if it is not reached */
    double equal_training;     /* gap after the last step */
    double last;               /* validation loss then */
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
    int level = 0; /* the next level */
    for (uint64_t epoch = 0; ng_optimizer_steps(adam) < lab_whole(STEPS); epoch++) {
        lab_train_epoch(net, adam, tape, train, lab_whole(BATCH), epoch);
        if (ng_optimizer_steps(adam) < looked + LOOK) continue;
        looked = ng_optimizer_steps(adam);
        const double loss = lab_evaluate(net, tape, train).loss;
        if (level == LEVELS || !(loss < level_of(level))) continue;
        const double validation = lab_evaluate(net, tape, validate).loss;
        for (; level < LEVELS && loss < level_of(level); level++) {
            o.validation[level] = validation;
            if (level == RULE_LEVEL) o.equal_loss = validation - loss;
        }
    }
    o.last = lab_evaluate(net, tape, validate).loss;
    o.equal_training = o.last - lab_evaluate(net, tape, train).loss;
    ng_tape_free(tape), ng_optimizer_free(adam), ng_module_free(net);
    return o;
}

/* ---- All runs ---- */

enum { MOST_SEEDS = 1000 };
static outcome outcomes[COUNTS][KINDS][MOST_SEEDS];

typedef double measure(const outcome *o);
static double equal_training(const outcome *o) { return o->equal_training; }
static double equal_loss(const outcome *o) { return o->equal_loss; }

/* Returns the same over its value without a norm, with the same images and initial weights. */
static const double *shares_of(int count, int kind, measure *of)
{
    double *values = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++)
        values[seed] = of(&outcomes[count][kind][seed]) / of(&outcomes[count][NONE][seed]);
    return values;
}

/* Logs the validation loss at the levels that most seeds reach. */
static void log_path(int count, int kind)
{
    lab_curves *curves = lab_curves_new("train", "%s, %d images", kinds[kind]->name, counts[count]);
    for (int i = 0; i < LEVELS; i++) {
        int reached = 0;
        for (int seed = 0; seed < lab_seeds(); seed++)
            reached += !isnan(outcomes[count][kind][seed].validation[i]);
        for (int seed = 0; seed < lab_seeds(); seed++) {
            const double loss = outcomes[count][kind][seed].validation[i];
            lab_log(curves, seed, "validation", level_of(i),
                    2 * reached > lab_seeds() ? loss : (double)NAN);
        }
    }
}

static void log_gaps(const char *when, int kind, measure *of)
{
    lab_curves *curves = lab_curves_new("images", "%s, gap at equal %s", kinds[kind]->name, when);
    for (int count = 0; count < COUNTS; count++)
        for (int seed = 0; seed < lab_seeds(); seed++)
            lab_log(curves, seed, "gap share", counts[count], of(&outcomes[count][kind][seed]),
                    shares_of(count, kind, of)[seed]);
}

static void judge_gap(int count, int norm, const char *when, measure *of)
{
    lab_judge((lab_part){kinds[norm]->name, shares_of(count, norm, of), .side = LAB_BELOW,
                         .threshold = 1},
              "gap at equal %s, %d images, as a share of no norm's", when, counts[count]);
}

/* Judges dropout's effect on the validation loss with BatchNorm, over that without a norm. */
static void judge_dropout(int count)
{
    double *values = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
#define LAST(kind) outcomes[count][kind][seed].last
        values[seed] = LAST(BOTH) / LAST(BATCH_NORM) / (LAST(DROPOUT) / LAST(NONE));
#undef LAST
    }
    lab_judge((lab_part){kinds[BATCH_NORM]->name, values, .side = LAB_ABOVE, .threshold = 1},
              "validation loss with dropout over that without it, %d images, over no norm's",
              counts[count]);
}

static void run_all(int seed, ng_dataset *all)
{
    for (int count = 0; count < COUNTS; count++) {
        ng_dataset *train, *validate;
        ng_dataset_split(all, counts[count], lab_seed(seed), &train, &validate);
        for (int kind = 0; kind < KINDS && lab_goes_on(); kind++) {
            lab_progress((seed * COUNTS + count) * KINDS + kind, lab_seeds() * COUNTS * KINDS,
                         "seed %d/%d  %d images  %s", seed + 1, lab_seeds(), counts[count],
                         kinds[kind]->name);
            outcomes[count][kind][seed] = run(kinds[kind], lab_seed(seed), train, validate);
        }
        ng_dataset_free(train), ng_dataset_free(validate);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    ng_dataset *all = lab_all_digits();
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) run_all(seed, all);
    ng_dataset_free(all);

    lab_data("network 64-%d-%d-10, ReLU, Adam at %g, batch %d, %d steps", lab_whole(WIDTH),
             lab_whole(WIDTH), lab_number(RATE), lab_whole(BATCH), lab_whole(STEPS));
    for (int kind = 0; kind < KINDS; kind++) {
        for (int count = 0; count < COUNTS; count++) log_path(count, kind);
        log_gaps("training", kind, equal_training);
        log_gaps("loss", kind, equal_loss);
    }
    for (int norm = BATCH_NORM; norm <= RMS_NORM; norm++) {
        for (int count = FEW; count <= MANY; count += MANY - FEW) {
            judge_gap(count, norm, "training loss", equal_loss);
            judge_gap(count, norm, "training", equal_training);
        }
    }
    judge_dropout(FEW), judge_dropout(MANY);
    return lab_end();
}
