/* Internal covariate shift, and whether reducing it is what norms are good for: the drift of a
 * hidden layer's inputs, and the range of the loss along the gradient, by norm, and with noise. */
#include "lab.h"

enum { WIDTH, EPOCHS };
static option sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 100, .quick = 32},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 20, .quick = 2},
    {0}};

static const lab_experiment experiment = {
    .id = "covariate_shift",
    .source = "documents 000, 001, 003 (4.1) and 004; Ioffe & Szegedy 2015, figure 1; Santurkar et "
              "al. 2018, figures 2 and 4",
    .claim = "the distribution of a layer's inputs shifts as the layers before it learn, and norms "
             "reduce that shift; yet they help because they smooth the loss, not because of it",
    .method =
        "Ioffe & Szegedy's network, three hidden layers of 100 sigmoids, learns the digits by "
        "gradient descent in batches of 60, all kinds at the rate that is best without a norm. "
        "After each epoch, over the validation images: the 15th, 50th and 85th percentile of the "
        "input of each sigmoid in the last hidden layer, and how far these three have moved on "
        "average (median over the units). The drift is the sum of these moves. At every tenth "
        "step: the loss of the step's batch at 8 points along its gradient, from half to four "
        "times the rate, highest less lowest: the range, in the median over the steps. Noise, as "
        "in Santurkar et al., after BatchNorm: y = s x + m, drawn anew at each step for each "
        "feature, m from U(-0.5, 0.5), s from U(1, 1.25), and each sample's around them.",
    .rule = "from the same seed, as a share of no norm's: with each norm the drift and the range "
            "of the loss are below 1; with noise after BatchNorm the drift is above that of "
            "BatchNorm alone, and the loss of the last epoch is nevertheless below no norm's",
    .seeds = 15,
    .sizes = sizes};

enum { PLAIN, BATCH_NORM, LAYER_NORM, RMS_NORM, NOISY, KINDS };
enum { HIDDEN = 3, BATCH = 60, EVERY = 10, POINTS = 8, PERCENTS = 3, MOST_PARAMETERS = 32 };
static const char *const names[KINDS] = {"no norm", "BatchNorm", "LayerNorm", "RMSNorm",
                                         "BatchNorm and noise"};
static const double percents[PERCENTS] = {15, 50, 85};

/* ---- The networks ---- */

static uint64_t noise_now; /* seed of the noise, the same at all points of a step */

static double between(ng_rng *rng, double low, double high)
{
    return low + (high - low) * ng_rng_uniform(rng);
}

/* y = s x + m, per feature and sample. */
static ng_tensor *add_noise(ng_tape *tape, ng_tensor *x)
{
    ng_tensor *s = ng_result(tape, NG_F32, ng_shape_of(x));
    ng_tensor *m = ng_result(tape, NG_F32, ng_shape_of(x));
    const int64_t samples = ng_dim(x, 0), features = ng_dim(x, 1);
    ng_rng rng = ng_rng_seeded(noise_now);
    for (int64_t k = 0; s && m && k < features; k++) {
        const double shift = between(&rng, -0.5, 0.5), scale = between(&rng, 1, 1.25);
        for (int64_t i = 0; i < samples; i++) {
            ng_data_f32(m)[i * features + k] = (float)between(&rng, shift - 0.1, shift + 0.1);
            ng_data_f32(s)[i * features + k] = (float)(scale + 0.1 * ng_rng_normal(&rng));
        }
    }
    noise_now += 1000; /* the next layer's */
    return ng_add(tape, ng_mul(tape, x, s), m);
}

/* Returns a Linear with weights four times as wide as for tanh, as sigmoids need. Glorot & Bengio
 * 2010. */
static ng_module *linear(int64_t in, int64_t out)
{
    return ng_linear_new(in, out, .init = NG_INIT_NORMAL,
                         .init_value = 4 * sqrt(2.0 / (double)(in + out)));
}

