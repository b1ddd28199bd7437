/* The effective learning rate of weights before a norm, rate / |w|^2, and the role of weight
 * decay. */
#include "lab.h"

enum { WIDTH, STEPS, LONG };
static option sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 32},
    [STEPS] = {"steps", "steps of the runs at several scales", .normal = 200, .quick = 20},
    [LONG] = {"long", "steps of the runs to equilibrium", .normal = 3000, .quick = 60},
    {0}};

static const lab_experiment experiment = {
    .id = "effective_rate",
    .source = "van Laarhoven 2017; Zhang et al. 2019; Wan et al. 2021",
    .claim = "weights before a norm learn at the effective rate, rate / |w|^2: runs with the same "
             "effective rate coincide, and weight decay only sets this rate, so that at "
             "equilibrium the weights rotate by sqrt(2 rate decay) per step at any rate",
    .method = "64 - (Linear, norm, ReLU) x 2 - 10, no gamma and beta, eps 1e-20, in double; digits "
              "in batches of 64, plain gradient descent. The hidden matrices, their rate and their "
              "decay are multiplied by s, s^2 and 1 / s^2, with s = 1/10 and 10, which keeps the "
              "effective rate. Measured: the largest relative difference of the loss from that of "
              "s = 1. Then these matrices have the rates 0.02 and 0.5 and a decay such that rate "
              "times decay is 0.002. Measured in the last quarter: the mean square of the angle by "
              "which a matrix rotates in a step, and the effective rate.",
    .rule = "the loss of the scaled runs differs by less than 1e-9 with each norm, and by more "
            "than 1e-3 without one; with each norm and rate the angle is within 10 % of sqrt(2 "
            "rate decay), and the effective rate at 0.5 is within 25 % of that at 0.02",
    .dtype = "float64",
    .seeds = 11,
    .sizes = sizes};

enum { NORMS = 4, SCALES = 2, RATES = 2, BATCH = 64, LAYERS = 2, LOOKS = 30 };
#define PRODUCT 0.002
#define BASE_RATE 0.1
static const double scales[SCALES] = {0.1, 10}, rates[RATES] = {0.02, 0.5};

static ng_module *make_batch(int64_t n)
{
    return ng_batch_norm_new(n, .no_affine = true, .eps = 1e-20);
}
static ng_module *make_layer(int64_t n)
{
    return ng_layer_norm_new(n, .no_affine = true, .eps = 1e-20);
}
static ng_module *make_rms(int64_t n)
{
    return ng_rms_norm_new(n, .no_affine = true, .eps = 1e-20);
}
static const lab_norm norms[NORMS] = {
    {"no norm", NULL}, {"BatchNorm", make_batch}, {"LayerNorm", make_layer}, {"RMSNorm", make_rms}};

/* ---- One run ---- */

/* Begins a run in double whose hidden matrices are multiplied by `scale` and have their own rate
 * and decay. */
static lab_run begin(const lab_norm *norm, uint64_t seed, double scale, double rate, double decay)
{
    lab_run r = lab_begin_run(lab_network(norm, ng_relu_new, get_whole(WIDTH), LAYERS, seed), seed);
    ng_dataset *single = r.data;
    r.data = ng_dataset_from(ng_cast(r.tape, ng_dataset_x(single), NG_F64), ng_dataset_y(single));
    ng_module_to(r.net, NG_F64);
    r.optimizer = ng_sgd_new(r.net, .lr = BASE_RATE);
    for (int l = 0; l < LAYERS; l++) {
        const int linear = l * (norm->make ? 3 : 2);
        const line weight = line_of("%d.weight", linear), bias = line_of("%d.bias", linear);
        ng_tensor *w = ng_module_find(r.net, weight.text);
        ng_copy_values(w, ng_mul_scalar(r.tape, w, scale));
        ng_optimizer_scale_lr(r.optimizer, weight.text, rate / BASE_RATE);
        ng_optimizer_set_decay(r.optimizer, weight.text, decay);
        ng_fill(ng_module_find(r.net, bias.text), 0);
        ng_optimizer_scale_lr(r.optimizer, bias.text, 0); /* a bias must stay 0 */
    }
    ng_tape_reset(r.tape), ng_dataset_free(single);
    still_works();
    return r;
}

/* ---- Runs that coincide ---- */

