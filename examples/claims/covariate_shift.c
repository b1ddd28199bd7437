/* How the distribution of a hidden unit's inputs moves during training, by norm. */
#include "lab.h"
#include <stdio.h>

enum { WIDTH, EPOCHS };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 100, .quick = 32},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 40, .quick = 3},
    {0}};

static const lab_experiment experiment = {
    .id = "covariate_shift",
    .source = "documents 000, 001, 003 (4.1) and 004; Ioffe & Szegedy 2015, figure 1",
    .claim = "the distribution of a layer's inputs shifts as the layers before it learn, and "
             "normalization reduces that internal covariate shift",
    .method =
        "Ioffe & Szegedy's network, three hidden layers of 100 sigmoids, learns the digits by\n"
        "SGD in batches of 60. Each norm is compared with no norm at two rates: the best of six\n"
        "for no norm, and its own best (lowest training loss in the last epoch, median over\n"
        "three seeds that are not scored). After each epoch, over the validation images: the\n"
        "15th, 50th and 85th percentile of the input of each sigmoid in the last hidden layer,\n"
        "and the mean distance that these three have moved (median over the units). The drift is\n"
        "the sum of these distances. In addition, internal covariate shift as Santurkar et al.\n"
        "2018 define it: the change of the gradient of the last hidden layer's weights when the\n"
        "layers before it take a training step, relative to the gradient (mean of five batches\n"
        "per epoch, median over the epochs).\n",
    .rule =
        "from the same seed (same split) the drift, and the change of the gradient, are smaller "
        "with a norm than without at its best rate: the quotient is below 1, at that rate and at "
        "the norm's own rate",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 4, HIDDEN = 3, BATCH = 60, PROBES = 5, MOST_PARAMETERS = 32, RATES = 6 };
static const double rates[RATES] = {0.1, 0.3, 1, 3, 10, 30};
static const double percents[] = {15, 50, 85};
enum { PERCENTS = 3 };

/* Returns a Linear with weights four times as wide as for tanh, as sigmoids need. Glorot & Bengio
 * 2010. */
static ng_module *linear(int64_t in, int64_t out)
{
    return ng_linear_new(in, out, .init = NG_INIT_NORMAL,
                         .init_value = 4 * sqrt(2.0 / (double)(in + out)));
}

/* Returns (Linear, norm, sigmoid) x 3, Linear. */
static ng_module *network(const lab_norm *norm, uint64_t seed)
{
    const int64_t width = lab_whole(WIDTH);
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < HIDDEN; i++) {
        ng_sequential_add(net, linear(i == 0 ? 64 : width, width));
        if (norm->make) ng_sequential_add(net, norm->make(width));
        ng_sequential_add(net, ng_sigmoid_new());
    }
    ng_sequential_add(net, linear(width, 10));
    ng_module_init(net, seed);
    return net;
}

static int children_per_layer(const lab_norm *norm) { return norm->make ? 3 : 2; }

/* ---- The distribution of a unit's input --------------------------------------------------- */

/* Sets the percentiles (unit, PERCENTS) of the inputs of the last hidden layer's sigmoids. */
static void look_at_inputs(ng_module *net, const lab_norm *norm, ng_tape *tape, ng_dataset *data,
                           double *percentiles)
{
    ng_batch all;
    const bool was = ng_tape_set_recording(tape, false);
    ng_dataset_batch(data, tape, 0, ng_dataset_count(data), &all);
    const ng_tensor *inputs =
        lab_forward_part(net, 0, HIDDEN * children_per_layer(norm) - 1, tape, all.x);
    const int64_t width = lab_whole(WIDTH);
    double *of_unit = lab_numbers(all.size);
    for (int64_t unit = 0; unit < width && lab_goes_on(); unit++) {
        for (int64_t i = 0; i < all.size; i++) of_unit[i] = ng_get(inputs, i * width + unit);
        for (int p = 0; p < PERCENTS; p++)
            percentiles[unit * PERCENTS + p] = lab_percentile(of_unit, all.size, percents[p]);
    }
    ng_tape_set_recording(tape, was), ng_tape_reset(tape);
}

/* Returns the mean distance between a unit's percentiles in two measurements. */
static double move_of(const double *before, const double *after, int unit)
{
    double sum = 0;
    for (int p = unit * PERCENTS; p < (unit + 1) * PERCENTS; p++) sum += fabs(after[p] - before[p]);
    return sum / (double)PERCENTS;
}

/* ---- The gradient's change ---------------------------------------------------------------- */

/* Returns the relative change of the gradient of the last hidden layer's weight when all parameters
 * before it take a step of SGD on the batch: |G' - G| / |G|, both on that batch. */
