/* The effect of one outlying feature on LayerNorm's and RMSNorm's outputs of the other features, in
 * random rows. */
#include "lab.h"

enum { ROWS, WIDTH, OUTLIER };
static option sizes[] = {
    [ROWS] = {"rows", "random rows for each point", .normal = 128, .quick = 32},
    [WIDTH] = {"width", "features of the rows whose mean varies", .normal = 128},
    [OUTLIER] = {"outlier", "outlier of the rows whose mean varies, in deviations", .normal = 10},
    {0}};

static const lab_experiment outliers = {
    .id = "outliers",
    .source = "document 001",
    .claim =
        "RMSNorm is less sensitive to outliers than LayerNorm, since it does not subtract the mean",
    .method = "In a row of normal features one feature is moved a number of deviations away from "
              "the row's mean. Measured: the root mean square change of the other features' "
              "normalized values, relative to their deviation without the outlier; the mean over "
              "rows, half of them with the outlier above the mean, half below.",
    .rule = "less sensitive means by a tenth or more, seed by seed: RMSNorm's change is below 0.9 "
            "of LayerNorm's in rows of mean 0 (at each width, the median over outliers of 3 to "
            "1000 deviations) and in rows with a mean (of 1, 3 and 10 deviations)",
    .seeds = 21,
    .sizes = sizes};

enum { NORMS = 2, WIDTHS = 3, OUTLIERS = 13, MEANS = 11 };
static const lab_norm *const norms[NORMS] = {&lab_norms[LAB_LAYER], &lab_norms[LAB_RMS]};
static const double widths[WIDTHS] = {8, 128, 2048};
static const double means[MEANS] = {0, 0.5, 1, 1.5, 2, 3, 4, 5, 7, 10, 30};
static double outlier_at(int index) { return pow(10, index / 4.0); } /* 1 to 1000 */

/* ---- A row and its outlier ----------------------------------------------------------------- */

/* The outlier of each row of x (rows, n): mask (rows, n) is 1 at it; side (rows, 1) is 1 if it is
 * above the mean and -1 if below. */
typedef struct {
    ng_tensor *mask, *side;
} place;

static place draw_place(ng_tape *tape, int64_t rows, int64_t n, ng_rng *rng)
{
    const place at = {ng_zeros_new(NG_F32, NG_SHAPE(rows, n)),
                      ng_zeros_new(NG_F32, NG_SHAPE(rows, 1))};
    for (int64_t row = 0; row < rows; row++) {
        ng_set(at.mask, row * n + (int64_t)ng_rng_below(rng, n), 1);
        ng_set(at.side, row, row % 2 ? 1 : -1);
    }
    ng_tape_own(tape, at.mask), ng_tape_own(tape, at.side);
    return at;
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
    const int64_t rows = get_whole(ROWS);
    double change = 0;
    ng_rng rng = ng_rng_seeded(seed);
    ng_tensor *x = ng_normal_new(NG_F32, NG_SHAPE(rows, n), mean, 1, &rng);
    ng_module *layer = norm->make(n);
    ng_tape *tape = ng_tape_new();
    const place at = draw_place(tape, rows, n, &rng);
    ng_tensor *before = ng_forward(layer, tape, x);
    ng_tensor *after = ng_forward(layer, tape, with_outlier(tape, x, at, size));
    still_works();
    for (int64_t row = 0; row < rows; row++)
        change += change_of_row(ng_data_f32(before) + row * n, ng_data_f32(after) + row * n,
                                ng_data_f32(at.mask) + row * n, n) /
                  (double)rows;
    ng_tape_free(tape), ng_module_free(layer), ng_tensor_free(x);
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
    curve_set *curves = new_curves("x", "%s", block);
    for (int i = 0; i < count; i++) {
        const double x = c.x[i] = x_of(i);
        const double mean = means_vary ? x : 0, size = means_vary ? get_whole(OUTLIER) : x;
        for (int k = 0; k < NORMS; k++) {
            c.of[k][i] = lab_numbers(lab_seeds());
            for (int seed = 0; seed < lab_seeds(); seed++)
                c.of[k][i][seed] = change_in_rows(norms[k], width, mean, size, lab_seed(seed));
        }
        for (int seed = 0; seed < lab_seeds(); seed++)
            log_curves(curves, seed, "layer rms", x, c.of[0][i][seed], c.of[1][i][seed]);
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
        shares[seed] = lab_median(each, c->count);
    }
    return shares;
}

static void judge_rows(const changes *c, double from, double to, const char *name, double number)
{
    lab_judge(lab_norms[LAB_RMS].name, shares_of(c, from, to), lab_below(0.9),
              "change in rows of %s %g, as a share of LayerNorm's", name, number);
}

static double mean_at(int index) { return means[index]; }

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &outliers);
    lab_data("width %d and an outlier of %d deviations where the mean varies", get_whole(WIDTH),
             get_whole(OUTLIER));

    for (int i = 0; i < WIDTHS; i++) {
        char block[32];
        snprintf(block, sizeof block, "width %g", widths[i]);
        const changes c = measure_rows(block, OUTLIERS, outlier_at, (int64_t)widths[i], false);
        judge_rows(&c, 3, HUGE_VAL, "mean 0, width", widths[i]);
    }
    const changes c = measure_rows("mean", MEANS, mean_at, get_whole(WIDTH), true);
    for (double mean = 1; mean <= 10; mean = mean == 1 ? 3 : mean + 7)
        judge_rows(&c, mean, mean, "mean", mean);

    return lab_end();
}