/* Returns (Linear, norm, sigmoid) x 3, Linear. */
static ng_module *network(int kind, uint64_t seed)
{
    const int64_t width = get_whole(WIDTH);
    const lab_norm *norm = &lab_norms[kind == NOISY ? BATCH_NORM : kind];
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < HIDDEN; i++) {
        ng_sequential_add(net, linear(i == 0 ? 64 : width, width));
        if (norm->make) ng_sequential_add(net, norm->make(width));
        if (kind == NOISY) ng_sequential_add(net, ng_function_new("noise", add_noise));
        ng_sequential_add(net, ng_sigmoid_new());
    }
    ng_sequential_add(net, linear(width, 10));
    ng_module_init(net, seed);
    return net;
}

/* ---- Measurements ---- */

/* Sets the percentiles (unit, PERCENTS) of the inputs of the last hidden layer's sigmoids. */
static void look_at_inputs(const lab_run *r, int inputs, double *percentiles)
{
    ng_tape *tape = r->tape;
    ng_batch all;
    const bool was = ng_tape_set_recording(tape, false);
    ng_dataset_batch(r->rest, tape, 0, ng_dataset_count(r->rest), &all);
    ng_tensor *x = lab_forward_part(r->net, 0, inputs, tape, all.x);
    const int64_t width = get_whole(WIDTH);
    const ng_tensor *sorted = ng_sort(tape, x, .axes = NG_AXES(0));
    for (int64_t i = 0; i < width * PERCENTS && still_works(); i++) {
        const int64_t unit = i / PERCENTS;
        const double at = percents[i % PERCENTS] / 100 * (double)(all.size - 1);
        const int64_t below = (int64_t)at, above = below + (at > (double)below);
        const double part = at - (double)below, value = ng_at(sorted, below, unit);
        percentiles[i] = (1 - part) * value + part * ng_at(sorted, above, unit);
    }
    ng_tape_set_recording(tape, was), ng_tape_reset(tape);
}

/* Returns the mean move of a unit's percentiles between two measurements, in the median. */
static double move_of(const double *before, const double *after)
{
    const int width = get_whole(WIDTH);
    double *moves = lab_numbers(width);
    for (int i = 0; i < width * PERCENTS; i++)
        moves[i / PERCENTS] += fabs(after[i] - before[i]) / (double)PERCENTS;
    return lab_median(moves, width);
}

/* Returns the highest less the lowest loss of the batch along its gradient. */
static double range_of(ng_module *net, ng_tape *tape, const ng_batch *batch, double rate)
{
    ng_tensor *parameters[MOST_PARAMETERS], *gradients[MOST_PARAMETERS], *moved[MOST_PARAMETERS];
    ng_named_tensor p;
    int count = 0;
    double low = HUGE_VAL, high = -HUGE_VAL;
    const uint64_t noise = noise_now;
    for (; ng_module_parameter(net, count, &p); count++) parameters[count] = p.tensor;
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch->x), batch->y);
    ng_gradients(tape, &loss, 1, parameters, count, gradients);
    still_works();
    const bool was = ng_tape_set_recording(tape, false);
    for (int i = 0; i < POINTS; i++) {
        const double step = rate * 0.5 * pow(8, (double)i / (POINTS - 1));
        for (int k = 0; k < count; k++)
            moved[k] = ng_sub(tape, parameters[k], ng_mul_scalar(tape, gradients[k], step));
        noise_now = noise;
        ng_tensor *y = ng_forward_using(net, tape, moved, count, batch->x);
        const double there = ng_item(ng_cross_entropy(tape, y, batch->y));
        low = fmin(low, there), high = fmax(high, there);
    }
    ng_tape_set_recording(tape, was);
    noise_now = noise;
    return high - low;
}

/* What one training gives. */
typedef struct {
    double drift, range, loss;
} outcome;

/* What it logs: drift and loss by epoch, the range by step, and by epoch the percentiles of the
 * first seed's first unit. */
typedef struct {
    curve_set *epochs, *ranges, *unit;
} logs;

