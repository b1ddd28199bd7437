/* How far norms, softmax, losses, variance and attention are from the exact results, here, in
 * PyTorch, in oneDNN and in two formulas that are written out; tests/accuracy/README.md. Fails if
 * the bounds of norm_ops.h do not hold.
 *
 *     build/release/tests/accuracy/norms [FOLDER]     FOLDER/accuracy_norms.tsv, all that was
 *                                                     measured, and accuracy.dat for the figure */
#include "engines.h"
#include <float.h>
#include <math.h>
#include <normgrad.h>
#include <stdlib.h>
#include <string.h>

/* Rows with this mean and deviation 1; with mean 0 and this deviation; with one element of 1e6; all
 * equal; of two neighbouring numbers near 1e4; at the ends of the range that is promised. */
typedef enum {
    MEAN_0,
    MEAN_1E2,
    MEAN_1E4,
    MEAN_1E6,
    SCALE_TINY,
    SCALE_SMALL,
    SCALE_LARGE,
    SCALE_HUGE,
    OUTLIER,
    CONSTANT,
    LAST_PLACE,
    LEAST,
    MOST,
    INPUTS
} input;
static const char *const input_names[INPUTS] = {
    "mean 0",      "mean 1e2",   "mean 1e4",   "mean 1e6",    "scale 1e-30",
    "scale 1e-10", "scale 1e10", "scale 1e30", "outlier 1e6", "constant",
    "last place",  "least",      "most"};

/* An op, its reference, the lengths of rows and the inputs that it is measured on. */
typedef struct {
    const char *name;
    void (*exact)(const exact_rows *in, exact *results[EXACT_RESULTS]);
    const char *results[EXACT_RESULTS];
    bool norm, rms, columns, attention, row_of_one;
} op;
#define NORM_RESULTS                                                                               \
    {                                                                                              \
        "y", "dx", "dgamma", "d2x", "d2dy"                                                         \
    }
static const op ops[] = {
    {"layer_norm", exact_norm, NORM_RESULTS, .norm = true},
    {"rms_norm", exact_norm, NORM_RESULTS, .norm = true, .rms = true},
    {"batch_norm", exact_norm, NORM_RESULTS, .norm = true, .columns = true},
    {"softmax", exact_softmax, .results = {"y", "dx"}},
    {"log_softmax", exact_log_softmax, .results = {"y", "dx"}},
    {"cross_entropy", exact_cross_entropy, {"y", "dx"}, .row_of_one = true},
    {"variance", exact_variance, {"y", "dx"}, .row_of_one = true},
    {"attention", exact_attention, {"y", "dq", NULL, "dk", "dv"}, .attention = true}};
enum { OPS = sizeof ops / sizeof *ops };
static const int64_t lengths[] = {1, 2, 3, 17, 64, 1000, 65536};
enum { LENGTHS = sizeof lengths / sizeof *lengths, LONGEST = 65536, MOST_NUMBERS = 2 * LONGEST };

/* ---- Inputs --------------------------------------------------------------------------------- */

static double x_dy_v[3][MOST_NUMBERS], gamma_beta[2][LONGEST];
static double numbers[ENGINES][EXACT_RESULTS][MOST_NUMBERS];
static exact right_numbers[EXACT_RESULTS][MOST_NUMBERS];

static double as(double x, bool single) { return single ? (double)(float)x : x; }

static void draw(double *to, int64_t count, bool single, ng_rng *rng)
{
    ng_tensor *x = ng_normal_new(single ? NG_F32 : NG_F64, NG_SHAPE(count), 0, 1, rng);
    for (int64_t i = 0; i < count; i++) to[i] = ng_get(x, i);
    ng_tensor_free(x);
}

/* x of normal numbers z. Rows at the ends of the promised range: subnormal floats and doubles of
 * 1e-150, and numbers up to the largest float and 1e150. */
static void shape_row(input kind, double *x, int64_t n, int64_t row, bool single)
{
    static const double means[] = {0, 1e2, 1e4, 1e6}, scales[] = {1e-30, 1e-10, 1e10, 1e30};
    for (int64_t i = 0; i < n; i++) {
        double z = x[i];
        if (kind <= MEAN_1E6) z += means[kind];
        if (kind >= SCALE_TINY && kind <= SCALE_HUGE) z *= scales[kind - SCALE_TINY];
        if (kind == OUTLIER && i == row % n) z = row % 2 ? -1e6 : 1e6;
        if (kind == CONSTANT) z = 1.1 + 0.7 * (double)row;
        if (kind == LAST_PLACE) z = 1e4 + floor(2 * z) * (single ? 0x1p-10 : 0x1p-39);
        if (kind == LEAST) z *= single ? 1e-40 : 1e-149;
        if (kind == MOST) z = single ? z / (1 + fabs(z)) * (double)FLT_MAX : z * 1e149;
        x[i] = as(z, single);
        if (kind == LEAST && !single && fabs(x[i]) < 1e-150) x[i] = 1e-150;
    }
}