static double change_of_gradient(ng_module *net, const lab_norm *norm, double rate, ng_tape *tape,
                                 const ng_batch *batch)
{
    ng_tensor *parameters[MOST_PARAMETERS], *gradients[MOST_PARAMETERS], *old[MOST_PARAMETERS];
    ng_named_tensor p;
    char last[32];
    int count = 0;
    snprintf(last, sizeof last, "%d.weight", (HIDDEN - 1) * children_per_layer(norm));
    ng_tensor *weight = ng_module_find(net, last);
    while (ng_module_parameter(net, count, &p) && p.tensor != weight)
        parameters[count++] = p.tensor;
    parameters[count] = weight;

    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch->x), batch->y);
    ng_gradients(tape, &loss, 1, parameters, count + 1, gradients);
    ng_tensor *before = gradients[count], *after;
    lab_goes_on();
    for (int k = 0; k < count; k++) {
        old[k] = ng_copy_new(parameters[k], NG_F32);
        for (int64_t i = 0; i < ng_size(old[k]); i++)
            ng_set(parameters[k], i, ng_get(old[k], i) - rate * ng_get(gradients[k], i));
    }
    loss = ng_cross_entropy(tape, ng_forward(net, tape, batch->x), batch->y);
    after = ng_gradient(tape, loss, weight);
    lab_goes_on();
    for (int k = 0; k < count; k++) ng_copy_values(parameters[k], old[k]), ng_tensor_free(old[k]);

    double change = 0, size = 0;
    for (int64_t i = 0; i < ng_size(before); i++) {
        change += pow(ng_get(after, i) - ng_get(before, i), 2);
        size += pow(ng_get(before, i), 2);
    }
    ng_tape_reset(tape);
    return sqrt(change / size);
}

/* ---- The runs ----------------------------------------------------------------------------- */

static int epochs;
static int64_t width;

/* The loss of the last epoch with a norm, at each rate: the median over the tuning seeds. */
static double losses[NORMS][RATES];

static double last_loss(int norm, int rate, uint64_t seed, ng_tape *tape)
{
    ng_dataset *train, *validate;
    double loss = 0;
    lab_digits(seed, 0, &train, &validate);
    ng_module *net = network(lab_norms[norm], seed);
    ng_optimizer *sgd = ng_sgd_new(net, .lr = rates[rate]);
    for (int epoch = 0; epoch < epochs && isfinite(loss); epoch++)
        loss = lab_train_epoch(net, sgd, tape, train, BATCH, (uint64_t)epoch);
    ng_optimizer_free(sgd), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
    return isfinite(loss) ? loss : (double)INFINITY;
}

static void try_rates(int norm, ng_tape *tape)
{
    double of_seed[LAB_TUNING_SEEDS];
    for (int rate = 0; rate < RATES; rate++) {
        lab_progress(norm * RATES + rate, 2 * NORMS * RATES, "%s, rate %g", lab_norms[norm]->name,
                     rates[rate]);
        for (int i = 0; i < lab_tuning_seeds(); i++)
            of_seed[i] = last_loss(norm, rate, lab_tuning_seed(i), tape);
        losses[norm][rate] = lab_percentile(of_seed, lab_tuning_seeds(), 50);
    }
}

static double best_rate(int norm)
{
    int best = 0;
    for (int i = 1; i < RATES; i++)
        if (losses[norm][i] < losses[norm][best]) best = i;
    return rates[best];
}

/* The measurements of one norm at one rate. */
typedef struct {
    const lab_norm *norm;
    double rate;
    double *percentiles; /* (epochs + 1, width, PERCENTS), of the first seed */
    double *drift;       /* (seeds): of all epochs */
    double *changes;     /* (seeds): the median over the epochs */
    lab_curves *curves;
} history;

static void run(history *h, int seed, ng_tape *tape)
{
    ng_dataset *train, *validate;
    ng_batch batch;
    lab_digits(lab_seed(seed), 0, &train, &validate);
    ng_module *net = network(h->norm, lab_seed(seed));
    ng_optimizer *sgd = ng_sgd_new(net, .lr = h->rate);
    const int64_t look = width * PERCENTS;
    double *percentiles = lab_numbers((epochs + 1) * look);
    double *moves = lab_numbers(width), *changes = lab_numbers(epochs);
    look_at_inputs(net, h->norm, tape, validate, percentiles);
    for (int epoch = 0; epoch < epochs; epoch++) {
        ng_dataset_shuffle(train, (uint64_t)epoch);
        for (int i = 0; i < PROBES && ng_dataset_batch(train, tape, i, BATCH, &batch); i++)
            changes[epoch] +=
                change_of_gradient(net, h->norm, h->rate, tape, &batch) / (double)PROBES;
        const double loss = lab_train_epoch(net, sgd, tape, train, BATCH, (uint64_t)epoch);
        const double *before = percentiles + epoch * look;
        look_at_inputs(net, h->norm, tape, validate, percentiles + (epoch + 1) * look);
        for (int unit = 0; unit < width; unit++) moves[unit] = move_of(before, before + look, unit);
        h->drift[seed] += lab_percentile(moves, width, 50);
        lab_log(h->curves, seed, "drift change loss rate", epoch + 1, h->drift[seed],
                changes[epoch], loss, h->rate);
    }
    h->changes[seed] = lab_percentile(changes, epochs, 50);
    if (seed == 0) h->percentiles = percentiles;
    ng_optimizer_free(sgd), ng_module_free(net);
    ng_dataset_free(train), ng_dataset_free(validate);
}

