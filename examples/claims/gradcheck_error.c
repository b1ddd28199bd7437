/* The error of a gradient check: that of a central difference by step size, for ten norms in double
 * and float, and Taylor's remainder for a right gradient and a slightly wrong one. */
#include "../../tests/cases/cases.h"
#include "lab.h"
#include <float.h>
#include <string.h>

static const lab_experiment gradcheck_error = {
    .id = "gradcheck_error",
    .source = "Press et al. 2007, section 5.7; Farrell et al. 2013",
    .claim =
        "the error of a central difference is proportional to h^2 from truncation and to 1/h from "
        "rounding, and least at the cube root of the precision, where two thirds of the digits "
        "are right; Taylor's remainder falls as h^2 only if the gradient is right",
    .method =
        "For each of ten norms, on random inputs: the median over all elements of the relative\n"
        "difference between the exact gradient, in double, and (f(x + h) - f(x - h)) / 2h, at 113\n"
        "steps h from 1 to 1e-14 of the element's size, f being computed in double or in float.\n"
        "Slopes are fitted a decade above and below the predicted best step, over two decades,\n"
        "up to 0.2. Then f(x + h d) - f(x) - h f'(x) d along a random direction d, with the\n"
        "gradient as it is and 1 % too large, with slopes fitted from 1e-5 to 1e-3\n"
        "and, for the wrong one, from 1e-7 to 1e-5, where the part that falls as h^2 is small.\n",
    .rule =
        "of the ten norms' slopes the one farthest from theory is within 0.2 of 2 (truncation), "
        "-1 (rounding), 2 (Taylor, right) and 1 (Taylor, wrong); the best step and its error "
        "are within a factor of 10 of eps^(1/3) and eps^(2/3) for the norm farthest off",
    .dtype = "float64 and float32",
    .seeds = 9,
    .quick_seeds = 1};

/* The findings for each norm: of its error curve in double, then in float; then Taylor's slopes
 * with the right gradient and with the wrong one. */
enum { TRUNCATION, ROUNDING, STEP, ERROR, VEE };
enum { RIGHT = 2 * VEE, WRONG, FINDINGS };

static const struct {
    const char *name;
    bool in_float;
    double eps;
} precisions[] = {{"double", false, DBL_EPSILON}, {"float", true, (double)FLT_EPSILON}};

static bool within(double value, double low, double high) { return value >= low && value <= high; }

/* A finding with `around`, the value in theory: a slope, or log10 of a step or an error over the
 * theoretical one. */
typedef struct {
    double value, around;
} scaled;

static scaled scaled_of(int finding, double value)
{
    if (finding == RIGHT) return (scaled){value, 2};
    if (finding == WRONG) return (scaled){value, 1};
    const double step = cbrt(precisions[finding / VEE].eps);
    switch (finding % VEE) {
    case TRUNCATION: return (scaled){value, 2};
    case ROUNDING: return (scaled){value, -1};
    case STEP: return (scaled){log10(value / step), 0};
    default: return (scaled){log10(value / (step * step)), 0};
    }
}

/* ---- The norms ------------------------------------------------------------------------------ */

/* Cases of op_case. Norms with a detached part are left out: their gradient is not the
 * derivative of their value. */
static const char *const swept_norms[] = {"layer_norm",   "rms_norm",
                                          "batch_norm",   "group_norm (N, C)",
                                          "dynamic_tanh", "channel_norm (N, C)",
                                          "scale_norm",   "ghost_batch_norm",
                                          "weight_norm",  "instance_norm (N, C, L)"};
enum { SWEPT_NORMS = sizeof swept_norms / sizeof *swept_norms };

/* Steps from 1 down to 1e-14, eight per decade. */
enum { SWEEP_STEPS = 113 };
static double sweep_step(int index) { return pow(10, -index / 8.0); }

static const gradient_case *swept_case(const char *name)
{
    const gradient_case *spec;
    for (int i = 0; (spec = op_case(i)); i++)
        if (strcmp(spec->name, name) == 0) return spec;
    return NULL;
}

/* A norm whose value is computed in float: an op whose gradient, in double, comes from its
 * definition. */
typedef struct {
    ng_check_call *norm;
    int inputs;
} norm_in_float;

static ng_tensor *in_float_definition(ng_tape *tape, const ng_node *node)
{
    const norm_in_float *this = node->attributes;
    return this->norm(tape, node->inputs, NULL);
}

static ng_tensor *in_float_call(ng_tape *tape, ng_tensor *const *in, void *context)
{
    static const ng_op op = {.name = "norm in float", .definition = in_float_definition};
    const norm_in_float *this = context;
    ng_tensor *given[CASE_INPUTS];
    const bool was = ng_tape_set_recording(tape, false);
    for (int i = 0; i < this->inputs; i++) given[i] = ng_cast(tape, in[i], NG_F32);
    ng_tensor *y = ng_cast(tape, this->norm(tape, given, NULL), NG_F64);
    ng_tape_set_recording(tape, was);
    return ng_record(tape, &op, y, in, this->inputs, this, sizeof *this);
}

