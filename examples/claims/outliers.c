/* The effect of one outlying feature on LayerNorm's and RMSNorm's outputs of the other features, in
 * random rows and in a trained network. */
#include "lab.h"

enum { ROWS, WIDTH, OUTLIER, HIDDEN, EPOCHS };
static lab_size sizes[] = {
    [ROWS] = {"rows", "random rows for each point", .normal = 128, .quick = 32},
    [WIDTH] = {"width", "features of the rows whose mean varies", .normal = 128},
    [OUTLIER] = {"outlier", "outlier of the rows whose mean varies, in deviations", .normal = 10},
    [HIDDEN] = {"hidden", "features of the network's two hidden layers", .normal = 64},
    [EPOCHS] = {"epochs", "passes of the network over its data", .normal = 15, .quick = 2},
    {0}};

static const lab_experiment outliers = {
    .id = "outliers",
    .source = "document 001",
    .claim = "RMSNorm is less sensitive to outliers than LayerNorm, since it does not subtract the "
             "mean",
    .method =
        "In a row of normal features one feature is moved a number of deviations away from the\n"
        "row's mean. Measured: the root mean square change of the other features' normalized\n"
        "values, relative to their deviation without the outlier; the mean over rows, half of\n"
        "them with the outlier above the mean, half below. Then a feature is moved in each row\n"
        "of both hidden layers of a trained network; its own normalized value is restored, so\n"
        "that it acts only on the others. LayerNorm has no beta here, so the norms differ only\n"
        "in the mean. Its network is also run with the means as they were without the outlier.\n"
        "Both networks share one learning rate.\n",
    .rule =
        "less sensitive means by a tenth or more, seed by seed: RMSNorm's change is below 0.9 of "
        "LayerNorm's in rows of mean 0 (at each width, the median over outliers of 3 to 1000 "
        "deviations) and in rows with a mean (of 1, 3 and 10 deviations), and so is its network's "
        "loss of accuracy (the mean over outliers of 1 to 1000 deviations); the mean is the "
        "reason if LayerNorm with the old mean loses below 0.9 of what it loses",
    .seeds = 41,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 2, WIDTHS = 5, OUTLIERS = 13, MEANS = 11, LAYERS = 2 };
static ng_module *make_centred(int64_t n) { return ng_layer_norm_new(n, .no_bias = true); }
static const lab_norm layer_norm = {"layer", "LayerNorm", make_centred};
static const lab_norm *const norms[NORMS] = {&layer_norm, &lab_rms_norm};
static const double widths[WIDTHS] = {8, 32, 128, 512, 2048};
static const double means[MEANS] = {0, 0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 30};
static double outlier_at(int index) { return pow(10, index / 4.0); } /* 1 to 1000 */

/* ---- A row and its outlier ----------------------------------------------------------------- */

/* The outlier of each row of x (rows, n): mask (rows, n) is 1 at it; side (rows, 1) is 1 if it is
 * above the mean and -1 if below. */
typedef struct {
    ng_tensor *mask, *side;
} place;

static place place_new(int64_t rows, int64_t n, ng_rng *rng)
{
    const place at = {ng_zeros_new(NG_F32, NG_SHAPE(rows, n)),
                      ng_zeros_new(NG_F32, NG_SHAPE(rows, 1))};
    for (int64_t row = 0; row < rows; row++) {
        ng_set(at.mask, row * n + (int64_t)ng_rng_below(rng, n), 1);
        ng_set(at.side, row, row % 2 ? 1 : -1);
    }
    return at;
}

static void place_free(place at)
{
    ng_tensor_free(at.mask);
    ng_tensor_free(at.side);
}

/* Returns x with one feature of each row replaced by mean + side * size * deviation. */
static ng_tensor *with_outlier(ng_tape *tape, ng_tensor *x, place at, double size)
{
    ng_tensor *mean = ng_mean(tape, x, .axes = NG_AXES(1), .keepdim = true);
    ng_tensor *variance = ng_variance(tape, x, .axes = NG_AXES(1), .keepdim = true);
    ng_tensor *far = ng_mul(tape, at.side, ng_mul_scalar(tape, ng_sqrt(tape, variance), size));
    return ng_where(tape, at.mask, ng_add(tape, mean, far), x);
}

/* ---- Drawn rows ---------------------------------------------------------------------------- */

/* Returns the change of the features other than the outlier. */
static double change_of_row(const float *before, const float *after, const float *mask, int64_t n)
{
    double change = 0, mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++)
        if (mask[i] == 0) mean += (double)before[i] / (double)(n - 1);
    for (int64_t i = 0; i < n; i++) {
        if (mask[i] != 0) continue;
        change += pow((double)after[i] - (double)before[i], 2);
        variance += pow((double)before[i] - mean, 2);
    }
    return sqrt(change / variance);
}