static history run_all(int norm, double rate, const char *suffix, double done, ng_tape *tape)
{
    history h = {.norm = lab_norms[norm], .rate = rate};
    h.drift = lab_numbers(lab_seeds()), h.changes = lab_numbers(lab_seeds());
    h.curves = lab_curves_new("epoch", "%s%s", lab_norms[norm]->name, suffix);
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
        lab_progress(done + (double)seed / lab_seeds(), 4 * NORMS, "%s, rate %g, seed %d",
                     lab_norms[norm]->name, rate, seed);
        run(&h, seed, tape);
    }
    return h;
}

/* ---- Results ------------------------------------------------------------------------------ */

/* Returns the unit whose drift is the median, as an example for the figure. */
static int typical_unit(const history *h)
{
    const int64_t look = width * PERCENTS;
    double *ways = lab_numbers(width);
    int typical = 0;
    for (int unit = 0; unit < width; unit++)
        for (int epoch = 0; epoch < epochs; epoch++)
            ways[unit] +=
                move_of(h->percentiles + epoch * look, h->percentiles + (epoch + 1) * look, unit);
    const double middle = lab_percentile(ways, width, 50);
    for (int unit = 0; unit < width; unit++)
        if (fabs(ways[unit] - middle) < fabs(ways[typical] - middle)) typical = unit;
    return typical;
}

static void write_unit(const history *h, const char *suffix)
{
    char unit_name[64];
    const int unit = typical_unit(h);
    snprintf(unit_name, sizeof unit_name, "a unit, %s%s", h->norm->name, suffix);
    lab_block(unit_name, "epoch p15 p50 p85");
    for (int epoch = 0; epoch <= epochs; epoch++) {
        const double *p = h->percentiles + (epoch * width + unit) * PERCENTS;
        lab_row(epoch, p[0], p[1], p[2]);
    }
}

static void write_losses(void)
{
    lab_block("rates", "rate no_norm BatchNorm LayerNorm RMSNorm");
    for (int i = 0; i < RATES; i++)
        lab_row(rates[i], losses[0][i], losses[1][i], losses[2][i], losses[3][i]);
}

/* Judges a norm's drift and change over those without a norm, seed by seed. */
static void judge(const history *with, const history *without, const char *at)
{
    const double *drifts = lab_quotients(with->drift, without->drift);
    const double *changes = lab_quotients(with->changes, without->changes);
    lab_judge((lab_part){with->norm->name, drifts, .side = LAB_BELOW, .threshold = 1},
              "drift of a unit's inputs, %s, as a share of no norm's", at);
    lab_judge((lab_part){with->norm->name, changes, .side = LAB_BELOW, .threshold = 1},
              "change of the gradient in a step, %s, as a share of no norm's", at);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    epochs = lab_whole(EPOCHS), width = lab_whole(WIDTH);
    ng_tape *tape = ng_tape_new();
    history common[NORMS], own[NORMS];
    static const char own_rate[] = ", own rate";
    for (int norm = 0; norm < NORMS; norm++) try_rates(norm, tape);
    for (int norm = 0; norm < NORMS; norm++)
        common[norm] = run_all(norm, best_rate(0), "", 2 * NORMS + norm, tape);
    for (int norm = 1; norm < NORMS; norm++)
        own[norm] = run_all(norm, best_rate(norm), own_rate, 3 * NORMS + norm, tape);
    ng_tape_free(tape);

    lab_data("64-%d-%d-%d-10, sigmoids, SGD at %g", (int)width, (int)width, (int)width,
             best_rate(0));
    write_losses();
    for (int norm = 0; norm < NORMS; norm++) write_unit(&common[norm], "");
    for (int norm = 1; norm < NORMS; norm++) {
        write_unit(&own[norm], own_rate);
        judge(&common[norm], &common[0], "at the rate best without");
        judge(&own[norm], &common[0], "own rate");
    }
    return lab_end();
}
