/* What a norm does to the signals of a deep network: the size of activations and gradients by
 * layer, the growth of gradients in wide layers, and the saturation of tanh. */
#include "lab.h"

enum { WIDTH, DEPTH, EPOCHS, WIDE, DEEP };
enum { NORMS = 4, GAINS = 3, TIMES = 2, TANH_DEPTH = 6, SCALES = 4, ASKED = 2, OUTERMOST = 8 };
enum { MOST_DEPTH = 100, PROBE = 256, BATCH = 64 };
static option sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64, .quick = 32},
    [DEPTH] = {"depth", "hidden layers", .normal = 24, .quick = 10, .most = MOST_DEPTH},
    [EPOCHS] = {"epochs", "passes over the data", .normal = 10, .quick = 1},
    [WIDE] = {"wide", "features of the wide layers", .normal = 512, .quick = 32},
    [DEEP] = {"deep", "wide layers", .normal = 40, .quick = 20, .least = 2 * OUTERMOST + 2,
              .most = MOST_DEPTH},
    {0}};

static const lab_experiment experiment = {
    .id = "signals",
    .source = "documents 001, 003 (4.5, benefits 1 and 2) and 004; Ioffe & Szegedy 2015; Yang et "
              "al. 2019",
    .claim = "without a norm activations and gradients grow or shrink from layer to layer, and "
             "tanh saturates; with one all layers receive signals of the same size",
    .method =
        "64 - (Linear, norm, ReLU) x 24 - 10 on the digits, hidden weights 1/2, 1 and 2 times as "
        "wide as He et al. 2015 have them. Measured on 256 validation images, at the start and "
        "after 10 epochs of gradient descent at one rate: the root mean square of each ReLU's "
        "output, and of the gradient of the loss at each Linear's output. The spread is the "
        "largest of all layers over the smallest. Growth: the same at the start with 40 layers of "
        "512, the squared gradient's fitted growth a layer without the eight outermost layers at "
        "either end; in theory pi / (pi - 1) with BatchNorm and 1 with the others. Saturation: 6 "
        "layers of tanh, weights 1 to 8 times Xavier's deviation, 10 epochs, each kind at its own "
        "best rate; the share of values with |tanh| > 0.99.",
    .rule =
        "for the worse of weights times 1/2 and 2: the spreads at the start are above 1000 without "
        "a norm; after training that of the activations is below 2 and that of the gradients below "
        "30 with each norm. Growth is within 0.02 of theory with BatchNorm, 0.05 with the others. "
        "With 4 times Xavier's deviation the saturated share after training is above 0.2 without a "
        "norm and below 0.05 with each, which then has a lower last loss",
    .seeds = 15,
    .sizes = sizes};

#define RATE 0.01
static const double gains[GAINS] = {0.5, 1, 2}, scales[SCALES] = {1, 2, 4, 8};
static const char *const times[TIMES] = {"start", "trained"};

/* Returns a network whose hidden matrices are from N(0, gain^2 square / fan_in), without biases. */
static ng_module *make_network(const lab_norm *norm, ng_module *activation(void), int width,
                               int depth, double square, double gain, uint64_t seed)
{
    ng_module *net = lab_network(norm, activation, width, depth, seed);
    ng_named_tensor p;
    ng_rng rng = ng_rng_seeded(seed);
    lab_he_weights(net, seed);
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        if (ng_rank(p.tensor) == 2 && ng_dim(p.tensor, 0) != 10)
            ng_fill_normal(p.tensor, 0, gain * sqrt(square / (double)ng_dim(p.tensor, 1)), &rng);
    still_works();
    return net;
}

static double root_mean_square(const ng_tensor *x)
{
    double sum = 0;
    for (int64_t i = 0; i < ng_size(x); i++) sum += ng_get(x, i) * ng_get(x, i);
    return sqrt(sum / (double)ng_size(x));
}

/* By layer: the size of the activations, and of the gradient at the Linear's output. And the share
 * of all activations beyond 0.99. */
typedef struct {
    double activation[MOST_DEPTH], gradient[MOST_DEPTH], saturated;
} look;

