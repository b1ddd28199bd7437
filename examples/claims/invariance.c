/* The changes of weights and data that do not change the output of norm(x w^T), compared with a
 * published table. */
#include "lab.h"
#include <stdio.h>

enum { CASES, IN, OUT };
static lab_size sizes[] = {
    [CASES] = {"cases", "cases in the dataset", .normal = 64},
    [IN] = {"in", "features of a case", .normal = 32},
    [OUT] = {"units", "units of the layer, a multiple of 4", .normal = 32, .multiple = 4},
    {0}};

static const lab_experiment experiment = {
    .id = "invariance",
    .source = "Zhang & Sennrich 2019, table 1; Ba, Kiros & Hinton 2016, table 1",
    .claim =
        "each norm is invariant to a certain set of changes of weights and data: thirty entries "
        "of a table",
    .method =
        "Weights w and cases x are drawn from N(0, 1); the layer computes norm(x w^T), with eps\n"
        "= 0, in double. Then the weight matrix, one row of it, all cases or one case are\n"
        "multiplied by 3, or a random vector is added to every row of the weights or to every\n"
        "case. Measured: the largest change of an output, relative to the largest output. In\n"
        "addition, in float with the default eps of the library's layers: the same for a\n"
        "multiplied weight matrix, with activations of many sizes.\n",
    .rule =
        "for each norm the largest change among the entries where the table states invariance is "
        "below 1e-10, and the smallest change among the others is above 1e-3",
    .seeds = 100,
    .quick_seeds = 5,
    .sizes = sizes,
    .dtype = "float64"};

/* ---- The norms ---------------------------------------------------------------------------- */

typedef struct {
    ng_tensor *x, *w; /* (cases, in), (out, in) */
    bool practice;    /* with the default eps, otherwise 0 */
} model;

static ng_tensor *none_of(ng_tape *tape, const model *m)
{
    return ng_matmul(tape, m->x, m->w, .transpose_b = true);
}

static double eps_of(const model *m, double usual) { return m->practice ? usual : NG_ZERO; }

static ng_tensor *batch_of(ng_tape *tape, const model *m)
{
    return ng_batch_norm(tape, none_of(tape, m), NG_NONE, NG_NONE, NG_NONE, NG_NONE,
                         .eps = eps_of(m, 1e-5), .training = true);
}

static ng_tensor *weight_of(ng_tape *tape, const model *m)
{
    ng_tensor *g = ng_full(tape, ng_dtype_of(m->w), NG_SHAPE(ng_dim(m->w, 0)), 1);
    return ng_matmul(tape, m->x, ng_weight_norm(tape, m->w, g), .transpose_b = true);
}

static ng_tensor *layer_of(ng_tape *tape, const model *m)
{
    return ng_layer_norm(tape, none_of(tape, m), NG_NONE, NG_NONE, eps_of(m, 1e-5));
}

static ng_tensor *rms_of(ng_tape *tape, const model *m)
{
    return ng_rms_norm(tape, none_of(tape, m), NG_NONE, eps_of(m, 1e-6));
}

static ng_tensor *partial_of(ng_tape *tape, const model *m)
{
    return ng_row_norm(tape, none_of(tape, m), NG_NONE, NG_NONE, .rms = true, .partial = 0.25,
                       .eps = eps_of(m, 1e-6));
}

static ng_tensor *group_of(ng_tape *tape, const model *m)
{
    return ng_group_norm(tape, none_of(tape, m), NG_NONE, NG_NONE, .groups = 4,
                         .eps = eps_of(m, 1e-5));
}

static ng_tensor *scale_of(ng_tape *tape, const model *m)
{
    ng_tensor *g = ng_full(tape, ng_dtype_of(m->w), NG_SHAPE(1), 1);
    return ng_scale_norm(tape, none_of(tape, m), g, eps_of(m, 1e-10));
}

static ng_tensor *tanh_of(ng_tape *tape, const model *m)
{
    ng_tensor *alpha = ng_full(tape, ng_dtype_of(m->w), NG_SHAPE(1), 0.5);
    return ng_dynamic_tanh(tape, none_of(tape, m), alpha, NG_NONE, NG_NONE);
}

