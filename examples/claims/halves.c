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
    .claim = "over the features scaling is what a norm does, and neither the mean nor gamma and "
             "beta are needed; over the batch scaling alone is not enough",
    .method = "64 - (Linear, half of a norm, ReLU) x 8 - 10 learns the digits by gradient descent "
              "in batches of 64, 6 epochs, each kind at its own best rate. Over the batch "
              "(BatchNorm) or over the features (LayerNorm): subtract the mean, divide by the root "
              "mean square, or both, without gamma and beta; and RMSNorm and LayerNorm with them. "
              "Compared: the training loss of the last epoch from the same seed.",
    .rule = "over the features the loss with scaling alone is below that with centring alone, and "
            "within a quarter of that with both; over the batch it is above that with both; "
            "without gamma and beta the loss is less than a quarter above that with them",
    .seeds = 31,
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

/* A norm's half NAME, y of x, and its maker make_NAME. */
#define HALF(name, y)                                                                              \
    static ng_tensor *name(ng_tape *tape, ng_tensor *x) { return y; }                              \
    static ng_module *make_##name(int64_t features)                                                \
    {                                                                                              \
        (void)features;                                                                            \
        return ng_function_new(#name, name);                                                       \
    }
HALF(batch_centre, centred(tape, x, 0))
HALF(batch_scale, scaled(tape, x, 0))
HALF(batch_both, scaled(tape, centred(tape, x, 0), 0))
HALF(row_centre, centred(tape, x, 1))
HALF(row_scale, scaled(tape, x, 1))
HALF(row_both, scaled(tape, centred(tape, x, 1), 1))

enum { NONE, BATCH_CENTRE, BATCH_SCALE, BATCH_BOTH };
enum { ROW_CENTRE = BATCH_BOTH + 1, ROW_SCALE, ROW_BOTH, RMS, LAYER, KINDS };
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

typedef struct {
    const lab_norm *kind;
    double *losses; /* set to the loss of every epoch, unless NULL */
} training;

/* Trains and returns the loss of the last epoch. */
static double train(void *context, double rate, uint64_t seed)
{
    const training *t = context;
    lab_run r = lab_begin_run(
        lab_network(t->kind, ng_relu_new, get_whole(WIDTH), get_whole(DEPTH), seed), seed);
    lab_he_weights(r.net, seed);
    r.optimizer = ng_sgd_new(r.net, .lr = rate);
    double loss = 0;
    for (int epoch = 0; epoch < get_whole(EPOCHS); epoch++) {
        loss = lab_epoch(&r, 64, (uint64_t)epoch);
        if (isnan(loss)) loss = HUGE_VAL;
        if (t->losses) t->losses[epoch] = loss;
    }
    lab_end_run(&r);
    return loss;
}

static double *last[KINDS];

static void measure(int kind)
{
    const int epochs = get_whole(EPOCHS);
    training t = {&kinds[kind], NULL};
    const double rate = lab_best_rate(0.1, train, &t);
    double *losses = t.losses = lab_numbers(epochs);
    curve_set *curves = new_curves("epoch", "%s", kinds[kind].name);
    last[kind] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        last[kind][seed] = train(&t, rate, lab_seed(seed));
        for (int epoch = 0; epoch < epochs; epoch++)
            log_curves(curves, seed, "loss rate", epoch + 1, losses[epoch], rate);
    }
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-(%d)x%d-10, ReLU, %d epochs", get_whole(WIDTH), get_whole(DEPTH),
             get_whole(EPOCHS));
    for (int kind = 0; kind < KINDS; kind++) measure(kind);
    lab_judge("LayerNorm", lab_quotients(last[ROW_SCALE], last[ROW_CENTRE]), lab_below(1),
              "last loss, scaling alone over centring alone, by the features");
    lab_judge("LayerNorm", lab_quotients(last[ROW_SCALE], last[ROW_BOTH]), lab_near(1, 0.25),
              "last loss, scaling alone over both, by the features");
    lab_judge("BatchNorm", lab_quotients(last[BATCH_SCALE], last[BATCH_BOTH]), lab_above(1),
              "last loss, scaling alone over both, by the batch");
    lab_judge("RMSNorm", lab_quotients(last[ROW_SCALE], last[RMS]), lab_below(1.25),
              "last loss, without gamma over that with it");
    lab_judge("LayerNorm", lab_quotients(last[ROW_BOTH], last[LAYER]), lab_below(1.25),
              "last loss, without gamma and beta over that with them");
    return lab_end();
}
