/* The smoothness of the loss during training: the change of loss and gradient along the gradient's
 * direction, without a norm, with three norms, and with BatchNorm followed by random noise. */
#include "lab.h"

enum { WIDTH, DEPTH, BATCH, EPOCHS, EVERY };
static lab_size sizes[] = {
    [WIDTH] = {"width", "features of each hidden layer", .normal = 64, .quick = 16},
    [DEPTH] = {"depth", "hidden layers", .normal = 8, .quick = 3},
    [BATCH] = {"batch", "samples per step", .normal = 64, .most = LAB_DIGITS},
    [EPOCHS] = {"epochs", "passes over the digits", .normal = 15, .quick = 2},
    [EVERY] = {"every", "steps between measurements", .normal = 5},
    {0}};

static const lab_experiment experiment = {
    .id = "landscape",
    .source = "Santurkar et al. 2018, figures 2 and 4",
    .claim =
        "BatchNorm makes the loss vary less along the gradient and the gradient more predictive; "
        "it trains better even when noise shifts the activations",
    .method =
        "64 - (Linear, norm, ReLU) x depth - 10 on the digits, weights drawn by Kaiming's rule,\n"
        "plain gradient descent in batches. All networks have the same learning rate, as in the\n"
        "paper: of six, the one at which the network WITHOUT a norm has the lowest loss in the\n"
        "last epoch, in the median over three seeds that are not scored. At every fifth step the\n"
        "loss and the gradient of the step's batch are computed at 8 points along the gradient,\n"
        "from half to four times the learning rate. Noise as in the paper, after BatchNorm: y =\n"
        "s x + m, drawn at each step, with m around a feature's own mean from U(-0.5, 0.5) and s\n"
        "around its own from U(1, 1.25). The paper is about BatchNorm; LayerNorm and RMSNorm are\n"
        "judged by the same rule.\n",
    .rule =
        "relative to no norm from the same seed, in the median over the measurements: the range "
        "of the loss along the gradient, the largest change of the gradient there, and that "
        "change per distance are below 1 with a norm; with noise, the mean loss of all epochs and "
        "that of the last are also below 1",
    .seeds = 9,
    .quick_seeds = 1,
    .sizes = sizes};

enum { PLAIN, BATCH_NORM, LAYER_NORM, RMS_NORM, NOISY, NETWORKS, RATES = 6, POINTS = 8 };
static const char *const names[] = {[PLAIN] = "no norm",
                                    [BATCH_NORM] = "BatchNorm",
                                    [LAYER_NORM] = "LayerNorm",
                                    [RMS_NORM] = "RMSNorm",
                                    [NOISY] = "BatchNorm and noise"};
static const double rates[RATES] = {0.0125, 0.025, 0.05, 0.1, 0.2, 0.4};

/* ---- Noise: y = s x + m, per feature and sample -------------------------------------------- */

static uint64_t noise_now; /* seed of the noise, the same at all points of a step */

typedef struct {
    ng_module base;
    uint64_t layer;
} noise;

static double between(ng_rng *rng, double low, double high)
{
    return low + (high - low) * ng_rng_uniform(rng);
}

static ng_tensor *noise_forward(ng_module *self, ng_tape *tape, ng_tensor *x)
{
    ng_tensor *s = ng_result(tape, NG_F32, ng_shape_of(x));
    ng_tensor *m = ng_result(tape, NG_F32, ng_shape_of(x));
    const int64_t samples = ng_dim(x, 0), features = ng_dim(x, 1);
    ng_rng rng = ng_rng_seeded(noise_now * 64 + ((const noise *)self)->layer);
    for (int64_t k = 0; s && m && k < features; k++) {
        const double shift = between(&rng, -0.5, 0.5), scale = between(&rng, 1, 1.25);
        for (int64_t i = 0; i < samples; i++) {
            ng_data_f32(m)[i * features + k] = (float)between(&rng, shift - 0.1, shift + 0.1);
            ng_data_f32(s)[i * features + k] = (float)(scale + 0.1 * ng_rng_normal(&rng));
        }
    }
    return ng_add(tape, ng_mul(tape, x, s), m);
}

static const ng_module_class noise_class = {
    .name = "Noise", .size = sizeof(noise), .forward = noise_forward};

static ng_module *noise_new(int layer)
{
    noise *self = (noise *)ng_module_new(&noise_class);
    if (self) self->layer = (uint64_t)layer;
    return ng_module_built(&self->base);
}

