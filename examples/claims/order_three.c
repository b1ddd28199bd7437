/* Derivatives of orders 1 to 4 of norms along a line, beside the exact ones, by this library and by
 * PyTorch. */
#include "lab.h"

enum { LAYER, BATCH, RMS, NORMS };
enum { ROWS = 6, COLUMNS = 8, SIZE = ROWS * COLUMNS, ORDERS = 4, SEEDS = 21 };
#define EPS 1e-5

static const lab_experiment experiment = {
    .id = "order_three",
    .source = "PyTorch 2.6, tests/golden/make_order_three.py; PyTorch's issues 175754 and 186256",
    .claim = "derivatives of LayerNorm, BatchNorm and RMSNorm are right at every order; PyTorch's "
             "LayerNorm and BatchNorm are wrong from order 3 on",
    .method = "A loss with second derivatives, as in physics-informed networks, needs third ones "
              "to learn. Measured: the derivatives of orders 1 to 4 at t = 0 of sum(c norm(x + t "
              "u)), by a gradient of a gradient of a gradient..., for matrices x, u, c of 6 x 8 "
              "random numbers, eps 1e-5, in float64. The exact ones are those of the power series "
              "in t, in long double. PyTorch's were computed with the same numbers.",
    .rule = "the relative error is below 1e-10; PyTorch's at order 3 is above 1e-3 for LayerNorm "
            "and BatchNorm, and below 1e-10 at orders 1 and 2 and for RMSNorm",
    .dtype = "float64",
    .seeds = SEEDS};

static const char *const names[NORMS] = {"LayerNorm", "BatchNorm", "RMSNorm"};

/* Element `place` of x, u or c (`which`): a multiple of 1/512 in [-2, 2). */
static double number(int which, int seed, int place)
{
    uint32_t mixed = (uint32_t)((seed * 3 + which) * 1000 + place + 1);
    mixed = (mixed ^ mixed >> 16) * 0x7feb352d;
    mixed = (mixed ^ mixed >> 15) * 0x846ca68b;
    return (double)(mixed >> 21) / 512 - 2;
}

/* ---- The exact derivatives ---- */

/* The first coefficients of a power series in t. */
typedef struct {
    long double at[ORDERS + 1];
} series;

static series times(series a, series b)
{
    series c = {{0}};
    for (int i = 0; i <= ORDERS; i++)
        for (int k = 0; k <= i; k++) c.at[i] += a.at[k] * b.at[i - k];
    return c;
}

/* a^(-1/2), whose coefficients follow from 2 a y' = -a' y. */
static series root_of_inverse(series a)
{
    series y = {{1 / sqrtl(a.at[0])}};
    for (int n = 1; n <= ORDERS; n++) {
        for (int k = 1; k <= n; k++)
            y.at[n] -= (0.5L * k + (long double)(n - k)) * a.at[k] * y.at[n - k];
        y.at[n] /= (long double)n * a.at[0];
    }
    return y;
}

/* Adds the derivatives of sum(c norm(x + t u)) over `count` places from `first`, `step` apart. */
static void add_exact(int norm, int seed, int first, int count, int step, long double *sums)
{
    long double x = 0, u = 0, factorial = 1;
    for (int i = 0; i < count && norm != RMS; i++) {
        x += (long double)number(0, seed, first + i * step) / count;
        u += (long double)number(1, seed, first + i * step) / count;
    }
    series centred[COLUMNS], square = {{(long double)EPS}}, sum = {{0}};
    for (int i = 0; i < count; i++) {
        const int place = first + i * step;
        centred[i] = (series){
            {(long double)number(0, seed, place) - x, (long double)number(1, seed, place) - u}};
        const series own = times(centred[i], centred[i]);
        for (int k = 0; k <= ORDERS; k++) {
            square.at[k] += own.at[k] / count;
            sum.at[k] += (long double)number(2, seed, place) * centred[i].at[k];
        }
    }
    sum = times(sum, root_of_inverse(square));
    for (int k = 1; k <= ORDERS; k++) sums[k - 1] += (factorial *= k) * sum.at[k];
}

