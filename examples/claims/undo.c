/* Gamma and beta as the inverse of a norm: the best approximation of the input, feature by feature;
 * and the change made by a norm with initial gamma and beta. */
#include "lab.h"

enum { WIDTH, IMAGES };
static lab_size sizes[] = {
    [WIDTH] = {"width", "normalized features", .normal = 64},
    [IMAGES] = {"images", "rows", .normal = 360, .quick = 60, .most = LAB_DIGITS},
    {0}};

static const lab_experiment experiment = {
    .id = "undo",
    .source = "document 000; Ioffe & Szegedy 2015, section 3; document 003, section 4.3",
    .claim =
        "gamma and beta can undo the normalization where that is best; and initially, with gamma "
        "1 and beta 0, normalization is the identity",
    .method =
        "x = W d for 360 digits d and a random W of 64 x 64; xhat = norm(x) with eps = 0. For\n"
        "each feature: the gamma and beta with the least squared error of gamma xhat + beta\n"
        "against x (here RMSNorm has a beta too), and the residual, relative to x's variance.\n"
        "The initial change is |norm(x) - x| / |x|; that of a second norm is |norm(norm(x)) -\n"
        "norm(x)| / |norm(x)|.\n",
    .rule = "the residual is below 1 %; the initial change is below 1 %; and, as a control, the "
            "change by a second norm is below 1e-10",
    .dtype = "float64",
    .seeds = 12,
    .quick_seeds = 1,
    .sizes = sizes};

enum { NORMS = 3, SHOWN = 0 };
static const char *const names[NORMS] = {"BatchNorm", "LayerNorm", "RMSNorm"};

static ng_tensor *normalized(int norm, ng_tape *tape, ng_tensor *x)
{
    switch (norm) {
    case 0:
        return ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true,
                             .eps = NG_ZERO);
    case 1: return ng_layer_norm(tape, x, NG_NONE, NG_NONE, NG_ZERO);
    default: return ng_rms_norm(tape, x, NG_NONE, NG_ZERO);
    }
}

/* Returns |a - b| / |b|. */
static double change(ng_tape *tape, ng_tensor *a, ng_tensor *b)
{
    return ng_item(ng_norm(tape, ng_sub(tape, a, b))) / ng_item(ng_norm(tape, b));
}

/* Returns column j of a matrix. */
static double *column_of(const ng_tensor *x, int64_t j)
{
    double *values = lab_numbers(ng_dim(x, 0));
    for (int64_t i = 0; i < ng_dim(x, 0); i++) values[i] = ng_at(x, i, j);
    return values;
}

static double variance_of(const double *values, int64_t count)
{
    double mean = 0, sum = 0;
    for (int64_t i = 0; i < count; i++) mean += values[i] / (double)count;
    for (int64_t i = 0; i < count; i++) sum += (values[i] - mean) * (values[i] - mean);
    return sum / (double)count;
}

/* Replaces x by the residual of the best line through the normalized values. */
static void take_residual(const double *xhat, double *x, int64_t count)
{
    const lab_line line = lab_fit(xhat, x, (int)count);
    for (int64_t i = 0; i < count; i++) x[i] -= line.slope * xhat[i] + line.offset;
}

typedef struct {
    double left, start, again;
} finding;

static finding measure(int norm, uint64_t seed, bool shown)
{
    ng_dataset *data, *rest;
    ng_rng rng = ng_rng_seeded(seed);
    lab_digits(seed, lab_whole(IMAGES), &data, &rest);
    ng_tape *tape = ng_tape_new();
    ng_tensor *weights = ng_normal_new(NG_F64, NG_SHAPE(64, lab_whole(WIDTH)), 0, 0.25, &rng);
    ng_tensor *digits = ng_copy_new(ng_dataset_x(data), NG_F64);
    ng_tensor *x = ng_matmul(tape, digits, weights);
    ng_tensor *xhat = normalized(norm, tape, x);
    finding f = {.start = change(tape, xhat, x),
                 .again = change(tape, normalized(norm, tape, xhat), xhat)};
    lab_goes_on();

    double left = 0, whole = 0;
    for (int64_t j = 0; j < ng_dim(x, 1); j++) {
        double *before = column_of(x, j), *after = column_of(xhat, j);
        const int64_t count = ng_dim(x, 0);
        whole += variance_of(before, count);
        take_residual(after, before, count);
        left += variance_of(before, count);
        for (int64_t i = 0; i < count && shown && j == SHOWN; i++)
            lab_row(after[i], ng_at(x, i, j), ng_at(x, i, j) - before[i]);
    }
    f.left = left / whole;
    ng_tensor_free(weights), ng_tensor_free(digits), ng_tape_free(tape);
    ng_dataset_free(data), ng_dataset_free(rest);
    return f;
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("%d digits times a random matrix, %d features", lab_whole(IMAGES), lab_whole(WIDTH));
    for (int norm = 0; norm < NORMS; norm++) {
        double *left = lab_numbers(lab_seeds()), *start = lab_numbers(lab_seeds());
        double *again = lab_numbers(lab_seeds());
        lab_block(names[norm], "normalized x undone");
        for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
            lab_progress(norm * lab_seeds() + seed, NORMS * lab_seeds(), "%s, seed %d", names[norm],
                         seed + 1);
            const finding f = measure(norm, lab_seed(seed), seed == 0);
            left[seed] = f.left, start[seed] = f.start, again[seed] = f.again;
        }
        char name[64];
        snprintf(name, sizeof name, "%s, left", names[norm]);
        lab_block(name, "seed left start");
        for (int seed = 0; seed < lab_seeds(); seed++) lab_row(seed, left[seed], start[seed]);
        lab_judge((lab_part){names[norm], left, .side = LAB_BELOW, .threshold = 0.01},
                  "variance that the best gamma and beta leave");
        lab_judge((lab_part){names[norm], start, .side = LAB_BELOW, .threshold = 0.01},
                  "change at the start, gamma 1 and beta 0");
        lab_judge((lab_part){names[norm], again, .side = LAB_BELOW, .threshold = 1e-10},
                  "change of a second time (the contrast)");
    }
    return lab_end();
}