static ng_module *make_network(int kind, uint64_t seed)
{
    const int width = lab_whole(WIDTH);
    ng_module *net = ng_sequential_from(NULL, 0);
    for (int i = 0; i < lab_whole(DEPTH); i++) {
        const int in = i == 0 ? 64 : width;
        ng_sequential_add(net, ng_linear_new(in, width, .init = NG_INIT_KAIMING_NORMAL));
        if (kind == BATCH_NORM || kind == NOISY)
            ng_sequential_add(net, ng_batch_norm_new(width, .no_running_stats = true));
        if (kind == LAYER_NORM) ng_sequential_add(net, ng_layer_norm_new(width));
        if (kind == RMS_NORM) ng_sequential_add(net, ng_rms_norm_new(width));
        if (kind == NOISY) ng_sequential_add(net, noise_new(i));
        ng_sequential_add(net, ng_relu_new());
    }
    ng_sequential_add(net, ng_linear_new(width, 10));
    ng_module_init(net, seed);
    lab_goes_on();
    return net;
}

/* ---- Measurements along the gradient ------------------------------------------------------- */

/* Reads all parameters' values, or gradients, into one array. */
static void read_all(ng_module *net, bool gradients, double *to)
{
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++) {
        const ng_tensor *from = gradients ? ng_grad(p.tensor) : p.tensor;
        for (int64_t k = 0; k < ng_size(from); k++) *to++ = ng_get(from, k);
    }
}

/* Sets the parameters to weights - step * gradient. */
static void move_to(ng_module *net, const double *weights, double step, const double *gradient)
{
    ng_named_tensor p;
    for (int i = 0; ng_module_parameter(net, i, &p); i++)
        for (int64_t k = 0; k < ng_size(p.tensor); k++)
            ng_set(p.tensor, k, *weights++ - step * *gradient++);
}

/* Computes the loss of the batch and its gradient, replacing the parameters' gradients. */
static double differentiate(ng_module *net, ng_tape *tape, const ng_batch *batch)
{
    ng_zero_grads(net);
    ng_tensor *loss = ng_cross_entropy(tape, ng_forward(net, tape, batch->x), batch->y);
    return ng_backward(tape, loss) == NG_OK ? ng_item(loss) : (double)NAN;
}

/* Measurements of a training, by [seed * looks + look]: */
typedef struct {
    double *low, *high, *range; /* of the loss along the gradient */
    double *change;             /* the largest change of the gradient there */
    double *smoothness;         /* per distance: Lipschitz constant of the gradient, or beta */
    double *all, *last;         /* by seed: training loss of all epochs, and of the last */
} record;

static int steps_an_epoch(void) { return LAB_DIGITS / lab_whole(BATCH); }
static int steps_in_all(void) { return lab_whole(EPOCHS) * steps_an_epoch(); }
static int looks_in_all(void) { return (steps_in_all() - 1) / lab_whole(EVERY) + 1; }

static record record_new(void)
{
    const int64_t all = (int64_t)looks_in_all() * lab_seeds();
    const int seeds = lab_seeds() > lab_tuning_seeds() ? lab_seeds() : lab_tuning_seeds();
    return (record){lab_numbers(all), lab_numbers(all),   lab_numbers(all),  lab_numbers(all),
                    lab_numbers(all), lab_numbers(seeds), lab_numbers(seeds)};
}

/* Sets measurement `at` of the record. The network is unchanged afterwards. */
static void look(ng_module *net, ng_tape *tape, const ng_batch *batch, double rate, record *r,
                 int at)
{
    static double *weights, *gradient, *there;
    const int64_t count = ng_parameter_count(net), capacity = 2 * count; /* of any network */
    if (!weights)
        weights = lab_numbers(capacity), gradient = lab_numbers(capacity),
        there = lab_numbers(capacity);
    differentiate(net, tape, batch);
    read_all(net, false, weights);
    read_all(net, true, gradient);
    double length = 0;
    for (int64_t k = 0; k < count; k++) length += gradient[k] * gradient[k];
    r->low[at] = (double)INFINITY;
    for (int i = 0; i < POINTS; i++) {
        const double step = rate * 0.5 * pow(8, (double)i / (POINTS - 1));
        move_to(net, weights, step, gradient);
        const double loss = differentiate(net, tape, batch);
        read_all(net, true, there);
        double change = 0;
        for (int64_t k = 0; k < count; k++) change += pow(there[k] - gradient[k], 2);
        r->low[at] = fmin(r->low[at], loss);
        r->high[at] = fmax(r->high[at], loss);
        r->change[at] = fmax(r->change[at], sqrt(change));
        r->smoothness[at] = fmax(r->smoothness[at], sqrt(change / length) / step);
    }
    r->range[at] = r->high[at] - r->low[at];
    move_to(net, weights, 0, gradient);
}

/* ---- Training ------------------------------------------------------------------------------ */