/* Returns the mean change over random rows of n features with this mean and deviation 1. */
static double change_in_rows(const lab_norm *norm, int64_t n, double mean, double size,
                             uint64_t seed)
{
    const int64_t rows = lab_whole(ROWS);
    double change = 0;
    ng_rng rng = ng_rng_seeded(seed);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(rows, n), mean, 1, &rng);
    const place at = place_new(rows, n, &rng);
    ng_module *layer = norm->make(n);
    ng_tape *tape = ng_tape_new();
    ng_tensor *before = ng_forward(layer, tape, x);
    ng_tensor *after = ng_forward(layer, tape, with_outlier(tape, x, at, size));
    lab_goes_on();
    for (int64_t row = 0; row < rows; row++)
        change += change_of_row(ng_data_f32(before) + row * n, ng_data_f32(after) + row * n,
                                ng_data_f32(at.mask) + row * n, n) /
                  (double)rows;
    ng_tape_free(tape), ng_module_free(layer), ng_tensor_free(x), place_free(at);
    return change;
}

/* LayerNorm's and RMSNorm's change by x, the outlier's size or the row's mean, and by seed. */
typedef struct {
    double x[MEANS > OUTLIERS ? MEANS : OUTLIERS];
    double *of[NORMS][MEANS > OUTLIERS ? MEANS : OUTLIERS];
    int count;
} changes;

/* Measures the changes, and logs them as a block. */
static changes measure_rows(const char *block, int count, double (*x_of)(int), int64_t width,
                            bool means_vary)
{
    changes c = {.count = count};
    lab_curves *curves = lab_curves_new("x", "%s", block);
    for (int i = 0; i < count; i++) {
        const double x = c.x[i] = x_of(i);
        const double mean = means_vary ? x : 0, size = means_vary ? lab_whole(OUTLIER) : x;
        for (int k = 0; k < NORMS; k++) {
            c.of[k][i] = lab_numbers(lab_seeds());
            for (int seed = 0; seed < lab_seeds(); seed++)
                c.of[k][i][seed] = change_in_rows(norms[k], width, mean, size, lab_seed(seed));
        }
        for (int seed = 0; seed < lab_seeds(); seed++)
            lab_log(curves, seed, "layer rms", x, c.of[0][i][seed], c.of[1][i][seed]);
    }
    return c;
}

/* Returns RMSNorm's change over LayerNorm's by seed: the median over x from `from` to `to`. */
static const double *shares_of(const changes *c, double from, double to)
{
    double *shares = lab_numbers(lab_seeds()), *each = lab_numbers(c->count);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        for (int i = 0; i < c->count; i++)
            each[i] = c->x[i] >= from && c->x[i] <= to ? c->of[1][i][seed] / c->of[0][i][seed]
                                                       : (double)NAN;
        shares[seed] = lab_percentile(each, c->count, 50);
    }
    return shares;
}

static void judge_rows(const changes *c, double from, double to, const char *name, double number)
{
    const lab_part part = {lab_rms_norm.name, shares_of(c, from, to), .side = LAB_BELOW,
                           .threshold = 0.9};
    lab_judge(part, "change in rows of %s %g, as a share of LayerNorm's", name, number);
}

static double mean_at(int index) { return means[index]; }

/* ---- A trained network --------------------------------------------------------------------- */

static ng_module *trained(const lab_norm *norm, ng_dataset *train, uint64_t seed)
{
    ng_module *net = lab_network(norm, lab_whole(HIDDEN), LAYERS, seed);
    ng_optimizer *adam = ng_adam_new(net, .lr = 2e-3);
    ng_tape *tape = ng_tape_new();
    for (int epoch = 0; epoch < lab_whole(EPOCHS) && lab_goes_on(); epoch++)
        lab_train_epoch(net, adam, tape, train, 64, (uint64_t)epoch);
    ng_tape_free(tape), ng_optimizer_free(adam);
    ng_eval(net);
    return net;
}

/* The variants: both networks, and LayerNorm's with the rows' means as they were without the
 * outlier, to measure the effect of the deviation alone. */
enum { LAYER, RMS, LAYER_OLD_MEAN, VARIANTS };

/* Returns the norm of x with an outlier. */
static ng_tensor *disturbed(ng_module *norm, ng_tape *tape, ng_tensor *x, place at, double size,
                            int variant)
{
    ng_tensor *far = with_outlier(tape, x, at, size), *y = ng_forward(norm, tape, far);
    if (variant != LAYER_OLD_MEAN) return y;
    ng_tensor *shift = ng_sub(tape, ng_mean(tape, far, .axes = NG_AXES(1), .keepdim = true),
                              ng_mean(tape, x, .axes = NG_AXES(1), .keepdim = true));
    ng_tensor *variance = ng_variance(tape, far, .axes = NG_AXES(1), .keepdim = true);
    ng_tensor *gamma = ng_module_find(norm, "weight");
    return ng_add(tape, y, ng_mul(tape, ng_div(tape, shift, ng_sqrt(tape, variance)), gamma));
}