/* Trains. Unless `to` is NULL, measures drift and range, and logs them. */
static outcome train(int kind, double rate, uint64_t seed, int index, const logs *to)
{
    lab_run r = lab_begin_run(network(kind, seed), seed);
    r.optimizer = ng_sgd_new(r.net, .lr = rate);
    const int per_layer = kind == PLAIN ? 2 : kind == NOISY ? 4 : 3, epochs = get_whole(EPOCHS);
    const int steps = LAB_DIGITS / BATCH, inputs = HIDDEN * per_layer - 1;
    const int64_t count = (int64_t)get_whole(WIDTH) * PERCENTS;
    double *before = lab_numbers(count), *after = lab_numbers(count);
    double *ranges = lab_numbers(epochs * (steps / EVERY + 1));
    int looks = 0;
    outcome o = {0, 0, 0};
    for (int epoch = 0; epoch <= epochs && still_works(); epoch++) {
        noise_now = (seed + 1) * 1000000000 + (uint64_t)epoch;
        if (to) look_at_inputs(&r, inputs, after);
        if (to && epoch > 0) {
            o.drift += move_of(before, after);
            log_curves(to->epochs, index, "drift loss rate", epoch, o.drift, o.loss, rate);
        }
        if (to && index == 0)
            log_curves(to->unit, 0, "p15 p50 p85", epoch, after[0], after[1], after[2]);
        for (int64_t i = 0; i < count; i++) before[i] = after[i];
        if (epoch == epochs) break;
        ng_dataset_shuffle(r.data, (uint64_t)epoch);
        o.loss = 0;
        for (int step = 0; step < steps && still_works(); step++) {
            ng_batch batch;
            noise_now = (seed + 1) * 1000000000 + (uint64_t)(epoch * steps + step) * 10000;
            ng_dataset_batch(r.data, r.tape, step, BATCH, &batch);
            if (to && step % EVERY == 0) {
                ranges[looks] = range_of(r.net, r.tape, &batch, rate);
                log_curves(to->ranges, index, "range", epoch * steps + step, ranges[looks]);
                looks++;
            }
            ng_tensor *loss = ng_cross_entropy(r.tape, ng_forward(r.net, r.tape, batch.x), batch.y);
            o.loss += ng_item(loss) / steps;
            if (ng_backward(r.tape, loss) || ng_optimizer_step(r.optimizer)) break;
            ng_tape_reset(r.tape);
        }
    }
    o.range = lab_median(ranges, looks);
    lab_end_run(&r);
    return o;
}

static double tuning_loss(void *context, double rate, uint64_t seed)
{
    (void)context;
    return train(PLAIN, rate, seed, 0, NULL).loss;
}

/* ---- Results ---- */

static double *drifts[KINDS], *ranges[KINDS], *losses[KINDS];

static void measure(int kind, double rate)
{
    const logs to = {new_curves("epoch", "%s", names[kind]),
                     new_curves("step", "range, %s", names[kind]),
                     new_curves("epoch", "a unit, %s", names[kind])};
    drifts[kind] = lab_numbers(lab_seeds()), ranges[kind] = lab_numbers(lab_seeds());
    losses[kind] = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++) {
        const outcome o = train(kind, rate, lab_seed(seed), seed, &to);
        drifts[kind][seed] = o.drift, ranges[kind][seed] = o.range, losses[kind][seed] = o.loss;
    }
}

static void judge(int kind, int base, double *const of[KINDS], lab_range claimed, const char *what)
{
    lab_judge(kind == NOISY ? "BatchNorm" : names[kind], lab_quotients(of[kind], of[base]), claimed,
              "%s%s, as a share of %s's", what, kind == NOISY ? ", noise after it" : "",
              names[base]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    const double rate = lab_best_rate(1, tuning_loss, NULL);
    lab_data("64-%d-%d-%d-10, sigmoids, batches of %d, gradient descent at %g", get_whole(WIDTH),
             get_whole(WIDTH), get_whole(WIDTH), BATCH, rate);
    for (int kind = 0; kind < KINDS; kind++) measure(kind, rate);
    for (int kind = BATCH_NORM; kind <= RMS_NORM; kind++) {
        judge(kind, PLAIN, drifts, lab_below(1), "drift of a unit's inputs");
        judge(kind, PLAIN, ranges, lab_below(1), "range of the loss along the gradient");
    }
    judge(NOISY, BATCH_NORM, drifts, lab_above(1), "drift of a unit's inputs");
    judge(NOISY, PLAIN, losses, lab_below(1), "loss of the last epoch");
    return lab_end();
}