/* Trains from `seed`, entry `s` of the record. */
static void train(int kind, double rate, uint64_t seed, int s, bool looking, record *r)
{
    ng_dataset *digits, *rest;
    ng_batch batch;
    lab_digits(seed, 0, &digits, &rest);
    ng_module *net = make_network(kind, seed);
    ng_optimizer *descent = ng_sgd_new(net, .lr = rate);
    ng_tape *tape = ng_tape_new();
    const int epoch = steps_an_epoch(), steps = steps_in_all();
    r->all[s] = r->last[s] = 0;
    for (int step = 0; step < steps && lab_goes_on(); step++) {
        if (step % epoch == 0) ng_dataset_shuffle(digits, (uint64_t)step);
        ng_dataset_batch(digits, tape, step % epoch, lab_whole(BATCH), &batch);
        noise_now = seed * 1000000 + (uint64_t)step;
        if (looking && step % lab_whole(EVERY) == 0)
            look(net, tape, &batch, rate, r, s * looks_in_all() + step / lab_whole(EVERY));
        const double loss = differentiate(net, tape, &batch);
        r->all[s] += loss / steps;
        if (step >= steps - epoch) r->last[s] += loss / epoch;
        if (ng_optimizer_step(descent)) break;
        ng_tape_reset(tape);
    }
    if (!isfinite(r->last[s])) r->all[s] = r->last[s] = (double)INFINITY; /* it diverged */
    ng_tape_free(tape), ng_optimizer_free(descent), ng_module_free(net);
    ng_dataset_free(digits), ng_dataset_free(rest);
}

/* Returns the rate at which the network without a norm has the lowest median loss in the last
 * epoch. */
static double common_rate(void)
{
    int best = 0;
    double lowest = (double)INFINITY;
    record r = record_new();
    lab_curves *curves = lab_curves_new("rate", "rates of no norm");
    for (int i = 0; i < RATES; i++) {
        lab_progress(i, 10.0 * (double)RATES, "rate %g", rates[i]);
        for (int s = 0; s < lab_tuning_seeds(); s++) {
            train(PLAIN, rates[i], lab_tuning_seed(s), s, false, &r);
            lab_log(curves, s, "loss", rates[i], r.last[s]);
        }
        const double loss = lab_percentile(r.last, lab_tuning_seeds(), 50);
        if (loss < lowest) lowest = loss, best = i;
    }
    return rates[best];
}

static void write_record(int kind, const record *r, double rate)
{
    const int looks = looks_in_all();
    lab_curves *curves = lab_curves_new("step", "%s", names[kind]);
    for (int i = 0; i < lab_seeds() * looks; i++)
        lab_log(curves, i / looks, "lowest highest change smoothness rate",
                i % looks * lab_whole(EVERY), r->low[i], r->high[i], r->change[i], r->smoothness[i],
                rate);
}

/* Returns the median over the measurements of one seed. */
static double over_looks(const double *numbers, int seed)
{
    return lab_percentile(numbers + seed * looks_in_all(), looks_in_all(), 50);
}

/* Judges a network's numbers over those without a norm, seed by seed. */
static void judge_looks(int kind, const double *with, const double *without, const char *what)
{
    double *shares = lab_numbers(lab_seeds());
    for (int seed = 0; seed < lab_seeds(); seed++)
        shares[seed] = over_looks(with, seed) / over_looks(without, seed);
    lab_judge((lab_part){names[kind], shares, .side = LAB_BELOW, .threshold = 1},
              "%s, as a share of no norm's", what);
}

static void judge_losses(const double *with, const double *without, const char *what)
{
    lab_judge((lab_part){names[BATCH_NORM], lab_quotients(with, without), .side = LAB_BELOW,
                         .threshold = 1},
              "training loss, noise after it, %s, as a share of no norm's", what);
}

int main(int argc, char **argv)
{
    lab_begin(argc, argv, &experiment);
    lab_data("64-%dx%d-10 on digits, batch %d, %d epochs of gradient descent, 8 points a look",
             lab_whole(WIDTH), lab_whole(DEPTH), lab_whole(BATCH), lab_whole(EPOCHS));
    const double rate = common_rate();
    record of[NETWORKS];
    for (int kind = 0; kind < NETWORKS; kind++) {
        of[kind] = record_new();
        for (int s = 0; s < lab_seeds(); s++) {
            lab_progress(0.1 + 0.9 * (kind * lab_seeds() + s) / (NETWORKS * lab_seeds()), 1,
                         "%s, seed %d", names[kind], s);
            train(kind, rate, lab_seed(s), s, true, &of[kind]);
        }
        write_record(kind, &of[kind], rate);
    }
    lab_block("losses", "kind all last");
    for (int kind = 0; kind < NETWORKS; kind++)
        lab_row(kind, lab_median(of[kind].all), lab_median(of[kind].last));
    for (int kind = BATCH_NORM; kind <= RMS_NORM; kind++) {
        judge_looks(kind, of[kind].range, of[PLAIN].range, "range of the loss along the gradient");
        judge_looks(kind, of[kind].change, of[PLAIN].change, "farthest change of the gradient");
        judge_looks(kind, of[kind].smoothness, of[PLAIN].smoothness,
                    "change of the gradient per way gone");
    }
    judge_losses(of[NOISY].all, of[PLAIN].all, "all epochs");
    judge_losses(of[NOISY].last, of[PLAIN].last, "the last epoch");
    return lab_end();
}
