/* The share of saturated tanh activations by norm and scale of the initial weights, at the start
 * and after training. */
#include "lab.h"

enum { WIDTH, DEPTH, EPOCHS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64, .quick = 32},
    [DEPTH] = {"depth", "hidden layers", .normal = 6, .quick = 3},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 8, .quick = 1},
    {0}};

static const lab_experiment experiment = {
    .id = "saturation",
    .source = "document 001; Ioffe & Szegedy 2015, section 1; Glorot & Bengio 2010",
    .claim = "without a norm activations saturate, where their gradient is nearly 0; norms prevent "
             "this",
    .method =
        "64 - (Linear, norm, tanh) x 6 - 10 learns the digits by gradient descent in batches of\n"
        "64, 8 epochs, each kind at its own best rate. Weights are drawn with 1/2, 1, 2, 4 and 8\n"
        "times Xavier's deviation, N(0, 1 / width). A value is saturated if |tanh| > 0.99, so\n"
        "its derivative is below 0.02. Measured: the saturated share of the hidden layers'\n"
        "values over all training images.\n",
    .rule =
        "with 4 times Xavier's deviation over 0.2 of the values are saturated without a norm, and "
        "below 0.05 with each norm, at the start and after training; and the network then learns "
        "better: its last training loss is below that without a norm",
    .seeds = 12,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, GAINS = 5, ASKED = 3, BATCH = 64 };
static const double gains[GAINS] = {0.5, 1, 2, 4, 8};

/* Returns a network with weight matrices from N(0, gain^2 / fan_in). */
static ng_module *make_network(const lab_norm *norm, double gain, uint64_t seed)
{
    ng_module *net = lab_network_of(norm, ng_tanh_new, lab_whole(WIDTH), lab_whole(DEPTH), seed);
    ng_rng rng = ng_rng_seeded(seed);
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        if (ng_rank(p.tensor) == 2)
            ng_fill_normal(p.tensor, 0, gain / sqrt((double)ng_dim(p.tensor, 1)), &rng);
    lab_goes_on();
    return net;
}

/* Returns the share of the hidden layers' values beyond 0.99, over all samples. */
static double saturated_share(const lab_norm *norm, ng_module *net, ng_tape *tape, ng_dataset *data)
{
    const bool was = ng_tape_set_recording(tape, false);
    ng_batch batch;
    double share = 0;
    ng_dataset_batch(data, tape, 0, ng_dataset_count(data), &batch);
    ng_tensor *x = batch.x, *limit = ng_full(tape, NG_F32, NG_SHAPE(1), 0.99);
    const int children = norm->make ? 3 : 2; /* per layer */
    for (int l = 0; l < lab_whole(DEPTH); l++) {
        x = lab_forward_part(net, l * children, (l + 1) * children, tape, x);
        ng_tensor *beyond = ng_greater(tape, ng_abs(tape, x), limit);
        share += ng_item(ng_mean(tape, ng_cast(tape, beyond, NG_F32))) / lab_whole(DEPTH);
    }
    ng_tape_set_recording(tape, was);
    ng_tape_reset(tape);
    lab_goes_on();
    return share;
}

typedef struct {
    double first, last, loss; /* shares at the start and after training; the last epoch's loss */
} outcome;

static outcome train(const lab_norm *norm, double gain, double rate, uint64_t seed)
{
    ng_dataset *data, *rest;
    lab_digits(seed, 0, &data, &rest);
    ng_module *net = make_network(norm, gain, seed);
    ng_optimizer *sgd = ng_sgd_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    outcome o = {saturated_share(norm, net, tape, data), 0, 0};
    for (int epoch = 0; epoch < lab_whole(EPOCHS); epoch++)
        o.loss = lab_train_epoch(net, sgd, tape, data, BATCH, (uint64_t)epoch);
    if (isnan(o.loss)) o.loss = HUGE_VAL;
    o.last = saturated_share(norm, net, tape, data);
    ng_tape_free(tape), ng_optimizer_free(sgd), ng_module_free(net);
    ng_dataset_free(data), ng_dataset_free(rest);
    return o;
}

typedef struct {
    const lab_norm *norm;
    double gain;
} kind;

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    const kind *k = context;
    return train(k->norm, k->gain, rate, seed).loss;
}

static double *first[NORMS][GAINS], *last[NORMS][GAINS], *loss[NORMS][GAINS];

static void measure(int norm, int gain, lab_curves *curves)
{
    kind k = {lab_norms[norm], gains[gain]};
    lab_progress(norm * GAINS + gain, NORMS * GAINS, "%s, weights times %g", k.norm->name, k.gain);
    const double rate = lab_best_rate(0.1, tuning_loss, &k);
    first[norm][gain] = lab_numbers(lab_seeds()), last[norm][gain] = lab_numbers(lab_seeds());
    loss[norm][gain] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        const outcome o = train(k.norm, k.gain, rate, lab_seed(seed));
        first[norm][gain][seed] = o.first, last[norm][gain][seed] = o.last;
        loss[norm][gain][seed] = o.loss;
        lab_log(curves, seed, "first last loss rate", k.gain, o.first, o.last, o.loss, rate);
    }
}

static void judge(int norm)
{
    const bool none = norm == 0;
    const char *name = none ? NULL : lab_norms[norm]->name, *suffix = none ? ", no norm" : "";
    const lab_side side = none ? LAB_ABOVE : LAB_BELOW;
    const double threshold = none ? 0.2 : 0.05;
    lab_judge((lab_part){name, first[norm][ASKED], .side = side, .threshold = threshold},
              "share of saturated values at the start, weights times %g%s", gains[ASKED], suffix);
    lab_judge((lab_part){name, last[norm][ASKED], .side = side, .threshold = threshold},
              "share of saturated values after training, weights times %g%s", gains[ASKED], suffix);
    if (!none)
        lab_judge((lab_part){name, lab_quotients(loss[norm][ASKED], loss[0][ASKED]),
                             .side = LAB_BELOW, .threshold = 1},
                  "last loss, own rates, weights times %g, as a share of no norm's", gains[ASKED]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-(%d)x%d-10, tanh, %d epochs", lab_whole(WIDTH), lab_whole(DEPTH),
             lab_whole(EPOCHS));
    for (int norm = 0; norm < NORMS; norm++) {
        lab_curves *curves = lab_curves_new("gain", "%s", lab_norms[norm]->name);
        for (int gain = 0; gain < GAINS; gain++) measure(norm, gain, curves);
    }
    for (int norm = 0; norm < NORMS; norm++) judge(norm);
    return lab_end();
}
