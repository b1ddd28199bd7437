/* The error of a gradient check: that of a central difference by step size, for ten norms in double
 * and float, and Taylor's remainder for a right gradient and a slightly wrong one. */
#include "../../tests/cases/cases.h"
#include "lab.h"
#include <float.h>

static const lab_experiment gradcheck_error = {
    .id = "gradcheck_error",
    .source = "Press et al. 2007, section 5.7; Farrell et al. 2013",
    .claim = "the error of a central difference is proportional to h^2 from truncation and to 1/h "
             "from rounding, and least at the cube root of the precision, where two thirds of the "
             "digits are right; Taylor's remainder falls as h^2 only if the gradient is right",
    .method =
        "For each of ten norms, on random inputs: the median over all elements of the relative "
        "difference between the exact gradient, in double, and (f(x + h) - f(x - h)) / 2h, at 113 "
        "steps h from 1 to 1e-14 of the element's size, f being computed in double or in float. "
        "Slopes are fitted a decade above and below the predicted best step, over two decades, up "
        "to 0.2. Then f(x + h d) - f(x) - h f'(x) d along a random direction d, with the gradient "
        "as it is and 1 % too large, with slopes fitted from 1e-5 to 1e-3 and, for the wrong one, "
        "from 1e-7 to 1e-5, where the part that falls as h^2 is small. Not judged are the slope of "
        "truncation in float, where less than a decade of steps is left to fit, and the least "
        "error in double, which is below theory.",
    .rule =
        "of the ten norms' slopes the one farthest from theory is within 0.2 of 2 (truncation), -1 "
        "(rounding), 2 (Taylor, right) and 1 (Taylor, wrong); the best step and its error (in "
        "float) are within a factor of 10 of eps^(1/3) and eps^(2/3) for the norm farthest off",
    .dtype = "float64 and float32",
    .seeds = 41};

/* What is found for each norm, with the value in theory. Steps and errors are log10 of the quotient
 * of the measured and the theoretical one. */
enum { SLOPE, ROUNDING, STEP, FLOAT_ROUNDING, FLOAT_STEP, FLOAT_ERROR, RIGHT, WRONG, FINDINGS };
static const struct {
    const char *name;
    double theory, tolerance;
} findings[FINDINGS] = {[SLOPE] = {"slope of the truncation, in double", 2, 0.2},
                        [ROUNDING] = {"slope of the rounding, in double", -1, 0.2},
                        [STEP] = {"best step over eps^(1/3), log10, in double", 0, 1},
                        [FLOAT_ROUNDING] = {"slope of the rounding, in float", -1, 0.2},
                        [FLOAT_STEP] = {"best step over eps^(1/3), log10, in float", 0, 1},
                        [FLOAT_ERROR] = {"least error over eps^(2/3), log10, in float", 0, 1},
                        [RIGHT] = {"slope of Taylor's remainder, gradient right", 2, 0.2},
                        [WRONG] = {"slope of Taylor's remainder, gradient 1 % too large", 1, 0.2}};

/* ---- The norms ------------------------------------------------------------------------------ */

/* Cases of op_case. Norms with a detached part are left out: their gradient is not the
 * derivative of their value. */
static const char *const swept_norms[] = {
    "layer_norm",       "rms_norm",   "batch_norm",       "group_norm_N_C", "dynamic_tanh",
    "channel_norm_N_C", "scale_norm", "ghost_batch_norm", "weight_norm",    "instance_norm_N_C_L"};
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

/* A norm, its inputs, and the exact gradients of sum_j u_j y_j, u being the cotangent: those of the
 * library in double. */
typedef struct {
    const gradient_case *spec;
    bool in_float; /* values are computed in float */
    int count;
    ng_tensor *inputs[CASE_INPUTS], *gradients[CASE_INPUTS], *cotangent;
    ng_tape *tape;
} moved_norm;

static moved_norm begin(const char *name, bool in_float, uint64_t seed)
{
    moved_norm m = {.spec = swept_case(name), .in_float = in_float, .tape = ng_tape_new()};
    ng_rng rng = ng_rng_seeded(seed), other = ng_rng_seeded(seed ^ 0x5eed);
    ng_tensor *gradients[CASE_INPUTS];
    for (; m.count < CASE_INPUTS && m.spec->inputs[m.count].name; m.count++)
        m.inputs[m.count] = ng_require_grad(case_input_new(&m.spec->inputs[m.count], &rng));
    ng_tensor *y = m.spec->call(m.tape, m.inputs, NULL);
    m.cotangent = ng_normal_new(NG_F64, ng_shape_of(y), 0, 1, &other);
    ng_gradients(m.tape, &y, 1, m.inputs, m.count, gradients, .cotangents = &m.cotangent);
    for (int i = 0; i < m.count && still_works(); i++)
        m.gradients[i] = ng_copy_new(gradients[i], NG_F64);
    ng_tape_reset(m.tape);
    ng_tape_set_recording(m.tape, false);
    return m;
}