/* Returns the accuracy when every norm reads rows with an outlier (0: none). The outlying feature
 * itself is passed on with its original value. */
static double accuracy_with(ng_module *net, ng_dataset *data, double size, int variant,
                            uint64_t seed)
{
    const int64_t count = ng_dataset_count(data);
    double right = 0;
    ng_rng rng = ng_rng_seeded(seed);
    ng_tape *tape = ng_tape_new();
    ng_batch all;
    ng_tape_set_recording(tape, false);
    ng_dataset_batch(data, tape, 0, count, &all);
    ng_tensor *x = all.x;
    for (int i = 0; ng_module_child(net, i); i++) {
        ng_module *layer = ng_module_child(net, i);
        ng_tensor *y = ng_forward(layer, tape, x);
        if (i % 3 == 1 && size > 0) { /* Linear, norm, ReLU, Linear, norm... */
            const place at = place_new(count, lab_whole(HIDDEN), &rng);
            y = ng_where(tape, at.mask, y, disturbed(layer, tape, x, at, size, variant));
            place_free(at);
        }
        x = y;
    }
    const ng_tensor *guess = ng_argmax(tape, x);
    for (int64_t k = 0; k < count && lab_goes_on(); k++)
        right += ng_get(guess, k) == ng_get(all.y, k);
    ng_tape_free(tape);
    return right / (double)count;
}

/* Writes the block of accuracies and sets `lost` by variant and seed: the accuracy lost, averaged
 * over the sizes of the outlier. */
static void measure_network(double *lost[VARIANTS])
{
    static const char *const series[VARIANTS] = {"layer", "rms", "old_mean"};
    lab_curves *curves = lab_curves_new("x", "network");
    for (int seed = 0; seed < lab_seeds(); seed++) {
        ng_dataset *train, *validate;
        lab_digits(lab_seed(seed), 0, &train, &validate);
        lab_progress(0.2 + 0.8 * seed / lab_seeds(), 1, "networks, seed %d", seed);
        ng_module *nets[] = {trained(norms[LAYER], train, lab_seed(seed)),
                             trained(norms[RMS], train, lab_seed(seed))};
        for (int k = 0; k < VARIANTS; k++) {
            double first = 0;
            for (int i = 0; i <= OUTLIERS; i++) {
                const double size = i ? outlier_at(i - 1) : 0;
                const double accuracy =
                    accuracy_with(nets[k == RMS], validate, size, k, lab_seed(seed));
                if (i == 0) first = accuracy;
                lost[k][seed] += (first - accuracy) / (double)OUTLIERS;
                lab_log(curves, seed, series[k], size, accuracy);
            }
        }
        ng_module_free(nets[LAYER]), ng_module_free(nets[RMS]);
        ng_dataset_free(train), ng_dataset_free(validate);
    }
}

static void judge_network(double *lost[VARIANTS], int variant, const char *norm, const char *name)
{
    lab_judge((lab_part){norm, lab_quotients(lost[variant], lost[LAYER]), .side = LAB_BELOW,
                         .threshold = 0.9},
              "%s, as a share of LayerNorm's", name);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &outliers);
    lab_data("width %d and an outlier of %d deviations where the mean varies; network "
             "64-%d-%d-10, Adam at 0.002, %d epochs",
             lab_whole(WIDTH), lab_whole(OUTLIER), lab_whole(HIDDEN), lab_whole(HIDDEN),
             lab_whole(EPOCHS));

    for (int i = 0; i < WIDTHS; i++) {
        char block[32];
        snprintf(block, sizeof block, "width %g", widths[i]);
        lab_progress(0.2 * i / (double)WIDTHS, 1, "rows of width %g", widths[i]);
        const changes c = measure_rows(block, OUTLIERS, outlier_at, (int64_t)widths[i], false);
        judge_rows(&c, 3, HUGE_VAL, "mean 0, width", widths[i]);
    }
    const changes c = measure_rows("mean", MEANS, mean_at, lab_whole(WIDTH), true);
    for (double mean = 1; mean <= 10; mean = mean == 1 ? 3 : mean + 7)
        judge_rows(&c, mean, mean, "mean", mean);

    double *lost[VARIANTS];
    for (int k = 0; k < VARIANTS; k++) lost[k] = lab_numbers(lab_seeds());
    measure_network(lost);
    judge_network(lost, RMS, lab_rms_norm.name, "accuracy that a network loses");
    judge_network(lost, LAYER_OLD_MEAN, layer_norm.name, "accuracy lost with the old mean");
    return lab_end();
}