static request request_of(const op *o, input kind, int64_t n, bool single)
{
    const int64_t rows = n >= LONGEST ? 2 : n > 64 ? 8 : 32;
    request r = {o->name,
                 single,
                 {rows, n, 0x1p-17, o->rms, o->columns, x_dy_v[0], x_dy_v[1], x_dy_v[2],
                  gamma_beta[0], gamma_beta[1]},
                 {0}};
    ng_rng rng = ng_rng_seeded((uint64_t)kind * 100 + (uint64_t)n);
    for (int i = 0; i < 3; i++) draw(x_dy_v[i], rows * n, single, &rng);
    const int64_t row = o->attention ? rows * n : o->columns ? rows : n;
    for (int i = 0; i < 2; i++) draw(gamma_beta[i], row, single, &rng);
    for (int64_t i = 0; i < row && !o->attention; i++)
        gamma_beta[0][i] = as(1 + gamma_beta[0][i] / 4, single);
    for (int64_t k = 0; k < rows; k++) shape_row(kind, x_dy_v[0] + k * n, n, k, single);
    for (int i = 0; i < EXACT_RESULTS; i++) {
        if (o->results[i]) r.size[i] = rows * n;
        if (i == EXACT_DGAMMA && o->norm) r.size[i] = row;
        if (i == EXACT_Y && o->row_of_one) r.size[i] = rows;
    }
    return r;
}

/* ---- Errors --------------------------------------------------------------------------------- */

/* The largest errors of a result: as a share of the terms, in short rows and long ones, and in
 * units of a row's largest element where its terms do not cancel. */
typedef struct {
    double terms[2], units[ENGINES];
    bool measured[ENGINES];
} measured;
enum { LONG = 10000, SHORT = 17 };
static measured table[OPS][EXACT_RESULTS][2][INPUTS];

/* Notes the errors of a result, of each row apart, for rows differ in size; returns the largest. */
static exact_error note(const request *r, int which, int engine, const double *y, measured *m)
{
    const int64_t all = r->size[which];
    const int64_t n = which == EXACT_DGAMMA ? all : all / r->rows.rows;
    exact_error worst = {0, 0, 0};
    for (int64_t at = 0; at < all; at += n) {
        const exact *right = right_numbers[which] + at;
        const exact_error error = exact_compare(y + at, right, n, r->single);
        worst = exact_worse(worst, error);
        if (r->rows.n >= SHORT && !exact_cancels(right, n))
            m->units[engine] = fmax(m->units[engine], error.largest);
    }
    if (engine == NORMGRAD)
        m->terms[r->rows.n >= LONG] = fmax(m->terms[r->rows.n >= LONG], worst.terms);
    m->measured[engine] = true;
    return worst;
}

static void measure(const op *o, input kind, int64_t n, bool single, FILE *out)
{
    const request r = request_of(o, kind, n, single);
    exact *right[EXACT_RESULTS];
    for (int i = 0; i < EXACT_RESULTS; i++) right[i] = right_numbers[i];
    o->exact(&r.rows, right);
    for (int e = 0; e < ENGINES; e++) {
        double *to[EXACT_RESULTS];
        bool has[EXACT_RESULTS];
        for (int i = 0; i < EXACT_RESULTS; i++) to[i] = numbers[e][i];
        compute(e, &r, to, has);
        for (int i = 0; i < EXACT_RESULTS; i++) {
            if (!has[i]) continue;
            const exact_error error = note(&r, i, e, to[i], &table[o - ops][i][single][kind]);
            fprintf(out, "%s\t%s\t%s\t%s\t%lld\t%s\t%.3g\t%.3g\t%.3g\n", o->name, o->results[i],
                    single ? "float32" : "float64", input_names[kind], (long long)n,
                    engine_names[e], error.last, error.largest, error.terms);
        }
    }
}

/* BatchNorm's subnormal results are off by up to the smallest normal number. Attention's scores
 * must not be so large that their own rounding is all that is seen. */
static bool is_measured(const op *o, input kind, int64_t n)
{
    if (o->norm) return !o->columns || (n > 1 && kind != LEAST);
    if (kind == LEAST || kind == MOST || kind == LAST_PLACE) return false;
    return !o->attention || (n <= 64 && kind == MEAN_0);
}

/* ---- Tables --------------------------------------------------------------------------------- */