/* Draws the inputs of a case. Returns their number. */
static int draw_inputs(const gradient_case *spec, uint64_t seed, ng_tensor **inputs)
{
    int count = 0;
    ng_rng rng = ng_rng_seeded(seed);
    for (; count < CASE_INPUTS && spec->inputs[count].name; count++)
        inputs[count] = case_input_new(&spec->inputs[count], &rng);
    return count;
}

/* Sets errors[i] to the median relative error over all elements at sweep_step(i). The exact
 * gradient is the library's in double. With in_float the differences are taken of values in
 * float. */
static ng_status sweep_norm(const char *name, bool in_float, uint64_t seed, double *errors)
{
    const gradient_case *spec = swept_case(name);
    ng_tensor *inputs[CASE_INPUTS];
    double steps[SWEEP_STEPS];
    for (int i = 0; i < SWEEP_STEPS; i++) steps[i] = sweep_step(i);
    const int count = draw_inputs(spec, seed, inputs);
    norm_in_float rounded = {spec->call, count};
    const ng_status status =
        ng_check_sweep(in_float ? in_float_call : spec->call, steps, errors, SWEEP_STEPS, inputs,
                       count, .seed = seed, .context = in_float ? &rounded : NULL);
    for (int i = 0; i < count; i++) ng_tensor_free(inputs[i]);
    return status;
}

/* ---- Central differences -------------------------------------------------------------------- */

/* Returns the slope of the errors between two steps, of which there are `per_decade`. */
static double slope_between(const double *errors, int n, double per_decade, double from, double to)
{
    double x[SWEEP_STEPS], y[SWEEP_STEPS];
    int count = 0;
    for (int i = 0; i < n; i++) {
        const double step = pow(10, -i / per_decade);
        if (!within(step, from, to)) continue;
        x[count] = log10(step), y[count++] = log10(errors[i]);
    }
    return lab_fit(x, y, count).slope;
}

static void look_at(const double *errors, double eps, double vee[VEE])
{
    const double best = cbrt(eps);
    int lowest = 0;
    for (int i = 0; i < SWEEP_STEPS; i++)
        if (errors[i] < errors[lowest]) lowest = i;
    vee[TRUNCATION] = slope_between(errors, SWEEP_STEPS, 8, 10 * best, fmin(1000 * best, 0.2));
    vee[ROUNDING] = slope_between(errors, SWEEP_STEPS, 8, best / 1000, best / 10);
    vee[STEP] = sweep_step(lowest);
    vee[ERROR] = errors[lowest];
}

/* Writes the block of one precision and sets found[finding][run]. A run is a norm with a seed. */
static void measure_vees(int precision, double *found[FINDINGS])
{
    const int runs = SWEPT_NORMS * lab_seeds();
    lab_curves *curves = lab_curves_new("step", "%s", precisions[precision].name);
    for (int run = 0; run < runs && lab_goes_on(); run++) {
        const char *norm = swept_norms[run / lab_seeds()];
        double errors[SWEEP_STEPS] = {0}, vee[VEE];
        lab_progress(0.4 * (precision + (double)run / runs), 1, "%s, %s",
                     precisions[precision].name, norm);
        sweep_norm(norm, precisions[precision].in_float, lab_seed(run % lab_seeds()), errors);
        look_at(errors, precisions[precision].eps, vee);
        for (int i = 0; i < SWEEP_STEPS; i++)
            lab_log(curves, run, "error", sweep_step(i), errors[i]);
        for (int k = 0; k < VEE; k++) found[precision * VEE + k][run] = vee[k];
    }
}

/* ---- Taylor --------------------------------------------------------------------------------- */

/* Returns the contraction of the norm's output at inputs + h directions with a cotangent. Sets
 * *slope, unless NULL, to its derivative along the directions by the exact gradient. */
static double contracted(const gradient_case *spec, ng_tensor **inputs, ng_tensor **directions,
                         int count, double h, uint64_t seed, double *slope)
{
    ng_tensor *moved[CASE_INPUTS], *gradients[CASE_INPUTS];
    ng_tape *tape = ng_tape_new();
    ng_rng rng = ng_rng_seeded(seed ^ 0x5eed);
    for (int i = 0; i < count; i++)
        moved[i] = ng_add(tape, inputs[i], ng_mul_scalar(tape, directions[i], h));
    ng_tensor *y = spec->call(tape, moved, NULL);
    ng_tensor *cotangent = ng_normal_new(NG_F64, ng_shape_of(y), 0, 1, &rng);
    ng_tensor *sum = ng_sum(tape, ng_mul(tape, y, cotangent));
    const double value = ng_item(sum);
    if (slope) {
        ng_gradients(tape, &sum, 1, moved, count, gradients);
        *slope = 0;
        for (int i = 0; i < count && lab_goes_on(); i++)
            *slope += ng_item(ng_sum(tape, ng_mul(tape, gradients[i], directions[i])));
    }
    ng_tensor_free(cotangent), ng_tape_free(tape);
    lab_goes_on();
    return value;
}

