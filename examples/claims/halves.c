/* The parts of a norm separately: centring without scaling, scaling without centring, and both
 * without gamma and beta. */
#include "lab.h"

enum { WIDTH, DEPTH, EPOCHS };
static option sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64, .quick = 32},
    [DEPTH] = {"depth", "hidden layers", .normal = 8, .quick = 3},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 6, .quick = 1},
    {0}};

static const lab_experiment experiment = {
    .id = "halves",
    .source = "document 000; Zhang & Sennrich 2019, section 3; Xu et al. 2019",
    .claim =
        "over the features scaling is what a norm does, and neither the mean nor gamma and beta "
        "are needed; over the batch scaling alone is not enough",
    .method =
        "64 - (Linear, half of a norm, ReLU) x 8 - 10 learns the digits by gradient descent in\n"
        "batches of 64, 6 epochs, each kind at its own best rate. Over the batch (BatchNorm) or\n"
        "over the features (LayerNorm): subtract the mean, divide by the root mean square, or\n"
        "both, without gamma and beta; and RMSNorm and LayerNorm with them. Compared: the\n"
        "training loss of the last epoch from the same seed.\n",
    .rule =
        "over the features the loss with scaling alone is below that with centring alone, and "
        "within a quarter of that with both; over the batch it is above that with both; without "
        "gamma and beta the loss is less than a quarter above that with them",
    .seeds = 31,
    .quick_seeds = 1,
    .sizes = sizes};

/* ---- Halves ---- */

static ng_tensor *centred(ng_tape *tape, ng_tensor *x, int axis)
{
    return ng_sub(tape, x, ng_mean(tape, x, .axes = NG_AXES(axis), .keepdim = true));
}
static ng_tensor *scaled(ng_tape *tape, ng_tensor *x, int axis)
{
    ng_tensor *square = ng_mean(tape, ng_square(tape, x), .axes = NG_AXES(axis), .keepdim = true);
    return ng_mul(tape, x, ng_rsqrt(tape, ng_add_scalar(tape, square, 1e-5)));
}

static ng_tensor *batch_centre(ng_tape *tape, ng_tensor *x) { return centred(tape, x, 0); }
static ng_tensor *batch_scale(ng_tape *tape, ng_tensor *x) { return scaled(tape, x, 0); }
static ng_tensor *batch_both(ng_tape *tape, ng_tensor *x)
{
    return scaled(tape, centred(tape, x, 0), 0);
}
static ng_tensor *row_centre(ng_tape *tape, ng_tensor *x) { return centred(tape, x, 1); }
static ng_tensor *row_scale(ng_tape *tape, ng_tensor *x) { return scaled(tape, x, 1); }
static ng_tensor *row_both(ng_tape *tape, ng_tensor *x)
{
    return scaled(tape, centred(tape, x, 1), 1);
}

#define MAKER(function)                                                                            \
    static ng_module *make_##function(int64_t features)                                            \
    {                                                                                              \
        (void)features;                                                                            \
        return ng_function_new(#function, function);                                               \
    }
MAKER(batch_centre)
MAKER(batch_scale)
MAKER(batch_both)
MAKER(row_centre)
MAKER(row_scale)
MAKER(row_both)

enum {
    NONE,
    BATCH_CENTRE,
    BATCH_SCALE,
    BATCH_BOTH,
    ROW_CENTRE,
    ROW_SCALE,
    ROW_BOTH,
    RMS,
    LAYER,
    KINDS
};
static const lab_norm kinds[KINDS] = {[NONE] = {"no norm", NULL},
                                      [BATCH_CENTRE] = {"batch, centring", make_batch_centre},
                                      [BATCH_SCALE] = {"batch, scaling", make_batch_scale},
                                      [BATCH_BOTH] = {"batch, both", make_batch_both},
                                      [ROW_CENTRE] = {"features, centring", make_row_centre},
                                      [ROW_SCALE] = {"features, scaling", make_row_scale},
                                      [ROW_BOTH] = {"features, both", make_row_both},
                                      [RMS] = {"RMSNorm", ng_norm_rms},
                                      [LAYER] = {"LayerNorm", ng_norm_layer}};

/* ---- Training ---- */

/* Trains and returns the loss of the last epoch. Sets the loss of every epoch, unless NULL. */
static double train(const lab_norm *kind, double rate, uint64_t seed, double *losses)
{
    ng_dataset *data, *rest;
    lab_digits(seed, 0, &data, &rest);
    ng_module *net = lab_network(kind, get_whole(WIDTH), get_whole(DEPTH), seed);
    lab_he_weights(net, seed);
    ng_optimizer *sgd = ng_sgd_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    double loss = 0;
    for (int epoch = 0; epoch < get_whole(EPOCHS); epoch++) {
        loss = lab_train_epoch(net, sgd, tape, data, 64, (uint64_t)epoch);
        if (isnan(loss)) loss = HUGE_VAL;
        if (losses) losses[epoch] = loss;
    }
    ng_tape_free(tape), ng_optimizer_free(sgd), ng_module_free(net);
    ng_dataset_free(data), ng_dataset_free(rest);
    return loss;
}

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    return train(context, rate, seed, NULL);
}

static double *last[KINDS];

static void measure(int kind)
{
    const int epochs = get_whole(EPOCHS);
    lab_norm context = kinds[kind];
    show_progress(kind, KINDS, "%s, rates", context.name);
    const double rate = lab_best_rate(0.1, tuning_loss, &context);
    double *losses = lab_numbers(epochs);
    curve_set *curves = new_curves("epoch", "%s", context.name);
    last[kind] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        show_progress(kind + (double)seed / lab_seeds(), KINDS, "%s, rate %g, seed %d",
                      context.name, rate, seed + 1);
        last[kind][seed] = train(&context, rate, lab_seed(seed), losses);
        for (int epoch = 0; epoch < epochs; epoch++)
            log_curves(curves, seed, "loss rate", epoch + 1, losses[epoch], rate);
    }
}

static void judge(const char *norm, int kind, int with, lab_part part, const char *what)
{
    part.norm = norm, part.values = lab_quotients(last[kind], last[with]);
    lab_judge(part, "last loss, %s", what);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-(%d)x%d-10, ReLU, %d epochs", get_whole(WIDTH), get_whole(DEPTH),
             get_whole(EPOCHS));
    for (int kind = 0; kind < KINDS; kind++) measure(kind);
    judge("LayerNorm", ROW_SCALE, ROW_CENTRE, (lab_part){.side = LAB_BELOW, .threshold = 1},
          "scaling alone over centring alone, by the features");
    judge("LayerNorm", ROW_SCALE, ROW_BOTH,
          (lab_part){.side = LAB_WITHIN, .around = 1, .threshold = 0.25},
          "scaling alone over both, by the features");
    judge("BatchNorm", BATCH_SCALE, BATCH_BOTH, (lab_part){.side = LAB_ABOVE, .threshold = 1},
          "scaling alone over both, by the batch");
    judge("RMSNorm", ROW_SCALE, RMS, (lab_part){.side = LAB_BELOW, .threshold = 1.25},
          "without gamma over that with it");
    judge("LayerNorm", ROW_BOTH, LAYER, (lab_part){.side = LAB_BELOW, .threshold = 1.25},
          "without gamma and beta over that with them");
    return lab_end();
}