static void end(moved_norm *m)
{
    for (int i = 0; i < m->count; i++)
        ng_tensor_free(m->inputs[i]), ng_tensor_free(m->gradients[i]);
    ng_tensor_free(m->cotangent), ng_tape_free(m->tape);
}

static ng_tensor *value_at(const moved_norm *m, ng_tensor *const *x)
{
    ng_tensor *given[CASE_INPUTS];
    if (!m->in_float) return m->spec->call(m->tape, x, NULL);
    for (int i = 0; i < m->count; i++) given[i] = ng_cast(m->tape, x[i], NG_F32);
    return ng_cast(m->tape, m->spec->call(m->tape, given, NULL), NG_F64);
}

/* The central difference of element e of an input, output by output. */
static double difference(const moved_norm *norm, ng_tensor *x, int64_t e, double h)
{
    const double at = ng_get(x, e);
    long double sum = 0;
    ng_set(x, e, at + h);
    const double up = ng_get(x, e) - at;
    const ng_tensor *plus = value_at(norm, norm->inputs);
    ng_set(x, e, at - h);
    const double down = ng_get(x, e) - at;
    const ng_tensor *minus = value_at(norm, norm->inputs);
    ng_set(x, e, at);
    for (int64_t j = 0; j < ng_size(plus); j++)
        sum += (long double)ng_get(norm->cotangent, j) *
               ((long double)ng_get(plus, j) - (long double)ng_get(minus, j));
    ng_tape_reset(norm->tape);
    return (double)(sum / ((long double)up - (long double)down));
}

/* The size of an element, a power of two: its own, or the root mean square of its tensor. */
static double size_of(const ng_tensor *x, int64_t e)
{
    double squares = 0;
    for (int64_t i = 0; i < ng_size(x); i++) squares += ng_get(x, i) * ng_get(x, i);
    return exp2(round(log2(fmax(fabs(ng_get(x, e)), sqrt(squares / (double)ng_size(x))))));
}

/* The median over all elements of the relative error at one step. */
static double median_error(const moved_norm *norm, double step)
{
    double errors[256];
    int n = 0;
    for (int i = 0; i < norm->count; i++)
        for (int64_t e = 0; e < ng_size(norm->inputs[i]) && n < 256; e++) {
            const double exact = ng_get(norm->gradients[i], e);
            const double h = step * size_of(norm->inputs[i], e);
            if (exact == 0) continue;
            errors[n++] = fabs(difference(norm, norm->inputs[i], e, h) / exact - 1);
        }
    return median_of(errors, n);
}

/* ---- Central differences -------------------------------------------------------------------- */

/* Returns the slope of the errors between two steps, of which there are `per_decade`. */
static double slope_between(const double *errors, int n, double per_decade, double from, double to)
{
    double x[SWEEP_STEPS], y[SWEEP_STEPS];
    int count = 0;
    for (int i = 0; i < n; i++) {
        const double step = pow(10, -i / per_decade);
        if (step < from || step > to) continue;
        x[count] = log10(step), y[count++] = log10(errors[i]);
    }
    return lab_slope(x, y, count);
}

/* Writes the block of one precision and sets found[finding][run]. A run is a norm with a seed. */
static void measure_differences(bool in_float, double *found[FINDINGS])
{
    const int runs = SWEPT_NORMS * lab_seeds();
    const double best = cbrt(in_float ? (double)FLT_EPSILON : DBL_EPSILON);
    curve_set *curves = new_curves("step", in_float ? "float" : "double");
    for (int run = 0; run < runs && still_works(); run++) {
        moved_norm norm =
            begin(swept_norms[run / lab_seeds()], in_float, lab_seed(run % lab_seeds()));
        double errors[SWEEP_STEPS];
        int lowest = 0;
        for (int i = 0; i < SWEEP_STEPS; i++) {
            errors[i] = median_error(&norm, sweep_step(i));
            log_curves(curves, run, "error", sweep_step(i), errors[i]);
            if (errors[i] < errors[lowest]) lowest = i;
        }
        end(&norm);
        if (!in_float)
            found[SLOPE][run] = slope_between(errors, SWEEP_STEPS, 8, 10 * best, 1000 * best);
        found[in_float ? FLOAT_ROUNDING : ROUNDING][run] =
            slope_between(errors, SWEEP_STEPS, 8, best / 1000, best / 10);
        found[in_float ? FLOAT_STEP : STEP][run] = log10(sweep_step(lowest) / best);
        if (in_float) found[FLOAT_ERROR][run] = log10(errors[lowest] / (best * best));
    }
}

