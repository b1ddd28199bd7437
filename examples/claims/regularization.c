/* Norms as regularization: networks overfit a few digits, and the gap between validation and
 * training loss is compared. Dropout is the control. */
#include "lab.h"

enum { WIDTH, IMAGES, STEPS, BATCH };
static option sizes[] = {
    [WIDTH] = {"width", "features of both hidden layers", .normal = 128},
    [IMAGES] = {"images", "for training", .normal = 200, .least = 50, .most = 1700},
    [STEPS] = {"steps", "training steps", .normal = 1000, .quick = 200},
    [BATCH] = {"batch", "samples per step", .normal = 32},
    {0}};

static const lab_experiment experiment = {
    .id = "regularization",
    .source = "document 003, benefit 4; Ioffe & Szegedy 2015, section 3.4",
    .claim = "normalization acts as a form of regularization and helps prevent overfitting",
    .method =
        "200 digits for training, all others for validation; 64-128-128-10, weights as He et al. "
        "2015, 1000 steps of Adam at the rate 0.001. Gap: validation loss less training loss, both "
        "in eval mode. It is taken after the last step, and where the training loss, looked at "
        "every 10 steps, first falls below 0.03. Dropout of 0.5 without a norm is the control.",
    .rule = "from the same seed (same images) the gap with a norm is narrower than without by a "
            "tenth or more, at equal training loss and after equal training: the quotient is below "
            "0.9; dropout's is below 1",
    .seeds = 91,
    .sizes = sizes};

enum { NORMS = 4, KINDS = 5, LEVELS = 11, RULE_LEVEL = 6, LOOK = 10, MEASURES = 2 };
static ng_module *make_dropout(int64_t features)
{
    (void)features;
    return ng_dropout_new(0.5);
}
static const lab_norm dropout = {"dropout", make_dropout};
static const char *const measures[MEASURES] = {"at equal training loss", "after equal training"};

static const lab_norm *kind_at(int i) { return i < NORMS ? &lab_norms[i] : &dropout; }

/* Returns the training loss at which the validation loss is logged: 1, 0.56, 0.32 ... 0.0032. */
static double level_of(int i) { return pow(10, -0.25 * i); }

/* Sets the gaps by measure; NaN where the training loss is not reached. */
static void run(int kind, int index, ng_dataset *train, ng_dataset *validate, curve_set *curves,
                double *gaps[MEASURES])
{
    const uint64_t seed = lab_seed(index);
    ng_module *net = lab_network(kind_at(kind), ng_relu_new, get_whole(WIDTH), 2, seed);
    lab_he_weights(net, seed);
    lab_run r = {net, ng_adam_new(net, .lr = 1e-3), ng_tape_new(), train, NULL, 0, false};
    ng_tape_seed(r.tape, seed);
    int64_t looked = 0;
    int level = 0; /* the next level */
    gaps[0][index] = (double)NAN;
    for (uint64_t epoch = 0; ng_optimizer_steps(r.optimizer) < get_whole(STEPS); epoch++) {
        lab_epoch(&r, get_whole(BATCH), epoch);
        if (ng_optimizer_steps(r.optimizer) < looked + LOOK) continue;
        looked = ng_optimizer_steps(r.optimizer);
        const double loss = ng_evaluate(net, train).loss;
        if (level == LEVELS || !(loss < level_of(level))) continue;
        const double validation = ng_evaluate(net, validate).loss;
        for (; level < LEVELS && loss < level_of(level); level++) {
            log_curves(curves, index, "validation", level_of(level), validation);
            if (level == RULE_LEVEL) gaps[0][index] = validation - loss;
        }
    }
    gaps[1][index] = ng_evaluate(net, validate).loss - ng_evaluate(net, train).loss;
    ng_tape_free(r.tape), ng_optimizer_free(r.optimizer), ng_module_free(net);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%d-%d-10, ReLU, %d images, %d steps of Adam, batches of %d", get_whole(WIDTH),
             get_whole(WIDTH), get_whole(IMAGES), get_whole(STEPS), get_whole(BATCH));
    const int seeds = lab_seeds();
    ng_dataset *all = read_digits();
    double *gaps[KINDS][MEASURES];
    curve_set *curves[KINDS];
    for (int kind = 0; kind < KINDS; kind++) {
        curves[kind] = new_curves("train", "%s", kind_at(kind)->name);
        for (int m = 0; m < MEASURES; m++) gaps[kind][m] = lab_numbers(seeds);
    }
    for (int seed = 0; seed < seeds; seed++) {
        ng_dataset *train, *validate;
        ng_dataset_split_new(all, get_whole(IMAGES), lab_seed(seed), &train, &validate);
        for (int kind = 0; kind < KINDS && still_works(); kind++) {
            run(kind, seed, train, validate, curves[kind], gaps[kind]);
        }
        ng_dataset_free(train), ng_dataset_free(validate);
    }
    ng_dataset_free(all);
    for (int m = 0; m < MEASURES; m++) {
        curve_set *shares = new_curves("kind", "gap %s", measures[m]);
        for (int kind = 1; kind < KINDS; kind++) {
            const double *share = lab_quotients(gaps[kind][m], gaps[0][m]);
            for (int seed = 0; seed < seeds; seed++)
                log_curves(shares, seed, "share", kind, share[seed]);
            lab_judge(kind < NORMS ? kind_at(kind)->name : NULL, share,
                      lab_below(kind < NORMS ? 0.9 : 1), "gap %s, as a share of no norm's%s",
                      measures[m], kind < NORMS ? "" : ", dropout");
        }
    }
    return lab_end();
}