/* ---- The changes -------------------------------------------------------------------------- */

typedef enum {
    MATRIX_SCALED,
    MATRIX_CENTRED,
    VECTOR_SCALED,
    DATASET_SCALED,
    DATASET_CENTRED,
    CASE_SCALED,
    CHANGES
} change;

static const double factor = 3;

static void scale_rows(ng_tensor *x, int64_t first, int64_t count)
{
    const int64_t row = ng_dim(x, 1);
    for (int64_t i = first * row; i < (first + count) * row; i++)
        ng_set(x, i, factor * ng_get(x, i));
}

static void shift_rows(ng_tensor *x, const ng_tensor *shift)
{
    for (int64_t i = 0; i < ng_size(x); i++)
        ng_set(x, i, ng_get(x, i) + ng_get(shift, i % ng_dim(x, 1)));
}

static void apply(change how, const model *m, const ng_tensor *shift)
{
    switch (how) {
    case MATRIX_SCALED: scale_rows(m->w, 0, ng_dim(m->w, 0)); break;
    case MATRIX_CENTRED: shift_rows(m->w, shift); break;
    case VECTOR_SCALED: scale_rows(m->w, 0, 1); break;
    case DATASET_SCALED: scale_rows(m->x, 0, ng_dim(m->x, 0)); break;
    case DATASET_CENTRED: shift_rows(m->x, shift); break;
    case CASE_SCALED: scale_rows(m->x, 0, 1); break;
    case CHANGES: break;
    }
}

/* ---- The table ---------------------------------------------------------------------------- */

enum { PUBLISHED = 5, ROWS = 9 };
static const struct {
    const char *name;
    ng_tensor *(*output)(ng_tape *tape, const model *m);
    bool invariant[CHANGES]; /* as published, of the first five */
} table[ROWS] = {
    /*                      matrix scaled, centred; vector; dataset scaled, centred; case */
    {"BatchNorm", batch_of, {true, false, true, true, true, false}},
    {"WeightNorm", weight_of, {true, false, true, false, false, false}},
    {"LayerNorm", layer_of, {true, true, false, true, false, true}},
    {"RMSNorm", rms_of, {true, false, false, true, false, true}},
    {"pRMSNorm", partial_of, {true, false, false, true, false, true}},
    {"GroupNorm", group_of, {false}},
    {"ScaleNorm", scale_of, {false}},
    {"DynamicTanh", tanh_of, {false}},
    {"no norm", none_of, {false}},
};

static double largest(const ng_tensor *y)
{
    double most = 0;
    for (int64_t i = 0; i < ng_size(y); i++) most = fmax(most, fabs(ng_get(y, i)));
    return most;
}

/* Returns the largest change of an output when the model is changed as `how`, relative to the
 * largest output. */
static double change_of(ng_tape *tape, int row, const model *m, change how, const ng_tensor *shift)
{
    const ng_dtype dtype = ng_dtype_of(m->x);
    const model other = {ng_copy_new(m->x, dtype), ng_copy_new(m->w, dtype), m->practice};
    apply(how, &other, shift);
    ng_tensor *y = table[row].output(tape, m), *changed = table[row].output(tape, &other);
    const double ratio = largest(ng_sub(tape, changed, y)) / largest(y);
    lab_goes_on();
    ng_tensor_free(other.x), ng_tensor_free(other.w);
    ng_tape_reset(tape);
    return ratio;
}

static model model_new(ng_dtype dtype, double size, bool practice, ng_rng *rng)
{
    const int64_t cases = lab_whole(CASES), in = lab_whole(IN), out = lab_whole(OUT);
    return (model){ng_normal_new(dtype, NG_SHAPE(cases, in), 0, size, rng),
                   ng_normal_new(dtype, NG_SHAPE(out, in), 0, 1, rng), practice};
}

static void model_free(const model *m) { ng_tensor_free(m->x), ng_tensor_free(m->w); }