static void measure_scales(int norm)
{
    const int steps = get_whole(STEPS);
    double *apart = lab_numbers(steps), *worst = lab_numbers(lab_seeds());
    curve_set *curves = new_curves("step", "%s", norms[norm].name);
    for (int seed = 0; seed < lab_seeds(); seed++) {
        for (int k = 0; k < SCALES && still_works(); k++) {
            const double s = scales[k], decay = PRODUCT / BASE_RATE;
            lab_run first = begin(&norms[norm], lab_seed(seed), 1, BASE_RATE, decay);
            lab_run other =
                begin(&norms[norm], lab_seed(seed), s, BASE_RATE * s * s, decay / (s * s));
            for (int i = 0; i < steps; i++) {
                const double plain = lab_step(&first, BATCH, 0);
                const double off = fabs(lab_step(&other, BATCH, 0) / plain - 1);
                apart[i] = isnan(off) ? HUGE_VAL : k == 0 ? off : fmax(apart[i], off);
                worst[seed] = fmax(worst[seed], apart[i]);
            }
            lab_end_run(&first), lab_end_run(&other);
        }
        for (int i = 0; i < steps; i++) log_curves(curves, seed, "apart", i, apart[i]);
    }
    const bool coincide = norms[norm].make;
    lab_judge(
        coincide ? norms[norm].name : NULL, worst, coincide ? lab_below(1e-9) : lab_above(1e-3),
        "loss at scales 1/10 and 10 off that at 1, as a share%s", coincide ? "" : ", no norm");
}

/* ---- Equilibria ---- */

/* Returns |w|^2. */
static double squared(const double *w, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += w[i] * w[i];
    return sum;
}

/* Sets the second matrix's mean squared angle and rate / |w|^2 in each of LOOKS parts. */
static void turn(int norm, double rate, uint64_t seed, double *angles, double *effective)
{
    const int part = get_whole(LONG) < LOOKS ? 1 : get_whole(LONG) / LOOKS;
    lab_run r = begin(&norms[norm], seed, 1, rate, PRODUCT / rate);
    ng_tensor *second = ng_module_find(r.net, "3.weight");
    const int64_t count = ng_size(second);
    double *before = lab_numbers(count), *w = ng_data_f64(second);
    for (int i = 0; i < part * LOOKS && still_works(); i++) {
        for (int64_t k = 0; k < count; k++) before[k] = w[k];
        lab_step(&r, BATCH, 0);
        double both = 0;
        for (int64_t k = 0; k < count; k++) both += before[k] * w[k];
        const double is = squared(w, count), was = squared(before, count);
        const double cosine = both / sqrt(is * was);
        angles[i / part] += (1 - cosine * cosine) / part;
        effective[i / part] += rate / is / part;
    }
    lab_end_run(&r);
}

static double at_the_end(const double *values)
{
    double sum = 0;
    for (int i = LOOKS * 3 / 4; i < LOOKS; i++) sum += values[i] / (LOOKS - LOOKS * 3 / 4);
    return sum;
}

static void measure_turning(int norm)
{
    double *last[RATES];
    for (int k = 0; k < RATES; k++) {
        curve_set *curves = new_curves("step", "%s, rate %g", norms[norm].name, rates[k]);
        double *angle = lab_numbers(lab_seeds());
        last[k] = lab_numbers(lab_seeds());
        for (int seed = 0; seed < lab_seeds(); seed++) {
            double angles[LOOKS] = {0}, effective[LOOKS] = {0};
            turn(norm, rates[k], lab_seed(seed), angles, effective);
            angle[seed] = sqrt(at_the_end(angles) / (2 * PRODUCT));
            last[k][seed] = at_the_end(effective);
            for (int i = 0; i < LOOKS; i++) {
                const double step = (i + 0.5) * get_whole(LONG) / (double)LOOKS;
                log_curves(curves, seed, "angle effective theory", step, sqrt(angles[i]),
                           effective[i], sqrt(2 * PRODUCT));
            }
        }
        lab_judge(norms[norm].name, angle, lab_near(1, 0.1),
                  "angle of a step over sqrt(2 rate decay), rate %g", rates[k]);
    }
    lab_judge(norms[norm].name, lab_quotients(last[RATES - 1], last[0]), lab_near(1, 0.25),
              "effective rate at the end, rate %g over rate %g", rates[RATES - 1], rates[0]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%d-%d-10, batches of %d, rate times decay %g", get_whole(WIDTH), get_whole(WIDTH),
             BATCH, PRODUCT);
    for (int norm = 0; norm < NORMS; norm++) {
        measure_scales(norm);
    }
    for (int norm = 1; norm < NORMS; norm++) measure_turning(norm);
    return lab_end();
}