enum { GRADIENTS = 2, STEPS = 33 }; /* steps from 1 to 1e-8, four per decade */
static const struct {
    const char *block;
    double factor, from, to; /* the steps at which the slope is fitted */
} gradients[GRADIENTS] = {{"Taylor, right", 1, 1e-5, 1e-3}, {"Taylor, wrong", 1.01, 1e-7, 1e-5}};
static double taylor_step(int index) { return pow(10, -index / 4.0); }

/* Logs the remainders of one run, relative to the slope, and sets found[RIGHT or WRONG][run]. */
static void measure_remainders(const gradient_case *spec, ng_tensor **inputs, int count,
                               uint64_t seed, lab_curves *curves[GRADIENTS],
                               double *found[FINDINGS], int run)
{
    double remainders[GRADIENTS][STEPS];
    ng_tensor *directions[CASE_INPUTS];
    ng_rng rng = ng_rng_seeded(seed ^ 0xd14ec7);
    double slope;
    for (int i = 0; i < count; i++)
        directions[i] = ng_normal_new(NG_F64, ng_shape_of(inputs[i]), 0, 1, &rng);
    const double base = contracted(spec, inputs, directions, count, 0, seed, &slope);
    for (int s = 0; s < STEPS; s++) {
        const double h = taylor_step(s);
        const double change = contracted(spec, inputs, directions, count, h, seed, NULL) - base;
        for (int g = 0; g < GRADIENTS; g++) {
            remainders[g][s] = fabs(change - h * gradients[g].factor * slope) / fabs(slope);
            lab_log(curves[g], run, "remainder", h, remainders[g][s]);
        }
    }
    for (int g = 0; g < GRADIENTS; g++)
        found[RIGHT + g][run] =
            slope_between(remainders[g], STEPS, 4, gradients[g].from, gradients[g].to);
    for (int i = 0; i < count; i++) ng_tensor_free(directions[i]);
}

static void measure_taylor(double *found[FINDINGS])
{
    const int runs = SWEPT_NORMS * lab_seeds();
    lab_curves *curves[GRADIENTS];
    for (int g = 0; g < GRADIENTS; g++)
        curves[g] = lab_curves_new("step", "%s", gradients[g].block);
    for (int run = 0; run < runs && lab_goes_on(); run++) {
        const gradient_case *spec = swept_case(swept_norms[run / lab_seeds()]);
        const uint64_t seed = lab_seed(run % lab_seeds());
        ng_tensor *inputs[CASE_INPUTS];
        const int count = draw_inputs(spec, seed, inputs);
        for (int i = 0; i < count; i++) ng_require_grad(inputs[i]);
        measure_remainders(spec, inputs, count, seed, curves, found, run);
        for (int i = 0; i < count; i++) ng_tensor_free(inputs[i]);
    }
}

static void write_norms(double *found[FINDINGS])
{
    lab_block("norms", "norm double_truncation double_rounding double_step double_error "
                       "float_truncation float_rounding float_step float_error right wrong");
    for (int n = 0; n < SWEPT_NORMS; n++) {
        double row[1 + FINDINGS] = {n};
        for (int k = 0; k < FINDINGS; k++)
            row[1 + k] = lab_percentile(found[k] + n * lab_seeds(), lab_seeds(), 50);
        lab_put(row, 1 + FINDINGS);
    }
}

/* Judges the norm that is farthest from theory, seed by seed. */
static void judge(int finding, const double *found)
{
    static const char *const parts[VEE] = {"slope of the truncation", "slope of the rounding",
                                           "best step over eps^(1/3), log10",
                                           "least error over eps^(2/3), log10"};
    double *farthest = lab_numbers(lab_seeds());
    const double around = scaled_of(finding, 1).around;
    for (int seed = 0; seed < lab_seeds(); seed++) {
        farthest[seed] = around;
        for (int n = 0; n < SWEPT_NORMS; n++) {
            const double value = scaled_of(finding, found[n * lab_seeds() + seed]).value;
            if (!(fabs(value - around) <= fabs(farthest[seed] - around))) farthest[seed] = value;
        }
    }
    const bool logarithm = finding < RIGHT && finding % VEE >= STEP;
    const lab_part part = {NULL, farthest, .side = LAB_WITHIN, .around = around,
                           .threshold = logarithm ? 1 : 0.2};
    if (finding >= RIGHT)
        lab_judge(part, "slope of Taylor's remainder, gradient %s, farthest of ten norms",
                  finding == RIGHT ? "right" : "1 % too large");
    else
        lab_judge(part, "%s, in %s, farthest of ten norms", parts[finding % VEE],
                  precisions[finding / VEE].name);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &gradcheck_error);
    lab_data("central differences and Taylor's remainders of %d norms", (int)SWEPT_NORMS);
    double *found[FINDINGS];
    for (int k = 0; k < FINDINGS; k++) found[k] = lab_numbers(SWEPT_NORMS * lab_seeds());
    measure_vees(0, found);
    measure_vees(1, found);
    measure_taylor(found);
    write_norms(found);
    for (int k = 0; k < FINDINGS; k++) judge(k, found[k]);
    return lab_end();
}