/* ---- Taylor --------------------------------------------------------------------------------- */

/* Returns sum_j u_j y_j at inputs + h directions. */
static double contracted(const moved_norm *norm, ng_tensor *const *directions, double h)
{
    ng_tape *tape = norm->tape;
    ng_tensor *moved[CASE_INPUTS];
    for (int i = 0; i < norm->count; i++)
        moved[i] = ng_add(tape, norm->inputs[i], ng_mul_scalar(tape, directions[i], h));
    const double value =
        ng_item(ng_sum(tape, ng_mul(tape, value_at(norm, moved), norm->cotangent)));
    ng_tape_reset(tape);
    still_works();
    return value;
}

enum { GRADIENTS = 2, STEPS = 33 }; /* steps from 1 to 1e-8, four per decade */
static const struct {
    const char *block;
    double factor, from, to; /* the steps at which the slope is fitted */
} gradients[GRADIENTS] = {{"Taylor, right", 1, 1e-5, 1e-3}, {"Taylor, wrong", 1.01, 1e-7, 1e-5}};
static double taylor_step(int index) { return pow(10, -index / 4.0); }

/* Logs the remainders of one run, relative to the slope, and sets found[RIGHT or WRONG][run]. */
static void measure_remainders(const moved_norm *norm, uint64_t seed, curve_set *curves[GRADIENTS],
                               double *found[FINDINGS], int run)
{
    double remainders[GRADIENTS][STEPS], slope = 0;
    ng_tensor *directions[CASE_INPUTS];
    ng_rng rng = ng_rng_seeded(seed ^ 0xd14ec7);
    for (int i = 0; i < norm->count; i++) {
        directions[i] = ng_normal_new(NG_F64, ng_shape_of(norm->inputs[i]), 0, 1, &rng);
        slope += ng_item(ng_dot(norm->tape, norm->gradients[i], directions[i]));
    }
    const double base = contracted(norm, directions, 0);
    for (int s = 0; s < STEPS; s++) {
        const double h = taylor_step(s), change = contracted(norm, directions, h) - base;
        for (int g = 0; g < GRADIENTS; g++) {
            remainders[g][s] = fabs(change - h * gradients[g].factor * slope) / fabs(slope);
            log_curves(curves[g], run, "remainder", h, remainders[g][s]);
        }
    }
    for (int g = 0; g < GRADIENTS; g++)
        found[RIGHT + g][run] =
            slope_between(remainders[g], STEPS, 4, gradients[g].from, gradients[g].to);
    for (int i = 0; i < norm->count; i++) ng_tensor_free(directions[i]);
}

static void measure_taylor(double *found[FINDINGS])
{
    curve_set *curves[GRADIENTS];
    for (int g = 0; g < GRADIENTS; g++) curves[g] = new_curves("step", "%s", gradients[g].block);
    for (int run = 0; run < SWEPT_NORMS * lab_seeds() && still_works(); run++) {
        const uint64_t seed = lab_seed(run % lab_seeds());
        moved_norm norm = begin(swept_norms[run / lab_seeds()], false, seed);
        measure_remainders(&norm, seed, curves, found, run);
        end(&norm);
    }
}

/* Judges the norm that is farthest from theory, seed by seed. */
static void judge(int finding, const double *found)
{
    const double theory = findings[finding].theory;
    double *farthest = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        farthest[seed] = theory;
        for (int n = 0; n < SWEPT_NORMS; n++) {
            const double value = found[n * lab_seeds() + seed];
            if (!(fabs(value - theory) <= fabs(farthest[seed] - theory))) farthest[seed] = value;
        }
    }
    lab_judge(NULL, farthest, lab_near(theory, findings[finding].tolerance),
              "%s, farthest of ten norms", findings[finding].name);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &gradcheck_error);
    lab_data("central differences and Taylor's remainders of %d norms", (int)SWEPT_NORMS);
    double *found[FINDINGS];
    for (int k = 0; k < FINDINGS; k++) found[k] = lab_numbers(SWEPT_NORMS * lab_seeds());
    measure_differences(false, found), measure_differences(true, found);
    measure_taylor(found);
    for (int k = 0; k < FINDINGS; k++) judge(k, found[k]);
    return lab_end();
}