static void exact(int norm, int seed, long double *derivatives)
{
    const bool batch = norm == BATCH;
    for (int k = 0; k < ORDERS; k++) derivatives[k] = 0;
    for (int i = 0; i < (batch ? COLUMNS : ROWS); i++)
        add_exact(norm, seed, batch ? i : i * COLUMNS, batch ? ROWS : COLUMNS, batch ? COLUMNS : 1,
                  derivatives);
}

/* ---- By gradients of gradients ---- */

static void differentiate(int norm, int seed, double *derivatives)
{
    ng_tensor *in[3];
    for (int which = 0; which < 3; which++) {
        in[which] = ng_zeros_new(NG_F64, NG_SHAPE(ROWS, COLUMNS));
        for (int i = 0; i < SIZE; i++) ng_set(in[which], i, number(which, seed, i));
    }
    ng_tape *tape = ng_tape_new();
    ng_tensor *x = ng_require_grad(in[0]), *y;
    if (norm == LAYER)
        y = ng_layer_norm(tape, x, NG_NONE, NG_NONE, .eps = EPS);
    else if (norm == RMS)
        y = ng_rms_norm(tape, x, NG_NONE, .eps = EPS);
    else
        y = ng_batch_norm(tape, x, NG_NONE, NG_NONE, NG_NONE, NG_NONE, .training = true,
                          .eps = EPS);
    ng_tensor *value = ng_dot(tape, in[2], y);
    for (int k = 0; k < ORDERS; k++) {
        value = ng_dot(tape, ng_gradient(tape, value, x, .record = true), in[1]);
        derivatives[k] = ng_item(value);
    }
    still_works();
    ng_tape_free(tape);
    for (int which = 0; which < 3; which++) ng_tensor_free(in[which]);
}

/* ---- Main ---- */

static double error_of(double value, long double right)
{
    return (double)(fabsl((long double)value - right) / fabsl(right));
}

static void judge(int norm, const double *values, bool right, const char *what)
{
    lab_judge(names[norm], values, right ? lab_below(1e-10) : lab_above(1e-3),
              "relative error of derivatives, %s", what);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    /* norm, seed, order, value */
    ng_dataset *table =
        ng_dataset_read_csv(find_file("tests/golden", "order_three.txt").text, .delimiter = ' ',
                            .header = true, .no_label = true, .dtype = NG_F64);
    still_works();
    lab_data("derivatives along a line, %d x %d; PyTorch 2.6", ROWS, COLUMNS);
    for (int norm = 0; norm < NORMS; norm++) {
        double *most = lab_numbers(lab_seeds()), *low = lab_numbers(lab_seeds());
        double *third = lab_numbers(lab_seeds());
        curve_set *curves = new_curves("order", "%s", names[norm]);
        for (int seed = 0; seed < lab_seeds(); seed++) {
            double own[ORDERS];
            long double right[ORDERS];
            const int inputs = (int)(lab_seed(seed) % SEEDS);
            exact(norm, inputs, right), differentiate(norm, inputs, own);
            for (int k = 0; k < ORDERS; k++) {
                const int row = (norm * SEEDS + inputs) * ORDERS + k;
                const double theirs = error_of(ng_at(ng_dataset_x(table), row, 3), right[k]);
                const double ours = error_of(own[k], right[k]);
                most[seed] = fmax(most[seed], ours);
                if (k < 2) low[seed] = fmax(low[seed], theirs);
                if (k == 2) third[seed] = theirs;
                /* An error of 0 has no place on a logarithmic axis. */
                log_curves(curves, seed, "normgrad pytorch", k + 1, fmax(ours, 1e-17),
                           fmax(theirs, 1e-17));
            }
        }
        judge(norm, most, true, "orders 1 to 4, normgrad");
        judge(norm, low, true, "orders 1 and 2, PyTorch 2.6");
        judge(norm, third, norm == RMS, "order 3, PyTorch 2.6");
    }
    ng_dataset_free(table);
    return lab_end();
}