static look look_at(const lab_norm *norm, const lab_run *r, int depth)
{
    ng_module *net = r->net;
    ng_tape *tape = r->tape;
    ng_batch probe;
    ng_tensor *products[MOST_DEPTH], *gradients[MOST_DEPTH];
    const int children = norm->make ? 3 : 2; /* per layer */
    look seen = {0};
    ng_dataset_batch(r->rest, tape, 0, PROBE, &probe);
    ng_tensor *x = probe.x;
    for (int l = 0; l < depth; l++) {
        products[l] = ng_forward(ng_module_child(net, l * children), tape, x);
        x = lab_forward_part(net, l * children + 1, (l + 1) * children, tape, products[l]);
        still_works();
        seen.activation[l] = root_mean_square(x);
        for (int64_t i = 0; i < ng_size(x); i++)
            seen.saturated += (fabs(ng_get(x, i)) > 0.99) / ((double)ng_size(x) * depth);
    }
    x = ng_forward(ng_module_child(net, depth * children), tape, x);
    ng_tensor *loss = ng_cross_entropy(tape, x, probe.y);
    ng_gradients(tape, &loss, 1, products, depth, gradients);
    still_works();
    for (int l = 0; l < depth; l++) seen.gradient[l] = root_mean_square(gradients[l]);
    ng_tape_reset(tape);
    return seen;
}

/* Trains a network and frees it. Sets what is seen at the start and after training; returns the
 * last epoch's loss. */
static double train(const lab_norm *norm, ng_module *net, int depth, double rate, uint64_t seed,
                    look seen[TIMES])
{
    double loss = 0;
    lab_run r = lab_begin_run(net, seed);
    r.optimizer = ng_sgd_new(net, .lr = rate);
    if (seen) seen[0] = look_at(norm, &r, depth);
    for (int epoch = 0; epoch < get_whole(EPOCHS); epoch++)
        loss = lab_epoch(&r, BATCH, (uint64_t)epoch);
    if (seen) seen[1] = look_at(norm, &r, depth);
    lab_end_run(&r);
    return isnan(loss) ? HUGE_VAL : loss;
}

/* ---- Sizes of activations and gradients by layer ---- */

static double spread_of(const double *at, int depth)
{
    double least = HUGE_VAL, most = 0;
    for (int l = 0; l < depth; l++) {
        if (!isfinite(at[l])) return HUGE_VAL;
        least = fmin(least, at[l]), most = fmax(most, at[l]);
    }
    return most / least;
}

static void judge_spread(int norm, const double *spread, const char *what)
{
    const bool none = norm == 0, gradients = what[0] == 'g';
    lab_judge(none ? NULL : lab_norms[norm].name, spread,
              none ? lab_above(1000) : lab_below(gradients ? 30 : 2),
              "spread of the %s over the layers, %s", what,
              none ? "at the start, no norm" : "trained");
}

/* The worse spread of small and large weights: the smallest without a norm, else the largest. */
static void measure_layers(int norm)
{
    const int depth = get_whole(DEPTH), seeds = lab_seeds();
    double *activations = lab_numbers(seeds), *gradients = lab_numbers(seeds);
    for (int gain = 0; gain < GAINS; gain++) {
        curve_set *curves[TIMES];
        for (int time = 0; time < TIMES; time++)
            curves[time] =
                new_curves("layer", "%s, %g, %s", lab_norms[norm].name, gains[gain], times[time]);
        for (int seed = 0; seed < seeds; seed++) {
            look seen[TIMES];
            ng_module *net = make_network(&lab_norms[norm], ng_relu_new, get_whole(WIDTH), depth, 2,
                                          gains[gain], lab_seed(seed));
            train(&lab_norms[norm], net, depth, RATE, lab_seed(seed), seen);
            for (int time = 0; time < TIMES; time++)
                for (int l = 0; l < depth; l++)
                    log_curves(curves[time], seed, "activation gradient", l + 1,
                               seen[time].activation[l], seen[time].gradient[l]);
            const look *asked = &seen[norm > 0];
            const double a = spread_of(asked->activation, depth);
            const double g = spread_of(asked->gradient, depth);
            if (gains[gain] == 1) continue;
            activations[seed] = gain == 0   ? a
                                : norm == 0 ? fmin(a, activations[seed])
                                            : fmax(a, activations[seed]);
            gradients[seed] = gain == 0   ? g
                              : norm == 0 ? fmin(g, gradients[seed])
                                          : fmax(g, gradients[seed]);
        }
    }
    judge_spread(norm, activations, "activations");
    judge_spread(norm, gradients, "gradients");
}