/* By row and change; the seed is the last index. */
static double *measured;
static double *of_entry(int row, int how)
{
    return measured + ((int64_t)row * CHANGES + how) * lab_seeds();
}

static void measure_table(ng_tape *tape, int seed)
{
    ng_rng rng = ng_rng_seeded(lab_seed(seed));
    const model m = model_new(NG_F64, 1, false, &rng);
    ng_tensor *shift = ng_normal_new(NG_F64, NG_SHAPE(ng_dim(m.x, 1)), 0, 1, &rng);
    for (int row = 0; row < ROWS; row++)
        for (change how = 0; how < CHANGES; how++)
            of_entry(row, (int)how)[seed] = change_of(tape, row, &m, how, shift);
    model_free(&m), ng_tensor_free(shift);
}

/* The multiplied matrix in practice: activations with deviations of 1e-4 to 100, by norm. */
enum { ACTIVATIONS = 25, USED = 3 };
static const int used[USED] = {0, 2, 3}; /* rows of the table */
static double activation(int size) { return pow(10, size / 4.0 - 4); }

static void measure_practice(ng_tape *tape, int seed, lab_curves *curves[USED])
{
    for (int size = 0; size < ACTIVATIONS; size++) {
        ng_rng rng = ng_rng_seeded(lab_seed(seed));
        const model m = model_new(NG_F32, activation(size) / sqrt(lab_number(IN)), true, &rng);
        for (int i = 0; i < USED; i++)
            lab_log(curves[i], seed, "change", activation(size),
                    change_of(tape, used[i], &m, MATRIX_SCALED, NULL));
        model_free(&m);
    }
}

static void write_table(void)
{
    lab_block("table", "norm change measured low high published");
    for (int row = 0; row < ROWS; row++)
        for (int how = 0; how < CHANGES; how++) {
            const double *all = of_entry(row, how);
            const int seeds = lab_seeds();
            lab_row(row, how, lab_median(all), lab_percentile(all, seeds, 0),
                    lab_percentile(all, seeds, 100),
                    row < PUBLISHED ? table[row].invariant[how] : (double)NAN);
        }
}

/* Judges a norm's entries, seed by seed: the largest change where the table states invariance, and
 * the smallest change elsewhere. */
static void judge(int row)
{
    double *most = lab_numbers(lab_seeds()), *least = lab_numbers(lab_seeds());
    int invariant = 0;
    for (int how = 0; how < CHANGES; how++) invariant += table[row].invariant[how];
    for (int seed = 0; seed < lab_seeds(); seed++) {
        least[seed] = (double)INFINITY;
        for (int how = 0; how < CHANGES; how++) {
            const double by = of_entry(row, how)[seed];
            if (table[row].invariant[how])
                most[seed] = fmax(most[seed], by);
            else
                least[seed] = fmin(least[seed], by);
        }
    }
    lab_judge((lab_part){table[row].name, most, .side = LAB_BELOW, .threshold = 1e-10},
              "largest change of the output in the %d invariant entries", invariant);
    lab_judge((lab_part){table[row].name, least, .side = LAB_ABOVE, .threshold = 1e-3},
              "smallest change of the output in the %d other entries", CHANGES - invariant);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    measured = lab_numbers(ROWS * CHANGES * (int64_t)lab_seeds());
    lab_curves *curves[USED];
    for (int i = 0; i < USED; i++)
        curves[i] = lab_curves_new("activation", "%s", table[used[i]].name);
    ng_tape *tape = ng_tape_new();
    for (int seed = 0; seed < lab_seeds() && lab_goes_on(); seed++) {
        lab_progress(seed, lab_seeds(), "seed %d", seed);
        measure_table(tape, seed), measure_practice(tape, seed, curves);
    }
    ng_tape_free(tape);

    lab_data("%d cases, %d features, %d units", lab_whole(CASES), lab_whole(IN), lab_whole(OUT));
    write_table();
    for (int row = 0; row < PUBLISHED; row++) judge(row);
    return lab_end();
}