static void print_row(const op *o, int result, bool single)
{
    measured all = {0};
    int worst = 0;
    for (int kind = 0; kind < INPUTS; kind++) {
        const measured *m = &table[o - ops][result][single][kind];
        if (m->units[NORMGRAD] > all.units[NORMGRAD]) worst = kind;
        for (int e = 0; e < ENGINES; e++) {
            all.units[e] = fmax(all.units[e], m->units[e]);
            all.measured[e] |= m->measured[e];
        }
        for (int i = 0; i < 2; i++) all.terms[i] = fmax(all.terms[i], m->terms[i]);
    }
    printf("| %s | %s |", o->name, o->results[result]);
    for (int e = 0; e < ENGINES; e++)
        if (all.measured[e])
            printf(" %.2g, %.2g |", table[o - ops][result][single][MEAN_0].units[e], all.units[e]);
        else
            printf(" |");
    printf(" %s | %.1e | %.1e |\n", input_names[worst], all.terms[0], all.terms[1]);
}

/* In Markdown: the errors in units of the largest element with mean 0 and over all inputs, the
 * worst input of normgrad, and its errors as shares of the terms, in rows of up to 1,000 and 65,536
 * elements. */
static void print_table(bool single)
{
    printf("\n%s\n\n| op | result |", single ? "float32" : "float64");
    for (int e = 0; e < ENGINES; e++) printf(" %s |", engine_names[e]);
    puts(" worst input | of the terms | in long rows |");
    for (int o = 0; o < OPS; o++)
        for (int i = 0; i < EXACT_RESULTS; i++)
            if (ops[o].results[i]) print_row(&ops[o], i, single);
}

/* The bounds that norm_ops.h states. */
static int count_wrong(void)
{
    int wrong = 0;
    for (int o = 0; o < OPS; o++)
        for (int i = 0; i < EXACT_RESULTS && ops[o].norm; i++)
            for (int single = 0; single < 2; single++)
                for (int kind = 0; kind < INPUTS; kind++) {
                    const double *terms = table[o][i][single][kind].terms;
                    if (terms[0] <= (single ? 1e-6 : 3e-15) && terms[1] <= (single ? 1e-6 : 1e-14))
                        continue;
                    printf("%s %s, %s, %s: %.3g and %.3g of the terms: too large\n", ops[o].name,
                           ops[o].results[i], single ? "float32" : "float64", input_names[kind],
                           terms[0], terms[1]);
                    wrong++;
                }
    return wrong;
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    if (out) return out;
    perror(path);
    exit(1);
}

/* The figure's: LayerNorm's and RMSNorm's errors in float, for each library and input. */
static void write_figure(const char *folder)
{
    FILE *out = open_in(folder, "accuracy.dat");
    fputs("# what: largest errors of norms in float32, in units in the last place of the largest "
          "element, rows of 17 to 65536\n# op, result, library, then a column for each input:",
          out);
    for (int kind = 0; kind < INPUTS; kind++) fprintf(out, " \"%s\"", input_names[kind]);
    fputs("\n", out);
    for (int o = 0; o < OPS; o++)
        for (int i = EXACT_Y; i <= EXACT_DX && ops[o].norm; i++)
            for (int e = 0; e < ENGINES; e++) {
                if (!table[o][i][1][0].measured[e]) continue;
                fprintf(out, "%s %s \"%s\"", ops[o].name, ops[o].results[i], engine_names[e]);
                for (int kind = 0; kind < INPUTS; kind++)
                    if (table[o][i][1][kind].measured[e])
                        fprintf(out, " %.3g", table[o][i][1][kind].units[e]);
                    else
                        fputs(" -", out);
                fputs("\n", out);
            }
    fclose(out);
}

int main(int count, char **arguments)
{
    const char *folder = count > 1 ? arguments[1] : "build";
    char own[4096];
    snprintf(own, sizeof own, "%s", arguments[0]);
    if (strrchr(own, '/')) *strrchr(own, '/') = '\0';
    start_engines(own);
    FILE *out = open_in(folder, "accuracy_norms.tsv");
    fputs("op\tresult\tdtype\tinput\tn\tlibrary\tin its last place\tin the largest's\tof the "
          "terms\n",
          out);
    for (int o = 0; o < OPS; o++)
        for (int single = 1; single >= 0; single--)
            for (int kind = 0; kind < INPUTS; kind++)
                for (int i = 0; i < LENGTHS; i++)
                    if (is_measured(&ops[o], (input)kind, lengths[i]))
                        measure(&ops[o], (input)kind, lengths[i], single, out);
    fclose(out);
    stop_engines();
    print_table(true), print_table(false);
    write_figure(folder);
    if (ng_failed()) fprintf(stderr, "%s\n", ng_error_text());
    return ng_failed() || count_wrong() > 0;
}