/* ---- Growth in wide layers ---- */

static void measure_growth(int norm)
{
    const int depth = get_whole(DEEP), seeds = lab_seeds();
    const bool of_batches = norm == LAB_BATCH;
    const double pi = acos(-1), theory = of_batches ? pi / (pi - 1) : 1;
    double *growth = lab_numbers(seeds), layer[MOST_DEPTH], logarithm[MOST_DEPTH];
    curve_set *curves = new_curves("layer", "%s, wide", lab_norms[norm].name);
    for (int seed = 0; seed < seeds; seed++) {
        ng_module *net = make_network(&lab_norms[norm], ng_relu_new, get_whole(WIDE), depth, 2, 1,
                                      lab_seed(seed));
        lab_run r = lab_begin_run(net, lab_seed(seed));
        const look seen = look_at(&lab_norms[norm], &r, depth);
        for (int l = 0; l < depth; l++) {
            layer[l] = -l, logarithm[l] = 2 * log(seen.gradient[l]);
            log_curves(curves, seed, "square theory", l + 1,
                       pow(seen.gradient[l] / seen.gradient[depth - 1], 2),
                       pow(theory, depth - 1 - l));
        }
        growth[seed] =
            exp(lab_slope(layer + OUTERMOST, logarithm + OUTERMOST, depth - 2 * OUTERMOST));
        lab_end_run(&r);
    }
    lab_judge(lab_norms[norm].name, growth, lab_near(theory, of_batches ? 0.02 : 0.05),
              "growth of the squared gradient a layer, wide layers");
}

/* ---- Saturation ---- */

typedef struct {
    const lab_norm *norm;
    double scale;
    look *seen; /* TIMES looks, or NULL */
} kind;

static double train_tanh(void *context, double rate, uint64_t seed)
{
    const kind *k = context;
    ng_module *net =
        make_network(k->norm, ng_tanh_new, get_whole(WIDTH), TANH_DEPTH, 1, k->scale, seed);
    return train(k->norm, net, TANH_DEPTH, rate, seed, k->seen);
}

static double *asked_loss[NORMS];

static void measure_saturation(int norm)
{
    const bool none = norm == 0;
    const char *name = none ? NULL : lab_norms[norm].name;
    double *share = lab_numbers(lab_seeds());
    curve_set *curves = new_curves("scale", "%s, tanh", lab_norms[norm].name);
    asked_loss[norm] = lab_numbers(lab_seeds());
    for (int i = 0; i < SCALES; i++) {
        look seen[TIMES];
        kind k = {&lab_norms[norm], scales[i], NULL};
        const double rate = lab_best_rate(0.1, train_tanh, &k);
        k.seen = seen;
        for (int seed = 0; seed < lab_seeds(); seed++) {
            const double loss = train_tanh(&k, rate, lab_seed(seed));
            if (i == ASKED) share[seed] = seen[1].saturated, asked_loss[norm][seed] = loss;
            log_curves(curves, seed, "first last loss rate", k.scale, seen[0].saturated,
                       seen[1].saturated, loss, rate);
        }
    }
    lab_judge(name, share, none ? lab_above(0.2) : lab_below(0.05),
              "share of saturated tanh, trained, weights times %g%s", scales[ASKED],
              none ? ", no norm" : "");
    if (!none)
        lab_judge(name, lab_quotients(asked_loss[norm], asked_loss[0]), lab_below(1),
                  "last loss with tanh, own rates, weights times %g, as a share of no norm's",
                  scales[ASKED]);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-(%d)x%d-10, ReLU, %d epochs at rate %g; %d layers of %d; %d layers of tanh",
             get_whole(WIDTH), get_whole(DEPTH), get_whole(EPOCHS), RATE, get_whole(DEEP),
             get_whole(WIDE), TANH_DEPTH);
    for (int norm = 0; norm < NORMS; norm++) measure_layers(norm);
    for (int norm = 1; norm < NORMS; norm++) measure_growth(norm);
    for (int norm = 0; norm < NORMS; norm++) measure_saturation(norm);
    return lab_end();
}
